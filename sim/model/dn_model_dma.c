/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * PUSH and PULL: requests to the hardwired parts, or windows filled by the host, one packet a page, and the
 * acknowledgement (Martini paper sections 5 and 8).
 */
#include "dn_config.h"

#include <string.h>

#include "dn_model_op.h"

/** @name PUSH */
/** @{ */
/** The status word is at the target's LLCM, which may let this node not in, though the segment does. */
static void dn_push_status(dn_model_t *model, dn_model_op_t *op)
{
    const dn_model_iface_t *target = model->iface[op->number];

    if (NULL == op->iface || NULL == target || op->xfer.remote_status >= target->who.llcm_bytes) {
        return;
    }
    const dn_model_peer_t *peer = op->peer;
    if (dn_model_refuses_from(model, peer->link, dn_model_other(peer->link, peer->side), op->near)) {
        op->status = DN_ERR_ACCESS;
        return;
    }
    dn_store_release((uint64_t *) (target->llcm + op->xfer.remote_status), op->xfer.remote_value);
    dn_model_arrived(target->node);
}

/** The status word that an AOTF carried after the data. */
static void dn_push_status_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_push_status(model, packet->op);
    dn_model_op_complete(packet->op);
    dn_model_op_packet_free(model, packet);
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
            dn_model_op_packet(op, op->near, op->far, DN_PACKET_AOTF, sizeof(uint64_t), dn_push_status_there);
        if (NULL != status) {
            model->report.aotf++;
            dn_model_packet_send(status, model->now_ps + dn_value(op->near, DN_P_HOST_READ_8)
                                             + dn_value(op->near, DN_P_HOST_STORE)
                                             + dn_value(op->near, DN_P_HOST_TO_NIC)
                                             + dn_value(op->near, DN_P_HEADER_LOOKUP));
        }
    } else {
        dn_model_op_complete(op);
    }
    dn_model_op_packet_free(model, packet);
}

/** Data of a PUSH are in the target's memory. */
static void dn_push_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;
    dn_status_t status;
    uint8_t *to = dn_model_op_place(model, op, packet->off, packet->len, &status);

    if (NULL != to && NULL != op->iface) {
        memmove(to, (const void *) (uintptr_t) packet->value, packet->len);
        /* Nobody is told; but who polls that memory sees it. */
        dn_model_arrived(op->far);
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under--;
    if (0 == op->under && 0 == op->unsent) {
        if (DN_OK == op->status && 0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)
            && 0 != dn_value(op->far, DN_P_PUSH_REMOTE)) {
            dn_push_status(model, op);
        }
        dn_model_packet_t *ack = dn_model_op_packet(op, op->far, op->near, DN_PACKET_DMA, 0, dn_push_acked);
        if (NULL != ack) {
            model->report.acks++;
            ack->extra_ps = dn_value(op->near, DN_P_PASS);
            dn_model_packet_send(ack, model->now_ps + dn_value(op->far, DN_P_PASS));
        }
    }
    dn_model_op_packet_free(model, packet);
}

/** The send part takes the next page of a PUSH. */
static void dn_push_step(dn_model_t *model, void *arg)
{
    dn_model_op_t *op = arg;
    dn_model_node_t *node = op->near;
    uint64_t local = 0, remote = 0;

    if (NULL == op->iface) {
        dn_model_op_give(op);
        return;
    }
    const int fresh = 0 == op->local_left || 0 == op->remote_left;
    if (fresh && op->made && 0 == dn_value(node, DN_P_PUSH_SG)) {
        op->kick_ps += op->request_ps;
    }
    const uint64_t len = dn_model_op_next(op, UINT64_MAX, 0, &local, &remote);
    uint64_t start = dn_model_max(dn_model_max(model->now_ps, op->kick_ps), op->pass_ps);
    start += dn_value(node, DN_P_PASS) + dn_model_tlb(node, 0, dn_model_host_page(node, local));
    /* The next page is translated while this one is read. */
    op->pass_ps = start;
    start = dn_model_max(start, node->busy.dma_ps);
    dn_model_packet_t *packet = dn_model_op_packet(op, node, op->far, DN_PACKET_DMA, len, dn_push_there);
    if (NULL != packet) {
        op->under++;
        packet->off = remote;
        packet->value = local;
        packet->extra_ps = dn_model_tlb(op->far, 1, dn_model_op_remote_page(op->far, op, remote));
        model->report.push_packets++;
        dn_model_op_send(packet, start);
    }
    if (0 != op->unsent && NULL != packet) {
        dn_model_at(model,
                    dn_model_max(start, node->busy.dma_ps
                                            - dn_model_min(node->busy.dma_ps, dn_value(node, DN_P_PASS))),
                    dn_push_step, op);
    } else {
        dn_model_op_give(op);
    }
}

