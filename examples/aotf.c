/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file aotf.c
 * AOTF: one store into the memory that a peer polls. A number goes round all processes.
 */
#include <stdio.h>

#include <dimmnet/dn_atomic.h>

#include "meet.h"

#define ROUNDS 1000

/** Store the number into the right neighbour's word. */
static void pass_on(meet_t *meet, uint32_t next, uint64_t off, uint64_t number)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(meet->peer[next], off, number, sizeof(number)))) {
        meet_wait(meet);
    }
    meet_need(status, "dn_aotf");
}

/** Poll the own word until the number is there. */
static void await(meet_t *meet, const uint64_t *word, uint64_t number)
{
    while (number != dn_load_acquire(word)) {
        meet_wait(meet);
    }
}

int main(int argc, char **argv)
{
    uint64_t mine, theirs;
    void *word;
    meet_t meet;

    meet_begin(&meet, argc, argv);
    /* Each process takes a word of its LLCM, and tells its left neighbour where that is. */
    meet_need(dn_llcm_alloc(meet.port, sizeof(uint64_t), &mine, &word), "dn_llcm_alloc");
    const uint32_t next = (meet.rank + 1) % meet.ranks;
    meet_tell(&meet, "word", &mine, sizeof(mine));
    meet_hear(&meet, next, "word", &theirs, sizeof(theirs));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (0 == meet.rank) {
            pass_on(&meet, next, theirs, round);
            await(&meet, word, round);
        } else {
            await(&meet, word, round);
            pass_on(&meet, next, theirs, round);
        }
    }
    if (0 == meet.rank) {
        printf("aotf: a number went round %u processes %d times\n", (unsigned) meet.ranks, ROUNDS);
    }
    meet_end(&meet);
    return 0;
}
