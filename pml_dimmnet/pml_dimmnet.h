/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet.h
 * Open MPI's point-to-point layer by the engine of dn_tag.h. This component translates calls, requests, types and statuses, and
 * decides nothing. common/tag decides how a message travels; common/ompi/dn_ompi_tag.h connects to processes.
 *
 * Threads: as for dn_tag.h and for Open MPI's requests. A thread that completes a request does not touch it afterwards, because
 * the thread that waits for the request may free it at once.
 */
#ifndef PML_DIMMNET_H
#define PML_DIMMNET_H

#include "dn_atomic.h"
#include "dn_ompi_prog.h"
#include "dn_ompi_tag.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

OMPI_DECLSPEC extern mca_pml_base_component_t mca_pml_dimmnet_component;
extern mca_pml_base_module_t mca_pml_dimmnet;

/** The engine, from the component's initialisation to its finalisation; else NULL. */
extern dn_tag_t *mca_pml_dimmnet_tag;

/**
 * A request is shared by its user, who frees it, and by the engine, which completes it. The state says which of them is done with it.
 *
 *   PENDING --- engine ---> ENDED --- user ---> (recycled, or PENDING again)
 *      |
 *      +------- user -----> LEFT --- engine --> (recycled)
 *
 * After ENDED, the engine's thread tells Open MPI that the request is complete (ompi_request_complete()). Open MPI first calls the
 * request's callback, if one is set. The callback may free the request, or start it again; then its result says so, and Open MPI
 * does not mark the request complete. Any other thread that frees the request waits until it is marked complete: no thread touches
 * the request any more then.
 *
 * The engine, and a callback, may be inside of a handler. There a request is not recycled, but set aside (dn_ompi_set_aside()): it
 * may be the last to hold its type or its communicator.
 */
enum pml_dimmnet_life { PML_DIMMNET_PENDING, PML_DIMMNET_ENDED, PML_DIMMNET_LEFT };

/** A send or a receive for which the user has a handle. */
typedef struct pml_dimmnet_req {
    ompi_request_t ompi;
    int life; /**< enum pml_dimmnet_life */
    bool sends;
    ompi_datatype_t *type; /**< held if the elements do not lie together, until the user is done; else NULL */
    opal_convertor_t *convertor; /**< if they do not lie together, and type has no program; else NULL */
    dn_tag_req_t req;
    pthread_t ender;       /**< with threads, from ENDED on: the thread that completes the request */
    dn_ompi_aside_t aside; /**< when both are done with it inside of a handler */
} pml_dimmnet_req_t;
OBJ_CLASS_DECLARATION(pml_dimmnet_req_t);

static inline pml_dimmnet_req_t *mca_pml_dimmnet_request_of(dn_tag_req_t *req)
{
    return (pml_dimmnet_req_t *) ((uint8_t *) req - offsetof(pml_dimmnet_req_t, req));
}

/** @name pml_dimmnet_request.c */
/** @{ */
/** Make the list of requests, and mca_pml_dimmnet_sent. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE. */
int mca_pml_dimmnet_requests_open(void);
void mca_pml_dimmnet_requests_close(void);
/** The list of free requests. */
extern opal_free_list_t mca_pml_dimmnet_requests;
/** Give back a request that could not be started. */
void mca_pml_dimmnet_request_return(pml_dimmnet_req_t *request);
/** Make a request pending, for the first time or again. A callback that was set before the start stays set. */
static inline void mca_pml_dimmnet_request_begin(pml_dimmnet_req_t *request)
{
    dn_store_relaxed(&request->life, PML_DIMMNET_PENDING);
    request->ompi.req_complete = REQUEST_PENDING;
    request->ompi.req_state = OMPI_REQUEST_ACTIVE;
    /* Open MPI looks for errors also in requests that have not ended. */
    request->ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    request->ompi.req_status._cancelled = 0;
}
/** Take a request from the list, and make it pending. The request holds the communicator. @return NULL: memory ran out. */
static inline pml_dimmnet_req_t *mca_pml_dimmnet_request_get(struct ompi_communicator_t *comm)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) opal_free_list_get(&mca_pml_dimmnet_requests);

    if (OPAL_LIKELY(NULL != request)) {
        mca_pml_dimmnet_request_begin(request);
        request->ompi.req_complete_cb = NULL;
        request->ompi.req_mpi_object.comm = comm;
        OBJ_RETAIN(comm);
    }
    return request;
}
/** The user, or the engine, is done with a request. The second of them finds the state that the first has set. With threads, both may come
 * at once: the exchange shows the second all that the first has written. @return the state before. */
