/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_edges.c
 * Corners of one-sided communication: error classes, what windows tell about themselves, nothing at all, nobody,
 * oneself, datatypes of other programs' making.
 *
 *   osc_edges [-k KINDS] [-r REFUSED]
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create, 8 MPI_Win_create_dynamic.
 * With REFUSED not 0 the ranks are on several hosts, so MPI_Win_allocate_shared is an error.
 */
#include "dn_config.h"

#include "verify.h"
#include "window_info.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATE, SHARED, CREATE, DYNAMIC, KINDS };

#define BYTES 4096

static int rank;
static int ranks;
static uint64_t kinds = (1 << KINDS) - 1;
static uint64_t refused;

static MPI_Win win;
static uint8_t *memory;
static MPI_Aint *start;

/** Each rank has another size and another unit. */
static MPI_Aint bytes_of(int r)
{
    return BYTES + 64 * r;
}

static int unit_of(int r)
{
    return 1 + r % 4;
}

static void window_open(int kind, MPI_Info info)
{
    MPI_Aint mine = 0;

    start = calloc((size_t) ranks, sizeof(*start));
    verify_that(NULL != start, "no memory for addresses");
    if (ALLOCATE == kind) {
        MPI_Win_allocate(bytes_of(rank), unit_of(rank), info, MPI_COMM_WORLD, &memory, &win);
    } else if (SHARED == kind) {
        MPI_Win_allocate_shared(bytes_of(rank), unit_of(rank), info, MPI_COMM_WORLD, &memory, &win);
    } else {
        memory = verify_guard_alloc((size_t) bytes_of(rank), 0);
    }
    if (CREATE == kind) {
        MPI_Win_create(memory, bytes_of(rank), unit_of(rank), info, MPI_COMM_WORLD, &win);
    } else if (DYNAMIC == kind) {
        MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, memory, bytes_of(rank));
        MPI_Get_address(memory, &mine);
    }
    MPI_Allgather(&mine, 1, MPI_AINT, start, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(memory, 0, (size_t) bytes_of(rank));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(int kind)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (DYNAMIC == kind) {
        MPI_Win_detach(win, memory);
    }
    MPI_Win_free(&win);
    if (CREATE <= kind) {
        verify_guard_free(memory, (size_t) bytes_of(rank), 0, "memory of a window");
    }
    free(start);
}

/** Fail unless a call returned an error of the class. */
static void expect(int class, int rc, const char *what)
{
    int got = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MPI_Error_class(rc, &got);
    }
    if (class != got) {
        char text[MPI_MAX_ERROR_STRING];
        int len;

        MPI_Error_string(got, text, &len);
        verify_fail("%s gave \"%s\"", what, text);
    }
}

static int put(int target, MPI_Aint disp, int count)
{
    static uint8_t bytes[2 * BYTES];

    return MPI_Put(bytes, count, MPI_BYTE, target, start[target] + disp, count, MPI_BYTE, win);
}

