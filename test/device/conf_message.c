/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conformance.h"

/** What the handler below has seen; one per process. */
static struct {
    uint64_t messages;
    uint64_t random; /**< repeats what the sender drew */
    size_t max;
    size_t len;
    unsigned tag;
    uint64_t order[2];
} seen;

static dn_peer_attr_t attributes(dn_peer_t *peer)
{
    dn_peer_attr_t attr;

    dn_peer_attr(peer, &attr);
    return attr;
}

/** Lengths around every change of path, then any. */
static size_t length_of(uint64_t number, uint64_t *random, const dn_peer_attr_t *attr)
{
    const size_t edge[] = {0,
                           1,
                           2,
                           3,
                           4,
                           7,
                           8,
                           9,
                           15,
                           16,
                           17,
                           31,
                           32,
                           33,
                           attr->botf_inline - 1,
                           attr->botf_inline,
                           attr->botf_inline + 1,
                           63,
                           64,
                           65,
                           127,
                           128,
                           129,
                           464,
                           attr->botf_max / 2,
                           attr->botf_max - 1,
                           attr->botf_max};

    if (number < sizeof(edge) / sizeof(edge[0])) {
        return edge[number];
    }
    return dn_test_length(random, attr->botf_max);
}

static void check_numbered(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    const dn_peer_attr_t attr = {.botf_inline = 56, .botf_max = seen.max};

    (void) src;
    (void) arg;
    dn_check_equal(len, length_of(seen.messages, &seen.random, &attr));
    dn_check_equal(tag, seen.messages & 0xff);
    dn_check_equal((uintptr_t) data % 8, 0);
    dn_check_bytes(data, len, seen.messages);
    seen.messages++;
}

/** Both send `count` numbered messages and check those of the other. */
static void exchange(dn_world_t *world, uint64_t count)
{
    uint8_t *data = malloc(1 << 20);
    uint64_t random = 4;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    const dn_peer_attr_t attr = attributes(peer);
    dn_check_equal(attr.botf_inline, 56);
    dn_check(464 <= attr.botf_max && attr.botf_max <= 1 << 20);
    seen.random = random;
    seen.max = attr.botf_max;
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, check_numbered, NULL), DN_OK);
    for (uint64_t i = 0; i < count; i++) {
        const size_t len = length_of(i, &random, &attr);
        dn_test_fill(data, len, i);
        dn_world_send(world, peer, DN_WORLD_CHAN, i & 0xff, data, len);
        memset(data, 0xdd, len);
        if (0 == i % 8) {
            dn_world_progress(world);
        }
    }
    while (seen.messages < count) {
        dn_world_progress(world);
    }
    dn_world_stop(world);
    dn_check_equal(seen.messages, count);
    free(data);
}

void messages_of_every_length_arrive_whole(dn_world_t *world)
{
    exchange(world, 200);
}

void messages_arrive_in_order(dn_world_t *world)
{
    exchange(world, dn_test_rounds(5000));
}

/** Whether a message that dn_peek() shows is the next one of an exchange, and stays it until it is taken. */
static void check_shown(dn_peer_t *src, const dn_message_t *shown)
{
    dn_message_t again;

    dn_check_equal(dn_peek(src, DN_WORLD_CHAN + 1, 1, &again), DN_ERR_UNSUPPORTED);
    dn_check_equal(dn_peek(src, DN_WORLD_CHAN, 1, &again), DN_OK);
    dn_check(shown->data == again.data && shown->len == again.len && shown->tag == again.tag);
    check_numbered(src, shown->tag, shown->data, shown->len, NULL);
    dn_take(src, shown);
}

void messages_are_taken_where_they_lie_or_by_handlers_in_order(dn_world_t *world)
{
    enum { OTHER = 7 };
    const uint64_t count = dn_test_rounds(3000);
    uint8_t *data = malloc(1 << 20);
    uint64_t random = 4;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    const dn_peer_attr_t attr = attributes(peer);
    seen.random = random;
    seen.max = attr.botf_max;
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, check_numbered, NULL), DN_OK);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN + 1, check_numbered, NULL), DN_OK);
    for (uint64_t i = 0; 0 == world->rank && i < count; i++) {
        const size_t len = length_of(i, &random, &attr);
        dn_test_fill(data, len, i);
        dn_world_send(world, peer, DN_WORLD_CHAN + (0 == i % OTHER), i & 0xff, data, len);
    }
    while (1 == world->rank && seen.messages < count) {
        dn_message_t message;
        const dn_status_t status = dn_peek(peer, DN_WORLD_CHAN, 1, &message);

        if (DN_OK == status) {
            check_shown(peer, &message);
        } else if (DN_ERR_UNSUPPORTED == status) {
            dn_recv(peer, 1);
        } else {
            dn_check_equal(status, DN_ERR_AGAIN);
        }
        if (DN_OK != status) {
            dn_world_progress(world);
        }
    }
    dn_world_stop(world);
    free(data);
}

