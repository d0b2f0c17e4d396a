/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Sending: a message leaves at once where there is room. Otherwise it waits, in order, behind the messages that wait already.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

/** Pack the next bytes of a send. @return bytes packed, as dn_tag_config_t::pack. */
static size_t dn_tag_pack(dn_tag_req_t *req, void *to, size_t len)
{
    if (NULL != req->buffer) {
        dn_copy_in(to, req->buffer + req->done, len);
        return len;
    }
    return __builtin_expect(req->walks, 1) ? dn_prog_gather(to, &req->cursor, len)
                                           : req->tag->config.pack(req->layout, to, len);
}

/** Send a message whose data has to be packed. @param[in] head  The envelope; in DN_TAG_SYNC the request's handle follows. */
static dn_status_t dn_tag_send_packed(dn_tag_req_t *req, size_t head_len, const void *head)
{
    dn_peer_t *peer = req->peer->peer;
    dn_window_t window;
    const dn_status_t status = dn_botf_reserve(peer, head_len + req->len, &window);

    if (DN_OK == status) {
        memcpy(window.data, head, head_len);
        (void) dn_tag_pack(req, (uint8_t *) window.data + head_len, req->len);
        dn_tag_leaves(req->tag);
        dn_botf_kick(peer, &window, req->tag->channel, req->kind, head_len + req->len);
    }
    return status;
}

/** Take a request out of the line of waiting sends, if it is still there. A caller does so before it uses the item otherwise, or completes
 * the request. The answer to a request's first message may come to another thread before the thread that sent this message has taken
 * the request out of the line. */
static void dn_tag_leave_line(dn_tag_req_t *req)
{
    dn_tag_peer_t *peer = req->peer;

    dn_tag_lock(req->tag);
    if (&req->item == peer->waits.first) {
        (void) dn_fifo_pop(&peer->waits);
        peer->left++;
    }
    dn_tag_unlock(req->tag);
}

/** dn_comp_fn_t of an eager message whose memory was lent: dn_botf_lend(). */
static void dn_tag_returned(dn_comp_t *comp, dn_status_t status)
{
    dn_tag_req_t *req = (dn_tag_req_t *) ((uint8_t *) comp - offsetof(dn_tag_req_t, comp));
    dn_tag_peer_t *peer = req->peer;

    dn_tag_leave_line(req);
    if (DN_OK == status) {
        dn_tag_send_finish(req);
    } else {
        dn_tag_lost(peer);
        dn_tag_complete(req, status);
    }
    dn_tag_transfers(peer, -1);
}

/** Send an eager message whose memory lies together. @return DN_INPROGRESS: dn_tag_returned() ends the request. */
static dn_status_t dn_tag_post_eager(dn_tag_req_t *req)
{
    dn_tag_peer_t *peer = req->peer;
    const unsigned channel = req->tag->channel;
    dn_status_t status = DN_ERR_UNSUPPORTED;

    dn_tag_leaves(req->tag);
    if (req->len > peer->copy_limit) {
        req->comp.fn = dn_tag_returned;
        dn_tag_transfers(peer, 1);
        status = dn_botf_lend(peer->peer, channel, DN_TAG_EAGER, &req->head, sizeof(req->head), req->buffer,
                              req->len, &req->comp);
        if (DN_INPROGRESS != status) {
            dn_tag_transfers(peer, -1);
        }
    }
    return DN_ERR_UNSUPPORTED != status ? status
                                        : dn_botf(peer->peer, channel, DN_TAG_EAGER, &req->head,
                                                  sizeof(req->head), req->buffer, req->len);
}

/** Send the first message of a request. */
static dn_status_t dn_tag_post(dn_tag_req_t *req)
{
    struct {
        dn_tag_head_t head;
        uint64_t handle;
    } sync = {req->head, req->handle};
    const size_t head_len = DN_TAG_SYNC == req->kind ? sizeof(sync) : sizeof(req->head);
    dn_tag_rts_t rts;

    switch (req->kind) {
    case DN_TAG_EAGER:
    case DN_TAG_SYNC:
    case DN_TAG_NAME:
        if (NULL == req->buffer && 0 != req->len) {
            return dn_tag_send_packed(req, head_len, &sync);
        }
        if (DN_TAG_EAGER == req->kind) {
            return dn_tag_post_eager(req);
        }
        dn_tag_leaves(req->tag);
        return dn_botf(req->peer->peer, req->tag->channel, req->kind, &sync, head_len, req->buffer, req->len);
    default:
        memset(&rts, 0, sizeof(rts));
        rts.head = req->head;
        rts.request = req->handle;
        rts.len = req->len;
        rts.left = dn_clock_ns();
        rts.cross = dn_tag_cross(req);
        if (NULL != req->segment) {
            dn_segment_key(req->segment, &rts.key);
        }
        return dn_tag_tell(req->peer, req->kind, &rts, sizeof(rts));
    }
}

