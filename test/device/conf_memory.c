/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

enum { AREA = 256 };

/** A piece of LLCM here, its offset on the board for the others. */
static uint8_t *offer_llcm(dn_world_t *world, size_t len)
{
    void *mem = NULL;

    dn_check_equal(dn_llcm_alloc(world->port, len, &world->me->off[0], &mem), DN_OK);
    dn_world_barrier(world);
    return mem;
}

/** Poll a word of the own LLCM while progressing. */
static void poll_word(dn_world_t *world, const uint64_t *word, uint64_t wanted)
{
    while (dn_load_acquire(word) != wanted) {
        dn_world_progress(world);
    }
}

void aotf_writes_every_size_at_every_offset(dn_world_t *world)
{
    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    uint8_t *area = offer_llcm(world, AREA);
    const uint64_t off = world->board->seat[1 - world->rank].off[0];

    for (size_t size = 1; size <= 8; size++) {
        for (size_t at = 0; at <= 64; at++) {
            memset(area, 0x11, AREA);
            dn_world_barrier(world);
            dn_world_aotf(world, peer, off + at, UINT64_C(0xf8e7d6c5b4a39281), size);
            dn_world_fence(world, peer);
            dn_world_barrier(world);
            for (size_t i = 0; i < AREA; i++) {
                const uint8_t wanted = at <= i && i < at + size
                                           ? (uint8_t) (UINT64_C(0xf8e7d6c5b4a39281) >> (8 * (i - at)))
                                           : 0x11;
                dn_check_equal(area[i], wanted);
            }
            dn_world_barrier(world);
        }
    }
    dn_world_stop(world);
}

/** Never taken for success or for back-pressure. */
static void refused(dn_world_t *world, dn_peer_t *peer, uint64_t off, size_t size)
{
    dn_status_t status;

    dn_test_log.expected = 1;
    while (DN_ERR_AGAIN == (status = dn_aotf(peer, off, 1, size))) {
        dn_world_progress(world);
    }
    dn_test_log.expected = 0;
    dn_check(DN_ERR_RANGE == status || (DN_ERR_PARAM == status && (0 == size || 8 < size)));
}

void aotf_outside_the_llcm_is_refused(dn_world_t *world)
{
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_peer_attr(peer, &attr);
    dn_check_equal(attr.llcm_len, world->config.llcm_bytes);
    for (size_t size = 1; size <= 8; size++) {
        refused(world, peer, attr.llcm_len - size + 1, size);
        refused(world, peer, attr.llcm_len, size);
        refused(world, peer, UINT64_MAX, size);
        refused(world, peer, UINT64_MAX - size + 1, size);
        refused(world, peer, UINT64_MAX / 2, size);
    }
    refused(world, peer, 0, 0);
    refused(world, peer, 0, 9);
    refused(world, peer, 0, SIZE_MAX);
    dn_world_aotf(world, peer, attr.llcm_len - 8, 0, 8);
    dn_world_stop(world);
}

void aligned_aotf_is_one_store(dn_world_t *world)
{
    const uint64_t count = 20000;

    dn_world_start(world);
    uint64_t *word = (uint64_t *) offer_llcm(world, 64);
    const uint64_t off = world->board->seat[1 - world->rank].off[0];
    if (0 == world->rank) {
        for (uint64_t i = 1; i <= count; i++) {
            dn_world_aotf(world, world->peer[1], off, i * UINT64_C(0x0000000100000001), 8);
        }
    } else {
        for (uint64_t last = 0; last < count;) {
            const uint64_t now = dn_load_acquire(word);
            dn_check_equal(now >> 32, now & UINT32_MAX);
            dn_check(last <= (now >> 32));
            last = now >> 32;
            dn_world_progress(world);
        }
    }
    dn_world_stop(world);
}

/** A registered or an allocated segment of len bytes, its key on the board. */
static dn_segment_t *offer_segment(dn_world_t *world, int which, size_t len, void *base)
{
    dn_segment_t *segment = NULL;

    if (NULL == base) {
        dn_check_equal(dn_segment_alloc(world->port, len, &segment), DN_OK);
    } else {
        dn_check_equal(dn_segment_register(world->port, base, len, &segment), DN_OK);
    }
    dn_segment_key(segment, &world->me->key[which]);
    return segment;
}

