/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_exchange.c
 * Allgather and alltoall. In one group every member writes to every other. In a tree of groups, blocks go up to the first member of
 * each group, across between the members of the top group, and down again.
 *
 * On the way, blocks are in the order of positions, so that the blocks of all ranks that a member stands for lie together.
 *
 *   allgather   a member sends up the blocks of the ranks that it stands for. All blocks go down
 *   alltoall    a matrix of blocks, with a row for each destination and a column for each source. A member sends up a row for every
 *               position, with columns for the ranks that it stands for: so the rows for the ranks of another member lie together.
 *               A member gets down a row for each rank that it stands for, with a column for every position. Parts from several
 *               members are put side by side.
 *
 * Lines are sent to one member after the other, from the first on. They are taken from one member after the other, from the last
 * on. So the lines of the last member of a group wait for no other member, those of the member before it for the last, and so on.
 */
#include "dn_config.h"

#include "dn_tree_link.h"

#include <stdlib.h>
#include <string.h>

#include "dn_line.h"

/** Bytes of a buffer. A member that stands for others fills at most so much in an alltoall (perf/compare_hosts, 2 hosts x 2
 * ranks: blocks of 256 B in 31 us, by coll/tuned in 44; of 512 B in 75 us, 41), and less in an allgather (256 B: 19 us, 31; 512 B: 34
 * us, 33). */
#define DN_TREE_ROOM     2048u
#define DN_TREE_GATHERED 1024u
/** Likewise on one host, where other components need no messages either: in an allgather no more than a link has room for, in an
 * alltoall so much between two members at the top (perf/dn_coll, 16 ranks on 2 cores: allgather of 16 B in 37 us, by coll/tuned in 64; of
 * 32 B in 186 us, 64; alltoall of 8 B in 59 us, 89; of 16 B in 95 us, 91). */
#define DN_TREE_NEAR_GATHERED 448u
#define DN_TREE_NEAR_ACROSS   512u

/** Part of a buffer, in blocks. */
typedef struct dn_tree_span {
    size_t first;
    size_t count;
} dn_tree_span_t;

/** @name Room */
/** @{ */
dn_status_t dn_tree_room_alloc(dn_tree_t *tree)
{
    if (dn_tree_is_flat(tree)) {
        return DN_OK;
    }
    tree->room[0] = malloc((size_t) 2 * DN_TREE_ROOM);
    if (NULL == tree->room[0]) {
        return DN_ERR_NOMEM;
    }
    tree->room[1] = tree->room[0] + DN_TREE_ROOM;
    return DN_OK;
}

/** Do all processes run on one host? */
static inline int dn_tree_is_near(const dn_tree_t *tree)
{
    return DN_TREE_DEPTH_MAX == tree->lines;
}

/** Most bytes of a block, where @p blocks of them have to fit into @p room, and @p across of them go from host to host. */
static size_t dn_tree_most(const dn_tree_t *tree, size_t room, size_t blocks, size_t across)
{
    const size_t most = dn_tree_max(1);
    const size_t lines =
        dn_tree_is_near(tree) ? DN_TREE_NEAR_ACROSS : (size_t) tree->lines * DN_AOTF_LINE_MAX;

    if (dn_tree_is_flat(tree)) {
        return (size_t) dn_tree_lines(tree) * DN_AOTF_LINE_MAX;
    }
    room = room / blocks < lines / across ? room / blocks : lines / across;
    return room < most ? room : most;
}

size_t dn_tree_allgather_max(const dn_tree_t *tree)
{
    return dn_tree_most(tree, dn_tree_is_near(tree) ? DN_TREE_NEAR_GATHERED : DN_TREE_GATHERED, tree->ranks,
                        tree->widest);
}

size_t dn_tree_alltoall_max(const dn_tree_t *tree)
{
    return dn_tree_most(tree, DN_TREE_ROOM, (size_t) tree->ranks * tree->widest,
                        (size_t) tree->widest * tree->widest);
}
/** @} */

/** @name Steps */
/** @{ */
/** Ranks that a member of a group stands for. */
static inline size_t dn_tree_width(const dn_tree_group_t *group, uint32_t member)
{
    return group->start[member + 1] - group->start[member];
}

