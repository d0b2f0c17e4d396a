/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_core_int.h"

#include <stdlib.h>
#include <string.h>

#include "dn_xfer.h"

enum dn_core_kind { DN_CORE_FREE, DN_CORE_OP_PUSH, DN_CORE_OP_PULL, DN_CORE_OP_AMO };

/** An operation that this process started. */
struct dn_core_op {
    dn_core_op_t *next; /**< of sending, or of free */
    dn_peer_base_t *peer;
    enum dn_core_kind kind;
    dn_core_id_t id;
    dn_status_t status;
    dn_key_t key;
    dn_xfer_t xfer;           /**< PUSH, PULL */
    dn_xfer_sides_t sides;    /**< of it */
    int ships;                /**< the remote side is a use, and travels as such */
    uint32_t slot;            /**< of its program at the peer; DN_SHIP_SLOTS: not taken yet */
    dn_sg_cursor_t local_at;  /**< PUSH: next byte to send */
    dn_sg_cursor_t remote_at; /**< next byte to send or to ask for; when it ships, in the byte stream */
    uint64_t settled;         /**< PULL: bytes that came or failed */
    dn_amo_t amo;
};

dn_ship_t *dn_core_ship(dn_peer_base_t *peer)
{
    if (NULL == peer->ship) {
        peer->ship = calloc(1, sizeof(*peer->ship));
    }
    return peer->ship;
}

void dn_core_open(dn_core_t *core)
{
    core->answer_tail = &core->answering;
}

void dn_core_close(dn_core_t *core)
{
    for (uint32_t i = 0; i < core->count; i++) {
        dn_xfer_drop(&core->op[i]->sides);
        free(core->op[i]);
    }
    free(core->op);
    dn_core_serve_lost(core, NULL);
    *core = (dn_core_t){.answer_tail = &core->answering};
}

static dn_core_op_t *dn_core_op_new(dn_core_t *core, uint32_t first)
{
    if (NULL == core->free) {
        dn_core_op_t *op = calloc(1, sizeof(*op));
        dn_core_op_t **table = realloc(core->op, (core->count + 1) * sizeof(*table));
        if (NULL != table) {
            core->op = table;
        }
        if (NULL == op || NULL == table) {
            free(op);
            return NULL;
        }
        op->id = (dn_core_id_t){.number = core->count, .generation = first};
        core->op[core->count++] = op;
        core->free = op;
    }
    dn_core_op_t *op = core->free;
    core->free = op->next;
    const dn_core_id_t id = {op->id.number, op->id.generation + 1};
    memset(op, 0, sizeof(*op));
    op->id = id;
    return op;
}

/** The operation of a reply from this peer, or NULL. That generations wrap does not matter: an operation is used again when its
 * answer has come, or when its peer is lost, and then the peer is another one. */
static dn_core_op_t *dn_core_op_find(dn_core_t *core, const dn_peer_base_t *src, dn_core_id_t id,
                                     enum dn_core_kind kind)
{
    if (id.number >= core->count) {
        return NULL;
    }
    dn_core_op_t *op = core->op[id.number];
    return op->kind == kind && op->id.generation == id.generation && op->peer == src ? op : NULL;
}

static void dn_core_unlink(dn_core_t *core, const dn_core_op_t *op)
{
    for (dn_core_op_t **at = &core->sending; NULL != *at; at = &(*at)->next) {
        if (op == *at) {
            *at = op->next;
            return;
        }
    }
}

/** Give an operation and its memory back. */
static void dn_core_op_drop(dn_core_t *core, dn_core_op_t *op)
{
    if (op->ships && DN_SHIP_SLOTS != op->slot) {
        dn_ship_out_leave(&op->peer->ship->out, op->slot);
    }
    dn_xfer_drop(&op->sides);
    op->kind = DN_CORE_FREE;
    op->next = core->free;
    core->free = op;
}

