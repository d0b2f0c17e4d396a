/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file btl_dimmnet_component.c
 * The component: MCA variables, performance variables, initialisation, progress.
 */
#include "dn_config.h"

#include "btl_dimmnet_frag.h"

#include <pthread.h>
#include <stdio.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

/** The lowest message limit that is accepted, in bytes. A message takes the longest header of pml/ob1 and some data. */
#define LIMIT_LOW 256ul

/* In bytes. The default ring carries messages of up to 14328 bytes. At 8 KiB, two copies through the ring move 12 GB/s; one copy
 * by the kernel, after a rendezvous, moves 4 GB/s (perf/dn_bw). */
#define EAGER_LIMIT   12160
#define MAX_SEND_SIZE 12160

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *num_btls, bool progress_threads, bool mpi_threads);

mca_btl_dimmnet_component_t mca_btl_dimmnet_component = {
    .super = {.btl_version = {MCA_BTL_DEFAULT_VERSION("dimmnet"), .mca_open_component = component_open,
                              .mca_close_component = component_close,
                              .mca_register_component_params = component_register},
              .btl_init = component_init},
};

/** The performance variables. They are counters that only grow. */
static const struct {
    const char *name;
    const char *help;
    size_t offset; /**< in dn_counters_t */
} counters[] = {
    {"messages_sent", "Messages sent", offsetof(dn_counters_t, messages_sent)},
    {"bytes_sent", "Bytes sent in messages", offsetof(dn_counters_t, bytes_sent)},
    {"lines_sent", "Lines of 64 bytes written for messages", offsetof(dn_counters_t, lines_sent)},
    {"credit_waits", "Sends put off because the receiver's ring was full",
     offsetof(dn_counters_t, credit_waits)},
    {"mapped_bytes", "Bytes put and got by plain copies on mapped memory",
     offsetof(dn_counters_t, mapped_bytes)},
    {"cma_bytes", "Bytes put and got by process_vm_readv and process_vm_writev",
     offsetof(dn_counters_t, cma_bytes)},
    {"help_bytes", "Bytes copied on behalf of a process that gets them", offsetof(dn_counters_t, help_bytes)},
    {"ring_bytes", "Bytes put and got through the message rings", offsetof(dn_counters_t, ring_bytes)},
    {"dropped", "Messages refused or without a receiver", offsetof(dn_counters_t, dropped)},
    {"resent", "Datagrams whose bytes were sent before, as they were lost or seemed so",
     offsetof(dn_counters_t, resent)},
};

/** mca_base_get_value_fn_t; the context is the index in the table. */
static int counter_read(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const size_t offset = counters[(uintptr_t) pvar->ctx].offset;
    dn_counters_t now;

    dn_ompi_counters(&now);
    now.dropped += mca_btl_dimmnet_component.dropped;
    *(unsigned long long *) value = *(const uint64_t *) (const void *) ((const char *) &now + offset);
    return OPAL_SUCCESS;
}

static void register_counters(void)
{
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        (void) mca_base_component_pvar_register(
            &mca_btl_dimmnet_component.super.btl_version, counters[i].name, counters[i].help, OPAL_INFO_LVL_4,
            MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
            MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
            counter_read, NULL, NULL, (void *) (uintptr_t) i);
    }
}

static void module_defaults(mca_btl_base_module_t *module)
{
    module->btl_eager_limit = EAGER_LIMIT;
    module->btl_rndv_eager_limit = EAGER_LIMIT;
    module->btl_max_send_size = MAX_SEND_SIZE;
    module->btl_rdma_pipeline_send_length = EAGER_LIMIT;
    module->btl_rdma_pipeline_frag_size = SIZE_MAX;
    /* Registration costs nothing, so pml/ob1 need not cut a message that it gets. */
    module->btl_min_rdma_pipeline_size = SIZE_MAX;
    /* Above the exclusivity of btl/vader: where both are listed, this BTL is used. */
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
    module->btl_latency = 0;        /* us; vader says 1 */
    module->btl_bandwidth = 100000; /* Mbit/s; vader says 40000 */
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA;
    module->btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t);
    module->btl_put_limit = SIZE_MAX;
    module->btl_get_limit = SIZE_MAX;
    module->btl_put_alignment = 0;
    module->btl_get_alignment = 0;
    /* The local side of a transfer is never registered. */
    module->btl_put_local_registration_threshold = SIZE_MAX;
    module->btl_get_local_registration_threshold = SIZE_MAX;
}

