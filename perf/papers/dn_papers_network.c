/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Cells of the IP-NUMA thesis (IP-NUMA, FIBNIC, memcached) and of the UZURA paper.
 */
#include "dn_config.h"

#include <stdio.h>

#include "dn_fibnic.h"
#include "dn_paper_parts.h"

enum { SIZES = 6 };

/** @name IP-NUMA, FIBNIC, memcached */
/** @{ */
static void ip_numa(void)
{
    static const char *const nic[] = {"ipnuma-10g", "sockets-10g", "ipnuma-1g", "sockets-1g"};
    char name[64];

    for (int i = 0; i < 4; i++) {
        dn_paper_cell("ipnuma_rtt", nic[i], dn_paper_round_trip(nic[i], DN_MODEL_PAIR, NULL, 0, 0) / 1e3);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s.direct", nic[i]);
        dn_paper_cell("ipnuma_one_way", name, dn_paper_round_trip(nic[i], DN_MODEL_PAIR, NULL, 0, 0) / 2e3);
        snprintf(name, sizeof(name), "%s.in_rack", nic[i]);
        dn_paper_cell("ipnuma_one_way", name, dn_paper_round_trip(nic[i], DN_MODEL_CHAIN, NULL, 1, 0) / 2e3);
        snprintf(name, sizeof(name), "%s.between_racks", nic[i]);
        dn_paper_cell("ipnuma_one_way", name,
                      dn_paper_round_trip(nic[i], DN_MODEL_CHAIN, NULL, 4, 200) / 2e3);
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
                rtt[p][n][b] = dn_paper_round_trip(nic[n], place[p].fabric, 0 == p ? NULL : box[b],
                                                   place[p].switches, place[p].cable_m);
            }
        }
    }
    const double direct = rtt[0][0][0];
    for (int p = 1; p < 3; p++) {
        for (int b = 0; b < 2; b++) {
            const double cable = dn_paper_round_trip(nic[0], DN_MODEL_CHAIN, box[b], 0, place[p].cable_m);
            snprintf(name, sizeof(name), "%s.%s.propagation", place[p].name, box[b]);
            dn_paper_cell("network_rtt", name, cable - direct);
            snprintf(name, sizeof(name), "%s.%s.switch", place[p].name, box[b]);
            dn_paper_cell("network_rtt", name, rtt[p][0][b] - cable);
            snprintf(name, sizeof(name), "%s.%s.total", place[p].name, box[b]);
            dn_paper_cell("network_rtt", name, rtt[p][0][b] - direct);
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
                    dn_paper_cell("memcached_get", name, t);
                    if (0 != p) {
                        dn_paper_cell("memcached_relative", name, 100 * base / t);
                    }
                }
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        const double x = point[i].us * 1e3;
        snprintf(name, sizeof(name), "%s.%g", place[point[i].place].name, point[i].us);
        dn_paper_cell("app_time", name, (x + rtt[point[i].place][0][0]) / (x + rtt[point[i].place][1][1]));
    }
}

/** A frame's bytes behind the preamble, as the payload of a window: Ethernet, IP and UDP headers are the profile's. */
static uint32_t frame_payload(unsigned frame)
{
    const unsigned headers = 14 + 20 + 8 + 4;

    return frame - headers;
}

/** What a switch adds to the way of a frame: the way through it to @p outputs ports in turn, less that along a cable. */
static double switch_ns(const char *box, unsigned frame, uint32_t outputs)
{
    const dn_paper_one_way_t one = {.what = DN_ONE_WINDOW, .len = frame_payload(frame), .targets = outputs};

    return dn_paper_one_way_by("sockets-1g", DN_MODEL_STAR, box, 1, 0, one)
           - dn_paper_one_way_by("sockets-1g", DN_MODEL_PAIR, box, 1, 0, one);
}

/** Frames a second that get through one FIFO at the wire's rate. */
static double received_pps(unsigned frame)
{
    const double wire_ns = (frame + 20) * 8.0;

    return 1e9 / wire_ns * (1 - dn_fibnic_loss_percent(1, frame, 3000) / 100);
}

