/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_rma_int.h"

#include <sched.h>
#include <time.h>

/** Polls between two calls of dn_rma_config_t::wait, or of sched_yield(): other processes may wait for this one. */
#define DN_RMA_POLLS 32

/** Time between two looks whether processes live: 2,000 times as long as the look at one process. */
#define DN_RMA_LOOK_NS 100000000u

/** @name Waiting */
/** @{ */
void dn_rma_wait(const dn_rma_t *rma, dn_rma_wait_t *wait)
{
    if (0 != ++wait->polls % DN_RMA_POLLS) {
        dn_pause();
    } else {
        rma->config.wait(wait->face);
    }
}

void dn_rma_pause(unsigned *polls)
{
    if (0 != ++*polls % DN_RMA_POLLS) {
        dn_pause();
    } else {
        sched_yield();
    }
}

bool dn_rma_time_to_look(dn_rma_wait_t *wait)
{
    const uint64_t now = dn_clock_ns();

    if (0 == wait->began_ns) {
        wait->began_ns = now;
        wait->next_ns = now + DN_RMA_LOOK_NS;
    }
    if (now < wait->next_ns) {
        return false;
    }
    wait->next_ns = now + DN_RMA_LOOK_NS;
    return true;
}

bool dn_rma_wait_long(const dn_rma_t *rma, dn_rma_wait_t *wait)
{
    if (wait->quiet) {
        dn_rma_pause(&wait->polls);
    } else {
        dn_rma_wait(rma, wait);
    }
    return 0 == wait->polls % DN_RMA_POLLS && dn_rma_time_to_look(wait);
}
/** @} */

/** @name Answers: a handler must not wait */
/** @{ */
void *dn_rma_need(const dn_rma_t *rma, size_t len)
{
    void *memory = malloc(len);

    if (NULL == memory) {
        rma->config.no_memory();
    }
    return memory;
}

dn_rma_answer_t *dn_rma_answer_new(const dn_rma_t *rma, dn_peer_t *peer, enum dn_rma_kind kind, size_t len)
{
    dn_rma_answer_t *answer = dn_rma_need(rma, sizeof(*answer) + len);

    *answer = (dn_rma_answer_t){.peer = peer, .kind = kind, .len = len};
    return answer;
}

/** Do answers wait? A look without the lock: an answer that is missed is found by the next progress. */
static bool dn_rma_some_wait(const dn_rma_t *rma)
{
    return NULL != dn_fifo_look(&rma->answers);
}

/** Send an answer, and free it. @return false: there is no room. */
static bool dn_rma_answer_send(const dn_rma_t *rma, dn_rma_answer_t *answer)
{
    if (DN_ERR_AGAIN
        == dn_botf(answer->peer, rma->channel, answer->kind, answer->bytes, answer->len, NULL, 0)) {
        return false;
    }
    free(answer);
    return true;
}

void dn_rma_answer(dn_rma_t *rma, dn_rma_answer_t *answer)
{
    if (dn_rma_some_wait(rma) || !dn_rma_answer_send(rma, answer)) {
        (void) pthread_mutex_lock(&rma->lock);
        dn_fifo_push(&rma->answers, &answer->item);
        (void) pthread_mutex_unlock(&rma->lock);
    }
}

/** Send the answers that found no room before. Answers to one peer need no order. @return messages sent. */
static int dn_rma_pump(dn_rma_t *rma)
{
    for (int sent = 0;; sent++) {
        (void) pthread_mutex_lock(&rma->lock);
        dn_rma_answer_t *answer = dn_fifo_pop(&rma->answers);
        (void) pthread_mutex_unlock(&rma->lock);
        if (NULL == answer) {
            return sent;
        }
        if (!dn_rma_answer_send(rma, answer)) {
            (void) pthread_mutex_lock(&rma->lock);
            dn_fifo_push(&rma->answers, &answer->item);
            (void) pthread_mutex_unlock(&rma->lock);
            return sent;
        }
    }
}
/** @} */

/** @name Tasks */
/** @{ */

/** dn_comp_fn_t. */
static void dn_rma_transferred(dn_comp_t *comp, dn_status_t status)
{
    dn_rma_task_end((dn_rma_task_t *) comp, status);
}

void dn_rma_task_begin(dn_rma_win_t *win, int target, dn_rma_task_t *task)
{
    task->comp.fn = dn_rma_transferred;
    task->rma = win->rma;
    task->far = &win->far[target];
    dn_fetch_add_relaxed(&task->far->pending, 1);
}

