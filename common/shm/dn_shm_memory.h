/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_shm_memory.h
 * How much memory the system can give, and memory that is allocated before it is touched.
 */
#ifndef DN_SHM_MEMORY_H
#define DN_SHM_MEMORY_H

#include <stdint.h>
#include <sys/mman.h>

/** Older headers lack these values. Kernels before 5.14 do not know them. */
#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_READ  22
#    define MADV_POPULATE_WRITE 23
#endif

/** Bytes that the machine and the control groups of this process could still give. UINT64_MAX: not known. A memfd has no limit of its
 * own: a process that takes more is ended by the kernel. */
uint64_t dn_shm_available(void);
/** Bytes that control groups of either version could still give. @param[in] groups  The folder where they are mounted. @param[in] self  The
 * file that names the groups of this process. */
uint64_t dn_shm_cgroup_available(const char *groups, const char *self);
/** Allocate the memory of a range of a file. A signal does not end this call. @return 0, or an errno value. */
int dn_shm_allocate(int fd, uint64_t off, uint64_t bytes);
/** As dn_shm_allocate(), for a range that is mapped at @p mem; in one call of the kernel where it can. */
int dn_shm_populate(int fd, void *mem, uint64_t off, uint64_t bytes);
/** The longest range for dn_shm_enter_pages(). */
#define DN_SHM_ENTER_MAX ((uint64_t) 2 << 20)
/** Enter a range of a file, up to its first page that has no memory, into this process's page table. The range is mapped at @p mem, at the
 * start of a page. Pages that are not entered here are entered when they are first read. */
void dn_shm_enter_pages(void *mem, uint64_t bytes);
/** May a file, or a memfd, have @p bytes bytes? If not, to give it this size would end the process by SIGXFSZ. */
int dn_shm_file_size_allowed(uint64_t bytes);

#endif
