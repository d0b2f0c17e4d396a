/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_rma_later.c
 * Accumulates of far origins that find the guard of this process taken.
 *
 * The owner of the guard is another process, which may be stopped. A handler that waited for it would keep the port, and with
 * it all messages of this process. So the request is copied into a list, and progress tries it again.
 *
 * The accumulates of an origin take effect in their order. So when one waits, all later ones of this origin wait behind it.
 * dn_rma_far_t::later counts them. There are at most DN_RMA_ASKED_MAX of them, as no origin sends more without an answer. Handlers of
 * one origin run one at a time, and so do the tries of progress.
 */
#include "dn_config.h"

#include "dn_rma_int.h"

/** An accumulate that waits. It holds its window. */
typedef struct dn_rma_later {
    dn_queue_item_t item; /**< first */
    dn_rma_win_t *win;
    dn_peer_t *src;
    dn_rma_head_t head;
    dn_rma_wait_t patience;
    size_t len;
    uint8_t bytes[];
} dn_rma_later_t;

/** Take the oldest request of an origin. @return NULL: no request of this origin waits. */
static dn_rma_later_t *dn_rma_later_pop(dn_rma_t *rma, dn_queue_t *queue)
{
    (void) pthread_mutex_lock(&rma->lock);
    dn_rma_later_t *later = dn_queue_pop(&rma->origins, queue);
    (void) pthread_mutex_unlock(&rma->lock);
    return later;
}

/** Take the oldest request of the origin whose turn it is. */
static dn_rma_later_t *dn_rma_later_next(dn_rma_t *rma)
{
    (void) pthread_mutex_lock(&rma->lock);
    dn_queue_t *queue = dn_round_turn(&rma->origins);
    dn_rma_later_t *later = NULL == queue ? NULL : dn_queue_pop(&rma->origins, queue);
    (void) pthread_mutex_unlock(&rma->lock);
    return later;
}

/** A request waits no more. Called before its answer is sent: after the answer the origin may send its next request. */
static void dn_rma_later_count_down(const dn_rma_later_t *later)
{
    /* A release: pairs with the loads in dn_rma_in_order() and in the handler. What the request did comes before the next one. */
    dn_fetch_sub_release(&later->win->far[later->head.rank].later, 1);
}

static void dn_rma_later_free(dn_rma_later_t *later)
{
    dn_rma_win_leave(later->win);
    free(later);
}

void dn_rma_in_order(dn_rma_win_t *win, dn_peer_t *src, const dn_rma_head_t *head, const uint8_t *body,
                     size_t len)
{
    dn_rma_far_t *far = &win->far[head->rank];
    dn_rma_wait_t patience = {.polls = 0};

    if (0 == dn_load_acquire_u32(&far->later)) {
        dn_rma_answer_t *answer = dn_rma_serve(win, src, head, body, len, &patience);

        if (NULL != answer) {
            dn_rma_answer(win->rma, answer);
            return;
        }
    }
    dn_rma_later_t *later = dn_rma_need(win->rma, sizeof(*later) + len);
    *later = (dn_rma_later_t){.win = win, .src = src, .head = *head, .patience = patience, .len = len};
    memcpy(later->bytes, body, len);
    /* Besides the hold of the message. */
    dn_rma_win_hold(win);
    /* Only handlers of this origin find it 0 and go on, and this is one. */
    dn_fetch_add_relaxed(&far->later, 1);
    (void) pthread_mutex_lock(&win->rma->lock);
    dn_queue_push(&win->rma->origins, &far->waits, &later->item);
    (void) pthread_mutex_unlock(&win->rma->lock);
}

/** Serve the requests of an origin while the guard is free. @param[in] later  The oldest one. @return requests served. */
static int dn_rma_try_origin(dn_rma_t *rma, dn_rma_later_t *later)
{
    int served = 0;

    while (NULL != later) {
        dn_queue_t *queue = &later->win->far[later->head.rank].waits;
        dn_rma_answer_t *answer =
            dn_rma_serve(later->win, later->src, &later->head, later->bytes, later->len, &later->patience);

        if (NULL == answer) {
            (void) pthread_mutex_lock(&rma->lock);
            dn_queue_put_back(&rma->origins, queue, &later->item);
            (void) pthread_mutex_unlock(&rma->lock);
            break;
        }
        /* Before the last hold of the window is given up, and the queue may go with it. */
        dn_rma_later_t *next = dn_rma_later_pop(rma, queue);
        dn_rma_later_count_down(later);
        dn_rma_answer(rma, answer);
        dn_rma_later_free(later);
        later = next;
        served++;
    }
    return served;
}

int dn_rma_try_later(dn_rma_t *rma)
{
    /* A look without the lock: who comes meanwhile is seen the next time. */
    uint32_t origins = dn_load_relaxed_u32(&rma->origins.count);
    int served = 0;

    if (0 == origins || 0 != pthread_mutex_trylock(&rma->trying)) {
        return 0;
    }
    for (; 0 != origins; origins--) {
        served += dn_rma_try_origin(rma, dn_rma_later_next(rma));
    }
    (void) pthread_mutex_unlock(&rma->trying);
    return served;
}

void dn_rma_forget_later(dn_rma_win_t *win)
{
    dn_rma_later_t *later;

    (void) pthread_mutex_lock(&win->rma->trying);
    for (int rank = 0; rank < win->size; rank++) {
        while (NULL != (later = dn_rma_later_pop(win->rma, &win->far[rank].waits))) {
            dn_rma_later_count_down(later);
            dn_rma_later_free(later);
        }
    }
    (void) pthread_mutex_unlock(&win->rma->trying);
}
