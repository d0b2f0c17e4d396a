/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_lost.c
 * Six ranks, the odd ones on another host, wait for each other in epochs of a window until those of the other host are
 * lost. Then what waits fails, and leaves no epoch open: the next call is legal, and fails for the same reason.
 *
 *   osc_lost FOLDER
 *
 * Each rank makes a file of its number there, named R.ready before it waits and R.lost when all has failed as it should. It
 * ends with status 3 once all have made theirs, without MPI.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 6, LONGEST_S = 30, STEP_MS = 20, PATH = 4096 };

static const char *folder;
static int rank;
static MPI_Win win;

static void mark(const char *what)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, rank, what);
    FILE *file = fopen(path, "w");
    verify_that(NULL != file && 0 == fclose(file), "a file cannot be made");
}

/** Until the ranks that are named have made their marks, or for LONGEST_S: who ends before has mpirun end the others. Locks that
 * lost processes hold are given back meanwhile, as this one progresses. */
static void linger(int first, int step, const char *what)
{
    char path[PATH];
    int other = first;

    for (int waited = 0; other < RANKS && waited < LONGEST_S * 1000; waited += STEP_MS) {
        for (; other < RANKS; other += step) {
            snprintf(path, sizeof(path), "%s/%d.%s", folder, other, what);
            if (0 != access(path, F_OK)) {
                break;
            }
        }
        (void) MPI_Win_sync(win);
        verify_sleep_ms(STEP_MS);
    }
}

static MPI_Group group_of(int member)
{
    MPI_Group world, group;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &member, &group);
    MPI_Group_free(&world);
    return group;
}

static int class_of(int rc)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(rc, &class);
    return class;
}

/** The reason is the lost process, not the program. */
static void expect_loss(int rc, const char *what)
{
    verify_that(MPI_SUCCESS != rc, what);
    verify_that(MPI_ERR_RMA_SYNC != class_of(rc),
                "an epoch was left open, or closed, that a lost process was to end");
}

static void expect_sync(int rc, const char *what)
{
    verify_that(MPI_ERR_RMA_SYNC == class_of(rc), what);
}

/** Wait for an exposure epoch that does not come. */
static void start(int target)
{
    MPI_Group group = group_of(target);

    expect_loss(MPI_Win_start(group, 0, win), "an access epoch began without an exposure epoch");
    expect_sync(MPI_Win_complete(win), "an access epoch that did not begin was completed");
    expect_loss(MPI_Win_start(group, 0, win), "an access epoch to a lost process began");
    MPI_Group_free(&group);
}

/** Wait for the end of an access epoch. */
static void wait_or_test(int origin, bool tests)
{
    MPI_Group group = group_of(origin);
    int flag = 0;
    int rc = MPI_SUCCESS;

    verify_that(MPI_SUCCESS == MPI_Win_post(group, 0, win), "an exposure epoch did not begin");
    while (tests && MPI_SUCCESS == rc && 0 == flag) {
        rc = MPI_Win_test(win, &flag);
    }
    expect_loss(tests ? rc : MPI_Win_wait(win), "an access epoch ended that has not begun");
    expect_sync(MPI_Win_wait(win), "an exposure epoch was left open");
    /* To whom nothing can be said any more. */
    verify_that(MPI_SUCCESS == MPI_Win_post(group, 0, win), "another exposure epoch did not begin");
    expect_loss(MPI_Win_wait(win), "an access epoch of a lost process ended");
    MPI_Group_free(&group);
}

/** Lock a process until it is lost. */
static void lock(int target)
{
    int rc = MPI_SUCCESS;

    while (MPI_SUCCESS == rc) {
        rc = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (MPI_SUCCESS == rc) {
            rc = MPI_Win_unlock(target, win);
        }
    }
    expect_loss(rc, "a lost process was locked");
    expect_loss(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win),
                "a lost process was locked for the second time");
    expect_loss(MPI_Win_lock_all(0, win), "all were locked, though one is lost");
    expect_loss(MPI_Win_lock_all(0, win), "all were locked for the second time");
    /* Of this host: what was locked before the lost one was given back, as was what lost ones held. */
    for (int near = rank % 2; near < RANKS; near += 2) {
        verify_that(MPI_SUCCESS == MPI_Win_lock(MPI_LOCK_EXCLUSIVE, near, 0, win),
                    "a process cannot be locked");
        verify_that(MPI_SUCCESS == MPI_Win_unlock(near, win), "a process cannot be unlocked");
    }
}

