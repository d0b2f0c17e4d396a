/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages whose bytes follow without being asked for: to a receive that waits, that comes in their midst, that has too little room;
 * and what does not follow from what came before.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_unit_tag.h"

enum { CHANNEL = DN_CHAN_USER, LEN = 1000, FIRST = 300, SECOND = 350, GUARD = 64, BLANK = 0x5a };

typedef struct job {
    dn_tag_req_t req;
    int times;
    uint8_t memory[LEN + GUARD];
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static dn_peer_t *self;
static uint8_t data[LEN];

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    const dn_tag_config_t config = {
        .limit = {.eager_limit = 100, .unexpected_limit = 1 << 20, .stream = DN_PACE_STREAM_AUTO},
        .progress = dn_unit_tag_no_progress,
        .lost = dn_unit_tag_lost,
        .no_memory = dn_unit_tag_no_memory};

    dn_test_fill(data, LEN, 7);
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_tag_open(port, CHANNEL, &config, &tag), DN_OK);
    self = dn_unit_connect(port, port);
    return 0;
}

static int teardown(void **state)
{
    dn_tag_close(tag);
    dn_disconnect(self);
    dn_close(port);
    return 0;
}

static const dn_tag_want_t want = {.context = 1, .source = DN_MATCH_ANY_SOURCE, .tag = 5};

/** The first bytes of a message come, of which it has so many. */
static void begin(size_t len, size_t first)
{
    struct {
        dn_tag_flow_t flow;
        uint8_t bytes[LEN];
    } message = {.flow = {.head = {1, 0, 5}, .len = len}};

    memcpy(message.bytes, data, first);
    dn_tag_receive(self, DN_TAG_FLOW, &message, sizeof(message.flow) + first, tag);
}

/** More bytes come. */
static void go_on(size_t off, size_t len)
{
    struct {
        dn_tag_frag_t frag;
        uint8_t bytes[LEN];
    } message = {.frag = {.receiver = DN_HANDLE_NONE}};

    memcpy(message.bytes, data + off, len);
    dn_tag_receive(self, DN_TAG_FRAG, &message, sizeof(message.frag) + len, tag);
}

static void end(void)
{
    go_on(FIRST, SECOND);
    go_on(FIRST + SECOND, LEN - FIRST - SECOND);
}

static void ready(job_t *job, size_t room)
{
    memset(job->memory, BLANK, sizeof(job->memory));
    job->times = 0;
    job->req.complete = on_complete;
    dn_tag_memory(&job->req, job->memory, room);
    dn_tag_wants(&job->req, want);
}

static void start(job_t *job, size_t room)
{
    ready(job, room);
    dn_tag_recv(tag, &job->req, NULL, 0);
}

static void check(const job_t *job, size_t room)
{
    const size_t here = room < LEN ? room : LEN;

    assert_int_equal(job->times, 1);
    assert_int_equal(job->req.status, room < LEN ? DN_ERR_TRUNC : DN_OK);
    assert_int_equal(job->req.size, LEN);
    assert_memory_equal(job->memory, data, here);
    for (size_t i = here; i < sizeof(job->memory); i++) {
        assert_int_equal(job->memory[i], BLANK);
    }
    assert_int_equal(tag->dropped, 0);
    assert_int_equal(dn_match_kept_count(&tag->match), 0);
}

static const size_t rooms[] = {0, FIRST - 1, FIRST, FIRST + 1, FIRST + SECOND, LEN - 1, LEN, LEN + 1};
#define ROOMS (sizeof(rooms) / sizeof(rooms[0]))

static void a_receive_that_waits_gets_the_pieces(void **state)
{
    static job_t job;

    for (size_t i = 0; i < ROOMS; i++) {
        start(&job, rooms[i]);
        begin(LEN, FIRST);
        assert_int_equal(job.times, 0);
        end();
        check(&job, rooms[i]);
    }
}

static void a_receive_that_comes_in_the_midst_gets_all(void **state)
{
    static job_t job;

    for (size_t i = 0; i < ROOMS; i++) {
        begin(LEN, FIRST);
        start(&job, rooms[i]);
        end();
        check(&job, rooms[i]);
        begin(LEN, FIRST);
        go_on(FIRST, LEN - FIRST);
        start(&job, rooms[i]);
        check(&job, rooms[i]);
    }
}

static void a_message_that_was_probed_in_the_midst_is_received(void **state)
{
    static job_t job;
    dn_tag_found_t found;

    for (int late = 0; late < 2; late++) {
        begin(LEN, FIRST);
        dn_tag_msg_t *msg = dn_tag_mprobe(tag, &want, &found);
        assert_non_null(msg);
        assert_int_equal(found.size, LEN);
        ready(&job, LEN);
        if (late) {
            end();
            dn_tag_mrecv(tag, &job.req, msg);
        } else {
            dn_tag_mrecv(tag, &job.req, msg);
            assert_int_equal(job.times, 0);
            end();
        }
        check(&job, LEN);
    }
}

