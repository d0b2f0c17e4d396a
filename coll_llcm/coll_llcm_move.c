/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file coll_llcm_move.c
 * Barrier and broadcast; elements that do not lie together.
 */
#include "dn_config.h"

#include "coll_llcm.h"

#include "opal/datatype/opal_datatype_prototypes.h"

/** @name Elements that do not lie together */
/** @{ */
void coll_llcm_converted_open(coll_llcm_converted_t *converted, const void *buf, size_t count,
                              const ompi_datatype_t *type, bool packs)
{
    converted->packs = packs;
    converted->from = 0;
    converted->to = 0;
    OBJ_CONSTRUCT(&converted->convertor, opal_convertor_t);
    if (packs) {
        (void) opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buf, 0,
                                                        &converted->convertor);
    } else {
        (void) opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
                                                        (void *) (uintptr_t) buf, 0, &converted->convertor);
    }
}

void coll_llcm_converted_close(coll_llcm_converted_t *converted)
{
    OBJ_DESTRUCT(&converted->convertor);
}

/** Pack up to @p len bytes. */
static size_t pack_some(opal_convertor_t *convertor, void *bytes, size_t len)
{
    struct iovec iov = {.iov_base = bytes, .iov_len = len};
    uint32_t count = 1;

    (void) opal_convertor_pack(convertor, &iov, &count, &len);
    return len;
}

static void pack_converted(coll_llcm_converted_t *converted, uint8_t *bytes, size_t len)
{
    while (0 < len) {
        if (converted->from == converted->to) {
            const size_t packed = pack_some(&converted->convertor, bytes, len);
            bytes += packed;
            len -= packed;
            converted->from = 0;
            converted->to =
                0 == len ? 0 : pack_some(&converted->convertor, converted->rest, sizeof(converted->rest));
        }
        const size_t left = converted->to - converted->from;
        const size_t first = left < len ? left : len;
        memcpy(bytes, converted->rest + converted->from, first);
        converted->from += first;
        bytes += first;
        len -= first;
    }
}

void coll_llcm_converted_move(coll_llcm_converted_t *converted, void *bytes, size_t len)
{
    struct iovec iov = {.iov_base = bytes, .iov_len = len};
    uint32_t count = 1;

    if (converted->packs) {
        pack_converted(converted, bytes, len);
    } else {
        (void) opal_convertor_unpack(&converted->convertor, &iov, &count, &len);
    }
}

void coll_llcm_pack_first(void *to, const void *buf, size_t count, const ompi_datatype_t *type, size_t len)
{
    coll_llcm_converted_t converted;

    if (0 == len) {
        return;
    }
    if (coll_llcm_is_contiguous(count, type)) {
        memcpy(to, coll_llcm_start(buf, type), len);
        return;
    }
    coll_llcm_converted_open(&converted, buf, count, type, true);
    coll_llcm_converted_move(&converted, to, len);
    coll_llcm_converted_close(&converted);
}

void coll_llcm_pack(void *to, const void *buf, size_t count, const ompi_datatype_t *type)
{
    coll_llcm_pack_first(to, buf, count, type, coll_llcm_bytes(count, type));
}

void coll_llcm_unpack_part(void *buf, size_t count, const ompi_datatype_t *type, size_t at, const void *from,
                           size_t len)
{
    coll_llcm_converted_t converted;

    if (0 == len) {
        return;
    }
    if (coll_llcm_is_contiguous(count, type)) {
        dn_copy((uint8_t *) coll_llcm_start(buf, type) + at, from, len);
        return;
    }
    coll_llcm_converted_open(&converted, buf, count, type, false);
    (void) opal_convertor_set_position(&converted.convertor, &at);
    coll_llcm_converted_move(&converted, (void *) (uintptr_t) from, len);
    coll_llcm_converted_close(&converted);
}

void coll_llcm_unpack(void *buf, size_t count, const ompi_datatype_t *type, const void *from)
{
    coll_llcm_unpack_part(buf, count, type, 0, from, coll_llcm_bytes(count, type));
}
/** @} */

int coll_llcm_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;

    if (OPAL_UNLIKELY(!coll_llcm_ready(module, comm))) {
        return module->saved.coll_barrier(comm, module->saved.coll_barrier_module);
    }
    return coll_llcm_wait(module, dn_tree_barrier(module->tree));
}

/** Broadcast elements with gaps through lines. They are packed into a buffer. */
static int bcast_packed(coll_llcm_module_t *module, void *buf, size_t count, const ompi_datatype_t *type,
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

int coll_llcm_bcast(void *buf, dn_ompi_count_t count, struct ompi_datatype_t *type, int root,
                    struct ompi_communicator_t *comm, mca_coll_base_module_t *super)
{
    coll_llcm_module_t *module = (coll_llcm_module_t *) super;
    const size_t bytes = coll_llcm_bytes(count, type);

    if (COLL_LLCM_BCAST_MESSAGE <= bytes
            ? coll_llcm_is_fast_pair(module, comm)
            : coll_llcm_is_message(module, comm, COLL_LLCM_MEASURED_BCAST, bytes)) {
        return coll_llcm_note_time(
            module, module->saved.coll_bcast(buf, count, type, root, comm, module->saved.coll_bcast_module));
    }
    if (0 != bytes && coll_llcm_is_for_areas(module, comm, bytes)) {
        return coll_llcm_note_time(
            module, coll_llcm_long_bcast(module, buf, count, type, root, root == ompi_comm_rank(comm)));
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
