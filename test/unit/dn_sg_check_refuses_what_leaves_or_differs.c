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
    const dn_sg_t sg = {.block = block, .count = count};
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

/** A use of two instances, 100 apart: 8 bytes from 40 below its origin, 4 bytes from 30 above it. */
static void uses_of_programs(void **state)
{
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, -40, 8, 1, 0}, {DN_PROG_RUN, 0, 30, 4, 1, 0}};
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(op, 2, &prog), DN_OK);
    dn_prog_use_t use = {prog, 2, 100};
    const dn_sg_t sg = {.use = &use};
    assert_int_equal(dn_sg_check(&sg, 40, 24, 174), DN_OK);
    assert_int_equal(dn_sg_check(&sg, 39, 24, 174), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(&sg, 0, 24, UINT64_MAX), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(&sg, 41, 24, 174), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(&sg, UINT64_MAX - 134, 24, UINT64_MAX), DN_OK);
    assert_int_equal(dn_sg_check(&sg, UINT64_MAX - 133, 24, UINT64_MAX), DN_ERR_RANGE);
    assert_int_equal(dn_sg_check(&sg, 40, 23, 174), DN_ERR_PARAM);
    assert_int_equal(dn_sg_check(&sg, 40, 12, 174), DN_ERR_PARAM);
    assert_int_equal(dn_sg_blocks(&sg), 4);
    use.extent = INT64_MAX;
    assert_int_equal(dn_sg_check(&sg, 40, 24, UINT64_MAX), DN_ERR_PARAM);
    use.extent = -100;
    assert_int_equal(dn_sg_check(&sg, 140, 24, 174), DN_OK);
    assert_int_equal(dn_sg_check(&sg, 139, 24, 174), DN_ERR_RANGE);
    use.count = UINT64_MAX;
    assert_int_equal(dn_sg_check(&sg, 140, 24, 174), DN_ERR_PARAM);
    use.count = 0;
    assert_int_equal(dn_sg_check(&sg, 174, 0, 174), DN_OK);
    assert_int_equal(dn_sg_check(&sg, 175, 0, 174), DN_ERR_RANGE);
    dn_prog_free(prog);
}

static void numbers_of_blocks(void **state)
{
    const dn_block_t block[] = {{0, 10}, {20, 0}};
    const dn_sg_t sg = {.block = block, .count = 2};

    assert_int_equal(dn_sg_blocks(NULL), 1);
    assert_int_equal(dn_sg_blocks(&sg), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_sides), cmocka_unit_test(blocks_that_fit),
        cmocka_unit_test(sums_that_differ), cmocka_unit_test(blocks_that_leave),
        cmocka_unit_test(uses_of_programs), cmocka_unit_test(numbers_of_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
