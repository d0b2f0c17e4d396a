/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file conf_area.h
 * Memory that every process of a world offers to the others, once as each kind of segment, and transfers in flight.
 */
#ifndef CONF_AREA_H
#define CONF_AREA_H

#include "conformance.h"

enum { CONF_ALLOCATED = 0, CONF_REGISTERED = 1 };

/** An allocated and a registered segment of each process, keys on the board. */
typedef struct conf_area {
    dn_segment_t *segment[2];
    uint8_t *base[2];
    uint8_t *local; /**< as long, for the other side of a transfer */
    size_t len;
} conf_area_t;

/** Offer len bytes, filled with 0x55. Ends with a barrier. */
void conf_offer(dn_world_t *world, conf_area_t *area, size_t len);
/** Undo it where no barrier can be had: the peers have died. */
void conf_forget(conf_area_t *area);
/** Undo it. Begins with a barrier. */
void conf_retract(dn_world_t *world, conf_area_t *area);
/** The key of what a process offers. */
const dn_key_t *conf_key(const dn_world_t *world, int rank, int which);

/** Start a transfer; its completion says how it ended, also when it did so at once. */
void conf_start(dn_world_t *world, dn_peer_t *peer, dn_xfer_t *xfer, dn_world_comp_t *comp, int push);
/** Wait until all have ended, once each and well. */
void conf_finish(dn_world_t *world, const dn_world_comp_t *comp, size_t count);
/** The other of two refuses a transfer as PUSH and as PULL, with this status and a line in the log. */
void conf_refused(dn_world_t *world, const dn_xfer_t *xfer, dn_status_t wanted);

#endif
