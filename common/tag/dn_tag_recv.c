/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Receiving: a receive takes a kept message, or is posted. A long message is fetched.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

/** Tell the sender that the data is here (DN_TAG_DONE), then complete the receive. */
static void dn_tag_answer(dn_tag_req_t *req)
{
    dn_tag_turn(req, DN_TAG_ANSWERS);
    if (!dn_tag_recv_again(req)) {
        dn_tag_busy(req);
    }
}

/** Change the wish to a peer: are messages of this length to flow from now on? A peer that does otherwise for long is told once more: the
 * first wish may have gone to another process that was here before. The lock is held. */
static void dn_tag_wish_flow(dn_tag_peer_t *peer, size_t len)
{
    const uint32_t bit = peer->flows ? dn_pace_flow_bit(len) : 0;

    if (0 == bit || DN_PACE_STREAM_AUTO != peer->tag->config.limit.stream) {
        return;
    }
    const uint32_t flows = (peer->our_wish.flows & ~bit) | (dn_pace_wants_flow(&peer->pace, len) ? bit : 0);
    if (__builtin_expect(flows != peer->our_wish.flows || dn_pace_is_unmet(&peer->pace, len), 0)) {
        peer->our_wish.flows = flows;
        dn_tag_wish_changed(peer);
    }
}

/** Choose the way of a long message whose memory lies together at both ends, and the wish for the next messages of this length. */
static void dn_tag_choose_way(dn_tag_req_t *req, enum dn_pace_begin begin, const dn_tag_cross_t *cross)
{
    dn_tag_peer_t *peer = req->peer;
    /* The rules are of copies by the kernel. Elsewhere the costs tell. Equality suffices: what the sender has heard is not 2^32 messages
     * behind. A message to this process itself crosses itself. */
    const int crosses = peer->kernel_copies && cross->heard != dn_load_relaxed(&peer->longs);
    const int crowded = peer->kernel_copies && dn_oversubscribed(req->tag->port);

    dn_tag_lock(req->tag);
    dn_pace_crowd(&peer->pace, crowded);
    req->way = dn_pace_choose(&peer->pace, (enum dn_pace_stream) req->tag->config.limit.stream, req->size,
                              begin, crosses);
    dn_tag_wish_flow(peer, req->size);
    dn_tag_unlock(req->tag);
    dn_tag_say_wish(peer);
}

/** A receiver that looks at a message of medium length later than this, in nanoseconds, has not waited for the message. One nanosecond more
 * is allowed for each byte: the receiver may have sent as many bytes meanwhile, and this time counts. */
#define DN_TAG_LATE_NS 20000

/** When did a message of medium length begin to come? @param[in] left  When the message left its sender. @return @p left; or now, where
 * the receiver came late, or @p left is no time of this clock: the time before does not count then. */
static uint64_t dn_tag_began(uint64_t left, size_t len)
{
    const uint64_t now = dn_clock_ns();

    return now - left < DN_TAG_LATE_NS + len ? left : now;
}

void dn_tag_learn_way(dn_tag_req_t *req)
{
    dn_pace_t *pace = &req->peer->pace;
    const bool learns = DN_PACE_ONLY != req->way && 0 != req->started && req->wanted == req->size;
    const uint64_t now = learns ? dn_clock_ns() : 0;

    dn_tag_lock(req->tag);
    if (learns) {
        (void) dn_tag_stay(req->tag, now);
    }
    if (learns && DN_PACE_BY_RULE == req->way) {
        dn_pace_pass(pace, now);
    } else if (learns) {
        dn_pace_learn(pace, req->way, req->wanted, req->started, now);
    } else {
        dn_pace_skip(pace);
    }
    dn_tag_unlock(req->tag);
}

/** Ask the sender for the bytes in pieces: DN_TAG_CTS. */
static void dn_tag_ask(dn_tag_req_t *req)
{
    if (!dn_tag_handle_add(req)) {
        req->status = DN_ERR_NOMEM;
        req->wanted = 0;
        dn_tag_answer(req);
        return;
    }
    dn_tag_turn(req, DN_TAG_ASKS);
    if (!dn_tag_recv_again(req)) {
        dn_tag_busy(req);
    }
}

