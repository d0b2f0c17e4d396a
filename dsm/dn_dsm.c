/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm.c
 * Calls on open shared memory; transfers, and how a process waits. */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** How long to wait until progress tells which process is lost. Mostly the next progress does. */
#define DN_DSM_LOST_NS UINT64_C(1000000000)

/** @name Waiting */
/** @{ */
/** A thread begins a wait. Relaxed: the server only looks whether it is needed, and looks again soon. */
static void dn_dsm_wait_begins(dn_dsm_t *dsm)
{
    (void) dn_fetch_add_relaxed(&dsm->waits, (UINT64_C(1) << 32) + 1);
}

static void dn_dsm_wait_ends(dn_dsm_t *dsm)
{
    (void) dn_fetch_add_relaxed(&dsm->waits, UINT64_MAX);
}

dn_status_t dn_dsm_wait(dn_dsm_t *dsm, dn_wait_t *wait, unsigned flags)
{
    dn_dsm_wait_begins(dsm);
    dn_dsm_pause(dsm->port, wait, flags);
    dn_dsm_wait_ends(dsm);
    return 0 != dn_dsm_gone(dsm) && !dn_dsm_is_closing(dsm) ? DN_ERR_UNREACH : DN_OK;
}

dn_status_t dn_dsm_end(dn_dsm_t *dsm, dn_dsm_op_t *op)
{
    const bool waits = 0 != dn_load_relaxed_u32(&op->under_way);

    if (waits) {
        dn_dsm_wait_begins(dsm);
    }
    /* The wait goes on also when a process is gone: the memory is lent until the device returns it. */
    const dn_status_t status = dn_dsm_op_end(op, dsm->port);
    if (waits) {
        dn_dsm_wait_ends(dsm);
    }

    /* If a process is gone, any error of the device counts as DN_ERR_UNREACH: the memory of that process is gone, too. */
    return DN_OK == status || DN_OK == dn_dsm_is_whole(dsm) ? status : DN_ERR_UNREACH;
}

dn_status_t dn_dsm_move(dn_dsm_t *dsm, uint32_t rank, dn_xfer_t *xfer, bool write)
{
    dn_dsm_op_t op;

    dn_dsm_op_start(&op, dsm->port, dsm->peer[rank], xfer, write);
    return dn_dsm_end(dsm, &op);
}

dn_status_t dn_dsm_amo(dn_dsm_t *dsm, uint32_t rank, dn_amo_t *amo, uint64_t *old_p)
{
    dn_dsm_op_t op;
    dn_status_t status;

    amo->comp = dn_dsm_op_begin(&op);
    amo->result = old_p;
    while (DN_ERR_AGAIN == (status = dn_atomic(dsm->peer[rank], amo))) {
        (void) dn_progress(dsm->port);
    }
    dn_dsm_op_begun(&op, status);
    return dn_dsm_end(dsm, &op);
}
/** @} */

dn_status_t dn_dsm_heard(dn_dsm_t *dsm, dn_status_t status, const char *what)
{
    if (DN_ERR_UNREACH != status || dn_dsm_is_closing(dsm)) {
        return status;
    }
    const uint64_t until = dn_dsm_clock() + DN_DSM_LOST_NS;
    /* H1: pairs with H0. The log line comes before any call returns. */
    while (0 == dn_dsm_gone(dsm) && !dn_dsm_is_closing(dsm)
           && 0 == (DN_DSM_SAID & dn_load_acquire_u32(&dsm->unheard))) {
        /* Relaxed: the bit only chooses the thread that says it. */
        if (dn_dsm_clock() > until && 0 == dn_fetch_or_relaxed(&dsm->unheard, DN_DSM_SAYS)) {
            dn_log_error(
                "shared memory: %s has failed, as a process is not reached from here, or another one has "
                "given up",
                what);
            (void) dn_fetch_or_acq_rel(&dsm->unheard, DN_DSM_SAID); /* H0 */
            break;
        }
        if (0 == dn_progress(dsm->port)) {
            sched_yield();
        }
    }
    return status;
}

