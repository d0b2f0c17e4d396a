/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_uffd.c
 * Detection by userfaultfd(2). An access to a page that is not mapped here raises a fault, whether the page is in the file or not. The
 * library puts the page into the file, and UFFDIO_CONTINUE maps it. A write to a page that is mapped write-protected raises a fault, too. The
 * kernel does not split an area for this, so the limit of areas does not matter. With UFFD_FEATURE_SIGBUS the faulting thread gets a signal,
 * and no thread has to read events.
 *
 * UFFDIO_CONTINUE can map a page write-protected since Linux 6.4. On older kernels a write between UFFDIO_CONTINUE and the protection would
 * be missed, so older kernels are refused.
 *
 * With UFFD_FEATURE_WP_ASYNC, since Linux 6.7, the kernel itself permits a write to a page that is write-protected, and the writer gets no
 * signal. PAGEMAP_SCAN finds the pages that are not write-protected.
 */
#include "dn_config.h"

#include "dn_dsm_detect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fixed numbers of the kernel's interface, for systems whose headers are too old. */
#ifndef UFFD_USER_MODE_ONLY
#    define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_MINOR_SHMEM
#    define UFFD_FEATURE_MINOR_SHMEM (1 << 10)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#    define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#    define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#    define UFFDIO_CONTINUE_MODE_WP ((__u64) 1 << 1)
#endif

/** The argument of PAGEMAP_SCAN: struct pm_scan_arg, under a name of this library. */
typedef struct dn_dsm_scan {
    uint64_t size;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end;
    uint64_t vec;
    uint64_t vec_len;
    uint64_t max_pages;
    uint64_t category_inverted;
    uint64_t category_mask;
    uint64_t category_anyof_mask;
    uint64_t return_mask;
} dn_dsm_scan_t;
_Static_assert(96 == sizeof(dn_dsm_scan_t), "struct pm_scan_arg");
/** A run of pages that PAGEMAP_SCAN has found: struct page_region. */
typedef struct dn_dsm_scanned {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
} dn_dsm_scanned_t;
#define DN_DSM_SCAN_CALL       _IOWR('f', 16, dn_dsm_scan_t)
#define DN_DSM_SCAN_IS_WRITTEN (UINT64_C(1) << 1) /**< PAGE_IS_WRITTEN */
#define DN_DSM_SCAN_IS_PRESENT (UINT64_C(1) << 3) /**< PAGE_IS_PRESENT */
/** The most runs of pages that one call finds. */
#define DN_DSM_SCAN_RUNS 128u

/** Make a descriptor that has the features that are needed. @param[in] more  More features. @return -1: see errno. */
static int dn_dsm_uffd_make(uint64_t more)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM
                                         | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | more};
    const int fd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

    if (0 <= fd && 0 != ioctl(fd, UFFDIO_API, &api)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/** Begin with a range. @return 0, or a value of errno. */
static int dn_dsm_uffd_register(int fd, void *at, uint64_t len)
{
    struct uffdio_register range = {.range = {.start = (uintptr_t) at, .len = len},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR
                                            | UFFDIO_REGISTER_MODE_WP};

    return 0 == ioctl(fd, UFFDIO_REGISTER, &range) ? 0 : errno;
}

/** Unmap pages, so that the next access raises a fault. Their bytes stay in the file. Locked memory stays mapped: EINVAL.
 * @return 0, or a value of errno. */
static int dn_dsm_uffd_clear(void *at, uint64_t len)
{
    return 0 == madvise(at, len, MADV_DONTNEED) ? 0 : errno;
}

/** Map pages that are in the file. A page may be mapped by now, as another thread has had the same fault: it stays as it is.
 * @return 0, or a value of errno. */
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
        /* The kernel has stopped after some pages, or at a page that is mapped: go on behind these. */
        const uint64_t done = EEXIST == errno ? page : 0 < range.mapped ? (uint64_t) range.mapped : 0;
        at = (uint8_t *) at + done;
        len -= done;
    }
    return 0;
}

