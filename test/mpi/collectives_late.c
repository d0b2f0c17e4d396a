/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_late.c
 * Collectives to which one rank comes late, each time another. The late one first sends a message to a rank that waits for it
 * in the collective, and that has to receive it there.
 *
 *   collectives_late [-n ROUNDS] [-z 0|1]
 *
 *   -n  rounds, each of a barrier, a short reduction and a long one
 *   -z  1: ranks have to sleep meanwhile; 0: they must not
 */
#include "dn_config.h"

#include "counter.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LATE_MS = 20, WORDS = 50000, MESSAGE = 1 << 20 };

static uint64_t rounds = 5;
static uint64_t sleeps;

static void reduce(uint64_t *words, int count, int rank, int ranks)
{
    for (int i = 0; i < count; i++) {
        words[i] = (uint64_t) rank + (uint64_t) i;
    }
    MPI_Allreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        verify_that((uint64_t) ranks * (uint64_t) (ranks - 1) / 2 + (uint64_t) ranks * (uint64_t) i
                        == words[i],
                    "a sum is wrong");
    }
}

/** @p what 0: a barrier, 1: a short reduction, 2: a long one. */
static void collective(int what, uint64_t *words, int rank, int ranks)
{
    if (0 == what) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        reduce(words, 1 == what ? 2 : WORDS, rank, ranks);
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "ROUNDS", &rounds, 1}, {'z', "0|1", &sleeps, 0}, {0, NULL, NULL, 0}};
    unsigned long long most, own;
    counter_t counter;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    uint64_t *words = malloc(WORDS * sizeof(*words));
    unsigned char *message = malloc(MESSAGE);
    verify_that(NULL != words && NULL != message, "no memory for collectives");
    for (int what = 0; what < 3; what++) {
        collective(what, words, rank, ranks);
    }
    counter_open(&counter, "coll_llcm_sleeps");
    for (int round = 0; round < 3 * (int) rounds; round++) {
        const int late = round % ranks;
        MPI_Request request = MPI_REQUEST_NULL;

        if (rank == (late + 1) % ranks) {
            MPI_Irecv(message, MESSAGE, MPI_BYTE, late, round, MPI_COMM_WORLD, &request);
        } else if (rank == late) {
            verify_sleep_ms(LATE_MS);
            verify_fill(message, MESSAGE, (uint64_t) round);
            MPI_Ssend(message, MESSAGE, MPI_BYTE, (late + 1) % ranks, round, MPI_COMM_WORLD);
        }
        collective(round / ranks % 3, words, rank, ranks);
        if (MPI_REQUEST_NULL != request) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            verify_expect(message, MESSAGE, (uint64_t) round, "a message to a rank in a collective");
        }
    }
    own = counter_read(&counter);
    counter_close(&counter);
    MPI_Allreduce(&own, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    verify_that((0 != sleeps) == (0 != most), 0 != sleeps ? "nobody has slept" : "somebody has slept");
    if (0 == rank) {
        printf("%d ranks: %d collectives with a late rank; the most that one has slept is %llu times\n",
               ranks, 3 * (int) rounds, most);
    }
    free(message);
    free(words);
    MPI_Finalize();
    return 0;
}
