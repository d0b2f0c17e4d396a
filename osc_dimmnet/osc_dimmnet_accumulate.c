/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_accumulate.c
 * Accumulates on memory that is mapped here. This file finds the elements of origin and target; dn_acc.h changes them.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** The guard of a target for an operation of this process. A holder of the exclusive lock has the target for itself, unless threads
 * share it. */
static inline const dn_guard_t *guard_of(const osc_module_t *module, int target)
{
    static const dn_guard_t none;
    const bool alone = 0 != (module->target[target].epochs & OSC_EXCLUSIVE) && !module->threads;

    return OPAL_UNLIKELY(alone) ? &none : &module->rma.target[target].guard.super;
}

/** Accumulate on memory that is mapped here. */
static int accumulate_here(const dn_guard_t *guard, const osc_side_t *origin, const osc_side_t *result,
                           const osc_side_t *there, dn_acc_op_t op)
{
    const dn_element_t element = ompi_osc_dimmnet_element(osc_basic(there->type));
    const uint64_t bytes = osc_side_bytes(there);

    if (OPAL_LIKELY(!dn_element_has_gaps(&element) && osc_side_contiguous(there)
                    && (DN_ACC_NO_OP == op || osc_side_contiguous(origin))
                    && (NULL == result || osc_side_contiguous(result)))) {
        return osc_acc_error(dn_acc_apply(guard, &element, op, osc_side_at(there),
                                          DN_ACC_NO_OP == op ? NULL : osc_side_at(origin),
                                          NULL == result ? NULL : osc_side_at(result), bytes / element.size));
    }
    dn_acc_walk_t walk = {.guard = guard, .element = element, .op = op, .fetches = NULL != result};
    if (!osc_side_start(there, &walk.target) || (DN_ACC_NO_OP != op && !osc_side_start(origin, &walk.origin))
        || (NULL != result && !osc_side_start(result, &walk.result))) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    return osc_acc_error(dn_acc_walk(&walk, bytes));
}

/**
 * Find memory of a dynamic window in the address space of this process. The target's control part is mapped here, too.
 * @param[in,out] there  Its address becomes the address here.
 * @return false: the memory is not mapped here: the target carries out the operation, or refuses it.
 */
static bool is_here(osc_module_t *module, int target, osc_side_t *there)
{
    const uint64_t at = (uintptr_t) there->buf;
    dn_rma_region_t region;
    dn_prog_span_t span;

    if (NULL == module->rma.target[target].control || !ompi_osc_dimmnet_span(there, &span)
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
 * Accumulates of all sorts. This function also finds what is wrong with an accumulate.
 * @param[in]  origin   MPI_NO_OP does not use it.
 * @param[in]  result   NULL: the user does not want the old values.
 * @param[out] request  NULL: the user wants no request.
 */
static int __attribute__((noinline))
accumulate_any(osc_module_t *module, int target, osc_side_t origin, const osc_side_t *result, ptrdiff_t disp,
               size_t count, ompi_datatype_t *type, MPI_Op handle, ompi_request_t **request)
{
    const dn_acc_op_t op = osc_op(handle);
    osc_side_t there;
    const int rc = osc_reach(module, target, disp, count, type, &there);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    const uint64_t bytes = osc_side_bytes(&there);
    if (DN_ACC_OPS == op) {
        return MPI_ERR_OP;
    }
    if ((DN_ACC_NO_OP != op && bytes != osc_side_bytes(&origin))
        || (NULL != result && bytes != osc_side_bytes(result))) {
        return MPI_ERR_TRUNCATE;
    }
    if (0 == bytes || (DN_ACC_NO_OP == op && NULL == result)) {
        return OMPI_SUCCESS;
    }
    if (NULL == module->target[target].base
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, &there))) {
        return ompi_osc_dimmnet_far_accumulate(module, target, &origin, result, NULL, &there, op, request);
    }
    return accumulate_here(guard_of(module, target), &origin, result, &there, op);
}

/**
 * The address of the first element of an accumulate on plain elements, in memory that is mapped here.
 * @return NULL: the memory is not mapped here, or the accumulate is wrong: accumulate_any() finds out.
 */
static inline uint8_t *plain_at(const osc_module_t *module, int target, ptrdiff_t disp, size_t count,
                                const dn_element_t *element)
{
    const osc_target_t *to = &module->target[target];
    uint64_t bytes;
    uint64_t at;

    return OPAL_LIKELY(0 != (to->epochs | module->epochs) && NULL != to->base
                       && !__builtin_mul_overflow((uint64_t) count, (uint64_t) element->size, &bytes)
                       && 0 != bytes && !__builtin_mul_overflow((uint64_t) disp, to->unit, &at)
                       && at <= to->size && bytes <= to->size - at)
               ? to->base + at
               : NULL;
}

/** Has a side this count and this datatype? */
static inline bool is_same(const osc_side_t *side, size_t count, const ompi_datatype_t *type)
{
    return type == side->type && count == side->count;
}

