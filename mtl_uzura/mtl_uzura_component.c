/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_component.c
 * The component: MCA variables, initialisation, progress.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include <sched.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

/** Bytes from which a message is announced: one copy by the kernel, shared by both ends, is faster from here on. */
#define EAGER_LIMIT 12288

/** Bytes from which it is as fast that the sender writes a message as that both ends fetch it. */
#define ANNOUNCE_MIN (256 << 10)

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_query(mca_base_module_t **module, int *priority);
static mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads);

mca_mtl_base_component_2_0_0_t mca_mtl_uzura_component = {
    .mtl_version = {MCA_MTL_BASE_VERSION_2_0_0, .mca_component_name = "uzura",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_open_component = component_open, .mca_close_component = component_close,
                    .mca_query_component = component_query,
                    .mca_register_component_params = component_register},
    .mtl_data = {MCA_BASE_METADATA_PARAM_NONE},
    .mtl_init = component_init,
};

dn_ompi_number_t mtl_uzura_number[MTL_UZURA_NUMBERS] = {
    [MTL_UZURA_PRIORITY] =
        {.name = "priority",
         .help = "Priority of this component, and of pml/cm with it, where all processes of the job run "
                 "on one host, or common_dimmnet_devices names a device that reaches other hosts; pml/ob1 "
                 "has 20",
         .level = OPAL_INFO_LVL_5,
         .standard = 10,
         .high = 100,
         .multiple = 1},
    [MTL_UZURA_EAGER_LIMIT] = {.name = "eager_limit",
                               .help =
                                   "Bytes of data that are sent at once; longer messages are announced first",
                               .level = OPAL_INFO_LVL_4,
                               .standard = EAGER_LIMIT,
                               .high = 1 << 20,
                               .multiple = 1},
    [MTL_UZURA_KEPT_LIMIT] =
        {.name = "unexpected_limit",
         .help = "Bytes from one process that may wait to be received; beyond, all its messages are "
                 "announced and fetched when they are received",
         .level = OPAL_INFO_LVL_5,
         .standard = 16 << 20,
         .low = 64 << 10,
         .high = 1 << 30,
         .multiple = 1},
    [MTL_UZURA_SPIN_POLLS] =
        {.name = "spin_polls",
         .help = "Polls of the source inside a blocking receive before Open MPI's own waiting",
         .level = OPAL_INFO_LVL_9,
         .standard = 10000,
         .high = 1 << 30,
         .multiple = 1},
    [MTL_UZURA_ANNOUNCE_MIN] = {.name = "announce_min",
                                .help = "Bytes above which a receive that names its source is announced to "
                                        "it, so that the message can be "
                                        "written there at once; 0: never, as with MPI_THREAD_MULTIPLE",
                                .level = OPAL_INFO_LVL_5,
                                .standard = ANNOUNCE_MIN,
                                .high = 1 << 30,
                                .multiple = 1},
    [MTL_UZURA_STREAM] =
        {.name = "stream",
         .help =
             "Whether long messages that lie together in memory come in pieces through the sender's stage, "
             "rather than by one copy that the kernel makes; 0: never, 1: from whom this has been faster so "
             "far, 2: always",
         .level = OPAL_INFO_LVL_5,
         .standard = DN_PACE_STREAM_AUTO,
         .high = DN_PACE_STREAM_ALWAYS,
         .multiple = 1},
    [MTL_UZURA_YIELD_POLLS] =
        {.name = "yield_polls",
         .help = "Polls without a message after which a process gives its core to others, when "
                 "there are more processes than cores",
         .level = OPAL_INFO_LVL_5,
         .standard = 10,
         .high = 1 << 30,
         .multiple = 1},
};

static int component_register(void)
{
    mca_base_component_t *version = &mca_mtl_uzura_component.mtl_version;
    int rc;

    (void) mca_base_var_group_component_register(version, "dimmnet: two-sided messages by polled memory");
    rc = dn_ompi_register(version);
    for (int i = 0; OPAL_SUCCESS == rc && i < MTL_UZURA_NUMBERS; i++) {
        dn_ompi_number_register(version, &mtl_uzura_number[i]);
    }
    return rc;
}

static int component_open(void)
{
    OBJ_CONSTRUCT(&mtl_uzura.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mtl_uzura.pump_lock, opal_mutex_t);
    return OPAL_SUCCESS;
}

static int component_close(void)
{
    OBJ_DESTRUCT(&mtl_uzura.pump_lock);
    OBJ_DESTRUCT(&mtl_uzura.lock);
    return OPAL_SUCCESS;
}

/**
 * An MTL cannot leave a process to another one: it takes the job where its list of devices reaches all processes. All
 * of them have to say the same here, so only that is asked which they all know.
 */
static int component_query(mca_base_module_t **module, int *priority)
{
    const bool all_here =
        (uint32_t) ompi_process_info.num_procs == (uint32_t) ompi_process_info.num_local_peers + 1;

    *priority = all_here || dn_ompi_leaves_host() ? (int) mtl_uzura_number[MTL_UZURA_PRIORITY].value : 0;
    *module = (mca_base_module_t *) &mtl_uzura.super;
    return OPAL_SUCCESS;
}

/** Does a request of our own here wait for an answer from it? */
static bool waits_for(const uzura_endpoint_t *endpoint)
{
    const uzura_handles_t *handles = &mtl_uzura.handles;
    bool waits = false;

    uzura_lock();
    for (uint32_t i = 0; i < handles->count; i++) {
        const uzura_request_t *request = handles->slot[i].request;

        waits = waits || (NULL != request && endpoint == request->endpoint);
    }
    uzura_unlock();
    return waits;
}

