/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_later.c
 * Accumulates of far origins that find the guard of this process taken.
 *
 * The owner of the guard is another process, which may be stopped. A handler that waited for it would keep the port, and with
 * it all messages of this process. So the request is copied into a list, and progress tries it again.
 *
 * An origin's accumulates take effect in their order, so all that come later wait behind the first that waits: osc_far_t::later
 * counts them. They are at most OSC_ASKED_MAX, as no origin asks for more. Handlers of one origin run one at a time, and so do the
 * tries of progress.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** An accumulate that waits. It holds its window. */
typedef struct osc_later {
    dn_queue_item_t item; /**< first */
    osc_module_t *module;
    dn_peer_t *src;
    osc_head_t head;
    osc_patience_t patience;
    size_t len;
    uint8_t bytes[];
} osc_later_t;

static struct {
    dn_round_t origins;  /**< osc_far_t::waits of those that wait */
    opal_mutex_t lock;   /**< of them all */
    opal_mutex_t trying; /**< of who tries; taken before the other */
} later = {.lock = OPAL_MUTEX_STATIC_INIT, .trying = OPAL_MUTEX_STATIC_INIT};

static dn_queue_t *queue_of(const osc_later_t *request)
{
    return &request->module->far[request->head.rank].waits;
}

/** @return NULL: none of this origin waits. */
static osc_later_t *pop(dn_queue_t *queue)
{
    opal_mutex_lock(&later.lock);
    dn_queue_item_t *item = dn_queue_pop(&later.origins, queue);
    opal_mutex_unlock(&later.lock);
    return (osc_later_t *) item;
}

/** The oldest of the origin whose turn it is. */
static osc_later_t *pop_next(void)
{
    dn_queue_item_t *item = NULL;

    opal_mutex_lock(&later.lock);
    dn_queue_t *queue = dn_round_turn(&later.origins);
    if (NULL != queue) {
        item = dn_queue_pop(&later.origins, queue);
    }
    opal_mutex_unlock(&later.lock);
    return (osc_later_t *) item;
}

/** It waits no more. Before its answer leaves: the origin may ask for more then. */
static void count_down(const osc_later_t *request)
{
    /* A release: pairs with the loads in ompi_osc_dimmnet_in_order() and in the handler. What the request did comes before the next one. */
    __atomic_fetch_sub(&request->module->far[request->head.rank].later, 1, __ATOMIC_RELEASE);
}

static void forget(osc_later_t *request)
{
    ompi_osc_dimmnet_window_leave(request->module);
    free(request);
}

void ompi_osc_dimmnet_in_order(osc_module_t *module, dn_peer_t *src, const osc_head_t *head,
                               const uint8_t *body, size_t len)
{
    osc_far_t *far = &module->far[head->rank];
    osc_patience_t patience = {0};

    if (0 == osc_load_u32(&far->later)) {
        osc_queued_t *answer = ompi_osc_dimmnet_serve(module, src, head, body, len, &patience);

        if (NULL != answer) {
            ompi_osc_dimmnet_answer(answer);
            return;
        }
    }
    osc_later_t *request = malloc(sizeof(*request) + len);
    if (NULL == request) {
        ompi_osc_dimmnet_no_memory();
    }
    *request = (osc_later_t){.module = module, .src = src, .head = *head, .patience = patience, .len = len};
    memcpy(request->bytes, body, len);
    /* Besides the hold of the message. */
    ompi_osc_dimmnet_window_hold(module);
    /* Pairs with forget(). Only handlers of this origin find it 0 and go on, and this is one. */
    __atomic_fetch_add(&far->later, 1, __ATOMIC_RELAXED);
    opal_mutex_lock(&later.lock);
    dn_queue_push(&later.origins, &far->waits, &request->item);
    opal_mutex_unlock(&later.lock);
}

/** Serve an origin as far as the guard is free. @param[in] request  Its oldest. @return requests served. */
static int try_origin(osc_later_t *request)
{
    int served = 0;

    while (NULL != request) {
        dn_queue_t *queue = queue_of(request);

        osc_queued_t *answer = ompi_osc_dimmnet_serve(request->module, request->src, &request->head,
                                                      request->bytes, request->len, &request->patience);

        if (NULL == answer) {
            opal_mutex_lock(&later.lock);
            dn_queue_put_back(&later.origins, queue, &request->item);
            opal_mutex_unlock(&later.lock);
            break;
        }
        /* Before the last hold of the window is given up, and the queue may go with it. */
        osc_later_t *next = pop(queue);
        count_down(request);
        ompi_osc_dimmnet_answer(answer);
        forget(request);
        request = next;
        served++;
    }
    return served;
}

int ompi_osc_dimmnet_try_later(void)
{
    /* A look without the lock: who comes meanwhile is seen the next time. */
    uint32_t origins = __atomic_load_n(&later.origins.count, __ATOMIC_RELAXED);
    int served = 0;

    if (0 == origins || 0 != opal_mutex_trylock(&later.trying)) {
        return 0;
    }
    for (; 0 != origins; origins--) {
        served += try_origin(pop_next());
    }
    opal_mutex_unlock(&later.trying);
    return served;
}

void ompi_osc_dimmnet_forget_later(const osc_module_t *module)
{
    osc_later_t *request;

    opal_mutex_lock(&later.trying);
    for (int rank = 0; rank < module->size; rank++) {
        while (NULL != (request = pop(&module->far[rank].waits))) {
            count_down(request);
            forget(request);
        }
    }
    opal_mutex_unlock(&later.trying);
}
