/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_pace.h"

#include <string.h>

/** Messages between two trials of another way, where that way takes about as long as the best way. There are more between them the
 * slower the other way is, and the more messages a trial takes; and twice as many each time that the best way has stayed the same, up to
 * LOST_MOST times. */
#define LEAST_LEFT 512.0f
#define MOST_LEFT  65536.0f
#define LOST_MOST  4

/** Messages until a trial that comes soon: after the first tries, or at a new length where shorter lengths are known. Where PIECES are no
 * longer the best, their next trial comes soon, too: after twice as many messages each time, up to DOUBTS_MOST times. */
#define FIRST_LEFT 64u
/** Messages of a new length until a trial of the kernel's ways, where the cores are far: mostly one of them is the best there. */
#define FAR_LEFT    8u
#define DOUBTS_MOST 8

/** The next trial begins at once if the best way takes CHANGED times as long as when it was chosen, and the way of the trial is known to
 * take less than WORTH_LOOK times as long as the best way takes now. */
#define CHANGED    2.5f
#define WORTH_LOOK 4.0f

/** Messages in a row that were announced though they were to flow, after which their sender is told again, and another way is tried. A
 * sender of a window has announced the whole window before it reads that messages are to flow. A sender of a longer window is taken for
 * a sender that cannot let messages flow. */
#define UNMET 192

/** Messages after the end of a trial that still count as spent for the trial: a sender of a window learns late that the trial is over. */
#define OPEN UNMET

/** The weight of a message's cost in the known cost. A message that took far longer was disturbed: at most DISTURBED times
 * the known cost counts. */
#define WEIGHT    0.25f
#define DISTURBED 2.0f

/** In a trial at most DISTURBED_TRIAL times the best way's cost counts of a message. ENOUGH messages decide the trial. */
#define DISTURBED_TRIAL 16.0f
#define ENOUGH          (DN_PACE_TRIES - DN_PACE_SETTLES)

/** Pieces keep two cores busy that might do other work, so pieces have to be faster by this factor. The pieces of a message that flows
 * have no such handicap, since the sender goes on as soon as the pieces have left. */
#define HANDICAP 1.15f

/** Least number of messages in pieces whose time does not count (DN_PACE_COLD_BYTES). */
#define LEAST_COLD 4

/** Messages by which pieces are tried at first where the cores are far. */
#define FAR_TRIES 2

/** Where a way is known to take HOPELESS times as long as the best way, its trial is short. Pieces of a short trial go through cold
 * memory, and take up to COLD times as long. Where cold memory alone may explain their cost, the next trial is a whole one. */
#define HOPELESS 2.5f
#define COLD     4.0f

/** A trial of pieces ends early where pieces take this many times as long as the best way after half of the messages that are to warm
 * their memory. These are some laps of the memory. Pieces that will be the best are fast enough by then. */
#define NO_WARMER 1.25f

enum dn_pace_place { DN_PACE_PLACE_UNKNOWN, DN_PACE_PLACE_NEAR, DN_PACE_PLACE_FAR };

_Static_assert(UINT8_MAX > UNMET, "struct dn_pace_class counts them in 8 bits");
_Static_assert((size_t) 16 << 10 << (DN_PACE_FLOWING - 1) == DN_PACE_FLOW_MAX
                   && (1u << DN_PACE_FLOWING) - 1 == DN_PACE_FLOW_ALL,
               "the first classes flow");

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

/** Are messages of @p len bytes, at most DN_PACE_FLOW_MAX, taken for such that cross? */
static int dn_pace_crosses(const dn_pace_t *pace, size_t len)
{
    return pace->crosses[class_of(len)];
}

/** A message has come that may flow: do such messages cross? */
static void dn_pace_heed_crossing(dn_pace_t *pace, size_t len, int crosses)
{
    const unsigned class = class_of(len);
    const int change = crosses ? DN_PACE_CROSSED : pace->crosses[class] ? -1 : -DN_PACE_UNCROSSED;
    const int sum = pace->crossed[class] + change;

    pace->crossed[class] = (uint8_t) (0 > sum ? 0 : DN_PACE_CROSSES_MOST < sum ? DN_PACE_CROSSES_MOST : sum);
    if (0 == pace->crossed[class] || DN_PACE_CROSSES_MOST == pace->crossed[class]) {
        pace->crosses[class] = 0 != pace->crossed[class];
    }
}

