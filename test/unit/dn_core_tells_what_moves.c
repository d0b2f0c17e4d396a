/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * While a long PUSH or PULL goes by messages, both of its ends see each piece move: dn_peer_moves(). A transfer that nobody serves does not
 * move.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"

enum {
    LEN = 16 << 20, /**< more than finds room at once */
    LEAST = 10,     /**< pieces, at least */
    IN_VAIN = 1000,
    POLLS_MAX = 1000000, /**< a transfer that has not ended by then has failed */
};

static dn_port_t *port, *far;
static dn_peer_t *to_far, *to_port;
static dn_key_t key;
static uint8_t here[LEN], there[LEN];
static dn_comp_t comp;
static int ended;

/** dn_comp_fn_t. */
static void on_end(dn_comp_t *at, dn_status_t status)
{
    assert_int_equal(status, DN_OK);
    ended = 1;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 2}, far_job = {.pid = 1, .nlocal = 2};
    dn_segment_t *segment = NULL;

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_open(dn_device_name(0), &far_job, NULL, &far), DN_OK);
    to_far = dn_unit_connect(port, far);
    to_port = dn_unit_connect(far, port);
    assert_int_equal(dn_segment_register(far, there, LEN, &segment), DN_OK);
    dn_segment_key(segment, &key);
    comp.fn = on_end;
    ended = 0;
    return 0;
}

static int teardown(void **state)
{
    dn_close(port);
    dn_close(far);
    return 0;
}

/** Do a transfer of all bytes. */
static void transfer(dn_status_t (*start)(dn_peer_t *, const dn_xfer_t *))
{
    const dn_xfer_t xfer = {.local = here, .key = &key, .len = LEN, .comp = &comp};

    assert_int_equal(start(to_far, &xfer), DN_INPROGRESS);
    /* What finds room moves. */
    for (int i = 0; i < IN_VAIN; i++) {
        (void) dn_progress(port);
    }
    const uint32_t begun = dn_peer_moves(to_far);
    for (int i = 0; i < IN_VAIN; i++) {
        (void) dn_progress(port);
    }
    assert_int_equal(dn_peer_moves(to_far), begun);
    assert_int_equal(dn_peer_moves(to_port), 0);
    for (int i = 0; !ended && i < POLLS_MAX; i++) {
        (void) dn_progress(far);
        (void) dn_progress(port);
    }
    assert_true(ended);
    assert_true(LEAST <= dn_peer_moves(to_far) - begun);
    assert_true(LEAST <= dn_peer_moves(to_port));
}

static void pieces_of_a_push(void **state)
{
    transfer(dn_core_push);
}

static void pieces_of_a_pull(void **state)
{
    transfer(dn_core_pull);
}

static void nobody_moves_nothing(void **state)
{
    assert_int_equal(dn_peer_moves(dn_peer_nobody()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_of_a_push, setup, teardown),
        cmocka_unit_test_setup_teardown(pieces_of_a_pull, setup, teardown),
        cmocka_unit_test(nobody_moves_nothing),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
