/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_prog.h
 * Scatter/gather programs: the compiled form of a derived datatype, which either side of a transfer can run.
 *
 * A program says where the bytes of an instance lie, in the order of the byte stream, relative to an origin:
 *
 *   RUN   count blocks of len bytes, block i at `at + i * stride`
 *   LOOP  the `inside` ops that follow, count times, turn i moved by `at + i * stride`
 *
 * A matrix column is one RUN, a subarray is LOOPs around a RUN, an indexed type is a row of RUNs of one block.
 * Zero counts and lengths, negative places and strides, and blocks that overlap are ordinary input.
 * dn_prog_create() brings them to a normal form with the same bytes in the same order:
 *
 *   - nothing is empty, no loop has one turn only, and a loop's own `at` has moved into its ops;
 *   - adjacent blocks are one block, and blocks at a constant distance are one RUN;
 *   - a loop around one RUN or LOOP, whose turns continue that op, is one op together with it;
 *   - blocks of one length at irregular places are one LIST: 8 bytes a block, in a table beside the ops.
 *
 * A use repeats a program: instance i has its origin at `i * extent`. A cursor walks a use. A cursor holds no
 * pointer into itself, so a copy of a cursor marks a place to which the caller can come back.
 *
 * All sizes have 64 bits. The bytes that a use covers are known before a walk, and the walk touches no other
 * bytes, also where a peer encoded the program.
 *
 * Threads: a program never changes and may be used by any number of threads; one thread at a time uses a cursor.
 * None of these functions logs: the caller knows where the ops or bytes come from.
 */
#ifndef DN_PROG_H
#define DN_PROG_H

#include "dn_types.h"

/** Loops around a block in the normal form; a cursor has room for these. */
#define DN_PROG_DEPTH_MAX 16
/** Loops around a block as given to dn_prog_create(): most of them vanish. */
#define DN_PROG_NEST_MAX 64

/** Kinds of ops, as the head of this file says. */
typedef enum dn_prog_kind {
    DN_PROG_RUN = 1,  /**< blocks at one distance */
    DN_PROG_LOOP = 2, /**< the ops inside, several times */
    DN_PROG_LIST = 3, /**< made by dn_prog_create(), not accepted by it */
} dn_prog_kind_t;

/** One op. The ops of a loop follow it at once. */
typedef struct dn_prog_op {
    uint32_t kind;   /**< dn_prog_kind_t */
    uint32_t inside; /**< LOOP: number of ops inside, with the ops of inner loops; else 0 */
    int64_t at;      /**< bytes from the origin to the first block, or to the first turn's origin */
    uint64_t len;    /**< bytes of a block; of no meaning in a LOOP */
    uint64_t count;  /**< blocks, or turns */
    int64_t stride;  /**< bytes from one block or turn to the next */
} dn_prog_op_t;

/** A compiled program: dn_prog_create(). */
typedef struct dn_prog dn_prog_t;

/** Facts about a program. */
typedef struct dn_prog_info {
    uint64_t id;     /**< number of this program in this process, from 1 on, never given again */
    uint64_t size;   /**< bytes of an instance */
    uint64_t blocks; /**< blocks of an instance: size / blocks is their mean length */
    int64_t low;     /**< lowest byte, from the origin; 0 when size is 0 */
    int64_t high;    /**< 1 + the highest byte */
    uint32_t ops;    /**< in the normal form */
    uint32_t depth;  /**< most loops around a block */
} dn_prog_info_t;

/** Instances of a program side by side. */
typedef struct dn_prog_use {
    const dn_prog_t *prog; /**< lent as long as the use exists */
    uint64_t count;        /**< instances, 0 is legal */
    int64_t extent;        /**< bytes from the origin of one instance to the next; any value */
} dn_prog_use_t;

/** What a use covers: bytes, and where they lie from the origin of its first instance. */
typedef struct dn_prog_span {
    uint64_t size; /**< bytes of all instances */
    int64_t low;   /**< lowest byte; 0 when size is 0 */
    int64_t high;  /**< 1 + the highest byte */
} dn_prog_span_t;

