/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Groups of a tree: at most `radix` members, close ones first, each rank in one group of a level at most, and the same
 * groups seen from each of their members.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_tree_link.h"

enum { RANKS_MAX = 300 };

static dn_tree_place_t place[RANKS_MAX];
static dn_tree_t tree[RANKS_MAX];

static void shape(uint32_t ranks, uint32_t radix)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const dn_tree_config_t config = {
            .ranks = ranks, .rank = rank, .radix = radix, .depth = 4, .place = place};
        memset(&tree[rank], 0, sizeof(tree[rank]));
        tree[rank].ranks = ranks;
        assert_int_equal(dn_tree_shape(&tree[rank], &config), DN_OK);
    }
}

static void forget(uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        dn_tree_shape_free(&tree[rank]);
    }
}

static const dn_tree_group_t *group_of_level(uint32_t rank, uint32_t level)
{
    for (uint32_t g = 0; g < tree[rank].groups; g++) {
        if (level == tree[rank].group[g].level) {
            return &tree[rank].group[g];
        }
    }
    return NULL;
}

/** All members of a group have it, with their own place in it. */
static void check_group(uint32_t ranks, uint32_t rank, const dn_tree_group_t *group, uint32_t radix)
{
    assert_in_range(group->members, 2, radix);
    assert_int_equal(dn_tree_member_rank(&tree[rank], group, group->self), rank);
    for (uint32_t m = 0; m < group->members; m++) {
        const uint32_t other = dn_tree_member_rank(&tree[rank], group, m);
        assert_true(other < ranks && group->start[m] < group->start[m + 1]);
        const dn_tree_group_t *same = group_of_level(other, group->level);
        assert_non_null(same);
        assert_int_equal(same->members, group->members);
        assert_int_equal(same->self, m);
        assert_int_equal(same->depth, group->depth);
        assert_memory_equal(same->start, group->start, (group->members + 1) * sizeof(*group->start));
    }
}

/** Who is not the first of a group is in none above it; one group stands for all. */
static void check_rank(uint32_t ranks, uint32_t rank, uint32_t radix)
{
    const dn_tree_t *t = &tree[rank];

    assert_in_range(t->groups, 1, DN_TREE_LEVELS);
    assert_int_equal(t->lines, tree[0].lines);
    assert_int_equal(t->widest, tree[0].widest);
    for (uint32_t g = 0; g < t->groups; g++) {
        const dn_tree_group_t *group = &t->group[g];
        const int last = g == t->groups - 1;
        const int top = 0 == group->start[0] && ranks == group->start[group->members];
        check_group(ranks, rank, group, radix);
        assert_int_equal(last, top || 0 != group->self);
        assert_true(0 == g || group->level > t->group[g - 1].level);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        assert_int_equal(dn_tree_rank_at(t, i), dn_tree_rank_at(&tree[0], i));
        assert_int_equal(dn_tree_position_of(t, dn_tree_rank_at(t, i)), i);
    }
}

static void every_member_sees_the_same(void **state)
{
    uint64_t random = 3;

    for (int round = 0; round < 300; round++) {
        const uint32_t ranks = 2 + (uint32_t) dn_test_length(&random, RANKS_MAX - 2);
        const uint32_t radix = 2 + (uint32_t) dn_test_below(&random, 9);
        const uint64_t spread = 1 + dn_test_below(&random, 5);
        for (uint32_t i = 0; i < ranks; i++) {
            for (int key = 0; key < DN_TREE_KEYS; key++) {
                place[i].key[key] = (uint32_t) dn_test_below(&random, spread);
            }
        }
        shape(ranks, radix);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            check_rank(ranks, rank, radix);
        }
        forget(ranks);
    }
}

