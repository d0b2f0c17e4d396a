/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * How NIC and host tell each other is the profile's choice, and costs what the profile says: UZURA by another method than its own
 * takes just that much longer or shorter. Its slower bus, whichever that is, sets the pace of a PUSH.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

enum { LEN = 1 << 18, BLOCK = 4096 };

static uint64_t store_ps, message_ps, pull_ps, push_ps, sent_ps;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    message_ps = dn_model_now() - sent_ps;
}

static uint64_t transfer(node_t *self, uint64_t len, int push)
{
    const dn_xfer_t xfer = {.local = self->memory, .key = &nodes.key[1], .len = len};
    const uint64_t start = dn_model_now();

    assert_int_equal(node_transfer(self, 1, &xfer, push), DN_OK);
    return dn_model_now() - start;
}

/** A store, a message, a PULL, and a long PUSH, each by itself. */
static void all(node_t *self)
{
    assert_int_equal(node_connect(self, 1 - self->rank), DN_OK);
    assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, hear, NULL), DN_OK);
    dn_model_poll(DN_MODEL_READ_NOTHING);
    nodes_meet();
    if (0 == self->rank) {
        sent_ps = dn_model_now();
        assert_int_equal(dn_aotf(self->peer[1], nodes.off[1], 1, 8), DN_OK);
    } else {
        const volatile uint64_t *word = (volatile uint64_t *) self->area;
        while (0 == *word) {
            dn_progress(self->port);
        }
        store_ps = dn_model_now() - sent_ps;
    }
    nodes_meet();
    if (0 == self->rank) {
        dn_model_compute(UINT64_C(100000000));
        sent_ps = dn_model_now();
        assert_int_equal(dn_botf(self->peer[1], DN_CHAN_USER, 0, self->memory, 64, NULL, 0), DN_OK);
        dn_model_compute(UINT64_C(100000000));
        dn_model_push_by(DN_MODEL_WAY_DMA);
        /* Tables are filled by a first one. */
        transfer(self, LEN, 1);
        transfer(self, 8, 0);
        pull_ps = transfer(self, 8, 0);
        push_ps = transfer(self, LEN, 1);
    }
    while (0 == message_ps) {
        dn_progress(self->port);
    }
    nodes_meet();
}

/** UZURA with such lines. */
static void uzura(const char *const *change)
{
    char path[DN_UNIT_PATH_MAX];

    dn_unit_write_profile(path, "uzura", change);
    nodes_init(path, 2);
    message_ps = 0;
    const dn_status_t status = nodes_run(all);
    unlink(path);
    assert_int_equal(status, DN_OK);
}

static void methods_cost_what_the_profile_says(void **state)
{
    static const struct {
        const char *by;
        int64_t start_ps, arrival_ps;
    } cases[] = {{"start_by_polling_flag = 1", -20000, 0},
                 {"arrival_by_count = 1", 0, 910000},
                 {"arrival_by_count = 2", 0, 4990000}};

    uzura((const char *const[]){NULL});
    const uint64_t store = store_ps, message = message_ps, pull = pull_ps;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t more = cases[i].start_ps + cases[i].arrival_ps;
        uzura((const char *const[]){cases[i].by, NULL});
        assert_int_equal(store_ps - store, more);
        assert_int_equal(message_ps - message, more);
        /* Asked for and answered by the NICs: the host starts it and learns of its end. */
        assert_int_equal(pull_ps - pull, more);
    }
}

static void the_slower_bus_sets_the_pace(void **state)
{
    const uint64_t blocks = LEN / BLOCK;
    const uint64_t source_ps = 4021000, destination_ps = 3890000;

    uzura((const char *const[]){NULL});
    assert_in_range(push_ps, blocks * source_ps, (blocks + 3) * source_ps);
    /* Were reading as quick as the bus, writing would be what it waits for. */
    uzura((const char *const[]){"dma_read_start_ns = 0", NULL});
    assert_in_range(push_ps, blocks * destination_ps, (blocks + 3) * destination_ps);
    assert_true(push_ps < blocks * source_ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_cost_what_the_profile_says),
        cmocka_unit_test(the_slower_bus_sets_the_pace),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
