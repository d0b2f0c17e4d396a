/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Two ends of a connection over a wire that loses, doubles, delays and changes datagrams, as a seed says, in a time of its own. All that
 * one end appends is taken by the other once, in order and unchanged, and the wire's worst is over in bounded time. So with a tag on each
 * packet, and with packets that are encrypted, each under a number of its own. The wire may take shorter datagrams from one moment to the
 * next, and drop the longer ones without a word.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_link.h"

enum { ON_WIRE = 4096, DATAGRAM = 1400, DATAGRAM_MOST = 9000 };

/** A datagram on its way. */
typedef struct letter {
    uint64_t at;    /**< when it comes, */
    uint64_t order; /**< and which of those that come at the same time */
    int to;
    size_t len;
    _Alignas(8) uint8_t bytes[DATAGRAM_MOST];
} letter_t;

typedef struct side {
    dn_ipnuma_link_t link;
    uint64_t sent, taken;
    uint64_t random_out, random_in; /**< what is sent, and expected, follows from these */
    uint64_t number;                /**< of the newest packet that it has made */
} side_t;

typedef struct wire {
    unsigned lose, doubles, delay, change, refuse, starve; /**< of 100 */
    unsigned burst; /**< TLPs that are appended before some are sent; 0: 8 */
    size_t narrow;  /**< in the midst the wire drops what is longer; 0: it stays as it is */
    uint64_t
        late; /**< no datagram is dropped for its length, but those so long come later by so many ns, in the first so many ns */
    uint32_t
        told; /**< in the midst the kernel says that the path takes datagrams of so many bytes; 0: it says nothing */
} wire_t;

static side_t side[2];
static dn_auth_mode_t auth;
static uint8_t cipher[DN_IPNUMA_ROW_BYTES];
static letter_t letter[ON_WIRE];
static unsigned letters;
static wire_t wire;
static uint32_t datagram_most = DATAGRAM;
static size_t width;         /**< the wire drops what is longer */
static uint64_t narrowed_at; /**< when it began to; 0: it has not */
static uint64_t swallowed;   /**< datagrams that were, or came late for their length */
static uint64_t clock_ns, random_;
static uint64_t emitted, order, refused;
static uint64_t rows; /**< of several datagrams that went at once */

static void put_on_wire(int to, const void *bytes, size_t len, uint64_t after)
{
    if (ON_WIRE == letters) {
        return;
    }
    letter_t *l = &letter[letters++];
    *l = (letter_t){.at = clock_ns + after, .order = order++, .to = to, .len = len};
    memcpy(l->bytes, bytes, len);
    if (dn_test_below(&random_, 100) < wire.change) {
        l->bytes[dn_test_below(&random_, len)] ^= (uint8_t) (1 + dn_test_below(&random_, 255));
    }
}

static int emit_one(int to, const void *bytes, size_t len)
{
    if (0 != wire.refuse && dn_test_below(&random_, 100) < wire.refuse) {
        refused++;
        return 0;
    }
    emitted++;
    assert_true(datagram_most >= len);
    uint64_t later = 0;
    if (width < len) {
        later = clock_ns - narrowed_at < wire.late ? wire.late : 0;
        swallowed += 0 == wire.late || 0 != later;
        if (0 == wire.late) {
            return 1;
        }
    }
    for (int copies = 1 + (dn_test_below(&random_, 100) < wire.doubles); 0 != copies; copies--) {
        if (dn_test_below(&random_, 100) >= wire.lose) {
            const int late = dn_test_below(&random_, 100) < wire.delay;
            put_on_wire(to, bytes, len, 20000 + later + (late ? dn_test_below(&random_, 2000000) : 0));
        }
    }
    return 1;
}

