/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
#ifndef DN_INFO_H
#define DN_INFO_H

/*
 * What the files of dimmnet_info share. The program first finds everything out, then writes it as text or JSON.
 */

#include <stdbool.h>
#include <stdio.h>

#include "dimmnet.h"
#include "dn_json.h"

#define INFO_PROGRAM     "dimmnet_info"
#define INFO_MAX_DEVICES 16
#define INFO_LIST_MAX    512
#define INFO_TEXT_MAX    512

/** A peer, as one device reaches it. */
typedef struct {
    bool reaches;            /**< the device reaches the peer */
    bool answered;           /**< a message went to the peer, and another came back */
    char why[INFO_TEXT_MAX]; /**< one sentence, if one of the above is false */
    dn_peer_attr_t attr;     /**< set if the device reaches the peer */
} info_route_t;

/** A word of the device list. */
typedef struct {
    char word[INFO_LIST_MAX]; /**< NAME or NAME:ARGUMENT */
    bool available;
    char why[INFO_TEXT_MAX]; /**< one sentence, if the device is not available */
    size_t address_len;      /**< bytes of the address of a port with only this device */
    char provider[64];       /**< "": the device uses no provider, and the next two are empty, too */
    char domain[256];
    char endpoint[INFO_TEXT_MAX];
} info_device_t;

/** A device list. */
typedef struct {
    int count; /**< elements of device that are in use */
    info_device_t device[INFO_MAX_DEVICES];
    char usable[INFO_LIST_MAX]; /**< the available devices, as a list for dn_open() */
} info_devices_t;

/** The way to a process, as it is in an address file. */
typedef struct {
    char host[256];                /**< name of its host */
    long process;                  /**< the kernel's number of the process */
    char devices[INFO_LIST_MAX];   /**< the list that it has opened */
    dn_group_key_t key;            /**< made for this process: a process with the file may talk to it */
    uint8_t bytes[DN_ADDRESS_MAX]; /**< its address */
    size_t len;                    /**< bytes of the address */
} info_address_t;

/** A peer, as each device and the whole list reach it. */
typedef struct {
    info_address_t at;
    info_route_t route[INFO_MAX_DEVICES]; /**< in the order of info_devices_t */
    bool reached;                         /**< the whole list reaches the peer */
    char device[32];                      /**< the device of the list that is used, if it is reached */
    char why[INFO_TEXT_MAX];              /**< one sentence, if it is not reached */
    bool shares_cores;                    /**< processes share cores: dn_oversubscribed() */
} info_peer_t;

/** @name dn_info_device.c: ports and peers */
/** @{ */
/** Take the words of a device list; NULL: every device of this build. @return 0, or a sentence is on stderr. */
int info_devices_parse(info_devices_t *devices, const char *list);
/** Open each device by itself, and find whether it is available. */
void info_devices_look(info_devices_t *devices);

/** Reach a process by each device alone, then by the whole list. @param[in] seconds  How long to wait for each answer. */
void info_peer_look(info_peer_t *peer, const info_devices_t *devices, int seconds);

/**
 * Open a port on all usable devices, pass its address to @p tell, and answer the questions that come.
 *
 * @param[in] seconds  End after this time; 0: end at SIGTERM or SIGINT.
 * @return the exit status of the program.
 */
typedef int (*info_tell_fn_t)(const info_address_t *address, void *arg);
int info_announce(const info_devices_t *devices, int seconds, info_tell_fn_t tell, void *arg);
/** @} */

/** @name dn_info_address.c: address files */
/** @{ */
void info_address_write(FILE *file, const info_address_t *address);
/** Read an address file. @return NULL, or why it is not an address file. */
const char *info_address_read(FILE *file, info_address_t *address);
/** @} */

/** @name dn_info_topo.c: the machine by hwloc */
/** @{ */
/** Print the topology. @param[in] json  NULL: print text. @return 0, or -1: a sentence is on stderr. */
int info_topology_print(dn_json_t *json);
/** @} */

#endif
