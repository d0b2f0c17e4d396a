/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_topo.h"

#include <hwloc.h>
#include <pthread.h>
#include <string.h>

/** More units than Linux is built for: where a set that has no end is no longer followed. */
#define DN_TOPO_UNITS 65536

dn_status_t dn_topo_allowed(dn_cpumask_t *mask)
{
    dn_status_t status = DN_ERR_UNSUPPORTED;
    hwloc_topology_t topology;

    memset(mask, 0, sizeof(*mask));
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (NULL == set) {
        return DN_ERR_NOMEM;
    }
    if (0 != hwloc_topology_init(&topology)) {
        goto err_free_set;
    }
    /* Only the list of units matters here: leave out caches and devices, which take long to discover. */
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (0 == hwloc_topology_load(topology) && 0 == hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS)) {
        for (int unit = hwloc_bitmap_first(set); 0 <= unit && unit < DN_TOPO_UNITS;
             unit = hwloc_bitmap_next(set, unit)) {
            dn_cpumask_add(mask, (unsigned) unit);
        }
        status = DN_OK;
    }
    hwloc_topology_destroy(topology);
err_free_set:
    hwloc_bitmap_free(set);
    return status;
}

/** The number of the only object of a type that has all of these units, or 0. */
static uint32_t dn_topo_object_of(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    for (hwloc_obj_t obj = hwloc_get_next_obj_by_type(topology, type, NULL); NULL != obj;
         obj = hwloc_get_next_obj_by_type(topology, type, obj)) {
        if (hwloc_bitmap_isincluded(set, obj->cpuset)) {
            return obj->logical_index + 1;
        }
    }
    return 0;
}

static const hwloc_obj_type_t dn_topo_type[DN_TOPO_DEPTHS] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE,
                                                              HWLOC_OBJ_L3CACHE};

/** Loaded once, since that takes milliseconds; only read after that. NULL: hwloc could not. */
static hwloc_topology_t dn_topo_known;
static pthread_once_t dn_topo_once = PTHREAD_ONCE_INIT;

static void dn_topo_load(void)
{
    hwloc_topology_t topology;

    if (0 != hwloc_topology_init(&topology)) {
        return;
    }
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (int i = 0; i < DN_TOPO_DEPTHS; i++) {
        hwloc_topology_set_type_filter(topology, dn_topo_type[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    }
    if (0 != hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return;
    }
    dn_topo_known = topology;
}

/** The library goes, with the process or before it. */
static __attribute__((destructor)) void dn_topo_unload(void)
{
    if (NULL != dn_topo_known) {
        hwloc_topology_destroy(dn_topo_known);
    }
}

void dn_topo_place(uint32_t number[DN_TOPO_DEPTHS])
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    memset(number, 0, DN_TOPO_DEPTHS * sizeof(*number));
    (void) pthread_once(&dn_topo_once, dn_topo_load);
    /* The binding is asked for each time: it may have changed. */
    if (NULL != set && NULL != dn_topo_known
        && 0 == hwloc_get_cpubind(dn_topo_known, set, HWLOC_CPUBIND_PROCESS)) {
        for (int i = 0; i < DN_TOPO_DEPTHS; i++) {
            number[i] = dn_topo_object_of(dn_topo_known, dn_topo_type[i], set);
        }
    }
    hwloc_bitmap_free(set);
}

unsigned dn_cpumask_weight(const dn_cpumask_t *mask)
{
    unsigned weight = 0;
    for (int i = 0; i < DN_CPUMASK_WORDS; i++) {
        weight += (unsigned) __builtin_popcountll(mask->word[i]);
    }
    return weight;
}

int dn_cpumask_within(const dn_cpumask_t *part, const dn_cpumask_t *whole)
{
    for (int i = 0; i < DN_CPUMASK_WORDS; i++) {
        if (0 != (part->word[i] & ~whole->word[i])) {
            return 0;
        }
    }
    return 1;
}
