/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_match.h
 * Tag matching: which posted receive takes a message, and which unexpected message a receive takes, in the
 * order that MPI demands.
 *
 * A message has a context, a source and a tag of 64 bits. A receive takes it when the contexts are equal, the sources
 * are equal or the receive's is wild, and the tags are equal in all bits that the receive does not ignore. That is
 * libfabric's rule. MPI's is a case of it: a tag of 32 bits is extended by zeros, and MPI_ANY_TAG is tag 0 with
 * DN_MATCH_ANY_TAG_IGNORE.
 *
 * Receives that are posted and messages that are kept stand in two lists, oldest first. The oldest DN_MATCH_NEAR
 * of each are looked at one by one: in most programs these are all there are, or the ones that messages take. Entries
 * behind them are found through an index, a hash table of queues; a queue holds the entries that one key
 * fits, oldest first:
 *
 *     list     E - E - E - E - E - E - E - E      by age
 *              `-- near ---'   |   |   |   |
 *     bucket ------------------E - - - E   |      chain of the queues' first entries
 *                              |       |   |
 *                              E       `---'      ring of the entries with the same key
 *
 * A receive is in the one queue that its own values name, wild ones included; it gets there when a message first has to
 * be looked for beyond the near ones, so a window of receives that are matched in order never does. A message is in a queue for each
 * kind of receive that may look for it, but for those kinds only that have done so since none was kept.
 *
 * The index knows receives that ignore nothing, and those with MPI's mask. Receives with any other mask are odd: behind
 * the near ones they stand in a list of their own. Of what the index finds and that list the earliest posted wins.
 *
 * Cost:       without odd receives no call but init, fini and dn_match_next_*() depends on the number of entries: each
 *             entry is put into a queue once, and the index doubles with the number of its queues. It does not shrink.
 *             A message that no near receive takes is compared with the odd ones in turn, up to the one that takes it
 *             or that was posted after what the index has found. A look for the message of an odd receive
 *             goes through the kept ones in turn. So exact receives do not slow each other down, however many there are.
 * Ordering:   of the receives that a message matches the earliest posted takes it; of the messages that a receive
 *             matches it takes the earliest kept.
 * Ownership:  receives and messages are the caller's memory, lent from post or keep until they are returned by
 *             arrive, cancelled or taken, and not to be moved or changed meanwhile.
 * Threads:    none of this locks. One thread at a time; arrive together with the keep that follows it is one
 *             critical section, and find with the post or take that follows it another.
 * Errors:     only init can fail. An index that cannot grow is slower, not wrong.
 *
 * Pinned by test/unit/dn_match_follows_mpi_order.c.
 */
#ifndef DN_MATCH_H
#define DN_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dn_types.h"

/** The source of a receive that takes messages of every source. */
#define DN_MATCH_ANY_SOURCE (-1)

/** Bits that MPI's any tag ignores. Any tag is any of 0 and more: the negative ones, of collectives, have bit 31 set. */
#define DN_MATCH_ANY_TAG_IGNORE UINT64_C(0x7fffffff)

/**
 * Entries of a list that are looked at one by one. To post and match a receive that is near by then takes 5 to 7 ns;
 * through the index alone 25 ns; a far one, in spite of the looks in vain, 13 to 20 ns. With 8, far ones take 3 ns more.
 */
#define DN_MATCH_NEAR 4

/** What is wild in a key: every kind of queue has a number below DN_MATCH_KINDS. */
enum dn_match_wild {
    DN_MATCH_WILD_SOURCE = 1 << 0,
    DN_MATCH_WILD_TAG = 1 << 1, /**< in the bits of DN_MATCH_ANY_TAG_IGNORE */
    DN_MATCH_KINDS = 1 << 2,
    DN_MATCH_ODD = DN_MATCH_KINDS, /**< of a receive with another mask */
};

/** A place in a ring: the head of a list, or one of its entries. */
typedef struct dn_match_node {
    struct dn_match_node *next;
    struct dn_match_node *prev;
} dn_match_node_t;

