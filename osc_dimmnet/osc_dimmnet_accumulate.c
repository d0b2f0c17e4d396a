/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_accumulate.c
 * Accumulates on memory that is mapped here: which elements meet; osc_dimmnet_atomic.h says what becomes of them.
 */
#include "dn_config.h"

#include "osc_dimmnet_cell.h"
#include "osc_dimmnet_message.h"

#include "opal/datatype/opal_datatype_internal.h"

/** Bytes of operands, and of results, that are brought together at a time where memory has gaps. */
#define CHUNK 4096u

/** Bytes of the longest pair. */
#define PAIR_MAX 64u

/**
 * Elements without gaps: the next @p len bytes.
 * @param[in] cells  NULL: nobody else is there.
 * @return false: the layout cuts one, as none of an origin does.
 */
static bool walk_rows(osc_walk_t *walk, osc_cells_t *cells, const uint8_t *operands, uint8_t *results,
                      uint64_t len)
{
    const osc_element_t *element = &walk->element;

    for (uint64_t off = 0, run; off < len; off += run) {
        uint8_t *result = walk->fetches ? results + off : NULL;
        uint64_t at;

        run = dn_prog_next(&walk->target, len - off, &at);
        if (0 != run % element->size) {
            return false;
        }
        uint8_t *to = (uint8_t *) (uintptr_t) at;
        if (NULL != cells && osc_is_word(element, to)) {
            ompi_osc_dimmnet_cells_add(cells, to, operands + off, result, run);
        } else {
            ompi_osc_dimmnet_apply_alone(element, walk->op, to, operands + off, result, run / element->size);
        }
    }
    return true;
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
        there = walk->target;
        (void) dn_prog_gather(packed, &there, walk->element.size);
        spread(&walk->element, pair, packed);
        ompi_osc_dimmnet_apply_alone(&whole, walk->op, pair, value, NULL, 1);
        (void) dn_ompi_prog_start(&inside, whole.type, 1, pair);
        (void) dn_prog_copy(&walk->target, &inside, walk->element.size);
        if (walk->fetches) {
            memcpy(results + off, packed, walk->element.size);
        }
    }
}

/** The same as ompi_osc_dimmnet_walk(), with the guard. */
static int walk_guarded(osc_walk_t *walk, uint64_t left)
{
    const bool pairs = walk->element.size != walk->element.extent;
    const uint64_t most = CHUNK / walk->element.size * walk->element.size;
    osc_cells_t cells = {.element = walk->element, .op = walk->op};
    osc_cells_t *const by_cells = NULL != walk->guard.control && walk->element.words ? &cells : NULL;
    uint8_t operands[CHUNK] __attribute__((aligned(64)));
    /* Before those of a chunk are the results that still waited at the end of the last. */
    uint8_t results[OSC_CELL + CHUNK] __attribute__((aligned(64)));

    for (uint64_t len; 0 != left; left -= len) {
        const uint64_t waited = cells.waiting;

        len = most < left ? most : left;
        if (OSC_NO_OP != walk->op) {
            (void) dn_prog_gather(operands, &walk->origin, len);
        }
        if (pairs) {
            walk_pairs(walk, operands, results, len);
        } else if (!walk_rows(walk, by_cells, operands, results + waited, len)) {
            ompi_osc_dimmnet_cells_end(&cells);
            return OMPI_ERR_BAD_PARAM;
        }
        if (len == left) {
            ompi_osc_dimmnet_cells_end(&cells);
        }
        /* What waits are the last bytes, always. */
        const uint64_t ready = waited + len - cells.waiting;
        if (walk->fetches) {
            (void) dn_prog_scatter(&walk->result, results, ready);
        }
        ompi_osc_dimmnet_cells_rebase(&cells, ready);
    }
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_walk(osc_walk_t *walk, uint64_t len)
{
    int rc = osc_guard_enter(&walk->guard);

    if (OMPI_SUCCESS == rc) {
        rc = walk_guarded(walk, len);
        osc_guard_leave(&walk->guard);
    }
    return rc;
}

/** On memory that is here. */
static int accumulate_here(osc_guard_t guard, const osc_side_t *origin, const osc_side_t *result,
                           const osc_side_t *there, osc_op_t op)
{
    const uint64_t bytes = osc_side_bytes(there);
    osc_walk_t walk;

    walk.element = ompi_osc_dimmnet_element(there->type);
    if (OPAL_LIKELY(walk.element.size == walk.element.extent && osc_side_contiguous(there)
                    && (OSC_NO_OP == op || osc_side_contiguous(origin))
                    && (NULL == result || osc_side_contiguous(result)))) {
        return ompi_osc_dimmnet_apply(&guard, &walk.element, op, osc_side_at(there),
                                      OSC_NO_OP == op ? NULL : osc_side_at(origin),
                                      NULL == result ? NULL : osc_side_at(result), bytes / walk.element.size);
    }
    walk.guard = guard;
    walk.op = op;
    walk.fetches = NULL != result;
    if (!osc_side_start(there, &walk.target) || (OSC_NO_OP != op && !osc_side_start(origin, &walk.origin))
        || (NULL != result && !osc_side_start(result, &walk.result))) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    return ompi_osc_dimmnet_walk(&walk, bytes);
}

/**
 * Find memory of a dynamic window in the address space of this process, with the words that guard it.
 * @param[in,out] there  Its address becomes that here.
 * @return false: it is for the target to do, or to refuse.
 */
static bool is_here(osc_module_t *module, int target, osc_side_t *there)
{
    const uint64_t at = (uintptr_t) there->buf;
    osc_region_t region;
    dn_prog_span_t span;

    if (NULL == module->target[target].control || !ompi_osc_dimmnet_span(there, &span)
        || OMPI_SUCCESS
               != ompi_osc_dimmnet_region(module, target, at + (uint64_t) span.low,
                                          (uint64_t) (span.high - span.low), &region)) {
        return false;
    }
    const uint8_t *here = ompi_osc_dimmnet_region_here(module, target, &region);
    there->buf = NULL == here ? there->buf : here + (at - region.base);
    return NULL != here;
}

/**
 * @param[in] origin   Not looked at by MPI_NO_OP.
 * @param[in] result   NULL: not wanted.
 * @param[in] request  NULL: not wanted.
 */
static int accumulate(osc_module_t *module, int target, const osc_side_t *origin, const osc_side_t *result,
                      osc_side_t *there, MPI_Op handle, ompi_request_t **request)
{
    const osc_target_t *to = &module->target[target];
    const osc_op_t op = ompi_osc_dimmnet_op(handle);
    const uint64_t bytes = osc_side_bytes(there);

    if (OSC_OPS == op) {
        return MPI_ERR_OP;
    }
    if ((OSC_NO_OP != op && bytes != osc_side_bytes(origin))
        || (NULL != result && bytes != osc_side_bytes(result))) {
        return MPI_ERR_TRUNCATE;
    }
    if (0 == bytes || (OSC_NO_OP == op && NULL == result)) {
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(NULL == to->base)
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, there))) {
        return ompi_osc_dimmnet_far_accumulate(module, target, origin, result, NULL, there, op, request);
    }
    return accumulate_here(osc_guard(module, to), origin, result, there, op);
}

