/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file
 * The devices that there are: the devices of this build, the devices that the program has added, and modules. A module is found
 * by the name of its file, and loaded when a list of devices names it.
 *
 * A module stays for the life of the process, since it is not known when the last thread has left its code. The list of modules
 * only grows. No other lock is taken under its lock: the lock is not held while a module loads, which runs foreign code under the
 * loader's lock. Two threads that load the same module get the same device.
 */
#include "dn_config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_port.h"

#define DN_DEVICE(name) extern const dn_device_t dn_device_##name;
#include "dn_devices.h"
#undef DN_DEVICE

/** The devices of this build; configure writes dn_devices.h. */
static const dn_device_t *const dn_module_built_in[] = {
#define DN_DEVICE(name) &dn_device_##name,
#include "dn_devices.h"
#undef DN_DEVICE
};

#define DN_MODULE_BUILT_IN (sizeof(dn_module_built_in) / sizeof(dn_module_built_in[0]))

static const dn_device_t *dn_module_built_in_find(const char *name)
{
    for (size_t i = 0; i < DN_MODULE_BUILT_IN; i++) {
        if (0 == strcmp(dn_module_built_in[i]->name, name)) {
            return dn_module_built_in[i];
        }
    }
    return NULL;
}

#define DN_MODULE_PREFIX "dn_device_"
#define DN_MODULE_SUFFIX ".so"
#define DN_MODULE_SYMBOL "dn_device_module"

/** The entry of a device that is not built in. It is never freed. */
typedef struct dn_module {
    struct dn_module *next;
    const dn_device_t *device; /**< NULL: file is still to be loaded */
    char *file;                /**< NULL: the program added it */
    char name[DN_DEVICE_NAME_MAX + 1];
} dn_module_t;

static pthread_mutex_t dn_module_lock = PTHREAD_MUTEX_INITIALIZER;
/** @name Under the lock */
/** @{ */
static dn_module_t *dn_module_first;
static int dn_module_looked; /**< into the folders, once at least */

static dn_module_t *dn_module_get(const char *name)
{
    dn_module_t *module = dn_module_first;
    while (NULL != module && 0 != strcmp(module->name, name)) {
        module = module->next;
    }
    return module;
}

/** Make an entry for a device that has none. @param file  Becomes the entry's. @return NULL: memory ran out. */
static dn_module_t *dn_module_enter(const char *name, char *file)
{
    dn_module_t **last = &dn_module_first;
    dn_module_t *module = calloc(1, sizeof(*module));
    if (NULL == module) {
        return NULL;
    }
    snprintf(module->name, sizeof(module->name), "%s", name);
    module->file = file;
    while (NULL != *last) {
        last = &(*last)->next;
    }
    *last = module;
    return module;
}
/** @} */

/** Folders of modules, separated by colons. The caller frees the string. NULL: memory ran out. */
static char *dn_module_folders(void)
{
    const char *named = secure_getenv("DN_DEVICE_PATH");
    char *folders = NULL;

    return 0 > asprintf(&folders, "%s%s%s", NULL == named ? "" : named, NULL == named ? "" : ":",
                        DN_DEVICE_DIR)
               ? NULL
               : folders;
}

/** The length of the device's name in the name of a module's file; 0: the file is no module. */
static size_t dn_module_name_len(const char *file)
{
    const size_t around = strlen(DN_MODULE_PREFIX) + strlen(DN_MODULE_SUFFIX);
    const size_t len = strlen(file);

    return len > around && len <= around + DN_DEVICE_NAME_MAX
                   && 0 == strncmp(file, DN_MODULE_PREFIX, strlen(DN_MODULE_PREFIX))
                   && 0 == strcmp(file + len - strlen(DN_MODULE_SUFFIX), DN_MODULE_SUFFIX)
               ? len - around
               : 0;
}

static int dn_module_is_file(const struct dirent *entry)
{
    return 0 != dn_module_name_len(entry->d_name);
}

