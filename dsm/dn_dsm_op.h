/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_op.h
 * PUSH, PULL and atomic operations that a thread waits for, and how it waits.
 */
#ifndef DN_DSM_OP_H
#define DN_DSM_OP_H

#include <dn_wait.h>
#include <pthread.h>
#include <stdbool.h>

/** One that is under way. All zero: it was never started, and has ended well. */
typedef struct dn_dsm_op {
    dn_comp_t comp; /**< first */
    uint32_t under_way;
    dn_status_t status;
} dn_dsm_op_t;

/** It is going to be started. @return what is to be signalled. */
dn_comp_t *dn_dsm_op_begin(dn_dsm_op_t *op);
/** It was started with this status. */
void dn_dsm_op_begun(dn_dsm_op_t *op, dn_status_t status);
/** Start a transfer: a PUSH or a PULL. An error is told by dn_dsm_op_end(). */
void dn_dsm_op_start(dn_dsm_op_t *op, dn_port_t *port, dn_peer_t *peer, dn_xfer_t *xfer, bool write);
/** Wait for its end. */
dn_status_t dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
/** Between two looks in vain: make progress, and wait if nothing came of it. @param[in] flags  Of dn_wait(). */
void dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags);
/** Wait until a count is 0. @param[in] lock  The count is under it. It is held, but while this waits. */
void dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count);

#endif
