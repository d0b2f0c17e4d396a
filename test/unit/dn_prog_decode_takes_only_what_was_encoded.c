/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A program survives its encoding. Of other bytes each kind is refused with its status; whatever is accepted
 * is the encoding of what came of it, to the byte.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog_naive.h"

enum {
    BYTES = 4000,
    WIRE = 40 * (DN_NAIVE_OPS + 1) + 8 * DN_NAIVE_OPS,
    /* where the fields of the head and of an op are */
    MAGIC = 0,
    VERSION = 4,
    DEPTH = 6,
    OPS = 8,
    PLACES = 12,
    SIZE = 16,
    LOW = 24,
    HIGH = 32,
    HEAD = 40,
    KIND = 0,
    INSIDE = 4,
    AT = 8,
    LEN = 16,
    COUNT = 24,
    STRIDE = 32,
    OP = 40
};

typedef struct wire {
    uint8_t byte[WIRE];
    size_t len;
} wire_t;

static void encode(const dn_prog_t *prog, wire_t *wire)
{
    wire->len = sizeof(wire->byte);
    assert_int_equal(dn_prog_encode(prog, wire->byte, &wire->len), DN_OK);
}

/** Decode, and hold what comes of it against the bytes. */
static dn_status_t decode(const wire_t *wire)
{
    dn_prog_t *const untouched = (dn_prog_t *) &decode;
    dn_prog_t *prog = untouched;
    wire_t again;
    /* in memory of exactly its length, at an odd address */
    uint8_t *bytes = malloc(wire->len + 1);

    assert_non_null(bytes);
    memcpy(bytes + 1, wire->byte, wire->len);
    const dn_status_t status = dn_prog_decode(bytes + 1, wire->len, NULL, &prog);
    free(bytes);
    if (DN_OK != status) {
        assert_ptr_equal(prog, untouched);
        return status;
    }
    encode(prog, &again);
    assert_int_equal(again.len, wire->len);
    assert_memory_equal(again.byte, wire->byte, wire->len);
    dn_prog_free(prog);
    return DN_OK;
}

static void compile(const dn_prog_op_t *ops, size_t n, wire_t *wire)
{
    dn_prog_t *prog = NULL;

    assert_int_equal(dn_prog_create(ops, n, &prog), DN_OK);
    encode(prog, wire);
    dn_prog_free(prog);
    assert_int_equal(decode(wire), DN_OK);
}

static void put_u32(wire_t *wire, size_t at, uint32_t value)
{
    memcpy(wire->byte + at, &value, sizeof(value));
}

static void put_u64(wire_t *wire, size_t at, uint64_t value)
{
    memcpy(wire->byte + at, &value, sizeof(value));
}

static void put_u16(wire_t *wire, size_t at, uint16_t value)
{
    memcpy(wire->byte + at, &value, sizeof(value));
}

/** A LOOP around a RUN and a LIST, then a RUN: one of each, 4 ops and 3 places. */
static void compile_sample(wire_t *wire)
{
    const dn_prog_op_t ops[] = {{DN_PROG_LOOP, 4, 0, 0, 5, 1000}, {DN_PROG_RUN, 0, -20, 8, 3, 24},
                                {DN_PROG_RUN, 0, 100, 4, 1, 0},   {DN_PROG_RUN, 0, 110, 4, 1, 0},
                                {DN_PROG_RUN, 0, 130, 4, 1, 0},   {DN_PROG_RUN, 0, 9000, 7, 1, 0}};

    compile(ops, 6, wire);
    assert_int_equal(wire->len, HEAD + 4 * OP + 3 * 8);
}

