/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_comm.c
 * Communicators that are made from groups: their numbers, and which processes know their names. Threads: any.
 */
#include "dn_config.h"

#include "dn_atomic.h"
#include "dn_ompi_int.h"
#include "dn_ompi_tag.h"

/** The number of processes to which messages of a communicator go. */
static size_t dn_ompi_comm_targets(const struct ompi_communicator_t *comm)
{
    return (size_t) (OMPI_COMM_IS_INTER(comm)
                         ? ompi_comm_remote_size((struct ompi_communicator_t *) (uintptr_t) comm)
                         : ompi_comm_size((struct ompi_communicator_t *) (uintptr_t) comm));
}

int dn_ompi_comm_add(dn_tag_t *tag, struct ompi_communicator_t *comm)
{
    uint64_t name[2];

    comm->c_pml_comm = NULL;
    if (dn_ompi_comm_is_global(comm)) {
        return OMPI_SUCCESS;
    }
    dn_ompi_comm_t *own = calloc(1, sizeof(*own) + dn_ompi_comm_targets(comm));
    if (NULL == own) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    dn_ompi_comm_extended(comm, name);
    if (DN_OK != dn_tag_name(tag, name, &own->context)) {
        free(own);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    comm->c_pml_comm = (void *) own;
    return OMPI_SUCCESS;
}

void dn_ompi_comm_del(dn_tag_t *tag, struct ompi_communicator_t *comm)
{
    dn_ompi_comm_t *own = (dn_ompi_comm_t *) comm->c_pml_comm;

    if (dn_ompi_comm_is_global(comm)) {
        dn_tag_forget(tag, dn_ompi_comm_context(comm));
    } else if (NULL != own) {
        dn_tag_unname(tag, own->context);
        free(own);
        comm->c_pml_comm = NULL;
    }
}

bool dn_ompi_comm_say(struct ompi_communicator_t *comm, int rank, dn_tag_peer_t *peer)
{
    dn_ompi_comm_t *own = (dn_ompi_comm_t *) comm->c_pml_comm;
    uint64_t name[2];

    /* Pairs with the release below: the name has left, or waits to leave, before this thread's message. */
    if (OPAL_LIKELY(0 != dn_load_acquire(&own->said[rank]))) {
        return true;
    }
    dn_ompi_comm_extended(comm, name);
    if (DN_OK != dn_tag_introduce(peer, name, own->context)) {
        return false;
    }
    dn_store_release(&own->said[rank], 1);
    return true;
}
