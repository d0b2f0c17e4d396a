/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Faults come as the schedule says: as often, the same ones for the same seed, and with the effect named.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_fault_alone.h"

enum { CALLS = 4000 };

static dn_status_t send_word(dn_peer_base_t *peer, unsigned word)
{
    return dn_botf(&peer->hot, 8, word & 0xff, &word, 2, (const uint8_t *) &word + 2, 2);
}

static void about_one_in_n_is_refused(void **state)
{
    static const char *const schedule[] = {"all:again/4", "all:again/4,seed=2", "botf:again/4,all:again/4"};
    dn_peer_base_t peer;
    unsigned before = 0;

    for (unsigned s = 0; s < 3; s++) {
        dn_fault_t *fault = fault_over(&peer, schedule[s]);
        unsigned again = 0;
        for (unsigned i = 0; i < CALLS; i++) {
            const dn_status_t status = send_word(&peer, i);
            assert_true(DN_OK == status || DN_ERR_AGAIN == status);
            again += DN_ERR_AGAIN == status;
        }
        assert_int_equal(fake.taken, CALLS - again);
        if (2 == s) {
            assert_in_range(again, CALLS * 7 / 16 - 150, CALLS * 7 / 16 + 150);
        } else {
            assert_in_range(again, CALLS / 4 - 150, CALLS / 4 + 150);
        }
        assert_int_not_equal(again, before);
        before = again;
        fault_end(fault, &peer);
    }
}

static void every_operation_is_refused_before_it_starts(void **state)
{
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "all:again/1");

    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(send_word(&peer, i), DN_ERR_AGAIN);
        assert_int_equal(dn_botf_reserve(&peer.hot, 8, &window), DN_ERR_AGAIN);
        assert_int_equal(dn_aotf(&peer.hot, 0, 0, 8), DN_ERR_AGAIN);
        assert_int_equal(dn_push(&peer.hot, NULL), DN_ERR_AGAIN);
        assert_int_equal(dn_pull(&peer.hot, NULL), DN_ERR_AGAIN);
        assert_int_equal(dn_atomic(&peer.hot, NULL), DN_ERR_AGAIN);
        assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_INPROGRESS);
    }
    assert_int_equal(fake.taken + fake.room, 4096);
    for (unsigned op = 0; op < OP_COUNT; op++) {
        assert_int_equal(fake.calls[op] + fake.core[op], 0);
    }
    fault_end(fault, &peer);
}

static void the_same_seed_gives_the_same_faults(void **state)
{
    dn_peer_base_t peer;
    uint8_t seen[4][CALLS];
    static const char *const schedule[4] = {"botf:again/3,seed=9", "botf:again/3,seed=9",
                                            "botf:again/3,seed=10", NULL};

    for (unsigned s = 0; s < 3; s++) {
        dn_fault_t *fault = fault_over(&peer, schedule[s]);
        for (unsigned i = 0; i < CALLS; i++) {
            seen[s][i] = DN_OK == send_word(&peer, i);
        }
        fault_end(fault, &peer);
    }
    assert_memory_equal(seen[0], seen[1], CALLS);
    assert_int_not_equal(memcmp(seen[0], seen[2], CALLS), 0);
}

static void slow_transfers_go_to_the_core_processor(void **state)
{
    dn_peer_base_t peer;
    dn_fault_t *fault = fault_over(&peer, "all:slow/2");

    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(dn_push(&peer.hot, NULL), DN_OK);
        assert_int_equal(dn_pull(&peer.hot, NULL), DN_OK);
        assert_int_equal(dn_atomic(&peer.hot, NULL), DN_OK);
    }
    for (unsigned op = OP_PUSH; op <= OP_ATOMIC; op++) {
        assert_int_equal(fake.calls[op] + fake.core[op], CALLS);
        assert_in_range(fake.core[op], CALLS / 2 - 200, CALLS / 2 + 200);
    }
    fault_end(fault, &peer);
}

