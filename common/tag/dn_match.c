/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_match.c
 * The index of the matching engine, and all parts of the engine that are not on the path of every message.
 */
#include "dn_config.h"

#include "dn_match.h"

#include <stdlib.h>

/** log2 of the buckets of an index that has never grown: 512 bytes. */
#define START_BITS 6u

_Static_assert(0 == offsetof(dn_match_recv_t, node) && 0 == offsetof(dn_match_msg_t, node)
                   && 0 == offsetof(dn_match_link_t, ring),
               "a node's address is that of its entry");

/** @name Index */
/** @{ */
static dn_match_key_t make_key(uint32_t context, int32_t source, uint64_t tag, unsigned wild)
{
    return (dn_match_key_t){.context = context,
                            .source = 0 != (wild & DN_MATCH_WILD_SOURCE) ? DN_MATCH_ANY_SOURCE : source,
                            .tag = 0 != (wild & DN_MATCH_WILD_TAG) ? tag & ~DN_MATCH_ANY_TAG_IGNORE : tag,
                            .wild = wild};
}

/** The wild values of a receive: dn_match_wild. */
static unsigned wild_of(int32_t source, uint64_t ignore)
{
    const unsigned wild = DN_MATCH_ANY_SOURCE == source ? DN_MATCH_WILD_SOURCE : 0u;

    if (0 == ignore) {
        return wild;
    }
    return DN_MATCH_ANY_TAG_IGNORE == ignore ? wild | DN_MATCH_WILD_TAG : DN_MATCH_ODD;
}

static bool same_key(const dn_match_key_t *a, const dn_match_key_t *b)
{
    return a->tag == b->tag && a->source == b->source && a->context == b->context && a->wild == b->wild;
}

/** The bucket of a key. Programs number their tags and sources with strides. Without the fold their keys would share few buckets. */
static dn_match_link_t **bucket_of(const dn_match_index_t *index, const dn_match_key_t *key)
{
    uint64_t x = (key->tag ^ (uint64_t) key->wild << 62) * UINT64_C(0xa24baed4963ee407);

    x ^= ((uint64_t) key->context << 32 | (uint32_t) key->source) * UINT64_C(0x9fb21c651e98df25);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return &index->bucket[x >> (64 - index->bits)];
}

/** First entry of the queue that has this key, NULL: there is none. */
static dn_match_link_t *dn_match_lookup(const dn_match_index_t *index, const dn_match_key_t *key)
{
    dn_match_link_t *first = *bucket_of(index, key);

    while (NULL != first && !same_key(&first->key, key)) {
        first = first->chain;
    }
    return first;
}

static void chain_in(dn_match_link_t **at, dn_match_link_t *first)
{
    first->chain = *at;
    first->chain_at = at;
    if (NULL != first->chain) {
        first->chain->chain_at = &first->chain;
    }
    *at = first;
}

static void chain_out(dn_match_link_t *first)
{
    *first->chain_at = first->chain;
    if (NULL != first->chain) {
        first->chain->chain_at = first->chain_at;
    }
}

/** Double the buckets. Without memory the index stays as it is, until it has twice as many queues. */
static void dn_match_grow(dn_match_index_t *index)
{
    const dn_match_index_t old = *index;

    index->grow_bits++;
    index->bucket = calloc((size_t) 1 << index->grow_bits, sizeof(*index->bucket));
    if (NULL == index->bucket) {
        index->bucket = old.bucket;
        return;
    }
    index->bits = index->grow_bits;
    for (size_t i = 0; i < (size_t) 1 << old.bits; i++) {
        for (dn_match_link_t *first = old.bucket[i], *next; NULL != first; first = next) {
            next = first->chain;
            chain_in(bucket_of(index, &first->key), first);
        }
    }
    free(old.bucket);
}

/** Put an entry at the end of the queue of its key. */
static void dn_match_insert(dn_match_index_t *index, dn_match_link_t *link)
{
    dn_match_link_t *first = dn_match_lookup(index, &link->key);

    if (NULL != first) {
        link->chain_at = NULL;
        dn_match_node_append(&first->ring, &link->ring);
        return;
    }
    link->ring = (dn_match_node_t){&link->ring, &link->ring};
    chain_in(bucket_of(index, &link->key), link);
    index->queues++;
    if (0 != index->queues >> index->grow_bits) {
        dn_match_grow(index);
    }
}

