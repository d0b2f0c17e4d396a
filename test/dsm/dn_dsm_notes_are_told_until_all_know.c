/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A note is new once, the newest come first, what came by a lock is not told to it, and what was forgotten stays known.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "dn_dsm_note.h"

#define PAGES 10u
#define RANKS 3u

static dn_dsm_notes_t notes;
static dn_dsm_note_t note[PAGES * RANKS];

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

int main(void)
{
    check(DN_OK == dn_dsm_notes_open(&notes, PAGES, RANKS), "there is memory");
    check(0 == dn_dsm_notes_get(&notes, 0, DN_DSM_NOWHERE, note, PAGES), "at first there is none");
    check(dn_dsm_notes_add(&notes, 4, 1, 7, DN_DSM_NOWHERE), "a note is new");
    check(!dn_dsm_notes_add(&notes, 4, 1, 7, DN_DSM_NOWHERE), "the same is not");
    check(!dn_dsm_notes_add(&notes, 4, 1, 6, DN_DSM_NOWHERE), "an older one is not");
    check(dn_dsm_notes_add(&notes, 4, 2, 1, 5), "another writer's is");
    const uint64_t before = notes.stamp;
    check(dn_dsm_notes_add(&notes, 9, 0, UINT64_C(5) << 32, DN_DSM_NOWHERE), "a large interval is, too");

    check(3 == dn_dsm_notes_get(&notes, 0, DN_DSM_NOWHERE, note, PAGES), "all are told");
    check(9 == note[0].page && 4 == note[2].page && 1 == note[2].writer, "the newest comes first");
    check(UINT64_C(5) << 32 == dn_dsm_note_interval(&note[0]), "its interval is whole");
    check(2 == dn_dsm_notes_get(&notes, 0, 5, note, PAGES), "what came by lock 5 is not told to it");
    check(1 == dn_dsm_notes_get(&notes, before, DN_DSM_NOWHERE, note, PAGES), "what is newer than a stamp");
    note[1].page = 77;
    check(3 == dn_dsm_notes_get(&notes, 0, DN_DSM_NOWHERE, note, 1) && 77 == note[1].page,
          "no more is written than fits");

    check(dn_dsm_notes_add(&notes, 4, 1, 8, DN_DSM_NOWHERE), "a newer one is new");
    check(3 == dn_dsm_notes_get(&notes, 0, DN_DSM_NOWHERE, note, PAGES) && 4 == note[0].page,
          "and takes the place of the old");
    dn_dsm_notes_forget(&notes, before);
    check(2 == dn_dsm_notes_get(&notes, 0, DN_DSM_NOWHERE, note, PAGES), "what a barrier told leaves");
    dn_dsm_notes_forget(&notes, notes.stamp);
    check(0 == notes.head && 0 == notes.tail, "the list is empty");
    check(!dn_dsm_notes_add(&notes, 4, 2, 1, 5), "what is forgotten is known");
    check(dn_dsm_notes_know(&notes, 4, 2, 2) && 0 == notes.head, "what all know is not listed");
    check(dn_dsm_notes_add(&notes, 4, 2, 3, 5) && 0 != notes.head, "and goes on from there");
    dn_dsm_notes_close(&notes);
    return 0;
}
