/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_message.c
 * The channel, and the origin's side of it: windows and tasks by number, requests, what waits to be sent.
 *
 * An origin waits inside of its call for room to send. A handler must not wait: answers that find no room are
 * looked after by the progress function.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include "opal/class/opal_pointer_array.h"
#include "opal/runtime/opal_progress.h"

static struct {
    opal_pointer_array_t windows; /**< osc_module_t */
    opal_pointer_array_t tasks;   /**< osc_task_t that wait for answers */
    uint32_t generation;          /**< of the last number that was given */
    osc_queued_t *queue;          /**< oldest first */
    osc_queued_t **queue_end;
    opal_mutex_t lock; /**< of all of this; not held while libdimmnet is called */
} messages;

/** @name Sending */
/** @{ */

static void enqueue(osc_queued_t *queued)
{
    queued->next = NULL;
    opal_mutex_lock(&messages.lock);
    *messages.queue_end = queued;
    messages.queue_end = &queued->next;
    opal_mutex_unlock(&messages.lock);
}

void ompi_osc_dimmnet_answer(osc_queued_t *queued)
{
    if (NULL == messages.queue
        && DN_ERR_AGAIN
               != dn_botf(queued->peer, DN_CHAN_OSC, queued->tag, queued->bytes, queued->len, NULL, 0)) {
        free(queued);
        return;
    }
    enqueue(queued);
}

osc_queued_t *ompi_osc_dimmnet_answer_new(dn_peer_t *peer, unsigned tag, size_t len)
{
    osc_queued_t *queued = malloc(sizeof(*queued) + len);

    if (NULL != queued) {
        *queued = (osc_queued_t){.peer = peer, .tag = tag, .len = len};
    }
    return queued;
}

/** Send what found no room before. Answers to one peer need no order. @return messages sent. */
static int pump(void)
{
    int sent = 0;

    for (;;) {
        opal_mutex_lock(&messages.lock);
        osc_queued_t *queued = messages.queue;
        if (NULL != queued) {
            messages.queue = queued->next;
            if (NULL == messages.queue) {
                messages.queue_end = &messages.queue;
            }
        }
        opal_mutex_unlock(&messages.lock);
        if (NULL == queued) {
            return sent;
        }
        if (DN_ERR_AGAIN
            == dn_botf(queued->peer, DN_CHAN_OSC, queued->tag, queued->bytes, queued->len, NULL, 0)) {
            enqueue(queued);
            return sent;
        }
        free(queued);
        sent++;
    }
}

osc_head_t ompi_osc_dimmnet_head(const osc_module_t *module, int target)
{
    const osc_far_t *far = &module->far[target];

    return (osc_head_t){.window = far->window, .generation = far->generation, .rank = module->rank};
}

/** From a call of the user's: wait for room for a message of @p len bytes. */
static int reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    unsigned polls = 0;
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_botf_reserve(peer, len, window))) {
        ompi_osc_dimmnet_wait(&polls);
    }
    return dn_ompi_status(status);
}

static int send_head(osc_module_t *module, int target, enum osc_message tag, const osc_head_t *head)
{
    dn_peer_t *peer = module->far[target].peer;
    dn_window_t window;
    int rc = reserve(peer, sizeof(*head), &window);

    if (OMPI_SUCCESS == rc) {
        memcpy(window.data, head, sizeof(*head));
        dn_botf_kick(peer, &window, DN_CHAN_OSC, tag, sizeof(*head));
    }
    return rc;
}
/** @} */

/** @name Tasks that wait for answers */
/** @{ */
static bool await(osc_task_t *task)
{
    int index;

    opal_mutex_lock(&messages.lock);
    index = opal_pointer_array_add(&messages.tasks, task);
    if (0 <= index) {
        task->handle = (uint64_t) ++messages.generation << 32 | (uint32_t) index;
    }
    opal_mutex_unlock(&messages.lock);
    return 0 <= index;
}

/** The task of an answer from this peer, or NULL. */
static osc_task_t *awaited(const dn_peer_t *src, uint64_t handle)
{
    osc_task_t *task;

    opal_mutex_lock(&messages.lock);
    task = (uint32_t) handle < (uint32_t) opal_pointer_array_get_size(&messages.tasks)
               ? opal_pointer_array_get_item(&messages.tasks, (int) (uint32_t) handle)
               : NULL;
    opal_mutex_unlock(&messages.lock);
    return NULL != task && handle == task->handle && src == task->far->peer ? task : NULL;
}

