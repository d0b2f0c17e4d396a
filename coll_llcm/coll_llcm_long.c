/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_long.c
 * Collectives through areas that all processes of a communicator map (dn_tree_long.h): set-up, waiting, broadcasts.
 *
 * Areas are kept when their communicator is freed, and serve later communicators. So a job that makes and frees communicators for
 * ever has no more areas than it had communicators with such collectives at one time, and its peers map each area once. An area is
 * free again when the other processes have taken what lies in it. The process looks for that when the communicator is freed, and
 * again when it wants the next area.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "dn_ompi_prog.h"

#include "ompi/op/op.h"
#include "opal/util/output.h"

/** Up to so many processes, each looks at the counters of all others; more processes look in groups. With so many processes, each reads as
 * many lines of counters for a piece as the piece has lines of data. Where cores are shared, groups are slower, since each process that
 * passes news on waits for its core (perf/dn_coll, 16 ranks on 2 cores: allreduce of 64 KiB in 129 us, in groups 189 us; of 1 MiB in 1.7 ms,
 * in groups 2.8 ms). */
#define ALL_LOOK 32

/** @name Areas of this process */
/** @{ */
/** Forget the communicator, and part from its processes. */
static void area_part(coll_llcm_area_t *area)
{
    for (int rank = 0; rank < area->size; rank++) {
        if (NULL != area->peer[rank]) {
            dn_disconnect(area->peer[rank]);
        }
    }
    free(area->peer);
    free(area->base);
    area->peer = NULL;
    area->base = NULL;
    area->size = 0;
}

/** Note that an area is used, or is not. @return whether it was. */
static bool area_use(coll_llcm_area_t *area, bool used)
{
    opal_mutex_lock(&coll_llcm.lock);
    const bool before = area->used;
    area->used = used;
    opal_mutex_unlock(&coll_llcm.lock);
    return before;
}

/** Is an area free, which the caller has to itself? It becomes free here if the other processes have taken what lies in it. */
static bool area_is_free(coll_llcm_area_t *area)
{
    if (NULL != area->lng && DN_OK != dn_tree_long_free(area->lng)) {
        return false;
    }
    area->lng = NULL;
    if (NULL != area->letters && DN_OK != dn_letters_free(area->letters)) {
        return false;
    }
    area->letters = NULL;
    area_part(area);
    return true;
}

/** Make an area that is used. */
static coll_llcm_area_t *area_make(size_t len)
{
    coll_llcm_area_t *area = calloc(1, sizeof(*area));

    if (NULL == area || DN_OK != dn_segment_alloc(coll_llcm.port, len, &area->segment)) {
        free(area);
        return NULL;
    }
    area->len = len;
    area->used = true;
    opal_mutex_lock(&coll_llcm.lock);
    area->next = coll_llcm.areas;
    coll_llcm.areas = area;
    opal_mutex_unlock(&coll_llcm.lock);
    return area;
}
/** @} */

coll_llcm_area_t *coll_llcm_area_reserve(size_t len)
{
    unsigned count = 0;

    opal_mutex_lock(&coll_llcm.lock);
    coll_llcm_area_t *area = coll_llcm.areas;
    opal_mutex_unlock(&coll_llcm.lock);
    /* New areas come before this one, and none goes. */
    for (; NULL != area; area = area->next) {
        count += len == area->len;
        if (len == area->len && !area_use(area, true)) {
            if (area_is_free(area)) {
                return area;
            }
            (void) area_use(area, false);
        }
    }
    return count < dn_ompi_params.coll.areas ? area_make(len) : NULL;
}

void coll_llcm_area_give_back(coll_llcm_area_t *area)
{
    (void) area_is_free(area);
    (void) area_use(area, false);
}

void coll_llcm_long_tear_down(coll_llcm_module_t *module)
{
    if (NULL != module->area) {
        coll_llcm_area_give_back(module->area);
        module->area = NULL;
    }
    free(module->choice);
    module->choice = NULL;
}

