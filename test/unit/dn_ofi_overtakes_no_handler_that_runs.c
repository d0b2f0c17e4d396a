/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * PUSHes of one peer keep their order where the watcher does some of them, and handlers do the others. A PUSH that waits for its handler
 * holds back those behind it until its handler has returned. No handler runs for a peer that is being freed. There is no network: the test
 * hands the messages to the device.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"
#include "ofi/dn_ofi_int.h"

/** A PUSH as it comes: it stores one word. */
typedef struct push {
    dn_core_request_t request;
    dn_block_t block;
    uint64_t value;
} push_t;

enum { ALONE, BY_HANDLER }; /**< generation of the segment: the device knows the first one */

static uint64_t word; /**< the segment */
static dn_handler_t handler[DN_CHAN_MAX];
static dn_counters_t counters;
static uint32_t bell;
static dn_ofi_segment_t segment = {.base = (uint8_t *) &word, .len = sizeof(word), .generation = ALONE};
static dn_ofi_t ofi = {
    .iface = {.handler = handler, .counters = &counters, .bell = &bell},
    .pool = {{.room = DN_OFI_SMALL, .each = 8}, {.room = DN_OFI_MIDDLE}, {.room = DN_OFI_MESSAGE_MAX}},
    .where = {.credit_max = 1024, .botf_max = 1024},
    .segment = &segment,
    .nsegments = 1,
};
static dn_ofi_peer_t peer = {.base = {.iface = &ofi.iface, .life = DN_PEER_CONNECTED},
                             .owner = DN_OFI_KNOWN,
                             .rx = {.state = DN_OFI_RX_OPEN}};
static unsigned handled;

/** The next message of the peer comes, as if the watcher read it. */
static void come(uint32_t generation, uint64_t value)
{
    const push_t push = {.request = {.sid_generation = generation, .blocks = 1},
                         .block = {.len = sizeof(value)},
                         .value = value};
    dn_ofi_buffer_t *buffer = dn_ofi_buffer(&ofi, sizeof(dn_ofi_head_t) + sizeof(push));

    assert_non_null(buffer);
    *dn_ofi_head(buffer) = (dn_ofi_head_t){.number = peer.rx.number,
                                           .len = sizeof(push),
                                           .kind = DN_OFI_BOTF,
                                           .channel = DN_CHAN_CORE,
                                           .tag = DN_CORE_PUSH};
    memcpy(dn_ofi_head(buffer) + 1, &push, sizeof(push));
    dn_ofi_lock(&ofi);
    dn_ofi_sequence(&ofi, &peer, buffer);
    dn_ofi_unlock(&ofi);
}

/** dn_handler_fn_t: do a PUSH. While the first one is being done, others come. */
static void handle(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    assert_int_equal(tag, DN_CORE_PUSH);
    assert_int_equal(len, sizeof(push_t));
    word = ((const push_t *) data)->value;
    if (1 == ++handled) {
        come(ALONE, 2);
        assert_int_equal(word, 1);
        /* A handler that makes progress has the next one run inside of it. */
        assert_int_equal(dn_ofi_recv(&peer.base, 1), 1);
        assert_int_equal(word, 2);
        come(ALONE, 3);
        assert_int_equal(word, 2);
    }
}

static void what_comes_while_a_handler_runs_waits(void **state)
{
    (void) state;
    handler[DN_CHAN_CORE].fn = handle;
    come(BY_HANDLER, 1);
    assert_int_equal(word, 0);
    assert_int_equal(dn_ofi_recv(&peer.base, 10), 2);
    assert_int_equal(handled, 3);
    assert_int_equal(word, 3);
    assert_int_equal(peer.rx.later, 0);
    come(ALONE, 4);
    assert_int_equal(word, 4);
    assert_int_equal(handled, 3);
}

/** A peer that this process has left waits for its handler, which answers: the peer counts as one that came from then on. */
static void what_comes_behind_a_request_of_a_left_peer_waits(void **state)
{
    (void) state;
    peer.base.life = DN_PEER_LEFT;
    come(ALONE, 7);
    assert_int_equal(word, 4);
    peer.base.life = DN_PEER_CAME;
    come(ALONE, 8);
    assert_int_equal(word, 4);
    assert_int_equal(dn_ofi_recv(&peer.base, 10), 2);
    assert_int_equal(word, 8);
    assert_int_equal(peer.rx.later, 0);
}

/** A peer is being freed. What it has sent waits, or comes now. */
static void a_peer_that_goes_is_not_queued(void **state)
{
    (void) state;
    come(BY_HANDLER, 5);
    assert_int_equal(ofi.nready, 1);
    dn_ofi_part(&ofi, &peer);
    assert_int_equal(ofi.nready, 0);
    come(BY_HANDLER, 6);
    assert_int_equal(ofi.nready, 0);
    dn_ofi_pool_close(&ofi.pool[DN_OFI_SHORT]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_comes_while_a_handler_runs_waits),
                                       cmocka_unit_test(what_comes_behind_a_request_of_a_left_peer_waits),
                                       cmocka_unit_test(a_peer_that_goes_is_not_queued)};

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
