/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conf_area.h"

#include <sys/resource.h>

enum { ROOM = 5 << 20 };

/** Does the target hold the pattern in its place and nothing else changed? 64 bytes around are looked at. */
static void check_place(const uint8_t *base, size_t room, size_t off, size_t len, uint64_t key)
{
    const size_t before = off < 64 ? off : 64;
    const size_t after = room - off - len < 64 ? room - off - len : 64;

    dn_check_bytes(base + off, len, key);
    for (size_t i = 0; i < before; i++) {
        dn_check_equal(base[off - 1 - i], 0x55);
    }
    for (size_t i = 0; i < after; i++) {
        dn_check_equal(base[off + len + i], 0x55);
    }
}

/** PUSH a pattern, PULL it back into another place; both ends look. */
static void there_and_back(dn_world_t *world, conf_area_t *area, size_t len, size_t off, int which)
{
    const uint64_t key = len + off;

    if (0 == world->rank) {
        dn_test_fill(area->local, len, key);
        const dn_xfer_t push = {
            .local = area->local, .key = conf_key(world, 1, which), .roff = off, .len = len};
        dn_check_equal(dn_world_push(world, world->peer[1], &push), DN_OK);
        dn_check_bytes(area->local, len, key);
        dn_world_post(world, 0, world->me->word[0] + 1);
        memset(area->local, 0x77, len);
        const dn_xfer_t pull = {
            .local = area->local, .key = conf_key(world, 1, which), .roff = off, .len = len};
        dn_check_equal(dn_world_pull(world, world->peer[1], &pull), DN_OK);
        dn_check_bytes(area->local, len, key);
        dn_world_post(world, 0, world->me->word[0] + 1);
        dn_world_await(world, 1, 0, world->me->word[0]);
    } else {
        dn_world_await(world, 0, 0, world->me->word[0] + 1);
        check_place(area->base[which], area->len, off, len, key);
        dn_world_await(world, 0, 0, world->me->word[0] + 2);
        memset(area->base[which] + off, 0x55, len);
        dn_world_post(world, 0, world->me->word[0] + 2);
    }
}

void push_and_pull_move_every_size(dn_world_t *world)
{
    conf_area_t area;
    static const size_t size[] = {0,      1,      2,      3,      7,       8,       9,      31,     40,
                                  55,     56,     57,     64,     65,      127,     128,    463,    464,
                                  465,    1023,   1024,   1025,   2047,    2048,    2049,   4095,   4096,
                                  4097,   8191,   8192,   8193,   12223,   12224,   12225,  16384,  32767,
                                  32768,  32769,  65471,  65472,  65473,   65536,   65537,  131071, 131072,
                                  131073, 262143, 262144, 262145, 1048576, 1048577, 4194305};

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
            there_and_back(world, &area, size[i], 0, which);
            if (size[i] < 300000) {
                there_and_back(world, &area, size[i], 1 + 97 * i, which);
                there_and_back(world, &area, size[i], ROOM - size[i], which);
            }
        }
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

enum { CUT_BYTES = 6000, CUT_ROOM = 3 * CUT_BYTES, CUT_BLOCKS = 1500 };

/** One side of a transfer cut into blocks at random, out of order, some empty. */
typedef struct cut {
    dn_block_t block[CUT_BLOCKS];
    dn_sg_t sg;
} cut_t;

static void cut_at_random(cut_t *cut, size_t len, uint64_t *random)
{
    const size_t longest = 1 + dn_test_length(random, 2 * CUT_BYTES);
    size_t count = 0, at = 0, left = len;

    while (0 < left || 0 == dn_test_below(random, 4)) {
        size_t part = 0 == dn_test_below(random, 8) ? 0 : 1 + dn_test_below(random, longest);
        part = CUT_BLOCKS / 2 < count || left < part ? left : part;
        if (CUT_BLOCKS == count) {
            break;
        }
        const size_t slack = CUT_ROOM - at - left;
        at += dn_test_below(random, 30) % (slack + 1);
        cut->block[count++] = (dn_block_t){at, part};
        at += part;
        left -= part;
    }
    for (size_t i = count; 1 < i; i--) {
        const size_t j = dn_test_below(random, i);
        const dn_block_t block = cut->block[i - 1];
        cut->block[i - 1] = cut->block[j];
        cut->block[j] = block;
    }
    cut->sg = (dn_sg_t){.block = cut->block, .count = count};
}

