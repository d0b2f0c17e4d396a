/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_choice.h
 * Choose the faster of two ways, where that depends on the machine, and on where two processes run. Each way is tried now and then,
 * and the way that took less time is used. dn_pace.h has more ways, and two sides that have to agree.
 *
 * Units:    costs are in any unit that is the same for both ways.
 * Threads:  several threads may use a choice at once. They may then lose a count or a sample.
 *
 * Pinned by test/unit/dn_choice_keeps_to_the_faster_way.c.
 */
#ifndef DN_CHOICE_H
#define DN_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "dn_atomic.h"

/** All zero at first. Between trials, way 0 is used until way 1 is known to cost less. Private. */
typedef struct dn_choice {
    uint32_t cost[2]; /**< 0: not known */
    uint32_t made;    /**< size of all operations; wraps, and is not compared */
    uint32_t seen[2]; /**< samples that cost[] is the mean of, up to DN_CHOICE_SEEN */
} dn_choice_t;

/** A new sample changes the known cost by its part of so many samples, or of all that there were. */
#define DN_CHOICE_SEEN 8u

/** How often ways are tried, and how long. All values are in the unit of an operation's size. Each call gets the same plan. */
typedef struct dn_choice_plan {
    uint32_t tries[2]; /**< size of the operations by each way at the start of a round */
    /** Size of the tries of a way that are timed: the last ones. The earlier tries find data of the other way in the caches, and bring in
     * the data that this way needs. At least the size of the largest operation, at most the size of the tries of a way. */
    uint32_t counts;
    uint32_t once;  /**< in the rest of a round, one operation in this size is timed; a power of 2 */
    uint32_t every; /**< size of a round, a multiple of `once`; it divides 2^32, since the count wraps */
} dn_choice_plan_t;

/** The largest cost that is kept. Larger costs are cut to this. */
#define DN_CHOICE_MOST 1000000000

/** The way of the next operation.
 * @param[in] size      Size of the operation, not 0. It is 1 where operations are counted.
 * @param[out] timed_p  Whether the caller is to call dn_choice_learn(). */
static inline unsigned dn_choice_make(dn_choice_t *choice, const dn_choice_plan_t *plan, uint32_t size,
                                      bool *timed_p)
{
    const uint32_t made = dn_load_relaxed(&choice->made);
    const uint32_t first = dn_load_relaxed(&choice->cost[0]);
    const uint32_t second = dn_load_relaxed(&choice->cost[1]);
    const uint32_t turn = made % plan->every;

    dn_store_relaxed(&choice->made, made + size);
    if (plan->tries[0] + plan->tries[1] > turn) {
        const unsigned way = plan->tries[0] <= turn;
        const uint32_t end = plan->tries[0] + (0 != way ? plan->tries[1] : 0);

        *timed_p = end - turn <= plan->counts;
        return way;
    }
    *timed_p = turn / plan->once != (turn + size) / plan->once;
    return 0 != second && second < first;
}

/** Learn the cost of an operation. The known cost is about the mean. An operation that took far longer than the known cost was disturbed:
 * twice the known cost counts of it. A known cost that is far larger than the new one comes from a disturbed operation, the first one
 * perhaps, and is given up. */
static inline void dn_choice_learn(dn_choice_t *choice, unsigned way, uint64_t took)
{
    const int64_t known = dn_load_relaxed(&choice->cost[way]);
    const uint64_t most = 0 == known ? DN_CHOICE_MOST : 2 * (uint64_t) known;
    const int64_t cost = (int64_t) (took < most ? took : most);
    const uint32_t before = dn_load_relaxed(&choice->seen[way]);
    const uint32_t seen = DN_CHOICE_SEEN > before ? before + 1 : DN_CHOICE_SEEN;
    int64_t next = 4 * cost < known ? 2 * cost : known + (cost - known) / (int64_t) seen;

    dn_store_relaxed(&choice->seen[way], seen);
    next = DN_CHOICE_MOST < next ? DN_CHOICE_MOST : next;
    dn_store_relaxed(&choice->cost[way], (uint32_t) (0 < next ? next : 1));
}

#endif
