/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Links one by one, for profiles whose links have credits or bit errors (Martini paper, section 10: RHiNET-3). Between a NIC and
 * a switch, two switches, or two NICs a packet waits in the order of its coming until the link is free and has credits
 * for all of it. It has them until the switch or NIC at the far end has passed on, or begins to take in, its first byte (credits
 * for packets: its last one), and the credit has come back along the cable. What comes wrong is asked for again at once and sent again by this link
 * alone; what is behind it waits, so that order stays.
 *
 * The paper gives neither a count of credits nor times. Taken as given here: a packet starts when there is room for all
 * of it (one that is longer than all credits takes all of them); credits and requests to send again come back in the
 * time of the cable; the cable from node to node is cut into equal pieces.
 */
#include "dn_config.h"

#include <stdlib.h>

#include "dn_log.h"
#include "dn_model_int.h"

/** Links of pairs of nodes, each pair having its own: more are taken for a mistake. */
#define DN_HOP_PAIRS_MAX (UINT64_C(1) << 22)

struct dn_model_hop {
    uint64_t free_ps;         /**< it takes the next packet */
    uint64_t used;            /**< credits */
    int looked;               /**< an event will look at it when it is free */
    dn_model_packet_t *first; /**< that wait for it, oldest first */
    dn_model_packet_t **last;
};

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/** @name Ways */
/** @{ */
static int dn_hop_in_pairs(const dn_model_t *model)
{
    return DN_MODEL_STAR != model->config.fabric && DN_MODEL_TREE != model->config.fabric;
}

/** Switches between two nodes that share none. */
static uint32_t dn_hop_chain(const dn_model_t *model)
{
    return DN_MODEL_CHAIN == model->config.fabric ? model->config.switches : 0;
}

/** Links between two nodes. */
static uint32_t dn_hop_count(const dn_model_t *model, uint32_t from, uint32_t to)
{
    if (dn_hop_in_pairs(model)) {
        return dn_hop_chain(model) + 1;
    }
    return 2 * dn_model_net_climb(model, from, to) + 2;
}

/** The link that a packet takes next. Upwards it is chosen by the target; downwards each target has its own. */
static dn_model_hop_t *dn_hop_next(const dn_model_t *model, const dn_model_packet_t *packet)
{
    const uint32_t from = packet->from->index;
    const uint32_t to = packet->to->index;
    const uint32_t count = dn_hop_count(model, from, to);
    const size_t width = dn_model_net_width(model);

    if (dn_hop_in_pairs(model)) {
        return &model->hop[((size_t) from * model->config.nodes + to) * count + packet->hop];
    }
    if (packet->hop < count / 2) {
        const size_t up = 0 == packet->hop ? from : dn_model_net_up(model, packet->hop, from, to);
        return &model->hop[packet->hop * width + up];
    }
    return &model->hop[(model->levels + count - 1 - packet->hop) * width + to];
}

dn_status_t dn_model_hop_open(dn_model_t *model)
{
    const dn_model_fabric_t fabric = model->config.fabric;
    const uint64_t nodes = model->config.nodes;
    const uint64_t *value = model->profile.value;

    if (DN_MODEL_INTERNAL == fabric || DN_MODEL_EXTERNAL == fabric
        || (0 == value[DN_P_FLOW_CREDITS] && 0 == value[DN_P_BIT_ERRORS])) {
        return DN_OK;
    }
    model->hops = 2 * model->levels * dn_model_net_width(model);
    if (dn_hop_in_pairs(model)) {
        if (DN_HOP_PAIRS_MAX / nodes / nodes <= dn_hop_chain(model)) {
            dn_log_error("%u nodes joined two by two have too many links with credits or errors; take a star "
                         "or a tree",
                         model->config.nodes);
            return DN_ERR_PARAM;
        }
        model->hops = nodes * nodes * dn_hop_count(model, 0, 0);
    }
    model->hop = calloc(model->hops, sizeof(*model->hop));
    if (NULL == model->hop) {
        return DN_ERR_NOMEM;
    }
    for (size_t i = 0; i < model->hops; i++) {
        model->hop[i].last = &model->hop[i].first;
    }
    return DN_OK;
}

void dn_model_hop_close(dn_model_t *model)
{
    for (size_t i = 0; i < model->hops; i++) {
        while (NULL != model->hop[i].first) {
            dn_model_packet_t *packet = model->hop[i].first;
            model->hop[i].first = packet->next;
            dn_model_packet_free(model, packet);
        }
    }
    free(model->hop);
}

/** The piece of the cable that belongs to a link of a packet's way. */
static uint64_t dn_hop_cable_ps(const dn_model_t *model, const dn_model_packet_t *packet, uint32_t hop)
{
    const uint64_t whole = model->config.cable_m * model->profile.value[DN_P_LINK_PER_M];
    const uint32_t count = dn_hop_count(model, packet->from->index, packet->to->index);

    return whole * (hop + 1) / count - whole * hop / count;
}
/** @} */

/** @name Credits */
/** @{ */
/** That a packet needs. */
static uint64_t dn_hop_needs(const dn_model_t *model, const dn_model_packet_t *packet)
{
    const uint64_t unit = model->profile.value[DN_P_FLOW_UNIT];
    const uint64_t all = model->profile.value[DN_P_FLOW_CREDITS];
    const uint64_t bytes = dn_model_wire_bytes(packet->from, packet->len);
    const uint64_t needs = 0 == unit ? 1 : (bytes + unit - 1) / unit;

    return needs < all ? needs : all;
}

static void dn_hop_look(dn_model_t *model, dn_model_hop_t *link);