static uint32_t emit(dn_ipnuma_link_t *link, const struct iovec *datagram, uint32_t n)
{
    const int to = link == &side[0].link;
    side_t *from = (side_t *) link;
    size_t bytes = 0;
    uint32_t sent = 0;

    assert_in_range(n, 1, DN_IPNUMA_ROW);
    for (uint32_t i = 0; i < n; i++) {
        /* Only the last is shorter. */
        assert_true(datagram[i].iov_len == datagram[0].iov_len
                    || (i + 1 == n && datagram[i].iov_len < datagram[0].iov_len));
        bytes += datagram[i].iov_len;
        /* A datagram may lie anywhere. */
        dn_ipnuma_head_t head;
        memcpy(&head, datagram[i].iov_base, sizeof(head));
        const uint64_t number = head.number;
        /* Also where one of that number was refused. */
        assert_true(DN_AUTH_ENCRYPTED != auth || number > from->number);
        from->number = number;
    }
    assert_true(DN_IPNUMA_ROW_BYTES >= bytes);
    rows += 1 < n;
    while (sent < n && emit_one(to, datagram[sent].iov_base, datagram[sent].iov_len)) {
        sent++;
    }
    return sent;
}

/** The next TLP that a generator has in store. */
static dn_tlp_t next_tlp(uint64_t *random, uint64_t number, uint8_t *data)
{
    dn_tlp_t tlp = {
        .kind = DN_TLP_WRITE, .tag = (uint8_t) (number / 16), .address = dn_test_below(random, 1 << 20)};

    tlp.len = (uint32_t) (1 + dn_test_length(random, 900));
    if (0 != number % 4) {
        /* Most often a short write says this. */
        tlp.address = tlp.address / DN_TLP_DW * DN_TLP_DW;
        tlp.len = DN_TLP_DW * (1 + tlp.len % 16);
    }
    dn_test_fill(data, tlp.len, number);
    return tlp;
}

static int take(dn_ipnuma_link_t *link, const dn_tlp_t *tlp)
{
    side_t *s = (side_t *) link;
    uint8_t data[1024];
    if (0 != wire.starve && dn_test_below(&random_, 100) < wire.starve) {
        return -1;
    }
    const dn_tlp_t wanted = next_tlp(&s->random_in, s->taken, data);

    assert_int_equal(tlp->kind, wanted.kind);
    assert_int_equal(tlp->tag, wanted.tag);
    assert_int_equal(tlp->address, wanted.address);
    assert_int_equal(tlp->len, wanted.len);
    assert_memory_equal(tlp->data, data, wanted.len);
    s->taken++;
    return 1;
}

static const dn_ipnuma_link_ops_t ops = {emit, take};

static void open_both(uint64_t first)
{
    const dn_ipnuma_link_terms_t terms = {
        .first = first, .datagram = datagram_most, .window = 256 << 10, .ahead = 256 << 10, .cipher = cipher};
    dn_auth_pair_t pair;

    dn_test_fill(&pair, sizeof(pair), 1);
    memset(side, 0, sizeof(side));
    letters = 0;
    for (int i = 0; i < 2; i++) {
        assert_true(dn_ipnuma_link_open(&side[i].link, &ops, &terms));
        dn_ipnuma_link_key(&side[i].link, auth, &pair, (dn_auth_role_t) i, 7, clock_ns);
        side[i].random_out = (uint64_t) i;
        side[i].random_in = (uint64_t) !i;
    }
}

static void close_both(void)
{
    for (int i = 0; i < 2; i++) {
        dn_ipnuma_link_close(&side[i].link);
    }
}

