/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_window.c
 * How windows are made and freed; and their attributes.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include <stdio.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"

/** Window memory of a page or more begins at a page. */
#define PAGE 4096u

/** What each process tells the others of a new window. */
typedef struct osc_offer {
    dn_key_t key;        /**< of the segment that its block is in */
    uint64_t off;        /**< bytes from the start of that segment to the block */
    uint64_t size;       /**< bytes of its window memory */
    int64_t unit;        /**< bytes of one step of a displacement */
    uint32_t good;       /**< 0: the process has no memory for its part */
    uint32_t mapped;     /**< not 0: the user's memory is in a segment that dimmnet has allocated */
    dn_key_t memory_key; /**< of the segment that the user's memory is in */
    uint64_t memory_off; /**< bytes from the start of that segment to the user's memory */
    uint64_t window;     /**< handle by which messages name the window */
} osc_offer_t;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/** Bytes of the control part of a block, with the mirror of the table of regions. */
static uint64_t control_bytes(const osc_module_t *module)
{
    const uint64_t regions = MPI_WIN_FLAVOR_DYNAMIC == module->flavor ? ompi_osc_dimmnet_regions_bytes() : 0;

    return dn_rma_control_bytes(module->rma.size) + regions;
}

/** Is the window memory the user's own? Other processes may not be able to map it. */
static bool is_users(const osc_module_t *module)
{
    return MPI_WIN_FLAVOR_CREATE == module->flavor || MPI_WIN_FLAVOR_DYNAMIC == module->flavor;
}

/** Where window memory begins in a block. Memory of less than a page shares pages with the control part. */
static uint64_t memory_off(const osc_module_t *module, uint64_t bytes)
{
    return round_up(control_bytes(module), PAGE <= bytes ? PAGE : DN_RMA_LINE);
}

/** Does rank 0 have the memory of all ranks, side by side? */
static bool has_one_owner(const osc_module_t *module)
{
    return MPI_WIN_FLAVOR_SHARED == module->flavor && !module->noncontig;
}

/** Bytes of window memory of all ranks. */
static uint64_t total_bytes(const osc_module_t *module)
{
    uint64_t total = 0;

    for (int rank = 0; rank < module->rma.size; rank++) {
        total += module->target[rank].size;
    }
    return total;
}

/** Bytes of window memory in the block of a rank. */
static uint64_t bytes_of(const osc_module_t *module, int rank)
{
    if (has_one_owner(module)) {
        return 0 == rank ? total_bytes(module) : 0;
    }
    return is_users(module) ? 0 : module->target[rank].size;
}

/** Map a piece of a segment of a rank. @return its address in this process; NULL: it cannot be mapped. */
static uint8_t *window_map(const osc_module_t *module, int rank, const dn_key_t *key, uint64_t off,
                           uint64_t len)
{
    void *base;

    /* The rank has told offset and length, so they are checked here. dn_segment_map() checks that the segment has the key's length. */
    if (off > key->len || len > key->len - off
        || DN_OK != dn_segment_map(ompi_osc_dimmnet_peer(module->comm, rank), key, &base)) {
        return NULL;
    }
    return (uint8_t *) base + off;
}

/** The block of a rank in this process; NULL: it cannot be mapped. */
static uint8_t *block_of(const osc_module_t *module, int rank, const osc_offer_t *offer)
{
    const uint64_t bytes = bytes_of(module, rank);

    return rank == module->rma.rank
               ? module->block.base
               : window_map(module, rank, &offer->key, offer->off, memory_off(module, bytes) + bytes);
}

/** The window memory of a rank in this process; NULL: not mapped, or a dynamic window. The block of the rank is mapped here.
 * @param[in] users  The user's own memory of this process. */
static uint8_t *window_of(const osc_module_t *module, int rank, const osc_offer_t *offer, uint8_t *block,
                          uint8_t *users)
{
    if (MPI_WIN_FLAVOR_DYNAMIC == module->flavor) {
        return NULL;
    }
    if (MPI_WIN_FLAVOR_CREATE != module->flavor) {
        return block + memory_off(module, bytes_of(module, rank));
    }
    if (rank == module->rma.rank) {
        return users;
    }
    return 0 == offer->mapped ? NULL
                              : window_map(module, rank, &offer->memory_key, offer->memory_off, offer->size);
}

