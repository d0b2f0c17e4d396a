/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dn_log.h"

/** What we were written against; a newer library keeps to it. */
#define DN_OFI_API FI_VERSION(1, 9)
/** Completions read at once. */
#define DN_OFI_BATCH 16

uint64_t dn_ofi_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

/** What we can live with; a provider clears the mode bits that it does not need. */
static struct fi_info *dn_ofi_hints(const char *provider, uint64_t caps, uint64_t order, uint64_t op_flags)
{
    struct fi_info *hints = fi_allocinfo();

    if (NULL == hints) {
        return NULL;
    }
    hints->caps = caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->tx_attr->msg_order = order;
    hints->rx_attr->msg_order = order;
    hints->tx_attr->op_flags = op_flags;
    if (NULL != provider && '\0' != provider[0]) {
        hints->fabric_attr->prov_name = strdup(provider);
    }
    return hints;
}

/** Only with processes of this host? */
static int dn_ofi_is_local(const struct fi_info *info)
{
    return 0 == strcmp(info->fabric_attr->prov_name, "shm") || 0 == strcmp(info->domain_attr->name, "lo");
}

/** The first that fits; unless it was asked for, one that leaves this host comes before one that does not. */
static const struct fi_info *dn_ofi_choose(const struct fi_info *list, const char *provider,
                                           const char *domain)
{
    const struct fi_info *local = NULL;

    for (const struct fi_info *info = list; NULL != info; info = info->next) {
        if (NULL != domain && 0 != strcmp(info->domain_attr->name, domain)) {
            continue;
        }
        if (DN_OFI_PROVIDER_MAX <= strlen(info->fabric_attr->prov_name)
            || info->ep_attr->max_msg_size < DN_OFI_SMALL) {
            continue;
        }
        if (NULL != domain || '\0' != provider[0] || !dn_ofi_is_local(info)) {
            return info;
        }
        local = NULL == local ? info : local;
    }
    return local;
}

/** One question to libfabric. @return a copy of what fits, NULL: nothing. */
static struct fi_info *dn_ofi_ask(const char *provider, const char *domain, uint64_t caps, uint64_t order,
                                  uint64_t op_flags)
{
    struct fi_info *list = NULL;
    struct fi_info *found = NULL;
    struct fi_info *hints = dn_ofi_hints(provider, caps, order, op_flags);

    if (NULL != hints && 0 == fi_getinfo(DN_OFI_API, NULL, NULL, 0, hints, &list)) {
        const struct fi_info *info = dn_ofi_choose(list, provider, domain);
        found = NULL == info ? NULL : fi_dupinfo(info);
        fi_freeinfo(list);
    }
    if (NULL != hints) {
        fi_freeinfo(hints);
    }
    return found;
}

/** Choose a provider: with RMA and order where it can be had. */
static dn_status_t dn_ofi_select(dn_ofi_t *ofi, const char *argument)
{
    static const uint64_t caps[] = {FI_MSG | FI_RMA, FI_MSG};
    static const uint64_t order[] = {FI_ORDER_SAS | FI_ORDER_WAS | FI_ORDER_RAS, FI_ORDER_SAS, 0};
    char text[128] = "";

    if (NULL != argument) {
        if (sizeof(text) <= strlen(argument)) {
            dn_log_error("\"ofi:%s\" is too long; write ofi:PROVIDER@DOMAIN", argument);
            return DN_ERR_PARAM;
        }
        memcpy(text, argument, strlen(argument) + 1);
    }
    char *domain = strrchr(text, '@');
    if (NULL != domain) {
        *domain++ = '\0';
    }
    for (size_t c = 0; c < 2 && NULL == ofi->info; c++) {
        for (size_t o = 0; o < 3 && NULL == ofi->info; o++) {
            ofi->info = dn_ofi_ask(text, domain, caps[c], order[o], 0);
            ofi->ordered = 0 != (order[o] & FI_ORDER_SAS);
            ofi->writes_after_sends = 0 != (order[o] & FI_ORDER_WAS);
            ofi->rma = ofi->rma_wanted && 0 != (caps[c] & FI_RMA);
        }
    }
    if (NULL == ofi->info) {
        if (NULL != argument) {
            dn_log_error("libfabric has no provider with an RDM endpoint for \"ofi:%s\"; see fi_info",
                         argument);
        }
        return DN_ERR_UNSUPPORTED;
    }
    struct fi_info *sure = dn_ofi_ask(ofi->info->fabric_attr->prov_name, ofi->info->domain_attr->name,
                                      FI_MSG | FI_RMA, 0, FI_DELIVERY_COMPLETE);
    ofi->delivery = ofi->rma && NULL != sure;
    if (NULL != sure) {
        fi_freeinfo(sure);
    }
    return DN_OK;
}

