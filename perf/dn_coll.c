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

/* Neighbours of a rank: the ranks are a ring. */
enum { NEIGHBOURS = 2 };

/* How MPI is called. */
typedef enum {
    BLOCKING,
    NONBLOCKING,
    PERSISTENT, /* the call makes a request, which is started for each iteration */
} form_t;

/* What is measured, and the blocks of the ranks, or of the neighbours, in the calls that name each one's. */
static struct {
    const struct coll *coll;
    form_t form;
    MPI_Comm comm;
    MPI_Request request; /* of a persistent one */
    int *counts;
    int *displs;
    int *offsets;     /* in bytes */
    MPI_Aint *places; /* likewise */
    MPI_Datatype *types;
} measured;

/* A function that calls MPI once, in any form: its name there in small letters and with a great one, and the arguments of all forms. */
#define CALL(name, Name, ...)                                                               \
    static void name(dn_bench_run_t *run, form_t form, MPI_Request *request)                \
    {                                                                                       \
        const int n = run->out.count;                                                       \
        (void) n;                                                                           \
        if (BLOCKING == form) {                                                             \
            MPI_##Name(__VA_ARGS__, measured.comm);                                         \
        } else if (NONBLOCKING == form) {                                                   \
            MPI_I##name(__VA_ARGS__, measured.comm, request);                               \
        } else {                                                                            \
            (void) DN_BENCH_INIT(Name, __VA_ARGS__, measured.comm, MPI_INFO_NULL, request); \
        }                                                                                   \
    }

CALL(allreduce, Allreduce, run->send_buf, run->recv_buf, n, MPI_DOUBLE, MPI_SUM)
CALL(reduce, Reduce, run->send_buf, run->recv_buf, n, MPI_DOUBLE, MPI_SUM, 0)
CALL(scan, Scan, run->send_buf, run->recv_buf, n, MPI_DOUBLE, MPI_SUM)
CALL(exscan, Exscan, run->send_buf, run->recv_buf, n, MPI_DOUBLE, MPI_SUM)
CALL(reduce_scatter, Reduce_scatter, run->send_buf, run->recv_buf, measured.counts, MPI_DOUBLE, MPI_SUM)
CALL(reduce_scatter_block, Reduce_scatter_block, run->send_buf, run->recv_buf, n, MPI_DOUBLE, MPI_SUM)
CALL(bcast, Bcast, 0 == run->rank ? run->send_buf : run->recv_buf, n, MPI_DOUBLE, 0)
CALL(gather, Gather, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0)
CALL(gatherv, Gatherv, run->send_buf, n, MPI_DOUBLE, run->recv_buf, measured.counts, measured.displs,
     MPI_DOUBLE, 0)
CALL(scatter, Scatter, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE, 0)
CALL(scatterv, Scatterv, run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf, n,
     MPI_DOUBLE, 0)
CALL(allgather, Allgather, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE)
CALL(allgatherv, Allgatherv, run->send_buf, n, MPI_DOUBLE, run->recv_buf, measured.counts, measured.displs,
     MPI_DOUBLE)
CALL(alltoall, Alltoall, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE)
CALL(alltoallv, Alltoallv, run->send_buf, measured.counts, measured.displs, MPI_DOUBLE, run->recv_buf,
     measured.counts, measured.displs, MPI_DOUBLE)
CALL(alltoallw, Alltoallw, run->send_buf, measured.counts, measured.offsets, measured.types, run->recv_buf,
     measured.counts, measured.offsets, measured.types)
CALL(neighbor_allgather, Neighbor_allgather, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE)
CALL(neighbor_allgatherv, Neighbor_allgatherv, run->send_buf, n, MPI_DOUBLE, run->recv_buf, measured.counts,
     measured.displs, MPI_DOUBLE)
CALL(neighbor_alltoall, Neighbor_alltoall, run->send_buf, n, MPI_DOUBLE, run->recv_buf, n, MPI_DOUBLE)
CALL(neighbor_alltoallv, Neighbor_alltoallv, run->send_buf, measured.counts, measured.displs, MPI_DOUBLE,
     run->recv_buf, measured.counts, measured.displs, MPI_DOUBLE)
CALL(neighbor_alltoallw, Neighbor_alltoallw, run->send_buf, measured.counts, measured.places, measured.types,
     run->recv_buf, measured.counts, measured.places, measured.types)

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

static double own_block_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    /* All blocks of a rank are alike. */
    return sum_of(run->ranks, n, i);
}

static double neighbour_wanted(const dn_bench_run_t *run, int n, size_t i)
{
    const size_t count = (size_t) run->out.count;
    const int left = i < count;
    return operand((run->rank + (left ? run->ranks - 1 : 1)) % run->ranks, n, i % count);
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
    ALL_NEIGHBOURS_BLOCKS,
} result_t;

typedef struct coll {
    const char *name;
    void (*call)(dn_bench_run_t *run, form_t form, MPI_Request *request);
    double (*wanted)(const dn_bench_run_t *run, int n, size_t i);
    result_t result;
} coll_t;

