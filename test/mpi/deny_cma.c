/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file deny_cma.c
 * Runs a program in which process_vm_readv and process_vm_writev fail with EPERM, as under the seccomp
 * profile of a container. Exits with 77 when the kernel has no seccomp filters.
 *
 *   deny_cma PROGRAM [ARGUMENT]...
 */
#include "dn_config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/** False: the kernel refused the filter, errno tells why. */
static bool install_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
           && 0 == prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

int main(int argc, char **argv)
{
    char from = 'a';
    char to = 'b';
    struct iovec local = {&to, 1};
    struct iovec remote = {&from, 1};

    if (argc < 2) {
        fprintf(stderr, "usage: deny_cma PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    if (!install_filter()) {
        fprintf(stderr, "deny_cma: no seccomp filter can be installed: %s\n", strerror(errno));
        return 77;
    }
    if (-1 != process_vm_readv(getpid(), &local, 1, &remote, 1, 0) || EPERM != errno) {
        fprintf(stderr, "deny_cma: the filter does not deny process_vm_readv\n");
        return 1;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "deny_cma: cannot run %s: %s\n", argv[1], strerror(errno));
    return 127;
}