static void dn_module_look_into(const char *folder)
{
    struct dirent **entry = NULL;
    const int count = scandir(folder, &entry, dn_module_is_file, alphasort);

    for (int i = 0; i < count; i++) {
        const char *file = entry[i]->d_name;
        char name[DN_DEVICE_NAME_MAX + 1];
        char *path = NULL;
        snprintf(name, sizeof(name), "%.*s", (int) dn_module_name_len(file), file + strlen(DN_MODULE_PREFIX));
        if (NULL != dn_module_built_in_find(name) || 0 > asprintf(&path, "%s/%s", folder, file)) {
            path = NULL;
        }
        pthread_mutex_lock(&dn_module_lock);
        if (NULL != path && NULL == dn_module_get(name) && NULL != dn_module_enter(name, path)) {
            path = NULL; /* the entry's */
        }
        pthread_mutex_unlock(&dn_module_lock);
        free(path);
        free(entry[i]);
    }
    free(entry);
}

/** Make entries for the modules of all folders. Of two modules with one name the first counts. */
static void dn_module_look(void)
{
    char *rest = NULL;
    char *folders = dn_module_folders();

    for (char *folder = NULL == folders ? NULL : strtok_r(folders, ":", &rest); NULL != folder;
         folder = strtok_r(NULL, ":", &rest)) {
        dn_module_look_into(folder);
    }
    free(folders);
    pthread_mutex_lock(&dn_module_lock);
    dn_module_looked = 1;
    pthread_mutex_unlock(&dn_module_lock);
}