/** An operation of each kind, some with requests, which are over when this returns. @return what went wrong. */
static int operate(int operation, int target)
{
    static int64_t word = 1, old;
    MPI_Request request = MPI_REQUEST_NULL;
    int rc;

    switch (operation) {
    case 0:
        rc = MPI_Put(&word, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, win);
        break;
    case 1:
        rc = MPI_Rput(&word, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, win, &request);
        break;
    case 2:
        rc = MPI_Rget(&old, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, win, &request);
        break;
    case 3:
        rc = MPI_Raccumulate(&word, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T, MPI_SUM, win, &request);
        break;
    case 4:
        rc = MPI_Rget_accumulate(&word, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, target, rank, 1, MPI_INT64_T,
                                 MPI_SUM, win, &request);
        break;
    default:
        rc = MPI_Fetch_and_op(&word, &old, MPI_INT64_T, target, rank, MPI_SUM, win);
        break;
    }
    const int waited = MPI_Wait(&request, MPI_STATUS_IGNORE);

    verify_that(MPI_REQUEST_NULL == request, "a request to a lost process is left");
    return MPI_SUCCESS == rc ? waited : rc;
}

enum { OPERATIONS = 6 };

/** End an access epoch to a process that is lost meanwhile; then fail with operations of all kinds. */
static void complete(int target)
{
    MPI_Group group = group_of(target);
    int rc = MPI_SUCCESS;

    for (int n = 0; MPI_SUCCESS == rc; n++) {
        rc = MPI_Win_start(group, MPI_MODE_NOCHECK, win);
        verify_that(MPI_SUCCESS == rc, "an access epoch without a check did not begin");
        (void) operate(n % OPERATIONS, target);
        rc = MPI_Win_complete(win);
    }
    expect_loss(rc, "an access epoch to a lost process ended well");
    expect_sync(MPI_Win_complete(win), "an access epoch was left open");
    verify_that(MPI_SUCCESS == MPI_Win_start(group, MPI_MODE_NOCHECK, win),
                "another access epoch without a check did not begin");
    for (int operation = 1; operation < OPERATIONS; operation++) {
        expect_loss(operate(operation, target), "an operation on a lost process ended well");
    }
    expect_loss(MPI_Win_complete(win), "another access epoch to a lost process ended well");
    MPI_Group_free(&group);
}

/** An epoch of processes that are all there ends well, whoever else is lost. */
static void near(void)
{
    const int64_t word = 1;
    const int next = (rank + 2) % RANKS;
    MPI_Group origin = group_of((rank + RANKS - 2) % RANKS);
    MPI_Group target = group_of(next);

    verify_that(MPI_SUCCESS == MPI_Win_post(origin, 0, win),
                "an exposure epoch to a near process did not begin");
    verify_that(MPI_SUCCESS == MPI_Win_start(target, 0, win),
                "an access epoch to a near process did not begin");
    verify_that(MPI_SUCCESS == MPI_Put(&word, 1, MPI_INT64_T, next, rank, 1, MPI_INT64_T, win),
                "a put to a near process failed");
    verify_that(MPI_SUCCESS == MPI_Win_complete(win),
                "an access epoch failed for a process that it has nothing to do with");
    verify_that(MPI_SUCCESS == MPI_Win_wait(win), "an exposure epoch of a near process failed");
    MPI_Group_free(&origin);
    MPI_Group_free(&target);
}

int main(int argc, char **argv)
{
    static int64_t memory[RANKS];
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(2 == argc && RANKS == ranks, "usage: osc_lost FOLDER, by 6 ranks");
    folder = argv[1];
    MPI_Win_create(memory, sizeof(memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("ready");
    switch (rank) {
    case 0:
        start(1);
        break;
    case 1:
        wait_or_test(2, true);
        break;
    case 2:
        wait_or_test(3, false);
        break;
    case 3:
        complete(4);
        break;
    default:
        lock(4 == rank ? 1 : 2);
        break;
    }
    mark("failed");
    /* Lost processes find out by themselves; those of this host may still lock this one. */
    linger(rank % 2, 2, "failed");
    near();
    expect_loss(MPI_Win_fence(0, win), "all met in a fence, though one is lost");
    mark("lost");
    linger(0, 1, "lost");
    _exit(3);
}
