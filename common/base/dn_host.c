/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Mix bytes into a word (FNV-1a). */
static uint64_t dn_host_fold(uint64_t word, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        word = (word ^ ((const uint8_t *) bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return word;
}

void dn_host(uint8_t host[16])
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
        word[i] =
            dn_host_fold(dn_host_fold(word[i], boot, sizeof(boot)), &space.st_ino, sizeof(space.st_ino));
    }
    memcpy(host, word, sizeof(word));
}

int dn_process_open(uint32_t os_pid)
{
#ifdef SYS_pidfd_open
    const int pidfd = (int) syscall(SYS_pidfd_open, (pid_t) os_pid, 0);
    return 0 > pidfd && ESRCH == errno ? DN_PROCESS_ENDED : pidfd;
#else
    (void) os_pid;
    return -1;
#endif
}

int dn_process_has_ended(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return DN_PROCESS_ENDED == pidfd || (0 <= pidfd && 1 == poll(&end, 1, 0));
}
