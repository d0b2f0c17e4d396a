/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Engines and peers: they are made and freed. Handles of requests. Waiting requests are tried again.
 */
#include "dn_config.h"

#include "dn_tag_int.h"

#include <stdlib.h>

#include "dn_log.h"
#include "dn_wait.h"

/** Polls between two looks whether the peer lives, while the last messages to the peer are not there yet. A look calls the kernel. */
#define DN_TAG_LAST_POLLS 1000
/** A peer for which nothing has moved for so long is given up: dn_tag_t::patience. */
#define DN_TAG_LAST_NS UINT64_C(10000000000)

/** Nanoseconds for which dn_tag_await_transfers() waits. */
#define DN_TAG_PATIENCE_NS 3000000000u

/** Longest eager message over sockets that is copied. Beyond this length the copy would take longer than to lend the bytes, and wait until
 * they have left. */
#define DN_TAG_COPY_MAX (12u << 10)

/** Longest envelope before eager data. */
#define DN_TAG_HEAD_MAX (sizeof(dn_tag_head_t) + sizeof(uint64_t))

/** The arrows of the drawing in dn_tag.h, and further arrows to COMPLETE for requests whose peer is left or lost. */
#define TO(state) DN_TURN_TO(DN_TAG_##state)
const uint32_t dn_tag_turns[] = {
    [DN_TAG_NEW] = TO(WAITS_ROOM) | TO(WAITS_REPLY) | TO(SENDS) | TO(PUSH_STARTS) | TO(POSTED) | TO(MATCHED),
    [DN_TAG_WAITS_ROOM] = TO(WAITS_REPLY) | TO(COMPLETE),
    [DN_TAG_WAITS_REPLY] = TO(WAITS_ROOM) | TO(SENDS) | TO(COMPLETE),
    [DN_TAG_SENDS] = TO(COMPLETE),
    [DN_TAG_PUSH_STARTS] = TO(PUSHES) | TO(COMPLETE),
    [DN_TAG_PUSHES] = TO(PUSH_STARTS) | TO(TELLS),
    [DN_TAG_TELLS] = TO(WAITS_REPLY) | TO(COMPLETE),
    [DN_TAG_POSTED] = TO(MATCHED) | TO(IS_PUSHED) | TO(COMPLETE),
    [DN_TAG_MATCHED] = TO(STARTS) | TO(PULLS) | TO(ASKS) | TO(WAITS_BYTES) | TO(ANSWERS) | TO(COMPLETE),
    [DN_TAG_IS_PUSHED] = TO(ASKS) | TO(COMPLETE),
    [DN_TAG_STARTS] = TO(PULLS) | TO(COMPLETE),
    [DN_TAG_PULLS] = TO(STARTS) | TO(ASKS) | TO(ANSWERS) | TO(COMPLETE),
    [DN_TAG_WAITS_BYTES] = TO(ASKS) | TO(COMPLETE),
    [DN_TAG_ANSWERS] = TO(COMPLETE),
    [DN_TAG_ASKS] = TO(WAITS_BYTES) | TO(ANSWERS) | TO(COMPLETE),
    [DN_TAG_COMPLETE] = 0,
};
#undef TO

/** @name Handles */
/** @{ */
int dn_tag_handle_add(dn_tag_req_t *req)
{
    dn_tag_lock(req->tag);
    req->handle = dn_handle_add(&req->tag->handles, req);
    dn_tag_unlock(req->tag);
    return DN_HANDLE_NONE != req->handle;
}

void dn_tag_handle_drop(dn_tag_req_t *req)
{
    dn_tag_lock(req->tag);
    dn_handle_drop(&req->tag->handles, req->handle);
    req->handle = DN_HANDLE_NONE;
    dn_tag_unlock(req->tag);
}

