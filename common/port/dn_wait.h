/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_wait.h
 * How a process waits: for a message, a request, a collective, a lock, a window. A loop that waits polls some times. Then it calls
 * dn_wait(), which spins, yields the core or sleeps as dn_config_t::wait says. Then the loop polls again.
 *
 *   auto    spins, or yields where cores are shared or threads wait beside each other; after DN_WAIT_SPIN_NS in vain, sleeps
 *           until something comes
 *   spin    never gives the core away
 *   yield   yields, but never sleeps
 *   sleep   sleeps after DN_WAIT_SOON_NS
 *
 * Each sleep costs the time of a wake. The later a sleep begins, the smaller is this cost beside the time waited before.
 *
 * A process has a bell, a word that its peers map where they share memory. The bell is odd while the process may sleep. A process that
 * stores something for a peer rings the peer's bell: a message, credit for messages, a line, a word, a PUSH, an
 * atomic operation, the end of its share of a transfer.
 * Over a network, a thread of the device in the sleeper's own process reads what comes, and rings. At S2 the sleeper tells the devices that
 * it sleeps, so that such a thread reads from now on, even where the loop has polled since S1. Where another thread of the sleeper's process
 * polls meanwhile, that thread reads and rings. When it stops as to compute, the device's thread goes on after a millisecond or so.
 * No thread sees a PUSH that the network stores by itself: a sleeper that waits for its bytes looks at them when its sleep ends by the
 * clock.
 *
 *   the sleeper                     the ringer, which has something for the sleeper
 *   S0 make the bell odd;           R0 store that thing
 *      fence all other processes    R1 load the bell: done, if it is even
 *   S1 look once more               R2 make it even, another number; wake all that sleep
 *   S2 sleep while the bell is
 *      as S0 left it; look; S2 ...
 *
 * A ringer may find at R2 that another ringer has rung meanwhile. It then looks at the bell again, and rings too if
 * the bell is odd: a sleeper has come to S1 since, maybe before it could see R0. A store between S1 and S2 changes
 * the bell before S2, so the kernel does not let S2 begin. S1 has two parts: dn_wait() looks at the port, and the loop
 * looks at all else that it waits for before it calls dn_wait() again.
 *
 * R1 may pass R0, since the ringer has no fence between them. A fence there would be paid for each message, even if
 * no process sleeps. Instead the sleeper pays, by membarrier(2): each process that may ring executes a fence at some
 * instruction of its own while S0's call runs. Where this fence comes before R0, R1 finds the value that S0 has stored,
 * and the bell is rung. Where the fence comes after R0, S1 finds the data that R0 has stored. There is no third case: R1
 * before that fence and R0 after it would be against the order of the program, which R1's compiler fence keeps. A
 * thread that does not run meanwhile has had its fence when it lost its core. So no ring is missed. The bell stays
 * odd, so no ring is missed in later sleeps of this wait either, and S0 is not done again.
 *
 * Where membarrier() is refused, as by a sandbox, a ring may be missed if R0 is on its way to memory while S0
 * and S1 are done. Then the first sleep of a wait is as short as DN_WAIT_NAP_MIN_US, and R0 has come when the
 * next sleep begins.
 *
 * A ringer takes part in the fences once it has enrolled. Enrolment goes on beside the first milliseconds of the process
 * (dn_bell_enroll_begin()). Until then a ring may be missed in the same rare case. The sleeper then finds the data when its sleep
 * ends by its clock, after DN_WAIT_NAP_MAX_US at most.
 *
 * A sleep ends by its clock, too, since the sleeper has other work: it checks which peers live, and the caller has
 * work of its own between two sleeps. A sleep lasts a DN_WAIT_PART of the time waited, but DN_WAIT_NAP_MIN_US at least
 * and DN_WAIT_NAP_MAX_US at most. An event without a ring comes late by no more than that, at each of its steps. Where
 * the port has a device that cannot ring, or the caller waits for others that cannot, a sleep lasts DN_WAIT_BLIND_US,
 * including the time that the kernel adds (prctl(2): PR_SET_TIMERSLACK). With auto, a process does not sleep while one of its
 * devices works by a clock, as an emulation does.
 *
 * A thread of a library may serve peers while the program computes (DN_WAIT_SERVES). The thread sleeps at once, and for
 * DN_WAIT_SERVES_US at least where membarrier() works: the thread may share its core with the program.
 *
 * Pinned by test/unit/dn_wait_ends_when_something_is_stored.c, on the edge of sleep.
 */
