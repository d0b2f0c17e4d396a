/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A message that names a program is served when all its numbers fit each other, the program and the segment. Else
 * no byte is stored: malformed ones are counted and not answered.
 */
#include "dn_config.h"

#include "dn_unit_core.h"

static uint64_t push(const dn_unit_core_letter_t *letter, size_t n)
{
    memset(dn_unit_core.memory, BLANK, ROOM);
    return dn_unit_core_give(DN_CORE_PUSH, letter, offsetof(dn_unit_core_letter_t, data) + n);
}

/** Ship the program. */
static void ship(void **state)
{
    const dn_unit_core_parcel_t parcel = dn_unit_core_parcel();

    assert_int_equal(dn_unit_core_give(DN_CORE_PROG, &parcel, sizeof(parcel.piece) - 1), 1);
    assert_int_equal(dn_unit_core_give(DN_CORE_PROG, &parcel, sizeof(parcel.piece)), 1);
    assert_int_equal(dn_unit_core_give(DN_CORE_PROG, &parcel, sizeof(parcel.piece) + parcel.piece.len), 0);
}

static void what_fits_is_stored(void **state)
{
    dn_unit_core_letter_t letter = dn_unit_core_letter();

    assert_int_equal(push(&letter, LEN), 0);
    for (size_t i = 0; i < LEN; i++) {
        assert_int_equal(dn_unit_core.memory[dn_unit_core_place(i)], dn_test_byte(1, i));
        dn_unit_core.memory[dn_unit_core_place(i)] = BLANK;
    }
    dn_unit_core_expect_nothing();
    /* A part from the middle. */
    letter.use.at = SIZE + 6;
    assert_int_equal(push(&letter, 4), 0);
    assert_int_equal(dn_unit_core.memory[106], dn_test_byte(1, 0));
    assert_int_equal(dn_unit_core.memory[107], dn_test_byte(1, 1));
    assert_int_equal(dn_unit_core.memory[150], dn_test_byte(1, 2));
    assert_int_equal(dn_unit_core.memory[151], dn_test_byte(1, 3));
}

static void what_is_malformed_is_counted(void **state)
{
    dn_unit_core_letter_t letter = dn_unit_core_letter();

    assert_int_equal(push(&letter, LEN + 1), 1);
    letter.use.at = 1;
    assert_int_equal(push(&letter, LEN), 1);
    letter.use.at = LEN + 1;
    assert_int_equal(push(&letter, 0), 1);
    letter.use.at = UINT64_MAX;
    assert_int_equal(push(&letter, 1), 1);
    letter = dn_unit_core_letter();
    letter.use.id++;
    assert_int_equal(push(&letter, LEN), 1);
    letter = dn_unit_core_letter();
    letter.request.blocks++;
    assert_int_equal(push(&letter, LEN), 1);
    letter.request.blocks = UINT32_MAX;
    assert_int_equal(push(&letter, LEN), 1);
    letter = dn_unit_core_letter();
    letter.request.flags |= DN_CORE_NEAR;
    assert_int_equal(push(&letter, LEN), 1);
    assert_int_equal(dn_unit_core_give(DN_CORE_PULL, &letter, offsetof(dn_unit_core_letter_t, data)), 1);
    letter = dn_unit_core_letter();
    assert_int_equal(dn_unit_core_give(DN_CORE_PUSH, &letter, offsetof(dn_unit_core_letter_t, data) - 1), 1);
    assert_int_equal(dn_unit_core_give(DN_CORE_PULL, &letter, sizeof(letter.request)), 1);
    letter.use.len = letter.use.count = 0;
    assert_int_equal(dn_unit_core_give(DN_CORE_PULL, &letter, offsetof(dn_unit_core_letter_t, data)), 1);
    dn_unit_core_expect_nothing();
}