/** The largest program that dn_prog_decode() accepts. */
typedef struct dn_prog_limits {
    uint32_t max_ops;    /**< in the normal form */
    uint32_t max_places; /**< blocks in LISTs */
    uint32_t max_depth;  /**< up to DN_PROG_DEPTH_MAX */
} dn_prog_limits_t;

/** @name Programs */
/** @{ */

/**
 * Compile a program.
 *
 * @param[in]  ops     Read only, the caller's again on return.
 * @param[in]  n       Number of ops; 0 is legal: no bytes.
 * @param[out] prog_p  The program; the caller's until dn_prog_free().
 *
 * @retval DN_ERR_PARAM        an unknown kind, or `inside` does not fit: correct the ops.
 * @retval DN_ERR_RANGE        2^64 bytes or more, or a byte whose place does not fit into an int64: no memory holds that.
 * @retval DN_ERR_UNSUPPORTED  deeper than DN_PROG_NEST_MAX as given, or than DN_PROG_DEPTH_MAX in the normal
 *                             form: choose another path for this datatype.
 * @retval DN_ERR_NOMEM        memory ran out.
 *
 * Pinned by test/unit/dn_prog_create_makes_few_ops_in_order.c, dn_prog_refuses_what_no_memory_holds.c.
 */
DN_API dn_status_t dn_prog_create(const dn_prog_op_t *ops, size_t n, dn_prog_t **prog_p);

/** Free a program; NULL is legal. No cursor and no use of it may be left. */
DN_API void dn_prog_free(dn_prog_t *prog);

/** Facts about a program; valid as long as the program. */
DN_API const dn_prog_info_t *dn_prog_info(const dn_prog_t *prog);
/** @} */

/** @name Uses */
/** @{ */

/**
 * What a use covers.
 * @retval DN_ERR_RANGE  2^64 bytes or more, or a byte whose place does not fit into an int64: do not start a walk.
 */
DN_API dn_status_t dn_prog_span(const dn_prog_use_t *use, dn_prog_span_t *span_p);

/**
 * Check one side of a transfer, as dn_sg_check() does: the use has exactly @p len bytes, and none of them
 * leaves 0 .. limit when its origin is placed at @p base.
 * @retval DN_ERR_PARAM  the use has another number of bytes, or more than 64 bits can count.
 * @retval DN_ERR_RANGE  a byte leaves the limit.
 */
DN_API dn_status_t dn_prog_check(const dn_prog_use_t *use, uint64_t base, uint64_t len, uint64_t limit);

/**
 * Is a use one block of bytes that lie together in order? Then the transfer needs no program. The use has been checked.
 *
 * @param[out] at_p   Where the block starts, from the origin.
 * @param[out] len_p  Its length, 0 when there are no bytes.
 * @return 1: it is one block; 0: it is not, and nothing is set.
 */
DN_API int dn_prog_contiguous(const dn_prog_use_t *use, int64_t *at_p, uint64_t *len_p);
/** @} */

/** @name Programs on the wire
 *
 * 64-bit words in the machine's byte order. The first word shows another byte order or version:
 *
 *   magic:32 version:16 depth:16 | ops:32 places:32 | size | low | high | ops of 40 bytes | places of 8 bytes
 */
/** @{ */

/**
 * Encode a program for a peer.
 *
 * @param[in,out] len  In: size of @p buf. Out: bytes used, or needed when DN_ERR_RANGE is returned.
 * @retval DN_ERR_RANGE  @p buf is too small: retry with *len bytes.
 */
DN_API dn_status_t dn_prog_encode(const dn_prog_t *prog, void *buf, size_t *len);

/**
 * Make a program of a peer's bytes. They may be anything. Only bytes that dn_prog_encode() can write are accepted,
 * and the program must cover exactly what it declares. Call dn_prog_check() before a walk.
 *
 * @param[in]  bytes   Any alignment. In memory that the peer cannot change meanwhile.
 * @param[in]  limits  NULL: 65536 ops, 1048576 places, DN_PROG_DEPTH_MAX.
 * @param[out] prog_p  As from dn_prog_create(), with an id of this process.
 *
 * The function takes memory in proportion to @p len, and only after it has checked the limits.
 *
 * @retval DN_ERR_PROTO    malformed: a faulty or hostile peer.
 * @retval DN_ERR_VERSION  another version of the encoding.
 * @retval DN_ERR_RANGE    larger than the limits: take the bytes of this transfer another way.
 * @retval DN_ERR_NOMEM    memory ran out.
 *
 * Pinned by test/unit/dn_prog_decode_takes_only_what_was_encoded.c and test/fuzz.
 */
