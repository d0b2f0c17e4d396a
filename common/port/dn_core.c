/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <stdlib.h>
#include <string.h>

/** Blocks of a walk, for one message. */
typedef struct dn_core_list {
    uint32_t count;
    int near;      /**< not 0: DN_CORE_NEAR can describe the blocks */
    uint64_t low;  /**< the lowest place of a block */
    uint64_t high; /**< the highest place of a block */
    dn_block_t block[DN_CORE_NEAR_BLOCKS];
} dn_core_list_t;

/** Collect the next blocks of a walk for one message: at most @p max bytes and @p most blocks. Only near blocks may be more than
 * DN_CORE_BLOCKS. If the last block is too many for this reason, the list is not near. @return bytes. */
static uint64_t dn_core_collect_blocks(dn_sg_cursor_t *at, dn_core_list_t *list, uint64_t max, uint32_t most)
{
    uint64_t total = 0;

    list->count = 0;
    list->near = 1;
    list->low = UINT64_MAX;
    list->high = 0;
    while (most > list->count && (list->near || DN_CORE_BLOCKS > list->count)) {
        dn_block_t *block = &list->block[list->count];
        block->len = dn_sg_next(at, max - total, &block->at);
        if (0 == block->len) {
            break;
        }
        total += block->len;
        list->count++;
        list->low = block->at < list->low ? block->at : list->low;
        list->high = block->at > list->high ? block->at : list->high;
        list->near = list->near && UINT16_MAX >= list->high - list->low && UINT16_MAX >= block->len;
    }
    return total;
}

/** List the next blocks of a walk for one message. @param[in,out] after  In: as @p at. Out: the walk behind them. @return bytes. */
static uint64_t dn_core_list(const dn_sg_cursor_t *at, dn_sg_cursor_t *after, dn_core_list_t *list,
                             uint64_t max)
{
    const uint64_t total = dn_core_collect_blocks(after, list, max, DN_CORE_NEAR_BLOCKS);
    if (list->near || DN_CORE_BLOCKS >= list->count) {
        return total;
    }
    /* Those before the last block are near. */
    *after = *at;
    return dn_core_collect_blocks(after, list, max, list->count - 1);
}

/** Describe blocks in a message, as the request says. @return where the description ends. */
static uint8_t *dn_core_describe(uint8_t *at, const dn_core_request_t *request, const dn_core_list_t *list)
{
    if (0 == (request->flags & DN_CORE_NEAR)) {
        memcpy(at, list->block, list->count * sizeof(list->block[0]));
        return at + list->count * sizeof(list->block[0]);
    }
    memcpy(at, &list->low, sizeof(list->low));
    at += sizeof(list->low);
    for (uint32_t i = 0; i < list->count; i++) {
        const dn_core_near_t near = {.at = (uint16_t) (list->block[i].at - list->low),
                                     .len = (uint16_t) list->block[i].len};
        memcpy(at, &near, sizeof(near));
        at += sizeof(near);
    }
    return at;
}

/** Ship the program that an operation names, ahead of the operation's messages. DN_OK: the peer has the program. */
static dn_status_t dn_core_send_program(dn_core_op_t *op)
{
    dn_core_peer_t *core = &op->peer->core;
    dn_ship_piece_t piece;
    const uint8_t *bytes;
    size_t n;

    if (NULL == core->ours) {
        core->ours = calloc(1, sizeof(*core->ours));
    }
    dn_status_t status = NULL == core->ours ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status && DN_SHIP_SLOTS == op->slot) {
        status = dn_ship_out_enter(core->ours, op->sides.remote_use.prog, &op->slot);
    }
    while (DN_OK == status) {
        status =
            dn_ship_out_next(core->ours, op->slot, op->peer->botf_max - sizeof(piece), &piece, &bytes, &n);
        if (DN_INPROGRESS != status) {
            return status;
        }
        status = dn_botf(&op->peer->hot, DN_CHAN_CORE, DN_CORE_PROG, &piece, sizeof(piece), bytes, n);
        if (DN_OK == status && dn_ship_out_sent(core->ours, &piece, n)) {
            dn_count(&op->peer->iface->port->counters.progs_sent, 1);
        }
    }
    return status;
}

