/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a list of devices, and peers that fall silent, mean over ofi:
 *
 *   ofi_peers [TEST]
 */
#include "dn_config.h"

#include "dn_world.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "dn_atomic.h"

#define NETWORK "ofi:tcp;ofi_rxm@lo"

enum { BYTES = 300000, LONG_BYTES = 64 << 20 };

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

static void open_over(dn_world_t *world, const dn_variant_t *variant)
{
    world->variant = variant;
    dn_world_open(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
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

/* A list */

static uint64_t moved(const dn_world_t *world, int by_messages)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return by_messages ? counters.ring_bytes : counters.mapped_bytes + counters.cma_bytes;
}

/** PUSH into both segments of a peer and PULL it back, each in its turn of three processes. */
static void there_and_back(dn_world_t *world, int rank)
{
    static uint8_t out[BYTES], back[BYTES];

    for (unsigned k = 0; k < 2; k++) {
        dn_xfer_t xfer = {.local = out, .key = &world->board->seat[rank].key[k], .len = BYTES};
        dn_test_fill(out, BYTES, 10 * (uint64_t) world->rank + k);
        dn_check_equal(dn_world_push(world, world->peer[rank], &xfer), DN_OK);
        xfer.local = back;
        dn_check_equal(dn_world_pull(world, world->peer[rank], &xfer), DN_OK);
        dn_check_bytes(back, BYTES, 10 * (uint64_t) world->rank + k);
    }
}

/**
 * Rank 0 has both devices, 1 only the network, 2 only shared memory. 0 reaches each by what both have, with
 * the same key for either, and none of it goes through messages.
 */
static void each_peer_finds_its_words_in_a_key(dn_world_t *world)
{
    static const dn_variant_t variant[] = {
        {.file = "both", .device = "shm," NETWORK, .cma = 1, .backing = "auto"},
        {.file = "network", .device = NETWORK, .cma = 1, .backing = "auto"},
        {.file = "memory", .device = "shm", .cma = 1, .backing = "auto"},
    };
    static const char *const device[] = {NULL, "ofi", "shm"};
    static uint8_t memory[BYTES];
    dn_segment_t *segment[2];
    dn_peer_attr_t attr;
    dn_peer_t *none = NULL;

    open_over(world, &variant[world->rank]);
    dn_check_equal(dn_segment_alloc(world->port, BYTES, &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, BYTES, &segment[1]), DN_OK);
    dn_segment_key(segment[0], &world->me->key[0]);
    dn_segment_key(segment[1], &world->me->key[1]);
    dn_world_barrier(world);
    for (int rank = 0; rank < 3; rank++) {
        if (0 == rank * world->rank && rank != world->rank) {
            connect_to(world, rank);
            dn_peer_attr(world->peer[rank], &attr);
            dn_check(0 == strcmp(attr.device, device[rank + world->rank]));
        }
    }
    if (0 != world->rank) {
        const dn_board_seat_t *seat = &world->board->seat[3 - world->rank];
        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &none), DN_ERR_UNREACH);
    }
    dn_world_barrier(world);
    for (int turn = 0; turn < 3; turn++) {
        for (int rank = 0; turn == world->rank && rank < 3; rank++) {
            if (NULL != world->peer[rank]) {
                there_and_back(world, rank);
            }
        }
        dn_world_barrier(world);
    }
    dn_check_equal(moved(world, 1), 0);
    dn_check(1 == world->rank || 0 != moved(world, 0));
    dn_segment_free(segment[0]);
    dn_segment_free(segment[1]);
    dn_world_stop(world);
}

/* Silence */

static const dn_variant_t network = {.file = "ofi_peers", .device = NETWORK, .cma = 1, .backing = "auto"};

static uint64_t lost(const dn_world_t *world)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.peers_lost;
}

/** Nobody progresses in rank 1 for several time limits, yet rank 0 keeps it. */
static void a_peer_that_computes_is_kept(dn_world_t *world)
{
    const struct timespec work = {4, 0};

    world->config.timeout_s = 1;
    open_over(world, &network);
    dn_world_barrier(world);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        hear_until(world, 1);
        nanosleep(&work, NULL);
        dn_world_post(world, 0, 1);
        hear_until(world, 2);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 1, NULL, 0);
    } else {
        hear_until(world, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_await(world, 1, 0, 1);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 1, NULL, 0);
        hear_until(world, 2);
    }
    dn_check_equal(lost(world), 0);
    dn_world_stop(world);
}