static int component_register(void)
{
    mca_base_component_t *version = &mca_btl_dimmnet_component.super.btl_version;
    int rc;

    (void) mca_base_var_group_component_register(version,
                                                 "dimmnet: messages by CPU stores into polled memory");
    rc = dn_ompi_register(version, DN_PARAM_BTL);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    module_defaults(&mca_btl_dimmnet.super);
    (void) mca_btl_base_param_register(version, &mca_btl_dimmnet.super);
    register_counters();
    return OPAL_SUCCESS;
}

static int component_open(void)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OBJ_CONSTRUCT(&module->frags_small, opal_free_list_t);
    OBJ_CONSTRUCT(&module->frags_eager, opal_free_list_t);
    OBJ_CONSTRUCT(&module->frags_max, opal_free_list_t);
    OBJ_CONSTRUCT(&module->ops, opal_free_list_t);
    OBJ_CONSTRUCT(&module->registrations, opal_free_list_t);
    OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
    module->lists_made = false;
    return OPAL_SUCCESS;
}

static int component_close(void)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OBJ_DESTRUCT(&module->lock);
    OBJ_DESTRUCT(&module->registrations);
    if (NULL == module->gone) {
        OBJ_DESTRUCT(&module->ops);
    }
    OBJ_DESTRUCT(&module->frags_max);
    OBJ_DESTRUCT(&module->frags_eager);
    OBJ_DESTRUCT(&module->frags_small);
    return OPAL_SUCCESS;
}

/** A limit that the user has set was refused: this BTL reaches no process. */
static bool limits_refused;

/** Compare a limit with the longest message of the port. A default is lowered; a value that the user has set is refused. */
static bool limit_fits(const char *name, size_t *limit, size_t longest)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    int index = mca_base_var_find("opal", "btl", "dimmnet", name);

    if (LIMIT_LOW <= *limit && longest >= *limit) {
        return true;
    }
    if (0 <= index) {
        (void) mca_base_var_get_value(index, NULL, &source, NULL);
    }
    if (MCA_BASE_VAR_SOURCE_DEFAULT == source && LIMIT_LOW <= longest) {
        *limit = longest;
        return true;
    }
    char full_name[64];
    snprintf(full_name, sizeof(full_name), "btl_dimmnet_%s", name);
    dn_ompi_help(DN_OMPI_TEXT_BAD_LIMIT, opal_process_info.nodename, full_name, (unsigned long) *limit,
                 LIMIT_LOW, (unsigned long) longest);
    /* pml/ob1 ends the job if the limit of any BTL is too low, even of a BTL that reaches no process. */
    *limit = longest;
    limits_refused = true;
    return false;
}

bool mca_btl_dimmnet_limits_fit(size_t longest)
{
    mca_btl_base_module_t *module = &mca_btl_dimmnet.super;

    const bool fit = !limits_refused && limit_fits("eager_limit", &module->btl_eager_limit, longest)
                     && limit_fits("rndv_eager_limit", &module->btl_rndv_eager_limit, longest)
                     && limit_fits("max_send_size", &module->btl_max_send_size, longest);

    /* Both modules have the same limits for messages that are made in a fragment: a fragment takes no longer message. */
    mca_btl_dimmnet_long.btl_eager_limit = module->btl_eager_limit;
    mca_btl_dimmnet_long.btl_rndv_eager_limit = module->btl_rndv_eager_limit;
    return fit;
}

static mca_btl_base_module_t **component_init(int *num_btls, bool progress_threads, bool mpi_threads)
{
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;
    mca_btl_base_module_t **modules;
    dn_port_t *port;
    int rc = dn_ompi_params_refused(DN_PARAM_BTL) ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS;

    *num_btls = 0;
    if (OPAL_SUCCESS == rc) {
        rc = dn_ompi_open(DN_OMPI_AHEAD_OF_MODEX, &port);
    }
    if (OPAL_SUCCESS != rc) {
        opal_output_verbose(1, opal_btl_base_framework.framework_output, "btl:dimmnet: withdraws: %s",
                            opal_strerror(rc));
        return NULL;
    }
    modules = malloc(MCA_BTL_DIMMNET_MODULES * sizeof(*modules));
    if (NULL == modules) {
        dn_ompi_close();
        return NULL;
    }
    component->port = port;
    *num_btls = mca_btl_dimmnet_split(modules);
    return modules;
}

void mca_btl_dimmnet_deliver(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *endpoint, unsigned tag,
                             const void *data, size_t len)
{
    if (OPAL_UNLIKELY(!dn_ompi_am_deliver(btl, endpoint, tag, data, len))) {
        mca_btl_dimmnet_component.dropped++;
    }
}

