/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file delay_lock.c
 * To be loaded before a rank's libraries: each thread that is about to wait for a mutex of one library sleeps first, so
 * that another one comes in between. Threads that only try a mutex do not.
 *
 *   DN_DELAY_FILE  a part of the name of the library whose calls count
 *   DN_DELAY_US    how long, in microseconds
 */
#include "dn_config.h"

#include "dn_atomic.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*lock_fn_t)(pthread_mutex_t *mutex);

/** dladdr() and dlsym() lock mutexes, too. */
static _Thread_local bool looking;

static bool is_to_wait(const void *caller)
{
    const char *file = getenv("DN_DELAY_FILE");
    Dl_info info;

    return NULL != file && 0 != dladdr(caller, &info) && NULL != info.dli_fname
           && NULL != strstr(info.dli_fname, file);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static lock_fn_t next;
    const void *caller = __builtin_return_address(0);
    lock_fn_t fn = dn_load_seq_cst(&next);

    if (NULL == fn) {
        looking = true;
        fn = (lock_fn_t) dlsym(RTLD_NEXT, "pthread_mutex_lock");
        dn_store_seq_cst(&next, fn);
        looking = false;
    }
    if (!looking) {
        looking = true;
        if (is_to_wait(caller)) {
            const char *delay = getenv("DN_DELAY_US");
            const long us = NULL == delay ? 1000 : atol(delay);
            /* There is no event to wait for: another thread is to come in between, or not. */
            nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
        }
        looking = false;
    }
    return fn(mutex);
}
