/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_nonblocking.c
 * Nonblocking collectives that overlap: on one communicator, on several at once, and with blocking ones.
 */
#include "dn_config.h"

#include "collectives.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPERATIONS = 64, MOST_OF_COMM = 6, IN_LINES = 100 };

/** An operation that is under way. */
typedef struct operation {
    MPI_Comm comm;
    uint64_t id; /**< of its operands */
    int count;   /**< 0: a barrier */
    bool checked;
    uint64_t *in;
    uint64_t *out;
} operation_t;

typedef struct set {
    operation_t operation[MOST_OPERATIONS];
    MPI_Request request[MOST_OPERATIONS];
    int count;
} set_t;

/** Start one of up to @p most unsigned integers, so that the sum is exact whatever the order. */
static void begin(set_t *set, MPI_Comm comm, verify_rng_t *rng, int most)
{
    operation_t *operation = &set->operation[set->count];
    MPI_Request *request = &set->request[set->count++];
    const bool in_place = 0 == verify_below(rng, 3);
    int rank;

    MPI_Comm_rank(comm, &rank);
    *operation = (operation_t){.comm = comm, .id = verify_random(rng)};
    if (0 == verify_below(rng, 3)) {
        MPI_Ibarrier(comm, request);
        return;
    }
    operation->count = 1 + (int) verify_size(rng, (size_t) most);
    operation->in = malloc((size_t) operation->count * sizeof(uint64_t));
    operation->out = verify_guard_alloc((size_t) operation->count * sizeof(uint64_t), 8);
    verify_that(NULL != operation->in, "no memory for a reduction");
    for (int i = 0; i < operation->count; i++) {
        operation->in[i] = verify_key(operation->id, (uint64_t) rank, (uint64_t) i, 0);
    }
    memcpy(operation->out, operation->in, (size_t) operation->count * sizeof(uint64_t));
    MPI_Iallreduce(in_place ? MPI_IN_PLACE : operation->in, operation->out, operation->count, MPI_UINT64_T,
                   MPI_SUM, comm, request);
}

static void check(operation_t *operation)
{
    int ranks;

    MPI_Comm_size(operation->comm, &ranks);
    for (int i = 0; i < operation->count; i++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < ranks; rank++) {
            sum += verify_key(operation->id, (uint64_t) rank, (uint64_t) i, 0);
        }
        verify_that(sum == operation->out[i], "a nonblocking sum is wrong");
    }
    if (0 != operation->count) {
        free(operation->in);
        verify_guard_free(operation->out, (size_t) operation->count * sizeof(uint64_t), 8,
                          "nonblocking reduction");
    }
    operation->checked = true;
    collectives_count();
}

/** Complete all, in one of the ways that MPI has; which one may differ between the ranks. */
static void complete(set_t *set, verify_rng_t *rng)
{
    int order[MOST_OPERATIONS];
    int index, flag;

    verify_shuffle(rng, order, set->count);
    switch (verify_below(rng, 3)) {
    case 0:
        MPI_Waitall(set->count, set->request, MPI_STATUSES_IGNORE);
        break;
    case 1:
        for (int i = 0; i < set->count; i++) {
            do {
                MPI_Test(&set->request[order[i]], &flag, MPI_STATUS_IGNORE);
            } while (!flag);
        }
        break;
    default:
        for (MPI_Waitany(set->count, set->request, &index, MPI_STATUS_IGNORE); MPI_UNDEFINED != index;
             MPI_Waitany(set->count, set->request, &index, MPI_STATUS_IGNORE)) {
            check(&set->operation[index]);
        }
        break;
    }
    for (int i = 0; i < set->count; i++) {
        if (!set->operation[i].checked) {
            check(&set->operation[i]);
        }
    }
}

/** A blocking collective, or none. */
static void block(MPI_Comm comm, verify_rng_t *rng)
{
    switch (verify_below(rng, 4)) {
    case 0:
        MPI_Barrier(comm);
        break;
    case 1:
        collectives_bcast(comm, rng, 60);
        break;
    case 2:
        collectives_reduce_some(comm, rng, 12);
        break;
    default:
        break;
    }
}

void collectives_nonblocking(MPI_Comm comm, verify_rng_t *rng)
{
    set_t set = {.count = 0};
    verify_rng_t here;
    int rank;

    MPI_Comm_rank(comm, &rank);
    here.state = verify_key(verify_random(rng), (uint64_t) rank, 0, 0);
    for (uint64_t n = 1 + verify_below(rng, MOST_OF_COMM); 0 < n; n--) {
        begin(&set, comm, rng, 0 == verify_below(rng, 8) ? 4 * IN_LINES : IN_LINES / 2);
    }
    block(comm, rng);
    begin(&set, comm, rng, IN_LINES);
    complete(&set, &here);
}

void collectives_idup(MPI_Comm comm, verify_rng_t *rng)
{
    MPI_Request request;
    MPI_Comm made;

    MPI_Comm_idup(comm, &made, &request);
    /* Open MPI's own reductions come between these, not at the same places in all ranks. */
    for (int i = 0; i < 3; i++) {
        block(comm, rng);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    collectives_count();
}

void collectives_nonblocking_on_all(MPI_Comm *comm, verify_rng_t *rng, int comms, verify_rng_t *here)
{
    set_t set = {.count = 0};
    int order[MOST_OPERATIONS];

    /* Communicators need not come in the same order in all ranks, only the operations of each. */
    verify_shuffle(here, order, comms);
    for (int i = 0; i < comms; i++) {
        const int which = order[i];
        if (MPI_COMM_NULL != comm[which]) {
            for (uint64_t n = verify_below(&rng[which], MOST_OF_COMM); 0 < n; n--) {
                begin(&set, comm[which], &rng[which], IN_LINES);
            }
        }
    }
    complete(&set, here);
}

void collectives_nonblocking_outlive(MPI_Comm comm, verify_rng_t *rng)
{
    set_t set = {.count = 0};
    MPI_Comm made;

    MPI_Comm_dup(comm, &made);
    MPI_Barrier(made);
    for (uint64_t n = 1 + verify_below(rng, MOST_OF_COMM); 0 < n; n--) {
        begin(&set, made, rng, IN_LINES);
    }
    MPI_Comm_free(&made);
    for (int i = 0; i < set.count; i++) {
        set.operation[i].comm = comm; /* of the same size */
    }
    complete(&set, rng);
}
