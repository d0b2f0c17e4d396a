/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree.h
 * Barrier, broadcast, reductions and small exchanges in lines of LLCM (AOTF paper, section 5).
 *
 * Members of a group write lines into each other's LLCM. Up to `radix` processes of a host are one group, in
 * which everybody writes to everybody: one line's time. More, or those of several hosts, are a tree of
 * groups: those that are close together (a cache, a NUMA node, a package, a host) are grouped first, the
 * first of a group represents it in the next one.
 *
 * Between two members there is a link: `depth` lines each way, used in turn. The flag of a line is
 *
 *   number of the line:32 | lines taken from the other direction:32
 *
 * where the uppermost bit of the number is turned over in lines of an exchange that a process has marked (dn_tree_mark()).
 * So no flag is ever cleared, and a number is met again only after 2^32 lines, when its place has held others
 * since. A line is written when the number of lines under way is below `depth`. What the other side has taken
 * comes back in its own lines; a side that takes half of them and has nothing to send says so in a word of
 * the other's LLCM, which counts in 63 bits: it may stand still for as long as lines do without it. So
 * consecutive collectives cannot overwrite each other, whatever they are: a broadcast's root runs ahead by at
 * most `depth` lines.
 *
 * Each line is taken by the operation that it is for. So when a process has done its part of all operations, no peer
 * writes lines to it any more. A peer may still write its word: it does so once it has taken half of a link's lines since it
 * last said how many. So the word may come while this process does not know of `depth` / 2 or more of its lines that they were
 * taken, and never while there are fewer. That is how dn_tree_free() knows when the memory may go.
 *
 * Operations are started, then tested until they are complete; nothing here waits (but for the few looks of
 * dn_tree_set_spin()), reads a clock or calls dn_progress(): the caller does between two tests. Every
 * operation has to be called by all processes of the tree, in the same order. One at a time is under way.
 *
 * Results: a reduction folds the values of a group from its last member to its first, x0 op (x1 op (x2 ...)),
 * and values of groups in the same way. All processes get the same bits, and get them again in each run of
 * the same shape. Where dn_tree_ordered() says so this is the order of ranks, as operations that do not
 * commute need it.
 *
 * A process that is gone sends no lines. Members that wait for its lines learn of that from elsewhere
 * (dn_lost_set()) and give the tree up, which tells the members that wait for theirs in turn.
 *
 * Threads: one at a time uses a tree; different trees may be used at once where the port has threads.
 */
#ifndef DN_TREE_H
#define DN_TREE_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DN_TREE_RADIX_MAX 64 /**< members of a group */
#define DN_TREE_DEPTH_MAX 64 /**< lines of a link */
#define DN_TREE_LEVELS    16 /**< groups that a process may be a member of */
#define DN_TREE_KEYS      4  /**< in a place */
/** Longest operation, in lines. */
#define DN_TREE_LINES 16

/** The part of a tree that is this process': dn_tree_create(). */
typedef struct dn_tree dn_tree_t;

/** Where a process runs, from the widest to the narrowest: host, package, NUMA node, cache. Processes whose
 * first keys are equal are close. */
typedef struct dn_tree_place {
    uint32_t key[DN_TREE_KEYS]; /**< any numbers; equal ones are the same place */
} dn_tree_place_t;

/** The shape of a tree; the same in all its processes, but for rank. */
typedef struct dn_tree_config {
    uint32_t ranks; /**< at least 2 */
    uint32_t rank;  /**< of this process: 0 .. ranks - 1 */
    uint32_t radix; /**< most members of a group: 2..DN_TREE_RADIX_MAX */
    uint32_t
        depth; /**< lines of a link in each direction: a power of two, 4..DN_TREE_DEPTH_MAX; more where dn_tree_shape.c says so */
    const dn_tree_place_t *place; /**< of each rank, lent for the call; NULL: all are as close */
} dn_tree_config_t;

/** What a process has to tell the others: its LLCM offsets by level. */
typedef struct dn_tree_card {
    uint32_t off[DN_TREE_LEVELS]; /**< of its links in the group of each level */
} dn_tree_card_t;

