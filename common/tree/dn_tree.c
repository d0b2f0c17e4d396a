/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree.c
 * Creation and end of trees, and the slow path of links.
 */
#include "dn_config.h"

#include "dn_core.h"
#include "dn_tree_link.h"

#include <stdlib.h>
#include <string.h>

/** Look at the credit word that the other side writes. It may be as old as the link: so all of its 63 bits are compared. They never
 * wrap. */
static void dn_tree_read_credit(dn_tree_link_t *link)
{
    const uint64_t acked = link->sent - dn_tree_under_way(link);
    /* Pairs with the release of dn_aotf() in dn_tree_tell_now(): the peer has read the lines that it says are taken. */
    const uint64_t taken = dn_load_acquire(link->credit) & ~DN_TREE_GIVEN_UP;

    /* A peer that says it took what was not sent yet is not believed: no place would be free. */
    if (acked < taken && taken <= link->sent) {
        link->acked = (uint32_t) taken;
    }
}

/** The flag in the place of the line that is number @p i of those to be taken next, from 0 on. */
static uint64_t dn_tree_flag_ahead(const dn_tree_link_t *link, uint32_t i)
{
    return dn_load_acquire(&link->in[((uint32_t) link->taken + i) & (link->depth - 1)].flag);
}

/** Lines that have come and wait for their turn. */
static uint32_t dn_tree_waiting(const dn_tree_link_t *link)
{
    uint32_t lines = 0;

    /* As in dn_tree_look_marked(): a line of this lap, or it has not come. */
    while (lines < link->depth
           && ((uint32_t) dn_tree_flag_ahead(link, lines) | DN_TREE_MARK)
                  == (((uint32_t) link->taken + lines + 1) | DN_TREE_MARK)) {
        lines++;
    }
    return lines;
}

/** Look for what the other side has taken: in its credit word, and in lines of the other side that wait for their turn. */
int dn_tree_find_room(dn_tree_link_t *link)
{
    const uint32_t waiting = dn_tree_waiting(link);

    dn_tree_read_credit(link);
    if (0 != waiting) {
        /* The counts in lines do not fall: the last line says most. */
        dn_tree_heard(link, (uint32_t) (dn_tree_flag_ahead(link, waiting - 1) >> 32));
    }
    return dn_tree_under_way(link) < link->depth;
}

dn_status_t dn_tree_put_batch(dn_tree_link_t *link, const void *data, size_t len, size_t piece,
                              uint32_t lines, uint32_t mark)
{
    const dn_lines_t ring = {.off = link->out_off,
                             .depth = link->depth,
                             .at = (uint32_t) link->sent & (link->depth - 1),
                             .piece = (uint32_t) piece};
    const uint64_t flag = dn_tree_flag(link, mark);
    const dn_status_t status = dn_core_aotf_lines(link->peer, &ring, data, len, flag);

    if (DN_OK == status) {
        link->sent += lines;
        link->told = (uint32_t) link->taken;
    }
    return status;
}

static void dn_tree_tell_now(dn_tree_t *tree, dn_tree_link_t *link)
{
    const dn_status_t status = dn_aotf(link->peer, link->credit_off, link->taken, sizeof(uint64_t));

    if (DN_OK == status || DN_ERR_UNREACH == status) {
        /* Who has left in order waits for no credit; if it was lost, the next line to it or wait for it finds that. */
        link->told = (uint32_t) link->taken;
    } else if (DN_ERR_AGAIN == status) {
        tree->debts = 1;
    } else {
        tree->failed = 1;
    }
}

void dn_tree_tell(dn_tree_t *tree, dn_tree_link_t *link)
{
    if (0 != link->defers) {
        tree->debts = 1;
    } else {
        dn_tree_tell_now(tree, link);
    }
}

void dn_tree_pay(dn_tree_t *tree)
{
    tree->debts = 0;
    for (uint32_t i = 0; i < tree->groups; i++) {
        dn_tree_group_t *group = &tree->group[i];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m != group->self && dn_tree_owes(&group->link[m])) {
                dn_tree_tell_now(tree, &group->link[m]);
            }
        }
    }
}

