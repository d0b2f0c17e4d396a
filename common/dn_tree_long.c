/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_long.c
 * Three steps of a piece, each taken as soon as what it needs is there: fill, reduce, take.
 *
 * Memory order. A counter is stored with release after the bytes of its piece have been written (filled, reduced) or
 * read (taken), and loaded with acquire before they are read or written over. So who sees `filled` or `reduced` beyond
 * a piece sees its bytes, and a slot is written over only after the reads of all who have said `taken`. A counter that was
 * seen beyond a piece once need not be loaded again for it: its load precedes all that follows.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_tree_crowd.h"
#include "dn_tree_long.h"

#include <stdlib.h>
#include <string.h>

/** Bytes that are folded at a time: they stay in the first cache. */
#define DN_TREE_LONG_CHUNK 4096u
_Static_assert(DN_TREE_LONG_ELEMENT <= DN_TREE_LONG_CHUNK, "an element fits");
/** Bytes up to which an operation is not cut, and least bytes of a piece; pieces into which more is cut, while they are
 * shorter than a slot (perf/dn_coll, 64 KiB between 2 ranks: 4.4 us; from 8 KiB and into 4 pieces on: 5.0 us). */
#define DN_TREE_LONG_PIECE  4096u
#define DN_TREE_LONG_PIECES 8
/** Bytes up to which a reduction among more than two is folded whole by everybody. */
#define DN_TREE_LONG_WHOLE 8192u
/** Tests in vain after which a peer is asked whether it lives. */
#define DN_TREE_LONG_PATIENCE 8192u
/** Likewise, sleeps between two of them. */
#define DN_TREE_LONG_SLEEPS 8u

#define DN_TREE_LONG_ALL UINT32_MAX

/** Counters of an area, in this order. */
enum { FILLED, REDUCED, TAKEN, COUNTERS };
_Static_assert(COUNTERS == DN_TREE_CROWD_COUNTERS, "a crowd counts them all");

/** What a process does with a piece in the end. */
typedef enum dn_tree_take {
    DN_TREE_TAKE_NOTHING,
    DN_TREE_TAKE_MOVE,    /**< move the root's bytes to where they belong */
    DN_TREE_TAKE_FOLD,    /**< fold the operands of all */
    DN_TREE_TAKE_SWAPPED, /**< fold the operands of the other of two and our own */
    DN_TREE_TAKE_SHARES,  /**< copy the shares that each has reduced */
} dn_tree_take_t;

struct dn_tree_long {
    dn_tree_long_config_t config;
    uint64_t done[COUNTERS];  /**< our own */
    uint64_t *seen[COUNTERS]; /**< of others, by rank, as loaded last */
    dn_tree_crowd_t *crowd;   /**< by which those of all are known; NULL: each looks at all */
    /* The operation under way: */
    uint64_t first; /**< number of its first piece */
    uint64_t end;   /**< one beyond its last */
    size_t piece;   /**< bytes of a piece but the last */
    size_t len;
    int fills;
    int reduces;
    dn_tree_take_t way;  /**< of those who want the result */
    dn_tree_take_t take; /**< our own: as the way is, or DN_TREE_TAKE_NOTHING */
    uint32_t root;       /**< of a broadcast, else DN_TREE_LONG_ALL */
    const uint8_t *in;
    uint8_t *out;
    const dn_tree_reduction_t *reduction;
    dn_tree_mover_t *mover;

    uint64_t passed; /**< times that something was passed on in the crowd */
    int wakes;       /**< the others may sleep */
    int failed;
    uint32_t vain;  /**< tests since the last step */
    uint32_t asked; /**< rank that was asked last whether it lives */
    _Alignas(64) uint8_t chunk[DN_TREE_LONG_CHUNK];
};

/** @name Areas */
/** @{ */
static uint64_t *dn_tree_long_counter(const void *area, int which)
{
    return (uint64_t *) ((uintptr_t) area + 64 * (size_t) which);
}

/** Where a rank puts a piece: in its own area, or what a pair swaps in every other turn of the ring. */
static uint8_t *dn_tree_long_slot(const dn_tree_long_t *lng, uint32_t rank, uint64_t number)
{
    const uint32_t of =
        DN_TREE_TAKE_SWAPPED == lng->way ? rank ^ (uint32_t) (number / DN_TREE_LONG_SLOTS % 2) : rank;

    return (uint8_t *) lng->config.area[of] + DN_TREE_LONG_AREA
           - (DN_TREE_LONG_SLOTS - number % DN_TREE_LONG_SLOTS) * DN_TREE_LONG_SLOT;
}

