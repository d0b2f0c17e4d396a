/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file counter.h
 * Counters of this process: performance variables of MPI_T that belong to no object and have 32 or 64 bits.
 *
 * Whatever is amiss with a counter fails the test, as verify_fail() does. Threads: one at a time for each counter.
 */
#ifndef DN_TEST_MPI_COUNTER_H
#define DN_TEST_MPI_COUNTER_H

#include "verify.h"

#include <mpi.h>

/** An open counter; all fields but the name are private. */
typedef struct {
    const char *name;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int width; /**< bytes */
} counter_t;

/** Begin to count. @param name  Of a variable of class counter that has a description; lives as long as the counter. */
void counter_open(counter_t *counter, const char *name);

/** What was counted since counter_open(). */
unsigned long long counter_read(const counter_t *counter);

/** End to count. */
void counter_close(counter_t *counter);

#endif
