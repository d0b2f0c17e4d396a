/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_tree_int.h"

#include <stdlib.h>
#include <string.h>

#include "dn_line.h"

/** @name Links */
/** @{ */
/** The other side has taken so many of our lines, unless that is old news. */
static inline void dn_tree_heard(dn_tree_link_t *link, uint32_t taken)
{
    if (0 < (int32_t) (taken - link->acked)) {
        link->acked = taken;
    }
}

/** What the other side has taken is in its word, or in lines of its that wait for their turn. */
static __attribute__((noinline)) int dn_tree_find_room(const dn_tree_t *tree, dn_tree_link_t *link)
{
    dn_tree_heard(link, (uint32_t) dn_load_acquire(link->credit));
    for (uint32_t number = link->taken + 1; number - link->taken <= tree->depth; number++) {
        const uint64_t flag = dn_load_acquire(&link->in[(number - 1) & (tree->depth - 1)].flag);
        if ((uint32_t) flag != number) {
            break;
        }
        dn_tree_heard(link, (uint32_t) (flag >> 32));
    }
    return link->sent - link->acked < tree->depth;
}

static inline int dn_tree_has_room(const dn_tree_t *tree, dn_tree_link_t *link)
{
    return __builtin_expect(link->sent - link->acked < tree->depth, 1) || dn_tree_find_room(tree, link);
}

/** Send one line. DN_ERR_AGAIN: not now. */
static inline dn_status_t dn_tree_put(dn_tree_t *tree, dn_tree_link_t *link, const void *data, size_t len)
{
    if (!dn_tree_has_room(tree, link)) {
        return DN_ERR_AGAIN;
    }
    const uint64_t off = link->out_off + (uint64_t) (link->sent & (tree->depth - 1)) * sizeof(dn_tree_line_t);
    const uint64_t flag = (uint64_t) (link->sent + 1) | (uint64_t) link->taken << 32;
    const dn_status_t status = dn_aotf_line(link->peer, off, data, len, flag);
    if (__builtin_expect(DN_OK == status, 1)) {
        link->sent++;
        link->told = link->taken;
    }
    return status;
}

/** The next line of a link, or NULL. */
static inline const uint8_t *dn_tree_look(const dn_tree_t *tree, dn_tree_link_t *link)
{
    const dn_tree_line_t *line = &link->in[link->taken & (tree->depth - 1)];
    const uint64_t flag = dn_load_acquire(&line->flag);

    if ((uint32_t) flag != link->taken + 1) {
        return NULL;
    }
    dn_tree_heard(link, (uint32_t) (flag >> 32));
    return line->data;
}

/** Has the other side to be told what was taken? It may wait for room. */
static inline int dn_tree_owes(const dn_tree_t *tree, const dn_tree_link_t *link)
{
    return link->taken - link->told >= tree->depth / 2;
}

/** Tell it. */
static void dn_tree_tell(dn_tree_t *tree, dn_tree_link_t *link)
{
    const dn_status_t status = dn_aotf(link->peer, link->credit_off, link->taken, sizeof(uint64_t));

    if (DN_OK == status) {
        link->told = link->taken;
    } else if (DN_ERR_AGAIN == status) {
        tree->debts = 1;
    } else {
        tree->failed = 1;
    }
}

/** Done with the line that dn_tree_look() showed. */
static inline void dn_tree_take(dn_tree_t *tree, dn_tree_link_t *link)
{
    link->taken++;
    if (__builtin_expect(dn_tree_owes(tree, link), 0)) {
        dn_tree_tell(tree, link);
    }
}

/** Tell those who could not be told. */
static __attribute__((noinline)) void dn_tree_pay(dn_tree_t *tree)
{
    tree->debts = 0;
    for (uint32_t i = 0; i < tree->groups; i++) {
        dn_tree_group_t *group = &tree->group[i];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m != group->self && dn_tree_owes(tree, &group->link[m])) {
                dn_tree_tell(tree, &group->link[m]);
            }
        }
    }
}
/** @} */

/** @name Life */
/** @{ */
static dn_status_t dn_tree_check(const dn_tree_config_t *config)
{
    const int sized = 4 <= config->depth && 64 >= config->depth && 0 == (config->depth & (config->depth - 1));

    return 2 <= config->ranks && config->rank < config->ranks && 2 <= config->radix
                   && DN_TREE_RADIX_MAX >= config->radix && sized
               ? DN_OK
               : DN_ERR_PARAM;
}

