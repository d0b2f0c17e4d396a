/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Mix bytes into a word (FNV-1a). */
static uint64_t dn_ofi_fold(uint64_t word, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        word = (word ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return word;
}

void dn_ofi_host(uint8_t host[16])
{
    char boot[64] = "";
    struct stat space = {0};
    uint64_t word[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9ae16a3b2f90404f)};

    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (0 <= fd) {
        if (0 > read(fd, boot, sizeof(boot) - 1)) {
            boot[0] = '\0';
        }
        close(fd);
    }
    if (0 != stat("/proc/self/ns/pid", &space)) {
        space.st_ino = 0;
    }
    for (int i = 0; i < 2; i++) {
        word[i] = dn_ofi_fold(dn_ofi_fold(word[i], boot, sizeof(boot)), &space.st_ino, sizeof(space.st_ino));
    }
    memcpy(host, word, sizeof(word));
}

int dn_ofi_open_process(uint32_t os_pid)
{
#ifdef SYS_pidfd_open
    const int pidfd = (int) syscall(SYS_pidfd_open, (pid_t) os_pid, 0);
    return 0 > pidfd && ESRCH == errno ? DN_OFI_ENDED : pidfd;
#else
    (void) os_pid;
    return -1;
#endif
}

int dn_ofi_has_ended(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return DN_OFI_ENDED == pidfd || (0 <= pidfd && 1 == poll(&end, 1, 0));
}

/** A provider's name of an endpoint, and the other end of a connection. */
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
