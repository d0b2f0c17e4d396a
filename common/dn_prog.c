/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog.h"

#include <stdlib.h>
#include <string.h>

#include "dn_atomic.h"

#define DN_PROG_MAGIC   0x67706e64u
#define DN_PROG_VERSION 1u

/** From so many blocks at a constant distance on, a part of a row of irregular ones is a RUN of its own. */
#define DN_PROG_STRETCH 8u

/** Ops of a program never reach this number: node numbers and places have 32 bits. */
#define DN_PROG_OPS_LIMIT (UINT32_MAX - 1)

static uint64_t dn_prog_ids;

/** Sums over some blocks. size 0: there are none, and nothing else counts. */
typedef struct dn_prog_sum {
    uint64_t size;
    uint64_t blocks;
    int64_t low;
    int64_t high;
} dn_prog_sum_t;

/** Add blocks to others. As bytes fit into 64 bits, so do blocks: none of them is empty. */
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

/** Repeat blocks count times at a distance. */
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

/** All blocks of a RUN or LIST. */
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
 * @retval DN_ERR_PARAM  a loop inside holds ops beyond the end of this one, or none.
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

/** Room for a program; its ops and places are still to be filled in. */
static dn_prog_t *dn_prog_alloc(uint32_t ops, uint32_t places)
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

/** Measure a program whose ops and places are there, and give it its number. */
static dn_status_t dn_prog_finish(dn_prog_t *prog)
{
    dn_prog_sum_t sum;
    const dn_status_t status = dn_prog_measure(prog, 0, 0, &sum);

    if (DN_OK == status) {
        prog->node[0].op.len = sum.size;
        prog->info.size = sum.size;
        prog->info.blocks = sum.blocks;
        prog->info.low = sum.low;
        prog->info.high = sum.high;
        prog->info.id = dn_fetch_add_u64(&dn_prog_ids, 1) + 1;
    }
    return status;
}

/** Normal form in the making. It never has more ops than were given, nor more places. */
typedef struct dn_prog_build {
    dn_prog_op_t *op; /**< a LIST's `at` is the number of its first place */
    size_t ops;
    int64_t *place;
    size_t places;
} dn_prog_build_t;

static int dn_prog_is_block(const dn_prog_op_t *op)
{
    return DN_PROG_RUN == op->kind && 1 == op->count;
}

/** Take a RUN that continues the one before it. Two blocks apart are left to dn_prog_gather_lists(). */
static int dn_prog_join(dn_prog_op_t *a, const dn_prog_op_t *b)
{
    dn_prog_op_t both = *a;
    int64_t next;

    if (dn_prog_is_block(a) && dn_prog_is_block(b)) {
        if (__builtin_add_overflow(a->at, a->len, &next) || next != b->at
            || __builtin_add_overflow(a->len, b->len, &both.len)) {
            return 0;
        }
    } else {
        both.stride = 1 == a->count ? b->stride : a->stride;
        if (a->len != b->len || (1 != b->count && both.stride != b->stride)
            || __builtin_mul_overflow(a->count, both.stride, &next)
            || __builtin_add_overflow(a->at, next, &next) || next != b->at
            || __builtin_add_overflow(a->count, b->count, &both.count)) {
            return 0;
        }
    }
    *a = both;
    return 1;
}

/** Put a RUN behind what is there. last: op before it in the same body, SIZE_MAX: none. */
static void dn_prog_put_run(dn_prog_build_t *build, dn_prog_op_t run, size_t *last)
{
    uint64_t len;

    if (1 < run.count && 0 < run.stride && run.len == (uint64_t) run.stride
        && !__builtin_mul_overflow(run.len, run.count, &len)) {
        run.len = len;
        run.count = 1;
    }
    if (1 == run.count) {
        run.stride = 0;
    }
    if (SIZE_MAX == *last || DN_PROG_RUN != build->op[*last].kind || !dn_prog_join(&build->op[*last], &run)) {
        *last = build->ops;
        build->op[build->ops++] = run;
    }
}

/** Blocks at the start of a row of single ones that are at a constant distance. */
static size_t dn_prog_stretch(const dn_prog_op_t *op, size_t n, int64_t *stride_p)
{
    size_t k = 1;
    int64_t step;

    while (k < n && !__builtin_sub_overflow(op[k].at, op[k - 1].at, &step) && (1 == k || step == *stride_p)) {
        *stride_p = step;
        k++;
    }
    return k;
}

