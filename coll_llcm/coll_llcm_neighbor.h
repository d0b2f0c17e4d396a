/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_neighbor.h
 * The neighbors of a process, as coll_llcm_meet.c finds them, and coll_llcm_neighbor.c uses them.
 */
#ifndef COLL_LLCM_NEIGHBOR_H
#define COLL_LLCM_NEIGHBOR_H

#include "coll_llcm.h"

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

/** The most bytes of a block in a letter (perf/dn_coll, neighbor_allgather of 32 KiB: 2 ranks in letters 8.2 us, in messages 14.6; 4 ranks on
 * 2 cores 22 and 42). */
#define COLL_LLCM_NEIGHBOR_SHORT 32768u
/** Bytes of a letter that say of one block where it is. */
#define COLL_LLCM_NEIGHBOR_ENTRY 8

/** Tags of messages between neighbors: for so many numbers of blocks, for each so many rounds. Behind them come those by which neighbors meet.
 * Open MPI leaves 1024 tags to neighborhood collectives. @{ */
#define COLL_LLCM_NEIGHBOR_NUMBERS 100
#define COLL_LLCM_NEIGHBOR_ROUNDS  8
#define COLL_LLCM_NEIGHBOR_TAGS    (COLL_LLCM_NEIGHBOR_NUMBERS * COLL_LLCM_NEIGHBOR_ROUNDS)
/** @} */

/** Another process that gives this process blocks and gets blocks of it. Letters go only between such two: Open MPI itself returns from some
 * calls in which a process has nothing to give and to get, and a neighbor of one direction could wait for such a process. */
typedef struct coll_llcm_partner {
    int rank;
    bool gives, gets; /**< one of both, until all neighbors are found */
    bool near;        /**< letters go between this process and the partner */
    int source;       /**< the first of its blocks in coll_llcm_neighbors_t::source */
    uint32_t most;    /**< coll_llcm_neighbors_t::most of the partner */
} coll_llcm_partner_t;

/** A block that this process gets. */
typedef struct coll_llcm_source {
    int rank;      /**< the giver */
    int number;    /**< of the block among those that the giver gives */
    int place;     /**< of the block among those that this process gets */
    uint32_t most; /**< in an alltoall, a longer block is a message; 0: each block is, also in an allgather */
    /* of the call under way: */
    bool comes;    /**< the giver says that the block comes as a message */
    int requested; /**< the number of its request; or -1 */
} coll_llcm_source_t;

/** A block that this process gives, in an alltoall; to whom, in an allgather. */
typedef struct coll_llcm_target {
    int rank; /**< the receiver, or MPI_PROC_NULL */
    bool near;
} coll_llcm_target_t;

struct coll_llcm_neighbors {
    int error;    /**< what each call returns, since the neighbors could not meet; or OMPI_SUCCESS */
    int gives;    /**< elements of target */
    int gets;     /**< places for blocks, of which some may have no giver */
    int sources;  /**< elements of source that are used */
    int partners; /**< elements of partner that are used */
    uint32_t
        most; /**< in an alltoall, a longer block that this process gives is a message; 0: each block, also in an allgather */
    uint32_t round;         /**< calls so far; wraps, as tags do */
    coll_llcm_area_t *area; /**< of this process; NULL: none */
    dn_letters_t *letters;  /**< NULL: all blocks are messages */
    coll_llcm_target_t *target;
    coll_llcm_source_t *source;   /**< by giver, then by number */
    coll_llcm_partner_t *partner; /**< by rank */
    ompi_request_t **request;     /**< room for one for each target and each place, or two for each partner */
    /** What the neighbors told each other when they met. It stays after a failure: messages may still come. */
    void *mail;
};

/** @name coll_llcm_meet.c */
/** @{ */
/** Meet the neighbors, unless the process has met them. They do the same in the same call. @return OMPI_SUCCESS, or an error that stays. */
int coll_llcm_meet_now(coll_llcm_module_t *module, struct ompi_communicator_t *comm);
/** @} */

static inline int coll_llcm_meet(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    return OPAL_LIKELY(NULL != module->neighbors) ? module->neighbors->error
                                                  : coll_llcm_meet_now(module, comm);
}

#endif
