/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>

#include "dn_xfer.h"

/** If blocks are shorter than this on average, the core processor does the transfer by messages. */
#define DN_OFI_BLOCK_MIN 1024u

/* Segments */

/** Find or make the entry of a SID. @return NULL: no memory. */
static dn_ofi_segment_t *dn_ofi_segment_entry(dn_ofi_t *ofi, uint32_t sid)
{
    if (sid >= ofi->nsegments) {
        const uint32_t room = 2 * sid + 64;
        dn_ofi_segment_t *table = realloc(ofi->segment, room * sizeof(*table));
        if (NULL == table) {
            return NULL;
        }
        memset(table + ofi->nsegments, 0, (room - ofi->nsegments) * sizeof(*table));
        ofi->segment = table;
        ofi->nsegments = room;
    }
    return &ofi->segment[sid];
}

void dn_ofi_segment_register(dn_iface_t *iface, void *base, dn_key_t *key)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    if (0 == key->len) {
        return;
    }
    dn_ofi_lock(ofi);
    dn_ofi_segment_t *segment = dn_ofi_segment_entry(ofi, key->sid);
    if (NULL != segment) {
        *segment = (dn_ofi_segment_t){.base = base, .len = key->len, .generation = key->generation};
        segment->mr = ofi->rma ? dn_ofi_mr(ofi, base, key->len, FI_REMOTE_READ | FI_REMOTE_WRITE) : NULL;
    }
    if (NULL != segment && NULL != segment->mr) {
        const uint64_t start = 0 != (ofi->mr_mode & FI_MR_VIRT_ADDR) ? (uintptr_t) base : 0;
        dn_key_add(key, (dn_key_way_t){.kind = DN_OFI_KEY,
                                       .fd = dn_key_sum(key),
                                       .word = {fi_mr_key(segment->mr), start}});
    }
    dn_ofi_unlock(ofi);
}

static void dn_ofi_segment_close(dn_ofi_segment_t *segment)
{
    if (NULL != segment->mr) {
        fi_close(&segment->mr->fid);
        segment->mr = NULL;
    }
}

void dn_ofi_segment_unregister(dn_iface_t *iface, const dn_key_t *key)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    dn_ofi_lock(ofi);
    if (key->sid < ofi->nsegments) {
        dn_ofi_segment_close(&ofi->segment[key->sid]);
        ofi->segment[key->sid] = (dn_ofi_segment_t){0};
    }
    dn_ofi_unlock(ofi);
}

int dn_ofi_segment_find(const dn_ofi_t *ofi, uint32_t sid, uint32_t generation, uint8_t **base_p,
                        uint64_t *len_p)
{
    const dn_ofi_segment_t *segment = sid < ofi->nsegments ? &ofi->segment[sid] : NULL;

    if (NULL == segment || NULL == segment->base || generation != segment->generation) {
        return 0;
    }
    *base_p = segment->base;
    *len_p = segment->len;
    return 1;
}

void dn_ofi_rma_unregister(dn_ofi_t *ofi)
{
    for (uint32_t sid = 0; sid < ofi->nsegments; sid++) {
        dn_ofi_segment_close(&ofi->segment[sid]);
    }
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        for (dn_ofi_op_t *op = dn_fifo_first(&peer->rma.ops); NULL != op; op = dn_fifo_next(&op->item)) {
            dn_ofi_op_unregister(op);
        }
    }
    for (dn_ofi_op_t *op = dn_fifo_first(&ofi->done); NULL != op; op = dn_fifo_next(&op->item)) {
        dn_ofi_op_unregister(op);
    }
}

/* PUSH and PULL */

