/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_send.c
 * Sending: at once when there is room, else in order behind what waits already.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal_progress.h"

/** The bytes to send: where they lie together, or NULL when they have to be packed. */
static uint8_t *source_of(struct opal_convertor_t *convertor, size_t *len)
{
    void *data = NULL;

    /* For contiguous data pml/cm mostly sets these fields alone; what it prepares in full is flagged. */
    if (0 == (CONVERTOR_SEND & convertor->flags)) {
        *len = convertor->local_size;
        return convertor->pBaseBuf;
    }
    opal_convertor_get_packed_size(convertor, len);
    if (0 != *len && !opal_convertor_need_buffers(convertor)) {
        opal_convertor_get_current_pointer(convertor, &data);
    }
    return data;
}

void mtl_uzura_pack(uzura_request_t *request, void *to, size_t len)
{
    struct iovec iov = {.iov_base = to, .iov_len = len};
    uint32_t count = 1;

    if (NULL != request->buffer) {
        dn_copy(to, request->buffer + request->done, len);
    } else if (OPAL_LIKELY(request->walks)) {
        (void) dn_prog_gather(to, &request->cursor, len);
    } else {
        (void) opal_convertor_pack(request->convertor, &iov, &count, &len);
    }
}

/** A message of envelope, perhaps the request's handle, and data that has to be packed. */
static dn_status_t send_packed(uzura_request_t *request, size_t head_len, const void *head)
{
    dn_window_t window;
    dn_status_t status = dn_botf_reserve(request->endpoint->peer, head_len + request->len, &window);

    if (DN_OK == status) {
        memcpy(window.data, head, head_len);
        mtl_uzura_pack(request, (uint8_t *) window.data + head_len, request->len);
        dn_botf_kick(request->endpoint->peer, &window, DN_CHAN_MTL, request->kind, head_len + request->len);
    }
    return status;
}

/** The first message of a request. */
static dn_status_t post(uzura_request_t *request)
{
    dn_peer_t *peer = request->endpoint->peer;
    struct {
        uzura_head_t head;
        uint64_t handle;
    } sync = {request->head, request->handle};
    const size_t head_len = UZURA_SYNC == request->kind ? sizeof(sync) : sizeof(request->head);
    uzura_rts_t rts;

    switch (request->kind) {
    case UZURA_EAGER:
    case UZURA_SYNC:
        if (NULL == request->buffer && 0 != request->len) {
            return send_packed(request, head_len, &sync);
        }
        return dn_botf(peer, DN_CHAN_MTL, request->kind, &sync, head_len, request->buffer, request->len);
    default:
        memset(&rts, 0, sizeof(rts));
        rts.head = request->head;
        rts.request = request->handle;
        rts.len = request->len;
        if (NULL != request->segment) {
            dn_segment_key(request->segment, &rts.key);
        }
        return dn_botf(peer, DN_CHAN_MTL, request->kind, &rts, sizeof(rts), NULL, 0);
    }
}

void mtl_uzura_send_finish(uzura_request_t *request)
{
    if (NULL != request->segment) {
        dn_segment_free(request->segment);
        request->segment = NULL;
    }
    if (NULL != request->super.ompi_req) {
        request->super.ompi_req->req_status.MPI_ERROR = MPI_SUCCESS;
    }
    mtl_uzura_complete(request);
}

/** The first message has left. @param[in] last  The request whose only message it was, or NULL. */
static void posted(uzura_endpoint_t *endpoint, const uzura_head_t *head, uzura_request_t *last)
{
    mtl_uzura_sent(endpoint, head);
    if (NULL != last) {
        mtl_uzura_send_finish(last);
    }
}

/** Wait for room, behind what waits already. */
static void wait_in_line(uzura_request_t *request)
{
    uzura_endpoint_t *endpoint = request->endpoint;

    request->state = UZURA_WAITS_ROOM;
    uzura_lock();
    uzura_put_last(&endpoint->first, &endpoint->last, request);
    mtl_uzura.queued = true;
    uzura_unlock();
}

/** It is in line no more. Called ahead of what uses `next` for something else, or gives the request away: the answer to its
 * first message may come to another thread before the one that sent that message has taken it out of the line. */
static void leave_line(uzura_request_t *request)
{
    uzura_endpoint_t *endpoint = request->endpoint;

    uzura_lock();
    if (request == endpoint->first) {
        endpoint->first = request->next;
        endpoint->left++;
    }
    uzura_unlock();
}

