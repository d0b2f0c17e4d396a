/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What comes while a port closes: a process that joins is not called wrong, a process that has just opened its connection, or wants to, is
 * told of the end, also where there is no memory to say so, and messages for a peer that is being freed wait for nobody.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <sched.h>
#include <stdbool.h>

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

/** Limit of a wait. */
#define LIMIT_NS UINT64_C(30000000000)

static dn_port_t *port[2];

static dn_ipnuma_t *device_of(int i)
{
    return (dn_ipnuma_t *) port[i]->ifaces;
}

/** The connection of a port with the other one, as that port has it; NULL: none. Needs the lock. */
static dn_ipnuma_pc_t *pc_of(int i)
{
    return dn_ipnuma_pc_of(device_of(i), device_of(!i)->where.nonce);
}

static _Thread_local bool no_memory; /**< malloc() fails in this thread */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

static unsigned heard; /**< messages */

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    heard++;
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
}

static void open_both(void)
{
    heard = 0;
    for (int i = 0; i < 2; i++) {
        const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
        assert_int_equal(dn_open("ipnuma:lo", &job, NULL, &port[i]), DN_OK);
        assert_int_equal(dn_handler_set(port[i], DN_CHAN_USER, hear, NULL), DN_OK);
    }
}

static void close_both(void)
{
    dn_close(port[1]);
    dn_close(port[0]);
}

static void set_closing(int i)
{
    dn_ipnuma_lock(device_of(i));
    device_of(i)->closing = 1;
    dn_ipnuma_unlock(device_of(i));
}

/** State of a port's connection with the other one. */
static enum dn_ipnuma_pc_state state_of(int i)
{
    dn_ipnuma_lock(device_of(i));
    const dn_ipnuma_pc_t *pc = pc_of(i);
    const enum dn_ipnuma_pc_state state = NULL == pc ? DN_IPNUMA_GREETS : pc->state;
    dn_ipnuma_unlock(device_of(i));
    return state;
}

/** Have port 0 look until the connection of a port has some state, or the limit passes. */
static void progress_until(int i, enum dn_ipnuma_pc_state state)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;

    while (state != state_of(i) && dn_clock_ns() < until) {
        dn_progress(port[0]);
        sched_yield();
    }
    assert_int_equal(state_of(i), state);
}

/** Wait until both sides have opened the connection. */
static void await_open(void)
{
    progress_until(0, DN_IPNUMA_OPEN);
    progress_until(1, DN_IPNUMA_OPEN);
}

/** Port 1 has a peer that has not joined. It closes, and the peer joins and sends before it is released. */
static void a_late_sender_is_not_called_wrong(void **state)
{
    dn_status_t status;

    (void) state;
    open_both();
    (void) dn_unit_connect(port[1], port[0]);
    await_open();
    set_closing(1);
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);
    while (DN_ERR_AGAIN == (status = dn_botf(peer, DN_CHAN_USER, 0, NULL, 0, NULL, 0))) {
        dn_progress(port[0]);
    }
    assert_int_equal(status, DN_OK);
    /* A sentence about a wrong peer would end this program. */
    while (DN_INPROGRESS == (status = dn_fence(peer))) {
        dn_progress(port[0]);
    }
    assert_int_equal(status, DN_OK);
    assert_int_equal(state_of(1), DN_IPNUMA_OPEN);
    close_both();
}

/** Port 1 begins to close between its CHALLENGE and the PROOF. */
static void who_opens_late_is_told_of_the_end(void **state)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    int got;

    (void) state;
    open_both();
    assert_int_equal(dn_address(port[1], address, &len), DN_OK);
    /* The thread of port 1 reads nothing meanwhile. */
    dn_ipnuma_lock(device_of(1));
    assert_int_equal(dn_connect(port[0], address, len, &peer), DN_OK);
    /* Port 0 says nothing more, until port 1 has read each HELLO: a HELLO that comes when port 1 closes is refused. */
    dn_ipnuma_lock(device_of(0));
    do {
        got = dn_ipnuma_socket_receive(device_of(1));
        sched_yield();
    } while ((0 == device_of(1)->napplicants || 0 != got) && dn_clock_ns() < until);
    assert_int_equal(device_of(1)->napplicants, 1);
    device_of(1)->closing = 1;
    dn_ipnuma_unlock(device_of(0));
    dn_ipnuma_unlock(device_of(1));
    progress_until(0, DN_IPNUMA_DEAD);
    dn_ipnuma_lock(device_of(1));
    assert_true(NULL != pc_of(1) && pc_of(1)->closes);
    dn_ipnuma_unlock(device_of(1));
    close_both();
}

