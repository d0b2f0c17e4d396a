/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>
#include <string.h>

#include "dn_bench_mpi.h"

static const dn_bench_tier_t tiers[] = {{SIZE_MAX, 1000, 100}};

static const dn_bench_options_t defaults = {
    .tiers = tiers,
    .num_tiers = 1,
    .warmup = -1,
    .batches = 1,
    .window = 1,
    .precision = 2,
    .test = "barrier",
};

/* Of a persistent one. */
static MPI_Request request;

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ibarrier(void)
{
    MPI_Request nonblocking;
    MPI_Ibarrier(MPI_COMM_WORLD, &nonblocking);
    MPI_Wait(&nonblocking, MPI_STATUS_IGNORE);
}

static void pbarrier(void)
{
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void (*call)(void);

static void step(dn_bench_run_t *run)
{
    (void) run;
    call();
}

static bool is_persistent(const dn_bench_run_t *run)
{
    return 0 == strcmp("pbarrier", run->options.test);
}

static const char *obstacle(const dn_bench_run_t *run)
{
    const char *test = run->options.test;
    if (is_persistent(run)) {
        return DN_BENCH_HAS_INIT ? NULL : "this MPI has no persistent collectives";
    }
    return 0 == strcmp("barrier", test) || 0 == strcmp("ibarrier", test)
               ? NULL
               : "--test is barrier, ibarrier (nonblocking) or pbarrier (persistent)";
}

static void ready(dn_bench_run_t *run)
{
    if (is_persistent(run)) {
        /* The communicator is in use, as it is before any other form is timed. */
        MPI_Barrier(MPI_COMM_WORLD);
        (void) DN_BENCH_INIT(Barrier, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        call = pbarrier;
    } else {
        call = 'i' == run->options.test[0] ? ibarrier : barrier;
    }
}

static void done(dn_bench_run_t *run)
{
    if (is_persistent(run)) {
        MPI_Request_free(&request);
    }
}

static void header(const dn_bench_run_t *run)
{
    printf("# [ %s ] [ ranks: %d ]\n", run->options.test, run->ranks);
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
        .usage = {"dn_barrier", "Time of a barrier (-t): mean, least and most over the ranks.", "tixkPBfT",
                  false},
        .title = "dimmnet MPI Barrier Latency Test",
        .defaults = &defaults,
        .every_rank = true,
        .obstacle = obstacle,
        .ready = ready,
        .done = done,
        .step = step,
        .header = header,
        .report = report,
    };
    return dn_bench_main(argc, argv, &program);
}
