/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_process.c
 * Whether a process of this host lives. A process is named by its number and the time when it started: the number alone does
 * not suffice, since the kernel gives it to another process later.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** Bytes of /proc/PID/stat up to the start time: 22 numbers and a name. */
#define DN_SHM_STAT_BYTES 1024

/** The values of /proc/PID/stat that are used. */
typedef struct dn_shm_stat {
    char state;
    int parent;
    long threads;
    unsigned long long start_time;
} dn_shm_stat_t;

/** Read /proc/PID/stat. DN_ERR_UNREACH: there is no such process. DN_ERR_NOMEM: not known now. */
static dn_status_t dn_shm_read_stat(uint32_t os_pid, dn_shm_stat_t *stat)
{
    char path[32];
    char text[DN_SHM_STAT_BYTES];

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", os_pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (0 > fd) {
        /* Out of descriptors or memory says nothing of the process. */
        return ENOENT == errno || ESRCH == errno ? DN_ERR_UNREACH : DN_ERR_NOMEM;
    }
    const ssize_t got = read(fd, text, sizeof(text) - 1);
    const int error = errno;
    close(fd);
    if (0 >= got) {
        /* It ended after it was found; any other error says nothing of it. */
        return 0 == got || ESRCH == error ? DN_ERR_UNREACH : DN_ERR_NOMEM;
    }
    text[got] = '\0';
    /* The name in parentheses may hold anything; fields are counted from the last ')'. */
    const char *after = strrchr(text, ')');
    if (NULL == after
        || 4
               != sscanf(after + 1,
                         " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
                         &stat->state, &stat->parent, &stat->threads, &stat->start_time)) {
        return DN_ERR_UNREACH;
    }
    return DN_OK;
}

dn_status_t dn_shm_process(uint32_t os_pid, uint64_t *start_time_p)
{
    dn_shm_stat_t stat;
    const dn_status_t status = dn_shm_read_stat(os_pid, &stat);

    if (DN_OK != status) {
        return status;
    }
    *start_time_p = stat.start_time;
    /* The first thread of a process may end before the others: it waits as a zombie, and is counted, until they end. */
    return ('Z' == stat.state || 'X' == stat.state) && 1 >= stat.threads ? DN_ERR_UNREACH : DN_OK;
}

pid_t dn_shm_parent(pid_t pid)
{
    dn_shm_stat_t stat;

    return DN_OK == dn_shm_read_stat((uint32_t) pid, &stat) ? stat.parent : 0;
}

int dn_shm_gone(uint32_t os_pid, uint64_t start_time)
{
    uint64_t seen;
    const dn_status_t status = dn_shm_process(os_pid, &seen);
    return DN_ERR_UNREACH == status || (DN_OK == status && seen != start_time);
}
