/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The room that a sender finds, wherever in its ring it is: rank 0 sends, rank 1 receives when it is told to.
 */
#include "dn_config.h"

#include "conformance.h"

/** Refusals one after the other that mean a full ring: injected ones do not come in such rows. */
enum { REFUSALS = 100 };

/** Words of a seat on the board: the sender's HOLD and TOTAL, the receiver's HELD and TAKEN. */
enum { HOLD, HELD, TAKEN, TOTAL };

static uint64_t taken;

/** Says what the length was, so that a message cut short is noticed. */
static unsigned tag_of(uint64_t number, size_t len)
{
    return (unsigned) (number * 7 + len + (len >> 8)) & 0xff;
}

static void take(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    dn_check_equal(tag, tag_of(taken, len));
    dn_check_bytes(data, len, taken);
    taken++;
}

/** The receiver's part until the sender says how many there were: takes none while the sender wants it so. */
static void take_when_told(dn_world_t *world)
{
    const dn_board_seat_t *sender = &world->board->seat[0];

    while (0 == dn_load_acquire(&sender->word[TOTAL])) {
        const uint64_t hold = dn_load_acquire(&sender->word[HOLD]);
        dn_world_post(world, HELD, hold);
        if (0 != hold) {
            sched_yield();
        } else {
            dn_world_progress(world);
            dn_world_post(world, TAKEN, taken);
        }
    }
    dn_check_equal(taken, sender->word[TOTAL]);
}

/** From here on the receiver takes nothing, or whatever comes. */
static void hold_receiver(dn_world_t *world, uint64_t hold)
{
    dn_world_post(world, HOLD, hold);
    while (hold != dn_load_acquire(&world->board->seat[1].word[HELD])) {
        dn_world_progress(world);
    }
}

/** One try. @return whether message `number` was accepted. */
static int offer(dn_world_t *world, uint64_t number, size_t len)
{
    static uint8_t data[1 << 16];

    dn_test_fill(data, len, number);
    const dn_status_t status = dn_botf(world->peer[1], DN_WORLD_CHAN, tag_of(number, len), data, len / 3,
                                       data + len / 3, len - len / 3);
    dn_check(DN_OK == status || DN_ERR_AGAIN == status);
    dn_progress(world->port);
    return DN_OK == status;
}

/** Offer a message until it is accepted, so many times at most. */
static int offer_patiently(dn_world_t *world, uint64_t number, size_t len)
{
    int tries = 1;

    while (tries < REFUSALS && !offer(world, number, len)) {
        tries++;
    }
    return tries < REFUSALS;
}

/** All that was sent is taken: the ring is empty. */
static void drain(dn_world_t *world, uint64_t sent)
{
    hold_receiver(world, 0);
    dn_world_await(world, 1, TAKEN, sent);
}

/** Leave the ring empty, its sender at any place: messages of all lengths while none is taken, then all are. */
static void wander(dn_world_t *world, uint64_t *sent, size_t max)
{
    const uint64_t most = dn_test_below(&world->random, world->config.ring_lines);
    size_t len = dn_test_length(&world->random, max);

    hold_receiver(world, 1);
    for (uint64_t lines = 0; lines <= most && offer_patiently(world, *sent, len); lines += 1 + len / 64) {
        ++*sent;
        len = dn_test_length(&world->random, max);
    }
    drain(world, *sent);
}

/** What is tried from an empty ring in any state; it counts in *sent what it sends. */
typedef void (*trial_fn_t)(dn_world_t *world, uint64_t *sent, const dn_peer_attr_t *attr, unsigned round);

static void in_every_state(dn_world_t *world, unsigned rounds, trial_fn_t trial)
{
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, take, NULL), DN_OK);
    dn_world_barrier(world);
    if (0 == world->rank) {
        uint64_t sent = 0;
        dn_peer_attr(world->peer[1], &attr);
        for (unsigned round = 0; round < rounds; round++) {
            trial(world, &sent, &attr, round);
            wander(world, &sent, attr.botf_max);
        }
        dn_world_post(world, TOTAL, sent);
    } else {
        take_when_told(world);
    }
    dn_world_stop(world);
}

