/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A side may be bytes that lie together, blocks or a use of a program: between any two of them dn_sg_copy moves
 * byte i of one stream to byte i of the other and nothing else, also in parts and behind a skip; dn_sg_next tells
 * every byte's place. Neither the side nor the use is needed once a walk through a use has begun.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_prog_naive.h"
#include "dn_sg.h"

enum { BYTES = 4000, SEEDS = 400, KINDS = 3 };

typedef enum kind { TOGETHER, BLOCKS, USE } kind_t;

typedef struct side {
    int64_t place[BYTES]; /**< of stream byte i, from `base` */
    size_t n;
    uint8_t *memory;
    size_t room;
    uint64_t base;
    dn_block_t block[BYTES + 1];
    size_t blocks;
    dn_sg_t sg; /**< of block */
    dn_prog_t *prog;
    dn_prog_use_t use;
    kind_t kind;
} side_t;

static void lie_together(side_t *side, uint64_t *random)
{
    side->n = dn_test_length(random, BYTES);
    for (size_t i = 0; i < side->n; i++) {
        side->place[i] = (int64_t) i;
    }
}

/** Blocks in falling order, some of them empty. */
static void lie_in_blocks(side_t *side, uint64_t *random)
{
    const size_t n = dn_test_length(random, BYTES);
    int64_t at = 3 * BYTES;

    side->n = side->blocks = 0;
    while (side->n < n) {
        const size_t len = dn_test_length(random, n - side->n < 90 ? n - side->n : 90);
        at -= (int64_t) (len + dn_test_below(random, 3));
        side->block[side->blocks++] = (dn_block_t){(uint64_t) at, len};
        for (size_t i = 0; i < len; i++) {
            side->place[side->n++] = at + (int64_t) i;
        }
        if (BYTES - 1 == side->blocks) {
            break;
        }
    }
}

static void lie_as_used(side_t *side, uint64_t *random)
{
    static dn_prog_op_t op[DN_NAIVE_OPS];
    dn_naive_t naive = {side->place, 0, BYTES};
    size_t ops;

    do {
        ops = dn_naive_random(random, op, BYTES, &side->use.extent);
        side->use.count = 1 + dn_test_length(random, 20);
        dn_naive_use(&naive, op, ops, side->use.count, side->use.extent);
    } while (BYTES < naive.n);
    assert_int_equal(dn_prog_create(op, ops, &side->prog), DN_OK);
    side->use.prog = side->prog;
    side->n = naive.n;
}

static void open_side(side_t *side, kind_t kind, uint64_t *random)
{
    static void (*const lie[KINDS])(side_t *, uint64_t *) = {lie_together, lie_in_blocks, lie_as_used};
    dn_naive_t naive = {.byte = side->place};
    int64_t low, high;

    side->prog = NULL;
    side->kind = kind;
    lie[kind](side, random);
    side->sg = (dn_sg_t){.block = side->block, .count = side->blocks};
    naive.n = side->n;
    dn_naive_bounds(&naive, &low, &high);
    side->room = (size_t) (high - low);
    side->memory = malloc(side->room + 1);
    assert_non_null(side->memory);
    side->base = (uintptr_t) side->memory - (uint64_t) low;
}

static void close_side(side_t *side)
{
    free(side->memory);
    dn_prog_free(side->prog);
}

static uint8_t *byte_of(const side_t *side, size_t i)
{
    return (uint8_t *) (uintptr_t) (side->base + (uint64_t) side->place[i]);
}

static void start(dn_sg_cursor_t *cursor, const side_t *side)
{
    const dn_prog_use_t use = side->use;
    const dn_sg_t used = {.use = &use};
    const dn_sg_t *sg = USE == side->kind ? &used : BLOCKS == side->kind ? &side->sg : NULL;

    assert_int_equal(dn_sg_check(sg, side->base, side->n, UINT64_MAX), DN_OK);
    dn_sg_start(cursor, sg, side->base, side->n);
    assert_int_equal(cursor->left, side->n);
}

static void nexts(side_t *side, uint64_t *random)
{
    dn_sg_cursor_t cursor;
    uint64_t at = 0;
    size_t i = 0;

    start(&cursor, side);
    assert_int_equal(dn_sg_next(&cursor, 0, &at), 0);
    while (i < side->n) {
        const uint64_t max = 0 == dn_test_below(random, 3) ? UINT64_MAX : 1 + dn_test_length(random, 50);
        const uint64_t run = dn_sg_next(&cursor, max, &at);
        assert_in_range(run, 1, max);
        for (uint64_t k = 0; k < run; k++) {
            assert_ptr_equal((uint8_t *) (uintptr_t) (at + k), byte_of(side, i + k));
        }
        i += run;
        assert_int_equal(cursor.left, side->n - i);
    }
    assert_int_equal(dn_sg_next(&cursor, UINT64_MAX, &at), 0);
}

static void copies(side_t *to, side_t *from, uint64_t *random)
{
    const size_t to_first = dn_test_length(random, to->n), from_first = dn_test_length(random, from->n);
    const size_t to_left = to->n - to_first, from_left = from->n - from_first;
    const size_t most = to_left < from_left ? to_left : from_left;
    uint8_t *wanted = malloc(to->room + 1);
    dn_sg_cursor_t to_at, from_at;

    assert_non_null(wanted);
    memset(wanted, 0xee, to->room);
    memset(to->memory, 0xee, to->room);
    dn_test_fill(from->memory, from->room, *random);
    for (size_t i = 0; i < most; i++) {
        wanted[byte_of(to, to_first + i) - to->memory] = *byte_of(from, from_first + i);
    }
    start(&to_at, to);
    start(&from_at, from);
    dn_sg_skip(&to_at, to_first);
    dn_sg_skip(&from_at, from_first);
    for (size_t done = 0; done < most;) {
        const size_t part = 1 + dn_test_below(random, most - done);
        dn_sg_copy(&to_at, &from_at, part);
        done += part;
        assert_int_equal(to_at.left, to_left - done);
        assert_int_equal(from_at.left, from_left - done);
    }
    if (to_left == most) {
        dn_sg_copy(&to_at, &from_at, UINT64_MAX);
    }
    assert_memory_equal(to->memory, wanted, to->room);
    free(wanted);
}

static void any_two_kinds(void **state)
{
    static side_t to, from;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (unsigned pair = 0; pair < KINDS * KINDS; pair++) {
            uint64_t random = seed * 100 + pair;
            open_side(&to, pair / KINDS, &random);
            open_side(&from, pair % KINDS, &random);
            nexts(&to, &random);
            copies(&to, &from, &random);
            close_side(&to);
            close_side(&from);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_kinds),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
