/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The way of a packet: host, NIC, link, the other NIC, memory. Stages are those of dn_model_param.h.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_model_int.h"

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/** @name Packets */
/** @{ */
dn_model_packet_t *dn_model_packet_new(dn_model_node_t *from, dn_model_node_t *to, dn_packet_kind_t kind,
                                       uint64_t len, dn_model_deliver_fn_t deliver)
{
    dn_model_t *model = from->model;
    dn_model_packet_t *packet = model->packets;

    if (NULL != packet) {
        model->packets = packet->next;
    } else {
        packet = malloc(sizeof(*packet));
        if (NULL == packet) {
            model->failed = DN_ERR_NOMEM;
            return NULL;
        }
    }
    memset(packet, 0, offsetof(dn_model_packet_t, data));
    packet->from = from;
    packet->to = to;
    packet->kind = kind;
    packet->len = len;
    packet->deliver = deliver;
    packet->wipe = UINT64_MAX;
    return packet;
}

void dn_model_packet_free(dn_model_t *model, dn_model_packet_t *packet)
{
    packet->next = model->packets;
    model->packets = packet;
}

uint64_t dn_model_wire_bytes(const dn_model_node_t *node, uint64_t len)
{
    return dn_max(dn_value(node, DN_P_HEADER_BYTES) + len, dn_value(node, DN_P_WIRE_MIN));
}

uint64_t dn_model_wire_ps(const dn_model_node_t *node, uint64_t len)
{
    return dn_time_of(dn_model_wire_bytes(node, len), dn_value(node, DN_P_LINK_RATE));
}

static void dn_packet_arrive(dn_model_t *model, void *arg)
{
    dn_model_flow_arrive(model, arg);
}

uint64_t dn_model_packet_enter(dn_model_t *model, dn_model_packet_t *packet, uint64_t at_ps)
{
    const dn_model_node_t *from = packet->from;
    dn_model_node_t *to = packet->to;
    const uint64_t wire = dn_model_wire_bytes(from, packet->len);
    uint64_t t = at_ps;

    t += DN_MODEL_INTERNAL == model->config.fabric ? 0 : dn_value(to, DN_P_OUTSIDE);
    t += from == to ? 0 : dn_value(to, DN_P_CROSSING);
    if (0 != packet->interval_ps) {
        t = dn_max(t, to->busy.receive_ps);
        to->busy.receive_ps = t + packet->interval_ps;
    }
    const uint64_t taken = t;
    if (wire <= dn_value(from, DN_P_WIRE_MIN)) {
        t += dn_value(from, DN_P_PADDING);
    } else if (wire > dn_value(from, DN_P_WIRE_FREE)) {
        t += dn_time_of(wire - dn_value(from, DN_P_WIRE_FREE), dn_value(from, DN_P_LINK_RATE));
    }
    t += dn_value(to, DN_P_LINK_RECEIVE) + dn_value(to, DN_P_ACCESS_CHECK) + dn_value(to, DN_P_MEMORY_WRITE);
    /* A transfer is told of when all of it is there. */
    t += DN_PACKET_DMA == packet->kind ? 0 : dn_value(to, DN_P_ARRIVAL);
    dn_model_at(model, t + packet->extra_ps, dn_packet_arrive, packet);
    return taken;
}

/** The first byte is at the last port on its way. */
static void dn_packet_port(dn_model_t *model, void *arg)
{
    dn_model_packet_t *packet = arg;
    const dn_model_node_t *from = packet->from;
    const uint64_t wire_ps = dn_model_wire_ps(from, packet->len);

    dn_model_packet_enter(model, packet, dn_model_net_leave(model, from->index, packet->to->index, wire_ps));
}

static void dn_packet_pass(dn_model_t *model, dn_model_packet_t *packet)
{
    const dn_model_node_t *from = packet->from;
    const uint64_t at =
        dn_model_net_pass(model, from->index, packet->to->index, dn_model_wire_ps(from, packet->len));

    if (at > model->now_ps) {
        dn_model_at(model, at, dn_packet_port, packet);
    } else {
        dn_packet_port(model, packet);
    }
}

void dn_model_packet_leave(dn_model_t *model, void *arg)
{
    dn_model_packet_t *packet = arg;
    dn_model_packet_t *copies;

    model->report.packets++;
    model->report.wire_bytes += dn_model_wire_bytes(packet->from, packet->len);
    if (dn_model_flow_loses(packet)) {
        return;
    }
    if (NULL != model->hop && (packet->from != packet->to || NULL != packet->copies)) {
        dn_model_hop_enter(model, packet);
        return;
    }
    for (; NULL != packet; packet = copies) {
        copies = packet->copies;
        packet->copies = NULL;
        dn_packet_pass(model, packet);
    }
}

