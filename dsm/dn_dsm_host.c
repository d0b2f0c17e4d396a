/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_host.c
 * Ranks that have one cache: see dn_dsm_host.h.
 *
 * A rank finds the files that another rank offers in /proc, by process number and descriptor. The name of a file contains a random
 * number, so a file with that name is the offered file. If the file is not there, each rank keeps its own cache: the other rank is on
 * another host or in another container, or this rank has no right to look.
 */
#include "dn_config.h"

#include "dn_dsm_host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_dsm_diff.h"

/** The most intervals that are kept while pages are fetched: those of 8 pages if there are DN_DSM_RANKS_MAX ranks. They are on the stack,
 * also of a signal handler, which fetches one page. */
#define DN_DSM_HOST_KNOWN (8u * DN_DSM_RANKS_MAX)

/** @name Opening */
/** @{ */
static uint64_t dn_dsm_host_table_bytes(const dn_dsm_t *dsm)
{
    return dn_dsm_bytes(dsm) + dsm->page_bytes
           + dsm->pages * (sizeof(dn_dsm_spot_t) + dsm->ranks * sizeof(uint64_t));
}

static void dn_dsm_host_name(const dn_dsm_offer_t *offer, const char *what, char name[64])
{
    snprintf(name, 64, "dimmnet %s %016" PRIx64, what, offer->nonce);
}

int dn_dsm_host_file(const dn_dsm_offer_t *offer, const char *what, uint64_t bytes)
{
    char name[64];

    dn_dsm_host_name(offer, what, name);
    const int file = memfd_create(name, MFD_CLOEXEC);
    if (0 <= file && 0 != ftruncate(file, (off_t) bytes)) {
        close(file);
        return -1;
    }
    return file;
}

void *dn_dsm_host_map(int file, uint64_t bytes)
{
    void *memory = 0 > file ? MAP_FAILED
                            : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);

    return MAP_FAILED == memory ? NULL : memory;
}

void dn_dsm_host_offer(dn_dsm_t *dsm, dn_dsm_offer_t *offer)
{
    *offer =
        (dn_dsm_offer_t){.os_pid = (uint32_t) getpid(), .table = -1, .cache = -1, .together = dsm->together};
    if (1 < dsm->ranks && 1 < dsm->together
        && sizeof(offer->nonce) == getrandom(&offer->nonce, sizeof(offer->nonce), 0)) {
        /* If there is no table, this rank shares a cache only if all ranks share one. */
        offer->table = dn_dsm_host_file(offer, "table", dn_dsm_host_table_bytes(dsm));
    }
}

/** Map a file that another process offers. @return NULL: the file is not found, or cannot be mapped. */
static void *dn_dsm_host_find(const dn_dsm_offer_t *offer, int32_t fd, const char *what, uint64_t bytes)
{
    char path[64], name[64], wanted[100], found[100];
    struct stat about;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd/%" PRId32, offer->os_pid, fd);
    dn_dsm_host_name(offer, what, name);
    const int len = snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
    if (len != readlink(path, found, sizeof(found)) || 0 != memcmp(found, wanted, (size_t) len)) {
        return NULL;
    }
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (0 > file) {
        return NULL;
    }
    const bool whole = 0 == fstat(file, &about) && (uint64_t) about.st_size >= bytes;
    void *memory = whole ? dn_dsm_host_map(file, bytes) : NULL;
    close(file);
    return memory;
}

/** Try to map the table and the cache that a rank below this one offers. @param[out] raw_p  Its cache. @return whether it is mapped. */
static bool dn_dsm_host_reach(dn_dsm_t *dsm, uint32_t rank, uint8_t **raw_p)
{
    const dn_dsm_card_t *card = &dsm->card[rank];
    const dn_dsm_offer_t *offer = &card->offer;
    dn_dsm_host_t *host = &dsm->host;
    void *raw = NULL;

    /* Both ranks take the smaller setting of the two, so they decide alike. */
    const uint32_t together = offer->together < dsm->together ? offer->together : dsm->together;
    if (0 == together || rank / together != dsm->rank / together) {
        return false;
    }
    host->table = dn_dsm_host_find(offer, offer->table, "table", dn_dsm_host_table_bytes(dsm));
    if (0 <= offer->cache) {
        raw = host->cache = dn_dsm_host_find(offer, offer->cache, "cache", dn_dsm_bytes(dsm));
    } else if (DN_OK != dn_segment_map(dsm->peer[rank], &card->cache, &raw)) {
        raw = NULL;
    }
    *raw_p = raw;
    return NULL != raw;
}

