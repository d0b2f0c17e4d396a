/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_active.c
 * Active target: fence, and post, start, complete, wait.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include "ompi/group/group.h"

/** Calls of MPI_Win_test in vain between two looks whether the origins live. A call makes progress, so it takes about a microsecond. */
#define TESTS 100000u

/** Find the ranks in the window of the processes of a group, and open the group's epoch. */
static int group_open(const ompi_win_t *win, ompi_group_t *named, osc_group_t *group)
{
    const int count = ompi_group_size(named);
    int rc;

    if (count > osc_module(win)->rma.size) {
        /* There is no room for so many ranks: at least one process is not in the window. */
        return OMPI_ERR_RMA_SYNC;
    }
    int *of_group = calloc((size_t) count + 1, sizeof(*of_group));
    if (NULL == of_group) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < count; i++) {
        of_group[i] = i;
    }
    rc = ompi_group_translate_ranks(named, count, of_group, win->w_group, group->rank);
    free(of_group);
    for (int i = 0; OMPI_SUCCESS == rc && i < count; i++) {
        if (MPI_UNDEFINED == group->rank[i]) {
            rc = OMPI_ERR_RMA_SYNC;
        }
    }
    if (OMPI_SUCCESS == rc) {
        group->count = count;
        group->open = true;
    }
    return rc;
}

