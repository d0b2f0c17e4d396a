/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_pace.h"

#include <string.h>

/** Messages between two trials of another way, where both take about as long; more the slower it is, the more messages a trial takes,
 * and twice as many each time that the best way has stayed the same, up to LOST_MOST times. */
#define LEAST_LEFT 512.0f
#define MOST_LEFT  65536.0f
#define LOST_MOST  4

/** Messages until a trial that comes soon: after first tries, or of a length that is new where shorter ones are known. Twice as many each
 * time, up to DOUBTS_MOST times, where PIECES that are the best no longer are tried again. */
#define FIRST_LEFT  64u
#define DOUBTS_MOST 8

/** A best way that takes this much longer than when it was chosen has the next trial begin at once, if that way is known to take less
 * than this many times as much. */
#define CHANGED    2.5f
#define WORTH_LOOK 4.0f

/** Messages in a row that were announced though they were to flow, after which their sender is told again, and another way is tried. A
 * sender of a window has announced all of it before it hears. A sender of a longer window is taken for a sender that cannot. */
#define UNMET 192

/** Messages beyond those of a trial itself that count as spent for it: a sender of a window hears late that it is over. */
#define OPEN UNMET

/** How much of a message's cost goes into the known one. A message that took far longer was disturbed: no more of it
 * counts than this multiple. */
#define WEIGHT    0.25f
#define DISTURBED 2.0f

/** The same in a trial, of the best way's cost; and the messages that decide it. */
#define DISTURBED_TRIAL 16.0f
#define ENOUGH          (DN_PACE_TRIES - DN_PACE_SETTLES)

/** Pieces keep two cores busy that might have had something else to do: they have to be faster by this much. Those of a message that
 * flows have no such handicap, since its sender goes on as soon as these have left. */
#define HANDICAP 1.15f

/** Pieces that do not count at least (DN_PACE_COLD_BYTES). */
#define LEAST_COLD 4

/** Pieces that are tried at first where the cores are far. */
#define FAR_TRIES 2

/** Where pieces are known to take this many times as long as the best way, a trial of them is short: they go through cold memory, which
 * takes up to COLD times as long. Where that might be all, the next trial is whole. */
#define HOPELESS 2.5f
#define COLD     4.0f

/** A trial of pieces is over early where these take so many times as long as the best way, though half of the bytes that are to warm
 * their memory have gone: some laps, after which pieces that will be the best are seen to be. */
#define NO_WARMER 1.25f

enum dn_pace_place { DN_PACE_PLACE_UNKNOWN, DN_PACE_PLACE_NEAR, DN_PACE_PLACE_FAR };

_Static_assert(UINT8_MAX > UNMET, "struct dn_pace_class counts them in 8 bits");
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

/** Messages of a length that warm what they go through, if they go in pieces. */
static unsigned dn_pace_cold(size_t len)
{
    const unsigned cold = (unsigned) (DN_PACE_COLD_BYTES >> 14 >> class_of(len));

    return LEAST_COLD > cold ? LEAST_COLD : cold;
}

unsigned dn_pace_tries(enum dn_pace_way way, size_t len)
{
    return DN_PACE_TRIES + (DN_PACE_PIECES == way ? dn_pace_cold(len) : 0);
}

/** What is known of the two cores. */
static enum dn_pace_place dn_pace_place(const dn_pace_t *pace)
{
    if (dn_pace_looks(pace)) {
        return DN_PACE_PLACE_UNKNOWN;
    }
    return DN_PACE_NEAR_NS < pace->line ? DN_PACE_PLACE_FAR : DN_PACE_PLACE_NEAR;
}

/** First pieces of a length whose time does not count. Where the cores are far all counts: the last of the few tries has to be timed. */
static unsigned dn_pace_first_cold(const dn_pace_t *pace, size_t len)
{
    switch (dn_pace_place(pace)) {
    case DN_PACE_PLACE_NEAR:
        return dn_pace_cold(len);
    case DN_PACE_PLACE_FAR:
        return 0;
    default:
        return LEAST_COLD;
    }
}

