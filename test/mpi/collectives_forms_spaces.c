/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file collectives_forms_spaces.c
 * Communicators: the world, its ranks reversed, halves, all but one; a grid, a graph, a graph with directions; two groups. Who is whose
 * neighbour is computed here, not asked of MPI.
 */
#include "dn_config.h"

#include "collectives_forms.h"

#include <stdlib.h>

static void space_open(space_t *space, MPI_Comm comm)
{
    int inter = 0;

    *space = (space_t){.comm = comm};
    if (MPI_COMM_NULL == comm) {
        return;
    }
    MPI_Comm_rank(comm, &space->rank);
    MPI_Comm_size(comm, &space->ranks);
    MPI_Comm_test_inter(comm, &inter);
    space->inter = 0 != inter;
    space->all.count = space->ranks;
    if (space->inter) {
        MPI_Comm_remote_size(comm, &space->all.count);
    }
    verify_that(MOST_PEERS >= space->all.count, "these are too many ranks");
    for (int i = 0; i < space->all.count; i++) {
        space->all.rank[i] = i;
    }
}

uint64_t space_name(const space_t *space, int rank, bool peer)
{
    enum { BETWEEN_GROUPS = 1000 };
    const int group = space->inter && peer ? 1 - space->group : space->group;

    return (uint64_t) (group * BETWEEN_GROUPS + rank);
}

static void add_peer(peers_t *peers, int rank)
{
    verify_that(MOST_PEERS > peers->count, "a rank has too many neighbours");
    peers->rank[peers->count++] = rank;
}

/** A grid of two dimensions. A dimension is closed to a ring if that gives a rank no neighbour twice. */
static void make_grid(space_t *space, int ranks)
{
    enum { DIMENSIONS = 2, LEAST_RING = 3 };
    int size[DIMENSIONS] = {0};
    int closed[DIMENSIONS];
    MPI_Comm comm;

    MPI_Dims_create(ranks, DIMENSIONS, size);
    for (int i = 0; i < DIMENSIONS; i++) {
        closed[i] = LEAST_RING <= size[i];
    }
    MPI_Cart_create(MPI_COMM_WORLD, DIMENSIONS, size, closed, 0, &comm);
    space_open(space, comm);
    space->has_topology = true;
    const int at[DIMENSIONS] = {space->rank / size[1], space->rank % size[1]};
    const int step[DIMENSIONS] = {size[1], 1};
    for (int i = 0; i < DIMENSIONS; i++) {
        for (int side = -1; side <= 1; side += 2) {
            const int there = at[i] + side;
            const bool inside = 0 <= there && there < size[i];
            const int wrapped = (there + size[i]) % size[i];
            const int peer = inside || closed[i] ? space->rank + (wrapped - at[i]) * step[i] : MPI_PROC_NULL;
            add_peer(&space->from, peer);
            add_peer(&space->to, peer);
        }
    }
}

/** Does a graph join the two ranks? Some ranks are joined to themselves. */
static bool is_joined(uint64_t seed, int one, int other)
{
    const int low = one < other ? one : other;

    return 0 != verify_key(seed, (uint64_t) low, (uint64_t) (one + other), 21) % 3;
}

static void make_graph(space_t *space, int ranks, uint64_t seed)
{
    int end[MOST_PEERS];
    int edge[MOST_PEERS * MOST_PEERS];
    int edges = 0;
    MPI_Comm comm;

    verify_that(MOST_PEERS >= ranks, "these are too many ranks");
    for (int i = 0; i < ranks; i++) {
        for (int k = 0; k < ranks; k++) {
            if (is_joined(seed, i, k)) {
                edge[edges++] = k;
            }
        }
        end[i] = edges;
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, end, edge, 0, &comm);
    space_open(space, comm);
    space->has_topology = true;
    for (int k = 0; k < ranks; k++) {
        if (is_joined(seed, space->rank, k)) {
            add_peer(&space->from, k);
            add_peer(&space->to, k);
        }
    }
}

/** Edges from one rank to another in a graph with directions. */
static int edges_of(uint64_t seed, int from, int to)
{
    const uint64_t drawn = verify_key(seed, (uint64_t) from, (uint64_t) to, 22) % 8;

    return 0 == drawn ? 2 : 4 >= drawn ? 1 : 0;
}

/** Each rank has its neighbours in an order of its own. */
static void shuffle_peers(peers_t *peers, verify_rng_t *rng)
{
    const peers_t before = *peers;
    int order[MOST_PEERS];

    verify_shuffle(rng, order, peers->count);
    for (int i = 0; i < peers->count; i++) {
        peers->rank[i] = before.rank[order[i]];
    }
}

static void make_directed(space_t *space, int rank, int ranks, uint64_t seed)
{
    verify_rng_t here = {.state = verify_key(seed, (uint64_t) rank, 0, 23)};
    peers_t from = {0};
    peers_t to = {0};
    int weight[MOST_PEERS];
    MPI_Comm comm;

    for (int k = 0; k < MOST_PEERS; k++) {
        weight[k] = 1;
    }
    for (int k = 0; k < ranks; k++) {
        for (int n = edges_of(seed, k, rank); 0 < n; n--) {
            add_peer(&from, k);
        }
        for (int n = edges_of(seed, rank, k); 0 < n; n--) {
            add_peer(&to, k);
        }
    }
    shuffle_peers(&from, &here);
    shuffle_peers(&to, &here);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, from.count, from.rank, weight, to.count, to.rank, weight,
                                   MPI_INFO_NULL, 0, &comm);
    space_open(space, comm);
    space->has_topology = true;
    space->from = from;
    space->to = to;
}

/** Two groups, of which the first has @p first ranks. */
static void make_groups(space_t *space, int rank, int ranks, int first)
{
    const int group = rank < first ? 0 : 1;
    MPI_Comm own, comm;

    if (0 == first || first == ranks) {
        space_open(space, MPI_COMM_NULL);
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, group, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 0 == group ? first : 0, 24, &comm);
    MPI_Comm_free(&own);
    space_open(space, comm);
    space->group = group;
}

void spaces_make(space_t space[SPACES], uint64_t seed)
{
    int rank, ranks;
    MPI_Comm comm;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    space_open(&space[0], comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    space_open(&space[1], comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    space_open(&space[2], comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank == ranks - 1 ? MPI_UNDEFINED : 0, rank, &comm);
    space_open(&space[3], comm);
    make_grid(&space[4], ranks);
    make_graph(&space[5], ranks, seed);
    make_directed(&space[6], rank, ranks, seed);
    make_directed(&space[7], rank, ranks, seed + 1);
    make_groups(&space[8], rank, ranks, 1);
    make_groups(&space[9], rank, ranks, ranks / 2);
    for (int i = 0; i < SPACES; i++) {
        space[i].number = i;
    }
}

void spaces_free(space_t space[SPACES])
{
    for (int i = 0; i < SPACES; i++) {
        if (MPI_COMM_NULL != space[i].comm) {
            MPI_Comm_free(&space[i].comm);
        }
    }
}
