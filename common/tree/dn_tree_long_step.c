/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_tree_long_step.c
 * The three steps of a piece: fill, reduce, take. Each step is taken as soon as the data for it is there.
 *
 * Memory order. A counter is stored with release after the bytes of its piece have been written (filled, reduced) or
 * read (taken). It is loaded with acquire before these bytes are read or written over. So a process that sees `filled` or
 * `reduced` beyond a piece sees the bytes of the piece. And a slot is written over only after the reads of all processes that
 * have stored `taken`. A mark is stored before `filled`, and loaded before `taken` is stored. Its owner stores another mark only
 * after all processes have stored that `taken`. A counter that was once seen beyond a piece need not be loaded again for this piece:
 * the load comes before everything that follows.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_tree_long_int.h"

#include <string.h>

/** Tests in vain after which a peer is asked whether it lives. */
#define DN_TREE_LONG_PATIENCE 8192u
/** Likewise, where the caller sleeps between two tests (dn_tree_long_slept()). */
#define DN_TREE_LONG_SLEEPS 8u

/** @name Areas */
/** @{ */
/** The place where a rank puts the piece that begins with line @p number: in its own area. Where two ranks swap places, it is the other
 * rank's area in every other turn of the ring. */
static uint8_t *dn_tree_long_slot(const dn_tree_long_t *lng, uint32_t rank, uint64_t number)
{
    const uint32_t of =
        DN_TREE_TAKE_SWAPPED == lng->way ? rank ^ (uint32_t) (number / DN_TREE_LONG_LINES % 2) : rank;

    return (uint8_t *) lng->config.area[of] + DN_TREE_LONG_AREA - DN_TREE_LONG_RING
           + 64 * (number % DN_TREE_LONG_LINES);
}

/** Is a rank's counter beyond a line? */
static inline int dn_tree_long_is_beyond(dn_tree_long_t *lng, int which, uint32_t rank, uint64_t number)
{
    uint64_t *seen = &lng->seen[which][rank];

    if (*seen <= number) {
        *seen = dn_load_acquire(dn_tree_long_counter(lng->config.area[rank], which));
    }
    return *seen > number;
}

int dn_tree_long_are_all_beyond(dn_tree_long_t *lng, int which, uint64_t number)
{
    for (uint32_t rank = 0; rank < lng->config.ranks; rank++) {
        if (rank != lng->config.rank && !dn_tree_long_is_beyond(lng, which, rank, number)) {
            return 0;
        }
    }
    return 1;
}

/** Wake the other processes, which may sleep while they wait for the counters of this process. Called once for all steps that could be
 * taken: each call wakes every process, or looks at its bell (dn_wait.h), and a process that is woken has more to do at once. */
static void dn_tree_long_wake(dn_tree_long_t *lng)
{
    for (uint32_t rank = 0; lng->news && rank < lng->config.ranks; rank++) {
        if (rank != lng->config.rank) {
            dn_wake(lng->config.peer[rank]);
        }
    }
    lng->news = 0;
}

