/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Stores of a line that came joined are done one after the other, from the lowest address on, and none that had its own place in a word
 * is torn: whoever acquires the last word finds all that was stored before it.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_int.h"

/** What stands in the place of dn_store_bytes() in the code below, and tells which stores there are. */
static void note_store(uint8_t *to, uint64_t value, size_t size);

#define dn_store_bytes note_store
#include "ipnuma/dn_ipnuma_serve.c"
#undef dn_store_bytes

enum { BEFORE = 16, ROOM = BEFORE + DN_TLP_LINE };

static _Alignas(64) uint8_t line[ROOM];
static uint8_t ends[ROOM + 1]; /**< not 0: a store ends before this byte */
static size_t at;              /**< where the next store is to begin */

static void note_store(uint8_t *to, uint64_t value, size_t size)
{
    assert_ptr_equal(to, line + at);
    dn_store_bytes(to, value, size);
    at += size;
    ends[at] = 1;
}

/** Bytes `from` to `from + size - 1` are stored at once. */
static int is_whole(size_t from, size_t size)
{
    return NULL == memchr(&ends[from + 1], 1, size - 1);
}

static void write_and_look(size_t from, size_t len)
{
    uint8_t data[DN_TLP_LINE];

    dn_test_fill(data, len, from + len);
    memset(ends, 0, sizeof(ends));
    at = from;
    dn_ipnuma_write_line(line + from, data, len);
    assert_int_equal(at, from + len);
    assert_memory_equal(line + from, data, len);
    /* Whatever stores were joined, each of them was one of these, or of bytes. */
    for (size_t size = 2; 8 >= size; size *= 2) {
        for (size_t i = (from + size - 1) / size * size; i + size <= from + len; i += size) {
            assert_true(is_whole(i, size));
        }
    }
    /* No store is larger than a word. */
    for (size_t i = 8; i < from + len; i += 8) {
        assert_true(i <= from || ends[i]);
    }
}

static void no_store_is_torn_or_late(void **state)
{
    (void) state;
    for (size_t from = 0; from < BEFORE; from++) {
        for (size_t len = 1; len <= DN_TLP_LINE; len++) {
            write_and_look(from, len);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_store_is_torn_or_late),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
