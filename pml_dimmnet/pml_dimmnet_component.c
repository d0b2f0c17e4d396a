/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_component.c
 * The component and its module: its selection, its processes and its communicators.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

#include "ompi/mca/pml/base/base.h"

static int component_register(void);
static int component_open(void);
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads);
static int component_finalize(void);

mca_pml_base_component_t mca_pml_dimmnet_component = {
    .pmlm_version = {DN_OMPI_PML_VERSION, .mca_component_name = "dimmnet",
                     MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                           OMPI_RELEASE_VERSION),
                     .mca_open_component = component_open,
                     .mca_register_component_params = component_register},
    .pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = component_init,
    .pmlm_finalize = component_finalize,
};

dn_tag_t *mca_pml_dimmnet_tag;

static int component_register(void)
{
    mca_base_component_t *version = &mca_pml_dimmnet_component.pmlm_version;

    (void) mca_base_var_group_component_register(version, "dimmnet: two-sided messages by polled memory");
    return dn_ompi_register(version, DN_PARAM_PML);
}

/**
 * If the user names no PML, Open MPI considers the PMLs in a list. The list has Open MPI's own PMLs. A PML that is built outside
 * of Open MPI adds its name itself, as pml/monitoring does. If the user names other PMLs, this component is not opened.
 */
static int component_open(void)
{
    char *name = strdup("dimmnet");

    return NULL != name && 0 <= opal_pointer_array_add(&mca_pml_base_pml, name) ? OMPI_SUCCESS
                                                                                : OMPI_ERR_OUT_OF_RESOURCE;
}

/**
 * A PML cannot leave a process to another PML. So pml/dimmnet is chosen only if its devices reach all processes, or if the user names
 * it. All processes must decide alike, so the decision uses only facts that all of them know.
 */
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    *priority = dn_ompi_tag_reaches_all() ? (int) dn_ompi_params.pml.priority : 0;
    if (0 == *priority && !dn_ompi_is_named(&ompi_pml_base_framework)) {
        return NULL;
    }
    mca_pml_dimmnet_tag = dn_ompi_params_refused(DN_PARAM_PML) ? NULL : dn_ompi_tag_open();
    if (NULL == mca_pml_dimmnet_tag) {
        if (!dn_ompi_far_has_failed()) {
            dn_ompi_help(DN_OMPI_TEXT_NO_PORT, opal_process_info.nodename);
        }
        return NULL;
    }
    return &mca_pml_dimmnet;
}

static int component_finalize(void)
{
    if (NULL != mca_pml_dimmnet_tag) {
        /* This ends requests that still wait for a process of another job. */
        dn_ompi_tag_close();
        mca_pml_dimmnet_requests_close();
        mca_pml_dimmnet_tag = NULL;
    }
    return OMPI_SUCCESS;
}

static int module_enable(bool enable)
{
    return enable ? mca_pml_dimmnet_requests_open() : OMPI_SUCCESS;
}

static int module_add_procs(struct ompi_proc_t **procs, size_t nprocs)
{
    const int rc = mca_pml_base_pml_check_selected("dimmnet", procs, nprocs);

    return OMPI_SUCCESS == rc ? dn_ompi_tag_add(nprocs, procs) : rc;
}

static int module_del_procs(struct ompi_proc_t **procs, size_t nprocs)
{
    return dn_ompi_tag_remove(nprocs, procs);
}

static int module_add_comm(struct ompi_communicator_t *comm)
{
    return dn_ompi_comm_add(mca_pml_dimmnet_tag, comm);
}

static int module_del_comm(struct ompi_communicator_t *comm)
{
    dn_ompi_comm_del(mca_pml_dimmnet_tag, comm);
    return OMPI_SUCCESS;
}

static int module_dump(struct ompi_communicator_t *comm, int verbose)
{
    return OMPI_SUCCESS;
}

mca_pml_base_module_t mca_pml_dimmnet = {
    .pml_add_procs = module_add_procs,
    .pml_del_procs = module_del_procs,
    .pml_enable = module_enable,
    .pml_add_comm = module_add_comm,
    .pml_del_comm = module_del_comm,
    .pml_irecv_init = mca_pml_dimmnet_irecv_init,
    .pml_irecv = mca_pml_dimmnet_irecv,
    .pml_recv = mca_pml_dimmnet_recv,
    .pml_isend_init = mca_pml_dimmnet_isend_init,
    .pml_isend = mca_pml_dimmnet_isend,
    .pml_send = mca_pml_dimmnet_send,
    .pml_iprobe = mca_pml_dimmnet_iprobe,
    .pml_probe = mca_pml_dimmnet_probe,
    .pml_start = mca_pml_dimmnet_start,
    .pml_improbe = mca_pml_dimmnet_improbe,
    .pml_mprobe = mca_pml_dimmnet_mprobe,
    .pml_imrecv = mca_pml_dimmnet_imrecv,
    .pml_mrecv = mca_pml_dimmnet_mrecv,
    .pml_dump = module_dump,
    .pml_max_contextid = INT_MAX,
    .pml_max_tag = INT_MAX,
    .pml_flags = DN_OMPI_PML_FLAGS,
};
