/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * IP-NUMA's tables (thesis, sections 3 and 6). A NIC that writes has a page map, with an entry for each page of
 * others' memory that it reaches, and a PC ID for each computer that these pages are of. A NIC that is written to has a shared
 * region table, which says which NIC may write where. A port's LLCM with its message rings is one region, each segment is another.
 *
 * The thesis does not say what happens when a table is full. Entries are made by software, so this is
 * software's to find: what would need one more is refused before anything has left.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "dn_log.h"
#include "dn_model_int.h"

/** A computer that this one has a number for. */
struct dn_model_pc {
    uint32_t node;
    uint32_t uses; /**< peers there; 0: the number is free */
};

/** A segment of a peer that the page map reaches. */
struct dn_model_mapped {
    dn_model_mapped_t *next;
    uint32_t sid;
    uint32_t generation;
    uint64_t pages;
};

static uint64_t dn_pages_of(const dn_model_node_t *node, uint64_t bytes)
{
    const uint64_t page = dn_value(node, DN_P_PAGE);

    return bytes / page + (0 != bytes % page);
}

/** @name Page map and PC ID table */
/** @{ */
/** Take entries of the page map. @return 0: there are not so many. */
static int dn_pages_alloc(dn_model_node_t *node, uint64_t pages)
{
    const uint64_t most = dn_value(node, DN_P_PAGE_REGION) / dn_value(node, DN_P_PAGE);
    dn_model_report_t *report = &node->model->report;

    if (pages > most - node->pages_mapped) {
        return 0;
    }
    node->pages_mapped += pages;
    report->pages_mapped =
        report->pages_mapped > node->pages_mapped ? report->pages_mapped : node->pages_mapped;
    return 1;
}

static dn_status_t dn_pc_alloc(dn_model_node_t *node, uint32_t far)
{
    const uint64_t most = dn_value(node, DN_P_PC_IDS);
    uint32_t free = node->pcs;

    for (uint32_t i = 0; i < node->pcs; i++) {
        if (far == node->pc[i].node && 0 != node->pc[i].uses) {
            node->pc[i].uses++;
            return DN_OK;
        }
        free = 0 == node->pc[i].uses ? i : free;
    }
    if (free >= most) {
        dn_log_error("the PC ID table of node %" PRIu32 " has %" PRIu64
                     " entries, and all are taken; disconnect from other nodes, or raise pc_id_count of %s",
                     node->index, most, node->model->profile.name);
        return DN_ERR_NOMEM;
    }
    if (free == node->pcs) {
        const uint32_t room = 0 == node->pcs ? 1 : 2 * node->pcs;
        /* Grown when it is a power of two long: then it is as long as its memory. */
        dn_model_pc_t *pc =
            0 == (node->pcs & (node->pcs - 1)) ? realloc(node->pc, room * sizeof(*pc)) : node->pc;
        if (NULL == pc) {
            return DN_ERR_NOMEM;
        }
        node->pc = pc;
        node->pcs++;
    }
    node->pc[free] = (dn_model_pc_t){far, 1};
    return DN_OK;
}

static void dn_pc_free(dn_model_node_t *node, uint32_t far)
{
    for (uint32_t i = 0; i < node->pcs; i++) {
        if (far == node->pc[i].node && 0 != node->pc[i].uses) {
            node->pc[i].uses--;
            return;
        }
    }
}

dn_status_t dn_model_map_peer(dn_model_node_t *node, dn_model_peer_t *peer)
{
    const uint64_t pages = dn_pages_of(node, peer->base.llcm_len);

    if (peer->mapped || 0 == dn_value(node, DN_P_PAGE_REGION)) {
        return DN_OK;
    }
    const dn_status_t status = dn_pc_alloc(node, peer->far->index);
    if (DN_OK != status) {
        return status;
    }
    if (!dn_pages_alloc(node, pages)) {
        dn_pc_free(node, peer->far->index);
        dn_log_error("the page map of node %" PRIu32 " has %" PRIu64 " of %" PRIu64
                     " pages taken; the LLCM of node %" PRIu32 " needs %" PRIu64
                     ": disconnect from other nodes, lower llcm_bytes, or raise page_region of %s",
                     node->index, node->pages_mapped,
                     dn_value(node, DN_P_PAGE_REGION) / dn_value(node, DN_P_PAGE), peer->far->index, pages,
                     node->model->profile.name);
        return DN_ERR_NOMEM;
    }
    peer->mapped = 1;
    return DN_OK;
}

void dn_model_unmap_peer(dn_model_node_t *node, dn_model_peer_t *peer)
{
    if (!peer->mapped) {
        return;
    }
    peer->mapped = 0;
    node->pages_mapped -= dn_pages_of(node, peer->base.llcm_len);
    dn_pc_free(node, peer->far->index);
    while (NULL != peer->segment) {
        dn_model_mapped_t *segment = peer->segment;
        peer->segment = segment->next;
        node->pages_mapped -= segment->pages;
        free(segment);
    }
}

