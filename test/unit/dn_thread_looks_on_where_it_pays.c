/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A thread that serves others stays awake behind a request when the next follows soon, and only then; less and less often where that
 * is in vain; and never so long that the program has no core.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <sched.h>

#include "base/dn_thread.h"

enum { US = 1000, MS = 1000 * US };

static uint64_t now;

/** One that does not ask the kernel to run ahead of this test. */
static dn_awake_t made(void)
{
    now = 1000 * (uint64_t) MS;
    return (dn_awake_t){.first = -1, .since = now, .waits = now, .spare_ns = MS};
}

/** It waits for a request, which comes. @return whether it looks on. */
static int request_after(dn_awake_t *awake, uint64_t ns)
{
    const uint64_t begin = now;

    now += ns;
    dn_awake_slept(awake, begin, now, 1);
    return dn_awake_begin(awake, now);
}

/** It looks on while so many requests come, each after some time. @return nanoseconds that it looked on for in all. */
static uint64_t look_on(dn_awake_t *awake, unsigned requests, uint64_t gap)
{
    const uint64_t begin = now;
    uint64_t next = now + gap;
    int came = 0;

    while (dn_awake_lasts(awake, now, came)) {
        now += US;
        came = 0 != requests && now >= next;
        requests -= (unsigned) came;
        next = came ? now + gap : next;
    }
    return now - begin;
}

static void requests_that_come_now_and_then_keep_no_thread_awake(void **state)
{
    dn_awake_t awake = made();

    (void) state;
    for (unsigned i = 0; i < 100; i++) {
        assert_false(request_after(&awake, 400 * US));
    }
}

static void a_row_of_requests_finds_it_awake(void **state)
{
    dn_awake_t awake = made();

    (void) state;
    assert_false(request_after(&awake, MS));
    assert_true(request_after(&awake, 10 * US));
    assert_in_range(look_on(&awake, 10, 10 * US), 101 * US, 400 * US);
    assert_int_equal(dn_awake_end(&awake, now), 0);
    /* It has learnt that requests come in rows. */
    assert_true(request_after(&awake, MS));
}

static void it_gives_up_what_is_in_vain(void **state)
{
    dn_awake_t awake = made();
    unsigned looks = 0;

    (void) state;
    for (unsigned i = 0; i < 640; i++) {
        if (request_after(&awake, 10 * US)) {
            looks++;
            assert_in_range(look_on(&awake, 0, 0), 1, 200 * US);
            (void) dn_awake_end(&awake, now);
        }
    }
    assert_in_range(looks, 5, 20);
    /* Once it pays, it is done again. */
    while (!request_after(&awake, 10 * US)) {
    }
    (void) look_on(&awake, 1, 10 * US);
    (void) dn_awake_end(&awake, now);
    assert_true(request_after(&awake, 10 * US));
}

static void it_sleeps_after_some_time_whatever_comes(void **state)
{
    dn_awake_t awake = made();

    (void) state;
    assert_true(request_after(&awake, 10 * US));
    assert_in_range(look_on(&awake, 1000000, 10 * US), MS, 2 * MS);
    const uint64_t off = dn_awake_end(&awake, now);
    assert_in_range(off, 20 * US, MS);
    dn_awake_slept(&awake, now, now + off, 0);
    now += off;
    assert_true(dn_awake_begin(&awake, now));
    assert_in_range(look_on(&awake, 1000000, 10 * US), MS, 2 * MS);
}

/** Keep the calling thread on one core. @return 0: it is not kept. */
static int keep_to(int core)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t) core, &one);
    return 0 == sched_setaffinity(0, sizeof(one), &one) && core == sched_getcpu();
}

/** Let the calling thread leave its core, again and again, since the kernel may move it back at once. @return whether it was ever seen to
 * leave. */
static int leaves(void)
{
    int left = 0;

    for (int i = 0; i < 1000 && !left; i++) {
        const int core = sched_getcpu();
        assert_int_equal(dn_thread_leave_core(), 1);
        left = core != sched_getcpu();
    }
    return left;
}

/** A thread that leaves its core may run where it could run before. */
static void it_leaves_a_core_if_there_is_another(void **state)
{
    cpu_set_t before, after;
    int core = 0;

    (void) state;
    /* More cores than fit, or a kernel that keeps no thread anywhere. */
    if (0 != sched_getaffinity(0, sizeof(before), &before)) {
        skip();
    }
    while (!CPU_ISSET((size_t) core, &before)) {
        core++;
    }
    const int kept = keep_to(core);
    if (kept) {
        assert_int_equal(dn_thread_leave_core(), 0);
        assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
        assert_int_equal(CPU_COUNT(&after), 1);
        assert_true(CPU_ISSET((size_t) core, &after));
    }
    if (0 != sched_setaffinity(0, sizeof(before), &before) || !kept) {
        skip();
    }
    assert_int_equal(1 < CPU_COUNT(&before) ? leaves() : !dn_thread_leave_core(), 1);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_come_now_and_then_keep_no_thread_awake),
        cmocka_unit_test(a_row_of_requests_finds_it_awake),
        cmocka_unit_test(it_gives_up_what_is_in_vain),
        cmocka_unit_test(it_sleeps_after_some_time_whatever_comes),
        cmocka_unit_test(it_leaves_a_core_if_there_is_another),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
