/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_exchange.c
 * Allgather and alltoall of short blocks.
 */
#include "dn_config.h"

#include "coll_llcm.h"

/** Is this one for the tree? Bytes are the same everywhere, types need not be. */
static bool coll_llcm_exchange_suits(coll_llcm_module_t *module, struct ompi_communicator_t *comm,
                                     size_t bytes, size_t (*max)(const dn_tree_t *tree))
{
    if (dn_tree_max(1) < bytes || !coll_llcm_ready(module, comm) || max(module->tree) < bytes) {
        return false;
    }
    const uint64_t count = dn_load_relaxed(&coll_llcm.exchanges);
    dn_store_relaxed(&coll_llcm.exchanges, count + 1);
    return true;
}

/** Where block @p i begins. */
static void *exchange_block(const void *buf, int i, int count, const ompi_datatype_t *type)
{
    return (uint8_t *) (uintptr_t) buf + (ptrdiff_t) i * count * (type->super.ub - type->super.lb);
}

int coll_llcm_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf, int rcount,
                        struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                        mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const int size = ompi_comm_size(comm);
    const int rank = ompi_comm_rank(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);
    uint8_t own[DN_AOTF_LINE_MAX * DN_TREE_LINES];

    if (!coll_llcm_exchange_suits(module, comm, len, dn_tree_allgather_max)) {
        return module->saved.coll_allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                            module->saved.coll_allgather_module);
    }
    if (0 == len) {
        return OMPI_SUCCESS;
    }
    if (MPI_IN_PLACE == sbuf) {
        sbuf = exchange_block(rbuf, rank, rcount, rtype);
        scount = rcount;
        stype = rtype;
    }
    coll_llcm_pack(own, sbuf, scount, stype);
    if (coll_llcm_is_contiguous(size * rcount, rtype)) {
        return coll_llcm_wait(module,
                              dn_tree_allgather(module->tree, own, coll_llcm_start(rbuf, rtype), len));
    }
    uint8_t all[len * (size_t) size];
    int rc = coll_llcm_wait(module, dn_tree_allgather(module->tree, own, all, len));
    if (OMPI_SUCCESS == rc) {
        coll_llcm_unpack(rbuf, size * rcount, rtype, all);
    }
    return rc;
}

int coll_llcm_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf, int rcount,
                       struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
                       mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const int size = ompi_comm_size(comm);
    const size_t len = coll_llcm_bytes(rcount, rtype);

    if (!coll_llcm_exchange_suits(module, comm, len, dn_tree_alltoall_max)) {
        return module->saved.coll_alltoall(sbuf, scount, stype, rbuf, rcount, rtype, comm,
                                           module->saved.coll_alltoall_module);
    }
    if (0 == len) {
        return OMPI_SUCCESS;
    }
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool in_gaps = in_place || !coll_llcm_is_contiguous(size * scount, stype);
    const bool out_gaps = !coll_llcm_is_contiguous(size * rcount, rtype);
    uint8_t in[in_gaps ? len * (size_t) size : 1];
    uint8_t out[out_gaps ? len * (size_t) size : 1];
    if (in_gaps) {
        coll_llcm_pack(in, in_place ? rbuf : sbuf, size * (in_place ? rcount : scount),
                       in_place ? rtype : stype);
    }
    int rc =
        coll_llcm_wait(module, dn_tree_alltoall(module->tree, in_gaps ? in : coll_llcm_start(sbuf, stype),
                                                out_gaps ? out : coll_llcm_start(rbuf, rtype), len));
    if (out_gaps && OMPI_SUCCESS == rc) {
        coll_llcm_unpack(rbuf, size * rcount, rtype, out);
    }
    return rc;
}