/** The part of the buffer that this process sends to a member in a step, or gets from it. */
static dn_tree_span_t dn_tree_span(const dn_tree_t *tree, const dn_tree_step_t *step, uint32_t member,
                                   int sends)
{
    const dn_tree_group_t *group = &tree->group[step->group];
    const uint32_t of = sends ? group->self : member;
    const size_t own = dn_tree_width(group, group->self);
    const size_t other = dn_tree_width(group, member);

    switch (step->use) {
    case DN_TREE_GATHER:
        return (dn_tree_span_t){group->start[of], dn_tree_width(group, of)};
    case DN_TREE_SPREAD:
        return (dn_tree_span_t){0, tree->ranks};
    case DN_TREE_ACROSS:
        return (dn_tree_span_t){own * group->start[member], own * other};
    default:
        /* Who stands for others has their parts side by side, each of them has its own alone. */
        return (DN_TREE_UP == step->use) == sends
                   ? (dn_tree_span_t){0, own * tree->ranks}
                   : (dn_tree_span_t){(size_t) (group->start[member] - group->start[0]) * tree->ranks,
                                      other * tree->ranks};
    }
}

/** Do the parts of several members have to be put side by side after a step? */
static inline int dn_tree_is_sorted_after(const dn_tree_step_t *step)
{
    return 0 != step->from && (DN_TREE_UP == step->use || DN_TREE_ACROSS == step->use);
}

static inline uint32_t dn_tree_lines_of(size_t len)
{
    return (uint32_t) ((len + DN_AOTF_LINE_MAX - 1) / DN_AOTF_LINE_MAX);
}

uint32_t dn_tree_parts_from(const dn_tree_t *tree, const dn_tree_step_t *step, uint32_t member)
{
    return dn_tree_lines_of(dn_tree_span(tree, step, member, 0).count * tree->op.len);
}

/** Bytes of a line of a span; 0: it has no such line. */
static inline size_t dn_tree_part(const dn_tree_op_t *op, dn_tree_span_t span, uint32_t line)
{
    const size_t len = span.count * op->len;
    const size_t at = (size_t) line * DN_AOTF_LINE_MAX;

    return len <= at ? 0 : len - at < DN_AOTF_LINE_MAX ? len - at : DN_AOTF_LINE_MAX;
}

/** Send to one member the lines of a span that go together next. DN_ERR_AGAIN: there is no room now. */
static dn_status_t dn_tree_send_part(dn_tree_t *tree, const dn_tree_group_t *group, dn_tree_link_t *link,
                                     dn_tree_span_t span)
{
    dn_tree_op_t *op = &tree->op;
    const size_t at = (size_t) op->part_put * DN_AOTF_LINE_MAX;
    const size_t left = span.count * op->len - at;
    const uint32_t lines = dn_tree_batch(group, link, dn_tree_lines_of(left));
    const size_t most = lines * DN_AOTF_LINE_MAX;
    const size_t len = left < most ? left : most;
    const uint8_t *from = tree->room[0] + span.first * op->len + at;

    if (0 == lines) {
        return DN_ERR_AGAIN;
    }
    const dn_status_t status = 1 == lines
                                   ? dn_tree_put(link, from, len, op->mark)
                                   : dn_tree_put_batch(link, from, len, DN_AOTF_LINE_MAX, lines, op->mark);
    if (DN_OK == status) {
        op->part_put += lines;
    }
    return status;
}

static dn_status_t dn_tree_send_parts(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    dn_tree_group_t *group = &tree->group[step->group];

    for (; 0 != op->put_to; op->put_to &= op->put_to - 1, op->part_put = 0) {
        const uint32_t member = (uint32_t) __builtin_ctzll(op->put_to);
        const dn_tree_span_t span = dn_tree_span(tree, step, member, 1);
        while (op->part_put < dn_tree_lines_of(span.count * op->len)) {
            const dn_status_t status = dn_tree_send_part(tree, group, &group->link[member], span);
            if (DN_OK != status) {
                return status;
            }
        }
    }
    return DN_OK;
}

/** Receive the parts of a step, as far as they have come. @return not 0: all have come. */
static int dn_tree_receive_parts(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;

    for (; 0 != op->got_next; op->got_next--, op->part_got = 0) {
        const uint32_t member = op->got_next - 1;
        if (0 == (step->from & dn_tree_bit(member))) {
            continue;
        }
        const dn_tree_span_t span = dn_tree_span(tree, step, member, 0);
        uint8_t *to = tree->room[dn_tree_is_sorted_after(step)] + span.first * op->len;
        for (size_t len; 0 != (len = dn_tree_part(op, span, op->part_got)); op->part_got++) {
            dn_tree_link_t *link = &tree->group[step->group].link[member];
            const uint8_t *data = dn_tree_look_marked(tree, link);
            if (NULL == data) {
                return 0;
            }
            dn_copy_inline(to + (size_t) op->part_got * DN_AOTF_LINE_MAX, data, len);
            dn_tree_take(tree, link);
        }
    }
    return 1;
}

