/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_patience.h
 * How long a process waits for the peers that it leaves. Messages wait for room at a peer, or for its answer, and transfers for their end.
 * A peer that lives takes them. A peer that does not look at the network any more takes nothing, and is given up after a limit of time.
 *
 * A clock runs while this process waits for peers that it leaves, and stands still at other times. Each peer has a mark: what the clock
 * showed when something began to wait for the peer, or when something of what waits has moved last. A peer is given up when the clock is
 * ahead of its mark by more than the limit.
 *
 *   clock         0 ------------------------------------> limit
 *   the wait for  A, A, A, ...                            A is given up; B is given up; C, C, ... until C has all
 *   marks         of A and B: 0, from beginning to end
 *                 of C: it goes on with the clock, since C takes its messages, also while the wait is for A
 *
 * While the process waits for one peer, the marks of all others grow old, too. So all silent peers together cost one limit, whatever else
 * comes to this process, and in whatever calls they are left. Nobody has to say ahead which peers will be left. A peer is kept as long as
 * less than the limit passes from one thing that moves to the next. The whole wait lasts until nothing has moved for a limit.
 *
 * Transfers move in pieces that only the port sees: dn_peer_moves() counts them. A wait notes that count for the peer that it waits for,
 * and for all others in a tour, 16 times in a limit. So the mark of another peer may be late by a 16th of the limit.
 *
 * The process itself may stand still between two looks: a signal or a debugger has stopped it, or its machine stood still. Then it has seen
 * nothing of peers that may live. So the clock goes on by DN_PATIENCE_STEP_NS at most from one look to the next.
 *
 * A wait that begins more than a limit after the last look of another wait belongs to another leaving: all marks count as new then. A peer
 * that was only slow while others were left gets the whole limit.
 *
 * Units:   limits are in ns. The clock is read by marks in 2^20 ns, some 1.05 ms, of which 2^32 are 52 days of waits.
 * Threads: the caller's lock protects the clock and what is noted; dn_clock_ns() is read under it, so that times come in order. Any thread
 *          sets marks without the lock: relaxed, since no data depends on them.
 *
 * Pinned by test/unit/dn_patience_gives_up_who_is_silent.c.
 */
#ifndef DN_PATIENCE_H
#define DN_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "dn_atomic.h"

/** Tours in a limit. */
#define DN_PATIENCE_TOURS 16u
/** The unit of marks is 2^20 ns. */
#define DN_PATIENCE_SHIFT 20
/** The clock goes on by so much at most from one look to the next: some 0.54 s. */
#define DN_PATIENCE_STEP_NS (UINT64_C(1) << 29)

/** The clock. All zero at first, but for the limit. */
typedef struct dn_patience {
    uint64_t limit_ns;
    uint64_t waited_ns; /**< the clock; read without the lock */
    uint64_t seen_ns;   /**< when a wait has looked last, by dn_clock_ns() */
    uint64_t toured_ns; /**< the clock at the last tour */
    uint32_t begun;     /**< the mark of this leaving: older marks count as this one */
    uint32_t waits;     /**< waits that last now: several threads may wait at once */
} dn_patience_t;

/** The mark of a peer. All zero at first. */
typedef struct dn_patience_mark {
    uint32_t at;    /**< the clock, in 2^20 ns; wraps */
    uint32_t moves; /**< dn_peer_moves() when it was noted last */
} dn_patience_mark_t;

/** What the clock shows, as marks have it. */
static inline uint32_t dn_patience_time(const dn_patience_t *patience)
{
    return (uint32_t) (dn_load_relaxed(&patience->waited_ns) >> DN_PATIENCE_SHIFT);
}

/** Something begins to wait for the peer, or something of what waits has moved. Without the lock. */
static inline void dn_patience_mark(const dn_patience_t *patience, dn_patience_mark_t *mark)
{
    dn_store_relaxed(&mark->at, dn_patience_time(patience));
}

/** Note how many pieces of transfers have moved. @param[in] moves  dn_peer_moves(). */
static inline void dn_patience_note(const dn_patience_t *patience, dn_patience_mark_t *mark, uint32_t moves)
{
    if (moves != mark->moves) {
        mark->moves = moves;
        dn_patience_mark(patience, mark);
    }
}

/** A wait begins. @param[in] now  dn_clock_ns(). */
static inline void dn_patience_begin(dn_patience_t *patience, uint64_t now)
{
    if (0 != patience->waits++) {
        return;
    }
    if (patience->limit_ns < now - patience->seen_ns) {
        patience->begun = dn_patience_time(patience);
        /* So that a tour is due: what has moved before does not count. */
        patience->toured_ns = patience->waited_ns - patience->limit_ns;
    }
    patience->seen_ns = now;
}

/** A wait ends. The time from here to the next wait, as to disconnect, does not count. */
static inline void dn_patience_end(dn_patience_t *patience)
{
    patience->waits--;
}

/** A wait looks: set the clock. @return whether a tour is due: the caller calls dn_patience_note() for all peers. */
static inline bool dn_patience_look(dn_patience_t *patience, uint64_t now)
{
    const uint64_t step = now - patience->seen_ns;

    dn_store_relaxed(&patience->waited_ns,
                     patience->waited_ns + (DN_PATIENCE_STEP_NS < step ? DN_PATIENCE_STEP_NS : step));
    patience->seen_ns = now;
    const bool due = patience->limit_ns / DN_PATIENCE_TOURS <= patience->waited_ns - patience->toured_ns;
    if (due) {
        patience->toured_ns = patience->waited_ns;
    }
    return due;
}

/** Is a peer to be given up? */
static inline bool dn_patience_is_over(const dn_patience_t *patience, const dn_patience_mark_t *mark)
{
    const uint32_t time = dn_patience_time(patience);
    const uint32_t since_mark = time - dn_load_relaxed(&mark->at);
    const uint32_t since_begin = time - patience->begun;

    return patience->limit_ns >> DN_PATIENCE_SHIFT < (since_mark < since_begin ? since_mark : since_begin);
}

#endif
