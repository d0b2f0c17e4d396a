/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What barriers and reductions would take on fat trees of up to 65,536 nodes, on switches of RHiNET2, FIBNIC and today:
 *
 *   flags          the published tree: children put a flag or an operand into their parent's LLCM by AOTF, and are released so
 *   lines          dn_tree.h, by lines of 64 bytes (BOTF): to the first of a group and back, in the last group everybody to everybody
 *   dissemination  log2 N rounds of AOTF
 *   binomial       a tree of two, by AOTF
 *
 *   dn_predict [--least NODES] [--most NODES] [--fabric PROFILE] [--algorithm NAME] [--speed]
 *
 * A line is: fabric, nodes, algorithm, radix, operation, us, packets, LLCM bytes a node. What this cannot say: all
 * nodes begin at once and do nothing else, no other traffic is on the fabric, links lose nothing, and operating systems do not
 * interrupt. Nodes on fabrics of today still have the host side of dimmnet1-133, so that fabrics are compared and not hosts.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dn_paper_world.h"
#include "dn_tree.h"

enum { REPEAT = 3, SLOT = 64, LOG_MAX = 17, RADIX_MAX = 64, PINGS = 10000 };

typedef enum way { WAY_LINES, WAY_FLAGS, WAY_DISSEMINATION, WAY_BINOMIAL } way_t;

static const char *const way_name[] = {"lines", "flags", "dissemination", "binomial"};

/** The one algorithm that is wanted; NULL: all. */
static const char *only;

typedef struct plan {
    way_t way;
    int reduce;
    uint32_t radix;
    uint64_t ready_ps; /**< last node to be ready */
    uint64_t start_ps; /**< all begin */
    uint64_t late;     /**< nodes that were not there by then */
    uint64_t end_ps;   /**< last node to end */
    uint64_t packets;
    uint64_t llcm;
    uint64_t wrong;
    dn_tree_card_t *card;
    dn_peer_t **peers; /**< by rank, of the node that connects its tree: no other one runs meanwhile */
} plan_t;

/** @name The trees of dn_tree.h */
/** @{ */
static void add(const dn_tree_reduction_t *reduction, const void *in, void *inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((uint64_t *) inout)[i] += ((const uint64_t *) in)[i];
    }
}

static void tree_once(dn_paper_node_t *self, dn_tree_t *tree, plan_t *plan)
{
    static const dn_tree_reduction_t sum = {.fold = add, .size = sizeof(uint64_t)};
    const uint64_t nodes = self->world->model.nodes;
    const uint64_t mine = self->rank + 1;
    uint64_t total = 0;
    dn_status_t status =
        plan->reduce ? dn_tree_allreduce(tree, &mine, &total, 1, &sum) : dn_tree_barrier(tree);

    while (DN_INPROGRESS == status) {
        dn_progress(self->port);
        status = dn_tree_test(tree);
    }
    dn_paper_need(status, "dn_tree");
    plan->wrong += plan->reduce && total != nodes * (nodes + 1) / 2;
}

/** LLCM of a node: rank 0 leads groups of all levels, no other node needs more. */
static size_t lines_llcm(uint32_t nodes, uint32_t radix)
{
    const dn_tree_config_t config = {.ranks = nodes, .rank = 0, .radix = radix, .depth = 4};
    size_t bytes = 0;

    dn_paper_need(dn_tree_llcm_bytes(&config, &bytes), "dn_tree_llcm_bytes");
    return bytes;
}

static dn_tree_t *tree_make(dn_paper_node_t *self, plan_t *plan)
{
    const uint32_t nodes = self->world->model.nodes;
    const dn_tree_config_t config = {.ranks = nodes, .rank = self->rank, .radix = plan->radix, .depth = 4};
    dn_tree_t *tree = NULL;

    dn_paper_need(dn_tree_create(self->port, &config, &plan->card[self->rank], &tree), "dn_tree_create");
    dn_paper_meet(self);
    for (size_t i = 0; 0 <= dn_tree_linked(tree, i); i++) {
        const uint32_t to = (uint32_t) dn_tree_linked(tree, i);
        plan->peers[to] = dn_paper_peer(self, to);
    }
    dn_tree_connect(tree, plan->card, plan->peers);
    return tree;
}
/** @} */

