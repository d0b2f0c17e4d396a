/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file complete.h
 * Completing many requests. */
#ifndef DN_TEST_MPI_COMPLETE_H
#define DN_TEST_MPI_COMPLETE_H

#include "verify.h"

#include <mpi.h>

/** Most requests of one call. */
enum { COMPLETE_MOST = 128 };

/** Called once for each request that is complete. */
typedef void (*complete_fn_t)(void *arg, int index);

/** Complete all requests, in one of the ways that MPI has. Another rank may take another way, and another order. */
static inline void complete_all(MPI_Request *request, int count, verify_rng_t *rng, complete_fn_t done,
                                void *arg)
{
    int order[COMPLETE_MOST];
    int index, flag, some;

    verify_that(COMPLETE_MOST >= count, "these are too many requests");
    verify_shuffle(rng, order, count);
    switch (verify_below(rng, 4)) {
    case 0:
        MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) {
            done(arg, i);
        }
        break;
    case 1:
        for (int i = 0; i < count; i++) {
            do {
                MPI_Test(&request[order[i]], &flag, MPI_STATUS_IGNORE);
            } while (!flag);
            done(arg, order[i]);
        }
        break;
    case 2:
        for (MPI_Waitsome(count, request, &some, order, MPI_STATUSES_IGNORE); MPI_UNDEFINED != some;
             MPI_Waitsome(count, request, &some, order, MPI_STATUSES_IGNORE)) {
            for (int i = 0; i < some; i++) {
                done(arg, order[i]);
            }
        }
        break;
    default:
        for (MPI_Waitany(count, request, &index, MPI_STATUS_IGNORE); MPI_UNDEFINED != index;
             MPI_Waitany(count, request, &index, MPI_STATUS_IGNORE)) {
            done(arg, index);
        }
        break;
    }
}

#endif
