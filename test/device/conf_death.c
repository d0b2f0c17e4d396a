/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "dn_prog.h"

/** An answer of so many bytes fills more than one message: a device's thread that serves a peer leaves it, and what comes behind it, to the
 * handlers of the program. Who does not progress gives none. */
enum { LONG_BYTES = 1 << 20 };

static void wait_dead(const dn_world_t *world, int rank)
{
    while (!dn_world_is_dead(world, rank)) {
        sched_yield();
    }
}

/** Every operation says that the peer is gone, and disconnecting is all that is left. */
static void check_gone(dn_world_t *world, dn_peer_t *peer, const dn_key_t *key)
{
    uint8_t data[8] = {0};
    dn_window_t window;
    const dn_xfer_t xfer = {.local = data, .key = key, .len = 8};
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .key = key};

    dn_check_equal(dn_peer_check(peer), DN_ERR_UNREACH);
    dn_check_equal(dn_botf(peer, DN_WORLD_CHAN, 0, data, 8, NULL, 0), DN_ERR_UNREACH);
    dn_check_equal(dn_botf_reserve(peer, 8, &window), DN_ERR_UNREACH);
    dn_check_equal(dn_aotf(peer, 0, 0, 8), DN_ERR_UNREACH);
    dn_check_equal(dn_push(peer, &xfer), DN_ERR_UNREACH);
    dn_check_equal(dn_pull(peer, &xfer), DN_ERR_UNREACH);
    dn_check_equal(dn_atomic(peer, &amo), DN_ERR_UNREACH);
    dn_check_equal(dn_fence(peer), DN_ERR_UNREACH);
    dn_check_equal(dn_flush(peer), DN_ERR_UNREACH);
    dn_progress(world->port);
    dn_disconnect(peer);
}

static void drop_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
}

/** Both connected; an allocated and a registered segment of rank 1 are on the board. */
static void start_with_segments(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    dn_segment_t *segment[2];

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, drop_message, NULL), DN_OK);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(memory), &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment[1]), DN_OK);
    for (int i = 0; i < 2; i++) {
        dn_segment_key(segment[i], &world->me->key[i]);
    }
    dn_world_barrier(world);
}

/** Likewise; rank 1 answers nothing any more, and dies when rank 0 posts a 1. */
static void start_with_deaf_peer(dn_world_t *world)
{
    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_world_die(world);
    }
    dn_world_await(world, 1, 0, 1);
}

void a_killed_peer_is_found_gone_when_asked(dn_world_t *world)
{
    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_die(world);
    }
    wait_dead(world, 1);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_peer_t *peer = NULL;
    const dn_board_seat_t *seat = &world->board->seat[1];
    dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &peer), DN_ERR_UNREACH);
    dn_close(world->port);
}

/** Rank 1 takes nothing any more: messages fill its ring, and then it is found gone. */
static void send_until_gone(dn_world_t *world)
{
    uint8_t data[400] = {0};
    dn_status_t status = DN_OK;

    while (DN_OK == status || DN_ERR_AGAIN == status) {
        status = dn_botf(world->peer[1], DN_WORLD_CHAN, 0, data, sizeof(data), NULL, 0);
        dn_progress(world->port);
    }
    dn_check_equal(status, DN_ERR_UNREACH);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
}

void sending_to_a_killed_peer_ends(dn_world_t *world)
{
    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_die(world);
    }
    wait_dead(world, 1);
    send_until_gone(world);
    dn_close(world->port);
}

void a_full_ring_of_a_killed_peer_ends(dn_world_t *world)
{
    uint8_t data[400] = {0};
    dn_status_t status = DN_OK;
    unsigned refusals = 0;

    start_with_deaf_peer(world);
    while (refusals < 100) {
        status = dn_botf(world->peer[1], DN_WORLD_CHAN, 0, data, sizeof(data), NULL, 0);
        dn_check(DN_OK == status || DN_ERR_AGAIN == status);
        refusals = DN_OK == status ? 0 : refusals + 1;
    }
    dn_world_post(world, 0, 1);
    wait_dead(world, 1);
    while (DN_OK == status || DN_ERR_AGAIN == status) {
        dn_window_t window;
        status = dn_botf_reserve(world->peer[1], 8, &window);
        if (DN_OK == status) {
            dn_botf_kick(world->peer[1], &window, DN_WORLD_CHAN, 0, 8);
        }
        dn_progress(world->port);
    }
    dn_check_equal(status, DN_ERR_UNREACH);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_close(world->port);
}

