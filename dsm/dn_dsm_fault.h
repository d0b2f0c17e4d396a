/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_fault.h
 * Accesses that pages do not permit: one signal handler, for all ranges in which accesses are detected.
 */
#ifndef DN_DSM_FAULT_H
#define DN_DSM_FAULT_H

#include "dn_dsm_detect.h"

/** What an access was, where the machine tells. */
enum { DN_DSM_IS_READ, DN_DSM_IS_WRITE, DN_DSM_IS_UNKNOWN };

/** A range of addresses: struct dn_dsm_range. */
typedef struct dn_dsm_range dn_dsm_range_t;

/**
 * Permit an access, or end this process with a sentence. It is called in the handler, and dn_dsm_inside is counted.
 *
 * @param[in] off   Of the address in the range.
 * @param[in] kind  DN_DSM_IS_READ and so on.
 * @return NULL: the access is made again; else what to say of the address before the signal is passed on.
 */
typedef const char *(*dn_dsm_access_fn_t)(dn_dsm_range_t *range, uint64_t off, int kind);

struct dn_dsm_range {
    const char *what; /**< for log lines: "shared memory" */
    const uint8_t *at;
    uint64_t len;
    dn_dsm_access_fn_t access;
    dn_dsm_range_t *next; /**< in the list of all */
};

/** Not 0: this thread is inside of the library, which touches no range. */
extern __thread int dn_dsm_inside __attribute__((tls_model("initial-exec")));

/** Install the handler of the way's signal, unless it is there. */
dn_status_t dn_dsm_fault_watch(const dn_dsm_detect_t *way);
/** Accesses to a range are handled from now on; no two ranges overlap. It is lent until dn_dsm_range_remove(). */
void dn_dsm_range_add(dn_dsm_range_t *range);
/** They are not any more: no other thread makes one. */
void dn_dsm_range_remove(dn_dsm_range_t *range);

#endif
