/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * BBR by a virtual clock: senders with more to send than a link takes, which delays, queues, and loses at random.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_loss.h"

enum { US = 1000, MS = 1000000, BYTES = 1472, SENDERS = 2, LINE = 4096, MOST = 1 << 20, AHEAD = 180 };
#define MS64 UINT64_C(1000000)

typedef struct {
    uint64_t rate;   /**< bytes in a second */
    uint64_t queue;  /**< bytes that wait at most */
    uint64_t burst;  /**< bytes that go at once after a pause */
    uint64_t way_ns; /**< in each direction, without the queue */
    unsigned loss;   /**< of 1000 */
} path_t;

/** A packet in the link, or an acknowledgement on its way back. */
typedef struct {
    uint64_t at, number;
    unsigned sender;
} item_t;

typedef struct {
    item_t item[LINE];
    uint32_t head, count;
} line_t;

typedef struct {
    dn_loss_t loss;
    dn_loss_seen_t seen;
    uint64_t sent;
    uint64_t begun, done;    /**< pieces, ever, that were sent, and that came with all before them */
    uint64_t piece[1 << 16]; /**< by packet: which piece it carries */
    uint8_t came[1 << 16];   /**< by piece */
    uint64_t again[LINE], again_first, again_last; /**< lost */
} sender_t;

typedef struct {
    path_t path;
    sender_t sender[SENDERS];
    unsigned senders;
    line_t there, back;
    uint64_t free_at; /**< when the link has sent what waits */
    uint64_t random, dropped;
} world_t;

static void put(line_t *line, uint64_t at, uint64_t number, unsigned sender)
{
    assert_in_range(line->count, 0, LINE - 1);
    line->item[(line->head + line->count) % LINE] = (item_t){at, number, sender};
    line->count++;
}

static int get(line_t *line, uint64_t now, item_t *item)
{
    if (0 == line->count || line->item[line->head].at > now) {
        return 0;
    }
    *item = line->item[line->head];
    line->head = (line->head + 1) % LINE;
    line->count--;
    return 1;
}

static void fate(void *arg, void *load, int lost)
{
    sender_t *sender = arg;

    if (lost) {
        sender->again[sender->again_last++ % LINE] = (uint64_t) (uintptr_t) load;
    }
}

/** Has it something to send? The program has no more than AHEAD pieces on their way. */
static int has_more(const sender_t *sender)
{
    return sender->again_first != sender->again_last || sender->begun - sender->done < AHEAD;
}

static void send_one(world_t *world, unsigned i, uint64_t now)
{
    const path_t *path = &world->path;
    sender_t *sender = &world->sender[i];
    const uint64_t number = sender->loss.next;
    const uint64_t burst_ns = path->burst * 1000 * MS / path->rate;
    const uint64_t begin = world->free_at > now - burst_ns ? world->free_at : now - burst_ns;
    const uint64_t waits = begin > now ? (begin - now) * path->rate / 1000 / MS : 0;

    const uint64_t piece = sender->again_first != sender->again_last
                               ? sender->again[sender->again_first++ % LINE]
                               : ++sender->begun;
    sender->piece[number % (1 << 16)] = piece;
    dn_loss_sent(&sender->loss, now, (void *) (uintptr_t) piece, BYTES);
    sender->sent++;
    if (waits + BYTES > path->queue || dn_test_below(&world->random, 1000) < path->loss) {
        world->dropped++;
        return;
    }
    world->free_at = begin + BYTES * UINT64_C(1000000000) / path->rate;
    put(&world->there, (world->free_at > now ? world->free_at : now) + path->way_ns, number, i);
}

static void step(world_t *world, uint64_t now)
{
    item_t item;

    while (get(&world->there, now, &item)) {
        sender_t *sender = &world->sender[item.sender];
        (void) dn_loss_see(&sender->seen, item.number);
        sender->came[sender->piece[item.number % (1 << 16)] % (1 << 16)] = 1;
        while (sender->came[(sender->done + 1) % (1 << 16)]) {
            sender->came[++sender->done % (1 << 16)] = 0;
        }
        if (0 == world->there.count || world->there.item[world->there.head].at > now
            || 0 == item.number % 8) {
            put(&world->back, now + world->path.way_ns, item.number, item.sender);
        }
    }
    while (get(&world->back, now, &item)) {
        sender_t *sender = &world->sender[item.sender];
        assert_true(dn_loss_ack(&sender->loss, sender->seen.range, sender->seen.count, 0, now, fate, sender));
    }
    for (unsigned i = 0; i < world->senders; i++) {
        dn_loss_t *loss = &world->sender[i].loss;
        if (dn_loss_expire(loss, now, fate, &world->sender[i])) {
            send_one(world, i, now);
        }
        while (has_more(&world->sender[i]) && dn_loss_has_room(loss, 1, BYTES)
               && dn_loss_is_due(loss, 0, 0, now)) {
            send_one(world, i, now);
        }
        if (!has_more(&world->sender[i]) && dn_loss_has_room(loss, 1, BYTES)
            && dn_loss_is_due(loss, 0, 0, now)) {
            dn_bbr_idle(&loss->bbr, loss->flying);
        }
    }
}

