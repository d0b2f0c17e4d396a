/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_op.c
 * Operations as steps: in a step, a process sends lines to some members of a group, and receives lines from some.
 */
#include "dn_config.h"

#include "dn_tree_link.h"

#include <string.h>

#include "dn_line.h"

/** @name Steps */
/** @{ */
/** Bytes of a line of the operation. */
static inline size_t dn_tree_line_len(const dn_tree_op_t *op, uint32_t line)
{
    const size_t left = op->len - line * op->piece;
    return left < op->piece ? left : op->piece;
}

/** The lines from op->put on that can go together to all members of a step; at least one. */
static uint32_t dn_tree_batch_to_all(const dn_tree_t *tree, const dn_tree_step_t *step)
{
    const dn_tree_group_t *group = &tree->group[step->group];
    uint32_t lines = tree->op.lines - tree->op.put;

    for (uint64_t to = step->to; 0 != to; to &= to - 1) {
        lines = dn_tree_batch(group, &group->link[__builtin_ctzll(to)], lines);
    }
    return 0 == lines ? 1 : lines;
}

/** Send the lines of the step, as far as there is room. */
static dn_status_t dn_tree_send(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    dn_tree_group_t *group = &tree->group[step->group];

    while (0 != op->put_to) {
        const uint32_t member = (uint32_t) __builtin_ctzll(op->put_to);
        const uint8_t *data = op->in + op->put * op->piece;
        dn_tree_link_t *link = &group->link[member];
        dn_status_t status;
        if (0 != op->in_stride) {
            data += op->in_stride * dn_tree_member_rank(tree, group, member);
        }
        if (1 < group->batch && step->to == op->put_to) {
            op->batch = dn_tree_batch_to_all(tree, step);
        }
        if (__builtin_expect(1 == op->batch, 1)) {
            status = dn_tree_put(link, data, dn_tree_line_len(op, op->put), op->mark);
        } else {
            const uint32_t last = op->put + op->batch - 1;
            const size_t len = (op->batch - 1) * op->piece + dn_tree_line_len(op, last);
            status = dn_tree_put_batch(link, data, len, op->piece, op->batch, op->mark);
        }
        if (DN_OK != status) {
            return status;
        }
        op->put_to &= op->put_to - 1;
        if (0 == op->put_to) {
            op->put += op->batch;
            op->put_to = op->put < op->lines ? step->to : 0;
        }
    }
    return DN_OK;
}

/** Use a member's line: the line that the member sent, or the own data. */
static inline void dn_tree_use(dn_tree_t *tree, const dn_tree_step_t *step, uint32_t member,
                               const uint8_t *data)
{
    dn_tree_op_t *op = &tree->op;
    const size_t len = dn_tree_line_len(op, op->got);

    if (DN_TREE_STORE == step->use) {
        uint8_t *to = op->out + op->got * op->piece;
        if (0 != op->out_stride) {
            to += op->out_stride * dn_tree_member_rank(tree, &tree->group[step->group], member);
        }
        dn_copy_inline(to, data, len);
    } else if (DN_TREE_FOLD == step->use) {
        if (member == step->last) {
            dn_copy_inline(op->fold, data, len);
        } else {
            op->reduction->fold(op->reduction, data, op->fold, len / op->reduction->size);
        }
    }
}

/** Receive lines of the step, as far as they are there. @return not 0: all have come. */
static int dn_tree_receive(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    dn_tree_group_t *group = &tree->group[step->group];
    /* In an exchange a result may be put where what is to be sent lies. */
    const uint32_t lines = 0 != step->to ? op->put : op->lines;

    for (; op->got < lines; op->got++, op->got_next = step->last + 1u) {
        while (0 != op->got_next) {
            const uint32_t member = op->got_next - 1;
            if (member == group->self && DN_TREE_FOLD == step->use) {
                dn_tree_use(tree, step, member, op->in + op->got * op->piece);
            } else if (0 != (step->from & (UINT64_C(1) << member))) {
                dn_tree_link_t *link = &group->link[member];
                const uint8_t *data =
                    0 == op->out_stride ? dn_tree_look(link) : dn_tree_look_marked(tree, link);
                if (NULL == data) {
                    return 0;
                }
                dn_tree_use(tree, step, member, data);
                dn_tree_take(tree, link);
            }
            op->got_next--;
        }
        if (DN_TREE_FOLD == step->use) {
            dn_copy_inline(op->out + op->got * op->piece, op->fold, dn_tree_line_len(op, op->got));
        }
    }
    return op->got == op->lines;
}

