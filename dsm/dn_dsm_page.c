/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_page.c
 * The life of pages: see dn_dsm_int.h. */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_dsm_diff.h"
#include "dn_dsm_host.h"

/** A scan goes on over at most so many pages that are not held, to reach the next held page. So many pages take as long as another call. */
#define DN_DSM_GAP 256u

/** @name States, and what they permit */
/** @{ */
/** Is there a scan? Then writes to CLEAN pages raise no signal, and the scan finds them. */
static bool dn_dsm_page_scans(const dn_dsm_t *dsm)
{
    return NULL != dsm->watch.way->scan;
}

static void dn_dsm_page_set(dn_dsm_t *dsm, uint32_t page, dn_dsm_state_t state)
{
    const uint64_t bit = UINT64_C(1) << page % 64;

    dsm->page[page].state = (uint8_t) state;
    dsm->held[page / 64] =
        (dsm->held[page / 64] & ~bit) | (DN_DSM_ABSENT != state && DN_DSM_OWN != state ? bit : 0);
}

static dn_dsm_access_t dn_dsm_page_permits(const dn_dsm_page_t *page)
{
    switch (page->state) {
    case DN_DSM_CLEAN:
    case DN_DSM_FLUSHING:
        return DN_DSM_READ;
    case DN_DSM_DIRTY:
    case DN_DSM_OWN:
        return DN_DSM_WRITE;
    default:
        return DN_DSM_NONE;
    }
}
/** @} */

/** @name Fetching */
/** @{ */
/** Pages were fetched or sent: wake threads of this process that wait for this. `table` is not held. */
static void dn_dsm_page_ring(dn_dsm_t *dsm)
{
    dn_wake(dsm->peer[dsm->rank]);
}

/** Add a page to a list of blocks. */
static void dn_dsm_page_block(const dn_dsm_t *dsm, dn_block_t *block, size_t *blocks, uint32_t page)
{
    const uint64_t at = (uint64_t) page * dsm->page_bytes;

    if (0 == *blocks || at != block[*blocks - 1].at + block[*blocks - 1].len) {
        block[(*blocks)++] = (dn_block_t){.at = at};
    }
    block[*blocks - 1].len += dsm->page_bytes;
}

dn_status_t dn_dsm_page_pull(dn_dsm_t *dsm, uint8_t *to, const uint32_t *place, const uint32_t *page,
                             uint32_t count)
{
    dn_dsm_op_t op[DN_DSM_RANKS_MAX];
    dn_block_t here[DN_DSM_FETCH], there[DN_DSM_FETCH];
    dn_status_t status = DN_OK;

    for (uint32_t keeper = 0; keeper < dsm->ranks; keeper++) {
        dn_sg_t local = {.block = here}, remote = {.block = there};
        uint64_t len = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (keeper == dsm->keeper[dsm->page[page[i]].home]) {
                dn_dsm_page_block(dsm, here, &local.count, place[i]);
                dn_dsm_page_block(dsm, there, &remote.count, page[i]);
                len += dsm->page_bytes;
            }
        }
        op[keeper] = (dn_dsm_op_t){.status = DN_OK};
        if (0 < len) {
            dn_xfer_t xfer = {.local = to, .key = &dsm->card[keeper].cache, .len = len};
            if (1 == local.count) {
                xfer.local = to + here[0].at;
            } else {
                xfer.local_sg = &local;
            }
            if (1 == remote.count) {
                xfer.roff = there[0].at;
            } else {
                xfer.remote_sg = &remote;
            }
            dn_dsm_op_start(&op[keeper], dsm->port, dsm->peer[keeper], &xfer, false);
        }
    }
    for (uint32_t keeper = 0; keeper < dsm->ranks; keeper++) {
        const dn_status_t ended = dn_dsm_end(dsm, &op[keeper]);
        status = DN_OK != ended ? ended : status;
    }
    for (uint32_t i = 0; NULL != dsm->fetched && i < count; i++) {
        dsm->fetched[page[i]]++;
    }
    dn_dsm_count(&dsm->stat.fetched, count);
    return status;
}

