/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

static const dn_peer_ops_t dn_ofi_ops = {
    .botf = dn_ofi_botf,
    .lend = dn_ofi_lend,
    .reserve = dn_ofi_reserve,
    .kick = dn_ofi_kick,
    .aotf = dn_ofi_aotf,
    .push = dn_ofi_push,
    .pull = dn_ofi_pull,
    .atomic = NULL,
    .fence = dn_ofi_fence,
};

/** Arrows of the drawings in dn_ofi_state.h. */
const uint32_t dn_ofi_peer_turns[] = {
    [DN_OFI_STRANGER] = DN_TURN_TO(DN_OFI_KNOWN) | DN_TURN_TO(DN_OFI_GOING),
    [DN_OFI_KNOWN] = DN_TURN_TO(DN_OFI_GOING),
    [DN_OFI_GOING] = 0,
};

int dn_ofi_is_sound(const dn_ofi_where_t *where)
{
    return 0 < where->name_len && DN_OFI_NAME_MAX >= where->name_len && 64 <= where->credit_max
           && DN_OFI_CREDIT_MAX >= where->credit_max && DN_OFI_MESSAGE_MAX >= where->botf_max
           && where->botf_max / DN_OFI_LINE + 2 <= where->credit_max && DN_OFI_BOTF_MIN <= where->botf_max
           && '\0' == where->provider[DN_OFI_PROVIDER_MAX - 1] && (16u << 20) >= where->llcm_bytes;
}

static const char *dn_ofi_auth_name(uint32_t auth)
{
    static const char *const name[] = {[DN_AUTH_NONE] = "none",
                                       [DN_AUTH_HELLO] = "hello",
                                       [DN_AUTH_FULL] = "full",
                                       [DN_AUTH_ENCRYPTED] = "encrypted"};
    return auth < sizeof(name) / sizeof(name[0]) ? name[auth] : "unknown";
}

static int dn_ofi_same_host(const dn_ofi_t *ofi, const dn_ofi_where_t *where)
{
    return 0 == memcmp(where->host, ofi->where.host, sizeof(where->host));
}

dn_status_t dn_ofi_make_peer(dn_ofi_t *ofi, const dn_peer_base_t *id, const dn_ofi_where_t *where,
                             dn_ofi_peer_t **peer_p)
{
    dn_ofi_peer_t *peer = calloc(1, sizeof(*peer));
    if (NULL == peer) {
        return DN_ERR_NOMEM;
    }
    peer->node = dn_ofi_node(ofi, where->name, where->name_len);
    if (NULL == peer->node) {
        free(peer);
        return DN_ERR_UNREACH;
    }
    peer->base.iface = &ofi->iface;
    peer->base.pid = id->pid;
    peer->base.pgid = id->pgid;
    memcpy(peer->base.nonce, where->nonce, sizeof(peer->base.nonce));
    peer->base.llcm_len = where->llcm_bytes;
    peer->base.botf_inline = DN_OFI_INLINE;
    peer->base.botf_max = where->botf_max < ofi->where.botf_max ? where->botf_max : ofi->where.botf_max;
    peer->base.ops = dn_ofi_ops;
    peer->credit_max = where->credit_max;
    peer->self = 0 == memcmp(where->nonce, ofi->where.nonce, sizeof(where->nonce));
    peer->pidfd = -1;
    memcpy(peer->exchange, where->exchange, sizeof(peer->exchange));
    dn_ofi_side(where, id->pid, &peer->side);
    if (dn_ofi_same_host(ofi, where) && !peer->self) {
        peer->pidfd = dn_process_open(where->os_pid);
        peer->contends = dn_cpumask_within(&where->units, &ofi->where.units);
    }
    ofi->contenders += (uint32_t) peer->contends;
    peer->watch.since = dn_clock_ns();
    peer->next = ofi->peers;
    ofi->peers = peer;
    (void) dn_fetch_add_seq_cst(&ofi->npeers, 1);
    if (!peer->self) {
        dn_ofi_watch_start(ofi);
    }
    *peer_p = peer;
    return DN_OK;
}

