/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_port.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_param.h"

/** The port's lock. Calls that only read the port take it, too. */
static pthread_mutex_t *dn_port_mutex(const dn_port_t *port)
{
    return &((dn_port_t *) (uintptr_t) port)->lock;
}

void dn_port_lock(const dn_port_t *port)
{
    if (port->threads) {
        pthread_mutex_lock(dn_port_mutex(port));
        ((dn_port_t *) (uintptr_t) port)->depth++;
    }
}

int dn_port_trylock(dn_port_t *port)
{
    if (port->threads) {
        if (0 != pthread_mutex_trylock(&port->lock)) {
            return 0;
        }
        port->depth++;
    }
    return 1;
}

void dn_port_unlock(const dn_port_t *port)
{
    if (port->threads) {
        ((dn_port_t *) (uintptr_t) port)->depth--;
        pthread_mutex_unlock(dn_port_mutex(port));
    }
}

const dn_job_t *dn_port_job(const dn_port_t *port)
{
    return &port->job;
}

const dn_auth_group_t *dn_port_group(const dn_port_t *port)
{
    return &port->auth;
}

const uint64_t *dn_port_nonce(const dn_port_t *port)
{
    return port->nonce;
}

int dn_port_is_copy(const dn_port_t *port)
{
    return getpid() != port->process;
}

int dn_port_admits(const dn_port_t *port, const dn_pgid_t *pgid)
{
    for (uint32_t i = 0; i < port->groups; i++) {
        if (0 == memcmp(&port->group[i], pgid, sizeof(*pgid))) {
            return 1;
        }
    }
    return 0;
}

void dn_config_init(dn_config_t *config)
{
    dn_param_defaults(DN_PARAM_PORT, config);
}

dn_status_t dn_config_set(dn_config_t *config, const char *name, const char *text)
{
    return dn_param_set(DN_PARAM_PORT, config, name, text);
}

static void dn_port_device_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    dn_port_t *port = arg;
    dn_peer_base_t *peer = (dn_peer_base_t *) src;
    if (NULL == peer->iface->device->message) {
        dn_count(&port->counters.dropped, 1);
        return;
    }
    peer->iface->device->message(peer, tag, data, len);
}

/** Place the LLCM: in the memory of a device that needs it there, or else in private memory. The other devices use it where it is. */
static dn_status_t dn_port_place_llcm(dn_port_t *port)
{
    void *memory = NULL;

    for (dn_iface_t *iface = port->ifaces; NULL != iface && NULL == memory; iface = iface->next) {
        memory = iface->llcm;
        port->llcm_owner = NULL == memory ? NULL : iface;
    }
    if (NULL == memory) {
        memory = aligned_alloc(64, port->config.llcm_bytes);
        if (NULL == memory) {
            return DN_ERR_NOMEM;
        }
        memset(memory, 0, port->config.llcm_bytes);
        port->llcm_memory = memory;
    }
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        iface->llcm = NULL == iface->llcm ? memory : iface->llcm;
    }
    return dn_llcm_open(&port->llcm, memory, port->config.llcm_bytes);
}

/** Choose the bell by which this process sleeps: that of a device whose peers ring it themselves, or else a word that only threads of
 * this process ring. A port that no thread would ring has no bell. */
static void dn_port_place_bell(dn_port_t *port)
{
    uint32_t *bell = NULL;
    int rings = 0;

    port->own_bell = port->config.first & ~1u;
    for (const dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        bell = NULL == bell ? iface->bell : bell;
        rings |= dn_port_rings(iface);
    }
    port->bell = NULL == bell && rings ? &port->own_bell : bell;
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        dn_port_give_bell(port, iface);
    }
}

static void dn_port_init_locks(dn_port_t *port)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&port->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    pthread_mutex_init(&port->programs, NULL);
}

/** Copy a string of the configuration, for devices that are opened late. */
static dn_status_t dn_port_keep(const char **text, char **copy)
{
    if (NULL == *text) {
        return DN_OK;
    }
    *copy = strdup(*text);
    *text = *copy;
    return NULL == *copy ? DN_ERR_NOMEM : DN_OK;
}

static dn_status_t dn_port_configure(dn_port_t *port, const dn_config_t *config)
{
    if (NULL != config) {
        port->config = *config;
    } else {
        dn_config_init(&port->config);
    }
    const dn_status_t status = dn_port_keep(&port->config.provider_include, &port->provider_include);
    return DN_OK != status ? status : dn_port_keep(&port->config.provider_exclude, &port->provider_exclude);
}

/** Free what a port has beside peers, segments and devices. */
static void dn_port_free(dn_port_t *port)
{
    free(port->llcm_memory);
    pthread_mutex_destroy(&port->lock);
    pthread_mutex_destroy(&port->programs);
    free(port->provider_include);
    free(port->provider_exclude);
    free(port->group);
    dn_auth_wipe(&port->job.key, sizeof(port->job.key));
    dn_auth_wipe(&port->auth, sizeof(port->auth));
    free(port);
}

