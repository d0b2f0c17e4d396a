/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * All of two-sided messages at once (dn_tag.h), in a random mix that cannot deadlock, over devices, faults and counters that
 * soon wrap; without threads and with several of them.
 *
 *   tag_torture [-s SEED] [-n ROUNDS] [-t THREADS] [-p PROCESSES] [-v VARIANT]
 *
 *   -s   what the mix follows from; default: a new one, which is printed
 *   -n   rounds of each thread, of up to 40 messages each; default 25, or dn_test_rounds() of them
 *   -t   threads of each process that use the engine, 1 to 3; default: 1, then 3
 *   -p   processes, 2 to 4; default: 3
 *   -v   this variant alone, by its name in the table below
 *
 * Every process computes the plan of a round from the seed: who sends what to whom, and one receive for each message. So that
 * every receive ends, those of one context either all name and ignore the same parts of an envelope, or they are posted in order
 * of how much they take: exact ones, then those of any source, then those of anything.
 *
 * Of two receives that take messages of one source, context and tag, the one posted first has to take the one sent first. So it
 * is known at the end of a round, going through the receives as they were posted, which message each has to hold.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "dn_atomic.h"
#include "dn_tag.h"

enum {
    ROUNDS = 25,
    MESSAGES = 40, /**< of a round, of all processes */
    CONTEXTS = 3,  /**< of a round; the first is shared by the threads */
    THREADS = 3,
    TAGS = 4,
    LONGEST = 150000,
    WALK_LONGEST = 5000,
    ELEMENT = 12, /**< what a layout is packed by */
    STEP = 2,     /**< bytes of memory for each byte of a message that walks */
    GUARD = 32,
    BLANK = 0x5a,
    ANY = 0xa5, /**< what a request holds before it is started */
    LOOKS = 20  /**< for a message, before its receive is posted */
};

/** How the memory of a request lies. */
enum shape { TOGETHER, WALKS, CALLBACKS, SHAPES };

/** How a message is sent, and received. */
enum mode { INJECT, STANDARD, SYNCHRONOUS, MODES };
enum way { POST, POST_AND_CANCEL, POLL, PROBE, MATCHED_PROBE, TAKE_NEXT, WAYS };

/** A message of the plan, and the receive for it or for another one like it. */
typedef struct message {
    int from, to;
    dn_tag_head_t head;
    size_t len;
    enum mode mode;
    enum shape sent_from;
    dn_tag_want_t want;
    int rank; /**< of the receive among those of its context: lower ones are posted first */
    size_t room;
    enum shape received_into;
    enum way way;
    uint64_t key; /**< of its bytes */
    int taken;    /**< by a receive that was looked at */
} message_t;

/** A request with its memory. */
typedef struct slot {
    dn_tag_req_t req;
    uint32_t done;
    uint32_t completions;
    enum shape shape;
    int sends;
    size_t len;
    size_t passed; /**< by callbacks */
    uint8_t *memory;
} slot_t;

/** One thread's part of the torture. */
typedef struct runner {
    unsigned thread;
    uint64_t round;
    uint64_t random; /**< of what is this thread's own affair */
    message_t plan[MESSAGES];
    int messages;
    slot_t send[MESSAGES], receive[2 * MESSAGES], lone;
    int sends, receives;
} runner_t;

static struct {
    uint64_t seed;
    uint64_t rounds;
    unsigned threads; /**< 0: 1, then THREADS */
    int processes;
    const char *variant;
} option = {.processes = 3};

#if defined(__SANITIZE_THREAD__)
/**
 * What a thread sanitizer is not to tell of. dn_tag_cancel() looks whether a receive is still posted; it turns from that with the
 * lock, and never again. The number of requests that have left a line is compared with the lock. A copy into a ring ends before
 * the answer comes, through another process.
 */
const char *__tsan_default_suppressions(void);
DN_API const char *__tsan_default_suppressions(void)
{
    return "race_top:dn_tag_cancel\n"
           "race_top:dn_tag_send_waiting\n"
           "race:_botf\n";
}

/** Suppressions are of use where both sides of a race are known. */
const char *__tsan_default_options(void);
DN_API const char *__tsan_default_options(void)
{
    return "history_size=7";
}
#endif

