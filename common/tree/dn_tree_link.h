/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_link.h
 * Hot path of dn_tree: the lines of a link, and the description of an operation.
 */
#ifndef DN_TREE_LINK_H
#define DN_TREE_LINK_H

#include "dn_tree_int.h"

/**
 * Note how many lines the other side has taken, as a line of the other side says. An older number than `acked` is
 * ignored.
 *
 * The sign of the difference is right. When the peer sent its line, the peer had done its part of all earlier
 * operations, so `taken` is behind `sent` by no more than the lines of this operation. And `taken` is at most
 * depth beyond `acked`, since no more lines are under way.
 */
static inline void dn_tree_heard(dn_tree_link_t *link, uint32_t taken)
{
    if (0 < (int32_t) (taken - link->acked)) {
        link->acked = taken;
    }
}

/** Look in all places where the other side may say what it has taken. @return not 0: there is room for a line. */
int dn_tree_find_room(dn_tree_link_t *link);
/** Tell the other side what was taken, or note that this is to be done later. */
void dn_tree_tell(dn_tree_t *tree, dn_tree_link_t *link);
/**
 * In a tree that is given up: tell the members that still wait for lines of this operation, then those of dn_tree_warn(). They cannot
 * have left the tree, so their LLCM still belongs to the tree. @return DN_INPROGRESS: not all could be told now; DN_ERR_UNREACH: done.
 */
dn_status_t dn_tree_tell_given_up(dn_tree_t *tree);
/** Tell the members that could not be told before. */
void dn_tree_pay(dn_tree_t *tree);

/** Lines sent that are not known to be taken: 0 .. depth, also when the counters wrap, since no line is sent without room. */
static inline uint32_t dn_tree_under_way(const dn_tree_link_t *link)
{
    return (uint32_t) link->sent - link->acked;
}

static inline int dn_tree_has_room(dn_tree_link_t *link)
{
    return __builtin_expect(dn_tree_under_way(link) < link->depth, 1) || dn_tree_find_room(link);
}

/** The flag of the next line. */
static inline uint64_t dn_tree_flag(const dn_tree_link_t *link, uint32_t mark)
{
    return (uint64_t) (((uint32_t) link->sent + 1) ^ mark) | link->taken << 32;
}

/** Send one line. @param mark  0, or DN_TREE_MARK in an exchange. DN_ERR_AGAIN: not now. */
static inline dn_status_t dn_tree_put(dn_tree_link_t *link, const void *data, size_t len, uint32_t mark)
{
    if (!dn_tree_has_room(link)) {
        return DN_ERR_AGAIN;
    }
    const uint32_t at = (uint32_t) link->sent & (link->depth - 1);
    const uint32_t off = link->out_off + at * (uint32_t) sizeof(dn_tree_line_t);
    const uint64_t flag = dn_tree_flag(link, mark);
    const dn_status_t status = dn_aotf_line(link->peer, off, data, len, flag);
    if (__builtin_expect(DN_OK == status, 1)) {
        link->sent++;
        link->told = (uint32_t) link->taken;
    }
    return status;
}

/** How many of @p lines lines may go to a member together now; 0: none. */
static inline uint32_t dn_tree_batch(const dn_tree_group_t *group, dn_tree_link_t *link, uint32_t lines)
{
    if (!dn_tree_has_room(link)) {
        return 0;
    }
    const uint32_t room = link->depth - dn_tree_under_way(link);
    const uint32_t most = room < group->batch ? room : group->batch;
    return lines < most ? lines : most;
}

/** Send some lines together, as many as dn_tree_batch() says. */
dn_status_t dn_tree_put_batch(dn_tree_link_t *link, const void *data, size_t len, size_t piece,
                              uint32_t lines, uint32_t mark);

/**
 * The next line of a link, or NULL.
 *
 * A number of 32 bits is enough: a place gets one line of each lap. So the place holds the number of this lap
 * or of the lap before, and these numbers differ by depth.
 */