/** Send the next message of a PUSH or PULL. DN_OK: sent. DN_ERR_AGAIN: there is no credit, or too many requests wait for answers. */
static dn_status_t dn_core_send_next(dn_core_op_t *op)
{
    const int push = DN_CORE_OP_PUSH == op->kind;
    dn_core_list_t list;
    dn_window_t window;
    dn_core_request_t request = {.id = op->id,
                                 .sid = op->key.sid,
                                 .sid_generation = op->key.generation,
                                 .flags = op->remote_at.left == op->xfer.len ? DN_CORE_FIRST : 0};
    dn_core_use_t use = {.roff = op->xfer.roff, .len = op->xfer.len};
    dn_sg_cursor_t after = op->remote_at;
    const uint64_t room = push ? dn_core_piece(op->peer, op->xfer.len - op->remote_at.left,
                                               op->peer->botf_max - sizeof(request)
                                                   - (op->ships ? sizeof(use) : DN_CORE_LIST_BYTES))
                               : UINT64_MAX;
    uint64_t len;

    if (op->ships) {
        len = dn_sg_next(&after, room, &use.at);
        use.id = dn_prog_info(op->sides.remote_use.prog)->id;
        use.count = op->sides.remote_use.count;
        use.extent = op->sides.remote_use.extent;
        request.blocks = op->slot;
        request.flags |= DN_CORE_USE;
    } else {
        len = dn_core_list(&op->remote_at, &after, &list, room);
        request.blocks = list.count;
        request.flags |= list.near && 1 < list.count ? DN_CORE_NEAR : 0;
    }
    const int asks = !push || 0 == after.left;
    const size_t size = sizeof(request) + dn_core_side_bytes(&request) + (push ? len : 0);
    const dn_status_t status =
        asks && !dn_core_may_ask(op->peer, 1) ? DN_ERR_AGAIN : dn_botf_reserve(&op->peer->hot, size, &window);
    if (DN_OK != status) {
        return status;
    }
    if (!push) {
        request.off = op->xfer.len - op->remote_at.left;
    } else if (asks) {
        request.flags |= DN_CORE_LAST;
        if (0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)) {
            request.flags |= DN_CORE_STATUS;
            request.off = op->xfer.remote_status;
            request.value = op->xfer.remote_value;
        }
    }
    op->remote_at = after;
    memcpy(window.data, &request, sizeof(request));
    uint8_t *data = (uint8_t *) window.data + sizeof(request);
    if (op->ships) {
        memcpy(data, &use, sizeof(use));
        data += sizeof(use);
    } else {
        data = dn_core_describe(data, &request, &list);
    }
    if (push) {
        dn_sg_gather(data, &op->local_at, len);
    }
    dn_botf_kick(&op->peer->hot, &window, DN_CHAN_CORE, push ? DN_CORE_PUSH : DN_CORE_PULL, size);
    dn_peer_move(op->peer);
    if (asks) {
        dn_core_ask(op);
    }
    return DN_OK;
}

/** Send atomic operations to one peer in one message. */
static dn_status_t dn_core_send_amos(dn_core_op_t *const *op, size_t n)
{
    dn_core_amo_t message[DN_ATOMICS_MAX];
    dn_peer_base_t *peer = op[0]->peer;

    if (!dn_core_may_ask(peer, n)) {
        return DN_ERR_AGAIN;
    }
    for (size_t i = 0; i < n; i++) {
        message[i] = (dn_core_amo_t){
            .id = op[i]->id,
            .sid = op[i]->key.sid,
            .sid_generation = op[i]->key.generation,
            .roff = op[i]->amo.roff,
            .operand = op[i]->amo.operand,
            .compare = op[i]->amo.compare,
            .op = op[i]->amo.op,
            .width = op[i]->amo.width,
        };
    }
    const dn_status_t status =
        dn_botf(&peer->hot, DN_CHAN_CORE, DN_CORE_AMO, message, n * sizeof(message[0]), NULL, 0);
    for (size_t i = 0; DN_OK == status && i < n; i++) {
        dn_core_ask(op[i]);
    }
    return status;
}

/** Send as many messages of an operation as may be sent. DN_OK: all its messages are sent. */
static dn_status_t dn_core_send(dn_core_op_t *op)
{
    if (DN_CORE_OP_AMO == op->kind) {
        return dn_core_send_amos(&op, 1);
    }
    dn_status_t status = op->ships ? dn_core_send_program(op) : DN_OK;
    while (DN_OK == status) {
        status = dn_core_send_next(op);
        if (0 == op->remote_at.left) {
            break;
        }
    }
    return status;
}