static void any_program_survives(void **state)
{
    static dn_prog_op_t ops[DN_NAIVE_OPS];
    static int64_t place[BYTES];
    static wire_t wire;

    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t random = seed;
        int64_t extent;
        dn_naive_t naive = {place, 0, BYTES};
        const size_t n = dn_naive_random(&random, ops, BYTES, &extent);
        compile(ops, n, &wire);
        dn_naive_use(&naive, ops, n, 1, 0);

        dn_prog_t *prog = NULL, *first = NULL;
        assert_int_equal(dn_prog_create(ops, n, &first), DN_OK);
        assert_int_equal(dn_prog_decode(wire.byte, wire.len, NULL, &prog), DN_OK);
        assert_int_equal(dn_prog_info(prog)->size, naive.n);
        assert_int_equal(dn_prog_info(prog)->blocks, dn_prog_info(first)->blocks);
        assert_int_equal(dn_prog_info(prog)->ops, dn_prog_info(first)->ops);
        assert_true(dn_prog_info(prog)->id > dn_prog_info(first)->id);
        dn_prog_cursor_t cursor;
        uint64_t at = 0;
        dn_prog_start(&cursor, &(dn_prog_use_t){prog, 1, 0}, 0);
        for (size_t i = 0; i < naive.n; i++) {
            assert_int_equal(dn_prog_next(&cursor, 1, &at), 1);
            assert_int_equal((int64_t) at, place[i]);
        }
        dn_prog_free(prog);
        dn_prog_free(first);
    }
}

static void room_is_asked_for(void **state)
{
    wire_t wire, small;
    dn_prog_t *prog = NULL;

    compile_sample(&wire);
    assert_int_equal(dn_prog_decode(wire.byte, wire.len, NULL, &prog), DN_OK);
    memset(&small, 0xee, sizeof(small));
    for (size_t len = 0; len < wire.len; len++) {
        small.len = len;
        assert_int_equal(dn_prog_encode(prog, small.byte, &small.len), DN_ERR_RANGE);
        assert_int_equal(small.len, wire.len);
        assert_int_equal(small.byte[0], 0xee);
    }
    assert_int_equal(dn_prog_encode(prog, small.byte, &small.len), DN_OK);
    assert_memory_equal(small.byte, wire.byte, wire.len);
    assert_int_equal(small.byte[wire.len], 0xee);
    dn_prog_free(prog);
}

/** Peers of one version must keep agreeing on it. */
static void the_layout_stays(void **state)
{
    wire_t wire;
    uint64_t word[4];

    compile_sample(&wire);
    memcpy(word, wire.byte, 16);
    assert_int_equal(word[0], UINT64_C(0x0001000167706e64));
    assert_int_equal(word[1], UINT64_C(0x0000000300000004));
    memcpy(word, wire.byte + SIZE, 24);
    assert_int_equal(word[0], 5 * (3 * 8 + 3 * 4) + 7);
    assert_int_equal(word[1], (uint64_t) -20);
    assert_int_equal(word[2], 9007);
    memcpy(word, wire.byte + HEAD + OP, 32);
    assert_int_equal(word[0], DN_PROG_RUN);
    assert_int_equal(word[1], (uint64_t) -20);
    assert_int_equal(word[2], 8);
    assert_int_equal(word[3], 3);
    memcpy(word, wire.byte + HEAD + 4 * OP, 24);
    assert_int_equal(word[0], 100);
    assert_int_equal(word[1], 110);
    assert_int_equal(word[2], 130);
}

static void other_lengths(void **state)
{
    wire_t sample, wire;

    compile_sample(&sample);
    for (size_t len = 0; len < sample.len + 50; len++) {
        wire = sample;
        wire.len = len;
        assert_int_equal(decode(&wire), len == sample.len ? DN_OK : DN_ERR_PROTO);
    }
    /* numbers of ops and places that belong to the length, but not to what is there */
    wire = sample;
    put_u32(&wire, OPS, 3);
    put_u32(&wire, PLACES, 8);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    put_u32(&wire, OPS, 0);
    put_u32(&wire, PLACES, 23);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
}

