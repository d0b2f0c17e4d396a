/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_link.h
 * A connection of two processes: a stream of TLPs in each direction. TLPs arrive once and in order. They go over datagrams, which may
 * be lost, doubled or changed, and may overtake each other. This code knows no socket and no device.
 *
 *   append --> bodies that wait --> packets on their way --> early ones, in order --> take()
 *                    ^                     |
 *                    +------ lost ---------+
 *
 * A body is the part of the stream that one datagram carries. It stays as it is when it is sent again, unless the path has become too
 * narrow for it: then it is cut into parts that every path takes, each a body of its own. Three bounds hold a sender back:
 * the congestion window with the pacer (dn_ipnuma_bbr.h); how far ahead of its work the receiver takes pieces; and, for messages only,
 * the credit that their receiver gives. So writes, reads and answers never wait for the receiver's program.
 *
 * Threads: the caller's lock. Pinned by test/unit/dn_ipnuma_link_brings_all_once_in_order.c.
 */
#ifndef DN_IPNUMA_LINK_H
#define DN_IPNUMA_LINK_H

#include <sys/uio.h>

#include "dn_ipnuma_loss.h"
#include "dn_ipnuma_tlp.h"
#include "dn_ipnuma_wire.h"

typedef struct dn_ipnuma_link dn_ipnuma_link_t;

/** Functions that a connection calls. */
typedef struct dn_ipnuma_link_ops {
    /**
     * Send datagrams, which may be lost: up to DN_IPNUMA_ROW of DN_IPNUMA_ROW_BYTES in all, each as long as the first, but the last,
     * which may be shorter.
     *
     * @return how many were sent, from the first on; this process has no room for the others now.
     */
    uint32_t (*emit)(dn_ipnuma_link_t *link, const struct iovec *datagram, uint32_t n);
    /** Do what the next TLP says. @return 1: done; 0: the TLP is wrong; -1: there is no memory for it now, and nothing was done. */
    int (*take)(dn_ipnuma_link_t *link, const dn_tlp_t *tlp);
} dn_ipnuma_link_ops_t;

/** A piece of a stream, or a part of one. */
typedef struct dn_ipnuma_body {
    struct dn_ipnuma_body *next;
    /** aligned to 8; in a body to be sent, DN_IPNUMA_AHEAD bytes lie before the TLPs, and the end code behind them */
    uint8_t *tlps;
    uint64_t offset; /**< of the piece */
    uint32_t len;
    uint32_t flying;  /**< packets on their way that carry it */
    uint32_t whole;   /**< to be sent: bytes of the piece of which this is a part; 0: this is a piece */
    uint32_t part;    /**< which part */
    uint32_t missing; /**< early: bits of the parts that have not come */
} dn_ipnuma_body_t;

/** Memory of bodies to be sent. Their datagrams lie side by side: a row of full bodies is one piece of memory. */
typedef struct dn_ipnuma_slab {
    struct dn_ipnuma_slab *next;
    dn_ipnuma_body_t body[];
} dn_ipnuma_slab_t;

/** Bodies of the first slab. Later slabs have as many bodies as a row has datagrams, and at least so many. */
#define DN_IPNUMA_SLAB 4u
/** Bytes of bodies that are kept when all bodies are free: more than a long stream has on its way. */
#define DN_IPNUMA_SPARE (384u << 10)

/** Counters of a connection, from its begin. The device adds up those of its connections. */
typedef struct dn_ipnuma_link_counts {
    uint64_t resent;  /**< pieces that were sent again, since they were lost or seemed to be */
    uint64_t doubled; /**< packets and pieces that came twice */
    uint64_t dropped; /**< packets that were not taken: forged, changed on the way, or without room here */
} dn_ipnuma_link_counts_t;

struct dn_ipnuma_link {
    const dn_ipnuma_link_ops_t *ops;
    dn_auth_mode_t auth;
    uint8_t *cipher;       /**< DN_AUTH_ENCRYPTED: DN_IPNUMA_ROW_BYTES for packets while they are sent */
    int keyed;             /**< `in`, `out` and `token` are set: packets can be sent */
    dn_auth_way_t out, in; /**< secrets of both directions */
    uint64_t token;        /**< the other side's name for the connection */
    const char *broken;    /**< how the other side has broken the protocol; NULL: it has not */
    uint64_t heard_at;     /**< when the last packet with a good proof came */
    int parted;            /**< DN_IPNUMA_GONE came */