/** dn_lost_fn_t of DN_CHAN_MTL. */
static void lost(dn_peer_t *peer, void *arg)
{
    uzura_endpoint_t *endpoint = dn_peer_user(peer, DN_CHAN_MTL);

    if (NULL != endpoint
        && (dn_ompi_loss_matters(NULL == endpoint->proc ? NULL : &endpoint->proc->super)
            || waits_for(endpoint))) {
        mtl_uzura_lost(endpoint);
    }
}

static mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads)
{
    uzura_module_t *module = &mtl_uzura;
    int rc = OPAL_SUCCESS;

    for (int i = 0; i < MTL_UZURA_NUMBERS; i++) {
        if (mtl_uzura_number[i].refused) {
            rc = OPAL_ERR_BAD_PARAM;
        }
    }
    if (OPAL_SUCCESS == rc && 0 != dn_match_init(&module->match)) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (OPAL_SUCCESS == rc) {
        rc = dn_ompi_open(&module->port);
        if (OPAL_SUCCESS != rc) {
            dn_match_fini(&module->match);
        }
    }
    if (OPAL_SUCCESS != rc) {
        opal_output_verbose(1, ompi_mtl_base_framework.framework_output, "mtl:uzura: withdraws: %s",
                            opal_strerror(rc));
        return NULL;
    }
    /* Others may send as soon as they are through MPI_Init: what they send stays in the ring until here. */
    if (DN_OK != dn_handler_set(module->port, DN_CHAN_MTL, mtl_uzura_receive, NULL)) {
        dn_match_fini(&module->match);
        module->port = NULL;
        dn_ompi_close();
        return NULL;
    }
    (void) dn_lost_set(module->port, DN_CHAN_MTL, lost, NULL);
    opal_progress_register(mtl_uzura_progress);
    module->threads = ompi_mpi_thread_multiple || dn_ompi_helper_thread();
    mtl_uzura_look_at_cores();
    return &module->super;
}

void mtl_uzura_look_at_cores(void)
{
    mtl_uzura.oversubscribed =
        ompi_mpi_thread_multiple || dn_ompi_yields() || 0 != dn_oversubscribed(mtl_uzura.port);
}

void mtl_uzura_busy(uzura_request_t *request)
{
    uzura_lock();
    uzura_put_last(&mtl_uzura.busy, &mtl_uzura.busy_last, request);
    uzura_unlock();
}

/** @return true: the request waits no more. */
static bool go_on(uzura_request_t *request, int *events)
{
    switch (request->state) {
    case UZURA_SENDS:
        return mtl_uzura_send_pieces(request, events);
    case UZURA_PUSH_STARTS:
    case UZURA_TELLS:
        return mtl_uzura_push_again(request);
    default:
        return mtl_uzura_recv_again(request);
    }
}

/** Go through the requests that wait for room or send in pieces. */
static int pump_busy(void)
{
    uzura_request_t *left = NULL;
    uzura_request_t *last = NULL;
    int events = 0;

    uzura_lock();
    uzura_request_t *request = mtl_uzura.busy;
    mtl_uzura.busy = NULL;
    uzura_unlock();
    while (NULL != request) {
        uzura_request_t *next = request->next;

        if (go_on(request, &events)) {
            events++;
        } else {
            uzura_put_last(&left, &last, request);
        }
        request = next;
    }
    if (NULL != left) {
        /* Before those that have come meanwhile. */
        uzura_lock();
        last->next = mtl_uzura.busy;
        if (NULL == mtl_uzura.busy) {
            mtl_uzura.busy_last = last;
        }
        mtl_uzura.busy = left;
        uzura_unlock();
    }
    return events;
}

/** Tell a sender to hold back, or to go on. @return false: no room now. */
static bool tell_hold(uzura_endpoint_t *endpoint)
{
    endpoint->hold_due = false;
    if (DN_ERR_AGAIN
        == dn_botf(endpoint->peer, DN_CHAN_MTL, endpoint->holding ? UZURA_HOLD : UZURA_RELEASE, NULL, 0, NULL,
                   0)) {
        endpoint->hold_due = true;
    }
    return !endpoint->hold_due;
}

/** Go through the endpoints whose sends wait. */
static int pump_endpoints(void)
{
    bool queued = false;
    int events = 0;

    mtl_uzura.queued = false;
    for (uzura_endpoint_t *endpoint = mtl_uzura.endpoints; NULL != endpoint; endpoint = endpoint->next) {
        if (endpoint->hold_due && tell_hold(endpoint)) {
            events++;
        }
        events += mtl_uzura_send_waiting(endpoint);
        queued = queued || endpoint->hold_due || NULL != endpoint->first;
    }
    if (queued) {
        mtl_uzura.queued = true;
    }
    return events;
}

/** Give the core away after some idle polls. The counter is a hint: threads may lose a count. */
static void __attribute__((noinline)) share_core(int events)
{
    const unsigned polls = atomic_load_explicit(&mtl_uzura.idle_polls, memory_order_relaxed);

    if (0 < events) {
        atomic_store_explicit(&mtl_uzura.idle_polls, 0, memory_order_relaxed);
    } else if (polls < mtl_uzura_number[MTL_UZURA_YIELD_POLLS].value) {
        atomic_store_explicit(&mtl_uzura.idle_polls, polls + 1, memory_order_relaxed);
    } else {
        sched_yield();
    }
}

int mtl_uzura_progress(void)
{
    uzura_module_t *module = &mtl_uzura;
    int events = dn_progress(module->port);

    if (OPAL_UNLIKELY(module->queued || NULL != module->busy)
        && 0 == opal_mutex_trylock(&module->pump_lock)) {
        if (module->queued) {
            events += pump_endpoints();
        }
        events += pump_busy();
        opal_mutex_unlock(&module->pump_lock);
    }
    if (module->oversubscribed) {
        share_core(events);
    }
    return events;
}