dn_status_t dn_dsm_must(dn_dsm_t *dsm, dn_status_t status, const char *what)
{
    if (DN_OK != status && DN_ERR_UNREACH != status) {
        dn_log_error("shared memory: %s has failed half way (%s), and the others would wait for it for ever: "
                     "this process ends",
                     what, dn_strerror(status));
        _exit(EXIT_FAILURE);
    }
    return dn_dsm_heard(dsm, status, what);
}

/** @name The gate */
/** @{ */
dn_status_t dn_dsm_gate_enter(dn_dsm_t *dsm, const char *what)
{
    /* Relaxed: where the program orders this call after a barrier, the load finds that barrier gone, as it is of the same word. */
    uint32_t gate = dn_load_relaxed_u32(&dsm->gate);

    do {
        if (DN_DSM_GATE_ALL <= gate) {
            dn_log_error("shared memory: %s while another thread of the process is in a barrier: order them",
                         what);
            return DN_ERR_PARAM;
        }
        /* G1: pairs with G0 in dn_dsm_gate_leave(): a call that is let in finds what the last barrier has done. All changes of the word
         * are in one order: either this one finds the barrier that comes, or the barrier finds this one. */
    } while (!dn_cas_weak_acq_rel(&dsm->gate, &gate, gate + 1));
    return DN_OK;
}

void dn_dsm_gate_close(dn_dsm_t *dsm, const char *what)
{
    if (0 != dn_fetch_add_acq_rel(&dsm->gate, DN_DSM_GATE_ALL)) { /* G1 */
        dn_log_error(
            "shared memory: %s while another thread of the process locks, releases or acquires, or is "
            "in a barrier: order them; this process ends",
            what);
        _exit(EXIT_FAILURE);
    }
}
/** @} */

/** @name Memory */
/** @{ */
uint32_t dn_dsm_rank(const dn_dsm_t *dsm)
{
    return dsm->rank;
}

uint32_t dn_dsm_ranks(const dn_dsm_t *dsm)
{
    return dsm->ranks;
}

uint32_t dn_dsm_host(const dn_dsm_t *dsm, uint32_t rank)
{
    return rank < dsm->ranks ? dsm->keeper[rank] : DN_DSM_RANKS_MAX;
}

const char *dn_dsm_detects(const dn_dsm_t *dsm)
{
    return dsm->shares ? "shared" : dsm->watch.way->name;
}

/** The number of pages for so many bytes. @return 0: an error, in *status_p, of which the log line says more. */
static uint64_t dn_dsm_alloc_pages(const dn_dsm_t *dsm, uint64_t bytes, dn_status_t *status_p)
{
    const uint64_t pages = bytes / dsm->page_bytes + (0 != bytes % dsm->page_bytes);

    *status_p = DN_OK;
    if (0 == bytes) {
        dn_log_error("shared memory: an allocation is of at least one byte");
        *status_p = DN_ERR_PARAM;
    } else if (pages > dsm->pages - dsm->used) {
        dn_log_error("shared memory: %llu bytes are not left of %llu: open with more "
                     "(dn_dsm_config_t::bytes, DN_DSM_BYTES)",
                     (unsigned long long) bytes, (unsigned long long) dn_dsm_bytes(dsm));
        *status_p = DN_ERR_NOMEM;
    }
    return DN_OK == *status_p ? pages : 0;
}