    /** The stream to the other side. */
    dn_loss_t loss;
    uint64_t first;   /**< offset at which streams begin */
    uint64_t end;     /**< offset behind the last byte appended */
    uint64_t applied; /**< offset up to which the other side has done the TLPs */
    uint64_t window;  /**< bytes that the other side takes ahead of `applied` */
    uint32_t room;    /**< bytes of TLPs for which a body has memory */
    uint32_t fits; /**< bytes of TLPs that the path takes in a datagram, as the kernel says, at most `room` */
    uint32_t piece;   /**< bytes of TLPs in a new body: `fits`, or DN_IPNUMA_PART_BYTES in a black hole */
    uint64_t hole_at; /**< when a black hole was found; 0: there is none */
    uint64_t hole_ns; /**< how long it lasts at most, or the last one */
    dn_ipnuma_body_t *waits, *last; /**< not sent yet; the last may have room */
    uint8_t *newest_at;      /**< the TLP that was appended last: in `last` while `waits` is not NULL */
    dn_tlp_t newest;         /**< what it says */
    dn_ipnuma_body_t *again; /**< lost, by offset */
    uint64_t refused_at;     /**< when this process had no room to send a piece; 0: it had room */
    int paced;               /**< the pacer holds back what could be sent */
    dn_ipnuma_slab_t *slabs;
    /** free bodies: the one that has been free for longest is first, so that bodies side by side follow each other */
    dn_ipnuma_body_t *spare, *spare_last;
    uint32_t bodies, spares; /**< bodies of all slabs, and free bodies */
    uint64_t charged;        /**< bytes of messages that were let in, in all: at most `credit` */
    uint64_t credit;

    /** The stream from the other side. */
    dn_loss_seen_t seen;
    uint64_t seen_at; /**< when the largest number came */
    uint64_t next;    /**< offset that is expected */
    uint64_t ahead;   /**< pieces are taken up to so many bytes ahead of `next` */
    dn_ipnuma_body_t *early;
    /** when there was no memory to do the first of `early`, which is the next piece; 0: there was memory */
    uint64_t starved_at;
    /** bodies in `early`, at most 2 * DN_LOSS_FLYING, and one for `next`: a sender has at most DN_LOSS_FLYING packets on their way */
    uint32_t earlies;
    uint64_t given; /**< credit that the other side was given, in all */
    uint64_t told;  /**< credit that the last packet told */
    uint32_t owed;  /**< packets that are not acknowledged yet */
    uint64_t owed_at;
    int urgent;      /**< not 0: the sender waits for an acknowledgement */
    uint64_t untold; /**< the least number of the packets that are not acknowledged yet */
    /** not 0: `untold` is in none of the newest DN_IPNUMA_GAPS_AHEAD ranges, so a packet with a piece does not tell it */
    int late;

    dn_ipnuma_link_counts_t counts;
};

/** Values that both sides know before the first packet. */
typedef struct dn_ipnuma_link_terms {
    uint64_t first;    /**< number of the first packet, and offset of the stream; the same at both sides */
    uint32_t datagram; /**< most bytes of a datagram, DN_IPNUMA_DATAGRAM_LEAST or more */
    uint64_t window;   /**< bytes that the other side takes ahead */
    uint64_t ahead;    /**< bytes that this side takes ahead */
    uint64_t credit;   /**< bytes of messages that this side may have at the other side */
    uint64_t given;    /**< bytes of messages that the other side may have here */
    /** DN_IPNUMA_ROW_BYTES for packets while they are sent. The memory is the caller's, and all connections under one lock may share
     * it. NULL: no packet is encrypted */
    uint8_t *cipher;
} dn_ipnuma_link_terms_t;

/** @return 0: no memory. */
int dn_ipnuma_link_open(dn_ipnuma_link_t *link, const dn_ipnuma_link_ops_t *ops,
                        const dn_ipnuma_link_terms_t *terms);
void dn_ipnuma_link_close(dn_ipnuma_link_t *link);

/** Give the connection its keys. Before this call nothing is sent or taken. @param[in] token  The other side's name for the connection. */
void dn_ipnuma_link_key(dn_ipnuma_link_t *link, dn_auth_mode_t auth, const dn_auth_pair_t *pair,
                        dn_auth_role_t role, uint64_t token, uint64_t now);

/**
 * After this time a path on which a black hole was found is tried with long packets again, and after twice the time of before where that
 * finds the hole again. By RFC 8899 a sender searches upwards as soon as the path has brought its base size, and every PMTU_RAISE_TIMER of
 * 600 s when the search is over. Here each try costs DN_LOSS_HOLE turns of lost packets, so the first waits for longer. Losses of a crowd
 * that looked like a hole are over by then.
 */
