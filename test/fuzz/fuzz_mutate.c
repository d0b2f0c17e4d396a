/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Beside its own changes, libFuzzer now and then gets a new input of the kind that gets far.
 */
#include "dn_config.h"

#include "dn_fuzz.h"

#include <string.h>

#include "../dn_test.h"

/** One input of so many is a new one. */
#define FRESH 64

/* Of libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed)
{
    static uint8_t fresh[DN_FUZZ_MAX];
    uint64_t random = seed;

    if (0 == dn_test_below(&random, FRESH)) {
        const size_t made = dn_fuzz_seed(&random, fresh);
        len = made < max ? made : max;
        memcpy(data, fresh, len);
    }
    return 0 == dn_test_below(&random, 8) && 0 != len ? len : LLVMFuzzerMutate(data, len, max);
}
