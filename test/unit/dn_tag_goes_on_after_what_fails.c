/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Operations of a device that fail while the peer lives: a message comes another way, or the owner is told the reason.
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
static dn_comp_t *pulled;              /**< the completion of the PULL that has begun */
static unsigned short_of_memory, lost; /**< so often the engine has said so */

static void on_complete(dn_tag_req_t *req)
{
    ((job_t *) req)->times++;
}

static void on_no_memory(void *arg)
{
    short_of_memory++;
}

static void on_lost(dn_tag_peer_t *gone, int matters, void *arg)
{
    lost++;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    const dn_tag_config_t config = {
        .limit = {.eager_limit = 1000, .unexpected_limit = 1 << 20, .announce_min = UINT32_MAX},
        .progress = dn_unit_tag_no_progress,
        .lost = on_lost,
        .no_memory = on_no_memory};

    pulled = NULL;
    short_of_memory = lost = 0;
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

/** Progress until that is so. */
#define until(condition)                              \
    for (unsigned turns = 0; !(condition); turns++) { \
        (void) dn_progress(port);                     \
        (void) dn_tag_progress(tag);                  \
        assert_true(turns < 10000000);                \
    }

static dn_status_t pull_later(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    pulled = xfer->comp;
    return DN_INPROGRESS;
}

static void pulls_that_fail_late_become_pieces(void **state)
{
    static job_t job[2];

    for (size_t i = 0; i < LONG; i++) {
        sent[i] = (uint8_t) (i * 7);
    }
    peer->peer->ops.pull = pull_later;
    start_receive(&job[1], LONG);
    start_send(&job[0], LONG, 0);
    until(NULL != pulled);
    assert_int_equal(job[1].times, 0);
    pulled->fn(pulled, DN_ERR_ACCESS);
    until(0 != job[0].times && 0 != job[1].times);
    assert_int_equal(job[1].req.status, DN_OK);
    assert_memory_equal(received, sent, LONG);
    assert_int_equal(short_of_memory, 0);
}

static dn_status_t no_message(dn_peer_t *hot, unsigned channel, unsigned kind, const void *first,
                              size_t first_len, const void *body, size_t body_len)
{
    return DN_ERR_NOMEM;
}

static void answers_that_cannot_leave_are_told(void **state)
{
    static job_t job[2];

    start_send(&job[0], 8, 1);
    peer->peer->ops.botf = no_message;
    start_receive(&job[1], 8);
    until(0 != job[1].times);
    assert_int_equal(job[1].req.status, DN_OK);
    assert_int_equal(job[0].times, 0);
    assert_int_equal(short_of_memory, 1);
}

static void messages_that_cannot_leave_the_line_are_told(void **state)
{
    static job_t line[3000];
    unsigned waiting = 0;

    while (NULL == peer->waits.first) {
        assert_true(waiting < sizeof(line) / sizeof(line[0]));
        start_send(&line[waiting++], 8, 0);
    }
    dn_status_t (*const botf)(dn_peer_t *, unsigned, unsigned, const void *, size_t, const void *, size_t) =
        peer->peer->ops.botf;
    peer->peer->ops.botf = no_message;
    until(0 != short_of_memory || 0 != lost);
    assert_int_equal(lost, 0);
    peer->peer->ops.botf = botf;
    until(0 != line[waiting - 1].times);
    assert_int_equal(line[waiting - 1].req.status, DN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pulls_that_fail_late_become_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_that_cannot_leave_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_that_cannot_leave_the_line_are_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