enum { OPERATIONS = 40, PART = 20000 };

/** Every kind of operation, on both kinds of segment. @return what it gave at once. */
static dn_status_t start_one(dn_world_t *world, uint8_t *data, unsigned i, dn_world_comp_t *ended)
{
    const dn_key_t *key = &world->board->seat[1].key[i % 2];
    const dn_xfer_t xfer = {
        .local = data + i * PART, .key = key, .roff = i * PART, .len = PART, .comp = &ended->comp};
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .key = key, .comp = &ended->comp};

    *ended = dn_world_comp();
    switch (i / 2 % 3) {
    case 0:
        return dn_push(world->peer[1], &xfer);
    case 1:
        return dn_pull(world->peer[1], &xfer);
    default:
        return dn_atomic(world->peer[1], &amo);
    }
}

void transfers_with_a_killed_peer_end(dn_world_t *world)
{
    static dn_world_comp_t ended[OPERATIONS];
    static dn_status_t status[OPERATIONS];
    static uint8_t data[OPERATIONS * PART];

    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_die(world);
    }
    /* The other progresses and dies somewhere among these. A CMA copy may find it gone: that is logged. */
    dn_test_log.expected = 1;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (OPERATIONS / 2 == i) {
            dn_world_post(world, 0, 1);
        }
        do {
            status[i] = start_one(world, data, i, &ended[i]);
            dn_progress(world->port);
        } while (DN_ERR_AGAIN == status[i]);
        dn_check(DN_OK == status[i] || DN_INPROGRESS == status[i] || DN_ERR_UNREACH == status[i]);
    }
    wait_dead(world, 1);
    dn_status_t flushed;
    while (DN_INPROGRESS == (flushed = dn_flush(world->peer[1]))) {
        dn_peer_check(world->peer[1]);
    }
    dn_check(DN_OK == flushed || DN_ERR_UNREACH == flushed);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        dn_check_equal(ended[i].signals, DN_INPROGRESS == status[i]);
        dn_check(0 == ended[i].signals || DN_OK == ended[i].status || DN_ERR_UNREACH == ended[i].status);
    }
    dn_test_log.expected = 0;
    dn_close(world->port);
}

static uint64_t heard[DN_WORLD_MAX];

static void count_source(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    dn_check_bytes(data, len, tag);
    heard[tag]++;
}

void others_go_on_when_one_is_killed(dn_world_t *world)
{
    uint8_t data[300];
    const int victim = 3;

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_source, NULL), DN_OK);
    dn_world_barrier(world);
    dn_test_fill(data, sizeof(data), (uint64_t) world->rank);
    for (unsigned i = 0; i < 300; i++) {
        if (victim == world->rank && 100 == i) {
            dn_world_die(world);
        }
        for (int k = 0; k < world->size; k++) {
            if (k != world->rank && k != victim) {
                dn_world_send(world, world->peer[k], DN_WORLD_CHAN, (unsigned) world->rank, data,
                              sizeof(data));
            }
        }
    }
    for (int k = 0; k < victim; k++) {
        while (k != world->rank && heard[k] < 300) {
            dn_world_progress(world);
        }
    }
    while (!dn_world_is_dead(world, victim)) {
        /* It may still wait for room in our ring. */
        dn_world_progress(world);
    }
    dn_check_equal(dn_peer_check(world->peer[victim]), DN_ERR_UNREACH);
    for (int i = 0; i < 100; i++) {
        dn_progress(world->port);
    }
    /* Whole messages or none of the one that was killed; all that it kicked, since they were in our memory. */
    dn_check(heard[victim] <= 100);
    dn_disconnect(world->peer[victim]);
    world->peer[victim] = NULL;
    for (int k = 0; k < victim; k++) {
        if (k != world->rank) {
            dn_world_fence(world, world->peer[k]);
        }
    }
    dn_world_post(world, 1, 1);
    for (int k = 0; k < victim; k++) {
        dn_world_await(world, k, 1, 1);
    }
    dn_close(world->port);
}

