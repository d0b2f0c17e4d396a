/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A sleeper over a tree's line, a message, or any word that a peer stores, is woken: also when the word is stored between the last
 * look and the sleep. And each policy does what it says.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "dn_atomic.h"
#include "dn_device.h"
#include "dn_tree_forest.h"
#include "dn_wait.h"
#include "port/dn_port.h"

enum {
    ROUNDS = 200,
    EDGE_ROUNDS = 100000,
    SLEEPS = 10000,
    TRIES = 10,
    LITTLE_MS = 30,
    CHANNEL = DN_CHAN_USER
};

typedef struct pair {
    forest_t forest;
    uint64_t off;
    uint64_t *word; /**< of port 0, stored by port 1 */
    uint32_t *bell; /**< of port 0 */
    uint32_t odd;   /**< as a late thread found it */
} pair_t;

static void pair_open(pair_t *pair, dn_wait_policy_t policy)
{
    void *word;

    forest_open(&pair->forest, 2);
    assert_int_equal(dn_llcm_alloc(pair->forest.port[0], sizeof(uint64_t), &pair->off, &word), DN_OK);
    pair->forest.port[0]->config.wait = policy;
    pair->word = word;
    pair->bell = dn_bell(pair->forest.port[0]);
    assert_non_null(pair->bell);
}

static void store(const pair_t *pair, uint64_t value)
{
    assert_int_equal(dn_aotf(pair->forest.peer[1][0], pair->off, value, sizeof(value)), DN_OK);
}

static dn_wait_end_t turn(const pair_t *pair, dn_wait_t *wait)
{
    return dn_wait(pair->forest.port[0], wait, 0, 0);
}

static uint64_t clock_ns(clockid_t which)
{
    struct timespec now;

    assert_int_equal(clock_gettime(which, &now), 0);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/** Turns in vain, until the next one sleeps. */
static void tire(const pair_t *pair, dn_wait_t *wait)
{
    do {
        const dn_wait_end_t end = turn(pair, wait);

        assert_true(DN_WAIT_LOOK == end || DN_WAIT_YIELDED == end);
    } while (!wait->looked);
    assert_int_equal(dn_load_acquire_u32(pair->bell) % 2, 1);
}

static void a_store_after_the_last_look_is_not_slept_over(void **state)
{
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    tire(&pair, &wait);
    /* The last look would be here. */
    store(&pair, 1);
    assert_int_equal(turn(&pair, &wait), DN_WAIT_WOKEN);
    assert_int_equal(dn_load_acquire(pair.word), 1);
    /* After a wake there is more to come: it does not sleep again soon. */
    assert_int_equal(wait.began_ns, 0);
    forest_close(&pair.forest);
}

static void handle(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    unsigned *messages = arg;

    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    ++*messages;
}

/** What has come before the bell is odd is found by the wait's own look, in whichever ring it lies. */
static void the_last_look_finds_messages(void **state)
{
    unsigned messages = 0;
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    assert_int_equal(dn_handler_set(pair.forest.port[0], CHANNEL, handle, &messages), DN_OK);
    assert_in_range(turn(&pair, &wait), DN_WAIT_LOOK, DN_WAIT_YIELDED);
    wait.began_ns -= 2 * DN_WAIT_SPIN_NS;
    assert_int_equal(dn_botf(pair.forest.peer[1][0], CHANNEL, 0, NULL, 0, NULL, 0), DN_OK);
    assert_int_equal(turn(&pair, &wait), DN_WAIT_LOOK);
    assert_int_equal(messages, 1);
    assert_int_equal(wait.began_ns, 0);
    forest_close(&pair.forest);
}

/** Each call that gives a peer something rings. */
static void each_way_rings(void **state)
{
    enum { WAYS = 6 };
    const uint64_t line[DN_AOTF_LINE_MAX / sizeof(uint64_t)] = {0};
    unsigned messages = 0;
    dn_segment_t *segment;
    dn_window_t window;
    dn_key_t key;
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    dn_peer_t *peer = pair.forest.peer[1][0];
    assert_int_equal(dn_handler_set(pair.forest.port[0], CHANNEL, handle, &messages), DN_OK);
    assert_int_equal(dn_segment_alloc(pair.forest.port[0], sizeof(line), &segment), DN_OK);
    dn_segment_key(segment, &key);
    const dn_xfer_t xfer = {.local = (void *) (uintptr_t) line, .key = &key, .len = sizeof(line)};
    for (int way = 0; way < WAYS; way++) {
        const uint32_t odd = dn_bell_set(pair.bell);

        switch (way) {
        case 0:
            store(&pair, 1);
            break;
        case 1:
            assert_int_equal(dn_aotf_line(peer, pair.off, line, sizeof(line), 1), DN_OK);
            break;
        case 2:
            assert_int_equal(dn_botf(peer, CHANNEL, 0, line, sizeof(line), NULL, 0), DN_OK);
            break;
        case 3:
            assert_int_equal(dn_botf_reserve(peer, sizeof(line), &window), DN_OK);
            dn_botf_kick(peer, &window, CHANNEL, 0, sizeof(line));
            break;
        case 4:
            assert_int_equal(dn_push(peer, &xfer), DN_OK);
            break;
        default:
            assert_int_equal(dn_fetch_add(peer, &key, 0, sizeof(uint64_t), 1, NULL, NULL), DN_OK);
            break;
        }
        if (odd + 1 != dn_load_acquire_u32(pair.bell)) {
            fail_msg("way %d does not ring", way);
        }
    }
    dn_segment_free(segment);
    forest_close(&pair.forest);
}

/** Room in a ring is something to wait for, too. */
static void credit_rings(void **state)
{
    unsigned messages = 0;
    unsigned sent = 0;
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    assert_int_equal(dn_handler_set(pair.forest.port[1], CHANNEL, handle, &messages), DN_OK);
    while (DN_OK == dn_botf(pair.forest.peer[0][1], CHANNEL, 0, NULL, 0, NULL, 0)) {
        sent++;
    }
    const uint32_t odd = dn_bell_set(pair.bell);
    while (messages < sent) {
        (void) dn_progress(pair.forest.port[1]);
    }
    assert_int_equal(dn_load_acquire_u32(pair.bell), odd + 1);
    forest_close(&pair.forest);
}

/** Sleeps grow with the time waited; what cannot ring keeps them short. */
static void a_sleep_takes_its_part(void **state)
{
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    tire(&pair, &wait);
    wait.began_ns = now_ns() - UINT64_C(4000000000);
    uint64_t began = now_ns();
    assert_int_equal(turn(&pair, &wait), DN_WAIT_SLEPT);
    const uint64_t longest = now_ns() - began;
    assert_in_range(longest, DN_WAIT_NAP_MAX_US * 1000 / 2, UINT64_MAX);
    /* The bell stays as it is: no ring was missed. */
    assert_int_equal(dn_load_acquire_u32(pair.bell) % 2, 1);
    /* A loaded machine makes sleeps longer: one of many tells. */
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < SLEEPS && shortest > longest / 2; i++) {
        began = now_ns();
        assert_int_equal(dn_wait(pair.forest.port[0], &wait, 0, DN_WAIT_BLIND), DN_WAIT_SLEPT);
        shortest = now_ns() - began < shortest ? now_ns() - began : shortest;
    }
    assert_in_range(shortest, 0, longest / 2);
    forest_close(&pair.forest);
}

