/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file neighbors.c
 * Neighborhood collectives on topologies of all kinds, so many times that coll_llcm takes them over from the component before it: a process
 * notices nothing of that but the time.
 *
 *   -s  seed
 *   -n  rounds on each topology; in each, every kind of collective is called once
 *   -c  0: do not ask whether coll_llcm has taken them over
 *
 * Which block is for which place, the first rounds tell: there, blocks are what they are without coll_llcm.
 */
#include "dn_config.h"

#include "counter.h"
#include "verify.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** FEW: calls that are left to the component before, as COLL_LLCM_FEW; ROOM: the longest block, in words. */
enum { MOST_BLOCKS = 16, FEW = 16, ROOM = 12000, KINDS = 5 };

/** A block: its giver, and its number among those that the giver gives; -1: none. */
typedef struct block {
    int rank;
    int number;
} block_t;

typedef struct topology {
    const char *name;
    MPI_Comm comm;
    int gives;
    int gets;
    block_t block[MOST_BLOCKS]; /**< by place */
} topology_t;

static uint64_t seed = 1;
static uint64_t rounds = 12;
static uint64_t counts_them = 1;
static int rank, ranks;
static uint32_t *in, *out;

/** Words of a block in a round: the same wherever all have to agree. Most are short, some are none, and some are messages. */
static int words_of(uint64_t round, int kind, block_t block)
{
    const int alike = 1 != kind && 3 > kind;
    verify_rng_t rng = {.state = alike ? verify_key(seed, round, (uint64_t) kind, 1)
                                       : verify_key(seed + (uint64_t) block.rank, round, (uint64_t) kind,
                                                    2 > kind ? 0 : 1 + (uint64_t) block.number)};

    return 0 == verify_below(&rng, 5) ? 0 : (int) verify_size(&rng, ROOM);
}

static uint32_t word_of(uint64_t round, int kind, block_t block, int i)
{
    return (uint32_t) verify_key(seed + round, (uint64_t) kind,
                                 (uint64_t) block.rank * 1000 + (2 > kind ? 0 : (uint64_t) block.number),
                                 (uint64_t) i);
}

/** Kinds 0 and 1 give all neighbors the same block. @param[in] type  Of so many words that a call with types names bytes. */
static int call(int kind, const topology_t *t, const int *gives, const int *gets)
{
    int starts[MOST_BLOCKS];
    MPI_Aint places[MOST_BLOCKS];
    MPI_Datatype types[MOST_BLOCKS];

    for (int i = 0; i < MOST_BLOCKS; i++) {
        starts[i] = i * ROOM;
        places[i] = (MPI_Aint) (i * ROOM * (int) sizeof(*in));
        types[i] = MPI_UINT32_T;
    }
    switch (kind) {
    case 0:
        return MPI_Neighbor_allgather(in, gives[0], MPI_UINT32_T, out, gets[0], MPI_UINT32_T, t->comm);
    case 1:
        return MPI_Neighbor_allgatherv(in, gives[0], MPI_UINT32_T, out, gets, starts, MPI_UINT32_T, t->comm);
    case 2:
        return MPI_Neighbor_alltoall(in, gives[0], MPI_UINT32_T, out, gets[0], MPI_UINT32_T, t->comm);
    case 3:
        return MPI_Neighbor_alltoallv(in, gives, starts, MPI_UINT32_T, out, gets, starts, MPI_UINT32_T,
                                      t->comm);
    default:
        return MPI_Neighbor_alltoallw(in, gives, places, types, out, gets, places, types, t->comm);
    }
}

/** Words before a block: those of calls without lengths lie side by side. */
static int start_of(int kind, int i, int words)
{
    return i * (1 == kind || 2 < kind ? ROOM : words);
}

/** @return whether Open MPI passes the call on to a component: not if blocks without lengths of their own are empty. */
static bool run_call(const topology_t *t, uint64_t round, int kind)
{
    int gives[MOST_BLOCKS] = {0}, gets[MOST_BLOCKS] = {0};

    /* Where no block is given or gotten, the length is still that of all. */
    gives[0] = gets[0] = words_of(round, kind, (block_t){rank, 0});
    for (int i = 0; i < (2 > kind ? 1 : t->gives); i++) {
        const block_t own = {rank, i};
        gives[i] = words_of(round, kind, own);
        for (int k = 0; k < gives[i]; k++) {
            in[start_of(kind, i, gives[i]) + k] = word_of(round, kind, own, k);
        }
    }
    for (int i = 0; i < t->gets; i++) {
        gets[i] = 0 > t->block[i].rank ? gets[0] : words_of(round, kind, t->block[i]);
    }
    memset(out, 0xee, (size_t) MOST_BLOCKS * ROOM * sizeof(*out));
    verify_that(MPI_SUCCESS == call(kind, t, gives, gets), "a collective among neighbors has failed");
    for (int i = 0; i < t->gets; i++) {
        const uint32_t *place = out + start_of(kind, i, gets[i]);
        for (int k = 0; k < gets[i]; k++) {
            const uint32_t wanted =
                0 > t->block[i].rank ? UINT32_C(0xeeeeeeee) : word_of(round, kind, t->block[i], k);
            if (wanted != place[k]) {
                verify_fail("%s, kind %d, round %d: word %d of block %d is %08x, not %08x", t->name, kind,
                            (int) round, k, i, (unsigned) place[k], (unsigned) wanted);
            }
        }
        verify_that(1 != kind && 3 > kind ? true : ROOM == gets[i] || UINT32_C(0xeeeeeeee) == place[gets[i]],
                    "a word behind a block was written");
    }
    return 1 == kind || 2 < kind || 0 < gives[0];
}

