/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives.h
 * The parts of the program collectives: each checks one collective, called alike by all ranks of a communicator.
 */
#ifndef DN_TEST_MPI_COLLECTIVES_H
#define DN_TEST_MPI_COLLECTIVES_H

#include "verify.h"

#include <mpi.h>

/** Make the operations and types that reductions are tried with, and free them. */
void collectives_reduce_begin(void);
void collectives_reduce_end(void);

/** Every operation on every type that it is defined for: MPI_Allreduce, MPI_Reduce to some root, MPI_Reduce_scatter or its block
 * form, MPI_Scan and MPI_Exscan, in place or not, of so many elements. */
void collectives_reduce_all(MPI_Comm comm, verify_rng_t *rng, int count);
/** One of those, of any number of elements up to @p most. */
void collectives_reduce_some(MPI_Comm comm, verify_rng_t *rng, int most);

/** Broadcast, allgather(v), gather, alltoall(v, w) of up to @p most bytes a block, with types that differ between the ranks. */
void collectives_bcast(MPI_Comm comm, verify_rng_t *rng, int most);
void collectives_allgather(MPI_Comm comm, verify_rng_t *rng, int most);
void collectives_allgatherv(MPI_Comm comm, verify_rng_t *rng, int most);
void collectives_gather(MPI_Comm comm, verify_rng_t *rng, int most);
void collectives_alltoall(MPI_Comm comm, verify_rng_t *rng, int most);
/** Of any lengths, by one type or by types, also in place. @return bytes of it that go through shared memory where ranks share cores. */
unsigned long long collectives_alltoallv(MPI_Comm comm, verify_rng_t *rng, int most);

/** Streams of short broadcasts, reductions, scans and gathers, in which some ranks could run ahead. @return bytes of all. */
unsigned long long collectives_streams(uint64_t rounds);

/** Some nonblocking barriers, broadcasts and sums, with a blocking collective in their midst. */
void collectives_nonblocking(MPI_Comm comm, verify_rng_t *rng);
/** Persistent ones, each started some times, in another order in each rank. */
void collectives_persistent(MPI_Comm comm, verify_rng_t *rng);
/** Persistent ones whose types, operation and communicator are freed before they are started; where coll_llcm takes them, as Open MPI
 * itself does not retain types and operations. The last ones are not freed. */
void collectives_persistent_outlive(MPI_Comm comm);
/** Some of each kind, short ones, nonblocking and persistent; that coll_llcm takes them is checked. The communicator has a tree. */
void collectives_taken(MPI_Comm comm);
/** Persistent ones that are started again while they are under way: an error, and nothing else comes of it. As collectives_taken(). */
void collectives_start_once(MPI_Comm comm);
/** A communicator made by MPI_Comm_idup(), with blocking collectives meanwhile. */
void collectives_idup(MPI_Comm comm, verify_rng_t *rng);
/** Some on each of several communicators at once, in an order of this rank's own. @param here  differs between ranks. */
void collectives_nonblocking_on_all(MPI_Comm *comm, verify_rng_t *rng, int comms, verify_rng_t *here);
/** Some on a communicator that is freed before they are complete. */
void collectives_nonblocking_outlive(MPI_Comm comm, verify_rng_t *rng);

/** In-place MPI_Allreduce of more than any buffer between ranks holds, on several communicators in turns. @return bytes of all. */
unsigned long long collectives_long_in_turns(uint64_t rounds);
/** Broadcasts of a type that is nested more deeply than a program of its layout may be, to and from every rank. @return bytes of
 * all. */
unsigned long long collectives_long_nested(void);

/** Allgathers, gathers, alltoalls in all forms and scattered reductions, each on a communicator that does nothing else, of types that are cut amid
 * a number. @return bytes of those that are to go through shared memory where ranks share cores. */
unsigned long long collectives_long_exchanges(void);
/** Likewise alltoalls with lengths that differ between all pairs of ranks. */
unsigned long long collectives_long_unequal(uint64_t seed, uint64_t rounds);

/** Allgathers and allgathervs in which one rank gives more than its place holds: no rank waits for ever, all say MPI_ERR_TRUNCATE, and
 * what fits is there. */
void collectives_excess(MPI_Comm comm, verify_rng_t *rng, uint64_t rounds);

/** What was checked so far. May be used by several threads. */
void collectives_count(void);

#endif
