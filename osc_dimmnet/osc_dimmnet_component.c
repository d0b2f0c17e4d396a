/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_component.c
 * The component: its MCA variables, and the choice of the windows that it takes.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include "ompi/group/group.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init(bool progress_threads, bool mpi_threads);
static int component_query(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                           ompi_communicator_t *comm, opal_info_t *info, int flavor);
static int component_select(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                            ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
static int component_finalize(void);

osc_component_t mca_osc_dimmnet_component = {
    .super = {.osc_version = {DN_OMPI_OSC_VERSION, .mca_component_name = "dimmnet",
                              MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                                    OMPI_RELEASE_VERSION),
                              .mca_open_component = component_open, .mca_close_component = component_close,
                              .mca_register_component_params = component_register},
              .osc_data = {MCA_BASE_METADATA_PARAM_NONE},
              .osc_init = component_init,
              .osc_query = component_query,
              .osc_select = component_select,
              .osc_finalize = component_finalize},
};

static int component_register(void)
{
    mca_base_component_t *version = &mca_osc_dimmnet_component.super.osc_version;

    (void) mca_base_var_group_component_register(version,
                                                 "dimmnet: one-sided communication by loads and stores");
    return dn_ompi_register(version, DN_PARAM_OSC);
}

static int component_open(void)
{
    OBJ_CONSTRUCT(&mca_osc_dimmnet_component.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_osc_dimmnet_component.open_lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_osc_dimmnet_component.peers, opal_hash_table_t);
    return opal_hash_table_init(&mca_osc_dimmnet_component.peers, 64);
}

static int component_close(void)
{
    OBJ_DESTRUCT(&mca_osc_dimmnet_component.peers);
    OBJ_DESTRUCT(&mca_osc_dimmnet_component.open_lock);
    OBJ_DESTRUCT(&mca_osc_dimmnet_component.lock);
    return OPAL_SUCCESS;
}

/** The port is not opened here, as a job without windows needs none: the first window, or the first MPI_Alloc_mem, opens it. */
static int component_init(bool progress_threads, bool mpi_threads)
{
    ompi_osc_dimmnet_alloc_open();
    return OMPI_SUCCESS;
}

static int component_finalize(void)
{
    ompi_osc_dimmnet_alloc_close();
    ompi_osc_dimmnet_peers_close();
    return OMPI_SUCCESS;
}

/** Collective: all processes of the window call this, and get the same answer. */
static int component_query(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                           ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
    const enum osc_reached needed = MPI_WIN_FLAVOR_SHARED == flavor ? OSC_ALL_MAPPED : OSC_ALL_CONNECTED;

    if (needed <= ompi_osc_dimmnet_reach(comm)) {
        return (int) dn_ompi_params.osc.priority;
    }
    /* Of all errors, Open MPI passes only OMPI_ERR_RMA_SHARED to the user. No component can share memory with another host. */
    return MPI_WIN_FLAVOR_SHARED == flavor && ompi_group_have_remote_peers(comm->c_local_group)
               ? OMPI_ERR_RMA_SHARED
               : -1;
}

static int component_select(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                            ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model)
{
    *model = MPI_WIN_UNIFIED;
    return ompi_osc_dimmnet_window_make(win, base, size, disp_unit, comm, info, flavor);
}

const ompi_osc_base_module_t ompi_osc_dimmnet_module = {
    .osc_win_shared_query = ompi_osc_dimmnet_shared_query,
    .osc_win_attach = ompi_osc_dimmnet_attach,
    .osc_win_detach = ompi_osc_dimmnet_detach,
    .osc_free = ompi_osc_dimmnet_free,
    .osc_put = ompi_osc_dimmnet_put,
    .osc_get = ompi_osc_dimmnet_get,
    .osc_accumulate = ompi_osc_dimmnet_accumulate,
    .osc_compare_and_swap = ompi_osc_dimmnet_compare_and_swap,
    .osc_fetch_and_op = ompi_osc_dimmnet_fetch_and_op,
    .osc_get_accumulate = ompi_osc_dimmnet_get_accumulate,
    .osc_rput = ompi_osc_dimmnet_rput,
    .osc_rget = ompi_osc_dimmnet_rget,
    .osc_raccumulate = ompi_osc_dimmnet_raccumulate,
    .osc_rget_accumulate = ompi_osc_dimmnet_rget_accumulate,
    .osc_fence = ompi_osc_dimmnet_fence,
    .osc_start = ompi_osc_dimmnet_start,
    .osc_complete = ompi_osc_dimmnet_complete,
    .osc_post = ompi_osc_dimmnet_post,
    .osc_wait = ompi_osc_dimmnet_wait_posted,
    .osc_test = ompi_osc_dimmnet_test,
    .osc_lock = ompi_osc_dimmnet_lock,
    .osc_unlock = ompi_osc_dimmnet_unlock,
    .osc_lock_all = ompi_osc_dimmnet_lock_all,
    .osc_unlock_all = ompi_osc_dimmnet_unlock_all,
    .osc_sync = ompi_osc_dimmnet_sync,
    .osc_flush = ompi_osc_dimmnet_flush,
    .osc_flush_all = ompi_osc_dimmnet_flush_all,
    .osc_flush_local = ompi_osc_dimmnet_flush,
    .osc_flush_local_all = ompi_osc_dimmnet_flush_all,
};
