/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Of the first so many ranks. */
static double sum_of(int ranks, int n, size_t i)
{
    double sum = 0;
    for (int r = 0; r < ranks; r++) {
        sum += operand(r, n, i);
    }
    return sum;
}

/* What is measured, and the blocks of the ranks in the calls that name each one's. */
static struct {
    const struct coll *coll;
    bool nonblocking;
    int *counts;
    int *displs;
} measured;

/* Each calls MPI once: the nonblocking form where there is a request to set. */

static void allreduce(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Allreduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Iallreduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       request);
    }
}

static void reduce(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Reduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    } else {
        MPI_Ireduce(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD,
                    request);
    }
}

static void scan(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Scan(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Iscan(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
    }
}

static void exscan(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Exscan(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Iexscan(run->send_buf, run->recv_buf, run->out.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                    request);
    }
}

static void reduce_scatter(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Reduce_scatter(run->send_buf, run->recv_buf, measured.counts, MPI_DOUBLE, MPI_SUM,
                           MPI_COMM_WORLD);
    } else {
        MPI_Ireduce_scatter(run->send_buf, run->recv_buf, measured.counts, MPI_DOUBLE, MPI_SUM,
                            MPI_COMM_WORLD, request);
    }
}

static void bcast(dn_bench_run_t *run, MPI_Request *request)
{
    char *buf = 0 == run->rank ? run->send_buf : run->recv_buf;
    if (NULL == request) {
        MPI_Bcast(buf, run->out.count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Ibcast(buf, run->out.count, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
    }
}

static void gather(dn_bench_run_t *run, MPI_Request *request)
{
    const int n = run->out.count;
    if (NULL == request) {
        MPI_Gather(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Igather(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
    }
}

static void gatherv(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Gatherv(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, measured.counts,
                    measured.displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Igatherv(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, measured.counts,
                     measured.displs, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
    }
}

static void scatter(dn_bench_run_t *run, MPI_Request *request)
{
    const int n = run->out.count;
    if (NULL == request) {
        MPI_Scatter(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Iscatter(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
    }
}

static void scatterv(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Scatterv(run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf,
                     run->out.count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Iscatterv(run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf,
                      run->out.count, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
    }
}

static void allgather(dn_bench_run_t *run, MPI_Request *request)
{
    const int n = run->out.count;
    if (NULL == request) {
        MPI_Allgather(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, MPI_COMM_WORLD);
    } else {
        MPI_Iallgather(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, MPI_COMM_WORLD, request);
    }
}

static void allgatherv(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Allgatherv(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, measured.counts,
                       measured.displs, MPI_DOUBLE, MPI_COMM_WORLD);
    } else {
        MPI_Iallgatherv(run->send_buf, run->out.count, MPI_DOUBLE, run->recv_buf, measured.counts,
                        measured.displs, MPI_DOUBLE, MPI_COMM_WORLD, request);
    }
}

static void alltoall(dn_bench_run_t *run, MPI_Request *request)
{
    const int n = run->out.count;
    if (NULL == request) {
        MPI_Alltoall(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, MPI_COMM_WORLD);
    } else {
        MPI_Ialltoall(run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, MPI_COMM_WORLD, request);
    }
}

static void alltoallv(dn_bench_run_t *run, MPI_Request *request)
{
    if (NULL == request) {
        MPI_Alltoallv(run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf,
                      measured.counts, measured.displs, MPI_DOUBLE, MPI_COMM_WORLD);
    } else {
        MPI_Ialltoallv(run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf,
                       measured.counts, measured.displs, MPI_DOUBLE, MPI_COMM_WORLD, request);
    }
}

/* What is at place i of the result in round n; the alltoall of r's block for us holds operands of r, as the allgather's. */
static double sum_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    return sum_of(run->ranks, n, i);
}

static double scan_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    return sum_of(run->rank + 1, n, i);
}

static double exscan_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    return sum_of(run->rank, n, i);
}

static double piece_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    return sum_of(run->ranks, n, (size_t) measured.displs[run->rank] + i);
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

/* Who has a result, and of how much. */
typedef enum {
    ALL_A_BLOCK,
    ALL_A_PIECE, /* the block is divided among the ranks, as MPI_Reduce_scatter does */
    ALL_ALL_BLOCKS,
    ROOT_A_BLOCK,
    ROOT_ALL_BLOCKS,
    OTHERS_A_BLOCK,
} result_t;

typedef struct coll {
    const char *name;
    void (*call)(dn_bench_run_t *run, MPI_Request *request);
    double (*wanted)(const dn_bench_run_t *run, int n, size_t i);
    result_t result;
} coll_t;

static const coll_t colls[] = {
    {"allreduce", allreduce, sum_wanted, ALL_A_BLOCK},
    {"reduce", reduce, sum_wanted, ROOT_A_BLOCK},
    {"scan", scan, scan_wanted, ALL_A_BLOCK},
    {"exscan", exscan, exscan_wanted, OTHERS_A_BLOCK},
    {"reduce_scatter", reduce_scatter, piece_wanted, ALL_A_PIECE},
    {"bcast", bcast, root_wanted, OTHERS_A_BLOCK},
    {"gather", gather, block_wanted, ROOT_ALL_BLOCKS},
    {"gatherv", gatherv, block_wanted, ROOT_ALL_BLOCKS},
    {"scatter", scatter, root_wanted, ALL_A_BLOCK},
    {"scatterv", scatterv, root_wanted, ALL_A_BLOCK},
    {"allgather", allgather, block_wanted, ALL_ALL_BLOCKS},
    {"allgatherv", allgatherv, block_wanted, ALL_ALL_BLOCKS},
    {"alltoall", alltoall, block_wanted, ALL_ALL_BLOCKS},
    {"alltoallv", alltoallv, block_wanted, ALL_ALL_BLOCKS},
};

#define NUM_COLLS ((int) (sizeof(colls) / sizeof(colls[0])))

/* Of a collective's name, or that with an i before it; NULL: there is none of that name. */
static const coll_t *find(const char *name, bool *nonblocking_p)
{
    for (int i = 0; i < NUM_COLLS; i++) {
        *nonblocking_p = 'i' == name[0] && 0 == strcmp(name + 1, colls[i].name);
        if (*nonblocking_p || 0 == strcmp(name, colls[i].name)) {
            return &colls[i];
        }
    }
    return NULL;
}

static void ready(dn_bench_run_t *run)
{
    measured.coll = find(run->options.test, &measured.nonblocking);
    measured.counts = dn_bench_alloc(sizeof(int) * (size_t) run->ranks);
    measured.displs = dn_bench_alloc(sizeof(int) * (size_t) run->ranks);
}

static void done(dn_bench_run_t *run)
{
    (void) run;
    free(measured.counts);
    free(measured.displs);
}

/* Buffers for blocks of all ranks, in each direction. */
static void describe(dn_bench_run_t *run)
{
    const int count = (int) (run->size / sizeof(double));
    const bool divided = ALL_A_PIECE == measured.coll->result;
    int at = 0;
    dn_bench_describe_bytes(run, (size_t) count * sizeof(double) * (size_t) run->ranks);
    run->out.count = count;
    for (int r = 0; r < run->ranks; r++) {
        measured.counts[r] = divided ? count / run->ranks + (r < count % run->ranks) : count;
        measured.displs[r] = at;
        at += measured.counts[r];
    }
}

static void step(dn_bench_run_t *run)
{
    if (measured.nonblocking) {
        MPI_Request request;
        measured.coll->call(run, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        measured.coll->call(run, NULL);
    }
}

/* Elements of the result on this rank. */
static size_t result_count(const dn_bench_run_t *run)
{
    const size_t count = (size_t) run->out.count;
    switch (measured.coll->result) {
    case ALL_A_PIECE:
        return (size_t) measured.counts[run->rank];
    case ALL_ALL_BLOCKS:
        return count * (size_t) run->ranks;
    case ROOT_A_BLOCK:
        return 0 == run->rank ? count : 0;
    case ROOT_ALL_BLOCKS:
        return 0 == run->rank ? count * (size_t) run->ranks : 0;
    case OTHERS_A_BLOCK:
        return 0 == run->rank ? 0 : count;
    default:
        return count;
    }
}

static int verify(dn_bench_run_t *run, int n)
{
    const size_t count = (size_t) run->out.count;
    double *out = (double *) run->send_buf;
    double *in = (double *) run->recv_buf;
    for (size_t i = 0; i < count * (size_t) run->ranks; i++) {
        out[i] = operand(run->rank, n, i % count);
        in[i] = -1;
    }
    step(run);
    for (size_t i = 0; i < result_count(run); i++) {
        if (in[i] != measured.coll->wanted(run, n, i)) {
            fprintf(stderr, "rank %d: wrong result of %s: size %zu, element %zu\n", run->rank,
                    run->options.test, run->size, i);
            return 1;
        }
    }
    return 0;
}

static int end(dn_bench_run_t *run)
{
    int errors = 0;
    for (int n = 0; run->options.check && n < VERIFIED; n++) {
        errors += verify(run, n);
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
    bool nonblocking;
    if (NULL == find(run->options.test, &nonblocking)) {
        return "--test is allreduce, reduce, scan, exscan, reduce_scatter, bcast, gather, scatter, allgather "
               "or alltoall, "
               "with v for "
               "those that MPI has so, or with i before it";
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
                  "tmixkcPBfT", false},
        .title = "dimmnet MPI Collective Latency Test",
        .defaults = &defaults,
        .every_rank = true,
        .obstacle = obstacle,
        .ready = ready,
        .done = done,
        .describe = describe,
        .end = end,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
