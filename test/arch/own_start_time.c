/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * Loaded before libdimmnet where an emulator runs the tests. A forked process that reads its own /proc/PID/stat is given the
 * start time of its parent there (seen with qemu-user 7.2), while others are given the true one, and so take it for a process
 * that is gone. The file of its first thread has the same start time, and is not touched by the emulator.
 */
#include "dn_config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    char own[32];
    char thread[64];
    va_list args;

    va_start(args, flags);
    const mode_t mode = va_arg(args, mode_t);
    va_end(args);
    snprintf(own, sizeof(own), "/proc/%d/stat", (int) getpid());
    if (0 == strcmp(path, own)) {
        snprintf(thread, sizeof(thread), "/proc/%d/task/%d/stat", (int) getpid(), (int) getpid());
        path = thread;
    }
    return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