static void open_world(world_t *world, const path_t *path, unsigned senders)
{
    memset(world, 0, sizeof(*world));
    world->path = *path;
    world->senders = senders;
    world->random = 7;
    for (unsigned i = 0; i < SENDERS; i++) {
        assert_true(dn_loss_open(&world->sender[i].loss, 1, MOST));
        world->sender[i].seen.floor = 1;
    }
}

static void close_world(world_t *world)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        dn_loss_close(&world->sender[i].loss);
    }
}

/** @return what came, as thousandths of what the link takes in that time. */
static uint64_t run(world_t *world, uint64_t *now, uint64_t time_ns, uint64_t step_ns)
{
    const uint64_t end = *now + time_ns;
    uint64_t done = 0;

    for (unsigned i = 0; i < SENDERS; i++) {
        done -= world->sender[i].done;
    }
    for (; *now < end; *now += step_ns) {
        step(world, *now);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        done += world->sender[i].done;
    }
    return done * BYTES * 1000 / (world->path.rate * (time_ns / US) / MS);
}

static const path_t fast = {.rate = 3000 * MS64, .queue = 500000, .burst = 3000, .way_ns = 5 * US};
static const path_t slow = {.rate = 12500000, .queue = 32768, .burst = 3000, .way_ns = 10 * US};

static world_t world;

static void loss_at_random_costs_no_more_than_what_is_lost(void **state)
{
    static const unsigned losses[] = {0, 1, 10, 50, 100};

    (void) state;
    for (unsigned i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        path_t path = fast;
        uint64_t now = 100 * MS;
        path.loss = losses[i];
        open_world(&world, &path, 1);
        const uint64_t come = run(&world, &now, 100 * MS, 250);
        assert_in_range(come, 950 - 2 * losses[i], 1010);
        close_world(&world);
    }
}

static void a_slow_link_with_a_short_queue_is_full_and_drops_little(void **state)
{
    static const uint64_t bursts[] = {3000, 16384};

    (void) state;
    for (unsigned i = 0; i < 2; i++) {
        path_t path = slow;
        uint64_t now = 100 * MS;
        path.burst = bursts[i];
        open_world(&world, &path, 1);
        assert_in_range(run(&world, &now, 3000 * MS64, US), 980, 1010);
        assert_in_range(world.dropped, 0, world.sender[0].sent / 50);
        close_world(&world);
    }
}

/** Tokens of a shaper let it pass at once; what comes behind goes as slowly as ever. */
static void a_burst_that_passes_is_no_bandwidth(void **state)
{
    static const path_t paths[] = {
        {.rate = 12500000, .queue = 32768, .burst = 65536, .way_ns = 10 * US},
        {.rate = 125000000, .queue = 32768, .burst = 300000, .way_ns = 2 * US},
    };

    (void) state;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t now = 100 * MS;
        open_world(&world, &paths[i], 1 + i);
        assert_in_range(run(&world, &now, 500 * MS, US), 980, 1050);
        assert_in_range(world.dropped, 0, (world.sender[0].sent + world.sender[1].sent) / 10);
        close_world(&world);
    }
}

/** It is once in a second that little is on its way for a while. */
static void a_look_for_the_round_trip_leaves_the_bandwidth(void **state)
{
    static const uint64_t ways[] = {25 * US, 100 * US};

    (void) state;
    for (unsigned i = 0; i < 2; i++) {
        path_t path = fast;
        uint64_t now = 100 * MS;
        path.rate = 1000 * MS64;
        path.way_ns = ways[i];
        open_world(&world, &path, 1);
        (void) run(&world, &now, 100 * MS, US);
        for (unsigned k = 0; k < 24; k++) {
            assert_in_range(run(&world, &now, 100 * MS, US), 970, 1010);
        }
        close_world(&world);
    }
}