/** Messages of @p len bytes that warm the memory of pieces, if they go in pieces. */
static unsigned dn_pace_cold(size_t len)
{
    const unsigned cold = (unsigned) (DN_PACE_COLD_BYTES >> 14 >> class_of(len));

    return LEAST_COLD > cold ? LEAST_COLD : cold;
}

unsigned dn_pace_tries(enum dn_pace_way way, size_t len)
{
    return DN_PACE_TRIES + (DN_PACE_PIECES == way ? dn_pace_cold(len) : 0);
}

/** The place of the two cores, as far as it is known. */
static enum dn_pace_place dn_pace_place(const dn_pace_t *pace)
{
    if (dn_pace_looks(pace)) {
        return DN_PACE_PLACE_UNKNOWN;
    }
    return DN_PACE_NEAR_NS < pace->line ? DN_PACE_PLACE_FAR : DN_PACE_PLACE_NEAR;
}

/** First messages in pieces whose time does not count. Where the cores are far, all count: the last of the few tries has to be timed. */
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

/** The better one of the ways in which the kernel copies. */
static enum dn_pace_way dn_pace_best_pull(const struct dn_pace_class *class)
{
    const float pull = class->cost[DN_PACE_PULL], alone = class->cost[DN_PACE_ALONE];

    return 0 != alone && (0 == pull || alone < pull) ? DN_PACE_ALONE : DN_PACE_PULL;
}

/** The best way of the ways by which messages have come. */
static enum dn_pace_way dn_pace_best(const struct dn_pace_class *class)
{
    const enum dn_pace_way pull = dn_pace_best_pull(class);

    return dn_pace_beats(class, DN_PACE_PIECES, pull) ? DN_PACE_PIECES : pull;
}

/** The way of the next trial: a way whose cost is known, and not the best way. DN_PACE_WAYS: there is none. @param[in] most  The last way that
 * may be tried. */
static enum dn_pace_way dn_pace_next_trial(const struct dn_pace_class *class, enum dn_pace_way best,
                                           enum dn_pace_way most)
{
    for (unsigned i = 1; i <= DN_PACE_WAYS; i++) {
        const enum dn_pace_way way = (enum dn_pace_way)((class->trial + i) % DN_PACE_WAYS);

        if (most >= way && best != way && 0 != class->cost[way]) {
            return way;
        }
    }
    return DN_PACE_WAYS;
}

/** Messages until a trial begins: so many that the time lost by the trial is a small part of theirs. */
static uint32_t dn_pace_until(const struct dn_pace_class *class)
{
    const unsigned spent =
        class->tries < class->spent[class->trial] ? class->spent[class->trial] : class->tries;
    const float ratio = class->cost[class->trial] / class->cost[class->best];
    const float left =
        LEAST_LEFT * (1 < ratio ? ratio : 1) * ((float) spent / DN_PACE_TRIES) * (float) (1 << class->lost);

    return (uint32_t) (left < MOST_LEFT ? left : MOST_LEFT);
}

/** The way whose first tries are made. The first messages that may flow do so: the sender needs no word from the receiver. */
static enum dn_pace_way dn_pace_turn_way(const struct dn_pace_class *class, int might_flow)
{
    return (enum dn_pace_way)((might_flow ? class->turn + DN_PACE_PIECES : class->turn) % DN_PACE_WAYS);
}

/** The way that is wanted now. */
static enum dn_pace_way dn_pace_wanted(const struct dn_pace_class *class, int might_flow)
{
    if (DN_PACE_WAYS > class->turn) {
        return dn_pace_turn_way(class, might_flow);
    }
    return 0 != class->left && class->tries >= class->left ? class->trial : dn_pace_best(class);
}

/** Messages of @p len bytes by which a way is tried again. The best way has been chosen before. */
static uint16_t dn_pace_more_tries(const struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    const int hopeless = class->cost[way] > HOPELESS * class->cost[class->best];

    return (uint16_t) (hopeless ? DN_PACE_TRIES : dn_pace_tries(way, len));
}

/** Trials that are to come soon: @p most, or none where the cores are far, as pieces have no hope there. */
static uint8_t dn_pace_haste(const dn_pace_t *pace, unsigned most)
{
    return (uint8_t) (DN_PACE_PLACE_FAR == dn_pace_place(pace) ? 0 : most);
}

/** Trials of the kernel's ways that are to come soon where the cores are far: at a new length the known costs are those of shorter messages.
 * There are none where pieces flow and are the best: a trial of the kernel ends the lead that the sender has. */
