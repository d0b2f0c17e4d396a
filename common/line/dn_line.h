/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_line.h
 * The message line: a ring of 64 B lines from one sender to one receiver, in memory that both can touch.
 *
 *   +--------+--------+--------+--------+--------+--------+-------------+----------+
 *   | credit |  pad   | line 0 | line 1 | line 2 | line 3 |     ...     | line n-1 |
 *   +--------+--------+--------+--------+--------+--------+-------------+----------+
 *   a message:        | head word, then its bytes,        |  the next head word ...
 *                     | in as many lines as they take     |
 *   head word         seq:32 | len:15 | rewind:1 | tag:8 | channel:8
 *
 * The sequence in the head word is the flag. The receiver looks at the next line, and takes the line when its
 * sequence is the expected one. So a message of up to 56 bytes costs one line transfer, and no flag is cleared.
 * The sequence counts lines, so a head of the last lap holds another sequence. Bytes of messages, and heads in
 * lines that were skipped for long, could hold any number. Where a line may hold such bytes, the sender looks at the
 * line after a message before it publishes the message. In the rare case that the line's first word holds the very
 * sequence that comes next, the sender wipes this word. One line of the ring always stays empty, so that the sender may
 * write there.
 *
 * Beyond the first quarter of the ring the sender goes back to line 0 as soon as it knows that a quarter is free
 * there: the head word before says `rewind`. Lines just used are in both caches, so a sender whose receiver keeps up
 * stays in a part of the ring (1 KiB messages under ob1, perf/dn_bw: 1.3 times the bandwidth of a sender that goes
 * round a ring of 32 KiB). Where the receiver lags, the sender uses the whole ring. A message that does not fit before
 * the end of the ring has its head there and its bytes from line 0 on.
 *
 * Credit returns lazily. It is one word: the count of lines that the receiver has taken. The receiver writes it after
 * each eighth of the ring. The sender reads it when the sender has no room left or could rewind (the producer and
 * consumer ring of the AOTF paper, section 4). The longest message fits into the other seven eighths wherever it
 * starts.
 *
 * Memory orders:
 *   W0  sender fills the lines, wipes the next head if it must, then stores the head word (release).
 *   R0  receiver loads the head word (acquire): pairs with W0, so the receiver reads the bytes that W0 covers, and finds
 *       the next head word free of left-over bytes.
 *   R1  receiver has read the message, then stores the credit (release): its loads come before.
 *   W1  sender loads the credit (acquire): pairs with R1, so the sender overwrites only lines that were read.
 * test/orders explores small rings under the C11 memory model: these orders suffice, and each is needed.
 * The sender loads the credit when room runs out and, beyond the first quarter, until it can go back to line 0. Mostly
 * the credit has not changed since the last load, and lies in the sender's cache.
 *
 * Numbers have 32 bits and wrap. They are compared for equality, or by their distance from a number that is at most a
 * ring away. The sender goes no further than a ring beyond the credit word, so this word moves on. The same sequence comes
 * again after 2^32 lines. By then its place has held a newer sequence, or the sender has looked at the place as above.
 *
 * Threads: one sender and one receiver at a time. A caller with several threads takes a lock of its own.
 */
#ifndef DN_LINE_H
#define DN_LINE_H

#include <stddef.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_inline.h"

#define DN_LINE_BYTES   64u    /**< bytes of a line */
#define DN_LINE_INLINE  56u    /**< longest message that fits into one line */
#define DN_LINE_LENGTHS 32704u /**< longest length in a head word: whole lines that fit into its 15 bits */
#define DN_LINE_REWIND  (UINT64_C(1) << 47) /**< in the head word, above the length */

/** Bytes of a message that are fetched ahead of its handler; the processor's own prefetching does the
 * rest. */
#define DN_LINE_PREFETCH 256u

/** Lines of later messages that are fetched while one is handled. */
#define DN_LINE_AHEAD 6u

/** The first line of a message. */
typedef struct dn_line {
    uint64_t head;                /**< head word */
    uint8_t data[DN_LINE_INLINE]; /**< first bytes of the message */
} dn_line_t;

_Static_assert(sizeof(dn_line_t) == DN_LINE_BYTES, "a message line is one cache line");

/** Start of a ring in shared memory. The words that the receiver writes have a pair of lines of their own (adjacent-line
 * prefetch). */
typedef struct dn_ring {
    uint32_t credit;   /**< lines that the receiver has taken, wraps */
    uint32_t attached; /**< not 0: the receiver has attached to the sender's mapping; set by the device */
    uint8_t pad[2 * DN_LINE_BYTES - 2 * sizeof(uint32_t)]; /**< not used */
    dn_line_t line[];                                      /**< both ends know the number of lines */
} dn_ring_t;

