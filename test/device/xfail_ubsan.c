/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Must fail in a build with the undefined-behaviour sanitizer, which comes with the address sanitizer:
 * it adds beyond the largest number.
 */
#include "dn_config.h"

#include <limits.h>

#include "xfail.h"

int main(int argc, char **argv)
{
    (void) argc;
    (void) argv;
#ifdef __SANITIZE_ADDRESS__
    volatile int largest = INT_MAX;
    largest += argc;
    return 0;
#else
    return xfail_skip("undefined-behaviour", "address");
#endif
}
