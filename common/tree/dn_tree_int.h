/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_int.h
 * Private to dn_tree: for its source files and its unit tests.
 */
#ifndef DN_TREE_INT_H
#define DN_TREE_INT_H

#include "dn_atomic.h"
#include "dn_tree.h"

#define DN_TREE_NONE UINT32_MAX

/** A bit of the credit word, beside the count of lines taken: the member has given the tree up. The count never
 * reaches this bit: 2^63 lines take centuries. */
#define DN_TREE_GIVEN_UP (UINT64_C(1) << 63)

/** A bit that is turned over in the number of a line: some process has marked the exchange. The receiver accepts a line with and
 * without the mark. The old number in the place differs by no more than DN_TREE_DEPTH_MAX, so it is neither of them. */
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
 * `sent` and `taken` count in 64 bits and never wrap, because they are compared with the credit word. That word
 * may stand still for any number of lines: in a barrier, each side says by its own lines what it has taken. The
 * lower halves of `sent` and `taken` travel in flags. `acked` and `told` are such halves: their distances from
 * `sent` and `taken` stay small. dn_tree_link.h says why, where it compares them.
 */
typedef struct dn_tree_link {
    dn_peer_t *peer;
    dn_tree_line_t *in; /**< here, written by the peer */
    const uint64_t
        *credit;    /**< here: all lines the peer has taken; the peer writes it when it has no line to send */
    uint64_t sent;  /**< lines sent, in all */
    uint64_t taken; /**< lines taken, in all */
    uint32_t out_off;    /**< offset of the lines at the peer */
    uint32_t credit_off; /**< offset of the credit word at the peer */
    uint32_t acked;      /**< lines sent that are known to be taken: at most depth less than `sent` */
    uint32_t told;       /**< lines taken that the peer has been told of: at most depth less than `taken` */
    uint32_t depth;      /**< lines in each direction: a power of two */
    /** not 0: the credit word is written between two tests only, since a write takes long */
    uint32_t defers;
} dn_tree_link_t;

_Static_assert(64 == sizeof(dn_tree_link_t), "a link is looked at in one line");

/** A group that this process is a member of. */
typedef struct dn_tree_group {
    uint32_t level;
    uint32_t members;
    uint32_t self;  /**< the place of this process among the members */
    uint32_t depth; /**< lines of a link */
    int mapped;     /**< lines come without dn_progress() */
    uint32_t batch; /**< most lines that go together to each other member */
    uint64_t told;  /**< members that were told that the tree is given up: bits */
    /** members + 1 positions: member i stands for the positions from start[i] to start[i + 1] - 1 */
    uint32_t *start;
    dn_tree_link_t *link; /**< by member; the entry of this process is not used */
} dn_tree_group_t;

/** What a step does with received lines. The values after DN_TREE_FOLD are the parts of an exchange
 * (dn_tree_exchange.c). */
typedef enum dn_tree_use {
    DN_TREE_IGNORE,
    DN_TREE_STORE,
    DN_TREE_FOLD,
    DN_TREE_GATHER, /**< allgather: the blocks of the ranks that a member stands for */
    DN_TREE_SPREAD, /**< allgather: all blocks */
    DN_TREE_UP,     /**< alltoall: blocks from the ranks that a member stands for, to all ranks */
    DN_TREE_ACROSS, /**< alltoall: blocks from the ranks that a member stands for, to those that the receiver stands for */
    DN_TREE_DOWN, /**< alltoall: blocks from all ranks, to the ranks that the receiver stands for */
} dn_tree_use_t;

/** A step: send lines to some members of a group, and receive lines from some. */
typedef struct dn_tree_step {
    uint64_t to; /**< bits, by member */
    uint64_t from;
    uint8_t group; /**< index into dn_tree_t::group */
    uint8_t use;
    uint8_t last; /**< lines are used from this member on, down to the first member */
} dn_tree_step_t;

