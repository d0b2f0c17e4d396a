/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_request.c
 * Requests for which the user has a handle.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

ompi_request_t mca_pml_dimmnet_sent;

opal_free_list_t mca_pml_dimmnet_requests;
static bool is_open;

static int request_free(ompi_request_t **request);
static int request_cancel(ompi_request_t *request, int flag);

/** @name The end of a request: the user frees it, and the engine completes it, in any order */
/** @{ */
static inline void request_recycle(pml_dimmnet_req_t *request)
{
    mca_pml_dimmnet_request_release(request);
    OBJ_RELEASE(request->ompi.req_mpi_object.comm);
    OMPI_REQUEST_FINI(&request->ompi);
    if (OPAL_UNLIKELY(request->ompi.req_persistent)) {
        OBJ_RELEASE(request);
    } else {
        opal_free_list_return(&mca_pml_dimmnet_requests, &request->ompi.super);
    }
}

void mca_pml_dimmnet_request_return(pml_dimmnet_req_t *request)
{
    request_recycle(request);
}

/** dn_ompi_aside_t::fn of a request. */
static void request_recycle_aside(dn_ompi_aside_t *aside)
{
    request_recycle((pml_dimmnet_req_t *) ((uint8_t *) aside - offsetof(pml_dimmnet_req_t, aside)));
}

void mca_pml_dimmnet_request_set_aside(pml_dimmnet_req_t *request)
{
    dn_ompi_set_aside(&request->aside, request_recycle_aside);
}

void mca_pml_dimmnet_request_call(pml_dimmnet_req_t *request)
{
    dn_ompi_inside(1);
    ompi_request_complete(&request->ompi, true);
    dn_ompi_inside(-1);
}

void __attribute__((noinline)) mca_pml_dimmnet_request_end_shared(pml_dimmnet_req_t *request)
{
    request->ender = pthread_self();
    if (PML_DIMMNET_LEFT == mca_pml_dimmnet_request_leave(request, PML_DIMMNET_ENDED)) {
        mca_pml_dimmnet_request_set_aside(request);
    } else {
        /* The exchange in ompi_request_complete() need not be a release. This fence pairs with the fence of request_is_over(). */
        opal_atomic_wmb();
        mca_pml_dimmnet_request_complete(request);
    }
    dn_ompi_wait_tell();
}

/** Has the engine marked a request complete? Then this thread sees what the engine wrote before: the fence pairs with the fence of
 * mca_pml_dimmnet_request_end_shared(). */
static inline bool request_is_over(const pml_dimmnet_req_t *request)
{
    const bool complete = REQUEST_COMPLETE(&request->ompi);

    opal_atomic_rmb();
    return complete;
}

/** request_free() of a request that was started, where there are threads. Most requests are complete by then, and no thread of the engine
 * touches them any more. */
static __attribute__((noinline)) void request_free_shared(pml_dimmnet_req_t *request)
{
    if (request_is_over(request)) {
        request_recycle(request);
    } else if (PML_DIMMNET_PENDING != mca_pml_dimmnet_request_leave(request, PML_DIMMNET_LEFT)) {
        /* The thread that completes the request may be about to mark it. Or this is that thread, in the request's callback. */
        while (!request_is_over(request)) {
            if (pthread_equal(request->ender, pthread_self())) {
                mca_pml_dimmnet_request_set_aside(request);
                return;
            }
        }
        request_recycle(request);
    } else {
        dn_ompi_do_aside();
    }
}

/** request_free() of a request that is not complete, without threads. */
static __attribute__((noinline)) void request_free_early(pml_dimmnet_req_t *request)
{
    if (PML_DIMMNET_PENDING != mca_pml_dimmnet_request_leave(request, PML_DIMMNET_LEFT)) {
        /* This is the request's callback. */
        mca_pml_dimmnet_request_set_aside(request);
    } else {
        dn_ompi_do_aside();
    }
}

static int request_free(ompi_request_t **ompi_p)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) *ompi_p;

    *ompi_p = MPI_REQUEST_NULL;
    if (OPAL_UNLIKELY(OMPI_REQUEST_INACTIVE == request->ompi.req_state)) {
        request_recycle(request);
    } else if (OPAL_UNLIKELY(opal_using_threads())) {
        request_free_shared(request);
    } else if (OPAL_LIKELY(REQUEST_COMPLETE(&request->ompi))) {
        request_recycle(request);
    } else {
        request_free_early(request);
    }
    return OMPI_SUCCESS;
}
/** @} */

static int request_cancel(ompi_request_t *ompi, int flag)
{
    pml_dimmnet_req_t *request = (pml_dimmnet_req_t *) ompi;

    /* A send is not cancelled, and a request that has ended cannot be. */
    if (!request->sends && !REQUEST_COMPLETE(ompi)) {
        dn_tag_cancel(&request->req);
    }
    return OMPI_SUCCESS;
}

static void request_construct(pml_dimmnet_req_t *request)
{
    OMPI_REQUEST_INIT(&request->ompi, false);
    /* The state of a request that was given back. Open MPI with its own checks looks for this state also in unused requests. */
    request->ompi.req_state = OMPI_REQUEST_INVALID;
    request->ompi.req_type = OMPI_REQUEST_PML;
    request->ompi.req_start = mca_pml_dimmnet_start;
    request->ompi.req_free = request_free;
    request->ompi.req_cancel = request_cancel;
    request->convertor = NULL;
    request->type = NULL;
}

OBJ_CLASS_INSTANCE(pml_dimmnet_req_t, ompi_request_t, request_construct, NULL);

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

    OBJ_CONSTRUCT(&mca_pml_dimmnet_requests, opal_free_list_t);
    if (OPAL_SUCCESS
        != opal_free_list_init(&mca_pml_dimmnet_requests, sizeof(pml_dimmnet_req_t), 64,
                               OBJ_CLASS(pml_dimmnet_req_t), 0, 0, 64, -1, 64, NULL, 0, NULL, NULL, NULL)) {
        OBJ_DESTRUCT(&mca_pml_dimmnet_requests);
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
        OMPI_REQUEST_FINI(&mca_pml_dimmnet_sent);
        OBJ_DESTRUCT(&mca_pml_dimmnet_sent);
        OBJ_DESTRUCT(&mca_pml_dimmnet_requests);
    }
}
