/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_recv.c
 * Receiving: messages are matched where they arrive; what nobody waits for is kept.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "ompi/message/message.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

/** All is here; match() has set the rest of the status. */
static void finish(uzura_request_t *request)
{
    struct ompi_status_public_t *status = &request->super.ompi_req->req_status;

    status->MPI_ERROR = request->error;
    status->_cancelled = 0;
    mtl_uzura_complete(request);
}

/** Put bytes behind those that came before. What goes beyond the buffer has been cut off. */
static void fill(uzura_request_t *request, const void *data, size_t len)
{
    if (NULL != request->buffer) {
        dn_copy(request->buffer + request->done, data, len);
    } else if (request->walks) {
        (void) dn_prog_scatter(&request->cursor, data, len);
    } else if (0 != len) {
        struct iovec iov = {.iov_base = (void *) (uintptr_t) data, .iov_len = len};
        uint32_t count = 1;
        size_t unpacked = len;

        (void) opal_convertor_unpack(request->convertor, &iov, &count, &unpacked);
    }
    request->done += len;
}

/** The message of @p head, @p len bytes long, is this request's. As with pml/ob1 the status says how long it is, not how
 * much of it fits. */
static inline void match(uzura_request_t *request, const uzura_head_t *head, size_t len)
{
    struct ompi_status_public_t *status = &request->super.ompi_req->req_status;

    status->MPI_SOURCE = head->source;
    status->MPI_TAG = mtl_uzura_mpi_tag(head->tag);
    status->_ucount = len;
    request->done = 0;
    request->wanted = len;
    request->error = MPI_SUCCESS;
    if (OPAL_UNLIKELY(len > request->len)) {
        request->wanted = request->len;
        request->error = MPI_ERR_TRUNCATE;
    }
}

/** Say that the data is here, then complete. */
static void answer(uzura_request_t *request)
{
    request->state = UZURA_ANSWERS;
    if (!mtl_uzura_recv_again(request)) {
        mtl_uzura_busy(request);
    }
}

/** Choose the way of a long message whose memory lies together at both ends. */
static void choose_way(uzura_request_t *request)
{
    uzura_lock();
    request->way =
        dn_pace_choose(&request->endpoint->pace, mtl_uzura_number[MTL_UZURA_STREAM].value, request->wanted);
    uzura_unlock();
    request->started = mtl_uzura_now();
}

/** The bytes of a message whose way was chosen are here. */
static void learn_way(uzura_request_t *request)
{
    const uint64_t now = mtl_uzura_now();

    uzura_lock();
    dn_pace_learn(&request->endpoint->pace, request->way, request->wanted, request->started, now);
    uzura_unlock();
}

/** dn_comp_fn_t of a PULL. */
static void pulled(dn_comp_t *comp, dn_status_t status)
{
    uzura_request_t *request = (uzura_request_t *) ((uint8_t *) comp - offsetof(uzura_request_t, comp));

    if (DN_ERR_UNREACH == status) {
        mtl_uzura_lost(request->endpoint);
    }
    if (DN_OK != status) {
        request->error = MPI_ERR_OTHER;
    }
    if (DN_OK == status) {
        learn_way(request);
    }
    answer(request);
}

/** Ask for the bytes. */
static void ask(uzura_request_t *request)
{
    if (!mtl_uzura_handle_take(request)) {
        request->error = MPI_ERR_NO_MEM;
        request->wanted = 0;
        answer(request);
        return;
    }
    request->state = UZURA_ASKS;
    if (!mtl_uzura_recv_again(request)) {
        mtl_uzura_busy(request);
    }
}

/** @return false: no room for a PULL now. */
static bool start_pull(uzura_request_t *request)
{
    const dn_xfer_t xfer = {
        .local = request->buffer, .key = &request->key, .len = request->wanted, .comp = &request->comp};
    dn_status_t status;

    request->comp.fn = pulled;
    request->state = UZURA_PULLS;
    status = dn_pull(request->endpoint->peer, &xfer);
    switch (status) {
    case DN_INPROGRESS:
        break;
    case DN_ERR_AGAIN:
        request->state = UZURA_STARTS;
        return false;
    case DN_OK:
    case DN_ERR_UNREACH:
        pulled(&request->comp, status);
        break;
    default:
        request->way = DN_PACE_ONLY;
        ask(request);
        break;
    }
    return true;
}

