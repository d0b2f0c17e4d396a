/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_rdma.c
 * Registration, put, get. A completion of libdimmnet has the meaning of the BTL callback: local memory
 * may be reused, and the bytes are visible at the target.
 */
#include "dn_config.h"

#include "btl_dimmnet_op.h"

OBJ_CLASS_INSTANCE(mca_btl_dimmnet_op_t, opal_free_list_item_t, NULL, NULL);

mca_btl_base_registration_handle_t *mca_btl_dimmnet_register_mem(mca_btl_base_module_t *btl,
                                                                 mca_btl_base_endpoint_t *endpoint,
                                                                 void *base, size_t size, uint32_t flags)
{
    mca_btl_dimmnet_registration_t *registration;

    registration = (mca_btl_dimmnet_registration_t *) opal_free_list_get(&mca_btl_dimmnet.registrations);
    if (OPAL_UNLIKELY(NULL == registration)) {
        return NULL;
    }
    if (DN_OK != dn_segment_register(mca_btl_dimmnet_component.port, base, size, &registration->segment)) {
        opal_free_list_return(&mca_btl_dimmnet.registrations, &registration->super);
        return NULL;
    }
    dn_segment_key(registration->segment, &registration->handle.key);
    registration->handle.base = (uint64_t) (uintptr_t) base;
    return &registration->handle;
}

int mca_btl_dimmnet_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    mca_btl_dimmnet_registration_t *registration;

    registration = (mca_btl_dimmnet_registration_t *) ((char *) handle
                                                       - offsetof(mca_btl_dimmnet_registration_t, handle));
    dn_segment_free(registration->segment);
    opal_free_list_return(&mca_btl_dimmnet.registrations, &registration->super);
    return OPAL_SUCCESS;
}

/** An operation is over. It is freed before the callback, since the callback may start the next operation. */
static void op_finish(mca_btl_dimmnet_op_t *op, dn_status_t status)
{
    mca_btl_base_endpoint_t *endpoint = op->endpoint;
    const mca_btl_base_rdma_completion_fn_t cbfunc = op->cbfunc;
    mca_btl_base_registration_handle_t *local_handle = op->local_handle;
    void *local_address = op->xfer.local;
    void *cbcontext = op->cbcontext;
    void *cbdata = op->cbdata;

    opal_free_list_return(&mca_btl_dimmnet.ops, &op->super);
    if (OPAL_UNLIKELY(DN_ERR_UNREACH == status)) {
        if (dn_load_relaxed(&endpoint->leaves)) {
            /* As mca_btl_dimmnet_ops_forget(): nobody waits for it. */
            return;
        }
        mca_btl_dimmnet_lost(endpoint);
    }
    cbfunc(mca_btl_dimmnet_module_of(endpoint), endpoint, local_address, local_handle, cbcontext, cbdata,
           dn_ompi_status(status));
}

/** Count an operation that was not over at once (1), or is over now (-1). It may be over before it is counted. Release: who loads 0 with
 * acquire, and frees the endpoint, comes after all that its operations have done. */
static void op_count(mca_btl_base_endpoint_t *endpoint, int more)
{
    mca_btl_dimmnet_mark(endpoint);
    (void) dn_fetch_add_acq_rel(&endpoint->ops, (uint32_t) more);
}

/** An operation that was counted is over. Its end is counted last, after the last use of its endpoint. */
static void op_end(mca_btl_dimmnet_op_t *op, dn_status_t status)
{
    mca_btl_base_endpoint_t *endpoint = op->endpoint;

    op_finish(op, status);
    op_count(endpoint, -1);
}

/** dn_comp_fn_t of an operation. */
static void op_completed(dn_comp_t *comp, dn_status_t status)
{
    op_end((mca_btl_dimmnet_op_t *) ((char *) comp - offsetof(mca_btl_dimmnet_op_t, comp)), status);
}

static dn_status_t op_start(mca_btl_dimmnet_op_t *op)
{
    return op->start(op->endpoint->peer, &op->xfer);
}

static void op_wait(mca_btl_dimmnet_op_t *op)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OPAL_THREAD_LOCK(&module->lock);
    dn_fifo_push(&module->ops_waiting, &op->item);
    OPAL_THREAD_UNLOCK(&module->lock);
}

