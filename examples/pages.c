/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file pages.c
 * Load and store on the memory of another process, on this host or on another one. Rank 0 has a table. Its words are dealt out to
 * the processes one by one, so that all write all pages. Rank 0 puts the sum into the first word, where the others load it.
 *
 * One AOTF of each says that its words are there, and one of rank 0 that the sum is.
 */
#include <stdio.h>

#include <dimmnet/dn_atomic.h>
#include <dimmnet/dn_page.h>

#include "meet.h"

#define WORDS 10000

/** What each process tells the others: the key of its table, which rank 0 alone has, and the words where it waits. */
typedef struct place {
    dn_key_t key;
    uint64_t words;
} place_t;

/** Tell a process that something is there. */
static void sign(meet_t *meet, const place_t *place, uint32_t rank)
{
    const uint64_t off = place[rank].words + meet->rank * sizeof(uint64_t);
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(meet->peer[rank], off, 1, sizeof(uint64_t)))) {
        meet_wait(meet);
    }
    meet_need(status, "dn_aotf");
}

/** Wait for that. */
static void await(meet_t *meet, const uint64_t *word, uint32_t rank)
{
    while (0 == dn_load_acquire(&word[rank])) {
        meet_wait(meet);
    }
}

int main(int argc, char **argv)
{
    place_t place[MEET_MAX] = {0};
    dn_mapping_t *mapping;
    dn_segment_t *segment;
    uint64_t sum = 0;
    void *word;
    meet_t meet;

    meet_begin(&meet, argc, argv);
    meet_need(dn_llcm_alloc(meet.port, MEET_MAX * sizeof(uint64_t), &place[meet.rank].words, &word),
              "dn_llcm_alloc");
    if (0 == meet.rank) {
        meet_need(dn_segment_alloc(meet.port, WORDS * sizeof(uint64_t), &segment), "dn_segment_alloc");
        dn_segment_key(segment, &place[0].key);
    }
    meet_tell(&meet, "place", &place[meet.rank], sizeof(place_t));
    for (uint32_t rank = 0; rank < meet.ranks; rank++) {
        meet_hear(&meet, rank, "place", &place[rank], sizeof(place_t));
    }
    /* Rank 0 maps its own, so that it does as the others. */
    meet_need(
        dn_page_map(meet.port, meet.peer[0], &place[0].key, 0, WORDS * sizeof(uint64_t), "auto", &mapping),
        "dn_page_map");
    uint64_t *table = dn_page_base(mapping);
    for (uint64_t i = meet.rank; i < WORDS; i += meet.ranks) {
        table[i] = i;
    }
    meet_need(dn_page_release(mapping), "dn_page_release");
    sign(&meet, place, 0);
    for (uint32_t rank = 0; 0 == meet.rank && rank < meet.ranks; rank++) {
        await(&meet, word, rank);
    }
    if (0 == meet.rank) {
        meet_need(dn_page_acquire(mapping), "dn_page_acquire");
        for (uint64_t i = 0; i < WORDS; i++) {
            sum += table[i];
        }
        table[0] = sum;
        meet_need(dn_page_release(mapping), "dn_page_release");
        printf("pages: %u processes have stored what sums up to %llu\n", (unsigned) meet.ranks,
               (unsigned long long) sum);
        for (uint32_t rank = 1; rank < meet.ranks; rank++) {
            sign(&meet, place, rank);
        }
    } else {
        await(&meet, word, 0);
        meet_need(dn_page_acquire(mapping), "dn_page_acquire");
        meet_need(WORDS / 2 * (WORDS - UINT64_C(1)) == table[0] ? DN_OK : DN_ERR_PROTO, "the sum");
    }
    meet_need(dn_page_unmap(mapping), "dn_page_unmap");
    meet_end(&meet);
    return 0;
}
