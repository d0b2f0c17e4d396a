/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file count_names.c
 * To be loaded before a rank's libraries: counts what it publishes by PMIx, withdraws, and looks up, and says so when the rank ends.
 */
#include "dn_config.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef int (*publish_fn_t)(const void *info, size_t count);
typedef int (*unpublish_fn_t)(char **names, const void *info, size_t count);
typedef int (*lookup_fn_t)(void *found, size_t found_count, const void *info, size_t count);

__attribute__((visibility("default"))) int PMIx_Publish(const void *info, size_t count);
__attribute__((visibility("default"))) int PMIx_Unpublish(char **names, const void *info, size_t count);
__attribute__((visibility("default"))) int PMIx_Lookup(void *found, size_t found_count, const void *info,
                                                       size_t count);

static unsigned published, withdrawn, looks;

int PMIx_Publish(const void *info, size_t count)
{
    const int status = ((publish_fn_t) dlsym(RTLD_NEXT, "PMIx_Publish"))(info, count);

    published += 0 == status;
    return status;
}

int PMIx_Unpublish(char **names, const void *info, size_t count)
{
    const int status = ((unpublish_fn_t) dlsym(RTLD_NEXT, "PMIx_Unpublish"))(names, info, count);

    withdrawn += 0 == status;
    return status;
}

int PMIx_Lookup(void *found, size_t found_count, const void *info, size_t count)
{
    looks++;
    return ((lookup_fn_t) dlsym(RTLD_NEXT, "PMIx_Lookup"))(found, found_count, info, count);
}

static void __attribute__((destructor)) say(void)
{
    /* Also in launchers and shells, which have no names. */
    if (0 != published + withdrawn + looks) {
        printf("names: %u published, %u withdrawn, %u looks\n", published, withdrawn, looks);
    }
}
