/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Contexts that have a name: two engines give them different numbers, and find each other's messages; in every way that a message goes,
 * before the receiver knows the name, and behind what waits for room. Messages of numbers without a name are dropped.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_unit_tag.h"

enum {
    CHANNEL = DN_CHAN_USER,
    MOST = 100000,
    STRANGE = 4096, /**< names that an engine takes from others */
    TURNS = 1000
};

typedef struct job {
    dn_tag_req_t req;
    int times;
    uint8_t memory[MOST];
} job_t;

/** A process, so to speak. */
typedef struct side {
    dn_port_t *port;
    dn_tag_t *tag;
    dn_tag_peer_t *to; /**< the other one */
    uint32_t context;
    job_t job;
} side_t;

static side_t sender, receiver;

/** A name, and two that have a word in common with it. */
static const uint64_t name[2] = {7, 9}, other[2] = {7, 8}, third[2] = {9, 7};

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static void open_side(side_t *side, uint32_t pid)
{
    const dn_job_t job = {.pid = pid, .nlocal = 2};
    const dn_tag_config_t config = {
        .limit = {.eager_limit = 1000, .unexpected_limit = 1 << 20, .stream = DN_PACE_STREAM_AUTO},
        .progress = dn_unit_tag_no_progress,
        .lost = dn_unit_tag_lost,
        .no_memory = dn_unit_tag_no_memory};

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &side->port), DN_OK);
    assert_int_equal(dn_tag_open(side->port, CHANNEL, &config, &side->tag), DN_OK);
}

static int setup(void **state)
{
    open_side(&sender, 0);
    open_side(&receiver, 1);
    sender.to = dn_tag_join(sender.tag, dn_unit_connect(sender.port, receiver.port), &sender);
    receiver.to = dn_tag_join(receiver.tag, dn_unit_connect(receiver.port, sender.port), &receiver);
    assert_non_null(sender.to);
    assert_non_null(receiver.to);
    return 0;
}

static int teardown(void **state)
{
    dn_tag_close(sender.tag);
    dn_tag_close(receiver.tag);
    dn_close(sender.port);
    dn_close(receiver.port);
    return 0;
}

static void progress(void)
{
    for (int i = 0; i < 20; i++) {
        (void) dn_progress(sender.port);
        (void) dn_tag_progress(sender.tag);
        (void) dn_progress(receiver.port);
        (void) dn_tag_progress(receiver.tag);
    }
}

static void know(side_t *side)
{
    assert_int_equal(dn_tag_name(side->tag, name, &side->context), DN_OK);
    assert_int_equal(side->context & (DN_TAG_NAMED | DN_TAG_ABROAD), DN_TAG_NAMED);
}

/** The receiver has had two names before, so that the numbers differ. */
static void know_others(void)
{
    uint32_t context[2];

    assert_int_equal(dn_tag_name(receiver.tag, other, &context[0]), DN_OK);
    assert_int_equal(dn_tag_name(receiver.tag, third, &context[1]), DN_OK);
    assert_int_not_equal(context[0], context[1]);
}

static void introduce(void)
{
    assert_int_equal(dn_tag_introduce(sender.to, name, sender.context), DN_OK);
}

static void start_send(size_t len, int synchronous)
{
    const dn_tag_head_t head = {.context = dn_tag_abroad(sender.context), .tag = 5};

    sender.job.times = 0;
    sender.job.req.complete = on_complete;
    dn_test_fill(sender.job.memory, len, len);
    dn_tag_memory(&sender.job.req, sender.job.memory, len);
    assert_int_equal(dn_tag_send(&sender.job.req, sender.to, &head, synchronous), DN_OK);
}

static void start_receive(void)
{
    receiver.job.times = 0;
    receiver.job.req.complete = on_complete;
    memset(receiver.job.memory, 0, MOST);
    dn_tag_memory(&receiver.job.req, receiver.job.memory, MOST);
    dn_tag_wants(&receiver.job.req,
                 (dn_tag_want_t){.context = receiver.context, .source = DN_MATCH_ANY_SOURCE, .tag = 5});
    dn_tag_recv(receiver.tag, &receiver.job.req, NULL, 0);
}

static void await_message(size_t len)
{
    static uint8_t expected[MOST];

    for (int i = 0; i < TURNS && (0 == receiver.job.times || 0 == sender.job.times); i++) {
        progress();
    }
    assert_int_equal(receiver.job.times, 1);
    assert_int_equal(sender.job.times, 1);
    assert_int_equal(receiver.job.req.size, len);
    assert_int_equal(receiver.job.req.head.context, receiver.context);
    dn_test_fill(expected, len, len);
    assert_memory_equal(receiver.job.memory, expected, len);
    assert_int_equal(receiver.tag->dropped, 0);
}

static bool is_here(void)
{
    dn_tag_found_t found;

    return dn_tag_probe(
        receiver.tag, &(dn_tag_want_t){.context = receiver.context, .source = DN_MATCH_ANY_SOURCE, .tag = 5},
        &found);
}

/** Eager, flowing, and announced. */
static const size_t lengths[] = {0, 8, 1000, 5000, 20000, MOST};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void messages_of_each_way_find_the_context(void **state)
{
    know_others();
    know(&receiver);
    know(&sender);
    assert_int_not_equal(sender.context, receiver.context);
    introduce();
    for (int i = 0; i < 2 * LENGTHS; i++) {
        const size_t len = lengths[i / 2];

        start_receive();
        start_send(len, i % 2);
        await_message(len);
        start_send(len, i % 2);
        progress();
        assert_true(is_here());
        start_receive();
        await_message(len);
    }
}

