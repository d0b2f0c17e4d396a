/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_limits.c
 * MPI_Alloc_mem and windows where memory is short: what is given can be written to, and what cannot be given is an error.
 *
 *   osc_limits [-k COUNTED]
 *
 * With COUNTED not 0 (default 0) the system promises no more memory than it has: then all pages are there before they are
 * touched, also of memory that was used and given back before.
 */
#include "dn_config.h"

#include "verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE   4096u
#define BYTES  (8u << 20)
#define PIECES 64
#define LARGE  (128u << 20)
/** Of the timer: taking LARGE bytes lasts many of them. */
#define TICK_US 1000
#define PATH    4096
/** Address space that is left, and what is more than that. */
#define LEFT     ((rlim_t) 96 << 20)
#define TOO_MUCH ((MPI_Aint) 1 << 30)

static uint64_t counted;

static int class_of(int rc)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(rc, &class);
    return class;
}

/** Segments have all of their pages, touched or not, and one of them has @p least bytes. */
static void expect_taken(int64_t least)
{
    DIR *folder = opendir("/proc/self/fd");
    int segments = 0;

    verify_that(NULL != folder, "/proc/self/fd cannot be read");
    for (struct dirent *entry; NULL != (entry = readdir(folder));) {
        char name[PATH] = "";
        struct stat info;

        if (0 < readlinkat(dirfd(folder), entry->d_name, name, sizeof(name) - 1)
            && NULL != strstr(name, "dimmnet segment")
            && 0 == fstatat(dirfd(folder), entry->d_name, &info, 0)) {
            verify_that(512 * info.st_blocks >= info.st_size, "memory was given that is not there");
            segments += info.st_size >= least;
        }
    }
    closedir(folder);
    verify_that(0 < segments, "there is no segment, or none so large");
}

static void pages_are_taken(void)
{
    for (int times = 0; times < 3; times++) {
        uint8_t *bytes;

        verify_that(MPI_SUCCESS == MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &bytes), "MPI_Alloc_mem failed");
        expect_taken(0);
        memset(bytes, 1, BYTES);
        MPI_Free_mem(bytes);
        expect_taken(0);
    }
}

static void ignore(int number)
{
    (void) number;
}

/** A program with a timer gets a segment, too, that takes the kernel longer than the timer lets it be. */
static void signals_do_not_matter(void)
{
    const struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, TICK_US}, {0, TICK_US}}, never = {{0, 0}, {0, 0}};
    uint8_t *bytes;

    verify_that(0 == sigaction(SIGALRM, &action, NULL), "sigaction fails");
    verify_that(0 == setitimer(ITIMER_REAL, &often, NULL), "setitimer fails");
    verify_that(MPI_SUCCESS == MPI_Alloc_mem(LARGE, MPI_INFO_NULL, &bytes), "MPI_Alloc_mem failed");
    verify_that(0 == setitimer(ITIMER_REAL, &never, NULL), "setitimer fails");
    expect_taken(LARGE);
    memset(bytes, 1, LARGE);
    MPI_Free_mem(bytes);
}

/** Leave so much address space that some pieces can be had, and no large one. @return what was allowed before. */
static rlim_t limit_address_space(void)
{
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    verify_that(NULL != file && 1 == fscanf(file, "%lu", &pages), "/proc/self/statm cannot be read");
    fclose(file);
    verify_that(0 == getrlimit(RLIMIT_AS, &limit), "getrlimit fails");
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = pages * (rlim_t) PAGE + LEFT;
    verify_that(0 == setrlimit(RLIMIT_AS, &limit), "setrlimit fails");
    return before;
}

static void pieces_until_there_is_no_more(void)
{
    uint8_t *piece[PIECES];
    int rc = MPI_SUCCESS;
    int n = 0;

    while (n < PIECES && MPI_SUCCESS == (rc = MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &piece[n]))) {
        memset(piece[n], n, BYTES);
        n++;
    }
    verify_that(n < PIECES && MPI_ERR_NO_MEM == class_of(rc),
                "memory did not run out, or not as MPI_ERR_NO_MEM");
    verify_that(0 < n, "no memory was given though there was some");
    for (int i = 0; i < n; i++) {
        verify_that(i == piece[i][0] && i == piece[i][BYTES - 1], "pieces share memory");
        MPI_Free_mem(piece[i]);
    }
}

static void window_works(void)
{
    int64_t *memory, value = 7, other = 0;
    MPI_Win win;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_that(
        MPI_SUCCESS
            == MPI_Win_allocate(1 << 20, sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win),
        "a window cannot be made");
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    MPI_Get(&other, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    verify_that(value == other, "a window has another word than was put");
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'k', "COUNTED", &counted, 0}, {0}};
    struct rlimit limit;
    void *memory;
    MPI_Win win;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    verify_options(argc, argv, options);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    window_works();
    if (0 != counted) {
        pages_are_taken();
        signals_do_not_matter();
    }
    const rlim_t before = limit_address_space();
    verify_that(MPI_ERR_NO_MEM == class_of(MPI_Alloc_mem(TOO_MUCH, MPI_INFO_NULL, &memory)),
                "more memory than there is was given");
    pieces_until_there_is_no_more();
    verify_that(MPI_SUCCESS != MPI_Win_allocate(TOO_MUCH, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win),
                "a window was made of more memory than there is");
    verify_that(0 == getrlimit(RLIMIT_AS, &limit), "getrlimit fails");
    limit.rlim_cur = before;
    verify_that(0 == setrlimit(RLIMIT_AS, &limit), "setrlimit fails");
    window_works();
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("osc_limits: what was given was there, what was not was refused\n");
    }
    MPI_Finalize();
    return 0;
}