/** Take an entry out of its queue. The link of the entry is not valid afterwards. */
static void dn_match_extract(dn_match_index_t *index, dn_match_link_t *link)
{
    if (NULL != link->chain_at) {
        dn_match_link_t *second = (dn_match_link_t *) link->ring.next;

        chain_out(link);
        if (link != second) {
            chain_in(link->chain_at, second);
        } else {
            index->queues--;
        }
    }
    dn_match_node_remove(&link->ring);
}

static bool index_init(dn_match_index_t *index)
{
    *index = (dn_match_index_t){.bits = START_BITS, .grow_bits = START_BITS};
    index->bucket = calloc((size_t) 1 << START_BITS, sizeof(*index->bucket));
    return NULL != index->bucket;
}
/** @} */

int dn_match_init(dn_match_t *m)
{
    *m = (dn_match_t){
        .posted = {&m->posted, &m->posted}, .kept = {&m->kept, &m->kept}, .odd = {&m->odd, &m->odd}};
    return index_init(&m->posted_index) && index_init(&m->kept_index) ? 0 : -1;
}

void dn_match_fini(dn_match_t *m)
{
    free(m->posted_index.bucket);
    free(m->kept_index.bucket);
    m->posted_index.bucket = NULL;
    m->kept_index.bucket = NULL;
}

/** @name Posted receives */
/** @{ */
static dn_match_recv_t *recv_of(dn_match_link_t *link)
{
    return (dn_match_recv_t *) ((uint8_t *) link - offsetof(dn_match_recv_t, link));
}

static void index_recv(dn_match_t *m, dn_match_recv_t *recv)
{
    const unsigned wild = wild_of(recv->source, recv->ignore);

    recv->order = m->order++;
    if (DN_MATCH_ODD == wild) {
        recv->link.key.wild = wild;
        dn_match_node_append(&m->odd, &recv->link.ring);
        return;
    }
    recv->link.key = make_key(recv->context, recv->source, recv->tag, wild);
    m->indexed[wild]++;
    dn_match_insert(&m->posted_index, &recv->link);
}

void dn_match_unindex(dn_match_t *m, dn_match_recv_t *recv)
{
    if (DN_MATCH_ODD == recv->link.key.wild) {
        dn_match_node_remove(&recv->link.ring);
        return;
    }
    m->indexed[recv->link.key.wild]--;
    dn_match_extract(&m->posted_index, &recv->link);
}

/** Put the receives from `fresh` on into the index, or into the list of odd receives. */
static void index_fresh(dn_match_t *m)
{
    for (dn_match_recv_t *recv = m->fresh; NULL != recv; recv = dn_match_next_posted(m, NULL, recv)) {
        index_recv(m, recv);
    }
    m->fresh = NULL;
}

/** The earliest receive of the index that takes a message. */
static dn_match_recv_t *first_indexed(const dn_match_t *m, uint32_t context, int32_t source, uint64_t tag)
{
    dn_match_recv_t *found = NULL;

    for (unsigned wild = 0; wild < DN_MATCH_KINDS; wild++) {
        if (0 == m->indexed[wild]) {
            continue;
        }
        const dn_match_key_t key = make_key(context, source, tag, wild);
        dn_match_link_t *first = dn_match_lookup(&m->posted_index, &key);
        if (NULL != first && (NULL == found || recv_of(first)->order < found->order)) {
            found = recv_of(first);
        }
    }
    return found;
}

/** The earliest odd receive that takes a message, if that receive was posted before @p found; else @p found. */
static dn_match_recv_t *or_earlier_odd(const dn_match_t *m, dn_match_recv_t *found, uint32_t context,
                                       int32_t source, uint64_t tag)
{
    for (dn_match_node_t *node = m->odd.next; &m->odd != node; node = node->next) {
        dn_match_recv_t *recv = recv_of((dn_match_link_t *) node);

        if (NULL != found && found->order < recv->order) {
            break;
        }
        if (recv->context == context
            && dn_match_accepts(recv->source, recv->tag, recv->ignore, source, tag)) {
            return recv;
        }
    }
    return found;
}

