/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_wire.h
 * What goes over UDP: a datagram is a head, and behind it by its kind
 *
 *   PACKET     dn_ipnuma_ack_t, head.ranges times dn_ipnuma_gap_t
 *              with DN_IPNUMA_CARRIES: dn_ipnuma_ack_t, DN_IPNUMA_GAPS_AHEAD times dn_ipnuma_gap_t, of which head.ranges count,
 *              dn_ipnuma_piece_t, TLPs, end code
 *   HELLO      dn_ipnuma_hello_t
 *   CHALLENGE  dn_ipnuma_challenge_t
 *   PROOF      dn_ipnuma_proof_t
 *
 * The TLPs of a sender are one stream, in the order in which the receiver does them. A piece of the stream says at which offset it
 * begins. A piece that is longer than the path takes by now goes in parts, which the receiver puts together. Magic code and end code frame the TLPs as in the thesis, but they frame many TLPs at once. A short write leaves out what the TLP
 * before it in the same datagram says (dn_ipnuma_tlp.h). No TLP is decoded by what another datagram says.
 *
 * Every datagram has a proof of its sender, which is checked before anything else (dn_auth.h). A PACKET has head.proof, by the
 * mode of the job; the other kinds have a MAC.
 *
 * With DN_AUTH_ENCRYPTED the head of a PACKET stays in clear, as associated data, and all that follows is encrypted. In a packet with a
 * piece, the second half of the tag takes the place of the end code, so the packet is no longer. A packet without a piece has no end
 * code, and has the second half of the tag at its end.
 */
#ifndef DN_IPNUMA_WIRE_H
#define DN_IPNUMA_WIRE_H

#include "dn_auth.h"
#include "dn_topo.h"
#include "dn_types.h"

#define DN_IPNUMA_MAGIC 0x4d4e5049u /* "IPNM" */
/** The end code, behind the TLPs. It has 8 bytes, so a datagram is whole words of 8 bytes if its TLPs are. */
#define DN_IPNUMA_END UINT64_C(0x444e4549444e4549) /* "IENDIEND" */

/** Most bytes of a datagram: two pages of 8 KiB and their frame fit, and a lost datagram costs little. */
#define DN_IPNUMA_DATAGRAM 16896u
/** Every process takes datagrams of so many bytes: every IP network takes them whole. */
#define DN_IPNUMA_DATAGRAM_LEAST 1200u
/** Most datagrams of one system call, and most bytes of them: the kernel cuts the row into datagrams, or hands it over uncut. */
#define DN_IPNUMA_ROW       44u
#define DN_IPNUMA_ROW_BYTES 65507u
/** Most ranges in a packet without a piece. */
#define DN_IPNUMA_GAPS 8u
/** Most ranges in a packet with a piece. The newest ranges have the news, unless a packet comes late. */
#define DN_IPNUMA_GAPS_AHEAD 2u

enum dn_ipnuma_kind {
    DN_IPNUMA_PACKET = 1,
    DN_IPNUMA_HELLO = 2,     /**< asks for a connection, again and again until there is an answer */
    DN_IPNUMA_CHALLENGE = 3, /**< the answer, which is shorter */
    DN_IPNUMA_PROOF = 4,     /**< the opener repeats it until a packet comes */
};

/** Flags of a PACKET. */
enum {
    DN_IPNUMA_CARRIES = 1, /**< a piece of the stream */
    DN_IPNUMA_ASKS = 2,    /**< wants to be acknowledged at once */
    DN_IPNUMA_GONE = 4,    /**< its sender has given up the receiver */
    DN_IPNUMA_PART = 8,    /**< with DN_IPNUMA_CARRIES: head.part of the piece, in the place of the piece */
};

typedef struct dn_ipnuma_head {
    uint64_t token;  /**< by which the receiver knows the connection */
    uint64_t number; /**< of the packet, which is used once */
    uint64_t proof;  /**< dn_auth_seal(), or half of a tag of dn_auth_encrypt(); 0 where there is a MAC */
    uint8_t kind;
    uint8_t ranges;
    uint8_t flags;
    uint8_t part;      /**< with DN_IPNUMA_PART: which part, from 0 on */
    uint32_t delay_us; /**< since packet `largest` came */
} dn_ipnuma_head_t;

typedef struct dn_ipnuma_ack {
    uint64_t largest; /**< largest number of a packet that came; 0: no packet came, and head.ranges is 0 */
    uint64_t applied; /**< offset up to which the stream of this packet's receiver was done here */
    uint64_t credit;  /**< credit that this packet's receiver has got, in all: dn_ipnuma_cost() */
} dn_ipnuma_ack_t;

/** A range of numbers of packets that came. The newest range is first; its last number is `largest`. */
typedef struct dn_ipnuma_gap {
    uint32_t missing; /**< numbers that lie between this range and the one before; 0 in the first */
    uint32_t count;   /**< numbers of the range */
} dn_ipnuma_gap_t;

typedef struct dn_ipnuma_piece {
    uint64_t offset; /**< of its first byte in the stream */
    uint32_t
        len; /**< bytes of TLPs, a multiple of 4, also where only a part of them is here; DN_IPNUMA_END follows them */
    uint32_t magic;
} dn_ipnuma_piece_t;

_Static_assert(sizeof(dn_ipnuma_head_t) == 32 && sizeof(dn_ipnuma_ack_t) == 24 && sizeof(dn_ipnuma_gap_t) == 8
                   && sizeof(dn_ipnuma_piece_t) == 16,
               "all that stands before TLPs keeps them aligned to 8");