/** Go to the next thing that happens, and have it happen. */
static void step(void)
{
    unsigned next = 0;
    uint64_t at = UINT64_MAX;

    for (unsigned i = 0; i < letters; i++) {
        const letter_t *first = &letter[next];
        const int before =
            letter[i].at == first->at ? letter[i].order < first->order : letter[i].at < first->at;
        next = before ? i : next;
    }
    at = 0 == letters ? at : letter[next].at;
    for (int i = 0; i < 2; i++) {
        const uint64_t timer = dn_ipnuma_link_timer(&side[i].link);
        at = timer < at ? timer : at;
    }
    assert_int_not_equal(at, UINT64_MAX);
    clock_ns = at > clock_ns ? at : clock_ns;
    if (0 != letters && letter[next].at <= clock_ns) {
        letter_t l = letter[next];
        letter[next] = letter[--letters];
        (void) dn_ipnuma_link_receive(&side[l.to].link, l.bytes, l.len, clock_ns);
        assert_null(side[l.to].link.broken);
    }
    for (int i = 0; i < 2; i++) {
        dn_ipnuma_link_tick(&side[i].link, 0, clock_ns);
    }
}

static void append(side_t *s)
{
    uint8_t data[1024];
    const dn_tlp_t tlp = next_tlp(&s->random_out, s->sent, data);
    uint8_t *at = dn_ipnuma_link_append(&s->link, &tlp);

    assert_non_null(at);
    memcpy(at, data, tlp.len);
    s->sent++;
}

/** What the links have counted since a test began. */
static uint64_t resent, doubled, dropped;

static int begin(void **state)
{
    (void) state;
    resent = doubled = dropped = 0;
    return 0;
}

/** The wire changes in the midst, if it is to. */
static void change_wire(uint64_t count)
{
    for (int i = 0; i < 2 && side[0].taken > count / 2; i++) {
        width = 0 == wire.narrow ? SIZE_MAX : wire.narrow;
        narrowed_at = 0 == narrowed_at ? clock_ns : narrowed_at;
        if (0 != wire.told) {
            (void) dn_ipnuma_link_fit(&side[i].link, wire.told);
        }
    }
}

/** So many TLPs in each direction over this wire. The connection stays. @return datagrams that it took. */
static uint64_t carry_on(wire_t how, uint64_t seed, uint64_t count, uint64_t first)
{
    const uint64_t began = clock_ns;

    wire = how;
    random_ = seed;
    emitted = 0;
    width = SIZE_MAX;
    narrowed_at = 0;
    open_both(first);
    while (side[0].taken < count || side[1].taken < count || 0 != dn_ipnuma_link_behind(&side[0].link)
           || 0 != dn_ipnuma_link_behind(&side[1].link)) {
        for (int i = 0; i < 2; i++) {
            const unsigned most = 0 == wire.burst ? 8 : wire.burst;
            for (unsigned burst = 0;
                 burst < most && side[i].sent < count && dn_ipnuma_link_behind(&side[i].link) < 128 << 10;
                 burst++) {
                append(&side[i]);
            }
            /* While packets are on their way, a turn comes that sends the rest. */
            const int gathers = 0 != side[i].link.loss.count && 0 == dn_test_below(&random_, 2);
            (gathers ? dn_ipnuma_link_send_full : dn_ipnuma_link_send)(&side[i].link, clock_ns);
        }
        step();
        change_wire(count);
        if (clock_ns - began > count * UINT64_C(40000000)) {
            print_error("seed %llu: %llu and %llu taken\n", (unsigned long long) seed,
                        (unsigned long long) side[0].taken, (unsigned long long) side[1].taken);
            fail();
        }
    }
    assert_int_equal(side[0].taken, count);
    assert_int_equal(side[1].taken, count);
    for (int i = 0; i < 2; i++) {
        resent += side[i].link.counts.resent;
        doubled += side[i].link.counts.doubled;
        dropped += side[i].link.counts.dropped;
    }
    return emitted;
}

static uint64_t carry(wire_t how, uint64_t seed, uint64_t count, uint64_t first)
{
    const uint64_t datagrams = carry_on(how, seed, count, first);

    close_both();
    return datagrams;
}

