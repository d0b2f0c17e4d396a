/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_nonblocking.c
 * Nonblocking barriers and short reductions: started by their call, completed by Open MPI's progress.
 *
 * A module's operations queue for its tree, which has one under way. From the call of the first until the last is complete,
 * the tree belongs to the holder of the lock; a blocking collective waits for that (coll_llcm_drain()). Nothing is called
 * under the lock that may come back here: requests are completed, and communicators released, after it.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Requests that are made at a time. */
#define REQUESTS_MORE 16

static int request_free(ompi_request_t **request)
{
    ompi_request_t *own = *request;

    if (!REQUEST_COMPLETE(own)) {
        return MPI_ERR_REQUEST;
    }
    OMPI_REQUEST_FINI(own);
    opal_free_list_return(&coll_llcm.nonblocking.requests, (opal_free_list_item_t *) own);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/** MPI has no way to cancel a collective. */
static int request_cancel(ompi_request_t *request, int complete)
{
    (void) request;
    (void) complete;
    return MPI_ERR_REQUEST;
}

static void request_construct(coll_llcm_request_t *request)
{
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->super.super.req_free = request_free;
    request->super.super.req_cancel = request_cancel;
    request->super.super.req_status._cancelled = 0;
}

OBJ_CLASS_INSTANCE(coll_llcm_request_t, ompi_coll_base_nbc_request_t, request_construct, NULL);

int coll_llcm_nonblocking_open(void)
{
    OBJ_CONSTRUCT(&coll_llcm.nonblocking.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&coll_llcm.nonblocking.requests, opal_free_list_t);
    return opal_free_list_init(&coll_llcm.nonblocking.requests, sizeof(coll_llcm_request_t),
                               opal_cache_line_size, OBJ_CLASS(coll_llcm_request_t), 0, 0, 0, -1,
                               REQUESTS_MORE, NULL, 0, NULL, NULL, NULL);
}

void coll_llcm_nonblocking_close(void)
{
    if (coll_llcm.nonblocking.registered) {
        dn_ompi_progress_remove(coll_llcm_advance);
        coll_llcm.nonblocking.registered = false;
    }
    OBJ_DESTRUCT(&coll_llcm.nonblocking.requests);
    OBJ_DESTRUCT(&coll_llcm.nonblocking.lock);
}

static dn_status_t nonblocking_start(coll_llcm_request_t *request)
{
    return request->reduces ? dn_tree_allreduce(request->module->tree, request->in, request->out,
                                                request->count, &request->reduction.super)
                            : dn_tree_barrier(request->module->tree);
}

/** Put an operation behind those of its module. The lock is held. */
static void nonblocking_enqueue(coll_llcm_request_t *request)
{
    coll_llcm_module_t *module = request->module;

    dn_queue_push(&coll_llcm.nonblocking.modules, &module->requests, &request->item);
    module->pending++;
    dn_store_release(&coll_llcm.nonblocking.operations, coll_llcm.nonblocking.operations + 1);
    dn_store_release(&coll_llcm.nonblocking.far, coll_llcm.nonblocking.far + !module->mapped);
    /* The communicator may be freed before its operations are complete. */
    OBJ_RETAIN(request->super.super.req_mpi_object.comm);
}

static coll_llcm_request_t *nonblocking_request_of(dn_queue_item_t *item)
{
    return (coll_llcm_request_t *) ((char *) item - offsetof(coll_llcm_request_t, item));
}

/** Take the operations off the queue of a module that are complete, and start the next. The lock is held.
 * @param[in,out] done  Where they go. */
static void nonblocking_settle(coll_llcm_module_t *module, dn_fifo_t *done)
{
    dn_status_t status = dn_tree_test(module->tree);

    if (DN_INPROGRESS == status && 0 == ++module->turns % COLL_LLCM_WATCH_POLLS) {
        coll_llcm_watch(module);
    }
    while (DN_INPROGRESS != status) {
        dn_queue_item_t *item = dn_queue_pop(&coll_llcm.nonblocking.modules, &module->requests);
        nonblocking_request_of(item)->status = status;
        dn_fifo_push(done, item);
        dn_store_release(&coll_llcm.nonblocking.operations, coll_llcm.nonblocking.operations - 1);
        dn_store_release(&coll_llcm.nonblocking.far, coll_llcm.nonblocking.far - !module->mapped);
        /* With 0 the tree is whose collective comes next, in any thread: pairs with coll_llcm_ready(). */
        dn_store_release(&module->pending, module->pending - 1);
        if (NULL == module->requests.items.first) {
            break;
        }
        status = nonblocking_start(nonblocking_request_of(module->requests.items.first));
    }
}

/** What is left once the lock is not held any more. @return how many there are. */
static int nonblocking_complete(dn_fifo_t *done)
{
    dn_queue_item_t *item;
    int count = 0;

    while (NULL != (item = dn_fifo_pop(done))) {
        coll_llcm_request_t *request = nonblocking_request_of(item);
        ompi_communicator_t *comm = request->super.super.req_mpi_object.comm;
        request->super.super.req_status.MPI_ERROR = DN_OK == request->status ? MPI_SUCCESS : OMPI_ERR_UNREACH;
        /* It may be another's from here on. */
        (void) ompi_request_complete(&request->super.super, true);
        dn_ompi_wait_tell();
        OBJ_RELEASE(comm);
        count++;
    }
    return count;
}

int coll_llcm_advance(void)
{
    dn_round_t *modules = &coll_llcm.nonblocking.modules;
    dn_fifo_t done = {0};
    dn_queue_t *queue;

    if (OPAL_LIKELY(0 == dn_load_acquire(&coll_llcm.nonblocking.operations))) {
        return 0;
    }
    if (0 != dn_load_acquire(&coll_llcm.nonblocking.far)) {
        (void) dn_progress(coll_llcm.port);
    }
    if (0 != opal_mutex_trylock(&coll_llcm.nonblocking.lock)) {
        return 0;
    }
    for (uint32_t n = modules->count; 0 != n && NULL != (queue = dn_round_turn(modules)); n--) {
        nonblocking_settle(nonblocking_request_of(queue->items.first)->module, &done);
    }
    opal_mutex_unlock(&coll_llcm.nonblocking.lock);
    return nonblocking_complete(&done);
}

/** The process has slept, maybe until it was told that the tree is given up, and polls are few now. */
static void nonblocking_heed(coll_llcm_module_t *module)
{
    opal_mutex_lock(&coll_llcm.nonblocking.lock);
    if (0 != module->pending) {
        (void) dn_tree_heed(module->tree);
    }
    opal_mutex_unlock(&coll_llcm.nonblocking.lock);
}

void coll_llcm_drain(coll_llcm_module_t *module)
{
    dn_ompi_wait_t wait = {0};
    uint64_t pending;

    for (unsigned polls = 1; 0 != (pending = dn_load_acquire(&module->pending)); polls++) {
        if (coll_llcm_idle(&wait, module->mapped, polls, pending)) {
            nonblocking_heed(module);
        }
        (void) coll_llcm_advance();
    }
}

/** A request for an operation on the tree, not yet started. @return NULL: no memory. */
static coll_llcm_request_t *request_get(coll_llcm_module_t *module, ompi_communicator_t *comm)
{
    coll_llcm_request_t *request =
        (coll_llcm_request_t *) opal_free_list_get(&coll_llcm.nonblocking.requests);

    if (OPAL_LIKELY(NULL != request)) {
        OMPI_REQUEST_INIT(&request->super.super, false);
        request->super.super.req_state = OMPI_REQUEST_ACTIVE;
        request->super.super.req_mpi_object.comm = comm;
        request->module = module;
        request->reduces = false;
    }
    return request;
}

/** Start an operation, or have it wait for its turn. */
static int nonblocking_launch(coll_llcm_request_t *own, ompi_request_t **request)
{
    coll_llcm_module_t *module = own->module;
    dn_status_t status = DN_INPROGRESS;

    opal_mutex_lock(&coll_llcm.nonblocking.lock);
    const bool registers = !coll_llcm.nonblocking.registered;
    coll_llcm.nonblocking.registered = true;
    if (NULL == module->requests.items.first) {
        status = nonblocking_start(own);
    }
    if (DN_INPROGRESS == status) {
        nonblocking_enqueue(own);
    }
    opal_mutex_unlock(&coll_llcm.nonblocking.lock);
    if (registers) {
        dn_ompi_progress_add(coll_llcm_advance, DN_OMPI_CARRIES_NONE);
    }
    if (DN_INPROGRESS == status) {
        *request = &own->super.super;
        return OMPI_SUCCESS;
    }
    opal_free_list_return(&coll_llcm.nonblocking.requests, (opal_free_list_item_t *) own);
    *request = &ompi_request_empty;
    return DN_OK == status ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

int coll_llcm_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                       mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;

    if (NULL == module->tree) {
        return module->saved.coll_ibarrier(comm, request, module->saved.coll_ibarrier_module);
    }
    coll_llcm_request_t *own = request_get(module, comm);
    return NULL == own ? OMPI_ERR_OUT_OF_RESOURCE : nonblocking_launch(own, request);
}

/**
 * Open MPI finds the context ids of new communicators by such reductions. Those of MPI_Comm_idup() come one after the
 * other out of its progress, so not in the same order as the calls of all processes: the tree cannot take them.
 */
static bool may_be_internal(size_t count, const coll_llcm_reduction_t *reduction)
{
    return 1 == count && sizeof(int) == reduction->super.size
           && (&ompi_mpi_op_max.op == reduction->op || &ompi_mpi_op_min.op == reduction->op);
}

int coll_llcm_iallreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                         struct ompi_op_t *op, struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_reduction_t reduction;

    if (NULL == module->tree || !coll_llcm_reduction_fits(module, count, type, op, &reduction)
        || may_be_internal(count, &reduction)
        || (!ompi_op_is_commute(op) && 0 == dn_tree_ordered(module->tree))) {
        return module->saved.coll_iallreduce(sbuf, rbuf, count, type, op, comm, request,
                                             module->saved.coll_iallreduce_module);
    }
    coll_llcm_request_t *own = request_get(module, comm);
    if (NULL == own) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    own->reduces = true;
    own->in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    own->out = rbuf;
    own->count = (size_t) count;
    own->reduction = reduction;
    return nonblocking_launch(own, request);
}