/** Put the places from `first` on down as one LIST or block. @return ops made: 0 or 1. */
static size_t dn_prog_put_places(dn_prog_build_t *build, dn_prog_op_t *op, size_t first, uint64_t len)
{
    const size_t count = build->places - first;

    if (1 == count) {
        build->places = first;
        *op = (dn_prog_op_t){DN_PROG_RUN, 0, build->place[first], len, 1, 0};
    } else if (1 < count) {
        *op = (dn_prog_op_t){DN_PROG_LIST, 0, (int64_t) first, len, count, 0};
    }
    return 0 != count;
}

/** Bring a row of n single blocks of one length down to RUNs and LISTs, in place. @return ops left. */
static size_t dn_prog_put_row(dn_prog_build_t *build, dn_prog_op_t *to, const dn_prog_op_t *row, size_t n)
{
    const uint64_t len = row[0].len;
    size_t ops = 0;
    size_t first = build->places;

    for (size_t i = 0; i < n;) {
        int64_t stride = 0;
        const size_t k = dn_prog_stretch(row + i, n - i, &stride);
        if (1 < k && (n == k || DN_PROG_STRETCH <= k)) {
            const dn_prog_op_t run = {DN_PROG_RUN, 0, row[i].at, len, k, stride};
            ops += dn_prog_put_places(build, to + ops, first, len);
            to[ops++] = run;
            first = build->places;
            i += k;
        } else {
            build->place[build->places++] = row[i++].at;
        }
    }
    return ops + dn_prog_put_places(build, to + ops, first, len);
}

/** Find the LISTs, and the RUNs given as single blocks, in the complete body that starts at `first`. */
static void dn_prog_gather_lists(dn_prog_build_t *build, size_t first)
{
    dn_prog_op_t *op = build->op;
    size_t to = first;

    for (size_t from = first; from < build->ops;) {
        size_t n = 1 + op[from].inside;
        if (dn_prog_is_block(&op[from])) {
            while (from + n < build->ops && dn_prog_is_block(&op[from + n])
                   && op[from + n].len == op[from].len) {
                n++;
            }
            to += dn_prog_put_row(build, op + to, op + from, n);
        } else {
            memmove(op + to, op + from, n * sizeof(*op));
            to += n;
        }
        from += n;
    }
    build->ops = to;
}

/** Does a loop's next turn go on where an op in it would, if it had more blocks or turns? */
static int dn_prog_continues(const dn_prog_op_t *op, int64_t stride)
{
    int64_t reach;
    return !__builtin_mul_overflow(op->count, op->stride, &reach) && reach == stride;
}

/** Put a loop around one RUN or LOOP down as that, if it is one. inside: ops in the loop. */
static int dn_prog_fold(dn_prog_op_t *loop, size_t inside)
{
    dn_prog_op_t op = loop[1];

    if (1 + op.inside != inside || DN_PROG_LIST == op.kind) {
        return 0;
    }
    if (dn_prog_is_block(&op)) {
        op.stride = loop->stride;
    } else if (!dn_prog_continues(&op, loop->stride)) {
        return 0;
    }
    if (__builtin_mul_overflow(loop->count, op.count, &op.count)) {
        return 0;
    }
    memmove(loop, loop + 1, inside * sizeof(*loop));
    *loop = op;
    return 1;
}

/** The body of the loop at `at` is complete: put the loop down in its shortest form. */
static void dn_prog_end_loop(dn_prog_build_t *build, size_t at, size_t *last)
{
    dn_prog_op_t *loop = &build->op[at];

    dn_prog_gather_lists(build, at + 1);
    const size_t inside = build->ops - at - 1;
    if (0 == inside) {
        build->ops = at;
    } else if (!dn_prog_fold(loop, inside)) {
        loop->inside = (uint32_t) inside;
        *last = at;
    } else if (DN_PROG_LOOP == loop->kind) {
        build->ops--;
        *last = at;
    } else {
        build->ops = at;
        dn_prog_put_run(build, *loop, last);
    }
}

/**
 * Append the normal form of n ops to a body.
 *
 * @param shift  Added to their places; its range makes a sum of any ats in loops exact.
 * @param nest   Loops around them, as given.
 * @param last   As in dn_prog_put_run().
 */