static int dn_dsm_uffd_protect(int fd, void *at, uint64_t len, uint64_t mode)
{
    struct uffdio_writeprotect range = {.range = {.start = (uintptr_t) at, .len = len}, .mode = mode};

    return 0 == ioctl(fd, UFFDIO_WRITEPROTECT, &range) ? 0 : errno;
}

/** Find pages that are not write-protected. Unless `surely`, find also pages that are not mapped: such a page may have been written before the
 * kernel reclaimed it. @return 0, or a value of errno. */
static int dn_dsm_uffd_find(int map, void *at, uint64_t len, bool surely, dn_dsm_found_fn_t found, void *arg)
{
    const uint64_t both = DN_DSM_SCAN_IS_PRESENT | DN_DSM_SCAN_IS_WRITTEN;
    dn_dsm_scanned_t run[DN_DSM_SCAN_RUNS];
    dn_dsm_scan_t scan = {.size = sizeof(scan),
                          .start = (uintptr_t) at,
                          .end = (uintptr_t) at + len,
                          .vec = (uintptr_t) run,
                          .vec_len = DN_DSM_SCAN_RUNS,
                          .category_inverted = surely ? 0 : DN_DSM_SCAN_IS_PRESENT,
                          .category_mask = surely ? both : 0,
                          .category_anyof_mask = surely ? 0 : both};

    while (scan.start < scan.end) {
        const int runs = ioctl(map, DN_DSM_SCAN_CALL, &scan);
        if (0 > runs) {
            return errno;
        }
        for (int i = 0; i < runs; i++) {
            found(arg, (const void *) (uintptr_t) run[i].start, run[i].end - run[i].start);
        }
        scan.start = scan.walk_end;
    }
    return 0;
}

/** What a probe tries with a page that is mapped twice. @return NULL: all works; else why not. */
typedef const char *(*dn_dsm_uffd_try_fn_t)(int fd, uint8_t *front, uint64_t page);

