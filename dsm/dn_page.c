/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_page.c
 * Mappings of a peer's memory.
 *
 * Memory. The memory of a mapping is mapped twice, as in dn_dsm_int.h: `raw`, for the library, and `front`, for the program. A third range
 * has the twins. The life of a page, without a scan:
 *
 *               access            done, a read          write
 *     ABSENT ----------> FETCHING ----------> CLEAN <-------------> DIRTY
 *       ^                  |  ^ acquire         |       release       |
 *       |                  +--+ meanwhile, once |                     |
 *       +------------------- acquire -----------+                     |
 *       +----- sent ----- DROPPING <-------------------- acquire -----+
 *
 * A page differs from its twin exactly in the bytes that were stored here and not sent: the twin has the bytes that were fetched, and the
 * bytes that were sent. So a page that becomes DIRTY once more needs no new twin.
 *
 * A release sets the pages to CLEAN, and protects them, before it compares. A thread that writes a page meanwhile makes it DIRTY again: either
 * the comparison has that store, or the next release has it. An acquire has to send all stores of a page before the page may be
 * fetched again. So it takes the pages out of the front before it compares, and threads that access them wait.
 *
 * A page that was fetched for a write is DIRTY at once.
 *
 * Where the way of detection has a scan, no page becomes DIRTY. Each page has its twin from the start. A release asks which CLEAN pages were
 * written. An acquire compares all CLEAN pages: each of them is DROPPING until it was sent.
 *
 * Order of locks: `sync`, `table`. While a thread holds `table`, it does not wait, does not call libdimmnet, and does not touch the front. A
 * fault takes `table` only.
 */
#include "dn_config.h"

#include "dn_page.h"

#include <dn_atomic.h>
#include <dn_log.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dn_dsm_count.h"
#include "dn_dsm_diff.h"
#include "dn_dsm_fault.h"
#include "dn_dsm_op.h"

/** Blocks after which a PUSH is started. With so many blocks the work for the PUSH itself is small beside the work for the blocks. */
#define DN_PAGE_BLOCKS 4096u
/** The most pages of one PULL. */
#define DN_PAGE_FETCH 256u

typedef enum dn_page_state {
    DN_PAGE_ABSENT,
    DN_PAGE_FETCHING,
    DN_PAGE_CLEAN,
    DN_PAGE_DIRTY,
    DN_PAGE_DROPPING
} dn_page_state_t;

/** A page; under `table`. */
typedef struct dn_page {
    uint8_t state; /**< dn_page_state_t: dn_page_set() alone changes it */
    uint8_t twin;  /**< not 0: the page has a twin */
} dn_page_t;

struct dn_mapping {
    dn_dsm_range_t range; /**< first; not used if the mapping is the peer's memory */
    dn_port_t *port;
    dn_peer_t *peer;
    uint32_t pid;         /**< PID of the peer, for log lines */
    pid_t process;        /**< the process that has made the mapping: the kernel's number */
    dn_key_t key;         /**< of the segment */
    uint64_t off;         /**< bytes from the start of the segment to the mapping */
    uint64_t len;         /**< bytes of the mapping */
    uint32_t pages;       /**< number of pages; 0: the mapping is the peer's memory, at `front` */
    dn_dsm_watch_t watch; /**< of the front */
    uint8_t *raw;         /**< copies of the pages, mapped for the library */
    uint8_t *front;       /**< the same, mapped for the program */
    uint8_t *twin;        /**< twins, at the offsets of their pages */

    pthread_mutex_t sync; /**< held in releases and acquires */
    pthread_mutex_t table;
    dn_page_t *page; /**< by page. Under `table` */
    /** acquires, counted from dn_first() on. It wraps, and is compared for equality only. Under `table` */
    uint32_t acquires;
    /** threads that fetch once more, as an acquire came meanwhile: the next acquire waits for them. Under `table` */
    uint32_t again;
    dn_dsm_list_t dirty; /**< pages that became DIRTY since the last release. Under `table` */
    dn_dsm_list_t flush; /**< pages that are to be compared and sent. Under `sync` */
    dn_block_t *blocks;  /**< room for DN_PAGE_BLOCKS, and for those of a page more. Under `sync` */
    dn_page_stat_t stat; /**< atomic */
};

