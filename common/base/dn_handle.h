/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_handle.h
 * A table of handles. A handle names an object to another process, in place of an address. A handle is the index of a slot and
 * the slot's generation, so a dropped handle does not find an object again until its slot has been used some 2^32 times.
 *
 * Ownership: objects are the caller's; the table keeps their addresses.
 * Threads:   none of these functions locks.
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
    uint32_t first_free; /**< first free slot; `count`: none is free */
    uint32_t first;      /**< generation before that of a new slot */
} dn_handle_table_t;

/** Open a table without handles. @param[in] first  Generation before the first one of a slot, for tests of long runs. */
DN_API void dn_handle_open(dn_handle_table_t *table, uint32_t first);
/** Free the table. Its handles find no object any more. */
DN_API void dn_handle_close(dn_handle_table_t *table);

/** Make a handle of an object. @param[in] object  Not NULL. @return DN_HANDLE_NONE: memory ran out. */
DN_API uint64_t dn_handle_add(dn_handle_table_t *table, void *object);
/** Drop a handle of dn_handle_add(), once: it finds no object from now on. */
DN_API void dn_handle_drop(dn_handle_table_t *table, uint64_t handle);

/** Find the object of a handle, which may have any value. NULL: the handle has no object. */
static inline void *dn_handle_find(const dn_handle_table_t *table, uint64_t handle)
{
    const uint32_t index = (uint32_t) handle;

    return index < table->count && (uint32_t) (handle >> 32) == table->slot[index].generation
               ? table->slot[index].object
               : 0;
}

/** The object of a slot, for a caller that goes through all slots: their indices go from 0 to dn_handle_table_t::count - 1.
 * NULL: the slot is free. */
static inline void *dn_handle_object(const dn_handle_table_t *table, uint32_t index)
{
    return index < table->count ? table->slot[index].object : 0;
}

#endif
