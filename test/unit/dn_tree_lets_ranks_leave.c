/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A rank that has done its part may close its port: the others do without it, and know whom they still need.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

#include "dn_tree_int.h"

enum { DEPTH = 8 };

static forest_t forest;

static void plant(uint32_t ranks, uint32_t radix)
{
    forest_open(&forest, ranks);
    forest.config = (dn_tree_config_t){.radix = radix, .depth = DEPTH};
    forest_plant(&forest);
}

/** One rank has left; the others go. */
static void fell_after(uint32_t left)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        dn_tree_abandon(forest.tree[i]);
        if (i != left) {
            dn_close(forest.port[i]);
        }
    }
}

/** As fell_after(); the last rank has left. */
static void fell(void)
{
    fell_after(forest.ranks - 1);
}

static void fold_sum(const dn_tree_reduction_t *reduction, const void *in, void *inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

static const dn_tree_reduction_t sum = {fold_sum, .size = sizeof(uint64_t)};

/** Two lines of each, in one group. */
static void a_root_that_is_late_has_what_was_sent(void **state)
{
    enum { COUNT = DN_AOTF_LINE_MAX / 8 + 1 };
    uint64_t in[COUNT], out[COUNT];

    plant(3, 3);
    for (unsigned i = 0; i < COUNT; i++) {
        in[i] = i;
    }
    assert_int_equal(dn_tree_reduce(forest.tree[0], 0, in, out, COUNT, &sum), DN_INPROGRESS);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_equal(dn_tree_reduce(forest.tree[1], 0, in, NULL, COUNT, &sum), DN_OK);
    assert_int_equal(dn_tree_needs(forest.tree[1], 0), 0);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_INPROGRESS);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_equal(dn_tree_reduce(forest.tree[2], 0, in, NULL, COUNT, &sum), DN_OK);
    dn_close(forest.port[2]);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_OK);
    assert_int_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_equal(dn_tree_needs(forest.tree[0], 2), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(out[i], 3 * i);
    }
    fell();
}

/** Lines that have come are not needed any more, also where those that are used before them are missing. */
static void who_has_sent_its_lines_is_not_needed(void **state)
{
    uint64_t one = 1;
    uint64_t out;

    for (uint32_t left = 1; left < 3; left++) {
        const uint32_t late = 3 - left;
        plant(3, 3);
        assert_int_equal(dn_tree_reduce(forest.tree[left], 0, &one, NULL, 1, &sum), DN_OK);
        dn_close(forest.port[left]);
        assert_int_equal(dn_tree_reduce(forest.tree[0], 0, &one, &out, 1, &sum), DN_INPROGRESS);
        assert_int_equal(dn_tree_needs(forest.tree[0], left), 0);
        assert_int_not_equal(dn_tree_needs(forest.tree[0], late), 0);
        assert_int_equal(dn_tree_reduce(forest.tree[late], 0, &one, NULL, 1, &sum), DN_OK);
        assert_int_equal(dn_tree_test(forest.tree[0]), DN_OK);
        assert_int_equal(out, 3);
        fell_after(left);
    }
}

/** Two groups of two. The line of the other group is there, the line of the own group is not. */
static void who_has_sent_for_a_later_step_is_not_needed(void **state)
{
    uint64_t one = 1;
    uint64_t out;

    plant(4, 2);
    assert_int_equal(dn_tree_reduce(forest.tree[3], 0, &one, NULL, 1, &sum), DN_OK);
    assert_int_equal(dn_tree_reduce(forest.tree[2], 0, &one, NULL, 1, &sum), DN_OK);
    dn_close(forest.port[2]);
    assert_int_equal(dn_tree_reduce(forest.tree[0], 0, &one, &out, 1, &sum), DN_INPROGRESS);
    assert_int_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_equal(dn_tree_reduce(forest.tree[1], 0, &one, NULL, 1, &sum), DN_OK);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_OK);
    assert_int_equal(out, 4);
    fell_after(2);
}

/** There was room for one of two lines: the other one is needed. */
static void who_has_sent_half_of_its_lines_is_needed(void **state)
{
    enum { COUNT = DN_AOTF_LINE_MAX / 8 + 1 };
    uint64_t in[COUNT] = {0};
    uint64_t out[COUNT];
    unsigned ahead = 0;

    plant(3, 3);
    const uint32_t depth = forest.tree[1]->group[0].depth;
    for (; ahead < depth - 1; ahead++) {
        assert_int_equal(dn_tree_reduce(forest.tree[1], 0, in, NULL, 1, &sum), DN_OK);
        assert_int_equal(dn_tree_reduce(forest.tree[2], 0, in, NULL, 1, &sum), DN_OK);
    }
    assert_int_equal(dn_tree_reduce(forest.tree[1], 0, in, NULL, COUNT, &sum), DN_INPROGRESS);
    for (; 0 < ahead; ahead--) {
        assert_int_equal(dn_tree_reduce(forest.tree[0], 0, in, out, 1, &sum), DN_OK);
    }
    assert_int_equal(dn_tree_reduce(forest.tree[0], 0, in, out, COUNT, &sum), DN_INPROGRESS);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_equal(dn_tree_test(forest.tree[1]), DN_OK);
    assert_int_equal(dn_tree_needs(forest.tree[0], 1), 0);
    dn_close(forest.port[2]);
    fell();
}

/** Ranks 0, 2 and 4 exchange for three groups. Rank 4 waits for rank 6. */
static void who_has_sent_its_blocks_is_not_needed(void **state)
{
    enum { RANKS = 7, LAST = RANKS - 1 };
    uint64_t out[RANKS];

    plant(RANKS, 3);
    for (uint64_t i = 0; i < LAST; i++) {
        assert_int_equal(dn_tree_allgather(forest.tree[i], &i, out, sizeof(i)), DN_INPROGRESS);
    }
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_equal(dn_tree_test(forest.tree[2]), DN_INPROGRESS);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_INPROGRESS);
    assert_int_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 4), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[4], LAST), 0);
    dn_close(forest.port[LAST]);
    fell();
}

/** So many that the one who takes them has to say so to the root, which is gone. */
static void a_root_that_has_left_needs_no_credit(void **state)
{
    uint64_t word = 4711;

    plant(2, 2);
    for (unsigned i = 0; i < DEPTH; i++) {
        assert_int_equal(dn_tree_bcast(forest.tree[1], 1, &word, sizeof(word)), DN_OK);
    }
    dn_close(forest.port[1]);
    for (unsigned i = 0; i < DEPTH; i++) {
        word = 0;
        assert_int_equal(dn_tree_bcast(forest.tree[0], 1, &word, sizeof(word)), DN_OK);
        assert_int_equal(word, 4711);
    }
    fell();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_is_late_has_what_was_sent),
        cmocka_unit_test(who_has_sent_its_lines_is_not_needed),
        cmocka_unit_test(who_has_sent_for_a_later_step_is_not_needed),
        cmocka_unit_test(who_has_sent_half_of_its_lines_is_needed),
        cmocka_unit_test(who_has_sent_its_blocks_is_not_needed),
        cmocka_unit_test(a_root_that_has_left_needs_no_credit),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