/** What the entries of one queue have in common. */
typedef struct dn_match_key {
    uint32_t context;
    int32_t source;
    uint64_t tag;  /**< wild bits: 0 */
    uint32_t wild; /**< dn_match_wild: a wild value differs from every value of a message, even a wrong one */
} dn_match_key_t;

/** A place in the index, or in the list of odd receives: that uses ring and key.wild only. */
typedef struct dn_match_link {
    dn_match_node_t ring;        /**< the queue, oldest first and round again; next NULL: not in the index */
    struct dn_match_link *chain; /**< first of a queue: of the next queue in the bucket */
    struct dn_match_link **chain_at; /**< first of a queue: the pointer to this; all others: NULL */
    dn_match_key_t key;
} dn_match_link_t;

/** A posted receive. The caller sets context, source, tag and ignore; the rest is private. */
typedef struct dn_match_recv {
    dn_match_node_t node;
    uint32_t context;
    int32_t source; /**< or DN_MATCH_ANY_SOURCE */
    uint64_t tag;
    uint64_t ignore; /**< bits of the tag that may differ */
    dn_match_link_t link;
    uint64_t order; /**< behind the near ones: rises with every receive; elsewhere undefined */
} dn_match_recv_t;

/** An unexpected message. The caller sets context, source, not wild, and tag; the rest is private. */
typedef struct dn_match_msg {
    dn_match_node_t node;
    uint32_t context;
    int32_t source;
    uint64_t tag;
    dn_match_link_t link[DN_MATCH_KINDS];
} dn_match_msg_t;

/** Queues by their keys. */
typedef struct dn_match_index {
    dn_match_link_t **bucket;
    unsigned bits;      /**< log2 of the number of buckets */
    unsigned grow_bits; /**< it is to grow when it has this power of 2 of queues */
    size_t queues;
} dn_match_index_t;

/** The engine. All private. Holds its own address: not to be moved. */
typedef struct dn_match {
    dn_match_node_t posted;
    dn_match_node_t kept;
    dn_match_node_t odd; /**< odd receives by age, but those that were posted near */
    size_t nposted;
    size_t nkept;
    uint64_t order; /**< of the next receive behind the near ones */
    dn_match_recv_t *
        fresh; /**< this receive and those after it are not in the index, nor in odd; NULL: none such, but near ones */
    size_t indexed[DN_MATCH_KINDS]; /**< receives in the index */
    unsigned sought; /**< bit k: messages are in the queues of kind k, but those that were kept near */
    dn_match_index_t posted_index;
    dn_match_index_t kept_index;
} dn_match_t;

/**
 * Begin with nothing posted and nothing kept.
 * @retval 0
 * @retval -1  out of memory: report it; dn_match_fini() is allowed, nothing else.
 */
DN_API int dn_match_init(dn_match_t *m);

/** Free the indexes. Entries that are still in are forgotten and not touched: go through them before. */
DN_API void dn_match_fini(dn_match_t *m);

/** @name Slow cases of the inline functions below */
/** @{ */
DN_API void dn_match_unindex(dn_match_t *m, dn_match_recv_t *recv);
DN_API dn_match_recv_t *dn_match_arrive_far(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag);
DN_API dn_match_msg_t *dn_match_find_kept(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag,
                                          uint64_t ignore);

/** Put @p node behind all others of the ring that @p head begins. */
static inline void dn_match_node_append(dn_match_node_t *head, dn_match_node_t *node)
{
    node->next = head;
    node->prev = head->prev;
    head->prev->next = node;
    head->prev = node;
}

static inline void dn_match_node_remove(dn_match_node_t *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
}

/** Whether a receive of @p want_source, maybe wild, @p want_tag and @p ignore takes a message of its context. */
static inline bool dn_match_accepts(int32_t want_source, uint64_t want_tag, uint64_t ignore, int32_t source,
                                    uint64_t tag)
{
    return (want_source == source || DN_MATCH_ANY_SOURCE == want_source) && 0 == ((want_tag ^ tag) & ~ignore);
}
/** @} */

