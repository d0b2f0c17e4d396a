/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process asks a peer for a bounded number of answers at a time, and keeps a bounded number of them for a peer. The device
 * is replaced: the test decides which messages find credit, and answers them itself.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_core_int.h"

enum { ROOM = 64, OPS = 3 * DN_CORE_ASKED_MAX, BLOCKS = 2 * DN_CORE_ASKED_MAX * DN_CORE_NEAR_BLOCKS };

typedef struct job {
    dn_comp_t comp;
    unsigned times;
    dn_status_t status;
} job_t;

static dn_port_t *port;
static dn_peer_t *self;
static dn_peer_base_t *base;
static dn_key_t key;
static uint8_t memory[ROOM];
/** What the replaced device was given. */
static struct sent {
    uint64_t id[OPS];
    dn_core_request_t request[OPS];
    unsigned count;
    dn_status_t status; /**< its answer to the next message */
} sent;
static uint8_t window_room[4096];

static dn_status_t fake_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                             size_t head_len, const void *body, size_t body_len)
{
    if (DN_ERR_UNREACH == sent.status) {
        dn_port_peer_lost(port, base);
    }
    if (DN_OK == sent.status) {
        memcpy(&sent.id[sent.count++], head, sizeof(sent.id[0]));
    }
    return sent.status;
}

static dn_status_t fake_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    if (DN_ERR_UNREACH == sent.status) {
        dn_port_peer_lost(port, base);
    }
    assert_true(len <= sizeof(window_room));
    *window = (dn_window_t){.data = window_room, .len = len};
    return sent.status;
}

static void fake_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    memcpy(&sent.request[sent.count], window_room, sizeof(sent.request[0]));
    sent.id[sent.count] = sent.request[sent.count].id;
    sent.count++;
}

static int setup(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    dn_segment_t *segment = NULL;

    assert_int_equal(dn_open(dn_device_name(0), &job, NULL, &port), DN_OK);
    self = dn_unit_connect(port, port);
    base = (dn_peer_base_t *) self;
    base->botf_max = sizeof(window_room);
    assert_int_equal(dn_segment_register(port, memory, ROOM, &segment), DN_OK);
    dn_segment_key(segment, &key);
    self->ops.botf = fake_botf;
    self->ops.reserve = fake_reserve;
    self->ops.kick = fake_kick;
    memset(&sent, 0, sizeof(sent));
    return 0;
}

static int teardown(void **state)
{
    dn_close(port);
    return 0;
}

static void on_done(dn_comp_t *comp, dn_status_t status)
{
    job_t *job = (job_t *) comp;

    job->times++;
    job->status = status;
}

/** A message of the peer. */
static void give(unsigned tag, const void *message, size_t len)
{
    dn_core_handler(self, tag, message, len, port);
}

/** Answer an atomic operation that was sent as the n-th message. */
static void answer_amo(unsigned n)
{
    const dn_core_reply_t reply = {.id = sent.id[n], .status = DN_OK, .off = n};

    give(DN_CORE_AMO_DONE, &reply, sizeof(reply));
}

static void operations_beyond_the_bound_wait_for_answers(void **state)
{
    static job_t job[OPS];
    static uint64_t old[OPS];
    unsigned answered = 0;

    memset(job, 0, sizeof(job));
    for (unsigned i = 0; i < OPS; i++) {
        job[i].comp.fn = on_done;
        const dn_amo_t amo = {
            .op = DN_AMO_ADD, .width = 8, .result = &old[i], .key = &key, .comp = &job[i].comp};
        assert_int_equal(dn_core_atomic(self, &amo), DN_INPROGRESS);
    }
    assert_int_equal(sent.count, DN_CORE_ASKED_MAX);
    dn_core_progress(port);
    assert_int_equal(sent.count, DN_CORE_ASKED_MAX);
    answer_amo(answered++);
    dn_core_progress(port);
    assert_int_equal(sent.count, DN_CORE_ASKED_MAX + 1);
    while (answered < OPS) {
        answer_amo(answered++);
        dn_core_progress(port);
        assert_true(sent.count - answered <= DN_CORE_ASKED_MAX);
    }
    assert_int_equal(sent.count, OPS);
    for (unsigned i = 0; i < OPS; i++) {
        assert_int_equal(job[i].times, 1);
        assert_int_equal(job[i].status, DN_OK);
        assert_int_equal(old[i], i); /* they went in the order in which they were started */
    }
    assert_int_equal(base->core.asked, 0);
    assert_int_equal(base->outstanding, 0);
    assert_false(dn_core_busy(&port->core));
}

/** Answer the n-th message, a request of one byte a block. */
static void answer_pull(unsigned n)
{
    struct {
        dn_core_reply_t reply;
        uint8_t data[DN_CORE_NEAR_BLOCKS];
    } message = {
        .reply = {
            .id = sent.id[n], .off = sent.request[n].off, .len = sent.request[n].blocks, .status = DN_OK}};

    for (unsigned i = 0; i < sent.request[n].blocks; i++) {
        message.data[i] = dn_test_byte(n, i);
    }
    give(DN_CORE_PULL_DATA, &message, sizeof(message.reply) + sent.request[n].blocks);
}

