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

/** A copy by the receiver alone is the slowest. */
#define SPEED(pull, pieces)                                                                   \
    {                                                                                         \
        {                                                                                     \
            [DN_PACE_PULL] = (pull), [DN_PACE_ALONE] = (pull) *3, [DN_PACE_PIECES] = (pieces) \
        }                                                                                     \
    }

static uint64_t now = 1;

/** One message after the other. @return how many went by this way; in *lost_p, time beyond the fastest way's. */
static unsigned run(dn_pace_t *pace, size_t len, const speed_t *speed, unsigned messages,
                    enum dn_pace_way counted, uint64_t *lost_p)
{
    uint64_t least = UINT64_MAX;
    unsigned went = 0;

    for (unsigned way = 0; way < DN_PACE_WAYS; way++) {
        least = speed->ns[way] < least ? speed->ns[way] : least;
    }
    *lost_p = 0;
    for (unsigned i = 0; i < messages; i++) {
        const uint64_t started = now;
        const enum dn_pace_way way = dn_pace_choose(pace, DN_PACE_STREAM_AUTO, len, DN_PACE_ANNOUNCED, 0);

        assert_in_range(way, 0, DN_PACE_WAYS - 1);
        now += speed->ns[way];
        dn_pace_learn(pace, way, len, started, now);
        went += counted == way;
        *lost_p += speed->ns[way] - least;
        now += 1000;
    }
    return went;
}

/** @return how many of the messages went by DN_PACE_PIECES. */
static unsigned run_pieces(dn_pace_t *pace, size_t len, const speed_t *speed, unsigned messages)
{
    uint64_t lost;

    return run(pace, len, speed, messages, DN_PACE_PIECES, &lost);
}

/** Messages until every way has had its first tries, where nothing is known of the cores. */
static unsigned all_tries(void)
{
    const dn_pace_t pace = {0};
    unsigned tries = 0;

    for (unsigned way = 0; way < DN_PACE_WAYS; way++) {
        tries += dn_pace_first_tries(&pace, (enum dn_pace_way) way, 65536);
    }
    return tries;
}

static void each_way_is_tried_first(void **state)
{
    const speed_t speed = {{1000, 1000, 1000}};
    uint64_t lost;

    for (size_t len = 16384; len <= (size_t) 1 << 24; len *= 2) {
        for (unsigned i = 0; i < DN_PACE_WAYS; i++) {
            const enum dn_pace_way way = (enum dn_pace_way) i;
            dn_pace_t pace = {0};

            assert_int_equal(run(&pace, len, &speed, all_tries(), way, &lost),
                             dn_pace_first_tries(&pace, way, len));
        }
    }
}

static void faster_way_wins_and_trying_is_cheap(void **state)
{
    static const struct {
        speed_t speed;
        enum dn_pace_way best;
    } of[] = {{{{1000, 5000, 5000}}, DN_PACE_PULL},  {{{5000, 5000, 1000}}, DN_PACE_PIECES},
              {{{5000, 1000, 5000}}, DN_PACE_ALONE}, {{{1100, 1000, 1100}}, DN_PACE_ALONE},
              {{{1000, 1100, 1100}}, DN_PACE_PULL},  {{{1200, 1300, 1000}}, DN_PACE_PIECES},
              {{{1000, 1200, 90000}}, DN_PACE_PULL}};
    enum { MANY = 150000 };
    uint64_t lost;

    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        for (size_t len = 16384; len <= (size_t) 1 << 33; len *= 8) {
            dn_pace_t pace = {0};
            (void) run(&pace, len, &of[i].speed, all_tries(), of[i].best, &lost);
            const unsigned best = run(&pace, len, &of[i].speed, MANY, of[i].best, &lost);
            assert_in_range(MANY - best, 1, MANY / 62);
            assert_true(lost <= MANY * (uint64_t) 1000 * 5 / 100);
        }
    }
}

static void lasting_change_is_noticed(void **state)
{
    const speed_t before = SPEED(1000, 3000);
    const speed_t after = SPEED(9000, 3000);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 65536, &before, 1000);
    (void) run_pieces(&pace, 65536, &after, 1000);
    assert_in_range(run_pieces(&pace, 65536, &after, 1000), 980, 1000);
    (void) run_pieces(&pace, 65536, &before, 20000);
    assert_in_range(run_pieces(&pace, 65536, &before, 1000), 0, 20);
}

static void one_disturbance_changes_nothing(void **state)
{
    const speed_t speed = SPEED(1000, 1500);
    const speed_t disturbed = SPEED(3000000, 1500);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 65536, &speed, 500);
    (void) run_pieces(&pace, 65536, &disturbed, 1);
    assert_in_range(run_pieces(&pace, 65536, &speed, 100), 0, 3);
}

