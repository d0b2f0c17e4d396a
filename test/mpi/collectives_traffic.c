/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_traffic.c
 * Long messages to and from rank 0 while it waits in a barrier, to which rank 1 comes when they are done. Rank 0 does its part of
 * them there, and does not sleep between their pieces, though it shares its core.
 *
 * Pieces of a message are to be 4 KiB: if it slept after each handful of them, it did so 30 times a message. On a loaded machine rank 1 may
 * have no core for a while, and rank 0 is right to sleep. So of the rounds in each direction the one with the fewest sleeps counts.
 */
#include "dn_config.h"

#include "counter.h"
#include "verify.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 8, MESSAGES = 8, MESSAGE = 4 << 20, MOST_SLEEPS = 8 * MESSAGES };

static unsigned char *message_of(unsigned char *bytes, int i)
{
    return bytes + (size_t) i * MESSAGE;
}

/** Start the messages of a round between ranks 0 and 1, from one or the other. */
static void start(unsigned char *bytes, int round, int rank, MPI_Request *request)
{
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == round % 2) {
            MPI_Isend(message_of(bytes, i), MESSAGE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &request[i]);
        } else {
            MPI_Irecv(message_of(bytes, i), MESSAGE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &request[i]);
        }
    }
}

static uint64_t key(int round, int i)
{
    return verify_key(1, 2, (uint64_t) round, (uint64_t) i);
}

static void fill(unsigned char *bytes, int round)
{
    for (int i = 0; i < MESSAGES; i++) {
        verify_fill(message_of(bytes, i), MESSAGE, key(round, i));
    }
}

static void check(unsigned char *bytes, int round)
{
    for (int i = 0; i < MESSAGES; i++) {
        verify_expect(message_of(bytes, i), MESSAGE, key(round, i),
                      "a message between ranks of which one is in a barrier");
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{0, NULL, NULL, 0}};
    MPI_Request request[MESSAGES];
    counter_t counter;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    unsigned char *bytes = malloc((size_t) MESSAGES * MESSAGE);
    verify_that(NULL != bytes, "no memory for messages");
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned long long fewest[2] = {ULLONG_MAX, ULLONG_MAX};
    counter_open(&counter, "coll_llcm_sleeps");
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == round % 2) {
            fill(bytes, round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (2 > rank) {
            start(bytes, round, rank, request);
        }
        if (1 == rank) {
            MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
        }
        const unsigned long long before = counter_read(&counter);
        MPI_Barrier(MPI_COMM_WORLD);
        const unsigned long long sleeps = counter_read(&counter) - before;
        if (sleeps < fewest[round % 2]) {
            fewest[round % 2] = sleeps;
        }
        if (0 == rank) {
            MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
        }
        if (rank == 1 - round % 2) {
            check(bytes, round);
        }
    }
    counter_close(&counter);
    if (0 == rank) {
        printf("%d messages while a rank waited in a barrier, where it slept %llu times for those that it "
               "sent, and %llu for others\n",
               MESSAGES, fewest[0], fewest[1]);
        verify_that(MOST_SLEEPS > fewest[0] && MOST_SLEEPS > fewest[1], "it slept while there were messages");
    }
    free(bytes);
    MPI_Finalize();
    return 0;
}