void coll_llcm_long_close(void)
{
    while (NULL != coll_llcm.areas) {
        coll_llcm_area_t *area = coll_llcm.areas;

        coll_llcm.areas = area->next;
        if (NULL != area->lng) {
            dn_tree_long_abandon(area->lng);
        }
        if (NULL != area->letters) {
            dn_letters_abandon(area->letters);
        }
        area_part(area);
        dn_segment_free(area->segment);
        free(area);
    }
}

/** @name Set-up */
/** @{ */
/** What each process tells the others. */
typedef struct card {
    dn_key_t key;          /**< of its area */
    uint64_t lines;        /**< lines that have gone through its area so far */
    uint64_t shares;       /**< not 0: it shares its core, as far as it knows */
    dn_tree_place_t place; /**< used if there are more than ALL_LOOK processes */
} card_t;

/** Do all that can fail for want of memory or of peers. @param[out] card_p  Room for a card of each rank. The caller's to free(), also
 * after a failure. */
static bool long_prepare(coll_llcm_module_t *module, struct ompi_communicator_t *comm, card_t **card_p)
{
    const int size = ompi_comm_size(comm);

    if (NULL == coll_llcm.port || NULL == (module->area = coll_llcm_area_reserve(DN_TREE_LONG_AREA))) {
        return false;
    }
    coll_llcm_area_t *area = module->area;
    *card_p = calloc((size_t) size, sizeof(**card_p));
    area->base = calloc((size_t) size, sizeof(*area->base));
    area->peer = calloc((size_t) size, sizeof(*area->peer));
    if (NULL == *card_p || NULL == area->base || NULL == area->peer) {
        return false;
    }
    area->size = size;
    for (int rank = 0; rank < size; rank++) {
        if (rank != ompi_comm_rank(comm)
            && OPAL_SUCCESS
                   != dn_ompi_connect(&ompi_comm_peer_lookup(comm, rank)->super, &area->peer[rank])) {
            area->peer[rank] = NULL;
            return false;
        }
    }
    const dn_tree_long_config_t config = {.ranks = (uint32_t) size,
                                          .rank = (uint32_t) ompi_comm_rank(comm),
                                          .area = area->base,
                                          .peer = area->peer};
    if (DN_OK != dn_tree_long_create(&config, &area->lng)) {
        area->lng = NULL;
        return false;
    }
    area->base[ompi_comm_rank(comm)] = dn_segment_base(area->segment);
    module->choice = 2 == size ? coll_llcm_choice_make() : NULL;
    return 2 != size || NULL != module->choice;
}

/** Form groups, if there are more than ALL_LOOK processes. @return false: no memory. */
static bool form_groups(const coll_llcm_area_t *area, const card_t *card)
{
    if (ALL_LOOK >= area->size) {
        return true;
    }
    dn_tree_place_t *place = calloc((size_t) area->size, sizeof(*place));
    for (int rank = 0; NULL != place && rank < area->size; rank++) {
        place[rank] = card[rank].place;
    }
    const bool good =
        NULL != place && DN_OK == dn_tree_long_group(area->lng, dn_ompi_params.coll.radix, place);
    free(place);
    return good;
}