/** The CHALLENGE by which the other process answers the HELLO of a connection. */
static dn_ipnuma_challenge_datagram_t make_challenge(const dn_ipnuma_pc_t *pc, enum dn_ipnuma_refusal why)
{
    dn_ipnuma_challenge_datagram_t datagram = {.head = {.token = pc->token, .kind = DN_IPNUMA_CHALLENGE},
                                               .challenge = {.terms = {.token = 1, .why = why}}};
    dn_ipnuma_challenge_t *challenge = &datagram.challenge;
    dn_auth_side_t theirs = pc->greet.theirs;
    dn_auth_pair_t pair;

    memcpy(theirs.random, challenge->random, sizeof(theirs.random));
    dn_auth_pair(&pc->greet.root, &pc->greet.ours, &theirs, &pair);
    dn_auth_prove(&pair, DN_AUTH_ACCEPTOR, &challenge->terms, sizeof(challenge->terms), challenge->mac);
    return datagram;
}

/** Both ports have said HELLO. The second one leaves it to the first one to open the connection, but hears that the first one closes. */
static void who_waits_to_be_opened_hears_of_the_end(void **state)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;

    (void) state;
    open_both();
    const uint64_t *const nonce[2] = {device_of(0)->where.nonce, device_of(1)->where.nonce};
    const int first = 0 < memcmp(nonce[0], nonce[1], sizeof(device_of(0)->where.nonce));
    assert_int_equal(dn_address(port[first], address, &len), DN_OK);
    /* The first port reads nothing, so all that the second one hears is made here. */
    dn_ipnuma_lock(device_of(first));
    assert_int_equal(dn_connect(port[!first], address, len, &peer), DN_OK);
    dn_ipnuma_t *second = device_of(!first);
    dn_ipnuma_lock(second);
    const dn_ipnuma_pc_t *pc = pc_of(!first);
    const uint64_t now = dn_clock_ns();
    dn_ipnuma_applicant_t *applicant = calloc(1, sizeof(*applicant));
    assert_non_null(applicant);
    *applicant = (dn_ipnuma_applicant_t){.since = now, .where = device_of(first)->where};
    second->applicant = applicant;
    second->napplicants = 1;
    dn_ipnuma_challenge_datagram_t datagram = make_challenge(pc, DN_IPNUMA_WELCOME);
    dn_ipnuma_arrived(second, (uint8_t *) &datagram, sizeof(datagram), now);
    assert_int_equal(pc->state, DN_IPNUMA_GREETS);
    datagram = make_challenge(pc, DN_IPNUMA_CLOSED);
    dn_ipnuma_arrived(second, (uint8_t *) &datagram, sizeof(datagram), now);
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    dn_ipnuma_unlock(second);
    dn_ipnuma_unlock(device_of(first));
    close_both();
}

/** Open a connection of both ports. @return that of port 1, whose lock is held. */
static dn_ipnuma_pc_t *open_and_lock(void)
{
    open_both();
    (void) dn_unit_connect(port[0], port[1]);
    await_open();
    dn_ipnuma_lock(device_of(1));
    return pc_of(1);
}

/** The connections open, and are told of the end once: dn_close() has not to wait for an answer to a second CLOSE. */
static void the_end_is_told_once(void **state)
{
    dn_ipnuma_pc_t *pc = open_and_lock();

    (void) state;
    dn_ipnuma_leave(pc, DN_TLP_CLOSE);
    const uint64_t end = pc->link.end;
    dn_ipnuma_leave(pc, DN_TLP_CLOSE);
    dn_ipnuma_leave(pc, DN_TLP_LEAVE);
    assert_int_equal(pc->link.end, end);
    dn_ipnuma_unlock(device_of(1));
    close_both();
}

/** Processes that have joined a port. */
static uint32_t senders_of(int i)
{
    dn_ipnuma_lock(device_of(i));
    const uint32_t senders = device_of(i)->nsenders;
    dn_ipnuma_unlock(device_of(i));
    return senders;
}

/** A port closes and has no memory to say so: the connection ends, and the other port learns that. */
static void an_end_without_memory_is_told(void **state)
{
    dn_ipnuma_pc_t *pc = open_and_lock();

    (void) state;
    no_memory = true;
    dn_ipnuma_leave(pc, DN_TLP_CLOSE);
    no_memory = false;
    assert_int_equal(pc->state, DN_IPNUMA_DEAD);
    dn_ipnuma_unlock(device_of(1));
    progress_until(0, DN_IPNUMA_DEAD);
    close_both();
}

/** A process leaves and has no memory to say so. */
static void a_leave_without_memory_is_told(void **state)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;

    (void) state;
    open_both();
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);
    await_open();
    while (DN_INPROGRESS == dn_fence(peer)) {
        dn_progress(port[0]);
    }
    assert_int_equal(senders_of(1), 1);
    dn_ipnuma_lock(device_of(0));
    /* What is free belongs to a slab. */
    pc_of(0)->link.spare = NULL;
    no_memory = true;
    dn_ipnuma_leave(pc_of(0), DN_TLP_LEAVE);
    no_memory = false;
    dn_ipnuma_unlock(device_of(0));
    while (0 != senders_of(1) && dn_clock_ns() < until) {
        sched_yield();
    }
    assert_int_equal(senders_of(1), 0);
    close_both();
}

