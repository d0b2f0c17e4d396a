/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_xfer.h
 * What is done alike with a transfer or an atomic operation for every device. The port checks it, once: devices and the core processor
 * are given what is good. The target checks what messages ask for by itself (dn_core_serve.c).
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
 * The same transfer without programs on sides that lie together all the same, so that these go the ways of
 * such sides.
 * @param xfer  Checked.
 * @param room  Memory for it.
 * @return @p xfer, or @p room.
 */
DN_DEVICE_API const dn_xfer_t *dn_xfer_plain(const dn_xfer_t *xfer, dn_xfer_t *room);

/** What describes the sides of a transfer that outlives its call, where the caller's may go. */
typedef struct dn_xfer_sides {
    dn_sg_t local_sg;         /**< of the local side */
    dn_sg_t remote_sg;        /**< of the remote side */
    dn_prog_use_t local_use;  /**< where the local side is one */
    dn_prog_use_t remote_use; /**< where the remote side is one */
    dn_block_t *blocks;       /**< of both */
} dn_xfer_sides_t;

/** Copy it to @p sides, all zero before, and let @p xfer name the copies. DN_ERR_NOMEM: not done. */
DN_DEVICE_API dn_status_t dn_xfer_keep(dn_xfer_t *xfer, dn_xfer_sides_t *sides);
/** Give its memory back; again is legal. */
DN_DEVICE_API void dn_xfer_drop(dn_xfer_sides_t *sides);

/** Check an atomic operation: width, alignment, range. */
dn_status_t dn_amo_check(const dn_amo_t *amo);

/** Run it on a word mapped here; stores the old value at amo->result unless that is NULL. Never fails. */
DN_DEVICE_API void dn_amo_run(void *word, const dn_amo_t *amo);

#endif
