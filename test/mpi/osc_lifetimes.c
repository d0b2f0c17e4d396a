/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_lifetimes.c
 * What an operation needs stays until it is complete, though the user has given it back; windows go in any order, also
 * while other threads use others.
 *
 *   osc_lifetimes [-n TIMES] [-t THREADS] [-k KINDS]
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create, 8 MPI_Win_create_dynamic.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS       4096
#define KINDS       4
#define OPS         7
#define THREADS_MAX 8

static int rank;
static int ranks;
static uint64_t times = 30;
static uint64_t threads = 4;
static uint64_t kinds = 15;
static int kind[KINDS]; /**< those of the windows */
static int num_kinds;

/** A window of CELLS words at each process. */
typedef struct {
    int kind; /**< 0 MPI_Win_allocate, 1 MPI_Win_allocate_shared, 2 MPI_Win_create, 3 dynamic */
    MPI_Win win;
    int64_t *memory;
    MPI_Aint *base; /**< by rank: what displacements count from */
} window_t;

static window_t window_open(int of_kind, MPI_Comm comm)
{
    const MPI_Aint bytes = CELLS * sizeof(int64_t);
    window_t w = {.kind = of_kind, .base = calloc((size_t) ranks, sizeof(MPI_Aint))};
    MPI_Aint mine = 0;

    verify_that(NULL != w.base, "no memory for a window");
    if (0 == of_kind) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &w.memory, &w.win);
    } else if (1 == of_kind) {
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &w.memory, &w.win);
    } else {
        w.memory = verify_guard_alloc((size_t) bytes, 0);
        if (2 == of_kind) {
            MPI_Win_create(w.memory, bytes, 1, MPI_INFO_NULL, comm, &w.win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w.win);
            MPI_Win_attach(w.win, w.memory, bytes);
            MPI_Get_address(w.memory, &mine);
        }
    }
    MPI_Allgather(&mine, 1, MPI_AINT, w.base, 1, MPI_AINT, comm);
    memset(w.memory, 0, (size_t) bytes);
    MPI_Barrier(comm);
    return w;
}

static void window_close(window_t *w)
{
    if (3 == w->kind) {
        MPI_Win_detach(w->win, w->memory);
    }
    MPI_Win_free(&w->win);
    if (2 <= w->kind) {
        verify_guard_free(w->memory, CELLS * sizeof(int64_t), 0, "memory of a window");
    }
    free(w->base);
}

/** @name Datatypes */
/** @{ */

/** Every second word, by a type that no other has been and none will be. */
static MPI_Datatype strided(int cells, uint64_t salt)
{
    const int half = cells / 2 - (int) (salt % 3);
    MPI_Datatype word, part[2], type;
    const int lens[2] = {1, 1};
    const MPI_Aint places[2] = {0, 16 * half};

    MPI_Type_contiguous(1, MPI_INT64_T, &word);
    MPI_Type_vector(half, 1, 2, word, &part[0]);
    MPI_Type_vector(cells - half, 1, 2, word, &part[1]);
    MPI_Type_create_struct(2, lens, places, part, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&part[0]);
    MPI_Type_free(&part[1]);
    MPI_Type_free(&word);
    return type;
}

/** Types of another layout, that take the memory which freed ones may have left. */
static void churn(uint64_t salt)
{
    MPI_Datatype type[8];

    for (int i = 0; i < 8; i++) {
        MPI_Type_vector(3 + (int) (salt % 5), 2, 7 + i, MPI_INT64_T, &type[i]);
        MPI_Type_commit(&type[i]);
    }
    for (int i = 0; i < 8; i++) {
        MPI_Type_free(&type[i]);
    }
}

/** Operation @p op between every second word here and there, with types that are freed before it is complete. */
static void operate(window_t *w, int op, int64_t *here, int64_t *there, int target, uint64_t salt,
                    MPI_Request *request)
{
    MPI_Datatype origin = strided(CELLS / 2, salt);
    MPI_Datatype result = strided(CELLS / 2, salt + 1);
    MPI_Datatype remote = strided(CELLS / 2, salt + 2);
    const MPI_Aint at = w->base[target];

    *request = MPI_REQUEST_NULL;
    switch (op) {
    case 0:
        MPI_Put(here, 1, origin, target, at, 1, remote, w->win);
        break;
    case 1:
        MPI_Get(there, 1, result, target, at, 1, remote, w->win);
        break;
    case 2:
        MPI_Accumulate(here, 1, origin, target, at, 1, remote, MPI_SUM, w->win);
        break;
    case 3:
        MPI_Get_accumulate(here, 1, origin, there, 1, result, target, at, 1, remote, MPI_REPLACE, w->win);
        break;
    case 4:
        MPI_Rput(here, 1, origin, target, at, 1, remote, w->win, request);
        break;
    case 5:
        MPI_Rget(there, 1, result, target, at, 1, remote, w->win, request);
        break;
    default:
        MPI_Rget_accumulate(here, 1, origin, there, 1, result, target, at, 1, remote, MPI_SUM, w->win,
                            request);
        break;
    }
    MPI_Type_free(&remote);
    MPI_Type_free(&result);
    MPI_Type_free(&origin);
    churn(salt);
}

/** What each operation leaves at the target, and gets, of words that were @p old and come with @p operand. */
static int64_t left_by(int op, int64_t old, int64_t operand)
{
    return 1 == op || 5 == op ? old : 2 == op || 6 == op ? old + operand : operand;
}

