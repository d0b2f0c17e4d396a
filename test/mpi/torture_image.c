/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_image.c
 * Derived datatypes of many shapes, and memory whose every byte is known. Where the bytes of a datatype lie
 * is computed here from the arguments of its constructor, without asking MPI.
 */
#include "dn_config.h"

#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIECES 40

/* Elements of a vector are cut into at most so many blocks. */
#define MOST_BLOCKS 4000

MPI_Datatype shape_basic(unsigned unit)
{
    return 1 == unit ? MPI_BYTE : 4 == unit ? MPI_INT : MPI_DOUBLE;
}

size_t shape_units(const shape_t *shape)
{
    return shape->each * (size_t) shape->count;
}

/* Plain half of the time, and always when there is nothing to lay out. */
static shape_t shape_of(verify_rng_t *rng, unsigned unit, size_t units)
{
    shape_t shape = {.unit = unit, .each = 1, .count = (int) units, .seed = verify_random(rng)};
    uint64_t kind = verify_below(rng, 2 * SHAPES);

    shape.kind = units > 0 && kind < SHAPES ? (shape_kind_t) kind : SHAPE_PLAIN;
    return shape;
}

shape_t shape_exact(verify_rng_t *rng, unsigned unit, size_t units)
{
    shape_t shape = shape_of(rng, unit, units);
    size_t count = 1 + verify_below(rng, 5);

    if (SHAPE_PLAIN != shape.kind) {
        shape.count = (int) (0 == units % count ? count : 1);
        shape.each = units / (size_t) shape.count;
    }
    return shape;
}

shape_t shape_room(verify_rng_t *rng, unsigned unit, size_t units)
{
    size_t more = verify_below(rng, 3) ? 0 : verify_below(rng, 70);
    shape_t shape = shape_of(rng, unit, units + more);
    size_t count = 1 + verify_below(rng, 5);

    if (SHAPE_PLAIN != shape.kind) {
        shape.count = (int) count;
        shape.each = (units + more + count - 1) / count;
    }
    return shape;
}

shape_t shape_short(verify_rng_t *rng, unsigned unit, size_t units)
{
    return shape_exact(rng, unit, verify_below(rng, units));
}

static void add_run(image_t *image, ptrdiff_t offset, size_t length)
{
    if (length > 0) {
        image->runs[image->run_count++] = (run_t){offset, length};
    }
}

/* The largest block, of a random few, that divides an element into not too many. */
static size_t choose_block(verify_rng_t *rng, size_t each)
{
    static const size_t blocks[] = {1, 2, 3, 4, 8, 16, 64, 1000};
    size_t block = blocks[verify_below(rng, sizeof(blocks) / sizeof(blocks[0]))];

    return 0 == each % block && each / block <= MOST_BLOCKS ? block : each;
}

/* Blocks at a constant stride, counted in units. */
static MPI_Datatype make_vector(image_t *image, size_t block, ptrdiff_t stride)
{
    const shape_t *shape = &image->shape;
    MPI_Datatype type;
    size_t blocks = shape->each / block;

    MPI_Type_vector((int) blocks, (int) block, (int) stride, shape_basic(shape->unit), &type);
    for (size_t i = 0; i < blocks; i++) {
        add_run(image, stride * (ptrdiff_t) i * (ptrdiff_t) shape->unit, block * shape->unit);
    }
    return type;
}

/* Cut an element into pieces, some empty; lengths in units. */
static int cut(verify_rng_t *rng, size_t each, int most, int *lengths)
{
    int pieces = 1 + (int) verify_below(rng, (uint64_t) most);
    size_t left = each;

    for (int i = 0; i < pieces; i++) {
        size_t length = i + 1 == pieces ? left : verify_below(rng, left + 1) / 2;
        lengths[i] = (int) length;
        left -= length;
    }
    return pieces;
}

