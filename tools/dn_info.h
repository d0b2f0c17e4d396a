/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_INFO_H
#define DN_INFO_H

/*
 * What the files of dimmnet_info share: what is found out first, and written as text or JSON after that.
 */

#include <stdbool.h>
#include <stdio.h>

#include "dimmnet.h"
#include "dn_json.h"

#define INFO_PROGRAM     "dimmnet_info"
#define INFO_MAX_DEVICES 16
#define INFO_LIST_MAX    512
#define INFO_TEXT_MAX    512

/** What one device is for one peer. */
typedef struct {
    bool reaches;
    bool answered;           /**< a message went there and another came back */
    char why[INFO_TEXT_MAX]; /**< one sentence when one of the above is false */
    dn_peer_attr_t attr;     /**< when it reaches */
} info_route_t;

/** A word of the device list. */
typedef struct {
    char word[INFO_LIST_MAX]; /**< NAME or NAME:ARGUMENT */
    bool available;
    char why[INFO_TEXT_MAX]; /**< one sentence when it is not */
    size_t address_len;      /**< of a port of this device alone */
    char provider[64];       /**< "": it uses none, and the next two are empty as well */
    char domain[256];
    char endpoint[INFO_TEXT_MAX];
} info_device_t;

typedef struct {
    int count;
    info_device_t device[INFO_MAX_DEVICES];
    char usable[INFO_LIST_MAX]; /**< those available, as dn_open() takes them */
} info_devices_t;

/** Where a process can be found: what an address file holds. */
typedef struct {
    char host[256];
    long process;
    char devices[INFO_LIST_MAX];
    dn_group_key_t key; /**< made for this process alone: who has the file may talk to it */
    uint8_t bytes[DN_ADDRESS_MAX];
    size_t len;
} info_address_t;

/** One peer, by every device and by the whole list. */
typedef struct {
    info_address_t at;
    info_route_t route[INFO_MAX_DEVICES]; /**< in the order of info_devices_t */
    bool reached;                         /**< by the whole list */
    char device[32];                      /**< that is used */
    char why[INFO_TEXT_MAX];              /**< when it is not reached */
    bool shares_cores;
} info_peer_t;

/** @name dn_info_device.c: ports and peers */
/** @{ */
/** Take the words of a device list; NULL: every device of this build. @return 0, or a sentence is on stderr. */
int info_devices_parse(info_devices_t *devices, const char *list);
/** Open each by itself, and see. */
void info_devices_look(info_devices_t *devices);

/** Reach a process by each device, then by all in order; wait @p seconds for each of its answers. */
void info_peer_look(info_peer_t *peer, const info_devices_t *devices, int seconds);

/**
 * Open a port on all usable devices, tell @p tell where it is, and answer those who come.
 *
 * @param[in] seconds  End after this time; 0: when a signal says so.
 * @return the exit status of the program.
 */
typedef int (*info_tell_fn_t)(const info_address_t *address, void *arg);
int info_announce(const info_devices_t *devices, int seconds, info_tell_fn_t tell, void *arg);
/** @} */

/** @name dn_info_address.c: address files */
/** @{ */
void info_address_write(FILE *file, const info_address_t *address);
/** @return NULL, or why it is not an address file. */
const char *info_address_read(FILE *file, info_address_t *address);
/** @} */

/** @name dn_info_topo.c: the machine by hwloc */
/** @{ */
/** @p json NULL: as text. @return 0, or a sentence is on stderr. */
int info_topology_print(dn_json_t *json);
/** @} */

#endif
