/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include <string.h>

#include "dn_log.h"
#include "dn_port.h"

#define DN_ADDRESS_MAGIC 0x61646e64u /* "dnda" */
/** The head of a device's part of an address. The bytes of the part follow. */
typedef struct dn_address_part {
    char device[DN_DEVICE_NAME_MAX];
    uint32_t len;
    uint32_t pad;
} dn_address_part_t;

/** Write the parts of all devices behind a head. */
static dn_status_t dn_address_parts(const dn_port_t *port, uint8_t *bytes, dn_address_head_t *head)
{
    size_t used = sizeof(*head);

    for (const dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        dn_address_part_t part = {.len = 0};
        if (sizeof(part) > DN_ADDRESS_MAX - used) {
            return DN_ERR_RANGE;
        }
        size_t room = DN_ADDRESS_MAX - used - sizeof(part);
        const dn_status_t status = iface->device->address(iface, bytes + used + sizeof(part), &room);
        if (DN_OK != status) {
            return status;
        }
        memcpy(part.device, iface->device->name, strnlen(iface->device->name, sizeof(part.device)));
        part.len = (uint32_t) room;
        memcpy(bytes + used, &part, sizeof(part));
        used += sizeof(part) + room;
        head->parts++;
    }
    head->len = (uint16_t) used;
    return DN_OK;
}

dn_status_t dn_address(const dn_port_t *port, void *buf, size_t *len)
{
    uint8_t bytes[DN_ADDRESS_MAX];
    dn_address_head_t head = {
        .magic = DN_ADDRESS_MAGIC,
        .version = DN_WIRE_VERSION,
        .pgid = port->auth.pgid,
        .nonce = {port->nonce[0], port->nonce[1]},
        .pid = port->job.pid,
        .first = port->config.first,
    };

    dn_port_lock(port);
    const dn_status_t status = dn_address_parts(port, bytes, &head);
    dn_port_unlock(port);
    if (DN_OK != status) {
        return status;
    }
    memcpy(bytes, &head, sizeof(head));
    const size_t size = *len;
    *len = head.len;
    if (head.len > size) {
        return DN_ERR_RANGE;
    }
    memcpy(buf, bytes, head.len);
    return DN_OK;
}

dn_status_t dn_address_read(const void *address, size_t len, dn_address_head_t *head)
{
    if (sizeof(*head) > len) {
        dn_log_error("an address of %zu bytes is too short to be one of dimmnet", len);
        return DN_ERR_PROTO;
    }
    memcpy(head, address, sizeof(*head));
    if (__builtin_bswap32(DN_ADDRESS_MAGIC) == head->magic) {
        dn_log_error("an address is of a host with another byte order; run a job on hosts of one byte order");
        return DN_ERR_PROTO;
    }
    if (DN_ADDRESS_MAGIC != head->magic) {
        dn_log_error("bytes given as an address are not one of dimmnet");
        return DN_ERR_PROTO;
    }
    if (DN_WIRE_VERSION != head->version) {
        dn_log_error(
            "an address is of version %u of dimmnet, this process of version %d; install the same everywhere",
            (unsigned) head->version, DN_WIRE_VERSION);
        return DN_ERR_VERSION;
    }
    if (head->len != len) {
        dn_log_error("an address says it has %u bytes and has %zu", (unsigned) head->len, len);
        return DN_ERR_PROTO;
    }
    return DN_OK;
}

dn_status_t dn_address_find(const void *address, const dn_address_head_t *head, const char *device,
                            const void **part_p, size_t *len_p)
{
    const uint8_t *bytes = address;
    size_t at = sizeof(*head);
    char name[DN_DEVICE_NAME_MAX + 1] = "";

    *part_p = NULL;
    for (uint32_t i = 0; i < head->parts; i++) {
        dn_address_part_t part;
        if (sizeof(part) > head->len - at) {
            return DN_ERR_PROTO;
        }
        memcpy(&part, bytes + at, sizeof(part));
        at += sizeof(part);
        if (part.len > head->len - at) {
            return DN_ERR_PROTO;
        }
        memcpy(name, part.device, sizeof(part.device));
        if (0 == strcmp(name, device)) {
            *part_p = bytes + at;
            *len_p = part.len;
        }
        at += part.len;
    }
    return at == head->len ? DN_OK : DN_ERR_PROTO;
}

dn_status_t dn_address_pgid(const void *address, size_t len, dn_pgid_t *pgid_p)
{
    dn_address_head_t head;
    const dn_status_t status = dn_address_read(address, len, &head);
    if (DN_OK == status) {
        *pgid_p = head.pgid;
    }
    return status;
}

dn_status_t dn_pgid(const dn_group_key_t *key, dn_pgid_t *pgid_p)
{
    dn_auth_group_t group;
    const dn_status_t status = dn_auth_group(key, &group);
    if (DN_OK == status) {
        *pgid_p = group.pgid;
    }
    dn_auth_wipe(&group, sizeof(group));
    return status;
}
