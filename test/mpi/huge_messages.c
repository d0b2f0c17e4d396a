/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file huge_messages.c
 * Messages from rank 0 to rank 1 that pass 2 and 4 GiB, and the largest counts: contiguous, and with gaps on
 * either side.
 *
 *   huge_messages [-f FIRST] [-l LAST]
 *
 *   -f, -l   only the cases from this number to that one, from 1, as they are listed below
 *
 * Every byte is compared, those of the gaps too. What rank 0 sends is a few pages mapped again and again, so
 * that only rank 1 needs 4.2 GiB of memory. Their number is prime: when something is missing, moved or
 * repeated by any power of two, it shows. Prints a line for each case, and ends with 0, or with 1 and what
 * differs.
 */
#include "dn_config.h"

#include "verify.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAG 7

/* Of what rank 0 sends, before it begins again; a prime number of pages. */
#define PAGE  ((size_t) 4096)
#define PAGES ((size_t) 4099)

#define GAP_BYTE 0x5A

/* Bytes that a buffer is too long by, to see what is written behind a message. */
#define SPARE 64

/* How one side describes its memory: count elements of one block, each stride bytes behind the one before. */
typedef struct {
    size_t count;
    size_t block;
    size_t stride;
    bool is_vector; /* all of it is one element of a vector type */
} layout_t;

