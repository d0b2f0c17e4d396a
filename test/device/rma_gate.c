/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Accumulates of one instruction and long ones, by several processes and threads: each takes effect as a whole, while the gate of
 * the guard is open, while it is closed, and at each turn.
 */
#include "dn_config.h"

#include "rma_part.h"

#include "dn_device.h"

#include <pthread.h>

enum {
    CALLS = 12000,
    PHASE = 2000, /**< calls with long ones, then as many without */
    ROW = 64,     /**< words of a long one */
    CLOSINGS = 3000,
    TURNS = 3, /**< word of a seat: how often this process found the gate in another state */
};

/* A thread sanitizer does not see that another process orders two threads of this one, by closing the gate or opening it. */
#if defined(__SANITIZE_THREAD__)
#    define WITH_THREADS 1
#else
#    define WITH_THREADS 2
#endif

/** Behind the control part of rank 0. */
typedef struct shared {
    int64_t row[ROW] __attribute__((aligned(64)));
    int64_t same[ROW]; /**< all words are replaced together */
    int64_t drawn;
    int64_t swapped;
    uint32_t alone; /**< rank 0 has all for itself */
} shared_t;
_Static_assert(sizeof(shared_t) <= BEHIND, "it fits");

/** How some threads go about it. */
typedef struct way {
    int threads;
    bool often;  /**< each long call closes the gate, and each short one opens it */
    bool phases; /**< processes meet at each phase */
    uint64_t turns;
} way_t;

static const dn_element_t i64 = {.size = 8, .extent = 8, .align = 8, .kind = DN_ELEMENT_SIGNED};
static uint8_t memory[64];

static shared_t *shared_memory(void)
{
    return (shared_t *) (void *) ((uint8_t *) part.win.target[0].control
                                  + dn_rma_control_bytes(part.win.size));
}

/** Where the gate is closed, too, though more processes run than there are cores. */
static void open_crowd(dn_world_t *world)
{
    open_window(world, memory, sizeof(memory), world->size);
    part.win.crowded = false;
}

/** dn_guard_close_fn_t: the gate turns whenever it can. */
static int close_often(const dn_guard_t *super, uint64_t len)
{
    dn_rma_control_t *control = ((const dn_rma_guard_t *) super)->control;

    control->longs = DN_RMA_CLOSE;
    control->most = DN_RMA_CLOSE;
    control->shorts = DN_RMA_REOPEN;
    return dn_rma_guard_close(super, len);
}

/** dn_acc_apply(), also for a caller that must not wait. */
static void apply(const dn_guard_t *guard, dn_acc_op_t op, int64_t *at, const int64_t *operand,
                  int64_t *result, uint64_t n)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_acc_apply(guard, &i64, op, at, operand, result, n))) {
        sched_yield();
    }
    dn_check_equal(status, DN_OK);
}

/** Who swaps has to see what is there first. */
static void count_by_swaps(const dn_guard_t *guard, int64_t *at)
{
    int64_t was, next, found = 0;
    dn_status_t status;

    do {
        was = found;
        next = was + 1;
        while (DN_ERR_AGAIN == (status = dn_acc_swap(guard, &i64, at, &next, &was, &found))) {
            sched_yield();
        }
        dn_check_equal(status, DN_OK);
    } while (found != was);
}

/** A thread of a process: adds one to each counter in each call. */
static void *add_all(void *arg)
{
    way_t *way = arg;
    dn_rma_wait_t tries = {.polls = 0};
    dn_rma_guard_t guard = dn_rma_guard(&part.win, part.win.target[0].control,
                                        part.win.rank == part.win.size - 1 ? &tries : NULL);
    const dn_guard_t *super = &guard.super;
    shared_t *shared = shared_memory();
    int64_t ones[ROW], seen[ROW], mine[ROW], last = -1;
    uint64_t turns = 0;
    uint32_t closed = 0;

    if (way->often) {
        guard.super.close = close_often;
    }
    for (int k = 0; k < ROW; k++) {
        ones[k] = 1;
    }
    for (int i = 0; i < CALLS; i++) {
        if (way->phases && 0 == i % PHASE) {
            meet();
        }
        apply(super, DN_ACC_SUM, &shared->drawn, ones, seen, 1);
        dn_check(last < seen[0]);
        last = seen[0];
        count_by_swaps(super, &shared->swapped);
        /* A cell, and the words of a row one by one. */
        apply(super, DN_ACC_SUM, &shared->row[0], ones, NULL, 2);
        apply(super, DN_ACC_SUM, &shared->row[2 + i % (ROW - 2)], ones, NULL, 1);
        apply(super, DN_ACC_NO_OP, &shared->same[2 * (i % (ROW / 2))], NULL, seen, 2);
        dn_check_equal(seen[0], seen[1]);
        if (0 == i / PHASE % 2) {
            apply(super, DN_ACC_SUM, shared->row, ones, NULL, ROW);
            for (int k = 0; k < ROW; k++) {
                mine[k] = i;
            }
            apply(super, DN_ACC_REPLACE, shared->same, mine, seen, ROW);
            for (int k = 1; k < ROW; k++) {
                dn_check_equal(seen[k], seen[0]);
            }
        }
        const uint32_t now = dn_load_acquire_u32(super->gate);
        turns += now != closed;
        closed = now;
    }
    dn_fetch_add_relaxed(&way->turns, turns);
    return NULL;
}