/** Does this rank share its cache with other ranks? */
static bool dn_dsm_host_is_full(const dn_dsm_t *dsm)
{
    uint32_t ranks = 0;

    for (uint32_t r = 0; r < dsm->ranks; r++) {
        ranks += dsm->keeper[r] == dsm->keeper[dsm->rank];
    }
    return 1 < ranks;
}

/** What a rank tells of the cache that it has mapped. */
typedef struct dn_dsm_found {
    uint16_t first; /**< the rank whose cache it is: this rank, or a lower one */
    uint16_t table; /**< not 0: this rank has mapped the table of that rank, too */
} dn_dsm_found_t;

/** Tell what this rank has mapped, and hear the others. Sets dn_dsm_t::keeper and ::shares. */
static dn_status_t dn_dsm_host_agree(dn_dsm_t *dsm, const dn_dsm_found_t *own)
{
    dn_dsm_found_t found[DN_DSM_RANKS_MAX] = {0};
    dn_status_t status = dn_dsm_meet_all(dsm, "share", own, sizeof(*own));

    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        size_t len = sizeof(found[r]);
        status = dsm->meet->hear(dsm, r, "share", &found[r], &len);
        if (sizeof(found[r]) != len || found[r].first >= dsm->ranks) {
            /* A peer has told nonsense: it counts as alone. */
            found[r] = (dn_dsm_found_t){.first = (uint16_t) r};
        }
    }
    dsm->shares = DN_OK == status && 1 < dsm->together;
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        dsm->keeper[r] = (uint16_t) r;
        dsm->shares = dsm->shares && 0 == found[r].first;
    }
    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        const uint16_t first = found[r].first;
        /* If the owner of a cache uses another cache itself, a rank that has mapped the first one is alone. */
        if (dsm->shares || (0 != found[r].table && found[first].first == first && !dsm->moves)) {
            dsm->keeper[r] = first;
        }
    }
    return status;
}

/** Set up dn_dsm_t::host, with the table. */
static dn_status_t dn_dsm_host_begin(dn_dsm_t *dsm)
{
    dn_dsm_host_t *host = &dsm->host;

    if (NULL == host->table) {
        host->table = dn_dsm_host_map(dsm->card[dsm->rank].offer.table, dn_dsm_host_table_bytes(dsm));
    }
    if (NULL != dsm->watch.way->scan) {
        host->marked = calloc(dsm->pages, sizeof(*host->marked));
    }
    if (NULL == host->table || (NULL != dsm->watch.way->scan && NULL == host->marked)) {
        dn_log_error("shared memory: there is no memory for what the processes of a host know of %u pages",
                     (unsigned) dsm->pages);
        return DN_ERR_NOMEM;
    }
    uint8_t *head = host->table + dn_dsm_bytes(dsm);
    host->clock = (uint64_t *) head;
    host->spot = (dn_dsm_spot_t *) (head + dsm->page_bytes);
    host->within = (uint64_t *) (host->spot + dsm->pages);
    host->wanted = 1;
    host->free = DN_DSM_FETCH <= dsm->pages ? UINT64_MAX : (UINT64_C(1) << dsm->pages) - 1;
    dsm->twin = host->table;
    return DN_OK;
}

/** Unmap the table. */
static void dn_dsm_host_drop_table(dn_dsm_t *dsm)
{
    if (NULL != dsm->host.table) {
        munmap(dsm->host.table, dn_dsm_host_table_bytes(dsm));
    }
    dsm->host.table = NULL;
}

