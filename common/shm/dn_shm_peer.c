/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

/** Claim a slot in a peer's mapping; its number, or -1: all are taken. */
static int64_t dn_shm_claim_slot(const dn_shm_map_t *map, uint32_t max_peers)
{
    for (uint32_t i = 0; i < max_peers; i++) {
        if (DN_SHM_FREE == dn_load_acquire_u32(&map->slot[i].state)
            && dn_cas_u32(&map->slot[i].state, DN_SHM_FREE, DN_SHM_CLAIMED)) {
            return i;
        }
    }
    return -1;
}

/** Has every process that its owner expects on this host a slot in this mapping? */
static int dn_shm_complete(const dn_shm_map_t *map)
{
    const dn_shm_header_t *header = map->header;
    uint32_t others = 0;

    for (uint32_t i = 0; i < map->max_peers; i++) {
        const uint32_t state = dn_load_acquire_u32(&map->slot[i].state);
        others += (DN_SHM_READY == state || DN_SHM_CLOSED == state)
                  && 0 != memcmp(map->slot[i].nonce, header->nonce, sizeof(header->nonce));
    }
    return 0 != header->nlocal && others + 1 >= header->nlocal;
}

static const dn_peer_ops_t dn_shm_ops = {
    .botf = dn_shm_botf,
    .reserve = dn_shm_reserve,
    .kick = dn_shm_kick,
    .peek = dn_shm_peek,
    .take = dn_shm_take_peeked,
    .aotf = dn_shm_aotf,
    .aotf_line = dn_shm_aotf_line,
    .push = dn_shm_push,
    .pull = dn_shm_pull_op,
    .atomic = dn_shm_atomic,
    .fence = dn_shm_fence,
    .wake = dn_shm_wake,
};

/** Has room for nothing: the ring of a peer to whom the way is not open. */
static dn_ring_t dn_shm_no_ring;

dn_status_t dn_shm_open_tx(dn_shm_peer_t *peer, const char *path)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;
    const dn_shm_header_t *mine = shm->map.header;
    dn_shm_header_t *theirs = peer->map.header;

    if (0 != dn_load_acquire_u32(&theirs->closed)) {
        return DN_ERR_UNREACH;
    }
    const int64_t index = dn_shm_claim_slot(&peer->map, peer->map.max_peers);
    if (0 > index) {
        /* The owner looks at its slots: those whose senders are gone are free at the next try. */
        dn_fetch_add_u32(&theirs->arrivals, 1);
        dn_log_error("all %" PRIu32 " slots of PID %" PRIu32 " are taken; raise max_peers there",
                     peer->map.max_peers, peer->base.pid);
        return DN_ERR_NOMEM;
    }
    dn_shm_slot_t *slot = &peer->map.slot[index];
    const dn_status_t status = dn_shm_reserve_ring(peer, path, (uint32_t) index);
    if (DN_OK != status) {
        dn_store_release_u32(&slot->state, DN_SHM_FREE);
        return status;
    }
    slot->pid = mine->pid;
    slot->os_pid = mine->os_pid;
    slot->fd = shm->fd;
    slot->start_time = mine->start_time;
    memcpy(slot->nonce, mine->nonce, sizeof(slot->nonce));
    slot->pgid = mine->pgid;
    slot->bytes = mine->bytes;

    dn_ring_t *ring = (dn_ring_t *) (peer->map.rings + (size_t) index * peer->map.ring_stride);
    if (!dn_shm_lock_tx(peer)) {
        dn_store_release_u32(&slot->state, DN_SHM_FREE);
        return DN_ERR_UNREACH;
    }
    dn_line_tx_init(&peer->tx, ring, peer->map.ring_lines);
    peer->slot = (uint32_t) index;
    peer->refusals = 0;
    peer->staging = 0;
    peer->tx_open = 1;
    dn_shm_unlock_tx(peer);
    /* The owner reads the slot's fields after it sees READY, and looks for READY after arrivals moved. */
    dn_store_release_u32(&slot->state, DN_SHM_READY);
    dn_fetch_add_u32(&theirs->arrivals, 1);
    if ('\0' != path[0] && dn_shm_complete(&peer->map)) {
        /* The owner does so too; but it may be killed before it looks. */
        unlink(path);
    }
    return DN_OK;
}

