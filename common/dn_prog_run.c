/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog.h"

#include <string.h>

/* ---- kernels ---- */

/** Longest block that is moved without a call. */
#define DN_PROG_SHORT 128u

/** Inlined so that `width` and `pair` are constants: 24 B blocks are moved at 31 GB/s, by memmove() at 8. */
#define DN_PROG_INLINE static inline __attribute__((always_inline))

typedef uint64_t dn_prog_vector_t __attribute__((vector_size(16)));

/** One side of a row of blocks of one length: `step` apart, or where `place` says. */
typedef struct dn_prog_side {
    uint64_t at;
    int64_t step;
    const int64_t *place; /**< added to at; NULL: use step */
} dn_prog_side_t;

/** A piece of a block on its way. All of a block is loaded before any of it is stored: sides may overlap. */
typedef union dn_prog_piece {
    uint64_t word;
    dn_prog_vector_t vector[4];
} dn_prog_piece_t;

DN_PROG_INLINE void dn_prog_load(dn_prog_piece_t *piece, uint64_t from, const unsigned width)
{
    if (sizeof(piece->word) >= width) {
        memcpy(&piece->word, (const void *) (uintptr_t) from, width);
    }
    for (unsigned i = 0; i < width / sizeof(dn_prog_vector_t); i++) {
        memcpy(&piece->vector[i], (const uint8_t *) (uintptr_t) from + i * sizeof(dn_prog_vector_t),
               sizeof(dn_prog_vector_t));
    }
}

DN_PROG_INLINE void dn_prog_store(uint64_t to, const dn_prog_piece_t *piece, const unsigned width)
{
    if (sizeof(piece->word) >= width) {
        memcpy((void *) (uintptr_t) to, &piece->word, width);
    }
    for (unsigned i = 0; i < width / sizeof(dn_prog_vector_t); i++) {
        memcpy((uint8_t *) (uintptr_t) to + i * sizeof(dn_prog_vector_t), &piece->vector[i],
               sizeof(dn_prog_vector_t));
    }
}

/**
 * Copy one block.
 *
 * @param width  Bytes of a piece: a power of two up to 64; 0: any length, by a call.
 * @param pair   The block is two pieces, one at its start, one at its end: any length in width .. 2 * width
 *               without a branch. Else it is one.
 */
DN_PROG_INLINE void dn_prog_block(uint64_t to, uint64_t from, uint64_t len, const unsigned width,
                                  const int pair)
{
    dn_prog_piece_t head, tail;

    if (0 == width) {
        memmove((void *) (uintptr_t) to, (const void *) (uintptr_t) from, len);
        return;
    }
    dn_prog_load(&head, from, width);
    if (pair) {
        dn_prog_load(&tail, from + len - width, width);
        dn_prog_store(to + len - width, &tail, width);
    }
    dn_prog_store(to, &head, width);
}

/** Copy one block of any length. Lengths share branches: in a walk of mixed ones few are foretold right. */
static inline void dn_prog_one(uint64_t to, uint64_t from, uint64_t len)
{
    if (8 <= len && 16 >= len) {
        dn_prog_block(to, from, len, 8, 1);
    } else if (4 <= len && 8 >= len) {
        dn_prog_block(to, from, len, 4, 1);
    } else if (DN_PROG_SHORT < len) {
        dn_prog_block(to, from, len, 0, 0);
    } else if (64 <= len) {
        dn_prog_block(to, from, len, 64, 1);
    } else if (32 <= len) {
        dn_prog_block(to, from, len, 32, 1);
    } else if (16 <= len) {
        dn_prog_block(to, from, len, 16, 1);
    } else if (2 <= len) {
        dn_prog_block(to, from, len, 2, 1);
    } else {
        dn_prog_block(to, from, len, 1, 0);
    }
}

DN_PROG_INLINE void dn_prog_row(dn_prog_side_t to, dn_prog_side_t from, uint64_t len, uint64_t n,
                                const unsigned width, const int pair)
{
    if (NULL == to.place && NULL == from.place) {
        for (; 0 != n; n--) {
            dn_prog_block(to.at, from.at, len, width, pair);
            to.at += (uint64_t) to.step;
            from.at += (uint64_t) from.step;
        }
    } else if (NULL == to.place) {
        for (uint64_t i = 0; i < n; i++) {
            dn_prog_block(to.at, from.at + (uint64_t) from.place[i], len, width, pair);
            to.at += (uint64_t) to.step;
        }
    } else if (NULL == from.place) {
        for (uint64_t i = 0; i < n; i++) {
            dn_prog_block(to.at + (uint64_t) to.place[i], from.at, len, width, pair);
            from.at += (uint64_t) from.step;
        }
    } else {
        for (uint64_t i = 0; i < n; i++) {
            dn_prog_block(to.at + (uint64_t) to.place[i], from.at + (uint64_t) from.place[i], len, width,
                          pair);
        }
    }
}

