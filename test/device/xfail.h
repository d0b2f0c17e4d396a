/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file xfail.h
 * What the programs share that a sanitizer must make fail: does this build have one?
 */
#ifndef XFAIL_H
#define XFAIL_H

#include <stdio.h>

#include "../dn_test.h"

/** @return the exit status that says so. */
static inline int xfail_skip(const char *sanitizer, const char *option)
{
    printf("skipped: this build has no %s sanitizer (--enable-sanitizer=%s)\n", sanitizer, option);
    return DN_TEST_SKIP;
}

#endif
