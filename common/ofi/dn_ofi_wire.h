/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_wire.h
 * What processes say to each other over the ofi device: the form of messages and of addresses.
 */
#ifndef DN_OFI_WIRE_H
#define DN_OFI_WIRE_H

#include "dn_device.h"
#include "dn_topo.h"

#define DN_OFI_MAGIC        0x696f6e64u /* "dnoi" */
#define DN_OFI_NAME_MAX     192         /**< bytes of an endpoint's name */
#define DN_OFI_PROVIDER_MAX 40
#define DN_OFI_LINE         64u
#define DN_OFI_INLINE       56u /**< payload that costs one line of credit */

/** Kinds of messages. Those before HELLO are numbered; the others are not, and
 * may overtake them. */
enum dn_ofi_kind {
    DN_OFI_BOTF = 1,
    DN_OFI_AOTF = 2,   /**< dn_ofi_store_t */
    DN_OFI_LEAVE = 3,  /**< the last of a stream */
    DN_OFI_CLOSE = 4,  /**< LEAVE of a port that closes: nothing is taken any more, either */
    DN_OFI_HELLO = 5,  /**< dn_ofi_hello_t; opens a stream */
    DN_OFI_CREDIT = 6, /**< value: lines taken from the stream named by the token */
    DN_OFI_LEFT = 7,   /**< LEAVE of that stream came */
    DN_OFI_REFUSE = 8, /**< that stream is not or no more taken; value: dn_ofi_refusal */
    DN_OFI_PING = 9,   /**< what came of that stream, which is the sender's? value: it waits for credit */
    DN_OFI_PONG = 10,  /**< value: the number expected next */
    DN_OFI_GONE = 11,  /**< who sent that stream has given up its receiver */
    DN_OFI_KEPT = 12,  /**< PONG, and AOTFs among those that came wait until their sender is let in */
};

enum dn_ofi_refusal {
    DN_OFI_WELCOME = 0,
    DN_OFI_FULL = 1,     /**< no slot */
    DN_OFI_STRANGER = 2, /**< another process has that address now */
    DN_OFI_CLOSED = 3,   /**< the port closes */
};

typedef struct dn_ofi_head {
    uint64_t token;
    uint64_t number; /**< of the message in its stream; of HELLO: that of the message behind it */
    uint32_t len;    /**< bytes that follow */
    uint8_t kind;
    uint8_t channel;
    uint8_t tag;
    uint8_t pad;
} dn_ofi_head_t;

_Static_assert(sizeof(dn_ofi_head_t) == 24, "what follows a head is aligned to 8");

typedef struct dn_ofi_store {
    uint64_t off;
    uint64_t value;
    uint64_t size;
} dn_ofi_store_t;

/** How to reach a process: this device's part of an address. */
typedef struct dn_ofi_where {
    uint8_t host[16]; /**< kernel boot and PID namespace, folded */
    uint64_t nonce[2];
    uint64_t llcm_bytes;
    uint32_t os_pid;
    uint32_t window;   /**< lines that a stream to it may have there */
    uint32_t botf_max; /**< longest message that it takes */
    uint32_t name_len;
    dn_cpumask_t units; /**< where it may run */
    char provider[DN_OFI_PROVIDER_MAX];
    uint8_t name[DN_OFI_NAME_MAX]; /**< of its endpoint */
} dn_ofi_where_t;

typedef struct dn_ofi_hello {
    uint32_t magic;
    uint32_t version; /**< DN_WIRE_VERSION */
    uint32_t pid;
    uint32_t pad;
    dn_pgid_t pgid;
    uint64_t to[2]; /**< nonce of whom it is meant for */
    dn_ofi_where_t where;
} dn_ofi_hello_t;

/** Lines of credit that a message of so many bytes costs. */
static inline uint32_t dn_ofi_lines(size_t len)
{
    return len <= DN_OFI_INLINE ? 1 : (uint32_t) ((sizeof(uint64_t) + len + DN_OFI_LINE - 1) / DN_OFI_LINE);
}

#endif
