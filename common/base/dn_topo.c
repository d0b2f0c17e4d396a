/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_topo.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/** More processing units than Linux can be built for. */
#define DN_TOPO_UNITS 16384
#define DN_TOPO_WORDS (DN_TOPO_UNITS / 64)
/** More caches than a processing unit has. */
#define DN_TOPO_CACHES 10
#define DN_TOPO_PATH   512

/** A set of processing units, by their numbers. */
typedef struct dn_topo_set {
    uint64_t word[DN_TOPO_WORDS];
} dn_topo_set_t;

/** The least unit of a set, or DN_TOPO_UNITS. */
static unsigned dn_topo_first(const dn_topo_set_t *set)
{
    for (unsigned i = 0; i < DN_TOPO_WORDS; i++) {
        if (0 != set->word[i]) {
            return 64 * i + (unsigned) __builtin_ctzll(set->word[i]);
        }
    }
    return DN_TOPO_UNITS;
}

/** The units on which the calling thread may run. @return 0: the kernel does not tell. */
static int dn_topo_own(dn_topo_set_t *set)
{
    _Static_assert(sizeof(set->word[0]) == sizeof(__cpu_mask), "cpu_set_t is made of such words, too");
    return 0 == sched_getaffinity(0, sizeof(*set), (cpu_set_t *) (void *) set);
}

dn_status_t dn_topo_allowed(dn_cpumask_t *mask)
{
    dn_topo_set_t set;

    memset(mask, 0, sizeof(*mask));
    if (!dn_topo_own(&set)) {
        return DN_ERR_UNSUPPORTED;
    }
    for (unsigned i = 0; i < DN_TOPO_WORDS; i++) {
        mask->word[i % DN_CPUMASK_WORDS] |= set.word[i];
    }
    return DN_OK;
}

/** Read a list such as "0-3,8". @return its least unit; DN_TOPO_UNITS: the file holds no list, or an empty one. */
static unsigned dn_topo_scan(FILE *file, dn_topo_set_t *set)
{
    unsigned first, last;

    memset(set, 0, sizeof(*set));
    do {
        if (1 != fscanf(file, "%u", &first)) {
            break;
        }
        int next = getc(file);
        last = first;
        if ('-' == next) {
            if (1 != fscanf(file, "%u", &last)) {
                break;
            }
            next = getc(file);
        }
        for (unsigned unit = first; unit <= last && DN_TOPO_UNITS > unit; unit++) {
            set->word[unit / 64] |= UINT64_C(1) << unit % 64;
        }
        if (',' != next) {
            break;
        }
    } while (1);
    return dn_topo_first(set);
}

/** A number for the list of units in a file, if the list holds all units of a set; else 0. */
static uint32_t dn_topo_number(const char *path, const dn_topo_set_t *part)
{
    dn_topo_set_t whole;
    FILE *file = fopen(path, "re");

    if (NULL == file) {
        return 0;
    }
    const unsigned least = dn_topo_scan(file, &whole);
    fclose(file);
    for (unsigned i = 0; i < DN_TOPO_WORDS; i++) {
        if (0 != (part->word[i] & ~whole.word[i])) {
            return 0;
        }
    }
    return least + 1;
}

static uint32_t dn_topo_package(const char *unit, const dn_topo_set_t *set)
{
    char path[DN_TOPO_PATH];

    snprintf(path, sizeof(path), "%s/topology/package_cpus_list", unit);
    const uint32_t number = dn_topo_number(path, set);
    if (0 != number) {
        return number;
    }
    /* Its name before Linux 5.3. */
    snprintf(path, sizeof(path), "%s/topology/core_siblings_list", unit);
    return dn_topo_number(path, set);
}

static uint32_t dn_topo_node(const char *unit, const dn_topo_set_t *set)
{
    char path[DN_TOPO_PATH];
    unsigned node;
    uint32_t number = 0;
    DIR *folder = opendir(unit);

    for (struct dirent *entry; NULL != folder && NULL != (entry = readdir(folder));) {
        if (1 == sscanf(entry->d_name, "node%u", &node)) {
            snprintf(path, sizeof(path), "%s/node%u/cpulist", unit, node);
            number = dn_topo_number(path, set);
            break;
        }
    }
    if (NULL != folder) {
        closedir(folder);
    }
    return number;
}

static uint32_t dn_topo_cache(const char *unit, const dn_topo_set_t *set)
{
    char path[DN_TOPO_PATH];

    for (int i = 0; i < DN_TOPO_CACHES; i++) {
        int level = 0;
        snprintf(path, sizeof(path), "%s/cache/index%d/level", unit, i);
        FILE *file = fopen(path, "re");
        if (NULL == file) {
            break;
        }
        const int told = fscanf(file, "%d", &level);
        fclose(file);
        if (1 == told && 3 == level) {
            snprintf(path, sizeof(path), "%s/cache/index%d/shared_cpu_list", unit, i);
            return dn_topo_number(path, set);
        }
    }
    return 0;
}

/** Find the place of a set by the files of one of its units. A number is 0 where the rest of the set lies elsewhere. */
static void dn_topo_look(const char *cpus, const dn_topo_set_t *set, uint32_t number[DN_TOPO_DEPTHS])
{
    char unit[DN_TOPO_PATH / 2];

    snprintf(unit, sizeof(unit), "%s/cpu%u", cpus, dn_topo_first(set));
    number[0] = dn_topo_package(unit, set);
    number[1] = dn_topo_node(unit, set);
    number[2] = dn_topo_cache(unit, set);
}

void dn_topo_place_of(const char *cpus, const char *units, uint32_t number[DN_TOPO_DEPTHS])
{
    dn_topo_set_t set;
    FILE *file = fmemopen((void *) (uintptr_t) units, strlen(units), "r");

    memset(number, 0, DN_TOPO_DEPTHS * sizeof(*number));
    if (NULL == file) {
        return;
    }
    if (DN_TOPO_UNITS > dn_topo_scan(file, &set)) {
        dn_topo_look(cpus, &set, number);
    }
    fclose(file);
}

void dn_topo_place(uint32_t number[DN_TOPO_DEPTHS])
{
    dn_topo_set_t set;

    memset(number, 0, DN_TOPO_DEPTHS * sizeof(*number));
    if (dn_topo_own(&set)) {
        dn_topo_look("/sys/devices/system/cpu", &set, number);
    }
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
