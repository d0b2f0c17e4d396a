/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_bench_window.h"

enum { ALLOCATE, CREATE, ALLOC_MEM, SHARED, DYNAMIC, NUM_KINDS };

static const char *const kinds[NUM_KINDS] = {"allocate", "create", "alloc_mem", "shared", "dynamic"};

#define NUM_SYNCS (DN_BENCH_FENCE + 1)

static const char *const syncs[NUM_SYNCS] = {"flush", "flush_local", "lock", "lock_all", "pscw", "fence"};

/* The place of a name in a list, or its length. */
static int find(const char *name, const char *const *names, int count)
{
    int i = 0;
    while (i < count && 0 != strcmp(name, names[i])) {
        i++;
    }
    return i;
}

const char *dn_bench_win_obstacle(const dn_bench_options_t *options)
{
    if (NUM_KINDS == find(options->win_kind, kinds, NUM_KINDS)) {
        return "--win-option is allocate, create, alloc_mem, shared or dynamic";
    }
    if (NUM_SYNCS == find(options->win_sync, syncs, NUM_SYNCS)) {
        return "--sync-option is flush, flush_local, lock, lock_all, pscw or fence";
    }
    return NULL;
}

bool dn_bench_win_passive(const dn_bench_win_t *w)
{
    return DN_BENCH_PSCW != w->sync && DN_BENCH_FENCE != w->sync;
}

static bool locked_for_good(const dn_bench_win_t *w)
{
    return DN_BENCH_FLUSH == w->sync || DN_BENCH_FLUSH_LOCAL == w->sync;
}

/* Memory and window; returns where displacements of this rank begin. */
static MPI_Aint make(dn_bench_win_t *w, MPI_Comm comm, MPI_Aint len)
{
    MPI_Aint base = 0;
    switch (w->kind) {
    case ALLOCATE:
        MPI_Win_allocate(len, 1, MPI_INFO_NULL, comm, &w->memory, &w->win);
        break;
    case SHARED:
        MPI_Win_allocate_shared(len, 1, MPI_INFO_NULL, comm, &w->memory, &w->win);
        break;
    case ALLOC_MEM:
        MPI_Alloc_mem(len, MPI_INFO_NULL, &w->memory);
        MPI_Win_create(w->memory, len, 1, MPI_INFO_NULL, comm, &w->win);
        break;
    case CREATE:
        w->memory = dn_bench_alloc((size_t) len);
        MPI_Win_create(w->memory, len, 1, MPI_INFO_NULL, comm, &w->win);
        break;
    default:
        w->memory = dn_bench_alloc((size_t) len);
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win);
        MPI_Win_attach(w->win, w->memory, len);
        MPI_Get_address(w->memory, &base);
        break;
    }
    return base;
}

static MPI_Group group_of(MPI_Comm comm, const int *ranks, int count)
{
    MPI_Group all;
    MPI_Group some;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

void dn_bench_win_open(dn_bench_win_t *w, const dn_bench_options_t *options, MPI_Comm comm, size_t len,
                       const int *origins, int num_origins, const int *targets, int num_targets)
{
    int ranks;
    MPI_Comm_size(comm, &ranks);
    *w = (dn_bench_win_t){
        .kind = find(options->win_kind, kinds, NUM_KINDS),
        .sync = (dn_bench_sync_t) find(options->win_sync, syncs, NUM_SYNCS),
        .target = 1 == num_targets ? targets[0] : -1,
        .base = dn_bench_alloc((size_t) ranks * sizeof(w->base[0])),
        .origins = group_of(comm, origins, num_origins),
        .targets = group_of(comm, targets, num_targets),
    };
    MPI_Aint base = make(w, comm, (MPI_Aint) len);
    MPI_Allgather(&base, 1, MPI_AINT, w->base, 1, MPI_AINT, comm);
    memset(w->memory, DN_BENCH_FILLER, len);
    MPI_Barrier(comm);
    if (locked_for_good(w)) {
        MPI_Win_lock_all(0, w->win);
    }
}

static void group_free(MPI_Group *group)
{
    if (MPI_GROUP_EMPTY != *group) {
        MPI_Group_free(group);
    }
}

void dn_bench_win_close(dn_bench_win_t *w)
{
    if (locked_for_good(w)) {
        MPI_Win_unlock_all(w->win);
    }
    group_free(&w->origins);
    group_free(&w->targets);
    free(w->base);
    if (DYNAMIC == w->kind) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win); /* nobody looks at what is detached */
        MPI_Win_detach(w->win, w->memory);
    }
    MPI_Win_free(&w->win);
    if (ALLOC_MEM == w->kind) {
        MPI_Free_mem(w->memory);
    } else if (CREATE == w->kind || DYNAMIC == w->kind) {
        free(w->memory);
    }
}

void dn_bench_win_begin(dn_bench_win_t *w)
{
    switch (w->sync) {
    case DN_BENCH_LOCK:
        if (0 <= w->target) {
            MPI_Win_lock(MPI_LOCK_SHARED, w->target, 0, w->win);
            break;
        }
        /* fall through */
    case DN_BENCH_LOCK_ALL:
        if (MPI_GROUP_EMPTY != w->targets) {
            MPI_Win_lock_all(0, w->win);
        }
        break;
    case DN_BENCH_PSCW:
        if (MPI_GROUP_EMPTY != w->origins) {
            MPI_Win_post(w->origins, 0, w->win);
        }
        if (MPI_GROUP_EMPTY != w->targets) {
            MPI_Win_start(w->targets, 0, w->win);
        }
        break;
    case DN_BENCH_FENCE:
        MPI_Win_fence(0, w->win);
        break;
    default:
        break;
    }
}

static void flush(dn_bench_win_t *w)
{
    if (DN_BENCH_FLUSH == w->sync) {
        if (0 <= w->target) {
            MPI_Win_flush(w->target, w->win);
        } else {
            MPI_Win_flush_all(w->win);
        }
    } else if (0 <= w->target) {
        MPI_Win_flush_local(w->target, w->win);
    } else {
        MPI_Win_flush_local_all(w->win);
    }
}

void dn_bench_win_end(dn_bench_win_t *w)
{
    switch (w->sync) {
    case DN_BENCH_LOCK:
        if (0 <= w->target) {
            MPI_Win_unlock(w->target, w->win);
            break;
        }
        /* fall through */
    case DN_BENCH_LOCK_ALL:
        if (MPI_GROUP_EMPTY != w->targets) {
            MPI_Win_unlock_all(w->win);
        }
        break;
    case DN_BENCH_PSCW:
        if (MPI_GROUP_EMPTY != w->targets) {
            MPI_Win_complete(w->win);
        }
        if (MPI_GROUP_EMPTY != w->origins) {
            MPI_Win_wait(w->win);
        }
        break;
    case DN_BENCH_FENCE:
        MPI_Win_fence(0, w->win);
        break;
    default:
        if (MPI_GROUP_EMPTY != w->targets) {
            flush(w);
        }
        break;
    }
}

void dn_bench_win_sync(dn_bench_win_t *w)
{
    if (locked_for_good(w)) {
        MPI_Win_sync(w->win);
    }
}