static dn_status_t dn_dsm_alloc_home(const dn_dsm_t *dsm, uint32_t rank)
{
    if (rank >= dsm->ranks) {
        dn_log_error("shared memory: an allocation is at home with a rank below %u, not with %u",
                     (unsigned) dsm->ranks, (unsigned) rank);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

/** Take pages whose homes are set, if all processes take the same. @param[in] sum  Of the arguments of this process. */
static dn_status_t dn_dsm_alloc_take(dn_dsm_t *dsm, uint64_t pages, uint64_t sum, void **at_p)
{
    const dn_dsm_tell_t tell = {.call = DN_DSM_CALL_ALLOC, .interval = sum};
    const uint32_t first = dsm->used;
    dn_dsm_span_t span = {.watch = &dsm->watch,
                          .first = first,
                          .count = (uint32_t) pages,
                          .from = DN_DSM_NONE,
                          .to = DN_DSM_WRITE};
    dn_dsm_tell_t told[DN_DSM_RANKS_MAX];

    /* The pages permit accesses before this process tells the others. So they do when another process has left the call, and passes the
     * address to a thread of this process: what comes before the telling comes before that thread's access. */
    if (dsm->shares) {
        dn_dsm_span_end(&span);
    }
    dn_store_relaxed_u32(&dsm->used, first + (uint32_t) pages);
    dn_dsm_inside++;
    const dn_status_t status = dn_dsm_all(dsm, &tell, told);
    dn_dsm_inside--;
    for (uint32_t r = 0; DN_OK == status && r < dsm->ranks; r++) {
        if (told[r].interval != sum) {
            dn_log_error(
                "shared memory: rank %u allocates something else than rank %u: all processes pass the same",
                (unsigned) r, (unsigned) dsm->rank);
            dsm->broken = 1;
            return DN_ERR_PARAM;
        }
    }
    if (DN_OK == status) {
        *at_p = dsm->front + (uint64_t) first * dsm->page_bytes;
    }
    return status;
}

dn_status_t dn_dsm_alloc(dn_dsm_t *dsm, uint64_t bytes, dn_dsm_home_t home, uint32_t rank, void **at_p)
{
    const uint64_t sum = (bytes * 4 + home) * (2 * DN_DSM_RANKS_MAX) + (DN_DSM_HOME_RANK == home ? rank : 0);
    dn_status_t status;
    const uint64_t pages = dn_dsm_alloc_pages(dsm, bytes, &status);

    if (DN_OK == status && DN_DSM_HOME_RANK < home) {
        dn_log_error("shared memory: there is no such way to choose homes as %u", (unsigned) home);
        status = DN_ERR_PARAM;
    } else if (DN_OK == status && DN_DSM_HOME_RANK == home) {
        status = dn_dsm_alloc_home(dsm, rank);
    }
    if (DN_OK != status) {
        return status;
    }
    for (uint64_t i = 0; i < pages; i++) {
        const uint64_t of = DN_DSM_HOME_RANK == home     ? rank
                            : DN_DSM_HOME_CYCLIC == home ? i % dsm->ranks
                                                         : i * dsm->ranks / pages;
        dsm->page[dsm->used + i].home = (uint16_t) of;
    }
    return dn_dsm_alloc_take(dsm, pages, sum, at_p);
}

dn_status_t dn_dsm_alloc_homes(dn_dsm_t *dsm, uint64_t bytes, const uint16_t *home, void **at_p)
{
    /* The sum is a hash of all homes: FNV-1a. */
    const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t sum = (UINT64_C(0xcbf29ce484222325) ^ bytes) * prime;
    dn_status_t status;
    const uint64_t pages = dn_dsm_alloc_pages(dsm, bytes, &status);

    for (uint64_t i = 0; DN_OK == status && i < pages; i++) {
        status = dn_dsm_alloc_home(dsm, home[i]);
        dsm->page[dsm->used + i].home = home[i];
        sum = (sum ^ home[i]) * prime;
    }
    return DN_OK == status ? dn_dsm_alloc_take(dsm, pages, sum, at_p) : status;
}

dn_status_t dn_dsm_touch(dn_dsm_t *dsm, void *at, uint64_t len, int write)
{
    const uint64_t off = (uint64_t) ((uint8_t *) at - dsm->front),
                   room = (uint64_t) dn_dsm_used(dsm) * dsm->page_bytes;

    if ((uint8_t *) at < dsm->front || off > room || len > room - off) {
        dn_log_error("shared memory: %llu bytes at %p are not allocated in it", (unsigned long long) len, at);
        return DN_ERR_RANGE;
    }
    if (0 == len || dsm->shares) {
        return DN_OK;
    }
    const uint32_t first = (uint32_t) (off / dsm->page_bytes),
                   last = (uint32_t) ((off + len - 1) / dsm->page_bytes);
    dn_dsm_inside++;
    const dn_status_t status = dn_dsm_heard(dsm, dn_dsm_page_need(dsm, first, last - first + 1, 0 != write),
                                            "dn_dsm_touch() or dn_dsm_prefetch()");
    dn_dsm_inside--;
    return status;
}

dn_status_t dn_dsm_prefetch(dn_dsm_t *dsm, const void *at, uint64_t len)
{
    return dn_dsm_touch(dsm, (void *) (uintptr_t) at, len, 0);
}

dn_status_t dn_dsm_release(dn_dsm_t *dsm)
{
    dn_status_t status = dn_dsm_gate_enter(dsm, "dn_dsm_release()");

    if (DN_OK != status) {
        return status;
    }
    if (!dsm->shares && 1 < dsm->ranks) {
        dn_dsm_inside++;
        pthread_mutex_lock(&dsm->sync);
        status = dn_dsm_tell_release(dsm);
        pthread_mutex_unlock(&dsm->sync);
        status = dn_dsm_must(dsm, status, "dn_dsm_release()");
        dn_dsm_inside--;
    }
    dn_dsm_gate_leave(dsm, 1);
    dn_fence_release();
    return status;
}

dn_status_t dn_dsm_acquire(dn_dsm_t *dsm)
{
    dn_status_t status = dn_dsm_gate_enter(dsm, "dn_dsm_acquire()");

    if (DN_OK != status) {
        return status;
    }
    dn_fence_acquire();
    if (!dsm->shares && 1 < dsm->ranks) {
        const uint64_t began = dn_dsm_clock();
        dn_dsm_inside++;
        pthread_mutex_lock(&dsm->sync);
        dn_dsm_page_all_stale(dsm);
        status = dn_dsm_page_drop(dsm);
        /* From here on this process may see writes of which it has no notes. */
        dn_dsm_blind_set(dsm, DN_DSM_NOWHERE);
        pthread_mutex_unlock(&dsm->sync);
        status = dn_dsm_must(dsm, status, "dn_dsm_acquire()");
        dn_dsm_inside--;
        dn_dsm_count(&dsm->stat.acquire_ns, dn_dsm_clock() - began);
    }
    dn_dsm_gate_leave(dsm, 1);
    return status;
}
/** @} */

/** @name Counters */
/** @{ */
void dn_dsm_stat(const dn_dsm_t *dsm, dn_dsm_stat_t *stat)
{
    dn_dsm_counted(&dsm->stat, stat, sizeof(*stat));
}

int dn_dsm_stat_text(const dn_dsm_stat_t *stat, char *text, size_t size)
{
    static const char *const name[] = {"read_faults", "write_faults", "fetched",    "dropped",  "twins",
                                       "diffs",       "diff_blocks",  "diff_bytes", "notices",  "locks",
                                       "lock_waits",  "moved",        "barriers",   "fault_ns", "release_ns",
                                       "acquire_ns",  "lock_ns",      "barrier_ns"};
    const uint64_t *value = (const uint64_t *) stat;
    int len = 0;

    _Static_assert(sizeof(*stat) == sizeof(name) / sizeof(name[0]) * sizeof(*value),
                   "each counter has its name");
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        const size_t at = (size_t) len < size ? (size_t) len : size;
        len += snprintf(text + at, size - at, "%-13s%llu\n", name[i], (unsigned long long) value[i]);
    }
    return len;
}
/** @} */
