/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_help.c
 * A long PULL or PUSH is copied by both ends at once: of a PULL, the initiator reads and the target writes, of
 * a PUSH the other way round; each takes the next chunk that nobody has. The initiator says so by a message and begins; a target that
 * is not in the library, or comes late, finds nothing left. One copy by the kernel moves 10 GB/s or
 * so; two cores move nearly twice that (perf/dn_perf -t pull-bw).
 *
 *   H0  chunks are taken by compare-and-swap on generation:32 | next:32, so that a late helper cannot
 *       take a chunk of another transfer that has come to use the descriptor.
 *   H1  the target counts a chunk done (release) after its copy; the initiator's load (acquire) of the
 *       count pairs with it. The bytes themselves were written by the kernel on the target's CPU
 *       before that store.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <sched.h>
#include <string.h>

/** Bytes a copy moves before the ends look again who takes the next: half of the whole within these, since
 * more turns cost more (perf/dn_bw: at 256 KiB 24 GB/s in two parts, 17 GB/s in eight). */
#define DN_SHM_CHUNK_MIN (8u << 10)
#define DN_SHM_CHUNK_MAX (128u << 10)
/** Looks for the target's last chunk before the transfer goes on in the background: some 10 us. */
#define DN_SHM_SPIN 2000
/** Looks in the background before the target's life is checked. */
#define DN_SHM_WAITS 65536

/** The message on DN_CHAN_DEVICE: everything the target needs, in its own terms. */
typedef struct dn_shm_help_request {
    uint64_t theirs; /**< address in the target */
    uint64_t ours;   /**< address in the initiator */
    uint64_t len;
    uint32_t index; /**< of the descriptor in the initiator's header */
    uint32_t generation;
    uint32_t write; /**< not 0: a PUSH */
    uint32_t pad;
} dn_shm_help_request_t;

/** Both ends derive the chunks from the length alone. */
static uint64_t dn_shm_chunk_bytes(uint64_t len)
{
    const uint64_t half = (len / 2 + DN_SHM_PAGE - 1) & ~(uint64_t) (DN_SHM_PAGE - 1);
    const uint64_t most = half < DN_SHM_CHUNK_MAX ? half : DN_SHM_CHUNK_MAX;
    return most > DN_SHM_CHUNK_MIN ? most : DN_SHM_CHUNK_MIN;
}

static uint32_t dn_shm_chunks(uint64_t len)
{
    return (uint32_t) ((len + dn_shm_chunk_bytes(len) - 1) / dn_shm_chunk_bytes(len));
}

/** Place of a chunk; its length in *chunk_len_p. */
static uint64_t dn_shm_chunk(uint64_t len, uint32_t chunk, uint64_t *chunk_len_p)
{
    const uint64_t bytes = dn_shm_chunk_bytes(len);
    const uint64_t off = (uint64_t) chunk * bytes;
    *chunk_len_p = len - off < bytes ? len - off : bytes;
    return off;
}

/** Take the next chunk (H0). @return its number, or @p chunks: none is left, or the transfer is over. */
static uint32_t dn_shm_take(dn_shm_help_t *help, uint32_t generation, uint32_t chunks)
{
    uint64_t word = dn_load_acquire(&help->next);
    while ((uint32_t) (word >> 32) == generation && (uint32_t) word < chunks) {
        if (atomic_compare_exchange_weak_explicit((_Atomic uint64_t *) &help->next, &word, word + 1,
                                                  memory_order_acq_rel, memory_order_acquire)) {
            return (uint32_t) word;
        }
    }
    return chunks;
}

static void dn_shm_share_free(dn_shm_t *shm, dn_shm_share_t *share)
{
    share->peer = NULL;
    shm->nshares--;
}

/** Copy what the target took and could not: then the transfer is the initiator's alone. */
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
        dn_shm_signal(share->peer, &share->xfer);
    }
    return status;
}

/** Has the target finished every chunk that we did not take (H1)? */
static int dn_shm_share_done(const dn_shm_t *shm, const dn_shm_share_t *share)
{
    return dn_load_acquire(&shm->map.header->help[share - shm->share].done) >= share->chunks - share->taken;
}

/** A free descriptor, set for this transfer; NULL: all are in use. */
static dn_shm_share_t *dn_shm_share_new(dn_shm_t *shm, dn_shm_peer_t *peer, const dn_xfer_t *xfer,
                                        uint64_t remote, int write)
{
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (NULL != share->peer) {
            continue;
        }
        const uint32_t generation = share->generation + 1;
        *share = (dn_shm_share_t){.peer = peer,
                                  .generation = generation,
                                  .chunks = dn_shm_chunks(xfer->len),
                                  .remote = remote,
                                  .write = write,
                                  .xfer = *xfer};
        dn_shm_help_t *help = &shm->map.header->help[i];
        dn_store_release(&help->done, 0);
        dn_store_release(&help->failed, 0);
        dn_store_release(&help->next, (uint64_t) generation << 32);
        shm->nshares++;
        return share;
    }
    return NULL;
}

