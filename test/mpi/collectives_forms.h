/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_forms.h
 * What the parts of the program collectives_forms share.
 *
 * A *space* is a communicator, and for each of its ranks the ranks that it exchanges blocks with. An *operation* is one collective in one
 * of its forms: all members of its space draw it alike. It is started once, or if it is persistent some times. The result is compared with
 * what this rank computes from the number of the operation.
 */
#ifndef DN_TEST_MPI_COLLECTIVES_FORMS_H
#define DN_TEST_MPI_COLLECTIVES_FORMS_H

#include "layout.h"
#include "verify.h"

#include <mpi.h>

enum { MOST_PEERS = 32 };

/** Ranks in the order of their blocks; MPI_PROC_NULL: nobody. A rank may come more than once. */
typedef struct peers {
    int count;
    int rank[MOST_PEERS];
} peers_t;

typedef struct space {
    MPI_Comm comm; /**< MPI_COMM_NULL: this rank is no member */
    int number;    /**< for a sentence */
    bool inter;
    bool has_topology;
    int group; /**< of an intercommunicator: 0 or 1 */
    int rank;
    int ranks;    /**< of its own group */
    peers_t all;  /**< of the group that it exchanges with */
    peers_t from; /**< whose blocks come to this rank, in a topology */
    peers_t to;   /**< likewise, to whom its blocks go */
} space_t;

/** @name collectives_forms_spaces.c */
/** @{ */
enum { SPACES = 10 };
/** Communicators of every kind. Collective. */
void spaces_make(space_t space[SPACES], uint64_t seed);
void spaces_free(space_t space[SPACES]);
/** What a rank is called in keys. @param[in] peer  It is of the group that this rank exchanges with. */
uint64_t space_name(const space_t *space, int rank, bool peer);
/** @} */

typedef enum kind {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    REDUCE, /* this and all that follow are reductions */
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    KINDS
} kind_t;

typedef enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS } form_t;

/** The operands of a reduction, each of some words. */
typedef struct operands {
    bool in_order;      /**< the operation does not commute */
    int stride;         /**< words from one element to the next */
    int count;          /**< elements of all */
    int *parts;         /**< elements of the result, by rank: of a reduction that is scattered */
    int first, results; /**< elements of the result that this rank gets */
    MPI_Datatype type;
    MPI_Op op;
    uint64_t *in;
    uint64_t *out;
} operands_t;

typedef struct operation {
    const space_t *space;
    kind_t kind;
    form_t form;
    uint64_t id;
    uint64_t start; /**< times that it was started */
    int root;
    int root_group;      /**< of an intercommunicator */
    bool is_root;        /**< this rank */
    bool in_place;       /**< in this rank */
    bool all_in_place;   /**< in all ranks, where the kind asks for this */
    size_t bytes;        /**< the most of a block, or of an operand */
    const peers_t *gets; /**< from whom this rank gets blocks */
    const peers_t *gives;
    peers_t root_only;
    blocks_t out; /**< blocks that it gets */
    blocks_t in;  /**< blocks that it gives; one, if that goes to all */
    operands_t operands;
    char what[160]; /**< for a sentence */
} operation_t;

/** Has the space collectives of this kind, in this form? */
bool kind_suits(kind_t kind, form_t form, const space_t *space);
bool kind_is_reduction(kind_t kind);
/** Draw an operation, and make its buffers. @param[in,out] rng  The same in all members. */
void operation_draw(operation_t *operation, const space_t *space, kind_t kind, form_t form, verify_rng_t *rng,
                    size_t most);
/** Put what this rank gives into the buffers. */
void operation_fill(operation_t *operation);
/** Call it. A blocking one is complete then. A persistent one is not started. @param[out] request  Of other forms. */
void operation_call(operation_t *operation, MPI_Request *request);
/** It is complete: check the result. */
void operation_check(operation_t *operation);
void operation_free(operation_t *operation);
/** The root as a call names it: MPI_ROOT and MPI_PROC_NULL in the root's group of an intercommunicator. */
int operation_root(const operation_t *operation);

/** @name collectives_forms_reduce.c: the parts of these functions for reductions */
/** @{ */
/** Make and free what reductions have in common. */
void reductions_begin(void);
void reductions_end(void);
void reduction_draw(operation_t *operation, verify_rng_t *rng);
void reduction_fill(operation_t *operation);
void reduction_call(operation_t *operation, MPI_Request *request);
void reduction_check(operation_t *operation);
void reduction_free(operation_t *operation);
/** @} */

/** Call a collective in the form of an operation. The last of the arguments is the communicator. */
#define CALL_IN_FORM(form, Name, Iname, request, ...)            \
    (BLOCKING == (form)      ? MPI_##Name(__VA_ARGS__)           \
     : NONBLOCKING == (form) ? MPI_##Iname(__VA_ARGS__, request) \
                             : INIT(Name, __VA_ARGS__, MPI_INFO_NULL, request))

#endif
