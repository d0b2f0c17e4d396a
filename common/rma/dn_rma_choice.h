/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_choice.h
 * How short puts and gets on private memory of this host are done: by their target, to which they are offered (dn_rma_offer.c), or by
 * a call of the kernel. Which takes less time depends on the machine, and on where the two processes run. So the origin tries both, now
 * and then, and goes the way that took less.
 *
 * Units:    nanoseconds of any clock.
 * Threads:  several may use a choice at once: they may lose a count or a sample.
 *
 * Pinned by test/unit/dn_rma_choice_keeps_to_the_faster_way.c.
 */
#ifndef DN_RMA_CHOICE_H
#define DN_RMA_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "dn_atomic.h"

enum dn_rma_way { DN_RMA_BY_OFFER, DN_RMA_BY_KERNEL, DN_RMA_WAYS };

/** Of operations of one direction and about one length. All zero at first. Private. */
typedef struct dn_rma_choice {
    uint32_t ns[DN_RMA_WAYS]; /**< 0: not known */
    uint32_t made;            /**< operations; wraps, and is not compared */
} dn_rma_choice_t;

/** Operations of a round; it divides 2^32, since the count wraps. */
#define DN_RMA_CHOICE_EVERY 2048u
/** A round begins with so many of each way. */
#define DN_RMA_CHOICE_TRIES 12u
/** The first of these do not count: they find nothing in the caches. */
#define DN_RMA_CHOICE_SETTLES 4u
/** Of the rest of a round, one in how many is timed. */
#define DN_RMA_CHOICE_TIMED 16u
/** Nanoseconds: what takes longer takes long. */
#define DN_RMA_CHOICE_MOST 1000000000

/** The way of the next operation. @param[out] timed_p  whether the caller is to take its time, for dn_rma_choice_learn() */
static inline enum dn_rma_way dn_rma_choice_make(dn_rma_choice_t *choice, bool *timed_p)
{
    const uint32_t made = dn_load_relaxed(&choice->made);
    const uint32_t offer = dn_load_relaxed(&choice->ns[DN_RMA_BY_OFFER]);
    const uint32_t kernel = dn_load_relaxed(&choice->ns[DN_RMA_BY_KERNEL]);
    const uint32_t turn = made % DN_RMA_CHOICE_EVERY;

    dn_store_relaxed(&choice->made, made + 1);
    if (DN_RMA_WAYS * DN_RMA_CHOICE_TRIES > turn) {
        *timed_p = DN_RMA_CHOICE_SETTLES <= turn % DN_RMA_CHOICE_TRIES;
        return (enum dn_rma_way)(turn / DN_RMA_CHOICE_TRIES);
    }
    *timed_p = 0 == turn % DN_RMA_CHOICE_TIMED;
    return 0 != kernel && kernel < offer ? DN_RMA_BY_KERNEL : DN_RMA_BY_OFFER;
}

/** An operation took so long. One that took far longer than is known was disturbed, and counts less. Less time counts more than more, so
 * that a first one that was disturbed is soon forgotten. */
static inline void dn_rma_choice_learn(dn_rma_choice_t *choice, enum dn_rma_way way, uint64_t took)
{
    const int64_t known = dn_load_relaxed(&choice->ns[way]);
    const uint64_t most = 0 == known ? DN_RMA_CHOICE_MOST : 4 * (uint64_t) known;
    const int64_t ns = (int64_t) (took < most ? took : most);
    const int64_t next = 0 == known ? ns : known + (ns - known) / (ns < known ? 2 : 8);

    dn_store_relaxed(&choice->ns[way], (uint32_t) (1 > next                    ? 1
                                                   : DN_RMA_CHOICE_MOST < next ? DN_RMA_CHOICE_MOST
                                                                               : next));
}

#endif
