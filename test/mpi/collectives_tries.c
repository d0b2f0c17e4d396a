/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_tries.c
 * Two ranks with a core each try both ways of a collective, through areas and by messages, then go the way that took less time, and try
 * again after a round. Both ranks are always at the same try, and the data are right in each.
 *
 *   -s  seed
 *   -m  0: none of the collectives is a message
 */
#include "dn_config.h"

#include "counter.h"

#include <mpi.h>
#include <string.h>

/** BLOCK: tries of one way in a row; TRIES: of both ways; ROUND: calls until the next tries, as in coll_llcm_choice.c. FEW: calls before the
 * first try, as COLL_LLCM_FEW. WORDS: of a collective. */
enum { BLOCK = 8, TRIES = 64, ROUND = 4096, CALLS = ROUND + 2 * TRIES, FEW = 16, WORDS = 1024, KINDS = 5 };

static uint64_t seed = 1;
static uint64_t messages = 1;
static int rank;
static uint64_t in[2 * WORDS], out[2 * WORDS];

static uint64_t word_of(int kind, int round, int of, int i)
{
    return verify_key(seed + (uint64_t) round, (uint64_t) kind, (uint64_t) of, (uint64_t) i);
}

static void verify_words(const char *what, const uint64_t *words, int kind, int round, int of, int first)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != word_of(kind, round, of, first + i)) {
            verify_fail("%s, call %d: word %d is wrong", what, round, i);
        }
    }
}

static void verify_sums(const char *what, int kind, int round, int ranks)
{
    for (int i = 0; i < WORDS; i++) {
        if (out[i] != word_of(kind, round, 0, i) + (1 < ranks ? word_of(kind, round, 1, i) : 0)) {
            verify_fail("%s, call %d: sum %d is wrong", what, round, i);
        }
    }
}

/** A collective of 8 KiB, in which an alltoall counts the blocks for both. */
static void call(MPI_Comm comm, int kind, int round)
{
    const int root = round % 2;

    for (int i = 0; i < 2 * WORDS; i++) {
        in[i] = word_of(kind, round, rank, i);
    }
    memset(out, 0xee, sizeof(out));
    switch (kind) {
    case 0:
        MPI_Bcast(root == rank ? in : out, WORDS, MPI_UINT64_T, root, comm);
        verify_words("MPI_Bcast", root == rank ? in : out, kind, round, root, 0);
        break;
    case 1:
        MPI_Reduce(in, out, WORDS, MPI_UINT64_T, MPI_SUM, root, comm);
        if (root == rank) {
            verify_sums("MPI_Reduce", kind, round, 2);
        }
        break;
    case 2:
        MPI_Scan(in, out, WORDS, MPI_UINT64_T, MPI_SUM, comm);
        verify_sums("MPI_Scan", kind, round, 1 + rank);
        break;
    case 3:
        MPI_Allgather(in, WORDS, MPI_UINT64_T, out, WORDS, MPI_UINT64_T, comm);
        verify_words("MPI_Allgather", out, kind, round, 0, 0);
        verify_words("MPI_Allgather", out + WORDS, kind, round, 1, 0);
        break;
    default:
        MPI_Alltoall(in, WORDS, MPI_UINT64_T, out, WORDS, MPI_UINT64_T, comm);
        verify_words("MPI_Alltoall", out, kind, round, 0, rank * WORDS);
        verify_words("MPI_Alltoall", out + WORDS, kind, round, 1, rank * WORDS);
    }
}

/** Call a collective some times. @return how many of the calls went through areas. */
static int calls_through_areas(MPI_Comm comm, const counter_t *counter, int kind, int first, int end)
{
    int through = 0;

    for (int round = first; round < end; round++) {
        const unsigned long long before = counter_read(counter);
        call(comm, kind, round);
        /* Adding up the times takes some bytes, too. */
        through += WORDS * sizeof(uint64_t) <= counter_read(counter) - before;
    }
    return through;
}

static void verify_tries(MPI_Comm comm, const counter_t *counter, int kind, int first)
{
    for (int round = first; round < first + TRIES; round += BLOCK) {
        const int wanted = 0 != messages && 0 != (round - first) / BLOCK % 2 ? 0 : BLOCK;
        const int through = calls_through_areas(comm, counter, kind, round, round + BLOCK);

        if (wanted != through) {
            verify_fail("kind %d: of %d tries from call %d on, %d went through areas", kind, BLOCK, round,
                        through);
        }
    }
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {
        {'s', "SEED", &seed, 0}, {'m', "0|1", &messages, 0}, {0, NULL, NULL, 0}};
    counter_t counter;
    MPI_Comm comm;
    int ranks;

    verify_options(argc, argv, options);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(2 == ranks, "this is for 2 ranks");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    counter_open(&counter, "coll_llcm_long_bytes");
    verify_that((0 != messages ? 0 : FEW) == calls_through_areas(comm, &counter, 0, 0, FEW),
                "the first calls went some other way");
    for (int kind = 0; kind < KINDS; kind++) {
        verify_tries(comm, &counter, kind, 0);
        const int between = ROUND - TRIES;
        const int through = calls_through_areas(comm, &counter, kind, TRIES, ROUND);
        verify_that(0 == through || between == through, "the way changes between the tries");
        int way[2] = {through, -through};
        MPI_Allreduce(MPI_IN_PLACE, way, 2, MPI_INT, MPI_MAX, comm);
        verify_that(way[0] == -way[1], "the ranks go different ways");
        verify_tries(comm, &counter, kind, ROUND);
        calls_through_areas(comm, &counter, kind, ROUND + TRIES, CALLS);
    }
    counter_close(&counter);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
