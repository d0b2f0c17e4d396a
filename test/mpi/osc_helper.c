/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_helper.c
 * A target that computes is served: rank 0 calls nothing of MPI, until the others have done all kinds of operations on its
 * private memory and have said so in memory that all map. Messages to and from rank 0 are on their way meanwhile.
 *
 *   osc_helper [-n TIMES]
 *
 * Before and after, the process has as many threads as without a window.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS      8192
#define LONG_BYTES (1 << 20)

/** Seconds without MPI after which the target says that nobody serves it. */
#define PATIENCE_S 40.0

static int rank;
static int ranks;
static uint64_t times = 20;

static MPI_Win win;
static int64_t *memory;
static MPI_Win flags_win;
static int64_t *flags; /**< of rank 0: by rank, the round that it has done */

static int threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* itself and its parent */

    verify_that(NULL != folder, "/proc/self/task cannot be read");
    while (NULL != readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}

/** Calls nothing of MPI. */
static void compute_until_all_have_done(uint64_t round)
{
    const double end = verify_seconds() + PATIENCE_S;

    for (int r = 1; r < ranks; r++) {
        while ((int64_t) round != dn_load_acquire(&flags[r])) {
            verify_that(end > verify_seconds(), "a target that computes was not served");
        }
    }
}

static void tell(uint64_t round)
{
    int64_t *flag;
    MPI_Aint bytes;
    int unit;

    MPI_Win_shared_query(flags_win, 0, &bytes, &unit, &flag);
    dn_store_release(&flag[rank], (int64_t) round);
}

/** Each rank has a column of its own, so nothing hangs on the order of ranks. */
static void operate(uint64_t round)
{
    const int64_t value = (int64_t) round * ranks + rank;
    int64_t column[WORDS / 16], old;
    double one = 1;
    MPI_Datatype vector;

    for (int i = 0; i < WORDS / 16; i++) {
        column[i] = value + i;
    }
    MPI_Type_vector(WORDS / 16, 1, 16, MPI_INT64_T, &vector);
    MPI_Type_commit(&vector);
    MPI_Win_lock(0 == round % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(column, WORDS / 16, MPI_INT64_T, 0, rank, 1, vector, win);
    MPI_Win_flush(0, win);
    MPI_Get(column, WORDS / 16, MPI_INT64_T, 0, rank, 1, vector, win);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, 14, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Fetch_and_op(&value, &old, MPI_INT64_T, 0, 15, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Type_free(&vector);
    for (int i = 0; i < WORDS / 16; i++) {
        verify_that(value + i == column[i], "a get brought other words than were put");
    }
}

/** What the operations of all have left at rank 0. */
static void check(uint64_t round)
{
    double sum;
    int64_t total = 0;

    __builtin_memcpy(&sum, &memory[14], sizeof(sum));
    verify_that((double) round * (ranks - 1) == sum, "an accumulate is missing");
    for (uint64_t n = 1; n <= round; n++) {
        for (int r = 1; r < ranks; r++) {
            total += (int64_t) n * ranks + r;
            verify_that(n != round || memory[r] == (int64_t) n * ranks + r, "a put is missing");
        }
    }
    verify_that(total == memory[15], "a fetch_and_op is missing");
}

/** Messages that come while rank 0 computes, and one that it has sent before: they are whole, and in order. */
static void play(uint64_t round, uint8_t *bytes)
{
    const int other = 0 == rank ? 1 : 0;
    const uint64_t key = verify_key(round, 1, 0, 0);
    MPI_Request request;

    if (0 == rank) {
        verify_fill(bytes, LONG_BYTES, key);
        MPI_Isend(bytes, LONG_BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
        compute_until_all_have_done(round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int r = 1; r < ranks; r++) {
            uint64_t first, second;

            MPI_Recv(&first, 1, MPI_UINT64_T, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&second, 1, MPI_UINT64_T, r, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify_that(2 * round == first && 2 * round + 1 == second, "messages came in another order");
        }
        check(round);
    } else {
        const uint64_t word[2] = {2 * round, 2 * round + 1};

        MPI_Isend(&word[0], 1, MPI_UINT64_T, 0, 2, MPI_COMM_WORLD, &request);
        operate(round);
        tell(round);
        if (1 == rank) {
            MPI_Recv(bytes, LONG_BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify_expect(bytes, LONG_BYTES, key, "a long message");
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&word[1], 1, MPI_UINT64_T, 0, 2, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "TIMES", &times, 1}, {0}};
    const MPI_Aint bytes = WORDS * (MPI_Aint) sizeof(*memory);
    uint8_t *message;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    verify_that(2 <= ranks && 14 >= ranks, "osc_helper needs 2 to 14 ranks");
    MPI_Win_allocate_shared(0 == rank ? ranks * (MPI_Aint) sizeof(*flags) : 0, 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &flags, &flags_win);
    message = verify_guard_alloc(LONG_BYTES, 0);
    memory = verify_guard_alloc((size_t) bytes, 0);
    for (int i = 0; i < WORDS; i++) {
        memory[i] = 0;
    }
    for (int r = 0; 0 == rank && r < ranks; r++) {
        flags[r] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_create(memory, bytes, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (uint64_t round = 1; round <= times; round++) {
        play(round, message);
    }
    const int helped = threads();
    MPI_Win_free(&win);
    /* The kernel shows a thread for a moment after pthread_join(). */
    const double end = verify_seconds() + PATIENCE_S;
    while (helped <= threads()) {
        verify_that(end > verify_seconds(), "there was no thread that helps, or it is still there");
    }
    MPI_Win_free(&flags_win);
    verify_guard_free(memory, (size_t) bytes, 0, "memory of a window");
    verify_guard_free(message, LONG_BYTES, 0, "a message");
    if (0 == rank) {
        printf("osc_helper: %d ranks, served %llu times\n", ranks, (unsigned long long) times);
    }
    MPI_Finalize();
    return 0;
}
