/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_pace.h"

/** Messages between two tries of the slower way, where both take about as long; more the slower it is. */
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

/** The way to go; one by which nothing has come yet is not. */
static enum dn_pace_way dn_pace_better(const struct dn_pace_class *class)
{
    const float *cost = class->cost;

    return 0 != cost[DN_PACE_PIECES]
                   && (0 == cost[DN_PACE_PULL] || cost[DN_PACE_PIECES] * HANDICAP < cost[DN_PACE_PULL])
               ? DN_PACE_PIECES
               : DN_PACE_PULL;
}

static enum dn_pace_way dn_pace_other(enum dn_pace_way way)
{
    return DN_PACE_PULL == way ? DN_PACE_PIECES : DN_PACE_PULL;
}

/** Messages until the other way's turn: its loss is a small part of the time until then. */
static uint16_t next_try(const struct dn_pace_class *class, enum dn_pace_way way)
{
    const float ratio = class->cost[dn_pace_other(way)] / class->cost[way];
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
        return DN_PACE_TRIES > class->tried++ ? DN_PACE_PULL : DN_PACE_PIECES;
    }
    const enum dn_pace_way way = dn_pace_better(class);
    if (0 == class->cost[DN_PACE_PULL] || 0 == class->cost[DN_PACE_PIECES]) {
        return way;
    }
    if (0 == class->left) {
        class->left = next_try(class, way);
    }
    return DN_PACE_TRIES > --class->left ? dn_pace_other(way) : way;
}

void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now)
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
