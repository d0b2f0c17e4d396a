/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A message on a channel that nobody has opened yet holds up the messages behind it, but no store, line or fence: what the
 * receiver waits for before it opens the channel may be one of these.
 */
#include "dn_config.h"

#include "dn_unit_emulate.h"

enum { ROUNDS_MAX = 1000 * 1000, LATE = DN_CHAN_USER + 1 };

static unsigned heard;
static unsigned order[4];

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    order[heard++] = tag;
}

static dn_port_t *open_port(void)
{
    const dn_job_t job = {.nlocal = 1};
    dn_port_t *port = NULL;

    assert_int_equal(dn_open("emulate:dimmnet1-d", &job, NULL, &port), DN_OK);
    assert_int_equal(dn_handler_set(port, DN_CHAN_USER, hear, NULL), DN_OK);
    heard = 0;
    return port;
}

static void stores_and_fences_pass_messages_do_not(void **state)
{
    dn_port_t *port = open_port();
    dn_peer_t *self = dn_unit_connect(port, port);
    dn_status_t status = DN_INPROGRESS;
    uint64_t off;
    void *place;

    assert_int_equal(dn_llcm_alloc(port, 128, &off, &place), DN_OK);
    const volatile uint64_t *word = place;
    assert_int_equal(dn_botf(self, LATE, 1, "x", 1, NULL, 0), DN_OK);
    assert_int_equal(dn_aotf(self, off, 7, 8), DN_OK);
    assert_int_equal(dn_botf(self, DN_CHAN_USER, 2, "x", 1, NULL, 0), DN_OK);
    assert_int_equal(dn_aotf_line(self, off + 64, "line", 4, 8), DN_OK);
    assert_int_equal(dn_aotf(self, off, 9, 8), DN_OK);
    for (unsigned i = 0; 9 != word[0] && i < ROUNDS_MAX; i++) {
        dn_progress(port);
    }
    assert_int_equal(word[0], 9);
    assert_int_equal(word[(64 + DN_AOTF_LINE_MAX) / 8], 8);
    for (unsigned i = 0; DN_INPROGRESS == status && i < ROUNDS_MAX; i++) {
        dn_progress(port);
        status = dn_fence(self);
    }
    assert_int_equal(status, DN_OK);
    assert_int_equal(heard, 0);

    assert_int_equal(dn_handler_set(port, LATE, hear, NULL), DN_OK);
    assert_int_equal(dn_botf(self, LATE, 3, "x", 1, NULL, 0), DN_OK);
    for (unsigned i = 0; 3 > heard && i < ROUNDS_MAX; i++) {
        dn_progress(port);
    }
    assert_int_equal(heard, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(order[i], i + 1);
    }
    dn_close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_and_fences_pass_messages_do_not),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup_emulate, NULL);
}