/** A long message has been matched. */
static void fetch(uzura_request_t *request, enum uzura_kind kind)
{
    if (0 == request->wanted) {
        answer(request);
        return;
    }
    request->way = DN_PACE_ONLY;
    if (UZURA_RTS == kind && NULL != request->buffer) {
        choose_way(request);
    }
    if (DN_PACE_PULL != request->way) {
        ask(request);
    } else if (!start_pull(request)) {
        mtl_uzura_busy(request);
    }
}

bool mtl_uzura_recv_again(uzura_request_t *request)
{
    dn_peer_t *peer = request->endpoint->peer;
    dn_status_t status;

    switch (request->state) {
    case UZURA_STARTS:
        return start_pull(request);
    case UZURA_ASKS: {
        const uzura_cts_t cts = {request->remote, request->handle, request->wanted};
        /* Bytes may come before dn_botf() has returned. */
        request->state = UZURA_WAITS_BYTES;
        status = dn_botf(peer, DN_CHAN_MTL, UZURA_CTS, &cts, sizeof(cts), NULL, 0);
        if (DN_ERR_AGAIN == status) {
            request->state = UZURA_ASKS;
        }
        break;
    }
    default:
        status = dn_botf(peer, DN_CHAN_MTL, UZURA_DONE, &request->remote, sizeof(request->remote), NULL, 0);
        if (DN_ERR_AGAIN != status) {
            finish(request);
        }
        break;
    }
    return DN_ERR_AGAIN != status;
}

/** Account for bytes of a sender that wait unreceived; tell it when they become too many, and when they are few. */
static void account(uzura_endpoint_t *endpoint, size_t more, size_t less)
{
    const size_t limit = mtl_uzura_number[MTL_UZURA_KEPT_LIMIT].value;

    endpoint->kept_bytes += more - less;
    if (endpoint->holding ? endpoint->kept_bytes < limit / 2 : endpoint->kept_bytes > limit) {
        endpoint->holding = !endpoint->holding;
        endpoint->hold_due = true;
        mtl_uzura.queued = true;
    }
}

/** What a kept message counts for: what it takes here. */
static size_t kept_bytes(const uzura_kept_t *kept)
{
    return sizeof(*kept) + (UZURA_EAGER == kept->kind || UZURA_SYNC == kept->kind ? kept->len : 0);
}

/** Take a kept message off. The lock is held. */
static void take(uzura_kept_t *kept)
{
    dn_match_take(&mtl_uzura.match, &kept->msg);
    account(kept->endpoint, 0, kept_bytes(kept));
}

/** What a message says beyond its envelope. */
typedef struct arrival {
    enum uzura_kind kind;
    uzura_head_t head;
    uint64_t request;
    dn_key_t key; /**< UZURA_RTS only */
    size_t len;   /**< of the whole message */
    const uint8_t *data;
} arrival_t;

/** Receive a message that has been matched. */
static inline void deliver(uzura_request_t *request, const arrival_t *arrival, uzura_endpoint_t *endpoint)
{
    if (OPAL_UNLIKELY(0 != request->handle)) {
        mtl_uzura_announce_end(request);
    }
    match(request, &arrival->head, arrival->len);
    if (OPAL_LIKELY(UZURA_EAGER == arrival->kind)) {
        fill(request, arrival->data, request->wanted);
        finish(request);
        return;
    }
    request->remote = arrival->request;
    request->endpoint = endpoint;
    switch (arrival->kind) {
    case UZURA_SYNC:
        fill(request, arrival->data, request->wanted);
        answer(request);
        break;
    default:
        request->key = arrival->key;
        fetch(request, arrival->kind);
        break;
    }
}

