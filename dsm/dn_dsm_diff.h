/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_diff.h
 * The differences between a page and its twin, to the byte. Another process may have changed the bytes that this process has not
 * changed, so these bytes must not be sent.
 *
 * The content of the page is copied to the twin, and the blocks are sent from the twin. Each word of the page is read once. A thread may
 * write to the page meanwhile: either the written bytes are in the twin and sent, or they differ from the twin and are found the next
 * time.
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
 * @param[in,out] twin   The same, but no other thread writes them.
 * @param[in]     at     Added to the place of each block.
 * @param[out]    block  In rising order; two blocks never touch. Room for DN_DSM_DIFF_MAX(len).
 * @param[in,out] bytes  The bytes of the blocks are added.
 * @return number of blocks.
 */
size_t dn_dsm_diff(const void *page, void *twin, size_t len, uint64_t at, dn_block_t *block, uint64_t *bytes);

/**
 * Merge fetched bytes into a page that has been written here since its twin was made. Bytes of the page that equal the twin become the
 * fetched bytes; the other bytes stay. The twin becomes the fetched bytes. So after the call the page differs from its twin only at
 * bytes that differed before.
 *
 * @param[in,out] page   @p len bytes, aligned to 8; len is a multiple of 8. Other threads may write them meanwhile: such a byte keeps
 *                       the written value, unless the thread wrote the value that was there before.
 * @param[in,out] twin   The same, but no other thread writes them.
 * @param[in]     fresh  The fetched bytes.
 */
void dn_dsm_merge(void *page, void *twin, const void *fresh, size_t len);

#endif
