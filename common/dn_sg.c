/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_sg.h"

#include <string.h>

dn_status_t dn_sg_check(const dn_sg_t *sg, uint64_t base, uint64_t len, uint64_t limit)
{
    if (NULL == sg) {
        return base > limit || len > limit - base ? DN_ERR_RANGE : DN_OK;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < sg->count; i++) {
        uint64_t at;
        if (__builtin_add_overflow(base, sg->block[i].at, &at)
            || __builtin_add_overflow(sum, sg->block[i].len, &sum)) {
            return DN_ERR_PARAM;
        }
        if (at > limit || sg->block[i].len > limit - at) {
            return DN_ERR_RANGE;
        }
    }
    return sum == len ? DN_OK : DN_ERR_PARAM;
}

void dn_sg_start(dn_sg_cursor_t *cursor, const dn_sg_t *sg, uint64_t base, uint64_t len)
{
    cursor->sg = sg;
    cursor->base = base;
    cursor->index = 0;
    cursor->done = 0;
    cursor->left = len;
}

uint64_t dn_sg_next(dn_sg_cursor_t *cursor, uint64_t max, uint64_t *at_p)
{
    uint64_t run = cursor->left < max ? cursor->left : max;
    if (0 == run) {
        return 0;
    }
    if (NULL == cursor->sg) {
        *at_p = cursor->base + cursor->done;
    } else {
        const dn_block_t *block = &cursor->sg->block[cursor->index];
        while (cursor->done == block->len) {
            block++;
            cursor->index++;
            cursor->done = 0;
        }
        *at_p = cursor->base + block->at + cursor->done;
        run = run < block->len - cursor->done ? run : block->len - cursor->done;
    }
    cursor->done += run;
    cursor->left -= run;
    return run;
}

void dn_sg_skip(dn_sg_cursor_t *cursor, uint64_t len)
{
    uint64_t at;
    while (0 != len) {
        const uint64_t run = dn_sg_next(cursor, len, &at);
        if (0 == run) {
            return;
        }
        len -= run;
    }
}

void dn_sg_copy(dn_sg_cursor_t *to, dn_sg_cursor_t *from, uint64_t len)
{
    while (0 != len) {
        uint64_t to_at;
        uint64_t from_at;
        uint64_t run = dn_sg_next(to, len, &to_at);
        if (0 == run) {
            return;
        }
        len -= run;
        while (0 != run) {
            const uint64_t part = dn_sg_next(from, run, &from_at);
            if (0 == part) {
                return;
            }
            memmove((void *) (uintptr_t) to_at, (const void *) (uintptr_t) from_at, part);
            to_at += part;
            run -= part;
        }
    }
}

void dn_sg_gather(void *buffer, dn_sg_cursor_t *from, uint64_t len)
{
    dn_sg_cursor_t to;
    dn_sg_start(&to, NULL, (uintptr_t) buffer, len);
    dn_sg_copy(&to, from, len);
}

void dn_sg_scatter(dn_sg_cursor_t *to, const void *buffer, uint64_t len)
{
    dn_sg_cursor_t from;
    dn_sg_start(&from, NULL, (uintptr_t) buffer, len);
    dn_sg_copy(to, &from, len);
}
