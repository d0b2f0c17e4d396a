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
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dn_log.h"

/** Bytes of buffers that the socket asks the kernel for. The kernel gives what its limits allow. */
#define DN_IPNUMA_RECEIVE (4 << 20)
/** Bytes of the buffer for what a path's own socket sends: a few rows of datagrams. There may be many such sockets. While a buffer is full,
 * this process waits, and takes nothing for lost; what overflows behind all of them is lost. */
#define DN_IPNUMA_SEND (256 << 10)
/** Bytes of the UDP and IPv4 headers. */
#define DN_IPNUMA_HEADERS 28u

/** Bytes of a slot: a row of datagrams fits, which the kernel has not cut, or has put together again. */
#define DN_IPNUMA_SLOT 65536u

/** Room for one control message with a number. */
typedef union dn_ipnuma_control {
    struct cmsghdr head;
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
} dn_ipnuma_control_t;

typedef struct dn_ipnuma_slots {
    struct mmsghdr message[DN_IPNUMA_BATCH];
    struct iovec iov[DN_IPNUMA_BATCH];
    dn_ipnuma_control_t control[DN_IPNUMA_BATCH];
    _Alignas(64) uint8_t bytes[DN_IPNUMA_BATCH][DN_IPNUMA_SLOT];
    _Alignas(64) uint8_t moved[DN_IPNUMA_DATAGRAM]; /**< copy of a datagram that was not aligned to 8 */
} dn_ipnuma_slots_t;

static struct sockaddr_in dn_ipnuma_name(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

/** The address to bind to. @param[in] argument  An interface or an address; "": any. @return 0; ENODEV: there is no such interface or
 * address; another errno value: the kernel does not tell. */
static int dn_ipnuma_choose(const char *argument, char *name, size_t size, uint32_t *ip_p)
{
    struct ifaddrs *all = NULL;
    int best = 0;

    if (0 != getifaddrs(&all)) {
        return errno;
    }
    for (const struct ifaddrs *one = all; NULL != one; one = one->ifa_next) {
        char text[INET_ADDRSTRLEN] = "";
        if (NULL == one->ifa_addr || AF_INET != one->ifa_addr->sa_family || 0 == (one->ifa_flags & IFF_UP)) {
            continue;
        }
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) one->ifa_addr;
        (void) inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        const int named = '\0' != argument[0];
        const int rank = named ? 3 * (0 == strcmp(argument, one->ifa_name) || 0 == strcmp(argument, text))
                               : 1 + (0 == (one->ifa_flags & IFF_LOOPBACK));
        if (rank > best) {
            best = rank;
            snprintf(name, size, "%s", one->ifa_name);
            *ip_p = ntohl(in->sin_addr.s_addr);
        }
    }
    freeifaddrs(all);
    return 0 != best ? 0 : ENODEV;
}

static void dn_ipnuma_slots_open(dn_ipnuma_slots_t *slots)
{
    for (unsigned i = 0; i < DN_IPNUMA_BATCH; i++) {
        slots->iov[i] = (struct iovec){slots->bytes[i], DN_IPNUMA_SLOT};
        slots->message[i].msg_hdr = (struct msghdr){.msg_iov = &slots->iov[i],
                                                    .msg_iovlen = 1,
                                                    .msg_control = &slots->control[i],
                                                    .msg_controllen = sizeof(slots->control[i])};
    }
}

/** Set a socket up to send. @param[in] wanted  Bytes of its buffer. */
static void dn_ipnuma_socket_dress(int fd, int wanted)
{
    const int cuts = IP_PMTUDISC_DONT;

    (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    /* Routers of a path that becomes narrower are to cut datagrams into fragments. By default they drop them, and may not report it. */
    (void) setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &cuts, sizeof(cuts));
}

