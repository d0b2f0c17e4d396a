/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <hwloc.h>
#include <stdlib.h>

#include "dn_info.h"

/** The types of objects that are listed one by one. */
static const struct {
    hwloc_obj_type_t type;
    const char *name;
    const char *key;
} rows[] = {
    {HWLOC_OBJ_PACKAGE, "package", "packages"},
    {HWLOC_OBJ_NUMANODE, "NUMA node", "numa_nodes"},
    {HWLOC_OBJ_L3CACHE, "L3 cache", "l3_caches"},
};

#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))

/** How many objects of a type have a processing unit of @p set? @param[in] set  NULL: count all objects. */
static unsigned count_within(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    unsigned count = 0;
    hwloc_obj_t object = NULL;
    while (NULL != (object = hwloc_get_next_obj_by_type(topology, type, object))) {
        count += NULL == set || hwloc_bitmap_intersects(object->cpuset, set);
    }
    return count;
}

/** Bytes of memory of an object; 0: it is no memory. */
static uint64_t bytes_of(hwloc_obj_t object)
{
    switch (object->type) {
    case HWLOC_OBJ_NUMANODE:
        return object->attr->numanode.local_memory;
    case HWLOC_OBJ_L3CACHE:
        return object->attr->cache.size;
    default:
        return 0;
    }
}

static void print_text_object(const char *name, hwloc_obj_t object, const char *units)
{
    const uint64_t bytes = bytes_of(object);
    printf("  %s %u: units %s", name, object->logical_index, '\0' == *units ? "none" : units);
    if (0 != bytes) {
        printf(", %llu MiB", (unsigned long long) (bytes >> 20));
    }
    printf("\n");
}

static void print_json_object(dn_json_t *json, hwloc_obj_t object, const char *units)
{
    const uint64_t bytes = bytes_of(object);
    dn_json_object(json, NULL);
    dn_json_count(json, "index", object->logical_index);
    dn_json_text(json, "units", units);
    if (0 != bytes) {
        dn_json_count(json, "bytes", bytes);
    }
    dn_json_end_object(json);
}

static void print_objects(dn_json_t *json, hwloc_topology_t topology, size_t row)
{
    hwloc_obj_t object = NULL;
    if (NULL != json) {
        dn_json_array(json, rows[row].key);
    }
    while (NULL != (object = hwloc_get_next_obj_by_type(topology, rows[row].type, object))) {
        char *units = NULL;
        if (0 > hwloc_bitmap_list_asprintf(&units, object->cpuset)) {
            continue;
        }
        if (NULL != json) {
            print_json_object(json, object, units);
        } else {
            print_text_object(rows[row].name, object, units);
        }
        free(units);
    }
    if (NULL != json) {
        dn_json_end_array(json);
    }
}

static void print_counts(dn_json_t *json, hwloc_topology_t topology, hwloc_const_bitmap_t mine,
                         const char *units)
{
    const unsigned cores = count_within(topology, HWLOC_OBJ_CORE, NULL);
    const unsigned here = count_within(topology, HWLOC_OBJ_CORE, mine);
    const unsigned all = count_within(topology, HWLOC_OBJ_PU, NULL);
    const unsigned version = hwloc_get_api_version();
    if (NULL == json) {
        printf("Topology (hwloc %u.%u)\n", version >> 16, version >> 8 & 0xff);
        printf("  cores %u, processing units %u; this process may use cores %u, units %s\n", cores, all, here,
               units);
        return;
    }
    dn_json_count(json, "cores", cores);
    dn_json_count(json, "processing_units", all);
    dn_json_count(json, "usable_cores", here);
    dn_json_text(json, "usable_units", units);
}

int info_topology_print(dn_json_t *json)
{
    hwloc_topology_t topology;
    char *units = NULL;
    int result = -1;
    if (0 != hwloc_topology_init(&topology)) {
        fprintf(stderr, INFO_PROGRAM ": no memory for the topology\n");
        return -1;
    }
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (NULL != mine && 0 == hwloc_topology_load(topology)
        && 0 == hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS)
        && 0 <= hwloc_bitmap_list_asprintf(&units, mine)) {
        if (NULL != json) {
            dn_json_object(json, "topology");
        }
        print_counts(json, topology, mine, units);
        for (size_t row = 0; row < NUM_ROWS; row++) {
            print_objects(json, topology, row);
        }
        if (NULL != json) {
            dn_json_end_object(json);
        }
        result = 0;
    } else {
        fprintf(stderr, INFO_PROGRAM ": hwloc cannot tell what this machine is; see hwloc-info\n");
    }
    free(units);
    hwloc_bitmap_free(mine);
    hwloc_topology_destroy(topology);
    return result;
}