/** Probe whether a way works. @param[in] more  Features. @return NULL: it works; else why not. */
static const char *dn_dsm_uffd_probe(uint64_t more, dn_dsm_uffd_try_fn_t try)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    const int fd = dn_dsm_uffd_make(more);
    const char *why = NULL;
    int file;

    if (0 > fd) {
        return ENOSYS == errno   ? "the kernel has no userfaultfd, or a sandbox hides it"
               : EINVAL != errno ? "the kernel does not permit userfaultfd"
               : 0 != more
                   ? "the kernel does not permit writes to pages that are write-protected (Linux 6.7)"
                   : "the kernel does not tell of minor faults and writes in shared memory (Linux 5.19)";
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
            why = try(fd, front, page);
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

static const char *dn_dsm_uffd_try(int fd, uint8_t *front, uint64_t page)
{
    if (0 != dn_dsm_uffd_clear(front, page)) {
        return "the program has its memory locked (mlockall(2))";
    }
    return 0 == dn_dsm_uffd_register(fd, front, page)
                   && 0 == dn_dsm_uffd_continue(fd, front, page, UFFDIO_CONTINUE_MODE_WP)
               ? NULL
               : "the kernel does not map pages write-protected by UFFDIO_CONTINUE (Linux 6.4)";
}

static const char *dn_dsm_uffd_why_not(void)
{
    return dn_dsm_uffd_probe(0, dn_dsm_uffd_try);
}

static void dn_dsm_uffd_shut(int *fd)
{
    if (0 <= *fd) {
        close(*fd);
        *fd = -1;
    }
}

static int dn_dsm_uffd_open_with(dn_dsm_watch_t *watch, uint64_t more, void *at, uint64_t len)
{
    watch->fd = dn_dsm_uffd_make(more);
    if (0 > watch->fd) {
        return errno;
    }
    int error = dn_dsm_uffd_register(watch->fd, at, len);
    /* This fails if the program has its memory locked: all pages stay mapped then. */
    error = 0 != error ? error : dn_dsm_uffd_clear(at, len);
    if (0 != error) {
        dn_dsm_uffd_shut(&watch->fd);
    }
    return error;
}

static int dn_dsm_uffd_open(dn_dsm_watch_t *watch, void *at, uint64_t len)
{
    return dn_dsm_uffd_open_with(watch, 0, at, len);
}

static void dn_dsm_uffd_close(dn_dsm_watch_t *watch)
{
    dn_dsm_uffd_shut(&watch->fd);
}

static int dn_dsm_uffd_set(const dn_dsm_watch_t *watch, void *at, uint64_t len, dn_dsm_access_t from,
                           dn_dsm_access_t to)
{
    if (DN_DSM_NONE == to) {
        return dn_dsm_uffd_clear(at, len);
    }
    if (DN_DSM_NONE == from) {
        return dn_dsm_uffd_continue(watch->fd, at, len, DN_DSM_READ == to ? UFFDIO_CONTINUE_MODE_WP : 0);
    }
    return dn_dsm_uffd_protect(watch->fd, at, len, DN_DSM_READ == to ? UFFDIO_WRITEPROTECT_MODE_WP : 0);
}

const dn_dsm_detect_t dn_dsm_detect_uffd = {.name = "uffd",
                                            .signal = SIGBUS,
                                            .why_not = dn_dsm_uffd_why_not,
                                            .open = dn_dsm_uffd_open,
                                            .close = dn_dsm_uffd_close,
                                            .set = dn_dsm_uffd_set};

/** @name Writes that a scan finds */
/** @{ */
static int dn_dsm_scan_map(void)
{
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

static void dn_dsm_scan_count(void *arg, const void *at, uint64_t len)
{
    (void) at;
    *(uint64_t *) arg += len;
}

/** dn_dsm_uffd_try_fn_t: does the scan find a write, and the next write after the page was protected again? */
static const char *dn_dsm_scan_try(int fd, uint8_t *front, uint64_t page)
{
    const char *why = dn_dsm_uffd_try(fd, front, page);
    const int map = dn_dsm_scan_map();
    uint64_t found = 0;

    if (NULL == why && 0 > map) {
        why = "/proc/self/pagemap cannot be opened";
    }
    for (uint64_t i = 0; i < 2 && NULL == why; i++) {
        const int before = dn_dsm_uffd_find(map, front, page, false, dn_dsm_scan_count, &found);
        const bool none = found == i * page;
        *(volatile uint8_t *) front = 1;
        if (0 != before || !none || 0 != dn_dsm_uffd_find(map, front, page, false, dn_dsm_scan_count, &found)
            || found != (i + 1) * page
            || 0 != dn_dsm_uffd_protect(fd, front, page, UFFDIO_WRITEPROTECT_MODE_WP)) {
            why = "the kernel does not find pages that were written (PAGEMAP_SCAN, Linux 6.7)";
        }
    }
    if (0 <= map) {
        close(map);
    }
    return why;
}

static const char *dn_dsm_scan_why_not(void)
{
    return dn_dsm_uffd_probe(UFFD_FEATURE_WP_ASYNC, dn_dsm_scan_try);
}

static void dn_dsm_scan_close(dn_dsm_watch_t *watch)
{
    dn_dsm_uffd_shut(&watch->fd);
    dn_dsm_uffd_shut(&watch->map);
}

static int dn_dsm_scan_open(dn_dsm_watch_t *watch, void *at, uint64_t len)
{
    watch->map = dn_dsm_scan_map();
    const int error = 0 > watch->map ? errno : dn_dsm_uffd_open_with(watch, UFFD_FEATURE_WP_ASYNC, at, len);
    if (0 != error) {
        dn_dsm_scan_close(watch);
    }
    return error;
}

static int dn_dsm_scan_scan(const dn_dsm_watch_t *watch, void *at, uint64_t len, bool surely,
                            dn_dsm_found_fn_t found, void *arg)
{
    return dn_dsm_uffd_find(watch->map, at, len, surely, found, arg);
}

const dn_dsm_detect_t dn_dsm_detect_scan = {.name = "scan",
                                            .signal = SIGBUS,
                                            .why_not = dn_dsm_scan_why_not,
                                            .open = dn_dsm_scan_open,
                                            .close = dn_dsm_scan_close,
                                            .set = dn_dsm_uffd_set,
                                            .scan = dn_dsm_scan_scan};
/** @} */
