/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file threads_pthreads_tsd.h
 * Stands in for a header that opal/mca/threads/tsd.h of Open MPI 5.0 includes and that distributions leave out: data of
 * a thread.
 */
#ifndef DN_STANDIN_THREADS_PTHREADS_TSD_H
#define DN_STANDIN_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
    *value = pthread_getspecific(key);
    return 0;
}

#endif
