/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_xfer.h"

#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"
#include "dn_sg.h"

/** Are both sides the same list of blocks? So are those of a diff. */
static int dn_xfer_is_alike(const dn_xfer_t *xfer)
{
    return xfer->local_sg == xfer->remote_sg && 0 != dn_sg_listed(xfer->local_sg);
}

/** Check the local side of a transfer whose remote side is right. */
static dn_status_t dn_xfer_check_local(const dn_xfer_t *xfer)
{
    /* The same blocks are in the segment, so they are in its bytes behind roff. If no address of as many bytes behind `local` overflows,
     * then none of a block does. */
    if (dn_xfer_is_alike(xfer) && (uintptr_t) xfer->local <= UINT64_MAX - (xfer->key->len - xfer->roff)) {
        return DN_OK;
    }
    return dn_sg_check(xfer->local_sg, (uintptr_t) xfer->local, xfer->len, UINT64_MAX);
}

dn_status_t dn_xfer_check(const dn_xfer_t *xfer, int write, uint64_t llcm_len)
{
    dn_status_t status = DN_OK;

    if (NULL == xfer->remote_sg) {
        /* The common case without a call. */
        if (xfer->roff > xfer->key->len || xfer->len > xfer->key->len - xfer->roff) {
            return DN_ERR_RANGE;
        }
    } else {
        status = dn_sg_check(xfer->remote_sg, xfer->roff, xfer->len, xfer->key->len);
    }
    if (DN_OK == status && NULL != xfer->local_sg) {
        status = dn_xfer_check_local(xfer);
    }
    if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL) && 0 != (uintptr_t) xfer->local_status % sizeof(uint64_t)) {
        return DN_ERR_PARAM;
    }
    if (0 != (xfer->flags & DN_XFER_STATUS_REMOTE)) {
        if (!write || 0 != xfer->remote_status % sizeof(uint64_t)) {
            return DN_ERR_PARAM;
        }
        if (xfer->remote_status >= llcm_len) {
            return DN_ERR_RANGE;
        }
    }
    return status;
}

/** Is the program of a side one block? @p at_p is where the block begins then. @return 0: it is not, or the side has no program. */
static int dn_xfer_is_block(const dn_sg_t *sg, int64_t *at_p)
{
    uint64_t len;
    return NULL != sg && NULL != sg->use && dn_prog_contiguous(sg->use, at_p, &len);
}

const dn_xfer_t *dn_xfer_plain(const dn_xfer_t *xfer, dn_xfer_t *room)
{
    int64_t local_at = 0;
    int64_t remote_at = 0;
    const int local = dn_xfer_is_block(xfer->local_sg, &local_at);
    const int remote = dn_xfer_is_block(xfer->remote_sg, &remote_at);

    if (!local && !remote) {
        return xfer;
    }
    *room = *xfer;
    if (local) {
        room->local = (void *) ((uintptr_t) xfer->local + (uintptr_t) local_at);
        room->local_sg = NULL;
    }
    if (remote) {
        room->roff = xfer->roff + (uint64_t) remote_at;
        room->remote_sg = NULL;
    }
    return room;
}

/** Replace one side by a copy. @return where the blocks of the next side go. */
static dn_block_t *dn_xfer_keep_side(const dn_sg_t **side, dn_sg_t *copy, dn_prog_use_t *use,
                                     dn_block_t *block)
{
    const size_t n = dn_sg_listed(*side);

    if (NULL == *side) {
        return block;
    }
    *copy = **side;
    if (NULL != copy->use) {
        *use = *copy->use;
        copy->use = use;
    } else if (0 != n) {
        memcpy(block, copy->block, n * sizeof(*block));
        copy->block = block;
    }
    *side = copy;
    return block + n;
}

