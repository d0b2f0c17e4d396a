/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_op.c
 * Operations that a thread waits for: see dn_dsm_op.h. */
#include "dn_config.h"

#include "dn_dsm_op.h"

#include <dn_atomic.h>

void dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags)
{
    static __thread uint64_t steps __attribute__((tls_model("initial-exec")));
    const int events = dn_progress(port);

    if (0 == events) {
        (void) dn_wait(port, wait, steps, flags);
    }
    steps += (uint64_t) events;
}

void dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count)
{
    dn_wait_t wait = {0};

    while (0 != *count) {
        pthread_mutex_unlock(lock);
        dn_dsm_pause(port, &wait, 0);
        pthread_mutex_lock(lock);
    }
}

static void dn_dsm_op_ended(dn_comp_t *comp, dn_status_t status)
{
    dn_dsm_op_t *op = (dn_dsm_op_t *) comp;

    op->status = status;
    /* W0: pairs with R0 in dn_dsm_op_end(): a thread that finds the operation ended finds the status, and the bytes that were transferred. */
    dn_store_release_u32(&op->under_way, 0);
}

dn_comp_t *dn_dsm_op_begin(dn_dsm_op_t *op)
{
    *op = (dn_dsm_op_t){.comp = {dn_dsm_op_ended}, .under_way = 1};
    return &op->comp;
}

void dn_dsm_op_begun(dn_dsm_op_t *op, dn_status_t status)
{
    if (DN_INPROGRESS != status) {
        op->status = status;
        dn_store_relaxed_u32(&op->under_way, 0);
    }
}

void dn_dsm_op_start(dn_dsm_op_t *op, dn_port_t *port, dn_peer_t *peer, dn_xfer_t *xfer, bool write)
{
    dn_status_t status;

    xfer->comp = dn_dsm_op_begin(op);
    /* The other process may compute. */
    xfer->flags |= DN_XFER_UNSHARED;
    while (DN_ERR_AGAIN == (status = write ? dn_push(peer, xfer) : dn_pull(peer, xfer))) {
        (void) dn_progress(port);
    }
    dn_dsm_op_begun(op, status);
}

dn_status_t dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port)
{
    dn_wait_t wait = {0};

    while (0 != dn_load_acquire_u32(&op->under_way)) { /* R0 */
        dn_dsm_pause(port, &wait, 0);
    }
    return op->status;
}