int ompi_osc_dimmnet_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                int target, ptrdiff_t target_disp, int target_count,
                                ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate(module, target, &origin, NULL, &there, op, NULL) : rc;
}

int ompi_osc_dimmnet_get_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                    void *result_addr, int result_count, ompi_datatype_t *result_type,
                                    int target, ptrdiff_t target_disp, int target_count,
                                    ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate(module, target, &origin, &result, &there, op, NULL) : rc;
}

int ompi_osc_dimmnet_raccumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                 int target, ptrdiff_t target_disp, int target_count,
                                 ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                 ompi_request_t **request)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    *request = &ompi_request_empty;
    return OMPI_SUCCESS == rc ? accumulate(module, target, &origin, NULL, &there, op, request) : rc;
}

int ompi_osc_dimmnet_rget_accumulate(const void *origin_addr, int origin_count, ompi_datatype_t *origin_type,
                                     void *result_addr, int result_count, ompi_datatype_t *result_type,
                                     int target, ptrdiff_t target_disp, int target_count,
                                     ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                     ompi_request_t **request)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    *request = &ompi_request_empty;
    return OMPI_SUCCESS == rc ? accumulate(module, target, &origin, &result, &there, op, request) : rc;
}

int ompi_osc_dimmnet_fetch_and_op(const void *origin_addr, void *result_addr, ompi_datatype_t *type,
                                  int target, ptrdiff_t target_disp, MPI_Op op, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, 1, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    uint8_t *at = osc_side_at(&there);
    /* The counter that everybody has: by the shortest way. It is a word for all who come the long one, too. */
    if (OPAL_LIKELY(MPI_SUM == op && NULL != module->target[target].base
                    && sizeof(uint64_t) == type->super.size && 32 > type->super.id
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
    return accumulate(module, target, &origin, &result, &there, op, NULL);
}

int ompi_osc_dimmnet_compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                                      ompi_datatype_t *type, int target, ptrdiff_t target_disp,
                                      ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, 1, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    const osc_element_t element = ompi_osc_dimmnet_element(type);
    if (OPAL_UNLIKELY(!element.words || NULL == element.type)) {
        return MPI_ERR_TYPE;
    }
    if (OPAL_UNLIKELY(NULL == module->target[target].base)
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, &there))) {
        const osc_side_t origin = {origin_addr, 1, type};
        const osc_side_t result = {result_addr, 1, type};

        return ompi_osc_dimmnet_far_accumulate(module, target, &origin, &result, compare_addr, &there,
                                               OSC_REPLACE, NULL);
    }
    const osc_guard_t guard = osc_guard(module, &module->target[target]);
    return ompi_osc_dimmnet_compare(&guard, &element, osc_side_at(&there), origin_addr, compare_addr,
                                    result_addr);
}
