/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The virtual clock: coroutines and a queue of events.
 *
 * SimGrid, the library for this that Debian has, was looked at first. Its clock is a double of seconds that
 * takes moments closer than precision/timing (1e-9 s by default) for one, its network shares bandwidth between flows and
 * knows no packets, and who comes first at one moment cannot be chosen by a seed. The model needs picoseconds,
 * packets and seeds; what is left of the library then is a queue and a switch of stacks: these 400 lines and dn_model_stack.c. Measured as well:
 * 64 nodes that exchange stores two by two take 2.4 million packets a second here (dn_predict --speed), with the NIC's stages;
 * as 64 actors of SimGrid 3.32 that put and get 8 bytes, without them, 0.29 million messages. That program has 40 lines; the NIC,
 * its tables and the fabric, which are the rest of this folder, would have to be written for it, too.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dn_log.h"
#include "dn_model_int.h"

#define DN_MODEL_NODES_MAX 131072u
#define DN_MODEL_STACK     (256u * 1024)
#define DN_MODEL_STACK_MIN (16u * 1024)
#define DN_MODEL_CANARY    UINT64_C(0x6b63617473206e64)
/** So often all may wait with nothing under way, as for words on a board that nobody will write. */
#define DN_MODEL_QUIET_MAX 20000u

static _Thread_local dn_model_t *dn_model_run_here;

dn_model_t *dn_model_current(void)
{
    return dn_model_run_here;
}

uint64_t dn_model_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = *state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/** @name Events: a binary heap in one array */
/** @{ */
static inline int dn_event_before(const dn_model_event_t *a, const dn_model_event_t *b)
{
    return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->order < b->order);
}

static int dn_heap_grow(dn_model_t *model)
{
    const size_t room = 0 == model->room ? 1024 : 2 * model->room;
    dn_model_event_t *heap = realloc(model->heap, room * sizeof(*heap));

    if (NULL == heap) {
        model->failed = DN_ERR_NOMEM;
        return 0;
    }
    model->heap = heap;
    model->room = room;
    return 1;
}

void dn_model_at(dn_model_t *model, uint64_t at_ps, dn_model_event_fn_t fn, void *arg)
{
    if (model->events == model->room && !dn_heap_grow(model)) {
        return;
    }
    uint64_t order = model->order++;
    if (0 != model->config.seed) {
        uint64_t mix = model->config.seed + order;
        order = dn_model_random(&mix);
    }
    const dn_model_event_t event = {at_ps < model->now_ps ? model->now_ps : at_ps, order, fn, arg};
    size_t i = model->events++;
    while (0 != i && dn_event_before(&event, &model->heap[(i - 1) / 2])) {
        model->heap[i] = model->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    model->heap[i] = event;
}

static dn_model_event_t dn_heap_pop(dn_model_t *model)
{
    const dn_model_event_t first = model->heap[0];
    const dn_model_event_t last = model->heap[--model->events];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= model->events) {
            break;
        }
        if (child + 1 < model->events && dn_event_before(&model->heap[child + 1], &model->heap[child])) {
            child++;
        }
        if (!dn_event_before(&model->heap[child], &last)) {
            break;
        }
        model->heap[i] = model->heap[child];
        i = child;
    }
    model->heap[i] = last;
    return first;
}
/** @} */

/** @name Who runs */
/** @{ */
/** Go to a node, or to dn_model_run() (NULL); comes back when somebody goes to the one that runs now. */
static void dn_model_go(dn_model_t *model, dn_model_node_t *to)
{
    dn_model_node_t *from = model->here;

    if (NULL != from && DN_MODEL_CANARY != *from->stack_end) {
        dn_log_error("node %" PRIu32 " of the model used more than its stack; raise stack_bytes",
                     from->index);
        abort();
    }
    model->here = to;
    dn_model_stack_switch(NULL == from ? &model->main_context : &from->context,
                          NULL == to ? model->main_context : to->context);
}
/** @} */

/** @name Waiting */
/** @{ */
static void dn_model_resume(dn_model_t *model, void *arg)
{
    model->next = arg;
}

void dn_model_arrived(dn_model_node_t *node)
{
    node->arrivals++;
    if (DN_NODE_POLLS == node->state) {
        /* It polls all the time; where in the interval this comes is chance. What it was doing before comes first. */
        const uint64_t now = node->model->now_ps;
        const uint64_t phase = 0 == node->poll_ps ? 0 : dn_model_random(&node->random) % node->poll_ps;
        node->state = DN_NODE_WAKES;
        dn_model_at(node->model, node->clock_ps > now ? node->clock_ps : now + phase, dn_model_resume, node);
    }
}

