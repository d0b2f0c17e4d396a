/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_move.c
 * Homes that move to the one process that writes a page. A barrier tells all processes who has written which pages since the last one, so
 * all come to the same decision, and nothing has to be told or copied for it:
 *
 *   - Where one process alone, which is not the home, has written a page in DN_DSM_MOVE_AFTER barriers that tell of the page, it becomes the
 *     home in the last of them. Barriers that do not tell of the page change nothing.
 *   - The new home has all of the page: since it fetched its copy only it has written the page, or that copy would have been dropped. If it
 *     has dropped the copy for another reason, it fetches it before it tells of the page.
 *   - All others drop their copies in that barrier, the old home too. So nobody has a copy, and the page is no longer shared: its new
 *     home writes it without noticing, until a barrier tells that it was fetched.
 *   - From the barrier on all fetch from the new home, and send there what they write. Who leaves first finds the page there, since its memory
 *     was complete when the new home came.
 *
 * The old home notices what it writes itself: a page that another process has fetched is shared from the next barrier on, and more barriers than
 * that are needed.
 *
 * A write of another thread to such a page while its process is in the barrier would be lost, since the old home has no twin. So who asks for
 * this has no thread that touches the memory while another is in a barrier. What is found to break this ends the process.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <stdlib.h>

/** Barriers. At least 2: in the first one the page may not be shared yet. */
#define DN_DSM_MOVE_AFTER 3u

/** Who has written a page; under `sync`. */
struct dn_dsm_writer {
    uint16_t alone; /**< the process that alone has written it, in */
    uint8_t times;  /**< barriers in a row that tell of it; 0: there is none */
    uint8_t now;    /**< writers of which this barrier has told: 0, 1, or 2 for more */
    uint16_t which; /**< the first of them */
};

dn_status_t dn_dsm_move_open(dn_dsm_t *dsm)
{
    dsm->writer = calloc(dsm->pages, sizeof(*dsm->writer));
    dsm->told_of.page = malloc(dsm->pages * sizeof(*dsm->told_of.page));
    return NULL == dsm->writer || NULL == dsm->told_of.page ? DN_ERR_NOMEM : DN_OK;
}

/** Would one more barrier move it to this process? */
static bool dn_dsm_move_is_near(const dn_dsm_t *dsm, uint32_t page)
{
    const dn_dsm_writer_t *writer = &dsm->writer[page];

    return writer->alone == dsm->rank && writer->times + 1u >= DN_DSM_MOVE_AFTER;
}

dn_status_t dn_dsm_move_prepare(dn_dsm_t *dsm)
{
    dn_status_t status = DN_OK;

    for (uint32_t i = 0; NULL != dsm->writer && i < dsm->wrote.count && DN_OK == status; i++) {
        const uint32_t page = dsm->wrote.page[i];
        if (dsm->rank != dsm->page[page].home && dn_dsm_move_is_near(dsm, page)) {
            status = dn_dsm_page_need(dsm, page, 1, false);
        }
    }
    return status;
}

void dn_dsm_move_hear(dn_dsm_t *dsm, uint32_t page, uint32_t rank)
{
    if (NULL == dsm->writer) {
        return;
    }
    dn_dsm_writer_t *writer = &dsm->writer[page];
    if (0 == writer->now) {
        dsm->told_of.page[dsm->told_of.count++] = page;
        writer->which = (uint16_t) rank;
    }
    writer->now = (uint8_t) (0 == writer->now || writer->which == rank ? 1 : 2);
}

void dn_dsm_move_homes(dn_dsm_t *dsm)
{
    for (uint32_t i = 0; i < dsm->told_of.count; i++) {
        const uint32_t page = dsm->told_of.page[i];
        dn_dsm_writer_t *writer = &dsm->writer[page];
        if (1 != writer->now || dsm->page[page].home == writer->which) {
            writer->times = 0;
        } else if (0 < writer->times && writer->alone == writer->which) {
            writer->times++;
        } else {
            writer->alone = writer->which;
            writer->times = 1;
        }
        writer->now = 0;
        if (DN_DSM_MOVE_AFTER == writer->times) {
            dn_dsm_page_move(dsm, page, writer->alone);
            writer->times = 0;
        }
    }
    dsm->told_of.count = 0;
}
