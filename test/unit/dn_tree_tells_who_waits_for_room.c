/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Who has given a tree up tells the members that wait for room for their lines: they would wait for ever, as it takes no more lines. Members
 * that may have left are not told: their LLCM may be in other hands.
 */
#include "dn_config.h"

#include "dn_tree_forest.h"

enum { DEPTH = 8 };

static forest_t forest;

/** Where lines are counted from. */
static uint32_t first_line;

static void plant(uint32_t ranks, uint32_t radix)
{
    forest_open_at(&forest, ranks, first_line);
    forest.config = (dn_tree_config_t){.radix = radix, .depth = DEPTH};
    forest_plant(&forest);
}

/** The last rank is lost; the others go. */
static void fell(void)
{
    for (uint32_t i = 0; i < forest.ranks; i++) {
        dn_tree_abandon(forest.tree[i]);
    }
    forest.ranks--;
    forest_close(&forest);
}

static void fold_first(const dn_tree_reduction_t *reduction, const void *in, void *inout, size_t count)
{
    memcpy(inout, in, count * reduction->size);
}

static const dn_tree_reduction_t first = {fold_first, .size = sizeof(uint64_t)};

static uint64_t word;

/** Reduce to rank 0. */
static dn_status_t reduce(uint32_t rank)
{
    return dn_tree_reduce(forest.tree[rank], 0, &word, &word, 1, &first);
}

static dn_status_t bcast(uint32_t rank)
{
    return dn_tree_bcast(forest.tree[rank], 0, &word, sizeof(word));
}

/** Send from rank 1 to rank 0 until there is no room. */
static void fill(void)
{
    dn_status_t status;

    do {
        status = reduce(1);
    } while (DN_OK == status);
    assert_int_equal(status, DN_INPROGRESS);
}

static void has_failed(uint32_t rank)
{
    assert_int_not_equal(dn_tree_heed(forest.tree[rank]), 0);
    assert_int_equal(dn_tree_test(forest.tree[rank]), DN_ERR_UNREACH);
}

/** Rank 2 is lost. Rank 0 waits for its line, and rank 1 for room at rank 0. */
static void who_waits_already_is_told_at_once(void **state)
{
    plant(3, 3);
    fill();
    assert_int_equal(reduce(0), DN_INPROGRESS);
    dn_close(forest.port[2]);
    assert_int_equal(dn_tree_heed(forest.tree[1]), 0);
    dn_tree_give_up(forest.tree[0]);
    has_failed(1);
    fell();
}

static void who_waits_later_is_told_by_the_next_call(void **state)
{
    plant(3, 3);
    assert_int_equal(reduce(0), DN_INPROGRESS);
    dn_close(forest.port[2]);
    dn_tree_give_up(forest.tree[0]);
    fill();
    assert_int_equal(dn_tree_heed(forest.tree[1]), 0);
    assert_int_equal(reduce(0), DN_ERR_UNREACH);
    has_failed(1);
    fell();
}

static void who_waits_later_is_told_without_a_call(void **state)
{
    plant(3, 3);
    assert_int_equal(reduce(0), DN_INPROGRESS);
    dn_close(forest.port[2]);
    dn_tree_give_up(forest.tree[0]);
    fill();
    dn_tree_warn(forest.tree[0]);
    has_failed(1);
    fell();
}

/** Two groups of two. Rank 3 is lost. Rank 2 waits for room there, the root for room at rank 2, and rank 1 for the root. */
static void a_root_of_broadcasts_is_told(void **state)
{
    plant(4, 2);
    do {
        assert_int_equal(bcast(0), DN_OK);
        assert_int_equal(bcast(1), DN_OK);
    } while (DN_OK == bcast(2));
    dn_close(forest.port[3]);
    dn_tree_give_up(forest.tree[2]);
    while (DN_OK == bcast(0)) {
        assert_int_equal(bcast(1), DN_OK);
    }
    assert_int_equal(bcast(1), DN_OK);
    assert_int_equal(bcast(1), DN_INPROGRESS);
    assert_int_equal(dn_tree_heed(forest.tree[0]), 0);
    dn_tree_warn(forest.tree[2]);
    has_failed(0);
    assert_int_equal(bcast(0), DN_ERR_UNREACH);
    has_failed(1);
    fell();
}

/** Ranks 0 and 1 are a group of two, as are ranks 2 and 3. The root takes some of the lines that rank 1 sends, and gives up. Rank 1 is told if it cannot leave, and only then. */
static void give_up_after(unsigned sent, unsigned taken)
{
    size_t bytes;
    uint64_t off;
    void *mem;

    plant(4, 2);
    forest.config.rank = 1;
    assert_int_equal(dn_tree_llcm_bytes(&forest.config, &bytes), DN_OK);
    uint8_t mark[bytes];
    for (unsigned i = 0; i < sent; i++) {
        assert_int_equal(reduce(1), DN_OK);
    }
    for (unsigned i = 0; i < taken; i++) {
        assert_int_equal(reduce(3), DN_OK);
        assert_int_equal(reduce(2), DN_OK);
        assert_int_equal(reduce(0), DN_OK);
    }
    dn_close(forest.port[2]);
    assert_int_equal(reduce(0), DN_INPROGRESS);
    const dn_status_t status = dn_tree_free(forest.tree[1]);
    if (DN_OK == status) {
        /* The same piece of LLCM again, in other hands. */
        assert_int_equal(dn_llcm_alloc(forest.port[1], bytes, &off, &mem), DN_OK);
        memset(mem, 0x5a, bytes);
    }
    dn_tree_give_up(forest.tree[0]);
    dn_tree_warn(forest.tree[0]);
    if (DN_OK == status) {
        memset(mark, 0x5a, bytes);
        assert_memory_equal(mem, mark, bytes);
    } else {
        assert_int_equal(status, DN_INPROGRESS);
        has_failed(1);
        dn_tree_abandon(forest.tree[1]);
    }
    for (uint32_t i = 0; i < forest.ranks; i++) {
        if (1 != i) {
            dn_tree_abandon(forest.tree[i]);
        }
        if (2 != i) {
            dn_close(forest.port[i]);
        }
    }
}

static void who_may_have_left_is_not_told(void **state)
{
    for (unsigned sent = 0; sent <= DEPTH; sent++) {
        for (unsigned taken = 0; taken <= sent; taken++) {
            give_up_after(sent, taken);
        }
    }
}

/** The numbers of lines pass 2^32. */
static void who_waits_is_told_when_numbers_wrap(void **state)
{
    first_line = UINT32_MAX - DEPTH / 2;
    who_waits_later_is_told_without_a_call(state);
    a_root_of_broadcasts_is_told(state);
    who_may_have_left_is_not_told(state);
    first_line = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_already_is_told_at_once),
        cmocka_unit_test(who_waits_later_is_told_by_the_next_call),
        cmocka_unit_test(who_waits_later_is_told_without_a_call),
        cmocka_unit_test(a_root_of_broadcasts_is_told),
        cmocka_unit_test(who_may_have_left_is_not_told),
        cmocka_unit_test(who_waits_is_told_when_numbers_wrap),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
