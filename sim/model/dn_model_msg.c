/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Messages: rings of dn_line.h in the receiver's memory. The sender builds its lines in a copy of the
 * ring on its own side and sends them in BOTF packets, the head's line last; the receiver returns credit by an AOTF
 * into that copy (AOTF paper section 4).
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_model_int.h"

/** @name Sending messages */
/** @{ */
static dn_ring_t *dn_ring_new(uint32_t lines)
{
    dn_ring_t *ring = aligned_alloc(DN_LINE_BYTES, dn_ring_bytes(lines));
    if (NULL != ring) {
        memset(ring, 0, dn_ring_bytes(lines));
    }
    return ring;
}

/** Take LLCM for the ring of one side; rings in host memory take none. */
static dn_status_t dn_ring_alloc_llcm(dn_model_side_t *side)
{
    dn_model_node_t *node = side->iface->node;
    const size_t need = 0 != dn_value(node, DN_P_HOST_READ_LINE) ? 0 : dn_ring_bytes(side->who.ring_lines);

    if (node->llcm_used + need > dn_value(node, DN_P_LLCM_SIZE)) {
        dn_log_error("the LLCM of node %" PRIu32 " (%" PRIu64
                     " bytes) has no room for one more ring of %zu; lower "
                     "ring_lines or llcm_bytes",
                     node->index, dn_value(node, DN_P_LLCM_SIZE), need);
        return DN_ERR_NOMEM;
    }
    node->llcm_used += need;
    side->llcm = need;
    dn_model_report_t *report = &node->model->report;
    report->llcm_bytes = report->llcm_bytes > node->llcm_used ? report->llcm_bytes : node->llcm_used;
    return DN_OK;
}

/** Make what messages to the other side need, at the first one: who writes by AOTF only takes no LLCM for a ring. */
static dn_status_t dn_rings(dn_model_peer_t *peer)
{
    dn_model_side_t *near = dn_model_near(peer);
    dn_model_side_t *far = dn_model_far(peer);

    dn_status_t status = dn_model_reaches(peer);
    if (DN_OK != status || NULL != near->mirror) {
        return status;
    }
    status = dn_ring_alloc_llcm(far);
    if (DN_OK != status) {
        return status;
    }
    const uint32_t lines = far->who.ring_lines;
    dn_ring_t *mirror = dn_ring_new(lines);
    far->ring = dn_ring_new(lines);
    if (NULL == mirror || NULL == far->ring) {
        free(mirror);
        free(far->ring);
        far->ring = NULL;
        return DN_ERR_NOMEM;
    }
    near->mirror = mirror;
    dn_line_tx_init(&near->tx, mirror, lines, 0);
    dn_line_rx_init(&far->rx, far->ring, lines, 0);
    return DN_OK;
}

/** Lines of a message are in the receiver's ring. */
static void dn_piece_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_link_t *link = packet->link;
    dn_model_side_t *side = &link->side[packet->side];
    const uint8_t *mirror = (const uint8_t *) link->side[dn_model_other(link, packet->side)].mirror;
    dn_model_iface_t *iface = side->iface;

    if (NULL != iface && !dn_model_refuses(model, packet)) {
        uint8_t *ring = (uint8_t *) side->ring;
        if (UINT64_MAX != packet->wipe) {
            /* The head comes with this packet: the next one's place is in order before it. */
            memcpy(ring + packet->wipe, &packet->wiped, sizeof(packet->wiped));
        }
        memcpy(ring + packet->off, mirror + packet->off, packet->size);
        if (UINT64_MAX != packet->wipe) {
            if (!side->waits) {
                side->waits = 1;
                side->next_ready = NULL;
                *iface->ready_tail = link;
                iface->ready_tail = &side->next_ready;
            }
            dn_model_arrived(iface->node);
        }
    }
    dn_model_link_packet_free(packet);
}

static void dn_piece_send(dn_model_peer_t *peer, const uint8_t *from, uint64_t size, uint64_t data, int last)
{
    dn_model_side_t *near = dn_model_near(peer);
    dn_model_node_t *node = near->iface->node;
    const uint64_t ready = dn_model_window(node, data);
    dn_model_packet_t *packet =
        dn_model_link_packet(peer->link, peer->side, DN_PACKET_BOTF, data, dn_piece_there);

    if (NULL == packet || DN_MODEL_NEVER == ready) {
        return;
    }
    packet->off = (uint64_t) (from - (const uint8_t *) near->mirror);
    packet->size = size;
    if (last) {
        const uint64_t *next = &near->mirror->line[near->tx.at].head;
        packet->wipe = (uint64_t) ((const uint8_t *) next - (const uint8_t *) near->mirror);
        packet->wiped = *next;
    }
    dn_model_window_free(node, dn_model_packet_send(packet, ready));
}

/** Send the message whose head is in line @p at of the copy: its bytes in packets, the head with the first of them, last. */
static void dn_message_send(dn_model_peer_t *peer, uint32_t at, size_t len)
{
    dn_model_side_t *near = dn_model_near(peer);
    dn_counters_t *counters = peer->base.iface->counters;
    const uint64_t most = dn_value(near->iface->node, DN_P_BOTF_MAX);
    const uint8_t *head = (const uint8_t *) &near->mirror->line[at];
    const uint8_t *data = dn_line_place(near->mirror, at, len, near->tx.lines);
    const uint64_t first = data == head + sizeof(uint64_t) ? (len < most ? len : most) : 0;

    for (uint64_t off = first; off < len; off += most) {
        const uint64_t part = len - off < most ? len - off : most;
        dn_piece_send(peer, data + off, part, part, 0);
    }
    /* The head word travels in the packet's header. */
    dn_piece_send(peer, head, sizeof(uint64_t) + first, first, 1);
    dn_count(&counters->messages_sent, 1);
    dn_count(&counters->bytes_sent, len);
    dn_count(&counters->lines_sent, dn_line_units(sizeof(uint64_t) + len));
}

