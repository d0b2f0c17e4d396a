/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Flows: messages of medium length whose bytes follow their envelope without being asked for.
 *
 *   sender                           receiver
 *   DN_TAG_FLOW, first bytes ----->  matched, or kept with room for all of it
 *   DN_TAG_FRAG, more bytes  ----->  ...
 *   DN_TAG_FRAG, the last    ----->  complete
 *
 * To ask for a message takes a round trip, in which both sides might have copied 10 KiB and more. And cut into pieces, it is copied
 * out while its later pieces are copied in. Of one sender, one message flows at a time: its pieces need not say whose they are. Another
 * one that comes meanwhile is announced.
 *
 * What flows is copied twice, and takes memory at a receiver that does not wait for it. Where a copy by the kernel takes less time,
 * the receiver finds out (dn_pace.h), and wishes that the sender announces messages of this length. That is for the sender's memory
 * which lies together: what has to be packed flows.
 *
 * A message that nobody waits for when it begins is kept until all of it is here, even if its receive comes in the meantime. So pieces
 * are put into the receive's memory by the handlers alone, and into that of a kept message under the lock.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

/** Bytes of a piece at most: four and their heads fit into a granule of the stage. A multiple of DN_TAG_PIECE_UNIT. */
#define DN_TAG_FLOW_PIECE ((size_t) 7680)

/** Messages in a row whose time is taken, of so many that flow. The first ones are. */
#define DN_TAG_FLOW_TIMED 16u
#define DN_TAG_FLOW_EVERY 64u

_Static_assert(DN_TAG_PIECE_HEAD == sizeof(dn_tag_flow_t) && DN_TAG_PIECE_HEAD == sizeof(dn_tag_frag_t),
               "pieces of a message lie alike");

/** @name The sender */
/** @{ */
size_t dn_tag_flow_piece(const dn_tag_peer_t *peer, size_t len)
{
    const size_t most = DN_TAG_FLOW_PIECE < peer->piece_max ? DN_TAG_FLOW_PIECE : peer->piece_max;
    const size_t pieces = (len + most - 1) / most;
    const size_t least = (len + pieces - 1) / pieces;

    return (least + DN_TAG_PIECE_UNIT - 1) / DN_TAG_PIECE_UNIT * DN_TAG_PIECE_UNIT;
}

/** Is a message of such a length that it may flow, and does its receiver wish it? */
static bool dn_tag_is_flow(const dn_tag_req_t *req)
{
    const dn_tag_peer_t *peer = req->peer;

    if (!peer->flows || req->len <= peer->eager_limit || req->len > DN_PACE_FLOW_MAX) {
        return false;
    }
    return NULL == req->buffer || 0 != (dn_load_relaxed(&peer->wish.flows) & dn_pace_flow_bit(req->len));
}

/** When does a message leave? To look takes a part of the time that it takes itself, so that most leave without. */
static uint64_t dn_tag_flow_leaves(dn_tag_peer_t *peer)
{
    const uint32_t flowed = dn_load_relaxed(&peer->flowed);

    dn_store_relaxed(&peer->flowed, flowed + 1);
    return flowed % DN_TAG_FLOW_EVERY < DN_TAG_FLOW_TIMED ? dn_clock_ns() : 0;
}

bool dn_tag_flow(dn_tag_req_t *req)
{
    dn_tag_peer_t *peer = req->peer;
    int events = 0;

    if (!dn_tag_is_flow(req) || dn_tag_is_held(peer, req->len) || NULL != dn_load_relaxed(&peer->waits.first)
        || !dn_cas_acq_rel_u32(&peer->flowing, 0, 1)) {
        return false;
    }
    /* To pack takes a time of its own. */
    const uint64_t left = NULL == req->buffer ? 0 : dn_tag_flow_leaves(peer);
    const dn_tag_flow_t flow = {.head = req->head, .len = req->len, .left = left};
    req->kind = DN_TAG_FLOW;
    req->remote = DN_HANDLE_NONE;
    req->wanted = req->len;
    if (DN_OK != dn_tag_send_piece(req, DN_TAG_FLOW, &flow)) {
        /* It goes as others do, and finds the same error. */
        dn_tag_flow_end(peer);
        return false;
    }
    dn_tag_sent(peer, &req->head);
    dn_tag_turn(req, DN_TAG_SENDS);
    if (!dn_tag_send_pieces(req, &events)) {
        dn_tag_busy(req);
    }
    return true;
}
/** @} */

/** @name The receiver */
/** @{ */
/** Bytes of a piece whose middle the processor's own prefetching does not reach from its head. */
#define DN_TAG_LOOK_LEAST ((size_t) 2048)

