/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_line.h
 * The message line: a ring of 64 B lines from one sender to one receiver, in memory both can touch.
 *
 *   +--------+--------+--------+--------+--------+--------+-------------+----------+
 *   | credit |  pad   | line 0 | line 1 | line 2 | line 3 |     ...     | line n-1 |
 *   +--------+--------+--------+--------+--------+--------+-------------+----------+
 *   a message:        | head word, then its bytes,        |  the next head word ...
 *                     | in as many lines as they take     |
 *   head word         seq:32 | len:15 | rewind:1 | tag:8 | channel:8
 *
 * The sequence in the head word is the flag: the receiver looks at the line that comes next and takes it when
 * its sequence is the expected one, so a message of up to 56 bytes costs one line transfer, and no flag is
 * cleared. The sequence counts lines, so a head of the last lap holds another one. Bytes of messages, and
 * heads in lines that were skipped for long, could hold any number: where there may be some, the sender looks
 * at the line after a message before it publishes that message, and wipes the line's first word in the rare
 * case that it holds the very sequence which comes next. One line always stays empty, so that this one is
 * free to wipe.
 *
 * Beyond the first quarter of the ring the sender goes back to line 0 as soon as it knows a quarter to be
 * free there: the head word before says `rewind`. Lines just used are in both caches, so a sender whose
 * receiver keeps up stays in a part of the ring (1 KiB messages under ob1, perf/dn_bw: 1.3 times the
 * bandwidth of going round in 32 KiB). A receiver that lags gets the whole ring. A message that does not fit
 * before the end of the ring has its head there and its bytes from line 0 on.
 *
 * Credit returns lazily: one word, the lines consumed, written by the receiver after an eighth of the ring,
 * read by the sender when it has no room left or could rewind (the producer and consumer ring of the AOTF
 * paper, section 4). A message is at most so long that it fits into the other seven eighths wherever it
 * starts.
 *
 * Memory orders:
 *   W0  sender fills the lines, wipes the next head if it must, then stores the head word (release).
 *   R0  receiver loads the head word (acquire): pairs with W0, so it reads what W0 covers, and finds the next
 *       head word free of left-over bytes.
 *   R1  receiver is done reading, then stores the credit (release): its loads come before.
 *   W1  sender loads the credit (acquire): pairs with R1, so it overwrites only what was read.
 * test/orders explores small rings under the C11 memory model: these orders suffice, and each is needed.
 * Credit is loaded when room runs out and, beyond the first quarter, until the sender can go back to line 0;
 * mostly it has not changed since and lies in the sender's cache.
 *
 * Numbers have 32 bits and wrap; they are compared for equality, or by the distance from one that is at most
 * a ring away. The credit word surely moves: the sender goes no further than a ring beyond it. A sequence is
 * met again after 2^32 lines, when its place has held a newer one, or has been looked at as above.
 *
 * Threads: one sender and one receiver at a time; a caller with several threads locks outside.
 */
#ifndef DN_LINE_H
#define DN_LINE_H

#include <stddef.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_inline.h"

#define DN_LINE_BYTES   64u    /**< of a line */
#define DN_LINE_INLINE  56u    /**< longest message that is one line */
#define DN_LINE_LENGTHS 32704u /**< longest that a head word may say: of its 15 bits, whole lines */
#define DN_LINE_REWIND  (UINT64_C(1) << 47) /**< in the head word, above the length */

/** Bytes of a message that are fetched ahead of its handler; the processor's own prefetching does the
 * rest. */
#define DN_LINE_PREFETCH 256u

/** Lines of later messages that are fetched while one is handled. */
#define DN_LINE_AHEAD 6u

/** A line, as the first of a message. */
typedef struct dn_line {
    uint64_t head;                /**< head word */
    uint8_t data[DN_LINE_INLINE]; /**< first bytes of the message */
} dn_line_t;

_Static_assert(sizeof(dn_line_t) == DN_LINE_BYTES, "a message line is one cache line");

/** Start of a ring in shared memory; what the receiver writes has a pair of lines to itself (adjacent-line
 * prefetch). */
typedef struct dn_ring {
    uint32_t credit;   /**< lines that the receiver has taken, wraps */
    uint32_t attached; /**< not the ring's own: the receiver reads the sender's mapping, too */
    uint8_t pad[2 * DN_LINE_BYTES - 2 * sizeof(uint32_t)]; /**< not used */
    dn_line_t line[];                                      /**< as many as both ends have agreed on */
} dn_ring_t;