/** Make the twin of a page, unless the page is at home, or the host has the twin. `table` is held, and no thread writes the page. */
static void dn_dsm_page_copy(dn_dsm_t *dsm, uint32_t page)
{
    if (!dn_dsm_is_home(dsm, page)) {
        const uint64_t at = (uint64_t) page * dsm->page_bytes;
        if (dsm->twin == dsm->beside) {
            memcpy(dsm->twin + at, dsm->raw + at, dsm->page_bytes);
        }
        dn_dsm_count(&dsm->stat.twins, 1);
    }
}

/** A page may be written from here on: it becomes dirty, or CLEAN, for a scan to find it. `table` is held. */
static void dn_dsm_page_soil(dn_dsm_t *dsm, uint32_t page)
{
    dn_dsm_page_copy(dsm, page);
    if (dn_dsm_page_scans(dsm)) {
        dn_dsm_page_set(dsm, page, DN_DSM_CLEAN);
    } else {
        dn_dsm_page_set(dsm, page, DN_DSM_DIRTY);
        dn_dsm_list_add(&dsm->dirty, page);
    }
}

/** A page is here: it was fetched, or this is its home and it is shared. `table` is held. */
static void dn_dsm_page_arrive(dn_dsm_t *dsm, uint32_t page, int write, dn_dsm_span_t *span)
{
    if (DN_DSM_IS_WRITE == write || dn_dsm_page_scans(dsm)) {
        dn_dsm_page_soil(dsm, page);
    } else {
        dn_dsm_page_set(dsm, page, DN_DSM_CLEAN);
    }
    dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_IS_WRITE == write ? DN_DSM_WRITE : DN_DSM_READ);
}

/** Have the kernel put a page of this home into the file, since a way of detection maps it from there. Another process may write the page
 * meanwhile. The byte that is read is not used, and a thread sanitizer need not look at it. */
static void __attribute__((noinline, no_sanitize_thread))
dn_dsm_page_fill(const dn_dsm_t *dsm, uint32_t number)
{
    (void) *(const volatile uint8_t *) (dsm->raw + (uint64_t) number * dsm->page_bytes);
}

/** Look at a page that is needed. `table` is held.
 * @return 0: it is here; 1: this thread has to fetch it, and has set it to FETCHING; -1: another thread works on it. */
static int dn_dsm_page_look(dn_dsm_t *dsm, uint32_t number, int write, dn_dsm_span_t *span)
{
    dn_dsm_page_t *page = &dsm->page[number];
    const dn_dsm_access_t before = dn_dsm_page_permits(page);

    switch (page->state) {
    case DN_DSM_ABSENT:
        if (!dn_dsm_is_home(dsm, number)) {
            page->flags &= (uint8_t) ~DN_DSM_STALE;
            if (dn_dsm_host_has(dsm, number)) {
                dn_dsm_page_arrive(dsm, number, write, span);
                return 0;
            }
            if (0 == (page->flags & (DN_DSM_SHARED | DN_DSM_LOOSE))) {
                page->flags |= DN_DSM_LOOSE;
                dn_dsm_list_add(&dsm->loose, number);
            }
            dn_dsm_page_set(dsm, number, DN_DSM_FETCHING);
            return 1;
        }
        dn_dsm_page_fill(dsm, number);
        if (0 != (page->flags & DN_DSM_SHARED)) {
            dn_dsm_page_arrive(dsm, number, write, span);
            return 0;
        }
        dn_dsm_page_set(dsm, number, DN_DSM_OWN);
        break;
    case DN_DSM_FETCHING:
    case DN_DSM_DROPPING:
        return -1;
    case DN_DSM_FLUSHING:
        if (DN_DSM_IS_READ != write) {
            return -1;
        }
        break;
    case DN_DSM_CLEAN:
        if (dn_dsm_page_scans(dsm)) {
            /* The kernel has taken the page out of the front, and may have forgotten writes with it. So the page permits writes now, and
             * a scan finds it. Or another thread had the same fault: then this changes nothing. */
            dn_dsm_span_add(span, number, DN_DSM_NONE, DN_DSM_WRITE);
            return 0;
        }
        /* If the machine does not tell the kind, the fault was a write, since the page can be read. */
        if (DN_DSM_IS_READ != write) {
            dn_dsm_page_soil(dsm, number);
        }
        break;
    default:
        break;
    }
    /* The permission is set also if it does not change: the kernel may have taken the page out of the front. */
    const dn_dsm_access_t after = dn_dsm_page_permits(page);
    dn_dsm_span_add(span, number, before == after ? DN_DSM_NONE : before, after);
    return 0;
}