/** dn_comp_fn_t of a PULL. */
static void dn_tag_pulled(dn_comp_t *comp, dn_status_t status)
{
    dn_tag_req_t *req = (dn_tag_req_t *) ((uint8_t *) comp - offsetof(dn_tag_req_t, comp));

    dn_tag_peer_t *peer = req->peer;

    if (DN_ERR_UNREACH == status || peer->gone) {
        /* Nobody waits for an answer. */
        req->status = DN_OK == status ? req->status : status;
        dn_tag_lost(peer);
        dn_tag_recv_finish(req);
    } else if (DN_OK == status) {
        dn_tag_learn_way(req);
        dn_tag_answer(req);
    } else {
        /* The memory may be such that no other process can read it, or write to it. */
        req->way = DN_PACE_ONLY;
        dn_tag_ask(req);
    }
    dn_tag_transfers(peer, -1);
}

/** Start the PULL of a receive. @return false: no room for a PULL now. */
static bool dn_tag_start_pull(dn_tag_req_t *req)
{
    const dn_xfer_t xfer = {.local = req->buffer,
                            .key = &req->key,
                            .len = req->wanted,
                            .comp = &req->comp,
                            .flags = DN_PACE_PULL != req->way ? DN_XFER_UNSHARED : 0};
    dn_tag_peer_t *peer = req->peer;

    req->comp.fn = dn_tag_pulled;
    dn_tag_hear(peer, req->number);
    dn_tag_turn(req, DN_TAG_PULLS);
    dn_tag_transfers(peer, 1);
    const bool borrowed = dn_tag_borrow(peer);
    const dn_status_t status = dn_pull(peer->peer, &xfer);
    dn_tag_give_back(peer, borrowed);
    switch (status) {
    case DN_INPROGRESS:
        break;
    case DN_ERR_AGAIN:
        dn_tag_transfers(peer, -1);
        dn_tag_turn(req, DN_TAG_STARTS);
        return false;
    default:
        dn_tag_pulled(&req->comp, status);
        break;
    }
    return true;
}

/** Choose the way of a message that the sender has announced (DN_TAG_RTS). */
static void dn_tag_choose_announced(dn_tag_req_t *req, uint64_t left, const dn_tag_cross_t *cross)
{
    const dn_tag_peer_t *peer = req->peer;

    if (req->size <= peer->eager_limit) {
        /* The sender was asked to announce short messages, too. Their cost tells nothing about long messages. */
        req->way = DN_PACE_ALONE;
        req->started = 0;
    } else if (peer->flows && 0 != dn_pace_flow_bit(req->size)) {
        req->started = dn_tag_began(left, req->size);
        dn_tag_choose_way(req, DN_PACE_HELD, cross);
    } else {
        req->started = dn_clock_ns();
        dn_tag_choose_way(req, DN_PACE_ANNOUNCED, cross);
    }
}

/** Have a receive wait for its message, which flows. */
static void dn_tag_await_flow(dn_tag_req_t *req, dn_tag_peer_t *peer, const dn_tag_arrival_t *arrival)
{
    const uint64_t left = arrival->left;

    dn_tag_lock(req->tag);
    dn_tag_flow_await(req, peer);
    dn_tag_unlock(req->tag);
    if (NULL != req->buffer && req->wanted == req->size) {
        req->started = 0 == left ? 0 : dn_tag_began(left, req->size);
        dn_tag_choose_way(req, 0 == left ? DN_PACE_UNTIMED : DN_PACE_FLOWS, &arrival->cross);
    }
}

/** A long message has been matched. */
static void dn_tag_fetch(dn_tag_req_t *req, const dn_tag_arrival_t *arrival)
{
    req->number = arrival->cross.number;
    if (0 == req->wanted) {
        dn_tag_hear(req->peer, req->number);
        dn_tag_answer(req);
        return;
    }
    req->way = DN_PACE_ONLY;
    if (DN_TAG_RTS == arrival->kind && NULL != req->buffer) {
        dn_tag_choose_announced(req, arrival->left, &arrival->cross);
    }
    if (DN_PACE_PIECES == req->way || DN_PACE_ONLY == req->way) {
        dn_tag_hear(req->peer, req->number);
        dn_tag_ask(req);
    } else if (req->tag->puts_off) {
        /* This process is about to send. Its message would wait until all these bytes are here, and the receiver with it. How long the
         * way takes is not known then. */
        req->started = 0;
        dn_tag_turn(req, DN_TAG_STARTS);
        dn_tag_busy(req);
    } else if (!dn_tag_start_pull(req)) {
        dn_tag_busy(req);
    }
}