void dn_tag_unregister(dn_tag_req_t *req)
{
    if (NULL != req->segment) {
        dn_segment_free(req->segment);
        req->segment = NULL;
    }
}

void dn_tag_send_finish(dn_tag_req_t *req)
{
    dn_tag_unregister(req);
    dn_tag_complete(req, DN_OK);
}

/** The first message of a request has left. @param[in] last  The request, if it sends no other message and waits for nothing; or NULL. */
static void dn_tag_posted(dn_tag_peer_t *peer, const dn_tag_head_t *head, dn_tag_req_t *last)
{
    dn_tag_sent(peer, head);
    if (NULL != last) {
        dn_tag_send_finish(last);
    }
}

/** Is the first message of this kind the only message of its request, and not answered? */
static bool dn_tag_ends_there(enum dn_tag_kind kind)
{
    return DN_TAG_EAGER == kind || DN_TAG_NAME == kind;
}

/** Have a request wait for room, behind the requests that wait already. */
static void dn_tag_wait_in_line(dn_tag_req_t *req)
{
    dn_tag_peer_t *peer = req->peer;

    dn_tag_turn(req, DN_TAG_WAITS_ROOM);
    dn_tag_mark(peer);
    dn_tag_lock(req->tag);
    dn_fifo_push(&peer->waits, &req->item);
    dn_store_relaxed(&req->tag->queued, true);
    dn_tag_unlock(req->tag);
}

/**
 * Send the first message of a request, or have the request wait.
 * The caller has set the state before: the answer may come, and complete the request, before dn_botf() has returned.
 */
static dn_status_t dn_tag_start_send(dn_tag_req_t *req)
{
    dn_tag_peer_t *peer = req->peer;
    /* Another thread may take the answer, and free the request, while dn_tag_post() returns. */
    const dn_tag_head_t head = req->head;
    const bool ends = dn_tag_ends_there(req->kind);
    const dn_status_t status = NULL == dn_load_relaxed(&peer->waits.first) ? dn_tag_post(req) : DN_ERR_AGAIN;

    if (DN_OK == status || DN_INPROGRESS == status) {
        dn_tag_posted(peer, &head, DN_OK == status && ends ? req : NULL);
        return DN_OK;
    }
    if (DN_ERR_AGAIN == status) {
        dn_tag_wait_in_line(req);
        return DN_OK;
    }
    if (DN_ERR_UNREACH == status) {
        dn_tag_lost(peer);
    }
    if (DN_HANDLE_NONE != req->handle) {
        dn_tag_handle_drop(req);
    }
    dn_tag_unregister(req);
    return status;
}

/** Announce the message: choose the kind of its first message, and register its memory, so that the receiver can fetch the bytes. */
static void dn_tag_offer_bytes(dn_tag_req_t *req)
{
    req->kind = DN_TAG_RTS_PACKED;
    dn_tag_mark(req->peer);
    if (req->len <= req->peer->eager_limit) {
        req->number = dn_load_relaxed(&req->peer->longs);
    }
    if (NULL != req->buffer
        && DN_OK == dn_segment_register(req->tag->port, req->buffer, req->len, &req->segment)) {
        req->kind = DN_TAG_RTS;
    }
}

/** Announce a message that waits in line, if its receiver has asked for this meanwhile. Without memory for a handle the message goes as
 * planned. */
static void dn_tag_hold_back(dn_tag_req_t *req)
{
    if (__builtin_expect(dn_tag_is_held(req->peer, req->len), 0)
        && (DN_TAG_SYNC == req->kind || (DN_TAG_EAGER == req->kind && dn_tag_handle_add(req)))) {
        dn_tag_offer_bytes(req);
    }
}

int dn_tag_send_waiting(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;
    int events = 0;

    for (dn_queue_item_t *item; NULL != (item = dn_fifo_look(&peer->waits));) {
        dn_tag_req_t *req = dn_tag_req_of(item);
        const uint64_t left = peer->left;

        dn_tag_hold_back(req);
        dn_tag_turn(req, DN_TAG_WAITS_REPLY);
        /* Another thread may take the answer, and complete the request, while dn_tag_post() returns. */
        const dn_tag_head_t head = req->head;
        const bool ends = dn_tag_ends_there(req->kind);
        const dn_status_t status = dn_tag_post(req);

        if (DN_OK != status && DN_INPROGRESS != status) {
            dn_tag_turn(req, DN_TAG_WAITS_ROOM);
            if (DN_ERR_AGAIN != status) {
                dn_tag_stuck(peer, status);
            }
            break;
        }
        dn_tag_lock(tag);
        if (left == peer->left) {
            (void) dn_fifo_pop(&peer->waits);
            peer->left++;
        }
        dn_tag_unlock(tag);
        dn_tag_posted(peer, &head, DN_OK == status && ends ? req : NULL);
        dn_tag_mark(peer);
        events++;
    }
    return events;
}

