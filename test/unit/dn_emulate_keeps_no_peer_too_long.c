/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * What the emulation keeps of a peer: a killed one's place is given back, nothing takes effect behind a message for which there
 * was no memory or that waits too long for the link, and what waits for a slow link for seconds is not due before. By the kernel's clock, which is there everywhere.
 */
#include "dn_config.h"

#include "dn_unit_profile.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "dn_port.h"
#include "dn_unit_emulate.h"

enum { ROUNDS_MAX = 10 * 1000 * 1000 };

static unsigned heard;
static uint8_t last;
static dn_peer_t *speaker;
static int fails_at; /**< that call of aligned_alloc from now on; 0: none */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    if (0 != fails_at && 0 == --fails_at) {
        return NULL;
    }
    return __real_aligned_alloc(alignment, size);
}

static void hear(dn_peer_t *src, unsigned tag, const void *data, size_t len, void *arg)
{
    heard++;
    last = (uint8_t) tag;
    speaker = src;
}

static dn_port_t *open_port(const char *spec, uint32_t pid)
{
    const dn_job_t job = {.pid = pid, .nlocal = 2};
    dn_port_t *port = NULL;

    assert_int_equal(dn_open(spec, &job, NULL, &port), DN_OK);
    assert_int_equal(dn_handler_set(port, DN_CHAN_USER, hear, NULL), DN_OK);
    heard = 0;
    return port;
}

static dn_emulate_t *emulate_of(const dn_port_t *port)
{
    return (dn_emulate_t *) port->ifaces;
}

