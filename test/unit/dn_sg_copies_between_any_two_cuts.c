/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Whatever way both sides are cut into blocks, empty ones included, dn_sg_copy moves byte i of one
 * stream to byte i of the other and nothing else; so do gather, scatter and a copy in parts.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_sg.h"

enum { BYTES = 3000, ROOM = 2 * BYTES, BLOCKS = 2000 };

typedef struct side {
    uint8_t memory[ROOM];
    dn_block_t block[BLOCKS];
    dn_sg_t sg;
    size_t place[BYTES]; /**< of stream byte i in memory, by the definition of dn_sg_t */
} side_t;

/** Cut 0 .. BYTES into blocks at rising places with gaps, then exchange blocks at random. */
static void cut(side_t *side, uint64_t *random)
{
    size_t count = 0, at = 0, left = BYTES;

    while (0 < left) {
        assert_in_range(count, 0, BLOCKS - 1);
        size_t len = dn_test_below(random, 9) * (1 + dn_test_below(random, 20));
        len = len < left ? len : left;
        len = BLOCKS - 1 == count ? left : len;
        const size_t slack = ROOM - at - left;
        at += dn_test_below(random, 8) % (slack + 1);
        side->block[count++] = (dn_block_t){at, len};
        at += len;
        left -= len;
    }
    for (size_t i = count; 1 < i; i--) {
        const size_t j = dn_test_below(random, i);
        const dn_block_t block = side->block[i - 1];
        side->block[i - 1] = side->block[j];
        side->block[j] = block;
    }
    side->sg = (dn_sg_t){.block = side->block, .count = count};
    size_t stream = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < side->block[i].len; k++) {
            side->place[stream++] = side->block[i].at + k;
        }
    }
    assert_int_equal(stream, BYTES);
    assert_int_equal(dn_sg_check(&side->sg, 0, BYTES, ROOM), DN_OK);
}

static void start(dn_sg_cursor_t *cursor, side_t *side)
{
    dn_sg_start(cursor, &side->sg, (uintptr_t) side->memory, BYTES);
}

static void one_copy(uint64_t seed)
{
    static side_t from, to;
    static uint8_t wanted[ROOM], stream[BYTES];
    dn_sg_cursor_t from_at, to_at;
    uint64_t random = seed;

    cut(&from, &random);
    cut(&to, &random);
    dn_test_fill(from.memory, ROOM, seed);
    memset(to.memory, 0xee, ROOM);
    memset(wanted, 0xee, ROOM);
    for (size_t i = 0; i < BYTES; i++) {
        wanted[to.place[i]] = from.memory[from.place[i]];
    }
    start(&from_at, &from);
    start(&to_at, &to);
    for (size_t left = BYTES; 0 < left;) {
        const size_t part = 1 + dn_test_below(&random, left);
        dn_sg_copy(&to_at, &from_at, part);
        left -= part;
    }
    assert_memory_equal(to.memory, wanted, ROOM);

    start(&from_at, &from);
    dn_sg_gather(stream, &from_at, BYTES);
    memset(to.memory, 0xee, ROOM);
    start(&to_at, &to);
    dn_sg_scatter(&to_at, stream, BYTES);
    assert_memory_equal(to.memory, wanted, ROOM);

    const size_t ahead = dn_test_below(&random, BYTES);
    start(&from_at, &from);
    dn_sg_skip(&from_at, ahead);
    uint8_t byte = 0;
    dn_sg_gather(&byte, &from_at, 1);
    assert_int_equal(byte, from.memory[from.place[ahead]]);
}

static void any_two_cuts(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        one_copy(seed);
    }
}

static void nothing_is_left_at_the_end(void **state)
{
    const dn_block_t block[] = {{4, 0}, {8, 3}, {1, 0}, {2, 0}};
    const dn_sg_t sg = {.block = block, .count = 4};
    dn_sg_cursor_t cursor;
    uint64_t at = 0;

    dn_sg_start(&cursor, &sg, 100, 3);
    assert_int_equal(dn_sg_next(&cursor, 0, &at), 0);
    assert_int_equal(dn_sg_next(&cursor, 2, &at), 2);
    assert_int_equal(at, 108);
    assert_int_equal(dn_sg_next(&cursor, UINT64_MAX, &at), 1);
    assert_int_equal(at, 110);
    assert_int_equal(dn_sg_next(&cursor, UINT64_MAX, &at), 0);
    dn_sg_start(&cursor, NULL, 100, 3);
    assert_int_equal(dn_sg_next(&cursor, UINT64_MAX, &at), 3);
    assert_int_equal(dn_sg_next(&cursor, UINT64_MAX, &at), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_cuts),
        cmocka_unit_test(nothing_is_left_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
