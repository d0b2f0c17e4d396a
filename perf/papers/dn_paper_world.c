/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_paper_world.h"

#include <stdio.h>
#include <stdlib.h>

void dn_paper_need(dn_status_t status, const char *what)
{
    if (DN_OK > status) {
        fprintf(stderr, "node %u: %s: %s\n", dn_model_node(), what, dn_strerror(status));
        exit(1);
    }
}

void dn_paper_init(dn_paper_world_t *world, const char *profile, uint32_t nodes)
{
    *world = (dn_paper_world_t){.area = DN_PAPER_AREA};
    dn_model_config_init(&world->model);
    world->model.profile = profile;
    world->model.nodes = nodes;
    world->model.seed = 1;
}

void dn_paper_meet(dn_paper_node_t *self)
{
    dn_paper_world_t *world = self->world;
    const uint32_t wanted = (world->arrived / world->model.nodes + 1) * world->model.nodes;

    world->arrived++;
    if (world->arrived == wanted) {
        dn_model_wake();
    }
    while (world->arrived < wanted) {
        dn_model_yield();
    }
}

static void enter(uint32_t rank, void *arg)
{
    dn_paper_world_t *world = arg;
    dn_paper_seat_t *seat = &world->seat[rank];
    dn_paper_node_t self = {.world = world, .rank = rank};
    const dn_job_t job = {.pid = rank, .nlocal = world->model.nodes};
    dn_config_t config;
    void *area;

    dn_config_init(&config);
    config.ring_lines = 64;
    config.max_peers = 16384;
    config.llcm_bytes = 0 != world->llcm_bytes ? world->llcm_bytes : DN_MODEL_LLCM_BYTES;
    dn_paper_need(dn_open("model", &job, &config, &self.port), "dn_open");
    dn_paper_need(dn_llcm_alloc(self.port, world->area, &seat->off, &area), "dn_llcm_alloc");
    self.area = area;
    if (0 != world->segment) {
        dn_segment_t *segment;
        dn_paper_need(dn_segment_alloc(self.port, world->segment, &segment), "dn_segment_alloc");
        dn_segment_key(segment, &seat->key);
        self.memory = dn_segment_base(segment);
    }
    seat->address_len = sizeof(seat->address);
    dn_paper_need(dn_address(self.port, seat->address, &seat->address_len), "dn_address");
    dn_paper_meet(&self);
    world->fn(&self, world->arg);
    dn_paper_meet(&self);
    dn_close(self.port);
}

void dn_paper_run(dn_paper_world_t *world, dn_paper_fn_t fn, void *arg)
{
    world->seat = calloc(world->model.nodes, sizeof(*world->seat));
    world->fn = fn;
    world->arg = arg;
    world->arrived = 0;
    if (NULL == world->seat) {
        dn_paper_need(DN_ERR_NOMEM, "the seats of the nodes");
    }
    dn_paper_need(dn_model_run(&world->model, enter, world, &world->report), world->model.profile);
    free(world->seat);
}

dn_peer_t *dn_paper_peer(dn_paper_node_t *self, uint32_t rank)
{
    const dn_paper_seat_t *seat = &self->world->seat[rank];
    dn_peer_t *peer = NULL;

    dn_paper_need(dn_connect(self->port, seat->address, seat->address_len, &peer), "dn_connect");
    return peer;
}

void dn_paper_aotf(dn_paper_node_t *self, dn_peer_t *peer, uint64_t off, uint64_t value, size_t size)
{
    dn_status_t status;

    while (DN_ERR_AGAIN == (status = dn_aotf(peer, off, value, size))) {
        dn_progress(self->port);
    }
    dn_paper_need(status, "dn_aotf");
}
