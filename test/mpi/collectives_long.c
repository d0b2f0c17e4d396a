/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_long.c
 * Long collectives of which each is a case of its own.
 */
#include "dn_config.h"

#include "collectives.h"

#include <stdlib.h>
#include <string.h>

enum { IN_TURNS = 3, WORDS = 100003, LEVELS = 17, FEWER_LEVELS = 10 };

/** What rank adds to word i in some round. */
static uint64_t word_of(uint64_t round, int rank, size_t i)
{
    return (round + 1) * 1000003 + (uint64_t) rank * 7919 * i + i;
}

unsigned long long collectives_long_in_turns(uint64_t rounds)
{
    uint64_t *words = malloc(WORDS * sizeof(*words));
    MPI_Comm comm[IN_TURNS];
    int rank, ranks;

    verify_that(NULL != words, "no memory for long collectives");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < IN_TURNS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < WORDS; i++) {
            words[i] = word_of(round, rank, i);
        }
        MPI_Allreduce(MPI_IN_PLACE, words, WORDS, MPI_UINT64_T, MPI_SUM, comm[round % IN_TURNS]);
        for (size_t i = 0; i < WORDS; i++) {
            uint64_t sum = 0;
            for (int other = 0; other < ranks; other++) {
                sum += word_of(round, other, i);
            }
            if (sum != words[i]) {
                verify_fail("MPI_Allreduce in place, round %llu: word %zu is wrong",
                            (unsigned long long) round, i);
            }
        }
        collectives_count();
    }
    for (int i = 0; i < IN_TURNS; i++) {
        MPI_Comm_free(&comm[i]);
    }
    free(words);
    return rounds * WORDS * sizeof(*words);
}

/** A char and a double without alignment, doubled so many times with another gap each. */
static MPI_Datatype nested_type(int levels)
{
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 2};
    const MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Datatype type, next;
    MPI_Aint low, extent;

    MPI_Type_create_struct(2, lengths, places, members, &type);
    for (int level = 0; level < levels; level++) {
        MPI_Type_get_extent(type, &low, &extent);
        MPI_Type_create_hvector(2, 1, extent + 1 + level % 3, type, &next);
        MPI_Type_free(&type);
        type = next;
    }
    MPI_Type_commit(&type);
    return type;
}

unsigned long long collectives_long_nested(void)
{
    MPI_Datatype type = nested_type(LEVELS);
    MPI_Aint low, extent, from, to;
    int rank, ranks, size, position;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &low, &extent);
    MPI_Type_get_true_extent(type, &from, &to);
    verify_that(0 == low && 0 == from && to <= extent, "the nested type begins elsewhere");
    unsigned char *buffer = malloc((size_t) extent);
    unsigned char *wanted = malloc((size_t) extent);
    unsigned char *packed = malloc((size_t) size);
    verify_that(NULL != buffer && NULL != wanted && NULL != packed, "no memory for a nested type");
    for (int root = 0; root < ranks; root++) {
        for (int i = 0; i < size; i++) {
            packed[i] = verify_byte((uint64_t) root + 5, (size_t) i);
        }
        memset(wanted, 0x77, (size_t) extent);
        memset(buffer, 0x77, (size_t) extent);
        position = 0;
        MPI_Unpack(packed, size, &position, wanted, 1, type, MPI_COMM_WORLD);
        if (rank == root) {
            memcpy(buffer, wanted, (size_t) extent);
        }
        /* Who is no root may have the bytes as they come. */
        if (0 == (root + rank) % 3 && rank != root) {
            MPI_Bcast(buffer, size, MPI_BYTE, root, MPI_COMM_WORLD);
            verify_that(0 == memcmp(buffer, packed, (size_t) size), "MPI_Bcast of a nested type: packed");
        } else {
            MPI_Bcast(buffer, 1, type, root, MPI_COMM_WORLD);
            verify_that(0 == memcmp(buffer, wanted, (size_t) extent), "MPI_Bcast of a nested type");
        }
        collectives_count();
    }
    free(packed);
    free(wanted);
    free(buffer);
    MPI_Type_free(&type);
    return (unsigned long long) ranks * (unsigned long long) size;
}

/** What exchanges_begin() has: a type with gaps, and memory for a block of each rank. */
typedef struct exchanges {
    MPI_Datatype type;
    int size; /**< bytes of data of a block */
    size_t extent;
    unsigned char *packed, *in, *out;
    int rank, ranks;
} exchanges_t;

