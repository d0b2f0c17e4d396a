/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_file.h
 * Files of mappings: they are named, created, swept, found again and opened here. The files of peers may be memfds.
 */
#ifndef DN_SHM_FILE_H
#define DN_SHM_FILE_H

#include "dn_shm_int.h"

/** A folder whose files are memory: the job's own folder if its files are, else /dev/shm. */
const char *dn_shm_folder(const dn_job_t *job);
/** Create this process's file in @p dir, and allocate its first @p reserve bytes. Sets shm->path. @return fd, -1: errno. */
int dn_shm_create_file(dn_shm_t *shm, const char *dir, const uint64_t nonce[2], uint64_t reserve);
/** May a peer's file be at this path? The path comes from the peer, so only paths that are named as this device's files are opened. */
int dn_shm_path_valid(const dn_shm_t *shm, const dn_shm_where_t *where);
/** Open a regular file of another process by its descriptor's number there, or by path. @return fd, -1: errno. EPROTO: it is no
 * regular file, and was not opened: to open such a thing could block, or have effects. */
int dn_shm_open_fd(uint32_t os_pid, int32_t fd, const char *path);
/** Is an errno value of such a call a lack of descriptors or memory? It may pass, and says nothing about the file. */
int dn_shm_is_shortage(int error);
/** Does a folder name this open file as the file of the port with @p nonce, or did one before it was unlinked? A memfd is in no folder. */
int dn_shm_is_named(int fd, const uint64_t nonce[2]);

#endif
