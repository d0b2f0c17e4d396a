/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_help.c
 * Both ends copy a long PULL or PUSH at once. In a PULL the initiator reads and the target writes; in a PUSH the initiator
 * writes and the target reads. Each end takes the next chunk that neither has taken. The initiator sends a request to the target
 * and begins. A target that is not in the library, or comes late, finds no chunk left. One copy by the kernel moves some
 * 10 GB/s; two cores move nearly twice as much (perf/dn_perf -t pull-bw).
 *
 *   H0  chunks are taken by compare-and-swap on generation:44 | next:20, so that a late target cannot
 *       take a chunk of a later transfer that uses the same descriptor. A request may lie unread for as long as its target
 *       computes, but 2^44 transfers take longer: half a year at 1 us each.
 *   H1  the target counts a chunk done (release) after its copy; the initiator's load (acquire) of the
 *       count pairs with it. The bytes themselves were written by the kernel on the target's CPU
 *       before that store.
 *
 * A transfer in the initiator, by dn_shm_share_turn():
 *
 *   FREE --> CALL --> FREE                   done within the call
 *            CALL --> OPEN --> FREE          the call returned DN_INPROGRESS; the transfer is done later
 *            CALL, OPEN --> PARKED --> FREE  the peer was lost, or left, while its process had a chunk
 *            PARKED --> OWED --> FREE        the process does not finish: it is stopped, or hostile
 *
 * A process that has taken a chunk may write the chunk, and count it done, until the process ends. So the caller of a PARKED
 * transfer is not told of the loss, and does not get its memory back, before the process has counted its chunks or has ended.
 * Where this takes longer than DN_SHM_PATIENCE_MS, the caller is told all the same, since a caller cannot wait for ever. Of a
 * PULL, the log then names the process that may still write to the caller's memory. The descriptor is OWED to that process as
 * long as the process lives: a late count would otherwise be taken for a count of the next transfer.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "dn_log.h"

/** Least and largest bytes of a chunk. A chunk is half of the transfer, within these, since more chunks cost more
 * (perf/dn_bw: at 256 KiB 24 GB/s in two chunks, 17 GB/s in eight). */
#define DN_SHM_CHUNK_MIN (8u << 10)
#define DN_SHM_CHUNK_MAX (128u << 10)
/** Looks for the target's last chunk before the transfer goes on in the background: some 10 us. */
#define DN_SHM_SPIN 2000
/** Looks in the background before the target's life is checked. */
#define DN_SHM_WAITS 65536
/** Milliseconds that the process of a lost peer has to finish its chunk. A copy takes some 20 us. A process that shares its core
 * with a hundred others gets the core within a second. */
#define DN_SHM_PATIENCE_MS 2000
/** Milliseconds between two checks whether the process of a PARKED transfer lives. */
#define DN_SHM_LOOK_MS 10
/** Milliseconds between two such checks for an OWED descriptor, where a new transfer needs a descriptor. */
#define DN_SHM_OWED_MS 100

/** The request to the target, on DN_CHAN_DEVICE. The target finds its memory by SID, generation and ROFS, as for any request. */
typedef struct dn_shm_help_request {
    uint64_t roff; /**< from the start of the target's segment */
    uint64_t ours; /**< address in the initiator, which the kernel looks up there */
    uint64_t len;
    uint64_t generation; /**< of the descriptor */
    uint32_t sid;
    uint32_t sid_generation;
    uint32_t index; /**< of the descriptor in the initiator's header */
    uint32_t write; /**< not 0: a PUSH */
} dn_shm_help_request_t;

_Static_assert(sizeof(dn_shm_help_request_t) == 48, "peers agree on the layout, which is one line");

/** Bytes of a chunk. Both ends compute the chunks from the length of the transfer alone. */
static uint64_t dn_shm_chunk_bytes(uint64_t len)
{
    const uint64_t half = (len / 2 + DN_SHM_PAGE - 1) & ~(uint64_t) (DN_SHM_PAGE - 1);
    const uint64_t most = half < DN_SHM_CHUNK_MAX ? half : DN_SHM_CHUNK_MAX;
    return most > DN_SHM_CHUNK_MIN ? most : DN_SHM_CHUNK_MIN;
}

