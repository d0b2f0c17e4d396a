/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_clock.h
 * The clock that waits, protocols and choices between ways read.
 *
 * Threads: any.
 */
#ifndef DN_CLOCK_H
#define DN_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of a clock that never goes back. All processes of a host see the same clock. A call takes some 20 to 30 ns, so
 * the way of a short message does not call it. */
static inline uint64_t dn_clock_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

#endif
