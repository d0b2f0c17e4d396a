/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_long.h
 * Broadcast, reductions and exchanges through mapped memory, among processes of one host.
 *
 * Each process has an area: memory that all of them have mapped. It is a ring of lines behind a head of three counters, each
 * in a line of its own, and what groups of ranks say of them (dn_tree_long_group()):
 *
 *   filled, mark | reduced | taken | of all | ring: DN_TREE_LONG_RING bytes
 *
 * An operation is cut into pieces, at most DN_TREE_LONG_SLOT long. Lines of the ring are numbered through all operations, alike
 * in all processes; line k goes through place k mod (DN_TREE_LONG_RING / 64) of an area. A piece has DN_TREE_LONG_SLOT bytes
 * of the ring, however short it is: so the same few places are used again and again, and stay in the nearest caches. Dense
 * pieces have so many lines only as they need, rounded up to a power of two, and begin at a multiple of it: so no piece
 * lies across the end of the ring.
 *
 * Counters are numbers of lines. They are written by their owner only and never go back, also where an area serves one group of
 * processes after another: a process of the group before may still look at counters that have gone on. So each group begins
 * where the area that is furthest has come to.
 *
 *   filled   the owner's operands, or what it gives to others, of all pieces before are in its area
 *   reduced  its share of the result of all pieces before is there
 *   taken    it reads no piece before any more, neither in the areas of others nor in its own
 *   mark     the exchange that ends with this line is marked by the owner
 *
 * A process fills a place of the ring anew once all have taken what lies there, itself included: what it reads of its own area
 * has to stay there too. So the ranks of consecutive operations may be apart by a ring, whatever the operations are: by 8
 * pieces, or by hundreds of short dense ones. Where processes share cores one runs ahead so far in its turn.
 *
 * Short reductions are folded whole by each process that wants the result, straight from the areas of all
 * into its own buffer. Two swap places in every other turn of the ring: each fills those whose lines it has
 * just had from the other. In longer ones of more than two each process folds its share of a piece and puts
 * it in its area over its own operands of that share, which nobody else reads; then all copy the shares out.
 *
 * In a scan each rank but the first folds what the rank before has put and its own operands into its own area: so each piece goes
 * along the ranks, and in every area is the result of its owner, (x0 op x1) op x2 and so on.
 *
 * Operations are started, then tested until they are complete, as those of dn_tree.h: nothing waits, and all
 * processes call the same ones in the same order, one at a time. A reduction folds x0 op (x1 op (x2 ...)) in
 * the order of ranks. All processes get the same bits.
 *
 * Threads: one at a time uses a dn_tree_long_t; different ones may be used at once.
 *
 * Pinned by test/unit/dn_tree_long_gives_all_ranks_the_same_result.c.
 */
#ifndef DN_TREE_LONG_H
#define DN_TREE_LONG_H

#include "dn_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of the ring: by so many a process may be ahead of another. All of an area stays in a cache (perf/dn_coll, 1 MiB between 2
 * ranks). */
#define DN_TREE_LONG_RING 131072u
/** Most bytes of a piece. */
#define DN_TREE_LONG_SLOT 16384u
/** Bytes up to which an operation is not cut, and least bytes of a piece but the last where it is. Pieces of a reduction may be
 * shorter, by less than an element (perf/dn_coll, 64 KiB between 2 ranks). */
#define DN_TREE_LONG_PIECE 4096u
/** Bytes of an area, which is a segment or part of one; aligned to 64 in all processes. */
#define DN_TREE_LONG_AREA (4096u + DN_TREE_LONG_RING)
/** Most bytes of an element of a reduction. */
#define DN_TREE_LONG_ELEMENT 2048u

/** What a process needs for operations: dn_tree_long_create(). */
typedef struct dn_tree_long dn_tree_long_t;

/** Where the bytes of a broadcast lie: struct dn_tree_mover. */
typedef struct dn_tree_mover dn_tree_mover_t;
/**
 * Copy bytes at .. at + len - 1 of what is broadcast: into @p area at the root, else out of it. Calls of an operation come in
 * order, without a gap. It must not fail.
 */
typedef void (*dn_tree_move_fn_t)(dn_tree_mover_t *mover, void *area, size_t at, size_t len);
/** Where the bytes of a broadcast lie; embedded in what the caller's move needs. Lent until completion. */
struct dn_tree_mover {
    dn_tree_move_fn_t move; /**< mandatory */
};

/** What a process gives and gets in an exchange; embedded in what the caller's functions need. Lent until completion. They must
 * not fail. */
typedef struct dn_tree_blocks dn_tree_blocks_t;
struct dn_tree_blocks {
    /** Copy bytes at .. at + len - 1 of what the own process gives into @p area. Calls come in order, without a gap. The first has
     * all bytes, or at least DN_TREE_LONG_PIECE of them. */
    void (*give)(dn_tree_blocks_t *blocks, void *area, size_t at, size_t len);
    /** Copy what is wanted of bytes at .. at + len - 1 that another @p rank gave out of @p area. Likewise, for each rank. */
    void (*get)(dn_tree_blocks_t *blocks, uint32_t rank, const void *area, size_t at, size_t len);
};

/** What each process is given once all have their areas. */
typedef struct dn_tree_long_config {
    uint32_t ranks;    /**< at least 2 */
    uint32_t rank;     /**< of this process: 0 .. ranks - 1 */
    void *const *area; /**< by rank, DN_TREE_LONG_AREA bytes each; lent until it is freed */
    dn_peer_t *const
        *peer; /**< by rank, asked whether they live; the own one is not used. Lent until it is freed */
} dn_tree_long_config_t;