_Static_assert(offsetof(dn_ring_t, line) == 2 * DN_LINE_BYTES, "lines are aligned");

/** The sender's end, private to it. */
typedef struct dn_line_tx {
    dn_ring_t *ring;   /**< in memory that both ends map */
    uint32_t lines;    /**< lines of the ring */
    uint32_t at;       /**< line of the next head, 0 .. lines - 1 */
    uint32_t tail;     /**< lines sent or skipped, wraps */
    uint32_t limit;    /**< tail may not go beyond this, which is 0 .. lines - 1 ahead of tail; wraps */
    uint32_t clean;    /**< the first so many lines have only heads of the last lap at the places of heads */
    uint32_t mixed;    /**< not 0: in this lap, bytes of messages lie at places of heads */
    uint32_t reserved; /**< length of the window that waits for its kick */
} dn_line_tx_t;

/** The receiver's end, private to it. */
typedef struct dn_line_rx {
    dn_ring_t *ring;    /**< in memory that both ends map */
    uint32_t lines;     /**< lines of the ring */
    uint32_t at;        /**< line of the next head */
    uint32_t head;      /**< lines taken, wraps */
    uint32_t published; /**< value of the credit word, at most `lines` behind head */
    uint32_t depth;     /**< handlers running on this ring, one inside the other */
} dn_line_rx_t;

/** A message in the ring, for the receiver. */
typedef struct dn_line_msg {
    const void *data; /**< its bytes, in the ring */
    uint32_t len;     /**< length in the head, unchecked */
    uint32_t span;    /**< lines to the next message */
    uint32_t rewind;  /**< not 0: the next message is at line 0 */
    uint8_t tag;      /**< set by the sender */
    uint8_t channel;  /**< channel in the head, unchecked */
} dn_line_msg_t;

/** Bytes of a ring. */
static inline size_t dn_ring_bytes(uint32_t lines)
{
    return sizeof(dn_ring_t) + (size_t) lines * DN_LINE_BYTES;
}

/** Longest message: it fits beside the eighth whose credit may not be back, even with its head at the worst place. */
static inline uint32_t dn_line_max(uint32_t lines)
{
    const uint32_t longest = (lines - lines / 8 + 1) / 2 * DN_LINE_BYTES - (DN_LINE_BYTES - DN_LINE_INLINE);
    return longest < DN_LINE_LENGTHS ? longest : DN_LINE_LENGTHS;
}

/** Set up the sender's end of a ring of zeros. @param first  Number of lines that count as sent and taken before: 0, except in tests of
 * long runs. The receiver's end is set up after this, with the same @p first. */
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

/** Set up the receiver's end of the same ring, with the same lines and first. */
static inline void dn_line_rx_init(dn_line_rx_t *rx, dn_ring_t *ring, uint32_t lines, uint32_t first)
{
    memset(rx, 0, sizeof(*rx));
    rx->ring = ring;
    rx->lines = lines;
    rx->head = first;
    rx->published = first;
}

/** Lines that @p len bytes take from the start of a line on. */
static inline uint32_t dn_line_units(size_t len)
{
    return (uint32_t) ((len + DN_LINE_BYTES - 1) / DN_LINE_BYTES);
}

/** Do the bytes of a message follow its head, where the head is at line @p at? */
static inline int dn_line_follows(uint32_t at, size_t len, uint32_t lines)
{
    return at + dn_line_units(sizeof(uint64_t) + len) <= lines;
}

/** The place of the bytes of a message whose head is at line @p at. */
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

/** Are so many lines free? Loads the receiver's credit where there seem to be fewer (W1). */
static inline int dn_line_free(dn_line_tx_t *tx, uint32_t lines)
{
    if (__builtin_expect(tx->limit - tx->tail >= lines, 1)) {
        return 1;
    }
    tx->limit = dn_load_acquire_u32(&tx->ring->credit) + tx->lines - 1;
    return tx->limit - tx->tail >= lines;
}

/** Has the receiver told that it has taken all messages? It tells of each eighth of the ring, and by dn_line_stop(). */
static inline int dn_line_is_taken(const dn_line_tx_t *tx)
{
    return tx->tail == dn_load_acquire_u32(&tx->ring->credit);
}

/** Is there room for a message of @p len bytes? */
static inline int dn_line_room(dn_line_tx_t *tx, size_t len)
{
    return dn_line_free(tx, dn_line_span(tx->at, len, tx->lines));
}

