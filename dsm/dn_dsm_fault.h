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

/** The kind of an access, where the machine tells. */
enum { DN_DSM_IS_READ, DN_DSM_IS_WRITE, DN_DSM_IS_UNKNOWN };

/** A range of addresses: struct dn_dsm_range. */
typedef struct dn_dsm_range dn_dsm_range_t;

/**
 * Permit an access, or end this process with a log line. Called in the handler, with dn_dsm_inside counted up.
 *
 * @param[in] off   Offset of the address in the range.
 * @param[in] kind  DN_DSM_IS_READ and so on.
 * @return NULL: the thread makes the access again; else a text on the address, for a log line. Then the signal is passed on.
 */
typedef const char *(*dn_dsm_access_fn_t)(dn_dsm_range_t *range, uint64_t off, int kind);

struct dn_dsm_range {
    const char *what; /**< for log lines: "shared memory" */
    const uint8_t *at;
    uint64_t len;
    dn_dsm_access_fn_t access;
    dn_dsm_range_t *next; /**< in the list of all */
};

/** Not 0: this thread is inside of the library. There it touches no range. */
extern __thread int dn_dsm_inside __attribute__((tls_model("initial-exec")));

/** Install the handler of the way's signal, unless it is there. */
dn_status_t dn_dsm_fault_watch(const dn_dsm_detect_t *way);
/** Handle accesses to a range from now on; no two ranges overlap. @p range is lent until dn_dsm_range_remove(). */
void dn_dsm_range_add(dn_dsm_range_t *range);
/** Handle accesses to a range no more. No other thread accesses the range. */
void dn_dsm_range_remove(dn_dsm_range_t *range);

#endif
