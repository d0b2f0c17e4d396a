/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_bbr.h
 * How much may be on its way, and how fast it goes: BBR, in its first version, whose names these are
 * (draft-cardwell-iccrg-bbr-congestion-control-00), by delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation).
 *
 * A sender measures how fast what it sends is delivered, and the shortest round trip. The product is what the path holds. The sender
 * lets about twice as much be on its way, at the rate that was delivered, and losses of less than a fifth change nothing: who takes each
 * lost packet for congestion has a window of a dozen packets on a link that loses one in a hundred.
 *
 *   STARTUP ---> DRAIN ---> PROBE_BW <---> PROBE_RTT
 *      ^                        |              |
 *      +------------------------+--------------+   also from DRAIN; all that was sent for long is lost
 *
 * The pacer gives credit for DN_BBR_CREDIT_NS: a thread that wakes so late loses nothing. On a fast link as much
 * is more than the window, which alone bounds the sender there. On a slow one packets go one by one, and queues stay short.
 *
 * A link that lets a burst pass, and then less, seems faster than it is. Where a fifth of what was sent in four round trips is lost, nothing
 * but what was delivered meanwhile counts as bandwidth: by the thresholds of the long-term sampling of BBR in Linux (tcp_bbr.c, lt_bw), which
 * then holds that bandwidth for 48 round trips. Here the next samples count: a sample from a stall would hold the rate down for long.
 *
 * It differs from the draft in this: a phase of PROBE_BW lasts a round trip of packets, not the shortest time that one has taken, since
 * that is the one of a short packet on an idle host. Rounds in which the program had too little to send do not age the bandwidth.
 * The window has DN_BBR_WINDOW_LEAST more than the model says, whatever that is, so that senders that share a link come to the same share.
 * A program that had too little to send is not slowed down to find the shortest round trip: what it sends finds that, too.
 * Times are those of a machine room. There is no packet conservation while losses are mended, as the model bounds what is on its way then, too.
 *
 * Bytes are those that the caller counts; time is the caller's, in nanoseconds. Threads: the caller's lock. Pinned by
 * test/unit/dn_ipnuma_bbr_finds_what_a_path_holds.c.
 */
#ifndef DN_IPNUMA_BBR_H
#define DN_IPNUMA_BBR_H

#include <stdint.h>

#define DN_BBR_WINDOW_FIRST (64u << 10)     /**< InitialCwnd */
#define DN_BBR_WINDOW_LEAST (8u << 10)      /**< BBRMinPipeCwnd: four packets of an Ethernet */
#define DN_BBR_QUANTUM      (96u << 10)     /**< send_quantum at most: a row of datagrams */
#define DN_BBR_QUANTUM_NS   UINT64_C(20000) /**< and at a rate, the bytes of so long */
#define DN_BBR_CREDIT_NS \
    UINT64_C(200000)            /**< for which a sender that was idle, or late, may go ahead of its rate */
#define DN_BBR_ROUNDS       10u /**< BtlBwFilterLen */
#define DN_BBR_RTT_NS       UINT64_C(1000000000) /**< RTpropFilterLen */
#define DN_BBR_PROBE_RTT_NS UINT64_C(2000000)    /**< ProbeRTTDuration */
#define DN_BBR_HIGH_1000    2885u                /**< BBRHighGain: 2/ln 2 */
#define DN_BBR_WINDOW_1000  2000u                /**< cwnd_gain of PROBE_BW */
#define DN_BBR_FULL_ROUNDS  3u                   /**< without a quarter more, after which a path is full */

#define DN_BBR_POLICED_LOST   5u /**< lt_loss_thresh: one packet in so many is lost, */
#define DN_BBR_POLICED_ROUNDS 4u /**< lt_intvl_min_rtts: for so long, */
#define DN_BBR_POLICED_BYTES \
    DN_BBR_WINDOW_FIRST /**< and of no fewer bytes: one packet of a few is lost by chance */

enum dn_bbr_state { DN_BBR_STARTUP, DN_BBR_DRAIN, DN_BBR_PROBE_BW, DN_BBR_PROBE_RTT };

/** Bytes in a second, and nanoseconds, at most with which is reckoned: their product has 63 bits. */
#define DN_BBR_BW_MOST (UINT64_C(1) << 35)
#define DN_BBR_NS_MOST (UINT64_C(1) << 28)
/** The pacer is no slower than so many bytes in a second: a packet does not wait for long when what was measured is wrong. */
#define DN_BBR_RATE_LEAST UINT64_C(1000000)

/** A division for each change of the rate, and none for each packet. */
#define DN_BBR_GAP_BITS 20

