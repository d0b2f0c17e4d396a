/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_piece.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/** Pieces are whole pages. */
#define DN_PIECE_PAGE 4096u

/** Bytes of a segment for small pieces. They are only address space until a process writes to them. */
#define DN_ARENA_BYTES ((uint64_t) 16 << 20)

/** A free piece. */
typedef struct dn_hole {
    struct dn_hole *next; /**< the next hole, at a higher offset; two holes never touch */
    uint64_t off;
    uint64_t len;
} dn_hole_t;

/** A segment. */
typedef struct dn_arena {
    struct dn_arena *next;
    dn_segment_t *segment;
    dn_hole_t *holes; /**< by offset */
} dn_arena_t;

static uint64_t dn_piece_round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/** Bytes of a new segment for a piece. Long ones are rounded up by at most an eighth, so that later pieces of about this size fit. */
static uint64_t dn_piece_bytes(uint64_t len)
{
    if (DN_ARENA_BYTES / 4 >= len) {
        return DN_ARENA_BYTES;
    }
    return dn_piece_round_up(len, (UINT64_C(1) << (63 - __builtin_clzll(len))) / 8);
}

static dn_arena_t *dn_piece_make(dn_pieces_t *pieces, uint64_t len)
{
    dn_arena_t *arena = calloc(1, sizeof(*arena));
    dn_hole_t *hole = calloc(1, sizeof(*hole));
    const uint64_t bytes = dn_piece_bytes(len);

    if (NULL == arena || NULL == hole || DN_OK != dn_segment_alloc(pieces->port, bytes, &arena->segment)) {
        free(hole);
        free(arena);
        return NULL;
    }
    hole->len = bytes;
    arena->holes = hole;
    arena->next = pieces->arenas;
    pieces->arenas = arena;
    pieces->segments++;
    return arena;
}

/** Cut a piece off the first hole that is long enough. */
static int dn_piece_cut(dn_arena_t *arena, uint64_t len, dn_piece_t *piece)
{
    for (dn_hole_t **at = &arena->holes; NULL != *at; at = &(*at)->next) {
        dn_hole_t *hole = *at;

        if (len <= hole->len) {
            *piece =
                (dn_piece_t){arena, hole->off, len, (uint8_t *) dn_segment_base(arena->segment) + hole->off};
            hole->off += len;
            hole->len -= len;
            if (0 == hole->len) {
                *at = hole->next;
                free(hole);
            }
            return 1;
        }
    }
    return 0;
}

dn_status_t dn_piece_alloc(dn_pieces_t *pieces, uint64_t len, uint64_t most, dn_piece_t *piece)
{
    int taken = 0;

    if (INT64_MAX < len) {
        return DN_ERR_NOMEM;
    }
    len = dn_piece_round_up(len, DN_PIECE_PAGE);
    pthread_mutex_lock(&pieces->lock);
    for (dn_arena_t *arena = pieces->arenas; NULL != arena && !taken; arena = arena->next) {
        taken = dn_piece_cut(arena, len, piece);
    }
    if (!taken && pieces->segments < most) {
        dn_arena_t *arena = dn_piece_make(pieces, len);

        taken = NULL != arena && dn_piece_cut(arena, len, piece);
    }
    pthread_mutex_unlock(&pieces->lock);
    return taken ? DN_OK : DN_ERR_NOMEM;
}

/** Put a piece among the holes of its segment. Where there is no memory for a new hole, the piece is lost until the segment is freed. */
static void dn_piece_return(dn_arena_t *arena, uint64_t off, uint64_t len)
{
    dn_hole_t **at = &arena->holes;
    dn_hole_t *before = NULL;

    while (NULL != *at && (*at)->off < off) {
        before = *at;
        at = &before->next;
    }
    dn_hole_t *after = *at;
    if (NULL != before && before->off + before->len == off) {
        before->len += len;
    } else {
        dn_hole_t *hole = calloc(1, sizeof(*hole));

        if (NULL == hole) {
            return;
        }
        *hole = (dn_hole_t){after, off, len};
        *at = hole;
        before = hole;
    }
    if (NULL != after && before->off + before->len == after->off) {
        before->len += after->len;
        before->next = after->next;
        free(after);
    }
}

void dn_piece_free(dn_pieces_t *pieces, dn_piece_t *piece)
{
    if (NULL == piece->arena) {
        return;
    }
    /* Where pages are counted, what was given back may not be had again: it stays taken. */
    if (0 != dn_memory_is_counted() || 0 != madvise(piece->base, piece->len, MADV_REMOVE)) {
        memset(piece->base, 0, piece->len);
    }
    pthread_mutex_lock(&pieces->lock);
    dn_piece_return(piece->arena, piece->off, piece->len);
    pthread_mutex_unlock(&pieces->lock);
    piece->arena = NULL;
}

void dn_piece_key(const dn_piece_t *piece, dn_key_t *key_p)
{
    dn_segment_key(piece->arena->segment, key_p);
}

int dn_pieces_find(dn_pieces_t *pieces, const void *base, uint64_t len, dn_key_t *key_p, uint64_t *off_p)
{
    int found = 0;

    pthread_mutex_lock(&pieces->lock);
    for (const dn_arena_t *arena = pieces->arenas; NULL != arena && !found; arena = arena->next) {
        const uint64_t off = (uintptr_t) base - (uintptr_t) dn_segment_base(arena->segment);

        dn_segment_key(arena->segment, key_p);
        found = off <= key_p->len && len <= key_p->len - off;
        *off_p = off;
    }
    pthread_mutex_unlock(&pieces->lock);
    return found;
}

void dn_pieces_open(dn_pieces_t *pieces, dn_port_t *port)
{
    *pieces = (dn_pieces_t){.port = port};
    (void) pthread_mutex_init(&pieces->lock, NULL);
}

void dn_pieces_close(dn_pieces_t *pieces)
{
    while (NULL != pieces->arenas) {
        dn_arena_t *arena = pieces->arenas;

        pieces->arenas = arena->next;
        while (NULL != arena->holes) {
            dn_hole_t *hole = arena->holes;

            arena->holes = hole->next;
            free(hole);
        }
        dn_segment_free(arena->segment);
        free(arena);
    }
    (void) pthread_mutex_destroy(&pieces->lock);
}
