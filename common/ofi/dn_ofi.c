/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

/** Suspect the peers that were condemned. Another thread may have freed one of them meanwhile. */
static void dn_ofi_suspect_all(dn_ofi_t *ofi)
{
    dn_ofi_lock(ofi);
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        const enum dn_peer_doubt why = peer->condemned;
        if (DN_PEER_TRUSTED != why) {
            peer->condemned = DN_PEER_TRUSTED;
            dn_ofi_doubt(ofi, peer, why);
        }
    }
    dn_ofi_unlock(ofi);
}

void dn_ofi_unlock_and_more(dn_ofi_t *ofi)
{
    const uint32_t after = ofi->after;
    dn_log_later_t log;

    ofi->after = 0;
    dn_log_take(&ofi->log, &log);
    if (ofi->threads) {
        pthread_mutex_unlock(&ofi->lock);
    }
    if (0 != (DN_OFI_AFTER_CALL & after)) {
        dn_ofi_watch_call(ofi);
    }
    if (0 != (DN_OFI_AFTER_RING & after)) {
        dn_bell_touch(ofi->iface.bell);
    }
    dn_log_taken(&log);
    if (0 != (DN_OFI_AFTER_CONDEMN & after)) {
        dn_ofi_suspect_all(ofi);
    }
}

static void dn_ofi_free(dn_ofi_t *ofi)
{
    pthread_mutex_destroy(&ofi->lock);
    free(ofi->stream);
    dn_guests_close(&ofi->guests);
    dn_ofi_loan_close(ofi);
    free(ofi->segment);
    while (NULL != ofi->parts) {
        dn_ofi_part_t *part = ofi->parts;
        ofi->parts = part->next;
        free(part);
    }
    while (NULL != ofi->nodes) {
        dn_ofi_node_t *node = ofi->nodes;
        ofi->nodes = node->next;
        free(node);
    }
    free(ofi);
}

static dn_status_t dn_ofi_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                               dn_iface_t **iface_p)
{
    const dn_auth_group_t *group = dn_port_group(port);

    if (!dn_guests_may_come(group, config->auth, "ofi")) {
        return DN_ERR_UNSUPPORTED;
    }
    if (DN_AUTH_ENCRYPTED == config->auth) {
        dn_log_error("ofi is passed over: it encrypts nothing; for auth encrypted name the device ipnuma, as "
                     "in shm,ipnuma");
        return DN_ERR_UNSUPPORTED;
    }
    dn_ofi_t *ofi = calloc(1, sizeof(*ofi));
    if (NULL == ofi) {
        return DN_ERR_NOMEM;
    }
    pthread_mutex_init(&ofi->lock, NULL);
    ofi->watcher.event = ofi->watcher.lull.fd = ofi->cq_fd = -1;
    ofi->iface.port = port;
    ofi->threads = dn_port_job(port)->threads || 0 != config->timeout_s;
    ofi->max_senders = config->max_peers + dn_port_job(port)->size;
    ofi->auth = config->auth;
    ofi->first = config->first;
    ofi->timeout_ns = config->timeout_s * UINT64_C(1000000000);
    /* Data that the provider moves by RMA has no tag, so DN_AUTH_FULL excludes RMA. */
    ofi->rma_wanted = config->network_rma && DN_AUTH_FULL != config->auth;
    ofi->contenders = 1;
    ofi->pool[DN_OFI_SHORT] = (dn_ofi_pool_t){.room = DN_OFI_SMALL, .each = 64};
    ofi->pool[DN_OFI_MEDIUM] = (dn_ofi_pool_t){.room = DN_OFI_MIDDLE, .each = 16};
    ofi->pool[DN_OFI_LONG] = (dn_ofi_pool_t){.room = DN_OFI_MESSAGE_MAX, .each = 16};
    dn_status_t status = dn_guests_add(&ofi->guests, &group->pgid);
    status = DN_OK == status ? dn_ofi_fabric_open(ofi, config, argument) : status;
    if (DN_OK != status) {
        dn_ofi_free(ofi);
        return status;
    }
    dn_host(ofi->where.host);
    memcpy(ofi->where.nonce, dn_port_nonce(port), sizeof(ofi->where.nonce));
    memcpy(ofi->where.exchange, group->exchange, sizeof(ofi->where.exchange));
    ofi->where.auth = config->auth;
    ofi->where.llcm_bytes = config->llcm_bytes;
    ofi->where.os_pid = (uint32_t) getpid();
    ofi->where.credit_max = config->ring_lines < DN_OFI_CREDIT_MAX / DN_OFI_RINGS
                                ? config->ring_lines * DN_OFI_RINGS
                                : DN_OFI_CREDIT_MAX;
    /* The longest message costs half of the credit. So one such message can go out while the credit of another is on its way back. */
    const uint32_t half = ofi->where.credit_max / 2 * DN_OFI_LINE - DN_OFI_LINE;
    const uint32_t most = ofi->pool[DN_OFI_LONG].room - (uint32_t) sizeof(dn_ofi_head_t);
    ofi->where.botf_max = half < most ? half : most;
    ofi->iface.provider = ofi->where.provider;
    ofi->iface.domain = ofi->info->domain_attr->name;
    ofi->iface.endpoint = ofi->name_text;
    ofi->iface.sockets = dn_ofi_has_sockets(ofi->info);
    if (DN_OK == dn_topo_allowed(&ofi->where.units)) {
        ofi->units = dn_cpumask_weight(&ofi->where.units);
    }
    *iface_p = &ofi->iface;
    return DN_OK;
}