/** Is a transfer short enough to be shared? */
static int dn_shm_is_shareable(uint64_t len)
{
    return len <= (uint64_t) DN_SHM_CHUNKS_MAX * DN_SHM_CHUNK_MAX;
}

/** Number of chunks of a shareable transfer. */
static uint32_t dn_shm_chunks(uint64_t len)
{
    return (uint32_t) ((len + dn_shm_chunk_bytes(len) - 1) / dn_shm_chunk_bytes(len));
}

/** Offset of a chunk in the transfer. Its length goes to *chunk_len_p. */
static uint64_t dn_shm_chunk(uint64_t len, uint32_t chunk, uint64_t *chunk_len_p)
{
    const uint64_t bytes = dn_shm_chunk_bytes(len);
    const uint64_t off = (uint64_t) chunk * bytes;
    *chunk_len_p = len - off < bytes ? len - off : bytes;
    return off;
}

/** Take the next chunk (H0). @return its number, or @p chunks: none is left, or the transfer is over. */
static uint32_t dn_shm_help_claim(dn_shm_help_t *help, uint64_t generation, uint32_t chunks)
{
    uint64_t word = dn_load_acquire(&help->next);
    while (word >> DN_SHM_CHUNK_BITS == generation && (word & DN_SHM_CHUNKS_MAX) < chunks) {
        if (dn_cas_weak_acq_rel(&help->next, &word, word + 1)) {
            return (uint32_t) (word & DN_SHM_CHUNKS_MAX);
        }
    }
    return chunks;
}

/** Is a transfer in the background, where progress looks at it? */
static int dn_shm_share_waits(const dn_shm_share_t *share)
{
    return DN_SHM_SHARE_OPEN == share->state || DN_SHM_SHARE_PARKED == share->state;
}

/** The arrows of the drawing above. */
static const uint32_t dn_shm_share_turns[] = {
    [DN_SHM_SHARE_FREE] = DN_TURN_TO(DN_SHM_SHARE_CALL),
    [DN_SHM_SHARE_CALL] =
        DN_TURN_TO(DN_SHM_SHARE_FREE) | DN_TURN_TO(DN_SHM_SHARE_OPEN) | DN_TURN_TO(DN_SHM_SHARE_PARKED),
    [DN_SHM_SHARE_OPEN] = DN_TURN_TO(DN_SHM_SHARE_FREE) | DN_TURN_TO(DN_SHM_SHARE_PARKED),
    [DN_SHM_SHARE_PARKED] = DN_TURN_TO(DN_SHM_SHARE_FREE) | DN_TURN_TO(DN_SHM_SHARE_OWED),
    [DN_SHM_SHARE_OWED] = DN_TURN_TO(DN_SHM_SHARE_FREE),
};

/** Change the state of a share, under the port's lock. dn_shm_t::nshares counts the shares that progress looks at. */
static void dn_shm_share_turn(dn_shm_t *shm, dn_shm_share_t *share, enum dn_shm_share_state state)
{
    const int before = dn_shm_share_waits(share);

    dn_turn_check("a shared transfer", dn_shm_share_turns, share->state, state);
    share->state = state;
    shm->nshares += (uint32_t) dn_shm_share_waits(share) - (uint32_t) before;
}

/** Both ends have ended their shares: copy a chunk that the target has taken and could not copy, then write the status words. */
static dn_status_t dn_shm_share_settle(dn_shm_t *shm, dn_shm_share_t *share)
{
    const uint64_t failed = dn_load_acquire(&shm->map.header->help[share - shm->share].failed);
    dn_status_t status = DN_OK;
    if (0 != failed && failed <= share->chunks) {
        const uint32_t chunk = (uint32_t) failed - 1;
        uint64_t len;
        const uint64_t off = dn_shm_chunk(share->xfer.len, chunk, &len);
        status = dn_shm_cma_copy(share->peer, (uint8_t *) share->xfer.local + off, share->remote + off, len,
                                 share->write);
    }
    if (DN_OK == status) {
        dn_shm_signal(share->peer, &share->xfer, share->write);
    }
    return status;
}

