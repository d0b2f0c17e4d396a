/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_forms_reduce.c
 * Reductions, with a sum, and with an operation that does not commute: elements are maps x -> a x + b of whole numbers modulo 2^64, which
 * are composed. So all operands, and their order, are in the result.
 */
#include "dn_config.h"

#include "collectives_forms.h"
#include "persistent.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 2, TYPES = 2 }; /* of a map; maps without and with a word between them */

static MPI_Op compose_op;
static MPI_Datatype map_types[TYPES];

typedef struct map {
    uint64_t a, b;
} map_t;

static map_t compose(map_t left, map_t right)
{
    return (map_t){left.a * right.a, left.a * right.b + left.b};
}

static void compose_all(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Aint low, extent;

    MPI_Type_get_extent(*type, &low, &extent);
    for (MPI_Aint i = 0; i < *count; i++) {
        map_t left, right;
        memcpy(&left, (char *) in + i * extent, sizeof(left));
        memcpy(&right, (char *) inout + i * extent, sizeof(right));
        right = compose(left, right);
        memcpy((char *) inout + i * extent, &right, sizeof(right));
    }
}

void reductions_begin(void)
{
    MPI_Datatype map;

    MPI_Op_create(compose_all, 0, &compose_op);
    MPI_Type_contiguous(WORDS, MPI_UINT64_T, &map);
    for (int i = 0; i < TYPES; i++) {
        MPI_Type_create_resized(map, 0, (WORDS + i) * (MPI_Aint) sizeof(uint64_t), &map_types[i]);
        MPI_Type_commit(&map_types[i]);
    }
    MPI_Type_free(&map);
}

void reductions_end(void)
{
    for (int i = 0; i < TYPES; i++) {
        MPI_Type_free(&map_types[i]);
    }
    MPI_Op_free(&compose_op);
}

static bool is_scattered(kind_t kind)
{
    return REDUCE_SCATTER == kind || REDUCE_SCATTER_BLOCK == kind;
}

/** The elements of the result that each rank gets. */
static void draw_parts(operation_t *operation, verify_rng_t *rng, int count)
{
    operands_t *operands = &operation->operands;
    const space_t *space = operation->space;
    const bool alike = REDUCE_SCATTER_BLOCK == operation->kind;
    const int part = count / space->ranks;

    operands->parts = calloc((size_t) space->ranks, sizeof(*operands->parts));
    verify_that(NULL != operands->parts, "no memory for the parts of a reduction");
    for (int i = 0; i < space->ranks; i++) {
        /* Many ranks get nothing. */
        const bool none = 0 == verify_below(rng, 3);
        const int any = (int) verify_below(rng, 2 * (uint64_t) part + 2);
        operands->parts[i] = alike ? part : none ? 0 : any;
        operands->first += i < space->rank ? operands->parts[i] : 0;
        operands->count += operands->parts[i];
    }
    operands->results = operands->parts[space->rank];
}

void reduction_draw(operation_t *operation, verify_rng_t *rng)
{
    operands_t *operands = &operation->operands;
    const int kind_of_type = (int) verify_below(rng, TYPES + 1);

    operands->in_order = TYPES != kind_of_type;
    operands->stride = operands->in_order ? WORDS + kind_of_type : 1;
    operands->type = operands->in_order ? map_types[kind_of_type] : MPI_UINT64_T;
    operands->op = operands->in_order ? compose_op : MPI_SUM;
    const int count = (int) (operation->bytes / sizeof(uint64_t)) / operands->stride;
    if (is_scattered(operation->kind)) {
        draw_parts(operation, rng, count);
    } else {
        operands->count = operands->results = count;
    }
    const size_t bytes = (size_t) (operands->count * operands->stride) * sizeof(uint64_t);
    operands->in = verify_guard_alloc(bytes, 0);
    operands->out = verify_guard_alloc(bytes, 0);
}

void reduction_free(operation_t *operation)
{
    operands_t *operands = &operation->operands;
    const size_t bytes = (size_t) (operands->count * operands->stride) * sizeof(uint64_t);

    verify_guard_free(operands->in, bytes, 0, operation->what);
    verify_guard_free(operands->out, bytes, 0, operation->what);
    free(operands->parts);
}

