/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_barrier.c
 * Calls that all processes make. In each call the tree gathers a block of every process, in lines of LLCM. By this no process leaves the call
 * before all have come. The block tells which call it is. In a barrier it also tells the runs of pages that the process has written or
 * fetched. Runs that do not fit are on the board in the desk of the process, and the other processes PULL them. There are two boards, used by
 * turns. When a process writes a board again, all processes have come to the barrier in between, so they have read the board.
 */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <string.h>

/** @name The tree */
/** @{ */
/** Wait for an operation of the tree that was started. */
static dn_status_t dn_dsm_all_wait(dn_dsm_t *dsm, dn_status_t status)
{
    dn_wait_t wait = {0};

    while (DN_INPROGRESS == status) {
        if (DN_OK != dn_dsm_wait(dsm, &wait, 0)) {
            dn_tree_give_up(dsm->tree);
            dsm->broken = 1;
            return DN_ERR_UNREACH;
        }
        status = dn_tree_test(dsm->tree);
    }
    return dn_dsm_must(dsm, status, "a call that all processes make");
}

static const char *dn_dsm_all_name(uint32_t call)
{
    static const char *const name[] = {"something else", "dn_dsm_barrier()", "dn_dsm_reduce()",
                                       "dn_dsm_alloc()", "dn_dsm_close()"};

    call &= DN_DSM_CALL_MASK;
    return name[call < sizeof(name) / sizeof(name[0]) ? call : 0];
}

dn_status_t dn_dsm_all(dn_dsm_t *dsm, const dn_dsm_tell_t *tell, dn_dsm_tell_t *told)
{
    uint8_t out[DN_DSM_RANKS_MAX * sizeof(dn_dsm_tell_t)];

    if (0 != dsm->broken) {
        dn_log_error("shared memory: %s after an error of such a call: close it",
                     dn_dsm_all_name(tell->call));
        return DN_ERR_UNREACH;
    }
    if (NULL == dsm->tree) {
        told[0] = *tell;
        return DN_OK;
    }
    const dn_status_t status = dn_dsm_all_wait(dsm, dn_tree_allgather(dsm->tree, tell, out, dsm->tell_bytes));
    if (DN_OK != status) {
        dsm->broken = 1;
        return status;
    }
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        told[r] = (dn_dsm_tell_t){0};
        memcpy(&told[r], out + r * dsm->tell_bytes, dsm->tell_bytes);
    }
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        if (told[r].call != tell->call) {
            const bool alike = 0 == ((told[r].call ^ tell->call) & DN_DSM_CALL_MASK);
            dn_log_error(
                "shared memory: rank %u calls %s, and rank %u %s%s: all processes make these calls in "
                "the same order",
                (unsigned) dsm->rank, dn_dsm_all_name(tell->call), (unsigned) r,
                dn_dsm_all_name(told[r].call), alike ? " of other values" : "");
            dsm->broken = 1;
            return DN_ERR_PARAM;
        }
    }
    return DN_OK;
}
/** @} */

/** @name Boards */
/** @{ */
/** Write a list of pages as runs. @return the number of runs. */
static uint32_t dn_dsm_board_list(dn_dsm_list_t *list, uint32_t bit, dn_dsm_run_t *run)
{
    uint32_t runs = 0;

    dn_dsm_list_sort(list);
    for (uint32_t i = 0; i < list->count; i++) {
        if (0 == runs || run[runs - 1].page + (run[runs - 1].count & ~DN_DSM_RUN_WROTE) != list->page[i]) {
            run[runs++] = (dn_dsm_run_t){.page = list->page[i], .count = bit};
        }
        run[runs - 1].count++;
    }
    return runs;
}

/** Release, and write the board. `sync` is held. */
static dn_status_t dn_dsm_board_write(dn_dsm_t *dsm, dn_dsm_run_t *board, dn_dsm_tell_t *tell)
{
    dn_status_t status = dn_dsm_page_release(dsm);

    status = DN_OK != status ? status : dn_dsm_move_prepare(dsm);
    pthread_mutex_lock(&dsm->table);
    tell->runs = dn_dsm_board_list(&dsm->wrote, DN_DSM_RUN_WROTE, board);
    tell->runs += dn_dsm_board_list(&dsm->loose, 0, board + tell->runs);
    for (uint32_t i = 0; i < dsm->wrote.count; i++) {
        dsm->page[dsm->wrote.page[i]].flags &= (uint8_t) ~DN_DSM_WROTE;
    }
    dsm->wrote.count = 0;
    pthread_mutex_unlock(&dsm->table);
    tell->interval = dsm->interval;
    memcpy(tell->run, board, (5 < tell->runs ? 5 : tell->runs) * sizeof(*board));
    return status;
}