static void deliver_kept(uzura_request_t *request, uzura_kept_t *kept)
{
    const arrival_t arrival = {.kind = kept->kind,
                               .head = {.source = kept->msg.source, .tag = kept->msg.tag},
                               .request = kept->request,
                               .key = kept->key,
                               .len = kept->len,
                               .data = kept->data};

    deliver(request, &arrival, kept->endpoint);
    free(kept);
}

/** Nobody waits for this message yet. The lock is held. @return false: memory ran out. */
static bool keep(uzura_endpoint_t *endpoint, const arrival_t *arrival)
{
    const size_t data_len = NULL == arrival->data ? 0 : arrival->len;
    uzura_kept_t *kept = malloc(sizeof(*kept) + data_len);

    if (NULL == endpoint || NULL == kept) {
        free(kept);
        return false;
    }
    kept->msg.context = arrival->head.context;
    kept->msg.source = arrival->head.source;
    kept->msg.tag = arrival->head.tag;
    kept->kind = arrival->kind;
    kept->endpoint = endpoint;
    kept->request = arrival->request;
    kept->key = arrival->key;
    kept->len = arrival->len;
    if (0 != data_len) {
        memcpy(kept->data, arrival->data, data_len);
    }
    account(endpoint, kept_bytes(kept), 0);
    dn_match_keep(&mtl_uzura.match, &kept->msg);
    return true;
}

static inline uzura_request_t *request_of(dn_match_recv_t *posted)
{
    return (uzura_request_t *) ((uint8_t *) posted - offsetof(uzura_request_t, posted));
}

/** Find the receive for a message, or keep the message. */
static void arrive(dn_peer_t *src, const arrival_t *arrival)
{
    const uzura_head_t *head = &arrival->head;
    bool kept = false;

    uzura_lock();
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(src);
    dn_match_recv_t *found = dn_match_arrive(&mtl_uzura.match, head->context, head->source, head->tag);
    uzura_request_t *request = NULL == found ? NULL : request_of(found);
    if (OPAL_LIKELY(NULL != endpoint)) {
        endpoint->seen++;
    }
    if (OPAL_LIKELY(NULL != found)) {
        /* No longer to be cancelled. */
        request->state = UZURA_MATCHED;
    } else {
        kept = keep(endpoint, arrival);
    }
    uzura_unlock();
    if (OPAL_LIKELY(NULL != found)) {
        deliver(request, arrival, endpoint);
    } else if (!kept) {
        dn_ompi_help("no-memory", opal_process_info.nodename);
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
    }
}

/** Bytes of a piece: complete after the last. */
static void take_piece(dn_peer_t *src, uint64_t handle, const uint8_t *data, size_t len)
{
    uzura_request_t *request = mtl_uzura_handle_find(handle, src, UZURA_WAITS_BYTES);

    if (NULL == request || len > request->wanted - request->done) {
        mtl_uzura.dropped++;
        return;
    }
    fill(request, data, len);
    if (request->done == request->wanted) {
        mtl_uzura_handle_drop(request);
        if (DN_PACE_ONLY != request->way) {
            learn_way(request);
        }
        finish(request);
    }
}

/** The message of an announced receive is on its way. */
static void take_takes(dn_peer_t *src, const uzura_takes_t *takes)
{
    uzura_request_t *request = mtl_uzura_handle_find(takes->receiver, src, UZURA_POSTED);

    if (NULL == request || takes->len > request->len) {
        mtl_uzura.dropped++;
        return;
    }
    const uzura_head_t head = {.source = request->posted.source, .tag = request->posted.tag};
    uzura_lock();
    dn_match_cancel(&mtl_uzura.match, &request->posted);
    request->state = UZURA_IS_PUSHED;
    uzura_unlock();
    request->endpoint->announced = NULL;
    match(request, &head, takes->len);
    request->remote = takes->request;
}

