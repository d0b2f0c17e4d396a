/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_far.c
 * The list of devices "auto": shared memory, and a network as soon as a process is elsewhere, which means that shared memory does not reach it.
 * This is so at the start of a job of several hosts. Or MPI connects a process of another host, or of name spaces that share no memory
 * with those of this process: then each side opens the network, publishes its new address, and looks up the address of the other side.
 *
 * Life of the network, from one opening of the port to the next:
 *
 *   NEVER       the list is another one, or there is no network in this build
 *   CLOSED ---> OPEN      a process is elsewhere
 *          ---> FAILED    a process is elsewhere, and the network cannot be opened: said once, and not tried again
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <time.h>

/** The name of the list, the devices that it has at first, and the network. */
#define AUTO_LIST      "auto"
#define AUTO_DEVICES   "shm"
#define AUTO_NETWORK   "ofi"
#define AUTO_ENCRYPTED "ipnuma" /**< the network if messages are to be encrypted */

typedef enum far_state { FAR_NEVER, FAR_CLOSED, FAR_OPEN, FAR_FAILED } far_state_t;

static struct {
    opal_mutex_t lock; /**< held while state leaves FAR_CLOSED, which takes a while */
    dn_port_t *port;
    far_state_t state; /**< written under the lock, or by one thread while components are opened and closed */
    bool told;         /**< other processes know an address without the network */
} far = {.lock = OPAL_MUTEX_STATIC_INIT};

bool dn_ompi_far_is_auto(const char *devices)
{
    return 0 == strcmp(AUTO_LIST, devices);
}

/** The network of the list. It is the same in all processes of the job, since `auth` is. */
static const char *auto_network(void)
{
    return DN_AUTH_ENCRYPTED == dn_ompi_params.port.auth ? AUTO_ENCRYPTED : AUTO_NETWORK;
}

bool dn_ompi_far_is_built(void)
{
    return 0 != dn_device_known(auto_network());
}

bool dn_ompi_spans_hosts(void)
{
    return dn_ompi_job_size() > (uint32_t) opal_process_info.num_local_peers + 1;
}

const char *dn_ompi_far_devices(void)
{
    const char *devices = NULL == dn_ompi_params.mpi.devices ? "" : dn_ompi_params.mpi.devices;
    const bool is_auto = dn_ompi_far_is_auto(devices);

    far.state = is_auto && dn_ompi_far_is_built() ? FAR_CLOSED : FAR_NEVER;
    far.told = false;
    return is_auto ? AUTO_DEVICES : devices;
}

/** Publish the address again; also when the network could not be opened, as other processes would wait. */
static void tell_again(void)
{
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);

    if (DN_OK != dn_address(far.port, address, &len)
        || OPAL_SUCCESS != dn_ompi_address_tell(DN_OMPI_ADDRESS_FAR, address, len)) {
        dn_ompi_help(DN_OMPI_TEXT_NOT_PUBLISHED, opal_process_info.nodename);
    }
}

/** A process is elsewhere: open the network now, unless it is open. If it cannot be opened, a help text says so. @return whether it is
 * open. */
static bool open_network(void)
{
    opal_mutex_lock(&far.lock);
    if (FAR_CLOSED == far.state) {
        const dn_status_t status = dn_device_open(far.port, auto_network());
        if (DN_OK != status) {
            dn_ompi_help(DN_OMPI_TEXT_NO_NETWORK, auto_network(), opal_process_info.nodename);
            dn_ompi_say_in_clear();
        }
        if (far.told) {
            tell_again();
        }
        far.state = DN_OK == status ? FAR_OPEN : FAR_FAILED;
    }
    const bool is_open = FAR_OPEN == far.state;
    opal_mutex_unlock(&far.lock);
    return is_open;
}

void dn_ompi_far_begin(dn_port_t *port)
{
    far.port = port;
    if (dn_ompi_spans_hosts()) {
        (void) open_network();
    }
}

void dn_ompi_far_end(void)
{
    /* dn_ompi_far_has_failed() tells of a failure also after the port is closed. */
    far.state = FAR_FAILED == far.state ? FAR_FAILED : FAR_NEVER;
    far.port = NULL;
}

bool dn_ompi_far_is_open(void)
{
    return FAR_OPEN == far.state;
}

bool dn_ompi_far_has_failed(void)
{
    return FAR_FAILED == far.state;
}

bool dn_ompi_far_tell(void)
{
    far.told = FAR_CLOSED == far.state;
    return far.told;
}

dn_status_t dn_ompi_far_connect(const opal_proc_t *proc, const void *address, size_t len, bool comes_later,
                                dn_peer_t **peer_p)
{
    if (!open_network()) {
        return DN_ERR_UNREACH;
    }
    dn_status_t status = dn_connect(far.port, address, len, peer_p);
    if (DN_ERR_UNSUPPORTED == status && comes_later) {
        void *other = NULL;
        status = OPAL_SUCCESS == dn_ompi_address_await(DN_OMPI_ADDRESS_FAR, &proc->proc_name, &other, &len)
                     ? dn_connect(far.port, other, len, peer_p)
                     : DN_ERR_UNREACH;
        free(other);
    }
    return DN_ERR_UNSUPPORTED == status ? DN_ERR_UNREACH : status;
}
