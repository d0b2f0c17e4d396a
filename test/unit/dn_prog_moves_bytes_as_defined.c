/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Whatever a program looks like and however often it is used, gather, scatter, copy, next, skip and seek find
 * byte i of the stream where the definition puts it, and touch nothing else; so do they in parts.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog_naive.h"

enum { BYTES = 12000, SEEDS = 1500 };

/** One use of a program in memory of exactly its bounds: a byte too far meets a sanitizer. */
typedef struct side {
    dn_prog_op_t op[DN_NAIVE_OPS];
    size_t ops;
    dn_prog_t *prog;
    dn_prog_use_t use;
    dn_naive_t naive;
    int64_t place[BYTES];
    int64_t low, high;
    uint8_t *memory; /**< the byte at `low` */
    uint64_t base;   /**< the origin */
} side_t;

static uint8_t *at(const side_t *side, size_t i)
{
    return side->memory + (side->naive.byte[i] - side->low);
}

static void take_memory(side_t *side)
{
    dn_naive_bounds(&side->naive, &side->low, &side->high);
    side->memory = malloc((size_t) (side->high - side->low) + (side->high == side->low));
    assert_non_null(side->memory);
    side->base = (uintptr_t) side->memory - (uint64_t) side->low;
}

static void compile(side_t *side)
{
    dn_prog_span_t span;

    assert_int_equal(dn_prog_create(side->op, side->ops, &side->prog), DN_OK);
    side->use.prog = side->prog;
    assert_int_equal(dn_prog_span(&side->use, &span), DN_OK);
    assert_int_equal(span.size, side->naive.n);
    assert_int_equal(span.low, side->low);
    assert_int_equal(span.high, side->high);
    assert_int_equal(dn_prog_check(&side->use, side->base, side->naive.n, UINT64_MAX), DN_OK);
}

/** target: no two bytes at one place. */
static void open_side(side_t *side, uint64_t *random, int target)
{
    side->naive = (dn_naive_t){side->place, 0, BYTES};
    do {
        side->ops = dn_naive_random(random, side->op, BYTES, &side->use.extent);
        side->use.count = 0 == dn_test_below(random, 2) ? 1 : dn_test_length(random, 20);
        if (!target) {
            dn_naive_disturb(random, side->op, side->ops);
            side->use.extent -= (int64_t) dn_test_length(random, 50);
        }
        dn_naive_use(&side->naive, side->op, side->ops, side->use.count, side->use.extent);
    } while (BYTES < side->naive.n);
    take_memory(side);
    compile(side);
}

static void close_side(side_t *side)
{
    dn_prog_free(side->prog);
    free(side->memory);
}

static void start(dn_prog_cursor_t *cursor, const side_t *side)
{
    dn_prog_start(cursor, &side->use, side->base);
    assert_int_equal(dn_prog_left(cursor), side->naive.n);
}

static void fill(side_t *side, uint64_t key)
{
    dn_test_fill(side->memory, (size_t) (side->high - side->low), key);
}

static void gathers(const side_t *from, uint64_t *random)
{
    static uint8_t stream[BYTES + 1];
    dn_prog_cursor_t cursor;
    size_t done = 0;

    start(&cursor, from);
    while (done < from->naive.n) {
        const size_t part = 1 + dn_test_length(random, from->naive.n - done - 1);
        assert_int_equal(dn_prog_gather(stream + done, &cursor, part), part);
        done += part;
        assert_int_equal(dn_prog_left(&cursor), from->naive.n - done);
    }
    assert_int_equal(dn_prog_gather(stream + done, &cursor, 1), 0);
    for (size_t i = 0; i < from->naive.n; i++) {
        assert_int_equal(stream[i], *at(from, i));
    }
    start(&cursor, from);
    memset(stream, 0, sizeof(stream));
    stream[from->naive.n] = 0xee;
    assert_int_equal(dn_prog_gather(stream, &cursor, UINT64_MAX), from->naive.n);
    assert_int_equal(stream[from->naive.n], 0xee);
    for (size_t i = 0; i < from->naive.n; i++) {
        assert_int_equal(stream[i], *at(from, i));
    }
}

