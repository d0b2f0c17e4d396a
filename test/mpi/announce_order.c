/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file announce_order.c
 * Receives of which most name their source, are long, and are posted before their messages are sent: a transport may
 * tell their senders, and these may write there at once. Random rounds mix them with short messages and with long
 * ones of derived types, wildcards posted before and after, probes, persistent receives, cancels in time and too late,
 * two communicators and messages to oneself. Which receive took which message is checked against the order
 * of MPI, and so are all data and statuses.
 *
 *   announce_order [-s SEED] [-n ROUNDS] [-a ANY]
 *
 * With -a 1 some receives have too little room, which not every transport of Open MPI survives.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPACES = 2,
    TAGS = 3,
    MOST_MESSAGES = 24,
    MOST_RECEIVES = 2 * MOST_MESSAGES + 8,
    LEAST = 16,     /* bytes of a message: the first 8 are its number */
    SHORT = 200,    /* MPI_Send does not wait for the receiver */
    MIDDLE = 13000, /* around the longest that is sent at once */
    LONG = 200000,
    UNTOUCHED = 0x3c, /* in a buffer from the start */
};

/** How the ranks of a round begin. */
enum { ONE_SENDS, AFTER_BARRIER, AT_ONCE, STYLES };

typedef struct {
    int source;
    int target;
    int space;
    int tag;
    size_t size;
    uint64_t key;
    int taker; /* receive that took it here, -1: none yet */
} message_t;

typedef struct {
    int space;
    int source; /* or MPI_ANY_SOURCE */
    int tag;    /* or MPI_ANY_TAG */
    size_t room;
    bool persistent;
    unsigned char *buffer;
    MPI_Request request;
    uint64_t cancelled; /* when, 0: not */
    uint64_t ended;     /* when, 0: pending */
} receive_t;

typedef struct {
    uint64_t number;
    int style;
    int sender; /* the only one, -1: all send */
    message_t messages[MOST_MESSAGES];
    int count;
    receive_t wishes[MOST_RECEIVES]; /* not posted yet */
    int wished;
    int wish;
    receive_t receives[MOST_RECEIVES]; /* in the order of posting */
    int posted;
    MPI_Request sends[MOST_MESSAGES];
    unsigned char *out[MOST_MESSAGES];
    int sent;
    int expected; /* messages to this rank */
    int arrived;
    uint64_t now; /* counts what happens */
    verify_rng_t rng;
} round_t;

static int rank;
static int ranks;
static uint64_t seed;
static uint64_t rounds = 100;
static uint64_t any;
static MPI_Comm control;
static MPI_Comm spaces[SPACES];
static unsigned long long totals[4];
enum { RECEIVED, CANCELLED, TOO_LATE, TRUNCATED };

static bool coin(verify_rng_t *rng, uint64_t sides)
{
    return 0 == verify_below(rng, sides);
}

static bool takes(const receive_t *receive, const message_t *m)
{
    return rank == m->target && receive->space == m->space
           && (MPI_ANY_SOURCE == receive->source || receive->source == m->source)
           && (MPI_ANY_TAG == receive->tag || receive->tag == m->tag);
}

/* Planning: all ranks draw the same messages, and each its own receives. */

static size_t draw_size(verify_rng_t *rng)
{
    size_t size = LEAST + verify_below(rng, SHORT - LEAST);

    if (coin(rng, 4)) {
        size = LEAST + verify_below(rng, MIDDLE);
    } else if (!coin(rng, 3)) {
        size = MIDDLE + verify_below(rng, LONG - MIDDLE);
    }
    return coin(rng, 2) ? size / 8 * 8 : size;
}

