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

/** How a thread of the library stands to those of the program: all zero, but for `awake`, at first. */
typedef struct dn_thread_rank {
    uint64_t awake; /**< since when it has not slept long enough for others to run */
    int first;      /**< it runs ahead of programs; -1: it may not */
} dn_thread_rank_t;

/**
 * Have the calling thread run when something comes, as a card did, and not when the program's slice of the core is over: unless it has been
 * awake for so long that programs have to have their turn. Where the process has no right to that, the kernel decides.
 *
 * @param[in] begin  The thread has slept since, in dn_clock_ns(), until
 * @param[in] end    which is now; equal: it begins.
 */
void dn_thread_slept(dn_thread_rank_t *rank, uint64_t begin, uint64_t end);

/**
 * Wait until some time, or until a file can be read.
 *
 * @param[in]     until  In dn_clock_ns(); the past: only look.
 * @param[in,out] file   @p n files. The first is an event by which others call the thread; it can be read no more when this returns.
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
