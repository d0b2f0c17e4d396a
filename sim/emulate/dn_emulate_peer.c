/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Peers. A process that connects says hello with its address, so that the other side connects to it at the second port and
 * keeps it there. A process that disconnects says bye behind its last message. A peer is freed when neither side is connected
 * and what came from it has been handed on.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dn_emulate_int.h"
#include "dn_log.h"

/** Bytes of a where that are in use. */
static size_t dn_where_bytes(const dn_emulate_where_t *where)
{
    return offsetof(dn_emulate_where_t, address) + where->len;
}

/** Take a where from bytes of a peer. @return 0: it is none. */
static int dn_where_read(dn_emulate_where_t *where, const void *bytes, size_t len)
{
    *where = (dn_emulate_where_t){.len = 0};
    if (offsetof(dn_emulate_where_t, address) > len || sizeof(*where) < len) {
        return 0;
    }
    memcpy(where, bytes, len);
    where->profile[sizeof(where->profile) - 1] = '\0';
    return where->len <= sizeof(where->address) && dn_where_bytes(where) == len;
}

dn_status_t dn_emulate_where(const dn_emulate_t *emulate, dn_emulate_where_t *where)
{
    size_t len = sizeof(where->address);

    *where = (dn_emulate_where_t){
        .print = emulate->print, .llcm_bytes = emulate->llcm_bytes, .lines = emulate->lines};
    memcpy(where->profile, emulate->profile, sizeof(where->profile));
    const dn_status_t status = dn_address(emulate->inner, where->address, &len);
    where->len = (uint32_t) len;
    return status;
}

/** @name Controls */
/** @{ */
static void dn_emulate_owe(dn_emulate_peer_t *peer, uint32_t what, int owed)
{
    dn_store_release_u32(&peer->owes, owed ? peer->owes | what : peer->owes & ~what);
}

static dn_status_t dn_say_hello(const dn_emulate_t *emulate, const dn_emulate_peer_t *peer)
{
    dn_emulate_hello_t hello = {.session = peer->session};
    const dn_status_t status = dn_emulate_where(emulate, &hello.where);

    if (DN_OK != status) {
        return status;
    }
    memcpy(hello.nonce, dn_port_nonce(emulate->iface.port), sizeof(hello.nonce));
    return dn_botf(peer->inner, DN_CHAN_USER, DN_EMULATE_HELLO, &hello,
                   offsetof(dn_emulate_hello_t, where) + dn_where_bytes(&hello.where), NULL, 0);
}

void dn_emulate_pay(dn_emulate_t *emulate, dn_emulate_peer_t *peer)
{
    const dn_emulate_credit_t credit = {peer->far_session, peer->taken};

    if (NULL == peer->inner || dn_peer_is_lost(&peer->base)) {
        dn_emulate_owe(peer, UINT32_MAX, 0);
        return;
    }
    if (0 != (peer->owes & DN_EMULATE_OWES_HELLO)) {
        if (DN_OK != dn_say_hello(emulate, peer)) {
            return;
        }
        dn_emulate_owe(peer, DN_EMULATE_OWES_HELLO, 0);
    }
    if (0 != (peer->owes & DN_EMULATE_OWES_CREDIT)) {
        if (DN_OK
            != dn_botf(peer->inner, DN_CHAN_USER, DN_EMULATE_CREDIT, &credit, sizeof(credit), NULL, 0)) {
            return;
        }
        peer->told = peer->taken;
        dn_emulate_owe(peer, DN_EMULATE_OWES_CREDIT, 0);
    }
    if (0 != (peer->owes & DN_EMULATE_OWES_ANSWER)) {
        if (DN_OK
            != dn_botf(peer->inner, DN_CHAN_USER, DN_EMULATE_ANSWER, &peer->answer, sizeof(peer->answer),
                       NULL, 0)) {
            return;
        }
        dn_emulate_owe(peer, DN_EMULATE_OWES_ANSWER, 0);
    }
    if (0 != (peer->owes & DN_EMULATE_OWES_BYE)
        && DN_OK == dn_botf(peer->inner, DN_CHAN_USER, DN_EMULATE_BYE, NULL, 0, NULL, 0)) {
        dn_emulate_owe(peer, DN_EMULATE_OWES_BYE, 0);
    }
}