/** As dn_core_send(). A device may find meanwhile that the peer is lost. Then the caller ends the operation, as on any error. As a peer
 * is lost, the completions of its other operations may start new operations. */
static dn_status_t dn_core_advance(dn_core_op_t *op)
{
    op->advances = 1;
    const dn_status_t status = dn_core_send(op);
    op->advances = 0;
    return status;
}

/** Start an operation whose fields are set. It waits behind other operations to its peer. On an error the operation is freed. */
static dn_status_t dn_core_start(dn_port_t *port, dn_core_op_t *op)
{
    dn_core_t *core = &port->core;
    const dn_status_t status =
        NULL != op->peer->core.operations.items.first ? DN_ERR_AGAIN : dn_core_advance(op);

    if (DN_OK != status && DN_ERR_AGAIN != status) {
        dn_core_op_drop(core, op);
        return status;
    }
    if (DN_ERR_AGAIN == status) {
        dn_core_wait(core, op);
    }
    dn_fetch_add_acq_rel(&op->peer->outstanding, 1);
    return DN_INPROGRESS;
}

/** Set the walks of both sides to their start. A program that is too long to be shipped is sent as blocks. */
static void dn_core_start_walks(dn_core_op_t *op)
{
    const dn_xfer_t *xfer = &op->xfer;

    op->slot = DN_SHIP_SLOTS;
    op->ships = NULL != op->sides.remote_use.prog && dn_ship_fits(op->sides.remote_use.prog);
    dn_sg_start(&op->local_at, xfer->local_sg, (uintptr_t) xfer->local, xfer->len);
    if (op->ships) {
        dn_sg_start(&op->remote_at, NULL, 0, xfer->len);
    } else {
        dn_sg_start(&op->remote_at, xfer->remote_sg, xfer->roff, xfer->len);
    }
}

static dn_status_t dn_core_transfer(dn_peer_t *hot, const dn_xfer_t *xfer, enum dn_core_kind kind)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;
    dn_xfer_t plain;

    xfer = dn_xfer_plain(xfer, &plain);
    if (0 == xfer->len && DN_CORE_OP_PULL == kind) {
        if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
            dn_store_release(xfer->local_status, xfer->local_value);
        }
        return DN_OK;
    }
    dn_port_lock(port);
    dn_core_op_t *op = dn_core_op_new(&port->core, peer, kind);
    dn_status_t status = NULL == op ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status) {
        op->key = *xfer->key;
        op->xfer = *xfer;
        status = dn_xfer_keep(&op->xfer, &op->sides);
    }
    if (DN_OK == status) {
        dn_core_start_walks(op);
        status = dn_core_start(port, op);
    } else if (NULL != op) {
        dn_core_op_drop(&port->core, op);
    }
    dn_port_unlock(port);
    return status;
}

dn_status_t dn_core_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_core_transfer(peer, xfer, DN_CORE_OP_PUSH);
}

dn_status_t dn_core_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_core_transfer(peer, xfer, DN_CORE_OP_PULL);
}

static dn_core_op_t *dn_core_amo_new(dn_core_t *core, dn_peer_base_t *peer, const dn_amo_t *amo)
{
    dn_core_op_t *op = dn_core_op_new(core, peer, DN_CORE_OP_AMO);

    if (NULL != op) {
        op->key = *amo->key;
        op->amo = *amo;
    }
    return op;
}

dn_status_t dn_core_atomic(dn_peer_t *hot, const dn_amo_t *amo)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;

    dn_port_lock(port);
    dn_core_op_t *op = dn_core_amo_new(&port->core, peer, amo);
    const dn_status_t status = NULL == op ? DN_ERR_NOMEM : dn_core_start(port, op);
    dn_port_unlock(port);
    return status;
}

/** Send new operations now, or free them. */
static dn_status_t dn_core_start_amos(dn_core_t *core, dn_core_op_t *const *op, size_t n)
{
    dn_peer_base_t *peer = op[0]->peer;

    for (size_t i = 0; i < n; i++) {
        /* As in dn_core_advance(). */
        op[i]->advances = 1;
    }
    const dn_status_t status =
        NULL != peer->core.operations.items.first ? DN_ERR_AGAIN : dn_core_send_amos(op, n);
    for (size_t i = 0; i < n; i++) {
        op[i]->advances = 0;
        if (DN_OK != status) {
            dn_core_op_drop(core, op[i]);
        }
    }
    if (DN_OK != status) {
        return status;
    }
    dn_fetch_add_acq_rel(&peer->outstanding, (uint32_t) n);
    return DN_INPROGRESS;
}

