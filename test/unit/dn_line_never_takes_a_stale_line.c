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

/** The head word that the receiver waits for. */
static uint64_t wanted_head(const dn_line_pair_t *pair)
{
    return (uint64_t) (uint32_t) (pair->rx.head + 1) | UINT64_C(8) << 32 | UINT64_C(8) << 56;
}

static void step(dn_line_pair_t *pair, size_t len)
{
    uint64_t forged[512];
    dn_line_msg_t msg = {NULL, 0, 0, 0};

    assert_false(dn_line_peek(&pair->rx, &msg));
    for (size_t i = 0; i < 512; i++) {
        forged[i] = wanted_head(pair) + 1 + i % pair->tx.lines;
    }
    if (!dn_line_room(&pair->tx, len)) {
        dn_line_return_credit(&pair->rx);
    }
    assert_true(dn_line_send(&pair->tx, 8, 0, forged, len, NULL, 0));
    assert_true(dn_line_peek(&pair->rx, &msg));
    assert_int_equal(msg.len, len);
    assert_memory_equal(msg.data, forged, len);
    dn_line_advance(&pair->rx, msg.len);
    assert_false(dn_line_peek(&pair->rx, &msg));
    if (dn_line_credit_due(&pair->rx)) {
        dn_line_return_credit(&pair->rx);
        assert_false(dn_line_peek(&pair->rx, &msg));
    }
}

static void payload_that_looks_like_a_head(void **state)
{
    dn_line_pair_t pair;
    uint64_t random = 5;

    dn_line_pair_open(&pair, 16, 4096);
    for (unsigned i = 0; i < 20000; i++) {
        step(&pair, dn_test_length(&random, dn_line_max(4096)));
    }
    dn_line_pair_close(&pair);
}

/** As after 2^32 - 40 messages, all received; the lines hold what the last lap left in them. */
static void sequence_wraps(void **state)
{
    dn_line_pair_t pair;
    const uint32_t start = UINT32_MAX - 39;
    uint64_t random = 6;

    dn_line_pair_open(&pair, 16, 4096);
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t sequence = start - 16 + i;
        pair.ring->line[sequence & 15].head = (uint64_t) (uint32_t) (sequence + 1);
    }
    pair.tx.tail = start;
    pair.rx.head = start;
    dn_line_return_credit(&pair.rx);
    dn_line_refresh(&pair.tx);
    for (unsigned i = 0; i < 200; i++) {
        step(&pair, dn_test_length(&random, dn_line_max(4096)));
    }
    assert_int_equal(pair.tx.tail, 160);
    dn_line_pair_close(&pair);
}

/** The bulk counters wrap too, at another time. */
static void bulk_counter_wraps(void **state)
{
    dn_line_pair_t pair;
    uint64_t random = 7;

    dn_line_pair_open(&pair, 16, 4096 + 64);
    pair.tx.bulk_tail = UINT32_MAX - 99;
    pair.rx.bulk_head = UINT32_MAX - 99;
    dn_line_return_credit(&pair.rx);
    dn_line_refresh(&pair.tx);
    for (unsigned i = 0; i < 2000; i++) {
        step(&pair, dn_test_length(&random, dn_line_max(4096)));
    }
    assert_in_range(pair.tx.bulk_tail, 1, UINT32_MAX / 2);
    dn_line_pair_close(&pair);
}

static void full_ring_at_the_wrap(void **state)
{
    dn_line_pair_t pair;
    dn_line_msg_t msg = {NULL, 0, 0, 0};
    unsigned taken = 0;

    dn_line_pair_open(&pair, 16, 4096);
    pair.tx.tail = UINT32_MAX - 7;
    pair.rx.head = UINT32_MAX - 7;
    dn_line_return_credit(&pair.rx);
    dn_line_refresh(&pair.tx);
    while (dn_line_send(&pair.tx, 8, 0, &taken, sizeof(taken), NULL, 0)) {
        taken++;
    }
    assert_int_equal(taken, 16);
    for (unsigned i = 0; i < taken; i++) {
        assert_true(dn_line_peek(&pair.rx, &msg));
        assert_memory_equal(msg.data, &i, sizeof(i));
        dn_line_advance(&pair.rx, msg.len);
    }
    assert_false(dn_line_peek(&pair.rx, &msg));
    dn_line_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_that_looks_like_a_head),
        cmocka_unit_test(sequence_wraps),
        cmocka_unit_test(bulk_counter_wraps),
        cmocka_unit_test(full_ring_at_the_wrap),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