/** Run a step whose lines have the same length for all members. @return as dn_tree_run_exchange(). */
static inline dn_status_t dn_tree_run_lines(dn_tree_t *tree, const dn_tree_step_t *step)
{
    const dn_status_t status = dn_tree_send(tree, step);

    if ((DN_OK == status || DN_ERR_AGAIN == status) && 0 != step->from && !dn_tree_receive(tree, step)) {
        return DN_ERR_AGAIN;
    }
    return status;
}

/** Run one step. */
static dn_status_t dn_tree_run_step(dn_tree_t *tree, const dn_tree_step_t *step)
{
    const dn_status_t status = __builtin_expect(DN_TREE_FOLD >= step->use, 1)
                                   ? dn_tree_run_lines(tree, step)
                                   : dn_tree_run_exchange(tree, step);

    if (DN_OK != status && DN_ERR_AGAIN != status) {
        tree->failed = 1;
        return dn_tree_tell_given_up(tree);
    }
    return DN_OK == status ? DN_OK : DN_INPROGRESS;
}

dn_status_t dn_tree_test(dn_tree_t *tree)
{
    dn_tree_op_t *op = &tree->op;

    if (__builtin_expect(tree->failed, 0)) {
        return dn_tree_tell_given_up(tree);
    }
    if (__builtin_expect(tree->debts, 0)) {
        dn_tree_pay(tree);
    }
    while (op->at < op->steps) {
        const dn_tree_step_t *step = &op->step[op->at];
        const dn_status_t status = dn_tree_run_step(tree, step);
        if (DN_OK != status) {
            return status;
        }
        if (DN_TREE_IGNORE != step->use && 0 != step->from && 0 == op->out_stride) {
            /* What came is what goes on. */
            op->in = op->out;
        }
        op->at++;
        dn_tree_begin_step(tree);
    }
    if (__builtin_expect(tree->failed, 0)) {
        return dn_tree_tell_given_up(tree);
    }
    return tree->debts ? DN_INPROGRESS : DN_OK;
}
/** @} */

/** @name Operations */
/** @{ */
/** Describe this process' part of a step in a group: all others send to one member, or one member sends to all others. */
static void dn_tree_step_in(dn_tree_t *tree, uint32_t g, uint32_t root, dn_tree_use_t use)
{
    const dn_tree_group_t *group = &tree->group[g];

    if (root == group->self) {
        dn_tree_step(tree, g, 0, dn_tree_others(group), use);
    } else {
        dn_tree_step(tree, g, dn_tree_bit(root), 0, use);
    }
}

static void dn_tree_step_out(dn_tree_t *tree, uint32_t g, uint32_t root, dn_tree_use_t use)
{
    const dn_tree_group_t *group = &tree->group[g];

    if (root == group->self) {
        dn_tree_step(tree, g, dn_tree_others(group), 0, use);
    } else {
        dn_tree_step(tree, g, 0, dn_tree_bit(root), use);
    }
}

/** Does a group stand for all ranks? */
static inline int dn_tree_is_top(const dn_tree_t *tree, const dn_tree_group_t *group)
{
    return group->start[group->members] - group->start[0] == tree->ranks;
}

/** The member of a group that stands for a position, or DN_TREE_NONE. */
static uint32_t dn_tree_standing_for(const dn_tree_group_t *group, uint32_t position)
{
    uint32_t member = 0;

    if (position < group->start[0] || position >= group->start[group->members]) {
        return DN_TREE_NONE;
    }
    while (position >= group->start[member + 1]) {
        member++;
    }
    return member;
}

dn_status_t dn_tree_start(dn_tree_t *tree)
{
    dn_tree_begin_step(tree);
    return dn_tree_test(tree);
}

dn_status_t dn_tree_all(dn_tree_t *tree, dn_tree_use_t up, dn_tree_use_t across, dn_tree_use_t down)
{
    const uint32_t last = tree->groups - 1;

    for (uint32_t g = 0; g < last; g++) {
        dn_tree_step_in(tree, g, 0, up);
    }
    if (dn_tree_is_top(tree, &tree->group[last])) {
        const uint64_t others = dn_tree_others(&tree->group[last]);
        dn_tree_step(tree, last, others, others, across);
    } else {
        dn_tree_step_in(tree, last, 0, up);
        dn_tree_step_out(tree, last, 0, down);
    }
    for (uint32_t g = last; 0 < g; g--) {
        dn_tree_step_out(tree, g - 1, 0, down);
    }
    return dn_tree_start(tree);
}

