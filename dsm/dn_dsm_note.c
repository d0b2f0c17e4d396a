/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_note.c
 * Notes of written pages: see dn_dsm_note.h. */
#include "dn_config.h"

#include "dn_dsm_note.h"

#include <sys/mman.h>

dn_status_t dn_dsm_notes_open(dn_dsm_notes_t *notes, uint64_t pages, uint32_t ranks)
{
    *notes = (dn_dsm_notes_t){.slots = pages * ranks, .ranks = ranks};
    /* These are zeros. They take memory only where they are touched. */
    void *known = mmap(NULL, notes->slots * sizeof(*notes->known), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (MAP_FAILED == known) {
        return DN_ERR_NOMEM;
    }
    notes->known = known;
    return DN_OK;
}

void dn_dsm_notes_close(dn_dsm_notes_t *notes)
{
    if (NULL != notes->known) {
        munmap(notes->known, notes->slots * sizeof(*notes->known));
        notes->known = NULL;
    }
}

static void dn_dsm_notes_unlist(dn_dsm_notes_t *notes, dn_dsm_known_t *known)
{
    if (0 == known->stamp) {
        return;
    }
    if (0 != known->newer) {
        notes->known[known->newer - 1].older = known->older;
    } else {
        notes->head = known->older;
    }
    if (0 != known->older) {
        notes->known[known->older - 1].newer = known->newer;
    } else {
        notes->tail = known->newer;
    }
    known->stamp = 0;
}

int dn_dsm_notes_know(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval)
{
    dn_dsm_known_t *known = &notes->known[(uint64_t) page * notes->ranks + writer];

    if (interval <= known->interval) {
        return 0;
    }
    /* K0: pairs with K1 in dn_dsm_notes_interval(), by which another thread of this process reads it when it fetches the page. */
    dn_store_release(&known->interval, interval);
    return 1;
}

int dn_dsm_notes_add(dn_dsm_notes_t *notes, uint32_t page, uint32_t writer, uint64_t interval, uint32_t from)
{
    const uint64_t place = 1 + (uint64_t) page * notes->ranks + writer;
    dn_dsm_known_t *known = &notes->known[place - 1];

    if (!dn_dsm_notes_know(notes, page, writer, interval)) {
        return 0;
    }
    dn_dsm_notes_unlist(notes, known);
    known->from = from;
    known->stamp = ++notes->stamp;
    known->newer = 0;
    known->older = notes->head;
    if (0 != notes->head) {
        notes->known[notes->head - 1].newer = place;
    } else {
        notes->tail = place;
    }
    notes->head = place;
    return 1;
}

uint64_t dn_dsm_notes_get(const dn_dsm_notes_t *notes, uint64_t since, uint32_t but, dn_dsm_note_t *note,
                          uint64_t max)
{
    uint64_t count = 0;

    for (uint64_t place = notes->head; 0 != place; place = notes->known[place - 1].older) {
        const dn_dsm_known_t *known = &notes->known[place - 1];
        if (known->stamp <= since) {
            break;
        }
        if (DN_DSM_NOWHERE != but && but == known->from) {
            continue;
        }
        if (count < max) {
            note[count] = (dn_dsm_note_t){.page = (uint32_t) ((place - 1) / notes->ranks),
                                          .writer = (uint16_t) ((place - 1) % notes->ranks),
                                          .interval_high = (uint16_t) (known->interval >> 32),
                                          .interval_low = (uint32_t) known->interval};
        }
        count++;
    }
    return count;
}

void dn_dsm_notes_forget(dn_dsm_notes_t *notes, uint64_t upto)
{
    while (0 != notes->tail && notes->known[notes->tail - 1].stamp <= upto) {
        dn_dsm_notes_unlist(notes, &notes->known[notes->tail - 1]);
    }
}