/** Fill in what messages and transfers to a far rank need. */
static void place_far(osc_module_t *module, int rank, const osc_offer_t *offer)
{
    dn_rma_far_t *far = &module->rma.far[rank];

    far->window = offer->window;
    far->block_key = offer->key;
    far->block_off = offer->off;
    if (is_users(module)) {
        far->key = offer->memory_key;
        far->roff = offer->memory_off;
    } else {
        far->key = offer->key;
        far->roff = offer->off + memory_off(module, bytes_of(module, rank));
    }
}

/** Find the window memory of all ranks. @return false: memory cannot be mapped that must be. */
static bool place_targets(osc_module_t *module, const osc_offer_t *offers, uint8_t *users)
{
    const osc_target_t *own = &module->target[module->rma.rank];
    uint8_t *behind = NULL;

    for (int rank = 0; rank < module->rma.size; rank++) {
        osc_target_t *target = &module->target[rank];
        uint8_t *block = block_of(module, rank, &offers[rank]);

        if (NULL == block && NULL == module->rma.far) {
            return false;
        }
        module->rma.target[rank].control = (dn_rma_control_t *) (void *) block;
        module->rma.target[rank].peer = ompi_osc_dimmnet_peer(module->comm, rank);
        target->unit = (uint64_t) offers[rank].unit;
        if (has_one_owner(module) && 0 != rank) {
            target->base = behind;
        } else {
            target->base = NULL == block ? NULL : window_of(module, rank, &offers[rank], block, users);
        }
        behind = target->base + target->size;
        if (NULL != module->rma.far) {
            place_far(module, rank, &offers[rank]);
        }
        if (MPI_WIN_FLAVOR_DYNAMIC == module->flavor) {
            /* Displacements are addresses. The table of regions says which of them are legal. */
            target->size = UINT64_MAX;
            target->unit = 1;
        }
    }
    module->rma.base = own->base;
    module->rma.len = own->size;
    dn_rma_win_place(&module->rma);
    return true;
}

static int window_gather(const osc_module_t *module, const void *mine, void *all, int bytes)
{
    return module->comm->c_coll->coll_allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, module->comm,
                                                module->comm->c_coll->coll_allgather_module);
}

/** Do all processes say yes? When this returns, all of them have come here. */
static bool window_agree(const osc_module_t *module, bool mine)
{
    int good = mine;
    int all = 0;

    return OMPI_SUCCESS
               == module->comm->c_coll->coll_allreduce(&good, &all, 1, MPI_INT, MPI_MIN, module->comm,
                                                       module->comm->c_coll->coll_allreduce_module)
           && 0 != all;
}

/** Fill in what other processes need to reach the user's own memory. @return false: it cannot be registered. */
static bool offer_users(osc_module_t *module, void *users, osc_offer_t *mine)
{
    if (MPI_WIN_FLAVOR_CREATE != module->flavor) {
        return true;
    }
    if (0 != mine->size
        && 0
               != dn_pieces_find(&mca_osc_dimmnet_component.pieces, users, mine->size, &mine->memory_key,
                                 &mine->memory_off)) {
        mine->mapped = 1;
        return true;
    }
    if (DN_OK != dn_segment_register(mca_osc_dimmnet_component.port, users, mine->size, &module->segment)) {
        return false;
    }
    dn_segment_key(module->segment, &mine->memory_key);
    mine->memory_off = 0;
    return true;
}

/** Make room for far targets, if there may be any. From here on they may send messages. @return false: no memory. */
static bool meet_far(osc_module_t *module, enum osc_reached how, osc_offer_t *mine)
{
    if (!is_users(module) && OSC_ALL_MAPPED == how) {
        return true;
    }
    if (MPI_WIN_FLAVOR_DYNAMIC == module->flavor) {
        module->regions = ompi_osc_dimmnet_regions_open(module->rma.size);
        if (NULL == module->regions) {
            return false;
        }
    }
    if (DN_OK != dn_rma_win_join(&module->rma)) {
        return false;
    }
    ompi_osc_dimmnet_count_windows(1);
    mine->window = module->rma.handle;
    return true;
}

