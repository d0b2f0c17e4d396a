/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file derived_types.c
 * Messages of derived datatypes: vectors, indexed lists, structs, subarrays,
 * resized and nested types, negative strides, zero counts. The expected
 * layout is computed here, block by block, without asking MPI; data and the
 * untouched gaps are both compared byte by byte.
 *
 *   derived_types [-s SEED] [-m LARGEST_MESSAGE]
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 3

/* One run of consecutive bytes at an offset from the buffer address. */
typedef struct {
    ptrdiff_t offset;
    size_t length;
} block_t;

/* The expected layout of one element: blocks in the order of the type map. */
typedef struct {
    block_t *blocks;
    size_t count;
    size_t room;
    ptrdiff_t extent; /* distance of consecutive elements, bytes */
} layout_t;

/* Makes a type out of @p block bytes per run, and its layout. */
typedef MPI_Datatype (*build_fn_t)(size_t block, int runs, layout_t *layout);

static int rank;
static int ranks;
static uint64_t seed = 1;
static uint64_t largest = 1 << 20;
static unsigned long long messages;

static void add_block(layout_t *layout, ptrdiff_t offset, size_t length)
{
    if (0 == length) {
        return;
    }
    if (layout->count == layout->room) {
        layout->room = layout->room ? 2 * layout->room : 64;
        layout->blocks = realloc(layout->blocks, layout->room * sizeof(*layout->blocks));
        verify_that(NULL != layout->blocks, "no memory for an expected layout");
    }
    layout->blocks[layout->count++] = (block_t){offset, length};
}

/* The extent MPI gives a type without explicit bounds: last byte - first byte. */
static void natural_extent(layout_t *layout)
{
    ptrdiff_t low = PTRDIFF_MAX;
    ptrdiff_t high = PTRDIFF_MIN;

    for (size_t i = 0; i < layout->count; i++) {
        const block_t *b = &layout->blocks[i];
        low = b->offset < low ? b->offset : low;
        high = b->offset + (ptrdiff_t) b->length > high ? b->offset + (ptrdiff_t) b->length : high;
    }
    layout->extent = layout->count > 0 ? high - low : 0;
}

static MPI_Datatype build_contiguous(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;

    MPI_Type_contiguous((int) block * runs, MPI_BYTE, &type);
    add_block(layout, 0, block * (size_t) runs);
    natural_extent(layout);
    return type;
}

static MPI_Datatype build_vector(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;

    MPI_Type_vector(runs, (int) block, (int) (2 * block), MPI_BYTE, &type);
    for (int i = 0; i < runs; i++) {
        add_block(layout, (ptrdiff_t) (2 * block) * i, block);
    }
    natural_extent(layout);
    return type;
}

static MPI_Datatype build_negative_stride(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;
    ptrdiff_t stride = -(ptrdiff_t) (block + 5);

    MPI_Type_create_hvector(runs, (int) block, stride, MPI_BYTE, &type);
    for (int i = 0; i < runs; i++) {
        add_block(layout, stride * i, block);
    }
    natural_extent(layout);
    return type;
}

/* Blocks of three lengths, some empty, with displacements that go back and forth. */
static MPI_Datatype build_indexed(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;
    int *lengths = malloc((size_t) runs * sizeof(int));
    int *offsets = malloc((size_t) runs * sizeof(int));

    verify_that(NULL != lengths && NULL != offsets, "no memory for an indexed type");
    for (int i = 0; i < runs; i++) {
        int slot = (i ^ 1) < runs ? (i ^ 1) : i;
        lengths[i] = 3 == i % 5 ? 0 : (int) block + i % 3;
        offsets[i] = slot * ((int) block + 7);
        add_block(layout, offsets[i], (size_t) lengths[i]);
    }
    MPI_Type_indexed(runs, lengths, offsets, MPI_BYTE, &type);
    natural_extent(layout);
    free(lengths);
    free(offsets);
    return type;
}