/** Stop being a sender; the owner drains what is in the ring. */
static void dn_shm_close_tx(dn_shm_peer_t *peer)
{
    if (peer->tx_open) {
        /* Not held: the peer was lost and is about to be freed, so that nobody sends any more. */
        const int held = dn_shm_lock_tx(peer);
        peer->tx_open = 0;
        dn_line_tx_init(&peer->tx, &dn_shm_no_ring, 1);
        if (held) {
            dn_shm_unlock_tx(peer);
        }
        dn_store_release_u32(&peer->map.slot[peer->slot].state, DN_SHM_CLOSED);
        dn_fetch_add_u32(&peer->map.header->arrivals, 1);
    }
}

/** A peer of zeros, to be freed with free(). */
static dn_shm_peer_t *dn_shm_alloc_peer(void)
{
    dn_shm_peer_t *peer = aligned_alloc(_Alignof(dn_shm_peer_t), sizeof(*peer));
    if (NULL != peer) {
        memset(peer, 0, sizeof(*peer));
    }
    return peer;
}

/** Map a process and make it a peer; dn_shm_open_tx() comes when there is something to send. */
static dn_status_t dn_shm_make_peer(dn_shm_t *shm, const dn_shm_where_t *where, const dn_peer_base_t *id,
                                    dn_shm_peer_t **peer_p)
{
    dn_shm_peer_t *peer = dn_shm_alloc_peer();
    if (NULL == peer) {
        return DN_ERR_NOMEM;
    }
    dn_status_t status = dn_shm_attach(where, id, &peer->map);
    if (DN_OK != status) {
        goto err_free;
    }
    peer->base.iface = &shm->iface;
    peer->base.pid = id->pid;
    peer->base.pgid = id->pgid;
    memcpy(peer->base.nonce, where->nonce, sizeof(peer->base.nonce));
    peer->base.llcm_len = peer->map.llcm_bytes;
    peer->base.botf_inline = DN_LINE_INLINE;
    peer->base.botf_max = dn_line_max(peer->map.ring_lines);
    peer->line_max =
        shm->config.stage_min < peer->base.botf_max ? shm->config.stage_min : peer->base.botf_max;
    peer->threads = shm->threads;
    peer->os_pid = where->os_pid;
    peer->fd = where->fd;
    peer->start_time = where->start_time;
    peer->self = 0 == memcmp(where->nonce, shm->map.header->nonce, sizeof(where->nonce));
    dn_line_tx_init(&peer->tx, &dn_shm_no_ring, 1);
    peer->base.ops = dn_shm_ops;
    peer->cma = shm->config.cma && (peer->self || dn_shm_cma_probe(peer));
    peer->help_min = peer->cma && 0 != shm->config.help_min ? shm->config.help_min : UINT64_MAX;
    peer->contends = !peer->self && dn_cpumask_within(&peer->map.units, &shm->map.units);
    shm->contenders += (uint32_t) peer->contends;
    *peer_p = peer;
    return DN_OK;

err_free:
    free(peer);
    return status;
}

/** Poll the ring of slot @p index for this peer from now on. */
static dn_status_t dn_shm_attach_rx(dn_shm_t *shm, dn_shm_peer_t *peer, uint32_t index)
{
    dn_shm_rx_t *rx = aligned_alloc(DN_LINE_BYTES, sizeof(*rx));
    if (NULL == rx) {
        return DN_ERR_NOMEM;
    }
    dn_ring_t *ring = (dn_ring_t *) (shm->map.rings + (size_t) index * shm->map.ring_stride);
    dn_line_rx_init(&rx->line, ring, shm->config.ring_lines);
    rx->peer = peer;
    rx->len_limit = dn_line_max(shm->config.ring_lines) + 1;
    rx->slot = index;
    if (NULL != peer->map.header) {
        dn_store_release_u32(&ring->attached, 1);
    }
    shm->rx[shm->nrx++] = rx;
    peer->rx = rx;
    return DN_OK;
}

