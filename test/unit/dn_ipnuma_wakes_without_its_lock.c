/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Nobody is woken under the device's lock: neither the service thread, nor a sleeping thread of the program. Who is woken may want the lock at
 * once. The test stands between the device and the functions that lock and wake.
 */
#include "dn_config.h"

#include "dn_unit_ipnuma.h"

#include <sched.h>
#include <time.h>

/** Longest time until something has been woken. */
#define LIMIT_NS UINT64_C(30000000000)

static dn_port_t *port[2]; /**< port 1 is the one that polls and sleeps */
static dn_peer_t *peer;    /**< port 1, as port 0 has it */
static uint64_t off;       /**< of a word there */

static const pthread_mutex_t *lock_of[2]; /**< of the devices; set before their threads start */
static _Thread_local int held;            /**< locks of devices that this thread holds */
static uint64_t calls, rings,
    under; /**< calls of threads, rings of bells, and how many of both under a lock */

static int is_of_a_device(const pthread_mutex_t *lock)
{
    return lock == lock_of[0] || lock == lock_of[1];
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    const int result = __real_pthread_mutex_lock(lock);

    held += is_of_a_device(lock);
    return result;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    held -= is_of_a_device(lock);
    return __real_pthread_mutex_unlock(lock);
}

static void wake(uint64_t *count)
{
    (void) dn_fetch_add_relaxed(count, 1);
    (void) dn_fetch_add_relaxed(&under, 0 != held);
}

void __real_dn_thread_call(int event);
void __wrap_dn_thread_call(int event);
void __wrap_dn_thread_call(int event)
{
    wake(&calls);
    __real_dn_thread_call(event);
}

void __real_dn_bell_ring(uint32_t *bell, uint32_t odd);
void __wrap_dn_bell_ring(uint32_t *bell, uint32_t odd);
void __wrap_dn_bell_ring(uint32_t *bell, uint32_t odd)
{
    wake(&rings);
    __real_dn_bell_ring(bell, odd);
}

static int open_both(void **state)
{
    void *word = NULL;

    (void) state;
    dn_unit_ipnuma_open(port, NULL);
    for (int i = 0; i < 2; i++) {
        lock_of[i] = &dn_unit_ipnuma(port[i])->lock;
    }
    assert_int_equal(dn_llcm_alloc(port[1], sizeof(uint64_t), &off, &word), DN_OK);
    peer = dn_unit_ipnuma_meet(port);
    return 0;
}

static int close_both(void **state)
{
    (void) state;
    dn_close(port[1]);
    dn_close(port[0]);
    assert_int_equal(dn_load_relaxed(&under), 0);
    return 0;
}

static void store(void)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(peer, off, 1, sizeof(uint64_t)))) {
        dn_progress(port[0]);
    }
    assert_int_equal(status, DN_OK);
}

/** The thread listens, and has to keep the time of what a store has sent. */
static void the_thread_is_called_behind_a_store(void **state)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const uint64_t until = dn_clock_ns() + LIMIT_NS, before = dn_load_relaxed(&calls);

    (void) state;
    while (before == dn_load_relaxed(&calls) && dn_clock_ns() < until) {
        /* The thread tells nobody that it listens. */
        (void) nanosleep(&pause, NULL);
        store();
    }
    assert_int_not_equal(dn_load_relaxed(&calls), before);
}

/** The thread naps, and has to listen for a program that goes to sleep. */
static void the_thread_is_called_behind_a_hand_on(void **state)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    int called = 0;

    (void) state;
    while (!called && dn_clock_ns() < until) {
        store();
        dn_progress(port[0]);
        dn_progress(port[1]);
        if (dn_unit_ipnuma_naps(port[1])) {
            /* Stores call the thread, too. */
            const uint64_t before = dn_load_relaxed(&calls);
            dn_port_tell_sleep(port[1]);
            called = before != dn_load_relaxed(&calls);
        }
        (void) sched_yield();
    }
    assert_true(called);
}

/** Whoever reads rings: the program, or the thread. */
static void the_bell_is_rung_behind_a_turn(void **state)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS, before = dn_load_relaxed(&rings);

    (void) state;
    while (before == dn_load_relaxed(&rings) && dn_clock_ns() < until) {
        (void) dn_bell_set(dn_unit_ipnuma(port[1])->iface.bell);
        store();
        dn_progress(port[1]);
        (void) sched_yield();
    }
    assert_int_not_equal(dn_load_relaxed(&rings), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_thread_is_called_behind_a_store, open_both, close_both),
        cmocka_unit_test_setup_teardown(the_thread_is_called_behind_a_hand_on, open_both, close_both),
        cmocka_unit_test_setup_teardown(the_bell_is_rung_behind_a_turn, open_both, close_both),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
