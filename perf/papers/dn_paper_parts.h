/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_paper_parts.h
 * What the cells of the papers' tables are run by: patterns of two nodes, and one way of a size. Each ends the program
 * with a sentence when the model fails.
 */
#ifndef DN_PAPER_PARTS_H
#define DN_PAPER_PARTS_H

#include "dn_paper_world.h"

enum { DN_PAPER_WARM = 20, DN_PAPER_ROUNDS = 400, DN_PAPER_PAYLOAD = 1 << 20, DN_PAPER_TARGETS = 3 };

/** Bytes to send. */
extern uint8_t dn_paper_payload[DN_PAPER_PAYLOAD];

/** Print a cell's value. */
void dn_paper_cell(const char *table, const char *name, double value);
/** A value of a profile, as dn_model_value() gives it. */
uint64_t dn_paper_value(const char *profile, const char *key);

/** Ping-pong, barrier, global sum: 2 nodes, or one looped back. */
typedef struct dn_paper_pattern {
    dn_model_read_t parent; /**< what node 0 polls, and node 1 */
    dn_model_read_t child;
    unsigned size;       /**< bytes of a store */
    uint64_t compute_ps; /**< in a round, at node 0 */
    int again;           /**< each side reads what came once more */
    int interrupt;       /**< the first leg is an interrupt AOTF */
    double ns;           /**< result: a round */
    double leg_ns;       /**< of the first leg */
    uint64_t sent_ps;
} dn_paper_pattern_t;
dn_paper_pattern_t dn_paper_pattern(dn_paper_world_t *world, dn_paper_pattern_t p);
/** A round trip of 4 bytes in nanoseconds, with the profile's software. @p switches: whose, NULL: the profile's own. */
double dn_paper_round_trip(const char *profile, dn_model_fabric_t fabric, const char *switches,
                           uint32_t count, uint32_t cable_m);

/** One way: when the first store, window, PUSH or PULL of a size is in memory. */
typedef struct dn_paper_one_way {
    enum { DN_ONE_STORE, DN_ONE_WINDOW, DN_ONE_PUSH, DN_ONE_PULL, DN_ONE_BURST_PUSH, DN_ONE_BURST_PULL } what;
    uint32_t len;
    int until_ack;    /**< until the sender knows, instead of until the data are there */
    uint32_t targets; /**< that node 0 sends to in turn; 0: one */
    double ns;        /**< result: mean over the targets */
    uint64_t start_ps[DN_PAPER_TARGETS + 1];
} dn_paper_one_way_t;
/** In nanoseconds. */
double dn_paper_one_way(const char *profile, dn_model_fabric_t fabric, uint32_t switches, uint32_t cable_m,
                        dn_paper_one_way_t one);
/** The same over the switches of the profile @p box, NULL: its own. */
double dn_paper_one_way_by(const char *profile, dn_model_fabric_t fabric, const char *box, uint32_t switches,
                           uint32_t cable_m, dn_paper_one_way_t one);

/** Cells of IP-NUMA, FIBNIC, memcached and UZURA. */
void dn_papers_network(void);

#endif
