/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Programs and uses that are malformed, or leave 64 bits anywhere, are refused; the last ones that do not are
 * taken, with exact bounds. dn_prog_check lets pass exactly the uses that add up and stay inside.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog.h"

static dn_status_t create(const dn_prog_op_t *ops, size_t n)
{
    dn_prog_t *const untouched = (dn_prog_t *) &create;
    dn_prog_t *prog = untouched;
    const dn_status_t status = dn_prog_create(ops, n, &prog);

    if (DN_OK == status) {
        dn_prog_free(prog);
    } else {
        assert_ptr_equal(prog, untouched);
    }
    return status;
}

static dn_status_t create_run(int64_t at, uint64_t len, uint64_t count, int64_t stride)
{
    const dn_prog_op_t op = {DN_PROG_RUN, 0, at, len, count, stride};
    return create(&op, 1);
}

/** The sizes and bounds of one op, and that its walk starts and ends where they say. */
static void expect_run(int64_t at, uint64_t len, uint64_t count, int64_t stride, int64_t low, int64_t high)
{
    const dn_prog_op_t op = {DN_PROG_RUN, 0, at, len, count, stride};
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t cursor;
    uint64_t where = 0;

    assert_int_equal(dn_prog_create(&op, 1, &prog), DN_OK);
    const dn_prog_info_t *info = dn_prog_info(prog);
    assert_int_equal(info->size, len * count);
    assert_int_equal(info->low, low);
    assert_int_equal(info->high, high);
    dn_prog_start(&cursor, &(dn_prog_use_t){prog, 1, 0}, UINT64_C(1) << 63);
    assert_true(0 != dn_prog_next(&cursor, 1, &where));
    assert_int_equal(where, (UINT64_C(1) << 63) + (uint64_t) at);
    dn_prog_seek(&cursor, len * count - 1);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &where), 1);
    assert_int_equal(where, (UINT64_C(1) << 63) + (uint64_t) at + (count - 1) * (uint64_t) stride + len - 1);
    dn_prog_free(prog);
}

static void malformed_ops(void **state)
{
    const dn_prog_op_t kind[] = {
        {0, 0, 0, 1, 1, 0}, {DN_PROG_LIST, 0, 0, 1, 1, 0}, {4, 0, 0, 1, 1, 0}, {UINT32_MAX, 0, 0, 1, 1, 0}};
    const dn_prog_op_t run_holds[] = {{DN_PROG_RUN, 1, 0, 1, 1, 0}, {DN_PROG_RUN, 0, 8, 1, 1, 0}};
    const dn_prog_op_t too_long[] = {{DN_PROG_LOOP, 2, 0, 0, 2, 8}, {DN_PROG_RUN, 0, 8, 1, 1, 0}};
    const dn_prog_op_t far_too_long[] = {{DN_PROG_LOOP, UINT32_MAX, 0, 0, 2, 8},
                                         {DN_PROG_RUN, 0, 8, 1, 1, 0}};
    const dn_prog_op_t crosses[] = {{DN_PROG_LOOP, 2, 0, 0, 2, 8},
                                    {DN_PROG_LOOP, 2, 0, 0, 2, 8},
                                    {DN_PROG_RUN, 0, 8, 1, 1, 0},
                                    {DN_PROG_RUN, 0, 8, 1, 1, 0}};

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(create(&kind[i], 1), DN_ERR_PARAM);
    }
    assert_int_equal(create(run_holds, 2), DN_ERR_PARAM);
    assert_int_equal(create(too_long, 2), DN_ERR_PARAM);
    assert_int_equal(create(far_too_long, 2), DN_ERR_PARAM);
    assert_int_equal(create(crosses, 4), DN_ERR_PARAM);
    assert_int_equal(create(crosses, SIZE_MAX), DN_ERR_PARAM);
}

static void places_beyond_64_bits(void **state)
{
    assert_int_equal(create_run(INT64_MAX, 1, 1, 0), DN_ERR_RANGE);
    expect_run(INT64_MAX - 1, 1, 1, 0, INT64_MAX - 1, INT64_MAX);
    expect_run(INT64_MIN, 1, 1, 0, INT64_MIN, INT64_MIN + 1);
    assert_int_equal(create_run(0, UINT64_C(1) << 63, 1, 0), DN_ERR_RANGE);
    expect_run(0, INT64_MAX, 1, 0, 0, INT64_MAX);
    expect_run(INT64_MIN, UINT64_MAX, 1, 0, INT64_MIN, INT64_MAX);
    assert_int_equal(create_run(INT64_MIN + 1, UINT64_MAX, 1, 0), DN_ERR_RANGE);
    expect_run(0, 1, 2, INT64_MIN, INT64_MIN, 1);
    assert_int_equal(create_run(-1, 1, 2, INT64_MIN), DN_ERR_RANGE);
    assert_int_equal(create_run(0, 1, 3, INT64_MIN), DN_ERR_RANGE);
    expect_run(0, 1, 2, INT64_MAX - 1, 0, INT64_MAX);
    assert_int_equal(create_run(0, 1, 2, INT64_MAX), DN_ERR_RANGE);
    expect_run(INT64_MIN, 1, 3, INT64_MAX, INT64_MIN, INT64_MAX);
    assert_int_equal(create_run(INT64_MIN, 2, 3, INT64_MAX), DN_ERR_RANGE);
    expect_run(5, 1, UINT64_MAX, 0, 5, 6);
    assert_int_equal(create_run(5, 1, UINT64_MAX, 1), DN_ERR_RANGE);
}

