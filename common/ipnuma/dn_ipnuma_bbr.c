/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_bbr.h"

#include <string.h>

#define DN_BBR_SECOND UINT64_C(1000000000)

/** pacing_gain in the phases of PROBE_BW, in thousandths: faster than the bandwidth for a round trip, then slower by as much. */
static const uint32_t dn_bbr_phases[] = {1250, 750, 1000, 1000, 1000, 1000, 1000, 1000};

#define DN_BBR_PHASES (sizeof(dn_bbr_phases) / sizeof(dn_bbr_phases[0]))

static uint64_t dn_bbr_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t dn_bbr_max(uint64_t a, uint64_t b)
{
    return a < b ? b : a;
}

void dn_bbr_open(dn_bbr_t *bbr, uint64_t most)
{
    *bbr = (dn_bbr_t){.most = most, .window = dn_bbr_min(DN_BBR_WINDOW_FIRST, most)};
}

/** The interval of the newest sample: the time in which its bytes were sent, or the time in which they were delivered, if that is
 * longer. */
static uint64_t dn_bbr_interval(const dn_bbr_t *bbr)
{
    const uint64_t sent_at = bbr->newest_at - 1;
    /* A caller that was delayed may pass an earlier time than the caller before it. */
    const uint64_t sending = sent_at > bbr->newest.first_at ? sent_at - bbr->newest.first_at : 0;

    return dn_bbr_max(sending, bbr->delivered_at - bbr->newest.delivered_at);
}

/* The model */

/** Take a sample of the bandwidth into the present round. */
static void dn_bbr_keep(dn_bbr_t *bbr, uint64_t bw)
{
    bw = dn_bbr_min(bw, DN_BBR_BW_MOST);
    bbr->round_bw[bbr->round] = dn_bbr_max(bbr->round_bw[bbr->round], bw);
    bbr->bw = dn_bbr_max(bbr->bw, bw);
}

/** Begin the next round. The samples of the oldest round do not count any more. */
static void dn_bbr_age(dn_bbr_t *bbr)
{
    bbr->round = (bbr->round + 1) % DN_BBR_ROUNDS;
    bbr->round_bw[bbr->round] = 0;
    bbr->bw = 0;
    for (uint32_t i = 0; i < DN_BBR_ROUNDS; i++) {
        bbr->bw = dn_bbr_max(bbr->bw, bbr->round_bw[i]);
    }
}

/** Forget all samples of the bandwidth. */
static void dn_bbr_forget(dn_bbr_t *bbr)
{
    memset(bbr->round_bw, 0, sizeof(bbr->round_bw));
    bbr->bw = 0;
}

/** Bytes that are delivered in @p ns at the measured bandwidth. */
static uint64_t dn_bbr_bytes(const dn_bbr_t *bbr, uint64_t ns)
{
    return bbr->bw * dn_bbr_min(ns, DN_BBR_NS_MOST) / DN_BBR_SECOND;
}

/** BBRInflight(): the bytes that the path holds, times a gain; plus the bytes that hosts hold, which send and acknowledge in rows; plus
 * DN_BBR_WINDOW_LEAST. */
static uint64_t dn_bbr_inflight(const dn_bbr_t *bbr, uint64_t gain_1000)
{
    const uint64_t quantum = dn_bbr_min(dn_bbr_bytes(bbr, DN_BBR_QUANTUM_NS), DN_BBR_QUANTUM);
    const uint64_t bytes =
        dn_bbr_bytes(bbr, bbr->least_ns) * gain_1000 / 1000 + 3 * quantum + DN_BBR_WINDOW_LEAST;

    return dn_bbr_min(bytes, bbr->most);
}

/** Set the rate of the pacer. */
static void dn_bbr_pace(dn_bbr_t *bbr, uint64_t rate)
{
    bbr->rate = rate;
    bbr->gap_ns = 0 == rate ? 0 : (DN_BBR_SECOND << DN_BBR_GAP_BITS) / rate;
}

/** Enter a state, with the values that it begins with. */
static void dn_bbr_turn(dn_bbr_t *bbr, enum dn_bbr_state to)
{
    bbr->state = to;
    bbr->probe_until = 0;
    if (DN_BBR_STARTUP == to) {
        dn_bbr_forget(bbr);
        bbr->full_bw = 0;
        bbr->full_rounds = 0;
        dn_bbr_pace(bbr, 0);
    }
}

/** The least rate of STARTUP: one window in a shortest round trip, times the gain. */
static uint64_t dn_bbr_first_rate(const dn_bbr_t *bbr)
{
    const uint64_t rate = bbr->window * DN_BBR_SECOND / bbr->least_ns;

    return dn_bbr_min(rate, DN_BBR_BW_MOST) * DN_BBR_HIGH_1000 / 1000;
}

void dn_bbr_measured(dn_bbr_t *bbr, uint64_t rtt_ns, uint64_t now)
{
    const int stale = 0 != bbr->least_ns && now - bbr->least_at > DN_BBR_RTT_NS;

    if (0 == bbr->least_ns || rtt_ns <= bbr->least_ns || stale) {
        bbr->least_ns = rtt_ns;
        bbr->least_at = now;
    }
    /* A program that has paused, or that has little to send, finds the path idle. Its own packets find the shortest round trip then. */
    if (stale && DN_BBR_PROBE_BW == bbr->state && 0 == bbr->limited) {
        dn_bbr_turn(bbr, DN_BBR_PROBE_RTT);
    }
}

/** Count a round, and judge the losses when enough rounds are counted. If the link drops more bytes than chance does, the bytes that it
 * delivers are its bandwidth, however fast a burst passes. */