dn_tag_req_t *dn_tag_handle_find(dn_tag_t *tag, uint64_t handle, const dn_peer_t *peer,
                                 enum dn_tag_state state)
{
    dn_tag_lock(tag);
    dn_tag_req_t *req = dn_handle_find(&tag->handles, handle);
    if (NULL != req && (peer != req->peer->peer || state != dn_tag_state_of(req))) {
        req = NULL;
    }
    dn_tag_unlock(tag);
    return req;
}
/** @} */

/** @name Peers */
/** @{ */
/** Bytes of data in an eager message to a peer. */
static size_t dn_tag_eager_limit(const dn_tag_limits_t *limit, const dn_peer_attr_t *attr)
{
    const size_t most = attr->botf_max - DN_TAG_HEAD_MAX;
    const size_t far = 0 != attr->sockets ? limit->sockets_eager_limit : 0;
    const size_t wanted = far > limit->eager_limit ? far : limit->eager_limit;

    return wanted < most ? wanted : most;
}

static dn_tag_peer_t *dn_tag_peer_new(dn_tag_t *tag, dn_peer_t *hot)
{
    dn_tag_peer_t *peer = calloc(1, sizeof(*peer));
    dn_peer_attr_t attr;

    if (NULL == peer) {
        return NULL;
    }
    dn_peer_attr(hot, &attr);
    peer->peer = hot;
    peer->tag = tag;
    peer->sent = peer->seen = dn_first(tag->port);
    peer->longs = peer->heard = (uint32_t) dn_first(tag->port);
    peer->eager_limit = dn_tag_eager_limit(&tag->config.limit, &attr);
    peer->copy_limit =
        0 != attr.sockets && peer->eager_limit > DN_TAG_COPY_MAX ? DN_TAG_COPY_MAX : peer->eager_limit;
    /* A peer that is reached through a network's library may have another clock. */
    peer->kernel_copies = 0 != attr.direct && NULL == attr.provider;
    peer->piece_max = (attr.botf_max - DN_TAG_PIECE_HEAD) & ~(size_t) (DN_TAG_PIECE_UNIT - 1);
    /* Messages flow where both sides share memory: the sender copies in while the receiver copies out. */
    peer->flows = 0 != (attr.caps & DN_CAP_MAP) && DN_PACE_STREAM_NEVER != tag->config.limit.stream;
    peer->wish.flows = peer->our_wish.flows = DN_PACE_FLOW_ALL;
    dn_peer_set_user(hot, tag->channel, peer);
    peer->next = tag->peers;
    tag->peers = peer;
    return peer;
}

dn_tag_peer_t *dn_tag_peer_of(dn_tag_t *tag, dn_peer_t *hot)
{
    dn_tag_peer_t *peer = dn_peer_user(hot, tag->channel);

    return __builtin_expect(NULL != peer, 1) ? peer : dn_tag_peer_new(tag, hot);
}

dn_tag_peer_t *dn_tag_join(dn_tag_t *tag, dn_peer_t *hot, void *user)
{
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_tag_peer_of(tag, hot);
    const bool first = NULL != peer && NULL == peer->user;
    if (first) {
        dn_store_relaxed(&peer->user, user);
    }
    dn_tag_unlock(tag);
    if (!first) {
        dn_disconnect(hot);
    }
    return peer;
}

/** Take a peer off the list of peers. The peer's own `next` stays, since dn_tag_pump_peers() may be at this peer. The lock is held.
 * @return false: the peer was not in the list. */
static bool dn_tag_unlink(const dn_tag_peer_t *peer)
{
    dn_tag_peer_t **link = &peer->tag->peers;

    while (NULL != *link && peer != *link) {
        link = &(*link)->next;
    }
    if (NULL == *link) {
        return false;
    }
    dn_store_relaxed(link, peer->next);
    return true;
}

/** Keep the engine's part of a peer until the engine ends. The lock is held. */
static void dn_tag_keep_gone(dn_tag_peer_t *peer)
{
    peer->next_gone = peer->tag->gone;
    peer->tag->gone = peer;
}