static void note_order(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) data;
    (void) len;
    seen.order[*(unsigned *) arg] = ++seen.messages;
    seen.tag = tag;
}

void messages_wait_for_their_handler(dn_world_t *world)
{
    static unsigned first = 0, second = 1;

    dn_world_start(world);
    if (0 == world->rank) {
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 1, "early", 5);
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN + 1, 2, "late", 4);
        dn_world_fence(world, world->peer[1]);
    } else {
        dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN + 1, note_order, &second), DN_OK);
    }
    dn_world_barrier(world);
    for (int i = 0; i < 200; i++) {
        dn_progress(world->port);
    }
    dn_check_equal(seen.messages, 0);
    if (1 == world->rank) {
        dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, note_order, &first), DN_OK);
        while (seen.messages < 2) {
            dn_world_progress(world);
        }
        dn_check_equal(seen.order[first], 1);
        dn_check_equal(seen.order[second], 2);
        dn_check_equal(seen.tag, 2);
    }
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_handler_clear(world->port, DN_WORLD_CHAN);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 3, "again", 5);
        dn_world_fence(world, world->peer[1]);
    }
    dn_world_barrier(world);
    for (int i = 0; i < 200; i++) {
        dn_progress(world->port);
    }
    dn_check_equal(seen.messages, 2 * (uint64_t) world->rank);
    dn_world_stop(world);
}

static void check_window(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) arg;
    const size_t reserved = dn_test_length(&seen.random, seen.max);
    const size_t kicked = 0 == seen.messages % 3 ? reserved : dn_test_below(&seen.random, reserved + 1);
    dn_check_equal(len, kicked);
    dn_check_equal(tag, seen.messages & 0xff);
    dn_check_bytes(data, len, seen.messages);
    seen.messages++;
}

static void kick_one(dn_world_t *world, dn_peer_t *peer, uint64_t number, uint64_t *random)
{
    dn_window_t window = {NULL, 0, 0};
    const size_t reserved = dn_test_length(random, seen.max);
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, reserved, &window))) {
        dn_world_progress(world);
    }
    dn_check_equal(status, DN_OK);
    dn_check_equal(window.len, reserved);
    dn_check_equal((uintptr_t) window.data % 8, 0);
    dn_test_fill(window.data, reserved, number);
    const size_t kicked = 0 == number % 3 ? reserved : dn_test_below(random, reserved + 1);
    dn_botf_kick(peer, &window, DN_WORLD_CHAN, number & 0xff, kicked);
}

void windows_are_kicked_whole_or_shorter(dn_world_t *world)
{
    const uint64_t count = dn_test_rounds(3000);
    uint64_t random = 5;

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    seen.random = random;
    seen.max = attributes(peer).botf_max;
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, check_window, NULL), DN_OK);
    for (uint64_t i = 0; i < count; i++) {
        kick_one(world, peer, i, &random);
        if (0 == i % 8) {
            dn_world_progress(world);
        }
    }
    while (seen.messages < count) {
        dn_world_progress(world);
    }
    dn_world_stop(world);
}

static void count_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) arg;
    seen.messages++;
    seen.len = len;
}

void messages_too_long_are_refused(dn_world_t *world)
{
    dn_window_t window = {NULL, 0, 0};

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    const size_t max = attributes(peer).botf_max;
    uint8_t *data = calloc(1, max + 1);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_message, NULL), DN_OK);
    dn_test_log.expected = 1;
    dn_check_equal(dn_botf(peer, DN_WORLD_CHAN, 0, data, max + 1, NULL, 0), DN_ERR_RANGE);
    dn_check_equal(dn_botf(peer, DN_WORLD_CHAN, 0, NULL, 0, data, max + 1), DN_ERR_RANGE);
    dn_check_equal(dn_botf(peer, DN_WORLD_CHAN, 0, data, max, data, 1), DN_ERR_RANGE);
    dn_check_equal(dn_botf(peer, DN_WORLD_CHAN, 0, data, 64, data, SIZE_MAX - 31), DN_ERR_RANGE);
    dn_check_equal(dn_botf_reserve(peer, max + 1, &window), DN_ERR_RANGE);
    dn_check_equal(dn_botf_reserve(peer, SIZE_MAX, &window), DN_ERR_RANGE);
    dn_test_log.expected = 0;
    dn_world_send(world, peer, DN_WORLD_CHAN, 0, data, max);
    while (0 == seen.messages) {
        dn_world_progress(world);
    }
    dn_check_equal(seen.len, max);
    dn_world_stop(world);
    dn_check_equal(seen.messages, 1);
    free(data);
}