/** In a crowd: learn what all processes have done, and pass it on. */
static void dn_tree_long_look(dn_tree_long_t *lng)
{
    if (0 != dn_tree_crowd_look(lng->crowd, lng->done)) {
        lng->passed++;
        lng->news = 1;
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

void dn_tree_long_publish(dn_tree_long_t *lng, int which, uint64_t number)
{
    lng->done[which] = number;
    dn_store_release(dn_tree_long_counter(lng->config.area[lng->config.rank], which), number);
    lng->news = 1;
}
/** @} */

/** @name Steps */
/** @{ */
static inline size_t dn_tree_long_at(const dn_tree_long_t *lng, uint64_t number)
{
    return (size_t) ((number - lng->first) >> lng->shift) * lng->piece;
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

/** Fold the operands of all ranks in a part of a piece, from the last rank to the first. */
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

/** Two ranks: fold the operands of the other rank and the own operands, in the order of ranks. */
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

/** Have the processor fetch lines that this process will write. */
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

/** The same, one chunk after the other. */
static void dn_tree_long_fold_range(const dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes,
                                    uint8_t *to)
{
    size_t len;

    for (size_t done = 0; done < bytes; done += len) {
        len = dn_tree_long_chunk(lng, bytes - done);
        dn_tree_long_fold(lng, number, at + done, len, to + done);
    }
}

/** Fold the part of a piece that is in the own part of the result. Where `out` is `in`, the result is written over own operands. These
 * are operands of this piece or earlier ones, which are in the own area by now. */
static void dn_tree_long_take_part(const dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes)
{
    const size_t from = at < lng->part_at ? lng->part_at : at;
    const size_t end = lng->part_at + lng->part_len;
    const size_t to = end < at + bytes ? end : at + bytes;

    if (from < to) {
        dn_tree_long_fold_range(lng, number, from - at, to - from, lng->out + (from - lng->part_at));
    }
}

/** Of a scan: fold the result of the rank before and the own operands into @p to, which may be the place of the own operands. */
static void dn_tree_long_fold_before(const dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes,
                                     uint8_t *to)
{
    const dn_tree_reduction_t *reduction = lng->reduction;
    const uint8_t *before = dn_tree_long_slot(lng, lng->config.rank - 1, number);
    const uint8_t *own = lng->in + at;

    if (own != to && NULL != reduction->join) {
        reduction->join(reduction, before, own, to, bytes / reduction->size);
        return;
    }
    if (own != to) {
        dn_copy(to, own, bytes);
    }
    reduction->fold(reduction, before, to, bytes / reduction->size);
}

/** Of a scan: has the rank before this one filled its slot of this piece? Of any other operation: yes. */
static inline int dn_tree_long_prefix_is_there(dn_tree_long_t *lng, uint64_t number)
{
    return DN_TREE_TAKE_PREFIX != lng->way || 0 == lng->config.rank
           || dn_tree_long_is_beyond(lng, FILLED, lng->config.rank - 1, number);
}

/** The functions of steps: @return not 0: there was a step to take. */
static int dn_tree_long_fill(dn_tree_long_t *lng)
{
    const uint64_t number = lng->done[FILLED];
    const uint64_t last = number + (UINT64_C(1) << lng->shift) - 1;

    /* What lies where the last line is to go is the last to be taken. */
    if (number == lng->end
        || (DN_TREE_LONG_LINES <= last
            && (lng->done[TAKEN] <= last - DN_TREE_LONG_LINES
                || !dn_tree_long_are_beyond(lng, TAKEN, last - DN_TREE_LONG_LINES)))
        || !dn_tree_long_prefix_is_there(lng, number)) {
        return 0;
    }
    const size_t at = dn_tree_long_at(lng, number);
    const size_t bytes = dn_tree_long_bytes(lng, number);
    uint8_t *slot = dn_tree_long_slot(lng, lng->config.rank, number);
    if (NULL != lng->mover) {
        lng->mover->move(lng->mover, slot, at, bytes);
    } else if (NULL != lng->blocks) {
        lng->blocks->give(lng->blocks, slot, at, bytes);
    } else if (DN_TREE_TAKE_PREFIX == lng->way && 0 != lng->config.rank) {
        dn_tree_long_fold_before(lng, number, at, bytes, slot);
    } else {
        dn_copy_in(slot, lng->in + at, bytes);
    }
    dn_tree_long_publish(lng, FILLED, number + (UINT64_C(1) << lng->shift));
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
        dn_copy_in(slot + at, lng->chunk, len);
    }
    dn_tree_long_publish(lng, REDUCED, number + (UINT64_C(1) << lng->shift));
    return 1;
}

/**
 * Take a piece of the other of two ranks. The own operands are read from the caller's buffer, because the other rank's core may have
 * the lines of the own piece by now. This rank will fill the lines that it reads here when the ring comes round. So a line goes from
 * core to core once for each piece, and not a second time to be written over (perf/dn_coll).
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
    case DN_TREE_TAKE_PART:
    case DN_TREE_TAKE_BLOCKS:
        return lng->done[FILLED] > number && dn_tree_long_are_beyond(lng, FILLED, number);
    case DN_TREE_TAKE_PREFIX:
        return lng->done[FILLED] > number && dn_tree_long_prefix_is_there(lng, number);
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

static void dn_tree_long_take_blocks(dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes)
{
    const uint32_t ranks = lng->config.ranks;
    /* In groups that line of another rank would be one more that comes from the other's core. */
    const int looks = 0 == at && NULL == lng->crowd;

    for (uint32_t i = 1; i < ranks; i++) {
        /* Beginning with the next one, so that not all read from the same. */
        const uint32_t rank = (lng->config.rank + i) % ranks;
        if (looks && lng->end == dn_load_relaxed(dn_tree_long_mark_of(lng->config.area[rank]))) {
            lng->marked = 1;
        }
        lng->blocks->get(lng->blocks, rank, dn_tree_long_slot(lng, rank, number), at, bytes);
    }
}

/** Take the own result of a scan. The last rank finds its result in no area, unless the result is without its own operands. */
static void dn_tree_long_take_prefix(const dn_tree_long_t *lng, uint64_t number, size_t at, size_t bytes)
{
    if (lng->folded == lng->config.ranks) {
        dn_tree_long_fold_before(lng, number, at, bytes, lng->out + at);
    } else {
        dn_copy(lng->out + at, dn_tree_long_slot(lng, lng->folded - 1, number), bytes);
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
    switch (lng->take) {
    case DN_TREE_TAKE_MOVE:
        lng->mover->move(lng->mover, dn_tree_long_slot(lng, lng->root, number), at, bytes);
        break;
    case DN_TREE_TAKE_FOLD:
        dn_tree_long_fold_range(lng, number, 0, bytes, lng->out + at);
        break;
    case DN_TREE_TAKE_PART:
        dn_tree_long_take_part(lng, number, at, bytes);
        break;
    case DN_TREE_TAKE_SWAPPED:
        dn_tree_long_take_swapped(lng, number, at, bytes);
        break;
    case DN_TREE_TAKE_SHARES:
        dn_tree_long_take_shares(lng, number, bytes, lng->out + at);
        break;
    case DN_TREE_TAKE_BLOCKS:
        dn_tree_long_take_blocks(lng, number, at, bytes);
        break;
    case DN_TREE_TAKE_PREFIX:
        dn_tree_long_take_prefix(lng, number, at, bytes);
        break;
    default:
        break;
    }
    dn_tree_long_publish(lng, TAKEN, number + (UINT64_C(1) << lng->shift));
    return 1;
}

/** Has a rank told the processes that learn from it all that they wait for in this operation? */
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

/** Nothing has come for long: ask one process that still has something to do whether it lives. A process that has done its part since
 * then may have left in order. It published its counters before it left, so this process sees them now. */
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

/** Has this process nothing left to do, and nothing left to tell others? */
static int dn_tree_long_is_done(dn_tree_long_t *lng)
{
    return lng->done[TAKEN] == lng->end && lng->done[REDUCED] == lng->end && lng->done[FILLED] == lng->end
           && (NULL == lng->crowd || dn_tree_long_has_told(lng, lng->config.area[lng->config.rank]))
           && (!lng->marks || dn_tree_long_are_all_beyond(lng, TAKEN, lng->end - 1));
}

dn_status_t dn_tree_long_test(dn_tree_long_t *lng)
{
    if (NULL != lng->crowd) {
        dn_tree_long_look(lng);
    }
    while (dn_tree_long_take(lng) || dn_tree_long_reduce_share(lng) || dn_tree_long_fill(lng)) {
        lng->vain = 0;
    }
    dn_tree_long_wake(lng);
    if (dn_tree_long_is_done(lng)) {
        lng->marks = 0;
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
