/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_long_int.h
 * Private to long operations: dn_tree_long.c begins and ends them, dn_tree_long_step.c does their steps.
 */
#ifndef DN_TREE_LONG_INT_H
#define DN_TREE_LONG_INT_H

#include "dn_tree_crowd.h"
#include "dn_tree_long.h"

/** Bytes that are folded at a time: they stay in the first cache. */
#define DN_TREE_LONG_CHUNK 4096u

/** Lines of the ring. */
#define DN_TREE_LONG_LINES (DN_TREE_LONG_RING / 64)
/** The longest piece has 1 << DN_TREE_LONG_SLOT_SHIFT lines. */
#define DN_TREE_LONG_SLOT_SHIFT 8
_Static_assert(DN_TREE_LONG_SLOT == 64 << DN_TREE_LONG_SLOT_SHIFT, "its lines are a power of two");
_Static_assert(DN_TREE_LONG_PIECE <= DN_TREE_LONG_SLOT, "a slot holds the shortest piece");
_Static_assert(0 == DN_TREE_LONG_PIECE % 64, "a piece that ends between lines is no shorter");
_Static_assert(0 == (DN_TREE_LONG_RING & (DN_TREE_LONG_RING - 1)), "no piece lies across its end");
_Static_assert(DN_TREE_LONG_ELEMENT <= DN_TREE_LONG_CHUNK, "an element fits");

#define DN_TREE_LONG_ALL UINT32_MAX

/** Counters of an area, in this order. */
enum { FILLED, REDUCED, TAKEN, COUNTERS };
_Static_assert(COUNTERS == DN_TREE_CROWD_COUNTERS, "a crowd counts them all");

/** What a process does with a piece in the end. */
typedef enum dn_tree_take {
    DN_TREE_TAKE_NOTHING,
    DN_TREE_TAKE_MOVE,    /**< move the root's bytes to where they belong */
    DN_TREE_TAKE_FOLD,    /**< fold the operands of all ranks */
    DN_TREE_TAKE_SWAPPED, /**< two ranks: fold the operands of the other rank and the own operands */
    DN_TREE_TAKE_SHARES,  /**< copy the shares that each rank has reduced */
    DN_TREE_TAKE_PART,    /**< fold the operands of all ranks, of the own part of the result only */
    DN_TREE_TAKE_BLOCKS,  /**< have the caller get the data that each of the other ranks gave */
    DN_TREE_TAKE_PREFIX, /**< copy what a rank has folded, or fold the result of the rank before and the own operands */
} dn_tree_take_t;

struct dn_tree_long {
    dn_tree_long_config_t config;
    uint64_t done[COUNTERS];  /**< counters of this process */
    uint64_t *seen[COUNTERS]; /**< counters of other ranks, by rank, as loaded last */
    int dense;
    dn_tree_crowd_t *crowd; /**< tells the counters of all ranks; NULL: each rank looks at all others */
    /* The operation under way: */
    uint64_t first; /**< number of its first line */
    uint64_t end;   /**< number behind its last line */
    uint32_t shift; /**< each piece has 1 << shift lines of the ring */
    size_t piece;   /**< bytes of a piece but the last */
    size_t len;
    int fills;
    int reduces;
    dn_tree_take_t way;  /**< of the processes that want the result */
    dn_tree_take_t take; /**< of this process: `way`, or DN_TREE_TAKE_NOTHING */
    /** The rank whose bytes all others wait for: the root of a broadcast, the first rank of a scan; else DN_TREE_LONG_ALL. */
    uint32_t root;
    const uint8_t *in;
    uint8_t *out;
    size_t part_at; /**< bytes of the result before the own part */
    size_t part_len;
    uint32_t folded; /**< of a scan: how many ranks, from the first on, are folded into the own result */
    const dn_tree_reduction_t *reduction;
    dn_tree_mover_t *mover;   /**< of a broadcast, else NULL */
    dn_tree_blocks_t *blocks; /**< of an exchange, else NULL */
    int marks;  /**< this process is to mark the next exchange, or marks the exchange under way */
    int marked; /**< some process has marked the exchange, as far as this process knows */

    uint64_t passed; /**< times that something was passed on in the crowd */
    int news;        /**< something was stored for other processes since they were woken last */
    int failed;
    uint32_t vain;  /**< tests since the last step */
    uint32_t asked; /**< the rank that was asked last whether it lives */
    _Alignas(64) uint8_t chunk[DN_TREE_LONG_CHUNK];
};

/** Where a counter of an area is. */
static inline uint64_t *dn_tree_long_counter(const void *area, int which)
{
    return (uint64_t *) ((uintptr_t) area + 64 * (size_t) which);
}

/** Where the owner of an area says which exchange it marks: in the line of `filled`, which processes that wait for its bytes read. */
static inline uint64_t *dn_tree_long_mark_of(const void *area)
{
    return dn_tree_long_counter(area, FILLED) + 1;
}

/** Are the counters of all other ranks beyond a line? */
int dn_tree_long_are_all_beyond(dn_tree_long_t *lng, int which, uint64_t number);
/** Store a counter of this process: all lines before @p number are done. Other processes that sleep are woken later, once for several
 * steps. */
void dn_tree_long_publish(dn_tree_long_t *lng, int which, uint64_t number);

#endif
