/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_host.h
 * Hosts: ranks that map one cache. The lowest rank of a host is its *keeper*: the other ranks map the keeper's cache in place of their own.
 * So when one rank fetches or writes a page, all ranks of the host have it. Ranks of other hosts PULL from the keeper, and PUSH to the
 * keeper, each page that is at home with any rank of the host. Where all ranks of a job are on one host, there is nothing else to do
 * (dn_dsm_t::shares). For a rank that is alone on its host, dn_dsm_int.h says all. The rest of this file is about a host of several ranks
 * in a job of several hosts.
 *
 * By rank and by host. Each process has page tables of its own. So each rank has its own front, and its own state of each page, as
 * dn_dsm_int.h describes them. Notes, locks and barriers belong to ranks. A host has the content of a page, its twin, and facts about
 * both in the *table*: a file in memory, which the keeper makes. A page that is at home with a rank of this host is at home in all of
 * its ranks: none of them fetches the page, or has a twin of it.
 *
 * Twins. A page differs from its twin exactly in the bytes that ranks of this host have written, and that no rank has sent yet. This
 * holds from the start, when both are zeros. So a rank that begins to write a page that is not at home here makes no twin. A rank that
 * changes a twin has taken the page, and keeps it until the PULL or PUSH has ended. Otherwise a PULL beside a PUSH could bring back the
 * home's old bytes, and the twin would hold them for the home's present bytes.
 *
 *   fetch   take the pages; PULL them into places in private memory; merge; note what the copy has; give the pages back
 *   send    take the pages, all of a release at once; copy the page to the twin; PUSH from the twin, until the bytes are at home; give
 *           the pages back
 *
 * Pages are taken in rising order. A rank that has taken pages waits for transfers only, and these need only progress at the other
 * end. So there is no deadlock. If a process dies with pages taken, the other ranks find it gone, and wait no longer.
 *
 * Merge. Other ranks may write the page meanwhile. A byte that equals the twin becomes the fetched byte; another byte stays. Then the twin
 * becomes the fetched bytes. Words are changed by a compare and swap, which fails if a byte of the word was changed since it was read. The
 * compare and swap does not see a write of the value that was there before. Such a byte becomes the home's value, and this is the same
 * value. For if the home had another value, another host would have written it. Either it wrote after this write: then the home's value
 * is right. Or it wrote before this write: then the writer here has had that value since its last acquire, or has a data race.
 *
 * Send. A PUSH also sends what other ranks of the host have written to these pages and not released. No rank may read this yet, and
 * nothing is lost: when these ranks release, they take the page after the PUSH has ended, find it equal to its twin, and note it. A rank
 * notes what it has written, no matter which rank has sent it. With a scan, a rank asks the kernel for its writes before it drops a copy.
 * A write of another thread may come between the two. So the rank notes the copy, too, if the copy differs from its twin when it is
 * dropped; or if another rank has sent the page since the question, as that rank may have sent this write. Writes before a send of this
 * rank are in the note of that send. A copy that differs when it is dropped may be under a merge by another rank just then. So the page is
 * taken, and compared again. A fetch by another rank is no send: it takes away nothing that was written here.
 *
 * What a copy has. For each page and rank the table keeps an interval: the copy contains what that rank has written up to there. It is the
 * interval that the fetching process knew (dn_dsm_note.h) before its PULL. If a copy has all that a process knows, the process
 * does not drop or fetch the page: one rank fetches, and the other ranks map. Two things are not known by notes:
 *
 *   - A home does not notice its writes to a page that is not shared (dn_dsm_int.h). A copy counts only if the process that fetched it
 *     knew that the page is shared.
 *   - After dn_dsm_acquire(), or when it is too far behind, a process has no notes of what it must see. So the table has a clock, which
 *     such a process pushes on: it takes only copies that were fetched later.
 *
 * Both are in dn_dsm_spot_t::since. All values that the table has of a copy only grow, as copies only get newer.
 *
 * Where homes move and there are several hosts, each rank has a cache of its own: then no rank shares a cache.
 */
#ifndef DN_DSM_HOST_H
#define DN_DSM_HOST_H

#include "dn_dsm_int.h"

/** @name Opening: dn_dsm_host.c */
/** @{ */
/** Make a table for other ranks to find. @param[out] offer  The caller sets its `cache`. */
void dn_dsm_host_offer(dn_dsm_t *dsm, dn_dsm_offer_t *offer);
/** Make a file in memory that other ranks find by an offer. @return its descriptor, or -1. */
int dn_dsm_host_file(const dn_dsm_offer_t *offer, const char *what, uint64_t bytes);
/** Map such a file. @return NULL: it cannot be mapped. */
void *dn_dsm_host_map(int file, uint64_t bytes);
/** Find the ranks of this host, and map the cache and the table that the keeper offers. All ranks have told their cards. Sets
 * dn_dsm_t::keeper, ::shares, ::raw and ::twin. */
dn_status_t dn_dsm_host_join(dn_dsm_t *dsm);
/** Give back what these functions took. Called also when they have failed. */
void dn_dsm_host_leave(dn_dsm_t *dsm);
/** @} */

/** @name Pages. Without a host of several ranks these do nothing, and no copy is here. */
/** @{ */
/** Is the page at home on this host? */
static inline bool dn_dsm_is_home(const dn_dsm_t *dsm, uint32_t page)
{
    return dsm->keeper[dsm->page[page].home] == dsm->keeper[dsm->rank];
}

/** Has the copy of this host all writes of which this process knows? `table` is held. */
bool dn_dsm_host_has(const dn_dsm_t *dsm, uint32_t page);
/** This process must see more than it has notes of: copies that are here now are too old for it. `table` is held. */
void dn_dsm_host_renew(dn_dsm_t *dsm);
/** Fetch pages, at most DN_DSM_FETCH in rising order, and merge them. Pages that another rank has fetched meanwhile are left out. */
dn_status_t dn_dsm_host_fetch(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** Take pages, in rising order, but for pages at home. @retval DN_ERR_UNREACH  a process is gone: no page is taken. */
dn_status_t dn_dsm_host_take(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** Give pages back that were taken. */
void dn_dsm_host_give(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** Note that this rank is about to send a page, which it has taken. `sync` is held. */
void dn_dsm_host_send(dn_dsm_t *dsm, uint32_t page);
/** With a scan: the kernel is about to be asked whether this process has written the page. `sync` is held. */
void dn_dsm_host_mark(dn_dsm_t *dsm, uint32_t page);
/** With a scan: has another rank sent the page since that question, and since the last send of this rank? `sync` is held. */
bool dn_dsm_host_has_sent(const dn_dsm_t *dsm, uint32_t page);
/** @} */

#endif