/** Has Open MPI added the process of an endpoint? Then no thread takes mca_bml_lock for it any more. */
static inline bool is_added(mca_btl_base_endpoint_t *endpoint)
{
    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return false;
    }
    if (OPAL_UNLIKELY(!endpoint->added)) {
        endpoint->added = dn_ompi_added(endpoint->proc);
    }
    return endpoint->added;
}

/** dn_handler_fn_t of DN_CHAN_BTL. */
static void component_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;
    mca_btl_base_endpoint_t *endpoint = dn_peer_user(src, DN_CHAN_BTL);
    mca_btl_base_module_t *btl =
        OPAL_LIKELY(NULL != endpoint) ? mca_btl_dimmnet_module_of(endpoint) : mca_btl_dimmnet_module_for(src);

    if (OPAL_LIKELY(!opal_using_threads())) {
        mca_btl_dimmnet_deliver(btl, endpoint, tag, data, len);
        return;
    }
    if (!is_added(endpoint) && mca_btl_dimmnet_put_aside(btl, endpoint, tag, data, len)) {
        return;
    }
    /* A receiver may poll, and come back here in the same thread: the outer value is kept. A thread compares the word only with its own
     * id, so no order is needed. */
    const uintptr_t outer = dn_load_relaxed(&component->receiving);
    dn_store_relaxed(&component->receiving, (uintptr_t) pthread_self());
    mca_btl_dimmnet_deliver(btl, endpoint, tag, data, len);
    dn_store_relaxed(&component->receiving, outer);
}

/** Tell the upper layer that a process is gone. The upper layer may not return. It gets no reason: a help text has said it. */
static void tell_lost(opal_proc_t *proc)
{
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    dn_ompi_say_lost(proc);
    if (NULL != module->error_cb) {
        module->error_cb(&module->super, MCA_BTL_ERROR_FLAGS_FATAL, proc, NULL);
    }
}

/** dn_lost_fn_t of DN_CHAN_BTL. If no upper layer takes errors, no upper layer waits for the process by this BTL. */
static void component_lost(dn_peer_t *peer, void *arg)
{
    mca_btl_base_endpoint_t *endpoint = dn_peer_user(peer, DN_CHAN_BTL);

    if (NULL == mca_btl_dimmnet.error_cb || !dn_ompi_loss_matters(NULL == endpoint ? NULL : endpoint->proc)) {
        return;
    }
    if (NULL == endpoint) {
        tell_lost(NULL);
    } else {
        mca_btl_dimmnet_lost(endpoint);
    }
}

int mca_btl_dimmnet_listen(void)
{
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;
    dn_status_t status = DN_OK;

    if (!component->listening) {
        status = dn_handler_set(component->port, DN_CHAN_BTL, component_receive, NULL);
        component->listening = DN_OK == status;
        (void) dn_lost_set(component->port, DN_CHAN_BTL, component_lost, NULL);
    }
    mca_btl_dimmnet_drive();
    return dn_ompi_status(status);
}

void mca_btl_dimmnet_drive(void)
{
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;
    mca_btl_dimmnet_t *module = &mca_btl_dimmnet;

    OPAL_THREAD_LOCK(&module->lock);
    const bool driven = component->driven;
    component->driven = true;
    OPAL_THREAD_UNLOCK(&module->lock);
    if (!driven) {
        dn_ompi_progress_add(mca_btl_dimmnet_advance, DN_OMPI_CARRIES_SOME);
    }
}

int mca_btl_dimmnet_advance(void)
{
    mca_btl_dimmnet_component_t *component = &mca_btl_dimmnet_component;
    int events = 0;

    if (OPAL_UNLIKELY(NULL != dn_load_relaxed(&mca_btl_dimmnet.aside.first))
        && (uintptr_t) pthread_self() != dn_load_relaxed(&component->receiving)) {
        events += mca_btl_dimmnet_deliver_aside();
    }
    if (OPAL_UNLIKELY(NULL != dn_load_relaxed(&mca_btl_dimmnet.waiting.first))) {
        events += mca_btl_dimmnet_send_waiting();
    }
    if (OPAL_UNLIKELY(NULL != dn_load_relaxed(&mca_btl_dimmnet.ops_waiting.first))) {
        events += mca_btl_dimmnet_ops_waiting();
    }
    return events;
}

int mca_btl_dimmnet_progress(void)
{
    const int events = dn_progress(mca_btl_dimmnet_component.port);

    return events + mca_btl_dimmnet_advance();
}

void mca_btl_dimmnet_lost(mca_btl_base_endpoint_t *endpoint)
{
    if (!dn_load_relaxed(&endpoint->lost)) {
        dn_store_relaxed(&endpoint->lost, true);
        tell_lost(endpoint->proc);
    }
}
