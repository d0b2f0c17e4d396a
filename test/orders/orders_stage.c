/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The stage (dn_shm_stage.c): messages that fill more than half a granule each, so that every one opens another; granules come
 * round to the same receiver, and from one receiver to another. Receivers run the poll of the shm device.
 */
#include "dn_config.h"

#include "orders_cases.h"
#include "shm/dn_shm_int.h"

#include <string.h>

enum { LINES = 64, LENGTH = 20000, LOOKED_AT = 8, GRANULES = 3, RECEIVERS = 2, CHANNEL = 8 };

static unsigned granules, messages, receivers;
static dn_shm_t sender, receiver[RECEIVERS];
static dn_shm_granule_t granule[GRANULES];
static dn_shm_peer_t to[RECEIVERS], from[RECEIVERS];
static dn_shm_rx_t rx[RECEIVERS];
static dn_handler_t handler[RECEIVERS][DN_CHAN_MAX];
static unsigned received[RECEIVERS];
/** Nobody sleeps: the bell in it is even. */
static dn_shm_header_t awake;

static dn_ring_t *ring(unsigned i)
{
    return (dn_ring_t *) (dn_explore_memory + GRANULES * DN_SHM_GRANULE + 1024 + i * 8192);
}

/** The first and the last bytes of a message, which stand for all. */
static uint8_t byte_of(unsigned message, size_t at)
{
    return (uint8_t) (37 * message + at);
}

static void handle(dn_peer_t *peer, unsigned tag, const void *data, size_t len, void *arg)
{
    unsigned *number = arg;
    const uint8_t *bytes = data;

    dn_explore_check(LENGTH == len && tag == *number, "another message than the one that was sent");
    for (size_t i = 0; i < LOOKED_AT; i++) {
        dn_explore_check(bytes[i] == byte_of(tag, i) && bytes[LENGTH - 1 - i] == byte_of(tag, i),
                         "another byte than the one that was sent");
    }
    *number += receivers;
}

static void set_up(unsigned of_granules, unsigned of_receivers, unsigned of_messages)
{
    granules = of_granules;
    receivers = of_receivers;
    messages = of_messages;
    memset(&sender, 0, sizeof(sender));
    memset(granule, 0, sizeof(granule));
    memset(to, 0, sizeof(to));
    memset(from, 0, sizeof(from));
    sender.map.stage = dn_explore_memory;
    sender.map.stage_bytes = granules * DN_SHM_GRANULE;
    sender.stage.count = granules;
    sender.stage.granule = granule;
    for (unsigned i = 0; i < granules; i++) {
        granule[i].put = UINT32_MAX;
        *dn_shm_taken(&sender.map, i) = UINT32_MAX;
        dn_explore_word(dn_shm_taken(&sender.map, i), sizeof(uint32_t), "taken");
    }
    for (unsigned i = 0; i < receivers; i++) {
        memset(&receiver[i], 0, sizeof(receiver[i]));
        memset(&rx[i], 0, sizeof(rx[i]));
        to[i].base.iface = &sender.iface;
        to[i].tx_state = DN_SHM_TX_STAGE;
        to[i].map.header = &awake;
        dn_line_tx_init(&to[i].tx, ring(i), LINES, 0);
        dn_line_rx_init(&rx[i].line, ring(i), LINES, 0);
        handler[i][CHANNEL] = (dn_handler_t){handle, &received[i]};
        received[i] = i;
        receiver[i].iface.handler = handler[i];
        from[i].base.iface = &receiver[i].iface;
        from[i].map = sender.map;
        from[i].map.header = &awake;
        from[i].rx = &rx[i];
        rx[i].peer = &from[i];
        rx[i].len_limit = DN_SHM_GRANULE + 1;
        dn_explore_word(&ring(i)->credit, sizeof(ring(i)->credit), "credit");
        for (unsigned line = 0; line <= messages / receivers + 1; line++) {
            dn_explore_word(&ring(i)->line[line].head, sizeof(uint64_t), "head");
        }
    }
}

static void send(void)
{
    for (unsigned i = 0; i < messages; i++) {
        uint8_t *place;

        DN_EXPLORE_UNTIL(DN_OK == dn_shm_stage_reserve(&to[i % receivers], LENGTH, &place));
        for (size_t at = 0; at < LOOKED_AT; at++) {
            place[at] = place[LENGTH - 1 - at] = byte_of(i, at);
        }
        dn_shm_stage_kick(&to[i % receivers], CHANNEL, i, LENGTH);
    }
}

static void receive(unsigned self)
{
    while (received[self] < messages) {
        DN_EXPLORE_UNTIL(0 != dn_shm_recv(&from[self].base, 1));
    }
}

static void receive_first(void)
{
    receive(0);
}

static void receive_second(void)
{
    receive(1);
}

static void to_one(void)
{
    set_up(2, 1, 6);
}

static void to_two(void)
{
    set_up(3, 2, 6);
}

#define ORDERS                                                \
    {                                                         \
        {"head", 1}, {"head", 0}, {"taken", 1}, {"taken", 0}, \
    }

const orders_case_t orders_stage[] = {
    {{"stage: granules come round", to_one, {send, receive_first}}, ORDERS},
    {{"stage: granules go from one receiver to another", to_two, {send, receive_first, receive_second}},
     ORDERS},
    {{NULL, NULL, {NULL}}, {{NULL, 0}}},
};
