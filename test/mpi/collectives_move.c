/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_move.c
 * Collectives that only move data, with types that are other ones in each rank and have the same bytes.
 */
#include "dn_config.h"

#include "collectives.h"
#include "layout.h"

#include <stdlib.h>
#include <string.h>

/** About every second block has gaps in some rank: then it is a number of units. */
static size_t draw_bytes(verify_rng_t *rng, int most)
{
    const size_t bytes = verify_size(rng, (size_t) most);

    return 0 == verify_below(rng, 2) ? bytes : bytes / LAYOUT_UNIT * LAYOUT_UNIT;
}

/** A collective as all ranks draw it, and who this one is. */
typedef struct drawn {
    size_t bytes; /**< of a block */
    uint64_t key;
    int root;
    int rank;
    int ranks;
    verify_rng_t own; /**< what only this rank draws */
} drawn_t;

static drawn_t draw(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn;

    drawn.bytes = draw_bytes(rng, most);
    drawn.key = verify_random(rng);
    MPI_Comm_rank(comm, &drawn.rank);
    MPI_Comm_size(comm, &drawn.ranks);
    drawn.root = (int) verify_below(rng, (uint64_t) drawn.ranks);
    drawn.own.state = verify_key(drawn.key, (uint64_t) drawn.rank, 0, 0);
    return drawn;
}

void collectives_bcast(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn = draw(comm, rng, most);
    layout_t layout = layout_draw(&drawn.own, drawn.bytes);
    unsigned char *buffer = verify_guard_alloc(layout.extent, 0);
    memset(buffer, 0x77, layout.extent);
    layout_put(buffer, &layout, drawn.bytes, drawn.rank == drawn.root ? drawn.key : ~drawn.key);
    MPI_Bcast(buffer, layout.count, layout.type, drawn.root, comm);
    layout_check(buffer, &layout, drawn.bytes, drawn.key, "MPI_Bcast: a byte is wrong");
    verify_guard_free(buffer, layout.extent, 0, "MPI_Bcast");
    layout_free(&layout);
    collectives_count();
}

void collectives_allgather(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn = draw(comm, rng, most);
    const int in_place = 0 == verify_below(rng, 3);
    layout_t in_layout = layout_draw(&drawn.own, drawn.bytes);
    layout_t layout = layout_draw(&drawn.own, drawn.bytes);
    unsigned char *in = verify_guard_alloc(in_layout.extent, 0);
    unsigned char *out = verify_guard_alloc(layout.extent * (size_t) drawn.ranks, 0);
    memset(in, 0x77, in_layout.extent);
    memset(out, 0x77, layout.extent * (size_t) drawn.ranks);
    layout_put(in, &in_layout, drawn.bytes, drawn.key + (uint64_t) drawn.rank);
    if (in_place) {
        layout_put(out + layout.extent * (size_t) drawn.rank, &layout, drawn.bytes,
                   drawn.key + (uint64_t) drawn.rank);
    }
    MPI_Allgather(in_place ? MPI_IN_PLACE : in, in_layout.count, in_layout.type, out, layout.count,
                  layout.type, comm);
    for (int i = 0; i < drawn.ranks; i++) {
        layout_check(out + layout.extent * (size_t) i, &layout, drawn.bytes, drawn.key + (uint64_t) i,
                     "MPI_Allgather: a byte is wrong");
    }
    layout_check(in, &in_layout, drawn.bytes, drawn.key + (uint64_t) drawn.rank,
                 "MPI_Allgather changed what was sent");
    verify_guard_free(out, layout.extent * (size_t) drawn.ranks, 0, "MPI_Allgather");
    verify_guard_free(in, in_layout.extent, 0, "MPI_Allgather");
    layout_free(&layout);
    layout_free(&in_layout);
    collectives_count();
}

