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
 */
#ifndef DN_DSM_DETECT_H
#define DN_DSM_DETECT_H

#include "dimmnet.h"

/** What a page permits. */
typedef enum dn_dsm_access { DN_DSM_NONE, DN_DSM_READ, DN_DSM_WRITE } dn_dsm_access_t;

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
} dn_dsm_detect_t;

extern const dn_dsm_detect_t dn_dsm_detect_segv;
extern const dn_dsm_detect_t dn_dsm_detect_uffd;

/** The way of a name, or for "auto" the first that works. NULL: there is none. */
const dn_dsm_detect_t *dn_dsm_detect_find(const char *name);

#endif
