/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree.h
 * Barrier, broadcast, reductions and small exchanges in lines of LLCM (AOTF paper, section 5).
 *
 * Members of a group write lines into each other's LLCM. Up to `radix` processes of a host are one group, in
 * which every member writes to every other: this takes the time of one line. More processes, or processes of
 * several hosts, are a tree of groups. Processes that are close together (a cache, a NUMA node, a package, a
 * host) are grouped first. The first member of a group represents it in the group of the next level.
 *
 * Between two members there is a link: `depth` lines each way, used in turn. The flag of a line is
 *
 *   number of the line:32 | lines taken from the other direction:32
 *
 * where the uppermost bit of the number is turned over in lines of an exchange that a process has marked (dn_tree_mark()).
 * So no flag is ever cleared. A number comes again only after 2^32 lines, when its place has held other numbers
 * since. A side writes a line when fewer than `depth` of its lines are under way. Each side says in its own
 * lines how many lines it has taken. A side that has taken half of the lines, and has nothing to send, says so
 * in a word in the LLCM of the other side: the credit word. This word counts in 63 bits, because it may stand
 * still while the lines say what was taken. So consecutive collectives of any sort cannot overwrite each other:
 * the root of a broadcast runs ahead by at most `depth` lines.
 *
 * An operation takes all lines that were sent for it. So when a process has done its part of all operations, no peer
 * writes lines to it any more. A peer may still write the credit word. The peer does so when it has taken half of a link's lines
 * since it last said how many. So a write of the word may still come while `depth` / 2 or more lines of this process are not known
 * to be taken. It never comes while there are fewer. By this dn_tree_free() knows when the memory may go.
 *
 * Operations are started, then tested until they are complete. No function waits (but for the few looks of
 * dn_tree_set_spin()), reads a clock or calls dn_progress(): the caller calls dn_progress() between two tests.
 * Every operation has to be called by all processes of the tree, in the same order. One operation at a time is
 * under way.
 *
 * Results: a reduction folds the values of a group from its last member to its first, x0 op (x1 op (x2 ...)),
 * and values of groups in the same way. All processes get the same bits, and each run with the same shape of
 * the tree gets the same bits again. Where dn_tree_ordered() says so, this is the order of ranks, which
 * operations that do not commute need.
 *
 * A process that is gone sends no lines. Members that wait for its lines learn of the loss from elsewhere
 * (dn_lost_set()), and give the tree up. This tells the members that wait for their own lines in turn. The process also tells the members
 * whose lines fill half of a link, since these members will wait for room. Such a member cannot have freed its tree.
 *
 * Threads: one thread at a time uses a tree; different trees may be used at once where the port has threads.
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

/** This process' part of a tree: dn_tree_create(). */
typedef struct dn_tree dn_tree_t;

/** Where a process runs, from the widest place to the narrowest: host, package, NUMA node, cache. The more keys
 * of two processes are equal, from the first on, the closer they are. */
typedef struct dn_tree_place {
    uint32_t key[DN_TREE_KEYS]; /**< any numbers; equal numbers are the same place */
} dn_tree_place_t;

/** The shape of a tree; the same in all its processes, but for rank. */
typedef struct dn_tree_config {
    uint32_t ranks; /**< at least 2 */
    uint32_t rank;  /**< of this process: 0 .. ranks - 1 */
    uint32_t radix; /**< most members of a group: 2..DN_TREE_RADIX_MAX */
    uint32_t
        depth; /**< lines of a link in each direction: a power of two, 4..DN_TREE_DEPTH_MAX; more where dn_tree_shape.c says so */
    /** of each rank, lent for the call; NULL: all ranks are at the same place */
    const dn_tree_place_t *place;
} dn_tree_config_t;

/** What a process has to tell the other processes: its LLCM offsets by level. */
typedef struct dn_tree_card {
    uint32_t off[DN_TREE_LEVELS]; /**< of its links in the group of each level */
} dn_tree_card_t;

/** An operation: struct dn_tree_reduction. */
typedef struct dn_tree_reduction dn_tree_reduction_t;
/** inout[i] = in[i] op inout[i] for count elements. in may be aligned to 8 bytes only. */
typedef void (*dn_tree_fold_fn_t)(const dn_tree_reduction_t *reduction, const void *in, void *inout,
                                  size_t count);
/** out[i] = left[i] op right[i] for count elements; out is neither left nor right. Aligned as above. */
typedef void (*dn_tree_join_fn_t)(const dn_tree_reduction_t *reduction, const void *left, const void *right,
                                  void *out, size_t count);