dn_status_t dn_core_atomics(dn_peer_t *hot, const dn_amo_t *amo, size_t n)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;
    dn_core_op_t *op[DN_ATOMICS_MAX] = {NULL};
    dn_status_t status = DN_ERR_NOMEM;
    size_t made = 0;

    dn_port_lock(port);
    while (made < n && NULL != (op[made] = dn_core_amo_new(&port->core, peer, &amo[made]))) {
        made++;
    }
    if (made == n) {
        status = dn_core_start_amos(&port->core, op, n);
    } else {
        while (0 != made) {
            dn_core_op_drop(&port->core, op[--made]);
        }
    }
    dn_port_unlock(port);
    return status;
}

dn_status_t dn_core_aotf_line(dn_peer_t *hot, uint64_t off, const void *data, size_t len, uint64_t flag)
{
    const dn_core_line_t line = {.off = off, .flag = flag};

    if (!dn_core_line_fits(off, len, ((dn_peer_base_t *) hot)->llcm_len)) {
        return DN_ERR_RANGE;
    }
    return dn_botf(hot, DN_CHAN_CORE, DN_CORE_LINE, &line, sizeof(line), data, len);
}

uint32_t dn_core_lines_max(const dn_peer_t *hot)
{
    const dn_peer_base_t *peer = (const dn_peer_base_t *) hot;
    const size_t most = peer->botf_max / DN_AOTF_LINE_MAX;

    return NULL != peer->ops.aotf_line || 2 > most ? 1 : (uint32_t) most - 1;
}

dn_status_t dn_core_aotf_lines(dn_peer_t *hot, const dn_lines_t *ring, const void *data, size_t len,
                               uint64_t flag)
{
    const dn_core_lines_t lines = {.ring = *ring, .flag = flag};

    if (!dn_core_lines_fit(ring, len, ((dn_peer_base_t *) hot)->llcm_len)) {
        return DN_ERR_RANGE;
    }
    return dn_botf(hot, DN_CHAN_CORE, DN_CORE_LINES, &lines, sizeof(lines), data, len);
}

/** Handle the reply to a PUSH or an atomic operation, which the target has done. */
static int dn_core_on_done(dn_port_t *port, dn_peer_base_t *src, unsigned tag, const dn_core_reply_t *reply)
{
    const enum dn_core_kind kind = DN_CORE_PUSH_DONE == tag ? DN_CORE_OP_PUSH : DN_CORE_OP_AMO;
    dn_core_op_t *op = dn_core_op_find(&port->core, src, reply->id, kind);
    if (NULL == op) {
        return 0;
    }
    if (DN_CORE_OP_AMO == kind && DN_OK == reply->status && NULL != op->amo.result) {
        memcpy(op->amo.result, &reply->off, op->amo.width);
    }
    dn_core_finish(port, op, reply->status <= DN_OK ? (dn_status_t) reply->status : DN_ERR_PROTO);
    return 1;
}

/** Handle the replies to atomic operations of one message. */
static int dn_core_on_amos_done(dn_port_t *port, dn_peer_base_t *src, const uint8_t *bytes, size_t len)
{
    dn_core_reply_t reply;
    int good = 0 != len && 0 == len % sizeof(reply);

    for (; good && 0 != len; bytes += sizeof(reply), len -= sizeof(reply)) {
        memcpy(&reply, bytes, sizeof(reply));
        good = dn_core_on_done(port, src, DN_CORE_AMO_DONE, &reply);
    }
    return good;
}

