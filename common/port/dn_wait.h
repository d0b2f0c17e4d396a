/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_wait.h
 * How a process waits, whatever for: a message, a request, a collective, a lock, a window. The loop that waits polls some times,
 * then calls dn_wait(), which spins, yields the core or sleeps as dn_config_t::wait says, and polls again.
 *
 *   auto    spins, or yields where cores are shared or threads wait beside each other; after DN_WAIT_SPIN_NS in vain it
 *           sleeps until something comes
 *   spin    never gives the core away
 *   yield   yields, but never sleeps
 *   sleep   sleeps after DN_WAIT_SOON_NS
 *
 * Each sleep costs the time of a wake. The later a sleep begins, the less is that beside the time waited before.
 *
 * A process has a bell, a word that its peers map. It is odd while the process may sleep. Whatever gives a
 * peer something to do rings: messages, credit for them, lines, words and PUSHes, atomics, shares of a
 * transfer that are done.
 *
 *   the sleeper                     the ringer, which has something for the sleeper
 *   S0 make the bell odd;           R0 store it
 *      fence all other processes    R1 load the bell: done, if it is even
 *   S1 look once more               R2 make it even, another number; wake all that sleep
 *   S2 sleep while the bell is
 *      as S0 left it; look; S2 ...
 *
 * A ringer that finds at R2 that another has rung meanwhile looks at the bell again, and rings too if it is
 * odd: somebody has come to S1 since, maybe before R0 was seen. What is stored between S1 and S2 changes the
 * bell before S2, so that the kernel does not let S2 begin. S1 is two looks: dn_wait() looks at the port, and
 * the loop at what else it waits for before it calls dn_wait() again.
 *
 * R1 may pass R0, since the ringer has no fence between them: it would be paid for each message that nobody
 * sleeps for. The sleeper pays, by membarrier(2): each process that may ring executes a fence at some
 * instruction of its own while S0's call runs. Where that comes before R0, R1 finds what S0 has stored, and
 * the bell is rung. Where it comes after R0, S1 finds what R0 has stored. There is no third case: R1 before
 * that fence and R0 after it would be against the order of the program, which R1's compiler fence keeps. A
 * thread that does not run meanwhile has had its fence when it lost its core. So no ring is missed. The bell stays
 * odd, so no ring is missed in later sleeps of this wait either, and S0 is not done again.
 *
 * Where membarrier() is refused, as by a sandbox, a ring may be missed if R0 is on its way to memory while S0
 * and S1 are done. Then the first sleep of a wait is as short as DN_WAIT_NAP_MIN_US, and R0 has come when the
 * next one begins.
 *
 * A ringer takes part in the fences once it has enrolled, which goes on beside its first milliseconds (dn_bell_enroll_begin()).
 * Until then a ring may be missed as rarely, and is heard when the sleep ends by its clock, after DN_WAIT_NAP_MAX_US at most.
 *
 * A sleep ends by its clock, too, since the sleeper has other things to do: to look which peers live, and
 * whatever the caller does between two sleeps. A sleep lasts a DN_WAIT_PART of the time waited, but
 * DN_WAIT_NAP_MIN_US at least and DN_WAIT_NAP_MAX_US at most: what nobody rings for comes late by no more
 * than that, at each of its steps. Where the port has a device that cannot ring, or the caller waits for
 * others that cannot, a sleep lasts DN_WAIT_BLIND_US, with what the kernel adds (prctl(2):
 * PR_SET_TIMERSLACK). A process does not sleep while one of its devices
 * lives by a clock, as an emulation does.
 *
 * Pinned by test/unit/dn_wait_ends_when_something_is_stored.c, on the edge of sleep.
 */
#ifndef DN_WAIT_H
#define DN_WAIT_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Time in vain until a wait sleeps: some 50 times what it takes to be woken. */
#define DN_WAIT_SPIN_NS 1000000u
/** The same for callers that want to sleep soon: more than a message and its answer take. */
#define DN_WAIT_SOON_NS 20000u
/** The same in yields, where cores are shared by processes: these may take as long as others compute. A
 * barrier of 8 or 16 ranks on 2 cores takes the same time with 50 and with 200 (perf/dn_barrier). */
