/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_direct.c
 * The direct way around pml/cm for contiguous memory.
 *
 * pml/cm makes a request and a convertor for every call, which touches more memory than an eager message
 * carries: of the 66 ns that an 8 B message cost in a window of 64, most went there. So send, isend, recv and
 * irecv are taken over from it, and handed back to it for all that is not contiguous, and for blocking sends that are
 * not eager. Buffered sends are taken over whole: mtl_uzura_buffered.c says why. Whatever else
 * pml/cm does (persistent, probed, ...) it goes on doing. Where its functions have
 * been replaced already, by pml/monitoring say, they stay as they are.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include <dlfcn.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"

/** pml/cm's own. */
static mca_pml_base_module_send_fn_t cm_send;
static mca_pml_base_module_isend_fn_t cm_isend;
static mca_pml_base_module_recv_fn_t cm_recv;
static mca_pml_base_module_irecv_fn_t cm_irecv;
static mca_pml_base_module_isend_init_fn_t cm_isend_init;

/** What MPI_Isend returns for a message that has left: complete from the start, never freed. */
static ompi_request_t sent;

/** A send or a receive that pml/cm knows nothing of. */
typedef struct direct {
    ompi_request_t ompi;
    uzura_request_t request;
} direct_t;

static opal_free_list_t requests;

/** Whether @p count elements lie together: where, and how many bytes. */
static inline bool contiguous(const void *buf, size_t count, const ompi_datatype_t *type, uint8_t **data,
                              size_t *len)
{
    *data = (uint8_t *) (uintptr_t) buf + type->super.true_lb;
    *len = count * type->super.size;
    return opal_datatype_is_contiguous_memory_layout(&type->super, (int32_t) count);
}

/** Send as one eager message, now or not at all. */
static inline bool send_eager(const void *buf, size_t count, const ompi_datatype_t *type, int dst, int tag,
                              mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    uint8_t *data;
    size_t len;

    if (OPAL_UNLIKELY(!contiguous(buf, count, type, &data, &len) || MCA_PML_BASE_SEND_SYNCHRONOUS == mode)) {
        return false;
    }
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, dst));
    if (OPAL_UNLIKELY(NULL == endpoint || NULL != endpoint->first || endpoint->hold
                      || len > endpoint->eager_limit)) {
        return false;
    }
    const uzura_head_t head = mtl_uzura_envelope(comm, tag);
    if (OPAL_UNLIKELY(DN_OK
                      != dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_EAGER, &head, sizeof(head), data, len))) {
        return false;
    }
    mtl_uzura_sent(endpoint, &head);
    return true;
}

static int direct_send(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                       mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    if (OPAL_LIKELY(send_eager(buf, count, type, dst, tag, mode, comm))) {
        return OMPI_SUCCESS;
    }
    if (MCA_PML_BASE_SEND_BUFFERED == mode) {
        return mtl_uzura_send_buffered(buf, count, type, dst, tag, comm);
    }
    return cm_send(buf, count, type, dst, tag, mode, comm);
}

/** A request that waits for its message. @return NULL: memory ran out. */
static direct_t *request_get(struct ompi_communicator_t *comm)
{
    direct_t *direct = (direct_t *) opal_free_list_get(&requests);

    if (OPAL_UNLIKELY(NULL == direct)) {
        return NULL;
    }
    direct->ompi.req_complete = REQUEST_PENDING;
    direct->ompi.req_complete_cb = NULL;
    direct->ompi.req_state = OMPI_REQUEST_ACTIVE;
    /* Open MPI looks for errors in requests that have not ended, too. */
    direct->ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    direct->ompi.req_status._cancelled = 0;
    direct->ompi.req_mpi_object.comm = comm;
    OBJ_RETAIN(comm);
    return direct;
}

/** @return rc: of a request that was started, and is given back where that has failed. */
static int request_started(direct_t *direct, int rc)
{
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        OBJ_RELEASE(direct->ompi.req_mpi_object.comm);
        opal_free_list_return(&requests, &direct->ompi.super);
    }
    return rc;
}

/**
 * A send that waits. With threads pml/cm's own request may be freed twice, by who waits for it and by who completes it. What is
 * left to pml/cm (data with gaps, blocking sends that are not eager, persistent requests) has that fault still: only a PML of our
 * own would end it.
 */
static int isend_waiting(uint8_t *data, size_t len, int dst, int tag, bool synchronous,
                         struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    direct_t *direct = request_get(comm);

    if (NULL == direct) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    direct->ompi.req_status.MPI_SOURCE = comm->c_my_rank;
    direct->ompi.req_status.MPI_TAG = tag;
    direct->ompi.req_status._ucount = len;
    *request = &direct->ompi;
    return request_started(direct,
                           mtl_uzura_start_send(&direct->request, comm, dst, tag, data, len, synchronous));
}

