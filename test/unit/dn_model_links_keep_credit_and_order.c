/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Switches and their links: what passes through takes the pass alone, what is stored its own time more at each switch; credits
 * bound what a link has under way; a link that gets a packet wrong sends it again by itself and in order; a multicast gives
 * each member one copy.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

/* A store of dimmnet1-d is padded to 128 bytes: 256 ns at 500 MB/s, 13 lines of 10 bytes. */
enum { PASS_PS = 100000, WIRE_PS = 256000, LINES = 13, COUNT = 200, MEMBERS = 3 };

static uint64_t sent_ps, there_ps;

/** Nodes of dimmnet1-d over a switch like RHiNET2/SW but for the times, and these keys, a line each. */
static dn_status_t run(const char *keys, dn_model_fabric_t fabric, uint32_t count, void (*fn)(node_t *self))
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "rhinet2",
                          (const char *const[]){"switch_pass_ns = 100", "switch_interval_ns = 0",
                                                '\0' == keys[0] ? NULL : keys, NULL});
    nodes_init("dimmnet1-d", count);
    nodes.config.fabric = fabric;
    nodes.config.fabric_profile = path;
    nodes.config.switches = 3;
    nodes.config.cable_m = 100;
    const dn_status_t status = nodes_run(fn);
    unlink(path);
    return status;
}

/** Store a number to a node, for as long as it takes. */
static void store(node_t *self, uint32_t to, uint64_t off, uint64_t value)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(self->peer[to], nodes.off[to] + off, value, sizeof(value)))) {
        dn_progress(self->port);
    }
    assert_int_equal(status, DN_OK);
}

static uint64_t word(const node_t *self, unsigned i)
{
    return ((const volatile uint64_t *) self->area)[i];
}

/** @name Times */
/** @{ */
/** One store to the last node. */
static void one_store(node_t *self)
{
    const uint32_t to = nodes.config.nodes - 1;

    dn_model_poll(DN_MODEL_READ_NOTHING);
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, to), DN_OK);
        sent_ps = dn_model_now();
        store(self, to, 0, 1);
    } else if (to == self->rank) {
        while (0 == word(self, 0)) {
            dn_progress(self->port);
        }
        there_ps = dn_model_now();
    }
}

static uint64_t took(const char *keys, dn_model_fabric_t fabric, uint32_t count)
{
    assert_int_equal(run(keys, fabric, count, one_store), DN_OK);
    return there_ps - sent_ps;
}

static void what_is_stored_takes_its_own_time_at_each_switch(void **state)
{
    const uint64_t direct = took("", DN_MODEL_PAIR, 2);

    assert_int_equal(took("", DN_MODEL_CHAIN, 2), direct + 3 * PASS_PS);
    assert_int_equal(took("switch_stores_flag = 1", DN_MODEL_CHAIN, 2), direct + 3 * (PASS_PS + WIRE_PS));
    assert_int_equal(took("", DN_MODEL_STAR, 2), direct + PASS_PS);
    assert_int_equal(took("switch_stores_flag = 1", DN_MODEL_STAR, 2), direct + PASS_PS + WIRE_PS);
    /* A port of a quarter of the NIC's rate: the packet is four times as long. */
    assert_int_equal(took("switch_link_rate_gbit_s = 1\nswitch_stores_flag = 1", DN_MODEL_STAR, 2),
                     direct + PASS_PS + 4 * WIRE_PS);
    /* 8 nodes and switches of 4 ports: two up, one on top, two down. */
    assert_int_equal(took("switch_ports_count = 4", DN_MODEL_TREE, 8), direct + 5 * PASS_PS);
}

/** From link to link it takes as long as the whole way, as long as there are credits. */
static void credits_in_plenty_take_no_time(void **state)
{
    static const struct {
        dn_model_fabric_t fabric;
        uint32_t nodes;
        const char *keys;
        uint64_t links;
    } cases[] = {
        {DN_MODEL_PAIR, 2, "", 1},
        {DN_MODEL_STAR, 2, "", 2},
        {DN_MODEL_CHAIN, 2, "", 4},
        {DN_MODEL_CHAIN, 2, "switch_stores_flag = 1", 4},
        {DN_MODEL_TREE, 8, "switch_ports_count = 4", 6},
    };
    char keys[128];

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t without = took(cases[i].keys, cases[i].fabric, cases[i].nodes);
        assert_int_equal(nodes.report.link_packets, 0);
        snprintf(keys, sizeof(keys), "%s%slink_credits_count = 1000\nlink_flow_unit_bytes = 10",
                 cases[i].keys, '\0' == cases[i].keys[0] ? "" : "\n");
        assert_int_equal(took(keys, cases[i].fabric, cases[i].nodes), without);
        assert_int_equal(nodes.report.link_packets, cases[i].links);
        assert_int_equal(nodes.report.link_credits, LINES);
        assert_int_equal(nodes.report.link_stalls, 0);
    }
}
/** @} */