static void other_heads(void **state)
{
    wire_t sample, wire;

    compile_sample(&sample);
    wire = sample;
    put_u32(&wire, MAGIC, __builtin_bswap32(0x67706e64));
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    for (unsigned version = 0; version < 70000; version += 2) {
        wire = sample;
        put_u16(&wire, VERSION, (uint16_t) version);
        assert_int_equal(decode(&wire), DN_ERR_VERSION);
    }
    const size_t field[] = {SIZE, LOW, HIGH};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned bit = 0; bit < 64; bit++) {
            uint64_t value;
            wire = sample;
            memcpy(&value, wire.byte + field[i], sizeof(value));
            put_u64(&wire, field[i], value ^ (UINT64_C(1) << bit));
            assert_int_equal(decode(&wire), DN_ERR_PROTO);
        }
    }
    wire = sample;
    put_u16(&wire, DEPTH, 0);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    put_u16(&wire, DEPTH, 2);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    put_u16(&wire, DEPTH, DN_PROG_DEPTH_MAX + 1);
    assert_int_equal(decode(&wire), DN_ERR_RANGE);
}

static void expect_bad_op(const wire_t *sample, unsigned op, size_t field, uint64_t value)
{
    wire_t wire = *sample;
    const size_t at = HEAD + (op - 1) * OP + field;

    if (AT > field) {
        put_u32(&wire, at, (uint32_t) value);
    } else {
        put_u64(&wire, at, value);
    }
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
}

static void other_ops(void **state)
{
    enum { LOOP_OP = 1, RUN_OP, LIST_OP, BLOCK_OP };
    wire_t sample;

    compile_sample(&sample);
    for (unsigned op = LOOP_OP; op <= BLOCK_OP; op++) {
        expect_bad_op(&sample, op, KIND, 0);
        expect_bad_op(&sample, op, KIND, 4);
        expect_bad_op(&sample, op, KIND, UINT32_MAX);
        expect_bad_op(&sample, op, COUNT, 0);
        expect_bad_op(&sample, op, COUNT, UINT64_MAX);
        expect_bad_op(&sample, op, INSIDE, UINT32_MAX);
        expect_bad_op(&sample, op, INSIDE, 4);
        expect_bad_op(&sample, op, LEN, LOOP_OP == op ? 1 : 0);
        expect_bad_op(&sample, op, LEN, UINT64_MAX);
        expect_bad_op(&sample, op, STRIDE, UINT64_C(1) << 63);
    }
    expect_bad_op(&sample, LOOP_OP, KIND, DN_PROG_RUN);
    expect_bad_op(&sample, LOOP_OP, KIND, DN_PROG_LIST);
    expect_bad_op(&sample, LOOP_OP, INSIDE, 0);
    expect_bad_op(&sample, LOOP_OP, INSIDE, 1);
    expect_bad_op(&sample, LOOP_OP, INSIDE, 3);
    expect_bad_op(&sample, LOOP_OP, AT, 1);
    expect_bad_op(&sample, LOOP_OP, COUNT, 1);
    expect_bad_op(&sample, RUN_OP, KIND, DN_PROG_LIST);
    expect_bad_op(&sample, RUN_OP, KIND, DN_PROG_LOOP);
    expect_bad_op(&sample, RUN_OP, INSIDE, 1);
    expect_bad_op(&sample, RUN_OP, COUNT, 1);
    expect_bad_op(&sample, LIST_OP, KIND, DN_PROG_RUN);
    expect_bad_op(&sample, LIST_OP, KIND, DN_PROG_LOOP);
    expect_bad_op(&sample, LIST_OP, INSIDE, 1);
    expect_bad_op(&sample, LIST_OP, AT, 1);
    expect_bad_op(&sample, LIST_OP, COUNT, 1);
    expect_bad_op(&sample, LIST_OP, COUNT, 2);
    expect_bad_op(&sample, LIST_OP, COUNT, 4);
    expect_bad_op(&sample, LIST_OP, STRIDE, 1);
    expect_bad_op(&sample, BLOCK_OP, INSIDE, 1);
    expect_bad_op(&sample, BLOCK_OP, STRIDE, 1);
    expect_bad_op(&sample, BLOCK_OP, AT, INT64_MAX);
    expect_bad_op(&sample, BLOCK_OP, AT, 9001);
    expect_bad_op(&sample, BLOCK_OP, LEN, 8);
}

