/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_diff.c
 * Diffs: see dn_dsm_diff.h. */
#include "dn_config.h"

#include "dn_dsm_diff.h"

#include <dn_atomic.h>

size_t dn_dsm_diff(const void *page, void *twin, size_t len, uint64_t at, dn_block_t *block)
{
    const uint64_t *new = page;
    uint64_t *old = twin;
    uint64_t end = UINT64_MAX; /* of the last block */
    size_t count = 0;

    for (size_t i = 0; i < len / sizeof(*new); i++) {
        /* Relaxed: what orders the writes that have to be found stands before this call; others are found now or the next time. */
        const uint64_t word = dn_load_relaxed(&new[i]);
        uint64_t differs = word ^ old[i];
        if (0 == differs) {
            continue;
        }
        old[i] = word;
        /* The low end of a word is its first byte: the machine is little-endian (dn_machine.h). */
        for (uint64_t place = at + i * sizeof(*new); 0 != differs; place++, differs >>= 8) {
            if (0 == (differs & 0xff)) {
                continue;
            }
            if (end != place) {
                block[count++] = (dn_block_t){.at = place};
            }
            block[count - 1].len++;
            end = place + 1;
        }
    }
    return count;
}
