/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A NIC that acknowledges and resends, as IP-NUMA was designed to: on links that lose packets all arrives once and in its
 * order, later. Without losses nothing is sent twice; a link that loses without that is refused.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

enum { COUNT = 300 };

static uint32_t heard;
static uint64_t last;
static uint64_t first_ps, end_ps;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    uint32_t number;

    assert_int_equal(len, 100 + sizeof(number));
    memcpy(&number, data, sizeof(number));
    assert_int_equal(number, heard);
    heard++;
}

static void patiently(node_t *self, dn_status_t status)
{
    assert_true(DN_OK == status || DN_ERR_AGAIN == status);
    if (DN_ERR_AGAIN == status) {
        dn_progress(self->port);
    }
}

/** Messages, then stores to one word, then a PUSH. */
static void stream(node_t *self)
{
    static const uint8_t body[100];
    dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = 20000};
    const volatile uint64_t *word = (volatile uint64_t *) self->area;

    assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, hear, NULL), DN_OK);
    assert_int_equal(node_connect(self, 1 - self->rank), DN_OK);
    memset(self->memory, 0 == self->rank ? 0x5a : 0, NODE_MEMORY);
    nodes_meet();
    if (0 == self->rank) {
        first_ps = dn_model_now();
        for (uint32_t i = 0; i < COUNT;) {
            const dn_status_t status =
                dn_botf(self->peer[1], DN_CHAN_USER, 0, &i, sizeof(i), body, sizeof(body));
            patiently(self, status);
            i += DN_OK == status;
        }
        for (uint64_t i = 1; i <= COUNT;) {
            const dn_status_t status = dn_aotf(self->peer[1], nodes.off[1], i, sizeof(i));
            patiently(self, status);
            i += DN_OK == status;
        }
        node_settle(self->peer[1]);
        assert_int_equal(node_transfer(self, 1, &xfer, 1), DN_OK);
        end_ps = dn_model_now();
    } else {
        while (heard < COUNT || last < COUNT) {
            dn_progress(self->port);
            assert_true(*word >= last);
            last = *word;
        }
    }
    nodes_meet();
    if (0 != self->rank) {
        assert_int_equal(self->memory[0], 0x5a);
        assert_int_equal(self->memory[xfer.len - 1], 0x5a);
        assert_int_equal(self->memory[xfer.len], 0);
    }
}

/** A run over a profile with more values. @return its duration. */
static uint64_t run(const char *const *more)
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "ipnuma-10g", more);
    nodes_init(path, 2);
    heard = 0;
    last = 0;
    const dn_status_t status = nodes_run(stream);
    unlink(path);
    assert_int_equal(status, DN_OK);
    assert_int_equal(heard, COUNT);
    assert_int_equal(last, COUNT);
    return end_ps - first_ps;
}

static void all_arrives_in_order(void **state)
{
    const uint64_t without = run((const char *const[]){"resend_after_us = 10", NULL});
    assert_int_equal(nodes.report.lost, 0);
    assert_int_equal(nodes.report.resent, 0);
    const uint64_t acks = nodes.report.acks;
    assert_true(acks >= 2 * COUNT);

    const uint64_t with =
        run((const char *const[]){"resend_after_us = 10", "link_loss_count = 100000", NULL});
    /* Of some 1,500 packets and as many acknowledgements a tenth, give or take. */
    assert_in_range(nodes.report.lost, nodes.report.acks / 20, nodes.report.acks / 3);
    assert_int_equal(nodes.report.resent, nodes.report.lost);
    assert_true(with > without + 10000000);
}

static void nothing_is_lost_without_a_way_to_resend_it(void **state)
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "ipnuma-10g", (const char *const[]){"link_loss_count = 1", NULL});
    nodes_init(path, 2);
    dn_test_log_expect();
    assert_int_equal(nodes_run(stream), DN_ERR_PARAM);
    assert_true(dn_test_log_said(1, "link_loss needs resend_after"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_arrives_in_order),
        cmocka_unit_test(nothing_is_lost_without_a_way_to_resend_it),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
