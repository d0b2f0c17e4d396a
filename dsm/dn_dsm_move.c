/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_move.c
 * Homes that move to the one process that writes a page. A barrier tells all processes which process has written which pages since the last
 * barrier. So all processes decide alike, and nothing has to be told or copied for a move:
 *
 *   - If one process alone, which is not the home, has written a page in DN_DSM_MOVE_AFTER barriers in a row that tell of the page, that
 *     process becomes the home in the last of them. Barriers that do not tell of the page change nothing.
 *   - The new home has the whole content of the page. Since it fetched its copy, no other process has written the page; otherwise the copy
 *     would have been dropped. If it has dropped the copy for another reason, it fetches the page again before it tells of it.
 *   - All other processes drop their copies in that barrier, also the old home. So no other process has a copy, and the page is no longer
 *     shared: the new home does not notice its writes, until a barrier tells that the page was fetched.
 *   - From the barrier on, all processes fetch from the new home, and send there what they write. A process that leaves the barrier first
 *     finds the page there, since the new home had the whole content when it came to the barrier.
 *
 * The old home notices its own writes in time: a page that another process has fetched is shared from the next barrier on, and a move needs
 * more barriers than that.
 *
 * A write of another thread to such a page, while its process is in the barrier, would be lost, since the old home has no twin. So a program
 * with homes that move has no thread that touches the memory while another thread of its process is in a barrier. If the library finds such
 * a touch, it ends the process.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <stdlib.h>

/** Barriers after which a page moves. At least 2: in the first barrier the page may not be shared yet. */
#define DN_DSM_MOVE_AFTER 3u

/** The processes that have written a page. Under `sync`. */
struct dn_dsm_writer {
    uint16_t alone; /**< the rank that alone has written the page, if times is not 0 */
    uint8_t times;  /**< in so many barriers in a row that tell of the page */
    uint8_t now;    /**< writers of which the present barrier has told: 0, 1, or 2 for more */
    uint16_t which; /**< the first of these writers */
};

dn_status_t dn_dsm_move_open(dn_dsm_t *dsm)
{
    dsm->writer = calloc(dsm->pages, sizeof(*dsm->writer));
    dsm->told_of.page = malloc(dsm->pages * sizeof(*dsm->told_of.page));
    return NULL == dsm->writer || NULL == dsm->told_of.page ? DN_ERR_NOMEM : DN_OK;
}

/** Would one more barrier move the page to this process? */
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
