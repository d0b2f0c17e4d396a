/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_diff.c
 * Diffs: see dn_dsm_diff.h. */
#include "dn_config.h"

#include "dn_dsm_diff.h"

#include <dn_atomic.h>

size_t dn_dsm_diff(const void *page, void *twin, size_t len, uint64_t at, dn_block_t *block, uint64_t *bytes)
{
    const uint64_t *new = page;
    uint64_t *old = twin;
    uint64_t end = UINT64_MAX; /* end of the last block */
    size_t count = 0, found = 0;

    for (size_t i = 0; i < len / sizeof(*new); i++) {
        /* Relaxed: the writes that have to be found are ordered before this call. Other writes are found now or the next time. */
        const uint64_t word = dn_load_relaxed(&new[i]);
        uint64_t differs = word ^ old[i];
        if (0 == differs) {
            continue;
        }
        old[i] = word;
        /* The lowest 8 bits of a word are its first byte: the machine is little-endian (dn_machine.h). */
        for (uint64_t place = at + i * sizeof(*new); 0 != differs; place++, differs >>= 8) {
            if (0 == (differs & 0xff)) {
                continue;
            }
            if (end != place) {
                block[count++] = (dn_block_t){.at = place};
            }
            block[count - 1].len++;
            found++;
            end = place + 1;
        }
    }
    *bytes += found;
    return count;
}

/** Find the bytes of a word that are 0. @return 0xff in the place of each such byte, 0 in the place of the others. */
static uint64_t dn_dsm_merge_zeros(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    /* The top bit of each byte that is not 0. No carry leaves a byte. */
    const uint64_t set = (((word & low) + low) | word) & ~low;

    return ((~set & ~low) >> 7) * 0xff;
}

void dn_dsm_merge(void *page, void *twin, const void *fresh, size_t len)
{
    uint64_t *at = page, *old = twin;
    const uint64_t *new = fresh;

    for (size_t i = 0; i < len / sizeof(*at); i++) {
        /* Relaxed: a thread that reads the merged bytes is told of them after this call. */
        uint64_t word = dn_load_relaxed(&at[i]), next;
        do {
            const uint64_t same = dn_dsm_merge_zeros(word ^ old[i]);
            next = (word & ~same) | (new[i] & same);
        } while (next != word && !dn_cas_weak_acq_rel(&at[i], &word, next));
        old[i] = new[i];
    }
}