enum { STATUS_BYTES = 5000, STATUS_ROUNDS = 60 };

/** The initiator's side of one round: the local word follows completion, the remote one the data. */
static void push_with_status(dn_world_t *world, uint64_t round, uint64_t *local_status)
{
    static uint8_t data[STATUS_BYTES];
    const dn_board_seat_t *target = &world->board->seat[1];
    const size_t len = 0 == round % 10 ? 0 : STATUS_BYTES;
    const dn_xfer_t xfer = {
        .local = data,
        .key = &target->key[round % 2],
        .len = len,
        .flags = DN_XFER_STATUS_LOCAL | (0 == round % 5 ? 0 : DN_XFER_STATUS_REMOTE),
        .local_status = local_status,
        .local_value = round,
        .remote_status = target->off[0] + 8 * (round % 8),
        .remote_value = ~round,
    };

    dn_test_fill(data, len, round);
    dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
    dn_check_equal(dn_load_acquire(local_status), round);
}

void status_words_follow_the_data(dn_world_t *world)
{
    static uint8_t memory[STATUS_BYTES];

    dn_world_start(world);
    dn_segment_t *segment[2] = {offer_segment(world, 0, STATUS_BYTES, NULL),
                                offer_segment(world, 1, STATUS_BYTES, memory)};
    uint64_t *word = (uint64_t *) offer_llcm(world, 64);
    for (uint64_t round = 1; round <= STATUS_ROUNDS; round++) {
        if (0 == world->rank) {
            push_with_status(world, round, word);
        } else if (0 != round % 5) {
            poll_word(world, &word[round % 8], ~round);
            dn_check_bytes(dn_segment_base(segment[round % 2]), STATUS_BYTES, round);
        }
        dn_world_barrier(world);
        if (1 == world->rank && 0 == round % 5) {
            dn_check(~round != dn_load_acquire(&word[round % 8]));
        }
        dn_world_barrier(world);
    }
    /* PULL stores the local word. */
    const dn_xfer_t pull = {.local = memory,
                            .key = &world->board->seat[1 - world->rank].key[0],
                            .len = 100,
                            .flags = DN_XFER_STATUS_LOCAL,
                            .local_status = &word[7],
                            .local_value = 4711};
    dn_check_equal(dn_world_pull(world, world->peer[1 - world->rank], &pull), DN_OK);
    dn_check_equal(dn_load_acquire(&word[7]), 4711);
    dn_world_stop(world);
}

void misplaced_status_words_are_refused(dn_world_t *world)
{
    static uint64_t word[2];
    uint8_t data[16] = {0};

    dn_world_start(world);
    offer_segment(world, 0, 64, NULL);
    offer_llcm(world, 64);
    dn_peer_t *peer = world->peer[1 - world->rank];
    const dn_key_t *key = &world->board->seat[1 - world->rank].key[0];
    const dn_xfer_t remote = {.local = data, .key = key, .len = 16, .flags = DN_XFER_STATUS_REMOTE};
    const dn_xfer_t local = {.local = data, .key = key, .len = 16, .flags = DN_XFER_STATUS_LOCAL};
    dn_xfer_t xfer;

    dn_test_log.expected = 1;
    xfer = local;
    xfer.local_status = (uint64_t *) ((uint8_t *) word + 4);
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_ERR_PARAM);
    dn_check_equal(dn_world_pull(world, peer, &xfer), DN_ERR_PARAM);
    xfer = remote;
    xfer.remote_status = 4;
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_ERR_PARAM);
    xfer.remote_status = world->config.llcm_bytes;
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_ERR_RANGE);
    xfer.remote_status = UINT64_MAX - 7;
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_ERR_RANGE);
    xfer.remote_status = 0;
    dn_check_equal(dn_world_pull(world, peer, &xfer), DN_ERR_PARAM);
    dn_test_log.expected = 0;
    dn_world_stop(world);
}

