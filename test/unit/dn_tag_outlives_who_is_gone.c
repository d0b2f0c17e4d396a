/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Processes that end, lie, or are left in the midst of something: requests end once, what has come in full can be received, and the
 * engine keeps nothing of a process that nobody has joined.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dn_unit_tag.h"

enum {
    LONG = 100000,
    CHANNEL = DN_CHAN_USER,
    WHOLE = 1,     /**< tag of a message that comes in full */
    ANNOUNCED = 2, /**< of one that has to be asked for */
    FLOWS = 3,     /**< of one that ends in its midst */
    NEVER = 4,     /**< of one that nobody sends */
    OTHERS = 5,    /**< of those that lie before the last one */
    LAST = 6,      /**< of one that lies behind more messages than a poll reads */
    PATIENCE_S = 60
};

typedef struct job {
    dn_tag_req_t req;
    uint32_t times;
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static uint8_t bytes[LONG];
static uint32_t lost, matters;
/** Shared with the child: 1: it is to send more; 2: it has done so. */
static uint32_t *order;

static void on_complete(dn_tag_req_t *req)
{
    (void) dn_fetch_add_acq_rel(&((job_t *) req)->times, 1);
}

static void on_progress(void *arg)
{
    dn_progress(port);
    dn_tag_progress(tag);
}

static void on_lost(dn_tag_peer_t *peer, int it_matters, void *arg)
{
    (void) dn_fetch_add_acq_rel(&lost, 1);
    matters += 0 != it_matters;
}

/** Source 0 is any peer that was joined. */
static int names(const dn_tag_peer_t *peer, uint32_t context, int32_t source, void *arg)
{
    return NULL != peer->user && 1 == context && 0 == source;
}

static void open_engine(int threads)
{
    const dn_job_t job = {.nlocal = 1, .threads = threads};
    const dn_tag_config_t config = {.limit = {.eager_limit = 1000,
                                              .unexpected_limit = 1 << 20,
                                              .announce = DN_TAG_ANNOUNCES_ALL,
                                              .announce_min = 50000,
                                              .stream = DN_PACE_STREAM_AUTO},
                                    .threads = threads,
                                    .progress = on_progress,
                                    .lost = on_lost,
                                    .names = names,
                                    .no_memory = dn_unit_tag_no_memory};

    lost = matters = 0;
    dn_store_release_u32(order, 0);
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_tag_open(port, CHANNEL, &config, &tag), DN_OK);
}

static int setup(void **state)
{
    open_engine(0);
    return 0;
}

static int setup_with_threads(void **state)
{
    open_engine(1);
    return 0;
}

static int teardown(void **state)
{
    if (NULL != tag) {
        dn_tag_close(tag);
    }
    dn_close(port);
    return 0;
}

/** Progress until that is so. */
#define until(condition)                                   \
    for (const time_t since = time(NULL); !(condition);) { \
        on_progress(NULL);                                 \
        assert_true(time(NULL) - since < PATIENCE_S);      \
    }

static dn_tag_want_t want(uint64_t number)
{
    return (dn_tag_want_t){.context = 1, .source = DN_MATCH_ANY_SOURCE, .tag = number};
}

static bool is_here(uint64_t number)
{
    dn_tag_found_t found;

    return dn_tag_probe(tag, &(dn_tag_want_t){.context = 1, .source = DN_MATCH_ANY_SOURCE, .tag = number},
                        &found);
}

static void start_receive(job_t *job, uint64_t number, size_t len, dn_tag_peer_t *from)
{
    *job = (job_t){.req.complete = on_complete};
    dn_tag_memory(&job->req, bytes, len);
    dn_tag_wants(&job->req, want(number));
    if (NULL != from) {
        job->req.posted.source = 0;
    }
    dn_tag_recv(tag, &job->req, from, 0);
}

/** Send a message as an engine would, in the name of source 0. */
static void tell(dn_peer_t *peer, enum dn_tag_kind kind, const void *message, size_t len)
{
    while (DN_ERR_AGAIN == dn_botf(peer, CHANNEL, kind, message, len, NULL, 0)) {
    }
}

