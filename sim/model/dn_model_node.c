/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the code of a node calls: its clock, what it reads, how it sends.
 */
#include "dn_config.h"

#include "dn_model_int.h"

static dn_model_node_t *dn_model_here(void)
{
    return NULL == dn_model_current() ? NULL : dn_model_current()->here;
}

uint32_t dn_model_node(void)
{
    const dn_model_node_t *node = dn_model_here();
    return NULL == node ? UINT32_MAX : node->index;
}

uint64_t dn_model_now(void)
{
    const dn_model_node_t *node = dn_model_here();
    return NULL == node ? 0 : node->clock_ps;
}

void dn_model_compute(uint64_t ps)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        node->clock_ps += ps;
        dn_model_busy(node);
        /* What others ask of its NIC meanwhile comes before what it sends next, not behind it on the link. */
        dn_model_sync(node);
    }
}

void dn_model_yield(void)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        /* What has arrived already is not what this node waits for. */
        node->state = DN_NODE_POLLS;
        dn_model_loop(node->model);
    }
}

void dn_model_wake(void)
{
    if (NULL != dn_model_here()) {
        dn_model_wake_all(dn_model_current());
    }
}

uint64_t dn_model_value(const char *key)
{
    return NULL == dn_model_current() ? 0 : dn_model_profile_value(&dn_model_current()->profile, key);
}

static uint64_t dn_model_read_ps(const dn_model_node_t *node, dn_model_read_t what)
{
    const uint64_t plain = dn_value(node, DN_P_HOST_READ_8_PLAIN);

    switch (what) {
    case DN_MODEL_READ_NOTHING:
        return 0;
    case DN_MODEL_READ_4:
        return dn_value(node, DN_P_HOST_READ_4);
    case DN_MODEL_READ_8_PLAIN:
        return 0 != plain ? plain : dn_value(node, DN_P_HOST_READ_8);
    default:
        return dn_value(node, DN_P_HOST_READ_8);
    }
}

void dn_model_poll(dn_model_read_t what)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        node->poll_ps = dn_model_read_ps(node, what);
    }
}

void dn_model_read(dn_model_read_t what)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        dn_model_compute(dn_model_read_ps(node, what));
    }
}

void dn_model_push_by(dn_model_way_t way)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        node->way = way;
    }
}

void dn_model_switch_banks(void)
{
    dn_model_node_t *node = dn_model_here();
    if (NULL != node) {
        dn_model_compute(dn_value(node, DN_P_BANK_SWITCH));
    }
}