/** Is a transfer possible by RMA, and better done by RMA than by the core processor? */
static int dn_ofi_fits(const dn_ofi_t *ofi, const dn_ofi_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    const uint64_t blocks = dn_sg_blocks(xfer->local_sg) + dn_sg_blocks(xfer->remote_sg);

    const dn_key_way_t *way = dn_key_way(xfer->key, DN_OFI_KEY);

    if (peer->self || 0 == xfer->len || (write ? !ofi->delivery : !ofi->rma) || NULL == way
        || way->fd != dn_key_sum(xfer->key)) {
        return 0;
    }
    if (NULL != xfer->remote_sg && NULL != xfer->remote_sg->use) {
        /* The core processor does this by one message that names the target's program. RMA would need many writes. */
        return 0;
    }
    if (NULL != xfer->local_sg && 0 != (ofi->mr_mode & FI_MR_LOCAL)) {
        /* A registration for each block costs more than gathering the blocks. */
        return 0;
    }
    return 2 == blocks || xfer->len / blocks >= DN_OFI_BLOCK_MIN / 2;
}

/** Make an operation. @return NULL: there is no memory, or the local memory cannot be registered. */
static dn_ofi_op_t *dn_ofi_op_new(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    dn_ofi_op_t *op = calloc(1, sizeof(*op));

    if (NULL == op) {
        return NULL;
    }
    op->peer = peer;
    op->xfer = *xfer;
    op->write = write;
    const dn_key_way_t *way = dn_key_way(xfer->key, DN_OFI_KEY);
    op->key = way->word[0];
    op->remote = way->word[1];
    op->whole_key = *xfer->key;
    op->xfer.key = &op->whole_key;
    if (DN_OK != dn_xfer_keep(&op->xfer, &op->sides)) {
        goto err_free;
    }
    if (0 != (ofi->mr_mode & FI_MR_LOCAL)) {
        /* Where a registration is expensive, the provider keeps registrations in a cache of libfabric, behind fi_mr_reg(). */
        op->mr = dn_ofi_mr(ofi, xfer->local, xfer->len, write ? FI_WRITE : FI_READ);
        if (NULL == op->mr) {
            goto err_free;
        }
    }
    dn_sg_start(&op->local_at, op->xfer.local_sg, (uintptr_t) xfer->local, xfer->len);
    dn_sg_start(&op->remote_at, op->xfer.remote_sg, xfer->roff, xfer->len);
    return op;

err_free:
    dn_ofi_op_free(op);
    return NULL;
}

static dn_status_t dn_ofi_start(dn_ofi_t *ofi, dn_ofi_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    if (dn_peer_is_doubted(&peer->base)) {
        return DN_ERR_UNREACH;
    }
    if (dn_ofi_is_fenced(ofi, peer)) {
        return DN_ERR_AGAIN;
    }
    for (const dn_ofi_op_t *older = dn_fifo_first(&peer->rma.ops); NULL != older;
         older = dn_fifo_next(&older->item)) {
        if (0 != older->local_at.left) {
            return DN_ERR_AGAIN;
        }
    }
    dn_ofi_op_t *op = dn_ofi_op_new(ofi, peer, xfer, write);
    if (NULL == op) {
        return DN_ERR_UNSUPPORTED;
    }
    const ssize_t ret = dn_ofi_issue(ofi, op);
    if (0 != ret) {
        dn_ofi_op_free(op);
        return -FI_EAGAIN == ret ? DN_ERR_AGAIN : DN_ERR_UNSUPPORTED;
    }
    dn_fifo_push(&peer->rma.ops, &op->item);
    dn_ofi_op_advance(ofi, op);
    return DN_INPROGRESS;
}

static dn_status_t dn_ofi_transfer(dn_ofi_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    dn_ofi_t *ofi = (dn_ofi_t *) peer->base.iface;
    dn_xfer_t plain;

    xfer = dn_xfer_plain(xfer, &plain);
    if (!dn_ofi_fits(ofi, peer, xfer, write)) {
        return DN_ERR_UNSUPPORTED;
    }
    dn_ofi_lock(ofi);
    dn_status_t status = dn_ofi_start(ofi, peer, xfer, write);
    if (DN_ERR_AGAIN == status) {
        status = dn_ofi_no_room(ofi, peer);
    }
    dn_ofi_unlock(ofi);
    return status;
}

dn_status_t dn_ofi_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_ofi_transfer((dn_ofi_peer_t *) peer, xfer, 1);
}

dn_status_t dn_ofi_pull(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_ofi_transfer((dn_ofi_peer_t *) peer, xfer, 0);
}