static void a_good_wire_carries_each_once(void **state)
{
    (void) state;
    (void) carry((wire_t){.lose = 0}, 1, 2000, 1);
    assert_int_equal(resent + doubled + dropped, 0);
    /* Several TLPs go in one datagram. */
    assert_true(carry((wire_t){.lose = 0}, 2, 2000, 1) < 4000);
    /* And several datagrams at once. */
    assert_true(0 != rows);
}

static void what_is_lost_is_sent_again(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        (void) carry((wire_t){.lose = 10}, seed, 1000, 1);
    }
    assert_true(0 != resent);
    assert_int_equal(dropped, 0);
}

static void what_comes_twice_or_late_is_taken_once(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        (void) carry((wire_t){.doubles = 20, .delay = 30}, seed, 1000, 1);
    }
    assert_true(0 != doubled);
    assert_int_equal(dropped, 0);
}

static void what_was_changed_is_dropped(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        (void) carry((wire_t){.change = 10}, seed, 500, 1);
    }
    assert_true(0 != dropped);
}

static void all_at_once_is_survived(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        (void) carry((wire_t){.lose = 10, .doubles = 5, .delay = 10, .change = 3}, seed, 1000,
                     0 == seed % 2 ? 1 : (UINT64_C(1) << 32) - 200);
    }
}

/** What the sender's own process has no room for was not lost. */
static void what_finds_no_room_goes_later(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        refused = 0;
        (void) carry((wire_t){.refuse = 30}, seed, 1000, 1);
        assert_true(0 != refused);
    }
    assert_int_equal(resent + dropped, 0);
}

/** What there is no memory for is not acknowledged, and comes again, in the midst of a piece, too. */
static void what_there_is_no_memory_for_is_taken_later(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        (void) carry((wire_t){.starve = 10, .lose = 2}, seed, 500, 1);
    }
    assert_true(0 != dropped);
}

/** Each packet is a range of its own, as numbers between them were never sent: a packet with a piece has no room for all, and a word
 * tells the others before their sender takes them for lost. */
static void what_a_piece_has_no_room_to_tell_a_word_tells(void **state)
{
    enum { PACKETS = DN_IPNUMA_GAPS_AHEAD + 1 };

    (void) state;
    wire = (wire_t){.lose = 0};
    open_both(1);
    for (int i = 0; i < PACKETS; i++) {
        append(&side[0]);
        dn_ipnuma_link_send(&side[0].link, clock_ns);
        (void) dn_loss_skip(&side[0].link.loss);
    }
    assert_int_equal(letters, PACKETS);
    for (unsigned i = 0; i < PACKETS; i++) {
        assert_true(dn_ipnuma_link_receive(&side[1].link, letter[i].bytes, letter[i].len, clock_ns));
    }
    letters = 0;
    assert_int_equal(side[1].link.seen.count, PACKETS);
    append(&side[1]);
    dn_ipnuma_link_send(&side[1].link, clock_ns);
    dn_ipnuma_link_tick(&side[1].link, 0, clock_ns);
    assert_int_equal(letters, 2);
    /* The word overtakes the piece. */
    for (unsigned i = 2; i-- > 0;) {
        assert_true(dn_ipnuma_link_receive(&side[0].link, letter[i].bytes, letter[i].len, clock_ns));
    }
    dn_ipnuma_link_tick(&side[0].link, 0, clock_ns);
    assert_int_equal(side[0].link.loss.count, 0);
    assert_int_equal(side[0].link.counts.resent, 0);
    close_both();
}

