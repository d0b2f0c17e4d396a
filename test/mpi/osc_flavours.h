/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_flavours.h
 * What the two parts of osc_flavours share: the window that is open, and its epochs.
 */
#ifndef DN_TEST_MPI_OSC_FLAVOURS_H
#define DN_TEST_MPI_OSC_FLAVOURS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { BYTES = 4096, PLACE = 64 };

enum where { ALLOCATE, SHARED, APART, CREATE, CREATE_MAPPED, DYNAMIC, DYNAMIC_MAPPED, FLAVOURS };

struct flavour {
    const char *name;
    int flavour;
    bool mapped; /**< memory of MPI_Alloc_mem */
};

extern int rank, ranks;
extern const struct flavour *kind;
extern MPI_Win win;
extern uint8_t *memory;
extern MPI_Aint *start; /**< displacement of the memory of each rank */
extern int *unit;
extern const char *call_name; /**< for what failures say */

enum epoch { FENCES, LOCK, LOCK_ALONE, LOCK_ALL, LOCK_ALL_UNCHECKED, STARTS, EPOCHS };

/** Fail unless a call returned an error of the class; or any error. */
void expect(int class, int rc, const char *what);
void good(int rc, const char *what);

/** The displacement of byte @p at of a rank, which is a multiple of 8. */
MPI_Aint disp_of(int target, MPI_Aint at);

/** Begin and end an epoch. Collective. */
void epoch_open(enum epoch epoch, int target);
void epoch_close(enum epoch epoch, int target);

/** Each call in each kind of epoch; nothing and nobody; pairs (osc_flavours_calls.c). @return calls. */
int values(void);
void nothing(void);
void pairs(void);

#endif
