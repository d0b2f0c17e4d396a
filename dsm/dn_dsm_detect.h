/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_detect.h
 * Ways of detecting accesses to a range of memory that is mapped from a file in memory. The same pages are mapped elsewhere, too,
 * where they are always readable and writable.
 *
 * An access that a page does not permit raises the way's signal in the thread that has made it, with the address in si_addr. The
 * handler makes the page accessible, and returns: the access is made again.
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

/** A way of detecting accesses. */
typedef struct dn_dsm_detect {
    const char *name;
    int signal; /**< that an access raises */
    /** Why it does not work on this system, in a few words; NULL: it does. */
    const char *(*why_not)(void);
    /** Begin with a range, all of which permits nothing. @return 0, or what errno would be. */
    int (*open)(void *at, uint64_t len);
    /** End: the range is unmapped by the caller. */
    void (*close)(void);
    /** Have pages, which all permit @p from, permit @p to. @return 0, or what errno would be. Any thread. */
    int (*set)(void *at, uint64_t len, dn_dsm_access_t from, dn_dsm_access_t to);
    /**
     * NULL: a write to a page that permits DN_DSM_READ raises the signal. Else it does not, and this finds pages of a range that may have
     * been written, in rising order: all but those that permit DN_DSM_READ since before this call, and have not been written
     * since. Setting them from DN_DSM_WRITE to DN_DSM_READ then tells writes after that apart.
     *
     * @param[in] surely  Find only those that are here and permit writes: touched since, but for some that the kernel has taken out.
     * @return 0, or what errno would be.
     */
    int (*scan)(void *at, uint64_t len, bool surely, dn_dsm_found_fn_t found, void *arg);
} dn_dsm_detect_t;

extern const dn_dsm_detect_t dn_dsm_detect_segv;
extern const dn_dsm_detect_t dn_dsm_detect_uffd;
extern const dn_dsm_detect_t dn_dsm_detect_scan;

/** The way of a name, or for "auto" the first that works. NULL: there is none. */
const dn_dsm_detect_t *dn_dsm_detect_find(const char *name);

#endif
