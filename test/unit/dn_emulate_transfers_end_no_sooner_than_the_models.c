/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A PUSH and a PULL of an emulated port are complete no sooner than those of the model, however fast this machine is: of a NIC
 * whose DMA takes longer than messages of the same length would.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

#include "dn_unit_emulate.h"

enum { LONGEST = 65536, ROUNDING_NS = 100 };

/** What the model runs, and how long it took. */
static struct {
    dn_xfer_t xfer;
    int push;
    uint64_t ps;
} one;

static void transfer_one(node_t *self)
{
    const dn_xfer_t xfer = {.local = self->memory,
                            .key = &nodes.key[1],
                            .len = one.xfer.len,
                            .flags = one.xfer.flags,
                            .remote_status = nodes.off[1]};

    if (0 == self->rank) {
        assert_int_equal(node_connect(self, 1), DN_OK);
        dn_model_poll(DN_MODEL_READ_NOTHING);
        const uint64_t began = dn_model_now();
        assert_int_equal(node_transfer(self, 1, &xfer, one.push), DN_OK);
        one.ps = dn_model_now() - began;
    }
}

/** The same from a port to itself. @return its duration. */
static uint64_t emulated_ns(const char *profile)
{
    const dn_job_t job = {.nlocal = 1};
    node_t self = {.rank = 0};
    char spec[64];
    dn_key_t key;
    void *word;
    uint64_t off;

    snprintf(spec, sizeof(spec), "emulate:%s", profile);
    assert_int_equal(dn_open(spec, &job, NULL, &self.port), DN_OK);
    assert_int_equal(dn_llcm_alloc(self.port, sizeof(uint64_t), &off, &word), DN_OK);
    assert_int_equal(dn_segment_alloc(self.port, 2 * LONGEST, &self.segment), DN_OK);
    dn_segment_key(self.segment, &key);
    uint8_t *base = dn_segment_base(self.segment);
    nodes.address_len[0] = sizeof(nodes.address[0]);
    assert_int_equal(dn_address(self.port, nodes.address[0], &nodes.address_len[0]), DN_OK);
    assert_int_equal(node_connect(&self, 0), DN_OK);
    dn_test_fill(base + (one.push ? LONGEST : 0), one.xfer.len, 5);
    const dn_xfer_t xfer = {.local = base + LONGEST,
                            .key = &key,
                            .len = one.xfer.len,
                            .flags = one.xfer.flags,
                            .remote_status = off,
                            .remote_value = 7};
    const uint64_t began = dn_emulate_now();
    assert_int_equal(node_transfer(&self, 0, &xfer, one.push), DN_OK);
    const uint64_t took = dn_emulate_now() - began;
    assert_int_equal(dn_test_mismatch(base + (one.push ? 0 : LONGEST), one.xfer.len, 5), one.xfer.len);
    assert_int_equal(*(const uint64_t *) word, 0 != one.xfer.flags ? 7 : 0);
    dn_close(self.port);
    return took;
}

static void check(const char *const *change, size_t len, uint32_t flags, int push)
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "dimmnet1-d", change);
    one.xfer = (dn_xfer_t){.len = len, .flags = flags};
    one.push = push;
    nodes_init(path, 2);
    assert_int_equal(nodes_run(transfer_one), DN_OK);
    assert_in_range(emulated_ns(path) + ROUNDING_NS, one.ps / 1000, UINT64_MAX);
    unlink(path);
}

static void data_come_no_sooner(void **state)
{
    static const char *const slow[] = {"dma_rate_mbyte_s = 20", "tlb_entries_count = 0", NULL};
    static const char *const told[] = {"dma_rate_mbyte_s = 20", "tlb_entries_count = 0",
                                       "push_remote_status_flag = 1", NULL};

    for (size_t len = 1024; len <= LONGEST; len *= 8) {
        check(slow, len, 0, 1);
        check(slow, len, 0, 0);
        check(slow, len, DN_XFER_STATUS_REMOTE, 1);
        check(told, len, DN_XFER_STATUS_REMOTE, 1);
    }
    check(slow, LONGEST, 0, 1);
    check(slow, LONGEST, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(data_come_no_sooner)};

    return cmocka_run_group_tests(tests, dn_unit_setup_emulate, NULL);
}
