/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_bench_mpi.h"
#include "dn_bench_window.h"

static const dn_bench_tier_t tiers[] = {
    {128, 1000, 50},
    {1024, 40, 4},
    {SIZE_MAX, 20, 1},
};

static const dn_bench_options_t defaults = {
    .min_size = 100,
    .max_size = 100,
    .tiers = tiers,
    .num_tiers = 3,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
    .first_column = "Order",
    .test = "send",
    .win_kind = "allocate",
    .win_sync = "flush",
};

/* Sent are floats, as in the paper; got are doubles. */
static struct {
    bool gets;
    MPI_Datatype type;
    size_t size;
    dn_bench_win_t win;
} transpose;

/* The matrix column by column: an element of each row, then the same one element further on. */
static MPI_Datatype xpose_type(int order)
{
    MPI_Datatype row;
    MPI_Datatype xpose;
    MPI_Type_vector(order, 1, order, transpose.type, &row);
    MPI_Type_create_hvector(order, 1, (MPI_Aint) transpose.size, row, &xpose);
    MPI_Type_free(&row);
    MPI_Type_commit(&xpose);
    return xpose;
}

static const char *obstacle(const dn_bench_run_t *run)
{
    if (0 != strcmp(run->options.test, "send") && 0 != strcmp(run->options.test, "get")) {
        return "--test is send or get";
    }
    return dn_bench_win_obstacle(&run->options);
}

static void ready(dn_bench_run_t *run)
{
    transpose.gets = 0 == strcmp(run->options.test, "get");
    transpose.type = transpose.gets ? MPI_DOUBLE : MPI_FLOAT;
    transpose.size = transpose.gets ? sizeof(double) : sizeof(float);
    if (transpose.gets) {
        /* One way: from the window of the second rank. */
        run->sends = !run->first;
        run->receives = run->first;
    }
}

/* Element i of column j leaves row i of the sender's matrix and enters row j of the receiver's. */
static void describe(dn_bench_run_t *run)
{
    size_t order = run->size;
    size_t row = order * transpose.size;
    run->out = (dn_bench_end_t){
        dn_bench_layout_grid(order, transpose.size, order, row, transpose.size),
        1,
        xpose_type((int) order),
    };
    run->in = (dn_bench_end_t){
        dn_bench_layout_grid(order, row, order, transpose.size, transpose.size),
        (int) (order * order),
        transpose.type,
    };
}

static void begin(dn_bench_run_t *run)
{
    if (transpose.gets) {
        dn_bench_win_open(&transpose.win, &run->options, MPI_COMM_WORLD,
                          run->size * run->size * transpose.size + DN_BENCH_LINE, &run->peer, !run->first,
                          &run->peer, run->first);
    }
    if (transpose.gets && !run->first) {
        free(run->send_buf);
        run->send_buf = transpose.win.memory;
    }
}

static int end(dn_bench_run_t *run)
{
    if (transpose.gets && !run->first) {
        run->send_buf = NULL;
    }
    if (transpose.gets) {
        dn_bench_win_close(&transpose.win);
    }
    return 0;
}

static void step(dn_bench_run_t *run)
{
    if (!transpose.gets) {
        dn_bench_step_ping_pong(run);
        return;
    }
    if (run->options.check) {
        /* The second rank has filled its memory by stores. */
        dn_bench_win_sync(&transpose.win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    dn_bench_win_begin(&transpose.win);
    if (run->first) {
        MPI_Get(run->recv_buf, run->in.count, run->in.type, run->peer, transpose.win.base[run->peer],
                run->out.count, run->out.type, transpose.win.win);
    }
    dn_bench_win_end(&transpose.win);
    if (run->options.check) {
        /* No new pattern is written before the old one has been got. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    if (transpose.gets) {
        const double us = time->mean * 1e6;
        dn_bench_print_row(&run->options, run->size, &us, 1, time->failed);
    } else {
        dn_bench_report_latency(run, time);
    }
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_transpose",
                  "One-way time of a matrix, sent by columns as one derived datatype and received "
                  "contiguous: transposed; by a message of floats or by one MPI_Get of doubles (-t).",
                  "tnwsixcuPBT", false},
        .title = "dimmnet MPI Transpose Test",
        .defaults = &defaults,
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .obstacle = obstacle,
        .ready = ready,
        .describe = describe,
        .begin = begin,
        .end = end,
        .step = step,
        .header = dn_bench_header_latency,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
