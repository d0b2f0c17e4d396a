/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * One thread sends, another receives: the orders W0, R0, R1 and W1 of dn_line.h are enough. Built with a
 * thread sanitizer this shows it of the memory model, and not of this machine alone.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <pthread.h>
#include <sched.h>

#include "dn_line_pair.h"

enum { MESSAGES = 30000, LINES = 64 };

/** Every word of a message is a head that the receiver will soon wait for: the sender has to wipe. */
static void look_like_heads(uint8_t *data, size_t len, uint32_t tail, unsigned i)
{
    const uint64_t head = (uint64_t) (uint32_t) (tail + 1 + LINES + i % LINES) | UINT64_C(8) << 56;

    for (size_t k = 0; k < len; k++) {
        data[k] = (uint8_t) (head >> (8 * (k % 8)));
    }
}

static void *sender(void *arg)
{
    dn_line_pair_t *pair = arg;
    uint64_t random = 11;
    uint8_t data[4096];

    for (unsigned i = 0; i < MESSAGES; i++) {
        const size_t len = dn_test_length(&random, dn_line_max(LINES));
        look_like_heads(data, len, pair->tx.tail, i);
        while (!dn_line_send(&pair->tx, 8, i & 0xff, data, len / 2, data + len / 2, len - len / 2)) {
            sched_yield();
        }
    }
    return NULL;
}

static void two_threads_keep_order(void **state)
{
    dn_line_pair_t pair;
    pthread_t thread;
    uint64_t random = 11;
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};
    uint8_t expected[4096];

    dn_line_pair_open(&pair, LINES);
    assert_int_equal(pthread_create(&thread, NULL, sender, &pair), 0);
    for (unsigned i = 0; i < MESSAGES; i++) {
        while (!dn_line_peek(&pair.rx, &msg)) {
            sched_yield();
        }
        const size_t len = dn_test_length(&random, dn_line_max(LINES));
        assert_int_equal(msg.len, len);
        assert_int_equal(msg.tag, i & 0xff);
        look_like_heads(expected, len, pair.rx.head, i);
        assert_memory_equal(msg.data, expected, len);
        dn_line_advance(&pair.rx, &msg);
        if (dn_line_credit_due(&pair.rx)) {
            dn_line_return_credit(&pair.rx);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    dn_line_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_threads_keep_order)};
    int failed = 0;

    for (int i = 0; i < DN_LINE_PAIR_STARTS; i++) {
        dn_line_pair_first = dn_line_pair_start[i];
        failed += cmocka_run_group_tests(tests, dn_unit_setup, NULL);
    }
    return failed;
}
