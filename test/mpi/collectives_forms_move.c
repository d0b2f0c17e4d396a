/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_forms_move.c
 * Operations; and those that only move data.
 *
 * Such an operation moves blocks from ranks to ranks. What a block holds follows from the operation, the two ranks, and how many blocks
 * have gone between them before. A block that goes to all ranks is the same for all.
 */
#include "dn_config.h"

#include "collectives_forms.h"
#include "persistent.h"

#include <stdio.h>
#include <stdlib.h>

static const peers_t nobody = {0};

/* Indexed by kind_t. */
static const char *const kind_names[] = {
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
    "Reduce",
    "Allreduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Exscan",
};
static const char *const form_names[] = {"blocking", "nonblocking", "persistent"};

bool kind_is_reduction(kind_t kind)
{
    return REDUCE <= kind;
}

static bool is_among_neighbors(kind_t kind)
{
    return NEIGHBOR_ALLGATHER <= kind && NEIGHBOR_ALLTOALLW >= kind;
}

static bool has_root(kind_t kind)
{
    return (BCAST <= kind && SCATTERV >= kind) || REDUCE == kind;
}

/** Goes a block to all ranks? */
static bool is_to_all(kind_t kind)
{
    return BCAST == kind || ALLGATHER == kind || ALLGATHERV == kind || NEIGHBOR_ALLGATHER == kind
           || NEIGHBOR_ALLGATHERV == kind;
}

/** Has each block a length of its own? */
static bool has_lengths(kind_t kind)
{
    return GATHERV == kind || SCATTERV == kind || ALLGATHERV == kind || ALLTOALLV == kind || ALLTOALLW == kind
           || NEIGHBOR_ALLGATHERV == kind || NEIGHBOR_ALLTOALLV == kind || NEIGHBOR_ALLTOALLW == kind;
}

bool kind_suits(kind_t kind, form_t form, const space_t *space)
{
    if (is_among_neighbors(kind)) {
        return space->has_topology;
    }
    if (space->inter) {
        /* Blocking ones with lengths end with MPI_ERR_TRUNCATE in Open MPI 4.1. */
        return REDUCE_SCATTER > kind && !has_lengths(kind);
    }
    /* There Open MPI 4.1 retains as many types as the rank has neighbours, not as there are ranks. */
    return ALLTOALLW != kind || BLOCKING == form || !space->has_topology;
}

static bool is_by_types(kind_t kind)
{
    return ALLTOALLW == kind || NEIGHBOR_ALLTOALLW == kind;
}

/** @name Blocks */
/** @{ */
/** What block @p i is called. @param[in] gives  It is a block that this rank gives. */
static uint64_t key_of(const operation_t *operation, const peers_t *peers, int i, bool gives)
{
    const space_t *space = operation->space;
    const uint64_t own = space_name(space, space->rank, false);
    const bool to_all = is_to_all(operation->kind);
    const uint64_t id = operation->id + operation->start;
    uint64_t before = 0;

    if (to_all && gives) {
        return verify_key(id, own, 0, 0);
    }
    const uint64_t peer = space_name(space, peers->rank[i], true);
    if (to_all) {
        return verify_key(id, peer, 0, 0);
    }
    for (int k = 0; k < i; k++) {
        before += peers->rank[k] == peers->rank[i];
    }
    return gives ? verify_key(id, own, peer, before) : verify_key(id, peer, own, before);
}

/** Bytes of a block. Both of its ranks draw the same; in place, two ranks give each other as many. */
static size_t bytes_of(const operation_t *operation, const peers_t *peers, int i, bool gives)
{
    if (!has_lengths(operation->kind)) {
        return operation->bytes;
    }
    const uint64_t key = key_of(operation, peers, i, gives);
    const uint64_t back =
        operation->all_in_place && !is_to_all(operation->kind) ? key_of(operation, peers, i, !gives) : key;
    verify_rng_t rng = {.state = key < back ? key : back};
    const uint64_t units = operation->bytes / LAYOUT_UNIT;
    /* Mostly any lengths, many of them 0; sometimes all are the same. */
    return 0 == operation->id % 5       ? units * LAYOUT_UNIT
           : 0 == verify_below(&rng, 3) ? 0
                                        : verify_below(&rng, units + 1) * LAYOUT_UNIT;
}

static void make_blocks(operation_t *operation, verify_rng_t *rng, bool gives)
{
    static const peers_t one = {.count = 1};
    const peers_t *peers = gives ? operation->gives : operation->gets;
    const bool is_one = gives && is_to_all(operation->kind);
    const bool apart = has_lengths(operation->kind) && (1 != peers->count || !has_root(operation->kind));
    size_t bytes[MOST_PEERS] = {operation->bytes};

    if (is_one) {
        peers = &one;
    }
    for (int i = 0; i < peers->count; i++) {
        bytes[i] = bytes_of(operation, peers, i, gives);
    }
    blocks_make(gives ? &operation->in : &operation->out, rng,
                is_by_types(operation->kind) ? BLOCKS_BY_TYPE
                : apart                      ? BLOCKS_APART
                                             : BLOCKS_TOGETHER,
                peers->count, bytes);
}

/** Who gives to this rank, and who gets from it. */
static void find_peers(operation_t *operation)
{
    const space_t *space = operation->space;
    const peers_t *root = &operation->root_only;
    const kind_t kind = operation->kind;
    const bool scatters = BCAST == kind || SCATTER == kind || SCATTERV == kind;

    operation->root_only = (peers_t){.count = 1, .rank = {operation->root}};
    operation->gets = operation->gives = &space->all;
    if (is_among_neighbors(kind)) {
        operation->gets = &space->from;
        operation->gives = &space->to;
    } else if (has_root(kind)) {
        const bool meets_root =
            space->inter ? space->group != operation->root_group : BCAST != kind || !operation->is_root;
        const peers_t *one = meets_root ? root : &nobody;
        const peers_t *all = operation->is_root ? &space->all : &nobody;
        operation->gets = scatters ? one : all;
        operation->gives = scatters ? all : one;
    }
}

static void moves_draw(operation_t *operation)
{
    const uint64_t salt = space_name(operation->space, operation->space->rank, false);
    verify_rng_t of_out = {.state = verify_key(operation->id, salt, 0, 1)};
    verify_rng_t of_in = {.state = verify_key(operation->id, salt, 0, 2)};

    if (ALLGATHERV == operation->kind) {
        /* coll/tuned multiplies the size of the type that is sent with the counts that are received: so both types have the same size. */
        of_in = of_out;
    } else if (BCAST == operation->kind) {
        /* coll/tuned may halve the number of elements: so all ranks have the same type. */
        of_in.state = of_out.state = operation->id;
    }
    find_peers(operation);
    make_blocks(operation, &of_out, false);
    make_blocks(operation, &of_in, true);
}

static void moves_fill(operation_t *operation)
{
    const kind_t kind = operation->kind;
    const bool in_out = ALLTOALL == kind || ALLTOALLV == kind || ALLTOALLW == kind;
    const int own = operation->space->rank;

    blocks_clear(&operation->in);
    blocks_clear(&operation->out);
    for (int i = 0; i < operation->in.count; i++) {
        blocks_put(&operation->in, i, key_of(operation, operation->gives, i, true));
    }
    for (int i = 0; i < operation->out.count && operation->in_place && in_out; i++) {
        blocks_put(&operation->out, i, key_of(operation, operation->gives, i, true));
    }
    if (operation->in_place && !in_out && SCATTER != kind && SCATTERV != kind) {
        blocks_put(&operation->out, own, key_of(operation, operation->gets, own, false));
    }
}

static void moves_check(operation_t *operation)
{
    const kind_t kind = operation->kind;
    const bool gets_nothing = operation->in_place && (SCATTER == kind || SCATTERV == kind);

    for (int i = 0; i < operation->out.count; i++) {
        if (gets_nothing || MPI_PROC_NULL == operation->gets->rank[i]) {
            blocks_check_unwritten(&operation->out, i, operation->what);
        } else {
            blocks_check(&operation->out, i, key_of(operation, operation->gets, i, false), operation->what);
        }
    }
    for (int i = 0; i < operation->in.count; i++) {
        blocks_check(&operation->in, i, key_of(operation, operation->gives, i, true), operation->what);
    }
}
/** @} */

/** @name Calls */
/** @{ */
int operation_root(const operation_t *operation)
{
    if (!operation->space->inter) {
        return operation->root;
    }
    return operation->is_root                                 ? MPI_ROOT
           : operation->space->group == operation->root_group ? MPI_PROC_NULL
                                                              : operation->root;
}

