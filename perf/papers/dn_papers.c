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
#include "dn_fibnic.h"
#include "dn_paper_world.h"

enum { WARM = 20, ROUNDS = 400, ENVIRONMENTS = 6, SIZES = 6 };

static const char *const environments = "abcdef";

static void cell(const char *table, const char *name, double value)
{
    printf("%s,%s,%.9g\n", table, name, value);
}

/** @name Ping-pong, barrier, global sum: 2 nodes, or one looped back */
/** @{ */
typedef struct pattern {
    dn_model_read_t parent; /**< what node 0 polls, and node 1 */
    dn_model_read_t child;
    unsigned size;       /**< bytes of a store */
    uint64_t compute_ps; /**< in a round, at node 0 */
    int again;           /**< each side reads what came once more */
    int interrupt;       /**< the first leg is an interrupt AOTF */
    double ns;           /**< result: a round */
    double leg_ns;       /**< of the first leg */
    uint64_t sent_ps;
} pattern_t;

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
    pattern_t *p = arg;
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

static pattern_t run_pattern(dn_paper_world_t *world, pattern_t p)
{
    dn_paper_run(world, rounds, &p);
    return p;
}

static uint64_t profile_value(const char *profile, const char *key)
{
    dn_model_profile_t *p = NULL;

    dn_paper_need(dn_model_profile_open(profile, &p), profile);
    const uint64_t value = dn_model_profile_value(p, key);
    dn_model_profile_close(p);
    return value;
}

static double round_trip(const char *profile, dn_model_fabric_t fabric, const char *switches, uint32_t count,
                         uint32_t cable_m)
{
    dn_paper_world_t world;
    const uint64_t service = profile_value(profile, "program_service");
    const int looped = DN_MODEL_INTERNAL == fabric || DN_MODEL_EXTERNAL == fabric;

    dn_paper_init(&world, profile, looped ? 1 : 2);
    world.model.fabric = fabric;
    world.model.fabric_profile = switches;
    world.model.switches = count;
    world.model.cable_m = cable_m;
    const pattern_t p = run_pattern(&world, (pattern_t){.parent = DN_MODEL_READ_4,
                                                        .child = DN_MODEL_READ_4,
                                                        .size = 4,
                                                        .compute_ps = 2 * service});
    return p.ns;
}

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
            cell("aotf_rtt", name, round_trip(profile, way[w].fabric, NULL, 0, 0));
        }
    }
}

static double two_nodes(const char *profile, dn_model_read_t parent, dn_model_read_t child, unsigned size,
                        const char *compute, int again)
{
    dn_paper_world_t world;

    dn_paper_init(&world, profile, 2);
    return run_pattern(&world, (pattern_t){.parent = parent,
                                           .child = child,
                                           .size = size,
                                           .compute_ps = profile_value(profile, compute),
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
        cell("barrier", name,
             two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_4, 1, "program_barrier_mmx", 0));
        snprintf(name, sizeof(name), "%c.off", environments[e]);
        cell("barrier", name,
             two_nodes(profile, DN_MODEL_READ_8_PLAIN, DN_MODEL_READ_4, 1, "program_barrier", 0));
        snprintf(name, sizeof(name), "%c.unsigned", environments[e]);
        cell("global_sum", name, two_nodes(profile, DN_MODEL_READ_4, DN_MODEL_READ_4, 4, "program_sum", 0));
        /* 64-bit integers go from MMX to the integer unit by a second read. */
        snprintf(name, sizeof(name), "%c.ull", environments[e]);
        cell("global_sum", name, two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 1));
        snprintf(name, sizeof(name), "%c.float", environments[e]);
        cell("global_sum", name, two_nodes(profile, DN_MODEL_READ_4, DN_MODEL_READ_4, 4, "program_sum", 0));
        snprintf(name, sizeof(name), "%c.double", environments[e]);
        cell("global_sum", name, two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 0));
    }
}
/** @} */

/** @name One way: when the first store, window, PUSH or PULL of a size is in memory */
/** @{ */
typedef struct one_way {
    enum { ONE_STORE, ONE_WINDOW, ONE_PUSH, ONE_PULL, ONE_BURST_PUSH, ONE_BURST_PULL } what;
    uint32_t len;
    int until_ack;
    double ns;
    uint64_t start_ps;
} one_way_t;

enum { BURSTS = 16 };

static uint8_t payload[1 << 20];

static void settle(dn_peer_t *peer)
{
    dn_status_t status;

    while (DN_INPROGRESS == (status = dn_flush(peer))) {
    }
    dn_paper_need(status, "dn_flush");
}