/** Fetch pages that this thread has set to FETCHING. Pages that became stale meanwhile are fetched once more.
 * @param[in,out] page  Overwritten: the pages that are left. */
static dn_status_t dn_dsm_page_fetch(dn_dsm_t *dsm, uint32_t *page, uint32_t count, int write)
{
    dn_dsm_span_t span = {.watch = &dsm->watch};
    dn_status_t status = DN_OK;
    bool again = false;

    while (0 < count) {
        status = NULL == dsm->host.spot ? dn_dsm_page_pull(dsm, dsm->raw, page, page, count)
                                        : dn_dsm_host_fetch(dsm, page, count);
        pthread_mutex_lock(&dsm->table);
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++) {
            dn_dsm_page_t *one = &dsm->page[page[i]];
            if (DN_OK != status) {
                dn_dsm_page_set(dsm, page[i], DN_DSM_ABSENT);
            } else if (0 != (one->flags & DN_DSM_STALE)) {
                one->flags &= (uint8_t) ~DN_DSM_STALE;
                page[left++] = page[i];
            } else {
                dn_dsm_page_arrive(dsm, page[i], write, &span);
            }
        }
        dn_dsm_span_end(&span);
        dsm->again -= again;
        again = 0 < left;
        dsm->again += again;
        pthread_mutex_unlock(&dsm->table);
        count = left;
    }
    dn_dsm_page_ring(dsm);
    return status;
}

dn_status_t dn_dsm_page_have(dn_dsm_t *dsm, const uint32_t *page, uint32_t count, uint32_t needed, int write)
{
    dn_wait_t wait = {0};

    for (;;) {
        uint32_t ours[DN_DSM_FETCH], fetch = 0;
        dn_dsm_span_t span = {.watch = &dsm->watch};
        bool busy = false;
        dn_status_t status = DN_OK;

        pthread_mutex_lock(&dsm->table);
        for (uint32_t i = 0; i < count; i++) {
            if (i >= needed && (DN_DSM_CLEAN != dsm->page[page[i]].state || dn_dsm_is_home(dsm, page[i]))) {
                continue;
            }
            const int look = dn_dsm_page_look(dsm, page[i], write, &span);
            if (0 < look) {
                ours[fetch++] = page[i];
            }
            busy = busy || 0 > look;
        }
        dn_dsm_span_end(&span);
        pthread_mutex_unlock(&dsm->table);

        if (0 < fetch) {
            status = dn_dsm_page_fetch(dsm, ours, fetch, write);
        }
        if (DN_OK != status || !busy) {
            return status;
        }
        /* The wait goes on also when a process is gone: the page may be another one's. The thread that works on the page ends, and if it
         * could not fetch the page, this thread tries. */
        (void) dn_dsm_wait(dsm, &wait, 0);
    }
}

dn_status_t dn_dsm_page_need(dn_dsm_t *dsm, uint32_t first, uint32_t count, bool write)
{
    dn_status_t status = DN_OK;

    while (0 < count && DN_OK == status) {
        uint32_t page[DN_DSM_FETCH];
        const uint32_t some = count < DN_DSM_FETCH ? count : DN_DSM_FETCH;
        for (uint32_t i = 0; i < some; i++) {
            page[i] = first + i;
        }
        status = dn_dsm_page_have(dsm, page, some, some, write ? DN_DSM_IS_WRITE : DN_DSM_IS_READ);
        first += some;
        count -= some;
    }
    return status;
}

/**
 * A thread has a fault. List the pages that are to become accessible: the page, and those behind it that are going to be written next,
 * if write faults follow each other. Such a page is here and CLEAN, so it costs a twin, and is spared a signal and a system call. The
 * number of these pages doubles from fault to fault. A fault of another page, or a page that was not written after all, ends this. So
 * writes that lie scattered cost nothing more.
 *
 * Another thread may change the state of a listed page before this thread makes it accessible. dn_dsm_page_have() leaves that page out.
 *
 * A page at home is not listed, since it has no twin that tells whether it was written. Nor is a page that other ranks of the host map:
 * it may equal its twin because another rank has sent what was written here.
 * @param[out] page  In rising order. Room for 1 + DN_DSM_AHEAD.
 * @return the number of pages.
 */
