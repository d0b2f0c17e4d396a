/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_prog_block.h
 * Copies of one block, and of rows of blocks of one length. Target and source of a block may overlap. Only
 * dn_prog_copy.c includes this file: a call to another file would cost more registers than a static function.
 */
#ifndef DN_PROG_BLOCK_H
#define DN_PROG_BLOCK_H

#include <stdint.h>
#include <string.h>

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

/** A piece of a block in registers. All of a block is loaded before any of it is stored, because sides may overlap. */
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
 * @param pair   Not 0: the block is copied as two pieces, one at its start, one at its end: any length in
 *               width .. 2 * width without a branch. 0: the block is one piece.
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

/** Copy one block of any length. Several lengths share a branch: in a walk of mixed lengths the processor predicts few branches right. */
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

/** Choose the loop for a length, and run it. */
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

/** Copy n blocks in order, at constant distances. Six numbers fit into registers: sides handed over in memory
 * double the time of a row of 8 blocks. */
static __attribute__((noinline)) void dn_prog_strided(uint64_t to, int64_t to_step, uint64_t from,
                                                      int64_t from_step, uint64_t len, uint64_t n)
{
    const dn_prog_side_t t = {to, to_step, NULL};
    const dn_prog_side_t f = {from, from_step, NULL};
    dn_prog_by_length(t, f, len, n);
}

/** Likewise, where the blocks of at least one side are in a LIST. */
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

#endif
