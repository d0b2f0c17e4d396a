/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Windows without MPI (dn_rma.h): what far targets are asked is done, once and in order, and locks keep all others off, whether
 * their words are mapped or not.
 */
#include "dn_config.h"

#include "rma_part.h"

enum {
    WORDS = 4096,    /**< of a window of private memory, for each process that adds to it */
    ROUNDS = 60,     /**< of accumulates by many layouts */
    LAYOUTS = 40,    /**< more than a target keeps of one origin */
    PLACES = 150000, /**< of a layout too long to be kept */
    LOCKED = 300,
};

/** An accumulate of words, and what has become of it. */
typedef struct task {
    dn_rma_task_t super; /**< first */
    unsigned *ended;
    dn_status_t *status;
} task_t;

static void task_end(dn_rma_task_t *super, dn_status_t status)
{
    task_t *task = (task_t *) super;

    *task->status = status;
    ++*task->ended;
    free(task);
}

/** Accumulate @p n words. @param[out] old  NULL: not wanted. @return its status, once it is complete. */
static dn_status_t accumulate(int target, dn_acc_op_t op, const int64_t *operand, int64_t *old, uint64_t at,
                              uint64_t n, const dn_prog_use_t *use, const int64_t *compare)
{
    const dn_rma_side_t from = {.at = (uintptr_t) operand, .len = 8 * n};
    dn_rma_side_t there = {.at = at, .len = 8 * n};
    const dn_rma_acc_t acc = {op, I64, 8, &from, &there, compare};
    task_t *task = calloc(1, sizeof(*task));
    dn_status_t status = DN_INPROGRESS;
    unsigned ended = 0;

    dn_check(NULL != task);
    if (NULL != use) {
        there.use = *use;
    }
    *task = (task_t){.super = {.end = task_end,
                               .tells = true,
                               .fetches = NULL != old,
                               .result = {.at = (uintptr_t) old, .len = 8 * n}},
                     .ended = &ended,
                     .status = &status};
    dn_rma_task_begin(&part.win, target, &task->super);
    const dn_status_t called = dn_rma_accumulate(&part.win, target, &acc, &task->super);
    while (0 == ended) {
        wait_more(NULL);
    }
    dn_check_equal(ended, 1);
    dn_check_equal(dn_rma_settle(&part.win, target), DN_OK);
    return DN_OK != called ? called : status;
}

/** A layout of n blocks of 8 to 10 words, no two neighbours of which are at one distance. */
static dn_prog_t *layout(uint64_t seed, uint64_t n)
{
    dn_prog_op_t *op = calloc(n, sizeof(*op));
    dn_prog_t *prog = NULL;
    int64_t at = 0;

    dn_check(NULL != op);
    for (uint64_t i = 0; i < n; i++) {
        op[i] = (dn_prog_op_t){.kind = DN_PROG_RUN, .at = at, .len = 8 * (8 + i % 3), .count = 1};
        at += 8 * (int64_t) (9 + i % 3 + i % 2 + dn_test_below(&seed, 3));
    }
    dn_check_equal(dn_prog_create(op, n, &prog), DN_OK);
    free(op);
    return prog;
}

static int64_t window[13 * PLACES];

/** What all add is there; what is fetched was there; and a range that is not in the window is refused, by the target. */
static void far_targets_do_what_they_are_asked(dn_world_t *world)
{
    const int next = (world->rank + 1) % world->size, rounds = (int) dn_test_rounds(ROUNDS);
    int64_t ones[WORDS], old[WORDS], one = 1, was = 0;

    for (int i = 0; i < WORDS; i++) {
        ones[i] = 1;
    }
    memset(window, 0, sizeof(window));
    open_window(world, window, sizeof(window), 0);
    for (int i = 0; i < rounds; i++) {
        for (int rank = 0; rank < world->size; rank++) {
            if (rank != world->rank) {
                dn_check_equal(accumulate(rank, DN_ACC_SUM, ones, NULL, 0, WORDS, NULL, NULL), DN_OK);
            }
        }
    }
    meet();
    for (int i = 0; i < WORDS; i++) {
        dn_check_equal(window[i], rounds * (world->size - 1));
    }
    dn_check_equal(accumulate(next, DN_ACC_NO_OP, NULL, old, 0, WORDS, NULL, NULL), DN_OK);
    for (int i = 0; i < WORDS; i++) {
        dn_check_equal(old[i], rounds * (world->size - 1));
    }
    meet();
    const int64_t full = rounds * (world->size - 1);
    dn_check_equal(accumulate(next, DN_ACC_REPLACE, &one, &was, 8, 1, NULL, &one), DN_OK);
    dn_check_equal(was, full);
    dn_check_equal(accumulate(next, DN_ACC_REPLACE, &one, &was, 8, 1, NULL, &full), DN_OK);
    dn_check_equal(was, full);
    dn_check_equal(accumulate(next, DN_ACC_SUM, ones, NULL, sizeof(window) - 8, 2, NULL, NULL), DN_ERR_RANGE);
    meet();
    dn_check_equal(window[1], 1);
    dn_check_equal(window[13 * PLACES - 1], 0);
    close_window();
}

