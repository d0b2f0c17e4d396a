/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Packet numbers by RFC 9002: ranges of those that came, thresholds after which one is lost, the probe time-out and its growth. Black
 * holes by RFC 8899.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_loss.h"

enum { MS = 1000000, MOST = 1 << 20 };

static unsigned acked, lost;
static char loads[DN_LOSS_FLYING];

static void fate(void *arg, void *load, int is_lost)
{
    (void) arg;
    assert_in_range((char *) load - loads, 0, DN_LOSS_FLYING - 1);
    *(is_lost ? &lost : &acked) += 1;
}

static void open_loss(dn_loss_t *loss)
{
    acked = lost = 0;
    assert_true(dn_loss_open(loss, 1, MOST));
}

static void send_some(dn_loss_t *loss, unsigned count, uint64_t now)
{
    for (unsigned i = 0; i < count; i++) {
        dn_loss_sent(loss, now, &loads[loss->next % DN_LOSS_FLYING], 1000);
    }
}

static void ack(dn_loss_t *loss, uint64_t first, uint64_t last, uint64_t now)
{
    const dn_loss_range_t range = {first, last};

    assert_true(dn_loss_ack(loss, &range, 1, 0, now, fate, NULL));
}

static void numbers_come_once_in_any_order(void **state)
{
    uint64_t random = 1;

    (void) state;
    for (int round = 0; round < 200; round++) {
        enum { NUMBERS = 300 };
        uint8_t came[NUMBERS + 1] = {0};
        dn_loss_seen_t seen = {.floor = 1};
        for (int i = 0; i < 3 * NUMBERS; i++) {
            const uint64_t number = 1 + dn_test_below(&random, NUMBERS);
            const uint64_t floor = seen.floor;
            const int is_new = dn_loss_see(&seen, number);
            /* Never twice; not refused unless it came, or is older than what there is room for. */
            assert_false(is_new && came[number]);
            assert_true(is_new || came[number] || number < floor || DN_LOSS_RANGES == seen.count);
            came[number] |= (uint8_t) is_new;
            for (uint32_t k = 0; k < seen.count; k++) {
                assert_true(seen.range[k].first <= seen.range[k].last);
                assert_true(0 == k || seen.range[k].last + 1 < seen.range[k - 1].first);
                for (uint64_t n = seen.range[k].first; n <= seen.range[k].last; n++) {
                    assert_true(came[n]);
                }
            }
        }
    }
}

static void three_later_ones_say_that_one_is_lost(void **state)
{
    dn_loss_t loss;

    (void) state;
    open_loss(&loss);
    send_some(&loss, 5, 0);
    ack(&loss, 2, 3, MS);
    assert_int_equal(acked, 2);
    assert_int_equal(lost, 0);
    ack(&loss, 2, 4, MS);
    assert_int_equal(lost, 1);
    assert_int_equal(loss.count, 1);
    dn_loss_close(&loss);
}

static void time_says_that_one_is_lost(void **state)
{
    dn_loss_t loss;

    (void) state;
    open_loss(&loss);
    send_some(&loss, 2, 0);
    ack(&loss, 2, 2, 8 * MS);
    assert_int_equal(lost, 0);
    /* 9/8 of the round trip. */
    assert_int_equal(dn_loss_timer(&loss), 9 * MS);
    assert_int_equal(dn_loss_expire(&loss, 9 * MS - 1, fate, NULL), 0);
    assert_int_equal(lost, 0);
    assert_int_equal(dn_loss_expire(&loss, 9 * MS, fate, NULL), 0);
    assert_int_equal(lost, 1);
    dn_loss_close(&loss);
}

static void probes_come_ever_later_but_no_later_than_the_longest(void **state)
{
    dn_loss_t loss;
    uint64_t now = 0, pause = 0;

    (void) state;
    open_loss(&loss);
    send_some(&loss, 1, 0);
    ack(&loss, 1, 1, 100000);
    send_some(&loss, 1, 100000);
    now = 100000;
    for (int i = 0; i < 20; i++) {
        const uint64_t at = dn_loss_timer(&loss);
        assert_true(at - now >= DN_LOSS_GRANULE_NS && at - now <= DN_LOSS_PROBE_MOST_NS);
        assert_true(at - now == 2 * pause || 0 == pause || at - now == DN_LOSS_PROBE_MOST_NS);
        pause = at - now;
        now = at;
        assert_int_equal(dn_loss_expire(&loss, now, fate, NULL), 1);
        send_some(&loss, 1, now);
    }
    assert_int_equal(lost, 0);
    /* One answer, and the pause is short again. */
    ack(&loss, loss.next - 1, loss.next - 1, now + 100000);
    assert_int_equal(loss.probes, 0);
    dn_loss_close(&loss);
}

