/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file mtl_uzura_announce.c
 * The receiver comes first: a long receive with a named source announces its buffer, and the sender PUSHes into it,
 * with no handshake and without the receiver's doing (DIMM_Send/DIMM_Recv paper, protocol A).
 *
 *   receiver                             sender
 *   MPI_Irecv   -- UZURA_ANNOUNCE -->
 *                                        MPI_Send: the announced receive is the one that takes this message
 *               <-- UZURA_TAKES ---      it is matched: no other message finds it any more
 *                   (PUSH)
 *               <-- UZURA_PUSHED --      complete, or: ask for the bytes, the PUSH could not be made
 *
 * The sender may act on an announcement only if the very receive would take its message were it sent now:
 *
 *   A0  A receiver announces one receive at a time to one source; and only if no receive posted before it would take a
 *       message of its context, source and tag.
 *   A1  The announcement says how many messages the receiver has seen from this sender. If the sender has sent
 *       more, one of them may take the receive: it forgets the announcement.
 *   A2  So it does when it sends a message of this context and tag otherwise: that takes the receive.
 *
 * UZURA_TAKES goes through the same ring as all messages, so what is sent after it is matched after it. An
 * announcement may be forgotten at any time: the message is then sent as others are, and the receive is where it was.
 * A cancelled receive has to hear from the sender (UZURA_RETRACT, UZURA_RETRACTED) that nothing will be PUSHed.
 *
 * Threads: with several, A1 and A2 would cost a lock with every message. They announce nothing.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include "opal/runtime/opal_progress.h"

/** Is a receive worth it, and does the rest allow it? */
static bool announces(const uzura_request_t *request, const uzura_endpoint_t *endpoint)
{
    const unsigned least = mtl_uzura_number[MTL_UZURA_ANNOUNCE_MIN].value;

    return 0 != least && request->len > least && NULL == endpoint->announced && NULL != request->buffer
           && MPI_ANY_TAG != request->posted.tag && !endpoint->lost && !opal_using_threads();
}

/** Receives that are looked at for one which would take the message first. */
#define LOOKS 16

/** Is this receive the first that would take a message of its source and tag (A0)? */
static bool is_first(const uzura_recv_t *posted)
{
    const uzura_recv_t *other = NULL;

    if (LOOKS < uzura_match_posted_count(&mtl_uzura.match)) {
        return false;
    }
    do {
        other = uzura_match_next_posted(&mtl_uzura.match, &posted->context, other);
    } while (NULL != other && posted != other
             && !uzura_takes(other->source, other->tag, posted->source, posted->tag));
    return posted == other;
}

void mtl_uzura_announce(uzura_request_t *request, uzura_endpoint_t *endpoint)
{
    uzura_announce_t announce = {.context = request->posted.context,
                                 .tag = request->posted.tag,
                                 .seen = endpoint->seen,
                                 .len = request->len};

    if (!announces(request, endpoint) || !is_first(&request->posted) || !mtl_uzura_handle_take(request)) {
        return;
    }
    request->endpoint = endpoint;
    if (DN_OK == dn_segment_register(mtl_uzura.port, request->buffer, request->len, &request->segment)) {
        announce.request = request->handle;
        dn_segment_key(request->segment, &announce.key);
        if (DN_OK
            == dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_ANNOUNCE, &announce, sizeof(announce), NULL, 0)) {
            endpoint->announced = request;
            return;
        }
        dn_segment_free(request->segment);
    }
    mtl_uzura_handle_drop(request);
}

void mtl_uzura_announce_end(uzura_request_t *request)
{
    request->endpoint->announced = NULL;
    request->endpoint->retract = 0;
    dn_segment_free(request->segment);
    mtl_uzura_handle_drop(request);
}

void mtl_uzura_take_announce(dn_peer_t *src, const uzura_announce_t *announce)
{
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(src);

    if (NULL != endpoint) {
        /* A1; and A2 with what was sent before the counts began anew. */
        endpoint->offered = announce->seen == endpoint->sent && !mtl_uzura.parted && !opal_using_threads();
        endpoint->offer = *announce;
    }
}

