/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit_ipnuma.h
 * Two ports of the device ipnuma in one process.
 */
#ifndef DN_UNIT_IPNUMA_H
#define DN_UNIT_IPNUMA_H

#include "dn_unit.h"

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

static inline dn_ipnuma_t *dn_unit_ipnuma(const dn_port_t *port)
{
    return (dn_ipnuma_t *) port->ifaces;
}

/** Open both. @param[in] config  NULL: the default. */
static inline void dn_unit_ipnuma_open(dn_port_t *port[2], const dn_config_t *config)
{
    for (int i = 0; i < 2; i++) {
        const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
        assert_int_equal(dn_open("ipnuma:lo", &job, config, &port[i]), DN_OK);
    }
}

/** Does the service thread of a port nap? Where the process may have no more threads, nobody is taken in, and the test is skipped. */
static inline int dn_unit_ipnuma_naps(const dn_port_t *port)
{
    dn_ipnuma_t *ipnuma = dn_unit_ipnuma(port);

    dn_ipnuma_lock(ipnuma);
    const enum dn_ipnuma_service_state state = ipnuma->service.state;
    dn_ipnuma_unlock(ipnuma);
    if (DN_IPNUMA_NO_THREAD == state) {
        printf("skipped: %s\n", dn_test_log.last);
        exit(DN_TEST_SKIP);
    }
    return DN_IPNUMA_NAPS == state;
}

/** Connect port 0 to port 1, and wait until nothing is under way. @return port 1, as port 0 has it. */
static inline dn_peer_t *dn_unit_ipnuma_meet(dn_port_t *port[2])
{
    dn_peer_t *peer = dn_unit_connect(port[0], port[1]);

    /* The thread starts with the first connection. */
    (void) dn_unit_ipnuma_naps(port[1]);
    while (DN_INPROGRESS == dn_fence(peer)) {
        dn_progress(port[0]);
        dn_progress(port[1]);
    }
    return peer;
}

#endif
