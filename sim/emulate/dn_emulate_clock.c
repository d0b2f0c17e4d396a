/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_emulate_int.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#    include <cpuid.h>
#endif

#include "dn_clock.h"
#include "dn_log.h"

/** Between the two readings that give the rate: what a reading takes is one part in 50,000 of it. */
#define DN_EMULATE_SPAN_NS 5000000

static int dn_clock_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return 0 != __get_cpuid(0x80000007, &a, &b, &c, &d) && 0 != (d & 1u << 8);
#else
    return 1;
#endif
}

typedef struct dn_reading {
    uint64_t ticks;
    uint64_t ns;
} dn_reading_t;

/** Both clocks at once: of some tries the one that took least time. */
static dn_reading_t dn_clock_read(void)
{
    dn_reading_t best = {0, 0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        struct timespec now;
        const uint64_t before = dn_emulate_now();
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
        const uint64_t after = dn_emulate_now();
        if (after - before < least) {
            least = after - before;
            best.ticks = before + least / 2;
            best.ns = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
        }
    }
    return best;
}

int dn_emulate_by_kernel;

uint64_t dn_emulate_kernel_now(void)
{
    return dn_clock_ns();
}

/** Which counter, by the user's wish and what this machine has. @return 1: the kernel's; DN_ERR_* with the sentence said. */
static int dn_clock_choose(void)
{
    const char *wish = getenv("DN_EMULATE_CLOCK");
    const int invariant = dn_clock_is_invariant();

    if (NULL == wish || '\0' == wish[0]) {
        if (!invariant) {
            dn_log_answer(
                "emulate counts by the kernel's clock: this processor's counter does not run at one rate (no "
                "invariant TSC)");
        }
        return !invariant;
    }
    if (0 == strcmp(wish, "kernel")) {
        return 1;
    }
    if (0 != strcmp(wish, "processor")) {
        dn_log_error("DN_EMULATE_CLOCK is \"%s\"; write processor or kernel, or leave it out", wish);
        return DN_ERR_PARAM;
    }
    if (!invariant) {
        dn_log_error(
            "DN_EMULATE_CLOCK is processor, but its counter does not run at one rate here (no invariant "
            "TSC); write kernel, or leave it out");
        return DN_ERR_UNSUPPORTED;
    }
    return 0;
}

static pthread_once_t dn_clock_once = PTHREAD_ONCE_INIT;
static dn_status_t dn_clock_status;
static double dn_clock_rate;

static void dn_clock_start(void)
{
    const int choice = dn_clock_choose();

    if (0 != choice) {
        dn_clock_status = 0 > choice ? (dn_status_t) choice : DN_OK;
        dn_emulate_by_kernel = 0 < choice;
        dn_clock_rate = 1e-3;
        return;
    }
    const dn_reading_t from = dn_clock_read();
    dn_reading_t to = from;
    while (to.ns - from.ns < DN_EMULATE_SPAN_NS) {
        to = dn_clock_read();
    }
    dn_clock_rate = (double) (to.ticks - from.ticks) / ((double) (to.ns - from.ns) * 1e3);
}

dn_status_t dn_emulate_clock(double *ticks_per_ps_p)
{
    pthread_once(&dn_clock_once, dn_clock_start);
    *ticks_per_ps_p = dn_clock_rate;
    return dn_clock_status;
}

/** Until when this thread's host is busy. */
static _Thread_local uint64_t dn_emulate_host;

uint64_t dn_emulate_begin(uint64_t slack)
{
    const uint64_t now = dn_emulate_now();

    if (dn_emulate_host > now) {
        return now;
    }
    return now - dn_emulate_host < slack ? dn_emulate_host : now - slack;
}

uint64_t dn_emulate_spin(uint64_t until)
{
    const uint64_t now = dn_emulate_now();

    dn_emulate_host = until;
    if (now >= until) {
        return now - until;
    }
    while (dn_emulate_now() < until) {
        /* A pause takes longer than the counter needs to be read: up to 50 ns of the times that are kept here. */
    }
    return 0;
}
