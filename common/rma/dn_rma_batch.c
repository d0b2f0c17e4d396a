/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_batch.c
 * Short puts and gets on private memory of another process of this host: several of them go in one system call.
 *
 * These operations have to be complete when the origin synchronises with their target, and no sooner. A system call costs 0.8 us
 * beside its blocks: 64 blocks of 4 KiB take 1.2 us each in calls of their own, and 0.4 us each in one call. So the operations
 * wait in a batch, one for each target and direction, until the batch is full or synchronisation asks for it.
 *
 * A target that is in a call of this library may carry out a batch (dn_rma_offer.c). Otherwise the kernel copies the bytes, and the
 * target may compute meanwhile. Which way is faster depends on the machine: on some machines a system call takes as long as two lines
 * that cross from core to core, on others as long as twenty. So the origin times both ways, and uses the faster one.
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** Bytes that a batch has room for. */
#define DN_RMA_BATCH_BYTES (512u << 10)

/** Bytes of the longest operation in a batch. A call for each operation costs a fifth more at 64 KiB, and a tenth more at 128 KiB. */
#define DN_RMA_BATCH_LONGEST (64u << 10)

/** Most bytes of a short operation. An offer that is full of short ones takes less time than a system call with 64 (perf/dn_rma put_bw). */
#define DN_RMA_BATCH_SHORT 512

/** Puts, or gets, of one target that wait for more. They go in one transfer. */
typedef struct dn_rma_batch {
    dn_key_t key; /**< of the segment that all of them are in */
    uint32_t count;
    uint64_t bytes;
    dn_rma_task_t *task;                 /**< once it has begun */
    dn_block_t here[DN_RMA_MOVES_MOST];  /**< addresses */
    dn_block_t there[DN_RMA_MOVES_MOST]; /**< offsets in the segment */
} dn_rma_batch_t;

/** Take a batch from its target: from here on the batch counts as pending. Under the window's lock. @return NULL: no batch to start. */
static dn_rma_batch_t *dn_rma_batch_take(dn_rma_win_t *win, int target, bool write)
{
    dn_rma_far_t *far = &win->far[target];
    dn_rma_batch_t *batch = far->batch[write];

    if (NULL == batch || 0 == batch->count) {
        return NULL;
    }
    batch->task = calloc(1, sizeof(*batch->task));
    if (NULL == batch->task) {
        far->error = DN_ERR_NOMEM;
        batch->count = 0;
        batch->bytes = 0;
        return NULL;
    }
    dn_rma_task_begin(win, target, batch->task);
    far->batch[write] = NULL;
    return batch;
}

/** The ways of a batch, as dn_choice_make() tells them apart. */
enum { DN_RMA_BY_OFFER, DN_RMA_BY_KERNEL };

/** How often each way is tried. */
static const dn_choice_plan_t dn_rma_plan = {.tries = {24, 24}, .counts = 8, .once = 16, .every = 8192};

/** An offer that ended in DN_ERR_AGAIN later than this was taken back: it cost the wait, and the system call after it. */
#define DN_RMA_TAKEN_BACK_NS 1000u

static dn_choice_t *dn_rma_choice_of(dn_rma_far_t *far, uint64_t bytes, bool write)
{
    return &far->choice[write][1024 >= bytes ? 0 : 4096 >= bytes ? 1 : 2];
}

/** Carry out a batch, or start it. @retval DN_INPROGRESS  dn_rma_task_end() was called, or will be. */
static dn_status_t dn_rma_batch_do(dn_rma_win_t *win, int target, const dn_rma_batch_t *batch,
                                   dn_xfer_t *xfer, bool write)
{
    const dn_rma_moves_t moves = {batch->here, batch->there, batch->count, batch->bytes};
    dn_choice_t *choice = dn_rma_choice_of(&win->far[target], batch->bytes, write);
    const bool fits = dn_rma_offer_fits(&win->far[target], &moves);
    bool timed = false;

    const unsigned way = fits ? dn_choice_make(choice, &dn_rma_plan, 1, &timed) : DN_RMA_BY_KERNEL;
    const uint64_t began = timed ? dn_clock_ns() : 0;
    dn_status_t status = DN_RMA_BY_OFFER == way ? dn_rma_offer(win, target, &moves, write) : DN_ERR_AGAIN;
    const uint64_t offered = timed ? dn_clock_ns() : 0;
    if (DN_ERR_AGAIN != status) {
        if (timed && DN_OK == status) {
            dn_choice_learn(choice, DN_RMA_BY_OFFER, offered - began);
        }
        return status;
    }
    /* Both ends of a copy that they share are not timed by one of them. */
    xfer->flags |= timed ? DN_XFER_UNSHARED : 0;
    status = dn_rma_transfer(batch->task, xfer, write);
    if (timed && DN_OK == status) {
        const uint64_t now = dn_clock_ns();
        dn_choice_learn(choice, DN_RMA_BY_KERNEL, now - offered);
        if (DN_RMA_TAKEN_BACK_NS < offered - began) {
            dn_choice_learn(choice, DN_RMA_BY_OFFER, now - began);
        }
    }
    return DN_OK == status ? DN_INPROGRESS : status;
}

