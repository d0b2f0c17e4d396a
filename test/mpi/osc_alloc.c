/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_alloc.c
 * MPI_Alloc_mem: the memory is there, all of it and apart from other memory; windows made of it need nobody at the target.
 *
 *   osc_alloc [-n TIMES] [-m MAPPED] [-w WINDOWS]
 *
 * With MAPPED 0 (default 1) the target of a window may have to help. With WINDOWS not 0 (default 0) a window is asked for
 * that there is no memory for, which the library does not leave unsaid.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECES  64
#define THREADS 3
#define WORDS   4096

static int rank;
static int ranks;
static uint64_t times = 300;
static uint64_t mapped = 1;
static uint64_t windows = 0;

/** Pieces of all sizes come and go; what is written to one stays there. */
static void *pieces_stay_apart(void *arg)
{
    verify_rng_t rng = {.state = 77 * (uint64_t) rank + (uint64_t) (uintptr_t) arg};
    uint8_t *piece[PIECES] = {NULL};
    size_t len[PIECES];
    uint64_t key[PIECES];

    for (uint64_t n = 0; n < times + PIECES; n++) {
        const uint64_t i = n < times ? verify_below(&rng, PIECES) : n - times;

        if (NULL != piece[i]) {
            verify_expect(piece[i], len[i], key[i], "memory of MPI_Alloc_mem");
            verify_that(MPI_SUCCESS == MPI_Free_mem(piece[i]), "MPI_Free_mem failed");
            piece[i] = NULL;
        }
        if (n < times) {
            len[i] = 1 + verify_size(&rng, 3u << 20);
            key[i] = verify_random(&rng);
            verify_that(MPI_SUCCESS == MPI_Alloc_mem((MPI_Aint) len[i], MPI_INFO_NULL, &piece[i]),
                        "MPI_Alloc_mem failed");
            verify_that(0 == ((uintptr_t) piece[i] & (sizeof(void *) - 1)), "memory is not aligned");
            verify_fill(piece[i], len[i], key[i]);
        }
    }
    return NULL;
}

static void threads_allocate(void)
{
    pthread_t thread[THREADS];

    for (uintptr_t t = 0; t < THREADS; t++) {
        verify_that(0 == pthread_create(&thread[t], NULL, pieces_stay_apart, (void *) (t + 1)), "no thread");
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
}

/** More long pieces at once than there may be descriptors for. */
static void descriptors_are_spared(void)
{
    enum { LONG = 100, BYTES = 5 << 20 };
    uint8_t *piece[LONG];

    for (int i = 0; i < LONG; i++) {
        verify_that(MPI_SUCCESS == MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &piece[i]), "MPI_Alloc_mem failed");
        piece[i][0] = piece[i][BYTES - 1] = (uint8_t) i;
    }
    for (int i = 0; i < LONG; i++) {
        verify_that(i == piece[i][0] && i == piece[i][BYTES - 1], "two pieces are one");
        verify_that(MPI_SUCCESS == MPI_Free_mem(piece[i]), "MPI_Free_mem failed");
    }
}

/** What nobody has is refused, and no more than that. */
static void too_much_is_refused(void)
{
    void *piece;
    int class;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int rc = MPI_Alloc_mem((MPI_Aint) 1 << 55, MPI_INFO_NULL, &piece);
    verify_that(MPI_SUCCESS != rc, "32 PiB of memory have been found");
    MPI_Error_class(rc, &class);
    verify_that(MPI_ERR_NO_MEM == class, "another error than MPI_ERR_NO_MEM");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/** Of a window too, where one process alone asks for too much of it; then windows are made as before. */
static void window_is_refused(void)
{
    const MPI_Aint bytes = (MPI_Aint) (ranks - 1 == rank ? UINT64_C(1) << 55 : 8);
    void *memory;
    MPI_Win win;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    verify_that(MPI_SUCCESS != MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win),
                "32 PiB of memory have been found for a window");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/** Rank 0 waits for all others by looking at its memory; it makes no call of MPI meanwhile. */
static void target_need_not_help(void)
{
    int64_t *memory;
    int64_t value[WORDS / 2];
    MPI_Datatype strided;
    MPI_Win win;

    MPI_Alloc_mem(WORDS * sizeof(*memory), MPI_INFO_NULL, &memory);
    for (int i = 0; i < WORDS; i++) {
        memory[i] = 0;
    }
    for (int i = 0; i < WORDS / 2; i++) {
        value[i] = i + 1;
    }
    MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    MPI_Win_create(memory, WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    if (0 != rank) {
        MPI_Accumulate(value, WORDS / 2, MPI_INT64_T, 0, 0, 1, strided, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(value, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Win_flush(0, win);
    } else if (0 != mapped) {
        while (ranks - 1 != dn_load_acquire(&memory[1])) {
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; 0 == rank && i < WORDS; i += 2) {
        verify_that(memory[i] == (int64_t) (ranks - 1) * (i / 2 + 1), "a strided sum is not complete");
    }
    MPI_Win_free(&win);
    MPI_Type_free(&strided);
    MPI_Free_mem(memory);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "TIMES", &times, 1}, {'m', "MAPPED", &mapped, 0}, {'w', "WINDOWS", &windows, 0}, {0}};
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    verify_options(argc, argv, options);
    verify_that(MPI_THREAD_MULTIPLE == provided, "this MPI has no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    threads_allocate();
    target_need_not_help();
    descriptors_are_spared();
    too_much_is_refused();
    if (0 != windows) {
        window_is_refused();
    }
    target_need_not_help();
    if (0 == rank) {
        printf("osc_alloc: %d ranks have allocated %d times\n", ranks, (int) times);
    }
    MPI_Finalize();
    return 0;
}
