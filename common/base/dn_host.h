/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_host.h
 * Which host this is, and whether a process of this host still lives. Each device that reaches other hosts uses this.
 *
 * Threads: any.
 */
#ifndef DN_HOST_H
#define DN_HOST_H

#include <stdint.h>

/** A value in place of a handle on a process: the process had ended before the call. */
#define DN_PROCESS_ENDED (-2)

/** 16 bytes that differ between hosts, and between PID name spaces of a host. */
void dn_host(uint8_t host[16]);

/** A handle on a process of this host, which tells when the process has ended; close() closes it.
 * @return DN_PROCESS_ENDED: it has ended, and its parent has waited for it, too. -1: there is no handle. */
int dn_process_open(uint32_t os_pid);

/** Has the process of a handle ended? For -1, which is no handle, the answer is always 0. */
int dn_process_has_ended(int pidfd);

#endif