static inline const uint8_t *dn_tree_look(dn_tree_link_t *link)
{
    const dn_tree_line_t *line = &link->in[(uint32_t) link->taken & (link->depth - 1)];
    const uint64_t flag = dn_load_acquire(&line->flag);

    if ((uint32_t) flag != (uint32_t) link->taken + 1) {
        return NULL;
    }
    dn_tree_heard(link, (uint32_t) (flag >> 32));
    return line->data;
}

/** As dn_tree_look(), in an exchange: the line may be marked. From then on, the lines that this process sends in this operation are
 * marked, too. */
static inline const uint8_t *dn_tree_look_marked(dn_tree_t *tree, dn_tree_link_t *link)
{
    const uint8_t *data = dn_tree_look(link);

    if (NULL == data) {
        const dn_tree_line_t *line = &link->in[(uint32_t) link->taken & (link->depth - 1)];
        const uint64_t flag = dn_load_acquire(&line->flag);
        if (__builtin_expect((uint32_t) flag == (((uint32_t) link->taken + 1) ^ DN_TREE_MARK), 0)) {
            dn_tree_heard(link, (uint32_t) (flag >> 32));
            tree->op.mark = DN_TREE_MARK;
            data = line->data;
        }
    }
    return data;
}

/** Has the other side to be told what was taken? It may wait for room. The difference is at most depth, also
 * when the counters wrap: the other side sends no more lines until it is told. */
static inline int dn_tree_owes(const dn_tree_link_t *link)
{
    return (uint32_t) link->taken - link->told >= link->depth / 2;
}

/** Done with the line that dn_tree_look() showed. */
static inline void dn_tree_take(dn_tree_t *tree, dn_tree_link_t *link)
{
    link->taken++;
    if (__builtin_expect(dn_tree_owes(link), 0)) {
        dn_tree_tell(tree, link);
    }
}

static inline uint32_t dn_tree_rank_at(const dn_tree_t *tree, uint32_t position)
{
    return NULL == tree->at ? position : tree->at[position];
}

static inline uint32_t dn_tree_position_of(const dn_tree_t *tree, uint32_t rank)
{
    return NULL == tree->position ? rank : tree->position[rank];
}

/** The rank of a member. */
static inline uint32_t dn_tree_member_rank(const dn_tree_t *tree, const dn_tree_group_t *group,
                                           uint32_t member)
{
    return dn_tree_rank_at(tree, group->start[member]);
}

static inline uint64_t dn_tree_bit(uint32_t member)
{
    return UINT64_C(1) << member;
}

static inline uint64_t dn_tree_others(const dn_tree_group_t *group)
{
    return ((DN_TREE_RADIX_MAX == group->members ? 0 : dn_tree_bit(group->members)) - 1)
           & ~dn_tree_bit(group->self);
}

static inline void dn_tree_step(dn_tree_t *tree, uint32_t group, uint64_t to, uint64_t from,
                                dn_tree_use_t use)
{
    tree->op.step[tree->op.steps++] = (dn_tree_step_t){.to = to,
                                                       .from = from,
                                                       .group = (uint8_t) group,
                                                       .use = (uint8_t) use,
                                                       .last = (uint8_t) (tree->group[group].members - 1)};
}

/** Begin to describe an operation. */
static inline void dn_tree_describe(dn_tree_t *tree, const void *in, void *out, size_t len, size_t piece)
{
    dn_tree_op_t *op = &tree->op;

    op->steps = 0;
    op->at = 0;
    op->in = in;
    op->out = out;
    op->len = len;
    op->in_stride = 0;
    op->out_stride = 0;
    op->mark = 0;
    op->piece = piece;
    op->lines = len <= piece ? 1 : (uint32_t) ((len + piece - 1) / piece);
}

static inline void dn_tree_begin_step(dn_tree_t *tree)
{
    dn_tree_op_t *op = &tree->op;

    if (op->at < op->steps) {
        op->put = 0;
        op->batch = 1;
        op->got = 0;
        op->put_to = op->step[op->at].to;
        op->got_next = op->step[op->at].last + 1u;
    }
}

#endif
