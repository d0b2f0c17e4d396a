/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A peer is found lost by a message that is sent to it. The completions of its other operations start operations towards another
 * peer meanwhile: the one whose message it was ends once all the same. The device is replaced.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"

typedef struct job {
    dn_comp_t comp;
    unsigned times;
    dn_status_t status; /**< of the last time */
    struct job *next;   /**< started when this one ends; NULL: none */
} job_t;

static dn_port_t *port, *far;
static dn_peer_t *self, *other;
static dn_key_t key;
static dn_status_t answer; /**< of the device, to the next message to self */

static dn_status_t fake_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                             size_t head_len, const void *body, size_t body_len)
{
    if (self != peer) {
        return DN_OK;
    }
    if (DN_ERR_UNREACH == answer) {
        dn_port_peer_lost(port, (dn_peer_base_t *) peer);
    }
    return answer;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 2};
    dn_segment_t *segment = NULL;
    static uint64_t memory;

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &far), DN_OK);
    self = dn_unit_connect(port, port);
    other = dn_unit_connect(port, far);
    assert_int_equal(dn_segment_register(port, &memory, sizeof(memory), &segment), DN_OK);
    dn_segment_key(segment, &key);
    self->ops.botf = fake_botf;
    other->ops.botf = fake_botf;
    answer = DN_OK;
    return 0;
}

static int teardown(void **state)
{
    dn_close(far);
    dn_close(port);
    return 0;
}

static dn_status_t start(job_t *job, dn_peer_t *peer)
{
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = sizeof(uint64_t), .key = &key, .comp = &job->comp};

    return dn_core_atomic(peer, &amo);
}

/** dn_comp_fn_t. */
static void on_end(dn_comp_t *comp, dn_status_t status)
{
    job_t *job = (job_t *) comp;

    job->times++;
    job->status = status;
    if (NULL != job->next) {
        assert_int_equal(start(job->next, other), DN_INPROGRESS);
    }
}

static void check_others(const job_t *first, const job_t *next)
{
    assert_int_equal(first->times, 1);
    assert_int_equal(first->status, DN_ERR_UNREACH);
    assert_int_equal(next->times, 0);
    assert_int_equal(((dn_peer_base_t *) self)->outstanding, 0);
    assert_int_equal(((dn_peer_base_t *) other)->outstanding, 1);
}

static void one_that_is_refused_is_not_signalled(void **state)
{
    job_t next = {.comp.fn = on_end}, last = {.comp.fn = on_end};
    job_t first = {.comp.fn = on_end, .next = &next};

    assert_int_equal(start(&first, self), DN_INPROGRESS);
    answer = DN_ERR_UNREACH;
    assert_int_equal(start(&last, self), DN_ERR_UNREACH);
    assert_int_equal(last.times, 0);
    check_others(&first, &next);
}

static void one_that_has_waited_is_signalled_once(void **state)
{
    job_t next = {.comp.fn = on_end}, last = {.comp.fn = on_end};
    job_t first = {.comp.fn = on_end, .next = &next};

    assert_int_equal(start(&first, self), DN_INPROGRESS);
    answer = DN_ERR_AGAIN;
    assert_int_equal(start(&last, self), DN_INPROGRESS);
    answer = DN_ERR_UNREACH;
    (void) dn_core_progress(port);
    assert_int_equal(last.times, 1);
    assert_int_equal(last.status, DN_ERR_UNREACH);
    check_others(&first, &next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_refused_is_not_signalled, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_has_waited_is_signalled_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
