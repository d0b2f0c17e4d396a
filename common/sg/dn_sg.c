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
    if (NULL != sg->use) {
        return dn_prog_check(sg->use, base, len, limit);
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

uint64_t dn_sg_blocks(const dn_sg_t *sg)
{
    if (NULL == sg) {
        return 1;
    }
    return NULL == sg->use ? sg->count : dn_prog_info(sg->use->prog)->blocks * sg->use->count;
}

void dn_sg_start(dn_sg_cursor_t *cursor, const dn_sg_t *sg, uint64_t base, uint64_t len)
{
    cursor->left = len;
    cursor->sg = sg;
    cursor->base = base;
    cursor->index = 0;
    cursor->done = 0;
    cursor->walks = NULL != sg && NULL != sg->use;
    if (cursor->walks) {
        /* Neither the side nor the use is looked at again. */
        cursor->sg = NULL;
        dn_prog_start(&cursor->walk, sg->use, base);
    }
}

uint64_t dn_sg_next(dn_sg_cursor_t *cursor, uint64_t max, uint64_t *at_p)
{
    uint64_t run = cursor->left < max ? cursor->left : max;
    if (0 == run) {
        return 0;
    }
    if (NULL != cursor->sg) {
        const dn_block_t *block = &cursor->sg->block[cursor->index];
        while (cursor->done == block->len) {
            block++;
            cursor->index++;
            cursor->done = 0;
        }
        *at_p = cursor->base + block->at + cursor->done;
        run = run < block->len - cursor->done ? run : block->len - cursor->done;
    } else if (!cursor->walks) {
        *at_p = cursor->base + cursor->done;
    } else {
        run = dn_prog_next(&cursor->walk, run, at_p);
    }
    cursor->done += run;
    cursor->left -= run;
    return run;
}

void dn_sg_skip(dn_sg_cursor_t *cursor, uint64_t len)
{
    uint64_t at;
    if (cursor->walks) {
        dn_prog_skip(&cursor->walk, len);
        cursor->left = dn_prog_left(&cursor->walk);
        return;
    }
    while (0 != len) {
        const uint64_t run = dn_sg_next(cursor, len, &at);
        if (0 == run) {
            return;
        }
        len -= run;
    }
}

/** Copy between two sides; neither side is a use. */
static void dn_sg_copy_blocks(dn_sg_cursor_t *to, dn_sg_cursor_t *from, uint64_t len)
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

/** Copy some bytes, at least 1, where a side is a use. Both sides have `len` bytes ahead. @return bytes copied. */
static uint64_t dn_sg_copy_some(dn_sg_cursor_t *to, dn_sg_cursor_t *from, uint64_t len)
{
    uint64_t at = 0;

    if (to->walks && from->walks) {
        dn_prog_copy(&to->walk, &from->walk, len);
        to->left -= len;
        from->left -= len;
        return len;
    }
    if (to->walks) {
        len = dn_sg_next(from, len, &at);
        dn_prog_scatter(&to->walk, (const void *) (uintptr_t) at, len);
        to->left -= len;
    } else {
        len = dn_sg_next(to, len, &at);
        dn_prog_gather((void *) (uintptr_t) at, &from->walk, len);
        from->left -= len;
    }
    return len;
}

void dn_sg_copy(dn_sg_cursor_t *to, dn_sg_cursor_t *from, uint64_t len)
{
    if (!to->walks && !from->walks) {
        dn_sg_copy_blocks(to, from, len);
        return;
    }
    len = len < to->left ? len : to->left;
    len = len < from->left ? len : from->left;
    while (0 != len) {
        len -= dn_sg_copy_some(to, from, len);
    }
}

/** Copy a few bytes: a call of memmove() takes longer than the copy. The sides may overlap. */
static inline void dn_sg_move(uint8_t *to, const uint8_t *from, uint64_t len)
{
    uint64_t word;
    uint32_t half;

    if (sizeof(word) == len) {
        memcpy(&word, from, sizeof(word));
        memcpy(to, &word, sizeof(word));
    } else if (sizeof(half) == len) {
        memcpy(&half, from, sizeof(half));
        memcpy(to, &half, sizeof(half));
    } else if (1 == len) {
        *to = *from;
    } else {
        memmove(to, from, len);
    }
}

void dn_sg_gather(void *buffer, dn_sg_cursor_t *from, uint64_t len)
{
    uint8_t *to = buffer;
    uint64_t at;

    if (from->walks) {
        dn_sg_cursor_t all;
        dn_sg_start(&all, NULL, (uintptr_t) buffer, len);
        dn_sg_copy(&all, from, len);
        return;
    }
    for (uint64_t run = dn_sg_next(from, len, &at); 0 != run; run = dn_sg_next(from, len, &at)) {
        dn_sg_move(to, (const uint8_t *) (uintptr_t) at, run);
        to += run;
        len -= run;
    }
}

void dn_sg_scatter(dn_sg_cursor_t *to, const void *buffer, uint64_t len)
{
    const uint8_t *from = buffer;
    uint64_t at;

    if (to->walks) {
        dn_sg_cursor_t all;
        dn_sg_start(&all, NULL, (uintptr_t) buffer, len);
        dn_sg_copy(to, &all, len);
        return;
    }
    for (uint64_t run = dn_sg_next(to, len, &at); 0 != run; run = dn_sg_next(to, len, &at)) {
        dn_sg_move((uint8_t *) (uintptr_t) at, from, run);
        from += run;
        len -= run;
    }
}