/** A message that has come in full, the beginning of one, and one that has to be asked for. */
static void send_both(dn_peer_t *peer)
{
    const dn_tag_head_t whole = {1, 0, WHOLE};
    dn_tag_rts_t rts = {.head = {1, 0, ANNOUNCED}, .request = 77, .len = LONG};
    const struct {
        dn_tag_flow_t flow;
        uint8_t bytes[8];
    } flow = {.flow = {.head = {1, 0, FLOWS}, .len = 50000}};

    tell(peer, DN_TAG_EAGER, &whole, sizeof(whole));
    tell(peer, DN_TAG_FLOW, &flow, sizeof(flow));
    tell(peer, DN_TAG_RTS_PACKED, &rts, sizeof(rts));
}

/** Nobody has joined the peer whose messages these were, and it is gone. */
static void check_forgotten(void)
{
    static job_t job;

    until(NULL == dn_tag_some_peer(tag));
    assert_int_equal(lost, 1);
    assert_int_equal(matters, 0);
    assert_false(is_here(ANNOUNCED));
    assert_false(is_here(FLOWS));
    /* Its device has freed it meanwhile. */
    for (int i = 0; i < 100000; i++) {
        on_progress(NULL);
    }
    start_receive(&job, WHOLE, 0, NULL);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, DN_OK);
}

static void ports_that_are_closed_are_forgotten(void **state)
{
    const dn_job_t far_job = {.pid = 1, .nlocal = 2};
    dn_port_t *far = NULL;

    assert_int_equal(dn_open(dn_device_name(0), &far_job, NULL, &far), DN_OK);
    dn_peer_t *peer = dn_unit_connect(far, port);
    send_both(peer);
    until(is_here(ANNOUNCED));
    dn_disconnect(peer);
    dn_close(far);
    check_forgotten();
}

/** How a process is reached. */
typedef struct address {
    size_t len;
    uint8_t bytes[DN_ADDRESS_MAX];
} address_t;

/** Many messages, the one of LAST behind all others. */
static void send_more(dn_peer_t *peer)
{
    enum { MANY = 200 };

    for (int i = 0; i <= MANY; i++) {
        const dn_tag_head_t head = {1, 0, MANY == i ? LAST : OTHERS};

        tell(peer, DN_TAG_EAGER, &head, sizeof(head));
    }
    dn_store_release_u32(order, 2);
}

/** A process that sends what send_both() does, and more when it is told to. */
static pid_t start_child(address_t *address)
{
    int way[2];

    assert_int_equal(pipe(way), 0);
    const pid_t child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        alarm(3 * PATIENCE_S); /* its parent may have failed */
        const dn_job_t far_job = {.pid = 1, .nlocal = 2};
        address_t own = {.len = sizeof(own.bytes)};
        dn_port_t *far = NULL;

        if (DN_OK != dn_open(dn_device_name(0), &far_job, NULL, &far)
            || DN_OK != dn_address(far, own.bytes, &own.len)
            || sizeof(own) != (size_t) write(way[1], &own, sizeof(own))) {
            _exit(1);
        }
        dn_peer_t *peer = dn_unit_connect(far, port);
        send_both(peer);
        for (;;) {
            (void) dn_progress(far);
            if (1 == dn_load_acquire_u32(order)) {
                send_more(peer);
            }
        }
    }
    close(way[1]);
    assert_int_equal(read(way[0], address, sizeof(*address)), sizeof(*address));
    close(way[0]);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void processes_that_die_are_forgotten(void **state)
{
    address_t address;
    const pid_t child = start_child(&address);

    until(is_here(ANNOUNCED));
    end_child(child);
    check_forgotten();
}

/** The engine ends, and takes its first peer to leave it. Another thread, which drives the port, finds the peer lost just then. */
static void who_is_lost_as_it_is_left_is_freed_once(void **state)
{
    address_t address;
    const pid_t child = start_child(&address);

    until(is_here(ANNOUNCED));
    dn_tag_peer_t *peer = dn_tag_some_peer(tag);
    assert_non_null(peer);
    end_child(child);
    until(NULL == dn_tag_some_peer(tag));
    assert_ptr_equal(tag->gone, peer);
    dn_tag_leave(peer, 0);
    assert_ptr_equal(tag->gone, peer);
    assert_null(peer->next_gone);
}

static dn_tag_peer_t *join(const address_t *address)
{
    dn_peer_t *hot = NULL;

    assert_int_equal(dn_connect(port, address->bytes, address->len, &hot), DN_OK);
    dn_tag_peer_t *peer = dn_tag_join(tag, hot, &port);
    assert_non_null(peer);
    return peer;
}