/** End a request of a peer that is left; but a posted receive only loses its announcement. The request is in no queue any more. */
static void dn_tag_abandon(dn_tag_req_t *req)
{
    switch (req->state) {
    case DN_TAG_POSTED:
        dn_tag_announce_end(req);
        return;
    case DN_TAG_IS_PUSHED:
        dn_segment_free(req->segment);
        break;
    case DN_TAG_WAITS_ROOM:
    case DN_TAG_WAITS_REPLY:
    case DN_TAG_SENDS:
        dn_tag_unregister(req);
        break;
    default:
        break;
    }
    if (DN_HANDLE_NONE != req->handle) {
        dn_tag_handle_drop(req);
    }
    dn_tag_complete(req, DN_ERR_UNREACH);
}

/** Find a request of a peer among those that wait or have a handle, and take it out of its queue. A request whose transfer is in flight is
 * left out: it ends by itself. @return NULL: there is none. */
static dn_tag_req_t *dn_tag_unlink_one(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;

    dn_tag_lock(tag);
    dn_tag_req_t *found;
    dn_queue_item_t *item = dn_fifo_pop(&peer->waits);
    if (NULL != item) {
        found = dn_tag_req_of(item);
        peer->left++;
    } else {
        found = dn_tag_flow_abandon(peer);
    }
    for (item = dn_fifo_first(&tag->busy); NULL == found && NULL != item; item = dn_fifo_next(item)) {
        if (peer == dn_tag_req_of(item)->peer) {
            found = dn_tag_req_of(item);
            dn_fifo_remove(&tag->busy, item);
        }
    }
    for (uint32_t i = 0; NULL == found && i < tag->handles.count; i++) {
        dn_tag_req_t *req = tag->handles.slot[i].object;

        if (NULL != req && peer == req->peer && DN_TAG_PUSHES != req->state) {
            found = req;
        }
    }
    dn_tag_unlock(tag);
    return found;
}

/** Drive the port until the transfers of a peer have ended, or DN_TAG_PATIENCE_NS have gone by since @p since. Transfers of which a lost
 * peer's process copied a share end within 2 s. @return whether all have ended. */
static bool dn_tag_await_transfers(const dn_tag_peer_t *peer, uint64_t since)
{
    while (0 != dn_load_acquire_u32(&peer->transfers) && dn_clock_ns() - since < DN_TAG_PATIENCE_NS) {
        (void) dn_progress(peer->tag->port);
    }
    return 0 == dn_load_acquire_u32(&peer->transfers);
}

/** Is this a send whose bytes its receiver may still fetch? The bytes of a synchronous message have left with the message. */
static bool dn_tag_is_owed(const dn_tag_req_t *req)
{
    switch (dn_tag_state_of(req)) {
    case DN_TAG_WAITS_REPLY:
        return DN_TAG_SYNC != req->kind;
    case DN_TAG_SENDS:
    case DN_TAG_PUSH_STARTS:
    case DN_TAG_PUSHES:
    case DN_TAG_TELLS:
        return true;
    default:
        return false;
    }
}

/** Is there a request of a peer, with a handle or in dn_tag_t::busy, of which @p is says so? The lock is held. */
static bool dn_tag_has(const dn_tag_peer_t *peer, bool (*is)(const dn_tag_req_t *))
{
    const dn_tag_t *tag = peer->tag;
    bool has = false;

    for (dn_queue_item_t *item = dn_fifo_first(&tag->busy); !has && NULL != item; item = dn_fifo_next(item)) {
        has = peer == dn_tag_req_of(item)->peer && is(dn_tag_req_of(item));
    }
    for (uint32_t i = 0; !has && i < tag->handles.count; i++) {
        const dn_tag_req_t *req = tag->handles.slot[i].object;

        has = NULL != req && peer == req->peer && is(req);
    }
    return has;
}

