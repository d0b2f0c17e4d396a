/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_paper_parts.h"

#include <stdio.h>
#include <string.h>

enum { WARM = DN_PAPER_WARM, ROUNDS = DN_PAPER_ROUNDS, BURSTS = 16 };

uint8_t dn_paper_payload[DN_PAPER_PAYLOAD];

void dn_paper_cell(const char *table, const char *name, double value)
{
    printf("%s,%s,%.9g\n", table, name, value);
}

/** @name Patterns */
/** @{ */
/** Wait until the low bytes of the own word are a number. */
static void await(dn_paper_node_t *self, unsigned off, uint64_t number, unsigned size)
{
    const uint64_t mask = 8 == size ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;

    while ((*(volatile uint64_t *) (self->area + off) & mask) != (number & mask)) {
        dn_progress(self->port);
    }
}

static void rounds(dn_paper_node_t *self, void *arg)
{
    dn_paper_pattern_t *p = arg;
    const uint32_t nodes = self->world->model.nodes;
    const uint32_t to = (self->rank + 1) % nodes;
    dn_peer_t *peer = dn_paper_peer(self, to);
    const uint64_t off = self->world->seat[to].off;
    uint64_t start = 0;
    uint64_t legs = 0;

    dn_model_poll(0 == self->rank ? p->parent : p->child);
    for (uint64_t i = 1; i <= WARM + ROUNDS; i++) {
        if (WARM + 1 == i) {
            start = dn_model_now();
        }
        if (0 == self->rank) {
            p->sent_ps = dn_model_now();
            if (p->interrupt) {
                dn_paper_need(dn_model_aotf_interrupt(peer, off, i, p->size), "interrupt AOTF");
            } else {
                dn_paper_aotf(self, peer, off, i, p->size);
            }
        } else {
            await(self, 0, i, p->size);
            legs += WARM < i ? dn_model_now() - p->sent_ps : 0;
            if (p->again) {
                dn_model_read(DN_MODEL_READ_8);
            }
            dn_paper_aotf(self, peer, off, i, p->size);
        }
        if (0 == self->rank) {
            await(self, 0, i, p->size);
            if (p->again) {
                dn_model_read(DN_MODEL_READ_8);
            }
            dn_model_compute(p->compute_ps);
        }
    }
    if (0 == self->rank) {
        p->ns = (double) (dn_model_now() - start) / ROUNDS / 1e3;
    } else {
        p->leg_ns = (double) legs / ROUNDS / 1e3;
    }
}

dn_paper_pattern_t dn_paper_pattern(dn_paper_world_t *world, dn_paper_pattern_t p)
{
    dn_paper_run(world, rounds, &p);
    return p;
}

uint64_t dn_paper_value(const char *profile, const char *key)
{
    dn_model_profile_t *p = NULL;

    dn_paper_need(dn_model_profile_open(profile, &p), profile);
    const uint64_t value = dn_model_profile_value(p, key);
    dn_model_profile_close(p);
    return value;
}

double dn_paper_round_trip(const char *profile, dn_model_fabric_t fabric, const char *switches,
                           uint32_t count, uint32_t cable_m)
{
    dn_paper_world_t world;
    const uint64_t service = dn_paper_value(profile, "program_service");
    const int looped = DN_MODEL_INTERNAL == fabric || DN_MODEL_EXTERNAL == fabric;

    dn_paper_init(&world, profile, looped ? 1 : 2);
    world.model.fabric = fabric;
    world.model.fabric_profile = switches;
    world.model.switches = count;
    world.model.cable_m = cable_m;
    const dn_paper_pattern_t p = dn_paper_pattern(&world, (dn_paper_pattern_t){.parent = DN_MODEL_READ_4,
                                                                               .child = DN_MODEL_READ_4,
                                                                               .size = 4,
                                                                               .compute_ps = 2 * service});
    return p.ns;
}
/** @} */

/** @name One way */
/** @{ */
static void settle(dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(peer))) {
    }
    dn_paper_need(status, "dn_flush");
}

/** One of the kind, with a mark that its target can see, to completion. */
static void go(dn_paper_node_t *self, dn_peer_t *peer, uint32_t to, const dn_paper_one_way_t *one,
               uint8_t mark)
{
    const int push = DN_ONE_PULL != one->what && DN_ONE_BURST_PULL != one->what;
    const dn_xfer_t xfer = {.local = dn_paper_payload, .key = &self->world->seat[to].key, .len = one->len};

    dn_paper_payload[0 == one->len ? 0 : one->len - 1] = mark;
    if (DN_ONE_STORE == one->what) {
        dn_paper_aotf(self, peer, self->world->seat[to].off, mark, 8);
    } else {
        dn_paper_need(push ? dn_push(peer, &xfer) : dn_pull(peer, &xfer), "transfer");
    }
    settle(peer);
}

static void once(dn_paper_node_t *self, void *arg)
{
    dn_paper_one_way_t *one = arg;
    const int here = DN_ONE_PULL == one->what || one->until_ack || DN_ONE_BURST_PUSH <= one->what;

    const uint32_t targets = self->world->model.nodes - 1;

    dn_model_push_by(DN_ONE_WINDOW == one->what ? DN_MODEL_WAY_BOTF : DN_MODEL_WAY_DMA);
    dn_model_poll(DN_MODEL_READ_NOTHING);
    for (uint32_t to = 1; 0 == self->rank && to <= targets; to++) {
        const int bursts = DN_ONE_BURST_PUSH <= one->what ? BURSTS : 1;
        dn_peer_t *peer = dn_paper_peer(self, to);
        /* A first one takes what is missing in the NIC's tables. */
        go(self, peer, to, one, 1);
        /* It is acknowledged before its last byte has left the link, where the way is short. */
        dn_model_compute(UINT64_C(1000000000));
        one->start_ps[to] = dn_model_now();
        for (int i = 0; i < bursts; i++) {
            go(self, peer, to, one, 2);
        }
        one->ns += here ? (double) (dn_model_now() - one->start_ps[to]) / bursts / targets / 1e3 : 0;
    }
    if (0 != self->rank && !here) {
        const volatile uint8_t *mark = DN_ONE_STORE == one->what ? self->area : self->memory + one->len - 1;
        while (2 != *mark) {
            dn_progress(self->port);
        }
        one->ns += (double) (dn_model_now() - one->start_ps[self->rank]) / targets / 1e3;
    }
}

double dn_paper_one_way_by(const char *profile, dn_model_fabric_t fabric, const char *box, uint32_t switches,
                           uint32_t cable_m, dn_paper_one_way_t one)
{
    dn_paper_world_t world;

    dn_paper_init(&world, profile, 1 + (0 == one.targets ? 1 : one.targets));
    world.model.fabric_profile = box;
    world.model.fabric = fabric;
    world.model.switches = switches;
    world.model.cable_m = cable_m;
    world.segment = DN_PAPER_PAYLOAD;
    dn_paper_run(&world, once, &one);
    return one.ns;
}

double dn_paper_one_way(const char *profile, dn_model_fabric_t fabric, uint32_t switches, uint32_t cable_m,
                        dn_paper_one_way_t one)
{
    return dn_paper_one_way_by(profile, fabric, NULL, switches, cable_m, one);
}
/** @} */
