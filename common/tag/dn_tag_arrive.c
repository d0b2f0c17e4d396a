/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Arriving: messages are read and matched. A message for which no receive is posted is kept.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

/** Bytes of a sender's unreceived messages beyond which the sender is to announce the longer messages, and to pause after the shorter ones.
 * To keep a message costs a second copy, and pages. And where a sender is far ahead, its messages are no longer in the caches. */
#define DN_TAG_BEHIND ((size_t) 256 << 10)

/** Are the bytes above the limit; or, if they were (@p was), not below half of the limit yet? */
static bool dn_tag_is_beyond(size_t bytes, size_t limit, bool was)
{
    return bytes > limit || (was && bytes >= limit / 2);
}

/** The messages that a sender is to hold back now. */
static enum dn_tag_hold dn_tag_holding(const dn_tag_peer_t *peer)
{
    const size_t limit = peer->tag->config.limit.unexpected_limit;

    if (dn_tag_is_beyond(peer->kept_bytes, limit, DN_TAG_HOLDS_ALL == peer->our_wish.hold)) {
        return DN_TAG_HOLDS_ALL;
    }
    return dn_tag_is_beyond(peer->kept_bytes, DN_TAG_BEHIND, DN_TAG_HOLDS_NONE != peer->our_wish.hold)
               ? DN_TAG_HOLDS_LONG
               : DN_TAG_HOLDS_NONE;
}

/** Bytes of data for which a kept message needs memory: the data is here, or flows. */
static size_t dn_tag_kept_data(enum dn_tag_kind kind, size_t len)
{
    return DN_TAG_EAGER == kind || DN_TAG_SYNC == kind || DN_TAG_FLOW == kind ? len : 0;
}

void dn_tag_wish_changed(dn_tag_peer_t *peer)
{
    dn_store_relaxed(&peer->wish_due, true);
    dn_store_relaxed(&peer->tag->queued, true);
}

/** Count the bytes of a message that is kept, or (@p waits is false) is not kept any more. Change the wish to the sender when its kept
 * messages become too many, or few again. The lock is held. */
static void dn_tag_account(const dn_tag_msg_t *msg, bool waits)
{
    dn_tag_peer_t *peer = msg->peer;
    const size_t bytes = sizeof(*msg) + dn_tag_kept_data(msg->kind, msg->len);

    peer->kept_bytes += waits ? bytes : -bytes;
    const enum dn_tag_hold holding = dn_tag_holding(peer);
    if (__builtin_expect(holding != peer->our_wish.hold, 0)) {
        peer->our_wish.hold = holding;
        dn_tag_wish_changed(peer);
    }
}

void dn_tag_say_wish(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;

    if (__builtin_expect(dn_load_relaxed(&peer->wish_due), 0) && 0 == pthread_mutex_trylock(&tag->pump)) {
        if (dn_load_relaxed(&peer->wish_due)) {
            (void) dn_tag_tell_wish(peer);
        }
        pthread_mutex_unlock(&tag->pump);
    }
}

void dn_tag_take_kept(dn_tag_msg_t *msg)
{
    dn_match_take(&msg->peer->tag->match, &msg->match);
    dn_tag_account(msg, false);
}

void dn_tag_forget_kept(dn_tag_t *tag, const uint32_t *context, const dn_tag_peer_t *peer, bool answered)
{
    dn_tag_lock(tag);
    for (dn_match_msg_t *next, *at = dn_match_next_kept(&tag->match, context, NULL); NULL != at; at = next) {
        dn_tag_msg_t *msg = (dn_tag_msg_t *) at;

        next = dn_match_next_kept(&tag->match, context, at);
        if ((NULL == peer || msg->peer == peer) && !(answered && DN_TAG_EAGER == msg->kind)) {
            dn_tag_take_kept(msg);
            if (msg == msg->peer->flow.msg) {
                msg->peer->flow.msg = NULL;
            }
            dn_tag_room_put(tag, msg);
        }
    }
    dn_tag_unlock(tag);
}

