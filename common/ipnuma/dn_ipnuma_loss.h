/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_loss.h
 * Packet numbers: which have come, which of ours are acknowledged or lost, how long a round trip takes, and how much may be on its
 * way. The rules are those of RFC 9002, with its names: a number is used once; what is lost is sent again under a new one;
 * acknowledgements are ranges of numbers; a packet is lost when one of 3 numbers later is acknowledged, or one that was sent
 * 9/8 of a round trip later; without an acknowledgement for a probe time-out, one packet is sent as a probe, and the time-out
 * doubles.
 *
 * How much may be on its way is asked of another rule, which RFC 9002 leaves to the sender: dn_ipnuma_bbr.h.
 *
 * Where the RFC leaves a value to the network, it is that of one machine room: see the constants.
 *
 * Time is the caller's, in nanoseconds, so that tests have their own. Threads: the caller's lock. Pinned by
 * test/unit/dn_ipnuma_loss_follows_the_rfc.c.
 */
#ifndef DN_IPNUMA_LOSS_H
#define DN_IPNUMA_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "dn_ipnuma_bbr.h"

#define DN_LOSS_PACKETS    3u                /**< kPacketThreshold */
#define DN_LOSS_GRANULE_NS UINT64_C(200000)  /**< kGranularity: as late as a thread may wake */
#define DN_LOSS_PERSISTENT 3u                /**< kPersistentCongestionThreshold */
#define DN_LOSS_INITIAL_NS UINT64_C(1000000) /**< kInitialRtt */
#define DN_LOSS_ACK_DELAY_NS \
    UINT64_C(500000) /**< max_ack_delay: what the other side may wait with an acknowledgement */
#define DN_LOSS_PROBE_MOST_NS UINT64_C(100000000) /**< longest time-out */
/** What a kernel keeps for a short datagram beside its bytes: the window is for its receive buffer, too. */
#define DN_LOSS_OVERHEAD 768u

/** Numbers from first to last. */
typedef struct dn_loss_range {
    uint64_t first;
    uint64_t last;
} dn_loss_range_t;

#define DN_LOSS_RANGES 32u

/** @name Those that have come */
/** @{ */
typedef struct dn_loss_seen {
    dn_loss_range_t range[DN_LOSS_RANGES]; /**< the newest first, and never next to each other */
    uint32_t count;
    uint64_t floor; /**< numbers below are not taken any more, whether they came or not */
} dn_loss_seen_t;

/** @return 1: it is new; 0: it came before, or is too old to tell. */
int dn_loss_is_new(const dn_loss_seen_t *seen, uint64_t number);
/** The same, and it has come. */
int dn_loss_see(dn_loss_seen_t *seen, uint64_t number);
/** @} */

/** @name Those that were sent */
/** @{ */

/** What becomes of what a packet carried: called once for each packet, from within dn_loss_ack() or dn_loss_expire(). */
typedef void (*dn_loss_fate_fn_t)(void *arg, void *load, int lost);

enum dn_loss_fate { DN_LOSS_ACKED = 1, DN_LOSS_LOST };

typedef struct dn_loss_packet {
    uint64_t number;
    uint64_t at; /**< when it was sent */
    void *load;
    uint32_t size;
    uint32_t settled; /**< enum dn_loss_fate; 0: on its way */
    dn_bbr_stamp_t stamp;
} dn_loss_packet_t;

/** Packets on their way at most. */
#define DN_LOSS_FLYING 512u

typedef struct dn_loss {
    dn_loss_packet_t *packet; /**< ring of DN_LOSS_FLYING, by number */
    uint32_t head;            /**< the oldest that is not settled */
    uint32_t count;
    uint64_t next;    /**< number of the next packet */
    uint64_t largest; /**< acknowledged, + 1; 0: none is */
    uint64_t loss_at; /**< when a packet is lost by time; 0: no such time */
    uint64_t sent_at; /**< the last that asks for an acknowledgement */
    uint32_t probes;  /**< since the last acknowledgement: pto_count */
    uint64_t srtt_ns, rttvar_ns, latest_ns;
    uint64_t flying; /**< bytes */
    dn_bbr_t bbr;
} dn_loss_t;

/** @param[in] first  The first number, at least 1. @param[in] most  Bytes of the largest window. @return 0: no memory. */
int dn_loss_open(dn_loss_t *loss, uint64_t first, uint64_t most);
void dn_loss_close(dn_loss_t *loss);

/** May so many packets of @p size bytes in all be sent, as far as the window goes? One may always, if none is on its way. */
static inline int dn_loss_has_room(const dn_loss_t *loss, uint32_t packets, size_t size)
{
    return loss->count + packets <= DN_LOSS_FLYING
           && ((0 == loss->flying && 1 == packets)
               || loss->flying + size + packets * DN_LOSS_OVERHEAD <= loss->bbr.window);
}

/** May one more be sent, as far as the pacer goes, behind so many packets of @p size bytes in all? */
static inline int dn_loss_is_due(const dn_loss_t *loss, uint32_t packets, size_t size, uint64_t now)
{
    return dn_bbr_is_due(&loss->bbr, size + packets * DN_LOSS_OVERHEAD, now);
}

/** The packet of number loss->next, which asks for an acknowledgement, was sent. A place has to be free: a probe, too, takes one. */
void dn_loss_sent(dn_loss_t *loss, uint64_t now, void *load, size_t size);

/** The next number is used up, by a packet that asks for none, or that was made and not sent. */
static inline uint64_t dn_loss_skip(dn_loss_t *loss)
{
    return loss->next++;
}

/**
 * An acknowledgement came.
 *
 * @param[in] range     The newest first, as dn_loss_seen_t has them.
 * @param[in] delay_ns  For which the other side has waited with it.
 *
 * @return 0: it names a number that was never used; nothing has changed.
 */
int dn_loss_ack(dn_loss_t *loss, const dn_loss_range_t *range, uint32_t ranges, uint64_t delay_ns,
                uint64_t now, dn_loss_fate_fn_t fate, void *arg);

/** When dn_loss_expire() has something to do. UINT64_MAX: never. */
uint64_t dn_loss_timer(const dn_loss_t *loss);

/** That time has come. @return 1: a probe has to be sent, whatever the window says. */
int dn_loss_expire(dn_loss_t *loss, uint64_t now, dn_loss_fate_fn_t fate, void *arg);

/** What a packet that is not settled carries is not to be told of any more. */
void dn_loss_forget(dn_loss_t *loss, const void *load);
/** @} */

#endif