/** Handle a reply with bytes of a PULL. */
static int dn_core_on_data(dn_port_t *port, dn_peer_base_t *src, const dn_core_reply_t *reply,
                           const uint8_t *data, size_t len)
{
    dn_core_op_t *op = dn_core_op_find(&port->core, src, reply->id, DN_CORE_OP_PULL);
    if (NULL == op || reply->off > op->xfer.len || reply->len > op->xfer.len - reply->off || 0 == reply->len
        || (DN_OK == reply->status && reply->len != len)) {
        return 0;
    }
    dn_peer_move(src);
    if (DN_OK == reply->status) {
        dn_sg_cursor_t to = op->local_at;
        const uint64_t reached = op->xfer.len - to.left;
        if (reply->off < reached) {
            dn_sg_start(&to, op->xfer.local_sg, (uintptr_t) op->xfer.local, op->xfer.len);
            dn_sg_skip(&to, reply->off);
        } else {
            dn_sg_skip(&to, reply->off - reached);
        }
        dn_sg_scatter(&to, data, len);
        op->local_at = to;
    } else {
        op->status = reply->status < DN_OK ? (dn_status_t) reply->status : DN_ERR_PROTO;
    }
    op->settled += reply->len;
    if (op->settled >= op->xfer.len) {
        dn_core_finish(port, op, op->status);
    } else if (op->settled >= op->xfer.len - op->remote_at.left) {
        dn_core_asks_nothing(op);
    }
    return 1;
}

void dn_core_handler(dn_peer_t *hot, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_port_t *port = arg;
    dn_peer_base_t *src = (dn_peer_base_t *) hot;
    const uint8_t *bytes = data;
    dn_core_reply_t reply;
    int good = 0;

    if (DN_CORE_AMO_DONE == tag) {
        good = dn_core_on_amos_done(port, src, bytes, len);
    } else if (DN_CORE_PULL_DATA != tag && DN_CORE_PUSH_DONE != tag) {
        good = dn_core_serve(port, src, tag, bytes, len);
    } else if (sizeof(reply) <= len) {
        memcpy(&reply, bytes, sizeof(reply));
        good = DN_CORE_PULL_DATA == tag
                   ? dn_core_on_data(port, src, &reply, bytes + sizeof(reply), len - sizeof(reply))
                   : dn_core_on_done(port, src, tag, &reply);
    }
    if (!good) {
        dn_count(&port->counters.dropped, 1);
    }
}

/** Send the waiting operations of this process, oldest first. An operation that still waits holds back later ones to its peer only. */
static int dn_core_progress_sending(dn_port_t *port)
{
    dn_core_t *core = &port->core;
    dn_queue_t *queue;
    int n = 0;

    for (uint32_t peers = core->sending.count; 0 != peers && NULL != (queue = dn_round_turn(&core->sending));
         peers--) {
        dn_status_t status = DN_OK;
        while (NULL != queue->items.first && DN_OK == status) {
            dn_core_op_t *op = dn_fifo_first(&queue->items);
            status = dn_core_advance(op);
            if (DN_OK == status) {
                dn_core_wait_no_more(core, op);
                n++;
            } else if (DN_ERR_AGAIN != status) {
                /* Its callback may leave the peer, and the queue go with it. */
                dn_core_finish(port, op, status);
                return n + 1;
            }
        }
    }
    return n;
}

int dn_core_progress(dn_port_t *port)
{
    const int answered = 0 != port->core.answering.count ? dn_core_serve_progress(port) : 0;
    return answered + (0 != port->core.sending.count ? dn_core_progress_sending(port) : 0);
}

void dn_core_leave(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_core_t *core = &port->core;

    dn_core_stop_sending(core, peer);
    for (uint32_t i = 0; i < core->operations.count; i++) {
        dn_core_op_t *op = dn_handle_object(&core->operations, i);
        if (NULL == op || peer != op->peer) {
            continue;
        }
        if (op->advances) {
            dn_core_leave_program(op);
        } else {
            dn_core_finish(port, op, DN_ERR_UNREACH);
        }
    }
    if (NULL != peer->core.ours) {
        /* What it shipped stays: a peer that we have disconnected from may still send. */
        dn_ship_out_reset(peer->core.ours);
    }
}

void dn_core_lost(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_core_leave(port, peer);
    dn_core_serve_lost(&port->core, peer);
}

void dn_core_forget(dn_peer_base_t *peer)
{
    pthread_mutex_t *programs = &peer->iface->port->programs;

    free(peer->core.ours);
    peer->core.ours = NULL;
    pthread_mutex_lock(programs);
    if (NULL != peer->core.its) {
        dn_ship_in_clear(peer->core.its);
        free(peer->core.its);
        peer->core.its = NULL;
    }
    pthread_mutex_unlock(programs);
}
