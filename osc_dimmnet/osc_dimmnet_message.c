/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_message.c
 * The channel: windows and tasks by number, what waits to be sent, progress.
 *
 * A handler must not wait: answers that find no room are looked after by the progress function.
 *
 * Handlers run in the thread that makes progress, while others free windows and wait for tasks. So whoever has found a
 * window, or a task, holds it until he is done, and it does not go before. Both counts change under the lock.
 */
#include "dn_config.h"

#include "osc_dimmnet_message.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

static struct {
    dn_handle_table_t windows; /**< osc_module_t */
    dn_handle_table_t tasks;   /**< osc_task_t that wait for answers */
    osc_queued_t *queue;       /**< oldest first */
    osc_queued_t **queue_end;
    opal_mutex_t lock; /**< of all of this; not held while libdimmnet is called */
    int count;         /**< of windows: with some, progress is made */
    opal_mutex_t count_lock;
} messages;

/** @name Sending */
/** @{ */

/** A look without the lock: who sees too little looks again at the next progress. */
static bool some_wait(void)
{
    return NULL != __atomic_load_n(&messages.queue, __ATOMIC_RELAXED);
}

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
    if (!some_wait()
        && DN_ERR_AGAIN
               != dn_botf(queued->peer, DN_CHAN_OSC, queued->tag, queued->bytes, queued->len, NULL, 0)) {
        free(queued);
        return;
    }
    enqueue(queued);
}

void ompi_osc_dimmnet_no_memory(void)
{
    dn_ompi_help("no-window-memory", opal_process_info.nodename);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
    abort();
}