/** Set up the control part of the own block. All counters begin at dn_first(). */
static void begin_to_count(osc_module_t *module)
{
    const uint32_t first = dn_first(mca_osc_dimmnet_component.port);

    dn_rma_win_begin(&module->rma, (dn_rma_control_t *) (void *) module->block.base, first);
    for (int rank = 0; rank < module->rma.size; rank++) {
        module->target[rank].posts = module->target[rank].completes = first;
    }
}

static bool alloc_memory(uint64_t len, dn_piece_t *piece)
{
    const bool taken = DN_OK == dn_piece_alloc(&mca_osc_dimmnet_component.pieces, len, UINT64_MAX, piece);

    if (!taken) {
        dn_ompi_help(DN_OMPI_TEXT_NO_SEGMENT, opal_process_info.nodename, (unsigned long) len);
    }
    return taken;
}

/** Collective: each process gets memory, and tells all others where it is. */
static int share_memory(osc_module_t *module, void *users, enum osc_reached how, osc_offer_t *mine,
                        osc_offer_t *offers)
{
    int rc;

    if (has_one_owner(module)) {
        /* The owner of the memory has to know all sizes before it allocates. */
        uint64_t *sizes = calloc((size_t) module->rma.size, sizeof(*sizes));

        if (!window_agree(module, NULL != sizes)) {
            free(sizes);
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        rc = window_gather(module, &mine->size, sizes, sizeof(*sizes));
        for (int rank = 0; rank < module->rma.size; rank++) {
            module->target[rank].size = sizes[rank];
        }
        free(sizes);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    } else {
        module->target[module->rma.rank].size = mine->size;
    }
    const uint64_t bytes = bytes_of(module, module->rma.rank);
    const uint64_t off = memory_off(module, bytes);
    mine->good = UINT64_MAX - bytes > off && alloc_memory(off + bytes, &module->block)
                 && offer_users(module, users, mine) && meet_far(module, how, mine);
    if (0 != mine->good) {
        begin_to_count(module);
        dn_piece_key(&module->block, &mine->key);
        mine->off = module->block.off;
    }
    rc = window_gather(module, mine, offers, sizeof(*offers));
    for (int rank = 0; OMPI_SUCCESS == rc && rank < module->rma.size; rank++) {
        module->target[rank].size = offers[rank].size;
        rc = 0 != offers[rank].good ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    return rc;
}

/** @name The values that MPI_Win_get_info() shows: those that hold, not those that the user asked for
 *
 * Each is an opal_key_interest_callback_t.
 */
/** @{ */
static char *true_or_false(bool value)
{
    static char yes[] = "true";
    static char no[] = "false";

    return value ? yes : no;
}

static dn_ompi_info_char_t *info_no_locks(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                          dn_ompi_info_char_t *value)
{
    ompi_win_t *win = (ompi_win_t *) object;
    bool no_locks = 0 == strcmp(value, "true");

    if (no_locks) {
        win->w_flags |= OMPI_WIN_NO_LOCKS;
    } else {
        win->w_flags &= (uint16_t) ~OMPI_WIN_NO_LOCKS;
    }
    return true_or_false(no_locks);
}

static dn_ompi_info_char_t *info_noncontig(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                           dn_ompi_info_char_t *value)
{
    return true_or_false(osc_module((const ompi_win_t *) (const void *) object)->noncontig);
}

static dn_ompi_info_char_t *info_same_size(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                           dn_ompi_info_char_t *value)
{
    const osc_module_t *module = osc_module((const ompi_win_t *) (const void *) object);
    bool same = true;

    for (int rank = 1; rank < module->rma.size; rank++) {
        same = same && module->target[rank].size == module->target[0].size;
    }
    return true_or_false(same);
}

static dn_ompi_info_char_t *info_same_unit(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                           dn_ompi_info_char_t *value)
{
    const osc_module_t *module = osc_module((const ompi_win_t *) (const void *) object);
    bool same = true;

    for (int rank = 1; rank < module->rma.size; rank++) {
        same = same && module->target[rank].unit == module->target[0].unit;
    }
    return true_or_false(same);
}

/** Accumulates take effect in the order of the calls, whatever order the user asks for. */
static dn_ompi_info_char_t *info_ordering(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                          dn_ompi_info_char_t *value)
{
    static char all[] = "rar,raw,war,waw";

    return all;
}

static dn_ompi_info_char_t *info_operations(opal_infosubscriber_t *object, dn_ompi_info_char_t *key,
                                            dn_ompi_info_char_t *value)
{
    static char any[] = "same_op_no_op";
    static char one[] = "same_op";

    return OMPI_WIN_ACCUMULATE_OPS_SAME_OP == ((const ompi_win_t *) (const void *) object)->w_acc_ops ? one
                                                                                                      : any;
}

static void window_subscribe(ompi_win_t *win)
{
    static const struct {
        const char *key;
        const char *standard;
        opal_key_interest_callback_t *tell;
    } keys[] = {
        {"no_locks", "false", info_no_locks},
        {"same_size", "false", info_same_size},
        {"same_disp_unit", "false", info_same_unit},
        {"accumulate_ordering", "rar,raw,war,waw", info_ordering},
        {"accumulate_ops", "same_op_no_op", info_operations},
        {"alloc_shared_noncontig", "false", info_noncontig},
    };
    const bool shared = MPI_WIN_FLAVOR_SHARED == osc_module(win)->flavor;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) - !shared; i++) {
        char *key = (char *) (uintptr_t) keys[i].key;

        /* If the user gives no value, Open MPI shows the value that is passed here, whatever the callback returns. */
        (void) opal_infosubscribe_subscribe(
            &win->super, key, keys[i].tell(&win->super, key, (char *) (uintptr_t) keys[i].standard),
            keys[i].tell);
    }
}
/** @} */

