/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Links between ports: who knows whom, who may, and who has left.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_model_int.h"

static const dn_peer_ops_t dn_model_ops = {
    .botf = dn_model_botf,
    .reserve = dn_model_reserve,
    .kick = dn_model_kick,
    .aotf = dn_model_aotf,
    .aotf_line = dn_model_aotf_line,
    .push = dn_model_push,
    .pull = dn_model_pull,
    .atomic = NULL,
    .fence = dn_model_fence,
};

/** @name Links */
/** @{ */
void dn_model_link_give(dn_model_link_t *link)
{
    if (0 == --link->refs) {
        for (int i = 0; i < 2; i++) {
            free(link->side[i].ring);
            free(link->side[i].mirror);
        }
        free(link);
    }
}

static void dn_link_enter(dn_model_link_t *link, uint32_t s)
{
    dn_model_side_t *side = &link->side[s];

    side->next = side->iface->links;
    side->iface->links = link;
    link->refs++;
}

/** A port has no more to do with a link. */
static void dn_link_leave(dn_model_link_t *link, uint32_t s)
{
    dn_model_side_t *side = &link->side[s];
    dn_model_iface_t *iface = side->iface;
    dn_model_link_t **at = &iface->links;

    while (link != *at) {
        at = &(*at)->side[dn_model_side(*at, iface)].next;
    }
    *at = side->next;
    if (side->waits) {
        dn_model_link_t **ready = &iface->ready;
        while (link != *ready) {
            ready = &(*ready)->side[dn_model_side(*ready, iface)].next_ready;
        }
        *ready = side->next_ready;
        iface->ready_tail = &iface->ready;
        while (NULL != *iface->ready_tail) {
            iface->ready_tail =
                &(*iface->ready_tail)->side[dn_model_side(*iface->ready_tail, iface)].next_ready;
        }
        side->waits = 0;
    }
    iface->node->llcm_used -= side->llcm;
    side->iface = NULL;
    dn_model_link_give(link);
}

static dn_model_link_t *dn_link_find(const dn_model_iface_t *iface, const dn_model_iface_t *far)
{
    for (dn_model_link_t *link = iface->links; NULL != link;) {
        const uint32_t s = dn_model_side(link, iface);
        if (far == link->side[dn_model_other(link, s)].iface) {
            return link;
        }
        link = link->side[s].next;
    }
    return NULL;
}

static dn_status_t dn_link_new(dn_model_iface_t *iface, dn_model_iface_t *far, dn_model_link_t **link_p)
{
    dn_model_link_t *link = calloc(1, sizeof(*link));

    if (NULL == link) {
        return DN_ERR_NOMEM;
    }
    link->self = iface == far;
    link->side[0].iface = iface;
    link->side[0].who = iface->who;
    link->side[1].iface = link->self ? NULL : far;
    link->side[1].who = far->who;
    dn_link_enter(link, 0);
    if (!link->self) {
        dn_link_enter(link, 1);
    }
    *link_p = link;
    return DN_OK;
}

/** Messages that came to a side, or are on their way. */
static int dn_link_has_more(const dn_model_link_t *link, uint32_t s)
{
    const dn_model_side_t *side = &link->side[s];

    return 0 != side->flight || 0 != side->rx.depth || (NULL != side->ring && !dn_line_quiet(&side->rx));
}
/** @} */

