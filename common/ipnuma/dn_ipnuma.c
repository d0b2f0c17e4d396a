/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dn_log.h"

void dn_ipnuma_unlock_and_more(dn_ipnuma_t *ipnuma)
{
    const uint32_t after = ipnuma->after;
    dn_log_later_t taken;

    ipnuma->after = 0;
    dn_log_take(&ipnuma->later, &taken);
    pthread_mutex_unlock(&ipnuma->lock);
    if (0 != (DN_IPNUMA_AFTER_CALL & after)) {
        dn_thread_call(ipnuma->service.event);
    }
    if (0 != (DN_IPNUMA_AFTER_RING & after)) {
        dn_bell_touch(ipnuma->iface.bell);
    }
    dn_log_taken(&taken);
}

static void dn_ipnuma_free(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_socket_close(ipnuma);
    if (0 <= ipnuma->service.event) {
        close(ipnuma->service.event);
    }
    dn_lull_close(&ipnuma->service.lull);
    dn_guests_close(&ipnuma->guests);
    dn_ipnuma_regions_close(&ipnuma->regions);
    free(ipnuma->segment);
    dn_ipnuma_map_close(&ipnuma->map);
    pthread_mutex_destroy(&ipnuma->lock);
    free(ipnuma->cipher);
    free(ipnuma);
}

/** Fill in what other processes are told about this process, except the address of its LLCM. */
static void dn_ipnuma_describe(dn_ipnuma_t *ipnuma, const dn_config_t *config)
{
    dn_ipnuma_where_t *where = &ipnuma->where;
    const uint32_t credit = config->ring_lines * DN_IPNUMA_RINGS * 64;

    dn_host(where->host);
    memcpy(where->nonce, dn_port_nonce(ipnuma->iface.port), sizeof(where->nonce));
    memcpy(where->exchange, dn_port_group(ipnuma->iface.port)->exchange, sizeof(where->exchange));
    where->auth = config->auth;
    where->llcm_bytes = config->llcm_bytes;
    where->os_pid = (uint32_t) getpid();
    where->credit = credit < DN_IPNUMA_CREDIT_MAX ? credit : DN_IPNUMA_CREDIT_MAX;
    /* The longest message costs half of the credit. So one such message can go out while the credit of another is on its way back. */
    const uint32_t half = where->credit / 2 - dn_ipnuma_cost(0);
    where->botf_max = half < DN_IPNUMA_BOTF_MAX ? half : DN_IPNUMA_BOTF_MAX;
    if (DN_OK == dn_topo_allowed(&where->units)) {
        ipnuma->units = dn_cpumask_weight(&where->units);
    }
}

/** Split INTERFACE@ADDRESS/BITS. Without INTERFACE, the name is "": any interface. Without @ADDRESS/BITS, regions let in every process
 * of a group that is let in. @return 0: the argument is malformed. */
static int dn_ipnuma_read_argument(dn_ipnuma_t *ipnuma, const char *argument, char name[DN_IPNUMA_NAME])
{
    const char *at = NULL == argument ? NULL : strchr(argument, '@');
    const size_t len = NULL == argument ? 0 : NULL == at ? strlen(argument) : (size_t) (at - argument);
    char text[INET_ADDRSTRLEN] = "", more;
    struct in_addr address;
    unsigned bits = 0;

    if (DN_IPNUMA_NAME <= len) {
        return 0;
    }
    snprintf(name, DN_IPNUMA_NAME, "%.*s", (int) len, NULL == argument ? "" : argument);
    if (NULL == at) {
        return 1;
    }
    if (2 != sscanf(at, "@%15[0-9.]/%2u%c", text, &bits, &more) || 32 < bits
        || 1 != inet_pton(AF_INET, text, &address)) {
        return 0;
    }
    ipnuma->peers_at = ntohl(address.s_addr);
    ipnuma->peers_mask = 0 == bits ? 0 : UINT32_MAX << (32 - bits);
    return 1;
}