void dn_rma_task_end(dn_rma_task_t *task, dn_status_t status)
{
    dn_rma_far_t *far = task->far;

    if (DN_OK != status && !task->tells && DN_OK == far->error) {
        far->error = status;
    }
    if (NULL != task->end) {
        task->end(task, status);
    } else {
        free(task);
    }
    /* Last: who waits for it may take the window away. */
    dn_fetch_sub_release(&far->pending, 1);
}

bool dn_rma_task_await(dn_rma_task_t *task)
{
    dn_rma_t *rma = task->rma;

    task->parts = 1;
    task->holders = 1;
    (void) pthread_mutex_lock(&rma->lock);
    task->handle = dn_handle_add(&rma->tasks, task);
    (void) pthread_mutex_unlock(&rma->lock);
    return DN_HANDLE_NONE != task->handle;
}

void dn_rma_task_more(dn_rma_task_t *task)
{
    (void) pthread_mutex_lock(&task->rma->lock);
    task->parts++;
    (void) pthread_mutex_unlock(&task->rma->lock);
}

void dn_rma_task_leave(dn_rma_task_t *task, uint32_t parts, dn_status_t status)
{
    dn_rma_t *rma = task->rma;

    (void) pthread_mutex_lock(&rma->lock);
    if (DN_OK == task->error) {
        task->error = status;
    }
    /* A release, for who waits for the last part: what it brought comes before. */
    dn_store_release_u32(&task->parts, parts < task->parts ? task->parts - parts : 0);
    const bool last = 0 == --task->holders && 0 == task->parts;
    if (last) {
        dn_handle_drop(&rma->tasks, task->handle);
    }
    (void) pthread_mutex_unlock(&rma->lock);
    if (last) {
        dn_rma_task_end(task, task->error);
    }
}

/** Hold a task if it waits for this peer; it may be NULL. Under the lock. @return NULL: it does not. */
static dn_rma_task_t *dn_rma_task_hold(dn_rma_task_t *task, const dn_peer_t *peer)
{
    if (NULL == task || peer != task->far->peer) {
        return NULL;
    }
    task->holders++;
    return task;
}

/** A part of an accumulate is answered: the origin may send another part. */
static void dn_rma_count_answer(dn_rma_far_t *far)
{
    if (0 != dn_load_acquire_u32(&far->asked)) {
        /* A release: what the answer says of has been done when the origin asks for more. Only handlers of this peer come here. */
        dn_fetch_sub_release(&far->asked, 1);
    }
}

void dn_rma_on_answer(dn_rma_t *rma, const dn_peer_t *src, const uint8_t *bytes, size_t len)
{
    dn_rma_reply_t reply;
    dn_prog_cursor_t cursor;

    memcpy(&reply, bytes, sizeof(reply));
    len -= sizeof(reply);
    (void) pthread_mutex_lock(&rma->lock);
    dn_rma_task_t *task = dn_rma_task_hold(dn_handle_find(&rma->tasks, reply.task), src);
    /* The asker waits for the last part, and no longer: a second answer finds no part, and maybe no asker. */
    if (NULL != task && NULL != task->region && 0 != task->parts && sizeof(*task->region) == len) {
        memcpy(task->region, bytes + sizeof(reply), sizeof(*task->region));
    }
    (void) pthread_mutex_unlock(&rma->lock);
    if (NULL == task) {
        return;
    }
    if (NULL == task->region) {
        dn_rma_count_answer(task->far);
        if (task->fetches && 0 != len) {
            dn_rma_side_start(&task->result, &cursor);
            dn_prog_seek(&cursor, reply.off);
            (void) dn_prog_scatter(&cursor, bytes + sizeof(reply), len);
        }
    }
    dn_rma_task_leave(task, 1, 0 > reply.status ? (dn_status_t) reply.status : DN_OK);
}
/** @} */

/** @name Windows */
/** @{ */

/** Hold a window, which may be NULL. Under the lock. */
static dn_rma_win_t *dn_rma_win_held(dn_rma_win_t *win)
{
    if (NULL != win) {
        win->holders++;
    }
    return win;
}

dn_rma_win_t *dn_rma_win_find(dn_rma_t *rma, uint64_t handle)
{
    (void) pthread_mutex_lock(&rma->lock);
    dn_rma_win_t *win = dn_rma_win_held(dn_handle_find(&rma->windows, handle));
    (void) pthread_mutex_unlock(&rma->lock);
    return win;
}

void dn_rma_win_hold(dn_rma_win_t *win)
{
    (void) pthread_mutex_lock(&win->rma->lock);
    win->holders++;
    (void) pthread_mutex_unlock(&win->rma->lock);
}