static void nexts(const side_t *from, uint64_t *random)
{
    dn_prog_cursor_t cursor;
    uint64_t where = 0;
    size_t done = 0;

    start(&cursor, from);
    assert_int_equal(dn_prog_next(&cursor, 0, &where), 0);
    while (done < from->naive.n) {
        const uint64_t max = 0 == dn_test_below(random, 3) ? UINT64_MAX : 1 + dn_test_length(random, 100);
        const uint64_t run = dn_prog_next(&cursor, max, &where);
        assert_in_range(run, 1, max);
        assert_in_range(run, 1, from->naive.n - done);
        for (uint64_t i = 0; i < run; i++) {
            assert_int_equal(where + i, from->base + (uint64_t) from->naive.byte[done + i]);
        }
        done += run;
    }
    assert_int_equal(dn_prog_next(&cursor, UINT64_MAX, &where), 0);
}

/** Jump about, by seek and skip, and go on from there. */
static void seeks(const side_t *from, uint64_t *random)
{
    dn_prog_cursor_t cursor, before;
    uint8_t some[64];

    start(&cursor, from);
    for (unsigned turn = 0; turn < 20; turn++) {
        const size_t left = dn_prog_left(&cursor);
        size_t i = dn_test_below(random, from->naive.n + 1);
        if (0 == turn % 2) {
            dn_prog_seek(&cursor, i);
        } else {
            i = dn_test_length(random, left);
            dn_prog_skip(&cursor, i);
            i += from->naive.n - left;
        }
        assert_int_equal(dn_prog_left(&cursor), from->naive.n - i);
        before = cursor;
        for (unsigned again = 0; again < 2; again++) {
            const size_t n = dn_prog_gather(some, &cursor, dn_test_below(random, sizeof(some) + 1));
            for (size_t k = 0; k < n; k++) {
                assert_int_equal(some[k], *at(from, i + k));
            }
            cursor = 0 == again ? before : cursor;
        }
    }
    dn_prog_seek(&cursor, UINT64_MAX);
    assert_int_equal(dn_prog_left(&cursor), 0);
    dn_prog_skip(&cursor, UINT64_MAX);
    assert_int_equal(dn_prog_gather(some, &cursor, 1), 0);
}

static void expect_bytes(const side_t *to, const uint8_t *wanted)
{
    assert_memory_equal(to->memory, wanted, (size_t) (to->high - to->low));
}

/** The stream of one side to that of the other, both from the start or from somewhere on. */
static void copies(const side_t *from, side_t *to, uint64_t *random)
{
    const size_t room = (size_t) (to->high - to->low);
    uint8_t *wanted = malloc(room + 1);
    const uint64_t how = dn_test_below(random, 3);
    const size_t from_first = 0 == how ? 0 : dn_test_length(random, from->naive.n);
    const size_t to_first =
        2 != how && from_first <= to->naive.n ? from_first : dn_test_length(random, to->naive.n);
    const size_t from_left = from->naive.n - from_first, to_left = to->naive.n - to_first;
    const size_t most = from_left < to_left ? from_left : to_left;
    dn_prog_cursor_t from_at, to_at;

    assert_non_null(wanted);
    memset(to->memory, 0xee, room);
    memset(wanted, 0xee, room);
    for (size_t i = 0; i < most; i++) {
        wanted[to->naive.byte[to_first + i] - to->low] = *at(from, from_first + i);
    }
    start(&from_at, from);
    start(&to_at, to);
    dn_prog_seek(&from_at, from_first);
    dn_prog_seek(&to_at, to_first);
    for (size_t done = 0; done < most;) {
        const size_t part = 1 + dn_test_length(random, most - done - 1);
        assert_int_equal(dn_prog_copy(&to_at, &from_at, part), part);
        done += part;
        assert_int_equal(dn_prog_left(&to_at), to_left - done);
        assert_int_equal(dn_prog_left(&from_at), from_left - done);
    }
    assert_int_equal(dn_prog_copy(&to_at, &from_at, UINT64_MAX), 0);
    expect_bytes(to, wanted);

    memset(to->memory, 0xee, room);
    dn_prog_seek(&from_at, from_first);
    dn_prog_seek(&to_at, to_first);
    assert_int_equal(dn_prog_copy(&to_at, &from_at, UINT64_MAX), most);
    expect_bytes(to, wanted);
    free(wanted);
}

