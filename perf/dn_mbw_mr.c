/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>

#include "dn_bench_mpi.h"

static void header(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"MB/s", "Messages/s", NULL};
    static const char *const without_rate[] = {"MB/s", NULL};
    printf("# [ pairs: %d ] [ window size: %d ]\n", run->pairs, run->options.window);
    dn_bench_print_header(&run->options, run->options.rate ? titles : without_rate);
}

/* All pairs together, from the mean time of the senders. */
static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double values[2] = {dn_bench_megabytes(run, time), (double) run->window * run->pairs / time->mean};
    dn_bench_print_row(&run->options, run->size, values, run->options.rate ? 2 : 1, time->failed);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_mbw_mr", "Bandwidth and message rate of pairs: rank r sends to rank r + pairs.",
                  "mixcuWMPBDpRT", false},
        .title = "dimmnet MPI Multiple Bandwidth / Message Rate Test",
        .defaults = &dn_bench_window_defaults,
        .flow = DN_BENCH_ONE_WAY,
        .step = dn_bench_step_window,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
