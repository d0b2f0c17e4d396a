/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_slot.c
 * Slots: a sender takes a slot in its receiver's mapping, and leaves the slot. The receiver makes a peer of each sender.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dn_log.h"

/** The arrows of the drawings in dn_shm_int.h. */
const uint32_t dn_shm_tx_turns[] = {
    [DN_SHM_TX_SHUT] = DN_TURN_TO(DN_SHM_TX_RING),
    [DN_SHM_TX_RING] = DN_TURN_TO(DN_SHM_TX_STAGE) | DN_TURN_TO(DN_SHM_TX_SHUT),
    [DN_SHM_TX_STAGE] = DN_TURN_TO(DN_SHM_TX_SHUT),
};

const uint32_t dn_shm_rx_turns[] = {
    [DN_SHM_RX_READS] = DN_TURN_TO(DN_SHM_RX_ENDS),
    [DN_SHM_RX_ENDS] = 0,
};

/** Claim a slot in a peer's mapping. @return its number; -1: all are taken. */
static int64_t dn_shm_claim_slot(const dn_shm_map_t *map, uint32_t claim)
{
    for (uint32_t i = 0; i < map->max_peers; i++) {
        if (DN_SHM_FREE == dn_load_acquire_u32(&map->slot[i].state)
            && dn_cas_acq_rel_u32(&map->slot[i].state, DN_SHM_FREE, claim)) {
            return i;
        }
    }
    return -1;
}

/** Has a sender filled in a slot of this state? */
static int dn_shm_is_taken(uint32_t state)
{
    return DN_SHM_READY == state || DN_SHM_CLOSED == state;
}

/** Has another process of the owner's group taken this slot? */
static int dn_shm_is_fellow(const dn_shm_map_t *map, uint32_t index)
{
    const dn_shm_header_t *header = map->header;
    const dn_shm_slot_t *slot = &map->slot[index];

    return dn_shm_is_taken(dn_load_acquire_u32(&slot->state)) && slot->pid != header->pid
           && 0 == memcmp(&slot->pgid, &header->pgid, sizeof(slot->pgid));
}

/** Has the process of such a slot an earlier one, too, since it has left and come again? */
static int dn_shm_is_again(const dn_shm_map_t *map, uint32_t index)
{
    int again = 0;

    for (uint32_t i = 0; !again && i < index; i++) {
        again = map->slot[i].pid == map->slot[index].pid && dn_shm_is_fellow(map, i);
    }
    return again;
}

/** Have all processes of its group that the owner of this mapping expects on this host taken a slot? */
static int dn_shm_complete(const dn_shm_map_t *map)
{
    const uint32_t expected = map->header->nlocal;
    uint32_t others = 0;

    if (0 == expected) {
        return 0;
    }
    for (uint32_t i = 0; i < map->max_peers; i++) {
        others += (uint32_t) dn_shm_is_fellow(map, i);
    }
    /* Where slots are too few, it need not be known whose they are, which takes long. */
    for (uint32_t i = 0; others + 1 >= expected && i < map->max_peers; i++) {
        others -= dn_shm_is_fellow(map, i) && dn_shm_is_again(map, i);
    }
    return others + 1 >= expected;
}

/** A ring without room: the sending end of a peer uses it while the way to the peer is not open. */
static dn_ring_t dn_shm_no_ring;

void dn_shm_shut_tx(dn_shm_peer_t *peer)
{
    dn_line_tx_init(&peer->tx, &dn_shm_no_ring, 1, 0);
}

