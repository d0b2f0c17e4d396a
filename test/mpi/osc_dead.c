/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dead.c
 * Rank 2 is killed while it has, or wants, what ranks 0 and 1 wait for in a window that all of them map: their calls fail, and
 * so do later ones.
 *
 *   osc_dead FOLDER WHAT KIND
 *
 * WHAT is exclusive, shared or queued (a lock of rank 0), guarded (an accumulate to rank 0), served (the same, while rank 1
 * accumulates by messages), or epochs (of active target). KIND is allocate or dynamic; served needs dynamic.
 *
 * Rank 2 makes a file 2.ready in the folder that has its process id; who runs this kills it then. The others make R.failed
 * when all has failed as it should, and end with status 3, without MPI.
 */
#include "dn_config.h"

#include "verify.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TARGET, OTHER, DEAD, RANKS, PATH = 4096, PAGE = 4096, BYTES = 4 * PAGE, STEP_MS = 10, LONGEST_S = 30 };

static const char *folder;
static int rank;
static MPI_Win win;
static MPI_Aint start;
static MPI_Aint unmapped;
static char ready[PATH];

/** Make the file that tells the process id; in a signal handler, too. */
static void say_ready(void)
{
    char number[16];
    const int len = snprintf(number, sizeof(number), "%d\n", (int) getpid());
    const int fd = open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (0 > fd || len != write(fd, number, (size_t) len) || 0 != close(fd)) {
        _exit(4);
    }
}

static bool is_there(int of, const char *what)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, of, what);
    return 0 == access(path, F_OK);
}

static void await(int of, const char *what)
{
    for (int waited = 0; !is_there(of, what) && waited < LONGEST_S * 1000; waited += STEP_MS) {
        verify_sleep_ms(STEP_MS);
    }
}

static _Noreturn void wait_for_the_end(void)
{
    for (;;) {
        (void) pause();
    }
}

static void on_fault(int number)
{
    (void) number;
    say_ready();
    wait_for_the_end();
}

/** Stay in the midst of an accumulate: the second page of its operands cannot be read. */
static _Noreturn void accumulate_for_ever(void)
{
    const struct sigaction action = {.sa_handler = on_fault};
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    verify_that(MAP_FAILED != pages && 0 == mprotect(pages + PAGE, PAGE, PROT_NONE),
                "no memory for operands");
    verify_that(0 == sigaction(SIGSEGV, &action, NULL), "the signal cannot be handled");
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(pages, 2 * PAGE / 8, MPI_DOUBLE, TARGET, start, 2 * PAGE / 8, MPI_DOUBLE, MPI_SUM, win);
    verify_fail("operands were read that cannot be read");
}

static void expect_loss(int rc, const char *what)
{
    int class = MPI_SUCCESS;

    verify_that(MPI_SUCCESS != rc, what);
    MPI_Error_class(rc, &class);
    verify_that(MPI_ERR_RMA_SYNC != class, "the error is of another class than that of a lost process");
}

static void lock_in_vain(int type)
{
    for (int i = 0; i < 2; i++) {
        expect_loss(MPI_Win_lock(type, TARGET, 0, win), "a lock that a dead process has was taken");
    }
    expect_loss(MPI_Win_lock_all(0, win), "a lock that a dead process has was taken with all");
}

static void accumulate_in_vain(void)
{
    double ones[4] = {1, 1, 1, 1};
    int64_t one = 1;
    int64_t old = -1;

    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; i++) {
        expect_loss(MPI_Accumulate(ones, 4, MPI_DOUBLE, TARGET, start, 4, MPI_DOUBLE, MPI_SUM, win),
                    "an accumulate got past that of a dead process");
    }
    verify_that(MPI_SUCCESS
                        == MPI_Fetch_and_op(&one, &old, MPI_INT64_T, TARGET, start + 3 * PAGE, MPI_SUM, win)
                    && 0 <= old && 2 > old,
                "what one instruction does has to wait for a dead process");
}

static void mark(const char *what)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, rank, what);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    verify_that(0 <= fd && 0 == close(fd), "a file cannot be made");
}

