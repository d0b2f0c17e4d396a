/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Random traffic of every length goes round a small ring many times: what was sent, whole or as a window
 * kicked shorter than reserved, is what is received, and nothing else.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_line_pair.h"

/** Messages sent and not yet received, as the ring should hold them. */
typedef struct expectation {
    size_t len;
    unsigned tag;
    uint64_t key;
} expectation_t;

typedef struct traffic {
    dn_line_pair_t pair;
    uint64_t random;
    size_t max;
    uint64_t sent, received;
    expectation_t expected[4096];
} traffic_t;

static size_t any_length(traffic_t *t)
{
    static const size_t edge[] = {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 55, 56, 57, 63, 64, 65, 127, 128, 129};

    switch (dn_test_below(&t->random, 4)) {
    case 0:
        return edge[dn_test_below(&t->random, sizeof(edge) / sizeof(edge[0]))];
    case 1:
        return t->max - dn_test_below(&t->random, 66);
    default:
        return dn_test_length(&t->random, t->max);
    }
}

static int send_one(traffic_t *t)
{
    uint8_t data[65536];
    size_t len = any_length(t);
    expectation_t *e = &t->expected[t->sent % 4096];

    e->key = t->sent;
    e->tag = (unsigned) dn_test_below(&t->random, 256);
    if (0 == dn_test_below(&t->random, 2)) {
        const size_t head_len = dn_test_below(&t->random, len + 1);
        dn_test_fill(data, len, e->key);
        if (!dn_line_send(&t->pair.tx, 9, e->tag, data, head_len, data + head_len, len - head_len)) {
            return 0;
        }
    } else {
        void *window = dn_line_reserve(&t->pair.tx, len);
        if (NULL == window) {
            return 0;
        }
        dn_test_fill(window, len, e->key);
        if (0 == dn_test_below(&t->random, 2)) {
            len = dn_test_below(&t->random, len + 1);
        }
        dn_line_kick(&t->pair.tx, 9, e->tag, len);
    }
    e->len = len;
    t->sent++;
    return 1;
}

static int receive_one(traffic_t *t)
{
    dn_line_msg_t msg = {NULL, 0, 0, 0, 0, 0};
    const expectation_t *e = &t->expected[t->received % 4096];

    if (!dn_line_peek(&t->pair.rx, &msg)) {
        assert_int_equal(t->sent, t->received);
        return 0;
    }
    assert_in_range(t->received, 0, t->sent - 1);
    assert_int_equal(msg.len, e->len);
    assert_int_equal(msg.tag, e->tag);
    assert_int_equal(msg.channel, 9);
    assert_int_equal((uintptr_t) msg.data % 8, 0);
    assert_int_equal(dn_test_mismatch(msg.data, e->len, e->key), e->len);
    dn_line_advance(&t->pair.rx, &msg);
    t->received++;
    if (dn_line_credit_due(&t->pair.rx)) {
        dn_line_return_credit(&t->pair.rx);
    }
    return 1;
}

/** @param[in] all  Messages, of which dn_test_rounds() go round. */
static void go_round(uint32_t lines, unsigned all)
{
    const unsigned messages = dn_test_rounds(all);
    static traffic_t t;

    memset(&t, 0, sizeof(t));
    t.random = lines * UINT64_C(1000003);
    t.max = dn_line_max(lines);
    dn_line_pair_open(&t.pair, lines);
    while (t.sent < messages) {
        const uint64_t before = t.sent + t.received;
        for (uint64_t n = dn_test_below(&t.random, lines); 0 < n && send_one(&t); n--) {
        }
        for (uint64_t n = dn_test_below(&t.random, lines); 0 < n && receive_one(&t); n--) {
        }
        if (before == t.sent + t.received) {
            /* Once all is received there is room for anything, with the credit that is back by then. */
            while (receive_one(&t)) {
            }
            assert_true(dn_line_room(&t.pair.tx, t.max));
        }
    }
    while (receive_one(&t)) {
    }
    assert_int_equal(t.sent, t.received);
    dn_line_pair_close(&t.pair);
}

static void small_rings(void **state)
{
    go_round(8, 100000);
    go_round(9, 100000);
    go_round(68, 100000);
}

static void the_usual_ring(void **state)
{
    go_round(510, 20000);
}

static void large_rings(void **state)
{
    go_round(2048, 3000);
    go_round(4095, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_rings),
        cmocka_unit_test(the_usual_ring),
        cmocka_unit_test(large_rings),
    };
    int failed = 0;

    for (int i = 0; i < DN_LINE_PAIR_STARTS; i++) {
        dn_line_pair_first = dn_line_pair_start[i];
        failed += cmocka_run_group_tests(tests, dn_unit_setup, NULL);
    }
    return failed;
}
