/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The emulation keeps the times of the model: the same stores, messages and transfers, begun at the same moments, free the
 * sender and arrive, or are complete, when they are in a run of the model. Counted in picoseconds: a tick of the emulation is one here.
 */
#include "dn_config.h"

#include "dn_model_nodes.h"
#include "dn_unit_profile.h"

#include "emulate/dn_emulate_int.h"

enum { STORES = 6, MESSAGES = 8, TRANSFERS = 7, QUIET_PS = 100 * 1000 * 1000 };

static const size_t store_len[STORES] = {8, 1, 4, 8, 8, 8};
static const size_t message_len[MESSAGES] = {0, 8, 300, 464, 465, 100, 100, 100};
/** The longest one first: it fills the tables, and does not count. */
static const size_t transfer_len[TRANSFERS] = {65536, 65536, 65535, 10000, 4096, 465, 8};

/** From here on one follows the other at once. */
enum { STORES_TRAIN = 3, MESSAGES_TRAIN = 5 };

/** What the model says: when each was sent, when its sender went on, when it was seen. */
typedef struct moments {
    uint64_t sent;
    uint64_t host;
    uint64_t seen;
} moments_t;

static moments_t store[STORES], message[MESSAGES], push[TRANSFERS], pull[TRANSFERS];
static unsigned heard;

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    assert_int_equal(len, message_len[heard]);
    message[heard++].seen = dn_model_now();
}

static void send_all(node_t *self)
{
    /* The header's way is known before it counts. */
    assert_int_equal(dn_aotf(self->peer[1], nodes.off[1] + 8 * STORES, 1, 8), DN_OK);
    for (unsigned i = 0; i < STORES; i++) {
        dn_model_compute(STORES_TRAIN < i ? 0 : QUIET_PS);
        store[i].sent = dn_model_now();
        assert_int_equal(dn_aotf(self->peer[1], nodes.off[1] + 8 * i, 1, store_len[i]), DN_OK);
        store[i].host = dn_model_now();
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        static const uint8_t data[1024];
        dn_model_compute(MESSAGES_TRAIN < i ? 0 : QUIET_PS);
        message[i].sent = dn_model_now();
        assert_int_equal(dn_botf(self->peer[1], DN_CHAN_USER, 0, data, message_len[i], NULL, 0), DN_OK);
        message[i].host = dn_model_now();
    }
}

static void transfer_one(node_t *self, unsigned i, int pushes)
{
    node_comp_t comp = {{node_signalled}, 0, DN_INPROGRESS};
    const dn_xfer_t xfer = {
        .local = self->memory, .key = &nodes.key[1], .len = transfer_len[i], .comp = &comp.comp};

    dn_model_compute(QUIET_PS);
    const uint64_t sent = dn_model_now();
    assert_int_equal(pushes ? dn_push(self->peer[1], &xfer) : dn_pull(self->peer[1], &xfer), DN_INPROGRESS);
    const uint64_t host = dn_model_now();
    while (0 == comp.signals) {
        dn_progress(self->port);
    }
    *(pushes ? &push[i] : &pull[i]) = (moments_t){sent, host, dn_model_now()};
}

static void transfer_all(node_t *self)
{
    dn_model_poll(DN_MODEL_READ_NOTHING);
    for (unsigned i = 0; i < TRANSFERS; i++) {
        transfer_one(self, i, 1);
        if (0 != dn_model_value("pull_in_hardware")) {
            transfer_one(self, i, 0);
        }
    }
}

static void both(node_t *self)
{
    assert_int_equal(node_connect(self, 1 - self->rank), DN_OK);
    assert_int_equal(dn_handler_set(self->port, DN_CHAN_USER, hear, NULL), DN_OK);
    nodes_meet();
    if (0 == self->rank) {
        send_all(self);
        transfer_all(self);
        return;
    }
    dn_model_poll(DN_MODEL_READ_NOTHING);
    for (unsigned i = 0; i < STORES; i++) {
        const volatile uint64_t *word = (volatile uint64_t *) (self->area + 8 * i);
        while (0 == *word) {
            dn_progress(self->port);
        }
        store[i].seen = dn_model_now();
    }
    while (heard < MESSAGES) {
        dn_progress(self->port);
    }
}

