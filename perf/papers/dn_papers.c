/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the model says of the cells of the papers' tables, one a line: TABLE,CELL,VALUE in the unit of the paper. The script
 * `papers` beside it sets them against figures/cells.csv.
 *
 *   dn_papers                 all of them
 *   dn_papers --profile FILE  what can be asked of any NIC
 *   dn_papers --values NAME   what a profile says, in picoseconds, bytes, bytes a second
 *   dn_papers --keys          the keys of a profile
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_dimm_send.h"
#include "dn_paper_parts.h"

enum { ENVIRONMENTS = 6 };

static const char *const environments = "abcdef";

/** @name DIMMnet-1 */
/** @{ */
static void aotf_rtt(void)
{
    static const struct {
        const char *name;
        dn_model_fabric_t fabric;
    } way[] = {{"pair", DN_MODEL_PAIR}, {"external", DN_MODEL_EXTERNAL}, {"internal", DN_MODEL_INTERNAL}};
    char profile[32], name[32];

    for (int e = 0; e < ENVIRONMENTS; e++) {
        snprintf(profile, sizeof(profile), "dimmnet1-%c", environments[e]);
        for (int w = 0; w < 3; w++) {
            snprintf(name, sizeof(name), "%c.%s", environments[e], way[w].name);
            dn_paper_cell("aotf_rtt", name, dn_paper_round_trip(profile, way[w].fabric, NULL, 0, 0));
        }
    }
}

static double two_nodes(const char *profile, dn_model_read_t parent, dn_model_read_t child, unsigned size,
                        const char *compute, int again)
{
    dn_paper_world_t world;

    dn_paper_init(&world, profile, 2);
    return dn_paper_pattern(&world, (dn_paper_pattern_t){.parent = parent,
                                                         .child = child,
                                                         .size = size,
                                                         .compute_ps = dn_paper_value(profile, compute),
                                                         .again = again})
        .ns;
}

static void barrier_and_sum(void)
{
    char profile[32], name[32];

    for (int e = 0; e < ENVIRONMENTS; e++) {
        snprintf(profile, sizeof(profile), "dimmnet1-%c", environments[e]);
        /* The parent polls the word of all flags, the child its own byte. */
        snprintf(name, sizeof(name), "%c.on", environments[e]);
        dn_paper_cell("barrier", name,
                      two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_4, 1, "program_barrier_mmx", 0));
        snprintf(name, sizeof(name), "%c.off", environments[e]);
        dn_paper_cell("barrier", name,
                      two_nodes(profile, DN_MODEL_READ_8_PLAIN, DN_MODEL_READ_4, 1, "program_barrier", 0));
        snprintf(name, sizeof(name), "%c.unsigned", environments[e]);
        dn_paper_cell("global_sum", name,
                      two_nodes(profile, DN_MODEL_READ_4, DN_MODEL_READ_4, 4, "program_sum", 0));
        /* 64-bit integers go from MMX to the integer unit by a second read. */
        snprintf(name, sizeof(name), "%c.ull", environments[e]);
        dn_paper_cell("global_sum", name,
                      two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 1));
        snprintf(name, sizeof(name), "%c.float", environments[e]);
        dn_paper_cell("global_sum", name,
                      two_nodes(profile, DN_MODEL_READ_4, DN_MODEL_READ_4, 4, "program_sum", 0));
        snprintf(name, sizeof(name), "%c.double", environments[e]);
        dn_paper_cell("global_sum", name,
                      two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 0));
    }
}
/** @} */

