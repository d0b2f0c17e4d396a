/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */

/*
 * What -c of the benchmarks relies on: the pattern check finds any single wrong
 * byte, data of another iteration, sender, slot or size, and data that is shifted.
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_bench.h"

#define MAX_LEN 200

static int failures;

static void expect(size_t found, size_t wanted, const char *what, size_t len)
{
    if (found != wanted) {
        printf("%s, %zu bytes: first wrong byte at %zu, %zu expected\n", what, len, found, wanted);
        failures++;
    }
}

static void single_bytes(size_t len)
{
    unsigned char buf[MAX_LEN + 1];
    uint64_t seed = dn_bench_seed(len, 3, 1, 2);
    buf[len] = 0xee;
    dn_bench_fill(buf, len, seed);
    expect(buf[len], 0xee, "byte behind the buffer", len);
    expect(dn_bench_check(buf, len, seed), len, "right data", len);
    for (size_t i = 0; i < len; i++) {
        buf[i] ^= (unsigned char) (1u << (i % 8));
        expect(dn_bench_check(buf, len, seed), i, "one wrong bit", len);
        buf[i] ^= (unsigned char) (1u << (i % 8));
    }
}

/* Data that belongs elsewhere: within 16 bytes a difference must show. */
static void other_data(const void *buf, size_t len, uint64_t seed, const char *what)
{
    if (dn_bench_check(buf, len, seed) >= 16) {
        printf("%s is taken for the right data\n", what);
        failures++;
    }
}

static void foreign_data(void)
{
    unsigned char buf[MAX_LEN];
    uint64_t seed = dn_bench_seed(100, 7, 0, 5);
    dn_bench_fill(buf, sizeof(buf), seed);
    other_data(buf, 100, dn_bench_seed(100, 8, 0, 5), "another iteration");
    other_data(buf, 100, dn_bench_seed(100, 7, 1, 5), "another sender");
    other_data(buf, 100, dn_bench_seed(100, 7, 0, 6), "another slot");
    other_data(buf, 100, dn_bench_seed(101, 7, 0, 5), "another size");
    for (size_t shift = 1; shift <= 64; shift++) {
        other_data(buf + shift, 100, seed, "shifted data");
    }
    memset(buf, 0, sizeof(buf));
    other_data(buf, 100, seed, "zeroes");
}

static void statistics(void)
{
    double odd[] = {5, 1, 3};
    double even[] = {4, 1, 3, 2};
    if (3.0 != dn_bench_median(odd, 3) || 2.5 != dn_bench_median(even, 4)) {
        printf("a median is wrong\n");
        failures++;
    }
}

int main(void)
{
    for (size_t len = 0; len < MAX_LEN; len++) {
        single_bytes(len);
    }
    foreign_data();
    statistics();
    return 0 == failures ? 0 : 1;
}
