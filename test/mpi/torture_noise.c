/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_noise.c
 * Calls between the messages of a plan that must change nothing: with MPI_PROC_NULL, receives and probes that
 * nothing can match, and probes whose answer is not used.
 */
#include "dn_config.h"

#include "torture.h"

#include <sched.h>

static MPI_Comm any_comm(round_t *r, const space_t **space_p)
{
    const space_t *space;

    do {
        space = &r->t->spaces[verify_below(&r->rng, SPACES)];
    } while (!space->alive);
    *space_p = space;
    return space->handle;
}

/* Ranks that may be named as a source there. */
static int sources(const round_t *r, const space_t *space)
{
    int side = space->side[r->t->rank];

    return space->sizes[space->inter ? 1 - side : side];
}

static void null_receive(round_t *r, MPI_Comm comm)
{
    MPI_Status status;
    MPI_Request request;
    char byte = 7;

    switch (verify_below(&r->rng, 3)) {
    case 0:
        round_enter(r, "MPI_Recv from MPI_PROC_NULL", NULL);
        round_must(r, MPI_Recv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, comm, &status));
        break;
    case 1:
        round_enter(r, "MPI_Irecv from MPI_PROC_NULL", NULL);
        round_must(r, MPI_Irecv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 5, comm, &request));
        round_must(r, MPI_Wait(&request, &status));
        break;
    default:
        round_enter(r, "MPI_Recv_init from MPI_PROC_NULL", NULL);
        round_must(r, MPI_Recv_init(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 5, comm, &request));
        round_must(r, MPI_Start(&request));
        round_must(r, MPI_Wait(&request, &status));
        round_must(r, MPI_Request_free(&request));
        break;
    }
    check_null_status(r, &status);
    if (7 != byte) {
        round_fail(r, NULL, "%s wrote into the buffer", r->t->doing);
    }
}

static void null_send(round_t *r, MPI_Comm comm)
{
    static int (*const sends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend,
                                                                                        MPI_Bsend, MPI_Rsend};
    static int (*const isends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                 MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    static int (*const inits[])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    uint64_t mode = verify_below(&r->rng, MODES);
    uint64_t way = verify_below(&r->rng, 3);
    MPI_Request request = MPI_REQUEST_NULL;
    char byte = 7;

    round_enter(r, "send to MPI_PROC_NULL", NULL);
    if (0 == way) {
        round_must(r, sends[mode](&byte, 1, MPI_BYTE, MPI_PROC_NULL, 5, comm));
    } else if (1 == way) {
        round_must(r, isends[mode](&byte, 1, MPI_BYTE, MPI_PROC_NULL, 5, comm, &request));
    } else {
        round_must(r, inits[mode](&byte, 1, MPI_BYTE, MPI_PROC_NULL, 5, comm, &request));
        round_must(r, MPI_Start(&request));
    }
    round_must(r, MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (2 == way) {
        round_must(r, MPI_Request_free(&request));
    }
}

static void null_sendrecv(round_t *r, MPI_Comm comm)
{
    MPI_Status status;
    char bytes[2] = {7, 7};

    if (0 == verify_below(&r->rng, 2)) {
        round_enter(r, "MPI_Sendrecv with MPI_PROC_NULL", NULL);
        round_must(r, MPI_Sendrecv(bytes, 1, MPI_BYTE, MPI_PROC_NULL, 5, bytes + 1, 1, MPI_BYTE,
                                   MPI_PROC_NULL, 5, comm, &status));
    } else {
        round_enter(r, "MPI_Sendrecv_replace with MPI_PROC_NULL", NULL);
        round_must(r, MPI_Sendrecv_replace(bytes, 2, MPI_BYTE, MPI_PROC_NULL, 5, MPI_PROC_NULL, MPI_ANY_TAG,
                                           comm, &status));
    }
    check_null_status(r, &status);
    if (7 != bytes[0] || 7 != bytes[1]) {
        round_fail(r, NULL, "%s wrote into the buffer", r->t->doing);
    }
}

static void null_probe(round_t *r, MPI_Comm comm)
{
    uint64_t way = verify_below(&r->rng, 4);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    MPI_Status status;
    int found = 1;

    round_enter(r, "probe of MPI_PROC_NULL", NULL);
    if (0 == way) {
        round_must(r, MPI_Probe(MPI_PROC_NULL, 5, comm, &status));
    } else if (1 == way) {
        round_must(r, MPI_Iprobe(MPI_PROC_NULL, 5, comm, &found, &status));
    } else if (2 == way) {
        round_must(r, MPI_Mprobe(MPI_PROC_NULL, 5, comm, &message, &status));
    } else {
        round_must(r, MPI_Improbe(MPI_PROC_NULL, 5, comm, &found, &message, &status));
    }
    check_null_status(r, &status);
    if (!found || (MPI_MESSAGE_NO_PROC == message) != (way > 1)) {
        round_fail(r, NULL, "a probe of MPI_PROC_NULL found nothing");
    }
    if (2 == way) {
        round_must(r, MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status));
        check_null_status(r, &status);
    } else if (3 == way) {
        round_must(r, MPI_Imrecv(NULL, 0, MPI_BYTE, &message, &request));
        round_must(r, MPI_Wait(&request, &status));
        check_null_status(r, &status);
    }
}

/* Nothing has the tag that is never sent. */
static void probe_for_nothing(round_t *r)
{
    const space_t *space;
    MPI_Comm comm = any_comm(r, &space);
    MPI_Message message;
    MPI_Status status;
    int found = 0;

    if (0 == verify_below(&r->rng, 2)) {
        round_enter(r, "MPI_Iprobe for nothing", NULL);
        round_must(r, MPI_Iprobe(MPI_ANY_SOURCE, r->plan->never_tag, comm, &found, &status));
    } else {
        int source = (int) verify_below(&r->rng, (uint64_t) sources(r, space));
        round_enter(r, "MPI_Improbe for nothing", NULL);
        round_must(r, MPI_Improbe(source, r->plan->never_tag, comm, &found, &message, &status));
    }
    if (found) {
        round_fail(r, NULL, "%s found something with tag %d", r->t->doing, status.MPI_TAG);
    }
}

/* Whatever is there, only its bounds are known. */
static void peek(round_t *r)
{
    const space_t *space;
    MPI_Comm comm = any_comm(r, &space);
    MPI_Status status;
    int found = 0;

    round_enter(r, "MPI_Iprobe for anything", NULL);
    round_must(r, MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status));
    if (found
        && (status.MPI_SOURCE < 0 || status.MPI_SOURCE >= sources(r, space) || status.MPI_TAG < 0
            || status.MPI_TAG > r->t->tag_top)) {
        round_fail(r, NULL, "MPI_Iprobe found source %d and tag %d", status.MPI_SOURCE, status.MPI_TAG);
    }
}