/** Start a batch that was taken, and keep its memory for the next one. */
static void dn_rma_batch_send(dn_rma_win_t *win, int target, dn_rma_batch_t *batch, bool write, bool alone)
{
    dn_rma_far_t *far = &win->far[target];
    dn_xfer_t xfer = {.key = &batch->key, .len = batch->bytes, .flags = alone ? DN_XFER_ALONE : 0};
    const dn_sg_t here = {.block = batch->here, .count = batch->count};
    const dn_sg_t there = {.block = batch->there, .count = batch->count};

    if (1 == batch->count) {
        xfer.local = (void *) (uintptr_t) batch->here[0].at;
        xfer.roff = batch->there[0].at;
    } else {
        xfer.local_sg = &here;
        xfer.remote_sg = &there;
    }
    const dn_status_t status = dn_rma_batch_do(win, target, batch, &xfer, write);
    if (DN_INPROGRESS != status) {
        dn_rma_task_end(batch->task, status);
    }
    batch->count = 0;
    batch->bytes = 0;
    dn_rma_enter(win, &win->lock);
    if (NULL == far->batch[write]) {
        far->batch[write] = batch;
        batch = NULL;
    }
    dn_rma_leave(win, &win->lock);
    free(batch);
}

static bool dn_rma_batch_has_room(const dn_rma_far_t *far, const dn_rma_batch_t *batch, const dn_xfer_t *xfer)
{
    const uint64_t message = batch->bytes + batch->count * sizeof(dn_block_t);
    /* Short ones fill a message, if there were none but these. */
    const bool fits = DN_RMA_BATCH_SHORT < xfer->len || far->offer_max < message
                      || far->offer_max >= message + xfer->len + sizeof(dn_block_t);

    return 0 == batch->count
           || (fits && DN_RMA_MOVES_MOST > batch->count && DN_RMA_BATCH_BYTES >= batch->bytes + xfer->len
               && batch->key.sid == xfer->key->sid && batch->key.generation == xfer->key->generation);
}

/** Add an operation to a batch. Under the window's lock. @return false: no memory. */
static bool dn_rma_batch_put_in(dn_rma_far_t *far, const dn_xfer_t *xfer, bool write)
{
    dn_rma_batch_t *batch = far->batch[write];

    if (NULL == batch) {
        batch = malloc(sizeof(*batch));
        if (NULL == batch) {
            return false;
        }
        batch->count = 0;
        batch->bytes = 0;
        far->batch[write] = batch;
    }
    batch->key = *xfer->key;
    batch->here[batch->count] = (dn_block_t){(uintptr_t) xfer->local, xfer->len};
    batch->there[batch->count] = (dn_block_t){xfer->roff, xfer->len};
    batch->count++;
    batch->bytes += xfer->len;
    return true;
}

bool dn_rma_batch_add(dn_rma_win_t *win, int target, const dn_xfer_t *xfer, bool write, bool alone)
{
    dn_rma_far_t *far = &win->far[target];
    dn_rma_batch_t *full = NULL;

    if (!far->gathers || DN_RMA_BATCH_LONGEST < xfer->len || NULL != xfer->local_sg
        || NULL != xfer->remote_sg) {
        return false;
    }
    dn_rma_enter(win, &win->lock);
    if (NULL != far->batch[write] && !dn_rma_batch_has_room(far, far->batch[write], xfer)) {
        full = dn_rma_batch_take(win, target, write);
    }
    const bool added = dn_rma_batch_put_in(far, xfer, write);
    dn_rma_leave(win, &win->lock);
    if (NULL != full) {
        dn_rma_batch_send(win, target, full, write, alone);
    }
    return added;
}

void dn_rma_batch_start(dn_rma_win_t *win, int target, bool alone)
{
    if (!win->far[target].gathers) {
        return;
    }
    for (int write = 0; write < 2; write++) {
        dn_rma_enter(win, &win->lock);
        dn_rma_batch_t *batch = dn_rma_batch_take(win, target, 0 != write);
        dn_rma_leave(win, &win->lock);

        if (NULL != batch) {
            dn_rma_batch_send(win, target, batch, 0 != write, alone);
        }
    }
}