int ompi_osc_dimmnet_fence(int assert, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    bool open;

    OPAL_THREAD_LOCK(&module->lock);
    open = 0 != (module->epochs & OSC_PASSIVE) || 0 != module->locks || module->started.open
           || module->posted.open;
    if (!open) {
        module->epochs = 0 == (assert &MPI_MODE_NOSUCCEED) ? OSC_FENCE : 0;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (open) {
        return OMPI_ERR_RMA_SYNC;
    }
    const int settled = osc_settle(module, -1);
    const int rc =
        module->comm->c_coll->coll_barrier(module->comm, module->comm->c_coll->coll_barrier_module);
    return OMPI_SUCCESS == rc ? settled : rc;
}

/** Wait for the exposure epoch of a target. */
static int await_post(osc_module_t *module, int target)
{
    dn_rma_wait_t wait = {.polls = 0};

    while (module->target[target].posts > dn_load_acquire(&module->rma.control->notes[target].posts)) {
        if (dn_rma_is_lost(&module->rma, target)) {
            return OMPI_ERR_UNREACH;
        }
        if (osc_wait_long(&wait)) {
            (void) dn_rma_lives(&module->rma, target);
        }
    }
    return OMPI_SUCCESS;
}

/** MPI_Win_start has failed. The exposure epochs that it has counted will be found by the next MPI_Win_start.
 * @param[in] counted  So many targets of the group have been counted. */
static void close_started(osc_module_t *module, int counted)
{
    osc_group_t *group = &module->started;

    OPAL_THREAD_LOCK(&module->lock);
    for (int i = 0; i < counted; i++) {
        module->target[group->rank[i]].posts--;
        module->target[group->rank[i]].epochs = 0;
    }
    group->open = false;
    OPAL_THREAD_UNLOCK(&module->lock);
}

int ompi_osc_dimmnet_start(ompi_group_t *named, int assert, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_group_t *group = &module->started;
    int rc = OMPI_ERR_RMA_SYNC;

    OPAL_THREAD_LOCK(&module->lock);
    if (!group->open && 0 == (module->epochs & OSC_PASSIVE) && 0 == module->locks) {
        rc = group_open(win, named, group);
    }
    if (OMPI_SUCCESS == rc) {
        module->epochs = 0;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    for (int i = 0; OMPI_SUCCESS == rc && i < group->count; i++) {
        osc_target_t *to = &module->target[group->rank[i]];

        to->posts++;
        rc = 0 == (assert &MPI_MODE_NOCHECK) ? await_post(module, group->rank[i]) : OMPI_SUCCESS;
        if (OMPI_SUCCESS == rc) {
            to->epochs = OSC_START;
        } else {
            close_started(module, i + 1);
        }
    }
    return rc;
}

/** Complete the operations on the processes of an epoch. An error of another process is not returned. */
static int settle_group(osc_module_t *module, const osc_group_t *group)
{
    int rc = OMPI_SUCCESS;

    for (int i = 0; i < group->count; i++) {
        const int error = osc_settle(module, group->rank[i]);

        rc = OMPI_SUCCESS == rc ? error : rc;
    }
    return rc;
}

int ompi_osc_dimmnet_complete(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_group_t *group = &module->started;
    int rc = OMPI_ERR_RMA_SYNC;

    if (!group->open) {
        return rc;
    }
    rc = settle_group(module, group);
    for (int i = 0; i < group->count; i++) {
        dn_rma_note(&module->rma, group->rank[i], true);
    }
    OPAL_THREAD_LOCK(&module->lock);
    for (int i = 0; i < group->count; i++) {
        module->target[group->rank[i]].epochs = 0;
    }
    group->open = false;
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

int ompi_osc_dimmnet_post(ompi_group_t *named, int assert, ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    osc_group_t *group = &module->posted;
    int rc = OMPI_ERR_RMA_SYNC;

    OPAL_THREAD_LOCK(&module->lock);
    if (!group->open) {
        rc = group_open(win, named, group);
    }
    if (OMPI_SUCCESS == rc) {
        module->epochs &= ~(unsigned) OSC_FENCE;
    }
    for (int i = 0; OMPI_SUCCESS == rc && i < group->count; i++) {
        module->target[group->rank[i]].completes++;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    /* The note is sent also with MPI_MODE_NOCHECK, since both ends count epochs. The lock is not needed here: no thread may call
     * MPI_Win_wait for this epoch before this call returns. */
    for (int i = 0; OMPI_SUCCESS == rc && i < group->count; i++) {
        dn_rma_note(&module->rma, group->rank[i], false);
    }
    return rc;
}

/**
 * Have all origins of the exposure epoch ended their access epochs?
 * @param[out] error  OMPI_ERR_UNREACH: an origin is gone, and counts as if it had ended its epoch.
 */
static bool all_completed(const osc_module_t *module, int *error)
{
    const osc_group_t *group = &module->posted;

    *error = OMPI_SUCCESS;
    for (int i = 0; i < group->count; i++) {
        const int rank = group->rank[i];

        if (module->target[rank].completes <= dn_load_acquire(&module->rma.control->notes[rank].completes)) {
            continue;
        }
        if (!dn_rma_is_lost(&module->rma, rank)) {
            return false;
        }
        *error = OMPI_ERR_UNREACH;
    }
    return true;
}

/** Look which origins of the exposure epoch live. all_completed() does not wait for an origin that was found gone. */
static void look_at_origins(const osc_module_t *module)
{
    for (int i = 0; i < module->posted.count; i++) {
        (void) dn_rma_lives(&module->rma, module->posted.rank[i]);
    }
}

/** End the exposure epoch, if it is @p completed. @return OMPI_ERR_RMA_SYNC: no exposure epoch is open. */
static int close_posted(osc_module_t *module, bool completed)
{
    int rc = OMPI_ERR_RMA_SYNC;

    OPAL_THREAD_LOCK(&module->lock);
    if (module->posted.open) {
        module->posted.open = !completed;
        rc = OMPI_SUCCESS;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

int ompi_osc_dimmnet_test(ompi_win_t *win, int *flag)
{
    osc_module_t *module = osc_module(win);
    int error = OMPI_SUCCESS;
    const bool completed = module->posted.open && all_completed(module, &error);
    const int rc = close_posted(module, completed);

    *flag = completed;
    if (!completed) {
        dn_ompi_progress_once();
        if (0 == ++module->tests % TESTS) {
            look_at_origins(module);
        }
    }
    return OMPI_SUCCESS == rc ? error : rc;
}

int ompi_osc_dimmnet_wait_posted(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    int error = OMPI_SUCCESS;
    dn_rma_wait_t wait = {.polls = 0};

    while (module->posted.open && !all_completed(module, &error)) {
        if (osc_wait_long(&wait)) {
            look_at_origins(module);
        }
    }
    const int rc = close_posted(module, true);
    return OMPI_SUCCESS == rc ? error : rc;
}
