/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Memory that all processes of a world map, and the devices that tests of one-sided communication run over.
 */
#ifndef RMA_WORLD_H
#define RMA_WORLD_H

#include "dn_world.h"

#include <stdio.h>

/** What has to hold over each device that maps memory. */
static const dn_variant_t rma_mapped[] = {
    {.file = "shm", .device = "shm"},
    {.file = "shm with faults", .device = "shm", .settings = "cma=0 fault=botf:again/5,botf:delay/20,seed=3"},
};

/** Run a list of tests over each of some variants. */
static inline int rma_run(const dn_world_test_t *test, size_t tests, const dn_variant_t *variant,
                          size_t variants, const char *name)
{
    int failed = 0;

    for (size_t i = 0; i < variants; i++) {
        printf("over %s:\n", variant[i].file);
        fflush(stdout);
        failed |= dn_world_run_tests(test, tests, &variant[i], name);
    }
    return failed;
}

/** Start, with memory of rank 0 that all map. @param[out] segment_p  Rank 0's. */
static inline void *rma_share(dn_world_t *world, uint64_t len, dn_segment_t **segment_p)
{
    void *base = NULL;

    dn_world_start(world);
    *segment_p = NULL;
    if (0 == world->rank) {
        dn_check_equal(dn_segment_alloc(world->port, len, segment_p), DN_OK);
        dn_segment_key(*segment_p, &world->me->key[0]);
        base = dn_segment_base(*segment_p);
    }
    dn_world_barrier(world);
    if (0 != world->rank) {
        dn_check_equal(dn_segment_map(world->peer[0], &world->board->seat[0].key[0], &base), DN_OK);
    }
    return base;
}

static inline void rma_stop(dn_world_t *world, dn_segment_t *segment)
{
    dn_world_barrier(world);
    if (NULL != segment) {
        dn_segment_free(segment);
    }
    dn_world_stop(world);
}

#endif