void dn_model_wake_all(dn_model_t *model)
{
    for (uint32_t i = 0; i < model->config.nodes; i++) {
        dn_model_node_t *node = &model->node[i];
        if (DN_NODE_POLLS == node->state) {
            node->state = DN_NODE_WAKES;
            dn_model_at(model, node->clock_ps + node->poll_ps, dn_model_resume, node);
        }
    }
}

/** Nothing is under way, and all that run poll. */
static int dn_model_stir_all(dn_model_t *model)
{
    if (0 == model->running || DN_MODEL_QUIET_MAX == model->quiet++) {
        return 0;
    }
    dn_model_wake_all(model);
    return 1;
}

void dn_model_loop(dn_model_t *model)
{
    dn_model_node_t *self = model->here;

    for (;;) {
        if (0 == model->events && !dn_model_stir_all(model)) {
            break;
        }
        if (DN_OK != model->failed) {
            break;
        }
        const dn_model_event_t event = dn_heap_pop(model);
        model->now_ps = event.at_ps;
        model->report.events++;
        event.fn(model, event.arg);
        if (NULL != model->next) {
            dn_model_node_t *next = model->next;
            model->next = NULL;
            next->state = DN_NODE_RUNS;
            next->clock_ps = next->clock_ps > model->now_ps ? next->clock_ps : model->now_ps;
            if (next != self) {
                dn_model_go(model, next);
            }
            return;
        }
        model->quiet = 0;
    }
    if (0 != model->running && DN_OK == model->failed) {
        dn_log_error("all %" PRIu32 " nodes of the model that have not ended wait for what never comes",
                     model->running);
        model->failed = DN_ERR_UNREACH;
    }
    if (NULL != self) {
        dn_model_go(model, NULL);
    }
}

void dn_model_sync(dn_model_node_t *node)
{
    dn_model_t *model = node->model;

    if (0 == model->events || model->heap[0].at_ps >= node->clock_ps) {
        model->now_ps = model->now_ps > node->clock_ps ? model->now_ps : node->clock_ps;
        return;
    }
    node->state = DN_NODE_SLEEPS;
    dn_model_at(model, node->clock_ps, dn_model_resume, node);
    dn_model_loop(model);
}

uint64_t dn_model_look(dn_model_node_t *node)
{
    if (0 == node->arrivals && 0 != node->idle) {
        node->state = DN_NODE_POLLS;
        dn_model_loop(node->model);
    } else {
        dn_model_sync(node);
    }
    const uint64_t arrivals = node->arrivals;
    node->arrivals = 0;
    node->idle = 0 != arrivals ? 0 : node->idle + 1;
    node->clock_ps += node->poll_ps;
    return arrivals;
}
/** @} */

/** First function of every node. */
static void dn_model_enter(void)
{
    dn_model_t *model = dn_model_run_here;
    dn_model_node_t *node = model->here;

    model->fn(node->index, model->arg);
    /* A port left open has packets on their way from it; it is closed by nobody any more. */
    node->state = DN_NODE_ENDED;
    model->running--;
    model->report.end_ps = model->report.end_ps > node->clock_ps ? model->report.end_ps : node->clock_ps;
    if (0 != model->running) {
        dn_model_loop(model);
    }
    dn_model_go(model, NULL);
}

/** @name A run */
/** @{ */
void dn_model_config_init(dn_model_config_t *config)
{
    *config = (dn_model_config_t){.profile = "dimmnet1-d", .nodes = 2, .fabric = DN_MODEL_PAIR};
}

