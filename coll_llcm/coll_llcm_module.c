/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_module.c
 * The module of a communicator: made, put in front of what is there, and gone.
 */
#include "dn_config.h"

#include "coll_llcm.h"

enum { SAVED = 14 };

/** Functions that a tree may leave to what was there before, and those by which it is set up. */
static void saved_modules(const mca_coll_base_comm_coll_t *coll, mca_coll_base_module_t *module[SAVED])
{
    module[0] = coll->coll_allgather_module;
    module[1] = coll->coll_allreduce_module;
    module[2] = coll->coll_alltoall_module;
    module[3] = coll->coll_barrier_module;
    module[4] = coll->coll_bcast_module;
    module[5] = coll->coll_reduce_module;
    module[6] = coll->coll_iallreduce_module;
    module[7] = coll->coll_ibarrier_module;
    module[8] = coll->coll_gather_module;
    module[9] = coll->coll_reduce_scatter_module;
    module[10] = coll->coll_reduce_scatter_block_module;
    module[11] = coll->coll_scan_module;
    module[12] = coll->coll_exscan_module;
    module[13] = coll->coll_allgatherv_module;
}

static int module_enable(mca_coll_base_module_t *super, struct ompi_communicator_t *comm)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    mca_coll_base_module_t *saved[SAVED];

    saved_modules(comm->c_coll, saved);
    for (int i = 0; i < SAVED; i++) {
        if (NULL == saved[i]) {
            return OMPI_ERR_NOT_FOUND;
        }
    }
    module->saved = *comm->c_coll;
    for (int i = 0; i < SAVED; i++) {
        OBJ_RETAIN(saved[i]);
    }
    return OMPI_SUCCESS;
}

static void module_construct(coll_llcm_module_t *module)
{
    module->tree = NULL;
    module->pending = 0;
    module->requests = (dn_queue_t){0};
    module->mapped = true;
    module->crowded = false;
    module->few = 0;
    module->state = COLL_LLCM_NEW;
    memset(&module->saved, 0, sizeof(module->saved));
    module->losses = 0;
    module->turns = 0;
    module->comm = NULL;
    module->peer = NULL;
    module->size = 0;
    module->lng = NULL;
    module->area = NULL;
    module->area_state = COLL_LLCM_NEW;
}

static void module_destruct(coll_llcm_module_t *module)
{
    mca_coll_base_module_t *saved[SAVED];

    coll_llcm_tear_down(module);
    coll_llcm_long_tear_down(module);
    saved_modules(&module->saved, saved);
    for (int i = 0; i < SAVED; i++) {
        if (NULL != saved[i]) {
            OBJ_RELEASE(saved[i]);
        }
    }
}

OBJ_CLASS_INSTANCE(coll_llcm_module_t, mca_coll_base_module_t, module_construct, module_destruct);

mca_coll_base_module_t *coll_llcm_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    coll_llcm_module_t *module;

    const bool spans_hosts = ompi_group_have_remote_peers(comm->c_local_group);
    if (OMPI_COMM_IS_INTER(comm) || 2 > ompi_comm_size(comm) || (spans_hosts && !dn_ompi_leaves_host())
        || 0 == dn_ompi_params.coll.priority) {
        return NULL;
    }
    module = OBJ_NEW(coll_llcm_module_t);
    if (NULL == module) {
        return NULL;
    }
    module->spans_hosts = spans_hosts;
    if (spans_hosts) {
        module->area_state = COLL_LLCM_REFUSED;
    }
    *priority = (int) dn_ompi_params.coll.priority;
    module->super.coll_module_enable = module_enable;
    module->super.coll_allgather = coll_llcm_allgather;
    module->super.coll_allgatherv = coll_llcm_allgatherv;
    module->super.coll_allreduce = coll_llcm_allreduce;
    module->super.coll_alltoall = coll_llcm_alltoall;
    module->super.coll_barrier = coll_llcm_barrier;
    module->super.coll_bcast = coll_llcm_bcast;
    module->super.coll_gather = coll_llcm_gather;
    module->super.coll_reduce = coll_llcm_reduce;
    module->super.coll_reduce_scatter = coll_llcm_reduce_scatter;
    module->super.coll_reduce_scatter_block = coll_llcm_reduce_scatter_block;
    module->super.coll_scan = coll_llcm_scan;
    module->super.coll_exscan = coll_llcm_exscan;
    module->super.coll_iallreduce = coll_llcm_iallreduce;
    module->super.coll_ibarrier = coll_llcm_ibarrier;
    return &module->super;
}
