/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#    include <sys/single_threaded.h>
#    define DN_THREAD_ALONE (__libc_single_threaded)
#else
#    define DN_THREAD_ALONE 0
#endif

#include "dn_atomic.h"

/** After so long without a sleep, of so long at least, a thread is one among others. */
#define DN_THREAD_FIRST_NS UINT64_C(2000000)
#define DN_THREAD_SLEPT_NS UINT64_C(20000)

static uint32_t dn_thread_watched; /**< dn_thread_forked() is called in children */
static uint32_t dn_thread_child;   /**< it was */

static void dn_thread_forked(void)
{
    dn_store_relaxed_u32(&dn_thread_child, 1);
}

int dn_thread_has_others(void)
{
    return !DN_THREAD_ALONE && !dn_load_relaxed_u32(&dn_thread_child);
}

int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;

    if (!dn_load_relaxed_u32(&dn_thread_watched)) {
        /* Two threads at once: it is called twice then. */
        dn_store_relaxed_u32(&dn_thread_watched, 0 == pthread_atfork(NULL, NULL, dn_thread_forked));
    }
    /* A thread begins with the mask of its maker. */
    sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(thread, NULL, run, argument);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void dn_thread_go(dn_thread_rank_t *rank, int first)
{
    if (0 > rank->first || first == rank->first) {
        return;
    }
    const int policy = first ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER;
    const struct sched_param param = {.sched_priority = first ? sched_get_priority_min(SCHED_FIFO) : 0};
    rank->first = 0 == pthread_setschedparam(pthread_self(), policy, &param) ? first : -1;
}

void dn_thread_slept(dn_thread_rank_t *rank, uint64_t begin, uint64_t end)
{
    if (begin == end || DN_THREAD_SLEPT_NS <= end - begin) {
        rank->awake = end;
        dn_thread_go(rank, 1);
    } else if (DN_THREAD_FIRST_NS <= end - rank->awake) {
        dn_thread_go(rank, 0);
    }
}

int dn_lull_open(dn_lull_t *lull)
{
    lull->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return 0 > lull->fd ? errno : 0;
}

void dn_lull_close(dn_lull_t *lull)
{
    if (0 <= lull->fd) {
        close(lull->fd);
        lull->fd = -1;
    }
}

void dn_lull_begin(const dn_lull_t *lull)
{
    const struct itimerspec once = {.it_value = {.tv_nsec = DN_LULL_NS}};

    /* What it has said before it says no more. */
    (void) timerfd_settime(lull->fd, 0, &once, NULL);
}
