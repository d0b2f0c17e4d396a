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

enum { IN_TURNS = 3, WORDS = 100003, LEVELS = 17 };

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

/** A char and a double without alignment, doubled LEVELS times with another gap each. */
static MPI_Datatype nested_type(void)
{
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 2};
    const MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Datatype type, next;
    MPI_Aint low, extent;

    MPI_Type_create_struct(2, lengths, places, members, &type);
    for (int level = 0; level < LEVELS; level++) {
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
    MPI_Datatype type = nested_type();
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