static uint32_t dn_dsm_page_guess(dn_dsm_t *dsm, uint32_t number, int kind, uint32_t *page)
{
    dn_dsm_guess_t *guess = &dsm->guess;
    const uint32_t used = dn_dsm_used(dsm);
    uint32_t count = 0;

    page[count++] = number;
    if (dn_dsm_page_scans(dsm) || NULL != dsm->host.spot || DN_DSM_IS_READ == kind) {
        return count;
    }
    pthread_mutex_lock(&dsm->table);
    /* If the machine does not tell the kind, the fault is a write if the page can be read. */
    if (DN_DSM_IS_WRITE == kind || DN_DSM_CLEAN == dsm->page[number].state) {
        const uint32_t twice = 0 == guess->most ? 1 : 2 * guess->most;
        guess->most = number != guess->next ? 0 : twice < DN_DSM_AHEAD ? twice : DN_DSM_AHEAD;
        for (uint32_t next = number + 1; count <= guess->most && next < used; next++) {
            if (DN_DSM_CLEAN != dsm->page[next].state || dn_dsm_is_home(dsm, next)) {
                break;
            }
            page[count++] = next;
        }
        guess->next = number + count;
    }
    pthread_mutex_unlock(&dsm->table);
    return count;
}

const char *dn_dsm_page_access(dn_dsm_range_t *range, uint64_t off, int kind)
{
    dn_dsm_t *dsm = (dn_dsm_t *) (void *) ((uint8_t *) range - offsetof(dn_dsm_t, range));
    const uint32_t page = (uint32_t) (off / dsm->page_bytes);
    const void *at = range->at + off;
    uint32_t pages[1 + DN_DSM_AHEAD];

    /* A child has neither the connections of its parent, nor the threads that hold its locks. */
    if (getpid() != dsm->process) {
        return "was accessed after fork() in the child, which has no shared memory";
    }
    if (page >= dn_dsm_used(dsm)) {
        return "is outside of what was allocated";
    }
    if (dsm->shares) {
        return "is allocated, but the kernel has no memory for it";
    }
    const uint64_t began = dn_dsm_clock();
    dn_dsm_count(DN_DSM_IS_WRITE == kind ? &dsm->stat.write_faults : &dsm->stat.read_faults, 1);
    const dn_status_t status =
        dn_dsm_page_have(dsm, pages, dn_dsm_page_guess(dsm, page, kind, pages), 1, kind);
    if (DN_OK != status) {
        const uint32_t lost = dn_dsm_gone(dsm);
        if (0 != lost) {
            dn_log_error(
                "shared memory: rank %u is gone, and the page of %p, of rank %u, is not fetched any more: "
                "this process ends",
                (unsigned) lost - 1, at, (unsigned) dsm->page[page].home);
        } else {
            /* Progress may not have told of a loss yet. */
            dn_log_error("shared memory: the page of %p cannot be fetched from rank %u%s: this process ends",
                         at, (unsigned) dsm->page[page].home,
                         DN_ERR_UNREACH == status ? ", which has ended, or is not reached any more" : "");
        }
        _exit(EXIT_FAILURE);
    }
    dn_dsm_count(&dsm->stat.fault_ns, dn_dsm_clock() - began);
    return NULL;
}
/** @} */