_Static_assert(offsetof(dn_ring_t, line) == 2 * DN_LINE_BYTES, "lines are aligned");

/** The sender's end, private to it. */
typedef struct dn_line_tx {
    dn_ring_t *ring;   /**< in memory that both ends map */
    uint32_t lines;    /**< of the ring */
    uint32_t at;       /**< where the next head goes, 0 .. lines - 1 */
    uint32_t tail;     /**< lines sent or skipped, wraps */
    uint32_t limit;    /**< tail may not go beyond: 0 .. lines - 1 ahead of it, whatever wraps */
    uint32_t clean;    /**< lines from 0 on into which the last lap wrote heads only, where heads go */
    uint32_t mixed;    /**< this lap has put bytes where heads may go */
    uint32_t reserved; /**< length of the window that waits for its kick */
} dn_line_tx_t;

/** The receiver's end, private to it. */
typedef struct dn_line_rx {
    dn_ring_t *ring;    /**< in memory that both ends map */
    uint32_t lines;     /**< of the ring */
    uint32_t at;        /**< where the next head comes */
    uint32_t head;      /**< lines taken, wraps */
    uint32_t published; /**< as in the credit word: at most lines behind head */
    uint32_t depth;     /**< handlers running on this ring, one inside the other */
} dn_line_rx_t;

/** One message as the receiver finds it. */
typedef struct dn_line_msg {
    const void *data; /**< its bytes, in the ring */
    uint32_t len;     /**< as the head says, unchecked */
    uint32_t span;    /**< lines to the next one */
    uint32_t rewind;  /**< not 0: the next one is at line 0 */
    uint8_t tag;      /**< of the sender */
    uint8_t channel;  /**< as the head says, unchecked */
} dn_line_msg_t;

/** Bytes of a ring. */
static inline size_t dn_ring_bytes(uint32_t lines)
{
    return sizeof(dn_ring_t) + (size_t) lines * DN_LINE_BYTES;
}

/** Longest message: with its head at the worst place it fits beside the eighth whose credit is not back. */
static inline uint32_t dn_line_max(uint32_t lines)
{
    const uint32_t longest = (lines - lines / 8 + 1) / 2 * DN_LINE_BYTES - (DN_LINE_BYTES - DN_LINE_INLINE);
    return longest < DN_LINE_LENGTHS ? longest : DN_LINE_LENGTHS;
}

/** The sender's end of a ring of zeros. @param first  lines that count as sent and taken before: 0, but in tests of long runs. The
 * receiver comes after this, and is given the same. */
static inline void dn_line_tx_init(dn_line_tx_t *tx, dn_ring_t *ring, uint32_t lines, uint32_t first)
{
    memset(tx, 0, sizeof(*tx));
    tx->ring = ring;
    tx->lines = lines;
    tx->tail = first;
    tx->limit = first + lines - 1;
    tx->clean = lines;
    if (0 != first) {
        /* The receiver would have written the word an eighth of the ring ago at most. The numbers of a lap
         * may pass 0, which all heads are. */
        tx->clean = 0;
        dn_store_release_u32(&ring->credit, first);
    }
}

/** The receiver's end of the same ring, with the same lines and first. */
static inline void dn_line_rx_init(dn_line_rx_t *rx, dn_ring_t *ring, uint32_t lines, uint32_t first)
{
    memset(rx, 0, sizeof(*rx));
    rx->ring = ring;
    rx->lines = lines;
    rx->head = first;
    rx->published = first;
}

/** Lines that @p len bytes fill from a line's start on. */
static inline uint32_t dn_line_units(size_t len)
{
    return (uint32_t) ((len + DN_LINE_BYTES - 1) / DN_LINE_BYTES);
}

/** Do the bytes follow their head, when that is at line @p at? */
static inline int dn_line_follows(uint32_t at, size_t len, uint32_t lines)
{
    return at + dn_line_units(sizeof(uint64_t) + len) <= lines;
}

/** Where the bytes of a message lie whose head is at line @p at. */
static inline uint8_t *dn_line_place(dn_ring_t *ring, uint32_t at, size_t len, uint32_t lines)
{
    return dn_line_follows(at, len, lines) ? ring->line[at].data : (uint8_t *) ring->line;
}

