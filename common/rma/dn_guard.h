/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_guard.h
 * The guard of a memory: a word that names the process which changes there what takes more than one instruction. It is held for
 * a moment only, so there is no queue.
 *
 * Ownership: the word is the caller's, in memory that all of its users map; 0: nobody has it.
 * Threads:   any number of processes at once; of one process, several threads.
 * Ordering:  what was stored before dn_guard_leave() is seen by the next owner.
 * Errors:    a process may end while it has the guard: dn_guard_t::wait finds that out, and what the owner was changing may be
 *            half changed.
 *
 * Pinned by test/device/rma_locks.c.
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

/** How to keep others off while elements change. */
struct dn_guard {
    uint32_t *word; /**< NULL: nobody else is there, and there is no guard */
    uint32_t owner; /**< what the word is while the caller has the guard; not 0 */
    dn_guard_wait_fn_t wait;
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

#endif
