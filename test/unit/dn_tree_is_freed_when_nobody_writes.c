/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A tree is freed once no peer can write into its LLCM any more, and not before: a broadcast's root that has run ahead has
 * to wait, and what lies there after it was freed stays as it is. The LLCM of a tree that is abandoned stays taken.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

enum { DEPTH = 8, PIECE = 64 };

static forest_t forest;

/** The root of some broadcasts, of which the other has not heard yet. @return what dn_tree_free() says. */
static dn_status_t free_after(unsigned broadcasts)
{
    uint64_t word = 4711;

    forest.config = (dn_tree_config_t){.radix = 2, .depth = DEPTH};
    forest_plant(&forest);
    for (unsigned i = 0; i < broadcasts; i++) {
        assert_int_equal(dn_tree_bcast(forest.tree[0], 0, &word, sizeof(word)), DN_OK);
    }
    return dn_tree_free(forest.tree[0]);
}

static void hear(unsigned broadcasts)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < broadcasts; i++) {
        word = 0;
        assert_int_equal(dn_tree_bcast(forest.tree[1], 0, &word, sizeof(word)), DN_OK);
        assert_int_equal(word, 4711);
    }
}

static void who_is_ahead_waits(void **state)
{
    for (unsigned broadcasts = 0; broadcasts <= DEPTH; broadcasts++) {
        dn_status_t status = free_after(broadcasts);
        assert_int_equal(status, broadcasts < DEPTH / 2 ? DN_OK : DN_INPROGRESS);
        hear(broadcasts);
        if (DN_INPROGRESS == status) {
            assert_int_equal(dn_tree_free(forest.tree[0]), DN_OK);
        }
        assert_int_equal(dn_tree_free(forest.tree[1]), DN_OK);
    }
}

static void a_full_link_takes_no_more(void **state)
{
    uint64_t word = 4711;

    assert_int_equal(free_after(DEPTH), DN_INPROGRESS);
    assert_int_equal(dn_tree_bcast(forest.tree[0], 0, &word, sizeof(word)), DN_INPROGRESS);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_INPROGRESS);
    hear(1);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_INPROGRESS);
    hear(DEPTH / 2);
    assert_int_equal(dn_tree_test(forest.tree[0]), DN_OK);
    hear(DEPTH / 2);
    forest_fell(&forest);
}

/** Whatever was done, and however much of it the other has still to hear of. */
static void freed_memory_is_left_alone(void **state)
{
    uint64_t random = 5;

    for (int round = 0; round < 2000; round++) {
        uint8_t mark[2 * DEPTH * PIECE];
        uint64_t word = 4711;
        uint64_t off;
        void *mem;

        forest.config = (dn_tree_config_t){.radix = 2, .depth = DEPTH};
        forest_plant(&forest);
        for (uint64_t n = dn_test_below(&random, 6); 0 < n; n--) {
            assert_int_equal(dn_tree_barrier(forest.tree[1]), DN_INPROGRESS);
            assert_int_equal(dn_tree_barrier(forest.tree[0]), DN_OK);
            assert_int_equal(dn_tree_test(forest.tree[1]), DN_OK);
        }
        /* That the line of the last barrier was taken is not known yet. */
        const unsigned ahead = (unsigned) dn_test_below(&random, DEPTH);
        for (unsigned i = 0; i < ahead; i++) {
            assert_int_equal(dn_tree_bcast(forest.tree[0], 0, &word, sizeof(word)), DN_OK);
        }
        const unsigned heard = (unsigned) dn_test_below(&random, ahead + 1);
        hear(heard);
        const dn_status_t status = dn_tree_free(forest.tree[0]);
        if (DN_OK == status) {
            /* The same piece of LLCM again, in other hands. */
            assert_int_equal(dn_llcm_alloc(forest.port[0], sizeof(mark), &off, &mem), DN_OK);
            memset(mem, 0x5a, sizeof(mark));
        }
        hear(ahead - heard);
        if (DN_OK == status) {
            memset(mark, 0x5a, sizeof(mark));
            assert_memory_equal(mem, mark, sizeof(mark));
            dn_llcm_free(forest.port[0], off, sizeof(mark));
        } else {
            assert_int_equal(dn_tree_free(forest.tree[0]), DN_OK);
        }
        assert_int_equal(dn_tree_free(forest.tree[1]), DN_OK);
    }
}

static void abandoned_memory_stays_taken(void **state)
{
    const size_t before = dn_llcm_taken(forest.port[0]);

    assert_int_equal(free_after(DEPTH), DN_INPROGRESS);
    const size_t taken = dn_llcm_taken(forest.port[0]);
    assert_true(before < taken);
    dn_tree_abandon(forest.tree[0]);
    assert_int_equal(dn_llcm_taken(forest.port[0]), taken);
    assert_int_equal(dn_tree_free(forest.tree[1]), DN_OK);
    assert_int_equal(dn_llcm_taken(forest.port[1]), before);
}

static int setup(void **state)
{
    dn_unit_setup(state);
    forest_open(&forest, 2);
    return 0;
}

static int teardown(void **state)
{
    forest_close(&forest);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_ahead_waits),
        cmocka_unit_test(a_full_link_takes_no_more),
        cmocka_unit_test(freed_memory_is_left_alone),
        cmocka_unit_test(abandoned_memory_stays_taken),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
