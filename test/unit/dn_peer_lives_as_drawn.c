/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A peer comes, is connected to, left and lost as dn_device.h draws it, and what callers use of it goes with that; a doubt is looked
 * into by the next progress, the life of a process once in so many refusals.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <time.h>

#include "dn_port.h"

enum { REFUSALS = 8 };

static dn_port_t *port[2];
static unsigned heard, told;
static dn_status_t alive;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    heard++;
    *(dn_peer_base_t **) arg = (dn_peer_base_t *) src;
}

static void tell(dn_peer_t *peer, void *arg)
{
    told++;
}

static int setup(void **state)
{
    heard = told = 0;
    for (unsigned i = 0; i < 2; i++) {
        const dn_job_t job = {.key = {{7}}, .pid = i, .size = 2, .nlocal = 2};
        assert_int_equal(dn_open("shm", &job, NULL, &port[i]), DN_OK);
        assert_int_equal(dn_lost_set(port[i], DN_CHAN_USER, tell, NULL), DN_OK);
    }
    return 0;
}

static int teardown(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        if (NULL != port[i]) {
            dn_close(port[i]);
        }
    }
    return 0;
}

static dn_status_t send_to(dn_peer_base_t *peer)
{
    return dn_botf(&peer->hot, DN_CHAN_USER, 0, NULL, 0, NULL, 0);
}

static void a_peer_comes_is_left_and_comes_back(void **state)
{
    dn_peer_base_t *came = NULL;

    assert_int_equal(dn_handler_set(port[1], DN_CHAN_USER, hear, &came), DN_OK);
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);
    assert_int_equal(peer->life, DN_PEER_CONNECTED);
    assert_int_equal(send_to(peer), DN_OK);
    while (0 == heard) {
        dn_progress(port[1]);
    }
    assert_int_equal(came->life, DN_PEER_CAME);
    /* It may be answered, though nobody has connected to it. */
    while (DN_ERR_AGAIN == send_to(came)) {
    }
    dn_progress(port[0]);
    assert_ptr_equal(dn_unit_connect(port[1], port[0]), came);
    assert_int_equal(came->life, DN_PEER_CONNECTED);
    assert_ptr_equal(dn_unit_connect(port[1], port[0]), came);
    dn_disconnect(&came->hot);
    assert_int_equal(came->life, DN_PEER_CONNECTED);
    dn_disconnect(&came->hot);
    assert_int_equal(came->life, DN_PEER_LEFT);
    assert_int_equal(send_to(came), DN_ERR_UNREACH);
    assert_int_equal(send_to(peer), DN_OK);
    while (1 == heard) {
        dn_progress(port[1]);
    }
    assert_ptr_equal(dn_unit_connect(port[1], port[0]), came);
    assert_int_equal(came->life, DN_PEER_CONNECTED);
    assert_int_equal(send_to(came), DN_OK);
    assert_int_equal(told, 0);
}

static void a_doubt_is_looked_into_by_the_next_progress(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *again = NULL;

    dn_peer_doubt(peer, DN_PEER_PARTED);
    dn_peer_doubt(peer, DN_PEER_SUSPECT);
    assert_int_equal(peer->doubt, DN_PEER_PARTED);
    assert_int_equal(peer->life, DN_PEER_CONNECTED);
    assert_int_equal(told, 0);
    dn_progress(port[0]);
    assert_int_equal(peer->life, DN_PEER_LOST);
    assert_int_equal(peer->iface->doubts, 0);
    assert_int_equal(told, 1);
    assert_int_equal(send_to(peer), DN_ERR_UNREACH);
    assert_int_equal(dn_address(port[1], address, &len), DN_OK);
    assert_int_equal(dn_connect(port[0], address, len, &again), DN_ERR_UNREACH);
    /* Once is enough. */
    dn_peer_doubt(peer, DN_PEER_SUSPECT);
    dn_port_peer_lost(port[0], peer);
    dn_progress(port[0]);
    assert_int_equal(told, 1);
    dn_counters_t counters;
    dn_counters(port[0], &counters);
    assert_int_equal(counters.peers_lost, 1);
}

static void a_peer_whose_port_closes_is_lost_when_it_is_looked_at(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);

    assert_int_equal(dn_port_look(peer), DN_OK);
    dn_close(port[1]);
    port[1] = NULL;
    assert_int_equal(peer->life, DN_PEER_CONNECTED);
    assert_int_equal(dn_port_look(peer), DN_ERR_UNREACH);
    assert_int_equal(peer->life, DN_PEER_LOST);
    assert_int_equal(told, 1);
}

/** A port polls until its clock of some milliseconds has gone on, and it has done its chores. */
static void do_chores(dn_port_t *own)
{
    enum { POLLS = 1000, SLEEPS = 3 };

    for (unsigned i = 0; i < SLEEPS; i++) {
        /* The chores are done by the clock: nothing else tells of them. */
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        for (unsigned poll = 0; poll < POLLS; poll++) {
            dn_progress(own);
        }
    }
}

static void close_far(void)
{
    dn_close(port[1]);
    port[1] = NULL;
}

