/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_tlp.h"

#include <endian.h>
#include <string.h>

#include "dn_types.h"

/** fmt and type, the first byte of a TLP. All headers but that of a short write have 4 DW. TLPs with data have bit 6 set. */
enum {
    TLP_READ = 0x20,
    TLP_WRITE = 0x60,
    TLP_ADD = 0x6c,
    TLP_SWAP = 0x6d,
    TLP_CAS = 0x6e,
    TLP_OTHER = 0x6f, /**< reserved in PCI Express; here all other atomic operations */
    TLP_MESSAGE = 0x34,
    TLP_MESSAGE_DATA = 0x74,
    TLP_COMPLETION = 0x2a,
    TLP_COMPLETION_DATA = 0x6a,
};

/** The first byte of a short write. */
#define TLP_SHORT 0x8eu

#define TLP_WITH_DATA 0x40u
#define TLP_VENDOR    0x7fu

static uint32_t tlp_get(const uint8_t *bytes, unsigned dw)
{
    uint32_t word;

    memcpy(&word, bytes + DN_TLP_DW * dw, sizeof(word));
    return be32toh(word);
}

static void tlp_put(uint8_t *bytes, unsigned dw, uint32_t value)
{
    const uint32_t word = htobe32(value);

    memcpy(bytes + DN_TLP_DW * dw, &word, sizeof(word));
}

/** Bytes of the first DW that lie before the first byte of the range. */
static uint32_t tlp_lead(const dn_tlp_t *tlp)
{
    return DN_TLP_WRITE == tlp->kind || DN_TLP_READ == tlp->kind ? (uint32_t) tlp->address % DN_TLP_DW : 0;
}

/** The length of a TLP's range or data in DW. */
static uint32_t tlp_words(const dn_tlp_t *tlp)
{
    return (tlp_lead(tlp) + tlp->len + DN_TLP_DW - 1) / DN_TLP_DW;
}

/** Bytes from the first DW of the write before to that of a short write, modulo 2^64: the number is large where the short write lies before. */
static uint64_t tlp_distance(const dn_tlp_t *tlp, const dn_tlp_t *before)
{
    return tlp->address - (before->address - tlp_lead(before));
}

const dn_tlp_t *dn_tlp_base(const dn_tlp_t *tlp, const dn_tlp_t *before)
{
    const int can = DN_TLP_WRITE == tlp->kind && DN_TLP_WRITE == before->kind && 0 == tlp_lead(tlp)
                    && 0 == tlp->len % DN_TLP_DW && DN_TLP_SHORT_DATA >= tlp->len
                    && tlp->requester == before->requester && tlp->tag == before->tag
                    && 2 * DN_TLP_SHORT_REACH > tlp_distance(tlp, before) + DN_TLP_SHORT_REACH;

    return can ? before : NULL;
}

/** The header of a short write. */
static uint32_t tlp_short_header(const dn_tlp_t *tlp, uint64_t distance)
{
    return TLP_SHORT << 24 | (tlp_words(tlp) - 1) << 20 | ((uint32_t) (distance / DN_TLP_DW) & 0xfffffu);
}

size_t dn_tlp_size(const dn_tlp_t *tlp, const dn_tlp_t *base)
{
    const size_t header = NULL != base ? DN_TLP_SHORT_HEADER : DN_TLP_HEADER;

    return header + (DN_TLP_READ == tlp->kind ? 0 : (size_t) DN_TLP_DW * tlp_words(tlp));
}

/** The byte enables of a range. The lower half is for the first DW. The upper half is for the last DW; 0 if both are the same DW. */
static uint32_t tlp_enables(const dn_tlp_t *tlp)
{
    const uint32_t lead = tlp_lead(tlp);
    const uint32_t words = tlp_words(tlp);
    const uint32_t first = (0xfu << lead) & 0xfu;
    const uint32_t last = 0xfu >> (DN_TLP_DW * words - lead - tlp->len);

    if (0 == tlp->len) {
        return 0;
    }
    return 1 == words ? first & last : last << 4 | first;
}