/** The first message by the kernel meets memory that nobody has touched: the way is not judged by it. */
static void cold_memory_is_forgotten(void **state)
{
    const speed_t cold = SPEED(9000, 1500);
    const speed_t warm = SPEED(1000, 1500);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 65536, &cold, 1);
    (void) run_pieces(&pace, 65536, &warm, 500);
    assert_in_range(run_pieces(&pace, 65536, &warm, 100), 0, 4);
}

static void lengths_are_judged_apart(void **state)
{
    const speed_t small = SPEED(3000, 1000);
    const speed_t large = SPEED(1000, 3000);
    dn_pace_t pace = {0};

    for (int i = 0; i < 10; i++) {
        (void) run_pieces(&pace, 32768, &small, 100);
        (void) run_pieces(&pace, 1 << 20, &large, 100);
    }
    assert_in_range(run_pieces(&pace, 32768, &small, 100), 97, 100);
    assert_in_range(run_pieces(&pace, 1 << 20, &large, 100), 0, 3);
}

/** Messages that begin together end one after the other: each took the time since the one before. */
static void window_is_timed_by_its_ends(void **state)
{
    dn_pace_t pace = {0};
    dn_pace_t alone = {0};

    for (uint64_t i = 1; i <= 64; i++) {
        dn_pace_learn(&pace, DN_PACE_PIECES, 65536, 1000, 1000 + i * 500);
    }
    for (int i = 0; i <= DN_PACE_SETTLES; i++) {
        dn_pace_learn(&alone, DN_PACE_PIECES, 65536, 10000, 10500);
        alone.last = 0;
    }
    assert_true(pace.class[2].cost[DN_PACE_PIECES] == alone.class[2].cost[DN_PACE_PIECES]);
}

/** Messages that end at once have taken their time together: none of them counts as one that took none. */
static void messages_that_end_together_share_their_time(void **state)
{
    dn_pace_t pace = {0};

    for (int i = 0; i < DN_PACE_SETTLES; i++) {
        dn_pace_learn(&pace, DN_PACE_PIECES, 65536, 0, 1000);
    }
    for (int i = 1; i <= 4; i++) {
        dn_pace_learn(&pace, DN_PACE_PIECES, 65536, 1000, 5000 + (uint64_t) i);
    }
    assert_in_range((int) pace.class[2].cost[DN_PACE_PIECES], 15, 16);
}

/** A window is chosen for before any of it has ended: a copy of the kernel's, which ends at once, until pieces are known. */
static void unknown_way_waits_for_its_first_message(void **state)
{
    dn_pace_t pace = {0};
    unsigned pieces = 0;

    for (unsigned i = 0; i < 2 * all_tries(); i++) {
        const enum dn_pace_way way = dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 65536, DN_PACE_ANNOUNCED, 0);

        pieces += DN_PACE_PIECES == way;
        if (DN_PACE_PIECES != way) {
            dn_pace_learn(&pace, way, 65536, now, now + 1000);
            now += 1000;
        }
    }
    assert_int_equal(pieces, dn_pace_first_tries(&pace, DN_PACE_PIECES, 65536));
}

/** Where the kernel copies nothing, all goes in pieces, and nothing else is tried. */
static void way_that_never_works_is_not_tried_again(void **state)
{
    dn_pace_t pace = {0};
    unsigned pieces = 0;

    for (int i = 0; i < 20000; i++) {
        const enum dn_pace_way way = dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 65536, DN_PACE_ANNOUNCED, 0);

        pieces += DN_PACE_PIECES == way;
        if (DN_PACE_PIECES == way) {
            dn_pace_learn(&pace, way, 65536, now, now + 1000);
            now += 1000;
        }
    }
    assert_int_equal(pieces, 20000 - (DN_PACE_WAYS - 1) * DN_PACE_TRIES);
}

static void user_decides_where_asked_to(void **state)
{
    const speed_t speed = SPEED(1000, 5000);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 65536, &speed, 100);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_NEVER, 65536, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_PULL);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_ALWAYS, 65536, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_PIECES);
    }
}

/** More messages than a sender has announced before it hears what is wished. */
#define LATE_MOST 128u

/** Send messages that may flow as their receiver wishes; it is heard after @p late more, fewer than LATE_MOST. Of those that flow 16 of 64
 * are timed. @return how many went by this way. */
