/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_whole.c
 * Accumulates take effect as a whole: of two calls whose bytes meet each finds all of the other's effect, or none, whatever their
 * elements and layouts.
 *
 *   osc_whole [-n TIMES] [-k KINDS] [-s SEED]
 *
 * KINDS is a sum: 1 MPI_Win_allocate, 2 MPI_Win_allocate_shared, 4 MPI_Win_create and 8 MPI_Win_create_dynamic on memory of
 * MPI_Alloc_mem, 16 MPI_Win_create on other memory.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATE, SHARED, CREATE, DYNAMIC, PRIVATE, KINDS };
enum { BYTES = 65536, MESSAGE = 1000, COUNTERS = 1000 };

static int rank, ranks;
static uint64_t times = 400;
static uint64_t kinds = (1 << KINDS) - 1;
static uint64_t seed = 1;
static verify_rng_t rng;

static MPI_Win win;
static uint8_t *memory;
static MPI_Aint start; /**< of rank 0's memory, as displacements count */
static uint8_t ours[BYTES], theirs[BYTES];

static void window_open(int kind)
{
    start = 0;
    if (ALLOCATE == kind) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else if (SHARED == kind) {
        MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else if (PRIVATE == kind) {
        memory = verify_guard_alloc(BYTES, 0);
    } else {
        MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
    }
    if (DYNAMIC == kind) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, memory, BYTES);
        MPI_Get_address(memory, &start);
    } else if (CREATE == kind || PRIVATE == kind) {
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    MPI_Bcast(&start, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    memset(memory, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
}

static void window_close(int kind)
{
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (DYNAMIC == kind) {
        MPI_Win_detach(win, memory);
    }
    MPI_Win_free(&win);
    if (PRIVATE == kind) {
        verify_guard_free(memory, BYTES, 0, "memory of a window");
    } else if (CREATE <= kind) {
        MPI_Free_mem(memory);
    }
}

/** Bytes that all have one value whenever a call looks, since each call gives all of them another one. */
typedef struct same {
    const char *what;
    MPI_Aint at;
    int bytes;
    enum { WORDS, REALS, STRIDES, STRUCTS } of;
} same_t;

static const same_t sames[] = {
    {"16 bytes of a cell", 64, 16, WORDS},
    {"16 bytes at a multiple of 8", 136, 16, WORDS},
    {"16 bytes at an odd address", 195, 16, WORDS},
    {"7 bytes", 258, 7, WORDS},
    {"12 bytes", 324, 12, WORDS},
    {"24 bytes", 384, 24, WORDS},
    {"64 bytes", 448, 64, WORDS},
    {"100 bytes", 580, 100, WORDS},
    {"1000 bytes", 1024, 1000, WORDS},
    {"1000 bytes at an odd address", 3001, 1000, WORDS},
    {"16 bytes of floating-point numbers", 4160, 16, REALS},
    {"1000 bytes of floating-point numbers", 5000, 1000, REALS},
    {"an integer and an address", 6144, 16, STRUCTS},
    {"10 structures of an integer and an address", 6400, 160, STRUCTS},
    {"every other word of 64 bytes", 7168, 64, STRIDES},
    {"every other word of 1000 bytes", 8192, 1000, STRIDES},
    {"every other word of 10000 bytes", 10240, 10000, STRIDES},
    {"5000 bytes", 24576, 5000, WORDS},
    {"20000 bytes", 30720, 20000, WORDS},
};

/** A datatype of elements that fill @p len bytes at an address. */
static MPI_Datatype element_for(const same_t *same, MPI_Aint at, int len, int *count)
{
    const MPI_Datatype words[] = {MPI_BYTE, MPI_INT16_T, MPI_UINT32_T, MPI_INT64_T};
    const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_C_FLOAT_COMPLEX};
    int size;

    for (;;) {
        const MPI_Datatype type =
            REALS == same->of ? reals[verify_below(&rng, 3)] : words[verify_below(&rng, 4)];

        MPI_Type_size(type, &size);
        if (0 == at % size && 0 == len % size) {
            *count = len / size;
            return type;
        }
    }
}

/** The datatype of a layout, whose bytes are @p *size. */
static MPI_Datatype layout_of(const same_t *same, int *size)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, 8};
    const MPI_Datatype kinds_of[2] = {MPI_INT, MPI_AINT};
    MPI_Datatype type, whole;

    if (STRIDES == same->of) {
        MPI_Type_vector(same->bytes / 8, 1, 2, MPI_INT32_T, &whole);
    } else {
        MPI_Type_create_struct(2, lengths, places, kinds_of, &type);
        MPI_Type_contiguous(same->bytes / 16, type, &whole);
        MPI_Type_free(&type);
    }
    MPI_Type_commit(&whole);
    MPI_Type_size(whole, size);
    return whole;
}

static bool is_gap(const same_t *same, int i)
{
    return (STRIDES == same->of && 4 <= i % 8) || (STRUCTS == same->of && 4 <= i % 16 && 8 > i % 16);
}

/** Give all of it another value. */
static void write_same(const same_t *same, MPI_Datatype layout, int size)
{
    const bool gaps = MPI_DATATYPE_NULL != layout;
    int count = 1;
    const MPI_Datatype type = gaps ? layout : element_for(same, same->at, same->bytes, &count);
    const MPI_Datatype here = gaps && STRIDES != same->of ? type : gaps ? MPI_INT32_T : type;
    const int here_count = gaps && STRIDES == same->of ? size / 4 : count;
    /* Only words are exclusive-ored, and not those of structures, which are of several kinds. */
    const bool exclusive = (WORDS == same->of && 1 == verify_below(&rng, 3) && MPI_BYTE != type)
                           || (STRIDES == same->of && 1 == verify_below(&rng, 3));

    memset(ours, (int) verify_below(&rng, 256), (size_t) same->bytes);
    MPI_Accumulate(ours, here_count, here, 0, start + same->at, count, type,
                   exclusive ? MPI_BXOR : MPI_REPLACE, win);
}