/** Unmap the table and the keeper's cache. */
static void dn_dsm_host_drop(dn_dsm_t *dsm)
{
    dn_dsm_host_drop_table(dsm);
    if (NULL != dsm->host.cache) {
        munmap(dsm->host.cache, dn_dsm_bytes(dsm));
    }
    dsm->host.cache = NULL;
}

/** Close the offered files. All ranks have opened what they use. */
static void dn_dsm_host_shut(dn_dsm_offer_t *offer)
{
    int32_t *const fd[2] = {&offer->table, &offer->cache};

    for (int i = 0; i < 2; i++) {
        if (0 != offer->os_pid && 0 <= *fd[i]) {
            close(*fd[i]);
            *fd[i] = -1;
        }
    }
}

dn_status_t dn_dsm_host_join(dn_dsm_t *dsm)
{
    dn_dsm_found_t found = {.first = (uint16_t) dsm->rank};
    uint8_t *raw = dsm->raw;

    for (uint16_t r = 0; r < dsm->rank && found.first == dsm->rank; r++) {
        if (dn_dsm_host_reach(dsm, r, &raw)) {
            found = (dn_dsm_found_t){.first = r, .table = NULL != dsm->host.table};
        } else {
            dn_dsm_host_drop(dsm);
        }
    }
    dn_status_t status = dn_dsm_host_agree(dsm, &found);
    if (DN_OK == status && dn_dsm_host_is_full(dsm)) {
        dsm->raw = found.first == dsm->rank ? dsm->raw : raw;
        if (dsm->shares) {
            /* Nothing is fetched or sent: no table is needed. */
            dn_dsm_host_drop_table(dsm);
        } else {
            status = dn_dsm_host_begin(dsm);
        }
    } else {
        dn_dsm_host_drop(dsm);
    }
    dn_dsm_host_shut(&dsm->card[dsm->rank].offer);
    return status;
}

void dn_dsm_host_leave(dn_dsm_t *dsm)
{
    dn_dsm_host_drop(dsm);
    free(dsm->host.marked);
    if (NULL != dsm->card) {
        dn_dsm_host_shut(&dsm->card[dsm->rank].offer);
    }
}
/** @} */

/** @name What a copy has */
/** @{ */
bool dn_dsm_host_has(const dn_dsm_t *dsm, uint32_t page)
{
    const dn_dsm_host_t *host = &dsm->host;

    /* H1: pairs with H0 in dn_dsm_host_note(): the copy has the bytes that the table says. */
    if (NULL == host->spot || dn_load_acquire(&host->spot[page].since) < host->wanted) {
        return false;
    }
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        /* H1. Ranks of this host are left out: the copy has what they write at once. */
        if (dsm->keeper[r] != dsm->keeper[dsm->rank]
            && dn_load_acquire(&host->within[(uint64_t) page * dsm->ranks + r])
                   < dn_dsm_notes_interval(&dsm->notes, page, r)) {
            return false;
        }
    }
    return true;
}

void dn_dsm_host_renew(dn_dsm_t *dsm)
{
    dn_dsm_host_t *host = &dsm->host;

    if (NULL != host->spot) {
        /* C0: pairs with C1: a thread that finds this number or a later one does its PULL after this, and after all that comes before. */
        host->wanted = dn_fetch_add_acq_rel(host->clock, 1) + 2;
    }
}

/** Note what the copy of a page has: the page was fetched and merged, and is taken. @param[in] since  1 + the clock before the PULL; 0: the
 * page was not known to be shared. @param[in] known  By rank: intervals before the PULL. */
static void dn_dsm_host_note(dn_dsm_t *dsm, uint32_t page, uint64_t since, const uint64_t *known)
{
    dn_dsm_spot_t *spot = &dsm->host.spot[page];
    uint64_t *within = &dsm->host.within[(uint64_t) page * dsm->ranks];

    for (uint32_t r = 0; r < dsm->ranks; r++) {
        if (dn_load_relaxed(&within[r]) < known[r]) {
            dn_store_release(&within[r], known[r]); /* H0: after the bytes of the copy */
        }
    }
    if (dn_load_relaxed(&spot->since) < since) {
        dn_store_release(&spot->since, since); /* H0 */
    }
}
/** @} */

