/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ipnuma_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_log.h"

/** Datagrams taken by one call of the kernel. */
#define DN_IPNUMA_BATCH 16u
/** Bytes that the kernel is asked to keep for us; it gives what its limits allow. */
#define DN_IPNUMA_RECEIVE (4 << 20)
/** UDP and IPv4 headers. */
#define DN_IPNUMA_HEADERS 28u

typedef struct dn_ipnuma_slots {
    struct mmsghdr message[DN_IPNUMA_BATCH];
    struct iovec iov[DN_IPNUMA_BATCH];
    _Alignas(64) uint8_t bytes[DN_IPNUMA_BATCH][DN_IPNUMA_DATAGRAM + 64];
} dn_ipnuma_slots_t;

static struct sockaddr_in dn_ipnuma_name(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

/** The address to bind to. @return 0: there is no such interface or address. */
static int dn_ipnuma_choose(const char *argument, char *name, size_t size, uint32_t *ip_p)
{
    struct ifaddrs *all = NULL;
    int best = 0;

    if (0 != getifaddrs(&all)) {
        return 0;
    }
    for (const struct ifaddrs *one = all; NULL != one; one = one->ifa_next) {
        char text[INET_ADDRSTRLEN] = "";
        if (NULL == one->ifa_addr || AF_INET != one->ifa_addr->sa_family || 0 == (one->ifa_flags & IFF_UP)) {
            continue;
        }
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) one->ifa_addr;
        (void) inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        const int named = NULL != argument && '\0' != argument[0];
        const int rank = named ? 3 * (0 == strcmp(argument, one->ifa_name) || 0 == strcmp(argument, text))
                               : 1 + (0 == (one->ifa_flags & IFF_LOOPBACK));
        if (rank > best) {
            best = rank;
            snprintf(name, size, "%s", one->ifa_name);
            *ip_p = ntohl(in->sin_addr.s_addr);
        }
    }
    freeifaddrs(all);
    return 0 != best;
}

static void dn_ipnuma_slots_open(dn_ipnuma_slots_t *slots)
{
    for (unsigned i = 0; i < DN_IPNUMA_BATCH; i++) {
        slots->iov[i] = (struct iovec){slots->bytes[i], DN_IPNUMA_DATAGRAM};
        slots->message[i].msg_hdr = (struct msghdr){.msg_iov = &slots->iov[i], .msg_iovlen = 1};
    }
}

dn_status_t dn_ipnuma_socket_open(dn_ipnuma_t *ipnuma, const char *argument)
{
    const int wanted = DN_IPNUMA_RECEIVE;
    int got = 0;
    uint32_t ip = 0;
    socklen_t len = sizeof(got);

    if (!dn_ipnuma_choose(argument, ipnuma->domain, sizeof(ipnuma->domain), &ip)) {
        dn_log_error(
            "ipnuma finds no interface or IPv4 address \"%s\" that is up; name one that ip addr shows",
            NULL == argument ? "" : argument);
        return DN_ERR_UNSUPPORTED;
    }
    ipnuma->slots = aligned_alloc(64, (sizeof(dn_ipnuma_slots_t) + 63) / 64 * 64);
    ipnuma->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (NULL == ipnuma->slots || 0 > ipnuma->fd) {
        dn_log_error("ipnuma has no socket (%s); raise limits, as of open files", strerror(errno));
        return DN_ERR_NOMEM;
    }
    dn_ipnuma_slots_open(ipnuma->slots);
    struct sockaddr_in name = dn_ipnuma_name(ip, 0);
    socklen_t name_len = sizeof(name);
    if (0 != bind(ipnuma->fd, (const struct sockaddr *) &name, sizeof(name))
        || 0 != getsockname(ipnuma->fd, (struct sockaddr *) &name, &name_len)) {
        dn_log_error("ipnuma cannot receive on %s: %s; name another interface", ipnuma->domain,
                     strerror(errno));
        return DN_ERR_UNSUPPORTED;
    }
    /* Beyond the limit of the system where this process may. */
    if (0 != setsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted))) {
        (void) setsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
    }
    (void) setsockopt(ipnuma->fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    /* A path that becomes narrower cuts datagrams into fragments. By default it would drop them, and perhaps not say so. */
    const int cuts = IP_PMTUDISC_DONT;
    (void) setsockopt(ipnuma->fd, IPPROTO_IP, IP_MTU_DISCOVER, &cuts, sizeof(cuts));
    if (0 != getsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUF, &got, &len) || 0 >= got) {
        got = 1 << 17;
    }
    ipnuma->where.ip = ip;
    ipnuma->where.port = ntohs(name.sin_port);
    ipnuma->where.datagram = DN_IPNUMA_DATAGRAM;
    /* Several senders share it, and what the kernel keeps beside the bytes counts, too. */
    const uint32_t window = (uint32_t) got / 8;
    ipnuma->where.window = window < (64u << 10) ? 64u << 10 : window > (1u << 20) ? 1u << 20 : window;
    char text[INET_ADDRSTRLEN] = "";
    (void) inet_ntop(AF_INET, &name.sin_addr, text, sizeof(text));
    snprintf(ipnuma->endpoint, sizeof(ipnuma->endpoint), "%s:%u", text, (unsigned) ipnuma->where.port);
    return DN_OK;
}