bool dn_tag_recv_again(dn_tag_req_t *req)
{
    const dn_tag_cts_t cts = {req->remote, req->handle, req->wanted};
    dn_tag_peer_t *peer = req->peer;
    dn_status_t status;

    switch (req->state) {
    case DN_TAG_STARTS:
        return dn_tag_start_pull(req);
    case DN_TAG_ASKS:
        /* Bytes may come before dn_tag_tell() has returned. */
        dn_tag_turn(req, DN_TAG_WAITS_BYTES);
        status = dn_tag_tell(peer, DN_TAG_CTS, &cts, sizeof(cts));
        if (DN_ERR_AGAIN == status) {
            dn_tag_turn(req, DN_TAG_ASKS);
        } else if (DN_OK != status) {
            dn_tag_stuck(peer, status);
        }
        break;
    default:
        status = dn_tag_tell(peer, DN_TAG_DONE, &req->remote, sizeof(req->remote));
        if (DN_OK != status && DN_ERR_AGAIN != status && DN_ERR_UNREACH != status) {
            /* The sender lives, and would wait for ever. A lost sender does not wait. */
            dn_tag_stuck(peer, status);
        }
        if (DN_ERR_AGAIN != status) {
            dn_tag_recv_finish(req);
        }
        break;
    }
    return DN_ERR_AGAIN != status;
}

void dn_tag_deliver_waiting(dn_tag_req_t *req, const dn_tag_arrival_t *arrival, dn_tag_peer_t *peer)
{
    if (DN_TAG_FLOW == arrival->kind) {
        dn_tag_await_flow(req, peer, arrival);
        return;
    }
    req->remote = arrival->request;
    req->peer = peer;
    if (DN_TAG_SYNC == arrival->kind) {
        dn_tag_fill(req, arrival->data, req->wanted);
        dn_tag_answer(req);
    } else {
        req->key = arrival->key;
        if (0 != arrival->left) {
            dn_tag_look_back(req, peer, arrival->left);
        }
        dn_tag_fetch(req, arrival);
    }
}

/** @name Messages for which a receive waits */
/** @{ */
void dn_tag_got_frag(dn_tag_t *tag, const dn_peer_t *src, uint64_t handle, const uint8_t *data, size_t len)
{
    dn_tag_req_t *req = dn_tag_handle_find(tag, handle, src, DN_TAG_WAITS_BYTES);

    if (NULL == req || len > req->wanted - req->done) {
        tag->dropped++;
        return;
    }
    dn_tag_fill(req, data, len);
    if (req->done == req->wanted) {
        dn_tag_handle_drop(req);
        dn_tag_learn_way(req);
        dn_tag_recv_finish(req);
    }
}

/** The message of an announced receive is on its way. */
void dn_tag_got_takes(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_takes_t *takes)
{
    dn_tag_req_t *req = dn_tag_handle_find(tag, takes->receiver, src, DN_TAG_POSTED);

    if (NULL == req || takes->len > req->len) {
        tag->dropped++;
        return;
    }
    const dn_tag_head_t head = {req->posted.context, req->posted.source, req->posted.tag};
    dn_tag_lock(tag);
    dn_match_cancel(&tag->match, &req->posted);
    dn_tag_turn(req, DN_TAG_IS_PUSHED);
    dn_tag_unlock(tag);
    /* The sender has taken the claim already. A broken sender may not have done so. */
    dn_tag_claim_end(req);
    dn_tag_peer_t *peer = req->peer;
    peer->announced = NULL;
    dn_tag_look_back(req, peer, takes->left);
    dn_tag_expect(req, head, takes->len);
    req->remote = takes->request;
}

