/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct addrinfo *resolve(const char *program, const char *host, int port, int flags)
{
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    snprintf(service, sizeof(service), "%d", port);
    int error = getaddrinfo(host, service, &hints, &list);
    if (0 != error) {
        fprintf(stderr, "%s: \"%s\" is no address of a host: %s\n", program, host, gai_strerror(error));
        return NULL;
    }
    return list;
}

/* Set the options of a connection: small messages leave at once, and a host that is gone is noticed within half a minute. */
static void tune(int socket)
{
    static const struct {
        int level;
        int option;
        int value;
    } row[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        setsockopt(socket, row[i].level, row[i].option, &row[i].value, sizeof(row[i].value));
    }
}

static int bound_port(int socket)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    if (0 != getsockname(socket, (struct sockaddr *) &address, &len)) {
        return 0;
    }
    return ntohs(AF_INET6 == address.ss_family ? ((struct sockaddr_in6 *) &address)->sin6_port
                                               : ((struct sockaddr_in *) &address)->sin_port);
}

int dn_net_listen(const char *program, const char *address, int *port_p)
{
    int on = 1;
    int error = 0;
    struct addrinfo *list = resolve(program, address, *port_p, AI_PASSIVE);
    if (NULL == list) {
        return -1;
    }
    int listener = -1;
    for (struct addrinfo *at = list; NULL != at && 0 > listener; at = at->ai_next) {
        listener = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (0 <= listener) {
            setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        }
        if (0 > listener || 0 != bind(listener, at->ai_addr, at->ai_addrlen) || 0 != listen(listener, 8)) {
            error = errno;
            if (0 <= listener) {
                close(listener);
            }
            listener = -1;
        }
    }
    freeaddrinfo(list);
    if (0 > listener) {
        fprintf(stderr, "%s: cannot wait at %s port %d: %s; choose others by --bind and --port\n", program,
                address, *port_p, strerror(error));
        return -1;
    }
    *port_p = bound_port(listener);
    return listener;
}

bool dn_net_is_loopback(int socket)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    if (0 != getsockname(socket, (struct sockaddr *) &address, &len)) {
        return false;
    }
    if (AF_INET6 == address.ss_family) {
        const struct in6_addr *at = &((struct sockaddr_in6 *) &address)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(at) || (IN6_IS_ADDR_V4MAPPED(at) && IN_LOOPBACKNET == at->s6_addr[12]);
    }
    return AF_INET == address.ss_family
           && IN_LOOPBACKNET == ntohl(((struct sockaddr_in *) &address)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT;
}

int dn_net_accept(int listener)
{
    int client;
    do {
        client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    } while (0 > client && (EINTR == errno || ECONNABORTED == errno));
    if (0 <= client) {
        tune(client);
    }
    return client;
}

bool dn_net_lasts(int error)
{
    return EBADF == error || EINVAL == error || ENOTSOCK == error || EOPNOTSUPP == error || EFAULT == error;
}

int dn_net_connect(const char *program, const char *host, int port)
{
    int error = 0;
    struct addrinfo *list = resolve(program, host, port, 0);
    if (NULL == list) {
        return -1;
    }
    int server = -1;
    for (struct addrinfo *at = list; NULL != at && 0 > server; at = at->ai_next) {
        server = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (0 > server || 0 != connect(server, at->ai_addr, at->ai_addrlen)) {
            error = errno;
            if (0 <= server) {
                close(server);
            }
            server = -1;
        }
    }
    freeaddrinfo(list);
    if (0 > server) {
        fprintf(stderr,
                "%s: there is no server at %s port %d: %s; start %s there (with --bind, if it is "
                "another host)\n",
                program, host, port, strerror(error), program);
        return -1;
    }
    tune(server);
    return server;
}

int dn_net_send(int socket, const void *data, size_t len)
{
    const char *at = data;
    while (0 < len) {
        ssize_t sent = send(socket, at, len, MSG_NOSIGNAL);
        if (0 > sent && EINTR != errno) {
            return -1;
        }
        at += 0 < sent ? sent : 0;
        len -= 0 < sent ? (size_t) sent : 0;
    }
    return 0;
}

int dn_net_receive(int socket, void *data, size_t len)
{
    char *at = data;
    while (0 < len) {
        ssize_t got = recv(socket, at, len, 0);
        if (0 == got || (0 > got && EINTR != errno)) {
            return -1;
        }
        at += 0 < got ? got : 0;
        len -= 0 < got ? (size_t) got : 0;
    }
    return 0;
}