uint64_t dn_model_packet_send(dn_model_packet_t *packet, uint64_t at_ps)
{
    dn_model_node_t *from = packet->from;
    const uint64_t start = dn_max(at_ps, from->busy.link_ps);

    from->busy.link_ps = start + dn_model_wire_ps(from, packet->len);
    if (DN_PACKET_BOTF == packet->kind) {
        packet->interval_ps = dn_value(packet->to, DN_P_RECEIVE_INTERVAL);
        packet->extra_ps = dn_value(packet->to, DN_P_BOTF_RECEIVE);
    }
    /* The serialiser's latency is no time on the link: the next packet may follow at once. */
    dn_model_at(from->model, start + dn_value(from, DN_P_LINK_SEND), dn_model_packet_leave, packet);
    return from->busy.link_ps;
}
/** @} */

/** @name The header table */
/** @{ */
uint32_t dn_model_kick_page(dn_model_node_t *node)
{
    return ++node->pages;
}

int dn_model_htlb(dn_model_node_t *node, uint32_t page)
{
    const uint64_t entries = dn_value(node, DN_P_HTLB_ENTRIES);
    const uint64_t ways = dn_value(node, DN_P_HTLB_WAYS);
    uint64_t at = 0;

    if (0 == entries) {
        return 1;
    }
    if (NULL == node->htlb) {
        node->htlb = calloc(entries + ways, sizeof(*node->htlb));
        if (NULL == node->htlb) {
            node->model->failed = DN_ERR_NOMEM;
            return 1;
        }
    }
    /* The least recently used way of the set gives way: the newest is kept first. */
    uint32_t *set = node->htlb + page % (entries / ways) * ways;
    while (at < ways - 1 && page != set[at]) {
        at++;
    }
    const int hit = page == set[at];
    memmove(set + 1, set, at * sizeof(*set));
    set[0] = page;
    if (!hit) {
        node->model->report.header_misses++;
        node->model->report.interrupts++;
    }
    return hit;
}
/** @} */

uint64_t dn_model_tlb(dn_model_node_t *node, int which, uint64_t key)
{
    const uint64_t entries = dn_value(node, DN_P_TLB_ENTRIES);

    if (0 == entries) {
        return 0;
    }
    if (NULL == node->tlb) {
        node->tlb = calloc(2 * entries, sizeof(*node->tlb));
        if (NULL == node->tlb) {
            node->model->failed = DN_ERR_NOMEM;
            return 0;
        }
    }
    uint64_t *entry = &node->tlb[(uint64_t) which * entries + key % entries];
    if (key + 1 == *entry) {
        return 0;
    }
    *entry = key + 1;
    node->model->report.tlb_misses++;
    node->model->report.interrupts++;
    return dn_value(node, DN_P_TLB_MISS);
}

/** @name Pages of host memory */
/** @{ */
/** Where a page is in a table, or belongs. */
static dn_model_host_page_t *dn_host_page_at(dn_model_host_page_t *table, uint64_t room, uint64_t page)
{
    uint64_t mix = page;
    uint64_t at = dn_model_random(&mix) & (room - 1);

    while (0 != table[at].number && page != table[at].page) {
        at = (at + 1) & (room - 1);
    }
    return &table[at];
}

/** Make room for one more. @return 0: there is no memory. */
static int dn_host_page_room(dn_model_node_t *node)
{
    const uint64_t room = 0 == node->host_room ? 64 : 2 * node->host_room;

    if (2 * node->host_pages < node->host_room) {
        return 1;
    }
    dn_model_host_page_t *table = calloc(room, sizeof(*table));
    if (NULL == table) {
        return 0;
    }
    for (uint64_t i = 0; i < node->host_room; i++) {
        if (0 != node->host_page[i].number) {
            *dn_host_page_at(table, room, node->host_page[i].page) = node->host_page[i];
        }
    }
    free(node->host_page);
    node->host_page = table;
    node->host_room = room;
    return 1;
}

uint64_t dn_model_host_page(dn_model_node_t *node, uint64_t address)
{
    const uint64_t page = address / dn_value(node, DN_P_PAGE);
    const uint64_t entries = dn_value(node, DN_P_TLB_ENTRIES);

    if (0 == entries) {
        return 0;
    }
    if (!dn_host_page_room(node)) {
        node->model->failed = DN_ERR_NOMEM;
        return 0;
    }
    dn_model_host_page_t *place = dn_host_page_at(node->host_page, node->host_room, page);
    if (0 == place->number) {
        *place = (dn_model_host_page_t){page, ++node->host_pages};
    }
    /* No segment's page, and half of the table away from the first of these. */
    return (UINT64_C(1) << 63) + entries / 2 + place->number;
}
/** @} */