/** Take the runs that a process tells. `sync` is held. */
static void dn_dsm_board_read(dn_dsm_t *dsm, uint32_t rank, uint64_t interval, const dn_dsm_run_t *run,
                              uint32_t runs)
{
    for (uint32_t i = 0; i < runs; i++) {
        const uint32_t count = run[i].count & ~DN_DSM_RUN_WROTE;
        /* The run comes from a peer: pages beyond the end are left out. */
        for (uint32_t p = run[i].page; p < dsm->used && p - run[i].page < count; p++) {
            if (0 == (run[i].count & DN_DSM_RUN_WROTE)) {
                dn_dsm_page_share(dsm, p);
                continue;
            }
            dn_dsm_move_hear(dsm, p, rank);
            if (rank != dsm->rank && dn_dsm_notes_know(&dsm->notes, p, rank, interval)) {
                dn_dsm_count(&dsm->stat.notices, 1);
                dn_dsm_page_stale(dsm, p);
            }
        }
    }
}

/** Pages that are shared now are not loose any more. `sync` is held. */
static void dn_dsm_board_tighten(dn_dsm_t *dsm)
{
    uint32_t left = 0;

    pthread_mutex_lock(&dsm->table);
    for (uint32_t i = 0; i < dsm->loose.count; i++) {
        dn_dsm_page_t *page = &dsm->page[dsm->loose.page[i]];
        if (0 != (page->flags & DN_DSM_SHARED)) {
            page->flags &= (uint8_t) ~DN_DSM_LOOSE;
        } else {
            dsm->loose.page[left++] = dsm->loose.page[i];
        }
    }
    dsm->loose.count = left;
    pthread_mutex_unlock(&dsm->table);
}

/** Has no process written or fetched a page since the last barrier, and is there nothing else to do after this barrier? */
static bool dn_dsm_board_is_quiet(dn_dsm_t *dsm, const dn_dsm_tell_t *told)
{
    for (uint32_t r = 0; r < dsm->ranks; r++) {
        if (0 < told[r].runs) {
            return false;
        }
    }
    pthread_mutex_lock(&dsm->sync);
    pthread_mutex_lock(&dsm->table);
    /* A page that another thread fetches from here on has its content of after the barrier. */
    const bool quiet = 0 == dsm->loose.count && 0 == dsm->notes.head && 0 == dsm->blind.stamp;
    pthread_mutex_unlock(&dsm->table);
    pthread_mutex_unlock(&dsm->sync);
    return quiet;
}

/** Hear what all processes have told, and drop stale copies. `sync` is held all the time: stale copies are dropped before another thread
 * releases. @param[in] half  Where the present boards begin: runs. @param[in] stamp  Newest note when this process told. */
static dn_status_t dn_dsm_board_hear(dn_dsm_t *dsm, const dn_dsm_tell_t *told, uint64_t half, uint64_t stamp)
{
    const uint32_t inline_runs = (uint32_t) ((dsm->tell_bytes - DN_DSM_TELL_MIN) / sizeof(dn_dsm_run_t));
    dn_status_t status = DN_OK;

    pthread_mutex_lock(&dsm->sync);
    for (uint32_t r = 0; r < dsm->ranks && DN_OK == status; r++) {
        const dn_dsm_run_t *run = told[r].run;
        const uint32_t runs = told[r].runs;
        if (runs > dn_dsm_board_runs(dsm)) {
            dn_log_error("shared memory: rank %u tells of more pages than there are", (unsigned) r);
            status = DN_ERR_PROTO;
        } else if (runs > inline_runs) {
            dn_xfer_t xfer = {.local = dsm->in,
                              .key = &dsm->card[r].desk,
                              .roff = dsm->card[r].board + half * sizeof(dn_dsm_run_t),
                              .len = runs * sizeof(dn_dsm_run_t)};
            status = dn_dsm_move(dsm, r, &xfer, false);
            run = dsm->in;
        }
        if (DN_OK == status) {
            dn_dsm_board_read(dsm, r, told[r].interval, run, runs);
        }
    }
    dn_dsm_page_loose_stale(dsm);
    dn_dsm_board_tighten(dsm);
    if (DN_OK == status) {
        dn_dsm_move_homes(dsm);
        status = dn_dsm_page_drop(dsm);
    }
    dn_dsm_notes_forget(&dsm->notes, stamp);
    if (dsm->blind.stamp <= stamp) {
        dsm->blind = (dn_dsm_blind_t){0};
    }
    pthread_mutex_unlock(&dsm->sync);
    return status;
}
/** @} */

