/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <inttypes.h>
#include <string.h>

#include "dn_log.h"
#include "dn_port.h"
#include "dn_xfer.h"

/** The arrows of the drawing in dn_device.h. */
#define TO(life) DN_TURN_TO(DN_PEER_##life)
const uint32_t dn_peer_turns[] = {
    [DN_PEER_NEW] = TO(CAME) | TO(CONNECTED) | TO(LOST) | TO(FORGOTTEN),
    [DN_PEER_CAME] = TO(CONNECTED) | TO(LOST) | TO(FORGOTTEN),
    [DN_PEER_CONNECTED] = TO(LEFT) | TO(LOST) | TO(FORGOTTEN),
    [DN_PEER_LEFT] = TO(CAME) | TO(CONNECTED) | TO(LOST) | TO(FORGOTTEN),
    [DN_PEER_LOST] = 0,
    [DN_PEER_FORGOTTEN] = 0,
};
#undef TO

/** @name Ops of a peer that cannot be reached any more */
/** @{ */
/** Where the peer has closed its port in good order, its users will be told, as somebody wants something of it. */
static dn_status_t dn_gone_answer(dn_peer_t *hot)
{
    /* Relaxed: only the device looks, later, and finds nothing else by it. A peer that has not closed does not mind. */
    dn_store_relaxed_u32(&((dn_peer_base_t *) hot)->wanted, 1);
    return DN_ERR_UNREACH;
}

static dn_status_t dn_gone_botf(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                                size_t head_len, const void *body, size_t body_len)
{
    (void) channel;
    (void) tag;
    (void) head;
    (void) head_len;
    (void) body;
    (void) body_len;
    return dn_gone_answer(peer);
}

/** dn_botf_lend() where the device has no entry of its own, or the peer is gone: the caller then uses dn_botf(), which tells. */
static dn_status_t dn_no_lend(dn_peer_t *peer, unsigned channel, unsigned tag, const void *head,
                              size_t head_len, const void *body, size_t body_len, dn_comp_t *comp)
{
    (void) peer;
    (void) channel;
    (void) tag;
    (void) head;
    (void) head_len;
    (void) body;
    (void) body_len;
    (void) comp;
    return DN_ERR_UNSUPPORTED;
}

static dn_status_t dn_gone_reserve(dn_peer_t *peer, size_t len, dn_window_t *window)
{
    (void) len;
    (void) window;
    return dn_gone_answer(peer);
}

static void dn_gone_kick(dn_peer_t *peer, dn_window_t *window, unsigned channel, unsigned tag, size_t len)
{
    (void) peer;
    (void) window;
    (void) channel;
    (void) tag;
    (void) len;
}

static dn_status_t dn_gone_aotf(dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    (void) off;
    (void) value;
    (void) size;
    return dn_gone_answer(peer);
}

static dn_status_t dn_gone_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len,
                                     uint64_t flag)
{
    (void) off;
    (void) data;
    (void) len;
    (void) flag;
    return dn_gone_answer(peer);
}

static dn_status_t dn_gone_transfer(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    (void) xfer;
    return dn_gone_answer(peer);
}

static dn_status_t dn_gone_atomic(dn_peer_t *peer, const dn_amo_t *amo)
{
    (void) amo;
    return dn_gone_answer(peer);
}

/** dn_fence() of a peer that is gone. It does not end before all callers have been told whose memory the peer's process may still write. */
static dn_status_t dn_gone_fence(dn_peer_t *peer)
{
    return 0 != dn_load_acquire_u32(&((dn_peer_base_t *) peer)->outstanding) ? DN_INPROGRESS : DN_ERR_UNREACH;
}

/** dn_peek() where the device has no entry of its own, or the peer is gone. */
static dn_status_t dn_no_peek(dn_peer_t *peer, unsigned channel, unsigned looks, dn_message_t *message)
{
    (void) peer;
    (void) channel;
    (void) looks;
    (void) message;
    return DN_ERR_UNSUPPORTED;
}

static void dn_no_wake(dn_peer_t *peer)
{
    (void) peer;
}