dn_status_t dn_tree_start_barrier(dn_tree_t *tree)
{
    dn_tree_describe(tree, NULL, NULL, 0, DN_AOTF_LINE_MAX);
    return dn_tree_all(tree, DN_TREE_IGNORE, DN_TREE_IGNORE, DN_TREE_IGNORE);
}

dn_status_t dn_tree_start_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                                    const dn_tree_reduction_t *reduction)
{
    dn_tree_describe(tree, in, out, count * reduction->size,
                     DN_AOTF_LINE_MAX / reduction->size * reduction->size);
    tree->op.reduction = reduction;
    return dn_tree_all(tree, DN_TREE_FOLD, DN_TREE_FOLD, DN_TREE_STORE);
}

dn_status_t dn_tree_start_scan(dn_tree_t *tree, const void *in, void *out, size_t count, uint32_t folded,
                               const dn_tree_reduction_t *reduction)
{
    const size_t len = count * reduction->size;
    const dn_tree_group_t *group = &tree->group[0];
    const uint64_t below = dn_tree_bit(group->self) - 1;

    dn_tree_describe(tree, in, out, len, DN_AOTF_LINE_MAX / reduction->size * reduction->size);
    tree->op.reduction = reduction;
    if (1 == folded && 0 == tree->rank && in != out) {
        memcpy(out, in, len);
    }
    dn_tree_step(tree, 0, dn_tree_others(group) & ~below, below, DN_TREE_FOLD);
    if (0 != folded) {
        tree->op.step[0].last = (uint8_t) (folded - 1);
    }
    return dn_tree_start(tree);
}

dn_status_t dn_tree_start_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len)
{
    const uint32_t last = tree->groups - 1;
    uint32_t member = DN_TREE_NONE;
    uint32_t g = 0;

    dn_tree_describe(tree, buf, buf, len, DN_AOTF_LINE_MAX);
    while (g <= last
           && DN_TREE_NONE
                  == (member = dn_tree_standing_for(&tree->group[g], dn_tree_position_of(tree, root)))) {
        g++;
    }
    if (g > last) {
        /* It comes from beyond: through the first of our last group. */
        g = last;
        member = 0;
    }
    dn_tree_step_out(tree, g, member, DN_TREE_STORE);
    for (uint32_t up = g + 1; up <= last; up++) {
        dn_tree_step_out(tree, up, tree->group[up].self, DN_TREE_STORE);
    }
    for (uint32_t down = g; 0 < down; down--) {
        dn_tree_step_out(tree, down - 1, 0, DN_TREE_STORE);
    }
    return dn_tree_start(tree);
}

/** Describe the way of the result from the top down to @p root, through the members that stand for it. */
static void dn_tree_pass_down(dn_tree_t *tree, uint32_t g, uint32_t root)
{
    const dn_tree_group_t *group = &tree->group[g];
    const uint32_t member = dn_tree_standing_for(group, dn_tree_position_of(tree, root));

    if (DN_TREE_NONE == member || 0 == member) {
        return;
    }
    if (0 == group->self) {
        dn_tree_step(tree, g, dn_tree_bit(member), 0, DN_TREE_IGNORE);
    } else if (member == group->self) {
        dn_tree_step(tree, g, 0, dn_tree_bit(0), DN_TREE_STORE);
    }
}

dn_status_t dn_tree_start_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                                 const dn_tree_reduction_t *reduction)
{
    const uint32_t last = tree->groups - 1;
    const size_t len = count * reduction->size;

    dn_tree_describe(tree, in, root == tree->rank ? out : tree->scratch, len,
                     DN_AOTF_LINE_MAX / reduction->size * reduction->size);
    tree->op.reduction = reduction;
    for (uint32_t g = 0; g < last; g++) {
        dn_tree_step_in(tree, g, 0, DN_TREE_FOLD);
    }
    if (dn_tree_is_top(tree, &tree->group[last])) {
        dn_tree_step_in(tree, last, dn_tree_standing_for(&tree->group[last], dn_tree_position_of(tree, root)),
                        DN_TREE_FOLD);
    } else {
        dn_tree_step_in(tree, last, 0, DN_TREE_FOLD);
        dn_tree_pass_down(tree, last, root);
    }
    for (uint32_t g = last; 0 < g; g--) {
        dn_tree_pass_down(tree, g - 1, root);
    }
    return dn_tree_start(tree);
}
/** @} */