static uint32_t tlp_type(const dn_tlp_t *tlp)
{
    static const uint8_t atomic[DN_AMO_OPS] = {
        [DN_AMO_ADD] = TLP_ADD,   [DN_AMO_AND] = TLP_OTHER, [DN_AMO_OR] = TLP_OTHER,
        [DN_AMO_XOR] = TLP_OTHER, [DN_AMO_MIN] = TLP_OTHER, [DN_AMO_MAX] = TLP_OTHER,
        [DN_AMO_SWAP] = TLP_SWAP, [DN_AMO_CAS] = TLP_CAS};

    switch (tlp->kind) {
    case DN_TLP_READ:
        return TLP_READ;
    case DN_TLP_WRITE:
        return TLP_WRITE;
    case DN_TLP_ATOMIC:
        return atomic[tlp->op];
    case DN_TLP_MESSAGE:
        return 0 == tlp->len ? TLP_MESSAGE : TLP_MESSAGE_DATA;
    default:
        return 0 == tlp->len ? TLP_COMPLETION : TLP_COMPLETION_DATA;
    }
}

uint8_t *dn_tlp_write(uint8_t *bytes, const dn_tlp_t *tlp, const dn_tlp_t *base)
{
    if (NULL != base) {
        tlp_put(bytes, 0, tlp_short_header(tlp, tlp_distance(tlp, base)));
        return bytes + DN_TLP_SHORT_HEADER;
    }
    const uint32_t type = tlp_type(tlp);
    const uint32_t words = tlp_words(tlp);
    uint32_t dw1 = (uint32_t) tlp->requester << 16 | (uint32_t) tlp->tag << 8;
    uint32_t dw2 = (uint32_t) (tlp->address >> 32);
    uint32_t dw3 = (uint32_t) tlp->address & ~(DN_TLP_DW - 1);

    if (DN_TLP_READ == tlp->kind || DN_TLP_WRITE == tlp->kind) {
        dw1 |= tlp_enables(tlp);
    } else if (DN_TLP_ATOMIC == tlp->kind) {
        dw1 |= tlp->op;
    } else if (DN_TLP_MESSAGE == tlp->kind) {
        dw1 |= TLP_VENDOR;
        dw2 = (uint32_t) tlp->message << 24 | (uint32_t) tlp->channel << 16 | (DN_TLP_DW * words - tlp->len);
        dw3 = tlp->total;
    } else {
        dw1 = (uint32_t) tlp->completer << 16 | (uint32_t) tlp->status << 13 | tlp->len;
        dw2 = (uint32_t) tlp->requester << 16 | (uint32_t) tlp->tag << 8;
        dw3 = 0;
    }
    tlp_put(bytes, 0, type << 24 | (words & 0x3ffu));
    tlp_put(bytes, 1, dw1);
    tlp_put(bytes, 2, dw2);
    tlp_put(bytes, 3, dw3);
    if (0 == (type & TLP_WITH_DATA)) {
        return NULL;
    }
    /* Masked bytes are sent, too. They must not show what this memory held before. */
    memset(bytes + DN_TLP_HEADER, 0, DN_TLP_DW);
    memset(bytes + DN_TLP_HEADER + DN_TLP_DW * (words - 1), 0, DN_TLP_DW);
    return bytes + DN_TLP_HEADER + tlp_lead(tlp);
}