static void module_free(osc_module_t *module)
{
    const bool served = NULL != module->rma.far;

    dn_rma_win_close(&module->rma);
    if (served) {
        ompi_osc_dimmnet_count_windows(-1);
    }
    ompi_osc_dimmnet_regions_close(module);
    if (NULL != module->segment) {
        dn_segment_free(module->segment);
    }
    dn_piece_free(&mca_osc_dimmnet_component.pieces, &module->block);
    if (NULL != module->comm) {
        ompi_comm_free(&module->comm);
    }
    free(module->posted.rank);
    free(module->started.rank);
    free(module->target);
    OBJ_DESTRUCT(&module->lock);
    free(module);
}

/** Make the part of a new window that a process needs for itself. @return NULL: no memory. */
static osc_module_t *module_make(ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
    osc_module_t *module = calloc(1, sizeof(*module));
    int given;

    if (NULL == module) {
        return NULL;
    }
    OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
    module->super = ompi_osc_dimmnet_module;
    module->rma.rma = &mca_osc_dimmnet_component.rma;
    module->rma.size = ompi_comm_size(comm);
    module->rma.rank = ompi_comm_rank(comm);
    module->rma.dynamic = MPI_WIN_FLAVOR_DYNAMIC == flavor;
    module->rma.user = module;
    const bool open = DN_OK == dn_rma_win_open(&module->rma);
    module->flavor = flavor;
    module->threads = dn_ompi_threads();
    if (NULL == info
        || OPAL_SUCCESS
               != opal_info_get_bool(info, (char *) (uintptr_t) "alloc_shared_noncontig", &module->noncontig,
                                     &given)) {
        module->noncontig = false;
    }
    module->target = calloc((size_t) module->rma.size, sizeof(*module->target));
    module->posted.rank = calloc((size_t) module->rma.size, sizeof(int));
    module->started.rank = calloc((size_t) module->rma.size, sizeof(int));
    if (!open || NULL == module->target || NULL == module->posted.rank || NULL == module->started.rank) {
        module_free(module);
        return NULL;
    }
    return module;
}

