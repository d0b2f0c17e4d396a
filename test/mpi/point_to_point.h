/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file point_to_point.h
 * What the files of point_to_point share.
 */
#ifndef DN_TEST_MPI_POINT_TO_POINT_H
#define DN_TEST_MPI_POINT_TO_POINT_H

#include "verify.h"

#include <mpi.h>
#include <stdarg.h>

/** No call writes it into MPI_ERROR of a status. */
#define P2P_KEPT 12345

#define P2P_TAG 7

typedef struct {
    int rank;
    int peer;
    MPI_Comm world;   /**< where the cases send; it returns errors */
    MPI_Comm control; /**< for meetings */
} p2p_t;
extern p2p_t p2p;

/** Cases of messages that arrive; and of those that do not, and of errors. */
void p2p_exchange(void);
void p2p_corners(void);

void p2p_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** A sentence's end: all fields that the standard defines. */
void p2p_print_status(const MPI_Status *status);
const char *p2p_class(int error);

/** Values that no call leaves. */
void p2p_clear(MPI_Status *statuses, int count);

/** Both ranks wait for each other. */
void p2p_meet(void);

#endif
