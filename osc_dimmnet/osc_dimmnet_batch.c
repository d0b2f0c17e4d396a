/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_batch.c
 * Short puts and gets on private memory of this host, several of them in one call of the kernel.
 *
 * MPI wants them complete when their target is synchronised with, and no sooner. A call of the kernel costs 0.8 us beside its
 * blocks: 64 blocks of 4 KiB take 1.2 us each by themselves, 0.4 in one call. So they wait, a batch for each target and
 * direction, until it is full or synchronisation asks for it.
 *
 * The kernel copies them, and the target may compute meanwhile. But a fence waits for the target as it is: what it ends goes in
 * messages where blocks are short, which is faster yet.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** Bytes of the longest one that waits: of 64 KiB, one call each costs a fifth more, of 128 KiB a tenth. */
#define LEN_MAX (64u << 10)

/** All that waits, in one transfer. Under the module's lock. */
static void start(osc_module_t *module, int target, bool write)
{
    osc_far_t *far = &module->far[target];
    osc_batch_t *batch = far->batch[write];
    const bool fence = 0 == ((module->epochs | module->target[target].epochs) & (OSC_PASSIVE | OSC_START));
    dn_xfer_t xfer = {.key = &batch->key, .len = batch->bytes, .flags = fence ? 0 : DN_XFER_ALONE};
    const dn_sg_t here = {.block = batch->here, .count = batch->count};
    const dn_sg_t there = {.block = batch->there, .count = batch->count};
    osc_task_t *task = ompi_osc_dimmnet_task_new(far, module->win, NULL);

    if (1 == batch->count) {
        xfer.local = (void *) (uintptr_t) batch->here[0].at;
        xfer.roff = batch->there[0].at;
    } else {
        xfer.local_sg = &here;
        xfer.remote_sg = &there;
    }
    if (NULL == task) {
        far->error = OMPI_ERR_OUT_OF_RESOURCE;
    } else {
        const int rc = ompi_osc_dimmnet_task_start(task, &xfer, write);

        if (OMPI_SUCCESS != rc) {
            ompi_osc_dimmnet_task_end(task, rc);
        }
    }
    batch->count = 0;
    batch->bytes = 0;
}

/** The batch of a target that has room for @p len bytes under a key; NULL: no memory. Under the module's lock. */
static osc_batch_t *batch_for(osc_module_t *module, int target, bool write, const dn_key_t *key, uint64_t len)
{
    osc_far_t *far = &module->far[target];
    osc_batch_t *batch = far->batch[write];

    if (NULL == batch) {
        batch = calloc(1, sizeof(*batch));
        far->batch[write] = batch;
    }
    if (NULL != batch && 0 != batch->count
        && (OSC_BATCH_BLOCKS == batch->count || OSC_BATCH_BYTES < batch->bytes + len
            || batch->key.sid != key->sid || batch->key.generation != key->generation)) {
        start(module, target, write);
    }
    return batch;
}

bool ompi_osc_dimmnet_batch_add(osc_module_t *module, int target, const dn_xfer_t *xfer, bool write)
{
    if (!module->far[target].gathers || LEN_MAX < xfer->len || NULL != xfer->local_sg
        || NULL != xfer->remote_sg) {
        return false;
    }
    OPAL_THREAD_LOCK(&module->lock);
    osc_batch_t *batch = batch_for(module, target, write, xfer->key, xfer->len);
    if (NULL != batch) {
        batch->key = *xfer->key;
        batch->here[batch->count] = (dn_block_t){(uintptr_t) xfer->local, xfer->len};
        batch->there[batch->count] = (dn_block_t){xfer->roff, xfer->len};
        batch->count++;
        batch->bytes += xfer->len;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return NULL != batch;
}

void ompi_osc_dimmnet_batch_start(osc_module_t *module, int target)
{
    if (!module->far[target].gathers) {
        return;
    }
    OPAL_THREAD_LOCK(&module->lock);
    for (int write = 0; write < 2; write++) {
        const osc_batch_t *batch = module->far[target].batch[write];

        if (NULL != batch && 0 != batch->count) {
            start(module, target, 0 != write);
        }
    }
    OPAL_THREAD_UNLOCK(&module->lock);
}
