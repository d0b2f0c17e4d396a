/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_excess.c
 * Allgathers in which one rank gives more than its places hold.
 *
 * The sizes are those of exchanges that coll_llcm takes: what was there before may wait for ever.
 */
#include "dn_config.h"

#include "collectives.h"

#include <stdlib.h>
#include <string.h>

/** An exchange as all ranks draw it, and what this rank gives. */
typedef struct excess {
    int by_counts; /**< MPI_Allgatherv */
    int words;     /**< of a place */
    int gives;     /**< words to a place */
    int stride;    /**< words of memory for each of what it gives, and of what it gets */
    uint64_t key;
    int rank;
    int ranks;
} excess_t;

static int call(const excess_t *drawn, MPI_Datatype type, const uint64_t *in, uint64_t *out, MPI_Comm comm)
{
    int *counts = calloc(2 * (size_t) drawn->ranks, sizeof(*counts));
    int result;

    verify_that(NULL != counts, "no memory for the counts of an allgatherv");
    for (int i = 0; i < drawn->ranks; i++) {
        counts[i] = drawn->words;
        counts[drawn->ranks + i] = i * drawn->words;
    }
    if (drawn->by_counts) {
        result = MPI_Allgatherv(in, drawn->gives, type, out, counts, counts + drawn->ranks, type, comm);
    } else {
        result = MPI_Allgather(in, drawn->gives, type, out, drawn->words, type, comm);
    }
    free(counts);
    return result;
}

/** Do it, and look at the result. */
static void excess_check(const excess_t *drawn, MPI_Datatype type, int expected, MPI_Comm comm)
{
    const size_t place = (size_t) drawn->stride * sizeof(uint64_t);
    const size_t in_bytes = (size_t) drawn->gives * place;
    const size_t out_bytes = (size_t) (drawn->ranks * drawn->words) * place;
    uint64_t *in = verify_guard_alloc(in_bytes, 0);
    uint64_t *out = verify_guard_alloc(out_bytes, 0);
    int class = MPI_SUCCESS;

    memset(out, 0, out_bytes);
    for (int i = 0; i < drawn->gives; i++) {
        in[i * drawn->stride] = verify_key(drawn->key, (uint64_t) drawn->rank, (uint64_t) i, 0);
    }
    MPI_Error_class(call(drawn, type, in, out, comm), &class);
    verify_that(expected == class, "an allgather of more than a place holds gave another result");
    for (int from = 0; from < drawn->ranks; from++) {
        for (int i = 0; i < drawn->words; i++) {
            verify_that(verify_key(drawn->key, (uint64_t) from, (uint64_t) i, 0)
                            == out[(from * drawn->words + i) * drawn->stride],
                        "what fits into a place did not come");
        }
    }
    verify_guard_free(out, out_bytes, 0, "an allgather of more than a place holds");
    verify_guard_free(in, in_bytes, 0, "an allgather of more than a place holds");
}

void collectives_excess(MPI_Comm comm, verify_rng_t *rng, uint64_t rounds)
{
    static const int words[] = {1, 7, 20, 100};
    excess_t drawn;
    MPI_Datatype with_gaps;

    MPI_Type_create_resized(MPI_UINT64_T, 0, 2 * sizeof(uint64_t), &with_gaps);
    MPI_Type_commit(&with_gaps);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &drawn.rank);
    MPI_Comm_size(comm, &drawn.ranks);
    for (uint64_t round = 0; round < rounds; round++) {
        drawn.by_counts = (int) verify_below(rng, 2);
        drawn.key = verify_random(rng);
        drawn.words = words[verify_below(rng, sizeof(words) / sizeof(words[0]))];
        drawn.stride = 1 + (int) verify_below(rng, 2);
        /* Of every three one is right: it does not hear of those before. */
        const int expected = 0 == verify_below(rng, 3) ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
        const int giver = (int) verify_below(rng, (uint64_t) drawn.ranks);
        const int more = 1 + (int) verify_below(rng, 2000);
        drawn.gives = drawn.words + (MPI_SUCCESS != expected && drawn.rank == giver ? more : 0);
        excess_check(&drawn, 1 == drawn.stride ? MPI_UINT64_T : with_gaps, expected, comm);
        collectives_count();
    }
    MPI_Type_free(&with_gaps);
}
