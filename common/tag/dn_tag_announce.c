/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The receiver comes first: a long receive with a named source announces its buffer, and the sender PUSHes into it,
 * with no handshake and without the receiver's doing (DIMM_Send/DIMM_Recv paper, protocol A).
 *
 *   receiver                             sender
 *   dn_tag_recv --- DN_TAG_ANNOUNCE -->
 *                                        dn_tag_send: the announced receive is the one that takes this message
 *               <-- DN_TAG_TAKES ---      it is matched: no other message finds it any more
 *                   (PUSH)
 *               <-- DN_TAG_PUSHED --      complete, or: ask for the bytes, the PUSH could not be made
 *
 * That is for a receiver that computes. Where the receiver polls, both sides move the bytes at the same time, which is faster than a
 * PUSH by the sender alone. The first messages to a receiver that computes lie unread. The receiver sees by the clock how long they lay.
 * It then announces its next receives from that sender, until a message comes that has not lain. Both sides have to read the same
 * clock: a peer whose memory is reached without its process, and without a network's library (dn_peer_attr_t), is on the same host.
 *
 * The sender may act on an announcement only if the announced receive would take the message if the message were sent now:
 *
 *   A0  A receiver announces one receive at a time to one source; and only if no receive posted before it would take a
 *       message of its context, source and tag.
 *   A1  The announcement says how many messages the receiver has seen from this sender. If the sender has sent
 *       more, one of those messages may take the receive: the sender forgets the announcement.
 *   A2  The sender also forgets the announcement when it sends a message of this context and tag otherwise: that message takes
 *       the receive.
 *
 * DN_TAG_TAKES goes through the same ring as all messages, so a message that is sent after it is matched after it. The sender
 * may forget an announcement at any time: the message is then sent as others are, and the receive stays posted.
 *
 * dn_tag_cancel() has to end without the sender's doing. So each announcement has a claim: a word in memory that the
 * receiver's peers map. The word holds the claim's number until one side takes the claim by compare-and-swap: the sender before
 * DN_TAG_TAKES, or the receiver that cancels. The side that comes second gives up. Both sides' swaps acquire and release, though
 * no data depends on them: the buffer belongs to the side that took the claim.
 *
 * Threads: where several threads send, A1 and A2 would cost a lock with every message. So nothing is announced then: dn_tag_recv().
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include "dn_atomic.h"

/** Nanoseconds for which a message lies unread at most in a process that waits for the message: the process may have to be woken
 * (dn_wait.h). Looks at long messages that follow each other within this time belong to one stay of the process in the library. A
 * message that came during the stay does not tell whether the process computes. */
#define DN_TAG_AWAY_NS 200000

/** Receives from a peer are announced after so many stays in a row before each of which a message of the peer lay unread. A single such
 * stay tells little: any process loses its core for that long now and then. */
#define DN_TAG_LAIN 2

uint64_t dn_tag_stay(dn_tag_t *tag, uint64_t now)
{
    if (now - tag->here.last_ns > DN_TAG_AWAY_NS) {
        tag->here.since_ns = now;
    }
    tag->here.last_ns = now;
    return tag->here.since_ns;
}

void dn_tag_look_back(dn_tag_req_t *req, dn_tag_peer_t *peer, uint64_t left)
{
    const dn_tag_config_t *config = &peer->tag->config;

    if (DN_TAG_ANNOUNCES_AWAY != config->limit.announce || config->threads || !peer->kernel_copies
        || req->len <= config->limit.announce_min) {
        return;
    }
    const uint64_t now = dn_clock_ns();
    const uint64_t since = dn_tag_stay(peer->tag, now);

    if ((int64_t) (now - left) <= DN_TAG_AWAY_NS) {
        peer->lain = 0;
    } else if ((int64_t) (since - left) > DN_TAG_AWAY_NS && peer->lain_since != since && 0 != req->started
               && req->started < left && DN_TAG_LAIN > peer->lain) {
        /* An announcement would have come before the message left. */
        peer->lain_since = since;
        peer->lain++;
    }
}

/** Is a receive to be announced? Here everything is checked but A0, and the limit that dn_tag_recv() has checked. */
static bool dn_tag_announces(const dn_tag_req_t *req, const dn_tag_peer_t *peer)
{
    return (DN_TAG_LAIN <= peer->lain || DN_TAG_ANNOUNCES_ALL == peer->tag->config.limit.announce)
           && req->len > peer->eager_limit && NULL == peer->announced && NULL != req->buffer
           && 0 == req->posted.ignore && 0 == (req->posted.context & DN_TAG_NAMED)
           && !dn_load_acquire_u32(&peer->lost);
}

/** Posted receives at most for an announcement: dn_tag_is_first() looks at each of them. */
#define DN_TAG_LOOKS 16