/** Does the message go with its bytes, without being announced? */
static bool dn_tag_is_eager(const dn_tag_req_t *req)
{
    const dn_tag_peer_t *peer = req->peer;

    return req->len <= peer->eager_limit && !dn_tag_is_held(peer, req->len);
}

/** Choose the kind of the first message, and register the memory of a message that is announced. @return false: memory ran out. */
static bool dn_tag_plan(dn_tag_req_t *req, int synchronous)
{
    dn_tag_turn(req, DN_TAG_WAITS_REPLY);
    if (dn_tag_is_eager(req)) {
        req->kind = synchronous ? DN_TAG_SYNC : DN_TAG_EAGER;
    } else {
        dn_tag_offer_bytes(req);
    }
    if (DN_TAG_EAGER == req->kind || dn_tag_handle_add(req)) {
        return true;
    }
    dn_tag_unregister(req);
    return false;
}

/** Bytes of messages longer than DN_TAG_HELD_MIN between two reads of the receiver's messages. */
#define DN_TAG_HEED_BYTES (64u << 10)

/** Messages that are read at once, at most. These are more than a receiver of such messages sends between two reads. */
#define DN_TAG_HEED_MESSAGES 64

void dn_tag_listen(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;

    if (!dn_swap_acq_rel(&tag->heeding, true)) {
        (void) dn_recv(peer->peer, DN_TAG_HEED_MESSAGES);
        dn_store_release(&tag->heeding, false);
    }
}

void dn_tag_heed(dn_tag_peer_t *peer, size_t len)
{
    /* Where threads send at once, one look more or less is nothing. */
    const uint32_t ahead = dn_load_relaxed(&peer->ahead) + (uint32_t) len;

    if ((DN_TAG_HELD_MIN < len && ahead < DN_TAG_HEED_BYTES) || dn_load_relaxed(&peer->tag->heeding)) {
        dn_store_relaxed(&peer->ahead, ahead);
        return;
    }
    dn_store_relaxed(&peer->ahead, 0);
    dn_tag_listen(peer);
}

/** Nanoseconds for which a sender waits at most for a receiver that is behind. In this time a receiver that does nothing else takes half of
 * its kept messages (perf/dn_coll, pgather and igather, 2 ranks). After each wait in vain the next wait is half as long, down to a 64th. */
#define DN_TAG_MOMENT_NS     500000u
#define DN_TAG_MOMENT_HALVES 6

/** Wait until a receiver that is behind has caught up. A receiver that does not catch up in this time does something else, or first waits
 * for messages of this process: the sender goes on as if the receiver was not behind. A sender that shares its core does not wait: the
 * receiver may need the core. */
static __attribute__((noinline)) void dn_tag_pause(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;
    const unsigned vain = dn_load_relaxed(&tag->vain);
    const uint64_t began = dn_clock_ns();
    uint64_t now = began;

    if (dn_oversubscribed(tag->port)) {
        dn_store_relaxed(&peer->waited, true);
        return;
    }
    while (dn_tag_may_pause(peer) && !dn_load_acquire(&peer->lost)) {
        if (DN_TAG_MOMENT_NS >> vain < now - began) {
            dn_store_relaxed(&tag->vain, (uint8_t) (vain + (DN_TAG_MOMENT_HALVES > vain)));
            dn_store_relaxed(&peer->waited, true);
            return;
        }
        dn_tag_listen(peer);
        now = dn_clock_ns();
    }
    dn_store_relaxed(&tag->vain, (uint8_t) (vain - (0 != vain)));
}

/** A message has left with its bytes, or waits in line: read the receiver's messages, or wait for the receiver, where this is due. */
static void dn_tag_after(dn_tag_peer_t *peer, size_t len)
{
    if (dn_tag_heeds(peer, len)) {
        dn_tag_heed(peer, len);
    }
    if (DN_TAG_HELD_MIN >= len && dn_tag_may_pause(peer) && NULL == dn_load_relaxed(&peer->waits.first)
        && !dn_load_relaxed(&peer->tag->heeding)) {
        dn_tag_pause(peer);
    }
}