/** Are there messages to a peer that have not left, or, where the peer may still receive, that it has not fetched? */
static bool dn_tag_owes(dn_tag_peer_t *peer, bool receives)
{
    dn_tag_t *tag = peer->tag;

    /* While these two are held, no other thread moves a request from one place to another. */
    pthread_mutex_lock(&tag->pump);
    dn_port_lock(tag->port);
    dn_tag_lock(tag);
    const bool owes = NULL != peer->waits.first || 0 != dn_load_relaxed(&peer->flowing)
                      || (receives && dn_tag_has(peer, dn_tag_is_owed));
    dn_tag_unlock(tag);
    dn_port_unlock(tag->port);
    pthread_mutex_unlock(&tag->pump);
    return owes;
}

/** Note what has moved of all peers. Ask those that may have messages to fetch: a peer that reads the bytes by RMA counts the pieces, and
 * this process sees none. A peer that has no room now is asked in the next tour. */
static void dn_tag_tour(dn_tag_t *tag)
{
    const uint64_t nothing = 0;

    /* While this is held, no peer is freed. */
    pthread_mutex_lock(&tag->pump);
    for (dn_tag_peer_t *peer = dn_tag_some_peer(tag); NULL != peer; peer = dn_load_relaxed(&peer->next)) {
        dn_tag_lock(tag);
        dn_patience_note(&tag->patience, &peer->mark, dn_peer_moves(peer->peer));
        const bool owed = dn_tag_has(peer, dn_tag_is_owed);
        dn_tag_unlock(tag);
        if (owed) {
            (void) dn_tag_tell(peer, DN_TAG_HOW_FAR, &nothing, sizeof(nothing));
        }
    }
    pthread_mutex_unlock(&tag->pump);
}

/** A wait for the peer looks. @return whether the peer is to be given up. */
static bool dn_tag_gives_up(dn_tag_peer_t *peer)
{
    dn_tag_t *tag = peer->tag;

    dn_tag_lock(tag);
    const bool due = dn_patience_look(&tag->patience, dn_clock_ns());
    dn_tag_unlock(tag);
    if (due) {
        dn_tag_tour(tag);
    }
    dn_tag_lock(tag);
    dn_patience_note(&tag->patience, &peer->mark, dn_peer_moves(peer->peer));
    const bool over = dn_patience_is_over(&tag->patience, &peer->mark);
    dn_tag_unlock(tag);
    return over;
}

/** Send the messages to a peer that wait for room. Where the peer may still receive, serve those that are announced, too. Their senders may
 * have been told that they are sent. A peer that lives may take them, unless it does not look at the network any more. */
static void dn_tag_send_last(dn_tag_peer_t *peer, bool receives)
{
    dn_tag_t *tag = peer->tag;
    dn_wait_t wait = {0};
    bool over = false;

    dn_tag_lock(tag);
    dn_patience_begin(&tag->patience, dn_clock_ns());
    dn_tag_unlock(tag);
    /* At least one poll: the peer may take all now. */
    for (uint64_t polls = 0; !dn_load_relaxed(&peer->cut) && dn_tag_owes(peer, receives) && !over; polls++) {
        if (0 == polls % DN_TAG_LAST_POLLS && DN_OK != dn_peer_check(peer->peer)) {
            break;
        }
        if (0 != dn_progress(tag->port) + dn_tag_progress(tag)) {
            dn_wait_restart(&wait);
        } else {
            (void) dn_wait(tag->port, &wait, 0, 0);
        }
        over = dn_tag_gives_up(peer);
    }
    dn_tag_lock(tag);
    dn_patience_end(&tag->patience);
    dn_tag_unlock(tag);
}

