/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_view.c
 * Views: allocated segments of peers. A segment is mapped here when a key first names it, and the view is kept for the next use.
 *
 * A peer may name any number of segments, in announcements or in keys that it gives to its users. Each view is one mapping, and a process
 * can have some 65000 mappings for all purposes. So DN_SHM_VIEWS views of a peer are kept at most. Where one more is needed, the view
 * that was unused for longest is unmapped. It is mapped again when a key names its segment again. A view that dn_segment_map() gave to
 * the user stays. Where all views of a peer are such, no further segment of that peer is mapped: PUSH and PULL go by messages.
 */
#include "dn_config.h"

#include "dn_shm_view.h"

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
 * The life of a view; each arrow is one dn_shm_view_turn(), under the port's lock:
 *
 *   KEPT ---> GIVEN    dn_segment_map()
 *    |
 *    +------> STALE    the peer has freed its segment
 */
enum dn_shm_view_state {
    DN_SHM_VIEW_KEPT,  /**< for the next time; it goes when it is in the way */
    DN_SHM_VIEW_GIVEN, /**< to a caller: it stays as long as the peer */
    DN_SHM_VIEW_STALE, /**< it goes when nobody copies any more */
};

/** An allocated segment of a peer, mapped here. */
struct dn_shm_view {
    struct dn_shm_view *next; /**< used before this one */
    uint32_t sid;
    uint32_t generation;
    uint64_t len;
    uint8_t *base;
    uint32_t users; /**< threads that copy now */
    enum dn_shm_view_state state;
};

/** Change the state of a view. Only a KEPT view changes its state. */
static void dn_shm_view_turn(dn_shm_view_t *view, enum dn_shm_view_state to)
{
    if (DN_SHM_VIEW_KEPT == view->state) {
        view->state = to;
    }
}

static void dn_shm_unmap_view(dn_shm_peer_t *peer, dn_shm_view_t *view)
{
    dn_shm_view_t **at = &peer->views.first;
    while (view != *at) {
        at = &(*at)->next;
    }
    *at = view->next;
    peer->views.count--;
    munmap(view->base, DN_SHM_PAGE + view->len);
    free(view);
}

/** May a view be unmapped? */
static int dn_shm_is_idle(const dn_shm_view_t *view)
{
    return 0 == view->users && DN_SHM_VIEW_GIVEN != view->state;
}

/** Unmap the views whose segments their peer has freed. */
static void dn_shm_drop_freed(dn_shm_peer_t *peer)
{
    for (dn_shm_view_t *view = peer->views.first, *next; NULL != view; view = next) {
        next = view->next;
        const dn_shm_segment_head_t *head = (const dn_shm_segment_head_t *) view->base;
        if (dn_shm_is_idle(view) && view->generation != dn_load_acquire_u32(&head->live)) {
            dn_shm_unmap_view(peer, view);
        }
    }
}

/** Make room for one more view. @return 0: each view is in use, or was given to the user. */
static int dn_shm_make_room(dn_shm_peer_t *peer)
{
    dn_shm_view_t *oldest = NULL;

    dn_shm_drop_freed(peer);
    if (DN_SHM_VIEWS > peer->views.count) {
        return 1;
    }
    for (dn_shm_view_t *view = peer->views.first; NULL != view; view = view->next) {
        oldest = dn_shm_is_idle(view) ? view : oldest;
    }
    if (NULL != oldest) {
        dn_shm_unmap_view(peer, oldest);
        return 1;
    }
    if (!peer->views.crowded) {
        peer->views.crowded = 1;
        dn_log_error("PID %" PRIu32
                     " names more segments than the %u of it that are mapped and in use; no other of its "
                     "is mapped, they are reached by messages",
                     peer->base.pid, (unsigned) DN_SHM_VIEWS);
    }
    return 0;
}

/** The status for a failed call. An error by a limit of this process says nothing about the key: DN_ERR_UNSUPPORTED. */
static dn_status_t dn_shm_map_error(void)
{
    return dn_shm_is_shortage(errno) ? DN_ERR_UNSUPPORTED : DN_ERR_RANGE;
}

