/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * IP-NUMA's page map, PC ID table and shared region table: what is full refuses before anything has left, and what goes
 * makes room; writes that a table does not let in are ignored and told, reads return zeros; who is told may connect anew, and who
 * cannot be answered for want of an entry is not lost.
 */
#include "dn_config.h"

#include "dn_core_int.h"
#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

enum { PAGE = 4096, LLCM_PAGES = 16, SEGMENT_PAGES = NODE_MEMORY / PAGE };

/** A run over ipnuma-10g with other values. */
static void run(uint32_t count, const char *const *change, void (*fn)(node_t *self))
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "ipnuma-10g", change);
    nodes_init(path, count);
    nodes.llcm_bytes = LLCM_PAGES * PAGE;
    const dn_status_t status = nodes_run(fn);
    unlink(path);
    assert_int_equal(status, DN_OK);
}

static void the_published_sizes_are_in_the_profile(void **state)
{
    dn_model_profile_t *profile;

    assert_int_equal(dn_model_profile_open("ipnuma-10g", &profile), DN_OK);
    assert_int_equal(dn_model_profile_value(profile, "page_region") / dn_model_profile_value(profile, "page"),
                     262144);
    assert_int_equal(dn_model_profile_value(profile, "pc_id"), 65536);
    dn_model_profile_close(profile);
}

/** Room for two other computers' numbers. */
static void know_two(node_t *self)
{
    if (0 != self->rank) {
        return;
    }
    assert_int_equal(node_connect(self, 1), DN_OK);
    assert_int_equal(node_connect(self, 2), DN_OK);
    dn_test_log_expect();
    assert_int_equal(node_connect(self, 3), DN_ERR_NOMEM);
    assert_true(dn_test_log_said(1, "the PC ID table of node 0 has 2 entries"));
    assert_int_equal(node_connect(self, 2), DN_OK);
    dn_disconnect(self->peer[2]);
    dn_disconnect(self->peer[2]);
    assert_int_equal(node_connect(self, 3), DN_OK);
    assert_int_equal(dn_aotf(self->peer[3], nodes.off[3], 1, 8), DN_OK);
    node_settle(self->peer[3]);
}

static void pc_ids_run_out_and_come_back(void **state)
{
    run(4, (const char *const[]){"pc_id_count = 2", NULL}, know_two);
    assert_int_equal(nodes.report.pages_mapped, 2 * LLCM_PAGES);
}

/** Room for the LLCM of two others, and a segment. */
static void reach_two(node_t *self)
{
    dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = 100};

    memset(self->memory, (int) self->rank + 1, NODE_MEMORY);
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(node_connect(self, 2), DN_OK);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
        dn_test_log_expect();
        assert_int_equal(node_connect(self, 3), DN_ERR_NOMEM);
        assert_true(dn_test_log_said(1, "the page map of node 0 has 96 of 96 pages taken"));
        /* Without entries of its own a segment is written by messages. */
        xfer.key = &nodes.key[2];
        assert_int_equal(node_transfer(self, 2, &xfer, 1), DN_OK);
        dn_disconnect(self->peer[1]);
        assert_int_equal(node_connect(self, 3), DN_OK);
        xfer.key = &nodes.key[3];
        assert_int_equal(node_transfer(self, 3, &xfer, 1), DN_OK);
    } else {
        while (1 != *(volatile uint8_t *) &self->memory[99]) {
            dn_progress(self->port);
        }
        assert_int_equal(self->memory[100], self->rank + 1);
    }
}

static void pages_run_out_and_come_back(void **state)
{
    run(4, (const char *const[]){"page_region_mib = 0.375", NULL}, reach_two);
    assert_int_equal(nodes.report.pages_mapped, 2 * LLCM_PAGES + SEGMENT_PAGES);
    assert_int_equal(nodes.report.unmapped, 1);
}