static void sizes_beyond_64_bits(void **state)
{
    expect_run(0, UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, 1, 0, (INT64_C(1) << 33) - 2);
    assert_int_equal(create_run(0, UINT64_C(1) << 32, UINT64_C(1) << 32, 1), DN_ERR_RANGE);

    const dn_prog_op_t loops[] = {{DN_PROG_LOOP, 2, 0, 0, UINT64_C(1) << 40, 1},
                                  {DN_PROG_LOOP, 1, 0, 0, UINT64_C(1) << 23, 3},
                                  {DN_PROG_RUN, 0, 0, 1, 2, 7}};
    assert_int_equal(create(loops, 3), DN_ERR_RANGE);
    assert_int_equal(create(loops + 1, 2), DN_OK);
    const dn_prog_op_t sum[] = {{DN_PROG_RUN, 0, 0, 1, UINT64_C(1) << 63, 0},
                                {DN_PROG_RUN, 0, 1, 2, UINT64_C(1) << 62, 0}};
    assert_int_equal(create(sum, 2), DN_ERR_RANGE);
    assert_int_equal(create(sum, 1), DN_OK);
    const dn_prog_op_t row[] = {{DN_PROG_RUN, 0, 1, 1, 1, 0}, {DN_PROG_RUN, 0, 1, 1, UINT64_MAX, 0}};
    assert_int_equal(create(row, 2), DN_ERR_RANGE);
    assert_int_equal(create(row + 1, 1), DN_OK);
    const dn_prog_op_t wraps[] = {{DN_PROG_LOOP, 1, 0, 0, UINT64_C(1) << 32, 0},
                                  {DN_PROG_RUN, 0, 0, 1, UINT64_C(1) << 32, 0}};
    assert_int_equal(create(wraps, 2), DN_ERR_RANGE);
}

/** Only the place of a byte counts: parts of it may leave 64 bits. */
static void sums_that_come_back(void **state)
{
    const dn_prog_op_t back[] = {{DN_PROG_LOOP, 2, INT64_MAX, 0, 1, 9},
                                 {DN_PROG_LOOP, 1, INT64_MAX, 0, 1, 9},
                                 {DN_PROG_RUN, 0, INT64_MIN, 4, 1, 0}};
    const dn_prog_op_t away[] = {
        {DN_PROG_LOOP, 2, INT64_MAX, 0, 1, 9}, {DN_PROG_LOOP, 1, 2, 0, 1, 9}, {DN_PROG_RUN, 0, -1, 4, 1, 0}};
    const dn_prog_op_t hole[] = {{DN_PROG_RUN, 0, INT64_MIN, 4, 1, 0},
                                 {DN_PROG_RUN, 0, INT64_MAX - 4, 4, 1, 0}};

    assert_int_equal(create(back, 3), DN_ERR_RANGE);
    assert_int_equal(create(back + 1, 2), DN_OK);
    assert_int_equal(create(away, 3), DN_ERR_RANGE);
    assert_int_equal(create(hole, 2), DN_OK);
}

