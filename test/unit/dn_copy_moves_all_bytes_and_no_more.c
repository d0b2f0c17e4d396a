/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * dn_copy() and dn_copy_in() do what memcpy() does, however long the bytes are and wherever they lie, and touch nothing beside them.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dimmnet.h"

enum { LONGEST = 9000, LINE = 64, PAGE = 4096, ROOM = LONGEST + 4 * LINE };

/* Alike in their pages: some places are ahead of others there by less than a line. */
static uint8_t from[ROOM] __attribute__((aligned(PAGE)));
static uint8_t to[ROOM] __attribute__((aligned(PAGE)));
static uint8_t expected[ROOM];

static void copy(size_t to_off, size_t from_off, size_t len)
{
    memset(to, 0xa5, sizeof(to));
    memset(expected, 0xa5, sizeof(expected));
    memcpy(expected + to_off, from + from_off, len);
    dn_copy(to + to_off, from + from_off, len);
    assert_memory_equal(to, expected, sizeof(to));
    memset(to + to_off, 0xa5, len);
    dn_copy_in(to + to_off, from + from_off, len);
    assert_memory_equal(to, expected, sizeof(to));
}

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < sizeof(from); i++) {
        from[i] = (uint8_t) dn_test_random(&seed);
    }
}

static void from_and_to_every_place_in_a_line(void **state)
{
    static const size_t lengths[] = {0, 1, 447, 448, 512, 2047, 2048, 2049, 2112, 2113, 4096, 8191, 8192};

    fill(1);
    for (size_t to_off = LINE; to_off < 2 * LINE; to_off++) {
        for (size_t from_off = LINE; from_off < 2 * LINE; from_off += 7) {
            for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                copy(to_off, from_off, lengths[i]);
            }
        }
    }
}

static void every_length(void **state)
{
    fill(2);
    for (size_t len = 0; len <= LONGEST; len++) {
        copy(LINE + len % 61, LINE + len % 59, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_and_to_every_place_in_a_line),
        cmocka_unit_test(every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
