/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_shm_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dn_shm_memory.h"

/** The names of this device's files begin with this. */
#define DN_SHM_PREFIX "dimmnet."
/** Bytes of such a name, its terminating zero included. */
#define DN_SHM_NAME_MAX (sizeof(DN_SHM_PREFIX) + 32)
/** Where files are when the job has no folder of its own. */
#define DN_SHM_FOLDER "/dev/shm"

/** Open a file if its name stands for a regular file. @return fd, -1: errno; EPROTO: it is no regular file. */
static int dn_shm_open_regular(int folder, const char *name, int flags)
{
    char again[48];
    struct stat info;
    int fd = -1;

    const int seen = openat(folder, name, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
    if (0 > seen) {
        return -1;
    }
    if (0 != fstat(seen, &info) || !S_ISREG(info.st_mode)) {
        errno = EPROTO;
    } else {
        snprintf(again, sizeof(again), "/proc/thread-self/fd/%d", seen);
        fd = open(again, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
    }
    const int error = errno;
    close(seen);
    errno = error;
    return fd;
}

/**
 * Remove a file that a killed process of this user left. Its header names a process of this host that has ended; or it has no whole
 * header, and no process holds the lock under which a header is written.
 */
static void dn_shm_sweep_file(int folder, const char *name)
{
    dn_shm_header_t header;
    struct statfs system;
    struct stat info;
    uint8_t host[16];

    dn_shm_host(host);
    const int fd = dn_shm_open_regular(folder, name, O_RDONLY | O_NOFOLLOW);
    if (0 > fd) {
        return;
    }
    /* The lock ends with the process that has it, or when this closes the file. */
    const int locked = 0 == flock(fd, LOCK_EX | LOCK_NB);
    if ((locked || EWOULDBLOCK != errno) && 0 == fstat(fd, &info) && info.st_uid == geteuid()) {
        const int whole =
            (ssize_t) sizeof(header) == pread(fd, &header, sizeof(header), 0) && DN_SHM_MAGIC == header.magic;
        /* Elsewhere than in memory the lock of another host might not be seen. */
        const int left = whole ? 0 == memcmp(header.host, host, sizeof(host))
                                     && dn_shm_gone(header.os_pid, header.start_time)
                               : locked && 0 == fstatfs(fd, &system) && TMPFS_MAGIC == system.f_type;
        if (left) {
            unlinkat(folder, name, 0);
        }
    }
    close(fd);
}

static void dn_shm_sweep(const char *path)
{
    DIR *folder = opendir(path);
    if (NULL == folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); NULL != entry; entry = readdir(folder)) {
        if (0 == strncmp(entry->d_name, DN_SHM_PREFIX, strlen(DN_SHM_PREFIX))) {
            dn_shm_sweep_file(dirfd(folder), entry->d_name);
        }
    }
    closedir(folder);
}

/** The name of a port's file, in any folder. */
static void dn_shm_name(const uint64_t nonce[2], char name[DN_SHM_NAME_MAX])
{
    snprintf(name, DN_SHM_NAME_MAX, DN_SHM_PREFIX "%016" PRIx64 "%016" PRIx64, nonce[0], nonce[1]);
}

/** Create a file and lock it. It stays locked until its header names its owner. @return fd, -1: errno. */
static int dn_shm_open_locked(const char *path)
{
    struct stat info;

    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (0 > fd) {
            return -1;
        }
        while (0 != flock(fd, LOCK_EX) && EINTR == errno) {
        }
        /* Another process that sweeps may have taken it for left over before it was locked. */
        if (0 != fstat(fd, &info) || 0 != info.st_nlink) {
            return fd;
        }
        close(fd);
    }
}