/** An operation and the type of its operands. The caller embeds it in an object with what its fold needs. Lent
 * until completion. */
struct dn_tree_reduction {
    dn_tree_fold_fn_t fold; /**< mandatory */
    dn_tree_join_fn_t join; /**< the same operation, for long data; NULL: copy, then fold */
    size_t size;            /**< bytes of an element, 1..DN_AOTF_LINE_MAX, or as the operation says */
};

/**
 * Make this process' part of a tree: find its groups, take LLCM for the links.
 *
 * @param[out] card    The caller gives it to the other processes, which hand it to dn_tree_connect().
 * @param[out] tree_p  The caller's until dn_tree_free() returns DN_OK, or dn_tree_abandon() returns.
 *
 * @retval DN_ERR_PARAM  a field is out of its range.
 * @retval DN_ERR_NOMEM  no memory, or no LLCM.
 */
DN_API dn_status_t dn_tree_create(dn_port_t *port, const dn_tree_config_t *config, dn_tree_card_t *card,
                                  dn_tree_t **tree_p);

/** Bytes of LLCM that dn_tree_create() takes. @retval DN_ERR_PARAM, DN_ERR_NOMEM  as there. */
DN_API dn_status_t dn_tree_llcm_bytes(const dn_tree_config_t *config, size_t *bytes_p);

/** How often one call may look for a line when it has nothing else to do; at first 0. */
DN_API void dn_tree_set_spin(dn_tree_t *tree, uint32_t looks);

/** The i-th rank that this process has a link to, or -1 when there are no more. */
DN_API int64_t dn_tree_linked(const dn_tree_t *tree, size_t i);

/**
 * Give a tree the card and the peer of every rank that dn_tree_linked() names. Cards and peers of other ranks are not used.
 *
 * @param[in] card  By rank.
 * @param[in] peer  By rank; lent until the tree is freed.
 */
DN_API void dn_tree_connect(dn_tree_t *tree, const dn_tree_card_t *card, dn_peer_t *const *peer);

/**
 * Free a tree whose operations are complete.
 *
 * The peers may be disconnected by now; nothing is sent to them.
 *
 * @retval DN_OK          the tree is freed.
 * @retval DN_INPROGRESS  a peer may still write a word into its LLCM: call again, some time after the peers have gone on. A
 *                        tree that is given up always returns this: call dn_tree_abandon().
 */
DN_API dn_status_t dn_tree_free(dn_tree_t *tree);

/**
 * Give a tree up, since a process of the tree is gone (dn_lost_set(), dn_peer_check()): the operation under
 * way and all later operations fail with DN_ERR_UNREACH. Members that wait for lines of this process, or for room for their own
 * lines, are told: see dn_tree_heed(). Members that begin to wait later are told by the next operation that fails, and by
 * dn_tree_warn().
 */
DN_API void dn_tree_give_up(dn_tree_t *tree);

/** Tell the members that wait for room, since the tree was given up, for lines that this process does not take any more. In a tree that
 * is given up, call this now and then until it is abandoned: such a member may wait in an operation that has failed here before, and
 * dn_tree_give_up() does not tell members that may have left. Unlike the other functions, this one may be called while another thread
 * uses the tree. */
DN_API void dn_tree_warn(dn_tree_t *tree);

/** Not 0: the operation under way still waits for lines of a rank that have not come, or has to send lines to it. If that rank is
 * gone, the caller gives the tree up. A rank that has done its part may leave in order. */
DN_API int dn_tree_needs(const dn_tree_t *tree, uint32_t rank);

/** Give the tree up if a member has told this process that it has done so. A caller that waits calls this now
 * and then. @return not 0: the tree is given up. */
DN_API int dn_tree_heed(dn_tree_t *tree);

/** Free a tree at once; its LLCM stays taken until the port closes. */
DN_API void dn_tree_abandon(dn_tree_t *tree);

/** Where this process runs, but for its host: key[0] is 0. It reads some small files. */
DN_API void dn_tree_place_here(dn_tree_place_t *place);

/** Not 0: reductions are folded in the order of ranks. */
DN_API int dn_tree_ordered(const dn_tree_t *tree);
/** Not 0: all processes are one group. */
DN_API int dn_tree_is_flat(const dn_tree_t *tree);
/** Most lines of an operation that is as fast as a tree can be; at least 1, the same in all processes. On
 * several hosts, longer operations wait for messages that say what was taken. */
