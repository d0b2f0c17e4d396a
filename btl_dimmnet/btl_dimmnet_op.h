/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_op.h
 * A put or get, from its call to its callback.
 */
#ifndef MCA_BTL_DIMMNET_OP_H
#define MCA_BTL_DIMMNET_OP_H

#include "btl_dimmnet.h"

typedef struct mca_btl_dimmnet_op_t {
    opal_free_list_item_t super;
    dn_comp_t comp;
    dn_status_t (*start)(dn_peer_t *, const dn_xfer_t *); /**< dn_push or dn_pull */
    mca_btl_base_endpoint_t *endpoint;
    struct mca_btl_base_registration_handle_t remote; /**< copied: the caller's may lie at any alignment */
    dn_xfer_t xfer;
    mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t cbfunc;
    void *cbcontext;
    void *cbdata;
    dn_queue_item_t item; /**< while it waits for room */
} mca_btl_dimmnet_op_t;
OBJ_CLASS_DECLARATION(mca_btl_dimmnet_op_t);

#endif
