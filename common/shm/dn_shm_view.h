/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_view.h
 * Segments of peers that are mapped here. Any thread may call.
 */
#ifndef DN_SHM_VIEW_H
#define DN_SHM_VIEW_H

#include "dn_shm_int.h"

/**
 * The mapping of a peer's allocated segment. The caller calls dn_shm_leave_view() after use.
 * DN_ERR_RANGE: the key is stale or made up. DN_ERR_UNSUPPORTED: the segment cannot be mapped now.
 */
dn_status_t dn_shm_enter_view(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_view_t **view_p);
/** End the use of a view. The last user of a stale view unmaps it. */
void dn_shm_leave_view(dn_shm_peer_t *peer, dn_shm_view_t *view);
/** First byte of the segment. */
uint8_t *dn_shm_view_base(const dn_shm_view_t *view);
/** Map a segment for the user (dn_segment_map()): the mapping stays as long as the peer. */
dn_status_t dn_shm_map(dn_peer_base_t *peer, const dn_key_t *key, void **base_p);
/** Unmap all views of a peer, which is about to be freed. */
void dn_shm_drop_views(dn_shm_peer_t *peer);

#endif
