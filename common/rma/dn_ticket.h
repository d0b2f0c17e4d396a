/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ticket.h
 * Queued locks in memory that several processes change: by instructions where they map it, by dn_atomic() elsewhere. A lock is one word
 * of 64 bits, which holds three numbers. A process that wants the lock draws a number from it.
 *
 *   draw   number = next++
 *   try    a shared holder gets in when `read` is its number, and makes `read` the next number at once;
 *          an exclusive holder gets in when `write` is its number: all holders before it have left then
 *   give   an exclusive holder makes `read` the next number; every holder adds 1 to `write`
 *
 * Each of these is at most one addition to the word, so a process elsewhere needs one operation for it. The sum that a draw finds also
 * says whether the lock was free.
 *
 *   63        62        42..61    41        21..40    20        0..19
 *   broken    carry     write     carry     read      carry     next
 *
 * Numbers wrap around into their bit `carry`, which means nothing and keeps the next number as it is. Whoever finds such a bit set
 * clears it: dn_ticket_add(). All draws look at these bits, so each is clear again long before the numbers have wrapped once more.
 *
 * Numbers are served in the order in which they were drawn: no process starves. Shared holders with neighbouring numbers hold the
 * lock together. A broken lock is one with a number that is never given back, and which nobody can give back: those that draw later
 * wait in vain.
 *
 * Shape:     the numbers of a lock begin with the same one, which may be any. A lock that must be fast has a cache line of its own.
 * Ownership: the word is the caller's. A number is given back once, by the process that got in with it or by another process
 *            on its behalf. A number that is not given back keeps all later numbers out for ever. So the caller has to find out
 *            when a process has ended that has a number (dn_rma_lock.c: a process says in a word beside the lock that it wants
 *            the lock, before it draws).
 * Threads:   any number of processes and threads at once.
 * Ordering:  what was stored before dn_ticket_give() is seen by each process that gets in with a later number; what was stored
 *            before dn_ticket_draw() is seen by each process that draws a later number. Every change of the word is one atomic
 *            instruction, so a load that reads a change reads a release sequence of all earlier ones.
 * Errors:    none. Those that want a lock at the same time are DN_TICKETS at most.
 *
 * Pinned by test/device/rma_locks.c.
 */
#ifndef DN_TICKET_H
#define DN_TICKET_H

#include "dn_atomic.h"

typedef struct dn_ticket {
    uint64_t word; /**< drawn above */
} dn_ticket_t;

/** Bits of a number, and of the place from one number in the word to the next. */
#define DN_TICKET_BITS  20
#define DN_TICKET_PLACE (DN_TICKET_BITS + 1)

/** So many numbers may be drawn and not given back: a number then is near to those that it is compared with. */
#define DN_TICKETS (UINT32_C(1) << (DN_TICKET_BITS - 1))

#define DN_TICKET_NEXT_ONE  UINT64_C(1)
#define DN_TICKET_READ_ONE  (UINT64_C(1) << DN_TICKET_PLACE)
#define DN_TICKET_WRITE_ONE (UINT64_C(1) << 2 * DN_TICKET_PLACE)
#define DN_TICKET_CARRIES   ((DN_TICKET_NEXT_ONE | DN_TICKET_READ_ONE | DN_TICKET_WRITE_ONE) << DN_TICKET_BITS)
#define DN_TICKET_BROKEN    (UINT64_C(1) << 63)

/** @name The numbers in a word that was loaded, or returned by an addition */
/** @{ */
static inline uint32_t dn_ticket_number(uint64_t word)
{
    return (uint32_t) word & ((UINT32_C(1) << DN_TICKET_BITS) - 1);
}

static inline uint32_t dn_ticket_next(uint64_t word)
{
    return dn_ticket_number(word);
}

static inline uint32_t dn_ticket_read(uint64_t word)
{
    return dn_ticket_number(word >> DN_TICKET_PLACE);
}

static inline uint32_t dn_ticket_write(uint64_t word)
{
    return dn_ticket_number(word >> 2 * DN_TICKET_PLACE);
}

/** Is it the turn of a number? */
static inline int dn_ticket_is_turn(uint64_t word, int exclusive, uint32_t number)
{
    /* Equality is enough: while a number waits, `read` and `write` do not reach the same value twice. */
    return number == (exclusive ? dn_ticket_write(word) : dn_ticket_read(word));
}

/** Has the turn of a number that was drawn come and gone? So it is, for a shared one, when it has got in; and for an exclusive one when
 * it was given back. Any number of others may have had their turns since then. A number that is drawn after the word was loaded counts as
 * one whose turn has gone. */