/** An operation: struct dn_tree_reduction. */
typedef struct dn_tree_reduction dn_tree_reduction_t;
/** inout[i] = in[i] op inout[i] for count elements. in may be aligned to 8 bytes only. */
typedef void (*dn_tree_fold_fn_t)(const dn_tree_reduction_t *reduction, const void *in, void *inout,
                                  size_t count);
/** out[i] = left[i] op right[i] for count elements; out is neither of them. Aligned as above. */
typedef void (*dn_tree_join_fn_t)(const dn_tree_reduction_t *reduction, const void *left, const void *right,
                                  void *out, size_t count);
/** An operation and the type of its operands; embedded in what the caller's fold needs. Lent until
 * completion. */
struct dn_tree_reduction {
    dn_tree_fold_fn_t fold; /**< mandatory */
    dn_tree_join_fn_t join; /**< the same operation, for long data; NULL: copy, then fold */
    size_t size;            /**< bytes of an element, 1..DN_AOTF_LINE_MAX, or as the operation says */
};

/**
 * Make the part of a tree that is this process': find its groups, take LLCM for the links.
 *
 * @param[out] card    To be given to the others, which give it to dn_tree_connect().
 * @param[out] tree_p  The caller's until dn_tree_free() says that it is gone.
 *
 * @retval DN_ERR_PARAM  a field is out of its range.
 * @retval DN_ERR_NOMEM  no memory, or no LLCM.
 */
DN_API dn_status_t dn_tree_create(dn_port_t *port, const dn_tree_config_t *config, dn_tree_card_t *card,
                                  dn_tree_t **tree_p);

/** Bytes of LLCM that dn_tree_create() takes. @retval DN_ERR_PARAM, DN_ERR_NOMEM  as there. */
DN_API dn_status_t dn_tree_llcm_bytes(const dn_tree_config_t *config, size_t *bytes_p);

/** Most looks for a line that one call takes where there is nothing else to do; at first 0. */
DN_API void dn_tree_set_spin(dn_tree_t *tree, uint32_t looks);

/** The ranks that this process has links to: the i-th, or -1 when there are no more. */
DN_API int64_t dn_tree_linked(const dn_tree_t *tree, size_t i);

/**
 * Give a tree the card and the peer of every rank that dn_tree_linked() names; others are not looked at.
 *
 * @param[in] card  By rank.
 * @param[in] peer  By rank; lent until the tree is freed.
 */
DN_API void dn_tree_connect(dn_tree_t *tree, const dn_tree_card_t *card, dn_peer_t *const *peer);

/**
 * Free a tree whose operations are complete.
 *
 * @retval DN_OK          gone.
 * @retval DN_INPROGRESS  a peer may still write a word into its LLCM: call again, some time after others have gone on. A
 *                        tree that is given up stays so.
 *                        The peers may be disconnected by now; nothing is sent to them.
 */
DN_API dn_status_t dn_tree_free(dn_tree_t *tree);

/**
 * Give a tree up, since a process of the tree is gone (dn_lost_set(), dn_peer_check()): the operation under
 * way and all later ones fail by DN_ERR_UNREACH. Members that wait for our lines in them are told: see
 * dn_tree_heed().
 */
DN_API void dn_tree_give_up(dn_tree_t *tree);

/** Not 0: the operation under way still waits for lines of a rank that we are linked to, or has to send it
 * some; so if that rank is gone, the tree is to be given up. A rank that has done its part may leave in
 * order. */
DN_API int dn_tree_needs(const dn_tree_t *tree, uint32_t rank);

/** Give the tree up too where a member has told us that it did. A caller that waits calls this now and then.
 * @return not 0: the tree is given up. */
DN_API int dn_tree_heed(dn_tree_t *tree);

/** Free a tree at once; its LLCM stays taken until the port closes. */
DN_API void dn_tree_abandon(dn_tree_t *tree);

/** Where this process runs, but for its host: key[0] is 0. It reads some small files. */
DN_API void dn_tree_place_here(dn_tree_place_t *place);

/** Not 0: reductions are folded in the order of ranks. */
DN_API int dn_tree_ordered(const dn_tree_t *tree);
/** Not 0: all are one group. */
DN_API int dn_tree_is_flat(const dn_tree_t *tree);
/** Lines up to which operations are as fast as they should be, at least 1: the same in all processes. On
 * several hosts longer ones wait for each other's messages. */