unsigned dn_pace_first_tries(const dn_pace_t *pace, enum dn_pace_way way, size_t len)
{
    if (DN_PACE_PIECES != way) {
        return DN_PACE_TRIES;
    }
    return DN_PACE_PLACE_FAR == dn_pace_place(pace) ? FAR_TRIES
                                                    : DN_PACE_TRIES + dn_pace_first_cold(pace, len);
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

/** Messages until the trial of a way begins: its loss is a small part of the time until then. */
static uint32_t dn_pace_until(const struct dn_pace_class *class)
{
    const unsigned spent =
        class->tries < class->spent[class->trial] ? class->spent[class->trial] : class->tries;
    const float ratio = class->cost[class->trial] / class->cost[class->best];
    const float left =
        LEAST_LEFT * (1 < ratio ? ratio : 1) * ((float) spent / DN_PACE_TRIES) * (float) (1 << class->lost);

    return (uint32_t) (left < MOST_LEFT ? left : MOST_LEFT);
}

/** The way that is wanted now. Messages that might flow do so at first, without being asked to. */
static enum dn_pace_way dn_pace_wanted(const struct dn_pace_class *class, int might_flow)
{
    if (DN_PACE_WAYS > class->turn) {
        return (enum dn_pace_way)((might_flow ? class->turn + DN_PACE_PIECES : class->turn) % DN_PACE_WAYS);
    }
    return 0 != class->left && class->tries >= class->left ? class->trial : dn_pace_best(class);
}

/** Messages of a length by which a way is tried again; the best one has been chosen. */
static uint16_t dn_pace_more_tries(const struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    const int hopeless = class->cost[way] > HOPELESS * class->cost[class->best];

    return (uint16_t) (hopeless ? DN_PACE_TRIES : dn_pace_tries(way, len));
}

/** Trials that follow each other soon, at most so many: none where pieces have no hope. */
static uint8_t dn_pace_haste(const dn_pace_t *pace, unsigned most)
{
    return (uint8_t) (DN_PACE_PLACE_FAR == dn_pace_place(pace) ? 0 : most);
}

/** The next way has its first tries. After those of all, PIECES are the first that are tried again, soon, and by warm memory. */
static void dn_pace_next_turn(const dn_pace_t *pace, struct dn_pace_class *class)
{
    class->turn++;
    class->tried = 0;
    class->trial = DN_PACE_ALONE;
    class->hasty = dn_pace_haste(pace, 1);
}

/** Choose the way that is tried next. @return 0: there is none. */
static int dn_pace_plan(struct dn_pace_class *class, size_t len)
{
    const enum dn_pace_way best = dn_pace_best(class);
    const enum dn_pace_way trial = dn_pace_next_trial(class, best);

    if (DN_PACE_WAYS == trial) {
        return 0;
    }
    if (0 == class->cost_then || best != class->best) {
        class->lost = 0;
    } else if (LOST_MOST > class->lost) {
        class->lost++;
    }
    class->doubts -= best == class->best && 0 != class->doubts;
    class->open = 0;
    if (0 != class->cost_then && DN_PACE_PIECES != class->trial) {
        /* The trial that is over has let the memory of pieces become cold. */
        class->uncounted = (uint16_t) dn_pace_cold(len);
    }
    class->best = best;
    class->cost_then = class->cost[best];
    class->trial = trial;
    class->tries = dn_pace_more_tries(class, trial, len);
    class->left = (uint32_t) (class->tries + (0 != class->hasty ? FIRST_LEFT : dn_pace_until(class)));
    class->hasty -= 0 != class->hasty;
    return 1;
}

/** A message goes the way that is wanted: count it. */
static void dn_pace_step(const dn_pace_t *pace, struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    if (DN_PACE_WAYS > class->turn) {
        if (dn_pace_first_tries(pace, way, len) <= ++class->tried) {
            dn_pace_next_turn(pace, class);
        }
    } else if ((0 != class->left || dn_pace_plan(class, len)) && class->tries == --class->left) {
        class->spent[class->trial] = 0;
        class->open = (uint16_t) (class->tries + OPEN);
        if (DN_PACE_PIECES == class->trial) {
            class->uncounted = (uint16_t) (class->tries - DN_PACE_TRIES);
        }
        class->timed = 0;
        class->sum = 0;
    }
}

/** Messages of a trial, with those that go its way before their sender has heard that it is over. */
static void dn_pace_spend(struct dn_pace_class *class, enum dn_pace_way way)
{
    if (0 != class->open && way == class->trial) {
        class->open--;
        class->spent[way]++;
    }
}

/** What is known of a way after a trial of it, by the mean of its messages. */
static float dn_pace_judged(const struct dn_pace_class *class, enum dn_pace_way way, float mean)
{
    const float best = class->cost[class->best];
    const int was_short = DN_PACE_PIECES == way && DN_PACE_TRIES == class->tries;

    return was_short && mean > HOPELESS * best && mean < HOPELESS * COLD * best ? HOPELESS * best : mean;
}

/** A message of a trial has ended: add its cost. @return whether enough have. */
static int dn_pace_sum(struct dn_pace_class *class, float cost)
{
    const float most = DISTURBED_TRIAL * class->cost[class->best];

    class->sum += cost < most ? cost : most;
    return ENOUGH == ++class->timed;
}

/** A message of a trial has ended. Once enough have, their mean is the cost of the way. @return 0: it is none, or there were enough. */
static int dn_pace_judge(struct dn_pace_class *class, enum dn_pace_way way, float cost)
{
    if (0 == class->open || way != class->trial || ENOUGH <= class->timed) {
        return 0;
    }
    if (dn_pace_sum(class, cost)) {
        class->cost[way] = dn_pace_judged(class, way, class->sum / ENOUGH);
    }
    return 1;
}

/** Messages of a trial whose pieces are still to warm their memory: a few of them show whether there is hope. Of longer messages the trial
 * is short anyhow. */
static void dn_pace_foresee(struct dn_pace_class *class, enum dn_pace_way way, size_t len, float cost)
{
    const uint32_t cold = class->tries - DN_PACE_TRIES;

    if (0 == dn_pace_flow_bit(len) || 0 == class->open || way != class->trial
        || class->uncounted > cold - cold / 2 || !dn_pace_sum(class, cost)) {
        return;
    }
    const float mean = class->sum / ENOUGH;
    if (mean > NO_WARMER * class->cost[class->best]) {
        class->cost[way] = mean;
        class->left = 0;
        class->open = 0;
    }
    class->sum = 0;
    class->timed = 0;
}

/** PIECES are the best no longer: try them again soon. They may have been disturbed, and the next way's cost stays as it is while nothing
 * goes that way. */
static void dn_pace_doubt(struct dn_pace_class *class, enum dn_pace_way best, size_t len)
{
    const uint32_t due = class->left - class->tries;
    const uint32_t soon = FIRST_LEFT << class->doubts;

    class->best = best;
    class->cost_then = class->cost[best];
    class->trial = DN_PACE_PIECES;
    class->tries = (uint16_t) dn_pace_tries(DN_PACE_PIECES, len);
    class->left = class->tries + (due < soon ? due : soon);
    class->doubts += DOUBTS_MOST > class->doubts;
}

/** Has the best way become so slow that another one may be better? */
static void dn_pace_watch(struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    const float cost = class->cost[way];
    const int waits = way == class->best && class->tries < class->left;
    const enum dn_pace_way best = dn_pace_best(class);

    if (waits && DN_PACE_PIECES == way && best != way) {
        dn_pace_doubt(class, best, len);
    } else if (waits && cost > CHANGED * class->cost_then && class->cost[class->trial] < WORTH_LOOK * cost) {
        class->cost_then = cost;
        class->lost = 0;
        class->tries = dn_pace_more_tries(class, class->trial, len);
        class->left = class->tries + 1u;
        class->hasty = DN_PACE_WAYS - 1;
    }
}

int dn_pace_wants_flow(const dn_pace_t *pace, size_t len)
{
    return DN_PACE_PIECES == dn_pace_wanted(&pace->class[class_of(len)], 1);
}

/** Messages of a length are new: begin with what is known of shorter ones. */
static void dn_pace_meet(dn_pace_t *pace, size_t len)
{
    struct dn_pace_class *class = &pace->class[class_of(len)];
    const struct dn_pace_class *shorter = pace->class == class ? NULL : class - 1;

    class->met = 1;
    if (NULL != shorter && DN_PACE_WAYS == shorter->turn) {
        memcpy(class->cost, shorter->cost, sizeof(class->cost));
        memcpy(class->known, shorter->known, sizeof(class->known));
        class->turn = DN_PACE_WAYS;
        class->hasty = dn_pace_haste(pace, DN_PACE_WAYS - 1);
    } else {
        class->uncounted = (uint16_t) dn_pace_first_cold(pace, len);
    }
}

void dn_pace_look(dn_pace_t *pace, uint64_t ns)
{
    const uint32_t line = UINT32_MAX < ns ? UINT32_MAX : (uint32_t) ns;

    pace->line = 0 == pace->looks || line < pace->line ? line : pace->line;
    if (DN_PACE_LOOKS > ++pace->looks) {
        return;
    }
    for (unsigned i = 0; i < DN_PACE_CLASSES; i++) {
        struct dn_pace_class *class = &pace->class[i];
        const unsigned after_pieces = class->flows ? 1 : DN_PACE_WAYS;
        if (class->met && after_pieces > class->turn) {
            class->uncounted = (uint16_t) dn_pace_first_cold(pace, (size_t) 1 << (14 + i));
        }
    }
}

int dn_pace_is_unmet(const dn_pace_t *pace, size_t len)
{
    return UNMET == pace->class[class_of(len)].unmet;
}

/** A message was announced, though messages are to flow: its sender has not heard yet, or cannot let it. After so many in a row the tries
 * or the trial of PIECES are over without them. Of the kernel's ways the one that is less known goes first. */
static enum dn_pace_way dn_pace_unmet(const dn_pace_t *pace, struct dn_pace_class *class)
{
    const enum dn_pace_way best = dn_pace_best_pull(class);
    const enum dn_pace_way other = DN_PACE_PULL == best ? DN_PACE_ALONE : DN_PACE_PULL;
    const enum dn_pace_way way = ENOUGH > class->known[other] ? other : best;

    class->unmet = UNMET == class->unmet ? 1 : (uint8_t) (class->unmet + 1);
    if (UNMET == class->unmet && DN_PACE_WAYS > class->turn) {
        dn_pace_next_turn(pace, class);
    } else if (UNMET == class->unmet && class->tries >= class->left) {
        class->left = 0;
    }
    dn_pace_spend(class, way);
    return way;
}

enum dn_pace_way dn_pace_choose(dn_pace_t *pace, enum dn_pace_stream stream, size_t len,
                                enum dn_pace_begin begin)
{
    struct dn_pace_class *class = &pace->class[class_of(len)];
    const int flows = DN_PACE_FLOWS == begin || DN_PACE_UNTIMED == begin;

    if (DN_PACE_STREAM_AUTO != stream && !flows) {
        return DN_PACE_STREAM_NEVER == stream ? DN_PACE_PULL : DN_PACE_PIECES;
    }
    class->flows = DN_PACE_ANNOUNCED != begin;
    if (!class->met) {
        dn_pace_meet(pace, len);
    }
    const enum dn_pace_way wanted = dn_pace_wanted(class, class->flows);
    if (DN_PACE_HELD == begin && DN_PACE_PIECES == wanted) {
        return dn_pace_unmet(pace, class);
    }
    class->unmet = 0;
    const enum dn_pace_way way = flows ? DN_PACE_PIECES : wanted;
    dn_pace_spend(class, way);
    /* Of those that warm their memory no time is wanted. */
    if (wanted == way && (DN_PACE_UNTIMED != begin || 0 != class->uncounted)) {
        dn_pace_step(pace, class, way, len);
    }
    if (DN_PACE_PIECES == way && 0 != class->uncounted && 0 == --class->uncounted && way == class->trial) {
        class->sum = 0;
        class->timed = 0;
    }
    return way;
}

void dn_pace_skip(dn_pace_t *pace)
{
    pace->skipped = 1;
}

void dn_pace_pass(dn_pace_t *pace, uint64_t now)
{
    pace->last = now;
    pace->skipped = 0;
}

void dn_pace_learn(dn_pace_t *pace, enum dn_pace_way way, size_t len, uint64_t started, uint64_t now)
{
    const uint64_t since = started > pace->last ? started : pace->last;
    const float cost = (float) (now > since ? now - since : 1) * 1024.0f / (float) len;
    struct dn_pace_class *class = &pace->class[class_of(len)];
    float *known = &class->cost[way];
    const int settles = way != class->last || DN_PACE_SETTLES > class->settled;
    const int cold = DN_PACE_PIECES == way && 0 != class->uncounted;

    if (settles) {
        class->settled = way != class->last ? 1 : (uint8_t) (class->settled + 1);
        class->last = way;
    }
    if (settles || pace->skipped || cold) {
        /* It took longer than others will, or when the one before has ended is not known: a first guess, for want of any better. */
        *known = 0 == *known ? cost : *known;
        if (!settles && !pace->skipped) {
            dn_pace_foresee(class, way, len, cost);
        }
    } else if (dn_pace_judge(class, way, cost)) {
        /* Its mean counts, once it is there. */
    } else if (DN_PACE_TRIES > class->known[way]) {
        /* Of messages that are under way at once one takes all the time, and the others none: the mean counts. */
        *known += (cost - *known) / (float) ++class->known[way];
    } else {
        *known += ((cost < DISTURBED * *known ? cost : DISTURBED * *known) - *known) * WEIGHT;
        dn_pace_watch(class, way, len);
    }
    dn_pace_pass(pace, now);
}
