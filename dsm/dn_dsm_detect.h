/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_detect.h
 * Ways of detecting accesses to a range of memory that is mapped from a file in memory. The same pages are mapped elsewhere, too,
 * where they are always readable and writable.
 *
 * An access that a page does not permit raises the way's signal in the thread that has made it, with the address in si_addr. The
 * handler (dn_dsm_fault.h) makes the page accessible, and returns: the access is made again.
 *
 * A way that has a scan lets a thread go on that writes to a page which permits reads. The kernel keeps in mind that the page was
 * written, and the scan asks.
 */
#ifndef DN_DSM_DETECT_H
#define DN_DSM_DETECT_H

#include <stdbool.h>

#include "dimmnet.h"

/** What a page permits. */
typedef enum dn_dsm_access { DN_DSM_NONE, DN_DSM_READ, DN_DSM_WRITE } dn_dsm_access_t;

/** A scan has found pages. @param[in] len  Of all that lie together. */
typedef void (*dn_dsm_found_fn_t)(void *arg, const void *at, uint64_t len);

/** A way of detecting accesses: struct dn_dsm_detect. */
typedef struct dn_dsm_detect dn_dsm_detect_t;

/** A range in which accesses are detected. */
typedef struct dn_dsm_watch {
    const dn_dsm_detect_t *way;
    const char *what; /**< for log lines: "shared memory" */
    uint8_t *at;      /**< its first page; set by dn_dsm_watch_open() */
    uint32_t page_bytes;
    int fd;  /**< of the way; -1: none is open */
    int map; /**< the same, for scans: the page map of this process */
} dn_dsm_watch_t;

struct dn_dsm_detect {
    const char *name;
    int signal; /**< that an access raises */
    /** Why it does not work on this system, in a few words; NULL: it does. */
    const char *(*why_not)(void);
    /** Begin with a range, all of which permits nothing. @return 0, or what errno would be. */
    int (*open)(dn_dsm_watch_t *watch, void *at, uint64_t len);
    /** End: the range is unmapped by the caller. Also of one that was not opened. */
    void (*close)(dn_dsm_watch_t *watch);
    /** Have pages, which all permit @p from, permit @p to. @return 0, or what errno would be. Any thread. */
    int (*set)(const dn_dsm_watch_t *watch, void *at, uint64_t len, dn_dsm_access_t from, dn_dsm_access_t to);
    /**
     * NULL: a write to a page that permits DN_DSM_READ raises the signal. Else it does not, and this finds pages of a range that may have
     * been written, in rising order: all but those that permit DN_DSM_READ since before this call, and have not been written
     * since. Setting them from DN_DSM_WRITE to DN_DSM_READ then tells writes after that apart.
     *
     * @param[in] surely  Find only those that are here and permit writes: touched since, but for some that the kernel has taken out.
     * @return 0, or what errno would be.
     */
    int (*scan)(const dn_dsm_watch_t *watch, void *at, uint64_t len, bool surely, dn_dsm_found_fn_t found,
                void *arg);
};

extern const dn_dsm_detect_t dn_dsm_detect_segv;
extern const dn_dsm_detect_t dn_dsm_detect_uffd;
extern const dn_dsm_detect_t dn_dsm_detect_scan;

/** A watch by a way that works here. Not open. Its pages are those of the system. @param[in] what  For log lines. */
dn_dsm_watch_t dn_dsm_watch_by(const char *what, const dn_dsm_detect_t *way);

/**
 * Choose how a range is going to be watched.
 *
 * @param[in]  what     For log lines.
 * @param[in]  name     Of the way, or "auto": the first that works.
 * @param[out] watch_p  dn_dsm_watch_by().
 * @retval DN_ERR_PARAM        there is no such way: the log line says so.
 * @retval DN_ERR_UNSUPPORTED  it does not work here: the log line says why.
 */
dn_status_t dn_dsm_detect_choose(const char *what, const char *name, dn_dsm_watch_t *watch_p);
/** Begin with a range: dn_dsm_detect::open. */
int dn_dsm_watch_open(dn_dsm_watch_t *watch, uint8_t *at, uint64_t len);
/** dn_dsm_detect::scan. A failure ends the process with a sentence: what was written would be lost. */
void dn_dsm_watch_scan(const dn_dsm_watch_t *watch, void *at, uint64_t len, bool surely,
                       dn_dsm_found_fn_t found, void *arg);

/** Numbers of pages, each once. */
typedef struct dn_dsm_list {
    uint32_t *page; /**< room for all pages */
    uint32_t count;
} dn_dsm_list_t;

static inline void dn_dsm_list_add(dn_dsm_list_t *list, uint32_t page)
{
    list->page[list->count++] = page;
}

/** Bring a list into rising order. */
void dn_dsm_list_sort(dn_dsm_list_t *list);
/** Have what is in another list in @p list, which is empty, in rising order; the other one is empty then. */
void dn_dsm_list_take(dn_dsm_list_t *list, dn_dsm_list_t *from);

/** Pages that lie together and are to permit something else, gathered so that the kernel is called once. */
typedef struct dn_dsm_span {
    const dn_dsm_watch_t *watch;
    uint32_t first;
    uint32_t count;
    dn_dsm_access_t from;
    dn_dsm_access_t to;
} dn_dsm_span_t;

/** A page, which permits @p from, is to permit @p to. */
void dn_dsm_span_add(dn_dsm_span_t *span, uint32_t page, dn_dsm_access_t from, dn_dsm_access_t to);
/** All that were added permit what they should. A failure ends the process with a sentence. */
void dn_dsm_span_end(dn_dsm_span_t *span);

#endif