static void exchanges_begin(exchanges_t *all)
{
    MPI_Aint low, extent;

    MPI_Comm_rank(MPI_COMM_WORLD, &all->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all->ranks);
    all->type = nested_type(FEWER_LEVELS);
    MPI_Type_size(all->type, &all->size);
    MPI_Type_get_extent(all->type, &low, &extent);
    all->extent = (size_t) extent;
    all->packed = malloc((size_t) all->size * (size_t) all->ranks);
    all->in = malloc(all->extent * (size_t) all->ranks);
    all->out = malloc(all->extent * (size_t) all->ranks);
    verify_that(NULL != all->packed && NULL != all->in && NULL != all->out, "no memory for exchanges");
}

static void exchanges_end(exchanges_t *all)
{
    MPI_Type_free(&all->type);
    free(all->packed);
    free(all->in);
    free(all->out);
}

/** Make block @p i of what is given, packed and not. */
static void exchanges_make(exchanges_t *all, int i, uint64_t key)
{
    unsigned char *packed = all->packed + (size_t) i * (size_t) all->size;
    unsigned char *to = all->in + (size_t) i * all->extent;
    int position = 0;

    for (int n = 0; n < all->size; n++) {
        packed[n] = verify_byte(key, (size_t) n);
    }
    memset(to, 0x77, all->extent);
    MPI_Unpack(packed, all->size, &position, to, 1, all->type, MPI_COMM_WORLD);
}

/** Block @p i of what was got is that of a key, and its gaps are as they were. */
static void exchanges_check(exchanges_t *all, int i, uint64_t key, const char *call)
{
    unsigned char *got = all->out + (size_t) i * all->extent;

    exchanges_make(all, 0, key);
    if (0 != memcmp(got, all->in, all->extent)) {
        verify_fail("%s of a nested type: block %d is wrong", call, i);
    }
}

typedef enum exchange { ALLGATHER, GATHER, ALLTOALL, ALLTOALLV, ALLTOALLW, SCATTER, EXCHANGES } exchange_t;

/** An alltoall of blocks that are alike, but named one by one. */
static void alltoall_by_counts(exchanges_t *all, exchange_t exchange, const void *in, int count,
                               MPI_Datatype type, MPI_Comm comm)
{
    enum { MOST_RANKS = 16 };
    const int unit = ALLTOALLV == exchange ? 1 : (int) all->extent;
    const int in_unit = ALLTOALLV == exchange || 1 != count ? count : (int) all->extent;
    int counts[MOST_RANKS], starts[MOST_RANKS], in_counts[MOST_RANKS], in_starts[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS], in_types[MOST_RANKS];

    verify_that(MOST_RANKS >= all->ranks, "exchanges are for 16 ranks at most");
    for (int i = 0; i < all->ranks; i++) {
        counts[i] = 1;
        starts[i] = i * unit;
        types[i] = all->type;
        in_counts[i] = count;
        in_starts[i] = i * in_unit;
        in_types[i] = type;
    }
    if (ALLTOALLV == exchange) {
        MPI_Alltoallv(in, in_counts, in_starts, type, all->out, counts, starts, all->type, comm);
    } else {
        MPI_Alltoallw(in, in_counts, in_starts, in_types, all->out, counts, starts, types, comm);
    }
}

/** Bytes that go through shared memory in it: all give a letter first, then what does not fit into that. */
static unsigned long long bytes_by_counts(const exchanges_t *all)
{
    enum { LETTER = 16384 };
    const unsigned long long blocks = (unsigned long long) all->size * (unsigned long long) (all->ranks - 1);
    const unsigned long long head = sizeof(uint32_t) * (unsigned long long) (all->ranks + 1);

    return LETTER + (LETTER < head + blocks ? blocks : 0);
}

