/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file finalize_silent.c
 * Rank 0 goes into MPI_Finalize with messages for all other ranks, more than find room there. The others do nothing until rank 0 is
 * through. Then they take what has come: messages for each of them have waited at rank 0, which has given them up. Ranks do not wait for
 * each other in MPI_Finalize: async_mpi_finalize is set.
 *
 *   finalize_silent [-n MESSAGES] [-m SECONDS]
 *
 *   -m  rank 0 is through MPI_Finalize in this time; it is there for as long as a process waits in vain
 */
#include "dn_config.h"

#include "verify.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS = 64,
    SIZE = 40,        /**< so short that pml/ob1 has memory for any number of them */
    PATIENCE_S = 120, /**< rank 0 may have failed */
    QUIET_S = 1,      /**< nothing comes any more */
    LEAVE_MS = 1000,  /**< all ranks are out of MPI_Barrier */
};

/** A process waits in vain for 10 s. */
static const double least = 9.5;

static int rank, ranks;
static int pids[RANKS];
static unsigned char out[SIZE], in[SIZE];

static void send_to_others(uint64_t count)
{
    for (int target = 1; target < ranks; target++) {
        for (uint64_t i = 0; i < count; i++) {
            MPI_Request request;

            MPI_Isend(out, SIZE, MPI_BYTE, target, 0, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    }
}

/** Wait until rank 0 is through MPI_Finalize. */
static void await_signal(const sigset_t *waited_for)
{
    const struct timespec patience = {.tv_sec = PATIENCE_S};
    int heard;

    do {
        heard = sigtimedwait(waited_for, NULL, &patience);
    } while (-1 == heard && EINTR == errno);
    verify_that(SIGUSR1 == heard, "rank 0 is not through MPI_Finalize");
}

/** Take all messages that have come. @return how many. */
static uint64_t take_what_has_come(void)
{
    uint64_t taken = 0;

    for (double last = verify_seconds(); verify_seconds() - last < QUIET_S;) {
        int has_come;

        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
        if (has_come) {
            MPI_Recv(in, SIZE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            taken++;
            last = verify_seconds();
        }
    }
    return taken;
}

int main(int argc, char **argv)
{
    uint64_t count = 2000, most = 50;
    const verify_option_t options[] = {
        {'n', "MESSAGES", &count, 1}, {'m', "SECONDS", &most, 1}, {0, NULL, NULL, 0}};
    sigset_t waited_for;

    /* All threads of MPI inherit this. */
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGUSR1);
    sigprocmask(SIG_BLOCK, &waited_for, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    verify_that(RANKS >= ranks, "there are more ranks than this program takes");
    int pid = (int) getpid();
    MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 != rank) {
        await_signal(&waited_for);
        const uint64_t taken = take_what_has_come();
        printf("finalize_silent: rank %d has %lu messages of %lu\n", rank, (unsigned long) taken,
               (unsigned long) count);
        verify_that(0 != taken, "no message of rank 0 has come");
        verify_that(taken < count, "all messages have found room, so none has waited at rank 0");
        MPI_Finalize();
        return 0;
    }
    /* A rank that is still in MPI_Barrier would take messages. */
    verify_sleep_ms(LEAVE_MS);
    send_to_others(count);
    const double begin = verify_seconds();
    MPI_Finalize();
    const double took = verify_seconds() - begin;
    for (int i = 1; i < ranks; i++) {
        kill(pids[i], SIGUSR1);
    }
    printf("finalize_silent: MPI_Finalize took %.1f s\n", took);
    return least <= took && took < (double) most ? 0 : 1;
}