/** The PUSH of an announced receive has ended, or could not be made. */
void dn_tag_got_pushed(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_pushed_t *pushed)
{
    dn_tag_req_t *req = dn_tag_handle_find(tag, pushed->receiver, src, DN_TAG_IS_PUSHED);

    if (NULL == req) {
        tag->dropped++;
        return;
    }
    dn_tag_handle_drop(req);
    dn_segment_free(req->segment);
    if (0 != pushed->done) {
        dn_tag_recv_finish(req);
    } else {
        req->way = DN_PACE_ONLY;
        dn_tag_ask(req);
    }
}
/** @} */

/** The case of dn_tag_recv() where a kept message matches. The lock is held; this function gives it back. */
static __attribute__((noinline)) void dn_tag_recv_kept(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_msg_t *msg)
{
    dn_tag_peer_t *peer = msg->peer;

    dn_tag_take_kept(msg);
    dn_tag_unlock(tag);
    dn_tag_mrecv(tag, req, msg);
    dn_tag_say_wish(peer);
}

/** Find the kept message of a receive, or post the receive. The lock is held. @return NULL: the receive is posted. */
static inline dn_tag_msg_t *dn_tag_match_recv(dn_tag_t *tag, dn_tag_req_t *req)
{
    const dn_match_recv_t *want = &req->posted;

    req->tag = tag;
    req->handle = DN_HANDLE_NONE;
    req->state = DN_TAG_NEW;
    dn_tag_msg_t *msg =
        (dn_tag_msg_t *) dn_match_find(&tag->match, want->context, want->source, want->tag, want->ignore);
    if (__builtin_expect(NULL == msg, 1)) {
        dn_tag_turn(req, DN_TAG_POSTED);
        dn_match_post(&tag->match, &req->posted);
    }
    return msg;
}

/** Does a caller that has found no message need this peer, which is lost? If a process of this host has ended, all that it has sent was read
 * before its loss was told. The lock is held. @param[in] from  May be NULL. */
static bool dn_tag_is_vain(const dn_tag_peer_t *from, uint32_t context, int32_t source)
{
    if (NULL == from || !from->cut) {
        return false;
    }
    const dn_tag_config_t *config = &from->tag->config;
    return NULL != config->names && config->names(from, context, source, config->arg);
}

/** The case of dn_tag_recv() where there are threads. */
static __attribute__((noinline)) void dn_tag_recv_shared(dn_tag_t *tag, dn_tag_req_t *req,
                                                         dn_tag_peer_t *from)
{
    dn_tag_lock(tag);
    dn_tag_msg_t *msg = dn_tag_match_recv(tag, req);
    if (NULL != msg) {
        dn_tag_recv_kept(tag, req, msg);
        return;
    }
    const bool vain = dn_tag_is_vain(from, req->posted.context, req->posted.source);
    /* Once this is done its message may come, and the request go. */
    dn_tag_unlock(tag);
    if (vain) {
        dn_tag_lost(from);
    }
}

void dn_tag_recv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_peer_t *from, int blocking)
{
    if (__builtin_expect(tag->config.threads, 0)) {
        dn_tag_recv_shared(tag, req, from);
        return;
    }
    dn_tag_msg_t *msg = dn_tag_match_recv(tag, req);
    if (__builtin_expect(NULL != msg, 0)) {
        dn_tag_recv_kept(tag, req, msg);
        return;
    }
    if (__builtin_expect(req->len > tag->config.limit.announce_min, 0)) {
        dn_tag_announce(req, blocking ? NULL : from);
    }
    if (__builtin_expect(dn_tag_mourns(tag), 0)
        && dn_tag_is_vain(from, req->posted.context, req->posted.source)) {
        dn_tag_lost(from);
    }
}

/** The case of dn_tag_mrecv() where the message flows, and is not here in full yet. @return false: it is here, and the caller delivers it. */
static bool dn_tag_mrecv_flow(dn_tag_req_t *req, dn_tag_msg_t *msg)
{
    const dn_tag_head_t head = {msg->match.context, msg->match.source, msg->match.tag};

    dn_tag_lock(req->tag);
    dn_tag_peer_t *peer = msg->peer;
    const bool flows = DN_TAG_FLOW == msg->kind;
    const bool left = flows && NULL == peer;
    const bool cut = flows && !left && peer->cut;
    if (flows) {
        dn_tag_expect(req, head, msg->len);
    }
    if (flows && !left) {
        dn_tag_flow_await(req, peer);
    }
    if (left) {
        dn_tag_room_put(req->tag, msg);
    }
    dn_tag_unlock(req->tag);
    if (left) {
        dn_tag_complete(req, DN_ERR_UNREACH);
    } else if (cut) {
        dn_tag_lost(peer);
    }
    return flows;
}