/** @name Trees of two, over AOTF: a slot for each step, a number or a sum in it */
/** @{ */
typedef struct steps {
    dn_peer_t *to[LOG_MAX];
    uint32_t rank[LOG_MAX];
    uint32_t count;
} steps_t;

static uint32_t log2_up(uint32_t n)
{
    uint32_t log = 0;

    while (n > UINT32_C(1) << log) {
        log++;
    }
    return log;
}

static void put(dn_paper_node_t *self, const steps_t *steps, uint32_t step, uint32_t slot, uint64_t value)
{
    dn_paper_aotf(self, steps->to[step], self->world->seat[steps->rank[step]].off + slot * sizeof(uint64_t),
                  value, sizeof(value));
}

/** Wait for a slot; it is emptied for the next time but one. */
static uint64_t take(dn_paper_node_t *self, uint32_t slot)
{
    volatile uint64_t *word = (volatile uint64_t *) self->area + slot;

    while (0 == *word) {
        dn_progress(self->port);
    }
    const uint64_t value = *word;
    *word = 0;
    return value;
}

static void steps_make(dn_paper_node_t *self, const plan_t *plan, steps_t *steps)
{
    const uint32_t nodes = self->world->model.nodes;

    steps->count = log2_up(nodes);
    for (uint32_t i = 0; i < steps->count; i++) {
        const uint32_t far = UINT32_C(1) << i;
        steps->rank[i] = WAY_DISSEMINATION == plan->way ? (self->rank + far) % nodes : self->rank ^ far;
        if (steps->rank[i] < nodes) {
            steps->to[i] = dn_paper_peer(self, steps->rank[i]);
        }
    }
}

/** Everybody hears of everybody in log2 N steps; sums need N to be a power of two. */
static uint64_t disseminate(dn_paper_node_t *self, const steps_t *steps, uint64_t mine, uint32_t phase)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        put(self, steps, i, phase * 2 * LOG_MAX + i, mine);
        mine += take(self, phase * 2 * LOG_MAX + i);
    }
    return mine;
}

/** To rank 0 and back. */
static uint64_t binomial(dn_paper_node_t *self, const steps_t *steps, uint64_t mine, uint32_t phase)
{
    const uint32_t nodes = self->world->model.nodes;
    const uint32_t base = phase * 2 * LOG_MAX;
    uint32_t i = 0;

    for (; i < steps->count && 0 == (self->rank & UINT32_C(1) << i); i++) {
        if (steps->rank[i] < nodes) {
            mine += take(self, base + i);
        }
    }
    if (0 != self->rank) {
        put(self, steps, i, base + i, mine);
        mine = take(self, base + LOG_MAX);
    }
    while (0 < i--) {
        if (steps->rank[i] < nodes) {
            put(self, steps, i, base + LOG_MAX, mine);
        }
    }
    return mine;
}

static void pairs_once(dn_paper_node_t *self, const steps_t *steps, plan_t *plan, uint32_t phase)
{
    const uint64_t nodes = self->world->model.nodes;
    const uint64_t mine = plan->reduce ? self->rank + 1 : 1;
    const uint64_t total = WAY_DISSEMINATION == plan->way ? disseminate(self, steps, mine, phase)
                                                          : binomial(self, steps, mine, phase);

    plan->wrong += plan->reduce && total != nodes * (nodes + 1) / 2;
}
/** @} */

/** @name The published tree (AOTF paper, 5.1 and 5.2), of any radix */
/** @{ */
typedef struct flags {
    dn_peer_t *child[LOG_MAX][RADIX_MAX]; /**< by level, of those that this node is the parent of */
    uint32_t rank[LOG_MAX][RADIX_MAX];
    dn_peer_t *parent;
    uint32_t parent_rank;
    uint32_t place;  /**< among the parent's children */
    uint32_t levels; /**< on which this node is a parent */
} flags_t;

