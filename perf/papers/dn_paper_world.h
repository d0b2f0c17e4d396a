/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_paper_world.h
 * What programs for nodes of the model need before they begin: ports, addresses, LLCM, segments, peers.
 */
#ifndef DN_PAPER_WORLD_H
#define DN_PAPER_WORLD_H

#include "dn_model.h"

enum {
    DN_PAPER_AREA = 1024
}; /**< bytes of LLCM that each node offers to the others, unless told otherwise */

/** What nodes see of each other without the network. */
typedef struct dn_paper_seat {
    uint8_t address[128];
    size_t address_len;
    uint64_t off; /**< of its LLCM area */
    dn_key_t key; /**< of its segment */
} dn_paper_seat_t;

typedef struct dn_paper_world dn_paper_world_t;

/** A node. */
typedef struct dn_paper_node {
    dn_paper_world_t *world;
    uint32_t rank;
    dn_port_t *port;
    uint8_t *area;   /**< its LLCM */
    uint8_t *memory; /**< its segment */
} dn_paper_node_t;

/** What a node of the world does. */
typedef void (*dn_paper_fn_t)(dn_paper_node_t *self, void *arg);

struct dn_paper_world {
    dn_model_config_t model;
    dn_model_report_t report;
    size_t area;         /**< bytes of LLCM a node offers */
    size_t segment;      /**< bytes of its segment, 0: none */
    uint32_t llcm_bytes; /**< of its port; 0: the default */
    dn_paper_fn_t fn;
    void *arg;
    dn_paper_seat_t *seat;
    uint32_t arrived;
};

/** Defaults: a profile, so many nodes back to back. */
void dn_paper_init(dn_paper_world_t *world, const char *profile, uint32_t nodes);
/** Run fn in all nodes; ends the program with a sentence when that fails. */
void dn_paper_run(dn_paper_world_t *world, dn_paper_fn_t fn, void *arg);
/** The peer of a rank, connected now if it was not. */
dn_peer_t *dn_paper_peer(dn_paper_node_t *self, uint32_t rank);
/** Wait for all; takes no network. */
void dn_paper_meet(dn_paper_node_t *self);
/** dn_aotf(), as often as it takes. */
void dn_paper_aotf(dn_paper_node_t *self, dn_peer_t *peer, uint64_t off, uint64_t value, size_t size);
/** End the program unless a status is DN_OK or DN_INPROGRESS. */
void dn_paper_need(dn_status_t status, const char *what);

#endif
