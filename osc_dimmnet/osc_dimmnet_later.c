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
 * An origin's accumulates take effect in their order, and use the program that came before them. So all accumulates and programs
 * of an origin that come later wait behind the first that waits. osc_far_t::later counts them. Handlers of one origin run one at
 * a time, and so do the tries of progress.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** A request that waits. It holds its window. */
typedef struct osc_later {
    struct osc_later *next;
    osc_module_t *module;
    dn_peer_t *src;
    unsigned tag;
    osc_head_t head;
    osc_patience_t patience;
    size_t len;
    uint8_t bytes[];
} osc_later_t;

static struct {
    osc_later_t *first;  /**< oldest first */
    osc_later_t **end;   /**< undefined while there is none */
    opal_mutex_t lock;   /**< of the list */
    opal_mutex_t trying; /**< of who tries; taken before the other */
    uint32_t round;      /**< number of the last try of all */
} later = {.lock = OPAL_MUTEX_STATIC_INIT, .trying = OPAL_MUTEX_STATIC_INIT};

static void put_last(osc_later_t *request)
{
    request->next = NULL;
    opal_mutex_lock(&later.lock);
    if (NULL == later.first) {
        later.end = &later.first;
    }
    *later.end = request;
    later.end = &request->next;
    opal_mutex_unlock(&later.lock);
}

/** Take the whole list. */
static osc_later_t *take_all(void)
{
    opal_mutex_lock(&later.lock);
    osc_later_t *all = later.first;
    later.first = NULL;
    opal_mutex_unlock(&later.lock);
    return all;
}

/** Put back what still waits, before what has come meanwhile. */
static void put_back(osc_later_t *first, osc_later_t **end)
{
    if (NULL == first) {
        return;
    }
    opal_mutex_lock(&later.lock);
    *end = later.first;
    if (NULL == later.first) {
        later.end = end;
    }
    later.first = first;
    opal_mutex_unlock(&later.lock);
}

static void forget(osc_later_t *request)
{
    /* A release: pairs with the load in ompi_osc_dimmnet_in_order(). What the request did comes before the next one. */
    __atomic_fetch_sub(&request->module->far[request->head.rank].later, 1, __ATOMIC_RELEASE);
    ompi_osc_dimmnet_window_leave(request->module);
    free(request);
}

void ompi_osc_dimmnet_in_order(osc_module_t *module, dn_peer_t *src, unsigned tag, const osc_head_t *head,
                               const uint8_t *body, size_t len)
{
    osc_far_t *far = &module->far[head->rank];
    osc_patience_t patience = {0};

    if (0 == osc_load_u32(&far->later)
        && ompi_osc_dimmnet_serve(module, src, tag, head, body, len, &patience)) {
        return;
    }
    osc_later_t *request = malloc(sizeof(*request) + len);
    if (NULL == request) {
        ompi_osc_dimmnet_no_memory();
    }
    *request = (osc_later_t){
        .module = module, .src = src, .tag = tag, .head = *head, .patience = patience, .len = len};
    memcpy(request->bytes, body, len);
    /* Besides the hold of the message. */
    ompi_osc_dimmnet_window_hold(module);
    /* Pairs with forget(). Only handlers of this origin find it 0 and go on, and this is one. */
    __atomic_fetch_add(&far->later, 1, __ATOMIC_RELAXED);
    put_last(request);
}

int ompi_osc_dimmnet_try_later(void)
{
    osc_later_t *kept = NULL, **end = &kept, *next;
    int served = 0;

    /* A look without the lock: who comes meanwhile is seen the next time. */
    if (NULL == __atomic_load_n(&later.first, __ATOMIC_RELAXED) || 0 != opal_mutex_trylock(&later.trying)) {
        return 0;
    }
    later.round++;
    for (osc_later_t *request = take_all(); NULL != request; request = next) {
        osc_far_t *far = &request->module->far[request->head.rank];

        next = request->next;
        /* Not past one of the same origin that is still in the list. */
        if (later.round != far->stuck
            && ompi_osc_dimmnet_serve(request->module, request->src, request->tag, &request->head,
                                      request->bytes, request->len, &request->patience)) {
            forget(request);
            served++;
        } else {
            far->stuck = later.round;
            *end = request;
            end = &request->next;
        }
    }
    put_back(kept, end);
    opal_mutex_unlock(&later.trying);
    return served;
}

void ompi_osc_dimmnet_forget_later(const osc_module_t *module)
{
    osc_later_t *kept = NULL, **end = &kept, *next;

    opal_mutex_lock(&later.trying);
    for (osc_later_t *request = take_all(); NULL != request; request = next) {
        next = request->next;
        if (module == request->module) {
            forget(request);
        } else {
            *end = request;
            end = &request->next;
        }
    }
    put_back(kept, end);
    opal_mutex_unlock(&later.trying);
}