/** Give a slot, and its ring as zeros, to the next sender. Nobody writes there any more. */
static void dn_shm_free_slot(dn_shm_t *shm, uint32_t index)
{
    uint8_t *ring = shm->map.rings + (size_t) index * shm->map.ring_stride;
    const off_t off = (off_t) (ring - (uint8_t *) shm->map.header);

    if (0
        != fallocate(shm->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off,
                     (off_t) shm->map.ring_stride)) {
        memset(ring, 0, shm->map.ring_stride);
    }
    shm->refused[index] = 0;
    dn_store_release_u32(&shm->map.slot[index].state, DN_SHM_FREE);
}

/** Give a slot back when its ring is read no more, unless its sender may still write there. */
static void dn_shm_leave_slot(dn_shm_t *shm, uint32_t index)
{
    const dn_shm_slot_t *slot = &shm->map.slot[index];

    if (DN_SHM_CLOSED != dn_load_acquire_u32(&slot->state) && !dn_shm_gone(slot->os_pid, slot->start_time)) {
        shm->refused[index] = DN_SHM_SPENT;
    } else {
        dn_shm_free_slot(shm, index);
    }
}

/** Stop polling a ring; give its memory and its slot back. */
static void dn_shm_detach_rx(dn_shm_t *shm, dn_shm_rx_t *rx)
{
    for (uint32_t i = 0; i < shm->nrx; i++) {
        if (rx == shm->rx[i]) {
            shm->rx[i] = shm->rx[--shm->nrx];
            break;
        }
    }
    for (uint32_t i = 0; i < shm->nhot; i++) {
        if (rx == shm->hot[i].rx) {
            shm->hot[i] = shm->hot[--shm->nhot];
            break;
        }
    }
    dn_shm_leave_slot(shm, rx->slot);
    rx->peer->rx = NULL;
    free(rx);
}

static void dn_shm_free_peer(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    if (NULL != peer->rx) {
        dn_shm_detach_rx(shm, peer->rx);
    }
    dn_shm_close_tx(peer);
    dn_shm_stage_leave(peer);
    shm->contenders -= (uint32_t) peer->contends;
    dn_shm_help_end(shm, peer, 0);
    dn_shm_drop_windows(peer);
    dn_shm_detach(&peer->map);
    free(peer);
}

/** A sender that has left already: only what lies in its ring is to be had. */
static dn_shm_peer_t *dn_shm_make_orphan(dn_shm_t *shm, const dn_shm_slot_t *slot)
{
    dn_shm_peer_t *peer = dn_shm_alloc_peer();
    if (NULL == peer) {
        return NULL;
    }
    peer->base.iface = &shm->iface;
    peer->base.pid = slot->pid;
    peer->base.pgid = slot->pgid;
    memcpy(peer->base.nonce, slot->nonce, sizeof(peer->base.nonce));
    peer->base.lost = 1;
    return peer;
}

/** A sender that we do not know yet: attach to its own mapping if its group may talk to us. */
static dn_shm_peer_t *dn_shm_meet(dn_shm_t *shm, const dn_shm_slot_t *slot)
{
    dn_shm_where_t where = {
        .start_time = slot->start_time, .bytes = slot->bytes, .os_pid = slot->os_pid, .fd = slot->fd};
    const dn_peer_base_t id = {.pid = slot->pid, .pgid = slot->pgid};
    dn_shm_peer_t *peer = NULL;

    memcpy(where.nonce, slot->nonce, sizeof(where.nonce));
    if (!dn_port_admits(shm->iface.port, &id.pgid)) {
        return NULL;
    }
    const dn_status_t status =
        DN_SHM_CLOSED == slot->state ? DN_ERR_UNREACH : dn_shm_make_peer(shm, &where, &id, &peer);
    if (DN_ERR_UNREACH == status) {
        peer = dn_shm_make_orphan(shm, slot);
    }
    /* Any other error: it lives, and may still be found by the address that dn_connect() gets. */
    if (NULL != peer) {
        dn_port_adopt(shm->iface.port, &peer->base);
    }
    return peer;
}

