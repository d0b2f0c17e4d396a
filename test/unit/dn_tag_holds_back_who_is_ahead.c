/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A sender that is ahead of its receiver: what lies there unreceived is bounded, nothing is lost or changes its order, and the memory of
 * kept messages is used again.
 */
#include "dn_config.h"

#include "dn_clock.h"
#include "dn_unit.h"

#include "dn_unit_tag.h"

enum {
    CHANNEL = DN_CHAN_USER,
    LONG = 8000,
    MOST = 1000,
    LIMIT = 1 << 20,
    BEHIND = 256 << 10,
    IDLE = 4 << 20
};

/** What a kept message of LONG bytes counts as. */
#define KEPT (LONG + sizeof(dn_tag_msg_t))

typedef struct job {
    dn_tag_req_t req;
    int times;
    uint8_t memory[LONG];
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static dn_peer_t *self;
static dn_tag_peer_t *to;
static job_t sends[MOST];
static size_t lengths[MOST];
static size_t nsends;
static size_t nreceived;

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

/** Open an engine on a port of its own, with room for as much as a sender sends between two looks. */
static void open_engine(const dn_job_t *job, size_t eager_limit, size_t unexpected_limit, dn_port_t **port_p,
                        dn_tag_t **tag_p)
{
    const dn_tag_config_t config = {.limit = {.eager_limit = eager_limit,
                                              .unexpected_limit = unexpected_limit,
                                              .stream = DN_PACE_STREAM_AUTO},
                                    .progress = dn_unit_tag_no_progress,
                                    .lost = dn_unit_tag_lost,
                                    .no_memory = dn_unit_tag_no_memory};
    dn_config_t settings;

    dn_config_init(&settings);
    settings.ring_lines = 4096;
    assert_int_equal(dn_open(dn_device_name(0), job, &settings, port_p), DN_OK);
    assert_int_equal(dn_tag_open(*port_p, CHANNEL, &config, tag_p), DN_OK);
}

static int setup_limited(size_t eager_limit, size_t unexpected_limit)
{
    nsends = nreceived = 0;
    open_engine(&(dn_job_t){.nlocal = 1}, eager_limit, unexpected_limit, &port, &tag);
    self = dn_unit_connect(port, port);
    to = dn_tag_join(tag, self, tag);
    assert_non_null(to);
    return 0;
}

static int setup(void **state)
{
    return setup_limited(8192, LIMIT);
}

/** Messages of any length here flow. */
static int setup_flowing(void **state)
{
    return setup_limited(100, LIMIT);
}

static int setup_small(void **state)
{
    return setup_limited(8192, 64 << 10);
}

static int teardown(void **state)
{
    /* It disconnects the peers that have joined. */
    dn_tag_close(tag);
    dn_close(port);
    return 0;
}

static void progress(void)
{
    for (int i = 0; i < 10; i++) {
        (void) dn_progress(port);
        (void) dn_tag_progress(tag);
    }
}

/** Send the next message. @return whether it is the receiver's: it need not be received first. */
static int send(size_t len)
{
    job_t *job = &sends[nsends];

    assert_true(nsends < MOST);
    job->times = 0;
    job->req.complete = on_complete;
    dn_test_fill(job->memory, len, nsends);
    dn_tag_memory(&job->req, job->memory, len);
    lengths[nsends++] = len;
    assert_int_equal(dn_tag_send(&job->req, to, &(dn_tag_head_t){.context = 1, .tag = 5}, 0), DN_OK);
    progress();
    return job->times;
}

/** Receive the oldest message that was not received. */
static void receive(void)
{
    static job_t job;
    static uint8_t expected[LONG];
    const size_t len = lengths[nreceived];

    job.times = 0;
    job.req.complete = on_complete;
    dn_tag_memory(&job.req, job.memory, LONG);
    dn_tag_wants(&job.req, (dn_tag_want_t){.context = 1, .source = DN_MATCH_ANY_SOURCE, .tag = 5});
    dn_tag_recv(tag, &job.req, NULL, 0);
    progress();
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.size, len);
    dn_test_fill(expected, len, nreceived);
    assert_memory_equal(job.memory, expected, len);
    assert_int_equal(sends[nreceived++].times, 1);
}

static void receive_all(void)
{
    while (nreceived < nsends) {
        receive();
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_NONE);
    assert_int_equal(to->kept_bytes, 0);
    assert_int_equal(tag->dropped, 0);
}