/** What we send from now on is counted anew; both sides do so at the same place of the stream. */
static void dn_near_session(dn_emulate_peer_t *peer, uint64_t session)
{
    peer->session = session;
    dn_store_release(&peer->sent, 0);
    peer->stores = 0;
    peer->covered = 0;
    dn_store_release(&peer->answered, peer->fences);
    dn_store_release(&peer->returned, 0);
}

static void dn_far_session(dn_emulate_peer_t *peer, uint64_t session)
{
    peer->far_session = session;
    peer->taken = 0;
    peer->told = 0;
    for (dn_emulate_item_t *item = dn_fifo_first(&peer->items); NULL != item;
         item = dn_fifo_next(&item->item)) {
        item->lines = 0;
    }
}
/** @} */

/** @name Peers */
/** @{ */
/** @p inner: lent, unless it is connected to. */
static dn_emulate_peer_t *dn_emulate_peer_new(dn_emulate_t *emulate, const uint64_t nonce[2],
                                              const dn_emulate_where_t *where, dn_peer_t *inner)
{
    dn_emulate_peer_t *peer = aligned_alloc(_Alignof(dn_emulate_peer_t), sizeof(*peer));
    dn_peer_attr_t attr;

    if (NULL == peer) {
        return NULL;
    }
    memset(peer, 0, sizeof(*peer));
    dn_peer_attr(inner, &attr);
    peer->base.iface = &emulate->iface;
    peer->base.pid = attr.pid;
    peer->base.pgid = attr.pgid;
    memcpy(peer->base.nonce, nonce, sizeof(peer->base.nonce));
    peer->base.llcm_len = where->llcm_bytes;
    peer->lines = where->lines;
    /* The second port's ring has twice the lines: its longest message would need all of them. One that has left takes none. */
    peer->base.botf_max =
        attr.botf_max / 2 > sizeof(dn_emulate_head_t) ? attr.botf_max / 2 - sizeof(dn_emulate_head_t) : 0;
    /* Of the line that the NIC would send; the times beside it are ours. */
    peer->base.botf_inline = attr.botf_inline;
    /* A page is a packet. */
    peer->base.cut = emulate->nic.page;
    peer->base.ops = dn_emulate_ops;
    memcpy(peer->inner_nonce, ((const dn_peer_base_t *) inner)->nonce, sizeof(peer->inner_nonce));
    peer->next = emulate->peers;
    emulate->peers = peer;
    dn_peer_set_user(inner, DN_CHAN_USER, peer);
    return peer;
}

static void dn_emulate_peer_free(dn_emulate_t *emulate, dn_emulate_peer_t *peer)
{
    dn_emulate_peer_t **at = &emulate->peers;

    while (peer != *at) {
        at = &(*at)->next;
    }
    *at = peer->next;
    dn_emulate_drop(peer);
    dn_peer_base_t *inner = dn_port_find_peer(emulate->inner, peer->inner_nonce);
    if (NULL != inner) {
        dn_peer_set_user(&inner->hot, DN_CHAN_USER, NULL);
    }
    if (NULL != peer->inner) {
        dn_disconnect(peer->inner);
    }
    free(peer);
}

/** Has a peer ended, so that no bye will come, and is nothing of it left at the second port? */
static int dn_emulate_has_ended(const dn_emulate_t *emulate, const dn_emulate_peer_t *peer)
{
    dn_peer_base_t *inner = dn_port_find_peer(emulate->inner, peer->inner_nonce);

    /* Nothing is sent to one that had left when its hello was read: only a look tells that it has ended. */
    return NULL == inner
           || ((peer->gone || DN_OK != dn_peer_check(&inner->hot)) && 0 == dn_recv(&inner->hot, 1));
}