static unsigned threads;
static dn_world_t *world;
static dn_prog_t *byte;
static dn_tag_t *tag;
static dn_tag_peer_t *peer[DN_WORLD_MAX];
static runner_t runner[THREADS];

/** @name What the engine asks of its owner */
/** @{ */
/** By whole elements, but for the last one. */
static size_t pack(void *layout, void *to, size_t len)
{
    slot_t *at = layout;

    dn_check(at->sends && len <= at->len - at->passed);
    if (len < at->len - at->passed) {
        dn_check(ELEMENT <= len);
        len -= len % ELEMENT;
    }
    memcpy(to, at->memory + GUARD + at->passed, len);
    at->passed += len;
    return len;
}

static void unpack(void *layout, const void *from, size_t len)
{
    slot_t *at = layout;

    dn_check(!at->sends && len <= at->len - at->passed);
    memcpy(at->memory + GUARD + at->passed, from, len);
    at->passed += len;
}

static void drive(void *arg)
{
    (void) arg;
    if (0 == dn_progress(world->port) + dn_tag_progress(tag)) {
        sched_yield();
    }
}

static void lose(dn_tag_peer_t *lost, int matters, void *arg)
{
    (void) lost;
    (void) matters;
    (void) arg;
    dn_check(!"a peer was lost");
}

static void have_no_memory(void *arg)
{
    (void) arg;
    dn_check(!"memory ran out");
}
/** @} */

/** @name Plans */
/** @{ */
static size_t plan_length(uint64_t *random)
{
    switch (dn_test_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return 40 - 1 + dn_test_below(random, 3);
    case 2:
        return dn_test_length(random, LONGEST);
    default:
        return dn_test_length(random, WALK_LONGEST);
    }
}

static enum shape plan_shape(uint64_t *random, size_t len)
{
    const enum shape shape = (enum shape) dn_test_below(random, 2 * SHAPES);

    return SHAPES <= shape || (WALKS == shape && WALK_LONGEST < len) ? TOGETHER : shape;
}

/** What the receives of one context name. */
typedef struct rule {
    int chain; /**< any of the kinds, the more exact the earlier */
    int any_source;
    uint64_t ignore;
} rule_t;

static rule_t plan_rule(uint64_t *random)
{
    static const uint64_t ignore[] = {0, 0, 1, TAGS - 1, DN_MATCH_ANY_TAG_IGNORE, UINT32_MAX};

    return (rule_t){.chain = 0 == dn_test_below(random, 3),
                    .any_source = 0 == dn_test_below(random, 2),
                    .ignore = ignore[dn_test_below(random, sizeof(ignore) / sizeof(ignore[0]))]};
}

static void plan_want(message_t *m, const rule_t *rule, uint64_t *random)
{
    m->rank = rule->chain ? (int) dn_test_below(random, 3) : 0;
    const int any_source = rule->chain ? 0 < m->rank : rule->any_source;
    const uint64_t ignore = !rule->chain ? rule->ignore : 2 == m->rank ? DN_MATCH_ANY_TAG_IGNORE : 0;

    m->want = (dn_tag_want_t){.context = m->head.context,
                              .source = any_source ? DN_MATCH_ANY_SOURCE : m->from,
                              .tag = m->head.tag ^ (dn_test_random(random) & ignore),
                              .ignore = ignore};
}

