/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model_op.h
 * Transfers in flight: what PUSH and PULL (dn_model_dma.c) have in common (dn_model_op.c).
 */
#ifndef DN_MODEL_OP_H
#define DN_MODEL_OP_H

#include "dn_model_int.h"
#include "dn_sg.h"
#include "dn_xfer.h"

typedef enum dn_op_way { DN_OP_DMA, DN_OP_WINDOW, DN_OP_PULL } dn_op_way_t;

/** A transfer in flight; lives while a packet of it is under way or its port has not signalled it. */
struct dn_model_op {
    dn_model_op_t *next;      /**< of the port's list of those in flight */
    dn_model_op_t *next_done; /**< of the complete ones */
    dn_model_iface_t *iface;  /**< NULL: given up, only packets still know it */
    dn_model_peer_t *peer;
    dn_model_node_t *near;
    dn_model_node_t *far;
    uint32_t number; /**< of the target port */
    dn_pgid_t pgid;
    dn_op_way_t way;
    dn_xfer_t xfer; /**< its arrays are copies, in blocks */
    dn_sg_t local_sg;
    dn_sg_t remote_sg;
    dn_prog_use_t local_use;
    dn_prog_use_t remote_use;
    dn_block_t *blocks;
    dn_key_t key;
    dn_sg_cursor_t local; /**< the walk over both sides */
    dn_sg_cursor_t remote;
    uint64_t local_at;
    uint64_t local_left;
    uint64_t remote_at;
    uint64_t remote_left;
    uint64_t unsent;  /**< bytes for which no packet has been made */
    int made;         /**< at least one has: a transfer of nothing has one, too */
    uint64_t under;   /**< packets with data under way */
    uint64_t kick_ps; /**< the NIC knows of the first request; the others follow at the host's pace */
    uint64_t request_ps;
    uint64_t pass_ps; /**< the hardwired part is free for the next page */
    uint64_t asked;   /**< PULL: bytes left of the request in hand */
    dn_status_t status;
    int complete;
    uint32_t refs;
};

static inline uint64_t dn_model_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t dn_model_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** A packet, or the port, needs it no more. */
void dn_model_op_give(dn_model_op_t *op);
/** A transfer with copies of its description; NULL: no memory. */
dn_model_op_t *dn_model_op_new(dn_model_peer_t *peer, const dn_xfer_t *xfer, dn_op_way_t way);
/** All packets are where they go; the initiator's host learns of it by its next poll. */
void dn_model_op_complete(dn_model_op_t *op);
/** Where a request's bytes are at the target, as its RVATLB and the check of the group say; NULL with the
 * reason. */
uint8_t *dn_model_op_place(dn_model_t *model, const dn_model_op_t *op, uint64_t roff, uint64_t len,
                           dn_status_t *status_p);
/** Number of a page of the transfer's segment, for a TLB. */
uint64_t dn_model_op_remote_page(const dn_model_node_t *node, const dn_model_op_t *op, uint64_t roff);
/** Does the hardware know how the remote side lies? Programs are for core processors, unless the NIC
 * interprets lists. */
int dn_model_op_fits(const dn_model_node_t *node, const dn_xfer_t *xfer);
/** Does the page map reach the segment, or is there room to enter it? If not the core processors do the
 * transfer by messages. */
int dn_model_op_maps(dn_model_peer_t *peer, const dn_xfer_t *xfer);
/** The next piece that lies together on both sides and on one page of the side it is read from, at most @p
 * max bytes. */
uint64_t dn_model_op_next(dn_model_op_t *op, uint64_t max, int from_remote, uint64_t *local_p,
                          uint64_t *remote_p);
dn_model_packet_t *dn_model_op_packet(dn_model_op_t *op, dn_model_node_t *from, dn_model_node_t *to,
                                      dn_packet_kind_t kind, uint64_t len, dn_model_deliver_fn_t deliver);
void dn_model_op_packet_free(dn_model_t *model, dn_model_packet_t *packet);
/** A packet with data for the other side's memory, to be sent when the DMA reads it from @p start_ps on. */
void dn_model_op_send(dn_model_packet_t *packet, uint64_t start_ps);
/** The host describes a request; when the NIC knows of the first, and the pace of further ones. */
void dn_model_op_request(dn_model_op_t *op);

#endif
