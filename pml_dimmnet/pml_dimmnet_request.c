/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_request.c
 * Requests that MPI has handles of.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

ompi_request_t mca_pml_dimmnet_sent;

static opal_free_list_t requests;
static bool is_open;

static int request_free(ompi_request_t **request);
static int request_cancel(ompi_request_t *request, int flag);

/** @name The end of a request: its user frees it, and the engine completes it, in any order */
/** @{ */
/** Both have done so: what it holds goes. */
static void recycle(pml_dimmnet_req_t *request)
{
    mca_pml_dimmnet_request_release(request);
    OBJ_RELEASE(request->ompi.req_mpi_object.comm);
    OMPI_REQUEST_FINI(&request->ompi);
    if (request->ompi.req_persistent) {
        OBJ_RELEASE(request);
    } else {
        opal_free_list_return(&requests, &request->ompi.super);
    }
}

/** Of the two only the second finds the other's word. With threads they may come at once. */
static enum pml_dimmnet_life end_life(pml_dimmnet_req_t *request, enum pml_dimmnet_life to)
{
    if (opal_using_threads()) {
        return (enum pml_dimmnet_life) atomic_exchange_explicit(&request->life, to, memory_order_acq_rel);
    }
    const enum pml_dimmnet_life was =
        (enum pml_dimmnet_life) atomic_load_explicit(&request->life, memory_order_relaxed);
    atomic_store_explicit(&request->life, to, memory_order_relaxed);
    return was;
}

void mca_pml_dimmnet_request_end(pml_dimmnet_req_t *request)
{
    if (OPAL_UNLIKELY(PML_DIMMNET_LEFT == end_life(request, PML_DIMMNET_ENDED))) {
        recycle(request);
    } else {
        ompi_request_complete(&request->ompi, true);
    }
}

static int request_free(ompi_request_t **ompi_p)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) *ompi_p;

    *ompi_p = MPI_REQUEST_NULL;
    if (OMPI_REQUEST_INACTIVE == request->ompi.req_state) {
        recycle(request);
        return OMPI_SUCCESS;
    }
    if (OPAL_LIKELY(PML_DIMMNET_ENDED == end_life(request, PML_DIMMNET_LEFT))) {
        /* The thread that completes it may be about to say so. */
        while (OPAL_UNLIKELY(!REQUEST_COMPLETE(&request->ompi))) {
        }
        recycle(request);
    }
    return OMPI_SUCCESS;
}
/** @} */

static int request_cancel(ompi_request_t *ompi, int flag)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) ompi;

    /* A send, and what has ended, is past it. */
    if (!request->sends && !REQUEST_COMPLETE(ompi)) {
        dn_tag_cancel(&request->req);
    }
    return OMPI_SUCCESS;
}

static void request_construct(pml_dimmnet_req_t *request)
{
    OMPI_REQUEST_INIT(&request->ompi, false);
    request->ompi.req_type = OMPI_REQUEST_PML;
    request->ompi.req_start = mca_pml_dimmnet_start;
    request->ompi.req_free = request_free;
    request->ompi.req_cancel = request_cancel;
    request->convertor = NULL;
    request->type = NULL;
}

OBJ_CLASS_INSTANCE(pml_dimmnet_req_t, ompi_request_t, request_construct, NULL);

void mca_pml_dimmnet_request_begin(pml_dimmnet_req_t *request)
{
    atomic_store_explicit(&request->life, PML_DIMMNET_PENDING, memory_order_relaxed);
    request->ompi.req_complete = REQUEST_PENDING;
    request->ompi.req_complete_cb = NULL;
    request->ompi.req_state = OMPI_REQUEST_ACTIVE;
    /* Open MPI looks for errors in requests that have not ended, too. */
    request->ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    request->ompi.req_status._cancelled = 0;
}

pml_dimmnet_req_t *mca_pml_dimmnet_request_get(struct ompi_communicator_t *comm)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) opal_free_list_get(&requests);

    if (OPAL_LIKELY(NULL != request)) {
        mca_pml_dimmnet_request_begin(request);
        request->ompi.req_mpi_object.comm = comm;
        OBJ_RETAIN(comm);
    }
    return request;
}

void mca_pml_dimmnet_request_return(pml_dimmnet_req_t *request)
{
    recycle(request);
}

static int sent_free(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int sent_cancel(ompi_request_t *request, int flag)
{
    return OMPI_SUCCESS;
}

int mca_pml_dimmnet_requests_open(void)
{
    ompi_request_t *sent = &mca_pml_dimmnet_sent;

    OBJ_CONSTRUCT(&requests, opal_free_list_t);
    if (OPAL_SUCCESS
        != opal_free_list_init(&requests, sizeof(pml_dimmnet_req_t), 64, OBJ_CLASS(pml_dimmnet_req_t), 0, 0,
                               64, -1, 64, NULL, 0, NULL, NULL, NULL)) {
        OBJ_DESTRUCT(&requests);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    OBJ_CONSTRUCT(sent, ompi_request_t);
    OMPI_REQUEST_INIT(sent, false);
    sent->req_type = OMPI_REQUEST_PML;
    sent->req_state = OMPI_REQUEST_ACTIVE;
    sent->req_free = sent_free;
    sent->req_cancel = sent_cancel;
    sent->req_mpi_object.comm = &ompi_mpi_comm_world.comm;
    sent->req_status.MPI_ERROR = MPI_SUCCESS;
    sent->req_status._cancelled = 0;
    sent->req_complete = REQUEST_COMPLETED;
    is_open = true;
    return OMPI_SUCCESS;
}

void mca_pml_dimmnet_requests_close(void)
{
    if (is_open) {
        is_open = false;
        OBJ_DESTRUCT(&mca_pml_dimmnet_sent);
        OBJ_DESTRUCT(&requests);
    }
}
