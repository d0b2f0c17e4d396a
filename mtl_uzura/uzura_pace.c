/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "uzura_pace.h"

/** Messages between two tries of the slower way, where both take about as long; more the slower it is. */
#define LEAST_LEFT 256.0f
#define MOST_LEFT  8192.0f

/** How much of a message's cost goes into the known one. A message that took far longer was disturbed: no more of it
 * counts than this multiple. */
#define WEIGHT    0.25f
#define DISTURBED 2.0f

/** Pieces keep two cores busy that might have had something else to do: they have to be faster by this much. */
#define HANDICAP 1.15f

static struct uzura_pace_class *class_of(uzura_pace_t *pace, size_t len)
{
    unsigned class = 0;

    for (size_t most = (size_t) 16 << 10; len > most && class + 1 < UZURA_PACE_CLASSES; most *= 2) {
        class ++;
    }
    return &pace->class[class];
}

/** The way to go; one by which nothing has come yet is not. */
static enum uzura_way better(const struct uzura_pace_class *class)
{
    const float *cost = class->cost;

    return 0 != cost[UZURA_PIECES]
                   && (0 == cost[UZURA_PULL] || cost[UZURA_PIECES] * HANDICAP < cost[UZURA_PULL])
               ? UZURA_PIECES
               : UZURA_PULL;
}

static enum uzura_way other(enum uzura_way way)
{
    return UZURA_PULL == way ? UZURA_PIECES : UZURA_PULL;
}

/** Messages until the other way's turn: its loss is a small part of the time until then. */
static uint16_t next_try(const struct uzura_pace_class *class, enum uzura_way way)
{
    const float ratio = class->cost[other(way)] / class->cost[way];
    const float left = LEAST_LEFT * (1 < ratio ? ratio : 1);

    return (uint16_t) (left < MOST_LEFT ? left : MOST_LEFT);
}

enum uzura_way uzura_pace_choose(uzura_pace_t *pace, enum uzura_stream stream, size_t len)
{
    struct uzura_pace_class *class = class_of(pace, len);

    if (UZURA_STREAM_AUTO != stream) {
        return UZURA_STREAM_NEVER == stream ? UZURA_PULL : UZURA_PIECES;
    }
    if (UZURA_WAYS * UZURA_PACE_TRIES > class->tried) {
        return UZURA_PACE_TRIES > class->tried++ ? UZURA_PULL : UZURA_PIECES;
    }
    const enum uzura_way way = better(class);
    if (0 == class->cost[UZURA_PULL] || 0 == class->cost[UZURA_PIECES]) {
        return way;
    }
    if (0 == class->left) {
        class->left = next_try(class, way);
    }
    return UZURA_PACE_TRIES > --class->left ? other(way) : way;
}

void uzura_pace_learn(uzura_pace_t *pace, enum uzura_way way, size_t len, uint64_t started, uint64_t now)
{
    const uint64_t since = started > pace->last ? started : pace->last;
    const float cost = (float) (now > since ? now - since : 1) * 1024.0f / (float) len;
    float *known = &class_of(pace, len)->cost[way];

    if (0 == *known) {
        *known = cost;
    } else {
        *known += ((cost < DISTURBED * *known ? cost : DISTURBED * *known) - *known) * WEIGHT;
    }
    pace->last = now;
}
