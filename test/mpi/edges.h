/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file edges.h
 * What the checks of edges.c share. Each file of checks ends with a table of them.
 */
#ifndef DN_TEST_MPI_EDGES_H
#define DN_TEST_MPI_EDGES_H

#include "verify.h"

#include <mpi.h>

/** The upper one is unlike any that the checks count up from the lower one. */
#define EDGES_TAG   7
#define EDGES_OTHER 30000

#define EDGES_MIB ((size_t) 1 << 20)

#define EDGES_RANKS 8

/** One for each way in which transports treat a length. */
static const size_t edges_lengths[] = {0, 1, 40, 56, 57, 64, 1000, 4096, 12288, 65536, 1 << 20};
#define EDGES_LENGTHS (sizeof(edges_lengths) / sizeof(edges_lengths[0]))

typedef struct {
    int rank;
    int ranks;
    int peer; /**< of ranks 0 and 1 */
    bool ask_all;
    int queue_length;
    int communicators;
    int flood;
    MPI_Comm world;   /**< where the checks send; it returns errors */
    MPI_Comm control; /**< for meetings */
    MPI_Comm pair;    /**< ranks 0 and 1 */
} edges_t;
extern edges_t edges;

typedef struct {
    const char *name; /**< NULL ends a table */
    void (*check)(void);
    bool all; /**< of all ranks, not of ranks 0 and 1 */
} edges_check_t;
extern const edges_check_t edges_modes[];
extern const edges_check_t edges_cancel[];
extern const edges_check_t edges_order[];
extern const edges_check_t edges_flood[];
extern const edges_check_t edges_comm[];

void edges_must(int result, const char *call);
void edges_must_be(int result, int expected, const char *call);

/** Ranks 0 and 1 wait for each other, on a communicator of its own. */
void edges_meet(void);

/** Zeroed memory, freed by the caller. */
void *edges_get(size_t count, size_t size);

/** Bytes of message number @p number, freed by the caller. */
unsigned char *edges_data(size_t length, uint64_t number);

void edges_send(size_t length, uint64_t number, int target, int tag, MPI_Comm comm);
void edges_status(const MPI_Status *status, int source, int tag, size_t length);

/** Receive message number @p number, which comes from @p from with tag @p its, by the pattern given. */
void edges_receive(size_t length, uint64_t number, int source, int tag, int from, int its, MPI_Comm comm);

/** Probe until a message is there; whether one is there. */
void edges_await(int source, int tag, MPI_Comm comm);
bool edges_is_there(int source, int tag, MPI_Comm comm);

#endif