static dn_status_t dn_ipnuma_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                                  dn_iface_t **iface_p)
{
    const dn_auth_group_t *group = dn_port_group(port);
    char name[DN_IPNUMA_NAME];

    if (!dn_guests_may_come(group, config->auth, "ipnuma")) {
        return DN_ERR_UNSUPPORTED;
    }
    dn_ipnuma_t *ipnuma = calloc(1, sizeof(*ipnuma));
    if (NULL == ipnuma) {
        return DN_ERR_NOMEM;
    }
    pthread_mutex_init(&ipnuma->lock, NULL);
    ipnuma->iface.port = port;
    ipnuma->fd = -1;
    ipnuma->auth = config->auth;
    ipnuma->cipher = DN_AUTH_ENCRYPTED == config->auth ? malloc(DN_IPNUMA_ROW_BYTES) : NULL;
    ipnuma->first = (uint64_t) config->first + 1;
    ipnuma->timeout_ns = config->timeout_s * UINT64_C(1000000000);
    ipnuma->max_senders = config->max_peers + dn_port_job(port)->size;
    ipnuma->rma = config->network_rma;
    ipnuma->contenders = 1;
    ipnuma->service.lull.fd = -1;
    ipnuma->service.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    dn_status_t status = 0 > ipnuma->service.event || 0 != dn_lull_open(&ipnuma->service.lull)
                                 || (DN_AUTH_ENCRYPTED == config->auth && NULL == ipnuma->cipher)
                             ? DN_ERR_NOMEM
                             : dn_guests_add(&ipnuma->guests, &group->pgid);
    if (DN_OK != status) {
        dn_log_error("ipnuma has no memory or file: %s; raise limits, as of open files", strerror(errno));
    } else if (!dn_ipnuma_read_argument(ipnuma, argument, name)) {
        dn_log_error("ipnuma takes INTERFACE or INTERFACE@ADDRESS/BITS, such as eth0@10.1.0.0/16, not \"%s\"",
                     argument);
        status = DN_ERR_PARAM;
    } else {
        status = dn_ipnuma_socket_open(ipnuma, name);
    }
    if (DN_OK != status) {
        dn_ipnuma_free(ipnuma);
        return status;
    }
    dn_ipnuma_describe(ipnuma, config);
    ipnuma->iface.provider = "udp";
    ipnuma->iface.domain = ipnuma->domain;
    ipnuma->iface.endpoint = ipnuma->endpoint;
    ipnuma->iface.sockets = 1;
    *iface_p = &ipnuma->iface;
    return DN_OK;
}

/** Free the device with its connections, which are told nothing. */
static void dn_ipnuma_free_all(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_expire(ipnuma, 1, 0);
    while (NULL != ipnuma->pcs) {
        dn_ipnuma_pc_free(ipnuma->pcs);
    }
    dn_ipnuma_free(ipnuma);
}

static void dn_ipnuma_close(dn_iface_t *iface)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;

    dn_ipnuma_lock(ipnuma);
    ipnuma->closing = 1;
    dn_ipnuma_unlock(ipnuma);
    dn_ipnuma_service_stop(ipnuma);
    /* The port has released the peers that it knows. The thread has met the others. */
    while (NULL != ipnuma->peers) {
        dn_port_forget(iface->port, &ipnuma->peers->base);
        dn_ipnuma_release(&ipnuma->peers->base);
    }
    dn_ipnuma_lock(ipnuma);
    for (dn_ipnuma_pc_t *pc = ipnuma->pcs; NULL != pc; pc = pc->next) {
        dn_ipnuma_leave(pc, DN_TLP_CLOSE);
    }
    dn_ipnuma_unlock(ipnuma);
    dn_ipnuma_linger(ipnuma);
    dn_ipnuma_free_all(ipnuma);
}