static const struct {
    const char *name;
    layout_t from;
    layout_t to;
    bool late; /* the receive is not posted before the message is announced */
} cases[] = {
    {"the largest count of chars", {INT_MAX, 1, 1, false}, {INT_MAX, 1, 1, false}, false},
    {"4 GiB and 4100 bytes of ints", {(1 << 30) + 1025, 4, 4, false}, {(1 << 30) + 1025, 4, 4, false}, true},
    {"a vector of 4 GiB to another one", {1050700, 4090, 4096, true}, {1087940, 3950, 4096, true}, false},
    {"the largest count of a char with a gap", {INT_MAX, 1, 1, false}, {INT_MAX, 1, 2, false}, false},
    {"4 GiB to 1000 bytes", {(1 << 30) + 1025, 4, 4, false}, {1000, 1, 1, false}, true},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int rank;

static void must(int result, const char *call)
{
    if (MPI_SUCCESS != result) {
        verify_fail("%s failed", call);
    }
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

static MPI_Datatype make_type(const layout_t *layout)
{
    MPI_Datatype block;
    MPI_Datatype type;

    must(MPI_Type_contiguous((int) layout->block, MPI_CHAR, &block), "MPI_Type_contiguous");
    if (layout->is_vector) {
        must(MPI_Type_vector((int) layout->count, (int) layout->block, (int) layout->stride, MPI_CHAR, &type),
             "MPI_Type_vector");
    } else if (4 == layout->stride) {
        must(MPI_Type_dup(MPI_INT, &type), "MPI_Type_dup");
    } else {
        must(MPI_Type_create_resized(block, 0, (MPI_Aint) layout->stride, &type), "MPI_Type_create_resized");
    }
    must(MPI_Type_free(&block), "MPI_Type_free");
    must(MPI_Type_commit(&type), "MPI_Type_commit");
    return type;
}

static int count_of(const layout_t *layout)
{
    return layout->is_vector ? 1 : (int) layout->count;
}

static size_t bytes_of(const layout_t *layout)
{
    return layout->count * layout->block;
}

/* The bytes of a message up to where they begin again, and those of a page more; freed by the caller. */
static unsigned char *make_pattern(size_t period, uint64_t key)
{
    unsigned char *pattern = malloc(period + PAGE);

    verify_that(NULL != pattern, "no memory for a pattern");
    verify_fill(pattern, period, key);
    memcpy(pattern + period, pattern, PAGE);
    return pattern;
}

static void expect(const unsigned char *memory, size_t at, const unsigned char *expected, size_t length)
{
    if (0 != memcmp(memory + at, expected, length)) {
        while (memory[at] == *expected) {
            at++;
            expected++;
        }
        verify_fail("byte %zu of the receive buffer is 0x%02x, expected 0x%02x", at, memory[at], *expected);
    }
}

/* No gaps, or elements of a byte with a gap of one: compared a period at a time with an image of it. */
static void expect_periods(const unsigned char *memory, const layout_t *layout, const unsigned char *pattern,
                           size_t period)
{
    const size_t step = layout->stride / layout->block;
    const size_t size = bytes_of(layout);
    unsigned char *image = malloc(period * step);

    verify_that(NULL != image, "no memory for an image");
    memset(image, GAP_BYTE, period * step);
    for (size_t i = 0; i < period; i++) {
        image[i * step] = pattern[i];
    }
    for (size_t i = 0; i < size; i += period) {
        expect(memory, i * step, image, lesser(period, size - i) * step);
    }
    free(image);
}

/* Blocks of most of a page, with gaps. */
static void expect_blocks(const unsigned char *memory, const layout_t *layout, const unsigned char *pattern,
                          size_t period)
{
    unsigned char gap[PAGE];

    memset(gap, GAP_BYTE, sizeof(gap));
    for (size_t i = 0, phase = 0; i < layout->count; i++) {
        expect(memory, i * layout->stride, pattern + phase, layout->block);
        expect(memory, i * layout->stride + layout->block, gap, layout->stride - layout->block);
        phase = (phase + layout->block) % period;
    }
}

static void expect_status(const MPI_Status *status, const layout_t *layout, MPI_Datatype type, size_t bytes)
{
    MPI_Count elements = 0;
    int in_bytes = 0;
    int in_type = 0;

    MPI_Get_elements_x(status, MPI_CHAR, &elements);
    MPI_Get_count(status, MPI_CHAR, &in_bytes);
    MPI_Get_count(status, type, &in_type);
    if ((size_t) elements != bytes || in_bytes != (bytes > INT_MAX ? MPI_UNDEFINED : (int) bytes)
        || in_type != count_of(layout) || 0 != status->MPI_SOURCE || TAG != status->MPI_TAG) {
        verify_fail("a status says %lld elements, %d chars, %d of the type, source %d, tag %d",
                    (long long) elements, in_bytes, in_type, status->MPI_SOURCE, status->MPI_TAG);
    }
}

static size_t extent_of(const layout_t *layout)
{
    return layout->count * layout->stride;
}

/* Bytes of a message in each page of the sender; the pattern begins again after all its pages. */
static size_t block_of_page(const layout_t *layout)
{
    return layout->is_vector ? layout->block : PAGE;
}

static void receive(unsigned char *memory, const layout_t *layout, const layout_t *from, bool late,
                    uint64_t key)
{
    const size_t period = PAGES * block_of_page(from);
    const size_t sent = bytes_of(from);
    unsigned char *pattern = make_pattern(period, key);
    MPI_Datatype type = make_type(layout);
    MPI_Request request;
    MPI_Status status;
    int class;

    /* Without gaps, what an earlier message left is as good: its bytes were others. */
    if (layout->block != layout->stride) {
        memset(memory, GAP_BYTE, extent_of(layout));
    }
    memset(memory + extent_of(layout), GAP_BYTE, SPARE);
    if (late) {
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        must(MPI_Probe(0, TAG, MPI_COMM_WORLD, &status), "MPI_Probe");
        if (sent == bytes_of(layout)) {
            expect_status(&status, layout, type, sent);
        }
    }
    must(MPI_Irecv(memory, count_of(layout), type, 0, TAG, MPI_COMM_WORLD, &request), "MPI_Irecv");
    if (!late) {
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    }
    MPI_Error_class(MPI_Wait(&request, &status), &class);
    if (class != (sent > bytes_of(layout) ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) {
        verify_fail("the receive ended with error class %d", class);
    }
    if (MPI_SUCCESS == class) {
        expect_status(&status, layout, type, sent);
    }
    if (layout->is_vector) {
        expect_blocks(memory, layout, pattern, period);
    } else {
        expect_periods(memory, layout, pattern, period);
    }
    for (size_t i = 0; i < SPARE; i++) {
        verify_that(GAP_BYTE == memory[extent_of(layout) + i], "bytes behind the message were written");
    }
    must(MPI_Type_free(&type), "MPI_Type_free");
    free(pattern);
}

static void send(unsigned char *memory, const layout_t *layout, uint64_t key)
{
    const size_t block = block_of_page(layout);
    unsigned char *pattern = make_pattern(PAGES * block, key);
    MPI_Datatype type = make_type(layout);

    for (size_t i = 0; i < PAGES; i++) {
        memcpy(memory + i * PAGE, pattern + i * block, block);
    }
    free(pattern);
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    must(MPI_Send(memory, count_of(layout), type, 1, TAG, MPI_COMM_WORLD), "MPI_Send");
    must(MPI_Type_free(&type), "MPI_Type_free");
}

static size_t largest_extent(void)
{
    size_t largest = 0;

    for (size_t i = 0; i < CASES; i++) {
        size_t extent = extent_of(0 == rank ? &cases[i].from : &cases[i].to);
        largest = extent > largest ? extent : largest;
    }
    return largest + SPARE;
}

static unsigned char *map(void *at, size_t size, int flags, int file)
{
    void *memory = mmap(at, size, PROT_READ | PROT_WRITE, flags, file, 0);

    verify_that(MAP_FAILED != memory, "no memory for a huge message");
    return memory;
}

/* The same pages over and over. */
static void repeat_pages(unsigned char *memory, size_t size)
{
    int file = memfd_create("huge_messages", 0);

    verify_that(0 <= file && 0 == ftruncate(file, (off_t) (PAGES * PAGE)), "no memory for a huge message");
    for (size_t at = 0; at < size; at += PAGES * PAGE) {
        map(memory + at, lesser(PAGES * PAGE, size - at), MAP_SHARED | MAP_FIXED, file);
    }
    close(file);
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t last = CASES;
    const verify_option_t options[] = {{'f', "FIRST", &first, 1}, {'l', "LAST", &last, 1}, {0}};
    int ranks;

    verify_options(argc, argv, options);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    verify_that(2 == ranks, "huge_messages runs on 2 ranks");
    verify_that(first <= last && last <= CASES, "there are no such cases; see huge_messages.c");

    const size_t size = largest_extent();
    unsigned char *memory = map(NULL, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (0 == rank) {
        repeat_pages(memory, size);
    } else {
        (void) madvise(memory, size, MADV_HUGEPAGE);
    }
    for (uint64_t i = first; i <= last; i++) {
        if (0 == rank) {
            send(memory, &cases[i - 1].from, i);
        } else {
            receive(memory, &cases[i - 1].to, &cases[i - 1].from, cases[i - 1].late, i);
            printf("huge_messages: %s: right\n", cases[i - 1].name);
            fflush(stdout);
        }
    }
    munmap(memory, size);
    MPI_Finalize();
    return 0;
}