static void plan_messages(round_t *r)
{
    verify_rng_t rng = {.state = verify_key(seed, r->number, 0, 0)};

    r->style = (int) verify_below(&rng, STYLES);
    r->sender = ONE_SENDS == r->style ? (int) verify_below(&rng, (uint64_t) ranks) : -1;
    r->count = 1 + (int) verify_below(&rng, (uint64_t) (ONE_SENDS == r->style ? 8 * ranks : MOST_MESSAGES));
    r->count = r->count < MOST_MESSAGES ? r->count : MOST_MESSAGES;
    for (int i = 0; i < r->count; i++) {
        const int source = (int) verify_below(&rng, (uint64_t) ranks);
        r->messages[i] = (message_t){.source = r->sender < 0 ? source : r->sender,
                                     .target = (int) verify_below(&rng, (uint64_t) ranks),
                                     .space = (int) verify_below(&rng, SPACES),
                                     .tag = (int) verify_below(&rng, TAGS),
                                     .size = draw_size(&rng),
                                     .key = verify_random(&rng),
                                     .taker = -1};
        r->expected += rank == r->messages[i].target;
    }
}

/* Room for whatever it may get, or a little less. */
static size_t draw_room(round_t *r, const receive_t *wish)
{
    size_t most = 0;

    for (int i = 0; i < r->count; i++) {
        if (takes(wish, &r->messages[i]) && r->messages[i].size > most) {
            most = r->messages[i].size;
        }
    }
    if (0 == most) {
        return MIDDLE + verify_below(&r->rng, MIDDLE);
    }
    if (0 != any && coin(&r->rng, 8)) {
        return LEAST + verify_below(&r->rng, most - LEAST + 1);
    }
    return coin(&r->rng, 2) ? most : most + verify_below(&r->rng, 100);
}

static void plan_receives(round_t *r)
{
    int order[MOST_RECEIVES];
    receive_t wishes[MOST_RECEIVES];
    const bool shuffled = coin(&r->rng, 2);
    int count = 0;

    for (int i = 0; i < r->count + 3; i++) {
        const message_t *m = i < r->count ? &r->messages[i] : NULL;
        receive_t wish = {.space = (int) verify_below(&r->rng, SPACES),
                          .source = (int) verify_below(&r->rng, (uint64_t) ranks),
                          .tag = (int) verify_below(&r->rng, TAGS)};
        if (NULL != m && rank == m->target && !coin(&r->rng, 8)) {
            wish = (receive_t){.space = m->space, .source = m->source, .tag = m->tag};
        } else if (NULL != m || coin(&r->rng, 2)) {
            continue;
        }
        wish.source = coin(&r->rng, 6) ? MPI_ANY_SOURCE : wish.source;
        wish.tag = coin(&r->rng, 6) ? MPI_ANY_TAG : wish.tag;
        wish.room = draw_room(r, &wish);
        wish.persistent = coin(&r->rng, 8);
        wishes[count++] = wish;
    }
    verify_shuffle(&r->rng, order, count);
    for (int i = 0; i < count; i++) {
        r->wishes[i] = wishes[shuffled ? order[i] : i];
    }
    r->wished = count;
}

/* Receiving */

_Noreturn static void fail(const round_t *r, int receive, const char *what)
{
    const receive_t *at = &r->receives[receive];

    verify_fail("round %llu, receive %d (communicator %d, source %d, tag %d, room %zu%s): %s",
                (unsigned long long) r->number, receive, at->space, at->source, at->tag, at->room,
                0 != at->cancelled ? ", cancelled" : "", what);
}

static void check_untouched(const round_t *r, int index, size_t from, const char *what)
{
    const receive_t *receive = &r->receives[index];

    for (size_t i = from; i < receive->room; i++) {
        if (UNTOUCHED != receive->buffer[i]) {
            fail(r, index, what);
        }
    }
}