static MPI_Datatype build_indexed_block(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;
    MPI_Aint *offsets = malloc((size_t) runs * sizeof(*offsets));

    verify_that(NULL != offsets, "no memory for an indexed type");
    for (int i = 0; i < runs; i++) {
        offsets[i] = (MPI_Aint) (block + 3) * i + (i % 2);
        add_block(layout, offsets[i], block);
    }
    MPI_Type_create_hindexed_block(runs, (int) block, offsets, MPI_BYTE, &type);
    natural_extent(layout);
    free(offsets);
    return type;
}

/* A strided run of structs: a block, a gap of 3, one byte, a gap of 4, 8 bytes. */
static MPI_Datatype build_struct(size_t block, int runs, layout_t *layout)
{
    ptrdiff_t tail = (ptrdiff_t) block + 3;
    int lengths[3] = {(int) block, 1, 8};
    MPI_Aint offsets[3] = {0, tail, tail + 5};
    MPI_Datatype parts[3] = {MPI_BYTE, MPI_BYTE, MPI_BYTE};
    MPI_Datatype one;
    MPI_Datatype type;
    ptrdiff_t step = tail + 5 + 8 + 11;

    MPI_Type_create_struct(3, lengths, offsets, parts, &one);
    MPI_Type_create_hvector(runs, 1, step, one, &type);
    MPI_Type_free(&one);
    for (int i = 0; i < runs; i++) {
        for (int j = 0; j < 3; j++) {
            add_block(layout, step * i + offsets[j], (size_t) lengths[j]);
        }
    }
    natural_extent(layout);
    return type;
}

/* The inside of a two-dimensional array, one row and one block on each edge free. */
static MPI_Datatype build_subarray(size_t block, int runs, layout_t *layout)
{
    int sizes[2] = {runs + 2, (int) block * 3};
    int part[2] = {runs, (int) block};
    int start[2] = {1, (int) block};
    MPI_Datatype type;

    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_BYTE, &type);
    for (int row = 1; row <= runs; row++) {
        add_block(layout, (ptrdiff_t) row * sizes[1] + (ptrdiff_t) block, block);
    }
    layout->extent = (ptrdiff_t) sizes[0] * sizes[1];
    return type;
}

/* A three-dimensional corner in Fortran order: the first index runs fastest. */
static MPI_Datatype build_fortran_subarray(size_t block, int runs, layout_t *layout)
{
    int planes = runs >= 4 ? 2 : 1;
    int sizes[3] = {(int) block + 2, runs / planes + 1, planes + 1};
    int part[3] = {(int) block, runs / planes, planes};
    int start[3] = {2, 1, 1};
    MPI_Datatype type;

    MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_FORTRAN, MPI_BYTE, &type);
    for (int z = 0; z < part[2]; z++) {
        for (int y = 0; y < part[1]; y++) {
            ptrdiff_t line = (ptrdiff_t) (z + start[2]) * sizes[1] + y + start[1];
            add_block(layout, line * sizes[0] + start[0], block);
        }
    }
    layout->extent = (ptrdiff_t) sizes[0] * sizes[1] * sizes[2];
    return type;
}

/* Elements whose extent is one block: consecutive elements interleave. */
static MPI_Datatype build_interleaved(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype vector;
    MPI_Datatype type;
    ptrdiff_t step = (ptrdiff_t) block * 4;

    MPI_Type_create_hvector(runs, (int) block, step, MPI_BYTE, &vector);
    MPI_Type_create_resized(vector, -3, (MPI_Aint) block, &type);
    MPI_Type_free(&vector);
    for (int i = 0; i < runs; i++) {
        add_block(layout, step * i, block);
    }
    layout->extent = (ptrdiff_t) block;
    return type;
}