static dn_status_t dn_prog_put(dn_prog_build_t *build, const dn_prog_op_t *ops, size_t n, __int128 shift,
                               unsigned nest, size_t *last)
{
    for (size_t i = 0; i < n; i += 1 + ops[i].inside) {
        dn_prog_op_t op = ops[i];
        const __int128 at = op.at + shift;

        if ((DN_PROG_RUN != op.kind && DN_PROG_LOOP != op.kind) || op.inside >= n - i
            || (DN_PROG_RUN == op.kind && 0 != op.inside)) {
            return DN_ERR_PARAM;
        }
        if (DN_PROG_RUN == op.kind) {
            if (0 != op.len && 0 != op.count) {
                op.at = (int64_t) at;
                if (op.at != at) {
                    return DN_ERR_RANGE;
                }
                dn_prog_put_run(build, op, last);
            }
            continue;
        }
        if (DN_PROG_NEST_MAX == nest) {
            return DN_ERR_UNSUPPORTED;
        }
        if (0 == op.count) {
            continue;
        }
        const size_t loop = build->ops;
        size_t inner = SIZE_MAX;
        if (1 < op.count) {
            build->op[build->ops++] = (dn_prog_op_t){DN_PROG_LOOP, 0, 0, 0, op.count, op.stride};
        }
        const dn_status_t status =
            dn_prog_put(build, ops + i + 1, op.inside, at, nest + 1, 1 < op.count ? &inner : last);
        if (DN_OK != status) {
            return status;
        }
        if (1 < op.count) {
            dn_prog_end_loop(build, loop, last);
        }
    }
    return DN_OK;
}

/** Copy a normal form into a program of its own, places in the order of their ops. */
static dn_status_t dn_prog_take(const dn_prog_build_t *build, dn_prog_t **prog_p)
{
    dn_prog_t *prog = dn_prog_alloc((uint32_t) build->ops, (uint32_t) build->places);
    uint32_t first = 0;

    if (NULL == prog) {
        return DN_ERR_NOMEM;
    }
    for (size_t i = 0; i < build->ops; i++) {
        dn_prog_node_t *node = &prog->node[i + 1];
        node->op = build->op[i];
        if (DN_PROG_LIST == node->op.kind) {
            memcpy(prog->place + first, build->place + node->op.at, node->op.count * sizeof(int64_t));
            node->op.at = 0;
            node->first = first;
            first += (uint32_t) node->op.count;
        }
    }
    const dn_status_t status = dn_prog_finish(prog);
    if (DN_OK != status) {
        dn_prog_free(prog);
        return status;
    }
    *prog_p = prog;
    return DN_OK;
}