/** A process as dead as one whose host was cut off: it does nothing and its kernel says nothing of it. */
static void fall_silent(dn_world_t *world)
{
    dn_world_post(world, 0, 1);
    kill(getpid(), SIGSTOP);
}

/** End a process that fell silent. */
static void end_silent(dn_world_t *world, int rank)
{
    dn_board_seat_t *seat = &world->board->seat[rank];

    dn_store_release_u32(&seat->dies, 1);
    kill((pid_t) seat->os_pid, SIGKILL);
}

static void wait_for_a_loss(dn_world_t *world)
{
    dn_test_log.expected = 1;
    while (0 == lost(world)) {
        dn_world_progress(world);
    }
    dn_test_log.expected = 0;
}

/** Rank 0 has never sent it anything, nor connected to it. */
static void a_silent_sender_is_lost_to_who_only_receives(dn_world_t *world)
{
    world->config.timeout_s = 1;
    open_over(world, &network);
    dn_world_barrier(world);
    if (1 == world->rank) {
        connect_to(world, 0);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        dn_world_fence(world, world->peer[0]);
        dn_world_await(world, 0, 0, 1);
        fall_silent(world);
        return;
    }
    hear_until(world, 1);
    dn_world_post(world, 0, 1);
    wait_for_a_loss(world);
    end_silent(world, 1);
    dn_close(world->port);
}

/** What it asked for comes neither before nor after it was told that nothing will. */
static void a_pull_from_a_silent_peer_ends_and_writes_no_more(dn_world_t *world)
{
    static uint8_t theirs[LONG_BYTES], mine[LONG_BYTES];
    dn_world_comp_t comp = dn_world_comp();
    dn_segment_t *segment;

    world->config.timeout_s = 1;
    open_over(world, &network);
    dn_check_equal(dn_segment_register(world->port, theirs, LONG_BYTES, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    memset(theirs, 1, LONG_BYTES);
    dn_world_barrier(world);
    dn_world_connect(world);
    if (1 == world->rank) {
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, NULL, 0);
        hear_until(world, 1);
        fall_silent(world);
        /* It wakes up without friends. */
        dn_test_log.expected = 1;
        for (;;) {
            dn_world_progress(world);
        }
    }
    hear_until(world, 1);
    dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 0, NULL, 0);
    dn_world_await(world, 1, 0, 1);
    const pid_t other = (pid_t) world->board->seat[1].os_pid;
    const struct timespec while_it_stops = {0, 100000000};
    nanosleep(&while_it_stops, NULL);
    const dn_xfer_t xfer = {
        .local = mine, .key = &world->board->seat[1].key[0], .len = LONG_BYTES, .comp = &comp.comp};
    dn_check_equal(dn_pull(world->peer[1], &xfer), DN_INPROGRESS);
    wait_for_a_loss(world);
    while (0 == comp.signals) {
        dn_world_progress(world);
    }
    dn_check_equal(comp.status, DN_ERR_UNREACH);
    memset(mine, 2, LONG_BYTES);
    kill(other, SIGCONT);
    dn_test_log.expected = 1;
    for (int i = 0; i < 30; i++) {
        nanosleep(&while_it_stops, NULL);
        dn_progress(world->port);
    }
    for (size_t i = 0; i < LONG_BYTES; i++) {
        dn_check(2 == mine[i]);
    }
    dn_check_equal(comp.signals, 1);
    end_silent(world, 1);
    dn_close(world->port);
    dn_test_log.expected = 0;
}

static const struct {
    const char *name;
    int processes;
    dn_world_fn_t fn;
} tests[] = {
    {"each_peer_finds_its_words_in_a_key", 3, each_peer_finds_its_words_in_a_key},
    {"a_peer_that_computes_is_kept", 2, a_peer_that_computes_is_kept},
    {"a_silent_sender_is_lost_to_who_only_receives", 2, a_silent_sender_is_lost_to_who_only_receives},
    {"a_pull_from_a_silent_peer_ends_and_writes_no_more", 2,
     a_pull_from_a_silent_peer_ends_and_writes_no_more},
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
