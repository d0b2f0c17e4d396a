/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_count.h
 * Counters that any thread may count up, in structures whose members are all uint64_t.
 */
#ifndef DN_DSM_COUNT_H
#define DN_DSM_COUNT_H

#include <dn_atomic.h>
#include <stddef.h>

static inline void dn_dsm_count(uint64_t *counter, uint64_t add)
{
    dn_fetch_add_relaxed(counter, add);
}

/** Read a structure of counters. @param[out] to  Of the same type. @param[in] size  Bytes of the structure. */
static inline void dn_dsm_counted(const void *from, void *to, size_t size)
{
    for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
        ((uint64_t *) to)[i] = dn_load_relaxed(&((const uint64_t *) from)[i]);
    }
}

#endif
