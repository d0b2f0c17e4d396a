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

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_auth.h"
#include "dn_fuzz_port.h"

/** @return 0: there is no such network to be had. */
static inline int dn_fuzz_leave_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (0 != unshare(CLONE_NEWNET) && 0 != unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        return 0;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int up = 0 <= fd && 0 == ioctl(fd, SIOCSIFFLAGS, &lo);
    if (0 <= fd) {
        close(fd);
    }
    return up;
}

/** May a target try anything here? Says so once where it may not. */
static inline int dn_fuzz_is_apart(const char *target)
{
    static int apart = -1;

    if (0 > apart) {
        apart = dn_fuzz_leave_network();
        if (!apart) {
            fprintf(stderr, "%s: nothing is tried: no network of its own is allowed here\n", target);
        }
    }
    return apart;
}

/** The settings of a port on that network. @param[in] n  Ports before it: a tag over each message, or a word in it, in turn. */
static inline void dn_fuzz_network_config(dn_job_t *job, dn_config_t *config, unsigned n)
{
    for (size_t i = 0; i < sizeof(job->key.byte); i++) {
        job->key.byte[i] = (uint8_t) (0x9d * i + 0x35);
    }
    dn_fuzz_config(config);
    config->timeout_s = 0;
    config->auth = 0 == n % 2 ? DN_AUTH_HELLO : DN_AUTH_FULL;
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
