/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_forest.h
 * All processes of a tree in one: a port each, and a schedule that decides whose turn it is.
 */
#ifndef DN_TREE_FOREST_H
#define DN_TREE_FOREST_H

#include "dn_unit.h"

#include "dn_tree.h"

enum { FOREST_MAX = 20 };

typedef struct forest {
    uint32_t ranks;
    dn_tree_config_t config;
    dn_tree_place_t place[FOREST_MAX];
    dn_port_t *port[FOREST_MAX];
    dn_peer_t *peer[FOREST_MAX][FOREST_MAX];
    dn_tree_t *tree[FOREST_MAX];
} forest_t;

/** Ports that are connected all to all and count from @p first; the trees come with forest_plant(). */
static void forest_open_at(forest_t *forest, uint32_t ranks, uint32_t first)
{
    uint8_t address[FOREST_MAX][DN_ADDRESS_MAX];
    size_t len[FOREST_MAX];
    dn_config_t config;

    memset(forest, 0, sizeof(*forest));
    forest->ranks = ranks;
    dn_config_init(&config);
    config.max_peers = FOREST_MAX;
    config.first = first;
    for (uint32_t i = 0; i < ranks; i++) {
        const dn_job_t job = {.key = {{7}}, .pid = i, .nlocal = ranks};
        assert_int_equal(dn_open("shm", &job, &config, &forest->port[i]), DN_OK);
        len[i] = sizeof(address[i]);
        assert_int_equal(dn_address(forest->port[i], address[i], &len[i]), DN_OK);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        for (uint32_t k = 0; k < ranks; k++) {
            assert_int_equal(dn_connect(forest->port[i], address[k], len[k], &forest->peer[i][k]), DN_OK);
        }
    }
}

static inline void forest_open(forest_t *forest, uint32_t ranks)
{
    forest_open_at(forest, ranks, 0);
}

static inline void forest_close(forest_t *forest)
{
    for (uint32_t i = 0; i < forest->ranks; i++) {
        dn_close(forest->port[i]);
    }
}

/** Trees of forest->config, but for ranks, rank and place. */
static inline void forest_plant(forest_t *forest)
{
    dn_tree_card_t card[FOREST_MAX];

    forest->config.ranks = forest->ranks;
    forest->config.place = forest->place;
    for (uint32_t i = 0; i < forest->ranks; i++) {
        forest->config.rank = i;
        assert_int_equal(dn_tree_create(forest->port[i], &forest->config, &card[i], &forest->tree[i]), DN_OK);
    }
    for (uint32_t i = 0; i < forest->ranks; i++) {
        dn_tree_connect(forest->tree[i], card, forest->peer[i]);
    }
}

static inline void forest_fell(forest_t *forest)
{
    for (uint32_t i = 0; i < forest->ranks; i++) {
        assert_int_equal(dn_tree_free(forest->tree[i]), DN_OK);
    }
}

#endif