static uint32_t flags_levels(uint32_t nodes, uint32_t radix)
{
    uint32_t levels = 0;

    for (uint64_t reach = 1; reach < nodes; reach *= radix) {
        levels++;
    }
    return levels;
}

/** Bytes of LLCM: a word for each place of each level, and one for the release, twice. */
static size_t flags_area(uint32_t nodes, uint32_t radix)
{
    return 2 * (flags_levels(nodes, radix) * radix + 1) * sizeof(uint64_t);
}

static flags_t *flags_make(dn_paper_node_t *self, const plan_t *plan)
{
    const uint32_t nodes = self->world->model.nodes;
    flags_t *flags = calloc(1, sizeof(*flags));
    uint64_t span = 1;

    dn_paper_need(NULL == flags ? DN_ERR_NOMEM : DN_OK, "flags");
    for (; span < nodes && 0 == self->rank % (span * plan->radix); span *= plan->radix) {
        for (uint32_t i = 1; i < plan->radix && self->rank + i * span < nodes; i++) {
            flags->rank[flags->levels][i] = (uint32_t) (self->rank + i * span);
            flags->child[flags->levels][i] = dn_paper_peer(self, flags->rank[flags->levels][i]);
        }
        flags->levels++;
    }
    if (0 != self->rank) {
        flags->place = (uint32_t) (self->rank / span % plan->radix);
        flags->parent_rank = (uint32_t) (self->rank - flags->place * span);
        flags->parent = dn_paper_peer(self, flags->parent_rank);
    }
    return flags;
}

/** Wait for all children of a level; flags of 8 are read at once, operands one by one. */
static uint64_t flags_gather(dn_paper_node_t *self, const flags_t *flags, const plan_t *plan, uint32_t level,
                             uint32_t base)
{
    uint64_t sum = 0;

    for (uint32_t i = 1; i < plan->radix; i++) {
        if (NULL == flags->child[level][i]) {
            break;
        }
        sum += take(self, base + 1 + level * plan->radix + i);
        if (1 < i && (plan->reduce || 0 == i % 8)) {
            dn_model_read(DN_MODEL_READ_8);
        }
    }
    return sum;
}

static void flags_once(dn_paper_node_t *self, const flags_t *flags, plan_t *plan, uint32_t phase)
{
    const uint64_t nodes = self->world->model.nodes;
    const uint32_t levels = flags_levels((uint32_t) nodes, plan->radix);
    const uint32_t base = phase * (levels * plan->radix + 1);
    uint64_t sum = plan->reduce ? self->rank + 1 : 1;
    const size_t size = plan->reduce ? sizeof(sum) : 1;

    for (uint32_t level = 0; level < flags->levels; level++) {
        sum += flags_gather(self, flags, plan, level, base);
    }
    if (NULL != flags->parent) {
        const uint32_t slot = base + 1 + flags->levels * plan->radix + flags->place;
        dn_paper_aotf(self, flags->parent,
                      self->world->seat[flags->parent_rank].off + slot * sizeof(uint64_t),
                      plan->reduce ? sum : 1, size);
        sum = take(self, base);
    }
    for (uint32_t level = flags->levels; 0 < level--;) {
        for (uint32_t i = 1; i < plan->radix && NULL != flags->child[level][i]; i++) {
            dn_paper_aotf(self, flags->child[level][i],
                          self->world->seat[flags->rank[level][i]].off + base * sizeof(uint64_t),
                          plan->reduce ? sum : 1, size);
        }
    }
    plan->wrong += plan->reduce && sum != nodes * (nodes + 1) / 2;
}
/** @} */

