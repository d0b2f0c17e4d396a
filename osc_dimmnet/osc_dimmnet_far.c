/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_far.c
 * Operations on far targets: MPI's requests and datatypes for dn_rma.h.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

#include <inttypes.h>

#include "ompi/datatype/ompi_datatype_internal.h"

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

/** dn_rma_task_t::end: free the task, and complete its request. */
static void task_end(dn_rma_task_t *super, dn_status_t status)
{
    osc_task_t *task = (osc_task_t *) super;

    for (int i = 0; i < 2; i++) {
        if (NULL != task->types[i]) {
            OBJ_RELEASE(task->types[i]);
        }
    }
    if (NULL != task->request) {
        task->request->req_status.MPI_ERROR =
            DN_OK == status ? MPI_SUCCESS : ompi_errcode_get_mpi_code(osc_error(status));
        (void) ompi_request_complete(task->request, true);
        dn_ompi_wait_tell();
    }
    free(task);
}

/** Begin a task. @param[out] request  The task's request; NULL: no request is wanted. @return NULL: no memory. */
static osc_task_t *task_new(osc_module_t *module, int target, ompi_request_t **request)
{
    osc_task_t *task = calloc(1, sizeof(*task));

    if (NULL == task) {
        return NULL;
    }
    task->super.end = task_end;
    if (NULL != request) {
        task->request = request_new(module->win);
        if (NULL == task->request) {
            free(task);
            return NULL;
        }
        task->super.tells = true;
        *request = task->request;
    }
    dn_rma_task_begin(&module->rma, target, &task->super);
    return task;
}

/** Free the request of a call that fails: the user gets MPI_REQUEST_NULL. The task has ended, or ends soon.
 * @param[in,out] request  NULL: there is no request. */
static void request_drop(ompi_request_t **request)
{
    dn_rma_wait_t wait = {.polls = 0};

    if (NULL == request) {
        return;
    }
    /* The thread that makes progress may still work on an answer. */
    while (!REQUEST_COMPLETE(*request)) {
        osc_wait(&wait);
    }
    (void) ompi_request_free(request);
}

/** Hold a datatype until the task ends. */
static void far_keep(osc_task_t *task, int i, ompi_datatype_t *type)
{
    OBJ_RETAIN(type);
    task->types[i] = type;
}
/** @} */

/** Translate a side for dn_rma.h. @return false: its datatype has no program. */
static bool find_memory(const osc_side_t *side, dn_rma_side_t *memory)
{
    if (osc_side_contiguous(side)) {
        *memory = (dn_rma_side_t){.at = (uintptr_t) osc_side_at(side), .len = osc_side_bytes(side)};
        return true;
    }
    *memory =
        (dn_rma_side_t){(uintptr_t) side->buf,
                        osc_side_bytes(side),
                        {dn_ompi_prog(side->type), side->count, side->type->super.ub - side->type->super.lb}};
    return NULL != memory->use.prog;
}

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

/** Find the region of a dynamic window that has all bytes of a side, gaps included. */
static int find_region(osc_module_t *module, int target, const osc_side_t *there, const dn_prog_span_t *span,
                       dn_rma_region_t *region)
{
    const uint64_t low = (uintptr_t) there->buf + (uint64_t) span->low;
    const uint64_t high = (uintptr_t) there->buf + (uint64_t) span->high;
    const int rc = ompi_osc_dimmnet_region(module, target, low, high - low, region);

    if (OMPI_ERR_RMA_RANGE == rc) {
        opal_output_verbose(1, ompi_osc_base_framework.framework_output,
                            "osc:dimmnet: no region of rank %d has all bytes from 0x%" PRIx64 " to 0x%" PRIx64
                            ": attach at once what one operation covers",
                            target, low, high);
    }
    return rc;
}

/** Where the side of an operation is that lies in the window of a far target. */
typedef struct osc_place {
    uint8_t *here; /**< the displacement's address here; NULL: not mapped here */
    dn_key_t key;  /**< of its segment */
    uint64_t roff; /**< bytes from the start of the segment to the displacement */
} osc_place_t;

static int find_place(osc_module_t *module, int target, const osc_side_t *there, osc_place_t *place)
{
    const uint64_t at = (uintptr_t) there->buf;
    dn_rma_region_t region;
    dn_prog_span_t span;

    if (MPI_WIN_FLAVOR_DYNAMIC != module->flavor) {
        place->here = NULL;
        place->key = module->rma.far[target].key;
        place->roff = module->rma.far[target].roff + at;
        return OMPI_SUCCESS;
    }
    if (!ompi_osc_dimmnet_span(there, &span)) {
        return OMPI_ERR_RMA_RANGE;
    }
    const int rc = find_region(module, target, there, &span, &region);
    if (OMPI_SUCCESS == rc) {
        place->here = ompi_osc_dimmnet_region_here(module, target, &region);
        place->here = NULL == place->here ? NULL : place->here + (at - region.base);
        place->key = region.key;
        place->roff = region.roff + (at - region.base);
    }
    return rc;
}

