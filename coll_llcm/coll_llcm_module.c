/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_module.c
 * The module of a communicator: how it is made, how it replaces the functions that are there, and how it is freed.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** The collectives that are replaced. Each may be left to the replaced function, and the set-up of a tree uses some of these. */
#define COLLECTIVES(DO)      \
    DO(allgather)            \
    DO(allgatherv)           \
    DO(allreduce)            \
    DO(allreduce_init)       \
    DO(alltoall)             \
    DO(alltoallv)            \
    DO(alltoallw)            \
    DO(barrier)              \
    DO(barrier_init)         \
    DO(bcast)                \
    DO(bcast_init)           \
    DO(exscan)               \
    DO(gather)               \
    DO(iallreduce)           \
    DO(ibarrier)             \
    DO(ibcast)               \
    DO(ireduce)              \
    DO(reduce)               \
    DO(reduce_init)          \
    DO(reduce_scatter)       \
    DO(reduce_scatter_block) \
    DO(scan)

/** Likewise; but there need be no functions to replace. */
#define NEIGHBOR_COLLECTIVES(DO) \
    DO(neighbor_allgather)       \
    DO(neighbor_allgatherv)      \
    DO(neighbor_alltoall)        \
    DO(neighbor_alltoallv)       \
    DO(neighbor_alltoallw)

#define ONE_MORE(name) +1
enum { NEEDED = COLLECTIVES(ONE_MORE), SAVED = NEEDED NEIGHBOR_COLLECTIVES(ONE_MORE) };

static void saved_modules(const mca_coll_base_comm_coll_t *coll, mca_coll_base_module_t *module[SAVED])
{
    int n = 0;

#define LIST(name) module[n++] = coll->coll_##name##_module;
    COLLECTIVES(LIST)
    NEIGHBOR_COLLECTIVES(LIST)
}

static void retain_saved(mca_coll_base_module_t *saved[SAVED])
{
    for (int i = 0; i < SAVED; i++) {
        if (NULL != saved[i]) {
            OBJ_RETAIN(saved[i]);
        }
    }
}

static int module_enable(mca_coll_base_module_t *super, struct ompi_communicator_t *comm)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    mca_coll_base_module_t *saved[SAVED];

    saved_modules(comm->c_coll, saved);
    for (int i = 0; i < NEEDED; i++) {
        if (NULL == saved[i]) {
            return OMPI_ERR_NOT_FOUND;
        }
    }
    module->saved = *comm->c_coll;
    retain_saved(saved);
#define INSTALL(name) DN_OMPI_COLL_INSTALL(comm, name, coll_llcm_##name, super);
    COLLECTIVES(INSTALL)
#define INSTALL_IN_PLACE(name)                                     \
    if (NULL == comm->c_coll->coll_##name) {                       \
        super->coll_##name = NULL;                                 \
    } else {                                                       \
        DN_OMPI_COLL_INSTALL(comm, name, coll_llcm_##name, super); \
    }
    NEIGHBOR_COLLECTIVES(INSTALL_IN_PLACE)
    return OMPI_SUCCESS;
}

/** Put the replaced functions back. Modules that were enabled later have been disabled before. */
static int module_disable(mca_coll_base_module_t *super, struct ompi_communicator_t *comm)
{
    const mca_coll_base_comm_coll_t *saved = &((coll_llcm_module_t *) super)->saved;

#define RESTORE(name) DN_OMPI_COLL_INSTALL(comm, name, saved->coll_##name, saved->coll_##name##_module);
    COLLECTIVES(RESTORE)
    NEIGHBOR_COLLECTIVES(RESTORE)
    return OMPI_SUCCESS;
}

static void module_construct(coll_llcm_module_t *module)
{
    module->tree = NULL;
    module->pending = 0;
    module->requests = (dn_queue_t){0};
    module->mapped = true;
    module->crowded = false;
    module->given_up = false;
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
    module->choice = NULL;
    module->area_state = COLL_LLCM_NEW;
    module->neighbor_calls = 0;
    module->neighbors = NULL;
}

static void module_destruct(coll_llcm_module_t *module)
{
    mca_coll_base_module_t *saved[SAVED];

    coll_llcm_tear_down(module);
    coll_llcm_long_tear_down(module);
    coll_llcm_neighbor_tear_down(module);
    saved_modules(&module->saved, saved);
    for (int i = 0; i < SAVED; i++) {
        if (NULL != saved[i]) {
            OBJ_RELEASE(saved[i]);
        }
    }
}

OBJ_CLASS_INSTANCE(coll_llcm_module_t, mca_coll_base_module_t, module_construct, module_destruct);

coll_llcm_module_t *coll_llcm_module_beside(const coll_llcm_module_t *module)
{
    coll_llcm_module_t *beside = OBJ_NEW(coll_llcm_module_t);
    mca_coll_base_module_t *saved[SAVED];

    if (NULL != beside) {
        beside->saved = module->saved;
        beside->spans_hosts = module->spans_hosts;
        saved_modules(&beside->saved, saved);
        retain_saved(saved);
    }
    return beside;
}

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
    module->super.coll_module_disable = module_disable;
#define OFFER(name) module->super.coll_##name = coll_llcm_##name;
    COLLECTIVES(OFFER)
    NEIGHBOR_COLLECTIVES(OFFER)
    return &module->super;
}
