/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What a process of the shm device finds out while it only polls: that senders came when it had no descriptor or memory
 * for them, and that others have ended without a word.
 */
#include "dn_config.h"

#include "dn_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "shm/dn_shm_int.h"

#define MS UINT64_C(1000000)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Senders that come at a bad moment */

enum { RECEIVER, SENDER, POLLS = 300000 };

/** No file can be opened, or no memory be mapped. */
static void run_short(int resource)
{
    struct rlimit limit;
    unsigned long pages = 0;

    dn_check_equal(getrlimit(resource, &limit), 0);
    if (RLIMIT_NOFILE == resource) {
        limit.rlim_cur = (rlim_t) dup(STDIN_FILENO);
        close((int) limit.rlim_cur);
    } else {
        FILE *file = fopen("/proc/self/statm", "re");
        dn_check(NULL != file && 1 == fscanf(file, "%lu", &pages));
        fclose(file);
        /* The heap may grow a little: the mapping of a peer takes more. */
        limit.rlim_cur = (rlim_t) (pages + 256) * DN_SHM_PAGE;
    }
    dn_check_equal(setrlimit(resource, &limit), 0);
}

static void end_shortage(int resource)
{
    struct rlimit limit;

    dn_check_equal(getrlimit(resource, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    dn_check_equal(setrlimit(resource, &limit), 0);
}

/** The sender comes in the midst of a shortage: that is said once, tried again without much work, and then it is heard. */
static void come_in_shortage(dn_world_t *world, int resource)
{
    dn_world_listen(world, dn_world_hear);
    if (RECEIVER == world->rank) {
        run_short(resource);
        dn_world_post(world, 0, 1);
        dn_test_log_expect();
        dn_world_await(world, SENDER, 0, 1);
        const uint64_t wall = now_ns();
        const uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < POLLS; i++) {
            dn_progress(world->port);
        }
        /* An attempt takes 5 us at least: this is a tenth of what they all would take. */
        dn_check(POLLS * UINT64_C(500) > clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
        while (now_ns() - wall < 700 * MS) {
            dn_world_progress(world);
        }
        dn_check(dn_test_log_said(1, "PID 1"));
        dn_check_equal(world->heard, 0);
        end_shortage(resource);
        dn_world_hear_until(world, 1);
        dn_world_post(world, 0, 2);
    } else {
        dn_world_sleep(world, RECEIVER, 0, 1);
        dn_world_connect_to(world, RECEIVER);
        dn_world_send(world, world->peer[RECEIVER], DN_WORLD_CHAN, 0, "here", 4);
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, RECEIVER, 0, 2);
    }
    dn_world_stop(world);
}

static void a_sender_that_came_without_files_is_heard_later(dn_world_t *world)
{
    come_in_shortage(world, RLIMIT_NOFILE);
}

static void a_sender_that_came_without_memory_is_heard_later(dn_world_t *world)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("%s: left out: a sanitizer needs more address space than can be told\n", world->test);
#else
    come_in_shortage(world, RLIMIT_AS);
#endif
}

/* Deaths */

/** Bound on what it takes to learn of a death by polls alone. */
#define NEWS_NS (2000 * MS)

static unsigned told;

static void count_news(dn_peer_t *peer, void *arg)
{
    (void) peer;
    (void) arg;
    told++;
}

/** The victim dies while the others poll, or sleep between polls as who shares its core does. */
static void learn_of_death(dn_world_t *world, int connected)
{
    const int victim = world->size - 1;
    /* As who shares its core sleeps at most (dn_nap.h). */
    const struct timespec nap = {.tv_nsec = 1000000};

    dn_world_listen(world, dn_world_hear);
    if (connected) {
        dn_world_connect(world);
    } else if (victim == world->rank) {
        for (int k = 0; k < victim; k++) {
            dn_world_connect_to(world, k);
            dn_world_send(world, world->peer[k], DN_WORLD_CHAN, 0, "here", 4);
        }
    } else {
        dn_world_hear_until(world, 1);
    }
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, count_news, NULL), DN_OK);
    dn_world_barrier(world);
    if (victim == world->rank) {
        dn_world_post(world, 0, now_ns());
        dn_world_die(world);
    }
    dn_world_sleep(world, victim, 0, 1);
    while (0 == told) {
        dn_progress(world->port);
        if (0 != world->rank) {
            nanosleep(&nap, NULL);
        }
        dn_check(NEWS_NS > now_ns() - world->board->seat[victim].word[0]);
    }
    dn_check_equal(told, 1);
    dn_check_equal(dn_world_lost(world), 1);
    dn_world_post(world, 1, 1);
    for (int k = 0; k < victim; k++) {
        dn_world_await(world, k, 1, 1);
    }
    dn_check_equal(told, 1);
    dn_close(world->port);
}

