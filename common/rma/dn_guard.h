/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_guard.h
 * The guard of a memory: a word that names the process which changes there what takes more than one instruction. It is held for
 * a moment only, so there is no queue.
 *
 * What one instruction does passes without the guard, through a gate: a word that all users of the memory map. A process that
 * changes much closes the gate, while it has the guard, and waits until nobody is inside. From then on all take the guard, so
 * plain loops are right, until the gate is opened again. A process that passes says so in a word of its own:
 *
 *   dn_gate_enter()                     dn_guard_t::close, with the guard
 *   P0 say that this process is inside  C0 close the gate
 *   P1 load the gate: if it is closed,  C1 fence the threads of all processes
 *      leave, and take the guard        C2 wait until nobody is inside
 *   P2 do it; dn_gate_leave()
 *
 * P1 may pass P0 on its way to memory, since there is no fence between them: it would cost more than what it guards. The closer
 * pays, by membarrier(2), as a sleeper does for its bell (dn_wait.h): each thread executes a fence at some instruction of its
 * own while C1 runs. Where that comes after P0, C2 finds it inside. Where it comes before P0, P1 finds the gate closed. A
 * process that takes part in no such fence is inside for ever, so that nobody closes the gate.
 *
 * Ownership: the word is the caller's, in memory that all of its users map; 0: nobody has it.
 * Threads:   any number of processes at once; of one process, several threads.
 * Ordering:  what was stored before dn_guard_leave() is seen by the next owner, and by a process that passes through a gate
 *            that was opened after that. What was done inside is seen by the process that has closed the gate.
 * Errors:    a process may end while it has the guard: dn_guard_t::wait finds that out, and what the owner was changing may be
 *            half changed. While the gate is closed, that is an error of what one instruction does, too.
 *
 * Pinned by test/device/rma_locks.c and rma_gate.c.
 */
#ifndef DN_GUARD_H
#define DN_GUARD_H

#include "dn_atomic.h"
#include "dn_types.h"

typedef struct dn_guard dn_guard_t;

/**
 * Get a guard that another has, by dn_guard_try(), or say why not. How long it tries, and what it does meanwhile, is the
 * caller's policy.
 * @retval DN_OK           the caller has the guard now.
 * @retval DN_ERR_AGAIN    another has it, and the caller, which must not wait, comes again.
 * @retval DN_ERR_UNREACH  its owner has ended.
 */
typedef dn_status_t (*dn_guard_wait_fn_t)(const dn_guard_t *guard);

/**
 * Has the caller, which has the guard, all for itself? Where the gate is open, the function may close it.
 * @param[in] len  Bytes that the caller will change.
 * @return 0: others may pass meanwhile.
 */
typedef int (*dn_guard_close_fn_t)(const dn_guard_t *guard, uint64_t len);

/** How to keep others off while elements change. */
struct dn_guard {
    uint32_t *word; /**< NULL: nobody else is there, and there is no guard */
    uint32_t owner; /**< what the word is while the caller has the guard; not 0 */
    dn_guard_wait_fn_t wait;
    uint32_t *gate;            /**< not 0 there: closed. NULL: it is always open */
    uint32_t *inside;          /**< how many of this process are; nobody else writes it */
    int threads;               /**< not 0: several threads of this process may pass at once */
    dn_guard_close_fn_t close; /**< NULL: others may pass */
};

/** Take the guard if nobody has it. @return 0: the caller has it; else its owner, by that one's word. */
static inline uint32_t dn_guard_try(const dn_guard_t *guard)
{
    uint32_t owner;

    /* Pairs with the release in dn_guard_leave(). The look comes first: it leaves the line shared while another has the guard. */
    while (0 == (owner = dn_load_acquire_u32(guard->word))) {
        if (dn_cas_acq_rel_u32(guard->word, 0, guard->owner)) {
            return 0;
        }
    }
    return owner;
}

/** @return as dn_guard_wait_fn_t. */
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

/** What one instruction does is done. */
static inline void dn_gate_leave(const dn_guard_t *guard)
{
    if (NULL == guard->gate) {
        return;
    }
    /* A release: what was done inside comes before. Pairs with the load of who closes the gate. */
    if (0 != guard->threads) {
        (void) dn_fetch_sub_release(guard->inside, 1);
    } else {
        dn_store_release_u32(guard->inside, 0);
    }
}

/** Begin what one instruction does. @return 0: the gate is closed, so take the guard; else end it by dn_gate_leave(). */
static inline int dn_gate_enter(const dn_guard_t *guard)
{
    if (NULL == guard->gate) {
        return 1;
    }
    /* A look before P0, which is in vain while the gate is closed. */
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

/** dn_guard_close_fn_t. Once while the caller has the guard. */
static inline int dn_guard_close(const dn_guard_t *guard, uint64_t len)
{
    return NULL != guard->close && 0 != guard->close(guard, len);
}

#endif