void dn_tag_leave(dn_tag_peer_t *peer, int receives)
{
    dn_tag_t *tag = peer->tag;
    dn_tag_req_t *req;

    tag->parted = true;
    /* The end of the peer is no news from here on: what is in flight may end with an error. */
    if (dn_cas_acq_rel_u32(&peer->lost, 0, 1)) {
        dn_tag_send_last(peer, 0 != receives);
    }
    if (NULL != peer->user && 0 != dn_load_acquire_u32(&peer->transfers)
        && DN_OK != dn_peer_check(peer->peer)) {
        /* dn_disconnect() would wait for them with the locks held. */
        (void) dn_tag_await_transfers(peer, dn_clock_ns());
    }
    /* Until it is disconnected, no other thread goes through what waits, or handles its messages and the ends of its transfers.
     * Progress takes these two in the same order. */
    pthread_mutex_lock(&tag->pump);
    dn_port_lock(tag->port);
    dn_tag_lock(tag);
    /* Another thread may have found the peer lost, and have kept it until the engine ends: dn_tag_disown(). */
    const bool mine = dn_tag_unlink(peer);
    dn_tag_unlock(tag);
    dn_peer_set_user(peer->peer, tag->channel, NULL);
    dn_tag_forget_kept(tag, NULL, peer, false);
    peer->gone = true;
    while (NULL != (req = dn_tag_unlink_one(peer))) {
        dn_tag_abandon(req);
    }
    if (NULL != peer->user) {
        dn_disconnect(peer->peer);
    }
    const bool over = 0 == dn_load_acquire_u32(&peer->transfers);
    if (mine && !over) {
        dn_tag_lock(tag);
        dn_tag_keep_gone(peer);
        dn_tag_unlock(tag);
    }
    dn_port_unlock(tag->port);
    pthread_mutex_unlock(&tag->pump);
    if (mine && over) {
        dn_tag_names_leave(peer);
        free(peer);
    }
}

dn_tag_peer_t *dn_tag_some_peer(dn_tag_t *tag)
{
    dn_tag_lock(tag);
    dn_tag_peer_t *peer = tag->peers;
    dn_tag_unlock(tag);
    return peer;
}

/** Does a posted receive name the peer as its source? The lock is held. */
static bool dn_tag_is_named(const dn_tag_peer_t *peer)
{
    const dn_tag_config_t *config = &peer->tag->config;
    const dn_match_recv_t *posted = NULL;

    if (NULL == config->names) {
        return false;
    }
    do {
        posted = dn_match_next_posted(&peer->tag->match, NULL, posted);
    } while (NULL != posted
             && (DN_MATCH_ANY_SOURCE == posted->source
                 || !config->names(peer, posted->context, posted->source, config->arg)));
    return NULL != posted;
}

/** Does a request still need its peer? One that is only to answer has all its bytes. */
static bool dn_tag_is_unserved(const dn_tag_req_t *req)
{
    return DN_TAG_ANSWERS != dn_tag_state_of(req);
}

int dn_tag_needs(const dn_tag_peer_t *peer)
{
    dn_tag_lock(peer->tag);
    const int needs = NULL != peer->waits.first || NULL != peer->flow.req
                      || 0 != dn_load_relaxed(&peer->flowing) || dn_tag_has(peer, dn_tag_is_unserved)
                      || dn_tag_is_named(peer);
    dn_tag_unlock(peer->tag);
    return needs;
}

void dn_tag_lost(dn_tag_peer_t *peer)
{
    if (dn_cas_acq_rel_u32(&peer->lost, 0, 1)) {
        peer->tag->config.lost(peer, 1, peer->tag->config.arg);
    }
}

void dn_tag_stuck(dn_tag_peer_t *peer, dn_status_t status)
{
    if (DN_ERR_NOMEM == status) {
        peer->tag->config.no_memory(peer->tag->config.arg);
    } else {
        dn_tag_lost(peer);
    }
}

/**
 * A peer that no owner has joined is lost, or has closed its port: its device frees its part of the peer. The port's lock is held from
 * here until then, so that no other thread uses that part (dn_tag_borrow()). Messages that have come in full can still be received.
 * Messages that have to be answered are dropped. Requests end as those of a peer that cannot be reached.
 */
