/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_queue.h
 * What waits for room: one queue for each destination, and a round of the destinations that something waits for.
 *
 *   round   first --> queue of A <--> queue of C <--> queue of B <-- last      those that are not empty
 *                        |               |               |
 *                      oldest          oldest          oldest
 *                        |                               |
 *                      newest                          newest
 *
 * Items to one destination leave in their order, and the first that finds no room keeps back those behind it, and no others. A
 * caller that tries takes each queue once by dn_round_turn(), as far as the queue goes. So a try costs as much as there are destinations, however
 * long their queues are. A queue that is taken goes to the end of the round, so nothing that happens to the queues meanwhile
 * matters.
 *
 *   for (uint32_t n = round.count; 0 != n && NULL != (queue = dn_round_turn(&round)); n--) {
 *       while (NULL != (item = dn_queue_pop(&round, queue))) {
 *           if (there is no room for item) {
 *               dn_queue_put_back(&round, queue, item);
 *               break;
 *           }
 *       }
 *   }
 *
 * Shape:     intrusive: items and queues stand at the beginning of the caller's objects. All zeros: an empty queue, an empty round.
 * Ownership: all memory is the caller's. An item is in one queue at most, a queue in one round at most. When a destination is lost,
 *            its owner pops what is left, and the queue is in no round any more.
 * Threads:   none of this locks. A thread that pops an item with a lock held may try it without, if no other tries the same
 *            queue meanwhile.
 * Errors:    none.
 *
 * Pinned by test/unit/dn_queue_keeps_the_order_of_each_destination.c.
 */
#ifndef DN_QUEUE_H
#define DN_QUEUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct dn_queue_item {
    struct dn_queue_item *next;
} dn_queue_item_t;

/** What waits for one destination. */
typedef struct dn_queue {
    dn_queue_item_t *first;
    dn_queue_item_t *last;          /**< undefined while there is no first */
    struct dn_queue *before, *next; /**< in the round, while there is a first */
} dn_queue_t;

/** Queues that are not empty. */
typedef struct dn_round {
    dn_queue_t *first;
    dn_queue_t *last; /**< undefined while there is no first */
    uint32_t count;
} dn_round_t;

/** @name Of this file only */
/** @{ */
static inline void dn_round_enter(dn_round_t *round, dn_queue_t *queue)
{
    queue->next = NULL;
    queue->before = NULL == round->first ? NULL : round->last;
    *(NULL == round->first ? &round->first : &round->last->next) = queue;
    round->last = queue;
    round->count++;
}

static inline void dn_round_leave(dn_round_t *round, dn_queue_t *queue)
{
    *(NULL == queue->before ? &round->first : &queue->before->next) = queue->next;
    *(NULL == queue->next ? &round->last : &queue->next->before) = queue->before;
    round->count--;
}
/** @} */

/** Put an item behind those of a queue. */
static inline void dn_queue_push(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    item->next = NULL;
    if (NULL == queue->first) {
        queue->first = item;
        dn_round_enter(round, queue);
    } else {
        queue->last->next = item;
    }
    queue->last = item;
}

/** Take the oldest item of a queue. NULL: there is none. */
static inline dn_queue_item_t *dn_queue_pop(dn_round_t *round, dn_queue_t *queue)
{
    dn_queue_item_t *item = queue->first;

    if (NULL != item) {
        queue->first = item->next;
        if (NULL == queue->first) {
            dn_round_leave(round, queue);
        }
    }
    return item;
}

/** Put an item before those of a queue: it has been popped, and has found no room. */
static inline void dn_queue_put_back(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    item->next = queue->first;
    if (NULL == queue->first) {
        queue->last = item;
        dn_round_enter(round, queue);
    }
    queue->first = item;
}

/** Take an item out of its queue, wherever it stands. At the queue's beginning it is found at once. */
static inline void dn_queue_remove(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    dn_queue_item_t *before = NULL;

    for (dn_queue_item_t *at = queue->first; item != at; at = at->next) {
        before = at;
    }
    if (NULL == before) {
        (void) dn_queue_pop(round, queue);
        return;
    }
    before->next = item->next;
    if (item == queue->last) {
        queue->last = before;
    }
}

/** The queue whose turn it is, which goes to the end of the round. NULL: nothing waits. */
static inline dn_queue_t *dn_round_turn(dn_round_t *round)
{
    dn_queue_t *queue = round->first;

    if (NULL != queue && NULL != queue->next) {
        dn_round_leave(round, queue);
        dn_round_enter(round, queue);
    }
    return queue;
}

#endif
