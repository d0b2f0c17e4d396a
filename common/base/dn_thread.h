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

/** Has this process threads beside the calling one? Where the C library does not say: it has. A child of a process in which this library
 * has started threads begins with one, and is taken to have no others. */
int dn_thread_has_others(void);

/**
 * Start a thread to which the program's signals do not go.
 *
 * @param[out] thread  For pthread_join(), which the caller owes.
 * @return 0, or an errno value: there is no thread, as where a limit is reached. Nothing is logged.
 */
int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/**
 * A thread that serves others in the place of a card, and how it stands to the program: both may share one core. All zero at first.
 *
 * It runs ahead of programs when something comes. Behind that it looks on, awake, so that each request of a row finds it so; but only
 * where the one before has come soon after another, since a program that is sent a message now and then is not to pay for what does not
 * come. It does so less and less often where that is in vain: it may be the sender itself that has lost its core to the thread. After some
 * time it sleeps in any case.
 */
typedef struct dn_awake {
    int first;         /**< it runs ahead of programs; -1: it may not */
    uint64_t since;    /**< it has not slept long enough for others to run since */
    uint64_t waits;    /**< for what comes, since then */
    uint64_t spare_ns; /**< that it may still look on */
    uint64_t begin;    /**< it looks on since */
    uint64_t came;     /**< when something came last */
    int pays;          /**< something has come while it looked on last */
    uint32_t vain;     /**< times in vain that it has looked on, in a row */
    uint32_t left_out; /**< requests behind which it does not look on: 2^vain - 1 at first */
} dn_awake_t;

/** The calling thread begins. It runs ahead of programs where the process has the right to have it so. @param[in] now  dn_clock_ns(). */
void dn_awake_start(dn_awake_t *awake, uint64_t now);
/**
 * It has slept. Unless it has been awake for so long that programs have to have their turn, it runs ahead of them.
 *
 * @param[in] woken  Something came; else the time was over, which says nothing of how closely requests follow each other.
 */
void dn_awake_slept(dn_awake_t *awake, uint64_t begin, uint64_t end, int woken);
/** Something came. @return 1: look on, by dn_awake_lasts(), and then call dn_awake_end(). */
int dn_awake_begin(dn_awake_t *awake, uint64_t now);
/** @param[in] came  Something did, since the last call. @return 1: look once more. */
int dn_awake_lasts(dn_awake_t *awake, uint64_t now, int came);
/** It looks on no more. @return nanoseconds that it has to sleep now, whatever comes; 0: it may wait for what comes. */
uint64_t dn_awake_end(dn_awake_t *awake, uint64_t now);

/** Call a thread that waits by dn_thread_wait(). @param[in] event  An eventfd that does not block. */
void dn_thread_call(int event);

/**
 * Wait until some time, or until a file can be read.
 *
 * @param[in]     until  In dn_clock_ns(); the past: only look.
 * @param[in,out] file   @p n files. The first is the event of dn_thread_call(), which can be read no more when this returns.
 *
 * @return whether one could be read.
 */
int dn_thread_wait(struct pollfd *file, nfds_t n, uint64_t until);

/**
 * Tells a thread of the library that the program, which looks at the network, has stopped doing so: a timer that the program puts off again
 * and again. So the thread sleeps as long as the program looks, and costs it no wake-up.
 */
typedef struct dn_lull {
    int fd;          /**< can be read after a lull; -1: not open */
    uint64_t put_at; /**< when the program put it off last */
} dn_lull_t;

/** Make it. @return 0, or an errno value, and then nothing is logged. */
int dn_lull_open(dn_lull_t *lull);
/** Give the file back, if there is one. */
void dn_lull_close(dn_lull_t *lull);
/** The thread is about to wait for the file: it can be read after DN_LULL_NS from now, or from when the program puts it off. */
void dn_lull_begin(const dn_lull_t *lull);

/**
 * The calling thread waits as long as the program looks at the network.
 *
 * @param[in] event  By which others call the thread, as in dn_thread_wait().
 * @param[in] turns  The program counts its looks there, by relaxed stores.
 * @param[in] until  It waits no longer.
 *
 * @return how many looks there were when the program stopped. Other than @p turns: it still looks, as far as is known.
 */
uint64_t dn_lull_wait(const dn_lull_t *lull, int event, const uint64_t *turns, uint64_t until);

/** A lull is as long as that. */
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