/** A PUSH in packets that the host builds. */
static void dn_push_windows(dn_model_op_t *op)
{
    dn_model_node_t *node = op->near;
    const uint64_t most = dn_value(node, DN_P_BOTF_MAX);
    uint64_t local, remote;

    do {
        const uint64_t len = dn_model_op_next(op, most, 0, &local, &remote);
        const uint64_t ready = dn_model_window(node, len);
        dn_model_packet_t *packet = dn_model_op_packet(op, node, op->far, DN_PACKET_BOTF, len, dn_push_there);
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

dn_status_t dn_model_push(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    if (!dn_model_op_fits(node, xfer) || !dn_model_op_maps(peer, xfer)) {
        return DN_ERR_UNSUPPORTED;
    }
    const int windows = 0 == dn_value(node, DN_P_PUSH_DMA) || DN_MODEL_WAY_BOTF == node->way
                        || (DN_MODEL_WAY_SIZE == node->way && xfer->len <= dn_value(node, DN_P_BOTF_MAX));
    dn_model_op_t *op = dn_model_op_new(peer, xfer, windows ? DN_OP_WINDOW : DN_OP_DMA);
    if (NULL == op) {
        return DN_ERR_NOMEM;
    }
    if (windows) {
        dn_push_windows(op);
    } else {
        dn_model_op_request(op);
        op->refs++;
        dn_model_at(node->model, op->kick_ps, dn_push_step, op);
    }
    return DN_INPROGRESS;
}
/** @} */

/** @name PULL */
/** @{ */
static void dn_pull_request(dn_model_op_t *op, uint64_t at_ps);

/** Are further pages asked for? After a refusal, only by a NIC that answers with zeros. */
static int dn_pull_goes_on(const dn_model_op_t *op)
{
    return DN_OK == op->status || 0 != dn_value(op->far, DN_P_REFUSED_READ_ZERO);
}

/** Data of a PULL are in the initiator's memory, or the target's refusal has come. */
static void dn_pull_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;
    dn_status_t status;
    const uint8_t *from = dn_model_op_place(model, op, packet->off, packet->len, &status);

    if (NULL != from && NULL != op->iface && DN_OK == op->status) {
        memmove((void *) (uintptr_t) packet->value, from, packet->len);
    } else if (NULL != op->iface && 0 != dn_value(op->far, DN_P_REFUSED_READ_ZERO)) {
        memset((void *) (uintptr_t) packet->value, 0, packet->len);
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under--;
    if (0 == op->under && (0 == op->unsent || !dn_pull_goes_on(op))) {
        dn_model_op_complete(op);
    }
    dn_model_op_packet_free(model, packet);
}

/** The target answers with the next page of the request in hand. */
static void dn_pull_step(dn_model_t *model, void *arg)
{
    dn_model_op_t *op = arg;
    dn_model_node_t *node = op->far;
    uint64_t local = 0, remote = 0;
    dn_status_t status;

    if (NULL == op->iface) {
        dn_model_op_give(op);
        return;
    }
    const uint64_t len = dn_model_op_next(op, op->asked, 1, &local, &remote);
    op->asked -= len;
    uint64_t start = dn_model_max(model->now_ps, op->pass_ps) + dn_value(node, DN_P_PASS);
    start += dn_model_tlb(node, 0, dn_model_op_remote_page(node, op, remote));
    op->pass_ps = start;
    start = dn_model_max(start, node->busy.dma_ps);
    const int empty = NULL == dn_model_op_place(model, op, remote, len, &status)
                      && 0 == dn_value(node, DN_P_REFUSED_READ_ZERO);
    dn_model_packet_t *packet =
        dn_model_op_packet(op, node, op->near, DN_PACKET_DMA, empty ? 0 : len, dn_pull_there);
    if (NULL == packet) {
        dn_model_op_give(op);
        return;
    }
    op->status = DN_OK == op->status ? status : op->status;
    op->under++;
    packet->off = remote;
    packet->value = local;
    packet->extra_ps = dn_model_tlb(op->near, 0, dn_model_host_page(op->near, local));
    model->report.pull_packets++;
    dn_model_op_send(packet, start);
    if (0 != op->asked && dn_pull_goes_on(op)) {
        dn_model_at(model,
                    dn_model_max(start, node->busy.dma_ps
                                            - dn_model_min(node->busy.dma_ps, dn_value(node, DN_P_PASS))),
                    dn_pull_step, op);
        return;
    }
    if (0 != op->unsent && dn_pull_goes_on(op)) {
        /* The next request waits at the target already, if the host was fast enough. */
        dn_pull_request(op, dn_model_max(op->kick_ps, model->now_ps));
    }
    dn_model_op_give(op);
}

/** A request is at the target: its receive part, then its send part work on it. */
static void dn_pull_asked(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_op_t *op = packet->op;

    op->refs++;
    dn_model_at(model,
                model->now_ps + dn_model_tlb(op->far, 1, dn_model_op_remote_page(op->far, op, packet->off)),
                dn_pull_step, op);
    dn_model_op_packet_free(model, packet);
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
    op->asked =
        0 != dn_value(node, DN_P_PUSH_SG)
            ? dn_model_min(op->unsent, dn_value(node, DN_P_PULL_MAX))
            : dn_model_min(dn_model_min(op->local_left, op->remote_left), dn_value(node, DN_P_PULL_MAX));
    dn_model_packet_t *packet = dn_model_op_packet(op, node, op->far, DN_PACKET_DMA, 0, dn_pull_asked);
    if (NULL != packet) {
        packet->off = op->remote_at;
        packet->extra_ps = dn_value(op->far, DN_P_PASS);
        node->model->report.pull_requests++;
        dn_model_packet_send(packet, at_ps + dn_value(node, DN_P_PASS));
        op->kick_ps += op->request_ps;
    }
}

/**
 * A PULL is left to the core processors, unless the target refuses it: then it is over, since their answer would bring an
 * error, but no zeros.
 */
static dn_status_t dn_pull_by_messages(dn_model_peer_t *peer, const dn_xfer_t *xfer)
{
    dn_sg_cursor_t to;
    uint64_t at = 0;

    if (0 == xfer->len || dn_model_opened(peer, xfer->key)) {
        return DN_ERR_UNSUPPORTED;
    }
    if (0 != dn_value(peer->far, DN_P_REFUSED_READ_ZERO)) {
        dn_sg_start(&to, xfer->local_sg, (uintptr_t) xfer->local, xfer->len);
        for (uint64_t len = dn_sg_next(&to, UINT64_MAX, &at); 0 != len;
             len = dn_sg_next(&to, UINT64_MAX, &at)) {
            memset((void *) (uintptr_t) at, 0, len);
        }
    }
    return DN_ERR_ACCESS;
}

dn_status_t dn_model_pull(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    dn_model_peer_t *peer = (dn_model_peer_t *) hot;
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    if (0 == dn_value(node, DN_P_PULL_DMA) || !dn_model_op_fits(node, xfer)) {
        return dn_pull_by_messages(peer, xfer);
    }
    if (0 == xfer->len) {
        if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
            dn_store_release(xfer->local_status, xfer->local_value);
        }
        return DN_OK;
    }
    if (!dn_model_op_maps(peer, xfer)) {
        return dn_pull_by_messages(peer, xfer);
    }
    dn_model_op_t *op = dn_model_op_new(peer, xfer, DN_OP_PULL);
    if (NULL == op) {
        return DN_ERR_NOMEM;
    }
    dn_model_op_request(op);
    dn_pull_request(op, op->kick_ps);
    return DN_INPROGRESS;
}
/** @} */