/** Keep a message for which no receive is posted. The lock is held. @return false: memory ran out. */
static bool dn_tag_keep(dn_tag_peer_t *peer, const dn_tag_arrival_t *arrival)
{
    dn_tag_msg_t *msg = dn_tag_room_get(peer->tag, dn_tag_kept_data(arrival->kind, arrival->len));

    if (NULL == msg) {
        return false;
    }
    msg->match.context = arrival->head.context;
    msg->match.source = arrival->head.source;
    msg->match.tag = arrival->head.tag;
    msg->kind = arrival->kind;
    msg->peer = peer;
    msg->request = arrival->request;
    msg->cross = arrival->cross;
    msg->key = arrival->key;
    msg->len = arrival->len;
    if (NULL != arrival->data) {
        memcpy(msg->data, arrival->data, arrival->len);
    }
    if (DN_TAG_FLOW == arrival->kind) {
        peer->flow.msg = msg;
    }
    dn_tag_account(msg, true);
    dn_match_keep(&peer->tag->match, &msg->match);
    return true;
}

/** A message has come: find its receive, which can no longer be cancelled. The lock is held. @return NULL: there is none. */
static inline dn_tag_req_t *dn_tag_claim(dn_tag_peer_t *peer, const dn_tag_head_t head)
{
    dn_match_recv_t *found = dn_match_arrive(&peer->tag->match, head.context, head.source, head.tag);

    peer->seen++;
    if (__builtin_expect(NULL == found, 0)) {
        return NULL;
    }
    dn_tag_req_t *req = (dn_tag_req_t *) ((uint8_t *) found - offsetof(dn_tag_req_t, posted));
    dn_tag_turn(req, DN_TAG_MATCHED);
    return req;
}

void dn_tag_arrive(dn_tag_t *tag, dn_peer_t *src, const dn_tag_arrival_t *arrival)
{
    dn_tag_req_t *req = NULL;
    bool kept = false;

    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    if (__builtin_expect(NULL != peer, 1)) {
        req = dn_tag_claim(peer, arrival->head);
        kept = NULL == req && dn_tag_keep(peer, arrival);
        if (NULL != req && DN_TAG_EAGER == arrival->kind) {
            dn_tag_let_rest_lie(peer);
        }
    }
    dn_tag_unlock(tag);
    if (NULL != req) {
        dn_tag_deliver(req, arrival, peer);
    } else if (kept) {
        dn_tag_say_wish(peer);
    } else {
        tag->config.no_memory(tag->config.arg);
    }
}

/** An eager message as an arrival. */
static inline dn_tag_arrival_t dn_tag_eager_arrival(const dn_tag_head_t head, const uint8_t *data, size_t len)
{
    return (dn_tag_arrival_t){
        .kind = DN_TAG_EAGER, .head = head, .request = DN_HANDLE_NONE, .len = len, .data = data};
}

/** The case of dn_tag_arrive_eager() where there are threads, or the sender is new. */
static __attribute__((noinline)) void
dn_tag_arrive_shared(dn_tag_t *tag, dn_peer_t *src, const dn_tag_head_t head, const uint8_t *data, size_t len)
{
    const dn_tag_arrival_t arrival = dn_tag_eager_arrival(head, data, len);

    dn_tag_arrive(tag, src, &arrival);
}

/** The case of dn_tag_arrive_eager() where the message comes before its receive. */
static __attribute__((noinline)) void dn_tag_arrive_early(dn_tag_peer_t *peer, const dn_tag_head_t head,
                                                          const uint8_t *data, size_t len)
{
    const dn_tag_arrival_t arrival = dn_tag_eager_arrival(head, data, len);

    if (dn_tag_keep(peer, &arrival)) {
        dn_tag_say_wish(peer);
    } else {
        peer->tag->config.no_memory(peer->tag->config.arg);
    }
}

/** dn_tag_arrive() of an eager message, as most messages are. The values stay in registers. */
static inline void dn_tag_arrive_eager(dn_tag_t *tag, dn_peer_t *src, const dn_tag_head_t head,
                                       const uint8_t *data, size_t len)
{
    /* Where there are threads, the engine's part of a peer is read under the lock. */
    dn_tag_peer_t *peer = __builtin_expect(tag->config.threads, 0) ? NULL : dn_peer_user(src, tag->channel);

    if (__builtin_expect(NULL == peer, 0)) {
        dn_tag_arrive_shared(tag, src, head, data, len);
        return;
    }
    dn_tag_req_t *req = dn_tag_claim(peer, head);
    if (__builtin_expect(NULL != req, 1)) {
        dn_tag_let_rest_lie(peer);
        dn_tag_deliver_eager(req, head, data, len);
    } else {
        dn_tag_arrive_early(peer, head, data, len);
    }
}