void dn_tree_give_up(dn_tree_t *tree)
{
    tree->failed = 1;
    (void) dn_tree_tell_given_up(tree);
}

/**
 * Tell a member that the tree is given up, if it was not told. A member that was told may leave the tree, so the word is never written
 * again. Several threads may be here (dn_tree_warn()). The one that sets the bit writes the word. This is all that the bit decides, so it
 * orders no other access.
 * @return DN_ERR_AGAIN: it cannot be told now.
 */
static dn_status_t dn_tree_tell_member(dn_tree_group_t *group, uint32_t member)
{
    const dn_tree_link_t *link = &group->link[member];
    const uint64_t bit = dn_tree_bit(member);
    const uint64_t word = DN_TREE_GIVEN_UP | link->taken;

    if (0 != (dn_fetch_or_relaxed(&group->told, bit) & bit)) {
        return DN_OK;
    }
    const dn_status_t status = dn_aotf(link->peer, link->credit_off, word, sizeof(word));
    if (DN_ERR_AGAIN == status) {
        (void) dn_fetch_and_seq_cst(&group->told, ~bit);
    }
    return status;
}

dn_status_t dn_tree_tell_given_up(dn_tree_t *tree)
{
    dn_tree_op_t *op = &tree->op;

    for (; op->at < op->steps; op->at++, dn_tree_begin_step(tree)) {
        const dn_tree_step_t *step = &op->step[op->at];
        if (0 != op->put_to && op->put + op->batch < op->lines) {
            op->put_to = step->to;
        }
        op->put = op->lines - 1;
        op->batch = 1;
        for (; 0 != op->put_to; op->put_to &= op->put_to - 1) {
            const uint32_t member = (uint32_t) __builtin_ctzll(op->put_to);
            if (DN_ERR_AGAIN == dn_tree_tell_member(&tree->group[step->group], member)) {
                return DN_INPROGRESS;
            }
        }
    }
    dn_tree_warn(tree);
    return DN_ERR_UNREACH;
}

/**
 * A member whose ring is full waits for this process to take lines: all `depth` lines after the last that it was told of are here. Half of
 * them are enough to tell it. By them it is certain that the member has not left: dn_tree_free() waits while so many lines are not known
 * to be taken. `taken` and `told` do not change in a tree that is given up.
 */
void dn_tree_warn(dn_tree_t *tree)
{
    for (uint32_t g = 0; g < tree->groups; g++) {
        dn_tree_group_t *group = &tree->group[g];
        for (uint32_t m = 0; m < group->members; m++) {
            const dn_tree_link_t *link = &group->link[m];
            if (m != group->self
                && (uint32_t) link->taken - link->told + dn_tree_waiting(link) >= link->depth / 2) {
                (void) dn_tree_tell_member(group, m);
            }
        }
    }
}

/** Members to which lines of a step are still to go. */
static uint64_t dn_tree_left_to(const dn_tree_op_t *op, uint32_t at)
{
    return at != op->at || op->put + op->batch < op->lines ? op->step[at].to : op->put_to;
}

/** Has a member still to send lines of a step? Lines that have come may wait for their turn. */
static int dn_tree_left_from(const dn_tree_t *tree, uint32_t at, uint32_t member)
{
    const dn_tree_op_t *op = &tree->op;
    const dn_tree_step_t *step = &op->step[at];
    const int parts = DN_TREE_FOLD < step->use;
    uint32_t lines = parts ? dn_tree_parts_from(tree, step, member) : op->lines;

    if (at == op->at && member >= op->got_next) {
        lines = parts ? 0 : lines - op->got - 1;
    } else if (at == op->at) {
        lines -= !parts ? op->got : member + 1 == op->got_next ? op->part_got : 0;
    }
    return dn_tree_waiting(&tree->group[step->group].link[member]) < lines;
}