/** Is a rank's counter beyond a piece? */
static inline int dn_tree_long_is_beyond(dn_tree_long_t *lng, int which, uint32_t rank, uint64_t number)
{
    uint64_t *seen = &lng->seen[which][rank];

    if (*seen <= number) {
        *seen = dn_load_acquire(dn_tree_long_counter(lng->config.area[rank], which));
    }
    return *seen > number;
}

/** Are the counters of all others beyond a piece? */
static int dn_tree_long_are_all_beyond(dn_tree_long_t *lng, int which, uint64_t number)
{
    for (uint32_t rank = 0; rank < lng->config.ranks; rank++) {
        if (rank != lng->config.rank && !dn_tree_long_is_beyond(lng, which, rank, number)) {
            return 0;
        }
    }
    return 1;
}

/** The others may sleep while they wait for what we have just stored. */
static void dn_tree_long_wake(const dn_tree_long_t *lng)
{
    for (uint32_t rank = 0; lng->wakes && rank < lng->config.ranks; rank++) {
        if (rank != lng->config.rank) {
            dn_wake(lng->config.peer[rank]);
        }
    }
}

/** Learn what all have done, and pass it on. */
static void dn_tree_long_look(dn_tree_long_t *lng)
{
    if (0 != dn_tree_crowd_look(lng->crowd, lng->done)) {
        lng->passed++;
        dn_tree_long_wake(lng);
    }
}

static inline int dn_tree_long_are_beyond(dn_tree_long_t *lng, int which, uint64_t number)
{
    if (NULL == lng->crowd) {
        return dn_tree_long_are_all_beyond(lng, which, number);
    }
    if (dn_tree_crowd_all(lng->crowd, which) <= number) {
        dn_tree_long_look(lng);
    }
    return dn_tree_crowd_all(lng->crowd, which) > number;
}

static inline void dn_tree_long_publish(dn_tree_long_t *lng, int which, uint64_t number)
{
    lng->done[which] = number;
    dn_store_release(dn_tree_long_counter(lng->config.area[lng->config.rank], which), number);
    dn_tree_long_wake(lng);
}
/** @} */

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

uint64_t dn_tree_long_pieces(const void *area)
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

void dn_tree_long_begin(dn_tree_long_t *lng, uint64_t first)
{
    if (NULL == lng->crowd) {
        dn_tree_crowd_none(lng->config.area[lng->config.rank]);
    }
    for (int which = 0; which < COUNTERS; which++) {
        dn_tree_long_publish(lng, which, first);
    }
    lng->first = first;
    lng->end = first;
}

void dn_tree_long_set_wakes(dn_tree_long_t *lng, int wakes)
{
    lng->wakes = wakes;
}

