/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file stock_and_ours.c
 * What people complain about, in figures, for whatever transport carries it. Rank 0 prints one line, "KIND FIGURE UNIT".
 *
 *   stock_and_ours -k KIND [-n TIMES] [-t MS]
 *
 * KIND 0, crowd:   TIMES barriers and sums of all ranks; microseconds of a pair.
 * KIND 1, passive: rank 0 computes for MS without a call of MPI. Rank 1 meanwhile puts to and gets from its window of MPI_Win_create,
 *                  and adds to it; longest time of one of these in milliseconds.
 * KIND 2, memory:  every rank talks to every other one; MiB of memory of a rank, each page shared among those that map it.
 *
 * Results are checked in each.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4096

static int rank;
static int ranks;
static uint64_t times = 200;
static uint64_t compute_ms = 500;

static double crowd(void)
{
    double began = 0;

    for (uint64_t n = 0; n < times + 10; n++) {
        int64_t in = rank + (int64_t) n, sum = 0;

        if (10 == n) {
            began = verify_seconds();
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&in, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        verify_that(ranks * (ranks - 1) / 2 + ranks * (int64_t) n == sum, "a sum is wrong");
    }
    return (verify_seconds() - began) / (double) times * 1e6;
}

/** One put, get and sum of rank 1 at rank 0. @return seconds until they are done. */
static double visit(MPI_Win win, int64_t n)
{
    const double began = verify_seconds();
    int64_t put[WORDS], got[WORDS], one = 1, before;

    for (int i = 0; i < WORDS; i++) {
        put[i] = n + i;
    }
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(put, WORDS, MPI_INT64_T, 0, 1, WORDS, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    MPI_Get(got, WORDS, MPI_INT64_T, 0, 1, WORDS, MPI_INT64_T, win);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    verify_that(n == before, "a sum at the target is wrong");
    verify_that(0 == memcmp(put, got, sizeof(put)), "a get brings other words than were put");
    return verify_seconds() - began;
}

static double passive(void)
{
    int64_t *memory = calloc(1 + WORDS, sizeof(*memory));
    double longest = 0, all;
    MPI_Win win;

    verify_that(NULL != memory, "there is no memory");
    MPI_Win_create(0 == rank ? memory : NULL, 0 == rank ? (1 + WORDS) * sizeof(*memory) : 0, sizeof(*memory),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (1 == rank) {
        visit(win, 0); /* whatever is set up at first */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double end = verify_seconds() + (double) compute_ms / 1e3;
    while (0 == rank && verify_seconds() < end) {
    }
    for (int64_t n = 1; 1 == rank && n <= 20; n++) {
        const double took = visit(win, n);
        longest = took > longest ? took : longest;
    }
    MPI_Win_free(&win);
    free(memory);
    MPI_Reduce(&longest, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return all * 1e3;
}

/** Of this process, from the kernel. */
static double proportional_mib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    unsigned long kib = 0;
    char line[256];

    verify_that(NULL != file, "/proc/self/smaps_rollup cannot be read");
    while (NULL != fgets(line, sizeof(line), file) && 1 != sscanf(line, "Pss: %lu kB", &kib)) {
    }
    fclose(file);
    verify_that(0 != kib, "/proc/self/smaps_rollup has no Pss");
    return (double) kib / 1024;
}

static double memory(void)
{
    int64_t *out = calloc((size_t) ranks, sizeof(*out)), *in = calloc((size_t) ranks, sizeof(*in));
    double mine, sum;

    verify_that(NULL != out && NULL != in, "there is no memory");
    for (int distance = 0; distance < ranks; distance++) {
        const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;

        out[to] = rank * (int64_t) ranks + to;
        MPI_Sendrecv(&out[to], 1, MPI_INT64_T, to, 0, &in[from], 1, MPI_INT64_T, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        verify_that(from * (int64_t) ranks + rank == in[from], "a message is wrong");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mine = proportional_mib();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    free(out);
    free(in);
    return sum / ranks;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *unit;
        double (*run)(void);
    } kinds[] = {{"crowd", "us", crowd}, {"passive", "ms", passive}, {"memory", "MiB", memory}};
    uint64_t kind = 0;
    const verify_option_t options[] = {
        {'k', "KIND", &kind, 0}, {'n', "TIMES", &times, 1}, {'t', "MS", &compute_ms, 0}, {0}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    verify_that(2 <= ranks && kind < sizeof(kinds) / sizeof(kinds[0]),
                "KIND is 0 to 2, with 2 ranks at least");
    const double figure = kinds[kind].run();
    if (0 == rank) {
        printf("%s %.1f %s\n", kinds[kind].name, figure, kinds[kind].unit);
    }
    MPI_Finalize();
    return 0;
}