static void what_has_room_gathers(void **state)
{
    dn_ipnuma_link_t *link = &side[0].link;

    (void) state;
    wire = (wire_t){.lose = 0};
    width = SIZE_MAX;
    open_both(1);
    append(&side[0]);
    emitted = 0;
    dn_ipnuma_link_send_full(link, clock_ns);
    assert_int_equal(emitted, 0);
    while (link->waits == link->last) {
        append(&side[0]);
    }
    dn_ipnuma_link_send_full(link, clock_ns);
    assert_int_equal(emitted, 1);
    assert_non_null(link->waits);
    assert_ptr_equal(link->waits, link->last);
    /* All that could go has gone: the program limits what is sent, and not the path. */
    assert_int_not_equal(link->loss.bbr.limited, 0);
    assert_false(link->paced);
    dn_ipnuma_link_send(link, clock_ns);
    assert_int_equal(emitted, 2);
    assert_null(link->waits);
    while (side[1].taken < side[0].sent || 0 != dn_ipnuma_link_behind(link)) {
        step();
    }
    close_both();
}

static void a_bad_wire_only_slows(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        (void) carry((wire_t){.lose = 60}, seed, 200, 1);
    }
}

/** Datagrams are as short as every path takes them, where longer ones go nowhere, and no longer than the kernel says. */
static void a_wire_that_becomes_narrower_brings_all(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        const unsigned bad = (unsigned) seed % 3;
        const wire_t how = {.lose = 5 * bad,
                            .doubles = 5 * bad,
                            .delay = 5 * bad,
                            .change = bad,
                            .starve = 2 * bad,
                            .refuse = 5 * bad,
                            .burst = 100,
                            .narrow = DN_IPNUMA_DATAGRAM_LEAST};
        datagram_most = 0 == seed % 2 ? DATAGRAM : DATAGRAM_MOST;
        swallowed = 0;
        (void) carry_on(how, seed, 8000, 0 == seed % 4 ? 1 : (UINT64_C(1) << 32) - 200);
        assert_true(0 != swallowed);
        for (int i = 0; i < 2; i++) {
            dn_ipnuma_link_t *link = &side[i].link;
            assert_int_equal(link->piece, DN_IPNUMA_PART_BYTES);
            /* The path may be wider again after some time. */
            dn_ipnuma_link_tick(link, 0, clock_ns + DN_IPNUMA_RAISE_NS + 1);
            assert_int_equal(link->piece, link->room);
        }
        close_both();
    }
    datagram_most = DATAGRAM;
}

/** Append and step until the black hole is found, or is over. */
static void carry_until(int hole)
{
    while (hole != (0 != side[0].link.hole_at)) {
        while (dn_ipnuma_link_behind(&side[0].link) < 128 << 10) {
            append(&side[0]);
        }
        dn_ipnuma_link_send(&side[0].link, clock_ns);
        step();
    }
}

/** Have all come that was sent, and time go by until @p at, unless it is later by then. */
static void wait_until(uint64_t at)
{
    while (0 != dn_ipnuma_link_behind(&side[0].link)) {
        step();
    }
    clock_ns = clock_ns < at ? at : clock_ns;
    dn_ipnuma_link_tick(&side[0].link, 0, clock_ns);
}

/** Long datagrams are tried again soon, and ever later where they are lost again. When one has come, all begins anew. */
static void a_narrow_wire_is_tried_ever_later(void **state)
{
    dn_ipnuma_link_t *link = &side[0].link;
    uint64_t longest = DN_IPNUMA_RAISE_NS;

    (void) state;
    wire = (wire_t){.lose = 0};
    width = DN_IPNUMA_DATAGRAM_LEAST;
    open_both(1);
    for (int i = 0; i < 9; i++) {
        carry_until(1);
        assert_int_equal(link->piece, DN_IPNUMA_PART_BYTES);
        const uint64_t found = link->hole_at;
        wait_until(found + longest);
        assert_int_equal(link->piece, DN_IPNUMA_PART_BYTES);
        wait_until(found + longest + 1);
        assert_int_equal(link->piece, link->room);
        longest = 2 * longest < DN_IPNUMA_RAISE_MOST_NS ? 2 * longest : DN_IPNUMA_RAISE_MOST_NS;
    }
    assert_int_equal(longest, DN_IPNUMA_RAISE_MOST_NS);
    width = SIZE_MAX;
    for (int i = 0; i < 100; i++) {
        append(&side[0]);
    }
    dn_ipnuma_link_send(link, clock_ns);
    wait_until(clock_ns);
    width = DN_IPNUMA_DATAGRAM_LEAST;
    carry_until(1);
    wait_until(link->hole_at + DN_IPNUMA_RAISE_NS + 1);
    assert_int_equal(link->piece, link->room);
    close_both();
}

