/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_handle.h"

#include <stdlib.h>

/** Slots of a table after its first growth. */
#define DN_HANDLE_SLOTS 64

void dn_handle_open(dn_handle_table_t *table, uint32_t first)
{
    *table = (dn_handle_table_t){.first = first};
}

void dn_handle_close(dn_handle_table_t *table)
{
    free(table->slot);
    dn_handle_open(table, table->first);
}

/** The generation after this one. A handle of generation 0 could be DN_HANDLE_NONE. */
static uint32_t dn_handle_next(uint32_t generation)
{
    return UINT32_MAX == generation ? 1 : generation + 1;
}

/** Double the number of slots. @return 0: memory ran out. */
static int dn_handle_grow(dn_handle_table_t *table)
{
    const uint32_t count = 0 == table->count ? DN_HANDLE_SLOTS : 2 * table->count;
    dn_handle_slot_t *slot = realloc(table->slot, count * sizeof(*slot));

    if (NULL == slot) {
        return 0;
    }
    for (uint32_t i = table->count; i < count; i++) {
        /* The list ends with an index that no slot has. */
        slot[i] = (dn_handle_slot_t){.generation = dn_handle_next(table->first), .next_free = i + 1};
    }
    table->slot = slot;
    table->first_free = table->count;
    table->count = count;
    return 1;
}

uint64_t dn_handle_add(dn_handle_table_t *table, void *object)
{
    if (table->first_free == table->count && !dn_handle_grow(table)) {
        return DN_HANDLE_NONE;
    }
    const uint32_t index = table->first_free;
    dn_handle_slot_t *slot = &table->slot[index];

    table->first_free = slot->next_free;
    slot->object = object;
    return (uint64_t) slot->generation << 32 | index;
}

void dn_handle_drop(dn_handle_table_t *table, uint64_t handle)
{
    const uint32_t index = (uint32_t) handle;
    dn_handle_slot_t *slot = &table->slot[index];

    slot->object = NULL;
    slot->generation = dn_handle_next(slot->generation);
    slot->next_free = table->first_free;
    table->first_free = index;
}