void collectives_allgatherv(MPI_Comm comm, verify_rng_t *rng, int most)
{
    enum { APART = 2 }; /* elements between blocks */
    drawn_t drawn = draw(comm, rng, most / LAYOUT_UNIT * LAYOUT_UNIT);
    const int in_place = 0 == verify_below(rng, 3);
    layout_t layout = layout_draw(&drawn.own, LAYOUT_UNIT);
    int *counts = calloc(2 * (size_t) drawn.ranks, sizeof(*counts));
    int *starts = counts + drawn.ranks;
    size_t all = 0;
    verify_that(NULL != counts, "no memory for the counts of an allgatherv");
    /* Of any length, many of none; the last block is the first in memory. */
    for (int i = drawn.ranks; 0 < i--;) {
        const size_t units = 0 == verify_below(rng, 4) ? 0 : verify_below(rng, drawn.bytes / LAYOUT_UNIT + 1);
        counts[i] = (int) units * layout.count;
        starts[i] = (int) all;
        all += (units + APART) * (size_t) layout.count;
    }
    const size_t extent = all / (size_t) layout.count * layout.extent;
    const size_t bytes = (size_t) (counts[drawn.rank] / layout.count) * LAYOUT_UNIT;
    /* coll/tuned multiplies the size of the type that is sent with the counts that are received: with two types its ranks disagree, and wait. */
    layout_t in_layout = layout;
    in_layout.count = counts[drawn.rank];
    in_layout.extent = (size_t) (counts[drawn.rank] / layout.count) * layout.extent;
    unsigned char *in = verify_guard_alloc(in_layout.extent, 0);
    unsigned char *out = verify_guard_alloc(extent, 0);
    memset(in, 0x77, in_layout.extent);
    memset(out, 0x77, extent);
    layout_put(in, &in_layout, bytes, drawn.key + (uint64_t) drawn.rank);
    if (in_place) {
        layout_put(out + (size_t) (starts[drawn.rank] / layout.count) * layout.extent, &layout, bytes,
                   drawn.key + (uint64_t) drawn.rank);
    }
    MPI_Allgatherv(in_place     ? MPI_IN_PLACE
                   : 0 == bytes ? NULL
                                : in,
                   in_layout.count, in_layout.type, out, counts, starts, layout.type, comm);
    for (int i = 0; i < drawn.ranks; i++) {
        const unsigned char *block = out + (size_t) (starts[i] / layout.count) * layout.extent;
        layout_t of = layout;
        of.extent = (size_t) (counts[i] / layout.count) * layout.extent;
        layout_check(block, &of, of.extent / layout.extent * LAYOUT_UNIT, drawn.key + (uint64_t) i,
                     "MPI_Allgatherv: a byte is wrong");
        for (size_t k = 0; k < APART * layout.extent; k++) {
            verify_that(0x77 == block[of.extent + k], "MPI_Allgatherv wrote between blocks");
        }
    }
    layout_check(in, &in_layout, bytes, drawn.key + (uint64_t) drawn.rank,
                 "MPI_Allgatherv changed what was sent");
    verify_guard_free(out, extent, 0, "MPI_Allgatherv");
    verify_guard_free(in, in_layout.extent, 0, "MPI_Allgatherv");
    free(counts);
    layout_free(&layout);
    collectives_count();
}

/** What the ranks of an alltoall with lengths give to each other. */
typedef enum mix { ANY, SHORT_OR_LONG, ONE_PAIR, NOTHING, IN_PLACE, MIXES } mix_t;

static mix_t mix_of(const drawn_t *drawn)
{
    return (mix_t) (drawn->key % MIXES);
}

/** Bytes from one rank to another. In place they are as many as come back. */
static size_t bytes_of_pair(const drawn_t *drawn, int from, int to)
{
    const int turns = IN_PLACE == mix_of(drawn) && to < from;
    verify_rng_t rng = {
        .state = verify_key(drawn->key, (uint64_t) (turns ? to : from), (uint64_t) (turns ? from : to), 4)};
    const size_t units = drawn->bytes / LAYOUT_UNIT;

    switch (mix_of(drawn)) {
    case SHORT_OR_LONG:
        return (0 == verify_below(&rng, 2) ? verify_below(&rng, 8) : units) * LAYOUT_UNIT;
    case ONE_PAIR:
        return drawn->root == from && (from + 1) % drawn->ranks == to ? units * LAYOUT_UNIT : 0;
    case NOTHING:
        return 0;
    default:
        return 0 == verify_below(&rng, 3) ? 0 : verify_below(&rng, units + 1) * LAYOUT_UNIT;
    }
}

/** Bytes that go through shared memory in one of ranks that share cores: all give a letter first, which says where the blocks are, and
 * has them if they fit; else all blocks follow, unless that were too many. */
