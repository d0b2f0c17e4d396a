/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_shape.c
 * Which processes form a group. All processes compute the same answer.
 *
 * Processes of one host that fit into one group are one group. Where they run on several hosts, each host is a group, whose first
 * member is in a group with the first members of other hosts. For more processes, groups are formed as follows.
 *
 * Ranks are put in the order of their places. For each key, from the narrowest to the widest: the ranks in the same place are
 * cut into groups of at most `radix` members, and the groups into larger groups, until one group is left in each place. At last,
 * the groups of all places are cut in the same way. A group stands for an interval of positions; its first member stands for the group.
 */
#include "dn_config.h"

#include "dn_topo.h"
#include "dn_tree_int.h"

#include <stdlib.h>
#include <string.h>

/** Most lines of all links of a process in a group, where the links are deeper than the caller wants: between hosts, and on one host.
 * On one host they stay in a half of the first-level cache. */
#define DN_TREE_FAR_LINES  64
#define DN_TREE_NEAR_LINES 224

/** What dn_tree_shape() works on. */
typedef struct dn_tree_cut {
    const dn_tree_config_t *config;
    dn_tree_t *tree;
    uint32_t *unit; /**< positions where units begin, then config->ranks */
    uint32_t units;
    uint32_t self; /**< unit that we stand for, or DN_TREE_NONE */
    uint32_t level;
} dn_tree_cut_t;