/** dn_model_event_fn_t: credits are back at the link. They travel as a packet that nobody delivers. */
static void dn_hop_credit(dn_model_t *model, void *arg)
{
    dn_model_packet_t *credit = arg;
    dn_model_hop_t *link = credit->held;

    link->used -= credit->credits;
    dn_model_packet_free(model, credit);
    dn_hop_look(model, link);
}

/** The first byte of a packet leaves the far end of the link that it came by last. */
static void dn_hop_give_back(dn_model_t *model, dn_model_packet_t *packet, uint64_t at_ps)
{
    const int whole = 0 == model->profile.value[DN_P_FLOW_UNIT];
    const uint64_t left_ps = at_ps + (whole ? dn_model_wire_ps(packet->from, packet->len) : 0);

    if (0 == packet->credits) {
        return;
    }
    dn_model_packet_t *credit = dn_model_packet_new(packet->from, packet->to, packet->kind, 0, NULL);
    if (NULL != credit) {
        credit->held = packet->held;
        credit->credits = packet->credits;
        packet->credits = 0;
        dn_model_at(model, left_ps + dn_hop_cable_ps(model, packet, packet->hop - 1), dn_hop_credit, credit);
    }
}
/** @} */

/** @name From link to link */
/** @{ */
static void dn_hop_there(dn_model_t *model, void *arg);

static int dn_hop_wrong(const dn_model_packet_t *packet)
{
    const uint64_t most = UINT64_C(900000000000000);
    const uint64_t errors = dn_value(packet->from, DN_P_BIT_ERRORS);

    if (0 == errors) {
        return 0;
    }
    const uint64_t bits = 8 * dn_model_wire_bytes(packet->from, packet->len);
    const uint64_t chance = bits < most / errors ? bits * errors : most;
    return dn_model_random(&packet->from->random) % UINT64_C(1000000000000000) < chance;
}

/** A packet begins on a link that is free and has the credits. */
static void dn_hop_begin(dn_model_t *model, dn_model_hop_t *link, dn_model_packet_t *packet)
{
    dn_model_report_t *report = &model->report;
    dn_model_node_t *from = packet->from;
    const uint64_t wire_ps = dn_model_wire_ps(from, packet->len);
    const uint64_t cable_ps = dn_hop_cable_ps(model, packet, packet->hop);
    const int last = packet->hop + 1 == dn_hop_count(model, from->index, packet->to->index);
    uint64_t start = model->now_ps;

    for (report->link_packets++; dn_hop_wrong(packet); report->link_packets++) {
        report->link_resent++;
        start += wire_ps + 2 * cable_ps;
    }
    link->free_ps = start + wire_ps;
    if (0 == packet->hop) {
        /* What the NIC's link could not send yet, what is behind waits for. */
        from->busy.link_ps = dn_max(from->busy.link_ps, link->free_ps - dn_value(from, DN_P_LINK_SEND));
    } else {
        link->free_ps = start + dn_max(wire_ps, dn_value(from, DN_P_SWITCH_INTERVAL));
        dn_hop_give_back(model, packet, start);
    }
    packet->held = link;
    packet->credits = dn_hop_needs(model, packet);
    link->used += packet->credits;
    report->link_credits = dn_max(report->link_credits, link->used);
    dn_model_at(model, start + cable_ps + (last ? 0 : dn_model_net_switch_ps(model, wire_ps)), dn_hop_there,
                packet);
}

/** dn_model_event_fn_t: the link takes the next packet. */
static void dn_hop_free(dn_model_t *model, void *arg)
{
    dn_model_hop_t *link = arg;

    link->looked = 0;
    dn_hop_look(model, link);
}

/** Begin what may begin. */
static void dn_hop_look(dn_model_t *model, dn_model_hop_t *link)
{
    const uint64_t all = model->profile.value[DN_P_FLOW_CREDITS];

    while (NULL != link->first) {
        dn_model_packet_t *packet = link->first;
        if (link->free_ps > model->now_ps) {
            if (!link->looked) {
                link->looked = 1;
                dn_model_at(model, link->free_ps, dn_hop_free, link);
            }
            return;
        }
        if (0 != all && dn_hop_needs(model, packet) > all - link->used) {
            model->report.link_stalls++;
            return;
        }
        link->first = packet->next;
        if (NULL == link->first) {
            link->last = &link->first;
        }
        dn_hop_begin(model, link, packet);
    }
}

static void dn_hop_wait(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_hop_t *link = dn_hop_next(model, packet);

    packet->next = NULL;
    *link->last = packet;
    link->last = &packet->next;
    dn_hop_look(model, link);
}

/** One packet at a switch and its copies go on, each with its share of the credits: the last one gives the last back. */
static void dn_hop_split(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_hop_t *held = packet->held;
    const uint32_t hop = packet->hop;
    uint64_t credits = packet->credits;
    uint64_t members = 0;
    dn_model_packet_t *next;

    for (next = packet; NULL != next; next = next->copies) {
        members++;
    }
    for (; NULL != packet; packet = next, members--) {
        next = packet->copies;
        packet->copies = NULL;
        packet->hop = hop;
        packet->held = held;
        packet->credits = credits / members;
        credits -= packet->credits;
        dn_hop_wait(model, packet);
    }
}

/** dn_model_event_fn_t: the first byte may leave the switch that it is in, or is at the NIC that it goes to. */
static void dn_hop_there(dn_model_t *model, void *arg)
{
    dn_model_packet_t *packet = arg;

    packet->hop++;
    if (packet->hop < dn_hop_count(model, packet->from->index, packet->to->index)) {
        dn_hop_split(model, packet);
    } else {
        dn_hop_give_back(model, packet, dn_model_packet_enter(model, packet, model->now_ps));
    }
}

void dn_model_hop_enter(dn_model_t *model, dn_model_packet_t *packet)
{
    packet->hop = 0;
    packet->credits = 0;
    dn_hop_wait(model, packet);
}
/** @} */
