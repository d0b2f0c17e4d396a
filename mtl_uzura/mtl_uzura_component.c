/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_component.c
 * The component and its module: its selection, its processes and its communicators.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "opal/util/output.h"

static int component_register(void);
static int component_open(void);
static int component_query(mca_base_module_t **module, int *priority);
static mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads DN_OMPI_MTL_INIT_MORE);

mca_mtl_base_component_2_0_0_t mca_mtl_uzura_component = {
    .mtl_version = {MCA_MTL_BASE_VERSION_2_0_0, .mca_component_name = "uzura",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_open_component = component_open, .mca_query_component = component_query,
                    .mca_register_component_params = component_register},
    .mtl_data = {MCA_BASE_METADATA_PARAM_NONE},
    .mtl_init = component_init,
};

dn_tag_t *mca_mtl_uzura_tag;

static int component_register(void)
{
    mca_base_component_t *version = &mca_mtl_uzura_component.mtl_version;

    (void) mca_base_var_group_component_register(version, "dimmnet: two-sided messages by polled memory");
    return dn_ompi_register(version, DN_PARAM_MTL);
}

static int component_open(void)
{
    return OPAL_SUCCESS;
}

/** An MTL cannot leave a process to another MTL. So mtl/uzura is chosen only if its devices reach all processes, or if the user names it. */
static int component_query(mca_base_module_t **module, int *priority)
{
    *priority = dn_ompi_tag_reaches_all() ? (int) dn_ompi_params.mtl.priority : 0;
    if (0 == *priority && !dn_ompi_is_named(&ompi_mtl_base_framework)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    *module = (mca_base_module_t *) &mca_mtl_uzura;
    return OPAL_SUCCESS;
}

static mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads DN_OMPI_MTL_INIT_MORE)
{
    mca_mtl_uzura_tag = dn_ompi_params_refused(DN_PARAM_MTL) ? NULL : dn_ompi_tag_open();
    if (NULL == mca_mtl_uzura_tag) {
        opal_output_verbose(1, ompi_mtl_base_framework.framework_output,
                            "mtl:uzura: withdraws: it could not open its port");
        return NULL;
    }
    return &mca_mtl_uzura;
}

static int module_finalize(struct mca_mtl_base_module_t *mtl)
{
    if (NULL != mca_mtl_uzura_tag) {
        dn_ompi_tag_close();
        mca_mtl_uzura_tag = NULL;
    }
    return OMPI_SUCCESS;
}

static int module_add_procs(struct mca_mtl_base_module_t *mtl, size_t nprocs, struct ompi_proc_t **procs)
{
    return dn_ompi_tag_add(nprocs, procs);
}

static int module_del_procs(struct mca_mtl_base_module_t *mtl, size_t nprocs, struct ompi_proc_t **procs)
{
    return dn_ompi_tag_remove(nprocs, procs);
}

static int module_add_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
    return dn_ompi_comm_add(mca_mtl_uzura_tag, comm);
}

static int module_del_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
    dn_ompi_comm_del(mca_mtl_uzura_tag, comm);
    return OMPI_SUCCESS;
}

mca_mtl_base_module_t mca_mtl_uzura = {
    .mtl_max_contextid = INT_MAX,
    .mtl_max_tag = INT_MAX,
    .mtl_flags = DN_OMPI_MTL_FLAGS,
    .mtl_request_size = sizeof(mtl_uzura_req_t) - sizeof(struct mca_mtl_request_t),
    .mtl_add_procs = module_add_procs,
    .mtl_del_procs = module_del_procs,
    .mtl_finalize = module_finalize,
    .mtl_send = mca_mtl_uzura_send,
    .mtl_isend = mca_mtl_uzura_isend,
    .mtl_irecv = mca_mtl_uzura_irecv,
    .mtl_iprobe = mca_mtl_uzura_iprobe,
    .mtl_imrecv = mca_mtl_uzura_imrecv,
    .mtl_improbe = mca_mtl_uzura_improbe,
    .mtl_cancel = mca_mtl_uzura_cancel,
    .mtl_add_comm = module_add_comm,
    .mtl_del_comm = module_del_comm,
};
