/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * PUSH and PULL: requests to the hardwired parts, or windows filled by the host, one packet a page, and the
 * acknowledgement (Martini paper sections 5 and 8).
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_model_int.h"
#include "dn_sg.h"
#include "dn_xfer.h"

typedef enum dn_op_way { DN_OP_DMA, DN_OP_WINDOW, DN_OP_PULL } dn_op_way_t;

/** A transfer in flight; lives while a packet of it is under way or its port has not signalled it. */
struct dn_model_op {
    dn_model_op_t *next;      /**< of the port's list of those in flight */
    dn_model_op_t *next_done; /**< of the complete ones */
    dn_model_iface_t *iface;  /**< NULL: given up, only packets still know it */
    dn_model_peer_t *peer;
    dn_model_node_t *near;
    dn_model_node_t *far;
    uint32_t number; /**< of the target port */
    dn_pgid_t pgid;
    dn_op_way_t way;
    dn_xfer_t xfer; /**< its arrays are copies, in blocks */
    dn_sg_t local_sg;
    dn_sg_t remote_sg;
    dn_prog_use_t local_use;
    dn_prog_use_t remote_use;
    dn_block_t *blocks;
    dn_key_t key;
    dn_sg_cursor_t local; /**< the walk over both sides */
    dn_sg_cursor_t remote;
    uint64_t local_at;
    uint64_t local_left;
    uint64_t remote_at;
    uint64_t remote_left;
    uint64_t unsent;  /**< bytes for which no packet has been made */
    int made;         /**< at least one has: a transfer of nothing has one, too */
    uint64_t under;   /**< packets with data under way */
    uint64_t kick_ps; /**< the NIC knows of the first request; the others follow at the host's pace */
    uint64_t request_ps;
    uint64_t pass_ps; /**< the hardwired part is free for the next page */
    uint64_t asked;   /**< PULL: bytes left of the request in hand */
    dn_status_t status;
    int complete;
    uint32_t refs;
};

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t dn_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** @name Life */
/** @{ */
static void dn_op_give(dn_model_op_t *op)
{
    if (0 == --op->refs) {
        free(op->blocks);
        free(op);
    }
}

/** Keep one side: the caller's description of it may go. @return where the next one's blocks go. */
static dn_block_t *dn_op_keep_side(const dn_sg_t **side, dn_sg_t *copy, dn_prog_use_t *use, dn_block_t *block)
{
    const size_t n = dn_sg_listed(*side);

    if (NULL == *side) {
        return block;
    }
    *copy = **side;
    *side = copy;
    if (NULL != copy->use) {
        *use = *copy->use;
        copy->use = use;
        return block;
    }
    for (size_t i = 0; i < n; i++) {
        block[i] = copy->block[i];
    }
    copy->block = block;
    return block + n;
}

static dn_status_t dn_op_keep_sides(dn_model_op_t *op)
{
    op->blocks =
        calloc(dn_sg_listed(op->xfer.local_sg) + dn_sg_listed(op->xfer.remote_sg) + 1, sizeof(*op->blocks));
    if (NULL == op->blocks) {
        return DN_ERR_NOMEM;
    }
    dn_block_t *next = dn_op_keep_side(&op->xfer.local_sg, &op->local_sg, &op->local_use, op->blocks);
    dn_op_keep_side(&op->xfer.remote_sg, &op->remote_sg, &op->remote_use, next);
    return DN_OK;
}

static dn_model_op_t *dn_op_new(dn_model_peer_t *peer, const dn_xfer_t *xfer, dn_op_way_t way)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) peer->base.iface;
    dn_model_op_t *op = calloc(1, sizeof(*op));

    if (NULL == op) {
        return NULL;
    }
    op->xfer = *xfer;
    if (DN_OK != dn_op_keep_sides(op)) {
        free(op);
        return NULL;
    }
    op->iface = iface;
    op->peer = peer;
    op->near = iface->node;
    op->far = peer->far;
    op->number = peer->number;
    op->pgid = iface->who.pgid;
    op->way = way;
    op->key = *xfer->key;
    op->unsent = xfer->len;
    op->refs = 1;
    dn_sg_start(&op->local, op->xfer.local_sg, (uintptr_t) xfer->local, xfer->len);
    dn_sg_start(&op->remote, op->xfer.remote_sg, xfer->roff, xfer->len);
    op->next = iface->ops;
    iface->ops = op;
    peer->base.outstanding++;
    return op;
}

