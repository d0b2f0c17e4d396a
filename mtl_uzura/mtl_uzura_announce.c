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
 *
 * MPI_Cancel has to end without the sender's doing. So each announcement has a claim, a word in memory that the
 * receiver's peers map: its number until one side takes it by compare-and-swap, the sender before UZURA_TAKES or the
 * receiver that is cancelled. Who comes second gives up. Both sides' swaps acquire and release, though no data hangs on
 * them: the buffer belongs to the one who took the claim.
 *
 * Threads: with several, A1 and A2 would cost a lock with every message. Nothing is announced then.
 */
#include "dn_config.h"

#include "mtl_uzura.h"

#include <stdatomic.h>

/** Is a receive worth it, and does the rest allow it? */
static bool announces(const uzura_request_t *request, const uzura_endpoint_t *endpoint)
{
    const unsigned least = mtl_uzura_number[MTL_UZURA_ANNOUNCE_MIN].value;

    return 0 != least && request->len > least && NULL == endpoint->announced && NULL != request->buffer
           && 0 == request->posted.ignore && !endpoint->lost && !mtl_uzura.threads;
}

/** Receives that are looked at for one which would take the message first. */
#define LOOKS 16

/** Is this receive the first that would take a message of its source and tag (A0)? */
static bool is_first(const dn_match_recv_t *posted)
{
    const dn_match_recv_t *other = NULL;

    if (LOOKS < dn_match_posted_count(&mtl_uzura.match)) {
        return false;
    }
    do {
        other = dn_match_next_posted(&mtl_uzura.match, &posted->context, other);
    } while (NULL != other && posted != other
             && !dn_match_takes(other->source, other->tag, other->ignore, posted->source, posted->tag));
    return posted == other;
}

/** Claims of a process: announced receives at one time. */
#define CLAIMS 512u

/** Take a claim: true for one of those who try. */
static bool claim_take(uint64_t *word, uint64_t number)
{
    return atomic_compare_exchange_strong_explicit((_Atomic uint64_t *) word, &number, 0,
                                                   memory_order_acq_rel, memory_order_acquire);
}

/** Words that a new claim looks at for a free one. */
#define CLAIM_LOOKS 8

/** A word that nobody's claim stands in, with a new number in it. NULL: there is none. */
static uint64_t *claim_new(uint64_t *number_p)
{
    uzura_claims_t *claims = &mtl_uzura.claims;

    if (!claims->tried) {
        claims->tried = true;
        if (DN_OK == dn_segment_alloc(mtl_uzura.port, CLAIMS * sizeof(uint64_t), &claims->segment)) {
            claims->word = dn_segment_base(claims->segment);
            claims->number = dn_first(mtl_uzura.port);
        }
    }
    for (int i = 0; NULL != claims->word && i < CLAIM_LOOKS; i++) {
        uint64_t *word = &claims->word[claims->next++ % CLAIMS];

        if (0 == atomic_load_explicit((_Atomic uint64_t *) word, memory_order_acquire)) {
            *number_p = ++claims->number;
            atomic_store_explicit((_Atomic uint64_t *) word, claims->number, memory_order_release);
            return word;
        }
    }
    return NULL;
}

void mtl_uzura_claims_close(void)
{
    if (NULL != mtl_uzura.claims.segment) {
        dn_segment_free(mtl_uzura.claims.segment);
    }
    memset(&mtl_uzura.claims, 0, sizeof(mtl_uzura.claims));
}

void mtl_uzura_announce(uzura_request_t *request, uzura_endpoint_t *endpoint)
{
    uzura_announce_t announce = {.context = request->posted.context,
                                 .tag = mtl_uzura_mpi_tag(request->posted.tag),
                                 .seen = endpoint->seen,
                                 .len = request->len};

    if (!announces(request, endpoint) || !is_first(&request->posted) || !mtl_uzura_handle_take(request)) {
        return;
    }
    request->endpoint = endpoint;
    request->claim = claim_new(&announce.number);
    if (NULL == request->claim) {
        mtl_uzura_handle_drop(request);
        return;
    }
    request->claimed = announce.number;
    if (DN_OK == dn_segment_register(mtl_uzura.port, request->buffer, request->len, &request->segment)) {
        announce.request = request->handle;
        announce.claim = (uint32_t) (request->claim - mtl_uzura.claims.word);
        dn_segment_key(request->segment, &announce.key);
        dn_segment_key(mtl_uzura.claims.segment, &announce.claims);
        if (DN_OK
            == dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_ANNOUNCE, &announce, sizeof(announce), NULL, 0)) {
            endpoint->announced = request;
            return;
        }
        dn_segment_free(request->segment);
    }
    (void) claim_take(request->claim, request->claimed);
    mtl_uzura_handle_drop(request);
}

void mtl_uzura_announce_end(uzura_request_t *request)
{
    (void) claim_take(request->claim, request->claimed);

    request->endpoint->announced = NULL;
    dn_segment_free(request->segment);
    mtl_uzura_handle_drop(request);
}

bool mtl_uzura_announce_cancel(uzura_request_t *request)
{
    if (!claim_take(request->claim, request->claimed)) {
        return false;
    }
    mtl_uzura_announce_end(request);
    return true;
}

void mtl_uzura_take_announce(dn_peer_t *src, const uzura_announce_t *announce)
{
    void *claims = NULL;

    uzura_lock();
    uzura_endpoint_t *endpoint = mtl_uzura_endpoint_of(src);
    uzura_unlock();
    if (NULL == endpoint || announce->claim >= announce->claims.len / sizeof(uint64_t)) {
        mtl_uzura.dropped++;
        return;
    }
    /* A1; and A2 with what was sent before the counts began anew. */
    endpoint->offered = announce->seen == endpoint->sent && !mtl_uzura.parted && !mtl_uzura.threads
                        && DN_OK == dn_segment_map(src, &announce->claims, &claims);
    endpoint->offer = *announce;
    endpoint->offer_claim = endpoint->offered ? (uint64_t *) claims + announce->claim : NULL;
}

bool mtl_uzura_push(uzura_request_t *request)
{
    uzura_endpoint_t *endpoint = request->endpoint;
    const uzura_announce_t *offer = &endpoint->offer;

    if (!endpoint->offered || NULL != endpoint->first || NULL == request->buffer
        || request->len <= endpoint->eager_limit || offer->context != request->head.context
        || mtl_uzura_tag(offer->tag) != request->head.tag || offer->len < request->len
        || !mtl_uzura_handle_take(request)) {
        return false;
    }
    endpoint->offered = false;
    const uzura_takes_t takes = {offer->request, request->handle, request->len};
    if (!claim_take(endpoint->offer_claim, offer->number)
        || DN_OK != dn_botf(endpoint->peer, DN_CHAN_MTL, UZURA_TAKES, &takes, sizeof(takes), NULL, 0)) {
        /* It takes the receive as any message would, unless that was cancelled. */
        mtl_uzura_handle_drop(request);
        return false;
    }
    request->key = offer->key;
    request->remote = offer->request;
    request->state = UZURA_PUSH_STARTS;
    if (!mtl_uzura_push_again(request)) {
        mtl_uzura_busy(request);
    }
    return true;
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