/** Calls out of their epoch. */
static void sync_errors(int kind)
{
    int64_t one = 1;
    int64_t old;
    int flag;
    MPI_Group all;
    MPI_Request request;

    expect(MPI_ERR_RMA_SYNC, put(rank, 0, 1), "a put without an epoch");
    expect(MPI_ERR_RMA_SYNC, MPI_Get(&one, 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, win),
           "a get without an epoch");
    expect(MPI_ERR_RMA_SYNC,
           MPI_Accumulate(&one, 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, MPI_SUM, win),
           "an accumulate without an epoch");
    expect(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(&one, &old, MPI_INT64_T, rank, start[rank], MPI_SUM, win),
           "a fetch_and_op without an epoch");
    expect(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(&one, &one, &old, MPI_INT64_T, rank, start[rank], win),
           "a compare_and_swap without an epoch");
    expect(MPI_ERR_RMA_SYNC, MPI_Rput(&one, 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, win, &request),
           "an rput without an epoch");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_unlock(rank, win), "an unlock of what is not locked");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win), "an unlock_all of what is not locked");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_flush(rank, win), "a flush of what is not locked");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win), "a flush_all of what is not locked");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_complete(win), "a complete without a start");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_wait(win), "a wait without a post");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag), "a test without a post");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    expect(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "a second lock of a target");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win), "a lock_all beside a lock");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win), "a fence beside a lock");
    if (1 < ranks) {
        expect(MPI_ERR_RMA_SYNC, put((rank + 1) % ranks, 0, 1), "a put to a target that is not locked");
    }
    expect(MPI_SUCCESS, put(rank, 0, 1), "a put to the locked target");
    MPI_Win_unlock(rank, win);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Win_post(all, 0, win);
    expect(MPI_ERR_RMA_SYNC, MPI_Win_post(all, 0, win), "a second post");
    MPI_Win_start(all, 0, win);
    expect(MPI_ERR_RMA_SYNC, MPI_Win_start(all, 0, win), "a second start");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "a lock beside a start");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win), "a fence beside a start");
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&all);
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(MPI_ERR_RMA_SYNC, put(rank, 0, 1), "a put after the last fence");
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Bytes outside of the window are refused, and not touched. */
static void range_errors(int kind)
{
    const int class = MPI_ERR_RMA_RANGE;
    int64_t one = 1;
    int64_t old;
    MPI_Datatype wide;

    MPI_Win_lock_all(0, win);
    for (int t = 0; t < ranks; t++) {
        const MPI_Aint units = DYNAMIC == kind ? bytes_of(t) : bytes_of(t) / unit_of(t);

        expect(MPI_SUCCESS, put(t, units - 1, 1), "a put of the last unit's first byte");
        MPI_Win_flush(t, win);
        expect(class, put(t, units + 1, 1), "a put behind the window");
        expect(class, put(t, units - 1, 64), "a put that leaves the window");
        expect(class, put(t, 0, (int) bytes_of(t) + 1), "a put longer than the window");
        expect(class, put(t, PTRDIFF_MAX / 2, 1), "a put far behind the window");
        expect(class, MPI_Fetch_and_op(&one, &old, MPI_INT64_T, t, start[t] + units, MPI_SUM, win),
               "a fetch_and_op behind the window");
        expect(class, MPI_Accumulate(&one, 1, MPI_INT64_T, t, start[t] + units, 1, MPI_INT64_T, MPI_SUM, win),
               "an accumulate behind the window");
    }
    MPI_Type_vector(2, 1, BYTES + 64 * ranks, MPI_BYTE, &wide);
    MPI_Type_commit(&wide);
    expect(class, MPI_Put(&one, 2, MPI_BYTE, rank, start[rank], 1, wide, win),
           "a put by a datatype that reaches behind the window");
    MPI_Type_free(&wide);
    expect(MPI_ERR_TRUNCATE, MPI_Put(&one, 8, MPI_BYTE, rank, start[rank], 4, MPI_BYTE, win),
           "a put of more than the target takes");
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Memory that is attached in two parts, though they lie side by side: an operation on both is refused, and changes neither. */
static void two_regions(void)
{
    enum { A, B, PARTS };
    static int64_t word[PARTS];
    const int64_t ones[PARTS] = {1, 1};
    MPI_Aint *at = calloc((size_t) ranks, sizeof(*at));
    MPI_Aint mine;
    MPI_Datatype ends;

    verify_that(NULL != at, "no memory for addresses");
    for (int part = A; part < PARTS; part++) {
        MPI_Win_attach(win, &word[part], sizeof(word[part]));
    }
    MPI_Get_address(word, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Type_vector(2, 4, 12, MPI_BYTE, &ends);
    MPI_Type_commit(&ends);
    MPI_Win_lock_all(0, win);
    for (int t = 0; t < ranks; t++) {
        expect(MPI_ERR_RMA_RANGE, MPI_Put(ones, 2, MPI_INT64_T, t, at[t], 2, MPI_INT64_T, win),
               "a put across two regions");
        expect(MPI_ERR_RMA_RANGE, MPI_Put(ones, 8, MPI_BYTE, t, at[t], 1, ends, win),
               "a put by a datatype with blocks in two regions");
        expect(MPI_ERR_RMA_RANGE,
               MPI_Accumulate(ones, 2, MPI_INT64_T, t, at[t], 2, MPI_INT64_T, MPI_SUM, win),
               "an accumulate across two regions");
    }
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    verify_that(0 == word[A] && 0 == word[B], "a refused operation has changed a region");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < ranks; t++) {
        expect(MPI_SUCCESS, MPI_Accumulate(ones, 1, MPI_INT64_T, t, at[t], 1, MPI_INT64_T, MPI_SUM, win),
               "an accumulate within a region");
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    verify_that(ranks == word[A] && 0 == word[B], "an accumulate within a region has gone elsewhere");
    for (int part = A; part < PARTS; part++) {
        MPI_Win_detach(win, &word[part]);
    }
    MPI_Type_free(&ends);
    free(at);
}

static void wrong_flavor(int kind)
{
    MPI_Aint size;
    void *base;
    int unit;

    if (SHARED != kind) {
        expect(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, 0, &size, &unit, &base),
               "MPI_Win_shared_query of another kind of window");
    }
    if (DYNAMIC != kind) {
        expect(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, memory, 8),
               "MPI_Win_attach to another kind of window");
        expect(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, memory), "MPI_Win_detach from another kind of window");
    }
}

