/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Streams of the ofi device when something of them comes late, twice or not at all. It knows the device's state, and
 * loses words of it where the network would:
 *
 *   ofi_streams [TEST]
 */
#include "dn_config.h"

#include "dn_world.h"

#include <sched.h>

#include "ofi/dn_ofi_int.h"

static const dn_variant_t network = {
    .file = "ofi_streams", .device = "ofi:tcp;ofi_rxm@lo", .cma = 1, .backing = "auto", .ring_lines = 64};

static uint64_t heard;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    (void) data;
    (void) len;
    dn_check_equal(tag, heard % 256);
    heard++;
}

static void open_with(dn_world_t *world, uint32_t timeout_s, dn_handler_fn_t fn)
{
    world->config.timeout_s = timeout_s;
    dn_world_open(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, fn, world), DN_OK);
    dn_world_barrier(world);
}

static void connect_to(dn_world_t *world, int rank)
{
    const dn_board_seat_t *seat = &world->board->seat[rank];

    dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &world->peer[rank]), DN_OK);
}

static void hear_until(dn_world_t *world, uint64_t count)
{
    while (heard < count) {
        dn_world_progress(world);
    }
}

/* A stream after another */

/** The first message, of many lines: its handler runs until the next stream has begun. */
static void hear_of_the_next(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    hear(src, tag, data, len, NULL);
    if (1 == heard) {
        dn_world_post(arg, 0, 1);
        hear_until(arg, 2);
    }
}

/** What a handler has taken of the stream before is no credit for the stream that began while it ran. */
static void a_stream_that_begins_inside_a_handler_has_its_own_credit(dn_world_t *world)
{
    enum { ROUNDS = 1500 };
    static uint8_t data[8000];

    open_with(world, 60, hear_of_the_next);
    if (0 == world->rank) {
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            hear_until(world, round);
            dn_world_post(world, 0, round);
        }
    } else {
        connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, data, sizeof(data));
        dn_world_await(world, 0, 0, 1);
        dn_disconnect(world->peer[0]);
        connect_to(world, 0);
        for (unsigned round = 1; round < ROUNDS; round++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, round, NULL, 0);
            dn_world_await(world, 0, 0, round + 1);
        }
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static const struct {
    const char *name;
    int processes;
    dn_world_fn_t fn;
} tests[] = {
    {"a_stream_that_begins_inside_a_handler_has_its_own_credit", 2,
     a_stream_that_begins_inside_a_handler_has_its_own_credit},
};

int main(int argc, char **argv)
{
    int failed = 0;

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (1 == argc || 0 == strcmp(argv[1], tests[i].name)) {
            failed |= dn_world_run(tests[i].name, &network, tests[i].processes, tests[i].fn);
        }
    }
    return failed;
}