static unsigned run_flows(dn_pace_t *pace, size_t len, const speed_t *speed, unsigned messages, unsigned late,
                          enum dn_pace_way counted)
{
    static unsigned flowed;
    unsigned wishes[LATE_MOST];
    unsigned went = 0;

    for (unsigned i = 0; i < LATE_MOST; i++) {
        wishes[i] = (unsigned) dn_pace_wants_flow(pace, len);
    }
    for (unsigned i = 0; i < messages; i++) {
        const uint64_t started = now;
        const unsigned flows = wishes[i % LATE_MOST];
        const int timed = !flows || 16 > flowed++ % 64;
        const enum dn_pace_begin begin = !flows ? DN_PACE_HELD : timed ? DN_PACE_FLOWS : DN_PACE_UNTIMED;
        const enum dn_pace_way way = dn_pace_choose(pace, DN_PACE_STREAM_AUTO, len, begin, 0);

        assert_int_equal(flows, DN_PACE_PIECES == way);
        flowed = wishes[(i + late) % LATE_MOST] != (unsigned) dn_pace_wants_flow(pace, len) ? 0 : flowed;
        wishes[(i + 1 + late) % LATE_MOST] = (unsigned) dn_pace_wants_flow(pace, len);
        now += speed->ns[way];
        if (timed) {
            dn_pace_learn(pace, way, len, started, now);
        } else {
            dn_pace_skip(pace);
        }
        went += counted == way;
        now += 1000;
    }
    return went;
}

/** A sender that may let messages flow does so where that is faster, tries the rest, and announces them where that is. */
static void what_may_flow_does_where_that_is_faster(void **state)
{
    const speed_t flow = SPEED(3000, 1000);
    const speed_t pull = SPEED(1000, 3000);

    for (unsigned late = 0; late < 15; late += 7) {
        for (unsigned before = 0; before < 64; before += 9) {
            dn_pace_t pace = {0};

            assert_true(dn_pace_wants_flow(&pace, 65536));
            /* Others have flowed that nobody waited for. */
            for (unsigned i = 0; i < before; i++) {
                dn_pace_skip(&pace);
            }
            (void) run_flows(&pace, 65536, &flow, 2000, late, DN_PACE_PIECES);
            assert_in_range(run_flows(&pace, 65536, &flow, 120000, late, DN_PACE_PIECES), 114000, 119999);
            (void) run_flows(&pace, 65536, &pull, 3000, late, DN_PACE_PULL);
            assert_in_range(run_flows(&pace, 65536, &pull, 120000, late, DN_PACE_PULL), 114000, 119999);
        }
    }
    /* What is too long to flow is another matter. */
    assert_int_equal(dn_pace_flow_bit(65537), 0);
    assert_int_equal(dn_pace_flow_bit(65536) | dn_pace_flow_bit(16385) | dn_pace_flow_bit(1),
                     DN_PACE_FLOW_ALL);
}

/** A sender of a window has announced all of it before it hears that its messages may flow: that is no refusal. */
static void a_window_hears_late_that_it_may_flow(void **state)
{
    const speed_t flow = SPEED(3000, 1000);
    const speed_t pull = SPEED(1000, 3000);

    for (unsigned late = 63; late < LATE_MOST; late += 64) {
        dn_pace_t pace = {0};

        (void) run_flows(&pace, 65536, &pull, 2000, late, DN_PACE_PULL);
        (void) run_flows(&pace, 65536, &flow, 70000, late, DN_PACE_PIECES);
        assert_in_range(run_flows(&pace, 65536, &flow, 20000, late, DN_PACE_PIECES), 18000, 20000);
    }
}

/** What was never timed is not taken for something that does not work. */
static void messages_without_a_clock_are_no_tries(void **state)
{
    const speed_t flow = SPEED(3000, 1000);
    dn_pace_t pace = {0};

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 65536, DN_PACE_UNTIMED, 0),
                         DN_PACE_PIECES);
        dn_pace_skip(&pace);
    }
    assert_true(dn_pace_wants_flow(&pace, 65536));
    (void) run_flows(&pace, 65536, &flow, 1000, 0, DN_PACE_PIECES);
    assert_true(run_flows(&pace, 65536, &flow, 1000, 0, DN_PACE_PIECES) > 900);
}

/** A sender that cannot let messages flow is told again; then the others are tried, and PIECES no more. */
static void a_sender_that_cannot_flow_is_told_again(void **state)
{
    dn_pace_t pace = {0};
    unsigned told = 0;
    unsigned alone = 0;

    for (int i = 0; i < 1000; i++) {
        const enum dn_pace_way way = dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 32768, DN_PACE_HELD, 0);

        assert_int_not_equal(way, DN_PACE_PIECES);
        told += (unsigned) dn_pace_is_unmet(&pace, 32768);
        alone += DN_PACE_ALONE == way;
        dn_pace_learn(&pace, way, 32768, now, now + (DN_PACE_ALONE == way ? 1000 : 3000));
        now += 5000;
    }
    assert_int_equal(told, 1);
    assert_in_range(alone, 900, 999);
}

