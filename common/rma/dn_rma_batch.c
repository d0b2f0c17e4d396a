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
 * A target that is in a call of this library may carry out a short batch (dn_rma_offer.c), or copy a share of one that is a single long
 * operation (common/shm/dn_shm_help.c). Otherwise the kernel copies the bytes, and the target may compute meanwhile. Which way is faster
 * depends on the machine: on some machines a system call takes as long as two lines that cross from core to core, on others as long as
 * twenty. So the origin times both ways for each class of length, and uses the faster one.
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** Bytes that a batch has room for. */
#define DN_RMA_BATCH_BYTES (512u << 10)

/** Bytes of the longest operation in a batch. A call for each operation costs a fifth more at 64 KiB, and a tenth more at 128 KiB. */
#define DN_RMA_BATCH_LONGEST (64u << 10)

/** Most bytes of a short operation. An offer that is full of short ones takes less time than a system call with 64 (perf/dn_rma put_bw). */
#define DN_RMA_BATCH_SHORT 512

/** Puts, or gets, of one target. They wait for more in dn_rma_far_t::batch, and go in one transfer: the task is theirs. When it ends,
 * the batch is kept for the next operations, or freed if there is another batch by then. */
typedef struct dn_rma_batch {
    dn_rma_task_t task; /**< first */
    dn_rma_win_t *win;
    bool write;
    bool timed;
    unsigned way;      /**< of DN_RMA_BY_BOTH and DN_RMA_BY_KERNEL: how it is carried out */
    uint64_t began_ns; /**< when it was started; if it is timed */
    dn_key_t key;      /**< of the segment that all of them are in */
    uint32_t count;
    uint64_t bytes;
    dn_block_t here[DN_RMA_MOVES_MOST];  /**< addresses */
    dn_block_t there[DN_RMA_MOVES_MOST]; /**< offsets in the segment */
} dn_rma_batch_t;

/** The ways of a batch, as dn_choice_make() tells them apart. */
enum {
    DN_RMA_BY_BOTH, /**< the target takes part: by an offer, or, of what is too long for an offer, by a copy that both share */
    DN_RMA_BY_KERNEL /**< one system call, and the target may compute */
};

/** How often each way is tried. */
static const dn_choice_plan_t dn_rma_plan = {.tries = {24, 24}, .counts = 8, .once = 16, .every = 8192};

/** The choice for batches about as long: up to 1 KiB, 2 KiB, 4 KiB and so on. */
static dn_choice_t *dn_rma_choice_of(const dn_rma_batch_t *batch)
{
    unsigned index = 0;

    while (DN_RMA_CHOICES > index + 1 && (UINT64_C(1024) << index) < batch->bytes) {
        index++;
    }
    return &batch->task.far->choice[batch->write][index];
}

/** dn_rma_task_t::end. */
static void dn_rma_batch_end(dn_rma_task_t *task, dn_status_t status)
{
    dn_rma_batch_t *batch = (dn_rma_batch_t *) task;
    dn_rma_win_t *win = batch->win;
    dn_rma_batch_t **place = &task->far->batch[batch->write];

    /* dn_rma_task_end() has kept an error already. The time of a shared copy that ends in the background has what else was done meanwhile. */
    if (batch->timed && DN_OK == status) {
        dn_choice_learn(dn_rma_choice_of(batch), batch->way, dn_clock_ns() - batch->began_ns);
    }
    batch->count = 0;
    batch->bytes = 0;
    dn_rma_enter(win, &win->lock);
    if (NULL == *place) {
        *place = batch;
        batch = NULL;
    }
    dn_rma_leave(win, &win->lock);
    free(batch);
}

/** Take a batch from its target: from here on the batch counts as pending. Under the window's lock. @return NULL: no batch to start. */
static dn_rma_batch_t *dn_rma_batch_take(dn_rma_win_t *win, int target, bool write)
{
    dn_rma_far_t *far = &win->far[target];
    dn_rma_batch_t *batch = far->batch[write];

    if (NULL == batch || 0 == batch->count) {
        return NULL;
    }
    far->batch[write] = NULL;
    dn_rma_task_begin(win, target, &batch->task);
    return batch;
}

