/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file torture_space.c
 * The communicators that a torture sends on, and who has which rank in them.
 */
#include "dn_config.h"

#include "torture.h"

#include <stdio.h>

#define TAG_INTER 77

static void return_errors(const torture_t *t, MPI_Comm comm)
{
    torture_must(t, MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

/* All ranks, as they are in MPI_COMM_WORLD. */
static void whole(const torture_t *t, space_t *space, MPI_Comm handle)
{
    *space = (space_t){.alive = true, .handle = handle};
    for (int i = 0; i < t->ranks; i++) {
        space->place[i] = i;
    }
    space->sizes[0] = t->ranks;
    return_errors(t, handle);
}

static void copy_parent(torture_t *t, space_t *space)
{
    MPI_Comm handle;

    torture_must(t, MPI_Comm_dup(t->parent, &handle), "MPI_Comm_dup");
    whole(t, space, handle);
}

/* Give every rank a part, and a rank in it that is not the old order. */
static void draw_parts(const torture_t *t, space_t *space, verify_rng_t *rng, int parts, int *keys)
{
    *space = (space_t){.alive = true};
    verify_shuffle(rng, keys, t->ranks);
    for (int i = 0; i < t->ranks; i++) {
        /* The first ones see to it that no part is empty. */
        space->side[i] = keys[i] < parts ? keys[i] : (int) verify_below(rng, (uint64_t) parts);
        space->sizes[space->side[i]]++;
    }
    for (int i = 0; i < t->ranks; i++) {
        for (int j = 0; j < t->ranks; j++) {
            space->place[i] += space->side[i] == space->side[j] && keys[j] < keys[i];
        }
    }
}

static MPI_Comm split_parent(const torture_t *t, const space_t *space, const int *keys)
{
    MPI_Comm part;
    int place;

    torture_must(t, MPI_Comm_split(t->parent, space->side[t->rank], keys[t->rank], &part), "MPI_Comm_split");
    torture_must(t, MPI_Comm_rank(part, &place), "MPI_Comm_rank");
    if (place != space->place[t->rank]) {
        torture_fail(t, "MPI_Comm_split gave rank %d, expected %d", place, space->place[t->rank]);
    }
    return part;
}

static void open_split(torture_t *t, verify_rng_t *rng)
{
    space_t *space = &t->spaces[SPACE_SPLIT];
    int keys[MOST_RANKS];
    int most = t->ranks < 3 ? t->ranks : 3;

    draw_parts(t, space, rng, 1 + (int) verify_below(rng, (uint64_t) most), keys);
    space->handle = split_parent(t, space, keys);
    return_errors(t, space->handle);
}

static void open_inter(torture_t *t, verify_rng_t *rng)
{
    space_t *space = &t->spaces[SPACE_INTER];
    int keys[MOST_RANKS];
    int leader = 0;
    MPI_Comm part;

    if (t->ranks < 2) {
        return;
    }
    draw_parts(t, space, rng, 2, keys);
    space->inter = true;
    part = split_parent(t, space, keys);
    while (space->side[leader] == space->side[t->rank] || 0 != space->place[leader]) {
        leader++;
    }
    torture_must(t, MPI_Intercomm_create(part, 0, t->parent, leader, TAG_INTER, &space->handle),
                 "MPI_Intercomm_create");
    torture_must(t, MPI_Comm_free(&part), "MPI_Comm_free");
    return_errors(t, space->handle);
}

static void close_space(const torture_t *t, space_t *space)
{
    if (space->alive) {
        torture_must(t, MPI_Comm_free(&space->handle), "MPI_Comm_free");
        space->alive = false;
    }
}

static void open_parts(torture_t *t)
{
    verify_rng_t rng = {.state = verify_key(t->seed, t->round, (uint64_t) t->thread, 2)};

    open_split(t, &rng);
    open_inter(t, &rng);
}

void spaces_open(torture_t *t, MPI_Comm shared)
{
    copy_parent(t, &t->spaces[SPACE_WORLD]);
    copy_parent(t, &t->spaces[SPACE_OPEN]);
    if (MPI_COMM_NULL != shared) {
        whole(t, &t->spaces[SPACE_SHARED], shared);
    }
    open_parts(t);
}

void spaces_renew(torture_t *t)
{
    close_space(t, &t->spaces[SPACE_SPLIT]);
    close_space(t, &t->spaces[SPACE_INTER]);
    open_parts(t);
}

void spaces_close(torture_t *t)
{
    t->spaces[SPACE_SHARED].alive = false;
    for (int i = 0; i < SPACES; i++) {
        close_space(t, &t->spaces[i]);
    }
}

void space_open_short(torture_t *t)
{
    copy_parent(t, &t->spaces[SPACE_SHORT]);
}

void space_close_short(torture_t *t)
{
    close_space(t, &t->spaces[SPACE_SHORT]);
}

bool space_connects(const space_t *space, int source, int target)
{
    return space->alive && space->inter == (space->side[source] != space->side[target]);
}
