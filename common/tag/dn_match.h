/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_match.h
 * Tag matching finds the posted receive that takes a message, and the unexpected message that a receive takes, in the
 * order that MPI demands.
 *
 * A message has a context, a source and a tag of 64 bits. A receive takes it when the contexts are equal, the sources
 * are equal or the receive's is wild, and the tags are equal in all bits that the receive does not ignore. That is
 * libfabric's rule. MPI's is a case of it: a tag of 32 bits is extended by zeros, and MPI_ANY_TAG is tag 0 with
 * DN_MATCH_ANY_TAG_IGNORE.
 *
 * Posted receives and kept messages stand in two lists, oldest first. The oldest DN_MATCH_NEAR entries of each list are
 * the near ones: they are looked at one by one. In most programs a list has no other entries, or the match is a near entry.
 * Entries behind the near ones are found through an index, a hash table of queues. A queue holds the entries with the same
 * key, oldest first:
 *
 *     list     E - E - E - E - E - E - E - E      by age
 *              `-- near ---'   |   |   |   |
 *     bucket ------------------E - - - E   |      chain of the queues' first entries
 *                              |       |   |
 *                              E       `---'      ring of the entries with the same key
 *
 * A receive's own values, wild ones included, are the key of its one queue. A receive is put into its queue when a message
 * first finds no near receive, so a window of receives that are matched in order is never put into queues. A message may be
 * in several queues, one for each kind of receive (dn_match_wild). A kind has queues only if a receive of that kind has
 * looked beyond the near messages since the list of kept messages was last empty.
 *
 * The index holds receives that ignore no bits, and receives with MPI's mask. Receives with any other mask are odd: behind
 * the near ones they stand in a list of their own. Where both the index and that list have a match, the receive that was
 * posted first takes the message.
 *
 * Cost:       without odd receives the mean cost of a call does not depend on the number of entries, but for
 *             dn_match_next_*(): each entry is put into a queue of each kind once at most, and the index doubles with the
 *             number of its queues. The index does not shrink. A message that no near receive takes is compared with the odd
 *             receives in turn, up to the first odd receive that matches, or that was posted after the index's match. An odd
 *             receive is compared with all kept messages in turn. So exact receives do not slow each other down, however many
 *             there are.
 * Ordering:   of the receives that match a message, the receive that was posted first takes the message. Of the messages that
 *             match a receive, the receive takes the message that was kept first.
 * Ownership:  receives and messages are the caller's memory. They are lent from post or keep until they are returned by
 *             arrive, cancelled or taken. The caller does not move or change them meanwhile.
 * Threads:    none of these functions locks: one thread at a time. A call of arrive and the keep that follows it are one
 *             critical section. So are a find and the post or take that follows it.
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

/** Bits that MPI_ANY_TAG ignores. MPI_ANY_TAG takes tags of 0 and more. Collectives use negative tags, which have bit 31 set. */
#define DN_MATCH_ANY_TAG_IGNORE UINT64_C(0x7fffffff)

/**
 * Entries of a list that are looked at one by one: the near ones. To post and match a near receive takes 5 to 7 ns. Through
 * the index alone this takes 25 ns. A receive behind the near ones takes 13 to 20 ns, with the looks at the near ones. Where
 * 8 entries are near, it takes 3 ns more.
 */
#define DN_MATCH_NEAR 4

/** The wild values of a key. They are also the kind of its queue: a number below DN_MATCH_KINDS. */
enum dn_match_wild {
    DN_MATCH_WILD_SOURCE = 1 << 0,
    DN_MATCH_WILD_TAG = 1 << 1, /**< in the bits of DN_MATCH_ANY_TAG_IGNORE */
    DN_MATCH_KINDS = 1 << 2,
    DN_MATCH_ODD = DN_MATCH_KINDS, /**< a receive with another mask */
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
    uint32_t wild; /**< dn_match_wild; so keys of different kinds differ, even if a peer sent a wild value */
} dn_match_key_t;