void dn_ofi_close_pidfd(dn_ofi_peer_t *peer)
{
    if (0 <= peer->pidfd) {
        close(peer->pidfd);
        peer->pidfd = -1;
    }
}

void dn_ofi_free_copy(dn_ofi_peer_t *peer)
{
    dn_ofi_close_pidfd(peer);
    dn_auth_wipe(&peer->rx.pair, sizeof(peer->rx.pair));
    free(peer);
}

/** An applicant may have waited for what has just ended. The next turn lets it in: a thread of the program that sleeps is to wake for that,
 * or the watcher, where the program computes. */
static void dn_ofi_retry_soon(dn_ofi_t *ofi)
{
    if (NULL != ofi->applicant) {
        ofi->retry = 1;
        ofi->after |= DN_OFI_AFTER_CALL;
        dn_ofi_ring(ofi);
    }
}

/** Free a peer that the port does not know any more. */
static void dn_ofi_free_peer(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (DN_OFI_RX_OPEN == peer->rx.state) {
        dn_ofi_control(ofi, peer->node, DN_OFI_REFUSE, peer->rx.token, &peer->rx.pair.way[DN_AUTH_ACCEPTOR],
                       DN_OFI_CLOSED);
    }
    dn_ofi_leave(ofi, peer, DN_OFI_LEAVE);
    dn_ofi_end_rx(ofi, peer);
    while (NULL != peer->rx.first) {
        dn_ofi_buffer_t *buffer = peer->rx.first;
        peer->rx.first = buffer->next;
        dn_ofi_buffer_free(ofi, buffer);
    }
    dn_ofi_unready(ofi, peer);
    dn_ofi_peer_t **at = &ofi->peers;
    while (peer != *at) {
        at = &(*at)->next;
    }
    *at = peer->next;
    (void) dn_fetch_sub_seq_cst(&ofi->npeers, 1);
    ofi->contenders -= (uint32_t) peer->contends;
    dn_ofi_retry_soon(ofi);
    dn_ofi_node_leave(ofi, peer->node);
    dn_ofi_free_copy(peer);
}

dn_ofi_peer_t *dn_ofi_find_peer(const dn_ofi_t *ofi, const uint64_t nonce[2])
{
    dn_ofi_peer_t *peer = ofi->peers;
    while (NULL != peer && 0 != memcmp(peer->base.nonce, nonce, sizeof(peer->base.nonce))) {
        peer = peer->next;
    }
    return peer;
}

/** Find a peer that the watcher has met, and that the port does not know yet. @return NULL: there is none. */
static dn_ofi_peer_t *dn_ofi_find_met(const dn_ofi_t *ofi, const dn_peer_base_t *id)
{
    dn_ofi_peer_t *peer = dn_ofi_find_peer(ofi, id->nonce);
    return NULL != peer && DN_OFI_STRANGER == peer->owner
                   && 0 == memcmp(&peer->base.pgid, &id->pgid, sizeof(id->pgid))
               ? peer
               : NULL;
}

void dn_ofi_meet(dn_ofi_t *ofi)
{
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (DN_OFI_STRANGER == peer->owner) {
            dn_port_adopt(ofi->iface.port, &peer->base);
            dn_ofi_let_in(ofi, peer);
        }
    }
}

void dn_ofi_admitted(dn_iface_t *iface, const dn_pgid_t *pgid)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    dn_ofi_lock(ofi);
    if (DN_OK != dn_guests_add(&ofi->guests, pgid)) {
        dn_log_later(&ofi->log, "no memory to let a process group in over ofi");
    }
    dn_ofi_unlock(ofi);
}