void dn_emulate_sweep(dn_emulate_t *emulate)
{
    for (dn_emulate_peer_t *peer = emulate->peers, *next; NULL != peer; peer = next) {
        next = peer->next;
        if (peer->far_open && (peer->gone || NULL == peer->inner) && dn_emulate_has_ended(emulate, peer)) {
            peer->far_open = 0;
        }
        if (!peer->near_open && !peer->far_open && NULL == peer->items.first && 0 == peer->owes
            && 0 == peer->base.connections) {
            dn_port_forget(emulate->iface.port, &peer->base);
            dn_emulate_peer_free(emulate, peer);
        }
    }
}

dn_status_t dn_emulate_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                               dn_peer_base_t **peer_p)
{
    dn_emulate_t *emulate = (dn_emulate_t *) iface;
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) *peer_p;
    dn_emulate_where_t where;
    dn_peer_t *inner;
    dn_peer_attr_t attr;

    if (!dn_where_read(&where, address, len)) {
        dn_log_error("the emulate part of the address of PID %" PRIu32 " is malformed; refused", id->pid);
        return DN_ERR_PROTO;
    }
    if (where.print != emulate->print) {
        dn_log_error("PID %" PRIu32 " emulates %s, this process %s, or another file of that name, or counts "
                     "by another clock; give all "
                     "the same profile and DN_EMULATE_CLOCK",
                     id->pid, where.profile, emulate->profile);
        return DN_ERR_UNREACH;
    }
    if (NULL == peer) {
        const dn_status_t status = dn_connect(emulate->inner, where.address, where.len, &inner);
        if (DN_OK != status) {
            return status;
        }
        dn_peer_attr(inner, &attr);
        const int same = attr.pid == id->pid && 0 == memcmp(&attr.pgid, &id->pgid, sizeof(attr.pgid));
        if (!same) {
            dn_log_error("the emulate part of the address of PID %" PRIu32 " names another process; refused",
                         id->pid);
        }
        peer = same ? dn_emulate_peer_new(emulate, id->nonce, &where, inner) : NULL;
        if (NULL == peer) {
            dn_disconnect(inner);
            return same ? DN_ERR_NOMEM : DN_ERR_PROTO;
        }
        peer->inner = inner;
    }
    peer->near_open = 1;
    /* One that has not heard yet that we left need not: this session takes the place of that one. */
    dn_emulate_owe(peer, DN_EMULATE_OWES_BYE, 0);
    dn_near_session(peer, ++emulate->sessions);
    dn_emulate_owe(peer, DN_EMULATE_OWES_HELLO, 1);
    dn_emulate_pay(emulate, peer);
    *peer_p = &peer->base;
    return DN_OK;
}

void dn_emulate_disconnect(dn_peer_base_t *base)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) base;

    peer->near_open = 0;
    dn_near_session(peer, 0);
    dn_emulate_owe(peer, DN_EMULATE_OWES_BYE, 1);
    dn_emulate_pay((dn_emulate_t *) base->iface, peer);
    /* dn_emulate_sweep() frees it when it is done with us, too. */
}

void dn_emulate_release(dn_peer_base_t *base)
{
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) base;
    dn_emulate_t *emulate = (dn_emulate_t *) base->iface;

    if (peer->near_open) {
        dn_emulate_owe(peer, DN_EMULATE_OWES_BYE, 1);
    }
    dn_emulate_pay(emulate, peer);
    dn_emulate_peer_free(emulate, peer);
}

dn_status_t dn_emulate_check(dn_peer_base_t *base)
{
    const dn_emulate_peer_t *peer = (const dn_emulate_peer_t *) base;

    return NULL == peer->inner ? DN_ERR_UNREACH : dn_peer_check(peer->inner);
}
/** @} */