/** A call of libfabric that must succeed. */
static dn_status_t dn_ofi_try(const dn_ofi_t *ofi, const char *what, int ret)
{
    if (0 == ret) {
        return DN_OK;
    }
    dn_log_error("provider %s of libfabric: %s failed: %s", ofi->info->fabric_attr->prov_name, what,
                 fi_strerror(-ret));
    return -FI_ENOMEM == ret ? DN_ERR_NOMEM : DN_ERR_UNSUPPORTED;
}

static dn_status_t dn_ofi_open_objects(dn_ofi_t *ofi)
{
    struct fi_info *info = ofi->info;
    struct fi_cq_attr cq = {
        .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE, .size = ofi->tx_left + ofi->rx_want + 16};
    struct fi_av_attr av = {.type = info->domain_attr->av_type};

    dn_status_t status = dn_ofi_try(ofi, "fi_fabric", fi_fabric(info->fabric_attr, &ofi->fabric, NULL));
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_domain", fi_domain(ofi->fabric, info, &ofi->domain, NULL));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_cq_open", fi_cq_open(ofi->domain, &cq, &ofi->cq, NULL));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_av_open", fi_av_open(ofi->domain, &av, &ofi->av, NULL));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_endpoint", fi_endpoint(ofi->domain, info, &ofi->ep, NULL));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_ep_bind", fi_ep_bind(ofi->ep, &ofi->av->fid, 0));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_ep_bind", fi_ep_bind(ofi->ep, &ofi->cq->fid, FI_TRANSMIT | FI_RECV));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_enable", fi_enable(ofi->ep));
    }
    return status;
}

dn_status_t dn_ofi_fabric_open(dn_ofi_t *ofi, const char *argument)
{
    size_t len = sizeof(ofi->where.name);

    dn_status_t status = dn_ofi_select(ofi, argument);
    if (DN_OK != status) {
        return status;
    }
    const struct fi_info *info = ofi->info;
    const uint32_t rx_size = (uint32_t) info->rx_attr->size;
    ofi->mr_mode = (uint64_t) info->domain_attr->mr_mode;
    ofi->inject = info->tx_attr->inject_size;
    ofi->tx_left = (uint32_t) info->tx_attr->size;
    ofi->rx_want =
        FI_RM_ENABLED == info->domain_attr->resource_mgmt && DN_OFI_RX < rx_size ? DN_OFI_RX : rx_size;
    ofi->local = dn_ofi_is_local(info);
    ofi->first_key =
        UINT64_C(1) << (8 * (info->domain_attr->mr_key_size < 8 ? info->domain_attr->mr_key_size : 8) - 1);
    ofi->next_key = ofi->first_key;
    if (info->ep_attr->max_msg_size < ofi->large.room) {
        ofi->large.room = (uint32_t) info->ep_attr->max_msg_size & ~7u;
    }
    status = dn_ofi_open_objects(ofi);
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_getname", fi_getname(&ofi->ep->fid, ofi->where.name, &len));
    }
    if (DN_OK == status) {
        ofi->where.name_len = (uint32_t) len;
        memcpy(ofi->where.provider, info->fabric_attr->prov_name, strlen(info->fabric_attr->prov_name));
        dn_ofi_refill(ofi);
        if (0 == ofi->rx_posted) {
            dn_log_error("provider %s of libfabric takes no receive buffers", info->fabric_attr->prov_name);
            status = DN_ERR_NOMEM;
        }
    }
    if (DN_OK != status) {
        dn_ofi_fabric_close(ofi);
    }
    return status;
}

static void dn_ofi_pool_close(dn_ofi_pool_t *pool)
{
    while (NULL != pool->slab) {
        dn_ofi_slab_t *slab = pool->slab;
        pool->slab = slab->next;
        if (NULL != slab->mr) {
            fi_close(&slab->mr->fid);
        }
        free(slab);
    }
}