enum { PINGS = 2000 };

/** How often each numbered message has been handled. */
static uint8_t handled[PINGS];

/** Answers while inside: the answers overtake each other then, but none is lost, doubled or torn. */
static void answer(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_world_t *world = arg;
    uint8_t copy[700];
    uint64_t number;

    dn_check_equal(len, sizeof(copy));
    memcpy(copy, data, len);
    memcpy(&number, copy, sizeof(number));
    dn_check(number < PINGS);
    dn_check_bytes(copy + sizeof(number), len - sizeof(number), number);
    dn_check_equal(handled[number], 0);
    handled[number] = 1;
    seen.messages++;
    /* Progress may deliver what comes behind; the data in hand must stay. */
    dn_progress(world->port);
    dn_check(0 == memcmp(copy, data, len));
    if (0 != tag) {
        dn_world_send(world, src, DN_WORLD_CHAN, 0, copy, len);
        dn_check(0 == memcmp(copy, data, len));
    }
}

void handlers_may_send_and_progress(dn_world_t *world)
{
    uint8_t data[700] = {0};

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, answer, world), DN_OK);
    dn_world_barrier(world);
    if (0 == world->rank) {
        for (uint64_t i = 0; i < PINGS; i++) {
            memcpy(data, &i, sizeof(i));
            dn_test_fill(data + sizeof(i), sizeof(data) - sizeof(i), i);
            dn_world_send(world, world->peer[1], DN_WORLD_CHAN, 1, data, sizeof(data));
        }
    }
    while (seen.messages < PINGS) {
        dn_world_progress(world);
    }
    dn_world_stop(world);
    dn_check_equal(seen.messages, PINGS);
}

static uint64_t from[DN_WORLD_MAX];

static void count_source(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_peer_attr_t attr;

    (void) tag;
    (void) arg;
    dn_peer_attr(src, &attr);
    dn_check(attr.pid < DN_WORLD_MAX);
    dn_check_bytes(data, len, attr.pid);
    from[attr.pid]++;
}

void recv_takes_from_one_source_only(dn_world_t *world)
{
    uint8_t data[200];

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_source, NULL), DN_OK);
    for (int i = 0; i < 100; i++) {
        dn_progress(world->port);
    }
    dn_world_barrier(world);
    if (0 != world->rank) {
        dn_test_fill(data, sizeof(data), (uint64_t) world->rank);
        for (int i = 0; i < 10; i++) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, data, sizeof(data));
        }
        dn_world_fence(world, world->peer[0]);
        dn_world_post(world, 0, 1);
        dn_world_await(world, 0, 0, 1);
    } else {
        /* Both senders are known by now; from here on nothing but dn_recv() is called. */
        for (int i = 1; i < 3; i++) {
            dn_world_sleep(world, i, 0, 1);
        }
        int got = dn_recv(world->peer[1], 3);
        dn_check(0 <= got && got <= 3);
        while (from[1] < 10) {
            got = dn_recv(world->peer[1], 3);
            dn_check(0 <= got && got <= 3);
            dn_check_equal(from[2], 0);
        }
        while (from[2] < 10) {
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 1);
    }
    dn_world_stop(world);
}

/** Messages of the test below come in order, and each handler says that it has enough. */
static void take_one(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint64_t number;

    (void) tag;
    (void) arg;
    dn_check(sizeof(number) <= len);
    memcpy(&number, data, sizeof(number));
    dn_check_equal(number, seen.messages);
    seen.messages++;
    dn_recv_enough(src);
}

