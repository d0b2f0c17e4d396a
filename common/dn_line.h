/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_line.h
 * The message line: a ring of 64 B lines from one sender to one receiver, in memory both can touch.
 *
 *   +--------+--------+------------------------------------+----------------------------------+
 *   | credit |  pad   | line 0 | line 1 | ...  | line n-1  | bulk: longer messages, 64 B units|
 *   +--------+--------+------------------------------------+----------------------------------+
 *   a line:  head word  seq:32 | len:16 | tag:8 | channel:8, then up to 56 bytes of message
 *
 * The sequence in the head word is the flag: the receiver looks at the line that comes next and takes
 * it when its sequence is the expected one, so a short message costs one line transfer, and nothing is
 * cleared: a line that was not rewritten holds the sequence of an earlier lap. Only heads are written
 * at the place of a head, so no payload can look like one. A message above 56 bytes lies in the bulk
 * part; both ends know where, since both advance there by the same rule (dn_line_bulk_skip).
 *
 * Credit returns lazily: one word, lines:32 | bulk units:32 consumed, written by the receiver after a
 * quarter of either or when it runs idle, read by the sender when it has none left (the producer and
 * consumer ring of the AOTF paper, section 4).
 *
 * Memory orders:
 *   W0  sender fills a line or bulk, then stores the head word (release).
 *   R0  receiver loads the head word (acquire): pairs with W0, so it reads what W0 covers.
 *   R1  receiver is done reading, then stores the credit (release): its loads come before.
 *   W1  sender loads the credit (acquire): pairs with R1, so it overwrites only what was read.
 * Credit is loaded only when room runs out, hence W1 is off the common path.
 *
 * Threads: one sender and one receiver at a time; who has several threads locks outside.
 */
#ifndef DN_LINE_H
#define DN_LINE_H

#include <stddef.h>
#include <string.h>

#include "dn_atomic.h"

#define DN_LINE_BYTES  64u
#define DN_LINE_INLINE 56u

typedef struct dn_line {
    uint64_t head;
    uint8_t data[DN_LINE_INLINE];
} dn_line_t;

_Static_assert(sizeof(dn_line_t) == DN_LINE_BYTES, "a message line is one cache line");

/** Start of a ring in shared memory; the credit has a pair of lines to itself (adjacent-line prefetch). */
typedef struct dn_ring {
    uint64_t credit;
    uint8_t pad[2 * DN_LINE_BYTES - sizeof(uint64_t)];
    dn_line_t line[];
} dn_ring_t;

_Static_assert(offsetof(dn_ring_t, line) == 2 * DN_LINE_BYTES, "lines are aligned");

/** The sender's end, private to it. */
typedef struct dn_line_tx {
    dn_ring_t *ring;
    uint8_t *bulk;
    uint32_t lines; /**< power of two */
    uint32_t bulk_units;
    uint32_t tail;       /**< lines sent, wraps */
    uint32_t line_limit; /**< tail may not reach beyond */
    uint32_t bulk_tail;  /**< units sent or skipped, wraps */
    uint32_t bulk_limit;
    uint32_t bulk_at;  /**< bulk_tail's place, 0 .. bulk_units - 1 */
    uint32_t reserved; /**< length of the window that waits for its kick */
} dn_line_tx_t;

/** The receiver's end, private to it. */
typedef struct dn_line_rx {
    dn_ring_t *ring;
    uint8_t *bulk;
    uint32_t lines;
    uint32_t bulk_units;
    uint32_t head; /**< lines taken, wraps */
    uint32_t bulk_head;
    uint32_t bulk_at;
    uint32_t line_published; /**< as in the credit word */
    uint32_t bulk_published;
    uint32_t depth; /**< handlers running on this ring, one inside the other */
} dn_line_rx_t;

/** One message as the receiver finds it. */
typedef struct dn_line_msg {
    const void *data;
    uint32_t len;
    uint8_t tag;
    uint8_t channel;
} dn_line_msg_t;

/** Bytes of a ring. */
static inline size_t dn_ring_bytes(uint32_t lines, uint32_t bulk_bytes)
{
    return sizeof(dn_ring_t) + (size_t) lines * DN_LINE_BYTES + bulk_bytes;
}

/** Longest message: half of the bulk part, so that one always fits into an empty ring whatever is skipped. */
static inline uint32_t dn_line_max(uint32_t bulk_bytes)
{
    const uint32_t half = bulk_bytes / 2 / DN_LINE_BYTES * DN_LINE_BYTES;
    return half < 65472u ? half : 65472u;
}

static inline void dn_line_tx_init(dn_line_tx_t *tx, dn_ring_t *ring, uint32_t lines, uint32_t bulk_bytes)
{
    memset(tx, 0, sizeof(*tx));
    tx->ring = ring;
    tx->bulk = (uint8_t *) ring + dn_ring_bytes(lines, 0);
    tx->lines = lines;
    tx->bulk_units = bulk_bytes / DN_LINE_BYTES;
    tx->line_limit = lines;
    tx->bulk_limit = tx->bulk_units;
}