static void scatters(side_t *to, uint64_t *random)
{
    static uint8_t stream[BYTES];
    const size_t room = (size_t) (to->high - to->low);
    uint8_t *wanted = malloc(room + 1);
    dn_prog_cursor_t cursor;

    assert_non_null(wanted);
    dn_test_fill(stream, to->naive.n, *random);
    memset(to->memory, 0xee, room);
    memset(wanted, 0xee, room);
    for (size_t i = 0; i < to->naive.n; i++) {
        wanted[to->naive.byte[i] - to->low] = stream[i];
    }
    start(&cursor, to);
    for (size_t done = 0; done < to->naive.n;) {
        const size_t part = 1 + dn_test_length(random, to->naive.n - done - 1);
        assert_int_equal(dn_prog_scatter(&cursor, stream + done, part), part);
        done += part;
    }
    assert_int_equal(dn_prog_scatter(&cursor, stream, 1), 0);
    expect_bytes(to, wanted);
    free(wanted);
}

/** An extent that is farther from 0, at which instances do not overlap. */
static int64_t farther(const dn_prog_use_t *use, uint64_t *random)
{
    const dn_prog_info_t *info = dn_prog_info(use->prog);
    const int64_t width = info->high - info->low, own = 0 > use->extent ? -use->extent : use->extent;
    const int64_t extent = (own > width ? own : width) + 1 + (int64_t) dn_test_length(random, 50);

    return 0 > use->extent ? -extent : extent;
}

/** From the same program at another place and to it, used the same way and another. */
static void copies_alike(side_t *side, uint64_t *random)
{
    static side_t twin;

    for (int64_t more = 0; more < 2; more++) {
        memcpy(&twin, side, sizeof(twin));
        twin.use.extent = 0 == more ? side->use.extent : farther(&side->use, random);
        twin.use.count += (uint64_t) more;
        twin.naive = (dn_naive_t){twin.place, 0, BYTES};
        dn_naive_use(&twin.naive, twin.op, twin.ops, twin.use.count, twin.use.extent);
        if (BYTES < twin.naive.n) {
            return;
        }
        take_memory(&twin);
        fill(&twin, *random);
        copies(&twin, side, random);
        fill(side, *random);
        copies(side, &twin, random);
        free(twin.memory);
    }
}

static void any_two_programs(void **state)
{
    static side_t from, to;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed;
        open_side(&from, &random, 0);
        open_side(&to, &random, 1);
        fill(&from, seed);
        gathers(&from, &random);
        nexts(&from, &random);
        seeks(&from, &random);
        scatters(&to, &random);
        copies(&from, &to, &random);
        copies_alike(&to, &random);
        close_side(&from);
        close_side(&to);
    }
}

/** One instance of ops that are there. */
static void open_ops(side_t *side, size_t ops)
{
    side->ops = ops;
    side->use = (dn_prog_use_t){NULL, 1, 0};
    side->naive = (dn_naive_t){side->place, 0, BYTES};
    dn_naive_use(&side->naive, side->op, side->ops, 1, 0);
    assert_in_range(side->naive.n, 0, BYTES);
    take_memory(side);
    compile(side);
}

static void open_run(side_t *side, uint64_t len, uint64_t count, int64_t stride)
{
    side->op[0] = (dn_prog_op_t){DN_PROG_RUN, 0, 0, len, count, stride};
    open_ops(side, 1);
}

/** The blocks of a side at places of no pattern. */
static void open_list(side_t *side, uint64_t len, uint64_t count, uint64_t *random)
{
    int64_t place = 0;

    for (uint64_t i = 0; i < count; i++) {
        side->op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, place, len, 1, 0};
        place += (int64_t) (len + 1 + dn_test_below(random, 20));
    }
    open_ops(side, count);
}