/** dn_recv_enough() is a hint: the rest may come in the same call, or in later ones, but it comes. */
void who_has_enough_gets_the_rest_later(dn_world_t *world)
{
    const uint64_t messages = 5000;
    static uint8_t data[4096];

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, take_one, NULL), DN_OK);
    dn_world_barrier(world);
    for (uint64_t i = 0; i < messages && 0 != world->rank; i++) {
        const size_t len =
            0 == i % 7 && sizeof(data) <= attributes(world->peer[0]).botf_max ? sizeof(data) : 40;

        memcpy(data, &i, sizeof(i));
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, data, len);
    }
    while (0 == world->rank && seen.messages < messages) {
        if (0 == seen.messages % 3) {
            (void) dn_recv(world->peer[1], 100);
        } else {
            dn_world_progress(world);
        }
    }
    dn_world_stop(world);
}

void many_peers_all_send_to_all(dn_world_t *world)
{
    const uint64_t each = 40;
    uint8_t data[300];
    uint64_t total = 0;

    dn_world_start(world);
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_source, NULL), DN_OK);
    dn_test_fill(data, sizeof(data), (uint64_t) world->rank);
    for (uint64_t i = 0; i < each; i++) {
        for (int k = 0; k < world->size; k++) {
            if (k != world->rank) {
                dn_world_send(world, world->peer[k], DN_WORLD_CHAN, 0, data,
                              dn_test_length(&world->random, 300));
            }
        }
    }
    while (total < each * (uint64_t) (world->size - 1)) {
        dn_world_progress(world);
        total = 0;
        for (int k = 0; k < world->size; k++) {
            total += from[k];
        }
    }
    for (int k = 0; k < world->size; k++) {
        dn_check_equal(from[k], k == world->rank ? 0 : each);
    }
    dn_world_stop(world);
}

void handlers_are_set_once_and_only_where_allowed(dn_world_t *world)
{
    static const unsigned bad[] = {DN_CHAN_CORE, DN_CHAN_DEVICE, DN_CHAN_MAX, DN_CHAN_MAX + 1, UINT32_MAX};

    dn_world_open(world);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dn_test_log_expect();
        dn_check_equal(dn_handler_set(world->port, bad[i], count_message, NULL), DN_ERR_PARAM);
        dn_check(dn_test_log_said(1, "channel"));
    }
    for (unsigned i = DN_CHAN_BTL; i < DN_CHAN_MAX; i++) {
        dn_check_equal(dn_handler_set(world->port, i, count_message, NULL), DN_OK);
        dn_test_log_expect();
        dn_check_equal(dn_handler_set(world->port, i, count_source, NULL), DN_ERR_PARAM);
        dn_check(dn_test_log_said(1, "handler"));
        dn_handler_clear(world->port, i);
        dn_check_equal(dn_handler_set(world->port, i, count_message, NULL), DN_OK);
    }
    dn_world_stop(world);
}

void counters_grow(dn_world_t *world)
{
    dn_counters_t before, after;
    uint8_t data[1000] = {0};

    dn_world_start(world);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, count_message, NULL), DN_OK);
    dn_counters(world->port, &before);
    for (int i = 0; i < 10; i++) {
        dn_world_send(world, peer, DN_WORLD_CHAN, 0, data, 8);
        dn_world_send(world, peer, DN_WORLD_CHAN, 0, data, 1000);
    }
    dn_world_fence(world, peer);
    dn_counters(world->port, &after);
    dn_check_equal(after.messages_sent - before.messages_sent, 20);
    dn_check_equal(after.bytes_sent - before.bytes_sent, 10080);
    dn_check(10 + 10 * (1000 / 64) <= after.lines_sent - before.lines_sent);
    /* A bad wire changes datagrams, and the port counts each of these. */
    if (NULL == getenv("DN_BAD_WIRE")) {
        dn_check_equal(after.dropped, 0);
    }
    while (seen.messages < 20) {
        dn_world_progress(world);
    }
    dn_world_barrier(world);
    /* Until the other's ring is full: it does not progress now. */
    if (0 == world->rank) {
        dn_counters(world->port, &before);
        after = before;
        while (before.credit_waits == after.credit_waits) {
            const dn_status_t status = dn_botf(peer, DN_WORLD_CHAN, 0, data, 1000, NULL, 0);
            dn_check(DN_OK == status || DN_ERR_AGAIN == status);
            dn_progress(world->port);
            dn_counters(world->port, &after);
        }
        dn_world_post(world, 0, 1);
    } else {
        dn_world_sleep(world, 0, 0, 1);
    }
    dn_world_stop(world);
}