/** One of the kind, with a mark that its target can see, to completion. */
static void go(dn_paper_node_t *self, dn_peer_t *peer, const one_way_t *one, uint8_t mark)
{
    const int push = ONE_PULL != one->what && ONE_BURST_PULL != one->what;
    const dn_xfer_t xfer = {.local = payload, .key = &self->world->seat[1].key, .len = one->len};

    payload[0 == one->len ? 0 : one->len - 1] = mark;
    if (ONE_STORE == one->what) {
        dn_paper_aotf(self, peer, self->world->seat[1].off, mark, 8);
    } else {
        dn_paper_need(push ? dn_push(peer, &xfer) : dn_pull(peer, &xfer), "transfer");
    }
    settle(peer);
}

static void once(dn_paper_node_t *self, void *arg)
{
    one_way_t *one = arg;
    const int here = ONE_PULL == one->what || one->until_ack || ONE_BURST_PUSH <= one->what;

    dn_model_push_by(ONE_WINDOW == one->what ? DN_MODEL_WAY_BOTF : DN_MODEL_WAY_DMA);
    dn_model_poll(DN_MODEL_READ_NOTHING);
    if (0 == self->rank) {
        const int bursts = ONE_BURST_PUSH <= one->what ? BURSTS : 1;
        dn_peer_t *peer = dn_paper_peer(self, 1);
        /* A first one takes what is missing in the NIC's tables. */
        go(self, peer, one, 1);
        one->start_ps = dn_model_now();
        for (int i = 0; i < bursts; i++) {
            go(self, peer, one, 2);
        }
        one->ns = here ? (double) (dn_model_now() - one->start_ps) / bursts / 1e3 : one->ns;
    } else if (!here) {
        const volatile uint8_t *mark = ONE_STORE == one->what ? self->area : self->memory + one->len - 1;
        while (2 != *mark) {
            dn_progress(self->port);
        }
        one->ns = (double) (dn_model_now() - one->start_ps) / 1e3;
    }
}

static double one_way_by(const char *profile, dn_model_fabric_t fabric, const char *box, uint32_t switches,
                         uint32_t cable_m, one_way_t one)
{
    dn_paper_world_t world;

    dn_paper_init(&world, profile, 2);
    world.model.fabric_profile = box;
    world.model.fabric = fabric;
    world.model.switches = switches;
    world.model.cable_m = cable_m;
    world.segment = sizeof(payload);
    dn_paper_run(&world, once, &one);
    return one.ns;
}

static double one_way(const char *profile, dn_model_fabric_t fabric, uint32_t switches, uint32_t cable_m,
                      one_way_t one)
{
    return one_way_by(profile, fabric, NULL, switches, cable_m, one);
}

static void comparison(void)
{
    /* "Remote write": from the store to the LLCM, as the paper counts it without the CPU's time for the store. */
    const double store = (double) profile_value("dimmnet1-133", "host_store") / 1e3
                         + (double) profile_value("dimmnet1-133", "stage_outside") / 1e3
                         + (double) profile_value("dimmnet1-133", "stage_crossing") / 1e3;
    cell("comparison", "remote_write",
         one_way("dimmnet1-133", DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_STORE}) - store);
}

static void push_pull(void)
{
    const double push = one_way("rhinet2-pci", DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_PUSH, .len = 8});
    const double pull = one_way("rhinet2-pci", DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_PULL, .len = 8});
    /* Two links of 100 ns and a switch, each way. */
    const double far = one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 40, (one_way_t){.what = ONE_PULL, .len = 8});
    const double push_burst =
        one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 10, (one_way_t){.what = ONE_BURST_PUSH, .len = 1 << 19});
    const double pull_burst =
        one_way("rhinet2-pci", DN_MODEL_CHAIN, 1, 10, (one_way_t){.what = ONE_BURST_PULL, .len = 65535});

    cell("push_pull", "push_us", push / 1e3);
    cell("push_pull", "pull_us", pull / 1e3);
    cell("push_pull", "pull_network_us", far / 1e3);
    cell("push_pull", "network_round_trip_us", (far - pull) / 1e3);
    cell("push_pull", "push_mbyte_s", (1 << 19) / push_burst * 1e3);
    cell("push_pull", "pull_mbyte_s", 65535 / pull_burst * 1e3);
}

/** BOTF until the data are there, PUSH until its acknowledgement has come, as the paper measured them. */
static void crossover(void)
{
    uint32_t first = 0;
    char name[32];

    for (uint32_t len = 16; len <= 2048; len += 16) {
        const double botf =
            one_way("dimmnet1-sr", DN_MODEL_CHAIN, 1, 0, (one_way_t){.what = ONE_WINDOW, .len = len});
        const double push = one_way("dimmnet1-sr", DN_MODEL_CHAIN, 1, 0,
                                    (one_way_t){.what = ONE_PUSH, .len = len, .until_ack = 1});
        snprintf(name, sizeof(name), "botf.%u", len);
        cell("crossover_curve", name, len / botf * 1e3);
        snprintf(name, sizeof(name), "push.%u", len);
        cell("crossover_curve", name, len / push * 1e3);
        /* About the same is not better yet. */
        if (push >= botf * 0.98) {
            first = len + 16;
        }
    }
    cell("dimm_send", "crossover_bytes", first);
}

