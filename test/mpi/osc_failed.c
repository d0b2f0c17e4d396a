/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_failed.c
 * Puts and gets that the kernel refuses, since rank 1 has unmapped half of its window: each is an error, once, of the call, of
 * its request, or of the flush behind it. What comes afterwards works.
 *
 *   osc_failed
 *
 * Prints one line per rank that counts the errors.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HALF = 1 << 20, TARGET = 1, OFFERED = 16384 };

static MPI_Win win;
static uint8_t *here;
static int failures;

/** One operation. @return what went wrong, whoever said so. */
static int operate(int operation, size_t bytes, MPI_Aint at)
{
    const int count = (int) bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    int said[3] = {MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS};

    switch (operation) {
    case 0:
        said[0] = MPI_Put(here, count, MPI_BYTE, TARGET, at, count, MPI_BYTE, win);
        break;
    case 1:
        said[0] = MPI_Get(here, count, MPI_BYTE, TARGET, at, count, MPI_BYTE, win);
        break;
    case 2:
        said[0] = MPI_Rput(here, count, MPI_BYTE, TARGET, at, count, MPI_BYTE, win, &request);
        break;
    default:
        said[0] = MPI_Rget(here, count, MPI_BYTE, TARGET, at, count, MPI_BYTE, win, &request);
        break;
    }
    said[1] = MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_that(MPI_REQUEST_NULL == request, "a request is left");
    said[2] = MPI_Win_flush(TARGET, win);
    verify_that(MPI_SUCCESS == MPI_Win_flush(TARGET, win), "an error is told of twice by flushes");
    int rc = MPI_SUCCESS;
    for (int i = 0; i < 3; i++) {
        verify_that(MPI_SUCCESS == rc || MPI_SUCCESS == said[i], "an error is told of twice");
        rc = MPI_SUCCESS == rc ? said[i] : rc;
    }
    return rc;
}

static void fail_and_go_on(void)
{
    static const size_t sizes[] = {1, 8, 4096, 65536, 300000};
    int class;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        /* Short ones that nobody waits for alone may be the target's, which would not survive it. */
        for (int operation = OFFERED > sizes[i] ? 2 : 0; operation < 4; operation++) {
            const int rc = operate(operation, sizes[i], HALF + 4096 * (MPI_Aint) i);

            verify_that(MPI_SUCCESS != rc, "memory that is not there was reached");
            MPI_Error_class(rc, &class);
            verify_that(MPI_ERR_RMA_RANGE == class, "an error is of another class than MPI_ERR_RMA_RANGE");
            failures++;
            /* Half of it is there, half of it is not. */
            verify_that(MPI_SUCCESS != operate(operation, 2 * OFFERED, HALF - OFFERED),
                        "memory that is half there was reached");
            verify_fill(here, sizes[i], i);
            verify_that(MPI_SUCCESS == operate(operation & ~1, sizes[i], 0), "a put after a failure failed");
            memset(here, 0, sizes[i]);
            verify_that(MPI_SUCCESS == operate(operation | 1, sizes[i], 0), "a get after a failure failed");
            verify_expect(here, sizes[i], i, "what was put and got after a failure");
        }
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{0}};
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    here = verify_guard_alloc(HALF, 0);
    memset(here, 0, HALF);
    void *memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    verify_that(MAP_FAILED != memory, "no memory");
    MPI_Win_create(memory, 2 * HALF, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    munmap((uint8_t *) memory + HALF, HALF);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win);
        fail_and_go_on();
        MPI_Win_unlock(TARGET, win);
        printf("osc_failed: %d operations failed as they should\n", failures);
    }
    MPI_Win_free(&win);
    munmap(memory, HALF);
    verify_guard_free(here, HALF, 0, "memory of an origin");
    MPI_Finalize();
    return 0;
}