static void a_message_that_is_forgotten_in_the_midst_is_not_kept(void **state)
{
    static job_t job;

    begin(LEN, FIRST);
    dn_tag_forget(tag, want.context);
    start(&job, LEN);
    end();
    assert_int_equal(job.times, 0);
    assert_int_equal(tag->dropped, 0);
    begin(LEN, FIRST);
    end();
    check(&job, LEN);
}

static void what_does_not_follow_is_dropped(void **state)
{
    static job_t job;
    uint64_t dropped = 0;

    go_on(0, 1);
    assert_int_equal(tag->dropped, ++dropped);
    begin(FIRST - 1, FIRST);
    assert_int_equal(tag->dropped, ++dropped);
    begin((size_t) 1 << 40, FIRST);
    assert_int_equal(tag->dropped, ++dropped);
    begin(0, 0);
    assert_int_equal(tag->dropped, ++dropped);
    start(&job, LEN);
    begin(LEN, FIRST);
    begin(LEN, FIRST);
    assert_int_equal(tag->dropped, ++dropped);
    go_on(0, LEN - FIRST + 1);
    assert_int_equal(tag->dropped, ++dropped);
    assert_int_equal(job.times, 0);
    end();
    go_on(0, 1);
    assert_int_equal(tag->dropped, ++dropped);
    tag->dropped = 0;
    check(&job, LEN);
}

enum { MEDIUM = 16 << 10, MOST = 64 << 10 };

static uint8_t bytes[MOST];

/** Send so many bytes, without a receive. @return to whom. */
static dn_tag_peer_t *start_send(job_t *job, size_t len)
{
    static const dn_tag_head_t head = {1, 0, 5};
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, self);

    job->times = 0;
    job->req.complete = on_complete;
    dn_tag_memory(&job->req, bytes, len);
    assert_int_equal(dn_tag_send(&job->req, peer, &head, 0), DN_OK);
    return peer;
}

static void drive(void)
{
    for (int i = 0; i < 1000; i++) {
        dn_progress(port);
        dn_tag_progress(tag);
    }
}

static void a_send_flows_without_a_receive(void **state)
{
    static job_t job;
    dn_tag_found_t found;

    (void) start_send(&job, MEDIUM);
    drive();
    assert_int_equal(job.times, 1);
    dn_tag_msg_t *msg = dn_tag_mprobe(tag, &want, &found);
    assert_non_null(msg);
    assert_int_equal(found.size, MEDIUM);
    assert_int_equal(msg->kind, DN_TAG_EAGER);
    free(msg);
}

/** Send to a receive that waits. @return whether the bytes followed unasked. */
static int exchange(void)
{
    static uint8_t memory[MEDIUM];
    static job_t from;
    static job_t into;

    dn_test_fill(bytes, MEDIUM, 3);
    memset(memory, BLANK, MEDIUM);
    into.times = 0;
    into.req.complete = on_complete;
    dn_tag_memory(&into.req, memory, MEDIUM);
    dn_tag_wants(&into.req, want);
    dn_tag_recv(tag, &into.req, NULL, 0);
    /* Each message to this process itself would be taken for one that crosses itself. */
    dn_tag_peer_of(tag, self)->heard = dn_tag_peer_of(tag, self)->longs + 1;
    (void) start_send(&from, MEDIUM);
    const int flowed = DN_TAG_FLOW == from.req.kind;
    drive();
    assert_int_equal(from.times, 1);
    assert_int_equal(into.times, 1);
    assert_int_equal(into.req.status, DN_OK);
    assert_memory_equal(memory, bytes, MEDIUM);
    return flowed;
}

/** A way is known to be the fastest, by far, and is not to be tried again soon. */
static void know(struct dn_pace_class *class, enum dn_pace_way way)
{
    class->turn = DN_PACE_WAYS;
    class->uncounted = 0;
    class->left = 10000;
    class->best = way;
    class->cost_then = 1e6f;
    for (unsigned other = 0; other < DN_PACE_WAYS; other++) {
        class->cost[other] = other == way ? 1e6f : 1e9f;
        class->known[other] = DN_PACE_TRIES;
    }
}

static void a_sender_does_what_its_receiver_wishes(void **state)
{
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, self);

    assert_true(exchange());
    know(&peer->pace.class[0], DN_PACE_ALONE);
    /* The receiver finds out with the next message. */
    assert_true(exchange());
    assert_int_equal(peer->wish.flows, DN_PACE_FLOW_ALL & ~dn_pace_flow_bit(MEDIUM));
    assert_false(exchange());
    know(&peer->pace.class[0], DN_PACE_PIECES);
    assert_false(exchange());
    assert_int_equal(peer->wish.flows, DN_PACE_FLOW_ALL);
    assert_true(exchange());
    memset(&peer->pace, 0, sizeof(peer->pace));
    assert_int_equal(tag->dropped, 0);
}

