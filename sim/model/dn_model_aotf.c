/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * AOTF: stores, lines and interrupts, and the packets of a link that they travel by.
 */
#include "dn_config.h"

#include <string.h>

#include "dn_model_int.h"

/** @name Packets of a link */
/** @{ */
dn_status_t dn_model_gone(dn_model_peer_t *peer)
{
    dn_port_peer_lost(peer->base.iface->port, &peer->base);
    return DN_ERR_UNREACH;
}

dn_status_t dn_model_reaches(dn_model_peer_t *peer)
{
    if (NULL == dn_model_far(peer)->iface || dn_model_near(peer)->refused) {
        return dn_model_gone(peer);
    }
    return dn_model_map_peer(((dn_model_iface_t *) peer->base.iface)->node, peer);
}

dn_model_packet_t *dn_model_link_packet(dn_model_link_t *link, uint32_t from, dn_packet_kind_t kind,
                                        uint64_t len, dn_model_deliver_fn_t deliver)
{
    dn_model_side_t *far = &link->side[dn_model_other(link, from)];
    dn_model_packet_t *packet =
        dn_model_packet_new(link->side[from].iface->node, far->iface->node, kind, len, deliver);

    if (NULL != packet) {
        packet->link = link;
        packet->number = far->numbered++;
        packet->side = dn_model_other(link, from);
        far->flight++;
        link->refs++;
    }
    return packet;
}

void dn_model_link_packet_free(dn_model_packet_t *packet)
{
    dn_model_side_t *side = &packet->link->side[packet->side];

    side->flight--;
    if (0 == side->flight && side->fenced) {
        side->fenced = 0;
        dn_model_arrived(packet->from);
    }
    dn_model_link_give(packet->link);
    dn_model_packet_free(packet->from->model, packet);
}
/** @} */

/** @name Stores */
/** @{ */
/** Into LLCM, from the low end. */
static void dn_aotf_there(dn_model_t *model, dn_model_packet_t *packet)
{
    const dn_model_side_t *side = &packet->link->side[packet->side];

    if (NULL != side->iface && !dn_model_refuses(model, packet)) {
        memcpy(side->iface->llcm + packet->off, &packet->value, packet->size);
        dn_model_arrived(side->iface->node);
    }
    dn_model_link_packet_free(packet);
}

/** The core processor runs the program of an unknown command: it adds to the list at that place. */
static void dn_interrupt_there(dn_model_t *model, dn_model_packet_t *packet)
{
    const dn_model_side_t *side = &packet->link->side[packet->side];
    uint64_t count;

    model->report.interrupts++;
    if (NULL != side->iface && !dn_model_refuses(model, packet)) {
        uint8_t *list = side->iface->llcm + packet->off;
        memcpy(&count, list, sizeof(count));
        count++;
        if (packet->off + count * DN_LINE_BYTES + sizeof(packet->value) <= side->who.llcm_bytes) {
            memcpy(list + count * DN_LINE_BYTES, &packet->value, sizeof(packet->value));
            memcpy(list, &count, sizeof(count));
        } else {
            model->report.refused++;
        }
        dn_model_arrived(side->iface->node);
    }
    dn_model_link_packet_free(packet);
}

/** The kick page by which a page of the peer's LLCM is reached. */
static uint32_t dn_kick_page_of(dn_model_peer_t *peer, uint64_t off)
{
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;
    uint32_t *page = &peer->kick_page[off / dn_value(node, DN_P_PAGE)];

    if (0 == *page) {
        *page = dn_model_kick_page(node);
    }
    return *page;
}

static dn_status_t dn_aotf_check(const dn_model_peer_t *peer, uint64_t off, size_t size)
{
    if (0 == size || sizeof(uint64_t) < size || off >= peer->base.llcm_len
        || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    return DN_OK;
}

static dn_status_t dn_aotf_send(dn_model_peer_t *peer, uint64_t off, uint64_t value, size_t size,
                                dn_model_deliver_fn_t deliver, uint64_t extra_ps)
{
    dn_status_t status = dn_aotf_check(peer, off, size);
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    if (DN_OK == status) {
        status = dn_model_reaches(peer);
    }
    if (DN_OK != status) {
        return status;
    }
    const uint64_t ready = dn_model_store(node, dn_kick_page_of(peer, off));
    if (DN_MODEL_NEVER == ready) {
        return DN_ERR_AGAIN;
    }
    dn_model_packet_t *packet = dn_model_link_packet(peer->link, peer->side, DN_PACKET_AOTF, size, deliver);
    if (NULL == packet) {
        return DN_ERR_NOMEM;
    }
    packet->off = off;
    packet->value = value;
    packet->size = size;
    packet->extra_ps = extra_ps;
    dn_model_packet_send(packet, ready);
    return DN_OK;
}

dn_status_t dn_model_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    return dn_aotf_send((dn_model_peer_t *) hot, off, value, size, dn_aotf_there, 0);
}

