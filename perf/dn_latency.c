/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_bench_mpi.h"

/* 8 B at 0.4 us a message make 16 ms: long against what a timer tick costs. */
static const dn_bench_tier_t tiers[] = {
    {8192, 20000, 1000},
    {262144, 1000, 50},
    {4194304, 100, 10},
    {SIZE_MAX, 20, 2},
};

static const dn_bench_options_t defaults = {
    .min_size = 0,
    .max_size = 4194304,
    .tiers = tiers,
    .num_tiers = 4,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
};

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_latency", "One-way time of blocking messages between two ranks.", "mixcuPBDT", false},
        .title = "dimmnet MPI Latency Test",
        .defaults = &defaults,
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .step = dn_bench_step_ping_pong,
        .header = dn_bench_header_latency,
        .report = dn_bench_report_latency,
    };
    return dn_bench_main(argc, argv, &program);
}