/** The same where PIECES are known to be the fastest. */
static void what_a_sender_cannot_do_keeps_nothing_else_from_being_known(void **state)
{
    const speed_t flow = SPEED(3000, 500);
    dn_pace_t pace = {0};
    unsigned pulls = 0;
    unsigned told = 0;

    (void) run_flows(&pace, 32768, &flow, 1000, 0, DN_PACE_PIECES);
    assert_true(dn_pace_wants_flow(&pace, 32768));
    pace.class[1].cost[DN_PACE_ALONE] = 1e6f;
    pace.class[1].known[DN_PACE_ALONE] = 0;
    for (int i = 0; i < 1000; i++) {
        const enum dn_pace_way way = dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 32768, DN_PACE_HELD, 0);

        assert_int_not_equal(way, DN_PACE_PIECES);
        pulls += DN_PACE_PULL == way;
        told += (unsigned) dn_pace_is_unmet(&pace, 32768);
        dn_pace_learn(&pace, way, 32768, now, now + (DN_PACE_ALONE == way ? 1000 : 3000));
        now += 5000;
    }
    assert_in_range(pulls, 0, 20);
    assert_in_range(told, 4, 6);
    assert_true(dn_pace_wants_flow(&pace, 32768));
}

/** The first pieces go through memory that is cold, and so do the first ones of a trial: these do not decide. */
static void pieces_are_judged_when_their_memory_is_warm(void **state)
{
    static const size_t lens[] = {65536, 131072, 262144, 524288, 1 << 20};

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        const unsigned cold = dn_pace_tries(DN_PACE_PIECES, lens[i]) - DN_PACE_TRIES;
        dn_pace_t pace = {0};
        unsigned pieces = 0;
        unsigned row = 0;

        for (unsigned k = 0; k < 4000; k++) {
            const enum dn_pace_way way =
                dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, lens[i], DN_PACE_ANNOUNCED, 0);
            const uint64_t started = now;

            /* What the caches hold of it is gone after a message that went otherwise. It is back before the last lap. */
            row = DN_PACE_PIECES == way ? row + 1 : 0;
            now += DN_PACE_PIECES != way ? 2000 : cold / 2 < row ? 1000 : 4000;
            dn_pace_learn(&pace, way, lens[i], started, now);
            now += 1000;
            pieces += DN_PACE_PIECES == way;
        }
        assert_in_range(pieces, 3800, 3999);
    }
}

/** Pieces that take twice as long though their memory may be warm: their trial is over after half of the way. */
static void a_trial_of_pieces_that_get_no_faster_is_short(void **state)
{
    const speed_t speed = SPEED(1000, 2000);
    const unsigned cold = dn_pace_tries(DN_PACE_PIECES, 16384) - DN_PACE_TRIES;
    dn_pace_t pace = {0};

    assert_in_range(run_pieces(&pace, 16384, &speed, 1500), cold / 2, cold / 2 + 40);
}

/** A message of which nothing is learnt but when it ended keeps nothing of the next one from being known. */
static void the_next_one_is_known_if_the_end_of_the_last_is(void **state)
{
    dn_pace_t pace = {0};

    for (int i = 0; i < 20; i++) {
        const enum dn_pace_way way =
            dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 1 << 20, DN_PACE_ANNOUNCED, 0);

        dn_pace_pass(&pace, now + 1000);
        dn_pace_learn(&pace, way, 1 << 20, now, now + 1000 + (1 << 20));
        assert_in_range(pace.class[6].cost[way], 1023, 1025);
        now += 2 << 20;
    }
}

/** Between cores that are far apart pieces take several times as long, and few go that way. */
static void pieces_that_are_hopeless_are_few(void **state)
{
    const speed_t speed = SPEED(1000, 3000);
    dn_pace_t pace = {0};
    const unsigned pieces = dn_pace_first_tries(&pace, DN_PACE_PIECES, 65536) + 2 * DN_PACE_TRIES;

    assert_in_range(run_pieces(&pace, 65536, &speed, 1500), DN_PACE_TRIES, pieces);
}