/** Encode ops that follow no rule, below a head that tells the truth of the bytes they mean. */
static void put_ops(wire_t *wire, const dn_prog_op_t *ops, uint32_t n, uint32_t places, uint16_t depth,
                    uint64_t size, uint64_t high)
{
    memset(wire, 0, sizeof(*wire));
    put_u64(wire, MAGIC, UINT64_C(0x0000000167706e64));
    put_u16(wire, DEPTH, depth);
    put_u32(wire, OPS, n);
    put_u32(wire, PLACES, places);
    put_u64(wire, SIZE, size);
    put_u64(wire, HIGH, high);
    memcpy(wire->byte + HEAD, ops, n * sizeof(*ops));
    wire->len = HEAD + n * OP + places * 8;
}

/** Ops that would do no harm to the sums: only the rule that each has bytes keeps a walk going. */
static void ops_without_bytes(void **state)
{
    const dn_prog_op_t block = {DN_PROG_RUN, 0, 0, 4, 1, 0};
    const dn_prog_op_t nothing[] = {{DN_PROG_RUN, 0, 0, 0, 1, 0},  {DN_PROG_RUN, 0, 0, 0, 2, 4},
                                    {DN_PROG_RUN, 0, 0, 4, 0, 0},  {DN_PROG_LIST, 0, 0, 4, 0, 0},
                                    {DN_PROG_LOOP, 0, 0, 0, 2, 8}, {DN_PROG_LOOP, 0, 0, 0, 0, 8}};
    static wire_t wire;

    put_ops(&wire, &block, 1, 0, 0, 4, 4);
    assert_int_equal(decode(&wire), DN_OK);
    for (unsigned i = 0; i < 6; i++) {
        for (uint16_t depth = 0; depth < 2; depth++) {
            const dn_prog_op_t after[] = {block, nothing[i]}, before[] = {nothing[i], block};
            const dn_prog_op_t within[] = {{DN_PROG_LOOP, 2, 0, 0, 2, 0}, block, nothing[i]};
            put_ops(&wire, after, 2, 0, depth, 4, 4);
            assert_int_equal(decode(&wire), DN_ERR_PROTO);
            put_ops(&wire, before, 2, 0, depth, 4, 4);
            assert_int_equal(decode(&wire), DN_ERR_PROTO);
            put_ops(&wire, within, 3, 0, depth + 1, 8, 4);
            assert_int_equal(decode(&wire), DN_ERR_PROTO);
            put_ops(&wire, &nothing[i], 1, 0, depth, 0, 0);
            assert_int_equal(decode(&wire), DN_ERR_PROTO);
        }
    }
    /* a list of two empty blocks; loops of no turn and of one around a block */
    const dn_prog_op_t list[] = {block, {DN_PROG_LIST, 0, 0, 0, 2, 0}};
    put_ops(&wire, list, 2, 2, 0, 4, 4);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    for (uint64_t turns = 0; turns < 3; turns++) {
        const dn_prog_op_t loop[] = {block, {DN_PROG_LOOP, 1, 0, 0, turns, 0}, block};
        put_ops(&wire, loop, 3, 0, 1, 4 + 4 * turns, 4);
        assert_int_equal(decode(&wire), 2 == turns ? DN_OK : DN_ERR_PROTO);
    }
}

/** Numbers of places that add up in 64 bits only because they leave them. */
static void lists_that_wrap(void **state)
{
    const dn_prog_op_t lists[] = {{DN_PROG_LIST, 0, 0, 1, UINT64_MAX, 0}, {DN_PROG_LIST, 0, 0, 1, 4, 0}};
    const dn_prog_op_t back[] = {lists[1], lists[0]};
    static wire_t wire;

    put_ops(&wire, lists, 2, 3, 0, 3, 1);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
    put_ops(&wire, back, 2, 3, 0, 3, 1);
    assert_int_equal(decode(&wire), DN_ERR_PROTO);
}

