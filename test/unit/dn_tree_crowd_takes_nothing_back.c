/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a process has said to a crowd stays said when its area serves another one, some of whose members have come less far.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_atomic.h"
#include "dn_tree_crowd.h"

enum { RANKS = 4, RADIX = 2, COUNTERS = DN_TREE_CROWD_COUNTERS, LINES = 16, LONG_AGO = 5, BEFORE = 10 };

typedef struct crowd {
    void *area[RANKS];
    dn_tree_crowd_t *rank[RANKS];
} crowd_t;

/** The areas of four processes, two of which serve another crowd later. */
static _Alignas(64) uint64_t own[RANKS][8 * LINES], others[RANKS][8 * LINES];

/** Two pairs, the first of each in a third one. */
static void form(crowd_t *crowd)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        const dn_tree_config_t config = {.ranks = RANKS, .rank = i, .radix = RADIX, .depth = 4};
        assert_int_equal(dn_tree_crowd_create(&config, crowd->area, &crowd->rank[i]), DN_OK);
    }
}

static void part(crowd_t *crowd)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        dn_tree_crowd_free(crowd->rank[i]);
    }
}

static int look(const crowd_t *crowd, uint32_t rank)
{
    return dn_tree_crowd_look(crowd->rank[rank], (const uint64_t[COUNTERS]){BEFORE, BEFORE, BEFORE});
}

/** A rank publishes its counters, and looks around. */
static void come_to(const crowd_t *crowd, uint32_t rank, uint64_t number)
{
    uint64_t counter[COUNTERS];

    for (int which = 0; which < COUNTERS; which++) {
        counter[which] = number;
        dn_store_release((uint64_t *) crowd->area[rank] + 8 * which, number);
    }
    (void) dn_tree_crowd_look(crowd->rank[rank], counter);
}

/** All ranks, and again, until the news is everywhere. */
static void all_come_to(const crowd_t *crowd, uint64_t number)
{
    for (int again = 0; again < 3; again++) {
        for (uint32_t i = RANKS; 0 < i--;) {
            come_to(crowd, i, number);
        }
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        for (int which = 0; which < COUNTERS; which++) {
            assert_int_equal(dn_tree_crowd_all(crowd->rank[i], which), number);
            assert_true(dn_tree_crowd_has_told(crowd->area[i], which, number));
        }
    }
}

static void check_told(const void *area, uint64_t number)
{
    for (int which = 0; which < COUNTERS; which++) {
        assert_true(dn_tree_crowd_has_told(area, which, number));
        assert_false(dn_tree_crowd_has_told(area, which, number + 1));
    }
}

static void who_waits_for_an_older_number_finds_it(void **state)
{
    crowd_t first = {.area = {own[0], own[1], own[2], own[3]}};
    crowd_t second = {.area = {others[0], others[1], others[2], others[3]}};
    crowd_t third = {.area = {own[0], own[1], others[0], others[1]}};

    form(&first);
    all_come_to(&first, BEFORE);
    part(&first);
    form(&second);
    all_come_to(&second, LONG_AGO);
    part(&second);
    form(&third);
    for (uint32_t i = 0; i < RANKS; i++) {
        for (int which = 0; which < COUNTERS; which++) {
            dn_store_release((uint64_t *) third.area[i] + 8 * which, BEFORE);
        }
    }
    /* The other pair has not looked around yet: what it says is of long ago. */
    assert_int_equal(look(&third, 0), 0);
    check_told(third.area[0], BEFORE);
    assert_int_equal(look(&third, 1), 0);
    assert_int_not_equal(look(&third, 2), 0);
    check_told(third.area[2], BEFORE);
    all_come_to(&third, BEFORE + 1);
    check_told(third.area[0], BEFORE + 1);
    part(&third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_an_older_number_finds_it),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
