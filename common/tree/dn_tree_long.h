/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_long.h
 * Broadcast, reductions and exchanges through mapped memory, among processes of one host.
 *
 * Each process has an area: memory that all processes have mapped. The area has a head and a ring of lines. The head has three
 * counters, each in a line of its own, and what groups of ranks say of the counters (dn_tree_long_group()):
 *
 *   filled, mark | reduced | taken | of all | ring: DN_TREE_LONG_RING bytes
 *
 * An operation is cut into pieces of at most DN_TREE_LONG_SLOT bytes. Lines of the ring are numbered through all operations, alike
 * in all processes; line k goes through place k mod (DN_TREE_LONG_RING / 64) of an area. A piece takes DN_TREE_LONG_SLOT bytes
 * of the ring, even if it is shorter: so short pieces use the same few places again and again, which stay in the nearest caches.
 * A dense piece takes only as many lines as it needs, rounded up to a power of two, and begins at a multiple of this number: so no
 * piece lies across the end of the ring. Short pieces are dense where bytes go one way only (broadcast, reduce, scans, gather), and
 * where processes share cores (dn_tree_long_begin()).
 *
 * Counters are numbers of lines. Only the owner of an area writes them, and they never go back, also where an area serves one group
 * of processes after another: a process of the earlier group may still look at the counters. So each new group begins at the
 * highest number of lines in all of its areas.
 *
 *   filled   up to here, the owner's operands, or the data that it gives to others, are in its area
 *   reduced  up to here, the owner's share of the result is in its area
 *   taken    up to here, the owner has read all that it needs, in the areas of others and in its own
 *   mark     the owner has marked the exchange that ends with this line
 *
 * A process fills a place of the ring anew when all processes have taken what lies there. This includes the process itself, which
 * also reads its own area. So ranks may be apart by one ring, whatever the operations are: by 8 pieces, or by hundreds of short dense
 * pieces. Where processes share cores, a process runs ahead so far while it has the core.
 *
 * A short reduction: each process that wants the result folds the whole of it, straight from the areas of all
 * processes into its own buffer. Two processes swap places in every other turn of the ring: each fills the places
 * whose lines it has just read from the other. A longer reduction of more than two processes: each process folds
 * its share of a piece, and stores the share in its area, over its own operands of that share, which no other
 * process reads. Then all processes copy the shares out.
 *
 * In a scan each rank but the first folds two things into its own area: the result of the rank before, and its own operands. So each
 * piece goes along the ranks, and every area holds the result of its owner, (x0 op x1) op x2 and so on.
 *
 * Operations are started, then tested until they are complete, as those of dn_tree.h: no function waits. All
 * processes call the same operations in the same order, one at a time. A reduction folds x0 op (x1 op (x2 ...))
 * in the order of ranks. All processes get the same bits.
 *
 * Threads: one thread at a time uses a dn_tree_long_t; different objects may be used at once.
 *
 * Pinned by test/unit/dn_tree_long_gives_all_ranks_the_same_result.c.
 */
#ifndef DN_TREE_LONG_H
#define DN_TREE_LONG_H

#include "dn_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of the ring: a process may be ahead of another by so many. The whole area stays in a cache (perf/dn_coll, 1 MiB between 2
 * ranks). */
#define DN_TREE_LONG_RING 131072u
/** Most bytes of a piece. */
#define DN_TREE_LONG_SLOT 16384u
/** An operation of so many bytes is not cut. Longer ones are cut into pieces of at least so many bytes, but for the last piece. Pieces
 * of a reduction may be shorter, by less than an element (perf/dn_coll, 64 KiB between 2 ranks). */
#define DN_TREE_LONG_PIECE 4096u
/** Bytes of an area, which is a segment or part of one; aligned to 64 in all processes. */
#define DN_TREE_LONG_AREA (4096u + DN_TREE_LONG_RING)
/** Most bytes of an element of a reduction. */
#define DN_TREE_LONG_ELEMENT 2048u

/** The state of long operations in one process: dn_tree_long_create(). */
typedef struct dn_tree_long dn_tree_long_t;

