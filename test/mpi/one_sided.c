/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file one_sided.c
 * One-sided operations on windows of memory that MPI allocates, of memory the user has, and of memory
 * attached later: put, get, accumulate, fetch_and_op, compare_and_swap, under every synchronisation.
 *
 *   one_sided [-s SEED] [-m LARGEST]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** How operations on a window are opened and completed. */
enum sync_mode { SYNC_FENCE, SYNC_LOCK, SYNC_LOCK_ALL, SYNC_POST_START, SYNC_COUNT };

enum window_kind { WINDOW_ALLOCATE, WINDOW_CREATE, WINDOW_DYNAMIC, WINDOW_COUNT };

/** Times each rank adds to the shared counters. */
#define ADDITIONS 100

static const char *const sync_names[SYNC_COUNT] = {"fence", "lock", "lock_all", "post/start"};
static const char *const window_names[WINDOW_COUNT] = {"allocate", "create", "create_dynamic"};

static int rank;
static int ranks;
static uint64_t seed = 1;
static uint64_t largest = 1 << 20;
static unsigned long long operations;

/** A window, this rank's memory in it, and where each rank's memory begins as MPI counts it. */
typedef struct {
    MPI_Win win;
    enum window_kind kind;
    unsigned char *memory;
    size_t size;
    MPI_Aint *start;
} window_t;

