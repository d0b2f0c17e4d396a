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
    dn_iface_t *owner; /**< device that allocated the memory; NULL: none, see `mapped` */
    int mapped;        /**< not 0: anonymous memory that this library has to unmap */
    int live;
    dn_segment_t *next_free;
};

/** Segments by SID. An entry is used again with the next generation. */
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

/** The function of a channel that is called for lost peers; fn NULL: none. */
typedef struct dn_lost {
    dn_lost_fn_t fn;
    void *arg;
} dn_lost_t;

struct dn_port {
    dn_iface_t *ifaces;
    dn_core_t core;
    dn_fault_t *fault;
    int threads;
    pid_t process; /**< the one that has opened the port */
    dn_handler_t handler[DN_CHAN_MAX];
    dn_lost_t lost[DN_CHAN_MAX];
    dn_counters_t counters;
    uint64_t events; /**< sum of what dn_progress() and dn_recv() returned; threads may lose some */
    dn_peer_base_t *peers;
    pthread_mutex_t lock; /**< recursive; taken only where `threads` is set */
    unsigned depth;       /**< depth of the lock, where it is taken */
    /** Of dn_core_peer_t::its of all peers, which threads of devices use without the port's lock. Always taken, and the last lock that is
     * taken: neither the port's lock nor a device's is taken under it. No byte of a transfer moves under it */
    pthread_mutex_t programs;
    uint32_t own_bell; /**< the bell, where no device has one that peers ring themselves */
    uint32_t *bell;    /**< dn_bell(); it stays the same from dn_open() on */
    dn_job_t job;
    dn_config_t config;
    char *provider_include, *provider_exclude; /**< copies of the strings of `config` */
    uint64_t nonce[2];
    dn_auth_group_t auth; /**< of this process's group, in place of job.key */
    dn_pgid_t *group;     /**< admitted groups */
    uint32_t groups;
    uint32_t strangers; /**< dn_strangers() */
    dn_llcm_t llcm;
    void *llcm_memory;      /**< memory of the LLCM; NULL: it belongs to a device */
    dn_iface_t *llcm_owner; /**< that device */
    dn_segment_table_t segments;
};

/** Find the device of a name in the list @p spec: a device of this build, an added device, or the device of a module, which is loaded
 * (dn_module.c). NULL: there is none; the log line says why. */
const dn_device_t *dn_device_find(const char *name, const char *spec);

/** @name dn_device.c: the devices that a port has opened */
/** @{ */
/** Open every device of a list, written as for dn_open(). Devices that do not work on this machine are passed over. Errors are logged.
 * After an error, devices that are open stay open: the caller calls dn_port_close_devices(). */
dn_status_t dn_port_open_devices(dn_port_t *port, const char *spec);
/** Close all devices. The device that owns the memory of the LLCM is closed last: threads of other devices write to the LLCM until
 * these devices are closed. */
void dn_port_close_devices(dn_port_t *port);
/** As dn_port_close_devices(), for the copy of a child of fork(). */
void dn_port_close_copies(dn_port_t *port);
/** @} */

/** @name dn_address.c: addresses, by which other processes reach this process */
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

/** Read and check the head of an address of @p len bytes. Errors are logged. */
dn_status_t dn_address_read(const void *address, size_t len, dn_address_head_t *head);
/** Find the part of a device in an address whose head is checked. *part_p is NULL where there is none. DN_ERR_PROTO: the address is
 * malformed. */
dn_status_t dn_address_find(const void *address, const dn_address_head_t *head, const char *device,
                            const void **part_p, size_t *len_p);
/** @} */

/** Does a device ring this process's bell now (dn_device_t::rings)? The lock is held. */
static inline int dn_port_rings(const dn_iface_t *iface)
{
    return NULL != iface->device->rings && iface->device->rings(iface);
}

/** Give a device the bell that its threads ring, unless the device has a bell already. Nobody sleeps by the port's own word where the port
 * has no bell. */
static inline void dn_port_give_bell(dn_port_t *port, dn_iface_t *iface)
{
    if (NULL == iface->bell) {
        iface->bell = NULL == port->bell ? &port->own_bell : port->bell;
    }
}

/** As dn_progress(), but look at everything. @return events. -1: nothing was looked at, since another thread receives, or others wait for
 * the lock that this thread holds. */
int dn_port_poll_all(dn_port_t *port);
/** Tell the devices that this thread sleeps now. Where another thread has the lock, nothing is told: that thread receives, and rings. */
void dn_port_tell_sleep(dn_port_t *port);

/** A number that changes when a message has come by this port, or another event. The lock is held. */
uint64_t dn_port_heard(const dn_port_t *port);
/** Take the lock, unless another thread has it. @return 0: another thread has it. */
int dn_port_trylock(dn_port_t *port);

/** A peer waits for answers. Where this process has left the peer, the peer counts from now on as one that came: answers go out.
 * @return 0: the peer has closed its port, and waits for none. */
int dn_port_return(dn_port_t *port, dn_peer_base_t *peer);

/** A live segment of this process, or NULL. */
dn_segment_t *dn_segment_find(dn_port_t *port, uint32_t sid, uint32_t generation);
void dn_segment_free_all(dn_port_t *port);

dn_status_t dn_llcm_open(dn_llcm_t *llcm, void *base, uint32_t bytes);
void dn_llcm_close(dn_llcm_t *llcm);

#endif
