/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Where units lie, by the kernel's files: on a machine made of files, of two packages with two NUMA nodes of two caches of
 * two units each, and on this machine, of which hwloc says the same.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_topo.h"

enum { UNITS = 16 };

static char root[] = "/tmp/dn-topo.XXXXXX";

static void write_file(const char *text, const char *format, unsigned unit, unsigned number)
{
    char path[256], name[128];

    snprintf(name, sizeof(name), format, unit, number);
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; NULL != (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/** The units that share something with one, where that many do: in halves, as the kernel numbers threads of a core. */
static const char *sharers(char *text, size_t len, unsigned unit, unsigned count)
{
    const unsigned first = unit % (UNITS / 2) / (count / 2) * (count / 2);

    if (2 == count) {
        snprintf(text, len, "%u,%u\n", first, first + UNITS / 2);
    } else {
        snprintf(text, len, "%u-%u,%u-%u\n", first, first + count / 2 - 1, first + UNITS / 2,
                 first + UNITS / 2 + count / 2 - 1);
    }
    return text;
}

static int make_machine(void **state)
{
    char text[64];

    assert_non_null(mkdtemp(root));
    for (unsigned unit = 0; unit < UNITS; unit++) {
        /* An older kernel has another name for it: half of the units are of such. */
        write_file(sharers(text, sizeof(text), unit, 8),
                   unit % 2 ? "cpu%u/topology/package_cpus_list" : "cpu%u/topology/core_siblings_list", unit,
                   0);
        write_file(sharers(text, sizeof(text), unit, 4), "cpu%u/node%u/cpulist", unit,
                   unit % (UNITS / 2) / 2);
        write_file("1\n", "cpu%u/cache/index0/level", unit, 0);
        write_file(sharers(text, sizeof(text), unit, 4), "cpu%u/cache/index0/shared_cpu_list", unit, 0);
        write_file("3\n", "cpu%u/cache/index1/level", unit, 0);
        write_file(sharers(text, sizeof(text), unit, 2), "cpu%u/cache/index1/shared_cpu_list", unit, 0);
    }
    return dn_unit_setup(state);
}

static int remove_machine(void **state)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

static void check_place(const char *units, uint32_t package, uint32_t node, uint32_t cache)
{
    uint32_t number[DN_TOPO_DEPTHS];

    dn_topo_place_of(root, units, number);
    assert_int_equal(number[0], package);
    assert_int_equal(number[1], node);
    assert_int_equal(number[2], cache);
}

static void units_lie_in_what_has_all_of_them(void **state)
{
    check_place("0", 1, 1, 1);
    check_place("1", 1, 1, 2);
    check_place("3", 1, 3, 4);
    check_place("15", 5, 7, 8);
    check_place("3,11\n", 1, 3, 4);
    check_place("2-3", 1, 3, 0);
    check_place("0-3,8-11", 1, 0, 0);
    check_place("3-4", 0, 0, 0);
    check_place("0-15", 0, 0, 0);
    check_place("0,100", 0, 0, 0);
}

static void what_no_file_tells_is_nowhere(void **state)
{
    check_place("99", 0, 0, 0);
    check_place("", 0, 0, 0);
    check_place("all", 0, 0, 0);
    write_file("no list", "cpu%u/topology/package_cpus_list", 5, 0);
    check_place("5", 0, 5, 6);
}

/** All units of an object are in one place, those of two objects are not. */
static void check_objects(hwloc_topology_t topology, hwloc_obj_type_t type, int depth)
{
    uint32_t seen[64] = {0};
    const int objects = hwloc_get_nbobjs_by_type(topology, type);
    hwloc_bitmap_t before = hwloc_bitmap_alloc();

    assert_non_null(before);
    for (int i = 0; i < objects && 64 > i; i++) {
        uint32_t number[DN_TOPO_DEPTHS];
        char *units = NULL;
        const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, (unsigned) i);
        /* Memory may have no units, or those of other memory. */
        if (hwloc_bitmap_iszero(object->cpuset) || hwloc_bitmap_intersects(object->cpuset, before)) {
            continue;
        }
        assert_int_equal(hwloc_bitmap_or(before, before, object->cpuset), 0);
        assert_return_code(hwloc_bitmap_list_asprintf(&units, object->cpuset), 0);
        dn_topo_place_of("/sys/devices/system/cpu", units, number);
        free(units);
        assert_int_not_equal(number[depth], 0);
        for (int other = 0; other < i; other++) {
            assert_int_not_equal(number[depth], seen[other]);
        }
        seen[i] = number[depth];
    }
    hwloc_bitmap_free(before);
}

static void hwloc_says_the_same(void **state)
{
    hwloc_topology_t topology;

    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    check_objects(topology, HWLOC_OBJ_PACKAGE, 0);
    if (0 == access("/sys/devices/system/node", R_OK)) {
        check_objects(topology, HWLOC_OBJ_NUMANODE, 1);
    }
    /* hwloc asks the processor itself where the kernel of a virtual machine knows of no caches. */
    if (0 == access("/sys/devices/system/cpu/cpu0/cache", R_OK)) {
        check_objects(topology, HWLOC_OBJ_L3CACHE, 2);
    }
    hwloc_topology_destroy(topology);
}

static void the_caller_runs_where_it_is_bound(void **state)
{
    dn_cpumask_t all, one;
    uint32_t here[DN_TOPO_DEPTHS], there[DN_TOPO_DEPTHS];
    char units[16];
    cpu_set_t before, bound;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(dn_topo_allowed(&all), DN_OK);
    assert_int_equal(dn_cpumask_weight(&all), CPU_COUNT(&before));
    for (int unit = 0; unit < CPU_SETSIZE; unit++) {
        if (!CPU_ISSET(unit, &before)) {
            continue;
        }
        CPU_ZERO(&bound);
        CPU_SET(unit, &bound);
        assert_int_equal(sched_setaffinity(0, sizeof(bound), &bound), 0);
        assert_int_equal(dn_topo_allowed(&one), DN_OK);
        assert_int_equal(dn_cpumask_weight(&one), 1);
        assert_true(dn_cpumask_within(&one, &all));
        dn_topo_place(here);
        snprintf(units, sizeof(units), "%d", unit);
        dn_topo_place_of("/sys/devices/system/cpu", units, there);
        assert_memory_equal(here, there, sizeof(here));
    }
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_lie_in_what_has_all_of_them),
        cmocka_unit_test(what_no_file_tells_is_nowhere),
        cmocka_unit_test(hwloc_says_the_same),
        cmocka_unit_test(the_caller_runs_where_it_is_bound),
    };
    return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
