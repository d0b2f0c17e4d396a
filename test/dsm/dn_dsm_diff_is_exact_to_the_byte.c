/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A diff has each byte that differs, no other, in as few blocks as there are; and fits where every second byte differs.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_dsm_diff.h"

#define PAGE 4096u

static _Alignas(8) uint8_t page[PAGE], twin[PAGE];
static dn_block_t block[DN_DSM_DIFF_MAX(PAGE)];

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

/** Find the blocks by a copy of the twin, which is used again. @return blocks. */
static size_t differ(uint64_t at)
{
    static _Alignas(8) uint8_t kept[PAGE];
    uint64_t bytes = 7, sum = 7;

    memcpy(kept, twin, PAGE);
    const size_t blocks = dn_dsm_diff(page, kept, PAGE, at, block, &bytes);
    for (size_t b = 0; b < blocks; b++) {
        sum += block[b].len;
    }
    check(sum == bytes, "the bytes of the blocks are added");
    check(0 == memcmp(kept, page, PAGE), "the twin becomes what the page is");
    return blocks;
}

/** The blocks against the two pages. */
static void compare(uint64_t at)
{
    static uint8_t named[PAGE];
    const size_t blocks = differ(at);

    memset(named, 0, sizeof(named));
    for (size_t b = 0; b < blocks; b++) {
        check(0 < block[b].len && at <= block[b].at && block[b].at + block[b].len <= at + PAGE,
              "a block is in the page");
        check(0 == b || block[b - 1].at + block[b - 1].len < block[b].at, "blocks rise and do not touch");
        memset(named + (block[b].at - at), 1, block[b].len);
    }
    for (size_t i = 0; i < PAGE; i++) {
        check(named[i] == (page[i] != twin[i]), "bytes that differ are named, and no others");
    }
}

int main(void)
{
    uint32_t random = 1;

    compare(0);
    check(0 == differ(0), "equal pages have no diff");
    for (unsigned i = 0; i < PAGE; i += 2) {
        page[i] = 1;
    }
    compare(UINT64_C(5) * PAGE);
    check(DN_DSM_DIFF_MAX(PAGE) == differ(0), "every second byte is a block");
    memset(page, 2, sizeof(page));
    compare(0);
    check(1 == differ(0), "a page that differs as a whole is a block");
    for (int turn = 0; turn < 1000; turn++) {
        memcpy(page, twin, sizeof(page));
        for (int i = 0; i < turn % 50; i++) {
            random = random * 1664525u + 1013904223u;
            const unsigned from = random >> 8 & (PAGE - 1), len = 1 + (random >> 20) % 30;
            for (unsigned b = from; b < from + len && b < PAGE; b++) {
                page[b] = (uint8_t) (b + random);
            }
        }
        compare((uint64_t) turn * PAGE);
    }
    return 0;
}