/** Two hosts of two packages each, ranks dealt out in turns: package by package, then host by host. */
static void the_closest_come_first(void **state)
{
    for (uint32_t i = 0; i < 24; i++) {
        place[i] = (dn_tree_place_t){{i % 2, i / 2 % 2, 0, 0}};
    }
    shape(24, 8);
    for (uint32_t i = 0; i < 24; i++) {
        const dn_tree_group_t *first = &tree[i].group[0];
        assert_int_equal(first->members, 6);
        for (uint32_t m = 0; m < 6; m++) {
            assert_int_equal(dn_tree_member_rank(&tree[i], first, m) % 4, i % 4);
        }
        assert_false(tree[i].ordered);
    }
    /* Rank 0 stands for its package, its host, and all. */
    assert_int_equal(tree[0].groups, 3);
    assert_int_equal(tree[0].group[1].members, 2);
    assert_int_equal(dn_tree_member_rank(&tree[0], &tree[0].group[1], 1), 2);
    assert_int_equal(tree[0].group[2].members, 2);
    assert_int_equal(dn_tree_member_rank(&tree[0], &tree[0].group[2], 1), 1);
    forget(24);
}

static void few_are_one_group(void **state)
{
    for (uint32_t i = 0; i < 8; i++) {
        place[i] = (dn_tree_place_t){{3, i % 3, 0, i}};
    }
    shape(8, 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(tree[i].groups, 1);
        assert_int_equal(tree[i].group[0].members, 8);
        assert_true(tree[i].ordered);
        /* A table of all ranks in each rank is what keeps them from being many. */
        assert_null(tree[i].at);
        assert_null(tree[i].position);
    }
    forget(8);
}

/** Few on two hosts: the first of each host speaks for it, wherever in the host the others run. */
static void few_are_one_group_on_each_host(void **state)
{
    for (uint32_t i = 0; i < 5; i++) {
        place[i] = (dn_tree_place_t){{i % 2, 9 - i, 0, i}};
    }
    shape(5, 8);
    for (uint32_t i = 0; i < 5; i++) {
        check_rank(5, i, 8);
        assert_int_equal(tree[i].group[0].members, 0 == i % 2 ? 3 : 2);
        assert_int_equal(tree[i].groups, 2 > i ? 2 : 1);
        assert_false(tree[i].ordered);
    }
    assert_int_equal(tree[0].group[1].members, 2);
    assert_int_equal(dn_tree_member_rank(&tree[0], &tree[0].group[1], 1), 1);
    forget(5);
    /* One on each host is one group. */
    shape(2, 8);
    assert_int_equal(tree[1].groups, 1);
    assert_true(tree[1].ordered);
    forget(2);
}

/** Lines between hosts: of few as deep as can be, of many as inside of a host; as many may go in an operation as need no answer. */
static void links_between_few_hosts_are_deep(void **state)
{
    for (uint32_t i = 0; i < 32; i++) {
        place[i] = (dn_tree_place_t){{i / 16, 0, 0, 0}};
    }
    shape(32, 8);
    assert_int_equal(tree[0].group[0].depth, 32);
    assert_int_equal(tree[0].group[2].depth, 64);
    assert_int_equal(tree[31].lines, 31);
    assert_int_equal(tree[31].widest, 16);
    forget(32);
    for (uint32_t i = 0; i < 32; i++) {
        place[i].key[0] = i % 4;
    }
    shape(32, 8);
    assert_int_equal(tree[0].group[1].depth, 16);
    assert_int_equal(tree[31].lines, 7);
    assert_int_equal(tree[31].widest, 8);
    forget(32);
    for (uint32_t i = 0; i < 32; i++) {
        place[i].key[0] = i;
    }
    shape(32, 32);
    assert_int_equal(tree[0].group[0].depth, 4);
    assert_int_equal(tree[0].lines, 1);
    forget(32);
    memset(place, 0, sizeof(place));
    shape(32, 8);
    assert_int_equal(tree[0].lines, 64);
    forget(32);
}

static void equal_places_keep_the_order_of_ranks(void **state)
{
    memset(place, 0, sizeof(place));
    shape(100, 8);
    assert_true(tree[0].ordered);
    assert_int_equal(tree[0].groups, 3);
    assert_true(tree[99].ordered);
    forget(100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_sees_the_same),
        cmocka_unit_test(the_closest_come_first),
        cmocka_unit_test(few_are_one_group),
        cmocka_unit_test(few_are_one_group_on_each_host),
        cmocka_unit_test(links_between_few_hosts_are_deep),
        cmocka_unit_test(equal_places_keep_the_order_of_ranks),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