static void freed_datatypes(window_t *w)
{
    const int target = (rank + 1) % ranks;
    const int origin = (rank + ranks - 1) % ranks;
    int64_t *here = verify_guard_alloc(CELLS * sizeof(*here), 0);
    int64_t *there = verify_guard_alloc(CELLS * sizeof(*there), 0);
    MPI_Request request;

    for (uint64_t n = 0; n < times; n++) {
        const int op = (int) (n % OPS);
        const int64_t old = (int64_t) n * 1000;

        for (int i = 0; i < CELLS; i++) {
            here[i] = 7 * (rank + 1) + i;
            there[i] = -1;
            w->memory[i] = old + i;
        }
        MPI_Win_fence(0, w->win);
        operate(w, op, here, there, target, n, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, w->win);
        for (int i = 0; i < CELLS; i++) {
            const bool moved = 0 == i % 2;
            const int64_t value = moved ? left_by(op, old + i, 7 * (origin + 1) + i) : old + i;
            const bool gets = 1 == op || 3 == op || 5 <= op;

            if (value != w->memory[i] || (moved && gets ? old + i : -1) != there[i]) {
                verify_fail("window of kind %d, operation %d: word %d is %lld there and %lld here", w->kind,
                            op, i, (long long) w->memory[i], (long long) there[i]);
            }
        }
        /* Nobody starts over while another one looks. */
        MPI_Win_fence(0, w->win);
    }
    verify_guard_free(here, CELLS * sizeof(*here), 0, "memory of an origin");
    verify_guard_free(there, CELLS * sizeof(*there), 0, "memory for results");
}
/** @} */

/** One window of each kind, opened and used; then freed in order number @p n of all that there are. */
static void free_in_order(int n)
{
    window_t w[KINDS];
    int left[KINDS];

    for (int i = 0; i < num_kinds; i++) {
        left[i] = i;
        w[i] = window_open(kind[i], MPI_COMM_WORLD);
    }
    for (int count = num_kinds; 0 < count; count--) {
        const int which = n % count;
        window_t *gone = &w[left[which]];
        const int64_t value = rank;

        n /= count;
        for (int i = 0; i < count; i++) {
            window_t *used = &w[left[i]];
            int64_t sum = 0;

            MPI_Win_lock_all(0, used->win);
            MPI_Fetch_and_op(&value, &sum, MPI_INT64_T, 0, used->base[0] + 8 * count, MPI_SUM, used->win);
            MPI_Win_unlock_all(used->win);
        }
        /* Memory is detached when nobody needs it. */
        MPI_Barrier(MPI_COMM_WORLD);
        window_close(gone);
        memmove(&left[which], &left[which + 1], (size_t) (count - 1 - which) * sizeof(left[0]));
    }
}

/** Windows of one thread come and go, while those of the others are in use. */
static void *come_and_go(void *arg)
{
    const MPI_Comm comm = *(const MPI_Comm *) arg;

    for (uint64_t n = 0; n < times; n++) {
        window_t w = window_open(kind[n % (uint64_t) num_kinds], comm);
        const int64_t one = 1;
        int64_t total = 0;

        MPI_Win_lock_all(0, w.win);
        for (int target = 0; target < ranks; target++) {
            for (int i = 0; i < 8; i++) {
                MPI_Accumulate(&one, 1, MPI_INT64_T, target, w.base[target], 1, MPI_INT64_T, MPI_SUM, w.win);
            }
        }
        MPI_Win_unlock_all(w.win);
        MPI_Barrier(comm);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w.win);
        total = w.memory[0];
        MPI_Win_unlock(rank, w.win);
        verify_that(8 * ranks == total, "an accumulate is missing in a window of one of several threads");
        MPI_Barrier(comm);
        window_close(&w);
    }
    return NULL;
}

static void windows_of_threads(void)
{
    pthread_t thread[THREADS_MAX];
    MPI_Comm comm[THREADS_MAX];

    for (uint64_t t = 0; t < threads; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[t]);
        verify_that(0 == pthread_create(&thread[t], NULL, come_and_go, &comm[t]), "no thread");
    }
    for (uint64_t t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
        MPI_Comm_free(&comm[t]);
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "TIMES", &times, 1}, {'t', "THREADS", &threads, 0}, {'k', "KINDS", &kinds, 1}, {0}};
    int orders = 1; /**< in which windows of these kinds can go */
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    verify_options(argc, argv, options);
    verify_that(THREADS_MAX >= threads, "too many threads");
    verify_that(0 == threads || MPI_THREAD_MULTIPLE == provided, "this MPI has no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < KINDS; i++) {
        if (0 != (kinds >> i & 1)) {
            kind[num_kinds++] = i;
            orders *= num_kinds;
        }
    }
    verify_that(0 < num_kinds, "KINDS names no window");
    for (int i = 0; i < num_kinds; i++) {
        window_t w = window_open(kind[i], MPI_COMM_WORLD);
        freed_datatypes(&w);
        window_close(&w);
    }
    for (int n = 0; n < orders; n++) {
        free_in_order(n);
    }
    windows_of_threads();
    if (0 == rank) {
        printf("osc_lifetimes: %d ranks, %d threads, every operation %d times\n", ranks, (int) threads,
               (int) times / OPS);
    }
    MPI_Finalize();
    return 0;
}