/** Most bytes of a packet without a piece, without DN_AUTH_TAIL. */
#define DN_IPNUMA_WORD \
    (sizeof(dn_ipnuma_head_t) + sizeof(dn_ipnuma_ack_t) + DN_IPNUMA_GAPS * sizeof(dn_ipnuma_gap_t))
/** Bytes before the TLPs of a packet with a piece: always so many. */
#define DN_IPNUMA_AHEAD                                                                                  \
    (sizeof(dn_ipnuma_head_t) + sizeof(dn_ipnuma_ack_t) + DN_IPNUMA_GAPS_AHEAD * sizeof(dn_ipnuma_gap_t) \
     + sizeof(dn_ipnuma_piece_t))
/** All bytes of a packet with a piece that are not TLPs. */
#define DN_IPNUMA_AROUND (DN_IPNUMA_AHEAD + sizeof(uint64_t))

/** Bytes of each part of a piece, but the last, which may be shorter: every path takes them. */
#define DN_IPNUMA_PART_BYTES ((uint32_t) (DN_IPNUMA_DATAGRAM_LEAST - DN_IPNUMA_AROUND) / 8 * 8)
/** Most parts of a piece. */
#define DN_IPNUMA_PARTS \
    ((DN_IPNUMA_DATAGRAM - DN_IPNUMA_AROUND + DN_IPNUMA_PART_BYTES - 1) / DN_IPNUMA_PART_BYTES)
_Static_assert(DN_IPNUMA_PARTS < 32, "a word has a bit for each part");

/** Parts of a piece of @p len bytes. */
static inline uint32_t dn_ipnuma_parts(uint32_t len)
{
    return (len + DN_IPNUMA_PART_BYTES - 1) / DN_IPNUMA_PART_BYTES;
}

/** Bytes of a part of a piece of @p len bytes; 0: there is no such part. */
static inline uint32_t dn_ipnuma_part_len(uint32_t len, uint32_t part)
{
    const uint32_t parts = dn_ipnuma_parts(len);

    return part >= parts ? 0 : part + 1 < parts ? DN_IPNUMA_PART_BYTES : len - part * DN_IPNUMA_PART_BYTES;
}

/** How to reach a process: this device's part of an address. */
typedef struct dn_ipnuma_where {
    uint8_t host[16];
    uint64_t nonce[2];
    uint8_t exchange[DN_AUTH_EXCHANGE]; /**< of its group */
    uint64_t llcm_bytes;
    uint64_t llcm_at; /**< address in its shared region table */
    uint32_t os_pid;
    uint32_t auth;     /**< dn_auth_mode_t */
    uint32_t credit;   /**< most bytes of messages of one sender that wait at this process */
    uint32_t botf_max; /**< longest message that the process takes */
    uint32_t window;   /**< most bytes of one sender on the way to this process */
    uint32_t ip;       /**< IPv4 address; it and `port` are in the byte order of the host */
    uint16_t port;
    uint16_t datagram; /**< bytes of the longest datagram that the process takes */
    uint32_t pad;
    dn_cpumask_t units; /**< where it may run */
} dn_ipnuma_where_t;

typedef struct dn_ipnuma_hello {
    uint32_t magic;
    uint32_t version; /**< DN_WIRE_VERSION */
    uint32_t pid;
    uint32_t pad;
    uint8_t random[DN_AUTH_RANDOM];
    uint64_t to[2]; /**< nonce of the process that is greeted */
    dn_ipnuma_where_t where;
    /** dn_auth_mac() of the head and all before; the head's token is the sender's name for the connection */
    uint8_t mac[DN_AUTH_MAC];
} dn_ipnuma_hello_t;

enum dn_ipnuma_refusal {
    DN_IPNUMA_WELCOME = 0,
    DN_IPNUMA_FULL = 1,   /**< no slot */
    DN_IPNUMA_CLOSED = 2, /**< the port closes */
};

/** What a CHALLENGE proves beside the sides. */
typedef struct dn_ipnuma_terms {
    uint64_t token; /**< the acceptor's name for the connection */
    uint64_t why;   /**< dn_ipnuma_refusal */
} dn_ipnuma_terms_t;

typedef struct dn_ipnuma_challenge {
    uint8_t random[DN_AUTH_RANDOM];
    dn_ipnuma_terms_t terms;
    uint8_t mac[DN_AUTH_MAC]; /**< dn_auth_prove() of DN_AUTH_ACCEPTOR with the terms */
} dn_ipnuma_challenge_t;

typedef struct dn_ipnuma_proof {
    uint8_t mac[DN_AUTH_MAC]; /**< dn_auth_prove() of DN_AUTH_OPENER */
} dn_ipnuma_proof_t;

typedef struct dn_ipnuma_hello_datagram {
    dn_ipnuma_head_t head;
    dn_ipnuma_hello_t hello;
} dn_ipnuma_hello_datagram_t;

typedef struct dn_ipnuma_challenge_datagram {
    dn_ipnuma_head_t head;
    dn_ipnuma_challenge_t challenge;
} dn_ipnuma_challenge_datagram_t;

typedef struct dn_ipnuma_proof_datagram {
    dn_ipnuma_head_t head;
    dn_ipnuma_proof_t proof;
} dn_ipnuma_proof_datagram_t;

#endif
