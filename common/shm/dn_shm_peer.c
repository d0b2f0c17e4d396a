/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_shm_file.h"

static const dn_peer_ops_t dn_shm_ops = {
    .botf = dn_shm_botf,
    .reserve = dn_shm_reserve,
    .kick = dn_shm_kick,
    .peek = dn_shm_peek,
    .take = dn_shm_take,
    .aotf = dn_shm_aotf,
    .aotf_line = dn_shm_aotf_line,
    .push = dn_shm_push,
    .pull = dn_shm_pull_op,
    .atomic = dn_shm_atomic,
    .fence = dn_shm_fence,
    .wake = dn_shm_wake,
};

/** Allocate a peer of zeros. The caller frees it by free(). */
static dn_shm_peer_t *dn_shm_alloc_peer(void)
{
    dn_shm_peer_t *peer = aligned_alloc(_Alignof(dn_shm_peer_t), sizeof(*peer));
    if (NULL == peer) {
        dn_log_error("no memory for a peer of %zu bytes; free some", sizeof(*peer));
    } else {
        memset(peer, 0, sizeof(*peer));
    }
    return peer;
}

/** Map a process and make it a peer. dn_shm_open_tx() is called later, when there is a message to send. */
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
    peer->process.os_pid = where->os_pid;
    peer->process.fd = where->fd;
    peer->process.start_time = where->start_time;
    peer->self = 0 == memcmp(where->nonce, shm->map.header->nonce, sizeof(where->nonce));
    dn_shm_shut_tx(peer);
    peer->base.ops = dn_shm_ops;
    peer->cma = shm->config.cma && (peer->self || dn_shm_cma_probe(peer));
    if (shm->config.cma && !peer->cma) {
        dn_log_answer("the kernel does not let this process read the memory of PID %" PRIu32
                      " (process %" PRIu32 "): transfers go by messages, without CMA",
                      id->pid, peer->process.os_pid);
    }
    peer->help_min = peer->cma && 0 != shm->config.help_min ? shm->config.help_min : UINT64_MAX;
    peer->contends = !peer->self && dn_cpumask_within(&peer->map.units, &shm->map.units);
    shm->contenders += (uint32_t) peer->contends;
    *peer_p = peer;
    return DN_OK;

err_free:
    free(peer);
    return status;
}

void dn_shm_free_peer(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    if (NULL != peer->rx) {
        dn_shm_detach_rx(shm, peer->rx);
    }
    dn_shm_close_tx(peer);
    dn_shm_stage_leave(peer);
    shm->contenders -= (uint32_t) peer->contends;
    dn_shm_help_end(shm, peer);
    dn_shm_drop_views(peer);
    dn_shm_detach(&peer->map);
    free(peer);
}

void dn_shm_free_copy(dn_shm_peer_t *peer)
{
    free(peer->rx);
    dn_shm_drop_views(peer);
    dn_shm_detach(&peer->map);
    free(peer);
}

/** Make a peer of a sender that has left its slot already. While the sender's port is open, it may come back, and this process may
 * connect to it: it becomes a peer as any other. DN_ERR_UNREACH: its port is closed; only the messages in its ring can be read.
 * DN_ERR_NOMEM: there is no descriptor or memory to find this out. */
static dn_status_t dn_shm_make_parted(dn_shm_t *shm, const dn_shm_where_t *where, const dn_peer_base_t *id,
                                      dn_shm_peer_t **peer_p)
{
    /* Where its port has closed, its descriptor may be that of any other file. */
    const int muted = dn_log_mute(1);
    const dn_status_t status = dn_shm_make_peer(shm, where, id, peer_p);
    (void) dn_log_mute(muted);
    if (DN_ERR_NOMEM == status) {
        dn_log_error("no descriptor or memory to find PID %" PRIu32 ", which has left; it is tried again",
                     id->pid);
        return status;
    }
    if (DN_OK == status && !dn_shm_has_closed(*peer_p)) {
        return DN_OK;
    }
    if (DN_OK == status) {
        dn_shm_free_peer(shm, *peer_p);
    }
    return DN_ERR_UNREACH;
}

/** Make a peer that stands for a sender whose port is closed. No process can connect to that sender. */
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
    peer->base.life = DN_PEER_LOST;
    return peer;
}