/** End an operation: status words, memory, signal. */
static void dn_core_finish(dn_port_t *port, dn_core_op_t *op, dn_status_t status)
{
    dn_comp_t *comp = DN_CORE_OP_AMO == op->kind ? op->amo.comp : op->xfer.comp;

    dn_core_unlink(&port->core, op);
    if (DN_OK == status && 0 != (op->xfer.flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(op->xfer.local_status, op->xfer.local_value);
    }
    if (DN_OK == status && DN_CORE_OP_AMO != op->kind) {
        dn_count(&port->counters.ring_bytes, op->xfer.len);
    }
    dn_fetch_add_u32(&op->peer->outstanding, (uint32_t) -1);
    dn_core_op_drop(&port->core, op);
    if (NULL != comp) {
        comp->fn(comp, status);
    }
}

/** Blocks for one message: at most @p max bytes. @return bytes. */
static uint64_t dn_core_take_blocks(dn_sg_cursor_t *at, dn_block_t *block, uint32_t *count, uint64_t max)
{
    uint64_t total = 0;
    *count = 0;
    while (DN_CORE_BLOCKS > *count) {
        const uint64_t run = dn_sg_next(at, max - total, &block[*count].at);
        if (0 == run) {
            break;
        }
        block[(*count)++].len = run;
        total += run;
    }
    return total;
}

/** See to it that the peer has the program that an operation names, before its messages. DN_OK: it has. */
static dn_status_t dn_core_send_program(dn_core_op_t *op)
{
    dn_ship_t *ship = dn_core_ship(op->peer);
    dn_ship_piece_t piece;
    const uint8_t *bytes;
    size_t n;

    dn_status_t status = NULL == ship ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status && DN_SHIP_SLOTS == op->slot) {
        status = dn_ship_out_take(&ship->out, op->sides.remote_use.prog, &op->slot);
    }
    while (DN_OK == status) {
        status =
            dn_ship_out_next(&ship->out, op->slot, op->peer->botf_max - sizeof(piece), &piece, &bytes, &n);
        if (DN_INPROGRESS != status) {
            return status;
        }
        status = dn_botf(&op->peer->hot, DN_CHAN_CORE, DN_CORE_PROG, &piece, sizeof(piece), bytes, n);
        if (DN_OK == status && dn_ship_out_sent(&ship->out, &piece, n)) {
            dn_count(&op->peer->iface->port->counters.progs_sent, 1);
        }
    }
    return status;
}

/** Send the next message of a PUSH or PULL. DN_OK: sent. */
static dn_status_t dn_core_send_next(dn_core_op_t *op)
{
    const int push = DN_CORE_OP_PUSH == op->kind;
    dn_block_t block[DN_CORE_BLOCKS];
    dn_window_t window;
    dn_core_request_t request = {.id = op->id,
                                 .sid = op->key.sid,
                                 .sid_generation = op->key.generation,
                                 .flags = op->remote_at.left == op->xfer.len ? DN_CORE_FIRST : 0};
    dn_core_use_t use = {.roff = op->xfer.roff, .len = op->xfer.len};
    dn_sg_cursor_t after = op->remote_at;
    const void *side = op->ships ? (const void *) &use : block;
    size_t side_len = op->ships ? sizeof(use) : sizeof(block);
    const uint64_t room = push ? dn_core_piece(op->peer, op->xfer.len - op->remote_at.left,
                                               op->peer->botf_max - sizeof(request) - side_len)
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
        len = dn_core_take_blocks(&after, block, &request.blocks, room);
        side_len = request.blocks * sizeof(block[0]);
    }
    const size_t size = sizeof(request) + side_len + (push ? len : 0);
    const dn_status_t status = dn_botf_reserve(&op->peer->hot, size, &window);
    if (DN_OK != status) {
        return status;
    }
    if (!push) {
        request.off = op->xfer.len - op->remote_at.left;
    } else if (0 == after.left) {
        request.flags |= DN_CORE_LAST;
        if (0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)) {
            request.flags |= DN_CORE_STATUS;
            request.off = op->xfer.remote_status;
            request.value = op->xfer.remote_value;
        }
    }
    op->remote_at = after;
    memcpy(window.data, &request, sizeof(request));
    memcpy((uint8_t *) window.data + sizeof(request), side, side_len);
    if (push) {
        dn_sg_gather((uint8_t *) window.data + sizeof(request) + side_len, &op->local_at, len);
    }
    dn_botf_kick(&op->peer->hot, &window, DN_CHAN_CORE, push ? DN_CORE_PUSH : DN_CORE_PULL, size);
    return DN_OK;
}

static dn_status_t dn_core_send_amo(dn_core_op_t *op)
{
    const dn_core_amo_t message = {
        .id = op->id,
        .sid = op->key.sid,
        .sid_generation = op->key.generation,
        .roff = op->amo.roff,
        .operand = op->amo.operand,
        .compare = op->amo.compare,
        .op = op->amo.op,
        .width = op->amo.width,
    };
    return dn_botf(&op->peer->hot, DN_CHAN_CORE, DN_CORE_AMO, &message, sizeof(message), NULL, 0);
}

/** Send what credit allows of one operation. DN_OK: all of it is out. */
static dn_status_t dn_core_advance(dn_core_op_t *op)
{
    if (DN_CORE_OP_AMO == op->kind) {
        return dn_core_send_amo(op);
    }
    dn_status_t status = op->ships ? dn_core_send_program(op) : DN_OK;
    if (DN_OK != status) {
        return status;
    }
    do {
        status = dn_core_send_next(op);
    } while (DN_OK == status && 0 != op->remote_at.left);
    return status;
}

