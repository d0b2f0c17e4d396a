/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_dynamic.c
 * Dynamic windows: memory is attached and detached.
 *
 * Each process has a table of its regions in private memory. By this table it answers processes that ask. A mirror of the table lies
 * behind the notes in its block. Processes that map the block read the mirror, without the owner's help. They could also write there,
 * so the owner never reads its mirror, and a reader trusts no word of it: the reader copies an entry, and checks the copy.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** The most regions that a process has attached at a time. The table takes 104 KiB of address space; memory is used only for entries that
 * were used. */
#define REGIONS 1024

/** The regions that are attached. Readers may read while the owner writes. The owner makes the version odd before a change, and even
 * after it. */
typedef struct osc_table {
    uint64_t version; /**< odd while the owner changes the table */
    uint64_t count;   /**< entries that have been used so far; an entry with base 0 is free */
    uint64_t pad[6];
    dn_rma_region_t region[REGIONS];
} osc_table_t;

/** A segment of another process that was mapped. */
typedef struct osc_mapped {
    dn_key_t key;
    uint8_t *base; /**< NULL: no segment was mapped */
} osc_mapped_t;

struct osc_regions {
    osc_table_t table;              /**< of this process */
    dn_segment_t *segment[REGIONS]; /**< registered for a region; NULL: its memory is in another segment */
    osc_mapped_t mapped[];          /**< by rank: the segment that was mapped last */
};

uint64_t ompi_osc_dimmnet_regions_bytes(void)
{
    return sizeof(osc_table_t);
}

/** The mirror of a table, in a block. */
static osc_table_t *mirror_of(const osc_module_t *module, dn_rma_control_t *control)
{
    return (osc_table_t *) (void *) &control->notes[module->rma.size];
}

/** Does a region have all of these bytes, and does its segment have all bytes of the region? */
static bool region_holds(const dn_rma_region_t *region, uint64_t at, uint64_t len)
{
    const uint64_t off = at - region->base;

    return off <= region->len && len <= region->len - off
           && (0 == region->len
               || (region->roff <= region->key.len && region->len <= region->key.len - region->roff));
}

/** Copy an entry, each word once. The caller checks and uses the copy only. */
static void copy_entry(dn_rma_region_t *region, const dn_rma_region_t *entry)
{
    uint64_t *to = (uint64_t *) (void *) region;
    const uint64_t *from = (const uint64_t *) (const void *) entry;

    _Static_assert(0 == sizeof(*region) % sizeof(*to), "an entry is whole words");
    for (size_t i = 0; i < sizeof(*region) / sizeof(*to); i++) {
        /* No order is needed here: look_up_at_rest() reads the version before and after. */
        to[i] = dn_load_relaxed(&from[i]);
    }
}

/** Find the region that has all of these bytes. @return OMPI_ERR_RMA_RANGE: there is none. */
static int look_up(const osc_table_t *table, uint64_t at, uint64_t len, dn_rma_region_t *region)
{
    const uint64_t count = dn_load_acquire(&table->count);

    for (uint64_t i = 0; i < count && i < REGIONS; i++) {
        if (0 == dn_load_relaxed(&table->region[i].base)) {
            continue;
        }
        copy_entry(region, &table->region[i]);
        if (0 != region->base && region_holds(region, at, len)) {
            return OMPI_SUCCESS;
        }
    }
    return OMPI_ERR_RMA_RANGE;
}

/** As look_up(). @return false: the owner has changed the table meanwhile, and *rc says nothing. */
static bool look_up_at_rest(const osc_table_t *table, uint64_t at, uint64_t len, dn_rma_region_t *region,
                            int *rc)
{
    const uint64_t version = dn_load_acquire(&table->version);

    *rc = look_up(table, at, len, region);
    /* The fence keeps the loads of look_up() before the second load of the version. */
    dn_fence_acquire();
    return 0 == version % 2 && version == dn_load_acquire(&table->version);
}

int ompi_osc_dimmnet_own_region(const dn_rma_win_t *win, uint64_t at, uint64_t len, dn_rma_region_t *region)
{
    const osc_module_t *module = win->user;
    unsigned polls = 0;
    int rc;

    /* Meanwhile another thread attaches or detaches. It waits for no other thread. */
    while (!look_up_at_rest(&module->regions->table, at, len, region, &rc)) {
        dn_rma_pause(&polls);
    }
    return OMPI_SUCCESS == rc;
}

int ompi_osc_dimmnet_region(osc_module_t *module, int target, uint64_t at, uint64_t len,
                            dn_rma_region_t *region)
{
    dn_rma_control_t *control = module->rma.target[target].control;
    dn_rma_wait_t wait = {.polls = 0};
    int rc;

    if (target == module->rma.rank) {
        return ompi_osc_dimmnet_own_region(&module->rma, at, len, region) ? OMPI_SUCCESS : OMPI_ERR_RMA_RANGE;
    }
    if (NULL == control) {
        rc = osc_error(dn_rma_ask_region(&module->rma, target, at, len, region));
        return OMPI_SUCCESS == rc && !region_holds(region, at, len) ? OMPI_ERR_RMA_RANGE : rc;
    }
    while (!look_up_at_rest(mirror_of(module, control), at, len, region, &rc)) {
        if (osc_wait_long(&wait) && !dn_rma_lives(&module->rma, target)) {
            return OMPI_ERR_UNREACH;
        }
    }
    return rc;
}