static void longer_messages_are_announced_to_a_receiver_that_is_behind(void **state)
{
    while (DN_TAG_HOLDS_NONE == to->wish.hold) {
        assert_true(send(LONG));
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    assert_int_equal(nsends, BEHIND / KEPT + 1);
    assert_false(send(LONG));
    assert_true(send(DN_TAG_HELD_MIN));
    assert_false(send(DN_TAG_HELD_MIN + 1));
    /* Half of it goes, and a little more. */
    while (DN_TAG_HOLDS_NONE != to->wish.hold) {
        receive();
    }
    assert_in_range(to->kept_bytes, BEHIND / 2 - 2 * KEPT, BEHIND / 2);
    assert_true(send(LONG));
    receive_all();
    /* The memory of all that were kept at once is there for the next ones. */
    const size_t idle = tag->room.idle_bytes;
    assert_in_range(idle, BEHIND, 2 * BEHIND);
    for (int i = 0; i < 20; i++) {
        assert_true(send(LONG));
    }
    receive_all();
    assert_int_equal(tag->room.idle_bytes, idle);
}

static void a_message_that_flows_counts_as_long_as_it_is_kept(void **state)
{
    while (DN_TAG_HOLDS_NONE == to->wish.hold) {
        assert_true(send(LONG));
    }
    assert_int_equal(nsends, BEHIND / KEPT + 1);
    assert_int_equal(to->kept_bytes, nsends * KEPT);
    assert_false(send(LONG));
    receive_all();
}

/** Nobody calls for progress but the sender itself. */
static void a_sender_that_only_injects_hears_of_it(void **state)
{
    const dn_tag_head_t head = {.context = 1, .tag = 5};
    size_t sent = 0;

    dn_test_fill(sends[0].memory, LONG, 0);
    while (DN_OK == dn_tag_inject(to, &head, sends[0].memory, LONG)) {
        sent += LONG;
        assert_in_range(sent, LONG, 2 * BEHIND);
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    assert_int_equal(dn_tag_inject(to, &head, sends[0].memory, DN_TAG_HELD_MIN), DN_ERR_AGAIN);
}

static void be_ahead_by_short_ones(void)
{
    while (DN_TAG_HOLDS_NONE == to->wish.hold) {
        assert_true(send(DN_TAG_HELD_MIN));
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    assert_int_equal(nsends, BEHIND / (DN_TAG_HELD_MIN + sizeof(dn_tag_msg_t)) + 1);
    assert_false(to->waited);
}

/** Programs that send first, and receive then, rely on it. */
static void a_receiver_that_does_not_catch_up_is_waited_for_once(void **state)
{
    be_ahead_by_short_ones();
    uint64_t began = dn_clock_ns();
    assert_true(send(8));
    assert_true(dn_clock_ns() - began >= 500000);
    assert_true(to->waited);
    assert_int_equal(tag->vain, 1);
    const size_t kept = nsends;
    while (nsends < kept + 20) {
        assert_true(send(8));
    }
    assert_true(to->waited);
    assert_int_equal(tag->vain, 1);
    /* All goes on as if it was not behind. */
    assert_int_equal(dn_tag_inject(to, &(dn_tag_head_t){.context = 2, .tag = 5}, lengths, 8), DN_OK);
    progress();
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    dn_tag_forget_kept(tag, &(uint32_t){2}, NULL, false);
    /* A receiver that has caught up once is waited for anew, but not for as long. */
    for (unsigned episode = 2; episode < 10; episode++) {
        receive_all();
        assert_false(to->waited);
        nsends = nreceived = 0;
        be_ahead_by_short_ones();
        const uint64_t moment = UINT64_C(500000) >> tag->vain;
        began = dn_clock_ns();
        assert_true(send(8));
        assert_true(dn_clock_ns() - began >= moment);
        assert_int_equal(tag->vain, episode < 6 ? episode : 6);
    }
}

static void a_receiver_that_catches_up_is_sent_to_at_once(void **state)
{
    static job_t receives[MOST];
    size_t n = 0;

    be_ahead_by_short_ones();
    /* What the receiver wants now lies there, and the sender has not read it. */
    for (; DN_TAG_HOLDS_NONE != to->our_wish.hold; n++) {
        receives[n].req.complete = on_complete;
        dn_tag_memory(&receives[n].req, receives[n].memory, LONG);
        dn_tag_wants(&receives[n].req,
                     (dn_tag_want_t){.context = 1, .source = DN_MATCH_ANY_SOURCE, .tag = 5});
        dn_tag_recv(tag, &receives[n].req, NULL, 0);
        assert_int_equal(receives[n].times, 1);
    }
    nreceived = n;
    (void) dn_tag_progress(tag);
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    job_t *job = &sends[nsends];
    job->times = 0;
    job->req.complete = on_complete;
    dn_test_fill(job->memory, 8, nsends);
    dn_tag_memory(&job->req, job->memory, 8);
    lengths[nsends++] = 8;
    assert_int_equal(dn_tag_send(&job->req, to, &(dn_tag_head_t){.context = 1, .tag = 5}, 0), DN_OK);
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_NONE);
    assert_false(to->waited);
    assert_int_equal(tag->vain, 0);
    receive_all();
}

/** Neither by copies nor by requests, and without a full ring. @param[in] injects  Not 0: by copies. */
static void hear_of_another(int injects)
{
    const dn_tag_head_t head = {.context = 1, .tag = 5};
    dn_port_t *end[2];
    dn_tag_t *engine[2];
    size_t sent = 0;

    for (uint32_t i = 0; i < 2; i++) {
        open_engine(&(dn_job_t){.pid = i, .nlocal = 2}, 8192, LIMIT, &end[i], &engine[i]);
    }
    dn_tag_peer_t *receiver = dn_tag_join(engine[0], dn_unit_connect(end[0], end[1]), engine);
    dn_peer_t *sender = dn_unit_connect(end[1], end[0]);
    assert_non_null(receiver);
    assert_non_null(dn_tag_join(engine[1], sender, engine));
    while (DN_TAG_HOLDS_NONE == receiver->wish.hold) {
        job_t *job = &sends[0];

        job->times = 0;
        job->req.complete = on_complete;
        dn_tag_memory(&job->req, job->memory, 8);
        assert_int_equal(injects ? dn_tag_inject(receiver, &head, job->memory, 8)
                                 : dn_tag_send(&job->req, receiver, &head, 0),
                         DN_OK);
        (void) dn_recv(sender, 100);
        assert_in_range(++sent, 1, BEHIND / sizeof(dn_tag_msg_t) + 2 * DN_TAG_HEED_SHORT);
    }
    for (int i = 0; i < 2; i++) {
        dn_tag_close(engine[i]);
        dn_close(end[i]);
    }
}

static void a_sender_of_short_messages_hears_of_it(void **state)
{
    hear_of_another(1);
    hear_of_another(0);
}

/** The receiver only reads: it has no time for what waits. */
static void a_receiver_that_only_reads_says_it(void **state)
{
    const dn_tag_head_t head = {.context = 1, .tag = 5};

    for (size_t sent = 0; DN_OK == dn_tag_inject(to, &head, sends[0].memory, DN_TAG_HELD_MIN + 1);
         sent += DN_TAG_HELD_MIN + 1) {
        assert_in_range(sent, 0, BEHIND);
        (void) dn_recv(self, 100);
    }
    (void) dn_recv(self, 100);
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
}

static void a_limit_below_that_holds_all_at_once(void **state)
{
    while (DN_TAG_HOLDS_NONE == to->wish.hold) {
        assert_true(send(LONG));
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_ALL);
    assert_false(send(8));
    receive_all();
}

static void all_messages_are_announced_beyond_the_limit(void **state)
{
    while (DN_TAG_HOLDS_ALL != to->wish.hold) {
        assert_true(send(DN_TAG_HELD_MIN));
    }
    assert_int_equal(nsends, LIMIT / (DN_TAG_HELD_MIN + sizeof(dn_tag_msg_t)) + 1);
    assert_false(send(8));
    while (DN_TAG_HOLDS_ALL == to->wish.hold) {
        receive();
    }
    assert_int_equal(to->wish.hold, DN_TAG_HOLDS_LONG);
    assert_true(send(8));
    assert_false(send(LONG));
    receive_all();
}

static void memory_is_used_again(void **state)
{
    enum { LARGE = 65536, COUNT = IDLE / LARGE };
    dn_tag_msg_t *msg[COUNT + 1];

    for (size_t i = 0; i <= COUNT; i++) {
        msg[i] = dn_tag_room_get(tag, LARGE);
        assert_non_null(msg[i]);
    }
    for (size_t i = 0; i <= COUNT; i++) {
        dn_tag_room_put(tag, msg[i]);
        assert_int_equal(tag->room.idle_bytes, (i < COUNT ? i + 1 : COUNT) * LARGE);
    }
    /* The one that was given back last, but not the one beyond the bound. */
    assert_ptr_equal(dn_tag_room_get(tag, LARGE - 1), msg[COUNT - 1]);
    dn_tag_room_put(tag, msg[COUNT - 1]);
    /* Too long, and too short, to be kept idle. */
    dn_tag_room_put(tag, dn_tag_room_get(tag, LARGE + 1));
    dn_tag_room_put(tag, dn_tag_room_get(tag, 8));
    dn_tag_room_put(tag, NULL);
    assert_int_equal(tag->room.idle_bytes, IDLE);
    /* Messages of another length come, and find room at the cost of those. */
    dn_tag_room_put(tag, dn_tag_room_get(tag, LONG));
    assert_in_range(tag->room.idle_bytes, LONG, LARGE / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(longer_messages_are_announced_to_a_receiver_that_is_behind, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_that_flows_counts_as_long_as_it_is_kept, setup_flowing,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_sender_that_only_injects_hears_of_it, setup, teardown),
        cmocka_unit_test(a_sender_of_short_messages_hears_of_it),
        cmocka_unit_test_setup_teardown(a_receiver_that_does_not_catch_up_is_waited_for_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_receiver_that_catches_up_is_sent_to_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receiver_that_only_reads_says_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_below_that_holds_all_at_once, setup_small, teardown),
        cmocka_unit_test_setup_teardown(all_messages_are_announced_beyond_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_used_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
