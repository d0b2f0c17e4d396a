/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_memory.c
 * Memory that peers map, in pieces of segments.
 *
 * A peer maps a segment once and keeps it mapped. So what windows give back stays here, and serves later
 * windows: a job that makes and frees windows for ever has as many segments as it had windows at once, and windows
 * of a few pages share one, with its descriptor. The kernel gets the pages back at once, which also makes
 * them zero again, unless it counts them (dn_memory_is_counted()).
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include <sys/mman.h>
#include <sys/resource.h>

/** Pieces are whole pages. */
#define PAGE 4096u

/** Bytes of a segment for small windows. They are address space until they are written to. */
#define ARENA_BYTES ((uint64_t) 16 << 20)

/** One descriptor in this many may be that of a segment for MPI_Alloc_mem: it can do with other memory, files cannot. */
#define DESCRIPTOR_SHARE 4u

/** A free piece. */
typedef struct osc_hole {
    struct osc_hole *next; /**< behind it; no two touch */
    uint64_t off;
    uint64_t len;
} osc_hole_t;

/** A segment. */
typedef struct osc_arena {
    struct osc_arena *next;
    dn_segment_t *segment;
    osc_hole_t *holes; /**< by offset */
} osc_arena_t;

static osc_arena_t *arenas;
static uint64_t num_arenas;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/** Steps of an eighth of the power of two below: other windows of about this size will fit. */
static uint64_t arena_bytes(uint64_t len)
{
    if (ARENA_BYTES / 4 >= len) {
        return ARENA_BYTES;
    }
    return round_up(len, (UINT64_C(1) << (63 - __builtin_clzll(len))) / 8);
}

static osc_arena_t *arena_make(uint64_t len)
{
    osc_arena_t *arena = calloc(1, sizeof(*arena));
    osc_hole_t *hole = calloc(1, sizeof(*hole));
    const uint64_t bytes = arena_bytes(len);

    if (NULL == arena || NULL == hole
        || DN_OK != dn_segment_alloc(mca_osc_dimmnet_component.port, bytes, &arena->segment)) {
        free(hole);
        free(arena);
        return NULL;
    }
    hole->len = bytes;
    arena->holes = hole;
    arena->next = arenas;
    arenas = arena;
    num_arenas++;
    return arena;
}

/** Cut a piece off the first hole that is long enough. */
static bool arena_cut(osc_arena_t *arena, uint64_t len, osc_block_t *block)
{
    for (osc_hole_t **at = &arena->holes; NULL != *at; at = &(*at)->next) {
        osc_hole_t *hole = *at;

        if (len <= hole->len) {
            *block =
                (osc_block_t){arena, hole->off, len, (uint8_t *) dn_segment_base(arena->segment) + hole->off};
            hole->off += len;
            hole->len -= len;
            if (0 == hole->len) {
                *at = hole->next;
                free(hole);
            }
            return true;
        }
    }
    return false;
}

/** Cut a piece off any segment, or a new one while there are fewer than @p most. */
static bool take(uint64_t len, uint64_t most, osc_block_t *block)
{
    bool taken = false;

    if (INT64_MAX < len) {
        return false;
    }
    len = round_up(len, PAGE);
    opal_mutex_lock(&mca_osc_dimmnet_component.lock);
    for (osc_arena_t *arena = arenas; NULL != arena && !taken; arena = arena->next) {
        taken = arena_cut(arena, len, block);
    }
    if (!taken && num_arenas < most) {
        osc_arena_t *arena = arena_make(len);

        taken = NULL != arena && arena_cut(arena, len, block);
    }
    opal_mutex_unlock(&mca_osc_dimmnet_component.lock);
    return taken;
}

bool ompi_osc_dimmnet_memory_take(uint64_t len, osc_block_t *block)
{
    const bool taken = take(len, UINT64_MAX, block);

    if (!taken) {
        dn_ompi_help("no-segment", opal_process_info.nodename, (unsigned long) len);
    }
    return taken;
}

bool ompi_osc_dimmnet_memory_spare(uint64_t len, osc_block_t *block)
{
    struct rlimit limit;

    return 0 == getrlimit(RLIMIT_NOFILE, &limit) && take(len, limit.rlim_cur / DESCRIPTOR_SHARE, block);
}

/** Put a piece among the holes of its segment. Without memory for the note of it, it is lost until the end. */
static void arena_return(osc_arena_t *arena, uint64_t off, uint64_t len)
{
    osc_hole_t **at = &arena->holes;
    osc_hole_t *before = NULL;

    while (NULL != *at && (*at)->off < off) {
        before = *at;
        at = &before->next;
    }
    osc_hole_t *after = *at;
    if (NULL != before && before->off + before->len == off) {
        before->len += len;
    } else {
        osc_hole_t *hole = calloc(1, sizeof(*hole));

        if (NULL == hole) {
            return;
        }
        *hole = (osc_hole_t){after, off, len};
        *at = hole;
        before = hole;
    }
    if (NULL != after && before->off + before->len == after->off) {
        before->len += after->len;
        before->next = after->next;
        free(after);
    }
}

void ompi_osc_dimmnet_memory_give(osc_block_t *block)
{
    if (NULL == block->arena) {
        return;
    }
    /* Where pages are counted, what was given back may not be had again: it stays taken. */
    if (0 != dn_memory_is_counted() || 0 != madvise(block->base, block->len, MADV_REMOVE)) {
        memset(block->base, 0, block->len);
    }
    opal_mutex_lock(&mca_osc_dimmnet_component.lock);
    arena_return(block->arena, block->off, block->len);
    opal_mutex_unlock(&mca_osc_dimmnet_component.lock);
    block->arena = NULL;
}

void ompi_osc_dimmnet_memory_key(const osc_block_t *block, dn_key_t *key_p)
{
    dn_segment_key(block->arena->segment, key_p);
}

bool ompi_osc_dimmnet_memory_find(const void *base, uint64_t len, dn_key_t *key_p, uint64_t *off_p)
{
    bool found = false;

    opal_mutex_lock(&mca_osc_dimmnet_component.lock);
    for (osc_arena_t *arena = arenas; NULL != arena && !found; arena = arena->next) {
        const uint64_t off = (uintptr_t) base - (uintptr_t) dn_segment_base(arena->segment);

        dn_segment_key(arena->segment, key_p);
        found = off <= key_p->len && len <= key_p->len - off;
        *off_p = off;
    }
    opal_mutex_unlock(&mca_osc_dimmnet_component.lock);
    return found;
}

void ompi_osc_dimmnet_memory_close(void)
{
    while (NULL != arenas) {
        osc_arena_t *arena = arenas;

        arenas = arena->next;
        while (NULL != arena->holes) {
            osc_hole_t *hole = arena->holes;

            arena->holes = hole->next;
            free(hole);
        }
        dn_segment_free(arena->segment);
        free(arena);
    }
    num_arenas = 0;
}
