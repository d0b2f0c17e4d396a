/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Over sockets a message of up to sockets_eager_limit goes at once, in whichever direction, and a longer one is announced: told by how
 * many messages of libdimmnet each takes.
 *
 *   ofi_eager [TEST]
 */
#include "dn_config.h"

#include "ofi_world.h"

#include "dn_tag.h"

enum { LIMIT = 4096, MOST = 12000, ROUNDS = 20 };

/** A request over a buffer. */
typedef struct part {
    dn_tag_req_t req;
    int done;
    uint8_t byte[MOST + 1];
} part_t;

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
    dn_store_seq_cst(&((part_t *) req)->done, 1);
}

static void wait_for(part_t *part)
{
    while (!dn_load_seq_cst(&part->done)) {
        progress(NULL);
    }
    dn_check_equal(part->req.status, DN_OK);
}

static void begin(part_t *part, size_t len)
{
    memset(&part->req, 0, sizeof(part->req));
    part->done = 0;
    part->req.complete = complete;
    dn_tag_memory(&part->req, part->byte, len);
}

static void send_one(part_t *part, size_t len, uint64_t key)
{
    const dn_tag_head_t head = {.context = 1, .source = world->rank, .tag = key};

    begin(part, len);
    dn_test_fill(part->byte, len, key);
    dn_check_equal(dn_tag_send(&part->req, other, &head, 0), DN_OK);
}

static void receive_one(part_t *part, size_t len, uint64_t key)
{
    const dn_tag_want_t want = {.context = 1, .source = 1 - world->rank, .tag = key};

    begin(part, len);
    dn_tag_wants(&part->req, want);
    dn_tag_recv(tag, &part->req, other, 0);
}

static uint64_t sent(void)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.messages_sent;
}

static void start(dn_world_t *here)
{
    const dn_tag_config_t config = {.limit = {.eager_limit = LIMIT,
                                              .sockets_eager_limit = MOST,
                                              .unexpected_limit = 1 << 20,
                                              .spin_polls = 100},
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

/** Rank 0 sends ROUNDS messages of a length. @return how many messages this process has sent for that. */
static uint64_t send_a_stream(size_t len)
{
    static part_t each[ROUNDS];
    const uint64_t before = sent();

    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (0 == world->rank) {
            send_one(&each[i], len, i);
        } else {
            receive_one(&each[i], len, i);
        }
    }
    for (uint64_t i = 0; i < ROUNDS; i++) {
        wait_for(&each[i]);
        dn_check_equal(dn_test_mismatch(each[i].byte, len, i), len);
    }
    return sent() - before;
}

static void what_is_short_goes_at_once(dn_world_t *here)
{
    start(here);
    dn_check_equal(send_a_stream(MOST), 0 == world->rank ? ROUNDS : 0);
    stop();
}

static void what_is_longer_is_announced(dn_world_t *here)
{
    start(here);
    /* The receiver says of each at least that it is there. */
    dn_check(ROUNDS <= send_a_stream(MOST + 1));
    stop();
}

static const dn_world_test_t tests[] = {
    {"what_is_short_goes_at_once", 2, what_is_short_goes_at_once},
    {"what_is_longer_is_announced", 2, what_is_longer_is_announced},
};

int main(int argc, char **argv)
{
    return ofi_run_tests(tests, sizeof(tests) / sizeof(tests[0]), "ofi_eager", argv[1]);
}