/** Our share: chunks until none is left. */
static dn_status_t dn_shm_share_copy(dn_shm_t *shm, dn_shm_share_t *share)
{
    dn_shm_help_t *help = &shm->map.header->help[share - shm->share];
    dn_status_t status = DN_OK;

    for (;;) {
        const uint32_t chunk = dn_shm_take(help, share->generation, share->chunks);
        if (chunk == share->chunks) {
            return status;
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
}

/** Wait until the target writes no more into our memory: its chunks are done, or it is gone. */
static void dn_shm_share_wait(const dn_shm_t *shm, const dn_shm_share_t *share)
{
    while (!dn_shm_share_done(shm, share) && !dn_shm_gone(share->peer->os_pid, share->peer->start_time)) {
        sched_yield();
    }
}

dn_status_t dn_shm_share(dn_shm_peer_t *peer, const dn_xfer_t *xfer, uint64_t remote, int write)
{
    dn_shm_t *shm = (dn_shm_t *) peer->base.iface;

    dn_port_lock(shm->iface.port);
    dn_shm_share_t *share =
        UINT32_MAX >= xfer->len / DN_SHM_CHUNK_MAX ? dn_shm_share_new(shm, peer, xfer, remote, write) : NULL;
    dn_port_unlock(shm->iface.port);
    if (NULL == share) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_shm_help_request_t request = {remote,
                                           (uintptr_t) xfer->local,
                                           xfer->len,
                                           (uint32_t) (share - shm->share),
                                           share->generation,
                                           (uint32_t) write,
                                           0};
    /* Without credit for the request the whole copy is ours. */
    (void) dn_shm_botf(&peer->base.hot, DN_CHAN_DEVICE, 0, &request, sizeof(request), NULL, 0);
    dn_status_t status = dn_shm_share_copy(shm, share);
    for (int spin = 0; spin < DN_SHM_SPIN && !dn_shm_share_done(shm, share); spin++) {
        dn_pause();
    }
    dn_port_lock(shm->iface.port);
    if (!dn_shm_share_done(shm, share) && !peer->base.lost) {
        share->background = 1;
        share->status = status;
        dn_fetch_add_u32(&peer->base.outstanding, 1);
        status = DN_INPROGRESS;
    } else {
        dn_shm_share_wait(shm, share);
        if (DN_OK == status) {
            status = dn_shm_share_done(shm, share) ? dn_shm_share_settle(shm, share) : DN_ERR_UNREACH;
        }
        dn_shm_share_free(shm, share);
    }
    dn_port_unlock(shm->iface.port);
    return status;
}

/** End a transfer of the background. */
static void dn_shm_share_signal(dn_shm_t *shm, dn_shm_share_t *share, dn_status_t status)
{
    dn_comp_t *comp = share->xfer.comp;
    dn_fetch_add_u32(&share->peer->base.outstanding, (uint32_t) -1);
    dn_shm_share_free(shm, share);
    if (NULL != comp) {
        comp->fn(comp, status);
    }
}

int dn_shm_help_progress(dn_shm_t *shm)
{
    int n = 0;
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (NULL == share->peer || !share->background) {
            continue;
        }
        if (dn_shm_share_done(shm, share)) {
            dn_shm_share_signal(shm, share,
                                DN_OK == share->status ? dn_shm_share_settle(shm, share) : share->status);
            n++;
        } else if (0 == ++share->waits % DN_SHM_WAITS && DN_OK != dn_shm_check(&share->peer->base)) {
            dn_port_peer_lost(shm->iface.port, &share->peer->base);
        }
    }
    return n;
}

void dn_shm_help_end(dn_shm_t *shm, dn_shm_peer_t *peer, int signal)
{
    for (uint32_t i = 0; i < DN_SHM_HELPS; i++) {
        dn_shm_share_t *share = &shm->share[i];
        if (peer != share->peer || !share->background) {
            continue;
        }
        dn_shm_share_wait(shm, share);
        if (!signal) {
            share->xfer.comp = NULL;
        }
        dn_shm_share_signal(shm, share, DN_ERR_UNREACH);
    }
}

void dn_shm_message(dn_peer_base_t *src, unsigned tag, const void *data, size_t len)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) src;
    dn_counters_t *counters = peer->base.iface->counters;
    dn_shm_help_request_t request;
    (void) tag;

    if (sizeof(request) != len) {
        dn_count(&counters->dropped, 1);
        return;
    }
    memcpy(&request, data, sizeof(request));
    if (DN_SHM_HELPS <= request.index || UINT32_MAX < request.len / DN_SHM_CHUNK_MAX) {
        dn_count(&counters->dropped, 1);
        return;
    }
    if (!peer->cma || NULL == peer->map.header) {
        return;
    }
    dn_shm_help_t *help = &peer->map.header->help[request.index];
    const uint32_t chunks = dn_shm_chunks(request.len);
    for (;;) {
        const uint32_t chunk = dn_shm_take(help, request.generation, chunks);
        if (chunk == chunks) {
            return;
        }
        uint64_t bytes;
        const uint64_t off = dn_shm_chunk(request.len, chunk, &bytes);
        const dn_status_t status = dn_shm_cma_copy(peer, (void *) (uintptr_t) (request.theirs + off),
                                                   request.ours + off, bytes, 0 == request.write);
        if (DN_OK != status) {
            dn_store_release(&help->failed, (uint64_t) chunk + 1);
        }
        dn_fetch_add_u64(&help->done, 1);
        if (DN_OK != status) {
            return;
        }
        dn_count(&counters->help_bytes, bytes);
    }
}
