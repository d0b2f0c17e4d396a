/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_yama.c
 * The kernel's Yama module may restrict access to memory (/proc/sys/kernel/yama/ptrace_scope is 1). Then a process may read
 * and write the memory of its descendants, and of processes that have named it or an ancestor of it to Yama. Peers are
 * siblings. So each process names the launcher from which all of them descend, while it has a port open. No other process
 * gets access.
 *
 * The launcher is the first ancestor outside of the process's own process group: mpirun and its daemons, as shells do, give
 * each program a group, and scripts between them share this group. Where there is no ancestor outside of the group, the eldest
 * ancestor is named. Process 1 is named only in a PID namespace that is not the initial one, where process 1 belongs to the
 * container. On a host, all processes descend from process 1. There, a process with no other parent names no process.
 *
 * Peers that have no launcher in common, as the processes of two jobs, do not reach each other's memory. The probe when they
 * connect finds this out, and the core processors of both ends move the bytes.
 *
 * The kernel keeps one name for each process, and does not show it. So a name that another library gave before is replaced, and
 * does not come back after the last port has closed.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_log.h"

/** The initial PID namespace has this inode number in every Linux kernel. */
#define DN_SHM_INIT_PID_NS 0xeffffffcu

/** The data that all ports of a process share. A child of fork() has no port yet, and names its launcher anew. */
static struct {
    dn_lock_t lock;
    pid_t process;
    uint32_t ports; /**< that count on the name; 0: nobody is named by us */
} dn_shm_yama;

/** Do all processes of the host descend from this process? */
static int dn_shm_is_everybodys(pid_t pid)
{
    struct stat info;

    return 1 == pid && (0 != stat("/proc/self/ns/pid", &info) || DN_SHM_INIT_PID_NS == info.st_ino);
}

/** The launcher; 0: there is none that may be named. */
static pid_t dn_shm_launcher(void)
{
    const pid_t group = getpgrp();
    pid_t launcher = getppid();

    if (0 >= launcher || dn_shm_is_everybodys(launcher)) {
        return 0;
    }
    while (getpgid(launcher) == group) {
        const pid_t parent = dn_shm_parent(launcher);
        if (0 >= parent || dn_shm_is_everybodys(parent)) {
            break;
        }
        launcher = parent;
    }
    return launcher;
}

int dn_shm_yama_allow(void)
{
    int counts = 1;

    dn_lock(&dn_shm_yama.lock);
    if (getpid() != dn_shm_yama.process) {
        dn_shm_yama.process = getpid();
        dn_shm_yama.ports = 0;
    }
    if (0 == dn_shm_yama.ports) {
        const pid_t launcher = dn_shm_launcher();
        if (0 == launcher) {
            dn_log_answer(
                "this process has no launcher that it could name to its peers: where Yama restricts ptrace, "
                "they do not reach its memory by CMA");
        }
        /* An error: there is no Yama. */
        counts = 0 != launcher && 0 == prctl(PR_SET_PTRACER, (unsigned long) launcher, 0, 0, 0);
    }
    dn_shm_yama.ports += (uint32_t) counts;
    dn_unlock(&dn_shm_yama.lock);
    return counts;
}

void dn_shm_yama_end(void)
{
    dn_lock(&dn_shm_yama.lock);
    if (getpid() == dn_shm_yama.process && 0 != dn_shm_yama.ports && 0 == --dn_shm_yama.ports) {
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    }
    dn_unlock(&dn_shm_yama.lock);
}
