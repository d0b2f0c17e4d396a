/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Long messages go the way that takes less time, whichever that is; a disturbance changes little, a lasting change is
 * noticed, and the slower way costs 5 percent of the time or less.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_pace.h"

/** Nanoseconds of a message, by way. */
typedef struct speed {
    uint64_t ns[DN_PACE_WAYS];
} speed_t;

static uint64_t now = 1;

/** One message after the other. @return how many went by DN_PACE_PIECES; in *lost_p, time beyond the faster way's. */
static unsigned run(dn_pace_t *pace, size_t len, const speed_t *speed, unsigned messages, uint64_t *lost_p)
{
    const uint64_t least = speed->ns[0] < speed->ns[1] ? speed->ns[DN_PACE_PULL] : speed->ns[DN_PACE_PIECES];
    unsigned pieces = 0;

    *lost_p = 0;
    for (unsigned i = 0; i < messages; i++) {
        const uint64_t started = now;
        const enum dn_pace_way way = dn_pace_choose(pace, DN_PACE_STREAM_AUTO, len);

        assert_true(DN_PACE_PULL == way || DN_PACE_PIECES == way);
        now += speed->ns[way];
        dn_pace_learn(pace, way, len, started, now);
        pieces += DN_PACE_PIECES == way;
        *lost_p += speed->ns[way] - least;
        now += 1000;
    }
    return pieces;
}

static void each_way_is_tried_first(void **state)
{
    const speed_t speed = {{1000, 1000}};
    dn_pace_t pace = {0};
    uint64_t lost;

    assert_int_equal(run(&pace, 65536, &speed, DN_PACE_WAYS * DN_PACE_TRIES, &lost), DN_PACE_TRIES);
}

static void faster_way_wins_and_trying_is_cheap(void **state)
{
    static const speed_t speed[] = {
        {{1000, 5000}}, {{5000, 1000}}, {{1000, 1100}}, {{1200, 1000}}, {{1000, 90000}}};
    uint64_t lost;

    for (unsigned i = 0; i < sizeof(speed) / sizeof(speed[0]); i++) {
        for (size_t len = 16384; len <= (size_t) 1 << 33; len *= 8) {
            dn_pace_t pace = {0};
            (void) run(&pace, len, &speed[i], DN_PACE_WAYS * DN_PACE_TRIES, &lost);
            const unsigned pieces = run(&pace, len, &speed[i], 20000, &lost);
            const int fast = speed[i].ns[DN_PACE_PIECES] < speed[i].ns[DN_PACE_PULL];
            assert_in_range(fast ? 20000 - pieces : pieces, 1, 20000 / 62);
            assert_true(lost <= 20000 * (uint64_t) 1000 * 5 / 100);
        }
    }
}

static void lasting_change_is_noticed(void **state)
{
    const speed_t before = {{1000, 3000}};
    const speed_t after = {{9000, 3000}};
    dn_pace_t pace = {0};
    uint64_t lost;

    (void) run(&pace, 65536, &before, 1000, &lost);
    (void) run(&pace, 65536, &after, 1000, &lost);
    assert_in_range(run(&pace, 65536, &after, 1000, &lost), 980, 1000);
    (void) run(&pace, 65536, &before, 5000, &lost);
    assert_in_range(run(&pace, 65536, &before, 1000, &lost), 0, 20);
}

static void one_disturbance_changes_nothing(void **state)
{
    const speed_t speed = {{1000, 1500}};
    const speed_t disturbed = {{3000000, 1500}};
    dn_pace_t pace = {0};
    uint64_t lost;

    (void) run(&pace, 65536, &speed, 100, &lost);
    (void) run(&pace, 65536, &disturbed, 1, &lost);
    assert_in_range(run(&pace, 65536, &speed, 100, &lost), 0, 3);
}

static void lengths_are_judged_apart(void **state)
{
    const speed_t small = {{3000, 1000}};
    const speed_t large = {{1000, 3000}};
    dn_pace_t pace = {0};
    uint64_t lost;

    for (int i = 0; i < 10; i++) {
        (void) run(&pace, 32768, &small, 100, &lost);
        (void) run(&pace, 1 << 20, &large, 100, &lost);
    }
    assert_in_range(run(&pace, 32768, &small, 100, &lost), 97, 100);
    assert_in_range(run(&pace, 1 << 20, &large, 100, &lost), 0, 3);
}

/** Messages that begin together end one after the other: each took the time since the one before. */
static void window_is_timed_by_its_ends(void **state)
{
    dn_pace_t pace = {0};
    dn_pace_t alone = {0};

    for (uint64_t i = 1; i <= 64; i++) {
        dn_pace_learn(&pace, DN_PACE_PIECES, 65536, 1000, 1000 + i * 500);
    }
    dn_pace_learn(&alone, DN_PACE_PIECES, 65536, 1000, 1500);
    assert_true(pace.class[2].cost[DN_PACE_PIECES] == alone.class[2].cost[DN_PACE_PIECES]);
}

/** A window is chosen for before any of it has ended: the kernel's copy, which ends at once, until pieces are known. */
static void unknown_way_waits_for_its_first_message(void **state)
{
    dn_pace_t pace = {0};
    unsigned pieces = 0;

    for (int i = 0; i < 64; i++) {
        const enum dn_pace_way way = dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 65536);

        pieces += DN_PACE_PIECES == way;
        if (DN_PACE_PULL == way) {
            dn_pace_learn(&pace, way, 65536, now, now + 1000);
            now += 1000;
        }
    }
    assert_int_equal(pieces, DN_PACE_TRIES);
}

static void user_decides_where_asked_to(void **state)
{
    const speed_t speed = {{1000, 5000}};
    dn_pace_t pace = {0};
    uint64_t lost;

    (void) run(&pace, 65536, &speed, 100, &lost);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_NEVER, 65536), DN_PACE_PULL);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_ALWAYS, 65536), DN_PACE_PIECES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_is_tried_first),
        cmocka_unit_test(faster_way_wins_and_trying_is_cheap),
        cmocka_unit_test(lasting_change_is_noticed),
        cmocka_unit_test(one_disturbance_changes_nothing),
        cmocka_unit_test(lengths_are_judged_apart),
        cmocka_unit_test(window_is_timed_by_its_ends),
        cmocka_unit_test(unknown_way_waits_for_its_first_message),
        cmocka_unit_test(user_decides_where_asked_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