int dn_model_map_segment(dn_model_node_t *node, dn_model_peer_t *peer, const dn_key_t *key)
{
    dn_model_mapped_t **at = &peer->segment;

    if (0 == dn_value(node, DN_P_PAGE_REGION)) {
        return 1;
    }
    while (NULL != *at && key->sid != (*at)->sid) {
        at = &(*at)->next;
    }
    dn_model_mapped_t *segment = *at;
    if (NULL != segment && key->generation == segment->generation) {
        return 1;
    }
    if (NULL != segment) {
        /* Its number was given to another one meanwhile: the entries name memory that is no more. */
        *at = segment->next;
        node->pages_mapped -= segment->pages;
        free(segment);
    }
    const uint64_t pages = dn_pages_of(node, key->len);
    segment = peer->mapped && dn_pages_alloc(node, pages) ? calloc(1, sizeof(*segment)) : NULL;
    if (NULL == segment) {
        return 0;
    }
    *segment = (dn_model_mapped_t){peer->segment, key->sid, key->generation, pages};
    peer->segment = segment;
    return 1;
}
/** @} */

/** @name Shared region table */
/** @{ */
int dn_model_region_alloc(dn_model_node_t *node)
{
    const uint64_t most = dn_value(node, DN_P_SHARED_REGIONS);

    if (0 != most && node->shared >= most) {
        return 0;
    }
    node->shared++;
    return 1;
}

void dn_model_region_free(dn_model_node_t *node)
{
    node->shared--;
}

int dn_model_lets_in(const dn_model_net_t *net, const dn_model_node_t *from)
{
    return 0 == ((from->index ^ net->node) & net->mask);
}

/** The requester hears that what it sent was refused. */
static void dn_refused_there(dn_model_t *model, dn_model_packet_t *packet)
{
    dn_model_side_t *side = &packet->link->side[packet->side];

    (void) model;
    side->refused = 1;
    if (NULL != side->iface) {
        dn_model_arrived(side->iface->node);
    }
    dn_model_link_packet_free(packet);
}

int dn_model_refuses_from(dn_model_t *model, dn_model_link_t *link, uint32_t s, const dn_model_node_t *from)
{
    const dn_model_side_t *side = &link->side[s];

    if (NULL == side->iface || dn_model_lets_in(&side->iface->let_in, from)) {
        return 0;
    }
    model->report.refused++;
    if (0 != dn_value(side->iface->node, DN_P_REFUSAL_TOLD)
        && NULL != link->side[dn_model_other(link, s)].iface) {
        dn_model_packet_t *answer =
            dn_model_link_packet(link, s, DN_PACKET_AOTF, sizeof(uint32_t), dn_refused_there);
        if (NULL != answer) {
            model->report.errors++;
            dn_model_packet_send(answer, model->now_ps);
        }
    }
    return 1;
}

int dn_model_refuses(dn_model_t *model, const dn_model_packet_t *packet)
{
    return dn_model_refuses_from(model, packet->link, packet->side, packet->from);
}

/** May a node reach a port's segment, or its LLCM (@p key NULL)? A segment that is not there has no entry that could say no. */
static int dn_region_lets_in(const dn_model_iface_t *iface, const dn_key_t *key, const dn_model_node_t *from)
{
    if (NULL == key) {
        return dn_model_lets_in(&iface->let_in, from);
    }
    return key->sid >= iface->regions || !iface->region[key->sid].live
           || key->generation != iface->region[key->sid].generation
           || dn_model_lets_in(&iface->region[key->sid].let_in, from);
}

int dn_model_opens(const dn_peer_base_t *src, const dn_key_t *key)
{
    const dn_model_peer_t *peer = (const dn_model_peer_t *) src;
    const dn_model_iface_t *iface = (const dn_model_iface_t *) src->iface;
    const int opens = dn_region_lets_in(iface, key, peer->far);

    iface->node->model->report.refused += !opens;
    return opens;
}

int dn_model_opened(dn_model_peer_t *peer, const dn_key_t *key)
{
    dn_model_node_t *node = ((dn_model_iface_t *) peer->base.iface)->node;

    dn_model_sync(node);
    const dn_model_iface_t *far = dn_model_far(peer)->iface;
    const int opens = NULL == far || dn_region_lets_in(far, key, node);
    node->model->report.refused += !opens;
    return opens;
}

dn_status_t dn_model_share(dn_port_t *port, const dn_key_t *key, uint32_t node, uint32_t mask)
{
    const dn_model_t *model = dn_model_current();
    const dn_model_net_t net = {node, mask};

    for (uint32_t i = 0; NULL != model && i < model->ifaces; i++) {
        dn_model_iface_t *iface = model->iface[i];
        if (NULL == iface || port != iface->iface.port) {
            continue;
        }
        if (NULL == key) {
            iface->let_in = net;
            return DN_OK;
        }
        if (key->sid >= iface->regions || !iface->region[key->sid].live
            || key->generation != iface->region[key->sid].generation) {
            return DN_ERR_RANGE;
        }
        iface->region[key->sid].let_in = net;
        return DN_OK;
    }
    return DN_ERR_UNSUPPORTED;
}
/** @} */
