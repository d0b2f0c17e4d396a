/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_emulate_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"

/** Of one peer before the next has its turn. */
#define DN_EMULATE_BATCH 64

/** The most that dn_config_t takes. */
#define DN_EMULATE_RING_MAX 4096u

/** What a call takes before its spin and after it, by perf/papers/dn_emulated: 60 ns in a store, its poll and its caller's loop. */
#define DN_EMULATE_SLACK_PS 40e3

/** What tells profiles apart: all their values, in a sum that the order goes into. */
static uint64_t dn_emulate_print(const dn_model_profile_t *profile)
{
    uint64_t print = UINT64_C(0xcbf29ce484222325);
    const char *meaning;
    const char *key;

    for (size_t i = 0; NULL != (key = dn_model_key(i, &meaning)); i++) {
        print = (print ^ dn_model_profile_value(profile, key)) * UINT64_C(0x100000001b3);
    }
    return print;
}

/** Read the profile that the argument names. */
static dn_status_t dn_emulate_profile(dn_emulate_t *emulate, const char *name)
{
    dn_model_profile_t *profile;

    if (NULL == name || '\0' == name[0]) {
        dn_log_answer(
            "emulate is not used: it needs the NIC whose times it is to keep, as in emulate:dimmnet1-d");
        return DN_ERR_UNSUPPORTED;
    }
    dn_status_t status = dn_model_profile_open(name, &profile);
    if (DN_OK != status) {
        return status;
    }
    snprintf(emulate->profile, sizeof(emulate->profile), "%s", name);
    /* Times of one clock mean nothing by the other. */
    emulate->print = dn_emulate_print(profile) + (uint64_t) dn_emulate_by_kernel;
    status = dn_emulate_nic_open(&emulate->nic, profile, emulate->ticks_per_ps);
    dn_model_profile_close(profile);
    return status;
}

/** The second port: no LLCM to speak of, no faults; those are the first one's. */
static dn_status_t dn_emulate_open_inner(dn_emulate_t *emulate, dn_port_t *port, const dn_config_t *config)
{
    dn_config_t inner = *config;

    inner.llcm_bytes = 4096;
    /* A message has its times beside it. */
    inner.ring_lines =
        2 * config->ring_lines < DN_EMULATE_RING_MAX ? 2 * config->ring_lines : DN_EMULATE_RING_MAX;
    inner.fault = NULL;
    dn_status_t status = dn_open("shm", dn_port_job(port), &inner, &emulate->inner);
    if (DN_OK != status) {
        return status;
    }
    status = dn_handler_set(emulate->inner, DN_CHAN_USER, dn_emulate_came, emulate);
    if (DN_OK == status) {
        status = dn_lost_set(emulate->inner, DN_CHAN_USER, dn_emulate_inner_lost, emulate);
    }
    if (DN_OK != status) {
        dn_close(emulate->inner);
    }
    return status;
}

static dn_status_t dn_emulate_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                                   dn_iface_t **iface_p)
{
    dn_emulate_t *emulate = calloc(1, sizeof(*emulate));

    if (NULL == emulate) {
        return DN_ERR_NOMEM;
    }
    emulate->iface.port = port;
    emulate->llcm_bytes = config->llcm_bytes;
    emulate->lines = 4 * config->ring_lines;
    dn_status_t status = dn_emulate_clock(&emulate->ticks_per_ps);
    emulate->slack = (uint64_t) (emulate->ticks_per_ps * DN_EMULATE_SLACK_PS);
    if (DN_OK == status) {
        status = dn_emulate_profile(emulate, argument);
    }
    if (DN_OK == status) {
        status = dn_emulate_open_inner(emulate, port, config);
    }
    if (DN_OK != status) {
        dn_emulate_nic_close(&emulate->nic);
        free(emulate);
        return status;
    }
    *iface_p = &emulate->iface;
    return DN_OK;
}

/** Say how far this machine was from the profile. */
static void dn_emulate_tell(const dn_emulate_t *emulate)
{
    const dn_emulate_sums_t *sums = &emulate->sums;
    const double count = (double) sums->count;
    const double trip = (double) sums->trip / (emulate->ticks_per_ps * 1e6);
    const double over = (double) sums->over / (emulate->ticks_per_ps * 1e6);

    if (0 != sums->count) {
        dn_log_answer(
            "emulate:%s: %" PRIu64
            " messages, stores and parts of transfers came, by the profile after %.3f us each, here %.3f us "
            "later (%+.1f %%)",
            emulate->profile, sums->count, trip / count, over / count, 100 * over / trip);
    }
}

