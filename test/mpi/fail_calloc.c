/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file fail_calloc.c
 * To be loaded before a rank's libraries: one calloc() finds no memory.
 *
 *   DN_FAIL_RANK  of the rank in MPI_COMM_WORLD
 *   DN_FAIL_FILE  a part of the name of the library whose calls count
 *   DN_FAIL_CALL  which of these calls fails, from 1 on
 */
#include "dn_config.h"

#include "dn_atomic.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** The allocator behind calloc() in glibc; dlsym() would call calloc(). */
extern void *__libc_calloc(size_t count, size_t size);

static int is_to_fail(const void *caller)
{
    static int calls;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *wanted = getenv("DN_FAIL_RANK");
    const char *file = getenv("DN_FAIL_FILE");
    const char *call = getenv("DN_FAIL_CALL");
    Dl_info info;

    return NULL != rank && NULL != wanted && NULL != file && NULL != call && 0 == strcmp(rank, wanted)
           && 0 != dladdr(caller, &info) && NULL != info.dli_fname && NULL != strstr(info.dli_fname, file)
           && atoi(call) == dn_fetch_add_seq_cst(&calls, 1) + 1;
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    return is_to_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