/** An operation: steps, each with the same number of lines to every member that it names. */
typedef struct dn_tree_op {
    dn_tree_step_t step[2 * DN_TREE_LEVELS];
    uint32_t steps;
    uint32_t at; /**< step under way */
    const uint8_t *in;
    uint8_t *out;
    size_t len;        /**< of a block of an exchange through tree->room */
    size_t in_stride;  /**< bytes from the data for a rank to the data for the next rank */
    size_t out_stride; /**< bytes from the data of a rank to the data of the next rank */
    uint32_t
        mark;     /**< of an exchange: DN_TREE_MARK once it is marked, as far as this process knows; else 0 */
    size_t piece; /**< bytes in a line */
    uint32_t lines;
    const dn_tree_reduction_t *reduction;
    /* Of the step under way: */
    uint32_t put;    /**< lines sent to all */
    uint64_t put_to; /**< members that still get line `put`, and the lines that go with it */
    uint32_t batch;  /**< lines that go together now, from `put` on */
    uint32_t got;    /**< lines received from all */
    uint32_t
        got_next; /**< 1 + the member whose line `got` is used next; from the last member down to the first, then 0 */
    uint32_t part_put; /**< of an exchange through tree->room: lines sent to the first member of put_to */
    uint32_t part_got; /**< likewise: lines received from the member that got_next names */
    _Alignas(64) uint8_t fold[64]; /**< of line `got` */
} dn_tree_op_t;

struct dn_tree {
    /** in a tree of two processes: the link to the other; NULL: there are more than two */
    dn_tree_link_t *pair;
    int failed;
    int debts;     /**< not 0: some peer is still to be told what was taken */
    uint32_t mark; /**< of the next exchange: DN_TREE_MARK or 0 */
    uint32_t spin;
    dn_port_t *port;
    uint32_t ranks;
    uint32_t rank;
    uint64_t first;
    uint32_t groups;
    uint32_t
        lines; /**< most lines from host to host in an operation that needs no message only to say what was taken */
    uint32_t widest; /**< most ranks that a member of the top group stands for */
    int ordered;
    int mapped;
    dn_tree_group_t group[DN_TREE_LEVELS];
    uint32_t *position; /**< by rank; NULL, and `at` too: positions are ranks */
    uint32_t *at;       /**< ranks by position */
    uint64_t llcm_off;
    size_t llcm_bytes;
    uint8_t *llcm;
    dn_tree_op_t op;
    uint8_t *room
        [2]; /**< of a tree that is not flat: for blocks on their way, and for blocks that are to be sorted */
    uint8_t scratch[DN_AOTF_LINE_MAX * DN_TREE_LINES];
};

/** Order the ranks and find the groups of config->rank; the links are not set. */
dn_status_t dn_tree_shape(dn_tree_t *tree, const dn_tree_config_t *config);
void dn_tree_shape_free(dn_tree_t *tree);

/** Allocate tree->room where the tree is not flat; dn_tree_destroy() frees it. */
dn_status_t dn_tree_room_alloc(dn_tree_t *tree);

/** Start the operation that is described, and go as far as possible. */
dn_status_t dn_tree_start(dn_tree_t *tree);
/** Start an operation in three parts: up to the first member of each group, across in the top group, where all exchange, and down. */
dn_status_t dn_tree_all(dn_tree_t *tree, dn_tree_use_t up, dn_tree_use_t across, dn_tree_use_t down);
/** Go on with a step of an exchange through tree->room. @return DN_OK: the step is done; DN_ERR_AGAIN: it is not; another status: a
 * peer is gone. */
dn_status_t dn_tree_run_exchange(dn_tree_t *tree, const dn_tree_step_t *step);

/** Lines that a member sends to this process in such a step. */
uint32_t dn_tree_parts_from(const dn_tree_t *tree, const dn_tree_step_t *step, uint32_t member);

/** As dn_tree_barrier() and the other operations, for any tree. */
dn_status_t dn_tree_start_barrier(dn_tree_t *tree);
dn_status_t dn_tree_start_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len);
dn_status_t dn_tree_start_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                                 const dn_tree_reduction_t *reduction);
dn_status_t dn_tree_start_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                                    const dn_tree_reduction_t *reduction);
/** Start either scan. @param folded  how many ranks, from the first on, are folded into the own result: the own rank, or 1 more. */
dn_status_t dn_tree_start_scan(dn_tree_t *tree, const void *in, void *out, size_t count, uint32_t folded,
                               const dn_tree_reduction_t *reduction);

/** Bytes of LLCM for the links of a group: the lines of each other member, then their credit words. */
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