uint8_t *dn_tlp_join(uint8_t *bytes, dn_tlp_t *tlp, uint64_t address, uint32_t len)
{
    const uint32_t dw0 = tlp_get(bytes, 0);
    const uint32_t words = tlp_words(tlp);

    if (DN_TLP_WRITE != tlp->kind || tlp->address + tlp->len != address || 0 != address % DN_TLP_DW
        || 0 != len % DN_TLP_DW || DN_TLP_LINE < tlp->address % DN_TLP_LINE + tlp->len + len) {
        return NULL;
    }
    tlp->len += len;
    if (TLP_SHORT == dw0 >> 24) {
        tlp_put(bytes, 0, dw0 + (len / DN_TLP_DW << 20));
        return bytes + DN_TLP_SHORT_HEADER + DN_TLP_DW * words;
    }
    tlp_put(bytes, 0, dw0 + len / DN_TLP_DW);
    tlp_put(bytes, 1, tlp_get(bytes, 1) | 0xf0u);
    return bytes + DN_TLP_HEADER + DN_TLP_DW * words;
}

/** Read the range of a write or read from its byte enables. @return 0: the byte enables describe no range. */
static int tlp_read_range(dn_tlp_t *tlp, uint32_t words, uint32_t enables)
{
    static const int8_t begins[16] = {[0xf] = 0, [0xe] = 1, [0xc] = 2, [0x8] = 3};
    const uint32_t first = enables & 0xfu;
    const uint32_t last = enables >> 4 & 0xfu;

    if (0 == words || 0 == enables) {
        /* Only a flush has no bytes. */
        tlp->len = 0;
        return DN_TLP_READ == tlp->kind && 0 == words && 0 == enables;
    }
    if (1 == words) {
        const uint32_t lead = (uint32_t) __builtin_ctz(first | 0x10u);
        const uint32_t n = (uint32_t) __builtin_popcount(first);
        tlp->address += lead;
        tlp->len = n;
        return 0 == last && 0 != first && first == (((1u << n) - 1) << lead);
    }
    /* The enabled bytes of the first DW reach to its end. Those of the last DW begin at its start. */
    if (0 == first || (0xf != first && 0 == begins[first]) || 0 == last || 0 != (last & (last + 1))) {
        return 0;
    }
    tlp->address += (uint64_t) begins[first];
    tlp->len =
        DN_TLP_DW * words - (uint32_t) begins[first] - (DN_TLP_DW - (uint32_t) __builtin_popcount(last));
    return 1;
}

/** Read the operation and the length of an atomic operation. @return 0: malformed. */
static int tlp_read_atomic(dn_tlp_t *tlp, uint32_t type, uint32_t words, uint32_t op)
{
    tlp->op = (uint8_t) op;
    tlp->len = DN_TLP_DW * words;
    if (DN_AMO_OPS <= op || type != tlp_type(tlp)) {
        return 0;
    }
    return TLP_CAS == type ? 2 == words || 4 == words : 1 == words || 2 == words;
}

static int tlp_read_message(dn_tlp_t *tlp, uint32_t type, uint32_t words, const uint32_t dw[4])
{
    const uint32_t pad = dw[2] & 0xffu;

    tlp->message = (uint8_t) (dw[2] >> 24);
    tlp->channel = (uint8_t) (dw[2] >> 16);
    tlp->total = dw[3];
    tlp->len = DN_TLP_DW * words - pad;
    return TLP_VENDOR == (dw[1] & 0xffu) && DN_TLP_DW > pad && DN_TLP_DW * words >= pad
           && (TLP_MESSAGE == type) == (0 == words) && 0 == (dw[2] & 0xff00u);
}

static int tlp_read_completion(dn_tlp_t *tlp, uint32_t type, uint32_t words, const uint32_t dw[4])
{
    tlp->completer = (uint16_t) (dw[1] >> 16);
    tlp->status = (uint8_t) (dw[1] >> 13 & 7u);
    tlp->requester = (uint16_t) (dw[2] >> 16);
    tlp->tag = (uint8_t) (dw[2] >> 8);
    tlp->len = dw[1] & 0x1fffu;
    return words == (tlp->len + DN_TLP_DW - 1) / DN_TLP_DW && (TLP_COMPLETION == type) == (0 == words);
}