static void window_open(window_t *w, enum window_kind kind, size_t size)
{
    MPI_Aint mine = 0;

    w->kind = kind;
    w->size = size;
    w->start = calloc((size_t) ranks, sizeof(*w->start));
    verify_that(NULL != w->start, "no memory for the addresses of a window");
    if (WINDOW_ALLOCATE == kind) {
        MPI_Win_allocate((MPI_Aint) size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory, &w->win);
    } else if (WINDOW_CREATE == kind) {
        w->memory = verify_guard_alloc(size, 8);
        MPI_Win_create(w->memory, (MPI_Aint) size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
    } else {
        w->memory = verify_guard_alloc(size, 8);
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
        MPI_Win_attach(w->win, w->memory, (MPI_Aint) size);
        MPI_Get_address(w->memory, &mine);
    }
    memset(w->memory, 0, size);
    MPI_Allgather(&mine, 1, MPI_AINT, w->start, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void window_close(window_t *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (WINDOW_DYNAMIC == w->kind) {
        MPI_Win_detach(w->win, w->memory);
    }
    MPI_Win_free(&w->win);
    if (WINDOW_ALLOCATE != w->kind) {
        verify_guard_free(w->memory, w->size, 8, "memory of a window");
    }
    free(w->start);
}

/** The group of the one rank @p peer, for post and start. */
static MPI_Group group_of(int peer)
{
    MPI_Group world;
    MPI_Group group;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &group);
    MPI_Group_free(&world);
    return group;
}

/** Begin access to @p target; @p origin will access this rank. */
static void epoch_begin(window_t *w, enum sync_mode mode, int target, int origin)
{
    MPI_Group group;

    switch (mode) {
    case SYNC_FENCE:
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
        break;
    case SYNC_LOCK:
        MPI_Win_lock(target % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w->win);
        break;
    case SYNC_LOCK_ALL:
        MPI_Win_lock_all(0, w->win);
        break;
    default:
        group = group_of(origin);
        MPI_Win_post(group, 0, w->win);
        MPI_Group_free(&group);
        group = group_of(target);
        MPI_Win_start(group, 0, w->win);
        MPI_Group_free(&group);
        break;
    }
}

/** Complete the operations at both sides. */
static void epoch_end(window_t *w, enum sync_mode mode, int target)
{
    switch (mode) {
    case SYNC_FENCE:
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
        break;
    case SYNC_LOCK:
        MPI_Win_unlock(target, w->win);
        break;
    case SYNC_LOCK_ALL:
        MPI_Win_flush(target, w->win);
        MPI_Win_unlock_all(w->win);
        break;
    default:
        MPI_Win_complete(w->win);
        MPI_Win_wait(w->win);
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Make the local memory readable and writable by plain loads and stores, whatever the mode was. */
static void look_at_memory(window_t *w)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w->win);
    MPI_Win_sync(w->win);
    MPI_Win_unlock(rank, w->win);
}

/** Put to the right, look, get from the left, look; the bytes around stay as they were. */
static void put_and_get(window_t *w, enum sync_mode mode, size_t size, size_t offset)
{
    int right = (rank + 1) % ranks;
    int left = (rank + ranks - 1) % ranks;
    uint64_t id = verify_key(seed, size, offset, (uint64_t) mode);
    unsigned char *local = verify_guard_alloc(size, offset % 64);
    char what[128];

    snprintf(what, sizeof(what), "put of %zu bytes at %zu, window by %s, %s", size, offset,
             window_names[w->kind], sync_names[mode]);
    look_at_memory(w);
    verify_fill(w->memory, w->size, ~id);
    MPI_Barrier(MPI_COMM_WORLD);
    verify_fill(local, size, id + (uint64_t) rank);
    epoch_begin(w, mode, right, left);
    MPI_Put(local, (int) size, MPI_BYTE, right, w->start[right] + (MPI_Aint) offset, (int) size, MPI_BYTE,
            w->win);
    epoch_end(w, mode, right);
    look_at_memory(w);
    verify_expect(w->memory + offset, size, id + (uint64_t) left, what);
    for (size_t i = 0; i < w->size; i += 1 + (i < offset || i >= offset + size ? 0 : size)) {
        if ((i < offset || i >= offset + size) && verify_byte(~id, i) != w->memory[i]) {
            verify_fail("%s: byte %zu outside the target was overwritten", what, i);
        }
    }
    memcpy(what, "get", 3);
    memset(local, 0, size);
    MPI_Barrier(MPI_COMM_WORLD);
    epoch_begin(w, mode, left, right);
    MPI_Get(local, (int) size, MPI_BYTE, left, w->start[left] + (MPI_Aint) offset, (int) size, MPI_BYTE,
            w->win);
    epoch_end(w, mode, left);
    verify_expect(local, size, id + (uint64_t) ((left + ranks - 1) % ranks), what);
    verify_guard_free(local, size, offset % 64, what);
    operations += 2;
}

/** A strided put and get: every third word of the target. */
static void strided(window_t *w)
{
    enum { COUNT = 500 };
    int right = (rank + 1) % ranks;
    int left = (rank + ranks - 1) % ranks;
    static uint64_t local[COUNT];
    static uint64_t back[COUNT];
    MPI_Datatype type;

    MPI_Type_vector(COUNT, 1, 3, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    look_at_memory(w);
    memset(w->memory, 0, w->size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        local[i] = verify_key(seed, (uint64_t) rank, (uint64_t) i, 3);
        back[i] = 0;
    }
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w->win);
    MPI_Put(local, COUNT, MPI_UINT64_T, right, w->start[right], 1, type, w->win);
    MPI_Win_flush(right, w->win);
    MPI_Get(back, COUNT, MPI_UINT64_T, right, w->start[right], 1, type, w->win);
    MPI_Win_unlock(right, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    look_at_memory(w);
    for (int i = 0; i < COUNT; i++) {
        const uint64_t *word = (const uint64_t *) (const void *) w->memory + 3 * i;
        verify_that(verify_key(seed, (uint64_t) left, (uint64_t) i, 3) == word[0], "strided put: wrong data");
        verify_that(i == COUNT - 1 || (0 == word[1] && 0 == word[2]), "strided put: a gap was overwritten");
        verify_that(local[i] == back[i], "strided get: wrong data");
    }
    MPI_Type_free(&type);
    operations += 2;
}

/** All ranks accumulate into all ranks at once, in four types. */
static void accumulate(window_t *w)
{
    enum { COUNT = 300 };
    static int64_t longs[COUNT];
    static double doubles[COUNT];
    static int32_t ints[COUNT];
    const MPI_Aint at_doubles = COUNT * 8;
    const MPI_Aint at_ints = 2 * COUNT * 8;

    look_at_memory(w);
    memset(w->memory, 0, w->size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        longs[i] = (int64_t) (rank + 1) * (i + 1);
        doubles[i] = 0.5 * (rank + 1) * (i + 1);
        ints[i] = (rank * 31 + i * 17) % 1000;
    }
    MPI_Win_lock_all(0, w->win);
    for (int n = 0; n < ranks; n++) {
        int target = (rank + n) % ranks;
        MPI_Accumulate(longs, COUNT, MPI_INT64_T, target, w->start[target], COUNT, MPI_INT64_T, MPI_SUM,
                       w->win);
        MPI_Accumulate(doubles, COUNT, MPI_DOUBLE, target, w->start[target] + at_doubles, COUNT, MPI_DOUBLE,
                       MPI_SUM, w->win);
        MPI_Accumulate(ints, COUNT, MPI_INT32_T, target, w->start[target] + at_ints, COUNT, MPI_INT32_T,
                       MPI_MAX, w->win);
        operations += 3;
    }
    MPI_Win_flush_all(w->win);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    look_at_memory(w);
    const int64_t *got_longs = (const int64_t *) (const void *) w->memory;
    const double *got_doubles = (const double *) (const void *) (w->memory + at_doubles);
    const int32_t *got_ints = (const int32_t *) (const void *) (w->memory + at_ints);
    int64_t sum = (int64_t) ranks * (ranks + 1) / 2;
    for (int i = 0; i < COUNT; i++) {
        int32_t most = 0;
        for (int r = 0; r < ranks; r++) {
            int32_t value = (r * 31 + i * 17) % 1000;
            most = value > most ? value : most;
        }
        verify_that(sum * (i + 1) == got_longs[i], "accumulate: the sum of integers is wrong");
        /* Halves of small integers: the sum is exact in any order. */
        verify_that(0.5 * (double) (sum * (i + 1)) == got_doubles[i],
                    "accumulate: the sum of doubles is wrong");
        verify_that(most == got_ints[i], "accumulate: the maximum is wrong");
    }
}

/** Shared counters: every value is handed out once; a lock of compare_and_swap keeps its promise. */
static void counters(window_t *w)
{
    const int64_t one = 1;
    const int64_t zero = 0;
    const int64_t taken = 1;
    int owner = ranks - 1;
    int64_t *seen = calloc((size_t) (ADDITIONS * ranks), sizeof(*seen));
    int64_t old;

    verify_that(NULL != seen, "no memory for the values of the counter");
    look_at_memory(w);
    memset(w->memory, 0, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < ADDITIONS; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, owner, w->start[owner], MPI_SUM, w->win);
        MPI_Win_flush(owner, w->win);
        verify_that(0 <= old && old < (int64_t) ADDITIONS * ranks, "fetch_and_op: a value out of range");
        seen[old]++;
    }
    for (int i = 0; i < 20; i++) {
        int64_t value;
        do {
            MPI_Compare_and_swap(&taken, &zero, &old, MPI_INT64_T, owner, w->start[owner] + 64, w->win);
            MPI_Win_flush(owner, w->win);
        } while (0 != old);
        MPI_Get(&value, 1, MPI_INT64_T, owner, w->start[owner] + 128, 1, MPI_INT64_T, w->win);
        MPI_Win_flush(owner, w->win);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, owner, w->start[owner] + 128, 1, MPI_INT64_T, w->win);
        MPI_Win_flush(owner, w->win);
        /* Not by MPI_REPLACE: osc/rdma, with which this program can be compared, stores by memcpy(), and glibc's stores 8 bytes twice. */
        MPI_Compare_and_swap(&zero, &taken, &old, MPI_INT64_T, owner, w->start[owner] + 64, w->win);
        MPI_Win_flush(owner, w->win);
        verify_that(1 == old, "compare_and_swap: the lock was lost while it was held");
    }
    MPI_Win_unlock_all(w->win);
    MPI_Allreduce(MPI_IN_PLACE, seen, ADDITIONS * ranks, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < ADDITIONS * ranks; i++) {
        verify_that(1 == seen[i], "fetch_and_op: a value was handed out twice or never");
    }
    look_at_memory(w);
    if (rank == owner) {
        const int64_t *words = (const int64_t *) (const void *) w->memory;
        verify_that((int64_t) ADDITIONS * ranks == words[0], "fetch_and_op: the final sum is wrong");
        verify_that(0 == words[8], "compare_and_swap: the lock is not free at the end");
        verify_that(20 * (int64_t) ranks == words[16], "compare_and_swap: the count under the lock is wrong");
    }
    free(seen);
    operations += ADDITIONS + 20 * 4;
}

/** 32-bit words side by side: an operation on one never touches its neighbour. */
static void neighbours(window_t *w)
{
    const int32_t one = 1;
    int32_t old;

    look_at_memory(w);
    memset(w->memory, 0, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < 50; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT32_T, 0, w->start[0] + 4 * rank, MPI_SUM, w->win);
        MPI_Win_flush(0, w->win);
        verify_that(i == old, "fetch_and_op on 32 bits: the value fetched is wrong");
        MPI_Get_accumulate(&one, 1, MPI_INT32_T, &old, 1, MPI_INT32_T, 0, w->start[0] + 256 + 4 * rank, 1,
                           MPI_INT32_T, MPI_SUM, w->win);
        MPI_Win_flush(0, w->win);
        verify_that(i == old, "get_accumulate on 32 bits: the value fetched is wrong");
    }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    look_at_memory(w);
    for (int i = 0; 0 == rank && i < ranks; i++) {
        const int32_t *words = (const int32_t *) (const void *) w->memory;
        verify_that(50 == words[i] && 50 == words[64 + i], "a 32-bit sum is wrong");
    }
    operations += 100;
}

