/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dimm_send.h
 * DIMM_Send and DIMM_Recv as published (Send/Recv paper, 2003), a program over dimmnet.h: synchronous, blocking, no tags.
 *
 * Whoever comes first announces itself in its flag area at the other, whoever comes second moves the data: the sender by
 * PUSH (the device takes BOTF for up to 464 bytes), the receiver by PULL. A message that needs more than
 * the receive region's buffers goes in N pieces, announced by a split notice; every piece is followed by a notice and answered
 * by a reply. The published steps make N + 1 transfers of a count of N on three of the four sides; here all
 * make N (paper: "decrement; if it is not 1, repeat"). Where both announce themselves at once, which the paper leaves open, the
 * sender takes the receiver's announcement and goes second.
 */
#ifndef DN_DIMM_SEND_H
#define DN_DIMM_SEND_H

#include "dn_paper_world.h"

enum {
    DN_DIMM_BUFFER = 4096, /**< bytes of a buffer */
    DN_DIMM_BUFFERS = 255, /**< that a byte flag can manage; the paper's megabyte would hold one more */
    DN_DIMM_REGION = DN_DIMM_BUFFER * DN_DIMM_BUFFERS,
    DN_DIMM_LLCM = 64 /**< bytes of a flag area */
};

/** One's own end towards another rank. */
typedef struct dn_dimm {
    dn_port_t *port;
    dn_peer_t *peer;
    volatile uint64_t *flags; /**< own flag area for the peer: it writes here */
    uint64_t far_flags;       /**< offset of our flag area at the peer */
    uint8_t *receive;         /**< receive region for the peer, then the send region, in the own segment */
    uint8_t *send;
    dn_key_t far_key;
    uint64_t far_receive; /**< offsets of the peer's regions in its segment */
    uint64_t far_send;
    uint32_t pgid;    /**< 8 bits of the group */
    uint32_t buffers; /**< of the receive region that may be used, 1..DN_DIMM_BUFFERS */
    uint32_t sent;    /**< messages so far */
    uint32_t received;
    uint32_t notices[2]; /**< sent and received */
    uint64_t pieces;     /**< data transfers of this end */
} dn_dimm_t;

/** The end of a node towards the only other one: regions in its segment (2 * DN_DIMM_REGION bytes), flags at the start of its area. */
void dn_dimm_open(dn_dimm_t *dimm, dn_paper_node_t *self, uint32_t to);
/** Send and receive one message of the same length. */
void dn_dimm_send(dn_dimm_t *dimm, const void *data, uint32_t len);
void dn_dimm_recv(dn_dimm_t *dimm, void *data, uint32_t len);

#endif
