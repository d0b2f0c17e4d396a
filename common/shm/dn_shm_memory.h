/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_memory.h
 * Memory that is there before it is touched.
 */
#ifndef DN_SHM_MEMORY_H
#define DN_SHM_MEMORY_H

#include <stdint.h>
#include <sys/mman.h>

/** Older headers do not know them, nor do kernels before 5.14. */
#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_READ  22
#    define MADV_POPULATE_WRITE 23
#endif

/** Bytes that the machine, and the control groups of this process, could still give; UINT64_MAX: not known. A memfd has no
 * limit of its own but the OOM killer. */
uint64_t dn_shm_available(void);
/** What control groups of either version leave. groups: where they are mounted. self: the file that names this process'. */
uint64_t dn_shm_cgroup_available(const char *groups, const char *self);
/** Give a range of a file its memory; a signal does not end it. @return 0, or what errno would be. */
int dn_shm_allocate(int fd, uint64_t off, uint64_t bytes);
/** The same for a range that is mapped at @p mem, at once where the kernel can. */
int dn_shm_populate(int fd, void *mem, uint64_t off, uint64_t bytes);
/** The longest range for dn_shm_enter_pages(). */
#define DN_SHM_ENTER_MAX ((uint64_t) 2 << 20)
/** Enter a range of a file, mapped at @p mem at the start of a page, into this process' page table, up to its first page that has no memory.
 * What is not entered is entered as it is read. */
void dn_shm_enter_pages(void *mem, uint64_t bytes);
/** May a file, a memfd included, become so large? If not, to make it so would end the process by SIGXFSZ. */
int dn_shm_file_size_allowed(uint64_t bytes);

#endif
