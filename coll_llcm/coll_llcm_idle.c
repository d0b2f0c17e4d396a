/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_idle.c
 * What a process does while it waits in a collective: it looks after the messages of others, and gives its core away.
 *
 * Who sleeps is woken by lines and counters, not by messages: they are looked for between two sleeps. Where one has come more
 * follow, so that it does not sleep for some turns then, and looks at all of them. opal_progress() does not say
 * whether there was something, but the transports do.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/pml.h"

/** Polls after which the core is given away while another host is waited for. Mostly the others of this one have come by
 * then and wait for us: a barrier of 2 hosts x 2 ranks takes 15 us, and 35 us where they get a turn each time
 * (perf/compare_hosts). */
#define FAR_YIELD_POLLS 2000

/** Turns between two looks at messages, when none has come for as many turns as below. */
#define TURNS 8
/** Turns after a message at each of which there is such a look. */
#define LIVELY 64

void coll_llcm_look_at_cores(void)
{
    coll_llcm.sleeps = dn_ompi_yields() || 0 != dn_oversubscribed(coll_llcm.port);
    coll_llcm.oversubscribed = coll_llcm.sleeps || ompi_mpi_thread_multiple;
}

/** @name Transports */
/** @{ */
/** The lock is held. */
static void note_transport(mca_btl_base_component_progress_fn_t progress)
{
    const unsigned count = coll_llcm.transports;

    for (unsigned i = 0; i < count; i++) {
        if (progress == coll_llcm.transport[i]) {
            return;
        }
    }
    if (NULL == progress || COLL_LLCM_TRANSPORTS == count) {
        coll_llcm.silent = true;
        return;
    }
    coll_llcm.transport[count] = progress;
    /* Pairs with the acquire in hear(). */
    __atomic_store_n(&coll_llcm.transports, count + 1, __ATOMIC_RELEASE);
}

static void note_transports(const mca_bml_base_btl_array_t *array)
{
    for (size_t i = 0; i < array->arr_size; i++) {
        note_transport(array->bml_btls[i].btl->btl_component->btl_progress);
    }
}

void coll_llcm_look_at_transports(ompi_communicator_t *comm)
{
    opal_mutex_lock(&coll_llcm.lock);
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        const mca_bml_base_endpoint_t *endpoint =
            rank == ompi_comm_rank(comm)
                ? NULL
                : ompi_comm_peer_lookup(comm, rank)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
        if (NULL != endpoint) {
            note_transports(&endpoint->btl_eager);
            note_transports(&endpoint->btl_send);
            note_transports(&endpoint->btl_rdma);
        }
    }
    opal_mutex_unlock(&coll_llcm.lock);
}

/** @return how many messages came by transports that say so. */
static int hear(void)
{
    const unsigned count = __atomic_load_n(&coll_llcm.transports, __ATOMIC_ACQUIRE);
    /* pml/ob1 leaves it to its transports. */
    int heard = NULL != mca_pml.pml_progress ? mca_pml.pml_progress() : 0;

    for (unsigned i = 0; i < count; i++) {
        heard += coll_llcm.transport[i]();
    }
    return heard;
}
/** @} */

/** Look after messages, at each turn or at some. */
static void attend(coll_llcm_pause_t *pause, bool tired, unsigned polls)
{
    if (!tired && !coll_llcm.silent && 0 == pause->lively && 0 != polls % TURNS) {
        return;
    }
    int heard = hear();
    if (tired) {
        heard += dn_progress(coll_llcm.port);
    }
    if (0 < heard) {
        dn_nap_restart(&pause->nap);
        pause->lively = LIVELY;
    } else if (0 != pause->lively) {
        pause->lively--;
    }
    opal_progress();
}

/** Give the core away. @return whether the process has slept. */
static bool doze(coll_llcm_pause_t *pause, bool near, bool rung, unsigned polls, uint64_t steps)
{
    const uint32_t yields = rung && coll_llcm.sleeps ? dn_ompi_params.coll.sleep_yields : UINT32_MAX;

    attend(pause, 0 != dn_nap_is_due(&pause->nap, yields), polls);
    if (!near || coll_llcm.silent || NULL == coll_llcm.bell) {
        /* Lines of other hosts come by dn_progress(), messages unheard, and some devices have no bell. */
        dn_nap_keep_short(&pause->nap);
    }
    if (DN_NAP_LOOK == dn_nap(&pause->nap, coll_llcm.bell, steps, yields)) {
        return false;
    }
    (void) atomic_fetch_add_explicit(&coll_llcm.naps, 1, memory_order_relaxed);
    return true;
}

bool coll_llcm_idle(coll_llcm_pause_t *pause, bool near, bool rung, unsigned polls, uint64_t steps)
{
    const unsigned yield_polls = dn_ompi_params.coll.yield_polls;

    if (!near) {
        (void) dn_progress(coll_llcm.port);
    }
    if (coll_llcm.oversubscribed) {
        return polls >= (near ? yield_polls : FAR_YIELD_POLLS) && doze(pause, near, rung, polls, steps);
    }
    if (0 == polls % dn_ompi_params.coll.spin_polls) {
        opal_progress();
    }
    return false;
}