/** Nanoseconds that a line takes to be loaded. Where the clock is coarse, or the processor reads it before the line is here, a far line seems
 * near: what is guessed from it is corrected later. */
static uint64_t dn_tag_line_ns(const uint8_t *line)
{
    const uint64_t before = dn_clock_ns();
    (void) *(const volatile uint8_t *) line;
    dn_fence_acquire();
    const uint64_t between = dn_clock_ns();
    const uint64_t clock = dn_clock_ns() - between;
    const uint64_t all = between - before;

    return all < clock ? 0 : all - clock;
}

/** The next bytes have come. */
static void dn_tag_flow_fill(dn_tag_t *tag, dn_tag_peer_t *peer, const uint8_t *data, size_t len)
{
    dn_tag_lock(tag);
    dn_tag_req_t *req = peer->flow.req;
    dn_tag_msg_t *msg = peer->flow.msg;

    if (NULL != req && NULL == msg && DN_TAG_LOOK_LEAST <= len && dn_pace_looks(&peer->pace)) {
        dn_pace_look(&peer->pace, dn_tag_line_ns(data + len / 2));
    }
    if (NULL != msg) {
        memcpy(msg->data + (msg->len - peer->flow.left), data, len);
    }
    peer->flow.left -= len;
    const bool ends = 0 == peer->flow.left;
    if (ends) {
        peer->flow.req = NULL;
        peer->flow.msg = NULL;
        if (NULL != msg) {
            /* From now on it is as one that has come at once. */
            msg->kind = DN_TAG_EAGER;
            dn_pace_pass(&peer->pace, dn_clock_ns());
        }
    }
    dn_tag_unlock(tag);
    if (NULL == req) {
        return;
    }
    if (NULL == msg) {
        const size_t room = req->wanted - req->done;
        dn_tag_fill(req, data, len < room ? len : room);
        if (ends) {
            dn_tag_learn_way(req);
        }
    } else if (ends) {
        dn_tag_fill(req, msg->data, req->wanted);
        dn_tag_lock(tag);
        dn_tag_room_put(tag, msg);
        dn_tag_unlock(tag);
    }
    if (ends) {
        dn_tag_recv_finish(req);
    }
}

bool dn_tag_got_flow(dn_tag_t *tag, dn_peer_t *src, const uint8_t *data, size_t len)
{
    dn_tag_flow_t flow;

    if (sizeof(flow) > len) {
        return false;
    }
    memcpy(&flow, data, sizeof(flow));
    const size_t first = len - sizeof(flow);
    if (0 > flow.head.source || 0 == flow.len || DN_PACE_FLOW_MAX < flow.len || flow.len < first
        || !dn_tag_translate(tag, src, &flow.head)) {
        return false;
    }
    const dn_tag_arrival_t arrival = {
        .kind = DN_TAG_FLOW, .head = flow.head, .len = flow.len, .left = flow.left};
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    const bool begins = NULL != peer && 0 == peer->flow.left;
    if (begins) {
        peer->flow.left = flow.len;
    }
    dn_tag_unlock(tag);
    if (NULL == peer) {
        tag->config.no_memory(tag->config.arg);
    } else if (begins) {
        dn_tag_arrive(tag, src, &arrival);
        dn_tag_flow_fill(tag, peer, data + sizeof(flow), first);
    }
    return NULL == peer || begins;
}

bool dn_tag_got_flow_frag(dn_tag_t *tag, const dn_peer_t *src, const uint8_t *data, size_t len)
{
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_peer_user(src, tag->channel);
    const bool good = NULL != peer && len <= peer->flow.left;
    dn_tag_unlock(tag);
    if (good && 0 != len) {
        dn_tag_flow_fill(tag, peer, data, len);
    }
    return good;
}

void dn_tag_flow_await(dn_tag_req_t *req, dn_tag_peer_t *peer)
{
    req->peer = peer;
    req->way = DN_PACE_ONLY;
    dn_tag_turn(req, DN_TAG_WAITS_BYTES);
    peer->flow.req = req;
}

dn_tag_req_t *dn_tag_flow_abandon(dn_tag_peer_t *peer)
{
    dn_tag_req_t *req = peer->flow.req;

    if (NULL != req) {
        /* Kept or not, what has come of it is nobody's. */
        dn_tag_room_put(peer->tag, peer->flow.msg);
        peer->flow.msg = NULL;
        peer->flow.req = NULL;
    } else if (NULL != peer->flow.msg) {
        /* It is probed: a kept one has been forgotten. Its receive is still to come. */
        peer->flow.msg->peer = NULL;
        peer->flow.msg = NULL;
    }
    return req;
}
/** @} */
