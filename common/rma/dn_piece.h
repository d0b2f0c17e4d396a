/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_piece.h
 * Memory that peers map, in pieces of segments.
 *
 * A peer maps a segment once and keeps it mapped. So what users give back stays here, and serves later ones: a process that takes
 * and gives for ever has as many segments as it had pieces at once, and pieces of a few pages share one, with its
 * descriptor. The kernel gets the pages back at once, which also makes them zero again, unless it counts them
 * (dn_memory_is_counted()).
 *
 * Shape:     pieces are whole pages, aligned to one, and zero.
 * Ownership: a piece is its taker's until it is given back. Where pages are mapped by no peer (DN_CAP_MAP), dn_push() and
 *            dn_pull() reach it by its key and offset.
 * Threads:   any number at once, but for dn_pieces_open() and dn_pieces_close().
 * Ordering:  what a peer stores in a piece after that is given back is stored in somebody else's: its users agree on its end first.
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
    uint64_t off;           /**< in that */
    uint64_t len;
    uint8_t *base;
} dn_piece_t;

/** The segments of a port that pieces are of. */
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
 * @param[in]  most     Segments: beyond that no new one is made. Each takes a descriptor.
 * @param[out] piece_p  Set on DN_OK only.
 *
 * @retval DN_ERR_NOMEM  there is none, or too many segments.
 */
DN_API dn_status_t dn_piece_alloc(dn_pieces_t *pieces, uint64_t len, uint64_t most, dn_piece_t *piece_p);

/** Give a piece back. One without memory is legal, and so is again. */
DN_API void dn_piece_free(dn_pieces_t *pieces, dn_piece_t *piece);

/** By which peers find a piece, with its offset: the key of its segment. */
DN_API void dn_piece_key(const dn_piece_t *piece, dn_key_t *key_p);

/** Is memory in one of the segments? @return not 0: it is, at @p off_p of the one that @p key_p names. */
DN_API int dn_pieces_find(dn_pieces_t *pieces, const void *base, uint64_t len, dn_key_t *key_p,
                          uint64_t *off_p);

#endif