/** @name Transfers */
/** @{ */
dn_status_t dn_dsm_host_take(dn_dsm_t *dsm, const uint32_t *page, uint32_t count)
{
    for (uint32_t i = 0; NULL != dsm->host.spot && i < count; i++) {
        dn_wait_t wait = {0};
        /* T1: pairs with T0: this rank finds the twin as the rank before has left it. */
        while (!dn_dsm_is_home(dsm, page[i])
               && !dn_cas_acq_rel_u32(&dsm->host.spot[page[i]].taken, DN_DSM_FREE, DN_DSM_TAKEN)) {
            const dn_status_t status = dn_dsm_wait(dsm, &wait, DN_WAIT_BLIND);
            if (DN_OK != status) {
                dn_dsm_host_give(dsm, page, i);
                return status;
            }
        }
    }
    return DN_OK;
}

void dn_dsm_host_give(dn_dsm_t *dsm, const uint32_t *page, uint32_t count)
{
    for (uint32_t i = 0; NULL != dsm->host.spot && i < count; i++) {
        if (!dn_dsm_is_home(dsm, page[i])) {
            dn_store_release_u32(&dsm->host.spot[page[i]].taken, DN_DSM_FREE); /* T0 */
        }
    }
}

_Static_assert(64 == DN_DSM_FETCH, "dn_dsm_host_t::free has a bit for each place");

/** Take the first free place. So the first places are used again and again, and few pages of memory are needed. `table` is held. */
static uint32_t dn_dsm_host_take_place(dn_dsm_host_t *host)
{
    const uint32_t place = (uint32_t) __builtin_ctzll(host->free);

    host->free &= host->free - 1;
    return place;
}

static void dn_dsm_host_give_places(dn_dsm_t *dsm, uint32_t count, const uint32_t *place)
{
    pthread_mutex_lock(&dsm->table);
    for (uint32_t i = 0; i < count; i++) {
        dsm->host.free |= UINT64_C(1) << place[i];
    }
    pthread_mutex_unlock(&dsm->table);
}

/** Pages that a thread has taken and fetches. */
typedef struct dn_dsm_fetch {
    uint32_t count;
    uint32_t page[DN_DSM_FETCH];       /**< numbers of count pages */
    uint32_t place[DN_DSM_FETCH];      /**< their places in dn_dsm_t::beside */
    uint64_t since[DN_DSM_FETCH];      /**< for dn_dsm_host_note() */
    uint64_t known[DN_DSM_HOST_KNOWN]; /**< ranks intervals for each page, for dn_dsm_host_note() */
} dn_dsm_fetch_t;

/** Find which of these pages have to be fetched, and take places for them. The pages are taken. @return how many pages were looked at: fewer
 * than @p count if no place was free. */
static uint32_t dn_dsm_host_look(dn_dsm_t *dsm, const uint32_t *page, uint32_t count, dn_dsm_fetch_t *fetch)
{
    uint32_t i = 0;

    pthread_mutex_lock(&dsm->table);
    fetch->count = 0;
    /* C1: pairs with C0 in dn_dsm_host_renew(). */
    const uint64_t now = 1 + dn_load_acquire(dsm->host.clock);
    for (; i < count; i++) {
        if (dn_dsm_host_has(dsm, page[i])) {
            continue;
        }
        if (0 == dsm->host.free) {
            break;
        }
        const uint32_t some = fetch->count++;
        fetch->since[some] = 0 != (dsm->page[page[i]].flags & DN_DSM_SHARED) ? now : 0;
        for (uint32_t r = 0; r < dsm->ranks; r++) {
            fetch->known[some * dsm->ranks + r] = dn_dsm_notes_interval(&dsm->notes, page[i], r);
        }
        fetch->page[some] = page[i];
        fetch->place[some] = dn_dsm_host_take_place(&dsm->host);
    }
    pthread_mutex_unlock(&dsm->table);
    return i;
}

