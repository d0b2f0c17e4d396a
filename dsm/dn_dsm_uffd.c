/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_uffd.c
 * Detection by userfaultfd(2). An access to a page that is not mapped here raises a fault, whether the page is in the file or not: the
 * library puts it there, and UFFDIO_CONTINUE maps it. A write to a page that is mapped write-protected raises a fault, too. The kernel
 * splits no area, so there is no limit of areas. With UFFD_FEATURE_SIGBUS the faulting thread gets a signal, and no thread has to read
 * events.
 *
 * UFFDIO_CONTINUE can map a page write-protected since Linux 6.4. Before, a write between it and the protection would be missed, so
 * older kernels are refused.
 */
#include "dn_config.h"

#include "dn_dsm_detect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the headers of the system may be too old for: fixed numbers of the kernel's interface. */
#ifndef UFFD_USER_MODE_ONLY
#    define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_MINOR_SHMEM
#    define UFFD_FEATURE_MINOR_SHMEM (1 << 10)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#    define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#    define UFFDIO_CONTINUE_MODE_WP ((__u64) 1 << 1)
#endif

static int dn_dsm_uffd_fd = -1;

/** A descriptor that has what is needed. @return it, or -1 with errno. */
static int dn_dsm_uffd_make(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM
                                         | UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    const int fd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

    if (0 <= fd && 0 != ioctl(fd, UFFDIO_API, &api)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/** Begin with a range. @return 0, or what errno would be. */
static int dn_dsm_uffd_register(int fd, void *at, uint64_t len)
{
    struct uffdio_register range = {.range = {.start = (uintptr_t) at, .len = len},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR
                                            | UFFDIO_REGISTER_MODE_WP};

    return 0 == ioctl(fd, UFFDIO_REGISTER, &range) ? 0 : errno;
}

/** Map pages that are in the file. One may be mapped by now, as another thread has had the same fault: it stays as it is. */
static int dn_dsm_uffd_continue(int fd, void *at, uint64_t len, uint64_t mode)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

    while (0 < len) {
        struct uffdio_continue range = {.range = {.start = (uintptr_t) at, .len = len}, .mode = mode};
        if (0 == ioctl(fd, UFFDIO_CONTINUE, &range)) {
            return 0;
        }
        if (EAGAIN != errno && EEXIST != errno) {
            return errno;
        }
        /* The kernel has stopped in between, or at a page that is mapped. */
        const uint64_t done = EEXIST == errno ? page : 0 < range.mapped ? (uint64_t) range.mapped : 0;
        at = (uint8_t *) at + done;
        len -= done;
    }
    return 0;
}

static const char *dn_dsm_uffd_why_not(void)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    const int fd = dn_dsm_uffd_make();
    const char *why = NULL;
    int file;

    if (0 > fd) {
        return ENOSYS == errno ? "the kernel has no userfaultfd, or a sandbox hides it"
               : EINVAL == errno
                   ? "the kernel does not tell of minor faults and writes in shared memory (Linux 5.19)"
                   : "the kernel does not permit userfaultfd";
    }
    file = memfd_create("dimmnet probe", MFD_CLOEXEC);
    if (0 > file || 0 != ftruncate(file, (off_t) page)) {
        why = "no file in memory can be made";
    } else {
        uint8_t *raw = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        uint8_t *front = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (MAP_FAILED == raw || MAP_FAILED == front) {
            why = "no memory can be mapped";
        } else {
            raw[0] = 1;
            if (0 != dn_dsm_uffd_register(fd, front, page)
                || 0 != dn_dsm_uffd_continue(fd, front, page, UFFDIO_CONTINUE_MODE_WP)) {
                why = "the kernel does not map pages write-protected by UFFDIO_CONTINUE (Linux 6.4)";
            }
        }
        if (MAP_FAILED != raw) {
            munmap(raw, page);
        }
        if (MAP_FAILED != front) {
            munmap(front, page);
        }
    }
    if (0 <= file) {
        close(file);
    }
    close(fd);
    return why;
}

static int dn_dsm_uffd_open(void *at, uint64_t len)
{
    dn_dsm_uffd_fd = dn_dsm_uffd_make();
    if (0 > dn_dsm_uffd_fd) {
        return errno;
    }
    const int error = dn_dsm_uffd_register(dn_dsm_uffd_fd, at, len);
    if (0 != error) {
        close(dn_dsm_uffd_fd);
        dn_dsm_uffd_fd = -1;
    }
    return error;
}

static void dn_dsm_uffd_close(void)
{
    if (0 <= dn_dsm_uffd_fd) {
        close(dn_dsm_uffd_fd);
        dn_dsm_uffd_fd = -1;
    }
}

static int dn_dsm_uffd_protect(void *at, uint64_t len, uint64_t mode)
{
    struct uffdio_writeprotect range = {.range = {.start = (uintptr_t) at, .len = len}, .mode = mode};

    return 0 == ioctl(dn_dsm_uffd_fd, UFFDIO_WRITEPROTECT, &range) ? 0 : errno;
}

static int dn_dsm_uffd_set(void *at, uint64_t len, dn_dsm_access_t from, dn_dsm_access_t to)
{
    if (DN_DSM_NONE == to) {
        return 0 == madvise(at, len, MADV_DONTNEED) ? 0 : errno;
    }
    if (DN_DSM_NONE == from) {
        return dn_dsm_uffd_continue(dn_dsm_uffd_fd, at, len, DN_DSM_READ == to ? UFFDIO_CONTINUE_MODE_WP : 0);
    }
    return dn_dsm_uffd_protect(at, len, DN_DSM_READ == to ? UFFDIO_WRITEPROTECT_MODE_WP : 0);
}

const dn_dsm_detect_t dn_dsm_detect_uffd = {.name = "uffd",
                                            .signal = SIGBUS,
                                            .why_not = dn_dsm_uffd_why_not,
                                            .open = dn_dsm_uffd_open,
                                            .close = dn_dsm_uffd_close,
                                            .set = dn_dsm_uffd_set};
