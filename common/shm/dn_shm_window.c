/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_window.c
 * Windows: allocated segments of peers, mapped here when a key first names them, and kept for the next time.
 *
 * A peer may name as many segments as it likes, in announcements or in keys that it gives to its users. Each of them is one mapping, of
 * which a process has some 65000 for all purposes. So DN_SHM_WINDOWS of a peer are kept at most. For one more, that goes which was
 * unused for longest; it is mapped again when a key names it again. What dn_segment_map() gave to a caller stays. Where all of
 * them are such, nothing more of that peer is mapped: PUSH and PULL go by messages.
 */
#include "dn_config.h"

#include "dn_shm_window.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_shm_file.h"

/**
 * The life of a window; each arrow is one dn_shm_window_turn(), under the port's lock:
 *
 *   KEPT ---> GIVEN    dn_segment_map()
 *    |
 *    +------> STALE    its segment was freed
 */
enum dn_shm_window_state {
    DN_SHM_WINDOW_KEPT,  /**< for the next time; it goes when it is in the way */
    DN_SHM_WINDOW_GIVEN, /**< to a caller: it stays as long as the peer */
    DN_SHM_WINDOW_STALE, /**< it goes when nobody copies any more */
};

/** An allocated segment of a peer, mapped here. */
struct dn_shm_window {
    struct dn_shm_window *next; /**< used before this one */
    uint32_t sid;
    uint32_t generation;
    uint64_t len;
    uint8_t *base;
    uint32_t users; /**< threads that copy now */
    enum dn_shm_window_state state;
};

/** Only one that is KEPT has anywhere to go. */
static void dn_shm_window_turn(dn_shm_window_t *window, enum dn_shm_window_state to)
{
    if (DN_SHM_WINDOW_KEPT == window->state) {
        window->state = to;
    }
}

static void dn_shm_unmap_window(dn_shm_peer_t *peer, dn_shm_window_t *window)
{
    dn_shm_window_t **at = &peer->windows.first;
    while (window != *at) {
        at = &(*at)->next;
    }
    *at = window->next;
    peer->windows.count--;
    munmap(window->base, DN_SHM_PAGE + window->len);
    free(window);
}

/** May it be unmapped? */
static int dn_shm_is_idle(const dn_shm_window_t *window)
{
    return 0 == window->users && DN_SHM_WINDOW_GIVEN != window->state;
}

/** Unmap the windows whose segments were freed since. */
static void dn_shm_drop_freed(dn_shm_peer_t *peer)
{
    for (dn_shm_window_t *window = peer->windows.first, *next; NULL != window; window = next) {
        next = window->next;
        const dn_shm_segment_head_t *head = (const dn_shm_segment_head_t *) window->base;
        if (dn_shm_is_idle(window) && window->generation != dn_load_acquire_u32(&head->live)) {
            dn_shm_unmap_window(peer, window);
        }
    }
}

/** Have room for one window more. @return 0: each is in use, or given to a caller. */
static int dn_shm_make_room(dn_shm_peer_t *peer)
{
    dn_shm_window_t *oldest = NULL;

    dn_shm_drop_freed(peer);
    if (DN_SHM_WINDOWS > peer->windows.count) {
        return 1;
    }
    for (dn_shm_window_t *window = peer->windows.first; NULL != window; window = window->next) {
        oldest = dn_shm_is_idle(window) ? window : oldest;
    }
    if (NULL != oldest) {
        dn_shm_unmap_window(peer, oldest);
        return 1;
    }
    if (!peer->windows.crowded) {
        peer->windows.crowded = 1;
        dn_log_error("PID %" PRIu32
                     " names more segments than the %u of it that are mapped and in use; no other of its "
                     "is mapped, they are reached by messages",
                     peer->base.pid, (unsigned) DN_SHM_WINDOWS);
    }
    return 0;
}

/** What a failed call says of a key: nothing, when this process has reached one of its limits. */
static dn_status_t dn_shm_map_error(void)
{
    return EMFILE == errno || ENFILE == errno || ENOMEM == errno ? DN_ERR_UNSUPPORTED : DN_ERR_RANGE;
}

/**
 * Map an allocated segment of a peer, which the key says it is: a memfd of this user that cannot shrink, as long as the key says.
 * DN_ERR_RANGE: it is none. DN_ERR_UNSUPPORTED: no descriptor or memory for it now.
 */