static bool dn_page_is_shared(const dn_mapping_t *map)
{
    return 0 == map->pages;
}

/** @name States, and what they permit: `table` is held */
/** @{ */
static bool dn_page_scans(const dn_mapping_t *map)
{
    return NULL != map->watch.way->scan;
}

static uint64_t dn_page_at(const dn_mapping_t *map, uint32_t page)
{
    return (uint64_t) page * map->watch.page_bytes;
}

static void dn_page_set(dn_mapping_t *map, uint32_t page, dn_page_state_t state)
{
    map->page[page].state = (uint8_t) state;
    if (DN_PAGE_ABSENT == state) {
        map->page[page].twin = 0;
    }
}

/** A page may be written from here on: it becomes DIRTY, or CLEAN, for a scan to find it. No thread writes it now. */
static void dn_page_soil(dn_mapping_t *map, uint32_t page)
{
    const uint64_t at = dn_page_at(map, page);

    if (0 == map->page[page].twin) {
        memcpy(map->twin + at, map->raw + at, map->watch.page_bytes);
        map->page[page].twin = 1;
    }
    if (dn_page_scans(map)) {
        dn_page_set(map, page, DN_PAGE_CLEAN);
    } else {
        dn_page_set(map, page, DN_PAGE_DIRTY);
        dn_dsm_list_add(&map->dirty, page);
    }
}

/** A page was fetched. */
static void dn_page_arrive(dn_mapping_t *map, uint32_t page, int kind, dn_dsm_span_t *span)
{
    if (DN_DSM_IS_WRITE == kind || dn_page_scans(map)) {
        dn_page_soil(map, page);
    } else {
        dn_page_set(map, page, DN_PAGE_CLEAN);
    }
    dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_IS_WRITE == kind ? DN_DSM_WRITE : DN_DSM_READ);
}

/** Permit an access to a page, if the page is here. @return whether it is here. */
static bool dn_page_permit(dn_mapping_t *map, uint32_t page, int kind, dn_dsm_span_t *span)
{
    switch (map->page[page].state) {
    case DN_PAGE_CLEAN:
        if (dn_page_scans(map)) {
            /* The kernel may have taken the page out of the front, and may have forgotten writes with it. So the page permits writes
             * now, and a scan finds it. If the page is in the front, this changes nothing. */
            dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_WRITE);
        } else if (DN_DSM_IS_READ != kind) {
            /* If the machine does not tell the kind, the fault was a write, since the page can be read. */
            dn_page_soil(map, page);
            dn_dsm_span_add(span, page, DN_DSM_READ, DN_DSM_WRITE);
        } else {
            dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_READ);
        }
        return true;
    case DN_PAGE_DIRTY:
        dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_WRITE);
        return true;
    default:
        return false;
    }
}

/** Claim pages from @p first on, at most @p count, for this thread to fetch. @return how many. */
static uint32_t dn_page_claim(dn_mapping_t *map, uint32_t first, uint32_t count)
{
    uint32_t ours = 0;

    while (ours < count && DN_PAGE_FETCH > ours && DN_PAGE_ABSENT == map->page[first + ours].state) {
        dn_page_set(map, first + ours, DN_PAGE_FETCHING);
        ours++;
    }
    return ours;
}
/** @} */

