/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_module.c
 * The module: processes and communicators come and go; handles; what waits is tried again.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "opal/util/output.h"

/** Polls in del_procs for messages that still wait; what they do not take, the process does not want. */
#define LAST_POLLS 1000

/** Longest envelope before eager data. */
#define HEAD_MAX (sizeof(uzura_head_t) + sizeof(uint64_t))

/** Pieces are whole numbers of so many bytes: blocks of derived types, and cache lines, are seldom cut. */
#define PIECE_UNIT 512

static uzura_endpoint_t *endpoint_new(dn_peer_t *peer)
{
    uzura_endpoint_t *endpoint = calloc(1, sizeof(*endpoint));
    dn_peer_attr_t attr;

    if (NULL == endpoint) {
        return NULL;
    }
    dn_peer_attr(peer, &attr);
    endpoint->peer = peer;
    endpoint->sent = endpoint->seen = dn_first(mtl_uzura.port);
    endpoint->eager_limit = mtl_uzura_number[MTL_UZURA_EAGER_LIMIT].value;
    if (endpoint->eager_limit > attr.botf_max - HEAD_MAX) {
        endpoint->eager_limit = attr.botf_max - HEAD_MAX;
    }
    endpoint->piece_max = (attr.botf_max - sizeof(uzura_frag_t)) & ~(size_t) (PIECE_UNIT - 1);
    dn_peer_set_user(peer, DN_CHAN_MTL, endpoint);
    endpoint->next = mtl_uzura.endpoints;
    mtl_uzura.endpoints = endpoint;
    return endpoint;
}

uzura_endpoint_t *mtl_uzura_endpoint_of(dn_peer_t *peer)
{
    uzura_endpoint_t *endpoint = dn_peer_user(peer, DN_CHAN_MTL);

    return OPAL_LIKELY(NULL != endpoint) ? endpoint : endpoint_new(peer);
}

/** Connect to a process. @return OPAL_SUCCESS, or why not. */
static int endpoint_connect(ompi_proc_t *proc)
{
    uzura_endpoint_t *endpoint;
    dn_peer_t *peer;
    int rc = dn_ompi_connect(&proc->super, &peer);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    uzura_lock();
    endpoint = mtl_uzura_endpoint_of(peer);
    if (NULL != endpoint && NULL == endpoint->proc) {
        endpoint->proc = proc;
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = endpoint;
        peer = NULL;
    }
    uzura_unlock();
    if (NULL != peer) {
        /* Another thread was faster, or memory ran out. */
        dn_disconnect(peer);
    }
    mtl_uzura_look_at_cores();
    return NULL == endpoint ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

uzura_endpoint_t *mtl_uzura_endpoint_make(ompi_proc_t *proc)
{
    int rc = endpoint_connect(proc);

    if (OPAL_SUCCESS != rc) {
        dn_ompi_help("not-reached", opal_process_info.nodename, OPAL_NAME_PRINT(proc->super.proc_name),
                     opal_get_proc_hostname(&proc->super), opal_strerror(rc));
        return NULL;
    }
    return proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
}

static int module_add_procs(struct mca_mtl_base_module_t *mtl, size_t nprocs, struct ompi_proc_t **procs)
{
    /* By now pml/cm has been chosen. */
    mtl_uzura_direct_open();
    for (size_t i = 0; i < nprocs; i++) {
        if (NULL == mtl_uzura_endpoint(procs[i])) {
            return OMPI_ERR_UNREACH;
        }
    }
    return OMPI_SUCCESS;
}

static void endpoint_free(uzura_endpoint_t *endpoint)
{
    for (int polls = 0; NULL != endpoint->first && !endpoint->lost && polls < LAST_POLLS; polls++) {
        (void) mtl_uzura_progress();
    }
    /* What is in flight ends with an error now, which is no news of the peer's end. */
    endpoint->lost = true;
    if (NULL != endpoint->proc) {
        endpoint->proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
        dn_peer_set_user(endpoint->peer, DN_CHAN_MTL, NULL);
        dn_disconnect(endpoint->peer);
    }
    free(endpoint);
}

/** Take an endpoint off the list. */
static void endpoint_unlink(const uzura_endpoint_t *endpoint)
{
    uzura_endpoint_t **link = &mtl_uzura.endpoints;

    uzura_lock();
    while (NULL != *link && endpoint != *link) {
        link = &(*link)->next;
    }
    if (NULL != *link) {
        *link = endpoint->next;
    }
    uzura_unlock();
}

static int module_del_procs(struct mca_mtl_base_module_t *mtl, size_t nprocs, struct ompi_proc_t **procs)
{
    for (size_t i = 0; i < nprocs; i++) {
        uzura_endpoint_t *endpoint = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

        if (NULL != endpoint) {
            mtl_uzura.parted = true;
            mtl_uzura_forget_sender(endpoint);
            endpoint_unlink(endpoint);
            endpoint_free(endpoint);
        }
    }
    mtl_uzura_look_at_cores();
    return OMPI_SUCCESS;
}

static int module_add_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
    return OMPI_SUCCESS;
}