static void fibnic(void)
{
    static const unsigned sizes[] = {64, 128, 256, 512, 1024, 1518};
    const double direct = dn_paper_round_trip("sockets-1g", DN_MODEL_PAIR, NULL, 0, 0);
    char name[32];

    dn_paper_cell("fibnic", "ipv4_64_ns",
                  (dn_paper_round_trip("sockets-1g", DN_MODEL_CHAIN, "fibnic", 1, 0) - direct) / 2);
    dn_paper_cell("fibnic", "ipv4_1518_ns", switch_ns("fibnic", 1518, 1));
    dn_paper_cell("fibnic", "ipv4_64_3_outputs_ns", switch_ns("fibnic", 64, 3));
    dn_paper_cell("fibnic", "ipv4_1518_3_outputs_ns", switch_ns("fibnic", 1518, 3));
    dn_paper_cell("fibnic", "ipv6_80_ns", switch_ns("fibnic-ipv6", 80, 1));
    dn_paper_cell("fibnic", "ipv6_1518_ns", switch_ns("fibnic-ipv6", 1518, 1));
    dn_paper_cell("fibnic", "ax3630s_64_ns", switch_ns("ax3630s-stores", 64, 1));
    dn_paper_cell("fibnic", "ax3630s_1518_ns", switch_ns("ax3630s-stores", 1518, 1));
    dn_paper_cell("fibnic", "received_64_pps", received_pps(64));
    dn_paper_cell("fibnic", "received_1518_pps", received_pps(1518));
    dn_paper_cell("fibnic", "loss_3_into_1_percent", dn_fibnic_loss_percent(3, 1518, 3000));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(name, sizeof(name), "fibnic.%u", sizes[i]);
        dn_paper_cell("fibnic_curve", name, switch_ns("fibnic", sizes[i], 1));
        snprintf(name, sizeof(name), "ax3630s.%u", sizes[i]);
        dn_paper_cell("fibnic_curve", name, switch_ns("ax3630s-stores", sizes[i], 1));
    }
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
        dn_paper_cell("sums", name, 1e9 / ns);
        snprintf(name, sizeof(name), "%u.%u_ns", ethernet[i].gbit, ethernet[i].frame);
        dn_paper_cell("sums", name, ns);
    }
    dn_paper_cell("sums", "rdma_64_bytes_ns", cpu_write + dma_read + extra + dma_write + extra + phy);
    dn_paper_cell("sums", "rdma_4_bytes_ns", cpu_write + dma_read + dma_write + phy);
    dn_paper_cell("sums", "ipnuma_64_bytes_ns", cpu_write + extra + dma_write + extra + phy);
    dn_paper_cell("sums", "fibnic_4_ports_64_pps", 4 * 1e9 / ((64 + 20) * byte_ns));
    dn_paper_cell("sums", "fibnic_lower_bound_ns", 42 * byte_ns + phy_gigabit);
    dn_paper_cell("sums", "fibnic_ipv4_ns", 62 * byte_ns + phy_gigabit);
    dn_paper_cell("sums", "fibnic_ipv6_ns", 74 * byte_ns + phy_gigabit);
}

static void uzura(void)
{
    const double block = dn_paper_one_way("uzura", DN_MODEL_PAIR, 0, 0,
                                          (dn_paper_one_way_t){.what = DN_ONE_BURST_PUSH, .len = 1 << 20});

    /* The message's 64 bytes hold its header; data are polled where they arrive. */
    dn_paper_cell(
        "uzura", "latency_64_us",
        dn_paper_one_way("uzura", DN_MODEL_PAIR, 0, 0, (dn_paper_one_way_t){.what = DN_ONE_WINDOW, .len = 64})
            / 1e3);
    dn_paper_cell("uzura", "throughput_gbyte_s", (1 << 20) / block);
}

void dn_papers_network(void)
{
    ip_numa();
    memcached();
    fibnic();
    uzura();
    sums();
}