/** Rank 1 accumulates to memory of rank 0 that is not mapped. Rank 0 must not wait for the guard, but answer its messages. */
static void serve_in_vain(void)
{
    double ones[4] = {1, 1, 1, 1};
    int number = 0;

    if (TARGET == rank) {
        do {
            MPI_Recv(&number, 1, MPI_INT, OTHER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&number, 1, MPI_INT, OTHER, 0, MPI_COMM_WORLD);
        } while (0 <= number);
        return;
    }
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; i++) {
        verify_that(MPI_SUCCESS
                        == MPI_Accumulate(ones, 4, MPI_DOUBLE, TARGET, unmapped, 4, MPI_DOUBLE, MPI_SUM, win),
                    "an accumulate by messages did not begin");
    }
    /* In this time rank 0 finds the accumulates. */
    for (int i = 0; i < 30; i++) {
        MPI_Send(&i, 1, MPI_INT, TARGET, 0, MPI_COMM_WORLD);
        MPI_Recv(&number, 1, MPI_INT, TARGET, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify_that(i == number, "another answer came");
        verify_sleep_ms(STEP_MS);
    }
    mark("answered");
    expect_loss(MPI_Win_flush(TARGET, win), "an accumulate got past that of a dead process");
    number = -1;
    MPI_Send(&number, 1, MPI_INT, TARGET, 0, MPI_COMM_WORLD);
    MPI_Recv(&number, 1, MPI_INT, TARGET, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wait_in_vain(void)
{
    const int dead = DEAD;
    MPI_Group world, group;
    int flag = 0;
    int rc = MPI_SUCCESS;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &dead, &group);
    if (TARGET == rank) {
        expect_loss(MPI_Win_start(group, 0, win), "an access epoch to a dead process began");
    } else {
        MPI_Win_post(group, 0, win);
        expect_loss(MPI_Win_wait(win), "an access epoch of a dead process ended");
        MPI_Win_post(group, 0, win);
        while (MPI_SUCCESS == rc && 0 == flag) {
            rc = MPI_Win_test(win, &flag);
        }
        expect_loss(rc, "an access epoch of a dead process ended");
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/** What rank 2 does. */
static _Noreturn void get_in_the_way(const char *what)
{
    if (0 == strcmp(what, "guarded") || 0 == strcmp(what, "served")) {
        accumulate_for_ever();
    }
    if (0 == strcmp(what, "queued")) {
        say_ready();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
        verify_fail("a lock was had that another has");
    }
    if (0 != strcmp(what, "epochs")) {
        MPI_Win_lock(0 == strcmp(what, "shared") ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    }
    say_ready();
    wait_for_the_end();
}

/** What the others do. */
static void wait_for_it(const char *what)
{
    await(DEAD, "ready");
    if (0 == strcmp(what, "guarded")) {
        accumulate_in_vain();
    } else if (0 == strcmp(what, "served")) {
        serve_in_vain();
    } else if (0 == strcmp(what, "epochs")) {
        wait_in_vain();
    } else {
        if (0 == strcmp(what, "queued") && OTHER == rank) {
            await(DEAD, "killed");
            verify_that(MPI_SUCCESS == MPI_Win_unlock(TARGET, win), "a lock was not given back");
        }
        lock_in_vain(TARGET == rank && 0 != strcmp(what, "shared") ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE);
    }
}

int main(int argc, char **argv)
{
    static double own[4];
    void *memory;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_that(4 == argc, "give FOLDER, WHAT and KIND");
    folder = argv[1];
    snprintf(ready, sizeof(ready), "%s/%d.ready", folder, DEAD);
    if (0 == strcmp(argv[3], "dynamic")) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
        MPI_Win_attach(win, memory, BYTES);
        MPI_Get_address(memory, &start);
        MPI_Win_attach(win, own, sizeof(own));
        MPI_Get_address(own, &unmapped);
    } else {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    }
    memset(memory, 0, BYTES);
    MPI_Bcast(&start, 1, MPI_AINT, TARGET, MPI_COMM_WORLD);
    MPI_Bcast(&unmapped, 1, MPI_AINT, TARGET, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (OTHER == rank && 0 == strcmp(argv[2], "queued")) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (DEAD == rank) {
        get_in_the_way(argv[2]);
    }
    wait_for_it(argv[2]);
    mark("failed");
    await(TARGET, "failed");
    await(OTHER, "failed");
    _exit(3);
}
