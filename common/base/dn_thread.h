/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_thread.h
 * Threads of this library's own, beside those of the program.
 */
#ifndef DN_THREAD_H
#define DN_THREAD_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>

/** Has this process threads beside the calling one? Where the C library does not tell, the answer is yes. A child of a process in which this
 * library has started threads begins with one thread, and the answer there is no. */
int dn_thread_has_others(void);

/**
 * Start a thread to which the program's signals do not go.
 *
 * @param[out] thread  For pthread_join(), which the caller has to call.
 * @return 0; or an errno value: no thread was started, as where a limit is reached. Nothing is logged.
 */
int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/**
 * Have the calling thread go on on another core of those where it may run.
 *
 * From Linux 6.2 on, the kernel takes the cores where the thread may run as the thread's own choice from then on: if the program's cpuset
 * grows later, or a core comes up that was down, this thread does not use it. If somebody else changes these cores during the call, the
 * change is lost. If the kernel refuses to restore them, the thread stays away from its old core.
 *
 * @return 0: there is none, or the kernel refuses; nothing has changed.
 */
int dn_thread_leave_core(void);

/**
 * A thread that serves other processes in the place of a card. It may share a core with the program. All zero at first.
 *
 * The thread runs ahead of programs when a request comes. After a request it looks on: it stays awake, and looks for the next request of a
 * row. It does so only where the request has come soon after another one: a program that gets a message now and then does not pay for
 * looks in vain. Where it looks on in vain, the sender itself may have lost its core to the thread: the thread goes to another core, and it
 * looks on less and less often. After some time the thread sleeps in any case.
 */
typedef struct dn_awake {
    int first;         /**< 1: it runs ahead of programs; 0: not now; -1: it may not */
    uint64_t since;    /**< end of its last sleep that was long enough for others to run */
    uint64_t waits;    /**< since when it waits for a request */
    uint64_t spare_ns; /**< nanoseconds that it may still look on */
    uint64_t begin;    /**< when it began to look on */
    uint64_t came;     /**< when the last request came */
    int pays;          /**< not 0: a request has come while it last looked on */
    uint32_t vain;     /**< times in a row that it has looked on in vain, up to a limit */
    uint32_t left_out; /**< requests after which it will not look on: 2^vain - 1 at first */
} dn_awake_t;

/** The calling thread begins. It runs ahead of programs where the process has the right to this. @param[in] now  dn_clock_ns(). */
void dn_awake_start(dn_awake_t *awake, uint64_t now);
/**
 * The calling thread has slept. After a long sleep it runs ahead of programs again. Where its last long sleep is some time ago, it does not
 * run ahead of programs any more: they need a turn.
 *
 * @param[in] woken  Not 0: a request came. 0: the time was over, which does not tell how closely requests follow each other.
 */
void dn_awake_slept(dn_awake_t *awake, uint64_t begin, uint64_t end, int woken);
/** A request came. @return 1: the thread looks on while dn_awake_lasts() is 1, and then calls dn_awake_end(). */
int dn_awake_begin(dn_awake_t *awake, uint64_t now);
/** Does the thread look on? @param[in] came  Not 0: a request came since the last call. @return 1: look once more. */
int dn_awake_lasts(dn_awake_t *awake, uint64_t now, int came);
/** The thread does not look on any more. If it looked on in vain, it goes to another core, where it may wait for its turn: the caller holds no
 * lock. @return nanoseconds that it has to sleep now, even if requests come; 0: it may wait for requests. */
uint64_t dn_awake_end(dn_awake_t *awake, uint64_t now);

/** Wake a thread that waits by dn_thread_wait(). @param[in] event  An eventfd that does not block. */
void dn_thread_call(int event);

/**
 * Wait until a time, or until a file can be read.
 *
 * @param[in]     until  A time of dn_clock_ns(). A time in the past: only look.
 * @param[in,out] file   @p n files. The first is the event of dn_thread_call(); if it could be read, this call has reset it.
 *
 * @return whether a file could be read.
 */
int dn_thread_wait(struct pollfd *file, nfds_t n, uint64_t until);

/**
 * Tells a thread of the library that the program no longer looks at the network. It is a timer that the program puts off again and again
 * while it looks. So the thread sleeps as long as the program looks, and costs the program no wake-up.
 */
typedef struct dn_lull {
    int fd;          /**< a timer's file, which can be read after a lull; -1: not open */
    uint64_t put_at; /**< when the program last put the timer off */
} dn_lull_t;

/** Make the timer. @return 0, or an errno value. Nothing is logged. */
int dn_lull_open(dn_lull_t *lull);
/** Close the timer, if it is open. */
void dn_lull_close(dn_lull_t *lull);
/** Start the timer anew: its file can be read DN_LULL_NS from now, unless the program puts the timer off again. */
void dn_lull_begin(const dn_lull_t *lull);

/**
 * Have the calling thread wait as long as the program looks at the network.
 *
 * @param[in] event  The event by which others call the thread, as in dn_thread_wait().
 * @param[in] turns  The program counts its looks there, by relaxed stores.
 * @param[in] until  The time at which the wait ends at the latest.
 *
 * @return the number of looks when the program stopped. A number other than the one at @p turns: the program still looks, as far as is
 *         known.
 */
uint64_t dn_lull_wait(const dn_lull_t *lull, int event, const uint64_t *turns, uint64_t until);

/** Length of a lull in nanoseconds. */
#define DN_LULL_NS UINT64_C(1000000)

/** The program looks at the network. One thread at a time calls. @param[in] now  dn_clock_ns(). */
static inline void dn_lull_put_off(dn_lull_t *lull, uint64_t now)
{
    if (DN_LULL_NS / 2 <= now - lull->put_at) {
        lull->put_at = now;
        dn_lull_begin(lull);
    }
}

#endif