static unsigned long long shared_bytes_of(const drawn_t *drawn)
{
    enum { LETTER = 16384, MOST = 65536 };
    const size_t head = sizeof(uint32_t) * ((size_t) drawn->ranks + 1);
    size_t most = 0;

    if (IN_PLACE == mix_of(drawn)) {
        return 0;
    }
    for (int from = 0; from < drawn->ranks; from++) {
        size_t bytes = 0;
        for (int to = 0; to < drawn->ranks; to++) {
            bytes += to == from ? 0 : bytes_of_pair(drawn, from, to);
        }
        most = most < bytes ? bytes : most;
    }
    return LETTER + (LETTER < head + most && MOST * ((size_t) drawn->ranks - 1) >= most ? most : 0);
}

/** Blocks for all ranks, or from them, in one type or in types of their own. */
static void make_sides(blocks_t *blocks, drawn_t *drawn, bool gives, bool by_types)
{
    size_t *bytes = calloc((size_t) drawn->ranks, sizeof(*bytes));

    verify_that(NULL != bytes, "no memory for an alltoallv");
    for (int i = 0; i < drawn->ranks; i++) {
        bytes[i] = gives ? bytes_of_pair(drawn, drawn->rank, i) : bytes_of_pair(drawn, i, drawn->rank);
    }
    blocks_make(blocks, &drawn->own, by_types ? BLOCKS_BY_TYPE : BLOCKS_APART, drawn->ranks, bytes);
    free(bytes);
}

unsigned long long collectives_alltoallv(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn = draw(comm, rng, most);
    const bool by_types = 0 == verify_below(rng, 2);
    const bool in_place = IN_PLACE == mix_of(&drawn);
    blocks_t from, to;

    make_sides(&from, &drawn, true, by_types);
    make_sides(&to, &drawn, false, by_types);
    for (int i = 0; i < drawn.ranks; i++) {
        blocks_put(in_place ? &to : &from, i, verify_key(drawn.key, (uint64_t) drawn.rank, (uint64_t) i, 5));
    }
    if (by_types) {
        MPI_Alltoallw(in_place ? MPI_IN_PLACE : from.memory, from.counts, from.starts, from.types, to.memory,
                      to.counts, to.starts, to.types, comm);
    } else {
        MPI_Alltoallv(in_place ? MPI_IN_PLACE : from.memory, from.counts, from.starts, from.unit.type,
                      to.memory, to.counts, to.starts, to.unit.type, comm);
    }
    for (int i = 0; i < drawn.ranks; i++) {
        blocks_check(&to, i, verify_key(drawn.key, (uint64_t) i, (uint64_t) drawn.rank, 5),
                     "MPI_Alltoallv: a byte is wrong");
    }
    blocks_free(&to, "MPI_Alltoallv");
    blocks_free(&from, "MPI_Alltoallv");
    collectives_count();
    return shared_bytes_of(&drawn);
}

void collectives_gather(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn = draw(comm, rng, most);
    const int in_place = 0 == verify_below(rng, 3) && drawn.rank == drawn.root;
    layout_t in_layout = layout_draw(&drawn.own, drawn.bytes);
    layout_t layout = layout_draw(&drawn.own, drawn.bytes);
    const size_t all = drawn.rank == drawn.root ? layout.extent * (size_t) drawn.ranks : 0;
    unsigned char *in = verify_guard_alloc(in_layout.extent, 0);
    unsigned char *out = verify_guard_alloc(all, 0);
    memset(in, 0x77, in_layout.extent);
    memset(out, 0x77, all);
    layout_put(in, &in_layout, drawn.bytes, drawn.key + (uint64_t) drawn.rank);
    if (in_place) {
        layout_put(out + layout.extent * (size_t) drawn.rank, &layout, drawn.bytes,
                   drawn.key + (uint64_t) drawn.rank);
    }
    /* Where there is no root nobody looks at what is to be received. */
    MPI_Gather(in_place ? MPI_IN_PLACE : in, in_layout.count, in_layout.type,
               drawn.rank == drawn.root ? out : NULL, drawn.rank == drawn.root ? layout.count : -1,
               drawn.rank == drawn.root ? layout.type : MPI_DATATYPE_NULL, drawn.root, comm);
    for (int i = 0; i < drawn.ranks && drawn.rank == drawn.root; i++) {
        layout_check(out + layout.extent * (size_t) i, &layout, drawn.bytes, drawn.key + (uint64_t) i,
                     "MPI_Gather: a byte is wrong");
    }
    layout_check(in, &in_layout, drawn.bytes, drawn.key + (uint64_t) drawn.rank,
                 "MPI_Gather changed what was sent");
    verify_guard_free(out, all, 0, "MPI_Gather");
    verify_guard_free(in, in_layout.extent, 0, "MPI_Gather");
    layout_free(&layout);
    layout_free(&in_layout);
    collectives_count();
}