enum { FENCE_BYTES = 20000, FENCE_ROUNDS = 100 };

void a_fence_orders_push_before_aotf(dn_world_t *world)
{
    static uint8_t data[FENCE_BYTES], memory[FENCE_BYTES];

    dn_world_start(world);
    dn_segment_t *segment[2] = {offer_segment(world, 0, FENCE_BYTES, NULL),
                                offer_segment(world, 1, FENCE_BYTES, memory)};
    uint64_t *word = (uint64_t *) offer_llcm(world, 64);
    const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (uint64_t round = 1; round <= FENCE_ROUNDS; round++) {
        if (0 == world->rank) {
            const dn_xfer_t xfer = {.local = data, .key = &other->key[round % 2], .len = FENCE_BYTES};
            dn_status_t status;
            dn_test_fill(data, FENCE_BYTES, round);
            while (DN_ERR_AGAIN == (status = dn_push(peer, &xfer))) {
                dn_world_progress(world);
            }
            dn_check(DN_OK == status || DN_INPROGRESS == status);
            dn_world_fence(world, peer);
            dn_world_aotf(world, peer, other->off[0], round, 8);
            poll_word(world, word, round);
        } else {
            poll_word(world, word, round);
            dn_check_bytes(dn_segment_base(segment[round % 2]), FENCE_BYTES, round);
            dn_world_aotf(world, peer, other->off[0], round, 8);
        }
    }
    dn_world_stop(world);
}

static uint64_t heard;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) arg;
    dn_check_equal(len, sizeof(heard));
    memcpy(&heard, data, sizeof(heard));
}

void a_fence_orders_messages_before_aotf(dn_world_t *world)
{
    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    uint64_t *word = (uint64_t *) offer_llcm(world, 64);
    const uint64_t off = world->board->seat[1 - world->rank].off[0];
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (uint64_t round = 1; round <= FENCE_ROUNDS; round++) {
        if (0 == world->rank) {
            dn_world_send(world, peer, DN_WORLD_CHAN, 0, &round, sizeof(round));
            dn_world_fence(world, peer);
            dn_world_aotf(world, peer, off, round, 8);
            poll_word(world, word, round);
        } else {
            /* The word is here, so the message is: it needs no more than to be received. */
            while (dn_load_acquire(word) != round) {
                sched_yield();
            }
            for (unsigned i = 0; i < 1000 && heard < round; i++) {
                dn_recv(peer, 100);
            }
            dn_check_equal(heard, round);
            dn_world_aotf(world, peer, off, round, 8);
        }
    }
    dn_world_stop(world);
}

void a_fence_orders_push_and_aotf_before_messages(dn_world_t *world)
{
    static uint8_t data[FENCE_BYTES];

    dn_world_start(world);
    dn_segment_t *segment = offer_segment(world, 0, FENCE_BYTES, NULL);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    uint64_t *word = (uint64_t *) offer_llcm(world, 64);
    const dn_board_seat_t *other = &world->board->seat[1 - world->rank];
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (uint64_t round = 1; round <= FENCE_ROUNDS; round++) {
        if (0 == world->rank) {
            const dn_xfer_t xfer = {.local = data, .key = &other->key[0], .len = FENCE_BYTES};
            dn_status_t status;
            dn_test_fill(data, FENCE_BYTES, round);
            while (DN_ERR_AGAIN == (status = dn_push(peer, &xfer))) {
                dn_world_progress(world);
            }
            dn_check(DN_OK == status || DN_INPROGRESS == status);
            dn_world_aotf(world, peer, other->off[0], round, 8);
            dn_world_fence(world, peer);
            dn_world_send(world, peer, DN_WORLD_CHAN, 0, &round, sizeof(round));
        } else {
            while (heard < round) {
                dn_world_progress(world);
            }
            dn_check_equal(dn_load_acquire(word), round);
            dn_check_bytes(dn_segment_base(segment), FENCE_BYTES, round);
        }
        dn_world_barrier(world);
    }
    dn_world_stop(world);
}
