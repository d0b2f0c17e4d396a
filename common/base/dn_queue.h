/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_queue.h
 * Queues of waiting items: a queue of items, oldest first (dn_fifo_t). For items that wait for room there is one queue for each
 * destination, and a round of the queues that are not empty (dn_queue_t, dn_round_t).
 *
 *   round   first --> queue of A <--> queue of C <--> queue of B <-- last      queues that are not empty
 *                        |               |               |
 *                      oldest          oldest          oldest
 *                        |                               |
 *                      newest                          newest
 *
 * Items to one destination leave in their order. An item that finds no room keeps back the items behind it in its queue, and no
 * others. A caller that tries the items takes each queue once by dn_round_turn(), and sends its items until one finds no room. So
 * the cost of a try in vain is given by the number of destinations, and not by the length of their queues. A queue that is taken
 * goes to the end of the round, so queues may change meanwhile.
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
 * Shape:     intrusive: items and queues are members of the caller's objects. An item that is the first member has the address of
 *            its object. All zeros: an empty queue, an empty round.
 * Ownership: all memory is the caller's. An item is in one queue at most, a queue in one round at most. When a destination is lost,
 *            its owner pops the items that are left. The queue is in no round then.
 * Threads:   none of these functions locks. A thread that pops an item with a lock held may try the item without the lock, if no
 *            other thread tries the same queue meanwhile.
 * Errors:    none.
 *
 * Pinned by test/unit/dn_queue_keeps_the_order_of_each_destination.c.
 */
#ifndef DN_QUEUE_H
#define DN_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "dn_atomic.h"

/** An item of a queue: a member of an object of the caller. */
typedef struct dn_queue_item {
    struct dn_queue_item *next; /**< the next item in its queue; undefined outside of a queue */
} dn_queue_item_t;

/** Items, oldest first. A thread may look for the first item while another thread changes the queue: dn_fifo_look(). */
typedef struct dn_fifo {
    dn_queue_item_t *first; /**< the oldest; NULL: there is none */
    dn_queue_item_t *last;  /**< undefined while there is no first */
} dn_fifo_t;

/** The oldest item, which stays in the queue. NULL: there is none. */
static inline void *dn_fifo_first(const dn_fifo_t *fifo)
{
    return fifo->first;
}

/** As dn_fifo_first(), while another thread may change the queue. The caller sees all that was written to the item before the item was
 * put into the queue. */
static inline void *dn_fifo_look(const dn_fifo_t *fifo)
{
    return dn_load_acquire(&fifo->first);
}

/** The item behind this one. NULL: there is none. */
static inline void *dn_fifo_next(const dn_queue_item_t *item)
{
    return item->next;
}

/** Put an item behind the others. */
static inline void dn_fifo_push(dn_fifo_t *fifo, dn_queue_item_t *item)
{
    item->next = NULL;
    /* Pairs with dn_fifo_look(), which may find this item as the first: at once, or when the items before it have gone. */
    dn_store_release(NULL == fifo->first ? &fifo->first : &fifo->last->next, item);
    fifo->last = item;
}

/** Put an item before the others. */
static inline void dn_fifo_put_back(dn_fifo_t *fifo, dn_queue_item_t *item)
{
    item->next = fifo->first;
    fifo->last = NULL == fifo->first ? item : fifo->last;
    dn_store_release(&fifo->first, item); /* pairs with dn_fifo_look() */
}

/** Take the oldest item. NULL: there is none. */
static inline void *dn_fifo_pop(dn_fifo_t *fifo)
{
    dn_queue_item_t *item = fifo->first;

    if (NULL != item) {
        /* The next item was released when it was put there, by this thread or by a thread that had the same lock. */
        dn_store_release(&fifo->first, item->next);
    }
    return item;
}

/** Take all items. @return a queue of the caller that holds them. */
static inline dn_fifo_t dn_fifo_take(dn_fifo_t *fifo)
{
    const dn_fifo_t all = *fifo;

    dn_store_relaxed(&fifo->first, NULL);
    return all;
}

/** Put all items of the caller's queue @p all, which is not empty, before the others. */
static inline void dn_fifo_put_back_all(dn_fifo_t *fifo, const dn_fifo_t *all)
{
    all->last->next = fifo->first;
    fifo->last = NULL == fifo->first ? all->last : fifo->last;
    dn_store_release(&fifo->first, all->first); /* pairs with dn_fifo_look() */
}

/** Take an item out of any place in its queue. At the beginning of the queue it is found at once. */
static inline void dn_fifo_remove(dn_fifo_t *fifo, dn_queue_item_t *item)
{
    dn_queue_item_t *before = NULL;

    for (dn_queue_item_t *at = fifo->first; item != at; at = at->next) {
        before = at;
    }
    if (NULL == before) {
        (void) dn_fifo_pop(fifo);
        return;
    }
    before->next = item->next;
    fifo->last = item == fifo->last ? before : fifo->last;
}

/** The items that wait for one destination. */
typedef struct dn_queue {
    dn_fifo_t items;         /**< oldest first */
    struct dn_queue *before; /**< the queue before it in the round; defined while it has an item */
    struct dn_queue *next;   /**< the queue behind it, likewise */
} dn_queue_t;

/** Queues that are not empty. */
typedef struct dn_round {
    dn_queue_t *first; /**< the queue whose turn it is; NULL: no item waits */
    dn_queue_t *last;  /**< undefined while there is no first */
    uint32_t count;    /**< queues in the round */
} dn_round_t;

/** @name Of this file only */
/** @{ */
/** A queue gets its first item: put the queue at the end of the round. */
static inline void dn_round_enter(dn_round_t *round, dn_queue_t *queue)
{
    queue->next = NULL;
    queue->before = NULL == round->first ? NULL : round->last;
    *(NULL == round->first ? &round->first : &round->last->next) = queue;
    round->last = queue;
    round->count++;
}

/** A queue is empty: take the queue out of the round. */
static inline void dn_round_leave(dn_round_t *round, dn_queue_t *queue)
{
    *(NULL == queue->before ? &round->first : &queue->before->next) = queue->next;
    *(NULL == queue->next ? &round->last : &queue->next->before) = queue->before;
    round->count--;
}
/** @} */

/** Put an item behind the items of a queue. */
static inline void dn_queue_push(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    if (NULL == queue->items.first) {
        dn_round_enter(round, queue);
    }
    dn_fifo_push(&queue->items, item);
}

/** Take the oldest item of a queue. NULL: there is none. */
static inline void *dn_queue_pop(dn_round_t *round, dn_queue_t *queue)
{
    void *item = dn_fifo_pop(&queue->items);

    if (NULL != item && NULL == queue->items.first) {
        dn_round_leave(round, queue);
    }
    return item;
}

/** Put an item before the items of a queue: the item was popped, and has found no room. */
static inline void dn_queue_put_back(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    if (NULL == queue->items.first) {
        dn_round_enter(round, queue);
    }
    dn_fifo_put_back(&queue->items, item);
}

/** Take an item out of any place in its queue. At the beginning of the queue it is found at once. */
static inline void dn_queue_remove(dn_round_t *round, dn_queue_t *queue, dn_queue_item_t *item)
{
    dn_fifo_remove(&queue->items, item);
    if (NULL == queue->items.first) {
        dn_round_leave(round, queue);
    }
}

/** Take the queue whose turn it is, and put it at the end of the round. NULL: no item waits. */
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