/** Lines from one head to the next. */
static inline uint32_t dn_line_span(uint32_t at, size_t len, uint32_t lines)
{
    if (len <= DN_LINE_INLINE) {
        return 1;
    }
    return dn_line_follows(at, len, lines) ? dn_line_units(sizeof(uint64_t) + len)
                                           : lines - at + dn_line_units(len);
}

/** The place @p span lines further, round the ring. */
static inline uint32_t dn_line_next(uint32_t at, uint32_t span, uint32_t lines)
{
    return at + span < lines ? at + span : at + span - lines;
}

/** Are so many lines free? Asks the receiver when there seem to be less (W1). */
static inline int dn_line_free(dn_line_tx_t *tx, uint32_t lines)
{
    if (__builtin_expect(tx->limit - tx->tail >= lines, 1)) {
        return 1;
    }
    tx->limit = dn_load_acquire_u32(&tx->ring->credit) + tx->lines - 1;
    return tx->limit - tx->tail >= lines;
}

/** Room for a message of @p len bytes? */
static inline int dn_line_room(dn_line_tx_t *tx, size_t len)
{
    return dn_line_free(tx, dn_line_span(tx->at, len, tx->lines));
}

/** From now on lines from here on may hold bytes of messages at the place of a head. */
static inline void dn_line_mix(dn_line_tx_t *tx)
{
    tx->mixed = 1;
    if (tx->clean > tx->at) {
        tx->clean = tx->at;
    }
}

/** dn_line_go() beyond the first quarter of the ring. */
DN_DEVICE_API uint64_t dn_line_turn(dn_line_tx_t *tx, uint32_t at);

/** Go to where the next head will be. @return DN_LINE_REWIND or 0, as it belongs into the head word
 * before. */
static inline uint64_t dn_line_go(dn_line_tx_t *tx, uint32_t span)
{
    const uint32_t at = tx->at + span;

    tx->tail += span;
    if (__builtin_expect(at > tx->lines / 4, 0)) {
        return dn_line_turn(tx, at);
    }
    tx->at = at;
    return 0;
}

/** Publish the message of @p span lines whose bytes are in place (W0). Room was there. */
static inline void dn_line_publish(dn_line_tx_t *tx, unsigned channel, unsigned tag, size_t len,
                                   uint32_t span)
{
    uint64_t *head = &tx->ring->line[tx->at].head;
    uint64_t word = (uint64_t) (tx->tail + 1) | (uint64_t) len << 32 | (uint64_t) (tag & 0xff) << 48
                    | (uint64_t) (channel & 0xff) << 56;

    word |= dn_line_go(tx, span);
    if (tx->at >= tx->clean) {
        uint64_t *next = &tx->ring->line[tx->at].head;
        if (__builtin_expect((uint32_t) *next == tx->tail + 1, 0)) {
            *next = tx->tail;
        }
    }
    dn_store_release(head, word);
}

/** dn_line_send() of more than DN_LINE_INLINE bytes. */
DN_DEVICE_API int dn_line_send_long(dn_line_tx_t *tx, unsigned channel, unsigned tag, const void *head,
                                    size_t head_len, const void *body, size_t body_len);

/** Send head then body as one message. @return 0 when there is no room. len is at most dn_line_max(). */
static inline int dn_line_send(dn_line_tx_t *tx, unsigned channel, unsigned tag, const void *head,
                               size_t head_len, const void *body, size_t body_len)
{
    const size_t len = head_len + body_len;

    if (len > DN_LINE_INLINE) {
        return dn_line_send_long(tx, channel, tag, head, head_len, body, body_len);
    }
    if (!dn_line_free(tx, 1)) {
        return 0;
    }
    uint8_t *data = tx->ring->line[tx->at].data;
    dn_copy_inline(data, head, head_len);
    dn_copy_inline(data + head_len, body, body_len);
    dn_line_publish(tx, channel, tag, len, 1);
    return 1;
}

/** Place to build a message of up to @p len bytes, NULL: no room. Ends with dn_line_kick. */
static inline void *dn_line_reserve(dn_line_tx_t *tx, size_t len)
{
    if (!dn_line_room(tx, len)) {
        return NULL;
    }
    tx->reserved = (uint32_t) len;
    return dn_line_place(tx->ring, tx->at, len, tx->lines);
}

