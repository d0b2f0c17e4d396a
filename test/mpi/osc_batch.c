/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_batch.c
 * Many puts and gets of any size in each epoch, on private memory: after synchronisation all are complete, and nothing but
 * what was named has changed. With -b 1 a target that computes without calling MPI takes part, too.
 *
 *   osc_batch [-s SEED] [-n TIMES] [-b BUSY]
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Two regions of a dynamic window, or the halves of another. */
enum { HALF = 2 << 20, MOST = 300, LONGEST = 100000, GAP = 64 };

/** How an epoch is ended; FLUSHES have one that goes on. */
enum { FLUSH, FLUSH_LOCAL, FLUSH_ALL, UNLOCK, UNLOCK_ALL, FENCE, COMPLETE, SYNCS };

/** Seconds after which a target that computes gives up. */
#define PATIENCE_S 40.0

static uint64_t seed = 1;
static uint64_t times = 30;
static uint64_t busy;
static int rank;
static int ranks;
static MPI_Win win;
static uint8_t *half[2];      /**< of the own window */
static MPI_Aint (*start)[2];  /**< of the halves of each rank, as displacements count */
static uint8_t *out, *back;   /**< of this origin */
static MPI_Group left, right; /**< the neighbours */

/** A transfer of an epoch: its bytes are those of a key. */
typedef struct {
    int half;
    size_t at;
    size_t len;
} piece_t;

/** Pieces of all sizes, in any order, none of which touches another. */
static int choose(verify_rng_t *random, piece_t *piece)
{
    const int most = 1 + (int) verify_below(random, MOST);
    const size_t longest = 0 == verify_below(random, 2) ? LONGEST : 2000;
    size_t used[2] = {GAP, GAP};
    int n = 0;

    while (n < most) {
        const int h = (int) verify_below(random, 2);
        const size_t len = 1 + verify_size(random, longest - 1);

        if (HALF - GAP < used[h] + len) {
            break;
        }
        piece[n++] = (piece_t){h, used[h], len};
        used[h] += len + GAP;
    }
    return n;
}

static void begin(int sync, int target)
{
    if (FLUSH == sync || FLUSH_LOCAL == sync || UNLOCK == sync) {
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    } else if (FENCE == sync) {
        MPI_Win_fence(0, win);
    } else if (COMPLETE == sync) {
        MPI_Win_post(left, 0, win);
        MPI_Win_start(right, 0, win);
    } else {
        MPI_Win_lock_all(0, win);
    }
}

/** What was started is complete. */
static void settle(int sync, int target)
{
    switch (sync) {
    case FLUSH:
        MPI_Win_flush(target, win);
        break;
    case FLUSH_LOCAL:
        MPI_Win_flush_local(target, win);
        break;
    case FLUSH_ALL:
        MPI_Win_flush_all(win);
        break;
    case UNLOCK:
        MPI_Win_unlock(target, win);
        break;
    case UNLOCK_ALL:
        MPI_Win_unlock_all(win);
        break;
    case FENCE:
        MPI_Win_fence(0, win);
        break;
    default:
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        break;
    }
}

/** The epoch is over, if settle() has not ended it. */
static void end(int sync, int target)
{
    if (FLUSH == sync || FLUSH_LOCAL == sync) {
        MPI_Win_unlock(target, win);
    } else if (FLUSH_ALL == sync) {
        MPI_Win_unlock_all(win);
    }
}

/** Put or get all pieces; some with requests, which are complete by themselves. */
static void move(verify_rng_t *random, int target, const piece_t *piece, int n, bool put)
{
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        const int len = (int) piece[i].len;
        const MPI_Aint there = start[target][piece[i].half] + (MPI_Aint) piece[i].at;
        MPI_Request request = MPI_REQUEST_NULL;

        if (0 == verify_below(random, 20)) {
            put ? MPI_Rput(out + at, len, MPI_BYTE, target, there, len, MPI_BYTE, win, &request)
                : MPI_Rget(back + at, len, MPI_BYTE, target, there, len, MPI_BYTE, win, &request);
        } else {
            put ? MPI_Put(out + at, len, MPI_BYTE, target, there, len, MPI_BYTE, win)
                : MPI_Get(back + at, len, MPI_BYTE, target, there, len, MPI_BYTE, win);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        at += piece[i].len;
    }
}

/** Both halves are zero where no piece of the left neighbour is. */
static void check_target(const piece_t *piece, int n, uint64_t key)
{
    size_t behind[2] = {0, 0};
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        uint8_t *base = half[piece[i].half];

        for (size_t gap = behind[piece[i].half]; gap < piece[i].at; gap++) {
            verify_that(0 == base[gap], "a byte between two pieces has changed");
        }
        for (size_t b = 0; b < piece[i].len; b++) {
            verify_that(verify_byte(key, at + b) == base[piece[i].at + b], "a piece was not put as it was");
        }
        behind[piece[i].half] = piece[i].at + piece[i].len;
        memset(base + piece[i].at, 0, piece[i].len);
        at += piece[i].len;
    }
}

