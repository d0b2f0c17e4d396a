/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_prog_int.h
 * Inside of programs and of walks over them, for the files dn_prog*.c:
 *
 *   dn_prog.c         what a program covers
 *   dn_prog_create.c  the normal form
 *   dn_prog_wire.c    programs of peers and for them
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

/** An op and its place in the whole. */
typedef struct dn_prog_node {
    dn_prog_op_t op; /**< LOOP: at 0, len is the bytes of a turn. LIST: at 0, stride 0 */
    uint64_t start;  /**< bytes of an instance before it, on the first turn of every loop around it */
    uint32_t parent; /**< the loop that it is in */
    uint32_t first;  /**< LIST: its first place */
} dn_prog_node_t;

/** Node 0 is a loop around everything: its turns are the instances of a use. */
struct dn_prog {
    dn_prog_info_t info;
    uint64_t places;
    int64_t *place;
    dn_prog_node_t node[];
};

/** Room for a program; its ops and places are still to be filled in. NULL: no memory. dn_prog_free() frees
 * it. */
dn_prog_t *dn_prog_alloc(uint32_t ops, uint32_t places);

/**
 * Measure a program whose ops and places are there, and give it its number. Until then nothing else may use
 * it.
 *
 * @retval DN_ERR_PARAM        a loop inside holds ops beyond the end of the one around it, or none.
 * @retval DN_ERR_UNSUPPORTED  deeper than DN_PROG_DEPTH_MAX.
 * @retval DN_ERR_RANGE        2^64 bytes or more, or a byte whose place is no int64.
 */
dn_status_t dn_prog_finish(dn_prog_t *prog);
/** @} */

/** @name Walks: a cursor whose blocks are all behind while bytes are ahead is between two ops */
/** @{ */

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

/** Open the loops around the first op at or inside `node`, then that op, at its first block. */
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

/** The present op has no blocks left, but the walk has bytes: go to the next one. */
void dn_prog_advance(dn_prog_cursor_t *cursor);
/** @} */

#endif