/** An exchange of a nested type; every second time a rank gives bytes as they come. */
static void exchange_nested(exchanges_t *all, exchange_t exchange, int round, MPI_Comm comm)
{
    const int root = round % all->ranks;
    const int packs = 0 == (round + all->rank) % 2;
    const void *in = packs ? all->packed : all->in;
    const int count = packs ? all->size : 1;
    MPI_Datatype type = packs ? MPI_BYTE : all->type;

    for (int i = 0; i < all->ranks; i++) {
        exchanges_make(all, i, verify_key((uint64_t) round, (uint64_t) all->rank, (uint64_t) i, 8));
    }
    memset(all->out, 0x77, all->extent * (size_t) all->ranks);
    if (ALLGATHER == exchange) {
        MPI_Allgather(in, count, type, all->out, 1, all->type, comm);
    } else if (GATHER == exchange) {
        MPI_Gather(in, count, type, all->out, 1, all->type, root, comm);
    } else if (ALLTOALL == exchange) {
        MPI_Alltoall(in, count, type, all->out, 1, all->type, comm);
    } else {
        alltoall_by_counts(all, exchange, in, count, type, comm);
    }
    for (int i = 0; i < all->ranks && (GATHER != exchange || all->rank == root); i++) {
        const uint64_t to = ALLTOALL <= exchange ? (uint64_t) all->rank : 0;
        exchanges_check(all, i, verify_key((uint64_t) round, (uint64_t) i, to, 8),
                        ALLGATHER == exchange ? "MPI_Allgather"
                        : GATHER == exchange  ? "MPI_Gather"
                                              : "MPI_Alltoall");
    }
}

/** A reduction of PART words for each rank, in both forms. @return its bytes. */
static unsigned long long scatter_words(int round, int rank, int ranks, MPI_Comm comm)
{
    enum { PART = 1500 };
    uint64_t *in = malloc((size_t) ranks * PART * sizeof(*in));
    int *counts = malloc((size_t) ranks * sizeof(*counts));
    uint64_t out[PART];

    verify_that(NULL != in && NULL != counts, "no memory for a reduction that is scattered");
    for (size_t i = 0; i < (size_t) ranks * PART; i++) {
        in[i] = word_of((uint64_t) round, rank, i);
    }
    for (int i = 0; i < ranks; i++) {
        counts[i] = PART;
    }
    if (0 == round % 2) {
        MPI_Reduce_scatter_block(in, out, PART, MPI_UINT64_T, MPI_SUM, comm);
    } else {
        MPI_Reduce_scatter(in, out, counts, MPI_UINT64_T, MPI_SUM, comm);
    }
    for (size_t i = 0; i < PART; i++) {
        uint64_t sum = 0;
        for (int other = 0; other < ranks; other++) {
            sum += word_of((uint64_t) round, other, (size_t) rank * PART + i);
        }
        verify_that(sum == out[i], "MPI_Reduce_scatter: a word is wrong");
    }
    free(counts);
    free(in);
    return (unsigned long long) ranks * PART * sizeof(*in);
}

unsigned long long collectives_long_exchanges(void)
{
    /* The first of those that need some for the set-up are left to others. */
    enum { ROUNDS = 20, FIRST = 16 };
    unsigned long long bytes = 0;
    exchanges_t all;

    exchanges_begin(&all);
    for (exchange_t exchange = 0; exchange < EXCHANGES; exchange++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int round = 0; round < ROUNDS; round++) {
            unsigned long long len = (unsigned long long) all.size;
            if (SCATTER == exchange) {
                len = scatter_words(round, all.rank, all.ranks, comm);
            } else {
                exchange_nested(&all, exchange, round, comm);
                len *= ALLTOALL == exchange ? (unsigned long long) all.ranks : 1;
                len = ALLTOALLV == exchange || ALLTOALLW == exchange ? bytes_by_counts(&all) : len;
            }
            const int waits = ALLGATHER != exchange && ALLTOALL != exchange;
            bytes += !waits || FIRST <= round ? len : 0;
            collectives_count();
        }
        MPI_Comm_free(&comm);
    }
    exchanges_end(&all);
    return bytes;
}

unsigned long long collectives_long_unequal(uint64_t seed, uint64_t rounds)
{
    enum { FIRST = 16, SHORT = 2000, LONG = 200000 };
    verify_rng_t rng = {.state = verify_key(seed, 9, 0, 0)};
    unsigned long long bytes = 0;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < FIRST; i++) {
        uint64_t word = 0;
        MPI_Bcast(&word, 1, MPI_UINT64_T, 0, comm);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        bytes += collectives_alltoallv(comm, &rng, 0 == round % 2 ? SHORT : LONG);
    }
    MPI_Comm_free(&comm);
    return bytes;
}
