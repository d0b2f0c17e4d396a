/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A module for dn_device_is_loaded_by_its_name: a device that opens, and reaches nobody. It takes its time to load.
 */
#include "dn_config.h"

#include <stdlib.h>
#include <time.h>

#include "dn_device.h"

static __attribute__((constructor)) void good_load(void)
{
    /* So that threads that name it meet here. */
    const struct timespec time = {.tv_nsec = 50 * 1000 * 1000};

    const char *at = getenv("DN_TEST_LOADING");

    nanosleep(&time, NULL);
    if (NULL != at) {
        /* A function of the test. */
        ((void (*)(void)) strtoul(at, NULL, 16))();
    }
}

static dn_status_t good_open(dn_port_t *port, const dn_config_t *config, const char *argument,
                             dn_iface_t **iface_p)
{
    *iface_p = calloc(1, sizeof(**iface_p));
    return NULL == *iface_p ? DN_ERR_NOMEM : DN_OK;
}

static void good_close(dn_iface_t *iface)
{
    free(iface);
}

static dn_status_t good_address(const dn_iface_t *iface, void *buf, size_t *len)
{
    *len = 0;
    return DN_OK;
}

static dn_status_t good_connect(dn_iface_t *iface, const dn_peer_base_t *id, const void *address, size_t len,
                                dn_peer_base_t **peer_p)
{
    return DN_ERR_UNREACH;
}

static void good_leave(dn_peer_base_t *peer) {}

static int good_progress(dn_iface_t *iface)
{
    return 0;
}

static int good_recv(dn_peer_base_t *peer, int max)
{
    return 0;
}

static dn_status_t good_check(dn_peer_base_t *peer)
{
    return DN_OK;
}

static const dn_device_t dn_device_good = {.name = "good",
                                           .open = good_open,
                                           .close = good_close,
                                           .address = good_address,
                                           .connect = good_connect,
                                           .disconnect = good_leave,
                                           .release = good_leave,
                                           .progress = good_progress,
                                           .recv = good_recv,
                                           .check = good_check};

DN_DEVICE_MODULE(dn_device_good);