/** Tell where the own area is, and map the areas of the other processes. Counters begin at the highest count of any area. */
static bool map_areas(coll_llcm_module_t *module, struct ompi_communicator_t *comm, card_t *card)
{
    coll_llcm_area_t *area = module->area;
    ompi_datatype_t *byte = &ompi_mpi_byte.dt;
    card_t own = {.lines = dn_tree_long_lines(dn_segment_base(area->segment)),
                  .shares = dn_ompi_shares_core()};
    uint64_t first = dn_first(coll_llcm.port);
    bool crowded = false;

    dn_store_relaxed(&coll_llcm.oversubscribed, 0 != own.shares);
    dn_segment_key(area->segment, &own.key);
    if (ALL_LOOK < area->size) {
        dn_tree_place_here(&own.place);
    }
    if (OMPI_SUCCESS
        != module->saved.coll_allgather(&own, (int) sizeof(own), byte, card, (int) sizeof(own), byte, comm,
                                        module->saved.coll_allgather_module)) {
        return false;
    }
    for (int rank = 0; rank < area->size; rank++) {
        if (NULL != area->peer[rank]
            && (DN_TREE_LONG_AREA != card[rank].key.len
                || DN_OK != dn_segment_map(area->peer[rank], &card[rank].key, &area->base[rank]))) {
            return false;
        }
        first = first < card[rank].lines ? card[rank].lines : first;
        crowded = crowded || 0 != card[rank].shares;
    }
    if (!form_groups(area, card)) {
        return false;
    }
    dn_tree_long_begin(area->lng, first, crowded);
    /* If another process fails here, `crowded` may differ. But then there are no areas, and without areas no choice depends on it. */
    module->crowded = module->crowded || crowded;
    return true;
}

bool coll_llcm_long_set_up(coll_llcm_module_t *module, struct ompi_communicator_t *comm)
{
    card_t *card = NULL;

    module->area_state = COLL_LLCM_BUSY;
    module->comm = comm;
    const bool good = coll_llcm_all_agree(module, comm, long_prepare(module, comm, &card))
                      && coll_llcm_all_agree(module, comm, map_areas(module, comm, card));
    free(card);
    if (!good) {
        coll_llcm_long_tear_down(module);
        module->area_state = COLL_LLCM_REFUSED;
        opal_output_verbose(10, ompi_coll_base_framework.framework_output, "coll:llcm: no areas for %s",
                            comm->c_name);
        return false;
    }
    module->lng = module->area->lng;
    module->area_state = COLL_LLCM_READY;
    return true;
}
/** @} */

/** Say which processes are lost whose areas are used. */
static void say_who_is_lost(coll_llcm_module_t *module)
{
    const coll_llcm_area_t *area = module->area;

    for (int rank = 0; rank < area->size; rank++) {
        coll_llcm_say_if_lost(area->peer[rank], module->comm, rank);
    }
}

/** Wait for the operation through areas that was started. Nonblocking operations may use the tree meanwhile. @param[in] bytes  Of its data. */
static int wait_for(coll_llcm_module_t *module, dn_status_t status, size_t bytes)
{
    dn_ompi_wait_t wait = {0};

    for (unsigned polls = 1; DN_INPROGRESS == status; polls++) {
        if (OPAL_UNLIKELY(coll_llcm_area_is_idle(polls))
            && coll_llcm_idle(&wait, true, polls, dn_tree_long_steps(module->lng))) {
            dn_tree_long_slept(module->lng);
        }
        status = dn_tree_long_test(module->lng);
    }
    dn_count(&coll_llcm.long_bytes, bytes);
    if (OPAL_LIKELY(DN_OK == status)) {
        return OMPI_SUCCESS;
    }
    say_who_is_lost(module);
    return OMPI_ERR_UNREACH;
}

int coll_llcm_long_allreduce(coll_llcm_module_t *module, const void *in, void *out, size_t count,
                             const dn_tree_reduction_t *reduction)
{
    return wait_for(module, dn_tree_long_allreduce(module->lng, in, out, count, reduction),
                    count * reduction->size);
}

int coll_llcm_long_reduce(coll_llcm_module_t *module, int root, const void *in, void *out, size_t count,
                          const dn_tree_reduction_t *reduction)
{
    return wait_for(module, dn_tree_long_reduce(module->lng, (uint32_t) root, in, out, count, reduction),
                    count * reduction->size);
}

