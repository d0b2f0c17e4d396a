/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_nap.h"

#include "dn_device.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** Of the time slept through, the part that the next sleep takes. */
#define DN_NAP_PART 2u

void dn_bell_ring(uint32_t *bell, uint32_t odd)
{
    /* Release: who finds the bell even by an acquire sees R0. Somebody else may have rung: then his wake is enough, unless it is odd
     * again, since S1 may have come before R0. */
    while (0 != odd % 2) {
        if (dn_cas_u32(bell, odd, odd + 1)) {
            (void) syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
            return;
        }
        odd = dn_load_acquire_u32(bell);
    }
}

/** S0. @return the bell, odd. */
static uint32_t dn_bell_set(uint32_t *bell)
{
    const uint32_t odd = 1 | atomic_fetch_or_explicit((_Atomic uint32_t *) bell, 1, memory_order_acq_rel);

    /* Before S1, for those whose R1 follows R0: one of the two sees what the other has written. */
    atomic_thread_fence(memory_order_seq_cst);
    return odd;
}

/** S2. */
static dn_nap_end_t dn_nap_sleep(uint32_t *bell, uint32_t odd, uint32_t us)
{
    const struct timespec pause = {.tv_nsec = (long) us * 1000};

    if (NULL == bell) {
        /* A signal may end it early: then the caller looks early. */
        (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        return DN_NAP_SLEPT;
    }
    const long rc = syscall(SYS_futex, bell, FUTEX_WAIT, odd, &pause, NULL, 0);
    return 0 == rc || EAGAIN == errno ? DN_NAP_WOKEN : DN_NAP_SLEPT;
}

dn_nap_end_t dn_nap(dn_nap_t *nap, uint32_t *bell, uint64_t steps, uint32_t yields)
{
    if (steps != nap->steps) {
        nap->steps = steps;
        dn_nap_restart(nap);
    }
    if (!dn_nap_is_due(nap, yields)) {
        nap->turns++;
        (void) sched_yield();
        return DN_NAP_LOOK;
    }
    if (NULL != bell && 0 == nap->odd) {
        nap->odd = dn_bell_set(bell);
        return DN_NAP_LOOK;
    }
    uint32_t us = DN_NAP_SHORTEST_US + nap->slept_us / DN_NAP_PART;
    us = us < DN_NAP_LONGEST_US ? us : DN_NAP_LONGEST_US;
    const dn_nap_end_t end = dn_nap_sleep(bell, nap->odd, us);
    nap->odd = 0;
    if (nap->slept_us < DN_NAP_PART * DN_NAP_LONGEST_US) {
        nap->slept_us += us;
    }
    return end;
}
