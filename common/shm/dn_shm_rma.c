/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_sg.h"
#include "dn_xfer.h"

/** Blocks given to the kernel in one call. The kernel takes up to 1024. */
#define DN_SHM_IOV 128

/**
 * Blocks that are shorter than this on average are gathered into messages, which the target scatters. The kernel needs 0.13
 * to 0.5 us for each block: 128 blocks take 50 us at 64 B, 90 us at 4 KiB and 435 us at 32 KiB. By messages they take 1.3,
 * 28 and 250 us. But for messages the target has to be in the library.
 */
#define DN_SHM_CMA_BLOCK_MIN (32u << 10)

dn_status_t dn_shm_probe_open(dn_shm_t *shm)
{
    void *page = mmap(NULL, DN_SHM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == page) {
        return DN_ERR_NOMEM;
    }
    /* A child has a copy of all else, and must not pass for this process. */
    (void) madvise(page, DN_SHM_PAGE, MADV_WIPEONFORK);
    memcpy(page, dn_port_nonce(shm->iface.port), 2 * sizeof(uint64_t));
    shm->cma_probe = page;
    return DN_OK;
}

void dn_shm_probe_close(dn_shm_t *shm)
{
    if (NULL != shm->cma_probe) {
        munmap(shm->cma_probe, DN_SHM_PAGE);
    }
}

int dn_shm_cma_probe(const dn_shm_peer_t *peer)
{
    uint64_t seen[2] = {0, 0};
    struct iovec local = {seen, sizeof(seen)};
    struct iovec remote = {(void *) (uintptr_t) peer->map.cma_probe, sizeof(seen)};

    return sizeof(seen) == (size_t) process_vm_readv((pid_t) peer->process.os_pid, &local, 1, &remote, 1, 0)
           && 0 == memcmp(seen, peer->base.nonce, sizeof(seen));
}

/** The peer has ended: the caller is told by the return value, and all others by the next progress. */
static dn_status_t dn_shm_cma_gone(dn_shm_peer_t *peer)
{
    dn_log_error("PID %" PRIu32 " (process %" PRIu32 ") is gone", peer->base.pid, peer->process.os_pid);
    dn_peer_doubt(&peer->base, DN_PEER_SUSPECT);
    return DN_ERR_UNREACH;
}

/**
 * The status for a failed copy. Where the kernel finds no process of this number, and the peer has not ended, the first thread of the
 * peer's process has ended: the kernel then shows the memory of that process to no other. DN_ERR_UNSUPPORTED: the core processors of
 * both ends move the bytes.
 */
static dn_status_t dn_shm_cma_error(dn_shm_peer_t *peer, int write)
{
    const int error = errno;
    if (ESRCH == error && DN_OK == dn_shm_check(&peer->base)) {
        return DN_ERR_UNSUPPORTED;
    }
    if (ESRCH == error) {
        return dn_shm_cma_gone(peer);
    }
    dn_log_error("the kernel refuses to %s memory of PID %" PRIu32 " (%s); the key or an address is wrong",
                 write ? "write" : "read", peer->base.pid, strerror(error));
    return EFAULT == error ? DN_ERR_RANGE : DN_ERR_ACCESS;
}

/**
 * Check that the peer's number still names the peer's process. The kernel gives the number to another process some time after the first
 * one has ended. So a value that only the peer has in its memory is read again before the first copy in each tick of a clock, 1 to
 * 10 ms. For a copy to reach another process, all numbers would have to be used up within a tick. The check takes half a microsecond.
 */
static dn_status_t dn_shm_cma_prove(dn_shm_peer_t *peer, int write)
{
    const uint64_t now = dn_shm_now_ns();

    if (now == dn_load_acquire(&peer->process.proved)) {
        return DN_OK;
    }
    errno = 0;
    if (dn_shm_cma_probe(peer)) {
        dn_store_release(&peer->process.proved, now);
        return DN_OK;
    }
    if (0 == errno) {
        /* Read, and not the peer's: of another process, which may have started within the same tick, or its port is closed. */
        return dn_shm_cma_gone(peer);
    }
    if (EPERM != errno || dn_shm_gone(peer->process.os_pid, peer->process.start_time)) {
        /* It has ended; or it lives, and cannot be read now. */
        errno = ESRCH;
    }
    return dn_shm_cma_error(peer, write);
}

/** Move all bytes of two lists of equal length; the kernel may stop at any byte. */
static dn_status_t dn_shm_cma_move(dn_shm_peer_t *peer, struct iovec *local, size_t nlocal,
                                   struct iovec *remote, size_t nremote, uint64_t len, int write)
{
    const dn_status_t status = dn_shm_cma_prove(peer, write);
    if (DN_OK != status) {
        return status;
    }
    while (0 != len) {
        const ssize_t moved =
            write ? process_vm_writev((pid_t) peer->process.os_pid, local, nlocal, remote, nremote, 0)
                  : process_vm_readv((pid_t) peer->process.os_pid, local, nlocal, remote, nremote, 0);
        if (0 >= moved) {
            return dn_shm_cma_error(peer, write);
        }
        len -= (uint64_t) moved;
        for (int side = 0; side < 2 && 0 != len; side++) {
            struct iovec **iov = 0 == side ? &local : &remote;
            size_t *n = 0 == side ? &nlocal : &nremote;
            size_t gone = (size_t) moved;
            while (gone >= (*iov)->iov_len) {
                gone -= (*iov)->iov_len;
                (*iov)++;
                (*n)--;
            }
            (*iov)->iov_base = (char *) (*iov)->iov_base + gone;
            (*iov)->iov_len -= gone;
        }
    }
    return DN_OK;
}

