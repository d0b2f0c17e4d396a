/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_idle.c
 * A process that waits in a collective looks after messages of other processes. It waits in the manner of all its waits (dn_wait.h).
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Polls after which a process that shares its core gives it away: FAR_YIELD_POLLS if it waits for another host. The other processes of
 * this host then mostly wait for this process, so it gives the core away late: a barrier of 2 hosts x 2 ranks takes 15 us, but 35 us
 * if the others get a turn each time (perf/compare_hosts). */
#define YIELD_POLLS     10
#define FAR_YIELD_POLLS 2000

bool coll_llcm_idle(dn_ompi_wait_t *wait, bool near, unsigned polls, uint64_t steps)
{
    if (!near) {
        (void) dn_progress(coll_llcm.port);
    }
    const bool due = dn_load_relaxed(&coll_llcm.oversubscribed) || dn_ompi_is_crowded()
                         ? polls >= (near ? YIELD_POLLS : FAR_YIELD_POLLS)
                         : 0 == polls % dn_ompi_params.coll.spin_polls;
    if (!due || !dn_ompi_wait(wait, steps)) {
        return false;
    }
    (void) dn_fetch_add_relaxed(&coll_llcm.naps, 1);
    return true;
}
