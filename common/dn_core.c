/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_port.h"
#include "dn_sg.h"
#include "dn_xfer.h"

/** Blocks described in one message. */
#define DN_CORE_BLOCKS 32
/** Messages sent for one answer before the next has its turn. */
#define DN_CORE_TURN 16

#define DN_CORE_LINE_BYTES (DN_AOTF_LINE_MAX + sizeof(uint64_t))

/** Tags on DN_CHAN_CORE. */
enum dn_core_tag {
    DN_CORE_PUSH = 1,      /**< dn_core_request_t, blocks, their data */
    DN_CORE_PULL = 2,      /**< dn_core_request_t, blocks */
    DN_CORE_AMO = 3,       /**< dn_core_amo_t */
    DN_CORE_PUSH_DONE = 4, /**< dn_core_reply_t */
    DN_CORE_PULL_DATA = 5, /**< dn_core_reply_t, data */
    DN_CORE_AMO_DONE = 6,  /**< dn_core_reply_t, off is the old value */
    DN_CORE_LINE = 7,      /**< dn_core_line_t, data */
};

/** An operation of the initiator, as replies name it. */
typedef struct dn_core_id {
    uint32_t number;
    uint32_t generation;
} dn_core_id_t;

enum {
    DN_CORE_LAST = 1 << 0,   /**< of a PUSH: reply */
    DN_CORE_STATUS = 1 << 1, /**< store the status word before the reply */
};

typedef struct dn_core_request {
    dn_core_id_t id;
    uint32_t sid;
    uint32_t sid_generation;
    uint32_t blocks; /**< dn_block_t that follow, places from the segment's start */
    uint32_t flags;
    uint64_t off; /**< PULL: place of these blocks in the byte stream; PUSH: the status word's offset */
    uint64_t value;
} dn_core_request_t;

typedef struct dn_core_amo {
    dn_core_id_t id;
    uint32_t sid;
    uint32_t sid_generation;
    uint64_t roff;
    uint64_t operand;
    uint64_t compare;
    uint32_t op;
    uint32_t width;
} dn_core_amo_t;

typedef struct dn_core_reply {
    dn_core_id_t id;
    int32_t status;
    uint32_t pad;
    uint64_t off; /**< PULL: place of the data in the byte stream */
    uint64_t len; /**< PULL: bytes that this reply settles; with an error none follow */
} dn_core_reply_t;

/** A line for the LLCM; its data follow. */
typedef struct dn_core_line {
    uint64_t off;
    uint64_t flag;
} dn_core_line_t;

_Static_assert(sizeof(dn_core_amo_t) <= 56, "an atomic operation is one line");

enum dn_core_kind { DN_CORE_FREE, DN_CORE_OP_PUSH, DN_CORE_OP_PULL, DN_CORE_OP_AMO };

/** An operation that this process started. */
struct dn_core_op {
    dn_core_op_t *next; /**< of sending, or of free */
    dn_peer_base_t *peer;
    enum dn_core_kind kind;
    dn_core_id_t id;
    dn_status_t status;
    dn_key_t key;
    dn_xfer_t xfer; /**< PUSH, PULL; its arrays are copies, in blocks */
    dn_sg_t local_sg;
    dn_sg_t remote_sg;
    dn_block_t *blocks;
    dn_sg_cursor_t local_at;  /**< PUSH: next byte to send */
    dn_sg_cursor_t remote_at; /**< next byte to send or to ask for */
    uint64_t settled;         /**< PULL: bytes that came or failed */
    dn_amo_t amo;
};

/** What a peer asked: bytes to send (PULL), or a ready reply. */
struct dn_core_answer {
    dn_core_answer_t *next;
    dn_peer_base_t *peer;
    unsigned tag;
    dn_core_reply_t reply;
    uint32_t sid;
    uint32_t sid_generation;
    dn_sg_cursor_t at; /**< PULL: addresses of this process; left 0 with a ready reply */
    dn_sg_t sg;
    dn_block_t block[]; /**< of sg */
};

void dn_core_open(dn_core_t *core)
{
    core->answer_tail = &core->answering;
}

