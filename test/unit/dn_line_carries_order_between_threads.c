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

static void *sender(void *arg)
{
    dn_line_pair_t *pair = arg;
    uint64_t random = 11;
    uint8_t data[4096];

    for (unsigned i = 0; i < MESSAGES; i++) {
        const size_t len = dn_test_length(&random, dn_line_max(LINES));
        dn_test_fill(data, len, i);
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

    dn_line_pair_open(&pair, LINES);
    assert_int_equal(pthread_create(&thread, NULL, sender, &pair), 0);
    for (unsigned i = 0; i < MESSAGES; i++) {
        while (!dn_line_peek(&pair.rx, &msg)) {
            sched_yield();
        }
        const size_t len = dn_test_length(&random, dn_line_max(LINES));
        assert_int_equal(msg.len, len);
        assert_int_equal(msg.tag, i & 0xff);
        assert_int_equal(dn_test_mismatch(msg.data, len, i), len);
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
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