static int dn_tree_compare(const dn_tree_config_t *config, uint32_t a, uint32_t b, int keys)
{
    for (int i = 0; i < keys && NULL != config->place; i++) {
        const uint32_t x = config->place[a].key[i];
        const uint32_t y = config->place[b].key[i];
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return 0;
}

/** How many keys are used to form groups. */
static int dn_tree_keys(const dn_tree_config_t *config)
{
    if (config->ranks > config->radix) {
        return DN_TREE_KEYS;
    }
    for (uint32_t rank = 1; rank < config->ranks; rank++) {
        if (0 != dn_tree_compare(config, 0, rank, 1)) {
            return 1;
        }
    }
    return 0;
}

/** Sort ranks by their places (merge sort). It is stable, so ranks at equal places keep their order. */
static void dn_tree_sort(const dn_tree_config_t *config, uint32_t *at, uint32_t *spare, uint32_t count,
                         int keys)
{
    if (2 > count) {
        return;
    }
    const uint32_t half = count / 2;
    dn_tree_sort(config, at, spare, half, keys);
    dn_tree_sort(config, at + half, spare, count - half, keys);
    memcpy(spare, at, half * sizeof(*at));
    for (uint32_t i = 0, j = half, to = 0; i < half; to++) {
        const int second = j < count && 0 < dn_tree_compare(config, spare[i], at[j], keys);
        at[to] = second ? at[j++] : spare[i++];
    }
}

/** Do members of a group run on several hosts? */
static int dn_tree_spans_hosts(const dn_tree_cut_t *cut, uint32_t first, uint32_t members)
{
    const uint32_t *at = cut->tree->at;

    for (uint32_t i = 1; i < members; i++) {
        if (0 != dn_tree_compare(cut->config, at[cut->unit[first]], at[cut->unit[first + i]], 1)) {
            return 1;
        }
    }
    return 0;
}

/**
 * Lines of a link: more than the caller wants, while all links of a process together have no more than @p most lines. Between hosts,
 * a message that only says what was taken takes as long as a message of lines. So this number should travel in lines. And where cores
 * are shared, a process that runs ahead saves the others from being woken for each line. Two processes of a host seldom share a core,
 * and have the shortest ring.
 */
static uint32_t dn_tree_depth(uint32_t depth, uint32_t members, uint32_t most)
{
    while (DN_TREE_DEPTH_MAX > depth && 2 * depth * (members - 1) <= most) {
        depth *= 2;
    }
    return depth;
}

/** Note the group of units first .. first + members - 1 if this process is in one of them. */
static dn_status_t dn_tree_note_group(dn_tree_cut_t *cut, uint32_t first, uint32_t members)
{
    dn_tree_t *tree = cut->tree;
    uint32_t depth = cut->config->depth;

    if (dn_tree_spans_hosts(cut, first, members)) {
        depth = dn_tree_depth(depth, members, DN_TREE_FAR_LINES);
        tree->lines = depth / 2 - 1 < tree->lines ? depth / 2 - 1 : tree->lines;
    } else if (2 < members) {
        depth = dn_tree_depth(depth, members, DN_TREE_NEAR_LINES);
    }
    if (2 > members || DN_TREE_NONE == cut->self || cut->self < first || cut->self >= first + members) {
        return DN_OK;
    }
    dn_tree_group_t *group = &tree->group[tree->groups];
    group->start = calloc(members + 1, sizeof(*group->start));
    if (NULL == group->start) {
        return DN_ERR_NOMEM;
    }
    memcpy(group->start, &cut->unit[first], (members + 1) * sizeof(*group->start));
    group->level = cut->level;
    group->depth = depth;
    group->members = members;
    group->self = cut->self - first;
    tree->groups++;
    return DN_OK;
}

/** Cut a run of units into groups of nearly equal size. The groups are the new units from *made on. */
static dn_status_t dn_tree_cut_run(dn_tree_cut_t *cut, uint32_t first, uint32_t count, uint32_t *made,
                                   uint32_t *self)
{
    const uint32_t parts = (count + cut->config->radix - 1) / cut->config->radix;
    dn_status_t status = DN_OK;

    for (uint32_t part = 0; part < parts && DN_OK == status; part++) {
        const uint32_t begin = first + (uint32_t) ((uint64_t) count * part / parts);
        const uint32_t end = first + (uint32_t) ((uint64_t) count * (part + 1) / parts);
        status = dn_tree_note_group(cut, begin, end - begin);
        if (begin == cut->self) {
            *self = *made;
        }
        cut->unit[(*made)++] = cut->unit[begin];
    }
    return status;
}

/** Cut the units of each place, where the first @p keys keys name a place. @return 0: nothing was left to cut. */
static int dn_tree_cut_level(dn_tree_cut_t *cut, int keys, dn_status_t *status)
{
    const uint32_t *at = cut->tree->at;
    const uint32_t units = cut->units;
    uint32_t self = DN_TREE_NONE;
    uint32_t made = 0;

    /* The last cut is that of the top. */
    cut->tree->widest = 0;
    for (uint32_t i = 0; i < units; i++) {
        const uint32_t width = cut->unit[i + 1] - cut->unit[i];
        cut->tree->widest = cut->tree->widest < width ? width : cut->tree->widest;
    }
    for (uint32_t first = 0, end; first < units && DN_OK == *status; first = end) {
        end = first + 1;
        while (end < units
               && 0 == dn_tree_compare(cut->config, at[cut->unit[first]], at[cut->unit[end]], keys)) {
            end++;
        }
        *status = dn_tree_cut_run(cut, first, end - first, &made, &self);
    }
    cut->unit[made] = cut->config->ranks;
    cut->units = made;
    cut->self = self;
    cut->level++;
    return made < units && DN_OK == *status;
}

static dn_status_t dn_tree_cut_all(dn_tree_cut_t *cut, int keys)
{
    dn_status_t status = DN_OK;

    for (; 0 <= keys && DN_OK == status; keys--) {
        while (1 < cut->units) {
            const uint32_t level = cut->level;
            if (DN_TREE_LEVELS == level) {
                return DN_ERR_PARAM;
            }
            if (!dn_tree_cut_level(cut, keys, &status)) {
                cut->level = level;
                break;
            }
        }
    }
    return status;
}

static void dn_tree_order_free(dn_tree_t *tree)
{
    free(tree->position);
    free(tree->at);
    tree->position = NULL;
    tree->at = NULL;
}

dn_status_t dn_tree_shape(dn_tree_t *tree, const dn_tree_config_t *config)
{
    const uint32_t ranks = config->ranks;
    const int keys = dn_tree_keys(config);
    dn_tree_cut_t cut = {.config = config, .tree = tree, .units = ranks};

    tree->lines = DN_TREE_DEPTH_MAX;
    tree->at = calloc(ranks, sizeof(*tree->at));
    tree->position = calloc(ranks, sizeof(*tree->position));
    cut.unit = calloc((size_t) ranks + 1, sizeof(*cut.unit));
    dn_status_t status =
        NULL == tree->at || NULL == tree->position || NULL == cut.unit ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status) {
        for (uint32_t i = 0; i < ranks; i++) {
            tree->at[i] = i;
        }
        if (NULL != config->place) {
            /* position is spare memory until the order is known. */
            dn_tree_sort(config, tree->at, tree->position, ranks, keys);
        }
        tree->ordered = 1;
        for (uint32_t i = 0; i < ranks; i++) {
            tree->position[tree->at[i]] = i;
            tree->ordered = tree->ordered && i == tree->at[i];
        }
        for (uint32_t i = 0; i <= ranks; i++) {
            cut.unit[i] = i;
        }
        cut.self = tree->position[config->rank];
        status = dn_tree_cut_all(&cut, keys);
    }
    free(cut.unit);
    if (tree->ordered) {
        /* Kept by each rank, tables of all would be what limits how many there can be. */
        dn_tree_order_free(tree);
    }
    return status;
}

void dn_tree_shape_free(dn_tree_t *tree)
{
    for (uint32_t i = 0; i < tree->groups; i++) {
        free(tree->group[i].start);
        free(tree->group[i].link);
    }
    dn_tree_order_free(tree);
}

void dn_tree_place_here(dn_tree_place_t *place)
{
    _Static_assert(1 + DN_TOPO_DEPTHS == DN_TREE_KEYS, "host, package, NUMA node, cache");
    place->key[0] = 0;
    dn_topo_place(&place->key[1]);
}