void dn_core_close(dn_core_t *core)
{
    for (uint32_t i = 0; i < core->count; i++) {
        free(core->op[i]->blocks);
        free(core->op[i]);
    }
    free(core->op);
    while (NULL != core->answering) {
        dn_core_answer_t *answer = core->answering;
        core->answering = answer->next;
        free(answer);
    }
    *core = (dn_core_t){.answer_tail = &core->answering};
}

/** Is this a line of an LLCM of @p llcm_len bytes? */
static int dn_core_line_fits(uint64_t off, size_t len, uint64_t llcm_len)
{
    return DN_AOTF_LINE_MAX >= len && 0 == off % DN_CORE_LINE_BYTES && off < llcm_len
           && DN_CORE_LINE_BYTES <= llcm_len - off;
}

/** @name The initiator's side */
/** @{ */
static dn_core_op_t *dn_core_op_new(dn_core_t *core)
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
        op->id.number = core->count;
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

/** The operation of a reply from this peer, or NULL. */
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
    free(op->blocks);
    op->blocks = NULL;
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
    op->peer->outstanding--;
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

/** Send the next message of a PUSH or PULL. DN_OK: sent. */
static dn_status_t dn_core_send_next(dn_core_op_t *op)
{
    const int push = DN_CORE_OP_PUSH == op->kind;
    dn_block_t block[DN_CORE_BLOCKS];
    dn_window_t window;
    dn_core_request_t request = {.id = op->id, .sid = op->key.sid, .sid_generation = op->key.generation};
    dn_sg_cursor_t after = op->remote_at;
    const uint64_t room = op->peer->botf_max - sizeof(request) - sizeof(block);

    const uint64_t len = dn_core_take_blocks(&after, block, &request.blocks, push ? room : UINT64_MAX);
    const size_t list = request.blocks * sizeof(block[0]);
    const size_t size = sizeof(request) + list + (push ? len : 0);
    const dn_status_t status = dn_botf_reserve(&op->peer->hot, size, &window);
    if (DN_OK != status) {
        return status;
    }
    if (!push) {
        request.off = op->xfer.len - op->remote_at.left;
    } else if (0 == after.left) {
        request.flags = DN_CORE_LAST;
        if (0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)) {
            request.flags |= DN_CORE_STATUS;
            request.off = op->xfer.remote_status;
            request.value = op->xfer.remote_value;
        }
    }
    op->remote_at = after;
    memcpy(window.data, &request, sizeof(request));
    memcpy((uint8_t *) window.data + sizeof(request), block, list);
    if (push) {
        dn_sg_gather((uint8_t *) window.data + sizeof(request) + list, &op->local_at, len);
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
    dn_status_t status;
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
    op->peer->outstanding++;
    return DN_INPROGRESS;
}

/** Copy the block lists of a transfer: the caller's may go. */
static dn_status_t dn_core_copy_blocks(dn_core_op_t *op, const dn_xfer_t *xfer)
{
    const size_t nlocal = NULL != xfer->local_sg ? xfer->local_sg->count : 0;
    const size_t nremote = NULL != xfer->remote_sg ? xfer->remote_sg->count : 0;

    if (0 == nlocal + nremote) {
        return DN_OK;
    }
    op->blocks = calloc(nlocal + nremote, sizeof(*op->blocks));
    if (NULL == op->blocks) {
        return DN_ERR_NOMEM;
    }
    if (NULL != xfer->local_sg) {
        memcpy(op->blocks, xfer->local_sg->block, nlocal * sizeof(*op->blocks));
        op->local_sg = (dn_sg_t){op->blocks, nlocal};
        op->xfer.local_sg = &op->local_sg;
    }
    if (NULL != xfer->remote_sg) {
        memcpy(op->blocks + nlocal, xfer->remote_sg->block, nremote * sizeof(*op->blocks));
        op->remote_sg = (dn_sg_t){op->blocks + nlocal, nremote};
        op->xfer.remote_sg = &op->remote_sg;
    }
    return DN_OK;
}