static void dn_tree_destroy(dn_tree_t *tree)
{
    dn_tree_shape_free(tree);
    free(tree);
}

/** A tree with its groups, but without links. */
static dn_status_t dn_tree_make(const dn_tree_config_t *config, dn_tree_t **tree_p)
{
    dn_status_t status = dn_tree_check(config);
    if (DN_OK != status) {
        return status;
    }
    dn_tree_t *tree = aligned_alloc(_Alignof(dn_tree_t), sizeof(*tree));
    if (NULL == tree) {
        return DN_ERR_NOMEM;
    }
    memset(tree, 0, sizeof(*tree));
    tree->ranks = config->ranks;
    tree->rank = config->rank;
    tree->depth = config->depth;
    tree->first = config->first;
    status = dn_tree_shape(tree, config);
    if (DN_OK != status) {
        dn_tree_destroy(tree);
        return status;
    }
    for (uint32_t i = 0; i < tree->groups; i++) {
        tree->llcm_bytes += dn_tree_group_bytes(tree->group[i].members, tree->depth);
    }
    *tree_p = tree;
    return DN_OK;
}

dn_status_t dn_tree_llcm_bytes(const dn_tree_config_t *config, size_t *bytes_p)
{
    dn_tree_t *tree;
    const dn_status_t status = dn_tree_make(config, &tree);

    if (DN_OK == status) {
        *bytes_p = tree->llcm_bytes;
        dn_tree_destroy(tree);
    }
    return status;
}

/** Set our end of the links of a group whose part of LLCM begins at @p off. */
static dn_status_t dn_tree_open_links(dn_tree_t *tree, dn_tree_group_t *group, uint64_t off)
{
    const uint32_t others = group->members - 1;

    group->link = aligned_alloc(64, group->members * sizeof(*group->link));
    if (NULL == group->link) {
        return DN_ERR_NOMEM;
    }
    memset(group->link, 0, group->members * sizeof(*group->link));
    dn_tree_line_t *lines = (dn_tree_line_t *) (tree->llcm + (off - tree->llcm_off));
    uint64_t *credit = (uint64_t *) (lines + (size_t) others * tree->depth);
    for (size_t i = 0; i < (size_t) others * tree->depth; i++) {
        /* Zeros would be the number of a line, once in 2^32. */
        lines[i].flag = tree->first;
    }
    for (uint32_t m = 0; m < group->members; m++) {
        dn_tree_link_t *link = &group->link[m];
        const uint32_t seat = dn_tree_seat(group->self, m);
        if (m == group->self) {
            continue;
        }
        link->in = lines + (size_t) seat * tree->depth;
        link->credit = credit + seat;
        credit[seat] = tree->first;
        link->sent = link->acked = link->taken = link->told = tree->first;
    }
    return DN_OK;
}

dn_status_t dn_tree_create(dn_port_t *port, const dn_tree_config_t *config, dn_tree_card_t *card,
                           dn_tree_t **tree_p)
{
    dn_tree_t *tree;
    void *llcm;

    dn_status_t status = dn_tree_make(config, &tree);
    if (DN_OK != status) {
        return status;
    }
    tree->port = port;
    status = dn_llcm_alloc(port, tree->llcm_bytes, &tree->llcm_off, &llcm);
    if (DN_OK != status) {
        dn_tree_destroy(tree);
        return status;
    }
    tree->llcm = llcm;
    memset(card, 0, sizeof(*card));
    uint64_t off = tree->llcm_off;
    for (uint32_t i = 0; i < tree->groups && DN_OK == status; i++) {
        dn_tree_group_t *group = &tree->group[i];
        card->off[group->level] = (uint32_t) off;
        status = dn_tree_open_links(tree, group, off);
        off += dn_tree_group_bytes(group->members, tree->depth);
    }
    if (DN_OK != status) {
        dn_llcm_free(port, tree->llcm_off, tree->llcm_bytes);
        dn_tree_destroy(tree);
        return status;
    }
    *tree_p = tree;
    return DN_OK;
}

/** The rank of a member. */
static uint32_t dn_tree_member_rank(const dn_tree_t *tree, const dn_tree_group_t *group, uint32_t member)
{
    return tree->at[group->start[member]];
}