/** Byte i of the stream goes to its place, or is what is found there. */
static void spread(uint8_t *base, const cut_t *cut, uint64_t key)
{
    size_t i = 0;

    for (size_t b = 0; b < cut->sg.count; b++) {
        for (size_t k = 0; k < cut->block[b].len; k++) {
            base[cut->block[b].at + k] = dn_test_byte(key, i++);
        }
    }
}

/** Expectation of a whole side: 0x55 but for the blocks. */
static void check_spread(const uint8_t *base, const cut_t *cut, uint64_t key)
{
    static uint8_t wanted[CUT_ROOM];

    memset(wanted, 0x55, CUT_ROOM);
    spread(wanted, cut, key);
    for (size_t i = 0; i < CUT_ROOM; i++) {
        dn_check_equal(base[i], wanted[i]);
    }
}

static void join_once(dn_world_t *world, conf_area_t *area, uint64_t round)
{
    static cut_t local, remote;
    uint64_t random = round;
    const int which = (int) (round % 2);
    const size_t len = dn_test_length(&random, CUT_BYTES);
    const size_t roff = dn_test_below(&random, 200);

    cut_at_random(&local, len, &random);
    cut_at_random(&remote, len, &random);
    const dn_xfer_t xfer = {.local = area->local,
                            .local_sg = 0 == round % 5 ? NULL : &local.sg,
                            .key = conf_key(world, 1, which),
                            .roff = roff,
                            .remote_sg = &remote.sg,
                            .len = len};
    if (0 == round % 5) {
        local.block[0] = (dn_block_t){0, len};
        local.sg.count = 1;
    }
    memset(area->local, 0x55, CUT_ROOM);
    memset(area->base[which], 0x55, area->len);
    dn_world_barrier(world);
    if (0 == world->rank) {
        spread(area->local, &local, round);
        dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
        check_spread(area->local, &local, round);
    }
    dn_world_barrier(world);
    if (1 == world->rank) {
        check_spread(area->base[which] + roff, &remote, round);
        spread(area->base[which] + roff, &remote, round + 1);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        memset(area->local, 0x55, CUT_ROOM);
        dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
        check_spread(area->local, &local, round + 1);
    }
    dn_world_barrier(world);
}

