/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_op.h
 * A put, get or atomic between its call and its callback.
 */
#ifndef MCA_BTL_DIMMNET_OP_H
#define MCA_BTL_DIMMNET_OP_H

#include "btl_dimmnet.h"

typedef enum mca_btl_dimmnet_kind_t {
    MCA_BTL_DIMMNET_PUT,
    MCA_BTL_DIMMNET_GET,
    MCA_BTL_DIMMNET_ATOMIC
} mca_btl_dimmnet_kind_t;

typedef struct mca_btl_dimmnet_op_t {
    opal_free_list_item_t super;
    dn_comp_t comp;
    mca_btl_dimmnet_kind_t kind;
    mca_btl_base_endpoint_t *endpoint;
    struct mca_btl_base_registration_handle_t remote; /**< copied: the caller's may lie at any alignment */
    union {
        dn_xfer_t xfer;
        dn_amo_t amo;
    };
    void *local_address;
    mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t cbfunc;
    void *cbcontext;
    void *cbdata;
    struct mca_btl_dimmnet_op_t *next; /**< that waits for room */
} mca_btl_dimmnet_op_t;
OBJ_CLASS_DECLARATION(mca_btl_dimmnet_op_t);

/**
 * An operation with everything set that put, get and atomics share. The handle's key and the offset of
 * @p remote_address in its segment are the caller's to use: op->remote.key, *roff_p.
 * @return NULL: no memory.
 */
mca_btl_dimmnet_op_t *mca_btl_dimmnet_op_get(mca_btl_dimmnet_kind_t kind, mca_btl_base_endpoint_t *endpoint,
                                             void *local_address,
                                             mca_btl_base_registration_handle_t *local_handle,
                                             uint64_t remote_address,
                                             const mca_btl_base_registration_handle_t *remote_handle,
                                             mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                                             void *cbdata, uint64_t *roff_p);

/**
 * Start an operation, or let it wait. Complete at once: the callback is called before return.
 * @return OPAL_SUCCESS: the callback is called exactly once; else the operation has been freed.
 */
int mca_btl_dimmnet_op_start(mca_btl_dimmnet_op_t *op);

#endif
