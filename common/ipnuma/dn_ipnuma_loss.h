/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ipnuma_loss.h
 * Packet numbers: which numbers have come, which packets of this side are acknowledged or lost, and how long a round trip takes.
 * The rules and names are those of RFC 9002. A number is used once; lost data is sent again under a new number.
 * Acknowledgements are ranges of numbers. A packet counts as lost when a packet with a number larger by 3 or more is acknowledged. It
 * also counts as lost when any packet with a larger number is acknowledged, and 9/8 of a round trip has gone by since it was sent. If no
 * acknowledgement comes for a probe time-out, one packet is sent as a probe, and the time-out doubles.
 *
 * RFC 9002 leaves to the sender how many bytes may be on their way: dn_ipnuma_bbr.h decides this.
 *
 * Where the RFC leaves a value to the network, the value is for one machine room: see the constants.
 *
 * A path may become narrower than the packets that go over it, and drop the long ones without a word: a black hole (RFC 8899, section
 * 4.3). It shows where a long packet is lost and a shorter one, sent later, comes, DN_LOSS_HOLE times in turn, and no packet as long as
 * those lost comes meanwhile. A network that is away loses all, and one that is crowded brings some of the long ones. Where all long ones
 * were only late, their acknowledgements come after they have counted as lost, and disprove the hole. The next one takes twice as many
 * turns to tell, until long packets have come in time for long.
 *
 * Time is the caller's, in nanoseconds, so that tests have their own. Threads: the caller's lock. Pinned by
 * test/unit/dn_ipnuma_loss_follows_the_rfc.c.
 */
#ifndef DN_IPNUMA_LOSS_H
#define DN_IPNUMA_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "dn_ipnuma_bbr.h"

#define DN_LOSS_PACKETS 3u /**< kPacketThreshold */
#define DN_LOSS_GRANULE_NS \
    UINT64_C(100000)          /**< kGranularity: as late as a thread that is not held up may wake */
#define DN_LOSS_PERSISTENT 3u /**< kPersistentCongestionThreshold */
#define DN_LOSS_INITIAL_NS UINT64_C(1000000) /**< kInitialRtt */
/**
 * max_ack_delay: longest time that an acknowledgement waits for a packet that takes it along, unless the sender asks for it at once. Few
 * wait at all: an acknowledgement goes in the first turn in which nothing comes, and behind eight packets.
 *
 * The probe time-out is a round trip, four times its variance or the granularity, and this: 300 us and a round trip on an idle machine.
 * Values of 200 us, and 500 us of the sender's against 200 us of the receiver's, made it 700 us. With a delay of 100 us two senders on a
 * slow link no longer share it (test/unit/dn_ipnuma_bbr_finds_what_a_path_holds.c: one has a quarter), and test/device/ipnuma_storm
 * brought 1.2 times as many messages a second over its bad wire as with 700 us, and as many over its good one.
 */
#define DN_LOSS_ACK_DELAY_NS  UINT64_C(200000)
#define DN_LOSS_PROBE_MOST_NS UINT64_C(100000000) /**< longest time-out */
/** Bytes that a kernel needs for a short datagram beside its data: the window also bounds the use of its receive buffer. */
#define DN_LOSS_OVERHEAD 768u

/** A path takes packets of so many bytes: BASE_PLPMTU of RFC 8899, as RFC 9000 has it. */
#define DN_LOSS_BASE 1200u
/** A path that drops one packet in ten at random looks like a black hole so often by chance: once in 10^8 packets. */
#define DN_LOSS_HOLE 8u
/** Most turns: they double with each black hole that is disproved. Otherwise a crowd makes a sender cut its packets again and again. */
#define DN_LOSS_HOLE_MOST 64u
/** When so many long packets have come in time since, DN_LOSS_HOLE turns tell a black hole again. */
#define DN_LOSS_CALM 1000u
/** Long packets that count as lost, and whose acknowledgement is still noticed. Where all are only late, the newest come, too. */
#define DN_LOSS_LATE (2 * DN_LOSS_HOLE)

/** Numbers from first to last. */
typedef struct dn_loss_range {
    uint64_t first;
    uint64_t last;
} dn_loss_range_t;

#define DN_LOSS_RANGES 32u

/** @name Packets that have come */
/** @{ */
typedef struct dn_loss_seen {
    dn_loss_range_t range[DN_LOSS_RANGES]; /**< the newest first, and never next to each other */
    uint32_t count;
    uint64_t floor; /**< smaller numbers are not taken any more, whether they came or not */
} dn_loss_seen_t;

/** @return 1: the number is new; 0: it came before, or is too old to tell. */
int dn_loss_is_new(const dn_loss_seen_t *seen, uint64_t number);
/** The same; and note that the number has come. */
int dn_loss_see(dn_loss_seen_t *seen, uint64_t number);
/** @} */

/** @name Packets that were sent */
/** @{ */

/** Tell whether a packet's load was acknowledged or lost. Called once for each packet, from within dn_loss_ack() or dn_loss_expire(). */
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

