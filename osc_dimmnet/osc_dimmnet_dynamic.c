/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_dynamic.c
 * Dynamic windows: memory is attached and detached.
 *
 * Each process has a table of its regions behind the notes in its block. Who maps the block reads it there, without the
 * owner's help; others ask.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** Regions that can be attached at a time: 104 KiB of address space, used as far as it is needed. */
#define REGIONS 1024

typedef struct osc_table {
    uint64_t version; /**< odd while the owner changes it */
    uint64_t count;   /**< entries that are looked at; one without a base is free */
    uint64_t pad[6];
    osc_region_t region[REGIONS];
} osc_table_t;

uint64_t ompi_osc_dimmnet_regions_bytes(void)
{
    return sizeof(osc_table_t);
}

static osc_table_t *table_of(const osc_module_t *module, osc_control_t *control)
{
    return (osc_table_t *) (void *) &control->notes[module->size];
}

/** Does a region have all of these bytes, and its segment all of the region's? */
static bool region_holds(const osc_region_t *region, uint64_t at, uint64_t len)
{
    const uint64_t off = at - region->base;

    return off <= region->len && len <= region->len - off
           && (0 == region->len
               || (region->roff <= region->key.len && region->len <= region->key.len - region->roff));
}

/** @return OMPI_ERR_RMA_RANGE: no region has all of these bytes. */
static int look_up(const osc_table_t *table, uint64_t at, uint64_t len, osc_region_t *region)
{
    const uint64_t count = osc_load_u64(&table->count);

    for (uint64_t i = 0; i < count && i < REGIONS; i++) {
        const osc_region_t *entry = &table->region[i];

        if (0 != entry->base && region_holds(entry, at, len)) {
            *region = *entry;
            return OMPI_SUCCESS;
        }
    }
    return OMPI_ERR_RMA_RANGE;
}

/** The same, unless the owner changes the table meanwhile. @return false: it did. */
static bool look_up_at_rest(const osc_table_t *table, uint64_t at, uint64_t len, osc_region_t *region,
                            int *rc)
{
    const uint64_t version = osc_load_u64(&table->version);

    *rc = look_up(table, at, len, region);
    /* What was read must not have been read after the version is looked at again. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return 0 == version % 2 && version == osc_load_u64(&table->version);
}

int ompi_osc_dimmnet_own_region(const osc_module_t *module, uint64_t at, uint64_t len, osc_region_t *region)
{
    unsigned polls = 0;
    int rc;

    /* Another thread attaches, and needs nobody for it. */
    while (!look_up_at_rest(table_of(module, module->control), at, len, region, &rc)) {
        ompi_osc_dimmnet_pause(&polls);
    }
    return rc;
}

int ompi_osc_dimmnet_region(osc_module_t *module, int target, uint64_t at, uint64_t len, osc_region_t *region)
{
    osc_control_t *control = module->target[target].control;
    unsigned polls = 0;
    int rc;

    if (NULL == control) {
        rc = ompi_osc_dimmnet_ask_region(module, target, at, len, region);
        return OMPI_SUCCESS == rc && !region_holds(region, at, len) ? OMPI_ERR_RMA_RANGE : rc;
    }
    while (!look_up_at_rest(table_of(module, control), at, len, region, &rc)) {
        ompi_osc_dimmnet_wait(&polls);
    }
    return rc;
}

uint8_t *ompi_osc_dimmnet_region_here(osc_module_t *module, int target, const osc_region_t *region)
{
    osc_far_t *far = &module->far[target];
    uint8_t *here = NULL;
    void *base;

    if (target == module->rank) {
        return (uint8_t *) (uintptr_t) region->base;
    }
    if (NULL == module->target[target].control) {
        return NULL;
    }
    /* Another thread may want a region of another segment. */
    OPAL_THREAD_LOCK(&module->lock);
    bool mapped = NULL != far->mapped && far->mapped_sid == region->key.sid
                  && far->mapped_generation == region->key.generation;
    if (!mapped && DN_OK == dn_segment_map(far->peer, &region->key, &base)) {
        far->mapped = base;
        far->mapped_sid = region->key.sid;
        far->mapped_generation = region->key.generation;
        mapped = true;
    }
    if (mapped) {
        here = far->mapped + region->roff;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return here;
}

/** Begin, or end, a change of the own table. Under the module's lock. */
static void change(osc_table_t *table)
{
    __atomic_store_n(&table->version, table->version + 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int ompi_osc_dimmnet_attach(ompi_win_t *win, void *base, size_t len)
{
    osc_module_t *module = osc_module(win);
    osc_region_t region = {.base = (uintptr_t) base, .len = len};
    dn_segment_t *segment = NULL;
    osc_table_t *table;
    uint64_t i = 0;

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        return OMPI_ERR_RMA_FLAVOR;
    }
    if (0 != len && !ompi_osc_dimmnet_memory_find(base, len, &region.key, &region.roff)) {
        if (DN_OK != dn_segment_register(mca_osc_dimmnet_component.port, base, len, &segment)) {
            return OMPI_ERR_RMA_ATTACH;
        }
        dn_segment_key(segment, &region.key);
        region.roff = 0;
    }
    OPAL_THREAD_LOCK(&module->lock);
    table = table_of(module, module->control);
    while (i < REGIONS && 0 != table->region[i].base) {
        i++;
    }
    if (i < REGIONS) {
        change(table);
        table->region[i] = region;
        module->attached[i] = segment;
        if (table->count <= i) {
            table->count = i + 1;
        }
        change(table);
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    if (REGIONS == i) {
        if (NULL != segment) {
            dn_segment_free(segment);
        }
        return OMPI_ERR_RMA_ATTACH;
    }
    return OMPI_SUCCESS;
}

/** Take an entry out of the own table. */
static void drop(osc_module_t *module, osc_table_t *table, uint64_t i)
{
    change(table);
    table->region[i].base = 0;
    change(table);
    if (NULL != module->attached[i]) {
        dn_segment_free(module->attached[i]);
        module->attached[i] = NULL;
    }
}

int ompi_osc_dimmnet_detach(ompi_win_t *win, const void *base)
{
    osc_module_t *module = osc_module(win);
    int rc = OMPI_ERR_RMA_ATTACH;

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        return OMPI_ERR_RMA_FLAVOR;
    }
    OPAL_THREAD_LOCK(&module->lock);
    osc_table_t *table = table_of(module, module->control);
    for (uint64_t i = 0; OMPI_SUCCESS != rc && i < table->count; i++) {
        if (table->region[i].base == (uintptr_t) base) {
            drop(module, table, i);
            rc = OMPI_SUCCESS;
        }
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

dn_segment_t **ompi_osc_dimmnet_regions_open(void)
{
    return calloc(REGIONS, sizeof(dn_segment_t *));
}

void ompi_osc_dimmnet_regions_close(osc_module_t *module)
{
    for (uint64_t i = 0; NULL != module->attached && i < REGIONS; i++) {
        if (NULL != module->attached[i]) {
            dn_segment_free(module->attached[i]);
        }
    }
    free(module->attached);
}
