/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>

#include "dn_bench_mpi.h"

static const dn_bench_tier_t tiers[] = {{SIZE_MAX, 1000, 100}};

static const dn_bench_options_t defaults = {
    .tiers = tiers,
    .num_tiers = 1,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
};

static void step(dn_bench_run_t *run)
{
    (void) run;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void header(const dn_bench_run_t *run)
{
    (void) run;
    printf("# [ ranks: %d ]\n", run->ranks);
    printf("%17s%20s%20s%12s\n", "# Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations");
    fflush(stdout);
}

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    int decimals = run->options.precision;
    printf("%17.*f%20.*f%20.*f%12d\n", decimals, time->mean * 1e6, decimals, time->min * 1e6, decimals,
           time->max * 1e6, dn_bench_iterations(&run->options, 0));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_barrier", "Time of MPI_Barrier: mean, least and most over the ranks.", "ixkPBfT",
                  false},
        .title = "dimmnet MPI Barrier Latency Test",
        .defaults = &defaults,
        .every_rank = true,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