/** Is this receive the first that would take a message of its source and tag (A0)? */
static bool dn_tag_is_first(dn_tag_t *tag, const dn_match_recv_t *posted)
{
    const dn_match_recv_t *other = NULL;

    if (DN_TAG_LOOKS < dn_match_posted_count(&tag->match)) {
        return false;
    }
    do {
        other = dn_match_next_posted(&tag->match, &posted->context, other);
    } while (NULL != other && posted != other
             && !dn_match_accepts(other->source, other->tag, other->ignore, posted->source, posted->tag));
    return posted == other;
}

/** Claims of a process: receives that are announced at the same time, at most. */
#define DN_TAG_CLAIMS 512u

/** Long messages to a peer before which the sender looks for the peer's next announcement. The sender then does not look until another
 * announcement comes. A look may bring messages, too, of which the short ones are copied before the message leaves. */
#define DN_TAG_LOOKS_IN_VAIN 4

/** Take a claim. @return true for one of the two sides at most. */
static int dn_tag_claim_win(uint64_t *word, uint64_t number)
{
    return dn_cas_acq_rel_u64(word, number, 0);
}

void dn_tag_claim_end(dn_tag_req_t *req)
{
    (void) dn_tag_claim_win(req->claim, req->claimed);
}

/** Words at which dn_tag_claim_new() looks at most for a free word. */
#define DN_TAG_CLAIM_LOOKS 8

/** Put a new number into a free word: one that holds no claim. NULL: no free word was found. */
static uint64_t *dn_tag_claim_new(dn_tag_t *tag, uint64_t *number_p)
{
    dn_tag_claims_t *claims = &tag->claims;

    if (!claims->tried) {
        claims->tried = true;
        if (DN_OK == dn_segment_alloc(tag->port, DN_TAG_CLAIMS * sizeof(uint64_t), &claims->segment)) {
            claims->word = dn_segment_base(claims->segment);
            claims->number = dn_first(tag->port);
        }
    }
    for (int i = 0; NULL != claims->word && i < DN_TAG_CLAIM_LOOKS; i++) {
        uint64_t *word = &claims->word[claims->next++ % DN_TAG_CLAIMS];

        if (0 == dn_load_acquire(word)) {
            *number_p = ++claims->number;
            dn_store_release(word, claims->number);
            return word;
        }
    }
    return NULL;
}

void dn_tag_claims_close(dn_tag_t *tag)
{
    if (NULL != tag->claims.segment) {
        dn_segment_free(tag->claims.segment);
    }
    memset(&tag->claims, 0, sizeof(tag->claims));
}

void dn_tag_announce(dn_tag_req_t *req, dn_tag_peer_t *peer)
{
    dn_tag_t *tag = req->tag;
    dn_tag_announce_t announce = {.context = req->posted.context, .tag = req->posted.tag, .len = req->len};

    /* A receiver that blocks polls. */
    req->started = NULL == peer ? 0 : dn_clock_ns();
    if (NULL == peer || !dn_tag_announces(req, peer) || !dn_tag_is_first(tag, &req->posted)
        || !dn_tag_handle_add(req)) {
        return;
    }
    req->peer = peer;
    req->claim = dn_tag_claim_new(tag, &announce.number);
    if (NULL == req->claim) {
        dn_tag_handle_drop(req);
        return;
    }
    announce.seen = peer->seen;
    req->claimed = announce.number;
    if (DN_OK == dn_segment_register(tag->port, req->buffer, req->len, &req->segment)) {
        announce.request = req->handle;
        announce.claim = (uint32_t) (req->claim - tag->claims.word);
        dn_segment_key(req->segment, &announce.key);
        dn_segment_key(tag->claims.segment, &announce.claims);
        if (DN_OK == dn_tag_tell(peer, DN_TAG_ANNOUNCE, &announce, sizeof(announce))) {
            peer->announced = req;
            return;
        }
        dn_segment_free(req->segment);
    }
    dn_tag_claim_end(req);
    dn_tag_handle_drop(req);
}

void dn_tag_announce_end(dn_tag_req_t *req)
{
    dn_tag_claim_end(req);
    req->peer->announced = NULL;
    dn_segment_free(req->segment);
    dn_tag_handle_drop(req);
}

bool dn_tag_announce_cancel(dn_tag_req_t *req)
{
    if (!dn_tag_claim_win(req->claim, req->claimed)) {
        return false;
    }
    dn_tag_announce_end(req);
    return true;
}

void dn_tag_got_announce(dn_tag_t *tag, dn_peer_t *src, const dn_tag_announce_t *announce)
{
    void *claims = NULL;

    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    dn_tag_unlock(tag);
    if (NULL == peer || announce->claim >= announce->claims.len / sizeof(uint64_t)) {
        tag->dropped++;
        return;
    }
    if (tag->config.threads) {
        return;
    }
    /* A1; and A2 with what was sent before the counts began anew. */
    peer->offered = announce->seen == peer->sent && !tag->parted
                    && DN_OK == dn_segment_map(src, &announce->claims, &claims);
    peer->offer = *announce;
    peer->looks = DN_TAG_LOOKS_IN_VAIN;
    peer->offer_claim = peer->offered ? (uint64_t *) claims + announce->claim : NULL;
}

