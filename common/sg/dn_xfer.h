/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_xfer.h
 * Work on transfers and atomic operations that is the same for every device. The port checks an operation once, so devices and the
 * core processor get only correct operations. The target itself checks what messages ask for (dn_core_serve.c).
 */
#ifndef DN_XFER_H
#define DN_XFER_H

#include "dn_prog.h"
#include "dn_types.h"

/**
 * Check a transfer before its first byte moves.
 * @retval DN_ERR_PARAM  blocks do not add up, misaligned or misplaced status words.
 * @retval DN_ERR_RANGE  the remote side leaves the key's segment, or the status word the target's LLCM.
 */
dn_status_t dn_xfer_check(const dn_xfer_t *xfer, int write, uint64_t llcm_len);

/**
 * The same transfer with plain sides: where the program of a side covers one block, the block replaces the program.
 * So this side takes the faster ways of contiguous memory.
 * @param xfer  Checked.
 * @param room  Memory for the new transfer.
 * @return @p xfer, or @p room.
 */
DN_DEVICE_API const dn_xfer_t *dn_xfer_plain(const dn_xfer_t *xfer, dn_xfer_t *room);

/** Copies of the descriptions of a transfer's sides. A transfer may outlive its call, after which the caller's descriptions may go. */
typedef struct dn_xfer_sides {
    dn_sg_t local_sg;         /**< of the local side */
    dn_sg_t remote_sg;        /**< of the remote side */
    dn_prog_use_t local_use;  /**< where the local side is a use */
    dn_prog_use_t remote_use; /**< where the remote side is a use */
    dn_block_t *blocks;       /**< of both sides; once where both sides are one list */
} dn_xfer_sides_t;

/** Copy the descriptions to @p sides, which is all zero before, and let @p xfer name the copies. DN_ERR_NOMEM: nothing was done. */
DN_DEVICE_API dn_status_t dn_xfer_keep(dn_xfer_t *xfer, dn_xfer_sides_t *sides);
/** Free the copies; a second call is legal. */
DN_DEVICE_API void dn_xfer_drop(dn_xfer_sides_t *sides);

/** Check an atomic operation: width, alignment, range. */
dn_status_t dn_amo_check(const dn_amo_t *amo);

/** Run an atomic operation on a word that is mapped here. Stores the old value at amo->result unless that is NULL. Never fails. */
DN_DEVICE_API void dn_amo_run(void *word, const dn_amo_t *amo);

#endif