/* Pieces that lie in memory in another order than in the type map, the first not at 0. */
static MPI_Datatype make_indexed(image_t *image, verify_rng_t *rng)
{
    const shape_t *shape = &image->shape;
    int lengths[MOST_PIECES];
    int displacements[MOST_PIECES];
    int order[MOST_PIECES];
    int pieces = cut(rng, shape->each, MOST_PIECES, lengths);
    int at = 1 + (int) verify_below(rng, 5);
    MPI_Datatype type;

    verify_shuffle(rng, order, pieces);
    for (int i = 0; i < pieces; i++) {
        displacements[order[i]] = at;
        at += lengths[order[i]] + (int) verify_below(rng, 9);
    }
    for (int i = 0; i < pieces; i++) {
        add_run(image, (ptrdiff_t) displacements[i] * shape->unit, (size_t) lengths[i] * shape->unit);
    }
    MPI_Type_indexed(pieces, lengths, displacements, shape_basic(shape->unit), &type);
    return type;
}

/* Pieces of the basic type and of contiguous types by turns, behind a gap of 24 bytes. */
static MPI_Datatype make_struct(image_t *image, verify_rng_t *rng)
{
    const shape_t *shape = &image->shape;
    int lengths[6];
    MPI_Aint displacements[6];
    MPI_Datatype types[6];
    bool nested[6];
    int pieces = cut(rng, shape->each, 6, lengths);
    MPI_Aint at = 24;
    MPI_Datatype type;

    for (int i = 0; i < pieces; i++) {
        displacements[i] = at;
        add_run(image, at, (size_t) lengths[i] * shape->unit);
        at += (MPI_Aint) lengths[i] * shape->unit;
        at += shape->unit * (MPI_Aint) verify_below(rng, 9);
        types[i] = shape_basic(shape->unit);
        nested[i] = 1 == i % 2 && lengths[i] > 0;
        if (nested[i]) {
            MPI_Type_contiguous(lengths[i], shape_basic(shape->unit), &types[i]);
            lengths[i] = 1;
        }
    }
    MPI_Type_create_struct(pieces, lengths, displacements, types, &type);
    for (int i = 0; i < pieces; i++) {
        if (nested[i]) {
            MPI_Type_free(&types[i]);
        }
    }
    return type;
}

/* Give a type other bounds than its own; this also takes away what MPI adds for the alignment of a basic
 * type. */
static void resize(image_t *image, MPI_Aint lower, MPI_Aint extent)
{
    MPI_Datatype old = image->type;

    MPI_Type_create_resized(old, lower, extent, &image->type);
    MPI_Type_free(&old);
    image->extent = extent;
}

static void bound_runs(const image_t *image, ptrdiff_t *low_p, ptrdiff_t *high_p)
{
    ptrdiff_t low = PTRDIFF_MAX;
    ptrdiff_t high = PTRDIFF_MIN;

    for (size_t i = 0; i < image->run_count; i++) {
        ptrdiff_t end = image->runs[i].offset + (ptrdiff_t) image->runs[i].length;
        low = image->runs[i].offset < low ? image->runs[i].offset : low;
        high = end > high ? end : high;
    }
    *low_p = 0 == image->run_count ? 0 : low;
    *high_p = 0 == image->run_count ? 0 : high;
}

static void make_type(image_t *image, verify_rng_t *rng)
{
    const shape_t *shape = &image->shape;
    ptrdiff_t unit = (ptrdiff_t) shape->unit;
    size_t block = choose_block(rng, shape->each);
    ptrdiff_t stride = (ptrdiff_t) (block + 1 + verify_below(rng, 8));
    ptrdiff_t low;
    ptrdiff_t high;

    switch (shape->kind) {
    case SHAPE_VECTOR:
        image->type = make_vector(image, block, stride);
        break;
    case SHAPE_BACKWARDS:
        image->type = make_vector(image, block, -stride);
        break;
    case SHAPE_INDEXED:
        image->type = make_indexed(image, rng);
        break;
    case SHAPE_STRUCT:
        image->type = make_struct(image, rng);
        break;
    case SHAPE_INTERLEAVED:
        image->type = make_vector(image, block, stride + (ptrdiff_t) block * (shape->count - 1));
        resize(image, -3 * unit, (ptrdiff_t) block * unit);
        return;
    default:
        MPI_Type_contiguous((int) shape->each, shape_basic(shape->unit), &image->type);
        add_run(image, 0, shape->each * shape->unit);
        break;
    }
    bound_runs(image, &low, &high);
    image->extent = high - low;
    if (1 != unit || 0 == verify_below(rng, 2)) {
        resize(image, low - 16, high - low + 8 * (ptrdiff_t) verify_below(rng, 4));
    }
}

