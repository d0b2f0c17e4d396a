/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Stores that gather while packets are on their way go out though their program then calls nothing: also where the program itself has
 * read the acknowledgements, while it had no credit for a message to another process.
 *
 * Rank 0 owns words, and computes. Rank 2 computes, and takes no messages. Rank 1 stores words of rank 0 in a row, and then tries to send
 * to rank 2 until all packets to rank 0 are acknowledged. From then on nothing comes that would have the last stores sent.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <sched.h>

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

enum { ROUNDS = 200, ROW = 200, REFUSALS = 1000 };

static const uint8_t data[1000];

/** Handler of what rank 2 takes at the end. */
static void ignore(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg) {}

static void use_up_credit(dn_world_t *world)
{
    for (int refused = 0; REFUSALS > refused; refused++) {
        if (DN_OK == dn_botf(world->peer[2], DN_WORLD_CHAN, 0, NULL, 0, data, sizeof(data))) {
            refused = 0;
        }
        (void) dn_progress(world->port);
    }
}

/** Are all packets of a link acknowledged? Then it has nothing to send either, unless the pace of packets holds it back, or the thread has
 * set itself a time. */
static int is_over(const dn_peer_t *peer)
{
    const dn_ipnuma_pc_t *pc = ((const dn_ipnuma_peer_t *) peer)->pc;

    dn_ipnuma_lock(pc->ipnuma);
    const int over = 0 == pc->link.loss.count;
    dn_check(!over || NULL == pc->link.waits || pc->link.paced || 0 != pc->link.refused_at
             || 0 != pc->stream.until);
    dn_ipnuma_unlock(pc->ipnuma);
    return over;
}

static void store_and_wait(dn_world_t *world)
{
    const uint64_t off = world->board->seat[0].off[0];

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint64_t i = 0; i < ROW; i++) {
            /* Words of two lines in turn are not joined, so packets fill soon. */
            dn_world_aotf(world, world->peer[0], off + 64 * (1 + i % 2), i, sizeof(i));
        }
        dn_world_aotf(world, world->peer[0], off, round, sizeof(round));
        do {
            dn_check_equal(dn_botf(world->peer[2], DN_WORLD_CHAN, 0, NULL, 0, data, sizeof(data)),
                           DN_ERR_AGAIN);
        } while (!is_over(world->peer[0]));
        while (dn_world_posted(world, 0, 0) < round) {
            /* No call. */
            sched_yield();
        }
    }
}

static void stores_go_out_though_nothing_is_called(dn_world_t *world)
{
    void *word = NULL;

    dn_world_open(world);
    if (0 == world->rank) {
        dn_check_equal(dn_llcm_alloc(world->port, 256, &world->me->off[0], &word), DN_OK);
        /* So that a thread sanitizer sees that the service thread stores after the memory was zeroed: the barrier says so by other processes. */
        dn_ipnuma_lock((dn_ipnuma_t *) world->port->ifaces);
        dn_ipnuma_unlock((dn_ipnuma_t *) world->port->ifaces);
    }
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, ignore, NULL), DN_OK);
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_connect_to(world, 2);
        dn_world_aotf(world, world->peer[0], world->board->seat[0].off[0] + 64, 1, 8);
        dn_world_fence(world, world->peer[0]);
        use_up_credit(world);
        store_and_wait(world);
        dn_world_post(world, 1, 1);
    } else if (2 == world->rank) {
        dn_world_sleep(world, 1, 1, 1);
    } else {
        for (uint64_t seen = 0; ROUNDS > seen;) {
            seen = dn_load_acquire((const uint64_t *) word);
            dn_world_post(world, 0, seen);
            sched_yield();
        }
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"stores_go_out_though_nothing_is_called", 3, stores_go_out_though_nothing_is_called},
};

/** usage: ipnuma_gather [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "ipnuma_gather", .device = "ipnuma:lo"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