static void a_death_is_heard_of_by_polls_alone(dn_world_t *world)
{
    learn_of_death(world, 1);
}

static void a_death_among_many_is_heard_of_by_polls_alone(dn_world_t *world)
{
    learn_of_death(world, 1);
}

static void the_death_of_who_came_by_itself_is_heard_of(dn_world_t *world)
{
    learn_of_death(world, 0);
}

/** With threads, by whichever of them polls. */
static void a_death_is_heard_of_among_threads(dn_world_t *world)
{
    world->job.threads = 1;
    learn_of_death(world, 1);
}

/** A port that was closed in order is no news, nor the end of its process. */
static void who_leaves_in_order_is_no_news(dn_world_t *world)
{
    dn_world_start(world);
    dn_check_equal(dn_lost_set(world->port, DN_WORLD_CHAN, count_news, NULL), DN_OK);
    dn_world_barrier(world);
    if (1 == world->rank) {
        dn_close(world->port);
        world->port = NULL;
        dn_world_post(world, 0, 1);
        return;
    }
    dn_world_sleep(world, 1, 0, 1);
    const uint64_t before = now_ns();
    while (now_ns() - before < 1200 * MS) {
        dn_progress(world->port);
    }
    dn_check_equal(told, 0);
    dn_check_equal(dn_peer_check(world->peer[1]), DN_ERR_UNREACH);
    dn_check_equal(told, 1);
    dn_close(world->port);
}

/** A process that is stopped lives, for as long as it is stopped. */
static void who_is_stopped_is_not_dead(dn_world_t *world)
{
    dn_world_listen(world, dn_world_hear);
    dn_world_connect(world);
    if (1 == world->rank) {
        raise(SIGSTOP);
        dn_world_send(world, world->peer[0], DN_WORLD_CHAN, 0, "here", 4);
    } else {
        const uint64_t before = now_ns();
        while (now_ns() - before < 1200 * MS) {
            dn_progress(world->port);
        }
        dn_check_equal(dn_world_lost(world), 0);
        dn_check_equal(kill((pid_t) world->board->seat[1].os_pid, SIGCONT), 0);
        dn_world_hear_until(world, 1);
    }
    dn_world_stop(world);
}

static const dn_world_test_t tests[] = {
    {"a_sender_that_came_without_files_is_heard_later", 2, a_sender_that_came_without_files_is_heard_later},
    {"a_sender_that_came_without_memory_is_heard_later", 2, a_sender_that_came_without_memory_is_heard_later},
    {"a_death_is_heard_of_by_polls_alone", 2, a_death_is_heard_of_by_polls_alone},
    {"a_death_among_many_is_heard_of_by_polls_alone", 12, a_death_among_many_is_heard_of_by_polls_alone},
    {"the_death_of_who_came_by_itself_is_heard_of", 3, the_death_of_who_came_by_itself_is_heard_of},
    {"a_death_is_heard_of_among_threads", 3, a_death_is_heard_of_among_threads},
    {"who_leaves_in_order_is_no_news", 2, who_leaves_in_order_is_no_news},
    {"who_is_stopped_is_not_dead", 2, who_is_stopped_is_not_dead},
};

/** usage: shm_watch [TEST] */
int main(int argc, char **argv)
{
    const dn_variant_t variant = {.file = "shm_watch", .device = "shm", .cma = 1, .backing = "auto"};
    return dn_world_run_tests(tests, sizeof(tests) / sizeof(tests[0]), &variant, argv[1]);
}