/** The rest of dn_tag_send(), once the fields of the request are set. */
static dn_status_t dn_tag_send_somehow(dn_tag_req_t *req, int synchronous)
{
    /* Once its last bytes have left, the request is the caller's. */
    dn_tag_peer_t *peer = req->peer;
    const size_t len = req->len;
    dn_status_t status = DN_OK;
    bool unasked = true;

    if (dn_tag_push(req)) {
        return DN_OK;
    }
    if (peer->eager_limit < len) {
        req->number = dn_fetch_add_relaxed(&peer->longs, 1) + 1;
    }
    if (synchronous || !dn_tag_flow(req)) {
        if (__builtin_expect(!dn_tag_plan(req, synchronous), 0)) {
            return DN_ERR_NOMEM;
        }
        unasked = DN_TAG_EAGER == req->kind || DN_TAG_SYNC == req->kind;
        status = dn_tag_start_send(req);
    }
    if (DN_OK == status && unasked) {
        dn_tag_after(peer, len);
    }
    return status;
}

/** Set the fields of a request for a send. */
static void dn_tag_send_begin(dn_tag_req_t *req, dn_tag_peer_t *peer, const dn_tag_head_t *head)
{
    req->tag = peer->tag;
    req->peer = peer;
    req->head = *head;
    req->state = DN_TAG_NEW;
    req->segment = NULL;
    req->handle = DN_HANDLE_NONE;
    req->done = 0;
}

dn_status_t dn_tag_send(dn_tag_req_t *req, dn_tag_peer_t *peer, const dn_tag_head_t *head, int synchronous)
{
    dn_tag_send_begin(req, peer, head);
    return dn_tag_send_somehow(req, synchronous);
}

dn_status_t dn_tag_send_name(dn_tag_req_t *req, dn_tag_peer_t *peer, uint32_t context)
{
    dn_tag_send_begin(req, peer, &(dn_tag_head_t){.context = context});
    req->kind = DN_TAG_NAME;
    dn_tag_turn(req, DN_TAG_WAITS_REPLY);
    return dn_tag_start_send(req);
}

void dn_tag_got_done(dn_tag_t *tag, const dn_peer_t *src, uint64_t handle)
{
    dn_tag_req_t *req = dn_tag_handle_find(tag, handle, src, DN_TAG_WAITS_REPLY);

    if (NULL == req) {
        tag->dropped++;
        return;
    }
    dn_tag_mark(req->peer);
    dn_tag_handle_drop(req);
    dn_tag_leave_line(req);
    dn_tag_send_finish(req);
}

void dn_tag_got_cts(dn_tag_t *tag, const dn_peer_t *src, const dn_tag_cts_t *cts)
{
    dn_tag_req_t *req = dn_tag_handle_find(tag, cts->request, src, DN_TAG_WAITS_REPLY);

    /* The bytes of a synchronous message have left with the message. They can be packed only once. */
    if (NULL == req || DN_TAG_SYNC == req->kind || cts->len > req->len) {
        tag->dropped++;
        return;
    }
    dn_tag_mark(req->peer);
    dn_tag_handle_drop(req);
    req->remote = cts->receiver;
    req->wanted = cts->len;
    dn_tag_turn(req, DN_TAG_SENDS);
    dn_tag_leave_line(req);
    dn_tag_busy(req);
}

static inline size_t dn_tag_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** Where the receiver has less room than the message is long, an element may end beyond the wanted bytes. The rest of the element is packed,
 * too, but not sent. */
dn_status_t dn_tag_send_piece(dn_tag_req_t *req, enum dn_tag_kind kind, const void *head)
{
    const size_t most =
        DN_TAG_FLOW == req->kind ? dn_tag_flow_piece(req->peer, req->len) : req->peer->piece_max;
    const size_t room = dn_tag_least(req->len - req->done, most);
    dn_peer_t *peer = req->peer->peer;
    dn_window_t window;

    const dn_status_t status = dn_botf_reserve(peer, DN_TAG_PIECE_HEAD + room, &window);
    if (DN_OK == status) {
        memcpy(window.data, head, DN_TAG_PIECE_HEAD);
        const size_t packed = dn_tag_pack(req, (uint8_t *) window.data + DN_TAG_PIECE_HEAD, room);
        const size_t len = dn_tag_least(packed, req->wanted - req->done);
        dn_tag_leaves(req->tag);
        dn_botf_kick(peer, &window, req->tag->channel, kind, DN_TAG_PIECE_HEAD + len);
        req->done += len;
        dn_tag_mark(req->peer);
    }
    return status;
}

bool dn_tag_send_pieces(dn_tag_req_t *req, int *events)
{
    const dn_tag_frag_t frag = {.receiver = req->remote};

    while (req->done < req->wanted) {
        const dn_status_t status = dn_tag_send_piece(req, DN_TAG_FRAG, &frag);

        if (DN_ERR_AGAIN == status) {
            return false;
        }
        if (DN_OK != status) {
            dn_tag_stuck(req->peer, status);
            return false;
        }
        (*events)++;
    }
    if (DN_TAG_FLOW == req->kind) {
        dn_tag_flow_end(req->peer);
    }
    dn_tag_send_finish(req);
    return true;
}