int64_t dn_tree_linked(const dn_tree_t *tree, size_t i)
{
    for (uint32_t g = 0; g < tree->groups; g++) {
        const dn_tree_group_t *group = &tree->group[g];
        if (i < group->members - 1) {
            return dn_tree_member_rank(tree, group, (uint32_t) (i < group->self ? i : i + 1));
        }
        i -= group->members - 1;
    }
    return -1;
}

void dn_tree_connect(dn_tree_t *tree, const dn_tree_card_t *card, dn_peer_t *const *peer)
{
    dn_peer_attr_t attr;

    tree->mapped = 1;
    for (uint32_t g = 0; g < tree->groups; g++) {
        dn_tree_group_t *group = &tree->group[g];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m == group->self) {
                continue;
            }
            dn_tree_link_t *link = &group->link[m];
            const uint32_t rank = dn_tree_member_rank(tree, group, m);
            const uint32_t seat = dn_tree_seat(m, group->self);
            const uint64_t there = card[rank].off[group->level];
            link->peer = peer[rank];
            link->out_off = there + (uint64_t) seat * tree->depth * sizeof(dn_tree_line_t);
            link->credit_off = there + (uint64_t) (group->members - 1) * tree->depth * sizeof(dn_tree_line_t)
                               + seat * sizeof(uint64_t);
            dn_peer_attr(link->peer, &attr);
            tree->mapped = tree->mapped && 0 != (attr.caps & DN_CAP_MAP);
        }
    }
}

/** May no peer write into our LLCM any more? */
static int dn_tree_quiet(const dn_tree_t *tree)
{
    for (uint32_t g = 0; g < tree->groups; g++) {
        const dn_tree_group_t *group = &tree->group[g];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m == group->self) {
                continue;
            }
            dn_tree_link_t *link = &group->link[m];
            dn_tree_heard(link, (uint32_t) dn_load_acquire(link->credit));
            if (link->sent - link->acked >= tree->depth / 2) {
                return 0;
            }
        }
    }
    return 1;
}

dn_status_t dn_tree_free(dn_tree_t *tree)
{
    if (!dn_tree_quiet(tree)) {
        return DN_INPROGRESS;
    }
    dn_llcm_free(tree->port, tree->llcm_off, tree->llcm_bytes);
    dn_tree_destroy(tree);
    return DN_OK;
}

int dn_tree_ordered(const dn_tree_t *tree)
{
    return tree->ordered;
}

int dn_tree_is_flat(const dn_tree_t *tree)
{
    return tree->ranks == tree->group[0].members;
}

int dn_tree_is_mapped(const dn_tree_t *tree)
{
    return tree->mapped;
}
/** @} */

/** @name Steps */
/** @{ */
static void dn_tree_begin_step(dn_tree_t *tree)
{
    dn_tree_op_t *op = &tree->op;

    if (op->at < op->steps) {
        op->put = 0;
        op->got = 0;
        op->put_to = op->step[op->at].to;
        op->got_next = tree->group[op->step[op->at].group].members;
    }
}

/** Bytes of a line of the operation. */
static inline size_t dn_tree_line_len(const dn_tree_op_t *op, uint32_t line)
{
    const size_t left = op->len - line * op->piece;
    return left < op->piece ? left : op->piece;
}

/** Send the lines of the step, as far as there is room. */
static dn_status_t dn_tree_send(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    dn_tree_group_t *group = &tree->group[step->group];

    while (0 != op->put_to) {
        const uint32_t member = (uint32_t) __builtin_ctzll(op->put_to);
        const uint8_t *data = op->in + op->put * op->piece;
        if (0 != op->in_stride) {
            data += op->in_stride * dn_tree_member_rank(tree, group, member);
        }
        const dn_status_t status =
            dn_tree_put(tree, &group->link[member], data, dn_tree_line_len(op, op->put));
        if (DN_OK != status) {
            return status;
        }
        op->put_to &= op->put_to - 1;
        if (0 == op->put_to) {
            op->put++;
            op->put_to = op->put < op->lines ? step->to : 0;
        }
    }
    return DN_OK;
}

/** Use a member's share of the line under way: what it sent, or our own. */
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
        if (member == tree->group[step->group].members - 1) {
            dn_copy_inline(op->fold, data, len);
        } else {
            op->reduction->fold(op->reduction, data, op->fold, len / op->reduction->size);
        }
    }
}

