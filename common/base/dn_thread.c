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
#include <time.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#    include <sys/single_threaded.h>
#    define DN_THREAD_ALONE (__libc_single_threaded)
#else
#    define DN_THREAD_ALONE 0
#endif

#include "dn_atomic.h"
#include "dn_clock.h"

/** A thread that has had no sleep of DN_THREAD_SLEPT_NS for DN_THREAD_FIRST_NS does not run ahead of programs any more. */
#define DN_THREAD_FIRST_NS UINT64_C(2000000)
#define DN_THREAD_SLEPT_NS UINT64_C(20000)
/** Nanoseconds for which a thread looks on after a request: more than the answer takes to the other side, and the next request back. Where
 * each answer wakes a thread of a virtual machine, a row has a request in 40 to 60 us (perf/dn_dsm: first, over ofi). */
#define DN_AWAKE_ON_NS UINT64_C(100000)
/** A thread that has looked on in vain leaves out twice as many requests as the time before. The number is doubled so many times at most. */
#define DN_AWAKE_VAIN 6u
/** Nanoseconds after which the thread sleeps in any case, since the program may need the core. */
#define DN_AWAKE_MOST_NS UINT64_C(1500000)
/** Nanoseconds of that sleep. */
#define DN_AWAKE_OFF_NS UINT64_C(100000)
/** A program that does not look for so many nanoseconds after a lull computes. */
#define DN_LULL_STOPPED_NS UINT64_C(50000)

static uint32_t dn_thread_watched; /**< not 0: dn_thread_forked() is called in children */
static uint32_t dn_thread_child;   /**< not 0: dn_thread_forked() was called: this is such a child */

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

int dn_thread_leave_core(void)
{
    cpu_set_t allowed, others;
    const int core = sched_getcpu();

    if (0 > core || CPU_SETSIZE <= core || 0 != sched_getaffinity(0, sizeof(allowed), &allowed)) {
        return 0;
    }
    others = allowed;
    CPU_CLR((size_t) core, &others);
    if (0 == CPU_COUNT(&others) || 0 != sched_setaffinity(0, sizeof(others), &others)) {
        return 0;
    }
    /* The thread stays where it is now as long as the kernel sees no reason to move it. */
    (void) sched_setaffinity(0, sizeof(allowed), &allowed);
    return 1;
}

static void dn_awake_go(dn_awake_t *awake, int first)
{
    if (0 > awake->first || first == awake->first) {
        return;
    }
    const int policy = first ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER;
    const struct sched_param param = {.sched_priority = first ? sched_get_priority_min(SCHED_FIFO) : 0};
    awake->first = 0 == pthread_setschedparam(pthread_self(), policy, &param) ? first : -1;
}

void dn_awake_start(dn_awake_t *awake, uint64_t now)
{
    *awake = (dn_awake_t){.since = now, .waits = now, .spare_ns = DN_AWAKE_MOST_NS};
    dn_awake_go(awake, 1);
}

void dn_awake_slept(dn_awake_t *awake, uint64_t begin, uint64_t end, int woken)
{
    const uint64_t spare = awake->spare_ns + (end - begin) * (DN_AWAKE_MOST_NS / DN_AWAKE_OFF_NS);

    awake->spare_ns = spare < DN_AWAKE_MOST_NS ? spare : DN_AWAKE_MOST_NS;
    awake->waits = woken ? begin : end;
    if (DN_THREAD_SLEPT_NS <= end - begin) {
        awake->since = end;
        dn_awake_go(awake, 1);
    } else if (DN_THREAD_FIRST_NS <= end - awake->since) {
        dn_awake_go(awake, 0);
    }
}

int dn_awake_begin(dn_awake_t *awake, uint64_t now)
{
    if (!awake->pays && now - awake->waits >= DN_AWAKE_ON_NS) {
        return 0;
    }
    if (0 != awake->left_out) {
        awake->left_out--;
        return 0;
    }
    awake->pays = 0;
    awake->begin = now;
    awake->came = now;
    return 1;
}

int dn_awake_lasts(dn_awake_t *awake, uint64_t now, int came)
{
    awake->came = came ? now : awake->came;
    awake->pays |= came;
    return now - awake->came < DN_AWAKE_ON_NS && now - awake->begin < awake->spare_ns;
}

uint64_t dn_awake_end(dn_awake_t *awake, uint64_t now)
{
    const uint64_t span = now - awake->begin;

    if (awake->pays) {
        awake->vain = 0;
    } else if (DN_AWAKE_ON_NS <= now - awake->came) {
        awake->vain += DN_AWAKE_VAIN > awake->vain;
        awake->left_out = (1u << awake->vain) - 1;
        (void) dn_thread_leave_core();
    }
    awake->spare_ns = span < awake->spare_ns ? awake->spare_ns - span : 0;
    return 0 == awake->spare_ns ? DN_AWAKE_OFF_NS : 0;
}

void dn_thread_call(int event)
{
    const uint64_t one = 1;

    if (sizeof(one) != write(event, &one, sizeof(one))) {
        /* Full: it is called already. */
        return;
    }
}

int dn_thread_wait(struct pollfd *file, nfds_t n, uint64_t until)
{
    const uint64_t now = dn_clock_ns(), pause = until > now ? until - now : 0;
    const struct timespec span = {(time_t) (pause / UINT64_C(1000000000)),
                                  (long) (pause % UINT64_C(1000000000))};
    uint64_t calls;

    const int woken = ppoll(file, n, &span, NULL);
    return 0 < woken
           && (0 == file[0].revents || sizeof(calls) == read(file[0].fd, &calls, sizeof(calls))
               || EAGAIN == errno);
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

uint64_t dn_lull_wait(const dn_lull_t *lull, int event, const uint64_t *turns, uint64_t until)
{
    struct pollfd wait[2] = {{.fd = event, .events = POLLIN}, {.fd = lull->fd, .events = POLLIN}};

    dn_lull_begin(lull);
    while (dn_thread_wait(wait, 2, until) && 0 == wait[0].revents) {
        /* A program that did not run has not stopped: it may have its core again by now. */
        const uint64_t seen = dn_load_relaxed(turns);
        dn_lull_begin(lull);
        if (dn_thread_wait(wait, 1, dn_clock_ns() + DN_LULL_STOPPED_NS)) {
            break;
        }
        if (seen == dn_load_relaxed(turns)) {
            return seen;
        }
    }
    return dn_load_relaxed(turns) - 1;
}
