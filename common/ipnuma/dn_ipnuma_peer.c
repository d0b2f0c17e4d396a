/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Peers come and go: JOIN, LEAVE and CLOSE over connections that stay.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

static const dn_peer_ops_t dn_ipnuma_ops = {
    .botf = dn_ipnuma_botf,
    .reserve = dn_ipnuma_reserve,
    .kick = dn_ipnuma_kick,
    .aotf = dn_ipnuma_aotf,
    .aotf_line = dn_ipnuma_line,
    .push = dn_ipnuma_push,
    .pull = dn_ipnuma_pull,
    .atomic = dn_ipnuma_atomic,
    .fence = dn_ipnuma_fence,
};

/** Arrows of the drawing in dn_ipnuma_int.h. */
const uint32_t dn_ipnuma_peer_turns[] = {
    [DN_IPNUMA_STRANGER] = DN_TURN_TO(DN_IPNUMA_KNOWN) | DN_TURN_TO(DN_IPNUMA_GOING),
    [DN_IPNUMA_KNOWN] = DN_TURN_TO(DN_IPNUMA_GOING),
    [DN_IPNUMA_GOING] = 0,
};

static int dn_ipnuma_same_host(const dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where)
{
    return 0 == memcmp(where->host, ipnuma->where.host, sizeof(where->host));
}

/** Make a peer. @param[in] pc  NULL: this process itself. @return NULL: no memory. */
static dn_ipnuma_peer_t *dn_ipnuma_make_peer(dn_ipnuma_t *ipnuma, dn_ipnuma_pc_t *pc,
                                             const dn_ipnuma_where_t *where, uint32_t pid,
                                             const dn_pgid_t *pgid)
{
    dn_ipnuma_peer_t *peer = calloc(1, sizeof(*peer));

    if (NULL == peer) {
        return NULL;
    }
    peer->base.iface = &ipnuma->iface;
    peer->base.pid = pid;
    peer->base.pgid = *pgid;
    memcpy(peer->base.nonce, where->nonce, sizeof(peer->base.nonce));
    peer->base.llcm_len = where->llcm_bytes;
    peer->base.botf_inline = DN_IPNUMA_INLINE;
    peer->base.botf_max = where->botf_max < ipnuma->where.botf_max ? where->botf_max : ipnuma->where.botf_max;
    peer->base.ops = dn_ipnuma_ops;
    peer->pc = pc;
    if (NULL != pc) {
        pc->peer = peer;
        peer->contends =
            dn_ipnuma_same_host(ipnuma, where) && dn_cpumask_within(&where->units, &ipnuma->where.units);
    }
    dn_store_relaxed(&ipnuma->contenders, ipnuma->contenders + (uint32_t) peer->contends);
    peer->next = ipnuma->peers;
    ipnuma->peers = peer;
    dn_store_release_u32(&ipnuma->npeers, ipnuma->npeers + 1);
    return peer;
}

void dn_ipnuma_make_ready(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer)
{
    /* Messages of a stranger, and of a peer that is being freed, wait for the peer that the port comes to know. */
    if (!peer->queued && DN_IPNUMA_KNOWN == peer->owner && NULL != peer->first) {
        peer->queued = 1;
        dn_fifo_push(&ipnuma->ready, &peer->ready);
        ipnuma->nready++;
    }
}

void dn_ipnuma_unready(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer)
{
    if (peer->queued) {
        dn_fifo_remove(&ipnuma->ready, &peer->ready);
        peer->queued = 0;
        ipnuma->nready--;
    }
}

/** Begin to free a peer. */
static void dn_ipnuma_retire(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer)
{
    /* dn_ipnuma_recv() may have left it in the queue, without messages. Messages that come from now on are not for it. */
    dn_ipnuma_unready(ipnuma, peer);
    dn_ipnuma_peer_turn(peer, DN_IPNUMA_GOING);
    dn_peer_retire(&peer->base);
}

/** If the process of a peer that is being freed has joined again, make its next peer. The messages of the old peer that still wait are for
 * the next peer; the process may have left again after it sent them. @return 0: there is no next peer. */
static int dn_ipnuma_succeed(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer)
{
    dn_ipnuma_pc_t *pc = peer->pc;

    if (NULL == pc || (!pc->joined && NULL == peer->first) || ipnuma->closing
        || DN_IPNUMA_OPEN != pc->state) {
        return 0;
    }
    dn_ipnuma_peer_t *next = dn_ipnuma_make_peer(ipnuma, pc, &pc->where, pc->pid, &pc->pgid);
    if (NULL == next) {
        pc->peer = NULL;
        dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
        return 0;
    }
    next->first = peer->first;
    next->last = peer->last;
    next->later = peer->later;
    peer->first = NULL;
    ipnuma->unmet = 1;
    return 1;
}

