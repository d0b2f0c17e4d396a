/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Stores that gather while packets are on their way go out though their program then calls nothing: also where the program itself has
 * read the acknowledgements, while it had no credit for a message to another process.
 *
 * Rank 0 owns a word, and computes. Rank 2 computes, and takes no messages. Rank 1 stores words of rank 0 in a row, then tries to send to
 * rank 2 for a moment, and then waits without a call until rank 0 has seen the last store. The threads of rank 1 cannot run meanwhile.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "dn_clock.h"

enum { ROUNDS = 50, ROW = 200, TRIES_NS = 1000000, LATE_NS = 5000000, PATIENCE_S = 600 };

static const uint8_t data[1000];

/** Handler of what rank 2 takes at the end. */
static void ignore(dn_peer_t *src, unsigned tag, const void *bytes, size_t len, void *arg) {}

/** Have the threads of the library run only while the program sleeps: the program comes first to all that arrives. */
static void hold_threads_back(void)
{
    static const struct sched_param none;
    DIR *tasks = opendir("/proc/self/task");
    cpu_set_t core;

    dn_check(NULL != tasks);
    CPU_ZERO(&core);
    CPU_SET((size_t) sched_getcpu(), &core);
    for (const struct dirent *task; NULL != (task = readdir(tasks));) {
        const pid_t thread = (pid_t) strtol(task->d_name, NULL, 10);
        if (0 < thread) {
            dn_check_equal(sched_setaffinity(thread, sizeof(core), &core), 0);
        }
        if (0 < thread && getpid() != thread) {
            dn_check_equal(sched_setscheduler(thread, SCHED_IDLE, &none), 0);
        }
    }
    closedir(tasks);
}

static void use_up_credit(dn_world_t *world)
{
    const uint64_t began = dn_clock_ns();

    while (dn_clock_ns() - began < 100000000) {
        (void) dn_botf(world->peer[2], DN_WORLD_CHAN, 0, NULL, 0, data, sizeof(data));
        (void) dn_progress(world->port);
    }
}

static void store_and_wait(dn_world_t *world)
{
    const uint64_t off = world->board->seat[0].off[0];
    int late = 0;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint64_t i = 0; i < ROW; i++) {
            /* Words of two lines in turn are not joined, so packets fill soon. */
            dn_world_aotf(world, world->peer[0], off + 64 * (1 + i % 2), i, sizeof(i));
        }
        dn_world_aotf(world, world->peer[0], off, round, sizeof(round));
        const uint64_t began = dn_clock_ns();
        while (dn_clock_ns() - began < TRIES_NS) {
            dn_check_equal(dn_botf(world->peer[2], DN_WORLD_CHAN, 0, NULL, 0, data, sizeof(data)),
                           DN_ERR_AGAIN);
        }
        while (dn_world_posted(world, 0, 0) < round) {
            /* No call. */
        }
        late += TRIES_NS + LATE_NS < dn_clock_ns() - began;
    }
    /* Any round may be late where the machine does something else. */
    dn_check(late < ROUNDS / 2);
}

static void stores_go_out_though_nothing_is_called(dn_world_t *world)
{
    void *word = NULL;

    world->config.timeout_s = PATIENCE_S;
    dn_world_open(world);
    if (0 == world->rank) {
        dn_check_equal(dn_llcm_alloc(world->port, 256, &world->me->off[0], &word), DN_OK);
    }
    dn_check_equal(dn_handler_set(world->port, DN_WORLD_CHAN, ignore, NULL), DN_OK);
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_world_connect_to(world, 0);
        dn_world_connect_to(world, 2);
        dn_world_aotf(world, world->peer[0], world->board->seat[0].off[0] + 64, 1, 8);
        dn_world_fence(world, world->peer[0]);
        use_up_credit(world);
        hold_threads_back();
        store_and_wait(world);
        dn_world_post(world, 1, 1);
    } else if (2 == world->rank) {
        dn_world_sleep(world, 1, 1, 1);
    } else {
        for (uint64_t seen = 0; ROUNDS > seen;) {
            seen = dn_load_acquire((const uint64_t *) word);
            dn_world_post(world, 0, seen);
            usleep(1000);
        }
    }
    dn_world_barrier(world);
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"stores_go_out_though_nothing_is_called", 3, stores_go_out_though_nothing_is_called},
};

/** usage: ipnuma_gather [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "ipnuma_gather", .device = "ipnuma:lo"};

    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
