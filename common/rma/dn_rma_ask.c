/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** Blocks of one part of a layout that is too long to be shipped. */
#define DN_RMA_BLOCKS 512

/** @name Sending */
/** @{ */
dn_rma_head_t dn_rma_head(const dn_rma_win_t *win, int rank)
{
    return (dn_rma_head_t){.window = win->far[rank].window, .rank = win->rank};
}

/** Wait for room for a message of @p len bytes. Not called in a handler. */
static dn_status_t dn_rma_reserve(const dn_rma_win_t *win, dn_peer_t *peer, size_t len, dn_window_t *window)
{
    dn_rma_wait_t wait = {.polls = 0};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, len, window))) {
        dn_rma_wait(win->rma, &wait);
    }
    return status;
}

dn_status_t dn_rma_send_head(const dn_rma_win_t *win, int rank, enum dn_rma_kind kind,
                             const dn_rma_head_t *head)
{
    dn_rma_far_t *far = &win->far[rank];
    dn_window_t window;
    const dn_status_t status = dn_rma_reserve(win, far->peer, sizeof(*head), &window);

    if (DN_OK == status) {
        memcpy(window.data, head, sizeof(*head));
        dn_botf_kick(far->peer, &window, win->rma->channel, kind, sizeof(*head));
    } else {
        /* The news of a loss does not reach a window that has not placed its peers yet: nothing will come of it. */
        dn_store_release_u32(&far->lost, 1);
    }
    return status;
}

void dn_rma_note(dn_rma_win_t *win, int target, bool completes)
{
    const dn_rma_target_t *to = &win->target[target];

    if (NULL == to->control) {
        const dn_rma_head_t head = dn_rma_head(win, target);

        (void) dn_rma_send_head(win, target, completes ? DN_RMA_COMPLETE : DN_RMA_POST, &head);
        return;
    }
    dn_rma_notes_t *notes = &to->control->notes[win->rank];
    uint64_t *word = completes ? &notes->completes : &notes->posts;
    /* Nobody else writes it. A release: what was put, or stored, comes before. */
    dn_store_release(word, *word + 1);
    dn_wake(to->peer);
}
/** @} */

/** @name Put and get */
/** @{ */
static __attribute__((noinline)) dn_status_t dn_rma_retry(const dn_rma_t *rma, dn_peer_t *peer,
                                                          dn_xfer_t *xfer, bool write)
{
    dn_rma_wait_t wait = {.polls = 0};
    dn_status_t status;

    do {
        dn_rma_wait(rma, &wait);
        status = write ? dn_push(peer, xfer) : dn_pull(peer, xfer);
    } while (DN_ERR_AGAIN == status);
    return status;
}

dn_status_t dn_rma_transfer(dn_rma_task_t *task, dn_xfer_t *xfer, bool write)
{
    dn_peer_t *peer = task->far->peer;

    xfer->comp = &task->comp;
    dn_status_t status = write ? dn_push(peer, xfer) : dn_pull(peer, xfer);
    if (DN_ERR_AGAIN == status) {
        status = dn_rma_retry(task->rma, peer, xfer, write);
    }
    if (DN_OK == status) {
        dn_rma_task_end(task, DN_OK);
    }
    return DN_INPROGRESS == status ? DN_OK : status;
}

static __attribute__((noinline)) void dn_rma_await_pending(const dn_rma_t *rma, const dn_rma_far_t *far)
{
    dn_rma_wait_t wait = {.polls = 0};

    while (0 != dn_load_acquire_u32(&far->pending)) {
        dn_rma_wait(rma, &wait);
    }
}

dn_status_t dn_rma_settle(dn_rma_win_t *win, int target)
{
    dn_rma_far_t *far = &win->far[target];

    if (0 != dn_load_acquire_u32(&far->pending)) {
        dn_rma_await_pending(win->rma, far);
    }
    const dn_status_t error = far->error;
    far->error = DN_OK;
    return dn_rma_is_lost(win, target) ? DN_ERR_UNREACH : error;
}
/** @} */

