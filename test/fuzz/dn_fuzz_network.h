/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fuzz_network.h
 * What fuzz targets of devices that leave the host share: a network of the process's own, of which only the loopback is up, so that an
 * address in an input leads nowhere else; and what inputs leave to be put in.
 */
#ifndef DN_FUZZ_NETWORK_H
#define DN_FUZZ_NETWORK_H

#include <stdio.h>

#include "../dn_test_network.h"
#include "dn_auth.h"
#include "dn_fuzz_port.h"

/** May a target try anything here? Says so once where it may not. */
static inline int dn_fuzz_is_apart(const char *target)
{
    static int apart = -1;

    if (0 > apart) {
        apart = dn_test_leave_network();
        if (!apart) {
            fprintf(stderr, "%s: nothing is tried: no network of its own is allowed here\n", target);
        }
    }
    return apart;
}

/** The settings of a port on that network. @param[in] auth  What its messages carry. */
static inline void dn_fuzz_network_config(dn_job_t *job, dn_config_t *config, dn_auth_mode_t auth)
{
    for (size_t i = 0; i < sizeof(job->key.byte); i++) {
        job->key.byte[i] = (uint8_t) (0x9d * i + 0x35);
    }
    dn_fuzz_config(config);
    config->timeout_s = 0;
    config->auth = auth;
}

/** Zeros of an input stand for what is right. */
static inline int dn_fuzz_is_zero(const uint8_t *bytes, size_t len)
{
    uint8_t any = 0;

    for (size_t i = 0; i < len; i++) {
        any |= bytes[i];
    }
    return 0 == any;
}

/** dn_handler_fn_t: read all that came. @param[in] arg  Sum of all bytes, a uint64_t. */
static inline void dn_fuzz_read(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint64_t *sum = arg;

    (void) src;
    (void) tag;
    for (size_t i = 0; i < len; i++) {
        *sum += ((const volatile uint8_t *) data)[i];
    }
}

#endif
