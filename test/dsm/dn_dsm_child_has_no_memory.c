/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * A child that accesses the shared memory of its parent ends with a sentence, whether the page is here or not. It waits for nothing, though a
 * thread of the parent holds a lock. The parent and the other processes go on, and their values are right.
 */
#include "dn_config.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "dn_dsm_int.h"
#include "errors.h"
#include "folder.h"
#include "sanitizers.h"

/** A child that hangs is ended after so long. */
enum { SECONDS = 120 };

static const char *share, *detect;
static volatile uint8_t *accessed;
static bool writes;

static void access_in_a_child(dn_world_t *world)
{
    (void) world;
    alarm(SECONDS);
    if (writes) {
        *accessed = 99;
    } else {
        (void) *accessed;
    }
}

/** Have a child access a byte, while a thread of this process is in a fault. */
static void child_ends(dn_world_t *world, dn_dsm_t *dsm, volatile uint8_t *at, bool write)
{
    char said[2000];

    accessed = at;
    writes = write;
    pthread_mutex_lock(&dsm->table);
    const int status = in_a_child(world, access_in_a_child, said, sizeof(said));
    pthread_mutex_unlock(&dsm->table);
    /* A library that a device uses may have a handler of its own for the signal. */
    dn_check(0 != status && !(WIFSIGNALED(status) && SIGALRM == WTERMSIG(status)));
    dn_check(NULL != strstr(said, "after fork() in the child"));
}

/** Does a child lose memory that it is not to have? An emulator may leave it there. */
static bool children_lose_memory(dn_world_t *world)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char said[2000];

    dn_check(MAP_FAILED != memory);
    dn_check_equal(madvise(memory, page, MADV_DONTFORK), 0);
    accessed = memory;
    writes = true;
    const bool lose = 0 != in_a_child(world, access_in_a_child, said, sizeof(said));
    munmap(memory, page);
    return lose;
}

static void test(dn_world_t *world)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    const int next = (world->rank + 1) % world->size;
    const bool all = children_lose_memory(world);
    dn_dsm_config_t config = folder_config(world->rank, world->size);
    dn_dsm_t *dsm;
    void *at;

    config.devices = world->variant->device;
    config.share = share;
    config.detect = detect;
    dn_check_equal(dn_dsm_open(&config, &dsm), DN_OK);
    dn_check_equal(dn_dsm_alloc(dsm, (uint64_t) world->size * page, DN_DSM_HOME_CYCLIC, 0, &at), DN_OK);
    volatile uint8_t *own = (uint8_t *) at + (size_t) world->rank * page,
                     *other = (uint8_t *) at + (size_t) next * page;
    for (uint8_t round = 1; round <= 3; round++) {
        *own = (uint8_t) (world->rank + round);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
        /* With copies, that of the page is not here. */
        if (all || 0 != strcmp("shared", dn_dsm_detects(dsm))) {
            child_ends(world, dsm, other, false);
        }
        dn_check_equal(*other, next + round);
        if (all) {
            child_ends(world, dsm, other, false);
            child_ends(world, dsm, other, true);
            child_ends(world, dsm, own, true);
        }
        dn_check_equal(*own, world->rank + round);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
        dn_check_equal(*other, next + round);
        dn_check_equal(dn_dsm_barrier(dsm), DN_OK);
    }
    dn_check_equal(dn_dsm_close(dsm), DN_OK);
}

/** Run the test by a way of detection. */
static int run(const dn_variant_t *variant, int processes, const char *how, const char *way)
{
    share = how;
    detect = way;
    if (0 != folder_make()) {
        return 1;
    }
    const int failed = dn_world_run(variant->file, variant, processes, test);
    folder_remove();
    printf("%s  %s %s %s\n", failed ? "FAILED" : "passed", variant->device, how, way);
    fflush(stdout);
    return failed;
}

int main(void)
{
    static const dn_variant_t shm = {.file = "dn_dsm_child_has_no_memory", .device = "shm"},
                              ipnuma = {.file = "dn_dsm_child_has_no_memory", .device = "ipnuma:lo"},
                              ofi = {.file = "dn_dsm_child_has_no_memory", .device = "ofi:net@lo"};

#ifdef __SANITIZE_THREAD__
    printf("skipped: the thread sanitizer maps memory of its own where a child has none\n");
    return DN_TEST_SKIP;
#endif
    int failed = run(&shm, 2, "auto", "auto");
    for (size_t i = 0; NULL != dn_dsm_detect_name(i); i++) {
        const char *way = dn_dsm_detect_name(i);
        if (NULL != dn_dsm_detect_why_not(way)) {
            continue;
        }
        failed |= run(&shm, 2, "never", way);
        failed |= run(&shm, 3, "2", way);
        failed |= dn_device_known("ipnuma") ? run(&ipnuma, 2, "never", way) : 0;
        /* Sanitizers do not see what libfabric does with memory and threads. */
        failed |= !SANITIZED && dn_device_known("ofi") ? run(&ofi, 2, "never", way) : 0;
    }
    return failed;
}