/** Receive lines of the step, as far as they are there. @return not 0: all are. */
static int dn_tree_receive(dn_tree_t *tree, const dn_tree_step_t *step)
{
    dn_tree_op_t *op = &tree->op;
    dn_tree_group_t *group = &tree->group[step->group];
    /* In an exchange a result may be put where what is to be sent lies. */
    const uint32_t lines = 0 != step->to ? op->put : op->lines;

    for (; op->got < lines; op->got++, op->got_next = group->members) {
        while (0 != op->got_next) {
            const uint32_t member = op->got_next - 1;
            if (member == group->self && DN_TREE_FOLD == step->use) {
                dn_tree_use(tree, step, member, op->in + op->got * op->piece);
            } else if (0 != (step->from & (UINT64_C(1) << member))) {
                const uint8_t *data = dn_tree_look(tree, &group->link[member]);
                if (NULL == data) {
                    return 0;
                }
                dn_tree_use(tree, step, member, data);
                dn_tree_take(tree, &group->link[member]);
            }
            op->got_next--;
        }
        if (DN_TREE_FOLD == step->use) {
            dn_copy_inline(op->out + op->got * op->piece, op->fold, dn_tree_line_len(op, op->got));
        }
    }
    return op->got == op->lines;
}

/** One step. */
static dn_status_t dn_tree_run_step(dn_tree_t *tree, const dn_tree_step_t *step)
{
    const dn_status_t status = dn_tree_send(tree, step);

    if (DN_OK != status && DN_ERR_AGAIN != status) {
        tree->failed = 1;
        return status;
    }
    if (0 != step->from && !dn_tree_receive(tree, step)) {
        return DN_INPROGRESS;
    }
    return DN_OK == status ? DN_OK : DN_INPROGRESS;
}

dn_status_t dn_tree_test(dn_tree_t *tree)
{
    dn_tree_op_t *op = &tree->op;

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
        return DN_ERR_UNREACH;
    }
    return tree->debts ? DN_INPROGRESS : DN_OK;
}
/** @} */

/** @name Operations */
/** @{ */
static inline uint64_t dn_tree_bit(uint32_t member)
{
    return UINT64_C(1) << member;
}

static inline uint64_t dn_tree_others(const dn_tree_group_t *group)
{
    return ((DN_TREE_RADIX_MAX == group->members ? 0 : dn_tree_bit(group->members)) - 1)
           & ~dn_tree_bit(group->self);
}

static void dn_tree_step(dn_tree_t *tree, uint32_t group, uint64_t to, uint64_t from, dn_tree_use_t use)
{
    tree->op.step[tree->op.steps++] =
        (dn_tree_step_t){.to = to, .from = from, .group = (uint8_t) group, .use = (uint8_t) use};
}

/** All others to one member, or one to all others, seen from us. */
static void dn_tree_step_in(dn_tree_t *tree, uint32_t g, uint32_t root, dn_tree_use_t use)
{
    const dn_tree_group_t *group = &tree->group[g];

    if (root == group->self) {
        dn_tree_step(tree, g, 0, dn_tree_others(group), use);
    } else {
        dn_tree_step(tree, g, dn_tree_bit(root), 0, DN_TREE_IGNORE);
    }
}