#define DN_IPNUMA_RAISE_NS      UINT64_C(10000000000)
#define DN_IPNUMA_RAISE_MOST_NS UINT64_C(600000000000)

/** The kernel says that the path takes datagrams of @p datagram bytes, DN_IPNUMA_DATAGRAM_LEAST or more. What is longer is cut when it is
 * sent. @return 1: these are other bytes than before. */
int dn_ipnuma_link_fit(dn_ipnuma_link_t *link, uint32_t datagram);

/** Bytes of data that the next TLP may have, at most @p want and at least 1, so that it fits into its body. @param[in] address  Of the
 * TLP; 0: it has no address. */
uint32_t dn_ipnuma_link_room(const dn_ipnuma_link_t *link, uint64_t address, uint64_t want);

/** Bytes of a READ whose answers fill their bodies, if the other side's bodies are as long as those of this side. */
uint32_t dn_ipnuma_link_read(const dn_ipnuma_link_t *link, uint64_t address);

/** Append a TLP to the stream. @return where its data goes, or its header where it has none; NULL: no memory. */
uint8_t *dn_ipnuma_link_append(dn_ipnuma_link_t *link, const dn_tlp_t *tlp);

/** Append a store: as a write TLP of its own, or joined with the newest TLP while that waits (dn_tlp_join()). @return where the store's
 * data goes; NULL: no memory. */
uint8_t *dn_ipnuma_link_store(dn_ipnuma_link_t *link, const dn_tlp_t *tlp);

/** Bytes of the stream that the other side has not done yet. */
static inline uint64_t dn_ipnuma_link_behind(const dn_ipnuma_link_t *link)
{
    return link->end - link->applied;
}

/** Send the bodies that wait, as far as window, pacer and receiver let them go. */
void dn_ipnuma_link_send(dn_ipnuma_link_t *link, uint64_t now);
/** Send all bodies that wait but the last, which may have room: more TLPs gather there. */
void dn_ipnuma_link_send_full(dn_ipnuma_link_t *link, uint64_t now);
/** Send a packet without a piece. @param[in] flags  DN_IPNUMA_ASKS: it is acknowledged; DN_IPNUMA_GONE. */
void dn_ipnuma_link_word(dn_ipnuma_link_t *link, unsigned flags, uint64_t now);

/**
 * Handle a PACKET for the connection. Its proof is checked first.
 *
 * @param[in] bytes  @p len bytes, at least a head, aligned to 8. They are changed during the call, and restored, but for the part that
 *                   is decrypted.
 *
 * @return 1: the packet is of the other side, and new.
 */
int dn_ipnuma_link_receive(dn_ipnuma_link_t *link, uint8_t *bytes, size_t len, uint64_t now);

/** When dn_ipnuma_link_tick() has something to do. UINT64_MAX: never. */
uint64_t dn_ipnuma_link_timer(const dn_ipnuma_link_t *link);
/** Handle time-outs: send lost bodies again, what waits, and acknowledgements that are due. @param[in] gathers  Not 0: more TLPs gather in
 * the last body that waits, as by dn_ipnuma_link_send_full(). */
void dn_ipnuma_link_tick(dn_ipnuma_link_t *link, int gathers, uint64_t now);

/** @name Between dn_ipnuma_link.c, which sends, and dn_ipnuma_link_in.c, which receives */
/** @{ */
/** Put a body where its offset belongs, and among the parts of a piece. There is no such body yet. */
static inline void dn_ipnuma_body_sort(dn_ipnuma_body_t **at, dn_ipnuma_body_t *body)
{
    while (NULL != *at
           && ((*at)->offset < body->offset || ((*at)->offset == body->offset && (*at)->part < body->part))) {
        at = &(*at)->next;
    }
    body->next = *at;
    *at = body;
}

/** Time after which an early piece for which there was no memory is tried again. */
#define DN_IPNUMA_STARVED_NS UINT64_C(1000000)
/** Try that piece again, if it is time to. */
void dn_ipnuma_link_try_early(dn_ipnuma_link_t *link, uint64_t now);

/** Handle an acknowledgement of the other side. @return 0: its values are impossible. */
int dn_ipnuma_link_settle(dn_ipnuma_link_t *link, const dn_ipnuma_ack_t *ack, const dn_loss_range_t *range,
                          uint32_t ranges, uint64_t delay_ns, uint64_t now);
/** @} */

#endif
