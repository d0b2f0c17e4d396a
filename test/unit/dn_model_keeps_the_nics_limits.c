/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Limits of the NIC, as the papers have them: credits, header table, windows, packets, pages, PULL, LLCM, switches.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"

enum { STORES = 4096 };

/** More stores than the FIFO has places, one page. */
static void store_many(node_t *self)
{
    unsigned refused = 0;

    if (0 != self->rank) {
        return;
    }
    assert_int_equal(node_connect(self, 1), DN_OK);
    for (uint64_t i = 0; i < STORES;) {
        const dn_status_t status = dn_aotf(self->peer[1], nodes.off[1], i, 8);
        assert_true(DN_OK == status || DN_ERR_AGAIN == status);
        i += DN_OK == status;
        refused += DN_OK != status;
    }
    node_settle(self->peer[1]);
    assert_true(0 < refused);
}

static void credits_run_out(void **state)
{
    nodes_init("dimmnet1-d", 2);
    assert_int_equal(nodes_run(store_many), DN_OK);
    assert_int_equal(nodes.report.aotf, STORES);
    /* The first 2048 need no look at the FIFO. */
    assert_in_range(nodes.report.credit_checks, 1, STORES);
    assert_int_equal(nodes.report.header_misses, 1);
}

/** Stores to 5 pages of 7 peers, in turn, again and again. */
static void store_wide(node_t *self)
{
    if (0 != self->rank) {
        return;
    }
    for (uint32_t to = 1; to < nodes.config.nodes; to++) {
        assert_int_equal(node_connect(self, to), DN_OK);
    }
    for (unsigned round = 0; round < 10; round++) {
        for (uint32_t to = 1; to < nodes.config.nodes; to++) {
            for (uint64_t page = 0; page < 4; page++) {
                assert_int_equal(dn_aotf(self->peer[to], nodes.off[to] + page * 4096, round, 8), DN_OK);
            }
        }
        for (uint32_t to = 1; to < nodes.config.nodes; to++) {
            node_settle(self->peer[to]);
        }
    }
}

static void headers_miss_once_a_page(void **state)
{
    nodes_init("dimmnet1-d", 8);
    assert_int_equal(nodes_run(store_wide), DN_OK);
    assert_int_equal(nodes.report.header_misses, 7 * 4);
    assert_int_equal(nodes.report.interrupts, 7 * 4);
}

static uint32_t pushed;

static void push_some(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = pushed};

    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        dn_test_fill(self->memory, pushed, 9);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
    }
    nodes_meet();
    if (1 == self->rank) {
        assert_int_equal(dn_test_mismatch(self->memory, pushed, 9), pushed);
    }
}

static void push(uint32_t len, uint64_t windows, uint64_t packets)
{
    nodes_init("dimmnet1-d", 2);
    pushed = len;
    assert_int_equal(nodes_run(push_some), DN_OK);
    assert_int_equal(nodes.report.botf, windows);
    assert_int_equal(nodes.report.push_packets, packets);
    assert_int_equal(nodes.report.acks, 1);
}

static void a_window_holds_464_bytes_and_a_packet_a_page(void **state)
{
    push(1, 1, 1);
    push(464, 1, 1);
    push(465, 0, 1);
    push(4096, 0, 1);
    push(4097, 0, 2);
    push(10 * 4096, 0, 10);
}

static int pulled;

static void pull_much(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = pushed};

    dn_test_fill(self->memory, NODE_MEMORY, self->rank);
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(node_transfer(self, 1, &xfer, 0), DN_OK);
        assert_int_equal(dn_test_mismatch(self->memory, pushed, 1), pushed);
        pulled = 1;
    }
    while (!pulled) {
        dn_progress(self->port);
    }
    nodes_meet();
    pulled = 0;
}

static void pull_is_split_below_64_kbyte(void **state)
{
    static const struct {
        uint32_t len;
        uint64_t requests;
    } cases[] = {{1, 1}, {65535, 1}, {65536, 2}, {131070, 2}, {131071, 3}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nodes_init("dimmnet1-d", 2);
        pushed = cases[i].len;
        assert_int_equal(nodes_run(pull_much), DN_OK);
        assert_int_equal(nodes.report.pull_requests, cases[i].requests);
    }
    /* Where there is no PULL, the core processors do it by messages. */
    nodes_init("ipnuma-10g", 2);
    assert_int_equal(nodes_run(pull_much), DN_OK);
    assert_int_equal(nodes.report.pull_requests, 0);
}

/** Windows are used in turn: from the third packet on their state is read, and waited for. */
static void push_by_windows(node_t *self)
{
    dn_model_push_by(DN_MODEL_WAY_BOTF);
    push_some(self);
}