DN_API dn_status_t dn_prog_decode(const void *bytes, size_t len, const dn_prog_limits_t *limits,
                                  dn_prog_t **prog_p);
/** @} */

/** @name Cursors
 *
 * In a copy all addresses are of this process. Blocks of the source may overlap. Where target and source
 * overlap, or blocks of the target overlap, the bytes there are unspecified afterwards.
 */
/** @{ */

/** One open loop of a walk. */
typedef struct dn_prog_level {
    uint64_t base;  /**< origin of the present turn */
    uint64_t turns; /**< turns left, with the present turn */
} dn_prog_level_t;

/** Where a walk stands; all fields are private. */
typedef struct dn_prog_cursor {
    uint64_t left;         /**< bytes of the whole walk that are ahead */
    uint64_t blocks;       /**< blocks of the present op that are ahead, with the present block */
    uint64_t len;          /**< bytes of each block */
    uint64_t done;         /**< bytes of the present block that are behind, less than len */
    uint64_t at;           /**< the present block; of a LIST: the number to which its places are added */
    int64_t stride;        /**< to the next block */
    const int64_t *place;  /**< LIST: place of the present block; else NULL */
    const dn_prog_t *prog; /**< NULL: the whole walk is the present op */
    uint64_t base;         /**< origin of the first instance; of a walk without a program: the first block */
    uint64_t size;         /**< bytes of the whole walk */
    uint64_t count;        /**< of the use */
    int64_t extent;        /**< of the use */
    uint32_t node;         /**< the present op */
    uint32_t depth;        /**< open loops */
    dn_prog_level_t level[1 + DN_PROG_DEPTH_MAX]; /**< of the open loops */
} dn_prog_cursor_t;

/** Start a walk over a use whose origin is at @p base. The use has been checked. */
DN_API void dn_prog_start(dn_prog_cursor_t *cursor, const dn_prog_use_t *use, uint64_t base);

/** Start a walk over @p len bytes that lie together at @p base. */
DN_API void dn_prog_start_bytes(dn_prog_cursor_t *cursor, uint64_t base, uint64_t len);

/** Bytes of the walk that are still ahead. */
static inline uint64_t dn_prog_left(const dn_prog_cursor_t *cursor)
{
    return cursor->left;
}

/**
 * Take the next run of bytes that lie together, at most @p max.
 * @param[out] at_p  Where the run begins.
 * @return the length of the run; 0 only when nothing is left or max is 0.
 */
DN_API uint64_t dn_prog_next(dn_prog_cursor_t *cursor, uint64_t max, uint64_t *at_p);

/** Go to byte @p position of the walk, or to its end. The time grows with the number of loops, and with the logarithm of the ops. */
DN_API void dn_prog_seek(dn_prog_cursor_t *cursor, uint64_t position);

/** Go @p len bytes ahead. */
DN_API void dn_prog_skip(dn_prog_cursor_t *cursor, uint64_t len);

/** Copy @p len bytes from one walk to another; fewer when one of them ends. @return bytes copied. */
DN_API uint64_t dn_prog_copy(dn_prog_cursor_t *to, dn_prog_cursor_t *from, uint64_t len);

/** Copy @p len bytes from a walk to a buffer, fewer when the walk ends. @return bytes copied. */
DN_API uint64_t dn_prog_gather(void *buffer, dn_prog_cursor_t *from, uint64_t len);
/** Copy @p len bytes from a buffer to a walk, fewer when the walk ends. @return bytes copied. */
DN_API uint64_t dn_prog_scatter(dn_prog_cursor_t *to, const void *buffer, uint64_t len);
/** @} */

#endif
