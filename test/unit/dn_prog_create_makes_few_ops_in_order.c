/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The normal form of a program has as few ops as its shape allows, and the same bytes in the same order.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog_int.h"
#include "dn_prog_naive.h"

enum { BYTES = 20000 };

#define RUN(at, len, count, stride)            \
    {                                          \
        DN_PROG_RUN, 0, at, len, count, stride \
    }
#define BLOCK(at, len) RUN(at, len, 1, 0)
#define LOOP(inside, at, count, stride)            \
    {                                              \
        DN_PROG_LOOP, inside, at, 0, count, stride \
    }

/** The bytes of an instance, by the walk. */
static void expect_order(const dn_prog_t *prog, const dn_prog_op_t *ops, size_t n)
{
    static int64_t place[BYTES];
    dn_naive_t naive = {place, 0, BYTES};
    const dn_prog_use_t use = {prog, 1, 0};
    dn_prog_cursor_t cursor;
    uint64_t at = 0;

    dn_naive_use(&naive, ops, n, 1, 0);
    assert_in_range(naive.n, 0, BYTES);
    dn_prog_start(&cursor, &use, 0);
    for (size_t i = 0; i < naive.n; i++) {
        assert_int_equal(dn_prog_next(&cursor, 1, &at), 1);
        assert_int_equal((int64_t) at, place[i]);
    }
    assert_int_equal(dn_prog_next(&cursor, 1, &at), 0);
}

/** Compile and say how many ops, loops around each other and blocks there are. */
static void expect_form(const dn_prog_op_t *ops, size_t n, uint32_t wanted, uint32_t depth, uint64_t blocks)
{
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(ops, n, &prog), DN_OK);
    const dn_prog_info_t *info = dn_prog_info(prog);
    assert_int_equal(info->ops, wanted);
    assert_int_equal(info->depth, depth);
    assert_int_equal(info->blocks, blocks);
    expect_order(prog, ops, n);
    dn_prog_free(prog);
}

static void expect_first(const dn_prog_op_t *ops, size_t n, dn_prog_kind_t kind)
{
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(ops, n, &prog), DN_OK);
    assert_int_equal(prog->node[1].op.kind, kind);
    dn_prog_free(prog);
}

#define EXPECT(ops, wanted, depth, blocks) \
    expect_form(ops, sizeof(ops) / sizeof(*(ops)), wanted, depth, blocks)

static void empty_ops_vanish(void **state)
{
    const dn_prog_op_t all[] = {RUN(INT64_MAX, 0, 5, INT64_MIN),
                                RUN(INT64_MIN, 5, 0, INT64_MAX),
                                LOOP(1, 4, 3, 9),
                                RUN(0, 0, 1, 0),
                                LOOP(0, 4, 3, 9),
                                LOOP(2, INT64_MAX, 0, 9),
                                LOOP(1, 1, 1, 1),
                                RUN(1, 1, 1, 1)};
    const dn_prog_op_t some[] = {BLOCK(7, 0), LOOP(2, 5, 1, INT64_MAX), RUN(1, 3, 0, 1), BLOCK(10, 8),
                                 BLOCK(0, 0)};

    expect_form(NULL, 0, 0, 0, 0);
    EXPECT(all, 0, 0, 0);
    EXPECT(some, 1, 0, 1);
}

static void neighbours_become_one(void **state)
{
    const dn_prog_op_t blocks[] = {BLOCK(-8, 4), BLOCK(-4, 4), BLOCK(0, 8), BLOCK(8, 1), BLOCK(9, 7)};
    const dn_prog_op_t backward[] = {BLOCK(4, 4), BLOCK(0, 4)};
    const dn_prog_op_t dense[] = {RUN(3, 5, 20, 5), BLOCK(103, 1)};
    const dn_prog_op_t row[] = {BLOCK(0, 8), BLOCK(24, 8), BLOCK(48, 8), BLOCK(72, 8)};
    const dn_prog_op_t row_back[] = {BLOCK(72, 8), BLOCK(48, 8), BLOCK(24, 8)};
    const dn_prog_op_t rows[] = {RUN(0, 8, 3, 24), RUN(72, 8, 3, 24), BLOCK(144, 8)};
    const dn_prog_op_t before[] = {BLOCK(-24, 8), RUN(0, 8, 3, 24)};
    const dn_prog_op_t apart[] = {RUN(0, 8, 3, 24), RUN(73, 8, 3, 24), RUN(145, 8, 3, 25)};
    const dn_prog_op_t lengths[] = {RUN(0, 8, 3, 24), BLOCK(72, 9)};
    const dn_prog_op_t same[] = {BLOCK(5, 4), BLOCK(5, 4), BLOCK(5, 4)};

    EXPECT(blocks, 1, 0, 1);
    EXPECT(backward, 1, 0, 2);
    EXPECT(dense, 1, 0, 1);
    EXPECT(row, 1, 0, 4);
    EXPECT(row_back, 1, 0, 3);
    EXPECT(rows, 1, 0, 7);
    EXPECT(before, 1, 0, 4);
    EXPECT(apart, 3, 0, 9);
    EXPECT(lengths, 2, 0, 4);
    EXPECT(same, 1, 0, 3);
    expect_first(backward, 2, DN_PROG_RUN);
    expect_first(row, 4, DN_PROG_RUN);
    expect_first(same, 3, DN_PROG_RUN);
}

