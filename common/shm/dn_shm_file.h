/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_file.h
 * Files of mappings: how they are named, created, swept, found again and opened. Those of peers may be memfds.
 */
#ifndef DN_SHM_FILE_H
#define DN_SHM_FILE_H

#include "dn_shm_int.h"

/** A folder whose files are memory, the job's own when it is, else /dev/shm. */
const char *dn_shm_folder(const dn_job_t *job);
/** Create a file of our own in @p dir and give @p reserve bytes their space. Sets path. @return fd, -1: errno. */
int dn_shm_create_file(dn_shm_t *shm, const char *dir, const uint64_t nonce[2], uint64_t reserve);
/** May a peer's file be at this path? A path comes from the peer: nothing is opened that is not named as our files are. */
int dn_shm_path_valid(const dn_shm_t *shm, const dn_shm_where_t *where);
/** Open a regular file of another process by its number there, or by path. -1: errno; EPROTO: it is something else, which
 * has not been opened: that alone could block, or have effects. */
int dn_shm_open_fd(uint32_t os_pid, int32_t fd, const char *path);
/** Is this open file one that a folder names, or once named, as the port's file is? A memfd is in no folder. */
int dn_shm_is_named(int fd, const uint64_t nonce[2]);

#endif