/** Let the next progress look at the slots whether something arrived or not. */
static void dn_shm_look_soon(dn_shm_t *shm)
{
    shm->seen = dn_load_acquire_u32(&shm->map.header->arrivals) - 1;
}

/** One slot that is READY or CLOSED. */
static void dn_shm_look_at(dn_shm_t *shm, uint32_t index, uint32_t state, int again)
{
    dn_shm_slot_t slot = shm->map.slot[index];
    slot.state = state;
    if (DN_SHM_SPENT == shm->refused[index]) {
        if (DN_SHM_CLOSED == state || dn_shm_gone(slot.os_pid, slot.start_time)) {
            dn_shm_free_slot(shm, index);
        }
        return;
    }
    dn_shm_peer_t *peer = (dn_shm_peer_t *) dn_port_find_peer(shm->iface.port, slot.nonce);
    if (NULL == peer && (again || !shm->refused[index])) {
        peer = dn_shm_meet(shm, &slot);
        shm->refused[index] = NULL == peer;
    }
    if (NULL == peer) {
        return;
    }
    if (NULL == peer->rx && DN_OK != dn_shm_attach_rx(shm, peer, index)) {
        dn_shm_look_soon(shm);
        return;
    }
    if (index == peer->rx->slot && (DN_SHM_CLOSED == state || NULL == peer->map.header)) {
        peer->closing = 1;
        shm->closing = 1;
    }
}

/** Slots grow scarce: those whose senders ended without a word come back. */
static void dn_shm_look_for_dead(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->nrx; i++) {
        dn_shm_peer_t *peer = shm->rx[i]->peer;
        if (!peer->closing && !peer->self && DN_OK != dn_shm_check(&peer->base)) {
            dn_port_peer_lost(shm->iface.port, &peer->base);
            peer->closing = 1;
            shm->closing = 1;
        }
    }
}

static void dn_shm_look_for(dn_shm_t *shm, uint32_t state, int again)
{
    for (uint32_t i = 0; i < shm->config.max_peers; i++) {
        if (state == dn_load_acquire_u32(&shm->map.slot[i].state)) {
            dn_shm_look_at(shm, i, state, again);
        }
    }
}

void dn_shm_look(dn_shm_t *shm, int again)
{
    /* Pairs with the count in dn_shm_open_tx: a slot made READY before the count is seen here. */
    shm->seen = dn_load_acquire_u32(&shm->map.header->arrivals);
    /* A sender that left and came back has two slots: what it sent first is read first. */
    dn_shm_look_for(shm, DN_SHM_CLOSED, again);
    dn_shm_look_for(shm, DN_SHM_READY, again);
    if (shm->nrx > shm->config.max_peers / 2) {
        dn_shm_look_for_dead(shm);
    }
    if ('\0' != shm->path[0] && dn_shm_complete(&shm->map)) {
        dn_shm_unlink(shm);
    }
}

void dn_shm_bury(dn_shm_t *shm)
{
    dn_store_release_u32(&shm->suspects, 0);
    for (dn_peer_base_t *base = dn_port_peers(shm->iface.port), *next; NULL != base; base = next) {
        next = base->next;
        if (&shm->iface == base->iface && 0 != dn_load_acquire_u32(&((dn_shm_peer_t *) base)->suspect)) {
            dn_port_peer_lost(shm->iface.port, base);
        }
    }
}

void dn_shm_reap(dn_shm_t *shm)
{
    int left = 0;

    shm->closing = 0;
    for (uint32_t i = 0; i < shm->nrx;) {
        dn_shm_peer_t *peer = shm->rx[i]->peer;
        dn_line_msg_t msg;
        const int waits = 0 != peer->rx->len_limit && dn_line_peek(&peer->rx->line, &msg);
        if (!peer->closing || 0 != peer->rx->line.depth || waits) {
            shm->closing |= peer->closing;
            i++;
            continue;
        }
        peer->closing = 0;
        left = 1;
        dn_shm_detach_rx(shm, peer->rx);
        if (0 == peer->base.connections) {
            dn_port_forget(shm->iface.port, &peer->base);
            dn_shm_free_peer(shm, peer);
        }
    }
    if (left) {
        /* Its next connection may wait in another slot. */
        dn_shm_look(shm, 0);
    }
}

