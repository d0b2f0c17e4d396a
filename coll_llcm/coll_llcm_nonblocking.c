/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_nonblocking.c
 * Nonblocking barriers, short broadcasts and reductions: started by their call, or by MPI_Start() where they are persistent; completed
 * by Open MPI's progress.
 *
 * A module's operations queue for its tree, which has one operation under way. From the call of the first operation until the last is
 * complete, only the holder of the lock uses the tree; a blocking collective waits until then (coll_llcm_drain()). No function that may
 * come back here is called under the lock: requests are completed, and communicators released, after the lock is let go.
 *
 * Each process may start persistent requests in another order, also between other collectives. So each persistent request
 * has a tree of its own, which is set up when the request is made. On this tree there is one operation at a time.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Requests that are made at a time. */
#define REQUESTS_MORE 16

/** Hold what a persistent request uses. Open MPI does not hold it, as it takes the request for a complete one. */
static void persistent_retain(coll_llcm_request_t *request)
{
    OBJ_RETAIN(request->super.super.req_mpi_object.comm);
    if (NULL != request->type) {
        OBJ_RETAIN(request->type);
    }
    if (NULL != request->reduction.op) {
        OBJ_RETAIN(request->reduction.op);
    }
}

/** Release what a persistent request holds, and its tree. */
static void persistent_release(coll_llcm_request_t *request)
{
    ompi_communicator_t *comm = request->super.super.req_mpi_object.comm;

    OBJ_RELEASE(request->module);
    if (NULL != request->type) {
        OBJ_RELEASE(request->type);
    }
    if (NULL != request->reduction.op) {
        OBJ_RELEASE(request->reduction.op);
    }
    OBJ_RELEASE(comm);
}