/** The loop for one length. */
DN_PROG_INLINE void dn_prog_by_length(dn_prog_side_t to, dn_prog_side_t from, uint64_t len, uint64_t n)
{
    if (DN_PROG_SHORT < len) {
        dn_prog_row(to, from, len, n, 0, 0);
        return;
    }
    const unsigned log = 63 - (unsigned) __builtin_clzll(len);
    switch (2 * log + (0 != (len & (len - 1)))) {
    case 0:
        dn_prog_row(to, from, len, n, 1, 0);
        break;
    case 2:
        dn_prog_row(to, from, len, n, 2, 0);
        break;
    case 3:
        dn_prog_row(to, from, len, n, 2, 1);
        break;
    case 4:
        dn_prog_row(to, from, len, n, 4, 0);
        break;
    case 5:
        dn_prog_row(to, from, len, n, 4, 1);
        break;
    case 6:
        dn_prog_row(to, from, len, n, 8, 0);
        break;
    case 7:
        dn_prog_row(to, from, len, n, 8, 1);
        break;
    case 8:
        dn_prog_row(to, from, len, n, 16, 0);
        break;
    case 9:
        dn_prog_row(to, from, len, n, 16, 1);
        break;
    case 10:
        dn_prog_row(to, from, len, n, 32, 0);
        break;
    case 11:
        dn_prog_row(to, from, len, n, 32, 1);
        break;
    case 12:
        dn_prog_row(to, from, len, n, 64, 0);
        break;
    default:
        dn_prog_row(to, from, len, n, 64, 1);
        break;
    }
}

/** Blocks at constant distances. Six numbers fit into registers: sides handed over in memory double the time
 * of a row of 8 blocks. */
static __attribute__((noinline)) void dn_prog_strided(uint64_t to, int64_t to_step, uint64_t from,
                                                      int64_t from_step, uint64_t len, uint64_t n)
{
    const dn_prog_side_t t = {to, to_step, NULL};
    const dn_prog_side_t f = {from, from_step, NULL};
    dn_prog_by_length(t, f, len, n);
}

static __attribute__((noinline)) void dn_prog_listed(const dn_prog_side_t *to, const dn_prog_side_t *from,
                                                     uint64_t len, uint64_t n)
{
    dn_prog_by_length(*to, *from, len, n);
}

/** Copy n blocks of one length, in order. */
static inline void dn_prog_blocks(dn_prog_side_t to, dn_prog_side_t from, uint64_t len, uint64_t n)
{
    if (NULL == to.place && NULL == from.place) {
        dn_prog_strided(to.at, to.step, from.at, from.step, len, n);
    } else {
        dn_prog_listed(&to, &from, len, n);
    }
}

/* ---- cursor ---- */

/** Address of the present block. */
static inline uint64_t dn_prog_here(const dn_prog_cursor_t *cursor)
{
    return NULL == cursor->place ? cursor->at : cursor->at + (uint64_t) *cursor->place;
}

/** Leave n blocks behind, of those that are ahead. */
static inline void dn_prog_pass(dn_prog_cursor_t *cursor, uint64_t n)
{
    cursor->done = 0;
    cursor->blocks -= n;
    if (NULL == cursor->place) {
        cursor->at += n * (uint64_t) cursor->stride;
    } else {
        cursor->place += n;
    }
}

/** Leave bytes of the present block behind. */
static inline void dn_prog_take_part(dn_prog_cursor_t *cursor, uint64_t len)
{
    cursor->left -= len;
    cursor->done += len;
    if (cursor->done == cursor->len) {
        dn_prog_pass(cursor, 1);
    }
}

static inline void dn_prog_take_blocks(dn_prog_cursor_t *cursor, uint64_t n)
{
    cursor->left -= n * cursor->len;
    dn_prog_pass(cursor, n);
}