/** The same in every process. */
static void plan_make(runner_t *r)
{
    uint64_t random = option.seed ^ (r->round * THREADS + r->thread) * UINT64_C(0xd1342543de82ef95);
    rule_t rule[CONTEXTS];

    (void) dn_test_random(&random);
    for (int i = 0; i < CONTEXTS; i++) {
        rule[i] = plan_rule(&random);
    }
    r->messages = (int) (1 + dn_test_below(&random, MESSAGES));
    /* In some rounds most messages have the same envelope. */
    const uint64_t contexts = 1 + dn_test_below(&random, CONTEXTS);
    const uint64_t tags = 1 + dn_test_below(&random, TAGS);
    const uint64_t processes = 1 + dn_test_below(&random, (uint64_t) world->size);
    for (int i = 0; i < r->messages; i++) {
        message_t *m = &r->plan[i];
        const uint32_t which = (uint32_t) dn_test_below(&random, contexts);

        *m = (message_t){.from = (int) dn_test_below(&random, processes),
                         .to = (int) dn_test_below(&random, (uint64_t) world->size)};
        m->head.source = m->from;
        /* Those of one thread, but the shared one, where the tag tells threads and rounds apart. */
        m->head.context = 0 == which ? 0 : 1 + (uint32_t) (r->round * CONTEXTS + which) * THREADS + r->thread;
        m->head.tag = r->round << 40 | (uint64_t) r->thread << 36 | dn_test_below(&random, tags);
        m->len = plan_length(&random);
        m->mode = (enum mode) dn_test_below(&random, MODES);
        m->sent_from = plan_shape(&random, m->len);
        m->room = 0 == dn_test_below(&random, 6) ? dn_test_length(&random, m->len) : LONGEST;
        m->received_into = plan_shape(&random, m->room);
        m->way = (enum way) dn_test_below(&random, WAYS);
        m->key = dn_test_random(&random);
        plan_want(m, &rule[which], &random);
        if (rule[which].chain && POST_AND_CANCEL == m->way) {
            m->way = POST;
        }
    }
}
/** @} */

/** @name Requests */
/** @{ */
static size_t memory_of(enum shape shape, size_t len)
{
    return GUARD + (WALKS == shape ? STEP : 1) * len + GUARD;
}

static uint8_t *place(const slot_t *at, size_t i)
{
    return at->memory + GUARD + (WALKS == at->shape ? STEP : 1) * i;
}

static void complete(dn_tag_req_t *req)
{
    slot_t *at = (slot_t *) req;

    dn_check_equal(dn_fetch_add_acq_rel(&at->completions, 1), 0);
    if (at->sends) {
        /* The memory is the caller's again: what still came from it would be wrong. */
        memset(at->memory, BLANK, memory_of(at->shape, at->len));
    }
    dn_store_release_u32(&at->done, 1);
}

static void request_open(slot_t *at, enum shape shape, size_t len, int sends)
{
    memset(&at->req, ANY, sizeof(at->req));
    at->done = at->completions = 0;
    at->shape = shape;
    at->sends = sends;
    at->len = len;
    at->passed = 0;
    at->memory = malloc(memory_of(shape, len));
    dn_check(NULL != at->memory);
    memset(at->memory, BLANK, memory_of(shape, len));
    at->req.complete = complete;
    if (TOGETHER == shape) {
        dn_tag_memory(&at->req, at->memory + GUARD, len);
        return;
    }
    dn_tag_layout(&at->req, at, len);
    if (WALKS == shape) {
        const dn_prog_use_t use = {byte, len, STEP};

        dn_prog_start(&at->req.cursor, &use, (uint64_t) (uintptr_t) (at->memory + GUARD));
        at->req.walks = true;
    }
}

static void send_one(runner_t *r, const message_t *m)
{
    slot_t *at = &r->send[r->sends++];

    request_open(at, m->sent_from, m->len, 1);
    for (size_t i = 0; i < m->len; i++) {
        *place(at, i) = dn_test_byte(m->key, i);
    }
    if (INJECT == m->mode && TOGETHER == at->shape && 1 == threads
        && DN_OK == dn_tag_inject(peer[m->to], &m->head, at->memory + GUARD, m->len)) {
        complete(&at->req);
        return;
    }
    dn_check_equal(dn_tag_send(&at->req, peer[m->to], &m->head, SYNCHRONOUS == m->mode), DN_OK);
}

static void check_found(const dn_tag_found_t *found, const dn_tag_want_t *want)
{
    dn_check_equal(found->head.context, want->context);
    dn_check(DN_MATCH_ANY_SOURCE == want->source || found->head.source == want->source);
    dn_check_equal((found->head.tag ^ want->tag) & ~want->ignore, 0);
}

/** Look for a message, and receive it when it is there. @return 0: none has come. */
static int receive_probed(slot_t *at, const message_t *m)
{
    dn_tag_found_t seen, found;

    for (int looks = 0; looks < LOOKS && !dn_tag_probe(tag, &m->want, &seen); looks++) {
        drive(NULL);
    }
    if (!dn_tag_probe(tag, &m->want, &seen)) {
        return 0;
    }
    check_found(&seen, &m->want);
    if (PROBE == m->way) {
        return 0;
    }
    /* No other thread looks for this one. */
    dn_tag_msg_t *msg = dn_tag_mprobe(tag, &m->want, &found);
    dn_check(NULL != msg);
    dn_check(0 == memcmp(&seen, &found, sizeof(seen)));
    dn_tag_mrecv(tag, &at->req, msg);
    return 1;
}

