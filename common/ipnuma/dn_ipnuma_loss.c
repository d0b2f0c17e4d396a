/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_loss.h"

#include <stdlib.h>
#include <string.h>

/* Packets that have come */

/** Insert a range of one number at a place. If the table is full, the oldest range is dropped. */
static void dn_loss_insert(dn_loss_seen_t *seen, uint32_t place, uint64_t number)
{
    if (DN_LOSS_RANGES == seen->count) {
        seen->count--;
        seen->floor = seen->range[seen->count].last + 1;
    }
    memmove(seen->range + place + 1, seen->range + place, (seen->count - place) * sizeof(seen->range[0]));
    seen->range[place] = (dn_loss_range_t){number, number};
    seen->count++;
}

/** Drop ranges that the sender has settled long ago. A sender has at most DN_LOSS_FLYING packets on their way: packets with numbers far
 * below the newest were acknowledged or lost. Such a packet that still comes counts as lost. */
static void dn_loss_forget_old(dn_loss_seen_t *seen)
{
    while (1 < seen->count && seen->range[0].last - seen->range[seen->count - 1].last > 2 * DN_LOSS_FLYING) {
        seen->count--;
        seen->floor = seen->range[seen->count].last + 1;
    }
}

/** The place of the newest range that begins at @p number or below. */
static uint32_t dn_loss_place(const dn_loss_seen_t *seen, uint64_t number)
{
    uint32_t place = 0;

    while (place < seen->count && seen->range[place].first > number) {
        place++;
    }
    return place;
}

int dn_loss_is_new(const dn_loss_seen_t *seen, uint64_t number)
{
    const uint32_t place = dn_loss_place(seen, number);

    if (number < seen->floor || (place < seen->count && number <= seen->range[place].last)) {
        return 0;
    }
    /* A full table takes a number below all ranges only if it extends the oldest range. */
    return DN_LOSS_RANGES != place || number + 1 == seen->range[place - 1].first;
}

int dn_loss_see(dn_loss_seen_t *seen, uint64_t number)
{
    if (!dn_loss_is_new(seen, number)) {
        return 0;
    }
    const uint32_t place = dn_loss_place(seen, number);
    const int after = place < seen->count && seen->range[place].last + 1 == number;
    const int before = 0 < place && number + 1 == seen->range[place - 1].first;
    if (after && before) {
        seen->range[place - 1].first = seen->range[place].first;
        seen->count--;
        memmove(seen->range + place, seen->range + place + 1, (seen->count - place) * sizeof(seen->range[0]));
    } else if (after) {
        seen->range[place].last = number;
    } else if (before) {
        seen->range[place - 1].first = number;
    } else {
        dn_loss_insert(seen, place, number);
    }
    dn_loss_forget_old(seen);
    return 1;
}

/* Packets that were sent */

int dn_loss_open(dn_loss_t *loss, uint64_t first, uint64_t most)
{
    *loss = (dn_loss_t){
        .packet = calloc(DN_LOSS_FLYING, sizeof(dn_loss_packet_t)), .next = first, .needed = DN_LOSS_HOLE};
    dn_bbr_open(&loss->bbr, most);
    return NULL != loss->packet;
}

void dn_loss_close(dn_loss_t *loss)
{
    free(loss->packet);
    loss->packet = NULL;
    loss->count = 0;
}

static dn_loss_packet_t *dn_loss_at(const dn_loss_t *loss, uint32_t i)
{
    return &loss->packet[(loss->head + i) % DN_LOSS_FLYING];
}

void dn_loss_sent(dn_loss_t *loss, uint64_t now, void *load, size_t size)
{
    const uint32_t bytes = (uint32_t) size + DN_LOSS_OVERHEAD;

    *dn_loss_at(loss, loss->count) =
        (dn_loss_packet_t){.number = loss->next++,
                           .at = now,
                           .load = load,
                           .size = bytes,
                           .stamp = dn_bbr_sent(&loss->bbr, bytes, loss->flying, now)};
    loss->count++;
    loss->flying += bytes;
    loss->sent_at = now;
}