/** @name Accumulates */
/** @{ */

/** Wait until at most @p most parts of accumulates to a target have no answer yet. */
static dn_status_t dn_rma_await_answers(const dn_rma_win_t *win, int target, uint32_t most)
{
    dn_rma_wait_t wait = {.polls = 0};

    while (most < dn_load_acquire_u32(&win->far[target].asked)) {
        if (dn_rma_is_lost(win, target)) {
            return DN_ERR_UNREACH;
        }
        dn_rma_wait(win->rma, &wait);
    }
    return DN_OK;
}

/** Send a piece of a layout to a target, after the answers to all parts. */
static dn_status_t dn_rma_send_piece(const dn_rma_win_t *win, int target, const dn_ship_piece_t *piece,
                                     const uint8_t *bytes, size_t n)
{
    const dn_rma_head_t head = dn_rma_head(win, target);
    const size_t len = sizeof(head) + sizeof(*piece) + n;
    dn_peer_t *peer = win->far[target].peer;
    dn_window_t window;
    dn_status_t status = dn_rma_await_answers(win, target, 0);

    if (DN_OK == status) {
        status = dn_rma_reserve(win, peer, len, &window);
    }
    if (DN_OK == status) {
        uint8_t *to = window.data;

        memcpy(to, &head, sizeof(head));
        memcpy(to + sizeof(head), piece, sizeof(*piece));
        memcpy(to + sizeof(head) + sizeof(*piece), bytes, n);
        dn_botf_kick(peer, &window, win->rma->channel, DN_RMA_LAYOUT, len);
    }
    return status;
}

/** Send a layout to a target that lacks it. @param[in] out  The target's. @return DN_OK: the target has the layout in its slot
 * @p slot_p, which the caller leaves by dn_ship_out_leave(). */
static dn_status_t dn_rma_ship(const dn_rma_win_t *win, int target, dn_ship_out_t *out, const dn_prog_t *prog,
                               size_t room, uint32_t *slot_p)
{
    dn_status_t status = dn_ship_out_enter(out, prog, slot_p);
    dn_ship_piece_t piece;
    const uint8_t *bytes;
    size_t n;

    if (DN_OK != status) {
        return status;
    }
    while (DN_INPROGRESS
           == (status = dn_ship_out_next(out, *slot_p, room - sizeof(piece), &piece, &bytes, &n))) {
        status = dn_rma_send_piece(win, target, &piece, bytes, n);
        if (DN_OK != status) {
            break;
        }
        (void) dn_ship_out_sent(out, &piece, n);
    }
    if (DN_OK != status) {
        dn_ship_out_leave(out, *slot_p);
    }
    return status;
}

/** An accumulate that is being sent. */
typedef struct dn_rma_asking {
    dn_rma_win_t *win;
    int target;
    const dn_rma_acc_t *acc;
    dn_rma_task_t *task;
    dn_rma_head_t head;        /**< of the next part */
    dn_prog_cursor_t operands; /**< of the next part */
    dn_prog_cursor_t there;    /**< DN_RMA_BY_BLOCKS: of the target's memory */
    uint64_t room;             /**< behind the head */
} dn_rma_asking_t;

/**
 * Choose the blocks of the next part of a layout.
 * @param[out] block  DN_RMA_BLOCKS of them.
 * @return bytes of data in these blocks: whole elements.
 */
static uint64_t dn_rma_collect_blocks(dn_rma_asking_t *asking, dn_block_t *block)
{
    uint64_t room = asking->room;
    uint64_t n = 0, len = 0;

    while (DN_RMA_BLOCKS > n && sizeof(*block) < room) {
        const uint64_t run = dn_prog_next(&asking->there, room - sizeof(*block), &block[n].at);

        if (0 == run) {
            break;
        }
        block[n++].len = run;
        len += run;
        room -= sizeof(*block) + run;
    }
    uint64_t beyond = len % asking->acc->size;
    if (0 != beyond) {
        len -= beyond;
        dn_prog_seek(&asking->there, asking->head.skip + len);
    }
    while (0 != beyond) {
        const uint64_t cut = beyond < block[n - 1].len ? beyond : block[n - 1].len;

        block[n - 1].len -= cut;
        beyond -= cut;
        n -= 0 == block[n - 1].len;
    }
    asking->head.count = n;
    return len;
}