static dn_status_t dn_model_check_config(const dn_model_config_t *config)
{
    if (NULL == config->profile) {
        dn_log_error("a run of the model needs a profile");
        return DN_ERR_PARAM;
    }
    if (0 == config->nodes || DN_MODEL_NODES_MAX < config->nodes) {
        dn_log_error("a run of the model has %" PRIu32 " nodes; it must have from 1 to %u", config->nodes,
                     DN_MODEL_NODES_MAX);
        return DN_ERR_PARAM;
    }
    if (DN_MODEL_TREE < (unsigned) config->fabric) {
        dn_log_error("%u is no fabric of the model; see dn_model_fabric_t", (unsigned) config->fabric);
        return DN_ERR_PARAM;
    }
    if (0 != config->stack_bytes
        && (DN_MODEL_STACK_MIN > config->stack_bytes || 0 != config->stack_bytes % 4096)) {
        dn_log_error("stack_bytes is %zu; it must be 0, or a multiple of 4096 from %u on",
                     config->stack_bytes, DN_MODEL_STACK_MIN);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

static size_t dn_model_stack_bytes(const dn_model_t *model)
{
    return 0 != model->config.stack_bytes ? model->config.stack_bytes : DN_MODEL_STACK;
}

static void dn_model_free(dn_model_t *model)
{
    for (uint32_t i = 0; NULL != model->node && i < model->config.nodes; i++) {
        dn_model_stack_free(model->node[i].context);
        free(model->node[i].fifo);
        free(model->node[i].htlb);
        free(model->node[i].tlb);
        free(model->node[i].host_page);
        free(model->node[i].window_ps);
        free(model->node[i].pc);
    }
    if (NULL != model->stacks) {
        munmap(model->stacks, model->config.nodes * dn_model_stack_bytes(model));
    }
    dn_model_stack_free(model->main_context);
    dn_model_hop_close(model);
    while (NULL != model->packets) {
        dn_model_packet_t *packet = model->packets;
        model->packets = packet->next;
        free(packet);
    }
    free(model->node);
    free(model->heap);
    free(model->fabric_ps);
    free(model->iface);
    free(model);
}

static dn_status_t dn_model_make_nodes(dn_model_t *model)
{
    const size_t bytes = dn_model_stack_bytes(model);
    uint64_t random = model->config.seed + 1;

    model->node = calloc(model->config.nodes, sizeof(*model->node));
    void *stacks = mmap(NULL, model->config.nodes * bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    model->stacks = MAP_FAILED == stacks ? NULL : stacks;
    if (NULL == model->node || NULL == model->stacks || DN_OK != dn_model_stack_here(&model->main_context)) {
        return DN_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < model->config.nodes; i++) {
        dn_model_node_t *node = &model->node[i];
        node->model = model;
        node->index = i;
        node->state = DN_NODE_WAKES;
        node->random = dn_model_random(&random);
        node->poll_ps = model->profile.value[DN_P_HOST_READ_8];
        node->credits = model->profile.value[DN_P_CREDITS];
        node->stack_end = (uint64_t *) (model->stacks + i * bytes);
        *node->stack_end = DN_MODEL_CANARY;
        const dn_status_t status =
            dn_model_stack_make(&node->context, model->stacks + i * bytes, bytes, dn_model_enter);
        if (DN_OK != status) {
            return status;
        }
        dn_model_at(model, 0, dn_model_resume, node);
    }
    model->running = model->config.nodes;
    return DN_OK;
}

/** What is still under way when the last node has ended arrives nowhere, but gives its memory back. */
static void dn_model_drain(dn_model_t *model)
{
    while (0 != model->events) {
        const dn_model_event_t event = dn_heap_pop(model);
        model->now_ps = event.at_ps;
        if (dn_model_resume != event.fn) {
            event.fn(model, event.arg);
        }
    }
}

/** The nodes' ports have to find this very copy of the model. */
static const dn_device_module_t dn_model_itself = DN_DEVICE_MODULE_INIT(dn_device_model);

dn_status_t dn_model_run(const dn_model_config_t *config, dn_model_fn_t fn, void *arg,
                         dn_model_report_t *report_p)
{
    dn_status_t status = dn_model_check_config(config);
    if (DN_OK == status) {
        status = dn_device_add(&dn_model_itself);
    }
    if (DN_OK != status) {
        return status;
    }
    if (NULL != dn_model_run_here) {
        dn_log_error("a run of the model is under way in this thread; one at a time");
        return DN_ERR_PARAM;
    }
    dn_model_t *model = calloc(1, sizeof(*model));
    if (NULL == model) {
        return DN_ERR_NOMEM;
    }
    model->config = *config;
    model->fn = fn;
    model->arg = arg;
    status = dn_model_profile_load(&model->profile, config->profile);
    if (DN_OK == status && NULL != config->fabric_profile) {
        status = dn_model_profile_load_fabric(&model->profile, config->fabric_profile);
    }
    if (DN_OK == status) {
        status = dn_model_net_open(model);
    }
    if (DN_OK == status) {
        status = dn_model_make_nodes(model);
    }
    if (DN_OK == status) {
        dn_model_run_here = model;
        dn_model_loop(model);
        dn_model_drain(model);
        dn_model_run_here = NULL;
        status = (dn_status_t) model->failed;
    }
    if (DN_OK == status && NULL != report_p) {
        *report_p = model->report;
    }
    dn_model_free(model);
    return status;
}
/** @} */
