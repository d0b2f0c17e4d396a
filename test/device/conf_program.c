/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "../unit/dn_prog_naive.h"
#include "conf_area.h"

enum { BYTES = 40000, ROOM = 400000, SLACK = 100, ROUNDS = 48 };
enum { LONG_BYTES = 140 * 33000, LONG_AREA = LONG_BYTES + 140 * 100 };

/** A use of a program, and where its bytes lie by the definition. */
typedef struct layout {
    dn_prog_op_t op[DN_NAIVE_OPS + 1];
    size_t ops;
    dn_prog_t *prog;
    dn_prog_use_t use;
    dn_sg_t sg;
    int64_t place[BYTES];
    size_t n;
    int64_t low, high;
    uint64_t before; /**< bytes that memory needs before the origin */
    int together;    /**< one block at the origin: a side without a program is the same */
} layout_t;

/** Compile what is in op. @return 0: it has more bytes, or a wider span, than is tried here. */
static int compile(layout_t *layout)
{
    dn_naive_t naive = {layout->place, 0, BYTES};

    dn_naive_use(&naive, layout->op, layout->ops, layout->use.count, layout->use.extent);
    layout->n = naive.n;
    if (BYTES < naive.n) {
        return 0;
    }
    dn_naive_bounds(&naive, &layout->low, &layout->high);
    layout->before = 0 > layout->low ? (uint64_t) -layout->low : 0;
    if (ROOM - SLACK < (int64_t) layout->before + layout->high) {
        return 0;
    }
    dn_check_equal(dn_prog_create(layout->op, layout->ops, &layout->prog), DN_OK);
    layout->use.prog = layout->prog;
    layout->sg = (dn_sg_t){.use = &layout->use};
    layout->together = 0;
    return 1;
}

static void make_any(layout_t *layout, uint64_t *random)
{
    do {
        layout->ops = dn_naive_random(random, layout->op, BYTES, &layout->use.extent);
        layout->use.count = 0 == dn_test_below(random, 3) ? dn_test_length(random, 30) : 1;
    } while (!compile(layout));
}

/** One of n bytes: a program that has not more, and the rest in one block behind it. */
static void make_of(layout_t *layout, size_t n, uint64_t *random)
{
    int64_t extent = 0;

    layout->use = (dn_prog_use_t){.count = 1};
    do {
        layout->ops = dn_naive_random(random, layout->op, n, &extent);
        dn_naive_t naive = {layout->place, 0, BYTES};
        dn_naive_use(&naive, layout->op, layout->ops, 1, 0);
        dn_naive_bounds(&naive, &layout->low, &layout->high);
        layout->op[layout->ops++] = (dn_prog_op_t){DN_PROG_RUN, 0, layout->high + 3, n - naive.n, 1, 0};
    } while (!compile(layout));
    dn_check_equal(layout->n, n);
}

static void make_together(layout_t *layout, size_t n)
{
    layout->op[0] = (dn_prog_op_t){DN_PROG_RUN, 0, 0, n, 1, 0};
    layout->ops = 1;
    layout->use = (dn_prog_use_t){.count = 1};
    dn_check(compile(layout));
    layout->together = 1;
}

/** Byte i of the stream goes to its place. */
static void spread(uint8_t *origin, const layout_t *layout, uint64_t key)
{
    for (size_t i = 0; i < layout->n; i++) {
        origin[layout->place[i]] = dn_test_byte(key, i);
    }
}

/** The whole memory: 0x55 but for the bytes of the stream. at: of the origin. */
static void check_spread(const uint8_t *memory, uint64_t at, const layout_t *layout, uint64_t key)
{
    static uint8_t wanted[ROOM];

    memset(wanted, 0x55, ROOM);
    spread(wanted + at, layout, key);
    for (size_t i = 0; i < ROOM && 0 != memcmp(memory, wanted, ROOM); i++) {
        dn_check_equal(memory[i], wanted[i]);
    }
    dn_check(0 == memcmp(memory, wanted, ROOM));
}

