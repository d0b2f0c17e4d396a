/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_topo.h
 * Which processing units this thread may use, and where in the machine the units lie. The kernel tells, by a system call and
 * some small files. A library that describes the whole machine, such as hwloc, reads a hundred files in each process.
 */
#ifndef DN_TOPO_H
#define DN_TOPO_H

#include <stdint.h>

#include "dn_types.h"

/** Words of 64 bits in a mask. */
#define DN_CPUMASK_WORDS 16

/** A set of processing units. The bit of a unit is its number in the operating system, modulo the number of bits. So two
 * units whose numbers differ by 1024 share a bit. This is rare among the units of one process. Then processes are
 * taken to share more cores than they do: callers yield without need, and threads that serve others sleep sooner. */
typedef struct dn_cpumask {
    uint64_t word[DN_CPUMASK_WORDS]; /**< a bit for each unit */
} dn_cpumask_t;

/** Put a unit into a mask. */
static inline void dn_cpumask_add(dn_cpumask_t *mask, unsigned unit)
{
    mask->word[unit / 64 % DN_CPUMASK_WORDS] |= UINT64_C(1) << unit % 64;
}

/** The units on which the calling thread may run. @retval DN_ERR_UNSUPPORTED  The kernel does not tell; the mask is
 * empty. */
DN_DEVICE_API dn_status_t dn_topo_allowed(dn_cpumask_t *mask);

/** Depths of a place: package, NUMA node, L3 cache. */
#define DN_TOPO_DEPTHS 3

/** Where the calling thread runs: the number of its package, of its NUMA node and of its L3 cache, each from 1 on and unique
 * on the host. A number is 0 where the thread may run in several of them, or the kernel does not tell. */
DN_DEVICE_API void dn_topo_place(uint32_t number[DN_TOPO_DEPTHS]);

/** As dn_topo_place(), for the units of a list in the kernel's notation ("0-3,8"). @param[in] cpus  Folder with the files of
 * the machine, such as /sys/devices/system/cpu. */
DN_DEVICE_API void dn_topo_place_of(const char *cpus, const char *units, uint32_t number[DN_TOPO_DEPTHS]);

/** Number of units in a mask. */
DN_DEVICE_API unsigned dn_cpumask_weight(const dn_cpumask_t *mask);

/** Is every unit of @p part in @p whole? */
DN_DEVICE_API int dn_cpumask_within(const dn_cpumask_t *part, const dn_cpumask_t *whole);

#endif
