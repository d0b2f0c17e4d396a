/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog_block.h"
#include "dn_prog_int.h"

/**
 * Two walks of different shape advance by a piece in 14 ns, a walk and a buffer by a block in 1.5 ns. Where
 * pieces are shorter than this, a copy by way of a buffer in the nearest cache is faster.
 */
#define DN_PROG_BOUNCE_BELOW 256u
/** Bytes of that buffer. */
#define DN_PROG_BOUNCE 4096u

/** The rest of the present block as a side: adjacent blocks of `len` bytes. */
static inline dn_prog_side_t dn_prog_side_within(const dn_prog_cursor_t *cursor, uint64_t len)
{
    return (dn_prog_side_t){dn_prog_here(cursor) + cursor->done, (int64_t) len, NULL};
}

static inline dn_prog_side_t dn_prog_side_row(const dn_prog_cursor_t *cursor)
{
    return (dn_prog_side_t){cursor->at, cursor->stride, cursor->place};
}

/** Number of whole blocks of a cursor that `room` bytes hold; `room` holds at least one. No division where `room` holds all of them. */
static inline uint64_t dn_prog_fit(const dn_prog_cursor_t *cursor, uint64_t room)
{
    return cursor->blocks * cursor->len <= room ? cursor->blocks : room / cursor->len;
}

/**
 * Copy whole ops of a walk. The cursor in memory is left alone meanwhile: 1.5 ns a block where single blocks
 * follow each other, against 14 ns by dn_prog_copy_some().
 *
 * @param cursor   Walks a program and is at the start of an op.
 * @param other    The other side: the address of its next byte; or with `apart`, its constant distance from the walk.
 * @param room     Bytes to copy at most; the walk has that many left.
 * @param apart    Not 0: the other side has the shape of the walk. 0: its bytes lie together.
 * @param scatter  Not 0: the walk is the target, else the source.
 * @return bytes copied; 0 when the present op is longer than room.
 */
DN_PROG_INLINE uint64_t dn_prog_stream(dn_prog_cursor_t *cursor, uint64_t other, const uint64_t room,
                                       const int apart, const int scatter)
{
    const dn_prog_node_t *nodes = cursor->prog->node;
    uint64_t left = room;

    for (;;) {
        dn_prog_level_t *level = &cursor->level[cursor->depth];
        const dn_prog_node_t *node = &nodes[cursor->node];
        const dn_prog_node_t *loop = &nodes[node->parent];
        const dn_prog_node_t *end = loop + loop->op.inside;
        const uint64_t stride = (uint64_t) (loop == nodes ? cursor->extent : loop->op.stride);
        uint64_t base = level->base;
        uint64_t turns = level->turns;
        uint64_t len;

        for (;;) {
            len = node->op.len * node->op.count;
            if (len > left) {
                break;
            }
            const uint64_t at = base + (uint64_t) node->op.at;
            const uint64_t there = apart ? at + other : other;
            if (1 == node->op.count) {
                dn_prog_one(scatter ? at : there, scatter ? there : at, len);
            } else {
                const int64_t *place =
                    DN_PROG_LIST == node->op.kind ? cursor->prog->place + node->first : NULL;
                const dn_prog_side_t walk = {at, node->op.stride, place};
                const dn_prog_side_t side = {there, apart ? node->op.stride : (int64_t) node->op.len,
                                             apart ? place : NULL};
                dn_prog_blocks(scatter ? walk : side, scatter ? side : walk, node->op.len, node->op.count);
            }
            left -= len;
            other += apart ? 0 : len;
            if (node < end && DN_PROG_LOOP != node[1].op.kind) {
                node++;
            } else if (node == end && 1 < turns && DN_PROG_LOOP != loop[1].op.kind) {
                turns--;
                base += stride;
                node = loop + 1;
            } else {
                len = 0;
                break;
            }
        }
        level->base = base;
        level->turns = turns;
        cursor->node = (uint32_t) (node - nodes);
        if (0 != len) {
            dn_prog_descend(cursor, cursor->node);
            break;
        }
        if (0 == left) {
            cursor->blocks = 0;
            break;
        }
        dn_prog_advance(cursor);
    }
    cursor->left -= room - left;
    return room - left;
}

/** Is a cursor at the start of an op of a program? */
static inline int dn_prog_is_fresh(const dn_prog_cursor_t *cursor)
{
    return NULL != cursor->prog && 0 == cursor->done
           && cursor->blocks == cursor->prog->node[cursor->node].op.count;
}

/** Have two walks the same shape from here on? */
static int dn_prog_is_alike(const dn_prog_cursor_t *a, const dn_prog_cursor_t *b)
{
    return a->prog == b->prog && dn_prog_is_fresh(a) && a->extent == b->extent
           && a->size - a->left == b->size - b->left;
}

static inline void dn_prog_one_or_more(dn_prog_side_t to, dn_prog_side_t from, uint64_t len, uint64_t n)
{
    if (1 == n) {
        dn_prog_one(to.at + (NULL == to.place ? 0 : (uint64_t) *to.place),
                    from.at + (NULL == from.place ? 0 : (uint64_t) *from.place), len);
    } else {
        dn_prog_blocks(to, from, len, n);
    }
}

