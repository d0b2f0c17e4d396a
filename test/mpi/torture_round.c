/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_round.c
 * Doing what the plan of a round says, at one rank, with noise between that must not matter.
 */
#include "dn_config.h"

#include "torture.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Persistent requests in one MPI_Startall at most. */
#define MOST_STARTS 8

typedef int (*send_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*isend_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const struct {
    const char *name;
    const char *iname;
    const char *init_name;
    send_fn_t send;
    isend_fn_t isend;
    isend_fn_t init;
} modes[MODES] = {
    [MODE_STANDARD] = {"MPI_Send", "MPI_Isend", "MPI_Send_init", MPI_Send, MPI_Isend, MPI_Send_init},
    [MODE_SYNCHRONOUS] = {"MPI_Ssend", "MPI_Issend", "MPI_Ssend_init", MPI_Ssend, MPI_Issend, MPI_Ssend_init},
    [MODE_BUFFERED] = {"MPI_Bsend", "MPI_Ibsend", "MPI_Bsend_init", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init},
    [MODE_READY] = {"MPI_Rsend", "MPI_Irsend", "MPI_Rsend_init", MPI_Rsend, MPI_Irsend, MPI_Rsend_init},
};

/* What a rank does at a position; of those at the same, the first named comes first. */
typedef enum { DO_RELEASE, DO_SEND, DO_RECEIVE, DO_TAKE, DO_EXCHANGE } deed_t;

typedef struct {
    uint64_t at;
    deed_t deed;
    message_t *m;
} event_t;

void round_enter(round_t *r, const char *call, const message_t *m)
{
    dn_store_relaxed(&r->t->doing, call);
    dn_store_relaxed(&r->t->doing_message, NULL == m ? -1 : m->index);
    dn_fetch_add_relaxed(&r->t->steps, 1);
}

void round_must(round_t *r, int result)
{
    torture_must(r->t, result, r->t->doing);
}

void round_fail(round_t *r, const message_t *m, const char *format, ...)
{
    char text[300];
    char about[250] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (NULL != m) {
        snprintf(about, sizeof(about),
                 "message %d (%zu bytes, rank %d to %d, communicator %d, tag %d, mode %d, ways %d and %d, "
                 "shapes %d and %d, "
                 "wildcards %d%d): ",
                 m->index, m->bytes, m->source, m->target, m->space, m->tag, (int) m->mode, (int) m->send_way,
                 (int) m->recv_way, (int) m->out.kind, (int) m->in.kind, m->any_source, m->any_tag);
    }
    torture_fail(r->t, "%s%s", about, text);
}

static bool coin(round_t *r, unsigned one_in)
{
    return 0 == verify_below(&r->rng, one_in);
}

static MPI_Comm comm_of(const round_t *r, const message_t *m)
{
    return r->t->spaces[m->space].handle;
}

static int address_of(const round_t *r, const message_t *m, int rank)
{
    return r->t->spaces[m->space].place[rank];
}

static int source_of(const round_t *r, const message_t *m)
{
    return m->any_source ? MPI_ANY_SOURCE : address_of(r, m, m->source);
}

static int tag_of(const message_t *m)
{
    return m->any_tag ? MPI_ANY_TAG : m->tag;
}

/* The datatype for one call: now and then a copy, which may be freed as soon as the call returns. */
static MPI_Datatype lend_type(round_t *r, const image_t *image)
{
    MPI_Datatype type = image->type;

    if (SHAPE_PLAIN != image->shape.kind && coin(r, 2)) {
        MPI_Type_dup(image->type, &type);
    }
    return type;
}

static void take_back_type(const image_t *image, MPI_Datatype type)
{
    if (image->type != type) {
        MPI_Type_free(&type);
    }
}

/* --- tokens: empty messages on a communicator of their own, which tell one rank what another has done */

static void send_token(round_t *r, const message_t *m, int rank, uint64_t due)
{
    half_t *half = &r->tokens[m->index];

    half->kind = HALF_TOKEN;
    half->m = &r->plan->messages[m->index];
    round_enter(r, "MPI_Isend of a token", m);
    round_must(r, MPI_Isend(NULL, 0, MPI_BYTE, rank, m->index, r->t->control, &half->request));
    pend(r, half, due);
}

static void take_token(round_t *r, const message_t *m, int rank)
{
    round_enter(r, "MPI_Recv of a token", m);
    round_must(r, MPI_Recv(NULL, 0, MPI_BYTE, rank, m->index, r->t->control, MPI_STATUS_IGNORE));
}

/* --- sending */

static half_t *sending_half(round_t *r, const message_t *m)
{
    return &r->sends[WAY_PERSISTENT == m->send_way ? m->leader : m->index];
}

/* The memory to send from, filled; of a persistent request also the request, which must be idle. */
static half_t *prepare_send(round_t *r, message_t *m)
{
    half_t *half = sending_half(r, m);
    MPI_Datatype type;

    end_this(r, half);
    half->kind = HALF_SEND;
    half->m = m;
    if (NULL == half->image.memory || WAY_PERSISTENT != m->send_way) {
        image_open(&half->image, &m->out, m->key + 1);
    }
    if (WAY_PERSISTENT == m->send_way && !half->persistent) {
        type = lend_type(r, &half->image);
        round_enter(r, modes[m->mode].init_name, m);
        round_must(r, modes[m->mode].init(half->image.origin, m->out.count, type, address_of(r, m, m->target),
                                          m->tag, comm_of(r, m), &half->request));
        take_back_type(&half->image, type);
        half->persistent = true;
    }
    image_write(&half->image, m->bytes, m->key);
    return half;
}

static void begin_send(round_t *r, message_t *m)
{
    half_t *half = prepare_send(r, m);
    int target = address_of(r, m, m->target);

    if (WAY_BLOCKING == m->send_way) {
        round_enter(r, modes[m->mode].name, m);
        round_must(r, modes[m->mode].send(half->image.origin, m->out.count, half->image.type, target, m->tag,
                                          comm_of(r, m)));
        check_sent(r, m, &half->image);
        image_close(&half->image, "send");
        return;
    }
    MPI_Datatype type = lend_type(r, &half->image);
    round_enter(r, modes[m->mode].iname, m);
    round_must(r, modes[m->mode].isend(half->image.origin, m->out.count, type, target, m->tag, comm_of(r, m),
                                       &half->request));
    take_back_type(&half->image, type);
    if (r->plan->fenced && !m->held && coin(r, 16)) {
        round_enter(r, "MPI_Request_free of a send", m);
        round_must(r, MPI_Request_free(&half->request));
        r->freed[r->freed_count++] = half;
    } else {
        pend(r, half, m->send_due);
    }
}

/* A synchronous send that its receiver has not looked for yet must go on waiting. */
static void release_held(round_t *r, message_t *m)
{
    half_t *half = sending_half(r, m);

    for (int i = 0; i < 3; i++) {
        int done = 0;
        round_enter(r, "MPI_Test of a send that is held", m);
        round_must(r, MPI_Test(&half->request, &done, MPI_STATUS_IGNORE));
        if (done) {
            round_fail(r, m, "a synchronous send ended before its receive began");
        }
    }
    send_token(r, m, m->target, m->recv_at);
}

/* --- receiving */

static half_t *receiving_half(round_t *r, const message_t *m)
{
    return &r->receives[WAY_PERSISTENT == m->recv_way ? m->leader : m->index];
}

static half_t *prepare_receive(round_t *r, message_t *m)
{
    half_t *half = receiving_half(r, m);
    MPI_Datatype type;

    end_this(r, half);
    half->kind = HALF_RECEIVE;
    half->m = m;
    if (NULL == half->image.memory || WAY_PERSISTENT != m->recv_way) {
        image_open(&half->image, &m->in, m->key + 2);
    }
    if (WAY_PERSISTENT == m->recv_way && !half->persistent) {
        type = lend_type(r, &half->image);
        round_enter(r, "MPI_Recv_init", m);
        round_must(r, MPI_Recv_init(half->image.origin, m->in.count, type, source_of(r, m), tag_of(m),
                                    comm_of(r, m), &half->request));
        take_back_type(&half->image, type);
        half->persistent = true;
    }
    image_write(&half->image, 0, 0);
    return half;
}

static void post(round_t *r, half_t *half)
{
    message_t *m = half->m;
    MPI_Datatype type = lend_type(r, &half->image);

    round_enter(r, "MPI_Irecv", m);
    round_must(r, MPI_Irecv(half->image.origin, m->in.count, type, source_of(r, m), tag_of(m), comm_of(r, m),
                            &half->request));
    take_back_type(&half->image, type);
}

static void receive(round_t *r, half_t *half, int source, int tag)
{
    message_t *m = half->m;
    MPI_Status status;

    round_enter(r, "MPI_Recv", m);
    int error =
        MPI_Recv(half->image.origin, m->in.count, half->image.type, source, tag, comm_of(r, m), &status);
    check_received(r, half, &status, error);
}

static void probe_and_receive(round_t *r, half_t *half)
{
    message_t *m = half->m;
    MPI_Status status;
    int found = 0;

    if (coin(r, 2)) {
        round_enter(r, "MPI_Probe", m);
        round_must(r, MPI_Probe(source_of(r, m), tag_of(m), comm_of(r, m), &status));
    } else {
        round_enter(r, "MPI_Iprobe", m);
        while (!found) {
            round_must(r, MPI_Iprobe(source_of(r, m), tag_of(m), comm_of(r, m), &found, &status));
        }
    }
    check_probed(r, m, &status);
    receive(r, half, status.MPI_SOURCE, status.MPI_TAG);
}

/* Take a message out of the matching; take() receives it. */
static void match(round_t *r, half_t *half)
{
    message_t *m = half->m;
    MPI_Status status;
    int found = 0;

    if (coin(r, 2)) {
        round_enter(r, "MPI_Mprobe", m);
        round_must(r, MPI_Mprobe(source_of(r, m), tag_of(m), comm_of(r, m), &half->matched, &status));
    } else {
        round_enter(r, "MPI_Improbe", m);
        while (!found) {
            round_must(
                r, MPI_Improbe(source_of(r, m), tag_of(m), comm_of(r, m), &found, &half->matched, &status));
        }
    }
    check_probed(r, m, &status);
}

static void take(round_t *r, half_t *half)
{
    message_t *m = half->m;
    MPI_Status status;
    bool blocking = coin(r, 2);
    int error = MPI_SUCCESS;

    if (blocking) {
        round_enter(r, "MPI_Mrecv", m);
        error = MPI_Mrecv(half->image.origin, m->in.count, half->image.type, &half->matched, &status);
    } else {
        MPI_Datatype type = lend_type(r, &half->image);
        round_enter(r, "MPI_Imrecv", m);
        round_must(r, MPI_Imrecv(half->image.origin, m->in.count, type, &half->matched, &half->request));
        take_back_type(&half->image, type);
        pend(r, half, m->recv_due);
    }
    if (MPI_MESSAGE_NULL != half->matched) {
        round_fail(r, m, "%s left its message", r->t->doing);
    }
    if (blocking) {
        check_received(r, half, &status, error);
    }
}

/* Post and cancel. When that came too late the message is there, otherwise it is still to be had. */
static void cancel_and_receive(round_t *r, half_t *half)
{
    message_t *m = half->m;
    MPI_Status status;
    int cancelled = 0;
    int done = 0;
    int tests = (int) verify_below(&r->rng, 4);
    int error = MPI_SUCCESS;

    post(r, half);
    for (int i = 0; i < tests && !done; i++) {
        round_enter(r, "MPI_Test before a cancel", m);
        error = MPI_Test(&half->request, &done, &status);
    }
    if (!done) {
        round_enter(r, "MPI_Cancel", m);
        round_must(r, MPI_Cancel(&half->request));
        round_enter(r, "MPI_Wait after a cancel", m);
        error = MPI_Wait(&half->request, &status);
        MPI_Test_cancelled(&status, &cancelled);
    }
    if (cancelled) {
        r->t->cancelled++;
        receive(r, half, source_of(r, m), tag_of(m));
    } else {
        check_received(r, half, &status, error);
    }
}

static void begin_receive(round_t *r, message_t *m)
{
    half_t *half = prepare_receive(r, m);

    if (m->held) {
        take_token(r, m, m->source);
    }
    switch (m->recv_way) {
    case WAY_BLOCKING:
        receive(r, half, source_of(r, m), tag_of(m));
        break;
    case WAY_PROBE:
        probe_and_receive(r, half);
        break;
    case WAY_MATCHED:
        match(r, half);
        if (0 == m->take_at) {
            take(r, half);
        }
        break;
    case WAY_CANCEL:
        cancel_and_receive(r, half);
        break;
    default:
        post(r, half);
        pend(r, half, m->recv_due);
        break;
    }
    if (MODE_READY == m->mode) {
        send_token(r, m, m->source, m->send_at);
    }
}

/* --- persistent requests */

static bool is_start(const event_t *event)
{
    return (DO_SEND == event->deed && WAY_PERSISTENT == event->m->send_way)
           || (DO_RECEIVE == event->deed && WAY_PERSISTENT == event->m->recv_way);
}

/* Whether an event can share an MPI_Startall, which starts in any order, with those before it. */
static bool joins(round_t *r, const event_t *first, const event_t *event)
{
    bool sends = DO_SEND == first->deed;
    const half_t *half = sends ? sending_half(r, event->m) : receiving_half(r, event->m);

    if (!is_start(event) || event->deed != first->deed || half->active || MODE_READY == event->m->mode
        || event->m->held) {
        return false;
    }
    for (const event_t *other = first; other < event; other++) {
        int mine = sends ? event->m->target : event->m->source;
        int theirs = sends ? other->m->target : other->m->source;
        if (event->m->space == other->m->space
            && (mine == theirs || event->m->any_source || other->m->any_source)) {
            return false;
        }
    }
    return true;
}

/* Start the persistent request of an event, and those of the next ones that can go with it. Returns how many
 * events that was. */
static int start(round_t *r, const event_t *event, int left)
{
    half_t *halves[MOST_STARTS];
    MPI_Request requests[MOST_STARTS];
    bool sends = DO_SEND == event->deed;
    message_t *m = event->m;
    int count = 1;

    if (sends && MODE_READY == m->mode) {
        take_token(r, m, m->target);
    } else if (!sends && m->held) {
        take_token(r, m, m->source);
    }
    while (count < MOST_STARTS && count < left && MODE_READY != m->mode && joins(r, event, event + count)) {
        count++;
    }
    for (int i = 0; i < count; i++) {
        halves[i] = sends ? prepare_send(r, event[i].m) : prepare_receive(r, event[i].m);
        requests[i] = halves[i]->request;
    }
    if (1 == count && coin(r, 2)) {
        round_enter(r, "MPI_Start", m);
        round_must(r, MPI_Start(requests));
    } else {
        round_enter(r, "MPI_Startall", m);
        round_must(r, MPI_Startall(count, requests));
    }
    for (int i = 0; i < count; i++) {
        halves[i]->request = requests[i];
        pend(r, halves[i], sends ? event[i].m->send_due : event[i].m->recv_due);
    }
    if (!sends && MODE_READY == m->mode) {
        send_token(r, m, m->source, m->send_at);
    }
    return count;
}

/* --- sendrecv */

/* Send @p out, or to MPI_PROC_NULL, and receive @p in, or from there, in one call. */
static void exchange(round_t *r, message_t *out, message_t *in)
{
    half_t *sending = NULL == out ? NULL : prepare_send(r, out);
    half_t *receiving = NULL == in ? NULL : prepare_receive(r, in);
    int target = NULL == out ? MPI_PROC_NULL : address_of(r, out, out->target);
    int source = NULL == in ? MPI_PROC_NULL : source_of(r, in);
    bool replace = NULL != out && WAY_REPLACE == out->send_way;
    MPI_Status status;
    int error;

    if (replace) {
        round_enter(r, "MPI_Sendrecv_replace", out);
        image_write(&receiving->image, out->bytes, out->key);
        error = MPI_Sendrecv_replace(receiving->image.origin, in->in.count, receiving->image.type, target,
                                     out->tag, source, tag_of(in), comm_of(r, out), &status);
    } else {
        const message_t *any = NULL == out ? in : out;
        round_enter(r, "MPI_Sendrecv", any);
        error = MPI_Sendrecv(NULL == out ? NULL : sending->image.origin, NULL == out ? 0 : out->out.count,
                             NULL == out ? MPI_BYTE : sending->image.type, target, any->tag,
                             NULL == in ? NULL : receiving->image.origin, NULL == in ? 0 : in->in.count,
                             NULL == in ? MPI_BYTE : receiving->image.type, source,
                             NULL == in ? any->tag : tag_of(in), comm_of(r, any), &status);
    }
    if (NULL != out) {
        check_sent(r, out, &sending->image);
        image_close(&sending->image, "send of a sendrecv");
    }
    if (NULL != in) {
        check_received(r, receiving, &status, error);
    } else {
        round_must(r, error);
        check_null_status(r, &status);
    }
}

static void begin_exchange(round_t *r, message_t *m)
{
    bool sends = m->source == r->t->rank;
    int other = sends ? m->sender_gets : m->target_gives;
    message_t *partner = other < 0 ? NULL : &r->plan->messages[other];

    exchange(r, sends ? m : partner, sends ? partner : m);
}

/* --- the round */

/* What this rank has to do for a message; returns how many events that is. */
static int events_of(const round_t *r, message_t *m, event_t *events)
{
    bool sends = m->source == r->t->rank;
    bool receives = m->target == r->t->rank;
    int count = 0;

    if (WAY_EXCHANGE == m->send_way || WAY_REPLACE == m->send_way) {
        if (sends || (receives && m->target_gives < 0)) {
            events[count++] = (event_t){m->send_at, DO_EXCHANGE, m};
        }
        return count;
    }
    if (sends) {
        events[count++] = (event_t){m->send_at, DO_SEND, m};
        if (m->held) {
            events[count++] = (event_t){m->recv_at, DO_RELEASE, m};
        }
    }
    if (receives) {
        events[count++] = (event_t){m->recv_at, DO_RECEIVE, m};
        if (0 != m->take_at) {
            events[count++] = (event_t){m->take_at, DO_TAKE, m};
        }
    }
    return count;
}

static int compare_events(const void *a, const void *b)
{
    const event_t *one = a;
    const event_t *two = b;

    if (one->at != two->at) {
        return one->at < two->at ? -1 : 1;
    }
    return (one->deed > two->deed) - (one->deed < two->deed);
}

/* Do what the first event says; returns how many were done with it. */
static int handle(round_t *r, const event_t *event, int left)
{
    message_t *m = event->m;

    r->now = event->at;
    if (is_start(event)) {
        return start(r, event, left);
    }
    switch (event->deed) {
    case DO_RELEASE:
        release_held(r, m);
        break;
    case DO_SEND:
        if (MODE_READY == m->mode) {
            take_token(r, m, m->target);
        }
        begin_send(r, m);
        break;
    case DO_RECEIVE:
        begin_receive(r, m);
        break;
    case DO_TAKE:
        take(r, receiving_half(r, m));
        break;
    case DO_EXCHANGE:
        begin_exchange(r, m);
        break;
    }
    return 1;
}

/* Open MPI 4.1 looks for the error handler of a truncated receive in its communicator after letting go of that. */
static bool truncates_pending(const round_t *r)
{
    bool found = false;

    for (int i = 0; i < r->pending_count; i++) {
        const half_t *half = r->pending[i];
        found = found || (HALF_RECEIVE == half->kind && truncates(half->m));
    }
    return found;
}

/* End all that is pending; with a short-lived communicator, now and then after it has been freed. */
static void drain(round_t *r)
{
    if (r->t->spaces[SPACE_SHORT].alive && !truncates_pending(r) && coin(r, 2)) {
        round_enter(r, "MPI_Comm_free before its requests end", NULL);
        space_close_short(r->t);
    }
    for (int i = 0; i < MOST_JUNK; i++) {
        noise_cancel(r, &r->junk[i]);
    }
    r->now = UINT64_MAX;
    while (r->pending_count > 0) {
        end_some(r);
    }
    round_enter(r, "MPI_Comm_free", NULL);
    space_close_short(r->t);
}

static void free_persistent(round_t *r, half_t *half)
{
    if (half->persistent) {
        round_enter(r, "MPI_Request_free", half->m);
        round_must(r, MPI_Request_free(&half->request));
        if (MPI_REQUEST_NULL != half->request) {
            round_fail(r, half->m, "MPI_Request_free left its request");
        }
        image_close(&half->image, "buffer of a persistent request");
    }
}

/* Behind the barrier all messages of the round have arrived, so the freed requests are done with their memory. */
static void fence(round_t *r)
{
    round_enter(r, "MPI_Barrier", NULL);
    round_must(r, MPI_Barrier(r->t->parent));
    for (int i = 0; i < r->freed_count; i++) {
        check_sent(r, r->freed[i]->m, &r->freed[i]->image);
        image_close(&r->freed[i]->image, "send whose request was freed");
    }
}

static void *get_array(size_t count, size_t size)
{
    void *array = calloc(count + 1, size);

    verify_that(NULL != array, "no memory for a round");
    return array;
}

void round_run(torture_t *t, plan_t *plan)
{
    size_t most = (size_t) plan->count;
    round_t r = {
        .t = t,
        .plan = plan,
        .rng = {.state = verify_key(t->seed, t->round, (uint64_t) t->thread, 1000 + (uint64_t) t->rank)},
        .sends = get_array(most, sizeof(*r.sends)),
        .receives = get_array(most, sizeof(*r.receives)),
        .tokens = get_array(most, sizeof(*r.tokens)),
        .pending = get_array(3 * most + MOST_JUNK, sizeof(*r.pending)),
        .freed = get_array(most, sizeof(*r.freed))};
    event_t *events = get_array(4 * most, sizeof(*events));
    int count = 0;

    for (int i = 0; i < plan->count; i++) {
        count += events_of(&r, &plan->messages[i], events + count);
    }
    qsort(events, (size_t) count, sizeof(*events), compare_events);
    for (int i = 0; i < count;) {
        noise_make(&r);
        for (uint64_t n = verify_below(&r.rng, 4); n > 1; n--) {
            end_some(&r);
        }
        i += handle(&r, &events[i], count - i);
    }
    drain(&r);
    for (int i = 0; i < plan->count; i++) {
        free_persistent(&r, &r.sends[i]);
        free_persistent(&r, &r.receives[i]);
    }
    if (plan->fenced) {
        fence(&r);
    }
    free(events);
    free(r.sends);
    free(r.receives);
    free(r.tokens);
    free(r.pending);
    free(r.freed);
}
