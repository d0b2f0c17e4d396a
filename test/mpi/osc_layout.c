/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_layout.c
 * Accumulates on private memory of the next rank, by datatypes of millions of irregular places: every byte is right, and a
 * datatype that is too long is an error of its call, after which the window works.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Places of a datatype that is taken, and of one that is not. */
#define PLACES   2000000
#define TOO_MANY 9000000

/** Bytes of the window for each place: it is one of the first two. */
#define STEP 3

static int place_of(int i)
{
    return STEP * i + (int) ((uint32_t) i * 2654435761u >> 31);
}

static MPI_Datatype layout(int places)
{
    int *at = malloc((size_t) places * sizeof(*at));
    MPI_Datatype type;

    verify_that(NULL != at, "no memory for places");
    for (int i = 0; i < places; i++) {
        at[i] = place_of(i);
    }
    MPI_Type_create_indexed_block(places, 1, at, MPI_UINT8_T, &type);
    MPI_Type_commit(&type);
    free(at);
    return type;
}

static int accumulate(const uint8_t *bytes, int places, int target, MPI_Win win)
{
    MPI_Datatype type = layout(places);
    const int rc = MPI_Accumulate(bytes, places, MPI_UINT8_T, target, 0, 1, type, MPI_SUM, win);

    MPI_Type_free(&type);
    return rc;
}

int main(int argc, char **argv)
{
    const size_t size = (size_t) STEP * TOO_MANY;
    int rank, ranks, class = MPI_SUCCESS;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint8_t *memory = calloc(size, 1);
    uint8_t *bytes = malloc(TOO_MANY);
    verify_that(NULL != memory && NULL != bytes, "no memory for the window");
    for (int i = 0; i < TOO_MANY; i++) {
        bytes[i] = (uint8_t) (1 + i % 251);
    }
    MPI_Win_create(memory, (MPI_Aint) size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const int target = (rank + 1) % ranks;
    MPI_Win_fence(0, win);
    MPI_Error_class(accumulate(bytes, TOO_MANY, target, win), &class);
    verify_that(MPI_ERR_UNSUPPORTED_OPERATION == class,
                "a layout that is too long was taken, or refused as something else");
    verify_that(MPI_SUCCESS == accumulate(bytes, PLACES, target, win), "a long layout was refused");
    verify_that(MPI_SUCCESS == MPI_Win_fence(0, win), "an accumulate by a long layout failed");
    for (int i = 0; i < PLACES; i++) {
        const int in = place_of(i);

        for (int at = STEP * i; at < STEP * (i + 1); at++) {
            verify_that(memory[at] == (at == in ? bytes[i] : 0), "a byte is wrong");
        }
    }
    MPI_Win_free(&win);
    free(memory);
    free(bytes);
    if (0 == rank) {
        printf("osc_layout: %d places are right, %d are refused\n", PLACES, TOO_MANY);
    }
    MPI_Finalize();
    return 0;
}
