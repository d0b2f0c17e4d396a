/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Of two ways the one that takes less time is gone; a change is noticed, and no disturbance taken for one. The other way has few
 * operations.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_choice.h"

enum { FIRST, SECOND, TRIES = 12, COUNTS = 8, ROUND = 8192 };

static const dn_choice_plan_t plan = {.tries = {TRIES, TRIES}, .counts = COUNTS, .once = 16, .every = ROUND};

/** Make so many operations, which take so long by each way. @return how many went the second one. */
static unsigned run(dn_choice_t *choice, unsigned operations, uint64_t first, uint64_t second)
{
    unsigned went = 0;

    for (unsigned i = 0; i < operations; i++) {
        bool timed;
        const unsigned way = dn_choice_make(choice, &plan, 1, &timed);

        if (timed) {
            dn_choice_learn(choice, way, SECOND == way ? second : first);
        }
        went += SECOND == way;
    }
    return went;
}

static void the_faster_way_has_nearly_all(void **state)
{
    const uint32_t firsts[] = {0, UINT32_MAX - ROUND / 2, INT32_MAX};

    for (unsigned i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        dn_choice_t firsts_best = {.made = firsts[i]};
        dn_choice_t seconds_best = {.made = firsts[i]};

        (void) run(&firsts_best, ROUND, 500, 4000);
        assert_int_equal(run(&firsts_best, ROUND, 500, 4000), TRIES);
        (void) run(&seconds_best, ROUND, 900, 300);
        assert_int_equal(run(&seconds_best, ROUND, 900, 300), ROUND - TRIES);
    }
}

static void a_change_is_noticed(void **state)
{
    dn_choice_t choice = {0};

    (void) run(&choice, 2 * ROUND, 500, 4000);
    /* As where a target begins to compute. */
    (void) run(&choice, ROUND, 9000, 4000);
    assert_in_range(run(&choice, ROUND, 9000, 4000), ROUND / 2, ROUND);
    (void) run(&choice, 4 * ROUND, 500, 4000);
    assert_int_equal(run(&choice, ROUND, 500, 4000), TRIES);
}

static void a_disturbance_is_none(void **state)
{
    dn_choice_t choice = {0};

    (void) run(&choice, ROUND, 500, 800);
    dn_choice_learn(&choice, FIRST, UINT64_MAX);
    assert_int_equal(run(&choice, ROUND, 500, 800), TRIES);
}

/** The first operation by a way finds cold caches, or is disturbed. The trial that it belongs to ends with about the right cost. */
static void a_first_disturbance_is_soon_forgotten(void **state)
{
    static const uint64_t times[] = {2, 3, 4, 100};

    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        dn_choice_t choice = {0};

        dn_choice_learn(&choice, SECOND, 300 * times[i]);
        for (unsigned tries = 1; tries < COUNTS; tries++) {
            dn_choice_learn(&choice, SECOND, 300);
        }
        assert_in_range(choice.cost[SECOND], 300, 420);
    }
}

/** A way that is the faster one now and then, and not on the whole, is not taken for the faster one. */
static void the_mean_counts(void **state)
{
    dn_choice_t choice = {0};
    unsigned firsts = 0;
    unsigned turn = 0;

    for (unsigned i = 0; i < 4 * ROUND; i++) {
        bool timed;
        const unsigned way = dn_choice_make(&choice, &plan, 1, &timed);

        if (timed) {
            dn_choice_learn(&choice, way, SECOND == way ? 900 : 0 == turn++ % 2 ? 600 : 1800);
        }
        firsts += FIRST == way;
    }
    assert_in_range(firsts, 4 * TRIES, 4 * TRIES + ROUND / 16);
}

/** The first way was never timed: there may be a reason, but none to give it up. */
static void what_is_not_known_is_not_worse(void **state)
{
    dn_choice_t choice = {0};
    bool timed;

    for (unsigned i = 0; i < 2 * TRIES; i++) {
        (void) dn_choice_make(&choice, &plan, 1, &timed);
        dn_choice_learn(&choice, SECOND, 300);
    }
    assert_int_equal(dn_choice_make(&choice, &plan, 1, &timed), FIRST);
}

/** A way that is slow until it has gone for a while is judged by what it takes then. Sizes that change are no matter. */
static void a_way_that_warms_up_is_tried_for_longer(void **state)
{
    enum { COLD = 300 };
    static const uint32_t sizes[] = {1, 5, 2, 8};
    const dn_choice_plan_t longer = {
        .tries = {TRIES, COLD + COUNTS}, .counts = COUNTS, .once = 16, .every = ROUND};
    dn_choice_t choice = {0};
    uint32_t row = 0;
    uint32_t went = 0;
    uint32_t all = 0;

    for (unsigned i = 0; all < 2 * ROUND; i++) {
        const uint32_t size = sizes[i % 4];
        bool timed;
        const unsigned way = dn_choice_make(&choice, &longer, size, &timed);

        row = SECOND == way ? row + size : 0;
        if (timed) {
            dn_choice_learn(&choice, way, FIRST == way ? 700 : COLD < row ? 500 : 2000);
        }
        went += SECOND == way ? size : 0;
        all += size;
    }
    assert_in_range(went, 2 * (ROUND - TRIES) - 4 * 8, 2 * ROUND);
}

/** Of the rest of a round operations are timed at the same distance, whatever their size. */
static void large_ones_are_timed_more_often(void **state)
{
    static const uint32_t sizes[] = {1, 4, 16, 64};
    const dn_choice_plan_t large = {.tries = {64, 64}, .counts = 64, .once = 16, .every = ROUND};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        dn_choice_t choice = {.made = ROUND / 2};
        unsigned timed = 0;

        for (uint32_t made = 0; made < ROUND / 4; made += sizes[i]) {
            bool is_timed;
            (void) dn_choice_make(&choice, &large, sizes[i], &is_timed);
            timed += is_timed;
        }
        assert_int_equal(timed, ROUND / 4 / (sizes[i] < large.once ? large.once : sizes[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_has_nearly_all),
        cmocka_unit_test(a_change_is_noticed),
        cmocka_unit_test(a_disturbance_is_none),
        cmocka_unit_test(a_first_disturbance_is_soon_forgotten),
        cmocka_unit_test(the_mean_counts),
        cmocka_unit_test(what_is_not_known_is_not_worse),
        cmocka_unit_test(a_way_that_warms_up_is_tried_for_longer),
        cmocka_unit_test(large_ones_are_timed_more_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
