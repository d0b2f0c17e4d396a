/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "layout.h"

#include <stdlib.h>
#include <string.h>

/* Bytes between two parts of a type with gaps; elements between two blocks, of LAYOUT_UNIT bytes each; what lies there. */
enum { GAP = 3, BETWEEN = 2, NOBODYS = 0x77 };

layout_t layout_draw(verify_rng_t *rng, size_t bytes)
{
    layout_t layout = {MPI_BYTE, (int) bytes, bytes, 0};

    if (0 == bytes % LAYOUT_UNIT && 0 != bytes && 0 == verify_below(rng, 2)) {
        MPI_Datatype block;
        MPI_Type_contiguous(LAYOUT_UNIT, MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, LAYOUT_UNIT + GAP, &layout.type);
        MPI_Type_free(&block);
        MPI_Type_commit(&layout.type);
        layout.count = (int) bytes / LAYOUT_UNIT;
        layout.extent = bytes / LAYOUT_UNIT * (LAYOUT_UNIT + GAP);
        layout.gaps = 1;
    }
    return layout;
}

void layout_free(layout_t *layout)
{
    if (layout->gaps) {
        MPI_Type_free(&layout->type);
    }
}

/** Where byte i of the data lies. */
static size_t place_of(const layout_t *layout, size_t i)
{
    return layout->gaps ? i / LAYOUT_UNIT * (LAYOUT_UNIT + GAP) + i % LAYOUT_UNIT : i;
}

void layout_put(unsigned char *to, const layout_t *layout, size_t bytes, uint64_t key)
{
    for (size_t i = 0; i < bytes; i++) {
        to[place_of(layout, i)] = verify_byte(key, i);
    }
}

void layout_check(const unsigned char *from, const layout_t *layout, size_t bytes, uint64_t key,
                  const char *what)
{
    for (size_t i = 0; i < bytes; i++) {
        verify_that(verify_byte(key, i) == from[place_of(layout, i)], what);
    }
    for (size_t i = 0; layout->gaps && i < layout->extent; i++) {
        verify_that(LAYOUT_UNIT > i % (LAYOUT_UNIT + GAP) || NOBODYS == from[i], "a gap was written");
    }
}

/** The layout of a block, and its place: behind all that were placed before. */
static void place_block(blocks_t *blocks, verify_rng_t *rng, int i)
{
    layout_t layout = blocks->unit;

    if (BLOCKS_BY_TYPE == blocks->way) {
        layout = layout_draw(rng, blocks->bytes[i]);
    } else if (BLOCKS_APART == blocks->way) {
        layout.count = (int) (blocks->bytes[i] / LAYOUT_UNIT) * blocks->unit.count;
        layout.extent = blocks->bytes[i] / LAYOUT_UNIT * blocks->unit.extent;
    }
    blocks->layout[i] = layout;
    blocks->at[i] = blocks->extent;
    blocks->counts[i] = layout.count;
    blocks->places[i] = (MPI_Aint) blocks->extent;
    blocks->starts[i] = (int) blocks->extent;
    if (BLOCKS_APART == blocks->way) {
        blocks->starts[i] = (int) (blocks->extent / blocks->unit.extent) * blocks->unit.count;
    }
    blocks->types[i] = layout.type;
    blocks->extent += layout.extent + (BLOCKS_TOGETHER == blocks->way ? 0 : BETWEEN * blocks->unit.extent);
}

void blocks_make(blocks_t *blocks, verify_rng_t *rng, blocks_way_t way, int count, const size_t *bytes)
{
    const size_t room = (size_t) count + 1; /* never none */
    const size_t of_unit = BLOCKS_TOGETHER == way ? bytes[0] : LAYOUT_UNIT;

    *blocks = (blocks_t){.way = way,
                         .count = count,
                         .unit = layout_draw(rng, of_unit),
                         .layout = calloc(room, sizeof(layout_t)),
                         .bytes = calloc(room, sizeof(size_t)),
                         .at = calloc(room, sizeof(size_t)),
                         .counts = calloc(room, sizeof(int)),
                         .starts = calloc(room, sizeof(int)),
                         .places = calloc(room, sizeof(MPI_Aint)),
                         .types = calloc(room, sizeof(MPI_Datatype))};
    verify_that(NULL != blocks->layout && NULL != blocks->bytes && NULL != blocks->at
                    && NULL != blocks->counts && NULL != blocks->starts && NULL != blocks->places
                    && NULL != blocks->types,
                "no memory for the blocks of a collective");
    for (int i = 0; i < count; i++) {
        blocks->bytes[i] = bytes[i];
    }
    for (int i = 0; i < count; i++) {
        place_block(blocks, rng, BLOCKS_TOGETHER == way ? i : count - 1 - i);
    }
    blocks->memory = verify_guard_alloc(blocks->extent, 0);
    blocks_clear(blocks);
}

void blocks_free(blocks_t *blocks, const char *what)
{
    for (int i = 0; i < blocks->count && BLOCKS_TOGETHER != blocks->way; i++) {
        const unsigned char *end = blocks->memory + blocks->at[i] + blocks->layout[i].extent;
        for (size_t k = 0; k < BETWEEN * blocks->unit.extent; k++) {
            verify_that(NOBODYS == end[k], "a collective wrote between blocks");
        }
    }
    for (int i = 0; i < blocks->count && BLOCKS_BY_TYPE == blocks->way; i++) {
        layout_free(&blocks->layout[i]);
    }
    layout_free(&blocks->unit);
    verify_guard_free(blocks->memory, blocks->extent, 0, what);
    free(blocks->layout);
    free(blocks->bytes);
    free(blocks->at);
    free(blocks->counts);
    free(blocks->starts);
    free(blocks->places);
    free(blocks->types);
}

void blocks_clear(blocks_t *blocks)
{
    memset(blocks->memory, NOBODYS, blocks->extent);
}

void blocks_put(blocks_t *blocks, int i, uint64_t key)
{
    layout_put(blocks->memory + blocks->at[i], &blocks->layout[i], blocks->bytes[i], key);
}

void blocks_check(const blocks_t *blocks, int i, uint64_t key, const char *what)
{
    layout_check(blocks->memory + blocks->at[i], &blocks->layout[i], blocks->bytes[i], key, what);
}

void blocks_check_unwritten(const blocks_t *blocks, int i, const char *what)
{
    for (size_t k = 0; k < blocks->layout[i].extent; k++) {
        verify_that(NOBODYS == blocks->memory[blocks->at[i] + k], what);
    }
}
