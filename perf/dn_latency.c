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

static void send_one(dn_bench_run_t *run)
{
    MPI_Send(run->send_buf, (int) run->size, MPI_CHAR, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD);
}

static void recv_one(dn_bench_run_t *run)
{
    MPI_Recv(run->recv_buf, (int) run->size, MPI_CHAR, run->peer, DN_BENCH_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void step(dn_bench_run_t *run)
{
    if (run->first) {
        send_one(run);
        recv_one(run);
    } else {
        recv_one(run);
        send_one(run);
    }
}

static void header(const dn_bench_run_t *run)
{
    static const char *const titles[] = {"Latency (us)", NULL};
    dn_bench_print_header(&run->options, titles);
}

/* One way: half of the time there and back. */
static void report(const dn_bench_run_t *run, const dn_bench_time_t *time)
{
    double us = time->mean * 1e6 / 2;
    dn_bench_print_row(&run->options, run->size, &us, 1, time->failed);
}

int main(int argc, char **argv)
{
    static const dn_bench_program_t program = {
        .usage = {"dn_latency", "One-way time of blocking messages between two ranks.", "mixcuPB", false},
        .title = "dimmnet MPI Latency Test",
        .defaults = {.min_size = 0,
                     .max_size = 4194304,
                     .tiers = tiers,
                     .num_tiers = 4,
                     .warmup = -1,
                     .batches = 1,
                     .window = 1,
                     .precision = 2},
        .flow = DN_BENCH_BOTH_WAYS,
        .max_pairs = 1,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
