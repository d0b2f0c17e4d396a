/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_tree_long_int.h"

#include <stdlib.h>
#include <string.h>

/** An operation is cut into so many pieces, if they are not shorter than DN_TREE_LONG_PIECE and not longer than a slot (perf/dn_coll,
 * 64 KiB between 2 ranks: 4.4 us; from 8 KiB and into 4 pieces on: 5.0 us). */
#define DN_TREE_LONG_PIECES 8
/** Most bytes of a reduction of more than two ranks of which each rank folds the whole. */
#define DN_TREE_LONG_WHOLE 8192u
/** Pieces of at most so many bytes are dense where bytes go one way only: the processor fetches the next piece ahead, since its lines
 * follow. In operations both ways, every process waits for every piece, and the same few places are faster (perf/dn_coll, 64 B to 1
 * KiB between 2 ranks on far cores: a reduce 0.45 of the time, a broadcast 0.5 to 0.8, an allreduce 1.1 to 1.3; no difference from 4 KiB
 * on). */
#define DN_TREE_LONG_DENSE 2048u

/** @name Life */
/** @{ */
static void dn_tree_long_destroy(dn_tree_long_t *lng)
{
    dn_tree_crowd_free(lng->crowd);
    free(lng->seen[0]);
    free(lng);
}

dn_status_t dn_tree_long_create(const dn_tree_long_config_t *config, dn_tree_long_t **lng_p)
{
    if (2 > config->ranks || config->rank >= config->ranks) {
        return DN_ERR_PARAM;
    }
    dn_tree_long_t *lng = aligned_alloc(_Alignof(dn_tree_long_t), sizeof(*lng));
    if (NULL == lng) {
        return DN_ERR_NOMEM;
    }
    memset(lng, 0, sizeof(*lng));
    lng->config = *config;
    lng->seen[0] = calloc((size_t) COUNTERS * config->ranks, sizeof(*lng->seen[0]));
    if (NULL == lng->seen[0]) {
        dn_tree_long_destroy(lng);
        return DN_ERR_NOMEM;
    }
    for (int which = 1; which < COUNTERS; which++) {
        lng->seen[which] = lng->seen[which - 1] + config->ranks;
    }
    *lng_p = lng;
    return DN_OK;
}

uint64_t dn_tree_long_lines(const void *area)
{
    /* The counter that every operation publishes, in all processes. */
    return dn_load_acquire(dn_tree_long_counter(area, TAKEN));
}

dn_status_t dn_tree_long_group(dn_tree_long_t *lng, uint32_t radix, const dn_tree_place_t *place)
{
    const dn_tree_config_t config = {
        .ranks = lng->config.ranks, .rank = lng->config.rank, .radix = radix, .depth = 4, .place = place};

    /* Of two, who does not fill is not waited for. */
    return 2 == config.ranks ? DN_OK : dn_tree_crowd_create(&config, lng->config.area, &lng->crowd);
}

/** Have the kernel bring in the pages of the own ring. Otherwise each of the first operations would wait for some pages. */
static void dn_tree_long_touch(const dn_tree_long_t *lng)
{
    volatile uint8_t *ring =
        (uint8_t *) lng->config.area[lng->config.rank] + DN_TREE_LONG_AREA - DN_TREE_LONG_RING;

    for (size_t at = 0; at < DN_TREE_LONG_RING; at += 4096) {
        ring[at] = 0;
    }
}

void dn_tree_long_begin(dn_tree_long_t *lng, uint64_t first, int dense)
{
    lng->dense = dense;
    dn_tree_long_touch(lng);
    if (NULL == lng->crowd) {
        dn_tree_crowd_none(lng->config.area[lng->config.rank]);
    }
    for (int which = 0; which < COUNTERS; which++) {
        dn_tree_long_publish(lng, which, first);
    }
    lng->first = first;
    lng->end = first;
}

dn_status_t dn_tree_long_free(dn_tree_long_t *lng)
{
    /* Who has taken the last piece has done all steps of it: it reads no slot of our area any more. It may still read our TAKEN, in
     * this function or before it fills the ring anew, our other counters when it asks whether we are through, and what we said to
     * our crowd, where it has that to pass on. So none of these must ever go back: see dn_tree_long_begin() and
     * dn_tree_crowd_create(). */
    if (lng->failed || (lng->first != lng->end && !dn_tree_long_are_all_beyond(lng, TAKEN, lng->end - 1))) {
        return DN_INPROGRESS;
    }
    dn_tree_long_destroy(lng);
    return DN_OK;
}