/** The device's peer, or NULL: it is another device's, or not in this run. */
static dn_model_peer_t *dn_model_own_peer(dn_peer_t *hot)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;

    return NULL != dn_model_current() && &dn_device_model == peer->base.iface->device
                   && !dn_peer_is_lost(&peer->base)
               ? peer
               : NULL;
}

dn_status_t dn_model_aotf_interrupt(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    dn_model_peer_t *peer = dn_model_own_peer(hot);

    if (NULL == peer) {
        return DN_ERR_UNSUPPORTED;
    }
    return dn_aotf_send(peer, off, value, size, dn_interrupt_there, dn_value(peer->far, DN_P_CORE_TIME));
}

dn_status_t dn_model_aotf_multicast(dn_peer_t *const *hot, size_t count, uint64_t off, uint64_t value,
                                    size_t size)
{
    dn_model_t *model = dn_model_current();
    dn_model_packet_t *whole = NULL;
    dn_model_packet_t **copy = &whole;

    for (size_t i = 0; i < count; i++) {
        const dn_model_peer_t *peer = dn_model_own_peer(hot[i]);
        if (NULL == peer || DN_MODEL_STAR != model->config.fabric
            || 0 == model->profile.value[DN_P_SWITCH_COPIES]) {
            return DN_ERR_UNSUPPORTED;
        }
        dn_status_t status = dn_aotf_check(peer, off, size);
        if (DN_OK == status) {
            status = dn_model_reaches((dn_model_peer_t *) hot[i]);
        }
        if (DN_OK != status) {
            return status;
        }
    }
    if (0 == count) {
        return DN_OK;
    }
    const uint64_t ready = dn_model_store(model->here, dn_kick_page_of((dn_model_peer_t *) hot[0], off));
    if (DN_MODEL_NEVER == ready) {
        return DN_ERR_AGAIN;
    }
    model->report.multicasts++;
    for (size_t i = 0; i < count; i++) {
        const dn_model_peer_t *peer = (const dn_model_peer_t *) hot[i];
        dn_model_packet_t *packet =
            dn_model_link_packet(peer->link, peer->side, DN_PACKET_AOTF, size, dn_aotf_there);
        if (NULL == packet) {
            return DN_ERR_NOMEM;
        }
        packet->off = off;
        packet->value = value;
        packet->size = size;
        *copy = packet;
        copy = &packet->copies;
    }
    dn_model_packet_send(whole, ready);
    return DN_OK;
}

static void dn_line_there(dn_model_t *model, dn_model_packet_t *packet)
{
    const dn_model_side_t *side = &packet->link->side[packet->side];

    if (NULL != side->iface && !dn_model_refuses(model, packet)) {
        uint8_t *line = side->iface->llcm + packet->off;
        memcpy(line, packet->data, packet->size);
        dn_store_release((uint64_t *) (line + DN_AOTF_LINE_MAX), packet->value);
        dn_model_arrived(side->iface->node);
    }
    dn_model_link_packet_free(packet);
}

dn_status_t dn_model_aotf_line(dn_peer_t *hot, uint64_t off, const void *data, size_t len, uint64_t flag)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    if (DN_AOTF_LINE_MAX < len || 0 != off % DN_LINE_BYTES || off >= peer->base.llcm_len) {
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_model_reaches(peer);
    if (DN_OK != status) {
        return status;
    }
    const uint64_t ready = dn_model_window(node, DN_LINE_BYTES);
    dn_model_packet_t *packet =
        dn_model_link_packet(peer->link, peer->side, DN_PACKET_BOTF, DN_LINE_BYTES, dn_line_there);
    if (NULL == packet || DN_MODEL_NEVER == ready) {
        return DN_ERR_NOMEM;
    }
    memcpy(packet->data, data, len);
    packet->off = off;
    packet->size = len;
    packet->value = flag;
    dn_model_window_free(node, dn_model_packet_send(packet, ready));
    return DN_OK;
}
/** @} */