/** PUSH and PULL between a local layout and one at the target. */
static void join(dn_world_t *world, conf_area_t *area, const layout_t *local, const layout_t *remote,
                 uint64_t round)
{
    const int which = (int) (round % 2);
    const uint64_t local_at = round % SLACK + local->before;
    const uint64_t remote_at = 7 * round % SLACK + remote->before;
    const dn_xfer_t xfer = {.local = area->local + local_at,
                            .local_sg = local->together && 0 != round % 4 ? NULL : &local->sg,
                            .key = conf_key(world, 1, which),
                            .roff = remote_at,
                            .remote_sg = remote->together && 0 != round % 4 ? NULL : &remote->sg,
                            .len = local->n};

    memset(area->local, 0x55, ROOM);
    memset(area->base[which], 0x55, ROOM);
    dn_world_barrier(world);
    if (0 == world->rank) {
        spread(area->local + local_at, local, round);
        dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
        check_spread(area->local, local_at, local, round);
    }
    dn_world_barrier(world);
    if (1 == world->rank) {
        check_spread(area->base[which], remote_at, remote, round);
        spread(area->base[which] + remote_at, remote, round + 1);
    }
    dn_world_barrier(world);
    if (0 == world->rank) {
        memset(area->local, 0x55, ROOM);
        dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
        check_spread(area->local, local_at, local, round + 1);
    }
    dn_world_barrier(world);
}

