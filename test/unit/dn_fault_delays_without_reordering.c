/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages that a schedule delays leave late but never out of order, never lost and never twice, windows
 * and plain messages mixed, whatever room the device has; a fence waits for them.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_fault_alone.h"

static dn_status_t send_any(dn_peer_base_t *peer, unsigned number, uint64_t *random)
{
    dn_window_t window;

    if (0 == dn_test_below(random, 2)) {
        return dn_botf(&peer->hot, 8, number & 0xff, &number, sizeof(number), NULL, 0);
    }
    const dn_status_t status = dn_botf_reserve(&peer->hot, 64, &window);
    if (DN_OK == status) {
        assert_int_equal(window.len, 64);
        memcpy(window.data, &number, sizeof(number));
        dn_botf_kick(&peer->hot, &window, 8, number & 0xff, sizeof(number));
    }
    return status;
}

static void order_is_kept(void **state)
{
    static const char *const schedule[] = {"botf:delay/1", "botf:delay/3", "botf:delay/50",
                                           "botf:again/3,botf:delay/3", "botf:delay/5,seed=77"};

    for (unsigned s = 0; s < sizeof(schedule) / sizeof(schedule[0]); s++) {
        dn_peer_base_t peer;
        uint64_t random = s;
        unsigned sent = 0, held = 0;
        dn_fault_t *fault = fault_over(&peer, schedule[s]);

        fake.room = 0;
        while (sent < 4000) {
            const dn_status_t status = send_any(&peer, sent, &random);
            assert_true(DN_OK == status || DN_ERR_AGAIN == status);
            sent += DN_OK == status;
            held += fake.taken < sent;
            if (DN_ERR_AGAIN == status || 0 == dn_test_below(&random, 4)) {
                fake.room += dn_test_below(&random, 5);
                dn_fault_progress(fault);
            }
            assert_in_range(sent - fake.taken, 0, 64);
        }
        fake.room = 4096;
        for (unsigned i = 0; i < 600 && DN_OK != peer.hot.ops.fence(&peer.hot); i++) {
            dn_fault_progress(fault);
        }
        assert_int_equal(fake.taken, sent);
        assert_in_range(held, 1, UINT32_MAX);
        for (unsigned i = 0; i < sent; i++) {
            assert_int_equal(fake.first[i], i);
            assert_int_equal(fake.tag[i], i & 0xff);
        }
        fault_end(fault, &peer);
    }
}

static void a_fence_waits_for_what_is_held(void **state)
{
    dn_peer_base_t peer;
    uint64_t random = 1;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_OK);
    assert_int_equal(send_any(&peer, 1, &random), DN_OK);
    assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_INPROGRESS);
    for (unsigned i = 0; i < 8; i++) {
        dn_fault_progress(fault);
    }
    assert_int_equal(fake.taken, 1);
    assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_OK);
    fault_end(fault, &peer);
}

static void detaching_sends_what_fits_and_tells_of_the_rest(void **state)
{
    dn_peer_base_t peer;
    uint64_t random = 1;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_any(&peer, i, &random), DN_OK);
    }
    fault_end(fault, &peer);
    assert_int_equal(fake.taken, 10);
    assert_ptr_equal(peer.hot.ops.botf, fake_botf);

    fault = fault_over(&peer, "botf:delay/1");
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_any(&peer, i, &random), DN_OK);
    }
    fake.room = 4;
    dn_test_log_expect();
    fault_end(fault, &peer);
    assert_true(dn_test_log_said(1, "6 held messages"));
    assert_int_equal(fake.taken, 4);
}

static void attaching_again_takes_over_what_is_held(void **state)
{
    dn_peer_base_t peer;
    uint64_t random = 1;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_any(&peer, i, &random), DN_OK);
    }
    fake.room = 4;
    dn_fault_detach(fault, &peer);
    assert_int_equal(dn_fault_attach(fault, &peer), DN_OK);
    assert_int_equal(send_any(&peer, 10, &random), DN_OK);
    fake.room = 4096;
    for (unsigned i = 0; i < 20; i++) {
        dn_fault_progress(fault);
    }
    assert_int_equal(fake.taken, 11);
    for (unsigned i = 0; i < 11; i++) {
        assert_int_equal(fake.first[i], i);
    }
    fault_end(fault, &peer);
}

/** The device finds the peer lost while it is given a held message: the port detaches in that call. */
static dn_fault_t *losing;

static dn_status_t losing_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                               size_t head_len, const void *body, size_t body_len)
{
    dn_peer_base_t *base = (dn_peer_base_t *) peer;

    base->life = DN_PEER_LOST;
    dn_fault_detach(losing, base);
    return DN_ERR_UNREACH;
}

static void a_peer_may_be_lost_while_messages_leave(void **state)
{
    dn_peer_base_t peer;
    uint64_t random = 1;

    losing = fault_over(&peer, "seed=1");
    dn_fault_detach(losing, &peer);
    dn_fault_close(losing);
    peer.fault = NULL;
    peer.hot.ops.botf = losing_botf;
    assert_int_equal(dn_fault_open("botf:delay/1", 3, &losing), DN_OK);
    assert_int_equal(dn_fault_attach(losing, &peer), DN_OK);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_any(&peer, i, &random), DN_OK);
    }
    for (unsigned i = 0; i < 20; i++) {
        dn_fault_progress(losing);
    }
    assert_int_equal(peer.life, DN_PEER_LOST);
    assert_int_equal(fake.taken, 0);
    fault_end(losing, &peer);
}

static void windows_never_kicked_are_freed(void **state)
{
    dn_peer_base_t peer;
    dn_window_t window;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    assert_int_equal(dn_botf_reserve(&peer.hot, 64, &window), DN_OK);
    fault_end(fault, &peer);
    assert_int_equal(fake.taken, 0);
}

static void several_peers_are_held_apart(void **state)
{
    dn_peer_base_t peer, other;
    uint64_t random = 1;
    dn_fault_t *fault = fault_over(&peer, "botf:delay/1");

    other = peer;
    other.hot.ops = fake_ops;
    other.pid = 8;
    assert_int_equal(dn_fault_attach(fault, &other), DN_OK);
    assert_int_equal(send_any(&peer, 1, &random), DN_OK);
    assert_int_equal(other.hot.ops.fence(&other.hot), DN_OK);
    assert_int_equal(peer.hot.ops.fence(&peer.hot), DN_INPROGRESS);
    dn_fault_detach(fault, &other);
    dn_fault_detach(fault, &other);
    for (unsigned i = 0; i < 8; i++) {
        dn_fault_progress(fault);
    }
    assert_int_equal(fake.taken, 1);
    fault_end(fault, &peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(a_fence_waits_for_what_is_held),
        cmocka_unit_test(detaching_sends_what_fits_and_tells_of_the_rest),
        cmocka_unit_test(attaching_again_takes_over_what_is_held),
        cmocka_unit_test(a_peer_may_be_lost_while_messages_leave),
        cmocka_unit_test(windows_never_kicked_are_freed),
        cmocka_unit_test(several_peers_are_held_apart),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