dn_status_t dn_shm_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                           dn_peer_base_t **peer_p)
{
    dn_shm_t *shm = (dn_shm_t *) iface;
    dn_shm_where_t where;
    dn_shm_peer_t *peer = NULL;

    if (sizeof(where) == len) {
        memcpy(&where, address, sizeof(where));
    }
    if (sizeof(where) != len || 0 != memcmp(where.nonce, id->nonce, sizeof(where.nonce))) {
        dn_log_error("the shm part of the address of PID %" PRIu32 " is malformed; refused", id->pid);
        return DN_ERR_PROTO;
    }
    where.path[DN_SHM_PATH_MAX - 1] = '\0';
    if (0 != memcmp(where.host, shm->host, sizeof(where.host))) {
        dn_log_answer("shm does not reach PID %" PRIu32
                      ": it is on another host, or in another PID or IPC namespace",
                      id->pid);
        return DN_ERR_UNREACH;
    }
    if (where.user_ns != shm->user_ns && (where.memfd || shm->memfd)) {
        /* The kernel hides one from the other: both must say no, or one would send and never be heard. */
        dn_log_answer("shm does not reach PID %" PRIu32 ": it is in another user namespace", id->pid);
        return DN_ERR_UNREACH;
    }
    if (where.uid != shm->map.header->uid) {
        dn_log_error("PID %" PRIu32 " belongs to user %" PRIu32 ", this process to user %" PRIu32 "; refused",
                     id->pid, where.uid, shm->map.header->uid);
        return DN_ERR_ACCESS;
    }
    if (!dn_shm_path_valid(shm, &where)) {
        dn_log_error("the address of PID %" PRIu32 " names a file that is not one of dimmnet; refused",
                     id->pid);
        return DN_ERR_PROTO;
    }
    /* Known already: it came by itself, or was disconnected while it still sent to us. */
    dn_status_t status = DN_OK;
    if (NULL != *peer_p) {
        peer = (dn_shm_peer_t *) *peer_p;
    } else {
        status = dn_shm_make_peer(shm, &where, id, &peer);
        status = DN_ERR_UNSUPPORTED == status ? DN_ERR_UNREACH : status;
    }
    if (DN_OK == status && !peer->tx_open) {
        status = dn_shm_open_tx(peer, where.path);
        if (DN_OK != status && NULL == *peer_p) {
            dn_shm_free_peer(shm, peer);
        }
    }
    if (DN_OK == status) {
        *peer_p = &peer->base;
        if (NULL == peer->rx) {
            dn_shm_look_soon(shm);
        }
    } else if (DN_ERR_UNREACH == status) {
        dn_log_answer("shm does not reach PID %" PRIu32
                      ": it is gone, or its memory cannot be mapped from here",
                      id->pid);
    }
    return status;
}

void dn_shm_disconnect(dn_peer_base_t *base)
{
    dn_shm_t *shm = (dn_shm_t *) base->iface;
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;

    if (NULL != peer->rx && !base->lost) {
        dn_shm_close_tx(peer);
        return;
    }
    dn_port_forget(shm->iface.port, base);
    dn_shm_free_peer(shm, peer);
}

void dn_shm_release(dn_peer_base_t *base)
{
    dn_shm_free_peer((dn_shm_t *) base->iface, (dn_shm_peer_t *) base);
}

void dn_shm_lost(dn_peer_base_t *base)
{
    dn_shm_t *shm = (dn_shm_t *) base->iface;
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;

    dn_store_release_u32(&peer->lost, 1);
    dn_shm_help_end(shm, peer, 1);
    if (NULL != peer->rx && DN_OK != dn_shm_check(base)) {
        /* Nobody writes into its ring any more: as if it had closed it. */
        peer->closing = 1;
        shm->closing = 1;
    }
}

dn_status_t dn_shm_check(dn_peer_base_t *base)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;

    if (0 != dn_load_acquire_u32(&peer->map.header->closed)) {
        return DN_ERR_UNREACH;
    }
    return dn_shm_gone(peer->os_pid, peer->start_time) ? DN_ERR_UNREACH : DN_OK;
}