static dn_peer_base_t dn_gone = {
    .hot.ops =
        {
            .botf = dn_gone_botf,
            .lend = dn_no_lend,
            .reserve = dn_gone_reserve,
            .kick = dn_gone_kick,
            .aotf = dn_gone_aotf,
            .aotf_line = dn_gone_aotf_line,
            .push = dn_gone_transfer,
            .pull = dn_gone_transfer,
            .atomic = dn_gone_atomic,
            .fence = dn_gone_fence,
            .peek = dn_no_peek,
            .wake = dn_no_wake,
        },
    .life = DN_PEER_LOST,
};

dn_peer_t *dn_peer_nobody(void)
{
    return &dn_gone.hot;
}
/** @} */

/** @name Transfers by the device's entry, or else by the core processor: the arguments are checked here */
/** @{ */
typedef dn_status_t (*dn_peer_transfer_fn_t)(dn_peer_t *hot, const dn_xfer_t *xfer);

static inline dn_status_t dn_peer_transfer(dn_peer_t *hot, const dn_xfer_t *xfer, int write,
                                           dn_peer_transfer_fn_t device)
{
    dn_status_t status = dn_xfer_check(xfer, write, ((dn_peer_base_t *) hot)->llcm_len);

    if (DN_OK == status) {
        status = NULL == device ? DN_ERR_UNSUPPORTED : device(hot, xfer);
    }
    if (DN_ERR_UNSUPPORTED != status) {
        return status;
    }
    return write ? dn_core_push(hot, xfer) : dn_core_pull(hot, xfer);
}

static dn_status_t dn_peer_push(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    return dn_peer_transfer(hot, xfer, 1, ((dn_peer_base_t *) hot)->ops.push);
}

static dn_status_t dn_peer_pull(dn_peer_t *hot, const dn_xfer_t *xfer)
{
    return dn_peer_transfer(hot, xfer, 0, ((dn_peer_base_t *) hot)->ops.pull);
}

static inline dn_status_t dn_peer_operate(dn_peer_t *hot, const dn_amo_t *amo,
                                          dn_status_t (*device)(dn_peer_t *hot, const dn_amo_t *amo))
{
    dn_status_t status = dn_amo_check(amo);

    if (DN_OK == status) {
        status = NULL == device ? DN_ERR_UNSUPPORTED : device(hot, amo);
    }
    return DN_ERR_UNSUPPORTED != status ? status : dn_core_atomic(hot, amo);
}

static dn_status_t dn_peer_atomic(dn_peer_t *hot, const dn_amo_t *amo)
{
    return dn_peer_operate(hot, amo, ((dn_peer_base_t *) hot)->ops.atomic);
}

/** dn_atomics() by one message. */
static dn_status_t dn_peer_operate_all(dn_peer_t *hot, const dn_amo_t *amo, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const dn_status_t status = dn_amo_check(&amo[i]);

        if (DN_OK != status) {
            return status;
        }
    }
    return dn_core_atomics(hot, amo, n);
}

dn_status_t dn_atomics(dn_peer_t *peer, const dn_amo_t *amo, size_t n, size_t *started_p)
{
    *started_p = 0;
    if (0 == n || DN_ATOMICS_MAX < n) {
        return DN_ERR_PARAM;
    }
    /* A peer that is gone, or has faults, has another function. */
    if (dn_peer_atomic == DN_PEER_OP(peer, atomic) && NULL == ((const dn_peer_base_t *) peer)->ops.atomic) {
        const dn_status_t status = dn_peer_operate_all(peer, amo, n);

        *started_p = DN_INPROGRESS == status ? n : 0;
        return DN_INPROGRESS == status ? DN_OK : status;
    }
    for (; *started_p < n; (*started_p)++) {
        const dn_status_t status = dn_atomic(peer, &amo[*started_p]);

        if (DN_OK == status) {
            amo[*started_p].comp->fn(amo[*started_p].comp, DN_OK);
        } else if (DN_INPROGRESS != status) {
            return status;
        }
    }
    return DN_OK;
}
/** @} */