/** @name Peers */
/** @{ */
/** What a side calls the other. One that has left is lost from the start: only its messages are to be had. */
static dn_model_peer_t *dn_peer_new(dn_model_link_t *link, uint32_t s)
{
    dn_model_iface_t *iface = link->side[s].iface;
    const dn_model_side_t *other = &link->side[dn_model_other(link, s)];
    const dn_model_who_t *far = &other->who;
    const size_t pages = far->llcm_bytes / dn_value(iface->node, DN_P_PAGE) + 1;
    dn_model_peer_t *peer = calloc(1, sizeof(*peer) + pages * sizeof(*peer->kick_page));

    if (NULL == peer) {
        return NULL;
    }
    peer->kick_page = (uint32_t *) (peer + 1);
    peer->link = link;
    peer->side = s;
    peer->number = far->number;
    peer->far = far->node;
    peer->base.iface = &iface->iface;
    peer->base.pid = far->pid;
    peer->base.pgid = far->pgid;
    memcpy(peer->base.nonce, far->nonce, sizeof(peer->base.nonce));
    peer->base.llcm_len = far->llcm_bytes;
    peer->base.botf_inline = DN_LINE_INLINE;
    peer->base.botf_max = dn_line_max(far->ring_lines);
    peer->base.ops = dn_model_ops;
    peer->base.life = NULL == other->iface ? DN_PEER_LOST : DN_PEER_NEW;
    link->side[s].peer = peer;
    link->refs++;
    return peer;
}

/** Free a peer that the port knows no more; its link goes when both sides are through with it. */
static void dn_peer_free(dn_model_peer_t *peer)
{
    dn_model_link_t *link = peer->link;
    dn_model_iface_t *iface = (dn_model_iface_t *) peer->base.iface;
    dn_model_side_t *side = &link->side[peer->side];
    const dn_model_side_t *far = &link->side[dn_model_other(link, peer->side)];

    dn_model_drop_ops(iface, peer, 0);
    dn_model_unmap_peer(iface->node, peer);
    side->peer = NULL;
    if (side->open && NULL != far->iface) {
        far->iface->senders--;
    }
    side->open = 0;
    if (NULL != far->iface) {
        far->iface->stirred = 1;
    }
    if (!far->open || NULL == far->iface) {
        dn_link_leave(link, peer->side);
    }
    dn_model_link_give(link);
    free(peer);
}

dn_model_peer_t *dn_model_peer_of(dn_model_link_t *link, uint32_t s)
{
    dn_model_side_t *side = &link->side[s];
    const dn_model_side_t *other = &link->side[dn_model_other(link, s)];
    dn_port_t *port = side->iface->iface.port;

    if (NULL != side->peer) {
        return side->peer;
    }
    if (!dn_port_admits(port, &other->who.pgid)) {
        return NULL;
    }
    dn_model_peer_t *peer = dn_peer_new(link, s);
    if (NULL != peer) {
        dn_port_adopt(port, &peer->base);
    }
    return peer;
}

dn_status_t dn_model_connect(dn_iface_t *base, const dn_peer_base_t *id, const void *address, size_t len,
                             dn_peer_base_t **peer_p)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) base;
    const dn_model_t *model = iface->node->model;
    dn_model_where_t where;

    if (sizeof(where) == len) {
        memcpy(&where, address, sizeof(where));
    }
    if (sizeof(where) != len || 0 != memcmp(where.nonce, id->nonce, sizeof(where.nonce))) {
        dn_log_error("the model part of the address of PID %" PRIu32 " is malformed; refused", id->pid);
        return DN_ERR_PROTO;
    }
    dn_model_iface_t *far = where.number < model->ifaces ? model->iface[where.number] : NULL;
    if (NULL == far || 0 != memcmp(far->who.nonce, where.nonce, sizeof(far->who.nonce))
        || far->node->index != where.node
        || !dn_model_net_joins(model, iface->node->index, far->node->index)) {
        dn_log_answer("model does not reach PID %" PRIu32
                      ": it is no node of this run, has closed its port, or "
                      "no cable leads there",
                      id->pid);
        return DN_ERR_UNREACH;
    }
    if (far->who.pid != id->pid || 0 != memcmp(&far->who.pgid, &id->pgid, sizeof(far->who.pgid))) {
        dn_log_error("node %" PRIu32 " of the model is not the process that its address names; refused",
                     where.node);
        return DN_ERR_PROTO;
    }
    dn_model_link_t *link = dn_link_find(iface, far);
    const int fresh = NULL == link;
    const int sends = !fresh && link->side[dn_model_side(link, iface)].open;
    if (!sends && far->senders >= far->max_peers) {
        dn_log_error("all %" PRIu32 " slots of PID %" PRIu32 " are taken; raise max_peers there",
                     far->max_peers, id->pid);
        return DN_ERR_NOMEM;
    }
    dn_status_t status = fresh ? dn_link_new(iface, far, &link) : DN_OK;
    if (DN_OK != status) {
        return status;
    }
    const uint32_t s = dn_model_side(link, iface);
    dn_model_peer_t *peer = link->side[s].peer;
    const int known = NULL != peer;
    if (!known) {
        peer = dn_peer_new(link, s);
    }
    if (NULL == peer) {
        if (fresh) {
            dn_link_leave(link, dn_model_other(link, s));
            if (!link->self) {
                dn_link_leave(link, s);
            }
        }
        return DN_ERR_NOMEM;
    }
    status = dn_model_map_peer(iface->node, peer);
    if (DN_OK != status) {
        if (!known) {
            dn_peer_free(peer);
        }
        return status;
    }
    if (!link->side[s].open) {
        /* Whom the other's NIC has refused before tries anew. */
        link->side[s].refused = 0;
        link->side[s].open = 1;
        far->senders++;
    }
    *peer_p = &peer->base;
    return DN_OK;
}

