/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges_comm.c
 * Requests and communicators that are freed while messages are under way.
 */
#include "dn_config.h"

#include "edges.h"

#include <stdlib.h>

/* Sends go on after MPI_Request_free, nonblocking and persistent ones. */
static void freed_sends_arrive(void)
{
    enum { EACH = 30 };
    unsigned char *bytes[EDGES_LENGTHS];

    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        bytes[i] = edges_data(edges_lengths[i], i);
        for (int n = 0; n < EACH && 0 == edges.rank; n++) {
            MPI_Request request;
            if (n % 3) {
                edges_must(MPI_Isend(bytes[i], (int) edges_lengths[i], MPI_BYTE, 1, EDGES_TAG, edges.world,
                                     &request),
                           "MPI_Isend");
            } else {
                edges_must(MPI_Ssend_init(bytes[i], (int) edges_lengths[i], MPI_BYTE, 1, EDGES_TAG,
                                          edges.world, &request),
                           "MPI_Ssend_init");
                edges_must(MPI_Start(&request), "MPI_Start");
            }
            edges_must(MPI_Request_free(&request), "MPI_Request_free");
            verify_that(MPI_REQUEST_NULL == request, "MPI_Request_free left its request");
        }
    }
    for (size_t i = 0; i < EDGES_LENGTHS && 1 == edges.rank; i++) {
        for (int n = 0; n < EACH; n++) {
            edges_receive(edges_lengths[i], i, 0, EDGES_TAG, 0, EDGES_TAG, edges.world);
        }
    }
    edges_meet(); /* the memory is in use until here */
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        free(bytes[i]);
    }
}

/* A receive goes on after MPI_Request_free as well; that it ended shows in its memory only. */
static void freed_receives_are_filled(void)
{
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        if (0 == edges.rank) {
            edges_meet();
            edges_send(edges_lengths[i], i, 1, EDGES_TAG, edges.world);
            edges_meet();
            continue;
        }
        unsigned char *in = edges_get(edges_lengths[i], 1);
        MPI_Request request;
        edges_must(
            MPI_Irecv(in, (int) edges_lengths[i], MPI_BYTE, MPI_ANY_SOURCE, EDGES_TAG, edges.world, &request),
            "MPI_Irecv");
        edges_must(MPI_Request_free(&request), "MPI_Request_free");
        edges_meet();
        while (verify_mismatch(in, edges_lengths[i], i) < edges_lengths[i]) {
            edges_is_there(0, EDGES_OTHER, edges.world);
        }
        edges_meet();
        free(in);
    }
}