/**
 * Make what operations need; whether all processes could is for the caller to agree on. The areas need not be
 * known yet.
 *
 * @param[in]  config  Copied; what it points to is filled in before the first operation.
 * @param[out] lng_p   The caller's until dn_tree_long_free() says that it is gone, or dn_tree_long_abandon().
 *
 * @retval DN_ERR_PARAM  fewer than two ranks, or rank is none of them.
 * @retval DN_ERR_NOMEM  memory ran out: do without it.
 */
DN_API dn_status_t dn_tree_long_create(const dn_tree_long_config_t *config, dn_tree_long_t **lng_p);

/** Lines that have gone through an own area, which nobody uses now; 0: it is new, and zeroed. */
DN_API uint64_t dn_tree_long_lines(const void *area);

/**
 * Have the ranks learn in groups of what all have done, instead of each from all: for many. What they do is
 * the same. Two go on as before.
 *
 * @param[in] radix  Most members of a group: 2..DN_TREE_RADIX_MAX.
 * @param[in] place  Of each rank, as in dn_tree_config_t, lent for the call; NULL: all are as close.
 *
 * Ordering:   the areas are known, and dn_tree_long_begin() follows. All ranks do it, alike, or none.
 *
 * @retval DN_ERR_PARAM, DN_ERR_NOMEM  nothing has changed; all have to do without it, or without areas.
 */
DN_API dn_status_t dn_tree_long_group(dn_tree_long_t *lng, uint32_t radix, const dn_tree_place_t *place);

/**
 * Say where the lines of the first operation begin, and how long its pieces are in the ring. It may be left out before the first
 * operation where the areas of all are new and pieces are not dense.
 *
 * @param[in] first  The same in all processes: the most that dn_tree_long_lines() is in one of them.
 * @param[in] dense  Not 0: pieces are dense, for processes that share cores. The same in all processes.
 *
 * Ordering:   no process starts an operation before all have called it.
 */
DN_API void dn_tree_long_begin(dn_tree_long_t *lng, uint64_t first, int dense);

/**
 * Free one whose operations are complete, so that its area can serve others.
 *
 * @retval DN_OK          gone; the areas and peers are the caller's.
 * @retval DN_INPROGRESS  another process may still read the own area: call again, some time after it has gone on. All areas
 *                        are to stay mapped until then. After DN_ERR_UNREACH it stays so: dn_tree_long_abandon().
 */
DN_API dn_status_t dn_tree_long_free(dn_tree_long_t *lng);

/** Free one at once. The own area must not be used again. */
DN_API void dn_tree_long_abandon(dn_tree_long_t *lng);

/** @name Operations
 * Each starts one, once the last is complete. Buffers are lent until completion.
 *
 * @retval DN_OK           complete.
 * @retval DN_INPROGRESS   dn_tree_long_test() until it is.
 * @retval DN_ERR_UNREACH  a peer is gone: no operation completes any more; dn_tree_long_abandon() is all that is left.
 */
/** @{ */
/** @p len bytes of @p root to everybody, at least 1. */
DN_API dn_status_t dn_tree_long_bcast(dn_tree_long_t *lng, uint32_t root, size_t len, dn_tree_mover_t *mover);
/**
 * Fold @p in of everybody into @p out of @p root, which may be @p in; elsewhere out is not used. At least 1 element, of
 * at most DN_TREE_LONG_ELEMENT bytes. The fold gets pointers aligned as the buffers are, and to 64 / size elements, at
 * least to one, in the areas.
 */
DN_API dn_status_t dn_tree_long_reduce(dn_tree_long_t *lng, uint32_t root, const void *in, void *out,
                                       size_t count, const dn_tree_reduction_t *reduction);
/** As dn_tree_long_reduce(), to everybody. */
DN_API dn_status_t dn_tree_long_allreduce(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                          const dn_tree_reduction_t *reduction);
/**
 * As dn_tree_long_allreduce(), of which each process gets a part of its own into @p out: @p part elements from element @p at on, or
 * none. out may be in.
 */
DN_API dn_status_t dn_tree_long_reduce_part(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                            size_t at, size_t part, const dn_tree_reduction_t *reduction);
/** Fold @p in of all ranks up to the own one, in their order, into @p out, which may be in. Else as dn_tree_long_reduce(). */
DN_API dn_status_t dn_tree_long_scan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                     const dn_tree_reduction_t *reduction);
/** As dn_tree_long_scan(), of all ranks before the own one; the first rank's out is left as it is. */
DN_API dn_status_t dn_tree_long_exscan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                       const dn_tree_reduction_t *reduction);
/** All give @p len bytes, at least 1, and get those of all others. */
DN_API dn_status_t dn_tree_long_exchange(dn_tree_long_t *lng, size_t len, dn_tree_blocks_t *blocks);
/** All but @p root give @p len bytes, at least 1; the root gets them. */
DN_API dn_status_t dn_tree_long_gather(dn_tree_long_t *lng, uint32_t root, size_t len,
                                       dn_tree_blocks_t *blocks);
/** Mark the next dn_tree_long_exchange(), in which this process gives something else than it should: all processes learn of that
 * with the data, by dn_tree_long_is_marked(), unless they learn in groups (dn_tree_long_group()). */
DN_API void dn_tree_long_mark(dn_tree_long_t *lng);
/** Not 0: some process has marked the exchange that was the last operation, and is complete. */
DN_API int dn_tree_long_is_marked(const dn_tree_long_t *lng);
/** The caller has slept since the last test: so there are fewer of them until a peer is asked whether it
 * lives. */
DN_API void dn_tree_long_slept(dn_tree_long_t *lng);
/** What has been done of it: it changes with each step. */
DN_API uint64_t dn_tree_long_steps(const dn_tree_long_t *lng);
/** Go on with the operation that was started last. */
DN_API dn_status_t dn_tree_long_test(dn_tree_long_t *lng);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