dn_status_t dn_shm_meet(dn_shm_t *shm, const dn_shm_slot_t *slot, dn_shm_peer_t **peer_p)
{
    dn_shm_where_t where = {.start_time = slot->start_time,
                            .bytes = (uint64_t) slot->pages * DN_SHM_PAGE,
                            .os_pid = slot->os_pid,
                            .fd = slot->fd};
    const dn_peer_base_t id = {.pid = slot->pid, .pgid = slot->pgid};
    dn_shm_peer_t *peer = NULL;

    memcpy(where.nonce, slot->nonce, sizeof(where.nonce));
    if (!dn_port_admits(shm->iface.port, &id.pgid)) {
        return DN_ERR_ACCESS;
    }
    dn_status_t status = DN_SHM_CLOSED == slot->state ? dn_shm_make_parted(shm, &where, &id, &peer)
                                                      : dn_shm_make_peer(shm, &where, &id, &peer);
    if (DN_ERR_UNREACH == status && DN_SHM_CLOSED != slot->state
        && !dn_shm_gone(slot->os_pid, slot->start_time)) {
        /* It lives, and may still write: it closes just now, or shows its mapping at the next try. */
        status = DN_ERR_NOMEM;
    }
    if (DN_ERR_UNREACH == status) {
        peer = dn_shm_make_orphan(shm, slot);
        status = NULL == peer ? DN_ERR_NOMEM : DN_OK;
    }
    /* Any other error: it lives, and may still be found by the address that dn_connect() gets. */
    if (DN_OK == status) {
        dn_port_adopt(shm->iface.port, &peer->base);
        *peer_p = peer;
    }
    return status;
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
        return DN_ERR_UNSUPPORTED;
    }
    if (where.user_ns != shm->user_ns && (where.memfd || shm->memfd)) {
        /* The kernel hides one from the other: both must say no, or one would send and never be heard. */
        dn_log_answer("shm does not reach PID %" PRIu32 ": it is in another user namespace", id->pid);
        return DN_ERR_UNSUPPORTED;
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
    if (DN_OK == status && dn_shm_has_closed(peer)) {
        status = DN_ERR_UNREACH;
        if (NULL == *peer_p) {
            dn_shm_free_peer(shm, peer);
        }
    }
    if (DN_OK == status && DN_SHM_TX_SHUT == peer->tx_state) {
        status = dn_shm_open_tx(peer, where.path);
        if (DN_OK == status) {
            dn_shm_stage_meet(shm, peer);
        } else if (NULL == *peer_p) {
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

    if (NULL != peer->rx && (!dn_peer_is_lost(base) || 0 != peer->rx->line.depth)) {
        dn_shm_close_tx(peer);
        if (dn_peer_is_lost(base)) {
            /* Its handler runs: the peer is freed later. */
            dn_shm_close_later(shm, peer);
        }
        return;
    }
    dn_port_forget(shm->iface.port, base);
    dn_shm_free_peer(shm, peer);
}

void dn_shm_release(dn_peer_base_t *base)
{
    dn_shm_t *shm = (dn_shm_t *) base->iface;

    /* All of the port's at once: it waits for one after the other, and for all of them no longer than for one. */
    dn_shm_help_close(shm);
    dn_shm_free_peer(shm, (dn_shm_peer_t *) base);
}

void dn_shm_lost(dn_peer_base_t *base)
{
    dn_shm_t *shm = (dn_shm_t *) base->iface;
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;
    const int over = DN_OK != dn_shm_check(base);

    if (over) {
        /* Its users may wait for a message that lies unread, and for nothing else of the peer. */
        dn_shm_read_last(shm, peer);
    }
    dn_shm_help_lost(shm, peer);
    if (over && NULL != peer->rx) {
        /* Nobody writes into its ring any more: as if it had closed it. */
        dn_shm_close_later(shm, peer);
    }
}

dn_status_t dn_shm_check(dn_peer_base_t *base)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;

    if (dn_shm_has_closed(peer)) {
        return DN_ERR_UNREACH;
    }
    return dn_shm_gone(peer->process.os_pid, peer->process.start_time) ? DN_ERR_UNREACH : DN_OK;
}