static void comparison(void)
{
    /* "Remote write": from the store to the LLCM, as the paper counts it without the CPU's time for the store. */
    const double store = (double) dn_paper_value("dimmnet1-133", "host_store") / 1e3
                         + (double) dn_paper_value("dimmnet1-133", "stage_outside") / 1e3
                         + (double) dn_paper_value("dimmnet1-133", "stage_crossing") / 1e3;
    dn_paper_cell(
        "comparison", "remote_write",
        dn_paper_one_way("dimmnet1-133", DN_MODEL_PAIR, 0, 0, (dn_paper_one_way_t){.what = DN_ONE_STORE})
            - store);
    /* Table 9 calls table 5's round trip one of 8 bytes (C-1), and has a barrier that no cell of table 7 has (C-7). */
    dn_paper_cell("comparison", "round_trip_8_us",
                  two_nodes("dimmnet1-d", DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_timer", 0) / 1e3);
    dn_paper_cell("comparison", "barrier_2_us",
                  two_nodes("dimmnet1-d", DN_MODEL_READ_8, DN_MODEL_READ_4, 1, "program_barrier_mmx", 0)
                      / 1e3);
}

static void push_pull(void)
{
    const double push = dn_paper_one_way("rhinet2-pci", DN_MODEL_PAIR, 0, 0,
                                         (dn_paper_one_way_t){.what = DN_ONE_PUSH, .len = 8});
    const double pull = dn_paper_one_way("rhinet2-pci", DN_MODEL_PAIR, 0, 0,
                                         (dn_paper_one_way_t){.what = DN_ONE_PULL, .len = 8});
    /* Two links of 100 ns and a switch, each way. */
    const double far = dn_paper_one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 40,
                                        (dn_paper_one_way_t){.what = DN_ONE_PULL, .len = 8});
    const double push_burst =
        dn_paper_one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 10,
                         (dn_paper_one_way_t){.what = DN_ONE_BURST_PUSH, .len = 1 << 19});
    const double pull_burst = dn_paper_one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 10,
                                               (dn_paper_one_way_t){.what = DN_ONE_BURST_PULL, .len = 65535});

    dn_paper_cell("push_pull", "push_us", push / 1e3);
    dn_paper_cell("push_pull", "pull_us", pull / 1e3);
    dn_paper_cell("push_pull", "pull_network_us", far / 1e3);
    dn_paper_cell("push_pull", "network_round_trip_us", (far - pull) / 1e3);
    dn_paper_cell("push_pull", "push_mbyte_s", (1 << 19) / push_burst * 1e3);
    dn_paper_cell("push_pull", "pull_mbyte_s", 65535 / pull_burst * 1e3);
}

/** BOTF until the data are there, PUSH until its acknowledgement has come, as the paper measured them. */
static void crossover(void)
{
    uint32_t first = 0;
    char name[32];

    for (uint32_t len = 16; len <= 2048; len += 16) {
        const double botf = dn_paper_one_way("dimmnet1-sr", DN_MODEL_CHAIN, 1, 0,
                                             (dn_paper_one_way_t){.what = DN_ONE_WINDOW, .len = len});
        const double push =
            dn_paper_one_way("dimmnet1-sr", DN_MODEL_CHAIN, 1, 0,
                             (dn_paper_one_way_t){.what = DN_ONE_PUSH, .len = len, .until_ack = 1});
        snprintf(name, sizeof(name), "botf.%u", len);
        dn_paper_cell("crossover_curve", name, len / botf * 1e3);
        snprintf(name, sizeof(name), "push.%u", len);
        dn_paper_cell("crossover_curve", name, len / push * 1e3);
        /* About the same is not better yet. */
        if (push >= botf * 0.98) {
            first = len + 16;
        }
    }
    dn_paper_cell("dimm_send", "crossover_bytes", first);
}

static void interrupt(void)
{
    dn_paper_world_t world;

    dn_paper_init(&world, "dimmnet1-sr", 2);
    world.model.fabric = DN_MODEL_CHAIN;
    world.model.switches = 1;
    const dn_paper_pattern_t plain = dn_paper_pattern(
        &world, (dn_paper_pattern_t){.parent = DN_MODEL_READ_4, .child = DN_MODEL_READ_4, .size = 4});
    /* The list of interrupt AOTFs grows by a line each; its head, which the peer polls, counts them. */
    world.area = (DN_PAPER_WARM + DN_PAPER_ROUNDS + 1) * 64;
    const dn_paper_pattern_t core = dn_paper_pattern(
        &world,
        (dn_paper_pattern_t){.parent = DN_MODEL_READ_4, .child = DN_MODEL_READ_4, .size = 4, .interrupt = 1});

    dn_paper_cell("dimm_send", "aotf_rtt_us", plain.ns / 1e3);
    dn_paper_cell("dimm_send", "aotf_one_way_us", plain.leg_ns / 1e3);
    dn_paper_cell("dimm_send", "interrupt_rtt_us", core.ns / 1e3);
    dn_paper_cell("dimm_send", "interrupt_one_way_us", core.leg_ns / 1e3);
    dn_paper_cell("dimm_send", "interrupt_ratio", core.leg_ns / plain.leg_ns);
}
/** @} */