dn_status_t dn_shm_open_tx(dn_shm_peer_t *peer, const char *path)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;
    const dn_shm_header_t *mine = shm->map.header;
    dn_shm_header_t *theirs = peer->map.header;

    if (0 != dn_load_acquire_u32(&theirs->closed)) {
        return DN_ERR_UNREACH;
    }
    const int64_t index = dn_shm_claim_slot(&peer->map, dn_shm_claim(mine->os_pid, shm->start_time));
    if (0 > index) {
        /* The owner looks at its slots: those whose senders are gone are free at the next try. */
        dn_fetch_add_acq_rel(&theirs->arrivals, 1);
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
    slot->pages = (uint32_t) (mine->bytes / DN_SHM_PAGE);
    slot->life = shm->lives++;

    dn_ring_t *ring = (dn_ring_t *) (peer->map.rings + (size_t) index * peer->map.ring_stride);
    if (!dn_shm_lock_tx(peer)) {
        dn_store_release_u32(&slot->state, DN_SHM_FREE);
        return DN_ERR_UNREACH;
    }
    dn_line_tx_init(&peer->tx, ring, peer->map.ring_lines, peer->map.first);
    peer->slot = (uint32_t) index;
    dn_shm_tx_turn(peer, DN_SHM_TX_RING);
    dn_shm_unlock_tx(peer);
    /* The owner reads the slot's fields after it sees READY, and looks for READY after arrivals moved. */
    dn_store_release_u32(&slot->state, DN_SHM_READY);
    dn_fetch_add_acq_rel(&theirs->arrivals, 1);
    dn_shm_ring(peer);
    if ('\0' != path[0] && dn_shm_complete(&peer->map)) {
        /* The owner does so too; but it may be killed before it looks. */
        unlink(path);
    }
    return DN_OK;
}

void dn_shm_close_tx(dn_shm_peer_t *peer)
{
    if (DN_SHM_TX_SHUT != dn_load_acquire_u32(&peer->tx_state)) {
        /* Not held: the peer was lost and is about to be freed, so that nobody sends any more. */
        const int held = dn_shm_lock_tx(peer);
        dn_shm_tx_turn(peer, DN_SHM_TX_SHUT);
        dn_shm_shut_tx(peer);
        if (held) {
            dn_shm_unlock_tx(peer);
        }
        dn_store_release_u32(&peer->map.slot[peer->slot].state, DN_SHM_CLOSED);
        dn_fetch_add_acq_rel(&peer->map.header->arrivals, 1);
        dn_shm_ring(peer);
    }
}

/** Poll the ring of slot @p index for this peer from now on. */
static dn_status_t dn_shm_attach_rx(dn_shm_t *shm, dn_shm_peer_t *peer, uint32_t index)
{
    dn_shm_rx_t *rx = aligned_alloc(DN_LINE_BYTES, sizeof(*rx));
    if (NULL == rx) {
        dn_log_error("no memory to receive from PID %" PRIu32 "; it is tried again", peer->base.pid);
        return DN_ERR_NOMEM;
    }
    *rx = (dn_shm_rx_t){.peer = peer, .slot = index, .state = DN_SHM_RX_READS};
    dn_ring_t *ring = (dn_ring_t *) (shm->map.rings + (size_t) index * shm->map.ring_stride);
    dn_line_rx_init(&rx->line, ring, shm->config.ring_lines, shm->config.first);
    rx->len_limit = dn_line_max(shm->config.ring_lines) + 1;
    if (NULL != peer->map.header) {
        dn_store_release_u32(&ring->attached, 1);
    }
    shm->rx[shm->nrx++] = rx;
    peer->rx = rx;
    return DN_OK;
}

/** Free a slot for the next sender, with a ring of zeros. No process writes there any more. */
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

/** Free a slot whose ring is not read any more, unless its sender may still write there. */
static void dn_shm_leave_slot(dn_shm_t *shm, uint32_t index)
{
    const dn_shm_slot_t *slot = &shm->map.slot[index];

    if (DN_SHM_CLOSED != dn_load_acquire_u32(&slot->state) && !dn_shm_gone(slot->os_pid, slot->start_time)) {
        shm->refused[index] = DN_SHM_SPENT;
    } else {
        dn_shm_free_slot(shm, index);
    }
}

void dn_shm_detach_rx(dn_shm_t *shm, dn_shm_rx_t *rx)
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
    dn_line_stop(&rx->line);
    dn_shm_leave_slot(shm, rx->slot);
    rx->peer->rx = NULL;
    free(rx);
}

void dn_shm_stop_rings(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->config.max_peers; i++) {
        if (DN_SHM_READY == dn_load_acquire_u32(&shm->map.slot[i].state) && DN_SHM_SPENT != shm->refused[i]) {
            dn_ring_t *ring = (dn_ring_t *) (shm->map.rings + (size_t) i * shm->map.ring_stride);
            dn_line_rx_t line;
            dn_line_rx_init(&line, ring, shm->config.ring_lines, shm->config.first);
            dn_line_stop(&line);
        }
    }
}