/** No near receive matches. Receives that are not in the index and not odd are near, so they need no look here. */
dn_match_recv_t *dn_match_arrive_far(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag)
{
    dn_match_recv_t *found;

    index_fresh(m);
    found = or_earlier_odd(m, first_indexed(m, context, source, tag), context, source, tag);
    if (NULL != found) {
        dn_match_cancel(m, found);
    }
    return found;
}

dn_match_recv_t *dn_match_next_posted(const dn_match_t *m, const uint32_t *context,
                                      const dn_match_recv_t *after)
{
    dn_match_node_t *node = NULL == after ? m->posted.next : after->node.next;

    while (&m->posted != node && NULL != context && *context != ((dn_match_recv_t *) node)->context) {
        node = node->next;
    }
    return &m->posted == node ? NULL : (dn_match_recv_t *) node;
}
/** @} */

/** @name Kept messages */
/** @{ */
/** Put a message into its queue of the kind @p wild. */
static void index_msg(dn_match_t *m, dn_match_msg_t *msg, unsigned wild)
{
    msg->link[wild].key = make_key(msg->context, msg->source, msg->tag, wild);
    dn_match_insert(&m->kept_index, &msg->link[wild]);
}

/** Put all kept messages into queues of the kind @p wild. Messages that are kept later go there, too. */
static void dn_match_seek(dn_match_t *m, unsigned wild)
{
    for (dn_match_node_t *node = m->kept.next; &m->kept != node; node = node->next) {
        index_msg(m, (dn_match_msg_t *) node, wild);
    }
    m->sought |= 1u << wild;
}

void dn_match_keep(dn_match_t *m, dn_match_msg_t *msg)
{
    m->nkept++;
    dn_match_node_append(&m->kept, &msg->node);
    for (unsigned wild = 0; wild < DN_MATCH_KINDS; wild++) {
        msg->link[wild].ring.next = NULL;
        if (DN_MATCH_NEAR < m->nkept && 0 != (m->sought & 1u << wild)) {
            index_msg(m, msg, wild);
        }
    }
}

/** No near message matches. Messages that are not in queues of a kind that was sought are near, so they need no look here. */
static dn_match_msg_t *find_far(dn_match_t *m, const dn_match_key_t *key)
{
    dn_match_link_t *first;

    if (0 == (m->sought & 1u << key->wild)) {
        dn_match_seek(m, key->wild);
    }
    first = dn_match_lookup(&m->kept_index, key);
    return NULL == first
               ? NULL
               : (dn_match_msg_t *) ((uint8_t *) (first - key->wild) - offsetof(dn_match_msg_t, link));
}

dn_match_msg_t *dn_match_find_kept(dn_match_t *m, uint32_t context, int32_t source, uint64_t tag,
                                   uint64_t ignore)
{
    dn_match_node_t *node = m->kept.next;

    for (unsigned near = 0; &m->kept != node; near++, node = node->next) {
        dn_match_msg_t *msg = (dn_match_msg_t *) node;

        if (DN_MATCH_NEAR == near) {
            const unsigned wild = wild_of(source, ignore);
            if (DN_MATCH_ODD != wild) {
                const dn_match_key_t key = make_key(context, source, tag, wild);
                return find_far(m, &key);
            }
        }
        if (msg->context == context && dn_match_accepts(source, tag, ignore, msg->source, msg->tag)) {
            return msg;
        }
    }
    return NULL;
}

void dn_match_take(dn_match_t *m, dn_match_msg_t *msg)
{
    for (unsigned wild = 0; wild < DN_MATCH_KINDS; wild++) {
        if (NULL != msg->link[wild].ring.next) {
            dn_match_extract(&m->kept_index, &msg->link[wild]);
        }
    }
    dn_match_node_remove(&msg->node);
    m->nkept--;
    if (0 == m->nkept) {
        m->sought = 0;
    }
}

dn_match_msg_t *dn_match_next_kept(const dn_match_t *m, const uint32_t *context, const dn_match_msg_t *after)
{
    dn_match_node_t *node = NULL == after ? m->kept.next : after->node.next;

    while (&m->kept != node && NULL != context && *context != ((dn_match_msg_t *) node)->context) {
        node = node->next;
    }
    return &m->kept == node ? NULL : (dn_match_msg_t *) node;
}
/** @} */
