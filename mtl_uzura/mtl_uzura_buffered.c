/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_buffered.c
 * Buffered sends: MPI_Bsend, MPI_Ibsend, MPI_Bsend_init.
 *
 * For its user a buffered send has ended when the message is copied; the copy is sent, and freed, by a request that the
 * user never sees. pml/cm has one request for both: with several threads, who frees it as a user and who completes it as
 * a message may both put it back into its list. And a persistent one sends the data of its first start again, or counts
 * bytes as elements when it starts anew and reads beyond its memory. So nothing of pml/cm is used here.
 *
 * As with pml/ob1, the user's buffer is for messages above the eager limit; a shorter one that finds no room in the
 * peer's ring waits in memory of our own.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/pml.h"
#include "opal/datatype/opal_convertor.h"

/** A message that was copied. */
typedef struct copy {
    uzura_request_t request;
    bool attached; /**< its bytes are in the user's buffer, otherwise right behind */
    uint8_t data[];
} copy_t;

/** Nobody waits for it. */
static void copy_complete(struct mca_mtl_request_t *mtl_request)
{
    copy_t *copy = (copy_t *) mtl_request;

    if (copy->attached) {
        (void) mca_pml_base_bsend_request_free(copy->request.buffer);
    }
    free(copy);
}

/**
 * Memory for a message. The user's buffer is asked twice: to have been refused makes progress, by which messages leave it.
 * @param[out] to_p  Where its bytes go.
 */
static copy_t *copy_new(size_t len, bool eager, uint8_t **to_p)
{
    copy_t *copy = malloc(sizeof(*copy) + (eager ? len : 0));

    if (NULL == copy) {
        return NULL;
    }
    copy->attached = !eager;
    *to_p = copy->data;
    for (int tries = 0; !eager && tries < 2; tries++) {
        *to_p = mca_pml_base_bsend_request_alloc_buf(len);
        if (NULL != *to_p) {
            break;
        }
    }
    if (NULL == *to_p) {
        free(copy);
        return NULL;
    }
    memset(&copy->request, 0, sizeof(copy->request));
    copy->request.super.completion_callback = copy_complete;
    return copy;
}

static void pack(uint8_t *to, size_t len, const void *buf, size_t count, const ompi_datatype_t *type)
{
    struct iovec iov = {.iov_base = (void *) to, .iov_len = len};
    opal_convertor_t convertor;
    uint32_t iov_count = 1;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    (void) opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buf, 0,
                                                    &convertor);
    (void) opal_convertor_pack(&convertor, &iov, &iov_count, &len);
    OBJ_DESTRUCT(&convertor);
}

int mtl_uzura_send_buffered(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                            struct ompi_communicator_t *comm)
{
    const size_t len = count * type->super.size;
    const uzura_endpoint_t *endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, dst));
    uint8_t *to;

    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return OMPI_ERR_UNREACH;
    }
    copy_t *copy = copy_new(len, len <= endpoint->eager_limit, &to);
    if (NULL == copy) {
        return MPI_ERR_BUFFER;
    }
    if (0 != len) {
        pack(to, len, buf, count, type);
    }
    int rc = mtl_uzura_start_send(&copy->request, comm, dst, tag, to, len, false);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        copy->request.buffer = to;
        copy_complete(&copy->request.super);
    }
    return rc;
}

/** A request of MPI_Bsend_init. */
typedef struct persistent {
    ompi_request_t ompi;
    const void *buf;
    size_t count;
    ompi_datatype_t *type;
    int dst;
    int tag;
} persistent_t;

/** A started one is complete at once. */
static int persistent_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        const persistent_t *persistent = (persistent_t *) requests[i];
        ompi_request_t *ompi = requests[i];

        int rc = mca_pml.pml_send(persistent->buf, persistent->count, persistent->type, persistent->dst,
                                  persistent->tag, MCA_PML_BASE_SEND_BUFFERED, ompi->req_mpi_object.comm);
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
            return rc;
        }
        ompi->req_state = OMPI_REQUEST_ACTIVE;
        ompi->req_complete = REQUEST_PENDING;
        ompi->req_status.MPI_ERROR = MPI_SUCCESS;
        ompi->req_status._cancelled = 0;
        ompi_request_complete(ompi, true);
    }
    return OMPI_SUCCESS;
}

static int persistent_free(ompi_request_t **request)
{
    persistent_t *persistent = (persistent_t *) *request;

    OBJ_RELEASE(persistent->ompi.req_mpi_object.comm);
    OMPI_DATATYPE_RELEASE(persistent->type);
    OMPI_REQUEST_FINI(&persistent->ompi);
    OBJ_RELEASE(persistent);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/** What has been copied is sent. */
static int persistent_cancel(ompi_request_t *request, int flag)
{
    return OMPI_SUCCESS;
}

static OBJ_CLASS_INSTANCE(persistent_t, ompi_request_t, NULL, NULL);

int mtl_uzura_init_buffered(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                            struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    persistent_t *persistent = OBJ_NEW(persistent_t);

    if (NULL == persistent) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    OMPI_REQUEST_INIT(&persistent->ompi, true);
    OBJ_RETAIN(comm);
    OMPI_DATATYPE_RETAIN(type);
    persistent->ompi.req_type = OMPI_REQUEST_PML;
    persistent->ompi.req_start = persistent_start;
    persistent->ompi.req_free = persistent_free;
    persistent->ompi.req_cancel = persistent_cancel;
    persistent->ompi.req_mpi_object.comm = comm;
    persistent->ompi.req_status.MPI_SOURCE = comm->c_my_rank;
    persistent->ompi.req_status.MPI_TAG = tag;
    persistent->ompi.req_status._ucount = count * type->super.size;
    persistent->buf = buf;
    persistent->count = count;
    persistent->type = type;
    persistent->dst = dst;
    persistent->tag = tag;
    *request = &persistent->ompi;
    return OMPI_SUCCESS;
}
