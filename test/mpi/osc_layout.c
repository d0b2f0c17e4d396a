/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_layout.c
 * Accumulates on private memory of the next rank, by datatypes of thousands and of millions of irregular places: every byte is right.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Places of datatypes: the target gets to know the first one, and of the others the blocks. */
static const int places[] = {100000, 140000, 9000000};
#define MOST 9000000

/** Bytes of the window for each place: it is one of the first two. */
#define STEP 3

static int place_of(int i)
{
    return STEP * i + (int) ((uint32_t) i * 2654435761u >> 31);
}

static MPI_Datatype layout(int n)
{
    int *at = malloc((size_t) n * sizeof(*at));
    MPI_Datatype type;

    verify_that(NULL != at, "no memory for places");
    for (int i = 0; i < n; i++) {
        at[i] = place_of(i);
    }
    MPI_Type_create_indexed_block(n, 1, at, MPI_UINT8_T, &type);
    MPI_Type_commit(&type);
    free(at);
    return type;
}

/** Add to the first places of the next rank, and look at those of this one. */
static void accumulate(const uint8_t *bytes, uint8_t *memory, int n, int target, MPI_Win win)
{
    MPI_Datatype type = layout(n);

    memset(memory, 0, (size_t) STEP * MOST);
    MPI_Win_fence(0, win);
    MPI_Accumulate(bytes, n, MPI_UINT8_T, target, 0, 1, type, MPI_SUM, win);
    MPI_Type_free(&type);
    MPI_Win_fence(0, win);
    for (int i = 0; i < n; i++) {
        const int in = place_of(i);

        for (int at = STEP * i; at < STEP * (i + 1); at++) {
            verify_that(memory[at] == (at == in ? bytes[i] : 0), "a byte is wrong");
        }
    }
    for (int at = STEP * n; at < STEP * MOST; at++) {
        verify_that(0 == memory[at], "a byte behind the places is wrong");
    }
}

int main(int argc, char **argv)
{
    const size_t size = (size_t) STEP * MOST;
    int rank, ranks;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint8_t *memory = malloc(size);
    uint8_t *bytes = malloc(MOST);
    verify_that(NULL != memory && NULL != bytes, "no memory for the window");
    for (int i = 0; i < MOST; i++) {
        bytes[i] = (uint8_t) (1 + i % 251);
    }
    MPI_Win_create(memory, (MPI_Aint) size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        accumulate(bytes, memory, places[i], (rank + 1) % ranks, win);
    }
    MPI_Win_free(&win);
    free(memory);
    free(bytes);
    if (0 == rank) {
        printf("osc_layout: layouts of up to %d places are right\n", MOST);
    }
    MPI_Finalize();
    return 0;
}