/** Start an operation that is filled in; on an error it is gone. Behind others to its peer it waits. */
static dn_status_t dn_core_start(dn_port_t *port, dn_core_op_t *op)
{
    dn_core_op_t **at = &port->core.sending;
    dn_status_t status = DN_OK;

    for (; NULL != *at; at = &(*at)->next) {
        status = (*at)->peer == op->peer ? DN_ERR_AGAIN : status;
    }
    if (DN_OK == status) {
        status = dn_core_advance(op);
    }
    if (DN_OK != status && DN_ERR_AGAIN != status) {
        dn_core_op_drop(&port->core, op);
        return status;
    }
    if (DN_ERR_AGAIN == status) {
        op->next = NULL;
        *at = op;
    }
    dn_fetch_add_u32(&op->peer->outstanding, 1);
    return DN_INPROGRESS;
}

/** Walk both sides from their start. Of a program that is too long to be shipped, the blocks are sent. */
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

    dn_status_t status = dn_xfer_check(xfer, DN_CORE_OP_PUSH == kind, peer->llcm_len);
    if (DN_OK != status) {
        return status;
    }
    xfer = dn_xfer_plain(xfer, &plain);
    if (0 == xfer->len && DN_CORE_OP_PULL == kind) {
        if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
            dn_store_release(xfer->local_status, xfer->local_value);
        }
        return DN_OK;
    }
    dn_port_lock(port);
    dn_core_op_t *op = dn_core_op_new(&port->core, port->config.first);
    status = NULL == op ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status) {
        op->peer = peer;
        op->kind = kind;
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

dn_status_t dn_core_atomic(dn_peer_t *hot, const dn_amo_t *amo)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;

    dn_status_t status = dn_amo_check(amo);
    if (DN_OK != status) {
        return status;
    }
    dn_port_lock(port);
    dn_core_op_t *op = dn_core_op_new(&port->core, port->config.first);
    if (NULL == op) {
        status = DN_ERR_NOMEM;
    } else {
        op->peer = peer;
        op->kind = DN_CORE_OP_AMO;
        op->key = *amo->key;
        op->amo = *amo;
        status = dn_core_start(port, op);
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

/** A PUSH is stored at the target, or an atomic operation done there. */
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

/** Bytes of a PULL have come. */
static int dn_core_on_data(dn_port_t *port, dn_peer_base_t *src, const dn_core_reply_t *reply,
                           const uint8_t *data, size_t len)
{
    dn_core_op_t *op = dn_core_op_find(&port->core, src, reply->id, DN_CORE_OP_PULL);
    if (NULL == op || reply->off > op->xfer.len || reply->len > op->xfer.len - reply->off || 0 == reply->len
        || (DN_OK == reply->status && reply->len != len)) {
        return 0;
    }
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

    if (DN_CORE_PULL_DATA != tag && DN_CORE_PUSH_DONE != tag && DN_CORE_AMO_DONE != tag) {
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

/** Operations of this process, oldest first; one that waits holds back later ones to its peer only. */
static int dn_core_progress_sending(dn_port_t *port)
{
    int n = 0;
    for (dn_core_op_t *op = port->core.sending, *next; NULL != op; op = next) {
        next = op->next;
        int behind = 0;
        for (const dn_core_op_t *older = port->core.sending; older != op; older = older->next) {
            behind |= older->peer == op->peer;
        }
        if (behind) {
            continue;
        }
        const dn_status_t status = dn_core_advance(op);
        if (DN_OK == status) {
            dn_core_unlink(&port->core, op);
            n++;
        } else if (DN_ERR_AGAIN != status) {
            dn_core_finish(port, op, status);
            return n + 1;
        }
    }
    return n;
}

int dn_core_progress(dn_port_t *port)
{
    const int answered = NULL != port->core.answering ? dn_core_serve_progress(port) : 0;
    return answered + (NULL != port->core.sending ? dn_core_progress_sending(port) : 0);
}

void dn_core_lost(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_core_t *core = &port->core;

    for (uint32_t i = 0; i < core->count; i++) {
        if (DN_CORE_FREE != core->op[i]->kind && peer == core->op[i]->peer) {
            dn_core_finish(port, core->op[i], DN_ERR_UNREACH);
        }
    }
    dn_core_serve_lost(core, peer);
    if (NULL != peer->ship) {
        /* What it shipped stays: a peer that we have disconnected from may still send. */
        dn_ship_out_reset(&peer->ship->out);
    }
}

void dn_core_forget(dn_peer_base_t *peer)
{
    if (NULL != peer->ship) {
        dn_ship_in_clear(&peer->ship->in);
        free(peer->ship);
        peer->ship = NULL;
    }
}
