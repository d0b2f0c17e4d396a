/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_leaks.c
 * Windows come and go by the thousand and leave nothing: no descriptor, no mapping, no memory. And there may be many at
 * once.
 *
 *   osc_leaks [-n WINDOWS] [-w AT_ONCE] [-k KINDS]
 */
#include "dn_config.h"

#include "verify.h"

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Windows before the first look: what is kept for good is there by then. */
#define WARM_UP 200

/** Pages that the library may come to hold by then, for reasons of its own. */
#define SLACK_KIB 4096

static int rank;
static int ranks;
static uint64_t windows = 10000;
static uint64_t at_once = 300;
static uint64_t kinds = 15;

/** What this process holds. */
typedef struct {
    long descriptors, mappings, resident_kib;
} holdings_t;

static long lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    long lines = 0;

    verify_that(NULL != file, "/proc cannot be read");
    for (int c = getc(file); EOF != c; c = getc(file)) {
        lines += '\n' == c;
    }
    fclose(file);
    return lines;
}

static holdings_t holdings(void)
{
    holdings_t now = {.mappings = lines_of("/proc/self/maps")};
    DIR *folder = opendir("/proc/self/fd");
    FILE *file = fopen("/proc/self/statm", "r");
    long total, resident;

    verify_that(NULL != folder && NULL != file, "/proc cannot be read");
    while (NULL != readdir(folder)) {
        now.descriptors++;
    }
    closedir(folder);
    verify_that(2 == fscanf(file, "%ld %ld", &total, &resident), "/proc/self/statm cannot be read");
    fclose(file);
    now.resident_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
    return now;
}

/** Kinds are those of the other programs. */
static bool wanted(int kind)
{
    return 0 != (kinds >> kind & 1);
}

static void one(uint64_t n)
{
    static uint8_t mine[65536];
    const MPI_Aint size = (MPI_Aint) (n * 7919 % sizeof(mine));
    MPI_Win win;
    uint8_t *memory = mine;
    MPI_Aint at = 0;
    int kind = (int) (n % 4);

    while (!wanted(kind)) {
        kind = (kind + 1) % 4;
    }
    switch (kind) {
    case 0:
        MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        break;
    case 1:
        MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        break;
    case 2:
        MPI_Win_create(mine, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        break;
    default:
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, mine, size + 1);
        MPI_Get_address(mine, &at);
        break;
    }
    if (2 > kind) {
        for (MPI_Aint i = 0; i < size; i++) {
            verify_that(0 == memory[i], "memory of a new window is not what nobody has written to");
        }
        memset(memory, 1 + (int) (n % 255), (size_t) size);
    }
    MPI_Win_fence(0, win);
    if (0 == rank && 0 != size && 3 != kind) {
        const uint8_t byte = (uint8_t) n;

        MPI_Put(&byte, 1, MPI_BYTE, ranks - 1, size - 1, 1, MPI_BYTE, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank == ranks - 1 && 0 != size && 3 != kind) {
        verify_that((uint8_t) n == memory[size - 1], "a put into a window that came late is not there");
    }
    if (3 == kind) {
        MPI_Win_detach(win, mine);
    }
    MPI_Win_free(&win);
}

/** Many windows that live at the same time, freed in another order than they came. */
static void many(void)
{
    MPI_Win *win = calloc(at_once, sizeof(*win));
    int64_t **memory = calloc(at_once, sizeof(*memory));
    const int right = (rank + 1) % ranks;
    const int left = (rank + ranks - 1) % ranks;

    verify_that(NULL != win && NULL != memory, "no memory for windows");
    for (uint64_t i = 0; i < at_once; i++) {
        MPI_Win_allocate(8 + 8 * (MPI_Aint) (i % 100), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory[i], &win[i]);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win[i]);
    }
    for (uint64_t i = 0; i < at_once; i++) {
        const int64_t value = (int64_t) i * ranks + rank;

        MPI_Put(&value, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, win[i]);
        MPI_Win_flush(right, win[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t n = 0; n < at_once; n++) {
        const uint64_t i = n * 7 % at_once;

        MPI_Win_sync(win[i]);
        verify_that((int64_t) i * ranks + left == memory[i][0], "windows share memory");
        MPI_Win_unlock_all(win[i]);
        MPI_Win_free(&win[i]);
    }
    free(win);
    free(memory);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "WINDOWS", &windows, 1}, {'w', "AT_ONCE", &at_once, 1}, {'k', "KINDS", &kinds, 1}, {0}};
    holdings_t before, after;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    verify_that(0 != at_once % 7, "AT_ONCE is no multiple of 7");
    if (wanted(0)) {
        many();
    }
    for (uint64_t n = 0; n < WARM_UP; n++) {
        one(n);
    }
    before = holdings();
    for (uint64_t n = 0; n < windows; n++) {
        one(n);
    }
    if (wanted(0)) {
        many();
    }
    after = holdings();
    if (after.descriptors > before.descriptors) {
        verify_fail("%ld descriptors before %llu windows, %ld after", before.descriptors,
                    (unsigned long long) windows, after.descriptors);
    }
    if (after.mappings > before.mappings + 8) {
        verify_fail("%ld mappings before %llu windows, %ld after", before.mappings,
                    (unsigned long long) windows, after.mappings);
    }
    if (after.resident_kib > before.resident_kib + SLACK_KIB) {
        verify_fail("%ld KiB of memory before %llu windows, %ld after", before.resident_kib,
                    (unsigned long long) windows, after.resident_kib);
    }
    if (0 == rank) {
        printf("osc_leaks: %d ranks, %llu windows left nothing\n", ranks, (unsigned long long) windows);
    }
    MPI_Finalize();
    return 0;
}