static void dn_tree_step_out(dn_tree_t *tree, uint32_t g, uint32_t root, dn_tree_use_t use)
{
    const dn_tree_group_t *group = &tree->group[g];

    if (root == group->self) {
        dn_tree_step(tree, g, dn_tree_others(group), 0, DN_TREE_IGNORE);
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

/** Begin to describe an operation. */
static void dn_tree_describe(dn_tree_t *tree, const void *in, void *out, size_t len, size_t piece)
{
    dn_tree_op_t *op = &tree->op;

    op->steps = 0;
    op->at = 0;
    op->in = in;
    op->out = out;
    op->len = len;
    op->in_stride = 0;
    op->out_stride = 0;
    op->piece = piece;
    op->lines = len <= piece ? 1 : (uint32_t) ((len + piece - 1) / piece);
}

static dn_status_t dn_tree_start(dn_tree_t *tree)
{
    dn_tree_begin_step(tree);
    return dn_tree_test(tree);
}

/** From all to the first of each group up to the top, where all exchange; and back. */
static dn_status_t dn_tree_all(dn_tree_t *tree, dn_tree_use_t use)
{
    const uint32_t last = tree->groups - 1;
    const dn_tree_use_t back = DN_TREE_IGNORE == use ? DN_TREE_IGNORE : DN_TREE_STORE;

    for (uint32_t g = 0; g < last; g++) {
        dn_tree_step_in(tree, g, 0, use);
    }
    if (dn_tree_is_top(tree, &tree->group[last])) {
        const uint64_t others = dn_tree_others(&tree->group[last]);
        dn_tree_step(tree, last, others, others, use);
    } else {
        dn_tree_step_in(tree, last, 0, use);
        dn_tree_step_out(tree, last, 0, back);
    }
    for (uint32_t g = last; 0 < g; g--) {
        dn_tree_step_out(tree, g - 1, 0, back);
    }
    return dn_tree_start(tree);
}

dn_status_t dn_tree_barrier(dn_tree_t *tree)
{
    dn_tree_describe(tree, NULL, NULL, 0, DN_AOTF_LINE_MAX);
    return dn_tree_all(tree, DN_TREE_IGNORE);
}

dn_status_t dn_tree_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                              const dn_tree_reduction_t *reduction)
{
    dn_tree_describe(tree, in, out, count * reduction->size,
                     DN_AOTF_LINE_MAX / reduction->size * reduction->size);
    tree->op.reduction = reduction;
    return dn_tree_all(tree, DN_TREE_FOLD);
}

dn_status_t dn_tree_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len)
{
    const uint32_t last = tree->groups - 1;
    uint32_t member = DN_TREE_NONE;
    uint32_t g = 0;

    dn_tree_describe(tree, buf, buf, len, DN_AOTF_LINE_MAX);
    while (g <= last
           && DN_TREE_NONE == (member = dn_tree_standing_for(&tree->group[g], tree->position[root]))) {
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

/** From the top down to @p root: what the one that stands for it has. */
static void dn_tree_pass_down(dn_tree_t *tree, uint32_t g, uint32_t root)
{
    const dn_tree_group_t *group = &tree->group[g];
    const uint32_t member = dn_tree_standing_for(group, tree->position[root]);

    if (DN_TREE_NONE == member || 0 == member) {
        return;
    }
    if (0 == group->self) {
        dn_tree_step(tree, g, dn_tree_bit(member), 0, DN_TREE_IGNORE);
    } else if (member == group->self) {
        dn_tree_step(tree, g, 0, dn_tree_bit(0), DN_TREE_STORE);
    }
}

dn_status_t dn_tree_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                           const dn_tree_reduction_t *reduction)
{
    const uint32_t last = tree->groups - 1;

    dn_tree_describe(tree, in, root == tree->rank ? out : tree->scratch, count * reduction->size,
                     DN_AOTF_LINE_MAX / reduction->size * reduction->size);
    tree->op.reduction = reduction;
    for (uint32_t g = 0; g < last; g++) {
        dn_tree_step_in(tree, g, 0, DN_TREE_FOLD);
    }
    if (dn_tree_is_top(tree, &tree->group[last])) {
        dn_tree_step_in(tree, last, dn_tree_standing_for(&tree->group[last], tree->position[root]),
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

/** Everybody to everybody in a flat tree, and our own block to ourselves. */
static dn_status_t dn_tree_exchange(dn_tree_t *tree, const uint8_t *in, uint8_t *out, size_t len,
                                    size_t in_stride)
{
    const uint64_t others = dn_tree_others(&tree->group[0]);
    const uint8_t *own = in + in_stride * tree->rank;

    dn_tree_describe(tree, in, out, len, DN_AOTF_LINE_MAX);
    tree->op.in_stride = in_stride;
    tree->op.out_stride = len;
    if (own != out + len * tree->rank && 0 != len) {
        memcpy(out + len * tree->rank, own, len);
    }
    dn_tree_step(tree, 0, others, others, DN_TREE_STORE);
    return dn_tree_start(tree);
}

dn_status_t dn_tree_allgather(dn_tree_t *tree, const void *in, void *out, size_t len)
{
    return dn_tree_exchange(tree, in, out, len, 0);
}

dn_status_t dn_tree_alltoall(dn_tree_t *tree, const void *in, void *out, size_t len)
{
    return dn_tree_exchange(tree, in, out, len, len);
}
/** @} */