/** Send the part that the head describes. @param[in] block  The blocks of DN_RMA_BY_BLOCKS. */
static dn_status_t dn_rma_send_part(dn_rma_asking_t *asking, const dn_block_t *block)
{
    const dn_rma_win_t *win = asking->win;
    const dn_rma_acc_t *acc = asking->acc;
    const dn_rma_head_t *head = &asking->head;
    const uint64_t blocks = 0 != (DN_RMA_BY_BLOCKS & head->flags) ? head->count * sizeof(*block) : 0;
    const uint64_t data = NULL != acc->compare      ? 2 * (uint64_t) acc->size
                          : DN_ACC_NO_OP == acc->op ? 0
                                                    : head->len;
    dn_rma_far_t *far = &win->far[asking->target];
    dn_window_t window;
    const dn_status_t status = dn_rma_reserve(win, far->peer, sizeof(*head) + blocks + data, &window);

    if (DN_OK != status) {
        return status;
    }
    uint8_t *to = (uint8_t *) window.data + sizeof(*head);
    memcpy(window.data, head, sizeof(*head));
    if (0 != blocks) {
        memcpy(to, block, blocks);
    }
    if (0 != data) {
        (void) dn_prog_gather(to + blocks, &asking->operands, head->len);
    }
    if (NULL != acc->compare) {
        memcpy(to + acc->size, acc->compare, acc->size);
    }
    /* Before the answer can come. */
    dn_fetch_add_relaxed(&far->asked, 1);
    dn_botf_kick(far->peer, &window, win->rma->channel, DN_RMA_ACCUMULATE, sizeof(*head) + blocks + data);
    return DN_OK;
}

/** Send all parts. The caller holds the task. */
static dn_status_t dn_rma_send_parts(dn_rma_asking_t *asking)
{
    const uint64_t bytes = asking->acc->there->len;
    const uint64_t most = asking->room / asking->acc->size * asking->acc->size;
    dn_block_t block[DN_RMA_BLOCKS];
    dn_rma_head_t *head = &asking->head;
    dn_status_t status = DN_OK;

    for (head->skip = 0; DN_OK == status && head->skip < bytes; head->skip += head->len) {
        if (0 != head->skip) {
            dn_rma_task_more(asking->task);
        }
        head->len = 0 != (DN_RMA_BY_BLOCKS & head->flags) ? dn_rma_collect_blocks(asking, block)
                    : most < bytes - head->skip           ? most
                                                          : bytes - head->skip;
        status = 0 == head->len ? DN_ERR_UNSUPPORTED
                                : dn_rma_await_answers(asking->win, asking->target, DN_RMA_ASKED_MAX - 1);
        if (DN_OK == status) {
            status = dn_rma_send_part(asking, block);
        }
    }
    return status;
}

/** Ship the layout, then send all parts. */
static dn_status_t dn_rma_send_by_program(dn_rma_asking_t *asking)
{
    const dn_prog_t *prog = asking->acc->there->use.prog;
    dn_rma_far_t *far = &asking->win->far[asking->target];

    if (NULL == far->layouts) {
        far->layouts = calloc(1, sizeof(*far->layouts));
    }
    if (NULL == far->layouts) {
        return DN_ERR_NOMEM;
    }
    asking->head.layout = dn_prog_info(prog)->id;
    dn_status_t status =
        dn_rma_ship(asking->win, asking->target, far->layouts, prog, asking->room, &asking->head.slot);
    if (DN_OK == status) {
        status = dn_rma_send_parts(asking);
        /* Another layout gets the slot after the answers to these parts, at the earliest. */
        dn_ship_out_leave(far->layouts, asking->head.slot);
    }
    return status;
}

