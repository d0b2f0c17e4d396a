/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file deep_types.c
 * Long messages of a datatype that is nested deeper than a program may be, between two ranks: Open MPI's own convertor
 * packs and unpacks it, by whole basic elements, wherever a piece of the message ends.
 *
 *   deep_types [-s SEED]
 *
 * Either side may also name the same elements by a flat datatype, and the receiver may have less room than the message is long.
 */
#include "dn_config.h"

#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 5

/* A char, a gap and two doubles: most pieces of a message end within a double. */
#define SPAN      ((size_t) 24)
#define DOUBLE_AT 8
#define DATA      ((size_t) 17)

#define LEVELS   18
#define ELEMENTS ((size_t) 1 << LEVELS)

/* Distance of the two halves beyond the extent of one: no two levels can be one loop. */
#define GAP(level) ((size_t) 8 * (1 + (level) % 3))

static int rank;
static uint64_t seed = 1;
static MPI_Datatype flat, deep;
static size_t place[ELEMENTS]; /**< of the elements of the deep type, in its order */
static size_t deep_extent;

static void make_types(void)
{
    int lengths[2] = {1, 2};
    MPI_Aint at[2] = {0, DOUBLE_AT};
    MPI_Datatype parts[2] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Datatype outer;

    MPI_Type_create_struct(2, lengths, at, parts, &flat);
    MPI_Type_commit(&flat);
    MPI_Type_dup(flat, &deep);
    deep_extent = SPAN;
    for (int level = 0; level < LEVELS; level++) {
        const size_t stride = deep_extent + GAP(level);
        const size_t half = (size_t) 1 << level;

        MPI_Type_create_hvector(2, 1, (MPI_Aint) stride, deep, &outer);
        MPI_Type_free(&deep);
        deep = outer;
        for (size_t i = 0; i < half; i++) {
            place[half + i] = place[i] + stride;
        }
        deep_extent += stride;
    }
    MPI_Type_commit(&deep);
}

/** One side of a message. */
typedef struct side {
    const char *name;
    bool is_deep;
} side_t;

static size_t place_of(const side_t *side, size_t element)
{
    return side->is_deep ? place[element] : SPAN * element;
}

static size_t extent_of(const side_t *side)
{
    return side->is_deep ? deep_extent : SPAN * ELEMENTS;
}

/** Put the data of all elements where they belong. */
static void scatter(unsigned char *memory, const side_t *side, const unsigned char *stream)
{
    for (size_t i = 0; i < ELEMENTS; i++) {
        unsigned char *to = memory + place_of(side, i);

        to[0] = stream[DATA * i];
        memcpy(to + DOUBLE_AT, stream + DATA * i + 1, DATA - 1);
    }
}

static void send(const side_t *side, const unsigned char *stream)
{
    unsigned char *memory = verify_guard_alloc(extent_of(side), 0);

    scatter(memory, side, stream);
    MPI_Send(memory, side->is_deep ? 1 : (int) ELEMENTS, side->is_deep ? deep : flat, 1, TAG, MPI_COMM_WORLD);
    verify_guard_free(memory, extent_of(side), 0, side->name);
}

static void receive(const side_t *side, const unsigned char *stream)
{
    const size_t extent = extent_of(side);
    unsigned char *memory = verify_guard_alloc(extent, 0);
    unsigned char *expected = malloc(extent);
    MPI_Status status;
    int got = 0;

    verify_that(NULL != expected, "no memory for expected data");
    verify_fill(memory, extent, seed);
    memcpy(expected, memory, extent);
    scatter(expected, side, stream);
    MPI_Recv(memory, side->is_deep ? 1 : (int) ELEMENTS, side->is_deep ? deep : flat, 0, TAG, MPI_COMM_WORLD,
             &status);
    MPI_Get_count(&status, flat, &got);
    verify_that(ELEMENTS == (size_t) got, "the status tells another size");
    for (size_t i = 0; i < extent; i++) {
        if (memory[i] != expected[i]) {
            verify_fail("%s: byte %zu is 0x%02x, expected 0x%02x", side->name, i, memory[i], expected[i]);
        }
    }
    free(expected);
    verify_guard_free(memory, extent, 0, side->name);
}

/** Room that mostly ends within a double. */
static void receive_less(const unsigned char *stream, size_t room)
{
    unsigned char *memory = verify_guard_alloc(room, 0);
    MPI_Status status;
    int class;

    MPI_Error_class(MPI_Recv(memory, (int) room, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status), &class);
    verify_that(MPI_ERR_TRUNCATE == class, "a message that is too long was received");
    for (size_t i = 0; i < room; i++) {
        if (memory[i] != stream[i]) {
            verify_fail("room of %zu: byte %zu is 0x%02x, expected 0x%02x", room, i, memory[i], stream[i]);
        }
    }
    verify_guard_free(memory, room, 0, "too little room");
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'s', "SEED", &seed, 0}, {0}};
    static const side_t sides[] = {{"flat", false}, {"deep", true}};
    static const size_t rooms[] = {1, 5, 17000, 17005, 512 * 100, 512 * 100 + 3, 3000003};
    static unsigned char stream[DATA * ELEMENTS];
    int ranks;

    verify_options(argc, argv, options);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    verify_that(2 == ranks, "deep_types runs on 2 ranks");
    make_types();
    verify_fill(stream, sizeof(stream), verify_key(seed, 1, 2, 3));
    for (int way = 0; way < 4; way++) {
        if (0 == rank) {
            send(&sides[way % 2], stream);
        } else {
            receive(&sides[way / 2], stream);
        }
    }
    for (size_t i = 0; i < 2 * sizeof(rooms) / sizeof(rooms[0]); i++) {
        if (0 == rank) {
            send(&sides[i % 2], stream);
        } else {
            receive_less(stream, rooms[i / 2]);
        }
    }
    if (1 == rank) {
        printf("deep_types: all messages are right\n");
    }
    MPI_Type_free(&flat);
    MPI_Type_free(&deep);
    MPI_Finalize();
    return 0;
}