/** @name DIMM_Send and DIMM_Recv */
/** @{ */
typedef struct dimm_run {
    uint32_t len;
    int recv_first;
    double ns;
    uint64_t pieces;
} dimm_run_t;

static void dimm_node(dn_paper_node_t *self, void *arg)
{
    dimm_run_t *run = arg;
    dn_dimm_t dimm;
    uint64_t start;
    static uint8_t into[DN_PAPER_PAYLOAD];

    dn_dimm_open(&dimm, self, 1 - self->rank);
    for (int i = 0; i < 3; i++) {
        const int late = run->recv_first ? 0 == self->rank : 1 == self->rank;
        dn_paper_meet(self);
        if (late) {
            /* The other one announces itself meanwhile. */
            dn_model_compute(UINT64_C(100000000));
        }
        start = dn_model_now();
        if (0 == self->rank) {
            dn_dimm_send(&dimm, dn_paper_payload, run->len);
        } else {
            dn_dimm_recv(&dimm, into, run->len);
        }
        if (late) {
            run->ns = (double) (dn_model_now() - start) / 1e3;
        }
        run->pieces = dimm.pieces;
    }
}

static void dimm_send(void)
{
    char name[40];

    for (int first = 0; first < 2; first++) {
        for (uint32_t len = 64; len <= 65536; len *= 4) {
            dn_paper_world_t world;
            dimm_run_t run = {.len = len, .recv_first = first};
            dn_paper_init(&world, "dimmnet1-sr", 2);
            world.model.fabric = DN_MODEL_CHAIN;
            world.model.switches = 1;
            world.segment = 2 * DN_DIMM_REGION;
            dn_paper_run(&world, dimm_node, &run);
            snprintf(name, sizeof(name), "%s.%u", first ? "recv_first" : "send_first", len);
            dn_paper_cell("dimm_send_curve", name, len / run.ns * 1e3);
        }
    }
}
/** @} */

static void any(const char *profile)
{
    char name[32];

    dn_paper_cell("any", "round_trip_ns", dn_paper_round_trip(profile, DN_MODEL_PAIR, NULL, 0, 0));
    dn_paper_cell("any", "round_trip_one_switch_ns",
                  dn_paper_round_trip(profile, DN_MODEL_CHAIN, NULL, 1, 0));
    dn_paper_cell("any", "barrier_2_ns",
                  two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_4, 1, "program_barrier", 0));
    dn_paper_cell("any", "sum_2_ns",
                  two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 0));
    for (uint32_t len = 8; len <= 1 << 20; len *= 8) {
        snprintf(name, sizeof(name), "push.%u_mbyte_s", len);
        dn_paper_cell("any", name,
                      len
                          / dn_paper_one_way(profile, DN_MODEL_PAIR, 0, 0,
                                             (dn_paper_one_way_t){.what = DN_ONE_BURST_PUSH, .len = len})
                          * 1e3);
    }
}

static void values(const char *profile)
{
    const char *meaning;

    for (size_t i = 0; NULL != dn_model_key(i, &meaning); i++) {
        dn_paper_cell("value", dn_model_key(i, &meaning),
                      (double) dn_paper_value(profile, dn_model_key(i, &meaning)));
    }
}

static void keys(void)
{
    const char *meaning;

    for (size_t i = 0; NULL != dn_model_key(i, &meaning); i++) {
        printf("%-28s %s\n", dn_model_key(i, &meaning), meaning);
    }
}

int main(int argc, char **argv)
{
    if (3 == argc && 0 == strcmp(argv[1], "--profile")) {
        any(argv[2]);
        return 0;
    }
    if (3 == argc && 0 == strcmp(argv[1], "--values")) {
        values(argv[2]);
        return 0;
    }
    if (2 == argc && 0 == strcmp(argv[1], "--keys")) {
        keys();
        return 0;
    }
    if (1 != argc) {
        fprintf(stderr, "usage: dn_papers [--profile FILE | --values PROFILE | --keys]\n");
        return 2;
    }
    aotf_rtt();
    barrier_and_sum();
    comparison();
    push_pull();
    interrupt();
    crossover();
    dimm_send();
    dn_papers_network();
    return 0;
}