void sending_to_a_closed_port_ends(dn_world_t *world)
{
    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_close(world, 0);
        dn_world_await(world, 0, 1, 1);
        return;
    }
    dn_world_await(world, 1, 0, 1);
    send_until_gone(world);
    dn_close(world->port);
    dn_world_post(world, 1, 1);
}

/** Fill the ring of rank 1, and start an atomic operation that waits for room, unless the device runs atomic operations by itself. */
static dn_status_t start_behind_messages(dn_world_t *world, uint64_t *old)
{
    const dn_amo_t amo = {
        .op = DN_AMO_ADD, .width = 8, .operand = 1, .result = old, .key = &world->board->seat[1].key[1]};
    uint64_t data = 0;
    dn_status_t status = DN_OK;

    for (unsigned refusals = 0; refusals < 100; refusals += DN_OK != status) {
        status = dn_botf(world->peer[1], DN_WORLD_CHAN, 0, &data, sizeof(data), NULL, 0);
        dn_check(DN_OK == status || DN_ERR_AGAIN == status);
    }
    status = DN_ERR_AGAIN;
    for (unsigned i = 0; i < 100 && DN_ERR_AGAIN == status; i++) {
        status = dn_atomic(world->peer[1], &amo);
    }
    dn_check(DN_OK == status || DN_INPROGRESS == status || DN_ERR_AGAIN == status);
    return status;
}

void a_flush_to_a_closed_port_tells(dn_world_t *world)
{
    uint64_t old = UINT64_MAX;

    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_world_close(world, 1);
        dn_world_await(world, 0, 1, 1);
        return;
    }
    dn_world_await(world, 1, 0, 1);
    dn_status_t status = start_behind_messages(world, &old);
    const int started = DN_ERR_AGAIN != status;
    dn_world_post(world, 0, 1);
    dn_world_sleep(world, 1, 1, 1);
    while (DN_INPROGRESS == (status = dn_flush(world->peer[1]))) {
        sched_yield();
    }
    /* It may have taken effect, but it has not ended in silence. */
    dn_check(DN_ERR_UNREACH == status || (DN_OK == status && (!started || UINT64_MAX != old)));
    dn_close(world->port);
    dn_world_post(world, 1, 1);
}

/** Some operations that go by messages: pieces of 8 bytes on one side, more than fit into the ring at once; and an atomic one. */
static void start_by_messages(dn_world_t *world, uint8_t *data, dn_prog_t *prog, dn_world_comp_t ended[3])
{
    const dn_prog_use_t use = {.prog = prog, .count = 1};
    const dn_sg_t sg = {.use = &use};
    const dn_key_t *key = &world->board->seat[1].key[1];
    const dn_xfer_t pull = {
        .local = data, .key = key, .remote_sg = &sg, .len = LONG_BYTES / 2, .comp = &ended[0].comp};
    const dn_xfer_t push = {.local = data + LONG_BYTES / 2,
                            .key = key,
                            .remote_sg = &sg,
                            .roff = 8,
                            .len = LONG_BYTES / 2,
                            .comp = &ended[1].comp};
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .key = key, .operand = 1, .comp = &ended[2].comp};

    for (int i = 0; i < 3; i++) {
        ended[i] = dn_world_comp();
    }
    for (int i = 0; i < 3; i++) {
        dn_status_t status;
        do {
            status = 0 == i   ? dn_pull(world->peer[1], &pull)
                     : 1 == i ? dn_push(world->peer[1], &push)
                              : dn_atomic(world->peer[1], &amo);
            dn_progress(world->port);
        } while (DN_ERR_AGAIN == status);
        dn_check(DN_OK == status || DN_INPROGRESS == status);
    }
}

