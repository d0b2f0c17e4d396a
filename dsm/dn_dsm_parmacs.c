/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_dsm_parmacs.c
 * The macros of SPLASH: see dn_dsm_parmacs.h. */
#include "dn_config.h"

#include "dn_dsm_parmacs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dn_dsm_int.h"

/** The number of the lock that guards the heap. */
#define DN_PARMACS_HEAP_LOCK 0u
/** Bytes to which small pieces of the heap are aligned. */
#define DN_PARMACS_LINE UINT64_C(64)

/** The head of the heap, at the start of the memory. */
typedef struct dn_parmacs_heap {
    uint64_t used; /**< bytes in use, with this head */
    int next_lock; /**< number of the next lock that LOCKINIT gives */
} dn_parmacs_heap_t;

static dn_dsm_config_t dn_parmacs_config;
static dn_parmacs_heap_t *dn_parmacs_heap; /**< NULL: before MAIN_INITENV and the first G_MALLOC */
static dn_dsm_t *dn_parmacs_dsm;           /**< NULL: before CREATE, when the memory is private */
static uint32_t dn_parmacs_created;        /**< calls of CREATE with one argument so far */
static int dn_parmacs_out = -1;            /**< not in process 0, before CREATE: the real stdout */

/** @name Failures */
/** @{ */
#define dn_parmacs_fail(...)       \
    do {                           \
        dn_log_error(__VA_ARGS__); \
        exit(EXIT_FAILURE);        \
    } while (0)

/** End this process, unless a status is DN_OK. libdn_dsm has logged what is wrong. */
static void dn_parmacs_need(dn_status_t status, const char *what)
{
    if (DN_OK != status) {
        dn_parmacs_fail("shared memory: %s: %s: this process ends", what, dn_strerror(status));
    }
}

/** End this process, unless MAIN_INITENV or G_MALLOC was called. */
static void dn_parmacs_begun(const char *what)
{
    if (NULL == dn_parmacs_heap) {
        dn_parmacs_fail("shared memory: %s before MAIN_INITENV", what);
    }
}

/** End this process, unless a count is the number of all processes. */
static void dn_parmacs_all(long count, const char *what)
{
    dn_parmacs_begun(what);
    if (count != (long) dn_parmacs_config.ranks) {
        dn_parmacs_fail("shared memory: %s of %ld processes, and %u were started: have as many", what, count,
                        (unsigned) dn_parmacs_config.ranks);
    }
}
/** @} */

/** @name Processes */
/** @{ */
/** Begin, in each process: make the private heap, as the environment says, and put stdout aside. */
static void dn_parmacs_begin(void)
{
    dn_dsm_config_t *config = &dn_parmacs_config;

    dn_parmacs_need(dn_dsm_config_env(config), "MAIN_INITENV");
    if (NULL != config->protocol && 0 == strcmp("scope", config->protocol)) {
        dn_parmacs_fail(
            "shared memory: programs of SPLASH pass data on by pauses, which scope consistency does not "
            "see: set DN_DSM_PROTOCOL to lazy, eager or update");
    }
    void *want = dn_dsm_place_address(0);
    void *heap = mmap(want, config->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (heap != want) {
        dn_parmacs_fail("shared memory: %llu bytes cannot be mapped at %p (%s)",
                        (unsigned long long) config->bytes, want, strerror(errno));
    }
    dn_parmacs_heap = heap;
    *dn_parmacs_heap = (dn_parmacs_heap_t){.used = DN_PARMACS_LINE, .next_lock = DN_PARMACS_HEAP_LOCK + 1};
    if (0 != config->rank) {
        const int none = open("/dev/null", O_WRONLY | O_CLOEXEC);
        fflush(stdout);
        dn_parmacs_out = dup(STDOUT_FILENO);
        if (0 > none || 0 > dn_parmacs_out || 0 > dup2(none, STDOUT_FILENO)) {
            dn_parmacs_fail("shared memory: stdout cannot be put aside (%s)", strerror(errno));
        }
        close(none);
    }
}

void dn_dsm_parmacs_init(unsigned long bytes)
{
    dn_dsm_config_t *config = &dn_parmacs_config;

    if (NULL == dn_parmacs_heap) {
        dn_parmacs_begin();
    }
    if (bytes <= config->bytes) {
        return;
    }
    if (NULL != dn_parmacs_dsm) {
        dn_parmacs_fail("shared memory: MAIN_INITENV of %lu bytes after CREATE: there are %llu", bytes,
                        (unsigned long long) config->bytes);
    }
    /* The heap does not move: what has been allocated stays at its addresses. */
    if (dn_parmacs_heap != mremap(dn_parmacs_heap, config->bytes, bytes, 0)) {
        dn_parmacs_fail("shared memory: %lu bytes cannot be mapped at %p (%s)", bytes,
                        (void *) dn_parmacs_heap, strerror(errno));
    }
    config->bytes = bytes;
}

/** Move the private heap to other addresses. Its pages are mapped there; nothing is copied. @return the new address. */
static const uint8_t *dn_parmacs_put_aside(uint64_t bytes)
{
    void *aside = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == aside
        || aside != mremap(dn_parmacs_heap, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, aside)) {
        dn_parmacs_fail("shared memory: %llu bytes cannot be put aside while it is opened (%s)",
                        (unsigned long long) bytes, strerror(errno));
    }
    return aside;
}