void dn_tree_long_abandon(dn_tree_long_t *lng)
{
    dn_tree_long_destroy(lng);
}
/** @} */

/** @name Operations */
/** @{ */
/** Cut an operation on elements of @p size bytes into pieces, so that steps of different processes overlap. @p one_way: no process
 * both gives bytes to a process and waits for bytes of that process. The same in all processes. */
static void dn_tree_long_cut(dn_tree_long_t *lng, size_t len, size_t size, int one_way)
{
    size_t piece = len;

    if (DN_TREE_LONG_PIECE < len) {
        piece = len / DN_TREE_LONG_PIECES;
        piece = DN_TREE_LONG_PIECE > piece ? DN_TREE_LONG_PIECE : piece;
        piece = DN_TREE_LONG_SLOT < piece ? DN_TREE_LONG_SLOT : piece / 64 * 64;
    }
    piece = size < piece ? piece / size * size : size;
    lng->piece = piece;
    lng->len = len;
    lng->shift = lng->dense || (one_way && DN_TREE_LONG_DENSE >= piece) ? 0 : DN_TREE_LONG_SLOT_SHIFT;
    while (((size_t) 64 << lng->shift) < piece) {
        lng->shift++;
    }
    const uint64_t step = UINT64_C(1) << lng->shift;
    lng->first = (lng->end + step - 1) & ~(step - 1);
    lng->end = lng->first + ((len + piece - 1) / piece << lng->shift);
}

/** Start an operation. This process may lack a step of it, but other processes look at two counters all the same. They are published
 * here: `taken` of a process that takes nothing, as other processes wait for it before they fill a place anew; and `filled` of the
 * root of a gather, by which the other processes see that the root is through. */
static dn_status_t dn_tree_long_start(dn_tree_long_t *lng)
{
    if (lng->failed) {
        return DN_ERR_UNREACH;
    }
    lng->vain = 0;
    lng->done[FILLED] = lng->fills ? lng->first : lng->end;
    lng->done[REDUCED] = lng->reduces ? lng->first : lng->end;
    lng->done[TAKEN] = lng->first;
    if (!lng->reduces && DN_TREE_TAKE_NOTHING == lng->take) {
        dn_tree_long_publish(lng, TAKEN, lng->end);
    }
    if (!lng->fills && NULL != lng->blocks) {
        dn_tree_long_publish(lng, FILLED, lng->end);
    }
    return dn_tree_long_test(lng);
}

dn_status_t dn_tree_long_bcast(dn_tree_long_t *lng, uint32_t root, size_t len, dn_tree_mover_t *mover)
{
    const int is_root = root == lng->config.rank;

    dn_tree_long_cut(lng, len, 1, 1);
    lng->fills = is_root;
    lng->reduces = 0;
    lng->way = DN_TREE_TAKE_MOVE;
    lng->take = is_root ? DN_TREE_TAKE_NOTHING : lng->way;
    lng->root = root;
    lng->mover = mover;
    lng->blocks = NULL;
    return dn_tree_long_start(lng);
}

/** Start a reduction that is cut. @p wants: this process wants the result. @p fills: this process puts its operands into its area. */
static dn_status_t dn_tree_long_start_reduction(dn_tree_long_t *lng, dn_tree_take_t way, int wants, int fills,
                                                const void *in, void *out, size_t count,
                                                const dn_tree_reduction_t *reduction)
{
    lng->way = way;
    lng->fills = fills;
    lng->reduces = DN_TREE_TAKE_SHARES == lng->way;
    lng->take = wants ? lng->way : DN_TREE_TAKE_NOTHING;
    lng->in = in;
    lng->out = out;
    lng->reduction = reduction;
    lng->mover = NULL;
    lng->blocks = NULL;
    lng->root = DN_TREE_TAKE_PREFIX == way ? 0 : DN_TREE_LONG_ALL;
    return dn_tree_long_start(lng);
}

/** How a result of @p len bytes comes to the processes that want all of it. */
static dn_tree_take_t dn_tree_long_way(const dn_tree_long_t *lng, size_t len)
{
    if (2 == lng->config.ranks) {
        return DN_TREE_TAKE_SWAPPED;
    }
    return DN_TREE_LONG_WHOLE >= len ? DN_TREE_TAKE_FOLD : DN_TREE_TAKE_SHARES;
}

