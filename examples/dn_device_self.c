/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A small device: `self` carries what a process sends to itself, through a ring in its own memory. In a list before
 * another device, as in "self,shm", it takes these messages off that one.
 *
 * PUSH, PULL and atomics are the core processor's, since their entries are left out. doc/extending.md tells how to build it.
 */
#include <stdlib.h>
#include <string.h>

#include <dimmnet/dn_device.h>
#include <dimmnet/dn_line.h>
#include <dimmnet/dn_log.h>

typedef struct self {
    dn_iface_t iface;
    uint32_t lines, first;
    uint64_t llcm_len;
    struct self_peer *peer; /**< this process; NULL: not connected to itself */
} self_t;

typedef struct self_peer {
    dn_peer_base_t base;
    dn_lock_t lock; /**< of tx */
    dn_line_tx_t tx;
    dn_line_rx_t rx; /**< under the port's lock */
} self_peer_t;

/* What callers use of a peer. Several threads may; none of these holds the port's lock. */

static dn_status_t self_botf(dn_peer_t *hot, unsigned channel, unsigned tag, const void *head,
                             size_t head_len, const void *body, size_t body_len)
{
    self_peer_t *peer = (self_peer_t *) hot;
    if (peer->base.botf_max < head_len || peer->base.botf_max - head_len < body_len) {
        return DN_ERR_RANGE;
    }
    dn_lock(&peer->lock);
    const int sent = dn_line_send(&peer->tx, channel, tag, head, head_len, body, body_len);
    dn_unlock(&peer->lock);
    return sent ? DN_OK : DN_ERR_AGAIN;
}

static dn_status_t self_reserve(dn_peer_t *hot, size_t len, dn_window_t *window)
{
    self_peer_t *peer = (self_peer_t *) hot;
    if (peer->base.botf_max < len) {
        return DN_ERR_RANGE;
    }
    dn_lock(&peer->lock); /* until the kick */
    *window = (dn_window_t){.data = dn_line_reserve(&peer->tx, len), .len = len};
    if (NULL == window->data) {
        dn_unlock(&peer->lock);
        return DN_ERR_AGAIN;
    }
    return DN_OK;
}

static void self_kick(dn_peer_t *hot, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    self_peer_t *peer = (self_peer_t *) hot;
    dn_line_kick(&peer->tx, channel, tag, len);
    dn_unlock(&peer->lock);
}

static dn_status_t self_aotf(dn_peer_t *hot, uint64_t off, uint64_t value, size_t size)
{
    const self_peer_t *peer = (const self_peer_t *) hot;
    if (0 == size || 8 < size || off > peer->base.llcm_len || size > peer->base.llcm_len - off) {
        return DN_ERR_RANGE;
    }
    dn_store_bytes((uint8_t *) peer->base.iface->llcm + off, value, size);
    return DN_OK;
}

/** Messages are in the ring, and stores in LLCM, when their calls return: only what the core processor has under way is left. */
static dn_status_t self_fence(dn_peer_t *hot)
{
    return 0 != dn_load_acquire_u32(&((dn_peer_base_t *) hot)->outstanding) ? DN_INPROGRESS : DN_OK;
}

/* What the port calls, under its lock. */

static dn_status_t self_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                             dn_iface_t **iface_p)
{
    self_t *self = NULL;
    if (NULL != argument) {
        dn_log_error("self takes no argument, not \"%s\"", argument);
        return DN_ERR_PARAM;
    }
    self = calloc(1, sizeof(*self));
    if (NULL == self) {
        return DN_ERR_NOMEM;
    }
    self->lines = config->ring_lines;
    self->first = config->first;
    self->llcm_len = config->llcm_bytes;
    *iface_p = &self->iface;
    return DN_OK;
}

static void self_close(dn_iface_t *iface)
{
    free(iface);
}

/** The head of an address says which process it is of: nothing is to be added. */
static dn_status_t self_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    *len = 0;
    return DN_OK;
}

static dn_status_t self_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                                dn_peer_base_t **peer_p)
{
    static const dn_peer_ops_t ops = {.botf = self_botf,
                                      .reserve = self_reserve,
                                      .kick = self_kick,
                                      .aotf = self_aotf,
                                      .fence = self_fence};
    self_t *self = (self_t *) iface;
    if (0 != memcmp(id->nonce, dn_port_nonce(iface->port), sizeof(id->nonce))) {
        dn_log_answer("self does not reach PID %u: it is another process", id->pid);
        return DN_ERR_UNREACH;
    }
    self_peer_t *peer = aligned_alloc(64, (sizeof(*peer) + 63) / 64 * 64);
    dn_ring_t *ring = aligned_alloc(64, dn_ring_bytes(self->lines));
    if (NULL == peer || NULL == ring) {
        free(peer);
        free(ring);
        return DN_ERR_NOMEM;
    }
    memset(peer, 0, sizeof(*peer));
    memset(ring, 0, dn_ring_bytes(self->lines));
    dn_line_tx_init(&peer->tx, ring, self->lines, self->first);
    dn_line_rx_init(&peer->rx, ring, self->lines, self->first);
    peer->base.ops = ops;
    peer->base.iface = iface;
    peer->base.pid = id->pid;
    peer->base.pgid = id->pgid;
    memcpy(peer->base.nonce, id->nonce, sizeof(id->nonce));
    peer->base.llcm_len = self->llcm_len;
    peer->base.botf_inline = DN_LINE_INLINE;
    peer->base.botf_max = dn_line_max(self->lines);
    self->peer = peer;
    *peer_p = &peer->base;
    return DN_OK;
}

static void self_release(dn_peer_base_t *base)
{
    ((self_t *) base->iface)->peer = NULL;
    free(((self_peer_t *) base)->rx.ring);
    free(base);
}

/** What has not been received goes with the peer. */
static void self_disconnect(dn_peer_base_t *base)
{
    dn_port_forget(base->iface->port, base);
    self_release(base);
}

static int self_recv(dn_peer_base_t *base, int max)
{
    dn_line_rx_t *rx = &((self_peer_t *) base)->rx;
    dn_line_msg_t msg;
    int n = 0;
    while (n < max && dn_line_peek(rx, &msg)) {
        const dn_handler_t *handler = DN_CHAN_MAX > msg.channel ? &base->iface->handler[msg.channel] : NULL;
        if (NULL != handler && NULL == handler->fn) {
            break; /* it waits for one, and so does what follows */
        }
        dn_line_advance(rx, &msg); /* before the call, as the handler may progress */
        rx->depth++;
        if (NULL != handler) {
            handler->fn(&base->hot, msg.tag, msg.data, msg.len, handler->arg);
        } else {
            dn_count(&base->iface->counters->dropped, 1);
        }
        if (0 == --rx->depth && dn_line_credit_due(rx)) {
            dn_line_return_credit(rx);
        }
        n++;
    }
    return n;
}

static int self_progress(dn_iface_t *iface)
{
    self_peer_t *peer = ((self_t *) iface)->peer;
    return NULL == peer ? 0 : self_recv(&peer->base, 64);
}

static dn_status_t self_check(dn_peer_base_t *peer)
{
    return DN_OK;
}

static const dn_device_t dn_device_self = {
    .name = "self",
    .open = self_open,
    .close = self_close,
    .address = self_address,
    .connect = self_connect,
    .disconnect = self_disconnect,
    .release = self_release,
    .progress = self_progress,
    .recv = self_recv,
    .check = self_check,
};

DN_DEVICE_MODULE(dn_device_self);