static inline void dn_line_rx_init(dn_line_rx_t *rx, dn_ring_t *ring, uint32_t lines, uint32_t bulk_bytes)
{
    memset(rx, 0, sizeof(*rx));
    rx->ring = ring;
    rx->bulk = (uint8_t *) ring + dn_ring_bytes(lines, 0);
    rx->lines = lines;
    rx->bulk_units = bulk_bytes / DN_LINE_BYTES;
}

/** Units left unused at the end because a message of @p units would not fit before it. */
static inline uint32_t dn_line_bulk_skip(uint32_t at, uint32_t units, uint32_t bulk_units)
{
    return at + units > bulk_units ? bulk_units - at : 0;
}

static inline uint32_t dn_line_units(size_t len)
{
    return (uint32_t) ((len + DN_LINE_BYTES - 1) / DN_LINE_BYTES);
}

/** Read the credit again (W1). */
static inline void dn_line_refresh(dn_line_tx_t *tx)
{
    const uint64_t credit = dn_load_acquire(&tx->ring->credit);
    tx->line_limit = (uint32_t) (credit >> 32) + tx->lines;
    tx->bulk_limit = (uint32_t) credit + tx->bulk_units;
}

/** Room for a message of @p len bytes by the limits known? */
static inline int dn_line_has_room(const dn_line_tx_t *tx, size_t len)
{
    if (tx->tail == tx->line_limit) {
        return 0;
    }
    if (len <= DN_LINE_INLINE) {
        return 1;
    }
    const uint32_t units = dn_line_units(len);
    const uint32_t need = units + dn_line_bulk_skip(tx->bulk_at, units, tx->bulk_units);
    return tx->bulk_limit - tx->bulk_tail >= need;
}

/** As dn_line_has_room, asking the receiver when there seems to be none. */
static inline int dn_line_room(dn_line_tx_t *tx, size_t len)
{
    if (__builtin_expect(dn_line_has_room(tx, len), 1)) {
        return 1;
    }
    dn_line_refresh(tx);
    return dn_line_has_room(tx, len);
}

/** Copy at most DN_LINE_INLINE bytes without a call: two overlapping moves of one size class. */
static inline void dn_copy_inline(void *to, const void *from, size_t len)
{
    char *t = to;
    const char *f = from;
    if (len >= 16) {
        for (; len > 32; len -= 16, t += 16, f += 16) {
            memcpy(t, f, 16);
        }
        char last[16];
        memcpy(last, f + len - 16, 16);
        memcpy(t, f, 16);
        memcpy(t + len - 16, last, 16);
    } else if (len >= 8) {
        uint64_t last;
        memcpy(&last, f + len - 8, 8);
        memcpy(t, f, 8);
        memcpy(t + len - 8, &last, 8);
    } else if (len >= 4) {
        uint32_t last;
        memcpy(&last, f + len - 4, 4);
        memcpy(t, f, 4);
        memcpy(t + len - 4, &last, 4);
    } else if (len > 0) {
        t[0] = f[0];
        t[len / 2] = f[len / 2];
        t[len - 1] = f[len - 1];
    }
}

/** Where the next bulk message of @p len bytes lies. */
static inline uint8_t *dn_line_bulk_place(const dn_line_tx_t *tx, size_t len)
{
    const uint32_t skip = dn_line_bulk_skip(tx->bulk_at, dn_line_units(len), tx->bulk_units);
    return tx->bulk + (size_t) (0 != skip ? 0 : tx->bulk_at) * DN_LINE_BYTES;
}

/** Publish the message whose bytes are in place (W0). Room was there. */
static inline void dn_line_publish(dn_line_tx_t *tx, unsigned channel, unsigned tag, size_t len)
{
    if (len > DN_LINE_INLINE) {
        const uint32_t units = dn_line_units(len);
        const uint32_t skip = dn_line_bulk_skip(tx->bulk_at, units, tx->bulk_units);
        tx->bulk_tail += skip + units;
        tx->bulk_at = (0 != skip ? 0 : tx->bulk_at) + units;
        if (tx->bulk_at == tx->bulk_units) {
            tx->bulk_at = 0;
        }
    }
    dn_line_t *line = &tx->ring->line[tx->tail & (tx->lines - 1)];
    tx->tail++;
    dn_store_release(&line->head, (uint64_t) tx->tail | (uint64_t) len << 32 | (uint64_t) (tag & 0xff) << 48
                                      | (uint64_t) (channel & 0xff) << 56);
}