static void depths(void **state)
{
    dn_prog_op_t ops[DN_PROG_NEST_MAX + 2];
    int64_t stride = 1000;

    /* Loops that vanish count as they were given. */
    for (uint32_t i = 0; i <= DN_PROG_NEST_MAX + 1; i++) {
        ops[i] = (dn_prog_op_t){DN_PROG_LOOP, DN_PROG_NEST_MAX + 1 - i, 1, 0, 1, 0};
    }
    ops[DN_PROG_NEST_MAX + 1] = (dn_prog_op_t){DN_PROG_RUN, 0, 0, 4, 1, 0};
    assert_int_equal(create(ops, DN_PROG_NEST_MAX + 2), DN_ERR_UNSUPPORTED);
    assert_int_equal(create(ops + 1, DN_PROG_NEST_MAX + 1), DN_OK);
    /* Loops that stay count in the normal form: the innermost becomes a RUN. */
    for (uint32_t i = DN_PROG_DEPTH_MAX + 2; 0 < i--;) {
        ops[i] = (dn_prog_op_t){DN_PROG_LOOP, DN_PROG_DEPTH_MAX + 2 - i, 0, 0, 2, stride};
        stride = 3 * stride + 1;
    }
    ops[DN_PROG_DEPTH_MAX + 2] = (dn_prog_op_t){DN_PROG_RUN, 0, 0, 4, 1, 0};
    assert_int_equal(create(ops, DN_PROG_DEPTH_MAX + 3), DN_ERR_UNSUPPORTED);
    dn_prog_t *prog = NULL;
    assert_int_equal(dn_prog_create(ops + 1, DN_PROG_DEPTH_MAX + 2, &prog), DN_OK);
    assert_int_equal(dn_prog_info(prog)->depth, DN_PROG_DEPTH_MAX);
    assert_int_equal(dn_prog_info(prog)->size, UINT64_C(4) << (DN_PROG_DEPTH_MAX + 1));

    /* Every byte of the deepest program, by next and by seek. */
    dn_prog_cursor_t cursor, there;
    dn_prog_start(&cursor, &(dn_prog_use_t){prog, 1, 0}, 0);
    for (uint64_t i = 0; i < dn_prog_info(prog)->size; i++) {
        uint64_t at = 0, at_there = 1, wanted = i % 4;
        assert_int_equal(dn_prog_next(&cursor, 1, &at), 1);
        for (uint32_t k = 1; k <= DN_PROG_DEPTH_MAX + 1; k++) {
            wanted += 0 != ((i / 4) >> (DN_PROG_DEPTH_MAX + 1 - k) & 1) ? (uint64_t) ops[k].stride : 0;
        }
        assert_int_equal(at, wanted);
        if (0 == i % 61) {
            dn_prog_start(&there, &(dn_prog_use_t){prog, 1, 0}, 0);
            dn_prog_seek(&there, i);
            assert_int_equal(dn_prog_next(&there, 1, &at_there), 1);
            assert_int_equal(at_there, wanted);
        }
    }
    dn_prog_free(prog);
}

static void uses(void **state)
{
    const dn_prog_op_t ops[] = {{DN_PROG_RUN, 0, -10, 4, 1, 0}, {DN_PROG_RUN, 0, 20, 6, 1, 0}};
    dn_prog_t *prog = NULL;
    dn_prog_span_t span = {1, 2, 3};

    assert_int_equal(dn_prog_create(ops, 2, &prog), DN_OK);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 3, 100}, &span), DN_OK);
    assert_true(30 == span.size && -10 == span.low && 226 == span.high);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 3, -100}, &span), DN_OK);
    assert_true(30 == span.size && -210 == span.low && 26 == span.high);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 1, INT64_MIN}, &span), DN_OK);
    assert_true(10 == span.size && -10 == span.low && 26 == span.high);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 0, INT64_MIN}, &span), DN_OK);
    assert_true(0 == span.size && 0 == span.low && 0 == span.high);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, UINT64_MAX / 10, 0}, &span), DN_OK);
    span.size = 77;
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, UINT64_MAX / 10 + 1, 0}, &span), DN_ERR_RANGE);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 2, INT64_MAX}, &span), DN_ERR_RANGE);
    assert_int_equal(dn_prog_span(&(dn_prog_use_t){prog, 2, INT64_MIN}, &span), DN_ERR_RANGE);
    assert_int_equal(span.size, 77);

    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 10, 30, 236), DN_OK);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 10, 30, 235), DN_ERR_RANGE);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 9, 30, 236), DN_ERR_RANGE);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 11, 30, 236), DN_ERR_RANGE);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 10, 29, 236), DN_ERR_PARAM);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, 10, 31, 236), DN_ERR_PARAM);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, UINT64_MAX - 226, 30, UINT64_MAX), DN_OK);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, 100}, UINT64_MAX - 225, 30, UINT64_MAX),
                     DN_ERR_RANGE);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, -100}, 210, 30, 236), DN_OK);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 3, -100}, 209, 30, 236), DN_ERR_RANGE);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 2, INT64_MAX}, 0, 20, UINT64_MAX), DN_ERR_PARAM);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 0, 100}, 10, 0, 10), DN_OK);
    assert_int_equal(dn_prog_check(&(dn_prog_use_t){prog, 0, 100}, 11, 0, 10), DN_ERR_RANGE);
    dn_prog_free(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_ops),
        cmocka_unit_test(places_beyond_64_bits),
        cmocka_unit_test(sizes_beyond_64_bits),
        cmocka_unit_test(sums_that_come_back),
        cmocka_unit_test(depths),
        cmocka_unit_test(uses),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
