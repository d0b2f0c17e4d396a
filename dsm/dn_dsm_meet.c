/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_meet.c
 * How the processes find each other. Each process writes files into a folder, and reads the files of the others. A file that has its final
 * name is whole. Rank 0 makes the key of the process group, unless the folder has one. Without a folder the launcher passes bytes on:
 * dn_dsm_pmix.c. */
#include "dn_config.h"

#include "dn_dsm_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** Time between two looks, for example for a file: no bell rings for it. */
#define DN_DSM_MEET_NS 500000

/** @name Used by both ways */
/** @{ */
const dn_dsm_meet_t *dn_dsm_meet_find(const char *folder)
{
#if DN_DSM_PMIX
    if (NULL == folder && NULL != getenv("PMIX_RANK")) {
        return &dn_dsm_meet_pmix;
    }
#endif
    (void) folder;
    return &dn_dsm_meet_folder;
}

dn_status_t dn_dsm_meet_key(dn_group_key_t *key)
{
    if (sizeof(*key) != getrandom(key, sizeof(*key), 0)) {
        dn_log_error("shared memory: the system has no random bytes for a key (%s)", strerror(errno));
        return DN_ERR_ACCESS;
    }
    return DN_OK;
}

dn_status_t dn_dsm_meet_all(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len)
{
    const dn_status_t told = NULL == bytes ? DN_OK : dsm->meet->tell(dsm, what, bytes, len);
    const dn_status_t met = dsm->meet->together(dsm);

    return DN_OK != told ? told : met;
}

uint64_t dn_dsm_meet_until(const dn_dsm_t *dsm)
{
    return dn_dsm_clock() + dsm->timeout_s * UINT64_C(1000000000);
}

dn_status_t dn_dsm_meet_pause(dn_dsm_t *dsm, uint64_t until, const char *whom, const char *where)
{
    const struct timespec pause = {.tv_nsec = DN_DSM_MEET_NS};

    if (0 != dn_dsm_gone(dsm)) {
        return DN_ERR_UNREACH;
    }
    if (dn_dsm_clock() > until) {
        if (dn_dsm_is_closing(dsm)) {
            dn_log_error("shared memory: %s has come to dn_dsm_close(), but has not left it within %u s",
                         whom, (unsigned) dsm->timeout_s);
        } else {
            dn_log_error(
                "shared memory: %s has not come within %u s to %s: start %u processes that meet there, or "
                "wait longer (timeout_s)",
                whom, (unsigned) dsm->timeout_s, where, (unsigned) dsm->ranks);
        }
        return DN_ERR_UNREACH;
    }
    if (NULL != dsm->port) {
        dn_progress(dsm->port);
    }
    nanosleep(&pause, NULL);
    return DN_OK;
}
/** @} */

/** @name By a folder */
/** @{ */
/** Does a file or folder belong to this user? Another user may have made up what is in it. */
static dn_status_t dn_dsm_meet_is_ours(const dn_dsm_t *dsm, const struct stat *about, const char *name)
{
    if (geteuid() != about->st_uid) {
        dn_log_error("shared memory: %s/%s belongs to another user: make a folder for each job, by mktemp -d",
                     dsm->path, name);
        return DN_ERR_ACCESS;
    }
    return DN_OK;
}

