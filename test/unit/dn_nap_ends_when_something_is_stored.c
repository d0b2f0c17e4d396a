/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Who sleeps over a tree's line, or any word that a peer stores, is woken: also when the word is stored between the last look
 * and the sleep, and when nobody rings.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <pthread.h>
#include <sched.h>

#include "dn_atomic.h"
#include "dn_device.h"
#include "dn_nap.h"
#include "dn_tree_forest.h"

enum { YIELDS = 3, ROUNDS = 200 };

typedef struct pair {
    forest_t forest;
    uint64_t off;
    uint64_t *word; /**< of port 0, stored by port 1 */
    uint32_t *bell; /**< of port 0 */
} pair_t;

static void pair_open(pair_t *pair)
{
    void *word;

    forest_open(&pair->forest, 2);
    assert_int_equal(dn_llcm_alloc(pair->forest.port[0], sizeof(uint64_t), &pair->off, &word), DN_OK);
    pair->word = word;
    pair->bell = dn_bell(pair->forest.port[0]);
    assert_non_null(pair->bell);
}

static void store(const pair_t *pair, uint64_t value)
{
    assert_int_equal(dn_aotf(pair->forest.peer[1][0], pair->off, value, sizeof(value)), DN_OK);
}

/** Turns in vain, until the next one sleeps. */
static void tire(const pair_t *pair, dn_nap_t *nap)
{
    for (int i = 0; i < YIELDS; i++) {
        assert_false(dn_nap_is_due(nap, YIELDS));
        assert_int_equal(dn_nap(nap, pair->bell, 0, YIELDS), DN_NAP_LOOK);
    }
    assert_true(dn_nap_is_due(nap, YIELDS));
    assert_int_equal(dn_nap(nap, pair->bell, 0, YIELDS), DN_NAP_LOOK);
}

/** A ring wakes who was about to sleep; it looks again before it sleeps again. */
static void wake_once(const pair_t *pair, dn_nap_t *nap)
{
    dn_wake(pair->forest.peer[1][0]);
    assert_int_equal(dn_nap(nap, pair->bell, 0, YIELDS), DN_NAP_WOKEN);
    assert_int_equal(dn_nap(nap, pair->bell, 0, YIELDS), DN_NAP_LOOK);
}

static void a_store_after_the_last_look_is_not_slept_over(void **state)
{
    dn_nap_t nap = {0};
    pair_t pair;

    pair_open(&pair);
    tire(&pair, &nap);
    /* The last look would be here. */
    store(&pair, 1);
    wake_once(&pair, &nap);
    assert_int_equal(dn_load_acquire(pair.word), 1);
    forest_close(&pair.forest);
}

static void a_sleep_ends_though_nobody_rings(void **state)
{
    dn_nap_t nap = {0};
    pair_t pair;

    pair_open(&pair);
    tire(&pair, &nap);
    store(&pair, 1);
    assert_int_equal(dn_nap(&nap, pair.bell, 0, YIELDS), DN_NAP_SLEPT);
    assert_int_equal(dn_load_acquire(pair.word), 1);
    assert_int_equal(dn_nap(&nap, NULL, 0, YIELDS), DN_NAP_SLEPT);
    forest_close(&pair.forest);
}

static void sleeps_grow_unless_they_are_kept_short(void **state)
{
    dn_nap_t nap = {0};

    assert_int_equal(dn_nap(&nap, NULL, 0, 0), DN_NAP_SLEPT);
    const uint32_t first = nap.slept_us;
    assert_int_equal(dn_nap(&nap, NULL, 0, 0), DN_NAP_SLEPT);
    assert_true(2 * first < nap.slept_us);
    dn_nap_keep_short(&nap);
    assert_int_equal(dn_nap(&nap, NULL, 0, 0), DN_NAP_SLEPT);
    assert_int_equal(nap.slept_us, first);
}

static void who_goes_on_yields_first(void **state)
{
    dn_nap_t nap = {0};
    pair_t pair;

    pair_open(&pair);
    tire(&pair, &nap);
    assert_int_equal(dn_nap(&nap, pair.bell, 1, YIELDS), DN_NAP_LOOK);
    assert_false(dn_nap_is_due(&nap, YIELDS));
    dn_nap_restart(&nap);
    assert_int_equal(dn_nap(&nap, pair.bell, 1, YIELDS), DN_NAP_LOOK);
    assert_false(dn_nap_is_due(&nap, YIELDS));
    forest_close(&pair.forest);
}