/** Open the loops around the first op at or inside `node`, then that op, at its first block. */
static void dn_prog_descend(dn_prog_cursor_t *cursor, uint32_t node)
{
    const dn_prog_node_t *at = &cursor->prog->node[node];

    for (; DN_PROG_LOOP == at->op.kind; at++) {
        const uint64_t base = cursor->level[cursor->depth].base;
        cursor->level[++cursor->depth] = (dn_prog_level_t){base, at->op.count};
    }
    cursor->node = (uint32_t) (at - cursor->prog->node);
    cursor->at = cursor->level[cursor->depth].base + (uint64_t) at->op.at;
    cursor->blocks = at->op.count;
    cursor->len = at->op.len;
    cursor->stride = at->op.stride;
    cursor->place = DN_PROG_LIST == at->op.kind ? cursor->prog->place + at->first : NULL;
    cursor->done = 0;
}

/** The present op has no blocks left, but the walk has bytes: go to the next one. */
static void dn_prog_advance(dn_prog_cursor_t *cursor)
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

/** The op of a loop's body that holds a byte: the last that starts there or before. position: as `start`. */
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

/** A walk that is one row of blocks. */
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
 * Is a use one row of blocks? Instances of a block are one, and those of a row that the next continues.
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
    dn_prog_take_part(cursor, run);
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

/* ---- copies ---- */

/**
 * Two walks with nothing in common advance by a piece in 14 ns, a walk and a buffer by a block in 1.5 ns:
 * where pieces are shorter than this, a copy by way of a buffer in the nearest cache is the faster one.
 */
#define DN_PROG_BOUNCE_BELOW 256u
/** Bytes of that buffer. */
#define DN_PROG_BOUNCE 4096u

/** The present block's rest as a side: blocks of `len` bytes next to each other. */
static inline dn_prog_side_t dn_prog_side_within(const dn_prog_cursor_t *cursor, uint64_t len)
{
    return (dn_prog_side_t){dn_prog_here(cursor) + cursor->done, (int64_t) len, NULL};
}

static inline dn_prog_side_t dn_prog_side_row(const dn_prog_cursor_t *cursor)
{
    return (dn_prog_side_t){cursor->at, cursor->stride, cursor->place};
}

/** Whole blocks of a cursor that `room` bytes hold, at least one of them; without a division where all do. */
static inline uint64_t dn_prog_fit(const dn_prog_cursor_t *cursor, uint64_t room)
{
    return cursor->blocks * cursor->len <= room ? cursor->blocks : room / cursor->len;
}

/**
 * Copy whole ops of a walk. The cursor in memory is left alone meanwhile: 1.5 ns a block where single blocks
 * follow each other, against 14 ns by dn_prog_copy_some().
 *
 * @param cursor   Walks a program and is at the start of an op.
 * @param other    The other side: address of its next byte, or how far it is from the walk everywhere.
 * @param room     Bytes to copy at most; the walk has that many left.
 * @param apart    Not 0: the other side lies as the walk does. Else its bytes lie together.
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

/** Do two walks lie alike from where they stand on? */
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
        dn_prog_take_blocks(to, n);
        dn_prog_take_blocks(from, n);
        return n * from->len;
    }
    if (0 == from->done && from->len <= to_rest && from->len <= len) {
        n = dn_prog_fit(from, len < to_rest ? len : to_rest);
        dn_prog_one_or_more(dn_prog_side_within(to, from->len), dn_prog_side_row(from), from->len, n);
        dn_prog_take_part(to, n * from->len);
        dn_prog_take_blocks(from, n);
        return n * from->len;
    }
    if (0 == to->done && to->len <= from_rest && to->len <= len) {
        n = dn_prog_fit(to, len < from_rest ? len : from_rest);
        dn_prog_one_or_more(dn_prog_side_row(to), dn_prog_side_within(from, to->len), to->len, n);
        dn_prog_take_part(from, n * to->len);
        dn_prog_take_blocks(to, n);
        return n * to->len;
    }
    uint64_t part = to_rest < from_rest ? to_rest : from_rest;
    part = part < len ? part : len;
    dn_prog_one(dn_prog_here(to) + to->done, dn_prog_here(from) + from->done, part);
    dn_prog_take_part(to, part);
    dn_prog_take_part(from, part);
    return part;
}

/** Bytes that two walks have in one piece: the rest of a row of blocks of one length, or a longer block. */
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
        dn_prog_take_part(to, n);
        return n;
    }
    if (dn_prog_is_fresh(to) && to->blocks * to->len <= from_rest) {
        const uint64_t n = dn_prog_stream(to, dn_prog_here(from) + from->done, from_rest, 0, 1);
        dn_prog_take_part(from, n);
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