/** @name Release */
/** @{ */
/** Send the diffs of the pages of dsm->flush that are at home with the host of a keeper. @param[in,out] op  The last transfer to it. */
static void dn_dsm_page_push(dn_dsm_t *dsm, uint32_t keeper, dn_dsm_op_t *op)
{
    size_t blocks = 0;
    uint64_t len = 0;

    for (uint32_t i = 0; i <= dsm->flush.count; i++) {
        const bool last = i == dsm->flush.count;
        if (0 < blocks && (last || DN_DSM_BLOCKS <= blocks)) {
            const dn_sg_t sg = {.block = dsm->blocks, .count = blocks};
            dn_xfer_t xfer = {.local = dsm->twin,
                              .local_sg = &sg,
                              .key = &dsm->card[keeper].cache,
                              .remote_sg = &sg,
                              .len = len};
            if (DN_OK != dn_dsm_end(dsm, op)) {
                return;
            }
            dn_dsm_op_start(op, dsm->port, dsm->peer[keeper], &xfer, true);
            dn_dsm_count(&dsm->stat.diff_blocks, blocks);
            dn_dsm_count(&dsm->stat.diff_bytes, len);
            blocks = 0;
            len = 0;
        }
        if (last || keeper != dsm->keeper[dsm->page[dsm->flush.page[i]].home]) {
            continue;
        }
        const uint64_t at = (uint64_t) dsm->flush.page[i] * dsm->page_bytes;
        dn_dsm_host_send(dsm, dsm->flush.page[i]);
        const size_t more =
            dn_dsm_diff(dsm->raw + at, dsm->twin + at, dsm->page_bytes, at, dsm->blocks + blocks, &len);
        if (0 == more && NULL == dsm->host.spot) {
            /* With a host, another rank may have sent what was written here. */
            dsm->same[dsm->flush.page[i] / 64] |= UINT64_C(1) << dsm->flush.page[i] % 64;
        }
        blocks += more;
        dn_dsm_count(&dsm->stat.diffs, 1);
    }
}

/** A page was sent home, unless it was not written: note it. `sync` and `table` are held. */
static void dn_dsm_page_note(dn_dsm_t *dsm, uint32_t number)
{
    const uint64_t bit = UINT64_C(1) << number % 64;
    dn_dsm_page_t *page = &dsm->page[number];

    if (0 != (dsm->same[number / 64] & bit)) {
        dsm->same[number / 64] &= ~bit;
        dsm->guess.most = 0;
        return;
    }
    dn_dsm_notes_add(&dsm->notes, number, dsm->rank, dsm->interval, DN_DSM_NOWHERE);
    if (0 == (page->flags & DN_DSM_WROTE)) {
        page->flags |= DN_DSM_WROTE;
        dn_dsm_list_add(&dsm->wrote, number);
    }
}

/** Pages in dsm->flush were sent home: note them, and empty the list. `sync` is held. */
static void dn_dsm_page_sent(dn_dsm_t *dsm)
{
    dn_dsm_span_t span = {.watch = &dsm->watch};

    pthread_mutex_lock(&dsm->table);
    for (uint32_t i = 0; i < dsm->flush.count; i++) {
        const uint32_t number = dsm->flush.page[i];
        dn_dsm_page_t *page = &dsm->page[number];
        dn_dsm_page_note(dsm, number);
        if (DN_DSM_FLUSHING != page->state) {
            continue;
        }
        if (0 != (page->flags & DN_DSM_STALE)) {
            page->flags &= (uint8_t) ~DN_DSM_STALE;
            dn_dsm_page_set(dsm, number, DN_DSM_ABSENT);
            dn_dsm_span_add(&span, number, DN_DSM_READ, DN_DSM_NONE);
            dn_dsm_count(&dsm->stat.dropped, 1);
        } else {
            dn_dsm_page_set(dsm, number, DN_DSM_CLEAN);
        }
    }
    dn_dsm_span_end(&span);
    dsm->flush.count = 0;
    pthread_mutex_unlock(&dsm->table);
    dn_dsm_page_ring(dsm);
}

/** Keep in dsm->flush only the pages that differ from their twins, and those that another rank has sent since the kernel was asked. `sync` is
 * held. @param[in] taken  The pages are taken: give back those that are not kept. */
static void dn_dsm_page_sift(dn_dsm_t *dsm, bool taken)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < dsm->flush.count; i++) {
        const uint64_t at = (uint64_t) dsm->flush.page[i] * dsm->page_bytes;
        if (0 != memcmp(dsm->raw + at, dsm->twin + at, dsm->page_bytes)
            || dn_dsm_host_has_sent(dsm, dsm->flush.page[i])) {
            dsm->flush.page[left++] = dsm->flush.page[i];
        } else if (taken) {
            dn_dsm_host_give(dsm, &dsm->flush.page[i], 1);
        }
    }
    dsm->flush.count = left;
}

/** Send home what was written to the pages in dsm->flush, and note them. `sync` is held. @param[in] dropped  The pages are copies that are
 * dropped, and were sifted once. */
