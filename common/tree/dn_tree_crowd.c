/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_crowd.c
 * Counters in groups.
 *
 * Memory order. A word is the least of some other words. These are loaded with acquire, then the word is stored with release.
 * So a process that sees that all processes are beyond a piece sees what each of them wrote before, through any number of
 * such words.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_tree_crowd.h"
#include "dn_tree_link.h"

#include <stdlib.h>
#include <string.h>

enum { COUNTERS = DN_TREE_CROWD_COUNTERS };

/**
 * What a process says in its area, behind its counters. These numbers never go back: when the area serves another group, a process of
 * the earlier group may still read them.
 */
typedef struct dn_tree_crowd_board {
    _Alignas(64) uint64_t under[COUNTERS]; /**< what all whom it stands for in its last group have come to */
    _Alignas(64) uint64_t whole[COUNTERS]; /**< what all have, as far as it knows */
    uint64_t leads;                        /**< others look at that */
} dn_tree_crowd_board_t;

struct dn_tree_crowd {
    dn_tree_t *shape;
    void *const *area;
    dn_tree_crowd_board_t *own;
    uint64_t *seen; /**< of the other members of the groups that we are first in, one after the other */
    uint64_t under[COUNTERS]; /**< as on our board, if we lead */
    uint64_t whole[COUNTERS]; /**< likewise */
    uint32_t above; /**< rank of the first of our last group: we ourselves if we are the first of all */
};

static dn_tree_crowd_board_t *dn_tree_crowd_board(const void *area)
{
    return (dn_tree_crowd_board_t *) ((uintptr_t) area + 64 * (size_t) COUNTERS);
}

/** @name Life */
/** @{ */
void dn_tree_crowd_none(void *area)
{
    /* Pairs with the acquire in dn_tree_crowd_has_told(). */
    dn_store_release(&dn_tree_crowd_board(area)->leads, 0);
}

void dn_tree_crowd_free(dn_tree_crowd_t *crowd)
{
    if (NULL != crowd) {
        if (NULL != crowd->shape) {
            dn_tree_shape_free(crowd->shape);
        }
        free(crowd->shape);
        free(crowd->seen);
        free(crowd);
    }
}

/** Allocate; dn_tree_crowd_free() frees what there is. */
static dn_status_t dn_tree_crowd_shape(dn_tree_crowd_t *crowd, const dn_tree_config_t *config)
{
    size_t others = 0;

    crowd->shape = aligned_alloc(_Alignof(dn_tree_t), sizeof(*crowd->shape));
    if (NULL == crowd->shape) {
        return DN_ERR_NOMEM;
    }
    memset(crowd->shape, 0, sizeof(*crowd->shape));
    crowd->shape->ranks = config->ranks;
    crowd->shape->rank = config->rank;
    const dn_status_t status = dn_tree_shape(crowd->shape, config);
    for (uint32_t g = 0; DN_OK == status && g < crowd->shape->groups; g++) {
        others += crowd->shape->group[g].members;
    }
    crowd->seen = calloc(others + 1, COUNTERS * sizeof(*crowd->seen));
    return DN_OK == status && NULL == crowd->seen ? DN_ERR_NOMEM : status;
}

dn_status_t dn_tree_crowd_create(const dn_tree_config_t *config, void *const *area, dn_tree_crowd_t **crowd_p)
{
    dn_tree_crowd_t *crowd = calloc(1, sizeof(*crowd));

    if (NULL == crowd) {
        return DN_ERR_NOMEM;
    }
    const dn_status_t status = dn_tree_crowd_shape(crowd, config);
    if (DN_OK != status) {
        dn_tree_crowd_free(crowd);
        return status;
    }
    const dn_tree_t *shape = crowd->shape;
    const dn_tree_group_t *last = &shape->group[shape->groups - 1];
    crowd->area = area;
    crowd->own = dn_tree_crowd_board(area[config->rank]);
    crowd->above = dn_tree_member_rank(shape, last, 0);
    /* Only we write there: go on from what the crowds before have left. */
    memcpy(crowd->under, crowd->own->under, sizeof(crowd->under));
    memcpy(crowd->whole, crowd->own->whole, sizeof(crowd->whole));
    /* Pairs with the acquire in dn_tree_crowd_has_told(). */
    dn_store_release(&crowd->own->leads, (uint64_t) dn_tree_crowd_leads(crowd));
    *crowd_p = crowd;
    return DN_OK;
}
/** @} */

int dn_tree_crowd_leads(const dn_tree_crowd_t *crowd)
{
    return 0 == crowd->shape->group[0].self;
}

/** Load a counter of a member of a group. @return the least value in all processes that the member stands for; its own, if these are
 * no others. */
static uint64_t dn_tree_crowd_member(const dn_tree_crowd_t *crowd, const dn_tree_group_t *group,
                                     uint32_t member, int which)
{
    const void *area = crowd->area[dn_tree_member_rank(crowd->shape, group, member)];

    if (1 == group->start[member + 1] - group->start[member]) {
        /* Pairs with the release of who publishes its counter (dn_tree_long.c). */
        return dn_load_acquire((const uint64_t *) ((uintptr_t) area + 64 * (size_t) which));
    }
    /* Pairs with the release in dn_tree_crowd_look() of that member. */
    return dn_load_acquire(&dn_tree_crowd_board(area)->under[which]);
}

/** The least value of a counter in all processes that this process stands for. */
static uint64_t dn_tree_crowd_least(dn_tree_crowd_t *crowd, int which, uint64_t own)
{
    const dn_tree_t *shape = crowd->shape;
    uint64_t *seen = crowd->seen + which;

    for (uint32_t g = 0; g < shape->groups && 0 == shape->group[g].self; g++) {
        const dn_tree_group_t *group = &shape->group[g];
        for (uint32_t m = 1; m < group->members; m++, seen += COUNTERS) {
            if (*seen <= crowd->under[which]) {
                *seen = dn_tree_crowd_member(crowd, group, m, which);
            }
            own = *seen < own ? *seen : own;
        }
    }
    return own;
}

int dn_tree_crowd_look(dn_tree_crowd_t *crowd, const uint64_t own[COUNTERS])
{
    const dn_tree_t *shape = crowd->shape;
    const int leads = dn_tree_crowd_leads(crowd);
    int tells = 0;

    for (int which = 0; which < COUNTERS; which++) {
        uint64_t whole = dn_tree_crowd_least(crowd, which, own[which]);
        if (leads && crowd->under[which] < whole) {
            crowd->under[which] = whole;
            dn_store_release(&crowd->own->under[which], whole);
            tells = 1;
        }
        if (shape->rank != crowd->above) {
            /* Pairs with the release below, of the one above us. */
            whole = dn_load_acquire(&dn_tree_crowd_board(crowd->area[crowd->above])->whole[which]);
        }
        if (crowd->whole[which] >= whole) {
            continue;
        }
        crowd->whole[which] = whole;
        if (leads) {
            dn_store_release(&crowd->own->whole[which], whole);
            tells = 1;
        }
    }
    return tells;
}

uint64_t dn_tree_crowd_all(const dn_tree_crowd_t *crowd, int which)
{
    return crowd->whole[which];
}

int dn_tree_crowd_has_told(const void *area, int which, uint64_t number)
{
    const dn_tree_crowd_board_t *board = dn_tree_crowd_board(area);

    /* Pairs with the releases where a process joins a crowd, or none: by then it has told the one before all that it had to. */
    return 0 == dn_load_acquire(&board->leads) || number <= dn_load_acquire(&board->whole[which]);
}