dn_status_t dn_ipnuma_socket_open(dn_ipnuma_t *ipnuma, const char *argument)
{
    const int wanted = DN_IPNUMA_RECEIVE;
    int got = 0;
    uint32_t ip = 0;
    socklen_t len = sizeof(got);

    const int error = dn_ipnuma_choose(argument, ipnuma->domain, sizeof(ipnuma->domain), &ip);
    if (EMFILE == error || ENFILE == error || ENOMEM == error || ENOBUFS == error) {
        dn_log_error("ipnuma cannot list interfaces (%s); raise limits, as of open files", strerror(error));
        return DN_ERR_NOMEM;
    }
    if (0 != error && ENODEV != error) {
        dn_log_error("ipnuma cannot list interfaces (%s); allow netlink sockets, or leave ipnuma out",
                     strerror(error));
        return DN_ERR_UNSUPPORTED;
    }
    if (0 != error) {
        dn_log_error(
            "ipnuma finds no interface or IPv4 address \"%s\" that is up; name one that ip addr shows",
            argument);
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
    /* The buffer goes beyond the limit of the system if this process has the right to that. */
    if (0 != setsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted))) {
        (void) setsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
    }
    dn_ipnuma_socket_dress(ipnuma->fd, wanted);
    /* Have the kernel hand over datagrams together that come together. A kernel that cannot do so hands over each alone. */
    const int together = 1;
    (void) setsockopt(ipnuma->fd, IPPROTO_UDP, UDP_GRO, &together, sizeof(together));
    /* A kernel before 4.18 does not know UDP_SEGMENT: it ignores the control message, and sends a row as one datagram. */
    int cut = 0;
    socklen_t cut_len = sizeof(cut);
    ipnuma->cuts_rows = 0 == getsockopt(ipnuma->fd, IPPROTO_UDP, UDP_SEGMENT, &cut, &cut_len);
    if (0 != getsockopt(ipnuma->fd, SOL_SOCKET, SO_RCVBUF, &got, &len) || 0 >= got) {
        got = 1 << 17;
    }
    ipnuma->where.ip = ip;
    ipnuma->where.port = ntohs(name.sin_port);
    ipnuma->where.datagram = DN_IPNUMA_DATAGRAM;
    /* Several senders share the receive buffer, and the kernel counts its own data of each datagram, too. */
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

/** Bind a socket to the address and the UDP port by which the port's other sockets of this kind send, and connect it. @return 0: the kernel
 * refuses. */
static int dn_ipnuma_socket_attach(dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, int fd)
{
    const struct sockaddr_in to = dn_ipnuma_name(where->ip, where->port);
    struct sockaddr_in from = dn_ipnuma_name(ipnuma->where.ip, ipnuma->sends_by);
    socklen_t len = sizeof(from);
    const int shares = 1, least = 1;
    const int first = 0 == ipnuma->sends_by;

    dn_ipnuma_socket_dress(fd, DN_IPNUMA_SEND);
    (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
    /* The first is bound before it shares: else the kernel may choose the UDP port of another program's socket that shares. */
    if ((!first && 0 != setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof(shares)))
        || 0 != bind(fd, (const struct sockaddr *) &from, sizeof(from))
        || (first && 0 != setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof(shares)))
        || 0 != getsockname(fd, (struct sockaddr *) &from, &len)
        || 0 != connect(fd, (const struct sockaddr *) &to, sizeof(to))) {
        return 0;
    }
    ipnuma->sends_by = ntohs(from.sin_port);
    return 1;
}

/** May one more path have a socket of its own? */
static int dn_ipnuma_socket_may_connect(const dn_ipnuma_t *ipnuma)
{
    struct rlimit limit;

    return DN_IPNUMA_CONNECTED > ipnuma->connected && 0 == getrlimit(RLIMIT_NOFILE, &limit)
           && limit.rlim_cur / DN_IPNUMA_SHARE > ipnuma->connected;
}

int dn_ipnuma_socket_connect(dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where)
{
    const int fd = dn_ipnuma_socket_may_connect(ipnuma)
                       ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                       : -1;

    if (0 > fd) {
        return -1;
    }
    if (!dn_ipnuma_socket_attach(ipnuma, where, fd)) {
        close(fd);
        return -1;
    }
    ipnuma->connected++;
    return fd;
}

void dn_ipnuma_socket_disconnect(dn_ipnuma_t *ipnuma, int fd)
{
    if (0 <= fd) {
        close(fd);
        ipnuma->connected--;
        /* Where none is left, the UDP port is anybody's. */
        ipnuma->sends_by = 0 == ipnuma->connected ? 0 : ipnuma->sends_by;
    }
}