/** @name Fetching */
/** @{ */
static dn_status_t dn_page_pull(dn_mapping_t *map, uint32_t first, uint32_t count)
{
    const uint64_t at = dn_page_at(map, first), end = dn_page_at(map, first + count);
    dn_xfer_t xfer = {.local = map->raw + at,
                      .key = &map->key,
                      .roff = map->off + at,
                      .len = (end < map->len ? end : map->len) - at};
    dn_dsm_op_t op;

    dn_dsm_count(&map->stat.pulls, 1);
    dn_dsm_count(&map->stat.fetched, count);
    dn_dsm_op_start(&op, map->port, map->peer, &xfer, false);
    return dn_dsm_op_end(&op, map->port);
}

/** Fetch pages that this thread has claimed; fetch them once more if an acquire came meanwhile. @param[in] acquires  dn_mapping_t::acquires
 * when they were claimed. */
static dn_status_t dn_page_fetch(dn_mapping_t *map, uint32_t first, uint32_t count, int kind,
                                 uint32_t acquires)
{
    dn_dsm_span_t span = {.watch = &map->watch};
    dn_status_t status = dn_page_pull(map, first, count);

    pthread_mutex_lock(&map->table);
    if (DN_OK == status && acquires != map->acquires) {
        map->again++;
        pthread_mutex_unlock(&map->table);
        status = dn_page_pull(map, first, count);
        pthread_mutex_lock(&map->table);
        map->again--;
    }
    for (uint32_t page = first; page < first + count; page++) {
        if (DN_OK == status) {
            dn_page_arrive(map, page, kind, &span);
        } else {
            dn_page_set(map, page, DN_PAGE_ABSENT);
        }
    }
    dn_dsm_span_end(&span);
    pthread_mutex_unlock(&map->table);
    /* Other threads may wait for these pages. */
    dn_wait_ring(map->port);
    return status;
}

/** Make pages accessible, and fetch those that are not here. @param[in] kind  DN_DSM_IS_READ and so on. */
static dn_status_t dn_page_have(dn_mapping_t *map, uint32_t first, uint32_t count, int kind)
{
    const uint32_t end = first + count;
    dn_status_t status = DN_OK;
    dn_wait_t wait = {0};

    while (first < end && DN_OK == status) {
        dn_dsm_span_t span = {.watch = &map->watch};
        pthread_mutex_lock(&map->table);
        while (first < end && dn_page_permit(map, first, kind, &span)) {
            first++;
        }
        dn_dsm_span_end(&span);
        const uint32_t ours = dn_page_claim(map, first, end - first), acquires = map->acquires;
        pthread_mutex_unlock(&map->table);
        if (0 < ours) {
            status = dn_page_fetch(map, first, ours, kind, acquires);
            first += ours;
            dn_wait_restart(&wait);
        } else if (first < end) {
            dn_dsm_pause(map->port, &wait, 0);
        }
    }
    return status;
}

/** dn_dsm_access_fn_t of a mapping. */
static const char *dn_page_access(dn_dsm_range_t *range, uint64_t off, int kind)
{
    dn_mapping_t *map = (dn_mapping_t *) range;

    if (getpid() != map->process) {
        return "was accessed after fork() in the child, which has no mapping";
    }
    dn_dsm_count(&map->stat.faults, 1);
    const dn_status_t status = dn_page_have(map, (uint32_t) (off / map->watch.page_bytes), 1, kind);
    if (DN_OK != status) {
        dn_log_error(
            "mapped pages: the page of %p cannot be fetched from process %u (%s): this process ends; "
            "dn_page_touch() returns the error instead",
            (const void *) (range->at + off), (unsigned) map->pid, dn_strerror(status));
        _exit(EXIT_FAILURE);
    }
    return NULL;
}
/** @} */

/** @name Sending: `sync` is held */
/** @{ */
/** Cut off blocks behind the mapping, in its last page. @param[in,out] bytes  Of the blocks. @return the number of blocks that are left. */
static size_t dn_page_clip(const dn_mapping_t *map, dn_block_t *block, size_t blocks, uint64_t *bytes)
{
    while (0 < blocks && map->len <= block[blocks - 1].at) {
        *bytes -= block[--blocks].len;
    }
    if (0 < blocks && map->len - block[blocks - 1].at < block[blocks - 1].len) {
        const uint64_t left = map->len - block[blocks - 1].at;
        *bytes -= block[blocks - 1].len - left;
        block[blocks - 1].len = left;
    }
    return blocks;
}

