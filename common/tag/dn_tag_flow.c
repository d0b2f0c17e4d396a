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
 * To ask for a message takes a round trip, in which both sides might have copied 10 KiB and more. And a message in pieces is copied out
 * while its later pieces are copied in. One message of a sender to a receiver flows at a time, so its pieces need not name the message.
 * A message that is sent meanwhile is announced.
 *
 * A message that flows is copied twice, and takes memory at a receiver that has not posted its receive. Where a copy by the kernel takes
 * less time, or by the rules of dn_pace.h, the receiver finds this out, and wishes that the sender announces messages of this length. The sender follows
 * the wish where its memory lies together. A message that has to be packed flows in any case.
 *
 * A message that has no posted receive when it begins is kept until all of it is here, even if its receive comes in the meantime. So only
 * the handlers put pieces into a receive's memory, and pieces are put into a kept message's memory under the lock.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

/** Bytes of a piece at most: four such pieces with their heads fit into a granule of the stage. A multiple of DN_TAG_PIECE_UNIT. */
#define DN_TAG_FLOW_PIECE ((size_t) 7680)

/** Of DN_TAG_FLOW_EVERY messages that flow, the first DN_TAG_FLOW_TIMED are timed. */
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

/** The time at which a message leaves; 0: not timed. To read the clock takes a good part of the time that a message takes, so most messages
 * are not timed. */
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
    /* Packing takes time, too: a packed message would not tell how long its way takes. */
    const uint64_t left = NULL == req->buffer ? 0 : dn_tag_flow_leaves(peer);
    const dn_tag_flow_t flow = {.head = req->head, .len = req->len, .left = left, .cross = dn_tag_cross(req)};
    req->kind = DN_TAG_FLOW;
    req->remote = DN_HANDLE_NONE;
    req->wanted = req->len;
    if (DN_OK != dn_tag_send_piece(req, DN_TAG_FLOW, &flow)) {
        /* The message is sent another way, and meets the same error there. */
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
/** Least bytes of a piece whose middle line is timed: the processor's prefetching does not reach it from the head of the piece. */
#define DN_TAG_LOOK_LEAST ((size_t) 2048)

/** Nanoseconds that the load of a line takes. Where the clock is coarse, or the processor reads the clock before the line is here, a far line
 * seems near. Later trials correct a wrong guess. */
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

/** The next bytes of the message that flows have come. */
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
        dn_tag_hear(peer, peer->flow.number);
        if (NULL != req) {
            dn_tag_let_rest_lie(peer);
        }
        peer->flow.req = NULL;
        peer->flow.msg = NULL;
        if (NULL != msg) {
            /* From now on the message is as an eager one that has come whole. */
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
        .kind = DN_TAG_FLOW, .head = flow.head, .len = flow.len, .left = flow.left, .cross = flow.cross};
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    const bool begins = NULL != peer && 0 == peer->flow.left;
    if (begins) {
        peer->flow.left = flow.len;
        peer->flow.number = flow.cross.number;
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
        /* The receive does not need the bytes that were kept. */
        dn_tag_room_put(peer->tag, peer->flow.msg);
        peer->flow.msg = NULL;
        peer->flow.req = NULL;
    } else if (NULL != peer->flow.msg) {
        /* The message was taken by dn_tag_mprobe(), since kept ones have been dropped. Its dn_tag_mrecv() is still to come. */
        peer->flow.msg->peer = NULL;
        peer->flow.msg = NULL;
    }
    return req;
}
/** @} */