static void dn_op_unlink(dn_model_op_t *op)
{
    dn_model_op_t **at = &op->iface->ops;

    while (op != *at) {
        at = &(*at)->next;
    }
    *at = op->next;
}

/** All packets are where they go; the initiator's host learns of it by its next poll. */
static void dn_op_complete(dn_model_op_t *op)
{
    dn_model_iface_t *iface = op->iface;

    if (NULL == iface || op->complete) {
        return;
    }
    op->complete = 1;
    if (DN_OK == op->status && 0 != (op->xfer.flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(op->xfer.local_status, op->xfer.local_value);
    }
    op->next_done = NULL;
    *iface->done_tail = op;
    iface->done_tail = &op->next_done;
    dn_model_arrived(iface->node);
}

int dn_model_signal(dn_model_iface_t *iface)
{
    int n = 0;

    while (NULL != iface->done) {
        dn_model_op_t *op = iface->done;
        dn_comp_t *comp = op->xfer.comp;
        const dn_status_t status = op->status;
        iface->done = op->next_done;
        if (NULL == iface->done) {
            iface->done_tail = &iface->done;
        }
        dn_op_unlink(op);
        op->peer->base.outstanding--;
        op->iface = NULL;
        dn_op_give(op);
        if (NULL != comp) {
            comp->fn(comp, status);
        }
        n++;
    }
    return n;
}

void dn_model_drop_ops(dn_model_iface_t *iface, const dn_model_peer_t *peer, int tell)
{
    for (dn_model_op_t *op = iface->ops, *next; NULL != op; op = next) {
        next = op->next;
        if (NULL != peer && peer != op->peer) {
            continue;
        }
        if (op->complete) {
            dn_model_op_t **at = &iface->done;
            while (op != *at) {
                at = &(*at)->next_done;
            }
            *at = op->next_done;
            iface->done_tail = &iface->done;
            while (NULL != *iface->done_tail) {
                iface->done_tail = &(*iface->done_tail)->next_done;
            }
        }
        dn_comp_t *comp = op->xfer.comp;
        dn_op_unlink(op);
        op->peer->base.outstanding--;
        op->iface = NULL;
        dn_op_give(op);
        if (tell && NULL != comp) {
            comp->fn(comp, DN_ERR_UNREACH);
            next = iface->ops;
        }
    }
}
/** @} */

/** @name The target's tables */
/** @{ */
/** Where a request's bytes are at the target, as its RVATLB and the check of the group say; NULL with the reason. */
static uint8_t *dn_op_place(dn_model_t *model, const dn_model_op_t *op, uint64_t roff, uint64_t len,
                            dn_status_t *status_p)
{
    const dn_model_iface_t *target = model->iface[op->number];
    const dn_key_t *key = &op->key;

    *status_p = DN_OK;
    if (NULL == target) {
        *status_p = DN_ERR_UNREACH;
        return NULL;
    }
    if (!dn_port_admits(target->iface.port, &op->pgid)) {
        model->report.refused++;
        *status_p = DN_ERR_ACCESS;
        return NULL;
    }
    if (key->sid >= target->regions || !target->region[key->sid].live
        || target->region[key->sid].generation != key->generation || roff > target->region[key->sid].len
        || len > target->region[key->sid].len - roff) {
        model->report.refused++;
        *status_p = DN_ERR_RANGE;
        return NULL;
    }
    return target->region[key->sid].base + roff;
}

/** Number of a page of a segment, or of host memory, for a TLB. */
static uint64_t dn_page_of(const dn_model_node_t *node, uint64_t address)
{
    return address / dn_value(node, DN_P_PAGE);
}

static uint64_t dn_remote_page(const dn_model_node_t *node, const dn_model_op_t *op, uint64_t roff)
{
    return ((uint64_t) op->key.sid << 40) + dn_page_of(node, roff);
}
/** @} */

/** Does the hardware know how the remote side lies? Programs are for core processors, unless the NIC interprets lists. */
static int dn_dma_fits(const dn_model_node_t *node, const dn_xfer_t *xfer)
{
    return NULL == xfer->remote_sg || NULL == xfer->remote_sg->use || 0 != dn_value(node, DN_P_PUSH_SG);
}

/** Time of a DMA of so many bytes, once it has begun: until the last is there. The bus is free one gap later. */
static uint64_t dn_dma_ps(const dn_model_node_t *node, uint64_t len)
{
    const uint64_t gaps = 0 == len ? 0 : (len - 1) / dn_value(node, DN_P_DMA_BURST);
    return dn_time_of(len, dn_value(node, DN_P_DMA_RATE)) + gaps * dn_value(node, DN_P_DMA_BURST_GAP);
}

/** The next piece that lies together on both sides and on one page of the side it is read from, at most @p max bytes. */
static uint64_t dn_op_next(dn_model_op_t *op, uint64_t max, int from_remote, uint64_t *local_p,
                           uint64_t *remote_p)
{
    const dn_model_node_t *node = from_remote ? op->far : op->near;
    const uint64_t page = dn_value(node, DN_P_PAGE);

    op->made = 1;
    if (0 == op->unsent) {
        *local_p = 0;
        *remote_p = op->xfer.roff;
        return 0;
    }
    if (0 == op->local_left) {
        op->local_left = dn_sg_next(&op->local, UINT64_MAX, &op->local_at);
    }
    if (0 == op->remote_left) {
        op->remote_left = dn_sg_next(&op->remote, UINT64_MAX, &op->remote_at);
    }
    const uint64_t at = from_remote ? op->remote_at : op->local_at;
    /* What the host puts into a window needs no translation here. */
    const uint64_t most = DN_OP_WINDOW == op->way ? max : dn_min(max, page - at % page);
    const uint64_t len = dn_min(dn_min(op->local_left, op->remote_left), most);
    *local_p = op->local_at;
    *remote_p = op->remote_at;
    op->local_at += len;
    op->remote_at += len;
    op->local_left -= len;
    op->remote_left -= len;
    op->unsent -= len;
    return len;
}

static dn_model_packet_t *dn_op_packet(dn_model_op_t *op, dn_model_node_t *from, dn_model_node_t *to,
                                       dn_packet_kind_t kind, uint64_t len, dn_model_deliver_fn_t deliver)
{
    dn_model_packet_t *packet = dn_model_packet_new(from, to, kind, len, deliver);
    if (NULL != packet) {
        packet->op = op;
        op->refs++;
    }
    return packet;
}

static void dn_op_packet_free(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_op_give(packet->op);
    dn_model_packet_free(model, packet);
}

/** @name PUSH */
/** @{ */
/** The status word that an AOTF carried after the data. */
static void dn_push_status_there(dn_model_t *model, dn_model_packet_t *packet)
{
    const dn_model_op_t *op = packet->op;
    const dn_model_iface_t *target = model->iface[op->number];

    if (NULL != target && op->xfer.remote_status < target->who.llcm_bytes) {
        dn_store_release((uint64_t *) (target->llcm + op->xfer.remote_status), op->xfer.remote_value);
        dn_model_arrived(target->node);
    }
    dn_op_complete(packet->op);
    dn_op_packet_free(model, packet);
}

/** The acknowledgement is at the initiator. */
static void dn_push_acked(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;
    const int tell = DN_OK == op->status && 0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)
                     && 0 == dn_value(op->far, DN_P_PUSH_REMOTE);

    if (tell && NULL != op->iface) {
        /* Left out of the hardware: the initiator's software sends it once it knows that the data are there. */
        dn_model_packet_t *status =
            dn_op_packet(op, op->near, op->far, DN_PACKET_AOTF, sizeof(uint64_t), dn_push_status_there);
        if (NULL != status) {
            model->report.aotf++;
            dn_model_packet_send(status, model->now_ps + dn_value(op->near, DN_P_HOST_READ_8)
                                             + dn_value(op->near, DN_P_HOST_STORE)
                                             + dn_value(op->near, DN_P_HOST_TO_NIC)
                                             + dn_value(op->near, DN_P_HEADER_LOOKUP));
        }
    } else {
        dn_op_complete(op);
    }
    dn_op_packet_free(model, packet);
}

