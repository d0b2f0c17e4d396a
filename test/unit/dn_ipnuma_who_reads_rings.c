/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A thread of the program that reads what has come rings the bell of its process: another thread may sleep until that comes. It rings when
 * it has let go of the device's lock, which that thread may want.
 */
#include "dn_config.h"

#include "dn_unit_ipnuma.h"

#include <sched.h>
#include <time.h>

static dn_port_t *port[2];

/** The thread of a port rings after it has let go of the lock: wait until nothing of the greeting is left to ring. */
static void await_quiet(uint32_t *bell)
{
    uint32_t odd;

    do {
        odd = dn_bell_set(bell);
        (void) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    } while (odd != dn_load_acquire_u32(bell));
}

static void reading_rings(void **state)
{
    uint64_t off = 0;
    void *word = NULL;

    (void) state;
    dn_unit_ipnuma_open(port, NULL);
    assert_int_equal(dn_llcm_alloc(port[1], sizeof(uint64_t), &off, &word), DN_OK);
    dn_peer_t *peer = dn_unit_ipnuma_meet(port);
    await_quiet(dn_unit_ipnuma(port[1])->iface.bell);
    /* The thread of port 1 reads nothing meanwhile. */
    dn_ipnuma_lock(dn_unit_ipnuma(port[1]));
    assert_ptr_equal(dn_unit_ipnuma(port[1])->iface.bell, dn_bell(port[1]));
    const uint32_t odd = dn_bell_set(dn_unit_ipnuma(port[1])->iface.bell);
    assert_int_equal(odd % 2, 1);
    assert_int_equal(dn_aotf(peer, off, 1, sizeof(uint64_t)), DN_OK);
    while (1 != dn_load_acquire((const uint64_t *) word)) {
        /* The sender sends again what is lost. */
        dn_progress(port[0]);
        (void) dn_ipnuma_turn(dn_unit_ipnuma(port[1]));
        sched_yield();
    }
    assert_int_equal(dn_load_acquire_u32(dn_unit_ipnuma(port[1])->iface.bell), odd);
    dn_ipnuma_unlock(dn_unit_ipnuma(port[1]));
    assert_int_equal(dn_load_acquire_u32(dn_unit_ipnuma(port[1])->iface.bell), odd + 1);
    dn_close(port[1]);
    dn_close(port[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading_rings)};

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
