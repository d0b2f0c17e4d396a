/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_tell.c
 * How notices are told and heard, but for those of locks and barriers.
 *
 * With an eager protocol, a process that releases puts its notes into a ring at every other process. It does so by a PUSH, whose
 * status word counts the notes, and waits until all PUSHes have ended. So a process that comes after the release finds the notes in its own
 * memory. A PUSH has at most half of a ring. It overwrites only notes that are older than those which a reader takes. A reader that is
 * further behind takes no notes.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <string.h>

/** The most notes of one PUSH: half of a ring. */
#define DN_DSM_HALF (DN_DSM_LOG / 2)

void dn_dsm_hear(dn_dsm_t *dsm, const dn_dsm_note_t *note, uint64_t count, uint32_t from)
{
    for (uint64_t i = 0; i < count; i++) {
        /* The note comes from a peer: a wrong one is left out, and a note of this process, too. */
        if (note[i].page >= dn_dsm_used(dsm) || note[i].writer >= dsm->ranks || dsm->rank == note[i].writer) {
            continue;
        }
        const uint64_t interval = dn_dsm_note_interval(&note[i]);
        /* With an eager protocol, the writer tells all processes: notes that were heard are not passed on. */
        if (dn_dsm_is_eager(dsm)
                ? dn_dsm_notes_know(&dsm->notes, note[i].page, note[i].writer, interval)
                : dn_dsm_notes_add(&dsm->notes, note[i].page, note[i].writer, interval, from)) {
            dn_dsm_count(&dsm->stat.notices, 1);
            dn_dsm_page_stale(dsm, note[i].page);
        }
    }
}

void dn_dsm_hear_rings(dn_dsm_t *dsm)
{
    dn_dsm_note_t note[DN_DSM_HALF];

    for (uint32_t r = 0; r < dsm->ranks; r++) {
        /* Pairs with the status word of the PUSH in dn_dsm_tell_rings(), which is stored after the notes. */
        const uint64_t count = dn_load_acquire(&dsm->counts[r]);
        const uint64_t behind = count - dsm->heard[r];
        if (r == dsm->rank || 0 == behind) {
            continue;
        }
        for (uint64_t i = 0; behind <= DN_DSM_HALF && i < behind; i++) {
            note[i] = dsm->rings[r].log[(dsm->heard[r] + i) % DN_DSM_LOG];
        }
        /* The fence keeps the loads of the notes before the second load of the count. */
        dn_fence_acquire();
        if (dn_load_acquire(&dsm->counts[r]) - dsm->heard[r] <= DN_DSM_HALF) {
            dn_dsm_hear(dsm, note, behind, DN_DSM_NOWHERE);
        } else {
            dn_dsm_page_all_stale(dsm);
        }
        dsm->heard[r] = count;
    }
}

/** Put the notes of what this process has written into the rings of all other processes. `sync` is held. */
static dn_status_t dn_dsm_tell_rings(dn_dsm_t *dsm)
{
    dn_dsm_op_t op[DN_DSM_RANKS_MAX] = {0};
    uint64_t count = dn_dsm_notes_get(&dsm->notes, 0, DN_DSM_NOWHERE, dsm->out, DN_DSM_HALF);
    dn_status_t status = DN_OK;

    if (0 == count) {
        return DN_OK;
    }
    const uint64_t began = dn_dsm_clock();
    dn_dsm_notes_forget(&dsm->notes, dsm->notes.stamp);
    const uint64_t at = dsm->told % DN_DSM_LOG;
    dsm->told += DN_DSM_HALF < count ? DN_DSM_LOG : count;
    /* Too many notes: the others find by the count alone that they have to drop all copies. */
    count = DN_DSM_HALF < count ? 0 : count;
    const uint64_t first = at + count <= DN_DSM_LOG ? count : DN_DSM_LOG - at;
    const dn_block_t block[2] = {{.at = at * sizeof(dn_dsm_note_t), .len = first * sizeof(dn_dsm_note_t)},
                                 {.at = 0, .len = (count - first) * sizeof(dn_dsm_note_t)}};
    const dn_sg_t sg = {.block = block, .count = 2};
    /* The last PUSH has ended, and its count is stored. The fence keeps that store before the stores of the notes below. So a reader that
     * reads one of these notes finds that count, or a later one, after its own fence. */
    dn_fence_release();
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        if (r == dsm->rank) {
            continue;
        }
        dn_xfer_t xfer = {.local = dsm->out,
                          .key = &dsm->card[r].desk,
                          .roff = dsm->card[r].rings + dsm->rank * sizeof(dn_dsm_ring_t),
                          .remote_sg = &sg,
                          .len = count * sizeof(dn_dsm_note_t),
                          .flags = DN_XFER_STATUS_REMOTE,
                          .remote_status = dsm->card[r].counts + dsm->rank * sizeof(uint64_t),
                          .remote_value = dsm->told};
        dn_dsm_op_start(&op[r], dsm->port, dsm->peer[r], &xfer, true);
    }
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        const dn_status_t ended = dn_dsm_end(dsm, &op[r]);
        status = DN_OK != ended ? ended : status;
    }
    dn_dsm_count(&dsm->stat.release_ns, dn_dsm_clock() - began);
    return status;
}

void dn_dsm_blind_set(dn_dsm_t *dsm, uint32_t by)
{
    dn_dsm_blind_t *blind = &dsm->blind;

    blind->other = by == blind->by ? blind->other : blind->stamp;
    blind->by = by;
    blind->stamp = ++dsm->notes.stamp;
}

dn_status_t dn_dsm_tell_release(dn_dsm_t *dsm)
{
    dn_status_t status = dn_dsm_page_release(dsm);

    if (DN_OK == status && dn_dsm_is_eager(dsm)) {
        status = dn_dsm_tell_rings(dsm);
    }
    return status;
}