/** Rounding: a picosecond here and there. */
static void check_near(uint64_t got, uint64_t wanted)
{
    assert_in_range(got, wanted - 100, wanted + 100);
}

/** One part of a transfer from a NIC to the other. @return when it is there. */
static uint64_t part_there(dn_emulate_nic_t *from, dn_emulate_nic_t *to, uint64_t now, dn_core_part_t part,
                           uint64_t *host_p)
{
    const dn_emulate_trip_t trip = dn_emulate_part_trip(from, now, now, &part);

    *host_p = trip.host;
    return dn_emulate_part_arrival(to, trip.first, trip.last, &part);
}

static void check_transfers(dn_emulate_nic_t *near, dn_emulate_nic_t *far)
{
    for (unsigned i = 1; i < TRANSFERS; i++) {
        const dn_core_part_t data = {
            .kind = DN_CORE_PART_PUSH, .first = 1, .last = 1, .blocks = 1, .len = transfer_len[i]};
        const dn_core_part_t done = {.kind = DN_CORE_PART_DONE};
        const dn_core_part_t ask = {.kind = DN_CORE_PART_ASK, .first = 1, .blocks = 1};
        const dn_core_part_t answer = {.kind = DN_CORE_PART_DATA, .len = transfer_len[i]};
        uint64_t host, none;

        const uint64_t there = part_there(near, far, push[i].sent, data, &host);
        check_near(host, push[i].host);
        check_near(part_there(far, near, there, done, &none), push[i].seen);
        if (0 != near->pull_dma) {
            const uint64_t asked = part_there(near, far, pull[i].sent, ask, &host);
            check_near(host, pull[i].host);
            check_near(part_there(far, near, asked, answer, &none), pull[i].seen);
        }
    }
}

static void check_profile(const char *name)
{
    dn_model_profile_t *profile;
    dn_emulate_nic_t nic, far;
    uint64_t read_by = 0;

    heard = 0;
    nodes_init(name, 2);
    /* No credit is due: the emulation's comes back in no time, the model's by a store of the receiver's. */
    nodes.ring_lines = 256;
    assert_int_equal(nodes_run(both), DN_OK);
    assert_int_equal(dn_model_profile_open(name, &profile), DN_OK);
    assert_int_equal(dn_emulate_nic_open(&nic, profile, 1.0), DN_OK);
    assert_int_equal(dn_emulate_nic_open(&far, profile, 1.0), DN_OK);
    for (unsigned i = 0; i < STORES; i++) {
        const dn_emulate_trip_t trip = dn_emulate_aotf_trip(&nic, store[i].sent, store_len[i]);
        check_near(trip.host, store[i].host);
        check_near(dn_emulate_aotf_arrival(&nic, trip.last, store_len[i]), store[i].seen);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        const dn_emulate_trip_t trip = dn_emulate_botf_trip(&nic, message[i].sent, message_len[i]);
        const uint64_t arrival = dn_emulate_botf_arrival(&nic, trip.first, trip.last, message_len[i]);
        read_by = (arrival > read_by ? arrival : read_by)
                  + dn_emulate_read(&nic, sizeof(uint64_t) + message_len[i]);
        check_near(trip.host, message[i].host);
        check_near(read_by, message[i].seen);
    }
    check_transfers(&nic, &far);
    dn_emulate_nic_close(&far);
    dn_emulate_nic_close(&nic);
    dn_model_profile_close(profile);
}

static void every_profile_of_a_nic_agrees(void **state)
{
    static const char *const name[] = {"dimmnet1-a", "dimmnet1-d",  "dimmnet1-f", "dimmnet1-133", "dimmnet2",
                                       "cxl",        "rhinet2-pci", "ipnuma-1g",  "ipnuma-10g",   "uzura"};

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        check_profile(name[i]);
    }
}

static void methods_of_notification_agree(void **state)
{
    static const char *const by[] = {"arrival_by_count = 1", "arrival_by_count = 2"};
    char path[DN_UNIT_PATH_MAX];

    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        dn_unit_write_profile(path, "uzura", (const char *const[]){by[i], "start_by_polling_flag = 1", NULL});
        check_profile(path);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_of_a_nic_agrees),
        cmocka_unit_test(methods_of_notification_agree),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