static const coll_t colls[] = {
    {"allreduce", allreduce, sum_wanted, ALL_A_BLOCK},
    {"reduce", reduce, sum_wanted, ROOT_A_BLOCK},
    {"scan", scan, scan_wanted, ALL_A_BLOCK},
    {"exscan", exscan, exscan_wanted, OTHERS_A_BLOCK},
    {"reduce_scatter", reduce_scatter, piece_wanted, ALL_A_PIECE},
    {"reduce_scatter_block", reduce_scatter_block, own_block_wanted, ALL_A_BLOCK},
    {"bcast", bcast, root_wanted, OTHERS_A_BLOCK},
    {"gather", gather, block_wanted, ROOT_ALL_BLOCKS},
    {"gatherv", gatherv, block_wanted, ROOT_ALL_BLOCKS},
    {"scatter", scatter, root_wanted, ALL_A_BLOCK},
    {"scatterv", scatterv, root_wanted, ALL_A_BLOCK},
    {"allgather", allgather, block_wanted, ALL_ALL_BLOCKS},
    {"allgatherv", allgatherv, block_wanted, ALL_ALL_BLOCKS},
    {"alltoall", alltoall, block_wanted, ALL_ALL_BLOCKS},
    {"alltoallv", alltoallv, block_wanted, ALL_ALL_BLOCKS},
    {"alltoallw", alltoallw, block_wanted, ALL_ALL_BLOCKS},
    {"neighbor_allgather", neighbor_allgather, neighbour_wanted, ALL_NEIGHBOURS_BLOCKS},
    {"neighbor_allgatherv", neighbor_allgatherv, neighbour_wanted, ALL_NEIGHBOURS_BLOCKS},
    {"neighbor_alltoall", neighbor_alltoall, neighbour_wanted, ALL_NEIGHBOURS_BLOCKS},
    {"neighbor_alltoallv", neighbor_alltoallv, neighbour_wanted, ALL_NEIGHBOURS_BLOCKS},
    {"neighbor_alltoallw", neighbor_alltoallw, neighbour_wanted, ALL_NEIGHBOURS_BLOCKS},
};

#define NUM_COLLS ((int) (sizeof(colls) / sizeof(colls[0])))

/* Of a collective's name, or that with an i or a p before it; NULL: there is none of that name. */
static const coll_t *find(const char *name, form_t *form_p)
{
    for (int i = 0; i < NUM_COLLS; i++) {
        *form_p = BLOCKING;
        if (0 == strcmp(name, colls[i].name)) {
            return &colls[i];
        }
        *form_p = 'i' == name[0] ? NONBLOCKING : PERSISTENT;
        if (('i' == name[0] || 'p' == name[0]) && 0 == strcmp(name + 1, colls[i].name)) {
            return &colls[i];
        }
    }
    return NULL;
}

/* Blocks that a rank has to do with, at most. */
static int most_blocks(const dn_bench_run_t *run)
{
    return run->ranks < NEIGHBOURS ? NEIGHBOURS : run->ranks;
}

static void ready(dn_bench_run_t *run)
{
    const size_t blocks = (size_t) most_blocks(run);
    const int round = 1;
    measured.coll = find(run->options.test, &measured.form);
    measured.counts = dn_bench_alloc(sizeof(measured.counts[0]) * blocks);
    measured.displs = dn_bench_alloc(sizeof(measured.displs[0]) * blocks);
    measured.offsets = dn_bench_alloc(sizeof(measured.offsets[0]) * blocks);
    measured.places = dn_bench_alloc(sizeof(measured.places[0]) * blocks);
    measured.types = dn_bench_alloc(sizeof(measured.types[0]) * blocks);
    measured.comm = MPI_COMM_WORLD;
    if (ALL_NEIGHBOURS_BLOCKS == measured.coll->result) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &run->ranks, &round, 0, &measured.comm);
    }
}

static void done(dn_bench_run_t *run)
{
    (void) run;
    if (MPI_COMM_WORLD != measured.comm) {
        MPI_Comm_free(&measured.comm);
    }
    free(measured.counts);
    free(measured.displs);
    free(measured.offsets);
    free(measured.places);
    free(measured.types);
}

/* Buffers for blocks of all ranks, in each direction. */
static void describe(dn_bench_run_t *run)
{
    const int count = (int) (run->size / sizeof(double));
    const bool divided = ALL_A_PIECE == measured.coll->result;
    int at = 0;
    dn_bench_describe_bytes(run, (size_t) count * sizeof(double) * (size_t) most_blocks(run));
    run->out.count = count;
    for (int r = 0; r < most_blocks(run); r++) {
        measured.counts[r] = divided ? count / run->ranks + (r < count % run->ranks) : count;
        measured.displs[r] = at;
        measured.offsets[r] = at * (int) sizeof(double);
        measured.places[r] = at * (MPI_Aint) sizeof(double);
        measured.types[r] = MPI_DOUBLE;
        at += measured.counts[r];
    }
}

static void begin(dn_bench_run_t *run)
{
    if (PERSISTENT == measured.form) {
        /* The communicator is in use, as it is before any other form is timed. */
        MPI_Barrier(measured.comm);
        measured.coll->call(run, PERSISTENT, &measured.request);
    }
}

static void step(dn_bench_run_t *run)
{
    if (BLOCKING == measured.form) {
        measured.coll->call(run, BLOCKING, NULL);
    } else if (NONBLOCKING == measured.form) {
        MPI_Request request;
        measured.coll->call(run, NONBLOCKING, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Start(&measured.request);
        MPI_Wait(&measured.request, MPI_STATUS_IGNORE);
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
    case ALL_NEIGHBOURS_BLOCKS:
        return count * NEIGHBOURS;
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
    for (size_t i = 0; i < count * (size_t) most_blocks(run); i++) {
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
    if (PERSISTENT == measured.form) {
        MPI_Request_free(&measured.request);
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
    form_t form;
    if (NULL == find(run->options.test, &form)) {
        return "--test is allreduce, reduce, scan, exscan, reduce_scatter, reduce_scatter_block, bcast, "
               "gather, scatter, "
               "allgather, alltoall, neighbor_allgather or neighbor_alltoall, with v or w for those that MPI "
               "has so; "
               "with i before it nonblocking, with p persistent";
    }
    if (PERSISTENT == form && !DN_BENCH_HAS_INIT) {
        return "this MPI has no persistent collectives";
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
        .begin = begin,
        .end = end,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