static void dn_ipnuma_close_copy(dn_iface_t *iface, dn_peer_base_t *peers)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) iface;

    /* The device knows them all. */
    (void) peers;
    if (0 != pthread_mutex_trylock(&ipnuma->lock)) {
        return;
    }
    ipnuma->closing = 1;
    pthread_mutex_unlock(&ipnuma->lock);
    while (NULL != ipnuma->peers) {
        dn_ipnuma_release(&ipnuma->peers->base);
    }
    dn_ipnuma_free_all(ipnuma);
}

void dn_ipnuma_share_llcm(dn_ipnuma_t *ipnuma)
{
    uint64_t random;

    if (ipnuma->shared) {
        return;
    }
    dn_auth_random(&random, sizeof(random));
    ipnuma->shared =
        DN_OK
        == dn_ipnuma_regions_add(&ipnuma->regions, ipnuma->iface.llcm, ipnuma->where.llcm_bytes,
                                 ipnuma->peers_at, ipnuma->peers_mask, random, &ipnuma->where.llcm_at);
}

static dn_status_t dn_ipnuma_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) (uintptr_t) iface;

    if (sizeof(ipnuma->where) > *len) {
        *len = sizeof(ipnuma->where);
        return DN_ERR_RANGE;
    }
    /* From now on other processes may connect, even while this process computes. */
    dn_ipnuma_lock(ipnuma);
    dn_ipnuma_service_start(ipnuma);
    const int shared = ipnuma->shared;
    dn_ipnuma_unlock(ipnuma);
    memcpy(buf, &ipnuma->where, sizeof(ipnuma->where));
    *len = sizeof(ipnuma->where);
    return shared ? DN_OK : DN_ERR_NOMEM;
}

static int dn_ipnuma_direct(const dn_peer_base_t *base)
{
    return ((const dn_ipnuma_t *) base->iface)->rma && NULL != ((const dn_ipnuma_peer_t *) base)->pc;
}

static int dn_ipnuma_opens(const dn_peer_base_t *base, const dn_key_t *key)
{
    dn_ipnuma_t *ipnuma = (dn_ipnuma_t *) base->iface;
    const dn_ipnuma_peer_t *peer = (const dn_ipnuma_peer_t *) base;

    /* All regions let the same addresses in. This process has no connection to itself. */
    (void) key;
    dn_ipnuma_lock(ipnuma);
    const int opens = NULL == peer->pc || dn_ipnuma_lets_in(peer->pc);
    dn_ipnuma_unlock(ipnuma);
    return opens;
}

static int dn_ipnuma_oversubscribed(const dn_iface_t *iface)
{
    const dn_ipnuma_t *ipnuma = (const dn_ipnuma_t *) iface;

    /* A hint: the lock is left to the service, as this is asked for each long message. */
    return 0 != ipnuma->units && dn_load_relaxed(&ipnuma->contenders) > ipnuma->units;
}

static int dn_ipnuma_rings(const dn_iface_t *iface)
{
    (void) iface;
    return 1;
}

const dn_device_t dn_device_ipnuma = {
    .name = "ipnuma",
    .open = dn_ipnuma_open,
    .close = dn_ipnuma_close,
    .close_copy = dn_ipnuma_close_copy,
    .address = dn_ipnuma_address,
    .connect = dn_ipnuma_connect,
    .disconnect = dn_ipnuma_disconnect,
    .release = dn_ipnuma_release,
    .progress = dn_ipnuma_progress,
    .recv = dn_ipnuma_recv,
    .check = dn_ipnuma_check,
    .lost = dn_ipnuma_lost,
    .message = NULL,
    .admitted = dn_ipnuma_admitted,
    .segment_alloc = NULL,
    .segment_release = NULL,
    .segment_register = dn_ipnuma_segment_register,
    .segment_unregister = dn_ipnuma_segment_unregister,
    .map = NULL,
    .direct = dn_ipnuma_direct,
    .opens = dn_ipnuma_opens,
    .oversubscribed = dn_ipnuma_oversubscribed,
    .rings = dn_ipnuma_rings,
    .sleeps = dn_ipnuma_hand_on,
};