/* A vector of vectors, with a lower bound and padding at both ends. */
static MPI_Datatype build_nested(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype inner;
    MPI_Datatype outer;
    MPI_Datatype type;
    int groups = runs > 2 ? 3 : 1;
    int each = (runs + groups - 1) / groups;
    ptrdiff_t step = (ptrdiff_t) (block + 1) * each + 17;

    MPI_Type_create_hvector(each, (int) block, (MPI_Aint) block + 1, MPI_BYTE, &inner);
    MPI_Type_create_hvector(groups, 1, step, inner, &outer);
    MPI_Type_create_resized(outer, -16, step * groups + 32, &type);
    MPI_Type_free(&inner);
    MPI_Type_free(&outer);
    for (int g = 0; g < groups; g++) {
        for (int i = 0; i < each; i++) {
            add_block(layout, step * g + (ptrdiff_t) (block + 1) * i, block);
        }
    }
    layout->extent = step * groups + 32;
    return type;
}

static MPI_Datatype build_empty(size_t block, int runs, layout_t *layout)
{
    MPI_Datatype type;

    (void) block;
    (void) runs;
    MPI_Type_vector(0, 4, 8, MPI_BYTE, &type);
    natural_extent(layout);
    return type;
}

static const struct {
    const char *name;
    build_fn_t build;
    int most; /* elements that may follow each other without overlap */
} kinds[] = {
    {"contiguous", build_contiguous, 1000},
    {"vector", build_vector, 1000},
    {"negative stride", build_negative_stride, 1000},
    {"indexed", build_indexed, 1000},
    {"indexed block", build_indexed_block, 1000},
    {"struct", build_struct, 1000},
    {"subarray", build_subarray, 1000},
    {"Fortran subarray", build_fortran_subarray, 1000},
    {"interleaved resized", build_interleaved, 4},
    {"nested", build_nested, 1000},
    {"empty", build_empty, 1000},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Memory that holds @p count elements of a layout, and what it must contain. */
typedef struct {
    unsigned char *memory;
    unsigned char *expected;
    unsigned char *origin; /* the address handed to MPI */
    size_t size;
    size_t data; /* bytes of data in all elements */
    ptrdiff_t low;
} image_t;

static void image_open(image_t *image, const layout_t *layout, int count, uint64_t background)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = 0;

    image->data = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const block_t *b = &layout->blocks[i];
        ptrdiff_t last = layout->extent * (count > 0 ? count - 1 : 0);
        low = b->offset < low ? b->offset : low;
        low = b->offset + last < low ? b->offset + last : low;
        ptrdiff_t end = b->offset + (ptrdiff_t) b->length;
        high = end > high ? end : high;
        high = end + last > high ? end + last : high;
        image->data += b->length * (size_t) count;
    }
    image->low = low;
    image->size = (size_t) (high - low);
    image->memory = verify_guard_alloc(image->size, 0);
    image->expected = malloc(image->size + 1);
    verify_that(NULL != image->expected, "no memory for expected data; use a smaller -m");
    verify_fill(image->memory, image->size, background);
    verify_fill(image->expected, image->size, background);
    image->origin = image->memory - low;
}

/* Place pattern bytes, in type map order, into one copy of the image. */
static void image_write(unsigned char *target, const image_t *image, const layout_t *layout, int count,
                        const unsigned char *stream)
{
    for (int n = 0; n < count; n++) {
        for (size_t i = 0; i < layout->count; i++) {
            const block_t *b = &layout->blocks[i];
            memcpy(target + (b->offset + layout->extent * n - image->low), stream, b->length);
            stream += b->length;
        }
    }
}

static void image_check(const image_t *image, const char *what)
{
    if (0 != memcmp(image->memory, image->expected, image->size)) {
        size_t at = 0;
        while (image->memory[at] == image->expected[at]) {
            at++;
        }
        verify_fail("%s: byte %td from the buffer address is 0x%02x, expected 0x%02x", what,
                    (ptrdiff_t) at + image->low, image->memory[at], image->expected[at]);
    }
}

static void image_close(image_t *image, const char *what)
{
    verify_guard_free(image->memory, image->size, 0, what);
    free(image->expected);
}

