/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Stores of a program that calls nothing else, to a process that says nothing for a while: the first ones go at once, unless they go on
 * with a stream, and the others gather in few datagrams. Those that follow each other within a line take no header of their own, and others in a datagram take a short one.
 * All of them arrive, in each mode.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <time.h>

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

/** Looks at whether a thread rests, at most: a minute of them. */
enum { WORDS = 256, ALONE = 4, LOOKS = 60000 };

static dn_port_t *port[2];
static dn_peer_t *peer;
static uint64_t *word; /**< that are stored to, at port 1 */
static uint64_t off;

static dn_ipnuma_t *device_of(int i)
{
    return (dn_ipnuma_t *) port[i]->ifaces;
}

static dn_ipnuma_link_t *link_of_first(void)
{
    dn_ipnuma_pc_t *pc = dn_ipnuma_pc_of(device_of(0), device_of(1)->where.nonce);

    assert_non_null(pc);
    return &pc->link;
}

/** All that was stored is there. */
static void settle(void)
{
    while (DN_INPROGRESS == dn_flush(peer)) {
        dn_progress(port[0]);
        dn_progress(port[1]);
    }
}

/** Skip the program where a device has no thread: it takes nobody in. */
static void need_thread(int i)
{
    dn_ipnuma_lock(device_of(i));
    const int none = DN_IPNUMA_NO_THREAD == device_of(i)->service.state;
    dn_ipnuma_unlock(device_of(i));
    if (none) {
        printf("skipped: %s\n", dn_test_log.last);
        exit(DN_TEST_SKIP);
    }
}

/** Until the thread of port 0 no longer takes its program for one that looks at the network. */
static void fall_silent(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    dn_ipnuma_t *ipnuma = device_of(0);
    int rests = 0;

    /* It may sleep since before the program's last looks, and has to see these first. */
    dn_ipnuma_lock(ipnuma);
    ipnuma->service.wake_at = 0;
    dn_thread_call(ipnuma->service.event);
    dn_ipnuma_unlock(ipnuma);
    for (int looks = 0; LOOKS > looks && !rests; looks++) {
        /* The thread tells nobody of it. */
        (void) nanosleep(&pause, NULL);
        dn_ipnuma_lock(ipnuma);
        rests = DN_IPNUMA_LISTENS == ipnuma->service.state && 0 != ipnuma->service.wake_at;
        dn_ipnuma_unlock(ipnuma);
    }
    assert_true(rests);
}

static void open_both(dn_auth_mode_t auth)
{
    void *llcm = NULL;
    dn_config_t config;

    dn_config_init(&config);
    config.auth = auth;
    dn_test_log_expect();
    for (int i = 0; i < 2; i++) {
        const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = 2};
        assert_int_equal(dn_open("ipnuma:lo", &job, &config, &port[i]), DN_OK);
    }
    peer = dn_unit_connect(port[0], port[1]);
    assert_int_equal(dn_llcm_alloc(port[1], WORDS * sizeof(*word), &off, &llcm), DN_OK);
    word = llcm;
    need_thread(0);
    need_thread(1);
    settle();
    assert_true(dn_test_log_said(0, NULL));
}

/** Store to all words, `apart` words from one to the next. @param[out] bytes_p  Bytes of TLPs. @return packets that went meanwhile, but for
 * probes. */
static uint64_t store_all(int apart, uint64_t value, uint64_t *bytes_p)
{
    settle();
    fall_silent();
    /* Port 1 says nothing as long as somebody else has its lock. */
    dn_ipnuma_lock(device_of(1));
    dn_ipnuma_lock(device_of(0));
    const dn_ipnuma_link_t *link = link_of_first();
    const uint64_t number = link->loss.next - link->counts.resent, end = link->end;
    dn_ipnuma_unlock(device_of(0));
    for (int i = 0; i < WORDS; i++) {
        const uint64_t at = (uint64_t) (i * apart % WORDS + i * apart / WORDS);
        assert_int_equal(dn_aotf(peer, off + at * sizeof(*word), value + at, sizeof(*word)), DN_OK);
    }
    dn_ipnuma_lock(device_of(0));
    const uint64_t packets = link->loss.next - link->counts.resent - number;
    *bytes_p = link->end - end;
    dn_ipnuma_unlock(device_of(0));
    dn_ipnuma_unlock(device_of(1));
    settle();
    for (uint64_t i = 0; i < WORDS; i++) {
        assert_int_equal(dn_load_acquire(&word[i]), value + i);
    }
    return packets;
}

static void stores_gather_and_are_joined(void **state)
{
    static const dn_auth_mode_t auth[] = {DN_AUTH_HELLO, DN_AUTH_FULL, DN_AUTH_ENCRYPTED};
    const uint64_t apart = WORDS * (DN_TLP_SHORT_HEADER + sizeof(*word));
    const uint64_t lines = WORDS * sizeof(*word) + WORDS / 8 * DN_TLP_SHORT_HEADER;
    const uint64_t more = DN_TLP_HEADER - DN_TLP_SHORT_HEADER;

    (void) state;
    for (unsigned i = 0; i < sizeof(auth) / sizeof(auth[0]); i++) {
        uint64_t bytes = 0;
        open_both(auth[i]);
        /* Probes of what is not acknowledged may come between, so that there are some more. */
        assert_in_range(store_all(16, 1000, &bytes), 0, 4 * ALONE);
        /* The first of each datagram has a long header. */
        assert_in_range(bytes, apart + more, apart + 4 * ALONE * more);
        assert_in_range(store_all(1, 2000, &bytes), 0, 4 * ALONE);
        /* Those of a line have one header, but where one has gone before the next came. */
        assert_in_range(bytes, lines, lines + 4 * ALONE * DN_TLP_HEADER);
        dn_close(port[0]);
        dn_close(port[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_gather_and_are_joined),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
