/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A ring takes messages into all of its lines but one, and refuses the next one
 * without touching anything; what it took comes out in order, and then there is room again.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_line_pair.h"

/** Messages of one length until the ring is full. @return how many it took. */
static unsigned fill(dn_line_pair_t *pair, size_t len)
{
    uint8_t data[4096];
    unsigned taken = 0;

    while (1) {
        dn_test_fill(data, len, taken);
        if (!dn_line_send(&pair->tx, 8, taken & 0xff, data, len / 3, data + len / 3, len - len / 3)) {
            return taken;
        }
        taken++;
    }
}

static void drain(dn_line_pair_t *pair, size_t len, unsigned count)
{
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};

    for (unsigned i = 0; i < count; i++) {
        assert_true(dn_line_peek(&pair->rx, &msg));
        assert_int_equal(msg.len, len);
        assert_int_equal(msg.channel, 8);
        assert_int_equal(msg.tag, i & 0xff);
        assert_int_equal(dn_test_mismatch(msg.data, len, i), len);
        dn_line_advance(&pair->rx, &msg);
    }
    assert_false(dn_line_peek(&pair->rx, &msg));
}

static void fill_and_drain(size_t len, uint32_t lines, unsigned expected)
{
    dn_line_pair_t pair;

    dn_line_pair_open(&pair, lines);
    for (unsigned round = 0; round < 9; round++) {
        const unsigned taken = fill(&pair, len);
        /* Later the sender may have gone back to line 0, which it does with a quarter free there. */
        assert_in_range(taken, 0 == round ? expected : (lines / 4 - 1) / dn_line_span(0, len, lines),
                        expected);
        assert_int_equal(fill(&pair, len), 0);
        drain(&pair, len, taken);
        dn_line_return_credit(&pair.rx);
    }
    dn_line_pair_close(&pair);
}

static void short_messages_fill_the_lines(void **state)
{
    fill_and_drain(0, 16, 15);
    fill_and_drain(8, 16, 15);
    fill_and_drain(DN_LINE_INLINE, 16, 15);
    fill_and_drain(DN_LINE_INLINE, 256, 255);
    fill_and_drain(DN_LINE_INLINE, 510, 509);
}

/** Rings of a multiple of what a message takes: none lies across the end. */
static void long_messages_fill_the_lines(void **state)
{
    fill_and_drain(DN_LINE_INLINE + 1, 10, 4);
    fill_and_drain(120, 64, 31);
    fill_and_drain(184, 63, 20);
}

/** The longest message fits wherever it starts, beside an eighth of the ring whose credit is not back. */
static void the_longest_fits_at_every_place(void **state)
{
    static const uint32_t ring[] = {16, 17, 18, 19, 31, 64, 99, 510};

    for (size_t i = 0; i < sizeof(ring) / sizeof(ring[0]); i++) {
        const uint32_t lines = ring[i];
        for (uint32_t start = 0; start < lines; start++) {
            dn_line_pair_t pair;
            dn_line_pair_open(&pair, lines);
            pair.tx.at = pair.rx.at = start;
            pair.tx.tail = pair.rx.head = start;
            pair.rx.published = start - (lines / 8 - 1);
            pair.ring->credit = pair.rx.published;
            assert_false(dn_line_credit_due(&pair.rx));
            assert_true(dn_line_room(&pair.tx, dn_line_max(lines)));
            pair.rx.published--;
            assert_true(dn_line_credit_due(&pair.rx));
            dn_line_pair_close(&pair);
        }
    }
}

static void half_the_credit_gives_half_the_room(void **state)
{
    dn_line_pair_t pair;

    dn_line_pair_open(&pair, 16);
    assert_int_equal(fill(&pair, 8), 15);
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};
    for (unsigned i = 0; i < 8; i++) {
        assert_true(dn_line_peek(&pair.rx, &msg));
        dn_line_advance(&pair.rx, &msg);
    }
    assert_true(dn_line_credit_due(&pair.rx));
    assert_int_equal(fill(&pair, 8), 0);
    dn_line_return_credit(&pair.rx);
    assert_int_equal(fill(&pair, 8), 8);
    dn_line_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_messages_fill_the_lines),
        cmocka_unit_test(long_messages_fill_the_lines),
        cmocka_unit_test(the_longest_fits_at_every_place),
        cmocka_unit_test(half_the_credit_gives_half_the_room),
    };
    int failed = 0;

    for (int i = 0; i < DN_LINE_PAIR_STARTS; i++) {
        dn_line_pair_first = dn_line_pair_start[i];
        failed += cmocka_run_group_tests(tests, dn_unit_setup, NULL);
    }
    return failed;
}