static void every_length_of_blocks(void **state)
{
    static side_t from, to;
    uint64_t random = 7;

    for (uint64_t len = 1; len <= 300; len += 150 > len ? 1 : 37) {
        const int64_t own = (int64_t) len;
        const int64_t stride[] = {own, own + 1, 2 * own, -own, -own - 3};
        for (unsigned i = 0; i < 25; i++) {
            open_run(&from, len, 1 + i, stride[i % 5]);
            open_run(&to, len, 25 - i, stride[i / 5]);
            fill(&from, i);
            gathers(&from, &random);
            scatters(&to, &random);
            copies(&from, &to, &random);
            close_side(&from);
            open_list(&from, len, 1 + i, &random);
            fill(&from, i);
            gathers(&from, &random);
            copies(&from, &to, &random);
            copies_alike(&from, &random);
            close_side(&to);
            open_list(&to, len, 25 - i, &random);
            scatters(&to, &random);
            copies(&from, &to, &random);
            close_side(&from);
            open_run(&from, len, 1 + i, 0);
            fill(&from, i);
            copies(&from, &to, &random);
            close_side(&from);
            close_side(&to);
        }
    }
}

/** Rows that end at different blocks, of one length. */
static void rows_of_one_length(void **state)
{
    static side_t one, two;
    uint64_t random = 9;

    for (uint64_t len = 1; len <= 300; len += 11) {
        const int64_t own = (int64_t) len;
        open_run(&one, len, 20, 2 * own);
        two.op[0] = (dn_prog_op_t){DN_PROG_RUN, 0, 0, len, 8, own + 4};
        two.op[1] = (dn_prog_op_t){DN_PROG_RUN, 0, 50 * own, len, 12, -own - 9};
        open_ops(&two, 2);
        for (unsigned turn = 0; turn < 10; turn++) {
            fill(&one, turn);
            copies(&one, &two, &random);
            fill(&two, turn);
            copies(&two, &one, &random);
        }
        close_side(&one);
        close_side(&two);
    }
}

static void bytes_that_lie_together(void **state)
{
    dn_prog_cursor_t cursor;
    uint64_t where = 0;
    uint8_t from[100], to[100];

    dn_prog_start_bytes(&cursor, 1000, 30);
    assert_int_equal(dn_prog_left(&cursor), 30);
    assert_int_equal(dn_prog_next(&cursor, 10, &where), 10);
    assert_int_equal(where, 1000);
    dn_prog_skip(&cursor, 5);
    assert_int_equal(dn_prog_next(&cursor, 100, &where), 15);
    assert_int_equal(where, 1015);
    assert_int_equal(dn_prog_next(&cursor, 100, &where), 0);
    dn_prog_seek(&cursor, 29);
    assert_int_equal(dn_prog_next(&cursor, 100, &where), 1);
    assert_int_equal(where, 1029);
    dn_prog_start_bytes(&cursor, 1000, 0);
    dn_prog_seek(&cursor, 0);
    dn_prog_skip(&cursor, 0);
    assert_int_equal(dn_prog_next(&cursor, 100, &where), 0);

    dn_prog_cursor_t target;
    dn_test_fill(from, sizeof(from), 1);
    memset(to, 0xee, sizeof(to));
    dn_prog_start_bytes(&cursor, (uintptr_t) from, sizeof(from));
    dn_prog_start_bytes(&target, (uintptr_t) to, sizeof(to) - 1);
    assert_int_equal(dn_prog_copy(&target, &cursor, 1000), sizeof(to) - 1);
    assert_memory_equal(to, from, sizeof(to) - 1);
    assert_int_equal(to[sizeof(to) - 1], 0xee);
}

/** A block is read before it is written, so that source and target may overlap. */
static void a_block_moves_within_itself(void **state)
{
    for (uint64_t len = 1; len <= 200; len++) {
        uint8_t memory[256], wanted[256];
        dn_prog_cursor_t cursor;
        dn_test_fill(memory, sizeof(memory), len);
        memcpy(wanted, memory, sizeof(memory));
        memmove(wanted + 20, wanted + 13, len);
        dn_prog_start_bytes(&cursor, (uintptr_t) memory + 13, len);
        assert_int_equal(dn_prog_gather(memory + 20, &cursor, len), len);
        assert_memory_equal(memory, wanted, sizeof(memory));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_programs),
        cmocka_unit_test(every_length_of_blocks),
        cmocka_unit_test(rows_of_one_length),
        cmocka_unit_test(bytes_that_lie_together),
        cmocka_unit_test(a_block_moves_within_itself),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
