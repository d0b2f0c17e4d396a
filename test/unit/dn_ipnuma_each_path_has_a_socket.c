/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Each path of a port sends by a socket of its own, up to a number of them: they share a UDP port, which is not the one where the port
 * receives. A path goes on without such a socket, and where its datagrams are answered by ICMP.
 */
#include "dn_config.h"

#include "dn_unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_port.h"
#include "ipnuma/dn_ipnuma_int.h"

/** Limits of a wait, in milliseconds. Some kernels make no ICMP. */
enum { LIMIT_MS = 30000, ANSWER_MS = 3000, PORTS = 3 };

static dn_port_t *port[PORTS];

static dn_ipnuma_t *device_of(int i)
{
    return (dn_ipnuma_t *) port[i]->ifaces;
}

static void open_all(void)
{
    for (int i = 0; i < PORTS; i++) {
        const dn_job_t job = {.key = {"a key of 16 byte"}, .pid = (uint32_t) i, .size = PORTS};
        assert_int_equal(dn_open("ipnuma:lo", &job, NULL, &port[i]), DN_OK);
    }
}

static void close_all(void)
{
    for (int i = 0; i < PORTS; i++) {
        dn_close(port[i]);
    }
}

static void settle(dn_peer_t *peer)
{
    while (DN_INPROGRESS == dn_fence(peer)) {
        for (int i = 0; i < PORTS; i++) {
            dn_progress(port[i]);
        }
    }
}

/** The UDP port of a socket's own side. */
static uint16_t port_of(int fd)
{
    struct sockaddr_in name;
    socklen_t len = sizeof(name);

    assert_int_equal(getsockname(fd, (struct sockaddr *) &name, &len), 0);
    return ntohs(name.sin_port);
}

/** A socket on loopback that nobody else has. */
static int open_socket(dn_ipnuma_where_t *where)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(0 <= fd && 0 == bind(fd, (const struct sockaddr *) &name, sizeof(name)));
    *where = (dn_ipnuma_where_t){.ip = INADDR_LOOPBACK, .port = port_of(fd), .datagram = DN_IPNUMA_DATAGRAM};
    return fd;
}

/** Wait until so many paths of port 0 have a socket. */
static void await_connected(uint32_t n)
{
    const uint64_t until = dn_clock_ns() + LIMIT_MS * UINT64_C(1000000);
    uint32_t connected;

    do {
        dn_progress(port[0]);
        dn_ipnuma_lock(device_of(0));
        connected = device_of(0)->connected;
        dn_ipnuma_unlock(device_of(0));
    } while (n != connected && dn_clock_ns() < until);
    assert_int_equal(connected, n);
}

static void a_path_has_a_socket_while_it_lasts(void **state)
{
    (void) state;
    open_all();
    dn_peer_t *peer[2] = {dn_unit_connect(port[0], port[1]), dn_unit_connect(port[0], port[2])};
    settle(peer[0]);
    settle(peer[1]);
    dn_ipnuma_lock(device_of(0));
    assert_int_equal(device_of(0)->connected, 2);
    const dn_ipnuma_pc_t *pc = device_of(0)->pcs;
    assert_true(0 <= pc->fd && 0 <= pc->next->fd && pc->fd != pc->next->fd);
    assert_int_equal(port_of(pc->fd), device_of(0)->sends_by);
    assert_int_equal(port_of(pc->next->fd), device_of(0)->sends_by);
    assert_int_not_equal(port_of(pc->fd), device_of(0)->where.port);
    dn_ipnuma_unlock(device_of(0));
    /* The accepting side has one, too. */
    dn_ipnuma_lock(device_of(1));
    assert_int_equal(device_of(1)->connected, 1);
    assert_true(0 <= device_of(1)->pcs->fd);
    dn_ipnuma_unlock(device_of(1));
    /* A path ends. */
    dn_ipnuma_lock(device_of(0));
    const int fd = ((dn_ipnuma_peer_t *) peer[0])->pc->fd;
    dn_ipnuma_unlock(device_of(0));
    dn_close(port[1]);
    dn_disconnect(peer[0]);
    await_connected(1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    dn_close(port[2]);
    dn_close(port[0]);
}

/** Open so many sockets of port 0, and no more can be opened. */
static void open_so_many(unsigned most)
{
    int fd[DN_IPNUMA_CONNECTED];
    dn_ipnuma_where_t where;

    open_all();
    const int far = open_socket(&where);
    dn_ipnuma_lock(device_of(0));
    for (unsigned i = 0; i < most; i++) {
        fd[i] = dn_ipnuma_socket_connect(device_of(0), &where);
        assert_true(0 <= fd[i]);
    }
    assert_int_equal(dn_ipnuma_socket_connect(device_of(0), &where), -1);
    dn_ipnuma_unlock(device_of(0));
    /* Without a socket of its own, a path works alike. */
    settle(dn_unit_connect(port[0], port[1]));
    dn_ipnuma_lock(device_of(0));
    assert_int_equal(device_of(0)->pcs->fd, -1);
    for (unsigned i = 0; i < most; i++) {
        dn_ipnuma_socket_disconnect(device_of(0), fd[i]);
    }
    assert_int_equal(device_of(0)->connected, 0);
    assert_int_equal(device_of(0)->sends_by, 0);
    dn_ipnuma_unlock(device_of(0));
    close(far);
    close_all();
}

static void their_number_is_bounded(void **state)
{
    struct rlimit limit;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur / DN_IPNUMA_SHARE < DN_IPNUMA_CONNECTED) {
        skip();
    }
    open_so_many(DN_IPNUMA_CONNECTED);
}