static inline int dn_ticket_is_over(uint64_t word, int exclusive, uint32_t number)
{
    const uint32_t turn = exclusive ? dn_ticket_write(word) : dn_ticket_read(word);

    return dn_ticket_number(number - turn) >= dn_ticket_number(dn_ticket_next(word) - turn);
}

/** What a holder adds when it gives the lock back. */
static inline uint64_t dn_ticket_given(int exclusive)
{
    return exclusive ? DN_TICKET_READ_ONE + DN_TICKET_WRITE_ONE : DN_TICKET_WRITE_ONE;
}

/** Has an addition left a bit `carry` set? Then it is to be cleared. */
static inline int dn_ticket_carries(uint64_t old, uint64_t add)
{
    return 0 != ((old + add) & DN_TICKET_CARRIES);
}
/** @} */

/** Add to the word. @return the word before. */
static inline uint64_t dn_ticket_add(dn_ticket_t *ticket, uint64_t add)
{
    /* Pairs with itself, and with the loads of those that wait. The release: what the caller stored before is seen by those who are let in
     * by this addition, or draw behind it. The acquire: the caller finds what those before it have stored. */
    const uint64_t old = dn_fetch_add_acq_rel(&ticket->word, add);

    if (__builtin_expect(dn_ticket_carries(old, add), 0)) {
        (void) dn_fetch_and_seq_cst(&ticket->word, ~DN_TICKET_CARRIES);
    }
    return old;
}

/** Make a free lock whose first number follows from @p first. No other thread or process uses the word yet. */
static inline void dn_ticket_open(dn_ticket_t *ticket, uint32_t first)
{
    ticket->word = dn_ticket_number(first) * (DN_TICKET_NEXT_ONE | DN_TICKET_READ_ONE | DN_TICKET_WRITE_ONE);
}

/** Draw a number. The lock is not held before dn_ticket_try() has said so. */
static inline uint32_t dn_ticket_draw(dn_ticket_t *ticket)
{
    return dn_ticket_next(dn_ticket_add(ticket, DN_TICKET_NEXT_ONE));
}

/** Draw a number and share the lock by it, in one step: the lock is free, or is shared and nobody waits. @return 0: it is not so, or
 * the word has changed meanwhile. Nothing is drawn then. */
static inline int dn_ticket_share(dn_ticket_t *ticket)
{
    const uint64_t word = dn_load_relaxed(&ticket->word);
    const uint64_t shared = word + DN_TICKET_NEXT_ONE + DN_TICKET_READ_ONE;

    /* As dn_ticket_add(): a draw, and a turn that is passed on. */
    return dn_ticket_is_turn(word, 0, dn_ticket_next(word))
           && 0 == (shared & (DN_TICKET_CARRIES | DN_TICKET_BROKEN))
           && dn_cas_acq_rel_u64(&ticket->word, word, shared);
}

/** Is it the turn of a number? If so, the number holds the lock from now on: it is not tried again. */
static inline int dn_ticket_try(dn_ticket_t *ticket, int exclusive, uint32_t number)
{
    /* Pairs with the additions of earlier numbers: here, or in dn_ticket_give(). */
    if (!dn_ticket_is_turn(dn_load_acquire(&ticket->word), exclusive, number)) {
        return 0;
    }
    if (!exclusive) {
        /* No other process changes `read` now: it is the turn of this number. */
        (void) dn_ticket_add(ticket, DN_TICKET_READ_ONE);
    }
    return 1;
}

/**
 * Give the lock back.
 * @return the number whose turn may have come by this call. The caller wakes the process that has drawn it. (dn_ticket_try() of a
 *         shared holder gives a turn as well: to the next number.)
 */
static inline uint32_t dn_ticket_give(dn_ticket_t *ticket, int exclusive)
{
    return dn_ticket_number(dn_ticket_write(dn_ticket_add(ticket, dn_ticket_given(exclusive))) + 1);
}

/** Has this number, whose turn has just come, been drawn? Then a process may wait with it. */
static inline int dn_ticket_is_drawn(const dn_ticket_t *ticket, uint32_t number)
{
    return number != dn_ticket_next(dn_load_acquire(&ticket->word));
}

/** Say that numbers which wait now, or are drawn later, may wait in vain. */
static inline void dn_ticket_break(dn_ticket_t *ticket)
{
    /* Pairs with dn_ticket_is_broken(), which needs no other word. */
    (void) dn_fetch_or_acq_rel(&ticket->word, DN_TICKET_BROKEN);
}

static inline int dn_ticket_is_broken(uint64_t word)
{
    return 0 != (word & DN_TICKET_BROKEN);
}

#endif
