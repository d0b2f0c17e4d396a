/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Packets that are lost, and sent again (IP-NUMA thesis: designed, left out of its prototype). The receiver acknowledges each packet;
 * the sender keeps it until then, and sends it again when a time has passed since it left. Stores and messages of one node to
 * another take effect in the order in which they were sent: what comes behind a gap waits at the receiver, what comes
 * twice is known by its number and dropped. Time counts from when a packet leaves: one that waits for the link is not late. The thesis gives
 * no format; an acknowledgement is taken for a packet without data.
 */
#include "dn_config.h"

#include "dn_model_int.h"

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/** One packet on a node's link. @return when it begins. */
static uint64_t dn_flow_link(dn_model_node_t *from, uint64_t len)
{
    const uint64_t start = dn_max(from->model->now_ps, from->busy.link_ps);

    from->busy.link_ps = start + dn_model_wire_ps(from, len);
    return start;
}

static int dn_flow_draw(dn_model_node_t *from)
{
    const uint64_t loss = dn_value(from, DN_P_LINK_LOSS);

    return 0 != loss && dn_model_random(&from->random) % 1000000 < loss;
}

/** The sender has heard nothing. */
static void dn_flow_again(dn_model_t *model, void *arg)
{
    dn_model_packet_t *packet = arg;

    model->report.resent++;
    const uint64_t start = dn_flow_link(packet->from, packet->len);
    dn_model_at(model, start + dn_value(packet->from, DN_P_LINK_SEND), dn_model_packet_leave, packet);
}

int dn_model_flow_loses(dn_model_packet_t *packet)
{
    dn_model_node_t *from = packet->from;

    if (!dn_flow_draw(from)) {
        return 0;
    }
    from->model->report.lost++;
    dn_model_at(from->model, from->model->now_ps + dn_value(from, DN_P_RESEND_AFTER), dn_flow_again, packet);
    return 1;
}

/** Acknowledge a packet. Where that is lost, the packet comes once more, for nothing but a second acknowledgement. */
static void dn_flow_acknowledge(dn_model_packet_t *packet)
{
    dn_model_report_t *report = &packet->from->model->report;

    dn_flow_link(packet->to, 0);
    report->acks++;
    while (dn_flow_draw(packet->to)) {
        report->lost++;
        report->resent++;
        dn_flow_link(packet->from, packet->len);
        dn_flow_link(packet->to, 0);
        report->acks++;
    }
}

void dn_model_flow_arrive(dn_model_t *model, dn_model_packet_t *packet)
{
    if (0 == dn_value(packet->from, DN_P_RESEND_AFTER)) {
        packet->deliver(model, packet);
        return;
    }
    dn_flow_acknowledge(packet);
    if (NULL == packet->link) {
        packet->deliver(model, packet);
        return;
    }
    dn_model_link_t *link = packet->link;
    dn_model_side_t *side = &link->side[packet->side];
    dn_model_packet_t **at = &side->early;
    while (NULL != *at && (*at)->number < packet->number) {
        at = &(*at)->next;
    }
    packet->next = *at;
    *at = packet;
    /* A delivery may give the last packet's reference to the link back. */
    link->refs++;
    while (NULL != side->early && side->early->number == side->arrived) {
        dn_model_packet_t *first = side->early;
        side->early = first->next;
        side->arrived++;
        first->deliver(model, first);
    }
    dn_model_link_give(link);
}