/* Communicators freed as soon as their receives and sends have begun, while messages wait on another. */
static void freed_communicators_end_what_was_begun(void)
{
    enum { EACH = 2, WAITING = 3 };
    static const size_t waiting[WAITING] = {8, 5000, 70000};
    MPI_Request requests[EACH * EDGES_LENGTHS];
    MPI_Request more[WAITING];
    unsigned char *bytes[EACH * EDGES_LENGTHS];
    unsigned char *out = edges_data(70000, 1);
    MPI_Comm comms[EACH];
    int count = 0;

    for (int n = 0; n < EACH; n++) {
        edges_must(MPI_Comm_dup(edges.pair, &comms[n]), "MPI_Comm_dup");
    }
    for (int i = 0; i < WAITING && 0 == edges.rank; i++) {
        edges_must(MPI_Isend(out, (int) waiting[i], MPI_BYTE, 1, EDGES_TAG, edges.pair, &more[i]),
                   "MPI_Isend");
    }
    for (size_t i = 0; i < EDGES_LENGTHS; i++) {
        for (int n = 0; n < EACH; n++) {
            bytes[count] = 0 == edges.rank ? edges_data(edges_lengths[i], (uint64_t) count)
                                           : edges_get(edges_lengths[i], 1);
            if (0 == edges.rank) {
                edges_must(MPI_Isend(bytes[count], (int) edges_lengths[i], MPI_BYTE, 1, EDGES_TAG, comms[n],
                                     &requests[count]),
                           "MPI_Isend");
            } else {
                edges_must(MPI_Irecv(bytes[count], (int) edges_lengths[i], MPI_BYTE, 0, EDGES_TAG, comms[n],
                                     &requests[count]),
                           "MPI_Irecv");
            }
            count++;
        }
    }
    for (int n = 0; n < EACH; n++) {
        edges_must(MPI_Comm_free(&comms[n]), "MPI_Comm_free");
    }
    edges_must(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (int i = 0; i < count; i++) {
        verify_expect(bytes[i], edges_lengths[i / EACH], (uint64_t) i,
                      "message on a communicator that was freed");
        free(bytes[i]);
    }
    for (int i = 0; i < WAITING && 1 == edges.rank; i++) {
        edges_receive(waiting[i], 1, 0, MPI_ANY_TAG, 0, EDGES_TAG, edges.pair);
    }
    if (0 == edges.rank) {
        edges_must(MPI_Waitall(WAITING, more, MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    free(out);
}

/*
 * Thousands of communicators, a few alive at a time, so that their numbers are used again. The first message
 * is sent at once, when the receiver may still be making its communicator; another waits on an old one.
 */
static void communicators_come_and_go(void)
{
    enum { ALIVE = 7 };
    MPI_Comm alive[ALIVE];
    int right = (edges.rank + 1) % edges.ranks;
    int left = (edges.rank + edges.ranks - 1) % edges.ranks;

    for (int i = 0; i < ALIVE; i++) {
        alive[i] = MPI_COMM_NULL;
    }
    for (int i = 0; i < edges.communicators; i++) {
        MPI_Comm *comm = &alive[i % 3 ? i % ALIVE : 0];
        uint64_t out[2] = {(uint64_t) i, (uint64_t) i + 1};
        size_t length = i % 16 ? 8 : 5000;
        unsigned char *bytes = edges_data(length, (uint64_t) i);
        MPI_Request requests[2];
        uint64_t in = UINT64_MAX;
        edges_must(MPI_Isend(&out[1], 1, MPI_UINT64_T, right, EDGES_TAG, edges.world, &requests[0]),
                   "MPI_Isend");
        if (MPI_COMM_NULL != *comm) {
            edges_must(MPI_Comm_free(comm), "MPI_Comm_free");
        }
        edges_must(MPI_Comm_dup(edges.world, comm), "MPI_Comm_dup");
        edges_must(MPI_Isend(bytes, (int) length, MPI_BYTE, right, EDGES_TAG, *comm, &requests[1]),
                   "MPI_Isend");
        edges_receive(length, (uint64_t) i, MPI_ANY_SOURCE, MPI_ANY_TAG, left, EDGES_TAG, *comm);
        edges_must(
            MPI_Recv(&in, 1, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, edges.world, MPI_STATUS_IGNORE),
            "MPI_Recv");
        verify_that(out[1] == in, "a message on another communicator was lost or mixed up");
        edges_must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        free(bytes);
    }
    for (int i = 0; i < ALIVE; i++) {
        if (MPI_COMM_NULL != alive[i]) {
            edges_must(MPI_Comm_free(&alive[i]), "MPI_Comm_free");
        }
    }
}

/*
 * What nobody received ends with its communicator: the next one, to which Open MPI gives the same number,
 * does not see it. Only short messages, whose sends end without a receive.
 */
static void unreceived_messages_end_with_their_communicator(void)
{
    int right = (edges.rank + 1) % edges.ranks;
    int left = (edges.rank + edges.ranks - 1) % edges.ranks;

    for (int i = 0; i < edges.communicators / 4; i++) {
        const size_t length = i % 3 ? 8 : 1000;
        unsigned char *bytes = edges_data(length, (uint64_t) i);
        MPI_Request request;
        MPI_Comm comm;
        edges_must(MPI_Comm_dup(edges.world, &comm), "MPI_Comm_dup");
        for (int n = 0; n <= i % 4; n++) {
            edges_must(MPI_Send(bytes, (int) length, MPI_BYTE, right, EDGES_TAG, comm), "MPI_Send");
        }
        /* Comes behind them. */
        edges_must(MPI_Sendrecv(NULL, 0, MPI_BYTE, right, 0, NULL, 0, MPI_BYTE, left, 0, edges.control,
                                MPI_STATUS_IGNORE),
                   "MPI_Sendrecv");
        if (i % 2) {
            verify_that(edges_is_there(left, EDGES_TAG, comm), "a message that had to be there was not");
        }
        edges_must(MPI_Comm_free(&comm), "MPI_Comm_free");
        edges_must(MPI_Comm_dup(edges.world, &comm), "MPI_Comm_dup");
        verify_that(!edges_is_there(MPI_ANY_SOURCE, EDGES_TAG, comm),
                    "a message reached a later communicator than its own");
        verify_fill(bytes, length, (uint64_t) i + 1);
        edges_must(MPI_Isend(bytes, (int) length, MPI_BYTE, right, EDGES_OTHER, comm, &request), "MPI_Isend");
        edges_receive(length, (uint64_t) i + 1, MPI_ANY_SOURCE, MPI_ANY_TAG, left, EDGES_OTHER, comm);
        edges_must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        edges_must(MPI_Comm_free(&comm), "MPI_Comm_free");
        free(bytes);
    }
}

const edges_check_t edges_comm[] = {
    {"freed_sends_arrive", freed_sends_arrive, false},
    {"freed_receives_are_filled", freed_receives_are_filled, false},
    {"freed_communicators_end_what_was_begun", freed_communicators_end_what_was_begun, false},
    {"communicators_come_and_go", communicators_come_and_go, true},
    {"unreceived_messages_end_with_their_communicator", unreceived_messages_end_with_their_communicator,
     true},
    {0},
};