static void most_files_are_left_to_the_program(void **state)
{
    enum { FILES = 80 };
    struct rlimit limit;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit few = {.rlim_cur = FILES, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    open_so_many(FILES / DN_IPNUMA_SHARE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/** The next number that a file would have. */
static int next_file(void)
{
    const int fd = dup(STDERR_FILENO);

    assert_true(0 <= fd);
    close(fd);
    return fd;
}

static void a_path_does_without_where_no_file_can_be_opened(void **state)
{
    struct rlimit limit;

    (void) state;
    open_all();
    /* Each port has its thread, with what the thread opens, before no more can be opened. */
    settle(dn_unit_connect(port[1], port[2]));
    settle(dn_unit_connect(port[0], port[2]));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* Where the kernel tells of the end of processes, one file more can be opened. It is for that. */
    const int tells = 0 <= device_of(0)->pcs->pidfd;
    const struct rlimit none = {.rlim_cur = (rlim_t) (next_file() + tells), .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    settle(dn_unit_connect(port[0], port[1]));
    const int extra = dup(STDERR_FILENO);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    dn_ipnuma_lock(device_of(0));
    assert_int_equal(device_of(0)->connected, 0 > extra ? 1 : 2);
    assert_int_equal(0 <= device_of(0)->pcs->pidfd, tells);
    dn_ipnuma_unlock(device_of(0));
    if (0 <= extra) {
        /* The limit is not kept here. */
        close(extra);
    }
    close_all();
}

static void connect_to(int fd, uint16_t to)
{
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_int_equal(connect(fd, (const struct sockaddr *) &name, sizeof(name)), 0);
}

/** Answer a datagram of a socket as a firewall does. @return false: this process has not the right to that. */
static bool answer_as_a_firewall(int fd, uint16_t to)
{
    struct {
        struct icmphdr icmp;
        struct iphdr ip;
        struct udphdr udp;
    } answer = {
        .icmp = {.type = ICMP_DEST_UNREACH, .code = ICMP_PKT_FILTERED},
        .ip = {.version = 4,
               .ihl = sizeof(struct iphdr) / 4,
               .tot_len = htons(sizeof(struct iphdr) + sizeof(struct udphdr)),
               .protocol = IPPROTO_UDP,
               .saddr = htonl(INADDR_LOOPBACK),
               .daddr = htonl(INADDR_LOOPBACK)},
        .udp = {.source = htons(port_of(fd)), .dest = htons(to), .len = htons(sizeof(struct udphdr))}};
    const struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t word[sizeof(answer) / sizeof(uint16_t)];
    uint32_t sum = 0;
    const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

    if (0 > raw) {
        return false;
    }
    memcpy(word, &answer, sizeof(answer));
    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
        sum += word[i];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    answer.icmp.checksum = (uint16_t) ~(sum + (sum >> 16));
    const ssize_t got =
        sendto(raw, &answer, sizeof(answer), 0, (const struct sockaddr *) &name, sizeof(name));
    close(raw);
    return sizeof(answer) == got;
}

/** What is sent to a process is answered by ICMP. The process gets each datagram behind that, from the first one on. */
static void go_on_after_icmp(bool by_firewall)
{
    dn_ipnuma_where_t where;
    uint64_t word = 1;

    open_all();
    const int far = open_socket(&where);
    dn_ipnuma_lock(device_of(0));
    const int fd = dn_ipnuma_socket_connect(device_of(0), &where);
    dn_ipnuma_unlock(device_of(0));
    assert_true(0 <= fd);
    bool answers = !by_firewall || answer_as_a_firewall(fd, where.port);
    if (!by_firewall) {
        /* It takes nothing but from itself: nobody is there for the path's datagram. */
        connect_to(far, where.port);
        assert_int_equal(dn_ipnuma_socket_send(device_of(0), &where, fd, &word, sizeof(word)), 1);
    }
    struct pollfd wait = {.fd = fd};
    answers = answers && 1 == poll(&wait, 1, ANSWER_MS);
    connect_to(far, port_of(fd));
    assert_int_equal(dn_ipnuma_socket_send(device_of(0), &where, fd, &word, sizeof(word)), 1);
    wait = (struct pollfd){.fd = far, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, LIMIT_MS), 1);
    dn_ipnuma_lock(device_of(0));
    dn_ipnuma_socket_disconnect(device_of(0), fd);
    dn_ipnuma_unlock(device_of(0));
    close(far);
    close_all();
    if (!answers) {
        skip();
    }
}

static void icmp_is_no_error(void **state)
{
    (void) state;
    go_on_after_icmp(false);
}

static void icmp_of_a_firewall_is_no_error(void **state)
{
    (void) state;
    go_on_after_icmp(true);
}

static void its_own_path_tells_the_mtu(void **state)
{
    dn_ipnuma_where_t where;

    (void) state;
    open_all();
    const int far = open_socket(&where);
    dn_ipnuma_lock(device_of(0));
    const int fd = dn_ipnuma_socket_connect(device_of(0), &where);
    assert_true(0 <= fd);
    assert_int_equal(dn_ipnuma_socket_mtu(&where, fd), dn_ipnuma_socket_mtu(&where, -1));
    dn_ipnuma_socket_disconnect(device_of(0), fd);
    dn_ipnuma_unlock(device_of(0));
    close(far);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_a_socket_while_it_lasts),
        cmocka_unit_test(their_number_is_bounded),
        cmocka_unit_test(most_files_are_left_to_the_program),
        cmocka_unit_test(a_path_does_without_where_no_file_can_be_opened),
        cmocka_unit_test(icmp_is_no_error),
        cmocka_unit_test(icmp_of_a_firewall_is_no_error),
        cmocka_unit_test(its_own_path_tells_the_mtu),
    };

    return cmocka_run_group_tests(tests, dn_unit_setup, NULL);
}
