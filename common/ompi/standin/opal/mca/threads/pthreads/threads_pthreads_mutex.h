/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_pthreads_mutex.h
 * Stands in for a header that opal/mca/threads/mutex.h of Open MPI 5.0 includes and that distributions leave out: what
 * a mutex and a condition of Open MPI are made of. Both must have the size that they have in libopen-pal.
 */
#ifndef DN_STANDIN_THREADS_PTHREADS_MUTEX_H
#define DN_STANDIN_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/class/opal_object.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

static inline void opal_thread_internal_mutex_lock(pthread_mutex_t *mutex)
{
    (void) pthread_mutex_lock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(pthread_mutex_t *mutex)
{
    (void) pthread_mutex_unlock(mutex);
}

/** @return OPAL_SUCCESS, or an error number. */
static inline int opal_thread_internal_mutex_init(pthread_mutex_t *mutex, bool recursive)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);

    if (0 == rc) {
        (void) pthread_mutexattr_settype(&attr, recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_DEFAULT);
        rc = pthread_mutex_init(mutex, &attr);
        (void) pthread_mutexattr_destroy(&attr);
    }
    return rc;
}

static inline void opal_thread_internal_mutex_destroy(pthread_mutex_t *mutex)
{
    (void) pthread_mutex_destroy(mutex);
}

static inline int opal_thread_internal_cond_init(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL);
}

static inline void opal_thread_internal_cond_destroy(pthread_cond_t *condition)
{
    (void) pthread_cond_destroy(condition);
}

static inline void opal_thread_internal_cond_signal(pthread_cond_t *condition)
{
    (void) pthread_cond_signal(condition);
}

/** @return 0: the caller holds the mutex now. */
static inline int opal_thread_internal_mutex_trylock(pthread_mutex_t *mutex)
{
    return 0 == pthread_mutex_trylock(mutex) ? 0 : 1;
}

#endif