/** Element @p i that a rank gives; a sum has no b. */
static map_t operand_of(const operation_t *operation, uint64_t name, int i)
{
    const uint64_t id = operation->id + operation->start;

    return (map_t){verify_key(id, name, (uint64_t) i, 0), verify_key(id, name, (uint64_t) i, 1)};
}

static void put_operand(const operands_t *operands, uint64_t *to, int i, map_t map)
{
    uint64_t *element = to + (size_t) i * (size_t) operands->stride;

    element[0] = map.a;
    if (operands->in_order) {
        element[1] = map.b;
    }
}

/** Fail unless element @p i is as expected. */
static void check_operand(const operation_t *operation, const uint64_t *from, int i, map_t map)
{
    const operands_t *operands = &operation->operands;
    const uint64_t *element = from + (size_t) i * (size_t) operands->stride;

    verify_that(map.a == element[0] && (!operands->in_order || map.b == element[1]), operation->what);
}

void reduction_fill(operation_t *operation)
{
    const operands_t *operands = &operation->operands;
    const uint64_t own = space_name(operation->space, operation->space->rank, false);

    for (int i = 0; i < operands->count; i++) {
        put_operand(operands, operands->in, i, operand_of(operation, own, i));
        put_operand(operands, operands->out, i,
                    operation->in_place ? operand_of(operation, own, i) : (map_t){~0u, 0});
    }
}

/** Element @p i of the reduction of the first so many ranks, at least one, that this rank exchanges with. */
static map_t reduce_operands(const operation_t *operation, int ranks, int i)
{
    const space_t *space = operation->space;
    map_t result = operand_of(operation, space_name(space, ranks - 1, true), i);

    for (int rank = ranks - 2; 0 <= rank; rank--) {
        const map_t left = operand_of(operation, space_name(space, rank, true), i);
        if (operation->operands.in_order) {
            result = compose(left, result);
        } else {
            result.a += left.a;
        }
    }
    return result;
}

void reduction_check(operation_t *operation)
{
    const operands_t *operands = &operation->operands;
    const space_t *space = operation->space;
    const uint64_t own = space_name(space, space->rank, false);
    const int ranks = SCAN == operation->kind     ? space->rank + 1
                      : EXSCAN == operation->kind ? space->rank
                                                  : space->all.count;

    for (int i = 0; i < operands->count; i++) {
        check_operand(operation, operands->in, i, operand_of(operation, own, i));
    }
    /* The result of MPI_Exscan is nobody's in the first rank. */
    for (int i = 0; i < operands->results && 0 < ranks && (REDUCE != operation->kind || operation->is_root);
         i++) {
        check_operand(operation, operands->out, i, reduce_operands(operation, ranks, operands->first + i));
    }
}

void reduction_call(operation_t *operation, MPI_Request *request)
{
    const operands_t *operands = &operation->operands;
    const void *in = operation->in_place ? MPI_IN_PLACE : operands->in;
    uint64_t *out = operands->out;
    MPI_Datatype type = operands->type;
    MPI_Op op = operands->op;
    MPI_Comm comm = operation->space->comm;

    switch (operation->kind) {
    case REDUCE:
        CALL_IN_FORM(operation->form, Reduce, Ireduce, request, in, out, operands->count, type, op,
                     operation_root(operation), comm);
        break;
    case ALLREDUCE:
        CALL_IN_FORM(operation->form, Allreduce, Iallreduce, request, in, out, operands->count, type, op,
                     comm);
        break;
    case REDUCE_SCATTER:
        CALL_IN_FORM(operation->form, Reduce_scatter, Ireduce_scatter, request, in, out, operands->parts,
                     type, op, comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        CALL_IN_FORM(operation->form, Reduce_scatter_block, Ireduce_scatter_block, request, in, out,
                     operands->results, type, op, comm);
        break;
    case SCAN:
        CALL_IN_FORM(operation->form, Scan, Iscan, request, in, out, operands->count, type, op, comm);
        break;
    default:
        CALL_IN_FORM(operation->form, Exscan, Iexscan, request, in, out, operands->count, type, op, comm);
        break;
    }
}