dn_status_t dn_tree_long_reduce(dn_tree_long_t *lng, uint32_t root, const void *in, void *out, size_t count,
                                const dn_tree_reduction_t *reduction)
{
    const int is_root = root == lng->config.rank;

    dn_tree_long_cut(lng, count * reduction->size, reduction->size, 1);
    return dn_tree_long_start_reduction(lng, dn_tree_long_way(lng, count * reduction->size), is_root,
                                        !is_root || 2 < lng->config.ranks, in, out, count, reduction);
}

dn_status_t dn_tree_long_allreduce(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                   const dn_tree_reduction_t *reduction)
{
    dn_tree_long_cut(lng, count * reduction->size, reduction->size, 0);
    return dn_tree_long_start_reduction(lng, dn_tree_long_way(lng, count * reduction->size), 1, 1, in, out,
                                        count, reduction);
}

dn_status_t dn_tree_long_reduce_part(dn_tree_long_t *lng, const void *in, void *out, size_t count, size_t at,
                                     size_t part, const dn_tree_reduction_t *reduction)
{
    lng->part_at = at * reduction->size;
    lng->part_len = part * reduction->size;
    dn_tree_long_cut(lng, count * reduction->size, reduction->size, 0);
    return dn_tree_long_start_reduction(lng, DN_TREE_TAKE_PART, 0 != part, 1, in, out, count, reduction);
}

/** Start either scan: the own result is folded from @p folded ranks, from the first on. */
static dn_status_t dn_tree_long_scan_up_to(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                           uint32_t folded, const dn_tree_reduction_t *reduction)
{
    const uint32_t rank = lng->config.rank;

    if (0 == rank && 1 == folded && in != out) {
        dn_copy(out, in, count * reduction->size);
    }
    lng->folded = folded;
    dn_tree_long_cut(lng, count * reduction->size, reduction->size, 1);
    return dn_tree_long_start_reduction(lng, DN_TREE_TAKE_PREFIX, 0 != rank, rank + 1 < lng->config.ranks, in,
                                        out, count, reduction);
}

dn_status_t dn_tree_long_scan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                              const dn_tree_reduction_t *reduction)
{
    return dn_tree_long_scan_up_to(lng, in, out, count, lng->config.rank + 1, reduction);
}

dn_status_t dn_tree_long_exscan(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                const dn_tree_reduction_t *reduction)
{
    return dn_tree_long_scan_up_to(lng, in, out, count, lng->config.rank, reduction);
}

/** Start an exchange that is cut. @p gets: this process gets data of others. @p gives: this process gives data. */
static dn_status_t dn_tree_long_start_exchange(dn_tree_long_t *lng, int gets, int gives,
                                               dn_tree_blocks_t *blocks)
{
    lng->way = DN_TREE_TAKE_BLOCKS;
    lng->fills = gives;
    lng->reduces = 0;
    lng->take = gets ? lng->way : DN_TREE_TAKE_NOTHING;
    lng->mover = NULL;
    lng->blocks = blocks;
    lng->root = DN_TREE_LONG_ALL;
    lng->marked = lng->marks;
    /* In groups nobody looks at marks: see dn_tree_long_take_blocks(). */
    lng->marks = lng->marks && NULL == lng->crowd;
    if (lng->marks) {
        dn_store_relaxed(dn_tree_long_mark_of(lng->config.area[lng->config.rank]), lng->end);
    }
    return dn_tree_long_start(lng);
}

void dn_tree_long_mark(dn_tree_long_t *lng)
{
    lng->marks = 1;
}

int dn_tree_long_is_marked(const dn_tree_long_t *lng)
{
    return lng->marked;
}

dn_status_t dn_tree_long_exchange(dn_tree_long_t *lng, size_t len, dn_tree_blocks_t *blocks)
{
    dn_tree_long_cut(lng, len, 1, 0);
    return dn_tree_long_start_exchange(lng, 1, 1, blocks);
}

dn_status_t dn_tree_long_gather(dn_tree_long_t *lng, uint32_t root, size_t len, dn_tree_blocks_t *blocks)
{
    const int is_root = root == lng->config.rank;

    dn_tree_long_cut(lng, len, 1, 1);
    return dn_tree_long_start_exchange(lng, is_root, !is_root, blocks);
}
/** @} */