/** The MTU of the path of a connected socket, as far as the kernel knows; 0: it does not tell. */
static uint32_t dn_ipnuma_socket_path_mtu(int fd)
{
    int mtu = 0;
    socklen_t len = sizeof(mtu);

    return 0 != getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) || 0 > mtu ? 0 : (uint32_t) mtu;
}

/** The MTU of the path to a process, by a socket that is connected for the question. Nothing is sent. */
static uint32_t dn_ipnuma_socket_ask_mtu(const dn_ipnuma_where_t *where)
{
    const struct sockaddr_in name = dn_ipnuma_name(where->ip, where->port);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (0 > fd) {
        return 0;
    }
    const int connected = 0 == connect(fd, (const struct sockaddr *) &name, sizeof(name));
    const uint32_t mtu = connected ? dn_ipnuma_socket_path_mtu(fd) : 0;
    close(fd);
    return mtu;
}

uint32_t dn_ipnuma_socket_mtu(const dn_ipnuma_where_t *where, int fd)
{
    const uint32_t mtu = 0 <= fd ? dn_ipnuma_socket_path_mtu(fd) : dn_ipnuma_socket_ask_mtu(where);
    const uint32_t most = where->datagram < DN_IPNUMA_DATAGRAM ? where->datagram : DN_IPNUMA_DATAGRAM;
    if (0 == mtu) {
        return 0;
    }
    const uint32_t whole = mtu < DN_IPNUMA_HEADERS ? 0 : mtu - DN_IPNUMA_HEADERS;
    const uint32_t datagram = whole < most ? whole : most;
    /* A datagram that is longer than the path takes goes in fragments of IP. */
    return datagram < DN_IPNUMA_DATAGRAM_LEAST ? DN_IPNUMA_DATAGRAM_LEAST : datagram;
}

/** Does this error of a send say that this process has no room now? */
static int dn_ipnuma_socket_is_full(int error)
{
    return EAGAIN == error || EWOULDBLOCK == error || ENOBUFS == error;
}

/** Did a connected socket perhaps report that an earlier datagram was answered by ICMP, in place of sending this one? It reports an answer
 * once. The error tells the kind of the answer, and that of this datagram may be the same. */
static int dn_ipnuma_socket_was_refused(int fd, ssize_t got)
{
    return 0 <= fd && 0 > got && !dn_ipnuma_socket_is_full(errno);
}

int dn_ipnuma_socket_send(const dn_ipnuma_t *ipnuma, const dn_ipnuma_where_t *where, int fd,
                          const void *bytes, size_t len)
{
    const struct sockaddr_in name = dn_ipnuma_name(where->ip, where->port);
    const struct sockaddr *to = 0 <= fd ? NULL : (const struct sockaddr *) &name;
    const socklen_t to_len = NULL == to ? 0 : sizeof(name);
    const int by = 0 <= fd ? fd : ipnuma->fd, flags = MSG_DONTWAIT | MSG_NOSIGNAL;

    ssize_t got = sendto(by, bytes, len, flags, to, to_len);
    if (dn_ipnuma_socket_was_refused(fd, got)) {
        got = sendto(by, bytes, len, flags, to, to_len);
    }
    /* A datagram that fails for another reason is lost, and is sent again as such. */
    return 0 <= got || !dn_ipnuma_socket_is_full(errno);
}

/** Join datagrams that lie side by side into pieces of memory. @return how many pieces. */
static uint32_t dn_ipnuma_socket_join(const struct iovec *datagram, uint32_t n, struct iovec *piece)
{
    uint32_t pieces = 1;

    piece[0] = datagram[0];
    for (uint32_t i = 1; i < n; i++) {
        struct iovec *last = &piece[pieces - 1];
        if ((uint8_t *) last->iov_base + last->iov_len == datagram[i].iov_base) {
            last->iov_len += datagram[i].iov_len;
        } else {
            piece[pieces++] = datagram[i];
        }
    }
    return pieces;
}

/** Have the kernel send a row of datagrams by one call. @param[out] sent_p  How many were sent, or lost. @return 0: the kernel does not
 * send rows on this path. */
