/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ticket.h
 * Queued locks in memory that several processes map. A lock is three words. A process that wants the lock draws a number from them.
 *
 *   draw   number = next++
 *   try    a shared holder gets in when `read` is its number, and makes `read` the next number at once;
 *          an exclusive holder gets in when `write` is its number: all holders before it have left then
 *   give   an exclusive holder makes `read` the next number; every holder adds 1 to `write`
 *
 * Numbers are served in the order in which they were drawn: no process starves. Shared holders with neighbouring numbers hold the
 * lock together.
 *
 * Shape:     the three words of a lock begin with the same number, which may be any. A lock that must be fast has a cache line of
 *            its own.
 * Ownership: the words are the caller's. A number is given back once, by the process that got in with it or by another process
 *            on its behalf. A number that is not given back keeps all later numbers out for ever. So the caller has to find out
 *            when a process has ended that has a number (dn_rma_lock.c: a process says in a word beside the lock that it wants
 *            the lock, before it draws).
 * Threads:   any number of processes and threads at once.
 * Ordering:  what was stored before dn_ticket_give() is seen by each process that gets in with a later number; what was stored
 *            before dn_ticket_draw() is seen by each process that draws a later number.
 * Errors:    none. Numbers wrap around: those that are drawn and not given back must be fewer than 2^32.
 *
 * Pinned by test/device/rma_locks.c.
 */
#ifndef DN_TICKET_H
#define DN_TICKET_H

#include "dn_atomic.h"

typedef struct dn_ticket {
    uint32_t next;  /**< the next number to draw */
    uint32_t read;  /**< numbers before this one do not keep out shared holders */
    uint32_t write; /**< numbers given back */
} dn_ticket_t;

/** Make a free lock whose first number is @p first. No other thread or process uses the words yet. */
static inline void dn_ticket_open(dn_ticket_t *ticket, uint32_t first)
{
    *ticket = (dn_ticket_t){first, first, first};
}

/** Draw a number. The lock is not held before dn_ticket_try() has said so. */
static inline uint32_t dn_ticket_draw(dn_ticket_t *ticket)
{
    /* Pairs with itself. The release: what the drawer stored before is seen with the number. The acquire: the drawer of a later
     * number finds what the drawers before it have stored. */
    return dn_fetch_add_acq_rel(&ticket->next, 1);
}

/** Is it the turn of a number? If so, the number holds the lock from now on: it is not tried again. */
static inline int dn_ticket_try(dn_ticket_t *ticket, int exclusive, uint32_t number)
{
    /* Pairs with the stores of earlier numbers: here, or in dn_ticket_give(). Numbers wrap, but equality is enough: while a number
     * waits, the words do not reach the same value twice. */
    if (number != dn_load_acquire_u32(exclusive ? &ticket->write : &ticket->read)) {
        return 0;
    }
    if (!exclusive) {
        /* No other process may write `read` now: it is the turn of this number. */
        dn_store_release_u32(&ticket->read, number + 1);
    }
    return 1;
}

/**
 * Give the lock back.
 * @return the number whose turn may have come by this call. The caller wakes the process that has drawn it. (dn_ticket_try() of a
 *         shared holder gives a turn as well: to the next number.)
 */
static inline uint32_t dn_ticket_give(dn_ticket_t *ticket, int exclusive, uint32_t number)
{
    if (exclusive) {
        dn_store_release_u32(&ticket->read, number + 1);
    }
    /* Several holders may leave at once: shared holders, and the exclusive holder that has just let them in by `read`. */
    return 1 + dn_fetch_add_acq_rel(&ticket->write, 1);
}

/** Has this number, whose turn has just come, been drawn? Then a process may wait with it. */
static inline int dn_ticket_is_drawn(const dn_ticket_t *ticket, uint32_t number)
{
    return number != dn_load_acquire_u32(&ticket->next);
}

#endif
