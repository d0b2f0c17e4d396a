/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dn_device.h"
#include "dn_port.h"
#include "dn_thread.h"
#include "dn_turn.h"
#include "dn_wait.h"

/** @name Enrolment: once for the process, for any number of ports */
/** @{ */
/**
 * In a process of several threads, the kernel answers the enrolment only after each core has run something else. This takes tens
 * of milliseconds, so a thread of this library waits for the answer, and ends.
 *
 *   NONE --begin, one thread--> OVER
 *   NONE --begin, several-----> ASKED --wait--> OVER
 *
 * A child of fork() begins anew at NONE, even if its parent was at ASKED. The child has one thread at first, and enrols without
 * another thread.
 */
typedef enum dn_enrolment { DN_ENROLMENT_NONE, DN_ENROLMENT_ASKED, DN_ENROLMENT_OVER } dn_enrolment_t;

static struct {
    pthread_mutex_t lock;
    dn_enrolment_t state;
    int told;         /**< dn_enrolment_forget() is called in children */
    pthread_t thread; /**< ASKED */
    int enrolled;     /**< OVER: the kernel has agreed */
} dn_enrolment = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void dn_enrolment_turn(dn_enrolment_t state)
{
    static const uint32_t turns[] = {
        [DN_ENROLMENT_NONE] = DN_TURN_TO(DN_ENROLMENT_ASKED) | DN_TURN_TO(DN_ENROLMENT_OVER),
        [DN_ENROLMENT_ASKED] = DN_TURN_TO(DN_ENROLMENT_OVER),
        [DN_ENROLMENT_OVER] = 0,
    };

    dn_turn_check("an enrolment", turns, dn_enrolment.state, state);
    dn_enrolment.state = state;
}

static void dn_enrolment_forget(void)
{
    (void) pthread_mutex_init(&dn_enrolment.lock, NULL);
    dn_enrolment.state = DN_ENROLMENT_NONE;
}

static int dn_enrolment_ask(void)
{
    return 0 == syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

static void *dn_enrolment_thread(void *unused)
{
    (void) unused;
    return dn_enrolment_ask() ? &dn_enrolment : NULL;
}

void dn_bell_enroll_begin(void)
{
    (void) pthread_mutex_lock(&dn_enrolment.lock);
    if (!dn_enrolment.told) {
        dn_enrolment.told = 0 == pthread_atfork(NULL, NULL, dn_enrolment_forget);
    }
    if (DN_ENROLMENT_NONE == dn_enrolment.state) {
        if (dn_thread_has_others() && 0 == dn_thread_start(&dn_enrolment.thread, dn_enrolment_thread, NULL)) {
            dn_enrolment_turn(DN_ENROLMENT_ASKED);
        } else {
            dn_enrolment.enrolled = dn_enrolment_ask();
            dn_enrolment_turn(DN_ENROLMENT_OVER);
        }
    }
    (void) pthread_mutex_unlock(&dn_enrolment.lock);
}

void dn_bell_enroll_wait(void)
{
    (void) pthread_mutex_lock(&dn_enrolment.lock);
    if (DN_ENROLMENT_ASKED == dn_enrolment.state) {
        void *agreed = NULL;
        (void) pthread_join(dn_enrolment.thread, &agreed);
        dn_enrolment.enrolled = NULL != agreed;
        dn_enrolment_turn(DN_ENROLMENT_OVER);
    }
    (void) pthread_mutex_unlock(&dn_enrolment.lock);
}

int dn_bell_enroll(void)
{
    dn_bell_enroll_begin();
    dn_bell_enroll_wait();
    return dn_enrolment.enrolled;
}
/** @} */

/** @name Bells */
/** @{ */
void dn_bell_ring(uint32_t *bell, uint32_t odd)
{
    /* Release: a waker who finds the bell even by an acquire sees R0. Somebody else may have rung: then that wake is enough, unless
     * the bell is odd again, since S1 may have come before R0. */
    while (0 != odd % 2) {
        if (dn_cas_acq_rel_u32(bell, odd, odd + 1)) {
            if (0 < syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0)) {
                /* The kernel may have put the sleeper on this core, behind this process, though another one is free. */
                (void) sched_yield();
            }
            return;
        }
        odd = dn_load_acquire_u32(bell);
    }
}

uint32_t dn_bell_set(uint32_t *bell)
{
    /* Before S1, by the call or by the fence. */
    const uint32_t odd = 1 | dn_fetch_or_acq_rel(bell, 1);

    dn_fence_seq_cst();
    return odd;
}

int dn_bell_fence_all(void)
{
    return 0 == syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

int dn_bell_sleep(uint32_t *bell, uint32_t odd, const struct timespec *pause)
{
    return 0 == syscall(SYS_futex, bell, FUTEX_WAIT, odd, pause, NULL, 0) || EAGAIN == errno;
}
/** @} */