/** @name Credits */
/** @{ */
/** All store to node 0, which sees each one's numbers rise. */
static void all_to_one(node_t *self)
{
    uint64_t last[NODES_MAX] = {0};

    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        for (uint64_t i = 1; i <= COUNT; i++) {
            store(self, 0, 8 * self->rank, i);
        }
        return;
    }
    for (uint32_t left = nodes.config.nodes - 1; 0 != left;) {
        dn_progress(self->port);
        left = 0;
        for (uint32_t i = 1; i < nodes.config.nodes; i++) {
            assert_true(last[i] <= word(self, i));
            last[i] = word(self, i);
            left += COUNT != last[i];
        }
    }
    there_ps = dn_model_now();
}

static void credits_bound_what_is_under_way(void **state)
{
    static const struct {
        const char *keys;
        uint64_t most;
    } cases[] = {{"link_credits_count = 26\nlink_flow_unit_bytes = 10", 2 * LINES},
                 {"link_credits_count = 27\nlink_flow_unit_bytes = 10", 2 * LINES},
                 {"link_credits_count = 1", 1},
                 /* A packet that is longer than all credits takes all of them. */
                 {"link_credits_count = 5\nlink_flow_unit_bytes = 10", 5}};

    assert_int_equal(run("", DN_MODEL_STAR, 4, all_to_one), DN_OK);
    const uint64_t without = there_ps;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run(cases[i].keys, DN_MODEL_STAR, 4, all_to_one), DN_OK);
        assert_int_equal(nodes.report.link_credits, cases[i].most);
        assert_true(0 < nodes.report.link_stalls);
        assert_int_equal(nodes.report.link_packets, 2 * 3 * COUNT);
        assert_true(there_ps > without);
    }
}

/** 1 km and back is what credits have to last for: with those of one packet the link has one under way at a time. */
static void a_credit_comes_back_along_the_cable(void **state)
{
    assert_int_equal(run("link_credits_count = 1", DN_MODEL_PAIR, 2, all_to_one), DN_OK);
    /* 100 m to and fro, and the packet until its last byte is taken in. */
    assert_true(there_ps > (COUNT - 1) * (UINT64_C(1000000) + WIRE_PS));
    assert_int_equal(run("link_credits_count = 100", DN_MODEL_PAIR, 2, all_to_one), DN_OK);
    assert_int_equal(nodes.report.link_stalls, 0);
}
/** @} */

/** @name What comes wrong */
/** @{ */
static uint32_t heard;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint32_t number;

    assert_int_equal(len, sizeof(number));
    memcpy(&number, data, sizeof(number));
    assert_int_equal(number, heard);
    heard++;
}

/** Numbered messages, then stores to one word. */
static void stream(node_t *self)
{
    dn_status_t status;
    uint64_t last = 0;

    assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, hear, NULL), DN_OK);
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        for (uint32_t i = 0; i < COUNT; i += DN_OK == status) {
            status = dn_botf(self->peer[1], DN_CHAN_USER, 0, &i, sizeof(i), NULL, 0);
            assert_true(DN_OK == status || DN_ERR_AGAIN == status);
            dn_progress(self->port);
        }
        for (uint64_t i = 1; i <= COUNT; i++) {
            store(self, 1, 0, i);
        }
        return;
    }
    while (heard < COUNT || last < COUNT) {
        dn_progress(self->port);
        assert_true(last <= word(self, 0));
        last = word(self, 0);
    }
}