/** Every layout names its own places, whichever of them the target has to forget meanwhile, and however long it is. */
static void layouts_are_kept_apart(dn_world_t *world)
{
    const int next = (world->rank + 1) % world->size;
    uint64_t random = 1;
    dn_prog_t *prog[LAYOUTS];
    int64_t *ones = malloc(10 * PLACES * sizeof(*ones));

    dn_check(NULL != ones);
    for (int i = 0; i < 10 * PLACES; i++) {
        ones[i] = 1;
    }
    memset(window, 0, sizeof(window));
    for (uint64_t i = 0; i < LAYOUTS; i++) {
        prog[i] = layout(i, 0 == i ? PLACES : 50 * i);
    }
    open_window(world, window, sizeof(window), 0);
    /* All processes go the same way, so each knows what was added to its own window. */
    int64_t *wanted = calloc(13 * PLACES, sizeof(*wanted));
    dn_check(NULL != wanted);
    for (int i = 0; i < 4 * LAYOUTS; i++) {
        const uint64_t which = 8 > i ? (uint64_t) i % 2 : dn_test_below(&random, LAYOUTS);
        const uint64_t count = 0 == which ? 1 : 2;
        const dn_prog_use_t use = {prog[which], count, dn_prog_info(prog[which])->high};
        const uint64_t n = count * dn_prog_info(prog[which])->size / 8;
        dn_prog_cursor_t cursor;
        uint64_t at;

        dn_check_equal(accumulate(next, DN_ACC_SUM, ones, NULL, 0, n, &use, NULL), DN_OK);
        dn_prog_start(&cursor, &use, 0);
        for (uint64_t k = 0; k < n; k++) {
            dn_check_equal(dn_prog_next(&cursor, 8, &at), 8);
            wanted[at / 8]++;
        }
    }
    meet();
    for (int i = 0; i < 13 * PLACES; i++) {
        dn_check_equal(window[i], wanted[i]);
    }
    for (int i = 0; i < LAYOUTS; i++) {
        dn_prog_free(prog[i]);
    }
    free(wanted);
    free(ones);
    close_window();
}

/** Two processes map the control part of the first, the others ask for its lock: one at a time has it. */
static void locks_keep_all_others_off(dn_world_t *world)
{
    int64_t one = 1, was, before;
    const unsigned locked = dn_test_rounds(LOCKED);
    uint64_t kept = 0;

    memset(window, 0, sizeof(window));
    open_window(world, window, 4096, 2);
    for (unsigned i = 0; i < locked; i++) {
        const bool exclusive = 0 != dn_test_below(&world->random, 3);

        dn_check_equal(dn_rma_lock(&part.win, 0, exclusive), DN_OK);
        if (0 == world->rank) {
            was = dn_load_acquire(&window[0]);
        } else {
            dn_check_equal(accumulate(0, DN_ACC_NO_OP, NULL, &was, 0, 1, NULL, NULL), DN_OK);
        }
        /* Two steps, between which nobody may come. */
        for (int step = 0; exclusive && step < 2; step++) {
            if (0 == world->rank) {
                before = dn_fetch_add_acq_rel(&window[0], one);
            } else {
                dn_check_equal(accumulate(0, DN_ACC_SUM, &one, &before, 0, 1, NULL, NULL), DN_OK);
            }
            dn_check_equal(before, was + step);
        }
        dn_check_equal(was % 2, 0);
        kept += exclusive;
        dn_rma_unlock(&part.win, 0, exclusive);
    }
    dn_world_post(world, KEPT, kept);
    meet();
    uint64_t sum = 0;
    for (int rank = 0; rank < world->size; rank++) {
        sum += world->board->seat[rank].word[KEPT];
    }
    dn_check(0 != world->rank || 2 * sum == (uint64_t) window[0]);
    close_window();
}