/** @name What the second port tells */
/** @{ */
void dn_emulate_inner_lost(dn_peer_t *inner, void *arg)
{
    dn_emulate_t *emulate = arg;
    dn_emulate_peer_t *peer = dn_peer_user(inner, DN_CHAN_USER);

    if (NULL != peer) {
        /* What it has sent before may still come; its bye is behind that. */
        dn_emulate_owe(peer, UINT32_MAX, 0);
        peer->gone = 1;
        dn_port_peer_lost(emulate->iface.port, &peer->base);
    }
}

/** A process is connected to us: we keep it at the second port, too. @return 0: malformed. */
static int dn_emulate_hello(dn_emulate_t *emulate, dn_peer_t *inner, const void *data, size_t len)
{
    dn_emulate_peer_t *peer = dn_peer_user(inner, DN_CHAN_USER);
    dn_emulate_hello_t hello;
    const size_t fixed = offsetof(dn_emulate_hello_t, where);
    dn_peer_t *again = NULL;

    if (fixed > len || !dn_where_read(&hello.where, (const uint8_t *) data + fixed, len - fixed)
        || hello.where.print != emulate->print) {
        return 0;
    }
    memcpy(&hello, data, fixed);
    if (NULL == peer) {
        if (NULL != dn_port_find_peer(emulate->iface.port, hello.nonce)) {
            return 0;
        }
        const dn_status_t status = dn_connect(emulate->inner, hello.where.address, hello.where.len, &again);
        if (DN_OK == status && again != inner) {
            dn_disconnect(again);
            return 0;
        }
        peer = dn_emulate_peer_new(emulate, hello.nonce, &hello.where, inner);
        if (NULL == peer) {
            dn_log_error("no memory for a peer that connects; what it sends is dropped");
            if (NULL != again) {
                dn_disconnect(again);
            }
            return 1;
        }
        /* One that has left already: what it has sent is to be had, no more. */
        peer->inner = again;
        peer->base.life = NULL == again ? DN_PEER_LOST : DN_PEER_NEW;
        dn_port_adopt(emulate->iface.port, &peer->base);
    }
    dn_far_session(peer, hello.session);
    peer->far_open = 1;
    return 1;
}

static int dn_emulate_credit(dn_emulate_peer_t *peer, const void *data, size_t len)
{
    dn_emulate_credit_t credit;

    if (sizeof(credit) != len) {
        return 0;
    }
    memcpy(&credit, data, sizeof(credit));
    if (credit.session == peer->session && credit.taken <= dn_load_acquire(&peer->sent)
        && credit.taken > peer->returned) {
        dn_store_release(&peer->returned, credit.taken);
    }
    return 1;
}

static int dn_emulate_answered(dn_emulate_peer_t *peer, const void *data, size_t len)
{
    dn_emulate_credit_t answer;

    if (sizeof(answer) != len) {
        return 0;
    }
    memcpy(&answer, data, sizeof(answer));
    if (answer.session == peer->session && answer.taken <= dn_load_acquire(&peer->fences)) {
        dn_store_release(&peer->answered, answer.taken);
    }
    return 1;
}

void dn_emulate_came(dn_peer_t *inner, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_emulate_t *emulate = arg;
    dn_emulate_peer_t *peer = dn_peer_user(inner, DN_CHAN_USER);
    int good = NULL != peer;

    if (DN_EMULATE_HELLO == tag) {
        good = dn_emulate_hello(emulate, inner, data, len);
    } else if (good && DN_EMULATE_BYE == tag) {
        peer->far_open = 0;
        dn_far_session(peer, 0);
    } else if (good && DN_EMULATE_CREDIT == tag) {
        good = dn_emulate_credit(peer, data, len);
    } else if (good && DN_EMULATE_ASK == tag) {
        good = dn_emulate_asked(emulate, peer, data, len);
    } else if (good && DN_EMULATE_ANSWER == tag) {
        good = dn_emulate_answered(peer, data, len);
    } else if (good) {
        good = DN_EMULATE_BOTF >= tag && dn_emulate_arrive(emulate, peer, tag, data, len);
    }
    if (!good) {
        dn_count(&emulate->iface.counters->dropped, 1);
    }
}
/** @} */
