/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_lock.c
 * Locks, and the guard of accumulates, which is a lock that a process has for a moment.
 *
 * A process may end while it has a lock or the guard, or while other processes wait behind it. So a process that waits long looks
 * from time to time whether the processes that could be in its way live. It gives up when one of them does not.
 */
#include "dn_config.h"

#include "dn_cell.h"
#include "dn_rma_int.h"

/** Looks at the guard by a caller that must not wait, and looks at the processes inside of a gate. Most accumulates end within this time. */
#define DN_RMA_GUARD_TRIES 100u

/** A far process that waits for the lock of this process. This object holds its window. */
typedef struct dn_rma_waiting {
    struct dn_rma_waiting *next;
    dn_rma_win_t *win;
    int rank;
    dn_rma_wait_t patience;
} dn_rma_waiting_t;

/** @name The lock of a target */
/** @{ */

/** It may be the turn of a number: wake the process that has drawn it. For a far process, wake the target, which has drawn it. */
static void dn_rma_lock_ring(const dn_rma_win_t *win, int target, uint32_t number)
{
    const dn_rma_control_t *control = win->target[target].control;

    /* Whoever sleeps has drawn, and noted the number, long before: the fence of that sleep (dn_wait.h) has come before these
     * loads, or after the turn was given, which the sleeper has found then. */
    if (!dn_ticket_is_drawn(&control->lock, number)) {
        return;
    }
    for (int rank = 0; rank < win->size; rank++) {
        const dn_rma_notes_t *notes = &control->notes[rank];
        const uint32_t wish = dn_load_acquire_u32(&notes->wish);

        if (DN_RMA_WISH_NONE != wish && number == dn_load_acquire_u32(&notes->number)) {
            dn_peer_t *peer = win->target[DN_RMA_WISH_FAR == wish ? target : rank].peer;

            if (NULL != peer) {
                dn_wake(peer);
            }
            return;
        }
    }
}

/** Give a number back, and let the next number have its turn. */
static void dn_rma_lock_give(dn_rma_win_t *win, int target, int rank, bool exclusive, uint32_t number)
{
    dn_rma_control_t *control = win->target[target].control;
    const uint32_t next = dn_ticket_give(&control->lock, exclusive, number);

    /* A release: the process has given the lock before it says so. */
    dn_store_release_u32(&control->notes[rank].wish, DN_RMA_WISH_NONE);
    dn_rma_lock_ring(win, target, next);
}

/** Has the target ended, or a process that wants or has the lock of @p target? Then no process gets the lock any more. Takes a system
 * call for each of these processes. */
static bool dn_rma_lock_is_dead(const dn_rma_win_t *win, int target)
{
    const dn_rma_control_t *control = win->target[target].control;

    for (int rank = 0; rank < win->size; rank++) {
        if ((rank == target || DN_RMA_WISH_OWN == dn_load_acquire_u32(&control->notes[rank].wish))
            && !dn_rma_lives(win, rank)) {
            return true;
        }
    }
    return false;
}

/** Ask a far target for its lock. */
static dn_status_t dn_rma_lock_ask(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_head_t head = dn_rma_head(win, target);
    dn_rma_far_t *far = &win->far[target];
    dn_rma_wait_t wait = {.polls = 0};

    dn_store_release_u32(&far->granted, DN_RMA_GRANT_NOT);
    head.flags = exclusive ? DN_RMA_EXCLUSIVELY : 0;
    (void) dn_rma_send_head(win, target, DN_RMA_LOCK, &head);
    while (DN_RMA_GRANT_NOT == dn_load_acquire_u32(&far->granted)) {
        if (dn_rma_is_lost(win, target)) {
            return DN_ERR_UNREACH;
        }
        dn_rma_wait(win->rma, &wait);
    }
    return DN_RMA_GRANT_GIVEN == dn_load_acquire_u32(&far->granted) ? DN_OK : DN_ERR_UNREACH;
}

