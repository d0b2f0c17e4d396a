/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A process that is gone takes its own pages with it, and no others. A thread that accesses another page waits until a thread of the same
 * process has sent it or fetched it, and goes on.
 *
 * The end of a transfer is where the access comes: it waits until the access waits.
 */
#include "dn_config.h"

#include <pthread.h>
#include <sched.h>

#include "../device/dn_world.h"
#include "dn_atomic.h"
#include "dn_dsm.h"
#include "dn_dsm_int.h"
#include "folder.h"
#include "sanitizers.h"

enum { HERE, LOST, HOME };

static dn_dsm_t *dsm;
static volatile uint64_t *own, *other;             /**< words of pages that are at home with HERE and HOME */
static __thread volatile bool transfers, accesses; /**< what this thread does; a signal handler reads it */
static uint32_t ends;  /**< the other thread is at the end of a transfer; atomic */
static uint32_t waits; /**< the thread that accesses waits; atomic */

dn_status_t __real_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
void __real_dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags);
void __wrap_dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags);

dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port)
{
    const dn_status_t status = __real_dn_dsm_op_end(op, port);

    if (transfers) {
        dn_store_release_u32(&ends, 1);
        while (0 == dn_load_acquire_u32(&waits)) {
            sched_yield();
        }
    }
    return status;
}

void __wrap_dn_dsm_pause(dn_port_t *port, dn_wait_t *wait, unsigned flags)
{
    __real_dn_dsm_pause(port, wait, flags);
    if (accesses) {
        dn_store_release_u32(&waits, 1);
    }
}

/** Access a word while another thread sends or fetches its page. @return the word. */
static uint64_t access_beside(void *(*transfer)(void *), volatile uint64_t *word)
{
    pthread_t thread;

    dn_store_release_u32(&ends, 0);
    dn_store_release_u32(&waits, 0);
    dn_check_equal(pthread_create(&thread, NULL, transfer, NULL), 0);
    while (0 == dn_load_acquire_u32(&ends)) {
        sched_yield();
    }
    accesses = true;
    const uint64_t value = ++*word;
    accesses = false;
    dn_check_equal(pthread_join(thread, NULL), 0);
    return value;
}

static void *send(void *arg)
{
    (void) arg;
    transfers = true;
    dn_check_equal(dn_dsm_release(dsm), DN_OK);
    return NULL;
}

static void *fetch(void *arg)
{
    (void) arg;
    transfers = true;
    /* The thread that waits for this page may go on, and count it up, before this thread reads it. */
    const uint64_t value = *other;
    dn_check_equal(8 == value ? 7 : value, 7);
    return NULL;
}

/** What the process does that goes on. */
static void go_on(dn_world_t *world)
{
    dn_test_log_expect();
    for (int r = LOST; r < world->size; r++) {
        dn_world_sleep(world, r, 0, 1);
    }
    dn_world_post(world, 0, 1);
    while (DN_OK == dn_dsm_is_whole(dsm)) {
        (void) dn_progress(dsm->port);
    }
    *own = 2;
    dn_check_equal(access_beside(send, own), 3);
    dn_check_equal(access_beside(fetch, other), 8);
    dn_world_post(world, 0, 2);
}

static void test(dn_world_t *world)
{
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    void *at;

    config.share = "never";
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dn_check_equal(dn_dsm_alloc(dsm, sizeof(*own), DN_DSM_HOME_RANK, HERE, &at), DN_OK);
    own = at;
    dn_check_equal(dn_dsm_alloc(dsm, sizeof(*other), DN_DSM_HOME_RANK, HOME, &at), DN_OK);
    other = at;
    if (HOME == world->rank) {
        *other = 7;
        /* The barrier tells of this copy. So HERE notices its own writes from then on, and sends them. */
        dn_check_equal(*own, 0);
    }
    dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    dn_test_log_expect();
    if (HERE == world->rank) {
        go_on(world);
    } else {
        dn_world_post(world, 0, 1);
        dn_world_sleep(world, HERE, 0, 1);
    }
    if (LOST == world->rank) {
        dn_world_die(world);
    } else if (HOME == world->rank) {
        dn_world_sleep(world, HERE, 0, 2);
    }
    (void) dn_dsm_close(dsm);
}

int main(void)
{
    static const dn_variant_t shm = {.file = "", .device = "shm"};

    if (0 != folder_make()) {
        return 99;
    }
    const int failed = dn_world_run("dn_dsm_loss_leaves_other_pages_alone", &shm, 3, test);
    folder_remove();
    return failed;
}