/** PUSH the first @p blocks of map->blocks, from the twins. @param[in] bytes  Of the blocks. */
static dn_status_t dn_page_push(dn_mapping_t *map, size_t blocks, uint64_t bytes)
{
    const dn_sg_t sg = {.block = map->blocks, .count = blocks};
    dn_xfer_t xfer = {.local = map->twin,
                      .local_sg = &sg,
                      .key = &map->key,
                      .roff = map->off,
                      .remote_sg = &sg,
                      .len = bytes};
    dn_dsm_op_t op;

    dn_dsm_count(&map->stat.pushes, 1);
    dn_dsm_count(&map->stat.blocks, blocks);
    dn_dsm_count(&map->stat.bytes, xfer.len);
    dn_dsm_op_start(&op, map->port, map->peer, &xfer, true);
    return dn_dsm_op_end(&op, map->port);
}

/** Compare the pages of map->flush with their twins, and send what differs. @return the first error. */
static dn_status_t dn_page_send(dn_mapping_t *map)
{
    dn_status_t status = DN_OK;
    size_t blocks = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < map->flush.count; i++) {
        const uint64_t at = dn_page_at(map, map->flush.page[i]);
        const size_t more = dn_dsm_diff(map->raw + at, map->twin + at, map->watch.page_bytes, at,
                                        map->blocks + blocks, &bytes);
        blocks += dn_page_clip(map, map->blocks + blocks, more, &bytes);
        if (0 < blocks && (i + 1 == map->flush.count || DN_PAGE_BLOCKS <= blocks)) {
            const dn_status_t sent = dn_page_push(map, blocks, bytes);
            status = DN_OK == status ? sent : status;
            blocks = 0;
            bytes = 0;
        }
    }
    return status;
}

/** dn_dsm_found_fn_t: add the CLEAN pages of those that were found to map->flush. */
static void dn_page_found(void *arg, const void *at, uint64_t len)
{
    dn_mapping_t *map = arg;
    uint32_t page = (uint32_t) ((uint64_t) ((const uint8_t *) at - map->front) / map->watch.page_bytes);

    for (const uint32_t end = page + (uint32_t) (len / map->watch.page_bytes); page < end; page++) {
        if (DN_PAGE_CLEAN == map->page[page].state) {
            dn_dsm_list_add(&map->flush, page);
        }
    }
}

/** Send what was stored to pages since the last release. */
static dn_status_t dn_page_send_written(dn_mapping_t *map)
{
    dn_dsm_span_t span = {.watch = &map->watch};

    pthread_mutex_lock(&map->table);
    if (dn_page_scans(map)) {
        dn_dsm_watch_scan(&map->watch, map->front, dn_page_at(map, map->pages), false, dn_page_found, map);
    } else {
        dn_dsm_list_take(&map->flush, &map->dirty);
    }
    for (uint32_t i = 0; i < map->flush.count; i++) {
        dn_page_set(map, map->flush.page[i], DN_PAGE_CLEAN);
        dn_dsm_span_add(&span, map->flush.page[i], DN_DSM_WRITE, DN_DSM_READ);
    }
    dn_dsm_span_end(&span);
    pthread_mutex_unlock(&map->table);
    const dn_status_t status = dn_page_send(map);
    map->flush.count = 0;
    return status;
}