void push_and_pull_join_any_blocks(dn_world_t *world)
{
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, CUT_ROOM + 200);
    for (uint64_t round = 1; round <= 120; round++) {
        join_once(world, &area, round);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

void long_transfers_go_both_ways_at_once(dn_world_t *world)
{
    conf_area_t area;
    uint8_t *pushed = malloc(ROOM);
    dn_world_comp_t comp[2];

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_test_fill(area.base[CONF_REGISTERED], ROOM, 10 + (uint64_t) world->rank);
    dn_test_fill(pushed, ROOM, 20 + (uint64_t) world->rank);
    dn_world_barrier(world);
    dn_xfer_t pull = {
        .local = area.local, .key = conf_key(world, 1 - world->rank, CONF_REGISTERED), .len = ROOM};
    dn_xfer_t push = {.local = pushed, .key = conf_key(world, 1 - world->rank, CONF_ALLOCATED), .len = ROOM};
    conf_start(world, peer, &pull, &comp[0], 0);
    conf_start(world, peer, &push, &comp[1], 1);
    conf_finish(world, comp, 2);
    dn_check_bytes(area.local, ROOM, 11 - (uint64_t) world->rank);
    dn_world_barrier(world);
    dn_check_bytes(area.base[CONF_ALLOCATED], ROOM, 21 - (uint64_t) world->rank);
    conf_retract(world, &area);
    dn_world_stop(world);
    free(pushed);
}

enum { FLIGHT = 400, FLIGHT_BYTES = 3000 };

void many_transfers_may_be_in_flight(dn_world_t *world)
{
    conf_area_t area;
    static dn_world_comp_t comp[FLIGHT];

    dn_world_start(world);
    conf_offer(world, &area, FLIGHT * FLIGHT_BYTES);
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (int which = 0; which < 2; which++) {
        for (int push = 1; 0 <= push; push--) {
            if (push) {
                dn_test_fill(area.local, area.len, 30 + (uint64_t) world->rank);
            } else {
                memset(area.local, 0, area.len);
            }
            for (size_t i = 0; i < FLIGHT; i++) {
                const size_t at = (i * 7 % FLIGHT) * FLIGHT_BYTES;
                dn_xfer_t xfer = {.local = area.local + at,
                                  .key = conf_key(world, 1 - world->rank, which),
                                  .roff = at,
                                  .len = FLIGHT_BYTES};
                conf_start(world, peer, &xfer, &comp[i], push);
            }
            conf_finish(world, comp, FLIGHT);
            dn_world_barrier(world);
            dn_check_bytes(push ? area.base[which] : area.local, area.len,
                           (push ? 31 - (uint64_t) world->rank : 30 + (uint64_t) world->rank));
            dn_world_barrier(world);
        }
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

void flush_waits_for_transfers_without_completion(dn_world_t *world)
{
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, FLIGHT * FLIGHT_BYTES);
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (int which = 0; which < 2; which++) {
        dn_test_fill(area.local, area.len, 40 + (uint64_t) which);
        for (size_t i = 0; i < FLIGHT; i++) {
            const size_t at = i * FLIGHT_BYTES;
            const dn_xfer_t xfer = {.local = area.local + at,
                                    .key = conf_key(world, 1 - world->rank, which),
                                    .roff = at,
                                    .len = FLIGHT_BYTES};
            dn_status_t status;
            while (DN_ERR_AGAIN == (status = dn_push(peer, &xfer))) {
                dn_world_progress(world);
            }
            dn_check(DN_OK == status || DN_INPROGRESS == status);
        }
        dn_world_flush(world, peer);
        memset(area.local, 0, area.len);
        dn_world_barrier(world);
        dn_check_bytes(area.base[which], area.len, 40 + (uint64_t) which);
        dn_world_barrier(world);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** Flush until all has ended. @return what the flush says then. */
static dn_status_t flush_all(dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(peer))) {
        sched_yield();
    }
    return status;
}

/** Start an operation without a completion: a PULL into @p local, or an atomic operation where that is NULL. */
static dn_status_t start_without_completion(dn_world_t *world, dn_peer_t *peer, const dn_key_t *key,
                                            uint8_t *local)
{
    const dn_xfer_t xfer = {.local = local, .key = key, .len = 5000};
    const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .key = key};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = NULL == local ? dn_atomic(peer, &amo) : dn_pull(peer, &xfer))) {
        dn_world_progress(world);
    }
    return status;
}

/** A good operation, one with a stale key, and a good one: the flush tells of the second one, unless its call has. */
static void fail_without_completion(dn_world_t *world, dn_peer_t *peer, const dn_key_t *key, uint8_t *local)
{
    dn_key_t stale = *key;

    stale.generation++;
    dn_check(0 <= start_without_completion(world, peer, key, local));
    const dn_status_t status = start_without_completion(world, peer, &stale, local);
    /* Where the kernel copies, a stale key may work. */
    dn_check(DN_INPROGRESS == status || DN_ERR_RANGE == status || (NULL != local && DN_OK == status));
    dn_check(0 <= start_without_completion(world, peer, key, local));
    dn_check_equal(flush_all(peer), DN_INPROGRESS == status ? DN_ERR_RANGE : DN_OK);
    dn_check_equal(flush_all(peer), DN_OK);
}

void flush_tells_once_what_has_failed_without_completion(dn_world_t *world)
{
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, 5000);
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (int which = 0; which < 2; which++) {
        fail_without_completion(world, peer, conf_key(world, 1 - world->rank, which), NULL);
    }
    fail_without_completion(world, peer, conf_key(world, 1 - world->rank, CONF_ALLOCATED), area.local);
    conf_retract(world, &area);
    dn_world_stop(world);
}

enum { CHAIN = 50 };

/** A transfer that starts the next one from its completion. */
typedef struct chain {
    dn_comp_t comp;
    dn_world_t *world;
    dn_xfer_t xfer;
    unsigned left;
} chain_t;

/** The next ones until one goes on in the background. */
static void chain_next(chain_t *chain)
{
    dn_status_t status = DN_OK;

    while (DN_OK == status && 0 < chain->left) {
        while (DN_ERR_AGAIN == (status = dn_pull(chain->world->peer[1 - chain->world->rank], &chain->xfer))) {
            dn_world_progress(chain->world);
        }
        dn_check(DN_OK == status || DN_INPROGRESS == status);
        if (DN_OK == status) {
            chain->left--;
        }
    }
}

