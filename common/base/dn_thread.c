/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_thread.h"

#include <signal.h>
#if __has_include(<sys/single_threaded.h>)
#    include <sys/single_threaded.h>
#    define DN_THREAD_ALONE (__libc_single_threaded)
#else
#    define DN_THREAD_ALONE 0
#endif

#include "dn_atomic.h"

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
