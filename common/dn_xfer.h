/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_xfer.h
 * What every device does alike with a transfer or an atomic operation: check it, and run it on the CPU.
 */
#ifndef DN_XFER_H
#define DN_XFER_H

#include "dn_types.h"

/**
 * Check a transfer before its first byte moves.
 * @retval DN_ERR_PARAM  blocks do not add up, misaligned or misplaced status words.
 * @retval DN_ERR_RANGE  the remote side leaves the key's segment, or the status word the target's LLCM.
 */
dn_status_t dn_xfer_check(const dn_xfer_t *xfer, int write, uint64_t llcm_len);

/** Check an atomic operation: width, alignment, range. */
dn_status_t dn_amo_check(const dn_amo_t *amo);

/** Run it on a word mapped here; stores the old value at amo->result unless that is NULL. Never fails. */
void dn_amo_run(void *word, const dn_amo_t *amo);

#endif