static void add_by(dn_world_t *world, way_t way)
{
    enum { MOST = 2 };
    pthread_t thread[MOST];

    part.threads = 1 < way.threads;
    open_crowd(world);
    dn_check(part.rma.fenced);
    for (int i = 0; i < way.threads; i++) {
        dn_check_equal(pthread_create(&thread[i], NULL, add_all, &way), 0);
    }
    for (int i = 0; i < way.threads; i++) {
        dn_check_equal(pthread_join(thread[i], NULL), 0);
    }
    dn_world_post(world, TURNS, way.turns);
    meet();
    const int64_t calls = (int64_t) CALLS * world->size * way.threads;
    const shared_t *shared = shared_memory();
    int64_t words = 0;
    uint64_t turns = 0;
    for (int rank = 0; rank < world->size; rank++) {
        turns += world->board->seat[rank].word[TURNS];
    }
    printf("%d threads each%s: %llu turns of the gate were seen\n", way.threads, way.often ? ", often" : "",
           (unsigned long long) turns);
    /* Closed in a phase with long ones, and opened in another; on a loaded machine not in each. */
    dn_check(!way.phases || 2 <= turns);
    dn_check_equal(shared->drawn, calls);
    dn_check_equal(shared->swapped, calls);
    dn_check_equal(shared->row[0], calls + calls / 2);
    dn_check_equal(shared->row[1], calls + calls / 2);
    for (int k = 2; k < ROW; k++) {
        words += shared->row[k];
    }
    dn_check_equal(words, calls + calls / 2 * (ROW - 2));
    for (int rank = 0; rank < world->size; rank++) {
        dn_check_equal(part.win.target[0].control->notes[rank].inside, 0);
    }
    close_window();
}

static void processes_add_at_once(dn_world_t *world)
{
    add_by(world, (way_t){.threads = 1, .phases = true});
}

static void threads_add_at_once(dn_world_t *world)
{
    add_by(world, (way_t){.threads = 2});
}

static void processes_add_while_the_gate_turns(dn_world_t *world)
{
    add_by(world, (way_t){.threads = 1, .often = true});
}

static void threads_add_while_the_gate_turns(dn_world_t *world)
{
    add_by(world, (way_t){.threads = 2, .often = true});
}

/** Who closes the gate finds everybody that has found it open, though there is no fence on their way in. */
static void nobody_is_inside_a_closed_gate(dn_world_t *world)
{
    uint64_t closed = 0, entered = 0;

    open_crowd(world);
    const dn_rma_guard_t guard = dn_rma_guard(&part.win, part.win.target[0].control, NULL);
    const dn_guard_t *super = &guard.super;
    uint32_t *alone = &shared_memory()->alone;
    while (0 == world->rank
           && (CLOSINGS > closed || CLOSINGS > dn_load_acquire(&world->board->seat[1].word[KEPT]))) {
        dn_check_equal(dn_guard_enter(super), DN_OK);
        if (0 != close_often(super, DN_RMA_WORTH)) {
            dn_store_relaxed_u32(alone, 1);
            for (int i = 0; i < 20; i++) {
                dn_pause();
            }
            dn_store_relaxed_u32(alone, 0);
            dn_check_equal(close_often(super, 1), 0);
            closed++;
        }
        dn_guard_leave(super);
        /* The others come in, or are about to. */
        for (uint64_t i = dn_test_below(&world->random, 40); 0 != i; i--) {
            dn_pause();
        }
    }
    if (0 == world->rank) {
        dn_world_post(world, KEPT, 1);
    }
    while (0 != world->rank && 0 == dn_load_acquire(&world->board->seat[0].word[KEPT])) {
        if (0 != dn_gate_enter(super)) {
            /* As long as a store takes to be seen. */
            for (int i = 0; i < 40; i++) {
                dn_check_equal(dn_load_relaxed_u32(alone), 0);
                dn_pause();
            }
            dn_gate_leave(super);
            dn_world_post(world, KEPT, ++entered);
        }
    }
    close_window();
}

