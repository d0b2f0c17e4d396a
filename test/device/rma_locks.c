/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Queued locks and the guard, in memory that several processes map.
 */
#include "dn_config.h"

#include "rma_world.h"

#include "dn_guard.h"
#include "dn_ticket.h"

#include <sched.h>
#include <time.h>

enum {
    ROUNDS = 4000,
    LATEST_S = 30, /**< no more rounds begin then: where cores are scarce, each holder waits for one */
    GUARDED = 20000
};

/** Numbers wrap around while they are used. */
#define FIRST (UINT32_MAX - 500)

typedef struct shared {
    dn_ticket_t lock;
    uint64_t pad[7];
    uint32_t guard;
    uint32_t readers;
    uint64_t word[2]; /**< alike, but for a moment of who has the lock alone */
} shared_t;

static void take(dn_ticket_t *lock, int exclusive, uint32_t number)
{
    while (!dn_ticket_try(lock, exclusive, number)) {
        sched_yield();
    }
}

static void holders_are_alone_or_share(dn_world_t *world)
{
    dn_segment_t *segment;
    shared_t *shared = rma_share(world, sizeof(*shared), &segment);
    uint64_t stores = 0, sum = 0;

    if (0 == world->rank) {
        dn_ticket_open(&shared->lock, FIRST);
    }
    dn_world_barrier(world);
    const time_t since = time(NULL);
    for (int i = 0; i < ROUNDS && LATEST_S > time(NULL) - since; i++) {
        const int exclusive = 0 == dn_test_below(&world->random, 2);
        const uint32_t number = dn_ticket_draw(&shared->lock);

        take(&shared->lock, exclusive, number);
        if (exclusive) {
            dn_check_equal(dn_load_acquire_u32(&shared->readers), 0);
            dn_check_equal(shared->word[0], shared->word[1]);
            shared->word[0]++;
            sched_yield();
            shared->word[1]++;
            stores++;
        } else {
            (void) dn_fetch_add_acq_rel(&shared->readers, 1);
            dn_check_equal(shared->word[0], shared->word[1]);
            (void) dn_fetch_add_acq_rel(&shared->readers, (uint32_t) -1);
        }
        dn_ticket_give(&shared->lock, exclusive);
    }
    dn_world_post(world, 0, stores + 1);
    for (int rank = 0; rank < world->size; rank++) {
        dn_world_await(world, rank, 0, 1);
        sum += world->board->seat[rank].word[0] - 1;
    }
    dn_check_equal(shared->word[0], sum);
    rma_stop(world, segment);
}

/** Who waits alone keeps later ones out, and those that share and stand together get in together. */
static void numbers_are_served_in_order(dn_world_t *world)
{
    dn_ticket_t lock;
    uint32_t number[5];

    (void) world;
    dn_ticket_open(&lock, UINT32_MAX - 2);
    for (int i = 0; i < 5; i++) {
        number[i] = dn_ticket_draw(&lock);
    }
    /* shared, shared, exclusive, shared, exclusive */
    dn_check(!dn_ticket_try(&lock, 1, number[2]));
    dn_check(!dn_ticket_try(&lock, 0, number[3]));
    dn_check(!dn_ticket_try(&lock, 0, number[1]));
    dn_check(dn_ticket_try(&lock, 0, number[0]));
    dn_check(dn_ticket_try(&lock, 0, number[1]));
    dn_check(!dn_ticket_try(&lock, 1, number[2]));
    /* Each tells whose turn it may be now. */
    dn_check_equal(dn_ticket_give(&lock, 0), number[1]);
    dn_check(!dn_ticket_try(&lock, 1, number[2]));
    dn_check_equal(dn_ticket_give(&lock, 0), number[2]);
    dn_check(dn_ticket_is_drawn(&lock, number[2]));
    dn_check(!dn_ticket_try(&lock, 0, number[3]));
    dn_check(dn_ticket_try(&lock, 1, number[2]));
    dn_check(!dn_ticket_try(&lock, 0, number[3]));
    dn_check_equal(dn_ticket_give(&lock, 1), number[3]);
    dn_check(!dn_ticket_try(&lock, 1, number[4]));
    dn_check(dn_ticket_try(&lock, 0, number[3]));
    dn_check_equal(dn_ticket_give(&lock, 0), number[4]);
    dn_check(dn_ticket_try(&lock, 1, number[4]));
    dn_check(!dn_ticket_is_drawn(&lock, dn_ticket_give(&lock, 1)));
    /* All three have wrapped around. */
    dn_check_equal(lock.word, 2 * (DN_TICKET_NEXT_ONE | DN_TICKET_READ_ONE | DN_TICKET_WRITE_ONE));
}

static dn_status_t wait_for_guard(const dn_guard_t *guard)
{
    while (0 != dn_guard_try(guard)) {
        sched_yield();
    }
    return DN_OK;
}

static void the_guard_has_one_owner(dn_world_t *world)
{
    dn_segment_t *segment;
    shared_t *shared = rma_share(world, sizeof(*shared), &segment);
    const dn_guard_t guard = {
        .word = &shared->guard, .owner = (uint32_t) world->rank + 1, .wait = wait_for_guard};

    for (int i = 0; i < GUARDED; i++) {
        dn_check_equal(dn_guard_enter(&guard), DN_OK);
        dn_check_equal(dn_load_acquire_u32(&shared->guard), world->rank + 1);
        dn_check_equal(shared->word[0], shared->word[1]);
        shared->word[0]++;
        shared->word[1]++;
        dn_guard_leave(&guard);
    }
    dn_world_barrier(world);
    dn_check_equal(shared->word[0], (uint64_t) GUARDED * (uint64_t) world->size);
    rma_stop(world, segment);
}

static dn_status_t come_again(const dn_guard_t *guard)
{
    return 0 == dn_guard_try(guard) ? DN_OK : DN_ERR_AGAIN;
}

/** A process that has ended with the guard keeps it, and is named. */
static void a_dead_owner_is_named(dn_world_t *world)
{
    dn_segment_t *segment;
    shared_t *shared = rma_share(world, sizeof(*shared), &segment);
    const dn_guard_t guard = {
        .word = &shared->guard, .owner = (uint32_t) world->rank + 1, .wait = come_again};

    if (1 == world->rank) {
        dn_check_equal(dn_guard_enter(&guard), DN_OK);
        dn_world_post(world, 0, 1);
        dn_world_die(world);
    }
    dn_test_log_expect();
    dn_world_sleep(world, 1, 0, 1);
    dn_check_equal(dn_guard_enter(&guard), DN_ERR_AGAIN);
    dn_check_equal(dn_guard_try(&guard), 2);
    const dn_guard_t alone = {.word = NULL};
    dn_check_equal(dn_guard_enter(&alone), DN_OK);
    dn_guard_leave(&alone);
    dn_segment_free(segment);
    dn_close(world->port);
    world->port = NULL;
}

static const dn_world_test_t tests[] = {
    {"numbers_are_served_in_order", 1, numbers_are_served_in_order},
    {"holders_are_alone_or_share", 4, holders_are_alone_or_share},
    {"the_guard_has_one_owner", 4, the_guard_has_one_owner},
    {"a_dead_owner_is_named", 2, a_dead_owner_is_named},
};

int main(int argc, char **argv)
{
    return rma_run(tests, sizeof(tests) / sizeof(tests[0]), rma_mapped,
                   sizeof(rma_mapped) / sizeof(rma_mapped[0]), argv[1]);
}
