/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A rank that has done its part may close its port: the others do without it, and know whom they still need.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

enum { DEPTH = 8 };

static forest_t forest;

static void plant(uint32_t ranks, uint32_t radix)
{
    forest_open(&forest, ranks);
    forest.config = (dn_tree_config_t){.radix = radix, .depth = DEPTH};
    forest_plant(&forest);
}

/** The last rank has left; the others go. */
static void fell(void)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        dn_tree_abandon(forest.tree[i]);
    }
    forest.ranks--;
    forest_close(&forest);
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

/** Of the lines of a step, those that have come are not needed any more. */
static void who_has_sent_its_lines_is_not_needed(void **state)
{
    uint64_t one = 1;
    uint64_t out;

    plant(3, 3);
    assert_int_equal(dn_tree_reduce(forest.tree[2], 0, &one, NULL, 1, &sum), DN_OK);
    dn_close(forest.port[2]);
    assert_int_equal(dn_tree_reduce(forest.tree[0], 0, &one, &out, 1, &sum), DN_INPROGRESS);
    assert_int_equal(dn_tree_needs(forest.tree[0], 2), 0);
    assert_int_not_equal(dn_tree_needs(forest.tree[0], 1), 0);
    assert_int_equal(dn_tree_reduce(forest.tree[1], 0, &one, NULL, 1, &sum), DN_OK);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_OK);
    assert_int_equal(out, 3);
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
        cmocka_unit_test(a_root_that_has_left_needs_no_credit),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
