/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Over a network a message of medium length that answers another goes at once, and one that follows another is announced: told by
 * how many messages of libdimmnet each takes.
 *
 *   ofi_answers [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

#include "dn_tag.h"

enum { LIMIT = 4096, LONG = 12000, ROUNDS = 20 };

/** A request over a buffer. */
typedef struct answer {
    dn_tag_req_t req;
    int done;
    uint8_t byte[LONG];
} answer_t;

static dn_world_t *world;
static dn_tag_t *tag;
static dn_tag_peer_t *other;

static void progress(void *arg)
{
    (void) arg;
    dn_progress(world->port);
    dn_tag_progress(tag);
}

static void lost(dn_tag_peer_t *peer, int matters, void *arg)
{
    (void) peer;
    (void) arg;
    dn_check(!matters);
}

static void no_memory(void *arg)
{
    (void) arg;
    dn_check(0);
}

static void complete(dn_tag_req_t *req)
{
    dn_store_seq_cst(&((answer_t *) req)->done, 1);
}

static void wait_for(answer_t *answer)
{
    while (!dn_load_seq_cst(&answer->done)) {
        progress(NULL);
    }
    dn_check_equal(answer->req.status, DN_OK);
}

static void begin(answer_t *answer)
{
    memset(&answer->req, 0, sizeof(answer->req));
    answer->done = 0;
    answer->req.complete = complete;
    answer->req.buffer = answer->byte;
    answer->req.len = LONG;
}

static void send_one(answer_t *answer, uint64_t key)
{
    const dn_tag_head_t head = {.context = 1, .source = world->rank, .tag = key};

    begin(answer);
    dn_test_fill(answer->byte, LONG, key);
    dn_check_equal(dn_tag_send(&answer->req, other, &head, 0), DN_OK);
}

static void receive_one(answer_t *answer, uint64_t key)
{
    const dn_tag_want_t want = {.context = 1, .source = 1 - world->rank, .tag = key};

    begin(answer);
    dn_tag_wants(&answer->req, want);
    dn_tag_recv(tag, &answer->req, other, 0);
}

static uint64_t sent(void)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.messages_sent;
}

static void start(dn_world_t *here)
{
    const dn_tag_config_t config = {
        .limit = {.eager_limit = LIMIT, .unexpected_limit = 1 << 20, .spin_polls = 100},
        .progress = progress,
        .lost = lost,
        .no_memory = no_memory};
    world = here;
    dn_world_start(world);
    dn_check_equal(dn_tag_open(world->port, DN_WORLD_CHAN, &config, &tag), DN_OK);
    const dn_board_seat_t *seat = &world->board->seat[1 - world->rank];
    dn_peer_t *hot = NULL;
    dn_check_equal(dn_connect(world->port, seat->address, seat->address_len, &hot), DN_OK);
    other = dn_tag_join(tag, hot, NULL);
    dn_check(NULL != other);
    dn_world_barrier(world);
}

static void stop(void)
{
    dn_world_barrier(world);
    dn_tag_close(tag);
    dn_world_stop(world);
}

static void an_answer_goes_at_once(dn_world_t *here)
{
    static answer_t out, in;
    uint64_t before = 0;

    start(here);
    for (uint64_t i = 0; i <= ROUNDS; i++) {
        if (1 == i) {
            /* The first of all answers nothing. */
            before = sent();
        }
        receive_one(&in, i);
        if (0 == world->rank) {
            send_one(&out, i);
            wait_for(&in);
        } else {
            wait_for(&in);
            send_one(&out, i);
        }
        wait_for(&out);
        dn_check_equal(dn_test_mismatch(in.byte, LONG, i), LONG);
    }
    dn_check_equal(sent() - before, ROUNDS);
    stop();
}

static void what_follows_is_announced(dn_world_t *here)
{
    static answer_t each[ROUNDS];

    start(here);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (0 == world->rank) {
            send_one(&each[i], i);
        } else {
            receive_one(&each[i], i);
        }
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        wait_for(&each[i]);
        dn_check_equal(dn_test_mismatch(each[i].byte, LONG, i), LONG);
    }
    if (1 == world->rank) {
        /* The receiver has said of each that it is there. */
        dn_check(ROUNDS <= sent());
    }
    stop();
}

static const dn_world_test_t tests[] = {
    {"an_answer_goes_at_once", 2, an_answer_goes_at_once},
    {"what_follows_is_announced", 2, what_follows_is_announced},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_answers", argv[1]);
}
