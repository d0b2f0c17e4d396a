/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_tlp.h
 * TLPs as IP-NUMA carries them: a header of 4 DW in the layout of PCI Express, then data in whole DW (thesis section 4).
 * Words of the header are big-endian, as on PCI Express; data is as it lies in memory.
 *
 *        31    29 28    24 23                          10 9            0
 *   DW0 |  fmt   |  type  |             0                |  length, DW  |      1024 is written as 0
 *   DW1 | requester: PC ID (16)        | tag (8) | last BE | first BE    |     write, read
 *       | requester                    | tag     | operation            |     atomic
 *       | requester                    | tag     | 0x7f                 |     message, which is "vendor defined"
 *       | completer: PC ID             | status (3) | bytes of data (13) |    completion
 *   DW2 | upper half of the address                                     |     write, read, atomic
 *       | requester                    | tag     | 0                    |     completion
 *       | kind      | channel          | flags   | bytes of pad at end  |     message
 *   DW3 | lower half, a multiple of 4                                   |
 *       | 0                                                             |     completion
 *       | length of the whole message                                   |     message
 *
 * A short write has a header of 1 DW. It is a write of 1 to 16 whole DW near the write before it in the same datagram, and has the
 * requester and the tag of that write:
 *
 *        31           24 23       20 19                                0
 *   DW0 |     0x8e      |length - 1 |  distance, DW, two's complement   |
 *
 * The distance is from the first DW of the write before, which may be short, too, to that of this write. It is added modulo 2^64. The TLP
 * before a short write is always a write, and the first TLP of a datagram is never short. So each datagram is read without what came in
 * others. In PCI Express, 0x8e begins a TLP prefix of 1 DW that is "vendor defined".
 *
 * Adjacent stores within a line of DN_TLP_LINE bytes may come as one write. So the target does a write of at most so many
 * bytes in the order of addresses, and each naturally aligned word of 8, 4, 2 or 1 bytes by one store. A longer write is done in any
 * order.
 *
 * A write may begin and end at any byte: the byte enables of its first and last DW mask the bytes outside of its range. A read of no
 * bytes has no enabled byte. It is answered when all TLPs before it are done: this is a flush.
 *
 * Threads: functions without state. Pinned by test/unit/dn_ipnuma_tlp_is_taken_as_it_was_made.c, fuzzed by fuzz_dn_ipnuma.
 */
#ifndef DN_IPNUMA_TLP_H
#define DN_IPNUMA_TLP_H

#include <stddef.h>
#include <stdint.h>

#define DN_TLP_HEADER       16u
#define DN_TLP_DATA         4096u /**< most bytes of data, pad included */
#define DN_TLP_DW           4u
#define DN_TLP_SHORT_HEADER DN_TLP_DW
#define DN_TLP_SHORT_DATA   64u /**< most bytes of data of a short write */
/** A short write lies so many bytes before the other write at most, and less than so many bytes behind it. */
#define DN_TLP_SHORT_REACH (2u << 20)

enum dn_tlp_kind {
    DN_TLP_READ,
    DN_TLP_WRITE,
    DN_TLP_ATOMIC,
    DN_TLP_MESSAGE,
    DN_TLP_COMPLETION,
};

/** Of a completion, as PCI Express numbers them. */
enum dn_tlp_status {
    DN_TLP_SUCCESS = 0,
    DN_TLP_REFUSED = 1, /**< unsupported request: no shared region lets it in */
    DN_TLP_ABORTED = 4, /**< completer abort: the word is not where an atomic operation can be */
};

/** What a message is. */
enum dn_tlp_message {
    DN_TLP_BOTF = 1,  /**< for a handler; DW3 has the length of all of it, this TLP the next bytes */
    DN_TLP_JOIN = 2,  /**< the sender is a peer from now on */
    DN_TLP_LEAVE = 3, /**< the sender sends no more, until it joins again */
    DN_TLP_CLOSE = 4, /**< the sender sends no more and takes nothing: its port closes */
    DN_TLP_ERROR = 5, /**< an access was refused: its address is the data */
};

/** A TLP that was read, or is to be written. Members that its kind does not have are 0. */
typedef struct dn_tlp {
    enum dn_tlp_kind kind;
    uint16_t requester;
    uint8_t tag;
    uint64_t address; /**< of the first byte */
    uint32_t len;     /**< READ: bytes asked for, at most DN_TLP_DATA less address % 4; else bytes of data */
    const void *data; /**< decoded: in the frame, at any alignment of the sender's choice */
    /** ATOMIC: dn_amo_op_t; data is the operand, and for a compare-and-swap the compared value first */
    uint8_t op;
    uint8_t status; /**< COMPLETION: enum dn_tlp_status */
    uint16_t completer;
    uint8_t message; /**< MESSAGE: enum dn_tlp_message */
    uint8_t channel;
    uint32_t total; /**< MESSAGE: DW3 */
} dn_tlp_t;

/** Can a short write say what a TLP says? @param[in] before  The TLP before it in the same datagram. @return @p before; NULL: no. */
const dn_tlp_t *dn_tlp_base(const dn_tlp_t *tlp, const dn_tlp_t *before);

/** Bytes that a TLP takes, with its header. @param[in] base  From dn_tlp_base(): the TLP is a short write; NULL: it has a long header. */
size_t dn_tlp_size(const dn_tlp_t *tlp, const dn_tlp_t *base);

/**
 * Write a TLP.
 *
 * @param[out] bytes  dn_tlp_size() bytes, aligned to 4.
 * @param[in]  tlp    Sound. Its data is not read.
 * @param[in]  base   As given to dn_tlp_size().
 *
 * @return where its len bytes of data belong; NULL: the TLP has no data.
 */
uint8_t *dn_tlp_write(uint8_t *bytes, const dn_tlp_t *tlp, const dn_tlp_t *before);

/** A store is joined with the store before only within a line of so many bytes. */
#define DN_TLP_LINE 64u

/**
 * Extend a write by a store that begins where the write ends, as a card combines writes.
 *
 * @param[in,out] bytes    A TLP of dn_tlp_write(), and behind it room for @p len bytes.
 * @param[in,out] tlp      What was written there.
 * @param[in]     address  Of the store.
 * @param[in]     len      Its bytes, 1 or more.
 *
 * @return where the data of the store belongs. NULL: nothing was changed, because the TLP is no write, ends elsewhere or within a DW, the
 * store is not of whole DW, or both are not in one line of DN_TLP_LINE bytes.
 */
uint8_t *dn_tlp_join(uint8_t *bytes, dn_tlp_t *tlp, uint64_t address, uint32_t len);

/**
 * Read a TLP.
 *
 * @param[in]  bytes   Of a peer, aligned to 4, @p size of them.
 * @param[in]  before  The TLP before it in the same datagram, which may be *@p tlp; NULL: it is the first.
 * @param[out] tlp     Its data lies in @p bytes.
 *
 * @return bytes of the TLP; 0: the TLP is malformed, or cut off.
 */
size_t dn_tlp_read(const uint8_t *bytes, size_t size, const dn_tlp_t *before, dn_tlp_t *tlp);

#endif