void dn_ofi_fabric_close(dn_ofi_t *ofi)
{
    if (NULL != ofi->ep) {
        fi_close(&ofi->ep->fid);
    }
    /* The provider may use buffers until the endpoint is closed. */
    dn_ofi_pool_close(&ofi->small);
    dn_ofi_pool_close(&ofi->large);
    if (NULL != ofi->av) {
        fi_close(&ofi->av->fid);
    }
    if (NULL != ofi->cq) {
        fi_close(&ofi->cq->fid);
    }
    if (NULL != ofi->domain) {
        fi_close(&ofi->domain->fid);
    }
    if (NULL != ofi->fabric) {
        fi_close(&ofi->fabric->fid);
    }
    if (NULL != ofi->info) {
        fi_freeinfo(ofi->info);
    }
}

/* Memory */

struct fid_mr *dn_ofi_mr(dn_ofi_t *ofi, void *base, uint64_t len, uint64_t access, uint64_t key)
{
    struct fid_mr *mr = NULL;

    if (0 == key) {
        key = ofi->next_key++;
    }
    if (0 != fi_mr_reg(ofi->domain, base, len, access, 0, key, 0, &mr, NULL)) {
        return NULL;
    }
    if (0 != (ofi->mr_mode & FI_MR_ENDPOINT)
        && (0 != fi_mr_bind(mr, &ofi->ep->fid, 0) || 0 != fi_mr_enable(mr))) {
        fi_close(&mr->fid);
        return NULL;
    }
    return mr;
}

static int dn_ofi_pool_grow(dn_ofi_t *ofi, dn_ofi_pool_t *pool)
{
    const size_t stride = (sizeof(dn_ofi_buffer_t) + pool->room + 63) & ~(size_t) 63;
    dn_ofi_slab_t *slab = aligned_alloc(64, sizeof(*slab) + pool->each * stride);

    if (NULL == slab) {
        return 0;
    }
    memset(slab, 0, sizeof(*slab) + pool->each * stride);
    if (0 != (ofi->mr_mode & FI_MR_LOCAL)) {
        slab->mr = dn_ofi_mr(ofi, slab->bytes, pool->each * stride, FI_SEND | FI_RECV, 0);
        if (NULL == slab->mr) {
            free(slab);
            return 0;
        }
    }
    slab->next = pool->slab;
    pool->slab = slab;
    for (uint32_t i = 0; i < pool->each; i++) {
        dn_ofi_buffer_t *buffer = (dn_ofi_buffer_t *) (slab->bytes + i * stride);
        buffer->room = pool->room;
        buffer->desc = NULL != slab->mr ? fi_mr_desc(slab->mr) : NULL;
        buffer->next = pool->free;
        pool->free = buffer;
    }
    return 1;
}

dn_ofi_buffer_t *dn_ofi_buffer(dn_ofi_t *ofi, size_t bytes)
{
    dn_ofi_pool_t *pool = bytes <= ofi->small.room ? &ofi->small : &ofi->large;

    if (NULL == pool->free && !dn_ofi_pool_grow(ofi, pool)) {
        return NULL;
    }
    dn_ofi_buffer_t *buffer = pool->free;
    pool->free = buffer->next;
    buffer->next = NULL;
    buffer->lines = 0;
    return buffer;
}

void dn_ofi_buffer_free(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer)
{
    dn_ofi_pool_t *pool = buffer->room == ofi->small.room ? &ofi->small : &ofi->large;
    buffer->next = pool->free;
    pool->free = buffer;
}

/* Addresses */

dn_ofi_node_t *dn_ofi_node(dn_ofi_t *ofi, const uint8_t *name, uint32_t len)
{
    dn_ofi_node_t *node = ofi->nodes;

    while (NULL != node && (node->len != len || 0 != memcmp(node->name, name, len))) {
        node = node->next;
    }
    if (NULL != node) {
        node->users++;
        return node;
    }
    node = calloc(1, sizeof(*node) + len + 1);
    if (NULL == node) {
        return NULL;
    }
    /* One byte more, 0: some names are strings. */
    memcpy(node->name, name, len);
    if (1 != fi_av_insert(ofi->av, node->name, 1, &node->addr, 0, NULL)) {
        free(node);
        return NULL;
    }
    node->len = len;
    node->users = 1;
    node->next = ofi->nodes;
    ofi->nodes = node;
    return node;
}

