/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file wait_lost.c
 * Rank 0 waits for what the last rank never does, since that is killed while it computes.
 *
 *   wait_lost FOLDER recv|any|wait|probe|barrier
 *
 * The last rank makes the file FOLDER/ready once all are connected. The others end with status 3 when the wait has
 * failed, which is said, without MPI.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096 };

static int wait_for(const char *how, int last)
{
    MPI_Request request;
    int value = 0;

    if (0 == strcmp(how, "recv")) {
        return MPI_Recv(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (0 == strcmp(how, "any")) {
        return MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (0 == strcmp(how, "wait")) {
        const int rc = MPI_Irecv(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD, &request);
        return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    }
    if (0 == strcmp(how, "probe")) {
        return MPI_Probe(last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    verify_that(0 == strcmp(how, "barrier"), "usage: wait_lost FOLDER recv|any|wait|probe|barrier");
    return MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    char path[PATH];
    int rank, ranks, value = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(3 == argc, "usage: wait_lost FOLDER recv|any|wait|probe|barrier");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Each has heard from the last one, and that from each. */
    MPI_Bcast(&value, 1, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    for (int k = 0; k < ranks - 1; k++) {
        if (k == rank) {
            MPI_Sendrecv(&value, 1, MPI_INT, ranks - 1, 1, &value, 1, MPI_INT, ranks - 1, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        } else if (ranks - 1 == rank) {
            MPI_Sendrecv(&value, 1, MPI_INT, k, 1, &value, 1, MPI_INT, k, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks - 1 == rank) {
        snprintf(path, sizeof(path), "%s/ready", argv[1]);
        FILE *file = fopen(path, "w");
        verify_that(NULL != file && 0 == fclose(file), "a file cannot be made");
        for (;;) {
            pause();
        }
    }
    verify_that(MPI_SUCCESS != wait_for(argv[2], ranks - 1), "what nobody has sent was received");
    printf("rank %d: the wait has failed\n", rank);
    fflush(stdout);
    _exit(3);
}