/** Elements of a block, if all have the same, or there is only one. */
static int count_of(const blocks_t *blocks)
{
    return BLOCKS_APART == blocks->way ? blocks->counts[0] : blocks->unit.count;
}

static void call_rooted(operation_t *operation, MPI_Request *request)
{
    const blocks_t *in = &operation->in;
    const blocks_t *out = &operation->out;
    const blocks_t *of_bcast = operation->is_root ? in : out;
    const bool gathers = GATHER == operation->kind || GATHERV == operation->kind;
    void *from = operation->in_place && gathers ? MPI_IN_PLACE : in->memory;
    void *to = operation->in_place && !gathers ? MPI_IN_PLACE : out->memory;
    const int root = operation_root(operation);
    MPI_Comm comm = operation->space->comm;

    switch (operation->kind) {
    case BCAST:
        CALL_IN_FORM(operation->form, Bcast, Ibcast, request, of_bcast->memory, of_bcast->unit.count,
                     of_bcast->unit.type, root, comm);
        break;
    case GATHER:
        CALL_IN_FORM(operation->form, Gather, Igather, request, from, count_of(in), in->unit.type, to,
                     count_of(out), out->unit.type, root, comm);
        break;
    case GATHERV:
        CALL_IN_FORM(operation->form, Gatherv, Igatherv, request, from, count_of(in), in->unit.type, to,
                     out->counts, out->starts, out->unit.type, root, comm);
        break;
    case SCATTER:
        CALL_IN_FORM(operation->form, Scatter, Iscatter, request, from, count_of(in), in->unit.type, to,
                     count_of(out), out->unit.type, root, comm);
        break;
    default:
        CALL_IN_FORM(operation->form, Scatterv, Iscatterv, request, from, in->counts, in->starts,
                     in->unit.type, to, count_of(out), out->unit.type, root, comm);
        break;
    }
}

static void call_of_all(operation_t *operation, MPI_Request *request)
{
    const blocks_t *in = &operation->in;
    const blocks_t *out = &operation->out;
    void *from = operation->in_place ? MPI_IN_PLACE : in->memory;
    MPI_Comm comm = operation->space->comm;

    switch (operation->kind) {
    case ALLGATHER:
        CALL_IN_FORM(operation->form, Allgather, Iallgather, request, from, count_of(in), in->unit.type,
                     out->memory, count_of(out), out->unit.type, comm);
        break;
    case ALLGATHERV:
        CALL_IN_FORM(operation->form, Allgatherv, Iallgatherv, request, from, count_of(in), in->unit.type,
                     out->memory, out->counts, out->starts, out->unit.type, comm);
        break;
    case ALLTOALL:
        CALL_IN_FORM(operation->form, Alltoall, Ialltoall, request, from, count_of(in), in->unit.type,
                     out->memory, count_of(out), out->unit.type, comm);
        break;
    case ALLTOALLV:
        CALL_IN_FORM(operation->form, Alltoallv, Ialltoallv, request, from, in->counts, in->starts,
                     in->unit.type, out->memory, out->counts, out->starts, out->unit.type, comm);
        break;
    default:
        CALL_IN_FORM(operation->form, Alltoallw, Ialltoallw, request, from, in->counts, in->starts, in->types,
                     out->memory, out->counts, out->starts, out->types, comm);
        break;
    }
}

static void call_among_neighbors(operation_t *operation, MPI_Request *request)
{
    const blocks_t *in = &operation->in;
    const blocks_t *out = &operation->out;
    MPI_Comm comm = operation->space->comm;

    switch (operation->kind) {
    case NEIGHBOR_ALLGATHER:
        CALL_IN_FORM(operation->form, Neighbor_allgather, Ineighbor_allgather, request, in->memory,
                     count_of(in), in->unit.type, out->memory, count_of(out), out->unit.type, comm);
        break;
    case NEIGHBOR_ALLGATHERV:
        CALL_IN_FORM(operation->form, Neighbor_allgatherv, Ineighbor_allgatherv, request, in->memory,
                     count_of(in), in->unit.type, out->memory, out->counts, out->starts, out->unit.type,
                     comm);
        break;
    case NEIGHBOR_ALLTOALL:
        CALL_IN_FORM(operation->form, Neighbor_alltoall, Ineighbor_alltoall, request, in->memory,
                     count_of(in), in->unit.type, out->memory, count_of(out), out->unit.type, comm);
        break;
    case NEIGHBOR_ALLTOALLV:
        CALL_IN_FORM(operation->form, Neighbor_alltoallv, Ineighbor_alltoallv, request, in->memory,
                     in->counts, in->starts, in->unit.type, out->memory, out->counts, out->starts,
                     out->unit.type, comm);
        break;
    default:
        CALL_IN_FORM(operation->form, Neighbor_alltoallw, Ineighbor_alltoallw, request, in->memory,
                     in->counts, in->places, in->types, out->memory, out->counts, out->places, out->types,
                     comm);
        break;
    }
}