void dn_ofi_node_leave(dn_ofi_t *ofi, dn_ofi_node_t *node)
{
    if (0 != --node->users) {
        return;
    }
    dn_ofi_node_t **at = &ofi->nodes;
    while (node != *at) {
        at = &(*at)->next;
    }
    *at = node->next;
    fi_av_remove(ofi->av, &node->addr, 1, 0);
    free(node);
}

/* Completions */

void dn_ofi_refill(dn_ofi_t *ofi)
{
    while (ofi->rx_posted < ofi->rx_want) {
        dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, ofi->large.room);
        if (NULL == buffer) {
            return;
        }
        buffer->request.role = DN_OFI_RECV;
        if (0
            != fi_recv(ofi->ep, buffer->bytes, buffer->room, buffer->desc, FI_ADDR_UNSPEC,
                       &buffer->request.context)) {
            dn_ofi_buffer_free(ofi, buffer);
            return;
        }
        ofi->rx_posted++;
    }
}

/** A buffer went out, or failed to. */
static void dn_ofi_sent(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, int failed)
{
    dn_ofi_stream_t *stream = buffer->stream;

    ofi->tx_left++;
    dn_ofi_buffer_free(ofi, buffer);
    if (NULL == stream) {
        return;
    }
    stream->flying--;
    if (failed) {
        stream->dead = 1;
    }
    if (NULL != stream->peer) {
        stream->peer->signs++;
        if (failed) {
            dn_ofi_suspect(ofi, stream->peer);
        }
    } else {
        dn_ofi_settle_stream(ofi, stream);
    }
}

static void dn_ofi_complete(dn_ofi_t *ofi, const struct fi_cq_msg_entry *entry)
{
    dn_ofi_request_t *request = entry->op_context;

    /* fi_inject and control words have no context. */
    if (NULL == request) {
        return;
    }
    switch (request->role) {
    case DN_OFI_RECV:
        ofi->rx_posted--;
        dn_ofi_arrived(ofi, (dn_ofi_buffer_t *) request, entry->len);
        break;
    case DN_OFI_SEND:
        dn_ofi_sent(ofi, (dn_ofi_buffer_t *) request, 0);
        break;
    default:
        ofi->tx_left++;
        dn_ofi_part_done(ofi, (dn_ofi_part_t *) request, DN_OK);
        break;
    }
}

/** An operation failed: towards a peer it is gone, unless it refuses just this access to its memory. */
static int dn_ofi_failed(dn_ofi_t *ofi)
{
    struct fi_cq_err_entry error = {0};

    if (1 != fi_cq_readerr(ofi->cq, &error, 0)) {
        return 0;
    }
    dn_ofi_request_t *request = error.op_context;
    if (NULL == request) {
        return 1;
    }
    switch (request->role) {
    case DN_OFI_RECV:
        ofi->rx_posted--;
        dn_ofi_buffer_free(ofi, (dn_ofi_buffer_t *) request);
        if (FI_ECANCELED != error.err) {
            dn_count(&ofi->iface.counters->dropped, 1);
        }
        break;
    case DN_OFI_SEND:
        dn_ofi_sent(ofi, (dn_ofi_buffer_t *) request, 1);
        break;
    default:
        ofi->tx_left++;
        dn_ofi_part_done(ofi, (dn_ofi_part_t *) request,
                         FI_EACCES == error.err || FI_EINVAL == error.err || FI_EFAULT == error.err
                                 || FI_EPERM == error.err || FI_ENOKEY == error.err
                             ? DN_ERR_RANGE
                             : DN_ERR_UNREACH);
        break;
    }
    return 1;
}

int dn_ofi_poll(dn_ofi_t *ofi)
{
    struct fi_cq_msg_entry entry[DN_OFI_BATCH];
    int n = 0;

    const ssize_t got = fi_cq_read(ofi->cq, entry, DN_OFI_BATCH);
    if (0 < got) {
        for (ssize_t i = 0; i < got; i++) {
            dn_ofi_complete(ofi, &entry[i]);
        }
        n = (int) got;
    } else if (-FI_EAVAIL == got) {
        n = dn_ofi_failed(ofi);
    }
    if (ofi->rx_posted < ofi->rx_want) {
        dn_ofi_refill(ofi);
    }
    return n;
}