/** Lengths that are new begin with what is known of shorter ones, and find out what they have of their own. */
static void new_lengths_begin_with_what_is_known(void **state)
{
    const speed_t small = SPEED(9000, 1000);
    const speed_t large = SPEED(1000, 3000);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 65536, &small, all_tries());
    assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 131072, DN_PACE_ANNOUNCED, 0),
                     DN_PACE_PIECES);
    /* But not of much shorter ones. */
    assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 524288, DN_PACE_ANNOUNCED, 0), DN_PACE_PULL);
    assert_in_range(run_pieces(&pace, 131072, &large, 1000), 10, 600);
    assert_in_range(run_pieces(&pace, 131072, &large, 1000), 0, 20);
}

/** Trials that are lost become rare; they come soon where the best way has become slow, and another one may be better. */
static void trials_become_rare_until_something_changes(void **state)
{
    const speed_t speed = SPEED(1000, 1100);
    const speed_t slow = SPEED(2900, 1100);
    enum { MANY = 70000 };
    dn_pace_t pace = {0};
    uint64_t lost;

    (void) run_pieces(&pace, 131072, &speed, MANY);
    const unsigned pulls = run(&pace, 131072, &speed, MANY, DN_PACE_PULL, &lost);
    const unsigned trials = 2 * (DN_PACE_TRIES + dn_pace_tries(DN_PACE_PIECES, 131072));
    assert_in_range(pulls, MANY - 2 * trials, MANY - 1);
    /* Slower than known, and not yet than what is known of the other way. */
    pace.class[3].cost[DN_PACE_PIECES] *= 3;
    (void) run_pieces(&pace, 131072, &slow, 250);
    assert_true(run_pieces(&pace, 131072, &slow, 100) > 80);
}

/** Disturb pieces. @return messages that went another way before pieces were tried again, and came back. */
static unsigned disturb(dn_pace_t *pace, const speed_t *speed, const speed_t *disturbed)
{
    unsigned others = 0;

    (void) run_pieces(pace, 131072, disturbed, 10);
    while (1 > run_pieces(pace, 131072, speed, 1)) {
        others++;
    }
    (void) run_pieces(pace, 131072, speed, dn_pace_tries(DN_PACE_PIECES, 131072));
    assert_int_equal(run_pieces(pace, 131072, speed, 20), 20);
    return others;
}

/** Pieces that were disturbed for a while come back soon; later each time, where that happens again and again. */
static void pieces_that_were_disturbed_come_back(void **state)
{
    const speed_t speed = SPEED(2000, 1000);
    const speed_t disturbed = SPEED(2000, 5000);
    dn_pace_t pace = {0};

    (void) run_pieces(&pace, 131072, &speed, 2000);
    for (unsigned i = 0; i < 4; i++) {
        assert_in_range(disturb(&pace, &speed, &disturbed), (64u << i) - 10, 64u << i);
    }
    assert_in_range(run_pieces(&pace, 131072, &speed, 1000), 980, 1000);
}

/** The end of a message that no clock was read for hides how long the next one has taken. */
static void no_time_is_taken_across_a_message_without_one(void **state)
{
    dn_pace_t pace = {0};

    for (int i = 0; i <= DN_PACE_SETTLES; i++) {
        dn_pace_learn(&pace, DN_PACE_PULL, 65536, 1000, 2000);
    }
    const float before = pace.class[2].cost[DN_PACE_PULL];
    dn_pace_skip(&pace);
    dn_pace_learn(&pace, DN_PACE_PULL, 65536, 1000, 900000);
    assert_true(before == pace.class[2].cost[DN_PACE_PULL]);
    dn_pace_learn(&pace, DN_PACE_PULL, 65536, 1000, 900000 + 64 * 100);
    assert_true(before != pace.class[2].cost[DN_PACE_PULL]);
}

/** The first message goes; lines of its pieces take so long. */
static void look(dn_pace_t *pace, size_t len, const speed_t *speed, uint64_t ns)
{
    (void) run_flows(pace, len, speed, 1, 0, DN_PACE_PIECES);
    while (dn_pace_looks(pace)) {
        dn_pace_look(pace, ns);
    }
}

/** Where the cores are near, the first messages go in pieces until these have warmed their memory; then the other ways are tried, and the
 * fastest one is kept to. */
