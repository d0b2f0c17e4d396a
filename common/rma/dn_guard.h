/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_guard.h
 * The guard of a memory: a word that names its owner. The owner is the process that now makes a change of more than one instruction
 * in the memory. A process has the guard for a moment only, so there is no queue.
 *
 * A change by one instruction needs no guard. It passes through a gate: a word that all users of the memory map. A process that
 * changes much closes the gate while it has the guard, and waits until no process is inside. From then on all processes take the
 * guard for every change, so plain loops are right, until the gate is opened again. A process that passes says so in a word of its own:
 *
 *   dn_gate_enter()                     dn_guard_t::close, with the guard
 *   P0 say that this process is inside  C0 close the gate
 *   P1 load the gate: if it is closed,  C1 fence the threads of all processes
 *      leave, and take the guard        C2 wait until nobody is inside
 *   P2 do it; dn_gate_leave()
 *
 * The load P1 may pass the store P0 on the way to memory, because there is no fence between them: a fence would cost more than the
 * change itself. The process that closes the gate pays instead, by membarrier(2), as a sleeper does for its bell (dn_wait.h): while
 * C1 runs, each thread of the other processes executes a fence at some point of its program. If that point is after P0, C2 finds the
 * process inside. If it is before P0, P1 finds the gate closed. A process that takes part in no such fence says that it is inside for
 * ever, so the gate is never closed.
 *
 * Ownership: the word is the caller's, in memory that all of its users map; 0: the guard is free.
 * Threads:   any number of processes at once; of one process, several threads.
 * Ordering:  what was stored before dn_guard_leave() is seen by the next owner, and by a process that passes through a gate
 *            that was opened after that. What was done inside is seen by the process that has closed the gate.
 * Errors:    a process may end while it has the guard. dn_guard_t::wait finds that out; the change of that process may be done
 *            in part. While the gate is closed, changes by one instruction take the guard, so they have this error, too.
 *
 * Pinned by test/device/rma_locks.c and rma_gate.c.
 */
#ifndef DN_GUARD_H
#define DN_GUARD_H

#include "dn_atomic.h"
#include "dn_types.h"

typedef struct dn_guard dn_guard_t;

/**
 * Get a guard that another process has, by dn_guard_try(). The function decides how long it tries, and what it does meanwhile.
 * @retval DN_OK           the caller has the guard now.
 * @retval DN_ERR_AGAIN    another process has the guard. The caller must not wait here, and calls again later.
 * @retval DN_ERR_UNREACH  the owner of the guard has ended.
 */
typedef dn_status_t (*dn_guard_wait_fn_t)(const dn_guard_t *guard);

/**
 * Is the gate closed? The caller has the guard. Where the gate is open, the function may close it; where the gate is closed, the
 * function may open it.
 * @param[in] len  Bytes that the caller will change.
 * @return 0: the gate is open, so other processes may pass meanwhile.
 */
typedef int (*dn_guard_close_fn_t)(const dn_guard_t *guard, uint64_t len);

/** How to keep other processes off while elements change. */
struct dn_guard {
    uint32_t *word; /**< NULL: no other process uses the memory, and there is no guard */
    uint32_t owner; /**< value of the word while the caller has the guard; not 0 */
    dn_guard_wait_fn_t wait;
    uint32_t *gate;   /**< a word that is not 0 while the gate is closed. NULL: the gate is always open */
    uint32_t *inside; /**< threads of this process that are inside; no other process writes this word */
    int threads;      /**< not 0: several threads of this process may pass at once */
    dn_guard_close_fn_t close; /**< NULL: the gate is never closed */
};

/** Take the guard if it is free. @return 0: the caller has the guard; else the owner's dn_guard_t::owner. */
static inline uint32_t dn_guard_try(const dn_guard_t *guard)
{
    uint32_t owner;

    /* Pairs with the release in dn_guard_leave(). The load comes first: while another process has the guard, the line stays shared. */
    while (0 == (owner = dn_load_acquire_u32(guard->word))) {
        if (dn_cas_acq_rel_u32(guard->word, 0, guard->owner)) {
            return 0;
        }
    }
    return owner;
}

/** Take the guard. @return as dn_guard_wait_fn_t. */
static inline dn_status_t dn_guard_enter(const dn_guard_t *guard)
{
    return NULL == guard->word || dn_cas_acq_rel_u32(guard->word, 0, guard->owner) ? DN_OK
                                                                                   : guard->wait(guard);
}

static inline void dn_guard_leave(const dn_guard_t *guard)
{
    if (NULL != guard->word) {
        dn_store_release_u32(guard->word, 0);
    }
}

/** End what dn_gate_enter() began: the instruction has been executed. */
static inline void dn_gate_leave(const dn_guard_t *guard)
{
    if (NULL == guard->gate) {
        return;
    }
    /* A release: what was done inside comes before. Pairs with the load of the process that closes the gate. */
    if (0 != guard->threads) {
        (void) dn_fetch_sub_release(guard->inside, 1);
    } else {
        dn_store_release_u32(guard->inside, 0);
    }
}

/** Pass through the gate, for a change by one instruction. @return 0: the gate is closed, and the caller takes the guard; else the
 * caller calls dn_gate_leave() after the change. */
static inline int dn_gate_enter(const dn_guard_t *guard)
{
    if (NULL == guard->gate) {
        return 1;
    }
    /* A look before P0: while the gate is closed, P0 would be in vain. */
    if (0 != dn_load_relaxed_u32(guard->gate)) {
        return 0;
    }
    if (0 != guard->threads) {
        (void) dn_fetch_add_relaxed(guard->inside, 1);
    } else {
        dn_store_relaxed_u32(guard->inside, 1);
    }
    dn_fence_compiler();
    /* P1. An acquire: pairs with the release that opened the gate. */
    if (0 == dn_load_acquire_u32(guard->gate)) {
        return 1;
    }
    dn_gate_leave(guard);
    return 0;
}

/** As dn_guard_close_fn_t. Called once at most while the caller has the guard. */
static inline int dn_guard_close(const dn_guard_t *guard, uint64_t len)
{
    return NULL != guard->close && 0 != guard->close(guard, len);
}

#endif
