/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_far.c
 * Put and get where the target's memory is not mapped: PUSH and PULL, with a program on each side that has gaps.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include "opal/runtime/opal_progress.h"

/** @name Requests */
/** @{ */

/** ompi_request_free_fn_t. */
static int request_free(ompi_request_t **request)
{
    OMPI_REQUEST_FINI(*request);
    OBJ_RELEASE(*request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static ompi_request_t *request_new(ompi_win_t *win)
{
    ompi_request_t *request = OBJ_NEW(ompi_request_t);

    if (NULL == request) {
        return NULL;
    }
    OMPI_REQUEST_INIT(request, false);
    request->req_type = OMPI_REQUEST_WIN;
    request->req_state = OMPI_REQUEST_ACTIVE;
    request->req_free = request_free;
    request->req_cancel = NULL;
    request->req_mpi_object.win = win;
    request->req_status = ompi_status_empty;
    return request;
}
/** @} */

/** @name Tasks */
/** @{ */

static int error_of(dn_status_t status)
{
    return DN_ERR_RANGE == status ? OMPI_ERR_RMA_RANGE : dn_ompi_status(status);
}

/** dn_comp_fn_t. */
static void transferred(dn_comp_t *comp, dn_status_t status)
{
    ompi_osc_dimmnet_task_end((osc_task_t *) comp, error_of(status));
}

osc_task_t *ompi_osc_dimmnet_task_new(osc_far_t *far, ompi_win_t *win, ompi_request_t **request)
{
    osc_task_t *task = calloc(1, sizeof(*task));

    if (NULL == task) {
        return NULL;
    }
    task->comp.fn = transferred;
    task->far = far;
    if (NULL != request) {
        task->request = request_new(win);
        if (NULL == task->request) {
            free(task);
            return NULL;
        }
        *request = task->request;
    }
    __atomic_fetch_add(&far->pending, 1, __ATOMIC_RELAXED);
    return task;
}

void ompi_osc_dimmnet_task_end(osc_task_t *task, int error)
{
    osc_far_t *far = task->far;

    /* A request tells of its error by itself, and only by itself. */
    if (OMPI_SUCCESS != error && NULL == task->request && OMPI_SUCCESS == far->error) {
        far->error = error;
    }
    for (int i = 0; i < 2; i++) {
        if (NULL != task->types[i]) {
            OBJ_RELEASE(task->types[i]);
        }
    }
    if (NULL != task->request) {
        task->request->req_status.MPI_ERROR =
            OMPI_SUCCESS == error ? MPI_SUCCESS : ompi_errcode_get_mpi_code(error);
        (void) ompi_request_complete(task->request, true);
        dn_ompi_wait_tell();
    }
    free(task);
    /* Last: who waits for it may take the window away. */
    __atomic_fetch_sub(&far->pending, 1, __ATOMIC_RELEASE);
}

int ompi_osc_dimmnet_task_start(osc_task_t *task, dn_xfer_t *xfer, bool write)
{
    dn_peer_t *peer = task->far->peer;
    dn_status_t status;
    osc_patience_t patience = {0};

    xfer->comp = &task->comp;
    while (DN_ERR_AGAIN == (status = write ? dn_push(peer, xfer) : dn_pull(peer, xfer))) {
        ompi_osc_dimmnet_wait(&patience);
    }
    if (DN_OK == status) {
        ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
    }
    return DN_INPROGRESS == status ? OMPI_SUCCESS : error_of(status);
}

void ompi_osc_dimmnet_request_drop(ompi_request_t **request)
{
    osc_patience_t patience = {0};

    if (NULL == request) {
        return;
    }
    /* The thread that makes progress may still look at an answer. */
    while (!REQUEST_COMPLETE(*request)) {
        ompi_osc_dimmnet_wait(&patience);
    }
    (void) ompi_request_free(request);
}

/** Keep a datatype whose program is in use. */
static void keep(osc_task_t *task, int i, const osc_side_t *side)
{
    if (!osc_side_contiguous(side)) {
        OBJ_RETAIN(side->type);
        task->types[i] = side->type;
    }
}
/** @} */

bool ompi_osc_dimmnet_span(const osc_side_t *side, dn_prog_span_t *span)
{
    const ompi_datatype_t *type = side->type;

    *span = (dn_prog_span_t){.size = osc_side_bytes(side)};
    if (0 == span->size) {
        return true;
    }
    if (osc_side_contiguous(side)) {
        span->low = type->super.true_lb;
        return !__builtin_add_overflow(span->low, (int64_t) span->size, &span->high);
    }
    const dn_prog_t *prog = dn_ompi_prog(side->type);
    const dn_prog_use_t use = {prog, side->count, type->super.ub - type->super.lb};
    return NULL != prog && DN_OK == dn_prog_span(&use, span);
}

/** Where a far side of an operation is. */
typedef struct osc_place {
    uint8_t *here; /**< in the address space of this process; NULL: not there */
    dn_key_t key;
    uint64_t roff; /**< of the displacement's address */
} osc_place_t;

static int find_place(osc_module_t *module, int target, const osc_side_t *there, osc_place_t *place)
{
    const uint64_t at = (uintptr_t) there->buf;
    osc_region_t region;
    dn_prog_span_t span;
    int rc;

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        place->here = NULL;
        place->key = module->far[target].key;
        place->roff = module->far[target].roff + at;
        return OMPI_SUCCESS;
    }
    if (!ompi_osc_dimmnet_span(there, &span)) {
        return OMPI_ERR_RMA_RANGE;
    }
    rc = ompi_osc_dimmnet_region(module, target, at + (uint64_t) span.low, (uint64_t) (span.high - span.low),
                                 &region);
    if (OMPI_SUCCESS == rc) {
        place->here = ompi_osc_dimmnet_region_here(module, target, &region);
        place->here = NULL == place->here ? NULL : place->here + (at - region.base);
        place->key = region.key;
        place->roff = region.roff + (at - region.base);
    }
    return rc;
}

/** Copy between two sides that are both here. */
static int copy_here(const osc_side_t *to, const osc_side_t *from)
{
    dn_prog_cursor_t write, read;

    if (!osc_side_start(to, &write) || !osc_side_start(from, &read)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    (void) dn_prog_copy(&write, &read, UINT64_MAX);
    return OMPI_SUCCESS;
}

/** One side of a transfer: its layout, when it has one. @return false: it has no program. */
static bool describe(const osc_side_t *side, dn_prog_use_t *use, dn_sg_t *sg, const dn_sg_t **sg_p)
{
    *sg_p = NULL;
    if (osc_side_contiguous(side)) {
        return true;
    }
    *use =
        (dn_prog_use_t){dn_ompi_prog(side->type), side->count, side->type->super.ub - side->type->super.lb};
    *sg = (dn_sg_t){.use = use};
    *sg_p = sg;
    return NULL != use->prog;
}

static int transfer(osc_module_t *module, int target, const osc_side_t *origin, const osc_side_t *there,
                    const osc_place_t *place, bool write, ompi_request_t **request)
{
    osc_far_t *far = &module->far[target];
    const bool plain[2] = {osc_side_contiguous(origin), osc_side_contiguous(there)};
    dn_prog_use_t uses[2];
    dn_sg_t sides[2];
    dn_xfer_t xfer = {.key = &place->key, .len = osc_side_bytes(write ? origin : there)};

    if (!describe(origin, &uses[0], &sides[0], &xfer.local_sg)
        || !describe(there, &uses[1], &sides[1], &xfer.remote_sg)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    xfer.local = plain[0] ? osc_side_at(origin) : (void *) (uintptr_t) origin->buf;
    xfer.roff = place->roff + (plain[1] ? (uint64_t) there->type->super.true_lb : 0);
    if (NULL == request && ompi_osc_dimmnet_batch_add(module, target, &xfer, write)) {
        return OMPI_SUCCESS;
    }
    osc_task_t *task = ompi_osc_dimmnet_task_new(far, module->win, request);
    if (NULL == task) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    keep(task, 0, origin);
    keep(task, 1, there);
    const int rc = ompi_osc_dimmnet_task_start(task, &xfer, write);
    if (OMPI_SUCCESS != rc) {
        /* The call says what is wrong, not the next flush. */
        ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
        ompi_osc_dimmnet_request_drop(request);
    }
    return rc;
}

int ompi_osc_dimmnet_far_move(osc_module_t *module, int target, const osc_side_t *origin,
                              const osc_side_t *there, bool write, ompi_request_t **request)
{
    const uint64_t from = osc_side_bytes(write ? origin : there);
    const uint64_t to = osc_side_bytes(write ? there : origin);
    osc_place_t place;
    int rc;

    if (from > to || (from < to && (!osc_side_contiguous(origin) || !osc_side_contiguous(there)))) {
        return MPI_ERR_TRUNCATE;
    }
    if (0 == from) {
        return OMPI_SUCCESS;
    }
    rc = find_place(module, target, there, &place);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL != place.here) {
        const osc_side_t mapped = {place.here, there->count, there->type};

        return write ? copy_here(&mapped, origin) : copy_here(origin, &mapped);
    }
    return transfer(module, target, origin, there, &place, write, request);
}

static int settle_one(osc_module_t *module, int rank)
{
    osc_far_t *far = &module->far[rank];
    osc_patience_t patience = {0};
    int error;

    while (0 != osc_load_u32(&far->pending)) {
        ompi_osc_dimmnet_wait(&patience);
    }
    error = far->error;
    far->error = OMPI_SUCCESS;
    return osc_is_lost(module, rank) ? OMPI_ERR_UNREACH : error;
}

int ompi_osc_dimmnet_settle(osc_module_t *module, int target)
{
    int rc = OMPI_SUCCESS;

    /* Also when nothing is pending: others may need this process, which polls memory of its own, say. */
    dn_ompi_progress_once();
    if (-1 != target) {
        ompi_osc_dimmnet_batch_start(module, target);
        return settle_one(module, target);
    }
    for (int rank = 0; rank < module->size; rank++) {
        ompi_osc_dimmnet_batch_start(module, rank);
    }
    for (int rank = 0; rank < module->size; rank++) {
        const int error = settle_one(module, rank);

        rc = OMPI_SUCCESS == rc ? error : rc;
    }
    return rc;
}