static mca_btl_dimmnet_op_t *op_of(dn_queue_item_t *item)
{
    return (mca_btl_dimmnet_op_t *) ((char *) item - offsetof(mca_btl_dimmnet_op_t, item));
}

/** Take all operations that wait out of the list. */
static dn_fifo_t ops_take(void)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OPAL_THREAD_LOCK(&module->lock);
    const dn_fifo_t ops = dn_fifo_take(&module->ops_waiting);
    OPAL_THREAD_UNLOCK(&module->lock);
    return ops;
}

int mca_btl_dimmnet_ops_waiting(void)
{
    dn_fifo_t ops = ops_take();
    dn_queue_item_t *item;
    int count = 0;

    /* The lock is not held while operations are started: libdimmnet takes its own lock then, and holds that while a callback comes to
     * op_wait(). */
    while (NULL != (item = dn_fifo_pop(&ops))) {
        mca_btl_dimmnet_op_t *op = op_of(item);
        dn_status_t status = op_start(op);

        if (DN_ERR_AGAIN == status) {
            op_wait(op);
        } else {
            count++;
            /* An operation in progress belongs to libdimmnet, and may be over already. */
            if (DN_INPROGRESS != status) {
                op_end(op, status);
            }
        }
    }
    return count;
}

void mca_btl_dimmnet_ops_forget(mca_btl_base_endpoint_t *endpoint)
{
    dn_fifo_t ops = ops_take();
    dn_queue_item_t *item;

    while (NULL != (item = dn_fifo_pop(&ops))) {
        mca_btl_dimmnet_op_t *op = op_of(item);

        if (endpoint == op->endpoint) {
            op_count(endpoint, -1);
            opal_free_list_return(&mca_btl_dimmnet.ops, &op->super);
        } else {
            op_wait(op);
        }
    }
}

/** Start an operation, or let it wait. If the operation completes at once, the callback is called before this returns. */
static int rdma_transfer(dn_status_t (*start)(dn_peer_t *, const dn_xfer_t *),
                         mca_btl_base_endpoint_t *endpoint, void *local_address, uint64_t remote_address,
                         mca_btl_base_registration_handle_t *local_handle,
                         const mca_btl_base_registration_handle_t *remote_handle, size_t size,
                         mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    mca_btl_dimmnet_op_t *op = (mca_btl_dimmnet_op_t *) opal_free_list_get(&mca_btl_dimmnet.ops);
    dn_status_t status;

    if (OPAL_UNLIKELY(NULL == op)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    op->comp.fn = op_completed;
    op->start = start;
    op->endpoint = endpoint;
    memcpy(&op->remote, remote_handle, sizeof(op->remote));
    op->xfer = (dn_xfer_t){.local = local_address,
                           .key = &op->remote.key,
                           .roff = remote_address - op->remote.base,
                           .len = size,
                           .comp = &op->comp};
    op->local_handle = local_handle;
    op->cbfunc = cbfunc;
    op->cbcontext = cbcontext;
    op->cbdata = cbdata;
    status = op_start(op);
    if (OPAL_LIKELY(DN_OK == status)) {
        op_finish(op, DN_OK);
        return OPAL_SUCCESS;
    }
    if (DN_INPROGRESS == status) {
        op_count(endpoint, 1);
        return OPAL_SUCCESS;
    }
    if (DN_ERR_AGAIN == status) {
        op_count(endpoint, 1);
        op_wait(op);
        return OPAL_SUCCESS;
    }
    opal_free_list_return(&mca_btl_dimmnet.ops, &op->super);
    if (DN_ERR_UNREACH == status) {
        mca_btl_dimmnet_lost(endpoint);
    }
    return dn_ompi_status(status);
}

int mca_btl_dimmnet_put(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    return rdma_transfer(dn_push, endpoint, local_address, remote_address, local_handle, remote_handle, size,
                         cbfunc, cbcontext, cbdata);
}

int mca_btl_dimmnet_get(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, void *local_address,
                        uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                        mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    return rdma_transfer(dn_pull, endpoint, local_address, remote_address, local_handle, remote_handle, size,
                         cbfunc, cbcontext, cbdata);
}