osc_queued_t *ompi_osc_dimmnet_answer_new(dn_peer_t *peer, unsigned tag, size_t len)
{
    osc_queued_t *queued = malloc(sizeof(*queued) + len);

    if (NULL == queued) {
        ompi_osc_dimmnet_no_memory();
    }
    *queued = (osc_queued_t){.peer = peer, .tag = tag, .len = len};
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
/** @} */

/** @name Tasks that wait for answers */
/** @{ */
bool ompi_osc_dimmnet_task_await(osc_task_t *task, uint32_t parts)
{
    task->parts = parts;
    task->holders = 1;
    opal_mutex_lock(&messages.lock);
    task->handle = dn_handle_add(&messages.tasks, task);
    opal_mutex_unlock(&messages.lock);
    return DN_HANDLE_NONE != task->handle;
}

void ompi_osc_dimmnet_task_leave(osc_task_t *task, uint32_t parts, int error)
{
    opal_mutex_lock(&messages.lock);
    if (OMPI_SUCCESS == task->error) {
        task->error = error;
    }
    /* A release, for who waits for the last part: what it brought comes before. */
    osc_store_u32(&task->parts, parts < task->parts ? task->parts - parts : 0);
    const bool last = 0 == --task->holders && 0 == task->parts;
    if (last) {
        dn_handle_drop(&messages.tasks, task->handle);
    }
    opal_mutex_unlock(&messages.lock);
    if (last) {
        ompi_osc_dimmnet_task_end(task, task->error);
    }
}

/** Hold a task, NULL: none, if it waits for this peer. Under the lock. */
static osc_task_t *task_hold(osc_task_t *task, const dn_peer_t *peer)
{
    if (NULL == task || peer != task->far->peer) {
        return NULL;
    }
    task->holders++;
    return task;
}

/** Hold the task of a handle, if it waits for this peer. NULL: none does. */
static osc_task_t *task_find(uint64_t handle, const dn_peer_t *peer)
{
    opal_mutex_lock(&messages.lock);
    osc_task_t *task = task_hold(dn_handle_find(&messages.tasks, handle), peer);
    opal_mutex_unlock(&messages.lock);
    return task;
}

void ompi_osc_dimmnet_answered(const dn_peer_t *src, const osc_answer_t *reply, const uint8_t *data,
                               size_t len)
{
    osc_task_t *task = task_find(reply->task, src);
    dn_prog_cursor_t cursor;

    if (NULL == task) {
        return;
    }
    if (NULL == task->region && 0 != osc_load_u32(&task->far->asked)) {
        /* A release: what the answer says of has been done when the origin asks for more. Only handlers of this peer come here. */
        __atomic_fetch_sub(&task->far->asked, 1, __ATOMIC_RELEASE);
    }
    if (NULL != task->region && sizeof(*task->region) == len) {
        memcpy(task->region, data, sizeof(*task->region));
    } else if (task->fetches && 0 != len && osc_side_start(&task->result, &cursor)) {
        dn_prog_seek(&cursor, reply->off);
        (void) dn_prog_scatter(&cursor, data, len);
    }
    ompi_osc_dimmnet_task_leave(task, 1, reply->error);
}
/** @} */

/** @name Windows */
/** @{ */
/** Hold a window, NULL: none. Under the lock. */
static osc_module_t *window_hold(osc_module_t *module)
{
    if (NULL != module) {
        module->holders++;
    }
    return module;
}

osc_module_t *ompi_osc_dimmnet_window(uint64_t handle)
{
    opal_mutex_lock(&messages.lock);
    osc_module_t *module = window_hold(dn_handle_find(&messages.windows, handle));
    opal_mutex_unlock(&messages.lock);
    return module;
}

void ompi_osc_dimmnet_window_hold(osc_module_t *module)
{
    opal_mutex_lock(&messages.lock);
    module->holders++;
    opal_mutex_unlock(&messages.lock);
}

void ompi_osc_dimmnet_window_leave(osc_module_t *module)
{
    opal_mutex_lock(&messages.lock);
    module->holders--;
    opal_mutex_unlock(&messages.lock);
}

static bool window_held(osc_module_t *module)
{
    opal_mutex_lock(&messages.lock);
    const bool held = 0 != module->holders;
    opal_mutex_unlock(&messages.lock);
    return held;
}

static int advance(void);
static int progress(void);

/** Count the windows for which progress is made. */
static void count_windows(int more)
{
    opal_mutex_lock(&messages.count_lock);
    const int before = messages.count;
    messages.count += more;
    if (0 == before) {
        dn_ompi_progress_add(advance, DN_OMPI_CARRIES_NONE);
        ompi_osc_dimmnet_helper_start(progress);
    } else if (0 == messages.count) {
        ompi_osc_dimmnet_helper_stop();
        dn_ompi_progress_remove(advance);
    }
    opal_mutex_unlock(&messages.count_lock);
}

bool ompi_osc_dimmnet_messages_join(osc_module_t *module)
{
    opal_mutex_lock(&messages.lock);
    module->handle = dn_handle_add(&messages.windows, module);
    opal_mutex_unlock(&messages.lock);
    if (DN_HANDLE_NONE != module->handle) {
        count_windows(1);
    }
    return DN_HANDLE_NONE != module->handle;
}

void ompi_osc_dimmnet_messages_leave(osc_module_t *module)
{
    unsigned polls = 0;

    opal_mutex_lock(&messages.lock);
    dn_handle_drop(&messages.windows, module->handle);
    opal_mutex_unlock(&messages.lock);
    /* Who waits for a lock or for the guard holds it as well, and a message that is looked at may add one. */
    while (window_held(module)) {
        ompi_osc_dimmnet_forget_waiting(module);
        ompi_osc_dimmnet_forget_later(module);
        ompi_osc_dimmnet_pause(&polls);
    }
    count_windows(-1);
}
/** @} */

/** dn_ompi_progress_fn_t, while there are windows with far targets. */
static int advance(void)
{
    int events = some_wait() ? pump() : 0;

    return events + ompi_osc_dimmnet_try_later() + ompi_osc_dimmnet_grant_waiting();
}

/** The same for the helper thread, with what comes by the port. */
static int progress(void)
{
    const int events = dn_progress(mca_osc_dimmnet_component.port);

    return events + advance();
}

/** Slots of a table, which may get more at any time. */
static uint32_t slots(const dn_handle_table_t *table)
{
    opal_mutex_lock(&messages.lock);
    const uint32_t count = table->count;
    opal_mutex_unlock(&messages.lock);
    return count;
}

/** dn_lost_fn_t: nothing of it will be answered. */
static void lost(dn_peer_t *peer, void *arg)
{
    for (uint32_t i = 0; i < slots(&messages.windows); i++) {
        opal_mutex_lock(&messages.lock);
        osc_module_t *module = window_hold(dn_handle_object(&messages.windows, i));
        opal_mutex_unlock(&messages.lock);

        for (int rank = 0; NULL != module && rank < module->size; rank++) {
            if (peer == module->far[rank].peer) {
                __atomic_store_n(&module->far[rank].lost, 1, __ATOMIC_SEQ_CST);
                ompi_osc_dimmnet_take_back(module, rank);
            }
        }
        if (NULL != module) {
            ompi_osc_dimmnet_window_leave(module);
        }
    }
    for (uint32_t i = 0; i < slots(&messages.tasks); i++) {
        opal_mutex_lock(&messages.lock);
        osc_task_t *task = task_hold(dn_handle_object(&messages.tasks, i), peer);
        opal_mutex_unlock(&messages.lock);

        if (NULL != task) {
            ompi_osc_dimmnet_task_leave(task, UINT32_MAX, OMPI_ERR_UNREACH);
        }
    }
}

int ompi_osc_dimmnet_messages_open(void)
{
    dn_port_t *port = mca_osc_dimmnet_component.port;

    memset(&messages, 0, sizeof(messages));
    dn_handle_open(&messages.windows, dn_first(port));
    dn_handle_open(&messages.tasks, dn_first(port));
    messages.queue_end = &messages.queue;
    OBJ_CONSTRUCT(&messages.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&messages.count_lock, opal_mutex_t);
    (void) dn_lost_set(port, DN_CHAN_OSC, lost, NULL);
    return dn_ompi_status(dn_handler_set(port, DN_CHAN_OSC, ompi_osc_dimmnet_receive, NULL));
}

void ompi_osc_dimmnet_messages_close(void)
{
    /* Windows may be left that nobody has freed. */
    ompi_osc_dimmnet_helper_stop();
    dn_handler_clear(mca_osc_dimmnet_component.port, DN_CHAN_OSC);
    (void) dn_lost_set(mca_osc_dimmnet_component.port, DN_CHAN_OSC, NULL, NULL);
    dn_handle_close(&messages.tasks);
    dn_handle_close(&messages.windows);
    OBJ_DESTRUCT(&messages.count_lock);
    OBJ_DESTRUCT(&messages.lock);
}