/** Note that lines from tx->at on may hold bytes of messages at the places of heads. */
static inline void dn_line_mix(dn_line_tx_t *tx)
{
    tx->mixed = 1;
    if (tx->clean > tx->at) {
        tx->clean = tx->at;
    }
}

/** The case of dn_line_go() beyond the first quarter of the ring. */
DN_DEVICE_API uint64_t dn_line_turn(dn_line_tx_t *tx, uint32_t at);

/** Go on to the line of the next head. @return DN_LINE_REWIND or 0: the caller puts this into the head word of the message
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

/** Publish a message of @p span lines whose bytes are in place (W0). The caller has found room for the message. */
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

/** The case of dn_line_send() where the message is longer than DN_LINE_INLINE bytes. */
DN_DEVICE_API int dn_line_send_long(dn_line_tx_t *tx, unsigned channel, unsigned tag, const void *head,
                                    size_t head_len, const void *body, size_t body_len);

/** Send head and then body as one message, of dn_line_max() bytes at most. @return 0: there is no room. */
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

/** Reserve a place to build a message of up to @p len bytes. NULL: no room. The caller then calls dn_line_kick(). */
static inline void *dn_line_reserve(dn_line_tx_t *tx, size_t len)
{
    if (!dn_line_room(tx, len)) {
        return NULL;
    }
    tx->reserved = (uint32_t) len;
    return dn_line_place(tx->ring, tx->at, len, tx->lines);
}

/** Publish the message that was built: @p len bytes, at most the reserved length. */
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

/** Look for a message (R0), @p looks times at most. @return whether there is one. If so, *head_p is its head word. */
static inline int dn_line_look(const dn_line_rx_t *rx, unsigned looks, uint64_t *head_p)
{
    const uint64_t *word = &rx->ring->line[rx->at].head;
    const uint32_t next = rx->head + 1;

    do {
        *head_p = dn_load_acquire(word);
    } while (next != (uint32_t) *head_p && 0 != --looks);
    return next == (uint32_t) *head_p;
}

/** Read a head word that dn_line_look() has found. The length comes from the sender: the caller checks it against
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

/** Look for a message once, and read its head. @return 0: there is no message. */
static inline int dn_line_peek(const dn_line_rx_t *rx, dn_line_msg_t *msg)
{
    uint64_t head;

    if (!dn_line_look(rx, 1, &head)) {
        return 0;
    }
    dn_line_read(rx, head, msg);
    return 1;
}

/** Fetch the lines of a message before its handler reads them. */
static inline void dn_line_prefetch(const dn_line_msg_t *msg)
{
    const uint8_t *data = msg->data;
    const uint32_t len = msg->len < DN_LINE_PREFETCH ? msg->len : DN_LINE_PREFETCH;

    for (uint32_t off = DN_LINE_INLINE; off < len; off += DN_LINE_BYTES) {
        __builtin_prefetch(data + off);
    }
}

/** Is there no message? Most polls find none. */
static inline int dn_line_quiet(const dn_line_rx_t *rx)
{
    return (uint32_t) dn_load_acquire(&rx->ring->line[rx->at].head) != rx->head + 1;
}

/** Go past the message that dn_line_peek() has found. The caller has checked its length against dn_line_max(). */
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
 * Fetch the lines of the next messages while a handler runs. This is for a sender that is ahead. Where the sender has still
 * to write a line, the fetch takes the line out of the sender's cache, as a poll does.
 */
static inline void dn_line_prefetch_next(const dn_line_rx_t *rx)
{
    const dn_line_t *next = &rx->ring->line[rx->at];

    for (size_t ahead = 0; ahead < DN_LINE_AHEAD; ahead++) {
        __builtin_prefetch(next + ahead);
    }
}

/** Has the receiver taken so many lines that it is to return credit? */
static inline int dn_line_credit_due(const dn_line_rx_t *rx)
{
    return rx->head - rx->published >= rx->lines / 8;
}

/** Return all credit (R1). Called only while no handler reads from the ring: depth is 0. */
static inline void dn_line_return_credit(dn_line_rx_t *rx)
{
    rx->published = rx->head;
    dn_store_release_u32(&rx->ring->credit, rx->head);
}

/** Read no more: tell the sender that all messages that have come are taken, those that nobody has read, too. Of a sender that breaks the
 * rules, some may not be counted. */
static inline void dn_line_stop(dn_line_rx_t *rx)
{
    dn_line_msg_t msg;

    for (uint32_t n = 0; n < rx->lines && dn_line_peek(rx, &msg) && msg.len <= dn_line_max(rx->lines); n++) {
        dn_line_advance(rx, &msg);
    }
    dn_line_return_credit(rx);
}

#endif