/** Copy up to len bytes, at least 1, within the present ops of both cursors. @return bytes copied. */
static uint64_t dn_prog_copy_some(dn_prog_cursor_t *to, dn_prog_cursor_t *from, uint64_t len)
{
    const uint64_t to_rest = to->len - to->done;
    const uint64_t from_rest = from->len - from->done;
    uint64_t n;

    if (to->len == from->len && 0 == to->done && 0 == from->done && to->len <= len) {
        n = dn_prog_fit(from, len);
        n = n < to->blocks ? n : to->blocks;
        dn_prog_one_or_more(dn_prog_side_row(to), dn_prog_side_row(from), from->len, n);
        dn_prog_pass_blocks(to, n);
        dn_prog_pass_blocks(from, n);
        return n * from->len;
    }
    if (0 == from->done && from->len <= to_rest && from->len <= len) {
        n = dn_prog_fit(from, len < to_rest ? len : to_rest);
        dn_prog_one_or_more(dn_prog_side_within(to, from->len), dn_prog_side_row(from), from->len, n);
        dn_prog_pass_part(to, n * from->len);
        dn_prog_pass_blocks(from, n);
        return n * from->len;
    }
    if (0 == to->done && to->len <= from_rest && to->len <= len) {
        n = dn_prog_fit(to, len < from_rest ? len : from_rest);
        dn_prog_one_or_more(dn_prog_side_row(to), dn_prog_side_within(from, to->len), to->len, n);
        dn_prog_pass_part(from, n * to->len);
        dn_prog_pass_blocks(to, n);
        return n * to->len;
    }
    uint64_t part = to_rest < from_rest ? to_rest : from_rest;
    part = part < len ? part : len;
    dn_prog_one(dn_prog_here(to) + to->done, dn_prog_here(from) + from->done, part);
    dn_prog_pass_part(to, part);
    dn_prog_pass_part(from, part);
    return part;
}

/** Bytes that both walks can copy as one piece: the rest of a row of blocks of one length, or of a longer block. */
static inline uint64_t dn_prog_reach(const dn_prog_cursor_t *a, const dn_prog_cursor_t *b)
{
    if (a->len == b->len && a->done == b->done) {
        return a->len * (a->blocks < b->blocks ? a->blocks : b->blocks);
    }
    return a->len > b->len ? a->len : b->len;
}

/** Copy by way of a buffer that stays in the nearest cache. Not for a walk whose rest is one block. */
static __attribute__((noinline)) uint64_t dn_prog_bounce(dn_prog_cursor_t *to, dn_prog_cursor_t *from,
                                                         uint64_t len)
{
    uint8_t buffer[DN_PROG_BOUNCE];

    len = len < sizeof(buffer) ? len : sizeof(buffer);
    dn_prog_gather(buffer, from, len);
    return dn_prog_scatter(to, buffer, len);
}

/** Copy up to len bytes, at least 1, the best way from here; both walks have them. @return bytes copied. */
static uint64_t dn_prog_copy_on(dn_prog_cursor_t *to, dn_prog_cursor_t *from, uint64_t len)
{
    if (0 == to->blocks) {
        dn_prog_advance(to);
    }
    if (0 == from->blocks) {
        dn_prog_advance(from);
    }
    const uint64_t reach = dn_prog_reach(to, from);
    const uint64_t to_rest = to->len - to->done < len ? to->len - to->done : len;
    const uint64_t from_rest = from->len - from->done < len ? from->len - from->done : len;
    if (dn_prog_is_alike(to, from) && from->blocks * from->len <= len) {
        const uint64_t n = dn_prog_stream(from, to->at - from->at, len, 1, 0);
        dn_prog_skip(to, n);
        return n;
    }
    /* One block that is left has all of len, and so is never below it. */
    if (DN_PROG_BOUNCE_BELOW > reach && reach < len) {
        return dn_prog_bounce(to, from, len);
    }
    if (dn_prog_is_fresh(from) && from->blocks * from->len <= to_rest) {
        const uint64_t n = dn_prog_stream(from, dn_prog_here(to) + to->done, to_rest, 0, 0);
        dn_prog_pass_part(to, n);
        return n;
    }
    if (dn_prog_is_fresh(to) && to->blocks * to->len <= from_rest) {
        const uint64_t n = dn_prog_stream(to, dn_prog_here(from) + from->done, from_rest, 0, 1);
        dn_prog_pass_part(from, n);
        return n;
    }
    return dn_prog_copy_some(to, from, len);
}

uint64_t dn_prog_copy(dn_prog_cursor_t *to, dn_prog_cursor_t *from, uint64_t len)
{
    len = len < to->left ? len : to->left;
    len = len < from->left ? len : from->left;
    for (uint64_t left = len; 0 != left;) {
        left -= dn_prog_copy_on(to, from, left);
    }
    return len;
}

uint64_t dn_prog_gather(void *buffer, dn_prog_cursor_t *from, uint64_t len)
{
    dn_prog_cursor_t to;
    dn_prog_start_bytes(&to, (uintptr_t) buffer, len);
    return dn_prog_copy(&to, from, len);
}

uint64_t dn_prog_scatter(dn_prog_cursor_t *to, const void *buffer, uint64_t len)
{
    dn_prog_cursor_t from;
    dn_prog_start_bytes(&from, (uintptr_t) buffer, len);
    return dn_prog_copy(to, &from, len);
}