/** A far process that ends with the lock has it taken back; one that maps it leaves an error to those behind it. */
static void locks_of_the_dead_are_found(dn_world_t *world)
{
    open_window(world, window, 4096, 3);
    if (3 == world->rank) {
        dn_check_equal(dn_rma_lock(&part.win, 0, true), DN_OK);
        dn_world_post(world, KEPT, 1);
        dn_world_die(world);
    }
    dn_test_log_expect();
    if (1 == world->rank) {
        dn_world_await(world, 3, KEPT, 1);
        dn_check_equal(dn_rma_lock(&part.win, 0, true), DN_OK);
        dn_world_post(world, KEPT, 1);
        dn_world_die(world);
    }
    while (1 > dn_load_acquire(&world->board->seat[1].word[KEPT])) {
        wait_more(NULL);
    }
    dn_check_equal(dn_rma_lock(&part.win, 0, true), DN_ERR_UNREACH);
    dn_world_post(world, KEPT, 1);
    while (1 > dn_load_acquire(&world->board->seat[2 - world->rank].word[KEPT])) {
        wait_more(NULL);
    }
    leave_window();
}

/** Say that a rank has come so far with the lock of this process, by remote operations. @param[in] add  To the lock. */
static void come_so_far(int rank, unsigned wish, uint32_t number, uint64_t add)
{
    (void) dn_ticket_add(&part.control->lock, add);
    dn_store_release(&part.control->notes[rank].wish, (uint64_t) number << 32 | wish);
}

/** Rank 1 is lost: what becomes of the lock? @param[in] known  Is it known at once what rank 1 has left? */
static void lose_rank(bool known)
{
    dn_rma_take_back(&part.win, 1);
    dn_check_equal(NULL == part.rma.orphans, known);
    dn_check_equal(DN_RMA_WISH_NONE == part.control->notes[1].wish, known);
}

/** What was not known before is known now. */
static void find_orphan(void)
{
    dn_check_equal(dn_rma_give_orphans(&part.rma), 1);
    dn_check(NULL == part.rma.orphans && DN_RMA_WISH_NONE == part.control->notes[1].wish);
}

/** All numbers are given back, and @p drawn were drawn. */
static void expect_free(uint32_t drawn)
{
    const uint64_t word = part.control->lock.word;
    const uint32_t next = dn_ticket_number(UINT32_MAX - 100 + drawn);

    dn_check_equal(dn_ticket_next(word), next);
    dn_check_equal(dn_ticket_read(word), next);
    dn_check_equal(dn_ticket_write(word), next);
    dn_check_equal(word & (DN_TICKET_CARRIES | DN_TICKET_BROKEN), 0);
}

