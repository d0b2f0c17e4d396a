/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A ring takes as many messages as it has lines, or as its bulk part holds, and refuses the next one
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
    dn_line_msg_t msg = {NULL, 0, 0, 0};

    for (unsigned i = 0; i < count; i++) {
        assert_true(dn_line_peek(&pair->rx, &msg));
        assert_int_equal(msg.len, len);
        assert_int_equal(msg.channel, 8);
        assert_int_equal(msg.tag, i & 0xff);
        assert_int_equal(dn_test_mismatch(msg.data, len, i), len);
        dn_line_advance(&pair->rx, msg.len);
    }
    assert_false(dn_line_peek(&pair->rx, &msg));
}

static void fill_and_drain(size_t len, uint32_t lines, uint32_t bulk_bytes, unsigned expected)
{
    dn_line_pair_t pair;
    uint8_t byte = 0;

    dn_line_pair_open(&pair, lines, bulk_bytes);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(fill(&pair, len), expected);
        assert_int_equal(fill(&pair, len), 0);
        drain(&pair, len, expected);
        assert_int_equal(dn_line_send(&pair.tx, 8, 0, &byte, 0, NULL, 0), expected < lines);
        if (expected < lines) {
            drain(&pair, 0, 1);
        }
        dn_line_return_credit(&pair.rx);
    }
    dn_line_pair_close(&pair);
}

static void short_messages_fill_the_lines(void **state)
{
    fill_and_drain(0, 16, 4096, 16);
    fill_and_drain(8, 16, 4096, 16);
    fill_and_drain(DN_LINE_INLINE, 16, 4096, 16);
    fill_and_drain(DN_LINE_INLINE, 256, 4096, 256);
}

static void long_messages_fill_the_bulk_part(void **state)
{
    fill_and_drain(DN_LINE_INLINE + 1, 4096, 4096, 64);
    fill_and_drain(128, 4096, 4096, 32);
    fill_and_drain(dn_line_max(4096), 4096, 4096, 2);
}

static void long_messages_fill_the_lines(void **state)
{
    fill_and_drain(DN_LINE_INLINE + 1, 16, 4096, 16);
}

static void half_the_credit_gives_half_the_room(void **state)
{
    dn_line_pair_t pair;

    dn_line_pair_open(&pair, 16, 4096);
    assert_int_equal(fill(&pair, 8), 16);
    dn_line_msg_t msg = {NULL, 0, 0, 0};
    for (unsigned i = 0; i < 8; i++) {
        assert_true(dn_line_peek(&pair.rx, &msg));
        dn_line_advance(&pair.rx, msg.len);
    }
    assert_true(dn_line_credit_owed(&pair.rx));
    assert_true(dn_line_credit_due(&pair.rx));
    assert_int_equal(fill(&pair, 8), 0);
    dn_line_return_credit(&pair.rx);
    assert_false(dn_line_credit_owed(&pair.rx));
    assert_int_equal(fill(&pair, 8), 8);
    dn_line_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_messages_fill_the_lines),
        cmocka_unit_test(long_messages_fill_the_bulk_part),
        cmocka_unit_test(long_messages_fill_the_lines),
        cmocka_unit_test(half_the_credit_gives_half_the_room),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