/** Look at all of it, or a piece. */
static void read_same(const same_t *same, MPI_Datatype layout)
{
    MPI_Aint at = 0;
    int len = same->bytes;
    int count;

    memset(theirs, 0x5a, (size_t) same->bytes);
    if (MPI_DATATYPE_NULL != layout && 0 == verify_below(&rng, 2)) {
        MPI_Get_accumulate(NULL, 0, MPI_BYTE, theirs, 1, layout, 0, start + same->at, 1, layout, MPI_NO_OP,
                           win);
    } else {
        if (0 == verify_below(&rng, 2)) {
            at = 8 * (MPI_Aint) verify_below(&rng, (uint64_t) (same->bytes + 7) / 8);
            len -= (int) at;
            len = 16 < len && 0 == verify_below(&rng, 2) ? 16 : len;
        }
        const MPI_Datatype type = element_for(same, same->at + at, len, &count);

        MPI_Get_accumulate(NULL, 0, type, theirs + at, count, type, 0, start + same->at + at, count, type,
                           MPI_NO_OP, win);
    }
    MPI_Win_flush(0, win);
    int first = -1;
    for (int i = (int) at; i < (int) at + len; i++) {
        if (!is_gap(same, i)) {
            first = 0 > first ? i : first;
            if (theirs[first] != theirs[i]) {
                verify_fail("%s: a call was seen in halves: byte %d is %u, byte %d is %u", same->what, first,
                            theirs[first], i, theirs[i]);
            }
        }
    }
}

static void calls_are_whole(int kind)
{
    for (size_t i = 0; i < sizeof(sames) / sizeof(sames[0]); i++) {
        const same_t *same = &sames[i];
        const bool gaps = STRIDES == same->of || STRUCTS == same->of;
        const uint64_t turns = MESSAGE < same->bytes ? times / 4 : times;
        int size = 0;

        /* To a target that is far, longer calls go in several messages. */
        if (PRIVATE == kind && MESSAGE < same->bytes) {
            continue;
        }
        const MPI_Datatype layout = gaps ? layout_of(same, &size) : MPI_DATATYPE_NULL;
        MPI_Datatype type = layout;
        for (uint64_t n = 0; n < turns; n++) {
            if (0 == (n + (uint64_t) rank) % 2) {
                write_same(same, layout, size);
            } else {
                read_same(same, layout);
            }
        }
        MPI_Win_flush(0, win);
        if (gaps) {
            MPI_Type_free(&type);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** Sums of all counters at once meet sums, and exchanges, of single ones: no count is lost. */
static void counts_are_complete(void)
{
    static int32_t ones[COUNTERS], mine[COUNTERS], all[COUNTERS], got[COUNTERS];
    const uint64_t turns = times / 4;

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        memset(ours, 0, sizeof(got));
        MPI_Accumulate(ours, COUNTERS, MPI_INT32_T, 0, start, COUNTERS, MPI_INT32_T, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNTERS; i++) {
        ones[i] = 1;
        mine[i] = 0;
    }
    for (uint64_t n = 0; n < turns; n++) {
        if (0 == (n + (uint64_t) rank) % 2) {
            MPI_Accumulate(ones, COUNTERS, MPI_INT32_T, 0, start, COUNTERS, MPI_INT32_T, MPI_SUM, win);
            for (int i = 0; i < COUNTERS; i++) {
                mine[i]++;
            }
        }
        for (int k = 0; k < 20; k++) {
            const int i = (int) verify_below(&rng, COUNTERS - 1);
            int32_t old;

            if (0 == k % 3) {
                MPI_Fetch_and_op(ones, &old, MPI_INT32_T, 0, start + 4 * i, MPI_SUM, win);
                MPI_Win_flush(0, win);
            } else if (1 == k % 3) {
                int32_t seen = 0, next;

                do {
                    old = seen;
                    next = old + 1;
                    MPI_Compare_and_swap(&next, &old, &seen, MPI_INT32_T, 0, start + 4 * i, win);
                    MPI_Win_flush(0, win);
                } while (seen != old);
            } else {
                MPI_Accumulate(ones, 2, MPI_INT32_T, 0, start + 4 * i, 2, MPI_INT32_T, MPI_SUM, win);
                mine[i + 1]++;
            }
            mine[i]++;
        }
        MPI_Win_flush(0, win);
    }
    MPI_Allreduce(mine, all, COUNTERS, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_accumulate(NULL, 0, MPI_INT32_T, got, COUNTERS, MPI_INT32_T, 0, start, COUNTERS, MPI_INT32_T,
                       MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    verify_that(0 == memcmp(all, got, sizeof(all)), "a count is not what all have added");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'n', "TIMES", &times, 4}, {'k', "KINDS", &kinds, 1}, {'s', "SEED", &seed, 0}, {0}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_options(argc, argv, options);
    rng.state = seed * 1000 + (uint64_t) rank;
    for (int kind = 0; kind < KINDS; kind++) {
        if (0 != (kinds >> kind & 1)) {
            window_open(kind);
            calls_are_whole(kind);
            counts_are_complete();
            window_close(kind);
        }
    }
    if (0 == rank) {
        printf("osc_whole: %d ranks, seed %llu, no call seen in halves\n", ranks, (unsigned long long) seed);
    }
    MPI_Finalize();
    return 0;
}
