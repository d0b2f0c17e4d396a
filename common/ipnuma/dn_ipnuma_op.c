/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * PUSH, PULL and atomic operations as TLPs. A PUSH is a row of writes, then a read of no bytes. The answer to this read says that all of
 * the writes are done. A PULL is a row of reads. Answers come in the order of the requests.
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <stdlib.h>
#include <string.h>

/** If the target's blocks, of a list or a program, are shorter than this on average, the core processor does the transfer by messages. */
#define DN_IPNUMA_BLOCK_MIN 64u

/* Segments */

/** Enter a segment that was shared at an address. DN_ERR_NOMEM: no memory for the table. */
static dn_status_t dn_ipnuma_segment_enter(dn_ipnuma_t *ipnuma, const dn_key_t *key, uint64_t at)
{
    if (key->sid >= ipnuma->nsegments) {
        const uint32_t n = 2 * key->sid + 1;
        dn_ipnuma_segment_t *segment = reallocarray(ipnuma->segment, n, sizeof(*segment));
        if (NULL == segment) {
            return DN_ERR_NOMEM;
        }
        memset(segment + ipnuma->nsegments, 0, (n - ipnuma->nsegments) * sizeof(*segment));
        ipnuma->segment = segment;
        ipnuma->nsegments = n;
    }
    ipnuma->segment[key->sid] = (dn_ipnuma_segment_t){at, key->len, key->generation};
    return DN_OK;
}

uint8_t *dn_ipnuma_segment_find(const dn_ipnuma_t *ipnuma, uint32_t sid, uint32_t generation, uint32_t peer,
                                uint64_t *len_p)
{
    const dn_ipnuma_segment_t *segment = sid < ipnuma->nsegments ? &ipnuma->segment[sid] : NULL;

    if (NULL == segment || 0 == segment->len || generation != segment->generation) {
        return NULL;
    }
    *len_p = segment->len;
    return dn_ipnuma_regions_find(&ipnuma->regions, segment->at, segment->len, peer);
}

void dn_ipnuma_segment_register(dn_iface_t *iface, void *base, dn_key_t *key)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;
    uint64_t random, at;

    if (0 == key->len) {
        return;
    }
    dn_auth_random(&random, sizeof(random));
    dn_ipnuma_lock(ipnuma);
    dn_status_t status = dn_ipnuma_regions_add(&ipnuma->regions, base, key->len, ipnuma->peers_at,
                                               ipnuma->peers_mask, random, &at);
    if (DN_OK == status) {
        status = dn_ipnuma_segment_enter(ipnuma, key, at);
        if (DN_OK != status) {
            dn_ipnuma_regions_remove(&ipnuma->regions, at);
        }
    }
    dn_ipnuma_unlock(ipnuma);
    if (DN_OK == status) {
        dn_key_add(key, (dn_key_way_t){.kind = DN_KEY_IPNUMA, .fd = dn_key_sum(key), .word = {at, 0}});
    }
}

void dn_ipnuma_segment_unregister(dn_iface_t *iface, const dn_key_t *key)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;

    /* The key may have had no room for a way of this device. */
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_segment_t *segment = key->sid < ipnuma->nsegments ? &ipnuma->segment[key->sid] : NULL;
    if (NULL != segment && 0 != segment->len && key->generation == segment->generation) {
        dn_ipnuma_regions_remove(&ipnuma->regions, segment->at);
        segment->len = 0;
    }
    dn_ipnuma_unlock(ipnuma);
}

/** The address at which a key's segment begins. @return 0: TLPs do not reach the segment. */
static int dn_ipnuma_reaches(const dn_ipnuma_peer_t *peer, const dn_key_t *key, uint64_t *at_p)
{
    const dn_key_way_t *way = dn_key_way(key, DN_KEY_IPNUMA);

    if (NULL == peer->pc || !((const dn_ipnuma_t *) peer->base.iface)->rma || NULL == way
        || way->fd != dn_key_sum(key)) {
        return 0;
    }
    *at_p = way->word[0];
    return 1;
}

/* Ending */

