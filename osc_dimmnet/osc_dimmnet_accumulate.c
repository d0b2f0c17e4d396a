/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_accumulate.c
 * Accumulates on memory that is mapped here: which elements meet; osc_dimmnet_atomic.h says what becomes of them.
 */
#include "dn_config.h"

#include "osc_dimmnet_atomic.h"

#include "opal/datatype/opal_datatype_internal.h"

/** Bytes of operands, and of results, that are brought together at a time where memory has gaps. */
#define CHUNK 4096u

/** Bytes of the longest pair. */
#define PAIR_MAX 64u

/** An accumulate under way. */
typedef struct osc_walk {
    osc_guard_t guard;
    osc_element_t element;
    osc_op_t op;
    bool fetches;
    dn_prog_cursor_t target;
    dn_prog_cursor_t origin;
    dn_prog_cursor_t result;
} osc_walk_t;

/** Elements without gaps: the next @p len bytes. */
static void walk_rows(osc_walk_t *walk, const uint8_t *operands, uint8_t *results, uint64_t len)
{
    for (uint64_t off = 0, run; off < len; off += run) {
        uint64_t at;

        run = dn_prog_next(&walk->target, len - off, &at);
        ompi_osc_dimmnet_apply(walk->guard, &walk->element, walk->op, (void *) (uintptr_t) at, operands + off,
                               walk->fetches ? results + off : NULL, run / walk->element.size);
    }
}

/** Copy a pair between bytes side by side and memory with its gap. */
static void spread(const osc_element_t *element, void *pair, const void *packed)
{
    dn_prog_cursor_t inside;

    (void) dn_ompi_prog_start(&inside, element->type, 1, pair);
    (void) dn_prog_scatter(&inside, packed, element->size);
}

/**
 * Pairs with gaps: the next @p len bytes, one pair after the other. A pair is of several pieces, which change together,
 * also when it is only read or replaced.
 */
static void walk_pairs(osc_walk_t *walk, const uint8_t *operands, uint8_t *results, uint64_t len)
{
    const osc_guard_t alone = {NULL};
    osc_element_t whole = walk->element;
    uint8_t packed[PAIR_MAX];
    uint8_t value[PAIR_MAX] __attribute__((aligned(64)));
    uint8_t pair[PAIR_MAX] __attribute__((aligned(64)));
    dn_prog_cursor_t there, inside;

    whole.size = whole.extent;
    for (uint64_t off = 0; off < len; off += walk->element.size) {
        if (OSC_NO_OP != walk->op) {
            spread(&walk->element, value, operands + off);
        }
        osc_guard_enter(&walk->guard);
        there = walk->target;
        (void) dn_prog_gather(packed, &there, walk->element.size);
        spread(&walk->element, pair, packed);
        ompi_osc_dimmnet_apply(alone, &whole, walk->op, pair, value, NULL, 1);
        (void) dn_ompi_prog_start(&inside, whole.type, 1, pair);
        (void) dn_prog_copy(&walk->target, &inside, walk->element.size);
        osc_guard_leave(&walk->guard);
        if (walk->fetches) {
            memcpy(results + off, packed, walk->element.size);
        }
    }
}

/** All elements of an accumulate, chunk by chunk. */
static void walk_all(osc_walk_t *walk)
{
    const bool pairs = walk->element.size != walk->element.extent;
    const uint64_t most = CHUNK / walk->element.size * walk->element.size;
    uint8_t operands[CHUNK] __attribute__((aligned(64)));
    uint8_t results[CHUNK] __attribute__((aligned(64)));

    for (uint64_t left = dn_prog_left(&walk->target), len; 0 != left; left -= len) {
        len = most < left ? most : left;
        if (OSC_NO_OP != walk->op) {
            (void) dn_prog_gather(operands, &walk->origin, len);
        }
        if (pairs) {
            walk_pairs(walk, operands, results, len);
        } else {
            walk_rows(walk, operands, results, len);
        }
        if (walk->fetches) {
            (void) dn_prog_scatter(&walk->result, results, len);
        }
    }
}

/**
 * @param[in] origin  Not looked at by MPI_NO_OP.
 * @param[in] result  NULL: not wanted.
 */