/** Data of a PUSH are in the target's memory. */
static void dn_push_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;
    dn_status_t status;
    uint8_t *to = dn_op_place(model, op, packet->off, packet->len, &status);

    if (NULL != to && NULL != op->iface) {
        memmove(to, (const void *) (uintptr_t) packet->value, packet->len);
        /* Nobody is told; but who polls that memory sees it. */
        dn_model_arrived(op->far);
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under--;
    if (0 == op->under && 0 == op->unsent) {
        dn_model_iface_t *target = model->iface[op->number];
        if (DN_OK == op->status && 0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE) && NULL != target
            && 0 != dn_value(op->far, DN_P_PUSH_REMOTE)) {
            dn_store_release((uint64_t *) (target->llcm + op->xfer.remote_status), op->xfer.remote_value);
            dn_model_arrived(op->far);
        }
        dn_model_packet_t *ack = dn_op_packet(op, op->far, op->near, DN_PACKET_DMA, 0, dn_push_acked);
        if (NULL != ack) {
            model->report.acks++;
            ack->extra_ps = dn_value(op->near, DN_P_PASS);
            dn_model_packet_send(ack, model->now_ps + dn_value(op->far, DN_P_PASS));
        }
    }
    dn_op_packet_free(model, packet);
}

/** A packet with data for the other side's memory, to be sent when the DMA reads it from @p start_ps on. */
static void dn_dma_send(dn_model_packet_t *packet, uint64_t start_ps)
{
    dn_model_node_t *from = packet->from;
    const dn_model_node_t *to = packet->to;
    const uint64_t took = dn_dma_ps(from, packet->len);
    const uint64_t wire = dn_model_wire_ps(from, packet->len);
    const uint64_t first = start_ps + dn_value(from, DN_P_DMA_READ);
    /* Cut through, the packet leaves so that its last byte has been read when that is due. */
    const uint64_t ready =
        0 != dn_value(from, DN_P_DMA_CUT) ? dn_max(first, first + took - dn_min(took, wire)) : first + took;

    packet->interval_ps = dn_max(dn_value(to, DN_P_RECEIVE_INTERVAL),
                                 dn_dma_ps(to, packet->len) + dn_value(to, DN_P_DMA_BURST_GAP));
    packet->extra_ps += dn_value(to, DN_P_PASS) + dn_value(to, DN_P_DMA_WRITE);
    const uint64_t left = dn_model_packet_send(packet, ready);
    from->busy.dma_ps = dn_max(first + took + dn_value(from, DN_P_DMA_BURST_GAP), left - wire);
}

