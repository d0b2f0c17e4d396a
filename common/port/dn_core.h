/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_core.h
 * The core processor: what a device's fast path cannot do is asked of the target by messages on
 * DN_CHAN_CORE and done there by its dn_progress() (Martini paper, section 9: substitution).
 *
 * PUSH travels as blocks with their data, PULL as a request answered by data, an atomic operation as
 * one line each way. Where the remote side is a use of a program, that is shipped once (dn_ship.h), and the messages
 * name it: the target scatters and gathers. Every number in a message is checked against the table of live segments.
 *
 * What a peer can make this process keep is bounded: each process asks a peer for at most DN_CORE_ASKED_MAX answers at a time.
 * An operation beyond that waits at the initiator, as for credit.
 */
#ifndef DN_CORE_H
#define DN_CORE_H

#include "dn_device.h"
#include "dn_handle.h"

/** Core-processor state of a port. */
typedef struct dn_core {
    dn_handle_table_t operations; /**< that this process started, as replies name them */
    dn_round_t sending;           /**< dn_core_peer_t::operations */
    dn_round_t answering;         /**< dn_core_peer_t::answers */
} dn_core_t;

/** @param[in] first  As of dn_handle_open(). */
void dn_core_open(dn_core_t *core, uint32_t first);
void dn_core_close(dn_core_t *core);

/** As dn_push(), dn_pull(), dn_atomic(), by messages, of what has been checked (dn_xfer.h). Return DN_INPROGRESS or an error. */
dn_status_t dn_core_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_core_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_core_atomic(dn_peer_t *peer, const dn_amo_t *amo);
/** As dn_aotf_line(), by one message. */
dn_status_t dn_core_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);

/** Some lines of a ring in a peer's LLCM. */
typedef struct dn_lines {
    uint64_t off;   /**< of the ring, a multiple of 64 */
    uint32_t depth; /**< its lines */
    uint32_t at;    /**< which of them is the first */
    uint32_t piece; /**< bytes of data in each but the last, 1..DN_AOTF_LINE_MAX */
    uint32_t pad;
} dn_lines_t;

/** Lines that one message to a peer can hold; 1: the device puts each where it belongs. */
uint32_t dn_core_lines_max(const dn_peer_t *peer);
/**
 * As dn_aotf_line() for one line after the other, by one message: what costs is the call that sends. The lower half of the
 * flag counts on, and begins again at 0.
 *
 * @param[in] len  Bytes of all, at most dn_core_lines_max() pieces.
 */
dn_status_t dn_core_aotf_lines(dn_peer_t *peer, const dn_lines_t *ring, const void *data, size_t len,
                               uint64_t flag);

/** Handler of DN_CHAN_CORE; arg is the port. */
void dn_core_handler(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/** Is anything waiting for credit? */
static inline int dn_core_busy(const dn_core_t *core)
{
    return 0 != (core->sending.count | core->answering.count);
}

/** Send what waits, as far as credit goes. @return messages sent. */
int dn_core_progress(dn_port_t *port);

/** Signal the operations towards a lost peer, drop its questions. */
void dn_core_lost(dn_port_t *port, dn_peer_base_t *peer);

/** The peer is about to be freed, and was lost to the core processor: forget its programs. */
void dn_core_forget(dn_peer_base_t *peer);

#endif
