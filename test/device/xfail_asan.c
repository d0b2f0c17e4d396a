/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Must fail in a build with the address sanitizer: it writes one byte behind its memory.
 */
#include "dn_config.h"

#include <stdlib.h>

#include "xfail.h"

int main(int argc, char **argv)
{
    (void) argc;
    (void) argv;
#ifdef __SANITIZE_ADDRESS__
    volatile char *memory = malloc(64);
    memory[63 + argc] = 1;
    free((void *) memory);
    return 0;
#else
    return xfail_skip("address", "address");
#endif
}
