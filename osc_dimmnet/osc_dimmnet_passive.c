/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_passive.c
 * Passive target: locks, flushes; and the guard of accumulates, which is a lock that a process has for a moment.
 *
 * A process may end while it has one of them, or stands before others. Who waits in vain looks from time to time whether those
 * who could be in its way live, and gives up when one does not.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include "opal/runtime/opal_progress.h"

/** Looks at the guard of one who must not wait. Most accumulates are over by then. */
#define GUARD_TRIES 100u

void ompi_osc_dimmnet_lock_ring(const osc_module_t *module, int target, uint32_t number)
{
    const osc_control_t *control = module->target[target].control;

    /* Whoever sleeps has drawn long before: the fence of that sleep (dn_wait.h) has come before this load, or after the turn was given,
     * which the sleeper has found then. */
    if (!dn_ticket_is_wanted(&control->lock, number)) {
        return;
    }
    for (int rank = 0; rank < module->size; rank++) {
        /* The target may have to grant it to a far process, which it does for itself. */
        if (NULL != module->target[rank].peer
            && (rank == target || 0 != osc_load_u32(&control->notes[rank].locks))) {
            dn_wake(module->target[rank].peer);
        }
    }
}

bool ompi_osc_dimmnet_lock_dead(const osc_module_t *module, int target)
{
    const osc_control_t *control = module->target[target].control;

    for (int rank = 0; rank < module->size; rank++) {
        if ((rank == target || 0 != osc_load_u32(&control->notes[rank].locks))
            && !ompi_osc_dimmnet_lives(module, rank)) {
            return true;
        }
    }
    return false;
}

/** Has this owner ended with the guard? One that has given it away before its end is in nobody's way. */
static bool guard_dead(const osc_guard_t *guard, uint32_t owner)
{
    const bool dead =
        (uint32_t) guard->module->size < owner || !ompi_osc_dimmnet_lives(guard->module, (int) owner - 1);

    return dead && owner == osc_load_u32(guard->super.word);
}

dn_status_t ompi_osc_dimmnet_guard_wait(const dn_guard_t *super)
{
    const osc_guard_t *guard = (const osc_guard_t *) super;
    /* In progress a message might change what this operation is about to use. */
    osc_patience_t patience = {.quiet = true};
    unsigned tries = 0;
    uint32_t owner;

    while (0 != (owner = dn_guard_try(super))) {
        if (NULL == guard->tries) {
            if (ompi_osc_dimmnet_wait_long(&patience) && guard_dead(guard, owner)) {
                return DN_ERR_UNREACH;
            }
        } else if (GUARD_TRIES > ++tries) {
            dn_pause();
        } else {
            return ompi_osc_dimmnet_time_to_look(guard->tries) && guard_dead(guard, owner) ? DN_ERR_UNREACH
                                                                                           : DN_ERR_AGAIN;
        }
    }
    return DN_OK;
}

/** Say in the notes of a target that this process wants its lock, or has it; or does not any more. */
static void note_lock(osc_module_t *module, osc_control_t *control, uint32_t locks)
{
    /* A release: it has given the lock before it says so. That it wants it is seen by the release of the number that it draws. */
    osc_store_u32(&control->notes[module->rank].locks, locks);
}

/** Get the lock of a target. */
static int take(osc_module_t *module, int target, bool exclusive)
{
    osc_target_t *to = &module->target[target];
    osc_patience_t patience = {0};

    if (NULL == to->control) {
        ompi_osc_dimmnet_ask_lock(module, target, exclusive);
        return ompi_osc_dimmnet_await_lock(module, target);
    }
    note_lock(module, to->control, 1);
    to->number = dn_ticket_draw(&to->control->lock);
    while (!dn_ticket_try(&to->control->lock, exclusive, to->number)) {
        if (osc_is_lost(module, target)
            || (ompi_osc_dimmnet_wait_long(&patience) && ompi_osc_dimmnet_lock_dead(module, target))) {
            /* The number stays drawn: others behind it find the same. */
            note_lock(module, to->control, 0);
            return OMPI_ERR_UNREACH;
        }
    }
    if (!exclusive) {
        ompi_osc_dimmnet_lock_ring(module, target, to->number);
    }
    return OMPI_SUCCESS;
}

static void give(osc_module_t *module, int target, bool exclusive)
{
    osc_target_t *to = &module->target[target];

    if (NULL == to->control) {
        ompi_osc_dimmnet_give_lock(module, target);
    } else {
        dn_ticket_give(&to->control->lock, exclusive, to->number);
        note_lock(module, to->control, 0);
        ompi_osc_dimmnet_lock_ring(module, target, to->number);
    }
}

