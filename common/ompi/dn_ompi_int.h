/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_int.h
 * Between the files of libmca_common_dimmnet.
 */
#ifndef DN_OMPI_INT_H
#define DN_OMPI_INT_H

#include "dn_ompi.h"

/** Register the variables of a section of dn_params.def unless they are, and the names that they had before
 * under @p component. */
void dn_ompi_params_register(const mca_base_component_t *component, dn_param_section_t section);

/** A hash of nothing yet (FNV-1a). */
#define DN_OMPI_HASH UINT64_C(14695981039346656037)

/** Add a text to a hash. */
static inline uint64_t dn_ompi_hash(uint64_t hash, const char *text)
{
    for (const char *c = text; '\0' != *c; c++) {
        hash = (hash ^ (unsigned char) *c) * UINT64_C(1099511628211);
    }
    return hash;
}

/** As dn_ompi_help(), for texts of which the first with this key is enough. */
void dn_ompi_help_once(uint64_t key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The open port. */
dn_port_t *dn_ompi_port(void);

/**
 * A process has greeted whose group is not let in (dn_strangers()): let in those of this job. With a key of the launcher all of them are
 * of one group. Where it gives none each process is a group of its own, and this one may never send to all that send to it.
 */
void dn_ompi_let_job_in(void);

/** @name dn_ompi_address.c */
/** @{ */
/** Which address of a process. */
enum dn_ompi_address {
    DN_OMPI_ADDRESS_FIRST, /**< that of its port when it was opened */
    DN_OMPI_ADDRESS_FAR,   /**< that with a network, once somebody is elsewhere */
    DN_OMPI_ADDRESSES
};

/** Tell the first address, ahead of the modex. @return OPAL_SUCCESS, or why not. */
int dn_ompi_address_tell_modex(void *bytes, size_t len);
/** Tell all processes that MPI may connect, at any time. @return OPAL_SUCCESS, or why not. */
int dn_ompi_address_tell(enum dn_ompi_address which, void *bytes, size_t len);
/** Nobody uses the port any more: what was told after the modex is told no more, and what the modex has said is forgotten. */
void dn_ompi_address_forget(void);
/** Wait for the address that a process publishes, as dn_ompi_look_up() finds it, as long as common_dimmnet_timeout_s says. The port is
 * progressed meanwhile, so the caller holds no lock. @retval OPAL_ERR_NOT_FOUND  it did not come in time. */
int dn_ompi_address_await(enum dn_ompi_address which, const opal_process_name_t *proc, void **bytes_p,
                          size_t *len_p);
/** The address that a process of this job has told in the modex, as dn_ompi_address_find() gives it. @return false: none; or
 * this process has told its own later, and then the modex is not asked where it may wait for ever. */
bool dn_ompi_address_recall(const opal_process_name_t *proc, void **bytes_p, size_t *len_p);
/** The first address of a process, whenever it was told. As dn_ompi_look_up(). */
int dn_ompi_address_find(const opal_process_name_t *proc, void **bytes_p, size_t *len_p);
/** @} */

/** Is there a device in the list that can encrypt what goes to other hosts? */
bool dn_ompi_encrypts(void);
/** Nothing of ours takes messages to other hosts encrypted. Where they are to be, and the job has processes there, a help text says that another
 * transport may carry them in clear. */
void dn_ompi_say_in_clear(void);

/** @name dn_ompi_far.c */
/** @{ */
/** Is it the list that follows where processes are? */
bool dn_ompi_far_is_auto(const char *devices);
/** Is there a network for that list in this build? The same on all hosts. */
bool dn_ompi_far_is_built(void);
/** The list to open the port with, which has no network yet where the user's is auto. */
const char *dn_ompi_far_devices(void);
/** The port is open: open the network, too, where the job has several hosts. */
void dn_ompi_far_begin(dn_port_t *port);
/** Nobody uses the port any more. */
void dn_ompi_far_end(void);
/** Has the port a network? */
bool dn_ompi_far_is_open(void);
/** Its address is about to be told. @return whether another one is published when somebody is met
 * elsewhere. */
bool dn_ompi_far_tell(void);
/**
 * Connect to a process that is where the devices which are open do not lead.
 * @param[in] address      of the process, its first.
 * @param[in] comes_later  What it told by dn_ompi_far_tell().
 * @retval DN_ERR_UNREACH  Nothing reaches it.
 */
dn_status_t dn_ompi_far_connect(const opal_proc_t *proc, const void *address, size_t len, bool comes_later,
                                dn_peer_t **peer_p);
/** @} */

/** @name dn_ompi_lost.c */
/** @{ */
/** Note where a process runs that was connected to. */
void dn_ompi_lost_note(const opal_proc_t *proc);
/** The port is closed. */
void dn_ompi_lost_forget(void);
/** A key for a sentence of libdimmnet: one for all sentences that tell the same of processes of one host. */
uint64_t dn_ompi_lost_key(const char *sentence);
/** @} */

#endif