/**
 * Map the allocated segment of a peer that a key names. The segment has to be a memfd of this user that cannot shrink, of the length
 * that the key says. DN_ERR_RANGE: it is no such segment. DN_ERR_UNSUPPORTED: there is no descriptor or memory for it now.
 */
static dn_status_t dn_shm_map_view(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_view_t **view_p)
{
    const uint64_t bytes = DN_SHM_PAGE + key->len;
    dn_shm_view_t *view = NULL;
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
    view = malloc(sizeof(*view));
    if (NULL == view) {
        status = DN_ERR_UNSUPPORTED;
        goto err_unmap;
    }
    *view = (dn_shm_view_t){.next = peer->views.first,
                            .sid = key->sid,
                            .generation = key->generation,
                            .len = key->len,
                            .base = mem};
    peer->views.first = view;
    peer->views.count++;
    *view_p = view;
    status = DN_OK;
    goto out_close;

err_unmap:
    munmap(mem, bytes);
out_close:
    close(fd);
    return status;
}

void dn_shm_drop_views(dn_shm_peer_t *peer)
{
    while (NULL != peer->views.first) {
        dn_shm_unmap_view(peer, peer->views.first);
    }
}

void dn_shm_leave_view(dn_shm_peer_t *peer, dn_shm_view_t *view)
{
    dn_port_lock(peer->base.iface->port);
    view->users--;
    if (DN_SHM_VIEW_STALE == view->state && dn_shm_is_idle(view)) {
        dn_shm_unmap_view(peer, view);
    }
    dn_port_unlock(peer->base.iface->port);
}

/** Find the view of a key, and put it first in the list: so the view that was unused for longest is last. NULL: there is none. */
static dn_shm_view_t *dn_shm_find_view(dn_shm_peer_t *peer, const dn_key_t *key)
{
    for (dn_shm_view_t **at = &peer->views.first; NULL != *at; at = &(*at)->next) {
        dn_shm_view_t *view = *at;
        if (view->sid == key->sid && view->generation == key->generation && view->len == key->len) {
            *at = view->next;
            view->next = peer->views.first;
            peer->views.first = view;
            return view;
        }
    }
    return NULL;
}

dn_status_t dn_shm_enter_view(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_view_t **view_p)
{
    dn_status_t status = DN_OK;

    if (INT64_MAX - DN_SHM_PAGE < key->len) {
        return DN_ERR_RANGE;
    }
    dn_port_lock(peer->base.iface->port);
    dn_shm_view_t *view = dn_shm_find_view(peer, key);
    if (NULL == view) {
        status = dn_shm_map_view(peer, key, &view);
    }
    if (DN_OK == status) {
        const dn_shm_segment_head_t *head = (const dn_shm_segment_head_t *) view->base;
        view->users++;
        if (key->generation != dn_load_acquire_u32(&head->live)) {
            dn_shm_view_turn(view, DN_SHM_VIEW_STALE);
            dn_shm_leave_view(peer, view);
            status = DN_ERR_RANGE;
        } else {
            *view_p = view;
        }
    }
    dn_port_unlock(peer->base.iface->port);
    return status;
}

uint8_t *dn_shm_view_base(const dn_shm_view_t *view)
{
    return view->base + DN_SHM_PAGE;
}

dn_status_t dn_shm_map(dn_peer_base_t *base, const dn_key_t *key, void **base_p)
{
    dn_shm_peer_t *peer = (dn_shm_peer_t *) base;
    dn_shm_view_t *view;

    if (NULL == dn_key_way(key, DN_SHM_KEY_MAPPED)) {
        return DN_ERR_UNSUPPORTED;
    }
    const dn_status_t status = dn_shm_enter_view(peer, key, &view);
    if (DN_OK == status) {
        dn_shm_view_turn(view, DN_SHM_VIEW_GIVEN);
        *base_p = dn_shm_view_base(view);
        dn_shm_leave_view(peer, view);
    }
    return status;
}