static void near_cores_begin_with_pieces(void **state)
{
    static const size_t lens[] = {16384, 32768, 65536};
    const speed_t flow = SPEED(2000, 1000);
    const speed_t pull = SPEED(1000, 2000);

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        const unsigned warm = dn_pace_tries(DN_PACE_PIECES, lens[i]);
        dn_pace_t pace = {0};
        dn_pace_t wrong = {0};

        look(&pace, lens[i], &flow, DN_PACE_NEAR_NS);
        assert_int_equal(dn_pace_first_tries(&pace, DN_PACE_PIECES, lens[i]), warm);
        assert_int_equal(run_flows(&pace, lens[i], &flow, warm - 1, 0, DN_PACE_PIECES), warm - 1);
        /* Those that are not timed are no tries: 16 of 64 are. */
        assert_in_range(run_flows(&pace, lens[i], &flow, 64 + 2 * DN_PACE_TRIES, 0, DN_PACE_PIECES), 0, 64);
        assert_in_range(run_flows(&pace, lens[i], &flow, 1000, 0, DN_PACE_PIECES), 950, 999);

        look(&wrong, lens[i], &pull, DN_PACE_NEAR_NS);
        (void) run_flows(&wrong, lens[i], &pull, warm + 2 * DN_PACE_TRIES, 0, DN_PACE_PULL);
        assert_in_range(run_flows(&wrong, lens[i], &pull, 20000, 0, DN_PACE_PULL), 19000, 20000);
    }
}

/** Pieces that are cold take four times as long: their time does not count, though few messages are timed. Nor does it of another length that
 * was met before the cores were known to be near. */
static void first_pieces_of_near_cores_are_judged_warm(void **state)
{
    static const size_t lens[] = {16384, 32768, 65536};
    const speed_t cold = SPEED(2000, 4000);
    const speed_t warm = SPEED(2000, 1000);

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        const unsigned row = dn_pace_tries(DN_PACE_PIECES, lens[i]) - DN_PACE_TRIES;
        dn_pace_t pace = {0};

        (void) run_flows(&pace, lens[i], &cold, 2, 0, DN_PACE_PIECES);
        look(&pace, lens[(i + 1) % 3], &cold, DN_PACE_NEAR_NS);
        assert_int_equal(run_flows(&pace, lens[i], &cold, row - 2, 0, DN_PACE_PIECES), row - 2);
        (void) run_flows(&pace, lens[i], &warm, 64 + 3 * DN_PACE_TRIES, 0, DN_PACE_PIECES);
        assert_int_equal(run_flows(&pace, lens[i], &warm, 32, 0, DN_PACE_PIECES), 32);
    }
}

/** Where the cores are far, two of the first messages go in pieces, and no more of them soon; pieces that are faster are found all the
 * same. */
static void far_cores_begin_with_the_kernel(void **state)
{
    const speed_t pull = SPEED(1000, 5000);
    const speed_t flow = SPEED(3000, 1000);
    dn_pace_t pace = {0};
    dn_pace_t wrong = {0};

    look(&pace, 32768, &pull, DN_PACE_NEAR_NS + 1);
    /* Of 64 that flow 16 in a row are timed. */
    assert_in_range(run_flows(&pace, 32768, &pull, 500, 0, DN_PACE_PIECES), 1, 48);
    assert_in_range(run_flows(&pace, 32768, &pull, 20000, 0, DN_PACE_PIECES), 1, 20000 / 50);
    /* A length that is new begins with what is known of shorter ones: its first message flows, since nobody has asked for another way. */
    assert_int_equal(run_flows(&pace, 65536, &pull, 300, 0, DN_PACE_PIECES), 1);

    look(&wrong, 32768, &flow, DN_PACE_NEAR_NS + 1);
    (void) run_flows(&wrong, 32768, &flow, 2000, 0, DN_PACE_PIECES);
    assert_in_range(run_flows(&wrong, 32768, &flow, 1000, 0, DN_PACE_PIECES), 900, 1000);
}

/** Where the cores are far, the costs of shorter messages say little of longer ones: each way of the kernel costs less a byte, and
 * pieces that no longer flow cost more. So the kernel's ways are tried within the first messages of a new length. */
static void far_cores_try_the_kernel_at_a_new_length(void **state)
{
    static const struct {
        speed_t shorter, longer;
        enum dn_pace_way best;
    } of[] = {{{{2000, 2100, 1500}}, {{3000, 3600, 3900}}, DN_PACE_PULL},
              {{{2000, 2100, 1500}}, {{3900, 3000, 3900}}, DN_PACE_ALONE},
              {{{9000, 2100, 5000}}, {{3000, 3600, 9900}}, DN_PACE_PULL},
              {{{2000, 9000, 5000}}, {{3600, 3000, 9900}}, DN_PACE_ALONE}};
    uint64_t lost;

    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        dn_pace_t pace = {0};

        look(&pace, 65536, &of[i].shorter, DN_PACE_NEAR_NS + 1);
        (void) run(&pace, 65536, &of[i].shorter, 200, of[i].best, &lost);
        assert_in_range(run(&pace, 131072, &of[i].longer, 60, of[i].best, &lost), 32, 60);
        assert_in_range(run(&pace, 131072, &of[i].longer, 400, of[i].best, &lost), 380, 400);
    }
}

