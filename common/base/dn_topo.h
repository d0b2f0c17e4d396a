/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_topo.h
 * Which processing units this thread may use, and where they lie: by the kernel's own words, a system call and some small
 * files. A library that knows all of a machine, as hwloc does, would read a hundred files in each process.
 */
#ifndef DN_TOPO_H
#define DN_TOPO_H

#include <stdint.h>

#include "dn_types.h"

/** Words of 64 bits in a mask. */
#define DN_CPUMASK_WORDS 16

/** Processing units by their number in the operating system, modulo the bits that there are: two whose numbers
 * are 1024 apart are one here. That is rare among the units of a process, and costs no more than that a
 * caller yields. */
typedef struct dn_cpumask {
    uint64_t word[DN_CPUMASK_WORDS]; /**< a bit for each unit */
} dn_cpumask_t;

/** Put a unit into a mask. */
static inline void dn_cpumask_add(dn_cpumask_t *mask, unsigned unit)
{
    mask->word[unit / 64 % DN_CPUMASK_WORDS] |= UINT64_C(1) << unit % 64;
}

/** The units where the caller may run. @retval DN_ERR_UNSUPPORTED  The kernel does not tell; the mask is
 * empty. */
DN_DEVICE_API dn_status_t dn_topo_allowed(dn_cpumask_t *mask);

/** Package, NUMA node, L3 cache. */
#define DN_TOPO_DEPTHS 3

/** Where the caller runs: of each of those a number, from 1 on, by which it differs from all others of the
 * host; 0 where the caller may run in several, or the kernel does not tell. */
DN_DEVICE_API void dn_topo_place(uint32_t number[DN_TOPO_DEPTHS]);

/** The same for units of a list such as the kernel writes ("0-3,8"), on the machine that the files below @p cpus, the
 * kernel's /sys/devices/system/cpu, describe. */
DN_DEVICE_API void dn_topo_place_of(const char *cpus, const char *units, uint32_t number[DN_TOPO_DEPTHS]);

/** Number of units in a mask. */
DN_DEVICE_API unsigned dn_cpumask_weight(const dn_cpumask_t *mask);

/** Is every unit of @p part in @p whole? */
DN_DEVICE_API int dn_cpumask_within(const dn_cpumask_t *part, const dn_cpumask_t *whole);

#endif