static void check_ended(job_t *job, dn_tag_peer_t *peer)
{
    for (int i = 0; i < 1000; i++) {
        on_progress(NULL);
    }
    assert_int_equal(job->times, 0);
    assert_int_equal(lost, matters);
    dn_tag_leave(peer, 0);
    assert_int_equal(job->times, 1);
    assert_int_equal(job->req.status, DN_ERR_UNREACH);
}

/** A receiver waits for bytes, that it has asked for or that flow, when their sender dies. */
static void wait_for_bytes_of_the_dead(uint64_t number)
{
    static job_t job;
    address_t address;
    const pid_t child = start_child(&address);
    dn_tag_peer_t *peer = join(&address);

    until(is_here(ANNOUNCED));
    start_receive(&job, number, LONG, NULL);
    end_child(child);
    until(0 != lost);
    assert_int_equal(matters, 1);
    check_ended(&job, peer);
}

static void who_waits_for_bytes_of_the_dead_is_told(void **state)
{
    wait_for_bytes_of_the_dead(ANNOUNCED);
}

static void who_waits_for_what_flows_from_the_dead_is_told(void **state)
{
    wait_for_bytes_of_the_dead(FLOWS);
}

/** @param[in] any  The receive takes a message of any source. */
static void wait_for_a_message_of_the_dead(bool any)
{
    static job_t job;
    address_t address;
    const pid_t child = start_child(&address);
    dn_tag_peer_t *peer = join(&address);

    until(is_here(ANNOUNCED));
    start_receive(&job, NEVER, 8, any ? NULL : peer);
    end_child(child);
    until(0 != lost);
    assert_int_equal(matters, any ? 0 : 1);
    dn_tag_cancel(&job.req);
    assert_int_equal(job.times, 1);
    dn_tag_leave(peer, 0);
}

static void who_waits_for_the_dead_is_told(void **state)
{
    wait_for_a_message_of_the_dead(false);
}

static void who_waits_for_anybody_waits_on(void **state)
{
    wait_for_a_message_of_the_dead(true);
}

/** A receiver waits, and its message lies unread when the sender is lost: it gets the message. */
static void what_the_dead_has_sent_is_read_first(void **state)
{
    static job_t job;
    address_t address;
    const pid_t child = start_child(&address);
    dn_tag_peer_t *peer = join(&address);

    until(is_here(ANNOUNCED));
    start_receive(&job, LAST, 0, peer);
    dn_store_release_u32(order, 1);
    while (2 != dn_load_acquire_u32(order)) {
    }
    end_child(child);
    assert_int_equal(dn_peer_check(peer->peer), DN_ERR_UNREACH);
    assert_int_equal(lost, 1);
    assert_int_equal(matters, 0);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, DN_OK);
    dn_tag_leave(peer, 0);
}

/** A peer that was lost when nobody waited for it. */
static dn_tag_peer_t *lose_one(void)
{
    address_t address;
    const pid_t child = start_child(&address);
    dn_tag_peer_t *peer = join(&address);

    until(is_here(ANNOUNCED));
    end_child(child);
    until(0 != lost);
    assert_int_equal(matters, 0);
    lost = 0;
    return peer;
}

/** A receiver begins to wait for a message after its sender was lost. */
static void who_waits_later_for_the_dead_is_told(void **state)
{
    static job_t job;
    dn_tag_peer_t *peer = lose_one();

    start_receive(&job, WHOLE, 0, peer);
    assert_int_equal(job.times, 1);
    start_receive(&job, NEVER, 8, NULL);
    dn_tag_cancel(&job.req);
    assert_int_equal(lost, 0);
    start_receive(&job, NEVER, 8, peer);
    assert_int_equal(lost, 1);
    assert_int_equal(matters, 1);
    dn_tag_cancel(&job.req);
    assert_int_equal(job.times, 1);
    dn_tag_leave(peer, 0);
}

static void who_looks_for_messages_of_the_dead_is_told(void **state)
{
    dn_tag_want_t wanted = want(WHOLE);
    dn_tag_peer_t *peer = lose_one();

    wanted.source = 0;
    dn_tag_await(tag, &wanted, peer);
    wanted.tag = NEVER;
    dn_tag_await(tag, &wanted, NULL);
    assert_int_equal(lost, 0);
    dn_tag_await(tag, &wanted, peer);
    assert_int_equal(lost, 1);
    assert_int_equal(matters, 1);
    dn_tag_leave(peer, 0);
}