/** Has the target finished every chunk that this process did not take (H1)? */
static int dn_shm_share_done(const dn_shm_t *shm, const dn_shm_share_t *share)
{
    return dn_load_acquire(&shm->map.header->help[share - shm->share].done) >= share->chunks - share->taken;
}

/** Has the process of a descriptor certainly ended? This is checked when the check is due, and again after @p every_ms milliseconds. */
static int dn_shm_share_ended(dn_shm_share_t *share, uint64_t now_ms, uint64_t every_ms)
{
    if (now_ms < share->look_ms) {
        return 0;
    }
    share->look_ms = now_ms + every_ms;
    return dn_shm_gone(share->os_pid, share->start_time);
}

/** Has the process to which a descriptor is OWED written there for the last time? */
static int dn_shm_share_paid(const dn_shm_t *shm, dn_shm_share_t *share)
{
    return dn_shm_share_done(shm, share) || dn_shm_share_ended(share, dn_shm_now_ms(), DN_SHM_OWED_MS);
}

/** Take a free descriptor and set it up for a transfer. NULL: all are in use. */
static dn_shm_share_t *dn_shm_share_new(dn_shm_t *shm, dn_shm_peer_t *peer, const dn_xfer_t *xfer,
                                        uint64_t remote, int write)
{
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (DN_SHM_SHARE_OWED == share->state && dn_shm_share_paid(shm, share)) {
            dn_shm_share_turn(shm, share, DN_SHM_SHARE_FREE);
        }
        if (DN_SHM_SHARE_FREE != share->state) {
            continue;
        }
        const uint64_t generation = share->generation + 1;
        *share = (dn_shm_share_t){.peer = peer,
                                  .os_pid = peer->process.os_pid,
                                  .start_time = peer->process.start_time,
                                  .generation = generation,
                                  .chunks = dn_shm_chunks(xfer->len),
                                  .remote = remote,
                                  .write = write,
                                  .xfer = *xfer};
        dn_shm_share_turn(shm, share, DN_SHM_SHARE_CALL);
        dn_shm_help_t *help = &shm->map.header->help[i];
        dn_store_release(&help->done, 0);
        dn_store_release(&help->failed, 0);
        dn_store_release(&help->next, generation << DN_SHM_CHUNK_BITS);
        return share;
    }
    return NULL;
}

/** Copy this process's share: take and copy chunks until none is left. */
static dn_status_t dn_shm_share_copy(dn_shm_t *shm, dn_shm_share_t *share)
{
    dn_shm_help_t *help = &shm->map.header->help[share - shm->share];
    dn_status_t status = DN_OK;

    /* Not more than there are, whatever peers write into the descriptor. */
    while (share->taken < share->chunks) {
        const uint32_t chunk = dn_shm_help_claim(help, share->generation, share->chunks);
        if (chunk == share->chunks) {
            break;
        }
        share->taken++;
        uint64_t len;
        const uint64_t off = dn_shm_chunk(share->xfer.len, chunk, &len);
        if (DN_OK == status) {
            /* After an error the rest is only taken, so that the target finds nothing more to do. */
            status = dn_shm_cma_copy(share->peer, (uint8_t *) share->xfer.local + off, share->remote + off,
                                     len, share->write);
            dn_count(&shm->iface.counters->cma_bytes, len);
        }
    }
    return status;
}

/** The peer is lost: the caller of the transfer is told once the peer's process writes no more, or is late. */
static void dn_shm_share_park(dn_shm_t *shm, dn_shm_share_t *share)
{
    dn_shm_share_turn(shm, share, DN_SHM_SHARE_PARKED);
    share->status = DN_ERR_UNREACH;
    share->look_ms = dn_shm_now_ms();
    share->late_ms = share->look_ms + DN_SHM_PATIENCE_MS;
}