static void one_link_sends_again_what_came_wrong(void **state)
{
    heard = 0;
    assert_int_equal(run("link_credits_count = 1000", DN_MODEL_CHAIN, 2, stream), DN_OK);
    const dn_model_report_t clean = nodes.report;
    assert_int_equal(clean.link_resent, 0);
    assert_int_equal(clean.link_packets, 4 * clean.packets);

    /* One packet of ten: 1024 bits times 10^11 of 10^15. */
    heard = 0;
    assert_int_equal(run("link_bit_errors_count = 1e11", DN_MODEL_CHAIN, 2, stream), DN_OK);
    assert_int_equal(heard, COUNT);
    assert_in_range(nodes.report.link_resent, clean.link_packets / 20, clean.link_packets / 5);
    /* The other links and the NIC sent nothing twice. */
    assert_int_equal(nodes.report.packets, clean.packets);
    assert_int_equal(nodes.report.link_packets, clean.link_packets + nodes.report.link_resent);
    assert_int_equal(nodes.report.resent, 0);

    /* Each time costs the link the packet once more, and a way to and fro. */
    assert_int_equal(run("link_bit_errors_count = 1e11", DN_MODEL_PAIR, 2, all_to_one), DN_OK);
    assert_true(there_ps
                > COUNT * (uint64_t) WIRE_PS + nodes.report.link_resent * (WIRE_PS + UINT64_C(1000000)));
}
/** @} */

/** @name Multicast */
/** @{ */
/** To the first three of four, COUNT times. */
static void to_three(node_t *self)
{
    uint64_t last = 0;
    dn_status_t status;

    if (0 == self->rank) {
        for (uint32_t to = 1; to < nodes.config.nodes; to++) {
            assert_int_equal(node_connect(self, to), DN_OK);
        }
        for (uint64_t i = 1; i <= COUNT; i += DN_OK == status) {
            status = dn_model_aotf_multicast(&self->peer[1], MEMBERS, nodes.off[1], i, sizeof(i));
            assert_true(DN_OK == status || DN_ERR_AGAIN == status);
        }
    } else if (MEMBERS >= self->rank) {
        for (; COUNT != last; last = word(self, 0)) {
            dn_progress(self->port);
            assert_true(last <= word(self, 0));
        }
    }
    nodes_meet();
    assert_int_equal(word(self, 0), 0 == self->rank || MEMBERS < self->rank ? 0 : COUNT);
}

static void refused(node_t *self)
{
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(dn_model_aotf_multicast(&self->peer[1], 1, nodes.off[1], 1, 8), DN_ERR_UNSUPPORTED);
    }
}

static void each_member_gets_one_copy(void **state)
{
    static const char *const keys[] = {"", "link_bit_errors_count = 1e11",
                                       "link_flow_unit_bytes = 10\nlink_credits_count = 13"};

    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(run(keys[i], DN_MODEL_STAR, 5, to_three), DN_OK);
        assert_int_equal(nodes.report.multicasts, COUNT);
        assert_int_equal(nodes.report.packets, COUNT);
        /* One to the switch, one from it to each. */
        assert_int_equal(nodes.report.link_packets - nodes.report.link_resent,
                         0 == i ? 0 : COUNT * (1 + MEMBERS));
    }
    assert_int_equal(nodes.report.link_credits, LINES);
    assert_int_equal(run("switch_multicast_flag = 0", DN_MODEL_STAR, 2, refused), DN_OK);
}
/** @} */

/** @name Martini's switches */
/** @{ */
static uint64_t ports, rate, credits, errors;

static void look(node_t *self)
{
    ports = dn_model_value("switch_ports");
    rate = dn_model_value("link_rate");
    credits = dn_model_value("link_credits");
    errors = dn_model_value("link_bit_errors");
}

static void profiles_of_the_three_are_there(void **state)
{
    static const struct {
        const char *name;
        uint64_t ports, rate;
        int credits, errors;
    } cases[] = {
        {"rhinet2", 8, 1000000000, 0, 0}, {"rhinet3", 8, 1000000000, 1, 1}, {"oip-sw", 16, 312500000, 0, 0}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        nodes_init("dimmnet1-133", 2);
        nodes.config.fabric = DN_MODEL_STAR;
        nodes.config.fabric_profile = cases[i].name;
        assert_int_equal(nodes_run(look), DN_OK);
        assert_int_equal(ports, cases[i].ports);
        assert_int_equal(rate, cases[i].rate);
        assert_int_equal(0 != credits, cases[i].credits);
        assert_int_equal(0 != errors, cases[i].errors);
    }
}
/** @} */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_takes_its_own_time_at_each_switch),
        cmocka_unit_test(credits_in_plenty_take_no_time),
        cmocka_unit_test(credits_bound_what_is_under_way),
        cmocka_unit_test(a_credit_comes_back_along_the_cable),
        cmocka_unit_test(one_link_sends_again_what_came_wrong),
        cmocka_unit_test(each_member_gets_one_copy),
        cmocka_unit_test(profiles_of_the_three_are_there),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