uint8_t *ompi_osc_dimmnet_region_here(osc_module_t *module, int target, const dn_rma_region_t *region)
{
    osc_mapped_t *last = &module->regions->mapped[target];
    uint8_t *here = NULL;
    void *base;

    if (target == module->rma.rank) {
        return (uint8_t *) (uintptr_t) region->base;
    }
    if (NULL == module->rma.target[target].control) {
        return NULL;
    }
    /* Under the lock: another thread may want a region of another segment. */
    OPAL_THREAD_LOCK(&module->lock);
    bool mapped = NULL != last->base && last->key.sid == region->key.sid
                  && last->key.generation == region->key.generation && last->key.len == region->key.len;
    if (!mapped && DN_OK == dn_segment_map(module->rma.target[target].peer, &region->key, &base)) {
        last->base = base;
        last->key = region->key;
        mapped = true;
    }
    if (mapped) {
        here = last->base + region->roff;
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return here;
}

/** Begin a change of a table: its version becomes @p next, which is odd. Under the module's lock. */
static void begin_change(osc_table_t *table, uint64_t next)
{
    dn_store_relaxed(&table->version, next);
    /* Pairs with the fence in look_up_at_rest(): a reader that reads a word of the change then reads this version, or a later one. */
    dn_fence_release();
}

/** Set an entry of the own table and of its mirror. Under the module's lock. */
static void set_entry(osc_module_t *module, uint64_t i, const dn_rma_region_t *region)
{
    osc_table_t *own = &module->regions->table;
    osc_table_t *const tables[] = {own, mirror_of(module, module->rma.control)};
    const uint64_t version = own->version;
    const uint64_t count = own->count <= i ? i + 1 : own->count;

    for (int k = 0; k < 2; k++) {
        const uint64_t *from = (const uint64_t *) (const void *) region;
        uint64_t *to = (uint64_t *) (void *) &tables[k]->region[i];

        begin_change(tables[k], version + 1);
        for (size_t word = 0; word < sizeof(*region) / sizeof(*to); word++) {
            dn_store_relaxed(&to[word], from[word]);
        }
        dn_store_relaxed(&tables[k]->count, count);
        /* Pairs with the first load in look_up_at_rest(): a reader of this version sees the whole change. */
        dn_store_release(&tables[k]->version, version + 2);
    }
}

int ompi_osc_dimmnet_attach(ompi_win_t *win, void *base, size_t len)
{
    osc_module_t *module = osc_module(win);
    dn_rma_region_t region = {.base = (uintptr_t) base, .len = len};
    dn_segment_t *segment = NULL;
    uint64_t i = 0;

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        return OMPI_ERR_RMA_FLAVOR;
    }
    if (0 != len
        && 0 == dn_pieces_find(&mca_osc_dimmnet_component.pieces, base, len, &region.key, &region.roff)) {
        if (DN_OK != dn_segment_register(mca_osc_dimmnet_component.port, base, len, &segment)) {
            return OMPI_ERR_RMA_ATTACH;
        }
        dn_segment_key(segment, &region.key);
        region.roff = 0;
    }
    OPAL_THREAD_LOCK(&module->lock);
    while (i < REGIONS && 0 != module->regions->table.region[i].base) {
        i++;
    }
    if (i < REGIONS) {
        set_entry(module, i, &region);
        module->regions->segment[i] = segment;
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

/** Take an entry out of the own table and its mirror. Under the module's lock. */
static void dynamic_drop(osc_module_t *module, uint64_t i)
{
    static const dn_rma_region_t none;

    set_entry(module, i, &none);
    if (NULL != module->regions->segment[i]) {
        dn_segment_free(module->regions->segment[i]);
        module->regions->segment[i] = NULL;
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
    for (uint64_t i = 0; OMPI_SUCCESS != rc && i < module->regions->table.count; i++) {
        if (module->regions->table.region[i].base == (uintptr_t) base) {
            dynamic_drop(module, i);
            rc = OMPI_SUCCESS;
        }
    }
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

struct osc_regions *ompi_osc_dimmnet_regions_open(int size)
{
    return calloc(1, sizeof(struct osc_regions) + (size_t) size * sizeof(osc_mapped_t));
}

void ompi_osc_dimmnet_regions_close(osc_module_t *module)
{
    for (uint64_t i = 0; NULL != module->regions && i < REGIONS; i++) {
        if (NULL != module->regions->segment[i]) {
            dn_segment_free(module->regions->segment[i]);
        }
    }
    free(module->regions);
}