/** Have callers use these functions from now on. Each entry is one store, since callers may call meanwhile: see dn_inline.h. */
static void dn_peer_wear(dn_peer_t *hot, const dn_peer_ops_t *ops)
{
    dn_store_release(&hot->ops.botf, ops->botf);
    dn_store_release(&hot->ops.lend, ops->lend);
    dn_store_release(&hot->ops.reserve, ops->reserve);
    dn_store_release(&hot->ops.kick, ops->kick);
    dn_store_release(&hot->ops.aotf, ops->aotf);
    dn_store_release(&hot->ops.push, ops->push);
    dn_store_release(&hot->ops.pull, ops->pull);
    dn_store_release(&hot->ops.atomic, ops->atomic);
    dn_store_release(&hot->ops.fence, ops->fence);
    dn_store_release(&hot->ops.peek, ops->peek);
    dn_store_release(&hot->ops.take, ops->take);
    dn_store_release(&hot->ops.aotf_line, ops->aotf_line);
    dn_store_release(&hot->ops.wake, ops->wake);
}

/** Have all calls of a peer return DN_ERR_UNREACH from now on. */
static void dn_peer_undress(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_peer_ops_t ops = dn_gone.hot.ops;

    if (NULL != peer->fault) {
        dn_fault_detach(port->fault, peer);
    }
    if (NULL == port->fault && NULL != peer->ops.kick) {
        /* Another thread may have reserved a window and must be able to end it. */
        ops.kick = peer->ops.kick;
    }
    ops.take = peer->ops.take;
    dn_peer_wear(&peer->hot, &ops);
}

void dn_port_peer_closed(dn_port_t *port, dn_peer_base_t *peer)
{
    if (0 == peer->closed && DN_PEER_LEFT > peer->life) {
        dn_peer_undress(port, peer);
        /* Nothing is wanted of the peer by these. */
        dn_store_release(&peer->hot.ops.fence, peer->ops.fence);
        dn_store_release(&peer->hot.ops.peek, NULL != peer->ops.peek ? peer->ops.peek : dn_no_peek);
        peer->closed = 1;
    }
}

/** Set the functions that callers use, from the entries of the device, the core processor and the fault wrapper. */
static void dn_peer_dress(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_peer_ops_t ops = peer->ops;

    peer->closed = 0;
    dn_store_relaxed_u32(&peer->wanted, 0);
    /* Of what an earlier connection has left. */
    dn_store_relaxed_u32(&peer->failed, DN_OK);
    if (NULL != peer->fault) {
        dn_peer_undress(port, peer);
    }
    ops.lend = NULL != peer->ops.lend ? peer->ops.lend : dn_no_lend;
    ops.aotf_line = NULL != peer->ops.aotf_line ? peer->ops.aotf_line : dn_core_aotf_line;
    ops.push = dn_peer_push;
    ops.pull = dn_peer_pull;
    ops.atomic = dn_peer_atomic;
    ops.peek = NULL != peer->ops.peek ? peer->ops.peek : dn_no_peek;
    ops.wake = NULL != peer->ops.wake ? peer->ops.wake : dn_no_wake;
    dn_peer_wear(&peer->hot, &ops);
    if (NULL == port->fault) {
        return;
    }
    if (DN_OK != dn_fault_attach(port->fault, peer)) {
        dn_log_error("no memory to inject faults towards PID %" PRIu32, peer->pid);
    }
    /* Faults happen where messages are sent. */
    peer->hot.ops.peek = ops.peek;
    peer->hot.ops.take = ops.take;
    peer->hot.ops.wake = ops.wake;
}

dn_peer_base_t *dn_port_peers(dn_port_t *port)
{
    return port->peers;
}

dn_peer_base_t *dn_port_find_peer(dn_port_t *port, const uint64_t nonce[2])
{
    dn_peer_base_t *peer = port->peers;
    while (NULL != peer && 0 != memcmp(peer->nonce, nonce, sizeof(peer->nonce))) {
        peer = peer->next;
    }
    return peer;
}

/** Enter a new peer into the port, or note that the port is now connected to a peer that it knew. A peer that has left already stays LOST. */
static void dn_port_enter(dn_port_t *port, dn_peer_base_t *peer, enum dn_peer_life life)
{
    if (NULL == dn_port_find_peer(port, peer->nonce)) {
        peer->next = port->peers;
        port->peers = peer;
    }
    if (DN_PEER_LOST == peer->life) {
        dn_peer_undress(port, peer);
    } else {
        dn_peer_turn(peer, life);
        dn_peer_dress(port, peer);
    }
    if (dn_peer_is_doubted(peer)) {
        /* Since before the port knew it. */
        dn_fetch_add_acq_rel(&peer->iface->doubts, 1);
    }
}

