/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_active.c
 * Active target: fence, and post, start, complete, wait.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include "ompi/group/group.h"
#include "opal/runtime/opal_progress.h"

/** Write down which ranks of the window a group names, and that its epoch is open. */
static int group_open(const ompi_win_t *win, ompi_group_t *named, osc_group_t *group)
{
    const int count = ompi_group_size(named);
    int *of_group = calloc((size_t) count + 1, sizeof(*of_group));
    int rc;

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

/** Count an epoch in the notes that @p target keeps about this process. */
static void note(osc_module_t *module, int target, bool completes)
{
    osc_target_t *to = &module->target[target];

    if (NULL == to->control) {
        ompi_osc_dimmnet_send_note(module, target, completes);
    } else {
        /* A release: what was put, or stored, comes before. */
        osc_publish(completes ? &to->control->notes[module->rank].completes
                              : &to->control->notes[module->rank].posts);
    }
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
        unsigned polls = 0;

        to->posts++;
        while (0 == (assert &MPI_MODE_NOCHECK)
               && to->posts > osc_load_u64(&module->control->notes[group->rank[i]].posts)) {
            ompi_osc_dimmnet_wait(&polls);
        }
        to->epochs = OSC_START;
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
    rc = osc_settle(module, -1);
    OPAL_THREAD_LOCK(&module->lock);
    for (int i = 0; i < group->count; i++) {
        module->target[group->rank[i]].epochs = 0;
        note(module, group->rank[i], true);
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
    /* Also with MPI_MODE_NOCHECK: epochs are counted at both ends. */
    for (int i = 0; OMPI_SUCCESS == rc && i < group->count; i++) {
        module->target[group->rank[i]].completes++;
        note(module, group->rank[i], false);
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

/** Have all origins of the exposure epoch completed theirs? Those who have are passed over at the next look. */
static bool all_completed(const osc_module_t *module)
{
    const osc_group_t *group = &module->posted;

    for (int i = 0; i < group->count; i++) {
        const int rank = group->rank[i];

        if (module->target[rank].completes > osc_load_u64(&module->control->notes[rank].completes)) {
            return false;
        }
    }
    return true;
}

/** @return OMPI_ERR_RMA_SYNC: no exposure epoch is open. */
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
    const bool completed = module->posted.open && all_completed(module);
    const int rc = close_posted(module, completed);

    *flag = completed;
    if (!completed) {
        opal_progress();
    }
    return rc;
}

int ompi_osc_dimmnet_wait_posted(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);
    unsigned polls = 0;

    while (module->posted.open && !all_completed(module)) {
        ompi_osc_dimmnet_wait(&polls);
    }
    return close_posted(module, true);
}