static void round_of(uint64_t n, int sync)
{
    const int target = (rank + 1) % ranks;
    const int origin = (rank + ranks - 1) % ranks;
    verify_rng_t mine = {verify_key(seed, n, (uint64_t) rank, 0)};
    verify_rng_t its = {verify_key(seed, n, (uint64_t) origin, 0)};
    piece_t piece[MOST], put[MOST];
    const int count = choose(&mine, piece);
    const int puts = choose(&its, put);
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        bytes += piece[i].len;
    }
    verify_fill(out, bytes, verify_key(seed, n, (uint64_t) rank, 1));
    memset(back, 0, bytes);
    begin(sync, target);
    move(&mine, target, piece, count, true);
    settle(sync, target);
    end(sync, target);
    MPI_Barrier(MPI_COMM_WORLD);
    begin(sync, target);
    move(&mine, target, piece, count, false);
    settle(sync, target);
    /* Before the end of an epoch that goes on. */
    verify_expect(back, bytes, verify_key(seed, n, (uint64_t) rank, 1), "what was put and got");
    end(sync, target);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    check_target(put, puts, verify_key(seed, n, (uint64_t) origin, 1));
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void rounds(void)
{
    for (uint64_t n = 0; n < times; n++) {
        for (int sync = 0; sync < SYNCS; sync++) {
            round_of(n * SYNCS + (uint64_t) sync, sync);
        }
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    }
}

/** Rank 0 calls nothing of MPI until rank 1 has put, got, and said so in memory that both map. */
static void target_computes(void)
{
    int64_t *flag;
    MPI_Win flag_win;
    MPI_Aint bytes;
    int unit;

    MPI_Win_allocate_shared(0 == rank ? sizeof(*flag) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &flag,
                            &flag_win);
    MPI_Win_shared_query(flag_win, 0, &bytes, &unit, &flag);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        const double late = verify_seconds() + PATIENCE_S;

        while (0 == dn_load_acquire(flag)) {
            verify_that(late > verify_seconds(), "puts and gets wait for a target that computes");
        }
    } else if (1 == rank) {
        verify_rng_t random = {seed};
        piece_t piece[MOST];
        const int count = choose(&random, piece);

        MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
        move(&random, 0, piece, count, false);
        MPI_Win_flush(0, win);
        memcpy(out, back, 2 * HALF);
        move(&random, 0, piece, count, true);
        MPI_Win_unlock(0, win);
        dn_store_release(flag, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&flag_win);
}

/** A window goes with its epoch open: what was put is complete, or there. */
static void window_close_early(void)
{
    const int target = (rank + 1) % ranks;
    const int origin = (rank + ranks - 1) % ranks;

    memset(half[0], 0, HALF);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i < 10; i++) {
        verify_fill(out + 1000 * i, 1000, verify_key(seed, (uint64_t) rank, (uint64_t) i, 2));
        MPI_Put(out + 1000 * i, 1000, MPI_BYTE, target, start[target][0] + 1000 * i, 1000, MPI_BYTE, win);
    }
    MPI_Win_free(&win);
    for (int i = 0; i < 10; i++) {
        verify_expect(half[0] + 1000 * i, 1000, verify_key(seed, (uint64_t) origin, (uint64_t) i, 2),
                      "what was put before a window went");
    }
    memset(half[0], 0, HALF);
}

static void window_open(bool dynamic, uint8_t *memory)
{
    MPI_Aint mine[2] = {0, HALF};

    if (dynamic) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        for (int h = 0; h < 2; h++) {
            MPI_Win_attach(win, half[h], HALF);
            MPI_Get_address(half[h], &mine[h]);
        }
    } else {
        MPI_Win_create(memory, 2 * HALF, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    MPI_Allgather(mine, 2, MPI_AINT, start, 2, MPI_AINT, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0}, {'n', "TIMES", &times, 1}, {'b', "BUSY", &busy, 0}, {0}};
    MPI_Group world;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    uint8_t *memory = verify_guard_alloc(2 * HALF, 0);
    memset(memory, 0, 2 * HALF);
    half[0] = memory;
    half[1] = memory + HALF;
    out = verify_guard_alloc(2 * HALF, 1);
    back = verify_guard_alloc(2 * HALF, 2);
    memset(out, 0, 2 * HALF);
    memset(back, 0, 2 * HALF);
    start = calloc((size_t) ranks, sizeof(*start));
    verify_that(NULL != start, "no memory for addresses");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &(int){(rank + ranks - 1) % ranks}, &left);
    MPI_Group_incl(world, 1, &(int){(rank + 1) % ranks}, &right);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        window_open(0 != dynamic, memory);
        rounds();
        if (0 != busy) {
            target_computes();
        }
        window_close_early();
    }
    MPI_Group_free(&left);
    MPI_Group_free(&right);
    MPI_Group_free(&world);
    verify_guard_free(memory, 2 * HALF, 0, "memory of a window");
    verify_guard_free(out, 2 * HALF, 1, "memory of an origin");
    verify_guard_free(back, 2 * HALF, 2, "memory for results");
    free(start);
    if (0 == rank) {
        printf("osc_batch: %d ranks, each synchronisation %llu times, seed %llu\n", ranks,
               (unsigned long long) times, (unsigned long long) seed);
    }
    MPI_Finalize();
    return 0;
}