static void windows_are_checked_before_they_are_used_again(void **state)
{
    static const struct {
        uint32_t len;
        uint64_t checks;
    } cases[] = {{464, 0}, {928, 0}, {929, 1}, {464 * 10, 8}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nodes_init("dimmnet1-d", 2);
        pushed = cases[i].len;
        assert_int_equal(nodes_run(push_by_windows), DN_OK);
        assert_int_equal(nodes.report.window_checks, cases[i].checks);
        assert_true(nodes.report.window_waits <= cases[i].checks);
    }
    assert_true(0 < nodes.report.window_waits);
}

static void connect_all(node_t *self)
{
    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        assert_int_equal(dn_aotf(self->peer[0], nodes.off[0], 1, 8), DN_OK);
        assert_int_equal(dn_botf(self->peer[0], DN_CHAN_USER, 0, "x", 1, NULL, 0),
                         0 == nodes.llcm_bytes ? DN_OK : DN_ERR_NOMEM);
    }
}

static void llcm_is_not_without_end(void **state)
{
    nodes_init("dimmnet1-d", 8);
    assert_int_equal(nodes_run(connect_all), DN_OK);
    assert_int_equal(nodes.report.llcm_bytes, DN_MODEL_LLCM_BYTES + 7 * (64 * 64 + 128));
    nodes_init("dimmnet1-d", 2);
    nodes.llcm_bytes = 128 * 1024 - 64;
    dn_test_log_expect();
    assert_int_equal(nodes_run(connect_all), DN_OK);
    assert_true(dn_test_log_said(1, "LLCM of node"));
}

/** One packet for all at a switch. */
static void multicast(node_t *self)
{
    if (0 == self->rank) {
        for (uint32_t to = 1; to < nodes.config.nodes; to++) {
            assert_int_equal(node_connect(self, to), DN_OK);
        }
        const dn_status_t status =
            dn_model_aotf_multicast(&self->peer[1], nodes.config.nodes - 1, nodes.off[1], 7, 8);
        assert_int_equal(status, DN_MODEL_STAR == nodes.config.fabric ? DN_OK : DN_ERR_UNSUPPORTED);
        if (DN_OK == status) {
            assert_int_equal(dn_model_aotf_multicast(&self->peer[1], 2, UINT64_MAX, 7, 8), DN_ERR_RANGE);
        }
    } else if (DN_MODEL_STAR == nodes.config.fabric) {
        while (7 != self->area[0]) {
            dn_progress(self->port);
        }
    }
}

static void a_switch_copies_packets(void **state)
{
    nodes_init("dimmnet1-d", 5);
    nodes.config.fabric = DN_MODEL_STAR;
    assert_int_equal(nodes_run(multicast), DN_OK);
    assert_int_equal(nodes.report.multicasts, 1);
    assert_int_equal(nodes.report.aotf, 1);
    nodes_init("dimmnet1-d", 5);
    assert_int_equal(nodes_run(multicast), DN_OK);
}

/** Interrupt AOTFs of two nodes: the core processor makes one list of them. */
static void interrupt(node_t *self)
{
    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        for (uint64_t i = 0; i < 5; i++) {
            assert_int_equal(dn_model_aotf_interrupt(self->peer[0], nodes.off[0], 100 * self->rank + i, 8),
                             DN_OK);
        }
        node_settle(self->peer[0]);
        return;
    }
    const volatile uint64_t *list = (const volatile uint64_t *) self->area;
    uint64_t sum = 0;
    while (10 != list[0]) {
        dn_progress(self->port);
    }
    for (unsigned i = 1; i <= 10; i++) {
        sum += list[8 * i];
    }
    assert_int_equal(sum, 5 * 100 + 5 * 200 + 2 * 10);
    assert_int_equal(list[8 * 11], 0);
}

static void interrupts_make_a_list(void **state)
{
    nodes_init("dimmnet1-d", 3);
    assert_int_equal(nodes_run(interrupt), DN_OK);
    assert_int_equal(nodes.report.interrupts - nodes.report.header_misses, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_run_out),
        cmocka_unit_test(headers_miss_once_a_page),
        cmocka_unit_test(a_window_holds_464_bytes_and_a_packet_a_page),
        cmocka_unit_test(pull_is_split_below_64_kbyte),
        cmocka_unit_test(windows_are_checked_before_they_are_used_again),
        cmocka_unit_test(llcm_is_not_without_end),
        cmocka_unit_test(a_switch_copies_packets),
        cmocka_unit_test(interrupts_make_a_list),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