/** Learn which blocks come where. */
static void meet(topology_t *t)
{
    block_t own[MOST_BLOCKS];

    for (int i = 0; i < MOST_BLOCKS; i++) {
        own[i] = (block_t){rank, i};
        t->block[i] = (block_t){-1, -1};
    }
    verify_that(MOST_BLOCKS >= t->gives && MOST_BLOCKS >= t->gets, "there are too many neighbors");
    MPI_Neighbor_alltoall(own, 2, MPI_INT, t->block, 2, MPI_INT, t->comm);
}

/** @name Topologies */
/** @{ */
static topology_t grid(const char *name, int dimensions, const int *size, const int *closed)
{
    topology_t t = {.name = name, .gives = 2 * dimensions, .gets = 2 * dimensions};

    MPI_Cart_create(MPI_COMM_WORLD, dimensions, size, closed, 0, &t.comm);
    return t;
}

/** Each rank is joined twice to the next one and the one before, and once to itself. */
static topology_t graph(void)
{
    topology_t t = {.name = "graph", .gives = 5, .gets = 5};
    int end[ranks], edge[5 * ranks];

    for (int i = 0; i < ranks; i++) {
        const int next = (i + 1) % ranks, before = (i + ranks - 1) % ranks;
        const int to[] = {next, i, before, next, before};
        memcpy(edge + (size_t) 5 * (size_t) i, to, sizeof(to));
        end[i] = 5 * (i + 1);
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, end, edge, 0, &t.comm);
    return t;
}

/** Rank 0 gets two blocks of each of the others, which get nothing. */
static topology_t star(void)
{
    topology_t t = {.name = "star", .gives = 0 == rank ? 0 : 2, .gets = 0 == rank ? 2 * (ranks - 1) : 0};
    int from[2 * ranks], weight[2 * ranks];
    const int to[] = {0, 0};

    for (int i = 0; i < 2 * ranks; i++) {
        from[i] = 1 + i % (ranks - 1);
        weight[i] = 1;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.gets, from, weight, t.gives, to, weight, MPI_INFO_NULL,
                                   0, &t.comm);
    return t;
}

/** Ranks 0 and 1 are neighbors, ranks 2 and 3 too, and so on. */
static topology_t pairs(void)
{
    const int other = rank ^ 1;
    topology_t t = {.name = "pairs", .gives = other < ranks, .gets = other < ranks};
    const int weight = 1;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.gets, &other, &weight, t.gives, &other, &weight,
                                   MPI_INFO_NULL, 0, &t.comm);
    return t;
}
/** @} */

static void run_topology(topology_t t)
{
    counter_t counter;
    uint64_t calls = 1;

    meet(&t);
    if (0 != counts_them) {
        counter_open(&counter, "coll_llcm_exchanges");
    }
    for (uint64_t round = 0; round < rounds; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            calls += run_call(&t, round, kind);
        }
    }
    if (0 != counts_them) {
        const int wanted = calls < FEW ? 0 : (int) calls - FEW;
        if (wanted != (int) counter_read(&counter)) {
            verify_fail("%s: coll_llcm has done %d of the collectives, not %d", t.name,
                        (int) counter_read(&counter), wanted);
        }
        counter_close(&counter);
    }
    MPI_Comm_free(&t.comm);
}

/** A block that is shorter than its place comes as it is; a block that is longer is some error, at first and later. The rules of MPI forbid
 * both: it is Open MPI that lets programs do so. */