static void an_unknown_clock_is_refused(void **state)
{
    const dn_job_t job = {.nlocal = 1};
    dn_port_t *port = NULL;

    const pid_t pid = fork();
    if (0 == pid) {
        setenv("DN_EMULATE_CLOCK", "sundial", 1);
        dn_test_log_expect();
        const int refused = DN_ERR_PARAM == dn_open("emulate:dimmnet1-d", &job, NULL, &port);
        _exit(refused && dn_test_log_said(1, "write processor or kernel") ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void the_kernels_clock_counts(void **state)
{
    struct timespec now;
    double rate = 0;

    assert_int_equal(dn_emulate_clock(&rate), DN_OK);
    assert_true(0.001 == rate);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t before = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
    const uint64_t counted = dn_emulate_now();
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_in_range(counted, before, (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec);
}

/** The other process: says something and that it has, then waits for its end. */
static void speak_until_killed(int fd)
{
    uint8_t address[DN_ADDRESS_MAX];
    dn_peer_t *peer = NULL;
    dn_port_t *port = open_port("emulate:dimmnet1-d", 1);
    const ssize_t len = read(fd, address, sizeof(address));

    if (0 >= len || DN_OK != dn_connect(port, address, (size_t) len, &peer)) {
        _exit(1);
    }
    while (DN_OK != dn_botf(peer, DN_CHAN_USER, 7, "x", 1, NULL, 0)) {
        dn_progress(port);
    }
    if (1 != write(fd, "", 1)) {
        _exit(1);
    }
    for (;;) {
        dn_progress(port);
    }
}

/** Hear what a process says that is killed behind it, and see that it leaves nothing behind. */
static void hear_one_that_is_killed(int heard_first)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    int fd[2], status = 0;
    char said;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    const pid_t pid = fork();
    if (0 == pid) {
        speak_until_killed(fd[0]);
    }
    dn_port_t *port = open_port("emulate:dimmnet1-d", 0);
    assert_int_equal(dn_address(port, address, &len), DN_OK);
    assert_int_equal(write(fd[1], address, len), (ssize_t) len);
    assert_int_equal(read(fd[1], &said, 1), 1);
    while (heard_first && 0 == heard) {
        dn_progress(port);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    while (0 == heard) {
        dn_progress(port);
    }
    assert_int_equal(last, 7);
    if (heard_first) {
        assert_non_null(emulate_of(port)->peers);
        assert_int_equal(dn_peer_check(speaker), DN_ERR_UNREACH);
    }
    for (unsigned i = 0; NULL != emulate_of(port)->peers && i < ROUNDS_MAX; i++) {
        dn_progress(port);
    }
    assert_null(emulate_of(port)->peers);
    dn_close(port);
    close(fd[0]);
    close(fd[1]);
}

static void a_killed_peer_is_forgotten(void **state)
{
    hear_one_that_is_killed(1);
}

static void one_killed_before_its_hello_is_read_is_forgotten(void **state)
{
    hear_one_that_is_killed(0);
}

static void nothing_takes_effect_behind_a_gap(void **state)
{
    dn_port_t *port = open_port("emulate:dimmnet1-d", 0);
    dn_peer_t *self = dn_unit_connect(port, port);

    /* The first one finds all that is made once. */
    assert_int_equal(dn_botf(self, DN_CHAN_USER, 9, "x", 1, NULL, 0), DN_OK);
    while (0 == heard) {
        dn_progress(port);
    }
    for (unsigned tag = 1; tag <= 3; tag++) {
        assert_int_equal(dn_botf(self, DN_CHAN_USER, tag, "x", 1, NULL, 0), DN_OK);
    }
    dn_test_log_expect();
    fails_at = 2;
    for (unsigned i = 0; i < 1000; i++) {
        dn_progress(port);
    }
    assert_int_equal(fails_at, 0);
    assert_true(dn_test_log_said(1, "it is cut off"));
    assert_int_equal(heard, 2);
    assert_int_equal(last, 1);
    dn_close(port);
}

static void what_waits_too_long_for_the_link_is_a_gap(void **state)
{
    dn_port_t *port = open_port("emulate:dimmnet1-d", 0);
    dn_peer_t *self = dn_unit_connect(port, port);
    dn_emulate_t *emulate = emulate_of(port);
    dn_emulate_head_t head = {.channel = DN_CHAN_USER, .tag = 1};

    assert_int_equal(dn_botf(self, DN_CHAN_USER, 9, "x", 1, NULL, 0), DN_OK);
    while (0 == heard) {
        dn_progress(port);
    }
    dn_emulate_peer_t *peer = emulate->peers;
    head.sent = dn_emulate_now();
    head.first = UINT64_C(11000000000);
    dn_test_log_expect();
    assert_int_equal(dn_emulate_arrive(emulate, peer, DN_EMULATE_BOTF, &head, sizeof(head)), 1);
    assert_true(dn_test_log_said(1, "waits more than 10 s for the link of dimmnet1-d"));
    assert_int_equal(dn_peer_check(self), DN_ERR_UNREACH);
    head.first = 0;
    assert_int_equal(dn_emulate_arrive(emulate, peer, DN_EMULATE_BOTF, &head, sizeof(head)), 0);
    for (unsigned i = 0; i < 1000; i++) {
        dn_progress(port);
    }
    assert_int_equal(heard, 1);
    dn_close(port);
}

/** The NIC's link takes 65 ms for a packet: 30 of them are due in two seconds, more than 32 bits hold of a counter's ticks at 3 GHz. */
static void a_slow_link_keeps_its_packets(void **state)
{
    static const char *const change[] = {"link_rate_mbyte_s = 1", "header_bytes = 65000", NULL};
    char path[DN_UNIT_PATH_MAX], spec[64];

    dn_unit_write_profile(path, "cxl", change);
    snprintf(spec, sizeof(spec), "emulate:%s", path);
    dn_port_t *port = open_port(spec, 0);
    dn_peer_t *self = dn_unit_connect(port, port);
    dn_emulate_t *emulate = emulate_of(port);
    unlink(path);
    /* As if the counter ran at 3 GHz. */
    const double ghz = 3;
    emulate->nic.wire_per_byte *= ghz;
    const uint64_t began = dn_emulate_now();
    for (unsigned i = 0; i < 30; i++) {
        assert_int_equal(dn_aotf(self, 64, i, 8), DN_OK);
    }
    for (unsigned i = 0; i < 100; i++) {
        dn_progress(port);
    }
    assert_non_null(emulate->peers);
    assert_in_range(emulate->peers->due, began + (uint64_t) (29 * 65e6 * ghz),
                    began + (uint64_t) (60 * 65e6 * ghz));
    dn_close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_clock_is_refused),
        cmocka_unit_test(the_kernels_clock_counts),
        cmocka_unit_test(a_killed_peer_is_forgotten),
        cmocka_unit_test(one_killed_before_its_hello_is_read_is_forgotten),
        cmocka_unit_test(nothing_takes_effect_behind_a_gap),
        cmocka_unit_test(a_slow_link_keeps_its_packets),
        cmocka_unit_test(what_waits_too_long_for_the_link_is_a_gap),
    };
    return cmocka_run_group_tests(tests, dn_unit_setup_emulate, NULL);
}