/** Can this process reach the process of an address, and does that process live, as far as this host knows? */
static dn_status_t dn_ofi_reachable(const dn_ofi_t *ofi, const dn_ofi_where_t *where)
{
    if (0 != strcmp(where->provider, ofi->where.provider)) {
        dn_log_answer("ofi does not reach process %" PRIu32 ": it uses provider %s, this process %s",
                      where->os_pid, where->provider, ofi->where.provider);
        return DN_ERR_UNREACH;
    }
    if (!dn_ofi_same_host(ofi, where)) {
        if (ofi->local) {
            dn_log_answer("ofi does not reach process %" PRIu32
                          ": it is on another host, and provider %s does not leave this one",
                          where->os_pid, ofi->where.provider);
        }
        return ofi->local ? DN_ERR_UNREACH : DN_OK;
    }
    const int pidfd = dn_process_open(where->os_pid);
    const int ended = dn_process_has_ended(pidfd);
    if (0 <= pidfd) {
        close(pidfd);
    }
    if (ended) {
        dn_log_answer("ofi does not reach process %" PRIu32 ": it is gone", where->os_pid);
    }
    return ended ? DN_ERR_UNREACH : DN_OK;
}

/** Is an address of the group that the caller names, and has its process the same auth as this process? */
static dn_status_t dn_ofi_is_kin(const dn_ofi_t *ofi, const dn_peer_base_t *id, const dn_ofi_where_t *where)
{
    dn_pgid_t pgid;

    dn_auth_pgid(where->exchange, &pgid);
    if (0 != memcmp(&pgid, &id->pgid, sizeof(pgid))) {
        dn_log_error("the ofi part of the address of PID %" PRIu32 " is of another group; refused", id->pid);
        return DN_ERR_PROTO;
    }
    if (where->auth != ofi->where.auth) {
        dn_log_error("PID %" PRIu32 " has auth %s, this process %s; set it to one value for the whole job",
                     id->pid, dn_ofi_auth_name(where->auth), dn_ofi_auth_name(ofi->where.auth));
        return DN_ERR_ACCESS;
    }
    return DN_OK;
}

dn_status_t dn_ofi_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) *peer_p;
    dn_ofi_where_t where;

    if (sizeof(where) == len) {
        memcpy(&where, address, sizeof(where));
    }
    if (sizeof(where) != len || !dn_ofi_is_sound(&where)
        || 0 != memcmp(where.nonce, id->nonce, sizeof(where.nonce))) {
        dn_log_error("the ofi part of the address of PID %" PRIu32 " is malformed; refused", id->pid);
        return DN_ERR_PROTO;
    }
    dn_status_t status = dn_ofi_is_kin(ofi, id, &where);
    status = DN_OK == status ? dn_ofi_reachable(ofi, &where) : status;
    if (DN_OK != status) {
        return status;
    }
    dn_ofi_lock(ofi);
    dn_ofi_peer_t *met = NULL == peer ? dn_ofi_find_met(ofi, id) : NULL;
    if (NULL != met) {
        peer = met;
    } else if (NULL == peer) {
        status = dn_ofi_make_peer(ofi, id, &where, &peer);
    }
    const int entered = DN_ERR_UNREACH != status;
    if (DN_OK == status && peer->self) {
        dn_ofi_end_rx(ofi, peer);
    } else if (DN_OK == status && NULL == peer->tx) {
        status = dn_ofi_open_stream(ofi, peer);
        if (DN_OK != status && NULL == *peer_p && NULL == met) {
            dn_ofi_free_peer(ofi, peer);
        }
    }
    if (DN_OK == status && DN_OFI_STRANGER == peer->owner) {
        /* From now on the port knows the peer: the port enters the peer when this call returns. */
        dn_ofi_let_in(ofi, peer);
    }
    dn_ofi_unlock(ofi);
    if (!entered) {
        dn_log_answer("ofi does not reach process %" PRIu32 ": provider %s does not take its address",
                      where.os_pid, ofi->where.provider);
    }
    if (DN_OK == status) {
        *peer_p = &peer->base;
    }
    return status;
}