/** Send head then body as one message. @return 0 when there is no room. len is at most dn_line_max(). */
static inline int dn_line_send(dn_line_tx_t *tx, unsigned channel, unsigned tag, const void *head,
                               size_t head_len, const void *body, size_t body_len)
{
    const size_t len = head_len + body_len;
    if (!dn_line_room(tx, len)) {
        return 0;
    }
    if (len <= DN_LINE_INLINE) {
        uint8_t *data = tx->ring->line[tx->tail & (tx->lines - 1)].data;
        dn_copy_inline(data, head, head_len);
        dn_copy_inline(data + head_len, body, body_len);
    } else {
        uint8_t *data = dn_line_bulk_place(tx, len);
        if (0 != head_len) {
            memcpy(data, head, head_len);
        }
        if (0 != body_len) {
            memcpy(data + head_len, body, body_len);
        }
    }
    dn_line_publish(tx, channel, tag, len);
    return 1;
}

/** Place to build a message of up to @p len bytes, NULL: no room. Ends with dn_line_kick. */
static inline void *dn_line_reserve(dn_line_tx_t *tx, size_t len)
{
    if (!dn_line_room(tx, len)) {
        return NULL;
    }
    tx->reserved = (uint32_t) len;
    return len <= DN_LINE_INLINE ? tx->ring->line[tx->tail & (tx->lines - 1)].data
                                 : dn_line_bulk_place(tx, len);
}

/** Publish what was built: @p len bytes, at most what was reserved. */
static inline void dn_line_kick(dn_line_tx_t *tx, unsigned channel, unsigned tag, size_t len)
{
    const uint32_t reserved = tx->reserved;
    if (reserved > DN_LINE_INLINE) {
        uint8_t *built = dn_line_bulk_place(tx, reserved);
        if (len <= DN_LINE_INLINE) {
            dn_copy_inline(tx->ring->line[tx->tail & (tx->lines - 1)].data, built, len);
        } else if (built != dn_line_bulk_place(tx, len)) {
            /* Shorter than reserved, it fits before the end of the ring after all: the receiver looks there. */
            memmove(dn_line_bulk_place(tx, len), built, len);
        }
    }
    dn_line_publish(tx, channel, tag, len);
}

/** Is a message there (R0)? Its length is the sender's word: check it against dn_line_max() before use. */
static inline int dn_line_peek(const dn_line_rx_t *rx, dn_line_msg_t *msg)
{
    const dn_line_t *line = &rx->ring->line[rx->head & (rx->lines - 1)];
    const uint64_t head = dn_load_acquire(&line->head);
    if ((uint32_t) head != rx->head + 1) {
        return 0;
    }
    msg->len = (uint32_t) (head >> 32) & 0xffff;
    msg->tag = (uint8_t) (head >> 48);
    msg->channel = (uint8_t) (head >> 56);
    if (msg->len <= DN_LINE_INLINE) {
        msg->data = line->data;
    } else {
        const uint32_t skip = dn_line_bulk_skip(rx->bulk_at, dn_line_units(msg->len), rx->bulk_units);
        msg->data = rx->bulk + (size_t) (0 != skip ? 0 : rx->bulk_at) * DN_LINE_BYTES;
    }
    return 1;
}

/** Nothing to take, no credit to return: the answer of most polls. */
static inline int dn_line_quiet(const dn_line_rx_t *rx)
{
    const uint64_t head = dn_load_acquire(&rx->ring->line[rx->head & (rx->lines - 1)].head);
    return (uint32_t) head != rx->head + 1 && rx->head == rx->line_published;
}

/** Go past the message found by dn_line_peek, whose length has been checked against dn_line_max(). */
static inline void dn_line_advance(dn_line_rx_t *rx, uint32_t len)
{
    rx->head++;
    if (len > DN_LINE_INLINE) {
        const uint32_t units = dn_line_units(len);
        const uint32_t skip = dn_line_bulk_skip(rx->bulk_at, units, rx->bulk_units);
        rx->bulk_head += skip + units;
        rx->bulk_at = (0 != skip ? 0 : rx->bulk_at) + units;
        if (rx->bulk_at == rx->bulk_units) {
            rx->bulk_at = 0;
        }
    }
}

/** Return all credit (R1). Only when no handler reads from the ring: depth 0. */
static inline void dn_line_return_credit(dn_line_rx_t *rx)
{
    rx->line_published = rx->head;
    rx->bulk_published = rx->bulk_head;
    dn_store_release(&rx->ring->credit, (uint64_t) rx->head << 32 | rx->bulk_head);
}

/** Is so much consumed that the sender should hear of it? */
static inline int dn_line_credit_due(const dn_line_rx_t *rx)
{
    return rx->head - rx->line_published >= rx->lines / 4
           || rx->bulk_head - rx->bulk_published >= rx->bulk_units / 4;
}

/** Is anything consumed that the sender has not heard of? */
static inline int dn_line_credit_owed(const dn_line_rx_t *rx)
{
    return rx->head != rx->line_published;
}

#endif
