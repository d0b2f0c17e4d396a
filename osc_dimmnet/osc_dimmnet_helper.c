/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_helper.c
 * A thread that makes progress for windows whose messages are served here, while the program computes.
 *
 * It does what the progress function of the windows does, so also what BTL and MTL have in the port: with its MCA variable they
 * all lock as under MPI_THREAD_MULTIPLE. It polls while there is something to do, and sleeps longer and longer
 * while there is nothing: a core that it shares with the program is the program's.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "ompi/runtime/mpiruntime.h"

/** Polls in vain before it sleeps: the next request of an origin comes soon after the answer to the last. */
#define POLLS 200u

/** First and longest sleep. An origin waits for the longest once; 1000 wakings a second are about 0.3 % of a core. */
#define SLEEP_MIN_NS 20000
#define SLEEP_MAX_NS 1000000

static struct {
    pthread_t thread;
    bool runs;
    uint32_t stop; /**< not 0: it has to end */
    int (*progress)(void);
} helper;

/** Wait for something to do. @param[in,out] idle  Polls in vain; 0 after one that was not. */
static void rest(unsigned *idle)
{
    struct timespec time = {.tv_nsec = SLEEP_MIN_NS};

    if (POLLS > ++*idle) {
        sched_yield();
        return;
    }
    for (unsigned i = POLLS; i < *idle && SLEEP_MAX_NS > time.tv_nsec; i++) {
        time.tv_nsec *= 2;
    }
    if (SLEEP_MAX_NS < time.tv_nsec) {
        time.tv_nsec = SLEEP_MAX_NS;
        *idle = POLLS + 8; /* long enough, and no overflow */
    }
    (void) nanosleep(&time, NULL);
}

/** A program that finalizes with windows serves them by itself, while all that this thread uses goes away. */
static bool is_wanted(void)
{
    /* Pairs with the store in ompi_osc_dimmnet_helper_stop(); nothing is handed over by it. */
    return 0 == __atomic_load_n(&helper.stop, __ATOMIC_RELAXED)
           && OMPI_MPI_STATE_FINALIZE_STARTED > ompi_mpi_state;
}

static void *help(void *arg)
{
    unsigned idle = 0;

    while (is_wanted()) {
        if (0 < helper.progress()) {
            idle = 0;
        } else {
            rest(&idle);
        }
    }
    return arg;
}

void ompi_osc_dimmnet_helper_start(int (*progress)(void))
{
    sigset_t all, before;

    if (!dn_ompi_helper_thread()) {
        return;
    }
    helper.stop = 0;
    helper.progress = progress;
    /* Signals are the program's, in its own threads. */
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&helper.thread, NULL, help, NULL);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    helper.runs = 0 == error;
    if (0 != error) {
        dn_ompi_help("no-helper", opal_process_info.nodename, strerror(error));
    }
}

void ompi_osc_dimmnet_helper_stop(void)
{
    if (helper.runs) {
        __atomic_store_n(&helper.stop, 1, __ATOMIC_RELAXED);
        (void) pthread_join(helper.thread, NULL);
        helper.runs = false;
    }
}