unsigned long long collectives_streams(uint64_t rounds)
{
    enum { WORDS = 40 };
    uint64_t *words, sum;
    MPI_Comm comm;
    int rank, ranks;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    words = malloc((size_t) (ranks + 1) * WORDS * sizeof(*words));
    verify_that(NULL != words, "no memory for streams of collectives");
    uint64_t *own = words + (size_t) ranks * WORDS;
    for (uint64_t round = 0; round < rounds; round++) {
        const int root = (int) (round / 300 % (uint64_t) ranks);
        uint64_t word = rank == root ? verify_key(round, 0, 0, 0) : 0;
        MPI_Bcast(&word, 1, MPI_UINT64_T, root, comm);
        verify_that(verify_key(round, 0, 0, 0) == word, "MPI_Bcast of a stream: a word is wrong");
        word = round + (uint64_t) rank;
        MPI_Reduce(&word, &sum, 1, MPI_UINT64_T, MPI_SUM, root, comm);
        verify_that(rank != root || (uint64_t) ranks * round + (uint64_t) (ranks * (ranks - 1) / 2) == sum,
                    "MPI_Reduce of a stream: a sum is wrong");
        MPI_Scan(&word, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
        verify_that((uint64_t) (rank + 1) * round + (uint64_t) (rank * (rank + 1) / 2) == sum,
                    "MPI_Scan of a stream: a sum is wrong");
        for (size_t i = 0; i < WORDS; i++) {
            own[i] = verify_key(round, (uint64_t) rank, i, 1);
        }
        MPI_Gather(own, WORDS, MPI_UINT64_T, words, WORDS, MPI_UINT64_T, root, comm);
        for (size_t i = 0; i < (size_t) ranks * WORDS && rank == root; i++) {
            verify_that(verify_key(round, i / WORDS, i % WORDS, 1) == words[i],
                        "MPI_Gather of a stream: a word is wrong");
        }
        collectives_count();
    }
    free(words);
    MPI_Comm_free(&comm);
    return rounds * (3 + WORDS) * sizeof(uint64_t);
}

void collectives_alltoall(MPI_Comm comm, verify_rng_t *rng, int most)
{
    drawn_t drawn = draw(comm, rng, most);
    const int in_place = 0 == verify_below(rng, 3);
    layout_t in_layout = layout_draw(&drawn.own, drawn.bytes);
    layout_t layout = layout_draw(&drawn.own, drawn.bytes);
    const layout_t *from = in_place ? &layout : &in_layout;
    unsigned char *in = verify_guard_alloc(in_layout.extent * (size_t) drawn.ranks, 0);
    unsigned char *out = verify_guard_alloc(layout.extent * (size_t) drawn.ranks, 0);
    memset(in, 0x77, in_layout.extent * (size_t) drawn.ranks);
    memset(out, 0x77, layout.extent * (size_t) drawn.ranks);
    for (int to = 0; to < drawn.ranks; to++) {
        layout_put((in_place ? out : in) + from->extent * (size_t) to, from, drawn.bytes,
                   verify_key(drawn.key, (uint64_t) drawn.rank, (uint64_t) to, 3));
    }
    MPI_Alltoall(in_place ? MPI_IN_PLACE : in, in_layout.count, in_layout.type, out, layout.count,
                 layout.type, comm);
    for (int i = 0; i < drawn.ranks; i++) {
        layout_check(out + layout.extent * (size_t) i, &layout, drawn.bytes,
                     verify_key(drawn.key, (uint64_t) i, (uint64_t) drawn.rank, 3),
                     "MPI_Alltoall: a byte is wrong");
    }
    verify_guard_free(out, layout.extent * (size_t) drawn.ranks, 0, "MPI_Alltoall");
    verify_guard_free(in, in_layout.extent * (size_t) drawn.ranks, 0, "MPI_Alltoall");
    layout_free(&layout);
    layout_free(&in_layout);
    collectives_count();
}
