/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_unit.h
 * cmocka and what every unit test program has: included once, by its only source file.
 */
#ifndef DN_UNIT_H
#define DN_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../dn_test.h"

dn_test_log_t dn_test_log;

/** Group set-up: an unexpected error log fails the program. */
static inline int dn_unit_setup(void **state)
{
    dn_test_log_watch();
    return 0;
}

/** Connect a port to another one of this process, or to itself. */
static inline dn_peer_t *dn_unit_connect(dn_port_t *port, const dn_port_t *far)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_peer_t *peer = NULL;

    assert_int_equal(dn_address(far, address, &len), DN_OK);
    assert_int_equal(dn_connect(port, address, len, &peer), DN_OK);
    return peer;
}

#endif