/** An offer that ended in DN_ERR_AGAIN sooner than this was not made, or declined: the kernel's time begins then. An offer that ended in it
 * later was taken back: the time until the system call is over is the cost of the offer. */
#define DN_RMA_TAKEN_BACK_NS 1000u

/** Offer a batch to its target. @return as dn_rma_offer(). */
static dn_status_t dn_rma_batch_offer(dn_rma_win_t *win, int target, dn_rma_batch_t *batch,
                                      const dn_rma_moves_t *moves)
{
    const dn_status_t status = dn_rma_offer(win, target, moves, batch->write);

    if (DN_ERR_AGAIN == status && batch->timed) {
        const uint64_t now = dn_clock_ns();

        if (DN_RMA_TAKEN_BACK_NS > now - batch->began_ns) {
            batch->way = DN_RMA_BY_KERNEL;
            batch->began_ns = now;
        }
    }
    return status;
}

/** Carry out a batch, or start it. @retval DN_INPROGRESS  dn_rma_task_end() was called, or will be: the batch may be gone. */
static dn_status_t dn_rma_batch_do(dn_rma_win_t *win, int target, dn_rma_batch_t *batch, dn_xfer_t *xfer)
{
    const dn_rma_moves_t moves = {batch->here, batch->there, batch->count, batch->bytes};
    const bool fits = dn_rma_offer_fits(&win->far[target], &moves);

    batch->way = DN_RMA_BY_KERNEL;
    batch->timed = false;
    if (fits || 1 == batch->count) {
        batch->way = dn_choice_make(dn_rma_choice_of(batch), &dn_rma_plan, 1, &batch->timed);
    }
    batch->began_ns = batch->timed ? dn_clock_ns() : 0;
    if (fits && DN_RMA_BY_BOTH == batch->way) {
        const dn_status_t status = dn_rma_batch_offer(win, target, batch, &moves);

        if (DN_ERR_AGAIN != status) {
            return status;
        }
    }
    if (DN_RMA_BY_KERNEL == batch->way) {
        xfer->flags |= DN_XFER_UNSHARED;
    }
    const dn_status_t status = dn_rma_transfer(&batch->task, xfer, batch->write);
    return DN_OK == status ? DN_INPROGRESS : status;
}

/** Start a batch that was taken. */
static void dn_rma_batch_send(dn_rma_win_t *win, int target, dn_rma_batch_t *batch, bool alone)
{
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
    const dn_status_t status = dn_rma_batch_do(win, target, batch, &xfer);
    if (DN_INPROGRESS != status) {
        dn_rma_task_end(&batch->task, status);
    }
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
static bool dn_rma_batch_put_in(dn_rma_win_t *win, dn_rma_far_t *far, const dn_xfer_t *xfer, bool write)
{
    dn_rma_batch_t *batch = far->batch[write];

    if (NULL == batch) {
        batch = malloc(sizeof(*batch));
        if (NULL == batch) {
            return false;
        }
        batch->task = (dn_rma_task_t){.end = dn_rma_batch_end};
        batch->win = win;
        batch->write = write;
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
    const bool added = dn_rma_batch_put_in(win, far, xfer, write);
    dn_rma_leave(win, &win->lock);
    if (NULL != full) {
        dn_rma_batch_send(win, target, full, alone);
    }
    return added;
}

bool dn_rma_batch_start(dn_rma_win_t *win, int target, bool alone)
{
    bool started = false;

    if (!win->far[target].gathers) {
        return false;
    }
    for (int write = 0; write < 2; write++) {
        dn_rma_enter(win, &win->lock);
        dn_rma_batch_t *batch = dn_rma_batch_take(win, target, 0 != write);
        dn_rma_leave(win, &win->lock);

        if (NULL != batch) {
            dn_rma_batch_send(win, target, batch, alone);
            started = true;
        }
    }
    return started;
}
