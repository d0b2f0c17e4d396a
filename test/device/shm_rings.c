/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * How a process polls the rings of many senders: each ring once at most in a poll; and each ring that is hot stands there once.
 */
#include "dn_config.h"

#include "dn_world.h"

#include "dn_port.h"
#include "shm/dn_shm_int.h"

enum { RANKS = DN_SHM_POLL_ALL + 2, EACH = 300 };

static unsigned taken[RANKS]; /**< messages of each rank, in this poll */

/** All ranks but rank 0 send their messages to it. @param[in] fn  The handler of rank 0. */
static void send_all(dn_world_t *world, dn_handler_fn_t fn)
{
    dn_world_listen(world, fn);
    if (0 == world->rank) {
        return;
    }
    dn_world_connect_to(world, 0);
    for (int i = 0; i < EACH; i++) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
    }
}

/** Does rank 0 wait for messages? */
static int is_receiving(const dn_world_t *world)
{
    return 0 == world->rank && EACH * (RANKS - 1) > world->heard;
}

/** Handler of rank 0: one message of a sender in a poll is enough. */
static void take_one(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_peer_attr_t attr;

    dn_peer_attr(src, &attr);
    dn_check(RANKS > attr.pid);
    taken[attr.pid]++;
    dn_world_here->heard++;
    dn_recv_enough(src);
}

static void a_ring_is_polled_once_in_a_poll(dn_world_t *world)
{
    send_all(world, take_one);
    while (is_receiving(world)) {
        memset(taken, 0, sizeof(taken));
        dn_progress(world->port);
        for (int rank = 1; rank < RANKS; rank++) {
            dn_check(1 >= taken[rank]);
        }
    }
    dn_world_stop(world);
}

/** Handler of rank 0: it polls, so handlers of the same ring run inside of it, to some depth. */
static void poll_inside(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    static int depth;

    depth++;
    dn_world_here->heard++;
    for (int polls = 0; 3 > depth && 2 * RANKS > polls; polls++) {
        dn_progress(dn_world_here->port);
    }
    depth--;
}

/** A ring that stood there twice would be polled after it was freed. */
static void a_ring_is_hot_once(dn_world_t *world)
{
    send_all(world, poll_inside);
    while (is_receiving(world)) {
        const dn_shm_t *shm = (const dn_shm_t *) world->port->ifaces;

        dn_progress(world->port);
        for (uint32_t i = 0; i < shm->nhot; i++) {
            for (uint32_t k = 0; k < i; k++) {
                dn_check(shm->hot[k].rx != shm->hot[i].rx);
            }
        }
    }
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"a_ring_is_hot_once", RANKS, a_ring_is_hot_once},
    {"a_ring_is_polled_once_in_a_poll", RANKS, a_ring_is_polled_once_in_a_poll},
};

/** usage: shm_rings [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_rings", .device = "shm"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