/** Long and short calls. @return what they add. */
static int64_t add_rows(const dn_guard_t *guard, int calls)
{
    shared_t *shared = shared_memory();
    int64_t ones[ROW];

    for (int k = 0; k < ROW; k++) {
        ones[k] = 1;
    }
    for (int i = 0; i < calls; i++) {
        apply(guard, DN_ACC_SUM, shared->row, ones, NULL, ROW);
        apply(guard, DN_ACC_SUM, &shared->row[i % ROW], ones, NULL, 1);
    }
    return (int64_t) calls * (ROW + 1);
}

static int64_t sum_of_row(void)
{
    int64_t sum = 0;

    for (int k = 0; k < ROW; k++) {
        sum += shared_memory()->row[k];
    }
    return sum;
}

/** Where a process takes part in no fence, the gate stays open, and long calls go cell by cell. */
static void who_cannot_be_fenced_keeps_the_gate_open(dn_world_t *world)
{
    open_crowd(world);
    if (1 == world->rank) {
        /* As dn_rma_win_place() has it then. */
        part.win.target[0].control->notes[1].inside = DN_RMA_INSIDE_ALWAYS;
        part.rma.fenced = false;
    }
    meet();
    const dn_rma_guard_t guard = dn_rma_guard(&part.win, part.win.target[0].control, NULL);
    dn_check((1 == world->rank) == (NULL == guard.super.gate));
    const int64_t sum = add_rows(&guard.super, CALLS);
    meet();
    dn_check_equal(sum_of_row(), sum * world->size);
    dn_check_equal(part.win.target[0].control->gate, 0);
    dn_check_equal(part.win.target[0].control->notes[1].inside, DN_RMA_INSIDE_ALWAYS);
    close_window();
}

/** Who is stopped inside, or has ended there, keeps nobody waiting: the gate is opened again. */
static void who_stays_inside_stops_nobody(dn_world_t *world)
{
    open_crowd(world);
    dn_rma_guard_t guard = dn_rma_guard(&part.win, part.win.target[0].control, NULL);
    guard.super.close = close_often;
    if (1 == world->rank) {
        dn_check(dn_gate_enter(&guard.super));
        dn_world_post(world, KEPT, 1);
        dn_world_await(world, 0, KEPT, 1);
        dn_world_die(world);
    }
    dn_test_log_expect();
    dn_world_await(world, 1, KEPT, 1);
    int64_t sum = add_rows(&guard.super, ROW);
    dn_check_equal(part.control->gate, 0);
    dn_world_post(world, KEPT, 1);
    while (!dn_world_is_dead(world, 1) || dn_rma_lives(&part.win, 1)) {
        wait_more(NULL);
    }
    sum += add_rows(&guard.super, ROW);
    dn_check_equal(sum_of_row(), sum);
    /* The last call is a short one, which opens it; a long one closes it now. */
    const int64_t zeros[ROW] = {0};
    apply(&guard.super, DN_ACC_SUM, shared_memory()->row, zeros, NULL, ROW);
    dn_check_equal(part.control->gate, 1);
    leave_window();
}

static const dn_world_test_t tests[] = {
    {"processes_add_at_once", 3, processes_add_at_once},
    {"threads_add_at_once", WITH_THREADS, threads_add_at_once},
    {"processes_add_while_the_gate_turns", 3, processes_add_while_the_gate_turns},
    {"threads_add_while_the_gate_turns", WITH_THREADS, threads_add_while_the_gate_turns},
    {"nobody_is_inside_a_closed_gate", 2, nobody_is_inside_a_closed_gate},
    {"who_cannot_be_fenced_keeps_the_gate_open", 2, who_cannot_be_fenced_keeps_the_gate_open},
    {"who_stays_inside_stops_nobody", 2, who_stays_inside_stops_nobody},
};

int main(int argc, char **argv)
{
    if (0 == dn_bell_enroll()) {
        printf("the kernel refuses membarrier(), so the gate stays open\n");
        return 77;
    }
    /* Nothing of this goes by messages: over one device is enough. */
    return rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped, 1, argv[1]);
}