/** Also where nothing comes back. */
static void a_stream_goes_as_is_wished(void **state)
{
    static job_t jobs[20];
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, self);
    const dn_tag_wish_t wish = {.hold = DN_TAG_HOLDS_NONE, .flows = 0};

    dn_tag_receive(self, DN_TAG_WISH, &wish, sizeof(wish), tag);
    peer->our_wish = wish;
    for (unsigned i = 0; i < 20; i++) {
        (void) start_send(&jobs[i], MEDIUM);
        assert_int_not_equal(jobs[i].req.kind, DN_TAG_FLOW);
    }
    for (unsigned i = 0; i < 20; i++) {
        dn_tag_found_t found;
        dn_tag_msg_t *msg = NULL;
        static uint8_t memory[MEDIUM];
        job_t into = {.req.complete = on_complete};

        for (int polls = 0; polls < 1000 && NULL == msg; polls++) {
            dn_progress(port);
            msg = dn_tag_mprobe(tag, &want, &found);
        }
        assert_non_null(msg);
        dn_tag_memory(&into.req, memory, MEDIUM);
        dn_tag_mrecv(tag, &into.req, msg);
        drive();
        assert_int_equal(into.times, 1);
        assert_int_equal(into.req.status, DN_OK);
        assert_int_equal(jobs[i].times, 1);
        assert_memory_equal(memory, bytes, MEDIUM);
    }
    peer->wish.flows = peer->our_wish.flows = DN_PACE_FLOW_ALL;
    assert_int_equal(tag->dropped, 0);
}

static void a_wish_that_makes_no_sense_is_dropped(void **state)
{
    static const dn_tag_wish_t wishes[] = {{DN_TAG_HOLDS_ALL + 1, 0},
                                           {UINT32_MAX, DN_PACE_FLOW_ALL},
                                           {DN_TAG_HOLDS_NONE, DN_PACE_FLOW_ALL + 1},
                                           {DN_TAG_HOLDS_NONE, UINT32_MAX}};
    const dn_tag_peer_t *peer = dn_tag_peer_of(tag, self);
    uint64_t dropped = 0;

    for (unsigned i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        dn_tag_receive(self, DN_TAG_WISH, &wishes[i], sizeof(wishes[i]), tag);
        assert_int_equal(tag->dropped, ++dropped);
    }
    static const dn_tag_wish_t good[2] = {{DN_TAG_HOLDS_ALL, 0}};
    for (size_t len = 0; len <= sizeof(good[0]) + 1; len++) {
        if (sizeof(good[0]) != len) {
            dn_tag_receive(self, DN_TAG_WISH, good, len, tag);
            assert_int_equal(tag->dropped, ++dropped);
        }
    }
    assert_int_equal(peer->wish.hold, DN_TAG_HOLDS_NONE);
    assert_int_equal(peer->wish.flows, DN_PACE_FLOW_ALL);
    tag->dropped = 0;
}

/** The receiver reads nothing, until one has to wait in its midst. */
static dn_tag_peer_t *send_until_it_waits(job_t *job)
{
    dn_tag_peer_t *peer = start_send(job, MOST);

    for (int i = 0; i < 1000 && 0 != job->times; i++) {
        peer = start_send(job, MOST);
    }
    assert_int_equal(job->times, 0);
    assert_int_equal(job->req.kind, DN_TAG_FLOW);
    return peer;
}

static void the_next_one_is_announced_meanwhile(void **state)
{
    static job_t job, next;

    (void) send_until_it_waits(&job);
    (void) start_send(&next, MEDIUM);
    assert_true(DN_TAG_RTS == next.req.kind || DN_TAG_RTS_PACKED == next.req.kind);
    drive();
    assert_int_equal(job.times, 1);
    assert_int_equal(next.times, 0);
}

static void what_flows_needs_its_peer_and_leaves_before_it(void **state)
{
    static job_t job;
    dn_tag_peer_t *peer = send_until_it_waits(&job);

    assert_true(dn_tag_needs(peer));
    dn_tag_leave(peer, 0);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, DN_OK);
}

static void a_probed_message_whose_sender_is_left_is_an_error(void **state)
{
    static job_t job;
    dn_tag_found_t found;

    begin(LEN, FIRST);
    dn_tag_msg_t *msg = dn_tag_mprobe(tag, &want, &found);
    assert_non_null(msg);
    dn_tag_leave(dn_tag_peer_of(tag, self), 0);
    ready(&job, LEN);
    dn_tag_mrecv(tag, &job.req, msg);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, DN_ERR_UNREACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_receive_that_waits_gets_the_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receive_that_comes_in_the_midst_gets_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_that_was_probed_in_the_midst_is_received, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_that_is_forgotten_in_the_midst_is_not_kept, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_does_not_follow_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_send_flows_without_a_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sender_does_what_its_receiver_wishes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_goes_as_is_wished, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wish_that_makes_no_sense_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_one_is_announced_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(what_flows_needs_its_peer_and_leaves_before_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_probed_message_whose_sender_is_left_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