static void interrupt(void)
{
    dn_paper_world_t world;

    dn_paper_init(&world, "dimmnet1-sr", 2);
    world.model.fabric = DN_MODEL_CHAIN;
    world.model.switches = 1;
    const pattern_t plain =
        run_pattern(&world, (pattern_t){.parent = DN_MODEL_READ_4, .child = DN_MODEL_READ_4, .size = 4});
    /* The list of interrupt AOTFs grows by a line each; its head, which the peer polls, counts them. */
    world.area = (WARM + ROUNDS + 1) * 64;
    const pattern_t core = run_pattern(
        &world, (pattern_t){.parent = DN_MODEL_READ_4, .child = DN_MODEL_READ_4, .size = 4, .interrupt = 1});

    cell("dimm_send", "aotf_rtt_us", plain.ns / 1e3);
    cell("dimm_send", "aotf_one_way_us", plain.leg_ns / 1e3);
    cell("dimm_send", "interrupt_rtt_us", core.ns / 1e3);
    cell("dimm_send", "interrupt_one_way_us", core.leg_ns / 1e3);
    cell("dimm_send", "interrupt_ratio", core.leg_ns / plain.leg_ns);
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
    static uint8_t into[sizeof(payload)];

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
            dn_dimm_send(&dimm, payload, run->len);
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
            cell("dimm_send_curve", name, len / run.ns * 1e3);
        }
    }
}
/** @} */

/** @name IP-NUMA, FIBNIC, memcached */
/** @{ */
static void ip_numa(void)
{
    static const char *const nic[] = {"ipnuma-10g", "sockets-10g", "ipnuma-1g", "sockets-1g"};
    char name[64];

    for (int i = 0; i < 4; i++) {
        cell("ipnuma_rtt", nic[i], round_trip(nic[i], DN_MODEL_PAIR, NULL, 0, 0) / 1e3);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s.direct", nic[i]);
        cell("ipnuma_one_way", name, round_trip(nic[i], DN_MODEL_PAIR, NULL, 0, 0) / 2e3);
        snprintf(name, sizeof(name), "%s.in_rack", nic[i]);
        cell("ipnuma_one_way", name, round_trip(nic[i], DN_MODEL_CHAIN, NULL, 1, 0) / 2e3);
        snprintf(name, sizeof(name), "%s.between_racks", nic[i]);
        cell("ipnuma_one_way", name, round_trip(nic[i], DN_MODEL_CHAIN, NULL, 4, 200) / 2e3);
    }
}

