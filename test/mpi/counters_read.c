/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file counters_read.c
 * Reads the performance variables of btl_dimmnet by MPI_T around known traffic between ranks 0 and 1,
 * and checks that they counted it. Fails when a variable is missing or did not count.
 *
 *   counters_read [--without-cma]
 */
#include "dn_config.h"

#include "counter.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_COUNT 1000
#define SMALL_BYTES 8
#define LARGE_COUNT 8
#define LARGE_BYTES (4 << 20)

enum { SENT, BYTES, LINES, WAITS, CMA, RING, MAPPED, HELP, RESENT, COUNTERS };

static const char *const names[COUNTERS] = {
    "btl_dimmnet_messages_sent", "btl_dimmnet_bytes_sent", "btl_dimmnet_lines_sent",
    "btl_dimmnet_credit_waits",  "btl_dimmnet_cma_bytes",  "btl_dimmnet_ring_bytes",
    "btl_dimmnet_mapped_bytes",  "btl_dimmnet_help_bytes", "btl_dimmnet_resent",
};

static int rank;
static counter_t counters[COUNTERS];

static void read_all(unsigned long long *values)
{
    for (int i = 0; i < COUNTERS; i++) {
        values[i] = counter_read(&counters[i]);
    }
}

/** Messages from rank 0 to rank 1; @p grown gets what every counter grew by, over all ranks. */
static void traffic(int count, size_t size, unsigned long long *grown)
{
    unsigned long long before[COUNTERS];
    unsigned long long after[COUNTERS];
    unsigned char *buffer = verify_guard_alloc(size, 0);

    MPI_Barrier(MPI_COMM_WORLD);
    read_all(before);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if (0 == rank) {
            verify_fill(buffer, size, (uint64_t) i);
            MPI_Send(buffer, (int) size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else if (1 == rank) {
            MPI_Recv(buffer, (int) size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify_expect(buffer, size, (uint64_t) i, "counted message");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    read_all(after);
    for (int i = 0; i < COUNTERS; i++) {
        verify_that(after[i] >= before[i], "a counter went backwards");
        after[i] -= before[i];
    }
    MPI_Allreduce(after, grown, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    verify_guard_free(buffer, size, 0, "counted message");
}

static void print(const char *what, const unsigned long long *grown)
{
    if (0 == rank) {
        printf("%s\n", what);
        for (int i = 0; i < COUNTERS; i++) {
            printf("  %-26s +%llu\n", names[i], grown[i]);
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    unsigned long long grown[COUNTERS];
    bool cma = 2 != argc || 0 != strcmp(argv[1], "--without-cma");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COUNTERS; i++) {
        counter_open(&counters[i], names[i]);
    }

    traffic(SMALL_COUNT, SMALL_BYTES, grown);
    print("1000 messages of 8 bytes:", grown);
    verify_that(grown[SENT] >= SMALL_COUNT, "small messages were sent but not counted");
    verify_that(grown[BYTES] >= SMALL_COUNT * SMALL_BYTES, "bytes of small messages were not counted");
    verify_that(grown[LINES] >= SMALL_COUNT, "lines of small messages were not counted");
    verify_that(grown[SENT] < 2 * SMALL_COUNT, "small messages were counted twice");
    verify_that(0 == grown[CMA] + grown[MAPPED] + grown[HELP], "small messages were counted as put or get");

    traffic(LARGE_COUNT, LARGE_BYTES, grown);
    print("8 messages of 4 MiB:", grown);
    unsigned long long moved = grown[BYTES] + grown[CMA] + grown[RING] + grown[MAPPED] + grown[HELP];
    verify_that(moved >= (unsigned long long) LARGE_COUNT * LARGE_BYTES,
                "bytes of large messages are missing");
    verify_that(cma || 0 == grown[CMA], "CMA was switched off and yet counted");
    verify_that(!cma || grown[CMA] + grown[MAPPED] > 0, "large messages went neither by CMA nor by mapping");

    for (int i = 0; i < COUNTERS; i++) {
        counter_close(&counters[i]);
    }
    MPI_Finalize();
    return 0;
}
