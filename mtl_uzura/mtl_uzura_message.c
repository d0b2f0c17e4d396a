/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_message.c
 * Sends, receives and probes of pml/cm. pml/cm describes memory by convertors.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal_progress.h"

/** Tell the engine where the memory of a convertor is. */
static void set_memory(dn_tag_req_t *req, struct opal_convertor_t *convertor)
{
    void *data = NULL;
    size_t len;

    /* For a send of contiguous data, pml/cm mostly sets only these fields. A convertor that pml/cm prepares in full has a flag. */
    if (0 == ((CONVERTOR_SEND | CONVERTOR_RECV) & convertor->flags)) {
        dn_tag_memory(req, convertor->pBaseBuf, convertor->local_size);
        return;
    }
    opal_convertor_get_packed_size(convertor, &len);
    if (0 == len || !opal_convertor_need_buffers(convertor)) {
        if (0 != len) {
            opal_convertor_get_current_pointer(convertor, &data);
        }
        dn_tag_memory(req, data, len);
        return;
    }
    dn_tag_layout(req, convertor, len);
    req->walks = dn_ompi_prog_walk(&req->cursor, convertor);
}

static mtl_uzura_req_t *request_of(dn_tag_req_t *req)
{
    return (mtl_uzura_req_t *) ((uint8_t *) req - offsetof(mtl_uzura_req_t, req));
}

static void message_sent(dn_tag_req_t *req)
{
    mtl_uzura_req_t *request = request_of(req);

    request->super.ompi_req->req_status.MPI_ERROR = dn_ompi_tag_error(req->status);
    request->super.completion_callback(&request->super);
    dn_ompi_wait_tell();
}

static void message_received(dn_tag_req_t *req)
{
    mtl_uzura_req_t *request = request_of(req);

    dn_ompi_tag_recv_status(&request->super.ompi_req->req_status, req);
    request->super.completion_callback(&request->super);
    dn_ompi_wait_tell();
}

int mca_mtl_uzura_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dst, int tag,
                        struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                        mca_mtl_request_t *mtl_request)
{
    mtl_uzura_req_t *request = (mtl_uzura_req_t *) mtl_request;
    dn_tag_head_t head;
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);

    if (OPAL_UNLIKELY(NULL == peer)) {
        return OMPI_ERR_UNREACH;
    }
    request->req.complete = message_sent;
    set_memory(&request->req, convertor);
    return dn_ompi_status(dn_tag_send(&request->req, peer, &head, MCA_PML_BASE_SEND_SYNCHRONOUS == mode));
}

int mca_mtl_uzura_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dst, int tag,
                       struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    const bool synchronous = MCA_PML_BASE_SEND_SYNCHRONOUS == mode;
    dn_ompi_tag_blocking_t blocking;
    dn_tag_head_t head;
    dn_tag_peer_t *peer = dn_ompi_tag_to(comm, dst, tag, &head);

    if (OPAL_UNLIKELY(NULL == peer)) {
        return OMPI_ERR_UNREACH;
    }
    set_memory(&blocking.req, convertor);
    if (OPAL_LIKELY(!synchronous && (NULL != blocking.req.buffer || 0 == blocking.req.len)
                    && DN_OK == dn_tag_inject(peer, &head, blocking.req.buffer, blocking.req.len))) {
        return OMPI_SUCCESS;
    }
    dn_ompi_tag_block(&blocking);
    const int rc = dn_ompi_status(dn_tag_send(&blocking.req, peer, &head, synchronous));
    return OMPI_SUCCESS == rc ? dn_ompi_tag_wait(&blocking) : rc;
}

int mca_mtl_uzura_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag,
                        struct opal_convertor_t *convertor, struct mca_mtl_request_t *mtl_request)
{
    mtl_uzura_req_t *request = (mtl_uzura_req_t *) mtl_request;
    dn_tag_peer_t *peer = NULL;

    if (MPI_ANY_SOURCE != src) {
        peer = dn_ompi_tag_peer(comm, src);
        if (OPAL_UNLIKELY(NULL == peer)) {
            return OMPI_ERR_UNREACH;
        }
    }
    request->req.complete = message_received;
    set_memory(&request->req, convertor);
    dn_tag_wants(&request->req, dn_ompi_tag_want(comm, src, tag));
    dn_tag_recv(mca_mtl_uzura_tag, &request->req, peer, false);
    return OMPI_SUCCESS;
}

int mca_mtl_uzura_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src,
                         int tag, int *flag, struct ompi_status_public_t *status)
{
    *flag = dn_ompi_tag_probe(comm, src, tag, status);
    return OMPI_SUCCESS;
}

int mca_mtl_uzura_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src,
                          int tag, int *matched, struct ompi_message_t **message,
                          struct ompi_status_public_t *status)
{
    bool found = false;
    const int rc = dn_ompi_tag_mprobe(comm, src, tag, &found, message, status);

    *matched = found;
    return rc;
}

int mca_mtl_uzura_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor,
                         struct ompi_message_t **message, struct mca_mtl_request_t *mtl_request)
{
    mtl_uzura_req_t *request = (mtl_uzura_req_t *) mtl_request;

    request->req.complete = message_received;
    set_memory(&request->req, convertor);
    dn_tag_mrecv(mca_mtl_uzura_tag, &request->req, dn_ompi_tag_message(message));
    return OMPI_SUCCESS;
}

int mca_mtl_uzura_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag)
{
    dn_tag_cancel(&((mtl_uzura_req_t *) mtl_request)->req);
    return OMPI_SUCCESS;
}
