/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_bench_mpi.h"

static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double mb = dn_bench_megabytes(run, time);
    dn_bench_print_row(&run->options, run->size, &mb, 1, time->failed);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_bw", "Bandwidth of windows of messages from rank 0 to rank 1.", "mixcuWMPBDT", false},
        .title = "dimmnet MPI Bandwidth Test",
        .defaults = &dn_bench_window_defaults,
        .flow = DN_BENCH_ONE_WAY,
        .max_pairs = 1,
        .step = dn_bench_step_window,
        .header = dn_bench_header_bandwidth,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
