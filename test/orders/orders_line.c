/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A ring of lines (dn_line.h): one thread sends, one receives. Rings have 8 to 16 lines, so that a few messages go round, run
 * out of room, go back to line 0 and meet what earlier laps have left.
 */
#include "dn_config.h"

#include "dn_line.h"
#include "orders_cases.h"

enum { MESSAGES = 12, LONGEST = 256 };

/** What is sent. */
typedef struct plan {
    uint32_t lines;
    uint32_t first; /**< lines that have passed before: near the wrap of the sequence */
    unsigned messages;
    uint16_t len[MESSAGES];
    int windows; /**< built in the ring, longer windows than messages */
} plan_t;

static const plan_t *plan;
static dn_line_tx_t tx;
static dn_line_rx_t rx;

static dn_ring_t *ring(void)
{
    return (dn_ring_t *) dn_explore_memory;
}

static void set_up(const plan_t *of)
{
    plan = of;
    dn_line_tx_init(&tx, ring(), of->lines, of->first);
    dn_line_rx_init(&rx, ring(), of->lines, of->first);
    dn_explore_word(&ring()->credit, sizeof(ring()->credit), "credit");
    for (uint32_t i = 0; i < of->lines; i++) {
        dn_explore_word(&ring()->line[i].head, sizeof(ring()->line[i].head), "head");
    }
}

/** The words of a message are heads that the receiver waits for in the next lap. */
static uint8_t byte_of(unsigned message, size_t at)
{
    const uint64_t head =
        (uint64_t) (uint32_t) (plan->first + plan->lines + message + (uint32_t) (at / 8) + 1)
        | UINT64_C(8) << 32;

    return (uint8_t) (head >> at % 8 * 8);
}

static void fill(uint8_t *to, unsigned message, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = byte_of(message, i);
    }
}

static int send_window(unsigned message, size_t len)
{
    uint8_t *window = dn_line_reserve(&tx, len + LONGEST / 4);

    if (NULL == window) {
        return 0;
    }
    fill(window, message, len + LONGEST / 4);
    dn_line_kick(&tx, 8, message, len);
    return 1;
}

static int send_one(unsigned message)
{
    uint8_t data[LONGEST];
    const size_t len = plan->len[message];

    if (plan->windows) {
        return send_window(message, len);
    }
    fill(data, message, len);
    return dn_line_send(&tx, 8, message, data, len / 3, data + len / 3, len - len / 3);
}

static void sender(void)
{
    for (unsigned i = 0; i < plan->messages; i++) {
        DN_EXPLORE_UNTIL(send_one(i));
    }
}

static void receiver(void)
{
    dn_line_msg_t msg;

    for (unsigned i = 0; i < plan->messages; i++) {
        DN_EXPLORE_UNTIL(dn_line_peek(&rx, &msg));
        dn_explore_check(msg.len == plan->len[i] && msg.tag == i, "another head than the one that was sent");
        for (size_t at = 0; at < msg.len; at++) {
            const uint8_t got = ((const uint8_t *) msg.data)[at];
            dn_explore_check(got == byte_of(i, at), "another byte than the one that was sent");
        }
        dn_line_advance(&rx, &msg);
        if (dn_line_credit_due(&rx)) {
            dn_line_return_credit(&rx);
        }
    }
}

static void short_messages(void)
{
    static const plan_t of = {.lines = 8, .messages = 10, .len = {8, 56, 1, 24, 8, 56, 0, 8, 40, 8}};
    set_up(&of);
}

static void long_messages(void)
{
    static const plan_t of = {.lines = 8, .messages = 8, .len = {100, 60, 150, 8, 180, 120, 70, 64}};
    set_up(&of);
}

static void at_the_wrap(void)
{
    static const plan_t of = {
        .lines = 8, .first = UINT32_MAX - 4, .messages = 9, .len = {8, 70, 8, 0, 100, 8, 8, 60, 8}};
    set_up(&of);
}

static void rewinding(void)
{
    static const plan_t of = {.lines = 16, .messages = 8, .len = {200, 8, 120, 8, 250, 100, 60, 8}};
    set_up(&of);
}

static void windows(void)
{
    static const plan_t of = {.lines = 10, .messages = 8, .len = {8, 20, 64, 8, 8, 100, 8, 8}, .windows = 1};
    set_up(&of);
}

#define ORDERS                                                  \
    {                                                           \
        {"head", 1}, {"head", 0}, {"credit", 1}, {"credit", 0}, \
    }

const orders_case_t orders_line[] = {
    {{"line: short messages", short_messages, {sender, receiver}}, ORDERS},
    {{"line: long messages", long_messages, {sender, receiver}}, ORDERS},
    {{"line: the sequence wraps", at_the_wrap, {sender, receiver}}, ORDERS},
    {{"line: back to line 0", rewinding, {sender, receiver}}, ORDERS},
    {{"line: windows kicked short", windows, {sender, receiver}}, ORDERS},
    {{NULL, NULL, {NULL}}, {{NULL, 0}}},
};