/** Give the messages of a stream that was left some time to go out: the program may not call progress again for long. */
static void dn_ofi_push_out(dn_ofi_t *ofi, uint64_t token)
{
    const uint64_t until = dn_clock_ns() + DN_OFI_PUSH_NS;

    for (;;) {
        dn_ofi_stream_t *stream = dn_ofi_find_stream(ofi, token);
        if (NULL == stream || NULL == stream->first || dn_ofi_stream_ended(stream) || dn_clock_ns() > until) {
            return;
        }
        dn_ofi_advance(ofi, stream);
        dn_ofi_poll(ofi);
    }
}

void dn_ofi_depart(dn_ofi_t *ofi, dn_ofi_peer_t *peer, enum dn_ofi_kind kind)
{
    if (NULL != peer->tx) {
        const uint64_t token = peer->tx->token;
        dn_ofi_leave(ofi, peer, kind);
        dn_ofi_push_out(ofi, token);
    }
}

void dn_ofi_part(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    dn_ofi_peer_turn(peer, DN_OFI_GOING);
    dn_peer_retire(&peer->base);
    dn_ofi_unready(ofi, peer);
}

void dn_ofi_disconnect(dn_peer_base_t *base)
{
    dn_ofi_t *ofi = (dn_ofi_t *) base->iface;
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) base;

    dn_ofi_lock(ofi);
    dn_ofi_rma_end(ofi, peer, 1);
    dn_ofi_depart(ofi, peer, DN_OFI_LEAVE);
    if (peer->self) {
        /* The peer that is this process itself is freed when all messages that it has sent to itself are handled. */
        dn_ofi_rx_turn(peer, DN_OFI_RX_LEFT);
        dn_store_seq_cst(&ofi->reap, 1);
    }
    /* Another peer stays while it may send. No peer is freed while one of its handlers runs. */
    const int stays =
        (DN_OFI_RX_NONE != peer->rx.state && !dn_peer_is_lost(base)) || peer->self || 0 != peer->rx.depth;
    if (!stays) {
        dn_ofi_part(ofi, peer);
    }
    (void) dn_fetch_or_seq_cst(&ofi->reap, stays && dn_peer_is_lost(base));
    dn_ofi_unlock(ofi);
    dn_ofi_signal(ofi);
    if (!stays) {
        dn_port_forget(ofi->iface.port, base);
        dn_ofi_lock(ofi);
        dn_ofi_free_peer(ofi, peer);
        dn_ofi_unlock(ofi);
    }
}

void dn_ofi_release(dn_peer_base_t *base)
{
    dn_ofi_t *ofi = (dn_ofi_t *) base->iface;

    dn_ofi_lock(ofi);
    dn_ofi_rma_end(ofi, (dn_ofi_peer_t *) base, 0);
    dn_ofi_leave(ofi, (dn_ofi_peer_t *) base, DN_OFI_CLOSE);
    dn_ofi_free_peer(ofi, (dn_ofi_peer_t *) base);
    dn_ofi_unlock(ofi);
}

/** Send a word that is to go out in any case: if the provider has no room, try again for some time. */
static void dn_ofi_say(dn_ofi_t *ofi, const dn_ofi_node_t *node, enum dn_ofi_kind kind, uint64_t token,
                       const dn_auth_way_t *way, uint64_t value)
{
    const uint64_t until = dn_clock_ns() + DN_OFI_PUSH_NS;

    while (!dn_ofi_control(ofi, node, kind, token, way, value) && dn_clock_ns() < until) {
        dn_ofi_poll(ofi);
    }
}

/** Tell a peer that this process has given it up. The peer may live, and wait for messages that will not come. */
static void dn_ofi_tell_gone(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (DN_PEER_PARTED == dn_load_acquire_u32(&peer->base.doubt) || dn_process_has_ended(peer->pidfd)) {
        return;
    }
    if (DN_OFI_RX_OPEN == peer->rx.state) {
        dn_ofi_say(ofi, peer->node, DN_OFI_REFUSE, peer->rx.token, &peer->rx.pair.way[DN_AUTH_ACCEPTOR],
                   DN_OFI_CLOSED);
    }
    if (NULL != peer->tx && dn_ofi_stream_keyed(peer->tx)) {
        dn_ofi_say(ofi, peer->node, DN_OFI_GONE, peer->tx->token, &peer->tx->pair.way[DN_AUTH_OPENER], 0);
    }
}