dn_status_t dn_rma_lock(dn_rma_win_t *win, int target, bool exclusive)
{
    dn_rma_target_t *to = &win->target[target];
    dn_rma_wait_t wait = {.polls = 0};

    if (NULL == to->control) {
        return dn_rma_lock_ask(win, target, exclusive);
    }
    dn_rma_notes_t *notes = &to->control->notes[win->rank];
    /* It is seen by the release of the number that is drawn. */
    dn_store_release_u32(&notes->wish, DN_RMA_WISH_OWN);
    to->number = dn_ticket_draw(&to->control->lock);
    dn_store_release_u32(&notes->number, to->number);
    while (!dn_ticket_try(&to->control->lock, exclusive, to->number)) {
        if (dn_rma_is_lost(win, target)
            || (dn_rma_wait_long(win->rma, &wait) && dn_rma_lock_is_dead(win, target))) {
            /* The number stays drawn: others behind it find the same. */
            dn_store_release_u32(&notes->wish, DN_RMA_WISH_NONE);
            return DN_ERR_UNREACH;
        }
    }
    if (!exclusive) {
        dn_rma_lock_ring(win, target, to->number + 1);
    }
    return DN_OK;
}

void dn_rma_unlock(dn_rma_win_t *win, int target, bool exclusive)
{
    const dn_rma_target_t *to = &win->target[target];

    if (NULL == to->control) {
        const dn_rma_head_t head = dn_rma_head(win, target);

        (void) dn_rma_send_head(win, target, DN_RMA_UNLOCK, &head);
    } else {
        dn_rma_lock_give(win, target, win->rank, exclusive, to->number);
    }
}
/** @} */

/** @name The lock of this process, for far processes */
/** @{ */
void dn_rma_take_back(dn_rma_win_t *win, int rank)
{
    dn_rma_far_t *far = &win->far[rank];
    uint32_t expected = DN_RMA_LOCKS;

    /* Sequential, with dn_rma_grant() and dn_rma_lost(): one of the two sees what the other has stored, and one of them takes it back. */
    if (dn_cas_seq_cst(&far->locks, &expected, DN_RMA_LOCKS_NOT)) {
        dn_rma_lock_give(win, win->rank, rank, far->exclusive, far->number);
    }
}

/** Answer a rank that has asked for the lock. */
static void dn_rma_tell_grant(const dn_rma_win_t *win, int rank, uint32_t flags)
{
    dn_rma_head_t head = dn_rma_head(win, rank);
    dn_rma_answer_t *answer = dn_rma_answer_new(win->rma, win->far[rank].peer, DN_RMA_GRANT, sizeof(head));

    head.flags = flags;
    memcpy(answer->bytes, &head, sizeof(head));
    dn_rma_answer(win->rma, answer);
}

/** Grant the lock to a rank if it is the turn of its number. @return false: it is not. */
static bool dn_rma_grant(dn_rma_win_t *win, int rank)
{
    dn_rma_far_t *far = &win->far[rank];

    if (!dn_ticket_try(&win->control->lock, far->exclusive, far->number)) {
        return false;
    }
    if (!far->exclusive) {
        dn_rma_lock_ring(win, win->rank, far->number + 1);
    }
    dn_store_seq_cst(&far->locks, DN_RMA_LOCKS);
    if (0 != dn_load_seq_cst(&far->lost)) {
        dn_rma_take_back(win, rank);
    } else {
        dn_rma_tell_grant(win, rank, 0);
    }
    return true;
}

/** Does no process get the lock any more? Then tell a process that waits. @return false: it may still get the lock. */
static bool dn_rma_grant_never(dn_rma_waiting_t *waiting)
{
    dn_rma_win_t *win = waiting->win;

    if (!dn_rma_time_to_look(&waiting->patience) || !dn_rma_lock_is_dead(win, win->rank)) {
        return false;
    }
    dn_store_release_u32(&win->control->notes[waiting->rank].wish, DN_RMA_WISH_NONE);
    dn_store_release_u32(&win->far[waiting->rank].locks, DN_RMA_LOCKS_NOT);
    dn_rma_tell_grant(win, waiting->rank, DN_RMA_NEVER);
    return true;
}