/**
 * Send the first message or have it wait.
 * The state is set before: the answer may come, and complete the request, while dn_botf() returns.
 */
static int start(uzura_request_t *request)
{
    uzura_endpoint_t *endpoint = request->endpoint;
    /* Another thread may take the answer, and free the request, while post() returns. */
    const uzura_head_t head = request->head;
    const bool ends = UZURA_EAGER == request->kind;
    dn_status_t status = DN_ERR_AGAIN;

    if (NULL == endpoint->first) {
        status = post(request);
    }
    if (DN_OK == status) {
        posted(endpoint, &head, ends ? request : NULL);
        return OMPI_SUCCESS;
    }
    if (DN_ERR_AGAIN == status) {
        wait_in_line(request);
        return OMPI_SUCCESS;
    }
    if (DN_ERR_UNREACH == status) {
        mtl_uzura_lost(endpoint);
    }
    if (0 != request->handle) {
        mtl_uzura_handle_drop(request);
    }
    if (NULL != request->segment) {
        dn_segment_free(request->segment);
    }
    return dn_ompi_status(status);
}

/** What the receiver needs to fetch the message, instead of its bytes. */
static void offer_bytes(uzura_request_t *request)
{
    request->kind = UZURA_RTS_PACKED;
    if (NULL != request->buffer
        && DN_OK == dn_segment_register(mtl_uzura.port, request->buffer, request->len, &request->segment)) {
        request->kind = UZURA_RTS;
    }
}

/** A message that has waited while its receiver has had too many: announce it. Without a handle it goes as planned. */
static void hold_back(uzura_request_t *request)
{
    if (OPAL_UNLIKELY(request->endpoint->hold)
        && (UZURA_SYNC == request->kind
            || (UZURA_EAGER == request->kind && mtl_uzura_handle_take(request)))) {
        offer_bytes(request);
    }
}

int mtl_uzura_send_waiting(uzura_endpoint_t *endpoint)
{
    int events = 0;

    while (NULL != endpoint->first) {
        uzura_request_t *request = endpoint->first;
        const uint64_t left = endpoint->left;

        hold_back(request);
        request->state = UZURA_WAITS_REPLY;
        /* Another thread may take the answer, and complete the request, while post() returns. */
        const uzura_head_t head = request->head;
        const bool ends = UZURA_EAGER == request->kind;
        dn_status_t status = post(request);

        if (DN_ERR_AGAIN == status) {
            request->state = UZURA_WAITS_ROOM;
            break;
        }
        if (DN_OK != status) {
            mtl_uzura_lost(endpoint);
            break;
        }
        uzura_lock();
        if (left == endpoint->left) {
            endpoint->first = request->next;
            endpoint->left++;
        }
        uzura_unlock();
        posted(endpoint, &head, ends ? request : NULL);
        events++;
    }
    return events;
}

/** Choose how the message goes, and what the receiver needs to fetch it. @return false: memory ran out. */
static bool plan(uzura_request_t *request, bool synchronous)
{
    const uzura_endpoint_t *endpoint = request->endpoint;

    request->state = UZURA_WAITS_REPLY;
    if (request->len <= endpoint->eager_limit && !endpoint->hold) {
        request->kind = synchronous ? UZURA_SYNC : UZURA_EAGER;
    } else {
        offer_bytes(request);
    }
    if (UZURA_EAGER == request->kind || mtl_uzura_handle_take(request)) {
        return true;
    }
    if (NULL != request->segment) {
        dn_segment_free(request->segment);
    }
    return false;
}

/** Send what the caller has said where it lies: buffer, len, walks and, if need be, convertor are set. */
static int begin(uzura_request_t *request, uzura_endpoint_t *endpoint, struct ompi_communicator_t *comm,
                 int tag, bool synchronous)
{
    request->endpoint = endpoint;
    request->head = mtl_uzura_envelope(comm, tag);
    request->segment = NULL;
    request->handle = 0;
    request->done = 0;
    if (mtl_uzura_push(request)) {
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(!plan(request, synchronous))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return start(request);
}

int mtl_uzura_start_send(uzura_request_t *request, struct ompi_communicator_t *comm, int dest, int tag,
                         void *buffer, size_t len, bool synchronous)
{
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, dest));

    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return OMPI_ERR_UNREACH;
    }
    request->buffer = buffer;
    request->len = len;
    request->walks = false;
    return begin(request, endpoint, comm, tag, synchronous);
}