/** Copy the pages that are not zero. Programs ask for more memory than they touch, and @p to has zeros already. */
static void dn_parmacs_copy(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

    for (uint64_t at = 0; at < bytes; at += page) {
        const uint64_t some = page < bytes - at ? page : bytes - at;
        if (0 != from[at] || 0 != memcmp(from + at, from + at + 1, some - 1)) {
            memcpy(to + at, from + at, some);
        }
    }
}

/** Make the memory shared. Its content is that of process 0. */
static void dn_parmacs_share(void)
{
    const dn_dsm_config_t *config = &dn_parmacs_config;
    const uint64_t used = dn_parmacs_heap->used;
    const uint8_t *aside = dn_parmacs_put_aside(config->bytes);
    void *at = NULL;

    dn_parmacs_need(dn_dsm_open(config, &dn_parmacs_dsm), "CREATE");
    dn_parmacs_need(dn_dsm_alloc(dn_parmacs_dsm, config->bytes, DN_DSM_HOME_CYCLIC, 0, &at), "CREATE");
    if (at != dn_parmacs_heap) {
        dn_parmacs_fail("shared memory: it is at %p, and has been at %p before CREATE: no process may use "
                        "addresses there",
                        at, (void *) dn_parmacs_heap);
    }
    if (0 == config->rank) {
        dn_parmacs_copy(at, aside, used);
    } else {
        fflush(stdout);
        dup2(dn_parmacs_out, STDOUT_FILENO);
        close(dn_parmacs_out);
    }
    munmap((void *) (uintptr_t) aside, config->bytes);
    dn_parmacs_need(dn_dsm_barrier(dn_parmacs_dsm), "CREATE");
}

void dn_dsm_parmacs_create(void (*fn)(void), long count)
{
    const dn_dsm_config_t *config = &dn_parmacs_config;

    if (0 != count) {
        dn_parmacs_all(count, "CREATE");
    } else if (++dn_parmacs_created >= config->ranks) {
        dn_parmacs_begun("CREATE");
        dn_parmacs_fail(
            "shared memory: CREATE of %u processes beside the first, and %u were started: have as "
            "many",
            (unsigned) dn_parmacs_created, (unsigned) config->ranks - 1);
    }
    if (0 != config->rank && 0 == count && config->rank != dn_parmacs_created) {
        return;
    }
    if (NULL == dn_parmacs_dsm) {
        dn_parmacs_share();
    }
    if (0 != config->rank || 0 != count) {
        fn();
    }
    if (0 != config->rank) {
        dn_dsm_parmacs_wait();
        dn_dsm_parmacs_end();
    }
}

void dn_dsm_parmacs_wait(void)
{
    if (NULL == dn_parmacs_dsm) {
        /* The user may run the program with one process, and without CREATE. */
        dn_parmacs_all(1, "WAIT_FOR_END without CREATE");
        return;
    }
    dn_parmacs_need(dn_dsm_barrier(dn_parmacs_dsm), "WAIT_FOR_END");
}

