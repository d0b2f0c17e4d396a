/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_host.h
 * Which host this is, and whether a process of it still lives: what each device that leaves the host asks.
 *
 * Threads: any.
 */
#ifndef DN_HOST_H
#define DN_HOST_H

#include <stdint.h>

/** In place of a handle on a process: the process had ended before the question. */
#define DN_PROCESS_ENDED (-2)

/** What tells this host, and this set of process numbers, from others. */
void dn_host(uint8_t host[16]);

/** A handle on a process of this host, which tells when the process has ended; close() closes it.
 * @return DN_PROCESS_ENDED: it has ended, and its parent has waited for it, too. -1: there is no handle. */
int dn_process_open(uint32_t os_pid);

/** Has the process of a handle ended? Without a handle (-1) that is never seen. */
int dn_process_has_ended(int pidfd);

#endif
