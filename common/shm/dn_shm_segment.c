/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_segment.c
 * Segments: memory that peers on the host map.
 */
#include "dn_config.h"

#include "dn_shm_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dn_log.h"
#include "dn_shm_memory.h"

/** Milliseconds for which a result of dn_shm_available() is used. That call reads some files of /proc and /sys. */
#define DN_SHM_AVAILABLE_MS 1000

/** Ask for huge pages, and for memory of the node where this process runs. The system may refuse both. */
static void dn_shm_segment_place(void *mem, uint64_t bytes)
{
    unsigned long mask = 0;
    unsigned node;

    (void) madvise(mem, bytes, MADV_HUGEPAGE);
    if (0 == getcpu(NULL, &node) && 8 * sizeof(mask) > node) {
        /* The kernel leaves the last of these bits out. */
        mask = 1UL << node;
        (void) syscall(SYS_mbind, mem, bytes, MPOL_PREFERRED, &mask, 8 * sizeof(mask) + 1, 0);
    }
}

/** Make the memory of a segment. Its place is chosen before its pages are allocated. @return 0, or an errno value. */
static int dn_shm_segment_make(int fd, uint64_t bytes, void **mem_p)
{
    int error = 0;

    if (!dn_shm_file_size_allowed(bytes)) {
        return EFBIG;
    }
    if (0 != ftruncate(fd, (off_t) bytes)) {
        return errno;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (MAP_FAILED == mem) {
        return errno;
    }
    dn_shm_segment_place(mem, bytes);
    if (dn_memory_is_counted()) {
        error = dn_shm_populate(fd, mem, 0, bytes);
    }
    if (0 != error) {
        munmap(mem, bytes);
        return error;
    }
    *mem_p = mem;
    return 0;
}

/**
 * Bytes available for a segment: the result of dn_shm_available() of less than a second ago, less the bytes allocated since. For a segment
 * that takes a good part of these bytes, dn_shm_available() is called again: other processes may have taken memory, or given it back.
 */
static uint64_t dn_shm_segment_room(dn_shm_t *shm, uint64_t bytes)
{
    const uint64_t now = dn_shm_now_ms();

    if (now - shm->available_ms >= DN_SHM_AVAILABLE_MS || shm->available / 8 < bytes) {
        shm->available = dn_shm_available();
        shm->available_ms = now;
    }
    return shm->available;
}

dn_status_t dn_shm_segment_alloc(dn_iface_t *iface, uint64_t len, void **base_p, dn_key_t *key)
{
    dn_shm_t *shm = (dn_shm_t *) iface;
    const uint64_t bytes = DN_SHM_PAGE + len;

    if (!shm->memfd) {
        /* Peers that cannot open our memfd: private memory, reached by CMA or the ring. */
        return DN_ERR_UNSUPPORTED;
    }
    const uint64_t available = dn_shm_segment_room(shm, bytes);
    if (bytes < len || INT64_MAX < bytes || available < bytes) {
        dn_log_answer("a segment of %" PRIu64 " bytes does not fit into the %" PRIu64
                      " bytes of memory available; ask for less",
                      len, available);
        return DN_ERR_NOMEM;
    }
    const int fd = memfd_create("dimmnet segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (0 > fd) {
        return DN_ERR_NOMEM;
    }
    void *mem = NULL;
    const int error = dn_shm_segment_make(fd, bytes, &mem);
    if (0 != error) {
        dn_log_answer("no memory for a segment of %" PRIu64 " bytes (%s)", len, strerror(error));
        close(fd);
        return DN_ERR_NOMEM;
    }
    shm->available -= bytes;
    dn_shm_segment_head_t *head = mem;
    head->magic = DN_SHM_MAGIC;
    head->len = len;
    head->sid = key->sid;
    dn_store_release_u32(&head->live, key->generation);
    dn_key_add(key, (dn_key_way_t){.kind = DN_SHM_KEY_MAPPED, .fd = (uint32_t) fd});
    *base_p = (uint8_t *) mem + DN_SHM_PAGE;
    return DN_OK;
}

void dn_shm_segment_release(dn_iface_t *iface, void *base, const dn_key_t *key)
{
    dn_shm_segment_head_t *head = (dn_shm_segment_head_t *) ((uint8_t *) base - DN_SHM_PAGE);

    if (!dn_port_is_copy(iface->port)) {
        dn_store_release_u32(&head->live, 0);
    }
    munmap(head, DN_SHM_PAGE + key->len);
    close((int) dn_key_way(key, DN_SHM_KEY_MAPPED)->fd);
}

void dn_shm_segment_register(dn_iface_t *iface, void *base, dn_key_t *key)
{
    (void) iface;
    dn_key_add(key, (dn_key_way_t){.kind = DN_SHM_KEY_CMA, .word = {(uintptr_t) base}});
}
