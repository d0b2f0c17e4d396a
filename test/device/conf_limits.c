/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that can open no more files: nobody is taken for dead because of it, and all goes on when it can.
 */
#include "dn_config.h"

#include "conformance.h"

#include <sys/resource.h>
#include <unistd.h>

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) arg;
    dn_check_bytes(data, len, dn_world_here->heard);
    dn_world_here->heard++;
}

static void say(dn_world_t *world, dn_peer_t *peer, uint64_t number)
{
    uint8_t data[100];

    dn_test_fill(data, sizeof(data), number);
    dn_world_send(world, peer, DN_WORLD_CHAN, 0, data, sizeof(data));
}

/** Allow no file more than are open. @return what was allowed before. */
static struct rlimit close_files(void)
{
    struct rlimit before, none;
    const int lowest = dup(STDIN_FILENO);

    dn_check(0 <= lowest);
    dn_check_equal(close(lowest), 0);
    dn_check_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t) lowest;
    dn_check_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    dn_check_equal(dup(STDIN_FILENO), -1);
    return before;
}

static void open_files(const struct rlimit *before)
{
    dn_check_equal(setrlimit(RLIMIT_NOFILE, before), 0);
}

/** PUSH to both segments of rank 1, and PULL the bytes back. */
static void work_with_segments(dn_world_t *world, uint64_t key)
{
    uint8_t data[500];

    for (int which = 0; which < 2; which++) {
        const dn_xfer_t xfer = {.local = data, .key = &world->board->seat[1].key[which], .len = sizeof(data)};
        dn_test_fill(data, sizeof(data), key);
        dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
        memset(data, 0, sizeof(data));
        dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
        dn_check_bytes(data, sizeof(data), key);
    }
}

/** An atomic operation on a word of rank 1. */
static void add_one(dn_world_t *world, const dn_key_t *key, uint64_t before)
{
    uint64_t old = UINT64_MAX;
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .result = &old, .key = key};

    dn_check_equal(dn_world_atomic(world, world->peer[1], &amo), DN_OK);
    dn_check_equal(old, before);
}

/** Nothing of rank 1 is mapped yet, and cannot be for want of a file: it is reached all the same. */
static void reach_what_cannot_be_mapped(dn_world_t *world)
{
    /* Else the device may have it in private memory, which nobody maps. */
    const int mapped = DN_BACKING_FILE != world->config.backing;
    const dn_key_t *key = world->board->seat[1].key;
    dn_key_t stale = key[2];
    uint64_t word = 0;
    const dn_xfer_t xfer = {.local = &word, .key = &stale, .len = sizeof(word)};
    void *base = NULL;

    const struct rlimit before = close_files();
    work_with_segments(world, 1);
    add_one(world, &key[2], 0);
    dn_check_equal(dn_segment_map(world->peer[1], &key[0], &base), DN_ERR_UNSUPPORTED);
    stale.generation++;
    if (mapped) {
        dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_ERR_RANGE);
    }
    open_files(&before);
    add_one(world, &key[2], 1);
    if (mapped) {
        dn_check_equal(dn_segment_map(world->peer[1], &key[0], &base), DN_OK);
        dn_check_bytes(base, 500, 1);
    }
}

/**
 * Send to a peer that takes nothing: after so many refusals its life is looked at, more than once.
 * @return messages accepted.
 */
static uint64_t offer_in_vain(dn_world_t *world, dn_peer_t *peer)
{
    uint8_t data[100];
    uint64_t sent = 0;

    for (unsigned refused = 0; refused < 100000;) {
        dn_test_fill(data, sizeof(data), sent);
        const dn_status_t status = dn_botf(peer, DN_WORLD_CHAN, 0, data, sizeof(data), NULL, 0);
        dn_check(DN_OK == status || DN_ERR_AGAIN == status);
        sent += DN_OK == status;
        refused += DN_OK != status;
        if (0 == refused % 64) {
            dn_progress(world->port);
        }
    }
    return sent;
}

void a_peer_is_not_dead_because_files_ran_out(dn_world_t *world)
{
    static uint8_t memory[500];
    dn_segment_t *segment[3];

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, hear, NULL), DN_OK);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(memory), &segment[0]), DN_OK);
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment[1]), DN_OK);
    dn_check_equal(dn_segment_alloc(world->port, sizeof(uint64_t), &segment[2]), DN_OK);
    for (int which = 0; which < 3; which++) {
        dn_segment_key(segment[which], &world->me->key[which]);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        dn_peer_t *peer = world->peer[1];
        reach_what_cannot_be_mapped(world);
        /* Often, since faults let some go by another way: in the end the segment is mapped. */
        for (uint64_t i = 10; i < 40; i++) {
            work_with_segments(world, i);
        }
        const struct rlimit before = close_files();
        dn_check_equal(dn_peer_check(peer), DN_OK);
        work_with_segments(world, 2);
        dn_world_post(world, 1, 1);
        const uint64_t sent = offer_in_vain(world, peer);
        dn_check_equal(dn_peer_check(peer), DN_OK);
        open_files(&before);
        dn_world_post(world, 0, sent);
        say(world, peer, sent);
    } else {
        dn_world_await(world, 0, 1, 1);
        dn_world_sleep(world, 0, 0, 1);
        dn_world_hear_until(world, world->board->seat[0].word[0] + 1);
    }
    dn_world_stop(world);
}

void a_sender_met_without_files_is_heard_once_connected_to(dn_world_t *world)
{
    const dn_board_seat_t *seat = &world->board->seat[0];

    dn_world_listen(world, hear);
    if (0 == world->rank) {
        dn_world_connect_to(world, 1);
        for (uint64_t i = 0; i < 3; i++) {
            say(world, world->peer[1], i);
        }
        dn_world_fence(world, world->peer[1]);
        dn_world_post(world, 0, 1);
        dn_world_hear_until(world, 1);
    } else {
        dn_world_sleep(world, 0, 0, 1);
        const struct rlimit before = close_files();
        dn_test_log_expect();
        for (int i = 0; i < 200; i++) {
            dn_progress(world->port);
        }
        dn_check(dn_test_log_said(1, "limits"));
        dn_check_equal(world->heard, 0);
        dn_test_log_expect();
        dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &world->peer[0]),
                       DN_ERR_NOMEM);
        dn_check(dn_test_log_said(1, "limits"));
        open_files(&before);
        dn_world_connect_to(world, 0);
        dn_world_hear_until(world, 3);
        say(world, world->peer[0], 0);
    }
    dn_world_stop(world);
}