/** Publish what was built: @p len bytes, at most what was reserved. */
static inline void dn_line_kick(dn_line_tx_t *tx, unsigned channel, unsigned tag, size_t len)
{
    const uint8_t *built = dn_line_place(tx->ring, tx->at, tx->reserved, tx->lines);
    uint8_t *place = dn_line_place(tx->ring, tx->at, len, tx->lines);
    if (DN_LINE_INLINE < tx->reserved) {
        dn_line_mix(tx);
    }
    if (built != place) {
        /* Shorter than reserved, it fits before the end of the ring after all: the receiver looks there. */
        memcpy(place, built, len);
        tx->clean = 0;
    }
    dn_line_publish(tx, channel, tag, len, dn_line_span(tx->at, len, tx->lines));
}

/** Look for a message (R0), @p looks times at most. @return whether there is one: *head_p is its head
 * then. */
static inline int dn_line_look(const dn_line_rx_t *rx, unsigned looks, uint64_t *head_p)
{
    const uint64_t *word = &rx->ring->line[rx->at].head;
    const uint32_t next = rx->head + 1;

    do {
        *head_p = dn_load_acquire(word);
    } while (next != (uint32_t) *head_p && 0 != --looks);
    return next == (uint32_t) *head_p;
}

/** What a head says that dn_line_look() has found. The length is the sender's word: check it against
 * dn_line_max() before use. */
static inline void dn_line_read(const dn_line_rx_t *rx, uint64_t head, dn_line_msg_t *msg)
{
    msg->len = (uint32_t) (head >> 32) & 0x7fff;
    msg->rewind = 0 != (head & DN_LINE_REWIND);
    msg->tag = (uint8_t) (head >> 48);
    msg->channel = (uint8_t) (head >> 56);
    msg->data = rx->ring->line[rx->at].data;
    msg->span = 1;
    if (msg->len > DN_LINE_INLINE) {
        msg->data = dn_line_place(rx->ring, rx->at, msg->len, rx->lines);
        msg->span = dn_line_span(rx->at, msg->len, rx->lines);
    }
}

/** Is a message there, and what does its head say? */
static inline int dn_line_peek(const dn_line_rx_t *rx, dn_line_msg_t *msg)
{
    uint64_t head;

    if (!dn_line_look(rx, 1, &head)) {
        return 0;
    }
    dn_line_read(rx, head, msg);
    return 1;
}

/** Have the lines of a message on their way before its handler reads them. */
static inline void dn_line_prefetch(const dn_line_msg_t *msg)
{
    const uint8_t *data = msg->data;
    const uint32_t len = msg->len < DN_LINE_PREFETCH ? msg->len : DN_LINE_PREFETCH;

    for (uint32_t off = DN_LINE_INLINE; off < len; off += DN_LINE_BYTES) {
        __builtin_prefetch(data + off);
    }
}

/** Nothing to take: the answer of most polls. */
static inline int dn_line_quiet(const dn_line_rx_t *rx)
{
    return (uint32_t) dn_load_acquire(&rx->ring->line[rx->at].head) != rx->head + 1;
}

/** Go past the message found by dn_line_peek, whose length has been checked against dn_line_max(). */
static inline void dn_line_advance(dn_line_rx_t *rx, const dn_line_msg_t *msg)
{
    rx->head += msg->span;
    rx->at = dn_line_next(rx->at, msg->span, rx->lines);
    if (0 != msg->rewind) {
        rx->head += rx->lines - rx->at;
        rx->at = 0;
    }
}

/**
 * Have the lines of the messages that come next on their way while a handler runs. For a sender that is
 * ahead: a line that it has yet to write is taken from its cache, as a poll takes it.
 */
static inline void dn_line_prefetch_next(const dn_line_rx_t *rx)
{
    const dn_line_t *next = &rx->ring->line[rx->at];

    for (size_t ahead = 0; ahead < DN_LINE_AHEAD; ahead++) {
        __builtin_prefetch(next + ahead);
    }
}

/** Is so much consumed that the sender should hear of it? */
static inline int dn_line_credit_due(const dn_line_rx_t *rx)
{
    return rx->head - rx->published >= rx->lines / 8;
}

/** Return all credit (R1). Only when no handler reads from the ring: depth 0. */
static inline void dn_line_return_credit(dn_line_rx_t *rx)
{
    rx->published = rx->head;
    dn_store_release_u32(&rx->ring->credit, rx->head);
}

#endif