/** End a transfer whose process has not finished: the descriptor is OWED. */
static void dn_shm_share_owe(dn_shm_t *shm, dn_shm_share_t *share)
{
    if (!share->write) {
        dn_log_error("process %" PRIu32
                     " was lost in the midst of a PULL and does not finish its part; end it: as long "
                     "as it lives it may write to the memory of that PULL",
                     share->os_pid);
    }
    dn_shm_share_turn(shm, share, DN_SHM_SHARE_OWED);
    share->peer = NULL;
}

dn_status_t dn_shm_share(dn_shm_peer_t *peer, const dn_xfer_t *xfer, uint64_t remote, int write)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;

    dn_port_lock(shm->iface.port);
    dn_shm_share_t *share =
        dn_shm_is_shareable(xfer->len) ? dn_shm_share_new(shm, peer, xfer, remote, write) : NULL;
    dn_port_unlock(shm->iface.port);
    if (NULL == share) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_shm_help_request_t request = {.roff = xfer->roff,
                                           .ours = (uintptr_t) xfer->local,
                                           .len = xfer->len,
                                           .sid = xfer->key->sid,
                                           .sid_generation = xfer->key->generation,
                                           .index = (uint32_t) (share - shm->share),
                                           .generation = share->generation,
                                           .write = (uint32_t) write};
    /* Without credit for the request the whole copy is ours. */
    (void) dn_shm_botf(&peer->base.hot, DN_CHAN_DEVICE, 0, &request, sizeof(request), NULL, 0);
    dn_status_t status = dn_shm_share_copy(shm, share);
    for (int spin = 0; spin < DN_SHM_SPIN && !dn_shm_share_done(shm, share); spin++) {
        dn_pause();
    }
    dn_port_lock(shm->iface.port);
    if (dn_shm_share_done(shm, share)) {
        status = DN_OK == status ? dn_shm_share_settle(shm, share) : status;
        dn_shm_share_turn(shm, share, DN_SHM_SHARE_FREE);
    } else {
        share->status = status;
        if (dn_peer_is_lost(&peer->base)) {
            dn_shm_share_park(shm, share);
        } else {
            dn_shm_share_turn(shm, share, DN_SHM_SHARE_OPEN);
        }
        dn_fetch_add_acq_rel(&peer->base.outstanding, 1);
        status = DN_INPROGRESS;
    }
    dn_port_unlock(shm->iface.port);
    return status;
}

/** End a transfer in the background and tell its caller. @param[in] owed  Not 0: its descriptor is OWED; else it is free. */
static void dn_shm_share_signal(dn_shm_t *shm, dn_shm_share_t *share, int owed, dn_status_t status)
{
    dn_comp_t *comp = share->xfer.comp;
    if (DN_ERR_UNSUPPORTED == status) {
        /* Nobody falls back once the call has returned. */
        status = DN_ERR_ACCESS;
    }
    dn_peer_keep_error(&share->peer->base, comp, status);
    dn_fetch_add_acq_rel(&share->peer->base.outstanding, (uint32_t) -1);
    if (owed) {
        dn_shm_share_owe(shm, share);
    } else {
        dn_shm_share_turn(shm, share, DN_SHM_SHARE_FREE);
    }
    if (NULL != comp) {
        comp->fn(comp, status);
    }
}

/** Look at a PARKED transfer. @return 1: it has ended. */
static int dn_shm_share_parked(dn_shm_t *shm, dn_shm_share_t *share)
{
    if (dn_shm_share_done(shm, share)) {
        dn_shm_share_signal(shm, share, 0, share->status);
        return 1;
    }
    const uint64_t now = dn_shm_now_ms();
    const int late = share->late_ms <= now;
    if (late) {
        share->look_ms = now; /* for the last time */
    }
    const int ended = dn_shm_share_ended(share, now, DN_SHM_LOOK_MS);
    if (ended || late) {
        dn_shm_share_signal(shm, share, !ended, share->status);
        return 1;
    }
    return 0;
}