/** What tells a black hole. */
typedef struct dn_loss_hole {
    uint64_t from; /**< larger numbers count */
    uint64_t lost; /**< the smallest of a long packet that is lost; 0: none is lost */
    uint64_t came; /**< the largest of a shorter packet that came */
    uint32_t size; /**< of the shortest that was lost; 0: none is lost */
    uint32_t turns;
} dn_loss_hole_t;

/** A long packet that counts as lost. */
typedef struct dn_loss_late {
    uint64_t number; /**< 0: none */
    uint32_t size;
} dn_loss_late_t;

/** Most packets on their way. */
#define DN_LOSS_FLYING 512u

typedef struct dn_loss {
    dn_loss_packet_t *packet; /**< ring of DN_LOSS_FLYING, by number */
    uint32_t head;            /**< the oldest that is not settled */
    uint32_t count;
    uint64_t next;    /**< number of the next packet */
    uint64_t largest; /**< 1 + the largest number acknowledged; 0: no number is acknowledged */
    uint64_t loss_at; /**< when a packet is lost by time; 0: no such time */
    uint64_t sent_at; /**< when the last packet was sent that asks for an acknowledgement */
    uint32_t probes;  /**< probes since the last acknowledgement: pto_count */
    uint64_t srtt_ns, rttvar_ns, latest_ns;
    uint64_t flying; /**< bytes */
    dn_loss_hole_t hole;
    uint32_t needed; /**< turns that tell a black hole */
    uint32_t calm;   /**< long packets that have come in time since a black hole was disproved */
    /** dn_loss_hole_t::size of the last black hole; 0: none, or one as long has come since */
    uint32_t narrow;
    uint32_t lates;                    /**< packets in `late` */
    uint32_t late_at;                  /**< place of the next in `late` */
    dn_loss_late_t late[DN_LOSS_LATE]; /**< ring of the newest */
    dn_bbr_t bbr;
} dn_loss_t;

/** @param[in] first  The first number, at least 1. @param[in] most  Bytes of the largest window. @return 0: no memory. */
int dn_loss_open(dn_loss_t *loss, uint64_t first, uint64_t most);
void dn_loss_close(dn_loss_t *loss);

/** Has the window room for @p packets more packets, of @p size bytes in all? It always has room for one packet if none is on its way. */
static inline int dn_loss_has_room(const dn_loss_t *loss, uint32_t packets, size_t size)
{
    return loss->count + packets <= DN_LOSS_FLYING
           && ((0 == loss->flying && 1 == packets)
               || loss->flying + size + packets * DN_LOSS_OVERHEAD <= loss->bbr.window);
}

/** Does the pacer let one more packet be sent, behind @p packets packets of @p size bytes in all? */
static inline int dn_loss_is_due(const dn_loss_t *loss, uint32_t packets, size_t size, uint64_t now)
{
    return dn_bbr_is_due(&loss->bbr, size + packets * DN_LOSS_OVERHEAD, now);
}

/** Note that the packet of number loss->next was sent, which asks for an acknowledgement. A place has to be free: also a probe takes a
 * place. */
void dn_loss_sent(dn_loss_t *loss, uint64_t now, void *load, size_t size);

/** Use up the next number: by a packet that asks for no acknowledgement, or that was made and not sent. */
static inline uint64_t dn_loss_skip(dn_loss_t *loss)
{
    return loss->next++;
}

/**
 * Handle an acknowledgement.
 *
 * @param[in] range     The newest first, as dn_loss_seen_t has them.
 * @param[in] delay_ns  How long the other side has waited with the acknowledgement.
 *
 * @return 0: it names a number that was never used; nothing has changed.
 */
int dn_loss_ack(dn_loss_t *loss, const dn_loss_range_t *range, uint32_t ranges, uint64_t delay_ns,
                uint64_t now, dn_loss_fate_fn_t fate, void *arg);

/** When dn_loss_expire() has something to do. UINT64_MAX: never. */
uint64_t dn_loss_timer(const dn_loss_t *loss);

/** If that time has come, do its work. @return 1: the caller has to send a probe, even if the window has no room. */
int dn_loss_expire(dn_loss_t *loss, uint64_t now, dn_loss_fate_fn_t fate, void *arg);

/** Does the path drop all packets of more than DN_LOSS_BASE bytes that are as long as those lost? */
static inline int dn_loss_in_hole(const dn_loss_t *loss)
{
    return loss->needed <= loss->hole.turns;
}

/** Has no packet come yet that is as long as those which the last black hole has swallowed? */
static inline int dn_loss_is_narrow(const dn_loss_t *loss)
{
    return 0 != loss->narrow;
}

/** The packets of more than DN_LOSS_BASE bytes go nowhere: they are lost. That says nothing of congestion. What told a black hole is
 * forgotten, but for dn_loss_is_narrow(). */
void dn_loss_leave_hole(dn_loss_t *loss, dn_loss_fate_fn_t fate, void *arg);

/** Do not tell the fate of packets that carry @p load any more. */
void dn_loss_forget(dn_loss_t *loss, const void *load);
/** @} */

#endif