/** Is there room for a message of @p len bytes? */
static dn_status_t dn_message_room(dn_model_peer_t *peer, size_t len)
{
    if (len > peer->base.botf_max) {
        dn_log_error("a message to PID %u has %zu bytes; at most %zu go at once", peer->base.pid, len,
                     peer->base.botf_max);
        return DN_ERR_RANGE;
    }
    const dn_status_t status = dn_rings(peer);
    if (DN_OK == status && !dn_line_room(&dn_model_near(peer)->tx, len)) {
        dn_count(&peer->base.iface->counters->credit_waits, 1);
        return DN_ERR_AGAIN;
    }
    return status;
}

dn_status_t dn_model_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *head, size_t head_len,
                          const void *body, size_t body_len)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    const size_t len = body_len > SIZE_MAX - head_len ? SIZE_MAX : head_len + body_len;
    const dn_status_t status = dn_message_room(peer, len);

    if (DN_OK == status) {
        dn_model_side_t *near = dn_model_near(peer);
        const uint32_t at = near->tx.at;
        dn_line_send(&near->tx, channel, tag, head, head_len, body, body_len);
        dn_message_send(peer, at, len);
    }
    return status;
}

dn_status_t dn_model_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    const dn_status_t status = dn_message_room(peer, len);

    if (DN_OK == status) {
        *window = (dn_window_t){dn_line_reserve(&dn_model_near(peer)->tx, len), len, 0};
    }
    return status;
}

void dn_model_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_side_t *near = dn_model_near(peer);
    const uint32_t at = near->tx.at;

    (void) window;
    if (DN_OK != dn_model_reaches(peer)) {
        return;
    }
    dn_line_kick(&near->tx, channel, tag, len);
    dn_message_send(peer, at, len);
}

dn_status_t dn_model_fence(dn_peer_t *hot)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_side_t *far = dn_model_far(peer);

    if (NULL == far->iface) {
        return dn_model_gone(peer);
    }
    /* In order is what one kind of packets is; another kind may have a shorter way. */
    if (0 == peer->base.outstanding && 0 == far->flight) {
        return DN_OK;
    }
    far->fenced = 0 != far->flight;
    return DN_INPROGRESS;
}
/** @} */

/** @name Receiving messages */
/** @{ */
static void dn_credit_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_link_t *link = packet->link;
    dn_model_side_t *side = &link->side[packet->side];

    if (NULL != side->mirror) {
        dn_store_release_u32(&side->mirror->credit, (uint32_t) packet->value);
    }
    if (NULL != side->iface) {
        dn_model_arrived(side->iface->node);
    }
    dn_model_link_packet_free(packet);
}

/** Return credit when it is due, by an AOTF. Inside of a handler it waits: an outer one still reads from the ring. */
static void dn_give_credit(dn_model_link_t *link, uint32_t side)
{
    dn_line_rx_t *rx = &link->side[side].rx;

    if (0 != rx->depth || !dn_line_credit_due(rx) || NULL == link->side[dn_model_other(link, side)].iface) {
        return;
    }
    /* One page of the sender's LLCM holds such words: its kick page is 0, which no peer's is. */
    const uint64_t ready = dn_model_store(link->side[side].iface->node, 0);
    if (DN_MODEL_NEVER == ready) {
        return;
    }
    dn_line_return_credit(rx);
    dn_model_packet_t *packet =
        dn_model_link_packet(link, side, DN_PACKET_AOTF, sizeof(uint32_t), dn_credit_there);
    if (NULL != packet) {
        packet->value = rx->head;
        dn_model_packet_send(packet, ready);
    }
}

int dn_model_deliver(dn_model_link_t *link, uint32_t s, int max)
{
    dn_model_side_t *side = &link->side[s];
    dn_model_iface_t *iface = side->iface;
    dn_model_node_t *node = iface->node;
    dn_line_rx_t *rx = &side->rx;
    dn_line_msg_t msg;
    int n = 0;

    if (NULL == side->ring) {
        return 0;
    }
    link->refs++;
    while (n < max && link->side[s].iface == iface && dn_line_peek(rx, &msg)) {
        dn_model_peer_t *peer = dn_model_peer_of(link, s);
        if (NULL == peer) {
            break;
        }
        if (DN_CHAN_MAX <= msg.channel) {
            dn_count(&iface->iface.counters->dropped, 1);
            dn_line_advance(rx, &msg);
        } else {
            const dn_handler_t *handler = &iface->iface.handler[msg.channel];
            if (NULL == handler->fn) {
                break;
            }
            node->clock_ps += dn_model_read_message_ps(node, sizeof(uint64_t) + msg.len);
            dn_model_busy(node);
            dn_line_advance(rx, &msg);
            rx->depth++;
            handler->fn(&peer->base.hot, msg.tag, msg.data, msg.len, handler->arg);
            rx->depth--;
        }
        n++;
        if (link->side[s].iface == iface) {
            dn_give_credit(link, s);
        }
    }
    dn_model_link_give(link);
    return n;
}
/** @} */
