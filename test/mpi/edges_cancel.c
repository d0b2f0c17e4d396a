/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges_cancel.c
 * Cancelling, before and after the match and in between.
 */
#include "dn_config.h"

#include "edges.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void cancel_after_the_match_does_nothing(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        if (0 == edges.rank) {
            edges_meet();
            edges_send(edges_lengths[i], i, 1, EDGES_TAG, edges.world);
            continue;
        }
        unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
        MPI_Request request;
        MPI_Status status;
        int cancelled = 1;
        edges_must(MPI_Irecv(in, (int) edges_lengths[i], MPI_BYTE, 0, EDGES_TAG, edges.world, &request),
                   "MPI_Irecv");
        edges_meet();
        for (int done = 0; !done;) {
            edges_must(MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE), "MPI_Request_get_status");
        }
        edges_must(MPI_Cancel(&request), "MPI_Cancel");
        edges_must(MPI_Wait(&request, &status), "MPI_Wait");
        MPI_Test_cancelled(&status, &cancelled);
        verify_that(!cancelled, "a receive was cancelled after it had its message");
        edges_status(&status, 0, EDGES_TAG, edges_lengths[i]);
        verify_expect(in, edges_lengths[i], i, "message of a receive that was cancelled too late");
        verify_guard_free(in, edges_lengths[i], 0, "receive that was cancelled too late");
    }
}

static void cancel_and_wait(MPI_Request *request)
{
    MPI_Status status;
    int cancelled = 0;

    edges_must(MPI_Cancel(request), "MPI_Cancel");
    edges_must(MPI_Wait(request, &status), "MPI_Wait");
    MPI_Test_cancelled(&status, &cancelled);
    verify_that(cancelled, "a receive without a message was not cancelled");
}

/* Every second of many receives is cancelled, from both ends by turns; the messages go to the others. */
static void cancel_before_the_match_leaves_the_others(void)
{
    enum { COUNT = 1000 };
    static MPI_Request requests[2 * COUNT];
    static uint64_t values[2 * COUNT];
    static const int sources[] = {0, MPI_ANY_SOURCE};

    if (0 == edges.rank) {
        edges_meet();
        for (int i = 0; i < COUNT; i++) {
            uint64_t value = (uint64_t) i;
            edges_must(MPI_Send(&value, 1, MPI_UINT64_T, 1, EDGES_TAG, edges.world), "MPI_Send");
        }
        return;
    }
    for (int i = 0; i < 2 * COUNT; i++) {
        values[i] = UINT64_MAX;
        edges_must(MPI_Irecv(&values[i], 1, MPI_UINT64_T, sources[i / 2 % 2], i % 3 ? EDGES_TAG : MPI_ANY_TAG,
                             edges.world, &requests[i]),
                   "MPI_Irecv");
    }
    for (int i = 0; i < COUNT; i++) {
        int half = i / 2;
        cancel_and_wait(&requests[0 == i % 2 ? 2 * half : 2 * (COUNT - 1 - half)]);
    }
    edges_meet();
    for (int i = 0; i < COUNT; i++) {
        edges_must(MPI_Wait(&requests[2 * i + 1], MPI_STATUS_IGNORE), "MPI_Wait");
        verify_that((uint64_t) i == values[2 * i + 1],
                    "a message went to another receive than the first left");
        verify_that(UINT64_MAX == values[2 * i], "a cancelled receive changed its buffer");
    }
}

/* Rank 0 sends a 5 once both have met. The other makes a persistent receive for it. Returns whether this is the other. */
static bool make_persistent_receive(uint64_t *value, MPI_Request *request)
{
    const uint64_t five = 5;

    if (0 == edges.rank) {
        edges_meet();
        edges_must(MPI_Send(&five, 1, MPI_UINT64_T, 1, EDGES_TAG, edges.world), "MPI_Send");
        return false;
    }
    edges_must(MPI_Recv_init(value, 1, MPI_UINT64_T, MPI_ANY_SOURCE, EDGES_TAG, edges.world, request),
               "MPI_Recv_init");
    return true;
}