static void node(dn_paper_node_t *self, void *arg)
{
    plan_t *plan = arg;
    dn_tree_t *tree = NULL;
    flags_t *flags = NULL;
    steps_t steps = {.count = 0};

    if (WAY_LINES == plan->way) {
        tree = tree_make(self, plan);
    } else if (WAY_FLAGS == plan->way) {
        flags = flags_make(self, plan);
    } else {
        steps_make(self, plan, &steps);
    }
    for (uint32_t i = 0; i < REPEAT; i++) {
        dn_paper_meet(self);
        /* Meeting leaves the nodes' clocks apart: all begin a millisecond after the last one came. The first times fill the
         * NIC's tables. */
        plan->ready_ps = plan->ready_ps > dn_model_now() ? plan->ready_ps : dn_model_now();
        dn_paper_meet(self);
        plan->start_ps = plan->ready_ps + UINT64_C(1000000000);
        plan->late += dn_model_now() > plan->start_ps;
        dn_model_compute(plan->start_ps - dn_model_now());
        /* The common clock gets there, too. */
        dn_progress(self->port);
        plan->start_ps = dn_model_now();
        plan->end_ps = 0;
        if (NULL != tree) {
            tree_once(self, tree, plan);
        } else if (NULL != flags) {
            flags_once(self, flags, plan, i % 2);
        } else {
            pairs_once(self, &steps, plan, i % 2);
        }
        plan->end_ps = plan->end_ps > dn_model_now() ? plan->end_ps : dn_model_now();
    }
    free(flags);
    while (NULL != tree && DN_INPROGRESS == dn_tree_free(tree)) {
        dn_progress(self->port);
    }
}

/** @return microseconds. */
static double run(const char *fabric, uint32_t nodes, plan_t plan)
{
    if (NULL != only && 0 != strcmp(only, way_name[plan.way])) {
        return 0;
    }
    dn_paper_world_t world;

    dn_paper_init(&world, "dimmnet1-133", nodes);
    world.model.fabric = DN_MODEL_TREE;
    world.model.fabric_profile = fabric;
    world.model.stack_bytes = 32768;
    world.area = 2 * 2 * LOG_MAX * sizeof(uint64_t);
    world.llcm_bytes = 4096;
    if (WAY_LINES == plan.way) {
        /* Its own, the area of each node, and what the port keeps for itself. */
        world.area = SLOT;
        plan.llcm = lines_llcm(nodes, plan.radix);
        world.llcm_bytes = (uint32_t) ((plan.llcm + SLOT) / 4096 + 2) * 4096;
    } else if (WAY_FLAGS == plan.way) {
        world.area = flags_area(nodes, plan.radix);
        world.llcm_bytes = 4096 < world.area ? 16384 : 4096;
    }
    plan.llcm = WAY_LINES == plan.way ? plan.llcm : world.area;
    plan.card = calloc(nodes, sizeof(*plan.card));
    plan.peers = calloc(nodes, sizeof(*plan.peers));
    if (NULL == plan.card || NULL == plan.peers) {
        dn_paper_need(DN_ERR_NOMEM, "a table of peers");
    }
    dn_paper_run(&world, node, &plan);
    free(plan.peers);
    free(plan.card);
    if (0 != plan.late) {
        fprintf(stderr, "%llu nodes of %u began late\n", (unsigned long long) plan.late, nodes);
        exit(1);
    }
    if (0 != plan.wrong) {
        fprintf(stderr, "%llu nodes of %u have a wrong sum\n", (unsigned long long) plan.wrong, nodes);
        exit(1);
    }
    const double us = (double) (plan.end_ps - plan.start_ps) / 1e6;
    printf("%s %u %s %u %s %.3f %llu %llu\n", fabric, nodes, way_name[plan.way], plan.radix,
           plan.reduce ? "allreduce" : "barrier", us, (unsigned long long) (world.report.packets / REPEAT),
           (unsigned long long) plan.llcm);
    fflush(stdout);
    return us;
}