/** Read a short write. @return as dn_tlp_read(). */
static size_t tlp_read_short(const uint8_t *bytes, size_t size, const dn_tlp_t *before, dn_tlp_t *tlp)
{
    const uint32_t dw0 = tlp_get(bytes, 0);
    const uint32_t len = DN_TLP_DW * ((dw0 >> 20 & 0xfu) + 1);

    if (NULL == before || DN_TLP_WRITE != before->kind || size < DN_TLP_SHORT_HEADER + len) {
        return 0;
    }
    /* The sign is extended: where the distance is below 0, the sum below wraps. */
    const uint64_t distance = (((uint64_t) dw0 & 0xfffffu) ^ 0x80000u) - 0x80000u;
    *tlp = (dn_tlp_t){.kind = DN_TLP_WRITE,
                      .requester = before->requester,
                      .tag = before->tag,
                      .address = before->address - tlp_lead(before) + DN_TLP_DW * distance,
                      .len = len,
                      .data = bytes + DN_TLP_SHORT_HEADER};
    return DN_TLP_SHORT_HEADER + len;
}

size_t dn_tlp_read(const uint8_t *bytes, size_t size, const dn_tlp_t *before, dn_tlp_t *tlp)
{
    int good = 0;

    if (DN_TLP_SHORT_HEADER <= size && TLP_SHORT == bytes[0]) {
        return tlp_read_short(bytes, size, before, tlp);
    }
    if (DN_TLP_HEADER > size) {
        return 0;
    }
    const uint32_t dw[4] = {tlp_get(bytes, 0), tlp_get(bytes, 1), tlp_get(bytes, 2), tlp_get(bytes, 3)};
    const uint32_t type = dw[0] >> 24;
    const int has_data = 0 != (type & TLP_WITH_DATA);
    /* A length of 0 and a length of 1024 DW are both written as 0. A TLP with data has 1024 DW; a read has 1024 DW if it has enabled
     * bytes. */
    uint32_t words = dw[0] & 0x3ffu;
    words = 0 == words && has_data ? DN_TLP_DATA / DN_TLP_DW : words;
    if (TLP_READ == type && 0 == words && 0 != (dw[1] & 0xffu)) {
        words = DN_TLP_DATA / DN_TLP_DW;
    }

    *tlp = (dn_tlp_t){.requester = (uint16_t) (dw[1] >> 16),
                      .tag = (uint8_t) (dw[1] >> 8),
                      .data = has_data ? bytes + DN_TLP_HEADER : NULL};
    const size_t whole = DN_TLP_HEADER + (has_data ? (size_t) DN_TLP_DW * words : 0);
    if (0 != (dw[0] & 0x00fffc00u) || size < whole) {
        return 0;
    }
    switch (type) {
    case TLP_READ:
    case TLP_WRITE:
        tlp->kind = TLP_READ == type ? DN_TLP_READ : DN_TLP_WRITE;
        tlp->address = (uint64_t) dw[2] << 32 | dw[3];
        good = 0 == dw[3] % DN_TLP_DW && tlp_read_range(tlp, words, dw[1] & 0xffu);
        tlp->data = has_data ? bytes + DN_TLP_HEADER + tlp->address % DN_TLP_DW : NULL;
        break;
    case TLP_ADD:
    case TLP_SWAP:
    case TLP_CAS:
    case TLP_OTHER:
        tlp->kind = DN_TLP_ATOMIC;
        tlp->address = (uint64_t) dw[2] << 32 | dw[3];
        good = 0 == dw[3] % DN_TLP_DW && tlp_read_atomic(tlp, type, words, dw[1] & 0xffu);
        break;
    case TLP_MESSAGE:
    case TLP_MESSAGE_DATA:
        tlp->kind = DN_TLP_MESSAGE;
        good = tlp_read_message(tlp, type, words, dw);
        break;
    case TLP_COMPLETION:
    case TLP_COMPLETION_DATA:
        tlp->kind = DN_TLP_COMPLETION;
        good = 0 == dw[3] && tlp_read_completion(tlp, type, words, dw);
        break;
    default:
        break;
    }
    return good ? whole : 0;
}
