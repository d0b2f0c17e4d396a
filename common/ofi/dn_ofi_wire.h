/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ofi_wire.h
 * The form of messages and of addresses of the ofi device.
 */
#ifndef DN_OFI_WIRE_H
#define DN_OFI_WIRE_H

#include <stddef.h>

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
    DN_OFI_AOTF = 2,      /**< dn_ofi_store_t */
    DN_OFI_LEAVE = 3,     /**< the last of a stream */
    DN_OFI_CLOSE = 4,     /**< LEAVE of a port that closes: nothing is taken any more, either */
    DN_OFI_PROOF = 5,     /**< dn_ofi_proof_t; the first of a stream */
    DN_OFI_HELLO = 6,     /**< dn_ofi_hello_t; asks for a stream, again and again until there is an answer */
    DN_OFI_CHALLENGE = 7, /**< dn_ofi_challenge_t; the answer */
    DN_OFI_CREDIT = 8,    /**< value: lines taken from the stream named by the token */
    DN_OFI_LEFT = 9,      /**< LEAVE of that stream came */
    DN_OFI_REFUSE = 10,   /**< that stream is refused, or not taken any more; value: dn_ofi_refusal */
    DN_OFI_PING = 11,     /**< the stream's sender asks what has come; value: dn_ofi_question() */
    DN_OFI_PONG = 12,     /**< dn_ofi_pong_t; value: the number expected next */
    DN_OFI_GONE = 13,     /**< the sender of that stream has given up the receiver */
};

enum dn_ofi_refusal {
    DN_OFI_WELCOME = 0,
    DN_OFI_FULL = 1,   /**< no slot */
    DN_OFI_CLOSED = 2, /**< the port closes */
};

typedef struct dn_ofi_head {
    uint64_t token;
    uint64_t number; /**< of the message in its stream; of HELLO: that of its PROOF; of a word: the value */
    uint32_t len;    /**< bytes that follow */
    uint8_t kind;
    uint8_t channel;
    uint8_t tag;
    uint8_t pad;
    uint64_t proof; /**< dn_auth_seal(); of HELLO and CHALLENGE, which have a MAC: 0 */
} dn_ofi_head_t;

_Static_assert(sizeof(dn_ofi_head_t) == 32, "what follows a head is aligned to 8");

typedef struct dn_ofi_store {
    uint64_t off;
    uint64_t value;
    uint64_t size;
} dn_ofi_store_t;

/** How to reach a process: this device's part of an address. */
typedef struct dn_ofi_where {
    uint8_t host[16]; /**< kernel boot and PID namespace, folded */
    uint64_t nonce[2];
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< of its group */
    uint64_t llcm_bytes;
    uint32_t os_pid;
    uint32_t auth;       /**< dn_auth_mode_t */
    uint32_t credit_max; /**< lines that a stream to the process may have there */
    uint32_t botf_max;   /**< longest message that the process takes */
    uint32_t name_len;
    uint32_t pad;
    dn_cpumask_t units; /**< where it may run */
    char provider[DN_OFI_PROVIDER_MAX];
    uint8_t name[DN_OFI_NAME_MAX]; /**< of its endpoint */
} dn_ofi_where_t;

/** The opener's side of a stream (dn_auth.h). */
typedef struct dn_ofi_hello {
    uint32_t magic;
    uint32_t version; /**< DN_WIRE_VERSION */
    uint32_t pid;
    uint32_t pad;
    uint8_t random[DN_AUTH_RANDOM];
    uint64_t to[2]; /**< nonce of the process that is greeted */
    dn_ofi_where_t where;
    uint8_t mac[DN_AUTH_MAC]; /**< dn_auth_mac() of the head and all before */
} dn_ofi_hello_t;

/** The acceptor's side. A CHALLENGE is shorter than the HELLO that it answers. */
typedef struct dn_ofi_challenge {
    uint8_t random[DN_AUTH_RANDOM];
    uint64_t why;             /**< dn_ofi_refusal */
    uint8_t mac[DN_AUTH_MAC]; /**< dn_auth_prove() of DN_AUTH_ACCEPTOR, with why */
} dn_ofi_challenge_t;

typedef struct dn_ofi_proof {
    uint8_t mac[DN_AUTH_MAC]; /**< dn_auth_prove() of DN_AUTH_OPENER */
} dn_ofi_proof_t;

/** An answer names its question. An old answer that comes again thus proves nothing: the peer may be gone. */
typedef struct dn_ofi_pong {
    uint64_t question;
} dn_ofi_pong_t;

/** The value of a PING: the number of the question, and whether the stream waits for credit. The number is new when the last question
 * was answered. */
static inline uint64_t dn_ofi_question(uint64_t question, int waits)
{
    return question << 1 | (uint64_t) (0 != waits);
}

/** Lines of credit that a message of so many bytes costs. */
static inline uint32_t dn_ofi_lines(size_t len)
{
    return len <= DN_OFI_INLINE ? 1 : (uint32_t) ((sizeof(uint64_t) + len + DN_OFI_LINE - 1) / DN_OFI_LINE);
}

#endif
