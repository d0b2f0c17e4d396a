/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_bbr.h
 * Congestion control: how many bytes may be on their way, and at which rate they go. This is BBR in its first version, with its names
 * (draft-cardwell-iccrg-bbr-congestion-control-00), by delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation).
 *
 * A sender measures the rate at which its bytes are delivered, and the shortest round trip. The product is the number of bytes that the
 * path holds. The sender lets about twice as many bytes be on their way, at the measured rate. Losses of less than a fifth change nothing:
 * a sender that takes each lost packet for congestion has a window of a dozen packets on a link that loses one packet in a hundred.
 *
 *   STARTUP ---> DRAIN ---> PROBE_BW <---> PROBE_RTT
 *      ^                        |              |
 *      +------------------------+--------------+   also from DRAIN; all that was sent for long is lost
 *
 * The pacer gives credit for DN_BBR_CREDIT_NS: a thread that wakes so late loses nothing. On a fast link the bytes of this time
 * are more than the window, so only the window bounds the sender. On a slow link packets go one by one, and queues stay short.
 *
 * A link that lets a burst pass, and then less, seems faster than it is. Where a fifth of the bytes sent in four round trips is lost, only
 * the bytes delivered in this time count as bandwidth. The thresholds are those of the long-term sampling of BBR in Linux (tcp_bbr.c,
 * lt_bw). Linux then holds that bandwidth for 48 round trips. Here the next samples count: a sample from a stall would hold the rate down
 * for long.
 *
 * This code differs from the draft. A phase of PROBE_BW lasts a round trip of packets, and not the shortest round trip, since that was
 * measured with a short packet on an idle host. Rounds in which the program had too little to send do not age the bandwidth.
 * The window is always DN_BBR_WINDOW_LEAST larger than the model says, so that senders that share a link come to equal shares.
 * A program that had too little to send is not slowed down to find the shortest round trip: its own packets find the shortest round trip.
 * Times are those of a machine room. There is no packet conservation while losses are mended, as the model bounds the bytes on their way
 * then, too.
 *
 * Bytes are counted by the caller; time is the caller's, in nanoseconds. Threads: the caller's lock. Pinned by
 * test/unit/dn_ipnuma_bbr_finds_what_a_path_holds.c.
 */
#ifndef DN_IPNUMA_BBR_H
#define DN_IPNUMA_BBR_H

#include <stdint.h>

#define DN_BBR_WINDOW_FIRST (64u << 10)     /**< InitialCwnd */
#define DN_BBR_WINDOW_LEAST (8u << 10)      /**< BBRMinPipeCwnd: four packets of an Ethernet */
#define DN_BBR_QUANTUM      (96u << 10)     /**< most bytes of send_quantum: a row of datagrams */
#define DN_BBR_QUANTUM_NS   UINT64_C(20000) /**< send_quantum is no more than the bytes of so long */
/** Time by which a sender that was idle, or late, may go ahead of its rate. */
#define DN_BBR_CREDIT_NS    UINT64_C(200000)
#define DN_BBR_ROUNDS       10u                  /**< BtlBwFilterLen */
#define DN_BBR_RTT_NS       UINT64_C(1000000000) /**< RTpropFilterLen */
#define DN_BBR_PROBE_RTT_NS UINT64_C(2000000)    /**< ProbeRTTDuration */
#define DN_BBR_HIGH_1000    2885u                /**< BBRHighGain: 2/ln 2 */
#define DN_BBR_WINDOW_1000  2000u                /**< cwnd_gain of PROBE_BW */
#define DN_BBR_FULL_ROUNDS  3u /**< after so many rounds with less growth than a quarter, a path is full */

#define DN_BBR_POLICED_LOST   5u /**< lt_loss_thresh: a link drops too much if it drops one byte in so many */
#define DN_BBR_POLICED_ROUNDS 4u /**< lt_intvl_min_rtts: rounds over which losses are counted, at least */
/** Bytes over which losses are counted, at least: of a few packets, one may be lost by chance. */
#define DN_BBR_POLICED_BYTES DN_BBR_WINDOW_FIRST

enum dn_bbr_state { DN_BBR_STARTUP, DN_BBR_DRAIN, DN_BBR_PROBE_BW, DN_BBR_PROBE_RTT };