static void dn_emulate_close(dn_iface_t *iface)
{
    dn_emulate_t *emulate = (dn_emulate_t *) iface;

    dn_close(emulate->inner);
    dn_emulate_tell(emulate);
    dn_emulate_nic_close(&emulate->nic);
    free(emulate);
}

static void dn_emulate_close_copy(dn_iface_t *iface, dn_peer_base_t *peers)
{
    dn_emulate_t *emulate = (dn_emulate_t *) iface;

    /* The device knows them all. */
    (void) peers;
    for (dn_emulate_peer_t *next, *peer = emulate->peers; NULL != peer; peer = next) {
        next = peer->next;
        dn_emulate_drop(peer);
        free(peer);
    }
    /* A copy, too. */
    dn_close(emulate->inner);
    dn_emulate_nic_close(&emulate->nic);
    free(emulate);
}

static dn_status_t dn_emulate_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    dn_emulate_where_t where;
    const dn_status_t status = dn_emulate_where((const dn_emulate_t *) iface, &where);
    const size_t used = offsetof(dn_emulate_where_t, address) + where.len;

    if (DN_OK != status || used > *len) {
        *len = used;
        return DN_OK != status ? status : DN_ERR_RANGE;
    }
    memcpy(buf, &where, used);
    *len = used;
    return DN_OK;
}

/** One poll: it takes as long as the profile's, and finds what had arrived when it began. */
static void dn_emulate_poll(dn_emulate_t *emulate)
{
    const uint64_t began = dn_emulate_begin(emulate->slack);

    dn_progress(emulate->inner);
    emulate->poll = began;
    emulate->poll_over = dn_emulate_spin(began + emulate->nic.host_read);
}

static int dn_emulate_progress(dn_iface_t *iface)
{
    dn_emulate_t *emulate = (dn_emulate_t *) iface;
    int n = 0;

    dn_emulate_poll(emulate);
    for (dn_emulate_peer_t *peer = emulate->peers; NULL != peer; peer = peer->next) {
        n += NULL == peer->items.first ? 0 : dn_emulate_deliver(emulate, peer, DN_EMULATE_BATCH);
        if (0 != peer->owes) {
            dn_emulate_pay(emulate, peer);
        }
    }
    if (0 == emulate->depth) {
        dn_emulate_sweep(emulate);
    }
    return n;
}

static int dn_emulate_recv(dn_peer_base_t *base, int max)
{
    dn_emulate_t *emulate = (dn_emulate_t *) base->iface;
    dn_emulate_peer_t *peer = (dn_emulate_peer_t *) base;

    dn_emulate_poll(emulate);
    const int n = dn_emulate_deliver(emulate, peer, max);
    if (0 != peer->owes) {
        dn_emulate_pay(emulate, peer);
    }
    return n;
}

static void dn_emulate_admitted(dn_iface_t *iface, const dn_pgid_t *pgid)
{
    if (DN_OK != dn_group_admit(((dn_emulate_t *) iface)->inner, pgid)) {
        dn_log_error("no memory to let a process group in");
    }
}

static int dn_emulate_oversubscribed(const dn_iface_t *iface)
{
    return dn_oversubscribed(((const dn_emulate_t *) iface)->inner);
}

const dn_device_t dn_device_emulate = {
    .name = "emulate",
    .open = dn_emulate_open,
    .close = dn_emulate_close,
    .close_copy = dn_emulate_close_copy,
    .address = dn_emulate_address,
    .connect = dn_emulate_connect,
    .disconnect = dn_emulate_disconnect,
    .release = dn_emulate_release,
    .progress = dn_emulate_progress,
    .recv = dn_emulate_recv,
    .check = dn_emulate_check,
    .lost = NULL,
    .message = NULL,
    .admitted = dn_emulate_admitted,
    .segment_alloc = NULL,
    .segment_release = NULL,
    .segment_register = NULL,
    .segment_unregister = NULL,
    .map = NULL,
    .direct = NULL,
    .clocked = 1,
    .oversubscribed = dn_emulate_oversubscribed,
};