/** Copy between two sides that are both mapped here. */
static int copy_here(const osc_side_t *to, const osc_side_t *from)
{
    dn_prog_cursor_t write, read;

    if (!osc_side_start(to, &write) || !osc_side_start(from, &read)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    (void) dn_prog_copy(&write, &read, UINT64_MAX);
    return OMPI_SUCCESS;
}

/** May the target compute while this process waits for it? In an epoch of a fence the target waits, too. */
static bool may_compute(const osc_module_t *module, int target)
{
    return 0 != ((module->epochs | module->target[target].epochs) & (OSC_PASSIVE | OSC_START));
}

static int far_transfer(osc_module_t *module, int target, const osc_side_t *origin, const osc_side_t *there,
                        const osc_place_t *place, bool write, ompi_request_t **request)
{
    const osc_side_t placed = {(void *) (uintptr_t) place->roff, there->count, there->type};
    dn_rma_side_t here, far;
    dn_sg_t sg[2];
    dn_xfer_t xfer = {.key = &place->key,
                      .local = osc_side_at(origin),
                      .roff = (uintptr_t) osc_side_at(&placed),
                      .len = osc_side_bytes(write ? origin : there)};

    if (OPAL_UNLIKELY(!osc_side_contiguous(origin))) {
        if (!find_memory(origin, &here)) {
            return OMPI_ERR_NOT_SUPPORTED;
        }
        sg[0] = (dn_sg_t){.use = &here.use};
        xfer.local = (void *) (uintptr_t) here.at;
        xfer.local_sg = &sg[0];
    }
    if (OPAL_UNLIKELY(!osc_side_contiguous(there))) {
        if (!find_memory(&placed, &far)) {
            return OMPI_ERR_NOT_SUPPORTED;
        }
        sg[1] = (dn_sg_t){.use = &far.use};
        xfer.roff = far.at;
        xfer.remote_sg = &sg[1];
    }
    if (NULL == request
        && dn_rma_batch_add(&module->rma, target, &xfer, write, may_compute(module, target))) {
        return OMPI_SUCCESS;
    }
    osc_task_t *task = task_new(module, target, request);
    if (NULL == task) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != xfer.local_sg) {
        far_keep(task, 0, origin->type);
    }
    if (NULL != xfer.remote_sg) {
        far_keep(task, 1, there->type);
    }
    const dn_status_t status = dn_rma_transfer(&task->super, &xfer, write);
    if (DN_OK != status) {
        /* The task ends without an error: this call returns the error, not the next flush. */
        dn_rma_task_end(&task->super, DN_OK);
        request_drop(request);
    }
    return osc_error(status);
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
    return far_transfer(module, target, origin, there, &place, write, request);
}

/** The number by which all processes know a predefined datatype. Datatypes such as those of MPI_Type_create_f90_real() are copies of named
 * ones, and each process numbers them by itself. The named datatype, which has no arguments, stands for the copy. */
static int32_t number_of(const ompi_datatype_t *basic)
{
    const int32_t id = basic->id;
    const int copy = NULL != basic->args && 0 <= id && OMPI_DATATYPE_MPI_MAX_PREDEFINED > id;

    return (copy ? ompi_datatype_basicDatatypes[id] : basic)->d_f_to_c_index;
}

int ompi_osc_dimmnet_far_accumulate(osc_module_t *module, int target, const osc_side_t *origin,
                                    const osc_side_t *result, const void *compare, const osc_side_t *there,
                                    dn_acc_op_t op, ompi_request_t **request)
{
    ompi_datatype_t *basic = osc_basic(there->type);
    dn_rma_side_t from, to;
    const dn_rma_acc_t acc = {.op = op,
                              .type = number_of(NULL == basic ? (ompi_datatype_t *) MPI_BYTE : basic),
                              .size = NULL == basic ? 1 : (uint32_t) basic->super.size,
                              .origin = &from,
                              .there = &to,
                              .compare = compare};
    dn_rma_region_t region;
    dn_prog_span_t span;
    int rc = OMPI_SUCCESS;

    if (!ompi_osc_dimmnet_span(there, &span) || !find_memory(there, &to)
        || (DN_ACC_NO_OP != op && !find_memory(origin, &from))) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    if (MPI_WIN_FLAVOR_DYNAMIC == module->flavor) {
        /* The region is looked up only so that a wrong address is an error of this call. */
        rc = find_region(module, target, there, &span, &region);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    osc_task_t *task = task_new(module, target, request);
    if (NULL == task) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != result) {
        far_keep(task, 0, result->type);
        task->super.fetches = true;
        if (!find_memory(result, &task->super.result)) {
            dn_rma_task_end(&task->super, DN_OK);
            request_drop(request);
            return OMPI_ERR_NOT_SUPPORTED;
        }
    }
    const dn_status_t status = dn_rma_accumulate(&module->rma, target, &acc, &task->super);
    if (DN_OK != status) {
        request_drop(request);
    }
    return osc_error(status);
}

/** Of the calls that carry out operations, one in so many makes progress (perf/dn_rma put_latency on a created window). */
#define SETTLES 4

/** Make progress: a program may flush while it polls its memory, and other processes may need this process. A call that has carried out
 * operations leaves progress to a later one mostly: a look at all that may have come takes half as long as a put. Threads may lose a
 * count. */
static void settle_progress(osc_module_t *module, bool worked)
{
    const unsigned settles = dn_load_relaxed(&module->settles);

    dn_store_relaxed(&module->settles, settles + 1);
    if (!worked || 0 == settles % SETTLES || dn_ompi_shares_core() || dn_ompi_is_crowded()) {
        dn_ompi_progress_once();
    }
}

int ompi_osc_dimmnet_settle(osc_module_t *module, int target)
{
    bool worked = false;
    int rc = OMPI_SUCCESS;

    if (-1 != target) {
        worked = dn_rma_batch_start(&module->rma, target, may_compute(module, target));
        settle_progress(module, worked);
        return osc_error(dn_rma_settle(&module->rma, target));
    }
    for (int rank = 0; rank < module->rma.size; rank++) {
        worked |= dn_rma_batch_start(&module->rma, rank, may_compute(module, rank));
    }
    settle_progress(module, worked);
    for (int rank = 0; rank < module->rma.size; rank++) {
        const int error = osc_error(dn_rma_settle(&module->rma, rank));

        rc = OMPI_SUCCESS == rc ? error : rc;
    }
    return rc;
}
