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

/** Most completions that one call reads. */
#define DN_OFI_BATCH 16
/** Most keys that are tried for a registration. */
#define DN_OFI_KEY_TRIES 16

/** Translate the result of a call of libfabric. A failure is logged. */
static dn_status_t dn_ofi_try(const dn_ofi_t *ofi, const char *what, int ret)
{
    if (0 == ret) {
        return DN_OK;
    }
    dn_log_error("provider %s of libfabric: %s failed: %s", ofi->info->fabric_attr->prov_name, what,
                 ofi->lib->strerror(-ret));
    return -FI_ENOMEM == ret ? DN_ERR_NOMEM : DN_ERR_UNSUPPORTED;
}

/** Open an endpoint, and enable it. @param[out] what_p  The call that failed. @return 0; or the provider's error, and there is no
 * endpoint. */
static int dn_ofi_open_endpoint(dn_ofi_t *ofi, struct fid_ep **ep_p, const char **what_p)
{
    struct fid_ep *ep;

    *what_p = "fi_endpoint";
    int ret = fi_endpoint(ofi->domain, ofi->info, &ep, NULL);
    if (0 != ret) {
        return ret;
    }
    *what_p = "fi_ep_bind";
    ret = fi_ep_bind(ep, &ofi->av->fid, 0);
    if (0 == ret) {
        ret = fi_ep_bind(ep, &ofi->cq->fid, FI_TRANSMIT | FI_RECV);
    }
    if (0 == ret) {
        *what_p = "fi_enable";
        ret = fi_enable(ep);
    }
    if (0 != ret) {
        fi_close(&ep->fid);
        return ret;
    }
    *ep_p = ep;
    return 0;
}

/** Can a thread sleep on a file until there are completions? The provider tcp without a layer has an epoll file of its sockets. Other
 * providers would write to a file at each completion, or start threads of their own. */
static int dn_ofi_can_wait(const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;

    return 0 == strcmp(provider, "tcp") || 0 == strcmp(provider, "net");
}

/** Open the queue of completions, with a file to wait for if the provider can have one. */
static int dn_ofi_open_queue(dn_ofi_t *ofi)
{
    struct fi_cq_attr attr = {
        .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = ofi->tx_left + ofi->rx_want + 16};
    int fd;

    if (dn_ofi_can_wait(ofi->info) && 0 == fi_cq_open(ofi->domain, &attr, &ofi->cq, NULL)) {
        if (0 == fi_control(&ofi->cq->fid, FI_GETWAIT, &fd)) {
            ofi->cq_fd = dn_ofi_network_file(fd);
        }
        return 0;
    }
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(ofi->domain, &attr, &ofi->cq, NULL);
}

static dn_status_t dn_ofi_open_objects(dn_ofi_t *ofi)
{
    struct fi_info *info = ofi->info;
    struct fi_av_attr av = {.type = info->domain_attr->av_type};

    dn_status_t status =
        dn_ofi_try(ofi, "fi_fabric", ofi->lib->fabric(info->fabric_attr, &ofi->fabric, NULL));
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_domain", fi_domain(ofi->fabric, info, &ofi->domain, NULL));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_cq_open", dn_ofi_open_queue(ofi));
    }
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_av_open", fi_av_open(ofi->domain, &av, &ofi->av, NULL));
    }
    if (DN_OK == status) {
        const char *what;
        int ret = dn_ofi_open_endpoint(ofi, &ofi->ep, &what);
        if (-FI_EBUSY == ret) {
            /* The provider shm names its files by process. The first call has found and removed the file of a killed process. */
            ret = dn_ofi_open_endpoint(ofi, &ofi->ep, &what);
        }
        status = dn_ofi_try(ofi, what, ret);
    }
    return status;
}

static size_t dn_ofi_between(size_t value, size_t least, size_t most)
{
    return value < least ? least : value > most ? most : value;
}

/** Most bytes of a message that goes by fi_inject(), which has no completion. It is 0 for ofi_rxd: before libfabric 2.4, where ofi_rxd has
 * no entry left for a message, its fi_send() says that it has taken the message, and drops it. So this device keeps messages below the
 * number of entries (tx_left). It can count only messages that have completions. */
static size_t dn_ofi_inject_max(const struct fi_info *info)
{
    const char *provider = info->fabric_attr->prov_name;

    return NULL != strstr(provider, "ofi_rxd") ? 0 : info->tx_attr->inject_size;
}

/** Most bytes of a message. Because of two faults of libfabric, ofi_rxm is to send each message at once. First: ofi_rxm fetches long
 * messages by reads. Before libfabric 1.18, tcp frees a read twice when its connection is closed in the midst of the read, as happens
 * when a peer has fallen silent. Second: ofi_rxm sends messages of a middle length in parts. From libfabric 2.0 on, to 2.6 at least,
 * ofi_rxm crashes when it closes a connection by which only some of the parts have come. */
