/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * To be loaded before a program's libraries: bad_wire.h says how. Each rank has a wire of its own. */
#include "dn_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bad_wire.h"

static void __attribute__((constructor)) begin(void)
{
    const char *rates = getenv("DN_BAD_WIRE"), *rank = getenv("DN_DSM_RANK");

    if (NULL != rates && NULL != rank && !bad_wire_begin(rates, strtoull(rank, NULL, 10))) {
        fprintf(stderr, "DN_BAD_WIRE is not like 10,5,3,1: %s\n", rates);
        exit(99);
    }
}

/** Programs that the one in question starts, or is started by, send nothing. */
static void __attribute__((destructor)) end(void)
{
    const uint64_t faults = bad_wire_end();

    if (0 != faults) {
        fprintf(stderr, "bad wire: %" PRIu64 " faults\n", faults);
    }
}
