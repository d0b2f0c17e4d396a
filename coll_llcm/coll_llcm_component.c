/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_component.c
 * The component: its MCA variables, the port, lost processes.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init(bool progress_threads, bool mpi_threads);

mca_coll_base_component_t mca_coll_llcm_component = {
    .collm_version = {DN_OMPI_COLL_VERSION, .mca_component_name = "llcm",
                      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                            OMPI_RELEASE_VERSION),
                      .mca_open_component = component_open, .mca_close_component = component_close,
                      .mca_register_component_params = component_register},
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init,
    .collm_comm_query = coll_llcm_comm_query,
};

coll_llcm_t coll_llcm;

/** mca_base_get_value_fn_t */
static int counter_read(const mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value = dn_load_relaxed((uint64_t *) pvar->ctx);
    return OPAL_SUCCESS;
}

static void register_counter(mca_base_component_t *version, const char *name, const char *help,
                             uint64_t *counter)
{
    (void) mca_base_component_pvar_register(
        version, name, help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, counter_read, NULL, NULL, counter);
}

static int component_register(void)
{
    mca_base_component_t *version = &mca_coll_llcm_component.collm_version;
    int rc;

    (void) mca_base_var_group_component_register(version,
                                                 "dimmnet: collectives in polled lines and mapped memory");
    rc = dn_ompi_register(version, DN_PARAM_COLL);
    register_counter(version, "long_bytes", "Bytes of collectives that went through shared memory",
                     &coll_llcm.long_bytes);
    register_counter(version, "exchanges",
                     "Allgathers, gathers and alltoalls that went through polled lines or shared memory",
                     &coll_llcm.exchanges);
    register_counter(version, "nonblocking",
                     "Nonblocking collectives, and starts of persistent ones, that went through polled lines",
                     &coll_llcm.nonblocking.begun);
    register_counter(version, "sleeps", "Times that this process slept in collectives", &coll_llcm.naps);
    return rc;
}

/** The port is opened here, since addresses are exchanged before Open MPI initialises its coll components. */
static int component_open(void)
{
    int rc = OPAL_SUCCESS;

    OBJ_CONSTRUCT(&coll_llcm.lock, opal_mutex_t);
    if (OPAL_SUCCESS != coll_llcm_nonblocking_open()) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (dn_ompi_params_refused(DN_PARAM_COLL)) {
        rc = OPAL_ERR_BAD_PARAM;
    }
    if (0 != dn_ompi_params.coll.priority && OPAL_SUCCESS == rc) {
        rc = dn_ompi_open(DN_OMPI_AHEAD_OF_MODEX, &coll_llcm.port);
    }
    if (OPAL_SUCCESS != rc) {
        /* Other processes may have a port. This process does not withdraw, so that all have the same modules, but agrees to no tree. */
        coll_llcm.port = NULL;
        opal_output_verbose(1, ompi_coll_base_framework.framework_output, "coll:llcm: without a port: %s",
                            opal_strerror(rc));
    }
    return OPAL_SUCCESS;
}

/** dn_lost_fn_t: mark the peer. A thread that waits for the process looks at the marks of its peers. */
static void component_lost(dn_peer_t *peer, void *arg)
{
    dn_peer_set_user(peer, DN_CHAN_COLL, arg);
    (void) dn_fetch_add_release(&coll_llcm.losses, 1);
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    if (NULL != coll_llcm.port) {
        (void) dn_lost_set(coll_llcm.port, DN_CHAN_COLL, component_lost, &coll_llcm);
    }
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    if (NULL != coll_llcm.port) {
        (void) dn_lost_set(coll_llcm.port, DN_CHAN_COLL, NULL, NULL);
        coll_llcm_free_left(true);
        coll_llcm_long_close();
        dn_ompi_close();
        coll_llcm.port = NULL;
    }
    coll_llcm_nonblocking_close();
    OBJ_DESTRUCT(&coll_llcm.lock);
    return OPAL_SUCCESS;
}

void coll_llcm_watch(coll_llcm_module_t *module)
{
    const uint64_t losses = dn_load_acquire(&coll_llcm.losses);
    /* Lines that came before the loss may be handled after it. So marks are looked at only when no loss is new since the last look. */
    const bool looks = 0 != losses && losses == module->losses;

    for (int rank = 0; looks && rank < module->size; rank++) {
        if (NULL != module->peer[rank] && NULL != dn_peer_user(module->peer[rank], DN_CHAN_COLL)
            && 0 != dn_tree_needs(module->tree, (uint32_t) rank)) {
            dn_ompi_say_lost(&ompi_comm_peer_lookup(module->comm, rank)->super);
            dn_tree_give_up(module->tree);
        }
    }
    module->losses = losses;
    (void) dn_tree_heed(module->tree);
}
