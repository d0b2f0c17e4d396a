/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file callbacks.c
 * Nonblocking collectives, whose component (coll/adapt, where it is chosen) asks to be called when a request of the point-to-point
 * layer has ended, and frees it then. At the end requests of messages that nobody receives are freed and left to MPI_Finalize.
 *
 *   callbacks [-t 1]     with MPI_THREAD_MULTIPLE
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 300, LONGEST = 20000, LEFT = 40 };

static int rank, ranks;
static int data[LONGEST], sum[LONGEST];

static void check(const int *values, int len, int first, int step)
{
    for (int i = 0; i < len; i++) {
        if (first + i * step != values[i]) {
            verify_fail("value %d of %d is %d, expected %d", i, len, values[i], first + i * step);
        }
    }
}

/** A broadcast and a reduction. */
static void collect(int round, int len)
{
    const int root = round % ranks;
    MPI_Request request;

    for (int i = 0; i < len; i++) {
        data[i] = root == rank ? round + i : -1;
    }
    MPI_Ibcast(data, len, MPI_INT, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(data, len, round, 1);
    MPI_Ireduce(data, sum, len, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (root == rank) {
        check(sum, len, ranks * round, ranks);
    }
}

int main(int argc, char **argv)
{
    static const int lens[] = {10, 3000, LONGEST};
    uint64_t threads = 0;
    const verify_option_t options[] = {{'t', "THREADS", &threads, 0}, {0}};
    MPI_Request request;
    int level;

    verify_options(argc, argv, options);
    MPI_Init_thread(&argc, &argv, 0 != threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < ROUNDS; round++) {
        collect(round, lens[round % 3]);
    }
    for (int i = 0; i < LEFT; i++) {
        MPI_Issend(data, 0 == i % 2 ? 1 : LONGEST, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    if (0 == rank) {
        printf("callbacks: %d rounds are right\n", ROUNDS);
    }
    MPI_Finalize();
    return 0;
}
