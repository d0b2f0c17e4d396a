/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_contend.c
 * Accumulates of all ranks meet at the same elements, for every operation and predefined datatype: nothing is
 * lost, nothing is torn, every value is handed out once.
 *
 *   osc_contend [-n TIMES] [-k KINDS] [-t THREADS]
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create, 8 MPI_Win_create_dynamic.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "verify.h"

#include <complex.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES       65536
#define THREADS_MAX 16

static int rank;
static int ranks;
static uint64_t times = 2000;
static uint64_t kinds = 15;
static uint64_t threads = 1;

static MPI_Win win;
static uint8_t *memory;
static MPI_Aint start; /**< of rank 0's memory, as displacements count */

static void window_open(int kind)
{
    start = 0;
    if (0 == kind) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else if (1 == kind) {
        MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
        memory = verify_guard_alloc(BYTES, 0);
        if (2 == kind) {
            MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, memory, BYTES);
            MPI_Get_address(memory, &start);
        }
    }
    MPI_Bcast(&start, 1, MPI_AINT, 0, MPI_COMM_WORLD);
}

static void window_close(int kind)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (3 == kind) {
        MPI_Win_detach(win, memory);
    }
    MPI_Win_free(&win);
    if (2 <= kind) {
        verify_guard_free(memory, BYTES, 0, "memory of a window");
    }
}