static void loops_become_runs(void **state)
{
    const dn_prog_op_t one_turn[] = {LOOP(2, 100, 1, 7), BLOCK(0, 4), BLOCK(4, 4), BLOCK(108, 2)};
    const dn_prog_op_t block[] = {LOOP(1, 10, 6, 20), BLOCK(2, 4)};
    const dn_prog_op_t dense[] = {LOOP(1, 10, 6, 4), BLOCK(2, 4)};
    const dn_prog_op_t dense_then_more[] = {BLOCK(8, 4), LOOP(1, 10, 6, 4), BLOCK(2, 4), BLOCK(36, 4)};
    const dn_prog_op_t goes_on[] = {LOOP(1, 0, 6, 60), RUN(0, 4, 3, 20)};
    const dn_prog_op_t goes_back[] = {LOOP(1, 0, 6, -60), RUN(0, 4, 3, -20)};
    const dn_prog_op_t stops[] = {LOOP(1, 0, 6, 61), RUN(0, 4, 3, 20)};
    const dn_prog_op_t nested[] = {LOOP(3, 0, 5, 600), LOOP(2, 0, 10, 60), LOOP(1, 0, 3, 20),
                                   RUN(0, 4, 2, 10)};
    const dn_prog_op_t loop_goes_on[] = {LOOP(3, 0, 5, 400), LOOP(2, 3, 10, 40), BLOCK(0, 4), BLOCK(10, 5)};
    const dn_prog_op_t becomes_dense[] = {LOOP(2, 0, 5, 8), BLOCK(0, 4), BLOCK(4, 4)};

    EXPECT(one_turn, 1, 0, 1);
    EXPECT(block, 1, 0, 6);
    EXPECT(dense, 1, 0, 1);
    EXPECT(dense_then_more, 1, 0, 1);
    EXPECT(goes_on, 1, 0, 18);
    EXPECT(goes_back, 1, 0, 18);
    EXPECT(stops, 2, 1, 18);
    EXPECT(nested, 1, 0, 300);
    EXPECT(loop_goes_on, 3, 1, 100);
    EXPECT(becomes_dense, 1, 0, 1);
}

static void irregular_blocks_become_lists(void **state)
{
    const dn_prog_op_t irregular[] = {BLOCK(0, 8), BLOCK(10, 8), BLOCK(30, 8), BLOCK(200, 8), BLOCK(100, 8)};
    const dn_prog_op_t in_loop[] = {LOOP(3, 7, 9, 100), BLOCK(0, 8), BLOCK(10, 8), BLOCK(30, 8)};
    const dn_prog_op_t stands[] = {LOOP(3, 7, 9, 0), BLOCK(0, 8), BLOCK(10, 8), BLOCK(30, 8)};
    const dn_prog_op_t two_lengths[] = {BLOCK(0, 8),   BLOCK(10, 8),  BLOCK(30, 8), BLOCK(200, 4),
                                        BLOCK(301, 4), BLOCK(403, 4), BLOCK(900, 1)};
    dn_prog_op_t mixed[40];

    EXPECT(irregular, 1, 0, 5);
    EXPECT(in_loop, 2, 1, 27);
    EXPECT(stands, 2, 1, 27);
    expect_first(irregular, 5, DN_PROG_LIST);
    expect_first(two_lengths, 7, DN_PROG_LIST);
    EXPECT(two_lengths, 3, 0, 7);
    /* 10 blocks anywhere, 20 at a constant distance, 10 anywhere */
    for (int64_t i = 0; i < 40; i++) {
        mixed[i] = (dn_prog_op_t) BLOCK(10 <= i && 30 > i ? 20 * i : i * i * 21 + i % 3, 8);
    }
    EXPECT(mixed, 3, 0, 40);
}

