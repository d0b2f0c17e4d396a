/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_wait.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "dn_clock.h"
#include "dn_port.h"

/** A flag in addition to the flags of the header. */
enum {
    DN_WAIT_CLOCKED = 1 << 8 /**< a device works by a clock */
};

/** Begin a wait: find the flags on which its turns depend. @return 0: another thread has the lock, and the wait has not begun. */
static int dn_wait_begin(dn_port_t *port, dn_wait_t *wait, uint64_t steps, uint64_t now)
{
    if (!dn_port_trylock(port)) {
        return 0;
    }
    *wait = (dn_wait_t){.steps = steps, .heard = dn_port_heard(port), .began_ns = now};
    for (const dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        wait->flags |= port->bell != iface->bell || !dn_port_rings(iface) ? DN_WAIT_BLIND : 0;
        wait->flags |= 0 != iface->device->clocked ? DN_WAIT_CLOCKED : 0;
    }
    wait->flags |= NULL != port->fault ? DN_WAIT_BLIND : 0;
    wait->flags |= dn_oversubscribed(port) ? DN_WAIT_SHARED : 0;
    dn_port_unlock(port);
    return 1;
}

/** Has something come by the port since the wait began? */
static int dn_wait_has_heard(dn_port_t *port, const dn_wait_t *wait)
{
    int heard = 1;

    if (dn_port_trylock(port)) {
        heard = wait->heard != dn_port_heard(port);
        dn_port_unlock(port);
    }
    return heard;
}

/** Is it time to sleep? */
static int dn_wait_is_due(const dn_port_t *port, const dn_wait_t *wait, uint64_t now)
{
    const uint64_t waited = now - wait->began_ns;

    if (0 != (wait->flags & DN_WAIT_SERVES)) {
        return 1;
    }
    switch ((dn_wait_policy_t) port->config.wait) {
    case DN_WAIT_AUTO:
        return (DN_WAIT_SPIN_NS <= waited
                || (0 != (wait->flags & DN_WAIT_SHARED) && DN_WAIT_YIELDS <= wait->yields))
               && 0 == (wait->flags & DN_WAIT_CLOCKED);
    case DN_WAIT_SLEEP:
        return DN_WAIT_SOON_NS <= waited;
    case DN_WAIT_SPIN:
    case DN_WAIT_YIELD:
        break;
    }
    return 0;
}

/** Microseconds of the next sleep. */
static uint32_t dn_wait_nap_us(const dn_wait_t *wait, uint64_t now, int blind)
{
    const int serves = 0 != (wait->flags & DN_WAIT_SERVES);
    const uint32_t least = serves ? DN_WAIT_SERVES_US : DN_WAIT_NAP_MIN_US;
    const uint64_t part = (now - wait->began_ns) / (1000 * DN_WAIT_PART);

    if (blind && !serves) {
        /* The kernel ends a sleep late, by so much. */
        const long slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        const long rest_ns = DN_WAIT_BLIND_US * 1000L - slack_ns;
        return rest_ns < 5000 ? 5 : (uint32_t) rest_ns / 1000;
    }
    if (blind || part < least) {
        return least;
    }
    return part < DN_WAIT_NAP_MAX_US ? (uint32_t) part : DN_WAIT_NAP_MAX_US;
}

/** Step S2 of dn_wait.h: sleep. */
static dn_wait_end_t dn_wait_sleep(uint32_t *bell, uint32_t odd, uint32_t us)
{
    const struct timespec pause = {.tv_nsec = (long) us * 1000};

    if (NULL == bell) {
        /* A signal may end it early: then the caller looks early. */
        (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        return DN_WAIT_SLEPT;
    }
    return dn_bell_sleep(bell, odd, &pause) ? DN_WAIT_WOKEN : DN_WAIT_SLEPT;
}

/** Steps S0 and the port's part of S1 of dn_wait.h, or step S2. */
static dn_wait_end_t dn_wait_nap(dn_port_t *port, dn_wait_t *wait, uint64_t now)
{
    const int blind = 0 != (wait->flags & DN_WAIT_BLIND);
    uint32_t *bell = port->bell;

    if (0 == wait->odd) {
        if (dn_wait_has_heard(port, wait)) {
            /* Whatever the caller waits for, something has come that was taken elsewhere. */
            dn_wait_restart(wait);
            return DN_WAIT_LOOK;
        }
        wait->odd = NULL == bell ? 1 : dn_bell_set(bell);
        wait->fenced = NULL != bell && dn_bell_fence_all();
        wait->looked = 0;
    }
    if (!wait->looked) {
        const int seen = dn_port_poll_all(port);

        if (0 > seen) {
            /* Whoever has the lock receives, or this thread is in a handler. */
            (void) sched_yield();
            return DN_WAIT_YIELDED;
        }
        wait->looked = 1;
        if (0 < seen) {
            dn_wait_restart(wait);
        }
        return DN_WAIT_LOOK;
    }
    const uint32_t us = blind || wait->fenced ? dn_wait_nap_us(wait, now, blind) : DN_WAIT_NAP_MIN_US;
    dn_port_tell_sleep(port);
    const dn_wait_end_t end = dn_wait_sleep(bell, wait->odd, us);
    /* What was on its way at S0 has come by now. */
    wait->fenced = 1;
    if (DN_WAIT_WOKEN == end || 0 < dn_port_poll_all(port)) {
        dn_wait_restart(wait);
    }
    return end;
}

dn_wait_end_t dn_wait(dn_port_t *port, dn_wait_t *wait, uint64_t steps, unsigned flags)
{
    const dn_wait_policy_t policy = (dn_wait_policy_t) port->config.wait;
    dn_wait_end_t end = DN_WAIT_LOOK;

    if (DN_WAIT_SPIN == policy && 0 == (flags & DN_WAIT_SERVES)) {
        return end;
    }
    uint64_t now = dn_clock_ns();
    if (0 == wait->began_ns || steps != wait->steps
        || (0 != (flags & DN_WAIT_TIGHT) && DN_WAIT_GAP_NS < now - wait->left_ns)) {
        if (!dn_wait_begin(port, wait, steps, now)) {
            (void) sched_yield();
            return DN_WAIT_YIELDED;
        }
    }
    wait->flags |= flags & ~(unsigned) DN_WAIT_CROWDED;
    if (dn_wait_is_due(port, wait, now)) {
        end = dn_wait_nap(port, wait, now);
    } else if (DN_WAIT_YIELD == policy || 0 != ((wait->flags | flags) & (DN_WAIT_SHARED | DN_WAIT_CROWDED))) {
        wait->yields++;
        (void) sched_yield();
        end = DN_WAIT_YIELDED;
    }
    if (DN_WAIT_LOOK != end) {
        now = dn_clock_ns();
    }
    wait->left_ns = now;
    return end;
}

void dn_wait_ring(const dn_port_t *port)
{
    if (NULL != port->bell) {
        dn_bell_touch(port->bell);
    }
}