int coll_llcm_long_reduce_part(coll_llcm_module_t *module, const void *in, void *out, size_t count, size_t at,
                               size_t part, const dn_tree_reduction_t *reduction)
{
    return wait_for(module, dn_tree_long_reduce_part(module->lng, in, out, count, at, part, reduction),
                    count * reduction->size);
}

int coll_llcm_long_scan(coll_llcm_module_t *module, const void *in, void *out, size_t count, bool before,
                        const dn_tree_reduction_t *reduction)
{
    return wait_for(
        module, (before ? dn_tree_long_exscan : dn_tree_long_scan)(module->lng, in, out, count, reduction),
        count * reduction->size);
}

int coll_llcm_long_exchange(coll_llcm_module_t *module, size_t len, dn_tree_blocks_t *blocks)
{
    return wait_for(module, dn_tree_long_exchange(module->lng, len, blocks), len);
}

int coll_llcm_long_gather(coll_llcm_module_t *module, int root, size_t len, dn_tree_blocks_t *blocks)
{
    return wait_for(module, dn_tree_long_gather(module->lng, (uint32_t) root, len, blocks), len);
}

/** @name Broadcast */
/** @{ */
/** Elements that lie together. */
typedef struct plain {
    dn_tree_mover_t super;
    uint8_t *start;
    bool packs;
} plain_t;

static void move_plain(dn_tree_mover_t *mover, void *area, size_t at, size_t len)
{
    const plain_t *plain = (const plain_t *) mover;

    if (plain->packs) {
        dn_copy_in(area, plain->start + at, len);
    } else {
        dn_copy(plain->start + at, area, len);
    }
}

/** Elements with gaps whose type has a program. */
typedef struct walk {
    dn_tree_mover_t super;
    dn_prog_cursor_t cursor;
    bool packs;
} walk_t;

static void move_walk(dn_tree_mover_t *mover, void *area, size_t at, size_t len)
{
    walk_t *walk = (walk_t *) mover;

    (void) at;
    if (walk->packs) {
        (void) dn_prog_gather(area, &walk->cursor, len);
    } else {
        (void) dn_prog_scatter(&walk->cursor, area, len);
    }
}

/** Elements whose type has no program. */
typedef struct converted {
    dn_tree_mover_t super;
    coll_llcm_converted_t elements;
} converted_t;

static void move_converted(dn_tree_mover_t *mover, void *area, size_t at, size_t len)
{
    (void) at;
    coll_llcm_converted_move(&((converted_t *) mover)->elements, area, len);
}

static int bcast_converted(coll_llcm_module_t *module, void *buf, size_t count, const ompi_datatype_t *type,
                           int root, bool packs)
{
    converted_t converted = {.super = {move_converted}};
    const size_t bytes = coll_llcm_bytes(count, type);

    coll_llcm_converted_open(&converted.elements, buf, count, type, packs);
    int rc =
        wait_for(module, dn_tree_long_bcast(module->lng, (uint32_t) root, bytes, &converted.super), bytes);
    coll_llcm_converted_close(&converted.elements);
    return rc;
}

int coll_llcm_long_bcast(coll_llcm_module_t *module, void *buf, size_t count, ompi_datatype_t *type, int root,
                         bool is_root)
{
    const size_t bytes = coll_llcm_bytes(count, type);
    walk_t walk;

    if (coll_llcm_is_contiguous(count, type)) {
        plain_t plain = {{move_plain}, coll_llcm_start(buf, type), is_root};
        return wait_for(module, dn_tree_long_bcast(module->lng, (uint32_t) root, bytes, &plain.super), bytes);
    }
    if (0 == dn_ompi_prog_start(&walk.cursor, type, count, buf)) {
        return bcast_converted(module, buf, count, type, root, is_root);
    }
    walk.super.move = move_walk;
    walk.packs = is_root;
    return wait_for(module, dn_tree_long_bcast(module->lng, (uint32_t) root, bytes, &walk.super), bytes);
}
/** @} */
