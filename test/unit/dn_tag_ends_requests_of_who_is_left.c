/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Who parts from a peer gets its requests back: sends that wait for a reply end with an error, receives stay posted. What the
 * peer has sent is gone, and nothing reaches into its memory later.
 */
#include "dn_config.h"

#include "dn_unit.h"
#include "dn_unit_tag.h"

#include "dn_tag.h"

enum { LONG = 100000, CHANNEL = DN_CHAN_USER };

typedef struct job {
    dn_tag_req_t req;
    unsigned times;
} job_t;

static dn_port_t *port;
static dn_tag_t *tag;
static dn_tag_peer_t *peer;
static uint8_t sent[LONG], received[LONG];
static const dn_tag_head_t head = {1, 0, 7};

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static void on_progress(void *arg)
{
    dn_progress(port);
    dn_tag_progress(tag);
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    const dn_tag_config_t config = {.limit = {.eager_limit = 1000,
                                              .unexpected_limit = 1 << 20,
                                              .announce = DN_TAG_ANNOUNCES_ALL,
                                              .announce_min = 50000,
                                              .stream = DN_PACE_STREAM_AUTO},
                                    .progress = on_progress,
                                    .lost = dn_unit_tag_lost,
                                    .no_memory = dn_unit_tag_no_memory};

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    assert_int_equal(dn_tag_open(port, CHANNEL, &config, &tag), DN_OK);
    peer = dn_tag_join(tag, dn_unit_connect(port, port), &port);
    assert_non_null(peer);
    return 0;
}

static int teardown(void **state)
{
    dn_tag_close(tag);
    dn_close(port);
    return 0;
}

static void start_send(job_t *job, size_t len, int synchronous)
{
    *job = (job_t){.req.complete = on_complete};
    dn_tag_memory(&job->req, sent, len);
    assert_int_equal(dn_tag_send(&job->req, peer, &head, synchronous), DN_OK);
}

static void start_receive(job_t *job, size_t len)
{
    *job = (job_t){.req.complete = on_complete};
    dn_tag_memory(&job->req, received, len);
    dn_tag_wants(&job->req, (dn_tag_want_t){.context = head.context, .source = 0, .tag = head.tag});
    dn_tag_recv(tag, &job->req, peer, 0);
}

static void sends_that_wait_end(void **state)
{
    static job_t job[2], line[3000];
    unsigned waiting = 0;

    start_send(&job[0], 8, 1);
    start_send(&job[1], LONG, 0);
    for (int i = 0; i < 1000; i++) {
        on_progress(NULL);
    }
    assert_int_equal(job[0].times + job[1].times, 0);
    /* Nobody takes anything now: the ring fills, and sends stand in line. */
    while (NULL == peer->waits.first) {
        assert_true(waiting < sizeof(line) / sizeof(line[0]));
        start_send(&line[waiting++], 8, 0);
    }
    start_send(&line[waiting++], 8, 0);
    assert_int_equal(line[waiting - 1].times, 0);
    dn_tag_leave(peer, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(job[i].times, 1);
        assert_int_equal(job[i].req.status, DN_ERR_UNREACH);
    }
    for (unsigned i = 0; i < waiting; i++) {
        assert_int_equal(line[i].times, 1);
    }
}

static void receives_stay_posted(void **state)
{
    static job_t job[2];

    start_receive(&job[0], LONG); /* announced */
    start_receive(&job[1], 8);
    on_progress(NULL);
    dn_tag_leave(peer, 0);
    assert_int_equal(job[0].times + job[1].times, 0);
    for (unsigned i = 0; i < 2; i++) {
        dn_tag_cancel(&job[i].req);
        assert_int_equal(job[i].times, 1);
        assert_int_equal(job[i].req.status, DN_ERR_CANCELED);
    }
}

static void what_was_sent_is_gone(void **state)
{
    const dn_tag_want_t any = {.context = head.context, .source = DN_MATCH_ANY_SOURCE, .ignore = UINT64_MAX};
    static job_t job;
    dn_tag_found_t found;

    start_send(&job, 8, 0);
    while (!dn_tag_probe(tag, &any, &found)) {
        on_progress(NULL);
    }
    assert_int_equal(found.size, 8);
    dn_tag_leave(peer, 0);
    assert_int_equal(dn_tag_probe(tag, &any, &found), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sends_that_wait_end, setup, teardown),
        cmocka_unit_test_setup_teardown(receives_stay_posted, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_sent_is_gone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