void dn_rma_win_leave(dn_rma_win_t *win)
{
    (void) pthread_mutex_lock(&win->rma->lock);
    win->holders--;
    (void) pthread_mutex_unlock(&win->rma->lock);
}

static bool dn_rma_win_is_held(dn_rma_win_t *win)
{
    (void) pthread_mutex_lock(&win->rma->lock);
    const bool held = 0 != win->holders;
    (void) pthread_mutex_unlock(&win->rma->lock);
    return held;
}

dn_status_t dn_rma_win_open(dn_rma_win_t *win)
{
    (void) pthread_mutex_init(&win->lock, NULL);
    (void) pthread_mutex_init(&win->asking, NULL);
    win->target = DN_TICKETS < (uint32_t) win->size ? NULL : calloc((size_t) win->size, sizeof(*win->target));
    return NULL == win->target ? DN_ERR_NOMEM : DN_OK;
}

dn_status_t dn_rma_win_join(dn_rma_win_t *win)
{
    win->far = calloc((size_t) win->size, sizeof(*win->far));
    if (NULL == win->far) {
        return DN_ERR_NOMEM;
    }
    (void) pthread_mutex_lock(&win->rma->lock);
    win->handle = dn_handle_add(&win->rma->windows, win);
    (void) pthread_mutex_unlock(&win->rma->lock);
    if (DN_HANDLE_NONE != win->handle) {
        return DN_OK;
    }
    free(win->far);
    win->far = NULL;
    return DN_ERR_NOMEM;
}

void dn_rma_win_begin(const dn_rma_win_t *win, dn_rma_control_t *control, uint32_t first)
{
    dn_ticket_open(&control->lock, first);
    for (int rank = 0; rank < win->size; rank++) {
        control->notes[rank].posts = control->notes[rank].completes = first;
    }
}

void dn_rma_win_place(dn_rma_win_t *win)
{
    win->control = win->target[win->rank].control;
    for (int rank = 0; rank < win->size; rank++) {
        dn_rma_control_t *control = win->target[rank].control;

        win->target[rank].guard = dn_rma_guard(win, control, NULL);
        if (NULL != control && !win->rma->fenced) {
            dn_store_release_u32(&control->notes[win->rank].inside, DN_RMA_INSIDE_ALWAYS);
        }
    }
    win->crowded = 0 != dn_oversubscribed(win->rma->port);
    for (int rank = 0; NULL != win->far && rank < win->size; rank++) {
        dn_peer_t *peer = win->target[rank].peer;
        dn_peer_attr_t attr;

        dn_peer_attr(peer, &attr);
        win->far[rank].gathers = 0 != attr.direct;
        dn_rma_offer_open(win, rank, attr.botf_max);
        dn_rma_lock_open(&win->far[rank]);
        /* From here on its messages are heeded: pairs with the load in dn_rma_is_from(), in another thread perhaps. */
        dn_store_release(&win->far[rank].peer, peer);
        /* Either this finds the loss, or dn_rma_lost() finds the peer here. */
        dn_fence_seq_cst();
        /* Not dn_flush(), which would take an error away from who flushes. */
        if (DN_ERR_UNREACH == dn_fence(peer)) {
            /* It was lost before, when dn_rma_lost() did not find it here. */
            dn_store_release_u32(&win->far[rank].lost, 1);
        }
    }
}

/** Free what belongs to a far process. */
static void dn_rma_far_close(dn_rma_far_t *far)
{
    if (NULL != far->layouts) {
        dn_ship_out_reset(far->layouts);
        free(far->layouts);
    }
    if (NULL != far->its) {
        dn_ship_in_clear(far->its);
        free(far->its);
    }
    free(far->batch[0]);
    free(far->batch[1]);
}

void dn_rma_win_close(dn_rma_win_t *win)
{
    unsigned polls = 0;

    if (NULL != win->far) {
        (void) pthread_mutex_lock(&win->rma->lock);
        dn_handle_drop(&win->rma->windows, win->handle);
        (void) pthread_mutex_unlock(&win->rma->lock);
        /* Who waits for a lock or for the guard holds it as well, and a message that is looked at may add one. */
        while (dn_rma_win_is_held(win)) {
            dn_rma_forget_orphans(win);
            dn_rma_forget_later(win);
            dn_rma_pause(&polls);
        }
        for (int rank = 0; rank < win->size; rank++) {
            dn_rma_far_close(&win->far[rank]);
        }
        free(win->far);
    }
    free(win->target);
    (void) pthread_mutex_destroy(&win->asking);
    (void) pthread_mutex_destroy(&win->lock);
}

