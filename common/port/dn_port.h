/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_port.h
 * Inside of a port, for the files of floor 2.
 */
#ifndef DN_PORT_H
#define DN_PORT_H

#include <pthread.h>

#include "dn_auth.h"
#include "dn_core.h"
#include "dn_device.h"
#include "fault/dn_fault.h"

struct dn_segment {
    dn_port_t *port;
    void *base;
    dn_key_t key;
    dn_iface_t *owner; /**< device that allocated the memory; NULL: see mapped */
    int mapped;        /**< not 0: anonymous memory of ours, to be unmapped */
    int live;
    dn_segment_t *next_free;
};

/** Segments by SID; entries are used again with the next generation. */
typedef struct dn_segment_table {
    dn_segment_t **entry;
    uint32_t count;
    uint32_t room;
    dn_segment_t *free;
} dn_segment_table_t;

/** LLCM in units of a line; a set bit is taken. */
typedef struct dn_llcm {
    uint8_t *base;
    uint32_t units;
    uint64_t *taken;
} dn_llcm_t;

/** The function of a channel that hears of lost peers; fn NULL: none. */
typedef struct dn_lost {
    dn_lost_fn_t fn;
    void *arg;
} dn_lost_t;

struct dn_port {
    dn_iface_t *ifaces;
    dn_core_t core;
    dn_fault_t *fault;
    int threads;
    dn_handler_t handler[DN_CHAN_MAX];
    dn_lost_t lost[DN_CHAN_MAX];
    dn_counters_t counters;
    uint64_t events; /**< that dn_progress() and dn_recv() have returned; a thread-safe port may lose some */
    dn_peer_base_t *peers;
    pthread_mutex_t lock; /**< recursive; taken only with threads */
    unsigned depth;       /**< of the lock, where it is taken */
    uint32_t *
        bell; /**< dn_bell() of the devices that dn_open() has opened, for threads that must not wait for the lock */
    dn_job_t job;
    dn_config_t config;
    char *provider_include, *provider_exclude; /**< the config's */
    uint64_t nonce[2];
    dn_auth_group_t auth; /**< of the own group, in place of job.key */
    dn_pgid_t *group;     /**< let in */
    uint32_t groups;
    uint32_t strangers; /**< dn_strangers() */
    dn_llcm_t llcm;
    void *llcm_memory;      /**< of it, NULL: a device's */
    dn_iface_t *llcm_owner; /**< whose it is then */
    dn_segment_table_t segments;
};

/** The device of a name in the list @p spec: of this build, added, or of a module, which is loaded (dn_module.c). NULL: the log
 * line says why. */
const dn_device_t *dn_device_find(const char *name, const char *spec);

/** @name dn_device.c: the devices that a port has opened */
/** @{ */
/** Open every device of a list, as dn_open() takes it; those that do not work on this machine are passed over.
 * Errors are logged; what was open by then stays so, for dn_port_close_devices(). */
dn_status_t dn_port_open_devices(dn_port_t *port, const char *spec);
/** Close all; last that whose memory the LLCM is, as threads of the others write to it until they are
 * closed. */
void dn_port_close_devices(dn_port_t *port);
/** @} */

/** @name dn_address.c: what a process says of how it is reached */
/** @{ */
/** Start of an address; the parts of the devices follow. */
typedef struct dn_address_head {
    uint32_t magic;
    uint16_t version;
    uint16_t len; /**< of the whole address */
    dn_pgid_t pgid;
    uint64_t nonce[2];
    uint32_t pid;
    uint32_t parts;
    uint32_t first; /**< dn_config_t::first */
    uint32_t pad;
} dn_address_head_t;

/** Check the head of an address of @p len bytes. Errors are logged. */
dn_status_t dn_address_read(const void *address, size_t len, dn_address_head_t *head);
/** The part of a device in an address whose head is checked: *part_p NULL when there is none. DN_ERR_PROTO:
 * malformed. */
dn_status_t dn_address_find(const void *address, const dn_address_head_t *head, const char *device,
                            const void **part_p, size_t *len_p);
/** @} */

/** As dn_progress(), but look at everything. @return events; -1: not here, as another thread receives, or others wait for the lock
 * that this one holds. */
int dn_port_poll_all(dn_port_t *port);

/** A number that changes when something has come by this port. The lock is held. */
uint64_t dn_port_heard(const dn_port_t *port);
/** Take the lock, unless another thread has it. @return 0: it has. */
int dn_port_trylock(dn_port_t *port);

/** A live segment of this process, or NULL. */
dn_segment_t *dn_segment_find(dn_port_t *port, uint32_t sid, uint32_t generation);
void dn_segment_free_all(dn_port_t *port);

dn_status_t dn_llcm_open(dn_llcm_t *llcm, void *base, uint32_t bytes);
void dn_llcm_close(dn_llcm_t *llcm);

#endif
