/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Must fail in a build with the address sanitizer: it writes one byte behind its memory.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>

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
    printf("skipped: this build has no address sanitizer (--enable-sanitizer=address)\n");
    return 0 < argc ? DN_TEST_SKIP : 0;
#else
    volatile char *memory = malloc(64);
    memory[63 + argc] = 1;
    free((void *) memory);
    return 0;
#endif
}