dn_status_t dn_tree_long_free(dn_tree_long_t *lng)
{
    /* Who has taken the last piece has done all steps of it: it reads no slot of our area any more, but for our TAKEN, in this
     * function, and what we said to our crowd, where it has that to pass on. So neither must ever go back: see dn_tree_long_begin() and
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

/** @name Steps */
/** @{ */
static inline size_t dn_tree_long_at(const dn_tree_long_t *lng, uint64_t number)
{
    return (size_t) (number - lng->first) * lng->piece;
}

static inline size_t dn_tree_long_bytes(const dn_tree_long_t *lng, uint64_t number)
{
    const size_t left = lng->len - dn_tree_long_at(lng, number);
    return left < lng->piece ? left : lng->piece;
}

/** Where the share of a rank begins in a piece of so many bytes: between lines, where elements allow it. */
static size_t dn_tree_long_share(const dn_tree_long_t *lng, uint32_t rank, size_t bytes)
{
    const size_t size = lng->reduction->size;
    const size_t unit = size < 64 ? 64 / size : 1;
    const size_t units = (bytes / size + unit - 1) / unit;
    const size_t at = units * rank / lng->config.ranks * unit * size;

    return at < bytes ? at : bytes;
}

/** Fold what all have put at some place of a piece, from the last rank to the first. */
static void dn_tree_long_fold(const dn_tree_long_t *lng, uint64_t number, size_t at, size_t len, uint8_t *to)
{
    const dn_tree_reduction_t *reduction = lng->reduction;
    const size_t count = len / reduction->size;
    uint32_t rank = lng->config.ranks - 1;
    const uint8_t *last = dn_tree_long_slot(lng, rank, number) + at;

    if (NULL != reduction->join) {
        rank--;
        reduction->join(reduction, dn_tree_long_slot(lng, rank, number) + at, last, to, count);
    } else {
        dn_copy(to, last, len);
    }
    while (0 < rank--) {
        reduction->fold(reduction, dn_tree_long_slot(lng, rank, number) + at, to, count);
    }
}

/** Fold what the other of two has put at some place of a piece and our own operands. */
static void dn_tree_long_fold_pair(dn_tree_long_t *lng, const uint8_t *other, const uint8_t *own,
                                   uint8_t *out, size_t len)
{
    const dn_tree_reduction_t *reduction = lng->reduction;
    const size_t count = len / reduction->size;
    const int is_last = 1 == lng->config.rank;

    if (own != out && NULL != reduction->join) {
        reduction->join(reduction, is_last ? other : own, is_last ? own : other, out, count);
    } else if (is_last) {
        if (own != out) {
            memcpy(out, own, len);
        }
        reduction->fold(reduction, other, out, count);
    } else {
        memcpy(lng->chunk, other, len);
        reduction->fold(reduction, own, lng->chunk, count);
        memcpy(out, lng->chunk, len);
    }
}

/** Have lines brought here to write to them. */
static void dn_tree_long_own(const uint8_t *lines, size_t len)
{
    for (size_t at = 0; at < len; at += 64) {
        dn_prefetch_own(lines + at);
    }
}

static size_t dn_tree_long_chunk(const dn_tree_long_t *lng, size_t left)
{
    const size_t most = DN_TREE_LONG_CHUNK / lng->reduction->size * lng->reduction->size;
    return left < most ? left : most;
}

/** Each step: @return whether there was one to take. */
static int dn_tree_long_fill(dn_tree_long_t *lng)
{
    const uint64_t number = lng->done[FILLED];

    if (number == lng->end
        || (DN_TREE_LONG_SLOTS <= number
            && (lng->done[TAKEN] <= number - DN_TREE_LONG_SLOTS
                || !dn_tree_long_are_beyond(lng, TAKEN, number - DN_TREE_LONG_SLOTS)))) {
        return 0;
    }
    const size_t at = dn_tree_long_at(lng, number);
    const size_t bytes = dn_tree_long_bytes(lng, number);
    uint8_t *slot = dn_tree_long_slot(lng, lng->config.rank, number);
    if (NULL != lng->mover) {
        lng->mover->move(lng->mover, slot, at, bytes);
    } else {
        dn_copy(slot, lng->in + at, bytes);
    }
    dn_tree_long_publish(lng, FILLED, number + 1);
    return 1;
}

static int dn_tree_long_reduce_share(dn_tree_long_t *lng)
{
    const uint64_t number = lng->done[REDUCED];

    if (number == lng->end || lng->done[FILLED] <= number || !dn_tree_long_are_beyond(lng, FILLED, number)) {
        return 0;
    }
    const size_t bytes = dn_tree_long_bytes(lng, number);
    const size_t end = dn_tree_long_share(lng, lng->config.rank + 1, bytes);
    uint8_t *slot = dn_tree_long_slot(lng, lng->config.rank, number);
    size_t len;
    for (size_t at = dn_tree_long_share(lng, lng->config.rank, bytes); at < end; at += len) {
        len = dn_tree_long_chunk(lng, end - at);
        dn_tree_long_fold(lng, number, at, len, lng->chunk);
        dn_copy(slot + at, lng->chunk, len);
    }
    dn_tree_long_publish(lng, REDUCED, number + 1);
    return 1;
}

/**
 * Take a piece of the other of two. Our own is read where the caller has it: in the area its lines are the other's
 * by now, as those of the other become ours, to be filled when the ring comes round. So a line goes from core to core once
 * for each piece, and not a second time to be written over (perf/dn_coll).
 */
static void dn_tree_long_take_swapped(dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes)
{
    const uint8_t *other = dn_tree_long_slot(lng, 1 - lng->config.rank, number);
    size_t len = dn_tree_long_chunk(lng, bytes);

    dn_tree_long_own(other, len);
    for (size_t done = 0; done < bytes; done += len) {
        len = dn_tree_long_chunk(lng, bytes - done);
        dn_tree_long_own(other + done + len, dn_tree_long_chunk(lng, bytes - done - len));
        dn_tree_long_fold_pair(lng, other + done, lng->in + at + done, lng->out + at + done, len);
    }
}

/** Has the piece that is to be taken come? */
static int dn_tree_long_has_come(dn_tree_long_t *lng, uint64_t number)
{
    switch (lng->take) {
    case DN_TREE_TAKE_MOVE:
        return dn_tree_long_is_beyond(lng, FILLED, lng->root, number);
    case DN_TREE_TAKE_FOLD:
    case DN_TREE_TAKE_SWAPPED:
        return lng->done[FILLED] > number && dn_tree_long_are_beyond(lng, FILLED, number);
    case DN_TREE_TAKE_SHARES:
        return lng->done[REDUCED] > number && dn_tree_long_are_beyond(lng, REDUCED, number);
    default:
        return lng->done[REDUCED] > number;
    }
}

static void dn_tree_long_take_shares(const dn_tree_long_t *lng, uint64_t number, size_t bytes, uint8_t *out)
{
    const uint32_t ranks = lng->config.ranks;

    for (uint32_t i = 0; i < ranks; i++) {
        /* Beginning with the own one, so that not all read from the same. */
        const uint32_t rank = (lng->config.rank + i) % ranks;
        const size_t at = dn_tree_long_share(lng, rank, bytes);
        dn_copy(out + at, dn_tree_long_slot(lng, rank, number) + at,
                dn_tree_long_share(lng, rank + 1, bytes) - at);
    }
}

static int dn_tree_long_take(dn_tree_long_t *lng)
{
    const uint64_t number = lng->done[TAKEN];

    if (number == lng->end || !dn_tree_long_has_come(lng, number)) {
        return 0;
    }
    const size_t at = dn_tree_long_at(lng, number);
    const size_t bytes = dn_tree_long_bytes(lng, number);
    size_t len;
    switch (lng->take) {
    case DN_TREE_TAKE_MOVE:
        lng->mover->move(lng->mover, dn_tree_long_slot(lng, lng->root, number), at, bytes);
        break;
    case DN_TREE_TAKE_FOLD:
        for (size_t in = 0; in < bytes; in += len) {
            len = dn_tree_long_chunk(lng, bytes - in);
            dn_tree_long_fold(lng, number, in, len, lng->out + at + in);
        }
        break;
    case DN_TREE_TAKE_SWAPPED:
        dn_tree_long_take_swapped(lng, number, at, bytes);
        break;
    case DN_TREE_TAKE_SHARES:
        dn_tree_long_take_shares(lng, number, bytes, lng->out + at);
        break;
    default:
        break;
    }
    dn_tree_long_publish(lng, TAKEN, number + 1);
    return 1;
}

/** Has a rank told those who learn from it of what the operation has them wait for? */
static int dn_tree_long_has_told(const dn_tree_long_t *lng, const void *area)
{
    return DN_TREE_LONG_ALL != lng->root
           || (dn_tree_crowd_has_told(area, FILLED, lng->end)
               && (!lng->reduces || dn_tree_crowd_has_told(area, REDUCED, lng->end)));
}

/** Has another rank done its part of the operation? Then it may leave. */
static int dn_tree_long_is_through(dn_tree_long_t *lng, uint32_t rank)
{
    const int fills = DN_TREE_LONG_ALL == lng->root || rank == lng->root;

    return (!fills || dn_tree_long_is_beyond(lng, FILLED, rank, lng->end - 1))
           && dn_tree_long_is_beyond(lng, TAKEN, rank, lng->end - 1)
           && dn_tree_long_has_told(lng, lng->config.area[rank]);
}

/** Nothing has come for long: ask one of those who have something to do whether it lives. One that has done its part since
 * may have left in order: it published that before it went, so that we see it now. */
static void dn_tree_long_ask(dn_tree_long_t *lng)
{
    lng->vain = 0;
    lng->asked = (lng->asked + 1) % lng->config.ranks;
    if (lng->asked != lng->config.rank && !dn_tree_long_is_through(lng, lng->asked)
        && DN_OK != dn_peer_check(lng->config.peer[lng->asked])
        && !dn_tree_long_is_through(lng, lng->asked)) {
        lng->failed = 1;
    }
}

/** Is there nothing left to do for us, nor to tell others? */
static int dn_tree_long_is_done(const dn_tree_long_t *lng)
{
    return lng->done[TAKEN] == lng->end && lng->done[REDUCED] == lng->end && lng->done[FILLED] == lng->end
           && (NULL == lng->crowd || dn_tree_long_has_told(lng, lng->config.area[lng->config.rank]));
}

dn_status_t dn_tree_long_test(dn_tree_long_t *lng)
{
    if (NULL != lng->crowd) {
        dn_tree_long_look(lng);
    }
    while (dn_tree_long_take(lng) || dn_tree_long_reduce_share(lng) || dn_tree_long_fill(lng)) {
        lng->vain = 0;
    }
    if (dn_tree_long_is_done(lng)) {
        return DN_OK;
    }
    if (DN_TREE_LONG_PATIENCE <= ++lng->vain) {
        dn_tree_long_ask(lng);
    }
    return lng->failed ? DN_ERR_UNREACH : DN_INPROGRESS;
}
/** @} */

void dn_tree_long_slept(dn_tree_long_t *lng)
{
    lng->vain += DN_TREE_LONG_PATIENCE / DN_TREE_LONG_SLEEPS;
}

uint64_t dn_tree_long_steps(const dn_tree_long_t *lng)
{
    return lng->done[FILLED] + lng->done[REDUCED] + lng->done[TAKEN] + lng->passed;
}

/** @name Operations */
/** @{ */
/** Cut an operation on elements of @p size bytes; so that steps of different processes overlap, into some pieces. */
static void dn_tree_long_cut(dn_tree_long_t *lng, size_t len, size_t size)
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
    lng->first = lng->end;
    lng->end += (len + piece - 1) / piece;
}