/** Where the bytes of a broadcast lie: struct dn_tree_mover. */
typedef struct dn_tree_mover dn_tree_mover_t;
/**
 * Copy bytes at .. at + len - 1 of the broadcast: at the root into @p area, at other ranks out of it. Calls of an operation come in
 * order, without a gap. The function must not fail.
 */
typedef void (*dn_tree_move_fn_t)(dn_tree_mover_t *mover, void *area, size_t at, size_t len);
/** Where the bytes of a broadcast lie. The caller embeds it in an object with what its function needs. Lent until completion. */
struct dn_tree_mover {
    dn_tree_move_fn_t move; /**< mandatory */
};

/** What a process gives and gets in an exchange. The caller embeds it in an object with what its functions need. Lent until
 * completion. The functions must not fail. */
typedef struct dn_tree_blocks dn_tree_blocks_t;
struct dn_tree_blocks {
    /** Copy bytes at .. at + len - 1 of this process' data into @p area. Calls come in order, without a gap. The first call has
     * all bytes, or at least DN_TREE_LONG_PIECE of them. */
    void (*give)(dn_tree_blocks_t *blocks, void *area, size_t at, size_t len);
    /** @p area has bytes at .. at + len - 1 that another @p rank gave: copy the part of them that this process wants. For each rank,
     * calls come in the order of `give`. */
    void (*get)(dn_tree_blocks_t *blocks, uint32_t rank, const void *area, size_t at, size_t len);
};

/** What dn_tree_long_create() needs. */
typedef struct dn_tree_long_config {
    uint32_t ranks;    /**< at least 2 */
    uint32_t rank;     /**< of this process: 0 .. ranks - 1 */
    void *const *area; /**< by rank, DN_TREE_LONG_AREA bytes each; lent until the object is freed */
    dn_peer_t *const *
        peer; /**< by rank, to ask whether they live; the own entry is not used. Lent until the object is freed */
} dn_tree_long_config_t;

/**
 * Make the state of long operations. The call may fail in some processes: the callers agree whether all have
 * succeeded. The areas need not be known yet.
 *
 * @param[in]  config  Copied; the caller fills in the arrays that it points to before the first operation.
 * @param[out] lng_p   The caller's until dn_tree_long_free() returns DN_OK, or dn_tree_long_abandon() is called.
 *
 * @retval DN_ERR_PARAM  there are fewer than two ranks, or @p config's rank is out of range.
 * @retval DN_ERR_NOMEM  memory ran out: the callers do without long operations.
 */
DN_API dn_status_t dn_tree_long_create(const dn_tree_long_config_t *config, dn_tree_long_t **lng_p);

/** Lines that have gone through an own area, which no operation uses now; 0: the area is new, and zeroed. */
DN_API uint64_t dn_tree_long_lines(const void *area);

/**
 * For many ranks: each rank learns from its group what all have done, instead of looking at every rank. The
 * steps of the operations are the same. Two ranks go on as before.
 *
 * @param[in] radix  Most members of a group: 2..DN_TREE_RADIX_MAX.
 * @param[in] place  Of each rank, as in dn_tree_config_t, lent for the call; NULL: all ranks are at the same place.
 *
 * Ordering:   the areas are known, and dn_tree_long_begin() follows. All ranks make this call with the same values, or no rank does.
 *
 * @retval DN_ERR_PARAM, DN_ERR_NOMEM  nothing has changed. No rank may use groups then; or the ranks do without long operations.
 */
DN_API dn_status_t dn_tree_long_group(dn_tree_long_t *lng, uint32_t radix, const dn_tree_place_t *place);

/**
 * Say where the lines of the first operation begin, and whether all pieces are dense. The call may be left out before the first
 * operation where all areas are new and not all pieces are dense.
 *
 * @param[in] first  The same in all processes: the most that dn_tree_long_lines() is in one of them.
 * @param[in] dense  Not 0: all pieces are dense, for processes that share cores. The same in all processes.
 *
 * Ordering:   no process starts an operation before all have made this call.
 */
DN_API void dn_tree_long_begin(dn_tree_long_t *lng, uint64_t first, int dense);