/** Drop all pages that are here. What was stored to them is sent first. */
static dn_status_t dn_page_drop(dn_mapping_t *map)
{
    dn_dsm_span_t span = {.watch = &map->watch};
    uint64_t dropped = 0;

    pthread_mutex_lock(&map->table);
    /* Pages that are fetched once more, since an acquire came, are here before the next acquire. So a fault PULLs a page twice at most,
     * however often other threads acquire. */
    dn_dsm_pause_until_none(map->port, &map->table, &map->again);
    map->acquires++;
    map->dirty.count = 0;
    for (uint32_t page = 0; page < map->pages; page++) {
        const uint8_t state = map->page[page].state;
        if (DN_PAGE_CLEAN != state && DN_PAGE_DIRTY != state) {
            continue;
        }
        if (DN_PAGE_DIRTY == state || dn_page_scans(map)) {
            dn_page_set(map, page, DN_PAGE_DROPPING);
            dn_dsm_list_add(&map->flush, page);
        } else {
            dn_page_set(map, page, DN_PAGE_ABSENT);
        }
        dn_dsm_span_add(&span, page, DN_PAGE_DIRTY == state ? DN_DSM_WRITE : DN_DSM_READ, DN_DSM_NONE);
        dropped++;
    }
    dn_dsm_span_end(&span);
    pthread_mutex_unlock(&map->table);
    dn_dsm_count(&map->stat.dropped, dropped);
    const dn_status_t status = dn_page_send(map);
    pthread_mutex_lock(&map->table);
    for (uint32_t i = 0; i < map->flush.count; i++) {
        dn_page_set(map, map->flush.page[i], DN_PAGE_ABSENT);
    }
    map->flush.count = 0;
    pthread_mutex_unlock(&map->table);
    dn_wait_ring(map->port);
    return status;
}

/** Call one of these functions with `sync` held. If the mapping is the peer's memory, there is nothing to do. */
static dn_status_t dn_page_synchronise(dn_mapping_t *map, dn_status_t (*fn)(dn_mapping_t *map))
{
    if (dn_page_is_shared(map)) {
        return DN_OK;
    }
    dn_dsm_inside++;
    pthread_mutex_lock(&map->sync);
    const dn_status_t status = fn(map);
    pthread_mutex_unlock(&map->sync);
    dn_dsm_inside--;
    return status;
}

dn_status_t dn_page_release(dn_mapping_t *map)
{
    const dn_status_t status = dn_page_synchronise(map, dn_page_send_written);

    /* For a mapping that is the peer's memory: pairs with an acquire of the thread that gets the sign. */
    dn_fence_release();
    return status;
}

dn_status_t dn_page_acquire(dn_mapping_t *map)
{
    /* For a mapping that is the peer's memory: pairs with a release of the thread that has given the sign. */
    dn_fence_acquire();
    return dn_page_synchronise(map, dn_page_drop);
}
/** @} */

/** @name Mapping */
/** @{ */
/** Free a mapping, and what dn_page_open() took. Called also when dn_page_open() has failed. */
static void dn_page_free(dn_mapping_t *map)
{
    const uint64_t bytes = dn_page_is_shared(map) ? 0 : dn_page_at(map, map->pages);

    if (0 != bytes) {
        uint8_t *const memory[] = {map->raw, map->front, map->twin};
        map->watch.way->close(&map->watch);
        for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
            if (NULL != memory[i]) {
                munmap(memory[i], bytes);
            }
        }
    }
    free(map->page);
    free(map->dirty.page);
    free(map->flush.page);
    free(map->blocks);
    free(map);
}

/** Get memory. @param[in] again  NULL: new memory; else memory with MAP_SHARED, which is mapped once more. @return NULL: no memory. */
static uint8_t *dn_page_memory(uint64_t bytes, int flags, uint8_t *again)
{
    void *memory = NULL != again ? mremap(again, 0, bytes, MREMAP_MAYMOVE)
                                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                        flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == memory) {
        return NULL;
    }
    /* A child process does not use it. */
    (void) madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

/** Begin to detect accesses. A way that works with the page of a probe may fail here, as all mappings together have limits.
 * @param[in] is_free  The program has not named the way: segv is tried after uffd. @return 0, or a value of errno. */
