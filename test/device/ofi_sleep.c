/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that sleeps until its bell is rung (dn_wait.h) is reached over ofi, and is woken by all that it may wait for:
 *
 *   ofi_sleep [TEST]
 */
#include "dn_config.h"

#include "dn_world.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/dn_clock.h"
#include "base/dn_thread.h"
#include "dn_atomic.h"
#include "dn_device.h"
#include "dn_port.h"
#include "dn_wait.h"

#define NETWORK "ofi:tcp@lo"

enum { BYTES = 100000, ROUNDS = 20, TURNS = 200, SLEEPS_IN_VAIN = 50 };

/** Words of the board. */
enum { SLEEPS, GOES_ON };

/** What the sleeper has to be woken by: each way of the other process to reach it. */
enum { BY_MESSAGE, BY_AOTF, BY_STATUS, BY_ATOMIC, WAYS };

static uint64_t memory[BYTES / sizeof(uint64_t)] __attribute__((aligned(64)));
static uint64_t *llcm_word;

/** Rank 0 shows its memory, and each of the others connects to it. */
static void meet(dn_world_t *world)
{
    dn_segment_t *segment;
    void *word;

    dn_world_listen(world, dn_world_hear);
    dn_check_equal(dn_llcm_alloc(world->port, sizeof(uint64_t), &world->me->off[0], &word), DN_OK);
    llcm_word = word;
    dn_check_equal(dn_segment_register(world->port, memory, sizeof(memory), &segment), DN_OK);
    dn_segment_key(segment, &world->me->key[0]);
    dn_world_barrier(world);
    for (int rank = 1; rank < world->size; rank++) {
        if (0 == world->rank || rank == world->rank) {
            const int other = rank - world->rank;
            dn_world_connect_to(world, other);
            dn_world_send(world, world->peer[other], DN_WORLD_CHAN, 0, NULL, 0);
            dn_world_hear_until(world, 1);
            world->heard = 0;
        }
        dn_world_barrier(world);
    }
}

/** Steps S0 and S1 of dn_wait.h. @return the bell's value; 0: something has come, or another thread receives: there is no need to sleep. */
static uint32_t lie_down(const dn_world_t *world)
{
    uint32_t *bell = dn_bell(world->port);

    dn_check(NULL != bell);
    const uint32_t odd = dn_bell_set(bell);
    (void) dn_bell_fence_all();
    return 0 == dn_port_poll_all(world->port) ? odd : 0;
}

/** Step S2. Nothing but a ring ends the sleep in time. */
static void sleep_until_rung(const dn_world_t *world, uint32_t odd)
{
    const struct timespec long_enough = {60, 0};

    dn_port_tell_sleep(world->port);
    dn_check(dn_bell_sleep(dn_bell(world->port), odd, &long_enough));
}

/** Sleep until there have been so many messages and changes of the word in the LLCM, and the word in memory has this value. */
static void sleep_until(dn_world_t *world, uint64_t messages, uint64_t stored, uint64_t counted)
{
    dn_world_post(world, SLEEPS, dn_world_posted(world, world->rank, SLEEPS) + 1);
    for (;;) {
        const uint32_t odd = lie_down(world);
        if (messages <= world->heard && stored == dn_load_acquire(llcm_word)
            && counted == dn_load_acquire(&memory[0])) {
            return;
        }
        if (0 != odd) {
            sleep_until_rung(world, odd);
        }
    }
}

/** Wait until rank 0 is about to sleep for the time @p round, and its first thread does not run. */
static void await_sleep(const dn_world_t *world, uint64_t round)
{
    while (dn_world_posted(world, 0, SLEEPS) < round
           || 'S' != dn_test_state(world->board->seat[0].os_pid, NULL)) {
        (void) sched_yield();
    }
}

static void reach(dn_world_t *world, int way, uint64_t value)
{
    const dn_board_seat_t *seat = &world->board->seat[0];
    dn_peer_t *peer = world->peer[0];
    uint64_t result;

    switch (way) {
    case BY_MESSAGE:
        dn_world_send(world, peer, DN_WORLD_CHAN, (unsigned) value % 256, NULL, 0);
        break;
    case BY_AOTF:
        dn_world_aotf(world, peer, seat->off[0], value, sizeof(value));
        break;
    case BY_STATUS: {
        const dn_xfer_t xfer = {.local = &memory[1],
                                .key = &seat->key[0],
                                .roff = sizeof(uint64_t),
                                .len = BYTES - sizeof(uint64_t),
                                .flags = DN_XFER_STATUS_REMOTE,
                                .remote_status = seat->off[0],
                                .remote_value = value};
        dn_check_equal(dn_world_push(world, peer, &xfer), DN_OK);
        break;
    }
    default: {
        const dn_amo_t add = {DN_AMO_ADD, sizeof(result), 1, 0, &result, &seat->key[0], 0, NULL};
        dn_check_equal(dn_world_atomic(world, peer, &add), DN_OK);
        dn_check_equal(result, value - 1);
        break;
    }
    }
}