static dn_status_t dn_shm_map_window(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_window_t **window_p)
{
    const uint64_t bytes = DN_SHM_PAGE + key->len;
    dn_shm_window_t *window = NULL;
    dn_status_t status = DN_ERR_RANGE;
    struct stat info;

    if (!dn_shm_make_room(peer)) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_key_way_t *way = dn_key_way(key, DN_SHM_KEY_MAPPED);
    const int fd = dn_shm_open_fd(peer->process.os_pid, (int32_t) way->fd, "");
    if (0 > fd) {
        return dn_shm_map_error();
    }
    const int seals = fcntl(fd, F_GET_SEALS);
    if (0 >= seals || 0 == (seals & F_SEAL_SHRINK) || 0 != fstat(fd, &info) || info.st_uid != geteuid()
        || (uint64_t) info.st_size != bytes) {
        goto out_close;
    }
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (MAP_FAILED == mem) {
        status = dn_shm_map_error();
        goto out_close;
    }
    (void) madvise(mem, bytes, MADV_HUGEPAGE);
    const dn_shm_segment_head_t *head = mem;
    if (DN_SHM_MAGIC != head->magic || head->len != key->len || head->sid != key->sid) {
        goto err_unmap;
    }
    window = malloc(sizeof(*window));
    if (NULL == window) {
        status = DN_ERR_UNSUPPORTED;
        goto err_unmap;
    }
    *window = (dn_shm_window_t){.next = peer->windows.first,
                                .sid = key->sid,
                                .generation = key->generation,
                                .len = key->len,
                                .base = mem};
    peer->windows.first = window;
    peer->windows.count++;
    *window_p = window;
    status = DN_OK;
    goto out_close;

err_unmap:
    munmap(mem, bytes);
out_close:
    close(fd);
    return status;
}

void dn_shm_drop_windows(dn_shm_peer_t *peer)
{
    while (NULL != peer->windows.first) {
        dn_shm_unmap_window(peer, peer->windows.first);
    }
}

void dn_shm_leave_window(dn_shm_peer_t *peer, dn_shm_window_t *window)
{
    dn_port_lock(peer->base.iface->port);
    window->users--;
    if (DN_SHM_WINDOW_STALE == window->state && dn_shm_is_idle(window)) {
        dn_shm_unmap_window(peer, window);
    }
    dn_port_unlock(peer->base.iface->port);
}

/** The window of a key, which becomes the first: what was unused for longest is the last. NULL: there is none. */
static dn_shm_window_t *dn_shm_find_window(dn_shm_peer_t *peer, const dn_key_t *key)
{
    for (dn_shm_window_t **at = &peer->windows.first; NULL != *at; at = &(*at)->next) {
        dn_shm_window_t *window = *at;
        if (window->sid == key->sid && window->generation == key->generation && window->len == key->len) {
            *at = window->next;
            window->next = peer->windows.first;
            peer->windows.first = window;
            return window;
        }
    }
    return NULL;
}

dn_status_t dn_shm_enter_window(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_window_t **window_p)
{
    dn_status_t status = DN_OK;

    if (INT64_MAX - DN_SHM_PAGE < key->len) {
        return DN_ERR_RANGE;
    }
    dn_port_lock(peer->base.iface->port);
    dn_shm_window_t *window = dn_shm_find_window(peer, key);
    if (NULL == window) {
        status = dn_shm_map_window(peer, key, &window);
    }
    if (DN_OK == status) {
        const dn_shm_segment_head_t *head = (const dn_shm_segment_head_t *) window->base;
        window->users++;
        if (key->generation != dn_load_acquire_u32(&head->live)) {
            dn_shm_window_turn(window, DN_SHM_WINDOW_STALE);
            dn_shm_leave_window(peer, window);
            status = DN_ERR_RANGE;
        } else {
            *window_p = window;
        }
    }
    dn_port_unlock(peer->base.iface->port);
    return status;
}

uint8_t *dn_shm_window_base(const dn_shm_window_t *window)
{
    return window->base + DN_SHM_PAGE;
}

dn_status_t dn_shm_map(dn_peer_base_t *base, const dn_key_t *key, void **base_p)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;
    dn_shm_window_t *window;

    if (NULL == dn_key_way(key, DN_SHM_KEY_MAPPED)) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_status_t status = dn_shm_enter_window(peer, key, &window);
    if (DN_OK == status) {
        dn_shm_window_turn(window, DN_SHM_WINDOW_GIVEN);
        *base_p = dn_shm_window_base(window);
        dn_shm_leave_window(peer, window);
    }
    return status;
}