/** @name What the host does */
/** @{ */
/** Stores that are in the transaction FIFO at a time. */
static uint64_t dn_fifo_held(const dn_model_node_t *node, uint64_t at_ps)
{
    const uint64_t fifo = dn_value(node, DN_P_FIFO);
    uint64_t held = node->stores < fifo ? node->stores : fifo;

    /* The oldest leave first. */
    while (0 != held && node->fifo[(node->stores - held) % fifo] <= at_ps) {
        held--;
    }
    return held;
}

/** Has this user a credit? Without one it looks how full the FIFO is. */
static int dn_credit(dn_model_node_t *node)
{
    if (0 != node->credits) {
        return 1;
    }
    node->clock_ps += dn_value(node, DN_P_HOST_READ_8);
    node->model->report.credit_checks++;
    const uint64_t room = dn_value(node, DN_P_FIFO) - dn_fifo_held(node, node->clock_ps);
    const uint64_t most = dn_value(node, DN_P_CREDITS);
    node->credits = room < most ? room : most;
    return 0 != node->credits;
}

uint64_t dn_model_store(dn_model_node_t *node, uint32_t page)
{
    const uint64_t fifo = dn_value(node, DN_P_FIFO);
    const uint64_t lookup = dn_value(node, DN_P_HEADER_LOOKUP);

    dn_model_busy(node);
    if (NULL == node->fifo) {
        node->fifo = calloc(fifo, sizeof(*node->fifo));
        if (NULL == node->fifo) {
            node->model->failed = DN_ERR_NOMEM;
            return DN_MODEL_NEVER;
        }
    }
    if (!dn_credit(node)) {
        return DN_MODEL_NEVER;
    }
    node->credits--;
    node->clock_ps += dn_value(node, DN_P_HOST_STORE);
    const uint64_t queued = node->clock_ps + dn_value(node, DN_P_HOST_TO_NIC)
                            + dn_value(node, DN_P_WRITE_FROM_HOST) + dn_value(node, DN_P_TRANSACTION_QUEUE);
    /* One store after the other is looked up; none leaves the FIFO before the link takes what is ahead of it. */
    uint64_t leave = dn_max(dn_max(queued, node->busy.pipe_ps),
                            node->busy.link_ps - (node->busy.link_ps < lookup ? node->busy.link_ps : lookup));
    node->fifo[node->stores++ % fifo] = leave;
    if (!dn_model_htlb(node, page)) {
        leave += dn_value(node, DN_P_HTLB_MISS);
    }
    node->busy.pipe_ps = leave + lookup;
    node->model->report.aotf++;
    return leave + lookup + dn_value(node, DN_P_SIZE_DECISION) + dn_value(node, DN_P_SEND_BUFFER);
}

uint64_t dn_model_window(dn_model_node_t *node, uint64_t len)
{
    const uint64_t windows = dn_value(node, DN_P_WINDOWS);

    dn_model_busy(node);
    if (NULL == node->window_ps) {
        node->window_ps = calloc(windows, sizeof(*node->window_ps));
        if (NULL == node->window_ps) {
            node->model->failed = DN_ERR_NOMEM;
            return DN_MODEL_NEVER;
        }
    }
    const uint64_t free_ps = node->window_ps[node->windows % windows];
    if (node->windows >= windows && 0 != dn_value(node, DN_P_WINDOW_CHECK)) {
        node->clock_ps += dn_value(node, DN_P_HOST_READ_8);
        node->model->report.window_checks++;
    }
    if (free_ps > node->clock_ps) {
        /* It reads the state until it is the wanted one. */
        node->model->report.window_waits++;
        node->clock_ps = free_ps + dn_value(node, DN_P_HOST_READ_8) / 2;
    }
    node->clock_ps += dn_time_of(len, dn_value(node, DN_P_HOST_COPY)) + dn_value(node, DN_P_HOST_STORE);
    node->model->report.botf++;
    return node->clock_ps + dn_value(node, DN_P_HOST_TO_NIC) + dn_value(node, DN_P_BOTF_START);
}

void dn_model_window_free(dn_model_node_t *node, uint64_t at_ps)
{
    node->window_ps[node->windows++ % dn_value(node, DN_P_WINDOWS)] = at_ps;
}

uint64_t dn_model_read_message_ps(const dn_model_node_t *node, uint64_t len)
{
    const uint64_t line = dn_value(node, DN_P_HOST_READ_LINE);

    return 0 != line ? (len + 63) / 64 * line : (len + 7) / 8 * dn_value(node, DN_P_HOST_READ_8);
}
/** @} */