bool mtl_uzura_push(uzura_request_t *request)
{
    uzura_endpoint_t *endpoint = request->endpoint;
    const uzura_announce_t *offer = &endpoint->offer;

    if (!endpoint->offered || NULL != endpoint->first || NULL == request->buffer
        || offer->context != request->head.context || offer->tag != request->head.tag
        || offer->len < request->len || !mtl_uzura_handle_take(request)) {
        return false;
    }
    const uzura_takes_t takes = {.receiver = offer->request,
                                 .request = request->handle,
                                 .len = request->len,
                                 .source = request->head.source};
    if (DN_OK != dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_TAKES, &takes, sizeof(takes), NULL, 0)) {
        mtl_uzura_handle_drop(request);
        return false;
    }
    endpoint->offered = false;
    request->key = offer->key;
    request->remote = offer->request;
    request->state = UZURA_PUSH_STARTS;
    if (!mtl_uzura_push_again(request)) {
        mtl_uzura_busy(request);
    }
    return true;
}

void mtl_uzura_take_retract(dn_peer_t *src, uint64_t handle)
{
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(src);

    if (NULL == endpoint) {
        return;
    }
    if (endpoint->offered && handle == endpoint->offer.request) {
        endpoint->offered = false;
    }
    /* Where it is being PUSHed already, UZURA_TAKES came to the receiver before this answer does. */
    endpoint->retracted = handle;
    mtl_uzura.queued = true;
}

/** @return false: no room now. */
static bool tell_handle(uzura_endpoint_t *endpoint, enum uzura_kind kind, uint64_t *handle)
{
    const uint64_t told = *handle;

    if (0 != told
        && DN_ERR_AGAIN != dn_botf(endpoint->peer, DN_CHAN_MTL, kind, &told, sizeof(told), NULL, 0)) {
        *handle = 0;
    }
    return 0 == *handle;
}

bool mtl_uzura_tell_retract(uzura_endpoint_t *endpoint)
{
    const bool told = tell_handle(endpoint, UZURA_RETRACT, &endpoint->retract);

    return tell_handle(endpoint, UZURA_RETRACTED, &endpoint->retracted) && told;
}

/** The PUSH is over: tell the receiver. @return false: no room now. */
static bool tell(uzura_request_t *request)
{
    const uzura_pushed_t pushed = {request->remote, MPI_SUCCESS == request->error};

    /* The receiver may ask before dn_botf() has returned. */
    request->state = MPI_SUCCESS == request->error ? UZURA_TELLS : UZURA_WAITS_REPLY;
    const dn_status_t status =
        dn_botf(request->endpoint->peer, DN_CHAN_MTL, UZURA_PUSHED, &pushed, sizeof(pushed), NULL, 0);
    if (DN_ERR_AGAIN == status) {
        request->state = UZURA_TELLS;
        return false;
    }
    if (DN_OK != status) {
        mtl_uzura_lost(request->endpoint);
    }
    if (MPI_SUCCESS == request->error) {
        mtl_uzura_handle_drop(request);
        mtl_uzura_send_finish(request);
    }
    return true;
}

/** dn_comp_fn_t of the PUSH. */
static void pushed(dn_comp_t *comp, dn_status_t status)
{
    uzura_request_t *request = (uzura_request_t *) ((uint8_t *) comp - offsetof(uzura_request_t, comp));

    request->error = DN_OK == status ? MPI_SUCCESS : MPI_ERR_OTHER;
    if (!tell(request)) {
        mtl_uzura_busy(request);
    }
}

bool mtl_uzura_push_again(uzura_request_t *request)
{
    const dn_xfer_t xfer = {
        .local = request->buffer, .key = &request->key, .len = request->len, .comp = &request->comp};

    if (UZURA_TELLS == request->state) {
        return tell(request);
    }
    request->comp.fn = pushed;
    request->state = UZURA_PUSHES;
    const dn_status_t status = dn_push(request->endpoint->peer, &xfer);
    if (DN_ERR_AGAIN == status) {
        request->state = UZURA_PUSH_STARTS;
        return false;
    }
    if (DN_INPROGRESS != status) {
        pushed(&request->comp, status);
    }
    return true;
}