void operation_call(operation_t *operation, MPI_Request *request)
{
    if (BARRIER == operation->kind) {
        CALL_IN_FORM(operation->form, Barrier, Ibarrier, request, operation->space->comm);
    } else if (kind_is_reduction(operation->kind)) {
        reduction_call(operation, request);
    } else if (is_among_neighbors(operation->kind)) {
        call_among_neighbors(operation, request);
    } else if (has_root(operation->kind)) {
        call_rooted(operation, request);
    } else {
        call_of_all(operation, request);
    }
}
/** @} */

/** Draw bytes about a length at which another way is chosen, or any. */
static size_t draw_bytes(verify_rng_t *rng, size_t most)
{
    enum { ABOUT = 8 };
    static const size_t lengths[] = {56, 112, 128, 224, 256, 512, 1024, 4096, 8192, 16384, 65536};
    const size_t length = lengths[verify_below(rng, sizeof(lengths) / sizeof(lengths[0]))];
    const size_t bytes = length - ABOUT + verify_below(rng, 2 * ABOUT + 1);

    switch (verify_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
        return bytes < most ? bytes : most;
    default:
        return verify_size(rng, 4 * ABOUT * ABOUT);
    }
}

void operation_draw(operation_t *operation, const space_t *space, kind_t kind, form_t form, verify_rng_t *rng,
                    size_t most)
{
    /* With lengths and in place, the nonblocking alltoalls of Open MPI 4.1 write over what they still send. */
    const bool may_be_in_place = !space->inter && !is_among_neighbors(kind) && BARRIER != kind
                                 && BCAST != kind
                                 && (BLOCKING == form || (ALLTOALLV != kind && ALLTOALLW != kind));

    *operation = (operation_t){.space = space, .kind = kind, .form = form, .id = verify_random(rng)};
    operation->root_group = space->inter ? (int) verify_below(rng, 2) : 0;
    const int ranks = space->group == operation->root_group ? space->ranks : space->all.count;
    operation->root = (int) (verify_random(rng) % (uint64_t) ranks);
    operation->is_root = space->group == operation->root_group && space->rank == operation->root;
    operation->all_in_place = 0 == verify_below(rng, 3) && may_be_in_place;
    operation->in_place = operation->all_in_place && (!has_root(kind) || operation->is_root);
    operation->bytes = draw_bytes(rng, most);
    /* Lengths are of units; so are half of the others, which then may have gaps. */
    if (0 == verify_below(rng, 2) || has_lengths(kind)) {
        operation->bytes = operation->bytes / LAYOUT_UNIT * LAYOUT_UNIT;
    }
    snprintf(operation->what, sizeof(operation->what),
             "%s %s%s of up to %zu B, root %d, communicator %d: a byte is wrong", form_names[form],
             kind_names[kind], operation->all_in_place ? " in place" : "", operation->bytes, operation->root,
             space->number);
    if (kind_is_reduction(kind)) {
        reduction_draw(operation, rng);
    } else if (BARRIER != kind) {
        moves_draw(operation);
    }
}

void operation_fill(operation_t *operation)
{
    if (kind_is_reduction(operation->kind)) {
        reduction_fill(operation);
    } else if (BARRIER != operation->kind) {
        moves_fill(operation);
    }
}

void operation_check(operation_t *operation)
{
    if (kind_is_reduction(operation->kind)) {
        reduction_check(operation);
    } else if (BARRIER != operation->kind) {
        moves_check(operation);
    }
    operation->start++;
}

void operation_free(operation_t *operation)
{
    if (kind_is_reduction(operation->kind)) {
        reduction_free(operation);
    } else if (BARRIER != operation->kind) {
        blocks_free(&operation->in, operation->what);
        blocks_free(&operation->out, operation->what);
    }
}