void dn_port_adopt(dn_port_t *port, dn_peer_base_t *peer)
{
    dn_port_enter(port, peer, DN_PEER_CAME);
}

int dn_port_return(dn_port_t *port, dn_peer_base_t *peer)
{
    /* A process that has left itself has ended its own operations. */
    if (DN_PEER_LEFT == peer->life && 0 != memcmp(peer->nonce, dn_port_nonce(port), sizeof(peer->nonce))) {
        dn_peer_turn(peer, DN_PEER_CAME);
        dn_peer_dress(port, peer);
    }
    return 0 == peer->closed;
}

/** Tell channels that a peer is lost: all channels, or only those that have set a pointer for the peer (dn_peer_set_user()). */
static void dn_port_tell_lost(dn_port_t *port, dn_peer_base_t *peer, int all)
{
    for (unsigned channel = 0; channel < DN_CHAN_MAX; channel++) {
        if (NULL != port->lost[channel].fn && (all || NULL != peer->hot.user[channel])) {
            port->lost[channel].fn(&peer->hot, port->lost[channel].arg);
        }
    }
}

void dn_port_forget(dn_port_t *port, dn_peer_base_t *peer)
{
    if (0 == peer->connections) {
        dn_port_tell_lost(port, peer, 0);
    }
    dn_peer_retire(peer);
    dn_peer_undress(port, peer);
    dn_core_lost(port, peer);
    dn_core_forget(peer);
    for (dn_peer_base_t **at = &port->peers; NULL != *at; at = &(*at)->next) {
        if (peer == *at) {
            *at = peer->next;
            return;
        }
    }
}

/** Connect by the first device that can reach the peer. */
static dn_status_t dn_port_connect(dn_port_t *port, const void *address, const dn_address_head_t *head,
                                   dn_peer_base_t **peer_p)
{
    const dn_peer_base_t id = {
        .pid = head->pid, .pgid = head->pgid, .nonce = {head->nonce[0], head->nonce[1]}};
    dn_status_t result = DN_ERR_UNSUPPORTED;

    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        const void *part;
        size_t len;
        dn_status_t status = dn_address_find(address, head, iface->device->name, &part, &len);
        if (DN_OK != status) {
            dn_log_error("the address of PID %" PRIu32 " is malformed; refused", head->pid);
            return status;
        }
        if (NULL == part || (NULL != *peer_p && iface != (*peer_p)->iface)) {
            dn_log_answer("%s does not reach PID %" PRIu32 ": %s", iface->device->name, head->pid,
                          NULL == part ? "it has not opened that device" : "it came by another device");
            continue;
        }
        status = iface->device->connect(iface, &id, part, len, peer_p);
        /* A device that lacks memory now still takes what the peer sends by it. With another device at this end, each end would
         * listen where the other does not send. */
        if (DN_OK == status || DN_ERR_NOMEM == status) {
            return status;
        }
        if (DN_ERR_UNSUPPORTED == result || (DN_ERR_UNREACH != status && DN_ERR_UNSUPPORTED != status)) {
            result = status;
        }
    }
    return result;
}

dn_status_t dn_connect(dn_port_t *port, const void *address, size_t len, dn_peer_t **peer_p)
{
    dn_address_head_t head;
    dn_status_t status = dn_address_read(address, len, &head);
    if (DN_OK != status) {
        return status;
    }
    dn_port_lock(port);
    dn_peer_base_t *peer = dn_port_find_peer(port, head.nonce);
    if (!dn_port_admits(port, &head.pgid)) {
        dn_log_error("PID %" PRIu32 " belongs to a process group that was not let in; refused", head.pid);
        status = DN_ERR_ACCESS;
    } else if (NULL != peer && 0 != memcmp(&peer->pgid, &head.pgid, sizeof(peer->pgid))) {
        dn_log_error("PID %" PRIu32 " has the number of a process of another group; refused", head.pid);
        status = DN_ERR_ACCESS;
    } else if (head.first != port->config.first) {
        dn_log_error("PID %" PRIu32 " counts from %" PRIu32 ", this process from %" PRIu32
                     "; set first to the same number in both",
                     head.pid, head.first, port->config.first);
        status = DN_ERR_PARAM;
    } else if (NULL != peer && DN_PEER_LOST <= peer->life) {
        status = DN_ERR_UNREACH;
    } else if (NULL == peer || DN_PEER_CONNECTED != peer->life) {
        status = dn_port_connect(port, address, &head, &peer);
        if (DN_OK == status) {
            dn_port_enter(port, peer, DN_PEER_CONNECTED);
        }
    }
    if (DN_OK == status) {
        peer->connections++;
        *peer_p = &peer->hot;
    }
    dn_port_unlock(port);
    return status;
}