void dn_model_disconnect(dn_peer_base_t *base)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) base;
    dn_model_link_t *link = peer->link;
    dn_model_side_t *side = &link->side[peer->side];
    dn_model_side_t *far = &link->side[dn_model_other(link, peer->side)];

    dn_model_drop_ops((dn_model_iface_t *) base->iface, peer, 1);
    dn_model_unmap_peer(((dn_model_iface_t *) base->iface)->node, peer);
    if (side->open && NULL != far->iface) {
        far->iface->senders--;
        far->iface->stirred = 1;
    }
    side->open = 0;
    if (!link->self && NULL != far->iface && far->open && !dn_peer_is_lost(base)) {
        /* It still sends to us. */
        return;
    }
    if (dn_link_has_more(link, peer->side) && !dn_peer_is_lost(base)) {
        ((dn_model_iface_t *) base->iface)->stirred = 1;
        return;
    }
    dn_port_forget(base->iface->port, base);
    dn_peer_free(peer);
}

void dn_model_release(dn_peer_base_t *base)
{
    dn_peer_free((dn_model_peer_t *) base);
}

dn_status_t dn_model_check(dn_peer_base_t *base)
{
    const dn_model_peer_t *peer = (const dn_model_peer_t *) base;

    return NULL == peer->link->side[dn_model_other(peer->link, peer->side)].iface
                   || peer->link->side[peer->side].refused
               ? DN_ERR_UNREACH
               : DN_OK;
}

void dn_model_stir(dn_model_iface_t *iface)
{
    iface->stirred = 0;
    for (dn_model_link_t *link = iface->links, *next; NULL != link; link = next) {
        const uint32_t s = dn_model_side(link, iface);
        dn_model_side_t *side = &link->side[s];
        const dn_model_side_t *far = &link->side[dn_model_other(link, s)];
        dn_model_peer_t *peer = side->peer;
        next = side->next;
        if (side->open || (NULL != far->iface && far->open)) {
            continue;
        }
        if (dn_link_has_more(link, s)) {
            /* Looked at again when what came is read. */
            iface->stirred = 1;
        } else if (NULL != peer && 0 == peer->base.connections) {
            dn_port_forget(iface->iface.port, &peer->base);
            dn_peer_free(peer);
        } else if (NULL == peer) {
            dn_link_leave(link, s);
        }
    }
}

void dn_model_leave_all(dn_model_iface_t *iface)
{
    while (NULL != iface->links) {
        dn_model_link_t *link = iface->links;
        const uint32_t s = dn_model_side(link, iface);
        dn_model_side_t *side = &link->side[s];
        const dn_model_side_t *far = &link->side[dn_model_other(link, s)];
        if (NULL != far->iface && far->iface != iface) {
            if (side->open) {
                far->iface->senders--;
            }
            far->iface->stirred = 1;
        }
        side->open = 0;
        dn_link_leave(link, s);
    }
}
/** @} */