static int direct_isend(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                        mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                        struct ompi_request_t **request)
{
    uint8_t *data;
    size_t len;

    if (OPAL_LIKELY(send_eager(buf, count, type, dst, tag, mode, comm))) {
        *request = &sent;
        return OMPI_SUCCESS;
    }
    if (MCA_PML_BASE_SEND_BUFFERED == mode) {
        *request = &sent;
        return mtl_uzura_send_buffered(buf, count, type, dst, tag, comm);
    }
    if (contiguous(buf, count, type, &data, &len)) {
        return isend_waiting(data, len, dst, tag, MCA_PML_BASE_SEND_SYNCHRONOUS == mode, comm, request);
    }
    return cm_isend(buf, count, type, dst, tag, mode, comm, request);
}

static int direct_isend_init(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
                             mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                             struct ompi_request_t **request)
{
    if (MCA_PML_BASE_SEND_BUFFERED == mode) {
        return mtl_uzura_init_buffered(buf, count, type, dst, tag, comm, request);
    }
    return cm_isend_init(buf, count, type, dst, tag, mode, comm, request);
}

/** A receive on the stack of direct_recv(). */
typedef struct waiting {
    uzura_request_t request;
    atomic_bool returned; /**< nobody touches the request any more */
} waiting_t;

static void waiting_complete(struct mca_mtl_request_t *mtl_request)
{
    /* Pairs with the acquire in direct_recv(): the status comes first. */
    atomic_store_explicit(&((waiting_t *) mtl_request)->returned, true, memory_order_release);
}

/** Is the receive about to be posted the only one, and nothing kept that it could take? */
static inline bool next_in_order(void)
{
    return 0 == dn_match_posted_count(&mtl_uzura.match) && 0 == dn_match_kept_count(&mtl_uzura.match);
}

/**
 * Wait a while for an eager message that is the next one of its source, and take it where it lies: no handler is
 * called, nothing is posted and matched. As long as nothing else is posted or kept, it is this receive's by MPI's
 * order, too.
 */
static inline bool take_next(uint8_t *to, size_t room, int src, int tag, struct ompi_communicator_t *comm,
                             ompi_status_public_t *status)
{
    const uint32_t context = (uint32_t) comm->c_contextid;
    const unsigned polls = mtl_uzura.oversubscribed ? 1 : mtl_uzura_number[MTL_UZURA_SPIN_POLLS].value;
    uzura_endpoint_t *endpoint;
    dn_message_t message;
    uzura_head_t head;
    dn_status_t seen;

    if (MPI_ANY_SOURCE == src || opal_using_threads() || !next_in_order()) {
        return false;
    }
    endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, src));
    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return false;
    }
    for (unsigned i = 1; DN_ERR_AGAIN == (seen = dn_peek(endpoint->peer, DN_CHAN_MTL, &message)); i++) {
        if (i >= polls) {
            return false;
        }
        if (OPAL_UNLIKELY(0 == i % UZURA_POLLS_OF_SOURCE)) {
            opal_progress();
            if (!next_in_order()) {
                return false;
            }
        }
    }
    if (OPAL_UNLIKELY(DN_OK != seen || UZURA_EAGER != message.tag || sizeof(head) > message.len)) {
        return false;
    }
    memcpy(&head, message.data, sizeof(head));
    const size_t len = message.len - sizeof(head);
    if (OPAL_UNLIKELY(
            head.context != context || head.source != src
            || !dn_match_takes(src, mtl_uzura_wanted_tag(tag), mtl_uzura_ignore(tag), head.source, head.tag)
            || !mtl_uzura_is_tag(head.tag) || len > room)) {
        return false;
    }
    dn_copy(to, (const uint8_t *) message.data + sizeof(head), len);
    dn_take(endpoint->peer, &message);
    endpoint->seen++;
    if (MPI_STATUS_IGNORE != status) {
        mtl_uzura_set_status(status, src, mtl_uzura_mpi_tag(head.tag), len);
    }
    return true;
}

static int direct_recv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
                       struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_request_t ompi;
    waiting_t waiting;
    uint8_t *data;
    size_t len;

    if (OPAL_UNLIKELY(!contiguous(buf, count, type, &data, &len))) {
        return cm_recv(buf, count, type, src, tag, comm, status);
    }
    if (OPAL_LIKELY(take_next(data, len, src, tag, comm, status))) {
        return MPI_SUCCESS;
    }
    waiting.request.super.ompi_req = &ompi;
    waiting.request.super.completion_callback = waiting_complete;
    atomic_init(&waiting.returned, false);
    int rc = mtl_uzura_start_receive(&waiting.request, comm, src, tag, data, len, true);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
        return rc;
    }
    while (OPAL_UNLIKELY(!atomic_load_explicit(&waiting.returned, memory_order_acquire))) {
        opal_progress();
    }
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, ompi.req_status, false);
    }
    return ompi.req_status.MPI_ERROR;
}