static void part_done(osc_task_t *task, int error)
{
    if (OMPI_SUCCESS != error && OMPI_SUCCESS == task->far->error) {
        task->far->error = error;
    }
    if (0 != __atomic_sub_fetch(&task->parts, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    opal_mutex_lock(&messages.lock);
    (void) opal_pointer_array_set_item(&messages.tasks, (int) (uint32_t) task->handle, NULL);
    opal_mutex_unlock(&messages.lock);
    ompi_osc_dimmnet_task_end(task, error);
}

void ompi_osc_dimmnet_answered(const dn_peer_t *src, const osc_answer_t *reply, const uint8_t *data,
                               size_t len)
{
    osc_task_t *task = awaited(src, reply->task);
    osc_region_t region;
    dn_prog_cursor_t cursor;

    if (NULL == task) {
        return;
    }
    if (NULL != task->region && sizeof(region) == len) {
        memcpy(&region, data, sizeof(region));
        task->region->base = region.base;
        task->region->roff = region.roff;
        task->region->key = region.key;
        __atomic_store_n(&task->region->len, region.len, __ATOMIC_RELEASE);
    } else if (task->fetches && 0 != len && osc_side_start(&task->result, &cursor)) {
        dn_prog_seek(&cursor, reply->off);
        (void) dn_prog_scatter(&cursor, data, len);
    }
    part_done(task, reply->error);
}
/** @} */

/** @name Requests of an origin */
/** @{ */

/** Tell a target the program that the next accumulates use. */
static int send_program(osc_module_t *module, int target, const dn_prog_t *prog, size_t most)
{
    osc_far_t *far = &module->far[target];
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    size_t len = 0;
    int rc = OMPI_SUCCESS;

    if (far->prog == dn_prog_info(prog)->id) {
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
    far->prog = dn_prog_info(prog)->id;
    return rc;
}

/** One part of an accumulate: its operands from where the walk stands. */
static int send_part(osc_far_t *far, const osc_head_t *head, dn_prog_cursor_t *operands, const void *compare,
                     uint32_t size)
{
    const uint64_t data = NULL != compare ? 2 * (uint64_t) size : OSC_NO_OP == head->op ? 0 : head->len;
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
    dn_botf_kick(far->peer, &window, DN_CHAN_OSC, OSC_ACCUMULATE, sizeof(*head) + data);
    return rc;
}

/** All parts. The lock of the module keeps those of other threads from coming between a program and its use. */
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
    task->parts = (uint32_t) ((bytes + most - 1) / most);
    if (0 != (head->flags & OSC_BY_PROGRAM)) {
        rc = send_program(module, target, dn_ompi_prog(there->type), room);
    }
    for (uint64_t off = 0; off < bytes; off += head->len) {
        head->skip = off;
        head->len = most < bytes - off ? most : bytes - off;
        if (OMPI_SUCCESS == rc) {
            rc = send_part(far, head, operands, compare, size);
        }
        if (OMPI_SUCCESS != rc) {
            part_done(task, rc);
        }
    }
    return rc;
}

int ompi_osc_dimmnet_far_accumulate(osc_module_t *module, int target, const osc_side_t *origin,
                                    const osc_side_t *result, const void *compare, const osc_side_t *there,
                                    osc_op_t op, ompi_request_t **request)
{
    const osc_element_t element = ompi_osc_dimmnet_element(there->type);
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    dn_prog_cursor_t operands;
    osc_region_t region;
    dn_prog_span_t span;
    int rc;

    if (!ompi_osc_dimmnet_span(there, &span) || (OSC_NO_OP != op && !osc_side_start(origin, &operands))) {
        return OMPI_ERR_NOT_SUPPORTED;
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
    head.type =
        NULL == element.type ? ((ompi_datatype_t *) MPI_BYTE)->d_f_to_c_index : element.type->d_f_to_c_index;
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
    if (!await(task)) {
        ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != result) {
        OBJ_RETAIN(result->type);
        task->types[0] = result->type;
        task->fetches = true;
        task->result = *result;
    }
    head.task = task->handle;
    OPAL_THREAD_LOCK(&module->lock);
    rc = send_parts(module, target, task, &head, there, &operands, compare, element.size);
    OPAL_THREAD_UNLOCK(&module->lock);
    return rc;
}

void ompi_osc_dimmnet_ask_lock(osc_module_t *module, int target, bool exclusive)
{
    osc_head_t head = ompi_osc_dimmnet_head(module, target);
    osc_far_t *far = &module->far[target];

    osc_store_u32(&far->granted, 0);
    head.flags = exclusive ? OSC_EXCLUSIVELY : 0;
    const int rc = send_head(module, target, OSC_LOCK, &head);
    if (OMPI_SUCCESS != rc) {
        far->error = rc;
    }
}

int ompi_osc_dimmnet_await_lock(osc_module_t *module, int target)
{
    osc_far_t *far = &module->far[target];
    unsigned polls = 0;

    while (0 == osc_load_u32(&far->granted) && OMPI_SUCCESS == far->error) {
        ompi_osc_dimmnet_wait(&polls);
    }
    return far->error;
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
    unsigned polls = 0;
    int rc;

    if (NULL == task || !await(task)) {
        if (NULL != task) {
            ompi_osc_dimmnet_task_end(task, OMPI_SUCCESS);
        }
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    task->parts = 1;
    task->region = region;
    region->len = UINT64_MAX; /* until the answer is there */
    head.task = task->handle;
    head.at = at;
    head.len = len;
    rc = send_head(module, target, OSC_FIND, &head);
    if (OMPI_SUCCESS != rc) {
        part_done(task, OMPI_SUCCESS);
        return rc;
    }
    while (UINT64_MAX == osc_load_u64(&region->len) && OMPI_SUCCESS == far->error) {
        ompi_osc_dimmnet_wait(&polls);
    }
    return 0 == region->len ? OMPI_ERR_RMA_RANGE : far->error;
}
/** @} */

/** opal_progress_callback_t, while there are windows with far targets. */
static int progress(void)
{
    int events = dn_progress(mca_osc_dimmnet_component.port);

    if (NULL != messages.queue) {
        events += pump();
    }
    return events + ompi_osc_dimmnet_grant_waiting();
}

osc_module_t *ompi_osc_dimmnet_window(uint32_t number)
{
    osc_module_t *module = NULL;

    opal_mutex_lock(&messages.lock);
    if (number < (uint32_t) opal_pointer_array_get_size(&messages.windows)) {
        module = opal_pointer_array_get_item(&messages.windows, (int) number);
    }
    opal_mutex_unlock(&messages.lock);
    return module;
}

/** dn_lost_fn_t: nothing of it will be answered. */
static void lost(dn_peer_t *peer, void *arg)
{
    for (int i = 0; i < opal_pointer_array_get_size(&messages.windows); i++) {
        osc_module_t *module = opal_pointer_array_get_item(&messages.windows, i);

        for (int rank = 0; NULL != module && rank < module->size; rank++) {
            if (peer == module->far[rank].peer) {
                module->far[rank].error = OMPI_ERR_UNREACH;
            }
        }
    }
    for (int i = 0; i < opal_pointer_array_get_size(&messages.tasks); i++) {
        osc_task_t *task = opal_pointer_array_get_item(&messages.tasks, i);

        while (NULL != task && peer == task->far->peer) {
            part_done(task, OMPI_ERR_UNREACH);
            task = opal_pointer_array_get_item(&messages.tasks, i);
        }
    }
}

int ompi_osc_dimmnet_messages_open(void)
{
    dn_port_t *port = mca_osc_dimmnet_component.port;

    memset(&messages, 0, sizeof(messages));
    messages.queue_end = &messages.queue;
    OBJ_CONSTRUCT(&messages.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&messages.windows, opal_pointer_array_t);
    OBJ_CONSTRUCT(&messages.tasks, opal_pointer_array_t);
    (void) dn_lost_set(port, DN_CHAN_OSC, lost, NULL);
    return dn_ompi_status(dn_handler_set(port, DN_CHAN_OSC, ompi_osc_dimmnet_receive, NULL));
}

void ompi_osc_dimmnet_messages_close(void)
{
    dn_handler_clear(mca_osc_dimmnet_component.port, DN_CHAN_OSC);
    (void) dn_lost_set(mca_osc_dimmnet_component.port, DN_CHAN_OSC, NULL, NULL);
    OBJ_DESTRUCT(&messages.tasks);
    OBJ_DESTRUCT(&messages.windows);
    OBJ_DESTRUCT(&messages.lock);
}

bool ompi_osc_dimmnet_messages_join(osc_module_t *module)
{
    int index;

    opal_mutex_lock(&messages.lock);
    index = opal_pointer_array_add(&messages.windows, module);
    module->window = (uint32_t) index;
    module->generation = ++messages.generation;
    opal_mutex_unlock(&messages.lock);
    if (0 <= index && 0 == mca_osc_dimmnet_component.far_windows++) {
        opal_progress_register(progress);
    }
    return 0 <= index;
}

void ompi_osc_dimmnet_messages_leave(osc_module_t *module)
{
    if (0 == --mca_osc_dimmnet_component.far_windows) {
        opal_progress_unregister(progress);
    }
    opal_mutex_lock(&messages.lock);
    (void) opal_pointer_array_set_item(&messages.windows, (int) module->window, NULL);
    opal_mutex_unlock(&messages.lock);
}