/** A receiver takes a message whose sender was lost before; others send to it. */
static void ask_or_send_to_the_dead(uint64_t number)
{
    const dn_tag_head_t head = {1, 0, 3};
    static job_t job, sends;
    dn_tag_peer_t *peer = lose_one();

    start_receive(&job, number, LONG, NULL);
    until(0 != lost);
    assert_int_equal(matters, 1);
    for (size_t n = 8; n <= LONG; n += LONG - 8) {
        sends = (job_t){.req.complete = on_complete};
        dn_tag_memory(&sends.req, bytes, n);
        assert_int_equal(dn_tag_send(&sends.req, peer, &head, 0), DN_ERR_UNREACH);
        assert_int_equal(sends.times, 0);
        assert_int_not_equal(dn_tag_inject(peer, &head, bytes, 8), DN_OK);
    }
    check_ended(&job, peer);
}

static void who_asks_or_sends_to_the_dead_is_told(void **state)
{
    ask_or_send_to_the_dead(ANNOUNCED);
}

static void who_takes_what_flowed_from_the_dead_is_told(void **state)
{
    ask_or_send_to_the_dead(FLOWS);
}

static uint32_t late;

/** dn_handler_fn_t. */
static void end_transfer(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    dn_tag_transfers(arg, -1);
    late++;
}

/** A transfer of a peer that was left ends while the engine is closed. */
static void engines_wait_for_transfers(void **state)
{
    dn_tag_peer_t *peer = dn_tag_join(tag, dn_unit_connect(port, port), &port);
    dn_peer_t *self = dn_unit_connect(port, port);

    late = 0;
    assert_int_equal(dn_handler_set(port, CHANNEL - 1, end_transfer, peer), DN_OK);
    dn_tag_transfers(peer, 1);
    assert_int_equal(dn_botf(self, CHANNEL - 1, 0, NULL, 0, NULL, 0), DN_OK);
    dn_tag_leave(peer, 0);
    assert_int_equal(late, 0);
    dn_tag_close(tag);
    tag = NULL;
    assert_int_equal(late, 1);
    dn_handler_clear(port, CHANNEL - 1);
    dn_disconnect(self);
}

static dn_tag_announce_t heard;
static uint32_t announcements;

/** dn_handler_fn_t. */
static void hear(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    if (DN_TAG_ANNOUNCE == kind && sizeof(heard) == len) {
        memcpy(&heard, data, len);
        announcements++;
    }
}

/** A sender says that it takes announced receives, and claims none: the claims come back. */
static void claims_come_back_from_who_lies(void **state)
{
    const dn_job_t far_job = {.pid = 1, .nlocal = 2};
    dn_port_t *far = NULL;
    static job_t job;

    announcements = 0;
    assert_int_equal(dn_open(dn_device_name(0), &far_job, NULL, &far), DN_OK);
    assert_int_equal(dn_handler_set(far, CHANNEL, hear, NULL), DN_OK);
    dn_tag_peer_t *peer = dn_tag_join(tag, dn_unit_connect(port, far), &port);
    dn_peer_t *back = dn_unit_connect(far, port);
    for (uint32_t i = 0; i < 1200; i++) {
        start_receive(&job, ANNOUNCED, LONG, peer);
        for (int polls = 0; i == announcements && polls < 100000; polls++) {
            on_progress(NULL);
            (void) dn_progress(far);
        }
        assert_int_equal(announcements, i + 1);
        const dn_tag_takes_t takes = {.receiver = heard.request, .request = 1, .len = LONG};
        const dn_tag_pushed_t pushed = {.receiver = heard.request, .done = 1};
        tell(back, DN_TAG_TAKES, &takes, sizeof(takes));
        tell(back, DN_TAG_PUSHED, &pushed, sizeof(pushed));
        until(1 == job.times);
    }
    dn_tag_leave(peer, 0);
    dn_disconnect(back);
    dn_close(far);
}

static uint32_t stop, rounds;

static void *drive(void *arg)
{
    while (0 == dn_load_acquire_u32(&stop)) {
        on_progress(NULL);
        (void) dn_fetch_add_acq_rel(&rounds, 1);
    }
    return NULL;
}

