/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_start.c
 * What a job costs that does nothing: the time of rank 0 from before MPI_Init to after MPI_Finalize, that of MPI_Init alone,
 * and how long the processor worked for a rank of the mean.
 */
#include "dn_config.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "dn_bench.h"

static double cpu_ms(void)
{
    struct rusage used;

    (void) getrusage(RUSAGE_SELF, &used);
    return 1e3 * (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + 1e-3 * (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    /* MPI's rank is not known before MPI_Init; what mpirun tells is enough to have a usage error said once. */
    const char *told = getenv("OMPI_COMM_WORLD_RANK");
    const dn_bench_usage_t usage = {.name = "dn_start",
                                    .purpose =
                                        "Time from MPI_Init to MPI_Finalize of a program that does nothing.",
                                    .accepts = "Pf",
                                    .quiet = NULL != told && 0 != strcmp(told, "0")};
    dn_bench_options_t options = {.precision = 2};
    double used, sum = 0;
    int rank, ranks;

    dn_bench_parse_or_exit(argc, argv, &usage, &options);
    const uint64_t before = dn_bench_now_ns();
    MPI_Init(&argc, &argv);
    const uint64_t started = dn_bench_now_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    used = cpu_ms();
    MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    const uint64_t ended = dn_bench_now_ns();
    if (0 == rank) {
        const int decimals = options.precision;
        printf("# dimmnet start of an MPI program\n# [ ranks: %d ]\n", ranks);
        printf("%17s%20s%20s\n", "# Start to end(ms)", "MPI_Init(ms)", "CPU in Init(ms)");
        printf("%17.*f%20.*f%20.*f\n", decimals, (double) (ended - before) * 1e-6, decimals,
               (double) (started - before) * 1e-6, decimals, sum / ranks);
    }
    return 0;
}