/** Free a peer that the port does not know any more. */
static void dn_ipnuma_free_peer(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer)
{
    dn_ipnuma_peer_t **at = &ipnuma->peers;

    dn_ipnuma_unready(ipnuma, peer);
    const int succeeded = dn_ipnuma_succeed(ipnuma, peer);
    while (NULL != peer->first) {
        dn_ipnuma_message_t *message = peer->first;
        peer->first = message->next;
        if (NULL != peer->pc) {
            peer->pc->waiting_cost -= message->cost;
            peer->pc->link.given += message->cost;
        }
        free(message);
    }
    while (peer != *at) {
        at = &(*at)->next;
    }
    *at = peer->next;
    dn_store_release_u32(&ipnuma->npeers, ipnuma->npeers - 1);
    dn_store_relaxed(&ipnuma->contenders, ipnuma->contenders - (uint32_t) peer->contends);
    if (NULL != peer->pc && !succeeded) {
        peer->pc->peer = NULL;
        ipnuma->reap |= DN_IPNUMA_DEAD == peer->pc->state;
    }
    free(peer);
}

/* What the other side says */

int dn_ipnuma_join(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_t *ipnuma = pc->ipnuma;

    if (pc->joined) {
        return 0;
    }
    if (ipnuma->closing) {
        return 1;
    }
    if (ipnuma->nsenders >= ipnuma->max_senders) {
        pc->link.broken = "more senders than there are slots for";
        return 0;
    }
    if (NULL == pc->peer) {
        if (NULL == dn_ipnuma_make_peer(ipnuma, pc, &pc->where, pc->pid, &pc->pgid)) {
            return -1;
        }
        ipnuma->unmet = 1;
    }
    pc->joined = 1;
    ipnuma->nsenders++;
    return 1;
}

void dn_ipnuma_part(dn_ipnuma_pc_t *pc)
{
    pc->ipnuma->nsenders -= (uint32_t) pc->joined;
    pc->joined = 0;
    pc->ipnuma->reap = 1;
}

void dn_ipnuma_kill(dn_ipnuma_pc_t *pc, enum dn_peer_doubt why)
{
    if (DN_IPNUMA_DEAD == pc->state) {
        return;
    }
    if (DN_PEER_PARTED != why) {
        /* The other process may live, and wait for packets that will not come. */
        dn_ipnuma_link_word(&pc->link, DN_IPNUMA_GONE, dn_clock_ns());
    }
    dn_ipnuma_pc_turn(pc, DN_IPNUMA_DEAD);
    pc->link.keyed = 0;
    dn_ipnuma_part(pc);
    if (NULL != pc->peer) {
        dn_peer_doubt(&pc->peer->base, why);
    }
}

int dn_ipnuma_find_dead(dn_ipnuma_t *ipnuma)
{
    int found = 0;

    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        if (DN_IPNUMA_DEAD != pc->state && dn_process_has_ended(pc->pidfd)) {
            dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
            found = 1;
        }
    }
    return found;
}

void dn_ipnuma_meet(dn_ipnuma_t *ipnuma)
{
    ipnuma->unmet = 0;
    for (dn_ipnuma_peer_t *peer = ipnuma->peers; NULL != peer; peer = peer->next) {
        if (DN_IPNUMA_STRANGER == peer->owner) {
            dn_port_adopt(ipnuma->iface.port, &peer->base);
            dn_ipnuma_peer_turn(peer, DN_IPNUMA_KNOWN);
            dn_ipnuma_make_ready(ipnuma, peer);
            /* It may have left already. */
            ipnuma->reap = 1;
        }
    }
}

/* What the port says */

/** Read and check an address: its form, its group, its auth, and whether this process can reach its host. */
static dn_status_t dn_ipnuma_read_address(const dn_ipnuma_t *ipnuma, const dn_peer_base_t *id,
                                          const void *address, size_t len, dn_ipnuma_where_t *where)
{
    dn_pgid_t pgid;

    if (sizeof(*where) == len) {
        memcpy(where, address, sizeof(*where));
    }
    if (sizeof(*where) != len || !dn_ipnuma_is_sound(where)
        || 0 != memcmp(where->nonce, id->nonce, sizeof(where->nonce))) {
        dn_log_error("the ipnuma part of the address of PID %" PRIu32 " is malformed; refused", id->pid);
        return DN_ERR_PROTO;
    }
    dn_auth_pgid(where->exchange, &pgid);
    if (0 != memcmp(&pgid, &id->pgid, sizeof(pgid))) {
        dn_log_error("the ipnuma part of the address of PID %" PRIu32 " is of another group; refused",
                     id->pid);
        return DN_ERR_PROTO;
    }
    if (where->auth != ipnuma->where.auth) {
        dn_log_error("PID %" PRIu32
                     " has another auth than this process; set it to one value for the whole job",
                     id->pid);
        return DN_ERR_ACCESS;
    }
    const uint32_t loopback = 127;
    if (!dn_ipnuma_same_host(ipnuma, where)
        && (loopback == where->ip >> 24 || loopback == ipnuma->where.ip >> 24)) {
        dn_log_answer("ipnuma does not reach PID %" PRIu32
                      ": it is on another host, and one of both receives on loopback; name the interface, as "
                      "ipnuma:eth0",
                      id->pid);
        return DN_ERR_UNREACH;
    }
    return DN_OK;
}