static int dn_page_watch(dn_mapping_t *map, uint64_t bytes, bool is_free)
{
    const int error = dn_dsm_watch_open(&map->watch, map->front, bytes);

    if (0 == error || !is_free || &dn_dsm_detect_uffd != map->watch.way) {
        return error;
    }
    map->watch = dn_dsm_watch_by(map->watch.what, &dn_dsm_detect_segv);
    const int again = dn_dsm_watch_open(&map->watch, map->front, bytes);
    if (0 == again) {
        dn_log_answer("mapped pages: accesses to %llu bytes are detected by segv, as the kernel refuses uffd "
                      "for them (%s)",
                      (unsigned long long) map->len, strerror(error));
    }
    return again;
}

/** Get the memory of a mapping, and begin to detect accesses. @param[in] is_free  As in dn_page_watch(). */
static dn_status_t dn_page_open(dn_mapping_t *map, bool is_free)
{
    const uint64_t bytes = dn_page_at(map, map->pages);

    map->raw = dn_page_memory(bytes, MAP_SHARED, NULL);
    map->front = NULL == map->raw ? NULL : dn_page_memory(bytes, 0, map->raw);
    map->twin = dn_page_memory(bytes, MAP_PRIVATE, NULL);
    map->page = calloc(map->pages, sizeof(*map->page));
    map->dirty.page = malloc(map->pages * sizeof(*map->dirty.page));
    map->flush.page = malloc(map->pages * sizeof(*map->flush.page));
    map->blocks = malloc((DN_PAGE_BLOCKS + DN_DSM_DIFF_MAX(map->watch.page_bytes)) * sizeof(*map->blocks));
    if (NULL == map->front || NULL == map->twin || NULL == map->page || NULL == map->dirty.page
        || NULL == map->flush.page || NULL == map->blocks) {
        dn_log_error("mapped pages: there is no memory for %llu bytes", (unsigned long long) map->len);
        return DN_ERR_NOMEM;
    }
    const int error = dn_page_watch(map, bytes, is_free);
    if (0 != error) {
        dn_log_error("mapped pages: accesses to %llu bytes cannot be detected by %s (%s)",
                     (unsigned long long) map->len, map->watch.way->name, strerror(error));
        return ENOMEM == error ? DN_ERR_NOMEM : DN_ERR_UNSUPPORTED;
    }
    map->range =
        (dn_dsm_range_t){.what = map->watch.what, .at = map->front, .len = bytes, .access = dn_page_access};
    return dn_dsm_fault_watch(map->watch.way);
}

/** Choose how accesses are detected. @param[in] detect  NULL: the program has not named the way. */
static dn_status_t dn_page_choose(dn_mapping_t *map, const char *detect)
{
    static const char what[] = "mapped pages";

    if (NULL != detect) {
        return dn_dsm_detect_choose(what, detect, &map->watch);
    }
    const char *why = dn_dsm_detect_uffd.why_not();
    if (NULL != why) {
        dn_log_answer("%s: accesses are detected by segv, not by uffd: %s", what, why);
    }
    map->watch = dn_dsm_watch_by(what, NULL == why ? &dn_dsm_detect_uffd : &dn_dsm_detect_segv);
    return DN_OK;
}

/** Set up a mapping of copies. @param[in] detect  As in dn_page_choose(). */
static dn_status_t dn_page_copy(dn_mapping_t *map, const char *detect)
{
    const dn_status_t status = dn_page_choose(map, detect);

    if (DN_OK != status) {
        return status;
    }
    const uint64_t pages = (map->len - 1) / map->watch.page_bytes + 1;
    if (UINT32_MAX < pages) {
        dn_log_error("mapped pages: %llu bytes are more than there are numbers of pages: map less",
                     (unsigned long long) map->len);
        return DN_ERR_NOMEM;
    }
    map->pages = (uint32_t) pages;
    return dn_page_open(map, NULL == detect);
}

