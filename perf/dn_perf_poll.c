/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * What dn_progress() costs when nothing has come, by the number of connected
 * peers. Process 0 has the measured port; the peers are ports of process 1.
 */
#include "dn_config.h"

#include <stdio.h>

#include "dn_perf.h"

#define POLLS   20000
#define BATCHES 15

static int messages;

static void count_message(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    (void) src;
    (void) tag;
    (void) data;
    (void) len;
    (void) arg;
    messages++;
}

static double idle_poll_ns(dn_port_t *port)
{
    double ns[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = dn_bench_now_ns();
        for (int i = 0; i < POLLS; i++) {
            dn_progress(port);
        }
        ns[b] = (double) (dn_bench_now_ns() - start) / POLLS;
    }
    return dn_bench_median(ns, BATCHES);
}

/* Process 0, once process 1 has `peers` ports. */
static double measure(perf_t *perf, int from, int peers, bool active)
{
    perf_barrier(perf, &perf->port, 1); /* their addresses are there */
    for (int i = from; i < peers; i++) {
        perf_connect(perf, perf->port, &perf->shared->address[1][i]);
    }
    perf_barrier(perf, &perf->port, 1); /* all are connected, and have sent */
    while (active && messages < peers) {
        dn_progress(perf->port);
    }
    double ns = idle_poll_ns(perf->port);
    perf_barrier(perf, &perf->port, 1);
    return ns;
}

/* Process 1: ports from..peers-1 come to life. */
static void add_peers(perf_t *perf, dn_port_t **ports, int from, int peers, bool active)
{
    for (int i = from; i < peers; i++) {
        ports[i] = perf_open(perf, (uint32_t) (1 + i), &perf->shared->address[1][i]);
    }
    perf_barrier(perf, ports, peers);
    for (int i = from; i < peers; i++) {
        dn_peer_t *peer = perf_connect(perf, ports[i], &perf->shared->address[0][0]);
        if (active) {
            perf_send(perf, ports[i], peer, 0, &i, sizeof(i));
        }
    }
    perf_barrier(perf, ports, peers);
    perf_barrier(perf, NULL, 0); /* quiet while the other measures */
}

static void run_measured(perf_t *perf, bool active)
{
    double first = 0;
    int from = 0;
    perf->port = perf_open(perf, 0, &perf->shared->address[0][0]);
    perf_must(perf, dn_handler_set(perf->port, DN_CHAN_USER, count_message, NULL), "dn_handler_set");
    printf("%-10s%20s%20s\n", "# Peers", "Idle poll (ns)", "Times one peer");
    for (int peers = 1; peers <= PERF_MAX_PORTS; from = peers, peers *= 2) {
        double ns = measure(perf, from, peers, active);
        first = 1 == peers ? ns : first;
        printf("%-10d%20.2f%20.2f\n", peers, ns, ns / first);
        fflush(stdout);
    }
    dn_close(perf->port);
}

void perf_poll_run(perf_t *perf, bool active)
{
    dn_port_t *ports[PERF_MAX_PORTS];
    int from = 0;
    if (0 == perf->index) {
        run_measured(perf, active);
        return;
    }
    for (int peers = 1; peers <= PERF_MAX_PORTS; from = peers, peers *= 2) {
        add_peers(perf, ports, from, peers, active);
    }
    for (int i = 0; i < PERF_MAX_PORTS; i++) {
        dn_close(ports[i]);
    }
}