static unsigned epoch_of(int type, int assert)
{
    if (0 != (assert &MPI_MODE_NOCHECK)) {
        return OSC_UNCHECKED;
    }
    return MPI_LOCK_EXCLUSIVE == type ? OSC_EXCLUSIVE : OSC_SHARED;
}

static void close_lock(osc_module_t *module, int target)
{
    OPAL_THREAD_LOCK(&module->lock);
    module->target[target].epochs = 0;
    module->locks--;
    OPAL_THREAD_UNLOCK(&module->lock);
}

int ompi_osc_dimmnet_lock(int type, int target, int assert, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_target_t *to = &module->target[target];
    const unsigned epoch = epoch_of(type, assert);
    int rc = OMPI_SUCCESS;

    OPAL_THREAD_LOCK(&module->lock);
    if (0 != (module->epochs & OSC_PASSIVE) || 0 != to->epochs || module->started.open) {
        rc = OMPI_ERR_RMA_SYNC;
    } else {
        module->epochs &= ~(unsigned) OSC_FENCE;
        module->locks++;
        /* From here on it is taken, for other threads too, though nobody may use it yet. */
        to->epochs = epoch;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (OMPI_SUCCESS == rc && OSC_UNCHECKED != epoch) {
        rc = take(module, target, OSC_EXCLUSIVE == epoch);
        if (OMPI_SUCCESS != rc) {
            close_lock(module, target);
        }
    }
    return rc;
}

int ompi_osc_dimmnet_unlock(int target, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const unsigned epoch = module->target[target].epochs & OSC_PASSIVE;

    if (0 == epoch) {
        return OMPI_ERR_RMA_SYNC;
    }
    const int rc = osc_settle(module, target);
    if (OSC_UNCHECKED != epoch) {
        give(module, target, OSC_EXCLUSIVE == epoch);
    }
    close_lock(module, target);
    return rc;
}

/** Give back the shared locks of ranks 0 .. @p count - 1, and end their epoch. */
static void close_locks(osc_module_t *module, int count)
{
    for (int rank = 0; rank < count; rank++) {
        give(module, rank, false);
    }
    OPAL_THREAD_LOCK(&module->lock);
    module->epochs = 0;
    OPAL_THREAD_UNLOCK(&module->lock);
}

int ompi_osc_dimmnet_lock_all(int assert, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const unsigned epoch = epoch_of(MPI_LOCK_SHARED, assert);
    int rc = OMPI_SUCCESS;

    OPAL_THREAD_LOCK(&module->lock);
    if (0 != (module->epochs & OSC_PASSIVE) || 0 != module->locks || module->started.open) {
        rc = OMPI_ERR_RMA_SYNC;
    } else {
        module->epochs = epoch;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (OMPI_SUCCESS != rc || OSC_UNCHECKED == epoch) {
        return rc;
    }
    /* One after the other, in the same order everywhere: two that ask for all at once may each hold what an exclusive
     * waiter keeps from the other. */
    for (int rank = 0; OMPI_SUCCESS == rc && rank < module->size; rank++) {
        rc = take(module, rank, false);
        if (OMPI_SUCCESS != rc) {
            close_locks(module, rank);
        }
    }
    return rc;
}

int ompi_osc_dimmnet_unlock_all(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    const unsigned epoch = module->epochs & OSC_PASSIVE;

    if (0 == epoch) {
        return OMPI_ERR_RMA_SYNC;
    }
    const int rc = osc_settle(module, -1);
    close_locks(module, OSC_UNCHECKED == epoch ? 0 : module->size);
    return rc;
}

int ompi_osc_dimmnet_sync(ompi_win_t *win)
{
    osc_complete();
    if (NULL != osc_module(win)->far) {
        dn_ompi_progress_once();
    }
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_flush(int target, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);

    /* Nobody has looked at it, as MPI_Win_flush() and MPI_Win_flush_local() of Open MPI 4.1 do not. */
    if (OPAL_UNLIKELY((unsigned) target >= (unsigned) module->size)) {
        return MPI_PROC_NULL == target ? OMPI_SUCCESS : MPI_ERR_RANK;
    }
    if (OPAL_UNLIKELY(0 == ((module->epochs | module->target[target].epochs) & OSC_PASSIVE))) {
        return OMPI_ERR_RMA_SYNC;
    }
    return osc_settle(module, target);
}

int ompi_osc_dimmnet_flush_all(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);

    if (0 == (module->epochs & OSC_PASSIVE) && 0 == module->locks) {
        return OMPI_ERR_RMA_SYNC;
    }
    return osc_settle(module, -1);
}