static dn_status_t dn_dsm_page_flush(dn_dsm_t *dsm, bool dropped)
{
    dn_dsm_op_t op[DN_DSM_RANKS_MAX] = {0};

    if (0 == dsm->flush.count) {
        return DN_OK;
    }
    const uint64_t began = dn_dsm_clock();
    dn_status_t status = dn_dsm_host_take(dsm, dsm->flush.page, dsm->flush.count);
    if (DN_OK == status) {
        if (dropped) {
            /* Another rank may have been merging a page when it was compared. */
            dn_dsm_page_sift(dsm, true);
        }
        for (uint32_t keeper = 0; keeper < dsm->ranks; keeper++) {
            if (keeper != dsm->keeper[dsm->rank]) {
                dn_dsm_page_push(dsm, keeper, &op[keeper]);
            }
        }
        for (uint32_t keeper = 0; keeper < dsm->ranks; keeper++) {
            const dn_status_t ended = dn_dsm_end(dsm, &op[keeper]);
            status = DN_OK != ended ? ended : status;
        }
        dn_dsm_host_give(dsm, dsm->flush.page, dsm->flush.count);
    }
    dsm->interval++;
    dn_dsm_page_sent(dsm);
    dn_dsm_count(&dsm->stat.release_ns, dn_dsm_clock() - began);
    return status;
}

/** dn_dsm_found_fn_t: add the CLEAN pages of those that were found to dsm->flush. */
static void dn_dsm_page_found(void *arg, const void *at, uint64_t len)
{
    dn_dsm_t *dsm = arg;
    uint32_t page = (uint32_t) ((uint64_t) ((const uint8_t *) at - dsm->front) / dsm->page_bytes);

    for (const uint32_t end = page + (uint32_t) (len / dsm->page_bytes); page < end; page++) {
        if (DN_DSM_CLEAN == dsm->page[page].state) {
            dn_dsm_list_add(&dsm->flush, page);
        }
    }
}

/** Put the CLEAN pages that were written into dsm->flush. `table` is held. */
static void dn_dsm_page_scan(dn_dsm_t *dsm)
{
    const uint32_t used = dn_dsm_used(dsm), words = (used + 63) / 64;

    for (uint32_t word = 0; word < words;) {
        if (0 == dsm->held[word]) {
            word++;
            continue;
        }
        const uint32_t first = word * 64;
        uint32_t end = first;
        for (; word < words && word * 64 - end <= DN_DSM_GAP; word++) {
            end = 0 != dsm->held[word] ? (word + 1) * 64 : end;
        }
        end = end < used ? end : used;
        dn_dsm_watch_scan(&dsm->watch, dsm->front + (uint64_t) first * dsm->page_bytes,
                          (uint64_t) (end - first) * dsm->page_bytes, false, dn_dsm_page_found, dsm);
    }
}

dn_status_t dn_dsm_page_release(dn_dsm_t *dsm)
{
    const bool scans = dn_dsm_page_scans(dsm);
    dn_dsm_span_t span = {.watch = &dsm->watch};

    pthread_mutex_lock(&dsm->table);
    if (scans) {
        dn_dsm_page_scan(dsm);
    } else {
        dn_dsm_list_take(&dsm->flush, &dsm->dirty);
    }
    for (uint32_t i = 0; i < dsm->flush.count; i++) {
        if (!scans) {
            dn_dsm_page_set(dsm, dsm->flush.page[i], DN_DSM_FLUSHING);
        }
        dn_dsm_span_add(&span, dsm->flush.page[i], DN_DSM_WRITE, DN_DSM_READ);
    }
    dn_dsm_span_end(&span);
    pthread_mutex_unlock(&dsm->table);
    return dn_dsm_page_flush(dsm, false);
}
/** @} */

/** @name Acquire */
/** @{ */
/** Wait before pages are marked that may be under way. `table` is held. A page that was marked while it was fetched is fetched once more, and
 * no page is marked until it is here. So a fault PULLs a page twice at most, however often other threads acquire. This wait ends: the thread
 * that fetches waits for transfers only, and no other thread marks while this thread holds `sync`. (dn_dsm_page_move() marks only pages that
 * no thread fetches.) */