/** Set up a mapping that is the peer's memory. @retval DN_ERR_UNSUPPORTED  the device does not map it. */
static dn_status_t dn_page_share(dn_mapping_t *map)
{
    void *base;
    const dn_status_t status = dn_segment_map(map->peer, &map->key, &base);

    map->front = DN_OK == status ? (uint8_t *) base + map->off : NULL;
    return status;
}

dn_status_t dn_page_map(dn_port_t *port, dn_peer_t *peer, const dn_key_t *key, uint64_t off, uint64_t len,
                        const char *detect, dn_mapping_t **mapping_p)
{
    dn_peer_attr_t attr;

    if (0 == len) {
        dn_log_error("mapped pages: a mapping has at least one byte");
        return DN_ERR_PARAM;
    }
    if (off > key->len || len > key->len - off) {
        dn_log_error("mapped pages: %llu bytes from %llu on leave the segment, which has %llu",
                     (unsigned long long) len, (unsigned long long) off, (unsigned long long) key->len);
        return DN_ERR_RANGE;
    }
    dn_mapping_t *map = calloc(1, sizeof(*map));
    if (NULL == map) {
        dn_log_error("mapped pages: there is no memory for what is known of a mapping");
        return DN_ERR_NOMEM;
    }
    dn_peer_attr(peer, &attr);
    map->port = port;
    map->peer = peer;
    map->pid = attr.pid;
    map->process = getpid();
    map->key = *key;
    map->off = off;
    map->len = len;
    map->acquires = dn_first(port);
    pthread_mutex_init(&map->sync, NULL);
    pthread_mutex_init(&map->table, NULL);
    /* Functions that progress calls meanwhile must not access a mapping. */
    dn_dsm_inside++;
    const bool is_free = 0 == strcmp(detect, "auto");
    dn_status_t status = is_free ? dn_page_share(map) : DN_ERR_UNSUPPORTED;
    if (DN_ERR_UNSUPPORTED == status) {
        status = dn_page_copy(map, is_free ? NULL : detect);
    }
    dn_dsm_inside--;
    if (DN_OK != status) {
        dn_page_free(map);
        return status;
    }
    if (!dn_page_is_shared(map)) {
        dn_dsm_range_add(&map->range);
    }
    *mapping_p = map;
    return DN_OK;
}

dn_status_t dn_page_unmap(dn_mapping_t *map)
{
    const dn_status_t status = dn_page_release(map);

    if (!dn_page_is_shared(map)) {
        dn_dsm_range_remove(&map->range);
    }
    dn_page_free(map);
    return status;
}

void *dn_page_base(const dn_mapping_t *map)
{
    return map->front;
}

const char *dn_page_detects(const dn_mapping_t *map)
{
    return dn_page_is_shared(map) ? "shared" : map->watch.way->name;
}

dn_status_t dn_page_touch(dn_mapping_t *map, void *at, uint64_t len, int write)
{
    const uint64_t off = (uint64_t) ((uint8_t *) at - map->front);

    if ((uint8_t *) at < map->front || off > map->len || len > map->len - off) {
        dn_log_error("mapped pages: %llu bytes at %p are not in the mapping, of %llu bytes at %p",
                     (unsigned long long) len, at, (unsigned long long) map->len, (void *) map->front);
        return DN_ERR_RANGE;
    }
    if (0 == len || dn_page_is_shared(map)) {
        return DN_OK;
    }
    const uint32_t first = (uint32_t) (off / map->watch.page_bytes),
                   last = (uint32_t) ((off + len - 1) / map->watch.page_bytes);
    dn_dsm_inside++;
    const dn_status_t status =
        dn_page_have(map, first, last - first + 1, 0 != write ? DN_DSM_IS_WRITE : DN_DSM_IS_READ);
    dn_dsm_inside--;
    return status;
}

void dn_page_stat(const dn_mapping_t *map, dn_page_stat_t *stat)
{
    dn_dsm_counted(&map->stat, stat, sizeof(*stat));
}
/** @} */
