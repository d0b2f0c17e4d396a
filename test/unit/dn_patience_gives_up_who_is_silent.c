/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Peers that are silent cost one limit together. A peer of which something moves is kept, whether the wait is for it or for another one. A
 * leaving much later begins anew. Time in which the waiting process itself stands still is not held against the peers.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_patience.h"

enum { PEERS = 3 };

static const uint64_t limit = UINT64_C(10000000000), step = UINT64_C(10000000);

static dn_patience_t patience;
static dn_patience_mark_t mark[PEERS];
/** dn_peer_moves() of each. */
static uint32_t moves[PEERS];
/** The clock of the test. */
static uint64_t now;

static int setup(void **state)
{
    patience = (dn_patience_t){.limit_ns = limit};
    memset(mark, 0, sizeof(mark));
    now = UINT64_C(1000) * limit;
    for (uint32_t i = 0; i < PEERS; i++) {
        /* Of long ago. */
        moves[i] = 7 + i;
    }
    return 0;
}

/** A wait for a peer looks, one step after the look before. @return whether the peer is to be given up. */
static bool look(unsigned peer)
{
    now += step;
    if (dn_patience_look(&patience, now)) {
        for (unsigned i = 0; i < PEERS; i++) {
            dn_patience_note(&patience, &mark[i], moves[i]);
        }
    }
    dn_patience_note(&patience, &mark[peer], moves[peer]);
    return dn_patience_is_over(&patience, &mark[peer]);
}

/** Wait for a peer, for the @p most looks at most. @return looks until it was given up. */
static unsigned wait_for(unsigned peer, unsigned most)
{
    unsigned looks = 1;

    dn_patience_begin(&patience, now);
    while (!look(peer) && looks < most) {
        looks++;
    }
    dn_patience_end(&patience);
    return looks;
}

static void check_limit(unsigned looks)
{
    /* Marks are read in units of some ms, and the first look sets them. */
    assert_in_range(looks, limit / step, limit / step + 3);
}

static void silent_peers_cost_one_limit(void **state)
{
    check_limit(wait_for(0, UINT32_MAX));
    assert_int_equal(wait_for(1, UINT32_MAX), 1);
    now += limit / 2; /* to disconnect */
    assert_int_equal(wait_for(2, UINT32_MAX), 1);
}

static void who_moves_is_kept(void **state)
{
    const unsigned long_ago = (unsigned) (limit / step * 10);

    dn_patience_begin(&patience, now);
    for (unsigned i = 0; i < long_ago; i++) {
        if (0 == i % (limit / step - 10)) {
            dn_patience_mark(&patience, &mark[0]);
        }
        assert_false(look(0));
        if (0 == i % (limit / step - 10)) {
            moves[1]++;
        }
    }
    /* Its pieces were noted by the tours. */
    assert_false(look(1));
    assert_true(look(2));
    dn_patience_end(&patience);
}

/** While the wait is for another peer, this one moves at the beginning only: it has no limit of its own, but for one tour. */
static void the_time_of_others_counts(void **state)
{
    (void) wait_for(0, 2);
    moves[1]++;
    check_limit(2 + wait_for(0, UINT32_MAX));
    assert_true(wait_for(1, UINT32_MAX) <= limit / step / DN_PATIENCE_TOURS + 3);
}

static void what_begins_to_wait_has_the_limit(void **state)
{
    check_limit(wait_for(0, UINT32_MAX));
    dn_patience_mark(&patience, &mark[1]);
    check_limit(wait_for(1, UINT32_MAX));
}

static void a_later_leaving_has_the_limit(void **state)
{
    check_limit(wait_for(0, UINT32_MAX));
    now += limit + step;
    moves[2]++;
    check_limit(wait_for(1, UINT32_MAX));
    assert_int_equal(wait_for(2, UINT32_MAX), 1);
}

/** Two threads wait at once: the clock is no faster. */
static void waits_at_once_share_the_clock(void **state)
{
    dn_patience_begin(&patience, now);
    now += step;
    dn_patience_begin(&patience, now);
    for (unsigned i = 0; i < limit / step - 10; i++) {
        assert_false(look(i % 2));
    }
    dn_patience_end(&patience);
    dn_patience_end(&patience);
    assert_int_equal(patience.waits, 0);
}

/** The waiting process stands still for three limits. A peer moves only when it goes on, and has the limit from there. */
static void who_waits_may_stand_still(void **state)
{
    dn_patience_begin(&patience, now);
    assert_false(look(0));
    now += 3 * limit;
    assert_false(look(0));
    moves[0]++;
    dn_patience_end(&patience);
    check_limit(wait_for(0, UINT32_MAX));
    assert_int_equal(wait_for(1, UINT32_MAX), 1);
}

static void the_clock_of_marks_may_wrap(void **state)
{
    patience.waited_ns = (UINT64_C(1) << (32 + DN_PATIENCE_SHIFT)) - limit / 2;
    check_limit(wait_for(0, UINT32_MAX));
    assert_int_equal(wait_for(1, UINT32_MAX), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(silent_peers_cost_one_limit, setup),
        cmocka_unit_test_setup(who_moves_is_kept, setup),
        cmocka_unit_test_setup(the_time_of_others_counts, setup),
        cmocka_unit_test_setup(what_begins_to_wait_has_the_limit, setup),
        cmocka_unit_test_setup(a_later_leaving_has_the_limit, setup),
        cmocka_unit_test_setup(waits_at_once_share_the_clock, setup),
        cmocka_unit_test_setup(who_waits_may_stand_still, setup),
        cmocka_unit_test_setup(the_clock_of_marks_may_wrap, setup),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