/** On an idle machine a lost packet is probed for after little more than 300 us. */
static void a_probe_waits_for_no_more_than_an_acknowledgement_takes(void **state)
{
    enum { RTT = 20000 };
    dn_loss_t loss;
    uint64_t now = 0;

    (void) state;
    open_loss(&loss);
    for (int i = 0; i < 100; i++, now += MS) {
        send_some(&loss, 1, now);
        ack(&loss, loss.next - 1, loss.next - 1, now + RTT);
    }
    send_some(&loss, 1, now);
    assert_in_range(dn_loss_timer(&loss) - now, RTT, 350000);
    dn_loss_close(&loss);
}

static void an_unused_number_is_not_acknowledged(void **state)
{
    const dn_loss_range_t range = {1, 3};
    dn_loss_t loss;

    (void) state;
    open_loss(&loss);
    send_some(&loss, 2, 0);
    assert_false(dn_loss_ack(&loss, &range, 1, 0, MS, fate, NULL));
    assert_int_equal(acked, 0);
    dn_loss_close(&loss);
}

/** All that was sent for long is lost: the window is the least. What was acknowledged between two of them shows that it was not so. */
static void congestion_that_persists_leaves_the_least_window(void **state)
{
    enum { GAP = 400000 };

    (void) state;
    for (int between = 0; between < 2; between++) {
        dn_loss_t loss;
        open_loss(&loss);
        send_some(&loss, 1, 0);
        ack(&loss, 1, 1, 100000);
        for (uint64_t i = 1; i <= 7; i++) {
            send_some(&loss, 1, i * GAP);
            if (between && 4 == i) {
                ack(&loss, 5, 5, i * GAP + 100000);
            }
        }
        ack(&loss, 8, 8, 7 * GAP + 100000);
        assert_int_equal(lost, between ? 5 : 6);
        if (between) {
            assert_true(DN_BBR_WINDOW_LEAST < loss.bbr.window);
        } else {
            assert_int_equal(loss.bbr.window, DN_BBR_WINDOW_LEAST);
        }
        dn_loss_close(&loss);
    }
}

/** Send a long packet, which is lost, and two short ones, which come. */
static void lose_a_long_one(dn_loss_t *loss, uint64_t now)
{
    dn_loss_sent(loss, now, &loads[loss->next % DN_LOSS_FLYING], 1400);
    send_some(loss, 4, now);
    ack(loss, loss->next - 4, loss->next - 1, now + 1000);
}

static void long_ones_that_are_lost_while_short_ones_come_tell_a_black_hole(void **state)
{
    dn_loss_t loss;

    (void) state;
    open_loss(&loss);
    for (unsigned i = 1; i < DN_LOSS_HOLE; i++) {
        lose_a_long_one(&loss, i * MS);
    }
    assert_int_equal(dn_loss_in_hole(&loss), 0);
    /* A long one comes. */
    dn_loss_sent(&loss, 100 * MS, &loads[0], 1400);
    ack(&loss, loss.next - 1, loss.next - 1, 101 * MS);
    for (unsigned i = 1; i <= DN_LOSS_HOLE; i++) {
        assert_int_equal(dn_loss_in_hole(&loss), 0);
        lose_a_long_one(&loss, (200 + i) * MS);
    }
    assert_int_equal(dn_loss_in_hole(&loss), 1);
    /* Those on their way are lost, the short ones not. */
    lost = 0;
    dn_loss_sent(&loss, 300 * MS, &loads[0], 1400);
    send_some(&loss, 2, 300 * MS);
    dn_loss_leave_hole(&loss, fate, NULL);
    assert_int_equal(lost, 1);
    assert_int_equal(loss.count, 2);
    assert_int_equal(dn_loss_in_hole(&loss), 0);
    dn_loss_close(&loss);
}

/** A long one that counted as lost and comes after all disproves the hole, and a long one that is sent later does so, too. */
static void a_long_one_that_comes_disproves_a_black_hole(void **state)
{
    (void) state;
    for (unsigned which = 0; which < 4; which++) {
        dn_loss_t loss;
        open_loss(&loss);
        for (unsigned i = 1; i <= DN_LOSS_HOLE; i++) {
            lose_a_long_one(&loss, i * MS);
        }
        assert_false(dn_loss_is_narrow(&loss));
        dn_loss_sent(&loss, 100 * MS, &loads[0], 1400);
        send_some(&loss, 1, 100 * MS);
        dn_loss_leave_hole(&loss, fate, NULL);
        assert_true(dn_loss_is_narrow(&loss));
        const uint64_t flew = loss.next - 2;
        const uint64_t late[] = {flew - 5, flew};
        if (2 > which) {
            /* The first is one of those that told the hole. */
            ack(&loss, flew + 1, flew + 1, 101 * MS);
            assert_true(dn_loss_is_narrow(&loss));
            ack(&loss, late[which], late[which], 102 * MS);
        } else {
            /* A shorter one says nothing. */
            dn_loss_sent(&loss, 103 * MS, &loads[0], 2 == which ? 1400 : 1300);
            ack(&loss, loss.next - 1, loss.next - 1, 104 * MS);
        }
        assert_int_equal(dn_loss_is_narrow(&loss), 3 == which);
        dn_loss_close(&loss);
    }
}