/**
 * Free an object whose operations are complete. Its area can serve others then.
 *
 * @retval DN_OK          freed; the areas and peers are the caller's again.
 * @retval DN_INPROGRESS  another process may still read the own area: call again, some time after that process has gone on. All
 *                        areas stay mapped until then. After DN_ERR_UNREACH this may last for ever: call dn_tree_long_abandon().
 */
DN_API dn_status_t dn_tree_long_free(dn_tree_long_t *lng);

/** Free an object at once. The own area must not be used again. */
DN_API void dn_tree_long_abandon(dn_tree_long_t *lng);

/** @name Operations
 * Each function starts an operation. The last operation has to be complete. Buffers are lent until completion.
 *
 * @retval DN_OK           complete.
 * @retval DN_INPROGRESS   call dn_tree_long_test() until the operation is complete.
 * @retval DN_ERR_UNREACH  a peer is gone: no operation completes any more; dn_tree_long_abandon() is all that is left.
 */
/** @{ */
/** Broadcast: @p len bytes, at least 1, go from @p root to all processes. */
DN_API dn_status_t dn_tree_long_bcast(dn_tree_long_t *lng, uint32_t root, size_t len, dn_tree_mover_t *mover);
/**
 * Fold @p in of all processes into @p out of @p root, which may be @p in. At other ranks @p out is not used. At least 1 element, of
 * at most DN_TREE_LONG_ELEMENT bytes. Pointers that the fold gets are aligned as the buffers are. Pointers into areas are aligned
 * to 64 / size elements, and at least to one element.
 */
DN_API dn_status_t dn_tree_long_reduce(dn_tree_long_t *lng, uint32_t root, const void *in, void *out,
                                       size_t count, const dn_tree_reduction_t *reduction);
/** As dn_tree_long_reduce(); all processes get the result. */
DN_API dn_status_t dn_tree_long_allreduce(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                          const dn_tree_reduction_t *reduction);
/**
 * As dn_tree_long_allreduce(), but each process gets only a part of the result into @p out: @p part elements from element @p at on.
 * @p part may be 0. @p out may be @p in.
 */
DN_API dn_status_t dn_tree_long_reduce_part(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                            size_t at, size_t part, const dn_tree_reduction_t *reduction);
/** Fold @p in of all ranks up to the own rank, in their order, into @p out, which may be @p in. Else as dn_tree_long_reduce(). */
DN_API dn_status_t dn_tree_long_scan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                     const dn_tree_reduction_t *reduction);
/** As dn_tree_long_scan(), of all ranks before the own rank; @p out of the first rank is left as it is. */
DN_API dn_status_t dn_tree_long_exscan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                       const dn_tree_reduction_t *reduction);
/** Each process gives @p len bytes, at least 1, and gets the bytes of all other processes. */
DN_API dn_status_t dn_tree_long_exchange(dn_tree_long_t *lng, size_t len, dn_tree_blocks_t *blocks);
/** All processes but @p root give @p len bytes, at least 1; the root gets them. */
DN_API dn_status_t dn_tree_long_gather(dn_tree_long_t *lng, uint32_t root, size_t len,
                                       dn_tree_blocks_t *blocks);
/** Mark the next dn_tree_long_exchange(). A process does so when its data in this exchange is not what it should be. All processes
 * learn of the mark with the data, by dn_tree_long_is_marked(). With groups (dn_tree_long_group()) they do not learn of it. */
DN_API void dn_tree_long_mark(dn_tree_long_t *lng);
/** Not 0: some process has marked the last operation, an exchange that is complete. */
DN_API int dn_tree_long_is_marked(const dn_tree_long_t *lng);
/** The caller has slept since the last test. The test will ask sooner whether a peer lives: after fewer tests in
 * vain. */
DN_API void dn_tree_long_slept(dn_tree_long_t *lng);
/** A number that changes with each step of the operation. */
DN_API uint64_t dn_tree_long_steps(const dn_tree_long_t *lng);
/** Go on with the operation that was started last. */
DN_API dn_status_t dn_tree_long_test(dn_tree_long_t *lng);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
