/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_detect.h
 * Ways of detecting accesses to a range of memory that is mapped from a file in memory. The same pages are also mapped at another
 * address, where they are always readable and writable.
 *
 * An access that a page does not permit raises the way's signal in the thread that has made the access, with the address in si_addr. The
 * handler (dn_dsm_fault.h) makes the page accessible, and returns. Then the thread makes the access again.
 *
 * A way with a scan raises no signal when a thread writes to a page that permits reads. The kernel notes that the page was written, and
 * the scan asks the kernel.
 */
#ifndef DN_DSM_DETECT_H
#define DN_DSM_DETECT_H

#include <stdbool.h>

#include "dimmnet.h"

/** What a page permits. */
typedef enum dn_dsm_access { DN_DSM_NONE, DN_DSM_READ, DN_DSM_WRITE } dn_dsm_access_t;

/** Called when a scan has found pages. @param[in] len  Bytes of pages that lie together. */
typedef void (*dn_dsm_found_fn_t)(void *arg, const void *at, uint64_t len);

/** A way of detecting accesses: struct dn_dsm_detect. */
typedef struct dn_dsm_detect dn_dsm_detect_t;

/** A range in which accesses are detected. */
typedef struct dn_dsm_watch {
    const dn_dsm_detect_t *way;
    const char *what; /**< for log lines: "shared memory" */
    uint8_t *at;      /**< its first page; set by dn_dsm_watch_open() */
    uint32_t page_bytes;
    int fd;  /**< descriptor of the way; -1: not open */
    int map; /**< the page map of this process, for scans; -1: not open */
} dn_dsm_watch_t;

struct dn_dsm_detect {
    const char *name;
    int signal; /**< the signal that an access raises */
    /** Why the way does not work on this system, in a few words; NULL: it works. */
    const char *(*why_not)(void);
    /** Begin with a range. All of its pages permit nothing. @return 0, or a value of errno. */
    int (*open)(dn_dsm_watch_t *watch, void *at, uint64_t len);
    /** End: the caller unmaps the range. A watch that was not opened is legal. */
    void (*close)(dn_dsm_watch_t *watch);
    /** Have pages permit @p to. All of them permit @p from before. @return 0, or a value of errno. Any thread. */
    int (*set)(const dn_dsm_watch_t *watch, void *at, uint64_t len, dn_dsm_access_t from, dn_dsm_access_t to);
    /**
     * NULL: a write to a page that permits DN_DSM_READ raises the signal. Otherwise a write raises no signal, and this function finds the
     * pages of a range that may have been written, in rising order. It leaves out pages that permitted DN_DSM_READ before this call, and
     * have not been written since. The caller then sets the found pages from DN_DSM_WRITE to DN_DSM_READ, so that a later scan finds
     * later writes only.
     *
     * @param[in] surely  Find only pages that are in memory and permit writes: pages that were touched since, but for pages that the
     *                    kernel has taken out.
     * @return 0, or a value of errno.
     */
    int (*scan)(const dn_dsm_watch_t *watch, void *at, uint64_t len, bool surely, dn_dsm_found_fn_t found,
                void *arg);
};

extern const dn_dsm_detect_t dn_dsm_detect_segv;
extern const dn_dsm_detect_t dn_dsm_detect_uffd;
extern const dn_dsm_detect_t dn_dsm_detect_scan;

/** A watch that is not open, by a way that works here. Its pages have the system's page size. @param[in] what  For log lines. */
dn_dsm_watch_t dn_dsm_watch_by(const char *what, const dn_dsm_detect_t *way);

/**
 * Choose how a range is going to be watched.
 *
 * @param[in]  what     For log lines.
 * @param[in]  name     Of the way, or "auto": the first way that works.
 * @param[out] watch_p  dn_dsm_watch_by().
 * @retval DN_ERR_PARAM        there is no such way: the log line says so.
 * @retval DN_ERR_UNSUPPORTED  the way does not work here: the log line says why.
 */
dn_status_t dn_dsm_detect_choose(const char *what, const char *name, dn_dsm_watch_t *watch_p);
/** Begin with a range: dn_dsm_detect::open. */
int dn_dsm_watch_open(dn_dsm_watch_t *watch, uint8_t *at, uint64_t len);
/** dn_dsm_detect::scan. A failure ends the process with a log line, because writes would be lost. */
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

/** Sort a list into rising order. */
void dn_dsm_list_sort(dn_dsm_list_t *list);
/** Move all pages of @p from into @p list, which is empty, in rising order. @p from is empty then. */
void dn_dsm_list_take(dn_dsm_list_t *list, dn_dsm_list_t *from);

/** Adjacent pages whose permission is to change, gathered so that one system call changes all of them. */
typedef struct dn_dsm_span {
    const dn_dsm_watch_t *watch;
    uint32_t first;
    uint32_t count;
    dn_dsm_access_t from;
    dn_dsm_access_t to;
} dn_dsm_span_t;

/** Add a page that permits @p from, and is to permit @p to. */
void dn_dsm_span_add(dn_dsm_span_t *span, uint32_t page, dn_dsm_access_t from, dn_dsm_access_t to);
/** Change the permission of all pages that were added. A failure ends the process with a log line. */
void dn_dsm_span_end(dn_dsm_span_t *span);

#endif
