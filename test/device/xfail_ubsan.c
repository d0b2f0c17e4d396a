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
#include <stdio.h>

#include "../dn_test.h"

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define __SANITIZE_ADDRESS__ 1
#    endif
#endif

int main(int argc, char **argv)
{
    (void) argv;
#ifndef __SANITIZE_ADDRESS__
    printf("skipped: this build has no undefined-behaviour sanitizer (--enable-sanitizer=address)\n");
    return 0 < argc ? DN_TEST_SKIP : 0;
#else
    volatile int largest = INT_MAX;
    largest += argc;
    return 0;
#endif
}