/** Find or make the connection with a process. */
static dn_status_t dn_ipnuma_reach(dn_ipnuma_t *ipnuma, const dn_peer_base_t *id,
                                   const dn_ipnuma_where_t *where, dn_ipnuma_pc_t **pc_p)
{
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(ipnuma, where->nonce);
    dn_pgid_t pgid;

    if (NULL != pc && DN_IPNUMA_DEAD == pc->state && NULL == pc->peer) {
        dn_ipnuma_pc_free(pc);
        pc = NULL;
    }
    if (NULL == pc) {
        const dn_auth_root_t *root =
            dn_guests_root(&ipnuma->guests, dn_port_group(ipnuma->iface.port), where->exchange, &pgid);
        if (NULL == root) {
            return DN_ERR_ACCESS;
        }
        pc = dn_ipnuma_pc_open(ipnuma, where, id->pid, &id->pgid, root);
    }
    if (NULL == pc) {
        return DN_ERR_NOMEM;
    }
    *pc_p = pc;
    if (DN_IPNUMA_DEAD != pc->state && dn_process_has_ended(pc->pidfd)) {
        dn_log_answer("ipnuma does not reach process %" PRIu32 ": it is gone", where->os_pid);
        dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
    }
    return DN_IPNUMA_DEAD == pc->state ? DN_ERR_UNREACH : DN_OK;
}

dn_status_t dn_ipnuma_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                              dn_peer_base_t **peer_p)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) *peer_p;
    dn_ipnuma_pc_t *pc = NULL;
    dn_ipnuma_where_t where;

    dn_status_t status = dn_ipnuma_read_address(ipnuma, id, address, len, &where);
    if (DN_OK != status) {
        return status;
    }
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_service_start(ipnuma);
    const int self = 0 == memcmp(where.nonce, ipnuma->where.nonce, sizeof(where.nonce));
    status = self ? DN_OK : dn_ipnuma_reach(ipnuma, id, &where, &pc);
    if (DN_OK == status && NULL == peer) {
        peer = NULL != pc && NULL != pc->peer ? pc->peer
                                              : dn_ipnuma_make_peer(ipnuma, pc, &where, id->pid, &id->pgid);
        status = NULL == peer ? DN_ERR_NOMEM : DN_OK;
    }
    if (DN_OK == status && DN_IPNUMA_STRANGER == peer->owner) {
        /* From now on the port knows the peer: the port enters the peer when this call returns. */
        dn_ipnuma_peer_turn(peer, DN_IPNUMA_KNOWN);
        dn_ipnuma_make_ready(ipnuma, peer);
    }
    if (DN_OK == status && NULL != pc) {
        (void) dn_ipnuma_enter(peer);
        dn_ipnuma_greet(pc, dn_clock_ns());
        dn_ipnuma_go(pc);
        dn_ipnuma_service_call(ipnuma);
    }
    dn_ipnuma_unlock(ipnuma);
    if (DN_OK == status) {
        *peer_p = &peer->base;
    }
    return status;
}

void dn_ipnuma_leave(dn_ipnuma_pc_t *pc, enum dn_tlp_message what)
{
    if (NULL == pc || DN_IPNUMA_DEAD == pc->state || pc->closes || (!pc->joins && DN_TLP_LEAVE == what)) {
        return;
    }
    if (!dn_ipnuma_say(pc, what)) {
        /* No memory. The end of the connection is told without memory. */
        dn_ipnuma_kill(pc, DN_PEER_SUSPECT);
        return;
    }
    pc->stream.hasty = 0;
    pc->joins = 0;
    pc->closes = DN_TLP_CLOSE == what;
    dn_ipnuma_link_send(&pc->link, dn_clock_ns());
    dn_ipnuma_service_call(pc->ipnuma);
}

