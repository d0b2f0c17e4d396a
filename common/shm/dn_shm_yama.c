/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_yama.c
 * Where the kernel's Yama module restricts it (/proc/sys/kernel/yama/ptrace_scope is 1), a process reads and writes the
 * memory of its descendants only, and of processes that have named it, or an ancestor of it. Peers are siblings: so each
 * names the launcher from which all of them descend, from its first port to its last. Nobody else is let in.
 *
 * The launcher is the first ancestor outside of the own process group: mpirun and its daemons, as shells do, give each
 * program a group, and scripts that stand between share it. Where the group's ancestors end before, the eldest that it has is
 * named. Process 1 is named in a PID namespace of its own only, where it is the container's: on a host all processes
 * descend from it. A process that has no other parent there names nobody.
 *
 * Peers that have no launcher in common, as those of two jobs, do not reach each other's memory: the probe when they connect
 * says so, and the core processors of both ends move the bytes.
 *
 * The kernel keeps one name a process and does not tell it. So a name that another library gave before is replaced, and is not
 * there any more after the last port has closed.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dn_log.h"

/** The initial PID namespace has this inode number in every Linux kernel. */
#define DN_SHM_INIT_PID_NS 0xeffffffcu

/** Ports share what a process has of this; one forked from a process with ports has nothing yet. */
static struct {
    dn_lock_t lock;
    pid_t process;
    uint32_t ports; /**< that count on the name; 0: nobody is named by us */
} dn_shm_yama;

/** All processes of the host descend from this one. */
static int dn_shm_is_everybodys(pid_t pid)
{
    struct stat info;

    return 1 == pid && (0 != stat("/proc/self/ns/pid", &info) || DN_SHM_INIT_PID_NS == info.st_ino);
}

/** 0: there is none that may be named. */
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