DN_API uint32_t dn_tree_lines(const dn_tree_t *tree);
/** Most bytes of a block of dn_tree_allgather(): the same in all processes. */
DN_API size_t dn_tree_allgather_max(const dn_tree_t *tree);
/** Most bytes of a block of dn_tree_alltoall(): the same in all processes. */
DN_API size_t dn_tree_alltoall_max(const dn_tree_t *tree);
/** Most bytes of dn_tree_scan() and dn_tree_exscan() on elements of @p size bytes: the same in all processes. 0: this tree has no
 * scans, because it is not flat or not in the order of ranks. */
DN_API size_t dn_tree_scan_max(const dn_tree_t *tree, size_t size);
/** Not 0: lines arrive without dn_progress(), by stores to mapped memory. */
DN_API int dn_tree_is_mapped(const dn_tree_t *tree);

/** Not 0: the operation under way now waits for lines that processes of this host store. These processes may wait for the
 * core of this process. 0: the lines come from another host. */
DN_API int dn_tree_waits_near(const dn_tree_t *tree);

/** A number that changes with each line that has come for the operation under way. */
DN_API uint64_t dn_tree_steps(const dn_tree_t *tree);

/** Most bytes of an operation on elements of @p size bytes (1..DN_AOTF_LINE_MAX). */
static inline size_t dn_tree_max(size_t size)
{
    return DN_AOTF_LINE_MAX / size * size * DN_TREE_LINES;
}

/** @name Operations
 * Each function starts an operation. The last operation has to be complete. Buffers are lent until completion.
 *
 * @retval DN_OK           complete.
 * @retval DN_INPROGRESS   call dn_tree_test() until the operation is complete.
 * @retval DN_ERR_UNREACH  a peer is gone. The tree never completes an operation again: dn_tree_abandon() is all that is left.
 */
/** @{ */
/** Barrier: no process leaves before all have come. */
DN_API dn_status_t dn_tree_barrier(dn_tree_t *tree);
/** Broadcast: @p len bytes, at most dn_tree_max(1), go from @p root to all processes. */
DN_API dn_status_t dn_tree_bcast(dn_tree_t *tree, uint32_t root, void *buf, size_t len);
/** Fold @p in of all processes into @p out of @p root, which may be @p in. At other ranks @p out is not used. @p count elements,
 * at most dn_tree_max(size) bytes. */
DN_API dn_status_t dn_tree_reduce(dn_tree_t *tree, uint32_t root, const void *in, void *out, size_t count,
                                  const dn_tree_reduction_t *reduction);
/** As dn_tree_reduce(); all processes get the result. */
DN_API dn_status_t dn_tree_allreduce(dn_tree_t *tree, const void *in, void *out, size_t count,
                                     const dn_tree_reduction_t *reduction);
/**
 * Fold @p in of all ranks up to the own one into @p out, which may be @p in: count elements, at most dn_tree_scan_max() bytes,
 * in the order of ranks.
 */
DN_API dn_status_t dn_tree_scan(dn_tree_t *tree, const void *in, void *out, size_t count,
                                const dn_tree_reduction_t *reduction);
/** As dn_tree_scan(), of all ranks before the own rank; @p out of the first rank is left as it is. */
DN_API dn_status_t dn_tree_exscan(dn_tree_t *tree, const void *in, void *out, size_t count,
                                  const dn_tree_reduction_t *reduction);
/** Block i of @p out becomes @p in of rank i. A block has @p len bytes, at most dn_tree_allgather_max(). @p in may be the own block
 * of @p out. */
DN_API dn_status_t dn_tree_allgather(dn_tree_t *tree, const void *in, void *out, size_t len);
/** Block i of @p out becomes that block of rank i's @p in that has this process' rank. A block has @p len bytes, at most
 * dn_tree_alltoall_max(). @p in is not @p out. */
DN_API dn_status_t dn_tree_alltoall(dn_tree_t *tree, const void *in, void *out, size_t len);
/** Mark the next dn_tree_allgather() or dn_tree_alltoall() of a byte or more. A process does so when its data in this exchange is
 * not what it should be. All processes learn of the mark with the data, by dn_tree_is_marked(). */
DN_API void dn_tree_mark(dn_tree_t *tree);
/** Not 0: some process has marked the last operation, an exchange that is complete. The same in all processes. */
DN_API int dn_tree_is_marked(const dn_tree_t *tree);

/** Go on with the operation that was started last. */
DN_API dn_status_t dn_tree_test(dn_tree_t *tree);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
