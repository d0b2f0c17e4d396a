/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_letter.c
 * Memory order. A counter is stored with release after the bytes of its letter have been written (filled) or read (taken). It is loaded with
 * acquire before these bytes are read or written over. So a process that sees `filled` beyond a letter sees the letter's bytes. And a letter
 * is written over only after the reads of all neighbors that have stored `taken`. A counter that was once seen beyond a letter need not be
 * loaded again for this letter: the load comes before everything that follows.
 */
#include "dn_config.h"

#include "dn_letter.h"

#include "dn_atomic.h"

#include <stdlib.h>
#include <string.h>

/** Tests in vain after which a neighbor is asked whether it lives. */
#define DN_LETTERS_PATIENCE 8192u
/** Likewise, where the caller sleeps between two tests. */
#define DN_LETTERS_SLEEPS 8u

/** Counters of an area, in this order. */
enum { FILLED, TAKEN, COUNTERS };
/** Behind them: a word that is not 0 once the owner's rounds have failed. */
#define FAILED COUNTERS

/** What has to be done in the round under way. */
typedef enum dn_letters_state { DN_LETTERS_IDLE, DN_LETTERS_TO_WRITE, DN_LETTERS_TO_READ } dn_letters_state_t;

struct dn_letters {
    uint8_t *area;
    uint64_t first; /**< of the own counters */
    uint64_t round; /**< rounds that are complete */
    dn_letters_state_t state;
    dn_letter_ends_t *ends; /**< of the round under way */
    uint32_t vain;          /**< tests since the last step */
    uint32_t asked;         /**< the neighbor that was asked last whether it lives */
    int failed;
    uint32_t count; /**< of neighbors */
    struct dn_letters_neighbor {
        dn_letter_neighbor_t super;
        uint64_t seen[COUNTERS]; /**< rounds that its counters have told so far */
    } neighbor[];
};

static uint64_t *dn_letters_counter(const void *area, int which)
{
    return (uint64_t *) ((uintptr_t) area + 64 * (size_t) which);
}

static uint8_t *dn_letters_place(const void *area, uint64_t number)
{
    return (uint8_t *) (uintptr_t) area + DN_LETTER_AREA
           - DN_LETTER_BYTES * (DN_LETTER_PLACES - number % DN_LETTER_PLACES);
}

uint64_t dn_letters_first(void *area, uint64_t first)
{
    const uint64_t before = dn_load_relaxed(dn_letters_counter(area, TAKEN));

    first = 0 == before ? first : before;
    for (int which = 0; which < COUNTERS; which++) {
        dn_store_release(dn_letters_counter(area, which), first);
    }
    return first;
}

dn_status_t dn_letters_create(void *area, uint32_t count, dn_letters_t **letters_p)
{
    dn_letters_t *letters = calloc(1, sizeof(*letters) + count * sizeof(letters->neighbor[0]));

    if (NULL == letters) {
        return DN_ERR_NOMEM;
    }
    letters->area = area;
    letters->first = dn_load_relaxed(dn_letters_counter(area, TAKEN));
    letters->count = count;
    *letters_p = letters;
    return DN_OK;
}

void dn_letters_join(dn_letters_t *letters, uint32_t i, const dn_letter_neighbor_t *neighbor)
{
    letters->neighbor[i].super = *neighbor;
}

/** Has a counter of a neighbor told more than so many rounds? */
static int dn_letters_is_beyond(struct dn_letters_neighbor *neighbor, int which, uint64_t rounds)
{
    if (neighbor->seen[which] <= rounds) {
        neighbor->seen[which] =
            dn_load_acquire(dn_letters_counter(neighbor->super.area, which)) - neighbor->super.first;
    }
    return neighbor->seen[which] > rounds;
}

/** Have all neighbors that get letters read the letter of a round? */
static int dn_letters_was_read(dn_letters_t *letters, uint64_t round)
{
    for (uint32_t i = 0; i < letters->count; i++) {
        if (letters->neighbor[i].super.gets && !dn_letters_is_beyond(&letters->neighbor[i], TAKEN, round)) {
            return 0;
        }
    }
    return 1;
}

static int dn_letters_have_come(dn_letters_t *letters)
{
    for (uint32_t i = 0; i < letters->count; i++) {
        if (letters->neighbor[i].super.gives
            && !dn_letters_is_beyond(&letters->neighbor[i], FILLED, letters->round)) {
            return 0;
        }
    }
    return 1;
}

/** Go on to the next state of the round, and tell the neighbors what was done. */
static void dn_letters_step(dn_letters_t *letters, int which, dn_letters_state_t next)
{
    letters->state = next;
    letters->vain = 0;
    dn_store_release(dn_letters_counter(letters->area, which), letters->first + letters->round + 1);
    for (uint32_t i = 0; i < letters->count; i++) {
        const dn_letter_neighbor_t *neighbor = &letters->neighbor[i].super;
        if (FILLED == which ? neighbor->gets : neighbor->gives) {
            dn_wake(neighbor->peer);
        }
    }
}

