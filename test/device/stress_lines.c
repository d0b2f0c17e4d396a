/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Lines, credits and wrap-around under stress: two processes send each other as many random messages as
 * they can over the smallest rings, and check every one.
 */
#include "dn_config.h"

#include "dn_world.h"

enum { MESSAGES = 1500000, CORE_SHARE = 16 };

/** What a message starts with; the rest repeats its checksum's seed. */
typedef struct stamp {
    uint32_t number;
    uint32_t sum;
} stamp_t;

static uint32_t received;
static uint64_t drawn;
static size_t longest;

/** Mostly short, as traffic is; now and then anything. */
static size_t draw_length(uint64_t *random)
{
    const uint64_t kind = dn_test_below(random, 32);

    if (0 == kind) {
        return dn_test_length(random, longest);
    }
    return 1 == kind ? 48 + dn_test_below(random, 32) : dn_test_below(random, 57);
}

/** Sum of the words behind the stamp, position and length included. */
static uint32_t checksum(const uint8_t *data, size_t len, uint32_t number)
{
    uint64_t sum = number * UINT64_C(0x9e3779b97f4a7c15) + len;

    for (size_t i = sizeof(stamp_t); i < len; i++) {
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    }
    return (uint32_t) (sum ^ sum >> 32);
}

static void receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    dn_check_equal(len, draw_length(&drawn));
    dn_check_equal(tag, received & 0xff);
    if (sizeof(stamp_t) <= len) {
        stamp_t stamp;
        memcpy(&stamp, data, sizeof(stamp));
        dn_check_equal(stamp.number, received);
        dn_check_equal(stamp.sum, checksum(data, len, received));
    }
    received++;
}

static void build(uint8_t *data, size_t len, uint32_t number)
{
    if (sizeof(stamp_t) <= len) {
        for (size_t i = sizeof(stamp_t); i < len; i++) {
            data[i] = (uint8_t) (number * 13 + i);
        }
        const stamp_t stamp = {number, checksum(data, len, number)};
        memcpy(data, &stamp, sizeof(stamp));
    }
}

/** Every other message is a window, some of those kicked short of what was reserved. */
static void send_one(dn_world_t *world, dn_peer_t *peer, uint32_t number, size_t len)
{
    static uint8_t data[65536];
    dn_window_t window;
    dn_status_t status;

    if (0 == number % 2) {
        build(data, len, number);
        dn_world_send(world, peer, DN_WORLD_CHAN, number & 0xff, data, len);
        return;
    }
    const size_t reserved = len + 100 < longest && 0 == number % 7 ? len + 100 : len;
    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, reserved, &window))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
    build(window.data, len, number);
    dn_botf_kick(peer, &window, DN_WORLD_CHAN, number & 0xff, len);
}

static void stress(dn_world_t *world)
{
    const uint32_t messages = dn_test_rounds(MESSAGES);
    uint64_t random = 8;
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_peer_attr(peer, &attr);
    longest = attr.botf_max;
    drawn = random;
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, receive, NULL), DN_OK);
    for (uint32_t i = 0; i < messages; i++) {
        send_one(world, peer, i, draw_length(&random));
        if (0 == i % CORE_SHARE) {
            dn_world_progress(world);
        }
    }
    while (received < messages) {
        dn_world_progress(world);
    }
    dn_world_stop(world);
    dn_check_equal(received, messages);
}

int main(void)
{
    const dn_variant_t variant = {.file = "the smallest rings", .device = "shm", .settings = "ring_lines=64"};

    return dn_world_run("stress_lines", &variant, 2, stress);
}