/* Post a receive that nothing matches, or cancel one. */
static void add_junk(round_t *r)
{
    static const shape_t shape = {.kind = SHAPE_PLAIN, .unit = 1, .each = 1, .count = 64};
    half_t *half = &r->junk[verify_below(&r->rng, MOST_JUNK)];
    const space_t *space;
    MPI_Comm comm = any_comm(r, &space);
    int source = MPI_ANY_SOURCE;

    if (half->active) {
        noise_cancel(r, half);
        return;
    }
    if (0 == verify_below(&r->rng, 2)) {
        source = (int) verify_below(&r->rng, (uint64_t) sources(r, space));
    }
    *half = (half_t){.kind = HALF_JUNK};
    image_open(&half->image, &shape, verify_random(&r->rng));
    image_write(&half->image, 0, 0);
    round_enter(r, "MPI_Irecv of nothing", NULL);
    round_must(r,
               MPI_Irecv(half->image.origin, 64, MPI_BYTE, source, r->plan->never_tag, comm, &half->request));
    pend(r, half, UINT64_MAX);
}

void noise_cancel(round_t *r, half_t *half)
{
    if (half->active && !half->cancelled) {
        round_enter(r, "MPI_Cancel", NULL);
        round_must(r, MPI_Cancel(&half->request));
        half->cancelled = true;
        half->due = 0;
    }
}

/* Let others get ahead, without MPI making progress here. */
static void pause_shortly(round_t *r)
{
    if (0 == verify_below(&r->rng, 4)) {
        verify_sleep_ms((unsigned) verify_below(&r->rng, 3));
    } else {
        sched_yield();
    }
}

void noise_make(round_t *r)
{
    const space_t *space;
    MPI_Comm comm = any_comm(r, &space);

    switch (verify_below(&r->rng, 40)) {
    case 0:
        null_receive(r, comm);
        break;
    case 1:
        null_send(r, comm);
        break;
    case 2:
        null_sendrecv(r, comm);
        break;
    case 3:
        null_probe(r, comm);
        break;
    case 4:
    case 5:
        probe_for_nothing(r);
        break;
    case 6:
    case 7:
        peek(r);
        break;
    case 8:
    case 9:
    case 10:
        add_junk(r);
        break;
    case 11:
        pause_shortly(r);
        break;
    default:
        break;
    }
}
