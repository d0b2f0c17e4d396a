/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_int.h
 * Inside of dn_tree, for its files and its unit tests.
 */
#ifndef DN_TREE_INT_H
#define DN_TREE_INT_H

#include "dn_atomic.h"
#include "dn_tree.h"

#define DN_TREE_NONE UINT32_MAX

/** Beside the count of lines taken, in the word where a member says it: the member has given the tree up. No
 * count comes so far: 2^63 lines take centuries. */
#define DN_TREE_GIVEN_UP (UINT64_C(1) << 63)

/** In the number of a line, which comes to the process that polls for it without or with: some process has marked the exchange. The
 * number of the lap before, which lies there until then, differs by no more than DN_TREE_DEPTH_MAX. */
#define DN_TREE_MARK UINT32_C(0x80000000)

/** A line of a link. */
typedef struct dn_tree_line {
    uint8_t data[DN_AOTF_LINE_MAX];
    uint64_t flag;
} dn_tree_line_t;

_Static_assert(64 == sizeof(dn_tree_line_t), "a line is a cache line");

/**
 * One end of a link. Lines are numbered from dn_first() + 1 on.
 *
 * What is compared with the credit word counts in 64 bits and never wraps, since that word may stand still
 * for any number of lines: barriers say in their own lines what was taken. The lower halves of `sent` and
 * `taken` travel in flags, and `acked` and `told` have no more than that: their distances from `sent` and
 * `taken` stay small, as is said where they are compared.
 */
typedef struct dn_tree_link {
    dn_peer_t *peer;
    dn_tree_line_t *in; /**< here, written by the peer */
    const uint64_t
        *credit;      /**< here: lines the peer has taken, ever; written by the peer when it sends no line */
    uint64_t sent;    /**< ever */
    uint64_t taken;   /**< ever */
    uint32_t out_off; /**< of the lines there */
    uint32_t credit_off; /**< of the word there */
    uint32_t acked;      /**< of sent, those known to be taken: at most depth behind it */
    uint32_t told;       /**< of taken, those the peer has been told of: at most depth behind it */
    uint32_t depth;      /**< lines in each direction: a power of two */
    uint32_t defers;     /**< not 0: what was taken is told between two tests only, since that takes long */
} dn_tree_link_t;

_Static_assert(64 == sizeof(dn_tree_link_t), "a link is looked at in one line");

/** A group that this process is a member of. */
typedef struct dn_tree_group {
    uint32_t level;
    uint32_t members;
    uint32_t self;        /**< our place among the members */
    uint32_t depth;       /**< lines of a link */
    int mapped;           /**< lines come without dn_progress() */
    uint32_t batch;       /**< most lines that go together to each other member */
    uint32_t *start;      /**< members + 1 positions: what member i stands for begins at start[i] */
    dn_tree_link_t *link; /**< by member; our own is not used */
} dn_tree_group_t;

/** What becomes of received lines; beyond DN_TREE_FOLD, what part of an exchange a step is
 * (dn_tree_exchange.c). */
typedef enum dn_tree_use {
    DN_TREE_IGNORE,
    DN_TREE_STORE,
    DN_TREE_FOLD,
    DN_TREE_GATHER, /**< the blocks of those that a member stands for */
    DN_TREE_SPREAD, /**< all blocks */
    DN_TREE_UP,     /**< blocks of those that a member stands for, for all */
    DN_TREE_ACROSS, /**< for those that another one stands for */
    DN_TREE_DOWN,   /**< of all */
} dn_tree_use_t;

/** Lines to some members of a group, and from some. */
typedef struct dn_tree_step {
    uint64_t to; /**< bits, by member */
    uint64_t from;
    uint8_t group; /**< index into dn_tree_t::group */
    uint8_t use;
    uint8_t last; /**< member from which on, down to the first, lines are used */
} dn_tree_step_t;

