/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that leaves peers waits for them in vain for a limited time, for all of them together. A peer is kept as long as something of
 * its messages moves, and nothing else that comes by the port counts.
 *
 * No test waits for the clock: an event that comes by the port sets the clock of the waits forward.
 */
#include "dn_config.h"

#include "dn_unit.h"
#include "dn_core.h"
#include "dn_unit_tag.h"

enum {
    PEERS = 2,
    LINE = 40000, /**< sends to a peer, at most */
    SHORT = 8,
    LONG = 100000,
    LONGEST = 16 << 20, /**< more pieces than find room at once */
    CHANNEL = DN_CHAN_USER,
    STEPS = 10000,        /**< as many events without a taker make up the limit */
    EVENTS_MAX = 1000000, /**< a wait that does not end by then has failed */
    POLLS = 1000,         /**< a peer takes all that has come */
};

/** Longer than any test lasts. */
static const uint64_t limit_ns = UINT64_C(600000000000);

typedef struct job {
    dn_tag_req_t req;
    unsigned times;
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static dn_peer_t *self;
/** The peers are other ports of this process. */
static dn_port_t *far[PEERS];
static dn_tag_peer_t *peer[PEERS];
static job_t line[PEERS][LINE];
static unsigned sends[PEERS], completed;
static uint8_t bytes[LONGEST], received[LONG];
static const dn_tag_head_t head = {1, 0, 7};
/** Events that have come by the port. */
static uint32_t events;
/** The peer that takes its messages while events come; or none. */
static dn_port_t *taker;
/** The peer that reads memory of this process by messages while events come; or none. */
static dn_port_t *reader;
/** How often the second peer says that it has read more by itself, while events come. */
static unsigned readings;
/** What dn_peer_moves() said of the reader when time was added last. */
static uint32_t moves_before;
/** The taker has been served so often when time was added last. */
static unsigned served_before;

static void on_complete(dn_tag_req_t *req)
{
    job_t *job = (job_t *) req;

    job->times++;
    completed += job >= line[1] && job < line[1] + LINE && DN_OK == req->status;
}

/** dn_handler_fn_t: an event, behind which the next one comes at once. With a taker, most of the limit goes by each time that the taker was
 * served, and at each event after it has all. With a reader, most of it goes by each time that a piece has moved. */
static void event(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    if (0 != readings) {
        (void) dn_progress(far[1]);
        tag->patience.waited_ns += limit_ns / STEPS;
    } else if (NULL != reader) {
        (void) dn_progress(reader);
        if (moves_before != dn_peer_moves(peer[1]->peer)) {
            moves_before = dn_peer_moves(peer[1]->peer);
            tag->patience.waited_ns += limit_ns * 2 / 3;
        }
    } else if (NULL == taker) {
        tag->patience.waited_ns += limit_ns / STEPS;
    } else {
        (void) dn_progress(taker);
        if (served_before != completed || sends[1] == completed) {
            served_before = completed;
            tag->patience.waited_ns += limit_ns * 2 / 3;
        }
    }
    if (EVENTS_MAX > ++events) {
        assert_int_equal(dn_botf(self, CHANNEL - 1, 0, NULL, 0, NULL, 0), DN_OK);
    } else {
        tag->patience.limit_ns = 0; /* so that the wait ends */
    }
}

/** dn_handler_fn_t. */
static void take(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg) {}

static int setup(void **state)
{
    const dn_tag_config_t config = {.limit = {.eager_limit = 1000,
                                              .unexpected_limit = 1 << 20,
                                              .announce = DN_TAG_ANNOUNCES_ALL,
                                              .announce_min = 50000},
                                    .progress = dn_unit_tag_no_progress,
                                    .lost = dn_unit_tag_lost,
                                    .no_memory = dn_unit_tag_no_memory};
    const dn_job_t job = {.nlocal = 1 + PEERS};

    taker = reader = NULL;
    events = readings = 0;
    completed = served_before = moves_before = 0;
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_tag_open(port, CHANNEL, &config, &tag), DN_OK);
    tag->patience.limit_ns = limit_ns;
    self = dn_unit_connect(port, port);
    assert_int_equal(dn_handler_set(port, CHANNEL - 1, event, NULL), DN_OK);
    for (uint32_t i = 0; i < PEERS; i++) {
        const dn_job_t far_job = {.pid = 1 + i, .nlocal = 1 + PEERS};

        sends[i] = 0;
        assert_int_equal(dn_open(dn_device_name(0), &far_job, NULL, &far[i]), DN_OK);
        assert_int_equal(dn_handler_set(far[i], CHANNEL, take, NULL), DN_OK);
        peer[i] = dn_tag_join(tag, dn_unit_connect(port, far[i]), &port);
        assert_non_null(peer[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    dn_handler_clear(port, CHANNEL - 1);
    tag->patience.limit_ns = 0;
    dn_tag_close(tag);
    dn_disconnect(self);
    dn_close(port);
    for (int i = 0; i < PEERS; i++) {
        dn_close(far[i]);
    }
    return 0;
}

static job_t *start_send(unsigned i, size_t len)
{
    assert_true(sends[i] < LINE);
    job_t *job = &line[i][sends[i]++];
    *job = (job_t){.req.complete = on_complete};
    dn_tag_memory(&job->req, bytes, len);
    assert_int_equal(dn_tag_send(&job->req, peer[i], &head, 0), DN_OK);
    return job;
}

/** Send to a peer that takes nothing, until much more waits than its ring holds. */
static void fill(unsigned i)
{
    while (NULL == peer[i]->waits.first) {
        (void) start_send(i, SHORT);
    }
    for (unsigned more = 4 * sends[i]; 0 != more; more--) {
        (void) start_send(i, SHORT);
    }
}

static void check_abandoned(unsigned i)
{
    const job_t *last = &line[i][sends[i] - 1];

    assert_int_equal(last->times, 1);
    assert_int_equal(last->req.status, DN_ERR_UNREACH);
}

static void begin_events(void)
{
    assert_int_equal(dn_botf(self, CHANNEL - 1, 0, NULL, 0, NULL, 0), DN_OK);
}

static void events_of_others_do_not_prolong_the_wait(void **state)
{
    fill(0);
    begin_events();
    dn_tag_leave(peer[0], 0);
    assert_true(EVENTS_MAX > events);
    check_abandoned(0);
}

static void services_of_others_do_not_prolong_the_wait(void **state)
{
    fill(0);
    fill(1);
    taker = far[1];
    begin_events();
    dn_tag_leave(peer[0], 0);
    assert_true(EVENTS_MAX > events);
    assert_true(sends[1] > completed);
    check_abandoned(0);
}

static void peers_share_the_limit(void **state)
{
    fill(0);
    fill(1);
    begin_events();
    dn_tag_leave(peer[0], 0);
    assert_true(EVENTS_MAX > events);
    const uint32_t before = events;
    dn_tag_leave(peer[1], 0);
    assert_true(STEPS / 10 > events - before);
    check_abandoned(0);
    check_abandoned(1);
}

/** What begins to wait after a peer was given up has the whole time. */
static void later_messages_have_the_limit(void **state)
{
    fill(0);
    begin_events();
    dn_tag_leave(peer[0], 0);
    const uint32_t before = events;
    fill(1);
    dn_tag_leave(peer[1], 0);
    assert_true(EVENTS_MAX > events);
    assert_true(STEPS * 9 / 10 < events - before);
    check_abandoned(0);
    check_abandoned(1);
}

/** The first one takes nothing, and is given up. While it is waited for, the second one takes messages, and then all. */
static void who_is_served_is_kept(void **state)
{
    fill(0);
    fill(1);
    taker = far[1];
    begin_events();
    dn_tag_leave(peer[0], 0);
    assert_true(sends[1] > completed);
    dn_tag_leave(peer[1], 0);
    assert_true(EVENTS_MAX > events);
    assert_int_equal(completed, sends[1]);
    check_abandoned(0);
}

/** The peer has taken what had come. It gets the rest, though the time is over. */
static void each_peer_is_polled_for(void **state)
{
    fill(0);
    begin_events();
    dn_tag_leave(peer[0], 0);
    dn_handler_clear(port, CHANNEL - 1);
    while (NULL == peer[1]->waits.first) {
        (void) start_send(1, SHORT);
    }
    /* As if it had waited for the first one, too. */
    peer[1]->mark.at = 0;
    for (int i = 0; i < POLLS; i++) {
        (void) dn_progress(far[1]);
    }
    dn_tag_leave(peer[1], 0);
    assert_int_equal(completed, sends[1]);
}

static dn_tag_rts_t heard;

/** dn_handler_fn_t. */
static void hear(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    if (sizeof(heard) == len) {
        memcpy(&heard, data, len);
    }
}

/** Begin a message that the second peer is to fetch. @param[out] handle_p  What the peer names in its answer. */
static job_t *announce(size_t len, uint64_t *handle_p)
{
    job_t *job = start_send(1, len);

    heard.request = DN_HANDLE_NONE;
    while (DN_HANDLE_NONE == heard.request) {
        (void) dn_progress(port);
        (void) dn_progress(far[1]);
    }
    assert_int_equal(job->times, 0);
    *handle_p = heard.request;
    return job;
}

/** Set the clock of the waits forward. */
static void forward(void)
{
    tag->patience.waited_ns += limit_ns;
}

/** Has anything of a peer moved since forward()? */
static bool has_moved(unsigned i)
{
    return dn_patience_time(&tag->patience) == peer[i]->mark.at;
}

/** The second peer answers. */
static void answer(const job_t *job, dn_peer_t *back, enum dn_tag_kind kind, const void *message, size_t len)
{
    forward();
    assert_false(has_moved(1));
    assert_int_equal(dn_botf(back, CHANNEL, kind, message, len, NULL, 0), DN_OK);
    while (DN_TAG_WAITS_REPLY == dn_tag_state_of(&job->req)) {
        (void) dn_progress(far[1]);
        (void) dn_progress(port);
    }
    assert_true(has_moved(1));
}

/** The second peer fetches two messages: one that it PULLs, and one in pieces that it asks for. */
static void answers_and_pieces_move(void **state)
{
    dn_handler_clear(far[1], CHANNEL);
    assert_int_equal(dn_handler_set(far[1], CHANNEL, hear, NULL), DN_OK);
    dn_peer_t *back = dn_unit_connect(far[1], port);
    dn_tag_cts_t cts = {.receiver = 1, .len = LONG};
    uint64_t handle;

    forward();
    job_t *job = announce(LONG, &handle);
    assert_true(has_moved(1)); /* it begins to wait */
    answer(job, back, DN_TAG_DONE, &handle, sizeof(handle));
    job = announce(LONG, &cts.request);
    answer(job, back, DN_TAG_CTS, &cts, sizeof(cts));
    while (0 == job->times) {
        forward();
        const int sent = dn_tag_progress(tag);
        assert_int_equal(has_moved(1), 0 != sent);
        (void) dn_progress(far[1]);
        (void) dn_progress(port);
    }
    dn_disconnect(back);
}

/** How the second peer reads a message. */
static struct {
    dn_comp_t comp;
    dn_peer_t *back;
    uint64_t handle;
} reading;

/** dn_comp_fn_t: the peer has all bytes, and answers. */
static void on_read(dn_comp_t *comp, dn_status_t status)
{
    assert_int_equal(status, DN_OK);
    assert_int_equal(
        dn_botf(reading.back, CHANNEL, DN_TAG_DONE, &reading.handle, sizeof(reading.handle), NULL, 0), DN_OK);
}

/** The second peer takes a long message by one transfer of many pieces, which only the port sees. Meanwhile the limit goes by again and
 * again. */
static void who_reads_is_kept(void **state)
{
    static uint8_t local[LONGEST];

    dn_handler_clear(far[1], CHANNEL);
    assert_int_equal(dn_handler_set(far[1], CHANNEL, hear, NULL), DN_OK);
    reading.back = dn_unit_connect(far[1], port);
    reading.comp.fn = on_read;
    const job_t *job = announce(LONGEST, &reading.handle);
    const dn_xfer_t xfer = {.local = local, .key = &heard.key, .len = LONGEST, .comp = &reading.comp};
    /* By messages, though the device may read the memory itself. */
    assert_int_equal(dn_core_pull(reading.back, &xfer), DN_INPROGRESS);
    reader = far[1];
    begin_events();
    dn_tag_leave(peer[1], 1);
    assert_true(EVENTS_MAX > events);
    assert_int_equal(job->times, 1);
    assert_int_equal(job->req.status, DN_OK);
    assert_true(2 * limit_ns < tag->patience.waited_ns);
    dn_disconnect(reading.back);
}

/** dn_handler_fn_t of the second peer, which reads by itself, and tells so when it is asked. When it has told so often, it has all. */
static void tell(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    static uint64_t moves;

    if (DN_TAG_HOW_FAR == kind) {
        assert_int_equal(dn_botf(src, CHANNEL, DN_TAG_SO_FAR, &moves, sizeof(moves), NULL, 0), DN_OK);
        if (1 < readings) {
            moves++;
            readings--;
        } else if (0 != reading.handle) {
            (void) dn_botf(src, CHANNEL, DN_TAG_DONE, &reading.handle, sizeof(reading.handle), NULL, 0);
        }
    }
}

/** The second peer is asked, and says that it reads. The limit goes by several times. @param[in] times  It says so. @return the message. */
static const job_t *leave_who_reads_alone(unsigned times, bool ends)
{
    dn_handler_clear(far[1], CHANNEL);
    assert_int_equal(dn_handler_set(far[1], CHANNEL, hear, NULL), DN_OK);
    dn_peer_t *back = dn_unit_connect(far[1], port);
    const job_t *job = announce(LONG, &reading.handle);
    reading.handle = ends ? reading.handle : 0;
    dn_handler_clear(far[1], CHANNEL);
    assert_int_equal(dn_handler_set(far[1], CHANNEL, tell, NULL), DN_OK);
    readings = times;
    begin_events();
    dn_tag_leave(peer[1], 1);
    assert_true(EVENTS_MAX > events);
    assert_int_equal(job->times, 1);
    dn_disconnect(back);
    return job;
}

static void who_says_that_it_reads_is_kept(void **state)
{
    const job_t *job = leave_who_reads_alone(5 * DN_PATIENCE_TOURS, true);

    assert_int_equal(job->req.status, DN_OK);
    assert_true(4 * limit_ns < tag->patience.waited_ns);
}

static void who_reads_no_more_is_given_up(void **state)
{
    const job_t *job = leave_who_reads_alone(DN_PATIENCE_TOURS, false);

    assert_int_equal(job->req.status, DN_ERR_UNREACH);
    assert_true(3 * limit_ns > tag->patience.waited_ns);
}

/** The last number that the second peer was told by DN_TAG_SO_FAR; or none. */
static uint64_t told;
static const uint64_t told_nothing = UINT64_MAX;

/** dn_handler_fn_t of the second peer. */
static void hear_so_far(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    assert_int_equal(kind, DN_TAG_SO_FAR);
    assert_int_equal(len, sizeof(told));
    memcpy(&told, data, len);
}

/** The second peer asks how far this process is. @return what it is told. */
static uint64_t ask(dn_peer_t *back)
{
    const uint64_t nothing = 0;

    told = told_nothing;
    assert_int_equal(dn_botf(back, CHANNEL, DN_TAG_HOW_FAR, &nothing, sizeof(nothing), NULL, 0), DN_OK);
    for (int i = 0; i < POLLS && told_nothing == told; i++) {
        (void) dn_progress(port);
        (void) dn_progress(far[1]);
    }
    return told;
}

/** dn_comp_fn_t. */
static void on_pulled(dn_comp_t *comp, dn_status_t status)
{
    assert_int_equal(status, DN_OK);
    comp->fn = NULL;
}

/** This process reads memory of the second peer, which asks before and after. */
static void who_is_asked_tells_how_far_it_is(void **state)
{
    static dn_comp_t comp;
    dn_segment_t *segment = NULL;
    dn_key_t key;
    const dn_xfer_t xfer = {.local = received, .key = &key, .len = LONG, .comp = &comp};

    dn_handler_clear(far[1], CHANNEL);
    assert_int_equal(dn_handler_set(far[1], CHANNEL, hear_so_far, NULL), DN_OK);
    dn_peer_t *back = dn_unit_connect(far[1], port);
    assert_int_equal(dn_segment_register(far[1], bytes, LONG, &segment), DN_OK);
    dn_segment_key(segment, &key);
    const uint64_t before = ask(back);
    assert_int_equal(before, dn_peer_moves(peer[1]->peer));
    comp.fn = on_pulled;
    /* By messages, whose pieces this process counts. */
    assert_int_equal(dn_core_pull(peer[1]->peer, &xfer), DN_INPROGRESS);
    for (uint32_t i = 0; i < EVENTS_MAX && NULL != comp.fn; i++) {
        (void) dn_progress(far[1]);
        (void) dn_progress(port);
    }
    assert_null(comp.fn);
    const uint64_t after = ask(back);
    assert_int_equal(after, dn_peer_moves(peer[1]->peer));
    assert_int_not_equal(after, before);
    dn_segment_free(segment);
    dn_disconnect(back);
}

/** This process sends to itself, into a receive that is announced. */
static void pushes_move(void **state)
{
    enum { LOOKS = 1000 };
    static job_t receive;

    peer[0] = dn_tag_join(tag, dn_unit_connect(port, port), &port);
    receive = (job_t){.req.complete = on_complete};
    dn_tag_memory(&receive.req, received, LONG);
    dn_tag_wants(&receive.req, (dn_tag_want_t){.context = head.context, .source = 0, .tag = head.tag});
    dn_tag_recv(tag, &receive.req, peer[0], 0);
    for (int i = 0; i < LOOKS && !peer[0]->offered; i++) {
        (void) dn_progress(port);
    }
    if (!peer[0]->offered) {
        dn_tag_cancel(&receive.req);
        skip(); /* the device maps no memory */
    }
    forward();
    (void) start_send(0, LONG);
    assert_false(peer[0]->offered);
    while (0 == receive.times) {
        (void) dn_progress(port);
        (void) dn_tag_progress(tag);
    }
    assert_true(has_moved(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_of_others_do_not_prolong_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(services_of_others_do_not_prolong_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(peers_share_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(later_messages_have_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(each_peer_is_polled_for, setup, teardown),
        cmocka_unit_test_setup_teardown(who_reads_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(who_says_that_it_reads_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(who_reads_no_more_is_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_asked_tells_how_far_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_served_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_and_pieces_move, setup, teardown),
        cmocka_unit_test_setup_teardown(pushes_move, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