static void chain_signalled(dn_comp_t *comp, dn_status_t status)
{
    chain_t *chain = (chain_t *) comp;

    dn_check_equal(status, DN_OK);
    chain->left--;
    chain_next(chain);
}

void completions_may_start_transfers(dn_world_t *world)
{
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, 600000);
    dn_test_fill(area.base[CONF_REGISTERED], area.len, 50 + (uint64_t) world->rank);
    dn_world_barrier(world);
    chain_t chain = {
        .comp = {chain_signalled},
        .world = world,
        .xfer = {.local = area.local,
                 .key = conf_key(world, 1 - world->rank, CONF_REGISTERED),
                 .len = area.len,
                 .comp = &chain.comp},
        .left = CHAIN,
    };
    chain_next(&chain);
    while (0 < chain.left) {
        dn_world_progress(world);
    }
    dn_check_bytes(area.local, area.len, 51 - (uint64_t) world->rank);
    conf_retract(world, &area);
    dn_world_stop(world);
}

void transfers_to_oneself_work(dn_world_t *world)
{
    conf_area_t area;

    dn_world_open(world);
    dn_world_connect_to(world, 0);
    conf_offer(world, &area, 100000);
    for (int which = 0; which < 2; which++) {
        dn_test_fill(area.local, 90000, 60);
        const dn_xfer_t xfer = {
            .local = area.local, .key = conf_key(world, 0, which), .roff = 77, .len = 90000};
        dn_check_equal(dn_world_push(world, world->peer[0], &xfer), DN_OK);
        dn_check_bytes(area.base[which] + 77, 90000, 60);
        dn_test_fill(area.base[which] + 77, 90000, 61);
        dn_check_equal(dn_world_pull(world, world->peer[0], &xfer), DN_OK);
        dn_check_bytes(area.local, 90000, 61);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

static void refused_block(dn_world_t *world, const dn_key_t *key, uint8_t *local, uint64_t roff, uint64_t at,
                          uint64_t len)
{
    const dn_block_t block[] = {{0, 8}, {at, len}};
    const dn_sg_t sg = {.block = block, .count = 2};
    const dn_xfer_t xfer = {.local = local, .key = key, .roff = roff, .remote_sg = &sg, .len = 8 + len};

    dn_test_log.expected = 1;
    dn_status_t status = dn_world_push(world, world->peer[1 - world->rank], &xfer);
    dn_check(DN_ERR_RANGE == status || DN_ERR_PARAM == status);
    status = dn_world_pull(world, world->peer[1 - world->rank], &xfer);
    dn_check(DN_ERR_RANGE == status || DN_ERR_PARAM == status);
    dn_test_log.expected = 0;
}

void transfers_out_of_range_are_refused(dn_world_t *world)
{
    conf_area_t area;
    const uint64_t len = 10000;

    dn_world_start(world);
    conf_offer(world, &area, len);
    memset(area.local, 0x66, len);
    for (int which = 0; which < 2; which++) {
        const dn_key_t *key = conf_key(world, 1 - world->rank, which);
        const uint64_t bad[][2] = {{len, 1},
                                   {len + 1, 0},
                                   {len - 1, 2},
                                   {1, len},
                                   {0, len + 1},
                                   {UINT64_MAX, 1},
                                   {UINT64_MAX, 0},
                                   {UINT64_MAX - 9, 10},
                                   {UINT64_MAX, 100},
                                   {1, UINT64_MAX},
                                   {0, UINT64_MAX},
                                   {UINT64_MAX / 2 + 1, 64},
                                   {64, UINT64_MAX - 63},
                                   {4096, UINT64_MAX - 4095}};
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            const dn_xfer_t xfer = {.local = area.local, .key = key, .roff = bad[i][0], .len = bad[i][1]};
            conf_refused(world, &xfer, DN_ERR_RANGE);
            if (0 < i % 2) {
                refused_block(world, key, area.local, 0, bad[i][0], bad[i][1]);
            }
        }
        refused_block(world, key, area.local, 64, len - 64, 1);
        refused_block(world, key, area.local, UINT64_MAX - 100, 200, 50);
        refused_block(world, key, area.local, 200, UINT64_MAX - 150, 50);
        const dn_xfer_t edge = {.local = area.local, .key = key, .roff = len, .len = 0};
        dn_check_equal(dn_world_push(world, world->peer[1 - world->rank], &edge), DN_OK);
        dn_check_equal(dn_world_pull(world, world->peer[1 - world->rank], &edge), DN_OK);
    }
    dn_world_barrier(world);
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < len; i++) {
            dn_check_equal(area.base[which][i], 0x55);
        }
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

void transfers_that_do_not_add_up_are_refused(dn_world_t *world)
{
    conf_area_t area;
    const dn_block_t block[] = {{0, 100}, {200, 0}, {300, 50}};
    const dn_sg_t sg = {.block = block, .count = 3};
    const dn_sg_t none = {.count = 0};

    dn_world_start(world);
    conf_offer(world, &area, 1000);
    for (int which = 0; which < 2; which++) {
        const dn_key_t *key = conf_key(world, 1 - world->rank, which);
        const dn_xfer_t bad[] = {
            {.local = area.local, .key = key, .local_sg = &sg, .len = 149},
            {.local = area.local, .key = key, .local_sg = &sg, .len = 151},
            {.local = area.local, .key = key, .remote_sg = &sg, .len = 149},
            {.local = area.local, .key = key, .remote_sg = &sg, .len = 151},
            {.local = area.local, .key = key, .local_sg = &none, .len = 1},
            {.local = area.local, .key = key, .remote_sg = &none, .len = 1},
            {.local = area.local, .key = key, .local_sg = &sg, .remote_sg = &none, .len = 150},
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            conf_refused(world, &bad[i], DN_ERR_PARAM);
        }
        const dn_xfer_t empty = {
            .local = area.local, .key = key, .local_sg = &none, .remote_sg = &none, .len = 0};
        dn_check_equal(dn_world_push(world, world->peer[1 - world->rank], &empty), DN_OK);
        dn_check_equal(dn_world_pull(world, world->peer[1 - world->rank], &empty), DN_OK);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/**
 * An allocated segment's key is refused after dn_segment_free(), also when its SID is in use again. So is
 * that of registered memory where the target runs the transfer; the kernel's copy cannot know.
 */
void stale_keys_are_refused(dn_world_t *world)
{
    conf_area_t area;
    dn_peer_attr_t attr;
    dn_segment_t *again[2];

    dn_world_start(world);
    conf_offer(world, &area, 5000);
    dn_peer_t *peer = world->peer[1 - world->rank];
    dn_peer_attr(peer, &attr);
    for (int which = 0; which < 2; which++) {
        const dn_xfer_t warm = {
            .local = area.local, .key = conf_key(world, 1 - world->rank, which), .len = 100};
        dn_check_equal(dn_world_pull(world, peer, &warm), DN_OK);
    }
    dn_world_barrier(world);
    for (int round = 0; round < 2; round++) {
        if (0 == round) {
            dn_segment_free(area.segment[0]);
            dn_segment_free(area.segment[1]);
        } else {
            dn_check_equal(dn_segment_alloc(world->port, 5000, &again[0]), DN_OK);
            dn_check_equal(dn_segment_register(world->port, area.base[CONF_REGISTERED], 5000, &again[1]),
                           DN_OK);
        }
        dn_world_barrier(world);
        for (int which = 0; which < 2; which++) {
            const dn_key_t *key = conf_key(world, 1 - world->rank, which);
            const dn_xfer_t xfer = {.local = area.local, .key = key, .len = 100};
            uint64_t old = 0;
            if (CONF_ALLOCATED == which || !attr.direct) {
                conf_refused(world, &xfer, DN_ERR_RANGE);
            }
            const dn_amo_t amo = {.op = DN_AMO_ADD, .width = 8, .operand = 1, .result = &old, .key = key};
            dn_test_log.expected = 1;
            dn_check_equal(dn_world_atomic(world, peer, &amo), DN_ERR_RANGE);
            dn_test_log.expected = 0;
        }
        dn_world_barrier(world);
    }
    dn_segment_key(again[0], &world->me->key[0]);
    dn_world_barrier(world);
    const dn_xfer_t fresh = {.local = area.local, .key = conf_key(world, 1 - world->rank, 0), .len = 5000};
    dn_check_equal(dn_world_pull(world, peer, &fresh), DN_OK);
    dn_world_barrier(world);
    dn_segment_free(again[0]);
    dn_segment_free(again[1]);
    free(area.base[CONF_REGISTERED]);
    free(area.local);
    dn_world_stop(world);
}

/** Keys are bytes that any peer may have made up: what they say must not lead out of the segment. */
void forged_keys_are_refused(dn_world_t *world)
{
    conf_area_t area;
    static const uint64_t len[] = {5001,      65536, UINT64_C(1) << 40, UINT64_MAX - 4095, UINT64_MAX - 5000,
                                   UINT64_MAX};

    dn_world_start(world);
    conf_offer(world, &area, 5000);
    dn_peer_t *peer = world->peer[1 - world->rank];
    for (int warm = 0; warm < 2; warm++) {
        for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
            dn_key_t key = *conf_key(world, 1 - world->rank, CONF_ALLOCATED);
            key.len = len[i];
            const dn_xfer_t end = {.local = area.local, .key = &key, .roff = len[i] - 64, .len = 64};
            const dn_xfer_t near = {.local = area.local, .key = &key, .roff = 4990, .len = 11};
            conf_refused(world, &end, DN_ERR_RANGE);
            conf_refused(world, &near, DN_ERR_RANGE);
        }
        dn_key_t key = *conf_key(world, 1 - world->rank, CONF_ALLOCATED);
        const dn_xfer_t xfer = {.local = area.local, .key = &key, .len = 64};
        key.generation++;
        conf_refused(world, &xfer, DN_ERR_RANGE);
        key.generation--;
        key.sid += 1000;
        conf_refused(world, &xfer, DN_ERR_RANGE);
        key.sid -= 1000;
        dn_check_equal(dn_world_pull(world, peer, &xfer), DN_OK);
        dn_world_barrier(world);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

void empty_segments_are_legal(dn_world_t *world)
{
    dn_segment_t *segment = NULL;
    uint8_t byte = 0;

    dn_world_start(world);
    dn_check_equal(dn_segment_register(world->port, NULL, 0, &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_barrier(world);
    dn_xfer_t xfer = {.local = &byte, .key = conf_key(world, 1 - world->rank, 0), .len = 0};
    dn_check_equal(dn_world_push(world, world->peer[1 - world->rank], &xfer), DN_OK);
    dn_check_equal(dn_world_pull(world, world->peer[1 - world->rank], &xfer), DN_OK);
    xfer.len = 1;
    conf_refused(world, &xfer, DN_ERR_RANGE);
    dn_world_barrier(world);
    dn_segment_free(segment);
    dn_world_stop(world);
}

void allocated_segments_are_zeroed(dn_world_t *world)
{
    static const uint64_t len[] = {1, 63, 4096, 4097, 1000000};
    dn_segment_t *segment = NULL;
    struct rlimit limit;

    dn_world_open(world);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
            dn_check_equal(dn_segment_alloc(world->port, len[i], &segment), DN_OK);
            uint8_t *base = dn_segment_base(segment);
            dn_check_equal((uintptr_t) base % 64, 0);
            for (uint64_t k = 0; k < len[i]; k++) {
                dn_check_equal(base[k], 0);
            }
            memset(base, 0xff, len[i]);
            dn_segment_free(segment);
        }
    }
    /*
     * More than there is must be refused, but is never asked for without the limit that dn_world.c sets on
     * files: a memfd takes all memory of the machine first.
     */
    dn_check_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    dn_check_equal(limit.rlim_cur, DN_WORLD_FILE_BYTES);
    dn_test_log.expected = 1;
    dn_check_equal(dn_segment_alloc(world->port, UINT64_MAX, &segment), DN_ERR_NOMEM);
    dn_check_equal(dn_segment_alloc(world->port, UINT64_MAX - 4095, &segment), DN_ERR_NOMEM);
    if (0 == strcmp(world->variant->device, "shm") && DN_BACKING_FILE != world->config.backing) {
        /* Elsewhere segments are private memory, of which this much may well be had. */
        dn_check_equal(dn_segment_alloc(world->port, DN_WORLD_FILE_BYTES + 4096, &segment), DN_ERR_NOMEM);
    }
    dn_test_log.expected = 0;
    dn_world_stop(world);
}