static int dn_loss_is_long(uint32_t size)
{
    return DN_LOSS_BASE + DN_LOSS_OVERHEAD < size;
}

/** Note that a packet has come, maybe after it counted as lost. A late packet that was sent before the path became narrower counts as
 * proof, too: such a hole has to be found a second time. */
static void dn_loss_note_come(dn_loss_t *loss, uint64_t number, uint32_t size)
{
    dn_loss_hole_t *hole = &loss->hole;

    loss->narrow = size < loss->narrow ? loss->narrow : 0;
    if (0 != hole->size && size >= hole->size) {
        *hole = (dn_loss_hole_t){.from = number > hole->from ? number : hole->from};
    } else {
        hole->came = number > hole->came ? number : hole->came;
    }
}

/** Note that a packet has come before it counted as lost. */
static void dn_loss_note_in_time(dn_loss_t *loss, uint64_t number, uint32_t size)
{
    dn_loss_note_come(loss, number, size);
    if (DN_LOSS_HOLE != loss->needed && dn_loss_is_long(size) && DN_LOSS_CALM == ++loss->calm) {
        loss->needed = DN_LOSS_HOLE;
    }
}

static void dn_loss_note_lost(dn_loss_t *loss, uint64_t number, uint32_t size)
{
    dn_loss_hole_t *hole = &loss->hole;

    if (!dn_loss_is_long(size)) {
        return;
    }
    loss->lates += 0 == loss->late[loss->late_at].number;
    loss->late[loss->late_at] = (dn_loss_late_t){.number = number, .size = size};
    loss->late_at = (loss->late_at + 1) % DN_LOSS_LATE;
    if (number > hole->from) {
        hole->size = 0 == hole->size || size < hole->size ? size : hole->size;
        hole->lost = 0 == hole->lost || number < hole->lost ? number : hole->lost;
    }
}

/** Note what a packet's fate says of a black hole. */
static void dn_loss_note(dn_loss_t *loss, const dn_loss_packet_t *packet, int lost)
{
    dn_loss_hole_t *hole = &loss->hole;

    (lost ? dn_loss_note_lost : dn_loss_note_in_time)(loss, packet->number, packet->size);
    if (0 != hole->lost && hole->came > hole->lost) {
        hole->turns += loss->needed > hole->turns;
        hole->from = hole->came;
        hole->lost = 0;
    }
}

/** A long packet that counted as lost is acknowledged: it may disprove something. */
static void dn_loss_disprove(dn_loss_t *loss, const dn_loss_late_t *late)
{
    const int narrow = 0 != loss->narrow;

    if (!narrow && 0 == loss->hole.size) {
        return;
    }
    dn_loss_note_come(loss, late->number, late->size);
    if (narrow && 0 == loss->narrow) {
        loss->needed = DN_LOSS_HOLE_MOST / 2 < loss->needed ? DN_LOSS_HOLE_MOST : 2 * loss->needed;
        loss->calm = 0;
    }
}

/** Note the long packets that counted as lost and are acknowledged now. Each is noted once, whether it disproves something or not:
 * acknowledgements may go on to name it. */
static void dn_loss_note_late(dn_loss_t *loss, const dn_loss_range_t *range, uint32_t ranges)
{
    for (uint32_t i = 0; i < DN_LOSS_LATE && 0 != loss->lates; i++) {
        dn_loss_late_t *late = &loss->late[i];
        uint32_t at = 0;
        while (at < ranges && range[at].first > late->number) {
            at++;
        }
        if (0 != late->number && at < ranges && range[at].last >= late->number) {
            dn_loss_disprove(loss, late);
            late->number = 0;
            loss->lates--;
        }
    }
}

