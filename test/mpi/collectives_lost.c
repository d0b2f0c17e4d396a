/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_lost.c
 * Collectives until they fail since a process is lost: then they fail in every process, and from then on at once.
 *
 *   collectives_lost FOLDER [DOUBLES [KIND]]
 *
 * They are short ones, or long ones of so many doubles; or all of one kind, one of those in the table below. An error ends the job, where
 * the table does not say that it is returned.
 *
 * Each rank makes a file of its number there, named R.ready after the first collectives and R.lost after the failure. It
 * ends with status 3 once all have made theirs, without MPI.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 20, LONGEST_S = 90, PATH = 4096 };

static void mark(const char *folder, int rank, const char *what)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%d.%s", folder, rank, what);
    FILE *file = fopen(path, "w");
    verify_that(NULL != file && 0 == fclose(file), "a file cannot be made");
}

/** Until all have failed, or for LONGEST_S: who ends before has mpirun end the others. @param progresses  not 0: call MPI meanwhile. */
static void linger(const char *folder, int ranks, int progresses)
{
    enum { STEP_MS = 20 };
    char path[PATH];
    int rank = 0;
    int here;

    for (int waited = 0; rank < ranks && waited < LONGEST_S * 1000; waited += STEP_MS) {
        for (; rank < ranks; rank++) {
            snprintf(path, sizeof(path), "%s/%d.lost", folder, rank);
            if (0 != access(path, F_OK)) {
                break;
            }
        }
        if (progresses) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &here, MPI_STATUS_IGNORE);
        }
        verify_sleep_ms(STEP_MS);
    }
}

static int reduce(int ranks)
{
    double one = 1;
    double sum = 0;
    const int rc = MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    verify_that(MPI_SUCCESS != rc || ranks == sum, "a sum is wrong");
    return rc;
}