void dn_tag_mrecv(dn_tag_t *tag, dn_tag_req_t *req, dn_tag_msg_t *msg)
{
    req->tag = tag;
    req->handle = DN_HANDLE_NONE;
    req->state = DN_TAG_NEW;
    dn_tag_turn(req, DN_TAG_MATCHED);
    if (dn_tag_mrecv_flow(req, msg)) {
        return;
    }
    const dn_tag_arrival_t arrival = {.kind = msg->kind,
                                      .head = {msg->match.context, msg->match.source, msg->match.tag},
                                      .request = msg->request,
                                      .cross = msg->cross,
                                      .key = msg->key,
                                      .len = msg->len,
                                      .data = msg->data};
    dn_tag_deliver(req, &arrival, msg->peer);
    dn_tag_lock(tag);
    dn_tag_room_put(tag, msg);
    dn_tag_unlock(tag);
}

void dn_tag_poll(dn_tag_req_t *req, dn_tag_peer_t *from)
{
    const dn_tag_config_t *config = &req->tag->config;
    dn_port_t *port = req->tag->port;

    for (unsigned i = 1; DN_TAG_COMPLETE != dn_tag_state_of(req) && i <= config->limit.spin_polls; i++) {
        if (0 == i % DN_TAG_POLLS_OF_SOURCE) {
            config->progress(config->arg);
        } else if (DN_TAG_POSTED == dn_tag_state_of(req) && NULL != from) {
            (void) dn_recv(from->peer, 1);
        } else {
            (void) dn_progress(port);
        }
    }
}

void dn_tag_cancel(dn_tag_req_t *req)
{
    dn_tag_t *tag = req->tag;

    dn_tag_lock(tag);
    const bool announced = DN_HANDLE_NONE != req->handle;
    bool canceled = DN_TAG_POSTED == dn_tag_state_of(req) && !announced;
    if (canceled) {
        dn_match_cancel(&tag->match, &req->posted);
    }
    dn_tag_unlock(tag);
    /* With announcements there is one thread: the state is still the same. */
    if (announced && DN_TAG_POSTED == req->state && dn_tag_announce_cancel(req)) {
        dn_match_cancel(&tag->match, &req->posted);
        canceled = true;
    }
    if (canceled) {
        dn_tag_complete(req, DN_ERR_CANCELED);
    }
}

/** The first message that a receive would take. @param[in] out  true: take the message out of matching. */
static dn_tag_msg_t *dn_tag_find(dn_tag_t *tag, const dn_tag_want_t *want, bool out, dn_tag_found_t *found_p)
{
    dn_tag_lock(tag);
    dn_tag_msg_t *msg =
        (dn_tag_msg_t *) dn_match_find(&tag->match, want->context, want->source, want->tag, want->ignore);
    if (NULL != msg) {
        *found_p = (dn_tag_found_t){{msg->match.context, msg->match.source, msg->match.tag}, msg->len};
        if (out) {
            dn_tag_take_kept(msg);
        }
    }
    dn_tag_unlock(tag);
    return msg;
}

int dn_tag_probe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p)
{
    return NULL != dn_tag_find(tag, want, false, found_p);
}

dn_tag_msg_t *dn_tag_mprobe(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_found_t *found_p)
{
    return dn_tag_find(tag, want, true, found_p);
}

void dn_tag_await(dn_tag_t *tag, const dn_tag_want_t *want, dn_tag_peer_t *from)
{
    dn_tag_lock(tag);
    /* The message may have come since the caller has looked. */
    const bool vain =
        dn_tag_is_vain(from, want->context, want->source)
        && NULL == dn_match_find(&tag->match, want->context, want->source, want->tag, want->ignore);
    dn_tag_unlock(tag);
    if (vain) {
        dn_tag_lost(from);
    }
}

void dn_tag_forget(dn_tag_t *tag, uint32_t context)
{
    dn_tag_forget_kept(tag, &context, NULL, false);
}