static void dn_rma_wait_for_lock(dn_rma_t *rma, dn_rma_waiting_t *waiting)
{
    (void) pthread_mutex_lock(&rma->lock);
    waiting->next = rma->waiting;
    rma->waiting = waiting;
    (void) pthread_mutex_unlock(&rma->lock);
}

bool dn_rma_on_lock(dn_rma_win_t *win, int rank, bool exclusive)
{
    dn_rma_notes_t *notes = &win->control->notes[rank];
    dn_rma_far_t *far = &win->far[rank];

    if (DN_RMA_LOCKS_NOT != dn_load_acquire_u32(&far->locks)) {
        return false;
    }
    dn_store_release_u32(&far->locks, DN_RMA_LOCKS_SOON);
    far->number = dn_ticket_draw(&win->control->lock);
    far->exclusive = exclusive;
    dn_store_release_u32(&notes->number, far->number);
    dn_store_release_u32(&notes->wish, DN_RMA_WISH_FAR);
    if (!dn_rma_grant(win, rank)) {
        dn_rma_waiting_t *waiting = dn_rma_need(win->rma, sizeof(*waiting));

        /* Besides the hold of the message. By its number another window may be found by now. */
        dn_rma_win_hold(win);
        *waiting = (dn_rma_waiting_t){.win = win, .rank = rank};
        dn_rma_wait_for_lock(win->rma, waiting);
    }
    return true;
}

int dn_rma_grant_waiting(dn_rma_t *rma)
{
    dn_rma_waiting_t *all, *next;
    int granted = 0;

    /* A look without the lock: who comes meanwhile is seen the next time. */
    if (NULL == dn_load_relaxed(&rma->waiting)) {
        return 0;
    }
    (void) pthread_mutex_lock(&rma->lock);
    all = rma->waiting;
    rma->waiting = NULL;
    (void) pthread_mutex_unlock(&rma->lock);
    for (; NULL != all; all = next) {
        next = all->next;
        if (dn_rma_grant(all->win, all->rank) || dn_rma_grant_never(all)) {
            dn_rma_win_leave(all->win);
            free(all);
            granted++;
        } else {
            dn_rma_wait_for_lock(rma, all);
        }
    }
    return granted;
}

void dn_rma_forget_waiting(dn_rma_win_t *win)
{
    (void) pthread_mutex_lock(&win->rma->lock);
    for (dn_rma_waiting_t **at = &win->rma->waiting; NULL != *at;) {
        dn_rma_waiting_t *waiting = *at;

        if (win == waiting->win) {
            *at = waiting->next;
            free(waiting);
            win->holders--;
        } else {
            at = &waiting->next;
        }
    }
    (void) pthread_mutex_unlock(&win->rma->lock);
}
/** @} */

/** @name The guard */
/** @{ */

/** Is the owner of the guard known to be lost, or no rank of the window at all? */
static bool dn_rma_guard_is_lost(const dn_rma_guard_t *guard, uint32_t owner)
{
    return (uint32_t) guard->win->size < owner || dn_rma_is_lost(guard->win, (int) owner - 1);
}

/** Has this owner ended while it had the guard? A process that left the guard before its end keeps no other process out. */
static bool dn_rma_guard_is_dead(const dn_rma_guard_t *guard, uint32_t owner)
{
    const bool dead = dn_rma_guard_is_lost(guard, owner) || !dn_rma_lives(guard->win, (int) owner - 1);

    return dead && owner == dn_load_acquire_u32(guard->super.word);
}