int dn_tree_needs(const dn_tree_t *tree, uint32_t rank)
{
    const dn_tree_op_t *op = &tree->op;

    for (uint32_t at = op->at; at < op->steps && !tree->failed; at++) {
        const dn_tree_group_t *group = &tree->group[op->step[at].group];
        const uint64_t to = dn_tree_left_to(op, at);
        for (uint64_t left = to | op->step[at].from; 0 != left; left &= left - 1) {
            const uint32_t member = (uint32_t) __builtin_ctzll(left);
            if (rank == dn_tree_member_rank(tree, group, member)
                && (0 != (to & dn_tree_bit(member)) || dn_tree_left_from(tree, at, member))) {
                return 1;
            }
        }
    }
    return 0;
}

int dn_tree_heed(dn_tree_t *tree)
{
    for (uint32_t i = 0; i < tree->groups && !tree->failed; i++) {
        const dn_tree_group_t *group = &tree->group[i];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m != group->self && 0 != (DN_TREE_GIVEN_UP & dn_load_acquire(group->link[m].credit))) {
                dn_tree_give_up(tree);
                break;
            }
        }
    }
    return tree->failed;
}

/** @name Life */
/** @{ */
static dn_status_t dn_tree_check(const dn_tree_config_t *config)
{
    const int sized = 4 <= config->depth && DN_TREE_DEPTH_MAX >= config->depth
                      && 0 == (config->depth & (config->depth - 1));

    return 2 <= config->ranks && config->rank < config->ranks && 2 <= config->radix
                   && DN_TREE_RADIX_MAX >= config->radix && sized
               ? DN_OK
               : DN_ERR_PARAM;
}

static void dn_tree_destroy(dn_tree_t *tree)
{
    dn_tree_shape_free(tree);
    free(tree->room[0]);
    free(tree);
}

