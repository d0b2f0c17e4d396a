/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The page map and the shared region table, against plain lists of what is in them.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include "ipnuma/dn_ipnuma_table.h"

enum { ENTRIES = 64, STEPS = 20000 };

static void only_whom_it_names_gets_in(void **state)
{
    static _Alignas(4096) uint8_t memory[16384];
    dn_ipnuma_regions_t regions = {0};
    uint64_t at = 0;

    (void) state;
    /* The thesis' example: 172.18.0.0/16 and 16 KiB. */
    assert_int_equal(
        dn_ipnuma_regions_add(&regions, memory, sizeof(memory), 0xac120304, 0xffff0000, 0x1806a0000, &at),
        DN_OK);
    assert_int_equal(at, 0x1806a0000);
    assert_ptr_equal(dn_ipnuma_regions_find(&regions, at, 16384, 0xac12ffff), memory);
    assert_ptr_equal(dn_ipnuma_regions_find(&regions, at + 16383, 1, 0xac120001), memory + 16383);
    assert_null(dn_ipnuma_regions_find(&regions, at, 1, 0xac130001));
    assert_null(dn_ipnuma_regions_find(&regions, at - 1, 1, 0xac120001));
    assert_null(dn_ipnuma_regions_find(&regions, at - 1, 2, 0xac120001));
    assert_null(dn_ipnuma_regions_find(&regions, at + 16383, 2, 0xac120001));
    assert_null(dn_ipnuma_regions_find(&regions, at + 16384, 1, 0xac120001));
    assert_null(dn_ipnuma_regions_find(&regions, at, UINT64_MAX, 0xac120001));
    assert_null(dn_ipnuma_regions_find(&regions, UINT64_MAX, 2, 0xac120001));
    dn_ipnuma_regions_remove(&regions, at);
    assert_null(dn_ipnuma_regions_find(&regions, at, 1, 0xac120001));
    dn_ipnuma_regions_remove(&regions, at);
    dn_ipnuma_regions_close(&regions);
}

static void regions_never_overlap(void **state)
{
    static uint8_t memory[1 << 20];
    dn_ipnuma_regions_t regions = {0};
    dn_ipnuma_region_t model[ENTRIES] = {{0}};
    uint64_t random = 1;

    (void) state;
    for (int step = 0; step < STEPS; step++) {
        dn_ipnuma_region_t *one = &model[dn_test_below(&random, ENTRIES)];
        if (0 != one->len) {
            dn_ipnuma_regions_remove(&regions, one->at);
            one->len = 0;
        } else {
            one->len = 1 + dn_test_length(&random, sizeof(memory) - 1);
            one->base = memory + dn_test_below(&random, sizeof(memory) - one->len + 1);
            /* Few places, so that many are in the way; some at the end of all addresses. */
            const uint64_t place = (0 == dn_test_below(&random, 4) ? UINT64_C(0xfffffffff000) : 0x10000)
                                   + (dn_test_below(&random, 8) << 12);
            assert_int_equal(dn_ipnuma_regions_add(&regions, one->base, one->len, 0, 0, place, &one->at),
                             DN_OK);
            assert_int_equal(one->at % DN_IPNUMA_PAGE, (uintptr_t) one->base % DN_IPNUMA_PAGE);
            assert_true(one->at + one->len <= UINT64_C(1) << DN_IPNUMA_ADDRESS_BITS);
        }
        for (int i = 0; i < ENTRIES; i++) {
            const dn_ipnuma_region_t *m = &model[i];
            if (0 != m->len) {
                const uint64_t off = dn_test_below(&random, m->len);
                assert_ptr_equal(dn_ipnuma_regions_find(&regions, m->at + off, m->len - off, 1),
                                 m->base + off);
                assert_null(dn_ipnuma_regions_find(&regions, m->at + off, m->len - off + 1, 1));
            }
        }
    }
    dn_ipnuma_regions_close(&regions);
}

static void pages_lead_where_they_were_mapped(void **state)
{
    dn_ipnuma_map_t map = {0};
    struct {
        uint32_t page;
        uint64_t at, len;
    } model[ENTRIES] = {{0}};
    uint64_t random = 3;

    (void) state;
    for (int step = 0; step < STEPS; step++) {
        const uint64_t i = dn_test_below(&random, ENTRIES);
        if (0 != model[i].len) {
            dn_ipnuma_map_remove(&map, model[i].page, model[i].len);
            model[i].len = 0;
        } else {
            model[i].at = dn_test_random(&random) >> 29 << 12;
            model[i].len = 1 + dn_test_length(&random, 1 << 20);
            assert_int_equal(
                dn_ipnuma_map_add(&map, (uint32_t) i + 1, model[i].at, model[i].len, &model[i].page), DN_OK);
        }
        for (int k = 0; k < ENTRIES; k++) {
            if (0 != model[k].len) {
                const uint64_t off = dn_test_below(&random, model[k].len);
                const uint32_t page = model[k].page + (uint32_t) (off / DN_IPNUMA_PAGE);
                assert_int_equal(dn_ipnuma_map_at(&map, model[k].page, off), model[k].at + off);
                assert_int_equal(map.page[page] >> DN_IPNUMA_ADDRESS_BITS, k + 1);
            }
        }
    }
    dn_ipnuma_map_close(&map);
}

static void the_page_region_is_bounded(void **state)
{
    dn_ipnuma_map_t map = {0};
    uint32_t page = 0;

    (void) state;
    assert_int_equal(dn_ipnuma_map_add(&map, 1, 0, (uint64_t) (DN_IPNUMA_PAGES - 1) * DN_IPNUMA_PAGE, &page),
                     DN_OK);
    assert_int_equal(dn_ipnuma_map_add(&map, 2, 0, 2 * DN_IPNUMA_PAGE, &page), DN_ERR_NOMEM);
    assert_int_equal(dn_ipnuma_map_add(&map, 3, 0, DN_IPNUMA_PAGE, &page), DN_OK);
    assert_int_equal(dn_ipnuma_map_add(&map, 4, 0, 1, &page), DN_ERR_NOMEM);
    dn_ipnuma_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whom_it_names_gets_in),
        cmocka_unit_test(regions_never_overlap),
        cmocka_unit_test(pages_lead_where_they_were_mapped),
        cmocka_unit_test(the_page_region_is_bounded),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