static void dn_ofi_close(dn_iface_t *iface)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    dn_ofi_watch_close(ofi);
    dn_ofi_expire(ofi, 1);
    /* The port has released the peers that it knows. The watcher has met the others. */
    while (NULL != ofi->peers) {
        dn_port_forget(iface->port, &ofi->peers->base);
        dn_ofi_release(&ofi->peers->base);
    }
    dn_ofi_linger(ofi);
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_free_stream(ofi->stream[i]);
    }
    dn_ofi_op_t *op;
    while (NULL != (op = dn_fifo_pop(&ofi->done))) {
        dn_ofi_op_free(op);
    }
    dn_ofi_fabric_close(ofi);
    dn_ofi_free(ofi);
}

/** libfabric does not survive a fork(): what it has made stays, with all that its operations may use. */
static void dn_ofi_close_copy(dn_iface_t *iface, dn_peer_base_t *peers)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    dn_ofi_watch_free(ofi);
    /* The watcher changes nothing of this, even if it had the lock. */
    for (dn_peer_base_t *peer = peers; NULL != peer; peer = peer->next) {
        dn_ofi_close_pidfd((dn_ofi_peer_t *) peer);
    }
    if (0 != pthread_mutex_trylock(&ofi->lock)) {
        return;
    }
    /* The device knows them all. */
    while (NULL != ofi->peers) {
        dn_ofi_peer_t *peer = ofi->peers;
        ofi->peers = peer->next;
        dn_ofi_free_copy(peer);
    }
    pthread_mutex_unlock(&ofi->lock);
}

static dn_status_t dn_ofi_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    dn_ofi_t *ofi = (dn_ofi_t *) iface;

    if (sizeof(ofi->where) > *len) {
        *len = sizeof(ofi->where);
        return DN_ERR_RANGE;
    }
    /* From now on other processes may say HELLO, and wait for an answer while this process computes. */
    dn_ofi_lock(ofi);
    dn_ofi_watch_start(ofi);
    dn_ofi_unlock(ofi);
    memcpy(buf, &ofi->where, sizeof(ofi->where));
    *len = sizeof(ofi->where);
    return DN_OK;
}

static int dn_ofi_direct(const dn_peer_base_t *base)
{
    const dn_ofi_t *ofi = (const dn_ofi_t *) base->iface;
    return ofi->rma && !((const dn_ofi_peer_t *) base)->self;
}

static int dn_ofi_oversubscribed(const dn_iface_t *iface)
{
    const dn_ofi_t *ofi = (const dn_ofi_t *) iface;
    return 0 != ofi->units && ofi->contenders > ofi->units;
}

int dn_ofi_rings(const dn_iface_t *iface)
{
    const dn_ofi_t *ofi = (const dn_ofi_t *) iface;
    return 0 <= ofi->cq_fd && 0 != ofi->timeout_ns;
}

const dn_device_t dn_device_ofi = {
    .name = "ofi",
    .open = dn_ofi_open,
    .close = dn_ofi_close,
    .close_copy = dn_ofi_close_copy,
    .address = dn_ofi_address,
    .connect = dn_ofi_connect,
    .disconnect = dn_ofi_disconnect,
    .release = dn_ofi_release,
    .progress = dn_ofi_progress,
    .recv = dn_ofi_recv,
    .check = dn_ofi_check,
    .lost = dn_ofi_lost,
    .message = NULL,
    .admitted = dn_ofi_admitted,
    .segment_alloc = NULL,
    .segment_release = NULL,
    .segment_register = dn_ofi_segment_register,
    .segment_unregister = dn_ofi_segment_unregister,
    .map = NULL,
    .direct = dn_ofi_direct,
    .oversubscribed = dn_ofi_oversubscribed,
    .rings = dn_ofi_rings,
    .look = dn_ofi_attend,
    .sleeps = dn_ofi_hand_on,
};
