/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/** A provider's name of an endpoint, or the address of the other end of a connection. */
typedef union dn_ofi_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} dn_ofi_address_t;

static int dn_ofi_is_at(const dn_ofi_address_t *one, const dn_ofi_address_t *other)
{
    if (one->any.sa_family != other->any.sa_family) {
        return 0;
    }
    switch (one->any.sa_family) {
    case AF_INET:
        return one->in.sin_port == other->in.sin_port && one->in.sin_addr.s_addr == other->in.sin_addr.s_addr;
    case AF_INET6:
        return one->in6.sin6_port == other->in6.sin6_port
               && 0 == memcmp(&one->in6.sin6_addr, &other->in6.sin6_addr, sizeof(one->in6.sin6_addr));
    default:
        return 0;
    }
}

int dn_ofi_cut(const dn_ofi_node_t *node)
{
    dn_ofi_address_t name = {.any = {.sa_family = AF_UNSPEC}};
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *one;
    int cut = 0;

    memcpy(&name, node->name, node->len < sizeof(name) ? node->len : sizeof(name));
    while (NULL != all && NULL != (one = readdir(all))) {
        dn_ofi_address_t other = {.any = {.sa_family = AF_UNSPEC}};
        socklen_t len = sizeof(other);
        char *rest;
        const int fd = (int) strtol(one->d_name, &rest, 10);
        if ('\0' == *rest && 0 == getpeername(fd, &other.any, &len) && dn_ofi_is_at(&name, &other)) {
            cut += 0 == shutdown(fd, SHUT_RDWR);
        }
    }
    if (NULL != all) {
        closedir(all);
    }
    return cut;
}

/** Is a file of this process an epoll file, which does not watch the file @p other? Only an epoll file answers ENOENT to a removal. */
static int dn_ofi_is_epoll(int fd, int other)
{
    struct epoll_event event = {0};

    return 0 != epoll_ctl(fd, EPOLL_CTL_DEL, other, &event) && ENOENT == errno;
}

int dn_ofi_network_file(int cq_fd)
{
    char path[64], line[256];
    int fd, found = -1;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", cq_fd);
    FILE *file = fopen(path, "re");
    while (NULL != file && 0 > found && NULL != fgets(line, sizeof(line), file)) {
        if (1 == sscanf(line, "tfd: %d", &fd) && dn_ofi_is_epoll(fd, cq_fd)) {
            found = fd;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return found;
}
