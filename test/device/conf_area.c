/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "conf_area.h"

void conf_offer(dn_world_t *world, conf_area_t *area, size_t len)
{
    area->len = len;
    area->local = malloc(len);
    area->base[CONF_REGISTERED] = malloc(len);
    dn_check(NULL != area->local && NULL != area->base[CONF_REGISTERED]);
    dn_check_equal(dn_segment_alloc(world->port, len, &area->segment[CONF_ALLOCATED]), DN_OK);
    dn_check_equal(
        dn_segment_register(world->port, area->base[CONF_REGISTERED], len, &area->segment[CONF_REGISTERED]),
        DN_OK);
    area->base[CONF_ALLOCATED] = dn_segment_base(area->segment[CONF_ALLOCATED]);
    for (int i = 0; i < 2; i++) {
        dn_check(area->base[i] == dn_segment_base(area->segment[i]));
        dn_segment_key(area->segment[i], &world->me->key[i]);
        dn_check_equal(world->me->key[i].len, len);
        memset(area->base[i], 0x55, len);
    }
    dn_world_barrier(world);
}

void conf_forget(conf_area_t *area)
{
    for (int i = 0; i < 2; i++) {
        dn_segment_free(area->segment[i]);
    }
    free(area->local);
    free(area->base[CONF_REGISTERED]);
}

void conf_retract(dn_world_t *world, conf_area_t *area)
{
    dn_world_barrier(world);
    conf_forget(area);
}

const dn_key_t *conf_key(const dn_world_t *world, int rank, int which)
{
    return &world->board->seat[rank].key[which];
}

void conf_start(dn_world_t *world, dn_peer_t *peer, dn_xfer_t *xfer, dn_world_comp_t *comp, int push)
{
    dn_status_t status;

    *comp = dn_world_comp();
    xfer->comp = &comp->comp;
    while (DN_ERR_AGAIN == (status = push ? dn_push(peer, xfer) : dn_pull(peer, xfer))) {
        dn_world_progress(world);
    }
    dn_check(DN_OK == status || DN_INPROGRESS == status);
    if (DN_OK == status) {
        dn_check_equal(comp->signals, 0);
        comp->signals = 1;
        comp->status = DN_OK;
    }
}

void conf_finish(dn_world_t *world, const dn_world_comp_t *comp, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (0 == comp[i].signals) {
            dn_world_progress(world);
        }
    }
    for (size_t i = 0; i < count; i++) {
        dn_check_equal(comp[i].signals, 1);
        dn_check_equal(comp[i].status, DN_OK);
    }
}

void conf_refused(dn_world_t *world, const dn_xfer_t *xfer, dn_status_t wanted)
{
    dn_test_log.expected = 1;
    dn_check_equal(dn_world_push(world, world->peer[1 - world->rank], xfer), wanted);
    dn_check_equal(dn_world_pull(world, world->peer[1 - world->rank], xfer), wanted);
    dn_test_log.expected = 0;
}
