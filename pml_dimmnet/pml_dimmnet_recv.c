/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_recv.c
 * Receives, blocking and not, and probes.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

#include "ompi/message/message.h"

/** Find the peer of a source. @param[out] peer_p  NULL: any source. @return false: the process cannot be reached. */
static inline bool peer_of(const struct ompi_communicator_t *comm, int src, dn_tag_peer_t **peer_p)
{
    *peer_p = MPI_ANY_SOURCE == src ? NULL : dn_ompi_tag_peer(comm, src);
    return OPAL_LIKELY(MPI_ANY_SOURCE == src || NULL != *peer_p);
}

/** Wait for a receive whose request lies on the caller's stack. @param[in] convertor  Freed here; may be NULL. @return MPI's error. */
static int wait_for(dn_ompi_tag_blocking_t *blocking, opal_convertor_t *convertor,
                    ompi_status_public_t *status)
{
    const int rc = dn_ompi_tag_wait(blocking);

    dn_ompi_tag_status(status, &blocking->req.head, blocking->req.size);
    if (OPAL_UNLIKELY(NULL != convertor)) {
        OBJ_RELEASE(convertor);
    }
    return rc;
}

int mca_pml_dimmnet_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                         struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    const dn_tag_want_t want = dn_ompi_tag_want(comm, src, tag);
    opal_convertor_t *convertor;
    dn_tag_peer_t *peer;
    dn_ompi_tag_blocking_t blocking;

    if (OPAL_UNLIKELY(!peer_of(comm, src, &peer))) {
        return OMPI_ERR_UNREACH;
    }
    int rc = mca_pml_dimmnet_memory(&blocking.req, &convertor, buf, count, type, false);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    if (OPAL_LIKELY(NULL != peer && (NULL != blocking.req.buffer || 0 == blocking.req.len)
                    && !opal_using_threads())) {
        dn_tag_head_t head;
        size_t size;
        if (OPAL_LIKELY(dn_tag_take_next(peer, want, blocking.req.buffer, blocking.req.len, dn_ompi_tag_polls,
                                         &head, &size))) {
            dn_ompi_tag_status(status, &head, size);
            return MPI_SUCCESS;
        }
    }
    dn_ompi_tag_block(&blocking);
    dn_tag_wants(&blocking.req, want);
    dn_tag_recv(mca_pml_dimmnet_tag, &blocking.req, peer, true);
    if (1 < dn_ompi_tag_polls && !dn_ompi_is_crowded()) {
        dn_tag_poll(&blocking.req, peer);
    }
    return wait_for(&blocking, convertor, status);
}

/** dn_tag_fn_t of a receive for which the user has a handle. */
static void recv_received(dn_tag_req_t *req)
{
    pml_dimmnet_req_t *request = mca_pml_dimmnet_request_of(req);

    dn_ompi_tag_recv_status(&request->ompi.req_status, req);
    mca_pml_dimmnet_request_end(request);
}

/** Prepare a request for a message that comes. */
static inline int recv_prepare(pml_dimmnet_req_t *request, void *buf, size_t count, ompi_datatype_t *type)
{
    request->sends = false;
    request->req.complete = recv_received;
    return mca_pml_dimmnet_request_memory(request, buf, count, type);
}

static inline int recv_start(pml_dimmnet_req_t *request, void *buf, size_t count, ompi_datatype_t *type,
                             int src, int tag)
{
    struct ompi_communicator_t *comm = request->ompi.req_mpi_object.comm;
    dn_tag_peer_t *peer;

    if (OPAL_UNLIKELY(!peer_of(comm, src, &peer))) {
        return OMPI_ERR_UNREACH;
    }
    const int rc = recv_prepare(request, buf, count, type);
    if (OPAL_LIKELY(OMPI_SUCCESS == rc)) {
        dn_tag_wants(&request->req, dn_ompi_tag_want(comm, src, tag));
        dn_tag_recv(mca_pml_dimmnet_tag, &request->req, peer, false);
    }
    return rc;
}

int mca_pml_dimmnet_recv_start(pml_dimmnet_req_t *request, void *buf, size_t count, ompi_datatype_t *type,
                               int src, int tag)
{
    return recv_start(request, buf, count, type, src, tag);
}

int mca_pml_dimmnet_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                          struct ompi_communicator_t *comm, ompi_request_t **ompi_p)
{
    pml_dimmnet_req_t *request = mca_pml_dimmnet_request_get(comm);

    if (OPAL_UNLIKELY(NULL == request)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *ompi_p = &request->ompi;
    const int rc = recv_start(request, buf, count, type, src, tag);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        mca_pml_dimmnet_request_return(request);
        *ompi_p = MPI_REQUEST_NULL; /* the caller may free what there is */
    }
    return rc;
}

int mca_pml_dimmnet_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                           ompi_status_public_t *status)
{
    *matched = dn_ompi_tag_probe(comm, src, tag, status);
    return OMPI_SUCCESS;
}

int mca_pml_dimmnet_probe(int src, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    while (!dn_ompi_tag_probe(comm, src, tag, status)) {
        dn_ompi_progress_wait();
    }
    return OMPI_SUCCESS;
}

int mca_pml_dimmnet_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                            struct ompi_message_t **message, ompi_status_public_t *status)
{
    bool found = false;
    const int rc = dn_ompi_tag_mprobe(comm, src, tag, &found, message, status);

    *matched = found;
    return rc;
}

int mca_pml_dimmnet_mprobe(int src, int tag, struct ompi_communicator_t *comm,
                           struct ompi_message_t **message, ompi_status_public_t *status)
{
    bool found = false;
    int rc = OMPI_SUCCESS;

    while (OMPI_SUCCESS == rc && !found) {
        rc = dn_ompi_tag_mprobe(comm, src, tag, &found, message, status);
        if (!found) {
            dn_ompi_progress_wait();
        }
    }
    return rc;
}

int mca_pml_dimmnet_mrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
                          ompi_status_public_t *status)
{
    opal_convertor_t *convertor;
    dn_ompi_tag_blocking_t blocking;

    const int rc = mca_pml_dimmnet_memory(&blocking.req, &convertor, buf, count, type, false);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    dn_ompi_tag_block(&blocking);
    dn_tag_mrecv(mca_pml_dimmnet_tag, &blocking.req, dn_ompi_tag_message(message));
    return wait_for(&blocking, convertor, status);
}

int mca_pml_dimmnet_imrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
                           ompi_request_t **ompi_p)
{
    pml_dimmnet_req_t *request = mca_pml_dimmnet_request_get((*message)->comm);

    if (NULL == request) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    const int rc = recv_prepare(request, buf, count, type);
    if (OMPI_SUCCESS != rc) {
        mca_pml_dimmnet_request_return(request);
        return rc;
    }
    *ompi_p = &request->ompi;
    dn_tag_mrecv(mca_pml_dimmnet_tag, &request->req, dn_ompi_tag_message(message));
    return OMPI_SUCCESS;
}
