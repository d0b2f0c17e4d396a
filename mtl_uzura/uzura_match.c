/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file uzura_match.c
 * The index of the matching engine, and what of the engine is not in every message's way.
 */
#include "dn_config.h"

#include "uzura_match.h"

#include <stdlib.h>

/** log2 of the buckets of an index that has never grown: 512 bytes. */
#define START_BITS 6u

_Static_assert(0 == offsetof(uzura_recv_t, node) && 0 == offsetof(uzura_msg_t, node)
                   && 0 == offsetof(uzura_link_t, ring),
               "a node's address is that of its entry");

/** @name Index */
/** @{ */
static uzura_key_t make_key(uint32_t context, int32_t source, int32_t tag, unsigned wild)
{
    return (uzura_key_t){.context = context,
                         .source = 0 != (wild & UZURA_WILD_SOURCE) ? UZURA_ANY_SOURCE : source,
                         .tag = 0 != (wild & UZURA_WILD_TAG) ? UZURA_ANY_TAG : tag,
                         .wild = wild};
}

/** What is wild in the values of a receive. */
static unsigned wild_of(int32_t source, int32_t tag)
{
    return (UZURA_ANY_SOURCE == source ? UZURA_WILD_SOURCE : 0u)
           | (UZURA_ANY_TAG == tag ? UZURA_WILD_TAG : 0u);
}

static bool same_key(const uzura_key_t *a, const uzura_key_t *b)
{
    return a->tag == b->tag && a->source == b->source && a->context == b->context && a->wild == b->wild;
}

/** Programs number their tags and sources with strides: the fold keeps these from adding up to few buckets. */
static uzura_link_t **bucket_of(const uzura_index_t *index, const uzura_key_t *key)
{
    uint64_t x = ((uint64_t) key->context << 32 | (uint32_t) key->tag) * UINT64_C(0xa24baed4963ee407);

    x ^= ((uint64_t) key->wild << 32 | (uint32_t) key->source) * UINT64_C(0x9fb21c651e98df25);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return &index->bucket[x >> (64 - index->bits)];
}

/** First entry of the queue that has this key, NULL: there is none. */
static uzura_link_t *lookup(const uzura_index_t *index, const uzura_key_t *key)
{
    uzura_link_t *first = *bucket_of(index, key);

    while (NULL != first && !same_key(&first->key, key)) {
        first = first->chain;
    }
    return first;
}

static void chain_in(uzura_link_t **at, uzura_link_t *first)
{
    first->chain = *at;
    first->chain_at = at;
    if (NULL != first->chain) {
        first->chain->chain_at = &first->chain;
    }
    *at = first;
}

static void chain_out(uzura_link_t *first)
{
    *first->chain_at = first->chain;
    if (NULL != first->chain) {
        first->chain->chain_at = first->chain_at;
    }
}

/** Without memory for it the index stays as it is, until it would have to grow again. */
static void grow(uzura_index_t *index)
{
    const uzura_index_t old = *index;

    index->grow_bits++;
    index->bucket = calloc((size_t) 1 << index->grow_bits, sizeof(*index->bucket));
    if (NULL == index->bucket) {
        index->bucket = old.bucket;
        return;
    }
    index->bits = index->grow_bits;
    for (size_t i = 0; i < (size_t) 1 << old.bits; i++) {
        for (uzura_link_t *first = old.bucket[i], *next; NULL != first; first = next) {
            next = first->chain;
            chain_in(bucket_of(index, &first->key), first);
        }
    }
    free(old.bucket);
}

/** Put an entry at the end of the queue of its key. */
static void insert(uzura_index_t *index, uzura_link_t *link)
{
    uzura_link_t *first = lookup(index, &link->key);

    if (NULL != first) {
        link->chain_at = NULL;
        uzura_node_append(&first->ring, &link->ring);
        return;
    }
    link->ring = (uzura_node_t){&link->ring, &link->ring};
    chain_in(bucket_of(index, &link->key), link);
    index->queues++;
    if (0 != index->queues >> index->grow_bits) {
        grow(index);
    }
}

/** Take out an entry that is about to leave altogether. */
static void extract(uzura_index_t *index, uzura_link_t *link)
{
    if (NULL != link->chain_at) {
        uzura_link_t *second = (uzura_link_t *) link->ring.next;

        chain_out(link);
        if (link != second) {
            chain_in(link->chain_at, second);
        } else {
            index->queues--;
        }
    }
    uzura_node_remove(&link->ring);
}

static bool index_init(uzura_index_t *index)
{
    *index = (uzura_index_t){.bits = START_BITS, .grow_bits = START_BITS};
    index->bucket = calloc((size_t) 1 << START_BITS, sizeof(*index->bucket));
    return NULL != index->bucket;
}
/** @} */

int uzura_match_init(uzura_match_t *m)
{
    *m = (uzura_match_t){.posted = {&m->posted, &m->posted}, .kept = {&m->kept, &m->kept}};
    return index_init(&m->posted_index) && index_init(&m->kept_index) ? 0 : -1;
}

void uzura_match_fini(uzura_match_t *m)
{
    free(m->posted_index.bucket);
    free(m->kept_index.bucket);
    m->posted_index.bucket = NULL;
    m->kept_index.bucket = NULL;
}

