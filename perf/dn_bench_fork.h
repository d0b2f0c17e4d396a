/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_BENCH_FORK_H
#define DN_BENCH_FORK_H

#include <stddef.h>

/*
 * Processes for the benchmarks without MPI: choice of CPUs, and a group of
 * processes that begins and ends together.
 */

/** What one process of a group does; its return value is its exit status. */
typedef int (*dn_bench_child_fn_t)(int index, void *arg);

/**
 * The CPUs to measure on.
 *
 * @param[in]  program  Name for error sentences, written to stderr.
 * @param[in]  list     "A,B,..." as the operating system numbers CPUs; NULL: the first
 *                      CPU of each of the first cores that the affinity mask holds.
 * @param[out] cpus     @p n CPU numbers.
 *
 * @return 0, or -1 when there are not @p n of them.
 */
int dn_bench_cpus(const char *program, const char *list, int *cpus, int n);

/** Bind this process to a CPU; says so on stderr when that cannot be. */
void dn_bench_bind(int cpu);

/** Zeroed memory shared with processes forked later; ends the program when there is none. */
void *dn_bench_shared(size_t len);

/**
 * Run @p n processes, the i-th bound to cpus[i % ncpus], and wait for all. When one
 * fails the others are killed, as they would wait for it without end.
 *
 * @return 0 when all returned 0, else the first other status.
 */
int dn_bench_fork(int n, const int *cpus, int ncpus, dn_bench_child_fn_t fn, void *arg);

#endif
