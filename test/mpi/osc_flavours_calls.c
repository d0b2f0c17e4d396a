/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_flavours_calls.c
 * What osc_flavours does by each call of one-sided communication in a window that is open.
 */
#include "dn_config.h"

#include "osc_flavours.h"
#include "verify.h"

#include <stddef.h>

/** @name Calls: each puts a value into a place, and brings back what was there, or one of the two */
/** @{ */
enum what { STORES = 1, FETCHES = 2, REQUESTS = 4 };

typedef int (*call_fn_t)(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                         MPI_Request *request);

#define HERE(buffer) buffer, count, MPI_INT64_T
#define THERE        target, disp, count, MPI_INT64_T

static int put(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp, MPI_Request *request)
{
    return MPI_Put(HERE(value), THERE, win);
}

static int get(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp, MPI_Request *request)
{
    return MPI_Get(HERE(old), THERE, win);
}

static int rput(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp, MPI_Request *request)
{
    return MPI_Rput(HERE(value), THERE, win, request);
}

static int rget(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp, MPI_Request *request)
{
    return MPI_Rget(HERE(old), THERE, win, request);
}

static int accumulate(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                      MPI_Request *request)
{
    return MPI_Accumulate(HERE(value), THERE, MPI_REPLACE, win);
}

static int raccumulate(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                       MPI_Request *request)
{
    return MPI_Raccumulate(HERE(value), THERE, MPI_REPLACE, win, request);
}

static int get_accumulate(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                          MPI_Request *request)
{
    return MPI_Get_accumulate(HERE(value), HERE(old), THERE, MPI_REPLACE, win);
}

static int rget_accumulate(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                           MPI_Request *request)
{
    return MPI_Rget_accumulate(HERE(value), HERE(old), THERE, MPI_REPLACE, win, request);
}

static int fetch_nothing(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                         MPI_Request *request)
{
    return MPI_Get_accumulate(NULL, 0, MPI_INT64_T, HERE(old), THERE, MPI_NO_OP, win);
}

static int fetch_and_op(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                        MPI_Request *request)
{
    return MPI_Fetch_and_op(value, old, MPI_INT64_T, target, disp, MPI_REPLACE, win);
}

static int compare_and_swap(int64_t *value, int64_t *old, int count, int target, MPI_Aint disp,
                            MPI_Request *request)
{
    /* Places begin with 7. */
    static const int64_t seven = 7;

    return MPI_Compare_and_swap(value, &seven, old, MPI_INT64_T, target, disp, win);
}

static const struct call {
    const char *name;
    call_fn_t fn;
    unsigned what;
    bool one; /**< of one element, always */
} calls[] = {
    {"MPI_Put", put, STORES, false},
    {"MPI_Get", get, FETCHES, false},
    {"MPI_Rput", rput, STORES | REQUESTS, false},
    {"MPI_Rget", rget, FETCHES | REQUESTS, false},
    {"MPI_Accumulate", accumulate, STORES, false},
    {"MPI_Raccumulate", raccumulate, STORES | REQUESTS, false},
    {"MPI_Get_accumulate", get_accumulate, STORES | FETCHES, false},
    {"MPI_Rget_accumulate", rget_accumulate, STORES | FETCHES | REQUESTS, false},
    {"MPI_Get_accumulate with MPI_NO_OP", fetch_nothing, FETCHES, false},
    {"MPI_Fetch_and_op", fetch_and_op, STORES | FETCHES, true},
    {"MPI_Compare_and_swap", compare_and_swap, STORES | FETCHES, true},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/** Make a call in an epoch that is open. */
static void make(const struct call *call, int64_t *value, int64_t *old, int count, int target, MPI_Aint disp)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;

    call_name = call->name;
    good(call->fn(value, old, count, target, disp, &request), "the call");
    if (0 != (call->what & REQUESTS)) {
        verify_that(MPI_REQUEST_NULL != request, "a call that makes a request has made none");
        good(MPI_Wait(&request, &status), "MPI_Wait");
        verify_that(MPI_REQUEST_NULL == request, "a request that is complete is left");
    }
}
/** @} */