static int request_free(ompi_request_t **request)
{
    ompi_request_t *own = *request;

    if (!REQUEST_COMPLETE(own)) {
        return MPI_ERR_REQUEST;
    }
    if (own->req_persistent) {
        persistent_release((coll_llcm_request_t *) own);
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

/** Does the data of a broadcast go through the request's `bytes`? */
static bool request_packs(const coll_llcm_request_t *request)
{
    return COLL_LLCM_BCAST == request->kind && !coll_llcm_is_contiguous(request->count, request->type);
}

static bool request_is_root(const coll_llcm_request_t *request)
{
    return ompi_comm_rank(request->super.super.req_mpi_object.comm) == (int) request->root;
}

static dn_status_t start_bcast(coll_llcm_request_t *request)
{
    const bool packs = request_packs(request);

    if (packs && request_is_root(request)) {
        coll_llcm_pack(request->bytes, request->out, request->count, request->type);
    }
    return dn_tree_bcast(request->module->tree, request->root,
                         packs ? request->bytes : coll_llcm_start(request->out, request->type),
                         coll_llcm_bytes(request->count, request->type));
}

static dn_status_t nonblocking_start(coll_llcm_request_t *request)
{
    dn_tree_t *tree = request->module->tree;

    switch (request->kind) {
    case COLL_LLCM_ALLREDUCE:
        return dn_tree_allreduce(tree, request->in, request->out, request->count, &request->reduction.super);
    case COLL_LLCM_REDUCE:
        return dn_tree_reduce(tree, request->root, request->in, request->out, request->count,
                              &request->reduction.super);
    case COLL_LLCM_BCAST:
        return start_bcast(request);
    default:
        return dn_tree_barrier(tree);
    }
}

/** An operation is complete: finish its request, but for ompi_request_complete(). After that call the data belongs to the user. */
static void request_end(coll_llcm_request_t *request, dn_status_t status)
{
    request->super.super.req_status.MPI_ERROR = DN_OK == status ? MPI_SUCCESS : OMPI_ERR_UNREACH;
    if (DN_OK == status && request_packs(request) && !request_is_root(request)) {
        coll_llcm_unpack(request->out, request->count, request->type, request->bytes);
    }
}

/** Put an operation at the end of its module's queue. The lock is held. */
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

/** Take the complete operations off the queue of a module, and start the next one. The lock is held.
 * @param[in,out] done  The complete operations are added here. */
static void nonblocking_settle(coll_llcm_module_t *module, dn_fifo_t *done)
{
    dn_status_t status = dn_tree_test(module->tree);

    if (DN_INPROGRESS == status && 0 == ++module->turns % COLL_LLCM_WATCH_POLLS) {
        coll_llcm_watch(module);
    }
    while (DN_INPROGRESS != status) {
        if (OPAL_UNLIKELY(DN_OK != status)) {
            (void) coll_llcm_failed(module);
        }
        dn_queue_item_t *item = dn_queue_pop(&coll_llcm.nonblocking.modules, &module->requests);
        nonblocking_request_of(item)->status = status;
        dn_fifo_push(done, item);
        dn_store_release(&coll_llcm.nonblocking.operations, coll_llcm.nonblocking.operations - 1);
        dn_store_release(&coll_llcm.nonblocking.far, coll_llcm.nonblocking.far - !module->mapped);
        /* Pairs with the acquire in coll_llcm_ready(): once this is 0, a collective in any thread may use the tree. */
        dn_store_release(&module->pending, module->pending - 1);
        if (NULL == module->requests.items.first) {
            break;
        }
        status = nonblocking_start(nonblocking_request_of(module->requests.items.first));
    }
}

/** Complete the requests of operations. The lock is not held. @return how many there are. */
static int nonblocking_complete(dn_fifo_t *done)
{
    dn_queue_item_t *item;
    int count = 0;

    while (NULL != (item = dn_fifo_pop(done))) {
        coll_llcm_request_t *request = nonblocking_request_of(item);
        ompi_communicator_t *comm = request->super.super.req_mpi_object.comm;
        request_end(request, request->status);
        /* The request is not touched after this call: another operation may use it. */
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

/** The process has slept. It may have been woken because the tree is given up. It polls seldom now, so it looks for this at once. */
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

/** A request for an operation on the tree of a module. It is not yet started. @return NULL: no memory. */
static coll_llcm_request_t *request_get(coll_llcm_module_t *module, ompi_communicator_t *comm,
                                        coll_llcm_kind_t kind, bool persistent)
{
    coll_llcm_request_t *request =
        (coll_llcm_request_t *) opal_free_list_get(&coll_llcm.nonblocking.requests);

    if (OPAL_LIKELY(NULL != request)) {
        OMPI_REQUEST_INIT(&request->super.super, persistent);
        request->super.super.req_mpi_object.comm = comm;
        request->module = module;
        request->kind = kind;
        request->type = NULL;
        request->reduction.op = NULL;
    }
    return request;
}

/** Start an operation, or have it wait for its turn. @return DN_INPROGRESS: it will be completed. */
static dn_status_t nonblocking_begin(coll_llcm_request_t *own)
{
    coll_llcm_module_t *module = own->module;
    dn_status_t status = DN_INPROGRESS;

    opal_mutex_lock(&coll_llcm.nonblocking.lock);
    const bool registers = !coll_llcm.nonblocking.registered;
    coll_llcm.nonblocking.registered = true;
    dn_store_relaxed(&coll_llcm.nonblocking.begun, coll_llcm.nonblocking.begun + 1);
    if (NULL == module->requests.items.first) {
        status = nonblocking_start(own);
    }
    if (DN_INPROGRESS == status) {
        nonblocking_enqueue(own);
    } else if (OPAL_UNLIKELY(DN_OK != status)) {
        (void) coll_llcm_failed(module);
    }
    opal_mutex_unlock(&coll_llcm.nonblocking.lock);
    if (registers) {
        dn_ompi_progress_add(coll_llcm_advance, DN_OMPI_CARRIES_NONE);
    }
    return status;
}

/** @name What a request will do */
/** @{ */
static void describe_bcast(coll_llcm_request_t *own, void *buf, size_t count, ompi_datatype_t *type, int root)
{
    own->out = buf;
    own->count = count;
    own->type = type;
    own->root = (uint32_t) root;
}

static void describe_reduction(coll_llcm_request_t *own, const void *sbuf, void *rbuf, size_t count,
                               const coll_llcm_reduction_t *reduction, int root)
{
    own->in = MPI_IN_PLACE == sbuf ? rbuf : sbuf;
    own->out = rbuf;
    own->count = count;
    own->type = reduction->type;
    own->root = (uint32_t) root;
    own->reduction = *reduction;
}
/** @} */

/** @name Which operations go to the tree: the same in all processes
 * Open MPI finds the context ids of new communicators by nonblocking collectives of an int. For MPI_Comm_idup() Open MPI calls them from
 * its progress. So the processes do not call them in the same order among their other collectives, and the tree cannot take them.
 */
/** @{ */
/** Does a broadcast go to the tree? @param[in] persistent  Then it is the user's: Open MPI itself uses no persistent collectives. */
static bool is_bcast_for_tree(const coll_llcm_module_t *module, size_t count, const ompi_datatype_t *type,
                              bool persistent)
{
    const size_t bytes = coll_llcm_bytes(count, type);

    return NULL != module->tree && 0 != bytes && (persistent || sizeof(int) != bytes)
           && dn_tree_max(1) >= bytes && coll_llcm_is_fast(module, bytes, 1);
}

/** Does a reduction go to the tree? @param[out] reduction  Filled in. */
static bool is_reduction_for_tree(coll_llcm_module_t *module, size_t count, ompi_datatype_t *type,
                                  ompi_op_t *op, bool persistent, coll_llcm_reduction_t *reduction)
{
    if (NULL == module->tree || !coll_llcm_reduction_fits(module, count, type, op, reduction)) {
        return false;
    }
    const bool may_be_internal = !persistent && 1 == count && sizeof(int) == reduction->super.size
                                 && (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
    return !may_be_internal && (ompi_op_is_commute(op) || 0 != dn_tree_ordered(module->tree));
}
/** @} */

/** @name Nonblocking */
/** @{ */
/** Start the operation of a request, and give the request to the caller. */
static int nonblocking_launch(coll_llcm_request_t *own, ompi_request_t **request)
{
    own->super.super.req_state = OMPI_REQUEST_ACTIVE;
    const dn_status_t status = nonblocking_begin(own);
    if (DN_INPROGRESS == status) {
        *request = &own->super.super;
        return OMPI_SUCCESS;
    }
    request_end(own, status);
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
    coll_llcm_request_t *own = request_get(module, comm, COLL_LLCM_BARRIER, false);
    return NULL == own ? OMPI_ERR_OUT_OF_RESOURCE : nonblocking_launch(own, request);
}

int coll_llcm_ibcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                     struct ompi_communicator_t *comm, ompi_request_t **request,
                     mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;

    if (!is_bcast_for_tree(module, count, type, false)) {
        return module->saved.coll_ibcast(buf, count, type, root, comm, request,
                                         module->saved.coll_ibcast_module);
    }
    coll_llcm_request_t *own = request_get(module, comm, COLL_LLCM_BCAST, false);
    if (NULL == own) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    describe_bcast(own, buf, count, type, root);
    return nonblocking_launch(own, request);
}

/** Start a reduction that goes to the tree. */
static int reduction_launch(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                            coll_llcm_kind_t kind, const void *sbuf, void *rbuf, size_t count,
                            const coll_llcm_reduction_t *reduction, int root, ompi_request_t **request)
{
    coll_llcm_request_t *own = request_get(module, comm, kind, false);

    if (NULL == own) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    describe_reduction(own, sbuf, rbuf, count, reduction, root);
    return nonblocking_launch(own, request);
}

int coll_llcm_ireduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                      struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                      ompi_request_t **request, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_reduction_t reduction;

    return is_reduction_for_tree(module, count, type, op, false, &reduction)
               ? reduction_launch(module, comm, COLL_LLCM_REDUCE, sbuf, rbuf, count, &reduction, root,
                                  request)
               : module->saved.coll_ireduce(sbuf, rbuf, count, type, op, root, comm, request,
                                            module->saved.coll_ireduce_module);
}

int coll_llcm_iallreduce(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                         struct ompi_op_t *op, struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_reduction_t reduction;

    return is_reduction_for_tree(module, count, type, op, false, &reduction)
               ? reduction_launch(module, comm, COLL_LLCM_ALLREDUCE, sbuf, rbuf, count, &reduction, 0,
                                  request)
               : module->saved.coll_iallreduce(sbuf, rbuf, count, type, op, comm, request,
                                               module->saved.coll_iallreduce_module);
}
/** @} */

/** @name Persistent
 * The call that makes a request is collective, and may wait for the other processes.
 */
/** @{ */
/** MPI_Start() and MPI_Startall(). Open MPI does not look whether an operation is under way. */
static int persistent_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        coll_llcm_request_t *own = (coll_llcm_request_t *) requests[i];
        if (OPAL_UNLIKELY(!REQUEST_COMPLETE(requests[i]))) {
            return MPI_ERR_REQUEST;
        }
        own->super.super.req_complete = REQUEST_PENDING;
        own->super.super.req_state = OMPI_REQUEST_ACTIVE;
        const dn_status_t status = nonblocking_begin(own);
        if (DN_INPROGRESS != status) {
            request_end(own, status);
            (void) ompi_request_complete(&own->super.super, true);
        }
    }
    return OMPI_SUCCESS;
}

/** Up to so many bytes, a persistent reduction in lines is faster than the replaced function: to one process, and to all (perf/dn_coll,
 * preduce and pallreduce, 2 ranks). The replaced function makes its plan once for a persistent request, but anew for each nonblocking
 * operation. @{ */
#define REDUCE_INIT_MOST    (2 * DN_AOTF_LINE_MAX)
#define ALLREDUCE_INIT_MOST 256
/** @} */

/** Make a request with a tree of its own. Collective. @return NULL in all processes, if a process has no room for it. */
static coll_llcm_request_t *persistent_get(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                           coll_llcm_kind_t kind)
{
    coll_llcm_module_t *beside = coll_llcm_has_plenty() ? coll_llcm_module_beside(module) : NULL;
    coll_llcm_request_t *own = NULL == beside ? NULL : request_get(beside, comm, kind, true);

    if (coll_llcm_all_agree(module, comm, NULL != own) && coll_llcm_set_up(beside, comm)) {
        own->super.super.req_start = persistent_start;
        return own;
    }
    if (NULL != own) {
        opal_free_list_return(&coll_llcm.nonblocking.requests, (opal_free_list_item_t *) own);
    }
    if (NULL != beside) {
        OBJ_RELEASE(beside);
    }
    return NULL;
}

/** Give a persistent request to the caller. */
static int persistent_give(coll_llcm_request_t *own, ompi_request_t **request)
{
    persistent_retain(own);
    *request = &own->super.super;
    return OMPI_SUCCESS;
}

int coll_llcm_barrier_init(struct ompi_communicator_t *comm, struct ompi_info_t *info,
                           ompi_request_t **request, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_request_t *own = NULL == module->tree ? NULL : persistent_get(module, comm, COLL_LLCM_BARRIER);

    return NULL == own
               ? module->saved.coll_barrier_init(comm, info, request, module->saved.coll_barrier_init_module)
               : persistent_give(own, request);
}

int coll_llcm_bcast_init(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                         struct ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
                         mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_request_t *own =
        is_bcast_for_tree(module, count, type, true) ? persistent_get(module, comm, COLL_LLCM_BCAST) : NULL;

    if (NULL == own) {
        return module->saved.coll_bcast_init(buf, count, type, root, comm, info, request,
                                             module->saved.coll_bcast_init_module);
    }
    describe_bcast(own, buf, count, type, root);
    return persistent_give(own, request);
}

/** Make a persistent request for a reduction of this kind. @return NULL in all processes: it does not go to a tree. */
static coll_llcm_request_t *persistent_reduction(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                                 coll_llcm_kind_t kind, const void *sbuf, void *rbuf,
                                                 size_t count, ompi_datatype_t *type, ompi_op_t *op, int root)
{
    const size_t most = COLL_LLCM_REDUCE == kind ? REDUCE_INIT_MOST : ALLREDUCE_INIT_MOST;
    coll_llcm_reduction_t reduction;

    if (!is_reduction_for_tree(module, count, type, op, true, &reduction)
        || most < count * reduction.super.size) {
        return NULL;
    }
    coll_llcm_request_t *own = persistent_get(module, comm, kind);
    if (NULL != own) {
        describe_reduction(own, sbuf, rbuf, count, &reduction, root);
    }
    return own;
}

int coll_llcm_reduce_init(const void *sbuf, void *rbuf, dn_ompi_count_t count, struct ompi_datatype_t *type,
                          struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                          struct ompi_info_t *info, ompi_request_t **request, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_request_t *own =
        persistent_reduction(module, comm, COLL_LLCM_REDUCE, sbuf, rbuf, (size_t) count, type, op, root);

    return NULL == own ? module->saved.coll_reduce_init(sbuf, rbuf, count, type, op, root, comm, info,
                                                        request, module->saved.coll_reduce_init_module)
                       : persistent_give(own, request);
}

int coll_llcm_allreduce_init(const void *sbuf, void *rbuf, dn_ompi_count_t count,
                             struct ompi_datatype_t *type, struct ompi_op_t *op,
                             struct ompi_communicator_t *comm, struct ompi_info_t *info,
                             ompi_request_t **request, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    coll_llcm_request_t *own =
        persistent_reduction(module, comm, COLL_LLCM_ALLREDUCE, sbuf, rbuf, (size_t) count, type, op, 0);

    return NULL == own ? module->saved.coll_allreduce_init(sbuf, rbuf, count, type, op, comm, info, request,
                                                           module->saved.coll_allreduce_init_module)
                       : persistent_give(own, request);
}
/** @} */