/** Another thread drives the port while a peer is left. */
static void requests_end_once_beside_a_thread(void **state)
{
    enum { ROUNDS = 300, SENDS = 16 };
    static job_t sends[SENDS], receives[SENDS];
    /* The port keeps the way to itself. */
    dn_peer_t *self = dn_unit_connect(port, port);
    pthread_t thread;

    dn_store_release_u32(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, drive, NULL), 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        dn_tag_peer_t *peer = dn_tag_join(tag, dn_unit_connect(port, port), &port);

        for (uint64_t i = 0; i < SENDS; i++) {
            const dn_tag_head_t head = {1, 0, (round * SENDS + i) << 8};

            sends[i] = (job_t){.req.complete = on_complete};
            dn_tag_memory(&sends[i].req, bytes, 0 == i % 2 ? 8 : LONG);
            assert_int_equal(dn_tag_send(&sends[i].req, peer, &head, 1), DN_OK);
        }
        for (uint64_t i = 0; i < SENDS; i++) {
            receives[i] = (job_t){.req.complete = on_complete};
            dn_tag_layout(&receives[i].req, NULL, 0);
            dn_tag_wants(&receives[i].req, want((round * SENDS + i) << 8));
            dn_tag_recv(tag, &receives[i].req, NULL, 0);
        }
        dn_tag_leave(peer, 0);
        for (int i = 0; i < SENDS; i++) {
            assert_int_equal(dn_load_acquire_u32(&sends[i].times), 1);
            dn_tag_cancel(&receives[i].req);
        }
        for (int i = 0; i < SENDS; i++) {
            until(0 != dn_load_acquire_u32(&receives[i].times));
            assert_int_equal(dn_load_acquire_u32(&receives[i].times), 1);
        }
    }
    dn_store_release_u32(&stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dn_disconnect(self);
}

static dn_status_t (*send_answer)(dn_peer_t *, unsigned, unsigned, const void *, size_t, const void *,
                                  size_t);
static pthread_t driver;
static uint32_t answers;

/** dn_peer_ops_t::botf: another thread begins to drive the port, whose device looks at all peers. */
static dn_status_t answer_late(dn_peer_t *peer, unsigned channel, unsigned kind, const void *head,
                               size_t head_len, const void *body, size_t body_len)
{
    enum { ROUNDS = 1000 };

    answers++;
    peer->ops.botf = send_answer;
    assert_int_equal(pthread_create(&driver, NULL, drive, NULL), 0);
    while (ROUNDS > dn_load_acquire_u32(&rounds)) {
    }
    assert_int_equal(dn_load_acquire_u32(&lost), 0);
    return send_answer(peer, channel, kind, head, head_len, body, body_len);
}

/** A sender that nobody has joined leaves while a thread answers it: it is forgotten after that. */
static void who_leaves_is_there_while_it_is_answered(void **state)
{
    const dn_job_t far_job = {.pid = 1, .nlocal = 2};
    const struct {
        dn_tag_head_t head;
        uint64_t request;
    } sync = {{1, 0, WHOLE}, 77};
    dn_port_t *far = NULL;
    static job_t job;

    answers = rounds = stop = 0;
    assert_int_equal(dn_open(dn_device_name(0), &far_job, NULL, &far), DN_OK);
    dn_peer_t *back = dn_unit_connect(far, port);
    tell(back, DN_TAG_SYNC, &sync, sizeof(sync));
    until(is_here(WHOLE));
    dn_peer_t *sender = dn_tag_some_peer(tag)->peer;
    send_answer = sender->ops.botf;
    sender->ops.botf = answer_late;
    dn_disconnect(back);
    dn_close(far);
    start_receive(&job, WHOLE, 0, NULL);
    until(0 != dn_load_acquire_u32(&lost) && 0 != dn_load_acquire_u32(&job.times));
    dn_store_release_u32(&stop, 1);
    assert_int_equal(pthread_join(driver, NULL), 0);
    assert_int_equal(answers, 1);
    assert_int_equal(job.times, 1);
    assert_int_equal(job.req.status, DN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ports_that_are_closed_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_that_die_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_lost_as_it_is_left_is_freed_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_bytes_of_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_what_flows_from_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_anybody_waits_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_dead_has_sent_is_read_first, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_later_for_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_later_for_the_dead_is_told, setup_with_threads, teardown),
        cmocka_unit_test_setup_teardown(who_looks_for_messages_of_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_or_sends_to_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_takes_what_flowed_from_the_dead_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(engines_wait_for_transfers, setup, teardown),
        cmocka_unit_test_setup_teardown(claims_come_back_from_who_lies, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_end_once_beside_a_thread, setup_with_threads, teardown),
        cmocka_unit_test_setup_teardown(who_leaves_is_there_while_it_is_answered, setup_with_threads,
                                        teardown),
    };

    order = mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == order) {
        return 1;
    }
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
