/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#include "dn_config.h"

#include "dn_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int dn_memory_is_counted(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
    int policy = 0;

    if (NULL != file) {
        if (1 != fscanf(file, "%d", &policy)) {
            policy = 0;
        }
        fclose(file);
    }
    return 2 == policy;
}

/** Make room for one more entry in the table. */
static dn_status_t dn_segment_grow(dn_segment_table_t *table, uint32_t first)
{
    if (table->count == table->room) {
        const uint32_t room = 0 == table->room ? 64 : 2 * table->room;
        dn_segment_t **entry = realloc(table->entry, room * sizeof(*entry));
        if (NULL == entry) {
            return DN_ERR_NOMEM;
        }
        table->entry = entry;
        table->room = room;
    }
    dn_segment_t *segment = calloc(1, sizeof(*segment));
    if (NULL == segment) {
        return DN_ERR_NOMEM;
    }
    segment->key.sid = table->count;
    segment->key.generation = first;
    table->entry[table->count++] = segment;
    segment->next_free = table->free;
    table->free = segment;
    return DN_OK;
}

/** Take a free entry of the table, with its next generation. The segment is not live yet. */
static dn_segment_t *dn_segment_entry(dn_port_t *port, uint64_t len)
{
    dn_segment_table_t *table = &port->segments;

    if (NULL == table->free && DN_OK != dn_segment_grow(table, port->config.first)) {
        return NULL;
    }
    dn_segment_t *segment = table->free;
    table->free = segment->next_free;
    segment->port = port;
    segment->owner = NULL;
    segment->mapped = 0;
    /* Never 0, which says that a segment is gone (dn_shm_segment_head_t). */
    const uint32_t generation = segment->key.generation + (UINT32_MAX == segment->key.generation ? 2 : 1);
    segment->key = (dn_key_t){.sid = segment->key.sid, .generation = generation, .len = len};
    return segment;
}

static void dn_segment_give(dn_segment_t *segment)
{
    dn_segment_table_t *table = &segment->port->segments;
    segment->next_free = table->free;
    table->free = segment;
}

/** Have every device write into the key how its peers reach memory that the device did not allocate. */
static void dn_segment_describe(dn_port_t *port, dn_segment_t *segment)
{
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        if (iface != segment->owner && NULL != iface->device->segment_register) {
            iface->device->segment_register(iface, segment->base, &segment->key);
        }
    }
}

dn_status_t dn_segment_register(dn_port_t *port, void *base, uint64_t len, dn_segment_t **segment_p)
{
    dn_port_lock(port);
    dn_segment_t *segment = dn_segment_entry(port, len);
    if (NULL != segment) {
        segment->base = base;
        dn_segment_describe(port, segment);
        segment->live = 1;
        *segment_p = segment;
    }
    dn_port_unlock(port);
    return NULL == segment ? DN_ERR_NOMEM : DN_OK;
}

/** Allocate private memory for a segment where no device has memory that peers can map. */
static dn_status_t dn_segment_private(dn_segment_t *segment)
{
    segment->base = mmap(NULL, segment->key.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == segment->base) {
        return DN_ERR_NOMEM;
    }
    segment->mapped = 1;
    return DN_OK;
}

/** Allocate memory for a segment from the first device whose memory its peers can map. */
static dn_status_t dn_segment_shared(dn_port_t *port, dn_segment_t *segment)
{
    dn_status_t status = DN_ERR_UNSUPPORTED;

    for (dn_iface_t *iface = port->ifaces; NULL != iface && DN_ERR_UNSUPPORTED == status;
         iface = iface->next) {
        if (NULL != iface->device->segment_alloc) {
            status = iface->device->segment_alloc(iface, segment->key.len, &segment->base, &segment->key);
            segment->owner = DN_OK == status ? iface : NULL;
        }
    }
    return status;
}

dn_status_t dn_segment_alloc(dn_port_t *port, uint64_t len, dn_segment_t **segment_p)
{
    if (0 == len) {
        return DN_ERR_PARAM;
    }
    dn_port_lock(port);
    dn_segment_t *segment = dn_segment_entry(port, len);
    if (NULL == segment) {
        dn_port_unlock(port);
        return DN_ERR_NOMEM;
    }
    dn_status_t status = dn_segment_shared(port, segment);
    if (DN_ERR_UNSUPPORTED == status) {
        status = dn_segment_private(segment);
    }
    if (DN_OK == status) {
        dn_segment_describe(port, segment);
        segment->live = 1;
        *segment_p = segment;
    } else {
        dn_segment_give(segment);
    }
    dn_port_unlock(port);
    return status;
}

/** Unmap the memory of a segment, unless it is the caller's. */
static void dn_segment_unmap(const dn_segment_t *segment)
{
    if (NULL != segment->owner) {
        segment->owner->device->segment_release(segment->owner, segment->base, &segment->key);
    } else if (segment->mapped) {
        munmap(segment->base, segment->key.len);
    }
}

void dn_segment_free(dn_segment_t *segment)
{
    dn_port_t *port = segment->port;

    dn_port_lock(port);
    segment->live = 0;
    for (dn_iface_t *iface = port->ifaces; NULL != iface; iface = iface->next) {
        if (iface != segment->owner && NULL != iface->device->segment_unregister) {
            iface->device->segment_unregister(iface, &segment->key);
        }
    }
    dn_segment_unmap(segment);
    dn_segment_give(segment);
    dn_port_unlock(port);
}

void *dn_segment_base(const dn_segment_t *segment)
{
    return segment->base;
}

void dn_segment_key(const dn_segment_t *segment, dn_key_t *key_p)
{
    *key_p = segment->key;
}

dn_segment_t *dn_segment_find(dn_port_t *port, uint32_t sid, uint32_t generation)
{
    /* Equal tells a stale key, which is its holder's error, until the SID has been used 2^32 times since. */
    dn_segment_table_t *table = &port->segments;
    if (sid >= table->count) {
        return NULL;
    }
    dn_segment_t *segment = table->entry[sid];
    return segment->live && segment->key.generation == generation ? segment : NULL;
}

int dn_port_segment(dn_port_t *port, uint32_t sid, uint32_t generation, uint8_t **base_p, uint64_t *len_p)
{
    const dn_segment_t *segment = dn_segment_find(port, sid, generation);
    if (NULL == segment) {
        return 0;
    }
    *base_p = segment->base;
    *len_p = segment->key.len;
    return 1;
}

void dn_segment_free_all(dn_port_t *port)
{
    dn_segment_table_t *table = &port->segments;
    const int copy = dn_port_is_copy(port);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->entry[i]->live && copy) {
            /* The devices do not take back what peers were told. */
            dn_segment_unmap(table->entry[i]);
        } else if (table->entry[i]->live) {
            dn_segment_free(table->entry[i]);
        }
        free(table->entry[i]);
    }
    free(table->entry);
}

dn_status_t dn_segment_map(dn_peer_t *hot, const dn_key_t *key, void **base_p)
{
    dn_peer_base_t *peer = (dn_peer_base_t *) hot;
    dn_status_t status = DN_ERR_UNSUPPORTED;

    dn_port_lock(peer->iface->port);
    if (NULL != peer->iface->device->map && DN_PEER_LOST != peer->life) {
        status = peer->iface->device->map(peer, key, base_p);
    }
    dn_port_unlock(peer->iface->port);
    return status;
}
