/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_page.c
 * Mappings of a peer's memory.
 *
 * Memory. A mapping is memory that is there twice, as in dn_dsm_int.h: `raw`, for the library, and `front`, for the program. A third range has
 * the twins. The life of a page, without a scan:
 *
 *               access            done, a read          write
 *     ABSENT ----------> FETCHING ----------> CLEAN <-------------> DIRTY
 *       ^                  |  ^ acquire         |       release       |
 *       |                  +--+ meanwhile, once |                     |
 *       +------------------- acquire -----------+                     |
 *       +----- sent ----- DROPPING <-------------------- acquire -----+
 *
 * A page differs from its twin in the bytes that were stored here and not sent, and in no others: the twin is what was fetched, with what
 * was sent. So a page that becomes DIRTY once more needs no new twin.
 *
 * A release sets the pages to CLEAN, and protects them, before it compares. A thread that writes one meanwhile makes it DIRTY again: either the
 * comparison has that store, or the next release has it. An acquire has to know that all was sent before a page may be
 * fetched again, so it takes the pages out of the front before it compares: threads that want one wait.
 *
 * A page that a write has fetched is DIRTY at once.
 *
 * Where the way of detection has a scan, no page becomes DIRTY: each has its twin from the start, a release asks which CLEAN ones were
 * written, and an acquire compares all: each CLEAN one is DROPPING until it was sent.
 *
 * Order of locks: `sync`, `table`. With `table` held nothing waits and libdimmnet is not called. A fault takes `table` only; nobody touches the front
 * while he holds it.
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

/** Blocks of one PUSH: as many as make the work for it small beside that for them. */
#define DN_PAGE_BLOCKS 4096u
/** Pages of one PULL. */
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
    uint8_t twin;  /**< not 0: it has one */
} dn_page_t;

struct dn_mapping {
    dn_dsm_range_t range; /**< first; unless it is shared */
    dn_port_t *port;
    dn_peer_t *peer;
    uint32_t pid; /**< of the peer, for log lines */
    pid_t process;
    dn_key_t key;
    uint64_t off;
    uint64_t len;
    uint32_t pages; /**< 0: the peer's memory is mapped, at `front` */
    dn_dsm_watch_t watch;
    uint8_t *raw;
    uint8_t *front;
    uint8_t *twin;