int ompi_osc_dimmnet_window_make(ompi_win_t *win, void **base, size_t size, dn_ompi_unit_t disp_unit,
                                 ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
    /* Windows of other flavours have no memory yet. */
    void *users = MPI_WIN_FLAVOR_CREATE == flavor ? *base : NULL;
    osc_offer_t mine = {.size = size, .unit = disp_unit};
    osc_module_t *module = module_make(comm, info, flavor);
    osc_offer_t *offers = NULL == module ? NULL : calloc((size_t) module->rma.size, sizeof(*offers));
    int good[2] = {NULL != offers, (int) ompi_osc_dimmnet_reached(comm)};
    int all[2] = {0, 0};
    int rc;

    /* As window_agree(), but this process may have no module. */
    rc = comm->c_coll->coll_allreduce(good, all, 2, MPI_INT, MPI_MIN, comm,
                                      comm->c_coll->coll_allreduce_module);
    if (OMPI_SUCCESS == rc && 0 == all[0]) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (OMPI_SUCCESS == rc && OSC_NOT_ALL == all[1]) {
        rc = OMPI_ERR_UNREACH;
    }
    if (OMPI_SUCCESS == rc) {
        rc = ompi_comm_dup(comm, &module->comm);
    }
    if (OMPI_SUCCESS == rc) {
        module->win = win;
        rc = share_memory(module, users, (enum osc_reached) all[1], &mine, offers);
    }
    if (OMPI_SUCCESS == rc && !window_agree(module, place_targets(module, offers, users))) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    free(offers);
    if (OMPI_SUCCESS != rc) {
        if (NULL != module) {
            module_free(module);
        }
        return rc;
    }
    win->w_osc_module = &module->super;
    if (!is_users(module)) {
        *base = module->target[module->rma.rank].base;
    }
    window_subscribe(win);
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_free(ompi_win_t *win)
{
    osc_module_t *module = osc_module(win);

    /* The program may not have synchronised with its last operations. They are completed, or fail, before the window is freed. */
    (void) osc_settle(module, -1);
    /* Other processes may still write here until they come to this barrier, too. */
    int rc = module->comm->c_coll->coll_barrier(module->comm, module->comm->c_coll->coll_barrier_module);

    module_free(module);
    win->w_osc_module = NULL;
    return rc;
}

int ompi_osc_dimmnet_shared_query(ompi_win_t *win, int rank, size_t *size, dn_ompi_unit_t *disp_unit,
                                  void *baseptr)
{
    const osc_module_t *module = osc_module(win);

    if (MPI_WIN_FLAVOR_SHARED != module->flavor) {
        return OMPI_ERR_RMA_FLAVOR;
    }
    if (MPI_PROC_NULL == rank) {
        /* The user asks for the first process with memory. */
        for (rank = 0; rank < module->rma.size && 0 == module->target[rank].size; rank++) {
        }
    }
    if (module->rma.size == rank) {
        *size = 0;
        *disp_unit = 0;
        *(void **) baseptr = NULL;
    } else {
        *size = module->target[rank].size;
        *disp_unit = (dn_ompi_unit_t) module->target[rank].unit;
        /* A process with 0 bytes has no address, as in other implementations. */
        *(void **) baseptr = 0 == *size ? NULL : module->target[rank].base;
    }
    return OMPI_SUCCESS;
}

int ompi_osc_dimmnet_within(const osc_target_t *to, uint64_t at, const osc_side_t *side)
{
    dn_prog_span_t span;

    if (0 == osc_side_bytes(side)) {
        return OMPI_SUCCESS;
    }
    if (!ompi_osc_dimmnet_span(side, &span)) {
        return OMPI_ERR_RMA_RANGE;
    }
    const uint64_t low = at + (uint64_t) span.low;
    const uint64_t len = (uint64_t) span.high - (uint64_t) span.low;
    return low > to->size || len > to->size - low ? OMPI_ERR_RMA_RANGE : OMPI_SUCCESS;
}
