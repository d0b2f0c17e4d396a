/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file layout.h
 * Memory of derived types for tests of collectives: data with or without gaps, and blocks of data for several ranks.
 *
 * The type may be another one in each rank: only the bytes have to be the same. All bytes that hold no data are 0x77, and have to stay so.
 */
#ifndef DN_TEST_MPI_LAYOUT_H
#define DN_TEST_MPI_LAYOUT_H

#include "verify.h"

#include <mpi.h>

enum { LAYOUT_UNIT = 4 }; /* bytes of a part of a type with gaps */

/** Memory of a type: `count` elements hold the data. */
typedef struct layout {
    MPI_Datatype type;
    int count;
    size_t extent; /**< of all elements */
    int gaps;
} layout_t;

/** Any layout for so many bytes: without gaps where they are no multiple of LAYOUT_UNIT. */
layout_t layout_draw(verify_rng_t *rng, size_t bytes);
void layout_free(layout_t *layout);
/** Put the first @p bytes bytes of the pattern of @p key into memory of a layout. */
void layout_put(unsigned char *to, const layout_t *layout, size_t bytes, uint64_t key);
/** Fail with @p what unless they are there; and unless gaps are as they were. */
void layout_check(const unsigned char *from, const layout_t *layout, size_t bytes, uint64_t key,
                  const char *what);

/** How blocks lie in memory. */
typedef enum blocks_way {
    BLOCKS_TOGETHER, /**< one after another, all of the same bytes */
    BLOCKS_APART, /**< of one type, with unused elements between them; the last block comes first. Bytes are multiples of LAYOUT_UNIT */
    BLOCKS_BY_TYPE /**< likewise, each of a type of its own */
} blocks_way_t;

/** Blocks, and how a call names them. */
typedef struct blocks {
    blocks_way_t way;
    int count;
    layout_t unit;    /**< BLOCKS_TOGETHER: of a block; BLOCKS_APART: of LAYOUT_UNIT bytes */
    layout_t *layout; /**< of each block */
    size_t *bytes;    /**< of each block */
    size_t *at;       /**< where each begins */
    int *counts;      /**< elements of each */
    int *starts;      /**< elements before each; BLOCKS_BY_TYPE: bytes */
    MPI_Aint *places; /**< bytes before each */
    MPI_Datatype *types;
    size_t extent; /**< of all */
    unsigned char *memory;
} blocks_t;

/** Make so many blocks. Their memory holds 0x77. @param[in] bytes  Of each block. BLOCKS_TOGETHER: the first says it of all, and has to be
 * there even if there is no block, since a call names it all the same. */
void blocks_make(blocks_t *blocks, verify_rng_t *rng, blocks_way_t way, int count, const size_t *bytes);
/** Check the bytes between and around the blocks, and free all. */
void blocks_free(blocks_t *blocks, const char *what);
/** Forget all data. */
void blocks_clear(blocks_t *blocks);
void blocks_put(blocks_t *blocks, int i, uint64_t key);
void blocks_check(const blocks_t *blocks, int i, uint64_t key, const char *what);
/** Fail unless nothing was written into the block. */
void blocks_check_unwritten(const blocks_t *blocks, int i, const char *what);

#endif
