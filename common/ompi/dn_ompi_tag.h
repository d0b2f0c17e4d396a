/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_tag.h
 * Two-sided messages of MPI by the engine of dn_tag.h: what pml/dimmnet and mtl/uzura have in common. A process has one
 * engine; which of the two uses it is Open MPI's choice.
 *
 * Threads: dn_ompi_tag_open(), dn_ompi_tag_close(), dn_ompi_tag_add() and dn_ompi_tag_remove() are called
 * where Open MPI calls the like of a component, one at a time. All others may be called by any number.
 */
#ifndef DN_OMPI_TAG_H
#define DN_OMPI_TAG_H

#include "dn_atomic.h"
#include "dn_ompi.h"
#include "dn_ompi_progress.h"

#include "dn_tag.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/runtime/opal_progress.h"

/** Does the list of devices reach every process of the job? The answer is the same in all processes, as it follows only
 * from facts that all of them know. */
DN_API bool dn_ompi_tag_reaches_all(void);

/** Has the user named the components of a framework that may be used? Other components are not
 * opened. A component of priority 0 is for users that name it. */
static inline bool dn_ompi_is_named(const mca_base_framework_t *framework)
{
    const char *names = framework->framework_selection;

    return NULL != names && '\0' != names[0] && '^' != names[0];
}

/** Open the engine, or share the open engine. @return NULL: it cannot be opened, and a text has said why: the component
 * withdraws. */
DN_API dn_tag_t *dn_ompi_tag_open(void);
/** Undo one dn_ompi_tag_open(). */
DN_API void dn_ompi_tag_close(void);

/** Connect to processes. @retval OMPI_ERR_UNREACH  one of them cannot be reached; a help text has said so. */
DN_API int dn_ompi_tag_add(size_t nprocs, struct ompi_proc_t **procs);
/** Part from processes that end, or from all processes when this process ends. */
DN_API int dn_ompi_tag_remove(size_t nprocs, struct ompi_proc_t **procs);

/** Connect to a process that has no dn_tag_peer_t yet. @return NULL: the process cannot be reached; a help text has said so. */
DN_API dn_tag_peer_t *dn_ompi_tag_connect(ompi_proc_t *proc);
/** The peer of a rank; the first call connects to it. @return as dn_ompi_tag_connect(). */
static inline dn_tag_peer_t *dn_ompi_tag_peer(const struct ompi_communicator_t *comm, int rank)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup((struct ompi_communicator_t *) (uintptr_t) comm, rank);
    /* Pairs with the release in connect_to(): another thread may just have connected to the process. */
    dn_tag_peer_t *peer = dn_load_acquire(&proc->proc_endpoints[DN_OMPI_ENDPOINT_TAG]);

    return OPAL_LIKELY(NULL != peer) ? peer : dn_ompi_tag_connect(proc);
}

/** How often a blocking call polls the source before it waits as Open MPI does; few times where cores are
 * shared. */
DN_API extern unsigned dn_ompi_tag_polls;

/** @name Communicators
 * Communicators that are made from a group, as sessions make them, may have a different number in each process. Their messages go by a
 * context of the engine that has a name (dn_tag_name()): the communicator's extended number. Before its first message to a process, a
 * sender tells that process the name. Communicators that are made from another communicator cost nothing here.
 */
/** @{ */
/** What a communicator without a global number has in c_pml_comm. */
typedef struct dn_ompi_comm {
    uint32_t context;
    uint8_t said[]; /**< by rank: 1: that process was told the name; two threads may tell it at once */
} dn_ompi_comm_t;

/** For add_comm of a PML or an MTL. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE. */
DN_API int dn_ompi_comm_add(dn_tag_t *tag, struct ompi_communicator_t *comm);
/** For del_comm of a PML or an MTL. Messages of the communicator that were never received are forgotten, since its number may soon be
 * another communicator's. */
DN_API void dn_ompi_comm_del(dn_tag_t *tag, struct ompi_communicator_t *comm);
/** Tell a process the name of a communicator that has no global number, ahead of the first message. @return false: the process is lost,
 * or memory ran out. */
DN_API bool dn_ompi_comm_say(struct ompi_communicator_t *comm, int rank, dn_tag_peer_t *peer);

/** The context of messages to this process. */
static inline uint32_t dn_ompi_comm_own_context(const struct ompi_communicator_t *comm)
{
    return OPAL_LIKELY(dn_ompi_comm_is_global(comm)) ? dn_ompi_comm_context(comm)
                                                     : ((const dn_ompi_comm_t *) comm->c_pml_comm)->context;
}
/** @} */

/** @name From MPI's terms to the engine's */
/** @{ */
/** Negative tags are those of collectives: bit 31 of the engine's tag tells them apart. */
static inline uint64_t dn_ompi_tag_of(int tag)
{
    return (uint32_t) tag;
}
/**
 * The receiver of a message, and the envelope of the message.
 * @param[out] head  As the receiver matches it.
 * @return NULL: the process cannot be reached, or memory ran out.
 */