/** Nothing, nobody, oneself. */
static void nothing(void)
{
    int64_t one = 1;
    int64_t old = 7;
    MPI_Datatype empty;
    MPI_Request request;

    MPI_Win_lock_all(0, win);
    expect(MPI_SUCCESS, put(rank, 0, 0), "a put of nothing");
    expect(MPI_SUCCESS, MPI_Put(NULL, 0, MPI_INT, rank, start[rank], 0, MPI_INT, win),
           "a put of nothing from nowhere");
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    expect(MPI_SUCCESS, MPI_Put(&one, 5, empty, rank, start[rank], 3, empty, win), "a put of empty elements");
    MPI_Type_free(&empty);
    expect(MPI_SUCCESS, MPI_Accumulate(&one, 0, MPI_INT, rank, start[rank], 0, MPI_INT, MPI_SUM, win),
           "an accumulate of nothing");
    expect(MPI_SUCCESS,
           MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &old, 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T,
                              MPI_NO_OP, win),
           "a get_accumulate without an origin");
    MPI_Win_flush(rank, win);
    verify_that(0 == old, "MPI_NO_OP brought back something else");
    expect(MPI_SUCCESS, MPI_Put(&one, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win),
           "a put to nobody");
    expect(MPI_SUCCESS, MPI_Rget(&one, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, &request),
           "an rget from nobody");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verify_that(1 == one, "a get from nobody brought something");
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** A request of each kind completes, and its status says so. */
static void requests(void)
{
    int64_t value[4] = {1, 2, 3, 4};
    int64_t old[4] = {0};
    MPI_Request request[4];
    MPI_Status status[4];

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Rput(&value[0], 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, win, &request[0]);
    MPI_Wait(&request[0], &status[0]);
    MPI_Win_flush(rank, win);
    MPI_Rget(&old[1], 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, win, &request[1]);
    MPI_Wait(&request[1], &status[1]);
    MPI_Raccumulate(&value[2], 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T, MPI_SUM, win, &request[2]);
    MPI_Rget_accumulate(&value[3], 1, MPI_INT64_T, &old[3], 1, MPI_INT64_T, rank, start[rank], 1, MPI_INT64_T,
                        MPI_SUM, win, &request[3]);
    MPI_Waitall(2, &request[2], &status[2]);
    verify_that(1 == old[1], "an rget is complete, but the value is not there");
    verify_that(4 == old[3], "rget_accumulate overtook raccumulate");
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** One instance of a type that spans elements in both directions, written to the target of another rank. */
static void layouts(void)
{
    const int right = (rank + 1) % ranks;
    const int left = (rank + ranks - 1) % ranks;
    const int lengths[3] = {1, 2, 1};
    const MPI_Aint places[3] = {64, -64, 0};
    int32_t four[4];
    int32_t back[4] = {0};
    MPI_Datatype odd, resized;

    MPI_Type_create_hindexed(3, lengths, places, MPI_INT32_T, &odd);
    MPI_Type_create_resized(odd, -64, 256, &resized);
    MPI_Type_commit(&resized);
    for (int i = 0; i < 4; i++) {
        four[i] = 100 * rank + i;
    }
    /* 768 is a multiple of all units. */
    const MPI_Aint disp = start[right] + (0 == start[right] ? 768 / unit_of(right) : 768);
    MPI_Win_fence(0, win);
    expect(MPI_SUCCESS, MPI_Put(four, 4, MPI_INT32_T, right, disp, 1, resized, win),
           "a put by an indexed type");
    MPI_Win_fence(0, win);
    int32_t got;
    memcpy(&got, memory + 768 + 64, sizeof(got));
    verify_that(100 * left == got, "the first block of an indexed type went astray");
    memcpy(&got, memory + 768 - 60, sizeof(got));
    verify_that(100 * left + 2 == got, "the block below the displacement went astray");
    memcpy(&got, memory + 768, sizeof(got));
    verify_that(100 * left + 3 == got, "the last block of an indexed type went astray");
    expect(MPI_SUCCESS, MPI_Get(back, 4, MPI_INT32_T, right, disp, 1, resized, win),
           "a get by an indexed type");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    verify_that(0 == memcmp(four, back, sizeof(four)),
                "a get by an indexed type brought back something else");
    MPI_Type_free(&odd);
    MPI_Type_free(&resized);
}

/** Sums that overflow wrap around, as they do in C, however long the accumulate is and whoever else has the window. */
static void sums_wrap_around(void)
{
    enum { COUNT = 100 };
    uint16_t operand[COUNT];
    uint16_t got[COUNT];

    for (int i = 0; i < COUNT; i++) {
        operand[i] = (uint16_t) (40000 + i);
    }
    for (int type = 0; type < 2; type++) {
        MPI_Win_lock(0 == type ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, rank, 0, win);
        MPI_Accumulate(operand, COUNT, MPI_UINT16_T, rank, start[rank], COUNT, MPI_UINT16_T, MPI_REPLACE,
                       win);
        MPI_Accumulate(operand, COUNT, MPI_UINT16_T, rank, start[rank], COUNT, MPI_UINT16_T, MPI_SUM, win);
        MPI_Get_accumulate(NULL, 0, MPI_UINT16_T, got, COUNT, MPI_UINT16_T, rank, start[rank], COUNT,
                           MPI_UINT16_T, MPI_NO_OP, win);
        MPI_Win_unlock(rank, win);
        for (int i = 0; i < COUNT; i++) {
            verify_that((uint16_t) (2 * operand[i]) == got[i], "a sum that overflows does not wrap around");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void attributes(int kind)
{
    static const int flavors[KINDS] = {MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_CREATE,
                                       MPI_WIN_FLAVOR_DYNAMIC};
    void *value;
    int flag;

    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    verify_that(flag && value == (DYNAMIC == kind ? MPI_BOTTOM : memory),
                "MPI_WIN_BASE is not the memory's address");
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    verify_that(flag && *(MPI_Aint *) value == (DYNAMIC == kind ? 0 : bytes_of(rank)),
                "MPI_WIN_SIZE is not the window's");
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    verify_that(flag && *(int *) value == (DYNAMIC == kind ? 1 : unit_of(rank)),
                "MPI_WIN_DISP_UNIT is another one");
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    verify_that(flag && *(int *) value == flavors[kind], "MPI_WIN_CREATE_FLAVOR is another one");
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    verify_that(flag && (*(int *) value == MPI_WIN_UNIFIED || *(int *) value == MPI_WIN_SEPARATE),
                "no memory model");
}

static void hints(int kind)
{
    MPI_Info info;

    verify_that(0 == strcmp("false", window_info(win, "no_locks")), "a window with locks says no_locks");
    verify_that(0 == strcmp(1 == ranks || DYNAMIC == kind ? "true" : "false", window_info(win, "same_size")),
                "same_size does not hold");
    verify_that(NULL != strstr(window_info(win, "accumulate_ordering"), "waw"),
                "accumulates are not said to be ordered");
    window_close(kind);
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    window_open(kind, info);
    MPI_Info_free(&info);
    verify_that(0 == strcmp("true", window_info(win, "no_locks")), "a window without locks does not say so");
    verify_that(0 == strcmp("same_op", window_info(win, "accumulate_ops")), "accumulate_ops was forgotten");
    expect(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "a lock of a window without locks");
    MPI_Win_fence(0, win);
    expect(MPI_SUCCESS, put(rank, 0, 8), "a put between fences of a window without locks");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/** Memory of all ranks, side by side, found by each of them. */
static void shared_memory(void)
{
    uint8_t *before = NULL;
    MPI_Aint size;
    uint8_t *base;
    int unit;

    memset(memory, 0x40 + rank, (size_t) bytes_of(rank));
    MPI_Win_fence(0, win);
    for (int r = 0; r < ranks; r++) {
        MPI_Win_shared_query(win, r, &size, &unit, &base);
        verify_that(bytes_of(r) == size && unit_of(r) == unit,
                    "MPI_Win_shared_query tells another size or unit");
        verify_that(NULL == before || before == base, "shared memory is not side by side");
        verify_that(r != rank || base == memory, "MPI_Win_shared_query finds the own memory elsewhere");
        verify_that(0x40 + r == base[0] && 0x40 + r == base[size - 1],
                    "another rank's bytes are not in shared memory");
        before = base + size;
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &base);
    verify_that(bytes_of(0) == size && 0x40 == base[0], "MPI_PROC_NULL does not find the first memory");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/** Ranks without memory, and windows without any. */
static void empty_windows(void)
{
    MPI_Aint size;
    uint8_t *base;
    MPI_Win w;
    int unit;

    if (0 != (kinds >> SHARED & 1)) {
        MPI_Win_allocate_shared(0 == rank ? 0 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
        MPI_Win_shared_query(w, MPI_PROC_NULL, &size, &unit, &base);
        verify_that((1 == ranks ? 0 : 8) == size,
                    "the first memory is not that of the first rank that has some");
        MPI_Win_shared_query(w, 0, &size, &unit, &base);
        verify_that(0 == size && NULL == base, "a rank without memory has an address in shared memory");
        MPI_Win_free(&w);
    }
    MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, w);
    expect(MPI_SUCCESS, MPI_Put(&unit, 0, MPI_INT, 0, 0, 0, MPI_INT, w), "a put of nothing into nothing");
    expect(MPI_ERR_RMA_RANGE, MPI_Put(&unit, 1, MPI_INT, 0, 0, 1, MPI_INT, w), "a put into nothing");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    MPI_Win_free(&w);
}

/** Memory of several hosts cannot be shared, and the communicator's error handler hears of it. */
static void shared_is_refused(void)
{
    void *base;
    MPI_Win w;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect(MPI_ERR_RMA_SHARED, MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w),
           "memory shared between hosts");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/** A group that has more processes than the window: those of which the window knows are not reached, either. */
static void group_of_strangers(MPI_Win of_self)
{
    const int class = 1 == ranks ? MPI_SUCCESS : MPI_ERR_RMA_SYNC;
    MPI_Group all;

    MPI_Win_set_errhandler(of_self, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    expect(class, MPI_Win_post(all, 0, of_self), "a post to strangers");
    expect(class, MPI_Win_start(all, 0, of_self), "a start to strangers");
    expect(class, MPI_Win_complete(of_self), "a complete of what strangers were to see");
    expect(class, MPI_Win_wait(of_self), "a wait for strangers");
    MPI_Group_free(&all);
}

/** Windows of parts of the job, in another order of ranks, and of one rank alone, beside each other. */
static void other_communicators(void)
{
    MPI_Comm part;
    MPI_Win of_part, of_self;
    int64_t *words, *mine;
    int size, r;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    MPI_Comm_size(part, &size);
    MPI_Comm_rank(part, &r);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, part, &words, &of_part);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_SELF, &mine, &of_self);
    const int64_t value = rank;
    MPI_Win_fence(0, of_part);
    MPI_Put(&value, 1, MPI_INT64_T, (r + 1) % size, 1, 1, MPI_INT64_T, of_part);
    MPI_Win_fence(0, of_self);
    MPI_Put(&value, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, of_self);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, of_self);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, of_part);
    group_of_strangers(of_self);
    verify_that(rank == mine[2], "a window of one process lost a word");
    /* The left neighbour in the part has the next higher rank of the same parity, or the lowest. */
    const int64_t left = 0 == r ? rank % 2 : rank + 2;
    verify_that(left == words[1], "a window of a part of the job has a word from elsewhere");
    MPI_Win_free(&of_self);
    MPI_Win_free(&of_part);
    MPI_Comm_free(&part);
}

/** Make a type of MPI_Type_create_f90_real(), and give it a number. @return false: this MPI has no Fortran. */
static bool make_real(int digits, MPI_Datatype *type)
{
    MPI_Errhandler before;

    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const bool made = MPI_SUCCESS == MPI_Type_create_f90_real(digits, MPI_UNDEFINED, type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    if (made) {
        (void) MPI_Type_c2f(*type);
    }
    return made;
}

/** Types that are copies of named ones: each process numbers them by itself, in the order of their use, or not at all. */
static void copies_of_named_types(void)
{
    const int target = (rank + 1) % ranks;
    const double third = 1.0 / 3;
    double mine = 0.25;
    MPI_Datatype wide = MPI_DOUBLE, narrow = MPI_FLOAT;
    MPI_Win of_all;

    const bool made = 0 == rank % 2 ? make_real(15, &wide) && make_real(6, &narrow)
                                    : make_real(6, &narrow) && make_real(15, &wide);
    MPI_Win_create(&mine, sizeof(mine), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &of_all);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, of_all);
    MPI_Accumulate(&third, 1, made ? wide : MPI_DOUBLE, target, 0, 1, made ? wide : MPI_DOUBLE, MPI_SUM,
                   of_all);
    MPI_Win_unlock(target, of_all);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, of_all);
    verify_that(0.25 + third == mine, "an accumulate took its elements for others");
    MPI_Win_unlock(rank, of_all);
    MPI_Win_free(&of_all);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'k', "KINDS", &kinds, 1}, {'r', "REFUSED", &refused, 0}, {0}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    for (int kind = 0; kind < KINDS; kind++) {
        if (0 == (kinds >> kind & 1)) {
            continue;
        }
        window_open(kind, MPI_INFO_NULL);
        attributes(kind);
        sync_errors(kind);
        range_errors(kind);
        if (DYNAMIC == kind) {
            two_regions();
        }
        wrong_flavor(kind);
        nothing();
        requests();
        layouts();
        sums_wrap_around();
        if (SHARED == kind) {
            shared_memory();
        }
        hints(kind);
        window_close(kind);
    }
    empty_windows();
    if (0 != refused) {
        shared_is_refused();
    }
    other_communicators();
    copies_of_named_types();
    if (0 == rank) {
        printf("osc_edges: %d ranks, all as the standard says\n", ranks);
    }
    MPI_Finalize();
    return 0;
}