/** Post a receive. The caller has looked for a kept message first: see dn_match_find(). */
static inline void dn_match_post(dn_match_t *m, dn_match_recv_t *recv)
{
    recv->link.ring.next = NULL;
    dn_match_node_append(&m->posted, &recv->node);
    if (DN_MATCH_NEAR < ++m->nposted && NULL == m->fresh) {
        m->fresh = recv;
    }
}

/** Take back a receive that is still posted. */
static inline void dn_match_cancel(dn_match_t *m, dn_match_recv_t *recv)
{
    if (NULL != recv->link.ring.next) {
        dn_match_unindex(m, recv);
    }
    if (m->fresh == recv) {
        m->fresh = &m->posted == recv->node.next ? NULL : (dn_match_recv_t *) recv->node.next;
    }
    dn_match_node_remove(&recv->node);
    m->nposted--;
}

/**
 * A message has arrived: take out the receive that it is for.
 *
 * @param[in] m        Initialised.
 * @param[in] context  Of the message, as are:
 * @param[in] source   0 or more. The caller checks what a peer sent; where it did not, a message may match or not,
 *                     but no harm is done.
 * @param[in] tag      Any.
 *
 * @return the earliest posted receive that matches, the caller's again; NULL: keep the message.
 */
static inline dn_match_recv_t *dn_match_arrive(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag)
{
    dn_match_node_t *node = m->posted.next;

    for (unsigned near = 0; &m->posted != node; near++, node = node->next) {
        dn_match_recv_t *recv = (dn_match_recv_t *) node;

        if (DN_MATCH_NEAR == near) {
            return dn_match_arrive_far(m, context, source, tag);
        }
        if (recv->context == context
            && dn_match_accepts(recv->source, recv->tag, recv->ignore, source, tag)) {
            dn_match_cancel(m, recv);
            return recv;
        }
    }
    return NULL;
}

/** Remember a message that no posted receive matches: see dn_match_arrive(). */
DN_API void dn_match_keep(dn_match_t *m, dn_match_msg_t *msg);

/**
 * Find the message that a receive would take.
 * @param[in] m        Initialised.
 * @param[in] context  Of the receive, as are:
 * @param[in] source   Or DN_MATCH_ANY_SOURCE.
 * @param[in] tag      Bits that are ignored may be anything.
 * @param[in] ignore   Bits of the tag that may differ.
 * @return the earliest kept message that matches; it stays kept. NULL: post the receive.
 */
static inline dn_match_msg_t *dn_match_find(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag,
                                            uint64_t ignore)
{
    return &m->kept == m->kept.next ? NULL : dn_match_find_kept(m, context, source, tag, ignore);
}

/** Forget a kept message. */
DN_API void dn_match_take(dn_match_t *m, dn_match_msg_t *msg);

/**
 * Go through what is posted, or kept, oldest first: all entries, or those of one context.
 *
 * Reads every entry on its way, whatever its context. An entry may be cancelled or taken once the one after it has
 * been asked for.
 *
 * @param[in] m        Initialised.
 * @param[in] context  NULL: all.
 * @param[in] after    Where to go on; NULL: from the oldest.
 * @return NULL: no more.
 */
DN_API dn_match_recv_t *dn_match_next_posted(const dn_match_t *m, const uint32_t *context,
                                             const dn_match_recv_t *after);
DN_API dn_match_msg_t *dn_match_next_kept(const dn_match_t *m, const uint32_t *context,
                                          const dn_match_msg_t *after);

/** @name How many there are */
/** @{ */
static inline size_t dn_match_posted_count(const dn_match_t *m)
{
    return m->nposted;
}

static inline size_t dn_match_kept_count(const dn_match_t *m)
{
    return m->nkept;
}
/** @} */

#endif