static void run_mismatches(void)
{
    static const int lengths[][2] = {{10, ROOM}, {0, ROOM}, {10, 20}, {ROOM, 10}, {20, 10}, {5000, 4000}};
    topology_t t = pairs();

    meet(&t);
    MPI_Comm_set_errhandler(t.comm, MPI_ERRORS_RETURN);
    for (uint64_t round = 0; round < 2 * FEW; round++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            const int gives = lengths[i][0], gets = lengths[i][1];
            for (int k = 0; k < gives; k++) {
                in[k] = word_of(round, 3, (block_t){rank, 0}, k);
            }
            memset(out, 0xee, (size_t) ROOM * sizeof(*out));
            const int rc = call(3, &t, &gives, &gets);
            verify_that((MPI_SUCCESS == rc) == (gives <= gets || 0 == t.gets),
                        "blocks of other lengths than their places end otherwise");
            for (int k = 0; 0 < t.gets && MPI_SUCCESS == rc && k < gives; k++) {
                verify_that(word_of(round, 3, (block_t){rank ^ 1, 0}, k) == out[k],
                            "a block that is shorter than its place is wrong");
            }
            /* With an error, pml/ob1 of Open MPI 4.1 writes on behind the place. */
            verify_that(MPI_SUCCESS != rc || ROOM == gives || UINT32_C(0xeeeeeeee) == out[gives],
                        "a word behind a block was written");
        }
    }
    MPI_Comm_free(&t.comm);
}

/** In a ring, one of two blocks is shorter than its place, so that its receiver expects a message which does not come. The other block is a
 * message. Both come as they are, round for round. */
static void run_half_mismatches(void)
{
    enum { LITTLE = 10, MUCH = 9000 };
    topology_t t = grid("ring", 1, &ranks, (const int[]){1});
    int gives[MOST_BLOCKS] = {LITTLE, MUCH}, gets[MOST_BLOCKS] = {0};

    meet(&t);
    for (int i = 0; i < 2; i++) {
        gets[i] = 0 == t.block[i].number ? ROOM : MUCH;
    }
    for (uint64_t round = 0; round < 4 * FEW; round++) {
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < gives[i]; k++) {
                in[i * ROOM + k] = word_of(round, 3, (block_t){rank, i}, k);
            }
        }
        memset(out, 0xee, (size_t) 2 * ROOM * sizeof(*out));
        verify_that(MPI_SUCCESS == call(3, &t, gives, gets), "a collective among neighbors has failed");
        for (int i = 0; i < 2; i++) {
            const int words = gives[t.block[i].number];
            for (int k = 0; k < words; k++) {
                verify_that(word_of(round, 3, t.block[i], k) == out[i * ROOM + k],
                            "a block beside one that is shorter than its place is wrong");
            }
            verify_that(UINT32_C(0xeeeeeeee) == out[i * ROOM + words], "a word behind a block was written");
        }
    }
    MPI_Comm_free(&t.comm);
}

/** Pairs of ranks go on while others do nothing: only neighbors wait for each other. */
static void run_apart(void)
{
    enum { ALONE = 1000 };
    topology_t t = pairs();
    const int last = (ranks - 1) / 2 * 2;

    meet(&t);
    for (uint64_t round = 0; round < FEW; round++) {
        (void) run_call(&t, round, 3);
    }
    for (int first = 0; first <= last; first += 2) {
        if (first <= rank && rank < first + 2) {
            for (uint64_t round = 0; round < ALONE; round++) {
                (void) run_call(&t, round / 50, 3);
            }
        }
        /* The next pair waits for a message of this one. */
        if (first + 1 == rank && rank + 1 < ranks) {
            MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
        } else if (first + 2 == rank) {
            MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (first + 2 == rank && rank + 1 < ranks) {
            MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
        } else if (first + 3 == rank) {
            MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Comm_free(&t.comm);
}

int main(int argc, char **argv)
{
    const verify_option_t options[] = {{'s', "SEED", &seed, 0},
                                       {'n', "ROUNDS", &rounds, 4},
                                       {'c', "0|1", &counts_them, 0},
                                       {0, NULL, NULL, 0}};

    verify_options(argc, argv, options);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    verify_that(2 <= ranks && MOST_BLOCKS / 2 >= ranks - 1, "this is for 2 to 9 ranks");
    in = malloc((size_t) MOST_BLOCKS * ROOM * sizeof(*in));
    out = malloc((size_t) MOST_BLOCKS * ROOM * sizeof(*out));
    verify_that(NULL != in && NULL != out, "no memory for blocks");
    run_topology(grid("ring", 1, &ranks, (const int[]){1}));
    run_topology(grid("line", 1, &ranks, (const int[]){0}));
    run_topology(grid("ring, closed across", 2, (const int[]){1, ranks}, (const int[]){1, 1}));
    if (0 == ranks % 2) {
        run_topology(grid("torus of two rows", 2, (const int[]){2, ranks / 2}, (const int[]){1, 1}));
    }
    run_topology(graph());
    run_topology(star());
    run_topology(pairs());
    run_mismatches();
    run_half_mismatches();
    run_apart();
    free(in);
    free(out);
    if (0 == rank) {
        printf("neighbors: %d ranks, rounds of %d\n", ranks, (int) rounds);
    }
    MPI_Finalize();
    return 0;
}
