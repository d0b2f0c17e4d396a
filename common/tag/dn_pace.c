/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_pace.h"

/** Messages between two trials of another way, where both take about as long; more the slower it is, the more messages a trial takes,
 * and twice as many each time that the best way has stayed the same, up to LOST_MOST times. */
#define LEAST_LEFT 512.0f
#define MOST_LEFT  16384.0f
#define LOST_MOST  4

/** A best way that takes this much longer than when it was found to be the best has others tried at once. */
#define CHANGED 1.5f

/** How much of a message's cost goes into the known one. A message that took far longer was disturbed: no more of it
 * counts than this multiple. */
#define WEIGHT    0.25f
#define DISTURBED 2.0f

/** Pieces keep two cores busy that might have had something else to do: they have to be faster by this much. Those of a message that
 * flows have no such handicap, since its sender goes on as soon as these have left. */
#define HANDICAP 1.15f

/** Messages until every way has had its tries. */
#define ALL_TRIES (DN_PACE_WAYS * DN_PACE_TRIES)

/** And until the first trial, where these were spared as the next shorter length is known. */
#define FIRST_LEFT 64

_Static_assert((size_t) 16 << 10 << 2 == DN_PACE_FLOW_MAX && 7 == DN_PACE_FLOW_ALL, "three classes flow");

static unsigned class_of(size_t len)
{
    unsigned class = 0;

    for (size_t most = (size_t) 16 << 10; len > most && class + 1 < DN_PACE_CLASSES; most *= 2) {
        class ++;
    }
    return class;
}

uint32_t dn_pace_flow_bit(size_t len)
{
    return DN_PACE_FLOW_MAX < len ? 0 : UINT32_C(1) << class_of(len);
}

/** Is a way known, and faster than another? */
static int dn_pace_beats(const struct dn_pace_class *class, enum dn_pace_way way, enum dn_pace_way other)
{
    const float *cost = class->cost;
    const float handicap = DN_PACE_PIECES == way && !class->flows ? HANDICAP : 1;

    return 0 != cost[way] && (0 == cost[other] || cost[way] * handicap < cost[other]);
}

/** The faster one of the ways in which the kernel copies. */
static enum dn_pace_way dn_pace_best_pull(const struct dn_pace_class *class)
{
    return dn_pace_beats(class, DN_PACE_ALONE, DN_PACE_PULL) ? DN_PACE_ALONE : DN_PACE_PULL;
}

/** The way to go; one by which nothing has come yet is not. */
static enum dn_pace_way dn_pace_best(const struct dn_pace_class *class)
{
    const enum dn_pace_way pull = dn_pace_best_pull(class);

    return dn_pace_beats(class, DN_PACE_PIECES, pull) ? DN_PACE_PIECES : pull;
}

/** The way that is tried after another one; it is known, and not the best. DN_PACE_WAYS: there is none. */
static enum dn_pace_way dn_pace_next_trial(const struct dn_pace_class *class, enum dn_pace_way best)
{
    for (unsigned i = 1; i <= DN_PACE_WAYS; i++) {
        const enum dn_pace_way way = (enum dn_pace_way)((class->trial + i) % DN_PACE_WAYS);

        if (best != way && 0 != class->cost[way]) {
            return way;
        }
    }
    return DN_PACE_WAYS;
}

/** Messages until the trial of a way is over: its loss is a small part of the time until then. */
static uint16_t dn_pace_until(const struct dn_pace_class *class, enum dn_pace_way best)
{
    const float ratio = class->cost[class->trial] / class->cost[best];
    const float spent =
        class->spent[class->trial] > DN_PACE_TRIES ? class->spent[class->trial] : DN_PACE_TRIES;
    const float left =
        LEAST_LEFT * (1 < ratio ? ratio : 1) * spent / DN_PACE_TRIES * (float) (1 << class->lost);

    return (uint16_t) (left < MOST_LEFT ? left : MOST_LEFT);
}

/** The way that is wanted now. Messages that might flow do so at first, without being asked to. */
static enum dn_pace_way dn_pace_wanted(const struct dn_pace_class *class, int might_flow)
{
    if (ALL_TRIES > class->tried) {
        const unsigned turn = class->tried / DN_PACE_TRIES;
        return (enum dn_pace_way)((might_flow ? turn + DN_PACE_PIECES : turn) % DN_PACE_WAYS);
    }
    return 0 != class->left && DN_PACE_TRIES >= class->left ? class->trial : dn_pace_best(class);
}

