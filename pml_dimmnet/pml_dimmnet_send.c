/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_send.c
 * Sends, blocking and not.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

/** The beginning of a blocking or nonblocking send. @return true: the call is over, with *rc_p; false: the message has to wait. */
static inline bool send_at_once(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, int *rc_p)
{
    dn_tag_head_t head;
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);
    uint8_t *data;
    size_t len;

    *rc_p = OMPI_ERR_UNREACH;
    if (OPAL_UNLIKELY(NULL == peer)) {
        return true;
    }
    if (OPAL_LIKELY(mca_pml_dimmnet_contiguous(buf, count, type, &data, &len)
                    && MCA_PML_BASE_SEND_SYNCHRONOUS != mode)
        && DN_OK == dn_tag_inject(peer, &head, data, len)) {
        *rc_p = OMPI_SUCCESS;
        return true;
    }
    if (MCA_PML_BASE_SEND_BUFFERED == mode) {
        *rc_p = mca_pml_dimmnet_send_buffered(buf, count, type, dst, tag, comm);
        return true;
    }
    return false;
}

/** A blocking send that send_at_once() could not send. */
static int __attribute__((noinline))
send_waiting(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, bool synchronous,
             struct ompi_communicator_t *comm)
{
    opal_convertor_t *convertor;
    dn_ompi_tag_blocking_t blocking;
    dn_tag_head_t head;
    /* Not NULL: send_at_once() has found the peer. */
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);

    dn_ompi_tag_block(&blocking);
    int rc = mca_pml_dimmnet_memory(&blocking.req, &convertor, buf, count, type, true);
    if (OMPI_SUCCESS == rc) {
        rc = dn_ompi_status(dn_tag_send(&blocking.req, peer, &head, synchronous));
    }
    if (OMPI_SUCCESS == rc) {
        rc = dn_ompi_tag_wait(&blocking);
    }
    if (NULL != convertor) {
        OBJ_RELEASE(convertor);
    }
    return rc;
}

int mca_pml_dimmnet_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                         mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    int rc;

    if (OPAL_LIKELY(send_at_once(buf, count, type, dst, tag, mode, comm, &rc))) {
        return rc;
    }
    return send_waiting(buf, count, type, dst, tag, MCA_PML_BASE_SEND_SYNCHRONOUS == mode, comm);
}

/** dn_tag_fn_t of a send for which the user has a handle. */
static void all_sent(dn_tag_req_t *req)
{
    pml_dimmnet_req_t *request = mca_pml_dimmnet_request_of(req);

    request->ompi.req_status.MPI_ERROR = dn_ompi_tag_error(req->status);
    mca_pml_dimmnet_request_end(request);
}

int mca_pml_dimmnet_send_start(pml_dimmnet_req_t *request, const void *buf, size_t count,
                               ompi_datatype_t *type, int dst, int tag, mca_pml_base_send_mode_t mode)
{
    struct ompi_communicator_t *comm = request->ompi.req_mpi_object.comm;
    dn_tag_head_t head;
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);

    if (OPAL_UNLIKELY(NULL == peer)) {
        return OMPI_ERR_UNREACH;
    }
    request->sends = true;
    request->req.complete = all_sent;
    const int rc = mca_pml_dimmnet_request_memory(request, buf, count, type);
    return OMPI_SUCCESS != rc ? rc
                              : dn_ompi_status(dn_tag_send(&request->req, peer, &head,
                                                           MCA_PML_BASE_SEND_SYNCHRONOUS == mode));
}

/** A nonblocking send that send_at_once() could not send. */
static int __attribute__((noinline))
isend_waiting(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
              mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, ompi_request_t **ompi_p)
{
    pml_dimmnet_req_t *request = mca_pml_dimmnet_request_get(comm);

    if (NULL == request) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    request->ompi.req_status.MPI_SOURCE = comm->c_my_rank;
    request->ompi.req_status.MPI_TAG = tag;
    request->ompi.req_status._ucount = count * type->super.size;
    *ompi_p = &request->ompi;
    const int rc = mca_pml_dimmnet_send_start(request, buf, count, type, dst, tag, mode);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        mca_pml_dimmnet_request_return(request);
        *ompi_p = MPI_REQUEST_NULL; /* the caller may free what there is */
    }
    return rc;
}

int mca_pml_dimmnet_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                          ompi_request_t **request)
{
    int rc;

    *request = &mca_pml_dimmnet_sent;
    if (OPAL_LIKELY(send_at_once(buf, count, type, dst, tag, mode, comm, &rc))) {
        return rc;
    }
    return isend_waiting(buf, count, type, dst, tag, mode, comm, request);
}