/* A persistent receive can be started again after it was cancelled. */
static void cancelled_persistent_receive_starts_again(void)
{
    uint64_t value = 1;
    MPI_Request request;

    if (!make_persistent_receive(&value, &request)) {
        return;
    }
    for (int i = 0; i < 100; i++) {
        edges_must(MPI_Start(&request), "MPI_Start");
        cancel_and_wait(&request);
    }
    verify_that(1 == value, "a cancelled receive changed its buffer");
    edges_must(MPI_Start(&request), "MPI_Start");
    edges_meet();
    edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    verify_that(5 == value, "a receive started again after a cancel got something else");
    edges_must(MPI_Request_free(&request), "MPI_Request_free");
}

/* A receive that is active is not started again, and goes on. */
static void active_receive_is_not_started_again(void)
{
    uint64_t value = 1;
    MPI_Request request;
    int class = MPI_SUCCESS;

    /* pml/ob1 starts another one in its place. */
    if (!edges.ask_all || !make_persistent_receive(&value, &request)) {
        return;
    }
    edges_must(MPI_Start(&request), "MPI_Start");
    MPI_Error_class(MPI_Start(&request), &class);
    verify_that(MPI_ERR_REQUEST == class, "a receive that is active was started again");
    edges_meet();
    edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    verify_that(5 == value, "a receive got something else as it was to be started again");
    edges_must(MPI_Request_free(&request), "MPI_Request_free");
}

/* A cancel that meets its message: it comes with this receive, or it is there for the next one. */
static void cancel_while_it_arrives_loses_nothing(void)
{
    enum { ROUNDS = 500 };

    for (int i = 0; i < ROUNDS; i++) {
        const size_t length = edges_lengths[(size_t) i % EDGES_LENGTHS];
        if (0 == edges.rank) {
            edges_send(length, (uint64_t) i, 1, EDGES_TAG, edges.pair);
            continue;
        }
        unsigned char *in = verify_guard_alloc(length, 0);
        unsigned char *zeros = edges_get(length, 1);
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0;
        memset(in, 0, length);
        edges_must(MPI_Irecv(in, (int) length, MPI_BYTE, 0, EDGES_TAG, edges.pair, &request), "MPI_Irecv");
        for (int looks = i % 7; looks > 0; looks--) {
            (void) edges_is_there(0, EDGES_OTHER, edges.pair);
        }
        edges_must(MPI_Cancel(&request), "MPI_Cancel");
        edges_must(MPI_Wait(&request, &status), "MPI_Wait");
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled) {
            verify_that(0 == memcmp(in, zeros, length), "a cancelled receive changed its buffer");
            edges_receive(length, (uint64_t) i, 0, EDGES_TAG, 0, EDGES_TAG, edges.pair);
        } else {
            edges_status(&status, 0, EDGES_TAG, length);
            verify_expect(in, length, (uint64_t) i, "message of a receive that a cancel met");
        }
        free(zeros);
        verify_guard_free(in, length, 0, "receive that a cancel met");
    }
}

/* A send that is cancelled arrives, or says that it was cancelled and does not. */
static void cancelled_send_arrives_or_says_so(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        const int length = (int) edges_lengths[i];
        unsigned char *bytes = edges_data(edges_lengths[i], i);
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0;
        if (0 == edges.rank) {
            edges_must(MPI_Isend(bytes, length, MPI_BYTE, 1, EDGES_TAG, edges.world, &request), "MPI_Isend");
            edges_must(MPI_Cancel(&request), "MPI_Cancel of a send");
            edges_must(MPI_Wait(&request, &status), "MPI_Wait");
            MPI_Test_cancelled(&status, &cancelled);
            edges_must(MPI_Send(&cancelled, 1, MPI_INT, 1, EDGES_OTHER, edges.world), "MPI_Send");
        } else {
            memset(bytes, 0, edges_lengths[i]);
            edges_must(MPI_Irecv(bytes, length, MPI_BYTE, 0, EDGES_TAG, edges.world, &request), "MPI_Irecv");
            edges_must(MPI_Recv(&cancelled, 1, MPI_INT, 0, EDGES_OTHER, edges.world, MPI_STATUS_IGNORE),
                       "MPI_Recv");
            if (cancelled) {
                cancel_and_wait(&request);
            } else {
                edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
                verify_expect(bytes, edges_lengths[i], i, "message of a send that was cancelled in vain");
            }
        }
        free(bytes);
    }
}