static void dn_letters_write(dn_letters_t *letters)
{
    if (DN_LETTER_PLACES <= letters->round
        && !dn_letters_was_read(letters, letters->round - DN_LETTER_PLACES)) {
        return;
    }
    letters->ends->give(letters->ends, dn_letters_place(letters->area, letters->first + letters->round));
    dn_letters_step(letters, FILLED, DN_LETTERS_TO_READ);
}

static void dn_letters_read(dn_letters_t *letters)
{
    if (!dn_letters_have_come(letters)) {
        return;
    }
    for (uint32_t i = 0; i < letters->count; i++) {
        const dn_letter_neighbor_t *neighbor = &letters->neighbor[i].super;
        if (neighbor->gives) {
            letters->ends->get(letters->ends, i,
                               dn_letters_place(neighbor->area, neighbor->first + letters->round));
        }
    }
    dn_letters_step(letters, TAKEN, DN_LETTERS_IDLE);
    letters->round++;
}

/** Is a neighbor through with what this process waits for? Then it may leave. */
static int dn_letters_is_through(dn_letters_t *letters, struct dn_letters_neighbor *neighbor)
{
    if (DN_LETTERS_TO_WRITE == letters->state) {
        return !neighbor->super.gets
               || dn_letters_is_beyond(neighbor, TAKEN, letters->round - DN_LETTER_PLACES);
    }
    return !neighbor->super.gives || dn_letters_is_beyond(neighbor, FILLED, letters->round);
}

/** Has a neighbor ended, or failed? */
static int dn_letters_is_gone(const struct dn_letters_neighbor *neighbor)
{
    return 0 != dn_load_acquire(dn_letters_counter(neighbor->super.area, FAILED))
           || DN_OK != dn_peer_check(neighbor->super.peer);
}

/** Nothing has come for long: ask the next neighbor that still has something to do whether it lives. A neighbor that has done its part since
 * then may have left in order. It stored its counters before it left, so this process sees them now. */
static void dn_letters_ask(dn_letters_t *letters)
{
    letters->vain = 0;
    for (uint32_t n = 0; n < letters->count; n++) {
        letters->asked = (letters->asked + 1) % letters->count;
        struct dn_letters_neighbor *neighbor = &letters->neighbor[letters->asked];
        if (!dn_letters_is_through(letters, neighbor)) {
            if (dn_letters_is_gone(neighbor) && !dn_letters_is_through(letters, neighbor)) {
                dn_letters_fail(letters);
            }
            return;
        }
    }
}

void dn_letters_fail(dn_letters_t *letters)
{
    letters->failed = 1;
    dn_store_release(dn_letters_counter(letters->area, FAILED), 1);
    for (uint32_t i = 0; i < letters->count; i++) {
        if (NULL != letters->neighbor[i].super.peer) {
            dn_wake(letters->neighbor[i].super.peer);
        }
    }
}

dn_status_t dn_letters_test(dn_letters_t *letters)
{
    if (DN_LETTERS_TO_WRITE == letters->state) {
        dn_letters_write(letters);
    }
    if (DN_LETTERS_TO_READ == letters->state) {
        dn_letters_read(letters);
    }
    if (DN_LETTERS_IDLE == letters->state) {
        return DN_OK;
    }
    if (DN_LETTERS_PATIENCE <= ++letters->vain) {
        dn_letters_ask(letters);
    }
    return letters->failed ? DN_ERR_UNREACH : DN_INPROGRESS;
}

dn_status_t dn_letters_exchange(dn_letters_t *letters, dn_letter_ends_t *ends)
{
    if (letters->failed) {
        return DN_ERR_UNREACH;
    }
    letters->ends = ends;
    letters->state = DN_LETTERS_TO_WRITE;
    letters->vain = 0;
    return dn_letters_test(letters);
}

void dn_letters_slept(dn_letters_t *letters)
{
    letters->vain += DN_LETTERS_PATIENCE / DN_LETTERS_SLEEPS;
}

uint64_t dn_letters_steps(const dn_letters_t *letters)
{
    return 4 * letters->round + letters->state;
}

dn_status_t dn_letters_free(dn_letters_t *letters)
{
    /* A neighbor that has taken the last letter reads no place of the own area any more. It may still look at the counters. So they must
     * never go back: see dn_letters_first(). */
    if (letters->failed || (0 != letters->round && !dn_letters_was_read(letters, letters->round - 1))) {
        return DN_INPROGRESS;
    }
    free(letters);
    return DN_OK;
}

void dn_letters_abandon(dn_letters_t *letters)
{
    free(letters);
}
