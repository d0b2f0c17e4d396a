/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * libfabric is loaded when the device is opened, and not linked. Libraries
 * below libfabric take 0.2 s to start: that of InfiniPath measures its clock. If libfabric were linked, a process that
 * uses other devices only would spend that time, too.
 */
#include "dn_config.h"

#include "dn_ofi_int.h"

#include <dlfcn.h>
#include <string.h>

#define DN_OFI_LIBRARY "libfabric.so.1"

static dn_ofi_lib_t dn_ofi_lib;
static pthread_mutex_t dn_ofi_lib_lock = PTHREAD_MUTEX_INITIALIZER;

/** Look up a function. @return 0: the library does not have it. */
static int dn_ofi_lib_find(void *library, const char *name, void *function, size_t size)
{
    void *const symbol = dlsym(library, name);

    memcpy(function, &symbol, size);
    return NULL != symbol;
}

/** Load libfabric, and look up its functions. @return what is wrong; NULL: nothing. */
static const char *dn_ofi_lib_open(dn_ofi_lib_t *lib)
{
    /* The library stays loaded: its own threads may run, and other libraries may use it. */
    void *library = dlopen(DN_OFI_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (NULL == library) {
        return dlerror();
    }
    if (!dn_ofi_lib_find(library, "fi_version", &lib->version, sizeof(lib->version))
        || !dn_ofi_lib_find(library, "fi_getinfo", &lib->getinfo, sizeof(lib->getinfo))
        || !dn_ofi_lib_find(library, "fi_freeinfo", &lib->freeinfo, sizeof(lib->freeinfo))
        || !dn_ofi_lib_find(library, "fi_dupinfo", &lib->dupinfo, sizeof(lib->dupinfo))
        || !dn_ofi_lib_find(library, "fi_strerror", &lib->strerror, sizeof(lib->strerror))
        || !dn_ofi_lib_find(library, "fi_fabric", &lib->fabric, sizeof(lib->fabric))) {
        return DN_OFI_LIBRARY " lacks a function";
    }
    if (FI_VERSION_LT(lib->version(), FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION))) {
        return DN_OFI_LIBRARY " is older than the one that dimmnet was built with";
    }
    return NULL;
}

const dn_ofi_lib_t *dn_ofi_lib_load(const char **wrong_p)
{
    dn_ofi_lib_t lib = {0};

    *wrong_p = NULL;
    pthread_mutex_lock(&dn_ofi_lib_lock);
    if (NULL == dn_ofi_lib.fabric) {
        *wrong_p = dn_ofi_lib_open(&lib);
        if (NULL == *wrong_p) {
            dn_ofi_lib = lib;
        }
    }
    pthread_mutex_unlock(&dn_ofi_lib_lock);
    return NULL == *wrong_p ? &dn_ofi_lib : NULL;
}
