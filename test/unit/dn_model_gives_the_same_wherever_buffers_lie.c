/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The model's times do not depend on the addresses that the host's memory happens to have.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"

#include <sys/mman.h>

enum { PAGE = 4096, PAGES_MAX = 2048, TURNS = 8, BYTES = 3000 };

static uint8_t *memory;
static uint64_t apart; /**< of the two buffers */

/** In turns out of, or into, two buffers. */
static void alternate(node_t *self)
{
    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        dn_model_push_by(DN_MODEL_WAY_DMA);
        for (unsigned i = 0; i < TURNS; i++) {
            const dn_xfer_t xfer = {.local = memory + (i % 2) * apart, .key = &nodes.key[1], .len = BYTES};
            assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
            assert_int_equal(node_transfer(self, 1, &xfer, 0), DN_OK);
        }
    }
    nodes_meet();
}

static dn_model_report_t report_of(uint64_t pages)
{
    apart = pages * PAGE;
    nodes_init("dimmnet1-d", 2);
    assert_int_equal(nodes_run(alternate), DN_OK);
    return nodes.report;
}

static void where_buffers_lie_changes_nothing(void **state)
{
    dn_model_profile_t *profile;

    assert_int_equal(dn_model_profile_open("dimmnet1-d", &profile), DN_OK);
    const uint64_t entries = dn_model_profile_value(profile, "tlb_entries");
    assert_int_equal(dn_model_profile_value(profile, "page"), PAGE);
    dn_model_profile_close(profile);
    assert_in_range(entries, 2, PAGES_MAX - 2);
    memory = mmap(NULL, PAGES_MAX * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(MAP_FAILED != memory);

    /* By their addresses both would have one entry of the table, or two. */
    const dn_model_report_t first = report_of(entries);
    const dn_model_report_t second = report_of(entries + 1);
    assert_true(0 != first.tlb_misses);
    assert_int_equal(first.tlb_misses, second.tlb_misses);
    assert_int_equal(first.end_ps, second.end_ps);
    assert_int_equal(munmap(memory, PAGES_MAX * PAGE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_buffers_lie_changes_nothing),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
