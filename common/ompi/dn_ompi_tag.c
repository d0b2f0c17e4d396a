/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_tag.c
 * The one engine of two-sided messages of an MPI process: its variables, its processes, its progress.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"
#include "dn_ompi_progress.h"
#include "dn_ompi_tag.h"

#include "ompi/message/message.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

static struct {
    dn_port_t *port;
    dn_tag_t *tag;
    int users; /**< dn_ompi_tag_open() calls not yet undone */
} engine;

unsigned dn_ompi_tag_polls;

/** Set dn_ompi_tag_polls anew: the process may share its cores now. */
static void look_at_cores(void)
{
    dn_ompi_tag_polls = dn_ompi_shares_core() ? 1 : dn_ompi_params.tag.spin_polls;
}

/** dn_ompi_progress_fn_t. */
static int tag_progress(void)
{
    return dn_tag_progress(engine.tag);
}

/** @name What the engine asks for: dn_tag_config_t */
/** @{ */
static size_t tag_pack(void *layout, void *to, size_t len)
{
    struct iovec iov = {.iov_base = to, .iov_len = len};
    uint32_t count = 1;

    (void) opal_convertor_pack(layout, &iov, &count, &len);
    return len;
}

static void tag_unpack(void *layout, const void *from, size_t len)
{
    struct iovec iov = {.iov_base = (void *) (uintptr_t) from, .iov_len = len};
    uint32_t count = 1;

    (void) opal_convertor_unpack(layout, &iov, &count, &len);
}

static void progress_all(void *arg)
{
    dn_ompi_progress_once();
}

static void on_lost(dn_tag_peer_t *peer, int matters, void *arg)
{
    const ompi_proc_t *proc = peer->user;
    const opal_proc_t *super = NULL == proc ? NULL : &proc->super;

    if (matters || dn_ompi_loss_matters(super)) {
        dn_ompi_say_lost(super);
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_OTHER);
    }
}

/** Only processes of other jobs count: the loss of a process of this job matters in any case, or it has left in order. */
static int receive_names(const dn_tag_peer_t *peer, uint32_t context, int32_t source, void *arg)
{
    const ompi_proc_t *proc = peer->user;

    if (NULL == proc || OPAL_PROC_MY_NAME.jobid == proc->super.proc_name.jobid
        || 0 != (context & DN_TAG_NAMED) || OMPI_MPI_STATE_FINALIZE_STARTED <= ompi_mpi_state) {
        return false;
    }
    ompi_communicator_t *comm = ompi_comm_lookup(context);
    return NULL != comm && source < ompi_group_size(comm->c_remote_group)
           && proc == ompi_comm_peer_lookup(comm, source);
}

static void on_no_memory(void *arg)
{
    dn_ompi_help(DN_OMPI_TEXT_NO_MEMORY, opal_process_info.nodename);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
}
/** @} */

bool dn_ompi_tag_reaches_all(void)
{
    return dn_ompi_leaves_host() || !dn_ompi_spans_hosts();
}

static bool open_engine(void)
{
    if (dn_ompi_params_refused(DN_PARAM_TAG)) {
        return false;
    }
    if (OPAL_SUCCESS != dn_ompi_open(DN_OMPI_AHEAD_OF_MODEX, &engine.port)) {
        return false;
    }
    if (dn_ompi_far_has_failed()) {
        /* Withdraw now, before this process tells others which PML it uses. The processes of other hosts may withdraw, too. */
        dn_ompi_close();
        return false;
    }
    const dn_tag_config_t config = {
        .limit = dn_ompi_params.tag,
        .threads = dn_ompi_threads() || dn_ompi_helper_thread(),
        .pack = tag_pack,
        .unpack = tag_unpack,
        .progress = progress_all,
        .lost = on_lost,
        .names = receive_names,
        .no_memory = on_no_memory,
    };
    /* Other processes may send as soon as they are through MPI_Init. Their messages stay in the ring until here. */
    if (DN_OK != dn_tag_open(engine.port, DN_CHAN_MTL, &config, &engine.tag)) {
        dn_ompi_close();
        return false;
    }
    dn_ompi_progress_add(tag_progress, DN_OMPI_CARRIES_ALL);
    look_at_cores();
    return true;
}

dn_tag_t *dn_ompi_tag_open(void)
{
    if (0 == engine.users && !open_engine()) {
        return NULL;
    }
    engine.users++;
    return engine.tag;
}

/** May a process still receive? No process of this job does after all have come to MPI_Finalize, where they wait for each other unless the
 * user wants otherwise. Processes that have only sessions do not wait. This process has come to its end. */
static bool may_receive(const ompi_proc_t *proc)
{
    const bool fenced = OMPI_MPI_STATE_FINALIZE_STARTED <= ompi_mpi_state && !ompi_async_mpi_finalize;

    return proc != ompi_proc_local() && !(fenced && OPAL_PROC_MY_NAME.jobid == proc->super.proc_name.jobid);
}

/** @param[in] peer  Its user is NULL if its process has only sent, and this process has not connected to it. */
static void tag_leave(dn_tag_peer_t *peer)
{
    ompi_proc_t *proc = peer->user;

    if (NULL != proc) {
        proc->proc_endpoints[DN_OMPI_ENDPOINT_TAG] = NULL;
    }
    dn_tag_leave(peer, NULL != proc && may_receive(proc));
}