/** What is remembered of each packet: how much was delivered when it was sent. */
typedef struct dn_bbr_stamp {
    uint64_t delivered;
    uint64_t delivered_at;
    uint64_t first_at; /**< when the packet was sent whose acknowledgement was the last until then */
    int limited;       /**< by the program, which had no more to send */
} dn_bbr_stamp_t;

typedef struct dn_bbr {
    enum dn_bbr_state state;
    uint64_t most;   /**< the largest window */
    uint64_t window; /**< bytes that may be on their way */
    uint64_t rate;   /**< bytes in a second at which they go; 0: as fast as they can */
    uint64_t gap_ns; /**< that 2^DN_BBR_GAP_BITS bytes take at that rate; 0, too */
    uint64_t due_at; /**< when the pacer lets the next go */

    uint64_t delivered; /**< bytes, ever, */
    uint64_t acked;     /**< and until the last update */
    uint64_t delivered_at;
    uint64_t first_at;
    uint64_t
        limited; /**< packets are limited by the program until so many bytes are delivered; 0: they are not */
    dn_bbr_stamp_t newest; /**< the newest of the packets that this acknowledgement names, */
    uint64_t newest_at;    /**< and when it was sent; 0: it names none */

    uint64_t bw;                      /**< BtlBw: bytes in a second, the most of the last rounds */
    uint64_t round_ends;              /**< when so many bytes are delivered */
    uint64_t round_bw[DN_BBR_ROUNDS]; /**< the most of each round */
    uint32_t round;                   /**< the one of now */
    uint64_t least_ns, least_at;      /**< the shortest round trip, and when that was; 0: none was */
    uint64_t full_bw;                 /**< while it is found how much the path holds */
    uint32_t full_rounds;
    uint64_t span_got, span_lost; /**< bytes, in some rounds, */
    uint64_t span_ns;             /**< for which something was on its way */
    uint32_t span_rounds;
    uint32_t phase;       /**< of PROBE_BW */
    uint64_t probe_until; /**< PROBE_RTT; 0: more is on its way than shall be */
} dn_bbr_t;

/** @param[in] most  Bytes of the largest window. */
void dn_bbr_open(dn_bbr_t *bbr, uint64_t most);

/** May so many bytes more be sent, behind @p ahead that go with them, as far as the pacer goes? */
static inline int dn_bbr_is_due(const dn_bbr_t *bbr, uint64_t ahead, uint64_t now)
{
    const uint64_t since = bbr->due_at + DN_BBR_CREDIT_NS < now ? now - DN_BBR_CREDIT_NS : bbr->due_at;

    return 0 == bbr->gap_ns || (since <= now && ahead * bbr->gap_ns >> DN_BBR_GAP_BITS <= now - since);
}

/** So many bytes are sent. @param[in] flying  Bytes that are on their way without them. */
static inline dn_bbr_stamp_t dn_bbr_sent(dn_bbr_t *bbr, uint64_t bytes, uint64_t flying, uint64_t now)
{
    if (0 == flying) {
        bbr->first_at = now;
        bbr->delivered_at = now;
    }
    if (bbr->due_at + DN_BBR_CREDIT_NS < now) {
        bbr->due_at = now - DN_BBR_CREDIT_NS;
    }
    bbr->due_at += bytes * bbr->gap_ns >> DN_BBR_GAP_BITS;
    return (dn_bbr_stamp_t){.delivered = bbr->delivered,
                            .delivered_at = bbr->delivered_at,
                            .first_at = bbr->first_at,
                            .limited = 0 != bbr->limited};
}

/** Nothing but the program holds the sender back. @param[in] flying  Bytes on their way. */
static inline void dn_bbr_idle(dn_bbr_t *bbr, uint64_t flying)
{
    bbr->limited = bbr->delivered + flying + 1;
}

/** A packet was acknowledged. */
static inline void dn_bbr_acked(dn_bbr_t *bbr, const dn_bbr_stamp_t *stamp, uint64_t sent_at, uint64_t bytes,
                                uint64_t now)
{
    bbr->delivered += bytes;
    bbr->delivered_at = now;
    if (0 == bbr->newest_at || stamp->delivered >= bbr->newest.delivered) {
        bbr->newest = *stamp;
        bbr->newest_at = sent_at + 1;
        bbr->first_at = sent_at;
    }
}

/** A packet was lost. */
static inline void dn_bbr_lost(dn_bbr_t *bbr, uint64_t bytes)
{
    bbr->span_lost += bytes;
}

/** A round trip took so long. */
void dn_bbr_measured(dn_bbr_t *bbr, uint64_t rtt_ns, uint64_t now);

/** All packets were told of that an acknowledgement names. @param[in] flying  Bytes that are still on their way. */
void dn_bbr_update(dn_bbr_t *bbr, uint64_t flying, uint64_t now);

/** All that was sent for long is lost: what was known of the path counts no more. */
void dn_bbr_restart(dn_bbr_t *bbr);

#endif
