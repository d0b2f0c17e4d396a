/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog_int.h"

#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"

static uint64_t dn_prog_ids;

/** Sums over some blocks. size 0: there are no blocks, and the other members have no meaning. */
typedef struct dn_prog_sum {
    uint64_t size;
    uint64_t blocks;
    int64_t low;
    int64_t high;
} dn_prog_sum_t;

/** Add the sums of more blocks. No block is empty, so if the bytes fit into 64 bits, the number of blocks does, too. */
static dn_status_t dn_prog_sum_add(dn_prog_sum_t *sum, const dn_prog_sum_t *part)
{
    if (0 == sum->size) {
        *sum = *part;
        return DN_OK;
    }
    if (__builtin_add_overflow(sum->size, part->size, &sum->size)) {
        return DN_ERR_RANGE;
    }
    sum->blocks += part->blocks;
    sum->low = part->low < sum->low ? part->low : sum->low;
    sum->high = part->high > sum->high ? part->high : sum->high;
    return DN_OK;
}

/** The sums of the same blocks, repeated count times at a distance. */
static dn_status_t dn_prog_sum_repeat(dn_prog_sum_t *sum, uint64_t count, int64_t stride)
{
    if (0 == sum->size || 0 == count) {
        memset(sum, 0, sizeof(*sum));
        return DN_OK;
    }
    const __int128 reach = (__int128) (count - 1) * stride;
    int64_t *moved = 0 > reach ? &sum->low : &sum->high;
    if (__builtin_mul_overflow(sum->size, count, &sum->size)
        || __builtin_add_overflow(*moved, reach, moved)) {
        return DN_ERR_RANGE;
    }
    sum->blocks *= count;
    return DN_OK;
}

static dn_status_t dn_prog_sum_block(dn_prog_sum_t *sum, int64_t at, uint64_t len)
{
    *sum = (dn_prog_sum_t){len, 1, at, 0};
    return __builtin_add_overflow(at, len, &sum->high) ? DN_ERR_RANGE : DN_OK;
}

/** The sums of all blocks of a RUN or LIST. */
static dn_status_t dn_prog_sum_leaf(dn_prog_sum_t *sum, const dn_prog_op_t *op, const int64_t *place)
{
    dn_status_t status;

    if (DN_PROG_RUN == op->kind) {
        status = dn_prog_sum_block(sum, op->at, op->len);
        return DN_OK == status ? dn_prog_sum_repeat(sum, op->count, op->stride) : status;
    }
    memset(sum, 0, sizeof(*sum));
    for (uint64_t i = 0; i < op->count; i++) {
        dn_prog_sum_t block;
        status = dn_prog_sum_block(&block, place[i], op->len);
        if (DN_OK == status) {
            status = dn_prog_sum_add(sum, &block);
        }
        if (DN_OK != status) {
            return status;
        }
    }
    return DN_OK;
}

/**
 * Link the body of a loop into the tree and add up one turn of it.
 * @retval DN_ERR_PARAM  an inner loop has no ops, or ops beyond the end of this loop.
 */
static dn_status_t dn_prog_measure(dn_prog_t *prog, uint32_t loop, uint32_t depth, dn_prog_sum_t *turn)
{
    const uint32_t end = loop + 1 + prog->node[loop].op.inside;

    memset(turn, 0, sizeof(*turn));
    prog->info.depth = depth > prog->info.depth ? depth : prog->info.depth;
    for (uint32_t i = loop + 1; i < end; i += 1 + prog->node[i].op.inside) {
        dn_prog_node_t *node = &prog->node[i];
        dn_prog_sum_t part;
        dn_status_t status;

        node->parent = loop;
        node->start = prog->node[loop].start + turn->size;
        if (DN_PROG_LOOP != node->op.kind) {
            status = dn_prog_sum_leaf(&part, &node->op, prog->place + node->first);
        } else if (0 == node->op.inside || node->op.inside >= end - i) {
            return DN_ERR_PARAM;
        } else if (DN_PROG_DEPTH_MAX == depth) {
            return DN_ERR_UNSUPPORTED;
        } else {
            status = dn_prog_measure(prog, i, depth + 1, &part);
            node->op.len = part.size;
            if (DN_OK == status) {
                status = dn_prog_sum_repeat(&part, node->op.count, node->op.stride);
            }
        }
        if (DN_OK == status) {
            status = dn_prog_sum_add(turn, &part);
        }
        if (DN_OK != status) {
            return status;
        }
    }
    return DN_OK;
}

dn_prog_t *dn_prog_alloc(uint32_t ops, uint32_t places)
{
    const size_t head = sizeof(dn_prog_t) + ((size_t) ops + 1) * sizeof(dn_prog_node_t);
    dn_prog_t *prog = calloc(1, head + places * sizeof(int64_t));

    if (NULL == prog) {
        return NULL;
    }
    prog->info.ops = ops;
    prog->places = places;
    prog->place = (int64_t *) ((char *) prog + head);
    prog->node[0].op = (dn_prog_op_t){.kind = DN_PROG_LOOP, .inside = ops, .count = 1};
    return prog;
}

dn_status_t dn_prog_finish(dn_prog_t *prog)
{
    dn_prog_sum_t sum;
    const dn_status_t status = dn_prog_measure(prog, 0, 0, &sum);

    if (DN_OK == status) {
        prog->node[0].op.len = sum.size;
        prog->info.size = sum.size;
        prog->info.blocks = sum.blocks;
        prog->info.low = sum.low;
        prog->info.high = sum.high;
        prog->info.id = dn_fetch_add_acq_rel(&dn_prog_ids, 1) + 1;
    }
    return status;
}

void dn_prog_free(dn_prog_t *prog)
{
    free(prog);
}

const dn_prog_info_t *dn_prog_info(const dn_prog_t *prog)
{
    return &prog->info;
}

dn_status_t dn_prog_span(const dn_prog_use_t *use, dn_prog_span_t *span_p)
{
    const dn_prog_info_t *info = &use->prog->info;
    dn_prog_sum_t sum = {info->size, info->blocks, info->low, info->high};
    const dn_status_t status = dn_prog_sum_repeat(&sum, use->count, use->extent);

    if (DN_OK == status) {
        *span_p = (dn_prog_span_t){sum.size, sum.low, sum.high};
    }
    return status;
}

dn_status_t dn_prog_check(const dn_prog_use_t *use, uint64_t base, uint64_t len, uint64_t limit)
{
    dn_prog_span_t span;
    uint64_t low;
    uint64_t high;

    if (DN_OK != dn_prog_span(use, &span) || span.size != len) {
        return DN_ERR_PARAM;
    }
    if (0 == len) {
        return base > limit ? DN_ERR_RANGE : DN_OK;
    }
    return __builtin_add_overflow(base, span.low, &low) || __builtin_add_overflow(base, span.high, &high)
                   || high > limit
               ? DN_ERR_RANGE
               : DN_OK;
}
