/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_helper.c
 * Progress for windows whose messages are served here, and a helper thread that makes progress while the program computes.
 *
 * The thread receives from the port, and then calls the progress function of the windows. So it also takes messages of PML, BTL and MTL from
 * the port: with its MCA variable, all components lock as under MPI_THREAD_MULTIPLE. The thread polls while there is something to do, and
 * sleeps longer and longer while there is nothing. So on a core that both share, the program gets the time.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "ompi/runtime/mpiruntime.h"

/** Polls in vain before the thread sleeps: the next request of an origin comes soon after the answer to the last one. */
#define POLLS 200u

/** The first and the longest sleep. An origin waits for the longest sleep at most once. 1000 wakings a second take about 0.3 % of a core. */
#define SLEEP_MIN_NS 20000
#define SLEEP_MAX_NS 1000000

static struct {
    pthread_t thread;
    bool runs;
    uint32_t stop; /**< not 0: the thread has to end */
} helper;

static int windows; /**< number of windows for which progress is made; under windows_lock */
static opal_mutex_t windows_lock = OPAL_MUTEX_STATIC_INIT;

/** dn_ompi_progress_fn_t. It is added while there are windows that are served here. */
static int helper_advance(void)
{
    return dn_rma_advance(&mca_osc_dimmnet_component.rma);
}

/** Wait for something to do. @param[in,out] idle  Polls in vain, back to back. */
static void helper_rest(unsigned *idle)
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
        *idle = POLLS + 8; /* this gives the longest sleep again, and the count does not overflow */
    }
    (void) nanosleep(&time, NULL);
}

/** Does the thread go on? Once MPI_Finalize has begun it does not: all that the thread uses is closed then. A program that finalizes with
 * windows serves them itself. */
static bool is_wanted(void)
{
    /* Pairs with the store in helper_stop(). No data is passed by this word, so no order is needed. */
    return 0 == dn_load_relaxed(&helper.stop) && OMPI_MPI_STATE_FINALIZE_STARTED > ompi_mpi_state;
}

static void *helper_main(void *arg)
{
    unsigned idle = 0;

    while (is_wanted()) {
        /* Messages come by the port. */
        const int events = dn_progress(mca_osc_dimmnet_component.port);

        if (0 < events + helper_advance()) {
            idle = 0;
        } else {
            helper_rest(&idle);
        }
    }
    return arg;
}

static void helper_start(void)
{
    sigset_t all, before;

    if (!dn_ompi_helper_thread()) {
        return;
    }
    helper.stop = 0;
    /* The thread takes no signals: the program's own threads do. */
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&helper.thread, NULL, helper_main, NULL);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    helper.runs = 0 == error;
    if (0 != error) {
        dn_ompi_help(DN_OMPI_TEXT_NO_HELPER, opal_process_info.nodename, strerror(error));
    }
}

static void helper_stop(void)
{
    if (helper.runs) {
        dn_store_relaxed(&helper.stop, 1);
        (void) pthread_join(helper.thread, NULL);
        helper.runs = false;
    }
}

void ompi_osc_dimmnet_count_windows(int more)
{
    opal_mutex_lock(&windows_lock);
    const int before = windows;
    if (0 == before && 0 > more) {
        /* The window is freed after the component was closed, where all windows were counted out. */
        opal_mutex_unlock(&windows_lock);
        return;
    }
    windows += more;
    dn_ompi_serve(more);
    if (0 == before) {
        dn_ompi_progress_add(helper_advance, DN_OMPI_CARRIES_NONE);
        helper_start();
    } else if (0 == windows) {
        helper_stop();
        dn_ompi_progress_remove(helper_advance);
    }
    opal_mutex_unlock(&windows_lock);
}

/** @name The functions of dn_rma_config_t */
/** @{ */
static void wait_more(uint64_t *state)
{
    _Static_assert(sizeof(dn_ompi_wait_t) <= DN_RMA_WAIT_WORDS * sizeof(uint64_t), "a wait has room");
    (void) dn_ompi_wait((dn_ompi_wait_t *) (void *) state, 0);
}

static int find_element(int32_t number, uint32_t op, dn_element_t *element)
{
    ompi_datatype_t *type = (ompi_datatype_t *) PMPI_Type_f2c(number);

    if (NULL == type || MPI_DATATYPE_NULL == type || !ompi_datatype_is_predefined(type)
        || !ompi_osc_dimmnet_is_defined(op, type)) {
        return 0;
    }
    *element = ompi_osc_dimmnet_element(type);
    return 1;
}

static void helper_refused(const char *why)
{
    dn_ompi_help(DN_OMPI_TEXT_BAD_REQUEST, opal_process_info.nodename, why);
}

static void __attribute__((noreturn)) no_memory(void)
{
    dn_ompi_help(DN_OMPI_TEXT_NO_WINDOW_MEMORY, opal_process_info.nodename);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
    abort();
}
/** @} */

int ompi_osc_dimmnet_rma_open(void)
{
    const dn_rma_config_t config = {.threads = opal_using_threads() || dn_ompi_threads(),
                                    .wait = wait_more,
                                    .element = find_element,
                                    .find = ompi_osc_dimmnet_own_region,
                                    .refused = helper_refused,
                                    .no_memory = no_memory};

    return osc_error(
        dn_rma_open(&mca_osc_dimmnet_component.rma, mca_osc_dimmnet_component.port, DN_CHAN_OSC, &config));
}

void ompi_osc_dimmnet_rma_close(void)
{
    if (0 != windows) {
        /* The program has not freed all windows. Nothing may drive the engine from now on. */
        ompi_osc_dimmnet_count_windows(-windows);
    }
    dn_rma_close(&mca_osc_dimmnet_component.rma);
}