int mtl_uzura_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                    struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
                    mca_mtl_request_t *mtl_request)
{
    uzura_request_t *request = (uzura_request_t *) mtl_request;
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, dest));

    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return OMPI_ERR_UNREACH;
    }
    request->convertor = convertor;
    request->buffer = source_of(convertor, &request->len);
    uzura_find_program(request);
    return begin(request, endpoint, comm, tag, MCA_PML_BASE_SEND_SYNCHRONOUS == mode);
}

/** A request on the stack of mtl_uzura_send(). It has no ompi_request_t. */
typedef struct blocking {
    uzura_request_t request;
    atomic_bool returned; /**< nobody touches the request any more */
} blocking_t;

static void blocking_complete(struct mca_mtl_request_t *mtl_request)
{
    /* Pairs with the acquire in send_long(), whose stack this is. */
    atomic_store_explicit(&((blocking_t *) mtl_request)->returned, true, memory_order_release);
}

/** A blocking send that is not one eager message of contiguous data. */
static int __attribute__((noinline))
send_long(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
          struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    blocking_t blocking = {.request.super.completion_callback = blocking_complete};
    int rc = mtl_uzura_isend(mtl, comm, dest, tag, convertor, mode, true, &blocking.request.super);

    while (OMPI_SUCCESS == rc && !atomic_load_explicit(&blocking.returned, memory_order_acquire)) {
        opal_progress();
    }
    return rc;
}

int mtl_uzura_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
                   struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint(ompi_comm_peer_lookup(comm, dest));
    size_t len;

    if (OPAL_UNLIKELY(NULL == endpoint)) {
        return OMPI_ERR_UNREACH;
    }
    const uint8_t *data = source_of(convertor, &len);
    if (OPAL_LIKELY(len <= endpoint->eager_limit && (NULL != data || 0 == len) && NULL == endpoint->first
                    && !endpoint->hold && MCA_PML_BASE_SEND_SYNCHRONOUS != mode)) {
        const uzura_head_t head = mtl_uzura_envelope(comm, tag);
        if (OPAL_LIKELY(
                DN_OK == dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_EAGER, &head, sizeof(head), data, len))) {
            mtl_uzura_sent(endpoint, &head);
            return OMPI_SUCCESS;
        }
    }
    return send_long(mtl, comm, dest, tag, convertor, mode);
}

void mtl_uzura_take_done(dn_peer_t *src, uint64_t handle)
{
    uzura_request_t *request = mtl_uzura_handle_find(handle, src, UZURA_WAITS_REPLY);

    if (NULL == request) {
        mtl_uzura.dropped++;
        return;
    }
    mtl_uzura_handle_drop(request);
    leave_line(request);
    mtl_uzura_send_finish(request);
}

void mtl_uzura_take_cts(dn_peer_t *src, const uzura_cts_t *cts)
{
    uzura_request_t *request = mtl_uzura_handle_find(cts->request, src, UZURA_WAITS_REPLY);

    if (NULL == request || cts->len > request->len) {
        mtl_uzura.dropped++;
        return;
    }
    mtl_uzura_handle_drop(request);
    request->remote = cts->receiver;
    request->wanted = cts->len;
    request->state = UZURA_SENDS;
    leave_line(request);
    mtl_uzura_busy(request);
}

/** The next piece. */
static dn_status_t send_piece(uzura_request_t *request)
{
    const size_t left = request->wanted - request->done;
    const size_t len = left < request->endpoint->piece_max ? left : request->endpoint->piece_max;
    const uzura_frag_t frag = {.receiver = request->remote};
    dn_peer_t *peer = request->endpoint->peer;
    dn_window_t window;

    dn_status_t status = dn_botf_reserve(peer, sizeof(frag) + len, &window);
    if (DN_OK == status) {
        memcpy(window.data, &frag, sizeof(frag));
        mtl_uzura_pack(request, (uint8_t *) window.data + sizeof(frag), len);
        dn_botf_kick(peer, &window, DN_CHAN_MTL, UZURA_FRAG, sizeof(frag) + len);
        request->done += len;
    }
    return status;
}

bool mtl_uzura_send_pieces(uzura_request_t *request, int *events)
{
    while (request->done < request->wanted) {
        const dn_status_t status = send_piece(request);

        if (DN_ERR_AGAIN == status) {
            return false;
        }
        if (DN_OK != status) {
            mtl_uzura_lost(request->endpoint);
            return false;
        }
        (*events)++;
    }
    mtl_uzura_send_finish(request);
    return true;
}
