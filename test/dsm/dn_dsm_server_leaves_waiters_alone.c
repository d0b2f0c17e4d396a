/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * While the program waits in a barrier, it makes progress itself, and the server does not. While the program computes, the server does.
 */
#include "dn_config.h"

#include <dn_clock.h>
#include <pthread.h>
#include <time.h>

#include "../device/dn_world.h"
#include "dn_atomic.h"
#include "dn_dsm.h"
#include "folder.h"
#include "sanitizers.h"

/** So many sleeps of the server are looked at together. A program that has lost its core between two looks does not wait. */
enum { SLEEPS = 20, LOOKS = 100 };
#define LIMIT_NS UINT64_C(30000000000)

static __thread bool is_program; /**< this thread is not the server */
static uint32_t looks;           /**< of the server at the network; atomic */
static uint32_t sleeps;          /**< of the server, while it stands back; atomic */

int __real_dn_progress(dn_port_t *port);
int __wrap_dn_progress(dn_port_t *port);
int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);

int __wrap_dn_progress(dn_port_t *port)
{
    if (!is_program) {
        (void) dn_fetch_add_relaxed(&looks, 1);
    }
    return __real_dn_progress(port);
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    if (!is_program) {
        (void) dn_fetch_add_relaxed(&sleeps, 1);
    }
    return __real_nanosleep(pause, left);
}

/** See the server sleep SLEEPS times, without a call of the library. @return its looks meanwhile. */
static uint32_t looks_of_the_server(uint64_t until)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint32_t looked = dn_load_relaxed_u32(&looks), slept = dn_load_relaxed_u32(&sleeps);

    while (SLEEPS > dn_load_relaxed_u32(&sleeps) - slept) {
        dn_check(dn_clock_ns() < until);
        (void) __real_nanosleep(&pause, NULL);
    }
    return dn_load_relaxed_u32(&looks) - looked;
}

/** See the server look at the network so many times, without a call of the library. */
static void see_looks(uint32_t count, uint64_t until)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint32_t looked = dn_load_relaxed_u32(&looks);

    while (count > dn_load_relaxed_u32(&looks) - looked) {
        dn_check(dn_clock_ns() < until);
        (void) __real_nanosleep(&pause, NULL);
    }
}

/** A thread that watches the server while the program is in the barrier, and then has the other process come. */
static void *watch(void *arg)
{
    const uint64_t until = dn_clock_ns() + LIMIT_NS;

    is_program = true;
    while (SLEEPS / 2 < looks_of_the_server(until)) {
    }
    dn_world_post(arg, 0, 1);
    return NULL;
}

static void test(dn_world_t *world)
{
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    dn_dsm_t *dsm;

    is_program = true;
    config.share = "never";
    /* With faults, there is a server. */
    config.settings = "fault=all:slow/3,seed=1";
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    if (0 == world->rank) {
        pthread_t thread;
        dn_check_equal(pthread_create(&thread, NULL, watch, world), 0);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
        pthread_join(thread, NULL);
        see_looks(LOOKS, dn_clock_ns() + LIMIT_NS);
    } else {
        dn_world_sleep(world, 0, 0, 1);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

int main(void)
{
    static const dn_variant_t shm = {.file = "", .device = "shm"};

    if (0 != folder_make()) {
        return 99;
    }
    const int failed = dn_world_run("dn_dsm_server_leaves_waiters_alone", &shm, 2, test);
    folder_remove();
    return failed;
}