dn_status_t dn_shm_cma_copy(dn_shm_peer_t *peer, void *local, uint64_t remote, uint64_t len, int write)
{
    struct iovec ours = {local, len};
    struct iovec theirs = {(void *) (uintptr_t) remote, len};
    return dn_shm_cma_move(peer, &ours, 1, &theirs, 1, len, write);
}

/** Fill @p iov with the next blocks of a walk, at most @p max bytes. @return bytes. */
static uint64_t dn_shm_iovecs(dn_sg_cursor_t *cursor, struct iovec *iov, size_t *n, uint64_t max)
{
    uint64_t total = 0;
    uint64_t at;

    *n = 0;
    while (DN_SHM_IOV > *n) {
        const uint64_t run = dn_sg_next(cursor, max - total, &at);
        if (0 == run) {
            break;
        }
        iov[*n].iov_base = (void *) (uintptr_t) at;
        iov[*n].iov_len = run;
        (*n)++;
        total += run;
    }
    return total;
}

/** Does the kernel copy this transfer? If not, the core processors of both ends do. */
static int dn_shm_cma_suits(const dn_xfer_t *xfer)
{
    if (0 != (xfer->flags & DN_XFER_ALONE)) {
        return 1;
    }
    const uint64_t local = dn_sg_blocks(xfer->local_sg);
    const uint64_t remote = dn_sg_blocks(xfer->remote_sg);
    const uint64_t most = local > remote ? local : remote;

    return 1 >= most || xfer->len / most >= DN_SHM_CMA_BLOCK_MIN;
}

/** Have the kernel copy a transfer with blocks or programs on either side. */
static dn_status_t dn_shm_cma_blocks(dn_shm_peer_t *peer, const dn_xfer_t *xfer, uint64_t remote, int write)
{
    struct iovec ours[DN_SHM_IOV];
    struct iovec theirs[DN_SHM_IOV];
    dn_sg_cursor_t local_at;
    dn_sg_cursor_t remote_at;

    dn_sg_start(&local_at, xfer->local_sg, (uintptr_t) xfer->local, xfer->len);
    dn_sg_start(&remote_at, xfer->remote_sg, remote, xfer->len);
    while (0 != local_at.left) {
        size_t nours;
        size_t ntheirs;
        dn_sg_cursor_t before = local_at;
        uint64_t len = dn_shm_iovecs(&local_at, ours, &nours, UINT64_MAX);
        const uint64_t other = dn_shm_iovecs(&remote_at, theirs, &ntheirs, len);
        if (other < len) {
            /* The remote list filled up first: take the local one again, as far as it reached. */
            local_at = before;
            len = dn_shm_iovecs(&local_at, ours, &nours, other);
        }
        const dn_status_t status = dn_shm_cma_move(peer, ours, nours, theirs, ntheirs, len, write);
        if (DN_OK != status) {
            return status;
        }
    }
    return DN_OK;
}

/** Copy between two address ranges of this process, with blocks or programs on either side. */
static void dn_shm_cpu_copy(const dn_xfer_t *xfer, uint64_t remote, int write)
{
    dn_sg_cursor_t local_at;
    dn_sg_cursor_t remote_at;

    if (NULL == xfer->local_sg && NULL == xfer->remote_sg) {
        void *there = (void *) (uintptr_t) remote;
        memmove(write ? there : xfer->local, write ? xfer->local : there, xfer->len);
        return;
    }
    dn_sg_start(&local_at, xfer->local_sg, (uintptr_t) xfer->local, xfer->len);
    dn_sg_start(&remote_at, xfer->remote_sg, remote, xfer->len);
    if (write) {
        dn_sg_copy(&remote_at, &local_at, xfer->len);
    } else {
        dn_sg_copy(&local_at, &remote_at, xfer->len);
    }
}

/** The place of an operation's remote side in this process's address space. */
typedef struct dn_shm_place {
    uint64_t base;
    dn_shm_view_t *view; /**< NULL: own memory */
} dn_shm_place_t;

/** The status for a key that names no segment of a peer. With its port, a peer has freed its segments. */
static dn_status_t dn_shm_no_segment(dn_shm_peer_t *peer)
{
    return dn_shm_has_closed(peer) ? dn_shm_want(peer) : DN_ERR_RANGE;
}

/** Find the place of a key's segment. DN_ERR_UNSUPPORTED: this CPU cannot touch the segment, or not now. After DN_OK the caller calls
 * dn_shm_unreach(). */