static void a_blocking_receive_takes_no_number_for_its_own(void **state)
{
    dn_tag_head_t head;
    size_t size;
    uint64_t bytes;

    /* Both have the first number that they give, for different names. */
    know(&sender);
    assert_int_equal(dn_tag_name(receiver.tag, other, &receiver.context), DN_OK);
    assert_int_equal(sender.context, receiver.context);
    introduce();
    progress();
    start_send(sizeof(bytes), 0);
    const dn_tag_want_t want = {.context = receiver.context, .tag = 5};
    assert_false(dn_tag_take_next(receiver.to, want, &bytes, sizeof(bytes), 10, &head, &size));
    progress();
    assert_false(is_here());
    know(&receiver);
    start_receive();
    await_message(sizeof(bytes));
}

static void messages_wait_for_a_name_that_is_not_known_yet(void **state)
{
    know_others();
    know(&sender);
    introduce();
    start_send(8, 0);
    progress();
    know(&receiver);
    assert_true(is_here());
    start_receive();
    await_message(8);
}

static void names_keep_their_place_behind_what_waits_for_room(void **state)
{
    const dn_tag_head_t head = {.context = 1, .tag = 1};
    static job_t waits;

    know_others();
    know(&receiver);
    know(&sender);
    while (DN_OK == dn_tag_inject(sender.to, &head, waits.memory, 1000)) {
    }
    waits.req.complete = on_complete;
    dn_tag_memory(&waits.req, waits.memory, 1000);
    assert_int_equal(dn_tag_send(&waits.req, sender.to, &head, 0), DN_OK);
    assert_int_equal(waits.times, 0);
    introduce();
    start_send(8, 0);
    start_receive();
    await_message(8);
    assert_int_equal(waits.times, 1);
}

static void who_is_left_gets_no_name(void **state)
{
    const dn_tag_head_t head = {.context = 1, .tag = 1};

    know(&sender);
    while (DN_OK == dn_tag_inject(sender.to, &head, sender.job.memory, 1000)) {
    }
    /* It waits, and is freed with the peer: a leak sanitizer looks. */
    introduce();
}

static void what_has_no_name_is_dropped(void **state)
{
    know(&sender);
    know(&receiver);
    start_send(8, 0);
    progress();
    assert_int_equal(receiver.tag->dropped, 1);
    /* Nor does a number of the receiver's own lead anywhere. */
    const dn_tag_head_t head = {.context = receiver.context, .tag = 5};
    assert_int_equal(dn_botf(sender.to->peer, CHANNEL, DN_TAG_EAGER, &head, sizeof(head), NULL, 0), DN_OK);
    progress();
    assert_int_equal(receiver.tag->dropped, 2);
    assert_false(is_here());
}

static void a_context_ends_with_its_last_owner(void **state)
{
    uint32_t again;

    know(&sender);
    know(&receiver);
    assert_int_equal(dn_tag_name(receiver.tag, name, &again), DN_OK);
    assert_int_equal(again, receiver.context);
    introduce();
    start_send(8, 0);
    progress();
    dn_tag_unname(receiver.tag, again);
    assert_true(is_here());
    dn_tag_unname(receiver.tag, receiver.context);
    assert_false(is_here());
    assert_int_equal(receiver.to->kept_bytes, 0);
    start_send(8, 0);
    progress();
    assert_int_equal(receiver.tag->dropped, 1);
    /* The next one of that name is another one. */
    know(&receiver);
    assert_int_not_equal(again, receiver.context);
    assert_false(is_here());
}

static void a_sender_that_makes_up_names_is_bounded(void **state)
{
    for (uint32_t i = 1; i <= STRANGE + 10; i++) {
        const dn_tag_named_t named = {.head.context = DN_TAG_NAMED | DN_TAG_ABROAD | i, .word = {i, 0}};

        while (DN_ERR_AGAIN
               == dn_botf(sender.to->peer, CHANNEL, DN_TAG_NAME, &named, sizeof(named), NULL, 0)) {
            progress();
        }
    }
    for (int i = 0; i < TURNS && 10 > receiver.tag->dropped; i++) {
        progress();
    }
    progress();
    assert_int_equal(receiver.tag->dropped, 10);
    /* The receiver's own names still find their way. */
    know(&receiver);
    know(&sender);
    introduce();
    progress();
    assert_int_equal(receiver.tag->dropped, 10);
}

static void numbers_that_are_not_a_senders_are_malformed(void **state)
{
    static const uint32_t bad[] = {1, DN_TAG_ABROAD | 1, DN_TAG_NAMED | 1};

    for (int i = 0; i < 3; i++) {
        const dn_tag_named_t named = {.head.context = bad[i], .word = {1, 2}};

        assert_int_equal(dn_botf(sender.to->peer, CHANNEL, DN_TAG_NAME, &named, sizeof(named), NULL, 0),
                         DN_OK);
    }
    progress();
    assert_int_equal(receiver.tag->dropped, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_of_each_way_find_the_context, setup, teardown),
        cmocka_unit_test_setup_teardown(a_blocking_receive_takes_no_number_for_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_wait_for_a_name_that_is_not_known_yet, setup, teardown),
        cmocka_unit_test_setup_teardown(names_keep_their_place_behind_what_waits_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_left_gets_no_name, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_name_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_context_ends_with_its_last_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sender_that_makes_up_names_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_not_a_senders_are_malformed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
