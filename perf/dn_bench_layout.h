/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_BENCH_LAYOUT_H
#define DN_BENCH_LAYOUT_H

/*
 * Where in memory the bytes of one message lie: blocks, in the order in which
 * they are sent. It is known without MPI, so that -c checks what became of a
 * derived datatype and does not ask the datatype engine about its own work.
 */

#include <stddef.h>
#include <stdint.h>

/** Memory that holds no data has this value in every byte, see dn_bench_layout_check(). */
#define DN_BENCH_FILLER 0x5a

typedef struct {
    int offset;
    int len;
} dn_bench_block_t;

/** What -D names. The letters are those of the OSU micro-benchmarks. */
typedef struct {
    enum {
        DN_BENCH_PLAIN, /**< no derived datatype */
        DN_BENCH_CONT,  /**< one block of the size */
        DN_BENCH_VECT,  /**< size / stride blocks of @c len bytes, @c stride bytes apart */
        DN_BENCH_INDX   /**< the blocks of a file, whatever the size */
    } kind;
    int stride;
    int len;
    dn_bench_block_t *list;
    int list_len;
} dn_bench_ddt_t;

/** Block k is the k-th of @c list, else it lies at (k / inner) * outer_stride + (k % inner) * stride. */
typedef struct {
    size_t blocks;
    size_t inner;
    size_t stride;
    size_t outer_stride;
    size_t len;
    const dn_bench_block_t *list; /**< NULL: all blocks have @c len bytes */
    size_t bytes;                 /**< of data: what is sent */
    size_t extent;                /**< from the start of memory to the end of the last block */
} dn_bench_layout_t;

/**
 * Read the argument of -D: cont, vect:STRIDE:BLOCK or indx:FILE. A line of FILE is
 * 'displacement, block length' in bytes, '#' starts a comment line.
 *
 * @return NULL, or in words what the argument must be. The list lives as long as the program.
 */
const char *dn_bench_ddt_parse(const char *text, dn_bench_ddt_t *ddt);

/** The layout of a message of @p size under @p ddt. */
dn_bench_layout_t dn_bench_layout(const dn_bench_ddt_t *ddt, size_t size);

/** @p outer times @p inner blocks of @p len bytes; strides are in bytes. */
dn_bench_layout_t dn_bench_layout_grid(size_t outer, size_t outer_stride, size_t inner, size_t stride,
                                       size_t len);

/** Write the pattern of @p seed into every block. Other memory is left alone. */
void dn_bench_layout_fill(const dn_bench_layout_t *layout, void *mem, uint64_t seed);

/**
 * Compare every block with what dn_bench_layout_fill() writes, for layouts that cut the data
 * alike, and all other bytes of the @p room with DN_BENCH_FILLER. Fills all of it again.
 *
 * @return Offset of the first wrong byte, or @p room.
 */
size_t dn_bench_layout_check(const dn_bench_layout_t *layout, void *mem, size_t room, uint64_t seed);

#endif
