/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file kv_link.c
 * Requests and answers on their way. Each process has a slot for an item, and a word, for each other one.
 *
 *   request   one PUSH into the slot that rank 0 has for the client: command, key, value; its status word is the request's number
 *   answer    one PUSH of the value that was found, or one AOTF; the word that the client polls has the number, and the answer
 */
#include <stddef.h>

#include <dimmnet/dn_atomic.h>

#include "kv.h"

void kv_link_open(kv_link_t *link, int argc, char **argv)
{
    dn_segment_t *segment;
    void *words;

    meet_begin(&link->meet, argc, argv);
    kv_place_t *mine = &link->place[link->meet.rank];
    meet_need(dn_segment_alloc(link->meet.port, MEET_MAX * sizeof(kv_item_t), &segment), "dn_segment_alloc");
    meet_need(dn_llcm_alloc(link->meet.port, MEET_MAX * sizeof(uint64_t), &mine->words, &words),
              "dn_llcm_alloc");
    dn_segment_key(segment, &mine->key);
    link->in = dn_segment_base(segment);
    link->word = words;
    meet_tell(&link->meet, "place", mine, sizeof(*mine));
    for (uint32_t rank = 0; rank < link->meet.ranks; rank++) {
        meet_hear(&link->meet, rank, "place", &link->place[rank], sizeof(kv_place_t));
    }
}

size_t kv_item_bytes(uint32_t len)
{
    return offsetof(kv_item_t, value) + len;
}

kv_item_t *kv_link_next(kv_link_t *link, uint32_t rank)
{
    /* It is the device's until the PUSH before is complete. */
    while (DN_INPROGRESS == link->done[rank].status) {
        meet_wait(&link->meet);
    }
    meet_need(link->done[rank].status, "dn_push");
    return &link->out[rank];
}

/** Offset of this process' word at a rank. */
static uint64_t word_at(const kv_link_t *link, uint32_t rank)
{
    return link->place[rank].words + link->meet.rank * sizeof(uint64_t);
}

void kv_link_push(kv_link_t *link, uint32_t rank, uint64_t word)
{
    const dn_xfer_t xfer = {.local = &link->out[rank],
                            .len = kv_item_bytes(link->out[rank].len),
                            .key = &link->place[rank].key,
                            .roff = link->meet.rank * sizeof(kv_item_t),
                            .comp = &link->done[rank].comp,
                            .flags = DN_XFER_STATUS_REMOTE,
                            .remote_value = word,
                            .remote_status = word_at(link, rank)};
    dn_status_t status;

    link->done[rank] = meet_comp();
    while (DN_ERR_AGAIN == (status = dn_push(link->meet.peer[rank], &xfer))) {
        meet_wait(&link->meet);
    }
    if (DN_INPROGRESS != status) {
        link->done[rank].status = status;
        meet_need(status, "dn_push");
    }
}

void kv_link_store(kv_link_t *link, uint32_t rank, uint64_t word)
{
    dn_status_t status;

    while (DN_ERR_AGAIN
           == (status = dn_aotf(link->meet.peer[rank], word_at(link, rank), word, sizeof(word)))) {
        meet_wait(&link->meet);
    }
    meet_need(status, "dn_aotf");
}

uint64_t kv_link_word(const kv_link_t *link, uint32_t rank)
{
    /* Acquire: pairs with the store of the status word, which is behind the data of its PUSH. */
    return dn_load_acquire(&link->word[rank]);
}
