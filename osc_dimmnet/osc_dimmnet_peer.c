/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file osc_dimmnet_peer.c
 * The port, and the peers of windows.
 *
 * The port is opened for the first window, or the first MPI_Alloc_mem, unless another component has opened it.
 */
#include "dn_config.h"

#include "osc_dimmnet.h"

/** The key of a process in osc_component_t::peers. */
static uint64_t key_of(const ompi_communicator_t *comm, int rank)
{
    const ompi_proc_t *proc = ompi_comm_peer_lookup((ompi_communicator_t *) (uintptr_t) comm, rank);

    return (uint64_t) proc->super.proc_name.jobid << 32 | proc->super.proc_name.vpid;
}

dn_peer_t *ompi_osc_dimmnet_peer(ompi_communicator_t *comm, int rank)
{
    void *peer = NULL;

    opal_mutex_lock(&mca_osc_dimmnet_component.lock);
    (void) opal_hash_table_get_value_uint64(&mca_osc_dimmnet_component.peers, key_of(comm, rank), &peer);
    opal_mutex_unlock(&mca_osc_dimmnet_component.lock);
    return peer;
}

/** Connect to a process, unless an earlier window has connected to it. */
static bool peer_connect(ompi_communicator_t *comm, int rank)
{
    osc_component_t *component = &mca_osc_dimmnet_component;
    dn_peer_t *peer;

    if (NULL != ompi_osc_dimmnet_peer(comm, rank)) {
        return true;
    }
    if (OPAL_SUCCESS != dn_ompi_connect(&ompi_comm_peer_lookup(comm, rank)->super, &peer)) {
        return false;
    }
    opal_mutex_lock(&component->lock);
    int rc = opal_hash_table_set_value_uint64(&component->peers, key_of(comm, rank), peer);
    opal_mutex_unlock(&component->lock);
    if (OPAL_SUCCESS != rc) {
        dn_disconnect(peer);
    }
    return OPAL_SUCCESS == rc;
}

/** Connect to all processes of a communicator. All of them have told their addresses, and do the same meanwhile. @return whether this
 * process could connect to all. */
static bool connect_all(ompi_communicator_t *comm)
{
    bool good = true;

    for (int rank = 0; good && rank < ompi_comm_size(comm); rank++) {
        good = peer_connect(comm, rank);
    }
    return good;
}

/** Can other processes map what this process allocates? This process tries to map a segment of its own. */
static bool has_mapped_memory(void)
{
    osc_component_t *component = &mca_osc_dimmnet_component;
    uint8_t address[DN_ADDRESS_MAX];
    size_t len = sizeof(address);
    dn_piece_t block = {0};
    bool maps = false;
    dn_peer_t *self;
    dn_key_t key;
    void *base;

    if (DN_OK != dn_address(component->port, address, &len)
        || DN_OK != dn_connect(component->port, address, len, &self)) {
        return false;
    }
    if (ompi_osc_dimmnet_spare(1, &block)) {
        dn_piece_key(&block, &key);
        maps = DN_OK == dn_segment_map(self, &key, &base);
        dn_piece_free(&mca_osc_dimmnet_component.pieces, &block);
    }
    dn_disconnect(self);
    return maps;
}

bool ompi_osc_dimmnet_port_ready(void)
{
    osc_component_t *component = &mca_osc_dimmnet_component;
    bool good;

    /* Under the lock: no thread goes on before all below is done. */
    opal_mutex_lock(&component->open_lock);
    if (NULL == component->port && !component->failed) {
        component->failed = dn_ompi_params_refused(DN_PARAM_OSC)
                            || OPAL_SUCCESS != dn_ompi_open(DN_OMPI_AFTER_MODEX, &component->port);
        if (component->failed) {
            component->port = NULL;
        } else {
            dn_pieces_open(&component->pieces, component->port);
            component->maps = has_mapped_memory();
            component->failed = OMPI_SUCCESS != ompi_osc_dimmnet_rma_open();
        }
    }
    good = !component->failed;
    opal_mutex_unlock(&component->open_lock);
    return good;
}

static bool knows_all(ompi_communicator_t *comm)
{
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        if (NULL == ompi_osc_dimmnet_peer(comm, rank)) {
            return false;
        }
    }
    return true;
}

enum osc_reached ompi_osc_dimmnet_reached(ompi_communicator_t *comm)
{
    enum osc_reached how = mca_osc_dimmnet_component.maps ? OSC_ALL_MAPPED : OSC_ALL_CONNECTED;

    /* Peers that are found gone are lost now, for dn_fence(). dn_flush() would take an error away from who flushes. */
    dn_progress(mca_osc_dimmnet_component.port);
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        dn_peer_t *peer = ompi_osc_dimmnet_peer(comm, rank);
        dn_peer_attr_t attr;

        if (DN_ERR_UNREACH == dn_fence(peer)) {
            /* The peer counts as lost for ever, even if its process lives: the new window would not be told of its loss. */
            return OSC_NOT_ALL;
        }
        dn_peer_attr(peer, &attr);
        if (0 == (attr.caps & DN_CAP_MAP)) {
            how = OSC_ALL_CONNECTED;
        }
    }
    return how;
}

enum osc_reached ompi_osc_dimmnet_reach(ompi_communicator_t *comm)
{
    const bool able = ompi_osc_dimmnet_port_ready();
    const bool known = able && knows_all(comm);
    int mine[3] = {able, known, known ? ompi_osc_dimmnet_reached(comm) : OSC_ALL_MAPPED};
    int all[3];

    /* When all processes have come here, each process that is able has a port, and has told its address. */
    if (OMPI_SUCCESS
            != comm->c_coll->coll_allreduce(mine, all, 3, MPI_INT, MPI_MIN, comm,
                                            comm->c_coll->coll_allreduce_module)
        || 0 == all[0]) {
        return OSC_NOT_ALL;
    }
    if (0 != all[1]) {
        return (enum osc_reached) all[2];
    }
    mine[0] = connect_all(comm) ? (int) ompi_osc_dimmnet_reached(comm) : OSC_NOT_ALL;
    if (OMPI_SUCCESS
        != comm->c_coll->coll_allreduce(mine, all, 1, MPI_INT, MPI_MIN, comm,
                                        comm->c_coll->coll_allreduce_module)) {
        return OSC_NOT_ALL;
    }
    return (enum osc_reached) all[0];
}

void ompi_osc_dimmnet_peers_close(void)
{
    osc_component_t *component = &mca_osc_dimmnet_component;
    uint64_t key;
    void *peer;

    if (NULL == component->port) {
        return;
    }
    ompi_osc_dimmnet_rma_close();
    OPAL_HASH_TABLE_FOREACH(key, uint64, peer, &component->peers)
    {
        dn_disconnect(peer);
    }
    opal_hash_table_remove_all(&component->peers);
    dn_pieces_close(&component->pieces);
    component->port = NULL;
    dn_ompi_close();
}
