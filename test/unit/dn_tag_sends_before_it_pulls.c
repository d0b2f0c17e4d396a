/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Two processes exchange long messages. A sender that reads its receiver's messages does not fetch their bytes before its own message has
 * left: the other process would wait for that message meanwhile. And a message that crosses another is copied by its receiver alone.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_unit_tag.h"

enum { CHANNEL = DN_CHAN_USER, LONG = 256 << 10, POLLS = 1000, SIDES = 2 };

/** A side: a process with a peer. */
typedef struct side {
    dn_port_t *port;
    dn_tag_t *tag;
    dn_tag_peer_t *to;
    dn_tag_req_t send, receive;
    int sent, received;
    uint8_t from[LONG], into[LONG];
} side_t;

static side_t sides[SIDES];
static const dn_tag_head_t head = {1, 0, 5};

static void on_complete(dn_tag_req_t *req)
{
    for (int i = 0; i < SIDES; i++) {
        sides[i].sent += &sides[i].send == req;
        sides[i].received += &sides[i].receive == req;
    }
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = SIDES};
    const dn_tag_config_t config = {.limit = {.eager_limit = 4096,
                                              .unexpected_limit = 1 << 20,
                                              .announce_min = LONG - 1,
                                              .stream = DN_PACE_STREAM_AUTO},
                                    .progress = dn_unit_tag_no_progress,
                                    .lost = dn_unit_tag_lost,
                                    .no_memory = dn_unit_tag_no_memory};
    dn_config_t settings;

    dn_config_init(&settings);
    memset(sides, 0, sizeof(sides));
    for (int i = 0; i < SIDES; i++) {
        assert_int_equal(dn_open(dn_device_name(0), &job, &settings, &sides[i].port), DN_OK);
        assert_int_equal(dn_tag_open(sides[i].port, CHANNEL, &config, &sides[i].tag), DN_OK);
    }
    for (int i = 0; i < SIDES; i++) {
        side_t *side = &sides[i];

        side->to = dn_tag_join(side->tag, dn_unit_connect(side->port, sides[1 - i].port), side->tag);
        assert_non_null(side->to);
    }
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < SIDES; i++) {
        dn_tag_close(sides[i].tag);
        dn_close(sides[i].port);
    }
    return 0;
}

static void send(side_t *side)
{
    side->sent = 0;
    side->send.complete = on_complete;
    dn_test_fill(side->from, LONG, (uint64_t) (side - sides));
    dn_tag_memory(&side->send, side->from, LONG);
    assert_int_equal(dn_tag_send(&side->send, side->to, &head, 0), DN_OK);
}

static void receive(side_t *side)
{
    side->received = 0;
    side->receive.complete = on_complete;
    dn_tag_memory(&side->receive, side->into, LONG);
    dn_tag_wants(&side->receive,
                 (dn_tag_want_t){.context = head.context, .source = head.source, .tag = head.tag});
    dn_tag_recv(side->tag, &side->receive, NULL, 0);
}

static void poll(side_t *side)
{
    (void) dn_progress(side->port);
    (void) dn_tag_pump(side->tag);
}

/** Poll until a side has its message, which the other side has sent. */
static void await(side_t *side)
{
    for (int polls = 0; 0 == side->received && polls < POLLS; polls++) {
        poll(side);
    }
    assert_int_equal(side->received, 1);
    assert_int_equal(side->receive.status, DN_OK);
    assert_memory_equal(side->into, sides[side == sides].from, LONG);
}

static void await_sent(side_t *side)
{
    for (int polls = 0; 0 == side->sent && polls < POLLS; polls++) {
        poll(side);
    }
    assert_int_equal(side->sent, 1);
}

/** A message from one side to the other; nothing else is under way. Where the two sides share a core, a rule decides. */
static void send_alone(side_t *side, side_t *other, enum dn_pace_way way)
{
    receive(other);
    send(side);
    await(other);
    assert_int_equal(other->receive.way, dn_oversubscribed(other->port) ? DN_PACE_BY_RULE : way);
    await_sent(side);
}

/** Side 1 has announced a receive a while ago, so side 0 looks for another announcement before it sends. */
static void a_message_leaves_before_the_sender_fetches_others(void **state)
{
    send_alone(&sides[1], &sides[0], DN_PACE_PULL);
    receive(&sides[0]);
    receive(&sides[1]);
    send(&sides[1]);
    sides[0].to->looks = 1;
    send(&sides[0]);
    assert_int_equal(sides[0].to->looks, 0);
    assert_int_equal(sides[0].received, 0);
    /* Side 1 finds it, though side 0 has not polled since. */
    await(&sides[1]);
    assert_int_equal(sides[0].received, 0);
    await(&sides[0]);
    await_sent(&sides[0]);
    await_sent(&sides[1]);
}

/** The ways of the messages of the two sides. */
static void messages_that_cross_are_known(void **state)
{
    for (int i = 0; i < 20; i++) {
        receive(&sides[0]);
        receive(&sides[1]);
        send(&sides[0]);
        send(&sides[1]);
        await(&sides[0]);
        await(&sides[1]);
        assert_int_equal(sides[0].receive.way, DN_PACE_BY_RULE);
        /* Side 1 has sent before it took the message of side 0. */
        assert_int_equal(sides[1].receive.way, DN_PACE_BY_RULE);
        await_sent(&sides[0]);
        await_sent(&sides[1]);
    }
}

/** Each side answers the other: nothing crosses, and the sender, which waits, may copy a share. */
static void answers_do_not_cross(void **state)
{
    for (int i = 0; i < 4; i++) {
        send_alone(&sides[i % SIDES], &sides[(i + 1) % SIDES], DN_PACE_PULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_leaves_before_the_sender_fetches_others, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_that_cross_are_known, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_do_not_cross, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
