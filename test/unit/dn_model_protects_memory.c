/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the NIC's tables refuse: segments that are not there, that have gone meanwhile, and groups that were not let in.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"

static void forge(node_t *self)
{
    dn_key_t key = nodes.key[1];
    dn_xfer_t xfer = {.local = self->memory, .key = &key, .len = 5000};

    if (0 != self->rank) {
        memset(self->memory, 0x77, NODE_MEMORY);
    }
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        for (int push = 0; push < 2; push++) {
            key = nodes.key[1];
            key.generation++;
            assert_int_equal(node_transfer(self, 1, &xfer, push), DN_ERR_RANGE);
            key = nodes.key[1];
            key.sid = 99;
            assert_int_equal(node_transfer(self, 1, &xfer, push), DN_ERR_RANGE);
            /* A key that says more than the segment has. */
            key = nodes.key[1];
            key.len = 2 * NODE_MEMORY;
            xfer.roff = NODE_MEMORY - 100;
            assert_int_equal(node_transfer(self, 1, &xfer, push), DN_ERR_RANGE);
            /* In one packet, which begins inside. */
            xfer.len = 200;
            assert_int_equal(node_transfer(self, 1, &xfer, push), DN_ERR_RANGE);
            xfer.len = 5000;
            xfer.roff = 0;
        }
    }
    nodes_meet();
    if (1 == self->rank) {
        for (size_t i = 0; i < NODE_MEMORY - 100; i++) {
            assert_int_equal(self->memory[i], 0x77);
        }
    }
}

static void segments_that_are_not_there_are_refused(void **state)
{
    nodes_init("dimmnet1-d", 2);
    assert_int_equal(nodes_run(forge), DN_OK);
    assert_true(8 <= nodes.report.refused);
}

/** The owner frees its segment while the bytes are on their way. */
static void free_early(node_t *self)
{
    node_comp_t comp = {{node_signalled}, 0, DN_INPROGRESS};
    const dn_xfer_t xfer = {
        .local = self->memory, .key = &nodes.key[1], .len = NODE_MEMORY, .comp = &comp.comp};
    static int started;

    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(0 == nodes.llcm_bytes % 128 ? dn_push(self->peer[1], &xfer)
                                                     : dn_pull(self->peer[1], &xfer),
                         DN_INPROGRESS);
        started = 1;
        while (0 == comp.signals) {
            dn_progress(self->port);
        }
        assert_int_equal(comp.status, DN_ERR_RANGE);
        assert_int_equal(comp.signals, 1);
    } else {
        while (!started) {
            dn_progress(self->port);
        }
        dn_segment_free(self->segment);
    }
    nodes_meet();
    started = 0;
}

static void a_segment_may_go_meanwhile(void **state)
{
    for (uint32_t pull = 0; pull < 2; pull++) {
        nodes_init("dimmnet1-d", 2);
        nodes.llcm_bytes = 65536 + 64 * pull;
        assert_int_equal(nodes_run(free_early), DN_OK);
        assert_true(1 <= nodes.report.refused);
    }
}

/** Node 0 lets the group of node 1 in, node 1 does not know node 0's: what it is sent is refused by its NIC. */
static void strangers(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = 5000};
    dn_group_key_t key = {.byte = {2}};
    dn_pgid_t pgid;

    assert_int_equal(dn_pgid(&key, &pgid), DN_OK);
    if (0 == self->rank) {
        dn_test_log_expect();
        assert_int_equal(node_connect(self, 1), DN_ERR_ACCESS);
        assert_true(dn_test_log_said(1, "group"));
        assert_int_equal(dn_group_admit(self->port, &pgid), DN_OK);
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_ERR_ACCESS);
        assert_int_equal(node_transfer(self, 1, &xfer, 0), DN_ERR_ACCESS);
    }
    nodes_meet();
    if (1 == self->rank) {
        key.byte[0] = 1;
        assert_int_equal(dn_pgid(&key, &pgid), DN_OK);
        assert_int_equal(dn_group_admit(self->port, &pgid), DN_OK);
    }
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
        assert_int_equal(node_transfer(self, 1, &xfer, 0), DN_OK);
    }
}

static void other_groups_are_refused(void **state)
{
    nodes_init("dimmnet1-d", 2);
    nodes.group[0] = 1;
    nodes.group[1] = 2;
    assert_int_equal(nodes_run(strangers), DN_OK);
    assert_true(2 <= nodes.report.refused);
}

/** The initiator goes away while a PUSH of its is under way: nothing of its memory is read any more. */
static void leave_early(node_t *self)
{
    dn_port_t *second = NULL;
    const dn_job_t job = {.pid = 7, .nlocal = 2};
    dn_config_t config;
    dn_peer_t *peer = NULL;
    uint8_t *memory = malloc(NODE_MEMORY);

    if (0 == self->rank) {
        const dn_xfer_t xfer = {.local = memory, .key = &nodes.key[1], .len = NODE_MEMORY};
        dn_config_init(&config);
        config.ring_lines = 64;
        config.llcm_bytes = 4096;
        assert_int_equal(dn_open("model", &job, &config, &second), DN_OK);
        assert_int_equal(dn_connect(second, nodes.address[1], nodes.address_len[1], &peer), DN_OK);
        assert_int_equal(dn_push(peer, &xfer), DN_INPROGRESS);
        dn_progress(second);
        dn_close(second);
    }
    free(memory);
    nodes_meet();
}

static void an_initiator_may_go_meanwhile(void **state)
{
    nodes_init("dimmnet1-d", 2);
    assert_int_equal(nodes_run(leave_early), DN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_that_are_not_there_are_refused),
        cmocka_unit_test(a_segment_may_go_meanwhile),
        cmocka_unit_test(other_groups_are_refused),
        cmocka_unit_test(an_initiator_may_go_meanwhile),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