/** All ranks may look at, or set, the memory by loads and stores. */
static void clear(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    memset(memory, 0, BYTES);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void look(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Win_sync(win);
    MPI_Win_unlock(rank, win);
}

/** Run something in each thread, within one epoch. */
static void together(void *(*what)(void *) )
{
    pthread_t id[THREADS_MAX];

    MPI_Win_lock_all(0, win);
    for (uint64_t t = 1; t < threads; t++) {
        verify_that(0 == pthread_create(&id[t], NULL, what, NULL), "no thread");
    }
    (void) what(NULL);
    for (uint64_t t = 1; t < threads; t++) {
        pthread_join(id[t], NULL);
    }
    MPI_Win_unlock_all(win);
}

/** @name Sums: of ones, in every datatype that has sums, also between bytes of another one */
/** @{ */
#define SUMS(X)                           \
    X(int8_t, MPI_INT8_T)                 \
    X(uint8_t, MPI_UINT8_T)               \
    X(int16_t, MPI_INT16_T)               \
    X(uint16_t, MPI_UINT16_T)             \
    X(int32_t, MPI_INT32_T)               \
    X(uint32_t, MPI_UINT32_T)             \
    X(int64_t, MPI_INT64_T)               \
    X(uint64_t, MPI_UINT64_T)             \
    X(float, MPI_FLOAT)                   \
    X(double, MPI_DOUBLE)                 \
    X(long double, MPI_LONG_DOUBLE)       \
    X(float complex, MPI_C_FLOAT_COMPLEX) \
    X(double complex, MPI_C_DOUBLE_COMPLEX)

/** Aligned places of the sums, and one that no instruction could add to at once. */
#define SUM_PLACE(i) (64 * (i))
#define ODD_PLACE    4097

static void *add_sums(void *unused)
{
    for (uint64_t n = 0; n < times; n++) {
        MPI_Aint i = 0;
#define ADD(type_t, TYPE)                                                                                   \
    {                                                                                                       \
        const type_t one[3] = {1, 1, 1};                                                                    \
        type_t old[3];                                                                                      \
        if (0 == n % 3) {                                                                                   \
            MPI_Get_accumulate(one, 3, TYPE, old, 3, TYPE, 0, start + SUM_PLACE(i), 3, TYPE, MPI_SUM, win); \
        } else if (1 == n % 3) {                                                                            \
            MPI_Accumulate(one, 3, TYPE, 0, start + SUM_PLACE(i), 3, TYPE, MPI_SUM, win);                   \
        } else {                                                                                            \
            for (size_t k = 0; k < 3; k++) {                                                                \
                MPI_Fetch_and_op(&one[k], &old[k], TYPE, 0,                                                 \
                                 start + SUM_PLACE(i) + (MPI_Aint) (k * sizeof(type_t)), MPI_SUM, win);     \
            }                                                                                               \
        }                                                                                                   \
        MPI_Win_flush(0, win);                                                                              \
        i++;                                                                                                \
    }
        SUMS(ADD)
        const int64_t one = 1;
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, start + ODD_PLACE, 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    return NULL;
}

static void sums_are_complete(void)
{
    const int64_t all = (int64_t) (times * (uint64_t) ranks * threads);

    clear();
    together(add_sums);
    look();
    if (0 == rank) {
        int64_t odd;
        int i = 0;
#define SUM(type_t, TYPE)                                                            \
    for (int k = 0; k < 3; k++) {                                                    \
        type_t got;                                                                  \
        memcpy(&got, memory + SUM_PLACE(i) + (size_t) k * sizeof(got), sizeof(got)); \
        verify_that(got == (type_t) all, "a sum of " #type_t " is not complete");    \
    }                                                                                \
    i++;
        SUMS(SUM)
        memcpy(&odd, memory + ODD_PLACE, sizeof(odd));
        verify_that(all == odd, "a sum at an odd address is not complete");
    }
}
/** @} */

/** @name Halves that belong together: a torn element has two that do not */
/** @{ */
typedef struct {
    double value;
    int index;
} double_int_t;

typedef struct {
    long value;
    int index;
} long_int_t;

typedef struct {
    short value;
    int index;
} short_int_t;

#define HALVES(X)                      \
    X(double_int_t, MPI_DOUBLE_INT, 0) \
    X(long_int_t, MPI_LONG_INT, 64)    \
    X(short_int_t, MPI_SHORT_INT, 128)

static void *write_halves(void *unused)
{
    for (uint64_t n = 0; n < times; n++) {
        const int number = (int) (n % 1000) * ranks + rank;
        double complex both = number + number * I;
        double complex seen;
        long double wide = number;
        long double before;

#define HALF(type_t, TYPE, place)                                                    \
    {                                                                                \
        const type_t mine = {.value = number % 30000, .index = number % 30000};      \
        type_t old;                                                                  \
        MPI_Get_accumulate(&mine, 1, TYPE, &old, 1, TYPE, 0, start + place, 1, TYPE, \
                           0 == n % 2 ? MPI_REPLACE : MPI_NO_OP, win);               \
        MPI_Win_flush(0, win);                                                       \
        verify_that(old.value == old.index, "a " #type_t " was torn");               \
    }
        HALVES(HALF)
        MPI_Get_accumulate(&both, 1, MPI_C_DOUBLE_COMPLEX, &seen, 1, MPI_C_DOUBLE_COMPLEX, 0, start + 192, 1,
                           MPI_C_DOUBLE_COMPLEX, 0 == n % 2 ? MPI_REPLACE : MPI_NO_OP, win);
        MPI_Get_accumulate(&wide, 1, MPI_LONG_DOUBLE, &before, 1, MPI_LONG_DOUBLE, 0, start + 256, 1,
                           MPI_LONG_DOUBLE, 0 == n % 2 ? MPI_REPLACE : MPI_NO_OP, win);
        MPI_Win_flush(0, win);
        verify_that(creal(seen) == cimag(seen), "a complex number was torn");
        verify_that(0 <= before && before < 1000.0L * ranks && before == (long double) (int) before,
                    "a long double was torn");
    }
    return NULL;
}

static void elements_stay_whole(void)
{
    clear();
    together(write_halves);
}
/** @} */

/** @name Tokens: exchanged all the time, none is lost */
/** @{ */
static uint64_t held; /**< tokens that this rank has at the end */

static void *swap_tokens(void *unused)
{
    static int next;
    const int me = dn_fetch_add_relaxed(&next, 1) % (int) threads;
    uint64_t token = UINT64_C(1) << (rank * (int) threads + me) % 60;
    uint64_t other;

    for (uint64_t n = 0; n < times; n++) {
        if (0 == n % 2) {
            MPI_Fetch_and_op(&token, &other, MPI_UINT64_T, 0, start, MPI_REPLACE, win);
            MPI_Win_flush(0, win);
        } else {
            uint64_t seen = 0;

            /* The same by compare_and_swap. */
            do {
                other = seen;
                MPI_Compare_and_swap(&token, &other, &seen, MPI_UINT64_T, 0, start, win);
                MPI_Win_flush(0, win);
            } while (seen != other);
        }
        token = other;
    }
    dn_fetch_add_relaxed(&held, token);
    return NULL;
}

static void tokens_are_not_lost(void)
{
    uint64_t all = 0;
    uint64_t expected = 0;
    uint64_t left = 0;

    clear();
    held = 0;
    together(swap_tokens);
    look();
    MPI_Reduce(&held, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        for (int i = 0; i < ranks * (int) threads; i++) {
            expected += UINT64_C(1) << i % 60;
        }
        memcpy(&left, memory, sizeof(left));
        verify_that(all + left == expected, "a token was lost or copied");
    }
}
/** @} */

/** @name A counter: each value is handed out once */
/** @{ */
static uint8_t *handed_out; /**< by value */

static void *count_up(void *unused)
{
    const int64_t one = 1;
    int64_t old;

    for (uint64_t n = 0; n < 10 * times; n++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, start, MPI_SUM, win);
        MPI_Win_flush(0, win);
        verify_that(0 <= old && old < (int64_t) (10 * times * threads) * ranks, "a counter went astray");
        dn_fetch_add_relaxed(&handed_out[old], 1);
    }
    return NULL;
}

static void counters_count(void)
{
    const int all = (int) (10 * times * threads) * ranks;

    handed_out = calloc((size_t) all, 1);
    verify_that(NULL != handed_out, "no memory for the values of a counter");
    clear();
    together(count_up);
    MPI_Allreduce(MPI_IN_PLACE, handed_out, all, MPI_UINT8_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < all; i++) {
        verify_that(1 == handed_out[i], "a value of a counter was handed out twice or never");
    }
    free(handed_out);
}
/** @} */

/** @name A lock of compare_and_swap around put and get, in each size */
/** @{ */
#define SIZES(X)                 \
    X(int8_t, MPI_INT8_T, 0)     \
    X(int16_t, MPI_INT16_T, 64)  \
    X(int32_t, MPI_INT32_T, 128) \
    X(int64_t, MPI_INT64_T, 192)

static void *count_locked(void *unused)
{
    for (uint64_t n = 0; n < times / 10; n++) {
#define LOCKED(type_t, TYPE, place)                                                   \
    {                                                                                 \
        const type_t free = 0;                                                        \
        const type_t taken = 1;                                                       \
        type_t seen;                                                                  \
        uint64_t count;                                                               \
        do {                                                                          \
            MPI_Compare_and_swap(&taken, &free, &seen, TYPE, 0, start + place, win);  \
            MPI_Win_flush(0, win);                                                    \
        } while (free != seen);                                                       \
        MPI_Get(&count, 1, MPI_UINT64_T, 0, start + place + 8, 1, MPI_UINT64_T, win); \
        MPI_Win_flush(0, win);                                                        \
        count++;                                                                      \
        MPI_Put(&count, 1, MPI_UINT64_T, 0, start + place + 8, 1, MPI_UINT64_T, win); \
        MPI_Win_flush(0, win);                                                        \
        MPI_Accumulate(&free, 1, TYPE, 0, start + place, 1, TYPE, MPI_REPLACE, win);  \
        MPI_Win_flush(0, win);                                                        \
    }
        SIZES(LOCKED)
    }
    return NULL;
}

static void locks_exclude(void)
{
    clear();
    together(count_locked);
    look();
    if (0 == rank) {
#define COUNTED(type_t, TYPE, place)                                               \
    {                                                                              \
        uint64_t count;                                                            \
        memcpy(&count, memory + place + 8, sizeof(count));                         \
        verify_that(count == times / 10 * threads * (uint64_t) ranks,              \
                    "two held a lock of compare_and_swap on " #type_t " at once"); \
    }
        SIZES(COUNTED)
    }
}
/** @} */

/** @name Long ones: many elements at once, with a layout, by all; the order of operations does not show */
/** @{ */
enum { LONG_COUNT = 2000 };

static void *add_long(void *unused)
{
    double *halves = malloc(LONG_COUNT * sizeof(*halves));
    int32_t *ints = malloc(LONG_COUNT * sizeof(*ints));
    MPI_Datatype every_second;

    verify_that(NULL != halves && NULL != ints, "no memory for operands");
    for (int i = 0; i < LONG_COUNT; i++) {
        halves[i] = 0.5 * i;
        ints[i] = i;
    }
    MPI_Type_vector(LONG_COUNT, 1, 2, MPI_INT32_T, &every_second);
    MPI_Type_commit(&every_second);
    for (uint64_t n = 0; n < times / 20; n++) {
        MPI_Accumulate(halves, LONG_COUNT, MPI_DOUBLE, 0, start, LONG_COUNT, MPI_DOUBLE, MPI_SUM, win);
        MPI_Accumulate(ints, LONG_COUNT, MPI_INT32_T, 0, start + 8 * LONG_COUNT, 1, every_second, MPI_SUM,
                       win);
        MPI_Win_flush(0, win);
    }
    MPI_Type_free(&every_second);
    free(halves);
    free(ints);
    return NULL;
}

static void long_sums_are_complete(void)
{
    const double all = (double) (times / 20 * threads * (uint64_t) ranks);

    clear();
    together(add_long);
    look();
    /* The same by an accumulate that only reads, with an answer longer than a message. */
    static double fetched[LONG_COUNT];
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, fetched, LONG_COUNT, MPI_DOUBLE, 0, start, LONG_COUNT, MPI_DOUBLE,
                       MPI_NO_OP, win);
    MPI_Win_unlock(0, win);
    for (int i = 0; i < LONG_COUNT; i++) {
        verify_that(fetched[i] == 0.5 * i * all, "a long accumulate brought back something else");
    }
    for (int i = 0; 0 == rank && i < LONG_COUNT; i++) {
        double half;
        int32_t number[2];

        memcpy(&half, memory + 8 * i, sizeof(half));
        memcpy(number, memory + 8 * LONG_COUNT + 8 * i, sizeof(number));
        verify_that(half == 0.5 * i * all, "a sum within a long accumulate is not complete");
        verify_that(number[0] == (int32_t) (i * all), "a sum within a strided accumulate is not complete");
        verify_that(0 == number[1], "a gap of a strided accumulate was written to");
    }
}
/** @} */

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "TIMES", &times, 20}, {'k', "KINDS", &kinds, 1}, {'t', "THREADS", &threads, 1}, {0}};
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    verify_options(argc, argv, options);
    verify_that(THREADS_MAX >= threads, "too many threads");
    verify_that(1 == threads || MPI_THREAD_MULTIPLE == provided, "this MPI has no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int kind = 0; kind < 4; kind++) {
        if (0 == (kinds >> kind & 1)) {
            continue;
        }
        window_open(kind);
        sums_are_complete();
        elements_stay_whole();
        tokens_are_not_lost();
        counters_count();
        locks_exclude();
        long_sums_are_complete();
        window_close(kind);
    }
    if (0 == rank) {
        printf("osc_contend: %d ranks of %d threads agree\n", ranks, (int) threads);
    }
    MPI_Finalize();
    return 0;
}