/** Fetch pages to their places, and merge them into the copies. Give the places back. */
static dn_status_t dn_dsm_host_bring(dn_dsm_t *dsm, const dn_dsm_fetch_t *fetch)
{
    dn_status_t status = DN_OK;

    if (0 < fetch->count) {
        status = dn_dsm_page_pull(dsm, dsm->beside, fetch->place, fetch->page, fetch->count);
    }
    for (uint32_t i = 0; i < fetch->count && DN_OK == status; i++) {
        const uint64_t at = (uint64_t) fetch->page[i] * dsm->page_bytes;
        const uint8_t *fresh = dsm->beside + (uint64_t) fetch->place[i] * dsm->page_bytes;
        dn_dsm_merge(dsm->raw + at, dsm->twin + at, fresh, dsm->page_bytes);
        dn_dsm_host_note(dsm, fetch->page[i], fetch->since[i], fetch->known + i * dsm->ranks);
    }
    dn_dsm_host_give_places(dsm, fetch->count, fetch->place);
    return status;
}

/** dn_dsm_host_fetch() of so few pages that their intervals have room on the stack. */
static dn_status_t dn_dsm_host_fetch_few(dn_dsm_t *dsm, const uint32_t *page, uint32_t count)
{
    dn_dsm_fetch_t fetch;
    dn_wait_t wait = {0};
    dn_status_t status = dn_dsm_host_take(dsm, page, count);

    if (DN_OK != status) {
        return status;
    }
    for (uint32_t i = 0; i < count && DN_OK == status;) {
        const uint32_t looked = dn_dsm_host_look(dsm, page + i, count - i, &fetch);
        if (0 != looked) {
            status = dn_dsm_host_bring(dsm, &fetch);
            dn_wait_restart(&wait);
        } else {
            /* Wait for a place, also when a process is gone. A thread that has places has taken its pages, and waits for transfers only,
             * so it goes on. */
            (void) dn_dsm_wait(dsm, &wait, 0);
        }
        i += looked;
    }
    dn_dsm_host_give(dsm, page, count);
    return status;
}

dn_status_t dn_dsm_host_fetch(dn_dsm_t *dsm, const uint32_t *page, uint32_t count)
{
    const uint32_t most =
        DN_DSM_HOST_KNOWN / dsm->ranks < DN_DSM_FETCH ? DN_DSM_HOST_KNOWN / dsm->ranks : DN_DSM_FETCH;
    dn_status_t status = DN_OK;

    for (uint32_t i = 0; i < count && DN_OK == status; i += most) {
        status = dn_dsm_host_fetch_few(dsm, page + i, count - i < most ? count - i : most);
    }
    return status;
}
/** @} */

/** @name Notes of copies that are dropped, with a scan */
/** @{ */
void dn_dsm_host_send(dn_dsm_t *dsm, uint32_t page)
{
    if (NULL != dsm->host.spot) {
        dn_store_relaxed_u32(&dsm->host.spot[page].taken, DN_DSM_SENT);
        /* S0: pairs with S2: a rank that finds this number finds the page SENT, unless the send has ended. */
        const uint32_t before = dn_fetch_add_acq_rel(&dsm->host.spot[page].sent, 1);
        if (NULL != dsm->host.marked) {
            /* This process notes the page when this send has ended. The note counts for earlier sends of other ranks, too. */
            dsm->host.marked[page] = before + 1;
        }
        /* S1: pairs with S3: a rank that finds the twin changed by this send finds the number changed, too. */
        dn_fence_release();
    }
}

void dn_dsm_host_mark(dn_dsm_t *dsm, uint32_t page)
{
    if (NULL != dsm->host.marked) {
        const dn_dsm_spot_t *spot = &dsm->host.spot[page];
        const uint32_t sent = dn_load_acquire_u32(&spot->sent); /* S2 */

        /* A send that is under way may still take what is written from now on. So it counts as a send that comes later. */
        dsm->host.marked[page] = sent - (DN_DSM_SENT == dn_load_acquire_u32(&spot->taken));
    }
}

bool dn_dsm_host_has_sent(const dn_dsm_t *dsm, uint32_t page)
{
    if (NULL == dsm->host.marked) {
        return false;
    }
    dn_fence_acquire(); /* S3 */
    return dsm->host.marked[page] != dn_load_relaxed_u32(&dsm->host.spot[page].sent);
}
/** @} */
