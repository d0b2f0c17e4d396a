/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_mix.c
 * Collective operations of many sizes, with results computed here too, on the world and on parts of it.
 *
 *   collectives_mix [-s SEED] [-n ROUNDS] [-m LARGEST]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t seed = 1;
static int rounds = 30;
static size_t largest = 300000;
static unsigned long long operations;

static int rank_in(MPI_Comm comm)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    return rank;
}

static int ranks_in(MPI_Comm comm)
{
    int ranks;

    MPI_Comm_size(comm, &ranks);
    return ranks;
}

/** No rank leaves a barrier before the last has come: each in turn comes late. */
static void barrier(MPI_Comm comm, verify_rng_t *rng)
{
    int late = (int) verify_below(rng, (uint64_t) ranks_in(comm));
    double last;

    if (rank_in(comm) == late) {
        verify_sleep_ms(3);
    }
    double entered = verify_seconds(); /* one clock for all processes of a host */
    MPI_Barrier(comm);
    double left = verify_seconds();
    MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
    verify_that(left >= last, "a rank left a barrier before another had entered it");
    operations++;
}

static void bcast(MPI_Comm comm, verify_rng_t *rng)
{
    int root = (int) verify_below(rng, (uint64_t) ranks_in(comm));
    size_t size = verify_size(rng, largest);
    uint64_t id = verify_random(rng);
    unsigned char *buffer = verify_guard_alloc(size, 0);

    verify_fill(buffer, size, rank_in(comm) == root ? id : ~id);
    MPI_Bcast(buffer, (int) size, MPI_BYTE, root, comm);
    verify_expect(buffer, size, id, "broadcast");
    verify_guard_free(buffer, size, 0, "broadcast");
    operations++;
}

/** Integers, so that the sum is exact whatever the order. */
static void reduce(MPI_Comm comm, verify_rng_t *rng, bool all)
{
    size_t count = verify_size(rng, largest / 8);
    int root = (int) verify_below(rng, (uint64_t) ranks_in(comm));
    uint64_t id = verify_random(rng);
    uint64_t *in = malloc((count + 1) * sizeof(*in));
    uint64_t *out = verify_guard_alloc(count * sizeof(*out), 0);
    int ranks = ranks_in(comm);

    verify_that(NULL != in, "no memory for a reduction");
    for (size_t i = 0; i < count; i++) {
        in[i] = verify_key(id, (uint64_t) rank_in(comm), i, 0);
    }
    if (all) {
        MPI_Allreduce(in, out, (int) count, MPI_UINT64_T, MPI_SUM, comm);
    } else {
        MPI_Reduce(in, out, (int) count, MPI_UINT64_T, MPI_SUM, root, comm);
    }
    for (size_t i = 0; i < count && (all || rank_in(comm) == root); i++) {
        uint64_t sum = 0;
        for (int r = 0; r < ranks; r++) {
            sum += verify_key(id, (uint64_t) r, i, 0);
        }
        verify_that(sum == out[i], all ? "allreduce: a sum is wrong" : "reduce: a sum is wrong");
    }
    free(in);
    verify_guard_free(out, count * sizeof(*out), 0, "reduction");
    operations++;
}

/** Every pair has a size of its own, some of them zero; alltoallv, in one buffer with gaps. */
static void alltoallv(MPI_Comm comm, verify_rng_t *rng)
{
    int ranks = ranks_in(comm);
    int rank = rank_in(comm);
    uint64_t id = verify_random(rng);
    size_t limit = largest / (size_t) ranks;
    int *numbers = calloc(4 * (size_t) ranks, sizeof(*numbers));
    int *out_count = numbers;
    int *out_start = numbers + ranks;
    int *in_count = numbers + 2 * ranks;
    int *in_start = numbers + 3 * ranks;
    int out_size = 0;
    int in_size = 0;

    verify_that(NULL != numbers, "no memory for the counts of an alltoallv");
    for (int i = 0; i < ranks; i++) {
        verify_rng_t to = {.state = verify_key(id, (uint64_t) rank, (uint64_t) i, 1)};
        verify_rng_t from = {.state = verify_key(id, (uint64_t) i, (uint64_t) rank, 1)};
        out_count[i] = (int) verify_size(&to, limit);
        in_count[i] = (int) verify_size(&from, limit);
        out_start[i] = out_size;
        in_start[i] = in_size;
        out_size += out_count[i] + 3;
        in_size += in_count[i] + 5;
    }
    unsigned char *out = verify_guard_alloc((size_t) out_size, 0);
    unsigned char *in = verify_guard_alloc((size_t) in_size, 0);
    memset(in, 0x77, (size_t) in_size);
    for (int i = 0; i < ranks; i++) {
        verify_fill(out + out_start[i], (size_t) out_count[i],
                    verify_key(id, (uint64_t) rank, (uint64_t) i, 2));
    }
    MPI_Alltoallv(out, out_count, out_start, MPI_BYTE, in, in_count, in_start, MPI_BYTE, comm);
    for (int i = 0; i < ranks; i++) {
        const unsigned char *part = in + in_start[i];
        verify_expect(part, (size_t) in_count[i], verify_key(id, (uint64_t) i, (uint64_t) rank, 2),
                      "alltoallv");
        for (int gap = 0; gap < 5; gap++) {
            verify_that(0x77 == part[in_count[i] + gap], "alltoallv: a gap was overwritten");
        }
    }
    verify_guard_free(out, (size_t) out_size, 0, "alltoallv");
    verify_guard_free(in, (size_t) in_size, 0, "alltoallv");
    free(numbers);
    operations++;
}