/** Each way to reach the sleeper wakes it. */
static void each_way_wakes(dn_world_t *world)
{
    meet(world);
    for (uint64_t i = 0; i < ROUNDS * WAYS; i++) {
        const uint64_t round = i / WAYS;
        const int way = (int) (i % WAYS);
        const uint64_t stored = BY_STATUS <= way ? 2 * round + 2 : BY_AOTF == way ? 2 * round + 1 : 2 * round;
        if (0 == world->rank) {
            sleep_until(world, round + 1, stored, BY_ATOMIC == way ? round + 1 : round);
        } else {
            await_sleep(world, i + 1);
            reach(world, way, BY_MESSAGE == way ? round : BY_ATOMIC == way ? round + 1 : stored);
        }
    }
    dn_world_stop(world);
}

/** All that needs no handler is done in the memory of a process that has looked for the last time, and makes no call. The watcher takes over
 * after a while even if nobody tells it that the process sleeps. */
static void memory_is_reached_while_its_owner_sleeps(dn_world_t *world)
{
    static uint8_t back[BYTES];

    meet(world);
    if (0 == world->rank) {
        (void) lie_down(world);
        dn_world_post(world, SLEEPS, 1);
        dn_world_sleep(world, 1, GOES_ON, 1);
        /* Pairs with the store of the status, which comes behind the bytes: a thread sanitizer sees no order between processes. */
        dn_check_equal(dn_load_acquire(llcm_word), ROUNDS);
        dn_check_bytes(&memory[1], BYTES - sizeof(uint64_t), ROUNDS);
    } else {
        dn_world_sleep(world, 0, SLEEPS, 1);
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            const dn_xfer_t pull = {.local = back, .key = &world->board->seat[0].key[0], .len = BYTES};
            dn_test_fill((uint8_t *) &memory[1], BYTES - sizeof(uint64_t), round);
            reach(world, BY_STATUS, round);
            reach(world, BY_ATOMIC, round);
            dn_check_equal(dn_world_pull(world, world->peer[0], &pull), DN_OK);
            dn_check(0 == memcmp(back, &round, sizeof(round)));
            dn_check_bytes(back + sizeof(round), BYTES - sizeof(round), round);
        }
        dn_world_post(world, GOES_ON, 1);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static uint32_t requests; /**< that the watcher has seen come, and after which it may look on; atomic */

int __real_dn_awake_begin(dn_awake_t *awake, uint64_t now);
int __wrap_dn_awake_begin(dn_awake_t *awake, uint64_t now);

int __wrap_dn_awake_begin(dn_awake_t *awake, uint64_t now)
{
    (void) dn_fetch_add_relaxed(&requests, 1);
    return __real_dn_awake_begin(awake, now);
}

/** The watcher sees reads come, of which the provider says nothing. So it stays awake in a row of them. */
static void reads_are_requests(dn_world_t *world)
{
    enum { READS = 20 };
    static uint8_t back[BYTES];

    meet(world);
    if (0 == world->rank) {
        const struct timespec pause = {.tv_nsec = 1000000};
        const uint64_t until = dn_clock_ns() + UINT64_C(30000000000);
        (void) lie_down(world);
        dn_port_tell_sleep(world->port);
        const uint32_t before = dn_load_relaxed_u32(&requests);
        dn_world_post(world, SLEEPS, 1);
        /* Where processes share cores, the watcher looks on after no request. */
        while (!dn_oversubscribed(world->port) && READS > dn_load_relaxed_u32(&requests) - before) {
            dn_check(dn_clock_ns() < until);
            (void) nanosleep(&pause, NULL);
        }
        dn_world_post(world, GOES_ON, 1);
    } else {
        const dn_xfer_t pull = {.local = back, .key = &world->board->seat[0].key[0], .len = BYTES};
        dn_world_sleep(world, 0, SLEEPS, 1);
        do {
            dn_check_equal(dn_world_pull(world, world->peer[0], &pull), DN_OK);
        } while (0 == dn_world_posted(world, 0, GOES_ON));
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** What the sleeper has asked for itself wakes it when it has come. */
static void a_completion_wakes(dn_world_t *world)
{
    static uint8_t mine[BYTES];

    meet(world);
    for (unsigned round = 0; 0 == world->rank && round < ROUNDS; round++) {
        dn_world_comp_t comp = dn_world_comp();
        const dn_xfer_t pull = {
            .local = mine, .key = &world->board->seat[1].key[0], .len = BYTES, .comp = &comp.comp};
        dn_status_t status;
        while (DN_ERR_AGAIN == (status = dn_pull(world->peer[1], &pull))) {
            dn_world_progress(world);
        }
        dn_check_equal(status, DN_INPROGRESS);
        while (0 == comp.signals) {
            const uint32_t odd = lie_down(world);
            if (0 == comp.signals && 0 != odd) {
                sleep_until_rung(world, odd);
            }
        }
        dn_check_equal(comp.status, DN_OK);
    }
    if (0 == world->rank) {
        dn_world_post(world, GOES_ON, 1);
    } else {
        dn_world_sleep(world, 0, GOES_ON, 1);
    }
    dn_world_stop(world);
}

/** A sender that sleeps until there is room is woken by the receiver that makes room, and one that fences by the answer. */
static void room_wakes(dn_world_t *world)
{
    enum { MESSAGES = 3000 };
    static uint8_t bytes[1000];

    world->config.ring_lines = 64;
    meet(world);
    if (0 == world->rank) {
        for (unsigned i = 0; i < MESSAGES; i++) {
            while (DN_ERR_AGAIN
                   == dn_botf(world->peer[1], DN_WORLD_CHAN, i % 256, bytes, sizeof(bytes), NULL, 0)) {
                const uint32_t odd = lie_down(world);
                const dn_status_t status =
                    dn_botf(world->peer[1], DN_WORLD_CHAN, i % 256, bytes, sizeof(bytes), NULL, 0);
                if (DN_OK == status) {
                    break;
                }
                dn_check_equal(status, DN_ERR_AGAIN);
                if (0 != odd) {
                    sleep_until_rung(world, odd);
                }
            }
        }
        for (;;) {
            const uint32_t odd = lie_down(world);
            const dn_status_t status = dn_fence(world->peer[1]);
            if (DN_OK == status) {
                break;
            }
            dn_check_equal(status, DN_INPROGRESS);
            if (0 != odd) {
                sleep_until_rung(world, odd);
            }
        }
    } else {
        dn_world_hear_until(world, MESSAGES);
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

/** The loss of a peer is something to wait for, too: it is told once. */
static void a_loss_wakes(dn_world_t *world)
{
    meet(world);
    if (1 == world->rank) {
        await_sleep(world, 1);
        dn_close(world->port);
        return;
    }
    dn_world_post(world, SLEEPS, 1);
    while (0 == dn_world_lost(world)) {
        const uint32_t odd = lie_down(world);
        if (0 == dn_world_lost(world) && 0 != odd) {
            sleep_until_rung(world, odd);
        }
    }
    dn_check_equal(dn_world_lost(world), 1);
    dn_close(world->port);
}

/** Rank 0 has both devices, 1 only the network, 2 only shared memory: either wakes it. */
static void each_device_of_a_list_wakes(dn_world_t *world)
{
    static const dn_variant_t variant[] = {
        {.file = "both", .device = "shm," NETWORK},
        {.file = "network", .device = NETWORK},
        {.file = "memory", .device = "shm"},
    };

    world->variant = &variant[world->rank];
    meet(world);
    for (uint64_t i = 0; i < 2 * ROUNDS; i++) {
        if (0 == world->rank) {
            sleep_until(world, i + 1, 0, 0);
        } else if ((uint64_t) world->rank == 1 + i % 2) {
            await_sleep(world, i + 1);
            reach(world, BY_MESSAGE, i);
        }
    }
    dn_world_stop(world);
}

/** Answer each message of the other by one, from dn_wait(). A ring that was missed would only make it slow, as a sleep ends by the clock: the
 * tests above pin the rings. @param blind  Must the waits be blind? */
static void take_turns(dn_world_t *world, int blind)
{
    world->config.wait = DN_WAIT_SLEEP;
    meet(world);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        dn_wait_t wait = {0};
        if (0 == world->rank) {
            dn_world_send(world, world->peer[1], DN_WORLD_CHAN, (unsigned) turn % 256, NULL, 0);
        }
        while (world->heard <= turn) {
            if (0 == dn_progress(world->port)) {
                (void) dn_wait(world->port, &wait, 0, 0);
                dn_check(0 == wait.began_ns || blind == (0 != (wait.flags & DN_WAIT_BLIND)));
            }
        }
        if (1 == world->rank) {
            dn_world_send(world, world->peer[0], DN_WORLD_CHAN, (unsigned) turn % 256, NULL, 0);
        }
    }
    dn_world_stop(world);
}

static void two_sleepers_take_turns(dn_world_t *world)
{
    take_turns(world, 0);
}

/** A provider without a file to wait for: both sleep by the clock. */
static void two_sleepers_without_a_file_take_turns(dn_world_t *world)
{
    static const dn_variant_t layered = {.file = "layered", .device = "ofi:tcp;ofi_rxm@lo"};

    world->variant = &layered;
    take_turns(world, 1);
}

/** Wait by dn_wait() while nothing comes, with so many calls of progress before each call. The waiter sleeps: nobody rings. */
static void sleep_in_vain(dn_port_t *port, unsigned polls, unsigned flags)
{
    dn_wait_t wait = {0};
    unsigned slept = 0, woken = 0;

    while (slept < SLEEPS_IN_VAIN) {
        for (unsigned i = 0; i < polls; i++) {
            (void) dn_progress(port);
        }
        switch (dn_wait(port, &wait, 0, flags)) {
        case DN_WAIT_SLEPT:
            slept++;
            break;
        case DN_WAIT_WOKEN:
            woken++;
            /* Some words of the devices may still be on their way. */
            dn_check(woken < SLEEPS_IN_VAIN);
            break;
        default:
            break;
        }
    }
}

/** A program sleeps that polls many times before each call of dn_wait(), as collectives do. */
static void a_waiter_sleeps_however_often_it_polls(dn_world_t *world)
{
    world->config.wait = DN_WAIT_AUTO;
    meet(world);
    if (0 == world->rank) {
        sleep_in_vain(world->port, 1024, 0);
        sleep_in_vain(world->port, 3, DN_WAIT_BLIND);
        dn_world_post(world, GOES_ON, 1);
    } else {
        dn_world_sleep(world, 0, GOES_ON, 1);
    }
    dn_world_stop(world);
}

/** A thread that polls until it is told to stop. */
typedef struct poller {
    dn_port_t *port;
    uint32_t stops;
} poller_t;

static void *poll_on(void *arg)
{
    poller_t *poller = arg;

    while (0 == dn_load_acquire_u32(&poller->stops)) {
        for (unsigned i = 0; i < 64; i++) {
            (void) dn_progress(poller->port);
        }
        (void) sched_yield();
    }
    return NULL;
}

/** A thread sleeps beside another that polls, and is woken by what the other reads. */
static void a_thread_sleeps_beside_one_that_polls(dn_world_t *world)
{
    world->job.threads = 1;
    world->config.wait = DN_WAIT_AUTO;
    meet(world);
    if (0 == world->rank) {
        poller_t poller = {.port = world->port};
        pthread_t thread;
        dn_check_equal(pthread_create(&thread, NULL, poll_on, &poller), 0);
        sleep_in_vain(world->port, 1, 0);
        dn_world_post(world, GOES_ON, 1);
        while (ROUNDS != dn_load_acquire(llcm_word)) {
            const uint32_t odd = lie_down(world);
            if (0 != odd && ROUNDS != dn_load_acquire(llcm_word)) {
                sleep_until_rung(world, odd);
            }
        }
        dn_store_release_u32(&poller.stops, 1);
        dn_check_equal(pthread_join(thread, NULL), 0);
    } else {
        dn_world_sleep(world, 0, GOES_ON, 1);
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            reach(world, BY_AOTF, round);
            dn_world_fence(world, world->peer[0]);
        }
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"each_way_wakes", 2, each_way_wakes},
    {"memory_is_reached_while_its_owner_sleeps", 2, memory_is_reached_while_its_owner_sleeps},
    {"reads_are_requests", 2, reads_are_requests},
    {"a_completion_wakes", 2, a_completion_wakes},
    {"room_wakes", 2, room_wakes},
    {"a_loss_wakes", 2, a_loss_wakes},
    {"each_device_of_a_list_wakes", 3, each_device_of_a_list_wakes},
    {"a_waiter_sleeps_however_often_it_polls", 2, a_waiter_sleeps_however_often_it_polls},
    {"a_thread_sleeps_beside_one_that_polls", 2, a_thread_sleeps_beside_one_that_polls},
    {"two_sleepers_take_turns", 2, two_sleepers_take_turns},
    {"two_sleepers_without_a_file_take_turns", 2, two_sleepers_without_a_file_take_turns},
};

int main(int argc, char **argv)
{
    static const dn_variant_t network = {.file = "ofi_sleep over tcp", .device = NETWORK};

    (void) argc;
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &network, argv[1]);
}