static void who_wants_nothing_of_a_closed_port_is_told_at_the_first_message(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);

    assert_int_equal(send_to(peer), DN_OK);
    close_far();
    do_chores(port[0]);
    assert_int_equal(peer->life, DN_PEER_CONNECTED);
    assert_int_equal(dn_flush(&peer->hot), DN_OK);
    assert_int_equal(told, 0);
    assert_int_equal(send_to(peer), DN_ERR_UNREACH);
    do_chores(port[0]);
    assert_int_equal(peer->life, DN_PEER_LOST);
    assert_int_equal(told, 1);
}

static void a_full_ring_of_a_closed_port_ends_at_once(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);
    dn_status_t status;

    close_far();
    while (DN_OK == (status = send_to(peer))) {
    }
    assert_int_equal(status, DN_ERR_UNREACH);
}

static dn_status_t ended;

static void end(dn_comp_t *comp, dn_status_t status)
{
    ended = status;
}

static void who_waits_for_an_answer_of_a_closed_port_is_told(void **state)
{
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);
    dn_comp_t comp = {.fn = end};
    dn_segment_t *segment;
    uint64_t word = 0;
    dn_key_t key;

    assert_int_equal(dn_segment_register(port[1], &word, sizeof(word), &segment), DN_OK);
    dn_segment_key(segment, &key);
    ended = DN_INPROGRESS;
    assert_int_equal(dn_fetch_add(peer, &key, 0, sizeof(word), 1, NULL, &comp), DN_INPROGRESS);
    close_far();
    do_chores(port[0]);
    assert_int_equal(ended, DN_ERR_UNREACH);
    assert_int_equal(dn_flush(peer), DN_ERR_UNREACH);
    assert_int_equal(told, 1);
}

static const dn_device_t *shm;
static unsigned told_before, left;

/** The device frees the peer. */
static void leave(dn_peer_base_t *peer)
{
    left++;
    told_before = told;
    shm->disconnect(peer);
}

typedef struct parting {
    dn_comp_t comp;
    dn_peer_t *peer;
} parting_t;

static void part(dn_comp_t *comp, dn_status_t status)
{
    ended = status;
    dn_disconnect(((parting_t *) comp)->peer);
}

static void a_completion_leaves_the_peer_that_is_lost(void **state)
{
    parting_t parting = {.comp = {.fn = part}, .peer = dn_unit_connect(port[0], port[1])};
    dn_peer_base_t *peer = (dn_peer_base_t *) parting.peer;
    dn_segment_t *segment;
    uint64_t word = 0;
    dn_key_t key;

    left = 0;
    shm = peer->iface->device;
    dn_device_t device = *shm;
    dn_iface_t *iface = peer->iface;
    device.disconnect = leave;
    iface->device = &device;
    assert_int_equal(dn_segment_register(port[1], &word, sizeof(word), &segment), DN_OK);
    dn_segment_key(segment, &key);
    assert_int_equal(dn_fetch_add(parting.peer, &key, 0, sizeof(word), 1, NULL, &parting.comp),
                     DN_INPROGRESS);
    dn_port_peer_lost(port[0], peer);
    assert_int_equal(ended, DN_ERR_UNREACH);
    /* The device has freed it, once nobody was to be told any more. */
    assert_int_equal(left, 1);
    assert_int_equal(told_before, 1);
    assert_null(dn_port_peers(port[0]));
    iface->device = shm;
}

/** dn_comp_fn_t: make progress. The device would free the peer, if its users were not being told. */
static void make_progress(dn_comp_t *comp, dn_status_t status)
{
    ended = status;
    do_chores(port[1]);
    assert_non_null(dn_port_peers(port[1]));
}

static void a_completion_makes_progress_while_its_peer_is_lost(void **state)
{
    dn_peer_base_t *came = NULL;
    dn_comp_t comp = {.fn = make_progress};
    dn_segment_t *segment;
    uint64_t word = 0;
    dn_key_t key;

    assert_int_equal(dn_handler_set(port[1], DN_CHAN_USER, hear, &came), DN_OK);
    assert_int_equal(send_to((dn_peer_base_t *) dn_unit_connect(port[0], port[1])), DN_OK);
    while (0 == heard) {
        dn_progress(port[1]);
    }
    assert_int_equal(dn_segment_register(port[0], &word, sizeof(word), &segment), DN_OK);
    dn_segment_key(segment, &key);
    assert_int_equal(dn_fetch_add(&came->hot, &key, 0, sizeof(word), 1, NULL, &comp), DN_INPROGRESS);
    dn_close(port[0]);
    port[0] = NULL;
    dn_port_peer_lost(port[1], came);
    assert_int_equal(ended, DN_ERR_UNREACH);
    assert_int_equal(told, 1);
    do_chores(port[1]);
    assert_null(dn_port_peers(port[1]));
}