/** A far process is lost behind each step of taking and giving the lock, while others have it or want it. */
static void locks_are_given_back_for_the_lost(dn_world_t *world)
{
    enum {
        FAR = DN_RMA_WISH_FAR,
        DRAWS = FAR | DN_RMA_WISH_DRAWS,
        HAS = FAR | DN_RMA_WISH_HAS,
        SHARES = FAR | DN_RMA_WISH_SHARES,
        ALONE = DN_RMA_WISH_EXCLUSIVE
    };
    const uint64_t next = DN_TICKET_NEXT_ONE, read = DN_TICKET_READ_ONE, write = DN_TICKET_WRITE_ONE;
    uint32_t drawn = 0;

    open_window(world, window, 4096, 0);
    part.win.far[1].lost = 1;
    /* Numbers wrap around meanwhile. */
    while (0 == world->rank && 120 > drawn) {
        const uint32_t n = dn_ticket_number(UINT32_MAX - 100 + drawn);

        come_so_far(1, DRAWS, 0, 0);
        lose_rank(true);
        expect_free(drawn);
        /* It has the lock alone: by a number that its notes do not have, and by one that they have. */
        come_so_far(1, DRAWS, 0, next);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, HAS | ALONE, dn_ticket_number(n + 1), next);
        lose_rank(true);
        expect_free(++drawn);
        /* It has given the lock back. */
        come_so_far(1, DRAWS, 0, next + read + write);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, HAS | ALONE, dn_ticket_number(n + 3), next + read + write);
        lose_rank(true);
        expect_free(++drawn);
        /* It shares the lock, is about to, or has just left. */
        come_so_far(1, HAS, dn_ticket_number(n + 4), next);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, HAS, dn_ticket_number(n + 5), next + read);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, SHARES, 0, next + read);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, SHARES, 0, next + read + write);
        lose_rank(true);
        expect_free(++drawn);
        come_so_far(1, SHARES, 0, 0);
        lose_rank(true);
        expect_free(drawn);
        /* Rank 2 has the lock alone, and rank 1 waits behind it, whether the notes have its number or not. */
        come_so_far(2, DRAWS, 0, next);
        come_so_far(1, HAS, dn_ticket_number(n + 9), next);
        lose_rank(false);
        come_so_far(2, DN_RMA_WISH_NONE, 0, read + write);
        find_orphan();
        drawn += 2;
        expect_free(drawn);
        come_so_far(2, HAS | ALONE, dn_ticket_number(n + 10), next);
        come_so_far(1, DRAWS, 0, next);
        lose_rank(false);
        come_so_far(2, DN_RMA_WISH_NONE, 0, read + write);
        find_orphan();
        drawn += 2;
        expect_free(drawn);
        /* One of the two has drawn. While rank 2 does not say that it was rank 2, it may be either. */
        come_so_far(2, DRAWS, 0, 0);
        come_so_far(1, DRAWS, 0, next);
        lose_rank(false);
        come_so_far(2, HAS | ALONE, dn_ticket_number(n + 13), next);
        find_orphan();
        come_so_far(2, DN_RMA_WISH_NONE, 0, read + write);
        drawn += 2;
        expect_free(drawn);
        /* Both share the lock, and one of them has left. */
        come_so_far(2, SHARES, 0, next + read);
        come_so_far(1, SHARES, 0, next + read + write);
        lose_rank(false);
        come_so_far(2, DN_RMA_WISH_NONE, 0, write);
        find_orphan();
        drawn += 2;
        expect_free(drawn);
        /* Rank 2 maps the lock, and shares it; rank 1 had no number yet. */
        come_so_far(2, DN_RMA_WISH_SHARES, 0, next + read);
        come_so_far(1, SHARES, 0, 0);
        lose_rank(false);
        come_so_far(2, DN_RMA_WISH_NONE, 0, write);
        find_orphan();
        expect_free(++drawn);
        come_so_far(2, HAS, dn_ticket_number(n + 17), next + read);
        come_so_far(1, SHARES, 0, next + read);
        lose_rank(false);
        come_so_far(2, DN_RMA_WISH_NONE, 0, write);
        find_orphan();
        drawn += 2;
        expect_free(drawn);
    }
    if (0 == world->rank) {
        /* Rank 2 shares the lock for long, and has said so or has not yet. Others share it so often meanwhile that numbers are far from
         * those of the begin. */
        for (unsigned said = 0; said < 2; said++) {
            come_so_far(2, said ? SHARES : HAS, dn_ticket_number(UINT32_MAX - 100 + drawn), next + read);
            come_so_far(1, SHARES, 0, (next + read + write) * (DN_TICKETS + 1));
            lose_rank(false);
            come_so_far(2, DN_RMA_WISH_NONE, 0, write);
            find_orphan();
            drawn += 1 + DN_TICKETS + 1;
            expect_free(drawn);
        }
        /* Rank 1 is lost before it has said so. */
        come_so_far(1, HAS, dn_ticket_number(UINT32_MAX - 100 + drawn), next + read);
        come_so_far(1, HAS, dn_ticket_number(UINT32_MAX - 100 + drawn),
                    (next + read + write) * (DN_TICKETS + 1));
        lose_rank(true);
        expect_free(drawn + 1 + DN_TICKETS + 1);
    }
    part.win.far[1].lost = 0;
    close_window();
}

