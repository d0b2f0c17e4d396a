/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_diff.h
 * What differs between a page and its twin, to the byte: bytes that this process has not changed may have been changed
 * by another one, and must not be sent.
 */
#ifndef DN_DSM_DIFF_H
#define DN_DSM_DIFF_H

#include "dimmnet.h"

/** Most blocks that a page of @p len bytes can have. */
#define DN_DSM_DIFF_MAX(len) (((len) + 1) / 2)

/**
 * Find the bytes that differ.
 *
 * @param[in]  page, twin  @p len bytes each, aligned to 8; len is a multiple of 8.
 * @param[in]  at          Added to the place of each block.
 * @param[out] block       In rising order, none touches another: room for DN_DSM_DIFF_MAX(len).
 * @return blocks.
 */
size_t dn_dsm_diff(const void *page, const void *twin, size_t len, uint64_t at, dn_block_t *block);

#endif