/** A message that crosses, and is announced, is copied by its receiver alone, whatever is known of the ways. */
static void what_crosses_is_copied_by_its_receiver(void **state)
{
    const speed_t speed = {{1000, 1900, 1500}};
    dn_pace_t pace = {0};
    uint64_t lost;

    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 1 << 20, DN_PACE_ANNOUNCED, 1),
                         DN_PACE_BY_RULE);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_NEVER, 1 << 20, DN_PACE_ANNOUNCED, 1),
                         DN_PACE_BY_RULE);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_ALWAYS, 1 << 20, DN_PACE_ANNOUNCED, 1),
                         DN_PACE_PIECES);
    }
    (void) run(&pace, 1 << 20, &speed, 1000, DN_PACE_PULL, &lost);
    assert_in_range(run(&pace, 1 << 20, &speed, 1000, DN_PACE_PULL, &lost), 950, 1000);
    assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 1 << 20, DN_PACE_ANNOUNCED, 1),
                     DN_PACE_BY_RULE);
}

/** Messages that may flow, of which one in @p every crosses; 0: none. @return how many flowed. */
static unsigned run_mixed(dn_pace_t *pace, size_t len, unsigned messages, unsigned every)
{
    const speed_t speed = {{1500, 1400, 1000}};
    unsigned flowed = 0;

    for (unsigned i = 0; i < messages; i++) {
        const uint64_t started = now;
        const int flows = dn_pace_wants_flow(pace, len);
        const enum dn_pace_way way =
            dn_pace_choose(pace, DN_PACE_STREAM_AUTO, len, flows ? DN_PACE_FLOWS : DN_PACE_HELD,
                           0 != every && 0 == i % every);

        if (DN_PACE_BY_RULE == way) {
            now += speed.ns[DN_PACE_ALONE];
            dn_pace_pass(pace, now);
        } else {
            now += speed.ns[way];
            dn_pace_learn(pace, way, len, started, now);
        }
        flowed += 0 != flows;
        now += 1000;
    }
    return flowed;
}

/** Messages that might flow are announced while they cross, though pieces are the fastest way, and flow again when none crosses. */
static void what_crosses_does_not_flow(void **state)
{
    for (size_t len = 16384; len <= DN_PACE_FLOW_MAX; len *= 2) {
        dn_pace_t pace = {0};

        (void) run_mixed(&pace, len, 2000, 0);
        assert_in_range(run_mixed(&pace, len, 500, 0), 450, 500);
        assert_in_range(run_mixed(&pace, len, 500, 1), 1, 2 * DN_PACE_CROSSES_MOST / DN_PACE_CROSSED);
        assert_int_equal(run_mixed(&pace, len, 500, 1), 0);
        assert_in_range(run_mixed(&pace, len, 500, 0), 500 - 2 * DN_PACE_CROSSES_MOST,
                        500 - DN_PACE_CROSSES_MOST / 2);
    }
}

/** A message that crosses now and then does not stop messages that flow; nor does it keep a class among those that cross. Where every
 * second message crosses, the class is taken for one that crosses. */
static void a_few_messages_do_not_tell_whether_messages_cross(void **state)
{
    dn_pace_t pace = {0};

    (void) run_mixed(&pace, 65536, 2000, 0);
    assert_in_range(run_mixed(&pace, 65536, 2000, 1 + DN_PACE_CROSSED / DN_PACE_UNCROSSED), 1800, 2000);
    assert_in_range(run_mixed(&pace, 65536, 2000, 2), 1, 50);
    assert_true(pace.crosses[2]);
    (void) run_mixed(&pace, 65536, 20 * DN_PACE_CROSSES_MOST, DN_PACE_CROSSED + 5);
    assert_false(pace.crosses[2]);
}

/** Where processes share cores the length alone decides, whatever times are known, and whether or not messages cross. No time that is taken
 * there is learnt. */
