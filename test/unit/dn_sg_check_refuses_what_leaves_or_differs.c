/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * dn_sg_check lets pass exactly the sides that add up and stay inside, at the edges of 64 bits too.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_sg.h"

static dn_status_t check(const dn_block_t *block, size_t count, uint64_t base, uint64_t len, uint64_t limit)
{
    const dn_sg_t sg = {block, count};
    return dn_sg_check(&sg, base, len, limit);
}

static void contiguous_sides(void **state)
{
    assert_int_equal(dn_sg_check(NULL, 0, 0, 0), DN_OK);
    assert_int_equal(dn_sg_check(NULL, 0, 100, 100), DN_OK);
    assert_int_equal(dn_sg_check(NULL, 100, 0, 100), DN_OK);
    assert_int_equal(dn_sg_check(NULL, 0, 101, 100), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, 1, 100, 100), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, 101, 0, 100), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, UINT64_MAX, 2, 100), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, 2, UINT64_MAX, 100), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, UINT64_MAX, UINT64_MAX, UINT64_MAX), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(NULL, 1, UINT64_MAX - 1, UINT64_MAX), DN_OK);
}

static void blocks_that_fit(void **state)
{
    const dn_block_t block[] = {{90, 10}, {0, 0}, {0, 30}, {100, 0}, {40, 1}};

    assert_int_equal(check(block, 5, 0, 41, 100), DN_OK);
    assert_int_equal(check(block, 5, 900, 41, 1000), DN_OK);
    assert_int_equal(check(block, 0, 7, 0, 100), DN_OK);
    assert_int_equal(check(NULL, 0, 0, 0, 0), DN_OK);
}

static void sums_that_differ(void **state)
{
    const dn_block_t block[] = {{0, 10}, {20, 10}};
    const dn_block_t wraps[] = {{0, UINT64_MAX}, {0, UINT64_MAX}, {0, 12}};

    assert_int_equal(check(block, 2, 0, 21, 100), DN_ERR_PARAM);
    assert_int_equal(check(block, 2, 0, 19, 100), DN_ERR_PARAM);
    assert_int_equal(check(block, 2, 0, 0, 100), DN_ERR_PARAM);
    assert_int_equal(check(NULL, 0, 0, 1, 100), DN_ERR_PARAM);
    assert_int_equal(check(wraps, 3, 0, 10, UINT64_MAX), DN_ERR_PARAM);
}

static void blocks_that_leave(void **state)
{
    const dn_block_t end[] = {{0, 10}, {91, 10}};
    const dn_block_t empty[] = {{0, 10}, {101, 0}};
    const dn_block_t wraps[] = {{UINT64_MAX - 4, 10}};

    assert_int_equal(check(end, 2, 0, 20, 100), DN_ERR_RANGE);
    assert_int_equal(check(end, 2, 0, 20, 101), DN_OK);
    assert_int_equal(check(end, 2, 1, 20, 101), DN_ERR_RANGE);
    assert_int_equal(check(empty, 2, 0, 10, 100), DN_ERR_RANGE);
    assert_int_equal(check(wraps, 1, 0, 10, UINT64_MAX), DN_ERR_RANGE);
    assert_int_equal(check(wraps, 1, 5, 10, UINT64_MAX), DN_ERR_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_sides),
        cmocka_unit_test(blocks_that_fit),
        cmocka_unit_test(sums_that_differ),
        cmocka_unit_test(blocks_that_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