/** Round @p round of long ones; data is the sum of what all ranks add, or what the root has. */
static int long_round(int round, double *data, int count, int rank, int ranks)
{
    const int root = round % ranks;
    double wanted = ranks;
    int rc;

    for (int i = 0; i < count; i++) {
        data[i] = 1;
    }
    if (0 == round % 4) {
        wanted = 7;
        data[0] = data[count - 1] = rank == root ? wanted : 1;
        rc = MPI_Bcast(data, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    } else if (2 == round % 4) {
        wanted = rank + 1;
        rc = MPI_Scan(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (1 == round % 4) {
        rc = MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank == root) {
        rc = MPI_Reduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    } else {
        wanted = 1;
        rc = MPI_Reduce(data, NULL, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    }
    verify_that(MPI_SUCCESS != rc || (wanted == data[0] && wanted == data[count - 1]),
                "the result of a long collective is wrong");
    return rc;
}

/** What a collective of one kind moves: room for as many doubles for each rank. */
typedef struct buffers {
    double *in;
    double *out;
    int count, rank, ranks, root;
} buffers_t;

static int allgather(const buffers_t *b)
{
    return MPI_Allgather(b->in, b->count, MPI_DOUBLE, b->out, b->count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static int alltoall(const buffers_t *b)
{
    return MPI_Alltoall(b->in, b->count, MPI_DOUBLE, b->out, b->count, MPI_DOUBLE, MPI_COMM_WORLD);
}

/** Half as much between two ranks of which both are even or both are odd. */
static int alltoallv(const buffers_t *b)
{
    int counts[b->ranks], starts[b->ranks];

    for (int i = 0; i < b->ranks; i++) {
        counts[i] = 0 == (i + b->rank) % 2 ? b->count / 2 : b->count;
        starts[i] = i * b->count;
    }
    return MPI_Alltoallv(b->in, counts, starts, MPI_DOUBLE, b->out, counts, starts, MPI_DOUBLE,
                         MPI_COMM_WORLD);
}

static int reduce_scatter_block(const buffers_t *b)
{
    return MPI_Reduce_scatter_block(b->in, b->out, b->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/** The last rank gets half of what would be for the first. */
static int reduce_scatter(const buffers_t *b)
{
    int counts[b->ranks];

    for (int i = 0; i < b->ranks; i++) {
        counts[i] = b->count;
    }
    counts[0] -= b->count / 2;
    counts[b->ranks - 1] += b->count / 2;
    return MPI_Reduce_scatter(b->in, b->out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int gather(const buffers_t *b)
{
    return MPI_Gather(b->in, b->count, MPI_DOUBLE, b->out, b->count, MPI_DOUBLE, b->root, MPI_COMM_WORLD);
}

static int reduce_to_0(const buffers_t *b)
{
    return MPI_Reduce(b->in, b->out, b->count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static int bcast_from_0(const buffers_t *b)
{
    return MPI_Bcast(b->out, b->count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/** All ranks in a line, or in a ring. It is made in the first call. */
static MPI_Comm neighbors_of(const buffers_t *b, int closed)
{
    static MPI_Comm comm = MPI_COMM_NULL;

    if (MPI_COMM_NULL == comm) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &b->ranks, &closed, 0, &comm);
    }
    return comm;
}

/** In a line: the first rank and the last are no neighbors. */
static int neighbor_allgather(const buffers_t *b)
{
    return MPI_Neighbor_allgather(b->in, b->count, MPI_DOUBLE, b->out, b->count, MPI_DOUBLE,
                                  neighbors_of(b, 0));
}

static int neighbor_alltoall(const buffers_t *b)
{
    return MPI_Neighbor_alltoall(b->in, b->count, MPI_DOUBLE, b->out, b->count, MPI_DOUBLE,
                                 neighbors_of(b, 1));
}

static int ibcast(const buffers_t *b)
{
    MPI_Request request;
    const int rc = MPI_Ibcast(b->out, b->count, MPI_DOUBLE, b->root, MPI_COMM_WORLD, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int iallreduce(const buffers_t *b)
{
    MPI_Request request;
    const int rc = MPI_Iallreduce(b->in, b->out, b->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static const struct kind {
    const char *name;
    int (*call)(const buffers_t *buffers);
    int returns; /**< not 0: an error is returned */
} kinds[] = {
    {"allgather", allgather, 0},
    {"alltoall", alltoall, 0},
    {"alltoallv", alltoallv, 0},
    {"reduce_scatter_block", reduce_scatter_block, 0},
    {"reduce_scatter", reduce_scatter, 0},
    {"gather", gather, 0},
    {"reduce", reduce_to_0, 1},
    {"bcast", bcast_from_0, 1},
    {"neighbor_allgather", neighbor_allgather, 1},
    {"neighbor_alltoall", neighbor_alltoall, 0},
    {"ibcast", ibcast, 0},
    {"iallreduce", iallreduce, 0},
};

/** Collectives of one kind, until one of them fails. */
static _Noreturn void repeat(const char *folder, const char *name, buffers_t *buffers)
{
    const size_t doubles = (size_t) buffers->count * (size_t) buffers->ranks;
    const struct kind *kind = kinds;
    int rc = MPI_SUCCESS;

    while (kind < kinds + sizeof(kinds) / sizeof(kinds[0]) && 0 != strcmp(name, kind->name)) {
        kind++;
    }
    verify_that(kind < kinds + sizeof(kinds) / sizeof(kinds[0]), "there is no such kind of collectives");
    buffers->in = calloc(doubles, sizeof(*buffers->in));
    buffers->out = calloc(doubles, sizeof(*buffers->out));
    verify_that(NULL != buffers->in && NULL != buffers->out, "no memory for collectives");
    if (kind->returns) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    for (int round = 0; MPI_SUCCESS == rc; round++) {
        if (FIRST == round) {
            mark(folder, buffers->rank, "ready");
        }
        buffers->root = round % buffers->ranks;
        rc = kind->call(buffers);
    }
    /* A rank may have got through the one that has failed here, and wait in the next one. */
    verify_that(MPI_SUCCESS != kind->call(buffers), "a collective with a lost process was done");
    mark(folder, buffers->rank, "lost");
    linger(folder, buffers->ranks, 1);
    _exit(3);
}

static int ibarrier(void)
{
    MPI_Request request;
    const int rc = MPI_Ibarrier(MPI_COMM_WORLD, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    int rc = MPI_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(2 <= argc && 4 >= argc, "usage: collectives_lost FOLDER [DOUBLES [KIND]]");
    const int count = 3 <= argc ? (int) verify_number(argv[2], 1, "DOUBLES") : 0;
    if (4 == argc) {
        repeat(argv[1], argv[3], &(buffers_t){.count = count, .rank = rank, .ranks = ranks});
    }
    double *data = malloc((size_t) (count + 1) * sizeof(*data));
    verify_that(NULL != data, "no memory for collectives");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* What short ones need is set up by all. */
    rc = MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; MPI_SUCCESS == rc; round++) {
        if (FIRST == round) {
            mark(argv[1], rank, "ready");
        }
        if (0 != count) {
            rc = long_round(round, data, count, rank, ranks);
        } else {
            rc = 0 == round % 3 ? ibarrier() : 1 == round % 3 ? reduce(ranks) : MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    verify_that(0 == count || MPI_SUCCESS != long_round(1, data, count, rank, ranks),
                "a long reduction with a lost process was done");
    verify_that(MPI_SUCCESS != MPI_Barrier(MPI_COMM_WORLD), "a barrier with a lost process was passed");
    verify_that(MPI_SUCCESS != ibarrier(), "a nonblocking barrier with a lost process was passed");
    verify_that(MPI_SUCCESS != reduce(ranks), "a reduction with a lost process was done");
    mark(argv[1], rank, "lost");
    linger(argv[1], ranks, 0);
    _exit(3);
}