static void predict(const char *fabric, uint32_t least_nodes, uint32_t most)
{
    static const uint32_t radix[] = {2, 4, 8, 16, 32, 64};

    static const uint32_t sizes[] = {2, 4, 8, 64, 512, 4096, 65536};

    for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
        const uint32_t nodes = sizes[size];
        if (least_nodes > nodes || most < nodes) {
            continue;
        }
        for (int reduce = 0; reduce < 2; reduce++) {
            uint32_t best = 0;
            double least = 0;
            for (size_t i = 0; i < sizeof(radix) / sizeof(radix[0]) && (radix[i] <= nodes || 0 == i); i++) {
                const double us =
                    run(fabric, nodes, (plan_t){.way = WAY_FLAGS, .radix = radix[i], .reduce = reduce});
                if (0 == best || us < least) {
                    best = radix[i];
                    least = us;
                }
            }
            run(fabric, nodes, (plan_t){.way = WAY_LINES, .radix = 2, .reduce = reduce});
            run(fabric, nodes, (plan_t){.way = WAY_LINES, .radix = 8, .reduce = reduce});
            run(fabric, nodes, (plan_t){.way = WAY_DISSEMINATION, .radix = 2, .reduce = reduce});
            run(fabric, nodes, (plan_t){.way = WAY_BINOMIAL, .radix = 2, .reduce = reduce});
            if (0 == least) {
                continue;
            }
            printf("# %s: of the published trees, radix %u is the best for %s of %u nodes\n", fabric, best,
                   reduce ? "a sum" : "a barrier", nodes);
        }
    }
}

/** Two by two, nodes store to each other and back. */
static void ping_pong(dn_paper_node_t *self, void *arg)
{
    const uint32_t to = self->rank ^ 1;
    dn_peer_t *peer = dn_paper_peer(self, to);
    struct timespec *from = arg;

    dn_paper_meet(self);
    if (0 == self->rank) {
        clock_gettime(CLOCK_MONOTONIC, from);
    }
    for (uint64_t i = 1; i <= PINGS; i++) {
        if (0 == self->rank % 2) {
            dn_paper_aotf(self, peer, self->world->seat[to].off, i, sizeof(i));
        }
        take(self, 0);
        if (0 != self->rank % 2) {
            dn_paper_aotf(self, peer, self->world->seat[to].off, i, sizeof(i));
        }
    }
}

/** Packets a second of this machine's time. */
static void speed(void)
{
    struct timespec from, to;
    dn_paper_world_t world;

    dn_paper_init(&world, "dimmnet1-133", 64);
    world.model.fabric = DN_MODEL_TREE;
    dn_paper_run(&world, ping_pong, &from);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double s = (double) (to.tv_sec - from.tv_sec) + (double) (to.tv_nsec - from.tv_nsec) / 1e9;
    printf("%llu packets, %llu events in %.3f s: %.2f million packets a second\n",
           (unsigned long long) world.report.packets, (unsigned long long) world.report.events, s,
           (double) world.report.packets / s / 1e6);
}

int main(int argc, char **argv)
{
    uint32_t least = 2;
    uint32_t most = 65536;
    const char *fabric = NULL;

    for (int i = 1; i < argc; i++) {
        if (0 == strcmp(argv[i], "--most") && i + 1 < argc) {
            most = (uint32_t) strtoul(argv[++i], NULL, 0);
        } else if (0 == strcmp(argv[i], "--least") && i + 1 < argc) {
            least = (uint32_t) strtoul(argv[++i], NULL, 0);
        } else if (0 == strcmp(argv[i], "--fabric") && i + 1 < argc) {
            fabric = argv[++i];
        } else if (0 == strcmp(argv[i], "--algorithm") && i + 1 < argc) {
            only = argv[++i];
        } else if (0 == strcmp(argv[i], "--speed")) {
            speed();
            return 0;
        } else {
            fprintf(stderr,
                    "usage: dn_predict [--least NODES] [--most NODES] [--fabric PROFILE] [--algorithm NAME] "
                    "[--speed]\n");
            return 2;
        }
    }
    printf("# fabric nodes algorithm radix operation us packets llcm_bytes\n");
    if (NULL != fabric) {
        predict(fabric, least, most);
        return 0;
    }
    predict("rhinet2", least, most);
    predict("fibnic", least, most);
    predict("quantum-hdr", least, most);
    return 0;
}
