/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_port.h"

#define DN_DEVICE(name) extern const dn_device_t dn_device_##name;
#include "dn_devices.h"
#undef DN_DEVICE

/** The devices of this build; configure writes dn_devices.h. */
static const dn_device_t *const dn_devices[] = {
#define DN_DEVICE(name) &dn_device_##name,
#include "dn_devices.h"
#undef DN_DEVICE
};

#define DN_DEVICES (sizeof(dn_devices) / sizeof(dn_devices[0]))

/** The names of all devices, for an error message. */
static void dn_device_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < DN_DEVICES && used < size; i++) {
        used += (size_t) snprintf(text + used, size - used, "%s%s", 0 == i ? "" : ", ", dn_devices[i]->name);
    }
}

const char *dn_device_name(size_t i)
{
    return i < DN_DEVICES ? dn_devices[i]->name : NULL;
}

dn_status_t dn_device_attr(const dn_port_t *port, size_t i, dn_device_attr_t *attr)
{
    const dn_iface_t *iface = port->ifaces;

    while (NULL != iface && 0 != i--) {
        iface = iface->next;
    }
    if (NULL == iface) {
        return DN_ERR_RANGE;
    }
    *attr = (dn_device_attr_t){.device = iface->device->name,
                               .provider = iface->provider,
                               .domain = iface->domain,
                               .endpoint = iface->endpoint};
    return DN_OK;
}

static const dn_device_t *dn_device_find(const char *name)
{
    for (size_t i = 0; i < DN_DEVICES; i++) {
        if (0 == strcmp(dn_devices[i]->name, name)) {
            return dn_devices[i];
        }
    }
    return NULL;
}

/** Open one device, written NAME or NAME:ARGUMENT. */
static dn_status_t dn_port_open_device(dn_port_t *port, const char *spec, char *word)
{
    char names[128];
    dn_iface_t *iface = NULL;
    char *argument = strchr(word, ':');
    if (NULL != argument) {
        *argument++ = '\0';
    }
    const dn_device_t *device = dn_device_find(word);
    if (NULL == device) {
        dn_device_names(names, sizeof(names));
        dn_log_error("there is no device \"%s\" as in \"%s\"; known devices: %s", word, spec, names);
        return DN_ERR_PARAM;
    }
    dn_iface_t **last = &port->ifaces;
    while (NULL != *last) {
        if (device == (*last)->device) {
            /* Addresses name a device: a peer could not tell the two from each other. */
            dn_log_error("device %s is twice in \"%s\"; name it once", device->name, spec);
            return DN_ERR_PARAM;
        }
        last = &(*last)->next;
    }
    const dn_status_t status = device->open(port, &port->config, argument, &iface);
    if (DN_OK != status) {
        return status;
    }
    iface->device = device;
    iface->port = port;
    iface->handler = port->handler;
    iface->counters = &port->counters;
    *last = iface;
    return DN_OK;
}

dn_status_t dn_port_open_devices(dn_port_t *port, const char *spec)
{
    char *rest = NULL;
    char *list = strdup(spec);
    if (NULL == list) {
        return DN_ERR_NOMEM;
    }
    dn_status_t status = DN_OK;
    for (char *word = strtok_r(list, ",", &rest); NULL != word && DN_OK == status;
         word = strtok_r(NULL, ",", &rest)) {
        status = dn_port_open_device(port, spec, word);
        if (DN_ERR_UNSUPPORTED == status) {
            status = DN_OK;
        }
    }
    free(list);
    if (DN_OK == status && NULL == port->ifaces) {
        dn_log_error("no device of \"%s\" works here; name another", spec);
        status = '\0' == spec[0] ? DN_ERR_PARAM : DN_ERR_UNSUPPORTED;
    }
    return status;
}

void dn_port_close_devices(dn_port_t *port)
{
    dn_iface_t *iface = port->ifaces;

    port->ifaces = NULL;
    while (NULL != iface) {
        dn_iface_t *next = iface->next;
        if (port->llcm_owner != iface) {
            iface->device->close(iface);
        }
        iface = next;
    }
    if (NULL != port->llcm_owner) {
        port->llcm_owner->device->close(port->llcm_owner);
    }
}
