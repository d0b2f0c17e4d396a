/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

static dn_status_t dn_shm_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                               dn_iface_t **iface_p)
{
    const dn_job_t *job = dn_port_job(port);

    if (NULL != argument) {
        dn_log_error("device shm takes no argument, \"%s\" was given; write shm", argument);
        return DN_ERR_PARAM;
    }
    dn_shm_t *shm = calloc(1, sizeof(*shm));
    if (NULL == shm) {
        return DN_ERR_NOMEM;
    }
    shm->iface.port = port;
    shm->config = *config;
    shm->lives = config->first;
    shm->threads = job->threads;
    shm->contenders = 1;
    shm->folders = NULL != job->dir;
    shm->seen = config->first;
    for (int i = 0; i < DN_SHM_HELPS; i++) {
        shm->share[i].generation = config->first;
    }
    shm->rx = calloc(config->max_peers, sizeof(*shm->rx));
    shm->refused = calloc(config->max_peers, sizeof(*shm->refused));
    dn_status_t status = dn_shm_probe_open(shm);
    if (NULL == shm->rx || NULL == shm->refused || DN_OK != status) {
        status = DN_ERR_NOMEM;
        goto err_free;
    }
    dn_shm_host(shm->host);
    shm->user_ns = dn_shm_user_ns();
    status = dn_shm_process((uint32_t) getpid(), &shm->start_time);
    if (DN_OK != status) {
        dn_log_error("/proc/self/stat cannot be read; the shm device needs /proc mounted");
        goto err_free;
    }
    status = dn_shm_create(shm, job);
    if (DN_OK != status) {
        goto err_free;
    }
    status = dn_shm_stage_open(shm, job);
    if (DN_OK != status) {
        dn_shm_destroy(shm);
        goto err_free;
    }
    shm->named = config->cma && dn_shm_yama_allow();
    shm->iface.llcm = shm->map.llcm;
    shm->iface.bell = &shm->map.header->bell;
    shm->units = dn_cpumask_weight(&shm->map.units);
    dn_shm_watch_start(shm);
    dn_bell_enroll_begin();
    *iface_p = &shm->iface;
    return DN_OK;

err_free:
    dn_shm_probe_close(shm);
    free(shm->refused);
    free(shm->rx);
    free(shm);
    return status;
}

/** Free what a device has beside its peers. */
static void dn_shm_free(dn_shm_t *shm)
{
    dn_shm_destroy(shm);
    dn_shm_stage_close(shm);
    dn_shm_probe_close(shm);
    free(shm->refused);
    free(shm->rx);
    free(shm);
}

static void dn_shm_close(dn_iface_t *iface)
{
    dn_shm_t *shm = (dn_shm_t *) iface;

    dn_shm_stop_rings(shm);
    dn_store_release_u32(&shm->map.header->closed, 1);
    if (shm->named) {
        dn_shm_yama_end();
    }
    dn_shm_stage_end(shm);
    dn_shm_free(shm);
}

static void dn_shm_close_copy(dn_iface_t *iface, dn_peer_base_t *peers)
{
    dn_shm_t *shm = (dn_shm_t *) iface;

    for (dn_peer_base_t *next, *peer = peers; NULL != peer; peer = next) {
        next = peer->next;
        dn_shm_free_copy((dn_shm_peer_t *) peer);
    }
    /* The file is not the child's to remove. */
    shm->path[0] = '\0';
    dn_shm_free(shm);
}

static dn_status_t dn_shm_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    const dn_shm_t *shm = (const dn_shm_t *) iface;
    const dn_shm_header_t *header = shm->map.header;
    dn_shm_where_t where = {
        .start_time = header->start_time,
        .bytes = header->bytes,
        .uid = header->uid,
        .os_pid = header->os_pid,
        .fd = shm->fd,
        .user_ns = shm->user_ns,
        .memfd = shm->memfd,
    };

    if (sizeof(where) > *len) {
        *len = sizeof(where);
        return DN_ERR_RANGE;
    }
    memcpy(where.host, shm->host, sizeof(where.host));
    memcpy(where.nonce, header->nonce, sizeof(where.nonce));
    memcpy(where.path, shm->path, sizeof(where.path));
    memcpy(buf, &where, sizeof(where));
    *len = sizeof(where);
    return DN_OK;
}

static void dn_shm_admitted(dn_iface_t *iface, const dn_pgid_t *pgid)
{
    (void) pgid;
    dn_shm_look((dn_shm_t *) iface, 1);
}

static int dn_shm_direct(const dn_peer_base_t *peer)
{
    return ((const dn_shm_peer_t *) peer)->cma;
}

static int dn_shm_oversubscribed(const dn_iface_t *iface)
{
    return dn_shm_shares_cores((const dn_shm_t *) iface);
}

static int dn_shm_rings(const dn_iface_t *iface)
{
    (void) iface;
    return 1;
}

static uint64_t dn_shm_heard(const dn_iface_t *iface)
{
    const dn_shm_t *shm = (const dn_shm_t *) iface;
    uint64_t lines = 0;

    for (uint32_t i = 0; i < shm->nrx; i++) {
        lines += shm->rx[i]->line.head;
    }
    return lines;
}

const dn_device_t dn_device_shm = {
    .name = "shm",
    .open = dn_shm_open,
    .close = dn_shm_close,
    .close_copy = dn_shm_close_copy,
    .address = dn_shm_address,
    .connect = dn_shm_connect,
    .disconnect = dn_shm_disconnect,
    .release = dn_shm_release,
    .progress = dn_shm_progress,
    .recv = dn_shm_recv,
    .check = dn_shm_check,
    .lost = dn_shm_lost,
    .message = dn_shm_message,
    .admitted = dn_shm_admitted,
    .segment_alloc = dn_shm_segment_alloc,
    .segment_release = dn_shm_segment_release,
    .segment_register = dn_shm_segment_register,
    .map = dn_shm_map,
    .direct = dn_shm_direct,
    .oversubscribed = dn_shm_oversubscribed,
    .rings = dn_shm_rings,
    .look = dn_shm_poll_all,
    .heard = dn_shm_heard,
};