void dn_shm_look_soon(dn_shm_t *shm)
{
    shm->seen = dn_load_acquire_u32(&shm->map.header->arrivals) - 1;
}

/** No peer could be made of a slot's sender. An error that may pass, as a lack of descriptors or memory, is tried again later. */
static void dn_shm_refuse(dn_shm_t *shm, uint32_t index, const dn_shm_slot_t *slot, dn_status_t status)
{
    if (DN_ERR_ACCESS == status && !dn_port_admits(shm->iface.port, &slot->pgid)) {
        shm->refused[index] = DN_SHM_REFUSED;
    } else if (DN_ERR_ACCESS == status || DN_ERR_PROTO == status || DN_ERR_VERSION == status) {
        shm->refused[index] = DN_SHM_FOREIGN;
    } else {
        shm->refused[index] = DN_SHM_LATER;
        dn_shm_retry_later(shm);
    }
}

/** Make a peer of the sender in this slot. @return NULL: not now, or not at all. */
static dn_shm_peer_t *dn_shm_meet_at(dn_shm_t *shm, uint32_t index, const dn_shm_slot_t *slot)
{
    const int quiet = DN_SHM_RETRY == shm->refused[index];
    dn_shm_peer_t *peer = NULL;

    dn_log_mute(quiet);
    dn_status_t status = dn_shm_meet(shm, slot, &peer);
    dn_log_mute(0);
    if (DN_OK != status && DN_SHM_CLOSED != slot->state
        && DN_SHM_CLOSED == dn_load_acquire_u32(&shm->map.slot[index].state)) {
        /* It left in order meanwhile, whatever was found instead of its mapping: the next look reads its ring. */
        shm->refused[index] = 0;
        dn_shm_look_soon(shm);
        return NULL;
    }
    if (quiet && DN_OK != status && DN_ERR_NOMEM != status) {
        /* For another reason than the last time: that is to be said. */
        status = dn_shm_meet(shm, slot, &peer);
    }
    shm->refused[index] = 0;
    if (DN_OK != status) {
        dn_shm_refuse(shm, index, slot, status);
    }
    return peer;
}

/** A sender that has left and come again has several slots. Is this the earliest of them? The ring of the earliest slot is read first.
 * When this slot is READY or CLOSED, the sender's earlier slots are seen to be so, too. */
static int dn_shm_is_earliest(const dn_shm_t *shm, uint32_t index)
{
    const dn_shm_slot_t *slot = shm->map.slot;

    for (uint32_t i = 0; i < shm->config.max_peers; i++) {
        if (i != index && dn_shm_is_taken(dn_load_acquire_u32(&slot[i].state))
            && DN_SHM_SPENT != shm->refused[i]
            && 0 == memcmp(slot[i].nonce, slot[index].nonce, sizeof(slot[i].nonce))
            && 0 > (int32_t) (slot[i].life - slot[index].life)) {
            return 0;
        }
    }
    return 1;
}

/** Look at one slot that is READY or CLOSED. */
static void dn_shm_look_at(dn_shm_t *shm, uint32_t index, uint32_t state, int again)
{
    dn_shm_slot_t slot = shm->map.slot[index];
    slot.state = state;
    const uint8_t refused = shm->refused[index];
    const dn_peer_base_t *known = dn_port_find_peer(shm->iface.port, slot.nonce);
    if (DN_SHM_SPENT == refused || (DN_SHM_FOREIGN == refused && NULL == known)) {
        if (DN_SHM_CLOSED == state || dn_shm_gone(slot.os_pid, slot.start_time)) {
            dn_shm_free_slot(shm, index);
            /* A later life may have waited for this. */
            dn_shm_look_soon(shm);
        }
        return;
    }
    if (NULL != known && &shm->iface != known->iface) {
        /* It was connected by another device, and is none of ours as long as it is. */
        return;
    }
    dn_shm_peer_t *peer = (dn_shm_peer_t *) known;
    if (NULL == peer && !again && 0 != refused && DN_SHM_RETRY != refused) {
        return;
    }
    if ((NULL == peer || NULL == peer->rx) && !dn_shm_is_earliest(shm, index)) {
        return;
    }
    if (NULL == peer) {
        peer = dn_shm_meet_at(shm, index, &slot);
    }
    if (NULL == peer) {
        return;
    }
    if (NULL == peer->rx) {
        dn_log_mute(0 != refused);
        const dn_status_t status = dn_shm_attach_rx(shm, peer, index);
        dn_log_mute(0);
        if (DN_OK != status) {
            dn_shm_refuse(shm, index, &slot, status);
            return;
        }
        shm->refused[index] = 0;
    }
    if (index == peer->rx->slot && (DN_SHM_CLOSED == state || NULL == peer->map.header)) {
        dn_shm_close_later(shm, peer);
    }
}