static void dn_loss_settle(dn_loss_t *loss, dn_loss_packet_t *packet, int lost, dn_loss_fate_fn_t fate,
                           void *arg)
{
    void *load = packet->load;

    dn_loss_note(loss, packet, lost);
    packet->settled = lost ? DN_LOSS_LOST : DN_LOSS_ACKED;
    packet->load = NULL;
    loss->flying -= packet->size;
    if (NULL != load) {
        fate(arg, load, lost);
    }
}

static void dn_loss_drop_settled(dn_loss_t *loss)
{
    while (0 != loss->count && loss->packet[loss->head].settled) {
        loss->head = (loss->head + 1) % DN_LOSS_FLYING;
        loss->count--;
    }
}

/** Take a round trip into the estimates: RFC 9002, section 5.3. */
static void dn_loss_measure(dn_loss_t *loss, uint64_t rtt, uint64_t delay, uint64_t now)
{
    dn_bbr_measured(&loss->bbr, rtt, now);
    loss->latest_ns = rtt;
    if (0 == loss->srtt_ns) {
        loss->srtt_ns = rtt;
        loss->rttvar_ns = rtt / 2;
        return;
    }
    delay = DN_LOSS_ACK_DELAY_NS < delay ? DN_LOSS_ACK_DELAY_NS : delay;
    const uint64_t own = rtt >= loss->bbr.least_ns + delay ? rtt - delay : rtt;
    const uint64_t off = own > loss->srtt_ns ? own - loss->srtt_ns : loss->srtt_ns - own;
    loss->rttvar_ns = (3 * loss->rttvar_ns + off) / 4;
    loss->srtt_ns = (7 * loss->srtt_ns + own) / 8;
}

/** Section 6.2.1: the time within which an acknowledgement comes. */
static uint64_t dn_loss_period_ns(const dn_loss_t *loss)
{
    const uint64_t rtt = 0 == loss->srtt_ns ? DN_LOSS_INITIAL_NS : loss->srtt_ns;
    const uint64_t var = 0 == loss->srtt_ns ? DN_LOSS_INITIAL_NS / 2 : loss->rttvar_ns;
    const uint64_t spread = 4 * var > DN_LOSS_GRANULE_NS ? 4 * var : DN_LOSS_GRANULE_NS;

    return rtt + spread + DN_LOSS_ACK_DELAY_NS;
}

/** Section 7.6, persistent congestion: all packets that were sent from @p from to @p to are lost. Is this time long enough? */
static int dn_loss_persists(const dn_loss_t *loss, uint64_t from, uint64_t to)
{
    return 0 != loss->srtt_ns && to - from > DN_LOSS_PERSISTENT * dn_loss_period_ns(loss);
}

/** Section 6.1: find the packets that are lost by now. */
static void dn_loss_detect(dn_loss_t *loss, uint64_t now, dn_loss_fate_fn_t fate, void *arg)
{
    const uint64_t rtt = loss->latest_ns > loss->srtt_ns ? loss->latest_ns : loss->srtt_ns;
    uint64_t delay = rtt + rtt / 8;

    delay = DN_LOSS_GRANULE_NS > delay ? DN_LOSS_GRANULE_NS : delay;
    loss->loss_at = 0;
    uint64_t lost_since = UINT64_MAX;
    for (uint32_t i = 0; i < loss->count; i++) {
        dn_loss_packet_t *packet = dn_loss_at(loss, i);
        if (packet->number >= loss->largest) {
            break;
        }
        if (DN_LOSS_ACKED == packet->settled) {
            lost_since = UINT64_MAX;
            continue;
        }
        lost_since = packet->at < lost_since ? packet->at : lost_since;
        if (DN_LOSS_LOST == packet->settled) {
            continue;
        }
        if (loss->largest - 1 - packet->number >= DN_LOSS_PACKETS || now - packet->at >= delay) {
            if (dn_loss_persists(loss, lost_since, packet->at)) {
                dn_bbr_restart(&loss->bbr);
            }
            dn_bbr_lost(&loss->bbr, packet->size);
            dn_loss_settle(loss, packet, 1, fate, arg);
        } else if (0 == loss->loss_at || packet->at + delay < loss->loss_at) {
            loss->loss_at = packet->at + delay;
        }
    }
    dn_loss_drop_settled(loss);
}

