/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_piece.h
 * Memory that peers map, in pieces of segments.
 *
 * A peer maps a segment once and keeps it mapped. So a segment stays here when its pieces are given back, and serves later takers.
 * A process that takes and gives for ever needs no more segments than it had pieces at one time. Small pieces share one segment, with
 * its descriptor. The pages of a piece that is given back go to the kernel at once, which also makes them zero. Where the kernel
 * counts the pages (dn_memory_is_counted()), they are kept, and set to zero here.
 *
 * Shape:     a piece is whole pages, aligned to a page. All of its bytes are zero.
 * Ownership: the caller of dn_piece_alloc() has the piece until dn_piece_free(). Where peers do not map pages (no DN_CAP_MAP),
 *            dn_push() and dn_pull() reach the piece by its key and offset.
 * Threads:   any number at once, but for dn_pieces_open() and dn_pieces_close().
 * Ordering:  all users of a piece agree on its end before it is given back. A peer that stores later would change the next
 *            user's memory.
 *
 * Pinned by test/device/rma_memory.c.
 */
#ifndef DN_PIECE_H
#define DN_PIECE_H

#include "dimmnet.h"

#include <pthread.h>

/** A piece of a segment, in the address space of this process. */
typedef struct dn_piece {
    struct dn_arena *arena; /**< its segment; NULL: no memory */
    uint64_t off;           /**< in the segment */
    uint64_t len;
    uint8_t *base;
} dn_piece_t;

/** The segments of a port that pieces are cut from. */
typedef struct dn_pieces {
    dn_port_t *port;
    struct dn_arena *arenas;
    uint64_t segments;
    pthread_mutex_t lock;
} dn_pieces_t;

/** Begin with no segments. */
DN_API void dn_pieces_open(dn_pieces_t *pieces, dn_port_t *port);
/** Give all segments back to the port. No piece is used any more. */
DN_API void dn_pieces_close(dn_pieces_t *pieces);

/**
 * Take memory.
 *
 * @param[in]  len      Bytes, rounded up to whole pages.
 * @param[in]  most     Segments. Where there are so many, no new segment is made. Each segment takes a descriptor.
 * @param[out] piece_p  Set on DN_OK only.
 *
 * @retval DN_ERR_NOMEM  there is no memory, or @p most segments are full.
 */
DN_API dn_status_t dn_piece_alloc(dn_pieces_t *pieces, uint64_t len, uint64_t most, dn_piece_t *piece_p);

/** Give a piece back. A piece without memory is legal: so a second call with the same piece does nothing. */
DN_API void dn_piece_free(dn_pieces_t *pieces, dn_piece_t *piece);

/** The key of a piece's segment. Peers find the piece by this key and dn_piece_t::off. */
DN_API void dn_piece_key(const dn_piece_t *piece, dn_key_t *key_p);

/** Is memory in one of the segments? @return not 0: it is, at offset @p off_p of the segment that @p key_p names. */
DN_API int dn_pieces_find(dn_pieces_t *pieces, const void *base, uint64_t len, dn_key_t *key_p,
                          uint64_t *off_p);

#endif