void dn_ofi_give_up(dn_ofi_t *ofi, dn_ofi_peer_t *peer)
{
    if (!dn_ofi_is_doubted(peer)) {
        dn_log_later(&ofi->log, "a PULL from PID %" PRIu32 " does not end; it is given up", peer->base.pid);
    }
    dn_ofi_tell_gone(ofi, peer);
    if (NULL != peer->tx) {
        dn_ofi_stream_end(peer->tx);
    }
    dn_ofi_doubt(ofi, peer, DN_PEER_SUSPECT);
}

void dn_ofi_lost(dn_peer_base_t *base)
{
    dn_ofi_t *ofi = (dn_ofi_t *) base->iface;
    dn_ofi_peer_t *peer = (dn_ofi_peer_t *) base;

    dn_ofi_lock(ofi);
    dn_ofi_tell_gone(ofi, peer);
    if (NULL != peer->tx) {
        dn_ofi_stream_end(peer->tx);
    }
    dn_ofi_leave(ofi, peer, DN_OFI_LEAVE);
    dn_ofi_rma_end(ofi, peer, 1);
    dn_store_seq_cst(&ofi->reap, 1);
    dn_ofi_unlock(ofi);
    dn_ofi_signal(ofi);
}

dn_status_t dn_ofi_check(dn_peer_base_t *base)
{
    const dn_ofi_peer_t *peer = (const dn_ofi_peer_t *) base;
    return dn_peer_is_doubted(&peer->base) || dn_process_has_ended(peer->pidfd) ? DN_ERR_UNREACH : DN_OK;
}

/** May a peer be forgotten? It sends no more, or is lost, of which all have been told; all its messages are handled; this process is not
 * connected to it; and no thread is about to free it. */
static int dn_ofi_is_over(const dn_ofi_peer_t *peer)
{
    return (DN_OFI_RX_LEFT == peer->rx.state || dn_peer_is_lost(&peer->base)) && NULL == peer->rx.first
           && 0 == peer->rx.depth && 0 == peer->base.connections && 0 == peer->base.telling
           && DN_OFI_GOING != peer->owner;
}

/** Free one peer that is over: the list may change while the lock is let go. @return whether there was such a peer. */
static int dn_ofi_reap_one(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    dn_ofi_peer_t *peer = ofi->peers;
    while (NULL != peer && !dn_ofi_is_over(peer)) {
        if (DN_OFI_RX_LEFT == peer->rx.state && !peer->self && NULL == peer->rx.first
            && 0 == peer->rx.depth) {
            dn_ofi_end_rx(ofi, peer);
            dn_ofi_retry_soon(ofi);
        }
        (void) dn_fetch_or_seq_cst(&ofi->reap,
                                   dn_ofi_rx_has_left(peer)
                                       || (dn_peer_is_lost(&peer->base) && 0 == peer->base.connections));
        peer = peer->next;
    }
    if (NULL != peer) {
        dn_ofi_part(ofi, peer);
    }
    dn_ofi_unlock(ofi);
    if (NULL == peer) {
        return 0;
    }
    dn_port_forget(ofi->iface.port, &peer->base);
    dn_ofi_lock(ofi);
    dn_ofi_rma_end(ofi, peer, 1);
    dn_ofi_unlock(ofi);
    dn_ofi_signal(ofi);
    dn_ofi_lock(ofi);
    dn_ofi_free_peer(ofi, peer);
    dn_ofi_unlock(ofi);
    return 1;
}

void dn_ofi_reap(dn_ofi_t *ofi)
{
    dn_store_seq_cst(&ofi->reap, 0);
    while (dn_ofi_reap_one(ofi)) {
    }
}