dn_status_t dn_prog_create(const dn_prog_op_t *ops, size_t n, dn_prog_t **prog_p)
{
    dn_prog_build_t build = {0};
    size_t last = SIZE_MAX;

    if (DN_PROG_OPS_LIMIT < n) {
        return DN_ERR_PARAM;
    }
    build.op = malloc((n + 1) * (sizeof(dn_prog_op_t) + sizeof(int64_t)));
    if (NULL == build.op) {
        return DN_ERR_NOMEM;
    }
    build.place = (int64_t *) (build.op + n + 1);
    dn_status_t status = dn_prog_put(&build, ops, n, 0, 0, &last);
    if (DN_OK == status) {
        dn_prog_gather_lists(&build, 0);
        status = dn_prog_take(&build, prog_p);
    }
    free(build.op);
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

/** Start of an encoded program. */
typedef struct dn_prog_wire {
    uint32_t magic;
    uint16_t version;
    uint16_t depth;
    uint32_t ops;
    uint32_t places;
    uint64_t size;
    int64_t low;
    int64_t high;
} dn_prog_wire_t;

_Static_assert(sizeof(dn_prog_wire_t) == 40, "peers agree on the layout");
_Static_assert(sizeof(dn_prog_op_t) == 40, "peers agree on the layout");

/** Bytes of an encoded program; both numbers have 32 bits, so this does not overflow. */
static uint64_t dn_prog_wire_len(uint64_t ops, uint64_t places)
{
    return sizeof(dn_prog_wire_t) + ops * sizeof(dn_prog_op_t) + places * sizeof(int64_t);
}

dn_status_t dn_prog_encode(const dn_prog_t *prog, void *buf, size_t *len)
{
    const dn_prog_info_t *info = &prog->info;
    const size_t room = *len;
    uint8_t *at = buf;
    const dn_prog_wire_t head = {DN_PROG_MAGIC,
                                 DN_PROG_VERSION,
                                 (uint16_t) info->depth,
                                 info->ops,
                                 (uint32_t) prog->places,
                                 info->size,
                                 info->low,
                                 info->high};

    *len = dn_prog_wire_len(info->ops, prog->places);
    if (*len > room) {
        return DN_ERR_RANGE;
    }
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (uint32_t i = 1; i <= info->ops; i++) {
        dn_prog_op_t op = prog->node[i].op;
        op.len = DN_PROG_LOOP == op.kind ? 0 : op.len;
        memcpy(at, &op, sizeof(op));
        at += sizeof(op);
    }
    memcpy(at, prog->place, prog->places * sizeof(int64_t));
    return DN_OK;
}

/** Is one op as dn_prog_encode() writes it? Whether `inside` fits is left to dn_prog_measure(). */
static int dn_prog_wire_op(const dn_prog_op_t *op)
{
    switch (op->kind) {
    case DN_PROG_RUN:
        return 0 == op->inside && 0 != op->len && 0 != op->count && (1 != op->count || 0 == op->stride);
    case DN_PROG_LIST:
        return 0 == op->inside && 0 == op->at && 0 != op->len && 1 < op->count && 0 == op->stride;
    case DN_PROG_LOOP:
        return 0 == op->at && 0 == op->len && 1 < op->count;
    default:
        return 0;
    }
}

/** Fill a program from an encoded one, and hold it against what that declares. */
static dn_status_t dn_prog_read(dn_prog_t *prog, const dn_prog_wire_t *head, const uint8_t *at)
{
    const dn_prog_info_t *info = &prog->info;
    uint64_t first = 0;

    for (uint32_t i = 1; i <= head->ops; i++) {
        dn_prog_node_t *node = &prog->node[i];
        memcpy(&node->op, at, sizeof(node->op));
        at += sizeof(node->op);
        if (!dn_prog_wire_op(&node->op)) {
            return DN_ERR_PROTO;
        }
        if (DN_PROG_LIST == node->op.kind) {
            if (node->op.count > prog->places - first) {
                return DN_ERR_PROTO;
            }
            node->first = (uint32_t) first;
            first += node->op.count;
        }
    }
    memcpy(prog->place, at, prog->places * sizeof(int64_t));
    return first == prog->places && DN_OK == dn_prog_finish(prog) && head->depth == info->depth
                   && head->size == info->size && head->low == info->low && head->high == info->high
               ? DN_OK
               : DN_ERR_PROTO;
}

dn_status_t dn_prog_decode(const void *bytes, size_t len, const dn_prog_limits_t *limits, dn_prog_t **prog_p)
{
    static const dn_prog_limits_t usual = {1u << 16, 1u << 20, DN_PROG_DEPTH_MAX};
    dn_prog_wire_t head;

    if (sizeof(head) > len) {
        return DN_ERR_PROTO;
    }
    memcpy(&head, bytes, sizeof(head));
    if (DN_PROG_MAGIC != head.magic) {
        return DN_ERR_PROTO;
    }
    if (DN_PROG_VERSION != head.version) {
        return DN_ERR_VERSION;
    }
    limits = NULL == limits ? &usual : limits;
    if (head.ops > limits->max_ops || head.places > limits->max_places || head.depth > limits->max_depth
        || head.ops > DN_PROG_OPS_LIMIT) {
        return DN_ERR_RANGE;
    }
    if (dn_prog_wire_len(head.ops, head.places) != len) {
        return DN_ERR_PROTO;
    }
    dn_prog_t *prog = dn_prog_alloc(head.ops, head.places);
    if (NULL == prog) {
        return DN_ERR_NOMEM;
    }
    const dn_status_t status = dn_prog_read(prog, &head, (const uint8_t *) bytes + sizeof(head));
    if (DN_OK != status) {
        dn_prog_free(prog);
        return status;
    }
    *prog_p = prog;
    return DN_OK;
}
