/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_thread.h"

#include <signal.h>

int dn_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;

    /* A thread begins with the mask of its maker. */
    sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(thread, NULL, run, argument);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