/** Set all places of the own memory. */
static void set_places(int64_t value)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    for (int i = 0; i < BYTES / 8; i++) {
        ((int64_t *) (void *) memory)[i] = value;
    }
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Each call, in each kind of epoch, to each rank: it stores and fetches what it should. */
int values(void)
{
    for (int e = 0; e < EPOCHS; e++) {
        for (int c = 0; c < CALLS; c++) {
            const struct call *call = &calls[c];
            const int count = call->one ? 1 : 3;

            for (int shift = 0; shift < ranks; shift++) {
                const int target = (rank + shift) % ranks;
                const int origin = (rank + ranks - shift) % ranks;
                int64_t value[3] = {100 + rank, 200 + rank, 300 + rank};
                int64_t old[3] = {-1, -1, -1};

                /* Requests are of passive target only. */
                if (0 != (call->what & REQUESTS) && (FENCES == e || STARTS == e)) {
                    continue;
                }
                set_places(7);
                epoch_open((enum epoch) e, target);
                make(call, value, old, count, target, disp_of(target, PLACE));
                epoch_close((enum epoch) e, target);
                const int64_t *mine = (const int64_t *) (const void *) (memory + PLACE);
                for (int i = 0; i < 3; i++) {
                    const bool used = i < count;
                    const int64_t fetched = used && 0 != (call->what & FETCHES) ? 7 : -1;
                    const int64_t stored = used && 0 != (call->what & STORES) ? 100 * (i + 1) + origin : 7;

                    verify_that(fetched == old[i], call->name);
                    verify_that(stored == mine[i], call->name);
                }
                verify_that(7 == mine[-1] && 7 == mine[3], "a call wrote beside its place");
            }
        }
    }
    return CALLS;
}

/** Nothing, and nobody: no error, no effect. */
void nothing(void)
{
    for (int c = 0; c < CALLS; c++) {
        int64_t value[1] = {5};
        int64_t old[1] = {-1};

        set_places(7);
        epoch_open(LOCK_ALL, rank);
        for (int target = 0; target < ranks && !calls[c].one; target++) {
            make(&calls[c], value, old, 0, target, disp_of(target, PLACE));
            make(&calls[c], NULL, NULL, 0, target, disp_of(target, BYTES));
        }
        for (int count = calls[c].one ? 1 : 0; count < 2; count++) {
            make(&calls[c], value, old, count, MPI_PROC_NULL, 0);
        }
        epoch_close(LOCK_ALL, rank);
        verify_that(-1 == old[0], "what was fetched from nobody, or of nothing, has a value");
        for (int i = 0; i < BYTES / 8; i++) {
            verify_that(7 == ((int64_t *) (void *) memory)[i], "nothing was stored, and changed something");
        }
    }
}

/** @name Pairs */
/** @{ */
#define PAIRS(X)                          \
    X(float_int, float, MPI_FLOAT_INT)    \
    X(double_int, double, MPI_DOUBLE_INT) \
    X(long_int, long, MPI_LONG_INT)       \
    X(two_int, int, MPI_2INT)             \
    X(short_int, short, MPI_SHORT_INT)    \
    X(longer_int, long double, MPI_LONG_DOUBLE_INT)

/** The least and the greatest of what all ranks give, with the least of those that give them. */
#define PAIR(name, value_t, TYPE)                                                                            \
    static void pair_##name(void)                                                                            \
    {                                                                                                        \
        typedef struct {                                                                                     \
            value_t value;                                                                                   \
            int index;                                                                                       \
        } pair_t;                                                                                            \
        pair_t *mine = (pair_t *) (void *) (memory + PLACE);                                                 \
        pair_t give = {.value = (value_t) (rank / 2 * 2), .index = rank};                                    \
        pair_t old = {.value = 99, .index = 99};                                                             \
                                                                                                             \
        set_places(0);                                                                                       \
        mine[0] = (pair_t){.value = 50, .index = 50};                                                        \
        mine[1] = (pair_t){.value = -50, .index = 50};                                                       \
        MPI_Win_fence(0, win);                                                                               \
        for (int t = 0; t < ranks; t++) {                                                                    \
            good(MPI_Accumulate(&give, 1, TYPE, t, disp_of(t, PLACE), 1, TYPE, MPI_MINLOC, win), #TYPE);     \
        }                                                                                                    \
        MPI_Win_fence(0, win);                                                                               \
        for (int t = 0; t < ranks; t++) {                                                                    \
            good(MPI_Fetch_and_op(&give, &old, TYPE, t,                                                      \
                                  disp_of(t, PLACE) + (MPI_Aint) sizeof(pair_t) / unit[t], MPI_MAXLOC, win), \
                 #TYPE);                                                                                     \
        }                                                                                                    \
        MPI_Win_fence(0, win);                                                                               \
        verify_that(0 == mine[0].value && 0 == mine[0].index, "MPI_MINLOC of " #TYPE " is wrong");           \
        verify_that((ranks - 1) / 2 * 2 == (int) mine[1].value && (ranks - 1) / 2 * 2 == mine[1].index,      \
                    "MPI_MAXLOC of " #TYPE " is wrong");                                                     \
        good(                                                                                                \
            MPI_Get_accumulate(NULL, 0, TYPE, &old, 1, TYPE, 0, disp_of(0, PLACE), 1, TYPE, MPI_NO_OP, win), \
            #TYPE);                                                                                          \
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);                                                              \
        verify_that(0 == old.value && 0 == old.index, "MPI_NO_OP of " #TYPE " brought something else");      \
    }
PAIRS(PAIR)

void pairs(void)
{
#define CALL_PAIR(name, value_t, TYPE) pair_##name();
    PAIRS(CALL_PAIR)
}
/** @} */
