/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_diff.h
 * What differs between a page and its twin, to the byte: bytes that this process has not changed may have been changed
 * by another one, and must not be sent.
 *
 * The twin becomes what the page was, and the blocks are sent from the twin. Each word of the page is read once. So what a thread writes
 * to the page meanwhile is either in the twin and sent, or it differs from the twin and is found the next time.
 */
#ifndef DN_DSM_DIFF_H
#define DN_DSM_DIFF_H

#include "dimmnet.h"

/** Most blocks that a page of @p len bytes can have. */
#define DN_DSM_DIFF_MAX(len) (((len) + 1) / 2)

/**
 * Find the bytes that differ, and copy them into the twin.
 *
 * @param[in]     page   @p len bytes, aligned to 8; len is a multiple of 8. Other threads may write them.
 * @param[in,out] twin   The same, but nobody else writes them.
 * @param[in]     at     Added to the place of each block.
 * @param[out]    block  In rising order, none touches another: room for DN_DSM_DIFF_MAX(len).
 * @return blocks.
 */
size_t dn_dsm_diff(const void *page, void *twin, size_t len, uint64_t at, dn_block_t *block);

/**
 * Merge a page that was fetched into one that has been written here since its twin was made: bytes that equal those of the twin become
 * those that were fetched, the others stay; the twin becomes what was fetched. So the page differs from its twin where it
 * did before, or not even there.
 *
 * @param[in,out] page   @p len bytes, aligned to 8; len is a multiple of 8. Others may write them meanwhile: such a byte stays as they
 *                       wrote it, unless they wrote what was there.
 * @param[in,out] twin   The same, but nobody else writes them.
 * @param[in]     fresh  What was fetched.
 */
void dn_dsm_merge(void *page, void *twin, const void *fresh, size_t len);

#endif
