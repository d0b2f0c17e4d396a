/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_pthreads_threads.h
 * Stands in for a header that opal/mca/threads/threads.h of Open MPI 5.0 includes and that distributions leave out: how
 * a thread gives its core away.
 */
#ifndef DN_STANDIN_THREADS_PTHREADS_THREADS_H
#define DN_STANDIN_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif
