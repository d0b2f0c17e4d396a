/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pml_dimmnet_persistent.c
 * Requests that are started again and again.
 */
#include "dn_config.h"

#include "pml_dimmnet.h"

typedef struct persistent {
    pml_dimmnet_req_t super;
    void *buf;
    size_t count;
    ompi_datatype_t *type; /**< held */
    int rank;
    int tag;
    mca_pml_base_send_mode_t mode; /**< of a send */
    bool sends;
} persistent_t;

static void persistent_construct(persistent_t *persistent)
{
    OMPI_REQUEST_INIT(&persistent->super.ompi, true);
    persistent->type = NULL;
}

static void persistent_destruct(persistent_t *persistent)
{
    OBJ_RELEASE(persistent->type);
}

static OBJ_CLASS_INSTANCE(persistent_t, pml_dimmnet_req_t, persistent_construct, persistent_destruct);

/** @return NULL: memory ran out. */
static persistent_t *persistent_new(const void *buf, size_t count, ompi_datatype_t *type, int rank, int tag,
                                    struct ompi_communicator_t *comm)
{
    persistent_t *persistent = OBJ_NEW(persistent_t);

    if (NULL != persistent) {
        persistent->buf = (void *) (uintptr_t) buf;
        persistent->count = count;
        persistent->type = type;
        persistent->rank = rank;
        persistent->tag = tag;
        persistent->super.ompi.req_mpi_object.comm = comm;
        OBJ_RETAIN(type);
        OBJ_RETAIN(comm);
    }
    return persistent;
}

int mca_pml_dimmnet_isend_init(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                               mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                               ompi_request_t **request)
{
    persistent_t *persistent = persistent_new(buf, count, type, dst, tag, comm);

    if (NULL == persistent) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    persistent->sends = true;
    persistent->mode = mode;
    persistent->super.ompi.req_status.MPI_SOURCE = comm->c_my_rank;
    persistent->super.ompi.req_status.MPI_TAG = tag;
    persistent->super.ompi.req_status._ucount = count * type->super.size;
    *request = &persistent->super.ompi;
    return OMPI_SUCCESS;
}

int mca_pml_dimmnet_irecv_init(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                               struct ompi_communicator_t *comm, ompi_request_t **request)
{
    persistent_t *persistent = persistent_new(buf, count, type, src, tag, comm);

    if (NULL == persistent) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    persistent->sends = false;
    *request = &persistent->super.ompi;
    return OMPI_SUCCESS;
}

static int persistent_start(persistent_t *persistent)
{
    pml_dimmnet_req_t *request = &persistent->super;
    int rc;

    mca_pml_dimmnet_request_release(request);
    mca_pml_dimmnet_request_begin(request);
    if (!persistent->sends) {
        return mca_pml_dimmnet_recv_start(request, persistent->buf, persistent->count, persistent->type,
                                          persistent->rank, persistent->tag);
    }
    if (MCA_PML_BASE_SEND_BUFFERED != persistent->mode) {
        return mca_pml_dimmnet_send_start(request, persistent->buf, persistent->count, persistent->type,
                                          persistent->rank, persistent->tag, persistent->mode);
    }
    /* For the user, a buffered send has ended when the message is copied. */
    request->sends = true;
    rc = mca_pml_dimmnet_send(persistent->buf, persistent->count, persistent->type, persistent->rank,
                              persistent->tag, persistent->mode, request->ompi.req_mpi_object.comm);
    if (OMPI_SUCCESS == rc) {
        mca_pml_dimmnet_request_end(request);
    }
    return rc;
}

int mca_pml_dimmnet_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        /* Open MPI does not look whether a message is under way. */
        if (!requests[i]->req_persistent || !REQUEST_COMPLETE(requests[i])) {
            return MPI_ERR_REQUEST;
        }
        const int rc = persistent_start((persistent_t *) requests[i]);
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
            /* The request is left as if it had not been started. */
            mca_pml_dimmnet_request_release((pml_dimmnet_req_t *) requests[i]);
            requests[i]->req_complete = REQUEST_COMPLETED;
            requests[i]->req_state = OMPI_REQUEST_INACTIVE;
            return rc;
        }
    }
    return OMPI_SUCCESS;
}
