/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_model_int.h"

/** Messages of one link before the next has its turn. */
#define DN_MODEL_BATCH 64

static dn_status_t dn_model_enter_iface(dn_model_t *model, dn_model_iface_t *iface)
{
    dn_model_iface_t **table = realloc(model->iface, (model->ifaces + 1) * sizeof(*table));
    if (NULL == table) {
        return DN_ERR_NOMEM;
    }
    model->iface = table;
    iface->who.number = model->ifaces;
    table[model->ifaces++] = iface;
    return DN_OK;
}

static dn_status_t dn_model_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                                 dn_iface_t **iface_p)
{
    dn_model_t *model = dn_model_current();

    if (NULL == model || NULL == model->here) {
        dn_log_answer("model is not used: dn_model_run() has to make the nodes that open it");
        return DN_ERR_UNSUPPORTED;
    }
    if (NULL != argument && 0 != strcmp(argument, model->profile.name)) {
        dn_log_error("this run of the model is of %s, not of %s", model->profile.name, argument);
        return DN_ERR_PARAM;
    }
    dn_model_node_t *node = model->here;
    if (node->llcm_used + config->llcm_bytes > dn_value(node, DN_P_LLCM_SIZE)) {
        dn_log_error("llcm_bytes is %" PRIu32 "; node %" PRIu32 " has %" PRIu64 " left of the LLCM of %s",
                     config->llcm_bytes, node->index, dn_value(node, DN_P_LLCM_SIZE) - node->llcm_used,
                     model->profile.name);
        return DN_ERR_NOMEM;
    }
    if (!dn_model_region_alloc(node)) {
        dn_log_error("the shared region table of node %" PRIu32 " has %" PRIu64
                     " entries, and all are taken; close a port there, or raise shared_region_count of %s",
                     node->index, dn_value(node, DN_P_SHARED_REGIONS), model->profile.name);
        return DN_ERR_NOMEM;
    }
    dn_model_iface_t *iface = calloc(1, sizeof(*iface));
    if (NULL == iface) {
        dn_model_region_free(node);
        return DN_ERR_NOMEM;
    }
    iface->llcm = aligned_alloc(DN_LINE_BYTES, config->llcm_bytes);
    if (NULL == iface->llcm || DN_OK != dn_model_enter_iface(model, iface)) {
        free(iface->llcm);
        free(iface);
        dn_model_region_free(node);
        return DN_ERR_NOMEM;
    }
    memset(iface->llcm, 0, config->llcm_bytes);
    iface->iface.port = port;
    iface->iface.llcm = iface->llcm;
    iface->node = node;
    iface->who.node = node;
    memcpy(iface->who.nonce, dn_port_nonce(port), sizeof(iface->who.nonce));
    iface->who.pgid = dn_port_group(port)->pgid;
    iface->who.pid = dn_port_job(port)->pid;
    iface->who.ring_lines = config->ring_lines;
    iface->who.llcm_bytes = config->llcm_bytes;
    iface->max_peers = config->max_peers;
    iface->ready_tail = &iface->ready;
    iface->done_tail = &iface->done;
    node->llcm_used += config->llcm_bytes;
    model->report.llcm_bytes =
        model->report.llcm_bytes > node->llcm_used ? model->report.llcm_bytes : node->llcm_used;
    *iface_p = &iface->iface;
    return DN_OK;
}

/** A segment's entry, if it has one, is free again. */
static void dn_model_segment_leave(dn_model_iface_t *iface, uint32_t sid)
{
    if (iface->region[sid].live) {
        iface->region[sid].live = 0;
        dn_model_region_free(iface->node);
    }
}

static void dn_model_close(dn_iface_t *base)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) base;
    dn_model_node_t *node = iface->node;

    dn_model_drop_ops(iface, NULL, 0);
    dn_model_leave_all(iface);
    node->model->iface[iface->who.number] = NULL;
    node->llcm_used -= iface->who.llcm_bytes;
    for (uint32_t sid = 0; sid < iface->regions; sid++) {
        dn_model_segment_leave(iface, sid);
    }
    dn_model_region_free(node);
    free(iface->llcm);
    free(iface->region);
    free(iface);
}

static dn_status_t dn_model_address(const dn_iface_t *base, void *buf, size_t *len)
{
    const dn_model_iface_t *iface = (const dn_model_iface_t *) base;
    const dn_model_where_t where = {
        .nonce = {iface->who.nonce[0], iface->who.nonce[1]},
        .number = iface->who.number,
        .node = iface->node->index,
    };

    if (sizeof(where) > *len) {
        *len = sizeof(where);
        return DN_ERR_RANGE;
    }
    memcpy(buf, &where, sizeof(where));
    *len = sizeof(where);
    return DN_OK;
}

