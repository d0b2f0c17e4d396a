/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Cables and switches. A fat tree has as many links up as down at every level; the way up is chosen by the
 * target's number, so that two targets share no way down. Contention is for links upwards and for the last port.
 */
#include "dn_config.h"

#include <stdlib.h>

#include "dn_log.h"
#include "dn_model_int.h"

static uint64_t dn_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

size_t dn_model_net_width(const dn_model_t *model)
{
    size_t group = 1;
    for (uint32_t i = 1; i < model->levels; i++) {
        group *= model->down;
    }
    return model->config.nodes + group;
}

dn_status_t dn_model_net_open(dn_model_t *model)
{
    const uint64_t ports = model->profile.value[DN_P_SWITCH_PORTS];
    const uint64_t rate = model->profile.value[DN_P_SWITCH_RATE];
    uint64_t *link_rate = &model->profile.value[DN_P_LINK_RATE];
    const dn_model_fabric_t fabric = model->config.fabric;
    const int switched = DN_MODEL_STAR == fabric || DN_MODEL_CHAIN == fabric || DN_MODEL_TREE == fabric;

    *link_rate = switched && 0 != rate && rate < *link_rate ? rate : *link_rate;
    model->levels = 1;
    model->down = (uint32_t) dn_max(2, ports / 2);
    if (DN_MODEL_TREE == fabric) {
        if (model->config.nodes <= ports) {
            /* One switch is enough: it needs no port upwards. */
            model->down = (uint32_t) ports;
        }
        for (uint64_t reach = model->down; reach < model->config.nodes; reach *= model->down) {
            model->levels++;
        }
    } else if (DN_MODEL_STAR == fabric && model->config.nodes > ports) {
        dn_log_error("a switch of %s has %llu ports; %u nodes need another fabric", model->profile.name,
                     (unsigned long long) ports, model->config.nodes);
        return DN_ERR_PARAM;
    }
    model->fabric_ps = calloc(model->levels * dn_model_net_width(model), sizeof(*model->fabric_ps));
    return NULL == model->fabric_ps ? DN_ERR_NOMEM : dn_model_hop_open(model);
}

int dn_model_net_joins(const dn_model_t *model, uint32_t from, uint32_t to)
{
    if (DN_MODEL_INTERNAL == model->config.fabric || DN_MODEL_EXTERNAL == model->config.fabric) {
        return from == to;
    }
    return 1;
}

/** Through a port that other packets use, too. @return when the first byte leaves it. */
static uint64_t dn_net_port(const dn_model_t *model, size_t port, uint64_t at_ps, uint64_t wire_ps)
{
    const uint64_t start = dn_max(at_ps, model->fabric_ps[port]);

    model->fabric_ps[port] = start + dn_max(wire_ps, model->profile.value[DN_P_SWITCH_INTERVAL]);
    return start;
}

uint64_t dn_model_net_switch_ps(const dn_model_t *model, uint64_t wire_ps)
{
    const uint64_t *value = model->profile.value;

    return value[DN_P_SWITCH_PASS] + (value[DN_P_SWITCH_STORES] ? wire_ps : 0);
}

uint32_t dn_model_net_climb(const dn_model_t *model, uint32_t from, uint32_t to)
{
    uint32_t levels = 0;

    if (DN_MODEL_TREE == model->config.fabric) {
        for (size_t group = model->down; from / group != to / group; group *= model->down) {
            levels++;
        }
    }
    return levels;
}

size_t dn_model_net_up(const dn_model_t *model, uint32_t level, uint32_t from, uint32_t to)
{
    size_t group = 1;

    for (uint32_t i = 0; i < level; i++) {
        group *= model->down;
    }
    return from / group * group + to % group;
}

static uint64_t dn_net_tree(const dn_model_t *model, uint32_t from, uint32_t to, uint64_t at_ps,
                            uint64_t wire_ps, uint64_t pass)
{
    const size_t width = dn_model_net_width(model);
    const uint32_t climb = dn_model_net_climb(model, from, to);
    uint64_t t = at_ps;

    for (uint32_t level = 1; level <= climb; level++) {
        t = dn_net_port(model, level * width + dn_model_net_up(model, level, from, to), t + pass, wire_ps);
    }
    return t + (climb + 1) * pass;
}

uint64_t dn_model_net_pass(dn_model_t *model, uint32_t from, uint32_t to, uint64_t wire_ps)
{
    const uint64_t pass = dn_model_net_switch_ps(model, wire_ps);
    const uint64_t start = model->now_ps + model->config.cable_m * model->profile.value[DN_P_LINK_PER_M];

    if (from == to) {
        return start;
    }
    switch (model->config.fabric) {
    case DN_MODEL_STAR:
        return start + pass;
    case DN_MODEL_CHAIN:
        return start + model->config.switches * pass;
    case DN_MODEL_TREE:
        return dn_net_tree(model, from, to, start, wire_ps, pass);
    default:
        return start;
    }
}

uint64_t dn_model_net_leave(dn_model_t *model, uint32_t from, uint32_t to, uint64_t wire_ps)
{
    const dn_model_fabric_t fabric = model->config.fabric;

    if (from == to || (DN_MODEL_STAR != fabric && DN_MODEL_TREE != fabric)) {
        return model->now_ps;
    }
    return dn_net_port(model, to, model->now_ps, wire_ps);
}