static size_t dn_ofi_message_max(const dn_ofi_lib_t *lib, const struct fi_info *info)
{
    const size_t most = info->ep_attr->max_msg_size;
    const char *provider = info->fabric_attr->prov_name;
    const uint32_t version = lib->version();
    const int reads = NULL != strstr(provider, "tcp;ofi_rxm") && FI_VERSION_LT(version, FI_VERSION(1, 18));
    const int parts = NULL != strstr(provider, "ofi_rxm") && !FI_VERSION_LT(version, FI_VERSION(2, 0));

    return reads || parts ? dn_ofi_between(DN_OFI_RXM_EAGER, 0, most) : most;
}

dn_status_t dn_ofi_fabric_open(dn_ofi_t *ofi, const dn_config_t *config, const char *argument)
{
    size_t len = sizeof(ofi->where.name);

    dn_status_t status = dn_ofi_select(ofi, config, argument);
    if (DN_OK != status) {
        return status;
    }
    const struct fi_info *info = ofi->info;
    ofi->mr_mode = (uint64_t) info->domain_attr->mr_mode;
    ofi->inject = dn_ofi_inject_max(info);
    ofi->tx_left = (uint32_t) dn_ofi_between(info->tx_attr->size, 1, DN_OFI_QUEUE_MAX);
    ofi->tx_words = sizeof(dn_ofi_head_t) + sizeof(dn_ofi_pong_t) <= ofi->inject ? 0 : ofi->tx_left / 8;
    ofi->tx_most = (ofi->tx_left + 1) / 2;
    ofi->rx_want = (uint32_t) dn_ofi_between(
        info->rx_attr->size, 1,
        FI_RM_ENABLED == info->domain_attr->resource_mgmt ? DN_OFI_RX : DN_OFI_RX_MAX);
    ofi->local = dn_ofi_is_local(info);
    const size_t key_size = info->domain_attr->mr_key_size;
    ofi->key_mask = key_size < sizeof(uint64_t) ? (UINT64_C(1) << 8 * key_size) - 1 : UINT64_MAX;
    ofi->iov_limit = dn_ofi_between(info->tx_attr->iov_limit, 1, DN_OFI_IOV);
    ofi->rma_iov_limit = dn_ofi_between(info->tx_attr->rma_iov_limit, 1, DN_OFI_IOV);
    for (int i = 0; i < DN_OFI_POOLS; i++) {
        ofi->pool[i].room =
            (uint32_t) dn_ofi_between(ofi->pool[i].room, 0, dn_ofi_message_max(ofi->lib, info) & ~(size_t) 7);
    }
    status = dn_ofi_open_objects(ofi);
    if (DN_OK == status) {
        status = dn_ofi_try(ofi, "fi_getname", fi_getname(&ofi->ep->fid, ofi->where.name, &len));
    }
    if (DN_OK == status) {
        size_t room = sizeof(ofi->name_text) - 1;
        fi_av_straddr(ofi->av, ofi->where.name, ofi->name_text, &room);
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

struct fid_ep *dn_ofi_rma_endpoint(dn_ofi_t *ofi)
{
    const char *what;

    if (NULL == ofi->rma_ep && NULL != ofi->ep
        && (0 != (ofi->mr_mode & FI_MR_ENDPOINT) || 0 != dn_ofi_open_endpoint(ofi, &ofi->rma_ep, &what))) {
        ofi->rma_ep = ofi->ep;
    }
    return ofi->rma_ep;
}

void dn_ofi_rma_close(dn_ofi_t *ofi)
{
    if (NULL != ofi->rma_ep && ofi->rma_ep != ofi->ep) {
        fi_close(&ofi->rma_ep->fid);
    }
    ofi->rma_ep = NULL;
}

static void dn_ofi_close_endpoints(dn_ofi_t *ofi)
{
    dn_ofi_rma_close(ofi);
    if (NULL != ofi->ep && 0 != fi_close(&ofi->ep->fid)) {
        /* With FI_MR_ENDPOINT, registrations that are bound to the endpoint may have to be closed first. The memory of buffers stays. */
        for (int i = 0; i < DN_OFI_POOLS; i++) {
            dn_ofi_pool_unregister(&ofi->pool[i]);
        }
        dn_ofi_rma_unregister(ofi);
        fi_close(&ofi->ep->fid);
    }
    ofi->ep = NULL;
}

void dn_ofi_break(dn_ofi_t *ofi)
{
    dn_ofi_close_endpoints(ofi);
    while (0 != dn_ofi_poll(ofi)) {
    }
    dn_ofi_loan_return_all(ofi, NULL, DN_ERR_UNREACH);
    for (uint32_t i = 0; i < ofi->nstreams; i++) {
        dn_ofi_stream_t *stream = ofi->stream[i];
        if (NULL != stream) {
            dn_ofi_stream_end(stream);
            stream->flying = 0;
        }
    }
    for (dn_ofi_peer_t *peer = ofi->peers; NULL != peer; peer = peer->next) {
        if (!peer->self) {
            dn_ofi_doubt(ofi, peer, DN_PEER_SUSPECT);
        }
    }
    ofi->work = 1;
}

void dn_ofi_fabric_close(dn_ofi_t *ofi)
{
    dn_ofi_close_endpoints(ofi);
    /* The provider may use buffers until the endpoint is closed. */
    for (int i = 0; i < DN_OFI_POOLS; i++) {
        dn_ofi_pool_close(&ofi->pool[i]);
    }
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
        ofi->lib->freeinfo(ofi->info);
    }
}

/* Memory */

/** A random key, where the provider leaves the choice to this process. A process that has seen other keys cannot guess it. */
static uint64_t dn_ofi_new_key(const dn_ofi_t *ofi)
{
    uint64_t key;

    dn_auth_random(&key, sizeof(key));
    return key & ofi->key_mask;
}

struct fid_mr *dn_ofi_mr(dn_ofi_t *ofi, void *base, uint64_t len, uint64_t access)
{
    struct fid_mr *mr = NULL;
    int ret = -FI_ENOKEY;

    /* Keys may be short, so a random key may be in use: try others. */
    for (int tries = 0; - FI_ENOKEY == ret && tries < DN_OFI_KEY_TRIES; tries++) {
        ret = fi_mr_reg(ofi->domain, base, len, access, 0, dn_ofi_new_key(ofi), 0, &mr, NULL);
    }
    if (0 != ret) {
        return NULL;
    }
    /* If the endpoint is closed, there is nothing to bind to, and no peer reaches the memory. */
    if (0 != (ofi->mr_mode & FI_MR_ENDPOINT) && NULL != ofi->ep
        && (0 != fi_mr_bind(mr, &ofi->ep->fid, 0) || 0 != fi_mr_enable(mr))) {
        fi_close(&mr->fid);
        return NULL;
    }
    return mr;
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
    node = calloc(1, sizeof(*node));
    if (NULL == node) {
        return NULL;
    }
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
    while (ofi->rx_posted < ofi->rx_want && NULL != ofi->ep) {
        dn_ofi_buffer_t *buffer = dn_ofi_buffer(ofi, ofi->pool[DN_OFI_LONG].room);
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

/** Note that a buffer went out, or failed. */
static void dn_ofi_sent(dn_ofi_t *ofi, dn_ofi_buffer_t *buffer, int failed)
{
    dn_ofi_stream_t *stream = buffer->stream;

    ofi->tx_left++;
    if (NULL != buffer->loan) {
        dn_ofi_loan_return(ofi, buffer, failed ? DN_ERR_UNREACH : DN_OK);
    }
    dn_ofi_buffer_free(ofi, buffer);
    if (NULL == stream) {
        return;
    }
    stream->flying--;
    if (failed) {
        dn_ofi_stream_end(stream);
    }
    if (NULL != stream->peer) {
        /* Before the stream is open, a HELLO that goes out is no sign of life: the peer need not have answered. */
        stream->peer->watch.signs += (uint32_t) dn_ofi_stream_keyed(stream);
        if (failed) {
            dn_ofi_doubt(ofi, stream->peer, DN_PEER_SUSPECT);
        }
    } else {
        dn_ofi_settle_stream(ofi, stream);
    }
}

static void dn_ofi_complete(dn_ofi_t *ofi, const struct fi_cq_msg_entry *entry)
{
    dn_ofi_request_t *request = entry->op_context;

    /* Messages by fi_inject() have no context. */
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
        dn_ofi_part_done(ofi, (dn_ofi_part_t *) request, 0);
        break;
    }
}

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
        dn_ofi_part_done(ofi, (dn_ofi_part_t *) request, 1);
        break;
    }
    return 1;
}

