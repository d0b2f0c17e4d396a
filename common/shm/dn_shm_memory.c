/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_memory.c
 * How much memory the system can give, and how to allocate memory before it is touched. A process that touches a page of
 * shared memory which the system cannot give ends by a SIGBUS.
 */
#include "dn_config.h"

#include "dn_shm_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Bytes of the smallest page of any machine. */
#define DN_SHM_LEAST_PAGE 4096

/** Bytes that are allocated at a time where the kernel cannot allocate all at once. A pending signal undoes no more than these. */
#define DN_SHM_TAKE ((uint64_t) 2 << 20)

/** Longest name of a file of a control group. */
#define DN_SHM_CGROUP_PATH 1024

int dn_shm_allocate(int fd, uint64_t off, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += DN_SHM_TAKE) {
        const uint64_t len = DN_SHM_TAKE < bytes - at ? DN_SHM_TAKE : bytes - at;
        int error;

        do {
            error = posix_fallocate(fd, (off_t) (off + at), (off_t) len);
        } while (EINTR == error);
        if (0 != error) {
            return error;
        }
    }
    return 0;
}

/**
 * madvise() that a signal does not end. The kernel is called without the C library's function: Open MPI, where pml/ucx or osc/ucx is opened, and
 * UCX in other settings write a jump over the start of that function while the program starts. A thread that is in the kernel then, and this
 * takes long in a thread that brings memory in, would return into the midst of that jump.
 * @return 0, or an errno value.
 */
static int dn_shm_advise(void *mem, uint64_t bytes, int advice)
{
    int error;

    do {
        error = 0 == syscall(SYS_madvise, mem, bytes, advice) ? 0 : errno;
    } while (EINTR == error);
    return error;
}

int dn_shm_populate(int fd, void *mem, uint64_t off, uint64_t bytes)
{
    const int error = dn_shm_advise(mem, bytes, MADV_POPULATE_WRITE);

    if (EFAULT == error) {
        return ENOMEM; /* what would have been a SIGBUS */
    }
    return EINVAL == error ? dn_shm_allocate(fd, off, bytes) : error;
}

void dn_shm_enter_pages(void *mem, uint64_t bytes)
{
    unsigned char has_memory[DN_SHM_ENTER_MAX / DN_SHM_LEAST_PAGE];
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    uint64_t pages = 0;

    if (0 != mincore(mem, bytes, has_memory)) {
        return;
    }
    while (pages < bytes / page && 0 != (has_memory[pages] & 1)) {
        pages++;
    }
    (void) dn_shm_advise(mem, pages * page, MADV_POPULATE_READ);
}

int dn_shm_file_size_allowed(uint64_t bytes)
{
    struct rlimit limit;
    return 0 != getrlimit(RLIMIT_FSIZE, &limit) || RLIM_INFINITY == limit.rlim_cur || bytes <= limit.rlim_cur;
}

/** Read the number in a file of a control group. @return 0: there is no such file, or it holds no number ("max"). */
static int dn_shm_cgroup_number(const char *folder, const char *name, uint64_t *value_p)
{
    char path[DN_SHM_CGROUP_PATH];
    unsigned long long value;

    if (sizeof(path) <= (size_t) snprintf(path, sizeof(path), "%s/%s", folder, name)) {
        return 0;
    }
    FILE *file = fopen(path, "re");
    const int found = NULL != file && 1 == fscanf(file, "%llu", &value);
    if (NULL != file) {
        fclose(file);
    }
    *value_p = found ? value : 0;
    return found;
}

/** Bytes that the kernel caches of files for a control group, and would give up for other memory. */
static uint64_t dn_shm_cgroup_cache(const char *folder, const char *prefix)
{
    char path[DN_SHM_CGROUP_PATH];
    char name[64];
    unsigned long long value;
    uint64_t bytes = 0;

    if (sizeof(path) <= (size_t) snprintf(path, sizeof(path), "%s/memory.stat", folder)) {
        return 0;
    }
    FILE *file = fopen(path, "re");
    while (NULL != file && 2 == fscanf(file, "%63s %llu", name, &value)) {
        const size_t skip = strlen(prefix);
        if (0 == strncmp(name, prefix, skip)
            && (0 == strcmp(name + skip, "inactive_file") || 0 == strcmp(name + skip, "active_file"))) {
            bytes += value;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return bytes;
}

/** Bytes that a control group and all groups above it could still give. @param[in,out] folder  Path of the group; it is shortened.
 * @param[in] root  Length of the path of the topmost folder. */
static uint64_t dn_shm_cgroup_left(char *folder, size_t root, int first)
{
    const char *limit = first ? "memory.limit_in_bytes" : "memory.max";
    const char *usage = first ? "memory.usage_in_bytes" : "memory.current";
    uint64_t left = UINT64_MAX;

    for (;;) {
        uint64_t most;
        uint64_t used;
        if (dn_shm_cgroup_number(folder, limit, &most) && dn_shm_cgroup_number(folder, usage, &used)) {
            const uint64_t cache = dn_shm_cgroup_cache(folder, first ? "total_" : "");
            used -= used < cache ? used : cache;
            const uint64_t here = most > used ? most - used : 0;
            left = here < left ? here : left;
        }
        char *slash = strrchr(folder + root, '/');
        if (NULL == slash) {
            return left;
        }
        *slash = '\0';
    }
}

uint64_t dn_shm_cgroup_available(const char *groups, const char *self)
{
    char line[DN_SHM_CGROUP_PATH / 2];
    char folder[DN_SHM_CGROUP_PATH];
    uint64_t left = UINT64_MAX;
    FILE *file = fopen(self, "re");

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        /* number:controllers:/path; version 2 has number 0 and names no controllers. */
        char *controllers = strchr(line, ':');
        char *path = NULL == controllers ? NULL : strchr(controllers + 1, ':');
        if (NULL == path) {
            continue;
        }
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        const int second = 0 == strcmp(controllers, ":") && 0 == strncmp(line, "0:", 2);
        const int first = NULL != strstr(controllers, "memory");
        if (!second && !first) {
            continue;
        }
        const char *memory = first ? "/memory" : "";
        const int len = snprintf(folder, sizeof(folder), "%s%s%s", groups, memory, path);
        if (0 > len || sizeof(folder) <= (size_t) len) {
            continue;
        }
        const uint64_t here = dn_shm_cgroup_left(folder, strlen(groups) + strlen(memory), first);
        left = here < left ? here : left;
    }
    if (NULL != file) {
        fclose(file);
    }
    return left;
}

uint64_t dn_shm_available(void)
{
    unsigned long long kib = 0;
    char line[128];
    int known = 0;
    FILE *file = fopen("/proc/meminfo", "re");

    while (NULL != file && !known && NULL != fgets(line, sizeof(line), file)) {
        known = 1 == sscanf(line, "MemAvailable: %llu kB", &kib);
    }
    if (NULL != file) {
        fclose(file);
    }
    const uint64_t host = known ? (uint64_t) kib << 10 : UINT64_MAX;
    const uint64_t group = dn_shm_cgroup_available("/sys/fs/cgroup", "/proc/self/cgroup");
    return group < host ? group : host;
}