/** Undo dn_open(), complete or not. */
static void dn_port_destroy(dn_port_t *port)
{
    /* First, so that what is in flight is not signalled: its owners may be gone. */
    dn_core_close(&port->core);
    while (NULL != port->peers) {
        dn_peer_base_t *peer = port->peers;
        dn_port_forget(port, peer);
        peer->iface->device->release(peer);
    }
    dn_segment_free_all(port);
    dn_llcm_close(&port->llcm);
    dn_port_close_devices(port);
    if (NULL != port->fault) {
        dn_fault_close(port->fault);
    }
    dn_port_free(port);
}

/** Free the copy that a child of fork() has of its parent's port. What another thread was changing when the child began stays as it is. */
static void dn_port_destroy_copy(dn_port_t *port)
{
    if (!dn_port_trylock(port)) {
        return;
    }
    dn_port_unlock(port);
    if (0 != pthread_mutex_trylock(&port->programs)) {
        return;
    }
    pthread_mutex_unlock(&port->programs);
    dn_core_close(&port->core);
    dn_segment_free_all(port);
    dn_llcm_close(&port->llcm);
    dn_port_close_copies(port);
    dn_port_free(port);
}

dn_status_t dn_open(const char *spec, const dn_job_t *job, const dn_config_t *config, dn_port_t **port_p)
{
    dn_port_t *port = calloc(1, sizeof(*port));
    if (NULL == port) {
        return DN_ERR_NOMEM;
    }
    dn_port_init_locks(port);
    port->job = *job;
    port->threads = job->threads;
    port->process = getpid();
    dn_status_t status = dn_port_configure(port, config);
    if (DN_OK != status) {
        goto err_destroy;
    }
    dn_core_open(&port->core, port->config.first);
    port->handler[DN_CHAN_CORE] = (dn_handler_t){dn_core_handler, port};
    port->handler[DN_CHAN_DEVICE] = (dn_handler_t){dn_port_device_message, port};
    status = DN_ERR_ACCESS;
    if (sizeof(port->nonce) != (size_t) getrandom(port->nonce, sizeof(port->nonce), 0)) {
        dn_log_error("getrandom gives no random numbers; allow it in the sandbox");
        goto err_destroy;
    }
    status = dn_param_check(DN_PARAM_PORT, &port->config);
    if (DN_OK == status) {
        status = dn_auth_group(&job->key, &port->auth);
        if (DN_OK != status) {
            dn_log_error("libsodium does not start; allow getrandom in the sandbox");
        }
    }
    if (DN_OK == status) {
        status = dn_group_admit(port, &port->auth.pgid);
    }
    if (DN_OK == status && NULL != port->config.fault && '\0' != port->config.fault[0]) {
        status = dn_fault_open(port->config.fault, job->pid, &port->fault);
    }
    if (DN_OK == status) {
        status = dn_port_open_devices(port, spec);
    }
    if (DN_OK == status) {
        status = dn_port_place_llcm(port);
    }
    if (DN_OK != status) {
        goto err_destroy;
    }
    dn_port_place_bell(port);
    /* Strings of the caller are not kept beyond dn_open(); those of providers are copies. */
    port->job.dir = NULL;
    dn_auth_wipe(&port->job.key, sizeof(port->job.key));
    port->config.fault = NULL;
    *port_p = port;
    return DN_OK;

err_destroy:
    dn_port_destroy(port);
    return status;
}

void dn_close(dn_port_t *port)
{
    if (dn_port_is_copy(port)) {
        dn_port_destroy_copy(port);
        return;
    }
    dn_port_destroy(port);
}

static dn_status_t dn_port_add_group(dn_port_t *port, const dn_pgid_t *pgid)
{
    dn_pgid_t *group = realloc(port->group, (port->groups + 1) * sizeof(*group));
    if (NULL == group) {
        dn_log_error("no memory to let a process group in");
        return DN_ERR_NOMEM;
    }
    port->group = group;
    group[port->groups++] = *pgid;
    return DN_OK;
}

dn_status_t dn_group_admit(dn_port_t *port, const dn_pgid_t *pgid)
{
    dn_status_t status = DN_OK;

    dn_port_lock(port);
    if (!dn_port_admits(port, pgid)) {
        status = dn_port_add_group(port, pgid);
        if (DN_OK == status) {
            for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
                if (NULL != iface->device->admitted) {
                    iface->device->admitted(iface, pgid);
                }
            }
        }
    }
    dn_port_unlock(port);
    return status;
}

const uint32_t *dn_strangers(const dn_port_t *port)
{
    return &port->strangers;
}