/** Handle DN_TAG_WISH: note the receiver's wish. @return false: malformed. */
static bool dn_tag_got_wish(dn_tag_t *tag, dn_peer_t *src, const dn_tag_wish_t *wish)
{
    if (DN_TAG_HOLDS_ALL < wish->hold || 0 != (wish->flows & ~DN_PACE_FLOW_ALL)) {
        return false;
    }
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, src);
    if (NULL != peer) {
        if (wish->hold != dn_load_relaxed(&peer->wish.hold)) {
            dn_store_relaxed(&peer->waited, false);
        }
        dn_store_relaxed(&peer->wish.hold, wish->hold);
        dn_store_relaxed(&peer->wish.flows, wish->flows);
        dn_store_relaxed(&peer->flowed, 0);
    }
    dn_tag_unlock(tag);
    return true;
}

/** Handle DN_TAG_HOW_FAR. If there is no room for an answer, the peer asks again. */
static void dn_tag_got_how_far(dn_tag_t *tag, dn_peer_t *src)
{
    const uint64_t moves = dn_peer_moves(src);

    dn_tag_leaves(tag);
    (void) dn_botf(src, tag->channel, DN_TAG_SO_FAR, &moves, sizeof(moves), NULL, 0);
}

/** Handle DN_TAG_SO_FAR: if the number has changed, the peer has read more of what waits for it. */
static void dn_tag_got_so_far(dn_tag_t *tag, const dn_peer_t *src, uint64_t moves)
{
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_peer_user(src, tag->channel);
    if (NULL != peer && moves != peer->so_far) {
        peer->so_far = moves;
        dn_tag_mark(peer);
    }
    dn_tag_unlock(tag);
}

/** Read a message by its kind, which the caller has set. @return false: the message is malformed. */
static bool dn_tag_read(dn_tag_arrival_t *arrival, const uint8_t *data, size_t len)
{
    dn_tag_rts_t rts;

    if (sizeof(arrival->head) > len) {
        return false;
    }
    arrival->head = dn_tag_head_of(data);
    if (0 > arrival->head.source) {
        return false;
    }
    arrival->left = 0;
    if (DN_TAG_EAGER == arrival->kind) {
        *arrival =
            dn_tag_eager_arrival(arrival->head, data + sizeof(arrival->head), len - sizeof(arrival->head));
        return true;
    }
    if (DN_TAG_SYNC == arrival->kind) {
        arrival->data = data + sizeof(arrival->head) + sizeof(arrival->request);
        arrival->len = len - sizeof(arrival->head) - sizeof(arrival->request);
        if (sizeof(arrival->head) + sizeof(arrival->request) > len) {
            return false;
        }
        memcpy(&arrival->request, data + sizeof(arrival->head), sizeof(arrival->request));
        return true;
    }
    if (sizeof(rts) != len) {
        return false;
    }
    memcpy(&rts, data, sizeof(rts));
    arrival->request = rts.request;
    arrival->key = rts.key;
    arrival->len = rts.len;
    arrival->left = rts.left;
    arrival->cross = rts.cross;
    arrival->data = NULL;
    return DN_TAG_RTS_PACKED == arrival->kind || rts.key.len == rts.len;
}

/** A message whose sender waits for an answer, or an eager message of a context that has a name. @return 0: malformed. */
static __attribute__((noinline)) int dn_tag_got_message(dn_tag_t *tag, dn_peer_t *src, unsigned kind,
                                                        const void *data, size_t len)
{
    dn_tag_arrival_t arrival = {.kind = (enum dn_tag_kind) kind};

    if (!dn_tag_read(&arrival, data, len) || !dn_tag_translate(tag, src, &arrival.head)) {
        return 0;
    }
    dn_tag_arrive(tag, src, &arrival);
    return 1;
}

/** Read a message whose kind has a fixed length. @return 0: the message has another length. */
static int dn_tag_read_fixed(void *message, size_t size, const void *data, size_t len)
{
    if (size != len) {
        return 0;
    }
    memcpy(message, data, len);
    return 1;
}

