/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <stdlib.h>
#include <string.h>

#include "dn_log.h"
#include "dn_port.h"

dn_status_t dn_device_attr(const dn_port_t *port, size_t i, dn_device_attr_t *attr)
{
    dn_port_lock(port);
    const dn_iface_t *iface = port->ifaces;
    while (NULL != iface && 0 != i--) {
        iface = iface->next;
    }
    if (NULL != iface) {
        *attr = (dn_device_attr_t){.device = iface->device->name,
                                   .provider = iface->provider,
                                   .domain = iface->domain,
                                   .endpoint = iface->endpoint};
    }
    dn_port_unlock(port);
    return NULL == iface ? DN_ERR_RANGE : DN_OK;
}

/** Find the device that is written NAME or NAME:ARGUMENT. The caller holds no lock, as a module may have to be loaded.
 * @param[out] argument_p  ARGUMENT, within @p word, or NULL.
 * @return NULL: there is none; the log line says why. */
static const dn_device_t *dn_device_of_word(const char *spec, char *word, const char **argument_p)
{
    char *argument = strchr(word, ':');
    if (NULL != argument) {
        *argument++ = '\0';
    }
    *argument_p = argument;
    return dn_device_find(word, spec);
}

/** Open one device. */
static dn_status_t dn_port_open_device(dn_port_t *port, const char *spec, const dn_device_t *device,
                                       const char *argument)
{
    dn_iface_t *iface = NULL;
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

/** Tell a device that was opened late all that the other devices have been told. On an error the device is closed again. */
static dn_status_t dn_port_catch_up(dn_port_t *port)
{
    dn_iface_t **last = &port->ifaces;

    while (NULL != (*last)->next) {
        last = &(*last)->next;
    }
    dn_iface_t *iface = *last;
    if (NULL != iface->llcm) {
        /* The LLCM is somewhere else already. */
        dn_log_error("device %s cannot be opened late; name it in the list", iface->device->name);
        *last = NULL;
        iface->device->close(iface);
        return DN_ERR_UNSUPPORTED;
    }
    iface->llcm = port->llcm.base;
    dn_port_give_bell(port, iface);
    /* The first group is the port's own, which the device knows. */
    for (uint32_t i = 1; i < port->groups && NULL != iface->device->admitted; i++) {
        iface->device->admitted(iface, &port->group[i]);
    }
    return DN_OK;
}

dn_status_t dn_device_open(dn_port_t *port, const char *spec)
{
    char why[DN_SENTENCE_MAX] = "";
    char *word = strdup(spec);
    if (NULL == word) {
        return DN_ERR_NOMEM;
    }
    const char *argument;
    const dn_device_t *device = dn_device_of_word(spec, word, &argument);
    if (NULL == device) {
        free(word);
        return DN_ERR_PARAM;
    }
    dn_port_lock(port);
    dn_log_keep(why);
    dn_status_t status = dn_port_open_device(port, spec, device, argument);
    dn_log_keep(NULL);
    if (DN_ERR_UNSUPPORTED == status && '\0' != why[0]) {
        dn_log_error("%s", why);
    }
    if (DN_OK == status) {
        status = dn_port_catch_up(port);
    }
    dn_port_unlock(port);
    free(word);
    return status;
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
        const char *argument;
        const dn_device_t *device = dn_device_of_word(spec, word, &argument);
        status = NULL == device ? DN_ERR_PARAM : dn_port_open_device(port, spec, device, argument);
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

/** Take the peers of a device off the port's list. @return the first of them; dn_peer_base_t::next leads to the next one. */
static dn_peer_base_t *dn_port_take_peers(dn_port_t *port, const dn_iface_t *iface)
{
    dn_peer_base_t *peer, *taken = NULL, **at = &port->peers;

    while (NULL != (peer = *at)) {
        if (iface != peer->iface) {
            at = &peer->next;
            continue;
        }
        *at = peer->next;
        peer->next = taken;
        taken = peer;
    }
    return taken;
}

static void dn_port_close_device(dn_port_t *port, dn_iface_t *iface)
{
    (void) port;
    iface->device->close(iface);
}

static void dn_port_close_copy(dn_port_t *port, dn_iface_t *iface)
{
    if (NULL != iface->device->close_copy) {
        iface->device->close_copy(iface, dn_port_take_peers(port, iface));
    }
}

/** Close all devices, the owner of the LLCM last. */
static void dn_port_close_each(dn_port_t *port, void (*close)(dn_port_t *port, dn_iface_t *iface))
{
    dn_iface_t *iface = port->ifaces;

    port->ifaces = NULL;
    while (NULL != iface) {
        dn_iface_t *next = iface->next;
        if (port->llcm_owner != iface) {
            close(port, iface);
        }
        iface = next;
    }
    if (NULL != port->llcm_owner) {
        close(port, port->llcm_owner);
    }
}

void dn_port_close_copies(dn_port_t *port)
{
    dn_port_close_each(port, dn_port_close_copy);
}

void dn_port_close_devices(dn_port_t *port)
{
    dn_port_close_each(port, dn_port_close_device);
    /* The library may be unloaded next. */
    dn_bell_enroll_wait();
}
