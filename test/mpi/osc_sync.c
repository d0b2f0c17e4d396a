/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_sync.c
 * What each synchronisation of windows promises: who waits for whom, who is kept out, what is seen afterwards.
 *
 *   osc_sync [-n TIMES] [-k KINDS] [-b BUSY]
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create.
 * With BUSY not 0 (default 1) targets that compute without calling MPI are served, too.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 1024

static int rank;
static int ranks;
static uint64_t times = 300;
static uint64_t kinds = 7;
static uint64_t busy = 1;

static MPI_Win win;
static int64_t *memory;

static void window_open(int kind)
{
    const MPI_Aint bytes = WORDS * sizeof(*memory);

    if (0 == kind) {
        MPI_Win_allocate(bytes, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else if (1 == kind) {
        MPI_Win_allocate_shared(bytes, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
        memory = verify_guard_alloc((size_t) bytes, 0);
        MPI_Win_create(memory, bytes, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    memset(memory, 0, (size_t) bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(int kind)
{
    MPI_Win_free(&win);
    if (2 == kind) {
        verify_guard_free(memory, WORDS * sizeof(*memory), 0, "memory of a window");
    }
}

static void put_word(int target, MPI_Aint at, int64_t value)
{
    static int64_t kept[WORDS]; /* until the epoch ends */

    kept[at] = value;
    MPI_Put(&kept[at], 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
}

static int64_t get_word(int target, MPI_Aint at)
{
    int64_t value;

    MPI_Get(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    return value;
}

/** Own memory, by a load, as another process left it. */
static int64_t look(MPI_Aint at)
{
    MPI_Win_sync(win);
    return dn_load_acquire(&memory[at]);
}

/** Each fence: what everybody put before is there, what everybody puts next is not. */
static void fences(void)
{
    const int right = (rank + 1) % ranks;
    const int left = (rank + ranks - 1) % ranks;

    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (uint64_t n = 1; n <= times; n++) {
        put_word(right, 0, (int64_t) n * ranks + rank);
        MPI_Win_fence(0, win);
        verify_that((int64_t) n * ranks + left == memory[0],
                    "after a fence, another word is here than was put");
        MPI_Win_fence(0 == n % 2 ? MPI_MODE_NOSTORE | MPI_MODE_NOPUT : 0, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static MPI_Group group_of(int count, const int *members)
{
    MPI_Group world, group;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, members, &group);
    MPI_Group_free(&world);
    return group;
}

/** Post and start pair by pair, in groups that differ from time to time and in their order; some by MPI_Win_test. */
static void posts(void)
{
    int *members = calloc((size_t) ranks, sizeof(*members));

    verify_that(NULL != members, "no memory for a group");
    for (uint64_t n = 1; n <= times; n++) {
        const int step = 1 + (int) n % ranks;
        int count = 0;
        int flag = 0;

        for (int i = ranks - 1; 0 <= i; i -= step) {
            members[count++] = i;
        }
        MPI_Group group = group_of(count, members);
        const bool in = 0 == (ranks - 1 - rank) % step;
        /* All post to and start with the group, so that only its members may post: all else would wait for ever. */
        if (in) {
            MPI_Win_post(group, 0, win);
            MPI_Win_start(group, 0, win);
            for (int i = 0; i < count; i++) {
                put_word(members[i], 1 + rank, (int64_t) n + 1000 * rank);
            }
            MPI_Win_complete(win);
            if (0 == n % 3) {
                while (0 == flag) {
                    MPI_Win_test(win, &flag);
                }
            } else {
                MPI_Win_wait(win);
            }
            for (int i = 0; i < count; i++) {
                verify_that((int64_t) n + 1000 * members[i] == memory[1 + members[i]],
                            "after MPI_Win_wait, another word is here than was put");
            }
        }
        MPI_Group_free(&group);
    }
    free(members);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** One target, all others its origins; posts may come long before starts, several epochs run ahead of slow ranks. */
static void posts_to_many(void)
{
    int *members = calloc((size_t) ranks, sizeof(*members));
    const int zero = 0;

    verify_that(NULL != members, "no memory for a group");
    for (int i = 1; i < ranks; i++) {
        members[i - 1] = i;
    }
    MPI_Group others = group_of(ranks - 1, members);
    MPI_Group first = group_of(1, &zero);
    for (uint64_t n = 1; n <= times; n++) {
        if (0 == rank) {
            MPI_Win_post(others, 0, win);
            MPI_Win_wait(win);
            for (int i = 1; i < ranks; i++) {
                verify_that((int64_t) n == memory[i], "an origin's word is not there after MPI_Win_wait");
            }
        } else {
            MPI_Win_start(first, 0, win);
            put_word(0, rank, (int64_t) n);
            MPI_Win_complete(win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* The same with MPI_MODE_NOCHECK, which needs the order from elsewhere. */
    for (uint64_t n = 1; n <= times; n++) {
        if (0 == rank) {
            MPI_Win_post(others, MPI_MODE_NOCHECK, win);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_wait(win);
            verify_that(1 == ranks || (int64_t) - (int64_t) n == memory[1],
                        "a word is not there after MPI_Win_wait");
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_start(first, MPI_MODE_NOCHECK, win);
            put_word(0, rank, -(int64_t) n);
            MPI_Win_complete(win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&first);
    free(members);
}

/** Read, add, write in an exclusive lock: nothing is lost. Shared holders see both words of a pair agree. */
static void locks(void)
{
    const int target = ranks - 1;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    memory[0] = memory[512] = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t n = 0; n < times; n++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        const int64_t value = get_word(target, 0);
        put_word(target, 0, value + 1);
        put_word(target, 512, value + 1);
        MPI_Win_unlock(target, win);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        const int64_t one = get_word(target, 0);
        const int64_t two = get_word(target, 512);
        MPI_Win_unlock(target, win);
        verify_that(one == two, "a shared lock was held while another process had the exclusive one");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    verify_that((int64_t) times * ranks == get_word(target, 0), "two held an exclusive lock at once");
    MPI_Win_unlock(target, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Exclusive locks keep out who locks all, and the other way round. */
static void locks_of_all(void)
{
    for (uint64_t n = 0; n < times; n++) {
        const int target = (int) (n % (uint64_t) ranks);

        if (0 == (n + (uint64_t) rank) % 2) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
            const int64_t value = get_word(target, 600);
            put_word(target, 600, value + 1);
            put_word(target, 601, value + 1);
            MPI_Win_unlock(target, win);
        } else {
            MPI_Win_lock_all(0, win);
            for (int t = 0; t < ranks; t++) {
                verify_that(get_word(t, 600) == get_word(t, 601),
                            "MPI_Win_lock_all came in beside an exclusive lock");
            }
            MPI_Win_unlock_all(win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** A process that wants to be alone gets its turn though others share the lock all the time. */
static void nobody_starves(void)
{
    int64_t stop = 0;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    memory[700] = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        for (int n = 0; n < 20; n++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            put_word(0, 700, 20 == n + 1);
            MPI_Win_unlock(0, win);
        }
    }
    while (0 != rank && 0 == stop) {
        /* Two at a time of each process would be too many for one window: the next comes before the last leaves. */
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        stop = get_word(0, 700);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** The target waits for words in its own memory and calls nothing of MPI but MPI_Win_sync. */
static void target_is_busy(void)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    memory[800] = memory[801] = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (0 == rank) {
        for (int i = 1; i < ranks; i++) {
            while ((int64_t) times != look(800 + i)) {
            }
        }
    } else {
        for (uint64_t n = 1; n <= times; n++) {
            put_word(0, 800 + rank, (int64_t) n);
            MPI_Win_flush(0, win);
            verify_that((int64_t) n == get_word(0, 800 + rank), "a flush did not complete a put");
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Words passed round by put, flush and a message: who has the message sees the word. */
static void flush_comes_before_a_message(void)
{
    const int right = (rank + 1) % ranks;
    const int left = (rank + ranks - 1) % ranks;

    MPI_Win_lock_all(0, win);
    for (uint64_t n = 1; n <= times; n++) {
        put_word(right, 900, (int64_t) n);
        if (0 == n % 2) {
            MPI_Win_flush(right, win);
        } else {
            MPI_Win_flush_all(win);
        }
        MPI_Sendrecv(NULL, 0, MPI_BYTE, right, 1, NULL, 0, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        verify_that((int64_t) n == look(900), "a word was flushed, but it is not there");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "TIMES", &times, 1}, {'k', "KINDS", &kinds, 1}, {'b', "BUSY", &busy, 0}, {0}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    for (int kind = 0; kind < 3; kind++) {
        if (0 == (kinds >> kind & 1)) {
            continue;
        }
        window_open(kind);
        fences();
        posts();
        posts_to_many();
        locks();
        locks_of_all();
        nobody_starves();
        flush_comes_before_a_message();
        if (0 != busy) {
            target_is_busy();
        }
        window_close(kind);
    }
    if (0 == rank) {
        printf("osc_sync: %d ranks, every synchronisation %llu times\n", ranks, (unsigned long long) times);
    }
    MPI_Finalize();
    return 0;
}
