/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_passive.c
 * Passive target: locks, flushes.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** Draw a number and wait for it. osc_control_t says how. @return the number, to be given back. */
static uint32_t take(osc_control_t *control, bool exclusive)
{
    const uint32_t number = __atomic_fetch_add(&control->next, 1, __ATOMIC_RELAXED);
    const uint32_t *turn = exclusive ? &control->write : &control->read;
    unsigned polls = 0;

    /* Pairs with the stores of those who come before: here in take(), or in give(). */
    while (number != osc_load_u32(turn)) {
        ompi_osc_dimmnet_wait(&polls);
    }
    if (!exclusive) {
        /* Nobody else may write `read` now: it is the turn of this number. */
        osc_store_u32(&control->read, number + 1);
    }
    return number;
}

static void give(osc_control_t *control, bool exclusive, uint32_t number)
{
    if (exclusive) {
        osc_store_u32(&control->read, number + 1);
        osc_store_u32(&control->write, number + 1);
    } else {
        /* Several may leave at once. */
        __atomic_fetch_add(&control->write, 1, __ATOMIC_RELEASE);
    }
}

static unsigned epoch_of(int type, int assert)
{
    if (0 != (assert &MPI_MODE_NOCHECK)) {
        return OSC_UNCHECKED;
    }
    return MPI_LOCK_EXCLUSIVE == type ? OSC_EXCLUSIVE : OSC_SHARED;
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
        to->number = take(to->control, OSC_EXCLUSIVE == epoch);
    }
    return rc;
}

int ompi_osc_dimmnet_unlock(int target, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_target_t *to = &module->target[target];
    const unsigned epoch = to->epochs & OSC_PASSIVE;

    if (0 == epoch) {
        return OMPI_ERR_RMA_SYNC;
    }
    osc_complete();
    if (OSC_UNCHECKED != epoch) {
        give(to->control, OSC_EXCLUSIVE == epoch, to->number);
    }
    OPAL_THREAD_LOCK(&module->lock);
    to->epochs = 0;
    module->locks--;
    OPAL_THREAD_UNLOCK(&module->lock);
    return OMPI_SUCCESS;
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
    for (int rank = 0; OMPI_SUCCESS == rc && OSC_UNCHECKED != epoch && rank < module->size; rank++) {
        (void) take(module->target[rank].control, false);
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
    osc_complete();
    for (int rank = 0; OSC_UNCHECKED != epoch && rank < module->size; rank++) {
        give(module->target[rank].control, false, 0);
    }
    OPAL_THREAD_LOCK(&module->lock);
    module->epochs = 0;
    OPAL_THREAD_UNLOCK(&module->lock);
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_sync(ompi_win_t *win)
{
    osc_complete();
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_flush(int target, ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);

    if (OPAL_UNLIKELY(0 == ((module->epochs | module->target[target].epochs) & OSC_PASSIVE))) {
        return OMPI_ERR_RMA_SYNC;
    }
    osc_complete();
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_flush_all(ompi_win_t *win)
{
    const osc_module_t *module = osc_module(win);

    if (0 == (module->epochs & OSC_PASSIVE) && 0 == module->locks) {
        return OMPI_ERR_RMA_SYNC;
    }
    osc_complete();
    return OMPI_SUCCESS;
}
