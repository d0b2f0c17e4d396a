/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_fuzz.h
 * What a fuzz target gives to its driver: libFuzzer, or fuzz_main.c where that is not available.
 */
#ifndef DN_FUZZ_H
#define DN_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** Longest input that dn_fuzz_seed() makes. */
enum { DN_FUZZ_MAX = 4096 };

/** Try one input. Ends the process when something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/** Make an input of the kind that gets far, from a generator's state. @return its length. */
size_t dn_fuzz_seed(uint64_t *random, uint8_t *data);

static inline void dn_fuzz_wrong(const char *what, int line)
{
    fprintf(stderr, "line %d: wrong: %s\n", line, what);
    abort();
}

/** Holds in builds of every kind, unlike assert(). */
#define DN_FUZZ_CHECK(right) ((right) ? (void) 0 : dn_fuzz_wrong(#right, __LINE__))

#endif