/** One PULL of more requests than may be asked at once goes on when all that were asked have been answered. */
static void a_pull_of_many_requests_ends(void **state)
{
    static dn_block_t block[BLOCKS];
    static uint8_t local[BLOCKS];
    job_t job = {.comp.fn = on_done};

    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = (dn_block_t){.at = 2 * i % ROOM, .len = 1};
    }
    const dn_sg_t sg = {.block = block, .count = BLOCKS};
    const dn_xfer_t xfer = {.local = local, .key = &key, .remote_sg = &sg, .len = BLOCKS, .comp = &job.comp};
    assert_int_equal(dn_core_pull(self, &xfer), DN_INPROGRESS);
    assert_int_equal(sent.count, DN_CORE_ASKED_MAX);
    for (unsigned n = 0; n < BLOCKS / DN_CORE_NEAR_BLOCKS; n++) {
        assert_int_equal(job.times, 0);
        assert_true(n < sent.count);
        answer_pull(n);
        dn_core_progress(port);
    }
    assert_int_equal(job.times, 1);
    assert_int_equal(job.status, DN_OK);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(local[i], dn_test_byte(i / DN_CORE_NEAR_BLOCKS, i % DN_CORE_NEAR_BLOCKS));
    }
    assert_int_equal(base->core.asked, 0);
}

/** Ask for eight bytes of the segment, as a peer does. */
static void ask(uint32_t number)
{
    struct {
        dn_core_request_t request;
        dn_block_t block;
    } message = {.request = {.id = number,
                             .sid = key.sid,
                             .sid_generation = key.generation,
                             .blocks = 1,
                             .flags = DN_CORE_FIRST},
                 .block = {.at = 0, .len = 8}};

    give(DN_CORE_PULL, &message, sizeof(message));
}

static void a_peer_that_asks_for_too_much_is_cut_off(void **state)
{
    sent.status = DN_ERR_AGAIN;
    for (unsigned i = 0; i < DN_CORE_ANSWERS_MAX; i++) {
        ask(i);
    }
    assert_int_not_equal(base->life, DN_PEER_LOST);
    assert_int_equal(base->core.answering, DN_CORE_ANSWERS_MAX);
    dn_test_log_expect();
    ask(DN_CORE_ANSWERS_MAX);
    assert_true(dn_test_log_said(1, "more answers than may be asked for at once"));
    assert_int_equal(base->life, DN_PEER_LOST);
    assert_int_equal(base->core.answering, 0);
    assert_false(dn_core_busy(&port->core));
}

/** A PUSH of many messages to memory that is gone: its initiator is told once. */
static void refusals_of_one_push_wait_as_one(void **state)
{
    struct {
        dn_core_request_t request;
        dn_block_t block;
        uint8_t data[8];
    } message = {.request = {.id = 7,
                             .sid = key.sid,
                             .sid_generation = key.generation + 1,
                             .blocks = 1,
                             .flags = DN_CORE_FIRST},
                 .block = {.at = 0, .len = 8}};

    sent.status = DN_ERR_AGAIN;
    for (unsigned i = 0; i <= DN_CORE_ANSWERS_MAX; i++) {
        give(DN_CORE_PUSH, &message, sizeof(message));
    }
    assert_int_equal(base->core.answering, 1);
    message.request.id++;
    give(DN_CORE_PUSH, &message, sizeof(message));
    assert_int_equal(base->core.answering, 2);
    assert_int_not_equal(base->life, DN_PEER_LOST);
    sent.status = DN_OK;
    dn_core_progress(port);
    assert_int_equal(sent.count, 2);
    assert_int_equal(base->core.answering, 0);
}

/** A device may find within a call that the peer is lost: each operation ends once. */
static void check_each_ended_once(const job_t *job, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(job[i].times, 1);
        assert_int_equal(job[i].status, DN_ERR_UNREACH);
    }
    assert_int_equal(base->outstanding, 0);
    assert_int_equal(base->core.asked, 0);
    assert_false(dn_core_busy(&port->core));
}

static void a_peer_lost_in_progress_ends_each_operation_once(void **state)
{
    job_t job[3] = {{.comp.fn = on_done}, {.comp.fn = on_done}, {.comp.fn = on_done}};
    dn_xfer_t xfer = {.local = memory, .key = &key, .len = 8};

    for (unsigned i = 0; i < 3; i++) {
        /* The first waits for its answer, the others for credit. */
        sent.status = 0 == i ? DN_OK : DN_ERR_AGAIN;
        xfer.comp = &job[i].comp;
        assert_int_equal(dn_core_push(self, &xfer), DN_INPROGRESS);
    }
    sent.status = DN_ERR_UNREACH;
    dn_core_progress(port);
    check_each_ended_once(job, 3);
}

static void a_peer_lost_at_the_start_ends_each_operation_once(void **state)
{
    job_t job[2] = {{.comp.fn = on_done}, {.comp.fn = on_done}};
    dn_xfer_t xfer = {.local = memory, .key = &key, .len = 8, .comp = &job[0].comp};

    assert_int_equal(dn_core_push(self, &xfer), DN_INPROGRESS);
    sent.status = DN_ERR_UNREACH;
    xfer.comp = &job[1].comp;
    assert_int_equal(dn_core_push(self, &xfer), DN_ERR_UNREACH);
    assert_int_equal(job[1].times, 0);
    check_each_ended_once(job, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operations_beyond_the_bound_wait_for_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pull_of_many_requests_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_asks_for_too_much_is_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_of_one_push_wait_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_lost_in_progress_ends_each_operation_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_lost_at_the_start_ends_each_operation_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