static int dn_ipnuma_socket_send_whole(const dn_ipnuma_pc_t *pc, const struct iovec *datagram, uint32_t n,
                                       uint32_t *sent_p)
{
    struct sockaddr_in name = dn_ipnuma_name(pc->where.ip, pc->where.port);
    const int connected = 0 <= pc->fd;
    const int by = connected ? pc->fd : pc->ipnuma->fd, flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const uint16_t each = (uint16_t) datagram[0].iov_len;
    struct iovec piece[DN_IPNUMA_ROW];
    dn_ipnuma_control_t control = {
        .head = {.cmsg_len = CMSG_LEN(sizeof(each)), .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT}};
    const struct msghdr message = {.msg_name = connected ? NULL : &name,
                                   .msg_namelen = connected ? 0 : sizeof(name),
                                   .msg_iov = piece,
                                   .msg_iovlen = dn_ipnuma_socket_join(datagram, n, piece),
                                   .msg_control = &control,
                                   .msg_controllen = CMSG_SPACE(sizeof(each))};

    memcpy(CMSG_DATA(&control.head), &each, sizeof(each));
    ssize_t got = sendmsg(by, &message, flags);
    if (dn_ipnuma_socket_was_refused(pc->fd, got)) {
        got = sendmsg(by, &message, flags);
    }
    *sent_p = 0 <= got || !dn_ipnuma_socket_is_full(errno) ? n : 0;
    /* These errors say that the path is too narrow, or that its interface cannot cut a row. */
    return 0 <= got || (EINVAL != errno && EMSGSIZE != errno && EIO != errno && EOPNOTSUPP != errno);
}

uint32_t dn_ipnuma_socket_send_row(dn_ipnuma_pc_t *pc, const struct iovec *datagram, uint32_t n)
{
    uint32_t sent = 0;

    if (1 < n && pc->ipnuma->cuts_rows && !pc->one_by_one) {
        if (dn_ipnuma_socket_send_whole(pc, datagram, n, &sent)) {
            return sent;
        }
        pc->one_by_one = 1;
        sent = 0;
        dn_ipnuma_pc_fit(pc);
    }
    while (sent < n
           && dn_ipnuma_socket_send(pc->ipnuma, &pc->where, pc->fd, datagram[sent].iov_base,
                                    datagram[sent].iov_len)) {
        sent++;
    }
    return sent;
}

/** Bytes of each datagram of a slot, except the last. */
static size_t dn_ipnuma_socket_each(struct msghdr *message, size_t len)
{
    int each = 0;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); NULL != head; head = CMSG_NXTHDR(message, head)) {
        if (IPPROTO_UDP == head->cmsg_level && UDP_GRO == head->cmsg_type) {
            memcpy(&each, CMSG_DATA(head), sizeof(each));
        }
    }
    return 0 < each && (size_t) each < len ? (size_t) each : len;
}

/** Handle the datagrams of a slot. */
static void dn_ipnuma_socket_split(dn_ipnuma_t *ipnuma, uint32_t slot, uint64_t now)
{
    dn_ipnuma_slots_t *slots = ipnuma->slots;
    struct msghdr *message = &slots->message[slot].msg_hdr;
    const size_t len = slots->message[slot].msg_len;
    const size_t each = dn_ipnuma_socket_each(message, len);
    const int sound = 0 == (message->msg_flags & MSG_TRUNC) && DN_IPNUMA_DATAGRAM >= each;

    for (size_t at = 0; at < len; at += each) {
        const size_t n = each < len - at ? each : len - at;
        uint8_t *bytes = slots->bytes[slot] + at;
        if (!sound || sizeof(dn_ipnuma_head_t) > n) {
            dn_count(&ipnuma->iface.counters->dropped, 1);
            continue;
        }
        if (0 != at % sizeof(uint64_t)) {
            memcpy(slots->moved, bytes, n);
            bytes = slots->moved;
        }
        dn_ipnuma_arrived(ipnuma, bytes, n, now);
    }
    message->msg_controllen = sizeof(slots->control[slot]);
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
        dn_ipnuma_socket_split(ipnuma, (uint32_t) i, now);
    }
    return n;
}