void image_open(image_t *image, const shape_t *shape, uint64_t seed)
{
    verify_rng_t rng = {.state = shape->seed};
    size_t most = MOST_BLOCKS > MOST_PIECES ? MOST_BLOCKS : MOST_PIECES;
    ptrdiff_t low;
    ptrdiff_t high;

    *image = (image_t){.shape = *shape, .type = shape_basic(shape->unit), .background = seed};
    image->runs = malloc(most * sizeof(*image->runs));
    verify_that(NULL != image->runs, "no memory for a layout");
    if (SHAPE_PLAIN == shape->kind) {
        add_run(image, 0, shape->unit);
        image->extent = (ptrdiff_t) shape->unit;
    } else {
        make_type(image, &rng);
        MPI_Type_commit(&image->type);
    }
    bound_runs(image, &low, &high);
    image->low = low;
    image->size = 0;
    if (shape->count > 0) {
        image->size = (size_t) (high - low + image->extent * (shape->count - 1));
    }
    image->skew = 1 == shape->unit ? seed % 64 : seed % 8 * 8;
    image->memory = verify_guard_alloc(image->size, image->skew);
    image->origin = image->memory - low;
}

/* Copy between a stream of bytes and the places where the layout has them. */
static void place(const image_t *image, unsigned char *memory, size_t bytes, unsigned char *stream, bool out)
{
    size_t done = 0;

    for (int n = 0; n < image->shape.count; n++) {
        for (size_t i = 0; i < image->run_count && done < bytes; i++) {
            const run_t *run = &image->runs[i];
            size_t length = run->length < bytes - done ? run->length : bytes - done;
            unsigned char *at = memory + (run->offset + image->extent * n - image->low);
            memcpy(out ? stream + done : at, out ? at : stream + done, length);
            done += length;
        }
    }
}

static void draw_expected(const image_t *image, unsigned char *memory, size_t bytes, uint64_t key)
{
    unsigned char *stream = malloc(bytes + 1);

    verify_that(NULL != stream, "no memory for the data of a message");
    verify_fill(stream, bytes, key);
    verify_fill(memory, image->size, image->background);
    place(image, memory, bytes, stream, false);
    free(stream);
}

void image_write(image_t *image, size_t bytes, uint64_t key)
{
    draw_expected(image, image->memory, bytes, key);
}

void image_gather(const image_t *image, size_t bytes, unsigned char *out)
{
    place(image, image->memory, bytes, out, true);
}

bool image_holds(const image_t *image, size_t bytes, uint64_t key, char *text, size_t text_size)
{
    unsigned char *expected = malloc(image->size + 1);
    size_t at = 0;
    bool same = true;

    verify_that(NULL != expected, "no memory for expected data");
    draw_expected(image, expected, bytes, key);
    if (0 != memcmp(image->memory, expected, image->size)) {
        same = false;
        while (image->memory[at] == expected[at]) {
            at++;
        }
        snprintf(text, text_size,
                 "byte %td from the address of a buffer of %d elements of %zu units of %u, shape %d, is "
                 "0x%02x, expected 0x%02x",
                 (ptrdiff_t) at + image->low, image->shape.count, image->shape.each, image->shape.unit,
                 (int) image->shape.kind, image->memory[at], expected[at]);
    }
    free(expected);
    return same;
}

void image_close(image_t *image, const char *what)
{
    verify_guard_free(image->memory, image->size, image->skew, what);
    if (SHAPE_PLAIN != image->shape.kind) {
        MPI_Type_free(&image->type);
    }
    free(image->runs);
}