static void dn_dsm_page_wait_to_mark(dn_dsm_t *dsm)
{
    dn_dsm_pause_until_none(dsm->port, &dsm->table, &dsm->again);
}

/** Mark the copy of a page as stale, if there is a copy. `sync` and `table` are held. */
static void dn_dsm_page_mark(dn_dsm_t *dsm, uint32_t number)
{
    dn_dsm_page_t *page = &dsm->page[number];

    if (dn_dsm_is_home(dsm, number) || DN_DSM_ABSENT == page->state || 0 != (page->flags & DN_DSM_STALE)
        || dn_dsm_host_has(dsm, number)) {
        return;
    }
    page->flags |= DN_DSM_STALE;
    /* A thread that fetches the page finds the flag. A page may be listed already: a release has dropped it, and it was fetched again. */
    if (DN_DSM_FETCHING != page->state && 0 == (page->flags & DN_DSM_LISTED)) {
        page->flags |= DN_DSM_LISTED;
        dn_dsm_list_add(&dsm->stale, number);
    }
}

void dn_dsm_page_stale(dn_dsm_t *dsm, uint32_t page)
{
    pthread_mutex_lock(&dsm->table);
    if (DN_DSM_FETCHING == dsm->page[page].state) {
        dn_dsm_page_wait_to_mark(dsm);
    }
    dn_dsm_page_mark(dsm, page);
    pthread_mutex_unlock(&dsm->table);
}

void dn_dsm_page_all_stale(dn_dsm_t *dsm)
{
    pthread_mutex_lock(&dsm->table);
    dn_dsm_page_wait_to_mark(dsm);
    const uint32_t words = (dn_dsm_used(dsm) + 63) / 64;

    dn_dsm_host_renew(dsm);
    for (uint32_t word = 0; word < words; word++) {
        for (uint64_t bits = dsm->held[word]; 0 != bits; bits &= bits - 1) {
            dn_dsm_page_mark(dsm, word * 64 + (uint32_t) __builtin_ctzll(bits));
        }
    }
    pthread_mutex_unlock(&dsm->table);
}

void dn_dsm_page_loose_stale(dn_dsm_t *dsm)
{
    pthread_mutex_lock(&dsm->table);
    dn_dsm_page_wait_to_mark(dsm);
    for (uint32_t i = 0; i < dsm->loose.count; i++) {
        dn_dsm_page_mark(dsm, dsm->loose.page[i]);
    }
    pthread_mutex_unlock(&dsm->table);
}

void dn_dsm_page_share(dn_dsm_t *dsm, uint32_t number)
{
    dn_dsm_page_t *page = &dsm->page[number];

    pthread_mutex_lock(&dsm->table);
    page->flags |= DN_DSM_SHARED;
    if (DN_DSM_OWN == page->state) {
        /* Other threads may be writing to the page: the next release finds these writes. */
        dn_dsm_page_soil(dsm, number);
    }
    pthread_mutex_unlock(&dsm->table);
}

/** dn_dsm_found_fn_t for a page that moves: a thread has touched it. Ends this process. */
static void dn_dsm_page_touched(void *arg, const void *at, uint64_t len)
{
    (void) arg;
    (void) len;
    dn_log_error("shared memory: a thread has touched the page of %p while another is in a barrier: with "
                 "homes that move, none may; this process ends",
                 at);
    _exit(EXIT_FAILURE);
}

void dn_dsm_page_move(dn_dsm_t *dsm, uint32_t number, uint32_t home)
{
    uint8_t *at = dsm->front + (uint64_t) number * dsm->page_bytes;
    dn_dsm_page_t *page = &dsm->page[number];
    dn_dsm_span_t span = {.watch = &dsm->watch};
    const bool here = dsm->rank == home;

    pthread_mutex_lock(&dsm->table);
    if (DN_DSM_CLEAN != page->state && (here || DN_DSM_ABSENT != page->state)) {
        dn_dsm_page_touched(NULL, at, dsm->page_bytes);
    }
    page->home = (uint16_t) home;
    /* No other process keeps a copy. */
    page->flags &= (uint8_t) ~DN_DSM_SHARED;
    if (here) {
        dn_dsm_page_set(dsm, number, DN_DSM_OWN);
        dn_dsm_span_add(&span, number, DN_DSM_READ, DN_DSM_WRITE);
        dn_dsm_span_end(&span);
    } else if (DN_DSM_CLEAN == page->state && dn_dsm_page_scans(dsm)) {
        /* This process was the home, or its copy equals its twin. A write that comes into the twin now would be lost: look for writes. */
        dn_dsm_page_copy(dsm, number);
        dn_dsm_watch_scan(&dsm->watch, at, dsm->page_bytes, true, dn_dsm_page_touched, NULL);
    }
    dn_dsm_page_mark(dsm, number);
    pthread_mutex_unlock(&dsm->table);
    dn_dsm_count(&dsm->stat.moved, here);
}