/** The send part takes the next page of a PUSH. */
static void dn_push_step(dn_model_t *model, void *arg)
{
    dn_model_op_t *op = arg;
    dn_model_node_t *node = op->near;
    uint64_t local = 0, remote = 0;

    if (NULL == op->iface) {
        dn_op_give(op);
        return;
    }
    const int fresh = 0 == op->local_left || 0 == op->remote_left;
    if (fresh && op->made && 0 == dn_value(node, DN_P_PUSH_SG)) {
        op->kick_ps += op->request_ps;
    }
    const uint64_t len = dn_op_next(op, UINT64_MAX, 0, &local, &remote);
    uint64_t start = dn_max(dn_max(model->now_ps, op->kick_ps), op->pass_ps);
    start += dn_value(node, DN_P_PASS) + dn_model_tlb(node, 0, dn_page_of(node, local));
    /* The next page is translated while this one is read. */
    op->pass_ps = start;
    start = dn_max(start, node->busy.dma_ps);
    dn_model_packet_t *packet = dn_op_packet(op, node, op->far, DN_PACKET_DMA, len, dn_push_there);
    if (NULL != packet) {
        op->under++;
        packet->off = remote;
        packet->value = local;
        packet->extra_ps = dn_model_tlb(op->far, 1, dn_remote_page(op->far, op, remote));
        model->report.push_packets++;
        dn_dma_send(packet, start);
    }
    if (0 != op->unsent && NULL != packet) {
        dn_model_at(model,
                    dn_max(start, node->busy.dma_ps - dn_min(node->busy.dma_ps, dn_value(node, DN_P_PASS))),
                    dn_push_step, op);
    } else {
        dn_op_give(op);
    }
}