void dn_ipnuma_disconnect(dn_peer_base_t *base)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) base->iface;
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) base;

    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_end_ops(ipnuma, peer, 1);
    dn_ipnuma_leave(peer->pc, DN_TLP_LEAVE);
    /* The peer stays while it may send (as this process itself may), while its handlers run, and while messages wait for them. */
    const int stays = NULL == peer->pc || 0 != peer->depth || NULL != peer->first
                      || (peer->pc->joined && !dn_peer_is_lost(base));
    if (!stays) {
        dn_ipnuma_retire(ipnuma, peer);
    } else {
        ipnuma->reap = 1;
    }
    dn_ipnuma_unlock(ipnuma);
    dn_ipnuma_signal(ipnuma);
    if (!stays) {
        dn_port_forget(ipnuma->iface.port, base);
        dn_ipnuma_lock(ipnuma);
        dn_ipnuma_free_peer(ipnuma, peer);
        dn_ipnuma_unlock(ipnuma);
    }
}

void dn_ipnuma_release(dn_peer_base_t *base)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) base->iface;
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) base;

    dn_ipnuma_lock(ipnuma);
    ipnuma->closing = 1;
    dn_ipnuma_end_ops(ipnuma, peer, 0);
    dn_ipnuma_free_peer(ipnuma, peer);
    dn_ipnuma_unlock(ipnuma);
}

void dn_ipnuma_lost(dn_peer_base_t *base)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) base->iface;
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) base;

    dn_ipnuma_lock(ipnuma);
    if (NULL != peer->pc) {
        dn_ipnuma_kill(peer->pc, DN_PEER_SUSPECT);
    }
    dn_ipnuma_end_ops(ipnuma, peer, 1);
    ipnuma->reap = 1;
    dn_ipnuma_unlock(ipnuma);
    dn_ipnuma_signal(ipnuma);
}

dn_status_t dn_ipnuma_check(dn_peer_base_t *base)
{
    const dn_ipnuma_peer_t *peer = (const dn_ipnuma_peer_t *) base;

    return dn_peer_is_doubted(base) || (NULL != peer->pc && dn_process_has_ended(peer->pc->pidfd))
               ? DN_ERR_UNREACH
               : DN_OK;
}

void dn_ipnuma_admitted(dn_iface_t *iface, const dn_pgid_t *pgid)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;

    dn_ipnuma_lock(ipnuma);
    if (DN_OK != dn_guests_add(&ipnuma->guests, pgid)) {
        dn_log_later(&ipnuma->later, "no memory to let a process group in over ipnuma");
    }
    dn_ipnuma_unlock(ipnuma);
}

/* Peers that are over */

/** Is a peer over? Its process sends no more, or is lost, and this process is not connected to it. */
static int dn_ipnuma_has_left(const dn_ipnuma_peer_t *peer)
{
    return DN_IPNUMA_KNOWN == peer->owner && 0 == peer->base.connections
           && (dn_peer_is_lost(&peer->base)
               || (NULL == peer->pc ? DN_PEER_LEFT == peer->base.life : !peer->pc->joined));
}

/** Free one peer that is over: the list may change while the lock is let go. If there is none, free the connections that have ended and
 * have no peer. @return whether there was such a peer. */
static int dn_ipnuma_reap_one(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_peer_t *over = NULL;

    dn_ipnuma_lock(ipnuma);
    for (dn_ipnuma_peer_t *peer = ipnuma->peers; NULL != peer && NULL == over; peer = peer->next) {
        if (dn_ipnuma_has_left(peer)) {
            ipnuma->reap = 1;
            over = NULL == peer->first && 0 == peer->depth && 0 == peer->base.telling ? peer : NULL;
        }
    }
    if (NULL != over) {
        dn_ipnuma_retire(ipnuma, over);
    } else {
        for (dn_ipnuma_pc_t *pc = ipnuma->pcs, *next; NULL != pc; pc = next) {
            next = pc->next;
            if (DN_IPNUMA_DEAD == pc->state && NULL == pc->peer) {
                dn_ipnuma_pc_free(pc);
            }
        }
    }
    dn_ipnuma_unlock(ipnuma);
    if (NULL == over) {
        return 0;
    }
    dn_port_forget(ipnuma->iface.port, &over->base);
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_end_ops(ipnuma, over, 1);
    dn_ipnuma_unlock(ipnuma);
    dn_ipnuma_signal(ipnuma);
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_leave(over->pc, DN_TLP_LEAVE);
    dn_ipnuma_free_peer(ipnuma, over);
    dn_ipnuma_unlock(ipnuma);
    return 1;
}

void dn_ipnuma_reap(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_lock(ipnuma);
    ipnuma->reap = 0;
    dn_ipnuma_unlock(ipnuma);
    while (dn_ipnuma_reap_one(ipnuma)) {
    }
}