/** Is this a device that this library can use? If not, the log line says why. */
static dn_status_t dn_module_check(const dn_device_module_t *module, const char *file)
{
    const dn_device_module_t own = DN_DEVICE_MODULE_INIT(*dn_module_built_in[0]);
    const dn_device_t *device = module->device;

    if (own.version != module->version) {
        dn_log_error("%s was built for version %" PRIu32
                     " of the device interface, and libdimmnet has %" PRIu32 "; build it again",
                     file, module->version, own.version);
        return DN_ERR_VERSION;
    }
    if (0 != memcmp(own.size, module->size, sizeof(own.size))) {
        dn_log_error("%s was built with other headers than libdimmnet; build it again", file);
        return DN_ERR_VERSION;
    }
    if (NULL == device || NULL == device->name || NULL == device->open || NULL == device->close
        || NULL == device->address || NULL == device->connect || NULL == device->disconnect
        || NULL == device->release || NULL == device->progress || NULL == device->recv
        || NULL == device->check) {
        dn_log_error("%s lacks an entry that each device has (dn_device.h)", file);
        return DN_ERR_PARAM;
    }
    if ('\0' == device->name[0] || DN_DEVICE_NAME_MAX < strlen(device->name)) {
        dn_log_error("%s has the name \"%s\"; it must have 1 to %d letters", file, device->name,
                     DN_DEVICE_NAME_MAX);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

/** The device of a module. NULL: the log line says why. */
static const dn_device_t *dn_module_load(const char *name, const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (NULL == handle) {
        dn_log_error("device %s is not loaded: %s", name, dlerror());
        return NULL;
    }
    const dn_device_module_t *module = dlsym(handle, DN_MODULE_SYMBOL);
    if (NULL == module) {
        dn_log_error("%s is no device: it does not export " DN_MODULE_SYMBOL, file);
    } else if (DN_OK == dn_module_check(module, file)) {
        if (0 == strcmp(module->device->name, name)) {
            return module->device;
        }
        dn_log_error("%s holds the device %s; rename it", file, module->device->name);
    }
    dlclose(handle);
    return NULL;
}

/** Log that there is no device of this name, and where it was looked for. */
static void dn_module_unknown(const char *name, const char *spec)
{
    char names[128] = "";
    char *folders = dn_module_folders();
    size_t used = 0;

    for (size_t i = 0; NULL != dn_device_name(i) && used < sizeof(names); i++) {
        used += (size_t) snprintf(names + used, sizeof(names) - used, "%s%s", 0 == i ? "" : ", ",
                                  dn_device_name(i));
    }
    dn_log_error("there is no device \"%s\" as in \"%s\"; known devices: %s; no " DN_MODULE_PREFIX
                 "%s" DN_MODULE_SUFFIX " is in %s",
                 name, spec, names, name, NULL == folders ? DN_DEVICE_DIR : folders);
    free(folders);
}

/** Set the device of an entry, unless the entry has one already. @return the entry's device. */
static const dn_device_t *dn_module_settle(dn_module_t *module, const dn_device_t *device)
{
    pthread_mutex_lock(&dn_module_lock);
    if (NULL == module->device) {
        module->device = device;
    }
    device = module->device;
    pthread_mutex_unlock(&dn_module_lock);
    return device;
}

static dn_module_t *dn_module_find(const char *name)
{
    pthread_mutex_lock(&dn_module_lock);
    dn_module_t *module = dn_module_get(name);
    pthread_mutex_unlock(&dn_module_lock);
    return module;
}

/** Find the entry of a name. Where there is none, look in the folders as they are now. */
static dn_module_t *dn_module_seek(const char *name)
{
    dn_module_t *module = dn_module_find(name);
    if (NULL == module) {
        dn_module_look();
        module = dn_module_find(name);
    }
    return module;
}

int dn_device_known(const char *name)
{
    return NULL != dn_module_built_in_find(name) || NULL != dn_module_seek(name);
}

const dn_device_t *dn_device_find(const char *name, const char *spec)
{
    const dn_device_t *device = dn_module_built_in_find(name);
    if (NULL != device) {
        return device;
    }
    dn_module_t *module = dn_module_seek(name);
    if (NULL == module) {
        dn_module_unknown(name, spec);
        return NULL;
    }
    device = dn_module_settle(module, NULL);
    if (NULL == device) {
        device = dn_module_load(name, module->file);
    }
    return NULL == device ? NULL : dn_module_settle(module, device);
}

dn_status_t dn_device_add(const dn_device_module_t *added)
{
    const dn_device_t *device = added->device;
    const dn_device_t *there = NULL;
    const dn_status_t status = dn_module_check(added, "a device that is added");
    if (DN_OK != status) {
        return status;
    }
    there = dn_module_built_in_find(device->name);
    if (NULL == there) {
        pthread_mutex_lock(&dn_module_lock);
        dn_module_t *module = dn_module_get(device->name);
        if (NULL == module) {
            module = dn_module_enter(device->name, NULL);
        }
        if (NULL != module && NULL == module->device) {
            /* Under the lock: whoever finds an entry without a device loads its file. */
            module->device = device;
        }
        there = NULL == module ? NULL : module->device;
        pthread_mutex_unlock(&dn_module_lock);
        if (NULL == there) {
            return DN_ERR_NOMEM;
        }
    }
    if (device != there) {
        dn_log_error("there is a device %s already; give the one that is added another name", device->name);
        return DN_ERR_PARAM;
    }
    return DN_OK;
}

const char *dn_device_name(size_t i)
{
    if (i < DN_MODULE_BUILT_IN) {
        return dn_module_built_in[i]->name;
    }
    pthread_mutex_lock(&dn_module_lock);
    const int looked = dn_module_looked;
    pthread_mutex_unlock(&dn_module_lock);
    if (!looked) {
        dn_module_look();
    }
    pthread_mutex_lock(&dn_module_lock);
    const dn_module_t *module = dn_module_first;
    for (i -= DN_MODULE_BUILT_IN; NULL != module && 0 != i; i--) {
        module = module->next;
    }
    pthread_mutex_unlock(&dn_module_lock);
    return NULL == module ? NULL : module->name;
}