static inline dn_tag_peer_t *dn_ompi_tag_to(struct ompi_communicator_t *comm, int rank, int tag,
                                            dn_tag_head_t *head)
{
    dn_tag_peer_t *peer = dn_ompi_tag_peer(comm, rank);

    *head = (dn_tag_head_t){dn_ompi_comm_own_context(comm), comm->c_my_rank, dn_ompi_tag_of(tag)};
    if (OPAL_UNLIKELY(!dn_ompi_comm_is_global(comm))) {
        head->context = dn_tag_abroad(head->context);
        return NULL != peer && dn_ompi_comm_say(comm, rank, peer) ? peer : NULL;
    }
    return peer;
}
static inline dn_tag_want_t dn_ompi_tag_want(const struct ompi_communicator_t *comm, int source, int tag)
{
    const dn_tag_want_t want = {.context = dn_ompi_comm_own_context(comm),
                                .source = MPI_ANY_SOURCE == source ? DN_MATCH_ANY_SOURCE : source,
                                .tag = MPI_ANY_TAG == tag ? 0 : dn_ompi_tag_of(tag),
                                .ignore = MPI_ANY_TAG == tag ? DN_MATCH_ANY_TAG_IGNORE : 0};
    return want;
}
/** The status that a call returns for one message: MPI_ERROR stays as the caller left it, as MPI has it. */
static inline void dn_ompi_tag_status(struct ompi_status_public_t *status, const dn_tag_head_t *head,
                                      size_t size)
{
    if (MPI_STATUS_IGNORE != status) {
        status->MPI_SOURCE = head->source;
        status->MPI_TAG = (int) (uint32_t) head->tag;
        status->_ucount = size;
        status->_cancelled = 0;
    }
}
/** The error of a request that has ended. */
static inline int dn_ompi_tag_error(dn_status_t status)
{
    switch (status) {
    case DN_OK:
    case DN_ERR_CANCELED:
        return MPI_SUCCESS;
    case DN_ERR_TRUNC:
        return MPI_ERR_TRUNCATE;
    case DN_ERR_NOMEM:
        return MPI_ERR_NO_MEM;
    default:
        return MPI_ERR_OTHER;
    }
}
/** The status of a receive that has ended. As with pml/ob1, it has the length of the message, and not the number of bytes
 * that fit. */
static inline void dn_ompi_tag_recv_status(struct ompi_status_public_t *status, const dn_tag_req_t *req)
{
    if (OPAL_UNLIKELY(DN_ERR_CANCELED == req->status)) {
        status->_cancelled = true;
        return;
    }
    dn_ompi_tag_status(status, &req->head, req->size);
    status->MPI_ERROR = OPAL_LIKELY(DN_OK == req->status) ? MPI_SUCCESS : dn_ompi_tag_error(req->status);
}
/** A request on the stack of a blocking call. */
typedef struct dn_ompi_tag_blocking {
    dn_tag_req_t req;
    bool returned; /**< the engine does not use the request any more */
} dn_ompi_tag_blocking_t;
/** dn_tag_fn_t of such a request. */
static inline void dn_ompi_tag_returned(dn_tag_req_t *req)
{
    /* Pairs with the acquire in dn_ompi_tag_wait(): the results are written first. The request is not touched after this store: it lies
     * on the stack of the thread that waits. */
    dn_store_release(&((dn_ompi_tag_blocking_t *) req)->returned, true);
    dn_ompi_wait_tell();
}
/** Prepare such a request. The caller does this before it starts the request. */
static inline void dn_ompi_tag_block(dn_ompi_tag_blocking_t *blocking)
{
    blocking->req.complete = dn_ompi_tag_returned;
    dn_store_relaxed(&blocking->returned, false);
}
/** Wait until such a request, which was started, has ended. @return MPI's error. */
static inline int dn_ompi_tag_wait(dn_ompi_tag_blocking_t *blocking)
{
    while (OPAL_UNLIKELY(!dn_load_acquire(&blocking->returned))) {
        dn_ompi_progress_wait();
    }
    return OPAL_LIKELY(DN_OK == blocking->req.status) ? MPI_SUCCESS : dn_ompi_tag_error(blocking->req.status);
}
/** Probe: find the first message that a receive would take. If there is none, the call receives once, and looks
 * again. */
DN_API bool dn_ompi_tag_probe(const struct ompi_communicator_t *comm, int source, int tag,
                              struct ompi_status_public_t *status);
/**
 * As dn_ompi_tag_probe(), but the message is taken out of matching.
 * @param[out] message  MPI's handle for the message; unchanged where there is no message.
 */
DN_API int dn_ompi_tag_mprobe(struct ompi_communicator_t *comm, int source, int tag, bool *matched,
                              struct ompi_message_t **message, struct ompi_status_public_t *status);
/** Take the engine's message out of MPI's handle, and free the handle. The handle has held the communicator until here: a request for the
 * message holds the communicator by itself. */
DN_API dn_tag_msg_t *dn_ompi_tag_message(struct ompi_message_t **message);
/** @} */

#endif