void push_and_pull_run_any_programs(dn_world_t *world)
{
    static layout_t local, remote;
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t random = round;
        make_any(&remote, &random);
        if (0 == round % 3) {
            make_together(&local, remote.n);
        } else {
            make_of(&local, remote.n, &random);
        }
        if (2 == round % 3) {
            join(world, &area, &remote, &local, round);
        } else {
            join(world, &area, &local, &remote, round);
        }
        dn_prog_free(local.prog);
        dn_prog_free(remote.prog);
    }
    for (uint64_t round = 4; round < 8; round++) {
        make_together(&local, 30000);
        make_together(&remote, 30000);
        join(world, &area, &local, &remote, round);
        dn_prog_free(local.prog);
        dn_prog_free(remote.prog);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** Blocks with a gap of 100 bytes behind each, of which the last one is first. */
typedef struct fence {
    uint64_t len, count;
    dn_prog_t *prog;
    dn_prog_use_t use;
    dn_sg_t sg;
} fence_t;

static void make_fence(fence_t *fence, uint64_t len, uint64_t count)
{
    const int64_t step = (int64_t) len + 100;
    const dn_prog_op_t op = {DN_PROG_RUN, 0, step * (int64_t) (count - 1), len, count, -step};

    *fence = (fence_t){.len = len, .count = count};
    dn_check_equal(dn_prog_create(&op, 1, &fence->prog), DN_OK);
    fence->use = (dn_prog_use_t){fence->prog, 1, 0};
    fence->sg = (dn_sg_t){.use = &fence->use};
}

/** Put the stream of a key there, or check that it is there and that the gaps are untouched. NULL: lies together. */
static void fence_bytes(uint8_t *memory, const fence_t *fence, uint64_t key, int put)
{
    static uint8_t stream[LONG_BYTES];

    dn_test_fill(stream, LONG_BYTES, key);
    if (put) {
        memset(memory, 0x55, LONG_AREA);
    }
    for (size_t i = 0; NULL != fence && i < fence->count; i++) {
        uint8_t *at = memory + (fence->count - 1 - i) * (fence->len + 100);
        if (put) {
            memcpy(at, stream + i * fence->len, fence->len);
        } else {
            dn_check(0 == memcmp(at, stream + i * fence->len, fence->len));
            for (size_t k = 0; k < 100; k++) {
                dn_check_equal(at[fence->len + k], 0x55);
            }
        }
    }
    if (NULL == fence && put) {
        memcpy(memory, stream, LONG_BYTES);
    } else if (NULL == fence) {
        dn_check(0 == memcmp(memory, stream, LONG_BYTES));
    }
}

/** Blocks so long, and so many of them, that a device may well move them by itself, by several calls. */
void programs_of_long_blocks_are_run(dn_world_t *world)
{
    fence_t fence[2];
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, LONG_AREA);
    make_fence(&fence[0], LONG_BYTES / 140, 140);
    make_fence(&fence[1], LONG_BYTES / 7, 7);
    for (unsigned round = 0; round < 8; round++) {
        const int which = (int) (round % 2);
        const fence_t *local = 3 == round / 2 ? NULL : &fence[round / 4];
        const fence_t *remote = 2 == round / 2 ? NULL : &fence[1 - round / 4];
        const dn_xfer_t xfer = {.local = area.local,
                                .local_sg = NULL == local ? NULL : &local->sg,
                                .key = conf_key(world, 1, which),
                                .remote_sg = NULL == remote ? NULL : &remote->sg,
                                .len = LONG_BYTES};
        if (0 == world->rank) {
            fence_bytes(area.local, local, round, 1);
            dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
            memset(area.local, 0x55, LONG_AREA);
        }
        dn_world_barrier(world);
        if (1 == world->rank) {
            fence_bytes(area.base[which], remote, round, 0);
            fence_bytes(area.base[which], remote, round + 20, 1);
        }
        dn_world_barrier(world);
        if (0 == world->rank) {
            dn_check_equal(dn_world_pull(world, world->peer[1], &xfer), DN_OK);
            fence_bytes(area.local, local, round + 20, 0);
        }
        dn_world_barrier(world);
        memset(area.base[which], 0x55, LONG_AREA);
        dn_world_barrier(world);
    }
    dn_prog_free(fence[0].prog);
    dn_prog_free(fence[1].prog);
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** Blocks of 8 bytes, 9 to 16 from each other in a way that a seed decides: a LIST. */
static dn_prog_t *scattered(uint64_t seed, size_t blocks, uint64_t *span_p)
{
    dn_prog_op_t *op = calloc(blocks, sizeof(*op));
    dn_prog_t *prog = NULL;
    int64_t at = 0;

    dn_check(NULL != op);
    for (size_t i = 0; i < blocks; i++) {
        op[i] = (dn_prog_op_t){DN_PROG_RUN, 0, at, 8, 1, 0};
        at += 9 + (int64_t) (i % 2 + dn_test_below(&seed, 7));
    }
    dn_check_equal(dn_prog_create(op, blocks, &prog), DN_OK);
    free(op);
    *span_p = (uint64_t) at;
    return prog;
}

static uint64_t progs_sent(const dn_world_t *world)
{
    dn_counters_t counters;

    dn_counters(world->port, &counters);
    return counters.progs_sent;
}

/** PUSH the pattern of a key to the registered segment by a program, and PULL it back. */
static void there_and_back(dn_world_t *world, conf_area_t *area, const dn_prog_t *prog, uint64_t roff,
                           uint64_t key)
{
    const dn_prog_use_t use = {prog, 1, 0};
    const dn_sg_t sg = {.use = &use};
    const uint64_t len = dn_prog_info(prog)->size;
    const dn_xfer_t xfer = {.local = area->local,
                            .key = conf_key(world, 1 - world->rank, CONF_REGISTERED),
                            .roff = roff,
                            .remote_sg = &sg,
                            .len = len};
    dn_peer_t *peer = world->peer[1 - world->rank];

    dn_test_fill(area->local, len, key);
    dn_check_equal(dn_world_push(world, peer, &xfer), DN_OK);
    memset(area->local, 0, len);
    dn_check_equal(dn_world_pull(world, peer, &xfer), DN_OK);
    dn_check_bytes(area->local, len, key);
}

void a_program_is_shipped_once(dn_world_t *world)
{
    conf_area_t area;
    uint64_t span;

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    for (unsigned i = 1; i <= 3; i++) {
        dn_prog_t *prog = scattered(i, 300 * i, &span);
        for (unsigned turn = 0; turn < 5; turn++) {
            there_and_back(world, &area, prog, turn, i + turn);
            dn_check_equal(progs_sent(world), i);
        }
        dn_prog_free(prog);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

enum { PROGRAMS = 100, LONG_PLACES = 50000, LONGER_PLACES = 140000, LONG_ROOM = LONGER_PLACES * 16 };

/** As many as pass through a peer's slots several times, all in flight at once. */
void any_number_of_programs_may_be_in_flight(dn_world_t *world)
{
    static dn_world_comp_t comp[PROGRAMS];
    dn_prog_t *prog[PROGRAMS];
    conf_area_t area;
    uint64_t span[PROGRAMS];

    dn_world_start(world);
    conf_offer(world, &area, PROGRAMS * 2000);
    for (unsigned i = 0; i < PROGRAMS; i++) {
        prog[i] = scattered(i, 20 + i, &span[i]);
        dn_check(2000 >= span[i]);
    }
    for (int push = 1; push >= 0; push--) {
        if (push) {
            dn_test_fill(area.local, area.len, 3 + (uint64_t) world->rank);
        } else {
            memset(area.local, 0x55, area.len);
        }
        for (unsigned i = 0; i < PROGRAMS; i++) {
            dn_prog_use_t use = {prog[i], 1, 0};
            dn_sg_t sg = {.use = &use};
            dn_xfer_t xfer = {.local = area.local + i * 2000,
                              .local_sg = &sg,
                              .key = conf_key(world, 1 - world->rank, CONF_REGISTERED),
                              .roff = i * 2000,
                              .remote_sg = &sg,
                              .len = dn_prog_info(prog[i])->size};
            conf_start(world, world->peer[1 - world->rank], &xfer, &comp[i], push);
            memset(&use, 0xff, sizeof(use));
            memset(&sg, 0xff, sizeof(sg));
        }
        conf_finish(world, comp, PROGRAMS);
        dn_world_barrier(world);
    }
    for (unsigned i = 0; i < PROGRAMS; i++) {
        const uint8_t *found[2] = {area.base[CONF_REGISTERED] + i * 2000, area.local + i * 2000};
        for (unsigned side = 0; side < 2; side++) {
            const uint64_t key = 3 + (uint64_t) (0 == side ? 1 - world->rank : world->rank);
            const dn_prog_use_t use = {prog[i], 1, 0};
            dn_prog_cursor_t cursor;
            uint64_t at = 0, before = 0;
            for (dn_prog_start(&cursor, &use, 0); 0 != dn_prog_next(&cursor, 8, &at); before = at + 8) {
                for (; before < at; before++) {
                    dn_check_equal(found[side][before], 0x55);
                }
                for (unsigned k = 0; k < 8; k++) {
                    dn_check_equal(found[side][at + k], dn_test_byte(key, i * 2000 + at + k));
                }
            }
        }
        dn_prog_free(prog[i]);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** Four that fill what a peer keeps twice over, then one that is not shipped at all. */
void long_programs_take_the_place_of_others(dn_world_t *world)
{
    static const unsigned order[] = {0, 0, 1, 2, 3, 0, 3};
    dn_prog_t *prog[4];
    conf_area_t area;
    uint64_t span;

    dn_world_start(world);
    conf_offer(world, &area, LONG_ROOM);
    if (0 == world->rank) {
        for (unsigned i = 0; i < 4; i++) {
            prog[i] = scattered(i, LONG_PLACES, &span);
        }
        for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
            there_and_back(world, &area, prog[order[i]], i, i);
        }
        dn_check_equal(progs_sent(world), 5);
        dn_prog_t *longer = scattered(9, LONGER_PLACES, &span);
        dn_check(LONG_ROOM >= span);
        there_and_back(world, &area, longer, 0, 9);
        dn_check_equal(progs_sent(world), 5);
        dn_prog_free(longer);
        for (unsigned i = 0; i < 4; i++) {
            dn_prog_free(prog[i]);
        }
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** The numbers of programs that are gone never come again, and their slots serve others. */
void programs_come_and_go(dn_world_t *world)
{
    conf_area_t area;
    uint64_t span;

    dn_world_start(world);
    conf_offer(world, &area, 4000);
    for (uint64_t i = 0; i < 3 * PROGRAMS; i++) {
        dn_prog_t *prog = scattered(i, 10 + i % 200, &span);
        there_and_back(world, &area, prog, 4000 - span, i);
        dn_prog_free(prog);
    }
    dn_check_equal(progs_sent(world), 3 * PROGRAMS);
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** Who connects again cannot know what the other end still has. */
void programs_are_shipped_again_after_disconnection(dn_world_t *world)
{
    conf_area_t area;
    uint64_t span;

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    dn_prog_t *prog[2] = {scattered(1, 300, &span), scattered(2, 300, &span)};
    if (0 == world->rank) {
        there_and_back(world, &area, prog[0], 0, 1);
        there_and_back(world, &area, prog[1], 0, 2);
        dn_world_fence(world, world->peer[1]);
        dn_disconnect(world->peer[1]);
        dn_world_connect_to(world, 1);
        there_and_back(world, &area, prog[1], 0, 3);
        there_and_back(world, &area, prog[0], 0, 4);
        there_and_back(world, &area, prog[1], 0, 5);
        dn_check_equal(progs_sent(world), 4);
    }
    dn_prog_free(prog[0]);
    dn_prog_free(prog[1]);
    conf_retract(world, &area);
    dn_world_stop(world);
}

void programs_run_towards_oneself(dn_world_t *world)
{
    static layout_t local, remote;
    conf_area_t area;

    dn_world_open(world);
    dn_world_connect_to(world, 0);
    conf_offer(world, &area, ROOM);
    for (uint64_t round = 1; round <= 12; round++) {
        const int which = (int) (round % 2);
        uint64_t random = round;
        make_any(&remote, &random);
        make_of(&local, remote.n, &random);
        const dn_xfer_t xfer = {.local = area.local + local.before,
                                .local_sg = &local.sg,
                                .key = conf_key(world, 0, which),
                                .roff = remote.before,
                                .remote_sg = &remote.sg,
                                .len = local.n};
        memset(area.local, 0x55, ROOM);
        memset(area.base[which], 0x55, ROOM);
        spread(area.local + local.before, &local, round);
        dn_check_equal(dn_world_push(world, world->peer[0], &xfer), DN_OK);
        check_spread(area.base[which], remote.before, &remote, round);
        memset(area.local, 0x55, ROOM);
        dn_check_equal(dn_world_pull(world, world->peer[0], &xfer), DN_OK);
        check_spread(area.local, local.before, &local, round);
        dn_prog_free(local.prog);
        dn_prog_free(remote.prog);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** The target's word is stored after the last byte, the initiator's when all is complete. */
void status_words_follow_the_bytes_of_programs(dn_world_t *world)
{
    conf_area_t area;
    uint64_t span;
    void *llcm = NULL;

    dn_world_start(world);
    dn_check_equal(dn_llcm_alloc(world->port, 64, &world->me->off[0], &llcm), DN_OK);
    uint64_t *word = llcm;
    conf_offer(world, &area, ROOM);
    dn_prog_t *prog = scattered(1, 20000, &span);
    const dn_prog_use_t use = {prog, 1, 0};
    const dn_sg_t sg = {.use = &use};
    for (uint64_t round = 1; round <= 10; round++) {
        uint8_t *base = area.base[round % 2];
        const dn_xfer_t xfer = {.local = area.local,
                                .key = conf_key(world, 1, (int) (round % 2)),
                                .remote_sg = &sg,
                                .len = 8 * 20000,
                                .flags = DN_XFER_STATUS_LOCAL | DN_XFER_STATUS_REMOTE,
                                .local_status = word,
                                .local_value = round,
                                .remote_status = world->board->seat[1].off[0],
                                .remote_value = round};
        if (0 == world->rank) {
            dn_test_fill(area.local, xfer.len, round);
            dn_check_equal(dn_world_push(world, world->peer[1], &xfer), DN_OK);
        } else {
            dn_prog_cursor_t cursor;
            while (round != dn_load_acquire(word)) {
                dn_world_progress(world);
            }
            dn_prog_start(&cursor, &use, (uintptr_t) base);
            dn_check_equal(dn_prog_gather(area.local, &cursor, xfer.len), xfer.len);
            dn_check_bytes(area.local, xfer.len, round);
        }
        dn_check_equal(dn_load_acquire(word), round);
        dn_world_barrier(world);
    }
    dn_prog_free(prog);
    conf_retract(world, &area);
    dn_world_stop(world);
}

/* What is refused */

/** 20 blocks of 8 bytes at a distance of 16 from 40 below the origin on, used so often. */
typedef struct comb {
    dn_prog_t *prog;
    dn_prog_use_t use;
    dn_sg_t sg;
} comb_t;

static void make_comb(comb_t *comb, uint64_t count, int64_t extent)
{
    /* Two blocks are one apart from the others, so that it is not one row. */
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, -40, 8, 18, 16}, {DN_PROG_RUN, 0, 249, 8, 2, 16}};

    dn_check_equal(dn_prog_create(op, 2, &comb->prog), DN_OK);
    comb->use = (dn_prog_use_t){comb->prog, count, extent};
    comb->sg = (dn_sg_t){.use = &comb->use};
}

void programs_out_of_range_are_refused(dn_world_t *world)
{
    static const struct {
        uint64_t roff, count;
        int64_t extent;
        dn_status_t wanted;
    } try[] = {
        {40, 1, 0, DN_OK},
        {39, 1, 0, DN_ERR_RANGE},
        {0, 1, 0, DN_ERR_RANGE},
        {10000 - 273, 1, 0, DN_OK},
        {10000 - 272, 1, 0, DN_ERR_RANGE},
        {40, 3, (10000 - 313) / 2, DN_OK},
        {41, 3, (10000 - 313) / 2 + 1, DN_ERR_RANGE},
        {700, 3, -330, DN_OK},
        {699, 3, -330, DN_ERR_RANGE},
        {UINT64_MAX, 1, 0, DN_ERR_RANGE},
        {UINT64_MAX - 272, 1, 0, DN_ERR_RANGE},
        {UINT64_MAX / 2 + 1, 3, INT64_MIN / 4, DN_ERR_RANGE},
        {40, 3, INT64_MAX, DN_ERR_PARAM},
    };
    conf_area_t area;
    comb_t comb;

    dn_world_start(world);
    conf_offer(world, &area, 10000);
    memset(area.local, 0x55, area.len);
    for (int which = 0; which < 2; which++) {
        const dn_key_t *key = conf_key(world, 1 - world->rank, which);
        for (size_t i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
            make_comb(&comb, try[i].count, try[i].extent);
            dn_xfer_t xfer = {.local = area.local,
                              .key = key,
                              .roff = try[i].roff,
                              .remote_sg = &comb.sg,
                              .len = 160 * try[i].count};
            if (DN_OK != try[i].wanted) {
                memset(area.local, 0x66, area.len);
            }
            conf_refused(world, &xfer, try[i].wanted);
            memset(area.local, 0x55, area.len);
            if (DN_OK == try[i].wanted) {
                xfer.len++;
                conf_refused(world, &xfer, DN_ERR_PARAM);
                xfer.len -= 2;
                conf_refused(world, &xfer, DN_ERR_PARAM);
                xfer.len++;
                xfer.local_sg = &comb.sg;
                xfer.local = area.local + 5000;
                comb.use.count++;
                conf_refused(world, &xfer, DN_ERR_PARAM);
            }
            dn_prog_free(comb.prog);
        }
    }
    dn_world_barrier(world);
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < area.len; i++) {
            dn_check_equal(area.base[which][i], 0x55);
        }
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

/** A key that says more than there is: the target knows better. Nothing is written. */
void programs_with_forged_keys_are_refused(dn_world_t *world)
{
    conf_area_t area;
    comb_t comb;

    dn_world_start(world);
    conf_offer(world, &area, 10000);
    memset(area.local, 0x66, area.len);
    make_comb(&comb, 20, 600);
    for (int which = 0; which < 2; which++) {
        dn_key_t key = *conf_key(world, 1 - world->rank, which);
        const dn_xfer_t xfer = {
            .local = area.local, .key = &key, .roff = 40, .remote_sg = &comb.sg, .len = 20 * 160};
        key.len = 1 << 20;
        conf_refused(world, &xfer, DN_ERR_RANGE);
        key = *conf_key(world, 1 - world->rank, which);
        comb.use.count = 10;
        const dn_xfer_t fits = {
            .local = area.local, .key = &key, .roff = 40, .remote_sg = &comb.sg, .len = 10 * 160};
        key.generation++;
        conf_refused(world, &fits, DN_ERR_RANGE);
        key.generation--;
        key.sid += 1000;
        conf_refused(world, &fits, DN_ERR_RANGE);
        comb.use.count = 20;
    }
    dn_world_barrier(world);
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < area.len; i++) {
            dn_check_equal(area.base[which][i], 0x55);
        }
    }
    dn_prog_free(comb.prog);
    conf_retract(world, &area);
    dn_world_stop(world);
}

enum { ENDLESS = 64 << 20 };

/** The segment goes while its bytes are on their way: they are more than any ring or socket holds. */
void a_program_of_a_freed_segment_ends(dn_world_t *world)
{
    const dn_prog_op_t op[] = {{DN_PROG_RUN, 0, 0, 8, 10, 16}, {DN_PROG_RUN, 0, 3, 6, 8, 8}};
    dn_world_comp_t comp = dn_world_comp();
    dn_prog_t *prog = NULL;
    conf_area_t area;

    dn_world_start(world);
    conf_offer(world, &area, 1000);
    if (0 == world->rank) {
        uint8_t *much = calloc(1, ENDLESS);
        dn_check(NULL != much);
        dn_check_equal(dn_prog_create(op, 2, &prog), DN_OK);
        /* Every instance is read from one place. */
        const dn_prog_use_t use = {prog, ENDLESS / 128, 0};
        const dn_sg_t sg = {.use = &use};
        const dn_xfer_t xfer = {.local = much,
                                .key = conf_key(world, 1, CONF_REGISTERED),
                                .remote_sg = &sg,
                                .len = ENDLESS,
                                .comp = &comp.comp};
        dn_status_t status;
        while (DN_ERR_AGAIN == (status = dn_pull(world->peer[1], &xfer))) {
            dn_world_progress(world);
        }
        dn_check_equal(status, DN_INPROGRESS);
        while (DN_INPROGRESS == comp.status && 0x55 != much[1 << 20]) {
            dn_world_progress(world);
        }
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, 1, 0, 1);
        while (DN_INPROGRESS == comp.status) {
            dn_world_progress(world);
        }
        dn_check_equal(comp.signals, 1);
        dn_check_equal(comp.status, DN_ERR_RANGE);
        dn_check_equal(much[1 << 20], 0x55);
        dn_prog_free(prog);
        free(much);
    } else {
        dn_world_await(world, 0, 0, 1);
        dn_segment_free(area.segment[CONF_REGISTERED]);
        dn_world_post(world, 0, 1);
        dn_check_equal(dn_segment_register(world->port, area.base[CONF_REGISTERED], 1000,
                                           &area.segment[CONF_REGISTERED]),
                       DN_OK);
    }
    conf_retract(world, &area);
    dn_world_stop(world);
}

enum { FLIGHT = 40 };

void programs_of_a_killed_peer_end(dn_world_t *world)
{
    static dn_world_comp_t comp[FLIGHT];
    static dn_status_t status[FLIGHT];
    conf_area_t area;
    uint64_t span;

    dn_world_start(world);
    conf_offer(world, &area, ROOM);
    if (1 == world->rank) {
        dn_world_await(world, 0, 0, 1);
        dn_world_die(world);
    }
    dn_prog_t *prog[2] = {scattered(1, 4000, &span), scattered(2, 20000, &span)};
    dn_test_log.expected = 1;
    for (unsigned i = 0; i < FLIGHT; i++) {
        const dn_prog_use_t use = {prog[i % 2], 1, 0};
        const dn_sg_t sg = {.use = &use};
        const dn_xfer_t xfer = {.local = area.local,
                                .key = conf_key(world, 1, CONF_REGISTERED),
                                .remote_sg = &sg,
                                .len = dn_prog_info(prog[i % 2])->size,
                                .comp = &comp[i].comp};
        if (FLIGHT / 2 == i) {
            dn_world_post(world, 0, 1);
        }
        comp[i] = dn_world_comp();
        do {
            status[i] = 0 == i / 2 % 2 ? dn_push(world->peer[1], &xfer) : dn_pull(world->peer[1], &xfer);
            dn_progress(world->port);
        } while (DN_ERR_AGAIN == status[i]);
        dn_check(DN_INPROGRESS == status[i] || DN_ERR_UNREACH == status[i]);
    }
    while (DN_ERR_UNREACH != dn_peer_check(world->peer[1])) {
        dn_world_progress(world);
    }
    for (unsigned i = 0; i < FLIGHT; i++) {
        dn_check_equal(comp[i].signals, DN_INPROGRESS == status[i]);
        dn_check(0 == comp[i].signals || DN_OK == comp[i].status || DN_ERR_UNREACH == comp[i].status);
    }
    dn_test_log.expected = 0;
    dn_prog_free(prog[0]);
    dn_prog_free(prog[1]);
    conf_forget(&area);
    dn_close(world->port);
}