/** A pipe from rank 1 to rank 0: each gets its end. */
static int open_pipe(void)
{
    char path[64] = "";
    int end[2] = {-1, -1};

    if (0 == edges.rank) {
        verify_that(0 == pipe(end), "there is no pipe to be had");
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) getpid(), end[1]);
        edges_must(MPI_Send(path, sizeof(path), MPI_CHAR, 1, EDGES_OTHER, edges.world), "MPI_Send");
    } else {
        edges_must(MPI_Recv(path, sizeof(path), MPI_CHAR, 0, EDGES_OTHER, edges.world, MPI_STATUS_IGNORE),
                   "MPI_Recv");
        end[0] = open(path, O_WRONLY);
        verify_that(0 <= end[0], "the other rank's pipe cannot be opened");
    }
    edges_meet();
    if (0 == edges.rank) {
        struct pollfd waits = {.fd = end[0], .events = POLLIN};
        char met;
        /* What the other one needs to leave the meeting may be held back until this one progresses. */
        while (0 == poll(&waits, 1, 0)) {
            (void) edges_is_there(MPI_ANY_SOURCE, EDGES_OTHER, edges.world);
        }
        verify_that(1 == read(end[0], &met, 1), "the other rank's pipe is gone");
        close(end[1]);
    } else {
        verify_that(1 == write(end[0], "", 1), "the pipe cannot be written");
    }
    return end[0];
}

/* The source of a cancelled receive may be anywhere but in MPI, waiting for the receiver, say. */
static void cancelled_receive_needs_nothing_of_its_source(void)
{
    enum { PATIENCE_MS = 20000 };

    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        const int end = open_pipe();
        if (0 == edges.rank) {
            struct pollfd waits = {.fd = end, .events = POLLIN};
            verify_that(1 == poll(&waits, 1, PATIENCE_MS),
                        "a cancelled receive waits for its source to enter MPI");
        } else {
            unsigned char *in = verify_guard_alloc(edges_lengths[i], 0);
            MPI_Request request;
            edges_must(MPI_Irecv(in, (int) edges_lengths[i], MPI_BYTE, 0, EDGES_TAG, edges.world, &request),
                       "MPI_Irecv");
            cancel_and_wait(&request);
            verify_that(1 == write(end, "", 1), "the pipe cannot be written");
            verify_guard_free(in, edges_lengths[i], 0, "receive that was cancelled");
        }
        close(end);
    }
}

const edges_check_t edges_cancel[] = {
    {"cancelled_receive_needs_nothing_of_its_source", cancelled_receive_needs_nothing_of_its_source, false},
    {"cancel_after_the_match_does_nothing", cancel_after_the_match_does_nothing, false},
    {"cancel_before_the_match_leaves_the_others", cancel_before_the_match_leaves_the_others, false},
    {"cancelled_persistent_receive_starts_again", cancelled_persistent_receive_starts_again, false},
    {"active_receive_is_not_started_again", active_receive_is_not_started_again, false},
    {"cancel_while_it_arrives_loses_nothing", cancel_while_it_arrives_loses_nothing, false},
    {"cancelled_send_arrives_or_says_so", cancelled_send_arrives_or_says_so, false},
    {0},
};