/** @name Reductions */
/** @{ */
typedef struct dn_dsm_reduction {
    dn_tree_reduction_t super; /**< first */
    dn_dsm_fold_t fold;
} dn_dsm_reduction_t;

static void dn_dsm_barrier_fold(const dn_tree_reduction_t *super, const void *in, void *inout, size_t count)
{
    const dn_dsm_fold_t fold = ((const dn_dsm_reduction_t *) super)->fold;
    const double *from = in;
    double *to = inout;

    for (size_t i = 0; i < count; i++) {
        if (DN_DSM_SUM == fold) {
            to[i] = from[i] + to[i];
        } else if (DN_DSM_MIN == fold) {
            to[i] = from[i] < to[i] ? from[i] : to[i];
        } else {
            to[i] = from[i] > to[i] ? from[i] : to[i];
        }
    }
}
/** @} */

/** Do a barrier: release, wait for all processes, and acquire. @param[in] call  dn_dsm_tell_t::call. */
static dn_status_t dn_dsm_barrier_pass(dn_dsm_t *dsm, uint32_t call)
{
    dn_dsm_tell_t tell = {.call = call}, told[DN_DSM_RANKS_MAX];
    dn_status_t status = dn_dsm_is_whole(dsm);
    uint64_t stamp = 0;
    const uint64_t half = dsm->barriers++ % 2 * dn_dsm_board_runs(dsm);
    const bool tells = !dsm->shares && 1 < dsm->ranks;

    if (DN_OK == status && tells) {
        pthread_mutex_lock(&dsm->sync);
        status = dn_dsm_board_write(dsm, dsm->board + half, &tell);
        stamp = dsm->notes.stamp;
        pthread_mutex_unlock(&dsm->sync);
        status = dn_dsm_must(dsm, status, dn_dsm_all_name(call));
    }
    const uint64_t began = dn_dsm_clock();
    if (DN_OK == status) {
        status = dn_dsm_all(dsm, &tell, told);
    }
    const uint64_t met = dn_dsm_clock();
    dn_dsm_count(&dsm->stat.barrier_ns, met - began);
    dn_dsm_count(&dsm->stat.barriers, 1);
    if (DN_OK == status && tells && !dn_dsm_board_is_quiet(dsm, told)) {
        status = dn_dsm_board_hear(dsm, told, half, stamp);
        status = dn_dsm_must(dsm, status, dn_dsm_all_name(call));
        dn_dsm_count(&dsm->stat.acquire_ns, dn_dsm_clock() - met);
    }
    return status;
}

dn_status_t dn_dsm_barrier(dn_dsm_t *dsm)
{
    dn_dsm_gate_close(dsm, "dn_dsm_barrier()");
    dn_dsm_inside++;
    const dn_status_t status = dn_dsm_barrier_pass(dsm, DN_DSM_CALL_BARRIER);
    dn_dsm_inside--;
    dn_dsm_gate_leave(dsm, DN_DSM_GATE_ALL);
    return status;
}

dn_status_t dn_dsm_reduce(dn_dsm_t *dsm, dn_dsm_fold_t fold, double *value, size_t count)
{
    const dn_dsm_reduction_t reduction = {{.fold = dn_dsm_barrier_fold, .size = sizeof(*value)}, fold};
    double in[DN_DSM_VALUES_MAX], out[DN_DSM_VALUES_MAX];

    if (DN_DSM_VALUES_MAX < count || DN_DSM_MAX < fold) {
        dn_log_error("shared memory: a reduction is of at most %u values by sum, minimum or maximum",
                     DN_DSM_VALUES_MAX);
        return DN_ERR_PARAM;
    }
    /* The values may be in shared memory, which this thread does not touch while dn_dsm_inside is set. */
    memcpy(in, value, count * sizeof(*value));
    dn_dsm_gate_close(dsm, "dn_dsm_reduce()");
    dn_dsm_inside++;
    dn_status_t status = dn_dsm_barrier_pass(dsm, DN_DSM_CALL_REDUCE | DN_DSM_CALL_FOLD(fold, count));
    if (DN_OK == status && NULL != dsm->tree && 0 < count) {
        status = dn_dsm_all_wait(dsm, dn_tree_allreduce(dsm->tree, in, out, count, &reduction.super));
    } else {
        memcpy(out, in, count * sizeof(*value));
    }
    dn_dsm_inside--;
    dn_dsm_gate_leave(dsm, DN_DSM_GATE_ALL);
    if (DN_OK == status) {
        memcpy(value, out, count * sizeof(*value));
    }
    return status;
}