/** Rank 1 leaves rank 0 twice: as it answers, some answers may wait for room in the ring of rank 0; and before it sees the operations. */
void who_was_left_still_gets_answers(dn_world_t *world)
{
    enum { TIMES = 2, POLLS = 200 };
    static const dn_prog_op_t op = {.kind = DN_PROG_RUN, .len = 8, .count = LONG_BYTES / 16, .stride = 16};
    static uint8_t data[LONG_BYTES];
    dn_prog_t *prog = NULL;

    start_with_segments(world);
    dn_check_equal(dn_prog_create(&op, 1, &prog), DN_OK);
    for (uint64_t time = 1; time <= TIMES; time++) {
        if (0 == world->rank) {
            dn_world_comp_t ended[3];
            start_by_messages(world, data, prog, ended);
            dn_world_post(world, 0, time);
            dn_world_sleep(world, 1, 0, time);
            dn_world_flush(world, world->peer[1]);
            for (int i = 0; i < 3; i++) {
                dn_check(0 == ended[i].signals || DN_OK == ended[i].status);
            }
            dn_world_post(world, 1, time);
        } else {
            dn_world_sleep(world, 0, 0, time);
            for (int i = 0; 1 == time && i < POLLS; i++) {
                dn_progress(world->port);
            }
            dn_disconnect(world->peer[0]);
            world->peer[0] = NULL;
            dn_world_post(world, 0, time);
            dn_world_await(world, 0, 1, time);
            dn_world_connect_to(world, 0);
        }
    }
    dn_prog_free(prog);
    dn_world_stop(world);
}

void closing_drops_what_is_in_flight(dn_world_t *world)
{
    static dn_world_comp_t ended[OPERATIONS];
    static uint8_t data[OPERATIONS * PART];

    start_with_segments(world);
    if (0 == world->rank) {
        unsigned before = 0, after = 0;
        for (unsigned i = 0; i < OPERATIONS; i++) {
            (void) start_one(world, data, i, &ended[i]);
        }
        for (unsigned i = 0; i < OPERATIONS; i++) {
            before += ended[i].signals;
        }
        dn_close(world->port);
        world->port = NULL;
        for (unsigned i = 0; i < OPERATIONS; i++) {
            after += ended[i].signals;
        }
        dn_check_equal(after, before);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 1, 0, 1);
    } else {
        /* Asked by nobody any more, and not disturbed by that. */
        dn_test_log.expected = 1;
        dn_world_await(world, 0, 0, 1);
        for (int i = 0; i < 1000; i++) {
            dn_progress(world->port);
        }
        dn_check_equal(dn_peer_check(world->peer[0]), DN_ERR_UNREACH);
        dn_disconnect(world->peer[0]);
        dn_world_close(world, 0);
    }
}

/** An operation whose completion starts the next one towards the same peer. */
typedef struct retry {
    dn_world_comp_t counted;
    dn_comp_t comp; /**< of the first */
    dn_peer_t *peer;
    dn_status_t status; /**< of the first */
    dn_status_t next;   /**< what starting the second gave */
    dn_xfer_t xfer;
} retry_t;

static void start_again(dn_comp_t *comp, dn_status_t status)
{
    retry_t *retry = (retry_t *) ((char *) comp - offsetof(retry_t, comp));

    retry->status = status;
    retry->xfer.comp = &retry->counted.comp;
    retry->next = dn_pull(retry->peer, &retry->xfer);
}

enum { RETRIES = 6 };

static retry_t retry[RETRIES];