static void allgather(MPI_Comm comm, verify_rng_t *rng)
{
    int ranks = ranks_in(comm);
    size_t size = verify_size(rng, largest / (size_t) ranks);
    uint64_t id = verify_random(rng);
    unsigned char *out = verify_guard_alloc(size, 0);
    unsigned char *in = verify_guard_alloc(size * (size_t) ranks, 0);

    verify_fill(out, size, id + (uint64_t) rank_in(comm));
    MPI_Allgather(out, (int) size, MPI_BYTE, in, (int) size, MPI_BYTE, comm);
    for (int i = 0; i < ranks; i++) {
        verify_expect(in + size * (size_t) i, size, id + (uint64_t) i, "allgather");
    }
    verify_guard_free(out, size, 0, "allgather");
    verify_guard_free(in, size * (size_t) ranks, 0, "allgather");
    operations++;
}

/** Scatter blocks from a root, gather them at another. */
static void scatter_gather(MPI_Comm comm, verify_rng_t *rng)
{
    int ranks = ranks_in(comm);
    int from = (int) verify_below(rng, (uint64_t) ranks);
    int to = (int) verify_below(rng, (uint64_t) ranks);
    size_t size = verify_size(rng, largest / (size_t) ranks);
    uint64_t id = verify_random(rng);
    unsigned char *all = verify_guard_alloc(size * (size_t) ranks, 0);
    unsigned char *part = verify_guard_alloc(size, 0);

    verify_fill(all, size * (size_t) ranks, rank_in(comm) == from ? id : ~id);
    MPI_Scatter(all, (int) size, MPI_BYTE, part, (int) size, MPI_BYTE, from, comm);
    for (size_t i = 0; i < size; i++) {
        verify_that(verify_byte(id, size * (size_t) rank_in(comm) + i) == part[i], "scatter: wrong data");
    }
    memset(all, 0, size * (size_t) ranks);
    MPI_Gather(part, (int) size, MPI_BYTE, all, (int) size, MPI_BYTE, to, comm);
    if (rank_in(comm) == to) {
        verify_expect(all, size * (size_t) ranks, id, "gather");
    }
    verify_guard_free(all, size * (size_t) ranks, 0, "scatter and gather");
    verify_guard_free(part, size, 0, "scatter and gather");
    operations += 2;
}

/** Three nonblocking collectives in flight at once. */
static void nonblocking(MPI_Comm comm, verify_rng_t *rng)
{
    size_t size = verify_size(rng, largest);
    uint64_t id = verify_random(rng);
    unsigned char *buffer = verify_guard_alloc(size, 0);
    int64_t one = 1;
    int64_t sum = 0;
    MPI_Request requests[3];

    verify_fill(buffer, size, 0 == rank_in(comm) ? id : ~id);
    MPI_Ibcast(buffer, (int) size, MPI_BYTE, 0, comm, &requests[0]);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    verify_expect(buffer, size, id, "nonblocking broadcast");
    verify_that(ranks_in(comm) == sum, "nonblocking allreduce: the sum is wrong");
    verify_guard_free(buffer, size, 0, "nonblocking broadcast");
    operations += 3;
}

static void run(MPI_Comm comm, uint64_t salt)
{
    verify_rng_t rng = {.state = verify_key(seed, salt, 0, 0)};

    for (int round = 0; round < rounds; round++) {
        barrier(comm, &rng);
        bcast(comm, &rng);
        reduce(comm, &rng, true);
        reduce(comm, &rng, false);
        alltoallv(comm, &rng);
        allgather(comm, &rng);
        scatter_gather(comm, &rng);
        nonblocking(comm, &rng);
    }
}

int main(int argc, char **argv)
{
    unsigned long long total = 0;
    MPI_Comm half;
    int option;

    MPI_Init(&argc, &argv);
    while (-1 != (option = getopt(argc, argv, "s:n:m:"))) {
        switch (option) {
        case 's':
            seed = verify_number(optarg, 0, "-s");
            break;
        case 'n':
            rounds = (int) verify_number(optarg, 1, "-n");
            break;
        case 'm':
            largest = verify_number(optarg, 8, "-m");
            break;
        default:
            fprintf(stderr, "usage: collectives_mix [-s SEED] [-n ROUNDS] [-m LARGEST]\n");
            exit(2);
        }
    }
    int rank = rank_in(MPI_COMM_WORLD);
    run(MPI_COMM_WORLD, 0);
    /* Odd and even ranks at the same time, in reversed order of ranks. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    run(half, 1 + (uint64_t) (rank % 2));
    MPI_Comm_free(&half);
    MPI_Reduce(&operations, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("collectives_mix: %d ranks, %llu operations verified\n", ranks_in(MPI_COMM_WORLD), total);
    }
    MPI_Finalize();
    return 0;
}
