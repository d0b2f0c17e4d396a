/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_passive.c
 * Passive target: locks and flushes.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

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
        /* From here on other threads find the target locked, although this process does not hold the lock yet. */
        to->epochs = epoch;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (OMPI_SUCCESS == rc && OSC_UNCHECKED != epoch) {
        rc = osc_error(dn_rma_lock(&module->rma, target, OSC_EXCLUSIVE == epoch));
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
        dn_rma_unlock(&module->rma, target, OSC_EXCLUSIVE == epoch);
    }
    close_lock(module, target);
    return rc;
}

/** Give back the shared locks of ranks 0 .. @p count - 1, and end the epoch of all targets. */
static void close_locks(osc_module_t *module, int count)
{
    for (int rank = 0; rank < count; rank++) {
        dn_rma_unlock(&module->rma, rank, false);
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
    /* The locks are taken one after the other, in the same order in all processes. Otherwise two processes might each hold a lock that
     * an exclusive waiter keeps from the other. */
    for (int rank = 0; OMPI_SUCCESS == rc && rank < module->rma.size; rank++) {
        rc = osc_error(dn_rma_lock(&module->rma, rank, false));
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
    close_locks(module, OSC_UNCHECKED == epoch ? 0 : module->rma.size);
    return rc;
}

int ompi_osc_dimmnet_sync(ompi_win_t *win)
{
    osc_complete();
    if (NULL != osc_module(win)->rma.far) {
        dn_ompi_progress_once();
    }
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_flush(int target, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);

    /* MPI_Win_flush() and MPI_Win_flush_local() of Open MPI 4.1 do not check the rank. */
    if (OPAL_UNLIKELY((unsigned) target >= (unsigned) module->rma.size)) {
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
