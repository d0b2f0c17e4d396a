/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_BENCH_WINDOW_H
#define DN_BENCH_WINDOW_H

/*
 * What the one-sided benchmarks share: windows of each kind (-w), and what opens and closes
 * the epoch around the operations of one iteration (-s). The names are those of OSU.
 */

#include <mpi.h>

#include "dn_bench.h"

/** What -s names. */
typedef enum {
    DN_BENCH_FLUSH,       /**< one shared lock of all for the whole run, a flush for each iteration */
    DN_BENCH_FLUSH_LOCAL, /**< the same, a flush that completes the origin's side */
    DN_BENCH_LOCK,        /**< a shared lock of the target for each iteration */
    DN_BENCH_LOCK_ALL,    /**< one of all */
    DN_BENCH_PSCW,        /**< post, start, complete, wait */
    DN_BENCH_FENCE        /**< one before, one after */
} dn_bench_sync_t;

typedef struct {
    MPI_Win win;
    char *memory;   /**< of this rank, every byte DN_BENCH_FILLER; goes with the window */
    MPI_Aint *base; /**< by rank: the displacement at which its memory begins, counted in bytes */
    int kind;
    dn_bench_sync_t sync;
    int target;        /**< the one that this rank operates on; -1: any of those in targets */
    MPI_Group origins; /**< who operates on this rank's memory */
    MPI_Group targets; /**< on whose memory it operates */
} dn_bench_win_t;

/** Why -w and -s cannot be had, or NULL. */
const char *dn_bench_win_obstacle(const dn_bench_options_t *options);

/** Does the epoch of -s leave it to others to tell a target that it has ended? */
bool dn_bench_win_passive(const dn_bench_win_t *w);

/**
 * Make a window of @p len bytes at each rank of @p comm. Collective; ends the job with a sentence when it cannot be.
 *
 * @param[in] origins  Ranks that operate on this one's memory, @p num_origins of them.
 * @param[in] targets  Ranks on whose memory this one operates, all different.
 */
void dn_bench_win_open(dn_bench_win_t *w, const dn_bench_options_t *options, MPI_Comm comm, size_t len,
                       const int *origins, int num_origins, const int *targets, int num_targets);

/** Collective. */
void dn_bench_win_close(dn_bench_win_t *w);

/** Before the operations of an iteration, and after them. Each rank calls both. */
void dn_bench_win_begin(dn_bench_win_t *w);
void dn_bench_win_end(dn_bench_win_t *w);

/** What the target has stored is seen by operations that come later, and what has come is seen by its loads. */
void dn_bench_win_sync(dn_bench_win_t *w);

#endif
