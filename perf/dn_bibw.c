/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_bench_mpi.h"

/* Receives first, so that no message of the other side comes unexpected. */
static void step(dn_bench_run_t *run)
{
    int n = dn_bench_irecv_window(run, run->requests);
    n += dn_bench_isend_window(run, run->requests + n);
    MPI_Waitall(n, run->requests, MPI_STATUSES_IGNORE);
    if (run->first) {
        dn_bench_recv_ack(run);
    } else {
        dn_bench_send_ack(run);
    }
}

/* Both directions together. */
static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double mb = 2 * dn_bench_megabytes(run, time);
    dn_bench_print_row(&run->options, run->size, &mb, 1, time->failed);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_bibw", "Bandwidth of windows of messages in both directions at once.", "mixcuWMPBDT",
                  false},
        .title = "dimmnet MPI Bi-Directional Bandwidth Test",
        .defaults = &dn_bench_window_defaults,
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .step = step,
        .header = dn_bench_header_bandwidth,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
