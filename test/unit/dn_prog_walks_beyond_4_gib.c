/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Sizes, counts, strides and positions beyond 32 bits are exact, as numbers and in memory.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <sys/mman.h>

#include "dn_prog.h"

#define GIB (UINT64_C(1) << 30)

static void compile(const dn_prog_op_t *ops, size_t n, dn_prog_t **prog_p)
{
    assert_int_equal(dn_prog_create(ops, n, prog_p), DN_OK);
}

/** The byte at a position, found by a seek from afar. */
static uint64_t place_of(dn_prog_cursor_t *cursor, uint64_t position)
{
    uint64_t at = 0;

    dn_prog_seek(cursor, position);
    assert_int_equal(dn_prog_next(cursor, 1, &at), 1);
    return at;
}

static void numbers(void **state)
{
    /* 2^40 turns of a block of 3 bytes and a row of 2^20 blocks of 5 */
    const uint64_t turns = UINT64_C(1) << 40, row = UINT64_C(1) << 20, turn = 3 + 5 * row;
    const uint64_t stride = 8 * row;
    const dn_prog_op_t ops[] = {{DN_PROG_LOOP, 2, 0, 0, turns, (int64_t) stride},
                                {DN_PROG_RUN, 0, 0, 3, 1, 0},
                                {DN_PROG_RUN, 0, 10, 5, row, 7}};
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t cursor;
    uint64_t random = 1, at = 0;

    compile(ops, 3, &prog);
    assert_int_equal(dn_prog_info(prog)->size, turns * turn);
    assert_int_equal(dn_prog_info(prog)->blocks, turns * (row + 1));
    assert_int_equal(dn_prog_info(prog)->high, (turns - 1) * stride + 10 + 7 * (row - 1) + 5);
    const dn_prog_use_t use = {prog, 2, -(INT64_C(1) << 62)};
    dn_prog_start(&cursor, &use, 0);
    assert_int_equal(dn_prog_left(&cursor), 2 * turns * turn);
    for (unsigned i = 0; i < 10000; i++) {
        const uint64_t position = dn_test_random(&random) % (2 * turns * turn);
        const uint64_t instance = position / (turns * turn), in = position % (turns * turn), byte = in % turn;
        const uint64_t origin = in / turn * stride - (instance << 62);
        const uint64_t wanted = 3 > byte ? origin + byte : origin + 10 + (byte - 3) / 5 * 7 + (byte - 3) % 5;
        assert_int_equal(place_of(&cursor, position), wanted);
        assert_int_equal(dn_prog_left(&cursor), 2 * turns * turn - position - 1);
    }
    /* and over the seam of two turns */
    dn_prog_seek(&cursor, 7 * turn - 2);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &at), 2);
    assert_int_equal(at, 6 * stride + 10 + 7 * (row - 1) + 3);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &at), 3);
    assert_int_equal(at, 7 * stride);
    dn_prog_seek(&cursor, 0);
    dn_prog_skip(&cursor, 2 * turns * turn - 1);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &at), 1);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &at), 0);
    dn_prog_free(prog);
}

static void one_block(void **state)
{
    const dn_prog_op_t op = {DN_PROG_RUN, 0, -5, 6 * GIB, 1, 0};
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t cursor;
    int64_t at = 0;
    uint64_t len = 0, where = 0;

    compile(&op, 1, &prog);
    assert_int_equal(dn_prog_contiguous(&(dn_prog_use_t){prog, 3, (int64_t) (6 * GIB)}, &at, &len), 1);
    assert_int_equal(at, -5);
    assert_int_equal(len, 18 * GIB);
    dn_prog_start(&cursor, &(dn_prog_use_t){prog, 3, (int64_t) (6 * GIB)}, 105);
    assert_int_equal(dn_prog_next(&cursor, 5 * GIB, &where), 5 * GIB);
    assert_int_equal(where, 100);
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &where), 13 * GIB);
    assert_int_equal(where, 100 + 5 * GIB);
    dn_prog_free(prog);
}

/** Blocks that are GiBs apart in an address space of which only their pages are there. */
static void memory(void **state)
{
    const uint64_t room = 9 * GIB;
    uint8_t *from =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *to =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == from || MAP_FAILED == to) {
        skip();
    }
    /* 2 x 4 blocks of 100 bytes here, 10 of 80 there */
    const dn_prog_op_t away[] = {{DN_PROG_LOOP, 2, 0, 0, 4, (int64_t) (2 * GIB + 3)},
                                 {DN_PROG_RUN, 0, 0, 100, 1, 0},
                                 {DN_PROG_RUN, 0, (int64_t) GIB, 100, 1, 0}};
    const dn_prog_op_t back[] = {{DN_PROG_RUN, 0, (int64_t) (8 * GIB), 80, 10, -(int64_t) (GIB - GIB / 8)}};
    dn_prog_t *away_prog = NULL, *back_prog = NULL;
    dn_prog_cursor_t from_at, to_at;
    uint8_t stream[800];

    compile(away, 3, &away_prog);
    compile(back, 1, &back_prog);
    dn_test_fill(stream, sizeof(stream), 5);
    dn_prog_start(&from_at, &(dn_prog_use_t){away_prog, 1, 0}, (uintptr_t) from);
    assert_int_equal(dn_prog_scatter(&from_at, stream, sizeof(stream)), sizeof(stream));
    for (uint64_t i = 0; i < 8; i++) {
        assert_memory_equal(from + i / 2 * (2 * GIB + 3) + i % 2 * GIB, stream + 100 * i, 100);
    }
    dn_prog_start(&from_at, &(dn_prog_use_t){away_prog, 1, 0}, (uintptr_t) from);
    dn_prog_start(&to_at, &(dn_prog_use_t){back_prog, 1, 0}, (uintptr_t) to);
    assert_int_equal(dn_prog_copy(&to_at, &from_at, 333), 333);
    assert_int_equal(dn_prog_copy(&to_at, &from_at, UINT64_MAX), 467);
    for (uint64_t i = 0; i < 10; i++) {
        assert_memory_equal(to + 8 * GIB - i * (GIB - GIB / 8), stream + 80 * i, 80);
    }
    dn_prog_free(away_prog);
    dn_prog_free(back_prog);
    munmap(from, room);
    munmap(to, room);
}

/** More than 4 GiB of a source whose blocks overlap: the tail of the stream. */
static void overlapping_source(void **state)
{
    const dn_prog_op_t op = {DN_PROG_RUN, 0, 0, 4096, UINT64_C(1) << 40, 0};
    dn_prog_t *prog = NULL;
    dn_prog_cursor_t cursor;
    uint8_t source[4096], target[2 * 4096 + 10];

    compile(&op, 1, &prog);
    dn_test_fill(source, sizeof(source), 3);
    dn_prog_start(&cursor, &(dn_prog_use_t){prog, 1, 0}, (uintptr_t) source);
    dn_prog_seek(&cursor, (UINT64_C(1) << 52) - sizeof(target));
    assert_int_equal(dn_prog_gather(target, &cursor, UINT64_MAX), sizeof(target));
    assert_memory_equal(target, source + 4096 - 10, 10);
    assert_memory_equal(target + 10, source, 4096);
    assert_memory_equal(target + 10 + 4096, source, 4096);
    dn_prog_free(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(one_block),
        cmocka_unit_test(memory),
        cmocka_unit_test(overlapping_source),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
