/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * DIMM_Send and DIMM_Recv deliver messages of every size in both orders and in exactly N pieces; FIBNIC drops as it should.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_dimm_send.h"
#include "dn_fibnic.h"

enum { MESSAGES = 150, LONGEST = 5 * DN_DIMM_REGION };

static uint8_t sent[2][LONGEST];
static uint8_t got[2][LONGEST];

typedef struct plan {
    int late;         /**< rank that comes second; -1: as it happens */
    uint32_t buffers; /**< of each receive region */
    uint32_t len;     /**< 0: all sizes */
    uint64_t pieces;  /**< transfers of both ends */
    uint64_t bad;
} plan_t;

static uint32_t len_of(const plan_t *plan, uint32_t i)
{
    static const uint32_t edge[] = {0, 1, 463, 464, 465, 799, 4095, 4096, 4097, 8192, 40000};

    return 0 != plan->len ? plan->len : edge[i % (sizeof(edge) / sizeof(edge[0]))] + i / 11;
}

static void fill(uint8_t *data, uint32_t len, uint32_t key)
{
    for (uint32_t i = 0; i < len; i++) {
        data[i] = (uint8_t) (i * 131 + (i >> 8) * 17 + key * 31);
    }
}

static void node(dn_paper_node_t *self, void *arg)
{
    plan_t *plan = arg;
    dn_dimm_t dimm;
    const uint32_t count = 0 != plan->len ? 2 : MESSAGES;

    dn_dimm_open(&dimm, self, 1 - self->rank);
    dimm.buffers = plan->buffers;
    for (uint32_t i = 0; i < count; i++) {
        /* By turns in both directions. */
        const int sends = (i + self->rank) % 2 == 0;
        const uint32_t len = len_of(plan, i);
        if ((int) self->rank == plan->late) {
            dn_model_compute(UINT64_C(1000000000));
        }
        if (sends) {
            fill(sent[self->rank], len, i);
            dn_dimm_send(&dimm, sent[self->rank], len);
        } else {
            memset(got[self->rank], 0, len);
            dn_dimm_recv(&dimm, got[self->rank], len);
            fill(sent[self->rank], len, i);
            plan->bad += 0 != memcmp(sent[self->rank], got[self->rank], len);
        }
        dn_paper_meet(self);
    }
    plan->pieces += dimm.pieces;
}

/** @return 1 when it went wrong. */
static int run(plan_t plan, uint64_t pieces)
{
    dn_paper_world_t world;

    dn_paper_init(&world, "dimmnet1-sr", 2);
    world.model.fabric = DN_MODEL_CHAIN;
    world.model.switches = 1;
    world.segment = 2 * DN_DIMM_REGION;
    dn_paper_run(&world, node, &plan);
    const int wrong = 0 != plan.bad || (0 != pieces && pieces != plan.pieces);
    if (wrong) {
        printf("second %d, %u buffers, length %u: %llu messages wrong, %llu pieces for %llu\n", plan.late,
               plan.buffers, plan.len, (unsigned long long) plan.bad, (unsigned long long) plan.pieces,
               (unsigned long long) pieces);
    }
    return wrong;
}

/** The published example: three pieces are three transfers. */
static int split(int late, uint32_t buffers, uint32_t len, uint64_t pieces)
{
    return run((plan_t){.late = late, .buffers = buffers, .len = len}, 2 * pieces);
}

static int fibnic(void)
{
    dn_fibnic_t out = {.inputs = 2};
    int wrong = 0;

    wrong |= !dn_fibnic_offer(&out, 0, 1518);
    /* More than a shortest frame is stored: the whole next one is dropped. */
    wrong |= dn_fibnic_offer(&out, 0, 64);
    wrong |= !dn_fibnic_offer(&out, 1, 1518);
    wrong |= 0 != dn_fibnic_serve(&out, 1518);
    wrong |= !dn_fibnic_offer(&out, 0, 1518);
    /* Served in turn. */
    wrong |= 1 != dn_fibnic_serve(&out, 1518);
    wrong |= 0 != dn_fibnic_serve(&out, 1518);
    wrong |= -1 != dn_fibnic_serve(&out, 1518);
    wrong |= 0 != (int) dn_fibnic_loss_percent(1, 64, 100);
    if (wrong) {
        printf("FIBNIC's FIFOs are not as described\n");
    }
    return wrong;
}

int main(void)
{
    int wrong = fibnic();

    for (int late = -1; late < 2; late++) {
        for (uint32_t buffers = 1; buffers <= DN_DIMM_BUFFERS; buffers = 16 * buffers - 1) {
            wrong |= run((plan_t){.late = late, .buffers = buffers}, 0);
        }
        wrong |= split(late, 1, 3 * DN_DIMM_BUFFER, 3);
        wrong |= split(late, 1, 3 * DN_DIMM_BUFFER + 1, 4);
        wrong |= split(late, 1, DN_DIMM_BUFFER, 1);
        wrong |= split(late, 2, 5 * DN_DIMM_BUFFER, 3);
        wrong |= split(late, DN_DIMM_BUFFERS, 4 * DN_DIMM_REGION + 5, 5);
    }
    printf("DIMM_Send and DIMM_Recv %s\n", wrong ? "FAILED" : "passed");
    return wrong;
}