static dn_status_t dn_shm_reach(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_place_t *place)
{
    *place = (dn_shm_place_t){0};
    if (NULL != dn_key_way(key, DN_SHM_KEY_MAPPED)) {
        const dn_status_t status = dn_shm_enter_view(peer, key, &place->view);
        if (DN_OK == status) {
            place->base = (uintptr_t) dn_shm_view_base(place->view);
        }
        return DN_ERR_RANGE == status ? dn_shm_no_segment(peer) : status;
    }
    if (!peer->self || NULL == dn_key_way(key, DN_SHM_KEY_CMA)) {
        return DN_ERR_UNSUPPORTED;
    }
    /* Where it lies is ours to know: the key may have come from a peer. */
    dn_port_t *port = peer->base.iface->port;
    uint8_t *base;
    uint64_t len;
    dn_port_lock(port);
    const int lives = dn_port_segment(port, key->sid, key->generation, &base, &len);
    dn_port_unlock(port);
    if (!lives || key->len != len) {
        return DN_ERR_RANGE;
    }
    place->base = (uintptr_t) base;
    return DN_OK;
}

static void dn_shm_unreach(dn_shm_peer_t *peer, const dn_shm_place_t *place)
{
    if (NULL != place->view) {
        dn_shm_leave_view(peer, place->view);
    }
}

void dn_shm_signal(dn_shm_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    if (0 != (xfer->flags & DN_XFER_STATUS_REMOTE)) {
        dn_shm_aotf(&peer->base.hot, xfer->remote_status, xfer->remote_value, sizeof(uint64_t));
    }
    if (0 != (xfer->flags & DN_XFER_STATUS_LOCAL)) {
        dn_store_release(xfer->local_status, xfer->local_value);
    }
    if (write) {
        dn_shm_ring(peer);
    }
}

static dn_status_t dn_shm_transfer(dn_shm_peer_t *peer, const dn_xfer_t *xfer, int write)
{
    dn_counters_t *counters = peer->base.iface->counters;
    const dn_key_t *key = xfer->key;
    const dn_key_way_t *way;
    dn_shm_place_t place;
    dn_xfer_t plain;

    xfer = dn_xfer_plain(xfer, &plain);
    dn_status_t status = dn_shm_reach(peer, key, &place);
    if (DN_OK == status) {
        dn_shm_cpu_copy(xfer, place.base + xfer->roff, write);
        dn_shm_unreach(peer, &place);
        dn_count(&counters->mapped_bytes, xfer->len);
    } else if (DN_ERR_UNSUPPORTED == status && peer->cma && dn_shm_cma_suits(xfer)
               && NULL != (way = dn_key_way(key, DN_SHM_KEY_CMA))) {
        const uint64_t remote = way->word[0] + xfer->roff;
        status = DN_ERR_UNSUPPORTED;
        if (NULL == xfer->local_sg && NULL == xfer->remote_sg && xfer->len >= peer->help_min
            && 0 == (xfer->flags & DN_XFER_UNSHARED) && !dn_shm_shares_cores((dn_shm_t *) peer->base.iface)) {
            /* Not where cores are shared: a helper that is not running would hold up the last chunk. */
            status = dn_shm_share(peer, xfer, remote, write);
        }
        if (DN_ERR_UNSUPPORTED != status) {
            return status;
        }
        if (NULL != xfer->local_sg || NULL != xfer->remote_sg) {
            status = dn_shm_cma_blocks(peer, xfer, remote, write);
        } else {
            status = dn_shm_cma_copy(peer, xfer->local, remote, xfer->len, write);
        }
        dn_count(&counters->cma_bytes, DN_OK == status ? xfer->len : 0);
    }
    if (DN_OK == status) {
        dn_shm_signal(peer, xfer, write);
    }
    return status;
}

dn_status_t dn_shm_push(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_shm_transfer((dn_shm_peer_t *) peer, xfer, 1);
}

dn_status_t dn_shm_pull_op(dn_peer_t *peer, const dn_xfer_t *xfer)
{
    return dn_shm_transfer((dn_shm_peer_t *) peer, xfer, 0);
}

dn_status_t dn_shm_atomic(dn_peer_t *hot, const dn_amo_t *amo)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) hot;
    dn_shm_place_t place;

    if (0 != dn_load_relaxed_u32(&peer->views.passed) && 0 != dn_load_acquire_u32(&peer->base.core.amos)) {
        /* Not ahead of an earlier one of this thread. The acquire pairs with the end of that one, in whichever thread. */
        return DN_ERR_UNSUPPORTED;
    }
    dn_status_t status = dn_shm_reach(peer, amo->key, &place);
    if (DN_OK == status) {
        if (0 == (place.base + amo->roff) % amo->width) {
            dn_amo_run((void *) (uintptr_t) (place.base + amo->roff), amo);
            dn_shm_ring(peer);
        } else {
            status = DN_ERR_PARAM;
        }
        dn_shm_unreach(peer, &place);
    } else if (DN_ERR_UNSUPPORTED == status && NULL != dn_key_way(amo->key, DN_SHM_KEY_MAPPED)) {
        dn_store_relaxed_u32(&peer->views.passed, 1);
    }
    return status;
}
