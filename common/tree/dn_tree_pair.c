/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_pair.c
 * Operations of one line between two processes. They do what dn_tree_op.c does, in fewer steps, since small jobs use them most. Where
 * a line does not go or come at once, the operation is described as any other, and dn_tree_test() goes on with it.
 */
#include "dn_config.h"

#include "dn_tree_link.h"

#include "dn_line.h"

/** Has a tree of two nothing else to do? */
static inline int dn_tree_is_idle_pair(const dn_tree_t *tree)
{
    return NULL != tree->pair && !tree->debts && !tree->failed;
}

/** The next line, if it comes within dn_tree_set_spin() looks. */
static inline const uint8_t *dn_tree_expect(const dn_tree_t *tree, dn_tree_link_t *link)
{
    const uint8_t *data = dn_tree_look(link);

    for (uint32_t polls = tree->spin; NULL == data && 0 != polls; polls--) {
        data = dn_tree_look(link);
    }
    return data;
}

/** End the operation: the line of the other side has been used. */
static inline dn_status_t dn_tree_end_pair(dn_tree_t *tree)
{
    dn_tree_take(tree, tree->pair);
    return __builtin_expect(tree->debts || tree->failed, 0) ? dn_tree_test(tree) : DN_OK;
}

/** Describe the operation, which has one step, and go on with it. @param sent  not 0: the own line has gone. */
static __attribute__((noinline)) dn_status_t dn_tree_go_on(dn_tree_t *tree, int sends, int sent, int receives,
                                                           dn_tree_use_t use)
{
    const uint64_t other = dn_tree_others(&tree->group[0]);

    dn_tree_step(tree, 0, sends ? other : 0, receives ? other : 0, use);
    dn_tree_begin_step(tree);
    if (sent) {
        tree->op.put = 1;
        tree->op.put_to = 0;
    }
    return dn_tree_test(tree);
}

static inline dn_status_t dn_tree_pair_barrier(dn_tree_t *tree)
{
    const int sent = DN_OK == dn_tree_put(tree->pair, NULL, 0, 0);

    if (__builtin_expect(sent && NULL != dn_tree_expect(tree, tree->pair), 1)) {
        return dn_tree_end_pair(tree);
    }
    dn_tree_describe(tree, NULL, NULL, 0, DN_AOTF_LINE_MAX);
    return dn_tree_go_on(tree, 1, sent, 1, DN_TREE_IGNORE);
}

/** Fold the own operand and that of the other side, which came as @p data, in the order of ranks. */
static inline void dn_tree_fold_pair(dn_tree_t *tree, const void *in, void *out, size_t count,
                                     const uint8_t *data, const dn_tree_reduction_t *reduction)
{
    const size_t len = count * reduction->size;

    if (0 != tree->group[0].self) {
        if (in != out) {
            dn_copy_inline(out, in, len);
        }
        reduction->fold(reduction, data, out, count);
    } else if (in != out) {
        dn_copy_inline(out, data, len);
        reduction->fold(reduction, in, out, count);
    } else {
        dn_copy_inline(tree->op.fold, data, len);
        reduction->fold(reduction, in, tree->op.fold, count);
        dn_copy_inline(out, tree->op.fold, len);
    }
}

static inline dn_status_t dn_tree_pair_reduce(dn_tree_t *tree, int sends, int receives, const void *in,
                                              void *out, size_t count, const dn_tree_reduction_t *reduction)
{
    const size_t len = count * reduction->size;
    const int sent = sends && DN_OK == dn_tree_put(tree->pair, in, len, 0);

    if (__builtin_expect(sent == sends, 1)) {
        const uint8_t *data = receives ? dn_tree_expect(tree, tree->pair) : NULL;
        if (!receives) {
            return DN_OK;
        }
        if (__builtin_expect(NULL != data, 1)) {
            dn_tree_fold_pair(tree, in, out, count, data, reduction);
            return dn_tree_end_pair(tree);
        }
    }
    dn_tree_describe(tree, in, out, len, DN_AOTF_LINE_MAX);
    tree->op.reduction = reduction;
    return dn_tree_go_on(tree, sends, sent, receives, DN_TREE_FOLD);
}

static inline dn_status_t dn_tree_pair_bcast(dn_tree_t *tree, int sends, void *buf, size_t len)
{
    if (sends) {
        if (__builtin_expect(DN_OK == dn_tree_put(tree->pair, buf, len, 0), 1)) {
            return DN_OK;
        }
    } else {
        const uint8_t *data = dn_tree_expect(tree, tree->pair);
        if (__builtin_expect(NULL != data, 1)) {
            dn_copy_inline(buf, data, len);
            return dn_tree_end_pair(tree);
        }
    }
    dn_tree_describe(tree, buf, buf, len, DN_AOTF_LINE_MAX);
    return dn_tree_go_on(tree, sends, 0, !sends, DN_TREE_STORE);
}

dn_status_t dn_tree_barrier(dn_tree_t *tree)
{
    return __builtin_expect(dn_tree_is_idle_pair(tree), 1) ? dn_tree_pair_barrier(tree)
                                                           : dn_tree_start_barrier(tree);
}

dn_status_t dn_tree_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len)
{
    if (DN_AOTF_LINE_MAX >= len && dn_tree_is_idle_pair(tree)) {
        return dn_tree_pair_bcast(tree, root == tree->rank, buf, len);
    }
    return dn_tree_start_bcast(tree, root, buf, len);
}

dn_status_t dn_tree_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                           const dn_tree_reduction_t *reduction)
{
    const int is_root = root == tree->rank;

    if (DN_AOTF_LINE_MAX >= count * reduction->size && dn_tree_is_idle_pair(tree)) {
        return dn_tree_pair_reduce(tree, !is_root, is_root, in, out, count, reduction);
    }
    return dn_tree_start_reduce(tree, root, in, out, count, reduction);
}

dn_status_t dn_tree_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                              const dn_tree_reduction_t *reduction)
{
    if (DN_AOTF_LINE_MAX >= count * reduction->size && dn_tree_is_idle_pair(tree)) {
        return dn_tree_pair_reduce(tree, 1, 1, in, out, count, reduction);
    }
    return dn_tree_start_allreduce(tree, in, out, count, reduction);
}

/** Either scan. @param folded  as of dn_tree_start_scan(). */
static inline dn_status_t dn_tree_scan_up_to(dn_tree_t *tree, const void *in, void *out, size_t count,
                                             uint32_t folded, const dn_tree_reduction_t *reduction)
{
    const size_t len = count * reduction->size;
    const int sends = 0 == tree->rank;

    if (DN_AOTF_LINE_MAX < len || !dn_tree_is_idle_pair(tree)) {
        return dn_tree_start_scan(tree, in, out, count, folded, reduction);
    }
    if (folded == tree->rank) {
        return dn_tree_pair_bcast(tree, sends, sends ? (void *) (uintptr_t) in : out, len);
    }
    if (sends && in != out) {
        dn_copy_inline(out, in, len);
    }
    return dn_tree_pair_reduce(tree, sends, !sends, in, out, count, reduction);
}

dn_status_t dn_tree_scan(dn_tree_t *tree, const void *in, void *out, size_t count,
                         const dn_tree_reduction_t *reduction)
{
    return dn_tree_scan_up_to(tree, in, out, count, tree->rank + 1, reduction);
}

dn_status_t dn_tree_exscan(dn_tree_t *tree, const void *in, void *out, size_t count,
                           const dn_tree_reduction_t *reduction)
{
    return dn_tree_scan_up_to(tree, in, out, count, tree->rank, reduction);
}