static void corrupt_turns_one_bit_over(void **state)
{
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "botf:corrupt/1");

    for (unsigned i = 0; i < 500; i++) {
        assert_int_equal(send_word(&peer, i), DN_OK);
        assert_int_equal(__builtin_popcount(fake.first[2 * i] ^ i), 1);
        assert_int_equal(dn_botf_reserve(&peer.hot, 8, &window), DN_OK);
        memset(window.data, 0, 8);
        dn_botf_kick(&peer.hot, &window, 8, 0, 4);
        assert_int_equal(__builtin_popcount(fake.first[2 * i + 1]), 1);
        assert_int_equal(fake.len[2 * i + 1], 4);
    }
    assert_int_equal(dn_botf(&peer.hot, 8, 0, NULL, 0, NULL, 0), DN_OK);
    assert_int_equal(__builtin_popcount(fake.tag[1000]), 1);
    fault_end(fault, &peer);
}

static void drop_loses_and_dup_doubles(void **state)
{
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "all:drop/1");

    assert_int_equal(send_word(&peer, 1), DN_OK);
    assert_int_equal(dn_botf_reserve(&peer.hot, 8, &window), DN_OK);
    dn_botf_kick(&peer.hot, &window, 8, 0, 8);
    assert_int_equal(dn_aotf(&peer.hot, 0, 0, 8), DN_OK);
    dn_fault_progress(fault);
    assert_int_equal(fake.taken + fake.calls[OP_AOTF], 0);
    fault_end(fault, &peer);

    fault = fault_over(&peer, "botf:dup/1");
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_word(&peer, i), DN_OK);
    }
    assert_int_equal(fake.taken, 20);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(fake.first[i], i / 2);
    }
    fault_end(fault, &peer);
}

static void kill_ends_the_peer(void **state)
{
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "pull:kill/1");

    assert_int_equal(send_word(&peer, 1), DN_OK);
    assert_int_equal(dn_pull(&peer.hot, NULL), DN_ERR_UNREACH);
    assert_int_equal(fake.lost, 0);
    assert_int_equal(send_word(&peer, 1), DN_ERR_UNREACH);
    assert_int_equal(dn_botf_reserve(&peer.hot, 8, &window), DN_ERR_UNREACH);
    assert_int_equal(dn_aotf(&peer.hot, 0, 0, 8), DN_ERR_UNREACH);
    assert_int_equal(dn_push(&peer.hot, NULL), DN_ERR_UNREACH);
    assert_int_equal(dn_atomic(&peer.hot, NULL), DN_ERR_UNREACH);
    assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_ERR_UNREACH);
    dn_fault_progress(fault);
    dn_fault_progress(fault);
    assert_int_equal(fake.lost, 1);
    assert_int_equal(fake.taken, 1);
    fault_end(fault, &peer);
}

static void a_message_too_long_is_left_to_the_device(void **state)
{
    static uint8_t data[5000];
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    assert_int_equal(dn_botf(&peer.hot, 8, 0, data, 4000, data, 97), DN_ERR_RANGE);
    assert_int_equal(dn_botf(&peer.hot, 8, 0, data, 4097, data, 0), DN_ERR_RANGE);
    assert_int_equal(dn_botf_reserve(&peer.hot, 4097, &window), DN_ERR_RANGE);
    fault_end(fault, &peer);
    assert_int_equal(fake.taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(about_one_in_n_is_refused),
        cmocka_unit_test(every_operation_is_refused_before_it_starts),
        cmocka_unit_test(the_same_seed_gives_the_same_faults),
        cmocka_unit_test(slow_transfers_go_to_the_core_processor),
        cmocka_unit_test(corrupt_turns_one_bit_over),
        cmocka_unit_test(drop_loses_and_dup_doubles),
        cmocka_unit_test(kill_ends_the_peer),
        cmocka_unit_test(a_message_too_long_is_left_to_the_device),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
