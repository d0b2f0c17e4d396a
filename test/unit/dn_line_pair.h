/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_line_pair.h
 * Both ends of a ring in one process, in memory of exactly its size: a byte too far meets a sanitizer.
 */
#ifndef DN_LINE_PAIR_H
#define DN_LINE_PAIR_H

#include <stdlib.h>

#include "dn_line.h"

typedef struct dn_line_pair {
    dn_line_tx_t tx;
    dn_line_rx_t rx;
    dn_ring_t *ring;
} dn_line_pair_t;

/** Where numbers begin: as in a new ring, and where they pass 2^31 and 2^32 within the first lap of most. */
static const uint32_t dn_line_pair_start[] = {0, (UINT32_C(1) << 31) - 20, UINT32_MAX - 20};
enum { DN_LINE_PAIR_STARTS = sizeof(dn_line_pair_start) / sizeof(dn_line_pair_start[0]) };

/** One of these, for the pairs that are opened from now on. */
static uint32_t dn_line_pair_first;

static inline void dn_line_pair_open(dn_line_pair_t *pair, uint32_t lines)
{
    pair->ring = aligned_alloc(64, dn_ring_bytes(lines));
    assert_non_null(pair->ring);
    memset(pair->ring, 0, dn_ring_bytes(lines));
    dn_line_tx_init(&pair->tx, pair->ring, lines, dn_line_pair_first);
    dn_line_rx_init(&pair->rx, pair->ring, lines, dn_line_pair_first);
}

static inline void dn_line_pair_close(dn_line_pair_t *pair)
{
    free(pair->ring);
}

#endif