/** Its context may name another communicator soon: what came and was never received must not go there. */
static int module_del_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
    mtl_uzura_forget_context((uint32_t) comm->c_contextid);
    return OMPI_SUCCESS;
}

static int module_finalize(struct mca_mtl_base_module_t *mtl)
{
    uzura_module_t *module = &mtl_uzura;

    if (NULL == module->port) {
        return OMPI_SUCCESS;
    }
    mtl_uzura_direct_close();
    opal_progress_unregister(mtl_uzura_progress);
    dn_handler_clear(module->port, DN_CHAN_MTL);
    (void) dn_lost_set(module->port, DN_CHAN_MTL, NULL, NULL);
    while (NULL != module->endpoints) {
        uzura_endpoint_t *endpoint = module->endpoints;

        mtl_uzura_forget_sender(endpoint);
        module->endpoints = endpoint->next;
        endpoint_free(endpoint);
    }
    mtl_uzura_claims_close();
    dn_match_fini(&module->match);
    free(module->handles.slot);
    memset(&module->handles, 0, sizeof(module->handles));
    module->port = NULL;
    dn_ompi_close();
    return OMPI_SUCCESS;
}

void mtl_uzura_lost(uzura_endpoint_t *endpoint)
{
    if (endpoint->lost) {
        return;
    }
    endpoint->lost = true;
    dn_ompi_say_lost(NULL == endpoint->proc ? NULL : &endpoint->proc->super);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_OTHER);
}

/** Twice as many slots. The lock is held. */
static bool handles_grow(uzura_handles_t *handles)
{
    const uint32_t count = 0 == handles->count ? 64 : 2 * handles->count;
    struct uzura_slot *slot = realloc(handles->slot, count * sizeof(*slot));

    if (NULL == slot) {
        return false;
    }
    for (uint32_t i = handles->count; i < count; i++) {
        /* The list ends with an index that no slot has. */
        slot[i] = (struct uzura_slot){.generation = dn_first(mtl_uzura.port) + 1, .next_free = i + 1};
    }
    handles->slot = slot;
    handles->first_free = handles->count;
    handles->count = count;
    return true;
}

bool mtl_uzura_handle_take(uzura_request_t *request)
{
    uzura_handles_t *handles = &mtl_uzura.handles;
    bool taken;

    uzura_lock();
    taken = handles->first_free < handles->count || handles_grow(handles);
    if (taken) {
        const uint32_t index = handles->first_free;
        struct uzura_slot *slot = &handles->slot[index];

        handles->first_free = slot->next_free;
        slot->request = request;
        request->handle = (uint64_t) slot->generation << 32 | index;
    }
    uzura_unlock();
    return taken;
}

void mtl_uzura_handle_drop(uzura_request_t *request)
{
    uzura_handles_t *handles = &mtl_uzura.handles;
    const uint32_t index = (uint32_t) request->handle;

    uzura_lock();
    struct uzura_slot *slot = &handles->slot[index];
    slot->request = NULL;
    slot->generation += 0 == slot->generation + 1 ? 2 : 1;
    slot->next_free = handles->first_free;
    handles->first_free = index;
    request->handle = 0;
    uzura_unlock();
}

uzura_request_t *mtl_uzura_handle_find(uint64_t handle, const dn_peer_t *peer, enum uzura_state state)
{
    const uzura_handles_t *handles = &mtl_uzura.handles;
    const uint32_t index = (uint32_t) handle;
    uzura_request_t *request = NULL;

    uzura_lock();
    if (index < handles->count && (uint32_t) (handle >> 32) == handles->slot[index].generation) {
        request = handles->slot[index].request;
    }
    if (NULL != request && (peer != request->endpoint->peer || state != request->state)) {
        request = NULL;
    }
    uzura_unlock();
    return request;
}

uzura_module_t mtl_uzura = {
    .super = {.mtl_max_contextid = INT_MAX,
              .mtl_max_tag = INT_MAX,
              .mtl_request_size = sizeof(uzura_request_t) - sizeof(struct mca_mtl_request_t),
              .mtl_flags = 0,
              .mtl_add_procs = module_add_procs,
              .mtl_del_procs = module_del_procs,
              .mtl_finalize = module_finalize,
              .mtl_send = mtl_uzura_send,
              .mtl_isend = mtl_uzura_isend,
              .mtl_irecv = mtl_uzura_irecv,
              .mtl_iprobe = mtl_uzura_iprobe,
              .mtl_imrecv = mtl_uzura_imrecv,
              .mtl_improbe = mtl_uzura_improbe,
              .mtl_cancel = mtl_uzura_cancel,
              .mtl_add_comm = module_add_comm,
              .mtl_del_comm = module_del_comm},
};
