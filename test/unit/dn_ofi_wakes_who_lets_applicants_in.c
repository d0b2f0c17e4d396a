/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process says HELLO again while its old peer is being freed, and waits to be let in. The thread that frees the peer makes no turn
 * afterwards. So it wakes a thread that sleeps, and the watcher. There is no network.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "ofi/dn_ofi_int.h"

static uint32_t bell;
static dn_ofi_t ofi = {.iface = {.bell = &bell}};
static dn_ofi_node_t node;
static dn_ofi_applicant_t applicant;

/** A peer is freed while a thread sleeps. @return whether the watcher was called. */
static int free_peer(void)
{
    dn_ofi_peer_t *peer = calloc(1, sizeof(*peer));
    uint64_t calls = 0;

    assert_non_null(peer);
    *peer = (dn_ofi_peer_t){.base = {.iface = &ofi.iface}, .node = &node, .pidfd = -1};
    ofi.peers = peer;
    ofi.npeers = 1;
    node.users = 2;
    (void) dn_bell_set(&bell);
    dn_ofi_release(&peer->base);
    assert_null(ofi.peers);
    return 0 < read(ofi.watcher.event, &calls, sizeof(calls));
}

static void nobody_is_woken_for_nothing(void **state)
{
    (void) state;
    ofi.applicant = NULL;
    assert_int_equal(free_peer(), 0);
    assert_int_equal(bell % 2, 1);
    assert_int_equal(ofi.retry, 0);
}

static void who_sleeps_is_woken_for_an_applicant(void **state)
{
    (void) state;
    ofi.applicant = &applicant;
    assert_int_equal(free_peer(), 1);
    assert_int_equal(bell % 2, 0);
    assert_int_equal(ofi.retry, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_is_woken_for_nothing),
                                       cmocka_unit_test(who_sleeps_is_woken_for_an_applicant)};

    ofi.watcher.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