/** A PUSH in packets that the host builds. */
static void dn_push_windows(dn_model_op_t *op)
{
    dn_model_node_t *node = op->near;
    const uint64_t most = dn_value(node, DN_P_BOTF_MAX);
    uint64_t local, remote;

    do {
        const uint64_t len = dn_op_next(op, most, 0, &local, &remote);
        const uint64_t ready = dn_model_window(node, len);
        dn_model_packet_t *packet = dn_op_packet(op, node, op->far, DN_PACKET_BOTF, len, dn_push_there);
        if (NULL == packet || DN_MODEL_NEVER == ready) {
            return;
        }
        op->under++;
        packet->off = remote;
        packet->value = local;
        node->model->report.push_packets++;
        dn_model_window_free(node, dn_model_packet_send(packet, ready));
    } while (0 != op->unsent);
}

/** The host describes a request; when the NIC knows of the first, and the pace of further ones. */
static void dn_op_request(dn_model_op_t *op)
{
    dn_model_node_t *node = op->near;

    dn_model_busy(node);
    op->request_ps = (dn_value(node, DN_P_WINDOW_FIELDS) + 1) * dn_value(node, DN_P_HOST_STORE);
    op->kick_ps = node->clock_ps + op->request_ps + dn_value(node, DN_P_HOST_TO_NIC);
    uint64_t requests = 1;
    if (0 == dn_value(node, DN_P_PUSH_SG)) {
        requests = dn_max(1, dn_max(dn_sg_blocks(op->xfer.local_sg), dn_sg_blocks(op->xfer.remote_sg)));
    }
    node->clock_ps += requests * op->request_ps;
}

dn_status_t dn_model_push(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;
    const dn_status_t status = dn_xfer_check(xfer, 1, peer->base.llcm_len);

    if (DN_OK == status && !dn_dma_fits(node, xfer)) {
        return DN_ERR_UNSUPPORTED;
    }
    if (DN_OK != status) {
        return status;
    }
    const int windows = 0 == dn_value(node, DN_P_PUSH_DMA) || DN_MODEL_WAY_BOTF == node->way
                        || (DN_MODEL_WAY_SIZE == node->way && xfer->len <= dn_value(node, DN_P_BOTF_MAX));
    dn_model_op_t *op = dn_op_new(peer, xfer, windows ? DN_OP_WINDOW : DN_OP_DMA);
    if (NULL == op) {
        return DN_ERR_NOMEM;
    }
    if (windows) {
        dn_push_windows(op);
    } else {
        dn_op_request(op);
        op->refs++;
        dn_model_at(node->model, op->kick_ps, dn_push_step, op);
    }
    return DN_INPROGRESS;
}
/** @} */

/** @name PULL */
/** @{ */
static void dn_pull_request(dn_model_op_t *op, uint64_t at_ps);

/** Data of a PULL are in the initiator's memory, or the target's refusal has come. */
static void dn_pull_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;
    dn_status_t status;
    const uint8_t *from = dn_op_place(model, op, packet->off, packet->len, &status);

    if (NULL != from && NULL != op->iface && DN_OK == op->status) {
        memmove((void *) (uintptr_t) packet->value, from, packet->len);
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under--;
    if (0 == op->under && (0 == op->unsent || DN_OK != op->status)) {
        dn_op_complete(op);
    }
    dn_op_packet_free(model, packet);
}

