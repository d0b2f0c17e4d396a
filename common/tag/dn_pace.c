/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_pace.h"

/** Messages between two trials of another way, where both take about as long; more the slower it is. */
#define LEAST_LEFT 256.0f
#define MOST_LEFT  8192.0f

/** How much of a message's cost goes into the known one. A message that took far longer was disturbed: no more of it
 * counts than this multiple. */
#define WEIGHT    0.25f
#define DISTURBED 2.0f

/** Pieces keep two cores busy that might have had something else to do: they have to be faster by this much. */
#define HANDICAP 1.15f

static struct dn_pace_class *class_of(dn_pace_t *pace, size_t len)
{
    unsigned class = 0;

    for (size_t most = (size_t) 16 << 10; len > most && class + 1 < DN_PACE_CLASSES; most *= 2) {
        class ++;
    }
    return &pace->class[class];
}

/** Is a way known, and faster than another? */
static int dn_pace_beats(const struct dn_pace_class *class, enum dn_pace_way way, enum dn_pace_way other)
{
    const float *cost = class->cost;
    const float handicap = DN_PACE_PIECES == way ? HANDICAP : 1;

    return 0 != cost[way] && (0 == cost[other] || cost[way] * handicap < cost[other]);
}

/** The way to go; one by which nothing has come yet is not. */
static enum dn_pace_way dn_pace_best(const struct dn_pace_class *class)
{
    const enum dn_pace_way pull =
        dn_pace_beats(class, DN_PACE_ALONE, DN_PACE_PULL) ? DN_PACE_ALONE : DN_PACE_PULL;

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
    const float left = LEAST_LEFT * (1 < ratio ? ratio : 1);

    return (uint16_t) (left < MOST_LEFT ? left : MOST_LEFT);
}

enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len)
{
    struct dn_pace_class *class = class_of(pace, len);

    if (DN_PACE_STREAM_AUTO != stream) {
        return DN_PACE_STREAM_NEVER == stream ? DN_PACE_PULL : DN_PACE_PIECES;
    }
    if (DN_PACE_WAYS * DN_PACE_TRIES > class->tried) {
        return (enum dn_pace_way)(class->tried++ / DN_PACE_TRIES);
    }
    const enum dn_pace_way best = dn_pace_best(class);
    if (0 == class->left) {
        const enum dn_pace_way trial = dn_pace_next_trial(class, best);
        if (DN_PACE_WAYS == trial) {
            return best;
        }
        class->trial = trial;
        class->left = dn_pace_until(class, best);
    }
    return DN_PACE_TRIES > --class->left ? class->trial : best;
}

void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now)
{
    const uint64_t since = started > pace->last ? started : pace->last;
    const float cost = (float) (now > since ? now - since : 1) * 1024.0f / (float) len;
    struct dn_pace_class *class = class_of(pace, len);
    float *known = &class->cost[way];

    if (!class->warm) {
        /* The first message has found memory that was never touched. */
        class->warm = 1;
    } else if (DN_PACE_TRIES > class->known[way]) {
        /* Of messages that are under way at once one takes all the time, and the others none: the mean counts. */
        *known += (cost - *known) / (float) ++class->known[way];
    } else {
        *known += ((cost < DISTURBED * *known ? cost : DISTURBED * *known) - *known) * WEIGHT;
    }
    pace->last = now;
}
