/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_prog_int.h
 * Private to programs and walks, for the files dn_prog*.c:
 *
 *   dn_prog.c         the bytes that a program covers
 *   dn_prog_create.c  the normal form
 *   dn_prog_wire.c    programs from peers and for peers
 *   dn_prog_walk.c    cursors
 *   dn_prog_block.h   rows of blocks of one length
 *   dn_prog_copy.c    copies between cursors
 */
#ifndef DN_PROG_INT_H
#define DN_PROG_INT_H

#include "dn_prog.h"

/** @name Programs */
/** @{ */

/** Ops of a program never reach this number: node numbers and places have 32 bits. */
#define DN_PROG_OPS_LIMIT (UINT32_MAX - 1)

/** An op and its place in the program. */
typedef struct dn_prog_node {
    dn_prog_op_t op; /**< LOOP: at 0, len is the bytes of a turn. LIST: at 0, stride 0 */
    uint64_t start; /**< bytes of an instance before this op, on the first turn of every loop around the op */
    uint32_t parent; /**< the loop around the op */
    uint32_t first;  /**< LIST: its first place */
} dn_prog_node_t;

/** Node 0 is a loop around everything: its turns are the instances of a use. */
struct dn_prog {
    dn_prog_info_t info;
    uint64_t places;
    int64_t *place;
    dn_prog_node_t node[];
};

/** Allocate a program; the caller fills in its ops and places. dn_prog_free() frees it. @return NULL: no
 * memory. */
dn_prog_t *dn_prog_alloc(uint32_t ops, uint32_t places);

/**
 * Measure a program whose ops and places are filled in, and give it its number. No other function may use the
 * program before.
 *
 * @retval DN_ERR_PARAM        an inner loop has no ops, or ops beyond the end of the loop around it.
 * @retval DN_ERR_UNSUPPORTED  deeper than DN_PROG_DEPTH_MAX.
 * @retval DN_ERR_RANGE        2^64 bytes or more, or a byte whose place does not fit into an int64.
 */
dn_status_t dn_prog_finish(dn_prog_t *prog);
/** @} */

/** @name Walks: a cursor with no blocks ahead, but with bytes ahead, is between two ops */
/** @{ */

/** Address of the present block. */
static inline uint64_t dn_prog_here(const dn_prog_cursor_t *cursor)
{
    return NULL == cursor->place ? cursor->at : cursor->at + (uint64_t) *cursor->place;
}

/** Pass n of the blocks that are ahead. */
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

/** Pass @p len bytes of the present block. */
static inline void dn_prog_pass_part(dn_prog_cursor_t *cursor, uint64_t len)
{
    cursor->left -= len;
    cursor->done += len;
    if (cursor->done == cursor->len) {
        dn_prog_pass(cursor, 1);
    }
}

static inline void dn_prog_pass_blocks(dn_prog_cursor_t *cursor, uint64_t n)
{
    cursor->left -= n * cursor->len;
    dn_prog_pass(cursor, n);
}

/** Open `node`, if it is a loop, and the loops that begin with it; then go to the first block of the op inside. */
static inline void dn_prog_descend(dn_prog_cursor_t *cursor, uint32_t node)
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

/** The present op has no blocks left, but the walk has bytes: go to the next op. */
void dn_prog_advance(dn_prog_cursor_t *cursor);
/** @} */

#endif