static dn_status_t dn_dsm_meet_write(dn_dsm_t *dsm, const char *name, const void *bytes, size_t len)
{
    char part[64];

    snprintf(part, sizeof(part), "part.%u", (unsigned) dsm->rank);
    const int fd = openat(dsm->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (0 > fd || (ssize_t) len != write(fd, bytes, len)
        || 0 != renameat(dsm->folder, part, dsm->folder, name)) {
        dn_log_error("shared memory: the folder %s cannot be written to (%s)", dsm->path, strerror(errno));
        if (0 <= fd) {
            close(fd);
        }
        return DN_ERR_ACCESS;
    }
    close(fd);
    return DN_OK;
}

/** Wait for a file, and read it. @param[in] whom  The rank that writes it. @param[in,out] len  In: room. Out: bytes. */
static dn_status_t dn_dsm_meet_read(dn_dsm_t *dsm, uint32_t whom, const char *name, void *bytes, size_t *len)
{
    const uint64_t until = dn_dsm_meet_until(dsm);
    struct stat about;
    char who[40], where[sizeof(dsm->path) + 40];
    int fd;

    snprintf(who, sizeof(who), "rank %u", (unsigned) whom);
    snprintf(where, sizeof(where), "the folder %s", dsm->path);
    while (0 > (fd = openat(dsm->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW))) {
        if (ENOENT != errno) {
            dn_log_error("shared memory: %s/%s cannot be read (%s)", dsm->path, name, strerror(errno));
            return DN_ERR_ACCESS;
        }
        const dn_status_t status = dn_dsm_meet_pause(dsm, until, who, where);
        if (DN_OK != status) {
            return status;
        }
    }
    const ssize_t got = 0 == fstat(fd, &about) ? read(fd, bytes, *len) : -1;
    close(fd);
    if (0 > got) {
        dn_log_error("shared memory: %s/%s cannot be read (%s)", dsm->path, name, strerror(errno));
        return DN_ERR_ACCESS;
    }
    *len = (size_t) got;
    return dn_dsm_meet_is_ours(dsm, &about, name);
}

static dn_status_t dn_dsm_meet_open(dn_dsm_t *dsm, const char *folder, dn_group_key_t *key)
{
    struct stat about;
    size_t len = sizeof(*key);

    if (NULL == folder) {
        dn_log_error(
            "shared memory: no folder is named where the processes meet, and no launcher with PMIx has "
            "started them: set dn_dsm_config_t::folder, or DN_DSM_FOLDER");
        return DN_ERR_PARAM;
    }
    snprintf(dsm->path, sizeof(dsm->path), "%s", folder);
    dsm->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (0 > dsm->folder || 0 != fstat(dsm->folder, &about)) {
        dn_log_error("shared memory: the folder %s cannot be opened (%s)", folder, strerror(errno));
        return DN_ERR_ACCESS;
    }
    if (DN_OK != dn_dsm_meet_is_ours(dsm, &about, "")) {
        return DN_ERR_ACCESS;
    }
    if (0 != (about.st_mode & (S_IWGRP | S_IWOTH))) {
        dn_log_error("shared memory: others may write to the folder %s: make one for each job, by mktemp -d",
                     folder);
        return DN_ERR_ACCESS;
    }
    char name[64];
    snprintf(name, sizeof(name), "address.%u", (unsigned) dsm->rank);
    if (0 == faccessat(dsm->folder, name, F_OK, 0)) {
        dn_log_error("shared memory: a job has used the folder %s before: make one for each job", folder);
        return DN_ERR_ACCESS;
    }
    if (0 == dsm->rank && 0 != faccessat(dsm->folder, "key", F_OK, 0)) {
        dn_status_t status = dn_dsm_meet_key(key);
        status = DN_OK != status ? status : dn_dsm_meet_write(dsm, "key", key, sizeof(*key));
        if (DN_OK != status) {
            return status;
        }
    }
    const dn_status_t status = dn_dsm_meet_read(dsm, 0, "key", key, &len);
    if (DN_OK == status && sizeof(*key) != len) {
        dn_log_error("shared memory: %s/key has not the 16 bytes of a key", folder);
        return DN_ERR_ACCESS;
    }
    return status;
}

static dn_status_t dn_dsm_meet_tell(dn_dsm_t *dsm, const char *what, const void *bytes, size_t len)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.%u", what, (unsigned) dsm->rank);
    return dn_dsm_meet_write(dsm, name, bytes, len);
}

/** dn_dsm_meet::together: nothing to do, as dn_dsm_meet_hear() waits for each file. */
static dn_status_t dn_dsm_meet_together(dn_dsm_t *dsm)
{
    (void) dsm;
    return DN_OK;
}

static dn_status_t dn_dsm_meet_hear(dn_dsm_t *dsm, uint32_t rank, const char *what, void *bytes, size_t *len)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.%u", what, (unsigned) rank);
    return dn_dsm_meet_read(dsm, rank, name, bytes, len);
}

static void dn_dsm_meet_close(dn_dsm_t *dsm)
{
    if (0 <= dsm->folder) {
        close(dsm->folder);
    }
}

const dn_dsm_meet_t dn_dsm_meet_folder = {.open = dn_dsm_meet_open,
                                          .close = dn_dsm_meet_close,
                                          .tell = dn_dsm_meet_tell,
                                          .together = dn_dsm_meet_together,
                                          .hear = dn_dsm_meet_hear};
/** @} */