static void dn_bbr_police(dn_bbr_t *bbr, uint64_t got, uint64_t time)
{
    bbr->span_got += got;
    bbr->span_ns += time;
    bbr->span_rounds++;
    const uint64_t sent = bbr->span_got + bbr->span_lost;
    if (DN_BBR_POLICED_ROUNDS > bbr->span_rounds || DN_BBR_POLICED_BYTES > sent) {
        return;
    }
    if (bbr->span_lost >= sent / DN_BBR_POLICED_LOST && 0 != bbr->span_ns) {
        dn_bbr_forget(bbr);
        dn_bbr_keep(bbr, bbr->span_got * DN_BBR_SECOND / bbr->span_ns);
        if (DN_BBR_STARTUP == bbr->state) {
            dn_bbr_turn(bbr, DN_BBR_DRAIN);
        }
    }
    bbr->span_rounds = 0;
    bbr->span_got = 0;
    bbr->span_ns = 0;
    bbr->span_lost = 0;
}

/** End a round, which is a round trip of packets. @param[in] told  Not 0: the program did not limit the sample that ends the round. */
static void dn_bbr_end_round(dn_bbr_t *bbr, int told)
{
    bbr->round_ends = bbr->delivered;
    bbr->phase = (bbr->phase + 1) % DN_BBR_PHASES;
    if (!told) {
        return;
    }
    if (DN_BBR_STARTUP == bbr->state) {
        if (bbr->bw >= bbr->full_bw + bbr->full_bw / 4) {
            bbr->full_bw = bbr->bw;
            bbr->full_rounds = 0;
        } else if (DN_BBR_FULL_ROUNDS <= ++bbr->full_rounds) {
            dn_bbr_turn(bbr, DN_BBR_DRAIN);
        }
    }
    dn_bbr_age(bbr);
}

/** Learn the bandwidth of the path from the newest sample. */
static void dn_bbr_learn(dn_bbr_t *bbr)
{
    const uint64_t got = bbr->delivered - bbr->newest.delivered, time = dn_bbr_interval(bbr);
    const uint64_t bw = 0 == time ? 0 : got * DN_BBR_SECOND / time;
    const int told = 0 != bw && !bbr->newest.limited;

    if (told || bw > bbr->bw) {
        dn_bbr_keep(bbr, bw);
    }
    if (bbr->newest.delivered >= bbr->round_ends) {
        dn_bbr_police(bbr, got, time);
        dn_bbr_end_round(bbr, told);
    }
    if (bbr->delivered >= bbr->limited) {
        bbr->limited = 0;
    }
}

/** Leave DRAIN or PROBE_RTT, if it is time to. */
static void dn_bbr_look(dn_bbr_t *bbr, uint64_t flying, uint64_t now)
{
    if (DN_BBR_DRAIN == bbr->state && flying <= dn_bbr_inflight(bbr, 1000)) {
        dn_bbr_turn(bbr, DN_BBR_PROBE_BW);
    }
    if (DN_BBR_PROBE_RTT != bbr->state) {
        return;
    }
    /* In PROBE_RTT only few bytes are on their way, which say nothing of the bandwidth. */
    dn_bbr_idle(bbr, flying);
    if (0 == bbr->probe_until && flying <= DN_BBR_WINDOW_LEAST) {
        bbr->probe_until = now + DN_BBR_PROBE_RTT_NS;
    } else if (0 != bbr->probe_until && now >= bbr->probe_until) {
        bbr->least_at = now;
        dn_bbr_turn(bbr, DN_BBR_PROBE_BW);
    }
}

/** pacing_gain, in thousandths. */
static uint64_t dn_bbr_gain(const dn_bbr_t *bbr)
{
    switch (bbr->state) {
    case DN_BBR_STARTUP:
        return DN_BBR_HIGH_1000;
    case DN_BBR_DRAIN:
        return 1000000 / DN_BBR_HIGH_1000;
    case DN_BBR_PROBE_BW:
        return dn_bbr_phases[bbr->phase];
    default:
        return 1000;
    }
}

void dn_bbr_update(dn_bbr_t *bbr, uint64_t flying, uint64_t now)
{
    if (0 == bbr->newest_at) {
        return;
    }
    const uint64_t acked = bbr->delivered - bbr->acked;
    dn_bbr_learn(bbr);
    dn_bbr_look(bbr, flying, now);
    bbr->newest_at = 0;
    bbr->acked = bbr->delivered;
    const uint64_t rate = dn_bbr_max(bbr->bw * dn_bbr_gain(bbr) / 1000, DN_BBR_RATE_LEAST);
    const uint64_t most =
        dn_bbr_inflight(bbr, DN_BBR_STARTUP == bbr->state ? DN_BBR_HIGH_1000 : DN_BBR_WINDOW_1000);
    if (DN_BBR_STARTUP == bbr->state) {
        /* In STARTUP the window grows by the bytes that are delivered, up to the window of the model. Neither window nor rate shrinks. */
        bbr->window = dn_bbr_max(bbr->window, dn_bbr_min(bbr->window + acked, most));
        dn_bbr_pace(bbr,
                    0 == bbr->least_ns ? 0 : dn_bbr_max(bbr->rate, dn_bbr_max(rate, dn_bbr_first_rate(bbr))));
    } else {
        bbr->window = DN_BBR_PROBE_RTT == bbr->state ? DN_BBR_WINDOW_LEAST : most;
        dn_bbr_pace(bbr, rate);
    }
}

void dn_bbr_restart(dn_bbr_t *bbr)
{
    dn_bbr_turn(bbr, DN_BBR_STARTUP);
    bbr->window = DN_BBR_WINDOW_LEAST;
    bbr->newest_at = 0;
    bbr->acked = bbr->delivered;
}
