/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_core.h
 * The core processor. An operation that a device's fast path cannot do is sent to the target by messages on DN_CHAN_CORE. The
 * target's dn_progress() does the operation (Martini paper, section 9: substitution).
 *
 * A PUSH travels as blocks with their data, a PULL as a request that data answers, an atomic operation as one line each way.
 * Where the remote side is a use of a program, the program is shipped once (dn_ship.h), and the messages name it: the target
 * scatters and gathers. Every number in a message is checked against the table of live segments.
 *
 * The memory that a peer can make this process keep is bounded: each process may wait for at most DN_CORE_ASKED_MAX answers of
 * a peer at a time. An operation beyond that waits at the initiator, as it would wait for credit.
 */
#ifndef DN_CORE_H
#define DN_CORE_H

#include "dn_device.h"
#include "dn_handle.h"

/** Core-processor state of a port. */
typedef struct dn_core {
    dn_handle_table_t operations; /**< operations of this process; replies name them by handle */
    dn_round_t sending;           /**< round of dn_core_peer_t::operations */
    dn_round_t answering;         /**< round of dn_core_peer_t::answers */
} dn_core_t;

/** Open the core processor of a port. @param[in] first  As for dn_handle_open(). */
void dn_core_open(dn_core_t *core, uint32_t first);
void dn_core_close(dn_core_t *core);

/** As dn_push(), dn_pull(), dn_atomic(), but by messages. The caller has checked the arguments (dn_xfer.h). Return DN_INPROGRESS or an
 * error. */
dn_status_t dn_core_push(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_core_pull(dn_peer_t *peer, const dn_xfer_t *xfer);
dn_status_t dn_core_atomic(dn_peer_t *peer, const dn_amo_t *amo);
/** As dn_core_atomic(), for 1 to DN_ATOMICS_MAX operations in one message. DN_ERR_AGAIN: none is started, as there is no credit now, or
 * others wait for it. */
dn_status_t dn_core_atomics(dn_peer_t *peer, const dn_amo_t *amo, size_t n);
/** As dn_aotf_line(), by one message. */
dn_status_t dn_core_aotf_line(dn_peer_t *peer, uint64_t off, const void *data, size_t len, uint64_t flag);

/** Some lines of a ring in a peer's LLCM. */
typedef struct dn_lines {
    uint64_t off;   /**< of the ring, a multiple of 64 */
    uint32_t depth; /**< its lines */
    uint32_t at;    /**< index of the first of these lines in the ring */
    uint32_t piece; /**< bytes of data in each line but the last, 1..DN_AOTF_LINE_MAX */
    uint32_t pad;
} dn_lines_t;

/** Lines that one message to a peer can hold; 1: the device stores each line in the peer's LLCM itself. */
uint32_t dn_core_lines_max(const dn_peer_t *peer);
/**
 * As dn_aotf_line() for one line after the other, but by one message, since each call that sends is dear. The lower half of the
 * flag rises by 1 for each line, and begins again at 0.
 *
 * @param[in] len  Bytes of all lines, at most dn_core_lines_max() pieces.
 */
dn_status_t dn_core_aotf_lines(dn_peer_t *peer, const dn_lines_t *ring, const void *data, size_t len,
                               uint64_t flag);

/** Handler of DN_CHAN_CORE; arg is the port. */
void dn_core_handler(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg);

/** Does an operation or an answer wait? */
static inline int dn_core_busy(const dn_core_t *core)
{
    return 0 != (core->sending.count | core->answering.count);
}

/** Send the operations and answers that wait, as far as credit allows. @return messages sent. */
int dn_core_progress(dn_port_t *port);

/** End the operations towards a peer that this process leaves. The peer may still wait for answers: they stay. */
void dn_core_leave(dn_port_t *port, dn_peer_base_t *peer);
/** End the operations towards a lost peer, and drop the answers to it. */
void dn_core_lost(dn_port_t *port, dn_peer_base_t *peer);

/** Forget the programs of a peer that is about to be freed. dn_core_lost() was called for the peer before. A thread of a device may still
 * copy by a program that it keeps. The peer is LOST or FORGOTTEN, so dn_core_alone() begins no new table. */
void dn_core_forget(dn_peer_base_t *peer);

#endif
