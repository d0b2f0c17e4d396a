/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A line left from an earlier lap is never taken for a message: not when its payload looks like a head,
 * not after any number of laps, and not where the 32-bit sequence wraps.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_line_pair.h"

/** Send a message whose every word is a head that the receiver may wait for later, and take it. */
static void step(dn_line_pair_t *pair, size_t len, uint32_t ahead)
{
    uint64_t forged[512];
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};

    assert_false(dn_line_peek(&pair->rx, &msg));
    for (uint32_t i = 0; i < 512; i++) {
        forged[i] = (uint64_t) (uint32_t) (pair->rx.head + 1 + ahead) | UINT64_C(8) << 32 | UINT64_C(8) << 56;
    }
    assert_true(dn_line_send(&pair->tx, 8, 0, forged, len, NULL, 0));
    assert_true(dn_line_peek(&pair->rx, &msg));
    assert_int_equal(msg.len, len);
    assert_memory_equal(msg.data, forged, len);
    dn_line_advance(&pair->rx, &msg);
    assert_false(dn_line_peek(&pair->rx, &msg));
    if (dn_line_credit_due(&pair->rx)) {
        dn_line_return_credit(&pair->rx);
        assert_false(dn_line_peek(&pair->rx, &msg));
    }
}

static void some_steps(dn_line_pair_t *pair, unsigned steps, uint64_t random)
{
    const uint32_t lines = pair->tx.lines;

    for (unsigned i = 0; i < steps; i++) {
        size_t len = dn_test_length(&random, dn_line_max(lines));
        if (0 == dn_test_below(&random, 2)) {
            len = dn_test_below(&random, DN_LINE_INLINE + 1);
        }
        step(pair, len, (uint32_t) dn_test_below(&random, 2 * lines + 2));
    }
}

static void payload_that_looks_like_a_head(void **state)
{
    dn_line_pair_t pair;

    for (uint32_t lines = 8; lines < 72; lines += 1 + lines / 4) {
        dn_line_pair_open(&pair, lines);
        some_steps(&pair, 20000, lines);
        dn_line_pair_close(&pair);
    }
}

/** A window that was filled and then kicked short leaves bytes beyond the message. */
static void what_a_short_kick_leaves(void **state)
{
    dn_line_pair_t pair;
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};
    uint64_t random = 7;

    dn_line_pair_open(&pair, 19);
    for (unsigned i = 0; i < 400000; i++) {
        const size_t reserved =
            dn_test_below(&random, 0 == i % 40 ? dn_line_max(19) + 1 : DN_LINE_INLINE + 1);
        const size_t len = dn_test_below(&random, reserved + 1);
        uint64_t *window = dn_line_reserve(&pair.tx, reserved);
        if (NULL == window) {
            /* Late, so that the sender also comes to the end of the ring. */
            dn_line_return_credit(&pair.rx);
            window = dn_line_reserve(&pair.tx, reserved);
        }
        assert_non_null(window);
        const uint32_t ahead = (uint32_t) dn_test_below(&random, 40);
        for (size_t k = 0; k < reserved / 8; k++) {
            window[k] = (uint64_t) (uint32_t) (pair.rx.head + 1 + ahead) | UINT64_C(8) << 56;
        }
        dn_line_kick(&pair.tx, 8, 0, len);
        assert_true(dn_line_peek(&pair.rx, &msg));
        assert_int_equal(msg.len, len);
        dn_line_advance(&pair.rx, &msg);
        assert_false(dn_line_peek(&pair.rx, &msg));
    }
    dn_line_pair_close(&pair);
}

/** As after nearly 2^32 lines, all received; the lines hold what the last lap left in them. */
static void near_the_wrap(dn_line_pair_t *pair, uint32_t start)
{
    const uint32_t lines = pair->tx.lines;

    for (uint32_t i = 0; i < lines; i++) {
        pair->ring->line[i].head = (uint64_t) (uint32_t) (start - lines + i + 1);
    }
    pair->tx.tail = start;
    pair->rx.head = start;
    dn_line_return_credit(&pair->rx);
    pair->tx.limit = start + lines - 1;
    pair->tx.clean = 0;
}

static void sequence_wraps(void **state)
{
    dn_line_pair_t pair;

    for (uint32_t lines = 16; lines < 72; lines += 7) {
        dn_line_pair_open(&pair, lines);
        near_the_wrap(&pair, UINT32_MAX - 39);
        some_steps(&pair, 200, lines);
        assert_in_range(pair.tx.tail, 160, UINT32_MAX / 2);
        dn_line_pair_close(&pair);
    }
}

static void short_messages_at_the_wrap(void **state)
{
    dn_line_pair_t pair;

    dn_line_pair_open(&pair, 16);
    near_the_wrap(&pair, UINT32_MAX - 39);
    for (unsigned i = 0; i < 100; i++) {
        step(&pair, i % (DN_LINE_INLINE + 1), i % 20);
    }
    assert_in_range(pair.tx.tail, 60, UINT32_MAX / 2);
    dn_line_pair_close(&pair);
}

/** Zeros, and lines never written, look like a head where the sequence is 0. */
static void zeros_where_the_sequence_is_zero(void **state)
{
    static const uint8_t zero[512];
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};

    for (uint32_t back = 1; back <= 32; back++) {
        dn_line_pair_t pair;
        uint64_t random = back;
        dn_line_pair_open(&pair, 16);
        near_the_wrap(&pair, 0 - back);
        for (unsigned i = 0; i < 64; i++) {
            const size_t len = dn_test_below(&random, dn_line_max(16) + 1);
            assert_true(dn_line_send(&pair.tx, 8, 0, zero, len, NULL, 0));
            assert_true(dn_line_peek(&pair.rx, &msg));
            assert_int_equal(msg.len, len);
            dn_line_advance(&pair.rx, &msg);
            assert_false(dn_line_peek(&pair.rx, &msg));
            if (dn_line_credit_due(&pair.rx)) {
                dn_line_return_credit(&pair.rx);
            }
        }
        dn_line_pair_close(&pair);
    }
}

static void full_ring_at_the_wrap(void **state)
{
    dn_line_pair_t pair;
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};
    unsigned taken = 0;

    dn_line_pair_open(&pair, 16);
    near_the_wrap(&pair, UINT32_MAX - 7);
    while (dn_line_send(&pair.tx, 8, 0, &taken, sizeof(taken), NULL, 0)) {
        taken++;
    }
    assert_int_equal(taken, 15);
    for (unsigned i = 0; i < taken; i++) {
        assert_true(dn_line_peek(&pair.rx, &msg));
        assert_memory_equal(msg.data, &i, sizeof(i));
        dn_line_advance(&pair.rx, &msg);
    }
    assert_false(dn_line_peek(&pair.rx, &msg));
    dn_line_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_that_looks_like_a_head),
        cmocka_unit_test(what_a_short_kick_leaves),
        cmocka_unit_test(sequence_wraps),
        cmocka_unit_test(short_messages_at_the_wrap),
        cmocka_unit_test(full_ring_at_the_wrap),
        cmocka_unit_test(zeros_where_the_sequence_is_zero),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