static dn_status_t dn_core_transfer(dn_peer_t *hot, const dn_xfer_t *xfer, enum dn_core_kind kind)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;

    dn_status_t status = dn_xfer_check(xfer, DN_CORE_OP_PUSH == kind, peer->llcm_len);
    if (DN_OK != status) {
        return status;
    }
    if (0 == xfer->len && DN_CORE_OP_PULL == kind) {
        if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
            dn_store_release(xfer->local_status, xfer->local_value);
        }
        return DN_OK;
    }
    dn_port_lock(port);
    dn_core_op_t *op = dn_core_op_new(&port->core);
    status = NULL == op ? DN_ERR_NOMEM : DN_OK;
    if (DN_OK == status) {
        op->peer = peer;
        op->kind = kind;
        op->key = *xfer->key;
        op->xfer = *xfer;
        status = dn_core_copy_blocks(op, xfer);
    }
    if (DN_OK == status) {
        dn_sg_start(&op->local_at, op->xfer.local_sg, (uintptr_t) xfer->local, xfer->len);
        dn_sg_start(&op->remote_at, op->xfer.remote_sg, xfer->roff, xfer->len);
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
    dn_core_op_t *op = dn_core_op_new(&port->core);
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
/** @} */

/** @name The target's side */
/** @{ */
static void dn_core_enqueue(dn_core_t *core, dn_core_answer_t *answer)
{
    answer->next = NULL;
    *core->answer_tail = answer;
    core->answer_tail = &answer->next;
}

/** Reply now, or when there is credit. */
static void dn_core_reply(dn_port_t *port, dn_peer_base_t *peer, unsigned tag, const dn_core_reply_t *reply)
{
    /* Not ahead of those that wait. */
    if (NULL == port->core.answering
        && DN_ERR_AGAIN != dn_botf(&peer->hot, DN_CHAN_CORE, tag, reply, sizeof(*reply), NULL, 0)) {
        return;
    }
    dn_core_answer_t *answer = calloc(1, sizeof(*answer));
    if (NULL == answer) {
        dn_log_error("no memory to answer PID %" PRIu32 "; it is cut off", peer->pid);
        dn_port_peer_lost(port, peer);
        return;
    }
    answer->peer = peer;
    answer->tag = tag;
    answer->reply = *reply;
    dn_core_enqueue(&port->core, answer);
}

/** Copy the blocks out of the message and check them. @return their total, in *status_p what is wrong. */
static uint64_t dn_core_read_blocks(dn_port_t *port, const dn_core_request_t *request, const uint8_t *bytes,
                                    size_t len, dn_block_t *block, dn_segment_t **segment_p,
                                    dn_status_t *status_p)
{
    uint64_t total = 0;

    *status_p = DN_ERR_PROTO;
    if (DN_CORE_BLOCKS < request->blocks || len < request->blocks * sizeof(*block)) {
        return 0;
    }
    memcpy(block, bytes, request->blocks * sizeof(*block));
    for (uint32_t i = 0; i < request->blocks; i++) {
        if (__builtin_add_overflow(total, block[i].len, &total)) {
            return 0;
        }
    }
    const dn_sg_t sg = {block, request->blocks};
    *segment_p = dn_segment_find(port, request->sid, request->sid_generation);
    *status_p = NULL == *segment_p ? DN_ERR_RANGE : dn_sg_check(&sg, 0, total, (*segment_p)->key.len);
    return total;
}

static int dn_core_on_push(dn_port_t *port, dn_peer_base_t *src, const dn_core_request_t *request,
                           const uint8_t *bytes, size_t len)
{
    dn_block_t block[DN_CORE_BLOCKS];
    dn_segment_t *segment;
    dn_status_t status;

    const uint64_t total = dn_core_read_blocks(port, request, bytes, len, block, &segment, &status);
    if (DN_ERR_PROTO == status || len - request->blocks * sizeof(block[0]) != total) {
        return 0;
    }
    if (DN_OK == status) {
        const dn_sg_t sg = {block, request->blocks};
        dn_sg_cursor_t to;
        dn_sg_start(&to, &sg, (uintptr_t) segment->base, total);
        dn_sg_scatter(&to, bytes + request->blocks * sizeof(block[0]), total);
        if (0 != (request->flags & DN_CORE_STATUS)) {
            if (0 != request->off % sizeof(uint64_t) || request->off >= port->config.llcm_bytes) {
                status = DN_ERR_RANGE;
            } else {
                dn_store_release((uint64_t *) (port->llcm.base + request->off), request->value);
            }
        }
    }
    if (DN_OK != status || 0 != (request->flags & DN_CORE_LAST)) {
        const dn_core_reply_t reply = {.id = request->id, .status = status};
        dn_core_reply(port, src, DN_CORE_PUSH_DONE, &reply);
    }
    return 1;
}

static int dn_core_on_pull(dn_port_t *port, dn_peer_base_t *src, const dn_core_request_t *request,
                           const uint8_t *bytes, size_t len)
{
    dn_block_t block[DN_CORE_BLOCKS];
    dn_segment_t *segment;
    dn_status_t status;

    const uint64_t total = dn_core_read_blocks(port, request, bytes, len, block, &segment, &status);
    if (DN_ERR_PROTO == status || 0 == total) {
        return 0;
    }
    const dn_core_reply_t reply = {.id = request->id, .status = status, .off = request->off, .len = total};
    if (DN_OK != status) {
        dn_core_reply(port, src, DN_CORE_PULL_DATA, &reply);
        return 1;
    }
    dn_core_answer_t *answer = calloc(1, sizeof(*answer) + request->blocks * sizeof(block[0]));
    if (NULL == answer) {
        dn_log_error("no memory to answer PID %" PRIu32 "; it is cut off", src->pid);
        dn_port_peer_lost(port, src);
        return 1;
    }
    answer->peer = src;
    answer->tag = DN_CORE_PULL_DATA;
    answer->reply = reply;
    answer->sid = request->sid;
    answer->sid_generation = request->sid_generation;
    memcpy(answer->block, block, request->blocks * sizeof(block[0]));
    answer->sg = (dn_sg_t){answer->block, request->blocks};
    dn_sg_start(&answer->at, &answer->sg, (uintptr_t) segment->base, total);
    dn_core_enqueue(&port->core, answer);
    return 1;
}

static int dn_core_on_amo(dn_port_t *port, dn_peer_base_t *src, const dn_core_amo_t *message)
{
    uint64_t old = 0;
    dn_key_t key = {0};
    const dn_amo_t amo = {
        .op = (dn_amo_op_t) message->op,
        .width = message->width,
        .operand = message->operand,
        .compare = message->compare,
        .result = &old,
        .key = &key,
        .roff = message->roff,
    };
    const dn_segment_t *segment = dn_segment_find(port, message->sid, message->sid_generation);
    dn_status_t status = DN_ERR_RANGE;
    if (NULL != segment) {
        key = segment->key;
        status = dn_amo_check(&amo);
    }
    if (DN_OK == status && 0 != ((uintptr_t) segment->base + message->roff) % message->width) {
        status = DN_ERR_PARAM;
    }
    if (DN_OK == status) {
        dn_amo_run((uint8_t *) segment->base + message->roff, &amo);
    }
    const dn_core_reply_t reply = {.id = message->id, .status = status, .off = old};
    dn_core_reply(port, src, DN_CORE_AMO_DONE, &reply);
    return 1;
}

static int dn_core_on_line(dn_port_t *port, const uint8_t *bytes, size_t len)
{
    dn_core_line_t head;

    memcpy(&head, bytes, sizeof(head));
    len -= sizeof(head);
    if (!dn_core_line_fits(head.off, len, port->config.llcm_bytes)) {
        return 0;
    }
    uint8_t *line = port->llcm.base + head.off;
    memcpy(line, bytes + sizeof(head), len);
    dn_store_release((uint64_t *) (line + DN_AOTF_LINE_MAX), head.flag);
    return 1;
}

/** Send up to a turn's messages of one answer. DN_OK: it is complete. */
static dn_status_t dn_core_answer(dn_port_t *port, dn_core_answer_t *answer)
{
    dn_peer_t *peer = &answer->peer->hot;
    dn_window_t window;

    if (0 == answer->at.left) {
        return dn_botf(peer, DN_CHAN_CORE, answer->tag, &answer->reply, sizeof(answer->reply), NULL, 0);
    }
    if (NULL == dn_segment_find(port, answer->sid, answer->sid_generation)) {
        /* Freed since it was asked for. */
        answer->reply.status = DN_ERR_RANGE;
        answer->reply.len = answer->at.left;
        answer->at.left = 0;
        return DN_ERR_AGAIN;
    }
    const uint64_t most = answer->peer->botf_max - sizeof(answer->reply);
    for (int turn = 0; 0 != answer->at.left; turn++) {
        if (DN_CORE_TURN == turn) {
            return DN_ERR_AGAIN;
        }
        answer->reply.len = answer->at.left < most ? answer->at.left : most;
        const size_t size = sizeof(answer->reply) + answer->reply.len;
        const dn_status_t status = dn_botf_reserve(peer, size, &window);
        if (DN_OK != status) {
            return status;
        }
        memcpy(window.data, &answer->reply, sizeof(answer->reply));
        dn_sg_gather((uint8_t *) window.data + sizeof(answer->reply), &answer->at, answer->reply.len);
        dn_botf_kick(peer, &window, DN_CHAN_CORE, answer->tag, size);
        answer->reply.off += answer->reply.len;
    }
    return DN_OK;
}
/** @} */

void dn_core_handler(dn_peer_t *hot, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_port_t *port = arg;
    dn_peer_base_t *src = (dn_peer_base_t *) hot;
    const uint8_t *bytes = data;
    int good = 0;

    if ((DN_CORE_PUSH == tag || DN_CORE_PULL == tag) && sizeof(dn_core_request_t) <= len) {
        dn_core_request_t request;
        memcpy(&request, bytes, sizeof(request));
        bytes += sizeof(request);
        len -= sizeof(request);
        good = DN_CORE_PUSH == tag ? dn_core_on_push(port, src, &request, bytes, len)
                                   : dn_core_on_pull(port, src, &request, bytes, len);
    } else if (DN_CORE_AMO == tag && sizeof(dn_core_amo_t) == len) {
        dn_core_amo_t message;
        memcpy(&message, bytes, sizeof(message));
        good = dn_core_on_amo(port, src, &message);
    } else if (DN_CORE_LINE == tag && sizeof(dn_core_line_t) <= len) {
        good = dn_core_on_line(port, bytes, len);
    } else if (sizeof(dn_core_reply_t) <= len) {
        dn_core_reply_t reply;
        memcpy(&reply, bytes, sizeof(reply));
        if (DN_CORE_PULL_DATA == tag) {
            good = dn_core_on_data(port, src, &reply, bytes + sizeof(reply), len - sizeof(reply));
        } else if (DN_CORE_PUSH_DONE == tag || DN_CORE_AMO_DONE == tag) {
            good = dn_core_on_done(port, src, tag, &reply);
        }
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

static int dn_core_progress_answering(dn_port_t *port)
{
    dn_core_t *core = &port->core;
    dn_core_answer_t *stay = NULL;
    dn_core_answer_t **stay_tail = &stay;
    int n = 0;

    /* Taken off the list meanwhile: a message that is sent here cannot find itself in it. */
    dn_core_answer_t *answer = core->answering;
    core->answering = NULL;
    core->answer_tail = &core->answering;
    while (NULL != answer) {
        dn_core_answer_t *next = answer->next;
        if (DN_ERR_AGAIN == dn_core_answer(port, answer)) {
            answer->next = NULL;
            *stay_tail = answer;
            stay_tail = &answer->next;
        } else {
            free(answer);
            n++;
        }
        answer = next;
    }
    *stay_tail = core->answering;
    if (NULL == core->answering) {
        core->answer_tail = stay_tail;
    }
    core->answering = stay;
    if (NULL == core->answering) {
        core->answer_tail = &core->answering;
    }
    return n;
}

int dn_core_progress(dn_port_t *port)
{
    const int answered = NULL != port->core.answering ? dn_core_progress_answering(port) : 0;
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
    for (dn_core_answer_t **at = &core->answering; NULL != *at;) {
        dn_core_answer_t *answer = *at;
        if (peer == answer->peer) {
            *at = answer->next;
            free(answer);
        } else {
            at = &answer->next;
        }
    }
    core->answer_tail = &core->answering;
    while (NULL != *core->answer_tail) {
        core->answer_tail = &(*core->answer_tail)->next;
    }
}