/** The target answers with the next page of the request in hand. */
static void dn_pull_step(dn_model_t *model, void *arg)
{
    dn_model_op_t *op = arg;
    dn_model_node_t *node = op->far;
    uint64_t local = 0, remote = 0;
    dn_status_t status;

    if (NULL == op->iface) {
        dn_op_give(op);
        return;
    }
    const uint64_t len = dn_op_next(op, op->asked, 1, &local, &remote);
    op->asked -= len;
    uint64_t start = dn_max(model->now_ps, op->pass_ps) + dn_value(node, DN_P_PASS);
    start += dn_model_tlb(node, 0, dn_remote_page(node, op, remote));
    op->pass_ps = start;
    start = dn_max(start, node->busy.dma_ps);
    const int refused = NULL == dn_op_place(model, op, remote, len, &status);
    dn_model_packet_t *packet =
        dn_op_packet(op, node, op->near, DN_PACKET_DMA, refused ? 0 : len, dn_pull_there);
    if (NULL == packet) {
        dn_op_give(op);
        return;
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under++;
    packet->off = remote;
    packet->value = local;
    packet->extra_ps = dn_model_tlb(op->near, 0, dn_page_of(op->near, local));
    model->report.pull_packets++;
    dn_dma_send(packet, start);
    if (0 != op->asked && DN_OK == op->status) {
        dn_model_at(model,
                    dn_max(start, node->busy.dma_ps - dn_min(node->busy.dma_ps, dn_value(node, DN_P_PASS))),
                    dn_pull_step, op);
        return;
    }
    if (0 != op->unsent && DN_OK == op->status) {
        /* The next request waits at the target already, if the host was fast enough. */
        dn_pull_request(op, dn_max(op->kick_ps, model->now_ps));
    }
    dn_op_give(op);
}

/** A request is at the target: its receive part, then its send part work on it. */
static void dn_pull_asked(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;

    op->refs++;
    dn_model_at(model, model->now_ps + dn_model_tlb(op->far, 1, dn_remote_page(op->far, op, packet->off)),
                dn_pull_step, op);
    dn_op_packet_free(model, packet);
}

static void dn_pull_request(dn_model_op_t *op, uint64_t at_ps)
{
    dn_model_node_t *node = op->near;

    if (0 == op->local_left) {
        op->local_left = dn_sg_next(&op->local, UINT64_MAX, &op->local_at);
    }
    if (0 == op->remote_left) {
        op->remote_left = dn_sg_next(&op->remote, UINT64_MAX, &op->remote_at);
    }
    op->asked = 0 != dn_value(node, DN_P_PUSH_SG)
                    ? dn_min(op->unsent, dn_value(node, DN_P_PULL_MAX))
                    : dn_min(dn_min(op->local_left, op->remote_left), dn_value(node, DN_P_PULL_MAX));
    dn_model_packet_t *packet = dn_op_packet(op, node, op->far, DN_PACKET_DMA, 0, dn_pull_asked);
    if (NULL != packet) {
        packet->off = op->remote_at;
        packet->extra_ps = dn_value(op->far, DN_P_PASS);
        node->model->report.pull_requests++;
        dn_model_packet_send(packet, at_ps + dn_value(node, DN_P_PASS));
        op->kick_ps += op->request_ps;
    }
}

dn_status_t dn_model_pull(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    if (0 == dn_value(node, DN_P_PULL_DMA) || !dn_dma_fits(node, xfer)) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_status_t status = dn_xfer_check(xfer, 0, peer->base.llcm_len);
    if (DN_OK != status) {
        return status;
    }
    if (0 == xfer->len) {
        if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
            dn_store_release(xfer->local_status, xfer->local_value);
        }
        return DN_OK;
    }
    dn_model_op_t *op = dn_op_new(peer, xfer, DN_OP_PULL);
    if (NULL == op) {
        return DN_ERR_NOMEM;
    }
    dn_op_request(op);
    dn_pull_request(op, op->kick_ps);
    return DN_INPROGRESS;
}
/** @} */