void dn_disconnect(dn_peer_t *hot)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;

    dn_port_lock(port);
    /* The last connection lasts until its operations have been signalled: their completions may call anything. */
    if (1 == peer->connections) {
        if (DN_PEER_CONNECTED == peer->life) {
            dn_peer_turn(peer, DN_PEER_LEFT);
            dn_peer_undress(port, peer);
        }
        dn_core_leave(port, peer);
    }
    if (0 == --peer->connections) {
        memset(peer->hot.user, 0, sizeof(peer->hot.user));
        /* While its users are told of its loss, the device keeps the peer. */
        if (0 == peer->telling) {
            peer->iface->device->disconnect(peer);
        }
    }
    dn_port_unlock(port);
}

dn_status_t dn_port_transfer(dn_peer_base_t *peer, const dn_xfer_t *xfer, int write)
{
    return dn_peer_transfer(&peer->hot, xfer, write, NULL);
}

dn_status_t dn_port_atomic(dn_peer_base_t *peer, const dn_amo_t *amo)
{
    return dn_peer_operate(&peer->hot, amo, NULL);
}

void dn_port_peer_lost(dn_port_t *port, dn_peer_base_t *peer)
{
    const int connected = 0 != peer->connections;

    if (DN_PEER_LOST <= peer->life) {
        return;
    }
    /* A completion may disconnect from the peer, or make progress. The peer stays until the end of this call. */
    peer->telling = 1;
    dn_peer_turn(peer, DN_PEER_LOST);
    (void) dn_cas_acq_rel_u32(&peer->doubt, DN_PEER_TRUSTED, DN_PEER_SUSPECT);
    dn_count(&port->counters.peers_lost, 1);
    dn_peer_undress(port, peer);
    if (NULL != peer->iface->device->lost) {
        peer->iface->device->lost(peer);
    }
    dn_core_lost(port, peer);
    dn_port_tell_lost(port, peer, 1);
    peer->telling = 0;
    if (connected && 0 == peer->connections) {
        peer->iface->device->disconnect(peer);
    }
}

dn_status_t dn_port_look(dn_peer_base_t *peer)
{
    const dn_status_t status = peer->iface->device->check(peer);

    if (DN_OK != status) {
        dn_port_peer_lost(peer->iface->port, peer);
    }
    return status;
}

void dn_peer_doubt(dn_peer_base_t *peer, enum dn_peer_doubt why)
{
    uint32_t before = dn_load_acquire_u32(&peer->doubt);

    while (before < why && !dn_cas_acq_rel_u32(&peer->doubt, before, why)) {
        before = dn_load_acquire_u32(&peer->doubt);
    }
    /* Pairs with the load in dn_port_bury(). */
    dn_fetch_add_acq_rel(&peer->iface->doubts, 1);
}

dn_status_t dn_peer_refused(dn_peer_base_t *peer, uint32_t every)
{
    if (0 != (dn_fetch_add_acq_rel(&peer->refusals, 1) + 1) % every) {
        return DN_ERR_AGAIN;
    }
    if (DN_OK == peer->iface->device->check(peer)) {
        return DN_OK;
    }
    dn_peer_doubt(peer, DN_PEER_SUSPECT);
    return DN_ERR_UNREACH;
}