/** @name Posted receives */
/** @{ */
static void index_recv(uzura_match_t *m, uzura_recv_t *recv)
{
    const unsigned wild = wild_of(recv->source, recv->tag);

    recv->order = m->order++;
    recv->link.key = make_key(recv->context, recv->source, recv->tag, wild);
    m->indexed[wild]++;
    insert(&m->posted_index, &recv->link);
}

void uzura_match_unindex(uzura_match_t *m, uzura_recv_t *recv)
{
    m->indexed[recv->link.key.wild]--;
    extract(&m->posted_index, &recv->link);
}

/** Put all into the index that have been posted since it was last needed. */
static void index_fresh(uzura_match_t *m)
{
    for (uzura_recv_t *recv = m->fresh; NULL != recv; recv = uzura_match_next_posted(m, NULL, recv)) {
        index_recv(m, recv);
    }
    m->fresh = NULL;
}

/** None of the near receives matches, and those that are not in the index then are among them. */
uzura_recv_t *uzura_match_arrive_far(uzura_match_t *m, uint32_t context, int32_t source, int32_t tag)
{
    const unsigned kinds = 0 > tag ? UZURA_WILD_TAG : UZURA_KINDS;
    uzura_recv_t *found = NULL;

    index_fresh(m);
    for (unsigned wild = 0; wild < kinds; wild++) {
        if (0 == m->indexed[wild]) {
            continue;
        }
        const uzura_key_t key = make_key(context, source, tag, wild);
        uzura_link_t *first = lookup(&m->posted_index, &key);
        if (NULL != first) {
            uzura_recv_t *recv = (uzura_recv_t *) ((uint8_t *) first - offsetof(uzura_recv_t, link));
            if (NULL == found || recv->order < found->order) {
                found = recv;
            }
        }
    }
    if (NULL != found) {
        uzura_match_cancel(m, found);
    }
    return found;
}

uzura_recv_t *uzura_match_next_posted(const uzura_match_t *m, const uint32_t *context,
                                      const uzura_recv_t *after)
{
    uzura_node_t *node = NULL == after ? m->posted.next : after->node.next;

    while (&m->posted != node && NULL != context && *context != ((uzura_recv_t *) node)->context) {
        node = node->next;
    }
    return &m->posted == node ? NULL : (uzura_recv_t *) node;
}
/** @} */

/** @name Kept messages */
/** @{ */
/** Put a message into its queue of one kind, if receives of that kind match it. */
static void index_msg(uzura_match_t *m, uzura_msg_t *msg, unsigned wild)
{
    if (0 > msg->tag && 0 != (wild & UZURA_WILD_TAG)) {
        return;
    }
    msg->link[wild].key = make_key(msg->context, msg->source, msg->tag, wild);
    insert(&m->kept_index, &msg->link[wild]);
}

/** From now on messages are in the queues of this kind. */
static void seek(uzura_match_t *m, unsigned wild)
{
    for (uzura_node_t *node = m->kept.next; &m->kept != node; node = node->next) {
        index_msg(m, (uzura_msg_t *) node, wild);
    }
    m->sought |= 1u << wild;
}

void uzura_match_keep(uzura_match_t *m, uzura_msg_t *msg)
{
    m->nkept++;
    uzura_node_append(&m->kept, &msg->node);
    for (unsigned wild = 0; wild < UZURA_KINDS; wild++) {
        msg->link[wild].ring.next = NULL;
        if (UZURA_NEAR < m->nkept && 0 != (m->sought & 1u << wild)) {
            index_msg(m, msg, wild);
        }
    }
}

/** None of the near messages matches, and those that are not in the queues of a kind sought are among them. */
static uzura_msg_t *find_far(uzura_match_t *m, uint32_t context, int32_t source, int32_t tag)
{
    const unsigned wild = wild_of(source, tag);
    const uzura_key_t key = make_key(context, source, tag, wild);
    uzura_link_t *first;

    if (0 == (m->sought & 1u << wild)) {
        seek(m, wild);
    }
    first = lookup(&m->kept_index, &key);
    return NULL == first ? NULL : (uzura_msg_t *) ((uint8_t *) (first - wild) - offsetof(uzura_msg_t, link));
}

uzura_msg_t *uzura_match_find_kept(uzura_match_t *m, uint32_t context, int32_t source, int32_t tag)
{
    uzura_node_t *node = m->kept.next;

    for (unsigned near = 0; &m->kept != node; near++, node = node->next) {
        uzura_msg_t *msg = (uzura_msg_t *) node;

        if (UZURA_NEAR == near) {
            return find_far(m, context, source, tag);
        }
        if (msg->context == context && uzura_takes(source, tag, msg->source, msg->tag)) {
            return msg;
        }
    }
    return NULL;
}

void uzura_match_take(uzura_match_t *m, uzura_msg_t *msg)
{
    for (unsigned wild = 0; wild < UZURA_KINDS; wild++) {
        if (NULL != msg->link[wild].ring.next) {
            extract(&m->kept_index, &msg->link[wild]);
        }
    }
    uzura_node_remove(&msg->node);
    m->nkept--;
    if (0 == m->nkept) {
        m->sought = 0;
    }
}

uzura_msg_t *uzura_match_next_kept(const uzura_match_t *m, const uint32_t *context, const uzura_msg_t *after)
{
    uzura_node_t *node = NULL == after ? m->kept.next : after->node.next;

    while (&m->kept != node && NULL != context && *context != ((uzura_msg_t *) node)->context) {
        node = node->next;
    }
    return &m->kept == node ? NULL : (uzura_msg_t *) node;
}
/** @} */