/** Look at a transfer in the background. @return 1: it has ended. */
static int dn_shm_share_look(dn_shm_t *shm, dn_shm_share_t *share)
{
    if (DN_SHM_SHARE_PARKED == share->state) {
        return dn_shm_share_parked(shm, share);
    }
    if (dn_shm_share_done(shm, share)) {
        dn_shm_share_signal(shm, share, 0,
                            DN_OK == share->status ? dn_shm_share_settle(shm, share) : share->status);
        return 1;
    }
    if (0 == ++share->waits % DN_SHM_WAITS) {
        (void) dn_port_look(&share->peer->base);
    }
    return 0;
}

int dn_shm_help_progress(dn_shm_t *shm)
{
    int n = 0;
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        n += dn_shm_share_waits(share) && dn_shm_share_look(shm, share);
    }
    return n;
}

void dn_shm_help_lost(dn_shm_t *shm, dn_shm_peer_t *peer)
{
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (peer == share->peer && DN_SHM_SHARE_OPEN == share->state) {
            dn_shm_share_park(shm, share);
            /* Told before the port says that the peer is lost, where its process has ended. */
            (void) dn_shm_share_parked(shm, share);
        }
    }
}

int dn_shm_help_leave(dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    int left = 0;

    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (peer == share->peer && dn_shm_share_waits(share)) {
            left = 1;
            if (DN_SHM_SHARE_OPEN == share->state && !dn_shm_share_done(shm, share)) {
                dn_shm_share_park(shm, share);
            }
        }
    }
    return !left;
}

void dn_shm_help_end(dn_shm_t *shm, const dn_shm_peer_t *peer)
{
    while (!dn_shm_help_leave(shm, peer)) {
        int ended = 0;
        for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
            dn_shm_share_t *share = &shm->share[i];
            ended |= peer == share->peer && dn_shm_share_waits(share) && dn_shm_share_look(shm, share);
        }
        if (!ended) {
            sched_yield();
        }
    }
}

void dn_shm_help_close(dn_shm_t *shm)
{
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (dn_shm_share_waits(share)) {
            share->xfer.comp = NULL;
            (void) dn_shm_help_leave(shm, share->peer);
        }
    }
}

/** The target copies chunks of a transfer until none is left. The request has been checked. */
static void dn_shm_help(dn_shm_peer_t *peer, const dn_shm_help_request_t *request, uint8_t *base)
{
    dn_shm_help_t *help = &peer->map.header->help[request->index];
    const uint32_t chunks = dn_shm_chunks(request->len);

    /* Not more than there are, whatever the initiator writes into the descriptor. */
    for (uint32_t turn = 0; turn < chunks; turn++) {
        const uint32_t chunk = dn_shm_help_claim(help, request->generation, chunks);
        if (chunk == chunks) {
            return;
        }
        uint64_t bytes;
        const uint64_t off = dn_shm_chunk(request->len, chunk, &bytes);
        const dn_status_t status = dn_shm_cma_copy(peer, base + request->roff + off, request->ours + off,
                                                   bytes, 0 == request->write);
        if (DN_OK != status) {
            dn_store_release(&help->failed, (uint64_t) chunk + 1);
        }
        dn_fetch_add_acq_rel(&help->done, 1);
        dn_shm_ring(peer);
        if (DN_OK != status) {
            return;
        }
        dn_count(&peer->base.iface->counters->help_bytes, bytes);
    }
}

void dn_shm_message(dn_peer_base_t *src, unsigned tag, const void *data, size_t len)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) src;
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;
    dn_shm_help_request_t request;
    uint64_t offered;
    uint8_t *base;
    (void) tag;

    if (sizeof(request) != len) {
        dn_shm_cut_off(shm, peer, "sent a request to help that is malformed");
        return;
    }
    memcpy(&request, data, sizeof(request));
    if (!dn_port_segment(shm->iface.port, request.sid, request.sid_generation, &base, &offered) || !peer->cma
        || NULL == peer->map.header) {
        /* It may have been freed since, when the initiator was done. Who does not help takes no chunk. */
        return;
    }
    if (DN_SHM_HELPS <= request.index || !dn_shm_is_shareable(request.len) || request.roff > offered
        || request.len > offered - request.roff) {
        dn_shm_cut_off(shm, peer, "asked to help outside of the segment that it named");
        return;
    }
    dn_shm_help(peer, &request, base);
}
