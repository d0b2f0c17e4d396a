/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file hide_address.c
 * To be loaded before a rank's libraries: what it publishes by PMIx is published nowhere, and the clock by which others wait runs
 * faster.
 *
 *   DN_HIDE_ADDRESS  not set: it publishes
 *   DN_CLOCK_TIMES   how often faster
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

typedef int (*publish_fn_t)(const void *info, size_t count);

__attribute__((visibility("default"))) int PMIx_Publish(const void *info, size_t count);

int PMIx_Publish(const void *info, size_t count)
{
    const publish_fn_t next = (publish_fn_t) dlsym(RTLD_NEXT, "PMIx_Publish");

    return NULL == getenv("DN_HIDE_ADDRESS") && NULL != next ? next(info, count) : 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *times = getenv("DN_CLOCK_TIMES");
    const long rc = syscall(SYS_clock_gettime, clock, now);

    if (0 == rc && CLOCK_MONOTONIC == clock && NULL != times) {
        const uint64_t ns =
            ((uint64_t) now->tv_sec * SECOND_NS + (uint64_t) now->tv_nsec) * strtoull(times, NULL, 10);

        now->tv_sec = (time_t) (ns / SECOND_NS);
        now->tv_nsec = (long) (ns % SECOND_NS);
    }
    return (int) rc;
}