static uint8_t dn_pace_kernel(const dn_pace_t *pace, const struct dn_pace_class *class)
{
    if (DN_PACE_PLACE_FAR != dn_pace_place(pace)) {
        return 0;
    }
    if (DN_PACE_PIECES != dn_pace_best(class)) {
        return 1;
    }
    return class->flows ? 0 : 2;
}

/** Go on to the first tries of the next way. After the first tries of all ways, PIECES are tried again first: soon, and until their
 * memory is warm. */
static void dn_pace_next_turn(const dn_pace_t *pace, struct dn_pace_class *class)
{
    class->turn++;
    class->tried = 0;
    class->trial = DN_PACE_ALONE;
    class->hasty = dn_pace_haste(pace, 1);
}

/** Messages until a trial begins. */
static uint32_t dn_pace_wait(const struct dn_pace_class *class)
{
    if (0 != class->kernel) {
        return FAR_LEFT;
    }
    return 0 != class->hasty ? FIRST_LEFT : dn_pace_until(class);
}

/** Choose the way that is tried next. @return 0: there is none. */
static int dn_pace_plan(struct dn_pace_class *class, size_t len)
{
    const enum dn_pace_way best = dn_pace_best(class);
    enum dn_pace_way trial = DN_PACE_WAYS;

    if (0 != class->kernel) {
        trial = dn_pace_next_trial(class, best, DN_PACE_ALONE);
        class->kernel = DN_PACE_WAYS == trial ? 0 : class->kernel;
    }
    if (DN_PACE_WAYS == trial) {
        trial = dn_pace_next_trial(class, best, DN_PACE_PIECES);
    }
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
    class->left = class->tries + dn_pace_wait(class);
    class->hasty -= 0 != class->hasty;
    return 1;
}

/** Count a message that goes the wanted way. */
static void dn_pace_step(const dn_pace_t *pace, struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    if (DN_PACE_WAYS > class->turn) {
        if (dn_pace_first_tries(pace, way, len) <= ++class->tried) {
            dn_pace_next_turn(pace, class);
        }
    } else if ((0 != class->left || dn_pace_plan(class, len)) && class->tries == --class->left) {
        class->kernel -= 0 != class->kernel;
        class->spent[class->trial] = 0;
        class->open = (uint16_t) (class->tries + OPEN);
        if (DN_PACE_PIECES == class->trial) {
            class->uncounted = (uint16_t) (class->tries - DN_PACE_TRIES);
        }
        class->timed = 0;
        class->sum = 0;
    }
}

/** Count a message that goes the way of a trial, also after the trial's end: the sender may not know yet that the trial is over. */
static void dn_pace_spend(struct dn_pace_class *class, enum dn_pace_way way)
{
    if (0 != class->open && way == class->trial) {
        class->open--;
        class->spent[way]++;
    }
}

/** The cost of a way after its trial. @param[in] mean  The mean cost of the trial's messages. */
static float dn_pace_judged(const struct dn_pace_class *class, enum dn_pace_way way, float mean)
{
    const float best = class->cost[class->best];
    const int was_short = DN_PACE_PIECES == way && DN_PACE_TRIES == class->tries;

    return was_short && mean > HOPELESS * best && mean < HOPELESS * COLD * best ? HOPELESS * best : mean;
}

/** A message of a trial has ended: add its cost. @return whether enough messages have ended. */
static int dn_pace_sum(struct dn_pace_class *class, float cost)
{
    const float most = DISTURBED_TRIAL * class->cost[class->best];

    class->sum += cost < most ? cost : most;
    return ENOUGH == ++class->timed;
}

/** A message has ended. If it belongs to a trial, add its cost; the mean of enough messages is the cost of the way. @return 0: it
 * belongs to no trial, or enough messages had ended before. */
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

/** A message of a trial has ended whose pieces still warm their memory. A few such messages show whether there is hope for pieces. A
 * trial of messages that are too long to flow is short in any case. */
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

/** PIECES are no longer the best: try them again soon. They may have been disturbed, and the known cost of the way that is best now
 * may be old, as no message went that way. */
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

/** Has the best way become so slow that another way may be better? Then try another way soon. */
static void dn_pace_watch(struct dn_pace_class *class, enum dn_pace_way way, size_t len)
{
    const float cost = class->cost[way];
    const int waits = way == class->best && class->tries < class->left;
    const enum dn_pace_way best = dn_pace_best(class);

    if (waits && DN_PACE_PIECES == way && best != way && 0 != class->kernel) {
        /* The kernel's trial may be of the way that is the best now. */
        class->left = 0;
    } else if (waits && DN_PACE_PIECES == way && best != way) {
        dn_pace_doubt(class, best, len);
    } else if (waits && cost > CHANGED * class->cost_then && class->cost[class->trial] < WORTH_LOOK * cost) {
        class->cost_then = cost;
        class->lost = 0;
        class->tries = dn_pace_more_tries(class, class->trial, len);
        class->left = class->tries + 1u;
        class->hasty = DN_PACE_WAYS - 1;
    }
}