static void memcached(void)
{
    static const double get[SIZES] = {50546, 50567, 50679,
                                      51092, 51777, 62786}; /* ipnuma_memcached_measured, GET, 1G */
    static const int bytes[SIZES] = {16, 32, 64, 128, 256, 512};
    static const struct {
        const char *name;
        dn_model_fabric_t fabric;
        uint32_t switches, cable_m;
    } place[] = {{"direct", DN_MODEL_PAIR, 0, 0},
                 {"in_rack", DN_MODEL_CHAIN, 1, 20},
                 {"between_racks", DN_MODEL_CHAIN, 4, 200}};
    static const char *const nic[] = {"sockets-1g", "ipnuma-1g"};
    static const char *const box[] = {"ax3630s", "fibnic"};
    static const struct {
        int place;
        double us;
    } point[] = {{1, 80}, {1, 500}, {2, 110}, {2, 500}};
    double rtt[3][2][2];
    char name[64];

    for (int p = 0; p < 3; p++) {
        for (int n = 0; n < 2; n++) {
            for (int b = 0; b < 2; b++) {
                rtt[p][n][b] = round_trip(nic[n], place[p].fabric, 0 == p ? NULL : box[b], place[p].switches,
                                          place[p].cable_m);
            }
        }
    }
    const double direct = rtt[0][0][0];
    for (int p = 1; p < 3; p++) {
        for (int b = 0; b < 2; b++) {
            snprintf(name, sizeof(name), "%s.%s", place[p].name, box[b]);
            cell("network_rtt", name, rtt[p][0][b] - direct);
        }
    }
    for (int p = 0; p < 3; p++) {
        for (int n = 0; n < 2; n++) {
            for (int b = 0; b < (0 == p ? 1 : 2); b++) {
                for (int s = 0; s < SIZES; s++) {
                    /* What is not network stays: the server, its client, and the bytes. */
                    const double t = get[s] - direct + rtt[p][n][b];
                    const double base = get[s] - direct + rtt[p][0][0];
                    snprintf(name, sizeof(name), "%s.%s.%s.%d", place[p].name, nic[n],
                             0 == p ? "none" : box[b], bytes[s]);
                    cell("memcached_get", name, t);
                    if (0 != p) {
                        cell("memcached_relative", name, 100 * base / t);
                    }
                }
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        const double x = point[i].us * 1e3;
        snprintf(name, sizeof(name), "%s.%g", place[point[i].place].name, point[i].us);
        cell("app_time", name, (x + rtt[point[i].place][0][0]) / (x + rtt[point[i].place][1][1]));
    }
}

static void fibnic(void)
{
    const double direct = round_trip("sockets-1g", DN_MODEL_PAIR, NULL, 0, 0);

    cell("fibnic", "ipv4_ns", (round_trip("sockets-1g", DN_MODEL_CHAIN, "fibnic", 1, 0) - direct) / 2);
    /* The longest frame, cut through: the switch's share of its way. */
    const one_way_t frame = {.what = ONE_WINDOW, .len = 1452};
    cell("fibnic", "ipv4_1518_ns",
         one_way_by("sockets-1g", DN_MODEL_CHAIN, "fibnic", 1, 0, frame)
             - one_way_by("sockets-1g", DN_MODEL_CHAIN, "fibnic", 0, 0, frame));
    cell("fibnic", "ipv6_ns", (round_trip("sockets-1g", DN_MODEL_CHAIN, "fibnic-ipv6", 1, 0) - direct) / 2);
    cell("fibnic", "loss_3_into_1_percent", dn_fibnic_loss_percent(3, 1518, 3000));
}
/** @} */

/** Sums of the thesis' terms: what it adds up, not what is run. */
static void sums(void)
{
    static const struct {
        unsigned gbit;
        unsigned frame;
    } ethernet[] = {{1, 64},   {10, 64},   {40, 64},   {100, 64},   {400, 64},
                    {1, 1518}, {10, 1518}, {40, 1518}, {100, 1518}, {400, 1518}};
    const double cpu_write = 223, extra = 12, dma_read = 467, dma_write = 223, phy = 308;
    const double byte_ns = 8, phy_gigabit = 356;
    char name[32];

    for (size_t i = 0; i < sizeof(ethernet) / sizeof(ethernet[0]); i++) {
        /* Preamble, start of frame and gap are 20 bytes. */
        const double ns = (ethernet[i].frame + 20) * 8.0 / ethernet[i].gbit;
        snprintf(name, sizeof(name), "%u.%u_pps", ethernet[i].gbit, ethernet[i].frame);
        cell("sums", name, 1e9 / ns);
    }
    cell("sums", "rdma_64_bytes_ns", cpu_write + dma_read + extra + dma_write + extra + phy);
    cell("sums", "ipnuma_64_bytes_ns", cpu_write + extra + dma_write + extra + phy);
    cell("sums", "fibnic_lower_bound_ns", 42 * byte_ns + phy_gigabit);
    cell("sums", "fibnic_ipv4_ns", 62 * byte_ns + phy_gigabit);
    cell("sums", "fibnic_ipv6_ns", 74 * byte_ns + phy_gigabit);
}

static void uzura(void)
{
    const double block =
        one_way("uzura", DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_BURST_PUSH, .len = 1 << 20});

    /* The message's 64 bytes hold its header; data are polled where they arrive. */
    cell("uzura", "latency_64_us",
         one_way("uzura", DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_WINDOW, .len = 64}) / 1e3);
    cell("uzura", "throughput_gbyte_s", (1 << 20) / block);
}

static void any(const char *profile)
{
    char name[32];

    cell("any", "round_trip_ns", round_trip(profile, DN_MODEL_PAIR, NULL, 0, 0));
    cell("any", "round_trip_one_switch_ns", round_trip(profile, DN_MODEL_CHAIN, NULL, 1, 0));
    cell("any", "barrier_2_ns",
         two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_4, 1, "program_barrier", 0));
    cell("any", "sum_2_ns", two_nodes(profile, DN_MODEL_READ_8, DN_MODEL_READ_8, 8, "program_sum", 0));
    for (uint32_t len = 8; len <= 1 << 20; len *= 8) {
        snprintf(name, sizeof(name), "push.%u_mbyte_s", len);
        cell("any", name,
             len / one_way(profile, DN_MODEL_PAIR, 0, 0, (one_way_t){.what = ONE_BURST_PUSH, .len = len})
                 * 1e3);
    }
}

static void values(const char *profile)
{
    const char *meaning;

    for (size_t i = 0; NULL != dn_model_key(i, &meaning); i++) {
        cell("value", dn_model_key(i, &meaning), (double) profile_value(profile, dn_model_key(i, &meaning)));
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
    ip_numa();
    memcached();
    fibnic();
    uzura();
    sums();
    return 0;
}
