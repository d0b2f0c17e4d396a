/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_int.h
 * Private to libmca_common_dimmnet: what its files share.
 */
#ifndef DN_OMPI_INT_H
#define DN_OMPI_INT_H

#include "dn_ompi.h"

/** Register the variables of a section of dn_params.def, unless they are registered. Register the old names that they
 * had under @p component. */
void dn_ompi_params_register(const mca_base_component_t *component, dn_param_section_t section);

/** The hash of an empty text (FNV-1a). */
#define DN_OMPI_HASH UINT64_C(14695981039346656037)

/** Add a text to a hash. */
static inline uint64_t dn_ompi_hash(uint64_t hash, const char *text)
{
    for (const char *c = text; '\0' != *c; c++) {
        hash = (hash ^ (unsigned char) *c) * UINT64_C(1099511628211);
    }
    return hash;
}

/** As dn_ompi_help(), but only the first text with a key is shown. */
void dn_ompi_help_once(uint64_t key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The open port. */
dn_port_t *dn_ompi_port(void);

/**
 * Let in the processes of this job. Called when a process has greeted whose group is not let in (dn_strangers()). If the launcher gives a
 * key, all processes of the job are one group. If not, each process is a group of its own, and this process may never send to some that
 * send to it.
 */
void dn_ompi_let_job_in(void);

/** @name dn_ompi_address.c */
/** @{ */
/** The addresses of a process. */
enum dn_ompi_address {
    DN_OMPI_ADDRESS_FIRST, /**< of its port when the port was opened */
    DN_OMPI_ADDRESS_FAR,   /**< with a network, when a process is known that shared memory does not reach */
    DN_OMPI_ADDRESSES
};

/** Tell the first address, ahead of the modex. @return OPAL_SUCCESS, or why not. */
int dn_ompi_address_tell_modex(void *bytes, size_t len);
/** Tell all processes that MPI may connect, at any time. @return OPAL_SUCCESS, or why not. */
int dn_ompi_address_tell(enum dn_ompi_address which, void *bytes, size_t len);
/** The port has no user any more: withdraw what was told after the modex, and forget what the modex has said. */
void dn_ompi_address_forget(void);
/** Wait for the address that a process publishes, as dn_ompi_look_up() finds it, as long as common_dimmnet_timeout_s says. The port is
 * progressed meanwhile, so the caller holds no lock. @retval OPAL_ERR_NOT_FOUND  it did not come in time. */
int dn_ompi_address_await(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                          size_t *len_p);
/** The address that a process of this job has told in the modex, as dn_ompi_address_find() gives it. @return false: there is none; or
 * this process has told its own address after the modex. The modex is not asked then, as it might wait for ever. */
bool dn_ompi_address_recall(const opal_process_name_t *proc, void **bytes_p, size_t *len_p);
/** The first address of a process, told in the modex or later. @return as dn_ompi_look_up(). */
int dn_ompi_address_find(const opal_process_name_t *proc, void **bytes_p, size_t *len_p);
/** @} */

/** Is there a device in the list that can encrypt what goes to other hosts? */
bool dn_ompi_encrypts(void);
/** No device of dimmnet encrypts messages to other hosts. If they are to be encrypted, and the job has processes there, say by a help
 * text that another transport may carry them in clear. */
void dn_ompi_say_in_clear(void);

/** @name dn_ompi_far.c */
/** @{ */
/** Is this the list `auto`, which opens a network where one is needed? */
bool dn_ompi_far_is_auto(const char *devices);
/** Has this build a network for the list `auto`? The same on all hosts. */
bool dn_ompi_far_is_built(void);
/** The list of devices to open the port with. For `auto` it has no network yet. */
const char *dn_ompi_far_devices(void);
/** The port is open: open the network, too, where the job has several hosts. */
void dn_ompi_far_begin(dn_port_t *port);
/** The port has no user any more. */
void dn_ompi_far_end(void);
/** Has the port a network? */
bool dn_ompi_far_is_open(void);
/** The port's address is about to be told. @return true: another address will be published when a process is met
 * that shared memory does not reach. */
bool dn_ompi_far_tell(void);
/**
 * Connect to a process that the open devices do not reach.
 * @param[in] address      The first address of the process.
 * @param[in] comes_later  The value of dn_ompi_far_tell() at that process.
 * @retval DN_ERR_UNREACH  No device reaches the process.
 */
dn_status_t dn_ompi_far_connect(const opal_proc_t *proc, const void *address, size_t len, bool comes_later,
                                dn_peer_t **peer_p);
/** @} */

/** @name dn_ompi_lost.c */
/** @{ */
/** Note where a process runs, to which this process has connected. */
void dn_ompi_lost_note(const opal_proc_t *proc);
/** The port is closed. */
void dn_ompi_lost_forget(void);
/** A key for a sentence of libdimmnet. Sentences that say the same of processes of one host have the same key. */
uint64_t dn_ompi_lost_key(const char *sentence);
/** @} */

#endif