int dn_ofi_poll(dn_ofi_t *ofi)
{
    struct fi_cq_msg_entry entry[DN_OFI_BATCH];
    int n = 0;

    /* What is handled here may post more: dn_ofi_post(). */
    ofi->backlog = 0;
    const ssize_t got = fi_cq_read(ofi->cq, entry, DN_OFI_BATCH);
    if (0 < got) {
        for (ssize_t i = 0; i < got; i++) {
            dn_ofi_complete(ofi, &entry[i]);
        }
        n = (int) got;
    } else if (-FI_EAVAIL == got) {
        n = dn_ofi_failed(ofi);
    }
    if (0 != n && ofi->awaited) {
        ofi->awaited = 0;
        dn_ofi_ring(ofi);
    }
    /* Only a look in vain finds the queue empty: an error, too, ends a batch. */
    ofi->backlog |= 0 != n;
    /* While enough receives are posted, post more only when nothing came: posting would come between a message and its answer. */
    if (ofi->rx_posted < ofi->rx_want && (0 == n || ofi->rx_posted < ofi->rx_want / 2)) {
        const uint32_t posted = ofi->rx_posted;
        dn_ofi_refill(ofi);
        /* The provider may have put messages that it kept into the new receives. */
        ofi->backlog |= posted != ofi->rx_posted;
    }
    return n;
}