/* Send to the right, receive from the left, each side with its own type. */
static void shift(image_t *out, MPI_Datatype out_type, int out_count, image_t *in, MPI_Datatype in_type,
                  int in_count, const char *what)
{
    MPI_Status status;
    int got = -1;

    MPI_Sendrecv(out->origin, out_count, out_type, (rank + 1) % ranks, TAG, in->origin, in_count, in_type,
                 (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    if ((size_t) got != in->data) {
        verify_fail("%s: the status says %d bytes, expected %zu", what, got, in->data);
    }
    image_check(out, "the send buffer changed");
    image_check(in, what);
    messages++;
}

/* One layout three ways: from it, into it, and both ends in it. */
static void run_case(size_t kind, size_t block, int runs, int count)
{
    layout_t layout = {0};
    layout_t flat = {0};
    image_t out;
    image_t in;
    char what[160];
    MPI_Datatype type = kinds[kind].build(block, runs, &layout);
    size_t data = 0;

    MPI_Type_commit(&type);
    for (size_t i = 0; i < layout.count; i++) {
        data += layout.blocks[i].length * (size_t) count;
    }
    add_block(&flat, 0, data);
    natural_extent(&flat);
    unsigned char *stream = malloc(2 * data + 1);
    verify_that(NULL != stream, "no memory for the data stream; use a smaller -m");
    uint64_t id = verify_key(seed, kind, block, (uint64_t) runs * 1000 + (uint64_t) count);
    verify_fill(stream, data, id + (uint64_t) rank);
    verify_fill(stream + data, data, id + (uint64_t) ((rank + ranks - 1) % ranks));

    for (int way = 0; way < 3; way++) {
        bool typed_out = 1 != way;
        bool typed_in = 0 != way;
        const layout_t *from = typed_out ? &layout : &flat;
        const layout_t *into = typed_in ? &layout : &flat;
        int from_count = typed_out ? count : 1;
        int into_count = typed_in ? count : 1;
        snprintf(what, sizeof(what), "%s, %d elements of %d runs of %zu bytes, %s to %s", kinds[kind].name,
                 count, runs, block, typed_out ? "derived" : "contiguous",
                 typed_in ? "derived" : "contiguous");
        image_open(&out, from, from_count, ~id);
        image_open(&in, into, into_count, id ^ 0x5555);
        image_write(out.memory, &out, from, from_count, stream);
        image_write(out.expected, &out, from, from_count, stream);
        image_write(in.expected, &in, into, into_count, stream + data);
        shift(&out, typed_out ? type : MPI_BYTE, typed_out ? count : (int) data, &in,
              typed_in ? type : MPI_BYTE, typed_in ? count : (int) data, what);
        image_close(&out, what);
        image_close(&in, what);
    }
    free(stream);
    free(layout.blocks);
    free(flat.blocks);
    MPI_Type_free(&type);
}

/* One kind at every block size, few and many runs, few and many elements. */
static void run_kind(size_t kind)
{
    static const size_t blocks[] = {1, 3, 4, 8, 12, 16, 32, 41, 64, 100, 1024, 4096, 32768};
    static const int runs[] = {1, 2, 7, 33, 500, 20000};
    static const int counts[] = {0, 1, 3, 64};

    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        for (size_t r = 0; r < sizeof(runs) / sizeof(runs[0]); r++) {
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                size_t elements = counts[c] > 0 ? (size_t) counts[c] : 1;
                size_t bytes = blocks[b] * (size_t) runs[r] * elements;
                if (bytes <= largest && counts[c] <= kinds[kind].most) {
                    run_case(kind, blocks[b], runs[r], counts[c]);
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'s', "SEED", &seed, 0}, {'m', "LARGEST_MESSAGE", &largest, 1}, {0}};
    unsigned long long total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    for (size_t kind = 0; kind < KINDS; kind++) {
        run_kind(kind);
    }
    MPI_Reduce(&messages, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("derived_types: %d ranks, %zu kinds of type, %llu messages verified\n", ranks, KINDS, total);
    }
    MPI_Finalize();
    return 0;
}
