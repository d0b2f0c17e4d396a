/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The service thread naps while the program polls, even if a wait that has ended left the bell odd. A program that goes to sleep tells the
 * thread, which reads from then on.
 */
#include "dn_config.h"

#include "dn_unit_ipnuma.h"

#include <sched.h>
#include <sys/timerfd.h>
#include <time.h>

/** Turns of the program for which the thread has to nap, and the longest time until it does. */
enum { TURNS = 100, MOST_S = 30 };

static dn_port_t *port[2]; /**< port 1 is the one that polls and sleeps */
static dn_peer_t *peer;
static uint64_t off, *word;

static uint64_t limit_ns(void)
{
    return dn_clock_ns() + MOST_S * UINT64_C(1000000000);
}

static int open_both(void **state)
{
    dn_config_t config;
    void *memory = NULL;

    (void) state;
    dn_config_init(&config);
    /* The thread looks after silent processes so rarely that this does not end a nap. */
    config.timeout_s = 86400;
    dn_unit_ipnuma_open(port, &config);
    assert_int_equal(dn_llcm_alloc(port[1], sizeof(*word), &off, &memory), DN_OK);
    word = memory;
    peer = dn_unit_ipnuma_meet(port);
    return 0;
}

static int close_both(void **state)
{
    (void) state;
    dn_close(port[1]);
    dn_close(port[0]);
    return 0;
}

/** Poll until the thread has napped for some turns. The bell is odd meanwhile. */
static void poll_until_it_naps(void)
{
    const uint64_t limit = limit_ns();
    int turns = 0;

    while (TURNS > turns) {
        (void) dn_bell_set(dn_bell(port[1]));
        dn_progress(port[1]);
        turns = dn_unit_ipnuma_naps(port[1]) ? turns + 1 : 0;
        if (0 == turns) {
            /* The thread sees that the program has polled when something wakes it. */
            dn_thread_call(dn_unit_ipnuma(port[1])->service.event);
            assert_true(dn_clock_ns() < limit);
        }
        (void) sched_yield();
    }
}

static void a_bell_left_odd_keeps_no_thread_reading(void **state)
{
    (void) state;
    poll_until_it_naps();
}

static void a_thread_that_is_told_of_a_sleep_reads(void **state)
{
    static const struct itimerspec never;
    const uint64_t limit = limit_ns();

    (void) state;
    poll_until_it_naps();
    /* The clock does not end this nap. */
    assert_int_equal(timerfd_settime(dn_unit_ipnuma(port[1])->service.lull.fd, 0, &never, NULL), 0);
    dn_port_tell_sleep(port[1]);
    assert_int_equal(dn_aotf(peer, off, 1, sizeof(*word)), DN_OK);
    while (1 != dn_load_acquire(word)) {
        dn_progress(port[0]);
        (void) sched_yield();
        assert_true(dn_clock_ns() < limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bell_left_odd_keeps_no_thread_reading, open_both, close_both),
        cmocka_unit_test_setup_teardown(a_thread_that_is_told_of_a_sleep_reads, open_both, close_both),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
