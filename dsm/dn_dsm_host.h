/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_host.h
 * Hosts: ranks that map one cache. The lowest of them is their *keeper*: the others map its cache in place of their own. So what one
 * of them fetches or writes all have, and the ranks of other hosts PULL from the keeper, and PUSH to it, what is at home with any of
 * them. Where all ranks of a job are one host, there is nothing else to do (dn_dsm_t::shares). A rank that is alone on its host keeps
 * to dn_dsm_int.h alone. The rest of this file is about hosts of several ranks beside others.
 *
 * What is by rank, what by host. Each process has page tables of its own, so each rank has its own front, and its own state of each page, as
 * dn_dsm_int.h has them. Notes, locks and barriers are of ranks. By host there is the content of a page, its twin, and what is known of
 * both, in the *table*: a file in memory, which the keeper makes. A page that is at home with a rank of this host is at home in all of
 * its ranks: none fetches it, or has a twin.
 *
 * Twins. A page differs from its twin in the bytes that ranks of this host have written and nobody has sent yet, and in no others. That
 * holds from the start, when both are zeros, so a rank that begins to write a page that is not at home here makes no twin. Who changes a twin has taken the page, and has it
 * until the PULL or PUSH has ended: a PULL beside a PUSH could bring back what the other end had before, and it would be taken for what
 * it has.
 *
 *   fetch   take the pages; PULL them into places in private memory; merge; write down what the copy has; give the pages back
 *   send    take the pages, all of a release at once; the twin becomes what the page is; PUSH from the twin, until it is at home; give the pages back
 *
 * Pages are taken in rising order. Who has taken some waits for nothing else but transfers, and these need only progress at the other
 * end. So there is no deadlock. A process that dies with pages taken is gone for the others, who wait no longer.
 *
 * Merge. Other ranks may write the page meanwhile. A byte that equals the twin becomes what was fetched, another one stays; then the twin is
 * what was fetched. Words are changed by a compare and swap, which fails where a byte of the word was changed since it was read. It
 * does not see a write of the value that was there before. Such a byte becomes what its home has, and that is the same value. For if the home had another one,
 * another host would have written it: after this write, and then it is right; or before it, and then the writer has had that value
 * here since its last acquire, or has a data race.
 *
 * Send. A PUSH takes along what other ranks of the host have written to these pages and not released. Nobody may read that yet, and
 * nothing is lost: when they release, they take the page after the PUSH has ended, find it equal to its twin, and note it. A rank notes
 * what it has written, whoever has sent it. With a scan, a rank asks the kernel for that before it drops a copy. A write of another
 * thread may come between. So the copy is noted, too, if it differs from its twin when it is dropped; or if another rank has sent the page since the
 * question, as that may have been what this thread wrote. What came before a send of this rank is in the note of that one.
 * A copy that differs as it is dropped may be one that another rank merges just then. So it is taken, and compared again. A fetch by
 * another rank is no send: it takes away nothing that was written here.
 *
 * What a copy has. By page and rank the table keeps the interval up to which the copy contains what that rank has written: what the process
 * that fetched it knew (dn_dsm_note.h) before its PULL. A copy that has all that a process knows is no reason to drop or fetch
 * anything there: one rank fetches, and the others map. Two things are not known by notes:
 *
 *   - A home does not notice its writes to a page that is not shared (dn_dsm_int.h). A copy counts from the first fetch on of a process
 *     that knew that the page is shared.
 *   - dn_dsm_acquire(), and who is too far behind, have no notes of what they see. So the table has a clock, which they push on: such a
 *     process takes only copies that were fetched later.
 *
 * Both are in dn_dsm_spot_t::since. All that the table says of a copy only grows, as copies only get newer.
 *
 * Where homes move and there are several hosts, each rank has a cache of its own: then no host has several ranks.
 */
#ifndef DN_DSM_HOST_H
#define DN_DSM_HOST_H

#include "dn_dsm_int.h"

/** @name Opening: dn_dsm_host.c */
/** @{ */
/** Make a table for others to find. @param[out] offer  Its `cache` is the caller's to set. */
void dn_dsm_host_offer(dn_dsm_t *dsm, dn_dsm_offer_t *offer);
/** Make a file in memory that others find by an offer. @return its descriptor, or -1. */
int dn_dsm_host_file(const dn_dsm_offer_t *offer, const char *what, uint64_t bytes);
/** Map it. @return NULL: it cannot be. */
void *dn_dsm_host_map(int file, uint64_t bytes);
/** All have told their cards. Find the ranks of this host, and map what their keeper offers: dn_dsm_t::keeper, ::shares, ::raw, ::twin. */
dn_status_t dn_dsm_host_join(dn_dsm_t *dsm);
/** Give back what these took. Also when they have failed. */
void dn_dsm_host_leave(dn_dsm_t *dsm);
/** @} */

/** @name Pages. Without a host of several ranks these do nothing, and no copy is here. */
/** @{ */
/** Is the page at home on this host? */
static inline bool dn_dsm_is_home(const dn_dsm_t *dsm, uint32_t page)
{
    return dsm->keeper[dsm->page[page].home] == dsm->keeper[dsm->rank];
}

/** Is there a copy that has all that this process knows of? `table` is held. */
bool dn_dsm_host_has(const dn_dsm_t *dsm, uint32_t page);
/** More was seen than there are notes of: copies that are here now do not do. `table` is held. */
void dn_dsm_host_renew(dn_dsm_t *dsm);
/** Fetch pages, at most DN_DSM_FETCH in rising order, and merge them; but for those that another rank has fetched meanwhile. */
dn_status_t dn_dsm_host_fetch(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** Take pages, in rising order, but for those at home. @retval DN_ERR_UNREACH  a process is gone: none is taken. */
dn_status_t dn_dsm_host_take(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** Give them back. */
void dn_dsm_host_give(dn_dsm_t *dsm, const uint32_t *page, uint32_t count);
/** A page that is taken is to be sent, and then noted. `sync` is held. */
void dn_dsm_host_send(dn_dsm_t *dsm, uint32_t page);
/** With a scan: the kernel is about to be asked whether this process has written the page. `sync` is held. */
void dn_dsm_host_mark(dn_dsm_t *dsm, uint32_t page);
/** With a scan: has another rank sent it since, and since this one did? `sync` is held. */
bool dn_dsm_host_has_sent(const dn_dsm_t *dsm, uint32_t page);
/** @} */

#endif