#define DN_WAIT_YIELDS 100u
/** Time between two calls of dn_wait() beyond which the caller does something else, with DN_WAIT_TIGHT: then
 * a wait ends. Much longer than an interrupt, which takes 20 us and more in a virtual machine and comes several
 * times a millisecond. A caller that computes for less is not put to sleep: what it waited for was heard. */
#define DN_WAIT_GAP_NS 200000u

/** A sleep takes this part of the time waited: a 16th. */
#define DN_WAIT_PART 16u
/** The shortest sleep. */
#define DN_WAIT_NAP_MIN_US 50u
/** The longest sleep. */
#define DN_WAIT_NAP_MAX_US 2000u
/** A sleep during which nobody rings. */
#define DN_WAIT_BLIND_US 50u

/** Flags of dn_wait(). */
enum {
    DN_WAIT_BLIND = 1 << 0,  /**< something is waited for that rings no bell */
    DN_WAIT_SHARED = 1 << 1, /**< cores are shared by processes, whatever dn_oversubscribed() says */
    DN_WAIT_TIGHT = 1 << 2,  /**< it is a wait only while calls follow each other within DN_WAIT_GAP_NS */
    DN_WAIT_CROWDED = 1 << 3 /**< another thread waits beside this one: the flag holds for this turn */
};

/** A wait of one thread; all zero when it begins. One that ends with the bell odd leaves it so: the next ring
 * is in vain. */
typedef struct dn_wait {
    uint64_t steps;    /**< as given last */
    uint64_t heard;    /**< by the port, when it began */
    uint64_t began_ns; /**< since when it is in vain; 0: it is not */
    uint64_t left_ns;  /**< when dn_wait() was left last */
    uint32_t flags;    /**< the caller's, and what was found when it began */
    uint32_t yields;   /**< since it began */
    uint32_t odd;      /**< as S0 left the bell; 0: S0 is to be done */
    uint32_t looked;   /**< the port was looked at since S0 */
    uint32_t fenced;   /**< no ring is missed from now on */
} dn_wait_t;

/** What dn_wait() has done. */
typedef enum dn_wait_end {
    DN_WAIT_LOOK,    /**< look again, and now */
    DN_WAIT_YIELDED, /**< the core was others' for a turn */
    DN_WAIT_SLEPT,   /**< it has slept until its time was over */
    DN_WAIT_WOKEN    /**< the bell was rung */
} dn_wait_end_t;

/** Something has been done: what is waited for may come soon. */
static inline void dn_wait_restart(dn_wait_t *wait)
{
    wait->began_ns = 0;
}

/**
 * Between two looks in vain.
 *
 * @param[in] steps  Whatever changes each time that the wait has gone on.
 * @param[in] flags  DN_WAIT_BLIND, DN_WAIT_SHARED, DN_WAIT_TIGHT, DN_WAIT_CROWDED.
 *
 * Completion: after at most DN_WAIT_NAP_MAX_US, and the turns of other processes that want the core. May make progress on the port.
 * Ordering:   as above. Looks are acquires.
 * Threads:    a wait is one thread's; those of one port may be at once, and say DN_WAIT_CROWDED where they may want one core. A
 *             thread that is in a handler does not sleep where others use the port: it holds the port's lock.
 *
 * Pinned by test/unit/dn_wait_ends_when_something_is_stored.c and test/mpi/wait_costs.c.
 */
DN_API dn_wait_end_t dn_wait(dn_port_t *port, dn_wait_t *wait, uint64_t steps, unsigned flags);

/** Ring the own bell: another thread of this process may sleep for what this one has just done. */
DN_API void dn_wait_ring(const dn_port_t *port);

#ifdef __cplusplus
}
#endif

#endif
