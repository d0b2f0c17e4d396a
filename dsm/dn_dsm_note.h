/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_note.h
 * What a process knows of who has written which page when.
 *
 * A *note* says: process `writer` has sent home what it wrote to `page`, up to its interval `interval`. Each release of
 * a process begins a new interval. A process keeps the newest note of each page and writer. Notes that may have to be
 * told to others are in a list, the newest first; each has a stamp, which grows with each note that is added. So what is
 * newer than a stamp is a walk from the head of the list, and takes as long as there are such notes.
 *
 * A barrier tells everybody everything: what was in the list before it need not be told again, and leaves the list. What
 * is known of it stays, so that the note is not taken for a new one when it comes by a lock later on.
 *
 * Intervals have 48 bits and do not wrap.
 *
 * Threads: one at a time, but for dn_dsm_notes_interval().
 */
#ifndef DN_DSM_NOTE_H
#define DN_DSM_NOTE_H

#include <dn_atomic.h>

#include "dimmnet.h"

/** A note, as it goes between processes. */
typedef struct dn_dsm_note {
    uint32_t page;
    uint16_t writer;
    uint16_t interval_high; /**< upper 16 bits of the interval */
    uint32_t interval_low;
} dn_dsm_note_t;
_Static_assert(12 == sizeof(dn_dsm_note_t), "processes agree on the layout");

/** Nobody in particular: dn_dsm_notes_add(), dn_dsm_notes_get(). */
#define DN_DSM_NOWHERE UINT32_MAX

/** The newest note of a page and a writer. */
typedef struct dn_dsm_known {
    uint64_t interval; /**< 0: there is none. Atomic */
    uint64_t stamp;    /**< 0: not in the list */
    uint64_t newer;    /**< its place in the list: 1 + index, 0: the head */
    uint64_t older;    /**< the same, 0: the tail */
    uint32_t from;     /**< the lock it came by */
} dn_dsm_known_t;

/** The notes of a process. */
typedef struct dn_dsm_notes {
    dn_dsm_known_t *known; /**< by page * ranks + writer; touched as there are notes */
    uint64_t slots;
    uint32_t ranks;
    uint64_t stamp; /**< of the newest note */
    uint64_t head;  /**< 1 + index of the newest in the list, 0: it is empty */
    uint64_t tail;
} dn_dsm_notes_t;

static inline uint64_t dn_dsm_note_interval(const dn_dsm_note_t *note)
{
    return ((uint64_t) note->interval_high << 32) | note->interval_low;
}

/** @retval DN_ERR_NOMEM  there is nothing to close. */
dn_status_t dn_dsm_notes_open(dn_dsm_notes_t *notes, uint64_t pages, uint32_t ranks);
void dn_dsm_notes_close(dn_dsm_notes_t *notes);

/**
 * Take a note.
 * @param[in] from  The lock by which it came, to which it need not be told; or DN_DSM_NOWHERE.
 * @return not 0: it was new, and is in the list.
 */
int dn_dsm_notes_add(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval, uint32_t from);

/**
 * The newest interval of a page and a writer that is known; 0: none. Any thread.
 *
 * K1: pairs with K0 in dn_dsm_notes_know(): what the writer had sent home by then is seen by what reads it later.
 */
static inline uint64_t dn_dsm_notes_interval(const dn_dsm_notes_t *notes, uint32_t page, uint32_t writer)
{
    return dn_load_acquire(&notes->known[(uint64_t) page * notes->ranks + writer].interval);
}

/** Know of a note that everybody knows, too: it is not listed. @return not 0: it was new. */
int dn_dsm_notes_know(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval);

/**
 * What is newer than a stamp, but for what came by `but`; at most @p max notes are written.
 * @return how many there are.
 */
uint64_t dn_dsm_notes_get(const dn_dsm_notes_t *notes, uint64_t since, uint32_t but, dn_dsm_note_t *note,
                          uint64_t max);

/** Take all out of the list that are not newer than a stamp. */
void dn_dsm_notes_forget(dn_dsm_notes_t *notes, uint64_t upto);

#endif