/** PULLs from a peer and PUSHes to it that only its program can end, and it does not progress. */
static void start_retries(dn_world_t *world, dn_peer_t *peer)
{
    static uint8_t pulled[LONG_BYTES], pushed[100];
    dn_peer_attr_t attr;

    dn_peer_attr(peer, &attr);
    dn_check(sizeof(pulled) > attr.botf_max);
    for (int i = 0; i < RETRIES; i++) {
        const int pull = 0 == i % 2;
        retry[i] = (retry_t){.counted = dn_world_comp(), .comp = {start_again}, .peer = peer};
        retry[i].xfer = (dn_xfer_t){.local = pull ? pulled : pushed,
                                    .key = &world->board->seat[1].key[1],
                                    .len = pull ? sizeof(pulled) : sizeof(pushed),
                                    .comp = &retry[i].comp};
        dn_status_t status;
        do {
            status = pull ? dn_pull(peer, &retry[i].xfer) : dn_push(peer, &retry[i].xfer);
            dn_progress(world->port);
        } while (DN_ERR_AGAIN == status);
        dn_check_equal(status, DN_INPROGRESS);
    }
}

/** All have ended, and what they started was refused. */
static void check_retries(void)
{
    for (int i = 0; i < RETRIES; i++) {
        dn_check_equal(retry[i].status, DN_ERR_UNREACH);
        dn_check_equal(retry[i].next, DN_ERR_UNREACH);
        dn_check_equal(retry[i].counted.signals, 0);
    }
}

void completions_at_disconnection_find_the_peer_gone(dn_world_t *world)
{
    world->config.cma = 0;
    world->config.network_rma = 0;
    start_with_segments(world);
    if (0 == world->rank) {
        start_retries(world, world->peer[1]);
        dn_disconnect(world->peer[1]);
        world->peer[1] = NULL;
        check_retries();
        dn_world_post(world, 0, 1);
    } else {
        dn_world_sleep(world, 0, 0, 1);
    }
    dn_world_stop(world);
}

static dn_peer_t *visitor;

static void note_visitor(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
    visitor = src;
}

void completions_after_a_visitor_left_find_it_gone(dn_world_t *world)
{
    static uint8_t memory[LONG_BYTES];
    dn_segment_t *segment = NULL;

    world->config.cma = 0;
    world->config.network_rma = 0;
    dn_world_open(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, note_visitor, NULL), DN_OK);
    if (1 == world->rank) {
        dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment), DN_OK);
        dn_segment_key(segment, &world->me->key[1]);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        while (NULL == visitor) {
            dn_world_progress(world);
        }
        dn_world_send(world, visitor, DN_WORLD_CHAN, 0, "here", 4);
        dn_world_fence(world, visitor);
        dn_world_await(world, 1, 0, 1);
        start_retries(world, visitor);
        dn_world_post(world, 0, 1);
        while (DN_OK == retry[RETRIES - 1].status) {
            dn_world_progress(world);
        }
        check_retries();
        dn_world_post(world, 0, 2);
    } else {
        const dn_board_seat_t *seat = &world->board->seat[0];
        dn_peer_t *peer = NULL;
        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &peer), DN_OK);
        dn_world_send(world, peer, DN_WORLD_CHAN, 0, "here", 4);
        dn_world_fence(world, peer);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_disconnect(peer);
        dn_world_sleep(world, 0, 0, 2);
    }
    dn_world_stop(world);
}

/** Find rank 1 gone, from another thread than the one that holds a window to it. */
static void *find_gone(void *arg)
{
    dn_world_t *world = arg;

    wait_dead(world, 1);
    dn_check_equal(dn_peer_check(world->peer[1]), DN_ERR_UNREACH);
    return NULL;
}

void a_window_can_be_kicked_after_its_peer_was_lost(dn_world_t *world)
{
    dn_window_t window = {NULL, 0, 0};
    dn_status_t status;
    pthread_t thread;

    world->job.threads = 1;
    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_die(world);
    }
    while (DN_ERR_AGAIN == (status = dn_botf_reserve(world->peer[1], 500, &window))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
    dn_world_post(world, 0, 1);
    dn_check_equal(pthread_create(&thread, NULL, find_gone, world), 0);
    dn_check_equal(pthread_join(thread, NULL), 0);
    memset(window.data, 0xee, window.len);
    dn_botf_kick(world->peer[1], &window, DN_WORLD_CHAN, 0, window.len);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_close(world->port);
}

/** What was heard of losses, and of a transfer when it was. */
typedef struct news {
    unsigned count;
    const dn_peer_t *of;
    const dn_world_comp_t *transfer;
    unsigned signals;
} news_t;