static void a_wait_that_goes_on_begins_again(void **state)
{
    dn_wait_t wait = {0};
    dn_wait_end_t end;
    uint64_t steps = 0;
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    tire(&pair, &wait);
    /* A loaded machine makes a call so late that the wait is due again: then there is one more step. */
    do {
        assert_true(1000 > steps++);
        assert_in_range(dn_wait(pair.forest.port[0], &wait, steps, 0), DN_WAIT_LOOK, DN_WAIT_YIELDED);
        end = dn_wait(pair.forest.port[0], &wait, steps, DN_WAIT_CROWDED);
    } while (DN_WAIT_LOOK == end);
    assert_int_equal(end, DN_WAIT_YIELDED);
    assert_int_equal(wait.odd, 0);
    tire(&pair, &wait);
    forest_close(&pair.forest);
}

/** Somebody who computes between two calls does not wait. */
static void calls_now_and_then_do_not_sleep(void **state)
{
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    for (int i = 0; i < 50; i++) {
        const uint64_t began = now_ns();

        assert_in_range(dn_wait(pair.forest.port[0], &wait, 0, DN_WAIT_TIGHT), DN_WAIT_LOOK, DN_WAIT_YIELDED);
        while (now_ns() - began < 3 * DN_WAIT_GAP_NS) {
        }
    }
    assert_int_equal(dn_load_acquire_u32(pair.bell) % 2, 0);
    forest_close(&pair.forest);
}

/** CPU time of this thread in a wait of 100 ms, in milliseconds; it is longer until the thread has been about to sleep, if it is to. */
static uint64_t cost_ms(dn_wait_policy_t policy)
{
    const uint32_t sleeps = DN_WAIT_AUTO == policy || DN_WAIT_SLEEP == policy;
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, policy);
    const uint64_t end = now_ns() + 100 * UINT64_C(1000000);
    const uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (now_ns() < end || dn_load_acquire_u32(pair.bell) % 2 < sleeps) {
        (void) turn(&pair, &wait);
    }
    const uint64_t cost = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began) / 1000000;
    /* Who is not to sleep has never been about to. */
    assert_int_equal(dn_load_acquire_u32(pair.bell) % 2, sleeps);
    forest_close(&pair.forest);
    return cost;
}