int dn_shm_create_file(dn_shm_t *shm, const char *dir, const uint64_t nonce[2], uint64_t reserve)
{
    char name[DN_SHM_NAME_MAX];

    dn_shm_name(nonce, name);
    const int n = snprintf(shm->path, sizeof(shm->path), "%s/%s", dir, name);
    if (0 > n || sizeof(shm->path) <= (size_t) n) {
        errno = ENAMETOOLONG;
        return -1;
    }
    dn_shm_sweep(dir);
    const int fd = dn_shm_open_locked(shm->path);
    if (0 > fd) {
        return -1;
    }
    const int error = dn_shm_allocate(fd, 0, reserve);
    if (0 != error) {
        close(fd);
        unlink(shm->path);
        errno = error;
        return -1;
    }
    return fd;
}

const char *dn_shm_folder(const dn_job_t *job)
{
    struct statfs info;
    if (NULL != job->dir && 0 == statfs(job->dir, &info) && TMPFS_MAGIC == info.f_type) {
        return job->dir;
    }
    return DN_SHM_FOLDER;
}

int dn_shm_path_valid(const dn_shm_t *shm, const dn_shm_where_t *where)
{
    char name[DN_SHM_NAME_MAX];
    const char *slash = strrchr(where->path, '/');

    if ('\0' == where->path[0]) {
        return 1;
    }
    dn_shm_name(where->nonce, name);
    if (NULL == slash || 0 != strcmp(slash + 1, name)) {
        return 0;
    }
    const size_t folder = (size_t) (slash - where->path);
    return shm->folders
           || (strlen(DN_SHM_FOLDER) == folder && 0 == memcmp(where->path, DN_SHM_FOLDER, folder));
}

/** Open a descriptor of another process through its threads: a process whose first thread has ended shows descriptors only there. */
static int dn_shm_open_by_thread(uint32_t os_pid, int32_t fd)
{
    char path[64];
    struct dirent *entry;
    int opened = -1;
    int error = ENOENT;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", os_pid);
    DIR *folder = opendir(path);
    if (NULL == folder) {
        return -1;
    }
    while (0 > opened && (ENOENT == error || ESRCH == error) && NULL != (entry = readdir(folder))) {
        const unsigned long thread = strtoul(entry->d_name, NULL, 10);
        if (0 != thread) {
            snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%lu/fd/%" PRId32, os_pid, thread, fd);
            opened = dn_shm_open_regular(AT_FDCWD, path, O_RDWR);
            error = errno;
        }
    }
    closedir(folder);
    errno = error;
    return opened;
}

int dn_shm_open_fd(uint32_t os_pid, int32_t fd, const char *path)
{
    char proc[48];

    if ('\0' != path[0]) {
        const int opened = dn_shm_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW);
        if (0 <= opened || ENOENT != errno) {
            return opened;
        }
        /* Unlinked since every process of the group has it; a later one may find it as it would a memfd. */
    }
    snprintf(proc, sizeof(proc), "/proc/%" PRIu32 "/fd/%" PRId32, os_pid, fd);
    const int opened = dn_shm_open_regular(AT_FDCWD, proc, O_RDWR);
    return 0 <= opened || (ENOENT != errno && ESRCH != errno) ? opened : dn_shm_open_by_thread(os_pid, fd);
}

int dn_shm_is_shortage(int error)
{
    return EMFILE == error || ENFILE == error || ENOMEM == error;
}

int dn_shm_is_named(int fd, const uint64_t nonce[2])
{
    char proc[48];
    char path[DN_SHM_PATH_MAX + 16];
    char name[DN_SHM_NAME_MAX];

    snprintf(proc, sizeof(proc), "/proc/thread-self/fd/%d", fd);
    const ssize_t len = readlink(proc, path, sizeof(path) - 1);
    if (0 > len) {
        return 0;
    }
    path[len] = '\0';
    const char *slash = strrchr(path, '/');
    dn_shm_name(nonce, name);
    return 0 != strncmp(path, "/memfd:", 7) && NULL != slash && 0 == strncmp(slash + 1, name, strlen(name));
}
