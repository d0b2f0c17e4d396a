/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file messages_come_while_computing.c
 * Rank 1 posts a receive, computes, and waits; rank 0 sends a long message meanwhile, as soon as the receive has been posted. In how
 * many rounds does the send end before rank 1 has stopped computing? Both ranks read the clock of the machine, so that a rank which
 * the system keeps waiting cannot look like an early message. Every byte is checked. Then both ranks exchange messages without
 * computing, in which rank 1 is there.
 *
 *   messages_come_while_computing -l LEAST -m MOST    percent of the rounds that count
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "verify.h"

#define BYTES  (1u << 20)
#define ROUNDS 24
/** In which the receiver may find out that it lets messages lie. */
#define LEARN    4
#define COMPUTES 0.02

static double seconds_of(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/** @return seconds of a clock that all processes of this machine share. */
static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/** Use @p seconds of the processor, however long the system takes to give them. @return when they were over. */
static double compute(double seconds)
{
    const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;

    while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
    return now();
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

/** Seconds of a round, at rank 0: when its send began, and was over; at rank 1: when its receive was posted, and it stopped computing. */
typedef struct span {
    double from, to;
} span_t;

static span_t send_round(unsigned char *buffer, int round)
{
    for (size_t i = 0; i < BYTES; i++) {
        buffer[i] = pattern(round, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double from = compute(COMPUTES / 10);
    MPI_Send(buffer, BYTES, MPI_UNSIGNED_CHAR, 1, 5, MPI_COMM_WORLD);
    return (span_t){from, now()};
}

static span_t receive_round(unsigned char *buffer, int round, double computes)
{
    MPI_Request request;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(buffer, BYTES, MPI_UNSIGNED_CHAR, 0, 5, MPI_COMM_WORLD, &request);
    const double from = now();
    const double to = compute(computes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(buffer, round);
    return (span_t){from, to};
}

/** Rounds in which rank 1 computed, may have learnt, and had its receive there first; in *early_p those of them in which the send did not
 * wait for the end of the computing. */
static int count_early(const span_t sent[], const span_t received[], int *early_p)
{
    int rounds = 0;

    *early_p = 0;
    for (int round = LEARN; round < ROUNDS; round++) {
        const int counts = received[round].from < sent[round].from;
        rounds += counts;
        *early_p += counts && sent[round].to < received[round].to;
    }
    return rounds;
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t least = 0;
    uint64_t most = 100;
    const verify_option_t options[] = {{'l', "LEAST", &least, 0}, {'m', "MOST", &most, 0}, {0}};
    verify_options(argc, argv, options);
    unsigned char *buffer = malloc(BYTES);
    span_t times[2 * ROUNDS] = {0};

    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (0 == rank) {
            times[round] = send_round(buffer, round);
        } else if (1 == rank) {
            times[round] = receive_round(buffer, round, round < ROUNDS ? COMPUTES : 0);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (0 == rank) {
        span_t received[2 * ROUNDS];

        MPI_Recv(received, 4 * ROUNDS, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int early;
        const int rounds = count_early(times, received, &early);
        printf("%d of %d messages came while their receiver computed\n", early, rounds);
        if (0 == rounds || 100 * (uint64_t) early < least * (uint64_t) rounds
            || 100 * (uint64_t) early > most * (uint64_t) rounds) {
            fprintf(stderr, "expected %d to %d percent\n", (int) least, (int) most);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    } else if (1 == rank) {
        MPI_Send(times, 4 * ROUNDS, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