void dn_dsm_parmacs_end(void)
{
    if (NULL != dn_parmacs_dsm) {
        dn_parmacs_need(dn_dsm_close(dn_parmacs_dsm), "MAIN_END");
    }
    exit(EXIT_SUCCESS);
}
/** @} */

/** @name Memory and synchronisation
 * Before CREATE each process has memory of its own, and locks do nothing. */
/** @{ */
void dn_dsm_parmacs_lock(int lock)
{
    if (NULL != dn_parmacs_dsm) {
        dn_parmacs_need(dn_dsm_lock(dn_parmacs_dsm, (uint32_t) lock), "LOCK");
    }
}

void dn_dsm_parmacs_unlock(int lock)
{
    if (NULL != dn_parmacs_dsm) {
        dn_parmacs_need(dn_dsm_unlock(dn_parmacs_dsm, (uint32_t) lock), "UNLOCK");
    }
}

void *dn_dsm_parmacs_malloc(unsigned long bytes)
{
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    const uint64_t align = page <= bytes ? page : DN_PARMACS_LINE;

    dn_dsm_parmacs_init(0);
    dn_dsm_parmacs_lock(DN_PARMACS_HEAP_LOCK);
    const uint64_t at = (dn_parmacs_heap->used + align - 1) / align * align;
    if (at > dn_parmacs_config.bytes || bytes > dn_parmacs_config.bytes - at) {
        dn_parmacs_fail("shared memory: %lu bytes are not left of %llu: have more by DN_DSM_BYTES, or by "
                        "MAIN_INITENV",
                        bytes, (unsigned long long) dn_parmacs_config.bytes);
    }
    dn_parmacs_heap->used = at + bytes;
    dn_dsm_parmacs_unlock(DN_PARMACS_HEAP_LOCK);
    return (uint8_t *) dn_parmacs_heap + at;
}

int dn_dsm_parmacs_lock_new(void)
{
    dn_parmacs_begun("LOCKINIT");
    dn_dsm_parmacs_lock(DN_PARMACS_HEAP_LOCK);
    const int lock = dn_parmacs_heap->next_lock++;
    dn_dsm_parmacs_unlock(DN_PARMACS_HEAP_LOCK);
    if (lock >= (int) dn_parmacs_config.locks) {
        dn_parmacs_fail("shared memory: the program has more than %u locks: have more by DN_DSM_LOCKS",
                        (unsigned) dn_parmacs_config.locks - 1);
    }
    return lock;
}

void dn_dsm_parmacs_barrier(long count)
{
    dn_parmacs_all(count, "BARRIER");
    if (NULL != dn_parmacs_dsm) {
        dn_parmacs_need(dn_dsm_barrier(dn_parmacs_dsm), "BARRIER");
    } else if (1 < count) {
        dn_parmacs_fail("shared memory: BARRIER before CREATE");
    }
}

long dn_dsm_parmacs_getsub(long *gs, long max, long count)
{
    dn_dsm_parmacs_lock((int) gs[0]);
    const long next = gs[1] <= max ? gs[1]++ : -1;
    dn_dsm_parmacs_unlock((int) gs[0]);
    if (0 > next) {
        dn_dsm_parmacs_barrier(count);
        if (0 == dn_parmacs_config.rank) {
            gs[1] = 0;
        }
        dn_dsm_parmacs_barrier(count);
    }
    return next;
}

void dn_dsm_parmacs_flag(long *flag, long value)
{
    dn_dsm_parmacs_lock((int) flag[0]);
    flag[1] = value;
    dn_dsm_parmacs_unlock((int) flag[0]);
}

void dn_dsm_parmacs_flag_wait(const long *flag)
{
    long set = 0;

    while (0 == set) {
        dn_dsm_parmacs_lock((int) flag[0]);
        set = flag[1];
        dn_dsm_parmacs_unlock((int) flag[0]);
    }
}

unsigned long dn_dsm_parmacs_clock(void)
{
    return (unsigned long) (dn_dsm_clock() / 1000);
}
/** @} */