/** Make a tree with its groups, but without links. */
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
    status = dn_tree_shape(tree, config);
    if (DN_OK != status) {
        dn_tree_destroy(tree);
        return status;
    }
    for (uint32_t i = 0; i < tree->groups; i++) {
        tree->llcm_bytes += dn_tree_group_bytes(&tree->group[i]);
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

/** Set this process' end of the links of a group whose part of LLCM begins at @p off. */
static dn_status_t dn_tree_open_links(dn_tree_t *tree, dn_tree_group_t *group, uint64_t off)
{
    const uint32_t others = group->members - 1;

    group->link = aligned_alloc(64, group->members * sizeof(*group->link));
    if (NULL == group->link) {
        return DN_ERR_NOMEM;
    }
    memset(group->link, 0, group->members * sizeof(*group->link));
    dn_tree_line_t *lines = (dn_tree_line_t *) (tree->llcm + (off - tree->llcm_off));
    uint64_t *credit = (uint64_t *) (lines + (size_t) others * group->depth);
    for (size_t i = 0; i < (size_t) others * group->depth; i++) {
        /* In the place of the lap before, whose numbers differ from those of the first lap; zeros could be one of them. */
        lines[i].flag = (uint32_t) tree->first;
    }
    for (uint32_t m = 0; m < group->members; m++) {
        dn_tree_link_t *link = &group->link[m];
        const uint32_t seat = dn_tree_seat(group->self, m);
        if (m == group->self) {
            continue;
        }
        link->depth = group->depth;
        link->in = lines + (size_t) seat * group->depth;
        link->credit = credit + seat;
        /* Nothing was said, as after any number of lines that said in themselves what was taken. */
        credit[seat] = 0;
        link->sent = link->taken = tree->first;
        link->acked = link->told = (uint32_t) tree->first;
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
    tree->first = dn_first(port);
    status = dn_llcm_alloc(port, tree->llcm_bytes, &tree->llcm_off, &llcm);
    if (DN_OK != status) {
        dn_tree_destroy(tree);
        return status;
    }
    tree->llcm = llcm;
    status = dn_tree_room_alloc(tree);
    memset(card, 0, sizeof(*card));
    uint64_t off = tree->llcm_off;
    for (uint32_t i = 0; i < tree->groups && DN_OK == status; i++) {
        dn_tree_group_t *group = &tree->group[i];
        card->off[group->level] = (uint32_t) off;
        status = dn_tree_open_links(tree, group, off);
        off += dn_tree_group_bytes(group);
    }
    if (DN_OK != status) {
        dn_llcm_free(port, tree->llcm_off, tree->llcm_bytes);
        dn_tree_destroy(tree);
        return status;
    }
    *tree_p = tree;
    return DN_OK;
}

void dn_tree_set_spin(dn_tree_t *tree, uint32_t looks)
{
    tree->spin = looks;
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
    tree->pair = 2 == tree->ranks ? &tree->group[0].link[1 - tree->group[0].self] : NULL;
    for (uint32_t g = 0; g < tree->groups; g++) {
        dn_tree_group_t *group = &tree->group[g];
        group->mapped = 1;
        group->batch = group->depth;
        for (uint32_t m = 0; m < group->members; m++) {
            if (m == group->self) {
                continue;
            }
            dn_tree_link_t *link = &group->link[m];
            const uint32_t rank = dn_tree_member_rank(tree, group, m);
            const uint32_t seat = dn_tree_seat(m, group->self);
            const uint32_t there = card[rank].off[group->level];
            link->peer = peer[rank];
            link->out_off = there + seat * group->depth * (uint32_t) sizeof(dn_tree_line_t);
            link->credit_off = there + (group->members - 1) * group->depth * (uint32_t) sizeof(dn_tree_line_t)
                               + seat * (uint32_t) sizeof(uint64_t);
            dn_peer_attr(link->peer, &attr);
            group->mapped = group->mapped && 0 != (attr.caps & DN_CAP_MAP);
            const uint32_t most = dn_core_lines_max(link->peer);
            group->batch = most < group->batch ? most : group->batch;
            link->defers = 1 < most;
        }
        tree->mapped = tree->mapped && group->mapped;
    }
}

/** Is it certain that no peer writes into the tree's LLCM any more? */
static int dn_tree_quiet(const dn_tree_t *tree)
{
    for (uint32_t g = 0; g < tree->groups; g++) {
        const dn_tree_group_t *group = &tree->group[g];
        for (uint32_t m = 0; m < group->members; m++) {
            if (m == group->self) {
                continue;
            }
            dn_tree_link_t *link = &group->link[m];
            dn_tree_read_credit(link);
            if (dn_tree_under_way(link) >= link->depth / 2) {
                return 0;
            }
        }
    }
    return 1;
}

dn_status_t dn_tree_free(dn_tree_t *tree)
{
    if (tree->failed || !dn_tree_quiet(tree)) {
        return DN_INPROGRESS;
    }
    dn_llcm_free(tree->port, tree->llcm_off, tree->llcm_bytes);
    dn_tree_destroy(tree);
    return DN_OK;
}

void dn_tree_abandon(dn_tree_t *tree)
{
    dn_tree_destroy(tree);
}

int dn_tree_ordered(const dn_tree_t *tree)
{
    return tree->ordered;
}

int dn_tree_is_flat(const dn_tree_t *tree)
{
    return tree->ranks == tree->group[0].members;
}

uint32_t dn_tree_lines(const dn_tree_t *tree)
{
    return DN_TREE_LINES < tree->lines ? DN_TREE_LINES : tree->lines;
}

size_t dn_tree_scan_max(const dn_tree_t *tree, size_t size)
{
    return dn_tree_is_flat(tree) && tree->ordered ? DN_AOTF_LINE_MAX / size * size * dn_tree_lines(tree) : 0;
}

int dn_tree_is_mapped(const dn_tree_t *tree)
{
    return tree->mapped;
}

int dn_tree_waits_near(const dn_tree_t *tree)
{
    const dn_tree_op_t *op = &tree->op;

    return tree->mapped || (op->at < op->steps && tree->group[op->step[op->at].group].mapped);
}

uint64_t dn_tree_steps(const dn_tree_t *tree)
{
    const dn_tree_op_t *op = &tree->op;

    return ((uint64_t) op->at << 56 | (uint64_t) op->got << 40 | (uint64_t) op->got_next << 32) + op->put
           + op->part_put + op->part_got;
}
/** @} */