#ifndef DN_WAIT_H
#define DN_WAIT_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Time in vain until a wait sleeps: some 50 times the time of a wake. */
#define DN_WAIT_SPIN_NS 1000000u
/** Time in vain until a wait sleeps where the configuration says sleep: more than a message and its answer take. */
#define DN_WAIT_SOON_NS 20000u
/** Yields in vain until a wait sleeps, where processes share cores: a yield may take as long as others compute. A barrier
 * of 8 or 16 ranks on 2 cores takes the same time with 50 yields and with 200 (perf/dn_barrier). */
#define DN_WAIT_YIELDS 100u
/** With DN_WAIT_TIGHT a wait ends where more time passes between two calls of dn_wait(): then the caller does something
 * else. This time is much longer than an interrupt, which takes 20 us and more in a virtual machine and comes several
 * times a millisecond. A caller that computes for less time is not put to sleep, as events have come by the port meanwhile. */
#define DN_WAIT_GAP_NS 200000u

/** A sleep lasts this part of the time waited: a 16th. */
#define DN_WAIT_PART 16u
/** The shortest sleep. */
#define DN_WAIT_NAP_MIN_US 50u
/** The longest sleep. */
#define DN_WAIT_NAP_MAX_US 2000u
/** The shortest sleep of a thread that serves: some 50 times what a look takes from the program where they share a core. Each
 * sleep lasts so long where something rings no bell. */
#define DN_WAIT_SERVES_US 200u
/** A sleep where something that is waited for rings no bell. */
#define DN_WAIT_BLIND_US 50u

/** Flags of dn_wait(). */
enum {
    DN_WAIT_BLIND = 1 << 0,   /**< the caller waits for something that rings no bell */
    DN_WAIT_SHARED = 1 << 1,  /**< processes share cores, whatever dn_oversubscribed() returns */
    DN_WAIT_TIGHT = 1 << 2,   /**< the wait ends where calls do not follow each other within DN_WAIT_GAP_NS */
    DN_WAIT_CROWDED = 1 << 3, /**< another thread waits beside this one: the flag holds for this turn */
    /** The thread does nothing but progress for peers while the program computes: it sleeps at once, whatever dn_config_t::wait says */
    DN_WAIT_SERVES = 1 << 4
};

/** A wait of one thread; all zero when it begins. A wait that ends while the bell is odd leaves it odd: the next ring is in
 * vain. */
typedef struct dn_wait {
    uint64_t steps;    /**< as given to the last call */
    uint64_t heard;    /**< dn_port_heard() when the wait began */
    uint64_t began_ns; /**< when the time in vain began; 0: the wait has not begun */
    uint64_t left_ns;  /**< when dn_wait() last returned */
    uint32_t flags;    /**< the caller's flags, and those found when the wait began */
    uint32_t yields;   /**< yields since the wait began */
    uint32_t odd;      /**< the bell as S0 left it; 0: S0 is to be done */
    uint32_t looked;   /**< not 0: the port was looked at since S0 */
    uint32_t fenced;   /**< not 0: no ring is missed from now on */
} dn_wait_t;

/** The result of dn_wait(). */
typedef enum dn_wait_end {
    DN_WAIT_LOOK,    /**< it has not waited: look again now */
    DN_WAIT_YIELDED, /**< it has yielded the core to others for a turn */
    DN_WAIT_SLEPT,   /**< it has slept until its time was over */
    DN_WAIT_WOKEN    /**< the bell was rung */
} dn_wait_end_t;

/** The caller has made progress: the wait begins anew, since its end may come soon. */
static inline void dn_wait_restart(dn_wait_t *wait)
{
    wait->began_ns = 0;
}

/**
 * Wait a turn, between two looks in vain.
 *
 * @param[in] steps  A number that changes each time that the caller has made progress: then the wait begins anew.
 * @param[in] flags  DN_WAIT_BLIND, DN_WAIT_SHARED, DN_WAIT_TIGHT, DN_WAIT_CROWDED, DN_WAIT_SERVES.
 *
 * Completion: after at most DN_WAIT_NAP_MAX_US, and the turns of other processes that want the core. May make progress on the port.
 * Ordering:   as above. Looks are acquires.
 * Threads:    each wait belongs to one thread. Several threads may wait on a port at once, and set DN_WAIT_CROWDED where they may
 *             share a core. A thread that is in a handler does not sleep where others use the port: it holds the port's lock.
 *
 * Pinned by test/unit/dn_wait_ends_when_something_is_stored.c and test/mpi/wait_costs.c.
 */
DN_API dn_wait_end_t dn_wait(dn_port_t *port, dn_wait_t *wait, uint64_t steps, unsigned flags);

/** Ring this process's own bell: another thread of this process may sleep until this thread has done something. */
DN_API void dn_wait_ring(const dn_port_t *port);

#ifdef __cplusplus
}
#endif

#endif
