/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * One list of blocks for both sides of a transfer is checked as two equal lists are, and kept once.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "dn_sg.h"
#include "dn_xfer.h"

static void one_list_is_checked_as_two(void **state)
{
    static const uint64_t edge[] = {0,
                                    1,
                                    63,
                                    64,
                                    100,
                                    UINT64_MAX / 2,
                                    UINT64_MAX - 200,
                                    UINT64_MAX - 101,
                                    UINT64_MAX - 100,
                                    UINT64_MAX - 64,
                                    UINT64_MAX - 63,
                                    UINT64_MAX};
    enum { EDGES = sizeof(edge) / sizeof(edge[0]) };
    unsigned right = 0, wrong = 0;

    for (size_t i = 0; i < (size_t) EDGES * EDGES * EDGES * EDGES; i++) {
        const uint64_t local = edge[i % EDGES], roff = edge[i / EDGES % EDGES],
                       at = edge[i / EDGES / EDGES % EDGES], limit = edge[i / EDGES / EDGES / EDGES];
        const dn_block_t block[] = {{at, 40}, {at / 2, 0}, {at, 24}};
        const dn_key_t key = {.len = limit};
        for (size_t count = 0; count <= 3; count++) {
            const dn_sg_t sg = {.block = block, .count = count}, equal = sg;
            dn_xfer_t xfer = {.local = (void *) (uintptr_t) local,
                              .local_sg = &sg,
                              .key = &key,
                              .roff = roff,
                              .remote_sg = &equal,
                              .len = 0 == count  ? 0
                                     : 3 > count ? 40
                                                 : 64};
            const dn_status_t status = dn_xfer_check(&xfer, 1, 0);
            xfer.remote_sg = &sg;
            assert_int_equal(dn_xfer_check(&xfer, 1, 0), status);
            right += DN_OK == status;
            wrong += DN_OK != status;
        }
    }
    assert_true(0 < right && 0 < wrong);
}

static void one_list_is_kept_once(void **state)
{
    const dn_block_t block[] = {{0, 8}, {100, 8}}, other[] = {{50, 16}};
    const dn_sg_t sg = {.block = block, .count = 2}, more = {.block = other, .count = 1};
    dn_xfer_t xfer = {.local_sg = &sg, .remote_sg = &sg, .len = 16};
    dn_xfer_sides_t sides = {0};

    assert_int_equal(dn_xfer_keep(&xfer, &sides), DN_OK);
    assert_ptr_equal(xfer.local_sg, &sides.local_sg);
    assert_ptr_equal(xfer.remote_sg, xfer.local_sg);
    assert_int_equal(xfer.local_sg->count, 2);
    assert_ptr_not_equal(xfer.local_sg->block, block);
    assert_memory_equal(xfer.local_sg->block, block, sizeof(block));
    dn_xfer_drop(&sides);

    xfer = (dn_xfer_t){.local_sg = &sg, .remote_sg = &more, .len = 16};
    sides = (dn_xfer_sides_t){0};
    assert_int_equal(dn_xfer_keep(&xfer, &sides), DN_OK);
    assert_memory_equal(xfer.local_sg->block, block, sizeof(block));
    assert_memory_equal(xfer.remote_sg->block, other, sizeof(other));
    dn_xfer_drop(&sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_list_is_checked_as_two),
                                       cmocka_unit_test(one_list_is_kept_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
