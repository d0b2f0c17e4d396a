/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_model_nodes.h
 * Nodes of the model for unit tests: a port each, what the others have to know of it, and a peer of each other.
 */
#ifndef DN_MODEL_NODES_H
#define DN_MODEL_NODES_H

#include "dn_unit.h"

#include "dn_model.h"

enum { NODES_MAX = 8, NODE_MEMORY = 1 << 18, NODE_AREA = 16384 };

typedef struct node {
    uint32_t rank;
    dn_port_t *port;
    dn_peer_t *peer[NODES_MAX];
    dn_segment_t *segment;
    uint8_t *memory;
    uint8_t *area; /**< LLCM */
} node_t;

static struct {
    dn_model_config_t config;
    dn_model_report_t report;
    uint32_t arrived;
    uint8_t address[NODES_MAX][DN_ADDRESS_MAX];
    size_t address_len[NODES_MAX];
    uint64_t off[NODES_MAX];
    dn_key_t key[NODES_MAX];
    uint32_t group[NODES_MAX]; /**< first byte of the PGID */
    uint32_t llcm_bytes;
    uint32_t ring_lines;
    void (*fn)(node_t *self);
} nodes;

static inline void nodes_meet(void)
{
    const uint32_t wanted = (nodes.arrived / nodes.config.nodes + 1) * nodes.config.nodes;

    nodes.arrived++;
    while (nodes.arrived < wanted) {
        dn_model_yield();
    }
}

static inline dn_status_t node_connect(node_t *self, uint32_t to)
{
    return dn_connect(self->port, nodes.address[to], nodes.address_len[to], &self->peer[to]);
}

static inline void node_enter(uint32_t rank, void *arg)
{
    node_t self = {.rank = rank};
    dn_job_t job = {.pid = rank, .nlocal = nodes.config.nodes};
    dn_config_t config;
    void *area;

    (void) arg;
    dn_config_init(&config);
    config.ring_lines = 0 != nodes.ring_lines ? nodes.ring_lines : 64;
    config.llcm_bytes = 0 != nodes.llcm_bytes ? nodes.llcm_bytes : DN_MODEL_LLCM_BYTES;
    job.key.byte[0] = (uint8_t) nodes.group[rank];
    assert_int_equal(dn_open("model", &job, &config, &self.port), DN_OK);
    assert_int_equal(dn_llcm_alloc(self.port, NODE_AREA, &nodes.off[rank], &area), DN_OK);
    self.area = area;
    assert_int_equal(dn_segment_alloc(self.port, NODE_MEMORY, &self.segment), DN_OK);
    self.memory = dn_segment_base(self.segment);
    dn_segment_key(self.segment, &nodes.key[rank]);
    nodes.address_len[rank] = sizeof(nodes.address[rank]);
    assert_int_equal(dn_address(self.port, nodes.address[rank], &nodes.address_len[rank]), DN_OK);
    nodes_meet();
    nodes.fn(&self);
    nodes_meet();
    dn_close(self.port);
}

/** Defaults for so many nodes. */
static inline void nodes_init(const char *profile, uint32_t count)
{
    memset(&nodes, 0, sizeof(nodes));
    dn_model_config_init(&nodes.config);
    nodes.config.profile = profile;
    nodes.config.nodes = count;
}

static inline dn_status_t nodes_run(void (*fn)(node_t *self))
{
    nodes.fn = fn;
    nodes.arrived = 0;
    return dn_model_run(&nodes.config, node_enter, NULL, &nodes.report);
}

static inline void node_settle(dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(peer))) {
    }
    assert_int_equal(status, DN_OK);
}

/** A completion that keeps its status. */
typedef struct node_comp {
    dn_comp_t comp;
    unsigned signals;
    dn_status_t status;
} node_comp_t;

static inline void node_signalled(dn_comp_t *comp, dn_status_t status)
{
    ((node_comp_t *) comp)->signals++;
    ((node_comp_t *) comp)->status = status;
}

/** PUSH or PULL to its end. */
static inline dn_status_t node_transfer(node_t *self, uint32_t to, const dn_xfer_t *xfer, int push)
{
    node_comp_t comp = {{node_signalled}, 0, DN_INPROGRESS};
    dn_xfer_t mine = *xfer;

    mine.comp = &comp.comp;
    const dn_status_t status = push ? dn_push(self->peer[to], &mine) : dn_pull(self->peer[to], &mine);
    while (DN_INPROGRESS == status && 0 == comp.signals) {
        dn_progress(self->port);
    }
    return DN_INPROGRESS == status ? comp.status : status;
}

#endif
