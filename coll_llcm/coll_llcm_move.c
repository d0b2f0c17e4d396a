/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_move.c
 * Barrier and broadcast; elements that do not lie together.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_prototypes.h"

/** Run a convertor that is prepared, over a buffer of all its bytes. */
static void move_convert(opal_convertor_t *convertor, void *bytes, bool packs)
{
    size_t size = 0;
    uint32_t count = 1;

    opal_convertor_get_packed_size(convertor, &size);
    struct iovec iov = {.iov_base = bytes, .iov_len = size};
    if (packs) {
        (void) opal_convertor_pack(convertor, &iov, &count, &size);
    } else {
        (void) opal_convertor_unpack(convertor, &iov, &count, &size);
    }
}

void coll_llcm_pack(void *to, const void *buf, int count, const ompi_datatype_t *type)
{
    opal_convertor_t convertor;

    if (coll_llcm_is_contiguous(count, type)) {
        memcpy(to, coll_llcm_start(buf, type), coll_llcm_bytes(count, type));
        return;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    (void) opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, (size_t) count,
                                                    buf, 0, &convertor);
    move_convert(&convertor, to, true);
    OBJ_DESTRUCT(&convertor);
}

void coll_llcm_unpack(void *buf, int count, const ompi_datatype_t *type, const void *from)
{
    opal_convertor_t convertor;

    if (coll_llcm_is_contiguous(count, type)) {
        memcpy(coll_llcm_start(buf, type), from, coll_llcm_bytes(count, type));
        return;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    (void) opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, (size_t) count,
                                                    buf, 0, &convertor);
    move_convert(&convertor, (void *) (uintptr_t) from, false);
    OBJ_DESTRUCT(&convertor);
}

int coll_llcm_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;

    if (OPAL_UNLIKELY(!coll_llcm_ready(module, comm))) {
        return module->saved.coll_barrier(comm, module->saved.coll_barrier_module);
    }
    return coll_llcm_wait(module, dn_tree_barrier(module->tree));
}

/** Elements with gaps go through a buffer of their bytes. */
static int bcast_packed(coll_llcm_module_t *module, void *buf, int count, const ompi_datatype_t *type,
                        int root, bool is_root)
{
    uint8_t bytes[DN_AOTF_LINE_MAX * DN_TREE_LINES];

    if (is_root) {
        coll_llcm_pack(bytes, buf, count, type);
    }
    int rc = coll_llcm_wait(
        module, dn_tree_bcast(module->tree, (uint32_t) root, bytes, coll_llcm_bytes(count, type)));
    if (!is_root && OMPI_SUCCESS == rc) {
        coll_llcm_unpack(buf, count, type, bytes);
    }
    return rc;
}

int coll_llcm_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
                    struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t bytes = coll_llcm_bytes(count, type);

    if (0 != bytes && coll_llcm_is_for_areas(module, comm, bytes)) {
        return coll_llcm_long_bcast(module, buf, count, type, root, root == ompi_comm_rank(comm));
    }
    if (OPAL_UNLIKELY(dn_tree_max(1) < bytes || !coll_llcm_ready(module, comm)
                      || !coll_llcm_is_fast(module, bytes, 1))) {
        return module->saved.coll_bcast(buf, count, type, root, comm, module->saved.coll_bcast_module);
    }
    if (OPAL_UNLIKELY(0 == bytes)) {
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(!coll_llcm_is_contiguous(count, type))) {
        return bcast_packed(module, buf, count, type, root, root == ompi_comm_rank(comm));
    }
    return coll_llcm_wait(module,
                          dn_tree_bcast(module->tree, (uint32_t) root, coll_llcm_start(buf, type), bytes));
}
