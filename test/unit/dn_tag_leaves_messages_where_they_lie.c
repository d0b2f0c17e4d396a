/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A sender is ahead of its receiver: once a receive has its message, and no other receive is posted, the next message is not kept. It
 * stays where it lies until the program has posted the next receive. A program that polls without a receive gets all messages kept.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_unit_tag.h"

enum { CHANNEL = DN_CHAN_USER, AHEAD = 3, MOST = 16 << 10, POLLS = 1000 };

typedef struct job {
    dn_tag_req_t req;
    int times;
    uint8_t memory[MOST];
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static dn_tag_peer_t *to;
static job_t sends[AHEAD];
static job_t receives[AHEAD];
static const dn_tag_head_t head = {1, 0, 5};

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1, .threads = NULL != *state};
    const dn_tag_config_t config = {
        .limit = {.eager_limit = 4096, .unexpected_limit = 1 << 20, .stream = DN_PACE_STREAM_AUTO},
        .threads = NULL != *state,
        .progress = dn_unit_tag_no_progress,
        .lost = dn_unit_tag_lost,
        .no_memory = dn_unit_tag_no_memory};
    dn_config_t settings;

    dn_config_init(&settings);
    assert_int_equal(dn_open(dn_device_name(0), &job, &settings, &port), DN_OK);
    assert_int_equal(dn_tag_open(port, CHANNEL, &config, &tag), DN_OK);
    to = dn_tag_join(tag, dn_unit_connect(port, port), tag);
    assert_non_null(to);
    return 0;
}

static int teardown(void **state)
{
    /* It disconnects the peer that has joined. */
    dn_tag_close(tag);
    dn_close(port);
    return 0;
}

static void send_all(size_t len)
{
    for (int i = 0; i < AHEAD; i++) {
        sends[i].times = 0;
        sends[i].req.complete = on_complete;
        dn_test_fill(sends[i].memory, len, (uint64_t) i);
        dn_tag_memory(&sends[i].req, sends[i].memory, len);
        assert_int_equal(dn_tag_send(&sends[i].req, to, &head, 0), DN_OK);
        assert_int_equal(sends[i].times, 1);
    }
}

static void receive(int i, size_t len)
{
    receives[i].times = 0;
    receives[i].req.complete = on_complete;
    dn_tag_memory(&receives[i].req, receives[i].memory, len);
    dn_tag_wants(&receives[i].req,
                 (dn_tag_want_t){.context = head.context, .source = DN_MATCH_ANY_SOURCE, .tag = head.tag});
    dn_tag_recv(tag, &receives[i].req, NULL, 0);
}

static void await(int i, size_t len)
{
    for (int polls = 0; 0 == receives[i].times && polls < POLLS; polls++) {
        (void) dn_progress(port);
    }
    assert_int_equal(receives[i].times, 1);
    assert_int_equal(receives[i].req.status, DN_OK);
    assert_memory_equal(receives[i].memory, sends[i].memory, len);
}

/** In one line; in some lines; through the stage; in pieces. */
static const size_t lengths[] = {8, 1000, 4000, MOST};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void what_no_receive_waits_for_is_not_kept(void **state)
{
    for (size_t n = 0; n < LENGTHS; n++) {
        send_all(lengths[n]);
        for (int i = 0; i < AHEAD; i++) {
            receive(i, lengths[n]);
            await(i, lengths[n]);
            assert_int_equal(dn_match_kept_count(&tag->match), 0);
        }
    }
}

/** Of the longest, one may be announced meanwhile, and come later. */
static void posted_receives_get_theirs_in_one_poll(void **state)
{
    for (size_t n = 0; n < LENGTHS - 1; n++) {
        send_all(lengths[n]);
        for (int i = 0; i < AHEAD - 1; i++) {
            receive(i, lengths[n]);
        }
        await(0, lengths[n]);
        for (int i = 0; i < AHEAD - 1; i++) {
            assert_int_equal(receives[i].times, 1);
            await(i, lengths[n]);
        }
        assert_int_equal(dn_match_kept_count(&tag->match), 0);
        receive(AHEAD - 1, lengths[n]);
        await(AHEAD - 1, lengths[n]);
    }
}

static void who_polls_without_a_receive_finds_all_messages(void **state)
{
    for (size_t n = 0; n < LENGTHS; n++) {
        send_all(lengths[n]);
        receive(0, lengths[n]);
        await(0, lengths[n]);
        for (int polls = 0; polls < POLLS; polls++) {
            (void) dn_progress(port);
        }
        assert_int_equal(dn_match_kept_count(&tag->match), AHEAD - 1);
        for (int i = 1; i < AHEAD; i++) {
            receive(i, lengths[n]);
            await(i, lengths[n]);
        }
    }
}

static int setup_threads(void **state)
{
    *state = &port;
    return setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_no_receive_waits_for_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(posted_receives_get_theirs_in_one_poll, setup, teardown),
        cmocka_unit_test_setup_teardown(who_polls_without_a_receive_finds_all_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_receive_waits_for_is_not_kept, setup_threads, teardown),
        cmocka_unit_test_setup_teardown(who_polls_without_a_receive_finds_all_messages, setup_threads,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