static void in_a_crowd_the_length_decides(void **state)
{
    /* Without a crowd, those of FLOW_MAX flow, and shorter ones do not. */
    static const size_t lens[] = {16384, DN_PACE_CROWD_FLOW, DN_PACE_FLOW_MAX};
    dn_pace_t pace = {0}, before;

    (void) run_mixed(&pace, DN_PACE_FLOW_MAX, 2000, 0);
    (void) run_mixed(&pace, DN_PACE_CROWD_FLOW, 2000, 1);
    (void) run_mixed(&pace, 16384, 2000, 1);
    assert_false(dn_pace_wants_flow(&pace, 16384));
    assert_false(dn_pace_wants_flow(&pace, DN_PACE_CROWD_FLOW));
    assert_true(dn_pace_wants_flow(&pace, DN_PACE_FLOW_MAX));
    dn_pace_crowd(&pace, 1);
    before = pace;
    for (unsigned i = 0; i < 400; i++) {
        const size_t len = lens[i % 3];
        const int flows = dn_pace_wants_flow(&pace, len);

        assert_int_equal(flows, DN_PACE_CROWD_FLOW >= len);
        assert_int_equal(
            dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, len, flows ? DN_PACE_FLOWS : DN_PACE_HELD, 0 != i % 2),
            DN_PACE_BY_RULE);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 1 << 20, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_BY_RULE);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_ALWAYS, 1 << 20, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_PIECES);
        assert_int_equal(dn_pace_choose(&pace, DN_PACE_STREAM_NEVER, 1 << 20, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_PULL);
    }
    for (unsigned i = 0; i < DN_PACE_CLASSES; i++) {
        assert_memory_equal(pace.class[i].cost, before.class[i].cost, sizeof(before.class[i].cost));
    }
    dn_pace_crowd(&pace, 0);
    assert_int_not_equal(dn_pace_choose(&pace, DN_PACE_STREAM_AUTO, 1 << 20, DN_PACE_ANNOUNCED, 0),
                         DN_PACE_BY_RULE);
}

/** A line that something disturbs is slower than the cores are far. */
static void the_fastest_line_counts(void **state)
{
    dn_pace_t pace = {0};

    for (unsigned i = 0; i < DN_PACE_LOOKS; i++) {
        assert_true(dn_pace_looks(&pace));
        dn_pace_look(&pace, 1 == i ? DN_PACE_NEAR_NS : UINT64_MAX);
    }
    assert_false(dn_pace_looks(&pace));
    assert_int_equal(dn_pace_first_tries(&pace, DN_PACE_PIECES, 65536), dn_pace_tries(DN_PACE_PIECES, 65536));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_is_tried_first),
        cmocka_unit_test(faster_way_wins_and_trying_is_cheap),
        cmocka_unit_test(lasting_change_is_noticed),
        cmocka_unit_test(one_disturbance_changes_nothing),
        cmocka_unit_test(cold_memory_is_forgotten),
        cmocka_unit_test(lengths_are_judged_apart),
        cmocka_unit_test(window_is_timed_by_its_ends),
        cmocka_unit_test(messages_that_end_together_share_their_time),
        cmocka_unit_test(unknown_way_waits_for_its_first_message),
        cmocka_unit_test(way_that_never_works_is_not_tried_again),
        cmocka_unit_test(user_decides_where_asked_to),
        cmocka_unit_test(what_may_flow_does_where_that_is_faster),
        cmocka_unit_test(a_window_hears_late_that_it_may_flow),
        cmocka_unit_test(messages_without_a_clock_are_no_tries),
        cmocka_unit_test(a_sender_that_cannot_flow_is_told_again),
        cmocka_unit_test(what_a_sender_cannot_do_keeps_nothing_else_from_being_known),
        cmocka_unit_test(pieces_are_judged_when_their_memory_is_warm),
        cmocka_unit_test(a_trial_of_pieces_that_get_no_faster_is_short),
        cmocka_unit_test(the_next_one_is_known_if_the_end_of_the_last_is),
        cmocka_unit_test(pieces_that_are_hopeless_are_few),
        cmocka_unit_test(new_lengths_begin_with_what_is_known),
        cmocka_unit_test(trials_become_rare_until_something_changes),
        cmocka_unit_test(pieces_that_were_disturbed_come_back),
        cmocka_unit_test(near_cores_begin_with_pieces),
        cmocka_unit_test(first_pieces_of_near_cores_are_judged_warm),
        cmocka_unit_test(far_cores_begin_with_the_kernel),
        cmocka_unit_test(far_cores_try_the_kernel_at_a_new_length),
        cmocka_unit_test(what_crosses_is_copied_by_its_receiver),
        cmocka_unit_test(what_crosses_does_not_flow),
        cmocka_unit_test(a_few_messages_do_not_tell_whether_messages_cross),
        cmocka_unit_test(in_a_crowd_the_length_decides),
        cmocka_unit_test(the_fastest_line_counts),
        cmocka_unit_test(no_time_is_taken_across_a_message_without_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