/** Start with the steps that there are. Nobody looks at counters of steps that there are not, but for the last. */
static dn_status_t dn_tree_long_start(dn_tree_long_t *lng)
{
    if (lng->failed) {
        return DN_ERR_UNREACH;
    }
    lng->vain = 0;
    if (!lng->fills) {
        lng->done[FILLED] = lng->end;
    }
    if (!lng->reduces) {
        lng->done[REDUCED] = lng->end;
        if (DN_TREE_TAKE_NOTHING == lng->take) {
            dn_tree_long_publish(lng, TAKEN, lng->end);
        }
    }
    return dn_tree_long_test(lng);
}

dn_status_t dn_tree_long_bcast(dn_tree_long_t *lng, uint32_t root, size_t len, dn_tree_mover_t *mover)
{
    const int is_root = root == lng->config.rank;

    dn_tree_long_cut(lng, len, 1);
    lng->fills = is_root;
    lng->reduces = 0;
    lng->way = DN_TREE_TAKE_MOVE;
    lng->take = is_root ? DN_TREE_TAKE_NOTHING : lng->way;
    lng->root = root;
    lng->mover = mover;
    return dn_tree_long_start(lng);
}

/** A reduction whose result this process wants or not, and to which it adds in its area or not. */
static dn_status_t dn_tree_long_start_reduction(dn_tree_long_t *lng, int wants, int fills, const void *in,
                                                void *out, size_t count, const dn_tree_reduction_t *reduction)
{
    const size_t len = count * reduction->size;

    dn_tree_long_cut(lng, len, reduction->size);
    if (2 == lng->config.ranks) {
        lng->way = DN_TREE_TAKE_SWAPPED;
    } else {
        lng->way = DN_TREE_LONG_WHOLE >= len ? DN_TREE_TAKE_FOLD : DN_TREE_TAKE_SHARES;
    }
    lng->fills = fills;
    lng->reduces = DN_TREE_TAKE_SHARES == lng->way;
    lng->take = wants ? lng->way : DN_TREE_TAKE_NOTHING;
    lng->in = in;
    lng->out = out;
    lng->reduction = reduction;
    lng->mover = NULL;
    lng->root = DN_TREE_LONG_ALL;
    return dn_tree_long_start(lng);
}

dn_status_t dn_tree_long_reduce(dn_tree_long_t *lng, uint32_t root, const void *in, void *out, size_t count,
                                const dn_tree_reduction_t *reduction)
{
    const int is_root = root == lng->config.rank;

    return dn_tree_long_start_reduction(lng, is_root, !is_root || 2 < lng->config.ranks, in, out, count,
                                        reduction);
}

dn_status_t dn_tree_long_allreduce(dn_tree_long_t *lng, const void *in, void *out, size_t count,
                                   const dn_tree_reduction_t *reduction)
{
    return dn_tree_long_start_reduction(lng, 1, 1, in, out, count, reduction);
}
/** @} */