/** An operation: steps, each with the same number of lines to every member that it names. */
typedef struct dn_tree_op {
    dn_tree_step_t step[2 * DN_TREE_LEVELS];
    uint32_t steps;
    uint32_t at; /**< step under way */
    const uint8_t *in;
    uint8_t *out;
    size_t len;        /**< of a block of an exchange through tree->room */
    size_t in_stride;  /**< bytes from what goes to one rank to that of the next */
    size_t out_stride; /**< of what comes */
    uint32_t
        mark;     /**< of an exchange: DN_TREE_MARK once it is marked, as far as this process knows; else 0 */
    size_t piece; /**< bytes in a line */
    uint32_t lines;
    const dn_tree_reduction_t *reduction;
    /* Of the step under way: */
    uint32_t put;    /**< lines sent to all */
    uint64_t put_to; /**< members that still get line `put`, and those that go with it */
    uint32_t batch;  /**< lines that go together now, from `put` on */
    uint32_t got;    /**< lines received from all */
    uint32_t
        got_next; /**< members whose line `got` is to come, plus 1 for ourselves: from the last to the first */
    uint32_t part_put; /**< of an exchange through tree->room: lines sent to the first of put_to */
    uint32_t part_got; /**< likewise: lines received from the member that got_next says */
    _Alignas(64) uint8_t fold[64]; /**< of line `got` */
} dn_tree_op_t;

struct dn_tree {
    dn_tree_link_t *pair; /**< to the other of two; NULL: there are more */
    int failed;
    int debts;     /**< some peer is to be told what was taken */
    uint32_t mark; /**< of the next exchange: DN_TREE_MARK or 0 */
    uint32_t spin;
    dn_port_t *port;
    uint32_t ranks;
    uint32_t rank;
    uint64_t first;
    uint32_t groups;
    uint32_t
        lines; /**< that may go from host to host in an operation, so that none tells of what was taken only */
    uint32_t widest; /**< most ranks that a member of the group at the top stands for */
    int ordered;
    int mapped;
    dn_tree_group_t group[DN_TREE_LEVELS];
    uint32_t *position; /**< by rank; NULL, as `at`: they are the same */
    uint32_t *at;       /**< ranks by position */
    uint64_t llcm_off;
    size_t llcm_bytes;
    uint8_t *llcm;
    dn_tree_op_t op;
    uint8_t
        *room[2]; /**< of a tree that is not flat: for blocks on their way, and those that are to be sorted */
    uint8_t scratch[DN_AOTF_LINE_MAX * DN_TREE_LINES];
};

/** Order the ranks and find the groups of config->rank; the links are not set. */
dn_status_t dn_tree_shape(dn_tree_t *tree, const dn_tree_config_t *config);
void dn_tree_shape_free(dn_tree_t *tree);

/** Set or leave tree->room, to be freed by dn_tree_destroy(). */
dn_status_t dn_tree_room_alloc(dn_tree_t *tree);

/** Take the first step of what is described, and all that can be. */
dn_status_t dn_tree_start(dn_tree_t *tree);
/** From all to the first of each group up to the top, where all exchange; and back. */
dn_status_t dn_tree_all(dn_tree_t *tree, dn_tree_use_t up, dn_tree_use_t across, dn_tree_use_t down);
/** Go on with a step of an exchange through tree->room. @return DN_OK: it is done; DN_ERR_AGAIN: it is not; another: a peer is
 * gone. */
dn_status_t dn_tree_run_exchange(dn_tree_t *tree, const dn_tree_step_t *step);

/** As dn_tree_barrier() and so on, whatever the tree is. */
dn_status_t dn_tree_start_barrier(dn_tree_t *tree);
dn_status_t dn_tree_start_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len);
dn_status_t dn_tree_start_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                                 const dn_tree_reduction_t *reduction);
dn_status_t dn_tree_start_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                                    const dn_tree_reduction_t *reduction);
/** Either scan. @param folded  ranks whose operands, from the first on, are the own result: the own rank, or one more. */
dn_status_t dn_tree_start_scan(dn_tree_t *tree, const void *in, void *out, size_t count, uint32_t folded,
                               const dn_tree_reduction_t *reduction);

/** Bytes of LLCM for the links of a group: lines from each other member, then their words. */
static inline size_t dn_tree_group_bytes(const dn_tree_group_t *group)
{
    const size_t others = group->members - 1;
    return others * group->depth * sizeof(dn_tree_line_t) + (others * sizeof(uint64_t) + 63) / 64 * 64;
}

/** The place of member @p of among the others of member @p at. */
static inline uint32_t dn_tree_seat(uint32_t at, uint32_t of)
{
    return of < at ? of : of - 1;
}

#endif
