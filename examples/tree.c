/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file tree.c
 * Collectives without MPI: a tree of polled lines sums numbers of all processes, and has them wait for each other.
 */
#include <stdio.h>

#include <dimmnet/dn_tree.h>

#include "meet.h"

#define NUMBERS 10
#define TIMES   100

/** The operation: inout = in + inout. */
static void add(const dn_tree_reduction_t *reduction, const void *in, void *inout, size_t count)
{
    (void) reduction;
    for (size_t i = 0; i < count; i++) {
        ((double *) inout)[i] += ((const double *) in)[i];
    }
}

/** Make the tree: each process tells the others its card. */
static dn_tree_t *plant(meet_t *meet)
{
    const dn_tree_config_t config = {.ranks = meet->ranks, .rank = meet->rank, .radix = 8, .depth = 8};
    dn_tree_card_t card[MEET_MAX];
    dn_tree_t *tree;

    meet_need(dn_tree_create(meet->port, &config, &card[meet->rank], &tree), "dn_tree_create");
    meet_tell(meet, "card", &card[meet->rank], sizeof(card[0]));
    for (uint32_t r = 0; r < meet->ranks; r++) {
        meet_hear(meet, r, "card", &card[r], sizeof(card[r]));
    }
    dn_tree_connect(tree, card, meet->peer);
    return tree;
}

/** An operation has been started, with this status. Go on with it until it is complete. */
static void complete(meet_t *meet, dn_tree_t *tree, dn_status_t status, const char *what)
{
    while (DN_INPROGRESS == status) {
        meet_wait(meet);
        status = dn_tree_test(tree);
    }
    meet_need(status, what);
}

int main(int argc, char **argv)
{
    const dn_tree_reduction_t sum = {.fold = add, .size = sizeof(double)};
    double in[NUMBERS], out[NUMBERS];
    meet_t meet;

    meet_begin(&meet, argc, argv);
    meet_need(2 <= meet.ranks ? DN_OK : DN_ERR_PARAM, "a tree of fewer than two processes");
    dn_tree_t *tree = plant(&meet);
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < NUMBERS; i++) {
            in[i] = t + i * (meet.rank + 1.0);
        }
        complete(&meet, tree, dn_tree_allreduce(tree, in, out, NUMBERS, &sum), "dn_tree_allreduce");
        for (int i = 0; i < NUMBERS; i++) {
            const double right = t * meet.ranks + i * (meet.ranks * (meet.ranks + 1) / 2.0);
            meet_need(right == out[i] ? DN_OK : DN_ERR_PROTO, "a sum");
        }
        complete(&meet, tree, dn_tree_barrier(tree), "dn_tree_barrier");
    }
    if (0 == meet.rank) {
        printf("tree: %u processes have summed %d times\n", (unsigned) meet.ranks, TIMES);
    }
    /* A peer may still tell this process that it has taken the last lines. */
    while (DN_INPROGRESS == dn_tree_free(tree)) {
        meet_wait(&meet);
    }
    meet_end(&meet);
    return 0;
}
