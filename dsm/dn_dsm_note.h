/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_note.h
 * What a process knows of writes: which process has written which page in which interval.
 *
 * A *note* says: process `writer` has sent home what it wrote to `page`, up to its interval `interval`. Each release of
 * a process begins a new interval. A process keeps the newest note of each page and writer. Notes that may have to be
 * told to others are in a list, the newest first. Each has a stamp, which grows with each note that is added. So a walk from
 * the head of the list finds the notes that are newer than a stamp, and takes time in proportion to their number.
 *
 * A barrier tells all notes to all processes. The notes that were in the list before it need not be told again, and leave the
 * list. Their intervals stay known, so that a note that comes again by a lock later is not taken for a new note.
 *
 * Intervals have 48 bits and do not wrap.
 *
 * Threads: one thread at a time, but for dn_dsm_notes_interval().
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

/** For dn_dsm_notes_add() and dn_dsm_notes_get(): no lock. */
#define DN_DSM_NOWHERE UINT32_MAX

/** The newest note of a page and a writer. */
typedef struct dn_dsm_known {
    uint64_t interval; /**< 0: there is no note. Atomic */
    uint64_t stamp;    /**< 0: the note is not in the list */
    uint64_t newer;    /**< in the list: 1 + index of the next newer note; 0: this is the head */
    uint64_t older;    /**< in the list: 1 + index of the next older note; 0: this is the tail */
    uint32_t from;     /**< the lock by which the note came; or DN_DSM_NOWHERE */
} dn_dsm_known_t;

/** The notes of a process. */
typedef struct dn_dsm_notes {
    dn_dsm_known_t *known; /**< by page * ranks + writer; takes memory only where there were notes */
    uint64_t slots;        /**< elements of known */
    uint32_t ranks;
    uint64_t stamp; /**< the last stamp that was given */
    uint64_t head;  /**< 1 + index of the newest note in the list; 0: the list is empty */
    uint64_t tail;  /**< 1 + index of the oldest note in the list; 0: the list is empty */
} dn_dsm_notes_t;

static inline uint64_t dn_dsm_note_interval(const dn_dsm_note_t *note)
{
    return ((uint64_t) note->interval_high << 32) | note->interval_low;
}

/** Begin without notes. @retval DN_ERR_NOMEM  there is nothing to close. */
dn_status_t dn_dsm_notes_open(dn_dsm_notes_t *notes, uint64_t pages, uint32_t ranks);
void dn_dsm_notes_close(dn_dsm_notes_t *notes);

/**
 * Take a note.
 * @param[in] from  The lock by which the note came; the note need not be told to that lock. Or DN_DSM_NOWHERE.
 * @return not 0: the note was new, and is in the list.
 */
int dn_dsm_notes_add(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval, uint32_t from);

/**
 * The newest interval of a page and a writer that is known; 0: none. Any thread.
 *
 * K1: pairs with K0 in dn_dsm_notes_know(): a PULL after this gets what the writer had sent home up to that interval.
 */
static inline uint64_t dn_dsm_notes_interval(const dn_dsm_notes_t *notes, uint32_t page, uint32_t writer)
{
    return dn_load_acquire(&notes->known[(uint64_t) page * notes->ranks + writer].interval);
}

/** Take a note that all processes know, too: it does not go into the list. @return not 0: the note was new. */
int dn_dsm_notes_know(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval);

/**
 * Get the notes that are newer than a stamp, without those that came by lock @p but. At most @p max notes are written.
 * @return how many such notes there are.
 */
uint64_t dn_dsm_notes_get(const dn_dsm_notes_t *notes, uint64_t since, uint32_t but, dn_dsm_note_t *note,
                          uint64_t max);

/** Take all notes out of the list that are not newer than a stamp. */
void dn_dsm_notes_forget(dn_dsm_notes_t *notes, uint64_t upto);

#endif