/** A message goes the way that is wanted: count it. */
static void dn_pace_step(struct dn_pace_class *class)
{
    if (ALL_TRIES > class->tried) {
        class->tried++;
        return;
    }
    if (0 == class->left) {
        const enum dn_pace_way best = dn_pace_best(class);
        const enum dn_pace_way trial = dn_pace_next_trial(class, best);
        if (DN_PACE_WAYS == trial) {
            return;
        }
        class->lost = best != class->best ? 0 : (uint8_t) (class->lost + (LOST_MOST > class->lost));
        class->best = best;
        class->cost_then = class->cost[best];
        class->trial = trial;
        class->left = dn_pace_until(class, best);
    }
    if (DN_PACE_TRIES == --class->left) {
        class->spent[class->trial] = 0;
    }
}

/** Messages of a trial, those included that go its way before their sender has heard that it is over. */
static void dn_pace_spend(struct dn_pace_class *class, enum dn_pace_way way)
{
    if (way == class->trial && UINT8_MAX > class->spent[way]) {
        class->spent[way]++;
    }
}

/** Has the best way changed so much that others may be better now? Those which were not tried for long are, soon. */
static void dn_pace_watch(struct dn_pace_class *class, enum dn_pace_way way)
{
    if (way == class->best && DN_PACE_TRIES<class->left &&class->cost[way]> CHANGED * class->cost_then) {
        class->cost_then = class->cost[way];
        class->lost = 0;
        class->left = DN_PACE_TRIES + 1;
    }
}

int dn_pace_wants_flow(const dn_pace_t *pace, size_t len)
{
    return DN_PACE_PIECES == dn_pace_wanted(&pace->class[class_of(len)], 1);
}

/** Messages of a length are new: begin with what is known of shorter ones. */
static void dn_pace_inherit(struct dn_pace_class *class, const struct dn_pace_class *shorter)
{
    if (ALL_TRIES == shorter->tried) {
        *class = *shorter;
        class->best = dn_pace_best(class);
        class->cost_then = class->cost[class->best];
        class->lost = 0;
        class->left = FIRST_LEFT;
    }
}

enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len,
                                enum dn_pace_begin begin)
{
    struct dn_pace_class *class = &pace->class[class_of(len)];

    if (DN_PACE_STREAM_AUTO != stream && DN_PACE_FLOWS != begin) {
        return DN_PACE_STREAM_NEVER == stream ? DN_PACE_PULL : DN_PACE_PIECES;
    }
    if (0 == class->tried && pace->class != class) {
        dn_pace_inherit(class, class - 1);
    }
    class->flows = DN_PACE_ANNOUNCED != begin;
    const enum dn_pace_way wanted = dn_pace_wanted(class, class->flows);
    enum dn_pace_way way = wanted;
    if (DN_PACE_FLOWS == begin) {
        way = DN_PACE_PIECES;
    } else if (DN_PACE_HELD == begin && DN_PACE_PIECES == wanted) {
        /* Its sender has not heard yet that it is to flow, or cannot let it. */
        way = dn_pace_best_pull(class);
    }
    dn_pace_spend(class, way);
    if (wanted == way) {
        dn_pace_step(class);
    }
    return way;
}

void dn_pace_skip(dn_pace_t *pace)
{
    pace->skipped = 1;
}

void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now)
{
    const uint64_t since = started > pace->last ? started : pace->last;
    const float cost = (float) (now > since ? now - since : 1) * 1024.0f / (float) len;
    struct dn_pace_class *class = &pace->class[class_of(len)];
    float *known = &class->cost[way];
    const int skipped = pace->skipped;

    pace->last = now;
    pace->skipped = 0;
    if (skipped) {
        /* When the one before has ended is not known. */
        return;
    }
    if (way != class->last || DN_PACE_SETTLES > class->settled) {
        class->settled = way != class->last ? 1 : (uint8_t) (class->settled + 1);
        class->last = way;
    } else if (DN_PACE_TRIES > class->known[way]) {
        /* Of messages that are under way at once one takes all the time, and the others none: the mean counts. */
        *known += (cost - *known) / (float) ++class->known[way];
    } else {
        *known += ((cost < DISTURBED * *known ? cost : DISTURBED * *known) - *known) * WEIGHT;
        dn_pace_watch(class, way);
    }
}
