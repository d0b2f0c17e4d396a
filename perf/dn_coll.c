/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dn_bench_mpi.h"

/* Collectives under -c that are looked at after the timed ones. */
#define VERIFIED 20

static const dn_bench_tier_t tiers[] = {
    {512, 10000, 1000},
    {8192, 2000, 200},
    {262144, 200, 20},
    {SIZE_MAX, 40, 4},
};

static const dn_bench_options_t defaults = {
    .min_size = 8,
    .max_size = 1048576,
    .tiers = tiers,
    .num_tiers = 4,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
    .test = "allreduce",
};

/* The value of rank r in round n at place i: small, so that sums are exact. */
static double operand(int r, int n, size_t i)
{
    return (double) ((unsigned) r * 7 + (unsigned) n * 3 + (unsigned) i % 101);
}

static double sum_of(const dn_bench_run_t *run, int n, size_t i)
{
    double sum = 0;
    for (int r = 0; r < run->ranks; r++) {
        sum += operand(r, n, i);
    }
    return sum;
}

static void allreduce(dn_bench_run_t *run)
{
    MPI_Allreduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(dn_bench_run_t *run)
{
    MPI_Reduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void bcast(dn_bench_run_t *run)
{
    MPI_Bcast(0 == run->rank ? run->send_buf : run->recv_buf, run->out.count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void allgather(dn_bench_run_t *run)
{
    MPI_Allgather(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, run->out.count, MPI_DOUBLE,
                  MPI_COMM_WORLD);
}

static void alltoall(dn_bench_run_t *run)
{
    MPI_Alltoall(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, run->out.count, MPI_DOUBLE,
                 MPI_COMM_WORLD);
}

/* What is at place i of the result in round n; the alltoall of r's block for us holds operands of r, as the allgather's. */
static double sum_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    return sum_of(run, n, i);
}

static double root_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    (void) run;
    return operand(0, n, i);
}

static double block_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    const size_t count = (size_t) run->out.count;
    return operand((int) (i / count), n, i % count);
}

typedef struct {
    const char *name;
    void (*step)(dn_bench_run_t *run);
    double (*wanted)(const dn_bench_run_t *run, int n, size_t i);
    bool root_sends; /* and has nothing to receive */
    bool root_receives;
    bool blocks; /* one of each rank in the result */
} coll_t;

static const coll_t colls[] = {
    {"allreduce", allreduce, sum_wanted, false, false, false},
    {"reduce", reduce, sum_wanted, false, true, false},
    {"bcast", bcast, root_wanted, true, false, false},
    {"allgather", allgather, block_wanted, false, false, true},
    {"alltoall", alltoall, block_wanted, false, false, true},
};

#define NUM_COLLS ((int) (sizeof(colls) / sizeof(colls[0])))

static const coll_t *find(const char *name)
{
    for (int i = 0; i < NUM_COLLS; i++) {
        if (0 == strcmp(name, colls[i].name)) {
            return &colls[i];
        }
    }
    return NULL;
}

/* Buffers for blocks of all ranks, in each direction. */
static void describe(dn_bench_run_t *run)
{
    size_t len = run->size / sizeof(double) * sizeof(double);
    dn_bench_describe_bytes(run, len * (size_t) run->ranks);
    run->out.count = (int) (len / sizeof(double));
}

static void step(dn_bench_run_t *run)
{
    find(run->options.test)->step(run);
}

static int verify(dn_bench_run_t *run, const coll_t *coll, int n)
{
    const size_t count = (size_t) run->out.count;
    const size_t all = count * (size_t) run->ranks;
    double *out = (double *) run->send_buf;
    double *in = (double *) run->recv_buf;
    for (size_t i = 0; i < all; i++) {
        out[i] = operand(run->rank, n, i % count);
        in[i] = -1;
    }
    coll->step(run);
    if ((coll->root_receives && 0 != run->rank) || (coll->root_sends && 0 == run->rank)) {
        return 0;
    }
    for (size_t i = 0; i < (coll->blocks ? all : count); i++) {
        if (in[i] != coll->wanted(run, n, i)) {
            fprintf(stderr, "rank %d: wrong result of %s: size %zu, element %zu\n", run->rank, coll->name,
                    run->size, i);
            return 1;
        }
    }
    return 0;
}

static int end(dn_bench_run_t *run)
{
    int errors = 0;
    for (int n = 0; run->options.check && n < VERIFIED; n++) {
        errors += verify(run, find(run->options.test), n);
    }
    return errors;
}

static void header(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", NULL};
    printf("# [ %s of doubles ] [ ranks: %d ]\n", run->options.test, run->ranks);
    dn_bench_print_header(&run->options, titles);
}

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double us[] = {time->mean * 1e6, time->min * 1e6, time->max * 1e6};
    dn_bench_print_row(&run->options, run->size, us, 3, time->failed);
}

static const char *obstacle(const dn_bench_run_t *run)
{
    if (NULL == find(run->options.test)) {
        return "--test is allreduce, reduce, bcast, allgather or alltoall";
    }
    if (sizeof(double) > run->options.min_size) {
        return "the least size is 8, that of a double";
    }
    return run->options.max_size / sizeof(double) > INT_MAX ? "MPI counts in an int: use sizes below 16G"
                                                            : NULL;
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_coll", "Time of a collective (-t) on doubles: mean, least and most over the ranks.",
                  "tmixkcPBf", false},
        .title = "dimmnet MPI Collective Latency Test",
        .defaults = &defaults,
        .every_rank = true,
        .obstacle = obstacle,
        .describe = describe,
        .end = end,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