/** A call has failed before its next part: wait for the answers to the parts that were sent. After that, no answer writes to the
 * caller's memory. */
static void dn_rma_await_parts(const dn_rma_win_t *win, int target, const dn_rma_task_t *task)
{
    dn_rma_wait_t wait = {.polls = 0};

    /* The one left is the part that does not go. */
    while (1 < dn_load_acquire_u32(&task->parts) && !dn_rma_is_lost(win, target)) {
        dn_rma_wait(win->rma, &wait);
    }
}

dn_status_t dn_rma_accumulate(dn_rma_win_t *win, int target, const dn_rma_acc_t *acc, dn_rma_task_t *task)
{
    dn_rma_asking_t asking = {.win = win, .target = target, .acc = acc, .task = task};
    const dn_prog_use_t *use = &acc->there->use;
    dn_rma_head_t *head = &asking.head;
    dn_peer_attr_t attr;
    dn_status_t status;

    if (!dn_rma_task_await(task)) {
        task->tells = true; /* the call says so */
        dn_rma_task_end(task, DN_ERR_NOMEM);
        return DN_ERR_NOMEM;
    }
    dn_peer_attr(win->far[target].peer, &attr);
    asking.room = attr.botf_max - sizeof(*head);
    *head = dn_rma_head(win, target);
    head->task = task->handle;
    head->at = acc->there->at;
    head->op = acc->op;
    head->type = acc->type;
    head->flags = (task->fetches ? DN_RMA_FETCHES : 0) | (NULL != acc->compare ? DN_RMA_COMPARES : 0);
    if (DN_ACC_NO_OP != acc->op) {
        dn_rma_side_start(acc->origin, &asking.operands);
    }
    dn_rma_enter(win, &win->asking);
    if (NULL == use->prog) {
        head->count = acc->there->len;
        status = dn_rma_send_parts(&asking);
    } else if (dn_ship_fits(use->prog)) {
        head->flags |= DN_RMA_BY_PROGRAM;
        head->count = use->count;
        head->extent = use->extent;
        status = dn_rma_send_by_program(&asking);
    } else {
        head->flags |= DN_RMA_BY_BLOCKS;
        head->at = 0;
        dn_rma_side_start(acc->there, &asking.there);
        status = dn_rma_send_parts(&asking);
    }
    dn_rma_leave(win, &win->asking);
    if (DN_OK != status) {
        dn_rma_await_parts(win, target, task);
        task->tells = true; /* the call says so */
    }
    dn_rma_task_leave(task, DN_OK == status ? 0 : UINT32_MAX, status);
    return status;
}
/** @} */

dn_status_t dn_rma_ask_region(dn_rma_win_t *win, int target, uint64_t at, uint64_t len,
                              dn_rma_region_t *region_p)
{
    dn_rma_head_t head = dn_rma_head(win, target);
    dn_rma_task_t *task = calloc(1, sizeof(*task));
    dn_rma_wait_t wait = {.polls = 0};
    dn_status_t status;

    if (NULL == task) {
        return DN_ERR_NOMEM;
    }
    region_p->len = 0;
    task->region = region_p;
    /* The call says what is wrong, not the next flush. */
    task->tells = true;
    dn_rma_task_begin(win, target, task);
    if (!dn_rma_task_await(task)) {
        dn_rma_task_end(task, DN_ERR_NOMEM);
        return DN_ERR_NOMEM;
    }
    head.task = task->handle;
    head.at = at;
    head.len = len;
    status = dn_rma_send_head(win, target, DN_RMA_FIND, &head);
    /* All of it is over before the caller's memory goes, also when the peer is lost. */
    while (DN_OK == status && 0 != dn_load_acquire_u32(&task->parts)) {
        dn_rma_wait(win->rma, &wait);
    }
    if (DN_OK == status) {
        status = task->error;
    }
    if (DN_OK == status && 0 == region_p->len) {
        status = DN_ERR_RANGE;
    }
    dn_rma_task_leave(task, UINT32_MAX, DN_OK);
    return status;
}