/** Room for the LLCM and one segment; whoever is refused writes nothing. */
static void share_one(node_t *self)
{
    dn_segment_t *second;
    static dn_key_t key;
    void *memory = NULL;

    if (1 == self->rank) {
        dn_test_log_expect();
        assert_int_equal(dn_segment_alloc(self->port, PAGE, &second), DN_OK);
        assert_true(dn_test_log_said(1, "the shared region table of node 1 has 2 entries"));
        memory = dn_segment_base(second);
        memset(memory, 0x77, PAGE);
        dn_segment_key(second, &key);
    }
    nodes_meet();
    if (0 == self->rank) {
        const dn_xfer_t xfer = {.local = self->memory, .key = &key, .len = PAGE};
        assert_int_equal(node_connect(self, 1), DN_OK);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_ERR_RANGE);
    }
    nodes_meet();
    if (1 == self->rank) {
        assert_int_equal(((uint8_t *) memory)[0], 0x77);
        assert_int_equal(dn_model_share(self->port, &key, 0, 0), DN_ERR_RANGE);
        /* The first one makes room. */
        dn_segment_free(second);
        dn_segment_free(self->segment);
        assert_int_equal(dn_segment_alloc(self->port, PAGE, &second), DN_OK);
        memory = dn_segment_base(second);
        dn_segment_key(second, &key);
    }
    nodes_meet();
    if (0 == self->rank) {
        const dn_xfer_t xfer = {.local = self->memory, .key = &key, .len = PAGE};
        memset(self->memory, 0x55, PAGE);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
    }
    nodes_meet();
    if (1 == self->rank) {
        assert_int_equal(((uint8_t *) memory)[PAGE - 1], 0x55);
    }
}

static void shared_regions_run_out_and_come_back(void **state)
{
    run(2, (const char *const[]){"shared_region_count = 2", NULL}, share_one);
    assert_int_equal(nodes.report.refused, PAGE / 64);
}

/** In the end node 0 has the words of all but 1, and the data of 2 or 3. */
static void check_let_in(const node_t *self)
{
    const volatile uint64_t *word = (const volatile uint64_t *) self->area;

    nodes_meet();
    for (uint32_t i = 1; 0 == self->rank && i < nodes.config.nodes; i++) {
        assert_int_equal(word[i], 1 == i ? 0 : 5);
        assert_in_range(self->memory[0], 2, 3);
    }
}

/** Node 0 lets 2 and 3 in (mask ...1110), not 1. */
static void let_some_in(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[0], .len = 3 * PAGE};
    static const uint8_t nothing[3 * PAGE];

    memset(self->memory, 0x77, NODE_MEMORY);
    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, &nodes.key[0], 2, ~1u), DN_OK);
        assert_int_equal(dn_model_share(self->port, NULL, 2, ~1u), DN_OK);
    }
    nodes_meet();
    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        const int let_in = 2 <= self->rank;
        memset(self->memory, (int) self->rank, NODE_MEMORY);
        assert_int_equal(node_transfer(self, 0, &xfer, 1), let_in ? DN_OK : DN_ERR_ACCESS);
        memset(self->memory, 0x44, NODE_MEMORY);
        assert_int_equal(node_transfer(self, 0, &xfer, 0), let_in ? DN_OK : DN_ERR_ACCESS);
        if (!let_in) {
            assert_memory_equal(self->memory, nothing, sizeof(nothing));
        } else {
            assert_in_range(self->memory[0], 2, 3);
        }
        assert_int_equal(self->memory[3 * PAGE], 0x44);
        assert_int_equal(dn_aotf(self->peer[0], nodes.off[0] + 8 * self->rank, 5, 8), DN_OK);
        while (!let_in && DN_ERR_UNREACH != dn_aotf(self->peer[0], nodes.off[0] + 8, 6, 8)) {
            dn_progress(self->port);
        }
    }
    check_let_in(self);
}

static void who_is_not_let_in_writes_nothing_and_reads_zeros(void **state)
{
    run(4, (const char *const[]){"pull_in_hardware_flag = 1", NULL}, let_some_in);
    assert_true(3 < nodes.report.refused);
    assert_in_range(nodes.report.errors, 1, nodes.report.refused - 2);
}

static unsigned done;

