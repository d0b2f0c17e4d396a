/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_request.c
 * The origin's side of the channel: what far targets are asked. An origin waits inside of its call for room to send.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

/** @name Sending */
/** @{ */

osc_head_t ompi_osc_dimmnet_head(const osc_module_t *module, int target)
{
    const osc_far_t *far = &module->far[target];

    return (osc_head_t){.window = far->window, .rank = module->rank};
}

/** From a call of the user's: wait for room for a message of @p len bytes. */
static int reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    osc_patience_t patience = {0};
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, len, window))) {
        ompi_osc_dimmnet_wait(&patience);
    }
    return dn_ompi_status(status);
}

static int send_head(osc_module_t *module, int target, enum osc_message tag, const osc_head_t *head)
{
    osc_far_t *far = &module->far[target];
    dn_window_t window;
    int rc = reserve(far->peer, sizeof(*head), &window);

    if (OMPI_SUCCESS == rc) {
        memcpy(window.data, head, sizeof(*head));
        dn_botf_kick(far->peer, &window, DN_CHAN_OSC, tag, sizeof(*head));
    } else {
        /* The news of a loss does not reach a window that has not placed its peers yet: nothing will come of it. */
        osc_store_u32(&far->lost, 1);
    }
    return rc;
}
/** @} */

/** @name Requests of an origin */
/** @{ */

/** Wait until no more than @p most parts of accumulates to a target are not answered. */
static int await_answers(const osc_module_t *module, int target, uint32_t most)
{
    osc_patience_t patience = {0};

    while (most < osc_load_u32(&module->far[target].asked)) {
        if (osc_is_lost(module, target)) {
            return OMPI_ERR_UNREACH;
        }
        ompi_osc_dimmnet_wait(&patience);
    }
    return OMPI_SUCCESS;
}

