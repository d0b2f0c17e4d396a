/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A handle finds its object until it is dropped, and then nothing, though its slot is used again; also when the table has grown,
 * and when generations begin anew. None is DN_HANDLE_NONE.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_handle.h"

enum { MANY = 1000, OBJECTS = 3, TURNS = 6 };

static char object[MANY];

static void nothing_is_found_where_nothing_was_taken(void **state)
{
    dn_handle_table_t table;

    dn_handle_open(&table, 0);
    assert_null(dn_handle_find(&table, DN_HANDLE_NONE));
    assert_null(dn_handle_find(&table, UINT64_MAX));
    const uint64_t handle = dn_handle_add(&table, object);
    assert_ptr_equal(dn_handle_find(&table, handle), object);
    assert_null(dn_handle_find(&table, DN_HANDLE_NONE));
    assert_null(dn_handle_find(&table, UINT64_MAX));
    assert_null(dn_handle_find(&table, handle + 1));
    assert_null(dn_handle_find(&table, handle ^ UINT64_C(1) << 32));
    dn_handle_close(&table);
    assert_null(dn_handle_find(&table, handle));
}

static void handles_are_found_while_the_table_grows(void **state)
{
    static uint64_t handle[MANY];
    dn_handle_table_t table;

    dn_handle_open(&table, 0);
    for (int i = 0; i < MANY; i++) {
        handle[i] = dn_handle_add(&table, &object[i]);
        assert_int_not_equal(handle[i], DN_HANDLE_NONE);
        /* Every third one goes soon: its slot is used again. */
        if (0 == i % 3) {
            dn_handle_drop(&table, handle[i]);
        }
    }
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(dn_handle_find(&table, handle[i]), 0 == i % 3 ? NULL : &object[i]);
    }
    dn_handle_close(&table);
}

/** Take and drop some objects, again and again, in a table whose generations begin at `first`. */
static void stale_handles_find_nothing(uint32_t first)
{
    uint64_t handle[TURNS][OBJECTS];
    dn_handle_table_t table;

    dn_handle_open(&table, first);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < OBJECTS; i++) {
            handle[turn][i] = dn_handle_add(&table, &object[i]);
            assert_int_not_equal(handle[turn][i], DN_HANDLE_NONE);
        }
        for (int old = 0; old < turn; old++) {
            for (int i = 0; i < OBJECTS; i++) {
                assert_null(dn_handle_find(&table, handle[old][i]));
            }
        }
        for (int i = 0; i < OBJECTS; i++) {
            assert_ptr_equal(dn_handle_find(&table, handle[turn][i]), &object[i]);
        }
        for (int i = 0; i < OBJECTS; i++) {
            dn_handle_drop(&table, handle[turn][i]);
            assert_null(dn_handle_find(&table, handle[turn][i]));
        }
    }
    dn_handle_close(&table);
}

static void generations_may_begin_anywhere(void **state)
{
    static const uint32_t first[] = {0,         1, INT32_MAX - 2u, INT32_MAX, UINT32_MAX - 3, UINT32_MAX - 1,
                                     UINT32_MAX};

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        stale_handles_find_nothing(first[i]);
    }
}

/** A new slot starts where the table began, also when slots beside it have counted on. */
static void a_slot_of_generation_zero_is_never_made(void **state)
{
    dn_handle_table_t table;

    dn_handle_open(&table, UINT32_MAX);
    for (int turn = 0; turn < TURNS; turn++) {
        const uint64_t handle = dn_handle_add(&table, object);

        assert_int_not_equal(handle >> 32, 0);
        dn_handle_drop(&table, handle);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_not_equal(dn_handle_add(&table, &object[i]) >> 32, 0);
    }
    dn_handle_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_where_nothing_was_taken),
        cmocka_unit_test(handles_are_found_while_the_table_grows),
        cmocka_unit_test(generations_may_begin_anywhere),
        cmocka_unit_test(a_slot_of_generation_zero_is_never_made),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