static int accumulate(const osc_module_t *module, const osc_target_t *to, const osc_side_t *origin,
                      const osc_side_t *result, const osc_side_t *there, MPI_Op op)
{
    const uint64_t bytes = osc_side_bytes(there);
    osc_walk_t walk;
    bool together;

    walk.op = ompi_osc_dimmnet_op(op);
    walk.fetches = NULL != result;
    if (OSC_OPS == walk.op) {
        return MPI_ERR_OP;
    }
    if ((OSC_NO_OP != walk.op && bytes != osc_side_bytes(origin))
        || (NULL != result && bytes != osc_side_bytes(result))) {
        return MPI_ERR_TRUNCATE;
    }
    walk.element = ompi_osc_dimmnet_element(there->type);
    walk.guard = osc_guard(module, to);
    if (0 == bytes || (OSC_NO_OP == walk.op && NULL == result)) {
        return OMPI_SUCCESS;
    }
    together = walk.element.size == walk.element.extent && osc_side_contiguous(there)
               && (OSC_NO_OP == walk.op || osc_side_contiguous(origin))
               && (NULL == result || osc_side_contiguous(result));
    if (OPAL_LIKELY(together)) {
        ompi_osc_dimmnet_apply(walk.guard, &walk.element, walk.op, osc_side_at(there),
                               OSC_NO_OP == walk.op ? NULL : osc_side_at(origin),
                               NULL == result ? NULL : osc_side_at(result), bytes / walk.element.size);
        return OMPI_SUCCESS;
    }
    if (!osc_side_start(there, &walk.target)
        || (OSC_NO_OP != walk.op && !osc_side_start(origin, &walk.origin))
        || (NULL != result && !osc_side_start(result, &walk.result))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    walk_all(&walk);
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                int target, ptrdiff_t target_disp, int target_count,
                                ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate(module, &module->target[target], &origin, NULL, &there, op) : rc;
}

int ompi_osc_dimmnet_get_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                    void *result_addr, int result_count, ompi_datatype_t *result_type,
                                    int target, ptrdiff_t target_disp, int target_count,
                                    ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate(module, &module->target[target], &origin, &result, &there, op)
                              : rc;
}

int ompi_osc_dimmnet_raccumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                 int target, ptrdiff_t target_disp, int target_count,
                                 ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                 ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return ompi_osc_dimmnet_accumulate(origin_addr, origin_count, origin_type, target, target_disp,
                                       target_count, target_type, op, win);
}

int ompi_osc_dimmnet_rget_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                     void *result_addr, int result_count, ompi_datatype_t *result_type,
                                     int target, ptrdiff_t target_disp, int target_count,
                                     ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                     ompi_request_t **request)
{
    *request = &ompi_request_empty;
    return ompi_osc_dimmnet_get_accumulate(origin_addr, origin_count, origin_type, result_addr, result_count,
                                           result_type, target, target_disp, target_count, target_type, op,
                                           win);
}

int ompi_osc_dimmnet_fetch_and_op(const void *origin_addr, void *result_addr, ompi_datatype_t *type,
                                  int target, ptrdiff_t target_disp, MPI_Op op, ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, 1, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    uint8_t *at = osc_side_at(&there);
    /* The counter that everybody has: by the shortest way. It is a word for all who come the long one, too. */
    if (OPAL_LIKELY(MPI_SUM == op && sizeof(uint64_t) == type->super.size && 32 > type->super.id
                    && 0 != (OSC_WORD_IDS & 1u << type->super.id)
                    && 0 == ((uintptr_t) at & (sizeof(uint64_t) - 1)))) {
        uint64_t word;

        memcpy(&word, origin_addr, sizeof(word));
        word = __atomic_fetch_add((uint64_t *) (void *) at, word, __ATOMIC_SEQ_CST);
        memcpy(result_addr, &word, sizeof(word));
        return OMPI_SUCCESS;
    }
    const osc_side_t origin = {origin_addr, 1, type};
    const osc_side_t result = {result_addr, 1, type};
    return accumulate(module, &module->target[target], &origin, &result, &there, op);
}

int ompi_osc_dimmnet_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                                      ompi_datatype_t *type, int target, ptrdiff_t target_disp,
                                      ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);
    uint64_t compare = 0;
    uint64_t value = 0;
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, 1, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    const osc_element_t element = ompi_osc_dimmnet_element(type);
    uint8_t *at = osc_side_at(&there);
    if (OPAL_UNLIKELY(!element.words)) {
        return MPI_ERR_TYPE;
    }
    memcpy(&compare, compare_addr, element.size);
    memcpy(&value, origin_addr, element.size);
    if (OPAL_LIKELY(osc_is_word(&element, at))) {
        value = ompi_osc_dimmnet_swap_word(at, element.size, compare, value);
    } else {
        const osc_guard_t guard = osc_guard(module, &module->target[target]);
        uint64_t old = 0;

        osc_guard_enter(&guard);
        memcpy(&old, at, element.size);
        if (old == compare) {
            memcpy(at, &value, element.size);
        }
        osc_guard_leave(&guard);
        value = old;
    }
    memcpy(result_addr, &value, element.size);
    return OMPI_SUCCESS;
}