void dn_port_stranger(dn_port_t *port)
{
    (void) dn_fetch_add_relaxed(&port->strangers, 1);
}

void dn_counters(const dn_port_t *port, dn_counters_t *counters)
{
    const uint64_t *from = (const uint64_t *) &port->counters;
    uint64_t *to = (uint64_t *) counters;
    for (size_t i = 0; i < sizeof(*counters) / sizeof(*to); i++) {
        to[i] = dn_load_relaxed(&from[i]);
    }
}

dn_status_t dn_handler_set(dn_port_t *port, unsigned channel, dn_handler_fn_t fn, void *arg)
{
    if (DN_CHAN_DEVICE >= channel || DN_CHAN_MAX <= channel || NULL == fn) {
        dn_log_error("channel %u cannot have a handler; use %d to %d", channel, DN_CHAN_BTL, DN_CHAN_MAX - 1);
        return DN_ERR_PARAM;
    }
    dn_status_t status = DN_OK;
    dn_port_lock(port);
    if (NULL != port->handler[channel].fn) {
        dn_log_error("channel %u has a handler already; clear it first, or use another channel", channel);
        status = DN_ERR_PARAM;
    } else {
        port->handler[channel] = (dn_handler_t){fn, arg};
    }
    dn_port_unlock(port);
    return status;
}

void dn_handler_clear(dn_port_t *port, unsigned channel)
{
    dn_port_lock(port);
    if (DN_CHAN_DEVICE < channel && DN_CHAN_MAX > channel) {
        port->handler[channel] = (dn_handler_t){NULL, NULL};
    }
    dn_port_unlock(port);
}

/** All work of progress that is not a ring's. It is rare, so it is kept out of the poll. */
static __attribute__((noinline)) int dn_port_side_work(dn_port_t *port)
{
    int n = 0;
    if (dn_core_busy(&port->core)) {
        n += dn_core_progress(port);
    }
    if (NULL != port->fault) {
        n += dn_fault_progress(port->fault);
    }
    return n;
}

/** Count events. @return @p events. */
static inline int dn_port_count(dn_port_t *port, int events)
{
    if (__builtin_expect(0 != events, 0)) {
        dn_count(&port->events, 1);
    }
    return events;
}

static inline int dn_port_progress(dn_port_t *port)
{
    int n = 0;
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        if (0 != iface->rest) {
            iface->rest--;
        } else {
            n += iface->device->progress(iface);
        }
    }
    if (__builtin_expect(dn_core_busy(&port->core) || NULL != port->fault, 0)) {
        n += dn_port_side_work(port);
    }
    return dn_port_count(port, n);
}

int dn_progress(dn_port_t *port)
{
    if (!port->threads) {
        return dn_port_progress(port);
    }
    /* One thread receives; the others have nothing to gain by waiting for it. */
    if (!dn_port_trylock(port)) {
        return 0;
    }
    const int n = dn_port_progress(port);
    dn_port_unlock(port);
    return n;
}

int dn_port_poll_all(dn_port_t *port)
{
    int n = -1;

    if (!dn_port_trylock(port)) {
        return n;
    }
    if (1 >= port->depth) {
        n = 0;
        for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
            iface->rest = 0;
            if (NULL != iface->device->look) {
                n += iface->device->look(iface);
            }
        }
        n += dn_port_progress(port);
    }
    dn_port_unlock(port);
    return n;
}

void dn_port_tell_sleep(dn_port_t *port)
{
    if (!dn_port_trylock(port)) {
        return;
    }
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        if (NULL != iface->device->sleeps) {
            iface->device->sleeps(iface);
        }
    }
    dn_port_unlock(port);
}

int dn_recv(dn_peer_t *src, int max)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) src;
    dn_port_t *port = peer->iface->port;

    if (!dn_port_trylock(port)) {
        return 0;
    }
    int n = peer->iface->device->recv(peer, max);
    if (dn_core_busy(&port->core) || NULL != port->fault) {
        n += dn_port_side_work(port);
    }
    (void) dn_port_count(port, n);
    dn_port_unlock(port);
    return n;
}

uint64_t dn_port_heard(const dn_port_t *port)
{
    uint64_t heard = dn_load_relaxed(&port->events);

    for (const dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        if (NULL != iface->device->heard && !port->threads) {
            heard += iface->device->heard(iface);
        }
    }
    return heard;
}

int dn_oversubscribed(const dn_port_t *port)
{
    int is = 0;

    dn_port_lock(port);
    for (const dn_iface_t *iface = port->ifaces; NULL != iface && !is; iface = iface->next) {
        is = NULL != iface->device->oversubscribed && iface->device->oversubscribed(iface);
    }
    dn_port_unlock(port);
    return is;
}

uint32_t dn_first(const dn_port_t *port)
{
    return port->config.first;
}

uint32_t *dn_bell(const dn_port_t *port)
{
    return port->bell;
}
