/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_prog_int.h"

#include <stdlib.h>
#include <string.h>

/** In a row of irregular blocks, at least so many blocks at a constant distance become a RUN of their own. */
#define DN_PROG_STRETCH 8u

/** A normal form under construction. It never has more ops than were given, nor more places. */
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

/** Join a RUN to the RUN before it, if it continues that one. Two single blocks with a gap are left to dn_prog_gather_lists(). */
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

/** Append a RUN. last: the op before it in the same body; SIZE_MAX: no op. */
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

/** How many blocks at the start of a row of single blocks are at a constant distance. */
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

/** Make one LIST or block of the places from `first` on. @return ops made: 0 or 1. */
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

/** Make RUNs and LISTs of a row of n single blocks of one length, in place. @return ops left. */
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

/** In the complete body that starts at `first`, make LISTs and RUNs of the single blocks. */
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

/** Does the next turn of a loop begin where its op would go on, if that op had more blocks or turns? */
static int dn_prog_continues(const dn_prog_op_t *op, int64_t stride)
{
    int64_t reach;
    return !__builtin_mul_overflow(op->count, op->stride, &reach) && reach == stride;
}

/** Replace a loop around one RUN or LOOP by one op, if one op covers the same blocks. inside: ops in the loop. */
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

/** The body of the loop at `at` is complete: give the loop its shortest form. */
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

/** Copy a normal form into a new program, with the places in the order of their ops. */
static dn_status_t dn_prog_build_copy(const dn_prog_build_t *build, dn_prog_t **prog_p)
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
        status = dn_prog_build_copy(&build, prog_p);
    }
    free(build.op);
    return status;
}
