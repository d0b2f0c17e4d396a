/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The conformance suite over a wire that is bad below the device, bad_wire.h. Linked with conformance.c:
 *
 *   DN_BAD_WIRE=10,5,3,1 ./conf_wire FILE.wire [TEST...]
 *
 * Each process that the suite forks has a wire of its own, by its number. One that ends by itself says how many faults there were.
 */
#include "dn_config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bad_wire.h"

static uint64_t forks;

static void hold(void)
{
    forks++;
    bad_wire_hold();
}

static void begin(void)
{
    const char *rates = getenv("DN_BAD_WIRE");

    if (NULL != rates && !bad_wire_begin(rates, forks)) {
        fprintf(stderr, "DN_BAD_WIRE is not like 10,5,3,1: %s\n", rates);
        exit(99);
    }
}

static void begin_in_child(void)
{
    bad_wire_go_on();
    begin();
}

static void __attribute__((constructor)) watch(void)
{
    if (0 != pthread_atfork(hold, bad_wire_go_on, begin_in_child)) {
        exit(99);
    }
}

static void __attribute__((destructor)) end(void)
{
    const uint64_t faults = bad_wire_end();

    if (0 != faults) {
        printf("bad wire: %" PRIu64 " faults\n", faults);
    }
}
