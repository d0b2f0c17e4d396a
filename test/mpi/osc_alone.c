/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_alone.c
 * Locks of a target that calls nothing, that local and far processes want at once, or that a process has when it is killed.
 * Rank 0 is the target. The odd ranks are on another host than the even ones.
 *
 *   osc_alone computes [-n TIMES]    2 ranks: rank 0 computes until it sees, in its memory, that rank 1 has locked it so often
 *   osc_alone counts [-n TIMES]      all ranks count so often in all, under exclusive locks, and read under shared ones
 *   osc_alone killed FOLDER          4 ranks: rank 1 is killed while it has the lock, and rank 3 while it waits for it
 *
 * In the last form ranks 0 and 2 end with status 3, without MPI. Each rank makes a file of its number in the folder, named R.has when it
 * has the lock or R.waits before it waits, and R.done when it has locked behind the killed ones.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** The words of rank 0: they are alike unless somebody has the lock alone. */
enum { WORDS = 2 };

enum { LONGEST_S = 30, STEP_MS = 10, PATH = 4096 };

static int rank;
static int ranks;
static uint64_t times;
static MPI_Win win;
static uint64_t *memory;

static void get_words(uint64_t *words)
{
    MPI_Get(words, WORDS, MPI_UINT64_T, 0, 0, WORDS, MPI_UINT64_T, win);
    MPI_Win_flush(0, win);
    verify_that(words[0] == words[1], "somebody has the lock who should not");
}

/** Add 1 to each word. Who reads between the two puts finds them different. */
static void count_once(void)
{
    uint64_t words[WORDS], word;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    get_words(words);
    word = words[0] + 1;
    MPI_Put(&word, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win);
    MPI_Win_flush(0, win);
    MPI_Put(&word, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win);
    MPI_Win_unlock(0, win);
}

/** Read the words in a shared epoch. */
static void read_once(bool all)
{
    uint64_t words[WORDS];

    if (all) {
        MPI_Win_lock_all(0, win);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    }
    get_words(words);
    if (all) {
        MPI_Win_unlock_all(win);
    } else {
        MPI_Win_unlock(0, win);
    }
}

static void compute(void)
{
    const double end = verify_seconds() + LONGEST_S;

    if (0 == rank) {
        /* At least a second, and nothing of MPI. */
        while (times != dn_load_acquire(&memory[0]) || LONGEST_S - 1 < end - verify_seconds()) {
            verify_that(end > verify_seconds(), "a target that computes was not locked");
        }
    } else {
        for (uint64_t n = 0; n < times; n++) {
            read_once(0 == n % 2);
            count_once();
        }
    }
}

static void count(void)
{
    const uint64_t all = (uint64_t) ranks;

    for (uint64_t n = (uint64_t) rank; n < times; n += all) {
        if (n % 4 == (uint64_t) rank % 4) {
            read_once(0 == n % 3);
        }
        count_once();
    }
}

/** @name Killed processes */
/** @{ */
static const char *folder;

static void mark(const char *what)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, rank, what);
    FILE *file = fopen(path, "w");
    verify_that(NULL != file && 0 == fclose(file), "a file cannot be made");
}

/** Wait for the file of another rank, and make progress meanwhile. */
static void await(int other, const char *what)
{
    const double end = verify_seconds() + LONGEST_S;
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, other, what);
    while (0 != access(path, F_OK)) {
        verify_that(end > verify_seconds(), "a process did not come so far");
        (void) MPI_Win_sync(win);
        verify_sleep_ms(STEP_MS);
    }
}

static void lock_and_unlock(int type)
{
    verify_that(MPI_SUCCESS == MPI_Win_lock(type, 0, 0, win), "a lock is not free after a loss");
    verify_that(MPI_SUCCESS == MPI_Win_unlock(0, win), "a lock is not given back after a loss");
}

static void outlive(void)
{
    switch (rank) {
    case 1:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        mark("has");
        await(3, "waits");
        /* Rank 3 draws its number meanwhile, nearly always. If it has not, the others find a free lock, or a broken one. */
        verify_sleep_ms(1000);
        (void) raise(SIGKILL);
        break;
    case 3:
        await(1, "has");
        mark("waits");
        (void) signal(SIGALRM, SIG_DFL);
        (void) alarm(2);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        /* It waits for rank 1, and then for the signal, which kills it. */
        (void) pause();
        break;
    default:
        await(3, "waits");
        lock_and_unlock(0 == rank ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE);
        lock_and_unlock(MPI_LOCK_EXCLUSIVE);
        mark("done");
        await(0 == rank ? 2 : 0, "done");
        break;
    }
    _exit(3);
}
/** @} */

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'n', "TIMES", &times, 1}, {0}};
    const char *what = 1 < argc ? argv[1] : "";
    const bool killed = 0 == strcmp(what, "killed");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    times = 0 == strcmp(what, "computes") ? 300 : 10000;
    if (killed) {
        verify_that(3 == argc && 4 == ranks, "usage: osc_alone killed FOLDER, by 4 ranks");
        folder = argv[2];
    } else {
        verify_options(argc - 1, argv + 1, options);
    }
    MPI_Win_allocate(0 == rank ? WORDS * (MPI_Aint) sizeof(*memory) : 0, sizeof(*memory), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; 0 == rank && i < WORDS; i++) {
        memory[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (killed) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        outlive();
    } else if (0 == strcmp(what, "computes")) {
        compute();
    } else {
        verify_that(0 == strcmp(what, "counts"), "usage: osc_alone computes|counts|killed");
        count();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    verify_that(0 != rank || (times == memory[0] && times == memory[1]), "an increment is missing");
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    if (0 == rank) {
        printf("osc_alone: %s, %d ranks, locked %llu times\n", what, ranks, (unsigned long long) times);
    }
    MPI_Finalize();
    return 0;
}
