/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_silent.c
 * Rank 1, on another host, is stopped until it is given up, and goes on. A window with it cannot be made any more, and all
 * ranks hear of it; none of them gets a window in which it waits for ever.
 *
 *   osc_silent -n SECONDS
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t seconds = 10;

/** Without a core, or the network's care, as long as a child of this process sleeps. */
static void stop(void)
{
    const pid_t self = getpid();
    const pid_t child = fork();

    verify_that(0 <= child, "no child");
    if (0 == child) {
        sleep((unsigned) seconds);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "SECONDS", &seconds, 1}, {0}};
    int64_t memory = 0;
    MPI_Win win, other;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const double end = verify_seconds() + (double) seconds;
    if (1 == rank) {
        stop();
    }
    /* Until both know. */
    while (verify_seconds() < end + 2) {
        (void) MPI_Win_sync(win);
        verify_sleep_ms(20);
    }
    const int rc = MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    verify_that(MPI_SUCCESS != rc, "a window was made with a process that is lost");
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("osc_silent: no window with a process that was lost\n");
        fflush(stdout);
    }
    /* The first window cannot be freed in order: it has lost a process. */
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(3);
}