static void note_news(dn_peer_t *peer, void *arg)
{
    news_t *news = arg;

    news->count++;
    news->of = peer;
    news->signals = news->transfer->signals;
}

void a_closed_port_is_told_at_the_first_message(dn_world_t *world)
{
    dn_world_comp_t none = dn_world_comp();
    news_t news = {.transfer = &none};
    uint64_t word = 0;

    start_with_segments(world);
    if (1 == world->rank) {
        dn_world_close(world, 0);
        return;
    }
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, note_news, &news), DN_OK);
    /* No progress: this process does not know of the close when it sends. */
    dn_world_sleep(world, 1, 0, 1);
    while (DN_ERR_AGAIN == dn_botf(world->peer[1], DN_WORLD_CHAN, 0, &word, sizeof(word), NULL, 0)) {
        dn_progress(world->port);
    }
    while (0 == news.count) {
        dn_progress(world->port);
    }
    dn_check(news.of == world->peer[1]);
    dn_close(world->port);
}

void a_closed_port_is_told_whose_messages_wait(dn_world_t *world)
{
    enum { DEAF_CHAN = DN_WORLD_CHAN + 1 };
    dn_world_comp_t none = dn_world_comp();
    news_t news = {.transfer = &none};
    uint8_t data[100];

    start_with_segments(world);
    dn_test_fill(data, sizeof(data), 0);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DEAF_CHAN, 0, data, sizeof(data));
        dn_world_fence(world, world->peer[0]);
        dn_world_close(world, 0);
        return;
    }
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, note_news, &news), DN_OK);
    dn_world_await(world, 1, 0, 1);
    while (0 == news.count) {
        (void) dn_botf(world->peer[1], DN_WORLD_CHAN, 0, data, sizeof(data), NULL, 0);
        dn_progress(world->port);
    }
    dn_check_equal(heard[0], 0);
    dn_check_equal(dn_handler_set(world->port, DEAF_CHAN, count_source, NULL), DN_OK);
    while (0 == heard[0]) {
        dn_progress(world->port);
    }
    dn_check_equal(heard[0], 1);
    dn_close(world->port);
}

void a_loss_is_told_once_after_its_transfers(dn_world_t *world)
{
    enum { DEAF_CHAN = DN_WORLD_CHAN + 1, LATER = 100 };
    static uint8_t data[LONG_BYTES];
    dn_world_comp_t comp = dn_world_comp();
    news_t news = {.transfer = &comp}, none = {.transfer = &comp};

    world->config.cma = 0;
    world->config.network_rma = 0;
    start_with_deaf_peer(world);
    dn_test_log.expected = 1;
    dn_check_equal(dn_lost_set(world->port, DN_CHAN_DEVICE, note_news, &none), DN_ERR_PARAM);
    dn_check_equal(dn_lost_set(world->port, DN_CHAN_MAX, note_news, &none), DN_ERR_PARAM);
    dn_test_log.expected = 0;
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, note_news, &news), DN_OK);
    dn_check_equal(dn_lost_set(world->port, DEAF_CHAN, note_news, &none), DN_OK);
    dn_check_equal(dn_lost_set(world->port, DEAF_CHAN, NULL, NULL), DN_OK);
    const dn_xfer_t xfer = {
        .local = data, .key = &world->board->seat[1].key[1], .len = sizeof(data), .comp = &comp.comp};
    dn_status_t status;
    while (DN_ERR_AGAIN == (status = dn_pull(world->peer[1], &xfer))) {
        dn_progress(world->port);
    }
    dn_check_equal(status, DN_INPROGRESS);
    dn_world_post(world, 0, 1);
    wait_dead(world, 1);
    while (0 == news.count) {
        dn_progress(world->port);
        (void) dn_peer_check(world->peer[1]);
    }
    dn_check(news.of == world->peer[1]);
    dn_check_equal(news.signals, 1);
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    for (int i = 0; i < LATER; i++) {
        dn_progress(world->port);
        dn_check_equal(dn_peer_check(world->peer[1]), DN_ERR_UNREACH);
    }
    dn_check_equal(news.count, 1);
    dn_check_equal(none.count, 0);
    dn_disconnect(world->peer[1]);
    dn_close(world->port);
}