/* The message is in the buffer: find out which it is, and whether it is that. */
static void check_message(round_t *r, int index, int error, const MPI_Status *status)
{
    receive_t *receive = &r->receives[index];
    uint64_t number;
    int count;

    memcpy(&number, receive->buffer, sizeof(number));
    if (number >= (uint64_t) r->count || !takes(receive, &r->messages[number])) {
        fail(r, index, "what has come is no message for it");
    }
    message_t *m = &r->messages[number];
    if (m->taker >= 0) {
        fail(r, index, "a message has come twice");
    }
    m->taker = index;
    const size_t size = m->size < receive->room ? m->size : receive->room;
    for (size_t i = 0; i < sizeof(number); i++) {
        receive->buffer[i] = verify_byte(m->key, i);
    }
    verify_expect(receive->buffer, size, m->key, "message");
    check_untouched(r, index, size, "bytes behind the message have changed");
    MPI_Error_class(error, &error);
    if (error != (m->size > receive->room ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) {
        fail(r, index, "it has ended with the wrong error class");
    }
    MPI_Get_count(status, MPI_BYTE, &count);
    if (status->MPI_SOURCE != m->source || status->MPI_TAG != m->tag || (size_t) count != m->size) {
        fail(r, index, "its status is not that of its message");
    }
    r->arrived++;
    totals[RECEIVED]++;
    totals[TRUNCATED] += m->size > receive->room;
}

static void end_receive(round_t *r, int index, int error, const MPI_Status *status)
{
    receive_t *receive = &r->receives[index];
    int cancelled = 0;

    MPI_Test_cancelled(status, &cancelled);
    receive->ended = ++r->now;
    if (!cancelled) {
        totals[TOO_LATE] += 0 != receive->cancelled;
        receive->cancelled = 0;
        check_message(r, index, error, status);
    } else if (0 == receive->cancelled) {
        fail(r, index, "it says that it was cancelled, and was not");
    } else {
        check_untouched(r, index, 0, "a cancelled receive changed its buffer");
        totals[CANCELLED]++;
    }
    /* Open MPI 4.1 frees a request that ends with an error, persistent or not. */
    if (receive->persistent && MPI_REQUEST_NULL != receive->request) {
        MPI_Request_free(&receive->request);
    }
    verify_guard_free(receive->buffer, receive->room, 0, "receive");
}

static receive_t *append(round_t *r, const receive_t *wish)
{
    verify_that(r->posted < MOST_RECEIVES, "more receives than a round can have");
    receive_t *receive = &r->receives[r->posted++];

    *receive = *wish;
    receive->buffer = verify_guard_alloc(receive->room, 0);
    memset(receive->buffer, UNTOUCHED, receive->room);
    r->now++;
    return receive;
}

static void post(round_t *r)
{
    receive_t *receive = append(r, &r->wishes[r->wish++]);

    if (receive->persistent) {
        MPI_Recv_init(receive->buffer, (int) receive->room, MPI_BYTE, receive->source, receive->tag,
                      spaces[receive->space], &receive->request);
        MPI_Start(&receive->request);
    } else {
        MPI_Irecv(receive->buffer, (int) receive->room, MPI_BYTE, receive->source, receive->tag,
                  spaces[receive->space], &receive->request);
    }
}

static void test(round_t *r, int index)
{
    MPI_Status status;
    int done = 0;

    if (0 == r->receives[index].ended) {
        const int error = MPI_Test(&r->receives[index].request, &done, &status);
        if (done) {
            end_receive(r, index, error, &status);
        }
    }
}

static void cancel(round_t *r, int index)
{
    receive_t *receive = &r->receives[index];
    MPI_Status status;

    if (0 == receive->ended) {
        receive->cancelled = ++r->now;
        MPI_Cancel(&receive->request);
        const int error = MPI_Wait(&receive->request, &status);
        end_receive(r, index, error, &status);
    }
}

/* Take a message for which nothing is posted, by one of two ways, if there is one. */
static void probe(round_t *r, int space)
{
    receive_t wish = {.space = space, .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    const bool matched = coin(&r->rng, 2);
    MPI_Message message;
    MPI_Status status;
    int found;
    int size;
    int error;

    if (matched) {
        MPI_Improbe(wish.source, wish.tag, spaces[space], &found, &message, &status);
    } else {
        MPI_Iprobe(wish.source, wish.tag, spaces[space], &found, &status);
    }
    if (!found) {
        return;
    }
    MPI_Get_count(&status, MPI_BYTE, &size);
    wish.room = (size_t) size;
    const receive_t *receive = append(r, &wish);
    if (matched) {
        error = MPI_Mrecv(receive->buffer, size, MPI_BYTE, &message, &status);
    } else {
        error = MPI_Recv(receive->buffer, size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, spaces[space],
                         &status);
    }
    end_receive(r, r->posted - 1, error, &status);
}

/* Something small that lets the library go on. */
static void poke(round_t *r)
{
    const int index = r->posted > 0 ? (int) verify_below(&r->rng, (uint64_t) r->posted) : -1;

    if (index < 0 || coin(&r->rng, 4)) {
        probe(r, (int) verify_below(&r->rng, SPACES));
    } else if (coin(&r->rng, 5)) {
        cancel(r, index);
    } else {
        test(r, index);
    }
}

/* Sending */

/* The bytes with gaps: 8 of every 16. */
static void send_wide(round_t *r, const message_t *m)
{
    const size_t blocks = m->size / 8;
    unsigned char *wide = malloc(2 * m->size);
    MPI_Datatype type;

    verify_that(NULL != wide, "no memory for a message");
    for (size_t i = 0; i < blocks; i++) {
        memcpy(wide + 16 * i, r->out[r->sent] + 8 * i, 8);
    }
    free(r->out[r->sent]);
    r->out[r->sent] = wide;
    MPI_Type_vector((int) blocks, 8, 16, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Isend(wide, 1, type, m->target, m->tag, spaces[m->space], &r->sends[r->sent]);
    MPI_Type_free(&type);
}

static void send(round_t *r, uint64_t number)
{
    const message_t *m = &r->messages[number];
    unsigned char *out = malloc(m->size);

    verify_that(NULL != out, "no memory for a message");
    verify_fill(out, m->size, m->key);
    memcpy(out, &number, sizeof(number));
    r->out[r->sent] = out;
    r->sends[r->sent] = MPI_REQUEST_NULL;
    if (m->size <= SHORT && rank != m->target && coin(&r->rng, 2)) {
        MPI_Send(out, (int) m->size, MPI_BYTE, m->target, m->tag, spaces[m->space]);
    } else if (coin(&r->rng, 6)) {
        MPI_Issend(out, (int) m->size, MPI_BYTE, m->target, m->tag, spaces[m->space], &r->sends[r->sent]);
    } else if (0 == m->size % 8 && coin(&r->rng, 3)) {
        send_wide(r, m);
    } else {
        MPI_Isend(out, (int) m->size, MPI_BYTE, m->target, m->tag, spaces[m->space], &r->sends[r->sent]);
    }
    r->sent++;
    r->now++;
}

/* Who only receives tells the one that sends: what it has announced is there before. */
static void meet(round_t *r)
{
    if (AFTER_BARRIER == r->style) {
        MPI_Barrier(control);
    } else if (r->sender == rank) {
        for (int i = 0; i < ranks; i++) {
            if (i != rank) {
                MPI_Recv(NULL, 0, MPI_BYTE, i, 0, control, MPI_STATUS_IGNORE);
            }
        }
    } else if (r->sender >= 0) {
        MPI_Send(NULL, 0, MPI_BYTE, r->sender, 0, control);
    }
    for (uint64_t looks = verify_below(&r->rng, 30); looks > 0; looks--) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, 1, control, &found, MPI_STATUS_IGNORE);
    }
}

static int next_send(const round_t *r, int from)
{
    while (from < r->count && rank != r->messages[from].source) {
        from++;
    }
    return from;
}

/* Sends, and the receives that were not posted before, in any mix. */
static void exchange(round_t *r)
{
    int next = next_send(r, 0);

    while (next < r->count || r->wish < r->wished) {
        if (next >= r->count || (r->wish < r->wished && coin(&r->rng, 2))) {
            post(r);
        } else {
            send(r, (uint64_t) next);
            next = next_send(r, next + 1);
        }
        if (coin(&r->rng, 3)) {
            poke(r);
        }
    }
}

/* Take all that is to come; then the receives that are left get nothing any more. */
static void drain(round_t *r)
{
    while (r->arrived < r->expected) {
        for (int i = 0; i < r->posted; i++) {
            test(r, i);
        }
        for (int i = 0; i < SPACES && r->arrived < r->expected; i++) {
            probe(r, i);
        }
    }
    for (int i = 0; i < r->posted; i++) {
        cancel(r, i);
    }
    verify_that(r->arrived == r->expected, "more messages came than were sent");
    MPI_Waitall(r->sent, r->sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < r->sent; i++) {
        free(r->out[i]);
    }
}

/* Of two messages of one sender that a receive may take, the first is taken by this one or one posted before. */
static void check_senders(const round_t *r)
{
    for (int late = 0; late < r->count; late++) {
        const message_t *m = &r->messages[late];
        for (int early = 0; rank == m->target && early < late; early++) {
            const message_t *before = &r->messages[early];
            if (before->source == m->source && takes(&r->receives[m->taker], before)
                && before->taker > m->taker) {
                fail(r, m->taker, "it took a message that was sent behind another one for it");
            }
        }
    }
}

/* A receive that was still posted has not been passed over. */
static void check_receivers(const round_t *r)
{
    for (int i = 0; i < r->count; i++) {
        const message_t *m = &r->messages[i];
        for (int early = 0; early < m->taker; early++) {
            const receive_t *receive = &r->receives[early];
            if (0 != receive->cancelled && takes(receive, m)
                && r->receives[m->taker].ended < receive->cancelled) {
                fail(r, early, "a message for it went to a receive posted later");
            }
        }
    }
}

static void run(uint64_t number)
{
    round_t r = {.number = number, .rng = {.state = verify_key(seed, number, (uint64_t) rank, 1)}};

    plan_messages(&r);
    plan_receives(&r);
    const int first = AT_ONCE == r.style ? 0 : r.wished - (int) verify_below(&r.rng, 3);
    while (r.wish < first) {
        post(&r);
        if (coin(&r.rng, 12)) {
            poke(&r);
        }
    }
    meet(&r);
    exchange(&r);
    drain(&r);
    check_senders(&r);
    check_receivers(&r);
    MPI_Barrier(control);
}

int main(int argc, char **argv)
{
    unsigned long long sums[4] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seed = (uint64_t) getpid() ^ (uint64_t) (verify_seconds() * 1e6);
    verify_options(argc, argv,
                   (const verify_option_t[]){
                       {'s', "SEED", &seed, 0}, {'n', "ROUNDS", &rounds, 1}, {'a', "ANY", &any, 0}, {0}});
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("announce_order: seed %llu; replay with -s %llu -a %llu on %d ranks\n",
               (unsigned long long) seed, (unsigned long long) seed, (unsigned long long) any, ranks);
        fflush(stdout);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    for (int i = 0; i < SPACES; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &spaces[i]);
        MPI_Comm_set_errhandler(spaces[i], MPI_ERRORS_RETURN);
    }
    for (uint64_t i = 0; i < rounds; i++) {
        run(i);
    }
    for (int i = 0; i < SPACES; i++) {
        MPI_Comm_free(&spaces[i]);
    }
    MPI_Reduce(totals, sums, 4, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, control);
    MPI_Comm_free(&control);
    if (0 == rank) {
        printf("announce_order: %d ranks, %llu rounds, %llu messages, %llu of them truncated; %llu receives "
               "cancelled, %llu too late\n",
               ranks, (unsigned long long) rounds, sums[RECEIVED], sums[TRUNCATED], sums[CANCELLED],
               sums[TOO_LATE]);
    }
    MPI_Finalize();
    return 0;
}