static inline enum pml_dimmnet_life mca_pml_dimmnet_request_leave(pml_dimmnet_req_t *request,
                                                                  enum pml_dimmnet_life to)
{
    if (OPAL_UNLIKELY(opal_using_threads())) {
        return (enum pml_dimmnet_life) dn_swap_acq_rel(&request->life, to);
    }
    const int was = dn_load_relaxed(&request->life);
    dn_store_relaxed(&request->life, to);
    return (enum pml_dimmnet_life) was;
}
/** mca_pml_dimmnet_request_end() where there are threads. */
void mca_pml_dimmnet_request_end_shared(pml_dimmnet_req_t *request);
/** The user and the engine are done with a request, perhaps inside of a handler: recycle the request later. */
void mca_pml_dimmnet_request_set_aside(pml_dimmnet_req_t *request);
/** mca_pml_dimmnet_request_complete() of a request that has a callback. */
void mca_pml_dimmnet_request_call(pml_dimmnet_req_t *request);
/** Tell Open MPI that a request is complete. */
static inline void mca_pml_dimmnet_request_complete(pml_dimmnet_req_t *request)
{
    if (OPAL_UNLIKELY(NULL != request->ompi.req_complete_cb)) {
        mca_pml_dimmnet_request_call(request);
    } else {
        ompi_request_complete(&request->ompi, true);
    }
}
/** The engine is done with a request, and has set its status. The caller does not touch the request from now on. */
static inline void mca_pml_dimmnet_request_end(pml_dimmnet_req_t *request)
{
    if (OPAL_UNLIKELY(opal_using_threads())) {
        mca_pml_dimmnet_request_end_shared(request);
    } else if (OPAL_UNLIKELY(PML_DIMMNET_LEFT == mca_pml_dimmnet_request_leave(request, PML_DIMMNET_ENDED))) {
        mca_pml_dimmnet_request_set_aside(request);
    } else {
        mca_pml_dimmnet_request_complete(request);
    }
}
/** The request that MPI_Isend returns for a message that has left: it is complete from the start, and is never freed. */
extern ompi_request_t mca_pml_dimmnet_sent;
/** @} */

/** @name pml_dimmnet_memory.c: count elements of a type at a buffer */
/** @{ */
/** Do the elements lie together?
 * @param[out] data  The first byte, if they do.
 * @param[out] len   Bytes of all elements. */
static inline bool mca_pml_dimmnet_contiguous(const void *buf, size_t count, const ompi_datatype_t *type,
                                              uint8_t **data, size_t *len)
{
    *data = (uint8_t *) (uintptr_t) buf + type->super.true_lb;
    *len = count * type->super.size;
    /* This function takes a count of 32 bits, and asks only whether the count is 1. */
    return opal_datatype_is_contiguous_memory_layout(&type->super, 1 == count ? 1 : 2);
}
/** mca_pml_dimmnet_memory() for elements that do not lie together. */
int mca_pml_dimmnet_memory_apart(dn_tag_req_t *req, opal_convertor_t **convertor_p, const void *buf,
                                 size_t count, ompi_datatype_t *type, bool sends);

/**
 * Tell the engine where a request's memory is: in one block, by the type's program, or by a convertor.
 * @param[out] convertor_p  The caller's to OBJ_RELEASE() when the request has ended. NULL: there is none.
 * @return OMPI_ERR_OUT_OF_RESOURCE: memory ran out.
 */