/** The least of some waits, until one costs little: a virtual machine may count time that it did not have. */
static uint64_t least_cost_ms(dn_wait_policy_t policy)
{
    uint64_t least = cost_ms(policy);

    for (int again = 0; again < TRIES && LITTLE_MS < least; again++) {
        const uint64_t cost = cost_ms(policy);
        least = cost < least ? cost : least;
    }
    return least;
}

static void each_policy_costs_what_it_says(void **state)
{
    assert_in_range(least_cost_ms(DN_WAIT_AUTO), 0, LITTLE_MS);
    assert_in_range(least_cost_ms(DN_WAIT_SLEEP), 0, LITTLE_MS);
    (void) cost_ms(DN_WAIT_YIELD);
    (void) cost_ms(DN_WAIT_SPIN);
}

/** A thread that serves is about to sleep after one look, and a store wakes it, with every policy. */
static void a_thread_that_serves_sleeps_at_once(void **state)
{
    const dn_wait_policy_t policy[] = {DN_WAIT_AUTO, DN_WAIT_SPIN, DN_WAIT_YIELD, DN_WAIT_SLEEP};

    for (size_t i = 0; i < sizeof(policy) / sizeof(policy[0]); i++) {
        dn_wait_t wait = {0};
        pair_t pair;

        pair_open(&pair, policy[i]);
        assert_int_equal(dn_wait(pair.forest.port[0], &wait, 0, DN_WAIT_SERVES), DN_WAIT_LOOK);
        assert_int_equal(dn_load_acquire_u32(pair.bell) % 2, 1);
        /* Nothing comes: it sleeps until its time is over. */
        const uint64_t began = now_ns();
        assert_int_equal(dn_wait(pair.forest.port[0], &wait, 0, DN_WAIT_SERVES), DN_WAIT_SLEPT);
        assert_true(now_ns() - began >= 1000 * DN_WAIT_SERVES_US);
        store(&pair, 1);
        assert_int_equal(dn_wait(pair.forest.port[0], &wait, 0, DN_WAIT_SERVES), DN_WAIT_WOKEN);
        forest_close(&pair.forest);
    }
}

static void nobody_rings_for_a_process_that_does_not_sleep(void **state)
{
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    const uint32_t before = *pair.bell;
    dn_wake(pair.forest.peer[1][0]);
    assert_int_equal(*pair.bell, before);
    forest_close(&pair.forest);
}

/** Between a look at the bell and the ring somebody else may ring, and the sleeper be about to sleep again. */
static void a_late_ring_is_heard(void **state)
{
    dn_wait_t wait = {0};
    pair_t pair;

    pair_open(&pair, DN_WAIT_AUTO);
    tire(&pair, &wait);
    const uint32_t seen = dn_load_acquire_u32(pair.bell);
    dn_wake(pair.forest.peer[1][0]);
    assert_int_equal(turn(&pair, &wait), DN_WAIT_WOKEN);
    tire(&pair, &wait);
    dn_bell_ring(pair.bell, seen);
    assert_int_equal(turn(&pair, &wait), DN_WAIT_WOKEN);
    /* Nobody sleeps now: it is as it was. */
    const uint32_t even = dn_load_acquire_u32(pair.bell);
    dn_bell_ring(pair.bell, seen);
    assert_int_equal(dn_load_acquire_u32(pair.bell), even);
    forest_close(&pair.forest);
}

/** Store as soon as the other is about to sleep, each time. */
static void *ring(void *arg)
{
    const pair_t *pair = arg;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        while (0 == dn_load_acquire_u32(pair->bell) % 2) {
            sched_yield();
        }
        for (uint64_t i = 0; i < round; i++) {
            dn_pause();
        }
        store(pair, round);
    }
    return NULL;
}