/**
 * A frequent accumulate: an addition to one word of 8 bytes, such as a shared counter. dn_acc_apply() changes it as a word, too, so the two
 * may meet on it.
 * @return false: the accumulate is another one, or the gate is closed.
 */
static inline bool add_at_once(const dn_guard_t *guard, const dn_element_t *element, dn_acc_op_t op,
                               uint8_t *at, const void *operand, void *result, size_t count)
{
    uint64_t word;

    if (DN_ACC_SUM != op || sizeof(word) != element->size || 1 != count || !dn_element_is_word(element, at)
        || !dn_gate_enter(guard)) {
        return false;
    }
    memcpy(&word, operand, sizeof(word));
    word = dn_fetch_add_seq_cst((uint64_t *) (void *) at, word);
    dn_gate_leave(guard);
    if (NULL != result) {
        memcpy(result, &word, sizeof(word));
    }
    return true;
}

/** All accumulates, with the arguments of accumulate_any(). Most accumulates are on numbers of one sort that lie together: these take a
 * short way. */
static inline __attribute__((always_inline)) int
accumulate(osc_module_t *module, int target, osc_side_t origin, const osc_side_t *result, ptrdiff_t disp,
           size_t count, ompi_datatype_t *type, MPI_Op handle, ompi_request_t **request)
{
    const dn_element_t *element = osc_plain(type);
    const dn_acc_op_t op = osc_op(handle);

    if (OPAL_LIKELY(NULL != element && DN_ACC_OPS != op
                    && (is_same(&origin, count, type) || DN_ACC_NO_OP == op)
                    && (NULL == result || is_same(result, count, type)))) {
        void *kept = NULL == result ? NULL : (void *) (uintptr_t) result->buf;
        uint8_t *at = plain_at(module, target, disp, count, element);

        if (OPAL_LIKELY(NULL != at)) {
            const dn_guard_t *guard = guard_of(module, target);

            return add_at_once(guard, element, op, at, origin.buf, kept, count)
                       ? OMPI_SUCCESS
                       : osc_acc_error(dn_acc_apply(guard, element, op, at, origin.buf, kept, count));
        }
    }
    if (NULL == result) {
        return accumulate_any(module, target, origin, NULL, disp, count, type, handle, request);
    }
    /* The result is copied here, so that the compiler keeps the caller's result in registers on the short way. */
    const osc_side_t wanted = *result;
    return accumulate_any(module, target, origin, &wanted, disp, count, type, handle, request);
}

int ompi_osc_dimmnet_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                ompi_win_t *win)
{
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};

    return accumulate(osc_module(win), target, origin, NULL, target_disp, (size_t) target_count, target_type,
                      op, NULL);
}

int ompi_osc_dimmnet_get_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                    ompi_datatype_t *origin_type, void *result_addr,
                                    dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                    ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                    ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};

    return accumulate(osc_module(win), target, origin, &result, target_disp, (size_t) target_count,
                      target_type, op, NULL);
}

int ompi_osc_dimmnet_raccumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                 ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                 dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                 ompi_win_t *win, ompi_request_t **request)
{
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};

    *request = &ompi_request_empty;
    return accumulate(osc_module(win), target, origin, NULL, target_disp, (size_t) target_count, target_type,
                      op, request);
}

int ompi_osc_dimmnet_rget_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                     ompi_datatype_t *origin_type, void *result_addr,
                                     dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                     ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                     ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                     ompi_request_t **request)
{
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};

    *request = &ompi_request_empty;
    return accumulate(osc_module(win), target, origin, &result, target_disp, (size_t) target_count,
                      target_type, op, request);
}

int ompi_osc_dimmnet_fetch_and_op(const void *origin_addr, void *result_addr, ompi_datatype_t *type,
                                  int target, ptrdiff_t target_disp, MPI_Op op, ompi_win_t *win)
{
    const osc_side_t origin = {origin_addr, 1, type};
    const osc_side_t result = {result_addr, 1, type};

    return accumulate(osc_module(win), target, origin, &result, target_disp, 1, type, op, NULL);
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
    ompi_datatype_t *basic = osc_basic(type);
    const dn_element_t *element = NULL == basic ? NULL : osc_plain(basic);
    if (OPAL_UNLIKELY(NULL == element || !dn_element_has_words(element))) {
        return MPI_ERR_TYPE;
    }
    if (OPAL_UNLIKELY(NULL == module->target[target].base)
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, &there))) {
        const osc_side_t origin = {origin_addr, 1, type};
        const osc_side_t result = {result_addr, 1, type};

        return ompi_osc_dimmnet_far_accumulate(module, target, &origin, &result, compare_addr, &there,
                                               DN_ACC_REPLACE, NULL);
    }
    return osc_acc_error(dn_acc_swap(guard_of(module, target), element, osc_side_at(&there), origin_addr,
                                     compare_addr, result_addr));
}