/** These are answered with an error: they would be right for another segment. */
static void what_leaves_the_segment_is_not_stored(void **state)
{
    dn_unit_core_letter_t letter = dn_unit_core_letter();
    dn_counters_t before, counters;

    dn_counters(dn_unit_core.port, &before);
    letter.use.roff = 9;
    assert_int_equal(push(&letter, LEN), 0);
    dn_unit_core_expect_nothing();
    letter.use.roff = ROOM - 255;
    assert_int_equal(push(&letter, LEN), 0);
    dn_unit_core_expect_nothing();
    letter = dn_unit_core_letter();
    letter.use.count++;
    assert_int_equal(push(&letter, LEN), 0);
    dn_unit_core_expect_nothing();
    letter.use.count = UINT64_MAX;
    assert_int_equal(push(&letter, LEN), 0);
    dn_unit_core_expect_nothing();
    letter = dn_unit_core_letter();
    letter.request.sid_generation++;
    assert_int_equal(push(&letter, LEN), 0);
    dn_unit_core_expect_nothing();
    /* The five answers are for nobody's operation, and so are dropped when they come. */
    for (unsigned turn = 0; turn < 100; turn++) {
        dn_progress(dn_unit_core.port);
    }
    dn_counters(dn_unit_core.port, &counters);
    assert_int_equal(counters.dropped, before.dropped + 5);
}

/** Lines of a ring of five: the first bytes of the LLCM. */
typedef struct lines {
    dn_core_lines_t head;
    uint8_t data[5 * 10 + 1];
} lines_t;

static lines_t right_lines(void)
{
    lines_t lines = {
        .head = {.ring = {.depth = 5, .at = 3, .piece = 10}, .flag = UINT64_C(9) << 32 | UINT32_MAX}};

    dn_test_fill(lines.data, sizeof(lines.data), 2);
    return lines;
}

static uint64_t give_lines(const lines_t *lines, size_t n)
{
    return dn_unit_core_give(DN_CORE_LINES, lines, offsetof(lines_t, data) + n);
}

static void lines_are_stored_around_their_ring(void **state)
{
    const lines_t lines = right_lines();
    uint64_t off, flag;
    void *mem = NULL;

    assert_int_equal(dn_llcm_alloc(dn_unit_core.port, 5 * 64, &off, &mem), DN_OK);
    assert_int_equal(off, 0);
    uint8_t *llcm = mem;
    memset(llcm, BLANK, 5 * 64);
    assert_int_equal(give_lines(&lines, 25), 0);
    for (size_t i = 0; i < 5; i++) {
        uint8_t *line = llcm + (3 + i) % 5 * 64;
        const size_t len = i < 2 ? 10 : 2 == i ? 5 : 0;
        for (size_t k = 0; k < 56; k++) {
            assert_int_equal(line[k], k < len ? dn_test_byte(2, 10 * i + k) : BLANK);
        }
        memcpy(&flag, line + 56, sizeof(flag));
        /* The lower half begins again. */
        assert_int_equal(flag, 3 > i ? UINT64_C(9) << 32 | (uint32_t) (UINT32_MAX + i)
                                     : UINT64_C(0x5a5a5a5a5a5a5a5a));
    }
    dn_llcm_free(dn_unit_core.port, off, 5 * 64);
}

static void lines_out_of_place_are_counted(void **state)
{
    dn_peer_attr_t attr;
    lines_t lines = right_lines();

    dn_peer_attr(dn_unit_core.self, &attr);
    assert_int_equal(give_lines(&lines, 5 * 10 + 1), 1);
    assert_int_equal(dn_unit_core_give(DN_CORE_LINES, &lines, sizeof(lines.head) - 1), 1);
    lines.head.ring.at = 5;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.depth = 0;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.piece = 0;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.piece = DN_AOTF_LINE_MAX + 1;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.off = 8;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.off = attr.llcm_len - 4 * 64;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines.head.ring.off = UINT64_MAX - 63;
    assert_int_equal(give_lines(&lines, 10), 1);
    lines = right_lines();
    lines.head.ring.depth = UINT32_MAX;
    assert_int_equal(give_lines(&lines, 10), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ship),
        cmocka_unit_test(what_fits_is_stored),
        cmocka_unit_test(what_is_malformed_is_counted),
        cmocka_unit_test(what_leaves_the_segment_is_not_stored),
        cmocka_unit_test(lines_are_stored_around_their_ring),
        cmocka_unit_test(lines_out_of_place_are_counted),
    };
    return cmocka_run_group_tests(tests, dn_unit_core_setup, dn_unit_core_teardown);
}
