/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * One datatype for messages, for windows and for long broadcasts: dimmnet and the PML may each keep something with the datatype. Messages
 * come first for one type, windows for the next. Every byte is checked, also those in gaps.
 *
 * usage: types_of_two   (2 ranks)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 16, LONG = 20000, ROUNDS = 20, GAP = -1 };

static int rank;

static void need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void fill(int *at, int n, int from)
{
    for (int i = 0; i < n; i++) {
        at[i] = from + i;
    }
}

/** Every second word is new, and the gaps are as before. */
static void check(const int *at, int blocks, int from, const char *what)
{
    for (int i = 0; i < blocks; i++) {
        need(from + 2 * i == at[2 * i] && GAP == at[2 * i + 1], what);
    }
}

static void exchange(MPI_Datatype type, int from)
{
    int out[2 * BLOCKS], in[2 * BLOCKS];

    fill(out, 2 * BLOCKS, from);
    memset(in, 0xff, sizeof(in));
    MPI_Sendrecv(out, 1, type, 1 - rank, 0, in, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, BLOCKS, from, "a message has wrong bytes");
}

static void put(MPI_Datatype type, int from)
{
    int out[2 * BLOCKS], *in = NULL;
    MPI_Win win;

    MPI_Win_allocate(sizeof(out), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &in, &win);
    memset(in, 0xff, sizeof(out));
    fill(out, 2 * BLOCKS, from);
    MPI_Win_fence(0, win);
    MPI_Put(out, 1, type, 1 - rank, 0, 1, type, win);
    MPI_Win_fence(0, win);
    check(in, BLOCKS, from, "a put has stored wrong bytes");
    MPI_Win_free(&win);
}

static void accumulate(int from)
{
    struct {
        double value;
        int index;
    } out = {1000.0 * (rank + 1), from}, old = {0, 0}, *in = NULL;
    MPI_Win win;

    MPI_Sendrecv(&out, 1, MPI_DOUBLE_INT, 1 - rank, 0, &old, 1, MPI_DOUBLE_INT, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    need(1000.0 * (2 - rank) == old.value && from == old.index, "a message of a pair has wrong bytes");
    MPI_Win_allocate(sizeof(out), sizeof(out), MPI_INFO_NULL, MPI_COMM_WORLD, &in, &win);
    *in = old;
    MPI_Win_fence(0, win);
    out.value = 5000;
    MPI_Get_accumulate(&out, 1, MPI_DOUBLE_INT, &old, 1, MPI_DOUBLE_INT, 1 - rank, 0, 1, MPI_DOUBLE_INT,
                       MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    need(1000.0 * (rank + 1) == old.value && 5000 == in->value, "an accumulate of a pair has a wrong value");
    MPI_Win_free(&win);
}

static void broadcast(int from)
{
    int *at = malloc(2 * LONG * sizeof(*at));
    MPI_Datatype type;

    need(NULL != at, "there is no memory");
    MPI_Type_vector(LONG, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    memset(at, 0xff, 2 * LONG * sizeof(*at));
    if (0 == rank) {
        for (int i = 0; i < LONG; i++) {
            at[2 * i] = from + 2 * i;
        }
    }
    MPI_Bcast(at, 1, type, 0, MPI_COMM_WORLD);
    check(at, LONG, from, "a broadcast has brought wrong bytes");
    MPI_Type_free(&type);
    free(at);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Datatype type;
        MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &type);
        MPI_Type_commit(&type);
        for (int turn = 0; turn < 4; turn++) {
            (round % 2 == turn % 2 ? exchange : put)(type, 100 * round + turn);
        }
        MPI_Type_free(&type);
        accumulate(round);
        broadcast(round);
    }
    MPI_Finalize();
    return 0;
}