static int receive_next(slot_t *at, const message_t *m)
{
    if (DN_MATCH_ANY_SOURCE == m->want.source || TOGETHER != at->shape || 1 < threads
        || !dn_tag_take_next(peer[m->want.source], m->want, at->memory + GUARD, at->len, LOOKS, &at->req.head,
                             &at->req.size)) {
        return 0;
    }
    at->req.status = DN_OK;
    complete(&at->req);
    return 1;
}

static void receive_one(runner_t *r, const message_t *m)
{
    slot_t *at = &r->receive[r->receives++];
    dn_tag_peer_t *from = DN_MATCH_ANY_SOURCE == m->want.source ? NULL : peer[m->want.source];

    request_open(at, m->received_into, m->room, 0);
    if (((PROBE == m->way || MATCHED_PROBE == m->way) && receive_probed(at, m))
        || (TAKE_NEXT == m->way && receive_next(at, m))) {
        return;
    }
    dn_tag_wants(&at->req, m->want);
    dn_tag_recv(tag, &at->req, from, POLL == m->way);
    if (POLL == m->way && 1 == threads) {
        dn_tag_poll(&at->req, from);
    }
    if (POST_AND_CANCEL == m->way) {
        dn_tag_cancel(&at->req);
        if (dn_load_acquire_u32(&at->done) && DN_ERR_CANCELED == at->req.status) {
            /* It takes nothing any more: another one stands at the end of the line. */
            at = &r->receive[r->receives++];
            request_open(at, m->received_into, m->room, 0);
            dn_tag_wants(&at->req, m->want);
            dn_tag_recv(tag, &at->req, from, 0);
        }
    }
}
/** @} */

/** @name Rounds */
/** @{ */
/** The message that a receive has to hold: the first of its envelope that no earlier one holds. */
static message_t *held(runner_t *r, const dn_tag_head_t *head)
{
    for (int i = 0; i < r->messages; i++) {
        message_t *m = &r->plan[i];

        if (m->to == world->rank && !m->taken && m->head.context == head->context
            && m->head.source == head->source && m->head.tag == head->tag) {
            m->taken = 1;
            return m;
        }
    }
    return NULL;
}

static void check_received(runner_t *r, const slot_t *at)
{
    const size_t all = memory_of(at->shape, at->len);
    const size_t step = WALKS == at->shape ? STEP : 1;
    size_t changed = 0;

    dn_check_equal(at->completions, 1);
    if (DN_ERR_CANCELED != at->req.status) {
        const message_t *m = held(r, &at->req.head);

        dn_check(NULL != m);
        dn_check_equal(at->req.size, m->len);
        dn_check_equal(at->req.status, m->len > at->len ? DN_ERR_TRUNC : DN_OK);
        changed = m->len < at->len ? m->len : at->len;
        for (size_t i = 0; i < changed; i++) {
            if (dn_test_byte(m->key, i) != *place(at, i)) {
                dn_check_equal(i, changed);
            }
        }
    }
    for (size_t i = 0; i < all; i++) {
        const int may = GUARD <= i && 0 == (i - GUARD) % step && (i - GUARD) / step < changed;

        if (!may && BLANK != at->memory[i]) {
            dn_check_equal(i, all);
        }
    }
}

static void wait_for(const slot_t *slot, int count)
{
    for (int i = 0; i < count; i++) {
        while (!dn_load_acquire_u32(&slot[i].done)) {
            drive(NULL);
        }
    }
}

/** The receives of this process as they are to be posted. @return how many. */
static int order_receives(const runner_t *r, const message_t **receive)
{
    int count = 0;

    for (int rank = 0; rank < 3; rank++) {
        for (int i = 0; i < r->messages; i++) {
            if (rank == r->plan[i].rank && world->rank == r->plan[i].to) {
                receive[count++] = &r->plan[i];
            }
        }
    }
    return count;
}

