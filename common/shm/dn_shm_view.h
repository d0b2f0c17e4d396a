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
 * The mapping of a peer's allocated segment; dn_shm_leave_view() comes after use.
 * DN_ERR_RANGE: the key is stale or made up. DN_ERR_UNSUPPORTED: it cannot be mapped now.
 */
dn_status_t dn_shm_enter_view(dn_shm_peer_t *peer, const dn_key_t *key, dn_shm_view_t **view_p);
/** Finish with a view; the last user of a stale one unmaps it. */
void dn_shm_leave_view(dn_shm_peer_t *peer, dn_shm_view_t *view);
/** First byte of the segment. */
uint8_t *dn_shm_view_base(const dn_shm_view_t *view);
/** Give one to a caller: it stays as long as the peer. */
dn_status_t dn_shm_map(dn_peer_base_t *peer, const dn_key_t *key, void **base_p);
/** Unmap all; the peer is about to be freed. */
void dn_shm_drop_views(dn_shm_peer_t *peer);

#endif