void dn_ompi_tag_close(void)
{
    if (0 != --engine.users) {
        return;
    }
    dn_ompi_progress_remove(tag_progress);
    for (dn_tag_peer_t *peer; NULL != (peer = dn_tag_some_peer(engine.tag));) {
        tag_leave(peer);
    }
    /* The end of a communicator needs the engine. */
    dn_ompi_do_aside();
    dn_tag_close(engine.tag);
    /* Requests that have ended in it: their memory is freed next, and nobody recycles them. */
    dn_ompi_drop_aside();
    engine.tag = NULL;
    dn_ompi_close();
}

/** Connect to a process, and join its peer to the engine. @return OPAL_SUCCESS, or why not. */
static int connect_to(ompi_proc_t *proc)
{
    dn_peer_t *hot;
    int rc = dn_ompi_connect(&proc->super, &hot);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    dn_tag_peer_t *peer = dn_tag_join(engine.tag, hot, proc);
    if (NULL != peer) {
        dn_store_release(&proc->proc_endpoints[DN_OMPI_ENDPOINT_TAG], peer);
    }
    look_at_cores();
    return NULL == peer ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

dn_tag_peer_t *dn_ompi_tag_connect(ompi_proc_t *proc)
{
    int rc = connect_to(proc);

    if (OPAL_SUCCESS != rc) {
        dn_ompi_help(DN_OMPI_TEXT_NOT_REACHED, opal_process_info.nodename,
                     OPAL_NAME_PRINT(proc->super.proc_name), opal_get_proc_hostname(&proc->super),
                     opal_strerror(rc));
        return NULL;
    }
    return proc->proc_endpoints[DN_OMPI_ENDPOINT_TAG];
}

int dn_ompi_tag_add(size_t nprocs, struct ompi_proc_t **procs)
{
    for (size_t i = 0; i < nprocs; i++) {
        if (NULL == procs[i]->proc_endpoints[DN_OMPI_ENDPOINT_TAG] && NULL == dn_ompi_tag_connect(procs[i])) {
            return OMPI_ERR_UNREACH;
        }
    }
    return OMPI_SUCCESS;
}

int dn_ompi_tag_remove(size_t nprocs, struct ompi_proc_t **procs)
{
    for (size_t i = 0; i < nprocs; i++) {
        if (NULL != procs[i]->proc_endpoints[DN_OMPI_ENDPOINT_TAG]) {
            tag_leave(procs[i]->proc_endpoints[DN_OMPI_ENDPOINT_TAG]);
        }
    }
    look_at_cores();
    return OMPI_SUCCESS;
}

/** A probe has found no message. The job ends if its source is a process of another job that is lost. A probe does not connect. */
static void probed_in_vain(const struct ompi_communicator_t *comm, int source, const dn_tag_want_t *want)
{
    if (MPI_ANY_SOURCE != source && dn_tag_mourns(engine.tag)) {
        const ompi_proc_t *proc =
            ompi_comm_peer_lookup((struct ompi_communicator_t *) (uintptr_t) comm, source);

        dn_tag_await(engine.tag, want, dn_load_acquire(&proc->proc_endpoints[DN_OMPI_ENDPOINT_TAG]));
    }
}

bool dn_ompi_tag_probe(const struct ompi_communicator_t *comm, int source, int tag,
                       struct ompi_status_public_t *status)
{
    const dn_tag_want_t want = dn_ompi_tag_want(comm, source, tag);
    dn_tag_found_t found;

    if (!dn_tag_probe(engine.tag, &want, &found)) {
        opal_progress();
        if (!dn_tag_probe(engine.tag, &want, &found)) {
            probed_in_vain(comm, source, &want);
            return false;
        }
    }
    dn_ompi_tag_status(status, &found.head, found.size);
    return true;
}

int dn_ompi_tag_mprobe(struct ompi_communicator_t *comm, int source, int tag, bool *matched,
                       struct ompi_message_t **message, struct ompi_status_public_t *status)
{
    const dn_tag_want_t want = dn_ompi_tag_want(comm, source, tag);
    ompi_message_t *handle = ompi_message_alloc();
    dn_tag_found_t found;

    if (NULL == handle) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    dn_tag_msg_t *msg = dn_tag_mprobe(engine.tag, &want, &found);
    if (NULL == msg) {
        opal_progress();
        msg = dn_tag_mprobe(engine.tag, &want, &found);
    }
    *matched = NULL != msg;
    if (NULL == msg) {
        ompi_message_return(handle);
        probed_in_vain(comm, source, &want);
        return OMPI_SUCCESS;
    }
    dn_ompi_tag_status(status, &found.head, found.size);
    /* The user may free the communicator before the message is received. */
    OBJ_RETAIN(comm);
    handle->comm = comm;
    handle->req_ptr = msg;
    handle->peer = found.head.source;
    handle->count = found.size;
    *message = handle;
    return OMPI_SUCCESS;
}

dn_tag_msg_t *dn_ompi_tag_message(struct ompi_message_t **message)
{
    dn_tag_msg_t *msg = (*message)->req_ptr;
    struct ompi_communicator_t *comm = (*message)->comm;

    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    OBJ_RELEASE(comm);
    return msg;
}