static void run_round(runner_t *r)
{
    const message_t *receive[MESSAGES];
    const dn_tag_want_t nothing = {
        .context = UINT32_MAX, .source = DN_MATCH_ANY_SOURCE, .ignore = UINT64_MAX};
    int sent = 0, received = 0;

    plan_make(r);
    const int receives = order_receives(r, receive);
    r->sends = r->receives = 0;
    /* Without it, a message may be taken where it lies. */
    const int alone = 0 == dn_test_below(&r->random, 2);
    request_open(&r->lone, TOGETHER, LONGEST, 0);
    if (!alone) {
        dn_tag_wants(&r->lone.req, nothing);
        dn_tag_recv(tag, &r->lone.req, NULL, 0);
    }
    while (sent < r->messages || received < receives) {
        const uint64_t what = dn_test_below(&r->random, 5);

        if (2 > what && sent < r->messages) {
            if (world->rank == r->plan[sent].from) {
                send_one(r, &r->plan[sent]);
            }
            sent++;
        } else if (4 > what && received < receives) {
            receive_one(r, receive[received++]);
        } else {
            drive(NULL);
        }
    }
    wait_for(r->receive, r->receives);
    wait_for(r->send, r->sends);
    if (!alone) {
        dn_tag_cancel(&r->lone.req);
        dn_check(r->lone.done && DN_ERR_CANCELED == r->lone.req.status);
    }
    free(r->lone.memory);
    for (int i = 0; i < r->receives; i++) {
        check_received(r, &r->receive[i]);
        free(r->receive[i].memory);
    }
    for (int i = 0; i < r->sends; i++) {
        free(r->send[i].memory);
    }
}

static void *run(void *arg)
{
    runner_t *r = arg;

    r->random = option.seed + (uint64_t) world->rank * THREADS + r->thread;
    for (r->round = 0; r->round < option.rounds; r->round++) {
        run_round(r);
    }
    return NULL;
}
/** @} */

/** Settings that a process of its own chooses; every other run of the same seed, too. */
static dn_tag_config_t configure(void)
{
    static const size_t eager[] = {0, 64, 1000, 4096, 1 << 20};
    static const size_t kept[] = {1, 3000, 1 << 20};
    static const size_t announce[] = {0, 1, 2000};
    uint64_t random = option.seed ^ (uint64_t) world->rank << 32;

    return (dn_tag_config_t){.limit = {.eager_limit = eager[dn_test_below(&random, 5)],
                                       .unexpected_limit = kept[dn_test_below(&random, 3)],
                                       .announce = (int) dn_test_below(&random, 3),
                                       .announce_min = announce[dn_test_below(&random, 3)],
                                       .stream = (int) dn_test_below(&random, 3),
                                       .spin_polls = 100},
                             .threads = 1 < threads,
                             .pack = pack,
                             .unpack = unpack,
                             .progress = drive,
                             .lost = lose,
                             .no_memory = have_no_memory};
}

/** Nothing is on its way any more when all have left. */
static void settle(void)
{
    while (0 != dn_tag_progress(tag)) {
    }
    dn_world_barrier(world);
    for (int i = 0; i < world->size; i++) {
        if (i != world->rank) {
            dn_world_fence(world, world->peer[i]);
        }
    }
    dn_world_barrier(world);
}

static void torture(dn_world_t *here)
{
    const dn_prog_op_t op = {.kind = DN_PROG_RUN, .len = 1, .count = 1};
    pthread_t thread[THREADS];

    world = here;
    world->job.threads = 1 < threads;
    dn_world_start(world);
    const dn_tag_config_t config = configure();
    dn_check_equal(dn_prog_create(&op, 1, &byte), DN_OK);
    dn_check_equal(dn_tag_open(world->port, DN_WORLD_CHAN, &config, &tag), DN_OK);
    for (int i = 0; i < world->size; i++) {
        const dn_board_seat_t *seat = &world->board->seat[i];
        dn_peer_t *hot = NULL;

        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &hot), DN_OK);
        peer[i] = dn_tag_join(tag, hot, &peer[i]);
        dn_check(NULL != peer[i] && &peer[i] == peer[i]->user);
    }
    for (unsigned t = 0; t < threads; t++) {
        runner[t].thread = t;
        if (0 != t) {
            dn_check_equal(pthread_create(&thread[t], NULL, run, &runner[t]), 0);
        }
    }
    (void) run(&runner[0]);
    for (unsigned t = 1; t < threads; t++) {
        dn_check_equal(pthread_join(thread[t], NULL), 0);
    }
    settle();
    dn_check_equal(tag->dropped, 0);
    dn_tag_close(tag);
    dn_prog_free(byte);
    dn_world_stop(world);
}

