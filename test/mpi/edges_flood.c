/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges_flood.c
 * Many messages that nobody expects, and many receives that wait.
 */
#include "dn_config.h"

#include "edges.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* --- long queues */

static void unexpected_messages_are_taken_backwards(void)
{
    uint64_t *values = edges_get((size_t) edges.queue_length, sizeof(*values));
    MPI_Request *requests = edges_get((size_t) edges.queue_length, sizeof(*requests));

    for (int i = 0; i < edges.queue_length && 0 == edges.rank; i++) {
        values[i] = (uint64_t) i;
        edges_must(MPI_Isend(&values[i], 1, MPI_UINT64_T, 1, i, edges.world, &requests[i]), "MPI_Isend");
    }
    edges_meet();
    if (0 == edges.rank) {
        edges_must(MPI_Waitall(edges.queue_length, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    for (int i = edges.queue_length - 1; i >= 0 && 1 == edges.rank; i--) {
        uint64_t value = UINT64_MAX;
        edges_must(
            MPI_Recv(&value, 1, MPI_UINT64_T, i % 10 ? 0 : MPI_ANY_SOURCE, i, edges.world, MPI_STATUS_IGNORE),
            "MPI_Recv");
        verify_that((uint64_t) i == value, "an unexpected message came by another tag than its own");
    }
    free(values);
    free(requests);
}

static void posted_receives_are_filled_backwards(void)
{
    uint64_t *values = edges_get((size_t) edges.queue_length, sizeof(*values));
    MPI_Request *requests = edges_get((size_t) edges.queue_length, sizeof(*requests));

    for (int i = 0; i < edges.queue_length && 1 == edges.rank; i++) {
        values[i] = UINT64_MAX;
        edges_must(
            MPI_Irecv(&values[i], 1, MPI_UINT64_T, i % 10 ? 0 : MPI_ANY_SOURCE, i, edges.world, &requests[i]),
            "MPI_Irecv");
    }
    edges_meet();
    for (int i = edges.queue_length - 1; i >= 0 && 0 == edges.rank; i--) {
        uint64_t value = (uint64_t) i;
        edges_must(MPI_Send(&value, 1, MPI_UINT64_T, 1, i, edges.world), "MPI_Send");
    }
    if (1 == edges.rank) {
        edges_must(MPI_Waitall(edges.queue_length, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int i = 0; i < edges.queue_length; i++) {
            verify_that((uint64_t) i == values[i], "a message went to a receive of another tag");
        }
    }
    free(values);
    free(requests);
}

/* --- floods */

/* Bytes that a process has had in memory at most since forget_peak(). */
static size_t peak(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (NULL != file && 0 == kib && NULL != fgets(line, sizeof(line), file)) {
        sscanf(line, "VmHWM: %llu kB", &kib);
    }
    verify_that(0 != kib, "/proc/self/status does not tell VmHWM");
    fclose(file);
    return (size_t) kib << 10;
}

/* From here on the peak is a new one; memory that was free already goes, as its use would not show. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    malloc_trim(0);
    verify_that(NULL != file && 0 < fputs("5\n", file) && 0 == fclose(file),
                "/proc/self/clear_refs cannot be written");
}

/*
 * Make progress and receive nothing: until all has come, or, where the sender waits for receives, long enough
 * for it to send much more than it should if it were not held back.
 */
static void look_on(bool blocking)
{
    const double end = verify_seconds() + 0.5;

    if (!blocking) {
        edges_await(0, EDGES_OTHER, edges.world);
    }
    while (blocking && verify_seconds() < end) {
        (void) edges_is_there(0, EDGES_OTHER, edges.world);
    }
}

static void send_flood(size_t length, bool blocking)
{
    const size_t count = (size_t) edges.flood;
    MPI_Request *requests = edges_get(count, sizeof(*requests));
    unsigned char *out = edges_get(count, length);
    MPI_Request last;

    for (size_t i = 0; i < count; i++) {
        requests[i] = MPI_REQUEST_NULL;
        verify_fill(out + i * length, length, i);
    }
    edges_meet();
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = out + i * length;
        if (blocking) {
            edges_must(MPI_Send(at, (int) length, MPI_BYTE, 1, EDGES_TAG, edges.world), "MPI_Send");
        } else {
            edges_must(MPI_Isend(at, (int) length, MPI_BYTE, 1, EDGES_TAG, edges.world, &requests[i]),
                       "MPI_Isend");
        }
    }
    /* Comes behind all of them. */
    edges_must(MPI_Isend(NULL, 0, MPI_BYTE, 1, EDGES_OTHER, edges.world, &last), "MPI_Isend");
    edges_must(MPI_Waitall((int) count, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    edges_must(MPI_Wait(&last, MPI_STATUS_IGNORE), "MPI_Wait");
    free(out);
    free(requests);
}

/*
 * More than any transport has room for in its rings, while the receiver looks but does not receive. Nothing is
 * lost, and with @p most not 0 the receiver takes so many bytes of memory at most.
 */
static void flood(size_t length, bool blocking, size_t most)
{
    if (0 == edges.rank) {
        send_flood(length, blocking);
        return;
    }
    unsigned char *in = verify_guard_alloc(length, 0);
    forget_peak();
    const size_t before = peak();
    edges_meet();
    look_on(blocking);
    for (size_t i = 0; i < (size_t) edges.flood; i++) {
        MPI_Status status;
        edges_must(
            MPI_Recv(in, (int) length, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0, EDGES_TAG, edges.world, &status),
            "MPI_Recv");
        edges_status(&status, 0, EDGES_TAG, length);
        verify_expect(in, length, i, "message of a flood");
    }
    edges_receive(0, 0, 0, EDGES_OTHER, 0, EDGES_OTHER, edges.world);
    const size_t grown = peak() - before;
    if (0 != most && grown > most) {
        verify_fail("%d unexpected messages of %zu bytes took %zu bytes of memory, expected at most %zu",
                    edges.flood, length, grown, most);
    }
    verify_guard_free(in, length, 0, "receive of a flood");
}

/* pml/ob1 keeps whatever comes; pml/dimmnet has senders announce what goes beyond its unexpected_limit. */
static size_t most_memory(size_t announced)
{
    const size_t limit = 64 * EDGES_MIB;
    const size_t rings = 12 * EDGES_MIB;

    return edges.ask_all ? limit + rings + announced : 0;
}

static void flood_of_blocking_sends_is_held_back(void)
{
    flood(1024, true, most_memory(0));
}

static void flood_of_nonblocking_sends_is_kept(void)
{
    const size_t entry = 400; /* bytes at most, of each message that is announced */

    flood(1024, false, most_memory((size_t) edges.flood * entry));
}

const edges_check_t edges_flood[] = {
    {"unexpected_messages_are_taken_backwards", unexpected_messages_are_taken_backwards, false},
    {"posted_receives_are_filled_backwards", posted_receives_are_filled_backwards, false},
    {"flood_of_blocking_sends_is_held_back", flood_of_blocking_sends_is_held_back, false},
    {"flood_of_nonblocking_sends_is_kept", flood_of_nonblocking_sends_is_kept, false},
    {0},
};