static void other_places(void **state)
{
    wire_t sample, wire;

    compile_sample(&sample);
    for (unsigned i = 0; i < 3; i++) {
        wire = sample;
        put_u64(&wire, HEAD + 4 * OP + 8 * i, INT64_MAX);
        assert_int_equal(decode(&wire), DN_ERR_PROTO);
        put_u64(&wire, HEAD + 4 * OP + 8 * i, (uint64_t) -21);
        assert_int_equal(decode(&wire), DN_ERR_PROTO);
        /* still within what is declared, so another program and no error */
        put_u64(&wire, HEAD + 4 * OP + 8 * i, 500);
        assert_int_equal(decode(&wire), DN_OK);
    }
}

/** Loops deeper than a cursor has levels, whatever the head says. */
static void loops_without_end(void **state)
{
    enum { N = 200 };
    static wire_t wire;

    for (uint16_t depth = 0; depth <= DN_PROG_DEPTH_MAX; depth++) {
        memset(&wire, 0, sizeof(wire));
        put_u64(&wire, 0, UINT64_C(0x0000000167706e64));
        put_u16(&wire, DEPTH, depth);
        put_u32(&wire, OPS, N);
        for (uint32_t i = 0; i < N; i++) {
            put_u32(&wire, HEAD + i * OP + KIND, N - 1 == i ? DN_PROG_RUN : DN_PROG_LOOP);
            put_u32(&wire, HEAD + i * OP + INSIDE, N - 1 - i);
            put_u64(&wire, HEAD + i * OP + COUNT, N - 1 == i ? 1 : 2);
            put_u64(&wire, HEAD + i * OP + LEN, N - 1 == i ? 1 : 0);
        }
        wire.len = HEAD + N * OP;
        assert_int_equal(decode(&wire), DN_ERR_PROTO);
    }
}

static void limits(void **state)
{
    wire_t wire;
    dn_prog_t *prog = NULL;

    compile_sample(&wire);
    const dn_prog_limits_t fits = {4, 3, 1};
    const dn_prog_limits_t less[] = {{3, 3, 1}, {4, 2, 1}, {4, 3, 0}};
    assert_int_equal(dn_prog_decode(wire.byte, wire.len, &fits, &prog), DN_OK);
    dn_prog_free(prog);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dn_prog_decode(wire.byte, wire.len, &less[i], &prog), DN_ERR_RANGE);
    }
    /* A head alone cannot make the receiver take memory. */
    const dn_prog_limits_t all = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    put_u32(&wire, OPS, UINT32_MAX);
    put_u32(&wire, PLACES, UINT32_MAX);
    assert_int_equal(dn_prog_decode(wire.byte, wire.len, NULL, &prog), DN_ERR_RANGE);
    assert_int_equal(dn_prog_decode(wire.byte, wire.len, &all, &prog), DN_ERR_RANGE);
    put_u32(&wire, OPS, UINT32_MAX - 1);
    assert_int_equal(dn_prog_decode(wire.byte, wire.len, &all, &prog), DN_ERR_PROTO);
}

static void any_flipped_bit(void **state)
{
    wire_t sample, wire;
    unsigned accepted = 0;

    compile_sample(&sample);
    for (size_t bit = 0; bit < 8 * sample.len; bit++) {
        wire = sample;
        wire.byte[bit / 8] ^= (uint8_t) (1u << bit % 8);
        accepted += DN_OK == decode(&wire);
    }
    /* A few only shift blocks within the bounds. */
    assert_in_range(accepted, 1, 8 * sample.len / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_program_survives),
        cmocka_unit_test(room_is_asked_for),
        cmocka_unit_test(the_layout_stays),
        cmocka_unit_test(other_lengths),
        cmocka_unit_test(other_heads),
        cmocka_unit_test(other_ops),
        cmocka_unit_test(other_places),
        cmocka_unit_test(loops_without_end),
        cmocka_unit_test(ops_without_bytes),
        cmocka_unit_test(lists_that_wrap),
        cmocka_unit_test(limits),
        cmocka_unit_test(any_flipped_bit),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
