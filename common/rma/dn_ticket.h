/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ticket.h
 * Queued locks in memory that several processes map: three words, of which a process that wants the lock draws a number.
 *
 *   draw   number = next++
 *   try    a shared holder gets in when `read` is its number, and makes `read` the next number at once;
 *          an exclusive holder gets in when `write` is its number, so when all before it have left
 *   give   an exclusive holder makes `read` the next number; every holder adds 1 to `write`
 *
 * Numbers are served in the order in which they were drawn: nobody starves. Shared holders with neighbouring numbers hold the
 * lock together.
 *
 * Shape:     the three words of a lock begin with the same number, any. The lock has a line of its own where it matters.
 * Ownership: the words are the caller's. A number is given back once, by the process that got in with it or by another process
 *            on its behalf. A number that is not given back keeps everybody behind it out for ever: what becomes of processes
 *            that end is the caller's business (the holder says in a word beside the lock that it wants it, before it draws).
 * Threads:   any number of processes and threads at once.
 * Ordering:  what was stored before dn_ticket_give() is seen by whoever gets in with a later number; what was stored before
 *            dn_ticket_draw() is seen by whoever draws a later number.
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

/** A free lock whose first number is @p first. Nobody else knows of it yet. */
static inline void dn_ticket_open(dn_ticket_t *ticket, uint32_t first)
{
    *ticket = (dn_ticket_t){first, first, first};
}

/** Draw a number. The lock is not held before dn_ticket_try() has said so. */
static inline uint32_t dn_ticket_draw(dn_ticket_t *ticket)
{
    /* Pairs with itself. The release: what the drawer has said of itself comes before. The acquire: whoever draws a later
     * number finds what all before it have said. */
    return dn_fetch_add_acq_rel(&ticket->next, 1);
}

/** Is it the turn of a number? If so, the number holds the lock from now on: it is not tried again. */
static inline int dn_ticket_try(dn_ticket_t *ticket, int exclusive, uint32_t number)
{
    /* Pairs with the stores of those that come before: here, or in dn_ticket_give(). Equal is enough, though numbers wrap: the
     * words stand at no number twice while it waits. */
    if (number != dn_load_acquire_u32(exclusive ? &ticket->write : &ticket->read)) {
        return 0;
    }
    if (!exclusive) {
        /* Nobody else may write `read` now: it is the turn of this number. */
        dn_store_release_u32(&ticket->read, number + 1);
    }
    return 1;
}

/**
 * Give the lock back.
 * @return the one number whose turn this may have made it: its drawer is to be woken. After dn_ticket_try() for a shared holder that
 *         is the next number.
 */
static inline uint32_t dn_ticket_give(dn_ticket_t *ticket, int exclusive, uint32_t number)
{
    if (exclusive) {
        dn_store_release_u32(&ticket->read, number + 1);
    }
    /* Several may leave at once: those that share, also with the exclusive holder that has just let them in by `read`. */
    return 1 + dn_fetch_add_acq_rel(&ticket->write, 1);
}

/** Has a number been drawn whose turn it has just become? Then somebody may wait with it. */
static inline int dn_ticket_is_drawn(const dn_ticket_t *ticket, uint32_t number)
{
    return number != dn_load_acquire_u32(&ticket->next);
}

#endif