/** Node 0 opens its segment to 2 and 3; what the NIC cannot do goes by messages, to an LLCM that is open to all. */
static void let_some_in_by_messages(node_t *self)
{
    static const uint8_t nothing[PAGE];
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[0], .len = PAGE};
    const dn_status_t wanted = 2 <= self->rank ? DN_OK : DN_ERR_ACCESS;

    memset(self->memory, 0x77, NODE_MEMORY);
    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, &nodes.key[0], 2, ~1u), DN_OK);
    }
    nodes_meet();
    if (0 != self->rank) {
        node_comp_t comp = {{node_signalled}, 0, DN_INPROGRESS};
        uint64_t old = 9;
        assert_int_equal(node_connect(self, 0), DN_OK);
        memset(self->memory, (int) self->rank, NODE_MEMORY);
        assert_int_equal(node_transfer(self, 0, &xfer, 1), wanted);
        memset(self->memory, 0x44, NODE_MEMORY);
        assert_int_equal(node_transfer(self, 0, &xfer, 0), wanted);
        if (1 == self->rank) {
            assert_memory_equal(self->memory, nothing, PAGE);
        } else {
            assert_in_range(self->memory[0], 2, 3);
        }
        assert_int_equal(self->memory[PAGE], 0x44);
        assert_int_equal(dn_fetch_add(self->peer[0], &nodes.key[0], PAGE, 8, 1, &old, &comp.comp),
                         DN_INPROGRESS);
        while (0 == comp.signals) {
            dn_progress(self->port);
        }
        assert_int_equal(comp.status, wanted);
        done++;
    }
    /* It serves the others. */
    while (0 == self->rank && 3 > done) {
        dn_progress(self->port);
    }
    nodes_meet();
    if (0 == self->rank) {
        uint64_t sum;
        assert_in_range(self->memory[0], 2, 3);
        memcpy(&sum, self->memory + PAGE, sizeof(sum));
        assert_true(UINT64_C(0x7777777777777777) + 2 == sum);
    }
}

static void what_goes_by_messages_is_let_in_by_the_segments_entry(void **state)
{
    /* As published, a PULL goes by messages; where the page map is full, a PUSH does, too. */
    done = 0;
    run(4, (const char *const[]){NULL}, let_some_in_by_messages);
    done = 0;
    run(4, (const char *const[]){"page_region_mib = 0.25", NULL}, let_some_in_by_messages);
    assert_int_equal(nodes.report.unmapped, 3);
}

/** Nodes send lines by messages to node 0, whose LLCM is open to 2 and 3 only. */
static void lines_by_messages(node_t *self)
{
    const dn_core_line_t line = {.off = nodes.off[0] + 64 * self->rank, .flag = 5};

    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, NULL, 2, ~1u), DN_OK);
    }
    nodes_meet();
    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        assert_int_equal(dn_botf(self->peer[0], DN_CHAN_CORE, DN_CORE_LINE, &line, sizeof(line), NULL, 0),
                         DN_OK);
        node_settle(self->peer[0]);
    }
    nodes_meet();
    if (0 == self->rank) {
        const volatile uint64_t *flag = (const volatile uint64_t *) (self->area + DN_AOTF_LINE_MAX);
        while (5 != flag[2 * 8]) {
            dn_progress(self->port);
        }
        assert_int_equal(flag[1 * 8], 0);
    }
    nodes_meet();
}

static void a_line_by_a_message_is_let_in_by_the_llcms_entry(void **state)
{
    run(3, (const char *const[]){NULL}, lines_by_messages);
    assert_int_equal(nodes.report.refused, 1);
}

/** Node 0's segment is open to all, its LLCM to 2 and 3 only. */
static void push_with_status(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory,
                            .key = &nodes.key[0],
                            .len = PAGE,
                            .flags = DN_XFER_STATUS_REMOTE,
                            .remote_status = nodes.off[0] + 8 * self->rank,
                            .remote_value = 5};

    memset(self->memory, (int) self->rank + 1, NODE_MEMORY);
    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, NULL, 2, ~1u), DN_OK);
    }
    nodes_meet();
    if (0 != self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        assert_int_equal(node_transfer(self, 0, &xfer, 1), 2 == self->rank ? DN_OK : DN_ERR_ACCESS);
        while (1 == self->rank && DN_ERR_UNREACH != dn_peer_check(self->peer[0])) {
            dn_progress(self->port);
        }
    }
    check_let_in(self);
}

static void a_status_word_is_let_in_by_the_llcms_entry(void **state)
{
    run(3, (const char *const[]){"push_remote_status_flag = 0", NULL}, push_with_status);
    assert_int_equal(nodes.report.refused, 1);
    assert_int_equal(nodes.report.errors, 1);
    run(3, (const char *const[]){"push_remote_status_flag = 1", NULL}, push_with_status);
    assert_int_equal(nodes.report.refused, 1);
    assert_int_equal(nodes.report.errors, 1);
}