static void who_does_not_sleep_is_not_rung_for(void **state)
{
    pair_t pair;

    pair_open(&pair);
    const uint32_t before = *pair.bell;
    dn_wake(pair.forest.peer[1][0]);
    assert_int_equal(*pair.bell, before);
    forest_close(&pair.forest);
}

/** Between a look at the bell and the ring somebody else may ring, and the sleeper be about to sleep again. */
static void who_rings_late_is_heard(void **state)
{
    dn_nap_t nap = {0};
    pair_t pair;

    pair_open(&pair);
    tire(&pair, &nap);
    const uint32_t seen = dn_load_acquire_u32(pair.bell);
    wake_once(&pair, &nap);
    dn_bell_ring(pair.bell, seen);
    assert_int_equal(dn_nap(&nap, pair.bell, 0, YIELDS), DN_NAP_WOKEN);
    /* Nobody sleeps now: it is as it was. */
    const uint32_t even = dn_load_acquire_u32(pair.bell);
    dn_bell_ring(pair.bell, seen);
    assert_int_equal(dn_load_acquire_u32(pair.bell), even);
    forest_close(&pair.forest);
}

/** Store and ring as soon as the other is about to sleep, each time. */
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
        dn_wake(pair->forest.peer[1][0]);
    }
    return NULL;
}

static void sleepers_are_woken_each_time(void **state)
{
    pthread_t thread;
    pair_t pair;

    pair_open(&pair);
    assert_int_equal(pthread_create(&thread, NULL, ring, &pair), 0);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        dn_nap_t nap = {0};
        while (dn_load_acquire(pair.word) < round) {
            (void) dn_nap(&nap, pair.bell, 0, YIELDS);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    forest_close(&pair.forest);
}

/** The second of two comes to a barrier when the first sleeps. */
static void *come_late(void *arg)
{
    const pair_t *pair = arg;

    while (0 == dn_load_acquire_u32(pair->bell) % 2) {
        sched_yield();
    }
    dn_status_t status = dn_tree_barrier(pair->forest.tree[1]);
    while (DN_INPROGRESS == status) {
        status = dn_tree_test(pair->forest.tree[1]);
    }
    return DN_OK == status ? arg : NULL;
}

static void a_line_wakes_who_waits_for_it(void **state)
{
    dn_nap_t nap = {0};
    pthread_t thread;
    pair_t pair;
    void *done;

    pair_open(&pair);
    pair.forest.config = (dn_tree_config_t){.radix = 8, .depth = 4};
    forest_plant(&pair.forest);
    dn_tree_set_wakes(pair.forest.tree[1], 1);
    dn_status_t status = dn_tree_barrier(pair.forest.tree[0]);
    tire(&pair, &nap);
    assert_int_equal(dn_tree_test(pair.forest.tree[0]), DN_INPROGRESS);
    assert_int_equal(pthread_create(&thread, NULL, come_late, &pair), 0);
    while (DN_INPROGRESS == status) {
        (void) dn_nap(&nap, pair.bell, dn_tree_steps(pair.forest.tree[0]), YIELDS);
        status = dn_tree_test(pair.forest.tree[0]);
    }
    assert_int_equal(status, DN_OK);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_non_null(done);
    /* It was rung for: nobody else makes the bell even. */
    assert_int_equal(dn_load_acquire_u32(pair.bell) % 2, 0);
    forest_fell(&pair.forest);
    forest_close(&pair.forest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_after_the_last_look_is_not_slept_over),
        cmocka_unit_test(a_sleep_ends_though_nobody_rings),
        cmocka_unit_test(sleeps_grow_unless_they_are_kept_short),
        cmocka_unit_test(who_goes_on_yields_first),
        cmocka_unit_test(who_does_not_sleep_is_not_rung_for),
        cmocka_unit_test(who_rings_late_is_heard),
        cmocka_unit_test(sleepers_are_woken_each_time),
        cmocka_unit_test(a_line_wakes_who_waits_for_it),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