/** It has been written, or could not be. */
static void take_pushed(dn_peer_t *src, const uzura_pushed_t *pushed)
{
    uzura_request_t *request = mtl_uzura_handle_find(pushed->receiver, src, UZURA_IS_PUSHED);

    if (NULL == request) {
        mtl_uzura.dropped++;
        return;
    }
    mtl_uzura_handle_drop(request);
    dn_segment_free(request->segment);
    if (0 != pushed->done) {
        finish(request);
    } else {
        request->way = DN_PACE_ONLY;
        ask(request);
    }
}

static void set_hold(dn_peer_t *src, bool hold)
{
    uzura_lock();
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(src);
    if (NULL != endpoint) {
        endpoint->hold = hold;
    }
    uzura_unlock();
}

/** What follows the envelope, by kind. @return false: the message is malformed. */
static inline bool read_arrival(arrival_t *arrival, const uint8_t *data, size_t len)
{
    uzura_rts_t rts;

    if (sizeof(arrival->head) > len) {
        return false;
    }
    memcpy(&arrival->head, data, sizeof(arrival->head));
    if (0 > arrival->head.source || !mtl_uzura_is_tag(arrival->head.tag)) {
        return false;
    }
    arrival->request = 0;
    arrival->data = data + sizeof(arrival->head);
    arrival->len = len - sizeof(arrival->head);
    switch (arrival->kind) {
    case UZURA_EAGER:
        return true;
    case UZURA_SYNC:
        if (sizeof(arrival->request) > arrival->len) {
            return false;
        }
        memcpy(&arrival->request, arrival->data, sizeof(arrival->request));
        arrival->data += sizeof(arrival->request);
        arrival->len -= sizeof(arrival->request);
        return true;
    default:
        if (sizeof(rts) != len) {
            return false;
        }
        memcpy(&rts, data, sizeof(rts));
        arrival->request = rts.request;
        arrival->key = rts.key;
        arrival->len = rts.len;
        arrival->data = NULL;
        return UZURA_RTS_PACKED == arrival->kind || rts.key.len == rts.len;
    }
}

void mtl_uzura_receive(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint64_t handle = 0;
    union {
        uzura_cts_t cts;
        uzura_announce_t announce;
        uzura_takes_t takes;
        uzura_pushed_t pushed;
    } message;
    arrival_t arrival;

    (void) arg;
    switch (tag) {
    case UZURA_EAGER:
    case UZURA_SYNC:
    case UZURA_RTS:
    case UZURA_RTS_PACKED:
        arrival.kind = (enum uzura_kind) tag;
        if (OPAL_LIKELY(read_arrival(&arrival, data, len))) {
            arrive(src, &arrival);
            return;
        }
        break;
    case UZURA_CTS:
        if (sizeof(message.cts) == len) {
            memcpy(&message.cts, data, len);
            mtl_uzura_take_cts(src, &message.cts);
            return;
        }
        break;
    case UZURA_ANNOUNCE:
        if (sizeof(message.announce) == len) {
            memcpy(&message.announce, data, len);
            mtl_uzura_take_announce(src, &message.announce);
            return;
        }
        break;
    case UZURA_TAKES:
        if (sizeof(message.takes) == len) {
            memcpy(&message.takes, data, len);
            take_takes(src, &message.takes);
            return;
        }
        break;
    case UZURA_PUSHED:
        if (sizeof(message.pushed) == len) {
            memcpy(&message.pushed, data, len);
            take_pushed(src, &message.pushed);
            return;
        }
        break;
    case UZURA_FRAG:
        if (sizeof(uzura_frag_t) <= len) {
            memcpy(&handle, data, sizeof(handle));
            take_piece(src, handle, (const uint8_t *) data + sizeof(uzura_frag_t),
                       len - sizeof(uzura_frag_t));
            return;
        }
        break;
    case UZURA_DONE:
        if (sizeof(handle) == len) {
            memcpy(&handle, data, sizeof(handle));
            mtl_uzura_take_done(src, handle);
            return;
        }
        break;
    case UZURA_HOLD:
    case UZURA_RELEASE:
        set_hold(src, UZURA_HOLD == tag);
        return;
    default:
        break;
    }
    mtl_uzura.dropped++;
}