static void a_long_queue_is_not_filled(void **state)
{
    path_t path = slow;
    uint64_t now = 100 * MS;

    (void) state;
    path.queue = 2 << 20;
    open_world(&world, &path, 1);
    assert_in_range(run(&world, &now, 1000 * MS, US), 980, 1010);
    assert_int_equal(world.dropped, 0);
    assert_in_range(world.sender[0].loss.flying, 0, 32 << 10);
    close_world(&world);
}

static void two_senders_share_a_link(void **state)
{
    static const uint64_t queues[] = {32768, 2 << 20}, rates[] = {12500000, 125000000};

    (void) state;
    for (unsigned i = 0; i < 4; i++) {
        path_t path = slow;
        uint64_t now = 100 * MS;
        path.queue = queues[i % 2];
        path.rate = rates[i / 2];
        /* The second comes when the first has the link. */
        open_world(&world, &path, 1);
        (void) run(&world, &now, 500 * MS, US);
        world.senders = 2;
        assert_in_range(run(&world, &now, 2000 * MS64, US), 980, 1010);
        const uint64_t first = world.sender[0].done, second = world.sender[1].done;
        assert_in_range(run(&world, &now, 2000 * MS64, US), 980, 1010);
        assert_in_range(world.dropped, 0, (world.sender[0].sent + world.sender[1].sent) / 16);
        const uint64_t of_first = world.sender[0].done - first, of_second = world.sender[1].done - second;
        assert_in_range(of_first * 1000 / (of_first + of_second), 350, 650);
        close_world(&world);
    }
}

static void a_link_that_changes_is_followed(void **state)
{
    path_t path = fast;
    uint64_t now = 100 * MS;

    (void) state;
    path.rate = 125000000;
    open_world(&world, &path, 1);
    (void) run(&world, &now, 500 * MS, US);
    world.path.rate /= 4;
    (void) run(&world, &now, 100 * MS, US);
    const uint64_t dropped = world.dropped;
    assert_in_range(run(&world, &now, 500 * MS, US), 980, 1010);
    assert_int_equal(world.dropped, dropped);
    world.path.rate *= 8;
    (void) run(&world, &now, 100 * MS, US);
    assert_in_range(run(&world, &now, 500 * MS, US), 950, 1010);
    close_world(&world);
}

/** A packet is sent, and acknowledged after so long. */
static void exchange(dn_bbr_t *bbr, uint64_t *now, uint64_t bytes, uint64_t rtt_ns, int limited)
{
    if (limited) {
        dn_bbr_idle(bbr, 0);
    }
    const dn_bbr_stamp_t stamp = dn_bbr_sent(bbr, bytes, 0, *now);
    *now += rtt_ns;
    dn_bbr_measured(bbr, rtt_ns, *now);
    dn_bbr_acked(bbr, &stamp, *now - rtt_ns, bytes, *now);
    dn_bbr_update(bbr, 0, *now);
}

/** A sender that has always had more to send. */
static void open_busy(dn_bbr_t *bbr, uint64_t *now)
{
    dn_bbr_open(bbr, MOST);
    for (int i = 0; i < 40; i++) {
        exchange(bbr, now, 100000, 100 * US, 0);
    }
}

static void a_program_that_sends_little_makes_no_link_slow(void **state)
{
    dn_bbr_t bbr;
    uint64_t now = MS;

    (void) state;
    open_busy(&bbr, &now);
    assert_int_equal(bbr.state, DN_BBR_PROBE_BW);
    /* Twice what the path holds, three quanta, and what all senders have. */
    const uint64_t window = 2 * 100000 + 3 * 20000 + DN_BBR_WINDOW_LEAST;
    assert_int_equal(bbr.window, window);
    for (int i = 0; i < 1000; i++) {
        exchange(&bbr, &now, 100, 100 * US, 1);
        /* By chance: of so few packets one is many. */
        dn_bbr_lost(&bbr, 0 == i % 8 ? 100 : 0);
    }
    assert_int_equal(bbr.window, window);
    /* As much as before, but more slowly. */
    for (int i = 0; i < 40; i++) {
        exchange(&bbr, &now, 10000, 100 * US, 0);
    }
    assert_true(bbr.window < window);
}