void who_only_polls_hears_of_a_killed_peer(dn_world_t *world)
{
    dn_world_comp_t none = dn_world_comp();
    news_t news = {.transfer = &none};

    /* A network tells by that. */
    world->config.timeout_s = DN_WORLD_SILENT_S;
    start_with_deaf_peer(world);
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, note_news, &news), DN_OK);
    /* It may have been silent for long. */
    dn_test_log.expected = 1;
    dn_world_post(world, 0, 1);
    wait_dead(world, 1);
    while (0 == news.count) {
        dn_world_progress(world);
    }
    dn_test_log.expected = 0;
    dn_check(news.of == world->peer[1]);
    dn_check_equal(dn_world_lost(world), 1);
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_check_equal(news.count, 1);
    dn_close(world->port);
}

void a_flush_to_a_killed_peer_ends(dn_world_t *world)
{
    static uint8_t data[LONG_BYTES];
    dn_status_t status;

    world->config.cma = 0;
    world->config.network_rma = 0;
    /* A network tells by that. */
    world->config.timeout_s = DN_WORLD_SILENT_S;
    start_with_deaf_peer(world);
    dn_test_log.expected = 1;
    const dn_xfer_t xfer = {.local = data, .key = &world->board->seat[1].key[1], .len = sizeof(data)};
    do {
        status = dn_pull(world->peer[1], &xfer);
        dn_progress(world->port);
    } while (DN_ERR_AGAIN == status);
    dn_check_equal(status, DN_INPROGRESS);
    dn_world_post(world, 0, 1);
    wait_dead(world, 1);
    while (DN_INPROGRESS == (status = dn_flush(world->peer[1]))) {
        sched_yield();
    }
    dn_check_equal(status, DN_ERR_UNREACH);
    dn_test_log.expected = 0;
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_close(world->port);
}

/** Send to rank 1 in every way that does not need its progress, until it is gone. */
static void *send_on(void *arg)
{
    dn_peer_t *peer = arg;
    dn_status_t status = DN_OK;
    dn_window_t window;

    while (DN_ERR_UNREACH != status) {
        status = dn_botf(peer, DN_WORLD_CHAN, 0, "some bytes", 10, NULL, 0);
        dn_check(DN_OK == status || DN_ERR_AGAIN == status || DN_ERR_UNREACH == status);
        if (DN_OK == dn_botf_reserve(peer, 100, &window)) {
            memset(window.data, 0, window.len);
            dn_botf_kick(peer, &window, DN_WORLD_CHAN, 0, window.len);
        }
        (void) dn_aotf(peer, 0, 0, 8);
        (void) dn_fence(peer);
        dn_wake(peer);
        dn_progress(dn_world_here->port);
        sched_yield();
    }
    return NULL;
}

void threads_may_send_while_a_peer_is_lost(dn_world_t *world)
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];

    world->job.threads = 1;
    world->config.timeout_s = DN_WORLD_SILENT_S;
    start_with_segments(world);
    /* A network may say that it is gone. */
    dn_test_log.expected = 1;
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        for (int i = 0; i < 200; i++) {
            dn_world_progress(world);
        }
        dn_world_die(world);
    }
    for (int i = 0; i < THREADS; i++) {
        dn_check_equal(pthread_create(&thread[i], NULL, send_on, world->peer[1]), 0);
    }
    dn_world_post(world, 0, 1);
    wait_dead(world, 1);
    while (DN_OK == dn_peer_check(world->peer[1])) {
        dn_world_progress(world);
    }
    for (int i = 0; i < THREADS; i++) {
        dn_check_equal(pthread_join(thread[i], NULL), 0);
    }
    dn_test_log.expected = 0;
    check_gone(world, world->peer[1], &world->board->seat[1].key[0]);
    dn_close(world->port);
}