/** With a scan in a host: before copies are dropped, release what this process has written, as the kernel knows it now. @return the status of
 * the transfers. */
static dn_status_t dn_dsm_page_drop_ask(dn_dsm_t *dsm)
{
    if (NULL == dsm->host.marked) {
        return DN_OK;
    }
    for (uint32_t i = 0; i < dsm->stale.count; i++) {
        dn_dsm_host_mark(dsm, dsm->stale.page[i]);
    }
    return dn_dsm_page_release(dsm);
}

/** Drop the stale copies that are CLEAN. @param[in,out] dirty_p  Becomes true if a stale copy is DIRTY. @return the status of the transfers. */
static dn_status_t dn_dsm_page_drop_clean(dn_dsm_t *dsm, bool *dirty_p)
{
    const bool scans = dn_dsm_page_scans(dsm);
    dn_dsm_span_t span = {.watch = &dsm->watch};

    pthread_mutex_lock(&dsm->table);
    for (uint32_t i = 0; i < dsm->stale.count; i++) {
        const uint32_t number = dsm->stale.page[i];
        dn_dsm_page_t *page = &dsm->page[number];
        page->flags &= (uint8_t) ~DN_DSM_LISTED;
        if (DN_DSM_CLEAN == page->state) {
            page->flags &= (uint8_t) ~DN_DSM_STALE;
            dn_dsm_page_set(dsm, number, scans ? DN_DSM_DROPPING : DN_DSM_ABSENT);
            dn_dsm_span_add(&span, number, DN_DSM_READ, DN_DSM_NONE);
            dn_dsm_count(&dsm->stat.dropped, 1);
            if (scans) {
                dn_dsm_list_add(&dsm->flush, number);
            }
        }
        *dirty_p = *dirty_p || DN_DSM_DIRTY == page->state;
    }
    dn_dsm_span_end(&span);
    pthread_mutex_unlock(&dsm->table);
    if (!scans) {
        return DN_OK;
    }
    dn_dsm_page_sift(dsm, false);
    const dn_status_t status = dn_dsm_page_flush(dsm, true);
    pthread_mutex_lock(&dsm->table);
    for (uint32_t i = 0; i < dsm->stale.count; i++) {
        if (DN_DSM_DROPPING == dsm->page[dsm->stale.page[i]].state) {
            dn_dsm_page_set(dsm, dsm->stale.page[i], DN_DSM_ABSENT);
        }
    }
    pthread_mutex_unlock(&dsm->table);
    dn_dsm_page_ring(dsm);
    return status;
}

dn_status_t dn_dsm_page_drop(dn_dsm_t *dsm)
{
    bool dirty = false;

    if (0 == dsm->stale.count) {
        return DN_OK;
    }
    dn_dsm_list_sort(&dsm->stale);
    dn_status_t status = dn_dsm_page_drop_ask(dsm);
    status = DN_OK != status ? status : dn_dsm_page_drop_clean(dsm, &dirty);
    if (DN_OK == status && dirty) {
        /* The release sends what was written to the dirty copies, and then drops them, since they are stale. */
        status = dn_dsm_page_release(dsm);
    }
    const uint32_t count = DN_DSM_UPDATE == dsm->protocol ? dsm->stale.count : 0;
    for (uint32_t i = 0; DN_OK == status && i < count; i += DN_DSM_FETCH) {
        const uint32_t some = count - i < DN_DSM_FETCH ? count - i : DN_DSM_FETCH;
        status = dn_dsm_page_have(dsm, dsm->stale.page + i, some, some, DN_DSM_IS_READ);
    }
    dsm->stale.count = 0;
    return status;
}
/** @} */