/** An accumulate whose parts begin to fail tells once, and counts as if it had never been. */
static void calls_that_fail_midway_leave_nothing(dn_world_t *world)
{
    enum { ELEMENT = 1024, WHOLE = 16 * ELEMENT };
    const int next = (world->rank + 1) % world->size;
    dn_prog_op_t *op = calloc(PLACES, sizeof(*op));
    dn_rma_task_t *task = calloc(1, sizeof(*task));
    dn_prog_t *prog = NULL;
    uint64_t random = 1;
    int64_t at = WHOLE;

    dn_check(NULL != op && NULL != task);
    /* Elements that lie together, then those of more blocks than a part has. */
    op[0] = (dn_prog_op_t){.kind = DN_PROG_RUN, .len = WHOLE, .count = 1};
    for (int i = 1; i < PLACES; i++) {
        at += 2 + (int64_t) dn_test_below(&random, 3);
        op[i] = (dn_prog_op_t){.kind = DN_PROG_RUN, .at = at, .len = 1, .count = 1};
    }
    dn_check_equal(dn_prog_create(op, PLACES, &prog), DN_OK);
    free(op);
    open_window(world, window, sizeof(window), 0);
    const uint64_t bytes = dn_prog_info(prog)->size;
    const dn_rma_side_t from = {.at = (uintptr_t) window, .len = bytes};
    const dn_rma_side_t there = {.len = bytes, .use = {prog, 1, 0}};
    const dn_rma_acc_t acc = {DN_ACC_SUM, I64, ELEMENT, &from, &there, NULL};
    dn_rma_task_begin(&part.win, next, task);
    dn_check_equal(dn_rma_accumulate(&part.win, next, &acc, task), DN_ERR_UNSUPPORTED);
    dn_check_equal(dn_load_acquire_u32(&part.win.far[next].asked), 0);
    dn_check_equal(dn_rma_settle(&part.win, next), DN_OK);
    meet();
    dn_prog_free(prog);
    close_window();
}

/** dn_handler_fn_t: count answers. */
static void count_answer(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_rma_reply_t reply;

    (void) src;
    dn_check_equal(tag, DN_RMA_ANSWER);
    dn_check_equal(len, sizeof(reply));
    memcpy(&reply, data, sizeof(reply));
    dn_check_equal(reply.status, DN_ERR_PARAM);
    ++*(unsigned *) arg;
}

/** What was there does not fit a message beside the answer: the origin is told so. */
static void fetches_too_long_to_answer_are_refused(dn_world_t *world)
{
    unsigned answers = 0;
    dn_peer_attr_t attr;
    dn_rma_t other;

    open_window(world, window, sizeof(window), 0);
    const dn_rma_config_t calls = part.rma.config;
    dn_test_log_expect();
    dn_check_equal(dn_rma_open(&other, world->port, DN_CHAN_OSC, &calls), DN_ERR_PARAM);
    /* The channel stays the first one's. */
    dn_rma_close(&other);
    if (1 == world->rank) {
        dn_peer_attr(world->peer[0], &attr);
        dn_handler_clear(world->port, DN_CHAN_OSC);
        dn_check_equal(dn_handler_set(world->port, DN_CHAN_OSC, count_answer, &answers), DN_OK);
        dn_rma_head_t head = {.window = part.win.far[0].window,
                              .rank = 1,
                              .flags = DN_RMA_FETCHES,
                              .op = DN_ACC_NO_OP,
                              .type = I64,
                              .len = attr.botf_max / 8 * 8};
        head.count = head.len;
        dn_status_t status;
        while (DN_ERR_AGAIN
               == (status = dn_botf(world->peer[0], DN_CHAN_OSC, DN_RMA_ACCUMULATE, &head, sizeof(head), NULL,
                                    0))) {
            wait_more(NULL);
        }
        dn_check_equal(status, DN_OK);
        while (0 == answers) {
            wait_more(NULL);
        }
    }
    close_window();
}

static const dn_world_test_t tests[] = {
    {"far_targets_do_what_they_are_asked", 3, far_targets_do_what_they_are_asked},
    {"layouts_are_kept_apart", 2, layouts_are_kept_apart},
    {"calls_that_fail_midway_leave_nothing", 2, calls_that_fail_midway_leave_nothing},
    {"fetches_too_long_to_answer_are_refused", 2, fetches_too_long_to_answer_are_refused},
    {"locks_keep_all_others_off", 4, locks_keep_all_others_off},
    {"locks_of_the_dead_are_found", 4, locks_of_the_dead_are_found},
    {"locks_are_given_back_for_the_lost", 3, locks_are_given_back_for_the_lost},
};

int main(int argc, char **argv)
{
    return rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped,
                   sizeof(rma_mapped) / sizeof(rma_mapped[0]), argv[1]);
}