/** A place in the index, or in the list of odd receives. That list uses `ring` and key.wild only. */
typedef struct dn_match_link {
    dn_match_node_t ring;        /**< the queue, oldest first and round again; next NULL: not in the index */
    struct dn_match_link *chain; /**< first of a queue: first of the next queue in the bucket */
    struct dn_match_link **chain_at; /**< first of a queue: the pointer to this link; all others: NULL */
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
    uint64_t order; /**< in the index or odd: rises with every receive; elsewhere undefined */
} dn_match_recv_t;

/** An unexpected message. The caller sets context, source (not wild) and tag; the rest is private. */
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
    unsigned grow_bits; /**< log2 of the number of queues at which the index is to grow */
    size_t queues;
} dn_match_index_t;

/** The engine. All private. Holds its own address: not to be moved. */
typedef struct dn_match {
    dn_match_node_t posted;
    dn_match_node_t kept;
    dn_match_node_t odd; /**< odd receives by age, without those that have always been near */
    size_t nposted;
    size_t nkept;
    uint64_t order; /**< of the next receive that is put into the index or the odd list */
    dn_match_recv_t *
        fresh; /**< the first receive, not posted near, that is not in the index or odd yet, as all after it; NULL: none */
    size_t indexed[DN_MATCH_KINDS]; /**< receives in the index */
    unsigned sought; /**< bit k: kept messages are in queues of kind k, but for some near ones */
    dn_match_index_t posted_index;
    dn_match_index_t kept_index;
} dn_match_t;

/**
 * Begin with nothing posted and nothing kept.
 * @retval 0
 * @retval -1  memory ran out: the caller reports the error, and may call dn_match_fini() and nothing else.
 */
DN_API int dn_match_init(dn_match_t *m);

/** Free the indexes. Entries that are still posted or kept are not touched: the caller frees them before. */
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

/** Post a receive. The caller has called dn_match_find() before, and no kept message matched. */
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
 * A message has arrived: find the receive that takes the message, and take the receive out.
 *
 * @param[in] m        Initialised.
 * @param[in] context  Of the message.
 * @param[in] source   Of the message, 0 or more. The caller checks the value that a peer sent. Without this check a message may
 *                     match or not, but no harm is done.
 * @param[in] tag      Of the message, any.
 *
 * @return the earliest posted receive that matches; the receive is the caller's again. NULL: keep the message.
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

/** Keep a message that no posted receive matches: dn_match_arrive() has returned NULL for it. */
DN_API void dn_match_keep(dn_match_t *m, dn_match_msg_t *msg);

/**
 * Find the message that a receive would take.
 * @param[in] m        Initialised.
 * @param[in] context  Of the receive.
 * @param[in] source   Of the receive, or DN_MATCH_ANY_SOURCE.
 * @param[in] tag      Of the receive; ignored bits may have any value.
 * @param[in] ignore   Bits of the tag that may differ.
 * @return the earliest kept message that matches; it stays kept. NULL: post the receive.
 */
static inline dn_match_msg_t *dn_match_find(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag,
                                            uint64_t ignore)
{
    return &m->kept == m->kept.next ? NULL : dn_match_find_kept(m, context, source, tag, ignore);
}

/** Take out a kept message. The message is the caller's again. */
DN_API void dn_match_take(dn_match_t *m, dn_match_msg_t *msg);

/**
 * Go through the posted receives, or the kept messages, oldest first: all entries, or those of one context.
 *
 * A call reads entries of other contexts on its way, too. An entry may be cancelled or taken once the caller has asked for
 * the entry after it.
 *
 * @param[in] m        Initialised.
 * @param[in] context  NULL: all.
 * @param[in] after    The entry of the call before; NULL: begin with the oldest.
 * @return NULL: no more.
 */
DN_API dn_match_recv_t *dn_match_next_posted(const dn_match_t *m, const uint32_t *context,
                                             const dn_match_recv_t *after);
DN_API dn_match_msg_t *dn_match_next_kept(const dn_match_t *m, const uint32_t *context,
                                          const dn_match_msg_t *after);

/** @name Numbers of posted receives and kept messages */
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