/** Largest numbers in calculations: bytes in a second, and nanoseconds. Their product has 63 bits. */
#define DN_BBR_BW_MOST (UINT64_C(1) << 35)
#define DN_BBR_NS_MOST (UINT64_C(1) << 28)
/** The pacer's lowest rate, in bytes in a second: a packet does not wait for long when a measured rate is wrong. */
#define DN_BBR_RATE_LEAST UINT64_C(1000000)

/** The pacer keeps the time of 2^DN_BBR_GAP_BITS bytes. So it divides at each change of the rate, and not at each packet. */
#define DN_BBR_GAP_BITS 20

/** A record for each packet: how much was delivered when the packet was sent. */
typedef struct dn_bbr_stamp {
    uint64_t delivered;
    uint64_t delivered_at;
    /** sending time of the packet that was acknowledged last before this packet was sent */
    uint64_t first_at;
    int limited; /**< not 0: the program had no more to send */
} dn_bbr_stamp_t;

typedef struct dn_bbr {
    enum dn_bbr_state state;
    uint64_t most;   /**< the largest window */
    uint64_t window; /**< bytes that may be on their way */
    uint64_t rate;   /**< bytes in a second at which they go; 0: as fast as they can */
    uint64_t gap_ns; /**< nanoseconds of 2^DN_BBR_GAP_BITS bytes at that rate; 0: as fast as they can */
    uint64_t due_at; /**< when the pacer lets the next packet go, without credit */

    uint64_t delivered; /**< bytes delivered, in all */
    uint64_t acked;     /**< `delivered` at the last update */
    uint64_t delivered_at;
    uint64_t first_at;
    /** the program limits packets until so many bytes are delivered; 0: it does not limit packets */
    uint64_t limited;
    dn_bbr_stamp_t newest; /**< of the newest packet that this acknowledgement names */
    uint64_t newest_at;    /**< 1 + its sending time; 0: the acknowledgement names no packet */

    uint64_t bw;                      /**< BtlBw: bytes in a second, the maximum of the last rounds */
    uint64_t round_ends;              /**< the round ends when so many bytes are delivered */
    uint64_t round_bw[DN_BBR_ROUNDS]; /**< the maximum of each round */
    uint32_t round;                   /**< the present round */
    uint64_t least_ns, least_at;      /**< the shortest round trip, and its time; 0: not known */
    uint64_t full_bw; /**< in STARTUP: the bandwidth that has to grow by a quarter, or the path is full */
    uint32_t full_rounds;
    uint64_t span_got, span_lost; /**< bytes delivered, and lost, since losses were last judged */
    uint64_t span_ns;             /**< time in which these bytes were delivered */
    uint32_t span_rounds;         /**< rounds since then */
    uint32_t phase;               /**< of PROBE_BW */
    uint64_t probe_until;         /**< end of PROBE_RTT; 0: too many bytes are still on their way */
} dn_bbr_t;

/** @param[in] most  Bytes of the largest window. */
void dn_bbr_open(dn_bbr_t *bbr, uint64_t most);

/** Does the pacer let more bytes be sent, behind @p ahead bytes that go before them? */
static inline int dn_bbr_is_due(const dn_bbr_t *bbr, uint64_t ahead, uint64_t now)
{
    const uint64_t since = bbr->due_at + DN_BBR_CREDIT_NS < now ? now - DN_BBR_CREDIT_NS : bbr->due_at;

    return 0 == bbr->gap_ns || (since <= now && ahead * bbr->gap_ns >> DN_BBR_GAP_BITS <= now - since);
}

/** Note that @p bytes are sent. @param[in] flying  Other bytes on their way. */
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

/** Note that only the program holds the sender back: it has no more to send. @param[in] flying  Bytes on their way. */
static inline void dn_bbr_idle(dn_bbr_t *bbr, uint64_t flying)
{
    bbr->limited = bbr->delivered + flying + 1;
}

/** Note that a packet was acknowledged. */
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

/** Note that a packet was lost. */
static inline void dn_bbr_lost(dn_bbr_t *bbr, uint64_t bytes)
{
    bbr->span_lost += bytes;
}

/** Note the time of a round trip. */
void dn_bbr_measured(dn_bbr_t *bbr, uint64_t rtt_ns, uint64_t now);

/** Compute window and rate anew, after dn_bbr_acked() for all packets of an acknowledgement. @param[in] flying  Bytes that are still on
 * their way. */
void dn_bbr_update(dn_bbr_t *bbr, uint64_t flying, uint64_t now);

/** Begin anew: all that was sent for long is lost, so the measures of the path do not count any more. */
void dn_bbr_restart(dn_bbr_t *bbr);

#endif
