/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_bench_mpi.h"

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
};

/* The matrix column by column: an element of each row, then the same one element further on. */
static MPI_Datatype xpose_type(int order)
{
    MPI_Datatype row;
    MPI_Datatype xpose;
    MPI_Type_vector(order, 1, order, MPI_FLOAT, &row);
    MPI_Type_create_hvector(order, 1, sizeof(float), row, &xpose);
    MPI_Type_free(&row);
    MPI_Type_commit(&xpose);
    return xpose;
}

/* Element i of column j leaves row i of the sender's matrix and enters row j of the receiver's. */
static void describe(dn_bench_run_t *run)
{
    size_t order = run->size;
    size_t row = order * sizeof(float);
    run->out = (dn_bench_end_t){
        dn_bench_layout_grid(order, sizeof(float), order, row, sizeof(float)),
        1,
        xpose_type((int) order),
    };
    run->in = (dn_bench_end_t){
        dn_bench_layout_grid(order, row, order, sizeof(float), sizeof(float)),
        (int) (order * order),
        MPI_FLOAT,
    };
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_transpose",
                  "One-way time of a matrix of floats, sent by columns as one derived datatype and "
                  "received contiguous: transposed.",
                  "nixcuPB", false},
        .title = "dimmnet MPI Transpose Test",
        .defaults = &defaults,
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .describe = describe,
        .step = dn_bench_step_ping_pong,
        .header = dn_bench_header_latency,
        .report = dn_bench_report_latency,
    };
    return dn_bench_main(argc, argv, &program);
}
