/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit_tag.h
 * What an engine of two-sided messages tells its owner, where a test expects none of it: set the members of dn_tag_config_t to these.
 */
#ifndef DN_UNIT_TAG_H
#define DN_UNIT_TAG_H

#include "dn_tag_int.h"

static inline void dn_unit_tag_no_progress(void *arg) {}

static inline void dn_unit_tag_lost(dn_tag_peer_t *peer, int matters, void *arg)
{
    fail_msg("a peer was lost");
}

static inline void dn_unit_tag_no_memory(void *arg)
{
    fail_msg("memory ran out");
}

#endif