/** Hand on what has come: each link that had messages before this call has one turn. */
static int dn_model_deliver_ready(dn_model_iface_t *iface)
{
    dn_model_link_t *link = iface->ready;
    dn_model_link_t *stay = NULL;
    dn_model_link_t **stay_tail = &stay;
    int n = 0;

    while (NULL != iface->ready) {
        link = iface->ready;
        const uint32_t s = dn_model_side(link, iface);
        dn_model_side_t *side = &link->side[s];
        iface->ready = side->next_ready;
        if (NULL == iface->ready) {
            iface->ready_tail = &iface->ready;
        }
        side->waits = 0;
        link->refs++;
        n += dn_model_deliver(link, s, DN_MODEL_BATCH);
        /* Without its handler, or its group, it waits for the next call. */
        if (side->iface == iface && !side->waits && !dn_line_quiet(&side->rx)) {
            side->waits = 1;
            side->next_ready = NULL;
            *stay_tail = link;
            stay_tail = &side->next_ready;
        }
        dn_model_link_give(link);
    }
    *iface->ready_tail = stay;
    iface->ready_tail = NULL == stay ? iface->ready_tail : stay_tail;
    return n;
}

static int dn_model_progress(dn_iface_t *base)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) base;
    int n = (int) dn_model_look(iface->node);

    n += dn_model_signal(iface);
    if (NULL != iface->ready) {
        n += dn_model_deliver_ready(iface);
    }
    if (iface->stirred) {
        dn_model_stir(iface);
    }
    return n;
}

static int dn_model_recv(dn_peer_base_t *base, int max)
{
    const dn_model_peer_t *peer = (const dn_model_peer_t *) base;
    dn_model_iface_t *iface = (dn_model_iface_t *) base->iface;

    dn_model_look(iface->node);
    return dn_model_signal(iface) + dn_model_deliver(peer->link, peer->side, max);
}

static void dn_model_lost(dn_peer_base_t *base)
{
    dn_model_drop_ops((dn_model_iface_t *) base->iface, (dn_model_peer_t *) base, 1);
}

/** Enter a segment into the NIC's table (Martini paper section 4.2). */
static void dn_model_segment_register(dn_iface_t *base, void *memory, dn_key_t *key)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) base;

    if (key->sid >= iface->regions) {
        const uint32_t count = 2 * key->sid + 8;
        dn_model_region_t *region = realloc(iface->region, count * sizeof(*region));
        if (NULL == region) {
            /* Peers that name it are refused. */
            return;
        }
        memset(region + iface->regions, 0, (count - iface->regions) * sizeof(*region));
        iface->region = region;
        iface->regions = count;
    }
    dn_model_segment_leave(iface, key->sid);
    if (!dn_model_region_alloc(iface->node)) {
        dn_log_error("the shared region table of node %" PRIu32 " has %" PRIu64
                     " entries, and all are taken: peers that name segment %" PRIu32
                     " are refused; free another one, or raise shared_region_count of %s",
                     iface->node->index, dn_value(iface->node, DN_P_SHARED_REGIONS), key->sid,
                     iface->node->model->profile.name);
        return;
    }
    iface->region[key->sid] = (dn_model_region_t){memory, key->len, key->generation, 1, {0, 0}};
}

static void dn_model_segment_unregister(dn_iface_t *base, const dn_key_t *key)
{
    dn_model_iface_t *iface = (dn_model_iface_t *) base;

    if (key->sid < iface->regions) {
        dn_model_segment_leave(iface, key->sid);
    }
}

const dn_device_t dn_device_model = {
    .name = "model",
    .open = dn_model_open,
    .close = dn_model_close,
    .address = dn_model_address,
    .connect = dn_model_connect,
    .disconnect = dn_model_disconnect,
    .release = dn_model_release,
    .progress = dn_model_progress,
    .recv = dn_model_recv,
    .check = dn_model_check,
    .lost = dn_model_lost,
    .message = NULL,
    .admitted = NULL,
    .segment_alloc = NULL,
    .segment_release = NULL,
    .segment_register = dn_model_segment_register,
    .segment_unregister = dn_model_segment_unregister,
    .map = NULL,
    .direct = NULL,
    .opens = dn_model_opens,
    .clocked = 1,
    .oversubscribed = NULL,
};