int dn_pace_wants_flow(dn_pace_t *pace, size_t len)
{
    if (pace->crowded) {
        return DN_PACE_CROWD_FLOW >= len;
    }
    return !dn_pace_crosses(pace, len) && DN_PACE_PIECES == dn_pace_wanted(&pace->class[class_of(len)], 1);
}

/** The first message of a length has come: begin with the known costs of the next shorter lengths. */
static void dn_pace_meet(dn_pace_t *pace, size_t len)
{
    struct dn_pace_class *class = &pace->class[class_of(len)];
    const struct dn_pace_class *shorter = 0 == class_of(len) ? NULL : class - 1;

    class->met = 1;
    if (NULL != shorter && DN_PACE_WAYS == shorter->turn) {
        memcpy(class->cost, shorter->cost, sizeof(class->cost));
        memcpy(class->known, shorter->known, sizeof(class->known));
        class->turn = DN_PACE_WAYS;
        class->hasty = dn_pace_haste(pace, DN_PACE_WAYS - 1);
        class->kernel = dn_pace_kernel(pace, class);
    } else {
        class->uncounted = (uint16_t) dn_pace_first_cold(pace, len);
    }
}

/** The place of the two cores is known now: how many of the first pieces of a class are not to count? */
static void dn_pace_place_known(const dn_pace_t *pace, struct dn_pace_class *class, unsigned number)
{
    const unsigned after_pieces = class->flows ? 1 : DN_PACE_WAYS;

    if (class->met && after_pieces > class->turn) {
        class->uncounted = (uint16_t) dn_pace_first_cold(pace, (size_t) 1 << (14 + number));
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
        dn_pace_place_known(pace, &pace->class[i], i);
    }
}

int dn_pace_is_unmet(dn_pace_t *pace, size_t len)
{
    return UNMET == pace->class[class_of(len)].unmet;
}

/** A message was announced, though messages are to flow: its sender has not read the wish yet, or cannot let the message flow. After
 * UNMET such messages in a row, the first tries or the trial of PIECES end without messages by PIECES. @return one of the kernel's two
 * ways: the slower way while too little is known of it. */
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
                                enum dn_pace_begin begin, int crosses)
{
    const int flows = DN_PACE_FLOWS == begin || DN_PACE_UNTIMED == begin;
    const int might_flow = DN_PACE_ANNOUNCED != begin;

    if (DN_PACE_STREAM_ALWAYS == stream && !flows) {
        return DN_PACE_PIECES;
    }
    if (DN_PACE_STREAM_NEVER == stream && !flows) {
        return crosses ? DN_PACE_BY_RULE : DN_PACE_PULL;
    }
    if (might_flow) {
        dn_pace_heed_crossing(pace, len, crosses);
    }
    struct dn_pace_class *class = &pace->class[class_of(len)];
    if (pace->crowded || (might_flow ? dn_pace_crosses(pace, len) : crosses)) {
        class->unmet = 0;
        if (might_flow || pace->crowded) {
            /* The next message that is judged finds other memory in the caches. */
            class->settled = 0;
        }
        return DN_PACE_BY_RULE;
    }
    class->flows = (uint8_t) might_flow;
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
    /* Messages that warm the memory of pieces need no time. */
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
        /* This message took longer than others will, or the end of the message before is not known. Its cost is a first guess. */
        *known = 0 == *known ? cost : *known;
        if (!settles && !pace->skipped) {
            dn_pace_foresee(class, way, len, cost);
        }
    } else if (dn_pace_judge(class, way, cost)) {
        /* The mean counts, once enough messages have ended. */
    } else if (DN_PACE_TRIES > class->known[way]) {
        /* Where several messages are under way at once, one takes all the time and the others none. So the mean counts. */
        *known += (cost - *known) / (float) ++class->known[way];
    } else {
        *known += ((cost < DISTURBED * *known ? cost : DISTURBED * *known) - *known) * WEIGHT;
        dn_pace_watch(class, way, len);
    }
    dn_pace_pass(pace, now);
}