/** Handle a message that is not eager, or whose context has a name, or that is malformed. @return 0: malformed. */
static __attribute__((noinline)) int dn_tag_control(dn_tag_t *tag, dn_peer_t *src, unsigned kind,
                                                    const void *data, size_t len)
{
    union {
        dn_tag_cts_t cts;
        dn_tag_announce_t announce;
        dn_tag_takes_t takes;
        dn_tag_pushed_t pushed;
        dn_tag_wish_t wish;
        dn_tag_named_t named;
        uint64_t handle;
        uint64_t moves;
    } message;
    int good = 0;

    switch (kind) {
    case DN_TAG_EAGER:
    case DN_TAG_SYNC:
    case DN_TAG_RTS:
    case DN_TAG_RTS_PACKED:
        good = dn_tag_got_message(tag, src, kind, data, len);
        break;
    case DN_TAG_CTS:
        good = dn_tag_read_fixed(&message, sizeof(message.cts), data, len);
        if (good) {
            dn_tag_got_cts(tag, src, &message.cts);
        }
        break;
    case DN_TAG_ANNOUNCE:
        good = dn_tag_read_fixed(&message, sizeof(message.announce), data, len);
        if (good) {
            dn_tag_got_announce(tag, src, &message.announce);
        }
        break;
    case DN_TAG_TAKES:
        good = dn_tag_read_fixed(&message, sizeof(message.takes), data, len);
        if (good) {
            dn_tag_got_takes(tag, src, &message.takes);
        }
        break;
    case DN_TAG_PUSHED:
        good = dn_tag_read_fixed(&message, sizeof(message.pushed), data, len);
        if (good) {
            dn_tag_got_pushed(tag, src, &message.pushed);
        }
        break;
    case DN_TAG_DONE:
        good = dn_tag_read_fixed(&message, sizeof(message.handle), data, len);
        if (good) {
            dn_tag_got_done(tag, src, message.handle);
        }
        break;
    case DN_TAG_FRAG:
        good = sizeof(dn_tag_frag_t) <= len;
        if (good) {
            memcpy(&message.handle, data, sizeof(message.handle));
            const uint8_t *bytes = (const uint8_t *) data + sizeof(dn_tag_frag_t);
            if (DN_HANDLE_NONE == message.handle) {
                good = dn_tag_got_flow_frag(tag, src, bytes, len - sizeof(dn_tag_frag_t));
            } else {
                dn_tag_got_frag(tag, src, message.handle, bytes, len - sizeof(dn_tag_frag_t));
            }
        }
        break;
    case DN_TAG_FLOW:
        good = dn_tag_got_flow(tag, src, data, len);
        break;
    case DN_TAG_WISH:
        good = dn_tag_read_fixed(&message, sizeof(message.wish), data, len)
               && dn_tag_got_wish(tag, src, &message.wish);
        break;
    case DN_TAG_HOW_FAR:
        good = dn_tag_read_fixed(&message, sizeof(message.moves), data, len);
        if (good) {
            dn_tag_got_how_far(tag, src);
        }
        break;
    case DN_TAG_SO_FAR:
        good = dn_tag_read_fixed(&message, sizeof(message.moves), data, len);
        if (good) {
            dn_tag_got_so_far(tag, src, message.moves);
        }
        break;
    case DN_TAG_NAME:
        good = dn_tag_read_fixed(&message, sizeof(message.named), data, len)
               && dn_tag_got_name(tag, src, &message.named);
        break;
    default:
        break;
    }
    return good;
}

void dn_tag_receive(dn_peer_t *src, unsigned kind, const void *data, size_t len, void *arg)
{
    dn_tag_t *tag = arg;

    dn_tag_comes(tag);
    if (__builtin_expect(DN_TAG_EAGER == kind && sizeof(dn_tag_head_t) <= len, 1)) {
        const dn_tag_head_t head = dn_tag_head_of(data);
        /* The first bit of either is set in what takes longer: DN_TAG_NAMED, or what is malformed. */
        if (__builtin_expect(0 <= (head.source | (int32_t) head.context), 1)) {
            dn_tag_arrive_eager(tag, src, head, (const uint8_t *) data + sizeof(head), len - sizeof(head));
            return;
        }
    }
    if (!dn_tag_control(tag, src, kind, data, len)) {
        tag->dropped++;
    }
}