int dn_loss_ack(dn_loss_t *loss, const dn_loss_range_t *range, uint32_t ranges, uint64_t delay_ns,
                uint64_t now, dn_loss_fate_fn_t fate, void *arg)
{
    uint32_t acked = 0, at = ranges;

    if (0 == ranges) {
        return 1;
    }
    if (range[0].last >= loss->next) {
        return 0;
    }
    loss->largest = range[0].last >= loss->largest ? range[0].last + 1 : loss->largest;
    /* Packets and ranges are compared from the oldest to the newest. */
    for (uint32_t i = 0; i < loss->count && 0 != at; i++) {
        dn_loss_packet_t *packet = dn_loss_at(loss, i);
        while (0 != at && range[at - 1].last < packet->number) {
            at--;
        }
        if (0 == at || packet->number < range[at - 1].first || packet->settled) {
            continue;
        }
        if (packet->number == range[0].last) {
            dn_loss_measure(loss, now - packet->at, delay_ns, now);
        }
        dn_bbr_acked(&loss->bbr, &packet->stamp, packet->at, packet->size, now);
        dn_loss_settle(loss, packet, 0, fate, arg);
        acked++;
    }
    dn_loss_note_late(loss, range, ranges);
    if (0 != acked) {
        loss->probes = 0;
    }
    dn_loss_detect(loss, now, fate, arg);
    dn_bbr_update(&loss->bbr, loss->flying, now);
    return 1;
}

/** Section 6.2.1: the probe time-out, which doubles after each probe. */
static uint64_t dn_loss_probe_ns(const dn_loss_t *loss)
{
    uint64_t wait = dn_loss_period_ns(loss);

    for (uint32_t i = 0; i < loss->probes && wait < DN_LOSS_PROBE_MOST_NS; i++) {
        wait *= 2;
    }
    return wait < DN_LOSS_PROBE_MOST_NS ? wait : DN_LOSS_PROBE_MOST_NS;
}

uint64_t dn_loss_timer(const dn_loss_t *loss)
{
    if (0 == loss->count) {
        return UINT64_MAX;
    }
    return 0 != loss->loss_at ? loss->loss_at : loss->sent_at + dn_loss_probe_ns(loss);
}

int dn_loss_expire(dn_loss_t *loss, uint64_t now, dn_loss_fate_fn_t fate, void *arg)
{
    if (now < dn_loss_timer(loss)) {
        return 0;
    }
    if (0 != loss->loss_at) {
        dn_loss_detect(loss, now, fate, arg);
        return 0;
    }
    loss->probes++;
    /* If there is no free place for a probe, the probe takes the place of the oldest packet, which counts as lost. */
    if (DN_LOSS_FLYING == loss->count) {
        dn_loss_settle(loss, dn_loss_at(loss, 0), 1, fate, arg);
        dn_loss_drop_settled(loss);
    }
    return 1;
}

void dn_loss_leave_hole(dn_loss_t *loss, dn_loss_fate_fn_t fate, void *arg)
{
    loss->narrow = loss->hole.size;
    for (uint32_t i = 0; i < loss->count; i++) {
        dn_loss_packet_t *packet = dn_loss_at(loss, i);
        if (!packet->settled && dn_loss_is_long(packet->size)) {
            dn_loss_settle(loss, packet, 1, fate, arg);
        }
    }
    dn_loss_drop_settled(loss);
    loss->hole = (dn_loss_hole_t){.from = loss->next - 1};
}

void dn_loss_forget(dn_loss_t *loss, const void *load)
{
    for (uint32_t i = 0; i < loss->count; i++) {
        dn_loss_packet_t *packet = dn_loss_at(loss, i);
        packet->load = load == packet->load ? NULL : packet->load;
    }
}