bool dn_tag_push(dn_tag_req_t *req)
{
    dn_tag_t *tag = req->tag;
    dn_tag_peer_t *peer = req->peer;
    const dn_tag_config_t *config = &tag->config;
    const dn_tag_announce_t *offer = &peer->offer;

    if (!peer->offered && 0 != peer->looks && req->len > config->limit.announce_min
        && !dn_load_relaxed(&tag->heeding)) {
        /* An announcement may have come while this process computed. */
        peer->looks--;
        tag->puts_off = true;
        dn_tag_listen(peer);
        tag->puts_off = false;
    }
    if (!peer->offered || NULL != peer->waits.first || NULL == req->buffer || req->len <= peer->eager_limit
        || offer->context != req->head.context || offer->tag != req->head.tag || offer->len < req->len
        || !dn_tag_handle_add(req)) {
        return false;
    }
    peer->offered = false;
    const dn_tag_takes_t takes = {offer->request, req->handle, req->len, dn_clock_ns()};
    if (!dn_tag_claim_win(peer->offer_claim, offer->number)
        || DN_OK != dn_tag_tell(peer, DN_TAG_TAKES, &takes, sizeof(takes))) {
        /* The message is sent otherwise, and takes the receive as any message would, unless the receive was cancelled. */
        dn_tag_handle_drop(req);
        return false;
    }
    /* If the PUSH fails, the receiver asks for the bytes as for a message of this kind. */
    req->kind = DN_TAG_RTS;
    req->key = offer->key;
    req->remote = offer->request;
    dn_tag_mark(peer);
    dn_tag_turn(req, DN_TAG_PUSH_STARTS);
    if (!dn_tag_push_again(req)) {
        dn_tag_busy(req);
    }
    return true;
}

/** The PUSH is over: tell the receiver. @return false: no room now. */
static bool dn_tag_tell_pushed(dn_tag_req_t *req)
{
    const dn_tag_pushed_t pushed = {req->remote, DN_OK == req->status};
    dn_tag_peer_t *peer = req->peer;

    /* The receiver may ask before dn_tag_tell() has returned. */
    if (DN_OK != req->status) {
        dn_tag_turn(req, DN_TAG_WAITS_REPLY);
    }
    const dn_status_t status = dn_tag_tell(peer, DN_TAG_PUSHED, &pushed, sizeof(pushed));
    if (DN_ERR_AGAIN == status) {
        req->state = DN_TAG_TELLS; /* as it was */
        return false;
    }
    if (DN_OK != status) {
        dn_tag_lost(peer);
    } else {
        dn_tag_mark(peer);
    }
    if (DN_OK == req->status) {
        dn_tag_handle_drop(req);
        dn_tag_send_finish(req);
    }
    return true;
}

/** dn_comp_fn_t of the PUSH. */
static void dn_tag_on_pushed(dn_comp_t *comp, dn_status_t status)
{
    dn_tag_req_t *req = (dn_tag_req_t *) ((uint8_t *) comp - offsetof(dn_tag_req_t, comp));

    dn_tag_peer_t *peer = req->peer;

    (void) dn_tag_stay(peer->tag, dn_clock_ns());
    req->status = status;
    dn_tag_turn(req, DN_TAG_TELLS);
    if (DN_ERR_UNREACH == status || peer->gone) {
        /* No peer is there to be told. */
        dn_tag_lost(peer);
        dn_tag_handle_drop(req);
        dn_tag_complete(req, status);
    } else if (!dn_tag_tell_pushed(req)) {
        dn_tag_busy(req);
    }
    dn_tag_transfers(peer, -1);
}

bool dn_tag_push_again(dn_tag_req_t *req)
{
    const dn_xfer_t xfer = {.local = req->buffer, .key = &req->key, .len = req->len, .comp = &req->comp};

    if (DN_TAG_TELLS == req->state) {
        return dn_tag_tell_pushed(req);
    }
    req->comp.fn = dn_tag_on_pushed;
    dn_tag_turn(req, DN_TAG_PUSHES);
    dn_tag_transfers(req->peer, 1);
    const dn_status_t status = dn_push(req->peer->peer, &xfer);
    if (DN_ERR_AGAIN == status) {
        dn_tag_transfers(req->peer, -1);
        dn_tag_turn(req, DN_TAG_PUSH_STARTS);
        return false;
    }
    if (DN_INPROGRESS != status) {
        dn_tag_on_pushed(&req->comp, status);
    }
    return true;
}