bool dn_rma_lives(const dn_rma_win_t *win, int rank)
{
    if (rank == win->rank) {
        return true;
    }
    if (dn_rma_is_lost(win, rank)) {
        return false;
    }
    if (DN_OK == dn_peer_check(win->target[rank].peer)) {
        return true;
    }
    dn_store_release_u32(&win->target[rank].gone, 1);
    return false;
}
/** @} */

/** @name Engines */
/** @{ */
int dn_rma_advance(dn_rma_t *rma)
{
    const int events = dn_rma_some_wait(rma) ? dn_rma_pump(rma) : 0;

    return events + dn_rma_try_later(rma) + dn_rma_give_orphans(rma);
}

/** Slots of a table. Another thread may add slots at any time. */
static uint32_t dn_rma_slots(dn_rma_t *rma, const dn_handle_table_t *table)
{
    (void) pthread_mutex_lock(&rma->lock);
    const uint32_t count = table->count;
    (void) pthread_mutex_unlock(&rma->lock);
    return count;
}

/** dn_lost_fn_t: the peer will answer nothing any more. */
static void dn_rma_lost(dn_peer_t *peer, void *arg)
{
    dn_rma_t *rma = arg;

    /* Pairs with the fence in dn_rma_win_place(): the peer's functions say by now that it is lost. */
    dn_fence_seq_cst();
    for (uint32_t i = 0; i < dn_rma_slots(rma, &rma->windows); i++) {
        (void) pthread_mutex_lock(&rma->lock);
        dn_rma_win_t *win = dn_rma_win_held(dn_handle_object(&rma->windows, i));
        (void) pthread_mutex_unlock(&rma->lock);

        for (int rank = 0; NULL != win && rank < win->size; rank++) {
            /* Pairs with the store in dn_rma_win_place(), which looks for a loss by itself after that. */
            if (peer == dn_load_acquire(&win->far[rank].peer)) {
                dn_store_release_u32(&win->far[rank].lost, 1);
                dn_rma_take_back(win, rank);
            }
        }
        if (NULL != win) {
            dn_rma_win_leave(win);
        }
    }
    for (uint32_t i = 0; i < dn_rma_slots(rma, &rma->tasks); i++) {
        (void) pthread_mutex_lock(&rma->lock);
        dn_rma_task_t *task = dn_rma_task_hold(dn_handle_object(&rma->tasks, i), peer);
        (void) pthread_mutex_unlock(&rma->lock);

        if (NULL != task) {
            dn_rma_task_leave(task, UINT32_MAX, DN_ERR_UNREACH);
        }
    }
}

/** Free what belongs to an engine. Neither the port nor the face calls it any more. */
static void dn_rma_release(dn_rma_t *rma)
{
    for (void *answer; NULL != (answer = dn_fifo_pop(&rma->answers));) {
        free(answer);
    }
    dn_handle_close(&rma->tasks);
    dn_handle_close(&rma->windows);
    (void) pthread_mutex_destroy(&rma->trying);
    (void) pthread_mutex_destroy(&rma->giving);
    (void) pthread_mutex_destroy(&rma->lock);
}

dn_status_t dn_rma_open(dn_rma_t *rma, dn_port_t *port, unsigned channel, const dn_rma_config_t *config)
{
    *rma = (dn_rma_t){.port = port, .channel = channel, .config = *config, .fenced = 0 != dn_bell_enroll()};
    dn_handle_open(&rma->windows, dn_first(port));
    dn_handle_open(&rma->tasks, dn_first(port));
    (void) pthread_mutex_init(&rma->lock, NULL);
    (void) pthread_mutex_init(&rma->giving, NULL);
    (void) pthread_mutex_init(&rma->trying, NULL);
    /* First: it is refused where somebody else has the channel, who is still to be told of losses. No peer is known here yet. */
    dn_status_t status = dn_handler_set(port, channel, dn_rma_receive, rma);
    if (DN_OK == status) {
        status = dn_lost_set(port, channel, dn_rma_lost, rma);
        if (DN_OK == status) {
            return DN_OK;
        }
        dn_handler_clear(port, channel);
    }
    dn_rma_release(rma);
    rma->port = NULL;
    return status;
}

void dn_rma_close(dn_rma_t *rma)
{
    if (NULL == rma->port) {
        return;
    }
    dn_handler_clear(rma->port, rma->channel);
    (void) dn_lost_set(rma->port, rma->channel, NULL, NULL);
    dn_rma_release(rma);
}
/** @} */