static inline int mca_pml_dimmnet_memory(dn_tag_req_t *req, opal_convertor_t **convertor_p, const void *buf,
                                         size_t count, ompi_datatype_t *type, bool sends)
{
    uint8_t *data;
    size_t len;

    *convertor_p = NULL;
    if (OPAL_LIKELY(mca_pml_dimmnet_contiguous(buf, count, type, &data, &len))) {
        dn_tag_memory(req, data, len);
        return OMPI_SUCCESS;
    }
    return mca_pml_dimmnet_memory_apart(req, convertor_p, buf, count, type, sends);
}

/** As mca_pml_dimmnet_memory(), for a request that outlives the call: the request holds the type if the engine needs it. */
static inline int mca_pml_dimmnet_request_memory(pml_dimmnet_req_t *request, const void *buf, size_t count,
                                                 ompi_datatype_t *type)
{
    const int rc =
        mca_pml_dimmnet_memory(&request->req, &request->convertor, buf, count, type, request->sends);

    if (OPAL_UNLIKELY(NULL == request->req.buffer && 0 != request->req.len)) {
        request->type = type;
        OBJ_RETAIN(type);
    }
    return rc;
}

/** Give up the convertor and the type that a request holds. This is not done inside of a handler: dn_ompi_set_aside(). */
static inline void mca_pml_dimmnet_request_release(pml_dimmnet_req_t *request)
{
    if (OPAL_UNLIKELY(NULL != request->type)) {
        if (NULL != request->convertor) {
            OBJ_RELEASE(request->convertor);
            request->convertor = NULL;
        }
        OBJ_RELEASE(request->type);
        request->type = NULL;
    }
}
/** @} */

/** @name pml_dimmnet_send.c */
/** @{ */
int mca_pml_dimmnet_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                         mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);
int mca_pml_dimmnet_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                          ompi_request_t **request);
/** Start a pending request. Its status already has the source, the tag and the size. After an error nothing is under way. */
int mca_pml_dimmnet_send_start(pml_dimmnet_req_t *request, const void *buf, size_t count,
                               ompi_datatype_t *type, int dst, int tag, mca_pml_base_send_mode_t mode);
/** @} */

/** @name pml_dimmnet_buffered.c */
/** @{ */
/**
 * Send a message in buffered mode that could not leave at once: copy the message, and send the copy.
 * @retval MPI_ERR_BUFFER            the message is longer than an eager message, and the user's buffer has no room for it; or
 *                                   memory for the copy ran out.
 * @retval OMPI_ERR_UNREACH          the receiver is lost.
 * @retval OMPI_ERR_OUT_OF_RESOURCE  memory ran out.
 */
int mca_pml_dimmnet_send_buffered(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                  struct ompi_communicator_t *comm);
/** @} */

/** @name pml_dimmnet_recv.c */
/** @{ */
int mca_pml_dimmnet_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                         struct ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_dimmnet_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                          struct ompi_communicator_t *comm, ompi_request_t **request);
/** Start a pending request. After an error nothing is under way. */
int mca_pml_dimmnet_recv_start(pml_dimmnet_req_t *request, void *buf, size_t count, ompi_datatype_t *type,
                               int src, int tag);
int mca_pml_dimmnet_probe(int src, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_dimmnet_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                           ompi_status_public_t *status);
int mca_pml_dimmnet_mprobe(int src, int tag, struct ompi_communicator_t *comm,
                           struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_dimmnet_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                            struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_dimmnet_mrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
                          ompi_status_public_t *status);
int mca_pml_dimmnet_imrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
                           ompi_request_t **request);
/** @} */

/** @name pml_dimmnet_persistent.c */
/** @{ */
int mca_pml_dimmnet_isend_init(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                               mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                               ompi_request_t **request);
int mca_pml_dimmnet_irecv_init(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                               struct ompi_communicator_t *comm, ompi_request_t **request);
int mca_pml_dimmnet_start(size_t count, ompi_request_t **requests);
/** @} */

#endif