static void dn_tag_disown(dn_tag_peer_t *peer, int needs)
{
    dn_tag_t *tag = peer->tag;

    dn_tag_lock(tag);
    const bool mine = NULL == peer->user;
    if (mine) {
        dn_peer_set_user(peer->peer, tag->channel, NULL);
        peer->peer = dn_peer_nobody();
        if (!needs) {
            (void) dn_tag_unlink(peer);
            dn_tag_keep_gone(peer);
        }
    }
    dn_tag_unlock(tag);
    if (mine) {
        dn_tag_forget_kept(tag, NULL, peer, true);
    }
}

/** dn_lost_fn_t of the channel. */
static void dn_tag_on_lost(dn_peer_t *hot, void *arg)
{
    dn_tag_t *tag = arg;

    dn_tag_lock(tag);
    dn_tag_peer_t *peer = dn_peer_user(hot, tag->channel);
    if (NULL != peer) {
        dn_store_relaxed(&peer->cut, true); /* dn_tag_send_last() looks without the lock */
        dn_store_relaxed(&tag->mourns, true);
    }
    dn_tag_unlock(tag);
    if (NULL == peer) {
        return;
    }
    const int needs = dn_tag_needs(peer);
    if (needs) {
        dn_tag_lost(peer);
    } else if (!dn_load_acquire_u32(&peer->lost)) {
        tag->config.lost(peer, 0, tag->config.arg);
    }
    dn_tag_disown(peer, needs);
}
/** @} */

/** @name Engines */
/** @{ */
/** Free an engine that no handler uses any more. */
static void dn_tag_free(dn_tag_t *tag)
{
    while (NULL != tag->gone) {
        dn_tag_peer_t *next = tag->gone->next_gone;

        dn_tag_names_leave(tag->gone);
        free(tag->gone);
        tag->gone = next;
    }
    dn_tag_names_close(tag);
    dn_tag_claims_close(tag);
    dn_tag_room_close(tag);
    dn_match_fini(&tag->match);
    dn_handle_close(&tag->handles);
    pthread_mutex_destroy(&tag->pump);
    pthread_mutex_destroy(&tag->lock);
    free(tag);
}

dn_status_t dn_tag_open(dn_port_t *port, unsigned channel, const dn_tag_config_t *config, dn_tag_t **tag_p)
{
    dn_tag_t *tag = calloc(1, sizeof(*tag));

    if (NULL == tag) {
        return DN_ERR_NOMEM;
    }
    if (0 != dn_match_init(&tag->match)) {
        dn_match_fini(&tag->match);
        free(tag);
        return DN_ERR_NOMEM;
    }
    tag->port = port;
    tag->channel = channel;
    tag->config = *config;
    tag->patience.limit_ns = DN_TAG_LAST_NS;
    pthread_mutex_init(&tag->lock, NULL);
    pthread_mutex_init(&tag->pump, NULL);
    dn_handle_open(&tag->handles, dn_first(port));
    *tag_p = tag;
    /* From here on messages are received. */
    const dn_status_t status = dn_handler_set(port, channel, dn_tag_receive, tag);
    if (DN_OK != status) {
        /* The channel's handler belongs to another user, and stays. */
        dn_tag_free(tag);
        *tag_p = NULL;
        return status;
    }
    return dn_lost_set(port, channel, dn_tag_on_lost, tag);
}

static void dn_tag_leave_all(dn_tag_t *tag)
{
    for (dn_tag_peer_t *peer; NULL != (peer = dn_tag_some_peer(tag));) {
        dn_tag_leave(peer, 0);
    }
}

void dn_tag_close(dn_tag_t *tag)
{
    bool over = true;

    dn_tag_leave_all(tag);
    dn_handler_clear(tag->port, tag->channel);
    (void) dn_lost_set(tag->port, tag->channel, NULL, NULL);
    /* Peers whose first messages came until the handler was cleared. */
    dn_tag_leave_all(tag);
    dn_tag_forget_kept(tag, NULL, NULL, false);
    const uint64_t since = dn_clock_ns();
    for (const dn_tag_peer_t *peer = tag->gone; NULL != peer; peer = peer->next_gone) {
        over = dn_tag_await_transfers(peer, since) && over;
    }
    /* The end of a transfer would find neither peer nor engine. */
    if (over) {
        dn_tag_free(tag);
    }
}
/** @} */