static void direct_complete(struct mca_mtl_request_t *mtl_request)
{
    ompi_request_complete(mtl_request->ompi_req, true);
}

static int direct_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
                        struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    uint8_t *data;
    size_t len;

    if (OPAL_UNLIKELY(!contiguous(buf, count, type, &data, &len))) {
        return cm_irecv(buf, count, type, src, tag, comm, request);
    }
    direct_t *direct = request_get(comm);
    if (OPAL_UNLIKELY(NULL == direct)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &direct->ompi;
    return request_started(direct,
                           mtl_uzura_start_receive(&direct->request, comm, src, tag, data, len, false));
}

static int direct_free(ompi_request_t **request);

static int direct_cancel(ompi_request_t *request, int flag)
{
    return mtl_uzura_cancel(&mtl_uzura.super, &((direct_t *) request)->request.super, flag);
}

static void direct_construct(direct_t *direct)
{
    ompi_request_t *ompi = &direct->ompi;

    OMPI_REQUEST_INIT(ompi, false);
    ompi->req_type = OMPI_REQUEST_PML;
    ompi->req_start = NULL;
    ompi->req_free = direct_free;
    ompi->req_cancel = direct_cancel;
    direct->request.super.ompi_req = ompi;
    direct->request.super.completion_callback = direct_complete;
}

static OBJ_CLASS_INSTANCE(direct_t, ompi_request_t, direct_construct, NULL);

/** Give back a request that is complete, or will be while nobody waits for it. */
static int recycle(ompi_request_t *request)
{
    OBJ_RELEASE(request->req_mpi_object.comm);
    OMPI_REQUEST_FINI(request);
    opal_free_list_return(&requests, &request->super);
    return 1;
}

static int direct_free(ompi_request_t **request)
{
    ompi_request_t *ompi = *request;

    *request = MPI_REQUEST_NULL;
    if (REQUEST_COMPLETE(ompi)) {
        (void) recycle(ompi);
    } else {
        (void) ompi_request_set_callback(ompi, recycle, NULL);
    }
    return OMPI_SUCCESS;
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

/** Whether a function is pml/cm's own. */
static bool is_cm(const void *fn)
{
    Dl_info info;

    return 0 != dladdr(fn, &info) && NULL != info.dli_fname
           && NULL != strstr(info.dli_fname, "mca_pml_cm.so");
}

void mtl_uzura_direct_open(void)
{
    if (NULL != cm_send || !is_cm((const void *) (uintptr_t) mca_pml.pml_send)
        || !is_cm((const void *) (uintptr_t) mca_pml.pml_isend)
        || !is_cm((const void *) (uintptr_t) mca_pml.pml_recv)
        || !is_cm((const void *) (uintptr_t) mca_pml.pml_irecv)
        || !is_cm((const void *) (uintptr_t) mca_pml.pml_isend_init)) {
        return;
    }
    OBJ_CONSTRUCT(&requests, opal_free_list_t);
    if (OPAL_SUCCESS
        != opal_free_list_init(&requests, sizeof(direct_t), 64, OBJ_CLASS(direct_t), 0, 0, 64, -1, 64, NULL,
                               0, NULL, NULL, NULL)) {
        OBJ_DESTRUCT(&requests);
        return;
    }
    OBJ_CONSTRUCT(&sent, ompi_request_t);
    OMPI_REQUEST_INIT(&sent, false);
    sent.req_type = OMPI_REQUEST_PML;
    sent.req_state = OMPI_REQUEST_ACTIVE;
    sent.req_free = sent_free;
    sent.req_cancel = sent_cancel;
    sent.req_mpi_object.comm = &ompi_mpi_comm_world.comm;
    sent.req_status.MPI_ERROR = MPI_SUCCESS;
    sent.req_status._cancelled = 0;
    sent.req_complete = REQUEST_COMPLETED;

    cm_send = mca_pml.pml_send;
    cm_isend = mca_pml.pml_isend;
    cm_recv = mca_pml.pml_recv;
    cm_irecv = mca_pml.pml_irecv;
    cm_isend_init = mca_pml.pml_isend_init;
    mca_pml.pml_send = direct_send;
    mca_pml.pml_isend = direct_isend;
    mca_pml.pml_recv = direct_recv;
    mca_pml.pml_irecv = direct_irecv;
    mca_pml.pml_isend_init = direct_isend_init;
}

void mtl_uzura_direct_close(void)
{
    if (NULL == cm_send) {
        return;
    }
    mca_pml.pml_send = cm_send;
    mca_pml.pml_isend = cm_isend;
    mca_pml.pml_recv = cm_recv;
    mca_pml.pml_irecv = cm_irecv;
    mca_pml.pml_isend_init = cm_isend_init;
    cm_send = NULL;
    OBJ_DESTRUCT(&sent);
    OBJ_DESTRUCT(&requests);
}