/** Where to put what comes. */
static inline void prepare(uzura_request_t *request, void *buffer, size_t len)
{
    request->buffer = buffer;
    request->len = len;
    request->handle = 0;
    request->walks = false;
    request->state = UZURA_MATCHED;
}

static void prepare_convertor(uzura_request_t *request, struct opal_convertor_t *convertor)
{
    void *buffer = NULL;
    size_t len;

    opal_convertor_get_packed_size(convertor, &len);
    if (0 != len && !opal_convertor_need_buffers(convertor)) {
        opal_convertor_get_current_pointer(convertor, &buffer);
    }
    prepare(request, buffer, len);
    request->convertor = convertor;
    uzura_find_program(request);
}

/**
 * pml/cm keeps the request of a blocking receive on its stack, right above ours. Should another one ever
 * lie so, it is polled for some time and no harm is done.
 */
static inline bool is_blocking(const uzura_request_t *request)
{
    return (uintptr_t) request - (uintptr_t) __builtin_frame_address(0) < 4096;
}

/** Poll the source of a blocking receive; pml/cm goes on waiting where this ends. */
static void poll_source(uzura_request_t *request, uzura_endpoint_t *endpoint)
{
    const volatile enum uzura_state *state = &request->state;
    const unsigned polls = mtl_uzura_number[MTL_UZURA_SPIN_POLLS].value;

    for (unsigned i = 1; UZURA_COMPLETE != *state && i <= polls; i++) {
        if (0 == i % UZURA_POLLS_OF_SOURCE) {
            opal_progress();
        } else if (UZURA_POSTED == *state && NULL != endpoint) {
            (void) dn_recv(endpoint->peer, 1);
        } else {
            (void) dn_progress(mtl_uzura.port);
        }
    }
}

/** Post a receive that has been prepared, or give it the message that is here. */
static inline int start(uzura_request_t *request, const struct ompi_communicator_t *comm, int source, int tag,
                        bool blocking)
{
    const uint32_t context = (uint32_t) comm->c_contextid;
    uzura_endpoint_t *endpoint = NULL;

    if (MPI_ANY_SOURCE != source) {
        endpoint = mtl_uzura_endpoint(
            ompi_comm_peer_lookup((struct ompi_communicator_t *) (uintptr_t) comm, source));
        if (OPAL_UNLIKELY(NULL == endpoint)) {
            return OMPI_ERR_UNREACH;
        }
    }
    request->posted.context = context;
    request->posted.source = source;
    request->posted.tag = mtl_uzura_wanted_tag(tag);
    request->posted.ignore = mtl_uzura_ignore(tag);
    uzura_lock();
    uzura_kept_t *kept = (uzura_kept_t *) dn_match_find(&mtl_uzura.match, context, source,
                                                        mtl_uzura_wanted_tag(tag), mtl_uzura_ignore(tag));
    if (OPAL_LIKELY(NULL == kept)) {
        request->state = UZURA_POSTED;
        dn_match_post(&mtl_uzura.match, &request->posted);
        uzura_unlock();
        if (!blocking && NULL != endpoint && OPAL_UNLIKELY(request->len > endpoint->eager_limit)) {
            mtl_uzura_announce(request, endpoint);
        }
        if (blocking && !mtl_uzura.oversubscribed) {
            poll_source(request, endpoint);
        }
        return OMPI_SUCCESS;
    }
    take(kept);
    uzura_unlock();
    deliver_kept(request, kept);
    return OMPI_SUCCESS;
}

int mtl_uzura_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                    struct opal_convertor_t *convertor, struct mca_mtl_request_t *mtl_request)
{
    uzura_request_t *request = (uzura_request_t *) mtl_request;

    prepare_convertor(request, convertor);
    return start(request, comm, source, tag, is_blocking(request));
}

int mtl_uzura_start_receive(uzura_request_t *request, const struct ompi_communicator_t *comm, int source,
                            int tag, void *buffer, size_t len, bool blocking)
{
    prepare(request, buffer, len);
    return start(request, comm, source, tag, blocking);
}