/** Messages of one line each: a quarter of the ring's lines at least, at first nearly all of them. */
static void fill_up(dn_world_t *world, uint64_t *sent, const dn_peer_attr_t *attr, unsigned round)
{
    const uint64_t lines = world->config.ring_lines;
    const uint64_t before = *sent;

    hold_receiver(world, 1);
    while (offer_patiently(world, *sent, attr->botf_inline - round % (attr->botf_inline + 1))) {
        ++*sent;
    }
    dn_check(lines / 4 <= *sent - before);
    dn_check(0 < round || lines - lines / 8 <= *sent - before);
    drain(world, *sent);
}

void a_quarter_of_a_ring_is_filled_before_its_sender_waits(dn_world_t *world)
{
    /* Each length once. */
    enum { LENGTHS = 60 };

#ifdef __SANITIZE_ADDRESS__
    /* More states of the ring are tried where it takes no minute. */
    in_every_state(world, LENGTHS, fill_up);
#else
    in_every_state(world, LENGTHS + dn_test_rounds(240), fill_up);
#endif
}

/** The longest message, by turns from elsewhere and built in place; at the first try unless faults refuse it. */
static void send_longest(dn_world_t *world, uint64_t *sent, const dn_peer_attr_t *attr, unsigned round)
{
    const size_t max = attr->botf_max;
    const int tries = '\0' == world->config.fault[0] ? 1 : REFUSALS;
    dn_window_t window = {NULL, 0, 0};
    dn_status_t status = DN_ERR_AGAIN;

    if (0 == round % 2) {
        dn_check(offer(world, *sent, max) || (1 < tries && offer_patiently(world, *sent, max)));
        ++*sent;
        return;
    }
    for (int i = 0; i < tries && DN_ERR_AGAIN == status; i++) {
        dn_progress(world->port);
        status = dn_botf_reserve(world->peer[1], max, &window);
    }
    dn_check_equal(status, DN_OK);
    dn_test_fill(window.data, max, *sent);
    dn_botf_kick(world->peer[1], &window, DN_WORLD_CHAN, tag_of(*sent, max), max);
    ++*sent;
}

void the_longest_message_goes_whenever_the_ring_is_empty(dn_world_t *world)
{
    in_every_state(world, dn_test_rounds(1000), send_longest);
}

/** Lengths to which a window of `max` bytes is cut: those around each change of path, then any. */
static size_t cut_of(uint64_t number, size_t max)
{
    static const size_t edge[] = {0,  1,  2,  3,  4,  7,  8,  9,   15,  16,  17,  31,  32,
                                  33, 55, 56, 57, 63, 64, 65, 119, 120, 121, 127, 128, 129};
    const size_t edges = sizeof(edge) / sizeof(edge[0]);
    uint64_t random = number;
    const uint64_t way = dn_test_below(&random, edges + 12);

    if (way < edges) {
        return edge[way];
    }
    return way < edges + 4 ? max - (way - edges) : dn_test_below(&random, max);
}

void the_longest_windows_are_kicked_with_any_length(dn_world_t *world)
{
    const uint64_t count = dn_test_rounds(6000);
    dn_peer_attr_t attr;

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, take, NULL), DN_OK);
    dn_world_barrier(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_peer_attr(peer, &attr);
    for (uint64_t i = 0; 0 == world->rank && i < count; i++) {
        const size_t len = cut_of(i, attr.botf_max);
        dn_window_t window = {NULL, 0, 0};
        dn_status_t status;
        while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, attr.botf_max, &window))) {
            dn_world_progress(world);
        }
        dn_check_equal(status, DN_OK);
        dn_check_equal(window.len, attr.botf_max);
        /* All of it belongs to the sender until the kick. */
        memset(window.data, 0xee, window.len);
        dn_test_fill(window.data, len, i);
        dn_botf_kick(peer, &window, DN_WORLD_CHAN, tag_of(i, len), len);
    }
    while (1 == world->rank && taken < count) {
        /* Behind by more or less, so that the sender comes to every place of the ring. */
        if (0 == dn_recv(peer, 1 + (int) dn_test_below(&world->random, 6)) || 0 == taken % 16) {
            sched_yield();
        }
    }
    dn_world_stop(world);
    dn_check_equal(taken, 1 == world->rank ? count : 0);
}