/** End an operation that is answered, or given up. If it has succeeded, store its local status word. dn_ipnuma_signal() signals it. */
static void dn_ipnuma_op_done(dn_ipnuma_t *ipnuma, dn_ipnuma_op_t *op)
{
    if (DN_OK == op->status && DN_IPNUMA_AMO != op->kind && 0 != (op->xfer.flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(op->xfer.local_status, op->xfer.local_value);
    }
    dn_fifo_push(&ipnuma->done, &op->item);
}

static void dn_ipnuma_op_free(dn_ipnuma_op_t *op)
{
    dn_xfer_drop(&op->sides);
    free(op);
}

int dn_ipnuma_signal(dn_ipnuma_t *ipnuma)
{
    int n = 0;

    for (;;) {
        dn_ipnuma_lock(ipnuma);
        dn_ipnuma_op_t *op = dn_fifo_pop(&ipnuma->done);
        dn_comp_t *comp = NULL;
        if (NULL != op) {
            comp = DN_IPNUMA_AMO == op->kind ? op->amo.comp : op->xfer.comp;
            dn_peer_keep_error(&op->peer->base, comp, op->status);
            op->peer->ops--;
            dn_fetch_sub_release(&op->peer->base.outstanding, 1);
        }
        dn_ipnuma_unlock(ipnuma);
        if (NULL == op) {
            return n;
        }
        const dn_status_t status = op->status;
        dn_ipnuma_op_free(op);
        if (NULL != comp) {
            comp->fn(comp, status);
        }
        n++;
    }
}

void dn_ipnuma_end_ops(dn_ipnuma_t *ipnuma, dn_ipnuma_peer_t *peer, int signal)
{
    dn_ipnuma_pc_t *pc = peer->pc;
    dn_ipnuma_op_t *op;

    if (NULL != pc) {
        /* First the operations that wait for answers, then those of which a part is not in the stream yet. An operation may be both. */
        for (uint32_t i = pc->answered; i != pc->requests; i++) {
            dn_ipnuma_request_t *request = &pc->request[i % DN_IPNUMA_TAGS];
            op = request->op;
            request->op = NULL;
            if (NULL != op && 0 == --op->requests && op->sent) {
                op->status = DN_ERR_UNREACH;
                dn_ipnuma_op_done(ipnuma, op);
            }
        }
        while (NULL != (op = dn_fifo_pop(&pc->sending))) {
            op->status = DN_ERR_UNREACH;
            dn_ipnuma_op_done(ipnuma, op);
        }
    }
    if (!signal) {
        dn_fifo_t all = dn_fifo_take(&ipnuma->done);
        while (NULL != (op = dn_fifo_pop(&all))) {
            if (peer == op->peer) {
                dn_ipnuma_op_free(op);
            } else {
                dn_fifo_push(&ipnuma->done, &op->item);
            }
        }
    }
}

int dn_ipnuma_answered(dn_ipnuma_pc_t *pc, const dn_tlp_t *tlp)
{
    if (pc->answered == pc->requests || tlp->tag != (uint8_t) pc->answered || tlp->requester != pc->id) {
        return 0;
    }
    dn_ipnuma_request_t *request = &pc->request[pc->answered % DN_IPNUMA_TAGS];
    dn_ipnuma_op_t *op = request->op;
    if (tlp->len > request->left || (0 == tlp->len && 0 != request->left)) {
        return 0;
    }
    if (NULL != op && DN_TLP_SUCCESS != tlp->status) {
        op->status = DN_TLP_ABORTED == tlp->status ? DN_ERR_PARAM : DN_ERR_RANGE;
    }
    if (NULL != op && 0 != tlp->len) {
        if (DN_IPNUMA_AMO != op->kind && DN_TLP_SUCCESS == tlp->status) {
            dn_sg_scatter(&op->local_at, tlp->data, tlp->len);
            dn_peer_move(&op->peer->base);
        } else if (DN_IPNUMA_AMO != op->kind) {
            dn_sg_skip(&op->local_at, tlp->len);
        } else if (DN_TLP_SUCCESS == tlp->status && NULL != op->amo.result) {
            memcpy(op->amo.result, tlp->data, tlp->len);
        }
    }
    request->left -= tlp->len;
    pc->wanted -= tlp->len;
    if (0 != request->left) {
        return 1;
    }
    pc->answered++;
    if (NULL != op && 0 == --op->requests && op->sent) {
        dn_ipnuma_op_done(pc->ipnuma, op);
    }
    return 1;
}

/* Going out */

/** Is there a tag for a request, and may more data be asked for? */
static int dn_ipnuma_has_tag(const dn_ipnuma_pc_t *pc)
{
    return DN_IPNUMA_TAGS > pc->requests - pc->answered && DN_IPNUMA_AHEAD_MAX > pc->wanted;
}

/** The address of the next byte of a side, which has a byte left. */
static uint64_t dn_ipnuma_next_at(const dn_sg_cursor_t *cursor)
{
    dn_sg_cursor_t probe = *cursor;
    uint64_t at = 0;

    (void) dn_sg_next(&probe, 1, &at);
    return at;
}

/** Append a request of an operation, whose answer has @p left bytes. @return where its data goes; NULL: no memory. */
static uint8_t *dn_ipnuma_ask(dn_ipnuma_pc_t *pc, dn_ipnuma_op_t *op, dn_tlp_t *tlp, uint32_t left)
{
    tlp->requester = pc->id;
    tlp->tag = (uint8_t) pc->requests;
    uint8_t *data = dn_ipnuma_link_append(&pc->link, tlp);
    if (NULL != data) {
        pc->request[pc->requests++ % DN_IPNUMA_TAGS] = (dn_ipnuma_request_t){.op = op, .left = left};
        pc->wanted += left;
        op->requests++;
    }
    return data;
}

/** Append as much of a PUSH as there is room for. @return 1: all of the operation is in the stream. */
static int dn_ipnuma_advance_push(dn_ipnuma_pc_t *pc, dn_ipnuma_op_t *op)
{
    dn_tlp_t flush = {.kind = DN_TLP_READ};

    while (0 != op->remote_at.left) {
        dn_tlp_t tlp = {.kind = DN_TLP_WRITE, .requester = pc->id};
        dn_sg_cursor_t after = op->remote_at;
        if (DN_IPNUMA_AHEAD_MAX < dn_ipnuma_link_behind(&pc->link)) {
            return 0;
        }
        const uint32_t room = dn_ipnuma_link_room(&pc->link, dn_ipnuma_next_at(&after), after.left);
        tlp.len = (uint32_t) dn_sg_next(&after, room, &tlp.address);
        uint8_t *data = dn_ipnuma_link_append(&pc->link, &tlp);
        if (NULL == data) {
            return 0;
        }
        dn_sg_gather(data, &op->local_at, tlp.len);
        dn_peer_move(&op->peer->base);
        op->remote_at = after;
    }
    if (!dn_ipnuma_has_tag(pc)) {
        return 0;
    }
    if (0 != (op->xfer.flags & DN_XFER_STATUS_REMOTE)) {
        const dn_tlp_t word = {.kind = DN_TLP_WRITE,
                               .requester = pc->id,
                               .address = pc->where.llcm_at + op->xfer.remote_status,
                               .len = sizeof(op->xfer.remote_value)};
        uint8_t *data = dn_ipnuma_link_append(&pc->link, &word);
        if (NULL == data) {
            return 0;
        }
        memcpy(data, &op->xfer.remote_value, sizeof(op->xfer.remote_value));
        /* The word is appended once, even if there is no memory for the flush now. */
        op->xfer.flags &= ~(unsigned) DN_XFER_STATUS_REMOTE;
    }
    return NULL != dn_ipnuma_ask(pc, op, &flush, 0);
}

/** As dn_ipnuma_advance_push(), for a PULL. */
static int dn_ipnuma_advance_pull(dn_ipnuma_pc_t *pc, dn_ipnuma_op_t *op)
{
    while (0 != op->remote_at.left) {
        dn_tlp_t tlp = {.kind = DN_TLP_READ};
        dn_sg_cursor_t after = op->remote_at;
        if (!dn_ipnuma_has_tag(pc)) {
            return 0;
        }
        tlp.len = (uint32_t) dn_sg_next(&after, dn_ipnuma_link_read(&pc->link, dn_ipnuma_next_at(&after)),
                                        &tlp.address);
        if (NULL == dn_ipnuma_ask(pc, op, &tlp, tlp.len)) {
            return 0;
        }
        op->remote_at = after;
    }
    return 1;
}

/** As dn_ipnuma_advance_push(), for an atomic operation. */
static int dn_ipnuma_advance_amo(dn_ipnuma_pc_t *pc, dn_ipnuma_op_t *op)
{
    const uint32_t width = op->amo.width;
    const int swaps = DN_AMO_CAS == op->amo.op;
    dn_tlp_t tlp = {.kind = DN_TLP_ATOMIC,
                    .op = (uint8_t) op->amo.op,
                    .address = op->run_at,
                    .len = swaps ? 2 * width : width};

    uint8_t *data = dn_ipnuma_has_tag(pc) ? dn_ipnuma_ask(pc, op, &tlp, width) : NULL;
    if (NULL == data) {
        return 0;
    }
    memcpy(data, swaps ? &op->amo.compare : &op->amo.operand, width);
    if (swaps) {
        memcpy(data + width, &op->amo.operand, width);
    }
    return 1;
}

void dn_ipnuma_advance(dn_ipnuma_pc_t *pc)
{
    dn_ipnuma_op_t *op;

    while (NULL != (op = dn_fifo_first(&pc->sending))) {
        const int all = DN_IPNUMA_PUSH == op->kind   ? dn_ipnuma_advance_push(pc, op)
                        : DN_IPNUMA_PULL == op->kind ? dn_ipnuma_advance_pull(pc, op)
                                                     : dn_ipnuma_advance_amo(pc, op);
        if (!all) {
            return;
        }
        op->sent = 1;
        (void) dn_fifo_pop(&pc->sending);
    }
}

/* Starting */

/** Start an operation. @return DN_INPROGRESS; or why the operation did not start, and was freed. */
static dn_status_t dn_ipnuma_start(dn_ipnuma_peer_t *peer, dn_ipnuma_op_t *op)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) peer->base.iface;

    dn_ipnuma_lock(ipnuma);
    dn_status_t status = dn_ipnuma_enter(peer);
    if (DN_OK == status
        && (NULL != peer->pc->sending.first
            || DN_IPNUMA_AHEAD_MAX < dn_ipnuma_link_behind(&peer->pc->link))) {
        status = dn_ipnuma_no_room(peer);
    }
    if (DN_OK == status) {
        dn_ipnuma_pc_t *pc = peer->pc;
        op->peer = peer;
        peer->ops++;
        dn_fetch_add_acq_rel(&peer->base.outstanding, 1);
        dn_fifo_push(&pc->sending, &op->item);
        dn_ipnuma_advance(pc);
        dn_ipnuma_go(pc);
        status = DN_INPROGRESS;
    }
    dn_ipnuma_unlock(ipnuma);
    if (DN_INPROGRESS != status) {
        dn_ipnuma_op_free(op);
    }
    return status;
}