    pthread_mutex_t sync; /**< of releases and acquires */
    pthread_mutex_t table;
    dn_page_t *page;
    uint32_t acquires; /**< from dn_first() on; it is only asked whether it is another. Under `table` */
    uint32_t
        again; /**< threads that fetch once more, as an acquire came: the next one waits. Under `table` */
    dn_dsm_list_t dirty; /**< that became so since the last release. Under `table` */
    dn_dsm_list_t flush; /**< to be compared and sent. Under `sync` */
    dn_block_t *blocks;  /**< room for DN_PAGE_BLOCKS, and those of a page more. Under `sync` */
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

/** A page may be written from here on: it becomes DIRTY, or CLEAN, for a scan to find it. Nobody writes it now. */
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

/** Permit an access to a page that is here. @return whether it is. */
static bool dn_page_permit(dn_mapping_t *map, uint32_t page, int kind, dn_dsm_span_t *span)
{
    switch (map->page[page].state) {
    case DN_PAGE_CLEAN:
        if (dn_page_scans(map)) {
            /* The kernel has taken the page out of the front, and with it may be what it knew of writes: a scan is to find it. Or
             * the page is there as it should be: then this changes nothing. */
            dn_dsm_span_add(span, page, DN_DSM_NONE, DN_DSM_WRITE);
        } else if (DN_DSM_IS_READ != kind) {
            /* Where the machine does not tell, a fault of a page that can be read was a write. */
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

/** Make pages from @p first on, at most @p count, ours to fetch. @return how many. */
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

/** Fetch pages that are ours; once more where an acquire came meanwhile. @param[in] acquires  Before they became ours. */
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
    /* Other threads may wait for these. */
    dn_wait_ring(map->port);
    return status;
}

/** Have pages here. @param[in] kind  DN_DSM_IS_READ and so on. */
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

/** dn_dsm_access_fn_t. */
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
/** Leave out what lies behind the mapping, in its last page. */
static size_t dn_page_clip(const dn_mapping_t *map, dn_block_t *block, size_t blocks)
{
    while (0 < blocks && map->len <= block[blocks - 1].at) {
        blocks--;
    }
    if (0 < blocks && map->len - block[blocks - 1].at < block[blocks - 1].len) {
        block[blocks - 1].len = map->len - block[blocks - 1].at;
    }
    return blocks;
}

/** PUSH the first blocks, from the twins. */
static dn_status_t dn_page_push(dn_mapping_t *map, size_t blocks)
{
    const dn_sg_t sg = {.block = map->blocks, .count = blocks};
    dn_xfer_t xfer = {
        .local = map->twin, .local_sg = &sg, .key = &map->key, .roff = map->off, .remote_sg = &sg};
    dn_dsm_op_t op;

    for (size_t i = 0; i < blocks; i++) {
        xfer.len += map->blocks[i].len;
    }
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

    for (uint32_t i = 0; i < map->flush.count; i++) {
        const uint64_t at = dn_page_at(map, map->flush.page[i]);
        const size_t more =
            dn_dsm_diff(map->raw + at, map->twin + at, map->watch.page_bytes, at, map->blocks + blocks);
        blocks += dn_page_clip(map, map->blocks + blocks, more);
        if (0 < blocks && (i + 1 == map->flush.count || DN_PAGE_BLOCKS <= blocks)) {
            const dn_status_t sent = dn_page_push(map, blocks);
            status = DN_OK == status ? sent : status;
            blocks = 0;
        }
    }
    return status;
}

/** dn_dsm_found_fn_t. Of what was found, CLEAN pages count. */
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

static dn_status_t dn_page_drop(dn_mapping_t *map)
{
    dn_dsm_span_t span = {.watch = &map->watch};
    uint64_t dropped = 0;

    pthread_mutex_lock(&map->table);
    /* What an acquire has sent back to fetch once more is fetched before the next one: so a fault PULLs a page twice at most, however
     * often others acquire. */
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

/** Do one of these with `sync`. Of memory that is shared there is nothing to do. */
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

    /* Of memory that is shared: pairs with that of whoever gets the sign. */
    dn_fence_release();
    return status;
}

dn_status_t dn_page_acquire(dn_mapping_t *map)
{
    /* Of memory that is shared: pairs with that of whoever gave the sign. */
    dn_fence_acquire();
    return dn_page_synchronise(map, dn_page_drop);
}
/** @} */

/** @name Mapping */
/** @{ */
/** Give back what dn_page_open() took, also when it has failed. */
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

/** @param[in] again  NULL; or memory that is shared, to be there once more. @return NULL: no. */
static uint8_t *dn_page_memory(uint64_t bytes, int flags, uint8_t *again)
{
    void *memory = NULL != again ? mremap(again, 0, bytes, MREMAP_MAYMOVE)
                                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                        flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == memory) {
        return NULL;
    }
    /* A child has no use for it. */
    (void) madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

/** Begin to detect accesses. What works with the page of a probe may not do so here, as limits are of what all mappings have.
 * @param[in] is_free  The way was not asked for: segv comes after uffd. @return 0, or what errno would be. */
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

/** Have the memory of a mapping, and what is known of its pages. @param[in] is_free  As above. */
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

/** Choose how accesses are detected. @param[in] detect  NULL: it is free. */
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

/** Have copies of the peer's memory. @param[in] detect  As above. */
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

/** Take the peer's memory itself. @retval DN_ERR_UNSUPPORTED  the device does not map it. */
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
    /* What progress calls meanwhile accesses no mapping. */
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