/** Has the process that claimed a slot ended? */
static int dn_shm_claim_is_dead(uint32_t claim)
{
    const uint32_t os_pid = claim >> 2 & 0x3fffff;
    uint64_t start_time = 0;
    const dn_status_t status = dn_shm_process(os_pid, &start_time);

    return DN_ERR_UNREACH == status || (DN_OK == status && claim != dn_shm_claim(os_pid, start_time));
}

void dn_shm_retry(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->config.max_peers; i++) {
        const uint32_t state = dn_load_acquire_u32(&shm->map.slot[i].state);
        /* Loaded again: it may have made the slot READY, sent and closed before it ended. */
        if (dn_shm_is_claim(state) && dn_shm_claim_is_dead(state)
            && state == dn_load_acquire_u32(&shm->map.slot[i].state)) {
            dn_shm_free_slot(shm, i);
        }
        if (DN_SHM_LATER == shm->refused[i]) {
            shm->refused[i] = DN_SHM_RETRY;
        }
    }
    dn_shm_look(shm, 0);
}

/** Few slots are free: free the slots whose senders have ended without leaving them. */
static void dn_shm_look_for_dead(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < shm->nrx; i++) {
        dn_shm_peer_t *peer = shm->rx[i]->peer;
        if (DN_SHM_RX_READS == shm->rx[i]->state && !peer->self && DN_OK != dn_shm_check(&peer->base)) {
            dn_shm_close_later(shm, peer);
            /* Not lost here: completions would change the list. */
            dn_peer_doubt(&peer->base, DN_PEER_SUSPECT);
        }
    }
}

void dn_shm_look(dn_shm_t *shm, int again)
{
    int claims = 0;

    /* Pairs with the count in dn_shm_open_tx: a slot made READY before the count is seen here. */
    shm->seen = dn_load_acquire_u32(&shm->map.header->arrivals);
    for (uint32_t i = 0; i < shm->config.max_peers; i++) {
        const uint32_t state = dn_load_acquire_u32(&shm->map.slot[i].state);
        if (dn_shm_is_taken(state)) {
            dn_shm_look_at(shm, i, state, again);
        }
        claims |= dn_shm_is_claim(state);
    }
    if (claims) {
        /* Whose it is fills it in just now, or has ended before it could: then nothing arrives. */
        dn_shm_retry_later(shm);
    }
    if (shm->nrx > shm->config.max_peers / 2) {
        dn_shm_look_for_dead(shm);
    }
    if ('\0' != shm->path[0] && dn_shm_complete(&shm->map)) {
        dn_shm_unlink(shm);
    }
}

void dn_shm_reap(dn_shm_t *shm)
{
    int left = 0;

    shm->ending = 0;
    for (uint32_t i = 0; i < shm->nrx;) {
        dn_shm_peer_t *peer = shm->rx[i]->peer;
        const int ends = DN_SHM_RX_ENDS == peer->rx->state;
        dn_line_msg_t msg;
        const int waits = 0 != peer->rx->len_limit && dn_line_peek(&peer->rx->line, &msg);
        if (!ends || 0 != peer->rx->line.depth || 0 != peer->base.telling || waits
            || (0 == peer->base.connections && !dn_shm_help_leave(shm, peer))) {
            if (ends) {
                const int soon = !waits || !dn_shm_is_held(shm, peer->rx);
                shm->ending |= soon ? DN_SHM_ENDS_SOON : DN_SHM_ENDS_HELD;
            }
            i++;
            continue;
        }
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