/** What comes late stays a sign only once: an acknowledgement that is repeated says nothing of the turns since. */
static void a_long_one_that_comes_late_begins_the_turns_anew(void **state)
{
    (void) state;
    /* One comes late, or two by one acknowledgement, or two one by one. */
    for (unsigned which = 0; which < 3; which++) {
        dn_loss_t loss;
        open_loss(&loss);
        for (unsigned i = 1; i < DN_LOSS_HOLE; i++) {
            lose_a_long_one(&loss, i * MS);
        }
        const uint64_t last = loss.next - 5, first = 0 == which ? last : last - 5;
        if (2 == which) {
            ack(&loss, first, first, 100 * MS);
        }
        for (unsigned i = 1; i <= DN_LOSS_HOLE; i++) {
            ack(&loss, first, last, (100 + i) * MS);
            assert_int_equal(dn_loss_in_hole(&loss), 0);
            lose_a_long_one(&loss, (100 + i) * MS);
        }
        assert_int_equal(dn_loss_in_hole(&loss), 1);
        dn_loss_close(&loss);
    }
}

/** A path of which this was wrong is believed ever later, until long ones have come for long. */
static void a_black_hole_that_is_disproved_makes_the_next_harder_to_tell(void **state)
{
    dn_loss_t loss;
    uint64_t now = MS;
    unsigned turns = DN_LOSS_HOLE;

    (void) state;
    open_loss(&loss);
    for (unsigned holes = 0; holes < 10; holes++) {
        for (unsigned i = 0; i < turns; i++, now += MS) {
            assert_int_equal(dn_loss_in_hole(&loss), 0);
            lose_a_long_one(&loss, now);
        }
        assert_int_equal(dn_loss_in_hole(&loss), 1);
        dn_loss_leave_hole(&loss, fate, NULL);
        if (5 != holes) {
            ack(&loss, loss.next - 5, loss.next - 5, now);
            turns = 2 * turns < DN_LOSS_HOLE_MOST ? 2 * turns : DN_LOSS_HOLE_MOST;
        } else {
            assert_int_equal(turns, DN_LOSS_HOLE_MOST);
            for (unsigned i = 0; i < DN_LOSS_CALM; i++, now += MS) {
                dn_loss_sent(&loss, now, &loads[0], 1400);
                ack(&loss, loss.next - 1, loss.next - 1, now + 1000);
            }
            turns = DN_LOSS_HOLE;
        }
        assert_false(dn_loss_is_narrow(&loss));
    }
    dn_loss_close(&loss);
}

/** A network that is away loses short ones, too. */
static void a_network_that_is_away_is_no_black_hole(void **state)
{
    dn_loss_t loss;

    (void) state;
    open_loss(&loss);
    for (unsigned i = 1; i <= 100; i++) {
        dn_loss_sent(&loss, i * MS, &loads[0], 1400);
        send_some(&loss, 1, i * MS);
    }
    send_some(&loss, 4, 200 * MS);
    ack(&loss, loss.next - 4, loss.next - 1, 201 * MS);
    assert_int_equal(loss.count, 0);
    assert_int_equal(dn_loss_in_hole(&loss), 0);
    dn_loss_close(&loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_once_in_any_order),
        cmocka_unit_test(three_later_ones_say_that_one_is_lost),
        cmocka_unit_test(time_says_that_one_is_lost),
        cmocka_unit_test(probes_come_ever_later_but_no_later_than_the_longest),
        cmocka_unit_test(a_probe_waits_for_no_more_than_an_acknowledgement_takes),
        cmocka_unit_test(an_unused_number_is_not_acknowledged),
        cmocka_unit_test(congestion_that_persists_leaves_the_least_window),
        cmocka_unit_test(long_ones_that_are_lost_while_short_ones_come_tell_a_black_hole),
        cmocka_unit_test(a_long_one_that_comes_disproves_a_black_hole),
        cmocka_unit_test(a_long_one_that_comes_late_begins_the_turns_anew),
        cmocka_unit_test(a_black_hole_that_is_disproved_makes_the_next_harder_to_tell),
        cmocka_unit_test(a_network_that_is_away_is_no_black_hole),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