/** Tell a target the program that the next accumulates use. */
static int send_program(osc_module_t *module, int target, const dn_prog_t *prog, size_t most)
{
    osc_far_t *far = &module->far[target];
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    size_t len = 0;

    if (far->prog == dn_prog_info(prog)->id) {
        return OMPI_SUCCESS;
    }
    int rc = await_answers(module, target, 0);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    (void) dn_prog_encode(prog, NULL, &len);
    uint8_t *bytes = malloc(len);
    if (NULL == bytes || DN_OK != dn_prog_encode(prog, bytes, &len)) {
        free(bytes);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    head.count = len;
    for (size_t off = 0; OMPI_SUCCESS == rc && off < len; off += head.len) {
        dn_window_t window;

        head.skip = off;
        head.len = most < len - off ? most : len - off;
        rc = reserve(far->peer, sizeof(head) + head.len, &window);
        if (OMPI_SUCCESS == rc) {
            memcpy(window.data, &head, sizeof(head));
            memcpy((uint8_t *) window.data + sizeof(head), bytes + off, head.len);
            dn_botf_kick(far->peer, &window, DN_CHAN_OSC, OSC_PROGRAM, sizeof(head) + head.len);
        }
    }
    free(bytes);
    far->prog = OMPI_SUCCESS == rc ? dn_prog_info(prog)->id : 0;
    return rc;
}

/** Is the program of a layout one that a target takes? */
static bool is_sendable(const osc_side_t *there)
{
    size_t len = 0;

    (void) dn_prog_encode(dn_ompi_prog(there->type), NULL, &len);
    return OSC_PROGRAM_MAX >= len;
}

/** One part of an accumulate: its operands from where the walk stands. */
static int send_part(osc_far_t *far, const osc_head_t *head, dn_prog_cursor_t *operands, const void *compare,
                     uint32_t size)
{
    const uint64_t data = NULL != compare ? 2 * (uint64_t) size : DN_ACC_NO_OP == head->op ? 0 : head->len;
    dn_window_t window;
    int rc = reserve(far->peer, sizeof(*head) + data, &window);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    uint8_t *to = (uint8_t *) window.data + sizeof(*head);
    memcpy(window.data, head, sizeof(*head));
    if (0 != data) {
        (void) dn_prog_gather(to, operands, head->len);
    }
    if (NULL != compare) {
        memcpy(to + size, compare, size);
    }
    /* Before the answer can come. */
    __atomic_fetch_add(&far->asked, 1, __ATOMIC_RELAXED);
    dn_botf_kick(far->peer, &window, DN_CHAN_OSC, OSC_ACCUMULATE, sizeof(*head) + data);
    return rc;
}

/** All parts; the task is held meanwhile, and left. The lock of the module keeps those of other threads from coming between a program and its use. */
static int send_parts(osc_module_t *module, int target, osc_task_t *task, osc_head_t *head,
                      const osc_side_t *there, dn_prog_cursor_t *operands, const void *compare, uint32_t size)
{
    osc_far_t *far = &module->far[target];
    const uint64_t bytes = osc_side_bytes(there);
    dn_peer_attr_t attr;
    int rc = OMPI_SUCCESS;

    dn_peer_attr(far->peer, &attr);
    const uint64_t room = attr.botf_max - sizeof(*head);
    const uint64_t most = room / size * size;
    if (!ompi_osc_dimmnet_task_await(task, (uint32_t) ((bytes + most - 1) / most))) {
        ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    head->task = task->handle;
    if (0 != (head->flags & OSC_BY_PROGRAM)) {
        rc = send_program(module, target, dn_ompi_prog(there->type), room);
    }
    for (uint64_t off = 0; OMPI_SUCCESS == rc && off < bytes; off += head->len) {
        head->skip = off;
        head->len = most < bytes - off ? most : bytes - off;
        rc = await_answers(module, target, OSC_ASKED_MAX - 1);
        if (OMPI_SUCCESS == rc) {
            rc = send_part(far, head, operands, compare, size);
        }
    }
    ompi_osc_dimmnet_task_leave(task, OMPI_SUCCESS == rc ? 0 : UINT32_MAX, rc);
    return rc;
}

int ompi_osc_dimmnet_far_accumulate(osc_module_t *module, int target, const osc_side_t *origin,
                                    const osc_side_t *result, const void *compare, const osc_side_t *there,
                                    dn_acc_op_t op, ompi_request_t **request)
{
    ompi_datatype_t *basic = osc_basic(there->type);
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    dn_prog_cursor_t operands;
    osc_region_t region;
    dn_prog_span_t span;
    int rc;

    if (!ompi_osc_dimmnet_span(there, &span) || (DN_ACC_NO_OP != op && !osc_side_start(origin, &operands))) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    if (!osc_side_contiguous(there) && !is_sendable(there)) {
        return MPI_ERR_UNSUPPORTED_OPERATION;
    }
    if (MPI_WIN_FLAVOR_DYNAMIC == module->flavor) {
        /* So that a wrong address is an error here, and not at the target. */
        rc = ompi_osc_dimmnet_region(module, target, (uintptr_t) there->buf + (uint64_t) span.low,
                                     (uint64_t) (span.high - span.low), &region);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    head.at = (uintptr_t) there->buf;
    head.op = op;
    head.type = (NULL == basic ? (ompi_datatype_t *) MPI_BYTE : basic)->d_f_to_c_index;
    head.flags = (NULL != result ? OSC_FETCHES : 0) | (NULL != compare ? OSC_COMPARES : 0);
    if (osc_side_contiguous(there)) {
        head.at += (uint64_t) there->type->super.true_lb;
        head.count = osc_side_bytes(there);
    } else {
        head.flags |= OSC_BY_PROGRAM;
        head.count = there->count;
        head.extent = there->type->super.ub - there->type->super.lb;
    }
    osc_task_t *task = ompi_osc_dimmnet_task_new(&module->far[target], module->win, request);
    if (NULL == task) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != result) {
        OBJ_RETAIN(result->type);
        task->types[0] = result->type;
        task->fetches = true;
        task->result = *result;
    }
    OPAL_THREAD_LOCK(&module->lock);
    rc = send_parts(module, target, task, &head, there, &operands, compare,
                    NULL == basic ? 1 : (uint32_t) basic->super.size);
    OPAL_THREAD_UNLOCK(&module->lock);
    if (OMPI_SUCCESS != rc) {
        ompi_osc_dimmnet_request_drop(request);
    }
    return rc;
}

void ompi_osc_dimmnet_ask_lock(osc_module_t *module, int target, bool exclusive)
{
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    osc_far_t *far = &module->far[target];

    osc_store_u32(&far->granted, OSC_GRANT_NOT);
    head.flags = exclusive ? OSC_EXCLUSIVELY : 0;
    (void) send_head(module, target, OSC_LOCK, &head);
}

int ompi_osc_dimmnet_await_lock(osc_module_t *module, int target)
{
    osc_far_t *far = &module->far[target];
    osc_patience_t patience = {0};

    while (OSC_GRANT_NOT == osc_load_u32(&far->granted)) {
        if (osc_is_lost(module, target)) {
            return OMPI_ERR_UNREACH;
        }
        ompi_osc_dimmnet_wait(&patience);
    }
    return OSC_GRANT_GIVEN == osc_load_u32(&far->granted) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

void ompi_osc_dimmnet_give_lock(osc_module_t *module, int target)
{
    const osc_head_t head = ompi_osc_dimmnet_head(module, target);

    (void) send_head(module, target, OSC_UNLOCK, &head);
}

void ompi_osc_dimmnet_send_note(osc_module_t *module, int target, bool completes)
{
    const osc_head_t head = ompi_osc_dimmnet_head(module, target);

    (void) send_head(module, target, completes ? OSC_COMPLETE : OSC_POST, &head);
}

int ompi_osc_dimmnet_ask_region(osc_module_t *module, int target, uint64_t at, uint64_t len,
                                osc_region_t *region)
{
    osc_far_t *far = &module->far[target];
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    osc_task_t *task = ompi_osc_dimmnet_task_new(far, module->win, NULL);
    osc_patience_t patience = {0};
    int rc;

    if (NULL == task) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    region->len = 0;
    task->region = region;
    if (!ompi_osc_dimmnet_task_await(task, 1)) {
        ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    head.task = task->handle;
    head.at = at;
    head.len = len;
    rc = send_head(module, target, OSC_FIND, &head);
    /* All of it is over before the caller's memory goes, also when the peer is lost. */
    while (OMPI_SUCCESS == rc && 0 != osc_load_u32(&task->parts)) {
        ompi_osc_dimmnet_wait(&patience);
    }
    if (OMPI_SUCCESS == rc) {
        rc = task->error;
    }
    if (OMPI_SUCCESS == rc && 0 == region->len) {
        rc = OMPI_ERR_RMA_RANGE;
    }
    /* The call says what is wrong, not the next flush. */
    task->error = OMPI_SUCCESS;
    ompi_osc_dimmnet_task_leave(task, UINT32_MAX, OMPI_SUCCESS);
    return rc;
}
/** @} */
