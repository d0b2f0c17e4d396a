/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file kv_keeper.c
 * The keeper: its table, and the answers to requests.
 */
#include <stdio.h>
#include <string.h>

#include "kv.h"

static kv_item_t table[KV_ITEMS];

/** Where a key is, or would be. NULL: no room. */
static kv_item_t *find(const char *key)
{
    uint32_t hash = 2166136261u;

    for (const char *c = key; '\0' != *c; c++) {
        hash = (hash ^ (uint8_t) *c) * 16777619u;
    }
    for (uint32_t i = 0; i < KV_ITEMS; i++) {
        kv_item_t *item = &table[(hash + i) % KV_ITEMS];
        if (0 == item->used || 0 == strcmp(item->key, key)) {
            return item;
        }
    }
    return NULL;
}

/** Do what a request says. @param[out] item_p  What KV_FOUND has found. @return the answer. */
static kv_answer_t execute(const kv_item_t *request, const kv_item_t **item_p)
{
    /* What others write may change: a copy is looked at, and used. */
    kv_item_t mine = *request;
    mine.key[KV_KEY - 1] = '\0';
    mine.len = mine.len < KV_VALUE ? mine.len : KV_VALUE;
    kv_item_t *item = KV_END > mine.used ? find(mine.key) : NULL;

    *item_p = item;
    if (NULL == item) {
        return KV_FULL;
    }
    if (KV_GET == mine.used) {
        return 0 == item->used ? KV_ABSENT : KV_FOUND;
    }
    if (KV_ADD == mine.used && 0 != item->used) {
        return KV_PRESENT;
    }
    memcpy(item, &mine, kv_item_bytes(mine.len));
    return KV_STORED;
}

static void answer(kv_link_t *link, uint32_t rank)
{
    const kv_item_t *item;
    const kv_answer_t what = execute(&link->in[rank], &item);
    const uint64_t word = link->number[rank] << 8 | what;

    if (KV_FOUND == what) {
        memcpy(kv_link_next(link, rank), item, kv_item_bytes(item->len));
        kv_link_push(link, rank, word);
    } else {
        kv_link_store(link, rank, word);
    }
}

void kv_keep(kv_link_t *link)
{
    uint32_t clients = link->meet.ranks - 1;

    while (0 != clients) {
        for (uint32_t rank = 1; rank < link->meet.ranks; rank++) {
            if (link->number[rank] + 1 == kv_link_word(link, rank)) {
                link->number[rank]++;
                link->meet.steps++; /* what the wait was for */
                clients -= KV_END == link->in[rank].used;
                answer(link, rank);
            }
        }
        meet_wait(&link->meet);
    }
    printf("kv: %u clients were served\n", (unsigned) link->meet.ranks - 1);
}