static void the_shortest_round_trip_is_looked_for_again(void **state)
{
    dn_bbr_t bbr;
    uint64_t now = MS;
    unsigned probed = 0;

    (void) state;
    open_busy(&bbr, &now);
    for (uint64_t end = now + DN_BBR_RTT_NS + 100 * MS; now < end;) {
        exchange(&bbr, &now, 100000, 200 * US, 0);
        if (DN_BBR_PROBE_RTT == bbr.state) {
            assert_int_equal(bbr.window, DN_BBR_WINDOW_LEAST);
            probed++;
        }
    }
    assert_in_range(probed, 2, 2 * DN_BBR_PROBE_RTT_NS / (200 * US));
    assert_int_equal(bbr.state, DN_BBR_PROBE_BW);
    assert_int_equal(bbr.least_ns, 200 * US);
    assert_true(DN_BBR_WINDOW_LEAST < bbr.window);
}

static void a_pause_is_no_reason_to_look_for_the_round_trip(void **state)
{
    dn_bbr_t bbr;
    uint64_t now = MS;

    (void) state;
    open_busy(&bbr, &now);
    now += 2 * DN_BBR_RTT_NS;
    exchange(&bbr, &now, 100000, 150 * US, 1);
    assert_int_equal(bbr.state, DN_BBR_PROBE_BW);
    assert_int_equal(bbr.least_ns, 150 * US);
    assert_in_range(bbr.window, 2 * 100000, MOST);
}

static void the_pacer_gives_credit_and_no_more(void **state)
{
    dn_bbr_t bbr;
    uint64_t now = MS;

    (void) state;
    dn_bbr_open(&bbr, MOST);
    /* Before anything is known of a path the window alone bounds what is sent. */
    assert_true(dn_bbr_is_due(&bbr, MOST, now));
    for (int i = 0; i < 100; i++) {
        exchange(&bbr, &now, 100000, MS, 0);
    }
    assert_int_equal(bbr.state, DN_BBR_PROBE_BW);
    now += 10 * MS;
    const uint64_t credit = bbr.rate / 1000 * DN_BBR_CREDIT_NS / MS;
    assert_true(dn_bbr_is_due(&bbr, credit - 100, now));
    assert_false(dn_bbr_is_due(&bbr, credit + 1000, now));
    (void) dn_bbr_sent(&bbr, credit + 1000, 0, now);
    assert_false(dn_bbr_is_due(&bbr, 0, now));
    assert_in_range(bbr.due_at, now + 1, now + 20 * US);
    assert_true(dn_bbr_is_due(&bbr, 0, bbr.due_at));
    assert_false(dn_bbr_is_due(&bbr, 1000, bbr.due_at));
}

static void no_round_trip_is_too_long_to_reckon_with(void **state)
{
    dn_bbr_t bbr;
    uint64_t now = MS;

    (void) state;
    dn_bbr_open(&bbr, MOST);
    for (int i = 0; i < 40; i++) {
        exchange(&bbr, &now, 1000, 100000 * MS64, 0);
        assert_true(DN_BBR_WINDOW_LEAST <= bbr.window);
        assert_true(DN_BBR_RATE_LEAST <= bbr.rate);
    }
    dn_bbr_open(&bbr, MOST);
    for (int i = 0; i < 40; i++) {
        exchange(&bbr, &now, MOST, 1, 0);
        assert_in_range(bbr.window, DN_BBR_WINDOW_LEAST, MOST);
    }
    /* The product of this and the largest bandwidth is 2^64. */
    for (int i = 0; i < 6 || DN_BBR_PROBE_RTT == bbr.state; i++) {
        exchange(&bbr, &now, 100, UINT64_C(1) << 29, 1);
    }
    assert_int_equal(bbr.bw, DN_BBR_BW_MOST);
    assert_int_equal(bbr.least_ns, UINT64_C(1) << 29);
    assert_int_equal(bbr.window, MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_at_random_costs_no_more_than_what_is_lost),
        cmocka_unit_test(a_slow_link_with_a_short_queue_is_full_and_drops_little),
        cmocka_unit_test(a_burst_that_passes_is_no_bandwidth),
        cmocka_unit_test(a_look_for_the_round_trip_leaves_the_bandwidth),
        cmocka_unit_test(a_long_queue_is_not_filled),
        cmocka_unit_test(two_senders_share_a_link),
        cmocka_unit_test(a_link_that_changes_is_followed),
        cmocka_unit_test(a_program_that_sends_little_makes_no_link_slow),
        cmocka_unit_test(the_shortest_round_trip_is_looked_for_again),
        cmocka_unit_test(a_pause_is_no_reason_to_look_for_the_round_trip),
        cmocka_unit_test(the_pacer_gives_credit_and_no_more),
        cmocka_unit_test(no_round_trip_is_too_long_to_reckon_with),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
