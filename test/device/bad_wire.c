/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "bad_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../dn_test.h"

enum { LONGEST = 65536, AHEAD_MOST = 8 };

typedef enum fault { LOST, DOUBLED, HELD, CHANGED, FAULTS } fault_t;

/** A datagram. */
typedef struct sent {
    int fd;
    int flags;
    socklen_t to_len; /**< 0: the socket is connected */
    struct sockaddr_in to;
    size_t len;
    uint8_t bytes[LONGEST];
} sent_t;

/** Of the wire; threads of a process may send at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_bad;
static unsigned of_100[FAULTS];
static uint64_t random_;
static uint64_t faults;
static sent_t held;       /**< goes behind others. len 0: there is none */
static uint64_t held_for; /**< so many */

static bool happens(fault_t fault)
{
    const bool yes = dn_test_below(&random_, 100) < of_100[fault];

    faults += yes;
    return yes;
}

static ssize_t send_now(const sent_t *one)
{
    return syscall(SYS_sendto, one->fd, one->bytes, one->len, one->flags, 0 == one->to_len ? NULL : &one->to,
                   one->to_len);
}

/** Is a datagram on its way by IPv4? @param[in] to  NULL: where its socket is connected to. */
static bool goes_by_ipv4(int fd, const struct sockaddr_in *to, socklen_t to_len)
{
    struct sockaddr_in peer = {.sin_family = AF_UNSPEC};
    socklen_t len = sizeof(peer), type_len = sizeof(int);
    int type = 0;

    if (NULL != to) {
        return sizeof(*to) == to_len && AF_INET == to->sin_family;
    }
    return 0 == syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &type_len) && SOCK_DGRAM == type
           && 0 == getpeername(fd, (struct sockaddr *) &peer, &len) && AF_INET == peer.sin_family;
}

/** @return as sendto(2): what is lost or held was sent. */
static ssize_t send_badly(sent_t *one)
{
    ssize_t result = (ssize_t) one->len;

    if (happens(LOST)) {
        return result;
    }
    if (0 == held.len && happens(HELD)) {
        held = *one;
        held_for = 1 + dn_test_below(&random_, AHEAD_MOST);
        return result;
    }
    if (happens(CHANGED)) {
        one->bytes[dn_test_below(&random_, one->len)] ^= (uint8_t) (1 + dn_test_below(&random_, 255));
    }
    for (int copies = 1 + happens(DOUBLED); 0 != copies; copies--) {
        result = send_now(one);
    }
    if (0 != held.len && 0 == --held_for) {
        /* Its socket may be closed by now, and its number another file's. */
        if (goes_by_ipv4(held.fd, 0 == held.to_len ? NULL : &held.to, held.to_len)) {
            (void) send_now(&held);
        }
        held.len = 0;
    }
    return result;
}

/** In place of the system's. */
DN_API ssize_t sendto(int fd, const void *bytes, size_t len, int flags, __CONST_SOCKADDR_ARG to,
                      socklen_t to_len)
{
    static sent_t one;
    const struct sockaddr_in *in = to.__sockaddr_in__;
    ssize_t result;

    pthread_mutex_lock(&lock);
    if (is_bad && 0 < len && sizeof(one.bytes) >= len && goes_by_ipv4(fd, in, to_len)) {
        one.fd = fd;
        one.flags = flags;
        one.to_len = NULL == in ? 0 : to_len;
        one.to = NULL == in ? (struct sockaddr_in){.sin_family = AF_UNSPEC} : *in;
        one.len = len;
        memcpy(one.bytes, bytes, len);
        result = send_badly(&one);
    } else {
        result = syscall(SYS_sendto, fd, bytes, len, flags, to.__sockaddr__, to_len);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/** The same: rows are not cut. */
DN_API int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    pthread_mutex_lock(&lock);
    const bool refuses = is_bad && IPPROTO_UDP == level && UDP_SEGMENT == name;
    pthread_mutex_unlock(&lock);
    if (refuses) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int) syscall(SYS_getsockopt, fd, level, name, value, len);
}

void bad_wire_hold(void)
{
    pthread_mutex_lock(&lock);
}

void bad_wire_go_on(void)
{
    pthread_mutex_unlock(&lock);
}

int bad_wire_begin(const char *rates, uint64_t seed)
{
    pthread_mutex_lock(&lock);
    is_bad =
        4
        == sscanf(rates, "%3u,%3u,%3u,%3u", &of_100[LOST], &of_100[DOUBLED], &of_100[HELD], &of_100[CHANGED]);
    random_ = seed;
    faults = 0;
    held.len = 0;
    const int begun = is_bad;
    pthread_mutex_unlock(&lock);
    return begun;
}

uint64_t bad_wire_end(void)
{
    pthread_mutex_lock(&lock);
    is_bad = false;
    const uint64_t were = faults;
    pthread_mutex_unlock(&lock);
    return were;
}
