/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_accumulate.c
 * Accumulates on memory that is mapped here: which elements meet; dn_acc.h says what becomes of them.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** On memory that is here. */
static int accumulate_here(const dn_rma_guard_t *guard, const osc_side_t *origin, const osc_side_t *result,
                           const osc_side_t *there, dn_acc_op_t op)
{
    const dn_element_t element = osc_element(osc_basic(there->type));
    const uint64_t bytes = osc_side_bytes(there);

    if (OPAL_LIKELY(!dn_element_has_gaps(&element) && osc_side_contiguous(there)
                    && (DN_ACC_NO_OP == op || osc_side_contiguous(origin))
                    && (NULL == result || osc_side_contiguous(result)))) {
        return osc_acc_error(dn_acc_apply(&guard->super, &element, op, osc_side_at(there),
                                          DN_ACC_NO_OP == op ? NULL : osc_side_at(origin),
                                          NULL == result ? NULL : osc_side_at(result), bytes / element.size));
    }
    dn_acc_walk_t walk = {.guard = &guard->super, .element = element, .op = op, .fetches = NULL != result};
    if (!osc_side_start(there, &walk.target) || (DN_ACC_NO_OP != op && !osc_side_start(origin, &walk.origin))
        || (NULL != result && !osc_side_start(result, &walk.result))) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    return osc_acc_error(dn_acc_walk(&walk, bytes));
}

/**
 * Find memory of a dynamic window in the address space of this process, with the words that guard it.
 * @param[in,out] there  Its address becomes that here.
 * @return false: it is for the target to do, or to refuse.
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
 * @param[in] origin   Not looked at by MPI_NO_OP.
 * @param[in] result   NULL: not wanted.
 * @param[in] request  NULL: not wanted.
 */
static int accumulate_sides(osc_module_t *module, int target, const osc_side_t *origin,
                            const osc_side_t *result, osc_side_t *there, MPI_Op handle,
                            ompi_request_t **request)
{
    const osc_target_t *to = &module->target[target];
    const dn_acc_op_t op = ompi_osc_dimmnet_op(handle);
    const uint64_t bytes = osc_side_bytes(there);

    if (DN_ACC_OPS == op) {
        return MPI_ERR_OP;
    }
    if ((DN_ACC_NO_OP != op && bytes != osc_side_bytes(origin))
        || (NULL != result && bytes != osc_side_bytes(result))) {
        return MPI_ERR_TRUNCATE;
    }
    if (0 == bytes || (DN_ACC_NO_OP == op && NULL == result)) {
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(NULL == to->base)
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, there))) {
        return ompi_osc_dimmnet_far_accumulate(module, target, origin, result, NULL, there, op, request);
    }
    const dn_rma_guard_t guard = osc_guard(module, target);
    return accumulate_here(&guard, origin, result, there, op);
}

int ompi_osc_dimmnet_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate_sides(module, target, &origin, NULL, &there, op, NULL) : rc;
}

int ompi_osc_dimmnet_get_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                    ompi_datatype_t *origin_type, void *result_addr,
                                    dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                    ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                    ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    return OMPI_SUCCESS == rc ? accumulate_sides(module, target, &origin, &result, &there, op, NULL) : rc;
}

int ompi_osc_dimmnet_raccumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                 ompi_datatype_t *origin_type, int target, ptrdiff_t target_disp,
                                 dn_ompi_count_t target_count, ompi_datatype_t *target_type, MPI_Op op,
                                 ompi_win_t *win, ompi_request_t **request)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    *request = &ompi_request_empty;
    return OMPI_SUCCESS == rc ? accumulate_sides(module, target, &origin, NULL, &there, op, request) : rc;
}

int ompi_osc_dimmnet_rget_accumulate(const void *origin_addr, dn_ompi_count_t origin_count,
                                     ompi_datatype_t *origin_type, void *result_addr,
                                     dn_ompi_count_t result_count, ompi_datatype_t *result_type, int target,
                                     ptrdiff_t target_disp, dn_ompi_count_t target_count,
                                     ompi_datatype_t *target_type, MPI_Op op, ompi_win_t *win,
                                     ompi_request_t **request)
{
    osc_module_t *module = osc_module(win);
    const osc_side_t origin = {origin_addr, (size_t) origin_count, origin_type};
    const osc_side_t result = {result_addr, (size_t) result_count, result_type};
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, target_count, target_type, &there);

    *request = &ompi_request_empty;
    return OMPI_SUCCESS == rc ? accumulate_sides(module, target, &origin, &result, &there, op, request) : rc;
}

/** All but the shortest way; out of line, so that its registers are not saved on that. */
static int __attribute__((noinline))
fetch_and_op(osc_module_t *module, int target, const void *origin_addr, void *result_addr,
             ompi_datatype_t *type, osc_side_t *there, MPI_Op op)
{
    const osc_side_t origin = {origin_addr, 1, type};
    const osc_side_t result = {result_addr, 1, type};

    return accumulate_sides(module, target, &origin, &result, there, op, NULL);
}

int ompi_osc_dimmnet_fetch_and_op(const void *origin_addr, void *result_addr, ompi_datatype_t *type,
                                  int target, ptrdiff_t target_disp, MPI_Op op, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const osc_target_t *to = &module->target[target];
    osc_side_t there;
    int rc = osc_reach(module, target, target_disp, 1, type, &there);

    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    uint8_t *at = osc_side_at(&there);
    /* The counter that everybody has: by the shortest way. It is a word for all who come the long one, too. */
    if (OPAL_LIKELY(MPI_SUM == op && NULL != to->base && sizeof(uint64_t) == type->super.size
                    && osc_is_of(type, OSC_WORD_IDS) && 0 == ((uintptr_t) at & (sizeof(uint64_t) - 1)))) {
        const dn_rma_guard_t guard = osc_guard(module, target);
        uint64_t word;

        if (OPAL_LIKELY(dn_gate_enter(&guard.super))) {
            memcpy(&word, origin_addr, sizeof(word));
            word = dn_fetch_add_seq_cst((uint64_t *) (void *) at, word);
            dn_gate_leave(&guard.super);
            memcpy(result_addr, &word, sizeof(word));
            return OMPI_SUCCESS;
        }
    }
    return fetch_and_op(module, target, origin_addr, result_addr, type, &there, op);
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
    const dn_element_t element = osc_element(basic);
    if (OPAL_UNLIKELY(NULL == basic || !dn_element_has_words(&element))) {
        return MPI_ERR_TYPE;
    }
    if (OPAL_UNLIKELY(NULL == module->target[target].base)
        && (MPI_WIN_FLAVOR_DYNAMIC != module->flavor || !is_here(module, target, &there))) {
        const osc_side_t origin = {origin_addr, 1, type};
        const osc_side_t result = {result_addr, 1, type};

        return ompi_osc_dimmnet_far_accumulate(module, target, &origin, &result, compare_addr, &there,
                                               DN_ACC_REPLACE, NULL);
    }
    const dn_rma_guard_t guard = osc_guard(module, target);
    return osc_acc_error(
        dn_acc_swap(&guard.super, &element, osc_side_at(&there), origin_addr, compare_addr, result_addr));
}