/** @name Waiting requests and wishes */
/** @{ */
void dn_tag_busy(dn_tag_req_t *req)
{
    dn_tag_lock(req->tag);
    dn_fifo_push(&req->tag->busy, &req->item);
    dn_tag_unlock(req->tag);
}

/** Try a waiting request again. @return true: the request does not wait any more. */
static bool dn_tag_go_on(dn_tag_req_t *req, int *events)
{
    switch (req->state) {
    case DN_TAG_SENDS:
        return dn_tag_send_pieces(req, events);
    case DN_TAG_PUSH_STARTS:
    case DN_TAG_TELLS:
        return dn_tag_push_again(req);
    default:
        return dn_tag_recv_again(req);
    }
}

/** Go through the requests that wait for room or send in pieces. */
static int dn_tag_pump_busy(dn_tag_t *tag)
{
    dn_fifo_t left = {0};
    dn_queue_item_t *item;
    int events = 0;

    dn_tag_lock(tag);
    dn_fifo_t busy = dn_fifo_take(&tag->busy);
    dn_tag_unlock(tag);
    while (NULL != (item = dn_fifo_pop(&busy))) {
        if (dn_tag_go_on(dn_tag_req_of(item), &events)) {
            events++;
        } else {
            dn_fifo_push(&left, item);
        }
    }
    if (NULL != left.first) {
        /* They go before the requests that have come meanwhile. */
        dn_tag_lock(tag);
        dn_fifo_put_back_all(&tag->busy, &left);
        dn_tag_unlock(tag);
    }
    return events;
}

bool dn_tag_tell_wish(dn_tag_peer_t *peer)
{
    dn_tag_lock(peer->tag);
    const dn_tag_wish_t wish = peer->our_wish;
    dn_store_relaxed(&peer->wish_due, false);
    dn_tag_unlock(peer->tag);
    if (DN_ERR_AGAIN != dn_tag_tell(peer, DN_TAG_WISH, &wish, sizeof(wish))) {
        return true;
    }
    dn_tag_lock(peer->tag);
    dn_store_relaxed(&peer->wish_due, true);
    dn_tag_unlock(peer->tag);
    return false;
}

/** Try again the waiting sends and wishes of all peers. @return events. */
static int dn_tag_pump_peers(dn_tag_t *tag)
{
    bool queued = false;
    int events = 0;

    /* A thread that queues a send holds the lock, too. So the loop below sees the send, or the thread sets `queued` after this. */
    dn_tag_lock(tag);
    dn_store_relaxed(&tag->queued, false);
    dn_tag_peer_t *peer = tag->peers;
    dn_tag_unlock(tag);
    for (; NULL != peer; peer = dn_load_relaxed(&peer->next)) {
        if (dn_load_relaxed(&peer->wish_due) && dn_tag_tell_wish(peer)) {
            events++;
        }
        events += dn_tag_send_waiting(peer);
        queued = queued || dn_load_relaxed(&peer->wish_due) || NULL != dn_load_relaxed(&peer->waits.first);
    }
    if (queued) {
        dn_tag_lock(tag);
        dn_store_relaxed(&tag->queued, true);
        dn_tag_unlock(tag);
    }
    return events;
}

int dn_tag_pump(dn_tag_t *tag)
{
    int events = 0;

    if (0 != pthread_mutex_trylock(&tag->pump)) {
        return 0;
    }
    if (dn_load_relaxed(&tag->queued)) {
        events += dn_tag_pump_peers(tag);
    }
    events += dn_tag_pump_busy(tag);
    pthread_mutex_unlock(&tag->pump);
    return events;
}
/** @} */