/** The first peer of a device that is about to be LOST, or NULL. */
static dn_peer_base_t *dn_port_first_doubted(const dn_iface_t *iface)
{
    dn_peer_base_t *peer = iface->port->peers;

    while (NULL != peer
           && (iface != peer->iface || DN_PEER_LOST <= peer->life || !dn_peer_is_doubted(peer))) {
        peer = peer->next;
    }
    return peer;
}

void dn_port_bury(dn_iface_t *iface)
{
    /* Taken off are those that this load counts, whose doubt is seen below. A later one is for the next look. */
    dn_fetch_add_acq_rel(&iface->doubts, 0 - dn_load_acquire_u32(&iface->doubts));
    for (dn_peer_base_t *peer = dn_port_first_doubted(iface); NULL != peer;
         peer = dn_port_first_doubted(iface)) {
        /* Completions that it signals may change the list. */
        dn_port_peer_lost(iface->port, peer);
    }
}

dn_status_t dn_lost_set(dn_port_t *port, unsigned channel, dn_lost_fn_t fn, void *arg)
{
    if (DN_CHAN_DEVICE >= channel || DN_CHAN_MAX <= channel) {
        dn_log_error("channel %u cannot be told of lost peers; use %d to %d", channel, DN_CHAN_BTL,
                     DN_CHAN_MAX - 1);
        return DN_ERR_PARAM;
    }
    dn_port_lock(port);
    port->lost[channel] = (dn_lost_t){fn, arg};
    dn_port_unlock(port);
    return DN_OK;
}

static unsigned dn_peer_caps(const dn_peer_base_t *peer)
{
    unsigned caps = 0;

    caps |= NULL != peer->ops.push ? DN_CAP_PUSH : 0;
    caps |= NULL != peer->ops.pull ? DN_CAP_PULL : 0;
    caps |= NULL != peer->ops.atomic ? DN_CAP_ATOMIC : 0;
    caps |= NULL != peer->iface->device->map ? DN_CAP_MAP : 0;
    return caps;
}

void dn_peer_attr(const dn_peer_t *hot, dn_peer_attr_t *attr)
{
    const dn_peer_base_t *peer = (const dn_peer_base_t *) hot;
    const dn_device_t *device = peer->iface->device;

    *attr = (dn_peer_attr_t){
        .device = device->name,
        .provider = peer->iface->provider,
        .pgid = peer->pgid,
        .pid = peer->pid,
        .botf_inline = peer->botf_inline,
        .botf_max = peer->botf_max,
        .llcm_len = peer->llcm_len,
        .direct = NULL != device->direct && device->direct(peer),
        .sockets = peer->iface->sockets,
        .caps = dn_peer_caps(peer),
    };
}

void dn_peer_set_user(dn_peer_t *peer, unsigned channel, void *user)
{
    if (DN_CHAN_MAX > channel) {
        dn_store_relaxed(&peer->user[channel], user);
    }
}

uint32_t dn_peer_moves(const dn_peer_t *hot)
{
    return dn_load_relaxed_u32(&((const dn_peer_base_t *) hot)->core.moves);
}

dn_status_t dn_peer_check(dn_peer_t *hot)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_port_t *port = peer->iface->port;

    dn_port_lock(port);
    const dn_status_t status =
        DN_PEER_LOST == peer->life || DN_OK != dn_port_look(peer) ? DN_ERR_UNREACH : DN_OK;
    dn_port_unlock(port);
    return status;
}

dn_status_t dn_fence(dn_peer_t *peer)
{
    return DN_PEER_OP(peer, fence)(peer);
}

dn_status_t dn_flush(dn_peer_t *hot)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;

    dn_progress(peer->iface->port);
    const dn_status_t status = dn_fence(hot);
    if (DN_OK != status) {
        return status;
    }
    /* The fence has found the operations ended by an acquire: what was stored before their ends is seen by relaxed loads. An operation
     * may have ended because the peer is gone, although the fence of the device does not say so yet. */
    if (dn_peer_is_doubted(peer) || 0 != dn_load_relaxed_u32(&peer->wanted)) {
        return DN_ERR_UNREACH;
    }
    if (DN_OK == dn_load_relaxed_u32(&peer->failed)) {
        return DN_OK;
    }
    return (dn_status_t) dn_swap_acq_rel(&peer->failed, DN_OK);
}
