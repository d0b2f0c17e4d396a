/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_handle.h
 * A table of handles: what crosses to another process instead of an address. A handle is the index of a slot and the slot's
 * generation, so one that was dropped is not found again until its slot has been used 2^32 times.
 *
 * Ownership: objects are the caller's; the table keeps their addresses.
 * Threads:   none of this locks.
 */
#ifndef DN_HANDLE_H
#define DN_HANDLE_H

#include <stdint.h>

#include "dn_types.h"

/** The handle that no object has. */
#define DN_HANDLE_NONE UINT64_C(0)

typedef struct dn_handle_slot {
    void *object; /**< NULL: the slot is free */
    uint32_t generation;
    uint32_t next_free;
} dn_handle_slot_t;

/** All zero but `first`, which dn_handle_open() sets. Private. */
typedef struct dn_handle_table {
    dn_handle_slot_t *slot;
    uint32_t count;
    uint32_t first_free; /**< count: none is free */
    uint32_t first;      /**< generation of a new slot */
} dn_handle_table_t;

/** Begin with no handles. @param[in] first  Where generations begin to count, for tests of long runs. */
DN_API void dn_handle_open(dn_handle_table_t *table, uint32_t first);
/** Free the table. Its handles find nothing any more. */
DN_API void dn_handle_close(dn_handle_table_t *table);

/** A handle of an object, not NULL. DN_HANDLE_NONE: memory ran out. */
DN_API uint64_t dn_handle_add(dn_handle_table_t *table, void *object);
/** The handle was taken and not dropped: it finds nothing from now on. */
DN_API void dn_handle_drop(dn_handle_table_t *table, uint64_t handle);

/** The object of a handle that came from anywhere. NULL: it has none. */
static inline void *dn_handle_find(const dn_handle_table_t *table, uint64_t handle)
{
    const uint32_t index = (uint32_t) handle;

    return index < table->count && (uint32_t) (handle >> 32) == table->slot[index].generation
               ? table->slot[index].object
               : 0;
}

/** The object of a slot, for a caller that goes through all: those of indices from 0 to
 * dn_handle_table_t::count. NULL: it is free. */
static inline void *dn_handle_object(const dn_handle_table_t *table, uint32_t index)
{
    return index < table->count ? table->slot[index].object : 0;
}

#endif