/** The network is crowded: all long datagrams come, but so late that they seem to be lost. */
static void a_wire_that_is_late_is_soon_no_narrow_one(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const wire_t how = {.late = 50000000, .narrow = DN_IPNUMA_DATAGRAM_LEAST, .burst = 100};
        const uint64_t began = clock_ns;
        swallowed = 0;
        (void) carry_on(how, seed, 8000, 1);
        while (0 != letters) {
            step();
        }
        assert_true(0 != swallowed);
        assert_true(0 != side[0].link.hole_ns);
        assert_true(clock_ns - began < DN_IPNUMA_RAISE_NS);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(side[i].link.hole_at, 0);
            assert_int_equal(side[i].link.piece, side[i].link.room);
        }
        close_both();
    }
}

/** No datagram is lost for its length here. */
static void a_wire_that_loses_some_is_not_taken_for_a_narrow_one(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        (void) carry_on((wire_t){.lose = 10, .delay = 5, .doubles = 5, .burst = 100}, seed, 2000, 1);
        assert_int_equal(side[0].link.piece, side[0].link.room);
        assert_int_equal(side[1].link.piece, side[1].link.room);
        close_both();
    }
}

static void datagrams_are_as_long_as_the_kernel_says(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        (void) carry_on((wire_t){.told = 1304, .burst = 100, .lose = (unsigned) seed % 2 * 5}, seed, 2000, 1);
        assert_int_equal(side[0].link.piece, 1304 - DN_IPNUMA_AROUND);
        assert_int_equal(dn_ipnuma_link_fit(&side[0].link, 1304), 0);
        /* And not longer than there is room for. */
        assert_int_equal(dn_ipnuma_link_fit(&side[0].link, DN_IPNUMA_DATAGRAM), 1);
        assert_int_equal(side[0].link.piece, side[0].link.room);
        close_both();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_good_wire_carries_each_once, begin),
        cmocka_unit_test_setup(what_is_lost_is_sent_again, begin),
        cmocka_unit_test_setup(what_comes_twice_or_late_is_taken_once, begin),
        cmocka_unit_test_setup(what_was_changed_is_dropped, begin),
        cmocka_unit_test_setup(all_at_once_is_survived, begin),
        cmocka_unit_test_setup(what_finds_no_room_goes_later, begin),
        cmocka_unit_test_setup(what_there_is_no_memory_for_is_taken_later, begin),
        cmocka_unit_test_setup(what_a_piece_has_no_room_to_tell_a_word_tells, begin),
        cmocka_unit_test_setup(what_has_room_gathers, begin),
        cmocka_unit_test_setup(a_bad_wire_only_slows, begin),
        cmocka_unit_test_setup(a_wire_that_becomes_narrower_brings_all, begin),
        cmocka_unit_test_setup(a_narrow_wire_is_tried_ever_later, begin),
        cmocka_unit_test_setup(a_wire_that_is_late_is_soon_no_narrow_one, begin),
        cmocka_unit_test_setup(a_wire_that_loses_some_is_not_taken_for_a_narrow_one, begin),
        cmocka_unit_test_setup(datagrams_are_as_long_as_the_kernel_says, begin),
    };

    auth = DN_AUTH_FULL;
    const int failed = cmocka_run_group_tests_name("tags", tests, dn_unit_setup, NULL);
    auth = DN_AUTH_ENCRYPTED;
    return failed + cmocka_run_group_tests_name("encrypted", tests, dn_unit_setup, NULL);
}