void dn_ipnuma_socket_close(dn_ipnuma_t *ipnuma)
{
    if (0 <= ipnuma->fd) {
        close(ipnuma->fd);
    }
    free(ipnuma->slots);
}

uint32_t dn_ipnuma_socket_mtu(const dn_ipnuma_where_t *where)
{
    const struct sockaddr_in name = dn_ipnuma_name(where->ip, where->port);
    int mtu = 0;
    socklen_t len = sizeof(mtu);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    /* The kernel knows the path of a socket that is connected; nothing is sent. */
    if (0 > fd || 0 != connect(fd, (const struct sockaddr *) &name, sizeof(name))
        || 0 != getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) || 0 > mtu) {
        mtu = 0;
    }
    if (0 <= fd) {
        close(fd);
    }
    const uint32_t most = where->datagram < DN_IPNUMA_DATAGRAM ? where->datagram : DN_IPNUMA_DATAGRAM;
    const uint32_t whole = (uint32_t) mtu < DN_IPNUMA_HEADERS ? 0 : (uint32_t) mtu - DN_IPNUMA_HEADERS;
    const uint32_t datagram = whole < most ? whole : most;
    /* What is longer than the path takes goes in fragments of IP. */
    return datagram < DN_IPNUMA_DATAGRAM_LEAST ? DN_IPNUMA_DATAGRAM_LEAST : datagram;
}

int dn_ipnuma_socket_send(const dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, const void *bytes,
                          size_t len)
{
    const struct sockaddr_in name = dn_ipnuma_name(where->ip, where->port);

    /* What fails otherwise is lost, and as such sent again. */
    return 0 <= sendto(ipnuma->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &name,
                       sizeof(name))
           || (EAGAIN != errno && EWOULDBLOCK != errno && ENOBUFS != errno);
}

int dn_ipnuma_socket_receive(dn_ipnuma_t *ipnuma)
{
    dn_ipnuma_slots_t *slots = ipnuma->slots;
    const int n = recvmmsg(ipnuma->fd, slots->message, DN_IPNUMA_BATCH, MSG_DONTWAIT, NULL);

    if (0 >= n) {
        return 0;
    }
    const uint64_t now = dn_clock_ns();
    for (int i = 0; i < n; i++) {
        if (0 != (slots->message[i].msg_hdr.msg_flags & MSG_TRUNC)
            || sizeof(dn_ipnuma_head_t) > slots->message[i].msg_len) {
            dn_count(&ipnuma->iface.counters->dropped, 1);
        } else {
            dn_ipnuma_arrived(ipnuma, slots->bytes[i], slots->message[i].msg_len, now);
        }
    }
    return n;
}