static dn_status_t dn_ipnuma_transfer(dn_ipnuma_peer_t *peer, const dn_xfer_t *xfer,
                                      enum dn_ipnuma_op_kind kind)
{
    dn_xfer_t plain;
    uint64_t at;

    xfer = dn_xfer_plain(xfer, &plain);
    if (0 == xfer->len || !dn_ipnuma_reaches(peer, xfer->key, &at)) {
        return DN_ERR_UNSUPPORTED;
    }
    const uint64_t blocks = dn_sg_blocks(xfer->remote_sg);
    if (1 < blocks && xfer->len / blocks < DN_IPNUMA_BLOCK_MIN) {
        return DN_ERR_UNSUPPORTED;
    }
    dn_ipnuma_op_t *op = calloc(1, sizeof(*op));
    if (NULL == op) {
        return DN_ERR_AGAIN;
    }
    op->kind = kind;
    op->xfer = *xfer;
    if (DN_OK != dn_xfer_keep(&op->xfer, &op->sides)) {
        free(op);
        return DN_ERR_AGAIN;
    }
    dn_sg_start(&op->local_at, op->xfer.local_sg, (uintptr_t) xfer->local, xfer->len);
    dn_sg_start(&op->remote_at, op->xfer.remote_sg, at + xfer->roff, xfer->len);
    return dn_ipnuma_start(peer, op);
}

dn_status_t dn_ipnuma_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_ipnuma_transfer((dn_ipnuma_peer_t *) peer, xfer, DN_IPNUMA_PUSH);
}

dn_status_t dn_ipnuma_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_ipnuma_transfer((dn_ipnuma_peer_t *) peer, xfer, DN_IPNUMA_PULL);
}

dn_status_t dn_ipnuma_atomic(dn_peer_t *hot, const dn_amo_t *amo)
{
    dn_ipnuma_peer_t *peer = (dn_ipnuma_peer_t *) hot;
    uint64_t at;

    if (!dn_ipnuma_reaches(peer, amo->key, &at)) {
        return DN_ERR_UNSUPPORTED;
    }
    if (0 != (at + amo->roff) % amo->width) {
        /* A region's address has the same offset in a page as its memory. So the target's word is not aligned, either. */
        return DN_ERR_PARAM;
    }
    dn_ipnuma_op_t *op = calloc(1, sizeof(*op));
    if (NULL == op) {
        return DN_ERR_AGAIN;
    }
    op->kind = DN_IPNUMA_AMO;
    op->amo = *amo;
    op->run_at = at + amo->roff;
    return dn_ipnuma_start(peer, op);
}