static void lists_inside_of_loops_keep_their_places(void **state)
{
    const dn_prog_op_t ops[] = {BLOCK(0, 2),    BLOCK(10, 2),   BLOCK(30, 2), LOOP(6, 100, 3, 1000),
                                BLOCK(0, 4),    BLOCK(10, 4),   BLOCK(30, 4), LOOP(2, 50, 2, 100),
                                BLOCK(2, 3),    BLOCK(300, 5),  BLOCK(9, 2),  BLOCK(5001, 2),
                                BLOCK(5012, 2), BLOCK(5033, 2), BLOCK(7, 9)};

    EXPECT(ops, 8, 2, 3 + 3 * (3 + 2 * 2 + 0) + 3 + 1 + 1);
}

static void contiguous_uses_are_known(void **state)
{
    const dn_prog_op_t one[] = {LOOP(1, 8, 6, 4), BLOCK(2, 4)};
    const dn_prog_op_t two[] = {BLOCK(0, 4), BLOCK(8, 4)};
    int64_t at = -1;
    uint64_t len = 1;
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(one, 2, &prog), DN_OK);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 1, 5}, &at, &len), 1);
    assert_int_equal(at, 10);
    assert_int_equal(len, 24);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 3, 24}, &at, &len), 1);
    assert_int_equal(at, 10);
    assert_int_equal(len, 72);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 0, 24}, &at, &len), 1);
    assert_int_equal(len, 0);
    len = 77;
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 3, 25}, &at, &len), 0);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 3, -24}, &at, &len), 0);
    assert_int_equal(len, 77);
    dn_prog_free(prog);
    assert_int_equal(dn_prog_create(two, 2, &prog), DN_OK);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 1, 0}, &at, &len), 0);
    assert_int_equal(len, 77);
    dn_prog_free(prog);
    assert_int_equal(dn_prog_create(NULL, 0, &prog), DN_OK);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 9, 9}, &at, &len), 1);
    assert_int_equal(len, 0);
    dn_prog_free(prog);
    dn_prog_free(NULL);
}

static void every_program_has_its_number(void **state)
{
    const dn_prog_op_t op = BLOCK(0, 4);
    uint64_t last = 0;

    for (unsigned i = 0; i < 100; i++) {
        dn_prog_t *prog = NULL;
        assert_int_equal(dn_prog_create(&op, 1, &prog), DN_OK);
        assert_true(dn_prog_info(prog)->id > last);
        last = dn_prog_info(prog)->id;
        dn_prog_free(prog);
    }
}

/** UZURA's example: the transposed matrix is two ops, and its bytes are where both definitions say. */
static void a_transposed_matrix_is_two_ops(void **state)
{
    enum { N = 60 };
    static float a[N][N], b[N][N];
    const dn_prog_op_t row[] = {LOOP(1, 0, N, sizeof(float)), RUN(0, sizeof(float), N, sizeof(a[0]))};
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t cursor;

    EXPECT(row, 2, 1, N * N);
    assert_int_equal(dn_prog_create(row, 2, &prog), DN_OK);
    for (int i = 0; i < N * N; i++) {
        a[i / N][i % N] = (float) i;
    }
    dn_prog_start(&cursor, &(dn_prog_use_t){prog, 1, 0}, (uintptr_t) a);
    assert_int_equal(dn_prog_gather(b, &cursor, sizeof(b)), sizeof(b));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            assert_true(b[i][j] == a[j][i]);
        }
    }
    dn_prog_free(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ops_vanish),
        cmocka_unit_test(neighbours_become_one),
        cmocka_unit_test(loops_become_runs),
        cmocka_unit_test(irregular_blocks_become_lists),
        cmocka_unit_test(lists_inside_of_loops_keep_their_places),
        cmocka_unit_test(contiguous_uses_are_known),
        cmocka_unit_test(every_program_has_its_number),
        cmocka_unit_test(a_transposed_matrix_is_two_ops),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