/** Put the parts of all members, also the own part, side by side: each row gets the blocks that each member has for it. */
static void dn_tree_sort_parts(dn_tree_t *tree, const dn_tree_step_t *step)
{
    const dn_tree_group_t *group = &tree->group[step->group];
    const int is_up = DN_TREE_UP == step->use;
    const size_t own = dn_tree_width(group, group->self);
    const size_t rows = is_up ? tree->ranks : own;
    const size_t len = tree->op.len;
    const uint8_t *from = tree->room[1];
    uint8_t *to = tree->room[0];
    const size_t stride = (group->start[group->members] - group->start[0]) * len;

    /* Its place among those of the others; that of one who stands for a group is the first. */
    const size_t at = is_up ? 0 : own * group->start[group->self] * len;
    memcpy(tree->room[1] + at, to + at, rows * own * len);
    for (uint32_t m = 0; m < group->members; m++) {
        const size_t part = dn_tree_width(group, m) * len;
        for (size_t row = 0; row < rows; row++, from += part) {
            memcpy(to + row * stride, from, part);
        }
        to += part;
    }
}

/** All blocks are here, one for each position: copy them to the caller's buffer. */
static void dn_tree_give_out(dn_tree_t *tree)
{
    const size_t len = tree->op.len;

    for (uint32_t i = 0; i < tree->ranks; i++) {
        memcpy(tree->op.out + dn_tree_rank_at(tree, i) * len, tree->room[0] + i * len, len);
    }
}

dn_status_t dn_tree_run_exchange(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    const dn_status_t status = dn_tree_send_parts(tree, step);

    if (DN_OK != status && DN_ERR_AGAIN != status) {
        return status;
    }
    if (0 != step->from && !dn_tree_receive_parts(tree, step)) {
        return DN_ERR_AGAIN;
    }
    if (DN_OK == status && dn_tree_is_sorted_after(step)) {
        dn_tree_sort_parts(tree, step);
    }
    if (DN_OK == status && op->at + 1 == op->steps) {
        dn_tree_give_out(tree);
    }
    return status;
}
/** @} */

/** @name Operations */
/** @{ */
/** Mark the exchange that is described, if the caller has called dn_tree_mark() before it. */
static void dn_tree_use_mark(dn_tree_t *tree)
{
    tree->op.mark = tree->mark;
    tree->mark = 0;
}

void dn_tree_mark(dn_tree_t *tree)
{
    tree->mark = DN_TREE_MARK;
}

int dn_tree_is_marked(const dn_tree_t *tree)
{
    return 0 != tree->op.mark;
}

/** An exchange in a flat tree: every member sends to every other. The own block is copied. */
static dn_status_t dn_tree_exchange(dn_tree_t *tree, const uint8_t *in, uint8_t *out, size_t len,
                                    size_t in_stride)
{
    const uint64_t others = dn_tree_others(&tree->group[0]);
    const uint8_t *own = in + in_stride * tree->rank;

    dn_tree_describe(tree, in, out, len, DN_AOTF_LINE_MAX);
    dn_tree_use_mark(tree);
    tree->op.in_stride = in_stride;
    tree->op.out_stride = len;
    if (own != out + len * tree->rank && 0 != len) {
        memcpy(out + len * tree->rank, own, len);
    }
    dn_tree_step(tree, 0, others, others, DN_TREE_STORE);
    return dn_tree_start(tree);
}

/** Begin to describe an exchange through tree->room. */
static void dn_tree_describe_parts(dn_tree_t *tree, uint8_t *out, size_t len)
{
    dn_tree_describe(tree, NULL, out, 0, DN_AOTF_LINE_MAX);
    dn_tree_use_mark(tree);
    tree->op.len = len;
    tree->op.part_put = 0;
    tree->op.part_got = 0;
}

dn_status_t dn_tree_allgather(dn_tree_t *tree, const void *in, void *out, size_t len)
{
    if (dn_tree_is_flat(tree)) {
        return dn_tree_exchange(tree, in, out, len, 0);
    }
    if (0 != len) {
        memcpy(tree->room[0] + dn_tree_position_of(tree, tree->rank) * len, in, len);
    }
    dn_tree_describe_parts(tree, out, len);
    return dn_tree_all(tree, DN_TREE_GATHER, DN_TREE_GATHER, DN_TREE_SPREAD);
}

dn_status_t dn_tree_alltoall(dn_tree_t *tree, const void *in, void *out, size_t len)
{
    if (dn_tree_is_flat(tree)) {
        return dn_tree_exchange(tree, in, out, len, len);
    }
    for (uint32_t i = 0; i < tree->ranks && 0 != len; i++) {
        memcpy(tree->room[0] + i * len, (const uint8_t *) in + dn_tree_rank_at(tree, i) * len, len);
    }
    dn_tree_describe_parts(tree, out, len);
    return dn_tree_all(tree, DN_TREE_UP, DN_TREE_ACROSS, DN_TREE_DOWN);
}
/** @} */