dn_status_t dn_rma_guard_wait(const dn_guard_t *super)
{
    const dn_rma_guard_t *guard = (const dn_rma_guard_t *) super;
    /* In progress a message might change what this operation is about to use. */
    dn_rma_wait_t wait = {.quiet = true};
    unsigned tries = 0;
    uint32_t owner;

    while (0 != (owner = dn_guard_try(super))) {
        if (NULL == guard->tries) {
            if ((dn_rma_wait_long(guard->win->rma, &wait) || dn_rma_guard_is_lost(guard, owner))
                && dn_rma_guard_is_dead(guard, owner)) {
                return DN_ERR_UNREACH;
            }
        } else if (DN_RMA_GUARD_TRIES > ++tries) {
            dn_pause();
        } else {
            return dn_rma_time_to_look(guard->tries) && dn_rma_guard_is_dead(guard, owner) ? DN_ERR_UNREACH
                                                                                           : DN_ERR_AGAIN;
        }
    }
    return DN_OK;
}

/** Is there a process that takes part in no fence? */
static bool dn_rma_gate_is_held_open(const dn_rma_guard_t *guard)
{
    for (int rank = 0; rank < guard->win->size; rank++) {
        if (DN_RMA_INSIDE_ALWAYS == dn_load_relaxed_u32(&guard->control->notes[rank].inside)) {
            return true;
        }
    }
    return false;
}

/**
 * The gate is closed: wait until no process is inside. This takes a moment; or it takes long, where a process inside is stopped, or
 * waits for the core of this process.
 * @return false: it takes long, and a process is still inside.
 */
static bool dn_rma_gate_await(const dn_rma_guard_t *guard)
{
    unsigned tries = 0;

    for (int rank = 0; rank < guard->win->size; rank++) {
        /* Pairs with the release in dn_gate_leave(). What one instruction of a process that has ended
         * did is done, or never will be; a process that was cut off is none of the window's any more. */
        while (!dn_rma_is_lost(guard->win, rank)
               && 0 != dn_load_acquire_u32(&guard->control->notes[rank].inside)) {
            if (DN_RMA_GUARD_TRIES < ++tries) {
                return false;
            }
            dn_pause();
        }
    }
    return true;
}

/** Close the gate, since too many bytes go cell by cell. @return 0: the gate stays open. */
static int dn_rma_gate_close(const dn_rma_guard_t *guard)
{
    dn_rma_control_t *control = guard->control;

    control->longs = 0;
    if (!dn_rma_gate_is_held_open(guard)) {
        /* C0 to C2 of dn_guard.h. */
        dn_store_seq_cst(&control->gate, 1);
        if (0 != dn_bell_fence_all() && dn_rma_gate_await(guard)) {
            control->most = 0;
            return 1;
        }
        dn_store_release_u32(&control->gate, 0);
    }
    /* It was in vain, and may be the next time. */
    control->most = DN_RMA_CLOSE_MOST > control->most ? 2 * control->most : control->most;
    return 0;
}

int dn_rma_guard_close(const dn_guard_t *super, uint64_t len)
{
    const dn_rma_guard_t *guard = (const dn_rma_guard_t *) super;
    dn_rma_control_t *control = guard->control;
    const uint32_t bytes = (uint32_t) (DN_RMA_CLOSE_MOST < len ? DN_RMA_CLOSE_MOST : len);

    if (0 != dn_load_relaxed_u32(&control->gate)) {
        if (DN_CELL < bytes) {
            control->shorts -= bytes < control->shorts ? bytes : control->shorts;
            return 1;
        }
        control->shorts += DN_RMA_WORTH;
        if (DN_RMA_REOPEN > control->shorts) {
            return 1;
        }
        control->shorts = 0;
        /* A release: what was done under the guard comes before. */
        dn_store_release_u32(&control->gate, 0);
        return 0;
    }
    if (guard->win->crowded) {
        /* An owner of the guard that lost its core would keep all others waiting. */
        return 0;
    }
    if (DN_CELL >= bytes) {
        return 0;
    }
    control->most = 0 == control->most ? DN_RMA_CLOSE : control->most;
    control->longs += bytes;
    return control->most <= control->longs && 0 != dn_rma_gate_close(guard);
}
/** @} */