/** Node 0, which sends to node 1 as well, lets it in after having refused it. */
static void let_in_later(node_t *self)
{
    const uint32_t other = 1 - self->rank;

    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, NULL, 0, ~0u), DN_OK);
    }
    assert_int_equal(node_connect(self, other), DN_OK);
    nodes_meet();
    while (0 != self->rank && DN_ERR_UNREACH != dn_aotf(self->peer[0], nodes.off[0] + 8, 6, 8)) {
        dn_progress(self->port);
    }
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(dn_model_share(self->port, NULL, 0, 0), DN_OK);
    }
    nodes_meet();
    if (0 != self->rank) {
        assert_int_equal(dn_aotf(self->peer[0], nodes.off[0], 7, 8), DN_ERR_UNREACH);
        dn_disconnect(self->peer[0]);
        assert_int_equal(node_connect(self, 0), DN_OK);
        assert_int_equal(dn_aotf(self->peer[0], nodes.off[0], 7, 8), DN_OK);
        node_settle(self->peer[0]);
        assert_int_equal(dn_peer_check(self->peer[0]), DN_OK);
    }
    nodes_meet();
    if (0 == self->rank) {
        assert_int_equal(((const volatile uint64_t *) self->area)[0], 7);
        assert_int_equal(((const volatile uint64_t *) self->area)[1], 0);
    }
}

static void who_was_refused_may_connect_anew(void **state)
{
    run(2, (const char *const[]){NULL}, let_in_later);
}

static dn_peer_t *asker;

static void heard(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    asker = src;
}

/** Node 0 has no number for the computer that asks it. */
static void answer_without_room(node_t *self)
{
    assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, heard, NULL), DN_OK);
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
    }
    nodes_meet();
    if (2 == self->rank) {
        assert_int_equal(node_connect(self, 0), DN_OK);
        assert_int_equal(dn_botf(self->peer[0], DN_CHAN_USER, 0, "?", 1, NULL, 0), DN_OK);
    }
    if (0 == self->rank) {
        asker = NULL;
        while (NULL == asker) {
            dn_progress(self->port);
        }
        dn_peer_t *const to = asker;
        dn_test_log_expect();
        assert_int_equal(dn_botf(to, DN_CHAN_USER, 0, "!", 1, NULL, 0), DN_ERR_NOMEM);
        assert_true(dn_test_log_said(1, "the PC ID table of node 0 has 1 entries"));
        dn_test_log_expect();
        assert_int_equal(dn_aotf(to, nodes.off[2], 7, 8), DN_ERR_NOMEM);
        assert_true(dn_test_log_said(1, "the PC ID table of node 0 has 1 entries"));
        assert_int_equal(dn_peer_check(to), DN_OK);
        dn_disconnect(self->peer[1]);
        assert_int_equal(dn_aotf(to, nodes.off[2], 7, 8), DN_OK);
        assert_int_equal(dn_botf(to, DN_CHAN_USER, 0, "!", 1, NULL, 0), DN_OK);
        asker = NULL;
    }
    while (2 == self->rank && NULL == asker) {
        dn_progress(self->port);
    }
    nodes_meet();
}

static void without_room_to_answer_a_peer_lives(void **state)
{
    run(3, (const char *const[]){"pc_id_count = 1", NULL}, answer_without_room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_sizes_are_in_the_profile),
        cmocka_unit_test(pc_ids_run_out_and_come_back),
        cmocka_unit_test(pages_run_out_and_come_back),
        cmocka_unit_test(shared_regions_run_out_and_come_back),
        cmocka_unit_test(who_is_not_let_in_writes_nothing_and_reads_zeros),
        cmocka_unit_test(what_goes_by_messages_is_let_in_by_the_segments_entry),
        cmocka_unit_test(a_line_by_a_message_is_let_in_by_the_llcms_entry),
        cmocka_unit_test(a_status_word_is_let_in_by_the_llcms_entry),
        cmocka_unit_test(who_was_refused_may_connect_anew),
        cmocka_unit_test(without_room_to_answer_a_peer_lives),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