static void a_segment_goes_with_the_port_of_its_owner(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);
    dn_segment_t *segment;
    uint64_t word = 0;
    dn_key_t key;
    const dn_xfer_t xfer = {.local = &word, .key = &key, .len = sizeof(word)};

    assert_int_equal(dn_segment_alloc(port[1], sizeof(word), &segment), DN_OK);
    dn_segment_key(segment, &key);
    assert_int_equal(dn_push(&peer->hot, &xfer), DN_OK);
    close_far();
    assert_int_equal(dn_push(&peer->hot, &xfer), DN_ERR_UNREACH);
    do_chores(port[0]);
    assert_int_equal(peer->life, DN_PEER_LOST);
}

/** A device that knows what is asked of it. */
static dn_status_t check(dn_peer_base_t *peer)
{
    return alive;
}

static void a_refusal_in_so_many_looks_at_the_process(void **state)
{
    const dn_device_t device = {.name = "fake", .check = check};
    dn_iface_t iface = {.device = &device, .port = port[0]};
    dn_peer_base_t peer = {.iface = &iface, .life = DN_PEER_CONNECTED};

    alive = DN_OK;
    for (unsigned i = 1; i <= 2 * REFUSALS; i++) {
        assert_int_equal(dn_peer_refused(&peer, REFUSALS), 0 == i % REFUSALS ? DN_OK : DN_ERR_AGAIN);
    }
    assert_false(dn_peer_is_doubted(&peer));
    alive = DN_ERR_UNREACH;
    for (unsigned i = 1; i < REFUSALS; i++) {
        assert_int_equal(dn_peer_refused(&peer, REFUSALS), DN_ERR_AGAIN);
    }
    assert_int_equal(dn_peer_refused(&peer, REFUSALS), DN_ERR_UNREACH);
    assert_int_equal(peer.doubt, DN_PEER_SUSPECT);
    assert_int_equal(iface.doubts, 1);
    assert_int_equal(peer.life, DN_PEER_CONNECTED);
}

static void one_that_is_doubted_before_the_port_knows_it_is_lost_then(void **state)
{
    const dn_device_t device = {.name = "fake", .check = check};
    dn_iface_t iface = {.device = &device, .port = port[0]};
    dn_peer_base_t peer = {.iface = &iface, .nonce = {1, 2}};

    dn_peer_doubt(&peer, DN_PEER_PARTED);
    dn_port_bury(&iface);
    assert_int_equal(peer.life, DN_PEER_NEW);
    assert_int_equal(iface.doubts, 0);
    dn_port_adopt(port[0], &peer);
    assert_int_equal(peer.life, DN_PEER_CAME);
    assert_int_equal(iface.doubts, 1);
    dn_port_bury(&iface);
    assert_int_equal(peer.life, DN_PEER_LOST);
    assert_int_equal(told, 1);
    dn_port_forget(port[0], &peer);
    assert_int_equal(peer.life, DN_PEER_LOST);
}

static void one_that_is_lost_before_the_port_knows_it_stays_so(void **state)
{
    const dn_device_t device = {.name = "fake", .check = check};
    dn_iface_t iface = {.device = &device, .port = port[0]};
    dn_peer_base_t peer = {.iface = &iface, .nonce = {1, 2}};

    dn_port_peer_lost(port[0], &peer);
    dn_port_adopt(port[0], &peer);
    assert_int_equal(peer.life, DN_PEER_LOST);
    assert_int_equal(send_to(&peer), DN_ERR_UNREACH);
    dn_port_bury(&iface);
    assert_int_equal(told, 1);
    dn_port_forget(port[0], &peer);
}

static void nobody_is_told_of_one_that_is_forgotten(void **state)
{
    const dn_device_t device = {.name = "fake", .check = check};
    dn_iface_t iface = {.device = &device, .port = port[0]};
    dn_peer_base_t peer = {.iface = &iface, .nonce = {1, 2}};

    dn_port_adopt(port[0], &peer);
    dn_peer_doubt(&peer, DN_PEER_SUSPECT);
    dn_peer_retire(&peer);
    dn_port_bury(&iface);
    dn_port_peer_lost(port[0], &peer);
    assert_int_equal(told, 0);
    dn_port_forget(port[0], &peer);
    assert_int_equal(peer.life, DN_PEER_FORGOTTEN);
}

static void nobody_connects_to_one_that_is_forgotten(void **state)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) dn_unit_connect(port[0], port[1]);
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *again = NULL;

    dn_peer_retire(peer);
    assert_int_equal(dn_address(port[1], address, &len), DN_OK);
    assert_int_equal(dn_connect(port[0], address, len, &again), DN_ERR_UNREACH);
    assert_int_equal(peer->life, DN_PEER_FORGOTTEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_peer_comes_is_left_and_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_doubt_is_looked_into_by_the_next_progress, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_whose_port_closes_is_lost_when_it_is_looked_at, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_wants_nothing_of_a_closed_port_is_told_at_the_first_message,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_ring_of_a_closed_port_ends_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waits_for_an_answer_of_a_closed_port_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_completion_leaves_the_peer_that_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_completion_makes_progress_while_its_peer_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_segment_goes_with_the_port_of_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_in_so_many_looks_at_the_process, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_doubted_before_the_port_knows_it_is_lost_then, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_is_lost_before_the_port_knows_it_stays_so, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_told_of_one_that_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_connects_to_one_that_is_forgotten, setup, teardown),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