DN_API uint32_t dn_tree_lines(const dn_tree_t *tree);
/** Most bytes of a block of dn_tree_allgather(): the same in all processes. */
DN_API size_t dn_tree_allgather_max(const dn_tree_t *tree);
/** Most bytes of a block of dn_tree_alltoall(): the same in all processes. */
DN_API size_t dn_tree_alltoall_max(const dn_tree_t *tree);
/** Most bytes of dn_tree_scan() and dn_tree_exscan() on elements of @p size bytes: the same in all processes. 0: they are not for
 * this tree, which is not flat, or not in the order of ranks. */
DN_API size_t dn_tree_scan_max(const dn_tree_t *tree, size_t size);
/** Not 0: lines arrive without dn_progress(), by stores to mapped memory. */
DN_API int dn_tree_is_mapped(const dn_tree_t *tree);

/** Not 0: the lines that the operation under way waits for now come by stores of this host's processes, which may wait for
 * this core. 0: they come from another host. */
DN_API int dn_tree_waits_near(const dn_tree_t *tree);

/** What has been done of the operation under way: it changes with each line that has come. */
DN_API uint64_t dn_tree_steps(const dn_tree_t *tree);

/** Most bytes of an operation on elements of @p size bytes (1..DN_AOTF_LINE_MAX). */
static inline size_t dn_tree_max(size_t size)
{
    return DN_AOTF_LINE_MAX / size * size * DN_TREE_LINES;
}

/** @name Operations
 * Each starts one, once the last is complete. Buffers are lent until completion.
 *
 * @retval DN_OK           complete.
 * @retval DN_INPROGRESS   dn_tree_test() until it is.
 * @retval DN_ERR_UNREACH  a peer is gone; so is the tree, but for dn_tree_free(): it never completes an operation again.
 */
/** @{ */
/** Nobody leaves before all have come. */
DN_API dn_status_t dn_tree_barrier(dn_tree_t *tree);
/** @p len bytes, at most dn_tree_max(1), of @p root to everybody. */
DN_API dn_status_t dn_tree_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len);
/** Fold @p in of everybody into @p out of @p root, which may be @p in; elsewhere out is not used. count elements, at most
 * dn_tree_max(size) bytes. */
DN_API dn_status_t dn_tree_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                                  const dn_tree_reduction_t *reduction);
/** As dn_tree_reduce(), to everybody. */
DN_API dn_status_t dn_tree_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                                     const dn_tree_reduction_t *reduction);
/**
 * Fold @p in of all ranks up to the own one into @p out, which may be @p in: count elements, at most dn_tree_scan_max() bytes,
 * in the order of ranks.
 */
DN_API dn_status_t dn_tree_scan(dn_tree_t *tree, const void *in, void *out, size_t count,
                                const dn_tree_reduction_t *reduction);
/** As dn_tree_scan(), of all ranks before the own one; the first rank's out is left as it is. */
DN_API dn_status_t dn_tree_exscan(dn_tree_t *tree, const void *in, void *out, size_t count,
                                  const dn_tree_reduction_t *reduction);
/** Block i of @p out is rank i's @p in: at most dn_tree_allgather_max() bytes. in may be the own block. */
DN_API dn_status_t dn_tree_allgather(dn_tree_t *tree, const void *in, void *out, size_t len);
/** Block i of @p out is the own block of rank i's @p in, which is not out: at most dn_tree_alltoall_max()
 * bytes. */
DN_API dn_status_t dn_tree_alltoall(dn_tree_t *tree, const void *in, void *out, size_t len);
/** Mark the next dn_tree_allgather() or dn_tree_alltoall(), of a byte or more, of which this process gives something else than it
 * should: all processes learn of that with the data, by dn_tree_is_marked(). */
DN_API void dn_tree_mark(dn_tree_t *tree);
/** Not 0: some process has marked the exchange that was the last operation, and is complete. The same in all. */
DN_API int dn_tree_is_marked(const dn_tree_t *tree);

/** Go on with the operation that was started last. */
DN_API dn_status_t dn_tree_test(dn_tree_t *tree);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