/** The first message that a receive would take; with @p out, taken out of matching. */
static uzura_kept_t *probe(uint32_t context, int source, int tag, bool out)
{
    uzura_lock();
    uzura_kept_t *kept = (uzura_kept_t *) dn_match_find(&mtl_uzura.match, context, source,
                                                        mtl_uzura_wanted_tag(tag), mtl_uzura_ignore(tag));
    if (NULL != kept && out) {
        take(kept);
    }
    uzura_unlock();
    return kept;
}

/** As probe(), after a look at what has arrived when nothing is there at first. */
static uzura_kept_t *probe_twice(const struct ompi_communicator_t *comm, int source, int tag, bool out,
                                 struct ompi_status_public_t *status)
{
    const uint32_t context = (uint32_t) comm->c_contextid;
    uzura_kept_t *kept = probe(context, source, tag, out);

    if (NULL == kept) {
        opal_progress();
        kept = probe(context, source, tag, out);
    }
    if (NULL != kept && MPI_STATUS_IGNORE != status) {
        mtl_uzura_set_status(status, kept->msg.source, mtl_uzura_mpi_tag(kept->msg.tag), kept->len);
    }
    return kept;
}

int mtl_uzura_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source, int tag,
                     int *flag, struct ompi_status_public_t *status)
{
    *flag = NULL != probe_twice(comm, source, tag, false, status);
    return OMPI_SUCCESS;
}

int mtl_uzura_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int source,
                      int tag, int *matched, struct ompi_message_t **message,
                      struct ompi_status_public_t *status)
{
    ompi_message_t *handle = ompi_message_alloc();

    if (NULL == handle) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    uzura_kept_t *kept = probe_twice(comm, source, tag, true, status);
    *matched = NULL != kept;
    if (NULL == kept) {
        ompi_message_return(handle);
        return OMPI_SUCCESS;
    }
    handle->comm = comm;
    handle->req_ptr = kept;
    handle->peer = kept->msg.source;
    handle->count = kept->len;
    *message = handle;
    return OMPI_SUCCESS;
}

int mtl_uzura_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor,
                     struct ompi_message_t **message, struct mca_mtl_request_t *mtl_request)
{
    uzura_request_t *request = (uzura_request_t *) mtl_request;
    uzura_kept_t *kept = (*message)->req_ptr;

    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    prepare_convertor(request, convertor);
    deliver_kept(request, kept);
    return OMPI_SUCCESS;
}

int mtl_uzura_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag)
{
    uzura_request_t *request = (uzura_request_t *) mtl_request;

    uzura_lock();
    const bool announced = 0 != request->handle;
    bool cancelled = UZURA_POSTED == request->state && !announced;
    if (cancelled) {
        dn_match_cancel(&mtl_uzura.match, &request->posted);
    }
    uzura_unlock();
    /* With announcements there is one thread: the state is still the same. */
    if (announced && UZURA_POSTED == request->state && mtl_uzura_announce_cancel(request)) {
        dn_match_cancel(&mtl_uzura.match, &request->posted);
        cancelled = true;
    }
    if (cancelled) {
        request->super.ompi_req->req_status._cancelled = true;
        mtl_uzura_complete(request);
    }
    return OMPI_SUCCESS;
}

/** Forget kept messages: of one context, or NULL: all; of one sender, or NULL: all. */
static void forget(const uint32_t *context, const uzura_endpoint_t *endpoint)
{
    uzura_lock();
    for (dn_match_msg_t *next, *msg = dn_match_next_kept(&mtl_uzura.match, context, NULL); NULL != msg;
         msg = next) {
        next = dn_match_next_kept(&mtl_uzura.match, context, msg);
        if (NULL == endpoint || ((uzura_kept_t *) msg)->endpoint == endpoint) {
            take((uzura_kept_t *) msg);
            free(msg);
        }
    }
    uzura_unlock();
}

void mtl_uzura_forget_sender(const uzura_endpoint_t *endpoint)
{
    forget(NULL, endpoint);
}

void mtl_uzura_forget_context(uint32_t context)
{
    forget(&context, NULL);
}