/** A window may begin anywhere: its words lie on their own boundaries all the same. */
static void words_behind_any_start(size_t skew)
{
    const int64_t one = 1;
    const MPI_Aint at = (MPI_Aint) (8 - skew);
    const size_t size = 4096;
    unsigned char *memory = verify_guard_alloc(size, skew);
    int64_t old = 0;
    int64_t sum = -1;
    MPI_Win win;

    memset(memory, 0, size);
    MPI_Win_create(memory, (MPI_Aint) size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ADDITIONS; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at, MPI_SUM, win);
        MPI_Win_flush(0, win);
        verify_that(0 <= old && old < (int64_t) ADDITIONS * ranks, "fetch_and_op: a value out of range");
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&sum, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    verify_that((int64_t) ADDITIONS * ranks == sum, "fetch_and_op behind an odd start: the sum is wrong");
    MPI_Win_free(&win);
    verify_guard_free(memory, size, skew, "memory of a window that begins anywhere");
    operations += ADDITIONS + 1;
}

static void run_window(enum window_kind kind)
{
    static const size_t sizes[] = {1, 2, 4, 8, 9, 41, 64, 100, 4096, 5001, 65536, 300001, 1 << 20, 16 << 20};
    static const size_t offsets[] = {0, 8, 3, 64, 8190};
    window_t w;

    window_open(&w, kind, largest + 16384);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int mode = 0; mode < SYNC_COUNT; mode++) {
            if (sizes[s] <= largest) {
                put_and_get(&w, (enum sync_mode) mode, sizes[s], offsets[(s + (size_t) mode) % 5]);
            }
        }
    }
    strided(&w);
    accumulate(&w);
    counters(&w);
    neighbours(&w);
    window_close(&w);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'s', "SEED", &seed, 0}, {'m', "LARGEST", &largest, 1}, {0}};
    unsigned long long total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    for (int kind = 0; kind < WINDOW_COUNT; kind++) {
        run_window((enum window_kind) kind);
    }
    for (size_t skew = 1; skew < 8; skew++) {
        words_behind_any_start(skew);
    }
    MPI_Reduce(&operations, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("one_sided: %d ranks, %d kinds of windows, %llu operations verified\n", ranks,
               (int) WINDOW_COUNT, total);
    }
    MPI_Finalize();
    return 0;
}