/** A message that comes while a peer is being freed is not handed to a handler as the peer's. */
static void a_peer_that_goes_is_not_queued(void **state)
{
    (void) state;
    open_both();
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);
    dn_peer_base_t *going = (dn_peer_base_t *) dn_unit_connect(port[1], port[0]);
    await_open();
    dn_ipnuma_lock(device_of(1));
    dn_ipnuma_peer_turn((dn_ipnuma_peer_t *) going, DN_IPNUMA_GOING);
    dn_ipnuma_unlock(device_of(1));
    assert_int_equal(dn_botf(peer, DN_CHAN_USER, 0, NULL, 0, NULL, 0), DN_OK);
    while (DN_INPROGRESS == dn_fence(peer)) {
        dn_progress(port[0]);
    }
    dn_ipnuma_lock(device_of(1));
    assert_non_null(((dn_ipnuma_peer_t *) going)->first);
    assert_int_equal(((dn_ipnuma_peer_t *) going)->queued, 0);
    assert_int_equal(device_of(1)->nready, 0);
    dn_ipnuma_unlock(device_of(1));
    close_both();
}

/** Has port 0 left port 1, and is there a message of it that no handler has taken? */
static bool has_left(bool message)
{
    dn_ipnuma_lock(device_of(1));
    const dn_ipnuma_pc_t *pc = pc_of(1);
    const bool has = !pc->joined && message == (NULL != pc->peer->first);
    dn_ipnuma_unlock(device_of(1));
    return has;
}

/** Port 0 joins port 1. @return the peer. */
static dn_peer_t *join_and_send(void)
{
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);

    assert_int_equal(dn_botf(peer, DN_CHAN_USER, 0, NULL, 0, NULL, 0), DN_OK);
    return peer;
}

/** Port 0 leaves port 1. */
static void leave(dn_peer_t *peer, bool message)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;

    dn_disconnect(peer);
    while (!has_left(message) && dn_clock_ns() < until) {
        dn_progress(port[0]);
        sched_yield();
    }
    assert_true(has_left(message));
}

/** dn_comp_t::fn, while port 1 frees its peer. Port 0 goes on, and sends to port 1. */
static void come_and_go(dn_comp_t *comp, dn_status_t status)
{
    (void) comp;
    assert_int_equal(status, DN_ERR_UNREACH);
    dn_ipnuma_unlock(device_of(0));
    dn_ipnuma_lock(device_of(1));
    assert_int_equal(device_of(1)->nready, 0);
    dn_ipnuma_unlock(device_of(1));
    leave(join_and_send(), true);
}

/** A process joins, sends and leaves, all while its last peer is being freed. Its message is for its next peer, which goes then. The last
 * peer is not in the queue, though dn_recv() has left it there. */
static void a_message_for_a_peer_that_goes_is_handed_on(void **state)
{
    static uint64_t word;
    dn_comp_t comp = {come_and_go};
    dn_segment_t *segment = NULL;
    dn_key_t key;

    (void) state;
    open_both();
    assert_int_equal(dn_segment_register(port[0], &word, sizeof(word), &segment), DN_OK);
    dn_segment_key(segment, &key);
    dn_peer_t *peer = dn_unit_connect(port[1], port[0]);
    dn_peer_t *first = join_and_send();
    await_open();
    while (0 == heard) {
        dn_progress(port[0]);
        dn_recv(peer, 1);
    }
    leave(first, false);
    /* The thread of port 0 does not answer meanwhile. */
    dn_ipnuma_lock(device_of(0));
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .key = &key, .comp = &comp};
    assert_int_equal(dn_atomic(peer, &amo), DN_INPROGRESS);
    dn_disconnect(peer);
    const uint64_t until = dn_clock_ns() + LIMIT_NS;
    while (0 != dn_load_acquire_u32(&device_of(1)->npeers) && dn_clock_ns() < until) {
        dn_progress(port[1]);
        sched_yield();
    }
    assert_int_equal(heard, 2);
    assert_int_equal(dn_load_acquire_u32(&device_of(1)->npeers), 0);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_sender_is_not_called_wrong),
        cmocka_unit_test(who_opens_late_is_told_of_the_end),
        cmocka_unit_test(who_waits_to_be_opened_hears_of_the_end),
        cmocka_unit_test(the_end_is_told_once),
        cmocka_unit_test(an_end_without_memory_is_told),
        cmocka_unit_test(a_leave_without_memory_is_told),
        cmocka_unit_test(a_peer_that_goes_is_not_queued),
        cmocka_unit_test(a_message_for_a_peer_that_goes_is_handed_on),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