dn_status_t dn_xfer_keep(dn_xfer_t *xfer, dn_xfer_sides_t *sides)
{
    const int alike = dn_xfer_is_alike(xfer);
    const size_t n = dn_sg_listed(xfer->local_sg) + (alike ? 0 : dn_sg_listed(xfer->remote_sg));

    if (0 != n) {
        sides->blocks = reallocarray(NULL, n, sizeof(*sides->blocks));
        if (NULL == sides->blocks) {
            return DN_ERR_NOMEM;
        }
    }
    dn_block_t *next = dn_xfer_keep_side(&xfer->local_sg, &sides->local_sg, &sides->local_use, sides->blocks);
    if (alike) {
        xfer->remote_sg = xfer->local_sg;
    } else {
        dn_xfer_keep_side(&xfer->remote_sg, &sides->remote_sg, &sides->remote_use, next);
    }
    return DN_OK;
}

void dn_xfer_drop(dn_xfer_sides_t *sides)
{
    free(sides->blocks);
    sides->blocks = NULL;
}

dn_status_t dn_amo_check(const dn_amo_t *amo)
{
    if ((4 != amo->width && 8 != amo->width) || 0 != amo->roff % amo->width
        || DN_AMO_OPS <= (unsigned) amo->op) {
        return DN_ERR_PARAM;
    }
    return amo->roff > amo->key->len || amo->width > amo->key->len - amo->roff ? DN_ERR_RANGE : DN_OK;
}

/** The result of an operation on the old value. Numbers are compared as signed numbers of the operation's width. */
static uint64_t dn_amo_apply(const dn_amo_t *amo, uint64_t old)
{
    const int64_t a = 4 == amo->width ? (int32_t) old : (int64_t) old;
    const int64_t b = 4 == amo->width ? (int32_t) amo->operand : (int64_t) amo->operand;

    switch (amo->op) {
    case DN_AMO_MIN:
        return b < a ? amo->operand : old;
    case DN_AMO_MAX:
        return b > a ? amo->operand : old;
    default:
        return amo->operand;
    }
}

static uint32_t dn_amo_run_u32(uint32_t *word, const dn_amo_t *amo)
{
    const uint32_t operand = (uint32_t) amo->operand;
    uint32_t old = (uint32_t) amo->compare;

    switch (amo->op) {
    case DN_AMO_ADD:
        return dn_fetch_add_seq_cst(word, operand);
    case DN_AMO_AND:
        return dn_fetch_and_seq_cst(word, operand);
    case DN_AMO_OR:
        return dn_fetch_or_seq_cst(word, operand);
    case DN_AMO_XOR:
        return dn_fetch_xor_seq_cst(word, operand);
    case DN_AMO_SWAP:
        return dn_swap_seq_cst(word, operand);
    case DN_AMO_CAS:
        dn_cas_seq_cst(word, &old, operand);
        return old;
    default:
        old = dn_load_seq_cst(word);
        while (!dn_cas_weak_seq_cst(word, &old, (uint32_t) dn_amo_apply(amo, old))) {
        }
        return old;
    }
}

static uint64_t dn_amo_run_u64(uint64_t *word, const dn_amo_t *amo)
{
    uint64_t old = amo->compare;

    switch (amo->op) {
    case DN_AMO_ADD:
        return dn_fetch_add_seq_cst(word, amo->operand);
    case DN_AMO_AND:
        return dn_fetch_and_seq_cst(word, amo->operand);
    case DN_AMO_OR:
        return dn_fetch_or_seq_cst(word, amo->operand);
    case DN_AMO_XOR:
        return dn_fetch_xor_seq_cst(word, amo->operand);
    case DN_AMO_SWAP:
        return dn_swap_seq_cst(word, amo->operand);
    case DN_AMO_CAS:
        dn_cas_seq_cst(word, &old, amo->operand);
        return old;
    default:
        old = dn_load_seq_cst(word);
        while (!dn_cas_weak_seq_cst(word, &old, dn_amo_apply(amo, old))) {
        }
        return old;
    }
}

void dn_amo_run(void *word, const dn_amo_t *amo)
{
    const uint64_t old = 4 == amo->width ? dn_amo_run_u32(word, amo) : dn_amo_run_u64(word, amo);
    if (NULL != amo->result) {
        memcpy(amo->result, &old, amo->width);
    }
}
