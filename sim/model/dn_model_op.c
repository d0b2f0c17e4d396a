/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Transfers in flight: their life, the target's tables, and the walk over both sides page by page.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_model_op.h"

/** @name Life */
/** @{ */
void dn_model_op_give(dn_model_op_t *op)
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

dn_model_op_t *dn_model_op_new(dn_model_peer_t *peer, const dn_xfer_t *xfer, dn_op_way_t way)
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

/** The host can know of it now. */
static void dn_op_tell(dn_model_op_t *op)
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

static void dn_op_told(dn_model_t *model, void *arg)
{
    dn_op_tell(arg);
    dn_model_op_give(arg);
}

void dn_model_op_complete(dn_model_op_t *op)
{
    dn_model_t *model = op->near->model;
    const uint64_t arrival_ps = dn_value(op->near, DN_P_ARRIVAL);

    if (0 == arrival_ps) {
        dn_op_tell(op);
    } else {
        op->refs++;
        dn_model_at(model, model->now_ps + arrival_ps, dn_op_told, op);
    }
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
        dn_peer_keep_error(&op->peer->base, comp, status);
        op->peer->base.outstanding--;
        op->iface = NULL;
        dn_model_op_give(op);
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
        dn_model_op_give(op);
        if (tell && NULL != comp) {
            comp->fn(comp, DN_ERR_UNREACH);
            next = iface->ops;
        }
    }
}
/** @} */

/** @name The target's tables */
/** @{ */
uint8_t *dn_model_op_place(dn_model_t *model, const dn_model_op_t *op, uint64_t roff, uint64_t len,
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
    if (!dn_model_lets_in(&target->region[key->sid].let_in, op->near)) {
        model->report.refused++;
        *status_p = DN_ERR_ACCESS;
        return NULL;
    }
    return target->region[key->sid].base + roff;
}

uint64_t dn_model_op_remote_page(const dn_model_node_t *node, const dn_model_op_t *op, uint64_t roff)
{
    return ((uint64_t) op->key.sid << 40) + roff / dn_value(node, DN_P_PAGE);
}
/** @} */

int dn_model_op_fits(const dn_model_node_t *node, const dn_xfer_t *xfer)
{
    return NULL == xfer->remote_sg || NULL == xfer->remote_sg->use || 0 != dn_value(node, DN_P_PUSH_SG);
}

int dn_model_op_maps(dn_model_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;
    const int maps = dn_model_map_segment(node, peer, xfer->key);

    node->model->report.unmapped += !maps;
    return maps;
}

/** Time of a DMA of so many bytes, once it has begun: until the last is there. The bus is free one gap later. */
static uint64_t dn_dma_ps(const dn_model_node_t *node, uint64_t len)
{
    const uint64_t gaps = 0 == len ? 0 : (len - 1) / dn_value(node, DN_P_DMA_BURST);
    return dn_time_of(len, dn_value(node, DN_P_DMA_RATE)) + gaps * dn_value(node, DN_P_DMA_BURST_GAP);
}

uint64_t dn_model_op_next(dn_model_op_t *op, uint64_t max, int from_remote, uint64_t *local_p,
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
    const uint64_t most = DN_OP_WINDOW == op->way ? max : dn_model_min(max, page - at % page);
    const uint64_t len = dn_model_min(dn_model_min(op->local_left, op->remote_left), most);
    *local_p = op->local_at;
    *remote_p = op->remote_at;
    op->local_at += len;
    op->remote_at += len;
    op->local_left -= len;
    op->remote_left -= len;
    op->unsent -= len;
    return len;
}

dn_model_packet_t *dn_model_op_packet(dn_model_op_t *op, dn_model_node_t *from, dn_model_node_t *to,
                                      dn_packet_kind_t kind, uint64_t len, dn_model_deliver_fn_t deliver)
{
    dn_model_packet_t *packet = dn_model_packet_new(from, to, kind, len, deliver);
    if (NULL != packet) {
        packet->op = op;
        op->refs++;
    }
    return packet;
}

void dn_model_op_packet_free(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_give(packet->op);
    dn_model_packet_free(model, packet);
}

void dn_model_op_send(dn_model_packet_t *packet, uint64_t start_ps)
{
    dn_model_node_t *from = packet->from;
    const dn_model_node_t *to = packet->to;
    const uint64_t took = dn_dma_ps(from, packet->len);
    const uint64_t wire = dn_model_wire_ps(from, packet->len);
    const uint64_t first = start_ps + dn_value(from, DN_P_DMA_READ);
    /* Cut through, the packet leaves so that its last byte has been read when that is due. */
    const uint64_t ready = 0 != dn_value(from, DN_P_DMA_CUT)
                               ? dn_model_max(first, first + took - dn_model_min(took, wire))
                               : first + took;

    /* The receiver's bus is taken from the start of the write on, as the sender's is from that of the read on. */
    packet->interval_ps = dn_model_max(dn_value(to, DN_P_RECEIVE_INTERVAL),
                                       dn_value(to, DN_P_MEMORY_WRITE) + dn_value(to, DN_P_DMA_WRITE)
                                           + dn_dma_ps(to, packet->len) + dn_value(to, DN_P_DMA_BURST_GAP));
    packet->extra_ps += dn_value(to, DN_P_PASS) + dn_value(to, DN_P_DMA_WRITE);
    const uint64_t left = dn_model_packet_send(packet, ready);
    from->busy.dma_ps = dn_model_max(first + took + dn_value(from, DN_P_DMA_BURST_GAP), left - wire);
}

void dn_model_op_request(dn_model_op_t *op)
{
    dn_model_node_t *node = op->near;

    dn_model_busy(node);
    op->request_ps = (dn_value(node, DN_P_WINDOW_FIELDS) + 1) * dn_value(node, DN_P_HOST_STORE);
    op->kick_ps = node->clock_ps + op->request_ps + dn_value(node, DN_P_HOST_TO_NIC);
    uint64_t requests = 1;
    if (0 == dn_value(node, DN_P_PUSH_SG)) {
        requests =
            dn_model_max(1, dn_model_max(dn_sg_blocks(op->xfer.local_sg), dn_sg_blocks(op->xfer.remote_sg)));
    }
    node->clock_ps += requests * op->request_ps;
}
