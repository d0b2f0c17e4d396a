/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_test_network.h
 * A network of the process's own, of which only the loopback is up: nobody else's packets are on it, and no address leads elsewhere.
 */
#ifndef DN_TEST_NETWORK_H
#define DN_TEST_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/** Go there, before there are threads. Users other than root need a user name space for it. @return 0: there is no such network to be had. */
static inline int dn_test_leave_network(void)
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

#endif
