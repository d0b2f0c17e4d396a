/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_nap.h
 * What to do with a core that others want too, while one of them has something to do first: yield it; after some turns
 * in vain, sleep, the longer the longer it has been. Peers that know the process to share its cores wake it (dn_wake()).
 *
 * A process has a bell, a word that its peers map. It is odd while somebody may sleep:
 *
 *   who sleeps              who has something for it
 *   S0 make the bell odd    R0 store it
 *   S1 look once more       R1 load the bell: done, if it is even
 *   S2 sleep while the      R2 make it even, another number; wake all who sleep
 *      bell is as S0 left it
 *
 * Who finds at R2 that another has rung meanwhile looks at the bell again, and rings too if it is odd: somebody has come to S1 since,
 * maybe before R0 was seen.
 *
 * What is stored between S1 and S2 changes the bell before S2, so that the kernel does not let S2 begin. Only R1 may pass
 * R0, since there is no fence between them: it would be paid for each line that nobody sleeps for. Then the bell is not rung for
 * what S1 does not see, and the sleep ends by its clock. For that R0 has to be on its way to memory while S0 and S1
 * are done, some 10 ns in a wait of at least as many microseconds as there are yields.
 */
#ifndef DN_NAP_H
#define DN_NAP_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Shortest sleep and longest, in microseconds: what else the caller does between two is done as often. Of 4 ranks on 2 cores
 * that wait for one, each takes some 2 % of a core, and 23 % where none sleeps (perf/dn_barrier -k 5000 -i 250). */
#define DN_NAP_SHORTEST_US 100u
#define DN_NAP_LONGEST_US  1000u

/** A wait; all zero when it begins. One that ends with the bell odd leaves it so: the next ring is in vain. */
typedef struct dn_nap {
    uint64_t steps;    /**< as given last */
    uint32_t turns;    /**< in which nothing went on */
    uint32_t slept_us; /**< in these */
    uint32_t odd;      /**< as S0 left the bell; 0: it is to be done */
} dn_nap_t;

typedef enum dn_nap_end {
    DN_NAP_LOOK,  /**< it has not slept: look again, and now */
    DN_NAP_SLEPT, /**< its time is over */
    DN_NAP_WOKEN  /**< the bell was rung */
} dn_nap_end_t;

/** Something has been done: what is waited for may come soon. */
static inline void dn_nap_restart(dn_nap_t *nap)
{
    nap->turns = 0;
    nap->slept_us = 0;
    nap->odd = 0;
}

/** Nobody rings for this wait: have the next sleep be as short as the first, since it takes its time. */
static inline void dn_nap_keep_short(dn_nap_t *nap)
{
    nap->slept_us = 0;
}

/** Not 0: so many turns were in vain. */
static inline int dn_nap_is_due(const dn_nap_t *nap, uint32_t yields)
{
    return nap->turns >= yields;
}

/**
 * Give the core away, between two looks in vain.
 *
 * @param[in,out] bell    dn_bell(). NULL: nobody can ring, and each sleep takes its time.
 * @param[in]     steps   Whatever changes each time that the wait has gone on.
 * @param[in]     yields  Turns in vain until it sleeps.
 *
 * Completion: after at most DN_NAP_LONGEST_US, and the turns of others who want the core.
 * Ordering:   as above. Looks are acquires.
 * Threads:    a wait is one thread's; those of one bell may be at once.
 */
DN_API dn_nap_end_t dn_nap(dn_nap_t *nap, uint32_t *bell, uint64_t steps, uint32_t yields);

#ifdef __cplusplus
}
#endif

#endif
