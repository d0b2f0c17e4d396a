/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A page is being fetched by one thread while another one acquires all the time. What was PULLed ahead of the first acquire is PULLed
 * again; the next acquire waits for that. So the page comes, and what comes before an acquire is seen after it. A note of a page that is not
 * being fetched waits for nothing.
 *
 * The ends of the PULLs are where the acquires come: each end waits until its acquire has ended, or waits itself.
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

/** PULLs that get an acquire at their end. Without a bound there would be as many. */
enum { ENDS = 5 };
/** A page that nobody has. */
enum { ANOTHER = 1 };

static dn_world_t *here;
static dn_dsm_t *dsm;
static __thread bool touches; /**< this thread does, and its PULLs count */
static unsigned ends;         /**< of PULLs of the touch */
static uint32_t wanted;       /**< acquires, by ends of PULLs; atomic */
static uint32_t acquired;     /**< that have ended; atomic */
static uint32_t waits;        /**< acquires that have waited; atomic */

dn_status_t __real_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port);
void __real_dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count);
void __wrap_dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count);

dn_status_t __wrap_dn_dsm_op_end(dn_dsm_op_t *op, dn_port_t *port)
{
    const dn_status_t status = __real_dn_dsm_op_end(op, port);

    /* One of each home is waited for, whether it was started or not. */
    if (touches && NULL != op->comp.fn && ENDS > ends) {
        ends++;
        if (0 < dsm->again) {
            dn_dsm_page_stale(dsm, ANOTHER);
        }
        /* The home writes the next value, and releases. */
        dn_world_post(here, 0, ends);
        dn_world_sleep(here, 0, 0, ends);
        dn_store_release_u32(&wanted, ends);
        while (dn_load_acquire_u32(&acquired) < ends && 0 == dn_load_acquire_u32(&waits)) {
            sched_yield();
        }
    }
    return status;
}

void __wrap_dn_dsm_pause_until_none(dn_port_t *port, pthread_mutex_t *lock, const uint32_t *count)
{
    if (0 != *count) {
        /* The thread that touches would wait for itself. */
        dn_check(!touches);
        (void) dn_fetch_add_acq_rel(&waits, 1);
    }
    __real_dn_dsm_pause_until_none(port, lock, count);
}

/** As often as it is wanted. */
static void *acquire(void *arg)
{
    (void) arg;
    while (ENDS > acquired) {
        while (dn_load_acquire_u32(&wanted) <= acquired) {
            sched_yield();
        }
        dn_check_equal(dn_dsm_acquire(dsm), DN_OK);
        dn_store_release_u32(&acquired, acquired + 1);
    }
    return NULL;
}

/** The page's home writes a value for each end of a PULL. */
static void write_for_each(volatile uint64_t *word)
{
    for (uint64_t i = 1; i <= ENDS; i++) {
        dn_world_sleep(here, 1, 0, i);
        *word = i;
        dn_check_equal(dn_dsm_release(dsm), DN_OK);
        dn_world_post(here, 0, i);
    }
}

/** Another process touches the page. */
static void touch(void *at)
{
    pthread_t thread;

    dn_check_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    touches = true;
    dn_check_equal(dn_dsm_touch(dsm, at, sizeof(uint64_t), 0), DN_OK);
    touches = false;
    dn_check_equal(ends, 2);
    dn_world_post(here, 0, ENDS);
    dn_world_sleep(here, 0, 0, ENDS);
    dn_store_release_u32(&wanted, ENDS);
    pthread_join(thread, NULL);
    dn_check_equal(*(volatile uint64_t *) at, ENDS);
}

static void test(dn_world_t *world)
{
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    void *at;

    here = world;
    config.share = "never";
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dn_check_equal(dn_dsm_alloc(dsm, sizeof(uint64_t), DN_DSM_HOME_RANK, 0, &at), DN_OK);
    if (0 == world->rank) {
        write_for_each(at);
    } else {
        touch(at);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

int main(void)
{
    static const dn_variant_t shm = {.file = "", .device = "shm"};

    if (0 != folder_make()) {
        return 99;
    }
    const int failed = dn_world_run("dn_dsm_page_is_fetched_twice_at_most", &shm, 2, test);
    folder_remove();
    return failed;
}