static void sleepers_are_woken_each_time(void **state)
{
    pthread_t thread;
    pair_t pair;

    pair_open(&pair, DN_WAIT_SLEEP);
    assert_int_equal(pthread_create(&thread, NULL, ring, &pair), 0);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        dn_wait_t wait = {0};
        while (dn_load_acquire(pair.word) < round) {
            (void) turn(&pair, &wait);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    forest_close(&pair.forest);
}

/** Store for a sleeper at any moment of its falling asleep, and wait until it has seen that. */
static void *go_along_the_edge(void *arg)
{
    const pair_t *pair = arg;
    uint32_t spread = 1;

    for (uint64_t round = 1; round <= EDGE_ROUNDS; round++) {
        for (uint32_t i = 0; i < spread % 64; i++) {
            dn_pause();
        }
        spread = spread * 1664525u + 1013904223u;
        store(pair, round);
        while (dn_load_acquire(&pair->word[1]) < round) {
            sched_yield();
        }
    }
    return NULL;
}

/** A sleeper on the edge, each round with a sleep that would be of half a minute: a ring that is missed would show. The machine does not
 * stop the other thread for so long. */
static void no_ring_is_missed(void **state)
{
    struct timespec pause = {.tv_sec = 30};
    uint64_t missed = 0;
    pthread_t thread;
    void *word;
    uint64_t off;
    pair_t pair;

    forest_open(&pair.forest, 2);
    assert_int_equal(dn_llcm_alloc(pair.forest.port[0], 2 * sizeof(uint64_t), &off, &word), DN_OK);
    pair.off = off;
    pair.word = word;
    pair.bell = dn_bell(pair.forest.port[0]);
    if (!dn_bell_fence_all()) {
        forest_close(&pair.forest);
        skip();
    }
    assert_int_equal(pthread_create(&thread, NULL, go_along_the_edge, &pair), 0);
    for (uint64_t round = 1; round <= EDGE_ROUNDS; round++) {
        uint32_t odd = 0;

        while (dn_load_acquire(pair.word) < round) {
            if (0 == odd || odd != dn_load_acquire_u32(pair.bell)) {
                odd = dn_bell_set(pair.bell);
                (void) dn_bell_fence_all();
            } else if (!dn_bell_sleep(pair.bell, odd, &pause)) {
                /* One is enough to fail: the others are not to take as long. */
                pause = (struct timespec){.tv_nsec = 1000000};
                missed++;
            }
        }
        dn_store_release(&pair.word[1], round);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(missed, 0);
    forest_close(&pair.forest);
}

/** The second of two comes to a barrier when the first sleeps. */
static void *come_late(void *arg)
{
    pair_t *pair = arg;

    while (0 == (pair->odd = dn_load_acquire_u32(pair->bell)) % 2) {
        sched_yield();
    }
    dn_status_t status = dn_tree_barrier(pair->forest.tree[1]);
    while (DN_INPROGRESS == status) {
        status = dn_tree_test(pair->forest.tree[1]);
    }
    return DN_OK == status ? arg : NULL;
}

static void a_line_wakes_a_process_that_waits_for_it(void **state)
{
    dn_wait_t wait = {0};
    pthread_t thread;
    pair_t pair;
    void *done;

    pair_open(&pair, DN_WAIT_AUTO);
    pair.forest.config = (dn_tree_config_t){.radix = 8, .depth = 4};
    forest_plant(&pair.forest);
    dn_status_t status = dn_tree_barrier(pair.forest.tree[0]);
    tire(&pair, &wait);
    assert_int_equal(dn_tree_test(pair.forest.tree[0]), DN_INPROGRESS);
    assert_int_equal(pthread_create(&thread, NULL, come_late, &pair), 0);
    while (DN_INPROGRESS == status) {
        (void) dn_wait(pair.forest.port[0], &wait, dn_tree_steps(pair.forest.tree[0]), 0);
        status = dn_tree_test(pair.forest.tree[0]);
    }
    assert_int_equal(status, DN_OK);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_non_null(done);
    /* It was rung for: nobody else makes the bell even. It may be odd again, by a sleep that the line came before. */
    assert_int_not_equal(dn_load_acquire_u32(pair.bell), pair.odd);
    forest_fell(&pair.forest);
    forest_close(&pair.forest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_after_the_last_look_is_not_slept_over),
        cmocka_unit_test(the_last_look_finds_messages),
        cmocka_unit_test(each_way_rings),
        cmocka_unit_test(credit_rings),
        cmocka_unit_test(a_sleep_takes_its_part),
        cmocka_unit_test(a_wait_that_goes_on_begins_again),
        cmocka_unit_test(calls_now_and_then_do_not_sleep),
        cmocka_unit_test(each_policy_costs_what_it_says),
        cmocka_unit_test(a_thread_that_serves_sleeps_at_once),
        cmocka_unit_test(nobody_rings_for_a_process_that_does_not_sleep),
        cmocka_unit_test(a_late_ring_is_heard),
        cmocka_unit_test(sleepers_are_woken_each_time),
        cmocka_unit_test(no_ring_is_missed),
        cmocka_unit_test(a_line_wakes_a_process_that_waits_for_it),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
