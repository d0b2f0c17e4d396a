/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file messages_come_while_computing.c
 * Rank 1 posts a receive, computes, and waits; rank 0 sends a long message meanwhile, as soon as the receive has been posted. In how
 * many rounds is the send over before rank 1 has computed for half of its time? Every byte is checked. Then both ranks exchange
 * messages without computing, in which rank 1 is there.
 *
 *   messages_come_while_computing -l LEAST -m MOST    rounds of the last ROUNDS - LEARN ones
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#include "verify.h"

#define BYTES  (1u << 20)
#define ROUNDS 24
/** In which the receiver may find out that it lets messages lie. */
#define LEARN    4
#define COMPUTES 0.02

static void compute(double seconds)
{
    const double end = MPI_Wtime() + seconds;

    while (MPI_Wtime() < end) {
    }
}

static unsigned char pattern(int round, size_t at)
{
    return (unsigned char) (at * 31 + (size_t) round * 7 + at / 4096);
}

static void check(const unsigned char *buffer, int round)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (buffer[i] != pattern(round, i)) {
            fprintf(stderr, "round %d: byte %zu is %u and not %u\n", round, i, buffer[i], pattern(round, i));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

/** @return seconds that the send took. */
static double send_round(unsigned char *buffer, int round)
{
    for (size_t i = 0; i < BYTES; i++) {
        buffer[i] = pattern(round, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    compute(COMPUTES / 10);
    const double start = MPI_Wtime();
    MPI_Send(buffer, BYTES, MPI_UNSIGNED_CHAR, 1, 5, MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

static void receive_round(unsigned char *buffer, int round, double computes)
{
    MPI_Request request;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(buffer, BYTES, MPI_UNSIGNED_CHAR, 0, 5, MPI_COMM_WORLD, &request);
    compute(computes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(buffer, round);
}

int main(int argc, char **argv)
{
    int rank;
    int early = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t least = 0;
    uint64_t most = ROUNDS;
    const verify_option_t options[] = {{'l', "LEAST", &least, 0}, {'m', "MOST", &most, 0}, {0}};
    verify_options(argc, argv, options);
    unsigned char *buffer = malloc(BYTES);

    for (int round = 0; round < 2 * ROUNDS; round++) {
        const int computes = round < ROUNDS;
        if (0 == rank) {
            const double took = send_round(buffer, round);
            early += computes && LEARN <= round && took < COMPUTES / 2;
        } else if (1 == rank) {
            receive_round(buffer, round, computes ? COMPUTES : 0);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (0 == rank) {
        printf("%d of %d messages came while their receiver computed\n", early, ROUNDS - LEARN);
        if ((uint64_t) early < least || (uint64_t) early > most) {
            fprintf(stderr, "expected %d to %d\n", (int) least, (int) most);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
