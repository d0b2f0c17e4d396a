/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file grow_class.c
 * To be loaded before a rank's libraries: Open MPI's processes are longer than its headers say, as with another configuration of the same
 * version.
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <stddef.h>

/** What a class of Open MPI begins with. */
typedef struct object_class {
    const char *name;
    void *parent;
    void (*functions[2])(void);
    int numbers[2];
    void *arrays[2];
    size_t size; /**< of its objects */
} object_class_t;

static void __attribute__((constructor)) grow_class(void)
{
    object_class_t *class = dlsym(RTLD_DEFAULT, "ompi_proc_t_class");

    /* mpirun has no such class. */
    if (NULL != class) {
        class->size += sizeof(void *);
    }
}
