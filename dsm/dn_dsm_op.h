/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_op.h
 * PUSH, PULL and atomic operations for which a thread waits, and how the thread waits.
 */
#ifndef DN_DSM_OP_H
#define DN_DSM_OP_H

#include <dn_wait.h>
#include <pthread.h>
#include <stdbool.h>

/** An operation under way. All zero: it was never started, and counts as ended with DN_OK. */
typedef struct dn_dsm_op {
    dn_comp_t comp; /**< first */
    uint32_t under_way;
    dn_status_t status;
} dn_dsm_op_t;

/** Prepare the start of an operation. @return the completion for the call that starts it. */
dn_comp_t *dn_dsm_op_begin(dn_dsm_op_t *op);
/** Note the status of the call that has started the operation. */
void dn_dsm_op_begun(dn_dsm_op_t *op, dn_status_t status);
/** Start a transfer: a PUSH or a PULL. dn_dsm_op_end() returns its error. */
void dn_dsm_op_start(dn_dsm_op_t *op, dn_port_t *port, dn_peer_t *peer, dn_xfer_t *xfer, bool write);
/** Wait for the end of an operation. @return its status. */
dn_status_t dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
/** Called between two looks in vain: make progress, and wait if there were no events. @param[in] flags  Of dn_wait(). */
void dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags);
/** Wait until a count is 0. @param[in] lock  Guards the count. The caller holds it; it is released while this function waits. */
void dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count);

#endif
