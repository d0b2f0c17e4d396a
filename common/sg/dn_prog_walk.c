/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog_int.h"

void dn_prog_advance(dn_prog_cursor_t *cursor)
{
    const dn_prog_node_t *node = cursor->prog->node;
    uint32_t loop = node[cursor->node].parent;
    uint32_t next = cursor->node + 1;

    while (next > loop + node[loop].op.inside) {
        dn_prog_level_t *level = &cursor->level[cursor->depth];
        if (1 < level->turns) {
            level->turns--;
            level->base += (uint64_t) (0 == loop ? cursor->extent : node[loop].op.stride);
            next = loop + 1;
            break;
        }
        cursor->depth--;
        loop = node[loop].parent;
    }
    dn_prog_descend(cursor, next);
}

/** The op of a loop's body that holds a byte: the last op that starts at or before it. position: counted as dn_prog_node_t::start. */
static uint32_t dn_prog_find(const dn_prog_t *prog, uint32_t loop, uint64_t position)
{
    uint32_t low = loop + 1;
    uint32_t high = loop + prog->node[loop].op.inside;

    while (low < high) {
        const uint32_t middle = high - (high - low) / 2;
        if (prog->node[middle].start <= position) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    /* The last turn but the first of a loop in the body finds an op of its first turn: go up to the loop. */
    while (prog->node[low].parent != loop) {
        low = prog->node[low].parent;
    }
    return low;
}

/** Go to a byte of a walk over a program, before its end. */
static void dn_prog_locate(dn_prog_cursor_t *cursor, uint64_t position)
{
    const dn_prog_t *prog = cursor->prog;
    const uint64_t instance = position / prog->info.size;
    uint32_t at = 0;

    cursor->depth = 0;
    cursor->level[0].base = cursor->base + instance * (uint64_t) cursor->extent;
    cursor->level[0].turns = cursor->count - instance;
    position %= prog->info.size;
    for (;;) {
        const uint32_t loop = at;
        at = dn_prog_find(prog, loop, prog->node[loop].start + position);
        const dn_prog_op_t *op = &prog->node[at].op;
        position -= prog->node[at].start - prog->node[loop].start;
        const uint64_t turn = position / op->len;
        position %= op->len;
        if (DN_PROG_LOOP != op->kind) {
            dn_prog_descend(cursor, at);
            dn_prog_pass(cursor, turn);
            cursor->done = position;
            return;
        }
        const uint64_t base = cursor->level[cursor->depth].base + turn * (uint64_t) op->stride;
        cursor->level[++cursor->depth] = (dn_prog_level_t){base, op->count - turn};
    }
}

/** Start a walk that is one row of blocks. */
static void dn_prog_start_row(dn_prog_cursor_t *cursor, uint64_t base, uint64_t len, uint64_t count,
                              int64_t stride)
{
    cursor->prog = NULL;
    cursor->place = NULL;
    cursor->at = cursor->base = base;
    cursor->len = len;
    cursor->blocks = cursor->count = count;
    cursor->stride = stride;
    cursor->done = 0;
    cursor->left = cursor->size = len * count;
}

/**
 * Is a use one row of blocks? Instances of one block are a row. So are instances of a row, if each instance continues the one before.
 * @param[out] row  The row, when it is.
 */
static int dn_prog_is_row(const dn_prog_use_t *use, dn_prog_op_t *row)
{
    const dn_prog_op_t *op = &use->prog->node[1].op;

    if (1 != use->prog->info.ops || DN_PROG_RUN != op->kind) {
        return 0;
    }
    *row = *op;
    if (1 == use->count) {
        return 1;
    }
    if (1 != op->count) {
        int64_t reach;
        row->count = op->count * use->count;
        return !__builtin_mul_overflow(op->count, op->stride, &reach) && reach == use->extent;
    }
    row->count = use->count;
    row->stride = use->extent;
    if (0 < use->extent && op->len == (uint64_t) use->extent) {
        row->len = op->len * use->count;
        row->count = 1;
    }
    return 1;
}

int dn_prog_contiguous(const dn_prog_use_t *use, int64_t *at_p, uint64_t *len_p)
{
    dn_prog_op_t row;

    if (0 == use->count || 0 == use->prog->info.size) {
        *at_p = 0;
        *len_p = 0;
        return 1;
    }
    if (!dn_prog_is_row(use, &row) || 1 != row.count) {
        return 0;
    }
    *at_p = row.at;
    *len_p = row.len;
    return 1;
}

void dn_prog_start(dn_prog_cursor_t *cursor, const dn_prog_use_t *use, uint64_t base)
{
    dn_prog_op_t row;

    if (0 == use->count || 0 == use->prog->info.size) {
        dn_prog_start_row(cursor, base, 0, 0, 0);
        return;
    }
    if (dn_prog_is_row(use, &row)) {
        dn_prog_start_row(cursor, base + (uint64_t) row.at, row.len, row.count, row.stride);
        return;
    }
    cursor->prog = use->prog;
    cursor->base = base;
    cursor->count = use->count;
    cursor->extent = 1 == use->count ? 0 : use->extent;
    cursor->left = cursor->size = use->prog->info.size * use->count;
    cursor->depth = 0;
    cursor->level[0] = (dn_prog_level_t){base, use->count};
    dn_prog_descend(cursor, 1);
}

void dn_prog_start_bytes(dn_prog_cursor_t *cursor, uint64_t base, uint64_t len)
{
    dn_prog_start_row(cursor, base, len, 1, 0);
}

uint64_t dn_prog_next(dn_prog_cursor_t *cursor, uint64_t max, uint64_t *at_p)
{
    uint64_t run = cursor->left < max ? cursor->left : max;

    if (0 == run) {
        return 0;
    }
    if (0 == cursor->blocks) {
        dn_prog_advance(cursor);
    }
    *at_p = dn_prog_here(cursor) + cursor->done;
    run = run < cursor->len - cursor->done ? run : cursor->len - cursor->done;
    dn_prog_pass_part(cursor, run);
    return run;
}

void dn_prog_seek(dn_prog_cursor_t *cursor, uint64_t position)
{
    if (position >= cursor->size) {
        cursor->left = 0;
        cursor->blocks = 0;
        return;
    }
    cursor->left = cursor->size - position;
    if (NULL != cursor->prog) {
        dn_prog_locate(cursor, position);
        return;
    }
    const uint64_t index = position / cursor->len;
    cursor->at = cursor->base + index * (uint64_t) cursor->stride;
    cursor->blocks = cursor->count - index;
    cursor->done = position % cursor->len;
}

void dn_prog_skip(dn_prog_cursor_t *cursor, uint64_t len)
{
    if (0 != cursor->blocks && len < cursor->len - cursor->done) {
        cursor->done += len;
        cursor->left -= len;
        return;
    }
    dn_prog_seek(cursor, len < cursor->left ? cursor->size - cursor->left + len : cursor->size);
}