/** @name What it runs over */
/** @{ */
static const dn_variant_t variant[] = {
    {.file = "shm", .device = "shm"},
    {.file = "shm_no_cma", .device = "shm", .settings = "cma=0"},
    {.file = "shm_small_ring", .device = "shm", .settings = "ring_lines=64"},
    {.file = "shm_first_31", .device = "shm", .settings = "cma=0 first=2147483600"},
    {.file = "shm_first_32", .device = "shm", .settings = "first=4294967200"},
    {.file = "fault",
     .device = "shm",
     .settings =
         "cma=0 ring_lines=64 fault=botf:again/4,botf:delay/9,all:slow/3,push:again/5,pull:again/5,seed=1"},
    {.file = "emulate", .device = "emulate:dimmnet1-d"},
    {.file = "ipnuma", .device = "ipnuma:lo"},
    {.file = "ipnuma_fault",
     .device = "ipnuma:lo",
     .settings = "ring_lines=64 auth=full first=4294967200 "
                 "fault=botf:again/4,botf:delay/9,push:again/5,pull:again/5,seed=1"},
#ifdef TAG_TORTURE_OFI
    {.file = "ofi_rxm", .device = "ofi:tcp;ofi_rxm@lo"},
    {.file = "ofi_first_32", .device = "ofi:net@lo", .settings = "first=4294967200"},
    /* What is lent and what is held back are in order. */
    {.file = "ofi_fault",
     .device = "ofi:net@lo",
     .settings = "fault=botf:again/4,botf:delay/9,push:again/5,pull:again/5,seed=1"},
#endif
};
/** @} */

static int has_device(const char *device)
{
    const size_t len = strcspn(device, ":");
    size_t i = 0;

    while (NULL != dn_device_name(i)
           && (len != strlen(dn_device_name(i)) || 0 != strncmp(device, dn_device_name(i), len))) {
        i++;
    }
    return NULL != dn_device_name(i);
}

/** @return 1: it failed. */
static int run_variant(const dn_variant_t *over)
{
    if (!has_device(over->device)) {
        return 0;
    }
    const int failed = dn_world_run("tag_torture", over, option.processes, torture);
    if (failed) {
        printf("to run it again: tag_torture -s %llu -n %llu -t %u -p %d -v %s\n",
               (unsigned long long) option.seed, (unsigned long long) option.rounds, threads,
               option.processes, over->file);
    }
    return failed;
}

static void read_options(int argc, char **argv)
{
    int name;

    option.seed = (uint64_t) time(NULL);
    option.rounds = dn_test_rounds(ROUNDS);
    while (-1 != (name = getopt(argc, argv, "s:n:t:p:v:"))) {
        switch (name) {
        case 's':
            option.seed = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            option.rounds = strtoull(optarg, NULL, 0);
            break;
        case 't':
            option.threads = (unsigned) strtoul(optarg, NULL, 0);
            break;
        case 'p':
            option.processes = atoi(optarg);
            break;
        case 'v':
            option.variant = optarg;
            break;
        default:
            exit(2);
        }
    }
    if (THREADS < option.threads || 2 > option.processes || DN_WORLD_MAX < option.processes) {
        fprintf(stderr, "tag_torture: there are 1 to %d threads and 2 to %d processes\n", THREADS,
                DN_WORLD_MAX);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    int failed = 0;

    read_options(argc, argv);
    printf("tag_torture: seed %llu\n", (unsigned long long) option.seed);
    for (threads = 1; threads <= THREADS; threads++) {
        const int wanted =
            0 == option.threads ? 1 == threads || THREADS == threads : option.threads == threads;

        for (size_t i = 0; wanted && i < sizeof(variant) / sizeof(variant[0]); i++) {
            if (NULL == option.variant || 0 == strcmp(option.variant, variant[i].file)) {
                failed |= run_variant(&variant[i]);
            }
        }
    }
    return failed;
}
