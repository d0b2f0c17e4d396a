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
#include "opal/class/opal_pointer_array.h"
#include "opal/runtime/opal_progress.h"

static struct {
    opal_pointer_array_t windows; /**< osc_module_t */
    opal_pointer_array_t tasks;   /**< osc_task_t that wait for answers */
    uint32_t generation;          /**< of the last number that was given */
    osc_queued_t *queue;          /**< oldest first */
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

/** For the next number that is given, while the lock is held. Never 0, which with index 0 would be no handle. */
static uint32_t next_generation(void)
{
    messages.generation += UINT32_MAX == messages.generation ? 2 : 1;
    return messages.generation;
}

/** @name Tasks that wait for answers */
/** @{ */
bool ompi_osc_dimmnet_task_await(osc_task_t *task, uint32_t parts)
{
    int index;

    opal_mutex_lock(&messages.lock);
    index = opal_pointer_array_add(&messages.tasks, task);
    if (0 <= index) {
        task->handle = (uint64_t) next_generation() << 32 | (uint32_t) index;
        task->parts = parts;
        task->holders = 1;
    }
    opal_mutex_unlock(&messages.lock);
    return 0 <= index;
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
        (void) opal_pointer_array_set_item(&messages.tasks, (int) (uint32_t) task->handle, NULL);
    }
    opal_mutex_unlock(&messages.lock);
    if (last) {
        ompi_osc_dimmnet_task_end(task, task->error);
    }
}

/** Hold the task at an index, if it waits for this peer. NULL: none does. @p handle 0: whichever it is. */
static osc_task_t *task_hold(uint32_t index, const dn_peer_t *peer, uint64_t handle)
{
    osc_task_t *task = NULL;

    opal_mutex_lock(&messages.lock);
    if (index < (uint32_t) opal_pointer_array_get_size(&messages.tasks)) {
        task = opal_pointer_array_get_item(&messages.tasks, (int) index);
    }
    if (NULL != task && (peer != task->far->peer || (0 != handle && handle != task->handle))) {
        task = NULL;
    }
    if (NULL != task) {
        task->holders++;
    }
    opal_mutex_unlock(&messages.lock);
    return task;
}

void ompi_osc_dimmnet_answered(const dn_peer_t *src, const osc_answer_t *reply, const uint8_t *data,
                               size_t len)
{
    osc_task_t *task = 0 == reply->task ? NULL : task_hold((uint32_t) reply->task, src, reply->task);
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
osc_module_t *ompi_osc_dimmnet_window(uint32_t number)
{
    osc_module_t *module = NULL;

    opal_mutex_lock(&messages.lock);
    if (number < (uint32_t) opal_pointer_array_get_size(&messages.windows)) {
        module = opal_pointer_array_get_item(&messages.windows, (int) number);
    }
    if (NULL != module) {
        module->holders++;
    }
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

static int progress(void);

/** Count the windows for which progress is made. */
static void count_windows(int more)
{
    opal_mutex_lock(&messages.count_lock);
    const int before = messages.count;
    messages.count += more;
    if (0 == before) {
        opal_progress_register(progress);
        ompi_osc_dimmnet_helper_start(progress);
    } else if (0 == messages.count) {
        ompi_osc_dimmnet_helper_stop();
        opal_progress_unregister(progress);
    }
    opal_mutex_unlock(&messages.count_lock);
}

bool ompi_osc_dimmnet_messages_join(osc_module_t *module)
{
    int index;

    opal_mutex_lock(&messages.lock);
    index = opal_pointer_array_add(&messages.windows, module);
    module->window = (uint32_t) index;
    module->generation = next_generation();
    opal_mutex_unlock(&messages.lock);
    if (0 <= index) {
        count_windows(1);
    }
    return 0 <= index;
}

void ompi_osc_dimmnet_messages_leave(osc_module_t *module)
{
    unsigned polls = 0;

    opal_mutex_lock(&messages.lock);
    (void) opal_pointer_array_set_item(&messages.windows, (int) module->window, NULL);
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

/** opal_progress_callback_t, while there are windows with far targets. */
static int progress(void)
{
    int events = dn_progress(mca_osc_dimmnet_component.port);

    if (some_wait()) {
        events += pump();
    }
    return events + ompi_osc_dimmnet_try_later() + ompi_osc_dimmnet_grant_waiting();
}

/** dn_lost_fn_t: nothing of it will be answered. */
static void lost(dn_peer_t *peer, void *arg)
{
    for (uint32_t i = 0; i < (uint32_t) opal_pointer_array_get_size(&messages.windows); i++) {
        osc_module_t *module = ompi_osc_dimmnet_window(i);

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
    for (uint32_t i = 0; i < (uint32_t) opal_pointer_array_get_size(&messages.tasks); i++) {
        osc_task_t *task = task_hold(i, peer, 0);

        if (NULL != task) {
            ompi_osc_dimmnet_task_leave(task, UINT32_MAX, OMPI_ERR_UNREACH);
        }
    }
}

int ompi_osc_dimmnet_messages_open(void)
{
    dn_port_t *port = mca_osc_dimmnet_component.port;

    memset(&messages, 0, sizeof(messages));
    messages.generation = dn_first(port);
    messages.queue_end = &messages.queue;
    OBJ_CONSTRUCT(&messages.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&messages.count_lock, opal_mutex_t);
    OBJ_CONSTRUCT(&messages.windows, opal_pointer_array_t);
    OBJ_CONSTRUCT(&messages.tasks, opal_pointer_array_t);
    (void) dn_lost_set(port, DN_CHAN_OSC, lost, NULL);
    return dn_ompi_status(dn_handler_set(port, DN_CHAN_OSC, ompi_osc_dimmnet_receive, NULL));
}

void ompi_osc_dimmnet_messages_close(void)
{
    /* Windows may be left that nobody has freed. */
    ompi_osc_dimmnet_helper_stop();
    dn_handler_clear(mca_osc_dimmnet_component.port, DN_CHAN_OSC);
    (void) dn_lost_set(mca_osc_dimmnet_component.port, DN_CHAN_OSC, NULL, NULL);
    OBJ_DESTRUCT(&messages.tasks);
    OBJ_DESTRUCT(&messages.windows);
    OBJ_DESTRUCT(&messages.count_lock);
    OBJ_DESTRUCT(&messages.lock);
}
