/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_letter.h
 * Letters between neighbors through mapped memory, among processes of one host.
 *
 * In each round a process writes one letter into its own area, for all neighbors that get its letters. The process reads the letters of the
 * neighbors that give it letters, straight from their areas. Nobody else takes part: a process knows its neighbors only. Which processes
 * are neighbors, and how many rounds they have, may differ from one part of a job to another.
 *
 * An area has DN_LETTER_PLACES places for letters, and two counters in lines of their own: `filled`, how many letters were written, and
 * `taken`, in how many rounds the owner has read all letters that it gets. Only the owner writes them, and they never go back, also where
 * an area serves one circle of neighbors after another. Letter k lies in place k mod DN_LETTER_PLACES. A process writes over a letter
 * when all neighbors that get it have taken it. So neighbors may be apart by DN_LETTER_PLACES rounds.
 *
 *   idle -> (dn_letters_exchange) -> to write -> to read -> idle
 *
 * A process whose rounds have failed says so in its area, in a word that stays. So its neighbors fail, too, if they need its
 * letters: a loss goes from neighbor to neighbor, and no process waits for letters of one that has given up. Such an area serves no other circle.
 *
 * Each neighbor counts from where the other's counters stood when they met: from dn_letter_neighbor_t::first.
 *
 * No function waits. Threads: one thread at a time uses a dn_letters_t; different objects may be used at once.
 *
 * Pinned by test/unit/dn_letters_reach_neighbors_only.c.
 */
#ifndef DN_LETTER_H
#define DN_LETTER_H

#include "dimmnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most bytes of a letter: two blocks of 32 KiB, and what the user says of them (perf/dn_coll, neighbor_alltoall of 32 KiB: 2 ranks in letters
 * 12.4 us, in messages 14.5; 4 ranks on 2 cores 25 and 35). */
#define DN_LETTER_BYTES 66560u
/** Letters that an area holds. */
#define DN_LETTER_PLACES 4u
/** Bytes of an area, which is a segment or part of one; aligned to 64 in all processes. */
#define DN_LETTER_AREA (4096u + DN_LETTER_PLACES * DN_LETTER_BYTES)

/** The state of letters in one process. */
typedef struct dn_letters dn_letters_t;

/** Another process. */
typedef struct dn_letter_neighbor {
    const void *area; /**< its area, mapped here: lent until the object is freed */
    dn_peer_t *peer;  /**< to wake it, and to ask whether it lives: likewise */
    uint64_t first;   /**< what its dn_letters_first() has returned */
    int gives;        /**< not 0: this process gets its letters */
    int gets;         /**< not 0: it gets the letters of this process */
} dn_letter_neighbor_t;

/** What a process writes and reads. The caller embeds it in an object with what its functions need. Lent until completion. The functions
 * must not fail. */
typedef struct dn_letter_ends dn_letter_ends_t;
struct dn_letter_ends {
    /** Write the own letter, of at most DN_LETTER_BYTES. Called once. */
    void (*give)(dn_letter_ends_t *ends, void *letter);
    /** Read the letter of neighbor @p i. Called once for each neighbor that gives, in the order of numbers. */
    void (*get)(dn_letter_ends_t *ends, uint32_t i, const void *letter);
};

/** Prepare an own area that serves no circle now. @param[in] first  Where the counters of a new area begin: dn_first().
 * @return what the neighbors have to know before they read the area. */
DN_API uint64_t dn_letters_first(void *area, uint64_t first);

/**
 * Make the state of letters, after dn_letters_first() of the own area.
 *
 * @param[in]  count      Neighbors, without the own process, numbered from 0. None of them gives or gets a letter yet.
 * @param[out] letters_p  The caller's until dn_letters_free() returns DN_OK, or dn_letters_abandon() is called.
 * @retval DN_ERR_NOMEM   memory ran out: nothing is there.
 */
DN_API dn_status_t dn_letters_create(void *area, uint32_t count, dn_letters_t **letters_p);
/** Join neighbor @p i, before the first round. @param[in] neighbor  Copied. */
DN_API void dn_letters_join(dn_letters_t *letters, uint32_t i, const dn_letter_neighbor_t *neighbor);

/**
 * Begin a round. The last round has to be complete. In the same round of all neighbors, they call this, too.
 *
 * @retval DN_OK           complete: the letters of all neighbors that give have been read, and the own letter is written.
 * @retval DN_INPROGRESS   call dn_letters_test() until the round is complete.
 * @retval DN_ERR_UNREACH  a neighbor is gone, or has failed, whose letter, or whose reading, this process needs: no round completes any
 *                         more.
 */
DN_API dn_status_t dn_letters_exchange(dn_letters_t *letters, dn_letter_ends_t *ends);
/** Go on with the round that was begun last. */
DN_API dn_status_t dn_letters_test(dn_letters_t *letters);
/** The caller has slept since the last test. The test will ask sooner whether a neighbor lives: after fewer tests in vain. */
DN_API void dn_letters_slept(dn_letters_t *letters);
/** A number that changes with each step of a round. */
DN_API uint64_t dn_letters_steps(const dn_letters_t *letters);

/**
 * Free an object whose rounds are complete. Its area can serve another circle then.
 *
 * @retval DN_OK          freed; the areas and peers are the caller's again.
 * @retval DN_INPROGRESS  a neighbor may still read the own area: call again, some time after that neighbor has gone on. After
 *                        DN_ERR_UNREACH this may last for ever: call dn_letters_abandon().
 */
DN_API dn_status_t dn_letters_free(dn_letters_t *letters);
/** Give up: all rounds fail from now on, and neighbors that need this process fail, too. The area must not be used again. */
DN_API void dn_letters_fail(dn_letters_t *letters);
/** Free an object at once. The own area must not be used again. */
DN_API void dn_letters_abandon(dn_letters_t *letters);

#ifdef __cplusplus
}
#endif

#endif
