/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_atomic.c
 * Atomic operations on words of registered memory.
 *
 * What is not offered gives OPAL_ERR_NOT_SUPPORTED, on which osc/rdma takes another way; on any other
 * error it would try for ever. Minimum and maximum are not offered: osc/rdma uses them for unsigned
 * operands too, and does not say which it has.
 */
#include "dn_config.h"

#include "btl_dimmnet_op.h"

static bool amo_of(mca_btl_base_atomic_op_t op, int flags, dn_amo_op_t *amo_p)
{
    if (0 != (MCA_BTL_ATOMIC_FLAG_FLOAT & flags)) {
        return false;
    }
    switch (op) {
    case MCA_BTL_ATOMIC_ADD:
        *amo_p = DN_AMO_ADD;
        return true;
    case MCA_BTL_ATOMIC_AND:
        *amo_p = DN_AMO_AND;
        return true;
    case MCA_BTL_ATOMIC_OR:
        *amo_p = DN_AMO_OR;
        return true;
    case MCA_BTL_ATOMIC_XOR:
        *amo_p = DN_AMO_XOR;
        return true;
    case MCA_BTL_ATOMIC_SWAP:
        *amo_p = DN_AMO_SWAP;
        return true;
    default:
        return false;
    }
}

static uint64_t amo_new(dn_amo_op_t op, uint64_t old, uint64_t operand, uint64_t compare)
{
    switch (op) {
    case DN_AMO_ADD:
        return old + operand;
    case DN_AMO_AND:
        return old & operand;
    case DN_AMO_OR:
        return old | operand;
    case DN_AMO_XOR:
        return old ^ operand;
    case DN_AMO_CAS:
        return old == compare ? operand : old;
    default:
        return operand;
    }
}

/** An operation on a word that is mapped here, atomic towards what the peers do to it by dn_atomic(). */
static void amo_here(dn_amo_op_t op, void *word, unsigned width, uint64_t operand, uint64_t compare,
                     void *result)
{
    uint32_t old4;
    uint64_t old8;

    if (4 == width) {
        old4 = __atomic_load_n((uint32_t *) word, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n((uint32_t *) word, &old4,
                                            (uint32_t) amo_new(op, old4, operand, (uint32_t) compare), false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        }
    } else {
        old8 = __atomic_load_n((uint64_t *) word, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n((uint64_t *) word, &old8, amo_new(op, old8, operand, compare),
                                            false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        }
    }
    if (NULL != result) {
        memcpy(result, 4 == width ? (void *) &old4 : (void *) &old8, width);
    }
}

static int atomic(mca_btl_base_endpoint_t *endpoint, void *local_address, uint64_t remote_address,
                  mca_btl_base_registration_handle_t *local_handle,
                  mca_btl_base_registration_handle_t *remote_handle, dn_amo_op_t amo, uint64_t operand,
                  uint64_t compare, int flags, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                  void *cbdata)
{
    const unsigned width = 0 != (MCA_BTL_ATOMIC_FLAG_32BIT & flags) ? 4 : 8;
    mca_btl_dimmnet_op_t *op;
    uint64_t roff;

    if (NULL == endpoint || NULL == endpoint->peer || NULL == remote_handle) {
        /* osc/rdma compares and swaps without an endpoint in its own process and in memory that it has mapped itself. */
        amo_here(amo, (void *) (uintptr_t) remote_address, width, operand, compare, local_address);
        if (NULL != cbfunc) {
            cbfunc(&mca_btl_dimmnet_windows, NULL, local_address, local_handle, cbcontext, cbdata,
                   OPAL_SUCCESS);
        }
        return OPAL_SUCCESS;
    }
    op = mca_btl_dimmnet_op_get(MCA_BTL_DIMMNET_ATOMIC, endpoint, local_address, local_handle, remote_address,
                                remote_handle, cbfunc, cbcontext, cbdata, &roff);
    if (OPAL_UNLIKELY(NULL == op)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    op->amo = (dn_amo_t){.op = amo,
                         .width = width,
                         .operand = operand,
                         .compare = compare,
                         .result = local_address,
                         .key = &op->remote.key,
                         .roff = roff,
                         .comp = &op->comp};
    return mca_btl_dimmnet_op_start(op);
}

int mca_btl_dimmnet_atomic_op(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                              uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
                              mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                              mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    dn_amo_op_t amo;

    if (!amo_of(op, flags, &amo)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return atomic(endpoint, NULL, remote_address, NULL, remote_handle, amo, operand, 0, flags, cbfunc,
                  cbcontext, cbdata);
}

int mca_btl_dimmnet_atomic_fop(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                               void *local_address, uint64_t remote_address,
                               mca_btl_base_registration_handle_t *local_handle,
                               mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op,
                               uint64_t operand, int flags, int order,
                               mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    dn_amo_op_t amo;

    if (!amo_of(op, flags, &amo)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return atomic(endpoint, local_address, remote_address, local_handle, remote_handle, amo, operand, 0,
                  flags, cbfunc, cbcontext, cbdata);
}

int mca_btl_dimmnet_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint,
                                 void *local_address, uint64_t remote_address,
                                 mca_btl_base_registration_handle_t *local_handle,
                                 mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                                 uint64_t value, int flags, int order,
                                 mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    return atomic(endpoint, local_address, remote_address, local_handle, remote_handle, DN_AMO_CAS, value,
                  compare, flags, cbfunc, cbcontext, cbdata);
}
